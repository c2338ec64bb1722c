"""Dependence between views inside every class, tested on rows drawn by their posteriors."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from latentviews.comparison.pairs import leading_features, pairwise_tests
from latentviews.comparison.results import TestResult
from latentviews.core.kernels.base import Kernel
from latentviews.core.kernels.defaults import kernel_on
from latentviews.core.kernels.space import Space
from latentviews.core.tables import Columns

CLASS_ROWS = 1500  # members of a class in a test: more would find dependence too weak to matter
FEWEST_MEMBERS = 20  # and fewer would find nothing
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

    def matrix(self, component: int, values: str = "effect") -> np.ndarray:
        """``effect``, ``pvalue`` or ``n_rows`` of one class as a symmetric matrix over views, NaN on its diagonal."""
        n_views = 1 + max(t for _, t in self.pairs)
        table = np.full((n_views, n_views), np.nan)
        for (s, t), value in zip(self.pairs, getattr(self, values)[component], strict=True):
            table[s, t] = table[t, s] = value
        return table

    def flagged(self, level: float = LEVEL, least: float = WEAK) -> list[tuple[int, int, int]]:
        """(class, view, view) where the corrected p-value is at most ``level`` and the effect at least ``least``.

        The strongest come first.
        """
        with np.errstate(invalid="ignore"):  # NaN is not flagged
            found = np.argwhere((self.pvalue <= level) & (self.effect >= least))
        order = sorted(found.tolist(), key=lambda where: -self.effect[tuple(where)])
        return [(h, *self.pairs[p]) for h, p in order]


def within_class_dependence(
    rows: np.ndarray,
    columns: Columns,
    spaces: Sequence[Space | Kernel],
    posteriors: np.ndarray,
    n_permutations: int,
    rng: np.random.Generator,
) -> WithinClassDependence:
    """Every class and pair of views tested on rows drawn by their posteriors: see `independence_test` for why.

    Views of objects have their kernel in the place of a space.
    """
    pairs = tuple(combinations(range(len(columns)), 2))
    kernels = [one if isinstance(one, Kernel) else kernel_on(one, "median") for one in spaces]
    found: dict[tuple[int, int], TestResult] = {}
    for h, chances in enumerate(posteriors.T):
        chances = chances * min(1.0, CLASS_ROWS / max(chances.sum(), 1.0))
        members = rows[rng.random(len(rows)) < chances]
        views = [members[:, view] for view in columns]
        tested = _tested(views, kernels, n_permutations, rng)
        found |= {(h, p): tested[pair] for p, pair in enumerate(pairs) if pair in tested}
    effect, pvalue, n_rows = (np.full((posteriors.shape[1], len(pairs)), empty) for empty in (np.nan, np.nan, 0))
    for where, adjusted in zip(found, corrected_pvalues(list(found.values())), strict=True):
        effect[where], pvalue[where], n_rows[where] = found[where].effect, adjusted, found[where].n_rows
    return WithinClassDependence(pairs, effect, pvalue, n_rows)


def _tested(
    views: Sequence[np.ndarray], kernels: Sequence[Any], n_permutations: int, rng: np.random.Generator
) -> dict[tuple[int, int], TestResult]:
    """The tests of all pairs of views on the members of a class, each on the rows that have both."""
    here = [~np.isnan(x).any(axis=1) for x in views]
    usable = [t for t, x in enumerate(views) if here[t].sum() >= FEWEST_MEMBERS and np.ptp(x[here[t]], axis=0).all()]
    features = {t: leading_features(views[t][here[t]], kernels[t], rng) for t in usable}
    if len(usable) > 1 and all(here[t].all() for t in usable):
        tests = pairwise_tests([features[t] for t in usable], n_permutations, rng)
        return {(usable[s], usable[t]): test for (s, t), test in tests.items()}
    found = {}
    for s, t in combinations(usable, 2):
        both = here[s] & here[t]
        if both.sum() >= FEWEST_MEMBERS:
            pair = [features[v][both[here[v]]] for v in (s, t)]
            centred = [phi - phi.mean(axis=0) for phi in pair]
            found[s, t] = pairwise_tests(centred, n_permutations, rng)[0, 1]
    return found


def corrected_pvalues(tests: Sequence[TestResult]) -> np.ndarray:
    """P-values for many independent tests together: against the largest null draw (Westfall & Young 1993, 2.6).

    The chance that any of them is at most α is at most α if all hypotheses hold. Unlike Bonferroni's, the smallest
    does not grow with the number of tests, so few permutations serve many.
    """
    if not tests:
        return np.empty(0)
    draws = np.array([[test.statistic, *test.null] for test in tests])
    spread = draws.std(axis=1, keepdims=True)
    standard = (draws - draws.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1.0)
    largest = standard[:, 1:].max(axis=0)
    return (1 + np.sum(largest >= standard[:, :1] - 1e-10, axis=1)) / (1 + len(largest))
