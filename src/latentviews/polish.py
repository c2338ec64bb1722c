"""From a first guess of the classes to a better one, with no shape assumed.

A polish takes rows and guesses of their posteriors, and gives a way to the posteriors of any row.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.ndimage import convolve1d
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, clone

from latentviews import streams
from latentviews.bandwidths import resolution
from latentviews.domains import Domain
from latentviews.embeddings import Components, components_in
from latentviews.features import BinnedFeatures, GridFeatures, LandmarkFeatures, linear_bins, uniform_grid
from latentviews.kernels import Delta, Gaussian, Kernel, VonMises
from latentviews.sieve import (
    Cells,
    EMFit,
    accelerated_em,
    em_step,
    em_sums,
    em_update,
    initial_mixing,
    posterior,
)
from latentviews.views import Columns, Views

TINY = np.finfo(float).tiny
MAX_ATOMS = 400  # narrow kernels for a column
MAX_LANDMARKS = 200  # and for a view of several
LANDMARK_ROWS = 4000
NEGLIGIBLE = 1e-10  # values of a narrow kernel below this share of its height count as zero


def smooth_em_step(
    rows: Sequence[Any],
    profiles: Sequence[np.ndarray],
    posteriors: np.ndarray,
    nonlinear: bool,
    blocks: Sequence[int] | None = None,
) -> tuple[np.ndarray, float, list[np.ndarray]]:
    """One step of nonparametric EM on binned columns: new posteriors, the objective, and the densities on the grids.

    ``rows[t]`` (n, C) are shares in grid points and ``profiles[t]`` (2C - 1, k) every class's kernel at the grid's
    offsets, of mass one on the grid; views with the same number in ``blocks`` share grid, kernels and density.
    Densities are weighted KDEs (Benaglia, Chauveau & Hunter 2009), the margin's for a class without rows; with
    ``nonlinear`` their logarithms are smoothed once more in the E-step, which makes the objective monotone (npMSL:
    Levine, Hunter & Chauveau 2011).
    """
    blocks = range(len(rows)) if blocks is None else blocks
    mass = posteriors.sum(axis=0)
    tables: dict[int, np.ndarray] = {}
    joint = np.tile(np.log(np.maximum(mass / len(posteriors), TINY)), (len(posteriors), 1))
    for shares, profile, block in zip(rows, profiles, blocks, strict=True):
        if block not in tables:
            counts = sum(part.T @ posteriors for part, b in zip(rows, blocks, strict=True) if b == block)
            counts = np.where(mass > 0, counts, counts.sum(axis=1, keepdims=True))
            table = np.maximum(convolve(counts / counts.sum(axis=0), profile), TINY)
            tables[block] = table * (profile.sum(axis=0) / table.sum(axis=0)) if nonlinear else table
        if nonlinear:
            joint += shares @ convolve(np.log(tables[block]), profile / profile.sum(axis=0))
        else:
            joint += np.log(np.maximum(shares @ tables[block], TINY))
    total = logsumexp(joint, axis=1)
    return np.exp(joint - total[:, None]), float(total.mean()), [tables[block] for block in blocks]


def convolve(columns: np.ndarray, profile: np.ndarray) -> np.ndarray:
    """Columns (C, k) convolved with their profiles (2C - 1, k), on the same grid.

    Directly, not by FFT: its rounding, 1e-17 of the peak, is more than a tail, and tails decide where views disagree.
    """
    size, result = len(columns), np.empty(columns.shape)
    for h, (column, values) in enumerate(zip(columns.T, profile.T, strict=True)):
        reach = int(np.count_nonzero(values[size:] > 0))
        result[:, h] = convolve1d(column, values[size - 1 - reach : size + reach], mode="constant")
    return result


@dataclass(frozen=True, eq=False)
class SieveView:
    """How a view of the table becomes cells: a grid for a real column, values, or landmarks for anything else."""

    columns: list[int]
    block: int
    points: np.ndarray  # grid points, values or landmarks, (C, d)
    kernel: Kernel  # the narrow kernel
    atoms: Any  # (C, B), sparse, or None

    def cells(self, table: np.ndarray) -> Cells:
        """The cells of the rows of a table, NaN where a view is missing."""
        x = table[:, self.columns]
        present = ~np.isnan(x).any(axis=1)
        if not present.all():
            x = np.where(present[:, None], x, self.points[:1])
        rows = self.kernel.gram(x, self.points) if self.atoms is None else linear_bins(x[:, 0], self.points[:, 0])
        return Cells(rows, self.atoms, None if present.all() else present, self.block)


def sieve_view(
    table: np.ndarray, columns: list[int], block: int, kernel: Kernel, factor: float, rng: np.random.Generator
) -> SieveView:
    """A sieve for one view, its kernels ``factor`` times as wide as a rule of thumb would have them."""
    x = table[:, columns]
    x = x[~np.isnan(x).any(axis=1)]
    if kernel.domain == "discrete":
        return SieveView(columns, block, np.unique(x, axis=0), Delta(), None)
    rule: Kernel = VonMises("silverman") if kernel.domain == "circle" else Gaussian("isj")
    narrow = rule.adapt(x)
    narrow.set_params(bandwidth=factor * narrow.bandwidth)
    if kernel.domain == "real" and len(columns) == 1:
        width = float(narrow.bandwidth)
        grid = uniform_grid(x[:, 0], width, 1024)
        size = int(np.clip((grid[-1] - grid[0]) / (0.75 * width), 8, MAX_ATOMS))
        centres = np.linspace(grid[0], grid[-1], size)
        atoms = narrow.gram(grid[:, None], centres[:, None])
        return SieveView(
            columns, block, grid[:, None], narrow, sparse.csr_array(atoms * (atoms > NEGLIGIBLE * atoms.max()))
        )
    seed = int(rng.integers(2**31))
    landmarks = LandmarkFeatures(narrow, MAX_LANDMARKS, random_state=seed).fit(x[:LANDMARK_ROWS]).landmarks_
    return SieveView(columns, block, landmarks, narrow, None)


class Polished(NamedTuple):
    """A sieve fitted to a pilot: enough to give the posteriors of any row."""

    views: tuple[SieveView, ...]
    fit: EMFit
    factor: float  # the width that held-out rows preferred, in rules of thumb
    start: int  # the start that reached the highest likelihood
    objectives: np.ndarray  # what every start reached

    def posteriors(self, table: np.ndarray, allowed: np.ndarray | None = None) -> np.ndarray:
        """P(h | row), (n, k)."""
        return posterior(self.cells(table), self.fit.mixing, allowed)[0]

    def cells(self, table: np.ndarray) -> list[Cells]:
        """The cells of every view of some rows."""
        return [view.cells(table) for view in self.views]

    def step_over(self, data: Any, weights: np.ndarray | None) -> "Polished":
        """One more step of EM, over all rows of ``data``."""
        mixing = self.fit.mixing

        def row_sum(batch: Any, weight: Any) -> tuple[np.ndarray, ...]:
            return em_sums(self.cells(np.asarray(batch)), mixing, weight)

        updated, objective = em_update(mixing, streams.total(data, row_sum, weights).sums)
        return self._replace(fit=self.fit._replace(mixing=updated, objective=objective))


class Sieve(BaseEstimator):
    """Exact EM on a sieve of narrow kernels, from the best of several starts; the default polish.

    Parameters
    ----------
    factors : tuple of float, default=(1.0, 2.0, 4.0)
        Widths to choose from by held-out likelihood, in units of the rule of thumb for each view ("isj" for a column).
    max_iter : int, default=1000
        The most EM steps.
    tol : float, default=1e-3
        EM stops when a hundred plain steps would gain less log-likelihood a row.
    trial_rows : int, default=4000
        Rows on which starts and widths are compared.
    """

    def __init__(
        self,
        factors: Sequence[float] = (1.0, 2.0, 4.0),
        max_iter: int = 1000,
        tol: float = 1e-3,
        trial_rows: int = 4000,
    ):
        self.factors = factors
        self.max_iter = max_iter
        self.tol = tol
        self.trial_rows = trial_rows

    def polish(
        self,
        table: np.ndarray,
        columns: Columns,
        blocks: Sequence[int],
        kernels: Sequence[Kernel],
        starts: Sequence[np.ndarray],
        rng: np.random.Generator,
        *,
        weights: np.ndarray | None = None,
        allowed: np.ndarray | None = None,
        report: Callable[[int, float], None] = lambda n_iter, objective: None,
    ) -> Polished:
        """Fit the sieve to the rows of ``table`` from guesses of their posteriors."""

        def views(factor: float) -> tuple[SieveView, ...]:
            return tuple(self._views(table, columns, blocks, kernels, factor, rng))

        trial = rng.permutation(len(table))[: self.trial_rows]
        problem = _Problem(table, weights, allowed)
        middle = views(sorted(self.factors)[len(self.factors) // 2])
        objectives = np.array([self._short(problem, middle, start, trial).objective for start in starts])
        best = int(objectives.argmax())
        factor = self._factor(problem, views, starts[best], trial)
        chosen = views(factor)
        cells = problem.cells(chosen)
        start = initial_mixing(cells, starts[best], weights)
        fit = accelerated_em(
            lambda mixing: em_step(cells, mixing, weights, allowed), start, self.max_iter, self.tol, report
        )
        return Polished(chosen, fit, factor, best, objectives)

    def _views(
        self,
        table: np.ndarray,
        columns: Columns,
        blocks: Sequence[int],
        kernels: Sequence[Kernel],
        factor: float,
        rng: np.random.Generator,
    ) -> list[SieveView]:
        """One sieve a view; views of a block share that of their stacked columns."""
        shared: dict[int, SieveView] = {}
        for block in sorted(set(blocks)):
            members = [t for t, b in enumerate(blocks) if b == block]
            stacked = np.concatenate([table[:, columns[t]] for t in members])
            here = list(range(stacked.shape[1]))
            shared[block] = sieve_view(stacked, here, block, kernels[members[0]], factor, rng)
        return [replace(shared[block], columns=columns[t]) for t, block in enumerate(blocks)]

    def _short(self, problem: "_Problem", views: Sequence[SieveView], start: np.ndarray, rows: np.ndarray) -> EMFit:
        """A few steps on some rows, to compare."""
        cells, weights, allowed = problem.some(views, rows)
        first = initial_mixing(cells, start[rows], weights)
        return accelerated_em(lambda mixing: em_step(cells, mixing, weights, allowed), first, 60, 10 * self.tol)

    def _factor(
        self,
        problem: "_Problem",
        views: Callable[[float], tuple[SieveView, ...]],
        start: np.ndarray,
        trial: np.ndarray,
    ) -> float:
        """The width whose fit to half of the trial rows gives the other half the highest likelihood, and conversely."""
        if len(self.factors) == 1:
            return self.factors[0]
        halves = trial[::2], trial[1::2]

        def held_out(factor: float) -> float:
            sieve, total = views(factor), 0.0
            for fitted, held in (halves, halves[::-1]):
                mixing = self._short(problem, sieve, start, fitted).mixing
                cells, weights, _ = problem.some(sieve, held)
                total += float(np.average(posterior(cells, mixing)[2], weights=weights))
            return total

        return max(self.factors, key=held_out)


class _Problem(NamedTuple):
    """Rows, their weights, and the classes each may be in."""

    table: np.ndarray
    weights: np.ndarray | None
    allowed: np.ndarray | None

    def cells(self, views: Sequence[SieveView]) -> list[Cells]:
        return [view.cells(self.table) for view in views]

    def some(
        self, views: Sequence[SieveView], rows: np.ndarray
    ) -> tuple[list[Cells], np.ndarray | None, np.ndarray | None]:
        part = self.table[rows]
        weights = None if self.weights is None else self.weights[rows]
        return [view.cells(part) for view in views], weights, None if self.allowed is None else self.allowed[rows]


def within_class_bandwidth(kernel: Kernel, x: np.ndarray, posteriors: np.ndarray) -> Any:
    """Silverman's rule with the spread inside classes, a bandwidth a column; one for angles."""
    masses = np.maximum(posteriors.sum(axis=0), TINY)
    n, dim = masses.sum() / len(masses), x.shape[1]
    rate = (4 / (n * (dim + 2))) ** (1 / (dim + 4))
    if kernel.domain == "circle":
        resultants = np.abs(posteriors.T @ np.exp(1j * x)) / masses[:, None]
        return rate * float(np.sqrt(-2 * np.log(resultants.clip(0.05, 1 - 1e-9))).mean())
    means = posteriors.T @ x / masses[:, None]
    squares = sum(r @ (x - m) ** 2 for r, m in zip(posteriors.T, means, strict=True))
    return rate * np.sqrt(np.asarray(squares) / masses.sum())


def density_maps(
    table: np.ndarray, views: Views, blocks: Sequence[int], posteriors: np.ndarray, bandwidth: Any
) -> Views:
    """The maps in which densities are gathered: grids for real columns, kernels as narrow as the classes for others.

    ``bandwidth`` is a number, a rule, "auto" for what the classes suggest, or None for the maps as they are.
    """
    if bandwidth is None:
        return views
    maps: dict[int, Any] = {}
    for block in sorted(set(blocks)):
        members = [t for t, b in enumerate(blocks) if b == block]
        x = np.concatenate([table[:, views.columns[t]] for t in members])
        present = ~np.isnan(x).any(axis=1)
        stacked = np.concatenate([posteriors] * len(members))[present]
        maps[block] = _density_map(views.features[members[0]], x[present], stacked, bandwidth)
    return Views(views.columns, tuple(maps[block] for block in blocks))


def _density_map(phi: Any, x: np.ndarray, posteriors: np.ndarray, bandwidth: Any) -> Any:
    kernel = getattr(phi, "kernel_", None)
    if kernel is None or "bandwidth" not in kernel.get_params():
        return phi
    if isinstance(phi, BinnedFeatures):
        adaptive = isinstance(bandwidth, str) and bandwidth == "auto"
        kernel = clone(kernel).set_params(bandwidth="isj" if adaptive else bandwidth).adapt(x)
        width = float(kernel.get_params()["bandwidth"])
        return GridFeatures(uniform_grid(x[:, 0], width), kernel, adaptive, resolution(x[:, 0]))
    if isinstance(bandwidth, str) and (bandwidth == "auto" or (bandwidth == "isj" and kernel.domain == "circle")):
        bandwidth = within_class_bandwidth(kernel, x, posteriors)
    kernel = clone(kernel).set_params(bandwidth=bandwidth)
    return LandmarkFeatures(kernel, MAX_LANDMARKS, random_state=0).fit(x[:LANDMARK_ROWS])


def reestimate(
    data: Any,
    posteriors: Callable[[np.ndarray], np.ndarray],
    views: Views,
    blocks: Sequence[int],
    domains: Sequence[Domain | None],
    weights: np.ndarray | None = None,
) -> tuple[np.ndarray, list[Components]]:
    """Class weights and components as averages over all rows, weighted by their posteriors."""

    def row_sum(batch: Any, weight: Any) -> tuple[np.ndarray, ...]:
        table = np.asarray(batch)
        shares = posteriors(table) if weight is None else posteriors(table) * weight[:, None]
        sums = [gather(table[:, columns], phi, shares) for columns, phi in zip(views.columns, raws, strict=True)]
        return (shares.sum(axis=0), (shares**2).sum(axis=0), *(part for pair in sums for part in pair))

    raws = [phi.raw if hasattr(phi, "tail_") else phi.transform for phi in views.features]
    share, squares, *sums = streams.total(data, row_sum, weights).sums
    counts = share**2 / np.maximum(squares, TINY)  # Kish's effective number of rows
    components: dict[int, Components] = {}
    for block in sorted(set(blocks)):
        members = [t for t, b in enumerate(blocks) if b == block]
        mass, raw = (np.sum([sums[2 * t + i] for t in members], axis=0) for i in range(2))
        vectors = views.from_raw(members[0], raw) / np.maximum(mass, TINY)
        components[block] = components_in(
            views.features[members[0]], vectors, domains[members[0]], counts * len(members)
        )
    return share / share.sum(), [components[block] for block in blocks]


def gather(x: np.ndarray, raw: Callable[[np.ndarray], Any], shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The classes' mass over the rows that have a view, and their sums of raw vectors."""
    present = ~np.isnan(x).any(axis=1)
    if not present.all():
        x, shares = x[present], shares[present]
    if not len(x):
        raise ValueError("A batch has no row with this view; put more rows into a batch.")
    sums = raw(x).T @ shares
    return shares.sum(axis=0), np.asarray(sums)
