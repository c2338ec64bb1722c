"""From a first guess of the classes to a better one, with no shape assumed.

A polish takes rows and guesses of their posteriors, and gives a way to the posteriors of any row.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.utils.parallel import Parallel, delayed

from latentviews._arrays import to_numpy
from latentviews._parameters import (
    Bandwidth,
    Constraint,
    Count,
    Flag,
    Nonnegative,
    Positive,
    Several,
    check_parameters,
)
from latentviews._progress import Report
from latentviews.core import streams
from latentviews.core.features.bins import grid_and_kernel, linear_bins
from latentviews.core.features.landmarks import few_landmarks
from latentviews.core.kernels.bandwidths import dithered, many_scales
from latentviews.core.kernels.base import Kernel
from latentviews.core.kernels.circle import VonMises
from latentviews.core.kernels.discrete import Delta
from latentviews.core.kernels.real import Gaussian
from latentviews.core.streams import row_weights
from latentviews.core.tables import Columns
from latentviews.core.views import stack_block
from latentviews.densities.codebooks import Codebook, fit_codebook
from latentviews.mixtures.sieve import (
    Cells,
    EMFit,
    Mixing,
    accelerated_em,
    em_step,
    em_sums,
    em_update,
    initial_mixing,
    posterior,
    smoothing_step,
)

MAX_ATOMS = 400  # narrow kernels for a column
CODES, ROWS_A_CODE, CODES_A_CLASS = 50, 6, 3  # Gaussians for several columns: at most; rows a column to each; at least
SHORT = 60  # EM steps to compare starts and widths by
MARGIN = 0.05  # starts so much worse a row, after those steps, are given up
SAME = 1e-3  # starts so near a row have found the same classes
NEGLIGIBLE = 1e-10  # values of a narrow kernel below this share of its height count as zero


@dataclass(frozen=True, eq=False)
class SieveView:
    """How a view of the table becomes cells: a grid for a real column, values, or landmarks for anything else."""

    columns: list[int]
    block: int
    points: np.ndarray  # grid points, values, landmarks or means, (C, d)
    kernel: Kernel | Codebook  # the narrow kernel, or Gaussians each of its own shape
    atoms: Any  # (C, B), sparse, or None
    smoother: Any = None  # (C, C), sparse, for npMSL

    def cells(self, table: np.ndarray) -> Cells:
        """The cells of the rows of a table, NaN where a view is missing."""
        x = table[:, self.columns]
        present = ~np.isnan(x).any(axis=1)
        if not present.all():
            x = np.where(present[:, None], x, self.points[:1])
        if isinstance(self.kernel, Codebook):
            rows, log_units = self.kernel.scaled_densities(x)
            return Cells(rows, None, None if present.all() else present, self.block, None, log_units * present)
        rows = self.kernel.gram(x, self.points) if self.atoms is None else linear_bins(x[:, 0], self.points[:, 0])
        return Cells(rows, self.atoms, None if present.all() else present, self.block, self.smoother)


def rule_of_thumb(x: np.ndarray, kernel: Kernel, rank: int, seed: int) -> Kernel | Codebook:
    """The kernel of a sieve of ``rank`` classes on the rows ``x`` of a view, as wide as a rule would have it.

    Of several real columns, or of one that has many scales, it is a codebook: classes may differ in spread by orders of
    magnitude, such as those of a sensor at rest and in motion, which no single width fits.
    """
    if kernel.domain == "discrete":
        return Delta()
    if kernel.domain == "real" and (x.shape[1] > 1 or many_scales(x[:, 0])):
        size = min(CODES, len(x) // (ROWS_A_CODE * x.shape[1]))
        least = max(min(CODES_A_CLASS * rank, len(x) // 2), 1)  # fewer could not tell the classes apart
        rng = np.random.default_rng(seed)
        return fit_codebook(dithered(x, rng), max(size, least), rng)
    rule: Kernel = VonMises("silverman") if kernel.domain == "circle" else Gaussian("isj")
    return rule.adapt(x)


def sieve_view(x: np.ndarray, block: int, rule: Kernel | Codebook, factor: float, seed: int) -> SieveView:
    """A sieve for one view with the rows ``x``, its kernels ``factor`` times as wide as the rule's."""
    here = list(range(x.shape[1]))
    if isinstance(rule, Codebook):
        return SieveView(here, block, rule.means, rule, None)
    if rule.domain == "discrete":
        return SieveView(here, block, np.unique(x, axis=0), rule, None)
    narrow = clone(rule).set_params(bandwidth=factor * rule.get_params()["bandwidth"])
    if rule.domain == "real" and x.shape[1] == 1:
        grid, narrow = grid_and_kernel(x[:, 0], narrow, 1024)
        width = float(narrow.get_params()["bandwidth"])
        size = int(np.clip((grid[-1] - grid[0]) / (0.75 * width), 8, MAX_ATOMS))
        centres = np.linspace(grid[0], grid[-1], size)
        atoms = narrow.gram(grid[:, None], centres[:, None])
        return SieveView(here, block, grid[:, None], narrow, _without_negligible(atoms))
    return SieveView(here, block, few_landmarks(narrow, x, seed).landmarks_, narrow, None)


def _without_negligible(atoms: np.ndarray) -> sparse.csr_array:
    return sparse.csr_array(atoms * (atoms > NEGLIGIBLE * atoms.max()))


class Pilot(NamedTuple):
    """The rows that a polish is fitted to."""

    table: np.ndarray  # NaN where a value is missing
    columns: Columns  # of every view
    blocks: Sequence[int]  # views with the same number share their densities
    kernels: Sequence[Kernel]  # of every view; their domain says what its densities are like
    weights: np.ndarray | None = None
    allowed: np.ndarray | None = None  # (n, k), zero for classes that a row is known not to be in

    def by_block(self) -> dict[int, tuple[np.ndarray, Kernel]]:
        """The rows of every block's views, one under the other and none missing, and their kernel."""
        rows: dict[int, tuple[np.ndarray, Kernel]] = {}
        for block in sorted(set(self.blocks)):
            x = stack_block(self.table, self.columns, self.blocks, block)
            rows[block] = x[~np.isnan(x).any(axis=1)], self.kernels[list(self.blocks).index(block)]
        return rows

    def views(self, shared: dict[int, SieveView]) -> tuple[SieveView, ...]:
        """A sieve for every view from one for every block."""
        return tuple(replace(shared[block], columns=self.columns[t]) for t, block in enumerate(self.blocks))

    def some(self, rows: np.ndarray) -> "Pilot":
        """The same with some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        allowed = None if self.allowed is None else self.allowed[rows]
        return self._replace(table=self.table[rows], weights=weights, allowed=allowed)

    def cells(self, views: Sequence[SieveView]) -> list[Cells]:
        """The rows in the cells of every view."""
        return [view.cells(self.table) for view in views]

    def draw(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """Numbers of some rows to try things on."""
        return rng.permutation(len(self.table))[:size]

    def halves(self) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the rows in two halves, one to be judged by a fit to the other."""
        rows = np.arange(len(self.table))
        return rows[::2], rows[1::2]

    def initial(self, cells: Sequence[Cells], posteriors: np.ndarray) -> Mixing:
        """Parameters from a guess of the posteriors."""
        return initial_mixing(cells, posteriors, self.weights)

    def step(self, cells: Sequence[Cells], mixing: Mixing) -> tuple[Mixing, float]:
        """One step of exact EM, and the mean log-likelihood before it."""
        return em_step(cells, mixing, self.weights, self.allowed)

    def score(self, cells: Sequence[Cells], mixing: Mixing) -> float:
        """The mean log-likelihood of the rows."""
        return float(np.average(posterior(cells, mixing)[2], weights=self.weights))


class Polished(NamedTuple):
    """A sieve fitted to a pilot: enough to give the posteriors of any row."""

    views: tuple[SieveView, ...]
    fit: EMFit
    factor: float  # the width that held-out rows preferred, in rules of thumb
    start: int  # the start that reached the highest likelihood
    objectives: np.ndarray  # what every start reached
    exact: bool = True  # whether its steps are those of exact EM

    @property
    def step(self) -> Callable[..., tuple[Mixing, float]]:
        """The step that was repeated: exact EM, or nonparametric EM."""
        return em_step if self.exact else smoothing_step

    def posteriors(self, table: np.ndarray, allowed: np.ndarray | None = None) -> np.ndarray:
        """P(h | row), (n, k)."""
        return posterior(self.cells(table), self.fit.mixing, allowed)[0]

    def take(self, order: np.ndarray) -> "Polished":
        """The same with the classes in another order."""
        return self._replace(fit=self.fit._replace(mixing=self.fit.mixing.take(order)))

    def cells(self, table: np.ndarray) -> list[Cells]:
        """The cells of every view of some rows."""
        return [view.cells(table) for view in self.views]

    def step_over(self, data: Any, weights: np.ndarray | None) -> "Polished":
        """One more step of exact EM, over all rows of ``data``; a fit by other steps stays as it is.

        ``weights`` are those of rows, or of rows in classes, (n, k): zero for a class that a row is known not to be in.
        """
        if not self.exact:
            return self
        mixing = self.fit.mixing

        def row_sum(batch: Any, weight: Any) -> tuple[np.ndarray, ...]:
            return em_sums(self.cells(to_numpy(batch)), mixing, *row_weights(weight))

        updated, objective = em_update(mixing, streams.total(data, row_sum, weights).sums)
        return self._replace(fit=self.fit._replace(mixing=updated, objective=objective))


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
        pilot: Pilot,
        starts: Sequence[np.ndarray],
        rng: np.random.Generator,
        n_jobs: int | None = None,
        report: Report = lambda task, n_iter, objective: False,
    ) -> Polished:
        """Fit the sieve to a pilot from guesses of its posteriors."""
        check_parameters(self)
        seed = int(rng.integers(2**31))
        rank = starts[0].shape[1]
        rules = {block: (x, rule_of_thumb(x, kernel, rank, seed)) for block, (x, kernel) in pilot.by_block().items()}

        def views(factor: float) -> tuple[SieveView, ...]:
            return pilot.views({block: sieve_view(x, block, rule, factor, seed) for block, (x, rule) in rules.items()})

        rows = pilot.draw(self.trial_rows, rng)
        trial, guesses = pilot.some(rows), [start[rows] for start in starts]
        middle = views(sorted(self.factors)[len(self.factors) // 2])
        tried = self._try(trial, middle, guesses, SHORT, n_jobs)
        fixed = all(isinstance(rule, Codebook) for _, rule in rules.values())  # no width to choose
        factor = 1.0 if fixed else self._factor(trial, views, guesses[_best(tried)])
        chosen = views(factor)
        objectives = np.array([fit.objective for fit in tried])
        rivals = _rivals(objectives)
        tried = self._try(trial, chosen, [guesses[i] for i in rivals], 4 * SHORT, n_jobs)
        cells = pilot.cells(chosen)
        fit = accelerated_em(
            lambda mixing: pilot.step(cells, mixing),
            tried[_best(tried)].mixing,
            self.max_iter,
            self.tol,
            lambda n_iter, objective: report("polish", n_iter, objective),
        )
        return Polished(chosen, fit, factor, rivals[_best(tried)], objectives)

    def _try(
        self,
        pilot: Pilot,
        views: Sequence[SieveView],
        starts: Sequence[np.ndarray],
        steps: int,
        n_jobs: int | None,
    ) -> list[EMFit]:
        """A few steps from every start."""
        return Parallel(n_jobs, prefer="threads")(delayed(self._short)(pilot, views, start, steps) for start in starts)

    def _short(self, pilot: Pilot, views: Sequence[SieveView], start: np.ndarray, steps: int) -> EMFit:
        cells = pilot.cells(views)
        return accelerated_em(
            lambda mixing: pilot.step(cells, mixing),
            pilot.initial(cells, start),
            min(steps, self.max_iter),
            3 * self.tol,
        )

    def _factor(self, pilot: Pilot, views: Callable[[float], tuple[SieveView, ...]], start: np.ndarray) -> float:
        """The width whose fit to half of the rows gives the other half the highest likelihood, and conversely."""
        if len(self.factors) == 1:
            return self.factors[0]
        halves = pilot.halves()

        def held_out(factor: float) -> float:
            sieve, total = views(factor), 0.0
            for fitted, held in (halves, halves[::-1]):
                mixing = self._short(pilot.some(fitted), sieve, start[fitted], SHORT).mixing
                rest = pilot.some(held)
                total += rest.score(rest.cells(sieve), mixing)
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
        pilot: Pilot,
        starts: Sequence[np.ndarray],
        rng: np.random.Generator,
        n_jobs: int | None = None,
        report: Report = lambda task, n_iter, objective: False,
    ) -> Polished:
        """Run from every guess and keep the one with the highest objective."""
        check_parameters(self)
        shared = {block: self._view(x, block, kernel) for block, (x, kernel) in pilot.by_block().items()}
        views = pilot.views(shared)
        cells = pilot.cells(views)

        def run(start: np.ndarray) -> EMFit:
            step = partial(smoothing_step, cells, weights=pilot.weights, allowed=pilot.allowed)
            return self._run(step, shares(start), report)

        def shares(start: np.ndarray) -> Mixing:
            start = start if pilot.weights is None else start * pilot.weights[:, None]
            sums = [np.sum([view.shares(start) for view in cells if view.block == b], axis=0) for b in shared]
            return Mixing(start.sum(axis=0) / start.sum(), tuple(part / part.sum(axis=0) for part in sums))

        fits = Parallel(n_jobs, prefer="threads")(delayed(run)(start) for start in starts)
        objectives = np.array([fit.objective for fit in fits])
        best = int(objectives.argmax())
        return Polished(views, fits[best], 1.0, best, objectives, exact=False)

    def _view(self, x: np.ndarray, block: int, kernel: Kernel) -> SieveView:
        """Atoms on every cell, at the bandwidth of the density estimates."""
        here = list(range(x.shape[1]))
        if kernel.domain == "discrete":
            return SieveView(here, block, np.unique(x, axis=0), Delta(), None)
        if kernel.domain != "real" or x.shape[1] != 1:
            raise ValueError(
                f"SmoothedEM takes views of one real column or of codes; got a {kernel.domain} view of {x.shape[1]} "
                "column(s). Sieve takes any view."
            )
        points, narrow = grid_and_kernel(x[:, 0], Gaussian(self.bandwidth).adapt(x), 1024)
        grid = points[:, None]
        atoms = _without_negligible(narrow.gram(grid, grid))
        if not self.nonlinear:
            return SieveView(here, block, grid, narrow, atoms)
        # the M-step is the maximum only if what smooths logs is the transpose of what smooths shares, of mass one
        spread = atoms @ sparse.diags_array(1 / atoms.sum(axis=0))
        return SieveView(here, block, grid, narrow, spread / (grid[1, 0] - grid[0, 0]), spread.T.tocsr())

    def _run(self, step: Callable[[Mixing], tuple[Mixing, float]], current: Mixing, report: Report) -> EMFit:
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
