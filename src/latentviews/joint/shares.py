"""Margins of codes and of angles: shares of values, smoothed around a circle."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import ndtr

from latentviews._numbers import TINY
from latentviews.joint.margins import Margins, no_columns


@dataclass(frozen=True, eq=False)
class Shares(Margins):
    """One column of codes, or of angles cut into bins, with the share of each in every component.

    The measure is counting for codes; for angles, densities are constant on a bin of the circle.
    """

    values: np.ndarray  # (v,), codes, or the middles of bins
    width: float  # of a bin, 0 for codes
    pseudo: np.ndarray  # (v,), the column's own distribution, one row of which is added to every component
    smoother: np.ndarray | None = None  # (v, v), for angles
    shares: np.ndarray = field(default_factory=no_columns, repr=False)  # (v + 1, k), the last for unseen values

    @classmethod
    def of_codes(cls, table: np.ndarray, column: int) -> "Shares":
        """The values that a column has."""
        x = table[~np.isnan(table[:, column]), column]
        values, counts = np.unique(x, return_counts=True)
        return cls([column], values, 0.0, counts / counts.sum())

    @classmethod
    def of_angles(cls, table: np.ndarray, column: int, smooth: Any, n_bins: int = 256) -> "Shares":
        """Bins of the circle; ``smooth`` is a kernel whose Gram matrix between their middles smooths them."""
        period = smooth.space.period
        width = period / n_bins
        values = -period / 2 + width * (np.arange(n_bins) + 0.5)
        gram = smooth.gram(values[:, None], values[:, None])
        return cls([column], values, width, np.full(n_bins, 1 / n_bins), gram / gram.sum(axis=0))

    def _cells(self, x: np.ndarray) -> np.ndarray:
        """The number of every row's value; the last for unknown codes and missing values."""
        x, size = x[:, 0], len(self.values)
        if self.width:
            turned = np.mod(np.where(np.isnan(x), 0.0, x) - self.values[0] + self.width / 2, self.width * size)
            return np.where(np.isnan(x), size, np.minimum((turned / self.width).astype(int), size - 1))
        place = np.minimum(np.searchsorted(self.values, x), size - 1)
        return np.where(self.values[place] == x, place, size)

    def log_density(self, x: np.ndarray) -> np.ndarray:
        """Log-densities, (n, 1, k)."""
        heights = np.log(np.maximum(self.shares, TINY)) - (math.log(self.width) if self.width else 0.0)
        return heights[self._cells(x)][:, None, :]

    def sums(self, x: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """The components' mass in every value, (v, k)."""
        cells, size = self._cells(x), len(self.values)
        known = cells < size
        return np.stack([np.bincount(cells[known], column[known], size) for column in shares.T], axis=1)

    def updated(self, sums: np.ndarray, counts: np.ndarray) -> "Shares":
        """Shares, drawn towards the whole column by one row, and one row in a million for codes never seen."""
        mass = sums if self.smoother is None else self.smoother @ sums
        mass = mass + self.pseudo[:, None]
        unseen = np.full((1, mass.shape[1]), 0.0 if self.width else 1e-6)
        return replace(self, shares=np.concatenate([(1 - unseen) * mass / mass.sum(axis=0), unseen]))

    def draw(self, scores: np.ndarray, component: int) -> np.ndarray:
        """Values by the ranks of normal scores (n, 1)."""
        cumulative = np.cumsum(self.shares[:-1, component])
        share = ndtr(scores[:, 0]) * cumulative[-1]
        cells = np.minimum(np.searchsorted(cumulative, share, side="right"), len(self.values) - 1)
        if not self.width:
            return self.values[cells][:, None]
        inside = (share - np.concatenate([[0.0], cumulative])[cells]) / np.diff(cumulative, prepend=0.0)[cells]
        return (self.values[cells] + self.width * (inside - 0.5))[:, None]

    def take(self, places: Sequence[int]) -> "Shares":
        """The column."""
        return self
