"""`NonparametricEM` against `npEM` of R's mixtools, and the time of both beside `MultiViewMixture`.

    LATENTVIEWS_DATA=../shared/data python benchmarks/accuracy/mixtools.py

On Waterdata and RTdata both start from the same clusters with the same bandwidth, and their responsibilities are
compared: mixtools evaluates densities exactly, ours are binned. Then 5,000 rows of three overlapping Gaussian classes
are fitted once by each, and judged by the log-likelihood of 5,000 other rows. Needs R with mixtools, which it installs
where it can (Debian's r-cran-mixtools), and says so and ends where it cannot. ``--part`` runs a half.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import logsumexp
from sklearn.cluster import KMeans

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews import MultiViewMixture
from latentviews.baselines import NonparametricEM
from latentviews.datasets import make_multiview

RESULTS = Path(__file__).with_name("results") / "mixtools.json"
DATA = Path(os.environ.get("LATENTVIEWS_DATA", "../shared/data")) / "mixtools"
TOLERANCE = 0.01  # on a responsibility
SAME_START = {  # columns, classes, block ids and bandwidth; those of the mixtools paper for Waterdata
    "Waterdata": (slice(2, 10), 3, [4, 3, 2, 1, 3, 4, 1, 2], 4.0),
    "RTdata": (slice(0, 6), 3, [1] * 6, None),
}
N_SAMPLES, N_COMPONENTS, SEPARATION = 5000, 3, 2.0
SCRIPT = """
suppressMessages(library(mixtools))
folder <- commandArgs(TRUE)[1]
read <- function(name) as.matrix(read.csv(file.path(folder, name), header = FALSE))
x <- read("x.csv"); centers <- read("centers.csv"); blocks <- as.vector(read("blocks.csv"))
h <- as.vector(read("bandwidth.csv"))
if (h <= 0) h <- bw.nrd0(as.vector(x))
write.table(kmeans(x, centers)$cluster, file.path(folder, "clusters.csv"), row.names = FALSE, col.names = FALSE)
seconds <- system.time(fit <- npEM(x, centers, blockid = blocks, bw = h, eps = 1e-8, maxiter = 500, verb = FALSE))[3]
options(digits = 17)
write.table(fit$posteriors, file.path(folder, "posteriors.csv"), sep = ",", row.names = FALSE, col.names = FALSE)
write.table(c(seconds, nrow(fit$lambda), h), file.path(folder, "numbers.csv"), row.names = FALSE, col.names = FALSE)
"""


def missing() -> str:
    """What is lacking, or nothing; Debian's package is installed where that can be done."""
    if has_mixtools():
        return ""
    if shutil.which("apt-get") is not None:
        print("Installing r-cran-mixtools.")
        install = ["install", "-y", "--no-install-recommends", "r-cran-mixtools"]
        for command in (install, ["update"], install):
            subprocess.run(["apt-get", *command], check=False, capture_output=True)
            if has_mixtools():
                return ""
    return "R with mixtools is not there and could not be installed (Debian: r-cran-mixtools): nothing was compared."


def has_mixtools() -> bool:
    """Whether R is there and loads mixtools."""
    if shutil.which("Rscript") is None:
        return False
    return subprocess.run(["Rscript", "-e", "library(mixtools)"], check=False, capture_output=True).returncode == 0


def npem(x: np.ndarray, k: int, blocks: list[int], bandwidth: float | None) -> dict[str, Any]:
    """A run of mixtools: its start, posteriors, bandwidth, iterations and seconds."""
    centers = KMeans(k, n_init=10, random_state=0).fit(x).cluster_centers_
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        tables = {"x": x, "centers": centers, "blocks": blocks, "bandwidth": [bandwidth or 0.0]}
        for name, table in tables.items():
            np.savetxt(place / f"{name}.csv", np.asarray(table), delimiter=",", fmt="%.17g")
        (place / "run.R").write_text(SCRIPT)
        subprocess.run(["Rscript", str(place / "run.R"), folder], check=True, capture_output=True, text=True)
        seconds, n_iter, h = np.loadtxt(place / "numbers.csv")
        return {
            "start": np.eye(k)[np.loadtxt(place / "clusters.csv").astype(int) - 1],
            "posteriors": np.loadtxt(place / "posteriors.csv", delimiter=","),
            "bandwidth": float(h),
            "n_iter": int(n_iter),
            "seconds": float(seconds),
        }


def same_start(name: str) -> dict[str, Any]:
    """The largest difference between the two's responsibilities from one start."""
    columns, k, blocks, bandwidth = SAME_START[name]
    x = pd.read_csv(DATA / f"{name}.csv.gz").iloc[:, columns].to_numpy(float)
    theirs = npem(x, k, blocks, bandwidth)
    model = NonparametricEM(k, exchangeable=blocks, bandwidth=theirs["bandwidth"], init=theirs["start"], tol=1e-8)
    start = time.perf_counter()
    model.fit(x)
    seconds = time.perf_counter() - start
    apart = np.abs(model.responsibilities_ - theirs["posteriors"])
    return {
        "data": name,
        "n_samples": len(x),
        "n_components": k,
        "bandwidth": theirs["bandwidth"],
        "iterations": {"mixtools": theirs["n_iter"], "latentviews": model.n_iter_},
        "seconds": {"mixtools": round(theirs["seconds"], 3), "latentviews": round(seconds, 3)},
        "largest_difference": float(apart.max()),
        "mean_difference": float(apart.mean()),
        "largest_weight_difference": float(np.abs(model.weights_ - theirs["posteriors"].mean(axis=0)).max()),
        "tolerance": TOLERANCE,
        "same": bool(apart.max() < TOLERANCE),
    }


def held_out(x: np.ndarray, posteriors: np.ndarray, h: float, new: np.ndarray) -> float:
    """The mean log-density of new rows under weighted kernel density estimates, evaluated exactly."""
    weights = posteriors.mean(axis=0)
    joint = np.tile(np.log(weights), (len(new), 1))
    for old, column in zip(x.T, new.T, strict=True):
        kernel = np.exp(-0.5 * ((column[:, None] - old) / h) ** 2) / (h * np.sqrt(2 * np.pi))
        joint += np.log(np.maximum(kernel @ posteriors / posteriors.sum(axis=0), np.finfo(float).tiny))
    return float(logsumexp(joint, axis=1).mean())


def timed(model: Any, x: np.ndarray, new: np.ndarray) -> dict[str, float]:
    """Seconds of a fit, and the held-out log-likelihood."""
    start = time.perf_counter()
    model.fit(x)
    return {"seconds": round(time.perf_counter() - start, 3), "held_out": round(model.score(new), 4)}


def race() -> dict[str, Any]:
    """One fit each, on the same rows."""
    X = make_multiview(2 * N_SAMPLES, N_COMPONENTS, separation=SEPARATION, random_state=0).X
    x, new = X[:N_SAMPLES], X[N_SAMPLES:]
    MultiViewMixture(2, random_state=0).fit(x[:500])  # load what is loaded once
    found = {
        "MultiViewMixture": timed(MultiViewMixture(N_COMPONENTS, random_state=0), x, new),
        "NonparametricEM": timed(NonparametricEM(N_COMPONENTS, random_state=0), x, new),
    }
    theirs = npem(x, N_COMPONENTS, [1, 2, 3], None)
    h = theirs["bandwidth"]
    found["mixtools npEM"] = {
        "seconds": round(theirs["seconds"], 1),
        "held_out": round(held_out(x, theirs["posteriors"], h, new), 4),
    }
    found["NonparametricEM, start and bandwidth of mixtools"] = timed(
        NonparametricEM(N_COMPONENTS, init=theirs["start"], bandwidth=h, tol=1e-8), x, new
    )
    ours, other = found["MultiViewMixture"], found["mixtools npEM"]
    return {
        "n_samples": N_SAMPLES,
        "n_components": N_COMPONENTS,
        "separation": SEPARATION,
        "iterations_of_mixtools": theirs["n_iter"],
        "models": found,
        "times_faster": round(other["seconds"] / ours["seconds"], 1),
        "bar_met": other["seconds"] >= 100 * ours["seconds"] and ours["held_out"] >= other["held_out"],
    }


def main() -> None:
    """Compare, print and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=["same", "race"])
    part, lacking = parser.parse_args().part, missing()
    if lacking:
        print(lacking)
        return
    results: dict[str, Any] = {}
    if part != "race" and not DATA.is_dir():
        print(f"No data at {DATA}: set LATENTVIEWS_DATA to the folder that has mixtools/Waterdata.csv.gz.")
    elif part != "race":
        results["same_start"] = [same_start(name) for name in SAME_START]
        for found in results["same_start"]:
            print(
                f"{found['data']}: responsibilities differ by at most {found['largest_difference']:.1e} "
                f"(mean {found['mean_difference']:.1e}): {'same' if found['same'] else 'NOT the same'} to {TOLERANCE}"
            )
    if part != "same":
        results["race"] = race()
        for name, found in results["race"]["models"].items():
            print(f"{name:50s} {found['seconds']:8.2f} s   held-out log-likelihood {found['held_out']:.4f}")
        print(f"MultiViewMixture is {results['race']['times_faster']:.0f} times as fast as npEM (bar: 100)")
    _record.save(RESULTS if part is None else RESULTS.with_stem(f"mixtools_{part}"), results)


if __name__ == "__main__":
    main()
