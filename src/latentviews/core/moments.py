"""Averages of products of feature vectors: sums over batches, never the D × D × D tensor.

Feature vectors are φ = raw @ tail. Sums are taken of the raw vectors, which are cheaper, and become sums of feature
vectors once: whoever asks for moments sees feature coordinates alone.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb
from threading import get_ident
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from array_api_compat import device
from scipy import sparse

from latentviews._arrays import by_columns, in_doubles, in_library_of, is_foreign, moved_to, namespace, to_numpy
from latentviews._numbers import TINY
from latentviews._validation import UnsupportedError
from latentviews.core.features.grid_sums import FEW_CLASSES, Gathered, LookedUp, column_grids, grid_rows
from latentviews.core.features.landmark_sums import ROWS as LANDMARK_ROWS
from latentviews.core.features.landmark_sums import LandmarkSums, sees_from_landmarks
from latentviews.core.streams import BATCH, Total, is_array, rows_at_once, total, weigh

IN_CACHE = 2**16  # numbers
PIECE = 2**16  # rows of a file or a chunk that are cut into batches
NUMBERS = 128  # of a row's raw vectors, where nobody says
Pairs = dict[tuple[int, int], np.ndarray]
BatchSum = Callable[[np.ndarray], tuple[Any, ...]]


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
    sizes = [len(tail) for tail in embed.tails if tail is not None]
    if is_array(data) and sizes and data.shape[0] < np.mean(sizes):
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
        here, weighed = _presence(embed, batch, len(raw)), [weigh(view, weight) for view in raw]
        counts = here.T @ weigh(here, _on_host(weight))
        return (counts, *(weighed[s].T @ raw[t] for s, t in combinations(range(len(raw)), 2)))

    return total(data, row_sum, weights, max(BATCH, rows_at_once(_numbers(embed), data)))


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


def _numbers(embed: Embed) -> int:
    """How many numbers the raw vectors of a row hold."""
    return getattr(embed, "numbers", NUMBERS)


def _presence(embed: Embed, batch: Any, n_views: int) -> np.ndarray:
    """One where a row has a view and zero where it is missing, (n, n_views)."""
    here = embed.present(batch)
    return np.ones((batch.shape[0], n_views)) if here is None else here


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

    @property
    def rank(self) -> int:
        """How many coordinates every group has."""
        return self.down[0].shape[1]

    def __call__(self, batch: Any) -> list[Any]:
        """The z_g of a batch, one array per group."""
        return self.of(self.embed(batch), self.present(batch))

    def present(self, batch: Any) -> np.ndarray | None:
        """One where a row has all views of a group, else zero, (n, n_groups); None where nothing is missing."""
        here = self.embed.present(batch)
        return None if here is None else self.whole(here)

    def whole(self, here: np.ndarray) -> np.ndarray:
        """The groups that rows with these views have, (n, n_groups)."""
        return np.stack([here[:, list(group)].prod(axis=1) for group in self.groups], axis=1)

    def of(self, raw: Sequence[Any], whole: np.ndarray | None) -> list[Any]:
        """The z_g of rows with these raw vectors and groups, all of them if None."""
        z = [sum(in_doubles(raw[t] @ in_library_of(self._on_raw[t], raw[t])) for t in group) for group in self.groups]
        return z if whole is None else [v * in_library_of(whole[:, [i]], v) for i, v in enumerate(z)]

    @cached_property
    def _on_raw(self) -> dict[int, np.ndarray]:
        return {t: to_raw(self.embed, t, self.down[t]) for group in self.groups for t in group}


class WhitenedMoments(NamedTuple):
    """Moments of whitened vectors z_1, …, z_n in k coordinates, and their products with features."""

    pairs: np.ndarray  # (n, n, k, k), E[z_i z_jᵀ] for i ≠ j: a group and itself are no two views, and zero here
    triple: np.ndarray  # (k, k, k), the mean over i < j < l of E[z_i ⊗ z_j ⊗ z_l]
    components: tuple[np.ndarray, ...]  # (D_t, n, k) per view, E[ψ_t z_iᵀ], zero for the group i that the view is in


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
    most = None if weights is not None or is_foreign(data) else _buffered_rows(project, component_maps)
    if most is not None:
        size = _even(data.shape[0] if is_array(data) else PIECE, most)
    else:
        held = _numbers(embed) + (2 * len(project.groups) + 1) * project.rank
        held += 0 if component_maps is None else _numbers(component_maps)
        size = rows_at_once(held, data)
    return total(data, _WhitenedSums(project, component_maps, 0 if most is None else size), weights, size)


class _WhitenedSums:
    """The sums of a batch of rows that moments of step 2 are made of, by buffers where at most ``size`` are whole.

    Every thread has buffers of its own, and they stay behind where the sums are sent.
    """

    def __init__(self, project: Projection, maps: Embed | None, size: int):
        self.project = project
        self.maps = maps
        self.size = size
        self._buffered: dict[tuple[int, Any], BatchSum] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_buffered": {}}

    def __call__(self, batch: Any, weight: Any) -> tuple[Any, ...]:
        """The weights of rows, Σ z_i z_jᵀ, Σ z_i ⊗ z_j ⊗ z_l, and Σ ψ_t z_iᵀ for every view."""
        project, here = self.project, self.project.embed.present(batch)
        if here is None and weight is None and type(batch) is np.ndarray and len(batch) <= self.size:
            return self._of_whole_rows(batch)
        raw = project.embed(batch)
        whole = None if here is None else project.whole(here)
        z = project.of(raw, whole)
        weighed = z if weight is None else [weigh(one, weight) for one in z]
        columns = [by_columns(one) for one in z]
        products = _products(columns, columns if weight is None else [by_columns(one) for one in weighed])
        psi = raw if self.maps is None else self.maps(batch)
        of_weight = _counts(here, whole, _on_host(weight), (len(z), len(raw), batch.shape[0]))
        place = {t: i for i, group in enumerate(project.groups) for t in group}
        return (*of_weight, *products, *(_gathered(view, weighed, place[t]) for t, view in enumerate(psi)))

    def _of_whole_rows(self, batch: np.ndarray) -> tuple[Any, ...]:
        key = get_ident(), batch.dtype
        if key not in self._buffered:
            self._buffered[key] = _buffered_sums(self.project, self.maps, self.size, batch.dtype)
        return self._buffered[key](batch)


def _buffered_rows(project: Projection, maps: Embed | None) -> int | None:
    """The most rows of a batch whose sums go by buffers: single columns on grids, or views seen from landmarks."""
    both = project.embed, maps or project.embed
    if all(column_grids(views) is not None for views in both):
        return grid_rows(len(project.groups) * project.rank)
    if not all(sees_from_landmarks(views) for views in both):
        return None
    columns = sum(phi.landmarks_.shape[1] for views in both for phi in views.features)  # type: ignore[attr-defined]
    held = columns + 2 * len(project.groups) * project.rank
    return min(LANDMARK_ROWS, rows_at_once(held, None))


def _buffered_sums(project: Projection, maps: Embed | None, size: int, dtype: Any) -> BatchSum:
    """The sums of batches of whole rows, at most ``size``, where `_buffered_rows` says that there are such."""
    maps = maps or project.embed
    here, there, on_raw = column_grids(project.embed), column_grids(maps), project._on_raw
    n, n_views = len(project.groups), len(project.embed.tails)
    tables = [on_raw[t] for t in range(n_views)]
    if here is None or there is None:
        dtype = dtype if dtype.kind == "f" else np.dtype(float)
        seen = LandmarkSums(project.embed, maps, tables, project.groups, size, dtype)

        def from_landmarks(batch: np.ndarray) -> tuple[Any, ...]:
            z = seen.whitened(batch)
            return (*_counts(None, None, None, (n, n_views, len(batch))), *_products(z, z), *seen.gather(batch))

        return from_landmarks
    look_up = LookedUp(*here, tables, project.groups, size)
    gather = Gathered(*there, project.groups, project.rank, size)
    at_once = n == 3 and project.rank <= FEW_CLASSES

    def on_grids(batch: np.ndarray) -> tuple[Any, ...]:
        z, counts = look_up(batch), _counts(None, None, None, (n, n_views, len(batch)))
        products = look_up.products(len(batch)) if at_once else _products(np.split(z, n), np.split(z, n))
        return (*counts, *products, *gather(batch, z))

    return on_grids


def _even(rows: int, most: int) -> int:
    """The rows of batches of at most so many, the same for all or nearly."""
    return -(-rows // max(-(-rows // most), 1))


def _gathered(view: Any, z: Sequence[Any], own: int) -> Any:
    """Σ_rows ψ z_iᵀ of the raw vectors of a view for every group i, (D, n k), zero for the view's own group."""
    xp, rank, others = namespace(z[own]), z[own].shape[1], [one for i, one in enumerate(z) if i != own]
    if sparse.issparse(view) or hasattr(view, "device_entries"):
        sums = xp.concat([view.T @ one for one in others], axis=1)
    else:  # dense vectors are read once, in their own dtype
        sums = view.T @ moved_to(xp.concat(others, axis=1), view)
    zero = xp.zeros_like(sums[:, :rank])
    return xp.concat([sums[:, : own * rank], zero, sums[:, own * rank :]], axis=1)


def _counts(
    here: np.ndarray | None, whole: np.ndarray | None, weight: np.ndarray | None, shape: tuple[int, int, int]
) -> tuple[np.ndarray, ...]:
    """The weights of rows that have two groups (n, n), three of them, and a view and a group (n_views, n).

    ``shape`` is the number of groups, of views and of rows.
    """
    n, n_views, n_rows = shape
    if here is None or whole is None:
        mass = float(n_rows) if weight is None else float(weight.sum())
        return np.full((n, n), mass), np.array(mass * comb(n, 3)), np.full((n_views, n), mass)
    counts = weigh(whole, weight)
    one = [[table[:, [i]].T for i in range(n)] for table in (whole, counts)]
    return whole.T @ counts, triple_sum(*one), here.T @ counts


def _products(z: Sequence[Any], weighed: Sequence[Any]) -> tuple[Any, Any]:
    """Σ_rows z_i z_jᵀ for i ≠ j, (n k, n k), zero for i = j, and the `triple_sum`; the z_g are (k, rows)."""
    one, every = z[0], combinations(range(len(z)), 2)
    xp, rank, parts = namespace(one), one.shape[0], _parts(one)
    upper: dict[tuple[int, int], Any] = {
        (i, j): sum(z[i][:, part] @ weighed[j][:, part].T for part in parts) for i, j in every
    }
    zero = xp.zeros((rank, rank), dtype=one.dtype, device=device(one))

    def block(i: int, j: int) -> Any:
        return zero if i == j else upper[i, j] if i < j else upper[j, i].T

    rows = [xp.concat([block(i, j) for j in range(len(z))], axis=1) for i in range(len(z))]
    return xp.concat(rows, axis=0), triple_sum(z, weighed)


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
        triple / triple_count,
        tuple(from_raw(component_maps, t, moment) for t, moment in enumerate(raw)),
    )


def resampled_moments(
    rows: np.ndarray, embed: Embed, whitening: Whitens, resamples: Iterable[np.ndarray | None]
) -> Iterator[WhitenedMoments]:
    """The moments of step 2 without components, of rows in memory that are weighted in several ways."""
    project = Projection(embed, whitening.groups, whitening.down)
    z, whole = [by_columns(one) for one in project(rows)], project.present(rows)
    for weights in resamples:
        weighed = z if weights is None else [one * weights for one in z]
        pair_count, triple_count, _ = _counts(whole, whole, weights, (len(z), len(z), len(rows)))
        without_views = np.empty((0, len(z)))
        yield as_moments(Total((pair_count, triple_count, without_views, *_products(z, weighed)), len(rows)), embed)


def triple_sum(z: Sequence[Any], weighed: Sequence[Any]) -> Any:
    """Σ_rows Σ_{i<j<l} z_i ⊗ z_j ⊗ z_l = Σ_rows Σ_j (Σ_{i<j} z_i) ⊗ z_j ⊗ (Σ_{l>j} z_l).

    The z_g are (k, rows), and ``weighed`` the same times the rows' weights. A coordinate of the first at a time, so
    that products of rows stay in the cache.
    """
    first, found = z[0], 0.0
    xp = namespace(first)
    for part in _parts(first):
        for j in range(1, len(z) - 1):
            before = sum((v[:, part] for v in z[1:j]), start=first[:, part])
            after = sum((v[:, part] for v in weighed[j + 2 :]), start=weighed[j + 1][:, part])
            middle = z[j][:, part]
            found = found + xp.stack([(before[a, :] * middle) @ after.T for a in range(before.shape[0])])
    return found


def _parts(z: Any) -> list[slice]:
    """The rows of z (k, rows) in parts that stay in the processor's cache; all of them on another device."""
    rows = z.shape[1]
    size = max(rows if is_foreign(z) else IN_CACHE // z.shape[0], 1)
    return [slice(start, min(start + size, rows)) for start in range(0, rows, size)]
