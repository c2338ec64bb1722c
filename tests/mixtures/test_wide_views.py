"""Views of many columns: which of several polishes is taken."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from latentviews.mixtures.fit_rows import MixtureRows
from latentviews.mixtures.wide_views import IN_SUBSPACES, TRIES, found_again

pytestmark = pytest.mark.cheap
ROWS, RANK = 300, 3


class Told:
    """A polish that ends in given partitions, one after the other."""

    def __init__(self, partitions: list[np.ndarray]):
        self.partitions, self.starts = list(partitions), []

    def polish(self, rows: Any, starts: list[np.ndarray], *_: Any) -> Any:
        """The next partition."""
        self.starts.append(starts)
        return polished(self.partitions.pop(0))


def polished(labels: np.ndarray) -> Any:
    """What a polish gives, of these classes."""
    parameters = SimpleNamespace(weights=np.full(RANK, 1 / RANK))
    return SimpleNamespace(
        labels=labels, fit=SimpleNamespace(parameters=parameters), posteriors=lambda table: np.eye(RANK)[labels]
    )


def chosen(rng: np.random.Generator, partitions: list[np.ndarray], allowed: Any = None) -> tuple[np.ndarray, Told]:
    """The partition that is taken, and the polish that was asked for further ones."""
    rows = MixtureRows(rng.normal(size=(ROWS, 2)), ((0,), (1,)), (0, 1), (), allowed=allowed)
    asked, starts = Told(partitions[1:]), {"k-means": np.eye(RANK)[partitions[0]], IN_SUBSPACES: np.zeros((ROWS, RANK))}
    found = found_again(rows, polished(partitions[0]), starts, asked, rng, None, lambda *_: False)
    return found.labels, asked


def nearly(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The same classes by other names, with a row in a hundred elsewhere."""
    moved = np.where(rng.random(ROWS) < 0.01, rng.integers(RANK, size=ROWS), labels)
    return (moved + 1) % RANK


def test_classes_that_are_found_again_are_taken(rng):
    good = rng.integers(RANK, size=ROWS)
    others = [rng.integers(RANK, size=ROWS) for _ in range(2)]
    again = nearly(good, rng)

    labels, asked = chosen(rng, [others[0], good, others[1], again, rng.integers(RANK, size=ROWS)])

    assert any(np.array_equal(labels, one) for one in (good, again))
    assert len(asked.partitions) == 1  # two are alike: the fifth was not asked for
    assert all(len(starts) == 2 and not np.all(starts[1] == 0) for starts in asked.starts)  # clusters of their own


def test_no_more_are_tried_than_few(rng):
    _, asked = chosen(rng, [rng.integers(RANK, size=ROWS) for _ in range(TRIES + 2)])
    assert len(asked.starts) == TRIES - 1


def test_where_classes_are_known_the_first_is_taken(rng):
    first = rng.integers(RANK, size=ROWS)
    labels, asked = chosen(rng, [first, first], allowed=np.ones((ROWS, RANK)))
    assert np.array_equal(labels, first)
    assert not asked.starts
