"""Hidden Markov models on data of known truth: three sticky states whose emissions share their support.

    python benchmarks/accuracy/hmm.py                       # n = 4,000 and 16,000, ten seeds
    python benchmarks/accuracy/hmm.py --n 4000 --seeds 2
    python benchmarks/accuracy/hmm.py --report              # the table from what is saved

Draw i is ``make_hmm(n, random_state=i)``, judged on ``make_hmm(20_000, random_state=1000 + i)``: the adjusted Rand
index of the best path, the log-likelihood per step below that of the true model, and the processor time of the fit. The
mixtures of hmmlearn, and of dynamax where it is installed, run to 100 iterations from five starts and keep the most
likely. What is saved is not run again without ``--again``. Set OMP_NUM_THREADS=1: threads that wait for each other
count as time of the processor.
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
from latentviews import KernelHMM
from latentviews.datasets import HMMTruth, make_hmm
from latentviews.sequences.chains import best_path, filter_states

RESULTS = Path(__file__).with_name("results") / "hmm.json"
HELD = 20_000
OURS, SPECTRAL, GAUSSIAN, MIXTURE, DYNAMAX = "KernelHMM", "KernelHMM(polish=None)", "GaussianHMM", "GMMHMM", "dynamax"
STARTS = 5


class Fitted(NamedTuple):
    """How a fitted model judges held-out rows."""

    path: Callable[[np.ndarray], np.ndarray]
    score: Callable[[np.ndarray], float]  # log-likelihood per row


def ours(X: np.ndarray, seed: int, **options: Any) -> Fitted:
    """`KernelHMM`."""
    model = KernelHMM(3, random_state=seed, **options).fit(X)
    return Fitted(model.predict, model.score)


def hmmlearns(X: np.ndarray, seed: int, n_mix: int) -> Fitted:
    """The most likely of five starts of hmmlearn's Gaussian or Gaussian-mixture model."""
    from hmmlearn.hmm import GMMHMM, GaussianHMM

    def start(i: int) -> Any:
        options = {"n_iter": 100, "random_state": STARTS * seed + i}
        model = GaussianHMM(3, **options) if n_mix == 1 else GMMHMM(3, n_mix, **options)
        return model.fit(X)

    model = max((start(i) for i in range(STARTS)), key=lambda model: model.score(X))
    return Fitted(model.predict, lambda rows: model.score(rows) / len(rows))


def dynamaxs(X: np.ndarray, seed: int) -> Fitted:
    """The most likely of five starts by k-means of dynamax's Gaussian-mixture model."""
    os.environ.setdefault("NPROC", "8")  # with two threads, jax may wait for itself for ever
    import jax.numpy as jnp
    import jax.random as jr
    from dynamax.hidden_markov_model import GaussianMixtureHMM

    model = GaussianMixtureHMM(3, 3, 1)

    def start(i: int) -> tuple[float, Any]:
        key = jr.PRNGKey(100 * seed + i)
        given, properties = model.initialize(key, method="kmeans", emissions=jnp.asarray(X))
        found, reached = model.fit_em(given, properties, jnp.asarray(X), num_iters=100, verbose=False)
        return float(np.nan_to_num(reached[-1], nan=-np.inf)), found

    _, parameters = max((start(i) for i in range(STARTS)), key=lambda pair: pair[0])
    return Fitted(
        lambda rows: np.asarray(model.most_likely_states(parameters, jnp.asarray(rows))),
        lambda rows: float(model.marginal_log_prob(parameters, jnp.asarray(rows))) / len(rows),
    )


METHODS: dict[str, Callable[[np.ndarray, int], Fitted]] = {
    OURS: ours,
    SPECTRAL: lambda X, seed: ours(X, seed, polish=None),
    GAUSSIAN: lambda X, seed: hmmlearns(X, seed, 1),
    MIXTURE: lambda X, seed: hmmlearns(X, seed, 3),
    DYNAMAX: dynamaxs,
}


def oracle(truth: HMMTruth) -> Fitted:
    """The true model."""

    def judged(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        log_emissions = np.log(np.maximum(truth.components[0].density(X), np.finfo(float).tiny))
        return log_emissions, truth.start, truth.transition, np.array([len(X)])

    return Fitted(
        lambda X: best_path(*judged(X)).states, lambda X: float(filter_states(*judged(X)).log_likelihood.mean())
    )


def measure(n: int, seed: int, method: str) -> dict[str, Any]:
    """One method on one draw."""
    X, _, truth = make_hmm(n, random_state=seed)
    held, states, _ = make_hmm(HELD, random_state=1000 + seed)
    true = oracle(truth)
    began = time.process_time()
    try:
        fitted = METHODS[method](X, seed)
    except ImportError as error:
        return {"missing": str(error)}
    seconds = time.process_time() - began
    ari = adjusted_rand_score(states, fitted.path(held))
    return {
        "ari": ari,
        "ari over oracle": ari / adjusted_rand_score(states, true.path(held)),
        "loss": true.score(held) - fitted.score(held),
        "seconds": seconds,
    }


def load() -> dict[str, Any]:
    """What is saved, by n, seed and method."""
    return json.loads(RESULTS.read_text())["results"]["draws"] if RESULTS.exists() else {}


def summary(draws: dict[str, Any]) -> dict[str, Any]:
    """Means over seeds, and the bars."""
    table: dict[str, Any] = {}
    for key, result in draws.items():
        n, _, method = key.split("|")
        if "missing" not in result:
            table.setdefault(n, {}).setdefault(method, []).append(result)
    means = {
        n: {
            method: {name: float(np.mean([row[name] for row in rows])) for name in rows[0]} | {"draws": len(rows)}
            for method, rows in methods.items()
        }
        for n, methods in table.items()
    }
    for methods in means.values():
        if OURS in methods and MIXTURE in methods:
            we, they = methods[OURS], methods[MIXTURE]
            we["ari over GMMHMM"], we["seconds over GMMHMM"] = we["ari"] / they["ari"], we["seconds"] / they["seconds"]
    return means


def report(means: dict[str, Any]) -> None:
    """A table."""
    for n, methods in means.items():
        print(f"n = {n}")
        for method, row in methods.items():
            print(f"  {method:24}" + "  ".join(f"{name} {value:.4g}" for name, value in row.items()))


def main() -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, nargs="*", default=[4000, 16_000])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--again", action="store_true", help="measure what is saved, too")
    parser.add_argument("--report", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    draws = load()
    if not arguments.report:
        for seed in range(arguments.seeds):
            for n in arguments.n:
                for method in arguments.methods:
                    key = f"{n}|{seed}|{method}"
                    if arguments.again or key not in draws or "missing" in draws[key]:
                        draws[key] = measure(n, seed, method)
                        packages = (*_record.PACKAGES, "hmmlearn")
                        _record.save(RESULTS, {"means": summary(draws), "draws": draws}, packages)
    report(summary(draws))


if __name__ == "__main__":
    main()
