"""How often 95 % bootstrap intervals cover the true class weights and means.

    python benchmarks/accuracy/intervals.py [--draws 200] [--resamples 100]
    python benchmarks/accuracy/intervals.py --rows 500        # and saved apart

2,000 rows, separation 2, k = 3, Gaussian and Gaussian/Gamma in turn; the first class is the smallest, a sixth of the
rows. Intervals for the weights and for the mean of the first view in every class come from
`MultiViewMixture.bootstrap`; those for the mean, and for the share of a class above the middle of all means, a step
function, from `MultiViewMixture.expectation` by signed weights. Coverage of those shares is also given by how near the
true share is to zero or one.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from _record import FIRST_DRAW, save
from latentviews import MultiViewMixture
from latentviews.datasets import make_multiview
from latentviews.metrics import match_components

SHARE = "share above the middle, signed weights"
BANDS = {"within .02 of 0 or 1": (0.0, 0.02), "within .1": (0.02, 0.1), "between": (0.1, 0.5)}


def first(x: np.ndarray) -> np.ndarray:
    """The first column."""
    return x[:, 0]


def covered(seed: int, resamples: int, rows: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Whether each interval of one draw covers, by class, and the true shares of the step function."""
    design = ("gaussian", "gamma")[seed % 2]
    X, _, truth = make_multiview(rows, 3, design=design, separation=2, random_state=seed)
    model = MultiViewMixture(3, random_state=0).fit(X)
    grids = [np.linspace(x.min() - 2, x.max() + 2, 200) for x in X.T]
    match = match_components(truth.components, model.components_, grids, truth.weights)
    laws = [parts[0][1] for parts in truth.components[0].laws]
    means = np.array([law.mean() for law in laws])
    middle = means.mean()
    above = np.array([law.sf(middle) for law in laws])
    draws = model.bootstrap(X, resamples, first, random_state=seed)

    def inside(interval: tuple[np.ndarray, np.ndarray], true: np.ndarray) -> np.ndarray:
        return (interval[0][match] <= true) & (true <= interval[1][match])

    found = {
        "weights": inside(draws.interval(), truth.weights),
        "mean, bootstrap": inside(draws.value_interval(), means),
        "mean, signed weights": inside(model.expectation(first, X).interval(), means),
        SHARE: inside(model.expectation(lambda x: x[:, 0] > middle, X).interval(), above),
    }
    return found, above


def by_true_share(hits: np.ndarray, shares: np.ndarray) -> dict[str, dict[str, float]]:
    """How many shares there are at each distance from zero or one, and how often intervals cover them."""
    distances = np.minimum(shares, 1 - shares)
    found = {}
    for name, (low, high) in BANDS.items():
        here = (low <= distances) & (distances <= high)
        if here.any():
            found[name] = {"intervals": int(here.sum()), "coverage": float(hits[here].mean())}
    return found


def main() -> None:
    """Cover, print, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--resamples", type=int, default=100)
    parser.add_argument("--rows", type=int, default=2000)
    arguments = parser.parse_args()
    drawn = [
        covered(seed, arguments.resamples, arguments.rows) for seed in range(FIRST_DRAW, FIRST_DRAW + arguments.draws)
    ]
    results = [result for result, _ in drawn]
    table: dict[str, Any] = {
        name: {
            "coverage": float(np.mean([result[name] for result in results])),
            "by class": np.mean([result[name] for result in results], axis=0).round(3).tolist(),
        }
        for name in results[0]
    }
    shares = np.array([above for _, above in drawn])
    table[SHARE]["by true share"] = by_true_share(np.array([result[SHARE] for result in results]), shares)
    for name, row in table.items():
        met = "met" if 0.9 <= row["coverage"] <= 0.99 else "NOT MET"
        print(f"{name:38} coverage {row['coverage']:.3f} (bar .90 to .99: {met}), by class {row['by class']}")
    print(table[SHARE]["by true share"])
    name = "intervals.json" if arguments.rows == 2000 else f"intervals_{arguments.rows}.json"
    save(Path(__file__).parent / "results" / name, {**vars(arguments), "intervals": table})


if __name__ == "__main__":
    main()
