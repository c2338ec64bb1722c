"""Sums of products of feature vectors over rows in whatever parts, with weights and gaps, are the literal ones."""

import pickle
from itertools import combinations
from types import SimpleNamespace

import array_api_strict
import numpy as np
import pytest
from sklearn.base import clone

from latentviews.core import moments
from latentviews.core.features import grid_sums
from latentviews.core.features.bins import BinnedFeatures
from latentviews.core.features.fourier import FourierFeatures
from latentviews.core.features.indicators import OneHotFeatures
from latentviews.core.features.landmarks import LandmarkFeatures
from latentviews.core.kernels.real import Gaussian
from latentviews.core.moments import Projection, feature_vectors, pair_moments, whitened_moments
from latentviews.core.views import Views
from latentviews.core.whitening import UnsupportedError, whiten

pytestmark = pytest.mark.cheap

LANDMARKS = LandmarkFeatures(Gaussian(1.0), 10, random_state=0)
BINS = BinnedFeatures(Gaussian(1.0), 64)


def three_views(phi, rng):
    """Rows of two classes, and a map of each of their three columns."""
    X = rng.normal(size=(200, 3)) + 3 * rng.integers(2, size=(200, 1))
    return X, Views(([0], [1], [2]), tuple(clone(phi).fit(X[:, [t]]) for t in range(3)))


def in_features(X, views, monkeypatch):
    """Whether pair moments were summed in feature coordinates."""
    seen, pair_total = [], moments.pair_total
    with monkeypatch.context() as patched:
        patched.setattr(moments, "pair_total", lambda data, embed, w: seen.append(embed) or pair_total(data, embed, w))
        pair_moments(X, views)
    return isinstance(seen[0], moments.InFeatures)


def test_few_rows_are_summed_in_feature_coordinates_and_many_in_raw_ones(rng, monkeypatch):
    X = rng.normal(size=(100, 3))
    features = [BinnedFeatures(Gaussian(1.0), 64).fit(X[:, [t]]) for t in range(2)] + [OneHotFeatures().fit(X[:, [2]])]
    views = Views(([0], [1], [2]), tuple(features))
    n = int(np.mean([len(tail) for tail in views.tails if tail is not None]))

    assert in_features(X[: n - 1], views, monkeypatch)
    assert not in_features(X[:n], views, monkeypatch)
    assert not in_features([X[:10]], views, monkeypatch)
    only_indicators = Views(([0], [1]), (OneHotFeatures().fit(X[:, [0]]), OneHotFeatures().fit(X[:, [1]])))
    assert not in_features(X[:1], only_indicators, monkeypatch)


@pytest.mark.parametrize("n", [20, 200], ids=["in features", "raw"])
def test_weighted_pair_moments_are_over_the_rows_that_have_both_views(n, rng):
    X, views = three_views(BINS, rng)
    X, weights = X[:n].copy(), rng.exponential(size=n)
    X[rng.random(X.shape) < 0.3] = np.nan
    phi, here = feature_vectors(X, views), ~np.isnan(X)

    for (s, t), moment in pair_moments(X, views, weights).items():
        both = here[:, s] & here[:, t]
        expected = (phi[s][both] * weights[both, None]).T @ phi[t][both] / weights[both].sum()
        np.testing.assert_allclose(moment, expected, atol=1e-12)


def test_views_that_no_row_has_together_are_named(rng):
    X, views = three_views(LANDMARKS, rng)
    X[:100, 0], X[100:, 2] = np.nan, np.nan

    with pytest.raises(UnsupportedError, match="No row has both view 0 and view 2"):
        pair_moments(X, views)


def test_rows_without_three_views_have_no_third_moment(rng):
    X, views = three_views(LANDMARKS, rng)
    whitening = whiten(pair_moments(X, views), 2)
    X[np.arange(len(X)), np.arange(len(X)) % 3] = np.nan

    with pytest.raises(UnsupportedError, match="No row has three views"):
        whitened_moments(X, views, whitening)


def literal_moments(X, views, maps, whitening, weights):
    """The moments of step 2, a pair, a triple or a view at a time, over the rows that have what each takes."""
    phi, psi, here = feature_vectors(X, views), feature_vectors(X, maps), ~np.isnan(X)
    groups, n = whitening.groups, len(whitening.groups)
    z = [sum(phi[t] @ whitening.down[t] for t in group) for group in groups]
    has = [here[:, list(group)].all(axis=1) for group in groups]

    def mean(rows, *vectors):
        letters = "abc"[: len(vectors)]
        product = f"n,{','.join(f'n{i}' for i in letters)}->{letters}"
        return np.einsum(product, weights[rows], *(v[rows] for v in vectors)) / weights[rows].sum()

    pairs = [[mean(has[i] & has[j], z[i], z[j]) * (i != j) for j in range(n)] for i in range(n)]
    every = list(combinations(range(n), 3))
    masses = [weights[has[i] & has[j] & has[m]].sum() for i, j, m in every]
    triples = [mean(has[i] & has[j] & has[m], z[i], z[j], z[m]) for i, j, m in every]
    components = [
        np.stack([mean(here[:, t] & has[i], psi[t], z[i]) * (t not in groups[i]) for i in range(n)], axis=1)
        for t in range(X.shape[1])
    ]
    return np.array(pairs), np.average(triples, axis=0, weights=masses), components


@pytest.mark.parametrize(
    "phi", [LANDMARKS, BINS, FourierFeatures(Gaussian(1.0), 8, random_state=0)], ids=lambda phi: type(phi).__name__
)
@pytest.mark.parametrize("groups", [((0, 3), (1, 4), (2,)), ((0,), (1,), (2,), (3,), (4,))], ids=["groups", "views"])
@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
def test_moments_of_five_views_are_the_literal_ones(phi, groups, missing, weighted, rng, monkeypatch):
    X = rng.normal(size=(150, 5))
    views = Views(tuple([t] for t in range(5)), tuple(clone(phi).fit(X[:, [t]]) for t in range(5)))
    maps = Views(views.columns, tuple(BinnedFeatures(Gaussian(0.5), 32).fit(X[:, [t]]) for t in range(5)))
    X[rng.random(X.shape) < missing] = np.nan
    down = [rng.normal(size=(one.shape[1], 2)) for one in feature_vectors(X, views)]
    whitening, weights = SimpleNamespace(groups=groups, down=down), rng.exponential(size=150)
    pairs, triple, components = literal_moments(X, views, maps, whitening, weights if weighted else np.ones(150))
    monkeypatch.setattr(moments, "IN_CACHE", 64)  # rows in several parts

    found = whitened_moments(X, views, whitening, weights if weighted else None, maps)

    np.testing.assert_allclose(found.pairs, pairs, atol=1e-10)
    np.testing.assert_allclose(found.triple, triple, atol=1e-10)
    for one, other in zip(found.components, components, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)


def buffered_sums(rng, size):
    """Sums of three columns on grids, by buffers for at most so many rows."""
    X = rng.normal(size=(200, 3))
    views = Views(([0], [1], [2]), tuple(BinnedFeatures(Gaussian(0.7), 64).fit(X[:, [t]]) for t in range(3)))
    down = [rng.normal(size=(phi.tail_.shape[1], 2)) for phi in views.features]
    return X, moments._WhitenedSums(Projection(views, ((0,), (1,), (2,)), down), None, size)


def test_batches_go_by_buffers_where_these_are_long_enough_and_nothing_is_missing(rng):
    X, sums = buffered_sums(rng, 50)
    _, general = buffered_sums(np.random.default_rng(0), 0)
    general.project = sums.project
    gaps = X[:40].copy()
    gaps[3, 1] = np.nan

    for batch, weight, buffered in [
        (gaps, None, False),
        (X[:40], np.ones(40), False),
        (X[:51], None, False),
        (X[:50], None, True),
        (X[:7], None, True),
    ]:
        for one, other in zip(sums(batch, weight), general(batch, weight), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-10)
        assert bool(sums._buffered) == buffered
    assert not general._buffered


@pytest.mark.parametrize("rank", [1, 2, 3, 4])
@pytest.mark.parametrize("in_cache", [1, 40, 2**16])
def test_products_of_three_groups_at_once_are_those_of_each_two_and_three(rank, in_cache, rng, monkeypatch):
    monkeypatch.setattr(grid_sums, "IN_CACHE", in_cache)
    X, grid = rng.normal(size=(30, 3)), np.linspace(-2, 2, 9)
    tables = [rng.normal(size=(9, rank)) for _ in range(3)]
    look_up = grid_sums.LookedUp([0, 1, 2], [grid] * 3, tables, ((1,), (0,), (2,)), 40)

    z = look_up(X)
    pairs, triple = look_up.products(30)

    literal = [np.stack([np.interp(X[:, t], grid, f) for f in tables[t].T]) for t in (1, 0, 2)]
    np.testing.assert_allclose(z, np.concatenate(literal), atol=1e-12)
    blocks = [[(a @ b.T) * (i != j) for j, b in enumerate(literal)] for i, a in enumerate(literal)]
    np.testing.assert_allclose(pairs, np.block(blocks), atol=1e-11)
    np.testing.assert_allclose(triple, np.einsum("an,bn,cn->abc", *literal), atol=1e-11)


@pytest.mark.parametrize(("width", "rows"), [(3, 32_000), (9, 32_000), (30, 16_666), (10**6, 1)])
def test_batches_are_shorter_where_rows_have_many_coordinates(width, rows):
    assert grid_sums.grid_rows(width) == rows


def test_buffers_stay_behind_where_sums_are_sent(rng):
    X, sums = buffered_sums(rng, 50)
    expected = sums(X[:50], None)

    sent = pickle.loads(pickle.dumps(sums))

    assert sums._buffered
    assert not sent._buffered
    for one, other in zip(sent(X[:50], None), expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("rows", [1, 2, 63, 64, 65, 128, 129, 700])
@pytest.mark.parametrize("most", [1, 7, 64])
def test_even_batches_are_no_more_than_needed_and_of_the_same_size_or_nearly(rows, most):
    size = moments._even(rows, most)

    assert size <= most
    assert np.ceil(rows / size) == np.ceil(rows / most)
    assert size == 1 or np.ceil(rows / (size - 1)) > np.ceil(rows / most)


def test_a_table_without_rows_has_batches_of_none():
    assert moments._even(0, 5) == 0


@pytest.mark.parametrize("rows", [0, 1, 16, 17, 100])
def test_parts_of_rows_fit_into_the_cache(rows, monkeypatch):
    monkeypatch.setattr(moments, "IN_CACHE", 65)
    z = np.zeros((4, rows))

    parts = moments._parts(z)

    assert [i for part in parts for i in range(rows)[part]] == list(range(rows))
    assert [part.stop - part.start for part in parts[:-1]] == [16] * (len(parts) - 1)
    assert all(part.stop - part.start <= 16 for part in parts)
    assert len(moments._parts(array_api_strict.asarray(z))) == min(rows, 1)


def test_parts_are_no_shorter_than_a_row(monkeypatch):
    monkeypatch.setattr(moments, "IN_CACHE", 3)
    assert moments._parts(np.zeros((4, 2))) == [slice(0, 1), slice(1, 2)]
