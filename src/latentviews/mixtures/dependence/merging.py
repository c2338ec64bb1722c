"""Merging the parts of a mixture into classes, and choosing among partitions.

A mixture fitted with more components than there are classes describes the density well, and its components are then
put together again: those with no valley of the density between them, or that claim the same rows.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from sklearn.neighbors import NearestNeighbors

from latentviews._numbers import TINY, as_shares, row_shares
from latentviews.core.kernels.real import Gaussian
from latentviews.metrics import adjusted_rand

ROWS = 4000  # rows among which neighbours are sought
GRAM_ROWS = 2000  # and between which kernels are evaluated
N_NEIGHBORS = 10
EMPTY = 1e-100  # a mass whose square is still a number
CROSSINGS = 5  # edges between two parts at least as high as their saddle; fewer would be chance
TOUCHING = 0.01  # of the rows of the smaller part are shared where two are beside each other
PEAK = 0.9  # the quantile of the density in a part that counts as its peak


class ComponentStatistics(NamedTuple):
    """What merging asks of the parts of a mixture; what it asks of a union follows from its parts."""

    mass: np.ndarray  # (J,), summing to one
    products: np.ndarray  # (J, J), inner products of the embeddings of the parts, times their masses
    overlap: np.ndarray  # (J, J), the mean over rows of r_a r_b, r the posteriors
    peak: np.ndarray  # (J,), the density near the top of a part
    saddle: np.ndarray  # (J, J), the density on the highest pass between two parts
    link: np.ndarray  # (J, J), the largest confusion of two components, one of either part

    @property
    def ward(self) -> np.ndarray:
        """By how much a union's rows are farther from their mean embedding: m_a m_b / (m_a + m_b) ‖μ_a - μ_b‖²."""
        mass = np.maximum(self.mass, EMPTY)
        products = self.products / np.outer(mass, mass)
        squares = np.maximum(np.diag(products)[:, None] + np.diag(products) - 2 * products, 0.0)
        return np.outer(mass, mass) / np.add.outer(mass, mass) * squares

    @property
    def ratio(self) -> np.ndarray:
        """The saddle between two parts over the lower of their peaks, at most one."""
        return np.minimum(self.saddle / np.maximum(np.minimum.outer(self.peak, self.peak), TINY), 1.0)

    @property
    def confusion(self) -> np.ndarray:
        """The share of the smaller part's rows that the other claims."""
        return _confusion(self.overlap, self.mass)

    def take(self, kept: np.ndarray) -> "ComponentStatistics":
        """Some of the parts."""
        return ComponentStatistics(*(table[kept] if table.ndim == 1 else table[np.ix_(kept, kept)] for table in self))

    def united(self, groups: np.ndarray) -> "ComponentStatistics":
        """The unions of the parts in groups that are numbered from zero."""
        found, names = self, list(groups)
        for a in range(len(names) - 1, -1, -1):
            first = names.index(names[a])
            if first < a:
                found = found.union(first, a)
                names.pop(a)
        return found.take(np.argsort(names))

    def union(self, a: int, b: int) -> "ComponentStatistics":
        """The parts with b put into a."""
        joins = (np.add, np.add, np.add, np.maximum, np.maximum, np.maximum)
        return ComponentStatistics(*(_joined(table, a, b, join) for table, join in zip(self, joins, strict=True)))


def _confusion(overlap: np.ndarray, mass: np.ndarray) -> np.ndarray:
    return overlap / np.maximum(np.minimum.outer(mass, mass), TINY)


def _joined(table: np.ndarray, a: int, b: int, join: Callable[..., np.ndarray]) -> np.ndarray:
    """A vector or symmetric matrix with entry b joined to entry a and left out."""
    table = table.copy()
    table[a] = join(table[a], table[b])
    if table.ndim == 2:
        table[:, a] = join(table[:, a], table[:, b])
        return np.delete(np.delete(table, b, axis=0), b, axis=1)
    return np.delete(table, b)


Cost = Callable[[ComponentStatistics], np.ndarray]


def valley_cost(parts: ComponentStatistics) -> np.ndarray:
    """Small where parts are near and no valley of the density lies between them, (J, J)."""
    return parts.ward * (1 - parts.ratio + 1e-3)


def confusion_cost(parts: ComponentStatistics) -> np.ndarray:
    """Small where parts are near and claim the same rows, (J, J)."""
    return parts.ward * np.exp(-20 * parts.confusion)


class Landscape:
    """Rows, their neighbours and a kernel between them: what it takes to tell how the parts of a mixture lie.

    Parameters
    ----------
    rows : array of shape (n, d)
        Columns of similar scale, none missing.
    rng : Generator
        Picks the rows that are looked at.
    weights : array of shape (n,) or None
        How much rows count.
    """

    def __init__(self, rows: np.ndarray, rng: np.random.Generator, weights: np.ndarray | None = None):
        self.weights = row_shares(len(rows), weights)
        size = min(ROWS, int(np.count_nonzero(self.weights)))
        self.picked = rng.choice(len(rows), size=size, replace=False, p=None if weights is None else self.weights)
        some = rows[self.picked]
        count = min(N_NEIGHBORS, len(some) - 1)
        near = NearestNeighbors(n_neighbors=count).fit(some).kneighbors(return_distance=False)
        self.edges = np.repeat(np.arange(len(some)), count), near.ravel()
        few = some[:GRAM_ROWS]
        self.gram = Gaussian(1.0).gram(few, few)

    def parts(self, posteriors: np.ndarray, log_density: np.ndarray) -> ComponentStatistics:
        """How the parts with these posteriors (n, J) lie in a density with these logarithms (n,)."""
        some = posteriors[self.picked]
        few = some[: len(self.gram)]
        few = as_shares(few, axis=0)
        mass, overlap = self.weights @ posteriors, (posteriors * self.weights[:, None]).T @ posteriors
        labels, density = some.argmax(axis=1), np.exp(log_density[self.picked] - log_density.max())
        return ComponentStatistics(
            mass,
            np.outer(mass, mass) * (few.T @ self.gram @ few),
            overlap,
            np.array([np.quantile(density[labels == j], PEAK) if j in labels else 0.0 for j in range(len(mass))]),
            self._saddles(labels, density, len(mass)),
            _confusion(overlap, mass),
        )

    def _saddles(self, labels: np.ndarray, density: np.ndarray, n_parts: int) -> np.ndarray:
        """The fifth highest edge between every two parts; an edge is as high as the lower of its ends."""
        here, there = self.edges
        pair = np.minimum(labels[here], labels[there]) * n_parts + np.maximum(labels[here], labels[there])
        height = np.minimum(density[here], density[there])
        saddle = np.zeros((n_parts, n_parts))
        for code in np.unique(pair[labels[here] != labels[there]]):
            heights = height[pair == code]
            if len(heights) >= CROSSINGS:
                a, b = divmod(int(code), n_parts)
                saddle[a, b] = saddle[b, a] = np.sort(heights)[-CROSSINGS]
        return saddle


def merge(parts: ComponentStatistics, n_classes: int, cost: Cost) -> np.ndarray:
    """The class 0, …, n_classes - 1 of every part: the cheapest two are put together until so many are left."""
    groups = np.arange(len(parts.mass))
    while len(parts.mass) > n_classes:
        parts, groups = _put_together(parts, groups, cost(parts))
    return groups


def merge_until(parts: ComponentStatistics, ratio: float, least: float, shared: float = 0.0) -> np.ndarray:
    """The class of every part, however many there are.

    A part that wins no row has no peak, so that no valley tells where it belongs: it goes to the one it shares rows
    with. Parts lighter than ``least`` go to the nearest next; then those with the shallowest valley between them are
    put together, until every valley is below ``ratio`` of the lower peak beside it. With ``shared``, parts are put
    together that share most of their rows, and stay apart, too, where no two components of theirs share so much of the
    smaller one's rows.
    """
    groups = np.arange(len(parts.mass))
    while len(parts.mass) > 1 and parts.peak.min() == 0:
        beneath = int(parts.peak.argmin())
        cost = np.full(parts.overlap.shape, np.inf)
        cost[beneath] = -parts.overlap[beneath]
        parts, groups = _put_together(parts, groups, cost)
    while len(parts.mass) > 1 and parts.mass.min() < least:
        cost = np.full(parts.ward.shape, np.inf)
        lightest = int(parts.mass.argmin())
        cost[lightest] = valley_cost(parts)[lightest]
        parts, groups = _put_together(parts, groups, cost)
    while len(parts.mass) > 1 and np.any(near := _as_one(parts, ratio) & (parts.link >= shared)):
        parts, groups = _put_together(parts, groups, np.where(near, -(parts.link if shared else parts.ratio), np.inf))
    return groups


def merge_where(
    parts: ComponentStatistics, groups: np.ndarray, ratio: float, as_one: Callable[[np.ndarray, int, int], bool]
) -> np.ndarray:
    """The class of every part, from groups of parts: two with no valley between them are one where ``as_one`` says so.

    It is asked of ``(groups, a, b)``, first where groups share most of their rows, and not at all where they share
    none.
    """
    apart: set[tuple[frozenset[int], ...]] = set()
    while True:
        for a, b in _nearest(parts.united(groups), ratio):
            pair = tuple(frozenset(np.flatnonzero(groups == h).tolist()) for h in (a, b))
            if pair not in apart and as_one(groups, a, b):
                groups = np.where(groups == b, a, groups - (groups > b))
                break
            apart.add(pair)
        else:
            return groups


def _as_one(parts: ComponentStatistics, ratio: float) -> np.ndarray:
    """Whether no valley lies between two parts, (J, J)."""
    return (parts.ratio >= ratio) & ~np.eye(len(parts.mass), dtype=bool)


def _nearest(parts: ComponentStatistics, ratio: float) -> list[tuple[int, int]]:
    """Pairs of parts that share rows and have no valley between them, those that share most first."""
    near = np.argwhere(np.triu(_as_one(parts, ratio) & (parts.confusion >= TOUCHING)))
    return sorted(((int(a), int(b)) for a, b in near), key=lambda pair: -parts.confusion[pair])


def _put_together(
    parts: ComponentStatistics, groups: np.ndarray, cost: np.ndarray
) -> tuple[ComponentStatistics, np.ndarray]:
    """The two with the least cost made one."""
    cost = cost.copy()
    np.fill_diagonal(cost, np.inf)
    a, b = sorted(int(i) for i in np.unravel_index(cost.argmin(), cost.shape))
    return parts.union(a, b), np.where(groups == b, a, groups - (groups > b))


class Medoid(NamedTuple):
    """The partition that agrees best with the others."""

    chosen: int
    agreement: float  # its mean adjusted Rand index with them
    table: np.ndarray  # adjusted Rand indices of every two


def medoid(partitions: Sequence[np.ndarray]) -> Medoid:
    """Of several partitions of the same rows, the one with the highest mean agreement with the others."""
    size = len(partitions)
    table = np.eye(size)
    for i in range(size):
        for j in range(i):
            table[i, j] = table[j, i] = adjusted_rand(partitions[i], partitions[j])
    means = (table.sum(axis=1) - 1) / max(size - 1, 1) if size > 1 else np.ones(1)
    return Medoid(int(means.argmax()), float(means.max()), table)
