"""Parts of a mixture put together again, and partitions chosen among."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.metrics import adjusted_rand_score

from catalogue import COSTS
from latentviews.mixtures.dependence.merging import (
    CROSSINGS,
    Landscape,
    medoid,
    merge,
    merge_until,
)

pytestmark = pytest.mark.cheap


def posteriors_of(rows, centers, weights=None):
    """Posteriors (n, J) and log-density of a mixture of standard Gaussians."""
    weights = np.full(len(centers), 1 / len(centers)) if weights is None else np.asarray(weights)
    joint = np.stack([w * multivariate_normal(c).pdf(rows) for w, c in zip(weights, centers, strict=True)], axis=1)
    return joint / joint.sum(axis=1, keepdims=True), np.log(joint.sum(axis=1))


@pytest.fixture
def cut(rng):
    """Two classes far apart in the plane, the first described by three overlapping parts and the second by two."""
    centers = np.array([[0, 0], [1.5, 0], [0, 1.5], [12, 0], [12, 1.5]], dtype=float)
    which = rng.integers(5, size=1500)
    rows = rng.normal(size=(1500, 2)) + centers[which]
    return rows, which, *posteriors_of(rows, centers)


@pytest.mark.parametrize("cost", COSTS)
def test_parts_of_a_class_are_put_together(cost, cut, rng):
    rows, _, posteriors, log_density = cut
    groups = merge(Landscape(rows, rng).parts(posteriors, log_density), 2, cost)
    assert adjusted_rand_score(groups, [0, 0, 0, 1, 1]) == 1


@pytest.mark.parametrize("ratio", [0.3, 0.75])
def test_valleys_tell_how_many_classes_there_are(ratio, cut, rng):
    rows, _, posteriors, log_density = cut
    groups = merge_until(Landscape(rows, rng).parts(posteriors, log_density), ratio, 0.005)
    assert adjusted_rand_score(groups, [0, 0, 0, 1, 1]) == 1


def test_light_parts_are_no_classes(rng):
    centers = np.array([[0.0, 0], [10, 0], [0, 30]])
    rows = np.concatenate([rng.normal(size=(n, 2)) + c for n, c in zip((1000, 1000, 15), centers, strict=True)])
    parts = Landscape(rows, rng).parts(*posteriors_of(rows, centers, [0.496, 0.496, 0.008]))
    assert merge_until(parts, 0.75, 0.005).max() == 2
    assert merge_until(parts, 0.75, 0.01).max() == 1


def test_what_is_known_of_a_union_is_what_its_rows_say(cut, rng):
    rows, _, posteriors, log_density = cut
    landscape = Landscape(rows, rng)
    union = landscape.parts(posteriors, log_density).union(1, 3)
    together = np.delete(posteriors, 3, axis=1)
    together[:, 1] += posteriors[:, 3]
    direct = landscape.parts(together, log_density)
    np.testing.assert_allclose(union.mass, direct.mass)
    np.testing.assert_allclose(union.products, direct.products)
    off = ~np.eye(4, dtype=bool)
    np.testing.assert_allclose(union.overlap[off], direct.overlap[off])


def test_a_saddle_is_the_pass_between_two_peaks(rng):
    """On a line the density at the lowest point between two Gaussians over their height."""
    rows = rng.normal(size=(20_000, 1)) + 4.0 * rng.integers(2, size=(20_000, 1))
    posteriors, log_density = posteriors_of(rows, np.array([[0.0], [4.0]]))
    ratio = Landscape(rows, rng).parts(posteriors, log_density).ratio[0, 1]
    expected = 2 * np.exp(-2.0) / (1 + np.exp(-8.0))
    assert ratio == pytest.approx(expected, rel=0.1)


def test_too_few_crossings_are_no_pass(rng):
    rows = np.concatenate([np.arange(50.0), np.arange(200.0, 250.0)])[:, None]
    landscape = Landscape(rows, rng)
    posteriors = np.column_stack([rows[:, 0] < 100, rows[:, 0] > 100]).astype(float)
    assert landscape.parts(posteriors, np.zeros(100)).saddle.max() == 0
    assert CROSSINGS > 1


def test_weights_equal_repeated_rows(rng):
    rows, counts = rng.normal(size=(300, 2)), rng.integers(1, 4, size=300)
    posteriors, log_density = posteriors_of(rows, np.array([[0.0, 0], [2, 0]]))
    weighed = Landscape(rows, np.random.default_rng(0), counts.astype(float)).parts(posteriors, log_density)
    repeated = Landscape(np.repeat(rows, counts, axis=0), np.random.default_rng(0)).parts(
        np.repeat(posteriors, counts, axis=0), np.repeat(log_density, counts)
    )
    np.testing.assert_allclose(weighed.mass, repeated.mass)
    np.testing.assert_allclose(weighed.overlap, repeated.overlap)


def test_the_medoid_is_of_the_majority(rng):
    truth = rng.integers(3, size=200)
    off = truth.copy()
    off[:4] = (off[:4] + 1) % 3
    center = medoid([rng.integers(3, size=200), (truth + 1) % 3, off, truth])
    assert center.chosen in {1, 3}
    assert center.table[1, 3] == pytest.approx(1)
    assert 0.5 < center.agreement < 0.8


def test_one_partition_agrees_with_itself():
    assert medoid([np.zeros(5, dtype=int)]).agreement == 1


def test_a_part_that_wins_no_row_goes_to_the_one_it_shares_rows_with(rng):
    rows = np.concatenate([rng.normal(size=(300, 2)), rng.normal(size=(300, 2)) + 8])
    one = (np.arange(600) < 300).astype(float)
    posteriors = np.column_stack([0.6 * one, 0.4 * one, 1 - one])
    parts = Landscape(rows, rng).parts(posteriors, multivariate_normal([0, 0]).logpdf(rows % 8))
    np.testing.assert_array_equal(merge_until(parts, 0.75, 0.005), [0, 0, 1])
