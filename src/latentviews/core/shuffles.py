"""Largest singular values of many cross-covariances whose rows are permuted: all that share a side in one product."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class PairedDirections(NamedTuple):
    """The directions of two views, or groups of them, in the rows that have both."""

    first: np.ndarray  # (n, d)
    second: np.ndarray  # (n, w)
    kept: np.ndarray | None  # of the table's rows; None where all are


def permuted_norms(pairs: Sequence[PairedDirections], orders: Sequence[np.ndarray]) -> np.ndarray:
    """The largest singular value of every pair for every order of the table's rows on its first side, (orders, pairs).

    Pairs with one first side are multiplied at once, and no others are held meanwhile.
    """
    together: dict[tuple[int, int], list[int]] = {}
    for i, pair in enumerate(pairs):
        together.setdefault((id(pair.first), id(pair.kept)), []).append(i)
    found = np.empty((len(orders), len(pairs)))
    for places in together.values():
        found[:, places] = _norms_of_one_side([pairs[i] for i in places], orders)
    return found


def _norms_of_one_side(pairs: Sequence[PairedDirections], orders: Sequence[np.ndarray]) -> np.ndarray:
    """The same of pairs with one first side; zeros make the second sides equally wide, and change no singular value."""
    first, _, kept = pairs[0]
    width = max(pair.second.shape[1] for pair in pairs)
    seconds = np.hstack([np.pad(pair.second, ((0, 0), (0, width - pair.second.shape[1]))) for pair in pairs])
    found = np.empty((len(orders), len(pairs)))
    for values, order in zip(found, orders, strict=True):
        own = order if kept is None else np.argsort(order[kept])
        moment = np.take(first, own, axis=0).T @ seconds / len(first)
        each = np.ascontiguousarray(moment.reshape(len(moment), -1, width).transpose(1, 2, 0))  # (pairs, w, d)
        squares = np.linalg.eigvalsh(each @ each.transpose(0, 2, 1))[:, -1]  # a third of the time of an SVD
        values[:] = np.sqrt(np.maximum(squares, 0.0))
    return found
