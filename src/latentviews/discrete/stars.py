r"""Memberships from counts of stars (Anandkumar, Ge, Hsu & Kakade 2013).

A node x has shares π_x ~ Dirichlet(α) of k communities, and is linked to y with probability π_xᵀ P π_y. Given π_x, its
links to three disjoint sets of nodes A, B, C are three independent views with means F_A π_x, F_B π_x and F_C π_x,
F_A = Π_A P: mixed membership, whose corrected moments `discrete.dirichlet.view_parts` decomposes. Where F is known, so
are memberships: links of x to the leaves outside its own set are linear in π_x.

The paper's centres X are a fourth set. Here every node is a centre, over several partitions of all nodes into leaves,
and leaves are projected by the leading eigenvectors of the whole adjacency: less noise from the same graph.
"""

import warnings
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from scipy.sparse.linalg import eigsh

from latentviews._sentences import warn_user
from latentviews._validation import IdentifiabilityWarning, UnsupportedError
from latentviews.core.tensors import Solver
from latentviews.discrete.dirichlet import DirichletParts, chosen_concentration, find_concentration, view_parts

T = TypeVar("T")

PARTITIONS = 5  # of nodes into three sets of leaves
MOST = 1.0  # of α_h that are found: beyond, memberships vary less than their noise in graphs of some hundred nodes
SMALL = 500  # nodes up to which all eigenvectors are found


class StarMemberships(NamedTuple):
    """What stars say: shares that may be negative, and need not sum to one."""

    memberships: np.ndarray  # (n, k)
    weights: np.ndarray  # (k,)
    concentration: float
    spectrum: np.ndarray  # of the adjacency: its k leading eigenvalues


class Stars(NamedTuple):
    """Nodes as centres of stars, with leaves in three sets that are projected to k coordinates each."""

    leaves: list[np.ndarray]  # the nodes of every set
    views: list[np.ndarray]  # (n, k), one per set: links of all nodes to its leaves, projected
    shares: np.ndarray | None  # of centres in moments; equal ones by default

    def parts(self, concentration: float, solver: Solver, seed: int) -> DirichletParts:
        """The communities' projected links, and weights."""
        rank, rng = self.views[0].shape[1], np.random.default_rng(seed)
        return view_parts(self.views, rank, concentration, solver, rng, self.shares)[0]

    def memberships(self, parts: DirichletParts) -> np.ndarray:
        """Shares of every node by least squares on its links to the two sets of leaves that it is not in, (n, k)."""
        means, found = np.split(parts.vectors, 3), np.empty_like(self.views[0])
        for own, nodes in enumerate(self.leaves):
            others = [t for t in range(3) if t != own]
            inverse = np.linalg.pinv(np.concatenate([means[t] for t in others]))
            found[nodes] = np.concatenate([self.views[t][nodes] for t in others], axis=1) @ inverse.T
        return found


def leading_eigenvectors(links: sparse.csr_array, rank: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The ``rank`` eigenvalues of largest size and their vectors in columns."""
    if links.shape[0] <= SMALL:  # exact where eigenvalues are equal, as in disconnected graphs
        values, vectors = np.linalg.eigh(links.toarray())
    else:
        values, vectors = eigsh(links, rank, v0=rng.normal(size=links.shape[0]))
    order = np.argsort(-np.abs(values), kind="stable")[:rank]
    return values[order], vectors[:, order]


def stars_of(
    links: sparse.csr_array, vectors: np.ndarray, rng: np.random.Generator, shares: np.ndarray | None = None
) -> Stars:
    """Stars with leaves in three sets at random, projected by an orthonormal basis of their eigenvectors."""
    sets = rng.permutation(np.arange(links.shape[0]) % 3)
    leaves = [np.flatnonzero(sets == t) for t in range(3)]
    return Stars(leaves, [links[:, nodes] @ np.linalg.qr(vectors[nodes])[0] for nodes in leaves], shares)


def star_memberships(
    links: sparse.csr_array,
    eigen: tuple[np.ndarray, np.ndarray],
    concentration: float | None,
    solver: Solver,
    rng: np.random.Generator,
    shares: np.ndarray | None = None,
) -> StarMemberships:
    """The mean of what several partitions say; where the concentration is None, the median of theirs, k at most."""
    values, vectors = eigen
    stars = [stars_of(links, vectors, rng, shares) for _ in range(PARTITIONS)]
    seed = int(rng.integers(2**31))

    def parts_of(one: Stars, a: float) -> tuple[np.ndarray, np.ndarray]:
        parts = one.parts(a, solver, seed)
        return one.memberships(parts), parts.weights

    def concentration_of(one: Stars) -> float:
        return find_concentration(lambda a: one.parts(a, solver, seed))

    def found() -> float:
        return min(float(np.median(_supported(stars, concentration_of))), MOST * vectors.shape[1])

    chosen = chosen_concentration(vectors.shape[1], concentration, found)
    return StarMemberships(*_averaged(_supported(stars, lambda one: parts_of(one, chosen))), chosen, values)


def _supported(stars: list[Stars], estimate: Callable[[Stars], T]) -> list[T]:
    """The estimates of those stars whose moments have as many parts; the first one's sentence where none do."""
    estimates: list[T] = []
    failure: UnsupportedError | None = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", IdentifiabilityWarning)
        for one in stars:
            try:
                estimates.append(estimate(one))
            except UnsupportedError as error:
                failure = failure or error
    if failure is not None and not estimates:
        raise failure
    if any(issubclass(one.category, IdentifiabilityWarning) for one in caught):
        k = stars[0].views[0].shape[1]
        warn_user(
            f"The links show fewer than {k} communities: the rest is rounding. Ask for fewer.", IdentifiabilityWarning
        )
    return estimates


def _averaged(estimates: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Mean memberships and weights, communities of each matched with those of the first."""
    first = estimates[0][0]
    orders = [linear_sum_assignment(first.T @ memberships, maximize=True)[1] for memberships, _ in estimates]
    memberships = [one[:, order] for (one, _), order in zip(estimates, orders, strict=True)]
    weights = [one[order] for (_, one), order in zip(estimates, orders, strict=True)]
    return np.mean(memberships, axis=0), np.mean(weights, axis=0)
