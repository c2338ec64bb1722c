"""The algebra of Gaussian copulas against SciPy's normal distributions and literal formulas."""

import numpy as np
import pytest
from scipy import stats

from latentviews.densities.gaussian_copulas import (
    draw_scores,
    drawn_to_identity,
    log_copula,
    patterns,
    regression,
    to_correlations,
)


def random_covariances(k, c, rng):
    factors = rng.normal(size=(k, c, c))
    return factors @ factors.transpose(0, 2, 1) + 0.5 * np.eye(c)


def test_the_log_density_is_the_joint_normal_over_the_product_of_standard_normals(rng):
    covariances, means = random_covariances(3, 4, rng), rng.normal(size=(3, 4))
    scores = rng.normal(size=(3, 4, 20))
    for given, center in ((means, means), (None, np.zeros((3, 4)))):
        found = log_copula(scores, covariances, given)
        for h in range(3):
            joint = stats.multivariate_normal(center[h], covariances[h]).logpdf(scores[h].T)
            np.testing.assert_allclose(found[h], joint - stats.norm.logpdf(scores[h]).sum(axis=0), atol=1e-10)


def test_a_copula_of_no_column_is_one():
    assert np.all(log_copula(np.empty((2, 0, 5)), np.empty((2, 0, 0))) == np.zeros((2, 5)))


def test_rows_with_the_same_columns_are_together(rng):
    present = rng.random((200, 3)) < 0.6
    found = patterns(present)
    assert sorted(np.concatenate([rows for rows, _ in found])) == list(range(200))
    for rows, columns in found:
        expected = np.isin(np.arange(3), columns)
        assert np.all(present[rows] == expected)
    assert len(found) == len(np.unique(present, axis=0))
    whole = patterns(np.ones((5, 3), dtype=bool))
    assert len(whole) == 1
    assert whole[0].rows == slice(None)


def test_slopes_and_what_they_leave_are_those_of_least_squares(rng):
    covariance = random_covariances(1, 4, rng)
    slopes, rest = regression(covariance, [0, 2], [3, 1])
    within = covariance[0][np.ix_([0, 2], [0, 2])]
    across = covariance[0][np.ix_([3, 1], [0, 2])]
    np.testing.assert_allclose(slopes[0] @ within, across, atol=1e-12)
    precision = np.linalg.inv(covariance[0])[np.ix_([3, 1], [3, 1])]
    np.testing.assert_allclose(rest[0], np.linalg.inv(precision), atol=1e-10)


def test_nothing_known_leaves_the_covariance(rng):
    covariance = random_covariances(2, 3, rng)
    slopes, rest = regression(covariance, np.array([], dtype=int), [0, 1])
    assert slopes.shape == (2, 2, 0)
    np.testing.assert_array_equal(rest, covariance[:, :2, :2])


def test_correlations_are_drawn_towards_zero_by_a_share(rng):
    covariances = random_covariances(2, 3, rng)
    correlations = to_correlations(covariances)
    np.testing.assert_allclose(np.diagonal(correlations, axis1=1, axis2=2), 1.0)
    drawn = drawn_to_identity(correlations, np.array([0.0, 0.25]))
    np.testing.assert_allclose(drawn[0], correlations[0])
    assert drawn[1, 0, 1] == pytest.approx(0.75 * correlations[1, 0, 1])
    assert drawn[1, 0, 0] == pytest.approx(1.0)


def test_draws_have_the_covariance(rng):
    covariance, mean = random_covariances(1, 3, rng)[0], np.array([1.0, -2.0, 0.0])
    drawn = draw_scores(40_000, covariance, rng, mean)
    scale = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    limit = stats.norm.isf(1e-6 / 18) / 200
    assert np.all(np.abs(np.cov(drawn.T) - covariance) < 2 * limit * scale)
    assert np.all(np.abs(drawn.mean(axis=0) - mean) < limit * np.sqrt(np.diag(covariance)))
