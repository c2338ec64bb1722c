"""Kernels and penalties of conditional embeddings by held-out likelihood."""

from typing import Any, NamedTuple

import numpy as np

from latentviews._arrays import to_numpy
from latentviews._numbers import TINY, as_shares, quartile_spread
from latentviews.comparison.features import fitted_map, middle_gaussian
from latentviews.core.kernels.base import Kernel, UnitHeight
from latentviews.core.kernels.quadrature import Quadrature
from latentviews.core.kernels.real import Gaussian

SCALES = (0.1, 0.2, 0.4, 0.8)  # bandwidths of z to try, in median distances
WIDTHS = (0.02, 0.05, 0.1, 0.2, 0.4)  # and of x
PENALTIES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
FOLDS, PILOT = 5, 2000  # the choice is made on at most so many rows
FEATURES = 150  # and with at most so many features of z
SWEEPS, FACTORS, LONGEST = 2, (2.0, 0.5), 6  # every column's bandwidth is multiplied so often while that helps


class KernelChoice(NamedTuple):
    """What was found best, and its held-out likelihood."""

    score: float
    kernel_x: Kernel
    kernel_z: Kernel
    penalty: float


class Trial:
    """Rows in folds, to score kernels of z on."""

    def __init__(
        self, z: np.ndarray, x: np.ndarray, weights: np.ndarray, kernels_x: list[Kernel], penalties: Any, seed: int
    ):
        self.z, self.x, self.weights, self.seed = z, x, weights, seed
        self.kernels_x, self.penalties = kernels_x, penalties
        self.held = [np.arange(len(z)) % FOLDS == fold for fold in range(FOLDS)]
        self.grams = [[to_numpy(kernel.gram(x[held], x[~held])) for kernel in kernels_x] for held in self.held]

    def best(self, kernel_z: Kernel, n_landmarks: int) -> KernelChoice:
        """The penalty and the kernel of x that go best with a kernel of z."""
        scores, rng = np.zeros((len(self.penalties), len(self.kernels_x))), np.random.default_rng(self.seed)
        for held, grams in zip(self.held, self.grams, strict=True):
            features = fitted_map(UnitHeight(kernel_z), self.z[~held], min(n_landmarks, FEATURES), rng)
            psi, ahead = features.transform(self.z[~held]), features.transform(self.z[held])
            for row, shares in zip(
                scores, held_out_shares(psi, ahead, self.weights[~held], self.penalties), strict=True
            ):
                for place, (kernel, gram) in enumerate(zip(self.kernels_x, grams, strict=True)):
                    logs = log_with_background(np.sum(gram * shares, axis=1), self.x[held], self.x[~held], kernel)
                    row[place] += self.weights[held] @ logs
        a, b = np.unravel_index(np.argmax(scores), scores.shape)
        return KernelChoice(float(scores.max()), self.kernels_x[b], kernel_z, float(self.penalties[a]))


def chosen(
    z: np.ndarray,
    x: np.ndarray,
    weights: np.ndarray,
    kernel_x: Kernel | None,
    kernel_z: Kernel | None,
    penalty: float | str,
    n_landmarks: int,
    rng: np.random.Generator,
) -> tuple[Kernel, Kernel, float]:
    """The kernels and the penalty of the largest held-out likelihood, among those that are left open."""
    some = rng.permutation(len(z))[:PILOT]
    z, x, weights = z[some], x[some], weights[some]
    kernels_x, kernels_z = _candidates(kernel_x, x, WIDTHS), _candidates(kernel_z, z, SCALES)
    penalties = PENALTIES if penalty == "auto" else (float(penalty),)
    if len(kernels_x) * len(kernels_z) * len(penalties) == 1 or len(z) < 2 * FOLDS:
        return kernels_x[-1], kernels_z[-1], penalties[-1]
    trial = Trial(z, x, weights, kernels_x, penalties, int(rng.integers(2**31)))
    found = max((trial.best(kernel, n_landmarks) for kernel in kernels_z), key=lambda one: one.score)
    if len(kernels_z) > 1 and z.shape[1] > 1:
        found = _by_column(trial, found, n_landmarks)
    return found[1:]


def _by_column(trial: Trial, found: KernelChoice, n_landmarks: int) -> KernelChoice:
    """Every column's bandwidth wider or narrower, as long as that helps; then the kernel of x once more."""
    whole, trial = trial, Trial(trial.z, trial.x, trial.weights, [found.kernel_x], trial.penalties, trial.seed)
    for _ in range(SWEEPS):
        before = found.score
        for column in range(trial.z.shape[1]):
            for factor in FACTORS:
                found, moved = _along(trial, found, column, factor, n_landmarks)
                if moved:
                    break
        if found.score == before:
            break
    return whole.best(found.kernel_z, n_landmarks)


def _along(
    trial: Trial, found: KernelChoice, column: int, factor: float, n_landmarks: int
) -> tuple[KernelChoice, bool]:
    """One column's bandwidth times a factor, again and again until it no longer helps; and whether it ever did."""
    moved = False
    for _ in range(LONGEST):
        bandwidth = np.array(found.kernel_z.bandwidth)
        bandwidth[column] *= factor
        other = trial.best(Gaussian(bandwidth), n_landmarks)
        if other.score <= found.score:
            break
        found, moved = other, True
    return found, moved


def log_with_background(values: np.ndarray, rows: np.ndarray, points: np.ndarray, kernel: Kernel) -> np.ndarray:
    """The logarithms of densities of rows to which one row in n + 1 adds a broad density of the kernel's space."""
    space, logs = kernel.space, np.log(np.maximum(values, TINY))
    if space is None:
        return logs
    center, spread = np.median(points, axis=0), quartile_spread(points)
    spread = np.where(spread > 0, spread, np.where(points.std(axis=0) > 0, points.std(axis=0), 1.0))
    nodes = np.unique(points, axis=0) if space.finite else points
    place = Quadrature(nodes, np.empty(0), np.empty(0), center, spread, space=space)
    share = 1 / (len(points) + 1)
    return np.logaddexp(logs + np.log1p(-share), np.log(share) + place.log_background(rows))


def held_out_shares(psi: np.ndarray, ahead: np.ndarray, weights: np.ndarray, penalties: Any) -> Any:
    """For every penalty the positive weights of fitted rows at rows held out, which sum to one."""
    shares = weights / weights.sum()
    values, vectors = np.linalg.eigh(psi.T @ (psi * shares[:, None]))
    left, right = ahead @ vectors, (psi @ vectors).T * shares
    for penalty in penalties:
        scale = np.maximum(values, 0.0) + max(penalty, 1e-12)
        yield as_shares(np.maximum((left / scale) @ right, 0.0), axis=1)


def _candidates(kernel: Kernel | None, rows: np.ndarray, scales: tuple[float, ...]) -> list[Kernel]:
    """The kernel that was named, or Gaussians of several widths."""
    if kernel is not None:
        return [kernel.adapt(rows)]
    if not np.ptp(rows, axis=0).any():
        return [Gaussian(1.0)]
    middle = np.asarray(middle_gaussian(rows).bandwidth)
    return [Gaussian(middle * scale) for scale in scales]
