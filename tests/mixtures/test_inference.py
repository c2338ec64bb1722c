"""Means of functions in classes and their standard errors, from weights of rows."""

import numpy as np
import pytest
from scipy.stats import binom

from latentviews import MultiViewMixture
from latentviews.mixtures import problem
from latentviews.mixtures.inference import expectation

pytestmark = pytest.mark.cheap


def test_standard_errors_of_functions_without_ties_are_those_of_the_delta_method(rng):
    values, weights = rng.normal(size=200), rng.dirichlet(np.ones(3), size=200)
    mass = weights.mean(axis=0)
    found = expectation(values, weights)
    influence = weights * (values[:, None] - found.values) / mass
    np.testing.assert_allclose(found.standard_errors, influence.std(axis=0) / np.sqrt(200), rtol=1e-12)


def test_a_proportion_that_is_zero_in_a_class_is_not_known_exactly():
    members, other = np.arange(40) < 25, np.arange(40) >= 30
    found = expectation(other.astype(float), np.column_stack([members, ~members]).astype(float))
    assert found.values[0] == 0
    assert found.standard_errors[0] == pytest.approx(np.sqrt(4 * 0.75 * 0.25 / (25 * (25 + 4))))
    assert found.standard_errors[1] > 0


@pytest.mark.parametrize("rows", [17, 33, 50])
def test_intervals_of_proportions_cover_on_average(rows):
    chances = np.array([0.5, 0.7, 0.84, 0.9, 0.95, 0.977, 0.99, 0.998])
    counts, covered = np.arange(rows + 1), []
    for count in counts:  # of ones in the class, beside a hundred rows of which a fifth are ones
        values = np.concatenate([np.arange(rows) < count, np.arange(100) < 20]).astype(float)
        found = expectation(
            values, np.column_stack([np.arange(rows + 100) < rows, np.arange(rows + 100) >= rows]) * 1.0
        )
        covered.append(abs(found.values[0] - chances) <= 1.96 * found.standard_errors[0])
    coverage = binom.pmf(counts[:, None], rows, chances) * np.array(covered)
    assert 0.93 <= coverage.sum(axis=0).mean() <= 0.97


def test_refits_to_many_rows_of_overlapping_classes_go_to_their_end(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 3)) + 0.8 * (rng.random((6000, 1)) < 0.4)
    model = MultiViewMixture(2, random_state=0).fit(X)

    spread = model.bootstrap(X, 6, random_state=0).weights.std(axis=0)
    monkeypatch.setattr(problem, "REFIT_GAIN", 1e-3)
    monkeypatch.setattr(problem, "SETTLED", 0.0)

    assert np.all(spread > 0.8 * model.bootstrap(X, 6, random_state=0).weights.std(axis=0))
