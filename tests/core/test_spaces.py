from dataclasses import dataclass

import numpy as np
import pytest
from scipy import integrate, stats
from sklearn.base import clone

from catalogue import SPACES
from latentviews import FourierFeatures, LandmarkFeatures
from latentviews.core.embeddings import BinnedEmbedding
from latentviews.core.features.bins import BinnedFeatures
from latentviews.core.kernels.bandwidths import isj
from latentviews.core.kernels.borders import HalfLine, Interval
from latentviews.core.kernels.defaults import kernel_on
from latentviews.core.kernels.quadrature import DRAWS, GRID, NEAR
from latentviews.core.kernels.real import Gaussian, Laplace, Matern
from latentviews.core.kernels.spaces import Circle, Discrete, Real, entry_for

pytestmark = pytest.mark.cheap

NORMAL, ANGLE = stats.norm(1, 2), stats.vonmises(3, 1)
CASES = {  # space, the law of every column, and rows between which nearly all of it lies
    "line": (Real(), NORMAL, [[-13.0], [15.0]]),
    "plane": (Real(), NORMAL, [[-13.0, -13.0], [15.0, 15.0]]),
    "circle": (Circle(), ANGLE, [[0.0]]),
    "torus": (Circle(), ANGLE, [[0.0, 0.0]]),
}


def product(law, x):
    return np.prod(law.pdf(x), axis=1)


@pytest.mark.parametrize(("space", "law", "x"), CASES.values(), ids=CASES.keys())
def test_a_grid_integrates_a_known_density(space, law, x, rng):
    x = np.array(x)

    domain = space.quadrature(x, np.full(x.shape[1], 0.5), rng)

    mass = domain.weights * product(law, domain.nodes)
    # equal weights are spectrally accurate on smooth functions that vanish at the ends or have a period
    assert mass.sum() == pytest.approx(1, abs=1e-10)
    if space == Real():
        np.testing.assert_allclose(mass @ domain.nodes, law.mean(), rtol=1e-10)


@pytest.mark.parametrize("dim", [4])
def test_importance_nodes_integrate_a_kernel_density_in_many_columns(dim, rng):
    x = rng.normal(size=(400, dim))

    domain = Real().quadrature(x, np.full(dim, 0.3), rng)

    assert len(domain.nodes) == NEAR
    values = domain.weights * Gaussian(0.3).gram(domain.nodes, x).mean(axis=1)
    # quasi-random draws do no worse than random ones; one false alarm in a million runs
    assert values.sum() == pytest.approx(1, abs=stats.norm.isf(1e-6 / 2) * values.std() * np.sqrt(NEAR))
    assert values.std() * np.sqrt(NEAR) < 0.02  # random draws of so many: quasi-random ones err less


def test_a_torus_of_many_columns_is_integrated_too(rng):
    law = stats.vonmises(0.5)

    domain = Circle().quadrature(rng.uniform(-np.pi, np.pi, size=(50, 4)), np.full(4, 0.5), rng)

    values = domain.weights * product(law, domain.nodes)
    assert values.sum() == pytest.approx(1, abs=stats.norm.isf(1e-6 / 2) * values.std() * np.sqrt(DRAWS))


def test_discrete_nodes_are_the_values_seen_and_count_once(rng):
    x = np.array([[3.0, 1.0], [0.0, 1.0], [3.0, 1.0]])

    domain = Discrete().quadrature(x, np.zeros(2), rng)

    np.testing.assert_array_equal(domain.nodes, [[0, 1], [3, 1]])
    np.testing.assert_array_equal(domain.weights, [1, 1])


def test_a_wide_range_at_a_narrow_bandwidth_still_fits_a_grid_or_is_sampled(rng):
    x = np.append(rng.normal(size=500), 1e5)[:, None]

    domain = Real().quadrature(x, np.array([0.1]), rng)

    assert len(domain.nodes) <= GRID
    values = Gaussian(0.1).gram(domain.nodes, x[:500]).mean(axis=1)
    assert domain.weights @ values == pytest.approx(1, abs=0.02)


def test_the_background_on_the_line_is_a_density(rng):
    domain = Real().quadrature(rng.normal(3, 2, size=(100, 1)), np.array([0.5]), rng)

    mass, _ = integrate.quad(lambda x: np.exp(domain.log_background(np.array([[x]]))[0]), -np.inf, np.inf)

    assert mass == pytest.approx(1, abs=1e-6)


def test_the_background_on_the_torus_is_uniform(rng):
    domain = Circle().quadrature(np.zeros((1, 2)), np.full(2, 0.5), rng)

    assert domain.weights @ np.exp(domain.log_background(domain.nodes)) == pytest.approx(1, rel=1e-12)


def test_the_background_of_discrete_values_leaves_room_for_one_more(rng):
    domain = Discrete().quadrature(np.arange(4.0)[:, None], np.zeros(1), rng)

    np.testing.assert_allclose(np.exp(domain.log_background(np.array([[0.0], [77.0]]))), 1 / 5)


def test_draws_on_the_line_follow_the_density(rng):
    law = stats.norm(1, 2)
    domain = Real().quadrature(law.rvs(size=(500, 1), random_state=rng), np.array([0.5]), rng)

    draws = domain.draw(law.pdf(domain.nodes[:, 0]), 2000, rng)

    assert draws.shape == (2000, 1)
    assert stats.kstest(draws[:, 0], law.cdf).pvalue > 1e-6


def test_draws_on_the_circle_follow_the_density(rng):
    law = stats.vonmises(3)
    domain = Circle().quadrature(np.zeros((1, 1)), np.array([0.2]), rng)

    draws = domain.draw(law.pdf(domain.nodes[:, 0]), 2000, rng)

    assert stats.kstest(draws[:, 0], law.cdf).pvalue > 1e-6


def test_draws_in_many_columns_follow_the_margins(rng):
    x = rng.normal(size=(400, 4))
    domain = Real().quadrature(x, np.full(4, 0.3), rng)

    draws = domain.draw(Gaussian(0.3).gram(domain.nodes, x).mean(axis=1), 2000, rng)

    # the law of a column of x plus kernel noise, and the half bandwidth of a cell: a mixture of normals, nearly
    scale = np.sqrt(0.3**2 + (0.3 / 2) ** 2 / 12)
    for t in range(4):
        assert (
            stats.kstest(draws[:, t], lambda v, t=t: stats.norm.cdf(v[:, None], x[:, t], scale).mean(1)).pvalue > 1e-6
        )


def test_draws_of_discrete_values_are_values(rng):
    domain = Discrete().quadrature(np.array([[2.0], [5.0], [9.0]]), np.zeros(1), rng)

    draws = domain.draw(np.array([0.2, 0.0, 0.8]), 1000, rng)

    assert set(np.unique(draws)) == {2.0, 9.0}
    assert stats.binomtest(int(np.sum(draws == 9)), 1000, 0.8).pvalue > 1e-6


def test_draws_are_a_function_of_the_generator():
    domain = Circle().quadrature(np.zeros((1, 1)), np.array([0.2]), np.random.default_rng(0))
    density = np.ones(len(domain.nodes))

    first, again = (domain.draw(density, 10, np.random.default_rng(3)) for _ in range(2))

    np.testing.assert_array_equal(first, again)


# ---------------------------------------------------------------------------------------------- spaces with borders

BORDERED = [space for space in SPACES if space.bordered]
MIRRORED = [Gaussian, Laplace, Matern]
bordered = pytest.mark.parametrize("space", BORDERED, ids=repr)
mirrored = pytest.mark.parametrize("kind", MIRRORED, ids=lambda kind: kind.__name__)
EXPONENTIAL = stats.expon()


def inside(space, size, rng):
    """Rows in a space, some of them on its border and near it."""
    high = min(space.high, 3.0)
    return np.concatenate([[space.low, high], rng.uniform(space.low, high, size=size - 2)])[:, None]


@bordered
@mirrored
@pytest.mark.parametrize("bandwidth", [0.1, 0.9])
def test_a_mirrored_kernel_has_mass_one_in_its_space_and_none_outside(space, kind, bandwidth, rng):
    kernel, y = kind(bandwidth, space=space), inside(space, 6, rng)
    ends = space.low, min(space.high, 60.0)

    for point in y:
        mass, _ = integrate.quad(
            lambda x, point=point: kernel.gram(np.array([[x]]), point[None])[0, 0], *ends, points=[point[0]], limit=500
        )
        assert mass == pytest.approx(1, abs=1e-7)
    beyond = np.array([[space.low - 1e-9], [space.low - 1.0], [space.high + 1e-9]])
    np.testing.assert_array_equal(kernel.gram(beyond, y), 0)


@bordered
@mirrored
def test_a_mirrored_kernel_is_symmetric_positive_and_knows_its_diagonal(space, kind, rng):
    kernel, x = kind(0.4, space=space), inside(space, 40, rng)

    gram = kernel.gram(x, x)

    np.testing.assert_allclose(gram, gram.T, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kernel.diagonal(x), np.diag(gram), rtol=1e-12)
    assert np.linalg.eigvalsh(gram).min() > -1e-10


@bordered
def test_a_mirrored_kernel_of_several_columns_is_the_product_of_theirs(space, rng):
    x, y = (np.concatenate([inside(space, 9, rng), inside(space, 9, rng)], axis=1) for _ in range(2))
    parts = [Gaussian(s, space=space).gram(x[:, [j]], y[:, [j]]) for j, s in enumerate([0.3, 0.8])]

    np.testing.assert_allclose(Gaussian(np.array([0.3, 0.8]), space=space).gram(x, y), np.prod(parts, axis=0))


def test_a_kernel_on_the_half_line_is_the_sum_of_two_on_the_line(rng):
    x, y = inside(HalfLine(), 20, rng), inside(HalfLine(), 20, rng)
    line = Gaussian(0.7)

    np.testing.assert_allclose(Gaussian(0.7, space=HalfLine()).gram(x, y), line.gram(x, y) + line.gram(x, -y))


@pytest.mark.parametrize("bandwidth", [0.2, 1.0, 3.49, 3.5, 3.51, 40.0])  # cosines from 3.5 on
def test_a_gaussian_on_an_interval_is_the_sum_over_all_images(bandwidth, rng):
    x, y, space = inside(Interval(-2, 5), 20, rng), inside(Interval(-2, 5), 20, rng), Interval(-2, 5)
    turns = range(-int(3 * bandwidth) - 2, int(3 * bandwidth) + 3)
    images = np.concatenate([[y + 14 * n, -4 - y + 14 * n] for n in turns])
    literal = sum(np.exp(-0.5 * ((x - image.T) / bandwidth) ** 2) for image in images)

    kernel = Gaussian(bandwidth, space=space)

    np.testing.assert_allclose(kernel.correlation(x, y), literal, rtol=1e-11)  # squares of 600 bandwidths lose digits
    np.testing.assert_allclose(kernel.unit_diagonal(x), np.diag(kernel.correlation(x, x)), rtol=1e-12)
    np.testing.assert_array_equal(kernel.correlation(np.array([[-2.1], [5.1], [np.inf]]), y), 0)


@pytest.mark.parametrize("bandwidth", [0.05, 0.49, 0.5, 10.0, 1e6])
def test_a_gaussian_on_an_interval_costs_few_profiles_however_wide_it_is(bandwidth, monkeypatch):
    calls, profile = [], Gaussian._profile
    monkeypatch.setattr(Gaussian, "_profile", lambda *args: calls.append(1) or profile(*args))

    Gaussian(bandwidth, space=Interval(0, 1)).gram(np.zeros((2, 1)), np.ones((3, 1)))

    assert len(calls) <= 13


def test_a_wide_kernel_on_an_interval_is_uniform(rng):
    x = inside(Interval(-2, 5), 20, rng)

    np.testing.assert_allclose(Gaussian(40.0, space=Interval(-2, 5)).gram(x, x), 1 / 7, rtol=1e-9)


@bordered
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_nodes_in_a_space_with_borders_integrate_mirrored_densities(space, dim, rng):
    x = np.concatenate([inside(space, 300, rng) for _ in range(dim)], axis=1)

    quadrature = space.quadrature(x, np.full(dim, 0.15), rng)

    assert space.contains(quadrature.nodes).all()
    values = quadrature.weights * Gaussian(0.15, space=space).gram(quadrature.nodes, x[:50]).mean(axis=1)
    # midpoints are exact on functions that go on as mirrored; quasi-random nodes do no worse than random ones
    limit = 1e-8 if dim < 3 else stats.norm.isf(1e-6 / 2) * values.std() * np.sqrt(NEAR)
    assert values.sum() == pytest.approx(1, abs=limit)


@bordered
def test_the_background_of_a_space_with_borders_is_a_density_inside(space, rng):
    quadrature = space.quadrature(inside(space, 100, rng), np.array([0.5]), rng)

    mass, _ = integrate.quad(
        lambda x: np.exp(quadrature.log_background(np.array([[x]]))[0]), space.low, space.high, limit=200
    )

    assert mass == pytest.approx(1, abs=1e-6)
    assert quadrature.log_background(np.array([[space.low - 0.1]])) == -np.inf


@bordered
def test_reflection_keeps_what_is_inside_and_brings_back_what_is_not(space, rng):
    x = inside(space, 50, rng)

    np.testing.assert_allclose(space.reflected(x), x, atol=1e-12)
    far = space.low - rng.uniform(0, 30, size=50)
    assert space.contains(space.reflected(far)).all()
    np.testing.assert_allclose(space.reflected(space.low - 0.25), space.low + 0.25)


@bordered
def test_draws_from_mirrored_kernels_follow_them(space, rng):
    point, kernel = np.full((4000, 1), space.low + 0.1), Gaussian(0.3, space=space)

    draws = kernel.draw(point, rng)

    ticks = np.linspace(space.low, min(space.high, space.low + 5), 4001)
    below = integrate.cumulative_trapezoid(kernel.gram(ticks[:, None], point[:1])[:, 0], ticks, initial=0)
    assert stats.kstest(draws[:, 0], lambda x: np.interp(x, ticks, below)).pvalue > 1e-6


def test_binned_densities_of_a_population_are_right_at_the_border(rng):
    grid, width = np.linspace(0, 30, 3001), 0.2
    shares = np.diff(EXPONENTIAL.cdf(np.concatenate([[0], grid[:-1] + 0.005, [np.inf]])))[:, None]

    def at_zero(space):
        kernel = Gaussian(width, space=space)
        domain = space.quadrature(grid[:, None], np.array([width]), rng)
        return BinnedEmbedding(domain, grid, shares, kernel, np.array([width])).density([0.0])[0, 0]

    # ∫ 2 k(y) exp(-y) dy; unmirrored, half of it, and so half of the density is lost however narrow the kernel
    exact = 2 * np.exp(width**2 / 2) * stats.norm.sf(width)
    assert at_zero(HalfLine()) == pytest.approx(exact, rel=1e-3)
    assert abs(at_zero(HalfLine()) - 1) < 0.16 < 0.55 < abs(at_zero(Real()) - 1)


def test_the_bandwidth_on_the_half_line_is_that_of_the_mirrored_sample(rng):
    x = EXPONENTIAL.rvs(size=(3000, 1), random_state=rng)

    found = HalfLine().bandwidth("isj", x)

    assert found == pytest.approx(float(isj(np.concatenate([x, -x]))[0]), rel=0.02)


@bordered
def test_axes_stop_at_the_border(space):
    low, high = space.axis(space.low, min(space.high, 4.0))

    assert low == space.low
    assert high <= space.high


def test_values_outside_a_space_are_named():
    with pytest.raises(ValueError, match=r"Column 'time' holds -0.5, which is outside HalfLine\(\)"):
        HalfLine().check(np.array([1.0, np.nan, -0.5]), "'time'")
    assert Interval(0, 1).check(np.array([0.0, np.nan, 1.0]), 0) is None


@pytest.mark.parametrize(
    "ends", [(1, 0), (0, 0), (0, np.inf), (np.nan, 1), ("a", "b"), (None, 1), (0, 10**400), (False, True)]
)
def test_an_interval_needs_two_ends(ends):
    with pytest.raises(ValueError, match="Interval needs two finite ends"):
        Interval(*ends)


def test_a_kernel_on_numbers_takes_no_other_space():
    for space in (Circle(), HalfLine, "half-line"):
        with pytest.raises(ValueError, match=r"Gaussian is a kernel on real numbers"):
            Gaussian(1.0, space=space).adapt(np.ones((3, 1)))


def test_kernels_clone_print_and_compare_with_their_space():
    kernel = Gaussian(space=Interval(0, 2))

    assert clone(kernel).space == kernel.space == Interval(0, 2) != Interval(0, 1)
    assert repr(kernel) == "Gaussian(space=Interval(low=0, high=2))"
    assert repr(Gaussian()) == "Gaussian()"


def test_mirrored_kernels_are_not_shift_invariant():
    with pytest.raises(TypeError, match="mirrored at the border of its space"):
        FourierFeatures(Gaussian(1.0, space=HalfLine())).fit(np.ones((3, 1)))


def test_a_table_answers_for_a_space_and_for_its_parts():
    table = {Real: "numbers", Interval: "between"}

    assert entry_for(HalfLine(), table) == "numbers"
    assert entry_for(Interval(), table) == "between"
    with pytest.raises(TypeError, match=r"nothing for Circle\(\)"):
        entry_for(Circle(), table)


@dataclass(frozen=True)
class Months(Circle):
    """A space of somebody's own: a class is all that the kernels' table needs."""


def test_a_new_space_is_served_by_the_entry_of_what_it_is_a_part_of():
    assert repr(kernel_on(Months(), "median")) == "VonMises(bandwidth='median')"
    assert repr(kernel_on(HalfLine(), "median")) == "Gaussian(bandwidth='median', space=HalfLine())"


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_every_space_integrates_its_own_kernel_and_background(space, rng):
    x = np.round(space.low if space.bordered else 0.0) + rng.integers(1, 5, size=(200, 1)) / 5
    kernel = kernel_on(space, 0.2)

    domain = space.quadrature(x, np.array([0.2]), rng)

    assert domain.weights @ kernel.gram(domain.nodes, x[:1])[:, 0] == pytest.approx(1, abs=1e-3)
    assert np.all(np.isfinite(space.log_background(domain.nodes, domain)))
    assert len(space.typical(x[:, 0])) == 3
    low, high = space.axis(0.2, 0.8)
    assert low < 0.2 < 0.8 < high


@pytest.mark.parametrize("features", [LandmarkFeatures, BinnedFeatures])
def test_features_of_values_outside_the_space_are_refused(features, rng):
    x = rng.exponential(size=(50, 1))

    with pytest.raises(ValueError, match=r"Column 0 holds -[\d.]+, which is outside HalfLine\(\)"):
        features(Gaussian(1.0, space=HalfLine())).fit(-x)


@pytest.mark.parametrize("space", [Real(), HalfLine(), Interval(0, 2)], ids=repr)
def test_the_density_of_a_missing_value_is_missing(space, rng):
    grid, width = np.linspace(0, 2, 65), 0.2
    kernel = kernel_on(space, width)
    domain = space.quadrature(grid[:, None], np.array([width]), rng)

    density = BinnedEmbedding(domain, grid, np.full((65, 1), 1 / 65), kernel, np.array([width])).density([np.nan, 1.0])

    assert np.isnan(density).ravel().tolist() == [True, False]
