"""Ten populations that overlap, their number not given: made-up tables that look like a gated T-cell sample.

    python benchmarks/accuracy/populations.py [--draws 4] [--rows 10000]

Populations have from 1 % to a quarter of the rows, and levels of five markers; every one has correlations, spreads and
skews of its own. Two markers part them clearly, the others by 2 to 3 standard deviations, so that many pairs have no
valley between them. The score is FlowCAP's F-measure. Copulas are told the number, or count; Gaussian mixtures count by
BIC, and HDBSCAN as in `cytometry.py`. Times are seconds of processor time. The rule was made on other draws.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from cytometry import hdbscan
from sklearn.mixture import GaussianMixture

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews import MultiViewMixture
from latentviews.metrics import f_measure

RESULTS = Path(__file__).with_name("results") / "populations.json"
GAPS = (2.0, 2.3, 2.6, 3.0)  # between the levels of a marker that parts populations, in standard deviations
LEVELS = np.array([  # of two markers that part clearly, and of three that do not, by population
    [1, 0, 1, 1, 1], [1, 0, 0, 1, 1], [1, 0, 0, 0, 1], [1, 0, 1, 0, 0], [0, 1, 1, 1, 1],
    [0, 1, 0, 1, 1], [0, 1, 0, 0, 0.6], [0, 1, 1, 0, 0], [0, 0.25, 0.3, 0.2, 0.5], [1, 1, 0, 0.5, 1],
])  # fmt: skip
SHARES = np.array([0.22, 0.16, 0.12, 0.015, 0.16, 0.03, 0.09, 0.11, 0.06, 0.015])


def populations(n: int, gap: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows in columns of variance one, and their populations."""
    d, gaps = 5, np.array([6.0, 6.0, gap, 0.85 * gap, 0.8 * gap]) * rng.uniform(0.9, 1.1, 5)
    shares = SHARES * rng.uniform(0.7, 1.4, len(SHARES))
    y = rng.choice(len(shares), n, p=shares / shares.sum())
    X = np.empty((n, d))
    for h, levels in enumerate(LEVELS):
        mixing = np.eye(d) + 0.35 * rng.normal(size=(d, d))
        z = rng.normal(size=(int(np.sum(y == h)), d)) @ (mixing / np.linalg.norm(mixing, axis=1, keepdims=True)).T
        bent = np.sinh((np.arcsinh(z) + rng.uniform(-0.35, 0.35, d)) / rng.uniform(0.85, 1.1, d))
        bent = (bent - np.median(bent, axis=0)) / bent.std(axis=0)
        X[y == h] = (levels + rng.normal(0, 0.06, d)) * gaps + bent * rng.uniform(0.8, 1.15, d)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def copulas(k: int | str) -> Callable[[np.ndarray], np.ndarray]:
    """Classes by copulas, told their number or "auto"."""
    return lambda X: MultiViewMixture(k, dependence="copula", random_state=0).fit_predict(X)


def gaussians(X: np.ndarray) -> np.ndarray:
    """Gaussian mixtures of so many components as BIC prefers."""
    fits = [GaussianMixture(k, random_state=0).fit(X) for k in range(4, 25, 2)]
    return min(fits, key=lambda fit: fit.bic(X)).predict(X)


METHODS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "copulas, number not given": copulas("auto"),
    "copulas, told ten": copulas(10),
    "Gaussian mixture by BIC": gaussians,
    "HDBSCAN + nearest neighbours": lambda X: hdbscan(X, 0, 0, None),
}


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--rows", type=int, default=10_000)
    arguments, records = parser.parse_args(), []
    for draw in range(arguments.draws):
        gap, seed = GAPS[draw % len(GAPS)], _record.FIRST_DRAW + draw
        X, y = populations(arguments.rows, gap, np.random.default_rng(seed))
        for name, labels in METHODS.items():
            start = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = labels(X)
            seconds = round(time.process_time() - start, 1)
            score, count = round(f_measure(y, found, unknown=None), 3), len(np.unique(found))
            records.append({"method": name, "seed": seed, "gap": gap, "found": count, "F": score, "seconds": seconds})
            print(f"gap {gap} {name:30} {count:3} classes, F {score:.3f}, {seconds:.1f} s", flush=True)
    _record.save(RESULTS, {**vars(arguments), "draws": records})


if __name__ == "__main__":
    main()
