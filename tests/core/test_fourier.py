import array_api_strict as strict
import numpy as np
import pytest
from scipy import linalg, special, stats
from sklearn.base import clone
from sklearn.kernel_approximation import PolynomialCountSketch, RBFSampler

from catalogue import SHIFT_INVARIANT
from latentviews.core.features.fourier import SELECTIONS, FourierFeatures, hadamard_transform
from latentviews.core.features.points import hashed_points, lattice_points, orthogonal_points
from latentviews.core.features.sketches import TensorSketchFeatures
from latentviews.core.kernels.base import Kernel, UnitHeight
from latentviews.core.kernels.circle import VonMises
from latentviews.core.kernels.discrete import Delta
from latentviews.core.kernels.polynomial import Linear, Polynomial
from latentviews.core.kernels.real import Gaussian, Laplace

pytestmark = pytest.mark.cheap

CASES = [
    pytest.param(kernel, name, id=f"{kernel!r}-{name}")
    for kernel in SHIFT_INVARIANT
    for name in SELECTIONS
    if name != "fastfood" or hasattr(kernel, "radii")
]
POLYNOMIALS = [Polynomial(1), Polynomial(2), Polynomial(3, 0.5, 2.0), Polynomial(2, 1.0, 0.0)]

kernel_and_selection = pytest.mark.parametrize(("kernel", "selection"), CASES)


def kernel_errors(features, x, kernel, n_draws, rng):
    """Errors of the Gram matrix above its diagonal, one row per draw of the features."""
    i, j = np.triu_indices(len(x), 1)
    maps = [clone(features).set_params(random_state=int(seed)) for seed in rng.integers(2**31, size=n_draws)]
    gram = kernel.gram(x, x)
    return np.array([(phi @ phi.T - gram)[i, j] for phi in (one.fit_transform(x) for one in maps)])


def root_mean_square(errors):
    return np.sqrt(np.mean(errors**2))


@kernel_and_selection
def test_fourier_features_are_unbiased(kernel, selection):
    rng, n_draws = np.random.default_rng(0), 100
    x = rng.normal(size=(5, 2))

    errors = kernel_errors(FourierFeatures(kernel, 20, selection=selection), x, kernel, n_draws, rng)

    # ten pairs of points, one false alarm in a million runs
    limit = stats.t.isf(1e-6 / (2 * errors.shape[1]), n_draws - 1)
    assert np.all(np.abs(errors.mean(axis=0)) < limit * errors.std(axis=0) / np.sqrt(n_draws))


@kernel_and_selection
def test_fourier_features_have_the_length_of_the_kernel(kernel, selection):
    x = np.random.default_rng(0).normal(size=(6, 2))

    phi = FourierFeatures(kernel, 8, selection=selection, random_state=0).fit_transform(x)

    np.testing.assert_allclose(np.sum(phi**2, axis=1), kernel.diagonal(x), rtol=1e-12)  # cos² + sin² = 1


def test_independent_features_have_the_variance_of_the_theory(rng):
    x, m, kernel = rng.normal(size=(5, 3)), 16, Gaussian(1.5)
    height = kernel.gram(x[:1], x[:1])[0, 0]

    errors = kernel_errors(FourierFeatures(kernel, m), x, kernel, 300, rng) / height

    i, j = np.triu_indices(5, 1)
    theory = (1 - (kernel.gram(x, x) / height)[i, j] ** 2) ** 2 / (
        2 * m
    )  # of cos ωᵀδ: (1 - k²)² / 2 (Yu et al. 2016, lemma 1)
    np.testing.assert_allclose(errors.var(axis=0), theory, rtol=0.4)


def test_fourier_features_err_no_more_than_scikit_learns(rng):
    x, kernel = rng.normal(size=(10, 4)), UnitHeight(Gaussian(1.5))
    peer = RBFSampler(gamma=0.5 / 1.5**2, n_components=128)

    theirs = np.mean(kernel_errors(peer, x, kernel, 60, rng) ** 2)

    for selection in ("independent", "orthogonal", "lattice"):
        phi = FourierFeatures(Gaussian(1.5), 64, selection=selection, unit_height=True)
        assert np.mean(kernel_errors(phi, x, kernel, 60, rng) ** 2) < 1.2 * theirs


def test_features_of_angles_have_whole_frequencies(rng):
    x = rng.uniform(-np.pi, np.pi, size=(5, 2))
    phi = FourierFeatures(VonMises(0.3), 64, random_state=0).fit(x)

    np.testing.assert_array_equal(phi.frequencies_, np.round(phi.frequencies_))
    np.testing.assert_allclose(phi.transform(x), phi.transform(x + 2 * np.pi), atol=1e-10)
    points = (np.arange(10_000)[:, None] + 0.5) / 10_000
    found = VonMises(0.3).spectral(points, 1)[0]
    for n in range(-15, 16):  # the kernel's own Fourier coefficients, e^(-κ) I_n(κ)
        assert np.mean(found == n) == pytest.approx(special.ive(n, 0.3**-2), abs=1.1e-4)


@pytest.mark.parametrize(
    ("selection", "dim", "ratio"), [("orthogonal", 16, 0.5), ("lattice", 1, 0.01), ("lattice", 3, 0.3)]
)
def test_points_that_know_of_each_other_have_less_variance(selection, dim, ratio, rng):
    x, kernel = rng.normal(size=(10, dim)), Gaussian(np.sqrt(dim))

    careless, careful = (
        np.mean(kernel_errors(FourierFeatures(kernel, 128, selection=name), x, kernel, 40, rng) ** 2)
        for name in ("independent", selection)
    )

    assert careful < ratio * careless


@pytest.mark.parametrize(("selection", "low", "high"), [("independent", -0.75, -0.25), ("lattice", -1.6, -0.85)])
def test_errors_fall_at_their_rates(selection, low, high, rng):
    x, kernel, sizes = rng.normal(size=(20, 2)), Gaussian(1.0), [64, 256, 1024]

    errors = [
        root_mean_square(kernel_errors(FourierFeatures(kernel, m, selection=selection), x, kernel, 30, rng))
        for m in sizes
    ]

    assert low < np.polyfit(np.log(sizes), np.log(errors), 1)[0] < high


def test_fastfood_frequencies_follow_the_spectral_measure(rng):
    kernel = Gaussian(0.5)
    draws = [
        FourierFeatures(kernel, 16, selection="fastfood", random_state=int(seed)).fit(np.zeros((1, 5))).frequencies_
        for seed in rng.integers(2**31, size=300)
    ]

    one_of_each = np.array([w[:, 7] for w in draws])  # frequencies of one map depend on each other
    assert stats.kstest(one_of_each.ravel() * 0.5, "norm").pvalue > 1e-6
    lengths = np.sum((one_of_each * 0.5) ** 2, axis=1)
    assert stats.kstest(lengths, stats.chi2(5).cdf).pvalue > 1e-6


@pytest.mark.parametrize("size", [1, 2, 32, 64, 2048])
def test_the_hadamard_transform_is_a_product_with_the_hadamard_matrix(size):
    x = np.random.default_rng(0).normal(size=(2, 3, size))

    np.testing.assert_allclose(hadamard_transform(x), x @ linalg.hadamard(size), rtol=1e-12, atol=1e-10)


def test_fastfood_keeps_no_matrix_of_frequencies():
    phi = FourierFeatures(Gaussian(30.0), 2048, selection="fastfood", unit_height=True, random_state=0)
    phi.fit(np.zeros((2, 1000)))

    kept = sum(np.asarray(part).size for part in vars(phi.projection_).values())
    assert kept < 5 * 2048 + 1000


@pytest.mark.parametrize("n_coordinates", [1, 3])
def test_orthogonal_points_are_uniform_and_orthogonal(n_coordinates, rng):
    points = orthogonal_points(3000, n_coordinates, rng)

    assert stats.kstest(points[::n_coordinates].ravel(), "uniform").pvalue > 1e-6
    normals = stats.norm.ppf(points).reshape(-1, n_coordinates, n_coordinates)
    products = normals @ normals.transpose(0, 2, 1)
    np.testing.assert_allclose(products * (1 - np.eye(n_coordinates)), 0, atol=1e-9)


@pytest.mark.parametrize("start", [0, 64, 128])
def test_powers_of_two_of_lattice_points_are_spread_evenly(start, rng):
    points = lattice_points(start, 64, rng.random(4))

    for column in points.T:  # one in every cell of 1/64, up to the shift
        gaps = np.diff(np.sort(column))
        np.testing.assert_allclose(gaps, 1 / 64, atol=1e-9)


def test_lattice_points_go_on_where_they_ended(rng):
    shift = rng.random(3)

    whole = lattice_points(0, 100, shift)

    np.testing.assert_array_equal(whole[37:], lattice_points(37, 63, shift))


def test_hashed_points_are_uniform_and_independent(rng):
    seed = int(rng.integers(2**40))
    points = hashed_points(seed, 0, 40_000, 3, np.zeros(1))

    assert stats.kstest(points.ravel(), "uniform").pvalue > 1e-6
    others = hashed_points(seed + 1, 0, 40_000, 3, np.zeros(1))
    columns = np.concatenate([points[:-1], points[1:], others[1:]], axis=1)
    off_diagonal = np.corrcoef(columns.T)[np.triu_indices(9, 1)]
    assert np.abs(off_diagonal).max() < stats.norm.isf(1e-6 / 72) / np.sqrt(40_000)


def test_hashed_points_are_the_same_wherever_they_are_made(rng):
    whole = hashed_points(7, 0, 50, 3, np.zeros(1))

    np.testing.assert_array_equal(hashed_points(7, 20, 30, 3, np.zeros(1)), whole[20:])
    np.testing.assert_array_equal(np.from_dlpack(hashed_points(7, 0, 50, 3, strict.zeros(1))), whole)


@pytest.mark.parametrize("kernel", SHIFT_INVARIANT, ids=repr)
def test_frequencies_at_points_are_those_of_any_array_library(kernel, rng):
    points = rng.random((6, kernel.spectral_size(2)))

    found = kernel.spectral(strict.asarray(points), 2)

    np.testing.assert_allclose(np.from_dlpack(found), kernel.spectral(points, 2), rtol=1e-12)


@pytest.mark.parametrize("kernel", SHIFT_INVARIANT, ids=repr)
def test_a_fine_lattice_of_frequencies_gives_the_kernel(kernel):
    x = np.random.default_rng(0).normal(size=(6, 2))

    phi = FourierFeatures(kernel, 2**13, selection="lattice", random_state=0).fit_transform(x)

    np.testing.assert_allclose(phi @ phi.T, kernel.gram(x, x), atol=0.012 * kernel.diagonal(x)[0])


@pytest.mark.parametrize("kernel", POLYNOMIALS, ids=repr)
def test_tensor_sketches_are_unbiased(kernel, rng):
    x, n_draws = rng.normal(size=(4, 3)), 100

    errors = kernel_errors(TensorSketchFeatures(kernel, 16), x, kernel, n_draws, rng)

    limit = stats.t.isf(1e-6 / (2 * errors.shape[1]), n_draws - 1)
    assert np.all(np.abs(errors.mean(axis=0)) < limit * errors.std(axis=0) / np.sqrt(n_draws))


def test_tensor_sketches_err_as_scikit_learns_do(rng):
    x, kernel = rng.normal(size=(10, 6)), Polynomial(3, 0.5, 1.0)
    peer = PolynomialCountSketch(gamma=0.5, degree=3, coef0=1, n_components=128)

    ours = kernel_errors(TensorSketchFeatures(kernel, 128), x, kernel, 60, rng)
    theirs = kernel_errors(peer, x, kernel, 60, rng)

    assert 0.5 < np.mean(ours**2) / np.mean(theirs**2) < 2


def test_tensor_sketches_converge_at_the_rate_of_monte_carlo(rng):
    x, kernel, sizes = rng.normal(size=(10, 4)), Polynomial(2), [64, 256, 1024]

    errors = [root_mean_square(kernel_errors(TensorSketchFeatures(kernel, m), x, kernel, 40, rng)) for m in sizes]

    assert -0.75 < np.polyfit(np.log(sizes), np.log(errors), 1)[0] < -0.25


@pytest.mark.parametrize("kernel", [Linear(), Delta(), Gaussian(1.0) + Linear()], ids=repr)
def test_fourier_features_need_a_shift_invariant_kernel(kernel):
    with pytest.raises(TypeError, match=r"needs a shift-invariant kernel, one with `frequencies`; .* has none"):
        FourierFeatures(kernel).fit(np.zeros((3, 1)))


@pytest.mark.parametrize("kernel", [Laplace(1.0), VonMises(1.0), Gaussian(1.0) + Gaussian(2.0)], ids=repr)
def test_fastfood_needs_a_kernel_of_the_distance(kernel):
    with pytest.raises(TypeError, match=r"needs a kernel of the distance alone, one with `radii`"):
        FourierFeatures(kernel, selection="fastfood").fit(np.zeros((3, 2)))


class OnlyDraws(Kernel):
    """A shift-invariant kernel from elsewhere, that can draw frequencies and no more."""

    def gram(self, x, y):
        return Gaussian(1.0).gram(x, y)

    def frequencies(self, size, dim, rng):
        return rng.normal(size=(dim, size))


def test_a_kernel_that_only_draws_has_independent_frequencies(rng):
    x = rng.normal(size=(5, 2))

    assert FourierFeatures(OnlyDraws(), 8, random_state=0).fit_transform(x).shape == (5, 16)
    with pytest.raises(TypeError, match='OnlyDraws, which lacks `spectral`: use selection="independent"'):
        FourierFeatures(OnlyDraws(), 8, selection="lattice").fit(x)


@pytest.mark.parametrize("selection", SELECTIONS)
def test_phases_of_whole_numbers_are_those_of_numbers(selection, rng):
    phi = FourierFeatures(Gaussian(0.7), 8, selection=selection, random_state=0).fit(rng.normal(size=(9, 2)))
    whole = rng.integers(-3, 4, size=(5, 2))

    np.testing.assert_allclose(phi.projection_(whole), phi.projection_(whole.astype(float)), rtol=1e-12)


def test_heights_out_of_range_get_a_sentence():
    x = np.zeros((2, 5000))

    with pytest.raises(ValueError, match=r"as a density on 5000 columns, 0\.0, is out of range; pass unit_height=True"):
        FourierFeatures(Gaussian(50.0)).fit(x)
    phi = FourierFeatures(Gaussian(50.0), 16, unit_height=True, random_state=0).fit_transform(x)
    np.testing.assert_allclose(phi @ phi.T, 1)


def test_sketches_are_those_of_the_fit(rng):
    x, phi = rng.normal(size=(5, 2)), TensorSketchFeatures(n_sketch=8, random_state=0)
    expected = phi.fit_transform(x)

    np.testing.assert_array_equal(phi.set_params(n_sketch=16).transform(x), expected)


NO_KERNELS = [
    Polynomial(0),
    Polynomial(2, -1.0),
    Polynomial(2, 1.0, -1.0),
    Polynomial(2, "one"),
    Polynomial(2, 1, None),
]


@pytest.mark.parametrize("kernel", NO_KERNELS, ids=repr)
def test_polynomials_that_are_no_kernels_are_refused(kernel):
    with pytest.raises(ValueError, match=r"degree must be an integer of at least 1|positive scale and an offset of at"):
        TensorSketchFeatures(kernel).fit(np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"degree must be an integer of at least 1|positive scale and an offset of at"):
        kernel.gram(np.zeros((2, 2)), np.zeros((2, 2)))


def test_tensor_sketches_need_a_polynomial_kernel():
    with pytest.raises(TypeError, match="needs a Polynomial kernel; got Gaussian"):
        TensorSketchFeatures(Gaussian(1.0)).fit(np.zeros((2, 2)))


@pytest.mark.filterwarnings("error")
def test_rows_too_large_for_their_features_get_a_sentence(rng):
    X, far = rng.normal(size=(50, 3)), np.full((1, 3), 1e37, np.float32)

    with pytest.raises(ValueError, match="Row values are too large for these features in float32; scale the columns"):
        FourierFeatures(Laplace(1.0), random_state=0).fit(X).transform(far)
    with pytest.raises(ValueError, match="Row values are too large for these features in float32; scale the columns"):
        TensorSketchFeatures(random_state=0).fit(X).transform(far)


@pytest.mark.parametrize("maps", [FourierFeatures(Gaussian(1.0), random_state=0), TensorSketchFeatures(random_state=0)])
def test_whole_numbers_of_other_libraries_are_numbers(maps, rng):
    X = rng.integers(5, size=(20, 2))

    found = clone(maps).fit(strict.asarray(X)).transform(strict.asarray(X))

    np.testing.assert_allclose(np.from_dlpack(found), clone(maps).fit(X).transform(X), rtol=1e-8, atol=1e-10)
