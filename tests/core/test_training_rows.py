"""The rows of a fit and its pilot, read once for all estimators."""

import array_api_strict as strict
import numpy as np
import pytest

from latentviews.core import tables
from latentviews.core.tables import training_rows


class Batches:
    """A stream of rows with weights, read as often as asked."""

    def __init__(self, table, weights):
        self.table, self.weights = table, weights

    def __iter__(self):
        for low in range(0, len(self.table), 30):
            yield self.table[low : low + 30], self.weights[low : low + 30]


@pytest.fixture
def table(rng):
    return rng.normal(size=(100, 2))


@pytest.mark.parametrize(("size", "partial"), [(40, True), (99, True), (100, False), (500, False)])
def test_a_table_is_partial_where_its_pilot_lacks_rows(size, partial, table, rng):
    weights, y = rng.random(100), np.where(np.arange(100) % 2, 1, -1)
    rows = training_rows(table, size, rng, weights, y)
    assert rows.partial is partial
    assert len(rows.pilot) == min(size, 100)
    assert rows.weights.mean() == pytest.approx(1.0)
    where = np.array([np.flatnonzero((table == row).all(axis=1))[0] for row in rows.pilot])
    np.testing.assert_array_equal(rows.pilot_weights, rows.weights[where])
    np.testing.assert_array_equal(rows.pilot_labels, y[where])
    np.testing.assert_array_equal(rows.codes, table)


@pytest.mark.parametrize(("size", "partial"), [(40, True), (100, True), (101, False)])
def test_a_stream_is_partial_where_its_pilot_is_full(size, partial, table, rng):
    weights = rng.random(100)
    rows = training_rows(Batches(table, weights), size, rng)
    assert rows.partial is partial
    assert rows.weights is None
    assert rows.codes is None
    where = np.array([np.flatnonzero((table == row).all(axis=1))[0] for row in rows.pilot])
    np.testing.assert_array_equal(rows.pilot_weights, weights[where])


def test_rows_that_count_for_nothing_are_counted_out(table, rng):
    weights = np.where(np.arange(100) < 30, 0.0, 2.0)
    rows = training_rows(table, 100, rng, weights)
    assert rows.n_counted == 70
    counted = rows.counted()
    np.testing.assert_array_equal(counted.pilot, table[30:])
    np.testing.assert_array_equal(counted.pilot_weights, rows.weights[30:])
    assert training_rows(table, 100, rng).counted().n_counted == 100


def test_the_pilot_is_what_is_drawn(table, rng):
    rows = training_rows(table, 5, rng, draw=lambda data, *_: (data[:5], None, None))
    np.testing.assert_array_equal(rows.pilot, table[:5])
    assert rows.partial


@pytest.mark.parametrize("rest", [0.0, 1e-3, 1e12, np.nan], ids=str)
@pytest.mark.parametrize("width", [0.0, 1e-15, 1e-9, 1.0], ids=str)
def test_a_column_is_refused_for_all_of_its_rows_though_some_are_looked_at_first(width, rest, rng, monkeypatch):
    x = 1.0 + width * rng.uniform(size=3000)
    x[tables.HEAD :] += rest

    def refusal():
        try:
            tables.check_column(x, "x", "the classes")
        except ValueError as error:
            return str(error)
        return None

    found = refusal()
    monkeypatch.setattr(tables, "varies", lambda head: False)
    assert found == refusal()
    assert (found is None) == (width > 1e-12 or rest in (1e-3, 1e12))


def test_views_of_several_columns_of_another_library_may_have_few_rows(rng):
    tables.check_varying(strict.asarray(rng.normal(size=(20, 2))), ([0, 1],))
