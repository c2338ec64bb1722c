"""Columns that depend on each other inside the classes are put into one view."""

import numpy as np
import pandas as pd
import pytest

from latentviews.datasets import make_multiview
from latentviews.diagnosis.grouping import _joined, _weighted_median, suggest_views


def ties(size, **strengths):
    table = np.full((size, size), 0.05)
    np.fill_diagonal(table, np.nan)
    for pair, value in strengths.items():
        s, t = int(pair[1]), int(pair[2])
        table[s, t] = table[t, s] = value
    return table


@pytest.mark.parametrize(
    ("strength", "groups"),
    [
        (ties(4), [(0,), (1,), (2,), (3,)]),
        (ties(4, p13=0.5), [(0,), (1, 3), (2,)]),
        (ties(3, p01=0.9), [(0,), (1,), (2,)]),
        (ties(4, p01=0.9, p23=0.8), [(0, 1), (2,), (3,)]),
        (ties(5, p01=0.9, p12=0.6, p02=0.3), [(0, 1, 2), (3,), (4,)]),
        (ties(5, p01=0.9, p12=0.4), [(0, 1), (2,), (3,), (4,)]),
        (ties(6, p01=0.9, p12=0.9, p02=0.9, p23=0.9, p03=0.9, p13=0.9), [(0, 1), (2, 3), (4,), (5,)]),
    ],
    ids=["none", "a pair", "three columns", "three views left", "a triple", "no chains", "none wider than three"],
)
def test_groups_join_their_strongest_ties(strength, groups):
    found = _joined(strength)

    if groups == [(0, 1), (2, 3), (4,), (5,)]:  # equal ties may join in any order
        assert sorted(map(len, found)) in ([1, 1, 1, 3], [1, 1, 2, 2])
    else:
        assert found == groups


def test_the_median_follows_the_weights():
    values, weights = np.array([0.1, 0.9, 0.3]), np.array([0.2, 0.3, 0.5])

    assert _weighted_median(values, weights) == 0.3
    assert _weighted_median(np.array([0.1, np.nan, 0.3]), np.array([0.4, 0.5, 0.1])) == 0.1
    assert _weighted_median(np.full(2, np.nan), np.ones(2)) == 0.0


def test_a_column_goes_with_its_noisy_copy(rng):
    X = make_multiview(800, 3, n_views=4, random_state=rng).X
    inside = 0.9 * (X[:, 1] - X[:, 1].mean()) + rng.normal(scale=0.5, size=len(X))
    frame = pd.DataFrame(np.column_stack([X, inside]), columns=list("abcde"))

    found = suggest_views(frame, 3, random_state=rng)

    assert found.views == ((0,), (1, 4), (2,), (3,))
    assert found.summary().startswith("Put together: b and e (tied by 0.")


def test_independent_columns_stay_apart(rng):
    found = suggest_views(make_multiview(800, 2, n_views=4, random_state=rng).X, 2, random_state=rng)

    assert found.views == ((0,), (1,), (2,), (3,))
    assert found.summary().startswith("Every column is a view: in a first fit of 2 classes")


def test_three_columns_are_three_views():
    found = suggest_views(make_multiview(300, 2, random_state=0).X, 2, random_state=0)

    assert "there are no more columns" in found.summary()


def test_too_many_columns_are_one_sentence():
    with pytest.raises(ValueError, match="at most 60 columns; got 61"):
        suggest_views(np.random.default_rng(0).normal(size=(50, 61)), 2)
