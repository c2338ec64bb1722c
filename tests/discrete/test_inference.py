"""Standard errors of latent classes are those of the likelihood's curvature; tests of the number of classes hold."""

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from latent_classes import COUNTS, SLIDES, cell_probabilities, cells_of, draw, random_classes
from latentviews import LatentClass
from latentviews.discrete.answers import Answers
from latentviews.discrete.inference import Fitted, jacobian_rank, n_parameters, standard_errors
from latentviews.discrete.reading import smoothing_kernels

SIZES = (3, 2, 3, 2)


def log_likelihood(theta, codes, design, kernels, k):
    """Literally, of logits: q (k - 1) of the classes, then those of every item and class but the first category."""
    q = design.shape[1]
    beta = np.column_stack([np.zeros(q), theta[: q * (k - 1)].reshape(q, k - 1)])
    joint = design @ beta - logsumexp(design @ beta, axis=1, keepdims=True)
    place = q * (k - 1)
    for j, size in enumerate(SIZES):
        logits = np.vstack([np.zeros(k), theta[place : place + (size - 1) * k].reshape(size - 1, k)])
        place += (size - 1) * k
        p = softmax(logits, axis=0)
        p = p if kernels is None else kernels[j] @ p
        joint = joint + np.where(codes[:, [j]] >= 0, np.log(p)[codes[:, j]], 0.0)
    return float(logsumexp(joint, axis=1).sum())


def hessian(function, at, step=1e-3):
    """By central differences."""
    d = len(at)
    eye = step * np.eye(d)
    matrix = np.empty((d, d))
    for i in range(d):
        for j in range(i + 1):
            ends = [function(at + a * eye[i] + b * eye[j]) for a, b in [(1, 1), (1, -1), (-1, 1), (-1, -1)]]
            matrix[i, j] = matrix[j, i] = (ends[0] - ends[1] - ends[2] + ends[3]) / (4 * step**2)
    return matrix


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_errors_are_the_inverse_curvature_of_the_likelihood(smoothing, rng):
    weights, items = (
        np.array([0.6, 0.4]),
        [np.array([[0.6, 0.1], [0.3, 0.2], [0.1, 0.7]]), np.array([[0.8, 0.3], [0.2, 0.7]])] * 2,
    )
    codes, _ = draw(400, weights, items, rng)
    codes[rng.random(codes.shape) < 0.1] = -1
    design = np.column_stack([np.ones(400), rng.normal(size=400)])
    kernels = smoothing_kernels(smoothing, SIZES, [True, False, False, False])
    beta = np.array([[0.0, np.log(0.4 / 0.6)], [0.0, 0.3]])
    rows = Answers(codes, np.ones(400), SIZES)

    found, covariance = standard_errors(
        Fitted(rows, design, softmax(design @ beta, axis=1), np.concatenate(items), kernels)
    )

    logits = [np.log(item[1:] / item[0]).ravel() for item in items]  # Louis's formula holds at any parameters
    theta = np.concatenate([beta[:, 1], *logits])
    truth = np.linalg.inv(-hessian(lambda at: log_likelihood(at, codes, design, kernels, 2), theta))
    np.testing.assert_allclose(covariance, truth[:2, :2], rtol=2e-3, atol=1e-6)
    p = softmax(np.vstack([np.zeros(2), logits[0].reshape(2, 2)]), axis=0)[:, 0]  # item 0 in class 0
    slope = (np.diag(p) - np.outer(p, p))[:, 1:]
    slope = slope if kernels is None else kernels[0] @ slope
    own = truth[np.ix_([2, 4], [2, 4])]
    np.testing.assert_allclose(found.components[0][:, 0], np.sqrt(np.diag(slope @ own @ slope.T)), rtol=2e-3)


def test_estimates_on_the_border_have_no_errors_and_others_have():
    model = LatentClass(3, random_state=0).fit(SLIDES, sample_weight=COUNTS)

    errors = model.standard_errors(SLIDES, COUNTS)

    for probabilities, own, boundary in zip(model.components_, errors.components, errors.boundary, strict=True):
        np.testing.assert_array_equal(np.isnan(own), boundary)
        np.testing.assert_array_equal(boundary, (probabilities < 1e-6) | (probabilities > 1 - 1e-6))
    assert errors.n_unidentified == 0
    assert np.all(errors.weights < 0.06)


def test_what_the_data_do_not_fix_has_no_error():
    model = LatentClass(2, n_starts=5, random_state=0)
    X = np.random.default_rng(0).integers(2, size=(200, 2))
    with pytest.warns(UserWarning, match="free cells"):
        model.fit(X)

    assert model.standard_errors(X).n_unidentified > 0
    assert np.isnan(model.standard_errors(X).weights).all()


@pytest.mark.parametrize(
    ("sizes", "k", "lost"), [((2, 2, 2), 2, 0), ((2, 2, 2, 2), 3, 1), ((3, 3, 3), 3, 0), ((2,) * 14, 3, 0)]
)
def test_the_rank_tells_what_items_determine(sizes, k, lost, rng):
    assert jacobian_rank(sizes, k, rng) == n_parameters(sizes, k) - lost


def test_the_bootstrap_test_finds_the_second_class_and_no_third(rng):
    codes, _ = draw(300, np.array([0.6, 0.4]), [np.array([[0.8, 0.2], [0.2, 0.8]])] * 5, rng)
    quick = {"n_resamples": 19, "n_starts": 3, "random_state": 0}

    two = LatentClass(2, n_starts=10, random_state=0).fit(codes).bootstrap_test(codes, **quick)
    three = LatentClass(3, n_starts=10, random_state=0).fit(codes).bootstrap_test(codes, **quick)

    assert two.pvalue == 0.05
    assert three.pvalue > 0.05
    assert two.statistic > three.statistic > 0
    assert np.all(three.null >= 0)


def test_one_class_has_none_fewer(rng):
    codes = cells_of((2, 2, 2))
    with pytest.raises(ValueError, match="One class has none fewer"):
        LatentClass(1).fit(codes).bootstrap_test(codes)


@pytest.mark.cheap
def test_residuals_of_pairs_show_what_the_classes_leave(rng):
    weights, items = np.array([0.5, 0.5]), [np.array([[0.8, 0.2], [0.2, 0.8]])] * 9
    codes, _ = draw(1000, weights, items, rng)
    codes[:, 4] = np.where(rng.random(1000) < 0.4, codes[:, 3], codes[:, 4])  # two items go together

    residuals = LatentClass(2, n_starts=5, random_state=0).fit(codes).goodness_of_fit(codes).bivariate_residuals

    assert np.unravel_index(np.nanargmax(residuals), residuals.shape) in {(3, 4), (4, 3)}


def test_goodness_of_fit_is_over_complete_rows(rng):
    codes, _ = draw(300, *random_classes(SIZES, 2, rng), rng)
    X = codes.astype(float)
    X[:100, 0] = np.nan
    model = LatentClass(2, n_starts=5, random_state=0).fit(X)

    fit = model.goodness_of_fit(X)

    patterns, counts = np.unique(codes[100:], axis=0, return_counts=True)
    expected = 200 * cell_probabilities(patterns, model.weights_, model.components_).sum(axis=1)
    assert fit.n_rows == 200
    assert fit.g_squared == pytest.approx(2 * counts @ np.log(counts / expected))
    assert fit.chi_squared == pytest.approx(((counts - expected) ** 2 / expected).sum() + 200 - expected.sum())
