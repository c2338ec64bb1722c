"""One hostile call of a display: a fitted model of its kind, rows, and settings by chance."""

import inspect
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot
from sklearn.base import clone

import catalogue
from latentviews import two_sample_test
from latentviews.plot import WitnessDisplay

from .asking import Offers, asked, picked
from .tables import hostile_table
from .verdicts import Judge

Rng = np.random.Generator
DRAWN = 0.1  # of the pictures are drawn to the end, which takes most of the time
QUICK = {
    "MultiViewMixture",
    "LowRankDensity",
    "ChangePoints",
    "DriftMonitor",
    "LatentClass",
}  # to fit
NAMES = ["a", "$x_$", "<b>&amp;", "ä漢\u202e", "\x00", "x" * 300, "", "{y}", "%s\\n", "$1-$2"]
NO_COUNTS = [-1, 2.5, "x", None, True]
OFFERS: Offers = {
    "column": ([0, 1, -1], [99, "x", None, 1.5, True]),
    "columns": ([(0, 1), [2, 0], np.array([1, 2])], [(0, 0), (0,), (0, 1, 2), 5, None, "ab", (0, 99), (0, "x")]),
    "given": ([None, {2: 0.0}, {2: 1e9}], [{0: 1.0}, {99: 0.0}, {2: np.nan}, {2: "x"}, 3]),
    "n_points": ([0, 1, 50], NO_COUNTS),
    "resolution": ([2, 9], [0, 1, -1, 2.5, "x"]),
    "shares": ([(0.9, 0.5), [0.5], np.arange(1, 9) / 9], [(0,), (1,), (2,), ("x",), "x", 0.5, None, (np.nan,), ()]),
    "horizon": ([1, 3], [0, *NO_COUNTS]),
    "n_words": ([1, 3, 99], [0, *NO_COUNTS]),
    "n_values": ([1, 5, 99], [0, *NO_COUNTS]),
    "names": ([None], [["a"], "x", 5]),
    "null": ([None, 0.1, np.full(5, 0.1)], ["x", np.nan, [], np.zeros((2, 2, 2)), object()]),
    "lengths": ([None], [[1], [0], "x", -1, [1.5]]),
    "random_state": ([0], ["x", -1, 1.5]),
    "curve_kwargs": ([None, {"alpha": 0.5}, {"c": "red"}], ["x", 3]),
    "contour_kwargs": ([None, {"alpha": 0.5}, {"levels": 3}, {"cmap": "Blues"}], ["x", 3]),
    "ax": ([None], ["here", 5, []]),
}


@cache
def fitted_as_catalogued(estimator: type) -> Any:
    """The model of the catalogue, fitted to its rows."""
    model = next(one for one in [*catalogue.MODELS, *catalogue.OF_OTHER_ROWS] if type(one.estimator) is estimator)
    return model.fit()


def refitted(rng: Rng, judge: Judge, estimator: type, rows: Any) -> Any:
    """A model of its kind: of the catalogue's rows, or of others where that is quick; None where they are refused."""
    model = fitted_as_catalogued(estimator)
    if rng.random() < 0.3 or estimator.__name__ not in QUICK:
        return model
    again = clone(model)
    return judge.call("fit", again.set_params(polish=None).fit if hasattr(again, "polish") else again.fit, rows)


def _drawn(kind: Any, rng: Rng, judge: Judge, wild: bool) -> None:
    """A display of a fitted model."""
    estimator, _ = catalogue.DISPLAYS[kind]
    width = getattr(fitted_as_catalogued(estimator), "n_features_in_", 3)
    table = hostile_table(rng, wild=False, missing=bool(rng.random() < 0.2), n_columns=(width, width + 1))
    rows = pd.DataFrame(table.rows, columns=_names(rng, width)) if rng.random() < 0.3 else table.given
    model = refitted(rng, judge, estimator, rows)
    if model is None:
        return
    known = inspect.signature(kind.from_estimator).parameters
    offers = {"X": ([rows], [None, "x", 3, [], table.rows[:, :1], table.rows[0]]), **OFFERS}
    offers = {name: offers[name] for name in known if name in offers}
    required = {name for name, one in known.items() if one.default is one.empty}
    others = [None, 3, "model", estimator, clone(model), fitted_as_catalogued(picked(rng, OTHERS)[0])]
    model = picked(rng, others) if wild and rng.random() < 0.1 else model
    told = asked(rng, offers, required & set(offers), wild=wild)
    _judge_picture(rng, judge, judge.call(kind.__name__, kind.from_estimator, model, **told))


OTHERS = list(catalogue.DISPLAYS.values())


def _names(rng: Rng, width: int) -> list[str]:
    """Names of columns as nobody expects them."""
    return [picked(rng, NAMES) + str(j) for j in range(width)]


def _witness(rng: Rng, judge: Judge, wild: bool) -> None:
    """A display of two samples."""
    table = hostile_table(rng, wild=False, missing=False, n_columns=(1, 4))
    other = picked(rng, [table.rows + 1, table.rows[: len(table.rows) // 2 + 1]])
    test = judge.call("two_sample_test", two_sample_test, table.given, other, n_permutations=19, random_state=0)
    if test is None:
        return
    odd = [None, "x", [], np.full((3, table.rows.shape[1]), np.nan), table.rows[:0], [["a"]]]
    offers = {"result": ([test], [None, 3]), "x": ([table.given], odd), "y": ([other, other[:1]], odd)}
    told = asked(rng, offers, offers, wild=wild)
    _judge_picture(rng, judge, judge.call("WitnessDisplay", lambda: WitnessDisplay(**told).plot()))


def _judge_picture(rng: Rng, judge: Judge, display: Any) -> None:
    if display is not None:
        if not (display.axes_[0] if hasattr(display, "axes_") else display.ax_).has_data():
            judge.faults.append(f"{type(display).__name__} draws nothing")
        if rng.random() < DRAWN:
            judge.call(f"{type(display).__name__}: drawing", display.figure_.canvas.draw)
    pyplot.close("all")


PICTURES: dict[str, Callable[[Rng, Judge, bool], None]] = {
    **{kind.__name__: partial(_drawn, kind) for kind in catalogue.DISPLAYS},
    "WitnessDisplay": _witness,
}
