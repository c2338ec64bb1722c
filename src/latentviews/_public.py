"""The public names, which `latentviews` hands on when one of them is first asked for."""

from latentviews._validation import IdentifiabilityWarning
from latentviews.comparison.change_points import ChangePoints
from latentviews.comparison.conditional import ConditionalEmbedding
from latentviews.comparison.independence import independence_test
from latentviews.comparison.monitor import DriftMonitor
from latentviews.comparison.selection import HSICSelector
from latentviews.comparison.shift import covariate_shift_weights, label_shift
from latentviews.comparison.statistics import BlockMMD, LandmarkMMD, QuadraticMMD
from latentviews.comparison.two_sample import two_sample_test
from latentviews.core.embeddings import Embedding
from latentviews.core.features.fourier import FourierFeatures
from latentviews.core.features.indicators import OneHotFeatures
from latentviews.core.features.landmarks import LandmarkFeatures
from latentviews.core.features.sketches import TensorSketchFeatures
from latentviews.core.kernels.alignments import global_alignment_gram, patch_gram
from latentviews.core.kernels.base import Kernel
from latentviews.core.kernels.borders import HalfLine, Interval
from latentviews.core.kernels.circle import VonMises, WrappedGaussian
from latentviews.core.kernels.discrete import Delta
from latentviews.core.kernels.objects import spectrum_gram, weisfeiler_lehman_gram
from latentviews.core.kernels.polynomial import Linear, Polynomial
from latentviews.core.kernels.real import Gaussian, Laplace, Matern
from latentviews.core.kernels.spaces import Circle, Discrete, Real
from latentviews.core.kernels.structured import Precomputed
from latentviews.core.likelihood_curves import likelihood_curve
from latentviews.core.selection import rank_test
from latentviews.core.tensors import JointDiagonalization, PowerMethod
from latentviews.decomposition.ica import KernelICA
from latentviews.diagnosis.diagnose import diagnose
from latentviews.diagnosis.grouping import suggest_views
from latentviews.discrete.communities import CommunityModel
from latentviews.discrete.crowds import CrowdLabels
from latentviews.discrete.latent_class import LatentClass
from latentviews.discrete.outcomes import distal_outcome
from latentviews.discrete.structural import class_regression
from latentviews.discrete.topics import TopicModel
from latentviews.io.saving import load, save
from latentviews.joint.comparing import TreeMMD
from latentviews.joint.density import LowRankDensity
from latentviews.joint.methods import ProductMixture, Stack
from latentviews.joint.propagation import KernelBeliefPropagation
from latentviews.joint.signed_train import SignedTrain
from latentviews.joint.transformed import TransformedDensity, WhitenScale
from latentviews.mixtures.dependence.settings import Copulas
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

__all__ = [
    "BlockMMD",
    "ChangePoints",
    "Circle",
    "CommunityModel",
    "ConditionalEmbedding",
    "Copulas",
    "CrowdLabels",
    "Delta",
    "Discrete",
    "DoublyStochasticClassifier",
    "DoublyStochasticPCA",
    "DoublyStochasticRegressor",
    "DriftMonitor",
    "Embedding",
    "FourierFeatures",
    "Gaussian",
    "HSICSelector",
    "HalfLine",
    "IdentifiabilityWarning",
    "Interval",
    "JointDiagonalization",
    "Kernel",
    "KernelBeliefPropagation",
    "KernelHMM",
    "KernelICA",
    "LandmarkFeatures",
    "LandmarkMMD",
    "LandmarkPCA",
    "Laplace",
    "LatentClass",
    "Linear",
    "LowRankDensity",
    "Matern",
    "MultiViewMixture",
    "ObservableOperators",
    "OneHotFeatures",
    "Polynomial",
    "PowerMethod",
    "Precomputed",
    "PredictiveStateModel",
    "ProductMixture",
    "QuadraticMMD",
    "Real",
    "Sieve",
    "SignedTrain",
    "SmoothedEM",
    "Stack",
    "TensorSketchFeatures",
    "TopicModel",
    "TransformedDensity",
    "TreeMMD",
    "TwoStageRegression",
    "VonMises",
    "WhitenScale",
    "WrappedGaussian",
    "class_regression",
    "covariate_shift_weights",
    "diagnose",
    "distal_outcome",
    "global_alignment_gram",
    "independence_test",
    "label_shift",
    "likelihood_curve",
    "load",
    "patch_gram",
    "rank_test",
    "save",
    "spectrum_gram",
    "suggest_views",
    "two_sample_test",
    "weisfeiler_lehman_gram",
]
