"""Six recorded series: held-out likelihood, segmentation and forecasts of hidden Markov and predictive-state models.

    LATENTVIEWS_DATA=… python benchmarks/accuracy/series.py                  # all series
    LATENTVIEWS_DATA=… python benchmarks/accuracy/series.py --series geyser
    python benchmarks/accuracy/series.py --report                            # the tables from what is saved

A single recording is cut into 16 stretches (eight for the geyser), of which every fourth is held out; of the 80 short
runs of basic_motions a quarter is held out. Every column is jittered by one unit of its rounding, with one seed for all
methods, and every sensor's columns are turned and scaled to be uncorrelated on the fitted rows, which changes all
likelihoods alike. All hidden Markov models have the same number of states; hmmlearn's have full covariances, run to
100 iterations from three starts, and the most likely counts. Forecasts are made from 400 held-out rows; their errors
are in standard deviations of the columns, averaged over columns and steps. Ridge regressions, one a step ahead, see the
last rows; how many, and their penalty, is chosen on the last fifth of the fitted rows. What is saved is not run again.
"""

import argparse
import json
import logging
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import adjusted_rand_score

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews import KernelHMM, ObservableOperators, PredictiveStateModel
from latentviews.chains import best_path, filter_states
from latentviews.datasets import load_series

RESULTS = Path(__file__).with_name("results") / "series.json"
STARTS, ORIGINS, DRAWS, POOL = 3, 400, 100, 4000
LAGS, PENALTIES = (1, 5, 10, 20, 40), (1e-3, 1e-1, 1e1, 1e3)


class Plan(NamedTuple):
    """How a series is modelled: the same for all methods."""

    n_states: int
    views: tuple[list[int], ...]
    horizon: int
    n_parts: int = 16
    every: int = 1  # of the rows of the recording


PLANS = {
    "basic_motions": Plan(4, ([0, 1, 2], [3, 4, 5]), 10),
    "chest_accel": Plan(7, ([0, 1, 2],), 20),
    "daphnet": Plan(6, ([0, 1, 2], [3, 4, 5], [6, 7, 8]), 20),
    "wall_robot": Plan(4, ([0, 1, 2, 3],), 10),
    "slot_car": Plan(8, ([0, 1, 2], [3, 4, 5, 6]), 20),
    "geyser": Plan(3, ([0, 1],), 3, 8),
}
ACCELEROMETERS = ("basic_motions", "chest_accel", "daphnet")


class Split(NamedTuple):
    """Fitted and held-out sequences."""

    fitted: np.ndarray
    fitted_lengths: np.ndarray
    held: np.ndarray
    held_lengths: np.ndarray
    held_labels: np.ndarray | None
    plan: Plan

    def origins(self) -> np.ndarray:
        """Held-out rows with enough rows of their sequence behind and ahead to forecast from."""
        ends = np.cumsum(self.held_lengths)
        behind = min(max(LAGS), int(self.held_lengths.min()) // 3)
        rows = [np.arange(e - n + behind, e - self.plan.horizon) for e, n in zip(ends, self.held_lengths, strict=True)]
        every = np.concatenate(rows)
        return every[np.linspace(0, len(every) - 1, min(len(every), ORIGINS)).astype(int)]

    def ahead(self) -> np.ndarray:
        """The rows after every origin, (m, horizon, d)."""
        return np.stack([self.held[self.origins() + step] for step in range(1, self.plan.horizon + 1)], axis=1)


def split(name: str) -> Split:
    """A series, jittered, parted and scaled."""
    plan, data, rng = PLANS[name], load_series(name), np.random.default_rng(0)
    X = np.column_stack([x + _unit(x) * rng.uniform(-0.5, 0.5, size=len(x)) for x in data.X.T])
    lengths = data.lengths
    if len(lengths) == 1:
        cuts = np.linspace(0, len(X), plan.n_parts + 1).astype(int)
        lengths, held = np.diff(cuts), np.arange(plan.n_parts) % 4 == 2
    else:
        held = np.isin(np.arange(len(lengths)), rng.permutation(len(lengths))[: len(lengths) // 4])
    rows = np.repeat(held, lengths)
    X = _uncorrelated(X, X[~rows], plan.views)
    labels = None if data.labels is None else data.labels[rows]
    return Split(X[~rows], lengths[~held], X[rows], lengths[held], labels, plan)


def _unit(x: np.ndarray) -> float:
    return float(np.diff(np.unique(x)).min())


def _uncorrelated(X: np.ndarray, fitted: np.ndarray, views: tuple[list[int], ...]) -> np.ndarray:
    result = np.empty_like(X)
    for columns in views:
        values, vectors = np.linalg.eigh(np.cov(fitted[:, columns].T))
        result[:, columns] = (X[:, columns] - fitted[:, columns].mean(axis=0)) @ vectors / np.sqrt(values)
    return result


class Judged(NamedTuple):
    """What a fitted model says of held-out rows; None where it has no such thing."""

    score: float | None  # log-likelihood a row
    path: np.ndarray | None  # states
    mean: np.ndarray  # (m, horizon, d)
    draws: np.ndarray  # (draws, m, horizon, d)


def from_chain(
    data: Split, log_emissions: np.ndarray, start: np.ndarray, transition: np.ndarray, pools: np.ndarray
) -> Judged:
    """Everything that follows from emissions, a chain, and draws (k, POOL, d) of every state."""
    rng = np.random.default_rng(0)
    arguments = log_emissions, start, transition, data.held_lengths
    states = filter_states(*arguments)
    ahead, now = [], states.filtered[data.origins()]
    for _ in range(data.plan.horizon):
        now = now @ transition
        ahead.append(now)
    chances = np.stack(ahead, axis=1)
    picked = (rng.random((DRAWS, *chances.shape[:2], 1)) > np.cumsum(chances, axis=-1)).sum(axis=-1)
    draws = pools[picked.clip(max=len(pools) - 1), rng.integers(pools.shape[1], size=picked.shape)]
    mean = chances @ pools.mean(axis=1)
    return Judged(float(states.log_likelihood.mean()), best_path(*arguments).states, mean, draws)


def kernel_hmm(data: Split) -> Judged:
    """`KernelHMM`."""
    model = KernelHMM(data.plan.n_states, views=data.plan.views, random_state=0)
    model.fit(data.fitted, lengths=data.fitted_lengths)
    rng, pools = np.random.default_rng(1), np.empty((data.plan.n_states, POOL, data.fitted.shape[1]))
    for h, pool in enumerate(pools):
        for columns, view in zip(model.views_, model.components_, strict=True):
            pool[:, columns] = view.sample(h, POOL, rng)
    return from_chain(data, model._chain.log_emissions(data.held), model.start_, model.transition_, pools)


def hmmlearns(data: Split, n_mix: int) -> Judged:
    """The most likely of three starts of hmmlearn's Gaussian or Gaussian-mixture model."""
    from hmmlearn.hmm import GMMHMM, GaussianHMM

    k = data.plan.n_states

    def start(seed: int) -> tuple[float, Any]:
        options = {"covariance_type": "full", "n_iter": 100, "random_state": seed}
        model: Any = GaussianHMM(k, **options) if n_mix == 1 else GMMHMM(k, n_mix, **options)
        try:
            model.fit(data.fitted, data.fitted_lengths)
            return model.score(data.fitted, data.fitted_lengths), model
        except ValueError:  # a component collapsed
            return -np.inf, model

    score, model = max((start(seed) for seed in range(STARTS)), key=lambda pair: pair[0])
    if not np.isfinite(score):
        raise ValueError("every start collapsed")
    rng = np.random.default_rng(1)
    pools = np.stack(
        [np.stack([model._generate_sample_from_state(h, _Legacy(rng)) for _ in range(POOL)]) for h in range(k)]
    )
    return from_chain(
        data, model._compute_log_likelihood(data.held), model.startprob_, model.transmat_, pools.reshape(k, POOL, -1)
    )


def _Legacy(rng: np.random.Generator) -> np.random.RandomState:  # noqa: N802
    """The random numbers that hmmlearn asks for."""
    return np.random.RandomState(int(rng.integers(2**31)))


def predictive(data: Split, dynamics: Any = None) -> Judged:
    """`PredictiveStateModel`."""
    model = PredictiveStateModel(dynamics, horizon=data.plan.horizon, random_state=0)
    model.fit(data.fitted, lengths=data.fitted_lengths)
    forecast = model.forecast(data.held, data.plan.horizon, lengths=data.held_lengths, origins=data.origins())
    return Judged(None, None, forecast.mean(), forecast.sample(DRAWS, random_state=0))


def ridge(data: Split) -> Judged:
    """A ridge regression a step ahead on the last rows."""
    best = min(
        ((lag, penalty) for lag in LAGS for penalty in PENALTIES if 3 * lag <= data.fitted_lengths.min()),
        key=lambda choice: _ridge_error(data, *choice),
    )
    mean, residuals = _ridge_forecasts(data.fitted, data.fitted_lengths, data, *best)
    rng = np.random.default_rng(0)
    return Judged(None, None, mean, mean + residuals[rng.integers(len(residuals), size=(DRAWS, len(mean)))])


def _ridge_error(data: Split, lag: int, penalty: float) -> float:
    """The error on the last fifth of the fitted sequences, or of the rows of the last."""
    cut = max(len(data.fitted_lengths) * 4 // 5, 1)
    rows = int(data.fitted_lengths[:cut].sum())
    inner = data._replace(held=data.fitted[rows:], held_lengths=data.fitted_lengths[cut:])
    mean, _ = _ridge_forecasts(data.fitted[:rows], data.fitted_lengths[:cut], inner, lag, penalty)
    return float(np.abs(mean - inner.ahead()).mean())


def _ridge_forecasts(
    X: np.ndarray, lengths: np.ndarray, data: Split, lag: int, penalty: float
) -> tuple[np.ndarray, np.ndarray]:
    """Forecasts from the held-out origins, and the fitted rows' residuals, (…, horizon, d)."""
    horizon = data.plan.horizon
    ends = np.cumsum(lengths)
    rows = np.concatenate([np.arange(e - n + lag - 1, e - horizon) for e, n in zip(ends, lengths, strict=True)])

    def inputs(table: np.ndarray, places: np.ndarray) -> np.ndarray:
        return np.concatenate([table[places - k] for k in range(lag)] + [np.ones((len(places), 1))], axis=1)

    A = inputs(X, rows)
    B = np.stack([X[rows + step] for step in range(1, horizon + 1)], axis=1)
    strength = np.diag(np.append(np.full(A.shape[1] - 1, penalty), 0.0))
    weights = np.linalg.solve(A.T @ A + strength, A.T @ B.reshape(len(B), -1))
    there = inputs(data.held, data.origins()) @ weights
    return there.reshape(len(there), *B.shape[1:]), B - (A @ weights).reshape(B.shape)


def persistence(data: Split) -> Judged:
    """The last row stays; residuals are those of the fitted rows."""
    horizon = data.plan.horizon
    mean = np.repeat(data.held[data.origins()][:, None], horizon, axis=1)
    ends = np.cumsum(data.fitted_lengths)
    rows = np.concatenate([np.arange(e - n, e - horizon) for e, n in zip(ends, data.fitted_lengths, strict=True)])
    missed = np.stack([data.fitted[rows + step] - data.fitted[rows] for step in range(1, horizon + 1)], axis=1)
    rng = np.random.default_rng(0)
    return Judged(None, None, mean, mean + missed[rng.integers(len(missed), size=(DRAWS, len(mean)))])


METHODS: dict[str, Callable[[Split], Judged]] = {
    "KernelHMM": kernel_hmm,
    "GaussianHMM": lambda data: hmmlearns(data, 1),
    "GMMHMM": lambda data: hmmlearns(data, 3),
    "PredictiveStateModel": predictive,
    "PredictiveStateModel(ObservableOperators())": lambda data: predictive(data, ObservableOperators()),
    "ridge": ridge,
    "persistence": persistence,
}
HMMS = ("KernelHMM", "GaussianHMM", "GMMHMM")


def measure(name: str, method: str) -> dict[str, Any]:
    """One method on one series."""
    data = split(name)
    began = time.process_time()
    try:
        judged = METHODS[method](data)
    except ValueError as error:
        return {"failed": str(error)}
    ahead = data.ahead()
    errors = np.abs(judged.mean - ahead)
    result: dict[str, Any] = {
        "seconds": time.process_time() - began,
        "mae": float(errors.mean()),
        "mae one step": float(errors[:, 0].mean()),
        "crps": float(_crps(judged.draws, ahead).mean()),
        "crps one step": float(_crps(judged.draws, ahead)[:, 0].mean()),
    }
    if judged.score is not None:
        result["log-likelihood"] = judged.score
    if judged.path is not None and data.held_labels is not None:
        result["ari"] = float(adjusted_rand_score(data.held_labels, judged.path))
    return result


def _crps(draws: np.ndarray, ahead: np.ndarray) -> np.ndarray:
    """E|x - y| - E|x - x'| / 2 from draws x, x' of the forecast."""
    apart = np.mean([np.abs(draws - np.roll(draws, shift, axis=0)).mean(axis=0) for shift in (1, 3, 7, 17)], axis=0)
    return np.abs(draws - ahead).mean(axis=0) - apart / 2


def load() -> dict[str, Any]:
    """What is saved, by series and method."""
    return json.loads(RESULTS.read_text())["results"]["measured"] if RESULTS.exists() else {}


def bars(measured: dict[str, Any]) -> dict[str, Any]:
    """What the figures are to show."""
    wins = []
    for name in PLANS:
        scores = {m: measured.get(name, {}).get(m, {}).get("log-likelihood", -np.inf) for m in HMMS}
        if all(method in measured.get(name, {}) for method in HMMS) and max(scores, key=scores.__getitem__) == HMMS[0]:
            wins.append(name)
    ahead = {
        name: all(
            measured[name]["PredictiveStateModel"]["mae"] < row.get("mae", np.inf)
            for method, row in measured[name].items()
            if not method.startswith("Predictive")
        )
        for name in ACCELEROMETERS
        if "PredictiveStateModel" in measured.get(name, {})
    }
    return {"best held-out likelihood of the HMMs": wins, "PredictiveStateModel has the least error ahead": ahead}


def report(measured: dict[str, Any]) -> None:
    """Tables."""
    for name, methods in measured.items():
        print(name)
        for method, row in methods.items():
            cells = (
                f"{key} {value:.4g}" if isinstance(value, float) else f"{key}: {value}" for key, value in row.items()
            )
            print(f"  {method:44}" + "  ".join(cells))
    print(bars(measured))


def main() -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", nargs="*", default=list(PLANS), choices=list(PLANS))
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--fresh", action="store_true", help="measure again what is saved")
    parser.add_argument("--report", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    measured = load()
    if not arguments.report:
        for name in arguments.series:
            for method in arguments.methods:
                if arguments.fresh or method not in measured.setdefault(name, {}):
                    measured[name][method] = measure(name, method)
                    packages = (*_record.PACKAGES, "hmmlearn")
                    _record.save(RESULTS, {"bars": bars(measured), "measured": measured}, packages)
    report(measured)


if __name__ == "__main__":
    main()
