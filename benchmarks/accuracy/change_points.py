"""`ChangePoints` beside ruptures' kernel method, at the number of changes that the labels have.

    pip install ruptures
    python benchmarks/accuracy/change_points.py

The chest accelerometer (52 Hz; eight changes of activity), as means and log-spreads of half seconds; twenty test runs
of the smart watch in random order, one after the other (10 Hz, four activities); and nine accelerometers of a walking
patient (64 Hz), in which nothing is labelled: three sensors change places at known rows. Both methods see rows in
standard deviations of their columns and have their default Gaussian kernels; the default bandwidth was chosen on the
watch's training runs (change_points_widths.py has others beside it). F1 counts changes found within one second.
"""

import csv
import gzip
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import ruptures

import _record
from latentviews import ChangePoints

RESULTS = Path(__file__).with_name("results") / "change_points.json"
DATA = Path(os.environ.get("LATENTVIEWS_DATA", "data")) / "series"


def table(name: str) -> list[dict[str, str]]:
    """The rows of a file."""
    with gzip.open(DATA / f"{name}.csv.gz", "rt") as lines:
        return list(csv.DictReader(lines))


def numbers(rows: list[dict[str, str]], skip: tuple[str, ...]) -> np.ndarray:
    """All columns but some."""
    return np.array([[float(row[name]) for name in row if name not in skip] for row in rows])


def changes_of(labels: list[Any]) -> np.ndarray:
    """The rows at which a label changes."""
    return np.flatnonzero([a != b for a, b in zip(labels[1:], labels[:-1], strict=True)]) + 1


def chest() -> tuple[np.ndarray, np.ndarray, float]:
    """Means and log-spreads of half seconds, the changes of activity among them, and how many there are a second."""
    rows = [row for row in table("chest_accel_p13") if row["label"] != "0"]
    x, labels = numbers(rows, ("t", "label")), [row["label"] for row in rows]
    count = len(x) // 26
    parts = x[: count * 26].reshape(count, 26, -1)
    series = np.hstack([parts.mean(axis=1), np.log(1 + parts.std(axis=1))])
    return series, changes_of(labels[13::26][:count]), 2.0


def watch(seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Twenty runs of the watch's test part in random order, one after the other."""
    rows = [row for row in table("basic_motions") if row["split"] == "test"]
    x, series = numbers(rows, ("series", "split", "t", "label")), np.array([row["series"] for row in rows])
    activity = {row["series"]: row["label"] for row in rows}
    order = np.random.default_rng(seed).permutation(sorted(activity))[:20]
    joined = np.concatenate([x[series == one] for one in order])
    return joined, changes_of([activity[one] for one in order for _ in range(int((series == one).sum()))]), 10.0


def daphnet() -> tuple[np.ndarray, np.ndarray, float]:
    """Stretches of the walk whose three sensors have changed places."""
    x = numbers(table("daphnet_s06r02"), ("t",))
    turns = [[0, 1, 2, 3, 4, 5, 6, 7, 8], [3, 4, 5, 0, 1, 2, 6, 7, 8], [0, 1, 2, 6, 7, 8, 3, 4, 5]]
    ends = [0, 1500, 3300, 5000, 7040]
    parts = [x[ends[i] : ends[i + 1]][:, turns[i % 3]] for i in range(4)]
    return np.concatenate(parts), np.array(ends[1:-1]), 64.0


def f1(found: np.ndarray, truth: np.ndarray, margin: float) -> float:
    """Of changes within a margin, each true one found once."""
    left = list(truth)
    hits = 0
    for place in found:
        near = min(left, key=lambda one: abs(one - place), default=None)
        if near is not None and abs(near - place) <= margin:
            left.remove(near)
            hits += 1
    return 2 * hits / max(len(found) + len(truth), 1)


def measured(x: np.ndarray, truth: np.ndarray, rate: float) -> dict[str, Any]:
    """F1 and seconds of both methods at the true number of changes."""
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    started = time.perf_counter()
    ours = ChangePoints(len(truth), random_state=0).fit(x).changes_
    middle = time.perf_counter()
    peer = ruptures.KernelCPD(kernel="rbf", min_size=2).fit(x).predict(n_bkps=len(truth))[:-1]
    ended = time.perf_counter()
    return {
        "rows": len(x),
        "changes": len(truth),
        "F1": {"ChangePoints": f1(ours, truth, rate), "KernelCPD": f1(np.array(peer), truth, rate)},
        "seconds": {"ChangePoints": round(middle - started, 2), "KernelCPD": round(ended - middle, 2)},
    }


def main() -> None:
    """Measure, print and save."""
    results: dict[str, Any] = {}
    results["chest, means and spreads of half seconds"] = measured(*chest())
    print(results, flush=True)
    results["walk with sensors changed"] = measured(*daphnet())
    print(results, flush=True)
    draws = [measured(*watch(_record.FIRST_DRAW + draw)) for draw in range(8)]
    results["watch, mean of eight orders"] = {
        "rows": draws[0]["rows"],
        **{
            key: {name: round(float(np.mean([draw[key][name] for draw in draws])), 3) for name in draws[0][key]}
            for key in ("F1", "seconds")
        },
    }
    print(results, flush=True)
    _record.save(RESULTS, results, (*_record.PACKAGES, "ruptures"))


if __name__ == "__main__":
    main()
