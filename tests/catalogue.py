"""One of everything the package offers, for tests that hold for each of a kind: a new class is a line here."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.base import BaseEstimator, clone
from sklearn.kernel_approximation import Nystroem
from sklearn.utils import get_tags

from files import NAMES, VALUES, write_csv, write_gzip, write_h5ad, write_zarr
from latentviews import (
    ChangePoints,
    CommunityModel,
    ConditionalEmbedding,
    Copulas,
    CrowdLabels,
    Delta,
    DoublyStochasticClassifier,
    DoublyStochasticPCA,
    DoublyStochasticRegressor,
    DriftMonitor,
    FourierFeatures,
    Gaussian,
    HSICSelector,
    JointDiagonalization,
    KernelBeliefPropagation,
    KernelHMM,
    KernelICA,
    LandmarkFeatures,
    LandmarkPCA,
    Laplace,
    LatentClass,
    Linear,
    LowRankDensity,
    Matern,
    MultiViewMixture,
    ObservableOperators,
    OneHotFeatures,
    Polynomial,
    PowerMethod,
    Precomputed,
    PredictiveStateModel,
    ProductMixture,
    Sieve,
    SignedTrain,
    SmoothedEM,
    Stack,
    TensorSketchFeatures,
    TopicModel,
    TransformedDensity,
    TwoStageRegression,
    VonMises,
    WhitenScale,
    WrappedGaussian,
)
from latentviews.baselines import HistogramSpectral, LatentTreeSpectral, NonparametricEM, SphericalSpectral
from latentviews.core.features.bins import BinnedFeatures
from latentviews.core.features.fourier import SELECTIONS as FREQUENCIES
from latentviews.core.features.landmarks import SELECTIONS as LANDMARKS
from latentviews.core.features.point_masses import PointMassFeatures
from latentviews.core.kernels.bandwidths import RULES
from latentviews.core.kernels.base import UnitHeight
from latentviews.core.kernels.borders import HalfLine, Interval
from latentviews.core.kernels.product_space import ProductSpace
from latentviews.core.kernels.spaces import Circle, Discrete, Real
from latentviews.core.kernels.structured import FunctionKernel
from latentviews.datasets import make_multiview
from latentviews.losses import DensityRatio, Hinge, Huber, Logistic, Novelty, Quantile, Squared
from latentviews.mixtures.dependence.merging import confusion_cost, valley_cost
from latentviews.plot import (
    ChangePointDisplay,
    ComponentDisplay,
    DensityDisplay,
    DependenceDisplay,
    DriftDisplay,
    ForecastDisplay,
    ItemProfileDisplay,
    MembershipDisplay,
    ResponsibilityDisplay,
    SpectrumDisplay,
    StateDisplay,
    TopicDisplay,
    TransitionDisplay,
)

__all__ = ["RULES"]  # a table of the package's own; the rest is below

# -------------------------------------------------------------------------------------------------- parts of models

SPACES = [
    Real(),
    HalfLine(),
    Interval(0, 1),
    Interval(-2.0, 5.0),
    Circle(),
    Discrete(),
    ProductSpace((Circle(),), ((0,),)),
]

DENSITIES = [  # kernels that are densities on the line and in the plane, by one bandwidth
    Gaussian(0.7),
    Laplace(0.8),
    Matern(0.9, 0.5),
    Matern(0.9, 1.5),
    Matern(0.9, 2.5),
]
KERNELS = [  # of one column and of two
    *DENSITIES,
    Gaussian(np.array([0.5, 1.3])),
    Delta(),
    Linear(),
    Polynomial(2),
    VonMises(0.6),
    VonMises(35.0, period=360),
    WrappedGaussian(0.6),
    WrappedGaussian(2.5),
    Gaussian(0.5) + Laplace(1.0),
    Gaussian(0.5) * Matern(1.0, 1.5),
    UnitHeight(Gaussian(0.7)),
    Gaussian(0.7, space=HalfLine()),
    Gaussian(np.array([0.5, 6.5]), space=Interval(-6, 6)),
    Laplace(0.8, space=Interval(-6, 6)),
    Matern(0.9, space=HalfLine()),
    Gaussian(0.7).on([0]),
]
OBJECT_KERNELS = [Precomputed(np.eye(3)), FunctionKernel(np.equal.outer)]  # on rows that are no numbers
SHIFT_INVARIANT = [kernel for kernel in KERNELS if hasattr(kernel, "frequencies")]

FEATURES = [
    *[LandmarkFeatures(Gaussian(1.0), 10, selection=name, random_state=0) for name in LANDMARKS],
    BinnedFeatures(Gaussian(1.0)),
    PointMassFeatures(BinnedFeatures(Gaussian(1.0))),
    OneHotFeatures(),
    *[FourierFeatures(Gaussian(1.0), 16, selection=name, random_state=0) for name in FREQUENCIES],
    TensorSketchFeatures(n_sketch=16, random_state=0),
]

SOLVERS = [PowerMethod(), JointDiagonalization()]

POLISHES = [Sieve(), Sieve(factors=(2.0,)), Sieve(max_iter=0), SmoothedEM(), SmoothedEM(nonlinear=False)]
QUICK_POLISH = Sieve(factors=(2.0,), max_iter=10)

DEPENDENCES = [Copulas(n_starts=1)]

COSTS = [valley_cost, confusion_cost]  # of merging two components

DYNAMICS = [
    TwoStageRegression(sizes=(5,), penalties=(1e-2,), memories=(5,), window=5),
    ObservableOperators((10,), (1e-3,)),
]

METHODS = [  # ways to a joint density
    Stack((1, 2), n_folds=2, max_iter=20),
    ProductMixture((1, 2), n_folds=2, max_iter=20),
    SignedTrain(0.5),
]

LOSSES = [Logistic(), Hinge(), Squared(), Huber(0.7), Quantile(0.3), DensityRatio(0.4), Novelty(0.3)]

# ----------------------------------------------------------------------------------------------------------- models

ROWS, LABELS, _ = make_multiview(400, 2, n_views=4, random_state=0)


@dataclass(frozen=True)
class Model:
    """An estimator that is quick to fit, and its method whose answers on rows show what it learnt."""

    estimator: BaseEstimator
    answer: str
    numpy_only: bool = False  # where rows of other array libraries are refused
    takes_text: bool = False  # where words are values like any other
    rows: Any = field(default_factory=lambda: ROWS, repr=False)  # what it is fitted to

    def fit(self, X: Any = None) -> BaseEstimator:
        """The estimator, fitted with a seed, and with labels, where it takes them."""
        X = self.rows if X is None else X
        seed = {"random_state": 0} if "random_state" in self.estimator.get_params(deep=False) else {}
        targets = [LABELS] if get_tags(self.estimator).target_tags.required else []
        return clone(self.estimator).set_params(**seed).fit(X, *targets)

    def answers(self, fitted: BaseEstimator, X: Any = None) -> Any:
        """What a fitted estimator says of rows."""
        return getattr(fitted, self.answer)(self.rows if X is None else X)

    def __repr__(self) -> str:
        return " ".join(repr(self.estimator).split())


BLOCKS = {"n_frequencies": 16, "n_blocks": 2, "n_directions": 16}

MODELS = [  # one of every estimator
    Model(MultiViewMixture(2, polish=QUICK_POLISH), "predict_proba"),
    Model(KernelHMM(2, polish=QUICK_POLISH), "predict_proba"),
    Model(PredictiveStateModel(DYNAMICS[0], horizon=2), "filter"),
    Model(LowRankDensity(2, method=Stack(n_folds=2, max_iter=3)), "score_samples"),
    Model(LatentClass(2, n_starts=2, max_iter=50), "predict_proba", takes_text=True),
    Model(WhitenScale(), "transform"),
    Model(TransformedDensity(LowRankDensity(2, method=METHODS[-1], random_state=0)), "score_samples"),
    Model(LandmarkPCA(n_landmarks=20), "transform"),
    Model(DoublyStochasticPCA(n_frequencies=16), "transform"),
    Model(DoublyStochasticClassifier(**BLOCKS), "predict_proba"),
    Model(DoublyStochasticRegressor(n_epochs=30, **BLOCKS), "predict"),
    Model(NonparametricEM(2, max_iter=20), "predict_proba", numpy_only=True),
    Model(HistogramSpectral(2, n_bins=3), "predict_proba", numpy_only=True),
    Model(SphericalSpectral(2), "predict_proba", numpy_only=True),
    Model(LatentTreeSpectral(), "score_samples"),
    Model(ChangePoints(n_permutations=20, n_landmarks=20), "segments"),
    Model(DriftMonitor(5, n_landmarks=20), "score_samples"),
    Model(HSICSelector(), "transform"),
    Model(ConditionalEmbedding(Gaussian(0.5), Gaussian(1.0), penalty=0.01), "predict"),
    Model(KernelBeliefPropagation(), "predict"),
    Model(KernelICA(2), "transform"),
]

BORDERED = Gaussian(space=Interval(np.floor(ROWS.min()), np.ceil(ROWS.max())))
COUNTS = np.random.default_rng(0).poisson(np.repeat([[3, 3, 1, 0.2], [0.2, 1, 3, 3]], 30, axis=0))
ANSWERS = [[task, worker, int(COUNTS[task, worker] > 1)] for task in range(60) for worker in range(4)]
LINKS = np.triu(np.random.default_rng(0).random((60, 60)) < np.kron([[0.6, 0.1], [0.1, 0.6]], np.ones((30, 30))), 1)

OF_OTHER_ROWS = [  # estimators whose rows are no table of real numbers
    Model(CrowdLabels(), "predict_proba", rows=np.array(ANSWERS)),
    Model(TopicModel(2, concentration=1.0), "transform", rows=COUNTS),
    Model(CommunityModel(2, concentration=1.0), "transform", rows=LINKS | LINKS.T),
]

MIXED = [Gaussian().on([0]) * VonMises().on([1]), Gaussian(), Gaussian()]

VARIANTS = [  # the same estimators made of other parts
    Model(MultiViewMixture(2), "score_samples"),
    Model(MultiViewMixture(2, polish=None), "predict_proba"),
    Model(MultiViewMixture(2, polish=None, kernel=Laplace(0.5) + Matern(1.0), solver=PowerMethod()), "predict_proba"),
    Model(MultiViewMixture("auto", exchangeable=[0, 0, 1, 1]), "predict_proba"),
    Model(MultiViewMixture(2, views=[[0, 1], [2], [3]]), "predict_proba"),
    Model(MultiViewMixture(2, polish=QUICK_POLISH, features=LandmarkFeatures(n_landmarks=30)), "predict_proba"),
    Model(MultiViewMixture(2, polish=QUICK_POLISH, pilot_size=200), "predict_proba"),
    Model(MultiViewMixture(2, polish=None, features=FourierFeatures(n_frequencies=50)), "predict_proba"),
    Model(MultiViewMixture(2, polish=SmoothedEM(max_iter=20)), "predict_proba"),
    Model(
        MultiViewMixture(2, polish=None, features=Nystroem(gamma=0.5, n_components=20, random_state=0)),
        "predict_proba",
        numpy_only=True,
    ),
    Model(MultiViewMixture(2, kernel=[VonMises(), Gaussian(), Gaussian(), Gaussian()]), "predict_proba"),
    Model(MultiViewMixture(2, kernel=BORDERED), "predict_proba"),
    Model(MultiViewMixture(2, polish=QUICK_POLISH, kernel=MIXED, views=[[0, 1], [2], [3]]), "score_samples"),
    Model(MultiViewMixture(2, kernel=BORDERED, polish=None, views=[[0, 1], [2], [3]]), "score_samples"),
    *[Model(MultiViewMixture(2, dependence=dependence), "predict_proba") for dependence in DEPENDENCES],
    Model(KernelHMM(2, polish=None), "predict_proba"),
    Model(KernelHMM(2, kernel=BORDERED, polish=QUICK_POLISH, views=[[0], [1, 2]]), "predict_proba"),
    *[Model(PredictiveStateModel(dynamics, horizon=2), "filter") for dynamics in DYNAMICS[1:]],
    *[Model(LowRankDensity(2, method=method), "score_samples") for method in METHODS],
    *[Model(LowRankDensity(2, method=method, kernel=BORDERED), "score_samples") for method in METHODS],
    Model(LandmarkPCA(n_landmarks=20, kernel=BORDERED), "transform"),
    Model(DoublyStochasticPCA(n_frequencies=16, batch_size=8, max_blocks=2), "transform"),
]

KERNEL_PCAS, MACHINES, BASELINES = (
    [model.estimator for model in MODELS if isinstance(model.estimator, kinds)]
    for kinds in (
        (LandmarkPCA, DoublyStochasticPCA),
        (DoublyStochasticClassifier, DoublyStochasticRegressor),
        (NonparametricEM, HistogramSpectral, SphericalSpectral),
    )
)

# ------------------------------------------------------------------ checks of scikit-learn that a class must fail

TWO_COLUMNS = dict.fromkeys(
    [
        "check_estimators_overwrite_params",
        "check_estimators_fit_returns_self",
        "check_readonly_memmap_input",
        "check_fit_idempotent",
        "check_fit_check_is_fitted",
        "check_n_features_in",
    ],
    "feeds two columns, and a model of three views must refuse two",
)
SEVERAL_COLUMNS = {  # the columns that each check feeds to BinnedFeatures
    "check_array_api_input": 10,
    "check_dict_unchanged": 3,
    "check_dont_overwrite_parameters": 3,
    "check_dtype_object": 10,
    "check_estimators_dtypes": 5,
    "check_estimators_fit_returns_self": 2,
    "check_estimators_nan_inf": 3,
    "check_estimators_overwrite_params": 2,
    "check_estimators_pickle": 3,
    "check_f_contiguous_array_estimator": 3,
    "check_fit2d_1sample": 10,
    "check_fit2d_predict1d": 3,
    "check_fit_check_is_fitted": 2,
    "check_fit_idempotent": 2,
    "check_fit_score_takes_y": 3,
    "check_methods_sample_order_invariance": 3,
    "check_methods_subset_invariance": 3,
    "check_n_features_in": 2,
    "check_n_features_in_after_fitting": 4,
    "check_pipeline_consistency": 3,
    "check_positive_only_tag_during_fit": 4,
    "check_readonly_memmap_input": 2,
    "check_transformer_data_not_an_array": 3,
    "check_transformer_general": 3,
    "check_transformer_preserve_dtypes": 3,
}
ROWS_KNOW_OF_EACH_OTHER = "a row's state depends on the rows around it, so rows cannot be judged apart or shuffled"
EXPECTED_FAILURES = {
    MultiViewMixture: {
        **TWO_COLUMNS,
        **dict.fromkeys(
            [
                "check_sample_weights_pandas_series",
                "check_sample_weights_not_an_array",
                "check_sample_weights_shape",
                "check_sample_weights_not_overwritten",
            ],
            "feeds two columns, and a model of three views must refuse two",
        ),
        "check_sample_weight_equivalence_on_dense_data": (
            "bandwidths are read off the rows, not off their weights; with features held fixed the equivalence holds"
        ),
    },
    KernelHMM: {
        "check_methods_subset_invariance": ROWS_KNOW_OF_EACH_OTHER,
        "check_methods_sample_order_invariance": ROWS_KNOW_OF_EACH_OTHER,
    },
    **{type(baseline): TWO_COLUMNS for baseline in BASELINES},
    BinnedFeatures: {name: f"feeds {n} columns; BinnedFeatures bins one" for name, n in SEVERAL_COLUMNS.items()},
    PointMassFeatures: {name: f"feeds {n} columns; point masses are of one" for name, n in SEVERAL_COLUMNS.items()},
}

# ------------------------------------------------------------------------------------- displays, streams and files

DISPLAYS = {  # the estimator that each draws, and what else it is told
    ComponentDisplay: (MultiViewMixture, (ROWS,)),
    SpectrumDisplay: (MultiViewMixture, ()),
    ResponsibilityDisplay: (MultiViewMixture, (ROWS,)),
    DependenceDisplay: (MultiViewMixture, (ROWS,)),
    DensityDisplay: (LowRankDensity, (ROWS,)),
    StateDisplay: (KernelHMM, (ROWS,)),
    TopicDisplay: (TopicModel, ()),
    TransitionDisplay: (KernelHMM, ()),
    ForecastDisplay: (KernelHMM, (ROWS, 3)),
    ItemProfileDisplay: (LatentClass, ()),
    MembershipDisplay: (CommunityModel, ()),
    ChangePointDisplay: (ChangePoints, (ROWS,)),
    DriftDisplay: (DriftMonitor, ()),
}


class Batches:
    """Batches that can be read again, and a count of how often they were."""

    def __init__(self, batches: list[Any]) -> None:
        self.batches = batches
        self.reads = 0

    def __iter__(self) -> Any:
        self.reads += 1
        return iter(self.batches)


def split(x: Any, size: int) -> list[Any]:
    """Batches of this many rows."""
    return [x[i : i + size] for i in range(0, len(x), size)]


SOURCES = {
    "array": lambda x: x,
    "list": lambda x: split(x, 7),
    "iterable": lambda x: Batches(split(x, 50)),
    "single rows": lambda x: split(x, 1),
    "one batch": lambda x: [x],
    "weighted pairs": lambda x: [(part, np.ones(len(part))) for part in split(x, 13)],
}

WRITERS = {
    "cells.csv": write_csv,
    "cells.tsv": lambda path: write_csv(path, "\t"),
    "semicolons.csv": lambda path: write_csv(path, ";"),
    "bars.txt": lambda path: write_csv(path, "|"),
    "spaces.dat": lambda path: write_csv(path, " "),
    "cells.csv.gz": write_gzip,
    "cells.parquet": lambda path: pq.write_table(pa.table(dict(zip(NAMES, VALUES.T, strict=True))), path),
    "cells.zarr": write_zarr,
    "dense.h5ad": write_h5ad,
    "csr.h5ad": lambda path: write_h5ad(path, kind="csr"),
    "csc.h5ad": lambda path: write_h5ad(path, kind="csc"),
}
