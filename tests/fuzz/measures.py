"""One hostile call of a measure, of a maker of data, or of the reader of series."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from latentviews import datasets, metrics

from .verdicts import Judge

Rng = np.random.Generator
NO_LABELS = [None, 3, "text", [], [[0], [1]], [0, "a", None], [np.nan, 1.0], [0.5, 1.0], [-1, 0], [0, 10**12], [1e300]]
NO_NUMBERS = [None, "text", [], [np.nan, 1.0], [np.inf, 0.0], [1j, 1.0], [[1.0]], ["a", "b"], [1.0], [-1e308, 1e308]]
NO_MATRICES = [*NO_NUMBERS, np.zeros((2, 2)), np.zeros((0, 0)), np.full((2, 2), np.nan), np.eye(3)[:2], [[1, 2], [3]]]
NO_SEEDS = ["x", -1, 1.5, object]


def _picked(rng: Rng, values: list[Any]) -> Any:
    return values[int(rng.integers(len(values)))]


def _labels(rng: Rng, size: int, wild: bool) -> Any:
    labels = rng.integers(0, int(rng.integers(1, 6)), size=size)
    forms = [labels, labels.tolist(), labels.astype(float), labels.astype(np.int8), labels.astype(bool)]
    return _picked(rng, [*forms, *(NO_LABELS if wild else [])])


def _partitions(name: str, *, any_names: bool) -> Callable[[Rng, Judge, bool], None]:
    """A case of a measure of two partitions, which may take labels of any names."""

    def case(rng: Rng, judge: Judge, wild: bool) -> None:
        size = int(rng.integers(1, 30))
        true, found = _labels(rng, size, wild), _labels(rng, size + int(wild and rng.random() < 0.2), wild)
        if any_names and rng.random() < 0.3:
            found = _picked(
                rng, [np.array(["a", "b", "ä"])[rng.integers(0, 3, size=size)], -(10**12) * np.arange(size)]
            )
        answer = judge.call(name, getattr(metrics, name), true, found)
        if answer is not None:
            judge.faults.numbers(name, answer)
            if name != "match_labels" and not -1 <= answer <= 1:
                judge.faults.append(f"{name} is {answer}")

    return case


def _weights(rng: Rng, judge: Judge, wild: bool) -> None:
    size = int(rng.integers(1, 6))
    true, found = (
        _picked(rng, [rng.dirichlet(np.ones(size)), rng.random(size), *(NO_NUMBERS if wild else [])]) for _ in range(2)
    )
    judge.faults.numbers("weight_error", judge.call("weight_error", metrics.weight_error, true, found) or 0.0)


def _amari(rng: Rng, judge: Judge, wild: bool) -> None:
    size = int(rng.integers(1, 6))
    square = rng.normal(size=(size, size)) * 10 ** rng.uniform(-150, 150)
    product = _picked(rng, [square, np.eye(size)[rng.permutation(size)], *(NO_MATRICES if wild else [])])
    answer = judge.call("amari_error", metrics.amari_error, product)
    if answer is not None and not -1e-9 <= answer <= 1 + 1e-9:
        judge.faults.append(f"amari_error is {answer}")


def _densities(name: str) -> Callable[[Rng, Judge, bool], None]:
    """A case of a measure of densities."""

    def case(rng: Rng, judge: Judge, wild: bool) -> None:
        k, n_views = int(rng.integers(1, 4)), int(rng.integers(1, 4))
        (weights, true), (_, found) = (
            datasets.make_multiview(5, k, n_views=n_views, random_state=seed).truth for seed in (0, 1)
        )
        found = _picked(rng, [found, true, *([found[:-1], ()] if wild else [])])
        grids = _picked(rng, [[np.linspace(-8, 8, 50)] * n_views, *([[], [np.zeros(1)]] if wild else [])])
        answer = judge.call(name, getattr(metrics, name), true, found, grids, weights)
        judge.faults.numbers(name, answer) if answer is not None else None

    return case


def _multiview(rng: Rng, judge: Judge, wild: bool) -> None:
    settings: dict[str, list[Any]] = {
        "design": ["gaussian", "gamma", "shapes", *(["x", None, []] if wild else [])],
        "n_views": [1, 3, *([0, 2.5, "x"] if wild else [])],
        "separation": [0, 4.0, 1e100, *([np.nan, np.inf, -1, "x", None] if wild else [])],
        "identical": [False, True],
        "random_state": [0, None, *(NO_SEEDS if wild else [])],
    }
    chosen = {name: _picked(rng, values) for name, values in settings.items()}
    n_samples, k = (_picked(rng, [1, 3, 40, *([0, -1, None, "x"] if wild else [])]) for _ in range(2))
    data = judge.call("make_multiview", lambda: datasets.make_multiview(n_samples, k, **chosen))
    if data is not None:
        judge.faults.numbers("make_multiview", data.X)


def _hmm(rng: Rng, judge: Judge, wild: bool) -> None:
    settings: dict[str, list[Any]] = {
        "stay": [0, 0.9, 1, *([np.nan, -0.1, 2, "x", None] if wild else [])],
        "lengths": [None, [10], [4, 6], *([[12, -2], [5.5, 4.5], "x", [], [[10]], [3]] if wild else [])],
        "random_state": [0, None, *(NO_SEEDS if wild else [])],
    }
    chosen = {name: _picked(rng, values) for name, values in settings.items()}
    n_samples = _picked(rng, [10, 10, *([0, -1, None, "x"] if wild else [])])
    data = judge.call("make_hmm", lambda: datasets.make_hmm(n_samples, **chosen))
    if data is not None:
        judge.faults.numbers("make_hmm", data.X)


def _series(rng: Rng, judge: Judge, wild: bool) -> None:
    texts = [b"walk,x\na,1\na,\nb,5\n", b"walk,x\n", b"", b"walk,x\na\n", b"x,x\n1,2\n", b"walk,x\na,word\n"]
    texts += [b"walk,x\na,1,7\n", b"\xff\xfe\x00walk", b'walk,x\n"a,1\n', b"\x1f\x8b\x08\x00 cut"]
    layouts = [
        datasets.SeriesFile("walks", ("x",), sequence="walk"),
        datasets.SeriesFile("walks", ("x",), label="walk"),
    ]
    layouts += [datasets.SeriesFile("walks", ()), datasets.SeriesFile("walks", ("x",), "no")] if wild else []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / _picked(rng, ["walks.csv", *(["walks.csv.gz"] if wild else [])])
        path.write_bytes(_picked(rng, texts if wild else texts[:1]))
        path = _picked(rng, [path, path, *([None, 3] if wild else [])])
        judge.call("read_series", datasets.read_series, path, _picked(rng, layouts))


MEASURES: dict[str, Callable[[Rng, Judge, bool], None]] = {
    "match_labels": _partitions("match_labels", any_names=False),
    "label_accuracy": _partitions("label_accuracy", any_names=False),
    "adjusted_rand": _partitions("adjusted_rand", any_names=True),
    "f_measure": _partitions("f_measure", any_names=True),
    "weight_error": _weights,
    "amari_error": _amari,
    "density_error": _densities("density_error"),
    "match_components": _densities("match_components"),
    "make_multiview": _multiview,
    "make_hmm": _hmm,
    "read_series": _series,
}
