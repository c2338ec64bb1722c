"""Views whose kernel has no density: embeddings, with densities of a few coordinates of the feature vectors."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from latentviews._arrays import to_numpy
from latentviews.core.components import Components, as_rows
from latentviews.core.embeddings import Embedding
from latentviews.core.features.base import FeatureMap


@dataclass(frozen=True, eq=False)
class CoordinateEmbedding(Embedding):
    """Components of a view without density, told apart by the densities of coordinates c(x) = (φ(x) - mean) axes.

    Objects have no density, but their coordinates do. Its ratio between classes is all that posteriors need.

    Parameters
    ----------
    domain : None
    features : a fitted transformer, φ
    vectors : array of shape (n_features, k), μ_h in columns
    mean : array of shape (n_features,)
    axes : array of shape (n_features, q)
    inside : Components
        The densities of the coordinates.
    """

    mean: np.ndarray = field(repr=False)
    axes: np.ndarray = field(repr=False)
    inside: Components = field(repr=False)

    def log_density(self, x: Any) -> np.ndarray:
        """The log-densities of the coordinates of objects, (n, k): good for ratios between classes."""
        return self.inside.log_density(coordinates(self.features, to_numpy(as_rows(x)), self.mean, self.axes))

    def take(self, order: np.ndarray) -> "CoordinateEmbedding":
        """The components in another order, or some of them."""
        return replace(self, vectors=self.vectors[:, order], inside=self.inside.take(order))


def coordinates(phi: FeatureMap, x: np.ndarray, mean: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """The coordinates of rows (n, d), (n, q); NaN where a row lacks the view."""
    present = ~np.isnan(x).any(axis=1)
    found = np.full((len(x), axes.shape[1]), np.nan)
    if present.any():
        found[present] = (to_numpy(phi.transform(x[present])) - mean) @ axes
    return found


def principal_axes(phi: FeatureMap, x: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """The mean of the feature vectors of rows (n, d), none missing, and their principal axes, at most so many."""
    vectors = to_numpy(phi.transform(x))
    mean = vectors.mean(axis=0)
    values, axes = np.linalg.eigh(np.cov(vectors.T, bias=True).reshape(len(mean), len(mean)))
    kept = values > 1e-9 * values[-1]
    return mean, axes[:, kept][:, ::-1][:, :most]
