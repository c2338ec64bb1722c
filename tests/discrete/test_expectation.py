"""EM and the spectral estimate for latent classes: exact on exact moments, and equal to literal transcripts."""

import numpy as np
import pytest

from latent_classes import COUNTS, SLIDES, cell_probabilities, cells_of, draw, random_classes
from latentviews import JointDiagonalization, OneHotFeatures
from latentviews.core.spectral import spectral_fit
from latentviews.core.views import fit_views
from latentviews.discrete.answers import Answers, distinct_answers
from latentviews.discrete.expectation import ClassParameters, accelerated_em, em_step, plain_em
from latentviews.discrete.reading import smoothing_kernels
from latentviews.discrete.spectral import joint_estimate, spectral_starts, stacked_estimate
from latentviews.discrete.starts import random_start, search
from reference import anandkumar_discrete, latent_class_em_step

SIZES = (3, 2, 3, 2, 3, 2)
GROUPS = [[0, 3], [1, 4], [2, 5]]


def exact(sizes, k, rng):
    """The whole population as answers, and its parameters."""
    weights, items = random_classes(sizes, k, rng)
    cells = cells_of(sizes)
    return Answers(cells, cell_probabilities(cells, weights, items).sum(axis=1), tuple(sizes)), weights, items


def one_start(weights, items):
    return ClassParameters(np.asarray(weights)[None], np.concatenate(items)[:, None])


@pytest.mark.cheap
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("estimate", [stacked_estimate, joint_estimate])
def test_exact_moments_give_the_classes(estimate, k, rng):
    answers, weights, items = exact(SIZES, k, rng)

    found, probabilities = estimate(answers, k, GROUPS, rng)

    order = np.argsort(-found)
    np.testing.assert_allclose(found[order], weights, atol=1e-8)
    np.testing.assert_allclose(probabilities[:, order], np.concatenate(items), atol=1e-8)


@pytest.mark.cheap
def test_answers_of_a_group_together_carry_more_classes_than_apart(rng):
    answers, weights, items = exact((2,) * 6, 4, rng)

    found, probabilities = joint_estimate(answers, 4, GROUPS, rng)

    order = np.argsort(-found)
    np.testing.assert_allclose(found[order], weights, atol=1e-6)
    np.testing.assert_allclose(probabilities[:, order], np.concatenate(items), atol=1e-6)


@pytest.mark.cheap
def test_the_delta_kernel_gives_anandkumars_algorithm(rng):
    codes, _ = draw(500, *random_classes((4, 5, 3), 2, rng), rng)
    views = fit_views(codes.astype(float), ([0], [1], [2]), [OneHotFeatures()] * 3, rng, range(3))

    found = spectral_fit(codes.astype(float), views, 2, JointDiagonalization(), rng, reference=2)

    weights, components = anandkumar_discrete(codes, 2, JointDiagonalization(), rng)
    np.testing.assert_allclose(found.weights, weights, rtol=1e-9)
    np.testing.assert_allclose(found.vectors[2], components, atol=1e-10)


@pytest.mark.cheap
def test_the_truth_is_a_fixed_point_of_em(rng):
    answers, weights, items = exact(SIZES, 3, rng)

    moved, _ = em_step(answers, one_start(weights, items))

    np.testing.assert_allclose(moved.weights[0], weights, atol=1e-12)
    np.testing.assert_allclose(moved.coefficients[:, 0], np.concatenate(items), atol=1e-12)


@pytest.mark.cheap
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_a_step_is_the_literal_one_for_every_start(missing, rng):
    codes, _ = draw(60, *random_classes(SIZES, 2, rng), rng)
    codes[rng.random(codes.shape) < missing] = -1
    row_weights = rng.uniform(0, 2, size=60)
    answers, _ = distinct_answers(codes, SIZES, row_weights)
    starts = random_start(answers, 3, 4, rng)

    moved, log_likelihood = em_step(answers, starts)

    for s in range(4):
        items = np.split(starts.coefficients[:, s], answers.starts[1:])
        weights, after, value = latent_class_em_step(codes, row_weights, starts.weights[s], items)
        np.testing.assert_allclose(moved.weights[s], weights, rtol=1e-10)
        np.testing.assert_allclose(moved.coefficients[:, s], np.concatenate(after), rtol=1e-9, atol=1e-12)
        assert log_likelihood[s] == pytest.approx(value, rel=1e-12)


@pytest.mark.cheap
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_em_never_loses_likelihood(smoothing, rng):
    codes, _ = draw(200, *random_classes(SIZES, 3, rng), rng)
    answers, _ = distinct_answers(codes, SIZES)
    kernels = smoothing_kernels(smoothing, SIZES, [True, False] * 3)
    parameters, values = random_start(answers, 3, 5, rng), []
    for _ in range(30):
        parameters, value = em_step(answers, parameters, kernels)
        values.append(value)

    assert np.all(np.diff(values, axis=0) > -1e-9)


@pytest.mark.cheap
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_leaps_end_where_plain_steps_go(smoothing, rng):
    codes, _ = draw(300, *random_classes(SIZES, 2, rng), rng)
    answers, _ = distinct_answers(codes, SIZES)
    kernels = smoothing_kernels(smoothing, SIZES, [False] * 6)
    start = random_start(answers, 2, 3, rng)

    fast = accelerated_em(answers, start, 5000, 1e-9, kernels)
    slow = plain_em(answers, start, 1000, kernels)

    assert fast.converged.all()
    assert -1e-7 < fast.log_likelihood.max() - slow.log_likelihood.max() < 1e-3


@pytest.mark.cheap
def test_leaps_never_lose_likelihood(rng):
    codes, _ = draw(150, *random_classes(SIZES, 2, rng), rng)
    answers, _ = distinct_answers(codes, SIZES)
    start = random_start(answers, 4, 20, rng)

    values = [accelerated_em(answers, start, n_iter, 0.0).log_likelihood for n_iter in range(3, 90, 3)]

    assert np.all(np.diff(values, axis=0) > -1e-9)


@pytest.mark.parametrize("smoothing", [0.1, 0.9])
@pytest.mark.parametrize("size", [2, 4])
def test_kernels_on_categories_are_distributions(smoothing, size):
    plain, ordered = smoothing_kernels(smoothing, [size, size], [False, True])

    for kernel in (plain, ordered):
        np.testing.assert_allclose(kernel.sum(axis=0), 1.0)
        assert np.all(np.diag(kernel) >= kernel.max(axis=0) - 1e-12)
    if size > 2:
        assert ordered[1, 0] > ordered[2, 0]  # a neighbour gets more than one further away


@pytest.mark.parametrize(("k", "maximum"), [(2, -317.257), (3, -293.705), (4, -289.286)])
def test_the_search_reaches_the_published_maxima(k, maximum, rng):
    answers = Answers(SLIDES - 1, COUNTS, (2,) * 7)

    run = search(answers, k, list(spectral_starts(answers, k, rng)), 150, rng, 1e-7, 5000, None)

    assert run.log_likelihood[0] == pytest.approx(maximum, abs=6e-4)


@pytest.mark.cheap
def test_distinct_answers_hold_all_rows(rng):
    codes = rng.integers(-1, 3, size=(200, 4))

    answers, inverse = distinct_answers(codes, [3] * 4)

    np.testing.assert_array_equal(answers.codes[inverse], codes)
    assert len(np.unique(answers.codes, axis=0)) == len(answers.codes)
    assert answers.counts.sum() == 200


@pytest.mark.cheap
def test_rows_of_very_many_items_are_told_apart(rng):
    codes = rng.integers(0, 5, size=(50, 90))

    answers, inverse = distinct_answers(codes, [5] * 90)

    np.testing.assert_array_equal(answers.codes[inverse], codes)
