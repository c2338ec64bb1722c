"""From a first guess of the classes to a better one, with no shape assumed.

A polish takes rows and guesses of their posteriors, and gives a way to the posteriors of any row.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from operator import add
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.parallel import Parallel, delayed

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
from latentviews.core.streams import row_weights
from latentviews.mixtures.cells import SieveView, basis_rule, view_cells
from latentviews.mixtures.fit_rows import FitRows
from latentviews.mixtures.races import AGREED, agreements, leaders, others, rivals
from latentviews.mixtures.sieve import (
    EMFit,
    SieveParameters,
    SieveRows,
    accelerated_em,
    at_rest,
    em_step,
    em_sums,
    em_update,
    posterior,
    smoothing_step,
)

FEW = 15  # EM steps after which starts that agree go on as one
SHORT = 60  # EM steps to compare starts and widths by
APART = 3.0  # starts so far apart in total log-likelihood, after those steps, disagree
FURTHER = 5  # starts that are added then
NOT_KEPT = np.empty(0)  # of files that earlier versions wrote
HELD = 6  # numbers of a row, a view and a class that a step holds


class Polished(NamedTuple):
    """A fitted sieve: enough to give the posteriors of any row."""

    views: tuple[SieveView, ...]
    fit: EMFit
    factor: float  # the width that held-out rows preferred, in rules of thumb
    start: int  # the one gone on from
    objectives: np.ndarray  # what every start reached in its first steps
    exact: bool = True  # whether its steps are those of exact EM
    agreements: np.ndarray = NOT_KEPT  # of every start's partition then with that of the best, as adjusted Rand indices
    n_rows: int = 0  # polished; zero where not kept

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
        more than 3 in total or partitions of other classes, and none elsewhere. With known classes there are none.

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
        tried, labels = self._race(trial, middle, guesses, n_jobs)
        further = [rows.clusters(rank, seed + i)[drawn] for i in range(self._further(tried, labels, rows))]
        further = others(guesses, further) if is_auto(self.n_init) else further
        guesses += further
        tried, labels = map(add, (tried, labels), self._race(trial, middle, further, n_jobs))
        wide = any(rule.has_width for rule in rules.values())
        factor = self._factor(trial, views, guesses[_best(tried)]) if wide else 1.0
        chosen = views(factor)
        objectives = np.array([fit.objective for fit in tried])
        agreed = agreements(objectives, labels)
        near = rivals(objectives)
        tried = self._try(trial, chosen, [guesses[i] for i in near], 4 * SHORT, n_jobs)
        cells = rows.cells(chosen)
        best, told = tried[_best(tried)].parameters, partial(report, "polish")
        rest = at_rest(len(starts[0]), self.tol)
        fit = accelerated_em(partial(rows.step, cells), best, self.max_iter, self.tol, told, rest)
        start = near[_best(tried)]
        return Polished(chosen, fit, factor, start, objectives, agreements=agreed, n_rows=len(starts[0]))

    def _further(self, tried: Sequence[EMFit], labels: Sequence[np.ndarray], rows: FitRows) -> int:
        """How many starts to add to those tried."""
        if rows.allowed is not None:  # clusters do not know the names of classes
            return 0
        if not is_auto(self.n_init):
            return int(self.n_init)
        reached = [fit.objective for fit in tried]
        apart = len(labels[0]) * (max(reached) - min(reached)) > APART
        return FURTHER if apart or agreements(reached, labels).min() < AGREED else 0

    def _race(
        self, rows: FitRows, views: Sequence[SieveView], starts: Sequence[np.ndarray], n_jobs: int | None
    ) -> tuple[list[EMFit], list[np.ndarray]]:
        """A few steps from every start, and more from the best of those that agree by then; classes of rows, too."""
        tried = self._try(rows, views, starts, FEW, n_jobs)
        cells = rows.cells(views)

        def partition(fit: EMFit) -> np.ndarray:
            return rows.posteriors(cells, fit.parameters).argmax(axis=1)

        followed = leaders([fit.objective for fit in tried], [partition(fit) for fit in tried])
        ahead = sorted(set(followed))
        reached = Parallel(n_jobs, prefer="threads")(
            delayed(self._go_on)(rows, cells, tried[i].parameters, SHORT - FEW) for i in ahead
        )
        labels = [partition(fit) for fit in reached]
        places = [ahead.index(leader) for leader in followed]
        return [reached[place] for place in places], [labels[place] for place in places]

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
