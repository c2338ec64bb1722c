"""Ways to one statistic agree, several kernels make one test of its level, and limits agree with permutations."""

import array_api_strict
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from latentviews import (
    BlockMMD,
    Delta,
    Gaussian,
    LandmarkMMD,
    QuadraticMMD,
    covariate_shift_weights,
    independence_test,
    two_sample_test,
)
from latentviews.comparison import independence, two_sample
from latentviews.comparison.features import WhitenedKernel, middle_gaussian
from latentviews.comparison.results import Draws, aggregated
from latentviews.comparison.statistics import TwoSamples

FALSE_ALARM = 1e-6
NARROW_AND_WIDE = [Gaussian(0.1), Gaussian(1.0), Gaussian(5.0)]


def rejections(pvalues, level=0.05):
    return int(np.sum(np.asarray(pvalues) <= level + 1e-12))


def assert_level(pvalues, level=0.05):
    """Neither too many small p-values nor too few, with one false alarm in a million."""
    low, high = stats.binom.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], len(pvalues), level)
    assert low <= rejections(pvalues, level) <= high


def test_landmarks_on_every_row_are_the_quadratic_statistic(rng):
    x, y = rng.normal(size=(40, 2)), rng.normal(0.3, size=(30, 2))

    quadratic, landmarks = (
        two_sample_test(x, y, kernel=Gaussian(1.0), statistic=way, n_permutations=1, random_state=0)
        for way in (QuadraticMMD(), LandmarkMMD())
    )

    np.testing.assert_allclose(quadratic.statistic, landmarks.statistic, rtol=1e-8)


@pytest.mark.parametrize("way", [QuadraticMMD(), LandmarkMMD()], ids=repr)
def test_a_weight_of_two_is_a_row_that_counts_twice(way, rng):
    """Σ_{i≠j} w_i w_j k(x_i, x_j) over Σ_{i≠j} w_i w_j: pairs of different rows, by their weights."""
    x, y, weights = rng.normal(size=(12, 1)), rng.normal(size=(9, 1)), rng.integers(1, 4, size=12).astype(float)
    kernel = Gaussian(0.7)

    found = two_sample_test(
        x, y, kernel=kernel, statistic=way, sample_weight=(weights, np.ones(9)), n_permutations=1, random_state=0
    )

    pairs = np.outer(weights, weights) - np.diag(weights**2)
    within_y = (kernel.gram(y, y).sum() - np.trace(kernel.gram(y, y))) / 72
    across = weights @ kernel.gram(x, y).mean(axis=1) / weights.sum()
    expected = np.sum(pairs * kernel.gram(x, x)) / pairs.sum() + within_y - 2 * across
    np.testing.assert_allclose(found.statistic, expected, rtol=1e-8)


def test_one_block_of_all_rows_is_the_quadratic_statistic_without_pairs(rng):
    x, y = rng.normal(size=(20, 1)), rng.normal(1.0, size=(20, 1))
    kernel = Gaussian(1.0)
    differences = kernel.gram(x, x) + kernel.gram(y, y) - kernel.gram(x, y) - kernel.gram(y, x)
    expected = (differences.sum() - np.trace(differences)) / (20 * 19)

    found = two_sample_test(x, y, kernel=kernel, statistic=BlockMMD(20), n_permutations=99, random_state=0)

    np.testing.assert_allclose(found.statistic, expected, rtol=1e-10)
    assert found.pvalue == 0.01


@pytest.mark.parametrize("way", [QuadraticMMD(), LandmarkMMD(), BlockMMD()], ids=repr)
def test_several_kernels_together_keep_the_level(way, rng):
    pvalues = [
        two_sample_test(
            rng.normal(size=24),
            rng.normal(size=16),
            kernel=NARROW_AND_WIDE,
            statistic=way,
            n_permutations=39,
            n_landmarks=10,
            random_state=i,
        ).pvalue
        for i in range(200)
    ]

    assert_level(pvalues)
    assert_level(pvalues, 0.5)


def test_all_pairs_of_kernels_together_keep_the_level(rng):
    pvalues = [
        independence_test(rng.normal(size=20), rng.gamma(1.0, size=20), n_permutations=39, random_state=i).pvalue
        for i in range(120)
    ]

    assert_level(pvalues)
    assert_level(pvalues, 0.5)


def test_pvalues_by_a_law_are_those_of_the_gamma_with_the_draws_mean_and_variance(rng):
    draws = Draws(5.0, rng.gamma(2.0, size=50), 10.0)
    values = np.r_[5.0, draws.null]

    rest = np.sort(values)[:-1]  # but the largest, which would hide itself
    law = stats.gamma(rest.mean() ** 2 / rest.var(), scale=rest.var() / rest.mean())

    np.testing.assert_allclose(draws.log_pvalues(), law.logsf(values), rtol=1e-9)
    np.testing.assert_array_equal(Draws(2.0, np.full(9, 2.0), 2.0).log_pvalues(), 0.0)


def test_a_weight_is_a_share_of_the_level(rng):
    """What one statistic of two shows counts for more the more weight it has; what neither shows, for nothing."""
    null = rng.gamma(2.0, size=(2, 99))
    shown, hidden = Draws(float(np.sort(null[0])[-3]), null[0], 10.0), Draws(float(np.median(null[1])), null[1], 10.0)

    heavy, light = (aggregated([shown, hidden], np.array(weights), rng)[1] for weights in ([0.99, 0.01], [0.01, 0.99]))

    assert 0.03 <= heavy <= 0.05 < 0.3 < light


def test_statistics_that_agree_are_heard_more_than_one_alone(rng):
    null = rng.gamma(2.0, size=(2, 999))
    rare, plain = (np.quantile(null, share, axis=1) for share in (0.94, 0.5))
    first, second, silent = (
        Draws(float(value), draws, 10.0) for value, draws in zip([*rare, plain[1]], [*null, null[1]], strict=True)
    )

    together, alone = (aggregated([first, other], np.ones(2), rng)[1] for other in (second, silent))

    assert together < 0.7 * alone  # the clearest alone would make them equal


def test_the_unbiased_statistic_and_its_bias_are_a_sum_of_squares(rng):
    rows, kernel, n_first = rng.normal(size=(35, 2)), Gaussian(1.0), 15
    samples, gram = TwoSamples(rows, n_first, np.ones(35)), kernel.gram(rows, rows)

    draws = QuadraticMMD().draws(samples, kernel, 99, 30, np.random.default_rng(0))

    members = samples.memberships(99, np.random.default_rng(0))
    signs = np.where(members, 1 / n_first, -1 / (35 - n_first))
    squares = np.einsum("bi,ij,bj->b", signs, gram, signs)
    np.testing.assert_allclose(np.mean([draws.statistic, *draws.null]) + draws.bias, squares.mean(), rtol=1e-9)
    moved = Draws(draws.statistic + draws.bias, draws.null + draws.bias, draws.ceiling)
    np.testing.assert_allclose(draws.log_pvalues(), moved.log_pvalues(), rtol=1e-9)


def test_a_block_and_its_bias_are_a_sum_of_squares(rng):
    rows, kernel, signs = rng.normal(size=(30, 2)), Gaussian(1.0), np.repeat([1.0, -1.0], 15)

    draws = BlockMMD(15).draws(TwoSamples(rows, 15, np.ones(30)), kernel, 9, 30, rng)

    squares = signs @ kernel.gram(rows, rows) @ signs / (15 * 14)
    np.testing.assert_allclose(draws.statistic + draws.bias, squares, rtol=1e-9)


def test_a_wave_is_found_by_a_narrow_kernel_beside_a_wide_one(rng):
    """No pair of kernels of one width sees it: every kernel that is fine in y too drowns it in noise."""
    x = rng.uniform(-np.pi, np.pi, size=120)
    y = np.sin(3 * x) + rng.normal(size=120)

    found = independence_test(x, y, n_permutations=199, random_state=0)
    alike = [
        independence_test(x, y, kernel=[middle_gaussian_of(v, scale) for v in (x, y)], random_state=0).pvalue
        for scale in (0.25, 1.0, 4.0)
    ]

    assert found.pvalue == 1 / 200
    assert isinstance(found.kernel[0], WhitenedKernel)
    assert not isinstance(found.kernel[1], WhitenedKernel)
    assert min(alike) > 1 / 100


def middle_gaussian_of(values, scale):
    return Gaussian(scale * middle_gaussian(values[:, None]).bandwidth)


def test_narrow_differences_are_found_without_choosing_a_bandwidth(rng):
    """Blobs: the same centres, small clouds of another shape; the median distance sees the centres alone."""
    centres = rng.integers(3, size=(2, 400, 2)) * 10.0
    x = centres[0] + rng.multivariate_normal([0, 0], [[1.0, 0.0], [0.0, 1.0]], size=400)
    y = centres[1] + rng.multivariate_normal([0, 0], [[1.0, 0.9], [0.9, 1.0]], size=400)

    several = two_sample_test(x, y, n_permutations=199, random_state=0)
    median = two_sample_test(x, y, kernel=Gaussian("median"), n_permutations=199, random_state=0)

    assert several.pvalue <= 0.02
    assert median.pvalue > 0.05


def test_the_witness_says_where_the_samples_differ(rng):
    x, y = rng.normal(-1.0, size=400), rng.normal(1.0, size=400)

    witness = two_sample_test(x, y, n_permutations=9, random_state=0).witness

    assert witness.at([-2.0])[0] > 0 > witness.at([2.0])[0]


def test_limits_of_all_pairs_of_kernels_agree_with_permutations(rng, monkeypatch):
    """Permutations and the limit have the same correlations between pairs of kernels, so the same p-values."""
    x, z = rng.normal(size=(2, 400))
    y = 0.02 * x + z

    exact = independence_test(x, y, n_permutations=1999, random_state=0)
    monkeypatch.setattr(independence, "MANY_ROWS", 100)
    limit = independence_test(x, y, n_permutations=1999, random_state=0)

    np.testing.assert_allclose(limit.statistic, exact.statistic, rtol=1e-6)
    assert 0.005 < exact.pvalue < 0.2
    assert abs(exact.pvalue - limit.pvalue) < 0.03


def test_the_limit_agrees_with_permutations(rng, monkeypatch):
    x, y = rng.normal(size=(600, 2)), rng.normal(0.1, size=(500, 2))
    options = {"kernel": Gaussian(1.0), "n_permutations": 1999, "n_landmarks": 300, "random_state": 0}

    exact = two_sample_test(x, y, **options), independence_test(x[:500], y + 0.1 * x[:500], **options)
    monkeypatch.setattr(two_sample, "MANY_ROWS", 100)
    monkeypatch.setattr(independence, "MANY_ROWS", 100)
    limit = two_sample_test(x, y, **options), independence_test(x[:500], y + 0.1 * x[:500], **options)

    np.testing.assert_allclose(limit[1].statistic, exact[1].statistic, rtol=1e-6)
    for one, other in zip(exact, limit, strict=True):
        np.testing.assert_allclose(one.statistic, other.statistic, rtol=0.02, atol=0.02 * one.null.std())
        np.testing.assert_allclose(np.quantile(one.null, [0.5, 0.95]), np.quantile(other.null, [0.5, 0.95]), rtol=0.1)
        assert abs(one.pvalue - other.pvalue) < 0.05


def test_limits_keep_the_level(rng, monkeypatch):
    monkeypatch.setattr(two_sample, "MANY_ROWS", 100)
    pvalues = [
        two_sample_test(
            rng.normal(size=120),
            rng.normal(size=120),
            kernel=NARROW_AND_WIDE,
            n_permutations=99,
            n_landmarks=60,
            random_state=i,
        ).pvalue
        for i in range(200)
    ]

    assert_level(pvalues)


def test_streams_are_compared_in_batches(rng):
    x, y = rng.normal(size=(4, 300, 2)), rng.normal(0.3, size=(3, 300, 2))

    different = two_sample_test(list(x), list(y), n_permutations=99, random_state=0)
    dependent = independence_test(list(x), list(x**2), n_permutations=99, random_state=0)

    assert different.pvalue == 0.01
    assert different.n_rows == 2100
    assert dependent.pvalue == 0.01


def test_arrays_of_another_library_give_the_same_answer(rng):
    x, y = rng.normal(size=(30, 2)), rng.normal(size=(25, 2))
    strict = [array_api_strict.asarray(rows) for rows in (x, y)]

    for statistic in (QuadraticMMD(), LandmarkMMD(), BlockMMD()):
        here = two_sample_test(x, y, statistic=statistic, n_permutations=19, random_state=0)
        there = two_sample_test(*strict, statistic=statistic, n_permutations=19, random_state=0)
        np.testing.assert_allclose(there.null, here.null, rtol=1e-8, atol=1e-14)
    here = independence_test(x[:25], y, n_permutations=19, random_state=0)
    there = independence_test(strict[0][:25, :], strict[1], n_permutations=19, random_state=0)
    np.testing.assert_allclose(there.null, here.null, rtol=1e-8)


def test_dependence_of_three_that_no_pair_shows_is_found(rng):
    """The third sign is the product of the first two: every pair is independent, all three are not."""
    x, y = rng.choice([-1.0, 1.0], size=(2, 200))

    three = independence_test(x, y, x * y, kernel=Delta(), n_permutations=99, random_state=0)
    pairs = [
        independence_test(a, b, kernel=Delta(), n_permutations=99, random_state=0).pvalue
        for a, b in [(x, y), (x, x * y), (y, x * y)]
    ]

    assert three.pvalue == 0.01
    assert min(pairs) > 0.01


@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_several_kernels_together_find_it_too(rng, spread):
    x, y, size = 1 + spread * np.abs(rng.normal(size=(3, 150)))
    signs = rng.choice([-1.0, 1.0], size=(2, 150))

    found = independence_test(x * signs[0], y * signs[1], size * signs.prod(axis=0), n_permutations=99, random_state=0)

    assert found.pvalue == 0.01


@pytest.mark.parametrize("kernel", [None, Gaussian("median")])
def test_three_independent_views_keep_the_level(rng, kernel):
    pvalues = [
        independence_test(*rng.normal(size=(3, 30)), kernel=kernel, n_permutations=39, random_state=i).pvalue
        for i in range(100)
    ]

    assert_level(pvalues)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": []}, "got an empty list"),
        ({"sample_weight": np.ones(5)}, "sample_weight is a pair"),
        ({"statistic": BlockMMD(), "sample_weight": (np.arange(1.0, 6.0), np.ones(5))}, "takes no sample_weight"),
        ({"statistic": BlockMMD(1)}, "size must be an integer of at least 2"),
    ],
)
def test_bad_options_are_refused_in_a_sentence(options, message):
    with pytest.raises(ValueError, match=message):
        two_sample_test(np.arange(5.0), np.arange(5.0), **options)


def test_streams_that_do_not_match_are_refused(rng):
    with pytest.raises(ValueError, match="same batches; one has 5 rows where the other has 4"):
        independence_test([rng.normal(size=(5, 1))], [rng.normal(size=(4, 1))])
    with pytest.raises(ValueError, match="same columns; got 2 and 1"):
        two_sample_test([rng.normal(size=(5, 2))], [rng.normal(size=(5, 1))])


def test_what_streams_do_not_take_is_refused(rng):
    batches = list(rng.normal(size=(2, 10, 1)))
    for option in ({"sample_weight": (np.ones(20), None)}, {"statistic": BlockMMD()}):
        with pytest.raises(ValueError, match="A stream is compared without sample_weight and by no other statistic"):
            two_sample_test(batches, batches, **option)
    with pytest.raises(ValueError, match="Streams are tested without sample_weight"):
        independence_test(batches, batches, sample_weight=np.ones(20))
    with pytest.raises(TypeError, match="view 3 must be an array or an iterable of batches; got None"):
        independence_test(batches[0], batches[1], None)


def test_data_frames_with_other_columns_are_not_compared(rng):
    tables = [pd.DataFrame(rng.normal(size=(9, 2)), columns=names) for names in (["a", "b"], ["b", "a"])]
    for call in (two_sample_test, covariate_shift_weights):
        with pytest.raises(ValueError, match=r"same columns in the same order; got \['a', 'b'\] and \['b', 'a'\]"):
            call(*tables)


def test_rows_without_weight_are_left_out_and_few_others_refused(rng):
    x, y = rng.normal(size=(30, 2)), rng.normal(size=(40, 2))
    weights = np.r_[np.ones(10), np.zeros(20)], np.ones(40)

    found = two_sample_test(x, y, sample_weight=weights, n_permutations=99, random_state=0)

    assert found.n_rows == 50
    assert np.all(np.isfinite(found.null))
    scaled = two_sample_test(x, y, sample_weight=(weights[0] * 1e200, weights[1] * 1e200), random_state=0)
    assert np.isfinite(scaled.statistic)
    with pytest.raises(ValueError, match=r"at least 4 rows of either sample .* got 3 and 40"):
        two_sample_test(x, y, sample_weight=(np.arange(30) < 3, weights[1]), random_state=0)


def test_a_statistic_is_an_object(rng):
    for wrong in ("quadratic", QuadraticMMD):
        with pytest.raises(TypeError, match=r"statistic must be QuadraticMMD\(\).* got ('quadratic'|<class)"):
            two_sample_test(rng.normal(size=9), rng.normal(size=9), statistic=wrong)
    with pytest.raises(TypeError, match=r"kernel must be a Kernel, such as Gaussian\(\); got <class"):
        two_sample_test(rng.normal(size=9), rng.normal(size=9), kernel=Gaussian)
