"""What holds for every model: scikit-learn's contract, copies, array libraries, documentation, refusals."""

import inspect
import pickle
import re

import array_api_strict as strict
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from catalogue import EXPECTED_FAILURES, FEATURES, LABELS, MODELS, OF_OTHER_ROWS, ROWS, VARIANTS
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


@every_model
def test_a_pickled_model_answers_the_same_and_a_clone_nothing(model):
    fitted = model.fit()

    # a pickled array may lie in another order in memory, and be added up in it
    np.testing.assert_allclose(model.answers(pickle.loads(pickle.dumps(fitted))), model.answers(fitted), rtol=1e-12)
    with pytest.raises(NotFittedError):
        model.answers(clone(fitted))


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
    "text": (np.full(ROWS.shape, "a", dtype=object), "could not convert string to float: 'a'"),
    "complex": (ROWS + 1j, "Complex data not supported"),
    "none": (ROWS[:0], r"Found array with 0 sample\(s\)"),
    "one column": (ROWS[:, 0], "Expected 2D array, got 1D array instead"),
}


@models
@pytest.mark.parametrize(("rows", "message"), BAD_ROWS.values(), ids=BAD_ROWS.keys())
def test_rows_that_are_none_get_a_sentence(model, rows, message):
    with pytest.raises(ValueError, match=message):
        clone(model.estimator).fit(rows, LABELS[: len(rows)])


@models
def test_rows_of_other_columns_get_a_sentence(model):
    with pytest.raises(ValueError, match=r"X has 5 features, but \w+ is expecting 4 features"):
        model.answers(model.fit(), ROWS[:, [0, 1, 2, 3, 3]])


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
