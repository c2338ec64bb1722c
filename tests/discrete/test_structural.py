"""Covariates and outcomes of classes: exact on whole populations, corrected where naive answers are wrong."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

from latent_classes import cell_probabilities, cells_of, draw
from latentviews import IdentifiabilityWarning, LatentClass, MultiViewMixture, class_regression, distal_outcome
from latentviews.datasets import make_multiview
from latentviews.discrete.answers import distinct_answers
from latentviews.discrete.expectation import ClassParameters, accelerated_em
from latentviews.discrete.inference import Fitted
from latentviews.discrete.structural import _coefficients
from latentviews.discrete.three_step import FirstStep, assign

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
@assignments
def test_a_whole_population_gives_the_shares_of_categories(correction, assignment, population):
    posteriors, _, joint = population
    shares = np.array([[0.7, 0.2, 0.4], [0.3, 0.8, 0.6]])
    rows = np.concatenate([posteriors] * 2)
    words = np.repeat(["no", "yes"], len(posteriors))
    weights = np.concatenate([joint @ shares[0], joint @ shares[1]])

    found = distal_outcome(rows, words, correction=correction, assignment=assignment, sample_weight=1000 * weights)

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


CELLS = cells_of((2, 2, 2, 2, 2))  # three answers, a covariate, and which of two outcomes
FIRST = np.array([[[0.85, 0.2], [0.15, 0.8]], [[0.8, 0.3], [0.2, 0.7]], [[0.7, 0.1], [0.3, 0.9]]])
GIVEN = CELLS[:, :3], CELLS[:, 3], CELLS[:, 4] + 0.1 * CELLS[:, 3]


def first_step(codes, weights):
    """A first step on rows with these weights, from the truth."""
    answers, patterns = distinct_answers(codes, (2, 2, 2), weights)
    start = ClassParameters(np.full((1, 2), 0.5), np.concatenate(FIRST)[:, None])
    run = accelerated_em(answers, start, 20_000, 1e-13).parameters
    ones = np.ones((len(answers.counts), 1))
    return FirstStep(Fitted(answers, ones, ones * run.weights, run.coefficients[:, 0], None), patterns)


@pytest.fixture(scope="module")
def nearby():
    """How many rows every cell has, their first step, and the first steps of a little more of each, and of no more."""
    classes = np.array([[0.7, 0.3], [0.4, 0.6]])  # given the covariate
    outcomes = np.array([[0.6, 0.4], [0.3, 0.7]])  # given the class
    joint = cell_probabilities(CELLS[:, :3], np.ones(2), FIRST) * classes[CELLS[:, 3]] * outcomes[:, CELLS[:, 4]].T / 2
    counts = np.round(2000 * joint.sum(axis=1))
    weights = [counts + NUDGE * (np.arange(32) == i) for i in range(33)]
    ends = [(one, first_step(GIVEN[0], one)) for one in weights]
    rows = np.repeat(np.arange(32), counts.astype(int))
    return counts, rows, first_step(GIVEN[0][rows], np.ones(len(rows))), ends


NUDGE = 1e-3


@pytest.mark.parametrize("correction", ["BCH", "ML", None])
@assignments
def test_errors_are_the_infinitesimal_jackknife_of_all_steps(correction, assignment, nearby):
    counts, rows, first, ends = nearby
    how = {"correction": correction, "assignment": assignment}

    def estimates(weights, first):
        regression = class_regression(first, GIVEN[1], sample_weight=weights, **how)
        return np.append(
            regression.coefficients[:, 1], distal_outcome(first, GIVEN[2], sample_weight=weights, **how).means
        )

    *moved, here = [estimates(*end) for end in ends]
    slopes = (np.array(moved) - here) / NUDGE

    expected = [(counts[:, None] * some).T @ some for some in (slopes[:, :2], slopes[:, 2:])]
    regression, means = class_regression(first, GIVEN[1][rows], **how), distal_outcome(first, GIVEN[2][rows], **how)
    np.testing.assert_allclose(regression.covariance, expected[0], rtol=2e-3)
    np.testing.assert_allclose(means.covariance, expected[1], rtol=2e-3, atol=1e-7)


@pytest.mark.parametrize("correction", ["BCH", "ML", None])
@assignments
def test_a_bootstrap_takes_all_steps_on_resampled_rows(correction, assignment, nearby, rng):
    counts, rows, first, _ = nearby
    drawn = rng.multinomial(len(rows), counts / counts.sum())
    some = np.repeat(np.arange(32), drawn)
    again = first_step(GIVEN[0][some], np.ones(len(some)))
    how = {"correction": correction, "assignment": assignment}
    regression = class_regression(again, GIVEN[1][some], **how)
    means = distal_outcome(again, GIVEN[2][some], **how)

    # each row of `rows` counts for a share of what was drawn of its cell
    resampled = assign(first, correction, assignment, None).resampled((drawn / counts)[rows])
    design = np.column_stack([np.ones(len(rows)), GIVEN[1][rows]])

    np.testing.assert_allclose(_coefficients(resampled, design, correction), regression.coefficients, atol=1e-3)
    found = distal_outcome(resampled.first_step, GIVEN[2][rows], sample_weight=resampled.weights, **how)
    np.testing.assert_allclose(found.means, means.means, atol=1e-3)


@pytest.mark.parametrize("ask", [class_regression, distal_outcome])
def test_a_bootstrap_agrees_with_the_formula_and_may_leave_the_first_step_out(ask, nearby):
    _, rows, first, _ = nearby
    posteriors, of = (first, GIVEN[1][rows]) if ask is class_regression else (first.posteriors, GIVEN[2][rows])

    bootstrap = ask(posteriors, of, correction="BCH", n_resamples=80, random_state=0).standard_errors
    formula = ask(posteriors, of, correction="BCH").standard_errors

    # a spread over 80 resamples errs by 8 %: four of that
    np.testing.assert_allclose(bootstrap, formula, rtol=4 / np.sqrt(2 * 80))


def test_resamples_without_a_class_are_left_out(rng):
    posteriors = np.tile([0.9, 0.1], (30, 1))
    posteriors[:2] = [0.1, 0.9]
    outcome = rng.normal(size=30)

    with pytest.warns(IdentifiabilityWarning, match=r"\d+ of 50 resamples have a class that no row is assigned to"):
        found = distal_outcome(posteriors, outcome, n_resamples=50, random_state=0)

    assert np.isfinite(found.standard_errors).all()
    with pytest.raises(ValueError, match="n_resamples must be an integer of at least 2; got 1"):
        distal_outcome(posteriors, outcome, n_resamples=1)
    sure = rng.dirichlet(np.full(3, 0.3), size=100)
    with pytest.raises(ValueError, match="12 resamples are too few for 12 estimates; raise n_resamples"):
        distal_outcome(sure, rng.choice(list("abcd"), size=100), n_resamples=12)
    with pytest.raises(ValueError, match="3 resamples are too few for 4 estimates"):
        class_regression(sure, rng.normal(size=100), n_resamples=3)


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


def test_numbers_beside_none_are_numbers(rng):
    posteriors = rng.dirichlet(np.full(2, 0.3), size=60)
    counts = rng.poisson(3.0, size=60)
    known = distal_outcome(posteriors[1:], counts[1:], correction=None).means

    for missing in (None, np.nan, pd.NA):
        beside = distal_outcome(posteriors, np.array([missing, *counts[1:].tolist()], dtype=object), correction=None)
        np.testing.assert_allclose(beside.means, known)
    kinds = pd.Series(np.where(counts > 3, 2, 1)).astype("category")
    assert distal_outcome(posteriors, kinds).categories.tolist() == [1, 2]


@pytest.mark.parametrize("correction", ["BCH", "ML", None])
def test_covariates_that_tell_the_class_for_sure_have_no_standard_errors(correction, rng):
    _, _, codes = simulated(200, rng)
    first = LatentClass(2, n_starts=0, random_state=0).fit(codes).first_step(codes)
    sure = first.posteriors.argmax(axis=1)

    with pytest.warns(IdentifiabilityWarning, match="coefficients have no finite maximum"):
        found = class_regression(first, np.column_stack([sure, rng.normal(size=200)]), correction=correction)

    assert np.isnan(found.standard_errors[1, 1])
    assert np.isnan(found.wald_test("z0")).all()


@pytest.mark.parametrize("seed", [0, 22, 122])
def test_as_many_coefficients_as_rows_end_without_overflow(seed):
    rng = np.random.default_rng(seed)
    z, posteriors = rng.standard_cauchy(size=(5, 4)), rng.dirichlet(np.full(2, 0.3), size=5)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = class_regression(posteriors, z, correction="BCH")

    assert {one.category for one in caught} == {IdentifiabilityWarning}
    assert np.isnan(found.standard_errors).all()


@pytest.mark.parametrize(("origin", "unit"), [(2000, 5), (5e4, 2e4), (1.7e9, 1e3), (0, 1e-9)])
def test_coefficients_go_with_the_origin_and_the_unit_of_a_covariate(origin, unit, rng):
    z, _, codes = simulated(300, rng)
    posteriors = LatentClass(2, n_starts=0, random_state=0).fit(codes).predict_proba(codes)

    def three_steps(covariate):
        return class_regression(posteriors, covariate)

    def one_step(covariate):
        return LatentClass(2, n_starts=0, random_state=0).fit(codes, covariates=covariate).regression_

    for ask in (three_steps, one_step):
        found, moved = ask(z), ask(origin + unit * z)
        for part in ("coefficients", "standard_errors"):
            np.testing.assert_allclose(unit * getattr(moved, part)[1, 1], getattr(found, part)[1, 1], rtol=1e-5)
        assert moved.log_likelihood == pytest.approx(found.log_likelihood, abs=1e-6)
        intercept = moved.coefficients[0, 1] + origin * moved.coefficients[1, 1]
        assert intercept == pytest.approx(found.coefficients[0, 1], rel=1e-4)


def test_an_outcome_without_spread_differs_for_sure_or_not_at_all(rng):
    labels = np.arange(60) % 2
    sure = np.eye(2)[labels]
    unsure = 0.8 * sure + 0.1

    for posteriors in (sure, unsure):
        assert distal_outcome(posteriors, np.full(60, 1.7)).pvalue == 1
    assert distal_outcome(sure, 3.0 * labels).pvalue == 0
    assert distal_outcome(sure, 1e-9 * labels).pvalue == 0
    assert distal_outcome(sure, np.where(labels, "a", "b")).pvalue == 0
    for correction in ("BCH", "ML", None):
        assert distal_outcome(unsure, ["a"] * 60, correction=correction).pvalue == 1


def test_means_by_likelihood_go_with_the_unit(rng):
    labels = rng.integers(0, 2, size=200)
    posteriors = 0.8 * np.eye(2)[labels] + 0.1
    outcome = labels + rng.normal(size=200)
    found, moved = (distal_outcome(posteriors, y, correction="ML") for y in (outcome, 1e-9 * outcome + 5e-9))

    np.testing.assert_allclose(moved.means, 1e-9 * found.means + 5e-9, rtol=1e-6)
    np.testing.assert_allclose(moved.standard_errors, 1e-9 * found.standard_errors, rtol=1e-4)
    rounding = distal_outcome(posteriors, 1 + 1e-15 * rng.normal(size=200), correction="ML")
    np.testing.assert_allclose(rounding.means, 1)
    assert rounding.pvalue == 1


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
    with pytest.raises(ValueError, match="coefficient of 'z1' is not determined by 10 rows: the covariate is constant"):
        class_regression(posteriors, np.column_stack([np.arange(10), np.full(10, 3.0)]))
    with pytest.raises(ValueError, match=r"Values of the covariate 'z1' differ by 9e-310 at most, .* scale it"):
        class_regression(posteriors, np.column_stack([np.arange(10)[::-1] ** 2, 1e-310 * np.arange(10)]))
    for strange in (np.full(10, 1j), np.full(10, "x")):
        with pytest.raises(ValueError, match="covariates must be numbers"):
            class_regression(posteriors, strange)
    with pytest.raises(ValueError, match="outcome must be one column; got 2"):
        distal_outcome(posteriors, np.zeros((10, 2)))
    with pytest.raises(ValueError, match="outcome has no number in any row"):
        distal_outcome(posteriors, np.full(10, np.nan))
    with pytest.raises(ValueError, match="some class is never assigned"):
        distal_outcome(np.tile([0.9, 0.1], (10, 1)), np.zeros(10))
    codes = draw(50, np.array([0.5, 0.5]), [ITEM[:, :2]] * 3, rng)[0]
    model = LatentClass(2, n_starts=0).fit(codes)
    with pytest.raises(ValueError, match="covariates were not given in fit"):
        model.predict(codes, np.zeros(50))
