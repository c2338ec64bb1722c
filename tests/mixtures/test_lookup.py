"""Most probable classes by tables: the same as by the densities."""

import numpy as np
import pytest

from latentviews import MultiViewMixture
from latentviews.datasets import make_multiview
from latentviews.mixtures.lookup import WORTH, label_tables
from latentviews.mixtures.problem import classes_of


@pytest.fixture(scope="module")
def fitted():
    """Rows, and a spectral fit, whose raw densities are rough and negative in places."""
    X = make_multiview(WORTH + 1000, 3, design="gamma", random_state=0).X
    return X, MultiViewMixture(3, polish=None, random_state=0).fit(X)


def test_labels_are_those_of_the_largest_joint_density(fitted, rng):
    X, model = fitted
    hostile = X.copy()
    hostile[rng.integers(len(X), size=300), rng.integers(3, size=300)] = np.nan
    hostile[:100] *= 1e3
    hostile[100:110] = 1e140
    for rows in (X, hostile, X.astype(np.float32), X[:, ::-1][:, ::-1]):
        assert np.array_equal(model.predict(rows), model._log_joint(rows).argmax(axis=1))


def test_most_rows_are_decided_by_tables_alone(fitted):
    X, model = fitted
    labels, doubts = label_tables(classes_of(model)).labels(X)
    assert len(doubts) < 0.05 * len(X)
    wrong = np.flatnonzero(labels != model._log_joint(X).argmax(axis=1))
    assert set(wrong) <= set(doubts)


def test_logs_in_a_table_err_by_no_more_than_they_say(fitted, rng):
    _, model = fitted
    for t, view in enumerate(model.components_):
        low, per_unit, logs, errors = view.log_table()
        x = rng.uniform(view.grid[0], view.grid[-1], size=20_000)
        cells = ((x - low) * per_unit).astype(int)
        gaps = np.abs(view.log_density(x) - view._domain().log_unit - logs[cells]).max(axis=1)
        assert np.all(gaps <= errors[cells] + 1e-12), t
        assert np.median(gaps / errors[cells]) > 0.1  # and not by far less


def test_classes_whose_views_are_no_columns_on_a_grid_have_no_tables(rng):
    X = rng.normal(size=(200, 6)) + 3 * rng.integers(2, size=200)[:, None]
    model = MultiViewMixture(2, views=[[0, 1], [2, 3], [4, 5]], polish=None, random_state=0).fit(X)
    assert label_tables(classes_of(model)) is None
