"""From the parts of fits to classes: ways to put parts together, and the choice among partitions of the rows."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from latentviews._numbers import TINY
from latentviews.metrics import adjusted_rand
from latentviews.mixtures.dependence.copulas import Expected
from latentviews.mixtures.dependence.grids import ColumnGrids
from latentviews.mixtures.dependence.merging import (
    ComponentStatistics,
    Landscape,
    confusion_cost,
    medoid,
    merge,
    merge_until,
    merge_where,
    valley_cost,
)
from latentviews.mixtures.dependence.settings import Copulas
from latentviews.mixtures.dependence.splits import SHARED, JudgingRows
from latentviews.mixtures.problem import Problem

PER_COLUMN = 50  # rows per column that parts must have to tell classes without a valley between them
AGREED = 0.7  # mean agreement of starts from which on finer classes than valleys' are believed
SAME_VALLEYS = 0.9  # adjusted Rand index from which two starts have the same valleys


class ClassSearch(NamedTuple):
    """The rows that classes are found in, and how they are to be found."""

    problem: Problem
    settings: Copulas
    rows: np.ndarray  # (n, d), the pilot in columns of one scale
    grids: ColumnGrids
    volume: float  # the log of that of their box
    weights: np.ndarray | None

    def starts(self, expected: Sequence[Expected], fewest: int) -> list["StartParts"]:
        """The parts of every start, noise left out where at least so many are left."""
        landscape, found = Landscape(self.rows, self.problem.rng, self.weights), []
        for step in expected:
            statistics = landscape.parts(step.posteriors, step.log_density)
            kept = np.arange(len(statistics.mass))
            if self.settings.noise:
                kept = _kept(statistics, _heights(step, self.volume), self.settings, min(fewest, len(kept)))
            found.append(StartParts(step, kept, statistics.take(kept), self.settings.noise))
        return found


class StartParts(NamedTuple):
    """The parts of the fit from one start that are no noise."""

    expected: Expected
    kept: np.ndarray  # their numbers among all parts
    statistics: ComponentStatistics  # how they lie
    noise: bool

    def every(self, groups: np.ndarray) -> np.ndarray:
        """The class of every part, given those of the parts kept; -1 is noise."""
        found = np.full(self.expected.posteriors.shape[1], -1)
        found[self.kept] = groups
        return found

    def labels(self, groups: np.ndarray) -> np.ndarray:
        """The class of every row of the pilot; noise is the last."""
        groups = self.every(groups)
        chances = (self.expected.shares if self.noise else self.expected.posteriors) @ np.eye(groups.max() + 2)[groups]
        if self.noise:
            chances[:, -1] += 1 - self.expected.shares.sum(axis=1)
        return chances.argmax(axis=1)

    def choice(self, number: int, groups: np.ndarray, agreement: float, n_partitions: int) -> "Choice":
        """What is chosen, where it is this start, of such a number."""
        return Choice(number, self.every(groups), self.labels(groups), agreement, n_partitions)


class Choice(NamedTuple):
    """A partition of the pilot among others."""

    start: int  # the start whose parts were merged
    groups: np.ndarray  # (J,), the class of every part; -1 is noise
    labels: np.ndarray  # (n,), the class of every row
    agreement: float
    n_partitions: int = 1  # that it was chosen from


def classes_of_number(search: ClassSearch, expected: Sequence[Expected], n_classes: int) -> Choice:
    """So many classes: of all starts and ways to merge their parts, the medoid, or what agrees with known classes."""
    found = [
        (i, start.every(groups), start.labels(groups))
        for i, start in enumerate(search.starts(expected, n_classes))
        for groups in (merge(start.statistics, n_classes, cost) for cost in (valley_cost, confusion_cost))
    ]
    allowed, partitions = search.problem.allowed, [labels for *_, labels in found]
    center = medoid(partitions)
    best = center.chosen if allowed is None else _closest_to(allowed, partitions)
    return Choice(*found[best], center.agreement, len(found))


def counted_classes(search: ClassSearch, expected: Sequence[Expected]) -> Choice:
    """As many classes as valleys of the density tell apart, or more where held-out rows speak for them.

    Of the starts that lead to about the same classes by valleys as the medoid, it is the medoid of finer partitions, of
    parts that share few rows; held-out rows say which of its classes are one. Where parts have few rows for their
    columns, valleys alone tell, since such parts are surer of their rows than they should be.
    """
    starts, settings = search.starts(expected, 1), search.settings
    wide = [merge_until(start.statistics, settings.ratio, settings.least) for start in starts]
    center = medoid([start.labels(groups) for start, groups in zip(starts, wide, strict=True)])
    first, n_parts, (n_rows, n_columns) = center.chosen, expected[0].posteriors.shape[1], search.rows.shape
    by_valleys = starts[first].choice(first, wide[first], center.agreement, len(starts))
    if n_rows < PER_COLUMN * (n_columns + 1) * n_parts:
        return by_valleys
    fine = [merge_until(start.statistics, settings.ratio, settings.least, SHARED) for start in starts]
    alike = np.flatnonzero(center.table[first] >= SAME_VALLEYS)
    best = int(alike[medoid([starts[i].labels(fine[i]) for i in alike]).chosen])
    own = starts[best]
    judge = JudgingRows(search.problem.pilot, search.weights, search.grids, own.expected.posteriors[:, own.kept])
    groups = merge_where(own.statistics, fine[best], settings.ratio, judge.as_one)
    if groups.max() <= wide[first].max():
        return by_valleys
    agreement = _agreement(starts, fine, best, groups)
    if agreement < min(by_valleys.agreement, AGREED):  # finer classes that every start cuts elsewhere are none
        return by_valleys
    return own.choice(best, groups, agreement, len(starts))


def _agreement(starts: list[StartParts], fine: list[np.ndarray], best: int, groups: np.ndarray) -> float:
    """The mean agreement of the classes of one start with those of the others, put together to as many or fewer."""
    labels, count = starts[best].labels(groups), int(groups.max()) + 1
    others = [
        start.labels(merge(start.statistics.united(finer), count, valley_cost)[finer])
        for i, (start, finer) in enumerate(zip(starts, fine, strict=True))
        if i != best
    ]
    return float(np.mean([adjusted_rand(labels, other) for other in others])) if others else 1.0


def _kept(statistics: ComponentStatistics, heights: np.ndarray, settings: Copulas, fewest: int) -> np.ndarray:
    """The parts that are no noise: neither sparse, nor light and apart from all others; at least so many."""
    apart = (statistics.ratio - np.eye(len(heights))).max(axis=1) < settings.ratio
    noisy = (heights < 0) | ((statistics.mass < settings.least) & apart)
    return np.flatnonzero(~noisy) if np.sum(~noisy) >= fewest else np.sort(np.argsort(-heights)[:fewest])


def _heights(expected: Expected, volume: float) -> np.ndarray:
    """The mean log-density where the rows of every part are, beside that of rows spread evenly over their box, (J,)."""
    return expected.log_density @ expected.shares / np.maximum(expected.shares.sum(axis=0), TINY) + volume


def _closest_to(allowed: np.ndarray, partitions: list[np.ndarray]) -> int:
    """The partition that agrees best with the known classes."""
    known = allowed.sum(axis=1) == 1
    truth = allowed[known].argmax(axis=1)
    return int(np.argmax([adjusted_rand(truth, labels[known]) for labels in partitions]))
