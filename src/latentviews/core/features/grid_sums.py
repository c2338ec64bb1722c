"""Sums over rows of single columns on grids, with buffers that are used again for every batch."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from latentviews.core.features.bins import BinnedFeatures, GridFeatures

ROWS = 32_000  # of a batch at most; no power of two, whose multiples share lines of a cache
NUMBERS = 500_000  # of their whitened vectors at most
FEW_CLASSES = 3  # of which one product of a larger matrix is quicker than several
IN_CACHE = 2**16  # numbers


def grid_rows(width: int) -> int:
    """The most rows of a batch with so many whitened coordinates: calls are few, and numbers stay in a cache."""
    return max(min(ROWS, NUMBERS // width), 1)


class GridCells:
    """Columns of a table and a uniform grid for each, with buffers for ``size`` rows."""

    def __init__(self, columns: Sequence[int], grids: Sequence[np.ndarray], size: int, numbers: Any):
        self.columns = columns
        self.scales = [(grid[0], 1 / (grid[1] - grid[0])) for grid in grids]
        self.ends = [np.nextafter(len(grid) - 1.0, 0.0) for grid in grids]  # left of the last grid point
        self.place, self.whole, self.left = np.zeros(size), np.zeros(size), np.zeros(size, dtype=numbers)

    def places(self, rows: np.ndarray, t: int) -> tuple[np.ndarray, np.ndarray]:
        """Where the values of column t are on its grid, and the grid points to their left, in the buffers."""
        place, left, (low, per_unit) = self.place[: len(rows)], self.left[: len(rows)], self.scales[t]
        np.subtract(rows[:, self.columns[t]], low, out=place)
        place *= per_unit
        np.clip(place, 0.0, self.ends[t], out=place)
        np.copyto(left, place, casting="unsafe")
        return place, left


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
        self.tables = [_lines(table.T) for table in tables]  # (k, G_t - 1)
        self.groups, self.rank = groups, tables[0].shape[1]
        self.z = np.ones((len(groups) * self.rank + 1, size))  # the last row stays one
        self.more, self.taken = np.empty(size), np.empty(size, dtype=complex)
        rows = self.rank**2 + 2 * self.rank
        rows += rows % 2  # even, for the processor's vectors
        self.factors = np.zeros((rows, min(size, max(IN_CACHE // rows, 1))))

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """The z_g, (n_groups k, n), in a buffer."""
        z = self.z[:-1, : len(rows)]
        for one, group in zip(np.split(z, len(self.groups)), self.groups, strict=True):
            for i, t in enumerate(group):
                self._add(one, rows, t, first=i == 0)
        return z

    def _add(self, z: np.ndarray, rows: np.ndarray, t: int, *, first: bool) -> None:
        """The functions of view t in place of z, or added to it."""
        place, left = self.places(rows, t)
        more, taken = self.more[: len(rows)], self.taken[: len(rows)]
        level, slope = taken.real, taken.imag
        for one, table in zip(z, self.tables[t], strict=True):
            table.take(left, out=taken, mode="wrap")  # they are in range; of the ways to ensure it the quickest
            here = one if first else more
            np.add(np.multiply(slope, place, out=here), level, out=here)
            if not first:
                one += more

    def products(self, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Σ_rows z_i z_jᵀ of three groups, zero for i = j, and Σ_rows z_1 ⊗ z_2 ⊗ z_3, of the z in the buffer."""
        k, z, width = self.rank, self.z[:, :n_rows], self.factors.shape[1]
        found, two = np.zeros((len(self.factors), k + 1)), slice(k * k, k * k + 2 * k)  # rows of the first two groups
        for start in range(0, n_rows, width):
            part = z[:, start : start + width]
            factors = self.factors[:, : part.shape[1]]
            np.multiply(part[:k, None], part[k : 2 * k], out=factors[: k * k].reshape(k, k, -1))
            factors[two] = part[: 2 * k]
            found += factors @ part[2 * k :].T  # products with the third and, as the last row is one, their sums
        upper = np.zeros((3 * k, 3 * k))
        upper[:k, k : 2 * k] = found[: k * k, k].reshape(k, k)
        upper[: 2 * k, 2 * k :] = found[two, :k]
        return upper + upper.T, found[: k * k, :k].reshape(k, k, k)


def _lines(values: np.ndarray) -> np.ndarray:
    """The lines between values (k, G) at 0, 1, 2, …, as complex numbers, so that one take is of both.

    At a place x on the grid a line is at its real part and x times its imaginary one.
    """
    steps = np.diff(values, axis=1)
    return values[:, :-1] - steps * np.arange(steps.shape[1]) + 1j * steps


class Gathered(GridCells):
    """Sums over rows in the cells of every grid: Σ_rows b_t(x_t) z_gᵀ for every column t and the groups g without it.

    One sparse matrix has the cells of all columns, those of a grid below those of another. It is made once: its entries
    are buffers.
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
        entries = 2 * len(grids)  # of a row
        *self.first, n_cells = np.cumsum([0, *map(len, grids)]).tolist()
        self.points, self.shares = np.zeros((size, entries), dtype=np.int32), np.zeros((size, entries))
        starts = np.arange(0, entries * size + 1, entries, dtype=np.int32)
        self.matrix = sparse.csc_array((self.shares.ravel(), self.points.ravel(), starts), shape=(n_cells, size))
        self.rank, self.width = rank, len(groups) * rank
        self.rows = np.zeros((size, self.width + self.width % 2))  # even, for the processor's vectors
        self.own = [next(g for g, group in enumerate(groups) if t in group) for t in range(len(grids))]

    def __call__(self, rows: np.ndarray, z: np.ndarray) -> list[np.ndarray]:
        """The sums of all z_g, (n_groups k, n), for every column: (G_t, n_groups k), zero for its own group."""
        self.rows[: len(rows), : self.width] = z.T
        self.rows[len(rows) :] = 0.0
        for t in range(len(self.first)):
            self._fill(rows, t)
        found = np.split((self.matrix @ self.rows)[:, : self.width], self.first[1:])
        for own, sums in zip(self.own, found, strict=True):
            sums[:, own * self.rank : (own + 1) * self.rank] = 0.0
        return found

    def _fill(self, rows: np.ndarray, t: int) -> None:
        """The cells of column t and the rows' shares of them, in the matrix."""
        place, left = self.places(rows, t)
        points, shares = (part[: len(rows), 2 * t : 2 * t + 2] for part in (self.points, self.shares))
        np.add(left, self.first[t], out=points[:, 0])
        np.add(left, self.first[t] + 1, out=points[:, 1])
        place -= np.floor(place, out=self.whole[: len(rows)])
        np.subtract(1.0, place, out=shares[:, 0])
        shares[:, 1] = place


def column_grids(embed: Any) -> tuple[list[int], list[np.ndarray]] | None:
    """The columns and grids of views all of which are single columns on grids without borders; None of others."""
    features = getattr(embed, "features", ())
    for phi in features:
        space = getattr(getattr(phi, "kernel_", None), "space", None)
        if not isinstance(phi, BinnedFeatures | GridFeatures) or (space is not None and space.bordered):
            return None
    return ([group[0] for group in embed.columns], [phi.grid_ for phi in features]) if features else None
