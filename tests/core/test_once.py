"""What a fit reads off a column, read once."""

import numpy as np
import pytest

from latentviews import KernelHMM, MultiViewMixture
from latentviews.core.kernels import bandwidths
from latentviews.core.kernels.once import distinct, once, quantiles, reading_once
from latentviews.datasets import make_hmm, make_multiview

pytestmark = pytest.mark.cheap


def test_a_column_is_read_once_inside_and_every_time_outside(rng):
    asked = []

    @once
    def total(x, power=1):
        asked.append(power)
        return float((x**power).sum())

    @reading_once
    def inside(x):
        total(x)

    @reading_once
    def fit(x):
        assert total(x) == total(x.copy()) == total(x[::-1][::-1])
        inside(x)  # one inside another knows what is known
        assert asked == [1]
        total(x, 2)
        total(x + 1)
        total(x.astype(np.float32))

    x = rng.normal(size=50)
    fit(x)
    assert asked == [1, 2, 1, 1]
    total(x)
    inside(x)  # nothing is left of what was read before
    assert asked == [1, 2, 1, 1, 1, 1]


def test_columns_that_differ_anywhere_are_read_apart_also_where_one_was_changed_since(rng):
    asked = []

    @once
    def total(x):
        asked.append(len(x))
        return float(x.sum())

    @reading_once
    def fit(x):
        for place in range(0, len(x), 7):
            before = total(x)
            x[place] += 1.0
            assert total(x) == pytest.approx(before + 1.0)
        assert total(x[:0]) == 0.0
        assert total(x[:, None]) == total(x)

    fit(rng.normal(size=100))
    assert asked == [100] * 16 + [0, 100]


@pytest.mark.parametrize("size", [0, 1, 30])
def test_distinct_values_and_counts_are_those_of_numpy(rng, size):
    x = np.round(rng.normal(size=size), 1)
    values, counts = np.unique(x, return_counts=True)
    found = distinct(x)
    np.testing.assert_array_equal(found[0], values)
    np.testing.assert_array_equal(found[1], counts)
    with pytest.raises(ValueError, match="read-only"):
        found[0][...] = 0.0


@pytest.mark.parametrize(
    ("model", "rows"),
    [
        (MultiViewMixture(2, random_state=0), lambda: make_multiview(400, 2, random_state=0).X),
        (KernelHMM(2, random_state=0), lambda: make_hmm(400, random_state=0)[0]),
    ],
    ids=["mixture", "chain"],
)
def test_a_fit_finds_the_rules_bandwidth_of_a_column_once(model, rows, monkeypatch):
    found = []
    original = bandwidths.isj_binned
    monkeypatch.setattr(
        bandwidths,
        "isj_binned",
        lambda counts, step, n: found.append((counts.tobytes(), step, n)) or original(counts, step, n),
    )
    model.fit(rows())
    assert found
    assert len(found) == len(set(found))


@pytest.mark.parametrize("decimals", [0, 1, 15])
@pytest.mark.parametrize("n", [1, 2, 5, 100, 1001])
def test_quantiles_off_the_order_of_a_column_are_numpys(n, decimals, rng):
    x = rng.normal(size=n).round(decimals)
    shares = [0.0, 0.005, 0.25, 0.5, 0.75, 0.995, 1.0]

    np.testing.assert_array_equal(quantiles(x, shares), np.quantile(x, shares))


def test_a_column_with_missing_values_is_found_again():
    asked = []

    @once
    def size(x):
        asked.append(x)
        return x.size

    column = np.r_[np.nan, np.arange(300.0)][:, None]

    assert reading_once(lambda: (size(column), size(column.copy()), size(np.array(2.0))))() == (301, 301, 1)
    assert len(asked) == 2
