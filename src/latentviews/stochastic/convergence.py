"""Eigenfunctions of rows in memory, written in random features, and how far functions are from exact ones."""

from typing import Any, NamedTuple

import numpy as np
from scipy import linalg
from sklearn.exceptions import ConvergenceWarning

from latentviews._arrays import in_library_of, take_rows, to_numpy
from latentviews._sentences import warn_user
from latentviews.core import streams
from latentviews.core.features.landmarks import LandmarkFeatures
from latentviews.core.kernels.base import UnitHeight
from latentviews.stochastic.expansions import Expansion, RandomBlocks, leading

LANDMARKS = 512
PILOT = 10_000  # rows that landmarks are picked from, and coefficients are found on
RIDGE = 1e-5  # per row, of least squares in random features
LIMIT = 0.1  # the sine of an angle up to which functions are called converged
TOL = 1e-7  # landmarks that add less are rounding


class Written(NamedTuple):
    """Eigenfunctions in blocks of random features, all eigenvalues, and the sine of the angle to landmarks'."""

    functions: Expansion
    values: np.ndarray
    sine: float


def landmark_start(blocks: RandomBlocks, count: int, x: Any, rank: int, rng: np.random.Generator) -> Written:
    """Kernel PCA of all rows through landmarks (not centred), its functions written in ``count`` blocks.

    Coefficients are those of least squares on a pilot. The angle is that of functions found on half of the pilot, on
    the other half.
    """
    pilot = take_rows(x, rng.permutation(x.shape[0])[:PILOT])
    maps = LandmarkFeatures(UnitHeight(blocks.kernel), LANDMARKS, tol=TOL, random_state=int(rng.integers(2**31)))
    maps.fit(to_numpy(pilot))

    def products(batch: Any, _: Any) -> tuple[Any, ...]:
        phi = maps.transform(batch)
        return (phi.T @ phi,)

    values, vectors = leading(to_numpy(streams.mean(x, products)[0]), rank)
    features = np.concatenate([to_numpy(blocks(pilot, j)) for j in range(count)], axis=1) / count**0.5
    exact = to_numpy(maps.transform(pilot)) @ vectors
    half = (len(features) + 1) // 2
    first, second = ((part.T @ part, part.T @ wanted) for part, wanted in _halves(features, exact, half))
    on_half = _least_squares(*first, half)
    sine = sine_of(features[half:] @ on_half, exact[half:]) if half < len(features) else 0.0
    found = _least_squares(first[0] + second[0], first[1] + second[1], len(features)) / count**0.5
    parts = tuple(in_library_of(part, x) for part in np.split(found, count))
    return Written(Expansion(blocks, parts), values, sine)


def _halves(features: np.ndarray, exact: np.ndarray, half: int) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(features[:half], exact[:half]), (features[half:], exact[half:])]


def _least_squares(products: np.ndarray, along: np.ndarray, n_rows: int) -> np.ndarray:
    return linalg.solve(products + RIDGE * n_rows * np.eye(len(products)), along, assume_a="pos")


def sine_of(found: np.ndarray, exact: np.ndarray) -> float:
    """The sine of the largest angle between two spans of functions, given by their values at the same rows."""
    if len(found) < found.shape[1]:
        return 0.0
    bases = [np.linalg.qr(part)[0] for part in (found, exact)]
    return float(np.sqrt(max(0.0, 1 - np.linalg.svd(bases[0].T @ bases[1])[1].min() ** 2)))


def warn_of_blocks(sine: float, count: int, size: int) -> None:
    """Say so where random features are too few for the eigenfunctions."""
    if sine > LIMIT:
        warn_user(
            f"The eigenfunctions have not converged: written in {count} blocks of {size} frequencies they are at a "
            f"sine of {sine:.2f} to those of landmarks, on rows set apart. Take more n_frequencies, a wider kernel, "
            "or LandmarkPCA.",
            ConvergenceWarning,
        )


def warn_of_steps(functions: Expansion, kernel: Any, x: Any, n_seen: int) -> None:
    """Say so where eigenfunctions are further from the exact ones of some rows than chance in these rows explains.

    Those of their halves are apart by about twice as much as theirs are from those of a long stream, and where the rows
    are all that were seen chance has no part in it.
    """
    rows, found = to_numpy(x), to_numpy(functions(x))
    rank, half = found.shape[1], len(found) // 2
    if half < rank:
        return
    gram = UnitHeight(kernel).gram(rows, rows)
    sine = sine_of(found, leading(gram, rank)[1])
    parts = (slice(None, half), slice(half, None))
    apart = sine_of(*(gram[:, part] @ leading(gram[part, part], rank)[1] for part in parts))
    if sine > LIMIT + 0.75 * apart * np.sqrt(max(0.0, 1 - len(rows) / n_seen)):
        warn_user(
            f"The steps have not converged: on the last {len(rows)} rows the eigenfunctions are at a sine of "
            f"{sine:.2f} to exact ones, where those of the two halves of these rows are {apart:.2f} apart. Give a "
            "longer stream, more n_frequencies or an array, or take LandmarkPCA.",
            ConvergenceWarning,
        )
