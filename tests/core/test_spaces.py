import numpy as np
import pytest
from scipy import integrate, stats

from latentviews.core.kernels.quadrature import DRAWS, GRID
from latentviews.core.kernels.real import Gaussian
from latentviews.core.kernels.spaces import Circle, Discrete, Real

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

    assert len(domain.nodes) == DRAWS
    values = domain.weights * Gaussian(0.3).gram(domain.nodes, x).mean(axis=1)
    # quasi-random draws do no worse than random ones; one false alarm in a million runs
    assert values.sum() == pytest.approx(1, abs=stats.norm.isf(1e-6 / 2) * values.std() * np.sqrt(DRAWS))
    assert values.std() * np.sqrt(DRAWS) < 0.01


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
