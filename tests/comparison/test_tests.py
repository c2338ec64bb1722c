"""Two-sample and independence tests keep their level, have power, and are the formulas they claim to be."""

import tracemalloc

import numpy as np
import pytest
from scipy import stats

from catalogue import KERNELS
from latentviews import Delta, Gaussian, HalfLine, Laplace, Real, VonMises, independence_test, two_sample_test
from latentviews.comparison import independence
from latentviews.comparison.features import LANDMARKS, curved, whitened
from latentviews.comparison.results import Draws
from latentviews.core.features.landmarks import LandmarkFeatures
from latentviews.core.kernels.base import UnitHeight

FALSE_ALARM = 1e-6
MEDIAN = Gaussian("median")


def literal_mmd(kernel, x, y):
    """The unbiased MMD² as sums over pairs of rows."""
    kxx, kyy, kxy = kernel.gram(x, x), kernel.gram(y, y), kernel.gram(x, y)
    m, n = len(x), len(y)
    return (kxx.sum() - np.trace(kxx)) / (m * (m - 1)) + (kyy.sum() - np.trace(kyy)) / (n * (n - 1)) - 2 * kxy.mean()


def literal_hsic(kernel, x, y):
    """tr(K H L H) / n²."""
    n = len(x)
    center = np.eye(n) - 1 / n
    return np.trace(kernel.gram(x, x) @ center @ kernel.gram(y, y) @ center) / n**2


def assert_uniform(pvalues):
    """Neither too many small p-values nor too few, with one false alarm in a million."""
    for level in (0.05, 0.2, 0.5):
        low, high = stats.binom.ppf([FALSE_ALARM / 6, 1 - FALSE_ALARM / 6], len(pvalues), level)
        assert low <= np.sum(np.asarray(pvalues) <= level + 1e-12) <= high


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_statistics_are_the_gram_formulas(kernel, rng):
    x, y = rng.normal(size=(60, 2)), rng.normal(0.5, size=(60, 2))
    x, y = ((kernel.space or Real()).reflected(rows) for rows in (x, y))

    mmd = two_sample_test(x, y[:45], kernel=kernel, n_permutations=1, random_state=0)
    hsic = independence_test(x, x + y, kernel=kernel, n_permutations=1, random_state=0)

    np.testing.assert_allclose(mmd.statistic, literal_mmd(kernel, x, y[:45]), rtol=1e-7)
    np.testing.assert_allclose(hsic.statistic, literal_hsic(kernel, x, x + y), rtol=1e-7)


def test_a_smooth_kernel_is_exact_beyond_the_landmarks(rng):
    x = rng.normal(size=(3 * LANDMARKS, 1))
    y = x + rng.normal(size=x.shape)

    found = independence_test(x, y, kernel=Gaussian(1.0), n_permutations=1, random_state=0)

    np.testing.assert_allclose(found.statistic, literal_hsic(Gaussian(1.0), x, y), rtol=1e-6)


def test_features_and_gram_matrices_give_the_same_draws(rng):
    first, second = [rng.normal(size=(30, d)) for d in (7, 3)], [rng.normal(size=(30, d)) for d in (5, 1, 2)]
    orders = [rng.permutation(30) for _ in range(4)]

    draws = independence._gram_products(first, second, orders)

    assert draws.shape == (4, 2, 3)
    np.testing.assert_allclose(draws, independence._feature_products(first, second, orders), rtol=1e-10)
    literal = np.sum((first[1].T @ second[2][orders[3]] / 30) ** 2)
    np.testing.assert_allclose(draws[3, 1, 2], literal, rtol=1e-10)


def test_null_draws_are_the_statistic_of_rows_in_other_samples(rng):
    """The mean of the unbiased MMD² over all divisions of the rows is zero."""
    x, y = rng.normal(size=30), rng.normal(3.0, size=20)

    found = two_sample_test(x, y, n_permutations=4000, random_state=0)

    error = found.null.std() / np.sqrt(len(found.null))
    assert abs(found.null.mean()) < stats.norm.isf(FALSE_ALARM / 2) * error
    assert found.statistic > found.null.max()


def test_two_sample_pvalues_are_uniform_under_the_hypothesis(rng):
    pvalues = [
        two_sample_test(rng.normal(size=25), rng.normal(size=15), n_permutations=99, random_state=i).pvalue
        for i in range(200)
    ]

    assert_uniform(pvalues)


def test_independence_pvalues_are_uniform_under_the_hypothesis(rng):
    pvalues = [
        independence_test(
            rng.normal(size=30), rng.gamma(1.0, size=30), kernel=MEDIAN, n_permutations=99, random_state=i
        ).pvalue
        for i in range(200)
    ]

    assert_uniform(pvalues)


def test_few_landmarks_keep_the_level(rng):
    pvalues = [
        independence_test(
            rng.normal(size=(30, 3)),
            rng.normal(size=30),
            kernel=MEDIAN,
            n_permutations=99,
            n_landmarks=3,
            random_state=i,
        ).pvalue
        for i in range(200)
    ]

    assert_uniform(pvalues)


def overlapping_classes(rng, n, correlation=0.0):
    """Two columns, correlated within classes, and the true posterior of the first of two overlapping classes."""
    labels = rng.integers(2, size=n)
    noise = rng.multivariate_normal([0, 0], [[1, correlation], [correlation, 1]], size=n)
    x = noise + 1.5 * labels[:, None]
    law = stats.multivariate_normal([0, 0], [[1, correlation], [correlation, 1]])
    first, second = law.pdf(x), law.pdf(x - 1.5)
    return x, first / (first + second)


def test_posterior_draws_keep_the_level_where_classes_overlap(rng):
    pvalues = []
    for i in range(200):
        x, posterior = overlapping_classes(rng, 80)
        found = independence_test(
            x[:, 0], x[:, 1], kernel=MEDIAN, sample_weight=posterior, n_permutations=99, random_state=i
        )
        pvalues.append(found.pvalue)

    assert_uniform(pvalues)


def test_without_weights_overlapping_classes_are_dependent(rng):
    x, _ = overlapping_classes(rng, 1000)

    assert independence_test(x[:, 0], x[:, 1], n_permutations=99, random_state=0).pvalue == 0.01


def test_dependence_within_a_class_is_found(rng):
    x, posterior = overlapping_classes(rng, 1000, correlation=0.5)

    found = independence_test(x[:, 0], x[:, 1], sample_weight=posterior, n_permutations=99, random_state=0)

    assert found.pvalue == 0.01
    assert found.n_rows < 600
    assert 0.15 < found.effect < 0.65


def test_a_difference_in_shape_alone_is_found(rng):
    x, y = rng.normal(size=500), rng.choice([-1.0, 1.0], size=500) * rng.normal(1.0, 0.3, size=500)

    assert two_sample_test(x, y, n_permutations=99, random_state=0).pvalue == 0.01


def test_the_shape_of_clouds_is_found_in_few_rows():
    """Four clouds of 25 rows each: where they are drowns their shape, unless kernels are whitened."""
    found = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x, y = (
            8.0 * rng.integers(2, size=(100, 2)) + rng.multivariate_normal([0, 0], [[1, r], [r, 1]], size=100)
            for r in (0.0, 0.9)
        )
        found.append(two_sample_test(x, y, n_permutations=99, random_state=seed).pvalue <= 0.05)

    assert np.mean(found) > 0.7  # .5 with narrow kernels as they are


def test_dependence_without_correlation_is_found(rng):
    angle = rng.uniform(0, 2 * np.pi, size=400)

    found = independence_test(np.cos(angle), np.sin(angle), n_permutations=99, random_state=0)

    assert found.pvalue == 0.01


def test_relations_of_squares_alone_are_found_in_few_rows():
    """Of sixty points of a ring: lines are rarer than by chance, and a test that hears them only finds one in fifty."""
    found = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        angle, radius = rng.uniform(0, 2 * np.pi, size=60), rng.uniform(0.6, 1.4, size=60)
        x, y = (radius * turn + 0.2 * rng.normal(size=60) for turn in (np.cos(angle), np.sin(angle)))
        found.append(independence_test(x, y, n_permutations=99, random_state=seed).pvalue <= 0.05)

    assert np.mean(found) > 0.4


def test_patterns_that_are_fine_in_both_views_are_found():
    """A spiral: neither view's fine functions go with the other's lines."""
    found = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        angle, noise = rng.uniform(0, 12, size=100), 0.7 * rng.normal(size=(2, 100))
        x, y = (angle * turn + some for turn, some in zip((np.cos(angle), np.sin(angle)), noise, strict=True))
        found.append(independence_test(x, y, n_permutations=99, random_state=seed).pvalue <= 0.05)

    assert np.mean(found) > 0.8  # without pairs of fine kernels .2


@pytest.mark.parametrize("columns", [1, 2])
def test_a_curved_kernel_has_nothing_that_goes_with_a_column(columns, rng):
    rows = rng.gamma(2.0, size=(200, columns)) * [1.0, 1e6][:columns]

    phi = curved(Gaussian(8.0 * np.array([1.0, 1e6][:columns])), rows, 60).features.transform(rows)

    centred = phi - phi.mean(axis=0)
    assert np.abs(centred.T @ (rows / rows.std(axis=0))).max() < 1e-9 * len(rows)
    squares = (
        rows[:, [0]] ** 2
        - np.column_stack([np.ones(200), rows])
        @ np.linalg.lstsq(np.column_stack([np.ones(200), rows]), rows[:, [0]] ** 2)[0]
    )
    left = squares - centred @ np.linalg.lstsq(centred, squares)[0]
    assert np.sum(left**2) < 0.05 * np.sum(squares**2)


def test_curves_of_many_columns_need_no_matrix_between_columns(rng):
    rows = rng.normal(size=(100, 2000))
    tracemalloc.start()
    curved(Gaussian(250.0), rows, 20)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert most < 8 * rows.shape[1] ** 2


def test_many_landmarks_of_many_rows_need_few_matrices_between_rows(rng):
    x, y = rng.normal(size=(2, 2500, 6))
    tracemalloc.start()
    independence_test(x, y, kernel=Gaussian(1.5), n_landmarks=700, n_permutations=1, random_state=0)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert most < 4 * 8 * len(x) ** 2


def test_two_values_have_no_curve(rng):
    rows = rng.integers(2, size=(50, 1)).astype(float)

    assert not curved(Gaussian(4.0), rows, 60).features.transform(rows).any()
    assert not curved(Gaussian(4.0), np.ones((50, 1)), 60).features.transform(np.ones((50, 1))).any()
    pvalues = [
        independence_test(
            rng.integers(2, size=40), rng.integers(2, size=40), n_permutations=39, random_state=seed
        ).pvalue
        for seed in range(80)
    ]
    assert_uniform(pvalues)


def test_delta_kernels_give_the_squared_deviations_of_a_table(rng):
    x = rng.integers(3, size=500).astype(float)
    y = np.where(rng.random(500) < 0.3, x, rng.integers(4, size=500))
    table = np.array([[np.mean((x == a) & (y == b)) for b in range(4)] for a in range(3)])
    expected = np.sum((table - np.outer(table.sum(axis=1), table.sum(axis=0))) ** 2)

    found = independence_test(x, y, kernel=Delta(), n_permutations=199, random_state=0)

    np.testing.assert_allclose(found.statistic, expected, rtol=1e-9)
    assert found.pvalue == 1 / 200


def test_delta_pvalues_agree_with_the_chi_square_test(rng):
    """On two by two tables HSIC is a multiple of Pearson's statistic, so the permutation p-values are near its own."""
    x, y = (rng.integers(2, size=400).astype(float) for _ in range(2))
    table = np.array([[np.sum((x == a) & (y == b)) for b in range(2)] for a in range(2)])

    found = independence_test(x, y, kernel=Delta(), n_permutations=1999, random_state=0)

    # ties make the discrete p-value larger than the limit by a step of the table, a few hundredths here
    assert abs(found.pvalue - stats.chi2_contingency(table, correction=False).pvalue) < 0.1


def test_delta_pvalues_are_uniform_under_the_hypothesis(rng):
    """Ties among the draws of categories are broken at random, or too few small p-values would come."""
    pvalues = [
        two_sample_test(
            rng.integers(2, size=20), rng.integers(2, size=20), kernel=Delta(), n_permutations=39, random_state=i
        ).pvalue
        for i in range(500)
    ]

    assert_uniform(pvalues)


def test_ties_are_places_at_random_and_never_the_zeroth(rng):
    draws = Draws(1.0, np.array([0.0, 1.0, 1.0, 2.0]), 2.0)

    assert {draws.pvalue(rng) for _ in range(60)} == {0.4, 0.6, 0.8}
    assert Draws(3.0, draws.null, 3.0).pvalue(rng) == 0.2
    assert Draws(1.0, np.ones(4), 1.0).pvalue(rng) == 1.0  # rows that tell nothing


def test_whitened_kernels_are_fishers_discriminant(rng):
    """‖(Σ + λI)^(-1/2) (μ_x − μ_y)‖² with the covariance of all rows, whatever the features are."""
    x, y = rng.normal(size=(40, 2)), rng.normal(0.5, size=(30, 2))
    pooled = np.concatenate([x, y])
    kernel = whitened(Gaussian(2.0), pooled, 100)
    phi = LandmarkFeatures(UnitHeight(Gaussian(2.0)), 100, tol=1e-6, random_state=0).fit(pooled).transform(pooled)
    difference = phi[:40].mean(axis=0) - phi[40:].mean(axis=0)
    spread = np.cov(phi.T, bias=True) + 0.01 * np.eye(phi.shape[1])

    gram = kernel.gram(pooled, pooled)

    signs = np.r_[np.full(40, 1 / 40), np.full(30, -1 / 30)]
    np.testing.assert_allclose(signs @ gram @ signs, difference @ np.linalg.solve(spread, difference), rtol=1e-8)


def test_a_whitened_curve_is_blind_to_lines_and_sees_squares(rng):
    """Its features are not correlated with any column, and the best sum of them is almost a product of two."""
    rows = rng.normal(size=(200, 3))
    bent = curved(Gaussian(2.0), rows, 100)
    before = bent.features.tail_.copy()

    phi = whitened(bent, rows, 100).features.transform(rows)

    phi, columns = phi - phi.mean(axis=0), rows - rows.mean(axis=0)
    np.testing.assert_allclose(phi.T @ columns / 200, 0.0, atol=1e-8)
    square = rows[:, 0] * rows[:, 1]
    square = square - square.mean() - columns @ np.linalg.lstsq(columns, square, rcond=None)[0]
    left = square - phi @ np.linalg.lstsq(phi, square, rcond=1e-6)[0]
    assert np.sum(left**2) < 0.1 * np.sum(square**2)
    assert phi.var(axis=0).max() < 1.0
    np.testing.assert_array_equal(bent.features.tail_, before)


def test_a_correlation_is_found_and_the_witness_says_where(rng):
    x = rng.normal(size=(150, 3))
    y = rng.multivariate_normal(np.zeros(3), np.full((3, 3), 0.45) + 0.55 * np.eye(3), size=150)

    found = two_sample_test(x, y, n_permutations=199, random_state=0)

    assert found.pvalue <= 0.02
    corner = np.ones((1, 3)) * 1.5
    assert found.witness.at(-corner)[0] < 0 > found.witness.at(corner)[0]  # there y has more


def test_each_argument_may_have_its_own_kernel(rng):
    x, y = rng.integers(2, size=300).astype(float), rng.vonmises(0.0, 1.0, size=300)

    dependent = independence_test(x, y + 2 * x, kernel=(Delta(), VonMises("median")), n_permutations=99, random_state=0)

    assert dependent.pvalue == 0.01


def test_effect_runs_from_none_to_all(rng):
    x, y = rng.normal(size=1000), rng.normal(size=1000)

    assert independence_test(x, x, n_permutations=20, random_state=0).effect > 0.99
    assert independence_test(x, y, n_permutations=20, random_state=0).effect < 0.1
    assert two_sample_test(x, y + 50, kernel=Gaussian(1.0), n_permutations=20, random_state=0).effect > 0.99
    assert two_sample_test(x, y, n_permutations=20, random_state=0).effect < 0.1


def test_no_more_features_than_landmarks_are_formed(rng, monkeypatch):
    sizes = []
    transform = LandmarkFeatures.transform

    def spy(self, X):
        phi = transform(self, X)
        sizes.append(phi.shape)
        return phi

    monkeypatch.setattr(LandmarkFeatures, "transform", spy)
    x = rng.normal(size=(20_000, 3))

    found = independence_test(x, x[:, 0], kernel=Laplace(0.1), n_permutations=1, n_landmarks=20, random_state=0)

    assert found.n_rows == 20_000
    assert max(columns for _, columns in sizes) == 20


def test_a_run_is_a_function_of_its_seed(rng):
    x, y = rng.normal(size=50), rng.normal(size=50)

    first, second = (independence_test(x, y, random_state=3) for _ in range(2))

    np.testing.assert_array_equal(first.null, second.null)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((np.zeros((5, 2)), np.zeros((5, 3))), {}, "same columns; got 2 and 3"),
        ((np.zeros(3), np.zeros(5)), {}, "at least 4 rows; x has 3"),
        ((np.zeros((5, 2, 2)), np.zeros(5)), {}, r"x needs shape \(n,\) or \(n, d\); got \(5, 2, 2\)"),
        ((np.array([0, 1, 2, np.nan]), np.zeros(5)), {}, "x contains NaN or infinity"),
        ((np.arange(5.0), np.arange(5.0) * 1e200), {}, r"Column 0 of y holds 1e\+200, whose square is no number"),
        (
            (np.arange(5.0) * 1e-200, np.arange(5.0) * 1e-200),
            {},
            "Column 0 varies by 4e-200, whose square is no number",
        ),
        (
            ([np.zeros((5, 2)), np.zeros((5, 3))], [np.zeros((5, 2))]),
            {},
            "batches of x need the same columns; got 2 and 3",
        ),
        (([np.zeros((1, 2))], [np.zeros((5, 2))]), {}, "at least 4 rows; x has 1"),
        (([np.ones((5, 1))], [np.full((5, 1), np.nan)]), {}, "y contains NaN or infinity"),
        (([np.full((5, 1), 1e200)], [np.ones((5, 1))]), {}, r"Column 0 of x holds 1e\+200"),
        (([np.array([["a"], ["b"]])], [np.ones((5, 1))]), {}, "x must hold real numbers"),
        ((np.arange(5.0), np.arange(5.0)), {"n_permutations": 0}, "n_permutations must be an integer of at least 1"),
        (
            (np.arange(5.0), np.arange(5.0) - 3),
            {"kernel": Gaussian(space=HalfLine())},
            "Column 0 holds -., which is out",
        ),
        ((np.arange(5.0), np.arange(5.0)), {"n_landmarks": 0}, "n_landmarks must be an integer of at least 1"),
    ],
)
def test_bad_samples_are_refused_in_a_sentence(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        two_sample_test(*arguments, **options)


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [
        (np.arange(6.0), {}, "same number of rows; got 5 and 6"),
        (np.arange(5.0), {"kernel": [Delta()] * 3}, "one kernel or one per view, for x and y; got 3"),
        (np.arange(5.0), {"sample_weight": np.full(5, 2.0)}, "at most 1; got 2"),
        (np.arange(5.0), {"sample_weight": np.ones(4)}, r"one number per row, shape \(5,\); got \(4,\)"),
        (np.arange(5.0), {"sample_weight": np.full(5, 1e-9)}, "which sums to 5e-09, drew 0"),
        (np.ones(5), {}, "All 5 rows are the same, so there is nothing to compare"),
        (np.arange(5.0) - 3, {"kernel": [None, Gaussian(space=HalfLine())]}, "Column 0 holds -., which is outside"),
    ],
)
def test_bad_pairs_are_refused_in_a_sentence(y, options, message):
    with pytest.raises(ValueError, match=message):
        independence_test(np.arange(5.0), y, **options)


def test_streams_that_do_not_belong_together_are_refused():
    batch = np.arange(10.0)[:, None]

    with pytest.raises(ValueError, match="same batches; one has 10 rows where the other has 0"):
        independence_test([batch, batch], [batch], n_permutations=9)


@pytest.mark.parametrize("scale", [1e-140, 1e140])
def test_units_do_not_matter(scale, rng):
    """Heights of Gaussians in five columns of such units are no numbers."""
    x, y = rng.normal(size=(40, 5)), rng.normal(0.3, size=(40, 5))

    for test in (two_sample_test, independence_test):
        found, scaled = (test(x * unit, y * unit, n_permutations=39, random_state=0) for unit in (1.0, scale))

        assert found.pvalue == scaled.pvalue
        np.testing.assert_allclose(found.effect, scaled.effect, rtol=1e-6)


def test_what_is_not_a_kernel_is_refused():
    with pytest.raises(TypeError, match=r"kernel must be a Kernel, such as Gaussian\(\); got 'rbf'"):
        two_sample_test(np.arange(5.0), np.arange(5.0), kernel="rbf")


@pytest.mark.parametrize("n_rows", [200, 1000, 2000])
@pytest.mark.parametrize("correlation", [0.5, 0.9])
def test_the_effect_is_about_the_correlation_whatever_the_number_of_rows(correlation, n_rows, rng):
    x, noise = rng.normal(size=(2, n_rows))
    y = correlation * x + np.sqrt(1 - correlation**2) * noise

    found = independence_test(x, y, n_permutations=49, random_state=0)

    assert found.effect == pytest.approx(correlation, abs=0.12)
