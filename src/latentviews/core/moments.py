"""Averages of products of feature vectors: sums over batches, never the D × D × D tensor."""

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from latentviews._arrays import like, namespace, to_numpy
from latentviews._numbers import TINY
from latentviews._validation import UnsupportedError
from latentviews.core.streams import Total, total, weigh

Embed = Callable[[Any], Sequence[Any]]
Pairs = dict[tuple[int, int], np.ndarray]


def pair_moments(data: Any, embed: Embed, weights: Any = None) -> Pairs:
    """C_st = E[φ_s φ_tᵀ] for every pair of views s < t, over the rows that have both.

    ``embed`` takes a batch to its feature vectors, one array a view, with zeros where ``embed.present(batch)``, if it
    has such a method, says that a view is missing.
    """
    return as_pairs(pair_total(data, embed, weights))


def pair_total(data: Any, embed: Embed, weights: Any = None) -> Total:
    """The sums that `pair_moments` are made of; those of disjoint rows merge."""

    def row_sum(batch: Any, weight: Any) -> tuple[Any, ...]:
        phi = embed(batch)
        here, weighed = _presence(embed, batch, phi), [weigh(view, weight) for view in phi]
        counts = here.T @ weigh(here, None if weight is None else to_numpy(weight))
        return (counts, *(weighed[s].T @ phi[t] for s, t in combinations(range(len(phi)), 2)))

    return total(data, row_sum, weights)


def as_pairs(sums: Total) -> Pairs:
    """Pair moments from the sums of `pair_total`."""
    counts, *products = sums.sums
    keys = list(combinations(range(len(counts)), 2))
    for s, t in keys:
        if not counts[s, t] > 0:
            raise UnsupportedError(
                f"No row has both view {s} and view {t}, so nothing is known of how they go together."
            )
    return {(s, t): product / counts[s, t] for (s, t), product in zip(keys, products, strict=True)}


def _presence(embed: Any, batch: Any, phi: Sequence[Any]) -> np.ndarray:
    """One where a row has a view and zero where it is missing, (n, n_views)."""
    here = embed.present(batch) if hasattr(embed, "present") else None
    return np.ones((phi[0].shape[0], len(phi))) if here is None else here


class WhitenedMoments(NamedTuple):
    """Moments of whitened vectors z_1, …, z_n in k coordinates, and their products with features."""

    pairs: np.ndarray  # (n, n, k, k), E[z_i z_jᵀ]
    triple: np.ndarray  # (k, k, k), the mean over i < j < l of E[z_i ⊗ z_j ⊗ z_l]
    lifts: tuple[np.ndarray, ...]  # (D_t, n, k) a view, E[ψ_t z_iᵀ]


def whitened_moments(
    data: Any,
    embed: Embed,
    whiten: Callable[[Sequence[Any]], list[Any]],
    weights: Any = None,
    lift: Embed | None = None,
) -> WhitenedMoments:
    """All that one pass over the rows gives once a projection to k coordinates is known.

    ``whiten`` takes the feature vectors of a batch to the z_i, and ``whiten.groups`` are the views in each, one by
    default; ``lift`` gives the vectors ψ_t in which components are wanted, φ_t itself by default. Every moment is over
    the rows that have the views it takes.
    """
    return as_moments(whitened_total(data, embed, whiten, weights, lift))


def whitened_total(
    data: Any,
    embed: Embed,
    whiten: Callable[[Sequence[Any]], list[Any]],
    weights: Any = None,
    lift: Embed | None = None,
) -> Total:
    """The sums that `whitened_moments` are made of; those of disjoint rows merge."""

    def row_sum(batch: Any, weight: Any) -> tuple[Any, ...]:
        phi = embed(batch)
        z, here = whiten(phi), _presence(embed, batch, phi)
        groups = getattr(whiten, "groups", [[t] for t in range(len(z))])
        whole = np.stack([here[:, list(group)].prod(axis=1) for group in groups], axis=1)
        z = [vectors * like(whole[:, [i]], vectors) for i, vectors in enumerate(z)]
        counts = weigh(whole, None if weight is None else to_numpy(weight))
        stacked = namespace(z[0]).concat(z, axis=1)
        weighed = weigh(stacked, weight)
        psi = phi if lift is None else lift(batch)
        return (
            whole.T @ counts,
            triple_sum([whole[:, [i]] for i in range(len(z))], None if weight is None else to_numpy(weight)),
            here.T @ counts,
            stacked.T @ weighed,
            triple_sum(z, weight),
            *(view.T @ weighed for view in psi),
        )

    return total(data, row_sum, weights)


def as_moments(sums: Total) -> WhitenedMoments:
    """Moments from the sums of `whitened_total`."""
    pair_count, triple_count, lift_count, pairs, triple, *lifts = sums.sums
    if not triple_count > 0:
        raise UnsupportedError("No row has three views or groups of views, and the third moment needs such rows.")
    n, rank = len(pair_count), triple.shape[0]
    return WhitenedMoments(
        pairs.reshape(n, rank, n, rank).transpose(0, 2, 1, 3) / np.maximum(pair_count, TINY)[:, :, None, None],
        triple / np.maximum(triple_count, TINY),
        tuple(
            view.reshape(-1, n, rank) / np.maximum(count, TINY)[None, :, None]
            for view, count in zip(lifts, lift_count, strict=True)
        ),
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
