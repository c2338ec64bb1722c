"""How common the classes are, with intervals: in the fit, or among other rows."""

from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from latentviews._numbers import TINY
from latentviews.core import streams
from latentviews.diagnosis.shares import RowShares
from latentviews.mixtures.problem import classes_of

REFITS = 10  # bootstrap refits behind the intervals
REFIT_ROWS = 1000  # rows of a refit
OF_ROWS = (
    "Sizes are shares of these rows, the means of their posteriors: the fit had other rows, or counted them otherwise. "
    "Intervals are of those means, and take the classes of the fit, and their sizes there, as known."
)


class Sizes(NamedTuple):
    """How common the classes are."""

    weights: np.ndarray  # (k,)
    lower: np.ndarray
    upper: np.ndarray
    method: str  # where the intervals come from, in a sentence


def class_sizes(
    model: Any, table: np.ndarray, posteriors: np.ndarray, here: RowShares, rng: np.random.Generator
) -> Sizes:
    """The weights of the fit where the rows are its own, else the shares of these rows, with 95 % intervals."""
    if len(model.weights_) == 1:
        return _between(np.ones(1), np.zeros(1), "There is one class, so its size has no interval.")
    if here.shifted:
        return _between(here.shares, stats.norm.isf(0.025) * here.errors, OF_ROWS)
    return _fitted(model, table, posteriors, rng)


def _fitted(model: Any, table: np.ndarray, posteriors: np.ndarray, rng: np.random.Generator) -> Sizes:
    """Weights with 95 % intervals, by refits of the polish where there is one."""
    weights = model.weights_
    if not classes_of(model).can_refit:
        errors = fixed_errors(weights, posteriors) / np.sqrt(len(table))
        method = (
            "Intervals are asymptotic and take the densities of the classes as known: they are somewhat too narrow."
        )
        return _between(weights, stats.norm.isf(0.025) * errors, method)
    size = int(np.clip(20_000 // (len(weights) * len(model.views_)), 500, REFIT_ROWS))
    (rows,) = streams.sample(table, size, rng)
    draws = model.bootstrap(rows, REFITS, random_state=rng).weights
    width = stats.t.isf(0.025, REFITS - 1) * draws.std(axis=0, ddof=1) * np.sqrt(len(rows) / len(table))
    method = f"Intervals come from {REFITS} refits to resampled rows, each started at the fit (a bootstrap" + (
        f" of {len(rows):,} rows, scaled to all {len(table):,})." if len(rows) < len(table) else ")."
    )
    return _between(weights, width, method)


def _between(shares: np.ndarray, width: np.ndarray, method: str) -> Sizes:
    return Sizes(shares, np.maximum(shares - width, 0.0), np.minimum(shares + width, 1.0), method)


def of_sample(sizes: Sizes, n_rows: int, n_in_file: int | None) -> Sizes:
    """The same, with a sentence where the rows that intervals are of are a sample of those in a file."""
    if n_in_file is None or len(sizes.weights) == 1:
        return sizes
    said = (
        f"Intervals are those of a sample of {n_rows:,} rows; all {n_in_file:,} of the file would give narrower ones."
    )
    return sizes._replace(method=f"{sizes.method} {said}")


def fixed_errors(weights: np.ndarray, posteriors: np.ndarray) -> np.ndarray:
    """Standard errors of the weights times √n, densities known: the inverse of E[s sᵀ], s_h = p_h/p - p_k/p."""
    ratios = posteriors / np.maximum(weights, TINY)
    scores = ratios[:, :-1] - ratios[:, -1:]
    covariance = np.linalg.pinv(scores.T @ scores / len(scores))
    return np.sqrt([*np.diag(covariance), covariance.sum()])
