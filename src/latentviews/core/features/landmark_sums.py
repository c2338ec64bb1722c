"""Sums over rows of views of several columns seen from landmarks, in blocks that stay in the processor's cache."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from latentviews._arrays import take_columns
from latentviews.core.features.landmarks import LandmarkFeatures
from latentviews.core.kernels.real import Gaussian

ROWS = 12_000  # of a batch at most; no power of two, whose multiples share lines of a cache
NUMBERS = 5 * 2**14  # of a block, less than a cache of the second level
EXACT = 2e-8  # rounding of an exponent that makes no difference
BITS = 1 / np.log(2)  # powers of two are quicker than those of e


class SeenFrom:
    """Values of a Gaussian kernel at landmarks y: exp(c + xᵀy - |x|²/2 - |y|²/2), in units of the bandwidths.

    The exponents, as powers of two, are one product of (x, |x|², 1) with (y, -1/2, c - |y|²/2) / log 2.
    """

    def __init__(self, phi: LandmarkFeatures, columns: list[int], size: int, dtype: Any):
        kernel, y = phi.kernel_, phi.landmarks_
        self.columns = columns
        self.scale = kernel._scale(len(columns))[:, None]
        self.centre = np.median(y, axis=0)[:, None]
        self.limit = np.sqrt(np.finfo(dtype).max / (8 * len(columns)))  # squares of larger numbers are out of range
        with np.errstate(over="ignore"):  # however far
            points = np.clip((y.T - self.centre) / self.scale, -self.limit, self.limit)
        height = 0.0 if phi.log_unit_ else kernel.log_height(len(columns))
        squares = (points * points).sum(axis=0)
        self.points = (BITS * np.vstack([points, np.full(len(y), -0.5), height - squares / 2])).astype(dtype)
        self.highest = BITS * height
        self.x = np.ones((len(columns) + 2, size), dtype=dtype)
        self.block = max(NUMBERS // len(y), 1)
        self.values = np.empty((self.block, len(y)), dtype=dtype)

    def blocks(self, rows: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Some rows at a time and the kernel between them and all landmarks, (rows, m), in a buffer."""
        dim = len(self.columns)
        x = self.x[:, : len(rows)]
        here, squares = x[:dim], x[dim]
        with np.errstate(over="ignore"):  # however far
            np.divide(np.subtract(take_columns(rows, self.columns).T, self.centre, out=here), self.scale, out=here)
            np.einsum("ji,ji->i", here, here, out=squares)
        largest = squares.max(initial=0.0)
        rounded = not largest * np.finfo(x.dtype).eps < EXACT
        if not largest < self.limit**2:
            np.clip(here, -self.limit, self.limit, out=here)
            np.einsum("ji,ji->i", here, here, out=squares)
        for start in range(0, len(rows), self.block):
            part = slice(start, min(start + self.block, len(rows)))
            values = self.values[: part.stop - start]
            np.matmul(x[:, part].T, self.points, out=values)
            if rounded:  # which can take a zero distance below zero
                np.minimum(values, self.highest, out=values)
            yield part, np.exp2(values, out=values)


class LandmarkSums:
    """Whitened vectors of rows whose views are seen from landmarks, and sums of other landmarks' values with them."""

    def __init__(
        self,
        seen: Any,
        gathered: Any,
        maps: Sequence[np.ndarray],
        groups: Sequence[Sequence[int]],
        size: int,
        dtype: Any,
    ):
        self.seen, self.gathered = (
            [SeenFrom(phi, group, size, dtype) for phi, group in zip(views.features, views.columns, strict=True)]
            for views in (seen, gathered)
        )
        self.maps = [np.ascontiguousarray(table, dtype=dtype) for table in maps]  # (m, k)
        self.groups, self.rank = groups, maps[0].shape[1]
        self.z = np.empty(((2 * len(groups) - 1) * self.rank, size), dtype=dtype)  # all groups, all but the last again
        self.rows = np.empty((size, self.rank), dtype=dtype)

    def whitened(self, rows: np.ndarray) -> list[np.ndarray]:
        """The z_g = Σ_{t∈g} maps_tᵀ k(Z_t, x_t), (k, n) each; they stay in the buffer, too."""
        n, k, here = len(self.groups), self.rank, self.rows[: len(rows)]
        z = self.z[:, : len(rows)]
        for g, group in enumerate(self.groups):
            for i, t in enumerate(group):
                for part, values in self.seen[t].blocks(rows):
                    if i:
                        here[part] += values @ self.maps[t]
                    else:
                        np.matmul(values, self.maps[t], out=here[part])
            z[g * k : (g + 1) * k] = here.T
        z[n * k :] = z[: (n - 1) * k]
        return [np.asarray(z[g * k : (g + 1) * k], dtype=float) for g in range(n)]

    def gather(self, rows: np.ndarray) -> list[np.ndarray]:
        """Σ_rows k(Y_t, x_t) z_gᵀ for every view t, (m_t, n_groups k), zero for its own group: z is in the buffer."""
        n, k, found = len(self.groups), self.rank, []
        place = {t: g for g, group in enumerate(self.groups) for t in group}
        for t, seen in enumerate(self.gathered):
            own, sums = place[t], np.zeros((seen.points.shape[1], (n - 1) * k))
            for part, values in seen.blocks(rows):  # groups behind the own, then those before it
                sums += values.T @ self.z[(own + 1) * k : (own + n) * k, part].T  # quicker than its transpose
            behind, before = np.split(sums, [(n - 1 - own) * k], axis=1)
            found.append(np.hstack([before, np.zeros((len(sums), k)), behind]))
        return found


def sees_from_landmarks(embed: Any) -> bool:
    """Whether all views are several columns seen from landmarks by a Gaussian without borders."""
    features = getattr(embed, "features", ())
    return bool(features) and all(_is_gaussian(phi) for phi in features)


def _is_gaussian(phi: Any) -> bool:
    kernel, dim = getattr(phi, "kernel_", None), np.shape(getattr(phi, "landmarks_", ()))[-1]
    if type(phi) is not LandmarkFeatures or type(kernel) is not Gaussian or kernel.space.bordered:
        return False
    return dim > 1 and bool(kernel._scale(dim).min() > np.finfo(np.float32).smallest_normal)
