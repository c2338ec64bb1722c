"""The tree of small tensors from passes over the rows: no n × n matrix, and any stream of batches.

A random projection of what lies outside an edge finds what is below it (a range finder). One pass with random
projections gives a first decomposition; in the next ones that decomposition takes their place, a step of subspace
iteration each, which all but removes the error of the first; the last gives the coefficients in the bases found. Then
small algebra truncates to the ranks asked for, edge by edge, as `exact_embedding` does.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from latentviews._numbers import thin_svd
from latentviews.core import streams
from latentviews.joint.tensor_trees import TreeEmbedding, count_kept, join, khatri_rao, leaf_features
from latentviews.joint.trees import Tree

OVERSAMPLING = 10  # directions that an edge keeps beyond twice its rank until the end
Cores = list[np.ndarray | None]
Maps = dict[int, np.ndarray]


def sketched_embedding(
    data: Any,
    features: Sequence[Any],
    tree: Tree,
    rank: Any,
    rng: np.random.Generator,
    *,
    tol: float = 0.0,
    weights: np.ndarray | None = None,
    n_sweeps: int = 4,
) -> TreeEmbedding:
    """The decomposition of `exact_embedding` up to a small excess of error, in ``n_sweeps`` + 1 passes.

    Parameters
    ----------
    data : array of shape (n, d), or iterable of batches
    features : sequence of one fitted map per column
        Twenty or so landmarks per column are plenty for a smooth kernel.
    tree : Tree
    rank : int or one per edge
    rng : numpy Generator
    tol : float
        The share of ‖C̃‖² that an edge may leave out.
    weights : array of shape (n,) or None
    n_sweeps : int
        The first is random, the others follow what the one before found. One alone is not enough: its error may be a
        quarter too large; with four it is within two per cent wherever the low rank fits at all.

    Notes
    -----
    ``discarded`` counts only what the last step leaves out; `frobenius` gives the whole error.
    """
    ranks = tree.ranks(rank)
    if any(r is None for r in ranks.values()):
        raise ValueError("A sketched embedding needs a rank for every edge; only the exact one takes rank=None.")
    wide = {v: 2 * int(r or 0) + OVERSAMPLING for v, r in ranks.items()}
    cores = _random_cores(tree, features, wide, rng)
    maps = _random_maps(tree, features, cores, wide, rng)
    change: Callable[[np.ndarray], np.ndarray] = np.linalg.pinv
    for _ in range(n_sweeps):
        moments = _moments(data, features, tree, cores, maps, weights)
        cores = _bases(tree, cores, moments, wide, change)
        maps, change = _adapted_maps(tree, cores), np.transpose
    root = tree.root
    cores[root] = _moments(data, features, tree, cores, None, weights)[root]
    return _rounded(tree, features, cores, ranks, tol)


def _sizes(tree: Tree, features: Sequence[Any], cores: Cores) -> list[int]:
    """How long the vectors are that reach every vertex but the root through its core."""
    sizes = []
    for core, column in zip(cores, tree.columns, strict=False):
        sizes.append(int(features[column]._n_features_out) if core is None else core.shape[-1])
    return sizes


def _random_cores(tree: Tree, features: Sequence[Any], wide: dict[int, int], rng: np.random.Generator) -> Cores:
    """Gaussian projections of what lies below every truncated vertex, twice as wide as its basis will be."""
    cores: Cores = []
    for v, pair in enumerate(tree.children[:-1]):
        if not tree.truncated[v]:
            cores.append(None)
            continue
        sizes = _sizes(tree, features, cores)
        below = (int(features[tree.columns[v]]._n_features_out),) if pair is None else (sizes[pair[0]], sizes[pair[1]])
        size = min(2 * wide[v], int(np.prod(below)))
        cores.append(rng.normal(size=(*below, size)) / np.sqrt(size))
    return [*cores, None]


def _random_maps(
    tree: Tree, features: Sequence[Any], cores: Cores, wide: dict[int, int], rng: np.random.Generator
) -> Maps:
    """Gaussian projections of what lies outside every truncated vertex."""
    maps: Maps = {}
    sizes = _sizes(tree, features, cores[:-1])
    for v in range(tree.root - 1, -1, -1):
        if tree.truncated[v]:
            parent, sibling = tree.parents[v]
            outside = (sizes[sibling],) if parent == tree.root else (sizes[sibling], maps[parent].shape[-1])
            maps[v] = rng.normal(size=(*outside, wide[v])) / np.sqrt(wide[v])
    return maps


def _adapted_maps(tree: Tree, cores: Cores) -> Maps:
    """The decomposition itself, applied to what lies outside: its leading directions, weighted by their size."""
    maps: Maps = {}
    for v in range(tree.root - 1, -1, -1):
        if tree.truncated[v]:
            parent, sibling = tree.parents[v]
            first, core = v < sibling, np.asarray(cores[parent])
            if parent == tree.root:
                maps[v] = core.T if first else core
            else:
                maps[v] = core.transpose(1, 2, 0) if first else core.transpose(0, 2, 1)
    return maps


def _moments(
    data: Any, features: Sequence[Any], tree: Tree, cores: Cores, maps: Maps | None, weights: Any
) -> dict[int, np.ndarray]:
    """One pass: E[below ⊗ outside] at every truncated vertex, a sketch of the range of C cut there, and C at the root.

    Without ``maps`` only the root's.
    """
    cut = [v for v, truncated in enumerate(tree.truncated) if truncated and maps is not None]

    def row_sum(batch: Any, weight: Any) -> tuple[np.ndarray, ...]:
        leaves = leaf_features(features, range(len(features)), batch)
        up = _messages(tree, cores, leaves)
        down = {} if maps is None else _outside(tree, up, maps)
        sketches = [streams.weigh(_below(tree, v, up, leaves), weight).T @ down[v] for v in cut]
        pair = tree.children[tree.root]
        top = leaves[0].sum(axis=0) if pair is None else streams.weigh(up[pair[0]], weight).T @ up[pair[1]]
        return (*sketches, top)

    return dict(zip([*cut, tree.root], streams.mean(data, row_sum, weights), strict=True))


def _messages(tree: Tree, cores: Cores, leaves: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What reaches every vertex but the root from below, through its core."""
    up: list[np.ndarray] = []
    for v, pair in enumerate(tree.children[:-1]):
        core, column = cores[v], tree.columns[v]
        if pair is not None:
            up.append(join(up[pair[0]], up[pair[1]], core))
        else:
            below = leaves[column]
            up.append(below if core is None else below @ core)
    return up


def _outside(tree: Tree, up: list[np.ndarray], maps: Maps) -> dict[int, np.ndarray]:
    """What reaches every truncated vertex from its sibling and from above, through its map."""
    down: dict[int, np.ndarray] = {}
    for v in range(tree.root - 1, -1, -1):
        if v in maps:
            parent, sibling = tree.parents[v]
            down[v] = up[sibling] @ maps[v] if parent == tree.root else join(up[sibling], down[parent], maps[v])
    return down


def _below(tree: Tree, v: int, up: list[np.ndarray], leaves: Sequence[np.ndarray]) -> np.ndarray:
    pair, column = tree.children[v], tree.columns[v]
    return leaves[column] if pair is None else khatri_rao(up[pair[0]], up[pair[1]])


def _bases(
    tree: Tree,
    old: Cores,
    moments: dict[int, np.ndarray],
    wide: dict[int, int],
    change: Callable[[np.ndarray], np.ndarray],
) -> Cores:
    """Nested orthonormal bases from moments whose lower sides were seen through the cores ``old``, and the root.

    ``seen[v]`` is the new basis at v seen through the old cores; ``change`` of it brings coordinates from old to new:
    the pseudo-inverse where those are random, the transpose where they are orthonormal.
    """
    cores: Cores = []
    seen: dict[int, np.ndarray] = {}
    for v, pair in enumerate(tree.children):
        moment = moments.get(v)
        if moment is None:
            cores.append(None)
            continue
        if pair is not None:
            shape = moment.shape if v == tree.root else np.asarray(old[v]).shape[:2]
            moment = _bring(moment.reshape(*shape, -1), [seen.get(a) for a in pair], change)
        if v == tree.root:
            cores.append(moment[..., 0] if pair is not None else moment)
            continue
        basis = thin_svd(moment.reshape(-1, moment.shape[-1]))[0][:, : wide[v]]
        core = basis.reshape(*moment.shape[:-1], -1)
        cores.append(core)
        through = core if pair is None else _bring(core, [seen.get(a) for a in pair], lambda one: one)
        before = np.asarray(old[v])
        seen[v] = before.reshape(-1, before.shape[-1]).T @ through.reshape(-1, through.shape[-1])
    return cores


def _bring(
    tensor: np.ndarray, seen: Sequence[np.ndarray | None], change: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """The first two sides of a tensor multiplied by what ``change`` makes of ``seen``."""
    if seen[0] is not None:
        tensor = np.tensordot(change(seen[0]), tensor, axes=1)
    if seen[1] is not None:
        tensor = np.moveaxis(np.tensordot(change(seen[1]), tensor, axes=(1, 1)), 0, 1)
    return tensor


def _rounded(
    tree: Tree, features: Sequence[Any], cores: Cores, ranks: dict[int, int | None], tol: float
) -> TreeEmbedding:
    """The same with every edge cut to its rank in turn: what `exact_embedding` does, on small tensors."""
    root = tree.root
    cores[root] = np.asarray(cores[root])[..., None]
    spectra: dict[frozenset[int], np.ndarray] = {}
    discarded, norm = 0.0, float(np.sum(np.asarray(cores[root]) ** 2))
    for v in range(root):
        if not tree.truncated[v]:
            continue
        core = np.asarray(cores[v])
        frame, triangle = np.linalg.qr(core.reshape(-1, core.shape[-1]))
        _multiply_parent(tree, cores, v, triangle)
        values, vectors = np.linalg.eigh(_gram_above(tree, cores, v))
        values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
        kept = count_kept(values, ranks[v], tol * norm)
        if tree.leaves[v] in tree.edges:
            spectra[tree.leaves[v]] = values
            discarded += float(values[kept:].sum())
        cores[v] = (frame @ vectors[:, :kept]).reshape(*core.shape[:-1], kept)
        _multiply_parent(tree, cores, v, vectors[:, :kept].T)
    return TreeEmbedding(tree, tuple(features), tuple(cores), spectra, discarded)


def _multiply_parent(tree: Tree, cores: Cores, v: int, matrix: np.ndarray) -> None:
    """Bring a change of coordinates at the edge above v into the core at its other end."""
    parent, sibling = tree.parents[v]
    side = int(v > sibling)
    cores[parent] = np.moveaxis(np.tensordot(matrix, np.asarray(cores[parent]), axes=(1, side)), 0, side)


def _gram_above(tree: Tree, cores: Cores, v: int) -> np.ndarray:
    """C cut at the edge above v, times its transpose, in the coordinates of the edge."""
    path = [v]
    while path[-1] != tree.root:
        path.append(tree.parents[path[-1]][0])
    gram = np.ones((1, 1))
    for child, parent in zip(path[-2::-1], path[:0:-1], strict=True):
        core = np.asarray(cores[parent])
        core = core if child < tree.parents[child][1] else core.transpose(1, 0, 2)
        gram = np.tensordot(core @ gram, core, axes=((1, 2), (1, 2)))
    return gram
