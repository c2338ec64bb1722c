"""Kernel PCA of a million rows of 64 columns: `LandmarkPCA` beside scikit-learn's Nystroem + IncrementalPCA.

    python benchmarks/speed/kernel_pca.py

Both have the same Gaussian kernel and number of landmarks and read the same batches. The error is the variance of
held-out rows (in the RKHS, centred) that ten components leave, over what the best ten components of those rows leave.
Memory is the most that a fresh process held during the fit over what it held before, the file of the rows apart.
Times are of the processor (set OPENBLAS_NUM_THREADS=1). Runs on record are not repeated. Linux only.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import IncrementalPCA
from sklearn.kernel_approximation import Nystroem

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews import Gaussian, LandmarkPCA

RESULTS = Path(__file__).with_name("results") / "kernel_pca.json"
DATA = Path(__file__).resolve().parents[1] / ".data"
COLUMNS, LANDMARKS, COMPONENTS, BATCH = 64, 512, 10, 4096
BANDWIDTH = 6.0


def rows(n_samples: int, seed: int = 0) -> np.ndarray:
    """A mixture of eight Gaussians with columns of falling size."""
    rng = np.random.default_rng(seed)
    centres = 2 * np.random.default_rng(0).normal(size=(8, COLUMNS)) / np.sqrt(np.arange(1, COLUMNS + 1))
    X = np.empty((n_samples, COLUMNS))
    for start in range(0, n_samples, 100_000):
        part = X[start : start + 100_000]
        part[:] = rng.normal(size=part.shape) * 2 / np.sqrt(np.arange(1, COLUMNS + 1))
        part += centres[rng.integers(8, size=len(part))]
    return X


class Peer:
    """Nystroem features, standard recipe, and principal components by batches."""

    def fit(self, X: np.ndarray) -> "Peer":
        """One pass over the rows."""
        sample = X[np.sort(np.random.default_rng(0).choice(len(X), size=10_000, replace=False))]
        self.phi = Nystroem(gamma=0.5 / BANDWIDTH**2, n_components=LANDMARKS, random_state=0).fit(sample)
        self.pca = IncrementalPCA(COMPONENTS)
        for start in range(0, len(X), BATCH):
            self.pca.partial_fit(self.phi.transform(np.array(X[start : start + BATCH])))
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Coordinates along the components."""
        return self.pca.transform(self.phi.transform(X))


MODELS: dict[str, Any] = {
    "LandmarkPCA": lambda: LandmarkPCA(
        COMPONENTS, kernel=Gaussian(BANDWIDTH), n_landmarks=LANDMARKS, selection="uniform", random_state=0
    ),
    "Nystroem + IncrementalPCA": Peer,
}


def left_over(model: Any, test: np.ndarray) -> float:
    """The variance that the components leave on held-out rows, as a multiple of the least possible for as many."""
    gram = np.exp(-0.5 / BANDWIDTH**2 * np.maximum(_squares(test), 0.0))
    middle = np.eye(len(test)) - 1 / len(test)
    gram = middle @ gram @ middle
    values = np.linalg.eigvalsh(gram)[::-1]
    scores = model.transform(test)
    basis = np.linalg.qr(scores - scores.mean(axis=0))[0]
    return float((np.trace(gram) - np.trace(basis.T @ gram @ basis)) / values[COMPONENTS:].sum())


def _squares(x: np.ndarray) -> np.ndarray:
    norms = np.sum(x**2, axis=1)
    return norms[:, None] + norms[None, :] - 2 * x @ x.T


def held_megabytes() -> float:
    """The memory that is this process's own, mapped files apart."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"^RssAnon:\s+(\d+) kB", status, re.MULTILINE)[1]) / 2**10


def measure(name: str, file: str) -> dict[str, Any]:
    """Time, error and memory of one fit, in this process."""
    X, model = np.load(file, mmap_mode="r"), MODELS[name]()
    MODELS[name]().fit(rows(12_000, 3))  # load what is loaded once
    held, most, done = held_megabytes(), [0.0], threading.Event()
    watch = threading.Thread(
        target=lambda: [most.append(held_megabytes()) for _ in iter(lambda: done.wait(0.02), True)]
    )
    watch.start()
    start = time.process_time()
    model.fit(X)
    seconds = time.process_time() - start
    done.set()
    watch.join()
    return {
        "seconds": round(seconds, 2),
        "megabytes_above_start": round(max(most) - held, 1),
        "left_over": round(left_over(model, rows(3000, 1)), 4),
    }


def main() -> None:
    """Measure both in fresh processes, print and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--measure", nargs=2, metavar=("NAME", "NPY"), help="print one measurement as JSON")
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(*options.measure)))
        return
    if options.rows != 1_000_000:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "rows.npy"
            np.save(file, rows(options.rows))
            print([in_fresh_process(name, file) for name in MODELS])
        return
    runs = json.loads(RESULTS.read_text())["results"]["runs"] if RESULTS.exists() else {}
    file = DATA / "kernel_pca_rows.npy"
    if not file.exists():
        DATA.mkdir(exist_ok=True)
        np.save(file.with_suffix(".part.npy"), rows(options.rows))
        file.with_suffix(".part.npy").replace(file)
    for name in (name for name in MODELS if name not in runs):
        runs[name] = in_fresh_process(name, file)
        print(name, runs[name], flush=True)
        _record.save(RESULTS, {"rows": options.rows, "landmarks": LANDMARKS, "runs": runs})
    ours, theirs = (runs[name] for name in MODELS)
    print(f"{theirs['seconds'] / ours['seconds']:.2f} times as fast")


def in_fresh_process(name: str, file: Path) -> dict[str, Any]:
    """One measurement, in a process of its own."""
    child = [sys.executable, __file__, "--measure", name, str(file)]
    return json.loads(subprocess.run(child, capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    main()
