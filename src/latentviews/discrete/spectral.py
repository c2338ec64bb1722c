"""The spectral estimate of latent classes: the delta kernel's features of three groups of items on the core path."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from latentviews._numbers import TINY
from latentviews._validation import UnsupportedError
from latentviews.core.features.indicators import OneHotFeatures
from latentviews.core.spectral import spectral_fit
from latentviews.core.tensors import JointDiagonalization
from latentviews.core.views import fit_views
from latentviews.discrete.answers import Answers, per_item
from latentviews.discrete.expectation import ClassParameters

GROUPINGS = 3  # ways in which items are put into three groups
JOINT_CELLS = 256  # at most so many combinations of the answers of a group, to be taken as one answer
BORDER = 1e-3  # the least weight and coefficient of a start: EM never leaves zero

Groups = Sequence[Sequence[int]]


@dataclass(frozen=True, eq=False)
class ItemIndicators:
    """The indicators of the answers of groups of items, one view per group, stacked: an `Embed` for tables of codes.

    A missing answer has no indicator. Where answers are missing by chance that scales the indicators of an item, which
    the item's probabilities, scaled to sum to one, do not show.
    """

    groups: Groups
    sizes: tuple[int, ...]

    @property
    def tails(self) -> list[None]:
        """The indicators are the features."""
        return [None] * len(self.groups)

    def __call__(self, batch: np.ndarray) -> list[np.ndarray]:
        """The indicators of every group, one row per row."""
        codes = np.where(np.isnan(batch), -1, batch).astype(int)
        return [
            np.asarray(_dense(Answers(codes[:, list(group)], np.ones(len(codes)), self._sizes(group)).indicators))
            for group in self.groups
        ]

    def present(self, batch: np.ndarray) -> None:
        """Every row has every group."""

    def item_probabilities(self, vectors: Sequence[np.ndarray]) -> np.ndarray:
        """The part of every item in vectors of the groups, (Σ sizes, k), in the order of the items."""
        parts: dict[int, np.ndarray] = {}
        for group, stacked in zip(self.groups, vectors, strict=True):
            ends = np.cumsum(self._sizes(group))[:-1]
            parts.update(zip(group, np.split(stacked, ends), strict=True))
        return np.concatenate([parts[item] for item in range(len(self.sizes))])

    def _sizes(self, group: Sequence[int]) -> tuple[int, ...]:
        return tuple(self.sizes[item] for item in group)


def _dense(table: Any) -> Any:
    return table if isinstance(table, np.ndarray) else table.toarray()


def spectral_starts(answers: Answers, k: int, rng: np.random.Generator) -> Iterator[ClassParameters]:
    """The spectral estimates from several groupings of the items, those whose moments carry k classes."""
    if k == 1:
        yield ClassParameters(np.ones((1, 1)), answers.margins[:, None, None])
        return
    for groups in _groupings(len(answers.sizes), rng):
        for estimate in (stacked_estimate, joint_estimate):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    weights, probabilities = estimate(answers, k, groups, rng)
            except (UnsupportedError, np.linalg.LinAlgError):
                continue
            yield _among_probabilities(answers, weights, probabilities)


def _groupings(n_items: int, rng: np.random.Generator) -> Iterator[Groups]:
    """Three groups of items in turn, then in random orders."""
    if n_items < 3:
        return
    orders = [np.arange(n_items), *(rng.permutation(n_items) for _ in range(GROUPINGS - 1 if n_items > 3 else 0))]
    for order in orders:
        yield [sorted(int(item) for item in order[i::3]) for i in range(3)]


def stacked_estimate(
    answers: Answers, k: int, groups: Groups, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Raw weights and item probabilities (Σ sizes, k) where a group's features are the indicators of its items."""
    embed = ItemIndicators(groups, answers.sizes)
    found = spectral_fit(answers.as_table(), embed, k, JointDiagonalization(), rng, weights=answers.counts)
    return found.weights, embed.item_probabilities(found.vectors)


def joint_estimate(answers: Answers, k: int, groups: Groups, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The same where the answers to all items of a group are one answer, which carries more classes than the items do.

    Rows with a missing answer in a group do not have the group.
    """
    if any(np.prod([float(answers.sizes[item]) for item in group]) > JOINT_CELLS for group in groups):
        raise UnsupportedError("A group of items has too many combinations of answers to be taken as one.")
    table = answers.as_table()
    if any(np.isnan(table[:, list(group)]).any(axis=1).all() for group in groups):
        raise UnsupportedError("No row has all answers of a group.")
    columns = tuple(list(group) for group in groups)
    views = fit_views(table, columns, [OneHotFeatures()] * 3, rng, range(3))
    found = spectral_fit(table, views, k, JointDiagonalization(), rng, weights=answers.counts)
    parts: dict[int, np.ndarray] = {}
    for group, phi, vectors in zip(groups, views.features, found.vectors, strict=True):
        cells: Any = phi
        for place, item in enumerate(group):
            codes = cells.categories_[:, place].astype(int)
            parts[item] = np.zeros((answers.sizes[item], k))
            np.add.at(parts[item], codes, vectors)
    return found.weights, np.concatenate([parts[item] for item in range(len(answers.sizes))])


def _among_probabilities(answers: Answers, weights: np.ndarray, probabilities: np.ndarray) -> ClassParameters:
    """A start from an estimate that need not be of probabilities."""
    least = BORDER * np.maximum(answers.margins, TINY)[:, None]
    coefficients = np.maximum(probabilities, least)
    weights = np.maximum(weights / weights.sum(), BORDER)
    scaled = coefficients / np.maximum(per_item(coefficients, answers), TINY)
    return ClassParameters((weights / weights.sum())[None], scaled[:, None])
