"""Latent-variable models whose parts have no assumed shape."""

from latentviews._validation import IdentifiabilityWarning
from latentviews.comparison import independence_test, two_sample_test
from latentviews.diagnostics import diagnose
from latentviews.embeddings import Embedding
from latentviews.features import LandmarkFeatures, OneHotFeatures
from latentviews.kernels import Delta, Gaussian, Kernel, Laplace, Linear, Matern, Polynomial, VonMises
from latentviews.models.density import LowRankDensity
from latentviews.models.density_methods import ProductMixture, SignedTrain, Stack
from latentviews.models.doubly_stochastic import DoublyStochasticClassifier, DoublyStochasticRegressor
from latentviews.models.dynamics import ObservableOperators, TwoStageRegression
from latentviews.models.hmm import KernelHMM
from latentviews.models.kernel_pca import DoublyStochasticPCA, LandmarkPCA
from latentviews.models.mixture import MultiViewMixture
from latentviews.models.portfolio import Copulas
from latentviews.models.predictive import PredictiveStateModel
from latentviews.polish import Sieve, SmoothedEM
from latentviews.preprocessing import TransformedDensity, WhitenScale
from latentviews.random_features import FourierFeatures, TensorSketchFeatures
from latentviews.saving import load, save
from latentviews.selection import likelihood_curve, rank_test
from latentviews.tensors import JointDiagonalization, PowerMethod

__version__ = "0.1.0"

__all__ = [
    "Copulas",
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
    "KernelHMM",
    "LandmarkFeatures",
    "LandmarkPCA",
    "Laplace",
    "Linear",
    "LowRankDensity",
    "Matern",
    "MultiViewMixture",
    "ObservableOperators",
    "OneHotFeatures",
    "Polynomial",
    "PowerMethod",
    "PredictiveStateModel",
    "ProductMixture",
    "Sieve",
    "SignedTrain",
    "SmoothedEM",
    "Stack",
    "TensorSketchFeatures",
    "TransformedDensity",
    "TwoStageRegression",
    "VonMises",
    "WhitenScale",
    "diagnose",
    "independence_test",
    "likelihood_curve",
    "load",
    "rank_test",
    "save",
    "two_sample_test",
]
