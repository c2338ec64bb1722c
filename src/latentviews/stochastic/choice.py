"""Bandwidths and penalties by how well every row is told from the others."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from latentviews.core.kernels.base import UnitHeight

RIDGES = 10.0 ** np.arange(-6, 3.1, 0.5)


def left_out_errors(kernel: Any, x: np.ndarray, targets: np.ndarray, ridges: np.ndarray) -> np.ndarray:
    """The mean squared errors of kernel ridge regression with a free constant, for every row told from the others.

    With S = 11ᵀ/n + K̃(K̃ + λ)⁻¹, K̃ the centred kernel, that of row i is (y_i − (Sy)_i) / (1 − S_ii): no fit is repeated.
    """
    gram = UnitHeight(kernel).gram(x, x)
    means = gram.mean(axis=0)
    values, vectors = np.linalg.eigh(gram - means - means[:, None] + means.mean())
    values = np.maximum(values, 0.0)
    centred = targets - targets.mean(axis=0)
    along, squares = vectors.T @ centred, vectors**2
    errors = []
    for ridge in ridges:
        left = ridge / (values + ridge)
        alone = np.maximum(squares @ left - 1 / len(x), np.finfo(float).eps)  # 1 − S_ii
        errors.append(np.mean(((vectors @ (left[:, None] * along)) / alone[:, None]) ** 2))
    return np.array(errors)


def choose(
    kernels: Sequence[Any], x: np.ndarray, targets: np.ndarray, ridges: np.ndarray = RIDGES
) -> tuple[Any, float]:
    """The kernel and the ridge λ of least error on rows left out."""
    errors = np.array([left_out_errors(kernel, x, targets, ridges) for kernel in kernels])
    best, ridge = np.unravel_index(np.argmin(errors), errors.shape)
    return kernels[best], float(ridges[ridge])
