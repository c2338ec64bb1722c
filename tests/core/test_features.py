import pickle

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from catalogue import FEATURES
from latentviews.core.features.bins import BinnedFeatures, GridFeatures, linear_bins, uniform_grid
from latentviews.core.features.fourier import FourierFeatures
from latentviews.core.features.indicators import OneHotFeatures
from latentviews.core.features.landmarks import SELECTIONS, LandmarkFeatures
from latentviews.core.features.point_masses import PointMassFeatures
from latentviews.core.features.sketches import TensorSketchFeatures
from latentviews.core.kernels.circle import VonMises
from latentviews.core.kernels.discrete import Delta
from latentviews.core.kernels.polynomial import Linear
from latentviews.core.kernels.real import Gaussian, Laplace, Matern
from latentviews.core.views import features_for

pytestmark = pytest.mark.cheap

ON_OTHER_ARRAYS = [  # bins are sparse SciPy rows
    phi for phi in FEATURES if not isinstance(phi, BinnedFeatures | PointMassFeatures)
]
EXACT = [Gaussian(0.7), Gaussian(np.array([0.5, 1.3])), Laplace(0.8), Matern(0.9), VonMises(0.6), Delta(), Linear()]

features = pytest.mark.parametrize("features", FEATURES, ids=repr)


@features
def test_a_map_is_a_function_of_its_data_and_seed(features, rng):
    x = rng.normal(size=(30, 1))
    first = clone(features).fit(x)
    again = pickle.loads(pickle.dumps(clone(features).fit(x)))

    np.testing.assert_array_equal(first.transform(x), again.transform(x))
    np.testing.assert_array_equal(first.transform(x), clone(features).fit_transform(x))


@features
def test_a_row_maps_the_same_whatever_rows_come_with_it(features, rng):
    x = rng.normal(size=(30, 1))
    phi = clone(features).fit(x)

    np.testing.assert_allclose(phi.transform(x)[7:9], phi.transform(x[7:9]), rtol=1e-10, atol=1e-12)


@features
def test_every_feature_has_a_name(features, rng):
    phi = clone(features).fit(rng.normal(size=(30, 1)))

    names, width = phi.get_feature_names_out(), phi.transform(np.zeros((1, 1))).shape[1]

    assert list(names) == [f"{type(features).__name__.lower()}{i}" for i in range(width)]


@features
def test_a_map_says_what_it_cannot_take(features, rng):
    x = rng.normal(size=(30, 1))

    with pytest.raises(NotFittedError):
        clone(features).transform(x)
    with pytest.raises(ValueError, match="contains NaN"):
        clone(features).fit(np.where(x > 0, np.nan, x))
    with pytest.raises(ValueError, match=r"X has 2 features, but \w+ is expecting 1 features"):
        clone(features).fit(x).transform(np.zeros((3, 2)))


@pytest.mark.parametrize("features", ON_OTHER_ARRAYS, ids=repr)
def test_other_array_libraries_get_their_own_arrays_back(features, rng):
    x = rng.normal(size=(30, 1))
    foreign = strict.asarray(x)

    found = clone(features).fit(foreign).transform(foreign)

    assert type(found) is type(foreign)
    np.testing.assert_allclose(np.from_dlpack(found), clone(features).fit_transform(x), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.zeros(3), r"expects a 2-D array with at least one row; got shape \(3,\)"),
        (np.zeros((0, 1)), r"expects a 2-D array with at least one row; got shape \(0, 1\)"),
        (np.full((3, 1), np.inf), "expects finite numbers; the input contains NaN or infinity"),
        (np.zeros((3, 2)), "X has 2 features, but OneHotFeatures is expecting 1 features"),
    ],
)
def test_other_array_libraries_get_the_same_sentences(bad, message):
    phi = OneHotFeatures().fit(np.zeros((3, 1)))

    with pytest.raises(ValueError, match=message):
        phi.transform(strict.asarray(bad))


@pytest.mark.parametrize("kernel", EXACT, ids=repr)
def test_landmarks_are_exact_when_every_row_is_one(kernel, rng):
    x = np.round(rng.normal(size=(40, 2)), 1)
    gram = kernel.gram(x, x)

    phi = LandmarkFeatures(kernel, n_landmarks=None).fit_transform(x)

    # what is dropped is at most tol times the largest eigenvalue of k(Z, Z)
    np.testing.assert_allclose(phi @ phi.T, gram, rtol=0, atol=1e-11 * np.linalg.norm(gram, 2))


@pytest.mark.parametrize("selection", SELECTIONS)
def test_landmarks_are_never_more_than_asked_for(selection, rng):
    x = rng.normal(size=(200, 2))

    phi = LandmarkFeatures(Laplace(1.0), 12, selection=selection, random_state=0).fit(x)

    assert phi.landmarks_.shape == (12, 2)
    assert phi.transform(x).shape == (200, 12)


@pytest.mark.parametrize("selection", [name for name in SELECTIONS if name != "kmeans"])
def test_landmarks_are_rows_of_the_data(selection, rng):
    x = rng.normal(size=(50, 2))

    landmarks = LandmarkFeatures(Laplace(1.0), 8, selection=selection, random_state=0).fit(x).landmarks_

    assert {tuple(row) for row in landmarks} <= {tuple(row) for row in x}
    assert len(np.unique(landmarks, axis=0)) == 8


@pytest.mark.parametrize("selection", SELECTIONS)
def test_landmarks_take_repeated_rows_as_data(selection, rng):
    x = np.repeat(rng.normal(size=(4, 1)), 10, axis=0)

    phi = LandmarkFeatures(Gaussian(1.0), 20, selection=selection, random_state=0).fit(x).transform(x)

    assert phi.shape[1] <= 4
    if selection != "uniform":  # which may miss a row
        np.testing.assert_allclose(phi @ phi.T, Gaussian(1.0).gram(x, x), atol=1e-10)


@pytest.mark.parametrize("selection", ["cholesky", "random_cholesky"])
@pytest.mark.parametrize("tol", [1e-2, 1e-5])
def test_cholesky_stops_when_little_enough_is_left(selection, tol, rng):
    x, kernel = rng.normal(size=(100, 1)), Gaussian(0.5)

    landmarks = LandmarkFeatures(kernel, 100, selection=selection, tol=tol, random_state=0).fit(x).landmarks_

    def left(z):
        return 1 - np.trace(kernel.gram(x, z) @ np.linalg.solve(kernel.gram(z, z), kernel.gram(z, x))) / np.trace(
            kernel.gram(x, x)
        )

    assert left(landmarks) <= tol * (1 + 1e-6) < left(landmarks[:-1])


def test_cholesky_picks_what_is_least_explained(rng):
    x, kernel = rng.normal(size=(50, 2)), Laplace(1.0)
    literal = [0]
    for _ in range(9):
        z = x[literal]
        explained = np.diag(kernel.gram(x, z) @ np.linalg.solve(kernel.gram(z, z), kernel.gram(z, x)))
        literal.append(int(np.argmax(kernel.diagonal(x) - explained)))

    found = LandmarkFeatures(kernel, 10, selection="cholesky").fit(x).landmarks_

    np.testing.assert_array_equal(found, x[literal])


def test_random_cholesky_draws_in_proportion_to_the_residual():
    x, n = np.array([[0.0], [1.0], [2.0], [3.0]]), 600  # k(x, x) = 0, 1, 4, 9

    picks = [LandmarkFeatures(Linear(), 1, random_state=i).fit(x).landmarks_[0, 0] for i in range(n)]

    counts = np.bincount(np.array(picks, dtype=int), minlength=4)
    assert counts[0] == 0
    assert stats.chisquare(counts[1:], n * np.array([1, 4, 9]) / 14).pvalue > 1e-6


def test_uniform_landmarks_are_drawn_uniformly():
    x, n = np.arange(5.0)[:, None], 500

    picks = [
        LandmarkFeatures(Gaussian(1.0), 1, selection="uniform", random_state=i).fit(x).landmarks_ for i in range(n)
    ]

    assert stats.chisquare(np.bincount(np.ravel(picks).astype(int), minlength=5)).pvalue > 1e-6


def test_kmeans_landmarks_are_the_centres_of_clusters(rng):
    centres = np.array([[-50.0], [0.0], [80.0]])
    x = np.concatenate([c + 0.01 * rng.normal(size=(30, 1)) for c in centres])

    found = LandmarkFeatures(Gaussian(1.0), 3, selection="kmeans", random_state=0).fit(x).landmarks_

    np.testing.assert_allclose(np.sort(found, axis=0), centres, atol=0.02)


@pytest.mark.parametrize("features", [LandmarkFeatures(Laplace(1.0), 10, random_state=0), BinnedFeatures(Laplace(1.0))])
def test_the_tail_takes_raw_vectors_to_features(features, rng):
    x = rng.normal(size=(30, 1))
    phi = clone(features).fit(x)

    np.testing.assert_allclose(phi.raw(x) @ phi.tail_, phi.transform(x), rtol=1e-12, atol=1e-14)


def test_features_of_a_landmark_map_are_ordered_by_size(rng):
    x = rng.normal(size=(30, 1))
    phi = LandmarkFeatures(Laplace(1.0), n_landmarks=None).fit(x).transform(x)

    assert np.all(np.diff(np.sum(phi**2, axis=0)) < 1e-12)


def test_one_hot_equals_delta_landmarks(rng):
    x, new = rng.integers(0, 4, size=(50, 2)).astype(float), rng.integers(0, 5, size=(20, 2)).astype(float)
    one_hot, landmarks = OneHotFeatures().fit(x), LandmarkFeatures(Delta(), n_landmarks=None).fit(x)

    hot, found = one_hot.transform(new), landmarks.transform(new)

    np.testing.assert_allclose(hot @ hot.T, found @ found.T, rtol=0, atol=1e-12)


def test_one_hot_maps_a_new_value_to_zero():
    phi = OneHotFeatures().fit(np.array([[2.0], [5.0]]))

    np.testing.assert_array_equal(phi.transform(np.array([[5.0], [3.0]])), [[0, 1], [0, 0]])


def test_one_hot_keeps_a_place_for_codes_it_was_told_of():
    phi = OneHotFeatures(4).fit(np.array([[0.0], [2.0]]))

    np.testing.assert_array_equal(phi.transform(np.array([[3.0]])), [[0, 0, 0, 1]])


@pytest.mark.parametrize("bandwidth", [0.2, 1.0])
def test_binned_features_are_as_close_as_interpolation_can_be(bandwidth, rng):
    x, kernel = rng.normal(size=(50, 1)), Gaussian(bandwidth)
    phi = BinnedFeatures(kernel).fit(x)
    found, step = phi.transform(x), phi.grid_[1] - phi.grid_[0]

    largest = kernel.diagonal(x)[0]
    # linear interpolation errs by step²/8 · max|k''| in either argument, and the factor leaves out tol of the trace
    bound = largest * (2 * (step / bandwidth) ** 2 / 8 + 1e-8 * len(phi.grid_))
    assert np.abs(found @ found.T - kernel.gram(x, x)).max() <= bound


def test_a_uniform_grid_has_four_points_a_bandwidth_within_limits():
    x = np.array([0.0, 100.0])

    sizes = [len(uniform_grid(x, h, 2048)) for h in (0.01, 0.3, 1.0, 50.0)]

    assert sizes == [2048, int(4 * 101.2 / 0.3), 4 * 104, 256]


def test_binned_features_take_sums_of_kernels(rng):
    x, kernel = rng.normal(size=(50, 1)), Gaussian(1.0) + Gaussian(2.0)

    phi = BinnedFeatures(kernel).fit_transform(x)

    np.testing.assert_allclose(phi @ phi.T, kernel.gram(x, x), rtol=0.01)


def test_binned_features_have_at_most_as_many_columns_as_asked_for(rng):
    phi = BinnedFeatures(Laplace(0.1), max_features=7).fit_transform(rng.normal(size=(50, 1)))

    assert phi.shape == (50, 7)


INSIDE = arrays(float, 20, elements=st.floats(-3, 5))


@given(x=INSIDE, size=st.integers(2, 50))
@settings(max_examples=50, deadline=None, derandomize=True)
def test_linear_bins_keep_mass_and_mean(x, size):
    grid = np.linspace(-3, 5, size)

    shares = linear_bins(x, grid).toarray()

    assert shares.min() >= 0
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(shares @ grid, x, rtol=0, atol=1e-12)


def test_linear_bins_put_rows_beyond_the_grid_on_its_ends():
    shares = linear_bins(np.array([-9.0, 9.0]), np.array([0.0, 1.0, 2.0])).toarray()

    np.testing.assert_array_equal(shares, [[1, 0, 0], [0, 0, 1]])


def test_grid_features_are_linear_bins(rng):
    x, grid = rng.normal(size=(20, 1)), np.linspace(-4, 4, 33)

    shares = GridFeatures(grid, Gaussian(1.0)).transform(x)

    np.testing.assert_array_equal(shares.toarray(), linear_bins(x[:, 0], grid).toarray())


def test_a_uniform_grid_covers_the_data_and_what_the_kernel_carries_out(rng):
    x = rng.normal(size=100)

    grid = uniform_grid(x, 0.5)

    assert grid[0] == x.min() - 1
    assert grid[-1] == x.max() + 1
    np.testing.assert_allclose(np.diff(grid), grid[1] - grid[0], rtol=1e-9)


def test_a_uniform_grid_ends_before_values_too_far_out(rng):
    x = np.append(rng.normal(size=1000), 1e9)

    grid = uniform_grid(x, 0.1, 256)

    assert len(grid) == 256
    assert grid[1] - grid[0] <= 0.1 * 256 / 255
    assert grid[0] <= x.min() < np.sort(x)[-2] <= grid[-1] < 1e9


def test_a_uniform_grid_takes_a_constant_column():
    grid = uniform_grid(np.ones(5), 0.0)

    assert grid[0] < 1 < grid[-1]


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (LandmarkFeatures(selection="best"), r"selection must be one of \['cholesky', .*\]; got 'best'"),
        (LandmarkFeatures(n_landmarks=0), "n_landmarks must be an integer of at least 1; got 0"),
        (LandmarkFeatures(n_landmarks=2.5), "n_landmarks must be an integer of at least 1; got 2.5"),
        (BinnedFeatures(), "BinnedFeatures bins one column; got 2. LandmarkFeatures takes any number"),
        (OneHotFeatures(3), r"expects one column of the codes 0 to 3-1; got 2 column\(s\) with values from"),
        (OneHotFeatures(0), "n_categories must be an integer of at least 1; got 0"),
        (OneHotFeatures(True), "n_categories must be an integer of at least 1; got True"),
        (FourierFeatures(n_frequencies=0), "n_frequencies must be an integer of at least 1; got 0"),
        (FourierFeatures(selection="best"), r"selection must be one of \['fastfood', .*\]; got 'best'"),
        (TensorSketchFeatures(n_sketch=0), "n_sketch must be an integer of at least 1; got 0"),
    ],
    ids=repr,
)
def test_bad_parameters_get_a_sentence(features, message, rng):
    with pytest.raises(ValueError, match=message):
        features.fit(rng.normal(size=(20, 2)))


@pytest.mark.parametrize("params", [{"n_bins": 1}, {"max_features": 0}])
def test_binned_features_need_two_bins_and_a_feature(params, rng):
    with pytest.raises(ValueError, match=f"{next(iter(params))} must be an integer of at least"):
        BinnedFeatures(**params).fit(rng.normal(size=(20, 1)))


def test_one_hot_refuses_codes_beyond_those_it_was_told_of():
    with pytest.raises(ValueError, match=r'values from 0 to 3\. Use n_categories="auto" to learn the values'):
        OneHotFeatures(3).fit(np.array([[0.0], [3.0]]))


@pytest.mark.parametrize(
    ("kernel", "columns", "chosen"),
    [
        (Delta(), 1, OneHotFeatures),
        (Delta(), 3, OneHotFeatures),
        (Gaussian(), 1, BinnedFeatures),
        (Matern(), 1, BinnedFeatures),
        (Gaussian(), 2, LandmarkFeatures),
        (VonMises(), 1, LandmarkFeatures),
        (Linear(), 1, LandmarkFeatures),
    ],
)
def test_every_kernel_has_a_map_that_serves_it(kernel, columns, chosen):
    assert type(features_for(kernel, columns)) is chosen


def test_a_uniform_grid_covers_most_rows_however_narrow_the_kernel(rng):
    x = np.where(rng.random(1000) < 0.6, 0.0, rng.normal(5, 1, size=1000))
    grid = uniform_grid(x, 1e-5, 256)
    assert np.mean((x < grid[0]) | (x > grid[-1])) < 0.011


def test_a_kernel_on_a_grid_is_no_narrower_than_a_step_of_it(rng):
    x = np.where(rng.random(1000) < 0.6, 0.0, rng.normal(5, 1, size=1000))[:, None]
    given = Gaussian(1e-5)
    found = BinnedFeatures(given, 256).fit(x)
    assert found.kernel_.bandwidth == found.grid_[1] - found.grid_[0]
    assert given.bandwidth == 1e-5
