"""The alternatives that Song et al. (2014) compare with, behind the estimator surface of `MultiViewMixture`.

Views are single columns. EM for Gaussian mixtures, the fourth, is scikit-learn's `GaussianMixture`.
`LatentTreeSpectral` is what Song & Dai (2013) compare with, behind the surface of `LowRankDensity`.
"""

from latentviews.baselines.histogram import HistogramSpectral
from latentviews.baselines.latent_tree import LatentTreeSpectral
from latentviews.baselines.nonparametric_em import NonparametricEM
from latentviews.baselines.spherical import SphericalSpectral

__all__ = ["HistogramSpectral", "LatentTreeSpectral", "NonparametricEM", "SphericalSpectral"]
