"""Losses of functions with one output per class or target, for gradient methods on rows in any array library."""

from latentviews.losses.base import Loss
from latentviews.losses.two_samples import DensityRatio, Novelty
from latentviews.losses.usual import Hinge, Huber, Logistic, Quantile, Squared

__all__ = ["DensityRatio", "Hinge", "Huber", "Logistic", "Loss", "Novelty", "Quantile", "Squared"]
