r"""Whether rows refute that views are independent inside classes, by correlations of their normal scores.

In a class in which rows have the shares w, their posteriors, the normal scores of the columns, by weighted ranks, have
the correlations R; its blocks between views are zero where views are independent. By Bartlett (1954), with
n = (Σ w)² / Σ w² rows,

.. math:: (n - 1 - (2d + 5) / 6) \Bigl(\sum_t \log |R_{tt}| - \log |R|\Bigr)

is about χ² with as many degrees of freedom as there are pairs of columns of different views.
"""

from itertools import pairwise

import numpy as np
from scipy.special import ndtri
from scipy.stats import chi2

from latentviews._numbers import TINY
from latentviews.core.tables import Columns
from latentviews.densities.gaussian_copulas import drawn_to_identity, to_correlations

RIDGE = 1e-6  # keeps columns that are functions of each other from a determinant of zero


def p_value_of_independence(table: np.ndarray, shares: np.ndarray, columns: Columns) -> float:
    """Of rows with these shares in the classes, (n, k), which were not fitted to them; one where they are too few."""
    used = [j for view in columns for j in view]
    complete = ~np.isnan(table[:, used]).any(axis=1)
    x, places = table[complete][:, used], np.cumsum([0, *(len(view) for view in columns)])
    between = (len(used) ** 2 - sum(len(view) ** 2 for view in columns)) // 2
    statistic, freedom = 0.0, 0
    for weights in shares[complete].T:
        rows = weights.sum() ** 2 / max(float((weights**2).sum()), TINY) - 1 - (2 * len(used) + 5) / 6
        if rows > len(used):
            statistic += rows * _log_ratio(x, weights, places)
            freedom += between
    return float(chi2.sf(statistic, freedom)) if freedom else 1.0


def _log_ratio(x: np.ndarray, weights: np.ndarray, places: np.ndarray) -> float:
    """Σ_t log |R_tt| - log |R|, the views between those places."""
    scores = np.stack([_normal_scores(column, weights) for column in x.T])
    scores -= np.average(scores, axis=1, weights=weights)[:, None]
    correlations = to_correlations(((scores * weights) @ scores.T)[None])
    R = drawn_to_identity(correlations, np.full(1, RIDGE))[0]
    inside = sum(np.linalg.slogdet(R[a:b, a:b])[1] for a, b in pairwise(places))
    return float(inside - np.linalg.slogdet(R)[1])


def _normal_scores(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Φ⁻¹ of the weighted share of rows below, half of those at the same value counted."""
    _, where = np.unique(x, return_inverse=True)
    mass = np.bincount(where, weights)
    below = (np.cumsum(mass) - mass / 2) / mass.sum()
    return ndtri(np.clip(below, TINY, 1 - 1e-12))[where]
