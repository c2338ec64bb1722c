"""Values that many rows have exactly: which they are, how moments see them, and distributions that have them."""

import itertools

import numpy as np
import pytest
from scipy import stats

from latentviews import Gaussian, HalfLine
from latentviews.core.embeddings import components_in, domain_for
from latentviews.core.features.bins import BinnedFeatures, GridFeatures
from latentviews.core.features.landmarks import LandmarkFeatures
from latentviews.core.features.point_masses import PointMassFeatures, find_point_masses, which_mass, without_masses
from latentviews.core.point_masses import WithPointMasses, around_masses, laws_in, with_inside
from latentviews.core.views import fitting_maps

pytestmark = pytest.mark.cheap


def zero_inflated(rng, n_rows, share, values=(0.0,)):
    x = rng.gamma(3.0, size=n_rows)
    at = rng.random(n_rows) < share
    x[at] = rng.choice(values, size=at.sum())
    return x


# ------------------------------------------------------------------------------------------------------- the rule


@pytest.mark.parametrize("n_rows", [80, 300, 20_000])
@pytest.mark.parametrize("share", [0.2, 0.5, 0.7])
def test_zeros_of_a_continuous_column_are_found(n_rows, share, rng):
    assert find_point_masses(zero_inflated(rng, n_rows, share)).tolist() == [0.0]


def test_both_ends_of_a_clipped_column_are_found(rng):
    x = np.clip(rng.normal(size=2000), -1.0, 1.2)

    assert find_point_masses(x).tolist() == [-1.0, 1.2]


def test_zeros_of_rounded_values_are_found_where_they_dominate(rng):
    x = np.where(rng.random(3000) < 0.5, 0.0, np.round(rng.gamma(4.0, 10.0, size=3000)))  # ties of up to a hundred

    assert find_point_masses(x).tolist() == [0.0]


def test_two_point_masses_side_by_side_do_not_hide_each_other(rng):
    assert find_point_masses(zero_inflated(rng, 1000, 0.6, (-1.0, 0.0))).tolist() == [-1.0, 0.0]


NONE = {
    "continuous": lambda rng, n: rng.normal(size=n),
    "rounded finely": lambda rng, n: np.round(rng.normal(size=n), 2),
    "rounded to a twentieth of the spread": lambda rng, n: np.round(20 * rng.normal(size=n)),
    "rounded to a fifth of the spread": lambda rng, n: np.round(5 * rng.normal(size=n)),
    "rounded, skewed, from zero on": lambda rng, n: np.floor(30 * rng.exponential(size=n)),
    "counts": lambda rng, n: rng.poisson(2.0, size=n).astype(float),
    "counts, many zeros": lambda rng, n: rng.negative_binomial(0.5, 0.05, size=n).astype(float),
    "few values": lambda rng, n: rng.choice([0.0, 1.0, 2.0, 3.0], p=[0.9, 0.08, 0.01, 0.01], size=n),
    "resampled rows": lambda rng, n: rng.normal(size=n)[rng.integers(n, size=n)],
    "heaped": lambda rng, n: np.where(rng.random(n) < 0.7, rng.choice(np.arange(10) * 10.0, n), rng.uniform(0, 90, n)),
    "fewer than a twentieth": lambda rng, n: zero_inflated(rng, n, 0.02),
}


@pytest.mark.parametrize("n_rows", [20, 50, 200, 1000, 20_000])
@pytest.mark.parametrize("kind", NONE)
def test_rounded_values_counts_and_copies_have_no_point_masses(kind, n_rows, rng):
    for _ in range(10 if n_rows < 1000 else 3):
        assert find_point_masses(NONE[kind](rng, n_rows)).size == 0


# ------------------------------------------------------------------------------------------------------ feature map


@pytest.mark.parametrize("inside", [BinnedFeatures(Gaussian(0.7)), LandmarkFeatures(Gaussian(0.7), None)], ids=repr)
def test_features_keep_point_masses_apart(inside, rng):
    x = np.concatenate([rng.normal(size=30), np.zeros(5), np.full(4, 2.0)])[:, None]
    phi = PointMassFeatures(inside, (0.0, 2.0)).fit(x)

    vectors = np.asarray(phi.transform(x))
    gram = vectors @ vectors.T

    at = which_mass(x[:, 0], (0.0, 2.0))
    expected = np.where((at[:, None] < 0) & (at < 0), Gaussian(0.7).gram(x, x), 0.0)
    expected[(at[:, None] >= 0) & (at[:, None] == at)] = Gaussian(0.7).gram(np.zeros((1, 1)), np.zeros((1, 1)))[0, 0]
    np.testing.assert_allclose(gram, expected, atol=2e-3)  # bins interpolate the kernel


def test_the_bandwidth_is_that_of_the_other_values(rng):
    x = zero_inflated(rng, 500, 0.5)[:, None]

    phi = PointMassFeatures(BinnedFeatures(Gaussian("isj")), (0.0,)).fit(x)

    assert phi.kernel_.bandwidth == Gaussian("isj").adapt(x[x[:, 0] != 0]).bandwidth


def test_a_map_needs_other_values():
    with pytest.raises(ValueError, match=r"All 4 rows are at the point masses \[0.0\]; name fewer of them"):
        PointMassFeatures().fit(np.zeros((4, 1)))


def test_point_masses_are_those_of_a_block(rng):
    table = np.stack([zero_inflated(rng, 400, 0.5), rng.normal(size=400), rng.normal(size=400)], axis=1)
    maps = [BinnedFeatures(Gaussian())] * 3

    found = fitting_maps(maps, table, ([0], [1], [2]), [0, 0, 1], "auto", scales=False)

    assert [getattr(phi, "values", None) for phi in found] == [(0.0,), (0.0,), None]
    assert fitting_maps(maps, table, ([0], [1], [2]), [0, 0, 1], None, scales=False) == maps


# ---------------------------------------------------------------------------------------------------- distributions


@pytest.fixture(params=[Gaussian(0.3), Gaussian(0.3, space=HalfLine())], ids=repr)
def laws(request, rng):
    """Two components with a point mass at zero and one at two."""
    grid = np.linspace(0.0, 8.0, 200)
    phi = PointMassFeatures(None, (0.0, 2.0)).around(GridFeatures(grid, request.param), 1.0)
    off = np.stack([stats.gamma.pdf(grid, shape) for shape in (3.0, 9.0)], axis=1)
    masses = np.array([[0.5, 0.1], [0.2, 0.0]])
    vectors = np.concatenate([off / off.sum(axis=0) * (1 - masses.sum(axis=0)), masses])
    return laws_in(phi, vectors, domain_for(phi, grid[:, None], rng)), masses


def test_vectors_become_point_masses_and_densities_of_the_others(laws):
    found, masses = laws

    assert isinstance(found, WithPointMasses)
    np.testing.assert_allclose(found.masses, masses, atol=1e-12)
    np.testing.assert_allclose(found.inside.weights.sum(axis=0), 1.0)
    np.testing.assert_allclose(found.mass, 1.0, atol=1e-3)


def test_densities_are_probabilities_at_point_masses_and_add_up_to_one(laws):
    found, masses = laws
    x = np.linspace(-3, 12, 30_001) + 1e-7

    np.testing.assert_allclose(found.density([0.0, 2.0]), masses, atol=1e-12)
    np.testing.assert_allclose(found.density(x).sum(axis=0) * 5e-4 + masses.sum(axis=0), 1.0, atol=1e-3)
    np.testing.assert_allclose(found.elsewhere(x), found.density(x))


def test_log_densities_are_those_of_densities(laws):
    found, _ = laws
    x = np.array([0.0, 0.5, 2.0, 3.0, 5.0])

    np.testing.assert_allclose(np.exp(found.log_density(x)), found.density(x), atol=3e-6)
    assert np.isfinite(found.log_density([0.0, 2.0, 1e4])).all()


def test_means_are_those_of_both_parts(laws):
    found, masses = laws

    np.testing.assert_allclose(found.expectation(lambda x: x[:, 0] == 2.0), masses[1], atol=1e-12)
    expected = found.shares * found.inside.expectation(lambda x: x[:, 0]) + 2.0 * masses[1]
    np.testing.assert_allclose(found.expectation(lambda x: x[:, 0]), expected)


def test_draws_have_point_masses_exactly_and_as_often_as_they_should(laws, rng):
    found, masses = laws
    n = 20_000
    for h in range(2):
        x = found.sample(h, n, rng)[:, 0]
        for value, mass in zip((0.0, 2.0), masses[:, h], strict=True):
            limit = stats.norm.isf(1e-7) * np.sqrt(mass * (1 - mass) / n)
            assert abs(np.mean(x == value) - mass) <= limit


def test_distribution_functions_jump_at_point_masses(laws):
    found, masses = laws
    values, below = found.marginal(0)

    places = np.flatnonzero(values == 2.0)
    np.testing.assert_allclose(np.ptp(below[places], axis=0), masses[1], atol=1e-12)
    assert (np.diff(values) >= 0).all()
    assert (np.diff(below, axis=0) >= -1e-12).all()
    np.testing.assert_allclose(below[-1], 1.0, atol=5e-3)


def test_components_that_differ_in_point_masses_alone_are_apart(laws):
    found, _ = laws
    other = WithPointMasses(found.domain, found.inside, found.values, found.masses[:, ::-1])

    assert found.mmd()[0, 1] > 0.1
    np.testing.assert_allclose(np.diag(found.mmd()), 0.0, atol=1e-6)
    assert (np.diag(found.mmd(other)) > 0.1).all()
    plain = found.inside.mmd(found)  # of what has no point masses itself
    assert plain.shape == (2, 2)
    np.testing.assert_array_equal(found.take(np.array([1, 0])).masses, found.masses[:, ::-1])
    np.testing.assert_allclose(found.n_parameters, found.inside.n_parameters + 2)


def test_a_class_that_is_all_point_mass_has_no_other_values(rng):
    phi = PointMassFeatures(None, (0.0,)).around(GridFeatures(np.linspace(0, 1, 50), Gaussian(0.1)), 1.0)
    vectors = np.zeros((51, 2))
    vectors[-1] = 1.0, 0.4
    vectors[:-1, 1] = 0.6 / 50

    found = laws_in(phi, vectors, domain_for(phi, rng.random((20, 1)), rng), np.array([40.0, 40.0]))

    assert (found.sample(0, 50, rng) == 0).all()
    assert np.isfinite(found.log_density([0.0, 0.5])).all()
    np.testing.assert_allclose(found.mass, 1.0, atol=1e-3)


def test_moments_that_leave_nothing_to_other_values_make_finite_densities(rng):
    phi = PointMassFeatures(None, (0.0,)).around(GridFeatures(np.linspace(0, 1, 50), Gaussian(0.1)), 1.0)
    vectors = np.append(rng.normal(size=49) * 0.1, [0.0, 1.3])[:, None]  # what sampling may make of a class of zeros

    with np.errstate(all="raise"):
        found = laws_in(phi, vectors, domain_for(phi, rng.random((20, 1)), rng))

        assert found.masses.item() == 1.0
        assert np.isfinite(found.log_density(np.linspace(0, 1, 20))).all()


def test_shares_of_rows_are_point_masses(rng):
    x = np.array([0.0, 0.0, 1.0, np.nan, 3.0])[:, None]
    shares = np.array([[0.5, 0.5], [1.0, 0.0], [0.5, 0.5], [0.0, 1.0], [0.0, 1.0]])
    phi = PointMassFeatures(None, (0.0,))
    grid = GridFeatures(np.linspace(0, 4, 9), Gaussian(1.0))
    inside = components_in(grid, np.full((9, 2), 1 / 9), domain_for(grid, x[:3], rng))

    found = around_masses(phi, inside, x, shares)

    np.testing.assert_allclose(found.masses, [[1.5 / 2, 0.5 / 2]])  # the missing row counts for nothing
    assert around_masses(BinnedFeatures(), inside, x, shares) is inside
    seen = []
    with_inside(found, lambda view, off: seen.append(off) or view, x[:, 0], type(inside))
    np.testing.assert_array_equal(seen[0], [np.nan, np.nan, 1.0, np.nan, 3.0])
    np.testing.assert_array_equal(without_masses(phi, x)[:, 0], seen[0])


# --------------------------------------------------------------------------------------------- moments, population


def test_exact_moments_give_exact_point_masses():
    from latentviews import MultiViewMixture  # above this room

    values, weights = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0]), np.array([0.6, 0.4])
    tables = np.random.default_rng(0).dirichlet(np.ones(6), size=(3, 2))  # views, classes, values
    rows = np.array(list(itertools.product(range(6), repeat=3)))
    joint = sum(weights[h] * np.prod([tables[t, h, rows[:, t]] for t in range(3)], axis=0) for h in range(2))

    model = MultiViewMixture(2, polish=None, point_masses=[0.0], bandwidth=1.0, density_bandwidth=0.3, random_state=0)
    model.fit(values[rows], sample_weight=joint)

    np.testing.assert_allclose(model.weights_, weights, atol=1e-6)
    for t in range(3):
        np.testing.assert_allclose(model.components_[t].masses[0], tables[t, :, 0], atol=1e-6)
