"""What the weights of `covariate_shift_weights` and the shares of `label_shift` are worth.

    python benchmarks/accuracy/shift.py

Covariate shift (Shimodaira 2000): y = -x + x³ + noise of spread .3, learnt from x ~ N(.5, .5²) by a straight line,
which is the wrong shape, and used where x ~ N(0, .3²). How often the weighted line has the smaller error there. The
same with five columns, of which the first is that one. Label shift: three normal classes in two columns, 1.5 or 3
apart, of equal shares among 500 labelled rows and of shares .7, .2 and .1 among 500 others: the distance of the
estimated shares from the true ones over that of the labelled rows' shares.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews import covariate_shift_weights, label_shift

RESULTS = Path(__file__).with_name("results") / "shift.json"
DRAWS = 100
SHARES = np.array([0.7, 0.2, 0.1])


def curve(x: np.ndarray) -> np.ndarray:
    """What there is to learn."""
    return -x[:, 0] + x[:, 0] ** 3


def covariate_draw(n: int, width: int, seed: int) -> tuple[float, float]:
    """Mean squared errors on the target without weights and with them."""
    rng = np.random.default_rng(seed)
    source, target, ahead = (rng.normal(size=(rows, width)) for rows in (n, n, 1000))
    source[:, 0] = 0.5 + 0.5 * source[:, 0]
    target[:, 0], ahead[:, 0] = 0.3 * target[:, 0], 0.3 * ahead[:, 0]
    y = curve(source) + 0.3 * rng.normal(size=n)
    weights = covariate_shift_weights(source, target, random_state=0)
    errors = []
    for shares in (None, weights):
        model = LinearRegression().fit(source, y, sample_weight=shares)
        errors.append(float(np.mean((model.predict(ahead) - curve(ahead)) ** 2)))
    return errors[0], errors[1]


def label_draw(apart: float, seed: int) -> tuple[float, float]:
    """Distances of shares from the true ones: those of the labelled rows, and those that are estimated."""
    rng = np.random.default_rng(seed)
    centers = apart * np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])
    labels, others = rng.integers(3, size=500), rng.choice(3, p=SHARES, size=500)
    source, target = (rng.normal(size=(500, 2)) + centers[part] for part in (labels, others))
    found = label_shift(source, labels, target, random_state=0)
    return float(np.abs(found.source - SHARES).sum()), float(np.abs(found.target - SHARES).sum())


def main() -> None:
    """Measure, print and save."""
    seeds = range(_record.FIRST_DRAW, _record.FIRST_DRAW + DRAWS)
    results: dict[str, Any] = {"draws": DRAWS, "covariate shift": [], "label shift": []}
    for n, width in ((100, 1), (500, 1), (500, 5)):
        pairs = np.array([covariate_draw(n, width, seed) for seed in seeds])
        row = {
            "n": n,
            "columns": width,
            "share of draws in which weights help": float(np.mean(pairs[:, 1] < pairs[:, 0])),
            "error with weights over without, median": round(float(np.median(pairs[:, 1] / pairs[:, 0])), 3),
        }
        results["covariate shift"].append(row)
        print(row, flush=True)
    for apart in (1.5, 3.0):
        pairs = np.array([label_draw(apart, seed) for seed in seeds])
        before, after = pairs.mean(axis=0)
        row = {"apart": apart, "n": 500, "error over that of labelled shares": round(float(after / before), 3)}
        results["label shift"].append(row)
        print(row, flush=True)
    _record.save(RESULTS, results)


if __name__ == "__main__":
    main()
