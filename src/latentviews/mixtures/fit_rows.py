"""The rows that a polish is fitted to, and what it asks of them: rows that are independent of each other."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Protocol, Self

import numpy as np

from latentviews._clusters import kmeans_posteriors
from latentviews.core.features.point_masses import which_mass
from latentviews.core.kernels.base import Kernel
from latentviews.core.tables import Columns
from latentviews.core.views import stack_block
from latentviews.mixtures.cells import Basis, PointMassBasis, SieveView, SubspaceBasis, view_cells
from latentviews.mixtures.sieve import SieveParameters, SieveRows, em_step, initial_parameters, posterior

Halves = tuple[np.ndarray, np.ndarray]


class FitRows(Protocol):
    """The rows that a polish is fitted to, and the steps of EM on them."""

    @property
    def allowed(self) -> np.ndarray | None:
        """Zero for classes that a row is known not to be in, (n, k); None where nothing is known."""

    def by_block(self) -> dict[int, tuple[np.ndarray, Kernel]]:
        """The rows of every block's views, one under the other and none missing, and their kernel."""

    def views(self, shared: dict[int, Basis]) -> tuple[SieveView, ...]:
        """A sieve for every view from the basis of every block."""

    def cells(self, views: Sequence[SieveView]) -> list[SieveRows]:
        """The rows in the cells of every view."""

    def some(self, rows: np.ndarray) -> Self:
        """The same with some of the rows."""

    def draw(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """Numbers of some rows to try things on."""

    def halves(self) -> Halves:
        """Numbers of the rows in two halves, one to be judged by a fit to the other."""

    def clusters(self, rank: int, seed: int) -> np.ndarray:
        """A guess of the posteriors by k-means."""

    def initial(self, cells: Sequence[SieveRows], posteriors: np.ndarray) -> SieveParameters:
        """Parameters from a guess of the posteriors."""

    def step(self, cells: Sequence[SieveRows], parameters: SieveParameters) -> tuple[SieveParameters, float]:
        """One step of exact EM, and the mean log-likelihood before it."""

    def posteriors(self, cells: Sequence[SieveRows], parameters: SieveParameters) -> np.ndarray:
        """What a fit says of the rows' classes, (n, k)."""

    def score(self, cells: Sequence[SieveRows], parameters: SieveParameters) -> float:
        """The mean log-likelihood of the rows."""


def alternating(n_rows: int) -> Halves:
    """Row numbers in two halves that take turns."""
    rows = np.arange(n_rows)
    return rows[::2], rows[1::2]


class MixtureRows(NamedTuple):
    """Rows that are independent of each other."""

    table: np.ndarray  # NaN where a value is missing
    columns: Columns  # of every view
    blocks: Sequence[int]  # views with the same number share their densities
    kernels: Sequence[Kernel]  # of every view; their space says what its densities are like
    weights: np.ndarray | None = None
    allowed: np.ndarray | None = None  # (n, k), zero for classes that a row is known not to be in
    directions: Mapping[int, np.ndarray] = MappingProxyType({})  # (d, q), of blocks that are seen in a subspace
    masses: Mapping[int, tuple[float, ...]] = MappingProxyType({})  # of blocks that have point masses

    def by_block(self) -> dict[int, tuple[np.ndarray, Kernel]]:
        """The rows of every block's views, one under the other and none missing, and their kernel."""
        rows: dict[int, tuple[np.ndarray, Kernel]] = {}
        for block in sorted(set(self.blocks)):
            x = stack_block(self.table, self.columns, self.blocks, block)
            x = x[~np.isnan(x).any(axis=1)]
            x = x[which_mass(x[:, 0], self.masses.get(block, ())) < 0]
            if not len(x):
                place = self.columns[list(self.blocks).index(block)]
                raise ValueError(
                    f"No row that counts has a value in column(s) {place} off point masses; leave them out."
                )
            inside = x @ self.directions[block] if block in self.directions else x
            rows[block] = inside, self.kernels[list(self.blocks).index(block)]
        return rows

    def views(self, shared: dict[int, Basis]) -> tuple[SieveView, ...]:
        """A sieve for every view from the basis of every block."""
        seen = dict(shared)
        seen |= {b: SubspaceBasis(directions, shared[b]) for b, directions in self.directions.items()}
        seen |= {b: PointMassBasis(values, shared[b]) for b, values in self.masses.items()}
        return tuple(SieveView(self.columns[t], block, seen[block]) for t, block in enumerate(self.blocks))

    def some(self, rows: np.ndarray) -> "MixtureRows":
        """The same with some of the rows, which are equal ones where none of them counts."""
        weights = None if self.weights is None or not self.weights[rows].any() else self.weights[rows]
        allowed = None if self.allowed is None else self.allowed[rows]
        return self._replace(table=self.table[rows], weights=weights, allowed=allowed)

    def cells(self, views: Sequence[SieveView]) -> list[SieveRows]:
        """The rows in the cells of every view."""
        return view_cells(views, self.table)

    def draw(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """Numbers of some rows to try things on."""
        return rng.permutation(len(self.table))[:size]

    def halves(self) -> Halves:
        """Numbers of the rows in two halves, one to be judged by a fit to the other."""
        return alternating(len(self.table))

    def clusters(self, rank: int, seed: int) -> np.ndarray:
        """A guess of the posteriors by k-means of all columns, once."""
        used = [j for view in self.columns for j in view]
        return kmeans_posteriors(self.table, used, rank, np.random.default_rng(seed), self.weights, n_init=1)

    def initial(self, cells: Sequence[SieveRows], posteriors: np.ndarray) -> SieveParameters:
        """Parameters from a guess of the posteriors."""
        return initial_parameters(cells, posteriors, self.weights)

    def step(self, cells: Sequence[SieveRows], parameters: SieveParameters) -> tuple[SieveParameters, float]:
        """One step of exact EM, and the mean log-likelihood before it."""
        return em_step(cells, parameters, self.weights, self.allowed)

    def posteriors(self, cells: Sequence[SieveRows], parameters: SieveParameters) -> np.ndarray:
        """What a fit says of the rows' classes, (n, k)."""
        return posterior(cells, parameters, self.allowed)[0]

    def score(self, cells: Sequence[SieveRows], parameters: SieveParameters) -> float:
        """The mean log-likelihood of the rows."""
        return float(np.average(posterior(cells, parameters)[2], weights=self.weights))
