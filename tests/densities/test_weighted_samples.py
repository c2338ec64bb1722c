import numpy as np
import pytest
from scipy import stats

from latentviews.core.kernels.spaces import Real
from latentviews.densities.smoothers import representatives, smoother_specs, smoothers, weighted_samples
from latentviews.densities.weighted_samples import GaussianGroup, log_densities


def two_shapes(n, rng):
    """A tilted Gaussian and a ring, with their labels as posteriors."""
    labels = rng.integers(2, size=n)
    tilted = rng.normal(size=(n, 2)) @ np.array([[1.0, 0.9], [0.0, 0.3]])
    angle, radius = rng.uniform(0, 2 * np.pi, size=n), 2 + 0.1 * rng.normal(size=n)
    ring = 6 + radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return np.where(labels[:, None] == 0, tilted, ring), np.eye(2)[labels]


def fitted(x, posteriors, rng):
    rows = np.arange(len(x))
    return weighted_samples(x, posteriors, (rows[::2], rows[1::2]), Real().quadrature(x, x.std(axis=0) / 10, rng), rng)


@pytest.fixture
def sample(rng):
    x, posteriors = two_shapes(1500, rng)
    return fitted(x, posteriors, rng)


def test_held_out_likelihood_is_near_the_truth_where_it_is_gaussian_and_far_above_a_gaussian_elsewhere(sample, rng):
    x, posteriors = two_shapes(2000, rng)
    tilt = np.array([[1.0, 0.9], [0.0, 0.3]])
    for h in range(2):
        rows = x[posteriors[:, h] == 1]
        gaussian = stats.multivariate_normal(rows.mean(axis=0), np.cov(rows.T)).logpdf(rows).mean()
        found = np.log(sample.density(rows)[:, h]).mean()
        if h == 0:
            assert found > stats.multivariate_normal(cov=tilt.T @ tilt).logpdf(rows).mean() - 0.05
        else:
            assert found > gaussian + 0.7


def test_it_is_a_density_and_draws_follow_it(sample, rng):
    axis = np.linspace(-8, 14, 140)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    mass = sample.density(grid).sum(axis=0) * (axis[1] - axis[0]) ** 2
    np.testing.assert_allclose(mass, 1.0, atol=0.01)
    draws = sample.sample(1, 4000, rng)
    assert abs(draws[:, 0].mean() - sample.expectation(lambda x: x[:, 0])[1]) < 0.2
    radius = np.sqrt(((draws - 6) ** 2).sum(axis=1))
    assert abs(np.median(radius) - 2) < 0.15


def test_the_stack_of_ways_to_smooth_is_above_each_of_them_on_new_rows(rng):
    x, posteriors = two_shapes(1500, rng)
    sample = fitted(x, posteriors, rng)
    new, labels = two_shapes(2000, rng)
    alone = [
        np.exp(log_densities(smoother, new)) for smoother in smoothers(x, posteriors, smoother_specs(750, 2), rng)[0]
    ]
    for h in range(2):
        rows = labels[:, h] == 1
        best = max(np.log(values[rows, h] + 1e-300).mean() for values in alone)
        assert np.log(sample.density(new[rows])[:, h]).mean() > best - 0.02


def test_stray_rows_and_few_rows_are_borne(rng):
    x, posteriors = two_shapes(300, rng)
    x[:3] += 1e4
    own = (fitted(x, posteriors, rng).density(x) * posteriors).sum(axis=1)
    assert np.log(own).min() > -40
    few, labels = two_shapes(12, rng)
    values = fitted(few, labels, rng).log_density(few)
    assert np.all(values[labels == 1] > values[labels == 0])


def test_components_are_reordered_and_told_apart(sample, rng):
    x = rng.normal(size=(20, 2))
    np.testing.assert_allclose(sample.take(np.array([1, 0])).density(x), sample.density(x)[:, ::-1], rtol=1e-10)
    distances = sample.mmd()
    assert distances[0, 1] > 10 * max(distances[0, 0], distances[1, 1])
    assert np.all(sample.n_parameters > 1)
    with pytest.raises(ValueError, match="This view has 2 columns; got 1"):
        sample.density(np.zeros(3))


def test_densities_of_rounded_values_are_smooth(rng):
    x = np.round(3 * rng.normal(size=(2000, 2)))
    sample = fitted(x, np.ones((2000, 1)), rng)
    line = np.column_stack([np.linspace(-3, 3, 121), np.zeros(121)])
    np.testing.assert_allclose(sample.density(line)[:, 0], stats.norm(0, 3).pdf(line).prod(axis=1), rtol=0.3)
    np.testing.assert_allclose(sample.rows, np.round(sample.rows))  # what expectations are taken of


def test_a_rare_component_keeps_its_rows(rng):
    labels = (rng.random(20_000) < 0.005).astype(int)
    posteriors = np.eye(2)[labels] * 0.98 + 0.01
    some, shares = representatives(posteriors, rng)
    assert len(some) <= 1001
    assert labels[some].sum() > 0.9 * labels.sum()
    np.testing.assert_allclose(shares.sum(axis=0), 1.0)
    x = rng.normal(size=20_000) + 5 * labels
    expected = (posteriors / posteriors.sum(axis=0)).T @ x
    np.testing.assert_allclose(shares.T @ x[some], expected, atol=0.25)


def test_a_view_that_is_missing_in_one_of_the_halves_is_halved_anew(rng):
    x, posteriors = two_shapes(600, rng)
    x[1::2] = np.nan
    new, labels = two_shapes(500, rng)
    own, alone = (
        np.mean(sample.log_density(new)[labels == 1])
        for sample in (fitted_to(x, posteriors, rng), fitted(x[::2], posteriors[::2], rng))
    )
    assert own > alone - 0.1  # rows that are missing take nothing from those that are there


def fitted_to(x, posteriors, rng):
    rows, seen = np.arange(len(x)), x[~np.isnan(x).any(axis=1)]
    return weighted_samples(
        x, posteriors, (rows[::2], rows[1::2]), Real().quadrature(seen, seen.std(axis=0) / 10, rng), rng
    )


def test_columns_by_themselves_are_distributed_as_draws_are(sample, rng):
    for h in range(2):
        draws = sample.sample(h, 20_000, rng)
        for j in range(2):
            values, shares = sample.marginal(j)
            found = np.interp([0.05, 0.5, 0.95], shares[:, h], values)
            np.testing.assert_allclose(found, np.quantile(draws[:, j], [0.05, 0.5, 0.95]), atol=0.08)


def test_means_and_variances_are_those_of_all_rows():
    rng = np.random.default_rng(0)
    x, posteriors = two_shapes(5000, rng)
    found = fitted(x, posteriors, rng)
    assert len(found.rows) <= 1001
    for power in (1, 2):
        means = np.stack([found.expectation(lambda rows, j=j: rows[:, j] ** power) for j in range(2)], axis=1)  # noqa: B023
        np.testing.assert_allclose(means, posteriors.T @ x**power / posteriors.sum(axis=0)[:, None], atol=1e-8)


def true_log_densities(x):
    tilt, radius = np.array([[1.0, 0.9], [0.0, 0.3]]), np.sqrt(((x - 6) ** 2).sum(axis=1))
    ring = stats.norm(2, 0.1).logpdf(radius) - np.log(2 * np.pi * radius)
    return np.column_stack([stats.multivariate_normal(cov=tilt.T @ tilt).logpdf(x), ring])


def test_parameters_are_counted_by_how_much_they_overfit():
    """The excess of the likelihood of rows fitted to over that of new ones, each beside the truth's."""
    rng = np.random.default_rng(0)
    x, posteriors = two_shapes(3000, rng)
    sample = fitted(x, posteriors, rng)
    new, labels = two_shapes(20_000, rng)
    excess = [
        ((sample.log_density(rows) - true_log_densities(rows)) * own).sum(axis=0) / own.sum(axis=0)
        for rows, own in ((x, posteriors), (new, labels))
    ]
    measured = posteriors.sum(axis=0) @ (excess[0] - excess[1])
    assert sample.n_parameters.sum() == pytest.approx(measured, rel=0.4)


def test_copies_of_rows_do_not_narrow_the_kernels():
    rng = np.random.default_rng(0)
    x, posteriors = two_shapes(500, rng)
    new, labels = two_shapes(5000, rng)
    once, twice = (fitted(np.repeat(x, t, axis=0), np.repeat(posteriors, t, axis=0), rng) for t in (1, 2))
    likely = [np.log((found.density(new) * labels).sum(axis=1)).mean() for found in (once, twice)]
    assert likely[1] > likely[0] - 0.1


def test_a_stray_row_leaves_expectations_of_the_others_alone():
    rng = np.random.default_rng(0)
    x, posteriors = two_shapes(5000, rng)
    x[0] = 1e6
    shares = fitted(x, posteriors, rng).shares
    assert shares.min() >= 0
    assert shares.max() < 0.02


@pytest.mark.cheap
def test_mixtures_of_gaussians_with_shapes_of_their_own_and_with_shared_ones_are_those_of_scipy(rng):
    maps, widths = rng.normal(size=(4, 3, 3)), rng.uniform(0.5, 2, size=7)
    centres, weights, x = rng.normal(size=(7, 3)), rng.dirichlet(np.ones(7), size=2).T, 3 * rng.normal(size=(20, 3))
    places = [[0], [1, 2, 3], [4], [5, 6]]
    groups = [GaussianGroup(maps[g], centres[i], widths[i], weights[i]) for g, i in enumerate(places)]
    shapes = [np.linalg.inv(maps[g] @ maps[g].T) for g, i in enumerate(places) for _ in i]
    laws = [stats.multivariate_normal(c, w**2 * s) for c, w, s in zip(centres, widths, shapes, strict=True)]
    expected = np.log(np.column_stack([law.pdf(x) for law in laws]) @ weights)
    np.testing.assert_allclose(log_densities(groups, x), expected, rtol=1e-9)
    np.testing.assert_allclose(log_densities(groups[:1], x), np.log(laws[0].pdf(x)[:, None] * weights[:1]), rtol=1e-9)
