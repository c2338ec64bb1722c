"""Digits in three thirds: classes by precomputed Gram matrices beside the same kernel on pixels.

    python benchmarks/accuracy/digits.py

The pixels of scikit-learn's digits that vary, in three views from top to bottom. Draws of 900 rows, of five digits and
of all ten, none of which was looked at while the method was made; accuracies after the best naming of the classes.
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
DRAWS, ROWS = 3, 900


def measured(n_classes: int, draw: int) -> dict[str, Any]:
    """Accuracies and seconds of both on one draw."""
    pixels, digits = load_digits(n_class=n_classes, return_X_y=True)
    rows = np.random.default_rng(draw).permutation(len(pixels))[:ROWS]
    X, y = pixels[rows] / 16, digits[rows]
    X = X[:, X.std(axis=0) > 0.02]
    views = [part.tolist() for part in np.array_split(np.arange(X.shape[1]), 3)]
    start = time.perf_counter()
    explicit = MultiViewMixture(n_classes, views=views, kernel=Gaussian("median"), random_state=draw).fit(X)
    middle = time.perf_counter()
    kernels = [Precomputed(k.gram(X[:, v], X[:, v])) for v in views for k in [Gaussian("median").adapt(X[:, v])]]
    ids = np.tile(np.arange(float(len(X)))[:, None], (1, 3))
    model = MultiViewMixture(n_classes, kernel=kernels, random_state=draw).fit(ids)
    return {
        "digits": n_classes,
        "draw": draw,
        "kernel on pixels": round(label_accuracy(y, explicit.predict(X)), 4),
        "Gram matrices": round(label_accuracy(y, model.predict(ids)), 4),
        "seconds": [round(middle - start, 1), round(time.perf_counter() - middle, 1)],
    }


def main() -> None:
    """Measure, print and save."""
    warnings.simplefilter("ignore")
    rows = []
    for n_classes in (5, 10):
        for draw in range(_record.FIRST_DRAW, _record.FIRST_DRAW + DRAWS):
            rows.append(measured(n_classes, draw))
            print(rows[-1], flush=True)
    _record.save(RESULTS, rows)


if __name__ == "__main__":
    main()
