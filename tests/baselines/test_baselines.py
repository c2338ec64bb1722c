import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp
from sklearn.base import clone

import catalogue
from latentviews import JointDiagonalization, PowerMethod
from latentviews.baselines import HistogramSpectral, NonparametricEM, SphericalSpectral
from latentviews.baselines.histogram import _as_probabilities
from latentviews.baselines.nonparametric_em import _profile
from latentviews.baselines.spherical import spherical_components
from latentviews.datasets import make_multiview
from latentviews.metrics import Reordered, density_error, label_accuracy, match_components

BASELINES = [type(baseline) for baseline in catalogue.BASELINES]


def grids(X):
    return [np.linspace(x.min() - 2, x.max() + 2, 200) for x in X.T]


def error(model, X, truth):
    match = match_components(truth.components, model.components_, grids(X), truth.weights)
    matched = [Reordered(view, match) for view in model.components_]
    return density_error(truth.components, matched, grids(X), truth.weights)


def exact_steps(X, posteriors, bandwidth, n_steps, blocks):
    """Nonparametric EM with densities evaluated exactly at the rows."""
    for _ in range(n_steps):
        joint = np.tile(np.log(posteriors.mean(axis=0)), (len(X), 1))
        shares = posteriors / posteriors.sum(axis=0)
        for t, x in enumerate(X.T):
            members = [s for s, b in enumerate(blocks) if b == blocks[t]]
            kernels = [stats.norm.pdf(x[:, None], X[:, s], bandwidth) @ shares for s in members]
            joint += np.log(np.mean(kernels, axis=0))
        posteriors = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    return posteriors


@pytest.mark.parametrize("blocks", [[0, 1, 2], [0, 0, 1], [0, 0, 0]])
def test_binned_steps_equal_exact_ones(blocks, rng):
    X, _, _ = make_multiview(300, 2, separation=2, identical=True, random_state=rng)
    start = rng.dirichlet(np.ones(2), size=300)
    model = NonparametricEM(2, exchangeable=blocks, bandwidth=0.5, init=start, max_iter=5, tol=0).fit(X)
    np.testing.assert_allclose(model.responsibilities_, exact_steps(X, start, 0.5, 5, blocks), atol=2e-3)
    assert model.n_iter_ == 5
    assert not model.converged_


def test_densities_of_nonparametric_em_are_weighted_kernel_estimates(rng):
    X, _, _ = make_multiview(300, 2, random_state=rng)
    model = NonparametricEM(2, bandwidth=[0.4, 0.5, 0.6], random_state=0).fit(X)
    shares = model.responsibilities_ / model.responsibilities_.sum(axis=0)
    for x, grid, view, h in zip(X.T, grids(X), model.components_, [0.4, 0.5, 0.6], strict=True):
        np.testing.assert_allclose(view.density(grid), stats.norm.pdf(grid[:, None], x, h) @ shares, atol=5e-3)


@pytest.mark.parametrize("separation", [1.2, 2.0, 4.0])
def test_the_smoothed_objective_never_falls(separation, rng):
    X, _, _ = make_multiview(400, 3, separation=separation, design="gamma", random_state=rng)
    model = NonparametricEM(3, smoothed=True, init=rng.dirichlet(np.ones(3), size=400), max_iter=200).fit(X)
    assert len(model.objective_path_) == model.n_iter_
    assert np.diff(model.objective_path_).min() > -1e-10


def test_a_bandwidth_for_every_view_and_class_is_taken_as_given(rng):
    X, y, _ = make_multiview(500, 2, random_state=rng)
    widths = rng.uniform(0.2, 0.6, size=(3, 2))
    model = NonparametricEM(2, bandwidth=widths, init=np.eye(2)[y]).fit(X)
    np.testing.assert_array_equal(model.bandwidths_, widths)
    np.testing.assert_array_equal(model.components_[1].bandwidths, widths[1])


def test_classes_keep_the_order_of_a_start(rng):
    X, y, truth = make_multiview(1000, 3, random_state=rng)
    model = NonparametricEM(3, init=np.eye(3)[y]).fit(X)
    assert np.mean(model.predict(X) == y) > 0.98
    np.testing.assert_allclose(model.weights_, truth.weights, atol=0.05)


@pytest.mark.parametrize("smoothed", [False, True])
def test_a_class_that_dies_leaves_no_nan(smoothed, rng):
    X, y, _ = make_multiview(300, 2, random_state=rng)
    start = np.column_stack([np.eye(2)[y], np.zeros(300)])
    model = NonparametricEM(3, init=start, smoothed=smoothed, max_iter=30).fit(X)
    assert model.weights_[2] < 1e-10
    two = NonparametricEM(2, init=np.eye(2)[y], smoothed=smoothed, max_iter=30).fit(X)
    np.testing.assert_allclose(model.predict_proba(X)[:, :2], two.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(model.score_samples(X), two.score_samples(X), atol=1e-6)
    assert np.all(np.isfinite(model.components_[0].density(X[:, 0])))


@pytest.mark.parametrize("baseline", BASELINES)
def test_separated_classes_are_found(baseline, rng):
    X, y, truth = make_multiview(4000, 3, random_state=rng)
    model = baseline(3, random_state=0).fit(X)
    assert label_accuracy(y, model.predict(X)) > 0.9
    np.testing.assert_allclose(model.weights_, truth.weights[::-1], atol=0.08)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert model.score(X) == pytest.approx(model.score_samples(X).mean())


@pytest.mark.parametrize("baseline", BASELINES)
def test_densities_have_mass_one(baseline, rng):
    X, _, _ = make_multiview(1000, 3, random_state=rng)
    x = np.linspace(-60, 60, 40_001)
    for view in baseline(3, random_state=0).fit(X).components_:
        density = view.density(x)
        assert np.all(density >= 0)
        np.testing.assert_allclose(density.sum(axis=0) * (x[1] - x[0]), 1, atol=5e-3)


@pytest.mark.parametrize("baseline", BASELINES)
def test_scores_fall_far_from_the_data_and_stay_numbers(baseline, rng):
    X, _, _ = make_multiview(500, 2, random_state=rng)
    model = baseline(2, random_state=0).fit(X)
    assert -np.inf < model.score_samples(np.full((1, 3), 100.0))[0] < model.score_samples(X).min()


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("n_bins", [12, "auto", "cv"])
def test_histograms_find_the_classes_however_bins_are_chosen(strategy, n_bins, rng):
    X, y, _ = make_multiview(2000, 2, random_state=rng)
    model = HistogramSpectral(2, n_bins=n_bins, strategy=strategy, random_state=0).fit(X)
    assert label_accuracy(y, model.predict(X)) > 0.97
    if n_bins == 12:
        assert model.n_bins_ == 12


def spherical_population(weights, means, variances):
    """The raw moments of a mixture of spherical Gaussians, from its parameters."""
    eye = np.eye(means.shape[1])
    second = np.einsum("h,hi,hj->ij", weights, means, means) + weights @ variances * eye
    third = np.einsum("h,hi,hj,hl->ijl", weights, means, means, means)
    mixed = np.einsum("h,hi,jl->ijl", weights * variances, means, eye)
    third += mixed + mixed.transpose(1, 0, 2) + mixed.transpose(1, 2, 0)
    return weights @ means, second, third


@pytest.mark.parametrize("solver", [JointDiagonalization(), PowerMethod()], ids=repr)
@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_exact_moments_of_spherical_gaussians_give_exact_parameters(k, solver, rng):
    weights = rng.dirichlet(np.full(k, 5.0))
    means, variances = rng.normal(size=(k, 5)) * 3, rng.uniform(0.5, 2, size=k)
    found = spherical_components(*spherical_population(weights, means, variances), k, solver, rng)
    order = match(weights, found.weights)
    np.testing.assert_allclose(found.weights[order], weights, rtol=1e-6)
    np.testing.assert_allclose(found.means[order], means, atol=1e-5)
    np.testing.assert_allclose(found.variances[order], variances, rtol=1e-5)


def match(true, found):
    """Order ``found`` as ``true`` is."""
    order = np.empty(len(true), dtype=int)
    order[np.argsort(true)] = np.argsort(found)
    return order


def test_opposite_means_are_no_obstacle_to_the_spherical_method(rng):
    """About the origin they are dependent; about another they are not."""
    y = rng.integers(2, size=20_000)
    X = np.where(y == 1, 3.0, -3.0)[:, None] + rng.normal(size=(20_000, 3))
    model = SphericalSpectral(2, random_state=0).fit(X)
    assert label_accuracy(y, model.predict(X)) > 0.99
    np.testing.assert_allclose(np.sort(model.means_[:, 0]), [-3, 3], atol=0.1)
    np.testing.assert_allclose(model.variances_, 1, atol=0.1)


@pytest.mark.parametrize("baseline", BASELINES)
def test_a_run_is_a_function_of_its_data_and_seed(baseline, rng):
    X, _, _ = make_multiview(500, 3, random_state=rng)
    one, two = (baseline(3, random_state=1).fit(X) for _ in range(2))
    np.testing.assert_array_equal(one.weights_, two.weights_)
    np.testing.assert_array_equal(clone(one).fit(X).predict_proba(X), one.predict_proba(X))


@pytest.mark.parametrize("baseline", BASELINES)
def test_a_failed_fit_changes_nothing(baseline, rng):
    X, _, _ = make_multiview(300, 2, random_state=rng)
    model = baseline(2, random_state=0).fit(X)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="constant"):
        model.fit(np.column_stack([X, np.ones(300)]))
    np.testing.assert_array_equal(model.predict_proba(X), before)


@pytest.mark.parametrize("baseline", [HistogramSpectral, SphericalSpectral])
def test_a_solver_is_an_object_that_decomposes(baseline, rng):
    with pytest.raises(TypeError, match="solver must be an object with a method `decompose`; got 'power'"):
        baseline(2, solver="power").fit(rng.normal(size=(50, 3)))


START = np.full((50, 2), 0.5)
BAD_INPUT = {
    "a wide view": (
        lambda X: NonparametricEM(2, views=[[0], [1, 2], [3]]).fit(X),
        "views of one column each; view 1 has 2",
    ),
    "a wide view, histogram": (lambda X: HistogramSpectral(2).fit([X, X, X]), "views of one column each; view 0 has 4"),
    "missing values": (lambda X: NonparametricEM(2).fit(np.where(X > 1, np.nan, X)), "contains NaN. .* complete rows"),
    "two columns": (lambda X: SphericalSpectral(2).fit(X[:, :2]), "at least three views; got 2"),
    "constant column": (lambda X: NonparametricEM(2).fit(X * [1, 0, 1, 1]), "Column 1 .* is constant"),
    "more classes than rows": (lambda X: NonparametricEM(99).fit(X), "99 component.* at least 99 rows"),
    "no classes": (lambda X: HistogramSpectral(0).fit(X), "n_components must be an integer of at least 1; got 0"),
    "a bandwidth of zero": (lambda X: NonparametricEM(2, bandwidth=0.0).fit(X), "positive and finite"),
    "an unknown rule": (lambda X: NonparametricEM(2, bandwidth="best").fit(X), "one of .*'cv'.* got 'best'"),
    "bandwidths for other views": (lambda X: NonparametricEM(2, bandwidth=[1.0, 2.0]).fit(X), r"one per view \(4\)"),
    "a start of another shape": (lambda X: NonparametricEM(3, init=START).fit(X), r"\(50, 3\); got \(50, 2\)"),
    "a start that is no posterior": (lambda X: NonparametricEM(2, init=START * 3).fit(X), "summing to one"),
    "no steps": (lambda X: NonparametricEM(2, max_iter=0).fit(X), "max_iter must be an integer of at least 1"),
    "fewer bins than classes": (
        lambda X: HistogramSpectral(3, n_bins=2).fit(X),
        "n_bins must be an integer of at least 3",
    ),
    "an unknown strategy": (lambda X: HistogramSpectral(2, strategy="best").fit(X), "strategy must be one of"),
    "more classes than columns": (
        lambda X: SphericalSpectral(5).fit(X),
        "at most as many components as there are columns.* 5 components and 4 columns",
    ),
    "means on a line": (
        lambda X: spherical_components(
            *spherical_population(np.array([0.5, 0.5]), np.array([[1.0, 0, 0], [2.0, 0, 0]]), np.zeros(2)),
            3,
            JointDiagonalization(),
            np.random.default_rng(0),
        ),
        "too near a plane of fewer dimensions",
    ),
}


@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input_gets_one_clear_sentence(case):
    call, message = BAD_INPUT[case]
    with pytest.raises(ValueError, match=message):
        call(np.random.default_rng(0).normal(size=(50, 4)))


def test_batches_are_refused_with_a_pointer_to_the_model_that_reads_them(rng):
    class Batches:
        def __iter__(self):
            return iter([rng.normal(size=(50, 3))])

    with pytest.raises(TypeError, match="NonparametricEM takes one NumPy array; got a Batches"):
        NonparametricEM(2).fit(Batches())


def test_the_spectral_histogram_says_what_its_moments_do_not_carry():
    X = np.random.default_rng(0).normal(size=(30, 3))
    with pytest.raises(ValueError, match="The moments of these views support"):
        HistogramSpectral(8, n_bins=8).fit(X)


@pytest.mark.parametrize("baseline", BASELINES)
def test_samples_are_like_the_data(baseline, rng):
    X, _, _ = make_multiview(3000, 3, random_state=rng)
    model = baseline(3, random_state=0).fit(X)
    drawn, labels = model.sample(3000)
    assert drawn.shape == X.shape
    np.testing.assert_allclose(np.bincount(labels) / 3000, model.weights_, atol=0.04)
    for x, like in zip(X.T, drawn.T, strict=True):
        assert stats.ks_2samp(x, like).statistic < (0.3 if baseline is SphericalSpectral else 0.06)


@pytest.mark.parametrize("baseline", BASELINES)
def test_criteria_count_the_parameters(baseline, rng):
    X, _, _ = make_multiview(500, 2, random_state=rng)
    model = baseline(2, random_state=0).fit(X)
    n_parameters = (model.bic(X) - model.aic(X)) / (np.log(500) - 2)
    np.testing.assert_allclose(model.aic(X), -2 * 500 * model.score(X) + 2 * n_parameters)
    if baseline is SphericalSpectral:
        np.testing.assert_allclose(n_parameters, 1 + 2 * 3 + 2)
    elif baseline is HistogramSpectral:
        np.testing.assert_allclose(n_parameters, 1 + 2 * 3 * (model.n_bins_ - 1))
    else:
        assert 10 < n_parameters < 200


def test_a_class_without_a_positive_bin_is_spread_over_all_bins():
    found = _as_probabilities(np.array([[0.5, -1.0], [-0.1, -2.0], [1.5, 0.0], [0.0, -0.1]]))

    np.testing.assert_allclose(found, [[0.25, 0.25], [0, 0.25], [0.75, 0.25], [0, 0.25]])


@pytest.mark.parametrize("width", [1e-300, 1e-3, 2.0])
def test_kernels_of_any_width_have_mass_one_on_a_grid(width):
    grid = np.linspace(0, 1, 11)
    with np.errstate(all="raise", under="ignore"):
        values = _profile(grid, np.array([width]))

    np.testing.assert_allclose(0.1 * values.sum(axis=0), 1)
