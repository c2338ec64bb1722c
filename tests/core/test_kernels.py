import pickle
import tracemalloc

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import integrate, stats
from sklearn.base import clone

from catalogue import DENSITIES, KERNELS, RULES, SHIFT_INVARIANT
from latentviews import LandmarkFeatures, MultiViewMixture, two_sample_test
from latentviews.core.kernels.base import Kernel, UnitHeight
from latentviews.core.kernels.circle import VonMises
from latentviews.core.kernels.discrete import Delta
from latentviews.core.kernels.distances import squared_distances
from latentviews.core.kernels.polynomial import Linear, Polynomial
from latentviews.core.kernels.real import Gaussian, Laplace, Matern
from latentviews.core.kernels.spaces import Circle, Real

pytestmark = pytest.mark.cheap

NOT_SHIFT_INVARIANT = [Delta(), Linear(), Gaussian(1.0) + Linear(), Delta() * Laplace(1.0)]
SCALED = [Gaussian, Laplace, Matern]

EPS = np.finfo(float).eps
POINTS = arrays(float, (4, 2), elements=st.floats(-5, 5, width=32))

kernels = pytest.mark.parametrize("kernel", KERNELS, ids=repr)


def rows(rng, n=30):
    """Two columns with ties, so that the delta kernel has something to see."""
    return np.round(rng.normal(size=(n, 2)), 1)


@kernels
def test_gram_is_symmetric_and_positive_semidefinite(kernel, rng):
    x = rows(rng)

    gram = kernel.gram(x, x)

    values = np.linalg.eigvalsh(gram)
    # Matérn distances near zero keep half the digits, see squared_distances
    np.testing.assert_allclose(gram, gram.T, rtol=0, atol=np.sqrt(EPS) * gram.max())
    assert values[0] > -np.sqrt(EPS) * values[-1]


@kernels
def test_rows_are_left_as_they_are(kernel, rng):
    x, y = rows(rng), rows(rng, 7)
    before = x.copy(), y.copy()

    kernel.gram(x, x)
    kernel.correlation(x, y)

    np.testing.assert_array_equal(x, before[0])
    np.testing.assert_array_equal(y, before[1])


@kernels
def test_whole_numbers_are_numbers(kernel, rng):
    x, y = rng.integers(-3, 4, size=(9, 2)), rng.integers(-3, 4, size=(5, 2))

    np.testing.assert_allclose(kernel.gram(x, y), kernel.gram(x.astype(float), y.astype(float)), rtol=1e-12)


@kernels
def test_correlations_are_the_kernel_over_its_heights(kernel, rng):
    x, y = ((kernel.space or Real()).reflected(rows(rng)) for _ in range(2))
    heights = np.sqrt(np.outer(*(kernel.diagonal(points) / kernel.unit_diagonal(points) for points in (x, y))))

    np.testing.assert_allclose(kernel.correlation(x, y) * heights, kernel.gram(x, y), rtol=1e-10, atol=1e-14)
    np.testing.assert_array_equal(UnitHeight(kernel).gram(x, y), kernel.correlation(x, y))


@kernels
def test_diagonal_is_the_diagonal_of_gram(kernel, rng):
    x = rows(rng)

    np.testing.assert_allclose(kernel.diagonal(x), np.diag(kernel.gram(x, x)), rtol=1e-6)


@kernels
@pytest.mark.parametrize("again", [clone, lambda k: pickle.loads(pickle.dumps(k))], ids=["clone", "pickle"])
def test_a_copy_of_a_kernel_is_the_same_kernel(kernel, again, rng):
    x, copy = rows(rng), again(kernel)

    assert copy is not kernel
    assert repr(copy) == repr(kernel)
    np.testing.assert_array_equal(copy.gram(x, x), kernel.gram(x, x))


@kernels
def test_parameters_can_be_read_and_set(kernel):
    params = kernel.get_params(deep=False)

    same = clone(kernel).set_params(**params)

    assert all(same.get_params(deep=False)[name] is value for name, value in params.items())


def test_parameters_of_parts_have_nested_names(rng):
    x = rows(rng)

    kernel = (Gaussian(1.0) + Laplace(1.0)).set_params(first__bandwidth=0.3, second__bandwidth=0.6)

    np.testing.assert_array_equal(kernel.gram(x, x), Gaussian(0.3).gram(x, x) + Laplace(0.6).gram(x, x))


def test_repr_shows_the_parameters():
    assert repr(Gaussian(0.7)) == "Gaussian(bandwidth=0.7)"
    assert "Laplace(bandwidth=1.0)" in repr(Gaussian(0.5) * Laplace(1.0))


def test_sums_and_products_work_entry_by_entry(rng):
    x, y, a, b = rows(rng), rows(rng, 7), Gaussian(0.5), Laplace(1.0)

    np.testing.assert_array_equal((a + b).gram(x, y), a.gram(x, y) + b.gram(x, y))
    np.testing.assert_array_equal((a * b).gram(x, y), a.gram(x, y) * b.gram(x, y))


def test_a_pair_has_a_space_only_where_its_parts_share_one():
    assert (Gaussian(1.0) * Laplace(1.0)).space == Real()
    assert (VonMises(1.0) + VonMises(0.5)).space == Circle()
    assert (Gaussian(1.0) + Linear()).space is None
    assert (Delta() * Gaussian(1.0)).space is None


@pytest.mark.parametrize("kernel", DENSITIES, ids=repr)
def test_kernel_integrates_to_one_on_the_line(kernel):
    def value(x):
        return kernel.gram(np.array([[x]]), np.zeros((1, 1)))[0, 0]

    half, _ = integrate.quad(value, 0, np.inf, epsabs=1e-11)

    assert 2 * half == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("kernel", [*DENSITIES, Gaussian(np.array([0.5, 1.3]))], ids=repr)
def test_kernel_integrates_to_one_in_the_plane(kernel):
    step = 0.05
    axis = np.arange(-15 + step / 2, 15, step)
    plane = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)

    mass = kernel.gram(plane, np.zeros((1, 2))).sum() * step**2

    assert mass == pytest.approx(1, abs=2 * step**2 / (24 * 0.5**2))  # the midpoint rule across a kink, twice


@pytest.mark.parametrize("dim", [1, 2])
def test_von_mises_integrates_to_one_on_circle_and_torus(dim):
    axis = np.linspace(-np.pi, np.pi, 64, endpoint=False)
    torus = np.stack(np.meshgrid(*[axis] * dim), axis=-1).reshape(-1, dim)

    mass = VonMises(0.6).gram(torus, np.full((1, dim), 0.3)).sum() * (2 * np.pi / 64) ** dim

    assert mass == pytest.approx(1, abs=1e-12)  # equal weights are spectrally accurate on periodic functions


@pytest.mark.parametrize(
    ("kernel", "law"),
    [
        (Gaussian(0.7), stats.norm(scale=0.7)),
        (Laplace(0.8), stats.laplace(scale=0.8)),
        (Matern(0.8, 0.5), stats.laplace(scale=0.8)),
        (VonMises(0.6), stats.vonmises(0.6**-2)),
    ],
    ids=["norm", "laplace", "matern", "vonmises"],
)
def test_values_are_those_of_the_density_in_scipy(kernel, law, rng):
    x, y = rng.normal(size=(20, 1)), rng.normal(size=(5, 1))

    np.testing.assert_allclose(kernel.gram(x, y), law.pdf(x - y.T), rtol=1e-10)


@pytest.mark.parametrize("bandwidth", [0.7, np.array([0.5, 1.3, 2.0])], ids=["one", "one per column"])
def test_gaussian_is_the_multivariate_normal_density(bandwidth, rng):
    x, y = rng.normal(size=(20, 3)), rng.normal(size=(1, 3))
    law = stats.multivariate_normal(y[0], np.diag(np.broadcast_to(bandwidth, 3) ** 2))

    np.testing.assert_allclose(Gaussian(bandwidth).gram(x, y)[:, 0], law.pdf(x), rtol=1e-10)


def test_gaussian_keeps_its_digits_far_from_the_origin(rng):
    x = rng.normal(size=(20, 2))

    far, near = Gaussian(1.0).gram(x + 2.0**20, x + 2.0**20), Gaussian(1.0).gram(x, x)

    np.testing.assert_allclose(far, near, atol=1e-8)  # 2^20 itself costs 20 of 52 bits


@pytest.mark.parametrize("kernel", [*SHIFT_INVARIANT, Gaussian(0.7) + VonMises(0.6)], ids=repr)
def test_frequencies_reproduce_the_kernel_by_monte_carlo(kernel, rng):
    x, y, size = rng.normal(size=(6, 2)), rng.normal(size=(4, 2)), 20_000

    differences = (x[:, None, :] - y[None, :, :]).reshape(-1, 2)
    waves = kernel.diagonal(x)[0] * np.cos(differences @ kernel.frequencies(size, 2, rng))

    errors = waves.mean(axis=1) - kernel.gram(x, y).ravel()
    limit = stats.norm.isf(1e-6 / (2 * errors.size))  # one false alarm in a million runs
    assert np.all(np.abs(errors) < limit * waves.std(axis=1) / np.sqrt(size))


@pytest.mark.parametrize("kernel", NOT_SHIFT_INVARIANT, ids=repr)
def test_a_kernel_that_is_not_shift_invariant_has_no_frequencies(kernel):
    assert not hasattr(kernel, "frequencies")


@pytest.mark.parametrize("kernel", SHIFT_INVARIANT, ids=repr)
@given(x=POINTS, y=POINTS, shift=st.floats(-10, 10))
@settings(max_examples=25, deadline=None, derandomize=True)
def test_shifting_both_arguments_changes_nothing(kernel, x, y, shift):
    moved = kernel.gram(x + shift, y + shift)

    # squared distances are right to 15² eps, so distances near zero to 15 √eps bandwidths
    atol = 15 * np.sqrt(EPS) * kernel.diagonal(x[:1])[0] / 0.5
    np.testing.assert_allclose(moved, kernel.gram(x, y), rtol=0, atol=atol * 4)


@kernels
@given(x=POINTS, y=POINTS)
@settings(max_examples=25, deadline=None, derandomize=True)
def test_exchanging_the_arguments_transposes_gram(kernel, x, y):
    largest = max(kernel.diagonal(x).max(), kernel.diagonal(y).max())
    np.testing.assert_allclose(kernel.gram(x, y), kernel.gram(y, x).T, rtol=0, atol=60 * np.sqrt(EPS) * largest)


@pytest.mark.parametrize("kernel_class", SCALED)
@pytest.mark.parametrize("rule", RULES)
def test_adapt_turns_a_rule_into_numbers(kernel_class, rule, rng):
    x, kernel = rng.normal(size=(200, 2)), kernel_class(rule)

    adapted = kernel.adapt(x)

    np.testing.assert_array_equal(adapted.bandwidth, RULES[rule](x))
    assert kernel.bandwidth == rule
    assert np.all(np.isfinite(adapted.gram(x, x)))


def test_adapt_reaches_both_parts_of_a_sum(rng):
    x = rng.normal(size=(100, 1))

    adapted = (Gaussian("scott") + Laplace("median")).adapt(x)

    assert adapted.first.bandwidth == Gaussian("scott").adapt(x).bandwidth
    assert adapted.second.bandwidth == Laplace("median").adapt(x).bandwidth


@kernels
def test_adapt_leaves_numbers_alone_and_returns_a_copy(kernel, rng):
    adapted = kernel.adapt(rows(rng))

    assert adapted is not kernel
    assert repr(adapted) == repr(kernel)


def test_von_mises_median_is_the_median_angle_between_rows(rng):
    angles = rng.vonmises(0, 4, size=(99, 1))  # an odd number of pairs, so the median is one of them
    pairs = np.abs(angles - angles.T)[np.triu_indices(99, 1)]

    adapted = VonMises("median").adapt(angles)

    assert adapted.bandwidth == pytest.approx(np.median(np.minimum(pairs, 2 * np.pi - pairs)), rel=1e-10)


def test_von_mises_silverman_is_silverman_on_narrow_data(rng):
    angles = rng.normal(0, 0.1, size=(2000, 1))

    adapted = VonMises("silverman").adapt(angles + np.pi)  # the cut of the circle goes through the data

    # on narrow data the circular standard deviation is the usual one, to the fourth order
    assert adapted.bandwidth == pytest.approx(0.1 * (4 / (3 * 2000)) ** 0.2, rel=0.1)


@pytest.mark.parametrize("kernel", [Gaussian("isj"), Laplace("isj"), Matern("isj"), VonMises("silverman")], ids=repr)
@pytest.mark.parametrize("method", ["gram", "frequencies"])
def test_a_rule_must_be_resolved_first(kernel, method, rng):
    call = {"gram": (np.zeros((1, 1)), np.zeros((1, 1))), "frequencies": (3, 1, rng)}[method]

    with pytest.raises(ValueError, match=r"is a rule, not yet a number; call `adapt\(x\)` on data first"):
        getattr(kernel, method)(*call)


@pytest.mark.parametrize("kernel_class", [*SCALED, VonMises])
@pytest.mark.parametrize("bandwidth", [-1.0, 0.0, np.inf, np.nan])
def test_a_bandwidth_must_be_positive_and_finite(kernel_class, bandwidth):
    with pytest.raises(ValueError, match="positive, finite bandwidth; got"):
        kernel_class(bandwidth).gram(np.zeros((1, 1)), np.zeros((1, 1)))


@pytest.mark.parametrize("kernel_class", SCALED)
@pytest.mark.parametrize("bandwidth", [np.ones(3), np.ones((2, 2))], ids=["vector", "matrix"])
def test_bandwidths_must_be_one_or_one_a_column(kernel_class, bandwidth):
    with pytest.raises(ValueError, match=r"takes one bandwidth or one per column; got shape \(.*\) for 2 column"):
        kernel_class(bandwidth).gram(np.zeros((1, 2)), np.zeros((1, 2)))


def test_von_mises_takes_one_bandwidth():
    with pytest.raises(ValueError, match="VonMises needs one positive, finite bandwidth"):
        VonMises(np.ones(2)).gram(np.zeros((1, 2)), np.zeros((1, 2)))


def test_an_unknown_rule_is_refused_with_the_known_ones(rng):
    x = rng.normal(size=(20, 1))

    with pytest.raises(ValueError, match=r"one of \['cv', 'isj', 'median', 'scott', 'silverman'\]; got 'widest'"):
        Gaussian("widest").adapt(x)
    with pytest.raises(ValueError, match=r"one of \['median', 'silverman', 'cv'\]; got 'isj'"):
        VonMises("isj").adapt(x)


@pytest.mark.parametrize("smoothness", [0.0, 1.0, 0.7, -0.5, "x", None, np.inf])
def test_matern_takes_half_integer_smoothness(smoothness, rng):
    kernel = Matern(1.0, smoothness)

    with pytest.raises(ValueError, match=r"smoothness of 0\.5, 1\.5, 2\.5, …; got"):
        kernel.gram(np.zeros((1, 1)), np.zeros((1, 1)))
    with pytest.raises(ValueError, match=r"smoothness of 0\.5, 1\.5, 2\.5, …; got"):
        kernel.frequencies(3, 1, rng)
    with pytest.raises(ValueError, match=r"smoothness of 0\.5, 1\.5, 2\.5, …; got"):
        kernel.log_height(1)


def test_a_new_kernel_needs_gram_and_nothing_else(rng):
    class Cubic(Kernel):
        def gram(self, x, y):
            return (1 + x @ y.T) ** 3

    x = rows(rng)

    np.testing.assert_allclose(Cubic().diagonal(x), np.diag(Cubic().gram(x, x)), rtol=1e-12)
    assert (Cubic() + Gaussian(1.0)).gram(x, x).shape == (30, 30)


def test_a_kernel_without_gram_says_so():
    with pytest.raises(TypeError, match=r"Kernel is a kernel without `gram`: write gram\(x, y\) for it"):
        Kernel().gram(np.zeros((1, 1)), np.zeros((1, 1)))


@kernels
def test_other_array_libraries_get_their_own_arrays_back(kernel, rng):
    x, y = rows(rng), rows(rng, 7)

    gram = kernel.gram(strict.asarray(x), strict.asarray(y))
    diagonal = kernel.diagonal(strict.asarray(x))

    assert type(gram) is type(diagonal) is type(strict.asarray(x))
    # exp and powers may be rounded another way in another library
    np.testing.assert_allclose(np.from_dlpack(gram), kernel.gram(x, y), rtol=1e-10)
    np.testing.assert_allclose(np.from_dlpack(diagonal), kernel.diagonal(x), rtol=1e-10)


@kernels
def test_single_precision_stays_single(kernel, rng):
    x = rows(rng).astype(np.float32)

    gram = kernel.gram(x, x)

    assert gram.dtype == kernel.diagonal(x).dtype == np.float32
    double = kernel.gram(x.astype(float), x.astype(float))
    np.testing.assert_allclose(gram, double, atol=10 * np.sqrt(np.finfo(np.float32).eps) * double.max())


def test_delta_takes_integers(rng):
    x = rng.integers(0, 3, size=(20, 2))

    np.testing.assert_array_equal(Delta().gram(x, x), Delta().gram(x.astype(float), x.astype(float)))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("kernel", [Gaussian(1.0), Laplace(1.0), Matern(1.0), Matern(1.0, 3.5)], ids=repr)
def test_rows_far_out_have_nothing_in_common_with_others(kernel, columns, dtype, rng):
    near = rng.normal(size=(20, columns)).astype(dtype)

    for size in (1e20, 1e37):
        np.testing.assert_array_equal(kernel.gram(np.full((1, columns), size, dtype), 50 * near), np.zeros((1, 20)))


@pytest.mark.parametrize("kernel", [Gaussian, Laplace, Matern])
def test_one_row_has_the_values_that_it_has_among_others(kernel, rng):
    x = rng.normal(size=(30, 4)) + 1e3
    x[0] = 1e200
    whole = kernel(0.7).gram(x, x[1:])
    one_by_one = np.hstack([kernel(0.7).gram(x, x[[i]]) for i in range(1, 30)])
    np.testing.assert_allclose(one_by_one, whole, rtol=1e-7, atol=1e-12 * whole.max())


def test_distances_of_many_columns_need_no_copy_of_the_rows(rng):
    x, y = rng.normal(size=(400, 3000)), rng.normal(size=(5, 3000))
    tracemalloc.start()
    squared_distances(x, y)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 0.2 * x.nbytes


@pytest.mark.parametrize("kernel", [Linear(), Polynomial()], ids=repr)
def test_inner_products_out_of_range_are_a_sentence(kernel):
    rows = np.array([[1e30, -1e30], [1.0, 2.0]], dtype=np.float32)

    for call in (lambda: kernel.gram(rows, rows), lambda: kernel.diagonal(rows)):
        with np.errstate(all="raise"), pytest.raises(ValueError, match=r"out of .*range.*scale the rows"):
            call()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", [Gaussian(1e-120), Laplace(1e-120)], ids=repr)
def test_a_height_beyond_the_range_of_numbers_leaves_zeros_as_they_are(kernel, dtype):
    rows = np.array([[0.0, 0.0, 0.0], [1.0, 2.0, 3.0]], dtype=dtype)
    with np.errstate(all="raise", under="ignore"):
        gram = kernel.gram(rows, rows)

    np.testing.assert_array_equal(gram, [[np.inf, 0.0], [0.0, np.inf]])


class OnlyGram:
    def gram(self, x, y):
        return np.exp(-squared_distances(x, y))


@pytest.mark.parametrize(
    "use",
    [
        lambda kernel, X: LandmarkFeatures(kernel).fit(X),
        lambda kernel, X: MultiViewMixture(2, kernel=kernel).fit(X),
        lambda kernel, X: two_sample_test(X, X + 1, kernel=kernel),
    ],
    ids=["features", "mixture", "test"],
)
def test_a_gram_alone_makes_no_kernel(use, rng):
    class Inheriting(OnlyGram, Kernel):
        pass

    with pytest.raises(TypeError, match="an object of a class that inherits from `Kernel`"):
        use(OnlyGram(), rng.normal(size=(100, 3)))
    LandmarkFeatures(Inheriting()).fit(rng.normal(size=(100, 3)))
