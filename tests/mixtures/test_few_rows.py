"""Copulas where rows are few for their columns."""

import numpy as np
import pytest

from latentviews import Copulas, MultiViewMixture
from latentviews.metrics import adjusted_rand
from latentviews.mixtures.dependence.few_rows import lacks_rows


def factors(rng, n, d, n_classes):
    """Skewed columns driven by three factors: classes differ in how columns go together, and in where factors are."""
    y, common = rng.integers(n_classes, size=n), rng.normal(size=(d, 3))
    X = np.empty((n, d))
    for h in range(n_classes):
        loadings, where = common + 0.4 * rng.normal(size=(d, 3)), rng.normal(size=3)
        members = np.flatnonzero(y == h)
        score = rng.normal(size=(len(members), 3)) + where
        X[members] = score @ loadings.T + 0.5 * rng.normal(size=(len(members), d))
    return np.exp(0.5 * X / X.std(axis=0)), y


def test_rows_are_few_where_components_have_less_than_eight_per_column():
    assert lacks_rows(569, 30, 2)
    assert lacks_rows(150, 4, 3)
    assert not lacks_rows(4000, 30, 4)
    assert not lacks_rows(1000, 3, 2)
    assert lacks_rows(150, 4, None) == lacks_rows(150, 4, 2)


def test_classes_of_many_dependent_columns_are_found(rng):
    X, y = factors(rng, 300, 20, 2)
    model = MultiViewMixture(2, dependence=Copulas(n_starts=1), random_state=0).fit(X)
    assert adjusted_rand(y, model.predict(X)) > 0.9
    assert len(model.dependent_.groups) == 2  # a component for every class
    assert model.agreement_ > 0.9


@pytest.mark.parametrize("n_classes", [1, 2])
def test_held_out_rows_count_the_classes(rng, n_classes):
    X, _ = factors(rng, 240, 12, n_classes)
    model = MultiViewMixture("auto", dependence=Copulas(n_starts=1), random_state=0).fit(X)
    assert model.n_components_ == n_classes
    assert np.bincount(model.predict(X), minlength=n_classes).min() > 0


def test_weights_count_as_repeated_rows_do_in_the_density(rng):
    X, _ = factors(rng, 200, 12, 2)
    weights = np.where(X[:, 0] > np.median(X[:, 0]), 2.0, 1.0)
    model = MultiViewMixture(2, dependence=Copulas(n_starts=1), random_state=0).fit(X, sample_weight=weights)
    heavy = np.average(model.predict_proba(X), axis=0, weights=weights)
    np.testing.assert_allclose(model.weights_, heavy, atol=0.02)
    assert abs(model.weights_ - model.predict_proba(X).mean(axis=0)).max() > 0.02
