"""Classes in many columns of few rows: independent views, copulas, the choice between them, and Gaussian mixtures.

    python benchmarks/accuracy/few_rows.py

scikit-learn's breast cancer table as three views of ten columns (mean, error, worst) and its wine table as thirteen
views, by the adjusted Rand index with the diagnoses and the cultivars. Gaussian mixtures have full covariances and are
the best of five starts, on the columns as they are and standardised. All are told the number of classes, but for those
that are *counted*, by ``n_components="auto"``. Times are seconds of processor time.
"""

import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import scale

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews import MultiViewMixture
from latentviews.metrics import adjusted_rand

RESULTS = Path(__file__).with_name("results") / "few_rows.json"
TABLES: dict[str, tuple[Callable[..., Any], int, list[list[int]] | None]] = {
    "breast cancer": (load_breast_cancer, 2, [list(range(first, first + 10)) for first in (0, 10, 20)]),
    "wine": (load_wine, 3, None),
}
WAYS = {"independent views": None, "copulas": "copula", "auto": "auto"}


def gaussian(X: np.ndarray, k: int) -> np.ndarray:
    """The classes of a Gaussian mixture."""
    return GaussianMixture(k, n_init=5, random_state=0).fit_predict(X)


def methods(k: int, views: list[list[int]] | None) -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    """Labels from rows, by name."""

    def mixture(n_components: int | str, way: str | None) -> Callable[[np.ndarray], np.ndarray]:
        return lambda X: MultiViewMixture(n_components, views=views, dependence=way, random_state=0).fit_predict(X)

    ours = {name: mixture(k, way) for name, way in WAYS.items()}
    counted = {f"{name}, counted": mixture("auto", way) for name, way in WAYS.items()}
    peers = {
        "GaussianMixture": lambda X: gaussian(X, k),
        "GaussianMixture, standardised": lambda X: gaussian(scale(X), k),
    }
    return {**ours, **counted, **peers}


def main() -> None:
    """Measure, print and save."""
    results: dict[str, dict[str, Any]] = {}
    for name, (load, k, views) in TABLES.items():
        X, y = load(return_X_y=True)
        for method, labels in methods(k, views).items():
            start = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = labels(X)
            seconds = round(time.process_time() - start, 2)
            row = {"rand": round(adjusted_rand(y, found), 3), "classes": len(np.unique(found)), "seconds": seconds}
            results.setdefault(name, {})[method] = row
            print(f"{name:14} {method:30} {row}", flush=True)
    _record.save(RESULTS, results)


if __name__ == "__main__":
    main()
