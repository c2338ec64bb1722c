"""Our kernel machines and kernel PCA on tables that fit in memory, at their defaults, beside scikit-learn's.

    python benchmarks/accuracy/kernel_machines.py [--part diabetes|classes|tables]

diabetes: R² of scikit-learn's diabetes table, five folds in ten shuffles, as loaded and standardised. Peers choose
their settings by five folds within the rows to learn from.

classes: accuracy and time on rows of 20 standardised columns made by `make_classification` in three designs, 5,000 rows
to judge by. `SVC` has its defaults.

tables: the sine of the largest angle to exact kernel PCA (not centred) after one pass, on the rows themselves.

Times are of the processor; set OPENBLAS_NUM_THREADS=1. Draws that choices were made on are not among these.
"""

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews import DoublyStochasticClassifier, DoublyStochasticPCA, DoublyStochasticRegressor, LandmarkPCA

RESULTS = Path(__file__).with_name("results")
DESIGNS: dict[str, dict[str, Any]] = {
    "many clusters": {"n_informative": 18, "n_clusters_per_class": 16, "class_sep": 0.7},
    "ten columns in eight clusters": {"n_informative": 10, "n_clusters_per_class": 8, "class_sep": 0.5},
    "easy": {"n_informative": 10, "n_clusters_per_class": 2, "class_sep": 1.0},
}
DRAWS = {6000: 5, 20_000: 2}


def diabetes() -> list[dict[str, Any]]:
    """R² of every regressor, means over shuffles."""
    X, y = load_diabetes(return_X_y=True)
    grid = {"alpha": [0.001, 0.01, 0.1, 1.0], "gamma": [0.003, 0.01, 0.03, 0.1, 1.0]}
    methods = {
        "DoublyStochasticRegressor": DoublyStochasticRegressor(random_state=0),
        "… by 20 epochs of steps, as before": DoublyStochasticRegressor(n_epochs=20, random_state=0),
        "RidgeCV": RidgeCV(np.logspace(-4, 2, 13)),
        "KernelRidge, chosen": GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=5),
    }
    rows = []
    for scaled in (False, True):
        for name, model in methods.items():
            shuffles = 3 if "steps" in name else 10
            start = time.process_time()
            whole = make_pipeline(StandardScaler(), model) if scaled else model
            scores = [
                cross_val_score(whole, X, y, cv=KFold(5, shuffle=True, random_state=seed)).mean()
                for seed in range(_record.FIRST_DRAW, _record.FIRST_DRAW + shuffles)
            ]
            seconds = (time.process_time() - start) / (5 * shuffles)
            columns = "standardised" if scaled else "as loaded"
            row = {"method": name, "columns": columns, "r2": round(float(np.mean(scores)), 4), "shuffles": shuffles}
            rows.append({**row, "sd": round(float(np.std(scores)), 4), "seconds": round(seconds, 4)})
            print(rows[-1], flush=True)
    return rows


def draw(n_rows: int, seed: int, design: dict[str, Any]) -> tuple[np.ndarray, ...]:
    """Rows and classes to learn from, and 5,000 to judge by."""
    X, y = make_classification(n_rows + 5000, 20, n_redundant=2, flip_y=0.05, random_state=seed, **design)
    X = StandardScaler().fit(X[:n_rows]).transform(X)
    return X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]


def measured(model: Any, data: tuple[np.ndarray, ...]) -> dict[str, float]:
    """Accuracy, and the seconds of fit and of both fit and predictions."""
    X, y, test, truth = data
    start = time.process_time()
    model.fit(X, y)
    fitted = time.process_time()
    accuracy = float(np.mean(model.predict(test) == truth))
    return {"accuracy": accuracy, "fit": fitted - start, "both": time.process_time() - start}


def classes() -> list[dict[str, Any]]:
    """Means over draws of every classifier, and ours over `SVC`."""
    rows = []
    for n_rows, draws in DRAWS.items():
        for design, settings in DESIGNS.items():
            found: dict[str, list[dict[str, float]]] = {}
            for seed in range(_record.FIRST_DRAW, _record.FIRST_DRAW + draws):
                data = draw(n_rows, seed, settings)
                found.setdefault("ours", []).append(measured(DoublyStochasticClassifier(random_state=0), data))
                found.setdefault("SVC", []).append(measured(SVC(), data))
            means = {
                name: {key: round(float(np.mean([run[key] for run in runs])), 4) for key in runs[0]}
                for name, runs in found.items()
            }
            ratio = {key: round(means["ours"][key] / means["SVC"][key], 3) for key in ("fit", "both")}
            rows.append({"rows": n_rows, "design": design, "draws": draws, **means, "ours over SVC": ratio})
            print(rows[-1], flush=True)
    return rows


def tables() -> list[dict[str, Any]]:
    """Sines to exact kernel PCA, and whether a warning was given."""

    def standardised(X: np.ndarray) -> np.ndarray:
        return (X - X.mean(axis=0)) / X.std(axis=0)

    data = {
        "digits": load_digits().data / 16,
        "wine": standardised(load_wine().data),
        "breast cancer": standardised(load_breast_cancer().data),
        "diabetes": standardised(load_diabetes().data),
    }
    rows = []
    for name, X in data.items():
        for rank in (2, 3, 5):
            sines, told = {}, 0
            for seed in range(_record.FIRST_DRAW, _record.FIRST_DRAW + 3):
                models = {"DoublyStochasticPCA": DoublyStochasticPCA(rank, random_state=seed)}
                models["LandmarkPCA"] = LandmarkPCA(rank, center=False, random_state=seed)
                models["… of a stream"] = DoublyStochasticPCA(rank, random_state=seed)
                for method, model in models.items():
                    with warnings.catch_warnings(record=True) as caught:
                        warnings.simplefilter("always", ConvergenceWarning)
                        model.fit([X] if "stream" in method else X)
                    told += bool(caught) and "stream" in method
                    sines.setdefault(method, []).append(sine_to_exact(model, X, rank))
            means = {method: round(float(np.mean(values)), 4) for method, values in sines.items()}
            rows.append({"table": name, "components": rank, "sine": means, "streams warned of, of 3": told})
            print(rows[-1], flush=True)
    return rows


def sine_to_exact(model: Any, X: np.ndarray, rank: int) -> float:
    """The sine of the largest angle to the leading eigenvectors of the kernel matrix."""
    kernel = model.kernel_ if hasattr(model, "kernel_") else model.features_.kernel_.kernel
    exact = np.linalg.eigh(kernel.correlation(X, X))[1][:, ::-1][:, :rank]
    found = np.linalg.qr(model.transform(X))[0]
    return float(np.sqrt(max(0.0, 1 - np.linalg.svd(found.T @ exact)[1].min() ** 2)))


def main() -> None:
    """Run one part, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = {"diabetes": diabetes, "classes": classes, "tables": tables}
    parser.add_argument("--part", choices=parts)
    chosen = parser.parse_args().part
    for name in [chosen] if chosen else parts:
        _record.save(RESULTS / f"kernel_machines_{name}.json", parts[name]())


if __name__ == "__main__":
    main()
