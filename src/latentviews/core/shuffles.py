"""Largest singular values of many cross-covariances whose rows are permuted: all that share a side in one product."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Sides(NamedTuple):
    """The directions of two views, or groups of them, in the rows that have both."""

    first: np.ndarray
    second: np.ndarray
    kept: np.ndarray | None  # of the table's rows; None where all are


class Batch(NamedTuple):
    """A first side, and all second sides that it is compared with, side by side and of equal width."""

    first: np.ndarray  # (n, d)
    seconds: np.ndarray  # (n, m w)
    width: int
    places: list[int]  # of the pairs among all
    kept: np.ndarray | None

    def largest(self, order: np.ndarray) -> np.ndarray:
        """The largest singular values, (m,), where the rows of the first side are in another order."""
        order = order if self.kept is None else np.argsort(order[self.kept])
        moment = np.take(self.first, order, axis=0).T @ self.seconds / len(self.first)
        each = np.ascontiguousarray(moment.reshape(len(moment), -1, self.width).transpose(1, 2, 0))  # (m, w, d)
        values = np.linalg.eigvalsh(each @ each.transpose(0, 2, 1))[:, -1]  # a third of the time of an SVD
        return np.sqrt(np.maximum(values, 0.0))


class Shuffles:
    """Pairs of sides, to be permuted again and again."""

    def __init__(self, pairs: Sequence[Sides]):
        self.size = len(pairs)
        together: dict[tuple[int, int], list[int]] = {}
        for i, pair in enumerate(pairs):
            together.setdefault((id(pair.first), id(pair.kept)), []).append(i)
        self.batches = [_batch(pairs, places) for places in together.values()]

    def largest(self, order: np.ndarray) -> np.ndarray:
        """The largest singular value of every pair where the rows of the first sides are in another order."""
        found = np.empty(self.size)
        for batch in self.batches:
            found[batch.places] = batch.largest(order)
        return found


def _batch(pairs: Sequence[Sides], places: list[int]) -> Batch:
    """Pairs with the same first side; zeros make the second sides equally wide, and change no singular value."""
    seconds = [pairs[i].second for i in places]
    width = max(second.shape[1] for second in seconds)
    padded = [np.pad(second, ((0, 0), (0, width - second.shape[1]))) for second in seconds]
    one = pairs[places[0]]
    return Batch(one.first, np.hstack(padded) if len(padded) > 1 else padded[0], width, places, one.kept)
