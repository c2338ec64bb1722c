"""One hostile fit: an estimator of the catalogue, a table, and every answer that it gives judged."""

import inspect
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags

import catalogue
from latentviews import diagnose, load, save
from latentviews.report import write_report

from . import others
from .functions import function_case
from .parameters import with_parameters
from .tables import Hostile, hostile_table
from .verdicts import Judge

Rng = np.random.Generator
NAN_SAYS_SO = {"standard_errors", "goodness_of_fit"}  # NaN stands for what has no normal law, or no value
OTHERWISE = {"bootstrap", "bootstrap_test", "inverse_transform"}  # asked for few resamples, and never of rows
FAR = 1e149  # squares of it can still be held, and of their sums


def families() -> dict[str, list[BaseEstimator]]:
    """What is fitted: the estimators of the catalogue by their class, those with a dependence apart."""
    found: dict[str, list[BaseEstimator]] = {}
    for estimator in [*(model.estimator for model in catalogue.MODELS + catalogue.VARIANTS), *catalogue.FEATURES]:
        dependent = getattr(estimator, "dependence", None) is not None
        found.setdefault(type(estimator).__name__ + "-dependent" * dependent, []).append(estimator)
    return {**dict(sorted({**found, **others.families()}.items())), "functions": []}


class Fit(NamedTuple):
    """A fit to be tried."""

    estimator: BaseEstimator
    method: str
    table: Hostile
    arguments: dict[str, Any]
    words: str


def make_fit(rng: Rng, family: str, *, wild: bool) -> Fit:
    """An estimator of a family, with parameters, a table and arguments by chance."""
    options = families()[family]
    estimator = clone(options[int(rng.integers(len(options)))])
    missing = bool(get_tags(estimator).input_tags.allow_nan)
    only_one = type(estimator).__name__ in {"BinnedFeatures", "PointMassFeatures"}
    table = hostile_table(rng, wild=wild, missing=missing, n_columns=(1, 2) if only_one else (3, 7))
    changed = with_parameters(rng, estimator, table.rows.shape, wild=wild)
    if "random_state" in estimator.get_params(deep=False):
        estimator.set_params(random_state=0)
    how, arguments = _arguments(rng, estimator, table, wild=wild)
    method = "partial_fit" if hasattr(estimator, "partial_fit") and rng.random() < 0.12 else "fit"
    words = f"{type(estimator).__name__}; {table.words}; {changed or 'as in the catalogue'}; {method} {how}"
    return Fit(estimator, method, table, arguments, words)


def run_case(family: str, numbers: list[int]) -> tuple[str, Judge]:
    """A case in words, and its faults; the same for the same numbers."""
    return judged_case(family, np.random.default_rng(numbers))


def judged_case(family: str, rng: Rng) -> tuple[str, Judge]:
    """A case in words, and its faults, as a generator makes it."""
    wild, judge = bool(rng.random() < 0.25), Judge()
    if family == "functions":
        return function_case(rng, judge, wild=wild), judge
    if family in others.CASES:
        return ("wild: " if wild else "") + others.other_case(family, rng, judge, wild=wild), judge
    case = make_fit(rng, family, wild=wild)
    model = judge.call(case.method, getattr(case.estimator, case.method), case.table.given, **case.arguments)
    if model is not None:
        judge_model(judge, model, case.table, rng, case.arguments)
    return ("wild: " if wild else "") + case.words, judge


def _arguments(rng: Rng, estimator: BaseEstimator, table: Hostile, *, wild: bool) -> tuple[str, dict[str, Any]]:
    """What else ``fit`` is told, in words and as arguments."""
    n = len(table.rows)
    known = inspect.signature(estimator.fit).parameters
    chosen: dict[str, str] = {}
    offers = {"sample_weight": _weights(rng, n, wild), "lengths": _lengths(n, wild), "y": _targets(rng, n, wild)}
    required = {"y"} if get_tags(estimator).target_tags.required else set()
    arguments = {}
    for name, values in offers.items():
        if name in known and (name in required or rng.random() < 0.2):
            chosen[name] = str(rng.choice(list(values)))
            arguments[name] = values[chosen[name]]
    return ", ".join(f"{name} {value}" for name, value in chosen.items()), arguments


def _weights(rng: Rng, n: int, wild: bool) -> dict[str, Any]:
    bad = {"zero": np.zeros(n), "negative": -np.ones(n), "NaN": np.full(n, np.nan), "text": "w", "long": np.ones(n + 1)}
    return {
        "random": rng.random(n),
        "zero and one": np.concatenate([[1], rng.integers(0, 2, n - 1)]),
        "decades": 10.0 ** rng.uniform(-10, 10, n),
        **({"many decades": 10.0 ** rng.uniform(-300, 300, n), **bad} if wild else {}),
    }


def _lengths(n: int, wild: bool) -> dict[str, Any]:
    bad = {
        "ones": [1] * n,
        "none": [0, n],
        "negative": [-1, n + 1],
        "long": [n + 1],
        "text": "x",
        "fractions": [n / 2] * 2,
    }
    return {"one": [n], "two": [n // 2, n - n // 2], **(bad if wild else {})}


def _targets(rng: Rng, n: int, wild: bool) -> dict[str, Any]:
    bad = {"NaN": np.full(n, np.nan), "text": "y", "long": np.zeros(n + 1), "pairs": rng.normal(size=(n, 2))}
    return {
        "two": np.arange(n) % 2,
        "some known": np.concatenate([[0, 1][:n], rng.integers(-1, 2, max(n - 2, 0))]),
        **({"words": np.array(["a", "b", "c"])[np.arange(n) % 3]} if wild else {}),
        **(
            {"huge": 1e300 * rng.normal(size=n), "equal": np.zeros(n), "real": rng.normal(size=n), **bad}
            if wild
            else {}
        ),
    }


# ---------------------------------------------------------------------------------------------------------- answers


def judge_model(judge: Judge, model: Any, table: Hostile, rng: Rng, arguments: dict[str, Any]) -> None:
    """Every answer of a fitted model, at its rows and at others, and one of the things that are done with it."""
    noise = bool(getattr(getattr(model, "dependent_", None), "noise_class", False))
    for name in ("weights_", "start_", "transition_"):
        if hasattr(model, name):
            judge.faults.shares(name, getattr(model, name))
    weights = np.asarray(arguments.get("sample_weight", 1.0))
    light = np.any(weights <= 1e-15 * weights.max())  # some rows count as good as nothing
    for name, rows in probes(model, table.rows).items():
        given = in_form(model, table, rows) if name != "fitted" else as_fitted(model, table)
        for method in row_methods(model):
            answer = judge.call(f"{method}({name})", getattr(model, method), given)
            _judge_answer(judge, model, f"{method}({name})", answer, low=light or name != "fitted", noise=noise)
    if hasattr(model, "sample"):
        _judge_sample(judge, "sample", judge.call("sample", model.sample, 5), model)
    if len(table.rows) > 1 and np.isfinite(table.rows[~np.isnan(table.rows)]).all():
        _judge_use(judge, model, in_form(model, table, table.rows), table, rng)


def probes(model: Any, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Rows to ask about, by name: those of the fit, others far away, without values, alone."""
    if not np.isfinite(rows[~np.isnan(rows)]).all() or (
        np.isnan(rows).any() and not get_tags(model).input_tags.allow_nan
    ):
        return {}
    with np.errstate(all="ignore"):
        beside = np.clip(rows + 3 * np.nan_to_num(np.nanstd(rows)), -FAR, FAR)
        far = np.clip(rows * 1e6 + 1, -1e140, 1e140)
    found = {"fitted": rows, "far": far, "beside": beside, "alone": rows[:1], "1e149": np.full((2, rows.shape[1]), FAR)}
    if get_tags(model).input_tags.allow_nan:
        found["missing"] = np.full((3, rows.shape[1]), np.nan)
    return found


def in_form(model: Any, table: Hostile, rows: np.ndarray) -> Any:
    """Rows with the names that a model was fitted with."""
    return pd.DataFrame(rows, columns=list(model.feature_names_in_)) if hasattr(model, "feature_names_in_") else rows


def as_fitted(model: Any, table: Hostile) -> Any:
    """The rows as they were given, such as dates, which are no numbers to a model of categories; streams as a table."""
    return table.given if hasattr(table.given, "__array__") else in_form(model, table, table.rows)


def row_methods(model: Any) -> list[str]:
    """The public methods of a model that need nothing but rows."""
    names = []
    for name, method in inspect.getmembers(type(model), callable):
        if (
            name.startswith(("_", "fit", "partial_fit", "set_", "get_"))
            or name in OTHERWISE
            or not hasattr(model, name)
        ):
            continue
        needed = [
            one.name
            for one in inspect.signature(method).parameters.values()
            if one.default is one.empty and one.kind in (one.POSITIONAL_OR_KEYWORD, one.POSITIONAL_ONLY)
        ]
        if needed[1:] == ["X"]:
            names.append(name)
    return names


def _judge_answer(judge: Judge, model: Any, name: str, answer: Any, *, low: bool, noise: bool) -> None:
    """No NaN and no infinity in an answer, and shares where they must sum to one; −inf only in logs of far rows."""
    if answer is None:
        return
    method = name.partition("(")[0]
    if hasattr(answer, "quantile"):
        _judge_forecast(judge, name, answer, model)
    elif method == "beliefs":
        for belief in answer.views:
            _judge_distributions(judge, name, belief)
    elif method == "predict_proba" or (method == "filter" and hasattr(model, "transition_")):
        judge.faults.shares(name, answer, at_most=noise)
    elif method in {"bic", "aic", "score"} and low:
        return
    else:
        answer = answer.toarray() if hasattr(answer, "toarray") else answer
        if method not in NAN_SAYS_SO:
            judge.faults.numbers(name, answer, low=low or method == "predict_log_proba")


def _used(model: Any, values: Any) -> Any:
    """The columns of rows that belong to some view; others are NaN by design."""
    columns = sorted({j for view in getattr(model, "views_", []) for j in view}) or slice(None)
    return np.asarray(values)[..., columns]


def _origin(model: Any) -> np.ndarray:
    """The row of zeros in the first view of a model, or in its first column."""
    return np.zeros((1, len(model.views_[0]))) if hasattr(model, "views_") else np.zeros(1)


def _judge_sample(judge: Judge, name: str, drawn: Any, model: Any) -> None:
    if drawn is not None:
        judge.faults.numbers(name, _used(model, drawn[0] if isinstance(drawn, tuple) else drawn))


def _judge_forecast(judge: Judge, name: str, forecast: Any, model: Any) -> None:
    """The mean, quantiles and draws of a forecast, and its density at zero."""
    for part, call in {
        "mean": forecast.mean,
        "quantile": lambda: forecast.quantile(0.9),
        "sample": lambda: forecast.sample(2, random_state=0),
    }.items():
        values = judge.call(f"{name}.{part}", call)
        if values is not None:
            judge.faults.numbers(f"{name}.{part}", _used(model, values))
    density = judge.call(f"{name}.density", forecast.density, _origin(model))
    if density is not None:
        judge.faults.numbers(f"{name}.density", density, high=True)


def _judge_distributions(judge: Judge, name: str, found: Any) -> None:
    """The mean, draws, quantiles and density of weighted samples, one per row."""
    for part, call in {
        "mean": found.mean,
        "sample": lambda: found.sample(2, random_state=0),
        "quantile": lambda: found.quantile(0.5),
        "density": lambda: found.density(found.points[:3]),
    }.items():
        values = judge.call(f"{name}.{part}", call)
        if values is not None:
            judge.faults.numbers(f"{name}.{part}", values, high=part == "density")


# ------------------------------------------------------------------------------------------------------------- uses


def _judge_use(judge: Judge, model: Any, given: Any, table: Hostile, rng: Rng) -> None:
    """One of the things that can be done with a model, by chance."""
    uses = [use for ability, use in USES if ability is None or hasattr(model, ability)]
    if rng.random() < 0.5:
        uses[int(rng.integers(len(uses)))](judge, model, given, table)


def _conditional(judge: Judge, model: Any, given: Any, table: Hostile) -> None:
    """One view given the others, or a column given another."""
    if hasattr(model, "marginal"):
        first, *others = model.columns_
        marginal = judge.call("marginal", model.marginal, [first])
        parts = {"marginal": marginal}
        seen = table.rows[:, others[0]] if others else np.array([])
        seen = seen[np.isfinite(seen)]
        if len(seen):
            parts["conditional"] = judge.call("conditional", model.conditional, [first], {others[0]: float(seen[0])})
        for name, part in parts.items():
            if part is not None:
                points = table.rows[:5, [first]]
                values = judge.call(f"{name}.score_samples", part.score_samples, points[np.isfinite(points[:, 0])])
                judge.faults.numbers(f"{name}.score_samples", values, low=True) if values is not None else None
                _judge_sample(
                    judge, f"{name}.sample", judge.call(f"{name}.sample", part.sample, 3, random_state=0), None
                )
        return
    found = judge.call("conditional", model.conditional, given, 0)
    if found is not None:
        for name, call in {"mean": found.mean, "sample": lambda: found.sample(random_state=0)}.items():
            values = judge.call(f"conditional.{name}", call)
            judge.faults.numbers(f"conditional.{name}", values) if values is not None else None


def _expectation(judge: Judge, model: Any, given: Any, table: Hostile) -> None:
    found = judge.call("expectation", model.expectation, lambda x: x[:, 0], given, 0)
    judge.faults.numbers("expectation", found.values) if found is not None else None


def _bootstrap(judge: Judge, model: Any, given: Any, table: Hostile) -> None:
    found = judge.call("bootstrap", lambda: model.bootstrap(given, n_resamples=3, random_state=0))
    judge.faults.shares("bootstrap", found.weights) if found is not None else None


def _bootstrap_test(judge: Judge, model: Any, given: Any, table: Hostile) -> None:
    found = judge.call("bootstrap_test", lambda: model.bootstrap_test(given, n_resamples=3, n_starts=2, random_state=0))
    judge.faults.numbers("bootstrap_test", found.pvalue) if found is not None else None


def _at(judge: Judge, model: Any, given: Any, table: Hostile) -> None:
    """What is expected of one thing given another, with its own prior and with that of its first rows."""
    found = judge.call("at", model.at, given)
    if found is not None:
        _judge_distributions(judge, "at", found)
    other = judge.call("with_prior", model.with_prior, model.at(given[:1]).points[:5])
    if other is not None:
        _judge_distributions(judge, "with_prior.at", other.at(given))


def _inverse(judge: Judge, model: Any, given: Any, table: Hostile) -> None:
    known = judge.call("transform", model.transform, given)
    back = judge.call("inverse_transform", model.inverse_transform, known) if known is not None else None
    judge.faults.numbers("inverse_transform", back) if back is not None else None


def _diagnose(judge: Judge, model: Any, given: Any, table: Hostile) -> None:
    judge.call("diagnose", lambda: str(diagnose(model, given, n_permutations=19, random_state=0)))


def _report(judge: Judge, model: Any, given: Any, table: Hostile) -> None:
    with tempfile.TemporaryDirectory() as folder:
        judge.call("write_report", write_report, model, given, Path(folder) / "report.html")


def _copies(judge: Judge, model: Any, given: Any, table: Hostile) -> None:
    """A saved and a pickled model answer as the one they were made of."""
    answers = [name for name in ("predict_proba", "score_samples", "transform", "filter") if hasattr(model, name)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.latentviews"
        for name, copy in {
            "loaded": lambda: (save(model, path), load(path))[1],
            "pickled": lambda: pickle.loads(pickle.dumps(model)),
        }.items():
            other = judge.call(name, copy)
            for method in answers[:1] if other is not None else []:
                pair = [judge.call(method, getattr(one, method), given) for one in (model, other)]
                if pair[0] is not None and not _equal(*pair, exact=name == "loaded"):
                    judge.faults.append(f"{name} answers otherwise")


def _equal(a: Any, b: Any, *, exact: bool) -> bool:
    """Whether answers are the same, or but for rounding: pickled arrays may lie otherwise in memory."""
    if b is None:
        return False
    a, b = (x.toarray() if hasattr(x, "toarray") else x for x in (a, b))
    return bool(
        np.array_equal(a, b, equal_nan=True) if exact else np.allclose(a, b, rtol=1e-4, atol=1e-6, equal_nan=True)
    )


USES: list[tuple[str | None, Callable[..., None]]] = [
    (None, _copies),
    ("conditional", _conditional),
    ("expectation", _expectation),
    ("bootstrap", _bootstrap),
    ("bootstrap_test", _bootstrap_test),
    ("at", _at),
    ("inverse_transform", _inverse),
    ("dependent_", _diagnose),
    ("dependent_", _report),
]
