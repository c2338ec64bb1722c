"""Every parameter of every public estimator is declared, and a hopeless value is a sentence that names it."""

import inspect
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.neighbors import KernelDensity

import latentviews
from latentviews import (
    Kernel,
    KernelHMM,
    LowRankDensity,
    MultiViewMixture,
    PredictiveStateModel,
    TransformedDensity,
    baselines,
)
from latentviews._parameters import (
    AutoOr,
    Bandwidth,
    Count,
    Flag,
    Jobs,
    NoneOr,
    OneOf,
    Seed,
    Several,
    Share,
    Such,
    Verbosity,
    WithData,
    check_parameters,
)
from latentviews.core.features.bins import BinnedFeatures
from latentviews.datasets import make_hmm, make_multiview

X = make_multiview(60, 2, random_state=0).X
SERIES = make_hmm(120, random_state=0).X


def public_estimators():
    kinds = [getattr(module, name) for module in (latentviews, baselines) for name in module.__all__]
    found = [kind for kind in kinds if inspect.isclass(kind) and issubclass(kind, BaseEstimator)]
    return [kind for kind in found if not issubclass(kind, Kernel)] + [BinnedFeatures]


def used(part):
    """A fit that uses an estimator, a part of one or a feature map."""
    if hasattr(part, "polish") and not hasattr(part, "fit"):
        return MultiViewMixture(2, polish=part, random_state=0).fit(X)
    if hasattr(part, "decompose"):
        return MultiViewMixture(2, polish=None, solver=part, random_state=0).fit(X)
    if hasattr(part, "estimate"):
        return LowRankDensity("auto", method=part, random_state=0).fit(X)
    if hasattr(part, "learn"):
        return PredictiveStateModel(part, horizon=2, random_state=0).fit(SERIES)
    if not hasattr(part, "fit"):
        return MultiViewMixture(2, dependence=part, random_state=0).fit(X)
    if isinstance(part, KernelHMM | PredictiveStateModel):
        return part.fit(SERIES)
    return part.fit(X[:, :1] if isinstance(part, BinnedFeatures) else X, (X[:, 0] > 0).astype(int))


def made(kind):
    return kind(KernelDensity()) if kind is TransformedDensity else kind()


def parameters(kind):
    return list(inspect.signature(kind).parameters)


@pytest.mark.parametrize("kind", public_estimators(), ids=lambda kind: kind.__name__)
def test_every_parameter_is_declared(kind):
    assert list(kind._parameters) == parameters(kind)
    check_parameters(made(kind))


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind in public_estimators() for name in parameters(kind)], ids=str
)
def test_a_hopeless_value_is_a_sentence_that_names_the_parameter(kind, name):
    part = made(kind).set_params(**{name: object()})

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises((TypeError, ValueError), match=rf"\b{name}\b"):
            used(part)


@pytest.mark.parametrize(
    ("constraint", "good", "bad", "sentence"),
    [
        (Count(2), [2, np.int64(5)], [1, 2.0, True, "2", None], "n must be an integer of at least 2; got"),
        (NoneOr(Count()), [None, 1], [0, "auto"], "n must be an integer"),
        (AutoOr(Count()), ["auto", 1], ["many"], 'n must be an integer or "auto"; got'),
        (Share(), [0.5, np.float32(0.1)], [0, 1, True, "half", np.nan, None], "n must be between 0 and 1; got"),
        (Share("a share from 0", zero=True), [0, 0.5], [1, -0.1], "n must be a share from 0; got"),
        (OneOf(lambda: ("b", "a")), ["a"], ["c", None, ["a"]], r"n must be one of \['a', 'b'\]; got"),
        (Flag(), [True, np.False_, 0, 1], [2, None, "yes", 1.0], "n must be True or False; got"),
        (Verbosity(), [True, 0, 3], [-1, 0.5, "much"], "n must be an integer of at least 0; got"),
        (Jobs(), [None, -1, 4], [0, 1.5, True], "n must be None or an integer other than zero; got"),
        (Seed(), [None, 3, np.random.default_rng(0), np.random.RandomState(0)], [-1, "a", 0.5], "n must be None, a"),
        (Several(Count(), "some integers"), [[1], (2, 3), np.arange(1, 3)], [[], 3, "12", None], "n must be some int"),
        (Several(Count(), "some integers"), [], [[1, 0]], "n must be an integer of at least 1; got 0"),
        (Such(lambda v: v == 1, "one"), [1], [2], "n must be one; got 2"),
        (Bandwidth(("isj",)), ["isj", 0.5, [1.0, 2.0]], ["x"], r"n must be a positive number or one of \['isj'\]; got"),
        (WithData(), [object()], [], ""),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_constraint_takes_what_it_says(constraint, good, bad, sentence):
    for value in good:
        constraint.check("n", value)
    for value in bad:
        with pytest.raises((TypeError, ValueError), match=sentence):
            constraint.check("n", value)


@pytest.mark.parametrize("model", [MultiViewMixture(), KernelHMM()], ids=repr)
def test_an_unknown_rule_is_refused_under_the_name_of_its_parameter(model):
    with pytest.raises(ValueError, match=r"^density_bandwidth must be a positive number or one of \['auto', "):
        model.set_params(density_bandwidth="x").fit(X)
