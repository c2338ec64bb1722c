"""Dependence between views inside every class, tested on rows drawn by their posteriors."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np

from latentviews.comparison.pairs import leading_features, pairwise_tests
from latentviews.comparison.results import TestResult
from latentviews.core.kernels.base import Kernel
from latentviews.core.kernels.defaults import kernel_on
from latentviews.core.kernels.space import Space
from latentviews.core.tables import Columns

CLASS_ROWS = 1000  # members of a class in a test: more would find dependence too weak to matter
FEWEST_MEMBERS = 20  # and fewer would find nothing
FEWEST_OTHERS = 10  # of them apart from the commonest value of a column, or a single row would make its null draws
FIRST, CLEAR = 19, 0.3  # permutations at first, which do where no corrected p-value is below this
LEVEL = 0.05  # the chance of flagging any dependence where there is none
WEAK = (
    0.1  # dependence below this, a correlation of some .15, hardly moves a class; errors in posteriors can make as much
)


@dataclass(frozen=True, eq=False)
class WithinClassDependence:
    """HSIC between the views inside every class; NaN where a class has too few rows, or a view that does not vary."""

    pairs: tuple[tuple[int, int], ...]  # of views
    effect: np.ndarray  # (k, n_pairs), from 0, none, to 1
    pvalue: np.ndarray  # (k, n_pairs), corrected for the number of classes and pairs
    n_rows: np.ndarray  # (k, n_pairs)
    floor: float = 0.0  # the smallest p-value that so many permutations can give

    def said(self, pvalue: float) -> str:
        """A p-value for people, which may be smaller where permutations give none below it."""
        return f"at most {pvalue:.2g}" if pvalue <= self.floor * (1 + 1e-9) else f"{pvalue:.2g}"

    def matrix(self, component: int, values: str = "effect") -> np.ndarray:
        """``effect``, ``pvalue`` or ``n_rows`` of one class as a symmetric matrix over views, NaN on its diagonal."""
        n_views = 1 + max(t for _, t in self.pairs)
        table = np.full((n_views, n_views), np.nan)
        for (s, t), value in zip(self.pairs, getattr(self, values)[component], strict=True):
            table[s, t] = table[t, s] = value
        return table

    def flagged(self, level: float = LEVEL, least: float = WEAK) -> list[tuple[int, int, int]]:
        """(class, view, view) where the corrected p-value is at most ``level`` and the effect at least ``least``.

        The most evident come first, those with the smallest p-value, and of these the strongest.
        """
        with np.errstate(invalid="ignore"):  # NaN is not flagged
            found = np.argwhere((self.pvalue <= level) & (self.effect >= least))
        order = sorted(found.tolist(), key=lambda where: (self.pvalue[tuple(where)], -self.effect[tuple(where)]))
        return [(h, *self.pairs[p]) for h, p in order]


class _NullMoments(NamedTuple):
    """The mean and standard deviation of a statistic over all permutations."""

    mean: float
    spread: float


class ClassViews(NamedTuple):
    """Rows of a class, drawn by their posteriors, in the views that vary among them."""

    n_rows: int
    here: dict[int, np.ndarray]  # (n_rows,), which of them have the view
    features: dict[int, np.ndarray]  # centred, of those that have it; the leading direction first

    @property
    def is_whole(self) -> bool:
        """Whether no row lacks a view."""
        return all(own.all() for own in self.here.values())

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The views of which enough rows have both."""
        every = combinations(self.features, 2)
        return [(s, t) for s, t in every if np.sum(self.here[s] & self.here[t]) >= FEWEST_MEMBERS]

    def both(self, s: int, t: int) -> list[np.ndarray]:
        """Centred features of two views of the rows that have both."""
        shared = self.here[s] & self.here[t]
        parts = [self.features[v][shared[self.here[v]]] for v in (s, t)]
        return [phi - phi.mean(axis=0) for phi in parts]


def drawn_classes(
    rows: np.ndarray,
    columns: Columns,
    spaces: Sequence[Space | Kernel],
    posteriors: np.ndarray,
    rng: np.random.Generator,
) -> list[ClassViews]:
    """Some rows of every class, and features of its views: see `independence_test` for why rows are drawn.

    Views of objects have their kernel in the place of a space.
    """
    kernels = [one if isinstance(one, Kernel) else kernel_on(one, "median") for one in spaces]
    found = []
    for chances in posteriors.T:
        members = drawn_members(rows, chances, rng)
        views = {t: members[:, view] for t, view in enumerate(columns)}
        here = {t: ~np.isnan(x).any(axis=1) for t, x in views.items()}
        here = {t: own for t, own in here.items() if own.sum() >= FEWEST_MEMBERS and _varies(views[t][own])}
        features = {t: leading_features(views[t][own], kernels[t], rng) for t, own in here.items()}
        varying = {t: phi for t, phi in features.items() if phi.shape[1]}  # objects may be alike to their kernel
        found.append(ClassViews(len(members), {t: here[t] for t in varying}, varying))
    return found


def drawn_members(rows: np.ndarray, chances: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rows of a class drawn by their posteriors, of many about a thousand."""
    return rows[rng.random(len(rows)) < chances * min(1.0, CLASS_ROWS / max(chances.sum(), 1.0))]


def _varies(x: np.ndarray) -> bool:
    """Whether enough rows have another value than the commonest in all columns of a view."""
    return all(len(x) - np.unique(column, return_counts=True)[1].max() >= FEWEST_OTHERS for column in x.T)


def within_class_dependence(
    classes: Sequence[ClassViews], n_views: int, n_permutations: int, rng: np.random.Generator
) -> WithinClassDependence:
    """Every class and pair of views tested, by a few permutations where they leave no doubt that nothing is there."""
    pairs = tuple(combinations(range(n_views), 2))
    effect, pvalue, n_rows = (np.full((len(classes), len(pairs)), empty) for empty in (np.nan, np.nan, 0))
    found: dict[tuple[int, int], TestResult] = {}
    place = {pair: p for p, pair in enumerate(pairs)}
    moments = {(h, place[pair]): own for h, views in enumerate(classes) for pair, own in _null_moments(views).items()}
    for before, size in pairwise([0, *sorted({min(FIRST, n_permutations), n_permutations})]):
        tests = [_tested(views, size - before, rng) for views in classes]
        now = {(h, p): own[pair] for h, own in enumerate(tests) for p, pair in enumerate(pairs) if pair in own}
        found = {where: _more_draws(test, found.get(where)) for where, test in now.items()}
        corrected = corrected_pvalues(list(found.values()), [moments[where] for where in found])
        for (where, test), adjusted in zip(found.items(), corrected, strict=True):
            effect[where], pvalue[where], n_rows[where] = test.effect, adjusted, test.n_rows
        if not np.any(corrected <= CLEAR):
            break
    return WithinClassDependence(pairs, effect, pvalue, n_rows, 1 / (1 + size))


def _more_draws(test: TestResult, before: TestResult | None) -> TestResult:
    """The test with the null draws of one before it too, from which `corrected_pvalues` are."""
    return test if before is None else replace(test, null=np.concatenate([before.null, test.null]))


def _tested(views: ClassViews, n_permutations: int, rng: np.random.Generator) -> dict[tuple[int, int], TestResult]:
    """The tests of all pairs of views on the members of a class, each on the rows that have both."""
    usable = list(views.features)
    if views.is_whole:
        tests = pairwise_tests(list(views.features.values()), n_permutations, rng) if len(usable) > 1 else {}
        return {(usable[s], usable[t]): test for (s, t), test in tests.items()}
    return {pair: pairwise_tests(views.both(*pair), n_permutations, rng)[0, 1] for pair in views.pairs}


def _null_moments(views: ClassViews) -> dict[tuple[int, int], _NullMoments]:
    """The moments of the statistics of the same tests."""
    if views.is_whole:
        traces = {t: _traces(phi) for t, phi in views.features.items()}
        return {(s, t): null_moments(traces[s], traces[t]) for s, t in views.pairs}
    return {pair: null_moments(*map(_traces, views.both(*pair))) for pair in views.pairs}


class _Traces(NamedTuple):
    """What the moments of permutations rest on, of a Gram matrix S = Φ Φᵀ of centred features."""

    n_rows: int
    first: float  # tr S
    second: float  # tr S²
    diagonal: float  # Σ_i S_ii²


def _traces(phi: np.ndarray) -> _Traces:
    squares = np.sum(phi**2, axis=1)
    return _Traces(len(phi), float(squares.sum()), float(np.sum((phi.T @ phi) ** 2)), float(np.sum(squares**2)))


def null_moments(a: _Traces, b: _Traces) -> _NullMoments:
    """The mean and variance of HSIC, tr(S P T Pᵀ) / n², over all permutations P (Kazi-Aoual et al. 1995, section 3)."""
    n = a.n_rows
    pairs = [(n - 1) * one.second - one.first**2 for one in (a, b)]
    diagonals = [n * (n + 1) * one.diagonal - (n - 1) * (one.first**2 + 2 * one.second) for one in (a, b)]
    variance = 2 * pairs[0] * pairs[1] / ((n - 1) ** 2 * (n + 1) * (n - 2))
    variance += diagonals[0] * diagonals[1] / ((n + 1) * n * (n - 1) * (n - 2) * (n - 3))
    return _NullMoments(a.first * b.first / (n - 1) / n**2, float(np.sqrt(max(variance, 0.0))) / n**2)


def corrected_pvalues(tests: Sequence[TestResult], moments: Sequence[_NullMoments]) -> np.ndarray:
    """P-values for many independent tests together: against the largest null draw (Westfall & Young 1993, 2.6).

    The chance that any of them is at most α is at most α if all hypotheses hold. Unlike Bonferroni's, the smallest
    does not grow with the number of tests, so few permutations serve many. Tests are compared in standard deviations of
    all permutations: among those of the draws themselves the largest would always be about as large.
    """
    if not tests:
        return np.empty(0)
    draws = np.array([[test.statistic, *test.null] for test in tests])
    mean, spread = np.array(moments).T[:, :, None]
    standard = (draws - mean) / np.where(spread > 0, spread, 1.0)
    largest = standard[:, 1:].max(axis=0)
    return (1 + np.sum(largest >= standard[:, :1] - 1e-10, axis=1)) / (1 + len(largest))
