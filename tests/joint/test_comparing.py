"""Two samples in the low-rank basis of both: the level is exact, and in many columns power is gained."""

import numpy as np
import pytest
from scipy import stats

from latentviews import Gaussian, TreeMMD, two_sample_test


def one_factor(rng, n_rows, n_columns, loading):
    """Columns that share a hidden sign."""
    side = rng.choice([-1.0, 1.0], size=(n_rows, 1))
    return loading * side + rng.normal(size=(n_rows, n_columns)) * np.sqrt(1 - loading**2)


def pvalue(statistic, seed, x, y):
    return two_sample_test(
        x, y, kernel=Gaussian("median"), statistic=statistic, n_permutations=39, random_state=seed
    ).pvalue


def test_the_level_is_kept(rng):
    pvalues = [pvalue(TreeMMD(2), i, *rng.normal(size=(2, 30, 4))) for i in range(60)]

    low, high = stats.binom.ppf([1e-5, 1 - 1e-5], 60, 0.05)
    assert low <= np.sum(np.array(pvalues) <= 0.05) <= high


def test_a_factor_that_many_columns_share_is_seen(rng):
    """Same margins to two moments; one sample has a hidden sign behind all its columns."""
    found = [pvalue(TreeMMD(3), i, one_factor(rng, 150, 12, 0.6), rng.normal(size=(150, 12))) <= 0.05 for i in range(6)]

    assert sum(found) >= 5


def test_one_column_is_refused(rng):
    with pytest.raises(ValueError, match="two columns or more"):
        pvalue(TreeMMD(), 0, rng.normal(size=(10, 1)), rng.normal(size=(10, 1)))


def test_without_a_kernel_several_are_tried(rng):
    x, y = rng.normal(size=(60, 4)), rng.normal(0.8, size=(60, 4))

    found = two_sample_test(x, y, statistic=TreeMMD(), n_permutations=39, random_state=0)

    assert found.pvalue == 0.025
