"""Means of functions in classes and their standard errors, from weights of rows."""

from functools import partial

import numpy as np
import pytest
from scipy.stats import binom, binomtest, norm

from latentviews import IdentifiabilityWarning, MultiViewMixture
from latentviews.datasets import make_multiview
from latentviews.mixtures import problem
from latentviews.mixtures.inference import Expectation, expectation, share_interval
from latentviews.mixtures.sieve import accelerated_em, em_step

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


def one_class_of_two(values):
    """The share of ones in a class of these rows, beside a hundred of which a fifth are ones."""
    others = np.arange(100) < 20
    members = np.arange(len(values) + 100) < len(values)
    return expectation(np.concatenate([values, others]).astype(float), np.column_stack([members, ~members]) * 1.0)


@pytest.mark.parametrize(("count", "level"), [(0, 0.95), (3, 0.95), (15, 0.8), (40, 0.99)])
def test_the_interval_of_a_share_of_known_rows_is_wilsons(count, level):
    found = one_class_of_two(np.arange(40) < count)
    lower, upper = found.interval(level)
    expected = binomtest(count, 40).proportion_ci(level, method="wilson")
    np.testing.assert_allclose([lower[0], upper[0]], expected, atol=1e-12)


def test_the_ends_of_the_interval_of_a_share_are_as_unlikely_as_its_level_says():
    share, variance, rows, quantile = np.array([0.3]), np.array([0.02]), np.array([20.0]), norm.ppf(0.975)
    others = variance - share * (1 - share) / rows
    for end in share_interval(share, variance, rows, quantile):
        np.testing.assert_allclose((share - end) ** 2, quantile**2 * (end * (1 - end) / rows + others), rtol=1e-12)


def test_intervals_of_any_two_values_are_those_of_a_share(rng):
    values, weights = rng.random(60) < 0.3, rng.dirichlet(np.ones(3), size=60)
    shares, scaled = (expectation(x, weights).interval() for x in (1.0 * values, 5.0 - 2.0 * values))
    np.testing.assert_allclose(scaled, [5 - 2 * shares[1], 5 - 2 * shares[0]], rtol=1e-12)


def test_intervals_of_other_functions_are_normal_and_unpacking_gives_two(rng):
    found = expectation(rng.normal(size=60), rng.dirichlet(np.ones(3), size=60))
    values, errors = found
    np.testing.assert_allclose(found.interval(0.9), [values - 1.6448536 * errors, values + 1.6448536 * errors])


def test_a_share_stays_one_wherever_signed_weights_lead_it(rng):
    weights = rng.normal(1, 3, size=(50, 2)) ** 2 - 1.0
    lower, upper = expectation(1.0 * (weights[:, 0] > 1), weights).interval()
    assert np.all(lower >= 0)
    assert np.all(lower < upper)
    assert np.all(upper <= 1)


@pytest.mark.parametrize("values", [np.zeros(30), np.ones(30)])
def test_a_share_that_no_row_has_is_not_known_exactly(values):
    lower, upper = expectation(values, np.ones((30, 1))).interval()
    assert upper[0] - lower[0] == pytest.approx(norm.ppf(0.975) ** 2 / (30 + norm.ppf(0.975) ** 2))


@pytest.mark.parametrize("level", [0, 1, 95, "most", float("nan")])
def test_levels_of_intervals_are_between_zero_and_one(level):
    with pytest.raises(ValueError, match="level must be between 0 and 1; got"):
        expectation(np.arange(5.0), np.ones((5, 1))).interval(level)


@pytest.mark.parametrize("rows", [17, 33, 50])
def test_intervals_of_shares_cover_also_where_they_are_small(rows):
    chances, counts = np.array([0.02, 0.05, 0.1, 0.3, 0.5]), np.arange(rows + 1)
    ends = [one_class_of_two(np.r_[np.ones(count), np.zeros(rows - count)]).interval() for count in counts]
    covered = np.array([(lower[0] <= chances) & (chances <= upper[0]) for lower, upper in ends])
    coverage = (binom.pmf(counts[:, None], rows, chances) * covered).sum(axis=0)
    assert coverage.min() > 0.91  # the least Wilson's has at these shares; shares are counts, so it jumps
    assert 0.93 <= coverage.mean() <= 0.97


def test_refits_to_many_rows_of_overlapping_classes_go_to_their_end(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 3)) + 0.8 * (rng.random((6000, 1)) < 0.4)
    model = MultiViewMixture(2, random_state=0).fit(X)

    spread = model.bootstrap(X, 6, random_state=0).weights.std(axis=0)
    monkeypatch.setattr(problem, "REFIT_GAIN", 1e-3)
    monkeypatch.setattr(problem, "SETTLED", 0.0)

    assert np.all(spread > 0.8 * model.bootstrap(X, 6, random_state=0).weights.std(axis=0))


def test_weights_of_overlapping_classes_are_where_more_steps_leave_them():
    off = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(20_000, 3)) + 0.8 * (rng.random((20_000, 1)) < 0.4)
        polished = MultiViewMixture(2, random_state=0).fit(X).polished_
        step = partial(em_step, polished.cells(X))
        last = accelerated_em(step, polished.fit.parameters, 1000, 1e-7).parameters.weights
        off.append(abs(polished.fit.parameters.weights - last).max() / np.sqrt(last.prod() / len(X)))
    assert np.mean(off) < 1.5  # standard errors of a weight; 4 where likelihood alone says when to stop


def test_a_hundred_rows_are_asked_whether_every_class_wins_some_and_more_only_where_they_do_not():
    asked = []

    def log_joint(rows):
        asked.append(len(rows))
        return np.column_stack([rows, 0.5 + 0.0 * rows])

    problem.warn_of_hidden(np.array([0.5, 0.5]), log_joint, 1.0 * (np.arange(10_000) % 3 > 0))
    problem.warn_of_hidden(np.array([0.5, 0.5]), log_joint, np.r_[np.ones(9_999), 0.0])
    assert asked == [100, 100, 2000, 10_000]
    with pytest.warns(IdentifiabilityWarning, match="No row is most probably in class 1"):
        problem.warn_of_hidden(np.array([1.0, 0.0]), log_joint, np.ones(50))


@pytest.mark.parametrize("function", [lambda x: x[:, 0] > 100, lambda x: x[:, 0] > 0], ids=["none", "some"])
def test_rows_without_weight_are_as_absent_for_intervals_of_shares(function):
    X = make_multiview(300, 2, random_state=0).X
    model = MultiViewMixture(2, random_state=0).fit(X)
    weights = np.repeat([1.0, 0.0], [40, 260])

    some, weighted = model.expectation(function, X[:40]), model.expectation(function, X, sample_weight=weights)

    np.testing.assert_allclose(weighted.interval(), some.interval(), rtol=1e-9)


def test_an_expectation_is_still_a_pair_and_an_old_one_has_the_normal_interval():
    old = Expectation(np.array([0.5]), np.array([0.1]))

    assert len(old) == 2
    assert old[1] is old.standard_errors
    np.testing.assert_allclose(np.ravel(old.interval()), [0.304, 0.696], atol=1e-3)
