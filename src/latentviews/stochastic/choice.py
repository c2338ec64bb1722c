"""Bandwidths and penalties by how well every row is told from the others."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from latentviews._numbers import TINY
from latentviews.core.kernels.base import UnitHeight

RIDGES = 10.0 ** np.arange(-6, 3.1, 0.5)


def left_out_errors(kernel: Any, x: np.ndarray, targets: np.ndarray, ridges: np.ndarray) -> np.ndarray:
    """The mean squared errors, on rows left out in turn, of kernel ridge regression with a free constant.

    With S = 11ᵀ/n + K̃(K̃ + λ)⁻¹, K̃ the centred kernel, that of row i is (y_i − (Sy)_i) / (1 − S_ii): no fit is repeated.
    """
    gram = UnitHeight(kernel).gram(x, x)
    means = gram.mean(axis=0)
    values, vectors = np.linalg.eigh(gram - means - means[:, None] + means.mean())
    values = np.maximum(values, 0.0)
    along, squares = vectors.T @ (targets - targets.mean(axis=0)), vectors**2
    errors = []
    for ridge in ridges:
        left = ridge / np.maximum(values + ridge, TINY)  # no ridge, and no eigenvalue in some directions
        alone = np.maximum(squares @ left - 1 / len(x), np.finfo(float).eps)  # 1 − S_ii
        errors.append(np.mean(((vectors @ (left[:, None] * along)) / alone[:, None]) ** 2))
    return np.array(errors)


def choose(
    kernels: Sequence[Any], start: int, x: np.ndarray, targets: np.ndarray, ridges: np.ndarray
) -> tuple[Any, float]:
    """The kernel and the ridge λ of least error on rows left out, going from a kernel to its better neighbour."""
    found: dict[int, np.ndarray] = {}
    best = start
    while True:
        for one in range(max(best - 1, 0), min(best + 2, len(kernels))):
            if one not in found:
                found[one] = left_out_errors(kernels[one], x, targets, ridges)
        nearest = min(found, key=lambda one: found[one].min())
        if nearest == best:
            return kernels[best], float(ridges[np.argmin(found[best])])
        best = nearest
