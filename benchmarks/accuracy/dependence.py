"""What allowing for dependent views costs where views are independent, and gains where they are not.

    python benchmarks/accuracy/dependence.py

`MultiViewMixture(k)` beside `MultiViewMixture(k, dependence="copula")` on the designs of `make_multiview`, whose views
are independent inside classes, and on the same classes with correlated views (a Gaussian copula over the same margins,
so that nothing but independence is lost). 2,000 rows, ``--draws`` draws; the share of rows in the right class, and the
log-likelihood per row of 2,000 other rows.
"""

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews import MultiViewMixture
from latentviews.datasets import MultiViewData, make_multiview
from latentviews.metrics import label_accuracy

RESULTS = Path(__file__).with_name("results") / "dependence.json"
N_SAMPLES = 2000
DESIGNS = {  # design, classes, separation
    "Gaussian, separated, k = 3": ("gaussian", 3, 4.0),
    "Gaussian, separated, k = 8": ("gaussian", 8, 4.0),
    "Gaussian and exponential, separated, k = 4": ("gamma", 4, 4.0),
    "Gaussian, overlapping, k = 4": ("gaussian", 4, 2.0),
    "Gaussian and exponential, overlapping, k = 4": ("gamma", 4, 2.0),
    "shapes only, k = 3": ("shapes", 3, 4.0),
}
CORRELATIONS = (0.0, 0.5, 0.9)
MODELS = {"independent": None, "copula": "copula"}


def correlated(data: MultiViewData, correlation: float, rng: np.random.Generator) -> np.ndarray:
    """Rows of the same classes and margins, every two views correlated inside classes by a Gaussian copula."""
    if correlation == 0:
        return data.X
    n, d = data.X.shape
    shared = rng.normal(size=(n, 1))
    scores = np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * rng.normal(size=(n, d))
    X = np.empty((n, d))
    for t, view in enumerate(data.truth.components):
        for h, parts in enumerate(view.laws):
            members = np.flatnonzero(data.y == h)
            points = np.linspace(-40, 40, 8001)
            distribution = sum(w * law.cdf(points) for w, law in parts)
            X[members, t] = np.interp(stats.norm.cdf(scores[members, t]), distribution, points)
    return X


def measure(name: str, correlation: float, draw: int) -> dict[str, Any]:
    """Both models on one draw."""
    design, k, separation = DESIGNS[name]
    data = make_multiview(2 * N_SAMPLES, k, design=design, separation=separation, random_state=draw)
    X, y = correlated(data, correlation, np.random.default_rng(1000 + draw)), data.y
    record: dict[str, Any] = {"design": name, "correlation": correlation, "draw": draw}
    for label, dependence in MODELS.items():
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = MultiViewMixture(k, dependence=dependence, random_state=draw).fit(X[:N_SAMPLES])
        record[label] = {
            "accuracy": round(label_accuracy(y[N_SAMPLES:], model.predict(X[N_SAMPLES:])), 4),
            "held_out": round(model.score(X[N_SAMPLES:]), 4),
            "seconds": round(time.process_time() - start, 2),
        }
    return record


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=5)
    draws, records = parser.parse_args().draws, []
    print(f"{'design':46s} correlation   accuracy independent, copula   log-likelihood independent, copula")
    for name in DESIGNS:
        for correlation in CORRELATIONS:
            mine = [measure(name, correlation, draw) for draw in range(draws)]
            records += mine
            means = [np.mean([r[m][what] for r in mine]) for what in ("accuracy", "held_out") for m in MODELS]
            print(f"{name:46s} {correlation:11g} " + " ".join(f"{value:14.3f}" for value in means), flush=True)
    _record.save(RESULTS, records)


if __name__ == "__main__":
    main()
