"""The algebra of Gaussian copulas: correlations of normal scores, their log-density, regressions and draws.

The components of a mixture have normal scores z with means m_h and covariances S_h (zero and a correlation matrix
unless some columns are given); arrays hold the components first: covariances (k, c, c), means (k, c), scores (k, c, n).
"""

from typing import Any, NamedTuple

import numpy as np


class Pattern(NamedTuple):
    """Rows that have the same columns."""

    rows: Any  # (m,), their numbers, or a slice of all
    columns: np.ndarray  # those that they have


def patterns(present: np.ndarray) -> list[Pattern]:
    """The rows of (n, c), true where a value is present, put together by the columns they have."""
    if present.all():
        return [Pattern(slice(None), np.arange(present.shape[1]))]
    kinds, which = np.unique(present, axis=0, return_inverse=True)
    which = which.ravel()
    return [Pattern(np.flatnonzero(which == i), np.flatnonzero(kind)) for i, kind in enumerate(kinds)]


def block(covariances: np.ndarray, rows: Any, columns: Any) -> np.ndarray:
    """Some rows and columns of every matrix."""
    return covariances[:, rows][:, :, columns]


def log_copula(scores: np.ndarray, covariances: np.ndarray, means: np.ndarray | None = None) -> np.ndarray:
    """Log N(z; m_h, S_h) - Σ_t log N(z_t; 0, 1) at scores (k, c, n), (k, n); without means they are zero."""
    factors = np.linalg.cholesky(covariances)
    centred = scores if means is None else scores - means[:, :, None]
    rest = np.linalg.inv(factors) @ centred
    log_determinants = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
    return 0.5 * ((scores**2).sum(axis=1) - (rest**2).sum(axis=1)) - log_determinants[:, None]


def to_correlations(covariances: np.ndarray) -> np.ndarray:
    """The correlation matrices of covariance matrices."""
    spread = np.sqrt(np.maximum(np.diagonal(covariances, axis1=1, axis2=2), 1e-12))
    return covariances / (spread[:, :, None] * spread[:, None, :])


def drawn_to_identity(correlations: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """(1 - s_h) R_h + s_h I: correlations drawn towards zero by a share for every component."""
    shares = shares[:, None, None]
    return (1 - shares) * correlations + shares * np.eye(correlations.shape[1])


def regression(covariances: np.ndarray, known: Any, asked: Any) -> tuple[np.ndarray, np.ndarray]:
    """Slopes (k, a, b) of the scores asked for on known ones, and the covariances of what is left, (k, a, a)."""
    across = block(covariances, known, asked)
    slopes = np.linalg.solve(block(covariances, known, known), across).transpose(0, 2, 1)
    return slopes, block(covariances, asked, asked) - slopes @ across


def draw_scores(size: int, covariance: np.ndarray, rng: np.random.Generator, mean: Any = 0.0) -> np.ndarray:
    """Normal scores of one component, (size, c)."""
    return mean + rng.normal(size=(size, len(covariance))) @ np.linalg.cholesky(covariance).T
