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
    least = float(xp.finfo(x.dtype).smallest_normal)
    if scale.min() > SMALL and scale.min() > least:
        return x / in_library_of(scale, x)
    limit = float(xp.finfo(x.dtype).max) / 4
    with np.errstate(over="ignore"):
        return xp.clip(x / in_library_of(np.maximum(scale, least), x), min=-limit, max=limit)


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
    if isinstance(y, np.ndarray):
        center = np.median(y, axis=0) if len(y) > 1 else y.sum(axis=0)
    else:
        center = xp.mean(y, axis=0)
    x -= center
    y -= center
    if isinstance(x, np.ndarray):  # in place: copies of many columns are memory
        np.clip(x, -limit, limit, out=x)
        np.clip(y, -limit, limit, out=y)
        if len(y) == 1:
            return np.vecdot(x, x)[:, None]
    else:
        x, y = xp.clip(x, min=-limit, max=limit), xp.clip(y, min=-limit, max=limit)
    # in one product: every pass over the result takes about as long as that
    of_x, of_y = xp.vecdot(x, x)[:, None], xp.vecdot(y, y)[:, None]
    left = xp.concat([x, of_x, xp.ones_like(of_x)], axis=1)
    squares = left @ xp.concat([-2 * y, xp.ones_like(of_y), of_y], axis=1).T
    if isinstance(squares, np.ndarray):
        return np.maximum(squares, 0.0, out=squares)  # rounding can take a zero distance below zero
    return xp.clip(squares, min=0.0)
