"""Tables of numbers and codes: held-out log-likelihood of `LowRankDensity` with types said, beside two peers.

    LATENTVIEWS_DATA=../shared/data python benchmarks/accuracy/mixed.py
    LATENTVIEWS_DATA=../shared/data python benchmarks/accuracy/mixed.py --sets heart --folds 2

Needs StepMix in the same environment: ``pip install stepmix``. Both have Lebesgue measure for numbers and counting
measure for codes. Numbers are rounded in these tables, which would make any density estimate as high as one likes, so
they are jittered by one unit of rounding, the same for both. Rows with a code that the training rows lack are left out,
for both. StepMix has Gaussian numbers and categorical codes, with one to eight classes, by its BIC, and with the number
that the held-out rows themselves like best, which nobody would know. So has a Gaussian mixture on one-hot columns,
whose density is off the codes too: it is taken column by column, the chance of a code given the numbers and the codes
before it being its share of the density at all codes of the column, so that it has the same base measure.

Methods that are saved are not run again; the results name the commit of each.
"""

import argparse
import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.linalg import solve_triangular
from scipy.special import logsumexp
from sklearn.mixture import GaussianMixture

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews import Delta, Gaussian, LowRankDensity

RESULTS = Path(__file__).with_name("results")
PACKAGES = (*_record.PACKAGES, "stepmix")
NUMBERS = {  # the columns of numbers; the others are codes
    "heart_statlog": ["age", "rest_bp", "chol", "max_hr", "oldpeak"],
    "australian": ["A2", "A3", "A7", "A10", "A13", "A14"],
    "german_numeric": ["A2", "A4", "A10"],
}
CLASSES = range(1, 9)
N_INIT = 5
RIDGE = 0.1  # beside the variances of one-hot columns, whose sum does not vary; smaller ones do worse


def load(folder: Path, name: str) -> tuple[np.ndarray, int]:
    """A table with the columns of numbers first, in standard units and jittered, and how many these are."""
    frame = pd.read_csv(folder / "uci_table1" / f"{name}.csv.gz").drop(columns="label")
    numbers = frame[NUMBERS[name]].to_numpy(float)
    rng = np.random.default_rng(0)
    units = np.array([np.diff(np.unique(column)).min() for column in numbers.T])
    numbers = numbers + units * rng.uniform(-0.5, 0.5, size=numbers.shape)
    codes = [pd.factorize(frame[column], sort=True)[0] for column in frame if column not in NUMBERS[name]]
    return np.column_stack([(numbers - numbers.mean(axis=0)) / numbers.std(axis=0), *codes]), numbers.shape[1]


def folds(n_rows: int, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows to fit to and rows held out."""
    order = np.random.default_rng(1).permutation(n_rows)
    return [(np.setdiff1d(order, part), part) for part in np.array_split(order, count)]


def known(train: np.ndarray, rows: np.ndarray, n_numbers: int) -> np.ndarray:
    """Which rows have no code that training rows lack."""
    columns = range(n_numbers, rows.shape[1])
    return np.all([np.isin(rows[:, j], train[:, j]) for j in columns], axis=0)


def ours(train: np.ndarray, test: np.ndarray, n_numbers: int) -> dict[str, float]:
    """The held-out log-likelihood per row."""
    kernel: list[Any] = [Gaussian()] * n_numbers + [Delta()] * (train.shape[1] - n_numbers)
    begin = time.perf_counter()
    score = LowRankDensity(kernel=kernel, random_state=0).fit(train).score(test)
    return {"LowRankDensity": score, "seconds": time.perf_counter() - begin}


def stepmix(train: np.ndarray, test: np.ndarray, n_numbers: int) -> dict[str, float]:
    """The held-out log-likelihood per row, with the number of classes by BIC and with the best afterwards."""
    from stepmix.stepmix import StepMix

    kinds = {
        "numbers": {"model": "gaussian_diag", "n_columns": n_numbers},
        "codes": {"model": "categorical", "n_columns": train.shape[1] - n_numbers},
    }
    criteria, scores = [], []
    for k in CLASSES:
        model = StepMix(k, measurement=kinds, n_init=N_INIT, max_iter=1000, random_state=0, verbose=0, progress_bar=0)
        model.fit(train)
        criteria.append(model.bic(train))
        scores.append(float(model.score(test)))
    return {"StepMix, BIC": scores[int(np.argmin(criteria))], "StepMix, best afterwards": max(scores)}


def one_hot(train: np.ndarray, test: np.ndarray, n_numbers: int) -> dict[str, float]:
    """The held-out log-likelihood per row of a Gaussian mixture, as of `stepmix`."""
    levels = [np.unique(train[:, j]) for j in range(n_numbers, train.shape[1])]
    known = indicators(train, n_numbers, levels)
    criteria, scores = [], []
    for k in CLASSES:
        model = GaussianMixture(k, reg_covar=RIDGE, n_init=2, max_iter=300, random_state=0).fit(known)
        criteria.append(model.bic(known))
        scores.append(score_of_codes(model, test, n_numbers, levels))
    chosen = scores[int(np.argmin(criteria))]
    return {"Gaussian mixture on one-hot, BIC": chosen, "Gaussian mixture on one-hot, best afterwards": max(scores)}


def indicators(rows: np.ndarray, n_numbers: int, levels: list[np.ndarray]) -> np.ndarray:
    """Numbers, and a column of zeros and ones per code."""
    codes = [(rows[:, [n_numbers + i]] == values).astype(float) for i, values in enumerate(levels)]
    return np.hstack([rows[:, :n_numbers], *codes])


def score_of_codes(model: Any, rows: np.ndarray, n_numbers: int, levels: list[np.ndarray]) -> float:
    """Log p(numbers) + Σ_j log P(code j | numbers, codes before it), the mean over rows."""
    table = indicators(rows, n_numbers, levels)
    total, end = leading_density(model, table[:, :n_numbers]), n_numbers
    for i, values in enumerate(levels):
        before, end = table[:, :end], end + len(values)
        each = [
            leading_density(model, np.hstack([before, np.tile(unit, (len(rows), 1))])) for unit in np.eye(len(values))
        ]
        own = rows[:, [n_numbers + i]] == values
        logs = np.stack(each, axis=1)
        total += logs[own] - logsumexp(logs, axis=1)
    return float(total.mean())


def leading_density(model: Any, x: np.ndarray) -> np.ndarray:
    """The log-density of the first columns of a Gaussian mixture."""
    m, logs = x.shape[1], []
    for mean, covariance in zip(model.means_, model.covariances_, strict=True):
        root = np.linalg.cholesky(covariance[:m, :m])
        z = solve_triangular(root, (x - mean[:m]).T, lower=True)
        logs.append(-0.5 * (z**2).sum(axis=0) - np.log(np.diagonal(root)).sum() - m / 2 * np.log(2 * np.pi))
    return logsumexp(np.stack(logs, axis=1) + np.log(model.weights_), axis=1)


METHODS = {"LowRankDensity": ours, "StepMix": stepmix, "Gaussian mixture on one-hot": one_hot}


def main() -> None:
    """Every method on every set, fold by fold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=list(NUMBERS), choices=list(NUMBERS))
    parser.add_argument("--folds", type=int, default=5)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    path = RESULTS / "mixed.json"
    results: dict[str, Any] = json.loads(path.read_text())["results"] if path.exists() else {"commits": {}}
    for method, way in METHODS.items():
        if method in results["commits"]:
            continue
        for name in chosen.sets:
            parts = of_folds(way, *load(Path(os.environ["LATENTVIEWS_DATA"]), name), chosen.folds)
            results.setdefault(name, {}).update({key: [round(part[key], 4) for part in parts] for key in parts[0]})
            print(name, {key: round(float(np.mean([part[key] for part in parts])), 3) for key in parts[0]}, flush=True)
        results["commits"][method] = _record.COMMIT
        _record.save(path, results, PACKAGES)


def of_folds(way: Any, table: np.ndarray, n_numbers: int, count: int) -> list[dict[str, float]]:
    """What a method says of the rows of every fold."""
    parts = []
    for fitted, held in folds(len(table), count):
        train, test = table[fitted], table[held]
        parts.append(way(train, test[known(train, test, n_numbers)], n_numbers))
    return parts


if __name__ == "__main__":
    main()
