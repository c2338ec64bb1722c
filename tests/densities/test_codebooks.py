import numpy as np
import pytest
from scipy import stats
from sklearn.mixture import GaussianMixture

from latentviews.densities import codebooks
from latentviews.densities.codebooks import fit_codebook, spreads
from latentviews.densities.smoothers import uncorrelating

pytestmark = pytest.mark.cheap


def two_balls(n, rng):
    """Rows of a narrow ball and of a wide one, and which they are of."""
    labels = rng.integers(2, size=n)
    return rng.normal(size=(n, 3)) * np.where(labels, 1.0, 0.1)[:, None] + 5 * labels[:, None], labels


def test_densities_are_those_of_its_gaussians_and_mix_to_the_rows(rng):
    x, labels = two_balls(2000, rng)
    codes = fit_codebook(x, 2, rng)
    values = np.exp(codes.log_densities(x[:20]))
    for b in range(2):
        law = stats.multivariate_normal(codes.means[b], np.linalg.inv(codes.maps[b] @ codes.maps[b].T))
        np.testing.assert_allclose(values[:, b], law.pdf(x[:20]), rtol=1e-8)
    wide = int(np.argmax(codes.means[:, 0]))
    np.testing.assert_allclose(codes.weights[wide], labels.mean(), atol=1e-3)


def test_classes_have_shares_of_their_own(rng):
    x, labels = two_balls(2000, rng)
    codes = fit_codebook(x, 2, rng)
    shares = codes.shares(x, np.eye(2)[labels])
    wide = int(np.argmax(codes.means[:, 0]))
    np.testing.assert_allclose(shares[wide], [0.0, 1.0], atol=1e-3)
    np.testing.assert_allclose(shares.sum(axis=0), 1.0)


def test_units_and_places_make_no_difference(rng):
    x, _ = two_balls(500, rng)
    units, place = np.array([1e-6, 1.0, 1e6]), np.array([1e-4, -1e2, 1e8])
    here = fit_codebook(x, 5, np.random.default_rng(0)).log_densities(x)
    there = fit_codebook(x * units + place, 5, np.random.default_rng(0)).log_densities(x * units + place)
    np.testing.assert_allclose(there + np.log(units).sum(), here, rtol=1e-4, atol=1e-4)


def test_a_constant_column_leaves_the_others_as_they_are(rng):
    x = np.column_stack([rng.normal(size=200), np.full(200, 7.0)])
    turned = (x - x.mean(axis=0)) @ uncorrelating(x, np.ones(200), np.zeros(2))
    np.testing.assert_allclose(np.sort(turned.var(axis=0)), [0, 1], atol=1e-10)
    alone, beside = (fit_codebook(rows, 3, np.random.default_rng(0)).log_densities(rows) for rows in (x[:, :1], x))
    assert np.ptp(beside - alone, axis=0).max() < 1e-4  # the same but for a factor, the height along the constant


def test_maps_of_far_values_are_those_of_near_ones_in_other_units(rng):
    x, units, ridge = rng.normal(size=(100, 2)), np.array([1e200, 1e-200]), np.array([0.1, 0.2])
    weights = rng.uniform(size=100)
    near, far = (uncorrelating(rows, weights, np.zeros(2)) for rows in (x, x * units))
    np.testing.assert_allclose(np.abs(far * units[:, None]), np.abs(near), rtol=1e-9)
    ridged, covariance = uncorrelating(x, weights, ridge), np.cov(x.T, aweights=weights, ddof=0) + np.diag(ridge)
    np.testing.assert_allclose(ridged.T @ covariance @ ridged, np.eye(2), atol=1e-12)


def test_a_stray_row_does_not_coarsen_the_others(rng):
    x, _ = two_balls(1000, rng)
    mixed = fit_codebook(np.vstack([x, [[1e6, -1e6, 0.0]]]), 12, rng)
    without = fit_codebook(x, 12, rng)
    strayed, alone = (np.log(np.exp(codes.log_densities(x)) @ codes.weights).mean() for codes in (mixed, without))
    assert strayed > alone - 0.3


def test_densities_of_very_many_columns_are_in_range(rng):
    x = 1e5 * rng.normal(size=(600, 150))
    codes = fit_codebook(x, 3, rng)
    scaled, largest = codes.scaled_densities(x)
    assert largest.max() < -1500
    np.testing.assert_allclose(scaled.max(axis=1), 1.0)
    np.testing.assert_allclose(
        scaled * np.exp(largest + 1900)[:, None], np.exp(codes.log_densities(x) + 1900), atol=1e-200
    )


@pytest.mark.parametrize("at_once", [codebooks.AT_ONCE, 500])
def test_steps_are_those_of_a_gaussian_mixture_whether_products_fit_in_memory_or_not(at_once, rng, monkeypatch):
    monkeypatch.setattr(codebooks, "AT_ONCE", at_once)
    x, labels = two_balls(400, rng)
    labels = np.where(rng.random(400) < 0.2, 1 - labels, labels)  # there must be something left to find
    found = codebooks.fit_gaussians(x, labels)
    parts = [x[labels == b] for b in range(2)]
    precisions = [np.linalg.inv(np.cov(rows.T, bias=True) + codebooks.RIDGE * np.eye(3)) for rows in parts]
    means, weights = [rows.mean(axis=0) for rows in parts], [len(rows) / len(x) for rows in parts]
    expected = GaussianMixture(
        2,
        reg_covar=codebooks.RIDGE,
        max_iter=codebooks.STEPS,
        tol=codebooks.ENOUGH,
        weights_init=weights,
        means_init=means,
        precisions_init=precisions,
    ).fit(x)
    for name in ("weights", "means", "covariances"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, f"{name}_"), rtol=1e-8, atol=1e-10)


def test_quartiles_that_differ_by_less_than_numbers_can_be_divided_by_are_no_spread():
    x = np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 2.0], [1e-310, 3.0], [3.0, 4.0]])

    np.testing.assert_allclose(spreads(x), [x[:, 0].std(), 2.0 / 1.349])
