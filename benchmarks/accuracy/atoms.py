"""Columns with point masses (zeros of expression, doses, cytometry): what they are worth as such.

    python benchmarks/accuracy/atoms.py                 # all: some minutes
    python benchmarks/accuracy/atoms.py --part zeros --draws 3
    LATENTVIEWS_DATA=../shared/data python benchmarks/accuracy/atoms.py --part flowcap

Parts:

- zeros: three classes of weights .5, .3 and .2 in three columns, each zero with a probability of .2 to .7 that differs
  between the classes, else log-normal. Judged on 5,000 other rows. Bayes is the true posterior.
- cytof: 10,000 cells of 8 populations in 13 markers on arcsinh's scale, background taken off and negative values set to
  zero, so that some 37 % are; jittered, zeros are spread evenly over a tenth below.
- flowcap: samples of FlowCAP-I's HSCT and GVHD with up to 36 % zeros in a column, by the adjusted Rand index on gated
  cells.

Draw i has the seed 200 + i, and samples are those after the first of each collection: the first, and draws below 200,
were looked at while choices were made. Times are seconds of processor time on one core.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from scipy.optimize import linear_sum_assignment
from scipy.special import logsumexp
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews import MultiViewMixture
from latentviews.baselines import NonparametricEM
from latentviews.datasets import flowcap_samples, load_flowcap

WEIGHTS = np.array([0.5, 0.3, 0.2])
ZEROS = np.array([[0.2, 0.5, 0.7], [0.6, 0.3, 0.2], [0.4, 0.7, 0.3]])  # of every column in every class
LEVELS, SPREAD = np.array([[0.5, 2.0, 3.5], [2.0, 0.5, 3.5], [2.0, 3.5, 0.5]]), 0.35  # of logs of the others
METHODS: dict[str, Callable[[int], Any]] = {
    "default": lambda k: MultiViewMixture(k, random_state=0),
    "point_masses=None": lambda k: MultiViewMixture(k, point_masses=None, random_state=0),
    "NonparametricEM": lambda k: NonparametricEM(k, random_state=0),
    "GaussianMixture, 10 starts": lambda k: GaussianMixture(k, n_init=10, random_state=0),
}


def zero_inflated(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, their classes, and the logs of their joint density with every class."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, size=n_rows, p=WEIGHTS)
    X = np.exp(LEVELS[:, y].T + SPREAD * rng.normal(size=(n_rows, 3)))
    X[rng.random(X.shape) < ZEROS[:, y].T] = 0.0
    off = np.log1p(-ZEROS) + stats.lognorm.logpdf(np.where(X > 0, X, 1.0)[:, :, None], SPREAD, scale=np.exp(LEVELS))
    return X, y, np.log(WEIGHTS) + np.where(X[:, :, None] == 0, np.log(ZEROS), off).sum(axis=1)


def cells(seed: int, n_rows: int = 10_000, n_markers: int = 13, k: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Cells of a mass cytometer and their populations."""
    rng = np.random.default_rng(seed)
    on = rng.random((k, n_markers)) < 0.45
    levels = np.where(on, rng.uniform(3, 6, size=on.shape), rng.uniform(-1.2, 0.3, size=on.shape))
    y = rng.choice(k, size=n_rows, p=rng.dirichlet(np.full(k, 3.0)))
    counts = np.exp(levels[y] + np.where(on[y], 0.45, 1.0) * rng.normal(size=(n_rows, n_markers))) - 1.5
    return np.arcsinh(np.maximum(counts, 0.0) / 5), y


def accuracy(y: np.ndarray, labels: np.ndarray) -> float:
    """The share of rows in their class, classes matched."""
    counts = np.zeros((y.max() + 1, labels.max() + 1))
    np.add.at(counts, (y, labels), 1)
    return float(counts[linear_sum_assignment(-counts)].sum() / len(y))


def fitted(model: Any, X: np.ndarray) -> tuple[Any, float]:
    """The model, and the processor time that it took."""
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    return model, time.process_time() - began


def zeros(draws: int) -> dict[str, Any]:
    """Accuracy, log-likelihood and time on the zero-inflated design."""
    found: dict[str, Any] = {}
    for n_rows in (500, 1500, 5000):
        rows: dict[str, list[tuple[float, ...]]] = {name: [] for name in (*METHODS, "Bayes")}
        for i in range(draws):
            X, *_ = zero_inflated(n_rows, _record.FIRST_DRAW + i)
            held, y, joint = zero_inflated(5000, 10_000 + _record.FIRST_DRAW + i)
            rows["Bayes"].append((accuracy(y, joint.argmax(axis=1)), logsumexp(joint, axis=1).mean(), 0.0))
            for name, make in METHODS.items():
                model, seconds = fitted(make(3), X)
                rows[name].append((accuracy(y, model.predict(held)), float(model.score(held)), seconds))
        found[str(n_rows)] = {name: _means(values, ("accuracy", "score", "seconds")) for name, values in rows.items()}
        show(f"{n_rows} rows", found[str(n_rows)])
    return found


def cytof(draws: int) -> dict[str, Any]:
    """Agreement and time on cells."""
    ways = ("default", "point_masses=None", "default, jittered")
    rows: dict[str, list[tuple[float, ...]]] = {name: [] for name in ways}
    for i in range(min(draws, 3)):
        X, y = cells(_record.FIRST_DRAW + i)
        noise = np.random.default_rng(i).uniform(-0.1, 0, size=X.shape)
        tables = {"default, jittered": np.where(X == 0, noise, X)}
        for name in ways:
            table = tables.get(name, X)
            model, seconds = fitted(METHODS[name.split(",")[0]](8), table)
            share = float(np.mean(table == 0))
            rows[name].append((adjusted_rand_score(y, model.predict(table)), seconds, share))
    found = {name: _means(values, ("ari", "seconds", "zeros")) for name, values in rows.items()}
    show("cells", found)
    return found


def flowcap(samples: int) -> dict[str, Any]:
    """Agreement with an expert's gates, and what dependence="auto" takes."""
    found: dict[str, Any] = {}
    for collection in ("hsct", "gvhd"):
        for sample in flowcap_samples(collection)[1 : 1 + samples]:
            data = load_flowcap(sample)
            gated = data.y > 0
            X, y = data.X, data.y
            X = (X - X.mean(axis=0)) / X.std(axis=0)
            row = {}
            for name, options in {
                "default": {},
                "point_masses=None": {"point_masses": None},
                'dependence="auto"': {"dependence": "auto"},
                'dependence="auto", point_masses=None': {"dependence": "auto", "point_masses": None},
            }.items():
                k = len(np.unique(y[gated]))
                model, seconds = fitted(MultiViewMixture(k, random_state=0, **options), X)
                row[name] = {"ari": adjusted_rand_score(y[gated], model.predict(X)[gated]), "seconds": seconds}
                if "dependence" in options:
                    row[name]["taken"] = model.dependence_choice_.taken
            found[sample] = row
            show(sample, row)
    return found


def _means(values: list[tuple[float, ...]], names: tuple[str, ...]) -> dict[str, float]:
    """The means of every number, and the lowest of the first."""
    table = np.array(values)
    return {**dict(zip(names, table.mean(axis=0).tolist(), strict=True)), f"lowest {names[0]}": table[:, 0].min()}


def show(title: str, found: dict[str, dict[str, Any]]) -> None:
    """One line for every method."""
    for name, numbers in found.items():
        said = ", ".join(
            f"{key} {value if isinstance(value, str) else f'{value:.3f}'}" for key, value in numbers.items()
        )
        print(f"{title}, {name}: {said}", flush=True)


def main() -> None:
    """Run the parts asked for and save them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=["zeros", "cytof", "flowcap"])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--samples", type=int, default=2, help="of every FlowCAP collection")
    args = parser.parse_args()
    parts = {
        "zeros": lambda: zeros(args.draws),
        "cytof": lambda: cytof(args.draws),
        "flowcap": lambda: flowcap(args.samples),
    }
    for name in [args.part] if args.part else list(parts):
        path = Path(__file__).with_name("results") / f"atoms_{name}.json"
        _record.save(path, parts[name]())


if __name__ == "__main__":
    main()
