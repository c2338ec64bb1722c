"""Whether a tree of the package is as fast and as small as another: the same fits, in turn, in fresh processes.

    git worktree add ../before COMMIT
    python benchmarks/speed/trees.py ../before/src src

Times are medians, of the processor (set OPENBLAS_NUM_THREADS=1); memory is the peak of a process over what it held just
before a fit of 10⁶ rows. The cases are those of mixture.py and chains.py. Linux only.
"""

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mixture import MEMORY_ROWS, MODELS, megabytes, rows

import _record
import latentviews
from latentviews.datasets import make_hmm

RESULTS = Path(__file__).with_name("results") / "trees.json"
STEPS, STATES, REPETITIONS = 300_000, 5, 3
PLACES = ("latentviews.sequences.chains", "latentviews.chains")  # of the passes over a chain, now and before


def cases() -> dict[str, Callable[[], Any]]:
    """What is timed, by name."""
    chains = importlib.import_module(next(filter(_is_there, PLACES)))
    X, wide, series = rows(100_000, "gamma"), rows(100_000, "gaussian", 4), make_hmm(5000, random_state=0).X
    rng, lengths = np.random.default_rng(0), np.array([STEPS])
    judged = rng.normal(size=(STEPS, STATES)), np.full(STATES, 1 / STATES), 0.9 * np.eye(STATES) + 0.1 / STATES, lengths
    return {
        "mixture, 100,000 rows, 3 gamma classes": lambda: MODELS["default"](3).fit(X),
        "the same, spectral": lambda: MODELS["spectral"](3).fit(X),
        "mixture, 100,000 rows, 4 Gaussian classes": lambda: MODELS["default"](4).fit(wide),
        "chain, 5,000 rows, 3 states": lambda: latentviews.KernelHMM(3, random_state=0).fit(series),
        "filtering, 300,000 steps": lambda: chains.filter_states(*judged),
        "forward-backward, 300,000 steps": lambda: chains.smooth_states(*judged),
        "best path, 300,000 steps": lambda: chains.best_path(*judged),
    }


def _is_there(module: str) -> bool:
    """Whether the package has a module."""
    return bool(find_spec(module.rpartition(".")[0]) and find_spec(module))


def measured() -> dict[str, float]:
    """Seconds of every case, after a small fit that loads what is loaded once, and megabytes of a large fit."""
    MODELS["default"](3).fit(rows(1000, "gamma"))
    found = {}
    for name, run in cases().items():
        begin = time.process_time()
        run()
        found[name] = time.process_time() - begin
    return found


def grown() -> dict[str, float]:
    """Megabytes above the data that a fit reaches."""
    X = rows(MEMORY_ROWS, "gamma")
    MODELS["default"](3).fit(X[:1000])
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak of making the rows
    held = megabytes("VmRSS")
    MODELS["default"](3).fit(X)
    return {"megabytes of a fit, 1,000,000 rows": megabytes("VmHWM") - held}


def in_tree(source: Path, what: str) -> dict[str, float]:
    """What a fresh process measures with the package of a tree."""
    child = [sys.executable, __file__, "--measure", what]
    environment = {**os.environ, "PYTHONPATH": str(source.resolve())}
    return json.loads(subprocess.run(child, capture_output=True, text=True, check=True, env=environment).stdout)


def main() -> None:
    """Measure both trees in turn, print and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs="*", type=Path, metavar="SRC", help="two folders that hold latentviews/")
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    parser.add_argument("--measure", choices=["times", "memory"], help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        print(json.dumps(measured() if args.measure == "times" else grown()))
        return
    if len(args.trees) != 2:
        parser.error("give two trees, the one before and the one after")
    turns = [[in_tree(tree, "times") for tree in args.trees] for _ in range(args.repetitions)]
    before, after = (
        {case: statistics.median(run[case] for run in runs) for case in runs[0]} for runs in zip(*turns, strict=True)
    )
    for medians, tree in zip((before, after), args.trees, strict=True):
        medians |= in_tree(tree, "memory")
    table = {}
    for case, seconds in before.items():
        ratio = after[case] / seconds
        table[case] = {"before": round(seconds, 3), "after": round(after[case], 3), "ratio": round(ratio, 3)}
    for case, row in table.items():
        print(f"{case:45s} {row['before']:9.3f} {row['after']:9.3f}  {row['ratio']:6.3f}")
    _record.save(RESULTS, {"repetitions": args.repetitions, "cases": table})


if __name__ == "__main__":
    main()
