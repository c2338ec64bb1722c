import numpy as np
import pytest
from scipy import integrate, stats
from sklearn.base import clone
from sklearn.kernel_approximation import RBFSampler

from catalogue import DENSITIES
from latentviews.core.components import Components
from latentviews.core.embeddings import BinnedEmbedding, Embedding, components_in, domain_for
from latentviews.core.features.bins import BinnedFeatures, GridFeatures, linear_bins
from latentviews.core.features.indicators import OneHotFeatures
from latentviews.core.features.landmarks import LandmarkFeatures
from latentviews.core.kernels.base import Kernel
from latentviews.core.kernels.circle import VonMises
from latentviews.core.kernels.polynomial import Linear
from latentviews.core.kernels.real import Gaussian, Laplace
from latentviews.core.kernels.spaces import Circle, Discrete, Real

pytestmark = pytest.mark.cheap

GRID = np.linspace(-8, 8, 801)


def two_classes(rng, n=60):
    """Rows around -2 and 2, and weights (n, 2) that make each column one class."""
    x = np.concatenate([rng.normal(-2, 0.5, size=(n // 2, 1)), rng.normal(2, 0.5, size=(n // 2, 1))])
    weights = np.zeros((n, 2))
    weights[: n // 2, 0] = weights[n // 2 :, 1] = 2 / n
    return x, weights


def embed(x, weights, kernel, rng):
    """The exact embedding of a weighted sample: every row is a landmark."""
    phi = LandmarkFeatures(kernel, n_landmarks=None).fit(x)
    return Embedding(domain_for(phi, x, rng), phi, phi.transform(x).T @ weights)


def binned(x, weights, kernel, rng, size=400):
    grid = np.linspace(x.min() - 2, x.max() + 2, size)
    phi = GridFeatures(grid, kernel)
    return components_in(phi, linear_bins(x[:, 0], grid).T @ weights, domain_for(phi, x, rng))


MAKERS = [embed, binned]  # a new kind of components is added here

kernels = pytest.mark.parametrize("kernel", DENSITIES, ids=repr)
makers = pytest.mark.parametrize("make", MAKERS)


@kernels
def test_an_embedded_sample_is_its_kernel_density_estimate(kernel, rng):
    x, weights = two_classes(rng)

    found = embed(x, weights, kernel, rng).at(GRID)

    # off the landmarks, directions dropped at tol = 1e-12 count with their square root
    gram = kernel.gram(x, x)
    atol = 2 * np.sqrt(1e-12 * np.linalg.norm(gram, 2) * gram[0, 0]) * np.linalg.norm(weights, axis=0).max()
    np.testing.assert_allclose(found, kernel.gram(GRID[:, None], x) @ weights, rtol=0, atol=atol)


@kernels
@pytest.mark.parametrize("size", [400, 401])
def test_binned_values_are_the_kernel_sum_to_interpolation_accuracy(kernel, size, rng):
    grid = np.linspace(-4, 4, size)
    weights = rng.normal(size=(size, 2))
    found = BinnedEmbedding(None, grid, weights, kernel, np.array([0.5, 0.8]))

    # on grid points, and beyond the ends of the grid by less than its length, nothing is interpolated
    step = grid[1] - grid[0]
    on = np.concatenate([grid, grid[-1] + step * np.arange(1, 50), grid[0] - step * np.arange(1, 50)])
    for h, bandwidth in enumerate([0.5, 0.8]):
        wide = clone(kernel).set_params(bandwidth=bandwidth)
        direct = wide.gram(on[:, None], grid[:, None]) @ weights[:, h]
        np.testing.assert_allclose(found.at(on)[:, h], direct, rtol=0, atol=1e-9 * np.abs(weights).sum())


class Ends(Kernel):
    """Not one kernel, stretched: its tails are as heavy as its bandwidth says."""

    def __init__(self, bandwidth=1.0):
        self.bandwidth = bandwidth

    def adapt(self, x):
        return clone(self)

    def gram(self, x, y):
        return np.exp(-(np.abs(x - y.T) ** (1 + self.bandwidth)))


def test_a_kernel_of_any_shape_smooths_binned_weights(rng):
    grid, weights = np.linspace(-3, 3, 31), rng.dirichlet(np.ones(31), size=2).T
    found = BinnedEmbedding(None, grid, weights, Ends(), np.array([0.2, 0.9])).at(grid)
    each = [Ends(width).gram(grid[:, None], grid[:, None]) @ weights[:, h] for h, width in enumerate((0.2, 0.9))]
    np.testing.assert_allclose(found, np.transpose(each), atol=1e-12)


@pytest.mark.parametrize("size", [400, 401])
def test_binned_values_between_grid_points_are_interpolated(size, rng):
    grid, kernel = np.linspace(-4, 4, size), Gaussian(0.5)
    weights = rng.uniform(size=(size, 1))
    x = rng.uniform(-5, 5, size=200)

    found = BinnedEmbedding(None, grid, weights, kernel, np.array([0.5])).at(x)[:, 0]

    bound = (
        weights.sum() * (8 / (size - 1)) ** 2 / 8 * kernel.diagonal(np.zeros((1, 1)))[0] / 0.5**2
    )  # step²/8 max|k''|
    np.testing.assert_allclose(found, kernel.gram(x[:, None], grid[:, None]) @ weights[:, 0], rtol=0, atol=bound)


def test_binned_values_far_away_are_zero():
    found = BinnedEmbedding(None, np.linspace(0, 1, 5), np.ones((5, 1)), Gaussian(0.1), np.array([0.1]))

    np.testing.assert_array_equal(found.at([-50.0, 50.0]), 0)


@makers
@kernels
def test_densities_are_nonnegative_and_of_mass_one(make, kernel, rng):
    x, weights = two_classes(rng)
    weights = weights @ [[1.0, -0.3], [-0.2, 1.0]]  # each class with a negative bump at the other

    components = make(x, weights, kernel, rng)

    fine = np.linspace(-15, 15, 6001)
    density = components.density(fine)
    assert density.min() >= 0
    # midpoints beside the kinks of clipped and Laplace kernels: second order in a step of 1/1024 of the range
    np.testing.assert_allclose(integrate.trapezoid(density, fine, axis=0), 1, atol=2e-3)


@makers
def test_clipping_and_mass_are_on_record(make, rng):
    x = np.array([[-10.0], [10.0]])
    weights = np.array([[1.0, 0.0], [-0.25, 1.0]])

    components = make(x, weights, Gaussian(0.5), rng)

    np.testing.assert_allclose(components.mass, [0.75, 1.0], atol=1e-3)
    np.testing.assert_allclose(components.clipped, [0.2, 0.0], atol=1e-3)  # 0.25 / (1 + 0.25)
    assert components.at([10.0])[0, 0] < 0 == components.density([10.0])[0, 0]


@makers
def test_log_density_is_the_log_where_there_are_data_and_finite_far_away(make, rng):
    x, weights = two_classes(rng)
    components = make(x, weights, Gaussian(0.5), rng)

    near, far = components.log_density(x), components.log_density([-1e6, 1e6])

    own = np.argmax(weights, axis=1)
    rows = np.arange(len(x))
    np.testing.assert_allclose(near[rows, own], np.log(components.density(x)[rows, own]), atol=1e-3)
    assert np.all(np.isfinite(far))


@makers
def test_a_query_by_points_and_coefficients_is_a_sum(make, rng):
    x, weights = two_classes(rng)
    points, coefficients = rng.normal(size=(5, 1)), rng.normal(size=5)
    components = make(x, weights, Gaussian(0.5), rng)

    found = components.expectation((points, coefficients))

    # binning moves mass by half a step of 1/400 of the range on either side
    direct = coefficients @ Gaussian(0.5).gram(points, x) @ weights
    np.testing.assert_allclose(found, direct, atol=1e-5 if make is embed else 2e-3)


@makers
def test_a_query_by_a_function_is_its_mean(make, rng):
    x, weights = two_classes(rng)
    components = make(x, weights, Gaussian(0.5), rng)

    found = components.expectation(lambda rows: rows[:, 0])

    np.testing.assert_allclose(found, x[:, 0] @ weights, atol=1e-4)  # the kernel is symmetric, so it keeps the mean


def test_a_function_is_smoothed_by_the_kernel_of_an_embedding_but_not_of_bins(rng):
    x, weights = two_classes(rng)
    second = x[:, 0] ** 2 @ weights

    smooth, plain = (make(x, weights, Gaussian(0.5), rng).expectation(np.square) for make in MAKERS)

    np.testing.assert_allclose(smooth, second + 0.25, atol=1e-3)
    np.testing.assert_allclose(plain, second, atol=1e-3)


@makers
def test_a_function_of_the_wrong_shape_is_refused(make, rng):
    components = make(*two_classes(rng), Gaussian(0.5), rng)

    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match="a function that is finite wherever"):
        components.expectation(lambda rows: np.log(rows[:, 0]))
    with pytest.raises(ValueError, match=r"needs a function from rows \(n, d\) to n numbers; for \d+ rows it gave"):
        components.expectation(lambda rows: 1.0)


@makers
def test_distances_are_the_gram_formula_and_zero_to_itself(make, rng):
    x, weights = two_classes(rng)
    components = make(x, weights, Gaussian(0.5), rng)

    found = components.mmd()

    difference = weights[:, 0] - weights[:, 1]
    direct = np.sqrt(difference @ Gaussian(0.5).gram(x, x) @ difference)
    # a squared distance is right to rounding, or to the binning of BinnedFeatures, so a distance to its root
    np.testing.assert_allclose(np.diag(found), 0, atol=1e-7)
    np.testing.assert_allclose(found, [[0, direct], [direct, 0]], rtol=1e-6 if make is embed else 5e-3, atol=1e-7)


@pytest.mark.parametrize("here", MAKERS)
@pytest.mark.parametrize("there", MAKERS)
def test_distances_across_feature_maps_tell_classes_apart(here, there, rng):
    x, weights = two_classes(rng)
    y, other = two_classes(rng)

    found = here(x, weights, Gaussian(0.5), rng).mmd(there(y, other, Gaussian(0.5), rng))

    assert found.shape == (2, 2)
    assert found.diagonal().max() < 0.5 * min(found[0, 1], found[1, 0])


def test_distances_across_binned_maps_are_the_gram_formula(rng):
    (x, weights), (y, other) = two_classes(rng), two_classes(rng)
    kernel = Gaussian(0.5)

    found = binned(x, weights, kernel, rng).mmd(binned(y, other, kernel, rng, size=333))

    points, both = np.concatenate([x, y]), np.concatenate([weights[:, :1], -other[:, 1:]])
    direct = np.sqrt((both.T @ kernel.gram(points, points) @ both).item())
    assert found[0, 1] == pytest.approx(direct, rel=5e-3)


@makers
@kernels
def test_draws_follow_the_density(make, kernel, rng):
    x, weights = two_classes(rng)
    components = make(x, weights, kernel, rng)
    fine = np.linspace(-15, 15, 6001)
    cumulative = integrate.cumulative_trapezoid(components.density(fine)[:, 1], fine, initial=0)

    draws = components.sample(1, 2000, rng)

    assert draws.shape == (2000, 1)
    assert stats.kstest(draws[:, 0], lambda v: np.interp(v, fine, cumulative)).pvalue > 1e-6


def test_discrete_components_are_tables(rng):
    x = np.array([[0.0], [1.0], [4.0]])
    table = np.array([[0.5, 0.1], [0.5, 0.2], [0.0, 0.7]])
    phi = OneHotFeatures().fit(x)
    components = Embedding(domain_for(phi, x, rng), phi, table)

    np.testing.assert_array_equal(components.density(x), table)
    np.testing.assert_array_equal(components.density([2.0]), 0)
    np.testing.assert_allclose(components.expectation(lambda rows: rows[:, 0]), [0.5, 3.0], rtol=1e-12)
    assert set(np.unique(components.sample(0, 100, rng))) == {0.0, 1.0}


def test_components_on_a_circle_have_densities_across_its_cut(rng):
    x = rng.vonmises(np.pi, 8, size=(100, 1))
    components = embed(x, np.full((100, 1), 0.01), VonMises(0.3), rng)

    assert components.mass[0] == pytest.approx(1, abs=1e-6)
    np.testing.assert_allclose(components.density([-np.pi]), components.density([np.pi]), rtol=1e-6)


def test_two_columns_have_densities_too(rng):
    x = rng.normal(size=(50, 2))
    components = embed(x, np.full((50, 1), 0.02), Gaussian(0.5), rng)

    assert components.mass[0] == pytest.approx(1, abs=1e-6)
    np.testing.assert_allclose(components.density(x), Gaussian(0.5).gram(x, x).mean(axis=1)[:, None], rtol=1e-6)


@pytest.mark.parametrize(
    "ask",
    [
        lambda e: e.density([0.0]),
        lambda e: e.log_density([0.0]),
        lambda e: e.mass,
        lambda e: e.clipped,
        lambda e: e.sample(0, 3, np.random.default_rng(0)),
        lambda e: e.expectation(np.ravel),
    ],
    ids=["density", "log_density", "mass", "clipped", "sample", "expectation"],
)
def test_a_kernel_that_does_not_smooth_has_no_density_but_values(ask, rng):
    x, weights = two_classes(rng)
    components = embed(x, weights, Linear(), rng)

    with pytest.raises(TypeError, match="This kernel does not smooth, so its embeddings have no density; `at` and"):
        ask(components)
    np.testing.assert_allclose(components.at([1.0])[0], x[:, 0] @ weights, rtol=1e-10)
    np.testing.assert_allclose(components.expectation(([[2.0]], [3.0])), 6 * x[:, 0] @ weights, rtol=1e-10)


def test_any_transformer_makes_an_embedding(rng):
    x, weights = two_classes(rng)
    phi = RBFSampler(n_components=50, random_state=0).fit(x)

    components = Embedding(domain_for(phi, x, rng), phi, phi.transform(x).T @ weights)

    np.testing.assert_allclose(components.at(x), phi.transform(x) @ components.vectors, rtol=1e-12)
    assert np.all(components.density(x) >= 0)


@pytest.mark.parametrize(
    ("features", "kind"),
    [
        (LandmarkFeatures(Gaussian(0.5)), Real),
        (LandmarkFeatures(Gaussian(0.5) + Laplace(1.0)), Real),
        (BinnedFeatures(Gaussian(0.5)), Real),
        (LandmarkFeatures(VonMises(0.5)), Circle),
        (OneHotFeatures(), Discrete),
        (RBFSampler(), Real),
    ],
    ids=repr,
)
def test_the_domain_is_that_of_the_kernel(features, kind, rng):
    x, _ = two_classes(rng)

    assert type(domain_for(features.fit(x), x, rng).space) is kind


def test_a_kernel_that_does_not_smooth_has_no_domain(rng):
    x, _ = two_classes(rng)

    assert domain_for(LandmarkFeatures(Linear()).fit(x), x, rng) is None


def test_the_domain_resolves_the_narrowest_part_of_a_sum(rng):
    x = rng.normal(size=(100, 1))

    sum_of, narrow = (LandmarkFeatures(k).fit(x) for k in (Gaussian(0.01) + Gaussian(1.0), Gaussian(0.01)))

    np.testing.assert_array_equal(domain_for(sum_of, x, rng).nodes, domain_for(narrow, x, rng).nodes)


@makers
def test_a_vector_and_a_list_are_one_column(make, rng):
    components = make(*two_classes(rng), Gaussian(0.5), rng)

    np.testing.assert_array_equal(components.at([0.0, 1.0]), components.at(np.array([[0.0], [1.0]])))
    assert components.density(np.zeros(3)).shape == (3, 2)


@makers
def test_the_median_of_a_symmetric_density_is_its_centre(make, rng):
    """To a hundredth of the distance between nodes: a node stands in the middle of its mass."""
    half = rng.normal(size=(30, 1))
    x = 3.0 + np.concatenate([half, -half])
    components = make(x, np.full((60, 1), 1 / 60), Gaussian(0.5), rng)

    values, shares = components.marginal(0)

    median = np.interp(0.5, shares[:, 0], values)
    assert abs(median - 3.0) < 0.01 * np.diff(values).max()


def test_densities_beyond_the_range_of_numbers_are_infinite_or_zero_and_their_logs_right(rng):
    x = 1e-6 * rng.normal(size=(50, 64))
    phi = LandmarkFeatures(Gaussian(1e-6), 20, random_state=0).fit(x)
    far, near = np.full((1, 64), 1.0), phi.landmarks_[:1]
    view = components_in(phi, phi.transform(near).T, domain_for(phi, x, rng))
    assert view.density(near)[0, 0] == np.inf
    assert view.density(far)[0, 0] == 0
    assert view.at(far)[0, 0] == 0
    np.testing.assert_allclose(view.log_density(near)[0, 0], 64 * (np.log(1e6) - np.log(2 * np.pi) / 2), rtol=0.1)


@pytest.mark.cheap
def test_log_densities_from_a_table_are_those_of_the_formula(rng):
    x = rng.normal(size=(500, 1))
    kernel = Gaussian(0.3)
    features = GridFeatures(np.linspace(-4, 4, 64), kernel)
    weights = rng.normal(0.3, 1.0, size=(64, 3)) / 64  # negative in places, as moments may say
    found = components_in(features, weights, domain_for(features, x, rng))
    asked = np.concatenate([x, [[11.9], [-1e3], [1e140]]])  # inside the grid, beside it, far away

    np.testing.assert_allclose(found.log_density(asked), Components.log_density(found, asked), rtol=1e-12)
    assert np.isnan(found.log_density(np.array([[np.nan]]))).all()
