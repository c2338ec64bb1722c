"""How often 95 % bootstrap intervals cover the true class weights and means.

    python benchmarks/accuracy/intervals.py [--draws 200] [--resamples 100]

m = 2000, separation 2, k = 3, Gaussian and Gaussian/Gamma in turn. Intervals for the weights and for the mean of the
first view in every class come from `MultiViewMixture.bootstrap`; those for the mean also from
`MultiViewMixture.expectation`, whose standard errors come from signed weights.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from _record import FIRST_DRAW, save
from latentviews import MultiViewMixture
from latentviews.datasets import make_multiview
from latentviews.metrics import match_components


def first(x: np.ndarray) -> np.ndarray:
    """The first column."""
    return x[:, 0]


def covered(seed: int, resamples: int) -> dict[str, np.ndarray]:
    """Whether each interval of one draw covers, by class."""
    design = ("gaussian", "gamma")[seed % 2]
    X, _, truth = make_multiview(2000, 3, design=design, separation=2, random_state=seed)
    model = MultiViewMixture(3, random_state=0).fit(X)
    grids = [np.linspace(x.min() - 2, x.max() + 2, 200) for x in X.T]
    match = match_components(truth.components, model.components_, grids, truth.weights)
    means = np.array([parts[0][1].mean() for parts in truth.components[0].laws])
    draws = model.bootstrap(X, resamples, first, random_state=seed)
    values, errors = model.expectation(first, X)

    def inside(interval: tuple[np.ndarray, np.ndarray], true: np.ndarray) -> np.ndarray:
        return (interval[0][match] <= true) & (true <= interval[1][match])

    return {
        "weights": inside(draws.interval(), truth.weights),
        "mean, bootstrap": inside(draws.value_interval(), means),
        "mean, signed weights": inside((values - 1.96 * errors, values + 1.96 * errors), means),
    }


def main() -> None:
    """Cover, print, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--resamples", type=int, default=100)
    arguments = parser.parse_args()
    results = [covered(seed, arguments.resamples) for seed in range(FIRST_DRAW, FIRST_DRAW + arguments.draws)]
    table = {
        name: {
            "coverage": float(np.mean([result[name] for result in results])),
            "by class": np.mean([result[name] for result in results], axis=0).round(3).tolist(),
        }
        for name in results[0]
    }
    for name, row in table.items():
        met = "met" if 0.9 <= row["coverage"] <= 0.99 else "NOT MET"
        print(f"{name:22} coverage {row['coverage']:.3f} (bar .90 to .99: {met}), by class {row['by class']}")
    save(Path(__file__).parent / "results" / "intervals.json", {**vars(arguments), "intervals": table})


if __name__ == "__main__":
    main()
