"""Joint densities of tables whose columns are nearly normal and correlated: `LowRankDensity`, whitened or not.

    python benchmarks/accuracy/near_gaussian.py [--splits 8]

The ten "mean" columns of scikit-learn's breast cancer table; all ten columns of its diabetes table, and the eight that
are not sex, a code, nor s4, three quarters of which are four values; and a funnel of 1,000 rows: v ~ N(0, 1) and nine
columns that are N(0, exp(v)) given v, so that their scale is exp(v / 2). A quarter of the rows is held out. Likelihoods
are per held-out row, in units in which every column of the training rows has variance one. *Whitened* is
`LowRankDensity()` on rows that the training rows' covariance makes uncorrelated, with the logarithm of the determinant
added, so that it is a density of the same rows. Gaussian mixtures have full covariances, two starts, and of one to
eight components as many as BIC prefers. The bar: the default is at least the better of itself and itself whitened.
"""

import argparse
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.mixture import GaussianMixture

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews import LowRankDensity

RESULTS = Path(__file__).with_name("results") / "near_gaussian.json"
FEW_VALUES = [1, 7]  # columns of the diabetes table: sex and s4
Method = Callable[[np.ndarray, np.ndarray], float]


def funnel(rng: np.random.Generator, n: int = 1000, d: int = 10) -> np.ndarray:
    """Rows (v, exp(v / 2) z_1, …, exp(v / 2) z_{d - 1}) with v and all z standard normal."""
    z = rng.normal(size=(n, d))
    z[:, 1:] *= np.exp(z[:, :1] / 2)
    return z


TABLES: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "breast cancer": lambda _: load_breast_cancer().data[:, :10],
    "diabetes": lambda _: load_diabetes().data,
    "diabetes, eight columns": lambda _: np.delete(load_diabetes().data, FEW_VALUES, axis=1),
    "funnel": funnel,
}


def split(X: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Training rows and others, in units in which the former have mean zero and variance one."""
    order = rng.permutation(len(X))
    kept, held_out = X[order[len(X) // 4 :]], X[order[: len(X) // 4]]
    centre, scale = kept.mean(axis=0), kept.std(axis=0)
    return (kept - centre) / scale, (held_out - centre) / scale


def default(kept: np.ndarray, held_out: np.ndarray) -> float:
    """Mean log-likelihood of the density at its default."""
    return LowRankDensity(random_state=0).fit(kept).score(held_out)


def whitened(kept: np.ndarray, held_out: np.ndarray) -> float:
    """The same of rows x L, where L L^T is the inverse of the covariance: log p(x) = log p(x L) + log |L|."""
    root = np.linalg.cholesky(np.linalg.inv(np.cov(kept.T)))
    return default(kept @ root, held_out @ root) + float(np.linalg.slogdet(root)[1])


def gaussians(kept: np.ndarray, held_out: np.ndarray) -> float:
    """Gaussian mixtures of so many components as BIC prefers."""
    fits = [GaussianMixture(k, n_init=2, random_state=0).fit(kept) for k in range(1, 9)]
    return float(min(fits, key=lambda fit: fit.bic(kept)).score(held_out))


METHODS: dict[str, Method] = {"default": default, "whitened": whitened, "Gaussian mixture by BIC": gaussians}


def summary(splits: list[dict[str, float]]) -> dict[str, Any]:
    """Means, and how far the default is above itself whitened and above the better of the two, which is never."""
    gains = [split["default"] - split["whitened"] for split in splits]
    return {
        "mean": {name: round(fmean(split[name] for split in splits), 3) for name in METHODS},
        "default over whitened": round(fmean(gains), 3),
        "default over the better of the two": round(fmean(min(gain, 0.0) for gain in gains), 3),
        "splits where the default is the better": sum(gain >= 0 for gain in gains),
    }


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=8)
    n_splits, results = parser.parse_args().splits, {}
    for name, table in TABLES.items():
        splits: list[dict[str, float]] = []
        for seed in range(_record.FIRST_DRAW, _record.FIRST_DRAW + n_splits):
            rng = np.random.default_rng(seed)
            kept, held_out = split(table(rng), rng)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = {method: round(score(kept, held_out), 4) for method, score in METHODS.items()}
            print(f"{name:24} {seed}", found, flush=True)
            splits.append({"seed": seed, **found})
        results[name] = {"splits": splits, "summary": summary(splits)}
        print(name, results[name]["summary"], flush=True)
    _record.save(RESULTS, results)


if __name__ == "__main__":
    main()
