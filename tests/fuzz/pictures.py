"""One hostile call of a display: a fitted model of its kind, rows, and settings by chance."""

import inspect
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from matplotlib import pyplot
from sklearn.base import clone

import catalogue
from latentviews import two_sample_test
from latentviews.plot import WitnessDisplay

from .tables import hostile_table
from .verdicts import Judge

Rng = np.random.Generator
DRAWN = 0.05  # of the pictures are drawn to the end, which takes most of the time
NO_COUNTS = [0, -1, 2.5, "x", None, True]
OFFERS: dict[str, tuple[list[Any], list[Any]]] = {  # what a setting may be, and what it must not be
    "column": ([0, 1, -1], [99, "x", None, 1.5, True]),
    "columns": ([(0, 1), (2, 0)], [(0, 0), (0,), (0, 1, 2), 5, None, "ab", (0, 99), (0, "x")]),
    "given": ([None, {2: 0.0}, {2: 1e9}], [{0: 1.0}, {99: 0.0}, {2: np.nan}, {2: "x"}, 3]),
    "n_points": ([1, 50], NO_COUNTS),
    "resolution": ([2, 9], [*NO_COUNTS, 1]),
    "shares": ([(0.9, 0.5), [0.5]], [(0,), (1,), (2,), ("x",), "x", 0.5, None, (np.nan,)]),
    "horizon": ([1, 3], NO_COUNTS),
    "n_words": ([1, 3, 99], NO_COUNTS),
    "n_values": ([1, 5, 99], NO_COUNTS),
    "names": ([None], [["a"], "x", 5]),
    "null": ([None, 0.1, np.full(5, 0.1)], ["x", np.nan, [], -1.0, np.zeros((2, 2, 2)), object()]),
    "lengths": ([None], [[1], [0], "x", -1, [1.5]]),
    "random_state": ([0], ["x", -1, 1.5]),
    "curve_kwargs": ([None, {"alpha": 0.5}], ["x", 3]),
    "contour_kwargs": ([None, {"alpha": 0.5}], ["x", 3]),
    "ax": ([None], ["here", 5, []]),
}


def _picked(rng: Rng, values: list[Any]) -> Any:
    return values[int(rng.integers(len(values)))]


@cache
def fitted_as_catalogued(estimator: type) -> Any:
    """The model of the catalogue, fitted to its rows."""
    model = next(one for one in [*catalogue.MODELS, *catalogue.OF_OTHER_ROWS] if type(one.estimator) is estimator)
    return model.fit()


def _fitted(rng: Rng, judge: Judge, estimator: type, rows: np.ndarray) -> Any:
    """A model of its kind: of the catalogue's rows, or of others where that is quick."""
    model = fitted_as_catalogued(estimator)
    if rng.random() < 0.5 or not hasattr(model, "polish"):
        return model
    return judge.call("fit", clone(model).set_params(polish=None).fit, rows)


def _drawn(kind: Any, rng: Rng, judge: Judge, wild: bool) -> None:
    """A display of a fitted model."""
    estimator, _ = catalogue.DISPLAYS[kind]
    width = getattr(fitted_as_catalogued(estimator), "n_features_in_", 3)
    table = hostile_table(rng, wild=wild, missing=bool(rng.random() < 0.2), n_columns=(width, width + 1))
    model = _fitted(rng, judge, estimator, table.rows)
    if model is None:
        return
    told = _told(rng, kind.from_estimator, [table.given], [None, "x", 3, [], table.rows[:, :1], table.rows[0]], wild)
    _judge_picture(rng, judge, judge.call(kind.__name__, kind.from_estimator, model, **told))


def _told(rng: Rng, function: Any, rows: list[Any], no_rows: list[Any], wild: bool) -> dict[str, Any]:
    """Arguments by chance: all that are asked for, and some others."""
    told = {}
    for name, one in inspect.signature(function).parameters.items():
        proper, improper = (rows, no_rows) if name == "X" else OFFERS.get(name, ([], []))
        if (proper or improper) and (one.default is one.empty or rng.random() < 0.4):
            told[name] = _picked(rng, [*proper, *(improper if wild else [])])
    return told


def _witness(rng: Rng, judge: Judge, wild: bool) -> None:
    """A display of two samples."""
    table = hostile_table(rng, wild=wild, missing=False, n_columns=(1, 3))
    other = _picked(rng, [table.rows + 1, table.rows[: len(table.rows) // 2 + 1]])
    test = judge.call("two_sample_test", two_sample_test, table.given, other, n_permutations=19, random_state=0)
    if test is None:
        return
    odd = [None, "x", [], table.rows[:, :1], np.full((3, table.rows.shape[1]), np.nan), table.rows[:0]]
    first, second = (_picked(rng, [one, one, *(odd if wild else [])]) for one in (table.given, other))
    test = _picked(rng, [test, test, test, *([None, 3] if wild else [])])
    _judge_picture(rng, judge, judge.call("WitnessDisplay", lambda: WitnessDisplay(test, first, second).plot()))


def _judge_picture(rng: Rng, judge: Judge, display: Any) -> None:
    if display is not None and rng.random() < DRAWN:
        judge.call(f"{type(display).__name__}: drawing", display.figure_.canvas.draw)
    pyplot.close("all")


PICTURES: dict[str, Callable[[Rng, Judge, bool], None]] = {
    **{kind.__name__: partial(_drawn, kind) for kind in catalogue.DISPLAYS},
    "WitnessDisplay": _witness,
}
