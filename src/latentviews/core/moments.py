"""Averages of products of feature vectors: sums over batches, never the D × D × D tensor.

Feature vectors are φ = raw @ tail. Sums are taken of the raw vectors, which are cheaper, and become sums of feature
vectors once: whoever asks for moments sees feature coordinates alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from latentviews._arrays import in_library_of, namespace, to_numpy
from latentviews._numbers import TINY
from latentviews._validation import UnsupportedError
from latentviews.core.streams import Total, is_array, total, weigh

Pairs = dict[tuple[int, int], np.ndarray]


@runtime_checkable
class Embed(Protocol):
    """What takes a batch of rows to raw vectors, one array per view, with φ_t = raw_t @ tails[t]."""

    @property
    def tails(self) -> Sequence[np.ndarray | None]:
        """What takes the raw vectors of every view to feature vectors; None where they are those already."""

    def __call__(self, batch: Any) -> Sequence[Any]:
        """The raw vectors of every view, zero where it is missing."""

    def present(self, batch: Any) -> np.ndarray | None:
        """One where a row has a view and zero where it is missing, (n, n_views); None where nothing is missing."""


@runtime_checkable
class Whitens(Protocol):
    """What takes views down to k coordinates: z_g = Σ_{t∈g} down_tᵀ φ_t for every group g of views."""

    @property
    def groups(self) -> Sequence[Sequence[int]]:
        """The views that are whitened together."""

    @property
    def down(self) -> Sequence[np.ndarray]:
        """The maps of feature vectors, (D_t, k), one per view."""


def from_raw(embed: Embed, t: int, moment: np.ndarray) -> np.ndarray:
    """tailᵀ @ moment: a sum of raw vectors of view t as a sum of feature vectors."""
    tail = embed.tails[t]
    return moment if tail is None else np.tensordot(tail, moment, axes=(0, 0))


def to_raw(embed: Embed, t: int, functional: np.ndarray) -> np.ndarray:
    """Tail @ functional: what acts on feature vectors of view t, acting on raw vectors."""
    tail = embed.tails[t]
    return functional if tail is None else tail @ functional


def feature_vectors(batch: Any, embed: Embed) -> list[np.ndarray]:
    """φ_t = raw_t @ tail_t of a batch, one array per view, zero where it is missing."""
    vectors = zip(embed(batch), embed.tails, strict=True)
    return [to_numpy(raw) if tail is None else to_numpy(raw @ in_library_of(tail, raw)) for raw, tail in vectors]


def pair_moments(data: Any, embed: Embed, weights: Any = None) -> Pairs:
    """C_st = E[φ_s φ_tᵀ] for every pair of views s < t, over the rows that have both (Song et al. 2014, eq. 8)."""
    if is_array(data) and data.shape[0] < min((len(tail) for tail in embed.tails if tail is not None), default=0):
        embed = InFeatures(embed)
    return as_pairs(pair_total(data, embed, weights), embed)


class InFeatures:
    """An embedding whose raw vectors are the feature vectors: cheaper where rows are fewer than raw coordinates."""

    def __init__(self, embed: Embed):
        self.embed = embed
        self.tails = (None,) * len(embed.tails)

    def __call__(self, batch: Any) -> list[np.ndarray]:
        """The feature vectors of every view, zero where it is missing."""
        return feature_vectors(batch, self.embed)

    def present(self, batch: Any) -> np.ndarray | None:
        """One where a row has a view and zero where it is missing, (n, n_views); None where nothing is missing."""
        return self.embed.present(batch)


def pair_total(data: Any, embed: Embed, weights: Any = None) -> Total:
    """The sums of raw vectors that the C_st of `pair_moments` are made of; those of disjoint rows merge."""

    def row_sum(batch: Any, weight: Any) -> tuple[Any, ...]:
        raw = embed(batch)
        here, weighed = _presence(embed, batch, raw), [weigh(view, weight) for view in raw]
        counts = here.T @ weigh(here, _on_host(weight))
        return (counts, *(weighed[s].T @ raw[t] for s, t in combinations(range(len(raw)), 2)))

    return total(data, row_sum, weights)


def as_pairs(sums: Total, embed: Embed) -> Pairs:
    """The C_st of `pair_moments` from the sums of `pair_total`."""
    counts, *products = sums.sums
    keys = list(combinations(range(len(counts)), 2))
    for s, t in keys:
        if not counts[s, t] > 0:
            raise UnsupportedError(
                f"No row has both view {s} and view {t}, so nothing is known of how they go together."
            )
    raw = {(s, t): product / counts[s, t] for (s, t), product in zip(keys, products, strict=True)}
    return {(s, t): from_raw(embed, t, from_raw(embed, s, moment).T).T for (s, t), moment in raw.items()}


def _presence(embed: Embed, batch: Any, raw: Sequence[Any]) -> np.ndarray:
    """One where a row has a view and zero where it is missing, (n, n_views)."""
    here = embed.present(batch)
    return np.ones((raw[0].shape[0], len(raw))) if here is None else here


def _on_host(weights: Any) -> np.ndarray | None:
    return None if weights is None else to_numpy(weights)


@dataclass(frozen=True, eq=False)
class Projection:
    """Groups of views in k coordinates, z_g = Σ_{t∈g} down_tᵀ φ_t: ξ(x) of Song et al. (2014), and itself an `Embed`.

    A row has a group where it has all of its views, and its z_g is zero where not.
    """

    embed: Embed
    groups: Sequence[Sequence[int]]
    down: Sequence[np.ndarray]  # (D_t, k), one per view

    @property
    def tails(self) -> Sequence[None]:
        """The z_g are what they are."""
        return [None] * len(self.groups)

    def __call__(self, batch: Any) -> list[Any]:
        """The z_g of a batch, one array per group."""
        raw = self.embed(batch)
        return self.of(raw, self.whole(_presence(self.embed, batch, raw)))

    def present(self, batch: Any) -> np.ndarray | None:
        """One where a row has all views of a group, else zero, (n, n_groups); None where nothing is missing."""
        here = self.embed.present(batch)
        return None if here is None else self.whole(here)

    def whole(self, here: np.ndarray) -> np.ndarray:
        """The groups that rows with these views have, (n, n_groups)."""
        return np.stack([here[:, list(group)].prod(axis=1) for group in self.groups], axis=1)

    def of(self, raw: Sequence[Any], whole: np.ndarray) -> list[Any]:
        """The z_g of rows with these raw vectors and groups."""
        z = [sum(raw[t] @ in_library_of(self._on_raw[t], raw[t]) for t in group) for group in self.groups]
        return [vectors * in_library_of(whole[:, [i]], vectors) for i, vectors in enumerate(z)]

    @cached_property
    def _on_raw(self) -> dict[int, np.ndarray]:
        return {t: to_raw(self.embed, t, self.down[t]) for group in self.groups for t in group}


class WhitenedMoments(NamedTuple):
    """Moments of whitened vectors z_1, …, z_n in k coordinates, and their products with features."""

    pairs: np.ndarray  # (n, n, k, k), E[z_i z_jᵀ]
    triple: np.ndarray  # (k, k, k), the mean over i < j < l of E[z_i ⊗ z_j ⊗ z_l]
    components: tuple[np.ndarray, ...]  # (D_t, n, k) per view, E[ψ_t z_iᵀ]


def whitened_moments(
    data: Any, embed: Embed, whitening: Whitens, weights: Any = None, component_maps: Embed | None = None
) -> WhitenedMoments:
    """E[z_i z_jᵀ], E[z_i ⊗ z_j ⊗ z_l] and E[ψ_t z_iᵀ] in one pass: step 2 of Song et al. (2014), 5.1.

    ``component_maps`` gives the vectors ψ_t in which components are wanted, φ_t itself by default. Every moment is
    over the rows that have the views it takes.
    """
    sums = whitened_total(data, embed, whitening, weights, component_maps)
    return as_moments(sums, component_maps or embed)


def whitened_total(
    data: Any, embed: Embed, whitening: Whitens, weights: Any = None, component_maps: Embed | None = None
) -> Total:
    """The sums that the moments of step 2, `whitened_moments`, are made of; those of disjoint rows merge."""
    project = Projection(embed, whitening.groups, whitening.down)

    def row_sum(batch: Any, weight: Any) -> tuple[Any, ...]:
        raw = embed(batch)
        here = _presence(embed, batch, raw)
        whole = project.whole(here)
        z, counts = project.of(raw, whole), weigh(whole, _on_host(weight))
        stacked = namespace(z[0]).concat(z, axis=1)
        weighed = weigh(stacked, weight)
        psi = raw if component_maps is None else component_maps(batch)
        with np.errstate(over="ignore"):  # of rows in single precision: moments that are no numbers are refused later
            return (
                whole.T @ counts,
                triple_sum([whole[:, [i]] for i in range(len(z))], _on_host(weight)),
                here.T @ counts,
                stacked.T @ weighed,
                triple_sum(z, weight),
                *(view.T @ weighed for view in psi),
            )

    return total(data, row_sum, weights)


def as_moments(sums: Total, component_maps: Embed) -> WhitenedMoments:
    """The moments of step 2 from the sums of `whitened_total`, those with ψ in feature coordinates."""
    pair_count, triple_count, view_count, pairs, triple, *products = sums.sums
    if not triple_count > 0:
        raise UnsupportedError("No row has three views or groups of views, and the third moment needs such rows.")
    n, rank = len(pair_count), triple.shape[0]
    raw = [
        view.reshape(-1, n, rank) / np.maximum(count, TINY)[None, :, None]
        for view, count in zip(products, view_count, strict=True)
    ]
    return WhitenedMoments(
        pairs.reshape(n, rank, n, rank).transpose(0, 2, 1, 3) / np.maximum(pair_count, TINY)[:, :, None, None],
        triple / np.maximum(triple_count, TINY),
        tuple(from_raw(component_maps, t, moment) for t, moment in enumerate(raw)),
    )


def triple_sum(z: Sequence[Any], weights: Any = None) -> Any:
    """Σ_rows Σ_{i<j<l} z_i ⊗ z_j ⊗ z_l, by the recurrence of elementary symmetric polynomials."""
    xp = namespace(z[0])
    rows, rank = z[0].shape
    first, second = z[0] + z[1], z[0][:, :, None] * z[1][:, None, :]
    third = xp.zeros_like(second[0, :, :, None] * z[0][0, :])
    for latest in z[2:]:
        third = third + xp.reshape(
            xp.reshape(second, (rows, rank * rank)).T @ weigh(latest, weights), (rank, rank, rank)
        )
        second = second + first[:, :, None] * latest[:, None, :]
        first = first + latest
    return third
