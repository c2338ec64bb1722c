"""Seven activities in windows of a chest accelerometer: the agreement of `KernelHMM` and hmmlearn's model with labels.

    LATENTVIEWS_DATA=… python benchmarks/accuracy/activities.py

A row is a window of 52 readings, a second: the mean, standard deviation and mean square of every axis, or two of these,
in the recording's own units. Models have seven states and see no label. Of hmmlearn's Gaussian model with full
covariances the most likely of ten starts counts; `KernelHMM` is fitted with three seeds. The person is the one that
the library is developed on, so that these are figures of fitted rows, not of a judgement.
"""

import json
import logging
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews import KernelHMM
from latentviews.datasets import load_series

RESULTS = Path(__file__).with_name("results") / "activities.json"
STATES, WINDOW, STARTS, SEEDS = 7, 52, 10, 3


def windows() -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Features of every window by name, and its commonest label."""
    data = load_series("chest_accel")
    n = len(data.X) // WINDOW
    parts, labels = data.X[: n * WINDOW].reshape(n, WINDOW, 3), np.reshape(data.labels[: n * WINDOW], (n, WINDOW))
    mean, spread, square = parts.mean(axis=1), parts.std(axis=1), (parts**2).mean(axis=1)
    features = {
        "mean, sd": np.concatenate([mean, spread], axis=1),
        "mean, sd, energy": np.concatenate([mean, spread, square], axis=1),
        "mean, log sd": np.concatenate([mean, np.log1p(spread)], axis=1),
    }
    return features, np.array([max(set(row), key=list(row).count) for row in labels])


def of_hmmlearn(X: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
    """The most likely of several starts."""
    from hmmlearn.hmm import GaussianHMM

    best, began = (-np.inf, 0.0), time.process_time()
    for seed in range(STARTS):
        model = GaussianHMM(STATES, "full", n_iter=100, random_state=seed)
        try:
            best = max(best, (model.fit(X).score(X), adjusted_rand_score(labels, model.predict(X))))
        except ValueError:  # a state collapsed
            continue
    return {"ari": best[1], "seconds": time.process_time() - began}


def of_kernels(X: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
    """Every seed's agreement."""
    began = time.process_time()
    paths = [KernelHMM(STATES, random_state=seed).fit(X).predict(X) for seed in range(SEEDS)]
    return {
        "ari": [adjusted_rand_score(labels, path) for path in paths],
        "seconds": (time.process_time() - began) / SEEDS,
    }


def main() -> None:
    """Measure, print, save."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    features, labels = windows()
    measured = {
        name: {"KernelHMM": of_kernels(X, labels), "GaussianHMM": of_hmmlearn(X, labels)}
        for name, X in features.items()
    }
    print(json.dumps(measured, indent=2))
    _record.save(RESULTS, measured, (*_record.PACKAGES, "hmmlearn"))


if __name__ == "__main__":
    main()
