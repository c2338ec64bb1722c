"""One hostile call of what judges a model, writes about it, saves it, or reads tables of text and data sets."""

import gzip
import os
import pickle
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import catalogue
from latentviews import CrowdLabels, LatentClass, MultiViewMixture, TopicModel, diagnose, load, save
from latentviews.datasets import flowcap_samples, load_flowcap, load_series
from latentviews.io import open_table, read_table, write_labels
from latentviews.report import write_crowd_report, write_report

from . import damage
from .asking import Offers, asked, picked
from .pictures import NAMES, fitted_as_catalogued, refitted
from .tables import hostile_table
from .verdicts import Judge

Rng = np.random.Generator
TEXTS = [None, *NAMES, "<script>alert(1)</script>", "a" * 5000, 'quote"d']
NO_TEXTS = [3, ["a"], b"bytes", object()]
NO_PATHS = [None, 3, "", b"\x00", "a\x00b", ["a"], "no/such/folder/there.x"]
NO_MODELS = [None, 3, "model", {}, MultiViewMixture, MultiViewMixture(2), [1, 2]]


def _mixture(rng: Rng, judge: Judge) -> tuple[Any, Any, int]:
    """A quick mixture of a hostile table, its rows in some form, and how many columns; no model where it is refused."""
    table = hostile_table(rng, wild=False, missing=bool(rng.random() < 0.2), n_columns=(3, 6))
    given, width = table.given if hasattr(table.given, "__array__") else table.rows, table.rows.shape[1]
    if rng.random() < 0.2:
        given = pd.DataFrame(table.rows, columns=[picked(rng, NAMES) + str(j) for j in range(width)])
    model = MultiViewMixture(int(rng.integers(1, 4)), polish=None, random_state=0)
    return judge.call("fit", model.fit, given), given, width


def _discrete(rng: Rng, judge: Judge) -> tuple[Any, Any, int]:
    """A model of the catalogue that has a report of its own, rows for it, and how many columns these have."""
    kind = picked(rng, [LatentClass, TopicModel])
    width = fitted_as_catalogued(kind).n_features_in_
    counts = rng.poisson(1.0, size=(30, width))
    return refitted(rng, judge, kind, counts), counts, width


def _others(model: Any) -> list[Any]:
    """What is no model to be judged or written about: others of the catalogue among it."""
    kinds = [type(one.estimator) for one in [*catalogue.MODELS, *catalogue.OF_OTHER_ROWS]]
    return [*NO_MODELS, *(fitted_as_catalogued(kind) for kind in kinds[:6] if kind is not type(model))]


def _diagnosis(rng: Rng, judge: Judge, wild: bool) -> None:
    model, rows, _ = _mixture(rng, judge)
    if model is None:
        return
    offers: Offers = {
        "model": ([model], _others(model)),
        "X": ([rows], [None, "x", 3, np.asarray(rows)[:, :1], np.asarray(rows)[:0]]),
        "n_permutations": ([1, 19], [0, -1, "x", 2.5]),
        "random_state": ([0], ["x", -1]),
    }
    found = judge.call("diagnose", lambda: diagnose(**asked(rng, offers, offers, wild=wild)))
    if found is not None:
        told = judge.call("diagnose: findings", lambda: [one.text for one in found.findings])
        if not all(text and "nan" not in text.lower().split() for text in told or []):
            judge.faults.append(f"diagnose says {told}")


def _written(rng: Rng, judge: Judge, write: Callable[..., Any], offers: Offers, needed: Any, *, wild: bool) -> None:
    """A whole page or nothing, in its own folder, and no text that runs."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        offers = {**offers, "path": ([path, str(path)], [folder, *NO_PATHS])}
        told = asked(rng, offers, [*needed, "path"], wild=wild)
        written = judge.call(write.__name__, write, **told)
        there = list(Path(folder).rglob("*"))
        if there != ([path] if written is not None else []):
            judge.faults.append(f"{there} is left in the folder")
        if written is not None:
            text = path.read_text()
            if "<script>alert" in text or not text.rstrip().endswith("</html>"):
                judge.faults.append("the page is cut short, or a title runs in it")


def _report(rng: Rng, judge: Judge, wild: bool) -> None:
    model, rows, width = picked(rng, [_mixture, _mixture, _discrete])(rng, judge)
    if model is None:
        return
    offers: Offers = {
        "model": ([model], _others(model)),
        "X": ([rows], [None, "x", 3, np.asarray(rows)[:, :1]]),
        **dict.fromkeys(("source", "title", "saved"), (TEXTS, NO_TEXTS)),
    }
    if not hasattr(rows, "columns"):
        names = [picked(rng, NAMES) + str(j) for j in range(width)]
        offers["columns"] = ([None, names, tuple(names)], [names[:1], "x", 3, b"abc"])
    _written(rng, judge, write_report, offers, ["model", "X"], wild=wild)


def _crowd_report(rng: Rng, judge: Judge, wild: bool) -> None:
    tasks = [(task, worker, picked(rng, NAMES)) for task in range(int(rng.integers(1, 9))) for worker in range(3)]
    model = judge.call("fit", CrowdLabels().fit, picked(rng, [tasks, catalogue.ANSWERS]))
    if model is not None:
        texts: Offers = dict.fromkeys(("source", "title", "saved"), (TEXTS, NO_TEXTS))
        offers: Offers = {"model": ([model], _others(model)), **texts}
        _written(rng, judge, write_crowd_report, offers, ["model"], wild=wild)


def _saving(rng: Rng, judge: Judge, wild: bool) -> None:
    """A model that is saved answers as it did, or nothing is left."""
    kinds = [type(one.estimator) for one in [*catalogue.MODELS, *catalogue.OF_OTHER_ROWS]]
    model, rows = fitted_as_catalogued(picked(rng, kinds)), None
    if rng.random() < 0.4:
        found, given, _ = _mixture(rng, judge)
        model, rows = (model, None) if found is None else (found, given)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.latentviews"
        offers: Offers = {
            "model": ([model], [None, 3, "x", lambda: 0, np.eye(2), object()]),
            "path": ([path, str(path)], [folder, *NO_PATHS]),
        }
        told = asked(rng, offers, offers, wild=wild)
        judge.call("save", save, told["model"], told["path"])
        if list(Path(folder).rglob("*")) not in ([], [path]):
            judge.faults.append("save leaves something else")
        again = judge.call("load", load, path) if path.exists() else None
    if again is not None and isinstance(again, MultiViewMixture) and again is not model and rows is not None:
        if not np.array_equal(model.predict_proba(rows), again.predict_proba(rows), equal_nan=True):
            judge.faults.append("load answers otherwise")
    elif again is not None and (repr(again) != repr(model) or set(vars(again)) != set(vars(model))):
        judge.faults.append("load gives another model")


def _loading(rng: Rng, judge: Judge, wild: bool) -> None:
    """A damaged model, or a path that leads to none."""
    if wild:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.latentviews"
            path.write_bytes(picked(rng, [b"", b"PK\x03\x04", pickle.dumps([1]), rng.bytes(int(rng.integers(1, 200)))]))
            judge.call("load", load, picked(rng, [path, str(path), folder, *NO_PATHS]))
        return
    _damaged(rng, judge, ["model", "model-inside"])


def _damaged(rng: Rng, judge: Judge, families: list[str]) -> None:
    _, found = damage.run_case(picked(rng, families), [int(rng.integers(2**31))])
    judge.faults.extend(found.faults)


CELLS = ["1", "2.5", "-3e4", "0", "NA", "", "nan", "-7", "12", "1e10", "inf", "1e400", "0x1F", "1,5", "1_000", "yes"]
ODD_CELLS = ['"a', '"a,b"', "'x'", "\x00", "\ufeff", "\r", "\t", ";", "|", "#", "2024-01-01", "1" * 400, "=1+1", "ä漢"]
ENCODINGS = ["utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1", "cp1252"]


def _text_table(rng: Rng, wild: bool) -> bytes:
    """A table of text as people and programs write them."""
    n, d = int(rng.integers(0 if wild else 1, 12)), int(rng.integers(1, 5))
    cells = CELLS[:9] if rng.random() < 0.6 else CELLS + (ODD_CELLS if wild else [])
    rows = [[picked(rng, cells) for _ in range(d)] for _ in range(n)]
    if wild and rng.random() < 0.3 and rows:
        rows[-1] = rows[-1][: int(rng.integers(0, d + 1))]
    head = [picked(rng, ["a", "b b", "c", "ä", "x" * 99]) + str(j) for j in range(d)]
    between, end = picked(rng, [",", ";", "\t", "|", " "]), picked(rng, ["\n", "\r\n", "\r"])
    lines = [between.join(row) for row in [head, *rows]][int(rng.random() < 0.2) :]
    return (end.join(lines) + end * (rng.random() < 0.8)).encode(picked(rng, ENCODINGS), "replace")


READING: Offers = {
    "columns": ([None], [["a"], "a", [0], 3, [], ["a", "a"]]),
    "exclude": ([(), []], [["nope"], "a", 3]),
    "delimiter": ([None], ["", "ab", 3, "\n"]),
    "header": ([None, True, np.True_], ["x", 3, []]),
}
OF_TABLES: Offers = {
    "missing": ([(), ("NA",), ["-7", "none"]], [3, "NA", [1]]),
    "words": ([(), ["a0"]], ["a", 3, [1]]),
    "transform": (["auto", "none", "arcsinh"], ["x", None, 3]),
    "cofactor": ([150.0, 5], [0, "x", -1, np.nan]),
    "reading": ([None], ["x", 3, {}]),
}


def _reading(rng: Rng, judge: Judge, wild: bool) -> None:
    """A table of text, whole and a piece at a time: the same numbers, none infinite, under names of their own."""
    if rng.random() < 0.2:
        _damaged(rng, judge, list(damage.WRITERS))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / picked(rng, ["t.csv", "t.tsv", "t.txt", "t", "t.CSV", *(["t.npy", "t.fcs"] * wild)])
        path.write_bytes(_text_table(rng, wild))
        offers = {**READING, "path": ([path, str(path)], [folder, *NO_PATHS])}
        told = asked(rng, offers, ["path"], wild=wild and bool(rng.random() < 0.5))
        pieces = judge.call("open_table", lambda: [values for _, values in open_table(**told).raw_pieces()])
        alike = judge.call("read_table", lambda: read_table(**told))
        offers = {**READING, **OF_TABLES, "path": ([path], NO_PATHS)}
        table = judge.call("read_table", lambda: read_table(**asked(rng, offers, ["path"], wild=wild)))
    if pieces is not None and alike is not None and not np.array_equal(np.vstack(pieces), alike.values, equal_nan=True):
        judge.faults.append("open_table reads other numbers than read_table")
    for one in (alike, table):
        if one is not None:
            _judge_table(judge, one)


def _judge_table(judge: Judge, table: Any) -> None:
    values = table.values
    if values.ndim != 2 or values.shape[1] != len(set(table.columns)) or not len(values):
        judge.faults.append(f"read_table gives {values.dtype} of shape {values.shape} for {table.columns}")
    if values.dtype.kind != "f" or np.isinf(values).any():
        judge.faults.append("read_table gives what is neither a number nor missing")


def _labels(rng: Rng, judge: Judge, wild: bool) -> None:
    """Classes of rows in a file, a line for every row, or the file as it was."""
    n, k = int(rng.integers(1, 20)), int(rng.integers(1, 4))
    shares = rng.dirichlet(np.ones(k), size=n)
    labels = shares.argmax(axis=1)
    named = np.array(["no", "yes", "ä b"])[labels]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / picked(rng, ["l.csv", "l.tsv", "l.parquet", "l.PQ", "l"])
        path.write_text("before")
        offers: Offers = {
            "path": ([path, str(path)], [folder, *NO_PATHS]),
            "labels": (
                [labels, labels.tolist(), labels.astype(">i2"), named, pd.Series(named), labels == 0],
                [None, "x", [*labels, 0], labels[:, None]],
            ),
            "posteriors": (
                [shares, shares.astype(np.float16), shares.tolist(), pd.DataFrame(shares).convert_dtypes()],
                [None, [], shares[:, 0], np.vstack([shares, shares]), shares * np.nan * 1j, np.full((n, k), "a")],
            ),
            "kind": ([None, "csv", "parquet"], ["x", 3]),
            "noise": ([None, rng.random(n)], ["x", [0.5] * (n + 1)]),
        }
        told, refused = asked(rng, offers, ["path", "labels", "posteriors"], wild=wild), len(judge.refusals)
        judge.call("write_labels", lambda: write_labels(**told))
        if len(judge.refusals) > refused:
            if path.read_text() != "before" or list(Path(folder).iterdir()) != [path]:
                judge.faults.append("write_labels leaves something where it refuses")
            return
        kind = told.get("kind") or ("parquet" if path.suffix in (".parquet", ".PQ") else "csv")
        written = judge.call("reading labels", pd.read_parquet if kind == "parquet" else pd.read_csv, path)
    if written is not None and (len(written) != n or written.isna().any(axis=None)):
        judge.faults.append(f"write_labels writes {written}")


def _data_set(function: Callable[..., Any], rng: Rng, judge: Judge, wild: bool) -> None:
    """A collection whose file is damaged or not there."""
    name, file = {
        load_series: ("geyser", "series/geyser_mass.csv.gz"),
        load_flowcap: ("dlbcl_001", "flowcap_dlbcl/dlbcl_001.csv.gz"),
    }[function]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / file
        path.parent.mkdir()
        if rng.random() < 0.9:
            text = b"waiting,duration\n" + b"\n".join(b"%d,%.1f" % (60 + 3 * i, i / 2) for i in range(9))
            path.write_bytes(gzip.compress(text))
            if rng.random() < 0.7:
                damage.damaged_file(rng, path)
        names = ["", "x/../y", 3, None, ["a"], "geyser\x00"]
        offers: Offers = {"name": ([name], names), "folder": ([folder, Path(folder)], [3, os.devnull, "a\x00"])}
        told = asked(rng, offers, offers, wild=wild)
        found = judge.call(function.__name__, function, told["name"], told["folder"])
    if found is not None:
        judge.faults.numbers(function.__name__, found.X)


def _samples(rng: Rng, judge: Judge, wild: bool) -> None:
    """A collection, known or not."""
    found = judge.call("flowcap_samples", flowcap_samples, picked(rng, ["dlbcl", "gvhd", "hsct", "DLBCL", "", 3, None]))
    if found is not None and not (found and all(isinstance(name, str) for name in found)):
        judge.faults.append(f"flowcap_samples gives {found}")


OUTPUTS: dict[str, Callable[[Rng, Judge, bool], None]] = {
    "diagnose": _diagnosis,
    "write_report": _report,
    "write_crowd_report": _crowd_report,
    "save": _saving,
    "load": _loading,
    "read_table": _reading,
    "open_table": _reading,
    "write_labels": _labels,
    "load_flowcap": partial(_data_set, load_flowcap),
    "load_series": partial(_data_set, load_series),
    "flowcap_samples": _samples,
}
