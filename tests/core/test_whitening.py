"""Maps of views to coordinates in which classes are orthogonal, from exact moments C_st = M_s diag(π) M_tᵀ."""

import warnings

import numpy as np
import pytest

from latentviews import _numbers
from latentviews._numbers import thin_svd
from latentviews.core import whitening
from latentviews.core.moments import WhitenedMoments
from latentviews.core.whitening import (
    IdentifiabilityWarning,
    UnsupportedError,
    _check_spectrum,
    _group_views,
    _scales,
    refine,
    symmetric_tensor,
    symmetric_whitening,
    triple_whitening,
    whiten,
    whiten_exchangeable,
)

pytestmark = pytest.mark.cheap

WEIGHTS = np.array([0.5, 0.3, 0.2])


def tables_of(sizes, rng):
    """Conditional tables (size, 3) that are far from dependent."""
    return [rng.dirichlet(np.ones(size), size=3).T + np.eye(size)[:, :3] for size in sizes]


def exact_pairs(tables, weights=WEIGHTS):
    n_views = len(tables)
    return {(s, t): tables[s] * weights @ tables[t].T for s in range(n_views) for t in range(s + 1, n_views)}


def rotation(degrees):
    angle = np.deg2rad(degrees)
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def turned_pairs(first, second, sizes):
    """C_01 = I, C_20 = A and C_21 = B of two rotations, each times its size: moments of no model."""
    return {(0, 1): sizes[0] * np.eye(2), (0, 2): sizes[1] * rotation(first).T, (1, 2): sizes[2] * rotation(second).T}


@pytest.mark.parametrize(
    ("n_views", "reference", "groups"),
    [
        (3, 0, ((0,), (1,), (2,))),
        (3, 2, ((2,), (0,), (1,))),
        (5, 0, ((0, 3), (1, 4), (2,))),
        (7, 2, ((1, 2, 5), (3, 6), (0, 4))),
    ],
)
def test_views_are_dealt_to_three_groups_from_the_reference_on(n_views, reference, groups):
    assert _group_views(n_views, reference) == groups


@pytest.mark.parametrize("n_views", [3, 4, 5, 7])
def test_groups_are_those_of_the_first_view_where_no_reference_is_given(n_views, rng):
    found = whiten(exact_pairs(tables_of([4] * n_views, rng)), 3)

    assert set(found.groups) == set(_group_views(n_views, 0))
    assert found.groups[0] < found.groups[1]
    assert not found.shared


@pytest.mark.parametrize("reference", [None, 0, 1, 2, 3, 4])
def test_whitened_views_of_exact_moments_are_orthonormal_and_come_back_up(reference, rng):
    """E[z_g | h] = v_h π_h^(-1/2) for every group, and up_t = E[φ_t z_gᵀ], so up_t v_h π_h^(-1/2) is E[φ_t | h]."""
    tables = tables_of([3, 4, 5, 6, 3], rng)

    found = whiten(exact_pairs(tables), 3, reference)

    means = [sum(found.down[t].T @ tables[t] for t in group) for group in found.groups]
    for mean in means:
        np.testing.assert_allclose(mean, means[2], atol=1e-8)
    np.testing.assert_allclose(means[2] * WEIGHTS @ means[2].T, np.eye(3), atol=1e-8)
    for up, table in zip(found.up, tables, strict=True):
        np.testing.assert_allclose(up @ means[2], table, atol=1e-8)
    assert reference is None or reference in found.groups[2]


def test_the_spectrum_is_that_of_the_scaled_pair_that_is_inverted(rng):
    tables = tables_of([4, 5, 6], rng)
    pairs = exact_pairs(tables)
    scale = _scales(pairs, 3)

    found = whiten(pairs, 3, 2)

    expected = np.linalg.svd(pairs[0, 1] / (scale[0] * scale[1]), compute_uv=False)
    np.testing.assert_allclose(found.spectrum, expected, atol=1e-14)
    assert found.groups == ((0,), (1,), (2,))


def test_a_large_pair_of_low_rank_is_whitened_as_a_small_one_is(rng, monkeypatch):
    """Its spectrum is as long as that of all its singular values."""
    tables = tables_of([530, 540, 550], rng)
    pairs = exact_pairs(tables)

    quick = whiten(pairs, 3, 2)
    monkeypatch.setattr(_numbers, "SKETCH", 1000)
    slow = whiten(pairs, 3, 2)

    assert len(quick.spectrum) == len(slow.spectrum) == 530
    np.testing.assert_allclose(quick.spectrum, slow.spectrum, atol=1e-12)
    np.testing.assert_array_equal(quick.spectrum[256:], 0.0)
    for a, b in zip(quick.up, slow.up, strict=True):  # the same but for signs of coordinates
        np.testing.assert_allclose(a @ a.T, b @ b.T, atol=1e-10)


def test_a_pair_of_many_features_is_decomposed_once_and_only_for_its_spectrum(rng, monkeypatch):
    """Of the pairs among which a reference is chosen, k singular vectors are found; the answer is that of all."""
    tables = tables_of([300, 310, 320], rng)
    pairs = {pair: c + 1e-6 * rng.normal(size=c.shape) for pair, c in exact_pairs(tables).items()}
    whole, svd = [], np.linalg.svd

    def counted(matrix, *args, **kwargs):
        if min(matrix.shape) >= 300:
            whole.append(kwargs.get("compute_uv", True))
        return svd(matrix, *args, **kwargs)

    monkeypatch.setattr(np.linalg, "svd", counted)
    quick = whiten(pairs, 3)
    assert whole == [False]
    monkeypatch.setattr(whitening, "leading_svd", lambda matrix, rank: thin_svd(matrix))
    slow = whiten(pairs, 3)

    assert quick.groups == slow.groups
    np.testing.assert_allclose(quick.spectrum, slow.spectrum, atol=1e-14)
    for a, b in zip((*quick.up, *quick.down), (*slow.up, *slow.down), strict=True):  # the same but for signs
        np.testing.assert_allclose(a @ a.T, b @ b.T, atol=1e-10)


def test_another_reference_is_taken_where_the_best_conditioned_pair_leaves_none():
    """The first coordinates of C_01 lead to a negative Pair_2, and the second ones of C_02 to a positive Pair_1."""
    pairs = {(0, 1): np.diag([1.0, 0.5]), (0, 2): np.diag([1.0, 2.0]), (1, 2): np.diag([-1.0, 1.0])}

    found = whiten(pairs, 1)

    assert found.groups == ((0,), (2,), (1,))
    np.testing.assert_allclose(found.down[0].T @ pairs[0, 2] @ found.down[2], 1.0)


def test_where_no_reference_is_left_the_error_is_that_of_the_best_conditioned_pair():
    pairs = turned_pairs(120, 0, (1.0, 0.5, 0.2))  # A Bᵀ and A⁻¹ B turn by 120°
    pairs[0, 2] = pairs[0, 2] * [1.0, 0.9]
    pairs[1, 2] = pairs[1, 2] * [1.0, 0.8]
    scale = _scales(pairs, 3)

    with pytest.raises(
        UnsupportedError, match=r"support 0 component\(s\), not the 2 asked for.*positive 2-th"
    ) as caught:
        whiten(pairs, 2)

    np.testing.assert_allclose(caught.value.spectrum, 1 / (scale[0] * scale[1]))


def test_the_best_conditioned_of_several_pairs_is_inverted():
    good, poor = np.eye(2), np.diag([1.0, 0.6])
    pairs = exact_pairs([poor, good, good], np.array([0.5, 0.5]))

    assert whiten(pairs, 2).groups == ((1,), (2,), (0,))


@pytest.mark.parametrize("n_views", [3, 4])
def test_exchangeable_views_share_one_map_of_all_their_pairs(n_views, rng):
    table = tables_of([5], rng)[0]
    pairs = exact_pairs([table] * n_views)
    noise = {pair: 1e-3 * rng.normal(size=(5, 5)) for pair in pairs}
    pooled = np.mean([pairs[pair] + (noise[pair] + noise[pair].T) / 2 for pair in pairs], axis=0)

    found = whiten_exchangeable({pair: pairs[pair] + noise[pair] for pair in pairs}, 3)

    assert found.groups == tuple((t,) for t in range(n_views))
    assert found.shared
    np.testing.assert_allclose(found.spectrum, np.sort(np.linalg.svd(pooled, compute_uv=False))[::-1], atol=1e-14)
    for down, up in zip(found.down, found.up, strict=True):
        np.testing.assert_allclose(down.T @ pooled @ down, np.eye(3), atol=1e-10)
        np.testing.assert_allclose(up, pooled @ down, atol=1e-12)
    assert len(found.down) == n_views


def exact_whitened(groups, means, tables):
    """The moments of step 2, of groups whose whitened vectors have these means (k, classes)."""
    n, k = len(groups), len(means[0])
    pairs = np.zeros((n, n, k, k))
    for i in range(n):
        for j in range(n):
            if i != j:
                pairs[i, j] = means[i] * WEIGHTS @ means[j].T
    triples = [(i, j, m) for i in range(n) for j in range(i + 1, n) for m in range(j + 1, n)]
    triple = np.mean([np.einsum("h,ah,bh,ch->abc", WEIGHTS, *(means[i] for i in one)) for one in triples], axis=0)
    components = tuple(
        np.stack([table * WEIGHTS @ means[i].T * (t not in groups[i]) for i in range(n)], axis=1)
        for t, table in enumerate(tables)
    )
    return WhitenedMoments(pairs, triple, components)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("n_views", [3, 5])
def test_a_rough_whitening_is_whitened_again_by_exact_moments(shared, n_views, rng):
    """T = Σ_h π_h^(-1/2) v_h ⊗ v_h ⊗ v_h, and up_t takes v_h π_h^(-1/2) to E[φ_t | h]."""
    tables = tables_of([4], rng) * n_views if shared else tables_of([4, 5, 3, 4, 6][:n_views], rng)
    if shared:
        groups = tuple((t,) for t in range(n_views))
        down = (rng.normal(size=(4, 3)),) * n_views
    else:
        groups, down = _group_views(n_views, 0), tuple(rng.normal(size=(len(table), 3)) for table in tables)
    rough = whitening.Whitening(groups, down, down, np.ones(3), shared)
    means = [sum(down[t].T @ tables[t] for t in group) for group in groups]

    found, tensor = refine(rough, exact_whitened(groups, means, tables))

    whitened = [sum(found.down[t].T @ tables[t] for t in group) for group in groups]  # v_h π_h^(-1/2)
    for mean in whitened:
        np.testing.assert_allclose(mean, whitened[0], atol=1e-6)
    np.testing.assert_allclose(whitened[0] * WEIGHTS @ whitened[0].T, np.eye(3), atol=1e-6)
    np.testing.assert_allclose(tensor, np.einsum("h,ah,bh,ch->abc", WEIGHTS, *[whitened[0]] * 3), atol=1e-6)
    for up, table in zip(found.up, tables, strict=True):
        np.testing.assert_allclose(up @ whitened[0], table, atol=1e-6)


def test_a_symmetric_tensor_is_the_mean_over_six_orders(rng):
    tensor = rng.normal(size=(3, 3, 3))
    literal = sum(np.einsum(f"ijl->{order}", tensor) for order in ("ijl", "ilj", "jil", "jli", "lij", "lji")) / 6

    np.testing.assert_allclose(symmetric_tensor(tensor), literal, atol=1e-15)


def test_the_largest_eigenvalues_are_whitened():
    found = symmetric_whitening(np.diag([1.0, -9.0, 4.0, 16.0]), 2)

    np.testing.assert_allclose(np.abs(found), [[0, 0], [0, 0], [0, 0.5], [0.25, 0]], atol=1e-15)


@pytest.mark.parametrize(
    ("values", "rank", "found"), [([1.0, 0.0], 2, 1), ([1.0, -1.0], 2, 1), ([1.0, 2.0], 3, 2), ([-1.0], 1, 0)]
)
def test_a_moment_without_enough_positive_eigenvalues_is_refused(values, rank, found):
    with pytest.raises(UnsupportedError, match=rf"support {found} component\(s\), not the {rank} asked for"):
        symmetric_whitening(np.diag(values), rank)


@pytest.mark.parametrize(("n_ab", "n_c"), [(2, 4), (4, 2)])
def test_a_group_with_fewer_features_than_classes_is_named(n_ab, n_c):
    pair = np.eye(n_ab), np.ones(n_ab), np.eye(n_ab)
    with pytest.raises(UnsupportedError, match=r"3 components need 3 features .* the smallest has 2"):
        triple_whitening(pair, np.ones((n_c, n_ab)), np.ones((n_c, n_ab)), 3)


def test_as_many_features_as_classes_are_enough():
    first, second, third = triple_whitening((np.eye(3), np.array([3.0, 2.0, 1.0]), np.eye(3)), np.eye(3), np.eye(3), 3)

    np.testing.assert_allclose(first.T @ np.diag([3.0, 2.0, 1.0]) @ second, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(third.T @ first, np.eye(3), atol=1e-12)  # C_ca is the identity
    np.testing.assert_allclose(third.T @ second, np.eye(3), atol=1e-12)


def test_a_warning_says_which_singular_value_is_rounding_beside_the_first():
    with pytest.warns(IdentifiabilityWarning, match=r"value 3 .* is 4.0e-12, .* first, 2.0e\+00: .* fewer than 3 cl"):
        _check_spectrum(np.array([2.0, 0.5, 4e-12]), 3)
    with pytest.warns(IdentifiabilityWarning, match="Singular value 1"):
        _check_spectrum(np.zeros(2), 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _check_spectrum(np.array([2.0, 0.5, 4e-11]), 3)
        _check_spectrum(np.array([2.0, 1e-20]), 3)  # of too few features triple_whitening speaks
        _check_spectrum(np.array([2.0, 1e-20]), 1)


def test_a_whitening_is_of_views_that_differ_unless_it_says_so():
    assert not whitening.Whitening(groups=((0,),), down=(), up=(), spectrum=np.ones(1)).shared
