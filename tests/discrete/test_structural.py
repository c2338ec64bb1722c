"""Covariates and outcomes of classes: exact on whole populations, corrected where naive answers are wrong."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

from latent_classes import cell_probabilities, cells_of, draw
from latentviews import LatentClass, MultiViewMixture, class_regression, distal_outcome
from latentviews.datasets import make_multiview
from latentviews.discrete.answers import distinct_answers
from latentviews.discrete.expectation import ClassParameters, accelerated_em
from latentviews.discrete.inference import Fitted
from latentviews.discrete.three_step import FirstStep

ITEM = np.array([[0.75, 0.25, 0.4], [0.25, 0.75, 0.6]])
ITEMS = [ITEM, ITEM[:, [0, 1, 0]], ITEM[:, [0, 1, 1]], ITEM, ITEM[:, [1, 0, 1]]]
BETA = np.array([[0.0, 0.4, -0.3], [0.0, 1.0, -0.7]])
GRID = np.linspace(-2, 2, 9)

ways = pytest.mark.parametrize("correction", ["BCH", "ML"])
assignments = pytest.mark.parametrize("assignment", ["modal", "proportional"])


@pytest.fixture(scope="module")
def population():
    """Every answer with every value of a covariate: posteriors of the classes without it, its values, and chances."""
    cells = cells_of((2,) * 5)
    priors = softmax(np.column_stack([np.ones(len(GRID)), GRID]) @ BETA, axis=1)
    likelihood = cell_probabilities(cells, np.ones(3), ITEMS)
    joint = priors[:, None, :] * likelihood[None] / len(GRID)  # (z, cell, class)
    marginal = joint.sum(axis=0)
    posteriors = marginal / marginal.sum(axis=1, keepdims=True)
    z = np.repeat(GRID, len(cells))
    return np.tile(posteriors, (len(GRID), 1)), z, joint.reshape(-1, 3)


@ways
@assignments
def test_a_whole_population_gives_the_coefficients(correction, assignment, population):
    posteriors, z, joint = population

    found = class_regression(
        posteriors, z, correction=correction, assignment=assignment, sample_weight=joint.sum(axis=1)
    )

    np.testing.assert_allclose(found.coefficients, BETA, atol=1e-5)


def test_without_a_correction_coefficients_are_drawn_to_zero(population):
    posteriors, z, joint = population

    naive = class_regression(posteriors, z, correction=None, sample_weight=joint.sum(axis=1))

    assert np.all(abs(naive.coefficients[1, 1:]) < 0.8 * abs(BETA[1, 1:]))


@assignments
def test_a_whole_population_gives_the_means_of_an_outcome(assignment, population):
    posteriors, _, joint = population
    means = np.array([1.0, 4.0, -2.0])
    # two values of the outcome around the mean of every class, each row with its share in the class
    rows = np.concatenate([posteriors] * 6)
    outcome = np.repeat(np.concatenate([means - 1, means + 1]), len(posteriors))
    weights = np.concatenate([joint[:, h] / 2 for _ in range(2) for h in range(3)])

    found = distal_outcome(rows, outcome, assignment=assignment, sample_weight=weights)

    np.testing.assert_allclose(found.means[0], means, atol=1e-9)


@ways
def test_a_whole_population_gives_the_shares_of_categories(correction, population):
    posteriors, _, joint = population
    shares = np.array([[0.7, 0.2, 0.4], [0.3, 0.8, 0.6]])
    rows = np.concatenate([posteriors] * 2)
    words = np.repeat(["no", "yes"], len(posteriors))
    weights = np.concatenate([joint @ shares[0], joint @ shares[1]])

    found = distal_outcome(rows, words, correction=correction, sample_weight=1000 * weights)

    np.testing.assert_allclose(found.means, shares, atol=1e-3 if correction == "ML" else 1e-9)
    assert found.categories.tolist() == ["no", "yes"]
    assert found.degrees_of_freedom == 2


def simulated(n, rng):
    z = rng.normal(size=n)
    priors = softmax(np.column_stack([np.ones(n), z]) @ BETA[:, :2], axis=1)
    labels = (rng.random(n) < priors[:, 1]).astype(int)
    codes = np.stack([(rng.random(n) > ITEM[0, labels]).astype(int) for _ in range(6)], axis=1)
    return z, labels, codes


def test_errors_of_three_steps_are_the_spread_over_samples(rng):
    slopes, expected = {"ML": [], "BCH": []}, {"ML": [], "BCH": []}
    for _ in range(40):
        z, labels, codes = simulated(400, rng)
        joint = cell_probabilities(codes, np.bincount(labels) / 400, [ITEM[:, :2]] * 6)  # the first step is known
        for correction in slopes:
            found = class_regression(joint / joint.sum(axis=1, keepdims=True), z, correction=correction)
            slopes[correction].append(found.coefficients[1, 1])
            expected[correction].append(found.standard_errors[1, 1])

    for correction in slopes:
        # the spread of 40 draws errs by 11 %: four of that
        assert np.std(slopes[correction]) == pytest.approx(np.mean(expected[correction]), rel=0.45)
        assert np.mean(slopes[correction]) == pytest.approx(
            1.0, abs=4 * np.std(slopes[correction]) / np.sqrt(40) + 0.03
        )


@pytest.mark.parametrize("correction", ["ML", "BCH"])
def test_errors_of_outcomes_are_the_spread_over_samples(correction, rng):
    means, expected = [], []
    for _ in range(40):
        _, labels, codes = simulated(300, rng)
        joint = cell_probabilities(codes, np.bincount(labels) / 300, [ITEM[:, :2]] * 6)
        outcome = 2.0 * labels + rng.normal(size=300)
        found = distal_outcome(joint / joint.sum(axis=1, keepdims=True), outcome, correction=correction)
        means.append(found.means[0])
        expected.append(found.standard_errors[0])

    np.testing.assert_allclose(np.std(means, axis=0), np.mean(expected, axis=0), rtol=0.45)
    np.testing.assert_allclose(np.mean(means, axis=0), [0, 2], atol=0.12)


def all_steps(codes, z, outcome, weights, correction, start):
    """Estimates and covariances of both last steps, after a first step from ``start`` on rows with these weights."""
    answers, patterns = distinct_answers(codes, (2, 2, 2), weights)
    run = accelerated_em(answers, start, 20_000, 1e-13).parameters
    ones = np.ones((len(answers.counts), 1))
    first = FirstStep(Fitted(answers, ones, ones * run.weights, run.coefficients[:, 0], None), patterns)
    regression = class_regression(first, z, correction=correction, sample_weight=weights)
    means = distal_outcome(first, outcome, correction=correction, sample_weight=weights)
    return np.append(regression.coefficients[:, 1], means.means[0]), regression.covariance, means.covariance


@ways
def test_errors_are_the_infinitesimal_jackknife_of_all_steps(correction):
    cells = cells_of((2, 2, 2, 2, 2))  # three answers, a covariate, and which of two outcomes
    items = [[[0.85, 0.2], [0.15, 0.8]], [[0.8, 0.3], [0.2, 0.7]], [[0.7, 0.1], [0.3, 0.9]]]
    classes = np.array([[0.7, 0.3], [0.4, 0.6]])  # given the covariate
    outcomes = np.array([[0.6, 0.4], [0.3, 0.7]])  # given the class
    joint = cell_probabilities(cells[:, :3], np.ones(2), np.array(items))
    joint = joint * classes[cells[:, 3]] * outcomes[:, cells[:, 4]].T / 2
    counts = np.round(2000 * joint.sum(axis=1))
    start = ClassParameters(np.full((1, 2), 0.5), np.concatenate(items)[:, None])
    given = cells[:, :3], cells[:, 3], cells[:, 4] + 0.1 * cells[:, 3]

    slopes, step = [], 1e-3
    for i in range(len(cells)):
        ends = [all_steps(*given, counts + sign * step * (np.arange(32) == i), correction, start) for sign in (1, -1)]
        slopes.append((ends[0][0] - ends[1][0]) / (2 * step))
    slopes = np.array(slopes)

    rows = [np.repeat(part, counts.astype(int), axis=0) for part in given]
    _, regression, means = all_steps(*rows, np.ones(int(counts.sum())), correction, start)
    np.testing.assert_allclose(regression, (counts[:, None] * slopes[:, :2]).T @ slopes[:, :2], rtol=2e-3)
    np.testing.assert_allclose(means, (counts[:, None] * slopes[:, 2:]).T @ slopes[:, 2:], rtol=2e-3, atol=1e-7)


def test_one_step_finds_the_coefficients_and_agrees_with_three(rng):
    z, _, codes = simulated(1500, rng)
    frame = pd.DataFrame({"age": z})
    model = LatentClass(2, n_starts=10, random_state=0).fit(codes, covariates=frame)
    plain = LatentClass(2, n_starts=10, random_state=0).fit(codes)

    one, three = model.regression_, class_regression(plain.predict_proba(codes), frame)

    assert one.names == three.names == ["intercept", "age"]
    assert abs(one.coefficients[1, 1]) == pytest.approx(1.0, abs=4 * one.standard_errors[1, 1])
    assert abs(one.coefficients[1, 1]) == pytest.approx(
        abs(three.coefficients[1, 1]), abs=2 * one.standard_errors[1, 1]
    )
    assert one.pvalues[1, 1] < 1e-6
    assert one.wald_test("age")[1] == pytest.approx(one.pvalues[1, 1], rel=1e-6)
    assert model.n_parameters_ == plain.n_parameters_ + 1
    assert model.log_likelihood_ > plain.log_likelihood_ + 20
    assert model.bic(codes, covariates=frame) < plain.bic(codes)
    np.testing.assert_allclose(model.weights_, model.predict_proba(codes, frame).mean(axis=0), atol=1e-3)
    assert model.standard_errors(codes, covariates=frame).components[0].shape == (2, 2)
    with pytest.raises(ValueError, match="The first of three steps has no covariates"):
        model.first_step(codes)
    with pytest.raises(ValueError, match="bootstrap_test compares classes without covariates"):
        model.bootstrap_test(codes)
    with pytest.raises(ValueError, match="covariates needs one row per row of X, 1500; got 10"):
        model.predict(codes, frame[:10])


def test_an_outcome_that_classes_share_is_not_found_to_differ(rng):
    _, labels, codes = simulated(800, rng)
    joint = cell_probabilities(codes, np.bincount(labels) / 800, [ITEM[:, :2]] * 6)
    posteriors = joint / joint.sum(axis=1, keepdims=True)

    assert distal_outcome(posteriors, labels + rng.normal(size=800)).pvalue < 1e-6
    assert distal_outcome(posteriors, rng.normal(size=800)).pvalue > 1e-3


def test_classes_without_a_shape_have_covariates_too(rng):
    X, labels, _ = make_multiview(800, 2, design="gamma", random_state=0)
    z = labels + rng.normal(size=800)
    posteriors = MultiViewMixture(2, random_state=0).fit(X).predict_proba(X)

    assert class_regression(posteriors, z).pvalues[1, 1] < 1e-6
    assert distal_outcome(posteriors, z).pvalue < 1e-6


def test_missing_outcomes_are_left_out(rng):
    _, _, codes = simulated(300, rng)
    posteriors = LatentClass(2, n_starts=0).fit(codes).predict_proba(codes)
    outcome = rng.normal(size=300)
    outcome[::7] = np.nan

    assert np.isfinite(distal_outcome(posteriors, outcome).means).all()


def test_what_cannot_be_related_gets_a_sentence(rng):
    posteriors = rng.dirichlet(np.ones(2), size=10)
    with pytest.raises(ValueError, match="covariates needs one row per row of posteriors, 10; got 9"):
        class_regression(posteriors, np.zeros(9))
    with pytest.raises(ValueError, match="covariates must be numbers; code a category by indicators"):
        class_regression(posteriors, ["a"] * 10)
    with pytest.raises(ValueError, match="with missing or infinite values"):
        class_regression(posteriors, np.full((10, 1), np.nan))
    with pytest.raises(ValueError, match='correction must be "ML", "BCH" or None; got \'none\''):
        class_regression(posteriors, np.zeros(10), correction="none")
    with pytest.raises(ValueError, match="posteriors must be the probabilities of two or more classes"):
        distal_outcome(2 * posteriors, np.zeros(10))
    with pytest.raises(ValueError, match="some class is never assigned"):
        distal_outcome(np.tile([0.9, 0.1], (10, 1)), np.zeros(10))
    codes = draw(50, np.array([0.5, 0.5]), [ITEM[:, :2]] * 3, rng)[0]
    model = LatentClass(2, n_starts=0).fit(codes)
    with pytest.raises(ValueError, match="covariates were not given in fit"):
        model.predict(codes, np.zeros(50))
