"""One hostile fit of an estimator whose rows are no table of real numbers: answers of workers, bags, graphs."""

import zlib
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import BaseEstimator, clone

import catalogue
from latentviews.report.communities import communities_page
from latentviews.report.topics import topics_page

from .parameters import with_parameters
from .tables import Makers, hostile_table, made
from .verdicts import Judge

Rng = np.random.Generator

# ---------------------------------------------------------------------------------------------------------- answers


def _asked(rng: Rng, n: int) -> list[tuple[Any, Any, Any]]:
    """Answers of workers who are right in three of four cases, two to five on a task."""
    truth = rng.integers(0, 3, size=n)
    return [
        (task, int(worker), int(truth[task]) if rng.random() < 0.75 else int(rng.integers(3)))
        for task in range(n)
        for worker in rng.choice(7, size=rng.integers(2, 6), replace=False)
    ]


def _number(value: Any) -> int:
    """A number for anything, the same in every process."""
    return zlib.crc32(repr(value).encode())


def _as_categories(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame of categoricals; columns of lists, which cannot be, as they are."""
    lists = [name for name in frame if frame[name].map(lambda value: isinstance(value, list)).any()]
    return frame.astype(dict.fromkeys(frame.columns.difference(lists), "category"))


CROWDS: Makers = {
    "workers": _asked,
    "one worker": lambda rng, n: [(task, "ann", int(rng.integers(2))) for task in range(n)],
    "a worker per answer": lambda rng, n: [(i // 3, i, int(rng.integers(2))) for i in range(3 * n)],
    "one task": lambda rng, n: [(0, worker, int(rng.integers(2))) for worker in range(n)],
    "one label": lambda rng, n: [(i // 3, i % 3, "yes") for i in range(3 * n)],
    "a label per answer": lambda rng, n: [(i // 3, i % 3, i) for i in range(min(3 * n, 90))],
    "the same answer again": lambda rng, n: [(0, 0, "yes")] * n,
    "spammers": lambda rng, n: [(i // 4, i % 4, i % 4 % 2) for i in range(4 * n)],
    "opposites": lambda rng, n: [(i // 4, i % 4, (i // 4 + i % 2) % 2) for i in range(4 * n)],
    "rare label": lambda rng, n: [(i // 3, i % 3, int(i < 2)) for i in range(3 * n)],
}
ANSWER_MISHAPS: Makers = {
    "words": lambda rng, rows: [tuple(f"{value}é" for value in row) for row in rows],
    "missing labels": lambda rng, rows: [(t, w, None if rng.random() < 0.3 else label) for t, w, label in rows],
    "NaN labels": lambda rng, rows: [(t, w, np.nan if rng.random() < 0.3 else label) for t, w, label in rows],
    "huge numbers": lambda rng, rows: [(_number(t) * 2**30, f"{w}", label) for t, w, label in rows],
    "shuffled": lambda rng, rows: [rows[int(i)] for i in rng.permutation(len(rows))],
    "twice": lambda rng, rows: [*rows, *rows],
    "fractions": lambda rng, rows: [(t, w, _number(label) % 5 / 3) for t, w, label in rows],
}
ANSWER_ACCIDENTS: Makers = {
    "mixed kinds": lambda rng, rows: [(t, w, label if rng.random() < 0.5 else str(label)) for t, w, label in rows],
    "missing workers": lambda rng, rows: [(t, None if rng.random() < 0.3 else w, label) for t, w, label in rows],
    "lists": lambda rng, rows: [(t, w, [label]) for t, w, label in rows],
    "infinite": lambda rng, rows: [(t, w, np.inf) for t, w, _ in rows],
    "no labels": lambda rng, rows: [(t, w, None) for t, w, _ in rows],
}
ANSWER_FORMS: Makers = {
    "frame": lambda rng, rows: pd.DataFrame(rows, columns=["task", "worker", "label"]),
    "nullable frame": lambda rng, rows: pd.DataFrame(rows, columns=["task", "worker", "label"]).convert_dtypes(),
    "categories": lambda rng, rows: _as_categories(pd.DataFrame(rows, columns=["task", "worker", "label"])),
    "tuple": lambda rng, rows: tuple(list(column) for column in zip(*rows, strict=True)),
    "objects": lambda rng, rows: pd.DataFrame(rows).to_numpy(dtype=object),
    "other names": lambda rng, rows: pd.DataFrame(rows, columns=["label", "t", "w"]),
}
ANSWER_WRONG_FORMS: Makers = {
    "two columns": lambda rng, rows: pd.DataFrame(rows).iloc[:, :2],
    "no rows": lambda rng, rows: pd.DataFrame(rows, columns=["task", "worker", "label"]).iloc[:0],
    "unequal": lambda rng, rows: ([1], [1, 2], [1]),
    "strings": lambda rng, rows: np.array([[str(value) for value in row] for row in rows]),
    "nothing": lambda rng, rows: None,
    "dates": lambda rng, rows: tuple(np.arange(len(rows)).astype("datetime64[s]") for _ in range(3)),
}


def answers_case(rng: Rng, judge: Judge, estimator: BaseEstimator, *, wild: bool) -> str:
    """A crowd, and every answer about it."""
    words, given = made(rng, wild, CROWDS, ANSWER_MISHAPS, ANSWER_ACCIDENTS, ANSWER_FORMS, ANSWER_WRONG_FORMS)
    changed = with_parameters(rng, estimator, (30, 3), wild=wild)
    weights = _weights_of(rng, given) if rng.random() < 0.2 else None
    model = judge.call("fit", estimator.fit, given, sample_weight=weights)
    if model is not None:
        for name in ("posteriors_", "weights_", "confusion_", "crowd_confusion_"):
            judge.faults.shares(name, getattr(model, name))
        for name in ("spammer_probability_", "information_", "pooling_", "evidence_"):
            judge.faults.numbers(name, getattr(model, name))
        found = judge.call("predict_proba", model.predict_proba, given)
        judge.faults.shares("predict_proba", found) if found is not None else None
        judge.call("predict", model.predict, given)
        others = judge.call("predict_proba(others)", model.predict_proba, ([1, 1], ["?", 0], [model.classes_[0]] * 2))
        judge.faults.shares("predict_proba(others)", others) if others is not None else None
    return f"{words}; {changed}{'; weights' if weights is not None else ''}"


def _weights_of(rng: Rng, given: Any) -> Any:
    n = len(given[0]) if isinstance(given, tuple) else len(given) if given is not None else 3
    return [rng.random(n), 10.0 ** rng.uniform(-200, 100, n), np.zeros(n), np.ones(n + 1)][int(rng.integers(4))]


# ------------------------------------------------------------------------------------------------------------- bags


def _topics(rng: Rng, n: int) -> np.ndarray:
    chances = rng.dirichlet(np.full(2, 0.4), size=n) @ rng.dirichlet(np.full(12, 0.3), size=2)
    return rng.poisson(20 * chances).astype(float)


BAGS: Makers = {
    "topics": _topics,
    "noise": lambda rng, n: rng.poisson(1.0, size=(n, 8)).astype(float),
    "sparse": lambda rng, n: rng.poisson(0.05, size=(n, 40)).astype(float),
    "one word each": lambda rng, n: np.eye(12)[rng.integers(12, size=n)],
    "two words each": lambda rng, n: np.eye(6)[rng.integers(6, size=n)] + np.eye(6)[rng.integers(6, size=n)],
    "one word": lambda rng, n: rng.poisson(3.0, size=(n, 1)).astype(float),
    "two words": lambda rng, n: rng.poisson(3.0, size=(n, 2)).astype(float),
    "alike": lambda rng, n: np.tile(rng.poisson(3.0, size=(1, 7)).astype(float), (n, 1)),
    "long and short": lambda rng, n: np.floor(10.0 ** rng.uniform(-1, 7, size=(n, 1)) * rng.random((n, 9))),
    "fractions": lambda rng, n: rng.random((n, 9)),
}
BAG_MISHAPS: Makers = {
    "empty documents": lambda rng, x: x * (rng.random((len(x), 1)) < 0.7),
    "words of nobody": lambda rng, x: x * (rng.random((1, x.shape[1])) < 0.7),
    "copied words": lambda rng, x: np.concatenate([x, x], axis=1),
    "an outlier": lambda rng, x: np.where(np.arange(x.size).reshape(x.shape) == 0, 1e6, x),
    "tiny counts": lambda rng, x: x * 1e-12,
    "large counts": lambda rng, x: x * 1e9,
}
BAG_ACCIDENTS: Makers = {
    "empty": lambda rng, x: 0 * x,
    "negative": lambda rng, x: x - 1,
    "NaN": lambda rng, x: np.where(rng.random(x.shape) < 0.1, np.nan, x),
    "infinite": lambda rng, x: np.where(rng.random(x.shape) < 0.1, np.inf, x),
    "huge counts": lambda rng, x: x * 1e200,
    "vanishing counts": lambda rng, x: x * 1e-300,
}
BAG_FORMS: Makers = {
    "array": lambda rng, x: x,
    "integers": lambda rng, x: np.nan_to_num(x, posinf=0).clip(-1e9, 1e9).astype(int),
    "csr": lambda rng, x: sparse.csr_array(x),
    "coo": lambda rng, x: sparse.coo_matrix(x),
    "frame": lambda rng, x: pd.DataFrame(x, columns=[f"w{j}" for j in range(x.shape[1])]),
    "float32": lambda rng, x: x.astype(np.float32),
}
BAG_WRONG_FORMS: Makers = {
    "words": lambda rng, x: [["some", "words"]] * len(x),
    "no rows": lambda rng, x: x[:0],
    "one row": lambda rng, x: x[0],
    "nothing": lambda rng, x: None,
    "booleans": lambda rng, x: x > 0,
}


def bags_case(rng: Rng, judge: Judge, estimator: BaseEstimator, *, wild: bool) -> str:
    """Counts of words; or, in a third of the cases, draws in groups or views of a hostile table."""
    door = str(rng.choice(["words", "words", "words", "words", "groups", "views"]))
    arguments: dict[str, Any] = {}
    if door == "words":
        with np.errstate(all="ignore"):
            words, given = made(rng, wild, BAGS, BAG_MISHAPS, BAG_ACCIDENTS, BAG_FORMS, BAG_WRONG_FORMS)
        shape = (30, 6)
    else:
        table = hostile_table(rng, wild=wild, missing=False)
        words, given, shape = table.words, table.given, table.rows.shape
        if door == "groups":
            arguments["groups"] = rng.integers(0, max(len(table.rows) // 4, 1), size=len(table.rows) + (wild and 1))
        else:
            estimator.set_params(views=[[j] for j in range(shape[1])])
    changed = with_parameters(rng, estimator, shape, wild=wild)
    method = "partial_fit" if door == "words" and rng.random() < 0.2 else "fit"
    model = judge.call(method, getattr(estimator, method), given, **arguments)
    if model is not None:
        judge.faults.shares("weights_", model.weights_)
        judge.faults.numbers("concentration_", model.concentration_)
        found = judge.call("transform", model.transform, given, **arguments)
        judge.faults.shares("transform", found) if found is not None else None
        if isinstance(model.components_, np.ndarray):
            judge.faults.shares("components_", model.components_)
            said = judge.call("perplexity", model.perplexity, given)
            judge.faults.numbers("perplexity", said) if said is not None else None
            judge.call("top_words", model.top_words)
        judge.call("report", topics_page, model, given, None, None, None, None)
    return f"{door}; {words}; {changed}; {method}"


# ------------------------------------------------------------------------------------------------------------ graphs


def _random_graph(rng: Rng, n: int) -> np.ndarray:
    return _symmetric(rng.random((n, n)) < rng.choice([0.05, 0.2, 0.6]))


def _symmetric(links: np.ndarray) -> np.ndarray:
    upper = np.triu(links, 1)
    return (upper | upper.T).astype(float)


def _of_networkx(graph: Any) -> np.ndarray:
    return nx.to_numpy_array(graph) if len(graph) else np.zeros((0, 0))


GRAPHS: Makers = {
    "blocks": lambda rng, n: _symmetric(
        rng.random((n, n)) < np.where(np.arange(n)[:, None] % 3 == np.arange(n) % 3, 0.6, 0.05)
    ),
    "random": _random_graph,
    "complete": lambda rng, n: 1.0 - np.eye(n),
    "star": lambda rng, n: _of_networkx(nx.star_graph(n - 1)),
    "path": lambda rng, n: _of_networkx(nx.path_graph(n)),
    "cycle": lambda rng, n: _of_networkx(nx.cycle_graph(n)) * (1 - np.eye(n)),
    "two parts": lambda rng, n: _of_networkx(nx.complete_bipartite_graph(n // 2, n - n // 2)),
    "pairs": lambda rng, n: _symmetric(np.arange(n)[:, None] // 2 == np.arange(n) // 2),
    "cliques": lambda rng, n: _symmetric(np.arange(n)[:, None] // 5 == np.arange(n) // 5),
    "hubs": lambda rng, n: _symmetric(np.minimum.outer(np.arange(n), np.arange(n)) < 2),
}
GRAPH_MISHAPS: Makers = {
    "nodes without links": lambda rng, g: g * np.outer(*2 * [rng.random(len(g)) < 0.7]),
    "links lost": lambda rng, g: g * _symmetric(rng.random(g.shape) < 0.5),
    "links of chance": lambda rng, g: np.maximum(g, _symmetric(rng.random(g.shape) < 0.02)),
}
GRAPH_ACCIDENTS: Makers = {
    "directed": lambda rng, g: np.triu(g),
    "of itself": lambda rng, g: g + np.eye(len(g)),
    "weights": lambda rng, g: g * 0.5,
    "negative": lambda rng, g: -g,
    "NaN": lambda rng, g: np.where(rng.random(g.shape) < 0.1, np.nan, g),
    "no links": lambda rng, g: 0 * g,
}
GRAPH_FORMS: Makers = {
    "array": lambda rng, g: g,
    "booleans": lambda rng, g: g != 0,
    "csr": lambda rng, g: sparse.csr_array(g),
    "coo": lambda rng, g: sparse.coo_matrix(g),
    "frame": lambda rng, g: pd.DataFrame(g, index=[f"n{j}" for j in range(len(g))]),
    "networkx": lambda rng, g: nx.relabel_nodes(nx.from_numpy_array(np.nan_to_num(g)), lambda node: f"n{node}"),
}
GRAPH_WRONG_FORMS: Makers = {
    "not square": lambda rng, g: g[:, : len(g) // 2],
    "no nodes": lambda rng, g: nx.Graph(),
    "directed graph": lambda rng, g: nx.DiGraph(nx.from_numpy_array(np.nan_to_num(g))),
    "edges": lambda rng, g: np.argwhere(g),
    "text": lambda rng, g: "a graph",
    "three axes": lambda rng, g: g[None],
    "nothing": lambda rng, g: None,
}


def graph_case(rng: Rng, judge: Judge, estimator: BaseEstimator, *, wild: bool) -> str:
    """A graph, and what is said of its nodes and of new ones."""
    words, given = made(rng, wild, GRAPHS, GRAPH_MISHAPS, GRAPH_ACCIDENTS, GRAPH_FORMS, GRAPH_WRONG_FORMS)
    changed = with_parameters(rng, estimator, (30, 30), wild=wild)
    model = judge.call("fit", estimator.fit, given)
    if model is not None:
        for name in ("memberships_", "weights_"):
            judge.faults.shares(name, getattr(model, name))
        for name in ("connectivity_", "concentration_", "spectrum_"):
            judge.faults.numbers(name, getattr(model, name))
        new = sparse.random_array((5, len(model.nodes_)), density=0.3, rng=rng)
        for name, links in {"new": (new > 0).astype(float), "none": 0 * new}.items():
            found = judge.call(f"transform({name})", model.transform, links)
            judge.faults.shares(f"transform({name})", found) if found is not None else None
        judge.call("report", communities_page, model, None, None, None)
    return f"{words}; {changed}"


CASES: dict[str, Callable[..., str]] = {
    "CrowdLabels": answers_case,
    "TopicModel": bags_case,
    "CommunityModel": graph_case,
}


def families() -> dict[str, list[BaseEstimator]]:
    """The estimators of the catalogue whose rows are no table of real numbers."""
    found: dict[str, list[BaseEstimator]] = {}
    for model in catalogue.OF_OTHER_ROWS:
        found.setdefault(type(model.estimator).__name__, []).append(model.estimator)
    return found


def other_case(family: str, rng: Rng, judge: Judge, *, wild: bool) -> str:
    """One fit, judged; gives it in words."""
    options = families()[family]
    estimator = clone(options[int(rng.integers(len(options)))]).set_params(random_state=0)
    return f"{family}; {CASES[family](rng, judge, estimator, wild=wild)}"
