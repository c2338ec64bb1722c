"""Convex combinations of densities by held-out likelihood."""

import numpy as np

from latentviews._numbers import TINY, row_shares

STACK_STEPS = 500


def stacking_shares(log_densities: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """The convex combination of densities with the highest likelihood on these rows, by EM (Smyth & Wolpert 1999)."""
    densities = np.exp(log_densities - log_densities.max(axis=1, keepdims=True))
    rows = row_shares(len(densities), weights)
    shares = np.full(densities.shape[1], 1 / densities.shape[1])
    for _ in range(STACK_STEPS):
        shares = shares * (densities.T @ (rows / np.maximum(densities @ shares, TINY)))
    return shares / shares.sum()
