"""From a first guess of the classes to a better one, with no shape assumed.

A polish takes rows and guesses of their posteriors, and gives a way to the posteriors of any row.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.parallel import Parallel, delayed

from latentviews._arrays import to_numpy
from latentviews._parameters import Bandwidth, Constraint, Count, Flag, Nonnegative, Positive, Several, check_parameters
from latentviews._progress import Report
from latentviews.core import streams
from latentviews.core.features.bins import grid_and_kernel
from latentviews.core.kernels.base import Kernel
from latentviews.core.kernels.defaults import kernel_on
from latentviews.core.streams import row_weights
from latentviews.core.tables import Columns
from latentviews.core.views import stack_block
from latentviews.mixtures.cells import (
    Basis,
    GridBasis,
    SieveView,
    SubspaceBasis,
    basis_rule,
    values_basis,
    view_cells,
    without_negligible,
)
from latentviews.mixtures.sieve import (
    Cells,
    EMFit,
    SieveParameters,
    accelerated_em,
    em_step,
    em_sums,
    em_update,
    initial_parameters,
    posterior,
    smoothing_step,
)

SHORT = 60  # EM steps to compare starts and widths by
MARGIN = 0.05  # starts so much worse a row, after those steps, are given up
SAME = 1e-3  # starts so near a row have found the same classes
Halves = tuple[np.ndarray, np.ndarray]


class FitRows(Protocol):
    """The rows that a polish is fitted to, and the steps of EM on them."""

    def by_block(self) -> dict[int, tuple[np.ndarray, Kernel]]:
        """The rows of every block's views, one under the other and none missing, and their kernel."""

    def views(self, shared: dict[int, Basis]) -> tuple[SieveView, ...]:
        """A sieve for every view from the basis of every block."""

    def cells(self, views: Sequence[SieveView]) -> list[Cells]:
        """The rows in the cells of every view."""

    def some(self, rows: np.ndarray) -> Self:
        """The same with some of the rows."""

    def draw(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """Numbers of some rows to try things on."""

    def halves(self) -> Halves:
        """Numbers of the rows in two halves, one to be judged by a fit to the other."""

    def initial(self, cells: Sequence[Cells], posteriors: np.ndarray) -> SieveParameters:
        """Parameters from a guess of the posteriors."""

    def step(self, cells: Sequence[Cells], parameters: SieveParameters) -> tuple[SieveParameters, float]:
        """One step of exact EM, and the mean log-likelihood before it."""

    def score(self, cells: Sequence[Cells], parameters: SieveParameters) -> float:
        """The mean log-likelihood of the rows."""


def alternating(n_rows: int) -> Halves:
    """Row numbers in two halves that take turns."""
    rows = np.arange(n_rows)
    return rows[::2], rows[1::2]


class MixtureRows(NamedTuple):
    """Rows that are independent of each other."""

    table: np.ndarray  # NaN where a value is missing
    columns: Columns  # of every view
    blocks: Sequence[int]  # views with the same number share their densities
    kernels: Sequence[Kernel]  # of every view; their space says what its densities are like
    weights: np.ndarray | None = None
    allowed: np.ndarray | None = None  # (n, k), zero for classes that a row is known not to be in
    directions: Mapping[int, np.ndarray] = MappingProxyType({})  # (d, q), of blocks that are seen in a subspace

    def by_block(self) -> dict[int, tuple[np.ndarray, Kernel]]:
        """The rows of every block's views, one under the other and none missing, and their kernel."""
        rows: dict[int, tuple[np.ndarray, Kernel]] = {}
        for block in sorted(set(self.blocks)):
            x = stack_block(self.table, self.columns, self.blocks, block)
            x = x[~np.isnan(x).any(axis=1)]
            inside = x @ self.directions[block] if block in self.directions else x
            rows[block] = inside, self.kernels[list(self.blocks).index(block)]
        return rows

    def views(self, shared: dict[int, Basis]) -> tuple[SieveView, ...]:
        """A sieve for every view from the basis of every block."""
        seen = {b: SubspaceBasis(self.directions[b], shared[b]) if b in self.directions else shared[b] for b in shared}
        return tuple(SieveView(self.columns[t], block, seen[block]) for t, block in enumerate(self.blocks))

    def some(self, rows: np.ndarray) -> "MixtureRows":
        """The same with some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        allowed = None if self.allowed is None else self.allowed[rows]
        return self._replace(table=self.table[rows], weights=weights, allowed=allowed)

    def cells(self, views: Sequence[SieveView]) -> list[Cells]:
        """The rows in the cells of every view."""
        return view_cells(views, self.table)

    def draw(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """Numbers of some rows to try things on."""
        return rng.permutation(len(self.table))[:size]

    def halves(self) -> Halves:
        """Numbers of the rows in two halves, one to be judged by a fit to the other."""
        return alternating(len(self.table))

    def initial(self, cells: Sequence[Cells], posteriors: np.ndarray) -> SieveParameters:
        """Parameters from a guess of the posteriors."""
        return initial_parameters(cells, posteriors, self.weights)

    def step(self, cells: Sequence[Cells], parameters: SieveParameters) -> tuple[SieveParameters, float]:
        """One step of exact EM, and the mean log-likelihood before it."""
        return em_step(cells, parameters, self.weights, self.allowed)

    def score(self, cells: Sequence[Cells], parameters: SieveParameters) -> float:
        """The mean log-likelihood of the rows."""
        return float(np.average(posterior(cells, parameters)[2], weights=self.weights))


class Polished(NamedTuple):
    """A fitted sieve: enough to give the posteriors of any row."""

    views: tuple[SieveView, ...]
    fit: EMFit
    factor: float  # the width that held-out rows preferred, in rules of thumb
    start: int  # the start that reached the highest likelihood
    objectives: np.ndarray  # what every start reached
    exact: bool = True  # whether its steps are those of exact EM

    @property
    def step(self) -> Callable[..., tuple[SieveParameters, float]]:
        """The step that was repeated: exact EM, or nonparametric EM."""
        return em_step if self.exact else smoothing_step

    def posteriors(self, table: np.ndarray, allowed: np.ndarray | None = None) -> np.ndarray:
        """P(h | row), (n, k)."""
        return posterior(self.cells(table), self.fit.parameters, allowed)[0]

    def take(self, order: np.ndarray) -> "Polished":
        """The same with the classes in another order."""
        return self._replace(fit=self.fit._replace(parameters=self.fit.parameters.take(order)))

    def cells(self, table: np.ndarray) -> list[Cells]:
        """The cells of every view of some rows."""
        return view_cells(self.views, table)

    def step_over(self, data: Any, weights: np.ndarray | None) -> "Polished":
        """One more step of exact EM, over all rows of ``data``; a fit by other steps stays as it is.

        ``weights`` are those of rows, or of rows in classes, (n, k): zero for a class that a row is known not to be in.
        """
        if not self.exact:
            return self
        parameters = self.fit.parameters

        def row_sum(batch: Any, weight: Any) -> tuple[np.ndarray, ...]:
            return em_sums(self.cells(to_numpy(batch)), parameters, *row_weights(weight))

        updated, objective = em_update(parameters, streams.total(data, row_sum, weights).sums)
        return self._replace(fit=self.fit._replace(parameters=updated, objective=objective))


class Sieve(BaseEstimator):
    """Exact EM on a sieve of narrow kernels, from the best of several starts; the default polish.

    Parameters
    ----------
    factors : tuple of float, default=(1.5, 2.0, 2.5)
        Widths to choose from by held-out likelihood, in units of the rule of thumb for each view ("isj" for a column).
        Several real columns have none: their sieve is up to 50 Gaussians, each shaped like the rows around it.
    max_iter : int, default=1000
        The most EM steps; none is one posterior-weighted re-estimation from the best start.
    tol : float, default=1e-3
        EM stops when a hundred plain steps would gain less log-likelihood a row.
    trial_rows : int, default=4000
        Rows on which starts and widths are compared.
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "factors": Several(Positive(), "at least one positive number"),
        "max_iter": Count(0),
        "tol": Nonnegative(),
        "trial_rows": Count(2),
    }

    def __init__(
        self,
        factors: Sequence[float] = (1.5, 2.0, 2.5),
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
        rows: FitRows,
        starts: Sequence[np.ndarray],
        rng: np.random.Generator,
        n_jobs: int | None = None,
        report: Report = lambda task, n_iter, objective: False,
    ) -> Polished:
        """Fit the sieve to rows from guesses of their posteriors."""
        check_parameters(self)
        seed, rank = int(rng.integers(2**31)), starts[0].shape[1]
        rules = {block: basis_rule(x, kernel, rank, seed) for block, (x, kernel) in rows.by_block().items()}

        def views(factor: float) -> tuple[SieveView, ...]:
            return rows.views({block: rule.basis(factor) for block, rule in rules.items()})

        drawn = rows.draw(self.trial_rows, rng)
        trial, guesses = rows.some(drawn), [start[drawn] for start in starts]
        middle = views(sorted(self.factors)[len(self.factors) // 2])
        tried = self._try(trial, middle, guesses, SHORT, n_jobs)
        wide = any(rule.has_width for rule in rules.values())
        factor = self._factor(trial, views, guesses[_best(tried)]) if wide else 1.0
        chosen = views(factor)
        objectives = np.array([fit.objective for fit in tried])
        rivals = _rivals(objectives)
        tried = self._try(trial, chosen, [guesses[i] for i in rivals], 4 * SHORT, n_jobs)
        cells = rows.cells(chosen)
        fit = accelerated_em(
            lambda parameters: rows.step(cells, parameters),
            tried[_best(tried)].parameters,
            self.max_iter,
            self.tol,
            lambda n_iter, objective: report("polish", n_iter, objective),
        )
        return Polished(chosen, fit, factor, rivals[_best(tried)], objectives)

    def _try(
        self,
        rows: FitRows,
        views: Sequence[SieveView],
        starts: Sequence[np.ndarray],
        steps: int,
        n_jobs: int | None,
    ) -> list[EMFit]:
        """A few steps from every start."""
        return Parallel(n_jobs, prefer="threads")(delayed(self._short)(rows, views, start, steps) for start in starts)

    def _short(self, rows: FitRows, views: Sequence[SieveView], start: np.ndarray, steps: int) -> EMFit:
        cells = rows.cells(views)
        return accelerated_em(
            lambda parameters: rows.step(cells, parameters),
            rows.initial(cells, start),
            min(steps, self.max_iter),
            3 * self.tol,
        )

    def _factor(self, rows: FitRows, views: Callable[[float], tuple[SieveView, ...]], start: np.ndarray) -> float:
        """The width whose fit to half of the rows gives the other half the highest likelihood, and conversely."""
        if len(self.factors) == 1:
            return self.factors[0]
        halves = rows.halves()

        def held_out(factor: float) -> float:
            sieve, total = views(factor), 0.0
            for fitted, held in (halves, halves[::-1]):
                parameters = self._short(rows.some(fitted), sieve, start[fitted], SHORT).parameters
                rest = rows.some(held)
                total += rest.score(rest.cells(sieve), parameters)
            return total

        return max(self.factors, key=held_out)


class SmoothedEM(BaseEstimator):
    """Nonparametric EM: weighted kernel density estimates in place of an M-step.

    Its smoothing accumulates from step to step, so it is more biased than `Sieve`; it is here for comparison, and for
    those who want its fixed bandwidth. Views are single real columns or codes.

    Parameters
    ----------
    bandwidth : float or rule, default="isj"
    nonlinear : bool, default=True
        Smooth the log-densities in the E-step, which makes the steps an ascent (npMSL, Levine, Hunter & Chauveau 2011);
        False is npEM (Benaglia, Chauveau & Hunter 2009).
    max_iter : int, default=1000
    tol : float, default=1e-3
        Stop when a hundred steps would gain less log-likelihood a row.
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "bandwidth": Bandwidth(),
        "nonlinear": Flag(),
        "max_iter": Count(),
        "tol": Nonnegative(),
    }

    def __init__(self, bandwidth: Any = "isj", nonlinear: bool = True, max_iter: int = 1000, tol: float = 1e-3):
        self.bandwidth = bandwidth
        self.nonlinear = nonlinear
        self.max_iter = max_iter
        self.tol = tol

    def polish(
        self,
        rows: MixtureRows,
        starts: Sequence[np.ndarray],
        rng: np.random.Generator,
        n_jobs: int | None = None,
        report: Report = lambda task, n_iter, objective: False,
    ) -> Polished:
        """Run from every guess and keep the one with the highest objective."""
        check_parameters(self)
        shared = {block: self._basis(x, kernel) for block, (x, kernel) in rows.by_block().items()}
        views = rows.views(shared)
        cells = rows.cells(views)

        def run(start: np.ndarray) -> EMFit:
            step = partial(smoothing_step, cells, weights=rows.weights, allowed=rows.allowed)
            return self._run(step, shares(start), report)

        def shares(start: np.ndarray) -> SieveParameters:
            start = start if rows.weights is None else start * rows.weights[:, None]
            sums = [np.sum([view.shares(start) for view in cells if view.block == b], axis=0) for b in shared]
            return SieveParameters(start.sum(axis=0) / start.sum(), tuple(part / part.sum(axis=0) for part in sums))

        fits = Parallel(n_jobs, prefer="threads")(delayed(run)(start) for start in starts)
        objectives = np.array([fit.objective for fit in fits])
        best = int(objectives.argmax())
        return Polished(views, fits[best], 1.0, best, objectives, exact=False)

    def _basis(self, x: np.ndarray, kernel: Kernel) -> Basis:
        """Atoms on every cell, at the bandwidth of the density estimates."""
        space = kernel.space
        if space is not None and space.finite:
            return values_basis(x)
        if space is None or not space.ordered or x.shape[1] != 1:
            raise ValueError(
                f"SmoothedEM takes views of one real column or of codes; got a {space and space.name} view of "
                f"{x.shape[1]} column(s). Sieve takes any view."
            )
        points, narrow = grid_and_kernel(x[:, 0], kernel_on(space, self.bandwidth).adapt(x), 1024)
        grid = points[:, None]
        atoms = without_negligible(narrow.gram(grid, grid))
        if not self.nonlinear:
            return GridBasis(grid, narrow, atoms)
        # the M-step is the maximum only if what smooths logs is the transpose of what smooths shares, of mass one
        spread = atoms @ sparse.diags_array(1 / atoms.sum(axis=0))
        return GridBasis(grid, narrow, spread / (grid[1, 0] - grid[0, 0]), spread.T.tocsr())

    def _run(
        self, step: Callable[[SieveParameters], tuple[SieveParameters, float]], current: SieveParameters, report: Report
    ) -> EMFit:
        before = -np.inf
        for n_iter in range(1, self.max_iter + 1):
            updated, objective = step(current)
            stop = report("polish", n_iter, objective)
            if stop or 100 * abs(objective - before) < self.tol:
                return EMFit(current, objective, n_iter, not stop)
            current, before = updated, objective
        return EMFit(current, before, self.max_iter, False)


def _rivals(objectives: np.ndarray) -> list[int]:
    """The best start, and those near it that reached something else."""
    gaps = objectives.max() - objectives
    return [i for i in np.argsort(gaps, kind="stable").tolist() if gaps[i] == 0 or SAME < gaps[i] < MARGIN]


def _best(fits: Sequence[EMFit]) -> int:
    return int(np.argmax([fit.objective for fit in fits]))
