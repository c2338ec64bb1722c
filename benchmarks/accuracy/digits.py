"""Digits in three thirds: classes by precomputed Gram matrices beside the same kernel on pixels.

    python benchmarks/accuracy/digits.py

The pixels of scikit-learn's digits that vary, in three views from top to bottom. Draws of 900 rows, of five digits and
of all ten, none of which was looked at while the method was made; accuracies after the best naming of the classes, the
mean of fits with three seeds, which may differ by several hundredths.
"""

import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews import Gaussian, MultiViewMixture, Precomputed
from latentviews.metrics import label_accuracy

RESULTS = Path(__file__).with_name("results") / "digits.json"
DRAWS, SEEDS, ROWS = 6, 3, 900
NAMES = ("kernel on pixels", "Gram matrices")


def measured(n_classes: int, draw: int) -> dict[str, Any]:
    """Accuracies and seconds of both on one draw."""
    pixels, digits = load_digits(n_class=n_classes, return_X_y=True)
    rows = np.random.default_rng(draw).permutation(len(pixels))[:ROWS]
    X, y = pixels[rows] / 16, digits[rows]
    X = X[:, X.std(axis=0) > 0.02]
    views = [part.tolist() for part in np.array_split(np.arange(X.shape[1]), 3)]
    kernels = [Precomputed(k.gram(X[:, v], X[:, v])) for v in views for k in [Gaussian("median").adapt(X[:, v])]]
    ids = np.tile(np.arange(float(len(X)))[:, None], (1, 3))
    ways: list[tuple[dict[str, Any], np.ndarray]] = [
        ({"views": views, "kernel": Gaussian("median")}, X),
        ({"kernel": kernels}, ids),
    ]
    record: dict[str, Any] = {"digits": n_classes, "draw": draw}
    for name, (settings, table) in zip(NAMES, ways, strict=True):
        start = time.process_time()
        fits = [MultiViewMixture(n_classes, random_state=seed, **settings).fit(table) for seed in range(SEEDS)]
        seconds = (time.process_time() - start) / SEEDS
        accuracies = [label_accuracy(y, fit.predict(table)) for fit in fits]
        record[name] = round(float(np.mean(accuracies)), 4)
        record[f"{name}, every seed"] = [round(float(one), 4) for one in accuracies]
        record[f"{name}, seconds"] = round(seconds, 1)
    return record


def main() -> None:
    """Measure, print and save."""
    warnings.simplefilter("ignore")
    rows = []
    for n_classes in (5, 10):
        for draw in range(_record.FIRST_DRAW, _record.FIRST_DRAW + DRAWS):
            rows.append(measured(n_classes, draw))
            print(rows[-1], flush=True)
    for n_classes in (5, 10):
        some = [row for row in rows if row["digits"] == n_classes]
        means = {name: round(float(np.mean([row[name] for row in some])), 4) for name in NAMES}
        rows.append({"digits": n_classes, "draw": "mean of all"} | means)
        print(rows[-1])
    _record.save(RESULTS, rows)


if __name__ == "__main__":
    main()
