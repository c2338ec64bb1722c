"""How often 90 % intervals of `PredictiveStateModel` hold the rows that come, and how wide they are.

    LATENTVIEWS_DATA=… python benchmarks/accuracy/forecast_bands.py
    python benchmarks/accuracy/forecast_bands.py --series ar wave --draws 4        # without recorded series

Made-up series are fitted on 300 or 1,000 rows and judged on the 1,000 that follow, recorded ones on the first
three quarters of their rows (of chest_accel, 4,000 rows from its middle on) and judged on the last. Widths are in
standard deviations of the fitted rows, and averaged over columns and steps as coverage is.
"""

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.signal import lfilter

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews import PredictiveStateModel
from latentviews.datasets import load_series

RESULTS = Path(__file__).with_name("results") / "coverage.json"
ORIGINS, HORIZON, WARM = 600, 10, 200
Draw = Callable[[int, np.random.Generator], np.ndarray]


def autoregressive(noise: np.ndarray, *weights: float) -> np.ndarray:
    """x_t = Σ_i w_i x_{t-i} + noise_t, without the first 500 rows."""
    return lfilter([1.0], [1.0, *(-w for w in weights)], noise)[500:, None]


def wave(n: int, rng: np.random.Generator) -> np.ndarray:
    """Two columns of one phase that wanders."""
    phase = np.cumsum(0.3 + 0.05 * rng.normal(size=n))
    return np.column_stack([np.sin(phase), np.cos(2 * phase)]) + 0.1 * rng.normal(size=(n, 2))


def regimes(n: int, rng: np.random.Generator) -> np.ndarray:
    """Two autoregressions that take turns, about every hundred rows."""
    calm, x = np.cumsum(rng.random(n) < 0.01) % 2 == 1, np.zeros(n)
    noise = rng.normal(size=n) * np.where(calm, 0.3, 1.0)
    for t in range(1, n):
        x[t] = (0.9 if calm[t] else -0.5) * x[t - 1] + noise[t]
    return x[:, None]


def volatile(n: int, rng: np.random.Generator) -> np.ndarray:
    """Noise whose variance depends on its last values, over a slow autoregression."""
    x, variance = np.zeros(n + 500), 1.0
    for t in range(1, n + 500):
        variance = 0.1 + 0.2 * x[t - 1] ** 2 + 0.7 * variance
        x[t] = np.sqrt(variance) * rng.normal()
    return x[500:, None] + autoregressive(0.5 * rng.normal(size=n + 500), 0.9)


def seasons(n: int, rng: np.random.Generator) -> np.ndarray:
    """Two periods and an autoregression."""
    t = np.arange(n)[:, None]
    waves = np.sin(2 * np.pi * t / 24) + 0.5 * np.sin(2 * np.pi * t / 168)
    return waves + autoregressive(0.2 * rng.normal(size=n + 500), 0.9)


def logistic(n: int, rng: np.random.Generator) -> np.ndarray:
    """A chaotic map seen through noise."""
    x = np.full(n, 0.3)
    for t in range(1, n):
        x[t] = 3.8 * x[t - 1] * (1 - x[t - 1])
    return (x + 0.05 * rng.normal(size=n))[:, None]


MADE: dict[str, Draw] = {
    "ar": lambda n, rng: autoregressive(rng.normal(size=n + 500), 0.8),
    "ar of two": lambda n, rng: autoregressive(rng.normal(size=n + 500), 1.6, -0.8),
    "ar, heavy tails": lambda n, rng: autoregressive(rng.standard_t(3, size=n + 500), 0.7),
    "slow ar": lambda n, rng: autoregressive(rng.normal(size=n + 500), 0.99),
    "wave": wave,
    "regimes": regimes,
    "volatile": volatile,
    "seasons": seasons,
    "logistic map": logistic,
}
RECORDED = ("daphnet", "wall_robot", "slot_car", "geyser", "chest_accel")


def recorded(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Fitted and later rows of a recorded series."""
    X = load_series(name).X
    if name == "chest_accel":
        X = X[len(X) // 2 :][:4000]
    cut = 3 * len(X) // 4
    return X[:cut], X[cut:]


def judge(fitted: np.ndarray, later: np.ndarray) -> dict[str, Any]:
    """Coverage and width by steps ahead, from origins in the later rows."""
    horizon, began = min(HORIZON, len(fitted) // 50), time.process_time()
    model = PredictiveStateModel(horizon=horizon, random_state=0).fit(fitted)
    seconds = time.process_time() - began
    rows = np.concatenate([fitted[-WARM:], later])
    every = np.arange(min(WARM, len(fitted)) - 1, len(rows) - horizon)
    origins = every[np.linspace(0, len(every) - 1, min(len(every), ORIGINS)).astype(int)]
    forecast = model.forecast(rows, horizon, origins=origins)
    low, high = np.moveaxis(forecast.quantile([0.05, 0.95]), -1, 0)
    ahead = np.stack([rows[origins + step] for step in range(1, horizon + 1)], axis=1)
    scale = fitted.std(axis=0)
    return {
        "coverage by step": ((low <= ahead) & (ahead <= high)).mean(axis=(0, 2)).tolist(),
        "width by step": ((high - low) / scale).mean(axis=(0, 2)).tolist(),
        "mae": float(np.abs((forecast.mean() - ahead) / scale).mean()),
        "seconds": seconds,
    }


def mean_of(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The mean of several draws, and of all steps."""
    means = {key: np.mean([run[key] for run in runs], axis=0).tolist() for key in runs[0]}
    overall = {"coverage": np.mean(means["coverage by step"]), "width": np.mean(means["width by step"])}
    return {key: float(value) for key, value in overall.items()} | means


def main() -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", nargs="*", default=[*MADE, *RECORDED], choices=[*MADE, *RECORDED])
    parser.add_argument("--sizes", nargs="*", type=int, default=[300, 1000])
    parser.add_argument("--draws", type=int, default=2)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    measured: dict[str, Any] = {}
    for name in arguments.series:
        for size in arguments.sizes if name in MADE else [0]:
            draws = range(_record.FIRST_DRAW, _record.FIRST_DRAW + arguments.draws) if size else [0]
            runs = []
            for draw in draws:
                X = MADE[name](size + 1000, np.random.default_rng(draw)) if size else np.empty(0)
                runs.append(judge(X[:size], X[size:]) if size else judge(*recorded(name)))
            label = f"{name}, {size} rows" if size else name
            measured[label] = mean_of(runs)
            print(label, json.dumps({key: round(measured[label][key], 3) for key in ("coverage", "width", "mae")}))
    coverages = [row["coverage"] for row in measured.values()]
    print(f"all: {np.mean(coverages):.3f}, {np.min(coverages):.3f} to {np.max(coverages):.3f}")
    _record.save(RESULTS, {"mean coverage": float(np.mean(coverages)), "measured": measured})


if __name__ == "__main__":
    main()
