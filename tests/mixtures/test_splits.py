"""Classes of dependent views that no valley parts, told by held-out rows; and more classes than parts."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from latentviews import MultiViewMixture
from latentviews.mixtures.dependence.grids import ColumnGrids
from latentviews.mixtures.dependence.merging import Landscape, merge_until, merge_where
from latentviews.mixtures.dependence.splits import JudgingRows


def crossing(n, rng):
    """Two classes around one center, with opposite correlations: the density has one peak."""
    y = rng.integers(2, size=n)
    x = rng.normal(size=(n, 4))
    x[:, [1, 3]] = np.where(y[:, None] == 0, 0.95, -0.95) * x[:, [0, 2]] + 0.3 * x[:, [1, 3]]
    return x, y


def pairs(n, rng):
    """Four far pairs of classes, in which two overlap and columns go together in opposite ways."""
    y = rng.integers(8, size=n)
    x, slope = rng.normal(size=(n, 3)), np.where(y % 2 == 0, -0.9, 0.9)
    for j in (1, 2):
        x[:, j] = slope * x[:, j - 1] + np.sqrt(1 - slope**2) * x[:, j]
    x[:, 0] += 2.6 * (y % 2)
    return x + 9 * np.column_stack([y // 2 % 2, y // 4, 0 * y]), y


def bent(n, rng):
    """One class along a parabola."""
    t = rng.uniform(-1, 1, n)
    return np.column_stack([3 * t, 3 * t**2, np.zeros(n)]) + 0.25 * rng.normal(size=(n, 3))


def judging(x, y):
    """Rows and posteriors of two parts."""
    grids = ColumnGrids.around(x, list(range(x.shape[1])), 0.2 * x.std(axis=0), least=1e-3 * x.std(axis=0))
    return JudgingRows(x, None, grids, np.eye(2)[y])


def test_held_out_rows_tell_two_classes_from_two_halves_of_one(rng):
    x, y = crossing(1500, rng)
    both = np.array([0, 1])
    assert not judging(x, y).as_one(both, 0, 1)
    skewed = rng.gamma(1.5, size=(1500, 3))
    assert judging(skewed, (skewed[:, 0] > 1).astype(int)).as_one(both, 0, 1)


def test_rows_that_count_nothing_do_not_judge(rng):
    x, y = crossing(1500, rng)
    alone = judging(x, y)._replace(weights=(y == 0).astype(float))
    assert alone.as_one(np.array([0, 1]), 0, 1)


@pytest.fixture
def parts(rng):
    """Four parts in a row, of which the second and the third share no row, and no valleys."""
    rows = rng.uniform(size=(2000, 2)) * [4, 1]
    inside = np.clip(1.5 - np.abs(rows[:, :1] - [0.5, 1.5, 2.5, 3.5]), 0, 1)
    inside[rows[:, 0] < 2, 2:] = 0
    inside[rows[:, 0] >= 2, :2] = 0
    return Landscape(rows, rng).parts(inside / inside.sum(axis=1, keepdims=True), np.zeros(2000))


def test_parts_that_share_few_rows_stay_apart(parts):
    assert merge_until(parts, 0.75, 0.005).max() == 0
    np.testing.assert_array_equal(merge_until(parts, 0.75, 0.005, 0.1), [0, 0, 1, 1])


def test_parts_are_put_together_where_they_are_said_to_be_one(parts):
    asked = []

    def as_one(groups, a, b):
        asked.append((groups.tolist(), a, b))
        return {a, b} == {0, 1}

    np.testing.assert_array_equal(merge_where(parts, np.arange(4), 0.75, as_one), [0, 0, 1, 2])
    assert len(asked) == len({str(one) for one in asked})  # once of every pair


def test_unions_of_groups_are_unions_of_two_and_two(parts):
    whole = parts.united(np.array([1, 0, 1, 0]))
    by_two = parts.union(1, 3).union(0, 2).take(np.array([1, 0]))
    for table, other in zip(whole, by_two, strict=True):
        np.testing.assert_allclose(table, other)


def test_classes_with_no_valley_between_them_are_counted(rng):
    x, y = pairs(2600, rng)
    model = MultiViewMixture("auto", dependence="copula", random_state=0).fit(x)
    assert model.n_components_ in (7, 8)
    assert adjusted_rand_score(y, model.predict(x)) > 0.8


def test_a_class_that_is_bent_is_one(rng):
    assert MultiViewMixture("auto", dependence="copula", random_state=0).fit(bent(2500, rng)).n_components_ == 1


def test_more_classes_are_found_than_there_were_parts(rng):
    y = np.repeat(np.arange(13), 100)
    x = 12 * rng.permutation(64)[:13, None] // [16, 4, 1] % 48 + rng.normal(size=(13, 3))
    x = x[y] + rng.normal(size=(len(y), 3))
    model = MultiViewMixture("auto", dependence="copula", random_state=0).fit(x)
    assert model.n_components_ == 13
    assert model.agreement_ > 0.8


def test_a_bent_class_that_starts_cut_differently_stays_one():
    rng = np.random.default_rng(1)
    flat = rng.normal(size=(2400, 2))
    paraboloid = np.column_stack([flat, (flat**2).sum(axis=1) + 0.2 * rng.normal(size=2400)])

    model = MultiViewMixture("auto", dependence="copula", random_state=0).fit(paraboloid)

    assert model.n_components_ == 1
