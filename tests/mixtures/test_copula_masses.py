"""Copulas whose margins have point masses: classes are found as without, densities, chances and draws know them."""

import warnings

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import trapezoid

from latentviews import Copulas, MultiViewMixture, diagnose, load, save
from latentviews.core.point_masses import WithPointMasses
from latentviews.diagnosis.diagnose import outside_range
from latentviews.metrics import label_accuracy
from latentviews.mixtures.dependence.copulas import fit_copulas
from latentviews.mixtures.dependence.donors import with_donors
from latentviews.mixtures.dependence.grids import ColumnGrids
from latentviews.mixtures.dependence.masses import JOINED, ColumnMasses

CHANCES = np.array([[0.1, 0.6], [0.5, 0.2], [0.0, 0.0]])  # P(0 | class) of every column
CENTERS = np.array([[6.0, 12.0], [14.0, 6.0], [5.0, 15.0]])
CORRELATIONS = (0.8, -0.7)  # of all scores with the first, in either class
FALSE_ALARM = 1e-6


def correlation(h):
    """The matrix of a class: the others are independent given the first column."""
    a = CORRELATIONS[h]
    return np.array([[1, a, a], [a, 1, a * a], [a, a * a, 1]])


def doses(n_rows, rng):
    """Two classes of correlated columns, two of them often zero; their classes, and the log-density of the rows."""
    y = (rng.random(n_rows) < 0.4).astype(int)
    X = np.empty((n_rows, 3))
    for h in (0, 1):
        own = y == h
        X[own] = rng.multivariate_normal(CENTERS[:, h], correlation(h), size=own.sum())
    X[rng.random(X.shape) < CHANCES[:, y].T] = 0.0
    return X, y, np.logaddexp(*(np.log(weight) + log_density(X, h) for h, weight in ((0, 0.6), (1, 0.4))))


def log_density(X, h):
    """A row at a time: chances of zeros, and a Gaussian of the columns that are not."""
    found = np.zeros(len(X))
    for i, row in enumerate(X):
        off = np.flatnonzero(row != 0)
        chances = np.where(row == 0, CHANCES[:, h], 1 - CHANCES[:, h])
        found[i] = np.log(np.maximum(chances, 1e-300)).sum()
        if len(off):
            cov = correlation(h)[np.ix_(off, off)]
            found[i] += stats.multivariate_normal(CENTERS[off, h], cov).logpdf(row[off])
    return found


@pytest.fixture(scope="module")
def data():
    return doses(3000, np.random.default_rng(0))


@pytest.fixture(scope="module")
def model(data):
    return MultiViewMixture(2, dependence=Copulas(n_starts=2), random_state=0).fit(data[0])


@pytest.fixture(scope="module")
def components(data):
    """Two components of the true classes on grids with point masses, and the rows."""
    X, y, _ = data
    grids = ColumnGrids.around(X, [0, 1, 2], np.full(3, 0.3))
    grids = grids.for_densities(ColumnMasses.of(X, [0, 1, 2], "auto"), grids.least)
    return fit_copulas(grids, X, np.eye(2)[y], max_iter=1).mixture, X


def test_rows_at_point_masses_leave_a_copula_of_the_other_columns(components):
    mixture, X = components
    found = mixture.log_joint(mixture.margins.grids.cells(X[:50]))
    apart = mixture.margins.without_masses()
    for row, value in zip(X[:50], found, strict=True):
        off = [t for t in range(3) if row[t] != 0]
        others = mixture.some_columns(off)
        smooth = type(mixture)(
            mixture.weights, mixture.noise, apart.some(off), others.correlations
        ) if off else None  # fmt: skip
        cells = None if smooth is None else smooth.margins.grids.cells(row[None])
        density = np.log((1 - mixture.noise) * mixture.weights) if smooth is None else smooth.log_joint(cells)[0]
        chances = mixture.margins.masses.chances[:, 0]
        at = np.where(row[:, None] == 0, chances, 1 - chances)[:2].prod(axis=0)
        np.testing.assert_allclose(value, density + np.log(at), atol=1e-9)


def test_masses_and_densities_sum_to_one(components):
    mixture = components[0].some_columns([0, 1])
    x, y = np.linspace(-1, 22, 250), np.linspace(-1, 22, 251)
    pairs = np.array(np.meshgrid(x, y, indexing="ij")).reshape(2, -1).T

    def joint(rows):
        return np.exp(mixture.log_joint(mixture.margins.grids.cells(np.asarray(rows, dtype=float))))

    both = joint(pairs).reshape(250, 251, 2)
    total = trapezoid(trapezoid(both, y, axis=1), x, axis=0) + joint([[0, 0]])[0]
    total += trapezoid(joint(np.column_stack([x, np.zeros(250)])), x, axis=0)
    total += trapezoid(joint(np.column_stack([np.zeros(251), y])), y, axis=0)
    np.testing.assert_allclose(total, (1 - mixture.noise) * mixture.weights, rtol=0.01)


def test_classes_are_counted_where_a_zero_says_nothing_of_the_class(data):
    X, y, _ = data
    model = MultiViewMixture("auto", dependence=Copulas(n_starts=2), random_state=0).fit(X)
    assert model.n_components_ == 2
    assert label_accuracy(y, model.predict(X)) > 0.99


def test_rows_at_a_mass_apart_from_all_values_are_seen_as_donors(rng):
    y = rng.random(1000) < 0.5
    X = np.column_stack([np.where(y, 8.0, 20.0), np.where(y, 3.0, 9.0)]) + rng.normal(size=(1000, 2))
    zero = rng.random(1000) < 0.4
    X[zero, 0] = 0.0
    seen = with_donors(X, ColumnMasses.of(X, [0, 1], "auto"), rng)
    moved = zero & (seen[:, 0] != 0)
    assert moved.sum() > 0.9 * zero.sum()
    assert np.mean(np.abs(seen[:, 0] - np.where(y, 8, 20))[moved] < 6) > 0.99  # of a row of its class
    np.testing.assert_array_equal(seen[~zero], X[~zero])
    clipped = np.maximum(X - [8.0, 0.0], 0.0)
    found = with_donors(clipped, ColumnMasses.of(clipped, [0, 1], "auto"), rng)
    np.testing.assert_array_equal(found, clipped)  # zero is a low value
    X[:, 0] = np.where(y, 0.0, X[:, 0])
    X[~y, 0] = 20 + rng.normal(size=np.sum(~y))
    found = with_donors(X, ColumnMasses.of(X, [0, 1], "auto"), rng)
    assert np.mean(found[y, 0] == 0) > 0.9  # no row like them is elsewhere


def test_rows_at_a_mass_have_donors_where_few_rows_are_elsewhere(rng):
    """The nearest of fewer rows are farther, and no farther than as few of those at the mass are."""
    y = rng.random(1200) < 0.5
    X = np.where(y[:, None], [8.0, 3.0, 9.0, 5.0], [20.0, 9.0, 3.0, 5.0]) + rng.normal(size=(1200, 4))
    zero = rng.random(1200) < 0.95
    X[zero, 0] = 0.0
    seen = with_donors(X, ColumnMasses.of(X, range(4), "auto"), rng)
    assert np.mean(seen[zero, 0] != 0) > 0.9


def test_a_fit_finds_the_point_masses_of_dependent_columns(model, data):
    X, y, truth = data
    assert np.mean(model.predict(X) == y) > 0.99
    assert all(isinstance(view, WithPointMasses) for view in model.components_[:2])
    assert not isinstance(model.components_[2], WithPointMasses)
    counts = np.bincount(y)
    for view, chances in zip(model.components_[:2], CHANCES, strict=False):
        error = stats.norm.isf(FALSE_ALARM / 8) * np.sqrt(chances * (1 - chances) / counts)
        assert np.all(np.abs(view.masses[0] - chances) < error + 0.01)  # a class of few rows may be wrong in a row
        np.testing.assert_allclose(view.mass, 1, atol=0.01)
    assert abs(model.score(X) - truth.mean()) < 0.15


def test_likelihood_beats_that_of_smoothed_zeros(model, data):
    """By far: at a zero a density has a kernel's height, whatever the width."""
    X = data[0]
    held, _, truth = doses(1000, np.random.default_rng(1))
    smooth = MultiViewMixture(2, dependence=Copulas(n_starts=2), point_masses=None, random_state=0).fit(X)
    assert abs(model.score(held) - truth.mean()) < 0.2
    assert abs(smooth.score(held) - truth.mean()) > 0.5


def test_draws_have_the_zeros_of_the_rows(model, data):
    X = data[0]
    drawn, _ = model.sample(20_000, random_state=0)
    here, there = np.mean(X == 0, axis=0), np.mean(drawn == 0, axis=0)
    assert np.all(np.abs(here - there) < stats.norm.isf(FALSE_ALARM / 6) * np.sqrt(0.25 / 3000 + 0.25 / 20_000))
    one = model.components_[0].sample(1, 5000, np.random.default_rng(0))
    assert abs(np.mean(one == 0) - model.components_[0].masses[0, 1]) < 0.035


def test_a_view_given_the_others_has_the_chances_of_its_point_masses(model, data):
    X = data[0][:40]
    given = model.conditional(X, view=0)
    grid = np.linspace(-2, 22, 2000) + 1e-4
    chance = given.density(np.zeros(1))[:, 0]
    assert np.all((chance > 0.05) & (chance < 0.72))
    np.testing.assert_allclose(trapezoid(given.density(grid), grid, axis=1) + chance, 1, atol=0.01)
    expected = trapezoid(given.density(grid) * grid, grid, axis=1)
    np.testing.assert_allclose(given.mean()[:, 0], expected, atol=0.1)
    draws = np.stack([given.sample(seed)[:, 0] for seed in range(300)])
    assert np.all(np.abs(np.mean(draws == 0, axis=0) - chance) < stats.norm.isf(FALSE_ALARM / 80) * 0.5 / np.sqrt(300))


def test_a_view_without_point_masses_given_others_that_have_some_has_a_density(model, data):
    grid = np.linspace(-2, 22, 2000)
    density = model.conditional(data[0][:40], view=2).density(grid)
    np.testing.assert_allclose(trapezoid(density, grid, axis=1), 1, atol=0.01)


def test_a_saved_fit_says_the_same(model, data, tmp_path):
    save(model, tmp_path / "doses")
    again = load(tmp_path / "doses")
    np.testing.assert_array_equal(again.score_samples(data[0][:50]), model.score_samples(data[0][:50]))


def test_the_diagnosis_speaks_of_point_masses(model, data):
    text = diagnose(model, data[0]).summary()
    assert "of column 0 are exactly 0" in text
    assert "They are treated as point masses of the densities." in text


def test_views_of_several_columns_smooth_them_in_their_densities_and_not_in_draws(data):
    X = data[0]
    model = MultiViewMixture(2, views=[[0, 1], [2]], dependence=Copulas(n_starts=1), random_state=0).fit(X)
    np.testing.assert_allclose(model.components_[0].mass, 1, atol=0.03)
    drawn, _ = model.sample(5000, random_state=0)
    assert np.all(np.abs(np.mean(X == 0, axis=0) - np.mean(drawn == 0, axis=0)) < 0.06)


def test_missing_values_beside_zeros(data):
    X, y, _ = data
    X = X.copy()
    rng = np.random.default_rng(3)
    X[rng.random(X.shape) < 0.1] = np.nan
    model = MultiViewMixture(2, dependence=Copulas(n_starts=1), random_state=0).fit(X)
    assert np.mean(model.predict(X) == y) > 0.97
    np.testing.assert_allclose(np.sort(model.components_[0].masses[0]), np.sort(CHANCES[0]), atol=0.06)


def test_of_many_columns_with_point_masses_the_eight_with_fewest_are_joined(rng):
    n, d = 1500, JOINED + 2
    z = rng.normal(size=(n, 1)) + 0.4 * rng.normal(size=(n, d))
    X = np.where(rng.random((n, d)) < np.linspace(0.1, 0.6, d), 0.0, z)
    grids = ColumnGrids.around(X, range(d), np.full(d, 0.2)).for_densities(ColumnMasses.of(X, range(d), "auto"), None)
    mixture = fit_copulas(grids, X, np.ones((n, 1)), max_iter=1).mixture
    assert mixture.margins.masses.columns.joined.tolist() == [True] * JOINED + [False] * 2
    off = mixture.correlations[0] - np.eye(d)
    assert np.all(off[-2:] == 0)
    assert np.all(off[:4, :4][~np.eye(4, dtype=bool)] > 0.6)
    assert len(grids.cells(X).patterns) <= 2**JOINED


def test_a_choice_says_that_it_does_not_rest_on_point_masses(data):
    X, settings = data[0][:200], {"dependence": "auto", "random_state": 0}
    spread = "rows at values that many rows have exactly were spread out"
    assert spread in MultiViewMixture(2, **settings).fit(X).dependence_choice_.sentence
    others = np.where(X == 0, 10 + np.random.default_rng(0).normal(size=X.shape), X)
    assert spread not in MultiViewMixture(2, **settings).fit(others).dependence_choice_.sentence


def test_a_column_of_two_values_one_of_them_rare_is_on_the_scale_of_its_own_fit(data):
    rng = np.random.default_rng(0)
    X = np.column_stack([data[0][:400, 2], rng.random(400) < 0.04, rng.normal(size=400)])
    model = MultiViewMixture(2, dependence=Copulas(n_starts=1, max_iter=5), random_state=0).fit(X)
    assert outside_range(model, X) == {}
    assert outside_range(model, X / 1000)[1] == 1.0


def test_values_asked_for_are_point_masses_and_none_are_where_none_is_asked_for(data):
    X = np.where(data[0] == 0, -3.0, data[0])
    for asked, found in (([-3.0], 2), ([17.0], 0), (None, 0)):
        model = MultiViewMixture(
            2, dependence=Copulas(n_starts=1, max_iter=5), point_masses=asked, random_state=0
        ).fit(X)  # fmt: skip
        assert sum(isinstance(view, WithPointMasses) for view in model.components_) == found


def test_a_class_of_noise_leaves_them_smoothed_and_says_so(data):
    with pytest.warns(UserWarning, match=r"\(0 in \d+% of column 0.*\), and Copulas\(noise=True\) smooth it"):
        model = MultiViewMixture(2, dependence=Copulas(n_starts=1, noise=True), random_state=0).fit(data[0])
    assert not any(isinstance(view, WithPointMasses) for view in model.components_)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MultiViewMixture(2, dependence=Copulas(n_starts=1), random_state=0).fit(data[0])
