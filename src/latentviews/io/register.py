"""The classes that a saved model may consist of, by the names that its file calls them.

A model file holds names only; where a class lives is said here, so that code can move without breaking files. Nothing
that is not in these tables is written or made again, and loading imports no module but theirs.

To add an estimator or record: a line in ``CLASSES`` (a test fails and says which). To rename one: its new line in
``CLASSES``, and in ``FORMER`` a line from the old name to the new. To rename a field: a line in ``FORMER_FIELDS``. To
change what a record consists of: a line in ``MAKERS``.
"""

import importlib
import re
from typing import Any

# Estimators and records of this package, each with its module; "module:Class" where the class is called differently.
CLASSES = {
    "Answers": "discrete.answers",
    "Arcsinh": "io.transforms",
    "BagMoments": "discrete.bags",
    "Beliefs": "joint.propagation",
    "BilinearDynamics": "sequences.two_stage",
    "BinnedEmbedding": "core.embeddings",
    "BinnedFeatures": "core.features.bins",
    "BlockMMD": "comparison.two_sample",
    "Bootstrap": "mixtures.inference",
    "Bordered": "core.kernels.borders",
    "CategoricalOutcome": "discrete.outcomes",
    "Categories": "core.categories",
    "CellBatches": "sequences.baum_welch",
    "ChainEstimate": "sequences.estimation",
    "ChainRows": "sequences.baum_welch",
    "ChainStream": "sequences.streaming",
    "ChangePoints": "comparison.change_points",
    "Choice": "mixtures.dependence.consensus",
    "Circle": "core.kernels.spaces",
    "ClassAssignment": "discrete.three_step",
    "ClassParameters": "discrete.expectation",
    "ClassRegression": "discrete.logits",
    "Codebook": "densities.codebooks",
    "CodebookBasis": "mixtures.cells",
    "CodedRows": "discrete.reading",
    "ColumnDensity": "joint.column_density",
    "ColumnGrids": "mixtures.dependence.grids",
    "ComponentStatistics": "mixtures.dependence.merging",
    "Conditional": "mixtures.inference",
    "ConditionalDistributions": "comparison.conditional",
    "ConditionalEmbedding": "comparison.conditional",
    "Copulas": "mixtures.dependence.settings",
    "Crowd": "discrete.crowd_model",
    "CrowdAnswers": "discrete.crowd_answers",
    "CrowdFit": "discrete.crowd_model",
    "CrowdLabels": "discrete.crowds",
    "Curvature": "discrete.inference",
    "Cytometry": "datasets.collections",
    "Decomposition": "core.tensors",
    "Delta": "core.kernels.discrete",
    "Dense": "core.features.fourier",
    "DensityRatio": "losses",
    "DependenceChoice": "mixtures.dependence.choosing",
    "DependentClasses": "mixtures.dependence.classes",
    "DependentConditional": "mixtures.dependence.classes",
    "DependentFit": "mixtures.dependence.copulas:CopulaFit",
    "DependentMixture": "mixtures.dependence.copulas:CopulaMixture",
    "DependentView": "mixtures.dependence.classes",
    "Diagnosis": "diagnosis.diagnose",
    "Dialect": "io.text",
    "DirectFit": "stochastic.direct",
    "DirichletParts": "discrete.dirichlet",
    "Discrete": "core.kernels.spaces",
    "DistalOutcome": "discrete.outcomes",
    "DoublyStochasticClassifier": "stochastic.machines",
    "DoublyStochasticPCA": "stochastic.kernel_pca",
    "DoublyStochasticRegressor": "stochastic.machines",
    "Draws": "comparison.results",
    "DriftMonitor": "comparison.monitor",
    "EMFit": "mixtures.sieve",
    "EMRun": "discrete.expectation",
    "EMSettings": "discrete.topic_em",
    "Embedding": "core.embeddings",
    "Estimate": "mixtures.problem",
    "ExactValues": "diagnosis.point_masses",
    "Expansion": "stochastic.expansions",
    "Expectation": "mixtures.inference",
    "Expected": "mixtures.dependence.copulas",
    "Fastfood": "core.features.fourier",
    "Filtering": "sequences.chains",
    "Finding": "diagnosis.diagnose",
    "FirstStep": "discrete.three_step",
    "FitPath": "mixtures.estimation",
    "Fitted": "discrete.inference",
    "FixedBasis": "mixtures.cells",
    "Forecast": "sequences.forecast",
    "FoundChain": "sequences.estimation",
    "FoundClasses": "mixtures.estimation",
    "FourierFeatures": "core.features.fourier",
    "Gaussian": "core.kernels.real",
    "GaussianGroup": "densities.weighted_samples",
    "GaussianView": "baselines.spherical",
    "Gaussians": "densities.codebooks",
    "GoodnessOfFit": "discrete.fit_quality",
    "GradientFit": "stochastic.gradients",
    "GridBasis": "mixtures.cells",
    "GridFeatures": "core.features.bins",
    "GridMargins": "mixtures.dependence.grids",
    "GridRows": "mixtures.dependence.grids",
    "HMMData": "datasets.synthetic",
    "HMMTruth": "datasets.synthetic",
    "HSICSelector": "comparison.selection",
    "Half": "mixtures.counting",
    "HalfLine": "core.kernels.borders",
    "HeldOutRows": "sequences.predictive",
    "Hinge": "losses",
    "HistogramSpectral": "baselines.histogram",
    "HistogramView": "baselines.histogram",
    "Huber": "losses",
    "IndependentKDE": "joint.signed",
    "Interval": "core.kernels.borders",
    "ItemIndicators": "discrete.spectral",
    "JointDiagonalization": "core.tensors",
    "JointEstimate": "joint.problem",
    "JointFit": "joint.copulas",
    "JointMixture": "joint.copulas",
    "JointProblem": "joint.problem",
    "JudgedRows": "mixtures.estimation",
    "Kernel": "core.kernels.base",
    "KernelBeliefPropagation": "joint.propagation",
    "KernelChoice": "comparison.choosing",
    "KernelHMM": "sequences.hmm",
    "KernelICA": "decomposition.ica",
    "KernelMachine": "stochastic.learning",
    "LabelShift": "comparison.shift",
    "LandmarkFeatures": "core.features.landmarks",
    "LandmarkMMD": "comparison.two_sample",
    "LandmarkPCA": "stochastic.landmark_pca",
    "Laplace": "core.kernels.real",
    "LatentClass": "discrete.latent_class",
    "LatentTreeSpectral": "baselines.latent_tree",
    "LikelihoodCurve": "core.selection",
    "LikelihoodRatioTest": "discrete.fit_quality",
    "Linear": "core.kernels.polynomial",
    "Logicle": "io.transforms",
    "Logistic": "losses",
    "LogitObjective": "discrete.logits",
    "Loss": "losses",
    "LowRankDensity": "joint.density",
    "Matern": "core.kernels.real",
    "Medoid": "mixtures.dependence.merging",
    "Memory": "sequences.two_stage",
    "MixtureKind": "joint.stacks",
    "MixtureRows": "mixtures.polish",
    "MomentQuality": "diagnosis.moments",
    "MultiViewData": "datasets.synthetic",
    "MultiViewMixture": "mixtures.mixture",
    "NonparametricEM": "baselines.nonparametric_em",
    "NormalOutcome": "discrete.outcomes",
    "Normals": "joint.margins",
    "Novelty": "losses",
    "Objective": "stochastic.direct",
    "ObservableOperators": "sequences.operators",
    "OneColumnViews": "baselines._shared",
    "OneHotFeatures": "core.features.indicators",
    "OperatorDynamics": "sequences.operators",
    "PairProducts": "sequences.independence",
    "Part": "_progress",
    "Path": "sequences.chains",
    "Pattern": "densities.gaussian_copulas",
    "Point": "stochastic.direct",
    "PointBasis": "mixtures.cells",
    "PointMassBasis": "mixtures.cells",
    "PointMassFeatures": "core.features.point_masses",
    "Polished": "mixtures.polish",
    "Polynomial": "core.kernels.polynomial",
    "PowerMethod": "core.tensors",
    "Preconditioner": "stochastic.gradients",
    "PredictiveStateModel": "sequences.predictive",
    "Problem": "mixtures.problem",
    "Product": "core.kernels.base",
    "ProductKDE": "joint.signed",
    "ProductMixture": "joint.methods",
    "Projected": "mixtures.streaming",
    "Projection": "core.moments",
    "QuadraticMMD": "comparison.two_sample",
    "Quadrature": "core.kernels.quadrature",
    "Quantile": "losses",
    "RandomBlocks": "stochastic.expansions",
    "RankTest": "core.selection",
    "Reading": "io",
    "Real": "core.kernels.spaces",
    "RegressedClasses": "discrete.one_step",
    "Rows": "joint.stacks",
    "SampleForecast": "sequences.sample_forecast",
    "ScaledKernel": "mixtures.cells",
    "Scores": "discrete.inference",
    "Sections": "stochastic.direct",
    "SeparateTables": "joint.margins",
    "SequenceProblem": "sequences.estimation",
    "Series": "sequences.dynamics",
    "SeriesData": "datasets.collections",
    "SeriesFile": "datasets.collections",
    "Shares": "joint.shares",
    "Shrinkage": "joint.copulas",
    "Sieve": "mixtures.polish",
    "SieveParameters": "mixtures.sieve",
    "SieveRows": "mixtures.sieve",
    "SieveView": "mixtures.cells",
    "SignedDensity": "joint.signed",
    "SignedTrain": "joint.signed_train",
    "SmoothedEM": "mixtures.smoothed_em",
    "SmootherSpec": "densities.smoothers",
    "Smoothing": "sequences.chains",
    "Source": "io.source",
    "Spectral": "mixtures.estimation",
    "SpectralFit": "core.spectral",
    "SpectralSettings": "mixtures.estimation",
    "SpectralSummary": "mixtures.estimation",
    "SphericalComponents": "baselines.spherical",
    "SphericalSpectral": "baselines.spherical",
    "Squared": "losses",
    "Stack": "joint.methods",
    "StackedMixture": "joint.stacks",
    "StackedSmoothers": "densities.smoothers",
    "StandardErrors": "discrete.inference",
    "Start": "mixtures.dependence.starts",
    "Starts": "mixtures.estimation",
    "StepSizes": "stochastic.expansions",
    "StreamFit": "mixtures.streaming",
    "SubspaceBasis": "mixtures.cells",
    "SubspaceSample": "densities.subspaces",
    "Sum": "core.kernels.base",
    "Table": "io",
    "Tables": "joint.margins",
    "TensorSketchFeatures": "core.features.sketches",
    "TestResult": "comparison.results",
    "TopicEstimate": "discrete.topic_kinds",
    "TopicFit": "discrete.topic_em",
    "TopicModel": "discrete.topics",
    "Total": "core.streams",
    "TrainingRows": "core.tables",
    "TransformedDensity": "joint.transformed",
    "Tree": "joint.trees",
    "TreeEmbedding": "joint.tensor_trees",
    "TreeMMD": "joint.comparing",
    "TriedFit": "mixtures.dependence.choosing",
    "TrueView": "datasets.synthetic",
    "Truth": "datasets.synthetic",
    "TwoSamples": "comparison.two_sample",
    "TwoStageRegression": "sequences.two_stage",
    "UnitHeight": "core.kernels.base",
    "ViewFits": "core.views",
    "ViewSuggestion": "diagnosis.grouping",
    "Views": "core.views",
    "VonMises": "core.kernels.circle",
    "WeightedSample": "densities.weighted_samples",
    "WhitenScale": "joint.transformed",
    "WhitenedMoments": "core.moments",
    "Whitening": "core.whitening",
    "WithPointMasses": "core.point_masses",
    "WithinClassDependence": "diagnosis.dependence",
    "Witness": "comparison.results",
    "WordSettings": "discrete.topic_kinds",
    "Written": "stochastic.convergence",
}
# Classes of other packages that may stand in a model, where feature maps of scikit-learn take the place of ours. Their
# state is numbers and names; none keeps a function or evaluates a string.
FOREIGN = {
    "AdditiveChi2Sampler": "sklearn.kernel_approximation",
    "MinMaxScaler": "sklearn.preprocessing",
    "Nystroem": "sklearn.kernel_approximation",
    "PCA": "sklearn.decomposition",
    "Pipeline": "sklearn.pipeline",
    "PolynomialCountSketch": "sklearn.kernel_approximation",
    "PolynomialFeatures": "sklearn.preprocessing",
    "PowerTransformer": "sklearn.preprocessing",
    "RBFSampler": "sklearn.kernel_approximation",
    "RobustScaler": "sklearn.preprocessing",
    "StandardScaler": "sklearn.preprocessing",
}
# Names in older files and what they are called now. Format 1 had two classes of some names; there the module decides.
FORMER = {
    "Bundle": "GaussianGroup",
    "Recipe": "SmootherSpec",
    "Cells": "SieveRows",
    "ChainPilot": "ChainRows",
    "CopulaFit": "JointFit",
    "CopulaMixture": "JointMixture",
    "Estimated": "JointEstimate",
    "Expert": "MixtureKind",
    "Frame": "ColumnGrids",
    "GridCells": "GridRows",
    "Margins": "GridMargins",
    "Mixing": "SieveParameters",
    "Parts": "ComponentStatistics",
    "Pilot": "MixtureRows",
    "SmootherStack": "StackedSmoothers",
    "TrainEmbedding": "TreeEmbedding",
    "latentviews.copulas.Cells": "GridRows",
    "latentviews.copulas.CopulaFit": "DependentFit",
    "latentviews.copulas.CopulaMixture": "DependentMixture",
    "latentviews.domains.Circle": "CircleDomain",
    "latentviews.domains.Discrete": "DiscreteDomain",
    "latentviews.domains.Real": "RealDomain",
    "latentviews.models.density_methods.Problem": "JointProblem",
    "latentviews.models.predictive.Parts": "HeldOutRows",
    "latentviews.polish.SieveView": "KernelSieveView",
    "latentviews.weighted_samples.Stack": "StackedSmoothers",
}
# Fields and attributes that older files call differently: {class, as it is called now: {old: new}}.
FORMER_FIELDS: dict[str, dict[str, str]] = {
    "EMFit": {"mixing": "parameters"},
    "Projected": {"lift": "component_maps"},
    "StreamFit": {"lift": "component_maps"},
    "GridMargins": {"frame": "grids"},
    "SignedDensity": {"train": "embedding"},
}
# What makes a present record of a former one whose fields were others.
MAKERS = {
    "CircleDomain": "core.kernels.spaces:circle_domain",
    "DiscreteDomain": "core.kernels.spaces:discrete_domain",
    "KernelSieveView": "mixtures.cells:view_of_kernel",
    "RealDomain": "core.kernels.spaces:real_domain",
}


def present_name(written: Any) -> str | None:
    """What the class that a file names is called now; None where it is not registered.

    ``written`` is a name, or in format 1 the pair of a module and a name.
    """
    name = _name_in_format_1(*written) if isinstance(written, list) else written
    while name in FORMER:
        name = FORMER[name]
    return name if name in CLASSES or name in MAKERS or name in FOREIGN else None


def _name_in_format_1(module: str, name: str) -> str | None:
    """The name of a pair whose module is one of this package, wherever it has gone, or that of a foreign class."""
    if re.fullmatch(rf"{FOREIGN.get(name, 'latentviews')}(\.\w+)*", module):
        return FORMER.get(f"{module}.{name}", name)
    return None


def class_of(name: str) -> Any:
    """The class of a registered name, or the function that makes what it was."""
    module, called = _place(name)
    return getattr(importlib.import_module(module), called)


def name_of(kind: type) -> str | None:
    """The registered name of a class; None where it has none."""
    if kind.__name__ in FOREIGN and class_of(kind.__name__) is kind:
        return kind.__name__
    return _NAMES.get((kind.__module__, kind.__qualname__))


def _place(name: str) -> tuple[str, str]:
    """The module of a registered class, and its name there."""
    if name in FOREIGN:
        return FOREIGN[name], name
    module, _, called = (CLASSES | MAKERS)[name].partition(":")
    return f"latentviews.{module}", called or name


_NAMES = {_place(name): name for name in CLASSES}
