"""Classes where some views have no density: told by linear functionals of the classes' embeddings.

For the embeddings M_t = [μ_1, …, μ_k] of a view, B_t = pinv(M_t) has B_t M_t = I, so that (B_t φ_t(x))_h is one on
average for rows of class h and zero for those of others, whatever the kernel.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from latentviews._arrays import to_numpy
from latentviews._numbers import TINY
from latentviews.core.components import Components
from latentviews.core.embeddings import Embedding
from latentviews.core.tables import Columns

FLOOR = 1e-3  # share of a class that functionals leave to none


def judged_by_functionals(components: Sequence[Components]) -> list[int]:
    """The views that have no density, not even of coordinates."""
    return [t for t, view in enumerate(components) if type(view) is Embedding and view.domain is None]


def class_functionals(
    table: np.ndarray, columns: Columns, components: Sequence[Any], views: Sequence[int]
) -> np.ndarray:
    """r_h(x) = mean_t (B_t φ_t(x))_h over those of some views that a row has, (n, k), zero where it has none.

    E[r_h | class g] is one for h = g and zero otherwise.
    """
    total, count = np.zeros((len(table), components[0].n_components)), np.zeros(len(table))
    for t in views:
        x = table[:, columns[t]]
        present = ~np.isnan(x).any(axis=1)
        if present.any():
            phi = to_numpy(components[t].features.transform(x[present]))
            total[present] += phi @ np.linalg.pinv(components[t].vectors).T
            count += present
    return total / np.maximum(count, 1.0)[:, None]


def functional_posteriors(
    table: np.ndarray, columns: Columns, components: Sequence[Any], views: Sequence[int], weights: np.ndarray
) -> np.ndarray:
    """P(h | some views) by functionals of the classes, clipped and scaled, (n, k); the weights where they say nothing.

    A thousandth is left to the weights, so that no class is impossible.
    """
    shares = np.maximum(class_functionals(table, columns, components, views), 0.0)
    shares = np.where((shares.sum(axis=1) > 0)[:, None], shares, weights)
    shares = shares / np.maximum(shares.sum(axis=1, keepdims=True), TINY)
    return (1 - FLOOR) * shares + FLOOR * weights
