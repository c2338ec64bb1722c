"""Sums over rows of single columns on grids, with buffers that are used again for every batch."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from latentviews.core.features.bins import BinnedFeatures, GridFeatures

ROWS = 16_000  # of a batch at most; no power of two, whose multiples share lines of a cache


class GridCells:
    """Columns of a table and a uniform grid for each, with buffers for ``size`` rows."""

    def __init__(self, columns: Sequence[int], grids: Sequence[np.ndarray], size: int, numbers: Any):
        self.columns = columns
        self.grids = grids
        self.place, self.left = np.zeros(size), np.zeros(size, dtype=numbers)

    def cells(self, rows: np.ndarray, t: int) -> tuple[np.ndarray, np.ndarray]:
        """The grid points to the left of the values of column t, and their distances in steps, in the buffers."""
        grid, size = self.grids[t], len(rows)
        place, left = self.place[:size], self.left[:size]
        np.subtract(rows[:, self.columns[t]], grid[0], out=place)
        place *= 1 / (grid[1] - grid[0])
        np.maximum(place, 0.0, out=place)
        np.minimum(place, np.nextafter(len(grid) - 1.0, 0.0), out=place)  # its whole part is no last grid point
        np.copyto(left, place, casting="unsafe")
        place -= left
        return left, place


class LookedUp(GridCells):
    """Sums over some views of functions on their grids, straight between grid points: z_g = Σ_{t∈g} f_t(x_t)."""

    def __init__(
        self,
        columns: Sequence[int],
        grids: Sequence[np.ndarray],
        tables: Sequence[np.ndarray],
        groups: Sequence[Sequence[int]],
        size: int,
    ):
        super().__init__(columns, grids, size, np.intp)  # what `take` takes
        self.tables = [np.ascontiguousarray(table.T) for table in tables]  # (k, G_t)
        self.steps = [np.diff(table, axis=1) for table in self.tables]
        self.groups = groups
        self.rank = tables[0].shape[1]
        self.z, self.more = np.empty((len(groups) * self.rank, size)), np.empty(size)

    def __call__(self, rows: np.ndarray) -> list[np.ndarray]:
        """The z_g, (k, n) each, in the buffer."""
        found = [self.z[g * self.rank : (g + 1) * self.rank, : len(rows)] for g in range(len(self.groups))]
        for z, group in zip(found, self.groups, strict=True):
            for i, t in enumerate(group):
                self._add(z, rows, t, first=i == 0)
        return found

    def _add(self, z: np.ndarray, rows: np.ndarray, t: int, *, first: bool) -> None:
        """The functions of view t in place of z, or added to it."""
        left, share = self.cells(rows, t)
        more = self.more[: len(rows)]
        for one, table, steps in zip(z, self.tables[t], self.steps[t], strict=True):
            if first:
                table.take(left, out=one, mode="clip")
            else:
                one += table.take(left, out=more, mode="clip")
            one += np.multiply(steps.take(left, out=more, mode="clip"), share, out=more)


class Gathered(GridCells):
    """Sums over rows in the cells of every grid: Σ_rows b_t(x_t) z_gᵀ for every column t and the groups g without it.

    The sparse matrix of a column is made once: its entries are buffers.
    """

    def __init__(
        self,
        columns: Sequence[int],
        grids: Sequence[np.ndarray],
        groups: Sequence[Sequence[int]],
        rank: int,
        size: int,
    ):
        super().__init__(columns, grids, size, np.int32)
        self.groups = groups
        self.points, self.shares = np.zeros((size, 2), dtype=np.int32), np.zeros((size, 2))
        entries = self.shares.ravel(), self.points.ravel(), np.arange(0, 2 * size + 1, 2, dtype=np.int32)
        self.matrices = [sparse.csc_array(entries, shape=(len(grid), size)) for grid in grids]
        self.rank, self.rows = rank, np.zeros((size, len(groups) * rank))

    def __call__(self, rows: np.ndarray, z: np.ndarray) -> list[np.ndarray]:
        """The sums of all z_g, (n_groups k, n), for every column: (G_t, n_groups k), zero for its own group."""
        self.rows[: len(rows)] = z.T
        self.rows[len(rows) :] = 0.0
        return [self._of_column(rows, t) for t in range(len(self.grids))]

    def _of_column(self, rows: np.ndarray, t: int) -> np.ndarray:
        left, share = self.cells(rows, t)
        size = len(rows)
        self.points[:size, 0] = left
        np.add(left, 1, out=self.points[:size, 1])
        np.subtract(1.0, share, out=self.shares[:size, 0])
        self.shares[:size, 1] = share
        sums = self.matrices[t] @ self.rows
        own = next(g for g, group in enumerate(self.groups) if t in group)
        sums[:, own * self.rank : (own + 1) * self.rank] = 0.0
        return sums


def column_grids(embed: Any) -> tuple[list[int], list[np.ndarray]] | None:
    """The columns and grids of views all of which are single columns on grids without borders; None of others."""
    features = getattr(embed, "features", ())
    for phi in features:
        space = getattr(getattr(phi, "kernel_", None), "space", None)
        if not isinstance(phi, BinnedFeatures | GridFeatures) or (space is not None and space.bordered):
            return None
    return ([group[0] for group in embed.columns], [phi.grid_ for phi in features]) if features else None
