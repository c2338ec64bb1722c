"""Trees whose leaves are the columns of a table: given, or learned from distances between columns."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from latentviews._numbers import TINY, row_shares
from latentviews._validation import check_count


@dataclass(frozen=True, eq=False)
class Tree:
    """A rooted binary tree; vertices are numbered so that children come before their parent, the root last.

    Where hidden vertices of a latent tree have more than three neighbours they stand here as several, which neither
    loses an edge nor raises the rank of one.
    """

    children: tuple[tuple[int, int] | None, ...]  # of every vertex, None for a leaf
    columns: tuple[int, ...]  # of every leaf, -1 for an inner vertex
    chain: bool = False  # the caterpillar of Song & Dai (2013): leaves keep their whole feature space

    @property
    def root(self) -> int:
        """The last vertex."""
        return len(self.children) - 1

    @property
    def n_columns(self) -> int:
        """The number of leaves."""
        return sum(column >= 0 for column in self.columns)

    @cached_property
    def leaves(self) -> tuple[frozenset[int], ...]:
        """The columns below every vertex."""
        below: list[frozenset[int]] = []
        for pair, column in zip(self.children, self.columns, strict=True):
            below.append(frozenset([column]) if pair is None else below[pair[0]] | below[pair[1]])
        return tuple(below)

    @cached_property
    def parents(self) -> tuple[tuple[int, int], ...]:
        """The parent and the sibling of every vertex; -1 for the root."""
        found = [(-1, -1)] * len(self.children)
        for parent, pair in enumerate(self.children):
            if pair is not None:
                found[pair[0]], found[pair[1]] = (parent, pair[1]), (parent, pair[0])
        return tuple(found)

    @cached_property
    def truncated(self) -> tuple[bool, ...]:
        """Whether the edge above a vertex is cut to a rank."""
        first = 0 if self.children[0] is None else -1
        return tuple(
            v != self.root and (not self.chain or pair is not None or v == first)
            for v, pair in enumerate(self.children)
        )

    @cached_property
    def edges(self) -> tuple[frozenset[int], ...]:
        """The columns on one side of every edge that is cut to a rank, once per edge."""
        return tuple(self.leaves[v] for v in self.edge_vertices)

    @cached_property
    def edge_vertices(self) -> tuple[int, ...]:
        """The vertices below those edges; the two at the root share theirs."""
        pair = self.children[self.root]
        twin = pair[1] if pair is not None and all(self.truncated[v] for v in pair) else None
        return tuple(v for v, cut in enumerate(self.truncated) if cut and v != twin)

    def ranks(self, rank: Any) -> dict[int, int | None]:
        """The rank above every truncated vertex, from one for all (None for no limit) or one per edge."""
        size = len(self.edges)
        if isinstance(rank, Sequence | np.ndarray) and not isinstance(rank, str):
            if len(rank) != size:
                raise ValueError(f"rank must be one number or one for each of the {size} edges; got {len(rank)}.")
            numbers = [None if r is None else check_count("rank", r) for r in rank]
        else:
            numbers = [None if rank is None else check_count("rank", rank)] * size
        found = dict(zip(self.edge_vertices, numbers, strict=True))
        pair = self.children[self.root]
        if pair is not None and self.truncated[pair[1]]:
            found[pair[1]] = found[pair[0]]
        return found


def caterpillar(n_columns: int) -> Tree:
    """The chain of Song & Dai (2013), Figure 2(c): columns join one after the other."""
    children: list[tuple[int, int] | None] = [None]
    columns = [0]
    for column in range(1, n_columns):
        last = len(children) - 1
        children += [None, (last, last + 1)]
        columns += [column, -1]
    return Tree(tuple(children), tuple(columns), chain=True)


def read_tree(
    tree: Any, n_columns: int, names: Sequence[str] | None = None, columns: Sequence[int] | None = None
) -> Tree:
    """A tree over all columns from "caterpillar", nested tuples of columns, or a networkx tree with columns as leaves.

    Where ``columns`` are given the others are cut off it, and its leaves are the places of columns among those.

    Examples
    --------
    >>> [sorted(edge) for edge in read_tree(((0, 1), (2, 3)), 4).edges]
    [[0], [1], [0, 1], [2], [3]]
    """
    kept = range(n_columns) if columns is None else columns
    if isinstance(tree, Tree):
        _check_leaves(sorted(tree.leaves[tree.root]), len(kept))
        return tree
    if isinstance(tree, str):
        if tree != "caterpillar":
            raise ValueError(
                f'tree must be "caterpillar", "auto", nested tuples of columns, or a networkx tree; got {tree!r}.'
            )
        return caterpillar(len(kept))
    try:
        return _from_nested(_places(_read_nested(tree, n_columns, names), kept))
    except RecursionError:
        raise ValueError('The tree is nested more deeply than can be read; use tree="caterpillar".') from None


def could_be_tree(tree: Any) -> bool:
    """Whether a value of the parameter ``tree`` is of a kind that `read_tree` reads, or "auto"."""
    graph = hasattr(tree, "adj") and not isinstance(tree, type)
    return tree in ("caterpillar", "auto") if isinstance(tree, str) else graph or isinstance(tree, Tree | tuple | list)


def _read_nested(tree: Any, n_columns: int, names: Sequence[str] | None) -> Any:
    """Nested tuples of column numbers, each once."""
    if hasattr(tree, "adj") and not isinstance(tree, type):
        tree = _nested_from_graph(tree.to_undirected(), n_columns, names)
    if not isinstance(tree, tuple | list):
        raise ValueError(
            f'tree must be "caterpillar", "auto", nested tuples of columns, or a networkx tree; got {tree!r}.'
        )
    nested = _numbered(tree, names)
    _check_leaves(sorted(_flat(nested)), n_columns)
    return nested


def _check_leaves(found: list[int], n_columns: int) -> None:
    if found != list(range(n_columns)):
        raise ValueError(f"The leaves of the tree must be the columns 0 to {n_columns - 1}, each once; got {found}.")


def _numbered(part: Any, names: Sequence[str] | None) -> Any:
    """Nested tuples with column numbers in place of names."""
    if isinstance(part, tuple | list):
        if not part:
            raise ValueError("A vertex of the tree has no columns below it; leave empty tuples out.")
        return tuple(_numbered(child, names) for child in part)
    if isinstance(part, str) and names is not None and part in names:
        return list(names).index(part)
    if isinstance(part, bool) or not isinstance(part, int | np.integer):
        raise ValueError(f"The leaves of the tree must be column numbers, or names of columns; got {part!r}.")
    return int(part)


def _places(part: Any, kept: Sequence[int]) -> Any:
    """Nested tuples of places among the columns that are kept; an empty one where none is."""
    if not isinstance(part, tuple):
        return kept.index(part) if part in kept else ()
    return tuple(below for below in (_places(child, kept) for child in part) if below != ())


def _flat(part: Any) -> Iterator[int]:
    if isinstance(part, tuple):
        for child in part:
            yield from _flat(child)
    else:
        yield part


def _left_deep(parts: Sequence[Any]) -> Any:
    """Pairs in place of a longer tuple."""
    nested = parts[0]
    for part in parts[1:]:
        nested = (nested, part)
    return nested


def _from_nested(nested: Any) -> Tree:
    children: list[tuple[int, int] | None] = []
    columns: list[int] = []

    def add(part: Any) -> int:
        pair = None
        if isinstance(part, tuple):
            if len(part) == 1:
                return add(part[0])
            pair = (add(_left_deep(part[:-1])), add(part[-1]))
        children.append(pair)
        columns.append(part if pair is None else -1)
        return len(children) - 1

    add(nested)
    return Tree(tuple(children), tuple(columns))


def _nested_from_graph(graph: Any, n_columns: int, names: Sequence[str] | None) -> Any:
    """Nested tuples from a networkx tree whose vertices of degree one are the columns."""
    adjacency = {vertex: list(graph.adj[vertex]) for vertex in graph.adj}
    if len(adjacency) < 2 or sum(map(len, adjacency.values())) != 2 * (len(adjacency) - 1):
        raise ValueError("The graph must be a tree: connected, without cycles, with at least one edge.")
    inner = [vertex for vertex, near in adjacency.items() if len(near) > 1]
    inside = [v for v in inner if _is_column(v, n_columns, names)]
    if inside:
        raise ValueError(f"Every column must be a leaf of the tree; {inside} have more than one neighbour.")
    seen: set[Hashable] = set()

    def walk(vertex: Any, parent: Any) -> Any:
        seen.add(vertex)
        below = [walk(near, vertex) for near in adjacency[vertex] if near != parent and near not in seen]
        return tuple(below) if len(adjacency[vertex]) > 1 else vertex

    start = inner[0] if inner else next(iter(adjacency))
    nested = walk(start, None) if inner else tuple(adjacency)
    if inner and len(seen) != len(adjacency):
        raise ValueError("The graph must be a tree: connected, without cycles, with at least one edge.")
    return nested


def _is_column(vertex: Any, n_columns: int, names: Sequence[str] | None) -> bool:
    if isinstance(vertex, str):
        return names is not None and vertex in names
    return isinstance(vertex, int | np.integer) and bool(0 <= vertex < n_columns)


def embedding_distances(phi: Sequence[np.ndarray], rank: int, weights: np.ndarray | None = None) -> np.ndarray:
    r"""Distances between columns that add up along the paths of a latent tree (Song, Parikh & Xing 2011).

    .. math:: d_{st} = -\log |C_{st}|_* + \tfrac12 \log |C_{ss}|_* + \tfrac12 \log |C_{tt}|_*

    |·|_* is the product of the leading ``rank`` - 1 singular values of the centred covariances of the features
    ``phi``, (n, m_t) per column: with hidden variables of ``rank`` states no more are needed. Where a column's own
    covariance has fewer, as many as it has are taken for all.
    """
    shares = row_shares(len(phi[0]), weights)
    bases = [(features - shares @ features) * np.sqrt(shares)[:, None] for features in phi]
    size = max(min(rank - 1, *(np.linalg.matrix_rank(basis) for basis in bases)), 1)
    norms = [_log_volume(basis.T @ basis, size) for basis in bases]
    n_columns = len(phi)
    distances = np.zeros((n_columns, n_columns))
    for s in range(n_columns):
        for t in range(s):
            cross = _log_volume(bases[s].T @ bases[t], size)
            distances[s, t] = distances[t, s] = (norms[s] + norms[t]) / 2 - cross
    return distances


def _log_volume(matrix: np.ndarray, size: int) -> float:
    values = np.linalg.svd(matrix, compute_uv=False)[:size]
    return float(np.log(np.maximum(values, TINY)).sum())


def tree_from_distances(distances: np.ndarray) -> Any:
    """The tree, as nested tuples, whose leaves have these distances along its paths.

    Recursive grouping: the pair that the quartet tests of all other pairs support most, on average, becomes one vertex
    until three are left (neighbour joining, Saitou & Nei 1987; the average of d_ik + d_jl - d_ij - d_kl over k and l
    is its criterion up to a constant). Exact for distances that add up along a tree.
    """
    parts: list[Any] = list(range(len(distances)))
    between = np.array(distances, dtype=float)
    while len(parts) > 3:
        reach = between.sum(axis=1)
        criterion = (len(parts) - 2) * between - reach[:, None] - reach[None, :]
        np.fill_diagonal(criterion, np.inf)
        i, j = sorted(divmod(int(criterion.argmin()), len(parts)))
        joined = (between[i] + between[j] - between[i, j]) / 2
        keep = [k for k in range(len(parts)) if k not in (i, j)]
        parts = [parts[k] for k in keep] + [(parts[i], parts[j])]
        between = np.block([[between[np.ix_(keep, keep)], joined[keep, None]], [joined[None, keep], np.zeros((1, 1))]])
    return tuple(parts)
