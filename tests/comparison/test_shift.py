"""Weights carry one sample over to another, shares of classes are found without labels, columns are ranked."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from latentviews import Delta, HSICSelector, covariate_shift_weights, label_shift


def test_weights_match_the_means_of_the_target(rng):
    source, target = rng.normal(size=(800, 2)), rng.normal(0.7, 0.6, size=(600, 2))

    weights = covariate_shift_weights(source, target, random_state=0)

    assert weights.min() >= 0
    np.testing.assert_allclose(weights.mean(), 1.0)
    np.testing.assert_allclose(np.average(source, axis=0, weights=weights), target.mean(axis=0), atol=0.1)
    np.testing.assert_allclose(np.average(source**2, axis=0, weights=weights), (target**2).mean(axis=0), atol=0.15)


def test_samples_of_one_distribution_get_weights_near_one(rng):
    weights = covariate_shift_weights(rng.normal(size=500), rng.normal(size=500), random_state=0)

    assert weights.std() < 0.4


@pytest.mark.parametrize("n_columns", [1, 5, 20])
def test_samples_that_do_not_overlap_are_told(n_columns, rng):
    source, target = rng.normal(size=(2, 200, n_columns))
    away = np.eye(n_columns)[0]
    with pytest.warns(UserWarning, match="target and source hardly overlap: .* % of their squared distance"):
        covariate_shift_weights(source, target + 1000 * away, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for shift in (0.0, 1.0, 2.0):
            covariate_shift_weights(source, target + shift * away, random_state=0)


def test_a_weighted_line_is_right_where_it_is_used(rng):
    """A straight line for a curved truth: fitted near zero, used near one (Huang et al. 2007, section 4)."""
    better = 0
    for seed in range(10):
        x, t = rng.normal(0.5, 0.5, size=(200, 1)), rng.normal(0.0, 0.3, size=(200, 1))
        curve = [z[:, 0] ** 3 - z[:, 0] for z in (x, t)]
        y = curve[0] + 0.3 * rng.normal(size=200)
        weights = covariate_shift_weights(x, t, random_state=seed)
        plain, weighted = LinearRegression().fit(x, y), LinearRegression().fit(x, y, sample_weight=weights)
        errors = [np.mean((model.predict(t) - curve[1]) ** 2) for model in (weighted, plain)]
        better += errors[0] < errors[1]

    assert better >= 8


def test_shares_of_classes_are_found_without_labels(rng):
    errors, unweighted = [], []
    for seed in range(10):
        labels = rng.choice(3, size=500, p=[0.5, 0.3, 0.2])
        truth = np.array([0.1, 0.3, 0.6])
        hidden = rng.choice(3, size=500, p=truth)
        source, target = (rng.normal(size=(500, 2)) + 1.5 * np.eye(3)[z][:, :2] for z in (labels, hidden))
        found = label_shift(source, np.array(["a", "b", "c"])[labels], target, random_state=seed)
        errors.append(np.abs(found.target - truth).sum())
        unweighted.append(np.abs(found.source - truth).sum())

    assert list(found.classes) == ["a", "b", "c"]
    assert np.mean(errors) < 0.5 * np.mean(unweighted)


def test_shares_are_exact_with_categories(rng):
    """With the delta kernel the embeddings are tables, and the target is a mixture of them exactly."""
    source = np.repeat([0.0, 1.0, 1.0, 2.0], [30, 10, 10, 30])
    labels = np.repeat([0, 1], 40)
    target = np.repeat([0.0, 1.0, 2.0], [45, 20, 15])

    found = label_shift(source, labels, target, kernel=Delta(), random_state=0)

    np.testing.assert_allclose(found.target, [0.75, 0.25], atol=1e-6)
    np.testing.assert_allclose(found.weights[[0, -1]], [1.5, 0.5], atol=1e-5)


def test_columns_that_tell_the_target_are_selected_and_copies_are_not(rng):
    x = rng.normal(size=(400, 8))
    x[:, 5] = x[:, 2] + 0.01 * rng.normal(size=400)  # tells what another has told
    y = x[:, 2] ** 2 + np.sin(2 * x[:, 6])

    selector = HSICSelector(2, random_state=0).fit(x, y)

    chosen = set(selector.get_support(indices=True).tolist())
    assert 6 in chosen
    assert len(chosen & {2, 5}) == 1
    assert set(np.argsort(selector.scores_)[-3:]) == {2, 5, 6}
    assert selector.transform(x).shape == (400, 2)


def test_classes_of_any_type_are_targets(rng):
    x = rng.normal(size=(300, 4))
    y = np.where(np.abs(x[:, 1]) > 0.7, "far", "near")

    assert HSICSelector(1, random_state=0).fit(x, y).get_support(indices=True).tolist() == [1]


def test_a_constant_target_is_told(rng):
    with pytest.warns(UserWarning, match="y is the same in all rows"):
        HSICSelector(1, random_state=0).fit(rng.normal(size=(30, 2)), np.zeros(30))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: covariate_shift_weights(np.zeros((5, 2)), np.zeros((5, 1))), "same columns; got 2 and 1"),
        (lambda: covariate_shift_weights(np.arange(5.0), np.arange(5.0), bound=0.5), "at least 1"),
        (lambda: label_shift(np.arange(5.0), np.zeros(4), np.arange(5.0)), r"shape \(5,\); got \(4,\)"),
        (lambda: label_shift(np.arange(5.0), [0, 1, np.nan, 0, 1], np.arange(5.0)), "NaN, which is no class"),
        (lambda: label_shift(np.arange(5.0), [None] * 5, np.arange(5.0)), "None or NaN, which is no class"),
        (lambda: covariate_shift_weights(["a"] * 5, np.arange(5.0)), r"source must hold real numbers; got"),
        (lambda: HSICSelector(9).fit(np.eye(5), np.arange(5.0)), "n_features_to_select=9, but X has 5 columns"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()
