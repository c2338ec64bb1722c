"""Columns whose longer tail is drawn in."""

import numpy as np
import pytest
from scipy import stats

from latentviews.densities.power_scales import PowerScale, bend, power_scale

pytestmark = pytest.mark.cheap


@pytest.mark.parametrize("power", [0.05, 0.7, 1.0, 1.95])
def test_bending_is_yeo_and_johnsons_power_where_it_draws_in(power, rng):
    z = rng.normal(size=50)
    drawn_in = z < 0 if power > 1 else z > 0
    expected = np.where(drawn_in, stats.yeojohnson(z, power), z)
    np.testing.assert_allclose(bend(z, power)[0], expected, rtol=1e-12)


def test_slopes_are_derivatives(rng):
    scale = PowerScale(np.array([1.0, -2.0]), np.array([0.5, 3.0]), np.array([0.3, 1.6]))
    x, step = rng.normal(size=(40, 2)), 1e-6
    slopes = (scale.bent(x + step)[0] - scale.bent(x - step)[0]) / (2 * step)
    np.testing.assert_allclose(scale.bent(x)[1], np.log(slopes).sum(axis=1), atol=1e-6)


def test_the_power_does_not_depend_on_units(rng):
    x = rng.lognormal(size=(300, 2))
    np.testing.assert_array_equal(power_scale(x).power, power_scale(1e5 * x - 3e4).power)


def test_columns_become_less_skewed_and_mirrored_ones_mirror(rng):
    x = rng.lognormal(sigma=0.7, size=(2000, 1))
    right, left = power_scale(x), power_scale(-x)
    assert abs(stats.skew(right.bent(x)[0][:, 0])) < stats.skew(x[:, 0]) / 3
    np.testing.assert_allclose(right.power, 2 - left.power, atol=0.051)


def test_normal_columns_stay_nearly_straight_and_flat_ones_straight(rng):
    x = np.stack([rng.normal(size=5000), np.r_[np.zeros(4990), np.arange(10.0)]], axis=1)
    power = power_scale(x).power
    assert abs(power[0] - 1) <= 0.15
    assert power[1] == 1


def test_rows_out_of_range_stay_finite():
    scale = power_scale(np.array([[1e-300], [2e-300], [4e-300]]))
    rows, log_slopes = scale.bent(np.array([[1e300], [-1e300]]))
    assert np.isfinite(rows).all()
    assert np.isfinite(log_slopes).all()
