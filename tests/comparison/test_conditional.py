"""Conditional embeddings are Bayes' tables of categories, and distributions that move with what is given."""

import numpy as np
import pytest
from scipy import stats

from latentviews import ConditionalEmbedding, Delta, Gaussian
from latentviews.comparison.conditional import ConditionalDistributions

TABLE = np.array([[6, 2, 1], [1, 5, 4]])  # counts of x in columns given z in rows


def counted(table):
    """Rows z and x that come as often as a table says."""
    z, x = np.indices(table.shape)
    return np.repeat(z.ravel(), table.ravel()).astype(float)[:, None], np.repeat(x.ravel(), table.ravel()).astype(float)


def test_with_the_delta_kernel_it_is_bayes_table():
    z, x = counted(TABLE)

    found = ConditionalEmbedding(Delta(), Delta(), penalty=0.0).fit(z, x).at([[0.0], [1.0]])

    expected = TABLE / TABLE.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found.density([0.0, 1.0, 2.0]).T, expected, atol=1e-12)
    np.testing.assert_allclose(found.expectation(lambda rows: rows[:, 0] ** 2), expected @ [0, 1, 4], atol=1e-12)


def test_kernel_bayes_rule_is_bayes_rule_with_the_prior_that_is_given():
    z, x = counted(TABLE)
    prior = np.array([0.2, 0.5, 0.3])

    model = ConditionalEmbedding(Delta(), Delta(), penalty=0.0, random_state=0).fit(z, x)
    found = model.with_prior([0.0, 1.0, 2.0], prior).at([[0.0], [1.0]])

    joint = TABLE / TABLE.sum(axis=0) * prior  # p(z | x) prior(x)
    np.testing.assert_allclose(found.density([0.0, 1.0, 2.0]).T, joint / joint.sum(axis=1, keepdims=True), atol=1e-12)


def test_weights_are_the_gram_formula(rng):
    """w(z) ∝ (K + nλI)⁻¹ k(z) on Gram matrices."""
    z, x = rng.normal(size=(30, 2)), rng.normal(size=30)
    kernel, height = Gaussian(1.0), Gaussian(1.0).diagonal(np.zeros((1, 2)))[0]
    gram, ahead = kernel.gram(z, z) / height, kernel.gram(z, z[:4] + 0.0) / height

    found = (
        ConditionalEmbedding(Gaussian(0.3), kernel, penalty=0.01, n_landmarks=30, random_state=0).fit(z, x).at(z[:4])
    )

    expected = np.linalg.solve(gram + 30 * 0.01 * np.eye(30), ahead)
    np.testing.assert_allclose(found.weights, expected / expected.sum(axis=0), atol=1e-8)


def test_far_from_everything_there_is_only_the_margin(rng):
    z, x = rng.normal(size=(50, 1)), rng.normal(size=50)

    found = ConditionalEmbedding(kernel_z=Gaussian(0.5), random_state=0).fit(z, x).at([[1e6]])

    np.testing.assert_allclose(found.mean()[0, 0], x.mean())


def test_a_bimodal_spread_that_widens_is_seen(rng):
    z = rng.uniform(0, 1, size=(1500, 1))
    side = rng.choice([-1.0, 1.0], size=1500)
    x = side * (0.5 + 2 * z[:, 0]) + 0.2 * rng.normal(size=1500)
    ahead = rng.uniform(0, 1, size=(300, 1))
    truth = ahead[:, 0] * 2 + 0.5
    y = rng.choice([-1.0, 1.0], size=300) * truth + 0.2 * rng.normal(size=300)

    found = ConditionalEmbedding(random_state=0).fit(z, x).at(ahead)

    best = np.log(0.5 * stats.norm.pdf(y, truth, 0.2) + 0.5 * stats.norm.pdf(y, -truth, 0.2))
    assert found.log_density(y).mean() > best.mean() - 0.15
    assert found.log_density(y).mean() > stats.norm.logpdf(y, 0, np.hypot(truth, 0.2)).mean() + 0.4  # a Gaussian's
    np.testing.assert_allclose(found.quantile(0.9), truth, atol=0.5)
    assert np.mean(np.abs(found.quantile(0.9) - truth) < 0.25) > 0.9
    draws = found.sample(20, random_state=0)[..., 0]
    assert np.mean(np.abs(np.abs(draws) - truth) < 0.7) > 0.95


def test_distances_are_zero_where_nothing_depends(rng):
    z, x = rng.integers(2, size=400).astype(float)[:, None], rng.normal(size=400)

    near = ConditionalEmbedding(kernel_z=Delta(), random_state=0).fit(z, x).at([[0.0], [1.0]]).mmd()
    far = ConditionalEmbedding(kernel_z=Delta(), random_state=0).fit(z, x + 5 * z[:, 0]).at([[0.0], [1.0]]).mmd()

    np.testing.assert_allclose(np.diag(near), 0.0, atol=1e-7)
    assert far[0, 1] > 3 * near[0, 1]


def test_a_weight_of_two_is_a_row_twice():
    z, x = counted(TABLE)
    whole = ConditionalEmbedding(Delta(), Delta(), penalty=0.1, random_state=0)
    pairs = np.indices(TABLE.shape).reshape(2, -1).astype(float)

    twice = whole.fit(z, x).at([[0.0]]).density([0.0, 1.0, 2.0])
    weighted = whole.fit(pairs[0][:, None], pairs[1], sample_weight=TABLE.ravel()).at([[0.0]]).density([0.0, 1.0, 2.0])

    np.testing.assert_allclose(weighted, twice, atol=1e-12)


def found():
    """Distributions of one column given each of five."""
    return ConditionalEmbedding().fit(np.eye(5), np.arange(5)).at(np.eye(5))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: found().density([np.nan]), "x contains NaN"),
        (lambda: found().density(np.eye(2)), "rows of 1 columns; got 2"),
        (lambda: found().quantile(np.nan), "from 0 to 1"),
        (lambda: found().quantile(0.5, column=1), "one of the 1 from 0 on; got 1"),
        (lambda: found().expectation(lambda x: 1.0), r"one value per row, 5; got shape \(\)"),
        (lambda: found().mmd(3), "conditional distributions of the same columns; got 3"),
        (lambda: found().sample(0), "n_samples must be an integer of at least 1"),
        (lambda: ConditionalEmbedding().fit(np.eye(5), np.arange(5)).with_prior([]), "x has no rows"),
        (lambda: ConditionalEmbedding().fit(np.zeros((5, 1)), [0, 1, np.nan, 3, 4]), "y contains NaN"),
        (lambda: ConditionalEmbedding().fit(np.zeros((5, 1)), np.zeros(4)), "inconsistent numbers of samples"),
        (lambda: ConditionalEmbedding(penalty=-1.0).fit(np.zeros((5, 1)), np.zeros(5)), "penalty must be"),
        (lambda: ConditionalEmbedding().fit(np.eye(5), np.arange(5)).at(np.eye(5)).quantile(2.0), "from 0 to 1"),
        (lambda: ConditionalEmbedding().fit(np.eye(5), np.arange(5)).at(np.eye(5)).log_density([1.0]), "5; got 1"),
        (lambda: ConditionalEmbedding().fit(np.eye(5), np.arange(5)).with_prior(np.eye(5)), "rows of 1 columns; got 5"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_row_far_from_all_others_has_a_finite_density(rng):
    z, x = rng.uniform(size=(200, 1)), rng.normal(size=200)

    found = ConditionalEmbedding(random_state=0).fit(z, x).at([[0.5]])

    broad = stats.cauchy.logpdf(50.0, np.median(x), np.ptp(np.percentile(x, [25, 75])) / 1.349)
    np.testing.assert_allclose(found.log_density([50.0]), broad - np.log(201))


def test_quantiles_of_categories_are_categories():
    z, x = counted(TABLE)

    found = ConditionalEmbedding(Delta(), Delta(), penalty=0.0).fit(z, x).at([[0.0], [1.0]])

    np.testing.assert_array_equal(found.quantile([0.5, 2 / 3, 0.95]), [[0, 1], [0, 2], [2, 2]])


def test_bandwidths_grow_wide_along_columns_that_tell_nothing(rng):
    z = rng.uniform(-1, 1, size=(300, 2))
    x = np.sin(3 * z[:, 0]) + 0.1 * rng.normal(size=300)

    model = ConditionalEmbedding(random_state=0).fit(z, x)

    first, second = model.kernel_z_.bandwidth
    assert second > 4 * first


def test_a_density_whose_height_no_number_holds_is_infinite_where_it_has_a_share():
    kernel = Gaussian(1e-310)
    points, weights = np.array([[0.0], [1.0], [2.0]]), np.array([[1.0, 0.0], [0.0, 0.5], [0.0, 0.5]])

    found = ConditionalDistributions(points, weights, kernel).density(points)

    assert found.tolist() == [[np.inf, 0.0], [0.0, np.inf], [0.0, np.inf]]
