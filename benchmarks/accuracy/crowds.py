"""Labels of tasks from answers of crowds: five published sets, and a million made-up tasks, beside crowd-kit.

    python benchmarks/accuracy/crowds.py DATA          # the directory with raters/bluebird.csv.gz and so on
    python benchmarks/accuracy/crowds.py DATA --scale  # 10^6 tasks, 10^4 workers, 5 answers per task

Needs crowd-kit and pandas. Errors are shares of tasks with a known answer; ties of the majority vote count as they
would fall on average. The pooling of workers, the rule for starts and the tolerance of `CrowdLabels` were chosen on
made-up crowds; variants of its E-step were compared with these five sets in view, so the figures are not blind.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from crowdkit.aggregation import GLAD, DawidSkene

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews import CrowdLabels

RESULTS = Path(__file__).with_name("results")
SETS = ("bluebird", "rte", "temp", "web", "dog")
PACKAGES = (*_record.PACKAGES, "crowd-kit", "pandas")


def majority_error(answers: pd.DataFrame, truth: pd.Series) -> float:
    """The expected error of the majority vote, ties broken at random."""
    votes = answers.groupby(["task", "label"]).size().unstack(fill_value=0)
    top = votes.eq(votes.max(axis=1), axis=0)
    chance = top.div(top.sum(axis=1), axis=0)
    return float(np.mean([1 - (chance.loc[task].get(label, 0.0)) for task, label in truth.items()]))


def ours(answers: pd.DataFrame) -> pd.Series:
    """The labels of `CrowdLabels`."""
    model = CrowdLabels().fit(answers)
    return pd.Series(model.labels_, index=model.tasks_)


METHODS: dict[str, Callable[[pd.DataFrame], pd.Series]] = {
    "latentviews": ours,
    "crowd-kit DawidSkene": lambda answers: DawidSkene().fit_predict(answers),
    "crowd-kit GLAD": lambda answers: GLAD().fit_predict(answers),
}


def measure(answers: pd.DataFrame, truth: pd.Series, methods: list[str]) -> dict[str, Any]:
    """The error and the seconds of every method."""
    record: dict[str, Any] = {"majority vote": {"error": round(majority_error(answers, truth), 4)}}
    for name in methods:
        start = time.process_time()
        found = METHODS[name](answers)
        seconds = time.process_time() - start
        error = float(np.mean(found.reindex(truth.index).to_numpy() != truth.to_numpy()))
        record[name] = {"error": round(error, 4), "seconds": round(seconds, 2)}
    return record


def published(path: Path) -> tuple[pd.DataFrame, pd.Series]:
    """Answers in long form, and the known answers of tasks."""
    table = pd.read_csv(path)
    answers = table.rename(columns={"item": "task", "rating": "label", "label": "truth"})
    truth = answers.drop_duplicates("task").set_index("task")["truth"].dropna().astype(int)
    return answers[["task", "worker", "label"]], truth


def made_up(n_tasks: int, n_workers: int, n_classes: int, per_task: int, seed: int) -> tuple[pd.DataFrame, pd.Series]:
    """Workers who are right with a chance of their own, from Beta(4, 2.5), and otherwise say anything else."""
    rng = np.random.default_rng(seed)
    truth, skill = rng.integers(0, n_classes, n_tasks), rng.beta(4, 2.5, n_workers)
    task = np.repeat(np.arange(n_tasks), per_task)
    worker = rng.integers(0, n_workers, len(task))
    wrong = (truth[task] + rng.integers(1, n_classes, len(task))) % n_classes
    label = np.where(rng.random(len(task)) < skill[worker], truth[task], wrong)
    return pd.DataFrame({"task": task, "worker": worker, "label": label}), pd.Series(truth)


def at_scale() -> dict[str, Any]:
    """A million tasks; the majority vote is counted without pandas."""
    answers, truth = made_up(10**6, 10**4, 4, 5, _record.FIRST_DRAW)
    votes = np.bincount(answers["task"] * 4 + answers["label"], minlength=4 * len(truth)).reshape(-1, 4)
    top = votes == votes.max(axis=1, keepdims=True)
    record: dict[str, Any] = {
        "majority vote": {"error": round(1 - float(np.mean(top[range(len(truth)), truth] / top.sum(axis=1))), 4)}
    }
    for name in ("latentviews", "crowd-kit DawidSkene"):
        start = time.process_time()
        found = METHODS[name](answers)
        seconds = time.process_time() - start
        record[name] = {"error": round(float(np.mean(found.sort_index().to_numpy() != truth)), 4)}
        record[name]["seconds"] = round(seconds, 1)
    record["times faster"] = round(record["crowd-kit DawidSkene"]["seconds"] / record["latentviews"]["seconds"], 1)
    return record


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--scale", action="store_true")
    arguments = parser.parse_args()
    if arguments.scale:
        record = at_scale()
        print(record)
        _record.save(RESULTS / "crowds_scale.json", record, PACKAGES)
        return
    records = {}
    for name in SETS:
        records[name] = measure(*published(arguments.data / "raters" / f"{name}.csv.gz"), list(METHODS))
        print(name, records[name], flush=True)
    _record.save(RESULTS / "crowds.json", records, PACKAGES)


if __name__ == "__main__":
    main()
