"""Largest singular values of many cross-covariances whose rows are permuted: all that share a side in one product."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

BUFFER = 2**17  # numbers of a side whose rows are permuted at once


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
    at_once, found = max(1, BUFFER // max(first.size, 1)), []
    for start in range(0, len(orders), at_once):
        own = np.stack(orders[start : start + at_once])
        own = own if kept is None else np.argsort(own[:, kept], axis=1)
        moments = np.take(first, own, axis=0).transpose(0, 2, 1) @ seconds / len(first)  # (orders, d, pairs · w)
        each = moments.reshape(*moments.shape[:2], -1, width).transpose(0, 2, 3, 1)
        each = np.ascontiguousarray(each)  # (orders, pairs, w, d)
        squares = np.linalg.eigvalsh(each @ each.swapaxes(2, 3))[..., -1]  # a third of the time of an SVD
        found.append(np.sqrt(np.maximum(squares, 0.0)))
    return np.concatenate(found)
