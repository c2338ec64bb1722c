"""Segments are those of least cost, a quiet series stays whole, and changes are found where they are."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from scipy import stats

from latentviews import ChangePoints, Delta, Gaussian
from latentviews.core.kernels.base import UnitHeight


def literal_cost(gram, start, end):
    """Σ k(x_i, x_i) − (1/n) Σ k(x_i, x_j)."""
    part = gram[start:end, start:end]
    return np.trace(part) - part.sum() / (end - start)


def literal_segments(gram, n_changes, min_size):
    """The changes of least total cost among all there are."""
    n = len(gram)
    choices = {}
    for changes in combinations(range(1, n), n_changes):
        ends = [0, *changes, n]
        if min(np.diff(ends)) >= min_size:
            choices[changes] = sum(literal_cost(gram, s, t) for s, t in pairwise(ends))
    return min(choices, key=choices.__getitem__), min(choices.values())


@pytest.mark.parametrize("n_changes", [1, 2, 3])
@pytest.mark.parametrize("kernel", [Gaussian(0.8), Delta()], ids=repr)
def test_segments_are_the_best_of_all(kernel, n_changes, rng):
    x = np.round(rng.normal(size=(16, 1)) + np.repeat([0.0, 2.0, -1.0, 1.0], 4)[:, None])
    expected, cost = literal_segments(UnitHeight(kernel).gram(x, x), n_changes, 2)

    found = ChangePoints(n_changes, kernel=kernel, random_state=0).fit(x)

    np.testing.assert_allclose(found.cost_, cost, rtol=1e-8)
    np.testing.assert_array_equal(found.changes_, expected)


def test_a_penalty_is_what_a_change_must_save(rng):
    x = np.concatenate([rng.normal(size=(30, 1)), rng.normal(3.0, size=(30, 1))])
    gains = [ChangePoints(k, random_state=0).fit(x).cost_ for k in (0, 1, 2)]

    for penalty, n_changes in [(gains[0] - gains[1] + 1e-6, 0), (gains[0] - gains[1] - 1e-6, 1)]:
        assert len(ChangePoints(penalty=penalty, random_state=0).fit(x).changes_) == n_changes


def test_a_series_without_changes_stays_whole_at_the_stated_rate(rng):
    alarms = [
        len(
            ChangePoints(false_alarm=0.1, n_landmarks=20, n_permutations=99, random_state=i)
            .fit(rng.normal(size=(60, 1)))
            .changes_
        )
        > 0
        for i in range(100)
    ]

    low, high = stats.binom.ppf([1e-4, 1 - 1e-4], 100, 0.1)
    assert low <= sum(alarms) <= high


def test_changes_in_spread_alone_are_found_among_many_rows(rng):
    spread = np.repeat([1.0, 3.0, 1.0], [7003, 4000, 6001])
    x = rng.normal(size=(len(spread), 2)) * spread[:, None]

    found = ChangePoints(n_candidates=100, n_permutations=50, random_state=0).fit(x)

    assert len(found.changes_) == 2
    assert np.all(np.abs(found.changes_ - [7003, 11003]) < 20)  # far within the stride of 171 rows
    np.testing.assert_array_equal(ChangePoints(2, n_candidates=100, random_state=0).fit(x).changes_, found.changes_)


def test_blocks_keep_what_neighbours_share(rng):
    """A slow autoregression looks like many changes where rows are taken one by one."""
    noise = rng.normal(size=600)
    x = np.zeros(600)
    for i in range(1, 600):
        x[i] = 0.95 * x[i - 1] + noise[i]
    alone, together = (
        ChangePoints(block_size=size, n_landmarks=30, n_permutations=50, random_state=0).fit(x[:, None]).changes_
        for size in (1, 75)
    )

    assert len(together) < len(alone) / 2


@pytest.mark.parametrize(("size", "n_blocks"), [(61, "1 block"), (20, "3 blocks")])
def test_blocks_too_few_to_tell_a_change_are_refused(size, n_blocks, rng):
    """Random orders of few blocks part them as a change does, so that none saves more than 19 of 20 orders do."""
    x = np.repeat([0.0, 5.0], 30)[:, None] + rng.normal(size=(60, 1))

    with pytest.raises(ValueError, match=f"block_size={size} makes {n_blocks} of 60 rows.* block_size of at most 7,"):
        ChangePoints(block_size=size, random_state=0).fit(x)
    for options in ({"block_size": 7}, {"block_size": size, "penalty": 5.0}, {"block_size": size, "n_changes": 1}):
        np.testing.assert_array_equal(ChangePoints(**options, random_state=0).fit(x).changes_, [30])


def test_rows_get_the_number_of_their_segment(rng):
    x = np.concatenate([rng.normal(size=(20, 1)), rng.normal(9.0, size=(10, 1))])

    labels = ChangePoints(1, random_state=0).fit_predict(x)

    np.testing.assert_array_equal(labels, np.repeat([0, 1], [20, 10]))


def test_a_constant_series_has_no_change():
    assert len(ChangePoints(random_state=0).fit(np.ones((50, 2))).changes_) == 0


def test_one_row_is_a_segment():
    assert len(ChangePoints(random_state=0).fit(np.ones((1, 2))).changes_) == 0


def test_candidates_that_have_no_room_for_the_changes_asked_for_are_refused(rng):
    with pytest.raises(ValueError, match="The 9 places that n_candidates=10 leaves have room for 9 changes"):
        ChangePoints(min_size=12, n_changes=11, n_candidates=10).fit(rng.normal(size=(150, 1)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_changes": 9}, "10 rows in segments of at least 2 have room for 4 changes; n_changes asks for 9"),
        ({"penalty": -1.0}, "penalty must be"),
        ({"false_alarm": 1.5}, "false_alarm must be"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(options, message, rng):
    with pytest.raises(ValueError, match=message):
        ChangePoints(**options).fit(rng.normal(size=(10, 1)))
