"""The default bandwidth of `ChangePoints`, half the median distance, beside others on made-up series.

    python benchmarks/accuracy/change_points_widths.py

It was chosen on training runs of a smart watch; these series had no part in that. Each has three changes, back and
forth between two distributions; the figure is the share of changes found within eight rows, the number of changes being
known.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews import ChangePoints, Gaussian
from latentviews.comparison.features import middle_gaussian

RESULTS = Path(__file__).with_name("results") / "change_points_widths.json"
WIDTHS, MARGIN, CHANGES, DRAWS = (0.125, 0.25, 0.5, 1.0, 2.0), 8, 3, 15


def humps(rng: np.random.Generator, odd: bool) -> np.ndarray:
    """One hump, or two with the same mean and spread."""
    return rng.choice([-0.95, 0.95], size=(120, 1)) + 0.3 * rng.normal(size=(120, 1)) if odd else normal(rng, 120, 1)


def normal(rng: np.random.Generator, n: int, d: int, mean: float = 0.0, spread: float = 1.0) -> np.ndarray:
    """Independent normal columns."""
    return rng.normal(mean, spread, size=(n, d))


def correlated(rng: np.random.Generator, odd: bool) -> np.ndarray:
    """Two normal columns."""
    return rng.multivariate_normal([0, 0], [[1, 0.9 * odd], [0.9 * odd, 1]], size=100)


SEGMENTS: dict[str, Callable[[np.random.Generator, bool], np.ndarray]] = {
    "mean": lambda rng, odd: normal(rng, 60, 1, mean=1.2 * odd),
    "spread": lambda rng, odd: normal(rng, 80, 1, spread=1 + 1.5 * odd),
    "one hump or two": humps,
    "correlation": correlated,
    "mean of five columns": lambda rng, odd: normal(rng, 50, 5, mean=0.8 * odd),
}


def found_share(x: np.ndarray, truth: np.ndarray, width: float) -> float:
    """The share of true changes that have one of those found near them."""
    kernel = Gaussian(width * np.asarray(middle_gaussian(x).bandwidth))
    changes = ChangePoints(CHANGES, kernel=kernel, random_state=0).fit(x).changes_
    return float(np.mean([np.abs(changes - place).min() <= MARGIN for place in truth]))


def main() -> None:
    """Measure, print and save."""
    results: dict[str, Any] = {}
    for name, segment in SEGMENTS.items():
        shares = []
        for draw in range(DRAWS):
            rng = np.random.default_rng(_record.FIRST_DRAW + draw)
            parts = [segment(rng, bool(number % 2)) for number in range(CHANGES + 1)]
            truth = np.cumsum([len(part) for part in parts])[:-1]
            shares.append([found_share(np.concatenate(parts), truth, width) for width in WIDTHS])
        means = np.mean(shares, axis=0)
        results[name] = {f"{width} median": round(float(mean), 3) for width, mean in zip(WIDTHS, means, strict=True)}
        print(name, results[name], flush=True)
    _record.save(RESULTS, results)


if __name__ == "__main__":
    main()
