"""Linear bins by takes and counts are SciPy's sparse ones; with NumPy in the place of a device's library."""

import numpy as np
import pytest

from latentviews.core.features.bins import linear_bins
from latentviews.core.features.device_bins import device_bins
from latentviews.core.features.point_masses import beside_indicators, which_mass
from latentviews.core.streams import weigh

pytestmark = pytest.mark.cheap
GRID, OTHER = np.linspace(-2, 2, 9), np.linspace(-1, 3, 7)


@pytest.fixture
def columns(rng):
    return rng.normal(size=50), rng.normal(size=50)


def test_bins_where_the_rows_live_share_them_as_sparse_ones_do(columns, rng):
    x, y = columns
    there, here = device_bins(x, GRID), linear_bins(x, GRID)
    table, values = rng.normal(size=(9, 3)), rng.normal(size=(50, 2))

    np.testing.assert_allclose(there.on_host().toarray(), here.toarray(), atol=1e-15)
    np.testing.assert_allclose(there @ table, here @ table, atol=1e-14)
    np.testing.assert_allclose(there.T @ values, here.T @ values, atol=1e-13)
    joint = there.T @ device_bins(y, OTHER)
    np.testing.assert_allclose(joint, (here.T @ linear_bins(y, OTHER)).toarray(), atol=1e-13)


def test_weights_of_bins_where_the_rows_live_are_those_of_sparse_ones(columns, rng):
    weights = rng.random(50)
    there, here = (weigh(bins(columns[0], GRID), weights) for bins in (device_bins, linear_bins))

    np.testing.assert_allclose(there.on_host().toarray(), here.toarray(), atol=1e-15)


def test_point_masses_beside_bins_where_the_rows_live_are_those_beside_sparse_ones(columns):
    x = np.where(np.arange(50) % 5 == 0, 0.5, np.where(np.arange(50) % 7 == 0, 1.0, columns[0]))
    at = which_mass(x, (0.5, 1.0))
    there, here = (beside_indicators(bins(x, GRID), at, 2) for bins in (device_bins, linear_bins))

    np.testing.assert_allclose(there.on_host().toarray(), here.toarray(), atol=1e-15)


def test_what_is_no_number_is_at_an_end_and_breaks_nothing():
    np.testing.assert_array_equal(linear_bins(np.array([np.nan, 1e300]), GRID).toarray()[:, [0, -1]], np.eye(2))
