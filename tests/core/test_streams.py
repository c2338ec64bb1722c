import numpy as np
import pytest
from scipy import sparse, stats

from catalogue import SOURCES, Batches, split
from latentviews import MultiViewMixture
from latentviews.core import streams
from latentviews.core.streams import Total
from latentviews.datasets import make_multiview

pytestmark = pytest.mark.cheap

sources = pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES.keys())


def moments(batch, weights):
    weighted = streams.weigh(batch, weights)
    return weighted.sum(axis=0), weighted.T @ batch


@sources
def test_totals_are_the_same_wherever_the_rows_lie(source, rng):
    x = rng.normal(size=(101, 3))

    found = streams.total(source(x), moments)

    assert found.weight == 101
    np.testing.assert_allclose(found.sums[0], x.sum(axis=0), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.sums[1], x.T @ x, rtol=1e-12, atol=1e-12)


@sources
def test_a_mean_is_the_mean_over_all_rows(source, rng):
    x = rng.normal(size=(101, 3))

    np.testing.assert_allclose(streams.mean(source(x), moments)[0], x.mean(axis=0), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("size", [1, 2, 7, 100, 1000])
def test_batches_of_any_size_hold_every_row_once(size, rng):
    x, weights = rng.normal(size=(100, 2)), rng.uniform(size=100)

    parts = list(streams.batches(x, weights, size))

    np.testing.assert_array_equal(np.concatenate([rows for rows, _ in parts]), x)
    np.testing.assert_array_equal(np.concatenate([weight for _, weight in parts]), weights)
    assert max(len(rows) for rows, _ in parts) <= size


def test_an_array_longer_than_a_batch_is_cut(rng):
    x = rng.normal(size=(2 * streams.BATCH + 5, 1))

    assert [len(rows) for rows, _ in streams.batches(x)] == [streams.BATCH, streams.BATCH, 5]
    np.testing.assert_allclose(streams.mean(x, moments)[1], x.T @ x / len(x), rtol=1e-12)


def test_totals_of_disjoint_rows_add(rng):
    x, weights = rng.normal(size=(60, 2)), rng.uniform(size=60)

    merged = streams.total(x[:25], moments, weights[:25]).merge(streams.total(x[25:], moments, weights[25:]))

    whole = streams.total(x, moments, weights)
    assert isinstance(merged, Total)
    assert merged.weight == pytest.approx(whole.weight)
    for part, expected in zip(merged.mean(), whole.mean(), strict=True):
        np.testing.assert_allclose(part, expected, rtol=1e-12)


def test_totals_with_different_numbers_of_sums_do_not_merge():
    with pytest.raises(ValueError, match="argument 2 is longer"):
        Total((np.zeros(1),), 1.0).merge(Total((np.zeros(1), np.zeros(1)), 1.0))


def test_whole_weights_equal_repeated_rows(rng):
    x, weights = rng.normal(size=(50, 2)), rng.integers(0, 4, size=50)

    weighted = streams.total(x, moments, weights.astype(float))
    repeated = streams.total(np.repeat(x, weights, axis=0), moments)

    assert weighted.weight == repeated.weight
    np.testing.assert_allclose(weighted.sums[1], repeated.sums[1], rtol=1e-12)


def test_weights_in_a_stream_equal_weights_beside_an_array(rng):
    x, weights = rng.normal(size=(50, 2)), rng.uniform(size=50)
    pairs = list(zip(split(x, 8), split(weights, 8), strict=True))

    beside, inside = streams.mean(x, moments, weights), streams.mean(pairs, moments)

    np.testing.assert_allclose(inside[1], beside[1], rtol=1e-12)


def test_sparse_rows_are_weighed_like_dense_ones(rng):
    x, weights = rng.normal(size=(20, 3)), rng.uniform(size=20)

    found = streams.weigh(sparse.csr_array(x), weights)

    assert sparse.issparse(found)
    np.testing.assert_allclose(found.toarray(), streams.weigh(x, weights), rtol=1e-12)
    assert streams.weigh(x, None) is x


def test_sums_are_in_double_precision(rng):
    x = rng.normal(size=(100, 2)).astype(np.float32)

    assert all(part.dtype == np.float64 for part in streams.total(x, moments).sums)


def test_an_iterable_is_read_again_for_every_pass(rng):
    data = Batches(split(rng.normal(size=(30, 2)), 10))

    first, second = streams.mean(data, moments), streams.mean(data, moments)

    assert data.reads == 2
    np.testing.assert_array_equal(first[1], second[1])


@pytest.mark.parametrize(
    "data", [(row for row in [np.zeros((1, 1))]), iter([np.zeros((1, 1))]), 3], ids=["generator", "iterator", "number"]
)
def test_what_cannot_be_read_twice_is_refused(data):
    with pytest.raises(TypeError, match=r"an iterable that can be read more than once; got \w+, which cannot"):
        streams.mean(data, moments)


@pytest.mark.parametrize("data", [[], np.zeros((0, 2)), [(np.zeros((3, 1)), np.zeros(3))]], ids=repr)
def test_data_without_weight_are_refused(data):
    with pytest.raises(ValueError, match="The data hold no row of positive weight; at least one is needed"):
        streams.mean(data, moments)


def test_a_sample_of_no_batch_is_refused(rng):
    with pytest.raises(ValueError, match="The data hold no batch; at least one row is needed"):
        streams.sample([], 5, rng)


@sources
def test_a_sample_is_bounded_and_holds_different_rows_in_order(source, rng):
    x = np.arange(100.0)[:, None]

    rows = streams.sample(source(x), 20, rng)[0]

    assert rows.shape == (20, 1)
    assert np.all(np.diff(rows[:, 0]) > 0)


@sources
def test_a_sample_is_a_function_of_the_generator(source):
    x = np.arange(100.0)[:, None]

    first, again, other = (streams.sample(source(x), 20, np.random.default_rng(seed))[0] for seed in (5, 5, 6))

    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@sources
def test_a_sample_of_all_is_all(source, rng):
    x = rng.normal(size=(30, 2))

    rows = streams.sample(source(x), 1000, rng)[0]

    np.testing.assert_array_equal(rows, x)


def test_a_sample_without_a_size_is_the_data(rng):
    x, data = rng.normal(size=(30, 2)), [np.zeros((3, 2))]

    assert streams.sample(x, None, rng)[0] is x
    assert streams.sample(data, None, rng)[0] is data


def test_a_sample_keeps_the_weights_of_its_rows(rng):
    x = np.arange(100.0)[:, None]
    pairs = [(part, 2 * part[:, 0]) for part in split(x, 9)]

    for rows, weights in (streams.sample(x, 20, rng, 2 * x[:, 0]), streams.sample(pairs, 20, rng)):
        np.testing.assert_array_equal(weights, 2 * rows[:, 0])


def test_a_sample_takes_along_what_belongs_to_its_rows(rng):
    x = np.arange(100.0)[:, None]

    rows, nothing, labels = streams.sample(x, 20, rng, None, 3 * x[:, 0])

    assert nothing is None
    np.testing.assert_array_equal(labels, 3 * rows[:, 0])


@pytest.mark.parametrize("name", ["array", "list", "single rows"])
def test_a_sample_is_uniform_over_rows(name, rng):
    x, source, n = np.arange(20.0)[:, None], SOURCES[name], 600

    counts = np.zeros(20)
    for _ in range(n):
        counts[streams.sample(source(x), 5, rng)[0][:, 0].astype(int)] += 1

    # one false alarm in a million runs; without replacement the statistic is χ² times (20 - 5)/19
    statistic = np.sum((counts - n / 4) ** 2 / (n / 4)) * 19 / 15
    assert stats.chi2.sf(statistic, 19) > 1e-6


def test_batches_that_the_pilot_holds_whole_give_the_fit_of_one_array():
    X = make_multiview(900, 2, random_state=0).X

    whole, parts = (MultiViewMixture(2, random_state=0).fit(rows) for rows in (X, Batches(np.array_split(X, 7))))

    np.testing.assert_allclose(parts.weights_, whole.weights_, atol=1e-12)
    np.testing.assert_allclose(parts.score_samples(X), whole.score_samples(X), atol=1e-10)
