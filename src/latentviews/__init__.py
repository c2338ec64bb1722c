"""Latent-variable models whose parts have no assumed shape."""

from latentviews._validation import IdentifiabilityWarning
from latentviews.comparison import independence_test, two_sample_test
from latentviews.diagnostics import diagnose
from latentviews.embeddings import Embedding
from latentviews.features import LandmarkFeatures, OneHotFeatures
from latentviews.kernels import Delta, Gaussian, Kernel, Laplace, Linear, Matern, Polynomial, VonMises
from latentviews.models.doubly_stochastic import DoublyStochasticClassifier, DoublyStochasticRegressor
from latentviews.models.kernel_pca import DoublyStochasticPCA, LandmarkPCA
from latentviews.models.mixture import MultiViewMixture
from latentviews.polish import Sieve, SmoothedEM
from latentviews.random_features import FourierFeatures, TensorSketchFeatures
from latentviews.selection import likelihood_curve, rank_test
from latentviews.tensors import JointDiagonalization, PowerMethod

__version__ = "0.1.0"

__all__ = [
    "Delta",
    "DoublyStochasticClassifier",
    "DoublyStochasticPCA",
    "DoublyStochasticRegressor",
    "Embedding",
    "FourierFeatures",
    "Gaussian",
    "IdentifiabilityWarning",
    "JointDiagonalization",
    "Kernel",
    "LandmarkFeatures",
    "LandmarkPCA",
    "Laplace",
    "Linear",
    "Matern",
    "MultiViewMixture",
    "OneHotFeatures",
    "Polynomial",
    "PowerMethod",
    "Sieve",
    "SmoothedEM",
    "TensorSketchFeatures",
    "VonMises",
    "diagnose",
    "independence_test",
    "likelihood_curve",
    "rank_test",
    "two_sample_test",
]
