"""The surface that classes with independent and with dependent views share."""

import inspect

import array_api_strict as strict
import numpy as np
import pytest
from scipy.special import logsumexp

from latentviews import Copulas, MultiViewMixture
from latentviews._arrays import to_numpy
from latentviews.baselines import HistogramSpectral
from latentviews.datasets import make_multiview
from latentviews.mixtures.dependence.classes import DependentClasses
from latentviews.mixtures.inference import Classes
from latentviews.mixtures.problem import Estimate, classes_of

KINDS = {  # a new kind of classes is added here
    "independent": (Estimate, {}),
    "dependent": (DependentClasses, {"dependence": Copulas(n_starts=1, max_iter=10)}),
    "with noise": (DependentClasses, {"dependence": Copulas(n_starts=1, max_iter=10, noise=True)}),
}
SURFACE = [name for name in vars(Classes) if not name.startswith("_")]


@pytest.fixture(scope="module")
def rows():
    return make_multiview(600, 2, design="gamma", separation=4.0, random_state=0)


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def fitted(kind, rows):
    return MultiViewMixture(2, random_state=0, **KINDS[kind][1]).fit(rows.X)


@pytest.fixture(scope="module")
def classes(fitted):
    return classes_of(fitted)


def signature(owner, name):
    """The names and kinds of the arguments of a method, None for a value."""
    member = inspect.getattr_static(owner, name, None)
    if not inspect.isfunction(member):
        return None
    return [(each.name, each.kind) for each in inspect.signature(member).parameters.values()]


@pytest.mark.parametrize("name", SURFACE)
def test_both_kinds_have_the_whole_surface_with_the_same_arguments(name, kind, classes):
    assert type(classes) is KINDS[kind][0]
    assert hasattr(classes, name)
    assert signature(type(classes), name) == signature(Classes, name)


def test_posteriors_have_a_row_for_each_row_and_sum_to_one(kind, classes, fitted, rows):
    gaps = np.where(np.arange(600)[:, None] % 3 == np.arange(3), np.nan, rows.X)
    for table in (rows.X, gaps):
        joint, posteriors = classes.log_joint(table), classes.posteriors(table)
        assert posteriors.shape == (600, 2)
        whole = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
        np.testing.assert_allclose(whole.sum(axis=1), 1.0)
        np.testing.assert_allclose(posteriors, whole[:, :2])
        np.testing.assert_array_equal(posteriors, fitted.predict_proba(table))
    if kind == "with noise":
        assert classes.log_joint(rows.X).shape == (600, 3)
        assert np.all(posteriors.sum(axis=1) <= 1 + 1e-12)
    else:
        np.testing.assert_allclose(posteriors.sum(axis=1), 1.0)


def test_draws_are_of_the_classes_they_are_said_to_be_of(classes, rows):
    drawn, labels = classes.sample(3000, 5, np.random.default_rng(0))
    assert drawn.shape == (3000, 5)
    assert np.isnan(drawn[:, 3:]).all()
    inside = labels >= 0
    np.testing.assert_allclose(np.bincount(labels[inside]) / inside.sum(), classes.weights, atol=0.05)
    found = classes.posteriors(drawn[inside]).argmax(axis=1)
    assert np.mean(found == labels[inside]) > 0.95


def test_a_view_given_the_others_has_a_mean_a_density_and_draws(classes, rows):
    given = classes.conditional(rows.X[:40], 1)
    points = np.linspace(rows.X[:, 1].min() - 3, rows.X[:, 1].max() + 3, 2000)
    density = given.density(points)
    assert given.posteriors.shape[0] == 40
    np.testing.assert_allclose(given.posteriors.sum(axis=1), 1.0)
    assert density.shape == (40, 2000)
    step = points[1] - points[0]
    np.testing.assert_allclose(density.sum(axis=1) * step, 1.0, atol=0.03)
    np.testing.assert_allclose(density @ points * step, given.mean()[:, 0], atol=0.1)
    draws = np.stack([given.sample(seed)[:, 0] for seed in range(200)])
    spread = draws.std(axis=0)
    assert np.all(np.abs(draws.mean(axis=0) - given.mean()[:, 0]) < 5 * spread / np.sqrt(200) + 0.05)


def test_the_view_itself_says_nothing_of_what_it_is_given_the_others(classes, rows):
    other = rows.X[:40].copy()
    other[:, 1] += 3.0
    np.testing.assert_array_equal(classes.conditional(rows.X[:40], 1).mean(), classes.conditional(other, 1).mean())


def test_refits_follow_the_rows_that_are_drawn(classes, rows):
    labels, ones = classes.posteriors(rows.X).argmax(axis=1), np.ones(600)
    same, tilted = classes.resampled(rows.X, [ones, np.where(labels == 0, 1.5, 0.5)])
    assert same.shape == tilted.shape == (600, 2)
    np.testing.assert_allclose(same.sum(axis=0) / same.sum(), classes.weights, atol=0.03)
    expected = np.bincount(labels, np.where(labels == 0, 1.5, 0.5))
    np.testing.assert_allclose(tilted.sum(axis=0) / tilted.sum(), expected / expected.sum(), atol=0.03)


def test_functional_weights_give_the_means_of_the_classes(classes, rows):
    weights = classes.functional_weights(rows.X, 0, np.ones(600))
    assert weights.shape == (600, 2)
    labels = classes.posteriors(rows.X).argmax(axis=1)
    means = rows.X[:, 0] @ weights / weights.sum(axis=0)
    np.testing.assert_allclose(means, [rows.X[labels == h, 0].mean() for h in range(2)], atol=0.3)


def test_parameters_count_and_orders_change(classes, fitted, rows):
    assert classes.n_parameters > 3 * 2
    assert fitted.bic(rows.X) == pytest.approx(-2 * 600 * fitted.score(rows.X) + np.log(600) * classes.n_parameters)
    turned = classes.take(np.array([1, 0]))
    np.testing.assert_allclose(turned.weights, classes.weights[::-1])
    np.testing.assert_allclose(turned.posteriors(rows.X), classes.posteriors(rows.X)[:, ::-1])
    assert turned.n_parameters == pytest.approx(classes.n_parameters)


def test_refits_follow_classes_in_another_order(classes, rows):
    order = np.array([1, 0])
    (turned,), (same,) = (list(one.resampled(rows.X, [np.ones(600)])) for one in (classes.take(order), classes))
    np.testing.assert_allclose(turned, same[:, order], atol=1e-6)


def test_a_fit_without_a_polish_has_no_refits(rows):
    spectral = MultiViewMixture(2, polish=None, random_state=0).fit(rows.X)
    with pytest.raises(ValueError, match="fitted with polish=None"):
        next(classes_of(spectral).resampled(rows.X, [np.ones(600)]))


def test_baselines_are_judged_by_the_same_classes(rows):
    model = HistogramSpectral(2, random_state=0).fit(rows.X)
    np.testing.assert_allclose(classes_of(model).posteriors(rows.X), model.predict_proba(rows.X))


def test_answers_come_in_the_library_of_the_question(rows, fitted):
    there = strict.asarray(rows.X[:20], device=strict.Device("device1"))

    for ask in (fitted.predict, fitted.predict_proba, fitted.score_samples):
        found = ask(there)
        assert found.device == there.device
        np.testing.assert_allclose(to_numpy(found), ask(rows.X[:20]), rtol=1e-10)
