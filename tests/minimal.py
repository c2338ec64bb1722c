"""Every model with nothing but the library's own dependencies: ``make wheel`` runs this against the built wheel."""

import importlib.util
import tempfile
import warnings
from pathlib import Path

import numpy as np

import latentviews
from latentviews import (
    ChangePoints,
    CommunityModel,
    ConditionalEmbedding,
    CrowdLabels,
    DoublyStochasticClassifier,
    DoublyStochasticPCA,
    DoublyStochasticRegressor,
    DriftMonitor,
    HSICSelector,
    KernelBeliefPropagation,
    KernelHMM,
    KernelICA,
    LandmarkPCA,
    LatentClass,
    LowRankDensity,
    MultiViewMixture,
    PredictiveStateModel,
    TopicModel,
    TransformedDensity,
    WhitenScale,
    diagnose,
    independence_test,
    load,
    rank_test,
    save,
    two_sample_test,
)
from latentviews.baselines import HistogramSpectral, LatentTreeSpectral, NonparametricEM, SphericalSpectral
from latentviews.datasets import make_hmm, make_multiview
from latentviews.io import InputError, read_table
from latentviews.metrics import label_accuracy
from latentviews.plot import ComponentDisplay
from latentviews.report import write_report

EXTRAS = ("matplotlib", "pandas", "pyarrow", "torch", "dask", "tqdm", "h5py", "zarr", "networkx", "flowio", "rich")
folder = Path(tempfile.mkdtemp())


def sentence(function, *arguments):
    """What is said where an extra is missing."""
    try:
        function(*arguments)
    except (ImportError, InputError) as error:
        return str(error)
    raise AssertionError(f"{function} needs no extra")


assert "site-packages" in latentviews.__file__, f"not the built wheel, but {latentviews.__file__}"
assert not any(importlib.util.find_spec(name) for name in EXTRAS), "not a minimal install"
assert all(getattr(latentviews, name) is not None for name in latentviews.__all__)

X, y, _ = make_multiview(1000, 3, random_state=0)
some, few = X[:200], y[:200]
codes = np.digitize(some, [0.0])
counts = np.random.default_rng(0).poisson(np.eye(3)[few] @ np.random.default_rng(1).gamma(0.5, 4, size=(3, 12)))
series, _, _ = make_hmm(300, random_state=0)
tasks, workers = np.repeat(np.arange(100), 5), np.tile(np.arange(5), 100)

model = MultiViewMixture(3, random_state=0).fit(X)
assert label_accuracy(y, model.predict(X)) > 0.95
save(model, folder / "model.latentviews")
assert np.array_equal(load(folder / "model.latentviews").predict(X), model.predict(X))
assert str(diagnose(model, X, n_permutations=19, random_state=0))
assert write_report(model, X, folder / "report.html").exists()
assert rank_test(X, random_state=0).n_components == 3
assert two_sample_test(some, X[200:400], random_state=0).pvalue > 0.001
assert independence_test(some[:, 0], some[:, 1], random_state=0).pvalue < 0.05
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # two hundred rows are few for some of them
    MultiViewMixture(3, dependence="copula", random_state=0).fit(some).predict_proba(some)
    for other in (LowRankDensity(random_state=0), KernelICA(random_state=0), DriftMonitor(random_state=0)):
        other.fit(some)
    propagation = KernelBeliefPropagation([(0, 1), (1, 2)], random_state=0)
    for other in (TransformedDensity(LowRankDensity(random_state=0)), WhitenScale(), propagation):
        other.fit(some)
    for other in (HistogramSpectral, LatentTreeSpectral, NonparametricEM, SphericalSpectral):
        other(3, random_state=0).fit(X)
    CommunityModel(2, random_state=0).fit(np.kron(np.eye(2), np.ones((20, 20)) - np.eye(20)))
    for other in (LandmarkPCA(2, random_state=0), DoublyStochasticPCA(2, random_state=0)):
        assert other.fit_transform(some).shape == (200, 2)
    for other in (KernelHMM(3, random_state=0), PredictiveStateModel(random_state=0), ChangePoints(random_state=0)):
        other.fit(series)
    for other in (DoublyStochasticClassifier(random_state=0), HSICSelector(1, random_state=0)):
        other.fit(some, few)
    for other in (DoublyStochasticRegressor(random_state=0), ConditionalEmbedding(random_state=0)):
        other.fit(some[:, :2], some[:, 2])
    LatentClass(2, random_state=0).fit(codes)
    TopicModel(3, random_state=0).fit(counts)
    CrowdLabels().fit((tasks, workers, y[tasks]))

(folder / "rows.csv").write_text("a,b\n1,2\n3,4\n")
np.save(folder / "rows.npy", X)
assert np.array_equal(read_table(folder / "rows.npy").values, X)
for said in (
    sentence(read_table, folder / "rows.csv"),
    sentence(read_table(folder / "rows.npy").frame),
    sentence(ComponentDisplay.from_estimator, model, X),
):
    assert "pip install latentviews[" in said, said
