"""Which starts of a polish are worth going on with: those that differ from each other, and are not far behind."""

from collections.abc import Sequence

import numpy as np

from latentviews.metrics import adjusted_rand

MARGIN = 0.05  # starts so much worse per row, after some steps, are given up
SAME = 1e-3  # starts so near per row have found the same classes
ALIKE = 0.98  # partitions with so high an adjusted Rand index are one start
AGREED = 0.7  # partitions with a lower one are of other classes


def leaders(objectives: Sequence[float], labels: Sequence[np.ndarray]) -> list[int]:
    """The best of the starts that have the same classes as each, by number."""
    ahead: list[int] = []
    found = list(range(len(objectives)))
    for i in sorted(found, key=lambda i: -objectives[i]):
        found[i] = next((j for j in ahead if adjusted_rand(labels[i], labels[j]) >= ALIKE), i)
        if found[i] == i:
            ahead.append(i)
    return found


def agreements(objectives: Sequence[float] | np.ndarray, labels: Sequence[np.ndarray]) -> np.ndarray:
    """How well every start's partition agrees with that of the best, as adjusted Rand indices."""
    best = labels[int(np.argmax(objectives))]
    return np.array([adjusted_rand(each, best) for each in labels])


def others(guesses: Sequence[np.ndarray], further: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The further guesses whose classes no earlier one has: k-means with another seed often ends where it did."""
    known = [guess.argmax(axis=1) for guess in guesses]
    kept = []
    for guess in further:
        labels = guess.argmax(axis=1)
        if all(adjusted_rand(labels, earlier) < ALIKE for earlier in known):
            known.append(labels)
            kept.append(guess)
    return kept


def rivals(objectives: np.ndarray) -> list[int]:
    """The best start, and those near it that reached something else, one for each thing reached."""
    gaps = objectives.max() - objectives
    found: list[int] = []
    for i in np.argsort(gaps, kind="stable").tolist():
        if gaps[i] < MARGIN and all(gaps[i] - gaps[j] > SAME for j in found):
            found.append(i)
    return found
