"""Small mathematics against its formulas, and warnings that point at who called."""

import warnings

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter1d

from latentviews import LowRankDensity, _numbers
from latentviews._numbers import (
    as_shares,
    drawn_labels,
    effective_rows,
    evenly,
    leading_svd,
    posteriors_of,
    quartile_spread,
    row_shares,
    singular_values,
    smoothed_bins,
    thin_svd,
    thinned,
)
from latentviews._sentences import warn_user


def test_shares_sum_to_one_and_nothing_stays_nothing(rng):
    values = rng.random((5, 3))
    values[2] = 0

    assert as_shares(values).sum() == pytest.approx(1)
    np.testing.assert_allclose(as_shares(values, axis=1).sum(axis=1), [1, 1, 0, 1, 1])
    np.testing.assert_allclose(as_shares(values, axis=0), values / values.sum(axis=0))


def test_rows_without_weights_share_equally():
    np.testing.assert_allclose(row_shares(4, None), [0.25] * 4)
    np.testing.assert_allclose(row_shares(2, np.array([1.0, 3.0])), [0.25, 0.75])


def test_posteriors_are_bayes_rule_however_small_the_densities(rng):
    joint = rng.random((6, 3))

    np.testing.assert_allclose(posteriors_of(np.log(joint)), joint / joint.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(posteriors_of(np.log(joint) - 5000), joint / joint.sum(axis=1, keepdims=True))


def test_labels_are_drawn_by_their_probabilities():
    chances = np.array([[0.2, 0.5, 0.3], [1.0, 0.0, 0.0], [0.0, 0.0, 1 - 1e-16]])

    labels = drawn_labels(chances, np.random.default_rng(0), (20_000,))

    assert labels.shape == (20_000, 3)
    counts = [np.bincount(column, minlength=3) / 20_000 for column in labels.T]
    np.testing.assert_allclose(counts, chances, atol=5 * 0.5 / np.sqrt(20_000))


def test_equal_weights_count_every_row_and_one_heavy_row_is_one():
    for weights, count in ((np.full(7, 0.3), 7), (np.array([5.0, 0, 0]), 1), (np.array([1.0, 1, 0, 0]), 2)):
        assert effective_rows(weights.sum(), (weights**2).sum()) == pytest.approx(count)


def test_quartiles_tell_the_deviation_of_a_normal_law_in_spite_of_stray_rows(rng):
    x = rng.normal(size=(50_000, 2)) * [1.0, 3.0]
    x[:500] = 1e6

    np.testing.assert_allclose(quartile_spread(x), [1, 3], rtol=0.05)


def test_thinned_rows_go_from_the_first_to_the_last():
    assert evenly(10, 4).tolist() == [0, 3, 6, 9]
    assert evenly(3, 10).tolist() == [0, 1, 2]
    assert thinned(np.arange(100)[:, None], 3)[:, 0].tolist() == [0, 49, 99]


@pytest.mark.parametrize("around", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_bins_are_smoothed_as_by_a_long_filter(axis, around, rng):
    mass, mode = rng.random((64, 64)), "wrap" if around else "constant"
    widths = rng.uniform(2.0, 5.0, size=64)
    slices = np.moveaxis(mass, axis, 0).T
    expected = [
        gaussian_filter1d(one, width, mode=mode, truncate=12) for one, width in zip(slices, widths, strict=True)
    ]

    smooth = smoothed_bins(mass, widths, axis, around=around)

    np.testing.assert_allclose(np.moveaxis(smooth, axis, 0).T, expected, atol=1e-7)
    assert smoothed_bins(mass[:, 0], 2.0).shape == (64,)


def test_smoothed_bins_are_never_negative():
    mass = np.zeros(128)
    mass[5] = 1.0

    assert smoothed_bins(mass, 1.5).min() >= 0


def test_a_warning_points_at_the_line_that_called_the_package(rng):
    X = np.column_stack([rng.normal(size=(60, 2)), np.ones(60)])
    with pytest.warns(UserWarning, match="constant and were left out") as caught:
        LowRankDensity(1, random_state=0).fit(X)

    assert {one.filename for one in caught} == {__file__}


def test_a_warning_from_inside_skips_the_frames_of_the_package_only():
    inside = {"__name__": "latentviews.deep", "warn_user": warn_user}
    exec(compile("def one():\n    warn_user('oh')\ndef two():\n    one()\n", "deep.py", "exec"), inside)
    similar = {"__name__": "latentviews_of_someone_else", "two": inside["two"]}
    exec(compile("def three():\n    two()\n", "theirs.py", "exec"), similar)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        similar["three"]()
        inside["two"]()

    assert [one.filename for one in caught] == ["theirs.py", __file__]


SPECTRA = {
    "five and noise": np.append([1.0, 0.2, 0.1, 0.05, 0.03], 1e-4 * 0.98 ** np.arange(195)),
    "of low rank": np.append([1.0, 0.5, 0.4, 0.3, 1e-6], np.zeros(195)),
    "of lower rank": np.append([1.0, 0.5], np.zeros(198)),
    "flat": np.linspace(1.0, 0.9, 200),
    "zero": np.zeros(200),
}


@pytest.mark.parametrize("shape", [(200, 230), (230, 200)])
@pytest.mark.parametrize("values", SPECTRA.values(), ids=SPECTRA)
def test_leading_singular_vectors_are_those_of_the_whole_decomposition(values, shape, rng):
    """Their space is so up to rounding over the gap to the next singular value."""
    left, right = (np.linalg.qr(rng.normal(size=(size, 200)))[0] for size in shape)
    matrix = (left * values) @ right.T

    u, found, vt = leading_svd(matrix, 5)

    whole = np.linalg.svd(matrix, compute_uv=False)
    np.testing.assert_allclose(found[:5], whole[:5], atol=1e-14)
    np.testing.assert_allclose(u[:, :5].T @ u[:, :5], np.eye(5), atol=1e-13)
    np.testing.assert_allclose(matrix @ vt[:5].T, u[:, :5] * found[:5], atol=1e-13)
    if whole[4] > 2 * whole[5] > 0:
        space, limit = left[:, :5] @ left[:, :5].T, 1e-13 / (whole[4] - whole[5])
        np.testing.assert_allclose(u[:, :5] @ u[:, :5].T, space, atol=limit)


@pytest.mark.parametrize(("name", "asked"), [("five and noise", 0), ("of low rank", 0), ("flat", 1)])
def test_the_whole_decomposition_is_asked_for_only_where_few_vectors_do_not_settle(name, asked, rng, monkeypatch):
    left, right = (np.linalg.qr(rng.normal(size=(200, 200)))[0] for _ in range(2))
    matrix, sizes = (left * SPECTRA[name]) @ right.T, []
    monkeypatch.setattr(_numbers, "thin_svd", lambda one: sizes.append(one.shape) or thin_svd(one))

    leading_svd(matrix, 5)

    assert sizes.count((200, 200)) == asked


def test_a_few_values_above_a_long_flat_rest_need_no_whole_decomposition(rng, monkeypatch):
    left, right = (np.linalg.qr(rng.normal(size=(600, 600)))[0] for _ in range(2))
    values, sizes = np.append([1.0, 0.6, 0.4, 0.3, 0.2], 0.15 * 0.999 ** np.arange(595)), []
    matrix = (left * values) @ right.T
    monkeypatch.setattr(_numbers, "thin_svd", lambda one: sizes.append(one.shape) or thin_svd(one))

    u, found, vt = leading_svd(matrix, 5)

    assert max(columns for _, columns in sizes) < 300
    np.testing.assert_allclose(found, values[:5], atol=1e-13)
    np.testing.assert_allclose(np.abs(np.sum(u * left[:, :5], axis=0)), 1.0, atol=1e-10)
    np.testing.assert_allclose(np.abs(np.sum(vt.T * right[:, :5], axis=0)), 1.0, atol=1e-10)


def test_all_singular_values_of_a_large_matrix_of_low_rank_end_in_zeros(rng):
    matrix = rng.normal(size=(600, 7)) @ rng.normal(size=(7, 520))
    found = singular_values(matrix)
    np.testing.assert_allclose(found, np.linalg.svd(matrix, compute_uv=False), atol=1e-10)
    assert not found[256:].any()


def test_a_flat_spectrum_with_an_end_is_found_by_random_vectors(rng, monkeypatch):
    left, right = (np.linalg.qr(rng.normal(size=(600, 200)))[0] for _ in range(2))
    values, sizes = np.linspace(1, 0.9, 200), []
    matrix = (left * values) @ right.T
    monkeypatch.setattr(_numbers, "thin_svd", lambda one: sizes.append(one.shape) or thin_svd(one))

    u, found, vt = leading_svd(matrix, 5)

    assert (600, 600) not in sizes
    np.testing.assert_allclose(found[:5], values[:5], atol=1e-12)
    np.testing.assert_allclose(matrix @ vt[:5].T, u[:, :5] * found[:5], atol=1e-12)
