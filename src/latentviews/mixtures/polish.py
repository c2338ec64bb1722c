"""From a first guess of the classes to a better one, with no shape assumed.

A polish takes rows and guesses of their posteriors, and gives a way to the posteriors of any row.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.parallel import Parallel, delayed

from latentviews._clusters import kmeans_posteriors
from latentviews._parameters import (
    AutoOr,
    Constraint,
    Count,
    Nonnegative,
    Positive,
    Several,
    check_parameters,
)
from latentviews._progress import Report
from latentviews._validation import is_auto
from latentviews.core import streams
from latentviews.core.features.point_masses import which_mass
from latentviews.core.kernels.base import Kernel
from latentviews.core.streams import row_weights
from latentviews.core.tables import Columns
from latentviews.core.views import stack_block
from latentviews.mixtures.cells import (
    Basis,
    PointMassBasis,
    SieveView,
    SubspaceBasis,
    basis_rule,
    view_cells,
)
from latentviews.mixtures.races import leaders, others, rivals
from latentviews.mixtures.sieve import (
    EMFit,
    SieveParameters,
    SieveRows,
    accelerated_em,
    at_rest,
    em_step,
    em_sums,
    em_update,
    initial_parameters,
    posterior,
    smoothing_step,
)

FEW = 15  # EM steps after which starts that agree go on as one
SHORT = 60  # EM steps to compare starts and widths by
APART = 3.0  # starts so far apart in total log-likelihood, after those steps, disagree
FURTHER = 5  # starts that are added then
HELD = 6  # numbers of a row, a view and a class that a step holds
Halves = tuple[np.ndarray, np.ndarray]


class FitRows(Protocol):
    """The rows that a polish is fitted to, and the steps of EM on them."""

    @property
    def allowed(self) -> np.ndarray | None:
        """Zero for classes that a row is known not to be in, (n, k); None where nothing is known."""

    def by_block(self) -> dict[int, tuple[np.ndarray, Kernel]]:
        """The rows of every block's views, one under the other and none missing, and their kernel."""

    def views(self, shared: dict[int, Basis]) -> tuple[SieveView, ...]:
        """A sieve for every view from the basis of every block."""

    def cells(self, views: Sequence[SieveView]) -> list[SieveRows]:
        """The rows in the cells of every view."""

    def some(self, rows: np.ndarray) -> Self:
        """The same with some of the rows."""

    def draw(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """Numbers of some rows to try things on."""

    def halves(self) -> Halves:
        """Numbers of the rows in two halves, one to be judged by a fit to the other."""

    def clusters(self, rank: int, seed: int) -> np.ndarray:
        """A guess of the posteriors by k-means."""

    def initial(self, cells: Sequence[SieveRows], posteriors: np.ndarray) -> SieveParameters:
        """Parameters from a guess of the posteriors."""

    def step(self, cells: Sequence[SieveRows], parameters: SieveParameters) -> tuple[SieveParameters, float]:
        """One step of exact EM, and the mean log-likelihood before it."""

    def posteriors(self, cells: Sequence[SieveRows], parameters: SieveParameters) -> np.ndarray:
        """What a fit says of the rows' classes, (n, k)."""

    def score(self, cells: Sequence[SieveRows], parameters: SieveParameters) -> float:
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
    masses: Mapping[int, tuple[float, ...]] = MappingProxyType({})  # of blocks that have point masses

    def by_block(self) -> dict[int, tuple[np.ndarray, Kernel]]:
        """The rows of every block's views, one under the other and none missing, and their kernel."""
        rows: dict[int, tuple[np.ndarray, Kernel]] = {}
        for block in sorted(set(self.blocks)):
            x = stack_block(self.table, self.columns, self.blocks, block)
            x = x[~np.isnan(x).any(axis=1)]
            x = x[which_mass(x[:, 0], self.masses.get(block, ())) < 0]
            if not len(x):
                place = self.columns[list(self.blocks).index(block)]
                raise ValueError(
                    f"No row that counts has a value in column(s) {place} off point masses; leave them out."
                )
            inside = x @ self.directions[block] if block in self.directions else x
            rows[block] = inside, self.kernels[list(self.blocks).index(block)]
        return rows

    def views(self, shared: dict[int, Basis]) -> tuple[SieveView, ...]:
        """A sieve for every view from the basis of every block."""
        seen = dict(shared)
        seen |= {b: SubspaceBasis(directions, shared[b]) for b, directions in self.directions.items()}
        seen |= {b: PointMassBasis(values, shared[b]) for b, values in self.masses.items()}
        return tuple(SieveView(self.columns[t], block, seen[block]) for t, block in enumerate(self.blocks))

    def some(self, rows: np.ndarray) -> "MixtureRows":
        """The same with some of the rows, which are equal ones where none of them counts."""
        weights = None if self.weights is None or not self.weights[rows].any() else self.weights[rows]
        allowed = None if self.allowed is None else self.allowed[rows]
        return self._replace(table=self.table[rows], weights=weights, allowed=allowed)

    def cells(self, views: Sequence[SieveView]) -> list[SieveRows]:
        """The rows in the cells of every view."""
        return view_cells(views, self.table)

    def draw(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """Numbers of some rows to try things on."""
        return rng.permutation(len(self.table))[:size]

    def halves(self) -> Halves:
        """Numbers of the rows in two halves, one to be judged by a fit to the other."""
        return alternating(len(self.table))

    def clusters(self, rank: int, seed: int) -> np.ndarray:
        """A guess of the posteriors by k-means of all columns, once."""
        used = [j for view in self.columns for j in view]
        return kmeans_posteriors(self.table, used, rank, np.random.default_rng(seed), self.weights, n_init=1)

    def initial(self, cells: Sequence[SieveRows], posteriors: np.ndarray) -> SieveParameters:
        """Parameters from a guess of the posteriors."""
        return initial_parameters(cells, posteriors, self.weights)

    def step(self, cells: Sequence[SieveRows], parameters: SieveParameters) -> tuple[SieveParameters, float]:
        """One step of exact EM, and the mean log-likelihood before it."""
        return em_step(cells, parameters, self.weights, self.allowed)

    def posteriors(self, cells: Sequence[SieveRows], parameters: SieveParameters) -> np.ndarray:
        """What a fit says of the rows' classes, (n, k)."""
        return posterior(cells, parameters, self.allowed)[0]

    def score(self, cells: Sequence[SieveRows], parameters: SieveParameters) -> float:
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

    def posteriors(self, table: Any, allowed: np.ndarray | None = None) -> Any:
        """P(h | row), (n, k), where the rows are."""
        return posterior(self.cells(table), self.fit.parameters, allowed)[0]

    def take(self, order: np.ndarray) -> "Polished":
        """The same with the classes in another order."""
        return self._replace(fit=self.fit._replace(parameters=self.fit.parameters.take(order)))

    def cells(self, table: Any) -> list[SieveRows]:
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
            return em_sums(self.cells(batch), parameters, *row_weights(weight))

        size = streams.rows_at_once(HELD * len(self.views) * len(parameters.weights), data)
        updated, objective = em_update(parameters, streams.total(data, row_sum, weights, size).sums)
        return self._replace(fit=self.fit._replace(parameters=updated, objective=objective))


class Sieve(BaseEstimator):
    r"""Exact maximum likelihood (EM) with densities of many narrow bumps, a sieve (Grenander 1981); the default polish.

    .. math:: \max_{\pi, w} \sum_i \log \sum_h \pi_h \prod_t p_t(x_{it} \mid h), \qquad
              p_t(x \mid h) = \sum_b w_{tbh}\, k_t(x, g_{tb})

    Parameters
    ----------
    factors : tuple of float, default=(1.5, 2.0, 2.5)
        Widths to choose from, from the middle one on as long as held-out likelihood rises, in units of the rule for
        each view ("isj" for a column). Several real columns have none: their sieve is up to 50 Gaussians, each like the
        rows around it; where rows are too few for so many, longer tails are drawn in first (Yeo & Johnson 2000).
    max_iter : int, default=1000
        The most EM steps; none is one posterior-weighted re-estimation from the best start.
    tol : float, default=1e-3
        EM stops when a hundred plain steps would gain less log-likelihood per row and a step moves no class weight by
        more than ``tol`` of its standard error, or has not long after.
    trial_rows : int, default=4000
        Rows on which starts and widths are compared.
    n_init : int or "auto", default="auto"
        Further starts, from k-means with other seeds; "auto" is five where those given reach likelihoods that differ by
        more than 3 in total, and none elsewhere. Where some classes are known there are none.

    Examples
    --------
    >>> from latentviews import MultiViewMixture, Sieve
    >>> from latentviews.datasets import make_multiview
    >>> X = make_multiview(300, 2, random_state=0).X
    >>> model = MultiViewMixture(2, polish=Sieve(factors=(2.0,), n_init=0), random_state=0).fit(X)
    >>> model.weights_.round(2)
    array([0.73, 0.27])
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "factors": Several(Positive(), "at least one positive number"),
        "max_iter": Count(0),
        "tol": Nonnegative(),
        "trial_rows": Count(2),
        "n_init": AutoOr(Count(0)),
    }

    def __init__(
        self,
        factors: Sequence[float] = (1.5, 2.0, 2.5),
        max_iter: int = 1000,
        tol: float = 1e-3,
        trial_rows: int = 4000,
        n_init: int | str = "auto",
    ):
        self.factors = factors
        self.max_iter = max_iter
        self.tol = tol
        self.trial_rows = trial_rows
        self.n_init = n_init

    def polish(
        self,
        rows: FitRows,
        starts: Sequence[np.ndarray],
        rng: np.random.Generator,
        n_jobs: int | None = None,
        report: Report = lambda task, n_iter, objective: False,
    ) -> Polished:
        """Fit the sieve to rows from guesses of their posteriors.

        Parameters
        ----------
        rows : rows of a fit
        starts : list of arrays of shape (n, k)
            Posteriors to start from.
        rng : numpy Generator
        n_jobs : int or None
            Threads.
        report : callable
            Told of every step.

        Returns
        -------
        Polished
        """
        check_parameters(self)
        seed, rank = int(rng.integers(2**31)), starts[0].shape[1]
        rules = {block: basis_rule(x, kernel, rank, seed) for block, (x, kernel) in rows.by_block().items()}

        @cache
        def views(factor: float) -> tuple[SieveView, ...]:
            return rows.views({block: rule.basis(factor) for block, rule in rules.items()})

        drawn = rows.draw(self.trial_rows, rng)
        trial, guesses = rows.some(drawn), [start[drawn] for start in starts]
        middle = views(sorted(self.factors)[len(self.factors) // 2])
        tried = self._race(trial, middle, guesses, n_jobs)
        further = [rows.clusters(rank, seed + i)[drawn] for i in range(self._further(tried, len(drawn), rows))]
        further = others(guesses, further) if is_auto(self.n_init) else further
        guesses, tried = guesses + further, tried + self._race(trial, middle, further, n_jobs)
        wide = any(rule.has_width for rule in rules.values())
        factor = self._factor(trial, views, guesses[_best(tried)]) if wide else 1.0
        chosen = views(factor)
        objectives = np.array([fit.objective for fit in tried])
        near = rivals(objectives)
        tried = self._try(trial, chosen, [guesses[i] for i in near], 4 * SHORT, n_jobs)
        cells = rows.cells(chosen)
        best, told = tried[_best(tried)].parameters, partial(report, "polish")
        rest = at_rest(len(starts[0]), self.tol)
        fit = accelerated_em(partial(rows.step, cells), best, self.max_iter, self.tol, told, rest)
        return Polished(chosen, fit, factor, near[_best(tried)], objectives)

    def _further(self, tried: Sequence[EMFit], n_rows: int, rows: FitRows) -> int:
        """How many starts to add to those tried."""
        if rows.allowed is not None:  # clusters do not know the names of classes
            return 0
        if not is_auto(self.n_init):
            return int(self.n_init)
        reached = [fit.objective for fit in tried]
        return FURTHER if n_rows * (max(reached) - min(reached)) > APART else 0

    def _race(
        self, rows: FitRows, views: Sequence[SieveView], starts: Sequence[np.ndarray], n_jobs: int | None
    ) -> list[EMFit]:
        """A few steps from every start, and more from the best of those that agree by then."""
        tried = self._try(rows, views, starts, FEW, n_jobs)
        cells = rows.cells(views)
        labels = [rows.posteriors(cells, fit.parameters).argmax(axis=1) for fit in tried]
        followed = leaders([fit.objective for fit in tried], labels)
        ahead = sorted(set(followed))
        reached = Parallel(n_jobs, prefer="threads")(
            delayed(self._go_on)(rows, cells, tried[i].parameters, SHORT - FEW) for i in ahead
        )
        return [reached[ahead.index(leader)] for leader in followed]

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
        return self._go_on(rows, cells, rows.initial(cells, start), steps)

    def _go_on(self, rows: FitRows, cells: Sequence[SieveRows], parameters: SieveParameters, steps: int) -> EMFit:
        steps = min(steps, self.max_iter)
        return accelerated_em(lambda parameters: rows.step(cells, parameters), parameters, steps, 3 * self.tol)

    def _factor(self, rows: FitRows, views: Callable[[float], tuple[SieveView, ...]], start: np.ndarray) -> float:
        """The width whose fits to halves of the rows give the others the highest likelihood, from the middle on."""
        factors = sorted(self.factors)

        @cache
        def held_out(i: int) -> float:
            sieve, total, halves = views(factors[i]), 0.0, rows.halves()
            for fitted, held in (halves, halves[::-1]):
                parameters = self._short(rows.some(fitted), sieve, start[fitted], SHORT).parameters
                rest = rows.some(held)
                total += rest.score(rest.cells(sieve), parameters)
            return total

        best, last = len(factors) // 2, len(factors) - 1
        for way in (1, -1):
            while 0 <= best + way <= last and held_out(best + way) > held_out(best):
                best += way
        return factors[best]


def _best(fits: Sequence[EMFit]) -> int:
    return int(np.argmax([fit.objective for fit in fits]))
