"""The rotation of largest likelihood when no source has an assumed shape."""

import numpy as np
from scipy.linalg import expm

from latentviews._numbers import TINY, smoothed_bins
from latentviews.core.features.bins import linear_bins

BINS = 512
REACH = 6.0  # standard deviations that the grid of a source covers; rows beyond it count at its ends
WIDTH = 1.06  # of the rule of thumb n^(-1/5): scores need a wider kernel than densities do
STEP = 0.5  # the largest rotation of one step, in radians


def most_likely_rotation(sources: np.ndarray, max_iter: int, tol: float) -> tuple[np.ndarray, int, bool]:
    """The rotation of uncorrelated sources (n, k) to independent ones, the steps it took, and whether they ended.

    Newton's steps for the likelihood Σ_h log p_h(s_h) over rotations, where p_h is the source's own smoothed histogram:
    with scores ψ = −p'/p the gradient is E[ψ_a s_b] − E[ψ_b s_a] and the curvature E[ψ_a'] + E[ψ_b'] − E[ψ_a s_a] −
    E[ψ_b s_b] (Hyvärinen 1999, whose contrast stands in place of the scores).
    """
    rotation = np.eye(sources.shape[1])
    for step in range(max_iter):
        s = sources @ rotation.T
        psi, slope = zip(*(_scores(column) for column in s.T), strict=True)
        products = np.array(psi) @ s / len(s)
        curvature = np.array(slope) - np.diag(products)
        both = curvature[:, None] + curvature[None, :]
        turn = (products - products.T) / np.where(np.abs(both) > 1e-3, both, 1e-3)
        turn = np.clip(-turn, -STEP, STEP)
        rotation = expm(turn) @ rotation
        if np.max(np.abs(turn), initial=0.0) < tol:
            return rotation, step + 1, True
    return rotation, max_iter, False


def _scores(s: np.ndarray) -> tuple[np.ndarray, float]:
    """The score −p'/p of one source at its rows, and the mean of its derivative: E[ψ'] = E[ψ²] for its own density."""
    grid = np.linspace(-REACH, REACH, BINS)
    step = grid[1] - grid[0]
    width = WIDTH * len(s) ** -0.2
    bins = linear_bins(np.clip(s, -REACH, REACH), grid)
    density = smoothed_bins(np.asarray(bins.sum(axis=0)).ravel(), width / step) + TINY
    floor = 1e-6 * density.max()
    score = -np.gradient(density, step) / np.maximum(density, floor)
    return bins @ score, float(np.mean(bins @ np.gradient(score, step)))
