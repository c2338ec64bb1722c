"""A small fitted model of every estimator, as files that later releases must load: `python saved_models.py io/formatN`.

The files of a format are written once, by the code that introduced it, and kept: never write them again. A new format
gets a folder of its own beside the others, and a new estimator goes into the newest, where only what is missing is
written.
"""

import sys
import warnings
from pathlib import Path

import numpy as np

import latentviews as lv
from latentviews.baselines import HistogramSpectral, LatentTreeSpectral, NonparametricEM, SphericalSpectral
from latentviews.datasets import make_hmm, make_multiview

X = make_multiview(80, 2, design="gamma", random_state=0).X
WIDE = np.hstack([X, np.random.default_rng(0).normal(size=(len(X), 1))])
SERIES = make_hmm(150, random_state=0).X
SMALL = {"n_epochs": 1, "n_blocks": 2, "n_directions": 8, "n_frequencies": 16, "random_state": 0}
DYNAMICS = lv.TwoStageRegression(sizes=(5,), memories=(5,), window=3)
FEW = lv.FourierFeatures(n_frequencies=5, random_state=0)
SCORES = lv.Gaussian("median", space=lv.Interval(np.floor(WIDE.min()), np.ceil(WIDE.max())))
ANSWERS = ("predict_proba", "transform", "filter", "predict", "score_samples", "segments")
RNG = np.random.default_rng(0)
KINDS = np.repeat([0, 1], 30)
CODES = (RNG.random((60, 5)) < np.where(KINDS, 0.8, 0.2)[:, None]).astype(float)
VOTES = np.array([[task, worker, int(CODES[task, worker])] for task in range(60) for worker in range(5)])
COUNTS = RNG.poisson(np.where(KINDS[:, None], [4, 3, 1, 0.3], [0.3, 1, 3, 4]))
LINKS = np.triu(RNG.random((60, 60)) < np.where(KINDS[:, None] == KINDS, 0.6, 0.1), 1)
ANGLES = np.column_stack(
    [RNG.vonmises(2.0 * KINDS, 4.0), KINDS + 0.3 * RNG.normal(size=60), KINDS, KINDS ^ (RNG.random(60) < 0.1)]
)
WORDS = np.array(["no", "yes"])[CODES.astype(int)][:, :3]
POINTS = KINDS[:, None] * 3.0 + RNG.normal(size=(60, 3))
FEW_POINTS = POINTS[20:40]
GRAM = np.exp(-((FEW_POINTS[:, None] - FEW_POINTS[None]) ** 2).sum(axis=2) / 4)
IDS = np.repeat(np.arange(20.0)[:, None], 3, axis=1)
PRODUCT = [lv.WrappedGaussian(0.5).on([0]) * lv.Gaussian(0.5).on([1]), lv.Delta(), lv.Delta()]

# a name, a model, and what it is fitted to
MODELS = {
    "mixture": (lv.MultiViewMixture(2, random_state=0), X),
    "paper": (lv.MultiViewMixture(2, polish=None, random_state=0), X),
    "copulas": (lv.MultiViewMixture(2, dependence="copula", random_state=0), X),
    "views": (lv.MultiViewMixture(2, views=[[0], [1], [2, 3]], random_state=0), WIDE),
    "durations": (lv.MultiViewMixture(2, kernel=lv.Gaussian(0.5, space=lv.HalfLine()), random_state=0), np.abs(X[:40])),
    "chain": (lv.KernelHMM(2, random_state=0), SERIES),
    "duration_chain": (lv.KernelHMM(2, kernel=lv.Gaussian(space=lv.HalfLine()), random_state=0), np.exp(SERIES / 5)),
    "predictive": (lv.PredictiveStateModel(DYNAMICS, features=FEW, horizon=2, random_state=0), SERIES),
    "density": (lv.LowRankDensity(2, random_state=0), X),
    "signed": (lv.LowRankDensity(2, method=lv.SignedTrain(0.5), random_state=0), X),
    "score_density": (lv.LowRankDensity(2, kernel=SCORES, random_state=0), X[:40]),
    "signed_scores": (lv.LowRankDensity(2, method=lv.SignedTrain(0.5), kernel=SCORES, random_state=0), X[:40]),
    "landmarks": (lv.LandmarkPCA(2, n_landmarks=20, random_state=0), X),
    "stochastic": (
        lv.DoublyStochasticPCA(2, kernel=lv.Gaussian(1.0), batch_size=32, n_frequencies=16, random_state=0),
        X,
    ),
    "classifier": (lv.DoublyStochasticClassifier(**SMALL), X, (X[:, 0] > 0).astype(int)),
    "regressor": (lv.DoublyStochasticRegressor(**SMALL), X[:, :2], X[:, 2]),
    "em": (NonparametricEM(2, random_state=0), X),
    "histogram": (HistogramSpectral(2, random_state=0), X),
    "spherical": (SphericalSpectral(2, random_state=0), X),
    "tree": (LatentTreeSpectral(2, random_state=0), WIDE),
    "classes": (lv.LatentClass(2, random_state=0), CODES),
    "crowd": (lv.CrowdLabels(), VOTES),
    "topics": (lv.TopicModel(2, concentration=1.0, random_state=0), COUNTS),
    "topic_views": (lv.TopicModel(2, 1.0, views=[[0], [1], [2]], kernel=lv.Delta(), random_state=0), CODES),
    "communities": (lv.CommunityModel(2, concentration=1.0, random_state=0), (LINKS | LINKS.T).astype(float)),
    "ica": (lv.KernelICA(2, random_state=0), X),
    "products": (lv.MultiViewMixture(2, views=[[0, 1], [2], [3]], kernel=PRODUCT, random_state=0), ANGLES[15:45]),
    "angle_chain": (
        lv.KernelHMM(2, views=[[0], [1]], kernel=[lv.VonMises(), lv.Delta()], random_state=0),
        ANGLES[:, [0, 2]],
    ),
    "words": (lv.MultiViewMixture(2, kernel=lv.Delta(), random_state=0), WORDS),
    "objects": (lv.MultiViewMixture(2, kernel=lv.Precomputed(GRAM), polish=None, random_state=0), IDS),
    "conditional": (lv.ConditionalEmbedding(lv.Gaussian(0.5), lv.Gaussian(0.5), 0.01), X[:40, :1], X[:40, 1]),
    "counted": (lv.MultiViewMixture("auto", polish=None, random_state=0), X[:60]),
    "whitened": (lv.WhitenScale(), X),
    "transformed": (lv.TransformedDensity(lv.LowRankDensity(2, method=lv.SignedTrain(0.5), random_state=0)), X[:40]),
    "changes": (lv.ChangePoints(n_permutations=20, n_landmarks=20, random_state=0), SERIES[:60]),
    "drift": (lv.DriftMonitor(5, n_landmarks=20, random_state=0), X),
    "selected": (lv.HSICSelector(2), X, (X[:, 0] > 0).astype(int)),
    "propagation": (lv.KernelBeliefPropagation(random_state=0), X[:40]),
}

NEWER = {"durations", "duration_chain", "score_density", "signed_scores", *list(MODELS)[-18:]}  # than format 1


def write(folder: Path) -> None:
    """Save every model that has no file, and beside them what it answers to some rows and by which method."""
    found = folder / "answers.npz"
    beside = dict(np.load(found)) if found.exists() else {}
    for name, (model, rows, *y) in MODELS.items():
        if (folder / f"{name}.latentviews").exists():
            continue
        model.fit(rows, *y)
        lv.save(model, folder / f"{name}.latentviews")
        method = next(each for each in ANSWERS if hasattr(model, each))
        beside |= {f"{name}_rows": rows[:20], f"{name}_method": np.array(method)}
        beside[f"{name}_answer"] = getattr(model, method)(rows[:20])
    np.savez_compressed(found, **beside)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    write(Path(sys.argv[1]))
