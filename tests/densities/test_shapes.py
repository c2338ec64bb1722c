"""Densities of one column, stacked with shapes by held-out rows."""

import numpy as np
import pytest
from scipy import stats

from latentviews import Gaussian
from latentviews.core.embeddings import components_in, domain_for
from latentviews.core.features.bins import GridFeatures, linear_bins, uniform_grid
from latentviews.core.kernels.bandwidths import finest
from latentviews.core.kernels.spaces import Real
from latentviews.densities.shapes import shapes_of, with_shapes

pytestmark = pytest.mark.cheap
LAWS = [stats.norm(1.0, 2.0), stats.t(2, 1.0, 2.0), stats.laplace(1.0, 2.0), stats.uniform(-1.0, 4.0)]
NAMES = ["normal", "t", "Laplace", "box"]


def of_rows(x, rng):
    """One component from rows that are all its own, kernels alone."""
    width = Gaussian("isj").adapt(x[:, None]).bandwidth
    width = max(float(width), finest(x))
    phi = GridFeatures(uniform_grid(x, width, space=Real()), Gaussian(width), True, finest(x))
    weights = linear_bins(x, phi.grid_).mean(axis=0)[:, None]
    return components_in(phi, weights, domain_for(phi, x[:, None], rng), np.array([len(x)]))


def stacked(x, rng):
    rows = np.arange(len(x))
    kernels = of_rows(x, rng)
    return kernels, with_shapes(kernels, x, np.ones((len(x), 1)), (rows[::2], rows[1::2]))


def squared_error(view, law):
    points = np.linspace(*law.ppf([1e-3, 1 - 1e-3]), 500)
    return float(((view.density(points)[:, 0] - law.pdf(points)) ** 2).mean())


@pytest.mark.parametrize("number", range(len(LAWS)), ids=NAMES)
def test_a_shape_fitted_to_its_own_law_is_that_law(number):
    law, grid = LAWS[number], np.linspace(-80.0, 80.0, 16_001)
    weights = law.pdf(grid)[:, None] / law.pdf(grid).sum()

    found = shapes_of(grid, weights, np.array([1e6]), grid)[0, :, number]

    inside = np.abs(grid - law.median()) < 1.9  # a box ends at two
    np.testing.assert_allclose(found[inside], law.pdf(grid[inside]), rtol=0.02)


@pytest.mark.parametrize("law", LAWS, ids=NAMES)
def test_a_density_that_has_a_shape_is_estimated_better_than_by_kernels(law, rng):
    draws = [stacked(law.rvs(2000, random_state=rng), rng) for _ in range(5)]

    before, after = (sum(squared_error(view, law) for view in views) for views in zip(*draws, strict=True))
    assert after < 0.7 * before


def test_a_density_of_no_shape_keeps_its_kernels(rng):
    x = np.concatenate([rng.normal(-3, 0.5, 700), rng.normal(0, 0.3, 600), rng.normal(4, 0.8, 700)])
    kernels, found = stacked(x, rng)

    points = np.linspace(-6, 8, 300)
    np.testing.assert_allclose(
        found.density(points), kernels.density(points), atol=0.01 * kernels.density(points).max()
    )


def test_functionals_do_not_depend_on_shapes(rng):
    kernels, found = stacked(rng.standard_normal(1000), rng)

    assert found.shapes is not None
    for f in (lambda x: x[:, 0], lambda x: x[:, 0] ** 2):
        np.testing.assert_array_equal(found.expectation(f), kernels.expectation(f))
    np.testing.assert_allclose(found.mass, 1.0, rtol=1e-2)
    assert found.n_parameters[0] < kernels.n_parameters[0]


def test_heavy_tails_have_mass_one(rng):
    _, found = stacked(rng.standard_t(2, 1000), rng)

    x = np.linspace(-500, 500, 200_001)
    assert found.shapes is not None
    np.testing.assert_allclose(found.density(x).sum() * (x[1] - x[0]), 1.0, atol=1e-3)


def test_shapes_follow_their_components(rng):
    x = np.concatenate([rng.normal(0, 1, 1000), rng.uniform(4, 6, 1000)])
    posteriors = np.repeat(np.eye(2), 1000, axis=0)
    phi = GridFeatures(uniform_grid(x, 0.1, space=Real()), Gaussian(0.1), adaptive=True)
    weights = linear_bins(x, phi.grid_).T @ posteriors / 1000
    view = components_in(phi, weights, domain_for(phi, x[:, None], rng), np.array([1000.0, 1000.0]))
    rows = np.arange(2000)

    found = with_shapes(view, x, posteriors, (rows[::2], rows[1::2]))

    points = np.linspace(-3, 7, 50)
    assert found.shapes is not None
    swapped = found.take(np.array([1, 0])).density(points)
    np.testing.assert_allclose(swapped, found.density(points)[:, ::-1], rtol=1e-12, atol=1e-12)


def test_the_unit_of_row_weights_does_not_matter(rng):
    x, rows = rng.uniform(size=500), np.arange(500)
    kernels = of_rows(x, rng)

    one, other = (with_shapes(kernels, x, np.full((500, 1), unit), (rows[::2], rows[1::2])) for unit in (1.0, 1e-4))

    assert one.shapes is not None
    np.testing.assert_allclose(other.shapes, one.shapes, rtol=1e-9)


@pytest.mark.parametrize("shares", [[0.1, 0.6, 0.2, 0.1], [0.25, 0.25, 0.25, 0.25], [0.4, 0.35, 0.24, 0.01]])
def test_ratings_have_one_between_them(shares, rng):
    _, found = stacked(rng.choice([1.0, 2.0, 3.0, 4.0], p=shares, size=500), rng)
    values = found.density(np.arange(-3.0, 9.0)[:, None])
    assert values.sum() == pytest.approx(1.0, abs=0.1)  # curves that rise at the values alone would have up to 1.4
