"""How often `diagnose` flags dependence inside classes: where there is none, and where there is some.

    python benchmarks/accuracy/diagnoses.py                # about half an hour on one core
    python benchmarks/accuracy/diagnoses.py --draws 5

Draw i of a cell is ``make_multiview(m, k, design=..., separation=..., random_state=i)``, i from 200 on. Where the
correlation is not zero, the second view of every class is replaced, rank by rank, so that it and the first have the
Gaussian copula with that correlation inside the class; its margin stays as it was.
"""

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews import MultiViewMixture, diagnose
from latentviews.datasets import make_multiview

RESULTS = Path(__file__).with_name("results") / "diagnoses.json"
INDEPENDENT = [
    {"design": design, "k": k, "m": m, "separation": separation, "correlation": 0.0}
    for design in ("gaussian", "gamma")
    for k, m, separation in ((2, 2000, 4.0), (3, 2000, 2.0), (3, 500, 2.0), (3, 10_000, 2.0), (3, 2000, 1.2))
]
SHAPES = [{"design": "shapes", "k": 3, "m": 4000, "separation": 0.0, "correlation": 0.0}]
DEPENDENT = [
    {"design": "gaussian", "k": 3, "m": 2000, "separation": separation, "correlation": correlation}
    for separation in (4.0, 2.0)
    for correlation in (0.15, 0.3, 0.6)
]


def tie(X: np.ndarray, y: np.ndarray, correlation: float, rng: np.random.Generator) -> np.ndarray:
    """The same margins in every class, the first two views tied by a Gaussian copula."""
    X = X.copy()
    for h in np.unique(y):
        rows = np.flatnonzero(y == h)
        ranks = X[rows, 0].argsort().argsort()
        normal = np.sort(rng.normal(size=len(rows)))[ranks]
        other = correlation * normal + np.sqrt(1 - correlation**2) * rng.normal(size=len(rows))
        X[rows, 1] = np.sort(X[rows, 1])[other.argsort().argsort()]
    return X


def measure(cell: dict[str, Any], draws: int) -> dict[str, Any]:
    """The share of draws with a flag, with a small p-value whatever the effect, and the largest effects."""
    flagged, significant, effects, start = 0, 0, [], time.perf_counter()
    for seed in range(_record.FIRST_DRAW, _record.FIRST_DRAW + draws):
        X, y, _ = make_multiview(
            cell["m"], cell["k"], design=cell["design"], separation=cell["separation"], random_state=seed
        )
        if cell["correlation"]:
            X = tie(X, y, cell["correlation"], np.random.default_rng(seed))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = MultiViewMixture(cell["k"], random_state=0).fit(X)
            found = diagnose(model, X, n_permutations=99, random_state=0).dependence
        flagged += bool(found.flagged())
        significant += bool(found.flagged(least=0.0))
        effects.append(float(np.nanmax(found.effect)))
    seconds = (time.perf_counter() - start) / draws
    shares = {"flagged": flagged / draws, "significant": significant / draws}
    return {**cell, "draws": draws, **shares, "median_effect": round(float(np.median(effects)), 3), "seconds": seconds}


def main() -> None:
    """Measure every cell and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=20)
    given = parser.parse_args()
    results = []
    for cell in INDEPENDENT + SHAPES + DEPENDENT:
        results.append(measure(cell, given.draws))
        print(results[-1], flush=True)
    _record.save(RESULTS, results)


if __name__ == "__main__":
    main()
