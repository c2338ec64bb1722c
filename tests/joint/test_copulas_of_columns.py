import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from latentviews.core.kernels.circle import VonMises
from latentviews.joint.copulas import JointMixture, Shrinkage, em_sums, em_update, fit_em, start_at, step_over
from latentviews.joint.margins import Normals, Tables
from latentviews.joint.shares import Shares
from latentviews.joint.stacks import whitening_axes

pytestmark = pytest.mark.cheap


def random_correlations(k, c, rng):
    rows = rng.normal(size=(k, 3 * c, c)) + rng.normal(size=(k, 3 * c, 1))
    return np.array([np.corrcoef(part.T) for part in rows])


def gaussian_mixture(k, c, rng):
    """A mixture with normal margins, and the same as means and covariances."""
    center, spread = 2 * rng.normal(size=(c, k)), rng.uniform(0.5, 2.0, size=(c, k))
    correlations = random_correlations(k, c, rng)
    mixture = JointMixture(
        rng.dirichlet(np.full(k, 3.0)),
        (Normals(list(range(c)), np.full(c, 1e-9), np.zeros(c), center, spread),),
        np.zeros((k, c)),
        correlations,
    )
    covariances = [np.outer(s, s) * r for s, r in zip(spread.T, correlations, strict=True)]
    return mixture, center.T, covariances


def fitted(rows, posteriors, strength=0.5, factor=1.0):
    shrinkage = None if strength is None else Shrinkage(strength, 1e-3)
    tables = Tables.around(rows, list(range(rows.shape[1])), factor)
    start = start_at([tables], rows, posteriors, shrinkage)
    return em_update(start, em_sums(start, rows), shrinkage)


def grid(low, high, n=1500):
    points = np.linspace(low, high, n)
    return points, points[1] - points[0]


def test_with_normal_margins_it_is_a_gaussian_mixture(rng):
    mixture, means, covariances = gaussian_mixture(3, 4, rng)
    rows = 2 * rng.normal(size=(50, 4))
    parts = [stats.multivariate_normal(m, s).logpdf(rows) for m, s in zip(means, covariances, strict=True)]
    expected = logsumexp(np.stack(parts, axis=1), axis=1, b=mixture.weights)
    np.testing.assert_allclose(mixture.log_density(rows), expected, atol=1e-10)


def test_a_missing_value_is_integrated_out_and_marginals_agree(rng):
    mixture, means, covariances = gaussian_mixture(3, 4, rng)
    rows = 2 * rng.normal(size=(50, 4))
    parts = [
        stats.multivariate_normal(m[[0, 2]], s[np.ix_([0, 2], [0, 2])]).logpdf(rows[:, [0, 2]])
        for m, s in zip(means, covariances, strict=True)
    ]
    expected = logsumexp(np.stack(parts, axis=1), axis=1, b=mixture.weights)
    np.testing.assert_allclose(mixture.marginal([0, 2]).log_density(rows), expected, atol=1e-10)
    rows[:, [1, 3]] = np.nan
    np.testing.assert_allclose(mixture.log_density(rows), expected, atol=1e-10)


def test_conditionals_are_joint_over_marginal(rng):
    for mixture in (gaussian_mixture(2, 4, rng)[0], fitted(rng.normal(size=(300, 4)), rng.dirichlet([1, 1], size=300))):
        rows = rng.normal(size=(30, 4))
        given = {1: 0.3, 3: -0.4}
        rows[:, [1, 3]] = [0.3, -0.4]
        expected = mixture.log_density(rows) - mixture.marginal([1, 3]).log_density(rows)
        np.testing.assert_allclose(mixture.conditional(given).log_density(rows), expected, atol=1e-8)
        twice = mixture.conditional({1: 0.3}).conditional({3: -0.4})
        np.testing.assert_allclose(twice.log_density(rows), expected, atol=1e-8)


def test_draws_follow_the_mixture(rng):
    mixture, means, covariances = gaussian_mixture(2, 3, rng)
    rows = mixture.sample(40_000, rng, 4)
    assert np.isnan(rows[:, 3]).all()
    center = mixture.weights @ means
    second = sum(w * (s + np.outer(m, m)) for w, m, s in zip(mixture.weights, means, covariances, strict=True))
    deviation = np.sqrt(np.diag(second))
    np.testing.assert_allclose(rows[:, :3].mean(axis=0), center, atol=5 * deviation.max() / 200)
    np.testing.assert_allclose(rows[:, :3].T @ rows[:, :3] / 40_000, second, atol=12 * deviation.max() ** 2 / 200)


def test_densities_in_tables_integrate_to_one_and_scores_are_their_quantiles(rng):
    rows = np.column_stack([rng.gamma(1.0, size=500), rng.normal(size=500) + 6 * rng.integers(2, size=500)])
    mixture = fitted(rows, rng.dirichlet([1, 1], size=500), strength=None)
    tables = mixture.margins[0]
    points, step = grid(-60, 80, 200_001)
    rows = np.column_stack([points, points])
    logs, scores = tables.log_density(rows), tables.scores(rows)
    np.testing.assert_allclose(np.exp(logs).sum(axis=0) * step, 1.0, atol=1e-4)
    below = np.cumsum(np.exp(logs), axis=0) * step
    np.testing.assert_allclose(stats.norm.cdf(scores), below, atol=2e-3)
    assert np.all(np.diff(scores, axis=0) >= 0)
    back = tables.draw(scores[::5000, :, 1], 1)
    inside = np.abs(scores[::5000, :, 1]) < 5
    assert np.abs(back - points[::5000, None])[inside].max() < 0.05


def test_tables_are_weighted_kernel_density_estimates(rng):
    x, weights = rng.normal(size=(400, 1)), rng.uniform(size=400)
    tables = start_at([Tables.around(x, [0], 1.0)], x, weights[:, None], None).margins[0]
    count = weights.sum() ** 2 / (weights**2).sum()
    deviation = np.sqrt(np.average(x[:, 0] ** 2, weights=weights) - np.average(x[:, 0], weights=weights) ** 2)
    width = 1.06 * deviation * count**-0.2
    points = np.linspace(-2, 2, 50)
    exact = np.average(stats.norm.pdf(points[:, None], x[:, 0], width), axis=1, weights=weights)
    exact = 0.99 * exact + 0.01 * stats.norm.pdf(
        points, np.average(x[:, 0], weights=weights), 3 * np.sqrt(deviation**2 + width**2)
    )
    np.testing.assert_allclose(np.exp(tables.log_density(points[:, None])[:, 0, 0]), exact, rtol=5e-3)


def test_a_copula_density_integrates_to_one(rng):
    rows = rng.normal(size=(300, 2)) @ np.array([[1.0, 0.8], [0.0, 0.6]]) + 3 * rng.integers(2, size=(300, 1))
    mixture = fitted(rows, rng.dirichlet([1, 1], size=300), strength=0.1)
    points, step = grid(-30, 34, 640)
    square = np.stack(np.meshgrid(points, points), axis=-1).reshape(-1, 2)
    assert np.exp(mixture.log_density(square)).sum() * step**2 == pytest.approx(1.0, abs=2e-3)
    assert np.abs(mixture.covariances[:, 0, 1]).max() > 0.3


@pytest.mark.parametrize("axes", [None, np.eye(3), np.array([[1.0, 0.5, 0.0], [0.0, 2.0, -1.0], [0.3, 0.0, 1.0]])])
def test_a_step_of_em_with_normal_margins_is_that_of_a_gaussian_mixture(axes, rng):
    shrinkage = Shrinkage(0.0, 0.0, axes)
    mixture, means, covariances = gaussian_mixture(2, 3, rng)
    rows, weights = mixture.sample(400, rng, 3), rng.uniform(0.5, 2.0, size=400)
    parts = np.stack([stats.multivariate_normal(m, s).pdf(rows) for m, s in zip(means, covariances, strict=True)], 1)
    joint = parts * mixture.weights
    tau = weights[:, None] * joint / joint.sum(axis=1, keepdims=True)
    updated = em_update(mixture, em_sums(mixture, rows, weights), shrinkage)
    np.testing.assert_allclose(updated.weights, tau.sum(axis=0) / weights.sum(), atol=1e-12)
    for h in range(2):
        covariance = np.cov(rows.T, aweights=tau[:, h], bias=True)
        spread = np.sqrt(np.diag(covariance))
        np.testing.assert_allclose(updated.margins[0].center[:, h], tau[:, h] @ rows / tau[:, h].sum(), atol=1e-10)
        np.testing.assert_allclose(updated.margins[0].spread[:, h], spread, rtol=1e-8)
        off = ~np.eye(3, dtype=bool)
        expected = covariance / np.outer(spread, spread)
        np.testing.assert_allclose(updated.covariances[h][off], expected[off], atol=1e-8)


@pytest.mark.parametrize("axes", [None, np.eye(3)])
def test_em_recovers_a_gaussian_mixture_from_rows_with_missing_values(axes, rng):
    labels = rng.integers(2, size=4000)
    covariance = np.array([[1.0, 0.7, 0.0], [0.7, 1.0, 0.0], [0.0, 0.0, 1.0]])
    rows = rng.multivariate_normal(np.zeros(3), covariance, size=4000) + np.outer(labels, [4.0, 4.0, 0.0])
    whole = rows.copy()
    rows[rng.random(rows.shape) < 0.2] = np.nan
    rows = rows[~np.isnan(rows).all(axis=1)]
    start = rng.dirichlet([1, 1], size=len(rows))
    start[:, 0] = np.where(np.nan_to_num(rows[:, 0], nan=2.0) > 2, 0.8, 0.2)
    start[:, 1] = 1 - start[:, 0]
    shrinkage = Shrinkage(0.01, 1e-6, axes)
    guess = start_at([Normals.around(rows, [0, 1, 2])], rows, start, shrinkage)
    found = fit_em(guess, rows, shrinkage, max_iter=200, tol=1e-5)
    assert found.converged
    np.testing.assert_allclose(found.mixture.covariances[:, 0, 1], 0.7, atol=0.06)
    parts = [stats.multivariate_normal([m, m, 0], covariance).logpdf(whole) for m in (0, 4)]
    truth = np.logaddexp(*parts) - np.log(2)
    assert found.mixture.log_density(whole).mean() > truth.mean() - 0.02


def test_em_on_gaussian_mixtures_never_loses_likelihood_though_values_are_missing(rng):
    mixture, _, _ = gaussian_mixture(2, 3, rng)
    rows = mixture.sample(400, rng, 3)
    rows[rng.random(rows.shape) < 0.3] = np.nan
    shrinkage = Shrinkage(0.0, 0.0, np.eye(3))
    current = start_at([Normals.around(rows, [0, 1, 2])], rows, rng.dirichlet([1, 1], size=400), shrinkage)
    objectives = []
    for _ in range(30):
        sums = em_sums(current, rows)
        objectives.append(float(sums[0]))
        current = em_update(current, sums, shrinkage)
    assert np.diff(objectives).min() > -1e-8
    assert objectives[-1] > objectives[0] + 10


def test_components_of_few_rows_take_the_shape_of_the_axes(rng):
    rows = rng.normal(size=(500, 3)) @ rng.normal(size=(3, 3))
    axes = whitening_axes(rows)
    np.testing.assert_allclose(np.cov(rows.T, bias=True), np.linalg.inv(axes.T @ axes), rtol=0.1, atol=0.1)
    shrinkage = Shrinkage(1e6, 0.0, axes)  # as if there were next to no rows
    start = start_at([Normals.around(rows, [0, 1, 2])], rows, rng.dirichlet([1, 1], size=500), shrinkage)
    found = em_update(start, em_sums(start, rows), shrinkage)
    for h, spread in enumerate(found.margins[0].spread.T):
        turned = axes @ (np.outer(spread, spread) * found.covariances[h]) @ axes.T
        np.testing.assert_allclose(turned, np.diag(np.diag(turned)), atol=1e-8)


def test_columns_are_no_narrower_than_their_margins_may_be_but_their_differences_are(rng):
    x = rng.normal(size=300)
    rows = np.column_stack([x, x + 1e-3 * rng.normal(size=300), 0.01 * rng.normal(size=300)])
    shrinkage = Shrinkage(0.0, 1e-8, np.eye(3))
    guess = start_at([Normals([0, 1, 2], np.full(3, 0.1), np.zeros(3))], rows, np.ones((300, 1)), shrinkage)
    found = em_update(guess, em_sums(guess, rows), shrinkage)
    spread, correlations = found.margins[0].spread[:, 0], found.covariances[0]
    assert spread[2] == pytest.approx(0.1, rel=1e-6)
    covariance = np.outer(spread, spread) * correlations
    np.testing.assert_allclose(covariance[:2, :2], np.cov(rows[:, :2].T, bias=True), rtol=1e-6)
    assert np.array([1, -1]) @ covariance[:2, :2] @ [1, -1] < 2e-6


@pytest.mark.parametrize("axes", [np.eye(3), np.array([[1.0, 0.5, 0.0], [0.0, 2.0, -1.0], [0.3, 0.0, 1.0]])])
def test_correlations_are_definite_where_variances_are_lost_in_rounding(axes, rng):
    rows = rng.normal(size=(300, 3))
    shrinkage = Shrinkage(1e-4, 1e-6, axes)
    guess = start_at([Normals.around(rows, [0, 1, 2])], rows, rng.dirichlet([1, 1], size=300), shrinkage)
    far = rows + np.outer(rng.random(300) < 0.1, [1e30, 1e30, 0.0])  # a tenth are so far that they differ in nothing
    found = guess
    for _ in range(3):
        found = em_update(found, em_sums(found, far), shrinkage)
        assert np.linalg.eigvalsh(found.covariances).min() > 0
        np.testing.assert_allclose(np.diagonal(found.covariances, axis1=1, axis2=2), 1.0, rtol=1e-12)
    assert np.isfinite(found.log_density(far)).all()


def test_the_sums_of_batches_are_those_of_all_rows(rng):
    rows = rng.normal(size=(500, 3))
    rows[rng.random(rows.shape) < 0.1] = np.nan
    mixture = fitted(rows, rng.dirichlet([1, 1], size=500))
    weights = rng.uniform(size=500)
    shrinkage = Shrinkage(0.5, 1e-3)
    whole = em_update(mixture, em_sums(mixture, rows, weights), shrinkage)
    parts = step_over(mixture, [(rows[i : i + 90], weights[i : i + 90]) for i in range(0, 500, 90)], shrinkage)
    np.testing.assert_allclose(parts.log_density(rows), whole.log_density(rows), atol=1e-10)


def test_codes_have_shares_that_sum_to_one_and_unseen_ones_nearly_none(rng):
    x = rng.choice([1.0, 2.0, 5.0], p=[0.5, 0.3, 0.2], size=(1000, 1))
    shares = start_at([Shares.of_codes(x, 0)], x, np.ones((1000, 1)), None).margins[0]
    logs = shares.log_density(np.array([[1.0], [2.0], [5.0], [3.0]]))[:, 0, 0]
    assert np.exp(logs).sum() == pytest.approx(1.0)
    np.testing.assert_allclose(np.exp(logs[:3]), [np.mean(x == v) for v in (1, 2, 5)], atol=2e-3)
    assert np.exp(logs[3]) == pytest.approx(1e-6)
    drawn = shares.draw(rng.normal(size=(5000, 1)), 0)
    assert set(np.unique(drawn)) == {1.0, 2.0, 5.0}
    assert np.mean(drawn == 1.0) == pytest.approx(np.exp(logs[0]), abs=0.04)


def test_angles_have_a_periodic_density(rng):
    x = rng.vonmises(np.pi, 4.0, size=(1000, 1))
    shares = start_at([Shares.of_angles(x, 0, VonMises(0.3))], x, np.ones((1000, 1)), None).margins[0]
    points = np.linspace(-np.pi, np.pi, 2001)[:-1, None] + 1e-3  # off the edges of bins
    density = np.exp(shares.log_density(points)[:, 0, 0])
    assert density.sum() * 2 * np.pi / 2000 == pytest.approx(1.0, abs=1e-3)
    np.testing.assert_allclose(shares.log_density(points + 2 * np.pi), shares.log_density(points))
    assert density[0] > 5 * density[1000]
    drawn = shares.draw(rng.normal(size=(4000, 1)), 0)
    assert np.abs(np.exp(1j * drawn).mean() - np.exp(1j * x).mean()) < 0.1
