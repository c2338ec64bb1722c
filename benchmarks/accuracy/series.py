"""Six recorded series: held-out likelihood, segmentation and forecasts of hidden Markov and predictive-state models.

    LATENTVIEWS_DATA=… python benchmarks/accuracy/series.py                  # all series
    LATENTVIEWS_DATA=… python benchmarks/accuracy/series.py --series geyser --methods ridge
    LATENTVIEWS_DATA=… python benchmarks/accuracy/series.py --report         # table and figure from what is saved

A single recording is cut into 16 stretches (eight for the geyser), of which every fourth is held out; of chest_accel's,
the first 1,000 rows of each are used. Of the 80 short runs of basic_motions a quarter is held out. Every column is
jittered by one unit of its rounding, with one seed for all methods, and every sensor's columns are turned and scaled to
be uncorrelated on the fitted rows, which changes all likelihoods alike. All hidden Markov models have the same number
of states, and columns that may depend on each other in a state. Peers have one Gaussian or three with full covariances
a state, run to 100 iterations from three starts, and the most likely counts. Forecasts are made from 400 held-out rows;
their errors are in standard deviations of the recorded columns, averaged over columns and steps. Ridge regressions, one
a step ahead, see the last rows; how many, and their penalty, is chosen on the last fifth of the fitted sequences, on
which `PredictiveStateModel` chooses too. What is saved is not run again; dynamax is left out where it is not installed.
"""

import argparse
import json
import logging
import os
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
from latentviews.datasets import load_series
from latentviews.sequences.chains import best_path, filter_states

RESULTS = Path(__file__).with_name("results") / "series.json"
STARTS, STEPS, ORIGINS, DRAWS, POOL = 3, 100, 400, 100, 4000
LAGS, PENALTIES = (1, 5, 10, 20, 40, 80), (1e-2, 1.0, 1e2, 1e3, 1e4, 1e5)


class Plan(NamedTuple):
    """How a series is modelled: the same for all methods."""

    n_states: int
    views: tuple[list[int], ...]
    horizon: int
    n_parts: int = 16
    longest: int = 10**9  # rows of a part that are used


PLANS = {
    "basic_motions": Plan(4, ([0, 1, 2], [3, 4, 5]), 10),
    "chest_accel": Plan(7, ([0, 1, 2],), 20, 16, 1000),
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
    back: np.ndarray  # (d, d), from these columns to the recorded ones in their standard deviations

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
    lengths, labels = data.lengths, data.labels
    if len(lengths) == 1:
        cuts = np.linspace(0, len(X), plan.n_parts + 1).astype(int)
        lengths, held = np.minimum(np.diff(cuts), plan.longest), np.arange(plan.n_parts) % 4 == 2
        used = np.concatenate([np.arange(cut, cut + size) for cut, size in zip(cuts[:-1], lengths, strict=True)])
        X, labels = X[used], None if labels is None else labels[used]
    else:
        held = np.isin(np.arange(len(lengths)), rng.permutation(len(lengths))[: len(lengths) // 4])
    rows = np.repeat(held, lengths)
    X, back = _uncorrelated(X, X[~rows], plan.views)
    held_labels = None if labels is None else labels[rows]
    return Split(X[~rows], lengths[~held], X[rows], lengths[held], held_labels, plan, back)


def _unit(x: np.ndarray) -> float:
    return float(np.diff(np.unique(x)).min())


def _uncorrelated(X: np.ndarray, fitted: np.ndarray, views: tuple[list[int], ...]) -> tuple[np.ndarray, np.ndarray]:
    result, back = np.empty_like(X), np.zeros((X.shape[1], X.shape[1]))
    for columns in views:
        values, vectors = np.linalg.eigh(np.cov(fitted[:, columns].T))
        result[:, columns] = (X[:, columns] - fitted[:, columns].mean(axis=0)) @ vectors / np.sqrt(values)
        back[np.ix_(columns, columns)] = np.sqrt(values)[:, None] * vectors.T / fitted[:, columns].std(axis=0)
    return result, back


class Judged(NamedTuple):
    """What a fitted model says of held-out rows; None where it has no such thing."""

    score: float | None  # log-likelihood per row
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
    model = KernelHMM(data.plan.n_states, random_state=0)
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
        options = {"covariance_type": "full", "n_iter": STEPS, "random_state": seed}
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


def dynamaxs(data: Split) -> Judged:
    """The most likely of three starts by k-means of dynamax's Gaussian-mixture model, on stretches of one length."""
    os.environ.setdefault("NPROC", "8")  # with two threads, jax may wait for itself for ever
    import jax
    import jax.numpy as jnp
    from dynamax.hidden_markov_model import GaussianMixtureHMM
    from scipy.stats import multivariate_normal

    jax.config.update("jax_enable_x64", True)
    k, dim, size = data.plan.n_states, data.fitted.shape[1], int(data.fitted_lengths.min())
    begins = np.cumsum(data.fitted_lengths) - data.fitted_lengths
    stacked = jnp.asarray(np.stack([data.fitted[b : b + size] for b in begins]))
    model = GaussianMixtureHMM(k, 3, dim)

    def start(seed: int) -> tuple[float, Any]:
        emissions = jnp.asarray(data.fitted)
        given, properties = model.initialize(jax.random.PRNGKey(seed), method="kmeans", emissions=emissions)
        found, reached = model.fit_em(given, properties, stacked, num_iters=STEPS, verbose=False)
        return float(reached[-1]), found

    _, found = max((start(seed) for seed in range(STARTS)), key=lambda pair: np.nan_to_num(pair[0], nan=-np.inf))
    weights, means, covariances = (np.asarray(x) for x in found.emissions)
    rng, pools, log_emissions = np.random.default_rng(1), [], []
    for h in range(k):
        parts = [multivariate_normal(m, c) for m, c in zip(means[h], covariances[h], strict=True)]
        logs = [np.log(w) + part.logpdf(data.held) for w, part in zip(weights[h], parts, strict=True)]
        log_emissions.append(np.logaddexp.reduce(logs))
        draws = np.stack([part.rvs(POOL, random_state=rng) for part in parts])
        pools.append(draws[rng.choice(3, POOL, p=weights[h] / weights[h].sum()), np.arange(POOL)])
    start_law, transition = np.asarray(found.initial.probs), np.asarray(found.transitions.transition_matrix)
    return from_chain(data, np.stack(log_emissions, axis=1), start_law, transition, np.stack(pools))


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
    """The error on the last fifth of the fitted sequences."""
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
    "dynamax": dynamaxs,
    "PredictiveStateModel": predictive,
    "PredictiveStateModel(ObservableOperators())": lambda data: predictive(data, ObservableOperators()),
    "ridge": ridge,
    "persistence": persistence,
}
HMMS = ("KernelHMM", "GaussianHMM", "GMMHMM", "dynamax")


def measure(name: str, method: str) -> dict[str, Any]:
    """One method on one series."""
    data = split(name)
    began = time.process_time()
    try:
        judged = METHODS[method](data)
    except ValueError as error:
        return {"failed": str(error)}
    except ImportError as error:
        return {"missing": str(error)}
    seconds, ahead = time.process_time() - began, data.ahead() @ data.back
    errors = np.abs(judged.mean @ data.back - ahead)
    crps = _crps(judged.draws @ data.back, ahead)
    result: dict[str, Any] = {
        "seconds": seconds,
        "mae": float(errors.mean()),
        "mae one step": float(errors[:, 0].mean()),
        "crps": float(crps.mean()),
        "crps one step": float(crps[:, 0].mean()),
        "mae by step": errors.mean(axis=(0, 2)).tolist(),
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
    likelihoods = {
        name: {method: methods[method].get("log-likelihood", -np.inf) for method in HMMS if method in methods}
        for name, methods in measured.items()
    }
    ahead = {
        name: {
            method: methods["PredictiveStateModel"]["mae"] / row["mae"]
            for method, row in methods.items()
            if "mae" in row and not method.startswith("Predictive")
        }
        for name, methods in measured.items()
        if name in ACCELEROMETERS and "PredictiveStateModel" in methods
    }
    return {
        "best held-out likelihood of the HMMs": {
            name: max(scores, key=scores.__getitem__) for name, scores in likelihoods.items() if scores
        },
        "error ahead of PredictiveStateModel over the least of all others": {
            name: max(ratios.values()) for name, ratios in ahead.items() if ratios
        },
    }


COLUMNS = {
    "log-likelihood": "log-likelihood per row",
    "ari": "ARI",
    "mae one step": "MAE, one step",
    "mae": "MAE, all steps",
    "crps one step": "CRPS, one step",
    "crps": "CRPS, all steps",
    "seconds": "s",
}


def table(measured: dict[str, Any]) -> str:
    """All series as Markdown; the best of every column in bold."""
    lines = ["# Six recorded series", "", *__doc__.split("\n\n", 2)[2].strip().splitlines(), ""]
    for name, plan in PLANS.items():
        methods = {m: row for m, row in measured.get(name, {}).items() if "mae" in row}
        best = {
            key: (max if key in ("log-likelihood", "ari") else min)(row[key] for row in methods.values() if key in row)
            for key in COLUMNS
            if any(key in row for row in methods.values())
        }
        heading = f"## {name}: {plan.n_states} states, {plan.horizon} steps ahead"
        lines += [heading, "", "| | " + " | ".join(COLUMNS.values()) + " |", "|---" * (1 + len(COLUMNS)) + "|"]
        for method in METHODS:
            if method in methods:
                cells = (_cell(key, methods[method].get(key), best.get(key)) for key in COLUMNS)
                lines.append(f"| {method} | " + " | ".join(cells) + " |")
            elif "failed" in measured.get(name, {}).get(method, {}):
                lines.append(f"| {method} | failed: {measured[name][method]['failed']}" + " |" * len(COLUMNS))
        lines.append("")
    return "\n".join(lines)


def _cell(key: str, value: float | None, best: float | None) -> str:
    if value is None:
        return ""
    text = f"{value:.0f}" if key == "seconds" else f"{value:.3f}"
    return f"**{text}**" if value == best and key != "seconds" else text


def figure(measured: dict[str, Any], path: Path) -> None:
    """Forecast error against the steps ahead, a panel an accelerometer."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(11, 3.4), layout="constrained")
    panels = drawn.subplots(1, len(ACCELEROMETERS))
    for panel, name in zip(panels, ACCELEROMETERS, strict=True):
        for i, method in enumerate(METHODS):
            row = measured.get(name, {}).get(method, {})
            if "mae by step" in row:
                steps, thick = np.arange(1, len(row["mae by step"]) + 1), method == "PredictiveStateModel"
                panel.plot(steps, row["mae by step"], label=method, color=f"C{i}", lw=2.5 if thick else 1.2)
        panel.set(title=name, xlabel="steps ahead", ylabel="mean absolute error (standard deviations)")
    panels[0].legend(fontsize="x-small", frameon=False)
    drawn.savefig(path, dpi=130)


def main() -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", nargs="*", default=list(PLANS), choices=list(PLANS))
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--fresh", action="store_true", help="measure again what is saved")
    parser.add_argument("--report", action="store_true", help="nothing but the table and the figure")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    for name in () if arguments.report else arguments.series:
        for method in arguments.methods:
            if arguments.fresh or "missing" in load().get(name, {}).get(method, {"missing": ""}):
                found = measure(name, method)
                measured = load()  # other parts may have been saved meanwhile
                measured.setdefault(name, {})[method] = found
                packages = (*_record.PACKAGES, "hmmlearn")
                _record.save(RESULTS, {"bars": bars(measured), "measured": measured}, packages)
                print(name, method, found)
    measured = load()
    RESULTS.with_suffix(".md").write_text(table(measured))
    figure(measured, RESULTS.with_suffix(".png"))
    print(json.dumps(bars(measured), indent=2))


if __name__ == "__main__":
    main()
