"""Held-out likelihood of `ConditionalEmbedding` beside a Gaussian process and a quantile forest.

    python benchmarks/accuracy/conditional.py [--tuning]

Designs: a spread that grows (heteroscedastic) and two humps that part (bimodal), given one column and given three of
which two matter. 1,000 rows to learn from and 1,000 held out. The Gaussian process is scikit-learn's, with a Gaussian
kernel of one length per column and white noise by marginal likelihood. The forest is a random forest whose leaves
weigh the rows (Meinshausen 2006), smoothed by a Gaussian; leaf size and width are those of the best out-of-sample
likelihood on a fifth of the rows. ``--tuning`` draws other rows than those reported: choices were made on them.
"""

import statistics
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from sklearn.ensemble import RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews import ConditionalEmbedding

RESULTS = Path(__file__).with_name("results") / "conditional.json"
N, DRAWS = 1000, 5
LEAVES, WIDTHS = (5, 10, 20, 40, 80), (0.05, 0.1, 0.2, 0.4)


def heteroscedastic(z: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """sin(3 z) with a spread from .1 to .9."""
    mean, spread = np.sin(3 * z[:, 0]), 0.5 + 0.4 * np.tanh(2 * z[:, -1])
    return mean + spread * rng.normal(size=len(z)), lambda x: stats.norm.logpdf(x, mean, spread)


def bimodal(z: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """Two humps that part from the left to the right, of a spread of .2."""
    middle, apart = 0.5 * np.sin(3 * z[:, -1]), 1 + z[:, 0]

    def exact(x: np.ndarray) -> np.ndarray:
        sides = [stats.norm.logpdf(x, middle + side * apart, 0.2) for side in (-1, 1)]
        return np.logaddexp(*sides) - np.log(2)

    return middle + rng.choice([-1.0, 1.0], len(z)) * apart + 0.2 * rng.normal(size=len(z)), exact


DESIGNS = {
    "heteroscedastic, one column": (heteroscedastic, 1),
    "heteroscedastic, three columns": (heteroscedastic, 3),
    "bimodal, one column": (bimodal, 1),
    "bimodal, three columns": (bimodal, 3),
}


def columns(z: np.ndarray) -> np.ndarray:
    """The columns that matter: the first, and the second where there are more."""
    return z[:, :2]


def embedding(z: np.ndarray, x: np.ndarray, ahead: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Log-likelihoods of the conditional embedding."""
    return ConditionalEmbedding(random_state=0).fit(z, x).at(ahead).log_density(y)


def process(z: np.ndarray, x: np.ndarray, ahead: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Log-likelihoods of a Gaussian process."""
    kernel = ConstantKernel() * RBF(np.ones(z.shape[1])) + WhiteKernel(0.1)
    mean, spread = GaussianProcessRegressor(kernel, normalize_y=True).fit(z, x).predict(ahead, return_std=True)
    return stats.norm.logpdf(y, mean, spread)


def forest(z: np.ndarray, x: np.ndarray, ahead: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Log-likelihoods of a quantile forest, its leaf size and width chosen on a fifth of the rows."""
    cut = len(z) // 5
    scores = {}
    for leaf in LEAVES:
        weights = leaf_weights(z[cut:], x[cut:], z[:cut], leaf)
        for width in WIDTHS:
            scores[leaf, width] = smoothed(weights, x[cut:], x[:cut], width * x.std()).mean()
    leaf, width = max(scores, key=lambda pair: scores[pair])
    return smoothed(leaf_weights(z, x, ahead, leaf), x, y, width * x.std())


def leaf_weights(z: np.ndarray, x: np.ndarray, ahead: np.ndarray, leaf: int) -> np.ndarray:
    """How much every row counts at those ahead: its share of their leaves, on average over the trees."""
    model = RandomForestRegressor(100, min_samples_leaf=leaf, random_state=0).fit(z, x)
    mine, theirs = model.apply(z), model.apply(ahead)
    total = np.zeros((len(ahead), len(z)))
    for tree in range(mine.shape[1]):
        same = theirs[:, tree][:, None] == mine[:, tree][None, :]
        total += same / same.sum(axis=1, keepdims=True)
    return total / mine.shape[1]


def smoothed(weights: np.ndarray, x: np.ndarray, y: np.ndarray, width: float) -> np.ndarray:
    """The log density of y under weighted rows smoothed by a Gaussian, with one row in n + 1 of a broad density."""
    density = np.sum(weights * stats.norm.pdf(y[:, None], x[None, :], width), axis=1)
    broad = stats.cauchy.pdf(y, np.median(x), x.std())
    return np.log((len(x) * density + broad) / (len(x) + 1))


METHODS = {"ConditionalEmbedding": embedding, "Gaussian process": process, "quantile forest": forest}


def measured(design: Any, width: int, first: int) -> dict[str, float]:
    """Medians over draws of the mean held-out log-likelihood, and of the truth's."""
    found: dict[str, list[float]] = {name: [] for name in (*METHODS, "truth")}
    for draw in range(first, first + DRAWS):
        rng = np.random.default_rng(draw)
        z, ahead = rng.uniform(-1, 1, size=(2, N, width))
        (x, _), (y, exact) = design(columns(z), rng), design(columns(ahead), rng)
        found["truth"].append(float(exact(y).mean()))
        for name, method in METHODS.items():
            found[name].append(float(method(z, x, ahead, y).mean()))
    return {name: round(statistics.median(values), 3) for name, values in found.items()}


def main() -> None:
    """Measure, print and save."""
    warnings.simplefilter("ignore")
    tuning = "--tuning" in sys.argv
    rows = {}
    for name, (design, width) in DESIGNS.items():
        rows[name] = measured(design, width, 0 if tuning else _record.FIRST_DRAW)
        print(name, rows[name], flush=True)
    if not tuning:
        _record.save(RESULTS, {"rows": N, "draws": DRAWS, "log-likelihood": rows})


if __name__ == "__main__":
    main()
