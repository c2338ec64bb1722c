"""`MultiViewMixture` where views depend on each other inside classes."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.integrate import trapezoid
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV

from latentviews import Copulas, Delta, IdentifiabilityWarning, MultiViewMixture, diagnose
from latentviews.datasets import make_multiview
from latentviews.metrics import label_accuracy
from latentviews.mixtures.dependence.choosing import DependenceChoice, _judged
from latentviews.mixtures.dependence.consensus import point_masses
from latentviews.mixtures.problem import warn_of_hidden
from latentviews.plot import DensityDisplay


def slanted(rng, n=1000, n_views=3):
    """Two long classes beside each other: in every view they overlap, and inside each the views rise together."""
    y = (rng.random(n) < 0.35).astype(int)
    along = rng.gamma(2.0, size=n)
    X = along[:, None] + 0.25 * rng.normal(size=(n, n_views))
    X[:, 0] += 2.0 * y
    return X, y


def bent(rng, n=1000):
    """An arc of a class around a ball of another: no component alone describes the arc."""
    y = (rng.random(n) < 0.4).astype(int)
    angle = rng.uniform(0, np.pi, size=n)
    arc = 4 * np.column_stack([np.cos(angle), np.sin(angle), 0 * angle])
    return np.where(y[:, None] == 1, 0, arc) + 0.5 * rng.normal(size=(n, 3)), y


def gammas(rng, n=1000):
    """Two classes of independent views."""
    X, y, _ = make_multiview(n, 2, design="gamma", random_state=rng)
    return X, y


@pytest.fixture
def one_rng():
    """One seed, where three would tell no more."""
    return np.random.default_rng(5)


def robust(n_components=2, **settings):
    """A quick fit: two starts are enough for easy data."""
    settings = {"n_starts": 1, "max_iter": 30} | settings
    return MultiViewMixture(n_components, dependence=Copulas(**settings), random_state=0)


@pytest.fixture(scope="module")
def fitted():
    X, y = slanted(np.random.default_rng(5), 2000)
    return robust().fit(X), X, y


@pytest.mark.parametrize("design", [slanted, bent])
def test_classes_are_found_where_views_depend_on_each_other(design, rng):
    X, y = design(rng)
    model = robust(n_starts=4).fit(X)
    assert label_accuracy(y, model.predict(X)) > 0.97
    np.testing.assert_allclose(model.weights_, np.sort(np.bincount(y) / len(y))[::-1], atol=0.02)


def test_independence_misleads_where_views_depend(one_rng):
    X, y = slanted(one_rng)
    assert label_accuracy(y, MultiViewMixture(2, random_state=0).fit(X).predict(X)) < 0.9


def test_valleys_count_the_classes(one_rng):
    X, y = bent(one_rng)
    model = robust("auto").fit(X)
    assert model.n_components_ == 2
    assert adjusted_rand_score(y, model.predict(X)) > 0.9


def test_classes_that_win_no_row_are_not_counted(rng):
    y = rng.integers(2, size=600)
    X = rng.normal(size=(600, 3)) + 8 * y[:, None]  # ten parts for two balls: most of them hide beneath another
    model = robust("auto").fit(X)
    assert model.n_components_ == len(np.unique(model.predict(X))) == 2


def test_the_joint_density_is_proper(fitted):
    model, X, _ = fitted
    axes = [np.linspace(x.min() - 6, x.max() + 6, 70) for x in X.T]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    density = np.exp(model.score_samples(points)).reshape(70, 70, 70)
    mass = trapezoid(trapezoid(trapezoid(density, axes[2]), axes[1]), axes[0])
    assert mass == pytest.approx(1, abs=0.02)


def test_the_joint_density_is_better_than_a_product(one_rng):
    X, _ = slanted(one_rng, 3000)
    model = robust().fit(X[:1500])
    product = MultiViewMixture(2, random_state=0).fit(X[:1500])
    assert model.score(X[1500:]) > product.score(X[1500:]) + 0.3


def test_narrow_classes_are_not_smoothed_over(one_rng):
    y = one_rng.integers(7, size=2000)  # seven classes over a range of forty times their deviations
    centers = np.column_stack([6.0 * one_rng.permutation(7) for _ in range(3)])
    X = centers[y] + one_rng.uniform(0.4, 1.2, size=(7, 3))[y] * one_rng.normal(size=(2000, 3))
    gaussian = GaussianMixture(7, n_init=5, random_state=0).fit(X[:1000])
    model = robust(7).fit(X[:1000])
    assert model.score(X[1000:]) > gaussian.score(X[1000:]) - 0.25
    assert label_accuracy(y, model.predict(X)) > 0.99


def test_columns_with_a_point_mass_keep_wide_kernels(one_rng):
    X = one_rng.normal(size=(1000, 3)) + 6 * (one_rng.random((1000, 1)) < 0.4)
    X[:, 0] = np.maximum(X[:, 0], 0)
    margins = robust(max_iter=5).set_params(point_masses=None).fit(X).dependent_.mixture.margins
    assert np.all(margins.bandwidths[0] == margins.grids.bandwidths[0])
    assert np.all(margins.bandwidths[1:].min(axis=1) < margins.grids.bandwidths[1:])


def test_point_masses_are_smoothed_in_silence_where_none_are_wanted(one_rng):
    X = np.maximum(one_rng.normal(size=(600, 3)), 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = MultiViewMixture(1, dependence=Copulas(n_starts=1), point_masses=None, random_state=0).fit(X)

    drawn, _ = model.sample(500)
    assert 0.3 < np.mean(np.abs(drawn) < 0.3) < 0.8  # many near the mass,
    assert not np.any(drawn == 0)  # and none at it


def test_components_are_the_margins_of_the_classes(fitted):
    model, X, y = fitted
    names = np.bincount(y).argsort()[::-1]
    for t, view in enumerate(model.components_):
        grid = np.linspace(X[:, t].min() - 6, X[:, t].max() + 6, 2000)
        density = view.density(grid)
        np.testing.assert_allclose(trapezoid(density, grid, axis=0), 1, rtol=1e-2)
        means = [X[y == h, t].mean() for h in names]
        np.testing.assert_allclose(view.expectation(lambda x: x[:, 0]), means, atol=0.15)
        np.testing.assert_allclose(trapezoid(grid[:, None] * density, grid, axis=0), means, atol=0.15)
        drawn = view.sample(0, 2000, np.random.default_rng(0))
        assert drawn.mean() == pytest.approx(means[0], abs=0.2)
        assert view.mmd()[0, 0] == pytest.approx(0, abs=1e-6)
    assert model.components_[0].mmd()[0, 1] > model.components_[1].mmd()[0, 1]


def test_draws_look_like_the_rows(fitted):
    model, X, _ = fitted
    drawn, labels = model.sample(2000)
    assert label_accuracy(labels, model.predict(drawn)) > 0.95
    assert np.bincount(labels).argmax() == 0
    np.testing.assert_allclose(np.corrcoef(drawn.T), np.corrcoef(X.T), atol=0.1)
    for x, z in zip(X.T, drawn.T, strict=True):
        assert np.abs(np.quantile(x, [0.1, 0.5, 0.9]) - np.quantile(z, [0.1, 0.5, 0.9])).max() < 0.3


def test_rows_with_missing_views_are_fitted_and_judged(one_rng):
    X, y = slanted(one_rng)
    X[one_rng.random(X.shape) < 0.1] = np.nan
    model = robust().fit(X)
    whole = ~np.isnan(X).any(axis=1)
    assert label_accuracy(y[whole], model.predict(X[whole])) > 0.95
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    empty = np.full((1, 3), np.nan)
    np.testing.assert_allclose(model.predict_proba(empty)[0], model.weights_)
    assert model.score_samples(empty)[0] == pytest.approx(0, abs=1e-9)


def test_a_missing_view_is_told_by_the_others(fitted):
    model, X, _ = fitted
    rows = X[:300]
    given = model.conditional(rows, 2)
    # views 1 and 2 are the same up to noise of .25 each
    assert np.sqrt(np.mean((given.mean()[:, 0] - rows[:, 2]) ** 2)) < 0.6
    grid = np.linspace(X.min() - 6, X.max() + 6, 1500)
    density = given.density(grid)
    np.testing.assert_allclose(trapezoid(density, grid, axis=1), 1, rtol=0.02)
    np.testing.assert_allclose(density @ grid * (grid[1] - grid[0]), given.mean()[:, 0], atol=0.1)
    drawn = np.stack([given.sample(seed)[:, 0] for seed in range(50)])
    spread = np.sqrt(np.maximum(density @ grid**2 * (grid[1] - grid[0]) - given.mean()[:, 0] ** 2, 0))
    assert np.mean(np.abs(drawn.mean(axis=0) - given.mean()[:, 0]) < 4 * spread / np.sqrt(50)) > 0.97


def test_expectations_have_standard_errors(fitted):
    model, X, y = fitted
    found = model.expectation(lambda x: x[:, 0], X, view=1)
    truth = [X[y == h, 1].mean() for h in np.bincount(y).argsort()[::-1]]
    np.testing.assert_allclose(found.values, truth, atol=0.1)
    assert np.all(found.standard_errors > 0)


def test_bootstrap_intervals_hold_the_weights(fitted):
    model, X, _ = fitted
    found = model.bootstrap(X, 20, f=lambda x: x[:, 0], view=0, random_state=1)
    low, high = found.interval(0.9)
    assert np.all((low < model.weights_) & (model.weights_ < high))
    spread = np.sqrt(model.weights_ * (1 - model.weights_) / len(X))
    assert np.all((found.weights.std(axis=0) > spread / 2) & (found.weights.std(axis=0) < 3 * spread))
    assert found.values.shape == (20, 2)


def test_criteria_count_what_was_fitted(fitted):
    model, X, _ = fitted
    log_likelihood = model.score_samples(X).sum()
    n_parameters = (model.aic(X) + 2 * log_likelihood) / 2
    assert 50 < n_parameters < 1000
    assert model.bic(X) == pytest.approx(-2 * log_likelihood + np.log(len(X)) * n_parameters)


def scattered(rng, n=1000, share=0.1, n_far=4):
    """Three balls, rows spread evenly around them, and a few far away; -1 is what belongs to no ball."""
    y = np.where(rng.random(n) < share, -1, rng.choice(3, size=n, p=[0.5, 0.3, 0.2]))
    centers = np.array([[-5.0, -5, -5], [0, 5, 0], [5, -2, 5], [0, 0, 0]])
    X = np.where(y[:, None] < 0, rng.uniform(-10, 10, size=(n, 3)), centers[y] + 0.8 * rng.normal(size=(n, 3)))
    far = rng.choice([-1, 1], size=(n_far, 3)) * rng.uniform(40, 200, size=(n_far, 3))
    return np.concatenate([X, far]), np.append(y, np.full(n_far, -1))


@pytest.fixture(scope="module")
def noisy():
    X, y = scattered(np.random.default_rng(5))
    return MultiViewMixture(3, dependence=Copulas(noise=True), random_state=0).fit(X), X, y


def test_noise_may_be_a_class(noisy):
    model, X, y = noisy
    labels = model.predict(X)
    assert np.mean(labels[y < 0] == -1) > 0.8
    assert np.all(labels[-4:] == -1)
    assert np.mean(labels[y >= 0] == -1) < 0.02
    inside = (labels >= 0) & (y >= 0)
    assert label_accuracy(y[inside], labels[inside]) > 0.99
    np.testing.assert_allclose(model.weights_, [0.5, 0.3, 0.2], atol=0.04)
    assert model.dependent_.noise_weight == pytest.approx(np.mean(y < 0), abs=0.02)


def test_far_rows_are_noise_when_they_are_met_later(noisy):
    model, _, _ = noisy
    away = np.array([[60.0, 0, 0], [-5, -5, -60], [1e3, 1e3, 1e3], [0, -1e9, np.nan]])
    np.testing.assert_array_equal(model.predict(away), -1)
    assert np.all(np.isfinite(model.score_samples(away)))
    assert model.predict([[-5.0, -5, -5]])[0] == 0


def test_probabilities_leave_the_rest_to_noise(noisy):
    model, X, _ = noisy
    probabilities, labels = model.predict_proba(X), model.predict(X)
    assert probabilities.shape == (len(X), 3)
    rest = 1 - probabilities.sum(axis=1)
    np.testing.assert_array_equal(labels == -1, rest > probabilities.max(axis=1))


def test_draws_have_noise_of_its_weight(noisy):
    model, _, _ = noisy
    drawn, labels = model.sample(4000)
    assert np.mean(labels == -1) == pytest.approx(model.dependent_.noise_weight, abs=0.02)
    assert np.mean(model.predict(drawn[labels == -1]) == -1) > 0.7
    low, high = model.bootstrap(scattered(np.random.default_rng(5))[0], 6, random_state=0).interval(0.9)
    assert np.all((low - 0.03 < model.weights_) & (model.weights_ < high + 0.03))


def test_classes_are_counted_with_noise_around_them(one_rng):
    X, y = scattered(one_rng)
    model = robust("auto", noise=True).fit(X)
    assert model.n_components_ == 3
    assert adjusted_rand_score(y, model.predict(X)) > 0.9


def test_little_is_lost_where_there_is_no_noise(one_rng):
    X, y = slanted(one_rng)
    labels = robust(noise=True).fit(X).predict(X)
    assert np.mean(labels == -1) < 0.02
    assert label_accuracy(y[labels >= 0], labels[labels >= 0]) > 0.97


def test_rows_without_any_class_are_one_all_the_same(one_rng):
    model = robust(noise=True).set_params(n_components=1).fit(one_rng.uniform(size=(300, 3)))
    assert model.weights_ == pytest.approx([1])


def test_rows_of_the_background_are_shared_out_where_noise_is_no_class(fitted):
    model, X, _ = fitted
    classes = replace(model.dependent_, mixture=replace(model.dependent_.mixture, noise=0.1))
    noisy = replace(classes, noise_class=True)
    np.testing.assert_allclose(
        logsumexp(classes.log_joint(X), axis=1), logsumexp(noisy.log_joint(X), axis=1), atol=1e-9
    )
    np.testing.assert_allclose(classes.posteriors(X).sum(axis=1), 1)
    assert np.all(noisy.posteriors(X) <= classes.posteriors(X) + 1e-12)
    rng = np.random.default_rng(0)
    assert set(classes.sample(500, 3, rng)[1]) == {0, 1}
    assert np.mean(noisy.sample(4000, 3, rng)[1] == -1) == pytest.approx(0.1, abs=0.03)


def test_views_of_several_columns_keep_their_joint_distribution(one_rng):
    X, y = slanted(one_rng, n_views=5)
    model = robust().set_params(views=[[0, 1], [2, 3], [4]]).fit(X)
    assert label_accuracy(y, model.predict(X)) > 0.97
    drawn = model.components_[0].sample(0, 2000, one_rng)
    inside = X[y == np.bincount(y).argmax()][:, :2]
    assert np.corrcoef(drawn.T)[0, 1] == pytest.approx(np.corrcoef(inside.T)[0, 1], abs=0.05)
    assert model.components_[0].density(X[:5, :2]).shape == (5, 2)
    assert model.conditional(X[:5], 0).mean().shape == (5, 2)


def test_known_rows_name_the_classes(one_rng):
    X, y = slanted(one_rng)
    known = np.where(one_rng.random(len(y)) < 0.05, 1 - y, -1)  # the rarer class is called 0
    model = robust().fit(X, known)
    assert np.mean(model.predict(X) == 1 - y) > 0.97
    assert model.weights_[0] < model.weights_[1]


def test_batches_beyond_the_pilot_count(one_rng):
    X, y = slanted(one_rng, 6000)

    class Batches:
        def __iter__(self):
            return iter(np.array_split(X, 5))

    model = robust().set_params(pilot_size=2000).fit(Batches())
    whole = robust().set_params(pilot_size=2000).fit(X)
    assert label_accuracy(y, model.predict(X)) > 0.97
    np.testing.assert_allclose(model.weights_, whole.weights_, atol=0.02)
    np.testing.assert_allclose(model.weights_, np.sort(np.bincount(y) / 6000)[::-1], atol=0.01)


def test_row_weights_count(one_rng):
    X, y = slanted(one_rng)
    weights = np.where(y == 1, 3.0, 1.0)
    model = robust().fit(X, sample_weight=weights)
    share = weights[y == 1].sum() / weights.sum()
    np.testing.assert_allclose(model.weights_.max(), max(share, 1 - share), atol=0.03)


def test_a_run_is_a_function_of_its_data_and_seed(fitted):
    model, X, _ = fitted
    again = clone(model).fit(X)
    np.testing.assert_array_equal(model.predict_proba(X), again.predict_proba(X))
    threads = clone(model).set_params(n_jobs=2).fit(X)
    np.testing.assert_array_equal(model.predict(X), threads.predict(X))


def test_classes_follow_those_of_another_fit(fitted):
    model, X, _ = fitted
    other = clone(model).fit(X)
    before = other.predict(X)
    other._reorder(np.array([1, 0]))
    np.testing.assert_array_equal(other.predict(X), 1 - before)
    np.testing.assert_array_equal(other.align_to(model).predict(X), before)


def test_starts_that_disagree_are_followed_by_more_and_reported(one_rng):
    X = one_rng.normal(size=(500, 4))  # one class, cut into four
    settings = Copulas(n_starts=1, max_iter=10)
    with pytest.warns(IdentifiabilityWarning, match="agree little"):
        model = MultiViewMixture(4, dependence=settings, random_state=0).fit(X)
    assert model.agreement_ < 0.5
    names = [f"{kind} {trial}" for trial in (1, 2, 3) for kind in ("Gaussian mixture", "k-means")]
    assert [name for name in model.start_objectives_ if name != "spectral"] == names
    assert "agree" in diagnose(model, X, n_permutations=19, random_state=0).summary()


def test_a_diagnosis_asks_for_copulas_where_they_are_needed(fitted):
    model, X, _ = fitted
    some = X[:600]
    product = MultiViewMixture(2, random_state=0).fit(some)
    assert 'dependence="auto"' in diagnose(product, some, n_permutations=39, random_state=0).summary()
    assert "k-means 1" in model.start_objectives_
    assert "k-means 2" not in model.start_objectives_  # starts agree
    diagnosis = diagnose(model, some, n_permutations=39, random_state=0)
    assert diagnosis.dependence.flagged()
    assert 'dependence="auto"' not in diagnosis.summary()
    assert any(finding.trusted and "allows" in finding.text for finding in diagnosis.findings)


@pytest.mark.parametrize(("design", "taken"), [(slanted, "copula"), (gammas, "independence")])
def test_held_out_rows_say_whether_views_depend(design, taken, one_rng):
    X, _ = design(one_rng, 600)
    model = MultiViewMixture(2, dependence="auto", random_state=0).fit(X)
    other = MultiViewMixture(2, dependence="copula" if taken == "copula" else None, random_state=0).fit(X)
    choice = model.dependence_choice_
    assert choice.taken == taken
    assert (choice.copula > choice.independence + 0.05) == (taken == "copula")
    assert f"{choice.copula:.2f} per row with copulas and {choice.independence:.2f} without" in choice.sentence
    assert (model.dependent_ is not None) == (taken == "copula")
    np.testing.assert_array_equal(model.predict_proba(X), other.predict_proba(X))
    assert model.dependence == "auto"
    assert not hasattr(model.set_params(dependence=None).fit(X), "dependence_choice_")


def test_point_masses_do_not_choose(one_rng):
    X, y = slanted(one_rng)
    unseen = one_rng.random((1000, 2)) < 0.5  # narrow kernels at zero make independent views as likely as one likes
    X = np.column_stack([X, np.where(unseen, 0.0, one_rng.gamma(3.0, size=(1000, 2)) + y[:, None])])
    model = MultiViewMixture(2, dependence="auto", random_state=0).fit(X)
    assert model.dependence_choice_.taken == "copula"
    assert label_accuracy(y, model.predict(X)) > 0.95


@pytest.mark.parametrize(
    ("agreement", "stability", "likelier", "taken"),
    [
        (0.9, (0.9, 0.9), "copula", "copula"),
        (0.9, (0.9, 0.9), "independence", "independence"),
        (0.9, (0.9, 0.4), "copula", "copula"),  # classes of a wrong model may well be stable
        (0.4, (0.9, 0.9), "copula", "copula"),
        (0.9, (0.4, 0.9), "independence", "copula"),
        (0.9, (0.4, 0.4), "independence", "independence"),
    ],
)
def test_the_likelier_way_is_taken_unless_independent_views_are_unstable(agreement, stability, likelier, taken):
    likelihoods = (-1.0, -2.0) if likelier == "independence" else (-2.0, -1.0)
    found, sentence = _judged(*likelihoods, agreement, stability, 0.5)
    assert found == taken
    assert ("unstable" in sentence) == (taken != likelier)


@pytest.mark.parametrize(
    ("copula", "stability", "between", "taken", "why"),
    [
        (-1.01, (0.85, 0.89), 0.2, "copula", "more stable"),
        (-1.01, (0.89, 0.85), 0.2, "independence", "more stable"),
        (-0.99, (0.89, 0.85), 0.2, "copula", "likelier"),  # independence assumes more
        (-0.99, (0.89, 0.45), 0.2, "independence", "whose classes are unstable"),
        (-0.94, (0.89, 0.45), 0.2, "copula", "likelier"),
        (-0.99, (0.45, 0.35), 0.2, "copula", "likelier"),
        (-0.99, (0.95, 0.98), 0.95, "independence", "leads to the same classes"),
        (-1.01, (0.3, 0.94), 0.95, "copula", "more stable"),
    ],
)
def test_independence_is_to_be_likelier_by_a_margin_or_more_stable(copula, stability, between, taken, why):
    found, sentence = _judged(-1.0, copula, 0.9, stability, between)
    assert found == taken
    assert why in sentence


def test_copulas_are_not_unstable_where_hardly_a_row_changes_its_class():
    numbers = -1.0, -0.99, 0.9, (0.89, 0.28), 0.2  # the index of one class of all rows but a few is low
    assert _judged(*numbers, kept=0.9)[0] == "independence"
    assert _judged(*numbers, kept=0.97)[0] == "copula"


@pytest.mark.parametrize(
    ("copula", "between", "p_value", "taken"),
    [
        (-1.01, 0.5, 1e-4, "copula"),
        (-1.08, 0.5, 1e-4, "copula"),
        (-1.12, 0.5, 1e-4, "independence"),  # likelier by more than narrower kernels gain
        (-1.01, 0.5, 1e-2, "independence"),
        (-1.01, 0.96, 1e-4, "independence"),  # the same classes
    ],
)
def test_independence_that_rows_refute_is_to_be_likelier_by_more(copula, between, p_value, taken):
    found, sentence = _judged(-1.0, copula, 0.4, (0.8, 0.3), between, p_value)
    assert found == taken
    assert ("refute" in sentence) == (taken == "copula")


def test_a_choice_says_how_many_classes_either_way_leads_to():
    _, sentence = _judged(-1.0, -2.0, 1.0, (0.9, 1.0), 0.0, 1.0, (3, 1))
    _, same = _judged(-1.0, -2.0, 1.0, (0.9, 1.0), 0.0, 1.0, (3, 3))

    assert sentence.endswith("Copulas lead to 1 class, independent views to 3 classes.")
    assert "lead to 3" not in same


def test_point_masses_are_values_more_common_than_all_near_them(one_rng):
    x = one_rng.normal(size=1000)
    np.testing.assert_array_equal(point_masses(np.concatenate([np.maximum(x, -0.5), np.full(100, 7)]), 0.2), [-0.5, 7])
    assert len(point_masses(np.round(10 * x), 3.0)) == 0
    assert len(point_masses(np.round(x), 0.2)) == 0  # rounded: all rows are at a few values


def test_wide_margins_do_not_speak_against_copulas(one_rng):
    y = one_rng.integers(2, size=600)
    together = one_rng.normal(size=(600, 1))  # correlations of .5 inside two classes that lie far apart,
    X = together + one_rng.normal(size=(600, 3)) + 18 * y[:, None]  # so that .2 deviations are as wide as a class
    choice = MultiViewMixture(2, dependence="auto", random_state=0).fit(X).dependence_choice_
    assert choice.copula > choice.independence
    assert choice.taken == "copula"


def test_thirty_columns_of_few_rows_are_told_apart_by_copulas():
    X, y = load_breast_cancer(return_X_y=True)
    views = [list(range(first, first + 10)) for first in (0, 10, 20)]  # means, errors and worst values of ten features
    with warnings.catch_warnings():
        warnings.simplefilter("error", IdentifiabilityWarning)
        model = MultiViewMixture(2, views=views, dependence="auto", random_state=0).fit(X)
    assert model.dependence_choice_.taken == "copula"
    assert model.dependence_choice_.copula > model.dependence_choice_.independence + 5
    assert adjusted_rand_score(y, model.predict(X)) > 0.77  # a Gaussian mixture's; independent views have .74


def test_copulas_that_were_not_taken_are_not_advised(one_rng):
    X, _ = slanted(one_rng)
    model = MultiViewMixture(2, random_state=0).fit(X)
    assert "Fit with dependence" in diagnose(model, X, n_permutations=19, random_state=0).summary()
    numbers = -1.0, -2.0, 0.9, (0.9, 0.9), 0.5
    taken, sentence = _judged(*numbers)
    model.dependence_choice_ = DependenceChoice(taken, *numbers, sentence)
    summary = diagnose(model, X, n_permutations=19, random_state=0).summary()
    assert "were tried and not taken" in summary
    assert "Fit with dependence" not in summary


def test_independence_is_taken_where_copulas_cannot_be(one_rng):
    X = one_rng.integers(3, size=(200, 3))
    model = MultiViewMixture(1, kernel=Delta(), dependence="auto", random_state=0).fit(X)
    assert model.dependence_choice_.taken == "independence"
    assert "views are real columns" in model.dependence_choice_.sentence


def test_settings_can_be_searched(one_rng):
    X, _ = slanted(one_rng, 300)
    search = GridSearchCV(robust(max_iter=8), {"dependence__bandwidth": [0.2, 3.0]}, cv=2)
    assert search.fit(X).best_params_ == {"dependence__bandwidth": 0.2}


def test_far_rows_do_not_spoil_a_fit(one_rng):
    X, y = slanted(one_rng)
    X[0] = 1e6
    model = robust().fit(X)
    assert label_accuracy(y[1:], model.predict(X)[1:]) > 0.97


def test_independent_views_lose_little(one_rng):
    X, y, _ = make_multiview(3000, 3, design="gamma", random_state=one_rng)
    model = robust(3).fit(X)
    assert label_accuracy(y, model.predict(X)) > 0.99


def test_a_frame_with_named_views(one_rng):
    X, y = slanted(one_rng, 600)
    grids = pd.DataFrame(X, columns=["a", "b", "c"]).assign(note=1.0)
    model = robust().set_params(views=["a", "b", "c"]).fit(grids)
    assert label_accuracy(y, model.predict(grids)) > 0.95


def test_one_class_needs_no_merging(one_rng):
    X = one_rng.normal(size=(300, 3))
    model = robust(1).fit(X)
    assert model.weights_ == pytest.approx([1])
    expected = stats.norm.logpdf(X).sum(axis=1).mean()
    assert model.score(X) == pytest.approx(expected, abs=0.5)


REFUSED = {
    "a word": ({"dependence": "gaussian"}, 'dependence must be None, "copula", "auto" or Copulas'),
    "a polish": ({"polish": None}, "polish has no part in the fit"),
    "a bandwidth of densities": ({"density_bandwidth": 0.1}, "density_bandwidth has no part"),
    "exchangeable views": ({"exchangeable": True}, "exchangeable must be False"),
    "codes": ({"kernel": Delta()}, "views are real columns; view 0 has a kernel for discrete data"),
    "a warm start": ({"warm_start": True}, "no warm start"),
    "no bandwidth": ({"dependence": Copulas(bandwidth=0)}, "bandwidth must be positive and finite"),
    "a boundless bandwidth": (
        {"dependence": Copulas(bandwidth=np.inf)},
        "bandwidth must be positive and finite.*got inf",
    ),
    "a word for noise": ({"dependence": Copulas(noise="yes")}, "noise must be True.*or False; got 'yes'"),
    "no parts": ({"dependence": Copulas(n_parts=0)}, "n_parts must be an integer"),
    "a ratio": ({"dependence": Copulas(ratio=2)}, "ratio must be in"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_go_with_dependence_is_refused(case):
    settings, message = REFUSED[case]
    X = np.random.default_rng(0).normal(size=(60, 3))
    with pytest.raises(ValueError, match=message):
        MultiViewMixture(2, **{"dependence": "copula", **settings}).fit(X)


def test_known_rows_need_a_number_of_classes(one_rng):
    X, y = slanted(one_rng, 100)
    with pytest.raises(ValueError, match="need their number"):
        MultiViewMixture("auto", dependence="copula").fit(X, np.where(y == 1, 1, -1))


def test_a_fit_without_dependence_forgets_one_with_it(one_rng):
    X, _ = slanted(one_rng, 300)
    model = robust(max_iter=3).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentifiabilityWarning)
        model.set_params(dependence=None).fit(X)
        fresh = MultiViewMixture(2, random_state=0).fit(X)
    assert model.dependent_ is None
    np.testing.assert_array_equal(model.predict_proba(X), fresh.predict_proba(X))


def test_rounded_values_have_smooth_margins(one_rng):
    X = np.round(1.5 * one_rng.normal(size=(600, 3)))  # a bandwidth of .2 deviations would be .3 of a step
    model = robust(1, max_iter=5).fit(X)
    density = model.components_[0].density(np.linspace(-6, 6, 400))[:, 0]
    assert np.sum((density[1:-1] > density[:-2]) & (density[1:-1] > density[2:])) == 1


def test_a_class_that_wins_no_row_is_a_warning_and_held_against_the_fit(one_rng):
    X = one_rng.normal(size=(200, 3))
    model = robust(2, max_iter=3).fit(np.concatenate([X, X + 6]))
    hidden = replace(
        model.dependent_,
        mixture=replace(
            model.dependent_.mixture, weights=model.dependent_.mixture.weights * (model.dependent_.groups == 0)
        ),
    )
    with pytest.warns(IdentifiabilityWarning, match=r"No row is most probably in class 1, of size 0\.0%"):
        warn_of_hidden(np.array([1.0, 0.0]), hidden.log_joint, X)
    model.dependent_, model.weights_, model.shares_ = hidden, np.array([1.0, 0.0]), np.array([1.0, 0.0])
    summary = diagnose(model, X, n_permutations=9, random_state=0).summary()
    assert "No row is most probably in class 1" in summary
    far = diagnose(model, 100 * X, n_permutations=9, random_state=0)
    assert set(far.outside) == {"0", "1", "2"}
    assert "outside the range or scale that the model was fitted to" in far.summary()


def test_a_fit_warns_of_classes_that_win_no_row():
    X = np.random.default_rng(0).normal(size=(300, 3))
    with pytest.warns(IdentifiabilityWarning) as caught:
        MultiViewMixture(6, random_state=0).fit(X)
    assert any("No row is most probably in" in str(one.message) for one in caught)


def test_a_display_of_joint_densities_names_what_draws_a_mixture(fitted):
    with pytest.raises(TypeError, match="LowRankDensity; got a MultiViewMixture, whose views ComponentDisplay draws"):
        DensityDisplay.from_estimator(fitted[0])
