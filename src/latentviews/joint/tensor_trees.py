"""The joint embedding of d variables as a tree of small tensors (Song & Dai 2013).

The embedding C = E[φ_1(x_1) ⊗ … ⊗ φ_d(x_d)] is a tensor of order d. Cut along an edge of a tree it is a matrix, of
rank at most r where the edge belongs to a latent tree whose hidden variables have r states (Theorem 1). The
decomposition projects it, edge by edge, on its leading singular vectors; what is left is a small tensor a vertex.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from latentviews._arrays import to_numpy
from latentviews._numbers import row_shares
from latentviews.core.streams import batches
from latentviews.joint.trees import Tree


def leaf_features(features: Sequence[Any], columns: Sequence[int], rows: Any) -> list[np.ndarray]:
    """φ_j of one column of ``rows`` each, (n, m_j)."""
    return [to_numpy(features[j].transform(rows[:, [place]])) for place, j in enumerate(columns)]


def unit_functional(phi: Any) -> np.ndarray:
    """The vector whose inner product with Σ_i c_i φ(x_i) is Σ_i c_i: the integral where the kernel has mass one."""
    return np.ones(len(phi.categories_)) if hasattr(phi, "categories_") else phi.tail_.sum(axis=0)


@dataclass(frozen=True, eq=False)
class TreeEmbedding:
    """A joint embedding as a tree of small tensors.

    ``cores[v]`` maps what comes from below vertex v to its edge: (m_j, r_v) for a leaf, (r_a, r_b, r_v) for a vertex
    with children a and b, None where nothing is projected; the root has no edge above it. Columns are orthonormal.
    """

    tree: Tree = field(repr=False)
    features: tuple[Any, ...] = field(repr=False)  # a fitted map per column
    cores: tuple[np.ndarray | None, ...] = field(repr=False)
    spectra: dict[frozenset[int], np.ndarray] = field(
        repr=False
    )  # squared singular values at every edge when it was cut
    discarded: float  # their sum over what was left out
    fixed: Mapping[int, np.ndarray] = field(
        default_factory=dict, repr=False
    )  # vectors that columns are contracted with
    scale: float = 1.0

    def __getstate__(self) -> dict[str, Any]:
        """What pickle and skops keep: pairs in place of a dict whose keys, edges, are no text."""
        return self.__dict__ | {"spectra": [(sorted(edge), values) for edge, values in self.spectra.items()]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state | {"spectra": {frozenset(edge): values for edge, values in state["spectra"]}})

    @property
    def columns(self) -> list[int]:
        """The columns that are still variables."""
        return [j for j in range(len(self.features)) if j not in self.fixed]

    @property
    def ranks(self) -> dict[frozenset[int], int]:
        """The rank of every edge that was cut."""
        return {edge: np.asarray(self.cores[self.tree.leaves.index(edge)]).shape[-1] for edge in self.spectra}

    def at(self, x: Any) -> np.ndarray:
        """The raw values ⟨C, φ(x_1) ⊗ … ⊗ φ(x_d)⟩ for rows of the free columns, (n,): they may be negative."""
        parts = [self.apply(self._leaves(rows)) for rows, _ in batches(np.asarray(x, dtype=float))]
        return np.concatenate(parts) if parts else np.empty(0)

    def _leaves(self, rows: np.ndarray) -> dict[int, np.ndarray]:
        """Feature vectors of the free columns; the unit functional where a value is missing."""
        found = {}
        for place, j in enumerate(self.columns):
            x = rows[:, [place]]
            missing = np.isnan(x[:, 0])
            vectors = to_numpy(self.features[j].transform(np.where(missing[:, None], 0.0, x)))
            found[j] = np.where(missing[:, None], unit_functional(self.features[j]), vectors)
        return found

    def apply(self, functions: Mapping[int, np.ndarray]) -> np.ndarray:
        """C •_1 f_1 … •_d f_d for functions given by vectors (n, m_j) in the feature spaces of the free columns."""
        return self.scale * contract(self.tree, self.cores, {**self.fixed, **functions})

    def expectation(self, functions: Mapping[int, tuple[Any, Any]]) -> float:
        """E[Π_j f_j(x_j)] for f_j = Σ_i coefficients_i k_j(points_i, ·), pairs (points, coefficients) by column.

        Columns that are not named are integrated out.
        """
        vectors = {j: unit_functional(self.features[j])[None, :] for j in self.columns}
        for j, (points, coefficients) in functions.items():
            if j not in vectors:
                raise ValueError(f"expectation takes functions of the columns {self.columns}; got one of column {j!r}.")
            phi = to_numpy(self.features[j].transform(np.reshape(points, (-1, 1)).astype(float)))
            vectors[j] = (np.asarray(coefficients, dtype=float) @ phi)[None, :]
        return float(self.apply(vectors)[0])

    @property
    def mass(self) -> float:
        """The integral of the raw values, in closed form: every kernel value replaced by one."""
        return self.expectation({})

    def marginal(self, columns: Sequence[int]) -> "TreeEmbedding":
        """The embedding of some columns, in their order in the table: the others contracted with the integral."""
        dropped = [j for j in self.columns if j not in set(columns)]
        return replace(self, fixed={**self.fixed, **{j: unit_functional(self.features[j])[None, :] for j in dropped}})

    def conditional(self, given: Mapping[int, float]) -> "TreeEmbedding":
        """The embedding of the other columns given values of some, scaled to mass one."""
        values = {j: to_numpy(self.features[j].transform(np.array([[float(x)]]))) for j, x in given.items()}
        found = replace(self, fixed={**self.fixed, **values})
        mass = found.mass
        if not mass > 0:
            raise ValueError(f"The estimate is {mass:.3g} at {dict(given)}, so it has no conditional there.")
        return replace(found, scale=found.scale / mass)

    def inner(self, other: "TreeEmbedding") -> float:
        """⟨C, C'⟩ with an embedding of the same columns along the same tree and by the same features."""
        one_tree = (self.tree.children, self.tree.columns) == (other.tree.children, other.tree.columns)
        if not one_tree or any(a is not b for a, b in zip(self.features, other.features, strict=True)):
            raise ValueError("Embeddings are compared along one tree and by the same fitted features; these differ.")
        if self.columns != other.columns:
            raise ValueError(f"Embeddings of the same columns are compared; got {self.columns} and {other.columns}.")
        meeting: list[np.ndarray] = []
        for v, (pair, column) in enumerate(zip(self.tree.children, self.tree.columns, strict=True)):
            if pair is None:
                meeting.append(self._leaf(v, column).T @ other._leaf(v, column))
            else:
                meeting.append(_meet(self.cores[v], other.cores[v], meeting[pair[0]], meeting[pair[1]]))
        return self.scale * other.scale * float(meeting[-1][0, 0])

    def _leaf(self, v: int, column: int) -> np.ndarray:
        """The tensor of a leaf, (m_j, r), or (1, r) where its column is contracted."""
        start = self.fixed.get(column, np.eye(self.features[column].transform(np.zeros((1, 1))).shape[1]))
        core = self.cores[v]
        return start if core is None else start @ core

    def mmd(self, other: "TreeEmbedding") -> float:
        """‖C − C'‖, the distance of two embeddings along one tree."""
        squared = self.inner(self) - 2 * self.inner(other) + other.inner(other)
        return float(np.sqrt(max(squared, 0.0)))

    def squared_norm(self) -> float:
        """‖C̃‖², by the tensors alone."""
        if self.fixed or self.scale != 1.0:
            raise ValueError("squared_norm is that of the whole embedding, before marginals and conditionals.")
        return float(np.sum(np.asarray(self.cores[self.tree.root]) ** 2))  # all others are orthonormal


def contract(tree: Tree, cores: Sequence[np.ndarray | None], leaves: Mapping[int, np.ndarray]) -> np.ndarray:
    """The tree of tensors applied to vectors (n, m_j) at its leaves, or (1, m_j) for all rows alike, (n,)."""
    return _upward(tree, cores, leaves)[-1][:, 0]


def projected(embedding: TreeEmbedding, leaves: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What the tensors below the root make of vectors (n, m_j) at the leaves: coordinates (n, r) on each side of it."""
    tree = embedding.tree
    cores = [*embedding.cores[:-1], None]
    pair = tree.children[tree.root]
    assert pair is not None
    found = _upward(tree, cores, dict(enumerate(leaves)), upto=tree.root)
    return [found[child] for child in pair]


def _upward(
    tree: Tree, cores: Sequence[np.ndarray | None], leaves: Mapping[int, np.ndarray], upto: int | None = None
) -> Any:
    """What comes up every edge, from the leaves to the root or to before it."""
    messages: list[np.ndarray] = []
    for pair, column, core in list(zip(tree.children, tree.columns, cores, strict=True))[:upto]:
        if pair is None:
            below = leaves[column]
            messages.append(below if core is None else below @ core)
        else:
            messages.append(join(messages[pair[0]], messages[pair[1]], core))
    return messages


def _meet(first: np.ndarray | None, second: np.ndarray | None, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Σ first_abr left_aa' right_bb' second_a'b's, (r, s); a vertex without a tensor passes all products on."""
    a, b = left.shape[0], right.shape[0]
    c, d = left.shape[1], right.shape[1]
    first = np.eye(a * b).reshape(a, b, a * b) if first is None else first
    second = np.eye(c * d).reshape(c, d, c * d) if second is None else second
    return np.einsum("abr,ac,bd,cds->rs", first, left, right, second, optimize=True)


def join(left: np.ndarray, right: np.ndarray, core: np.ndarray | None) -> np.ndarray:
    """Σ_ab left_a right_b core_abr for every row, (n, r)."""
    if core is None:
        return khatri_rao(left, right)
    middle = (left @ core.reshape(core.shape[0], -1)).reshape(-1, *core.shape[1:])
    return (right[:, None, :] @ middle)[:, 0, :]


def khatri_rao(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The products of all entries of two vectors, for every row, (n, a·b)."""
    return (left[:, :, None] * right[:, None, :]).reshape(len(left), -1)


def exact_embedding(
    rows: np.ndarray,
    features: Sequence[Any],
    tree: Tree,
    rank: Any = None,
    *,
    tol: float = 0.0,
    weights: np.ndarray | None = None,
) -> TreeEmbedding:
    """Algorithm 3 of Song & Dai (2013), corrected, along any tree; O(n²) memory.

    Parameters
    ----------
    rows : array of shape (n, d)
    features : sequence of one fitted map per column
        Exact where every value is a landmark, as with `LandmarkFeatures(kernel, None)`.
    tree : Tree
    rank : int, None or one per edge
        The most singular vectors an edge keeps.
    tol : float
        The share of ‖C‖² that an edge may leave out: it keeps the fewest singular vectors that do.
    weights : array of shape (n,) or None
        The probability of every row; with all values of discrete variables as rows this is the population's embedding.

    Notes
    -----
    The embedding is Σ_i w_i ⊗_j φ_j(x_ij). With γ the coordinates of what lies below an edge and L the Gram matrix of
    all that does not, the squared singular values at the edge are the eigenvalues of Σ_ii' w_i w_i' γ_i L_ii' γ_i'ᵀ.
    The projections follow each other, so the squared error is the sum of what they leave out.
    """
    shares = row_shares(len(rows), weights)
    ranks = tree.ranks(rank)
    phi = leaf_features(features, range(len(features)), rows)
    frontier = {v: phi[j] for v, j in enumerate(tree.columns) if j >= 0}
    cores: list[np.ndarray | None] = []
    sizes: list[int] = []
    spectra: dict[frozenset[int], np.ndarray] = {}
    discarded, norm = 0.0, float(shares @ _gram(list(frontier.values())) @ shares)
    for v, pair in enumerate(tree.children[:-1]):
        below = frontier.pop(v) if pair is None else khatri_rao(frontier.pop(pair[0]), frontier.pop(pair[1]))
        core = None
        if tree.truncated[v]:
            others = _gram(list(frontier.values()))
            basis, spectrum = _leading(below * shares[:, None], others)
            kept = count_kept(spectrum, ranks[v], tol * norm)
            if tree.leaves[v] in tree.edges:
                spectra[tree.leaves[v]] = spectrum
                discarded += float(spectrum[kept:].sum())
            core = np.ascontiguousarray(basis[:, :kept])  # a view would keep the whole basis alive
            below = below @ core
            core = core if pair is None else core.reshape(sizes[pair[0]], -1, kept)
        cores.append(core)
        sizes.append(below.shape[1])
        frontier[v] = below
    last = [frontier[v] for v in sorted(frontier)]
    core = shares @ last[0] if len(last) == 1 else (last[0] * shares[:, None]).T @ last[1]
    cores.append(np.ascontiguousarray(core[..., None]))
    return TreeEmbedding(tree, tuple(features), tuple(cores), spectra, discarded)


def _gram(features: Sequence[np.ndarray]) -> np.ndarray:
    """The Gram matrix of the tensor products of features: the product of their Gram matrices."""
    gram = features[0] @ features[0].T
    for phi in features[1:]:
        gram *= phi @ phi.T
    return gram


def _leading(below: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvectors of belowᵀ others below, in columns, and its eigenvalues, decreasing: Algorithm 2, KernelSVD."""
    frame = None
    if below.shape[1] > below.shape[0]:  # all happens in the span of the rows
        frame, triangle = np.linalg.qr(below.T)
        below = triangle.T
    values, vectors = np.linalg.eigh(below.T @ others @ below)
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    return vectors if frame is None else frame @ vectors, values


def count_kept(spectrum: np.ndarray, rank: int | None, tolerated: float) -> int:
    """How many singular vectors to keep: at most ``rank``, and no more than the tolerated loss asks for."""
    most = len(spectrum) if rank is None else min(rank, len(spectrum))
    left_out = np.append(np.cumsum(spectrum[::-1])[::-1], 0.0)
    enough = int(np.argmax(left_out <= tolerated)) if tolerated else most
    return max(min(enough, most), 1)


def frobenius(
    embedding: TreeEmbedding, rows: np.ndarray, weights: np.ndarray | None = None, size: int = 1024
) -> tuple[float, float]:
    """‖C − C̃‖ and ‖C‖ for the embedding C of these rows, exactly, a block of the Gram matrix at a time.

    ‖C − C̃‖² = ‖C‖² − 2⟨C, C̃⟩ + ‖C̃‖², and ⟨C, C̃⟩ is the mean of C̃'s values at the rows.
    """
    shares = row_shares(len(rows), weights)
    phi = leaf_features(embedding.features, range(len(embedding.features)), rows)
    norm = 0.0
    for start in range(0, len(rows), size):
        part = slice(start, start + size)
        gram = phi[0][part] @ phi[0].T
        for one in phi[1:]:
            gram *= one[part] @ one.T
        norm += float(shares[part] @ gram @ shares)
    squared = norm - 2 * float(shares @ embedding.at(rows)) + embedding.squared_norm()
    return float(np.sqrt(max(squared, 0.0))), float(np.sqrt(norm))
