import numpy as np
import pytest
from scipy import stats
from scipy.spatial.distance import pdist

from catalogue import RULES
from latentviews.core.kernels.bandwidths import (
    FACTORS,
    _binned_likelihoods,
    _pairwise_likelihoods,
    cv,
    finest,
    isj,
    many_scales,
    median,
    resolve,
    scott,
    silverman,
    without_copies,
)

pytestmark = pytest.mark.cheap

rules = pytest.mark.parametrize("rule", RULES)


@rules
@pytest.mark.parametrize("scale", [0.125, 1024.0])
def test_a_rule_scales_with_the_data(rule, scale, rng):
    x = rng.normal(size=(500, 2))

    np.testing.assert_allclose(RULES[rule](scale * x), scale * np.asarray(RULES[rule](x)), rtol=1e-10)


@rules
def test_a_rule_does_not_see_where_the_data_lie(rule, rng):
    x = rng.normal(size=(500, 1))

    np.testing.assert_allclose(RULES[rule](x + 7.0), RULES[rule](x), rtol=1e-3)  # rows may change their bin


@rules
def test_resolve_gives_a_number_for_one_column(rule, rng):
    bandwidth = resolve(rule, rng.normal(size=(50, 1)))

    assert isinstance(bandwidth, float)
    assert bandwidth > 0


def test_scott_is_its_formula(rng):
    x = rng.normal(size=(100, 3)) * [1, 2, 3]

    np.testing.assert_allclose(scott(x), x.std(axis=0) * 100 ** (-1 / 7), rtol=1e-12)


def test_silverman_is_the_best_bandwidth_for_normal_data(rng):
    x = rng.normal(size=(20_000, 1))

    # the quartiles err by about n^(-1/2): 3 % is more than four standard errors
    assert silverman(x)[0] == pytest.approx((4 / (3 * 20_000)) ** 0.2, rel=0.03)


def test_silverman_is_not_led_astray_by_outliers(rng):
    x = rng.normal(size=(1000, 1))
    with_outliers = np.concatenate([x, [[1e4]], [[-1e4]]])

    assert silverman(with_outliers)[0] == pytest.approx(silverman(x)[0], rel=0.05)


def test_silverman_without_quartiles_takes_the_deviation():
    x = np.array([0.0] * 90 + [1.0] * 10)[:, None]

    assert silverman(x)[0] == pytest.approx(0.3 * (4 / 300) ** 0.2)


def test_isj_is_near_silverman_on_normal_data(rng):
    x = rng.normal(size=(5000, 1))

    assert isj(x)[0] == pytest.approx(silverman(x)[0], rel=0.15)  # its own relative error is of order n^(-1/5)


def test_isj_smooths_separated_modes_as_if_each_were_alone(rng):
    one = rng.normal(size=(2000, 1))
    two = np.concatenate([one - 50, rng.normal(size=(2000, 1)) + 50])

    # ∫ f''² of the equal mixture is half that of one mode, and there are twice as many rows
    assert isj(two)[0] == pytest.approx(silverman(one)[0], rel=0.2)
    assert silverman(two)[0] > 10 * isj(two)[0]


def test_isj_is_never_finer_than_the_data(rng):
    x = np.round(rng.normal(size=(5000, 1)) * 2) / 4

    assert isj(x)[0] >= finest(x[:, 0]) == 0.125


def test_a_density_of_rounded_values_is_smooth_at_the_finest_bandwidth():
    values = np.arange(-20.0, 21.0)
    at = np.linspace(-2, 2, 81)
    density = stats.norm.pdf(at[:, None], values, finest(values)).sum(axis=1)
    assert np.ptp(density) == pytest.approx(4 * np.exp(-(np.pi**2) / 2), rel=0.01)  # 1.4 % to either side
    assert np.ptp(density) < 0.03


def test_isj_takes_the_rate_of_several_columns(rng):
    x = rng.normal(size=(1000, 2))
    alone = np.array([isj(x[:, [0]])[0], isj(x[:, [1]])[0]])

    np.testing.assert_allclose(isj(x), alone * 1000 ** (1 / 5 - 1 / 6), rtol=1e-12)


def test_isj_falls_back_to_silverman_on_two_values():
    x = np.array([0.0, 1.0] * 20)[:, None]

    assert isj(x)[0] == silverman(x)[0] > 0


def test_isj_falls_back_to_silverman_where_its_equation_has_no_root():
    x = np.array([[0.0], [1.0], [2.0]])

    assert isj(x)[0] == silverman(x)[0] > 0


def test_median_is_the_median_distance(rng):
    x = rng.normal(size=(100, 3))

    assert median(x) == np.median(pdist(x))


def test_median_passes_over_duplicates(rng):
    x = rng.normal(size=(20, 1))
    repeated = np.concatenate([np.zeros((180, 1)), x])
    distances = pdist(repeated)

    assert np.median(distances) == 0
    assert median(repeated) == np.median(distances[distances > 0])


def test_median_looks_at_two_thousand_rows_of_many(rng):
    x = rng.normal(size=(20_000, 1))

    # the median of |N(0, 2)| is 0.954, and its standard error from 2,000 rows about 1 %
    assert median(x) == pytest.approx(0.954, rel=0.06)


@rules
def test_a_constant_column_is_refused_by_number(rule, rng):
    x = np.column_stack([rng.normal(size=20), np.ones(20)])
    if rule == "median":  # of distances, which a constant column leaves as they are
        assert resolve(rule, x) == median(x[:, :1])
        x = np.ones((20, 2))
        with pytest.raises(ValueError, match="needs columns that vary, but column 0 of the view is constant over 20"):
            resolve(rule, x)
        return

    with pytest.raises(ValueError, match=r"needs columns that vary, but column 1 of the view is constant over 20"):
        resolve(rule, x)


def test_an_unknown_rule_is_refused():
    with pytest.raises(ValueError, match=r"bandwidth must be a positive number or one of .*; got 'mean'"):
        resolve("mean", np.zeros((3, 1)))


SHAPES = {
    "normal": lambda rng, n: rng.normal(size=n),
    "two normals": lambda rng, n: 60 * rng.normal(size=n) + 250 * rng.integers(2, size=n),
    "wide and narrow": lambda rng, n: np.where(rng.random(n) < 0.5, rng.normal(size=n), 4 + 0.5 * rng.normal(size=n)),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n", [1000, 10_000, 100_000])
@pytest.mark.parametrize("units", [20, 50, 100, 300, 1000])
def test_isj_of_rounded_values_is_that_of_the_values_themselves(shape, n, units, rng):
    x = SHAPES[shape](rng, n)[:, None]
    unit = x.std() / units

    assert isj(unit * np.round(x / unit))[0] == pytest.approx(isj(x)[0], rel=0.1)


def test_isj_of_rounded_values_on_another_scale_is_that_of_the_values_themselves(rng):
    x = rng.normal(size=(20_000, 1))
    rounded = np.log(np.round(1000 * np.exp(x)) / 1000)

    assert isj(rounded)[0] == pytest.approx(isj(x)[0], rel=0.1)


@pytest.mark.parametrize("copies", [2, 3, 10])
@rules
def test_copies_of_rows_do_not_change_a_bandwidth(rule, copies, rng):
    x = rng.normal(size=(500, 1))

    assert resolve(rule, np.repeat(x, copies, axis=0)) == resolve(rule, x)
    assert not many_scales(np.repeat(x[:, 0], copies))


@pytest.mark.parametrize("unit", [0.05, 0.1, 0.5])
def test_rounded_rows_are_no_copies(unit, rng):
    x = unit * np.round(rng.normal(size=(2000, 1)) / unit)

    assert without_copies(x) is x
    assert len(without_copies(np.log(x + 10))) == len(x)


def test_the_cross_validated_bandwidth_is_near_the_best_for_a_gaussian(rng):
    x = rng.normal(size=(4000, 1))
    assert cv(x)[0] == pytest.approx(silverman(x)[0], rel=0.6)


def test_the_cross_validated_bandwidth_sees_modes_that_silvermans_rule_blurs(rng):
    x = np.concatenate([rng.normal(loc, 0.2, size=(500, 1)) for loc in (-10, 0, 10)])
    assert cv(x)[0] < silverman(x)[0] / 4


def test_held_out_likelihoods_of_binned_rows_are_those_of_all_pairs(rng):
    z, fold = rng.gamma(2.0, size=(600, 1)), np.arange(600) % 5
    binned, pairwise = np.array(_binned_likelihoods(z, fold)), np.array(_pairwise_likelihoods(z, fold))
    constant = np.log(2 * np.pi) / 2
    others = np.where(fold[:, None] != fold, np.abs(z - z.T), np.inf)
    wide = others.min(axis=1).max() / 6 < FACTORS  # narrower ones leave far rows to rounding
    np.testing.assert_allclose(binned[wide], pairwise[wide] - constant, atol=2e-3)


@pytest.mark.parametrize("far", [1e18, 9.97e36, 1e150])
def test_one_value_far_out_does_not_move_the_median_distance(far, rng):
    x = rng.normal(size=(500, 1))
    x[0] = far

    np.testing.assert_allclose(median(x), median(x[1:]), rtol=0.02)
