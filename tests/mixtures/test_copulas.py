"""Mixtures of Gaussian copulas over margins without a shape."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import trapezoid

from latentviews.mixtures.dependence.copulas import CopulaMixture, fit_copulas, refit, reweigh
from latentviews.mixtures.dependence.grids import ColumnGrids, GridMargins

pytestmark = pytest.mark.cheap

FALSE_ALARM = 1e-6


def crossed(rng, n=3000, correlation=0.9):
    """Two classes with the same margins in three columns; they differ in the sign of a correlation alone."""
    labels = (rng.random(n) < 0.4).astype(int)
    shared, own = rng.normal(size=(2, n))
    other = np.where(labels, -1, 1) * correlation * shared + np.sqrt(1 - correlation**2) * own
    return np.column_stack([shared, other, rng.exponential(size=n)]), labels


def grids_of(table, bandwidth=0.2):
    return ColumnGrids.around(table, range(table.shape[1]), np.full(table.shape[1], bandwidth))


@pytest.fixture
def mixture(rng):
    """Three components with random margins and correlations, and rows near them."""
    table = rng.normal(size=(500, 3)) * [1, 2, 0.5]
    grids = grids_of(table)
    posteriors = rng.dirichlet(np.ones(3), size=500)
    shares = grids.cells(table).shares(posteriors)
    factors = rng.normal(size=(3, 3, 3))
    covariances = factors @ factors.transpose(0, 2, 1) + np.eye(3)
    spread = np.sqrt(np.einsum("jtt->jt", covariances))
    correlations = covariances / (spread[:, :, None] * spread[:, None, :])
    margins = GridMargins(grids, shares / shares.sum(axis=1, keepdims=True))
    return CopulaMixture(np.array([0.5, 0.3, 0.2]), 0.01, margins, correlations), table


@pytest.mark.parametrize("common", [0.5, 1e12])
def test_correlations_are_drawn_to_their_mean(rng, common):
    table, labels = crossed(rng, 200)
    posteriors = np.eye(2)[labels]
    alone, drawn = (
        fit_copulas(grids_of(table), table, posteriors, common=weight, max_iter=1).mixture for weight in (0.0, common)
    )
    rows = posteriors.sum(axis=0)
    own = (rows / (rows + common * 4))[:, None, None]
    mean = np.einsum("j,jtu->tu", rows / 200, alone.correlations)
    np.testing.assert_allclose(drawn.correlations, own * alone.correlations + (1 - own) * mean, atol=1e-12)


def literal_log_joint(mixture, row):
    """The formula at the head of the module, a component at a time."""
    grids, values = mixture.margins.grids, []
    for j, weight in enumerate(mixture.weights):
        log_f = [
            np.interp(x, grid, table)
            for x, grid, table in zip(row, grids.points, mixture.margins.tables[0][:, :, j], strict=True)
        ]
        z = [
            np.interp(x, grid, table)
            for x, grid, table in zip(row, grids.points, mixture.margins.tables[1][:, :, j], strict=True)
        ]
        R = mixture.correlations[j]
        copula = stats.multivariate_normal(cov=R).logpdf(z) - stats.norm.logpdf(z).sum()
        values.append(np.log(weight) + np.log1p(-mixture.noise) + sum(log_f) + copula)
    return values


def test_the_joint_density_is_the_formula(mixture):
    mixture, table = mixture
    found = mixture.log_joint(mixture.margins.grids.cells(table[:20]))
    np.testing.assert_allclose(found, [literal_log_joint(mixture, row) for row in table[:20]], atol=1e-9)


def test_margins_are_kernel_density_estimates_with_a_tail(rng):
    x = rng.normal(size=(200, 1))
    grids = grids_of(x)
    margins = GridMargins(grids, grids.cells(x).shares(np.ones((200, 1))) / 200)
    points = np.linspace(-2, 2, 9)
    estimate = stats.norm.pdf(points[:, None], x[:, 0], 0.2).mean(axis=1)
    tail = stats.norm.pdf(points, x.mean(), np.sqrt(9 * x.var() + 0.04))
    found = np.exp(margins.at(grids.cells(points[:, None]))[0][0])
    np.testing.assert_allclose(found, 0.99 * estimate + 0.01 * tail, rtol=0.01)


def test_margins_have_the_width_of_their_own_component(rng):
    x = np.concatenate([rng.normal(0, 0.1, size=400), rng.normal(20, 2, size=600)])[:, None]
    rows = np.arange(1000) < 400
    posteriors = np.column_stack([rows, ~rows]).astype(float)
    wide = ColumnGrids.around(x, [0], np.array([1.9]), least=np.array([0.01]))
    deviations = np.array([x[rows].std(), x[~rows].std()])
    for grids, factors in ((wide, 1.0), (replace(wide, sharp=True), (4 / 3 / np.array([400, 600])) ** 0.2)):
        margins = grids.margins(grids.cells(x).shares(posteriors), np.array([400.0, 600.0]))
        binned = np.sqrt(deviations**2 + grids.steps**2 / 6)  # a row between two grid points is shared out
        expected = np.clip(factors * binned, grids.steps, 1.9)
        np.testing.assert_allclose(margins.bandwidths[0], expected, rtol=0.02)
    fixed = grids_of(x, 1.9)
    assert np.all(fixed.margins(fixed.cells(x).shares(posteriors), np.ones(2)).bandwidths == 1.9)


def test_a_missing_value_leaves_the_margin_of_the_others(mixture):
    mixture, table = mixture
    table = table.copy()
    table[::3, 1] = np.nan
    table[1::3, [0, 2]] = np.nan
    found = mixture.log_joint(mixture.margins.grids.cells(table))
    for columns, rows in (([0, 2], slice(0, None, 3)), ([1], slice(1, None, 3)), ([0, 1, 2], slice(2, None, 3))):
        part = mixture.some_columns(columns)
        np.testing.assert_allclose(found[rows], part.log_joint(part.margins.grids.cells(table[rows])), atol=1e-9)
    empty = np.full((1, 3), np.nan)
    np.testing.assert_allclose(np.exp(mixture.log_joint(mixture.margins.grids.cells(empty)))[0], 0.99 * mixture.weights)


def test_densities_have_mass_one(mixture):
    part = mixture[0].some_columns([0, 1])
    axes = [
        np.linspace(low - 30, high + 30, 400)
        for low, high in zip(part.margins.grids.low, part.margins.grids.high, strict=True)
    ]
    points = np.stack(np.meshgrid(*axes, [0.0], indexing="ij"), axis=-1).reshape(-1, 3)
    density = np.exp(part.log_joint(part.margins.grids.cells(points))).T.reshape(3, 400, 400)
    mass = trapezoid(trapezoid(density, axes[1]), axes[0])
    np.testing.assert_allclose(mass, 0.99 * part.weights, rtol=0.01)


def test_density_falls_far_from_the_rows_and_stays_a_number(mixture):
    mixture, _ = mixture
    far = np.outer([10.0, 100.0, 1e8], np.ones(3))
    expected = mixture.expected(mixture.margins.grids.cells(far))
    assert np.all(np.isfinite(expected.log_density))
    assert np.all(np.diff(expected.log_density) < 0)
    np.testing.assert_allclose(expected.posteriors.sum(axis=1), 1)


def test_draws_follow_the_density(mixture, rng):
    mixture, _ = mixture
    drawn = mixture.sample(1, 2000, rng)
    cells = mixture.margins.grids.cells(drawn)
    scores = mixture.margins.at(cells)[1][1]
    for row in scores:
        assert stats.kstest(row, "norm").pvalue > FALSE_ALARM
    limit = stats.norm.isf(FALSE_ALARM / 6) / np.sqrt(2000)
    assert np.abs(np.corrcoef(scores) - mixture.correlations[1]).max() < limit


def test_em_finds_classes_that_differ_in_dependence_alone(rng):
    table, labels = crossed(rng)
    start = 0.6 * np.eye(2)[labels] + 0.2
    fit = fit_copulas(grids_of(table), table, start, max_iter=200)
    found = fit.mixture.correlations[:, 0, 1]
    assert found[0] > 0.8
    assert found[1] < -0.8
    assert abs(fit.mixture.correlations[:, 0, 2]).max() < 0.2
    assert np.mean(fit.expected.posteriors.argmax(axis=1) == labels) > 0.8
    np.testing.assert_allclose(fit.mixture.weights, [0.6, 0.4], atol=0.05)


def test_weights_equal_repeated_rows(rng):
    table, labels = crossed(rng, 400)
    start, counts = 0.8 * np.eye(2)[labels] + 0.1, rng.integers(1, 4, size=400)
    grids = grids_of(table)
    weighed = fit_copulas(grids, table, start, counts.astype(float), max_iter=5)
    repeated = fit_copulas(grids, np.repeat(table, counts, axis=0), np.repeat(start, counts, axis=0), max_iter=5)
    np.testing.assert_allclose(weighed.mixture.correlations, repeated.mixture.correlations, atol=1e-8)
    np.testing.assert_allclose(weighed.mixture.weights, repeated.mixture.weights)
    assert weighed.objective == pytest.approx(repeated.objective)


def test_correlations_are_found_through_missing_values(rng):
    table, labels = crossed(rng, 4000)
    table[rng.random(table.shape) < 0.2] = np.nan
    fit = fit_copulas(grids_of(table), table, 0.8 * np.eye(2)[labels] + 0.1, max_iter=60)
    found = fit.mixture.correlations[:, 0, 1]
    assert found[0] > 0.75
    assert found[1] < -0.75
    assert np.all(np.linalg.eigvalsh(fit.mixture.correlations) > 0)


def test_background_takes_stray_rows(rng):
    table = np.concatenate([rng.normal(size=(950, 3)), rng.uniform(-20, 20, size=(50, 3))])
    fit = fit_copulas(grids_of(table), table, np.ones((1000, 1)))
    assert fit.mixture.noise == pytest.approx(0.05, abs=0.02)
    assert np.mean(fit.expected.shares[-50:, 0] < 0.5) > 0.75  # some lie among the others
    assert np.mean(fit.expected.shares[:950, 0] > 0.5) > 0.99


def test_a_step_over_batches_is_a_step_over_their_rows(mixture, rng):
    mixture, table = mixture
    weights = rng.uniform(0.5, 2, size=500)
    whole = refit(mixture, table, weights)
    parts = refit(mixture, [(table[:123], weights[:123]), (table[123:], weights[123:])], None)
    np.testing.assert_allclose(whole.correlations, parts.correlations)
    np.testing.assert_allclose(whole.margins.shares, parts.margins.shares, atol=1e-15)
    assert whole.noise == pytest.approx(parts.noise)


def test_a_background_that_explains_rows_is_a_density_with_far_tails(rng):
    table = rng.normal(size=(400, 2)) * [1, 3]
    grids = ColumnGrids.around(table, [0, 1], np.array([0.2, 0.6]), boxed=True)
    axes = [np.linspace(low - 300, high + 300, 40_001) for low, high in grids.box.T]
    for t, axis in enumerate(axes):
        density = np.exp(grids.some([t]).cells(np.column_stack([axis, axis])).log_uniform)
        assert trapezoid(density, axis) == pytest.approx(1, abs=0.01)
        drawn = grids.sample_background(20_000, rng)[:, t]
        inside = (axis >= grids.box[0, t]) & (axis <= grids.box[1, t])
        share = trapezoid(density[inside], axis[inside])
        assert (
            stats.binomtest(int(np.sum((drawn >= grids.box[0, t]) & (drawn <= grids.box[1, t]))), 20_000, share).pvalue
            > FALSE_ALARM
        )
    far = grids.cells(np.array([[1e8, np.nan], [0.0, 0.0], [np.nan, np.nan]])).log_uniform
    assert np.isfinite(far).all()
    assert far[0] < far[1] < far[2] == 0


def test_weights_alone_are_fitted_to_rows_that_shape_no_component(rng):
    table = np.concatenate([rng.normal(size=(900, 2)), rng.uniform(-10, 10, size=(100, 2))])
    grids = ColumnGrids.around(table, [0, 1], np.full(2, 0.3), boxed=True)
    fit = fit_copulas(grids, table[:900], np.ones((900, 1)))
    found = reweigh(fit.mixture, table, None)
    assert found.noise == pytest.approx(0.1, abs=0.03)
    assert found.margins is fit.mixture.margins
