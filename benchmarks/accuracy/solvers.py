"""Which solver of the tensor should be the default: the error and time of the spectral estimate with each.

    python benchmarks/accuracy/solvers.py

Six overlapping Gaussian classes, 2,000 rows, thirty draws.
"""

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from _record import save
from latentviews import JointDiagonalization, MultiViewMixture, PowerMethod
from latentviews.datasets import make_multiview
from latentviews.metrics import Reordered, density_error, match_components

SOLVERS = {"power": PowerMethod(), "joint": JointDiagonalization()}


def measure(seed: int, solver: Any) -> tuple[float, float]:
    """The error of one draw, and the seconds of its fit."""
    X, _, truth = make_multiview(2000, 6, separation=2, random_state=seed)
    start = time.perf_counter()
    model = MultiViewMixture(6, polish=None, solver=solver, random_state=0).fit(X)
    seconds = time.perf_counter() - start
    grids = [np.linspace(x.min() - 2, x.max() + 2, 200) for x in X.T]
    match = match_components(truth.components, model.components_, grids, truth.weights)
    matched = [Reordered(view, match) for view in model.components_]
    return density_error(truth.components, matched, grids, truth.weights), seconds


def main() -> None:
    """Measure, print, save."""
    found = {name: np.array([measure(seed, solver) for seed in range(200, 230)]) for name, solver in SOLVERS.items()}
    ratios = np.median(found["joint"] / found["power"], axis=0)
    print(f"joint diagonalisation over power method: error {ratios[0]:.3f}, time {ratios[1]:.2f} (medians of 30 draws)")
    medians = {name: np.median(values, axis=0).round(4).tolist() for name, values in found.items()}
    save(
        Path(__file__).parent / "results" / "solvers.json",
        {"error and seconds": medians, "joint over power": ratios.round(4).tolist()},
    )


if __name__ == "__main__":
    main()
