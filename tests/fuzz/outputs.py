"""One hostile call of what judges a model, writes about it, saves it, or reads tables of text."""

import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

import catalogue
from latentviews import CrowdLabels, LatentClass, MultiViewMixture, TopicModel, diagnose, load, save
from latentviews.datasets import flowcap_samples, load_flowcap, load_series
from latentviews.io import open_table, read_table, write_labels
from latentviews.report import write_crowd_report, write_report

from .pictures import fitted_as_catalogued
from .tables import hostile_table
from .verdicts import Judge

Rng = np.random.Generator
TEXTS = ["", "cells", "<script>alert(1)</script>", "ä漢\u202e", "\x00", "a" * 5000, "{{x}} %s \\n", 'quote"d']
NO_TEXTS = [3, ["a"], b"bytes", object()]
NO_MODELS = [None, 3, "model", {}, MultiViewMixture, MultiViewMixture(2), [1, 2]]
NO_PATHS = [None, 3, "", b"\x00", ["a"], "no/such/folder/there.x"]


def _picked(rng: Rng, values: list[Any]) -> Any:
    return values[int(rng.integers(len(values)))]


def _mixture(rng: Rng, judge: Judge, wild: bool) -> tuple[Any, Any]:
    """A quick mixture of a hostile table, and its rows in some form; None where they were refused."""
    table = hostile_table(rng, wild=wild, missing=bool(rng.random() < 0.2), n_columns=(3, 6))
    model = MultiViewMixture(int(rng.integers(1, 4)), polish=None, random_state=0)
    found = judge.call("fit", model.fit, table.given)
    rows = table.given if hasattr(table.given, "__array__") else table.rows
    return found, _picked(rng, [rows, rows, *([None, "x", 3, table.rows[:, :1], rows[:0]] if wild else [])])


def _discrete(rng: Rng, judge: Judge, wild: bool) -> tuple[Any, Any]:
    """A model of the catalogue that has a report of its own, and rows for it."""
    kind = _picked(rng, [LatentClass, TopicModel])
    model = fitted_as_catalogued(kind)
    counts = rng.poisson(1.0, size=(30, model.n_features_in_))
    return model, _picked(rng, [counts, *([None, "x", counts[:, :1], counts * np.nan] if wild else [])])


def _diagnosis(rng: Rng, judge: Judge, wild: bool) -> None:
    model, rows = _mixture(rng, judge, wild)
    if model is None:
        return
    model = _picked(rng, [model, model, model, *(NO_MODELS if wild else [])])
    count, seed = _picked(rng, [19, 1, *([0, -1, "x", 2.5] if wild else [])]), _picked(rng, [0, *(["x"] * wild)])
    found = judge.call("diagnose", diagnose, model, rows, n_permutations=count, random_state=seed)
    if found is not None and not str(judge.call("diagnose: text", str, found)):
        judge.faults.append("diagnose says nothing")


def _report(rng: Rng, judge: Judge, wild: bool) -> None:
    model, rows = _picked(rng, [_mixture, _discrete])(rng, judge, wild)
    if model is None:
        return
    model = _picked(rng, [model, model, model, *(NO_MODELS if wild else [])])
    settings: dict[str, Any] = {}
    for name in ("source", "title", "saved"):
        if rng.random() < 0.4:
            settings[name] = _picked(rng, [*TEXTS, *(NO_TEXTS if wild else [])])
    if rng.random() < 0.3:
        width = int(np.shape(rows)[1]) if np.ndim(rows) == 2 else 3
        names = [_picked(rng, TEXTS) + str(j) for j in range(width)]
        settings["columns"] = _picked(rng, [names, *([names[:1], "x", 3, [1] * width] if wild else [])])
    _judge_writing(rng, judge, partial(write_report, model, rows), settings, wild)


def _crowd_report(rng: Rng, judge: Judge, wild: bool) -> None:
    model = _picked(rng, [fitted_as_catalogued(CrowdLabels), *(NO_MODELS if wild else [])])
    settings = {"title": _picked(rng, [*TEXTS, *(NO_TEXTS if wild else [])])} if rng.random() < 0.6 else {}
    _judge_writing(rng, judge, partial(write_crowd_report, model), settings, wild)


def _judge_writing(rng: Rng, judge: Judge, write: Callable[..., Any], settings: dict[str, Any], wild: bool) -> None:
    """A whole page or nothing, in its own folder, and no text that runs."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        asked = _picked(rng, [path, str(path), path, path, *([folder, *NO_PATHS] if wild else [])])
        written = judge.call(write.func.__name__, write, asked, **settings)  # type: ignore[attr-defined]
        there = list(Path(folder).rglob("*"))
        if there != ([path] if written is not None else []):
            judge.faults.append(f"{there} is left in the folder")
        if written is not None and "<script>alert" in path.read_text():
            judge.faults.append("a title runs in the page")


def _saving(rng: Rng, judge: Judge, wild: bool) -> None:
    """A model that is saved is loaded as it was, or nothing is left."""
    models = [*catalogue.MODELS, *catalogue.VARIANTS, *catalogue.OF_OTHER_ROWS]
    estimator = clone(_picked(rng, models).estimator)
    model = _picked(rng, [estimator, *([None, 3, "x", {}, lambda: 0] if wild else [])])
    if rng.random() < 0.3:
        model = _mixture(rng, judge, wild)[0] or model
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.latentviews"
        asked = _picked(rng, [path, str(path), path, path, *([folder, *NO_PATHS] if wild else [])])
        judge.call("save", save, model, asked)
        if path.exists():
            again = judge.call("load", load, asked)
            if again is not None and repr(again) != repr(model):
                judge.faults.append("load gives another model")
        if list(Path(folder).rglob("*")) not in ([], [path]):
            judge.faults.append("save leaves something else")


def _loading(rng: Rng, judge: Judge, wild: bool) -> None:
    """A path that may lead to no model."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.latentviews"
        path.write_bytes(rng.bytes(int(rng.integers(0, 200))))
        judge.call("load", load, _picked(rng, [path, str(path), folder, *NO_PATHS]))


CELLS = ["1", "2.5", "-3e4", "0", "NA", "", "nan", "inf", "-inf", "1e400", "0x1F", "1,5", "1_000", " 7 ", "yes", "ä漢"]
ODD_CELLS = ['"a', '"a,b"', "'x'", "\x00", "\ufeff", "\r", "\t", ";", "|", "#", "2024-01-01", "True", "1" * 400, "=1+1"]
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "latin-1", "cp1252"]


def _text_table(rng: Rng, wild: bool) -> bytes:
    """A table of text as people and programs write them."""
    n, d = int(rng.integers(0 if wild else 1, 12)), int(rng.integers(1, 5))
    cells = CELLS[:5] if rng.random() < 0.5 else CELLS + (ODD_CELLS if wild else [])
    rows = [[_picked(rng, cells) for _ in range(d)] for _ in range(n)]
    if wild and rng.random() < 0.3 and rows:
        rows[-1] = rows[-1][: int(rng.integers(0, d + 1))]
    head = [_picked(rng, ["a", "b b", "", "ä", "1", "x" * 99]) + str(j) * (rng.random() < 0.8) for j in range(d)]
    between, end = _picked(rng, [",", ";", "\t", "|", " "]), _picked(rng, ["\n", "\r\n", "\r"])
    lines = [between.join(row) for row in [head, *rows]][int(rng.random() < 0.2) :]
    return (end.join(lines) + end * (rng.random() < 0.8)).encode(_picked(rng, ENCODINGS), "replace")


def _reading(rng: Rng, judge: Judge, wild: bool, *, piecewise: bool) -> None:
    """A table of text, all at once or a piece at a time: finite or missing numbers, columns with names."""
    options: dict[str, tuple[list[Any], list[Any]]] = {
        "columns": ([None], [["a"], "a", [0], 3, [], ["a", "a"]]),
        "exclude": ([()], [["a"], "a", 3]),
        "delimiter": ([None, ",", ";"], ["", "ab", 3, "\n"]),
        "header": ([None, True, False], ["x", 3]),
        **({} if piecewise else {"missing": ([(), ("NA",)], [3, "NA", [1]]), "words": ([()], [["a0"], "a", 3])}),
        **({} if piecewise else {"transform": (["auto", "none"], ["x", None]), "cofactor": ([150.0, 5], [0, "x", -1])}),
    }
    chosen = {
        name: _picked(rng, [*proper, *(improper if wild else [])])
        for name, (proper, improper) in options.items()
        if rng.random() < 0.3
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / _picked(rng, ["t.csv", "t.tsv", "t.txt", "t", "t.CSV", *(["t.npy", "t.fcs"] * wild)])
        path.write_bytes(_text_table(rng, wild))
        asked = _picked(rng, [path, str(path), path, path, *([folder, *NO_PATHS] if wild else [])])
        if piecewise:
            judge.call("open_table", lambda: sum(len(piece) for piece in open_table(asked, **chosen)))
            return
        table = judge.call("read_table", read_table, asked, **chosen)
    if table is not None:
        values = table.values
        if values.ndim != 2 or values.shape[1] != len(table.columns) or values.dtype.kind != "f":
            judge.faults.append(f"read_table gives {values.dtype} of shape {values.shape}")


def _labels(rng: Rng, judge: Judge, wild: bool) -> None:
    """Classes of rows in a file, as many lines as rows."""
    n = int(rng.integers(1, 20))
    posteriors = rng.dirichlet(np.ones(3), size=n)
    labels = _picked(rng, [posteriors.argmax(axis=1), *([None, "x", [0], np.full(n, np.nan)] if wild else [])])
    posteriors = _picked(rng, [posteriors, *([None, posteriors[:1], posteriors[:, 0]] if wild else [])])
    kind = _picked(rng, [None, "csv", *(["x", 3] if wild else [])])
    noise = _picked(rng, [None, rng.random(n), *(["x", [0.5]] if wild else [])])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / _picked(rng, ["l.csv", "l.tsv", "l.parquet", "l.npy", *(["l.x", "l"] * wild)])
        asked = _picked(rng, [path, str(path), path, *([folder, *NO_PATHS] if wild else [])])
        refused = len(judge.refusals)
        judge.call("write_labels", write_labels, asked, labels, posteriors, kind, noise)
        if path.suffix == ".csv" and path.exists() and len(judge.refusals) == refused:
            written = len(pd.read_csv(path))
            if written != n:
                judge.faults.append(f"write_labels writes {written} of {n} rows")


NO_DATA = ["", "dlbcl", "x/../y", "dlbcl_001", "geyser", 3, None, ["a"]]


def _data_set(function: Callable[..., Any], rng: Rng, judge: Judge, wild: bool) -> None:
    """A name, and a folder that does not hold the data."""
    with tempfile.TemporaryDirectory() as folder:
        where = _picked(rng, [folder, Path(folder), folder + "/none", *([3, os.devnull] if wild else [])])
        judge.call(function.__name__, function, _picked(rng, NO_DATA), where)


def _samples(rng: Rng, judge: Judge, wild: bool) -> None:
    """A collection, known or not."""
    found = judge.call("flowcap_samples", flowcap_samples, _picked(rng, ["dlbcl", "gvhd", *NO_DATA]))
    if found is not None and not all(isinstance(name, str) for name in found):
        judge.faults.append(f"flowcap_samples gives {found}")


OUTPUTS: dict[str, Callable[[Rng, Judge, bool], None]] = {
    "diagnose": _diagnosis,
    "write_report": _report,
    "write_crowd_report": _crowd_report,
    "save": _saving,
    "load": _loading,
    "read_table": partial(_reading, piecewise=False),
    "open_table": partial(_reading, piecewise=True),
    "write_labels": _labels,
    "load_flowcap": partial(_data_set, load_flowcap),
    "load_series": partial(_data_set, load_series),
    "flowcap_samples": _samples,
}
