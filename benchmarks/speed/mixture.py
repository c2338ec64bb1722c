"""How fast `MultiViewMixture` fits beside scikit-learn's `GaussianMixture`, and how much memory it takes.

    python benchmarks/speed/mixture.py

Both fit the same rows in turn, in one process; times are medians. Memory is the peak of a
fresh process over what it held just before the fit, with the data read and the libraries loaded. Linux only.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.mixture import GaussianMixture

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews import MultiViewMixture
from latentviews.datasets import make_multiview

RESULTS = Path(__file__).with_name("results") / "mixture.json"
DESIGNS = ("gaussian", "gamma")
CASES = [(100_000, 3, 5), (100_000, 4, 5), (1_000_000, 3, 1)]  # rows, classes, repetitions
MEMORY_ROWS = 1_000_000


def rows(n_samples: int, design: str, k: int = 3) -> np.ndarray:
    """Three one-dimensional views of k classes."""
    return make_multiview(n_samples, k, design=design, random_state=0).X


MODELS = {
    "default": lambda k: MultiViewMixture(k, random_state=0),
    "spectral": lambda k: MultiViewMixture(k, polish=None, random_state=0),
    "GaussianMixture": lambda k: GaussianMixture(k, covariance_type="diag", n_init=10, random_state=0),
}


def seconds(model: Any, X: np.ndarray) -> float:
    """The time of one fit."""
    start = time.perf_counter()
    model.fit(X)
    return time.perf_counter() - start


def compare(n_samples: int, k: int, design: str, repetitions: int) -> dict[str, Any]:
    """Median times of all, measured in turn, and the ratio of ours to the peer's; below one, ours is faster."""
    X = rows(n_samples, design, k)
    times = [[seconds(make(k), X) for make in MODELS.values()] for _ in range(repetitions)]
    medians = dict(zip(MODELS, map(statistics.median, zip(*times, strict=True)), strict=True))
    peer = medians["GaussianMixture"]
    return {
        "n_samples": n_samples,
        "k": k,
        "design": design,
        "repetitions": repetitions,
        "seconds": {name: round(value, 4) for name, value in medians.items()},
        "ratio": {name: round(medians[name] / peer, 4) for name in ("default", "spectral")},
    }


def megabytes(field: str) -> float:
    """A field of this process's status: VmRSS, what it holds now, or VmHWM, the most it has held.

    Not ``ru_maxrss``: a child inherits that from its parent.
    """
    status = Path("/proc/self/status").read_text()
    return int(re.search(rf"^{field}:\s+(\d+) kB", status, re.MULTILINE)[1]) / 2**10


def fit_growth(file: str) -> dict[str, float]:
    """Megabytes above the data that a fit on the rows in ``file`` reaches, and what is needed to trust the number.

    A peak never falls, so one left by making the data would hide the fit: the rows are read from a file, which
    needs nothing beside them, and growth is counted from what is held just before the fit.
    """
    MODELS["default"](3).fit(rows(1000, "gamma"))
    X = np.load(file)
    held, earlier_peak = megabytes("VmRSS"), megabytes("VmHWM")
    MODELS["default"](3).fit(X)
    return {"above": megabytes("VmHWM") - held, "held_before": held, "peak_before": earlier_peak}


def memory() -> dict[str, Any]:
    """`fit_growth` in a fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "rows.npy")
        np.save(file, rows(MEMORY_ROWS, "gamma"))
        child = [sys.executable, __file__, "--fit-growth", file]
        growth = json.loads(subprocess.run(child, capture_output=True, text=True, check=True).stdout)
    return {
        "n_samples": MEMORY_ROWS,
        "data_megabytes": round(MEMORY_ROWS * 3 * 8 / 2**20, 1),
        **{f"{name}_megabytes": round(value, 1) for name, value in growth.items()},
    }


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fit-growth", metavar="NPY", help="print only the memory of a fit on these rows, as JSON")
    file = parser.parse_args().fit_growth
    if file:
        print(json.dumps(fit_growth(file)))
        return
    for make in MODELS.values():
        seconds(make(3), rows(1000, "gamma"))  # load what is loaded once
    print("     rows  k  design     default  spectral  GaussianMixture  ratio of the default, of the spectral estimate")
    times = []
    for n_samples, k, repetitions in CASES:
        for design in DESIGNS:
            found = compare(n_samples, k, design, repetitions)
            times.append(found)
            taken, ratio = found["seconds"], found["ratio"]
            print(
                f"{n_samples:9,d}  {k}  {design:8s}  {taken['default']:6.2f} s  {taken['spectral']:6.2f} s  "
                f"{taken['GaussianMixture']:13.2f} s  {ratio['default']:5.2f}  {ratio['spectral']:5.2f}",
                flush=True,
            )
    above = memory()
    print(f"memory of a fit on {MEMORY_ROWS:,} rows: {above['above_megabytes']:.0f} MB above the data")
    _record.save(RESULTS, {"times": times, "memory": above})


if __name__ == "__main__":
    main()
