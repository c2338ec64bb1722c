"""Distances between rows, however far they lie from each other."""

import math
from typing import Any

import numpy as np

from latentviews._arrays import in_library_of, namespace

SMALL = 1e-100  # bandwidths below which rows may be beyond the range of numbers in their units


def in_units(x: Any, scale: np.ndarray) -> Any:
    """Rows over bandwidths, one per column; the largest numbers there are where a quotient is beyond them."""
    xp = namespace(x)
    if not xp.isdtype(x.dtype, "real floating"):  # whole numbers
        x = xp.astype(x, xp.float64)
    least, most = float(xp.finfo(x.dtype).smallest_normal), float(xp.finfo(x.dtype).max)
    if max(SMALL, least) < scale.min() and scale.max() <= most:
        return x / in_library_of(scale, x)
    with np.errstate(over="ignore"):
        return xp.clip(x / in_library_of(np.clip(scale, least, most), x), min=-most / 4, max=most / 4)


def squared_distances(x: Any, y: Any) -> Any:
    """Squared Euclidean distances between rows, in whose place intermediate results may be put."""
    xp = namespace(x)
    if x.shape[1] == 1:
        with np.errstate(over="ignore"):  # infinitely far
            return (x - y.T) ** 2
    limit = math.sqrt(float(xp.finfo(x.dtype).max) / (8 * x.shape[1]))  # squares of larger numbers are out of range
    if isinstance(x, np.ndarray) and len(y) == 1:
        x -= y
        np.clip(x, -limit, limit, out=x)
        return xp.vecdot(x, x)[:, None]
    # large offsets would cost digits in the difference below, and so would a mean that an outlier draws away
    center = _middle(y)
    x -= center
    y -= center
    if not isinstance(x, np.ndarray):
        return xp.clip(_in_one_product(xp.clip(x, min=-limit, max=limit), xp.clip(y, min=-limit, max=limit)), min=0.0)
    np.clip(x, -limit, limit, out=x)
    np.clip(y, -limit, limit, out=y)
    if x.shape[1] < len(y):
        squares = _in_one_product(x, y)
    else:  # copies of many columns are memory
        squares = x @ (-2 * y).T
        squares += xp.vecdot(x, x)[:, None]
        squares += xp.vecdot(y, y)
    return np.maximum(squares, 0.0, out=squares)  # rounding can take a zero distance below zero


def _middle(y: Any) -> Any:
    """The median of every column, or on a device, where that takes long, the mean."""
    if not isinstance(y, np.ndarray):
        return namespace(y).mean(y, axis=0)
    return np.median(y, axis=0) if len(y) else 0.0


def _in_one_product(x: Any, y: Any) -> Any:
    """|x|² - 2 xᵀy + |y|² of all pairs of rows: every pass over the result would take about as long as the product."""
    xp = namespace(x)
    of_x, of_y = xp.vecdot(x, x)[:, None], xp.vecdot(y, y)[:, None]
    left = xp.concat([x, of_x, xp.ones_like(of_x)], axis=1)
    return left @ xp.concat([-2 * y, xp.ones_like(of_y), of_y], axis=1).T
