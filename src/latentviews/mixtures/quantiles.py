"""Quantiles of mixtures of components."""

from typing import Any

import numpy as np

from latentviews.core.components import Components


def check_levels(q: Any) -> np.ndarray:
    """Levels of quantiles, (n_levels,)."""
    levels = np.atleast_1d(np.asarray(q))
    if levels.ndim != 1 or not levels.size or levels.dtype.kind not in "iuf" or not np.all((levels > 0) & (levels < 1)):
        raise ValueError(f"q must be a level between 0 and 1, or a list of them; got {q!r}.")
    return levels


def mixture_quantiles(view: Components, states: np.ndarray, level: float) -> np.ndarray:
    """The level's quantile of every column under every mixture of the states, (n, d)."""
    result = np.empty((len(states), view.dim))
    for j in range(view.dim):
        values, shares = view.marginal(j)
        result[:, j] = view.space.column(j).quantiles(values, states @ shares.T, level)
    return result
