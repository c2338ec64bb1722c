import numpy as np
import pytest

from catalogue import SHIFT_INVARIANT
from latentviews import Gaussian, LandmarkFeatures, Matern, MultiViewMixture
from latentviews.core import moments
from latentviews.core.features import cholesky
from latentviews.core.features.cholesky import largest, pivoted_cholesky
from latentviews.core.features.landmark_sums import SeenFrom, sees_from_landmarks
from latentviews.core.features.landmarks import CARRIED, _carried, carrying_landmarks, few_landmarks
from latentviews.core.kernels.bandwidths import middle_value
from latentviews.core.views import fit_views
from latentviews.core.whitening import whiten, whiten_exchangeable
from latentviews.densities.reestimation import density_maps


def rows_of(n_views, rng, n=900, k=3):
    means = 2 * rng.normal(size=(n_views, k, 2))
    y = rng.integers(k, size=n)
    return np.hstack([rng.normal(size=(n, 2)) + mean[y] for mean in means])


def maps_of(X, n_views, width, rng, blocks=None):
    columns = tuple([2 * t, 2 * t + 1] for t in range(n_views))
    blocks = list(range(n_views)) if blocks is None else blocks
    return fit_views(X, columns, [LandmarkFeatures(Gaussian(width), 20)] * n_views, rng, blocks)


@pytest.mark.parametrize("n_views", [3, 5], ids=["three views", "groups of views"])
@pytest.mark.parametrize(("dtype", "close"), [(np.float64, 1e-12), (np.float32, 1e-4)], ids=["double", "single"])
def test_sums_in_blocks_are_those_of_whole_batches(n_views, dtype, close, rng, monkeypatch):
    X = rows_of(n_views, rng).astype(dtype)
    views, maps = maps_of(X, n_views, "median", rng), maps_of(X, n_views, 0.7, rng)
    whitening = whiten(moments.pair_moments(X, views), 3)
    monkeypatch.setattr(moments, "LANDMARK_ROWS", 400)  # several batches, and the last of another size
    monkeypatch.setattr("latentviews.core.features.landmark_sums.NUMBERS", 20 * 64)
    assert moments._buffered_rows(moments.Projection(views, whitening.groups, whitening.down), maps) == 400
    quick = moments.whitened_total(X, views, whitening, None, maps)
    monkeypatch.setattr(moments, "_buffered_rows", lambda *_: None)
    slow = moments.whitened_total(X, views, whitening, None, maps)

    for a, b in zip(quick.sums, slow.sums, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=close * np.abs(b).max())


def test_sums_in_blocks_of_exchangeable_views_and_of_the_moments_own_maps(rng, monkeypatch):
    X = rows_of(3, rng)
    views = maps_of(X, 3, "median", rng, [0, 0, 0])
    whitening = whiten_exchangeable(moments.pair_moments(X, views), 2)
    quick = moments.whitened_moments(X, views, whitening)
    monkeypatch.setattr(moments, "_buffered_rows", lambda *_: None)
    slow = moments.whitened_moments(X, views, whitening)

    np.testing.assert_allclose(quick.triple, slow.triple, rtol=0, atol=1e-12 * np.abs(slow.triple).max())
    for a, b in zip(quick.components, slow.components, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-10 * np.abs(b).max())


@pytest.mark.parametrize("dtype", [int, bool])
def test_sums_in_blocks_of_whole_numbers_are_those_of_the_same_in_doubles(dtype, rng):
    X = rows_of(3, rng).round().astype(dtype).astype(float)
    views = maps_of(X, 3, 1.0, rng)
    whitening = whiten(moments.pair_moments(X, views), 3)
    for a, b in zip(*(moments.whitened_total(x, views, whitening).sums for x in (X.astype(dtype), X)), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12 * np.abs(b).max())


@pytest.mark.parametrize("far", [1.0, 1e7, 1e200, 1e300])
def test_values_in_blocks_are_those_of_the_kernel_however_far_rows_lie(far, rng):
    x = rng.normal(size=(300, 3))
    phi = LandmarkFeatures(Gaussian(np.array([0.5, 1.0, 2.0])), 30).fit(x)
    x[::7] *= far
    seen = SeenFrom(phi, [0, 1, 2], 300, float)
    values = np.concatenate([block.copy() for _, block in seen.blocks(x)])

    np.testing.assert_allclose(values, phi.raw(x), rtol=0, atol=1e-14)


@pytest.mark.parametrize(("far", "width"), [(1e9, 1.0), (1e140, 1e-30)])
def test_values_at_a_landmark_far_from_all_others_are_no_larger_than_the_kernel(far, width, rng):
    x = rng.normal(size=(60, 3))
    x[::20] += far * rng.normal(size=(3, 3))
    phi = LandmarkFeatures(Gaussian(width), None).fit(x)
    values = np.concatenate([block.copy() for _, block in SeenFrom(phi, [0, 1, 2], 60, float).blocks(x)])

    height = np.exp(phi.kernel_.log_height(3) - phi.log_unit_)
    assert np.all(values >= 0)
    assert values.max() <= height * (1 + 1e-12)


def test_single_precision_takes_no_value_above_the_height_of_the_kernel(rng):
    x = np.concatenate([rng.normal(size=(200, 2)), rng.normal(size=(100, 2)) + 3000]).astype(np.float32)
    phi = LandmarkFeatures(Gaussian(1.0), 30, random_state=0).fit(x)
    values = np.concatenate([block.copy() for _, block in SeenFrom(phi, [0, 1], 300, np.dtype("f4")).blocks(x)])

    assert values.max() <= phi.kernel_.gram(x[:1], x[:1])[0, 0] * (1 + 1e-6)


@pytest.mark.parametrize(("far", "width", "dtype"), [(1e20, 1.0, "f4"), (1e120, 1e-36, "f8")])
def test_landmarks_whose_squares_are_out_of_range_are_far_from_all_others(far, width, dtype, rng):
    x = rng.normal(size=(300, 3)).astype(dtype)
    x[::50] *= np.dtype(dtype).type(far)
    phi = LandmarkFeatures(Gaussian(width), 30, random_state=0).fit(x)
    values = np.concatenate([block.copy() for _, block in SeenFrom(phi, [0, 1, 2], 300, np.dtype(dtype)).blocks(x)])

    assert np.abs(phi.landmarks_).max() > far / 10
    assert np.isfinite(values).all()


def test_other_kernels_and_single_columns_go_the_general_way(rng):
    X = rows_of(3, rng)
    assert sees_from_landmarks(maps_of(X, 3, 1.0, rng))
    assert not sees_from_landmarks(
        fit_views(X, ([0], [1], [2]), [LandmarkFeatures(Gaussian(1.0), 5)] * 3, rng, [0, 1, 2])
    )


def test_columns_of_a_gaussian_are_those_of_its_gram_matrix(rng):
    x, kernel = rng.normal(size=(60, 3)) * [1, 10, 0.1], Gaussian(np.array([1.0, 5.0, 0.2]))
    _, factor = pivoted_cholesky(kernel, x, 60, 0.0, largest)
    np.testing.assert_allclose(factor @ factor.T, kernel.gram(x, x), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "kernel", [one for one in SHIFT_INVARIANT if np.ndim(getattr(one, "bandwidth", 1)) == 0], ids=repr
)
def test_columns_of_a_grid_are_those_of_the_kernels_gram_matrix(kernel, monkeypatch):
    grid = np.linspace(0.1, 0.9, 40)[:, None]
    kernel = kernel.adapt(grid)
    monkeypatch.setattr(cholesky, "AT_ONCE", 0)
    column = cholesky._columns(kernel, grid)

    found = np.stack([column(pivot) for pivot in range(40)])
    np.testing.assert_allclose(found, kernel.gram(grid, grid), rtol=0, atol=1e-10 * kernel.diagonal(grid)[0])


def test_columns_of_uneven_rows_are_not_taken_for_a_grid(rng, monkeypatch):
    rows, kernel = rng.normal(size=(30, 1)), Matern(0.5)
    monkeypatch.setattr(cholesky, "AT_ONCE", 0)

    column = cholesky._columns(kernel, rows)

    np.testing.assert_array_equal(column(7), kernel.gram(rows, rows[[7]])[:, 0])


@pytest.mark.parametrize("n", [1, 2, 3, 10, 70_001])
@pytest.mark.parametrize("kind", ["normal", "equal", "tied", "sorted"])
def test_the_middle_value_is_the_median(n, kind, rng):
    values = {
        "normal": rng.normal(size=n),
        "equal": np.ones(n),
        "tied": rng.integers(3, size=n).astype(float),
        "sorted": np.sort(rng.exponential(size=n)),
    }[kind]
    assert middle_value(values) == np.median(values)


def test_the_middle_value_of_numbers_that_repeat_with_their_period_is_the_median():
    values = np.tile(np.r_[5.0, np.arange(1000.0) + 100], 70)  # every so manieth is the same
    assert middle_value(values) == np.median(values)


def test_landmarks_of_sorted_rows_lie_among_all_of_them(rng):
    x = np.concatenate([rng.normal(size=(6000, 2)), rng.normal(size=(2000, 2)) + 20])
    assert (few_landmarks(Gaussian(1.0), x, 0).landmarks_[:, 0] > 10).any()


def test_a_kernel_too_narrow_for_its_landmarks_is_widened_until_they_carry_it(rng):
    x = rng.exponential(size=(5000, 4))
    phi = carrying_landmarks(Gaussian(0.05), x, 0)
    assert _carried(few_landmarks(Gaussian(0.05), x, 0), x) < 0.05
    assert _carried(phi, x) + 0.02 >= CARRIED
    assert _carried(LandmarkFeatures(Gaussian(phi.kernel_.bandwidth / 2), 64, random_state=0).fit(x), x) < CARRIED


def test_only_a_rule_is_widened_and_only_where_it_must(rng):
    x = rng.exponential(size=(3000, 8))
    columns = ([0, 1, 2, 3], [4, 5, 6, 7])
    views = fit_views(x, columns, [LandmarkFeatures(Gaussian("median"))] * 2, rng, [0, 1])
    given = density_maps(x, views, [0, 1], np.ones((3000, 1)), 0.1)
    assert all(np.all(np.asarray(phi.kernel_.bandwidth) == 0.1) for phi in given.features)
    narrow = Gaussian("isj").adapt(x[:, :4]).bandwidth
    found = density_maps(x, views, [0, 1], np.ones((3000, 1)), "isj").features[0]
    factor = found.kernel_.bandwidth / narrow
    np.testing.assert_allclose(factor, factor[0])
    assert factor[0] > 1.5

    wide = carrying_landmarks(Gaussian(1.0), x[:, :2], 0)
    assert wide.kernel_.bandwidth == 1.0
    assert len(wide.landmarks_) > 64


def test_classes_of_skewed_views_of_several_columns_are_told_apart_without_a_polish():
    rng = np.random.default_rng(3)
    means, y = rng.normal(size=(3, 3, 4)), rng.integers(3, size=6000)
    X = np.hstack([rng.exponential(size=(6000, 4)) + mean[y] for mean in means])
    views = [list(range(4 * t, 4 * t + 4)) for t in range(3)]
    found = MultiViewMixture(3, views=views, polish=None, random_state=0).fit(X).predict(X)
    table = np.zeros((3, 3))
    np.add.at(table, (found, y), 1)
    assert table.max(axis=0).sum() / len(y) > 0.95  # with the kernel of the rule as it is, 0.89
