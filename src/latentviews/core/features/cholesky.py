"""Incomplete Cholesky factors k(x, x) ≈ F Fᵀ, which pick landmarks and make features of grids."""

import math
from collections.abc import Callable

import numpy as np

from latentviews.core.kernels.base import Kernel
from latentviews.core.kernels.distances import in_units
from latentviews.core.kernels.real import Gaussian

AT_ONCE = 1024  # points of a column between which all values of a kernel are cheaper than some at a time
EVEN = 1e-9  # steps of a grid differ by rounding


def checked_values(values: np.ndarray) -> np.ndarray:
    """Values of the kernel, if they are in range and tell anything."""
    if not np.all(np.isfinite(values)):
        raise ValueError("The values of the kernel are out of range; scale the rows.")
    if not np.any(values):
        raise ValueError("The kernel is zero between all rows that landmarks are picked from.")
    return values


def pivoted_cholesky(
    kernel: Kernel, x: np.ndarray, size: int, tol: float, pick: Callable[[np.ndarray], int]
) -> tuple[list[int], np.ndarray]:
    """Incomplete Cholesky k(x, x) ≈ F Fᵀ: the pivots, picked by what is not yet explained, and F."""
    residual = np.array(checked_values(kernel.diagonal(x)), dtype=float)
    stop = tol * residual.sum()
    factor, squares = np.empty((size, len(x))), np.empty(len(x))  # Fᵀ, whose rows are read again and again
    values_at = _columns(kernel, x)
    chosen: list[int] = []
    while len(chosen) < size and residual.sum() > stop:
        pivot, i = pick(residual), len(chosen)
        column = np.matmul(factor[:i, pivot], factor[:i], out=factor[i])
        np.subtract(values_at(pivot), column, out=column)
        if column[pivot] <= 0:  # the residual there was rounding
            residual[pivot] = 0.0
            continue
        column /= math.sqrt(column[pivot])
        residual -= np.multiply(column, column, out=squares)
        np.maximum(residual, 0.0, out=residual)
        residual[pivot] = 0.0
        chosen.append(pivot)
    return chosen, np.ascontiguousarray(factor[: len(chosen)].T)


def _columns(kernel: Kernel, x: np.ndarray) -> Callable[[int], np.ndarray]:
    """What gives the kernel between all rows and the one with a number."""
    if x.shape[1] == 1 and len(x) <= AT_ONCE:
        whole = kernel.gram(x, x)
        return lambda pivot: whole[pivot]  # the same, and numbers side by side
    if type(kernel) is Gaussian and not kernel.space.bordered:
        return _gaussian_columns(kernel, x)
    if _knows_differences(kernel) and _is_even(x):
        first, place = kernel.gram(x, x[:1])[:, 0], np.arange(len(x))
        return lambda pivot: first[np.abs(place - pivot)]
    return lambda pivot: kernel.gram(x, x[[pivot]])[:, 0]


def _knows_differences(kernel: Kernel) -> bool:
    """Whether a kernel is a function of x − y alone."""
    return hasattr(kernel, "frequencies") and not getattr(getattr(kernel, "space", None), "bordered", False)


def _is_even(x: np.ndarray) -> bool:
    """Whether rows of one column are a grid of equal steps."""
    steps = np.diff(x, axis=0)
    return x.shape[1] == 1 and len(x) > 1 and bool(np.ptp(steps) <= EVEN * abs(steps[0, 0]))


def _gaussian_columns(kernel: Gaussian, x: np.ndarray) -> Callable[[int], np.ndarray]:
    """The same for a Gaussian without borders, the rows in units of its bandwidths once."""
    units = np.ascontiguousarray(in_units(x, kernel._scale(x.shape[1])).T)
    height = float(np.exp(kernel.log_height(x.shape[1])))

    def column(pivot: int) -> np.ndarray:
        with np.errstate(over="ignore"):  # infinitely far
            gaps = units - units[:, [pivot]]
            return height * np.exp(-0.5 * np.einsum("ji,ji->i", gaps, gaps))

    return column


def drawn(residual: np.ndarray, rng: np.random.Generator) -> int:
    """An index drawn in proportion to the residual."""
    cumulative = np.cumsum(residual)
    return int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right").clip(max=len(residual) - 1))


def largest(residual: np.ndarray) -> int:
    """The index of the largest residual."""
    return int(residual.argmax())
