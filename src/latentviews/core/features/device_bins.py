"""Linear bins where the rows live: what `scipy.sparse` is in main memory, from takes and counts alone."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from latentviews._arrays import in_doubles, in_library_of, namespace, on_host


@dataclass(frozen=True, eq=False)
class DeviceBins:
    """A matrix with two entries in every row, in columns c and c + 1, in another array library.

    It offers what sums over rows need of a sparse matrix: ``bins @ table``, ``bins.T @ values`` and ``bins.T @ bins``.
    """

    left: Any  # (n,), the columns c
    device_entries: Any  # (n,), there
    right_entries: Any  # (n,), in the columns c + 1
    size: int  # columns

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.left.shape[0], self.size

    def weighed(self, weights: Any) -> "DeviceBins":
        """The rows times their weights."""
        weights = in_library_of(weights, self)
        return replace(self, device_entries=self.device_entries * weights, right_entries=self.right_entries * weights)

    def beside(self, at: Any, n_masses: int) -> "DeviceBins":
        """The same with further columns: the rows with ``at`` (n,) not negative have a one there and nothing else."""
        xp, off = namespace(at), at < 0
        zero = xp.zeros_like(self.right_entries)
        left = xp.where(off, self.left, xp.astype(self.size - 1 + at, self.left.dtype))
        right = xp.where(off, self.right_entries, zero + 1)
        return DeviceBins(left, xp.where(off, self.device_entries, zero), right, self.size + n_masses)

    def __matmul__(self, table: Any) -> Any:
        """The rows times a dense matrix: (n, m)."""
        xp, table = namespace(self.left), in_library_of(table, self)
        first = self.device_entries[:, None] * xp.take(table, self.left, axis=0)
        return first + self.right_entries[:, None] * xp.take(table, self.left + 1, axis=0)

    @property
    def T(self) -> "Transposed":  # noqa: N802 - as arrays call it
        """The transpose."""
        return Transposed(self)

    def on_host(self) -> sparse.csr_array:
        """The same in SciPy."""
        left = np.asarray(on_host(self.left))
        shares = np.stack([on_host(self.device_entries), on_host(self.right_entries)], axis=1)
        starts = np.arange(0, 2 * len(left) + 1, 2)
        return sparse.csr_array((shares.ravel(), np.stack([left, left + 1], axis=1).ravel(), starts), shape=self.shape)


@dataclass(frozen=True, eq=False)
class Transposed:
    """The transpose of `DeviceBins`, to be multiplied from the right: sums over the rows of a cell."""

    bins: DeviceBins

    def __matmul__(self, other: Any) -> Any:
        """Σ_i row_i ⊗ other_i, dense."""
        bins, xp = self.bins, namespace(self.bins.left)
        if isinstance(other, DeviceBins):
            return self._joint(other)
        values = in_doubles(other)
        parts = [(bins.left, bins.device_entries), (bins.left + 1, bins.right_entries)]
        if hasattr(values, "index_add"):  # PyTorch: whole rows at a time
            sums = xp.zeros((bins.size, values.shape[1]), dtype=values.dtype, device=values.device)
            for cells, entries in parts:
                sums.index_add_(0, cells, values * entries[:, None])
            return sums
        columns = [values[:, j] for j in range(values.shape[1])]
        sums = [sum(xp.bincount(cells, entries * v, bins.size) for cells, entries in parts) for v in columns]
        return xp.stack(sums, axis=1)

    def _joint(self, other: DeviceBins) -> Any:
        """Σ_i row_i ⊗ row'_i: the four corners of every row's cell, counted."""
        xp, rows, columns = namespace(self.bins.left), self.bins.size, other.size
        sums = 0.0
        for i, ours in enumerate((self.bins.device_entries, self.bins.right_entries)):
            for j, theirs in enumerate((other.device_entries, other.right_entries)):
                cells = xp.astype(self.bins.left + i, xp.int64) * columns + (other.left + j)
                sums = sums + xp.bincount(cells, ours * theirs, rows * columns)
        return xp.reshape(sums, (rows, columns))


def device_bins(x: Any, grid: np.ndarray) -> DeviceBins:
    """The matrix that shares every x (n,) between the two points of a uniform grid beside it."""
    xp = namespace(x)
    place = (in_doubles(x) - float(grid[0])) / float(grid[1] - grid[0])
    place = xp.clip(place, 0.0, float(len(grid) - 1))
    left = xp.clip(xp.astype(place, xp.int32), None, len(grid) - 2)
    right = place - left
    return DeviceBins(left, 1 - right, right, len(grid))
