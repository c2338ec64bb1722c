"""What holds for every model: scikit-learn's contract, copies, array libraries, documentation, refusals."""

import inspect
import io
import pickle
import re

import array_api_strict as strict
import joblib
import numpy as np
import pytest
import skops.io
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from catalogue import (
    BORDERED,
    EXPECTED_FAILURES,
    FEATURES,
    LABELS,
    MODELS,
    OF_OTHER_ROWS,
    QUICK_POLISH,
    ROWS,
    VARIANTS,
    Batches,
    Model,
)
from latentviews import KernelHMM, LowRankDensity, Stack
from latentviews._arrays import to_numpy

ONE_OF_EACH_MAP = list({type(features): features for features in FEATURES}.values())

EVERY = [*MODELS, *OF_OTHER_ROWS]

models = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model.estimator).__name__)
every_model = pytest.mark.parametrize("model", EVERY, ids=lambda model: type(model.estimator).__name__)
every_way = pytest.mark.parametrize("model", [*MODELS, *VARIANTS], ids=repr)


@parametrize_with_checks(
    [*(model.estimator for model in EVERY), *ONE_OF_EACH_MAP],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES.get(type(estimator), {}),
    xfail_strict=True,
)
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)


def by_pickle(model):
    return pickle.loads(pickle.dumps(model))


def by_joblib(model):
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    return joblib.load(file)


def by_skops(model):
    """What skops saves of a model, with its classes trusted, as a user would name them."""
    data = skops.io.dumps(model)
    foreign = {"builtins.frozenset", "scipy.sparse._csr.csr_array"}
    asked = skops.io.get_untrusted_types(data=data)
    assert all(name.startswith("latentviews.") or name in foreign for name in asked), asked
    return skops.io.loads(data, trusted=asked)


@every_model
def test_a_model_that_was_saved_elsewhere_answers_the_same_and_a_clone_nothing(model):
    fitted = model.fit()
    answers = model.answers(fitted)

    # an array read again may lie in another order in memory, and be added up in it
    np.testing.assert_allclose(model.answers(by_pickle(fitted)), answers, rtol=1e-12)
    np.testing.assert_allclose(model.answers(by_joblib(fitted)), answers, rtol=1e-12)
    np.testing.assert_allclose(model.answers(by_skops(fitted)), answers, rtol=1e-12)
    with pytest.raises(NotFittedError):
        model.answers(clone(fitted))


@pytest.mark.parametrize("model", [*VARIANTS, Model(KernelHMM("auto", polish=QUICK_POLISH), "predict_proba")], ids=repr)
def test_models_made_of_other_parts_are_saved_by_skops(model):
    fitted = model.fit()

    np.testing.assert_allclose(model.answers(by_skops(fitted)), model.answers(fitted), rtol=1e-9, atol=1e-12)


@every_way
def test_rows_of_another_device_give_the_same_model(model):
    """array-api-strict has a device that NumPy cannot read, as a GPU is."""
    if model.numpy_only:
        with pytest.raises((TypeError, RuntimeError), match=r"takes one NumPy array; got|Can't convert array on the"):
            model.fit(strict.asarray(ROWS, device=strict.Device("device1")))
        return
    there = strict.asarray(ROWS, device=strict.Device("device1"))

    found = model.answers(model.fit(there), there)

    np.testing.assert_allclose(to_numpy(found), model.answers(model.fit()), atol=1e-8)


BAD_ROWS = {
    "infinite": (np.where(ROWS > 3, np.inf, ROWS), "contains infinity"),
    "text": (
        np.full(ROWS.shape, "a", dtype=object),
        r"expects numbers; column 0 holds text, such as 'a'|could not convert string to float: 'a'"
        r"|constant over 400 rows",  # where text is taken for categories
    ),
    "complex": (ROWS + 1j, "Complex data not supported"),
    "none": (ROWS[:0], r"Found array with 0 sample\(s\)"),
    "one column": (ROWS[:, 0], r"\d+ values in one dimension\. Reshape your data"),
}


@models
@pytest.mark.parametrize(("rows", "message"), BAD_ROWS.values(), ids=BAD_ROWS.keys())
def test_rows_that_are_none_get_a_sentence(model, rows, message):
    if model.takes_text and rows.dtype == object:
        assert clone(model.estimator).fit(rows).categories_[0].tolist() == ["a"]
        return
    with pytest.raises(ValueError, match=message):
        clone(model.estimator).fit(rows, LABELS[: len(rows)])


@models
def test_rows_of_other_columns_get_a_sentence(model):
    with pytest.raises(ValueError, match=r"X has 5 features, but \w+ is expecting 4 features"):
        model.answers(model.fit(), ROWS[:, [0, 1, 2, 3, 3]])


bordered = pytest.mark.parametrize(
    "model", [m for m in VARIANTS if m.estimator.get_params().get("kernel") is BORDERED], ids=repr
)
OUTSIDE = np.where(np.arange(len(ROWS))[:, None] == len(ROWS) - 1, BORDERED.space.high + 1.0, ROWS)


@bordered
def test_rows_outside_the_space_of_a_kernel_get_a_sentence_before_and_after_a_fit(model):
    message = rf"Column 0 holds {BORDERED.space.high + 1:g}, which is outside Interval"
    with pytest.raises(ValueError, match=message):
        model.fit(OUTSIDE)
    with pytest.raises(ValueError, match=message):
        model.answers(model.fit(), OUTSIDE)


@bordered
def test_a_stream_that_leaves_the_space_behind_its_pilot_gets_a_sentence(model):
    if isinstance(model.estimator, KernelHMM):
        with pytest.raises(TypeError, match="takes one table"):
            model.fit(Batches([ROWS, OUTSIDE]))
        return
    few = clone(model.estimator).set_params(pilot_size=len(ROWS), random_state=0)

    with pytest.raises(ValueError, match="which is outside Interval"):
        few.fit(Batches([ROWS, OUTSIDE[-1:]]))


def test_a_part_of_a_density_refuses_values_outside_too():
    density = LowRankDensity(2, kernel=BORDERED, method=Stack(n_folds=2, max_iter=3), random_state=0).fit(ROWS)

    with pytest.raises(ValueError, match="Column 1 holds -99, which is outside Interval"):
        density.marginal([1, 2]).score_samples([[-99.0, 0.0]])
    with pytest.raises(ValueError, match="Column 1 holds -99, which is outside Interval"):
        density.conditional([0], {1: -99.0})


def documented(kind):
    """The names under "Parameters" in a numpydoc docstring."""
    text = inspect.getdoc(kind)
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)", text, re.DOTALL | re.MULTILINE)
    heads = [line for line in section[1].splitlines() if line and not line.startswith(" ")] if section else []
    return [name.strip() for head in heads for name in head.split(" : ")[0].split(",")]


@pytest.mark.parametrize(
    "estimator",
    [*(model.estimator for model in EVERY), *ONE_OF_EACH_MAP],
    ids=lambda e: type(e).__name__,
)
def test_every_parameter_is_documented(estimator):
    assert sorted(documented(type(estimator))) == sorted(estimator.get_params(deep=False))
