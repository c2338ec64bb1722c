"""Latent-variable models whose parts have no assumed shape."""

from latentviews._validation import IdentifiabilityWarning
from latentviews.comparison.permutation import independence_test, two_sample_test
from latentviews.core.embeddings import Embedding
from latentviews.core.features.fourier import FourierFeatures
from latentviews.core.features.indicators import OneHotFeatures
from latentviews.core.features.landmarks import LandmarkFeatures
from latentviews.core.features.sketches import TensorSketchFeatures
from latentviews.core.kernels.base import Kernel
from latentviews.core.kernels.borders import HalfLine, Interval
from latentviews.core.kernels.circle import VonMises
from latentviews.core.kernels.discrete import Delta
from latentviews.core.kernels.polynomial import Linear, Polynomial
from latentviews.core.kernels.real import Gaussian, Laplace, Matern
from latentviews.core.selection import likelihood_curve, rank_test
from latentviews.core.tensors import JointDiagonalization, PowerMethod
from latentviews.diagnosis.diagnose import diagnose
from latentviews.diagnosis.grouping import suggest_views
from latentviews.discrete.crowds import CrowdLabels
from latentviews.discrete.topics import TopicModel
from latentviews.io.saving import load, save
from latentviews.joint.density import LowRankDensity
from latentviews.joint.methods import ProductMixture, Stack
from latentviews.joint.signed_train import SignedTrain
from latentviews.joint.transformed import TransformedDensity, WhitenScale
from latentviews.mixtures.dependence.portfolio import Copulas
from latentviews.mixtures.mixture import MultiViewMixture
from latentviews.mixtures.polish import Sieve
from latentviews.mixtures.smoothed_em import SmoothedEM
from latentviews.sequences.hmm import KernelHMM
from latentviews.sequences.operators import ObservableOperators
from latentviews.sequences.predictive import PredictiveStateModel
from latentviews.sequences.two_stage import TwoStageRegression
from latentviews.stochastic.kernel_pca import DoublyStochasticPCA
from latentviews.stochastic.landmark_pca import LandmarkPCA
from latentviews.stochastic.machines import DoublyStochasticClassifier, DoublyStochasticRegressor

__version__ = "0.1.0"

__all__ = [
    "Copulas",
    "CrowdLabels",
    "Delta",
    "DoublyStochasticClassifier",
    "DoublyStochasticPCA",
    "DoublyStochasticRegressor",
    "Embedding",
    "FourierFeatures",
    "Gaussian",
    "HalfLine",
    "IdentifiabilityWarning",
    "Interval",
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
    "TopicModel",
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
    "suggest_views",
    "two_sample_test",
]
