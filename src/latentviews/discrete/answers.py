"""Answers to categorical items: the distinct rows of a table of codes, and how often each occurs."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from latentviews._numbers import TINY

DENSE = 4_000_000  # cells of a table of indicators that are held one by one; beyond, only the ones are,
FEW = 16  # and so where an item has more categories than this on average


@dataclass(frozen=True, eq=False)
class Answers:
    """Distinct rows of answers, each with its number of rows: EM needs no more of the data."""

    codes: np.ndarray  # (n_patterns, n_items), the number of the answer, -1 where it is missing
    counts: np.ndarray  # (n_patterns,)
    sizes: tuple[int, ...]  # the categories of every item

    @cached_property
    def indicators(self) -> Any:
        """One column per category of every item, (n_patterns, Σ sizes): one where the pattern has it."""
        rows, items = np.nonzero(self.codes >= 0)
        columns = self.starts[items] + self.codes[rows, items]
        shape = len(self.codes), sum(self.sizes)
        table = sparse.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=shape)
        return table.toarray() if shape[0] * shape[1] <= DENSE and shape[1] <= FEW * len(self.sizes) else table

    @property
    def starts(self) -> np.ndarray:
        """Where the categories of every item begin."""
        return np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(int)

    @property
    def n_rows(self) -> float:
        """The rows, or the sum of their weights."""
        return float(self.counts.sum())

    @property
    def complete(self) -> "Answers":
        """The patterns without a missing answer."""
        return self.take(np.flatnonzero((self.codes >= 0).all(axis=1)))

    def take(self, patterns: np.ndarray) -> "Answers":
        """Some of the patterns."""
        return Answers(self.codes[patterns], self.counts[patterns], self.sizes)

    @property
    def margins(self) -> np.ndarray:
        """The share of every category among the answers to its item, (Σ sizes,)."""
        totals = np.asarray(self.indicators.T @ self.counts)
        return totals / np.maximum(per_item(totals, self), TINY)

    def as_table(self) -> np.ndarray:
        """The patterns as floats with NaN where an answer is missing."""
        return np.where(self.codes >= 0, self.codes, np.nan).astype(float)


def per_item(values: np.ndarray, answers: Answers) -> np.ndarray:
    """The sum over the categories of its item in the place of every category, along the first axis."""
    return np.repeat(np.add.reduceat(values, answers.starts, axis=0), answers.sizes, axis=0)


def distinct_answers(
    codes: np.ndarray, sizes: Sequence[int], weights: np.ndarray | None = None
) -> tuple[Answers, np.ndarray]:
    """The distinct rows of a table of codes and the number of its pattern for every row.

    Rows that count for nothing or have no answer are in no sum, but keep their pattern.
    """
    first, inverse = _distinct_rows(codes, sizes)
    counts = np.bincount(inverse, weights=weights, minlength=len(first)).astype(float)
    return Answers(codes[first], counts, tuple(int(size) for size in sizes)), inverse


def _distinct_rows(codes: np.ndarray, sizes: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """The first row of every pattern, and the pattern of every row: by one number per row while that fits."""
    keys = np.zeros(len(codes), dtype=np.int64)
    room = 1
    for column, size in zip(codes.T, sizes, strict=True):
        if room > 2**62 // (int(size) + 1):  # the numbers so far become those of distinct beginnings
            keys = np.unique(keys, return_inverse=True)[1]
            room = int(keys.max()) + 1
        keys = keys * (int(size) + 1) + column + 1
        room *= int(size) + 1
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return first, inverse.ravel()
