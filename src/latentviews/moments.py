"""Averages of products of feature vectors: sums over batches, never the D × D × D tensor."""

from collections.abc import Callable, Sequence
from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np

from latentviews._arrays import namespace
from latentviews.streams import mean, weigh

Embed = Callable[[Any], Sequence[Any]]
Pairs = dict[tuple[int, int], np.ndarray]


def pair_moments(data: Any, embed: Embed, weights: Any = None) -> Pairs:
    """C_st = E[φ_s φ_tᵀ] for every pair of views s < t.

    ``embed`` takes a batch to its feature vectors, one array a view.
    """
    keys: list[tuple[int, int]] = []

    def row_sum(batch: Any, weight: Any) -> tuple[Any, ...]:
        phi = embed(batch)
        keys[:] = combinations(range(len(phi)), 2)
        weighed = [weigh(view, weight) for view in phi]
        return tuple(weighed[s].T @ phi[t] for s, t in keys)

    sums = mean(data, row_sum, weights)
    return dict(zip(keys, sums, strict=True))


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

    ``whiten`` takes the feature vectors of a batch to the z_i; ``lift`` gives the vectors ψ_t in which components
    are wanted, φ_t itself by default.
    """
    size: list[int] = []

    def row_sum(batch: Any, weight: Any) -> tuple[Any, ...]:
        phi = embed(batch)
        z = whiten(phi)
        size[:] = [len(z)]
        stacked = namespace(z[0]).concat(z, axis=1)
        weighed = weigh(stacked, weight)
        psi = phi if lift is None else lift(batch)
        return (stacked.T @ weighed, triple_sum(z, weight), *(view.T @ weighed for view in psi))

    pairs, triple, *lifts = mean(data, row_sum, weights)
    n, rank = size[0], triple.shape[0]
    return WhitenedMoments(
        pairs.reshape(n, rank, n, rank).transpose(0, 2, 1, 3),
        triple / comb(n, 3),
        tuple(view.reshape(-1, n, rank) for view in lifts),
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
