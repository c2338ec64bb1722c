"""Whether the rows of a class look like several classes."""

from collections.abc import Sequence

import numpy as np

from latentviews._validation import UnsupportedError
from latentviews.core.selection import directions_rank
from latentviews.diagnosis.dependence import ClassViews

FEWEST_MEMBERS = 50  # of a class: fewer would find nothing
LOOKS = ((0.05, 19), (0.01, 99))  # level and permutations; a class that looks like one at first is not looked at again
DIRECTIONS = 6  # of a view, in which more than one class would show


def classes_within(classes: Sequence[ClassViews], rng: np.random.Generator) -> np.ndarray:
    """How many classes the rows of every class look like, (k,): the rank of the dependence between its views.

    It is more than one by chance in a hundredth of the classes at most: all looks must find it. Zero where too few
    rows, or views that vary, are there to tell.
    """
    return np.array([_classes(_directions(views), rng) for views in classes])


def _directions(views: ClassViews) -> list[np.ndarray]:
    """The leading directions of views that enough rows have, (n, at most 6); NaN where one is missing."""
    found = []
    for t, phi in views.features.items():
        if len(phi) >= FEWEST_MEMBERS:
            found.append(np.full((views.n_rows, min(DIRECTIONS, phi.shape[1])), np.nan))
            found[-1][views.here[t]] = phi[:, :DIRECTIONS]
    return found


def _classes(directions: Sequence[np.ndarray], rng: np.random.Generator) -> int:
    if len(directions) < 2:
        return 0
    count = 0
    for level, n_permutations in LOOKS:
        try:
            count = directions_rank(directions, rng, level, n_permutations).n_components
        except UnsupportedError:
            return 0
        if count == 1:
            break
    return count
