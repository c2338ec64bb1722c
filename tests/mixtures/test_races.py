"""Which starts go on: one of those that agree, none that is far behind."""

import numpy as np

from latentviews.mixtures.races import leaders, others, rivals


def test_the_best_of_starts_with_the_same_classes_leads_them():
    one, renamed, other = np.array([0, 0, 1, 1, 2, 2]), np.array([2, 2, 0, 0, 1, 1]), np.array([0, 1, 2, 0, 1, 2])
    assert leaders([-3.0, -2.0, -4.0], [one, renamed, other]) == [1, 1, 2]


def test_guesses_with_the_classes_of_an_earlier_one_are_left_out():
    one, other = np.eye(2)[[0, 0, 1, 1]], np.eye(2)[[0, 1, 0, 1]]
    kept = others([one], [one[:, ::-1], other, other[:, ::-1]])
    assert len(kept) == 1
    assert kept[0] is other


def test_rivals_are_near_the_best_and_reached_something_else():
    assert rivals(np.array([-1.02, -1.0, -1.0005, -1.0201, -1.2])) == [1, 0]
