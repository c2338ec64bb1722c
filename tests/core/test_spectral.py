import itertools
from dataclasses import replace

import numpy as np
import pytest

from catalogue import SOLVERS
from latentviews import KernelHMM, MultiViewMixture
from latentviews.core.features.bins import BinnedFeatures
from latentviews.core.features.indicators import OneHotFeatures
from latentviews.core.features.landmarks import LandmarkFeatures
from latentviews.core.kernels.discrete import Delta
from latentviews.core.kernels.real import Gaussian
from latentviews.core.moments import pair_moments, pair_total, triple_sum, whitened_moments, whitened_total
from latentviews.core.spectral import spectral_fit
from latentviews.core.tensors import JointDiagonalization
from latentviews.core.views import Views
from latentviews.core.whitening import whiten, whiten_exchangeable
from latentviews.datasets import make_hmm, make_multiview
from reference import algorithm_1, appendix_9

pytestmark = pytest.mark.cheap


def random_model(rng, n_views, k, size, exchangeable=False):
    """Class weights and conditional tables (size, k) whose columns are far from dependent."""
    weights = rng.dirichlet(np.full(k, 10.0))
    tables = [rng.dirichlet(np.ones(size), size=k).T + 2 * np.eye(size)[:, :k] for _ in range(n_views)]
    tables = [table[rng.permutation(size)] / 3 for table in tables]
    return weights, [tables[0]] * n_views if exchangeable else tables


def population(weights, tables):
    """Every possible row and its probability."""
    rows = np.array(list(itertools.product(*(range(len(table)) for table in tables))), dtype=float)
    joint = np.ones((len(rows), len(weights))) * weights
    for t, table in enumerate(tables):
        joint *= table[rows[:, t].astype(int)]
    return rows, joint.sum(axis=1)


def one_hot_views(tables):
    maps = [OneHotFeatures(len(table)).fit(np.zeros((1, 1))) for table in tables]
    return Views(tuple([t] for t in range(len(tables))), tuple(maps))


def worst_error(found, weights, tables):
    """The largest error of a weight or a probability, the classes ordered by weight."""
    order = np.argsort(-weights, kind="stable")
    errors = [np.abs(found.weights - weights[order]).max()]
    errors += [np.abs(v - table[:, order]).max() for v, table in zip(found.vectors, tables, strict=True)]
    return max(errors)


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
@pytest.mark.parametrize(("n_views", "size"), [(3, 5), (5, 4)])
def test_exact_moments_give_exact_parameters_for_every_reference_view(solver, n_views, size):
    worst = 0.0
    for seed in range(15):
        rng = np.random.default_rng(seed)
        weights, tables = random_model(rng, n_views, 3, size)
        rows, probability = population(weights, tables)
        views = one_hot_views(tables)
        for reference in range(n_views):
            found = spectral_fit(rows, views, 3, solver, rng, weights=probability, reference=reference)
            worst = max(worst, worst_error(found, weights, tables))
    assert worst <= 1e-10


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
@pytest.mark.parametrize("n_views", [3, 4])
def test_exact_moments_of_exchangeable_views_give_exact_parameters(solver, n_views, rng):
    for _ in range(20):
        weights, tables = random_model(rng, n_views, 3, 4, exchangeable=True)
        rows, probability = population(weights, tables)
        found = spectral_fit(rows, one_hot_views(tables), 3, solver, rng, weights=probability, exchangeable=True)
        assert worst_error(found, weights, tables) <= 1e-10


def test_views_too_poor_alone_are_enough_in_groups(rng):
    """Nine two-valued views determine three classes, though no view alone has rank three."""
    weights = np.array([0.5, 0.3, 0.2])
    tables = [np.stack([p, 1 - p]) for p in rng.uniform(0.05, 0.95, size=(9, 3))]
    rows, probability = population(weights, tables)
    found = spectral_fit(rows, one_hot_views(tables), 3, JointDiagonalization(), rng, weights=probability)
    assert worst_error(found, weights, tables) <= 1e-6


def test_a_pilot_of_other_rows_leaves_the_answer_exact(rng):
    """Only the span of the projections matters, so a rough pilot and exact sums give exact parameters."""
    weights, tables = random_model(rng, 3, 3, 5)
    rows, probability = population(weights, tables)
    pilot = rows[rng.choice(len(rows), size=400, p=probability)]
    found = spectral_fit(
        rows, one_hot_views(tables), 3, JointDiagonalization(), rng, weights=probability, pilot=(pilot, None)
    )
    assert worst_error(found, weights, tables) <= 1e-9


def continuous_views(X, kernel):
    maps = tuple(LandmarkFeatures(kernel, n_landmarks=None, tol=1e-13).fit(X[:, [t]]) for t in range(X.shape[1]))
    return Views(tuple([t] for t in range(X.shape[1])), maps)


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_all_landmarks_equal_the_transcript_of_appendix_9(solver, rng):
    X, _, _ = make_multiview(120, 2, random_state=rng)
    kernel, views = Gaussian(1.0), continuous_views(X, Gaussian(1.0))
    phi = [map_.transform(X[:, [t]]) for t, map_ in enumerate(views.features)]
    u, _, vt = np.linalg.svd(phi[0].T @ phi[1])
    alpha, beta = np.linalg.pinv(phi[0].T) @ u[:, :2], np.linalg.pinv(phi[1].T) @ vt[:2].T

    weights, components = appendix_9(kernel, list(X.T[:, :, None]), 2, solver, rng, alpha, beta)
    found = spectral_fit(X, views, 2, solver, rng, reference=2)

    x = np.linspace(X.min(), X.max(), 50)[:, None]
    order = np.argsort(-weights)
    np.testing.assert_allclose(found.weights, weights[order], atol=1e-8)
    np.testing.assert_allclose(views.features[2].transform(x) @ found.vectors[2], components(x)[:, order], atol=1e-6)


PAPERS_ORDERS = ((0, 1), (1, 0))
ALL_ORDERS = tuple(itertools.permutations(range(3), 2))


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
@pytest.mark.parametrize("orders", [PAPERS_ORDERS, ALL_ORDERS], ids=["the paper's", "all"])
def test_all_landmarks_equal_the_transcript_of_algorithm_1(solver, orders, rng):
    X, _, _ = make_multiview(100, 2, identical=True, random_state=rng)
    kernel = Gaussian(1.0)
    phi = LandmarkFeatures(kernel, n_landmarks=None, tol=1e-13).fit(X.reshape(-1, 1))
    views = Views(([0], [1], [2]), (phi,) * 3)

    weights, components = algorithm_1(kernel, list(X.T[:, :, None]), 2, solver, rng, orders)
    if orders is PAPERS_ORDERS:  # the library pools every pair of views; the paper only the first
        found_weights, density = algorithm_1_by_features(X, views, 2, solver, rng)
    else:
        found = spectral_fit(X, views, 2, solver, rng, exchangeable=True)
        found_weights, density = found.weights, lambda x: phi.transform(x) @ found.vectors[0]

    x, order = np.linspace(X.min(), X.max(), 50)[:, None], np.argsort(-weights)
    np.testing.assert_allclose(np.sort(found_weights)[::-1], weights[order], atol=1e-8)
    np.testing.assert_allclose(density(x)[:, np.argsort(-found_weights)], components(x)[:, order], atol=1e-6)


def algorithm_1_by_features(X, views, rank, solver, rng):
    """Algorithm 1 from the library's parts, with the first pair of views alone."""
    whitening = whiten_exchangeable({(0, 1): pair_moments(X, views)[0, 1]}, rank)
    every = replace(whitening, groups=((0,), (1,), (2,)), down=whitening.down[:1] * 3)
    moments = whitened_moments(X, views, every)
    tensor = np.mean([moments.triple.transpose(p) for p in itertools.permutations(range(3))], axis=0)
    found = solver.decompose(tensor, rng)
    vectors = whitening.up[0] @ (found.vectors * found.values)
    return found.values**-2, lambda x: views.features[0].transform(x) @ vectors


def test_one_hot_features_equal_delta_landmarks(rng):
    weights, tables = random_model(rng, 3, 2, 4)
    rows, probability = population(weights, tables)
    sample = rows[rng.choice(len(rows), size=2000, p=probability)]
    landmarks = tuple(LandmarkFeatures(Delta(), n_landmarks=None).fit(np.arange(4.0)[:, None]) for _ in range(3))

    hot = spectral_fit(sample, one_hot_views(tables), 2, JointDiagonalization(), np.random.default_rng(0))
    views = Views(([0], [1], [2]), landmarks)
    delta = spectral_fit(sample, views, 2, JointDiagonalization(), np.random.default_rng(0))

    values = np.arange(4.0)[:, None]
    np.testing.assert_allclose(hot.weights, delta.weights, atol=1e-12)
    for phi, vectors, expected in zip(landmarks, delta.vectors, hot.vectors, strict=True):
        np.testing.assert_allclose(phi.transform(values) @ vectors, expected, atol=1e-12)


@pytest.mark.parametrize("size", [1, 7, 100, 5000])
def test_batches_of_any_size_give_the_same_moments(size, rng):
    X, _, _ = make_multiview(500, 2, random_state=rng)
    views = continuous_views(X[:40], Gaussian(1.0))
    batches = [X[i : i + size] for i in range(0, len(X), size)]
    for whole, parts in zip(*(pair_total(data, views).mean() for data in (X, batches)), strict=True):
        np.testing.assert_allclose(parts, whole, atol=1e-13)
    whitening = whiten(pair_moments(X, views), 2)
    for whole, parts in zip(*(whitened_total(data, views, whitening).mean() for data in (X, batches)), strict=True):
        np.testing.assert_allclose(parts, whole, atol=1e-10)


def test_triple_sums_equal_brute_force(rng):
    z, weights = [rng.normal(size=(7, 3)) for _ in range(5)], rng.random(7)
    brute = sum(
        np.einsum("n,ni,nj,nl->ijl", weights, z[r], z[s], z[t]) for r, s, t in itertools.combinations(range(5), 3)
    )
    by_rows = [[table.T for table in z], [(table * weights[:, None]).T for table in z]]
    np.testing.assert_allclose(triple_sum(*by_rows), brute, atol=1e-12)


@pytest.mark.parametrize("exchangeable", [False, True])
def test_values_missing_at_random_leave_exact_moments_exact(exchangeable, rng):
    """Every pattern of missing views, with the same law of the rest: pairwise-available moments are the same."""
    weights, tables = random_model(rng, 4, 2, 3, exchangeable)
    rows, probability = population(weights, tables)
    patterns = [np.where(np.isin(np.arange(4), gap), np.nan, rows) for gap in ([], [0], [1, 3], [2])]
    data, mass = np.concatenate(patterns), np.concatenate([probability] * 4)
    found = spectral_fit(
        data, one_hot_views(tables), 2, JointDiagonalization(), rng, weights=mass, exchangeable=exchangeable
    )
    assert worst_error(found, weights, tables) <= 1e-10


def test_whitening_down_and_up_are_inverse_on_exact_moments(rng):
    weights, tables = random_model(rng, 4, 3, 5)
    rows, probability = population(weights, tables)
    whitening = whiten(pair_moments(rows, one_hot_views(tables), probability), 3)
    for group in whitening.groups:
        inverse = sum(whitening.down[t].T @ whitening.up[t] for t in group)
        np.testing.assert_allclose(inverse, np.eye(3), atol=1e-10)


def test_error_on_a_discrete_model_falls_as_the_root_of_n():
    rng = np.random.default_rng(0)
    weights, tables = random_model(rng, 3, 2, 4)
    rows, probability = population(weights, tables)
    views, sizes = one_hot_views(tables), np.array([1000, 10_000, 100_000])

    def error(n):
        sample = rows[rng.choice(len(rows), size=n, p=probability)]
        return worst_error(spectral_fit(sample, views, 2, JointDiagonalization(), rng), weights, tables)

    medians = [np.median([error(n) for _ in range(20)]) for n in sizes]
    slope = np.polyfit(np.log(sizes), np.log(medians), 1)[0]
    assert abs(slope + 0.5) < 0.1  # a median of 20 errors varies by some 15 %, so the slope by .04


@pytest.mark.parametrize("name", ["mixture", "chain"])
def test_a_number_of_classes_that_is_to_be_found_costs_no_map_more_than_the_wide_ones_of_its_test(name, monkeypatch):
    fits, fit = [], BinnedFeatures.fit
    monkeypatch.setattr(BinnedFeatures, "fit", lambda self, *rows: fits.append(1) or fit(self, *rows))
    made = {
        "mixture": lambda k: MultiViewMixture(k, random_state=0).fit(make_multiview(400, 2, random_state=0).X),
        "chain": lambda k: KernelHMM(k, random_state=0).fit(make_hmm(400, random_state=0).X),
    }[name]

    found = made("auto")
    asked, k = len(fits), found.n_components_ if name == "mixture" else found.n_states_
    assert k > 1
    made(k)

    assert asked - (len(fits) - asked) == 3  # of three views, or three times
