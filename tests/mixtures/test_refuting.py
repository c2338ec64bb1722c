"""Whether rows refute that views are independent inside classes."""

import numpy as np
import pytest
from scipy.stats import binom, kstest

from latentviews.mixtures.dependence.refuting import p_value_of_independence

pytestmark = pytest.mark.cheap


def two_classes(rng, slope, n=400):
    """Skewed columns of two classes that overlap, and the posteriors of the classes."""
    y = rng.integers(2, size=n)
    z = rng.normal(size=(n, 3))
    z[:, 1] += slope * z[:, 0]
    z[:, 1] /= np.sqrt(1 + slope**2)
    log_odds = 2.0 * (z + y[:, None] * [0, 0, 2.0])[:, 2] - 2.0  # of N(2, 1) against N(0, 1) in the last column
    shares = 1 / (1 + np.exp(-log_odds))
    return np.exp(z + y[:, None] * [0, 0, 2.0]), np.column_stack([1 - shares, shares])


def test_p_values_are_uniform_where_views_are_independent(rng):
    found = [p_value_of_independence(*two_classes(rng, 0.0), [[0], [1], [2]]) for _ in range(200)]
    assert kstest(found, "uniform").pvalue > 1e-4
    assert np.sum(np.array(found) < 0.05) <= binom.ppf(0.9999, 200, 0.05)


def test_dependence_between_views_is_found_and_inside_views_allowed(rng):
    x, shares = two_classes(rng, 0.5)
    assert p_value_of_independence(x, shares, [[0], [1], [2]]) < 1e-6
    assert p_value_of_independence(x, shares, [[0, 1], [2]]) > 1e-4


def test_rows_with_gaps_are_left_out_and_few_rows_refute_nothing(rng):
    x, shares = two_classes(rng, 0.2)
    gaps = np.full((30, 3), np.nan)
    assert p_value_of_independence(
        np.concatenate([x, gaps]), np.concatenate([shares, shares[:30]]), [[0], [1], [2]]
    ) == p_value_of_independence(x, shares, [[0], [1], [2]])
    assert p_value_of_independence(x[:4], shares[:4], [[0], [1], [2]]) == 1.0


def test_columns_of_one_value_and_copies_give_an_answer(rng):
    x, shares = two_classes(rng, 0.0)
    x[:, 1] = 1.0
    assert 0 <= p_value_of_independence(x, shares, [[0], [1], [2]]) <= 1
    x[:, 1] = x[:, 0]
    assert p_value_of_independence(x, shares, [[0], [1], [2]]) < 1e-12
