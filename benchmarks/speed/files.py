"""Ten and a hundred million rows that are not in memory: a memory map, Parquet, and a Dask cluster of two processes.

    python benchmarks/speed/files.py

Three columns of the Gamma design, k = 3, the spectral fit (`polish=None`), and the default fit of a million rows. Every
source and size has a process of its own. Memory is the most that its first fit has above the interpreter with all that
a fit imports; of Dask's workers it is the most above what they have after a fit of 10⁵ rows. Answers are compared with
those of an array in memory. Times are medians of five fits, of the processor and by the clock; Dask's by the clock are
those of the client, beside one process on the same files, and the cluster is up before. The hundred million are the ten
million ten times. Set OPENBLAS_NUM_THREADS=1.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews import MultiViewMixture
from latentviews.datasets import make_multiview

RESULTS = Path(__file__).with_name("results") / "files.json"
SIZES = (100_000, 1_000_000, 10_000_000)
COPIES = 10  # of the rows of the largest size, in files alone
PILOT = 20_000  # rows, whose fit is part of every other
PART = 1_000_000  # rows of a Parquet file, and of a chunk
REPETITIONS = 5
PACKAGES = (*_record.PACKAGES, "pyarrow", "pandas", "dask", "distributed")


def write(folder: Path) -> None:
    """The rows of every size as a NumPy file, and as a folder of Parquet files of a million rows each."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = make_multiview(SIZES[-1], 3, design="gamma", random_state=_record.FIRST_DRAW).X
    for size in (PILOT, *SIZES):
        np.save(folder / f"{size}.npy", rows[:size])
        (folder / str(size)).mkdir()
        for start in range(0, size, PART):
            table = pa.table(dict(zip("abc", rows[:size][start : start + PART].T, strict=True)))
            pq.write_table(table, folder / str(size) / f"{start // PART:03d}.parquet", row_group_size=2**17)
    name = str(COPIES * len(rows))
    many = np.lib.format.open_memmap(folder / f"{name}.npy", "w+", float, (COPIES * len(rows), 3))
    (folder / name).mkdir()
    for copy in range(COPIES):
        many[copy * len(rows) : (copy + 1) * len(rows)] = rows
        for part in (folder / str(len(rows))).iterdir():
            shutil.copy(part, folder / name / f"{copy}_{part.name}")
    many.flush()


def model(polished: bool) -> MultiViewMixture:
    """The estimator that is measured."""
    return MultiViewMixture(3, polish="auto" if polished else None, random_state=0)


SOURCES: dict[str, Callable[[Path, int], Any]] = {
    "array": lambda folder, size: np.load(folder / f"{size}.npy"),
    "memory map": lambda folder, size: np.load(folder / f"{size}.npy", mmap_mode="r"),
    "parquet": lambda folder, size: folder / str(size),
}


def forget_peak() -> float:
    """Let the peak of this process's memory be what it has now, in MB (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")
    return peak()


def peak() -> float:
    """The most memory this process has had since, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def one_fit(folder: Path, kind: str, size: int, polished: bool) -> dict[str, Any]:
    """A fit in this process, repeated: seconds, memory and the answer."""
    import pandas  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    estimator = model(polished)
    estimator.fit(make_multiview(500, 3, random_state=0).X)  # imports what it needs
    data = SOURCES[kind](folder, size)
    before, seconds, megabytes = forget_peak(), [], 0.0
    for _ in range(1 if polished else REPETITIONS):
        cpu, wall = time.process_time(), time.perf_counter()
        estimator.fit(data)
        seconds.append((time.process_time() - cpu, time.perf_counter() - wall))
        megabytes = megabytes or peak() - before
    cpu, wall = np.median(seconds, axis=0).round(4).tolist()
    return {"cpu": cpu, "wall": wall, "megabytes": round(megabytes, 1), "weights": estimator.weights_.tolist()}


def in_own_process(*arguments: Any) -> dict[str, Any]:
    """What a process of its own says of a fit."""
    command = [sys.executable, __file__, "--one", *map(str, arguments)]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


def on_dask(folder: Path, size: int, n_workers: int) -> dict[str, Any]:
    """The same fit on a cluster of worker processes: seconds by the clock, the memory of workers, and the answer."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    options = {"n_workers": n_workers, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        for _ in range(2):  # so that every worker has imported what it needs
            model(False).fit(dd.read_parquet(folder / str(SIZES[0]), blocksize=None).repartition(npartitions=4))
        before, seconds = client.run(forget_peak), []
        cpu = sum(client.run(time.process_time).values())
        for _ in range(REPETITIONS):
            estimator, begin = model(False), time.perf_counter()
            estimator.fit(dd.read_parquet(folder / str(size), blocksize=None))
            seconds.append(time.perf_counter() - begin)
        after = client.run(peak)
        cpu = sum(client.run(time.process_time).values()) - cpu
    return {
        "wall": round(statistics.median(seconds), 3),
        "cpu of all workers": round(cpu / REPETITIONS, 3),
        "megabytes of a worker": round(max(after[worker] - before[worker] for worker in after), 1),
        "weights": estimator.weights_.tolist(),
    }


def slope(by_size: dict[int, dict[str, Any]], fixed: float = 0.0) -> float:
    """Of log time beyond the ``fixed`` seconds over log rows, by least squares."""
    seconds = [one["cpu"] - fixed for one in by_size.values()]
    return round(float(np.polyfit(np.log(list(by_size)), np.log(seconds), 1)[0]), 3)


def per_row(by_size: dict[int, dict[str, Any]]) -> float:
    """Microseconds of the processor that one more row takes, between the two largest sizes."""
    (few, less), (many, more) = list(by_size.items())[-2:]
    return round(1e6 * (more["cpu"] - less["cpu"]) / (many - few), 3)


def measured(folder: Path) -> dict[str, Any]:
    """All figures."""
    largest, found = SIZES[-1], {}
    for kind in SOURCES:
        pilot, *fits = (in_own_process(folder, kind, size, 0) for size in (PILOT, *SIZES))
        by_size = dict(zip(SIZES, fits, strict=True))
        found[kind] = {
            "spectral": by_size,
            "slope of cpu seconds": slope(by_size),
            "seconds of the pilot": pilot["cpu"],
            "slope beyond the pilot": slope(by_size, pilot["cpu"]),
            "microseconds of a row": per_row(by_size),
            f"default fit, {PART} rows": in_own_process(folder, kind, PART, 1),
        }
        if kind != "array":
            many = by_size | {COPIES * largest: in_own_process(folder, kind, COPIES * largest, 0)}
            found[kind]["ten times as many"] = many[COPIES * largest]
            found[kind]["slope from a million rows on"] = slope({size: many[size] for size in many if size >= PART})
        print(kind, found[kind], flush=True)
    one = found["parquet"]["spectral"][largest]
    clusters = {f"{n} worker(s)": on_dask(folder, largest, n) for n in (1, 2)}
    for cluster in clusters.values():
        cluster["over one process"] = round(cluster["wall"] / one["wall"], 3)
        cluster["over one worker"] = round(cluster["wall"] / clusters["1 worker(s)"]["wall"], 3)
        cluster["cpu over one process"] = round(cluster["cpu of all workers"] / one["cpu"], 3)
        cluster["microseconds of a row"] = round(1e6 * cluster["cpu of all workers"] / largest, 3)
    found["dask, 10000000 rows from parquet"] = clusters
    found["processes that wanted a core, at the end"] = round(os.getloadavg()[0], 1)
    truth = found["array"]["spectral"][largest]["weights"]
    answers = [found[kind]["spectral"][largest]["weights"] for kind in SOURCES] + [
        c["weights"] for c in clusters.values()
    ]
    found["weights apart from those of the array, at most"] = float(np.abs(np.array(answers) - truth).max())
    return found


def main() -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        folder, kind, size, polished = arguments.one
        print(json.dumps(one_fit(Path(folder), kind, int(size), bool(int(polished)))))
        return
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        found = measured(Path(folder))
    print(json.dumps(found, indent=2))
    _record.save(RESULTS, found, PACKAGES)


if __name__ == "__main__":
    main()
