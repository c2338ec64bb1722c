import warnings
from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import pytest

from latentviews.core.features import grid_sums
from latentviews.core.features.base import FactoredFeatureMap, FeatureMap, raw_vectors, tail_of
from latentviews.core.features.bins import BinnedFeatures, GridFeatures
from latentviews.core.features.fourier import FourierFeatures
from latentviews.core.features.indicators import OneHotFeatures
from latentviews.core.features.landmarks import LandmarkFeatures
from latentviews.core.features.sketches import TensorSketchFeatures
from latentviews.core.kernels.real import Gaussian
from latentviews.core.moments import (
    Embed,
    Projection,
    Whitens,
    feature_vectors,
    pair_moments,
    resampled_moments,
    whitened_moments,
    whitened_total,
)
from latentviews.core.views import Views
from latentviews.core.whitening import (
    IdentifiabilityWarning,
    UnsupportedError,
    _check_spectrum,
    _conditioning,
    _scales,
    triple_whitening,
    whiten,
    whiten_exchangeable,
)
from latentviews.datasets import make_multiview
from latentviews.mixtures.mixture import MultiViewMixture

MAPS = [  # a new feature map is added here
    LandmarkFeatures(Gaussian(1.0), 10, random_state=0),
    BinnedFeatures(Gaussian(1.0), 64),
    OneHotFeatures(),
    FourierFeatures(Gaussian(1.0), 8, random_state=0),
    TensorSketchFeatures(n_sketch=8, random_state=0),
    GridFeatures(np.linspace(-10, 10, 50), Gaussian(1.0)),
]
maps = pytest.mark.parametrize("phi", MAPS, ids=lambda phi: type(phi).__name__)


def fitted(phi, x):
    return phi.fit(x) if hasattr(phi, "fit") else phi


def three_views(phi, rng, n=200):
    X = make_multiview(n, 2, random_state=rng).X.round()  # few values, so that indicators have something to count
    features = tuple(fitted(phi, X[:, [t]]) for t in range(3))
    return X, Views(([0], [1], [2]), features)


def dense(x):
    return x.toarray() if hasattr(x, "toarray") else np.asarray(x)


def averaged(*vectors):
    """E[u ⊗ v ⊗ …], literally."""
    letters = "abc"[: len(vectors)]
    return np.einsum(f"{','.join(f'n{i}' for i in letters)}->{letters}", *vectors) / len(vectors[0])


@maps
def test_every_map_is_a_feature_map_whose_raw_vectors_and_tail_give_its_vectors(phi, rng):
    x = rng.normal(size=(30, 1)).round(1)
    phi = fitted(phi, x)
    assert isinstance(phi, FeatureMap)
    assert isinstance(phi, FactoredFeatureMap) == hasattr(phi, "raw")
    raw, tail = dense(raw_vectors(phi, x)), tail_of(phi)
    np.testing.assert_allclose(raw if tail is None else raw @ tail, dense(phi.transform(x)), atol=1e-12)


def test_what_has_no_transform_is_no_feature_map():
    assert not isinstance(Gaussian(1.0), FeatureMap)
    assert not isinstance(lambda batch: [batch], Embed)
    assert not isinstance(lambda phi: phi, Whitens)


def test_views_and_projections_embed_and_every_whitening_whitens(rng):
    X, views = three_views(LandmarkFeatures(Gaussian(1.0), 10, random_state=0), rng)
    pairs = pair_moments(X, views)
    shared = Views(views.columns, views.features[:1] * 3)
    model = MultiViewMixture(2, random_state=0).partial_fit(make_multiview(2000, 2, random_state=rng).X)
    whitenings = [
        whiten(pairs, 2),
        whiten_exchangeable(pair_moments(X, shared), 2),
        model.stream_.current.whitening,
    ]
    for whitening in whitenings:
        assert isinstance(whitening, Whitens)
        assert isinstance(Projection(views, whitening.groups, whitening.down), Embed)
    assert isinstance(views, Embed)


@maps
def test_pair_moments_are_those_of_feature_vectors(phi, rng):
    X, views = three_views(phi, rng)
    vectors = [dense(one.transform(X[:, [t]])) for t, one in enumerate(views.features)]
    for embedded, expected in zip(feature_vectors(X, views), vectors, strict=True):
        np.testing.assert_allclose(embedded, expected, atol=1e-12)
    for (s, t), moment in pair_moments(X, views).items():
        np.testing.assert_allclose(moment, averaged(vectors[s], vectors[t]), atol=1e-10)


@maps
def test_whitened_moments_are_those_of_whitened_feature_vectors(phi, rng):
    X, views = three_views(phi, rng)
    components = Views(views.columns, tuple(BinnedFeatures(Gaussian(0.5), 32).fit(X[:, [t]]) for t in range(3)))
    whitening = whiten(pair_moments(X, views), 2)

    moments = whitened_moments(X, views, whitening, component_maps=components)

    phi, psi = feature_vectors(X, views), feature_vectors(X, components)
    z = [phi[t] @ whitening.down[t] for (t,) in whitening.groups]
    np.testing.assert_allclose(moments.triple, averaged(*z), atol=1e-8)
    for i in range(3):
        for j in range(3):
            np.testing.assert_allclose(moments.pairs[i, j], averaged(z[i], z[j]) * (i != j), atol=1e-8)
        for t in range(3):
            of_others = averaged(psi[t], z[i]) * (t not in whitening.groups[i])
            np.testing.assert_allclose(moments.components[t][:, i], of_others, atol=1e-8)


@pytest.mark.parametrize("groups", [((0,), (1,), (2,)), ((0, 3), (1, 4), (2,))], ids=["three", "five"])
def test_columns_on_grids_have_the_sums_that_sparse_matrices_have(groups, rng, monkeypatch):
    n_views = sum(map(len, groups))
    X = rng.normal(size=(700, n_views))
    X[:5] *= 40  # beyond the grids
    columns = tuple([t] for t in range(n_views))
    views = Views(columns, tuple(BinnedFeatures(Gaussian(0.7), 64).fit(X[5:, [t]]) for t in range(n_views)))
    grids = [GridFeatures(np.linspace(-3, 3, 40 + t), Gaussian(0.5)) for t in range(n_views)]
    down = [rng.normal(size=(phi.tail_.shape[1], 2)) for phi in views.features]
    whitening = SimpleNamespace(groups=groups, down=down)
    maps = Views(columns, tuple(grids))

    quick = whitened_total(X, views, whitening, component_maps=maps)
    monkeypatch.setattr(grid_sums, "ROWS", 64)
    in_parts = whitened_total(X, views, whitening, component_maps=maps)
    plain = whitened_total(X, views, whitening, np.ones(len(X)), maps)  # weights take the other way

    for one, two, three in zip(quick.sums, in_parts.sums, plain.sums, strict=True):
        np.testing.assert_allclose(one, three, atol=1e-11 * max(np.abs(three).max(), 1))
        np.testing.assert_allclose(two, three, atol=1e-11 * max(np.abs(three).max(), 1))


def test_moments_of_rows_that_are_weighted_in_several_ways_are_those_of_each(rng):
    X, views = three_views(LandmarkFeatures(Gaussian(1.0), 10, random_state=0), rng)
    X[::9, 1] = np.nan
    whitening = whiten(pair_moments(X, views), 2)
    ways = [None, rng.exponential(size=len(X)), rng.exponential(size=len(X))]
    for found, weights in zip(resampled_moments(X, views, whitening, ways), ways, strict=True):
        expected = whitened_moments(X, views, whitening, weights)
        np.testing.assert_allclose(found.pairs, expected.pairs, atol=1e-12)
        np.testing.assert_allclose(found.triple, expected.triple, atol=1e-12)


def test_a_projection_of_a_group_is_zero_where_one_of_its_views_is_missing(rng):
    X, views = three_views(LandmarkFeatures(Gaussian(1.0), 10, random_state=0), rng)
    phi, down = feature_vectors(X, views), [rng.normal(size=(one.tail_.shape[1], 2)) for one in views.features]
    project = Projection(views, ((0, 2), (1,)), down)
    both = phi[0] @ down[0] + phi[2] @ down[2]
    np.testing.assert_allclose(project(X)[0], both, atol=1e-10)
    assert project.present(X) is None

    gaps = X.copy()
    gaps[:50, 2] = np.nan
    np.testing.assert_allclose(project(gaps)[0], np.where(np.arange(len(X))[:, None] < 50, 0.0, both), atol=1e-10)
    np.testing.assert_array_equal(project.present(gaps).sum(axis=0), [len(X) - 50, len(X)])


def test_a_pair_of_views_of_too_low_a_rank_is_not_inverted():
    """A singular value that is zero exactly has no inverse, and noise would be no excuse for one."""
    pair = np.eye(3), np.array([1.0, 0.5, 0.0]), np.eye(3)

    with pytest.raises(UnsupportedError, match=r"support 2 component\(s\), not the 3"):
        triple_whitening(pair, np.eye(3), np.eye(3), 3)

    first, second, third = triple_whitening(pair, np.eye(3), np.eye(3), 2)
    np.testing.assert_allclose(first.T @ np.diag(pair[1]) @ second, np.eye(2), atol=1e-12)
    assert third.shape == (3, 2)


def test_views_are_scaled_by_the_root_of_their_moments_and_empty_ones_not_at_all():
    pairs = {(0, 1): np.full((1, 1), 4.0), (0, 2): np.zeros((1, 1)), (1, 2): np.zeros((1, 1))}

    np.testing.assert_allclose(_scales(pairs, 3), [np.sqrt(2), np.sqrt(2), 1.0])


def test_a_singular_value_that_is_rounding_is_warned_of():
    with pytest.warns(IdentifiabilityWarning, match="Singular value 3"):
        _check_spectrum(np.array([1.0, 1e-12, 1e-18]), 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _check_spectrum(np.array([1.0, 0.5, 1e-18]), 2)


@pytest.mark.parametrize("poor", [0, 1, 2])
def test_the_view_that_tells_classes_apart_worst_is_the_reference(poor):
    """The pair of the other two is inverted, being the best conditioned; exact moments C_st = M_s diag(π) M_tᵀ."""
    good, bad = np.array([[0.8, 0.1], [0.1, 0.8], [0.1, 0.1]]), np.array([[0.45, 0.35], [0.35, 0.45], [0.2, 0.2]])
    tables = [bad if t == poor else good for t in range(3)]
    pairs = {(s, t): tables[s] * [0.6, 0.4] @ tables[t].T for s in range(3) for t in range(s + 1, 3)}

    assert whiten(pairs, 2).groups[2] == (poor,)


def exact_pairs(tables, weights):
    """C_st = M_s diag(π) M_tᵀ for all pairs of views."""
    n_views = len(tables)
    return {(s, t): tables[s] * weights @ tables[t].T for s in range(n_views) for t in range(s + 1, n_views)}


def test_groups_of_views_with_different_numbers_of_features_are_whitened(rng):
    """Stacked views are cut apart where each ends: E[z_g z_hᵀ] = I for z_g = Σ_{t in g} down_tᵀ φ_t."""
    tables = [rng.dirichlet(np.ones(size), size=2).T for size in (2, 3, 4, 5, 6, 3)]
    pairs = exact_pairs(tables, np.array([0.6, 0.4]))

    found = whiten(pairs, 2)

    assert [down.shape[0] for down in found.down] == [2, 3, 4, 5, 6, 3]
    means = [sum(found.down[t].T @ tables[t] for t in group) for group in found.groups]  # E[z_g | h]
    for s, t in [(0, 1), (0, 2), (1, 2)]:
        np.testing.assert_allclose(means[s] * [0.6, 0.4] @ means[t].T, np.eye(2), atol=1e-10)


def test_a_view_that_tells_nothing_is_no_ground_for_a_warning_about_the_pair_of_the_others():
    good = np.array([[0.8, 0.1], [0.1, 0.8], [0.1, 0.1]])
    pairs = exact_pairs([good, good, np.full((3, 2), 1 / 3)], np.array([0.6, 0.4]))

    with warnings.catch_warnings(), suppress(UnsupportedError):  # whether the reference does is another question
        warnings.simplefilter("error", IdentifiabilityWarning)
        assert whiten(pairs, 2).groups[2] == (2,)


@pytest.mark.parametrize(
    ("spectrum", "rank", "expected"),
    [([2.0, 0.0], 1, 1.0), ([4.0, 1.0, 0.5], 2, 0.25), ([1.0], 2, 0.0), ([0.0], 1, 0.0)],
)
def test_conditioning_is_the_last_singular_value_used_over_the_first(spectrum, rank, expected):
    assert _conditioning(np.array(spectrum), rank) == expected
