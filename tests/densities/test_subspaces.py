from itertools import pairwise

import numpy as np
import pytest
from scipy import stats
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression
from sklearn.metrics import adjusted_rand_score

from latentviews import MultiViewMixture
from latentviews.core.kernels.spaces import Real
from latentviews.densities.subspaces import (
    PER_CLASS,
    WIDE,
    beside,
    discriminant_directions,
    shared_directions,
    subspace_samples,
)

pytestmark = pytest.mark.cheap


def two_classes(n, width, rng):
    """Views of many columns, of which the first tells the classes apart; and the classes."""
    labels = rng.integers(2, size=n)
    views = [rng.normal(size=(n, width)) for _ in range(3)]
    for x in views:
        x[:, 0] += 4 * labels
        x[:, 1:] *= 3.0
    return views, labels


def columns_of(views):
    ends = np.cumsum([0, *(x.shape[1] for x in views)])
    return [list(range(a, b)) for a, b in pairwise(ends)]


def test_directions_hold_what_other_views_tell(rng):
    views, _ = two_classes(4000, WIDE + 3, rng)
    found = shared_directions(np.hstack(views), columns_of(views), 2)
    assert set(found) == {0, 1, 2}
    for directions in found.values():
        assert directions.shape == (WIDE + 3, 2 * PER_CLASS)
        first = directions[:, 0] / np.linalg.norm(directions[:, 0])
        assert abs(first[0]) > 0.99


def test_narrow_views_and_one_class_have_none(rng):
    views, _ = two_classes(300, WIDE, rng)
    assert shared_directions(np.hstack(views), columns_of(views), 2) == {}
    views, _ = two_classes(300, WIDE + 1, rng)
    assert shared_directions(np.hstack(views), columns_of(views), 1) == {}


def test_directions_of_classes_are_fishers(rng):
    (x, *_), labels = two_classes(4000, 5, rng)
    x = x @ np.linalg.qr(rng.normal(size=(5, 5)))[0] * np.array([1.0, 1e3, 1e-3, 1.0, 7.0]) + 50.0
    x[7, 2] = np.nan
    found = discriminant_directions(x, np.eye(2)[labels])
    complete, y = np.delete(x, 7, axis=0), np.delete(labels, 7)
    expected = LinearDiscriminantAnalysis(solver="svd").fit(complete, y).scalings_[:, :1]
    assert found.shape == (5, 1)
    assert abs(np.corrcoef(complete @ found[:, 0], complete @ expected[:, 0])[0, 1]) > 0.999
    within = np.concatenate([(complete[y == h] - complete[y == h].mean(axis=0)) @ found for h in (0, 1)])
    np.testing.assert_allclose(within.var(), 1.0, atol=0.1)  # shrunk


def test_directions_beside_others_are_uncorrelated_with_them_and_span_no_more(rng):
    x = rng.normal(size=(500, 6)) @ rng.normal(size=(6, 6)) + 9.0
    x[3, 1] = np.nan
    own, others = rng.normal(size=(6, 2)), rng.normal(size=(6, 4))
    found = beside(own, others, x)
    covariance = np.cov((np.delete(x, 3, axis=0) @ found).T)
    np.testing.assert_array_equal(found[:, :2], own)
    np.testing.assert_allclose(covariance[:2, 2:], 0.0, atol=1e-8)
    np.testing.assert_allclose(covariance[2:, 2:], np.eye(2), atol=0.01)
    assert np.linalg.matrix_rank(np.hstack([own, others])) == np.linalg.matrix_rank(np.hstack([own, others, found]))
    assert beside(own, own @ rng.normal(size=(2, 3)), x).shape == (6, 2)  # nothing is left of these


def test_views_of_more_columns_than_classes_have_as_many_as_there_are(rng):
    views, _ = two_classes(300, WIDE + 3, rng)
    found = shared_directions(np.hstack(views), columns_of(views), WIDE)
    assert {directions.shape for directions in found.values()} == {(WIDE + 3, WIDE + 3)}
    assert shared_directions(np.hstack(views), columns_of(views), WIDE + 3) == {}


@pytest.fixture
def sample_and_rows(rng):
    (x, *_), labels = two_classes(1500, 4, rng)
    x = x @ rng.normal(size=(4, 4))
    directions, rows = rng.normal(size=(4, 2)), np.arange(1500)
    place = Real().quadrature(x, x.std(axis=0) / 10, rng)
    return subspace_samples(x, np.eye(2)[labels], (rows[::2], rows[1::2]), place, rng, 400, directions), x


def test_it_is_a_density_of_all_columns_and_draws_follow_it(sample_and_rows, rng):
    sample, x = sample_and_rows
    law = stats.multivariate_t(x.mean(axis=0), np.cov(x.T), df=5)
    nodes = law.rvs(40_000, random_state=rng)
    ratios = np.exp(sample.log_density(nodes) - law.logpdf(nodes)[:, None])
    np.testing.assert_allclose(ratios.mean(axis=0), 1.0, atol=5 * ratios.std(axis=0).max() / 200)
    draws = sample.sample(1, 20_000, rng)
    for j in range(4):
        values, shares = sample.marginal(j)
        found = np.interp([0.05, 0.5, 0.95], shares[:, 1], values)
        np.testing.assert_allclose(found, np.quantile(draws[:, j], [0.05, 0.5, 0.95]), atol=0.05 * x[:, j].std())
    with pytest.raises(ValueError, match="This view has 4 columns; got 2"):
        sample.density(np.zeros((3, 2)))


def test_expectations_are_of_all_columns(sample_and_rows):
    sample, x = sample_and_rows
    means = np.stack([sample.expectation(lambda rows, j=j: rows[:, j]) for j in range(4)], axis=1)
    np.testing.assert_allclose(means.mean(axis=0), x.mean(axis=0), atol=0.2 * x.std(axis=0).max())


def test_classes_in_few_of_many_columns_are_found():
    rng = np.random.default_rng(0)
    labels = rng.integers(4, size=800)
    views = [5 * rng.normal(size=(800, 40)) for _ in range(2)] + [rng.normal(size=(800, 3))]
    for x in views:
        x[:, :3] = rng.normal(size=(800, 3)) + 2.5 * rng.normal(size=(4, 3))[labels]
    model = MultiViewMixture(4, random_state=0).fit(views)
    assert adjusted_rand_score(labels, model.predict(np.hstack(views))) > 0.8


def test_densities_keep_what_does_not_tell_classes_apart():
    rng = np.random.default_rng(0)
    labels, style = rng.integers(3, size=2400), rng.exponential(size=(2400, 1))  # shared by views, and no Gaussian's
    views = [rng.normal(size=(2400, 20)) + 3 * style @ rng.normal(size=(1, 20)) for _ in range(3)]
    X = np.hstack([x + 0.8 * rng.normal(size=(3, 20))[labels] for x in views])
    model = MultiViewMixture(3, views=columns_of(views), random_state=0).fit(X[:1200])
    along = [X[:, view] @ model.components_[t].directions for t, view in enumerate(model.views_)]
    shares = [LinearRegression().fit(rows, style[:, 0]).score(rows, style[:, 0]) for rows in along]
    assert min(shares) > 0.95


def test_classes_are_found_where_views_have_more_in_common_than_them():
    rng = np.random.default_rng(1)
    labels, style = rng.integers(6, size=1200), rng.normal(size=(1200, 8))  # what goes through all views of a row
    views = []
    for width in (40, 30, 20):
        x = 2 * style @ rng.normal(size=(8, width)) / np.sqrt(8) + rng.normal(size=(1200, width))
        views.append(x + 0.6 * rng.normal(size=(6, width))[labels])
    model = MultiViewMixture(6, random_state=0).fit(views)
    assert adjusted_rand_score(labels, model.predict(np.hstack(views))) > 0.9
