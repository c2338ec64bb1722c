"""How a view of the rows becomes the cells of a sieve: a grid, values, landmarks or Gaussians of a codebook."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from latentviews._arrays import counts_there, in_doubles, in_library_of, namespace, on_host, take_columns
from latentviews._numbers import far_unit
from latentviews.core.features.bins import grid_and_kernel, linear_bins
from latentviews.core.features.landmarks import few_landmarks
from latentviews.core.features.point_masses import beside_indicators, which_mass
from latentviews.core.kernels.bandwidths import dithered, many_scales
from latentviews.core.kernels.base import Kernel
from latentviews.core.kernels.defaults import thumb_kernel
from latentviews.core.kernels.discrete import Delta
from latentviews.core.kernels.mixed import widened
from latentviews.core.kernels.spaces import Real
from latentviews.densities.codebooks import Codebook, fit_codebook
from latentviews.densities.power_scales import PowerScale, power_scale
from latentviews.mixtures.sieve import SieveRows

MAX_ATOMS = 400  # narrow kernels per column
CODES, ROWS_PER_CODE, CODES_PER_CLASS = 50, 6, 3  # Gaussians for several columns: at most; rows per column; at least
HIGHEST = 650.0  # the log of a kernel's height beyond which, or beneath whose inverse, densities are no numbers
NEGLIGIBLE = 1e-10  # values of a narrow kernel below this share of its height count as zero


class Basis(Protocol):
    """What the densities of a view are mixtures of."""

    @property
    def points(self) -> np.ndarray:
        """Where its parts stand, (C, d)."""

    def cells(self, x: Any) -> SieveRows:
        """The cells of some rows of the view, none missing."""


@dataclass(frozen=True, eq=False)
class GridBasis:
    """Narrow kernels on centres along one column, seen through a grid."""

    points: np.ndarray  # (C, 1), the grid
    kernel: Kernel
    atoms: sparse.csr_array  # (C, B), the kernels on the grid
    smoother: Any = None  # (C, C), sparse, for npMSL
    log_unit: float = 0.0  # the log of what the atoms are held over

    def cells(self, x: Any) -> SieveRows:
        """The rows shared between the grid points beside them."""
        rows = linear_bins(x[:, 0], self.points[:, 0])
        return SieveRows(rows, self.atoms, smoother=self.smoother, log_units=self.log_unit)


@dataclass(frozen=True, eq=False)
class PointBasis:
    """Narrow kernels on values or landmarks."""

    points: np.ndarray  # (C, d)
    kernel: Kernel

    def cells(self, x: Any) -> SieveRows:
        """The kernels at the rows."""
        points = in_library_of(self.points, x)
        log_height = self.kernel.log_height(x.shape[1]) if hasattr(self.kernel, "log_height") else 0.0
        if abs(log_height) > HIGHEST:
            return SieveRows(self.kernel.correlation(x, points), None, log_units=log_height)
        rows = self.kernel.gram(x, points)
        unit = far_unit(float(np.max(self.kernel.diagonal(self.points[:1]))))
        return SieveRows(rows if unit == 1 else rows / unit, None, log_units=math.log(unit))


@dataclass(frozen=True, eq=False)
class CodebookBasis:
    """Gaussians, each of its own shape."""

    codebook: Codebook

    @property
    def points(self) -> np.ndarray:
        """The means."""
        return self.codebook.means

    def cells(self, x: Any) -> SieveRows:
        """The Gaussians at the rows, over the largest for each row."""
        rows, log_units = self.codebook.scaled_densities(x)
        return SieveRows(rows, None, log_units=log_units)


@dataclass(frozen=True, eq=False)
class BentBasis:
    """The basis of a view in columns whose longer tail is drawn in."""

    scale: PowerScale
    inside: Basis

    @property
    def points(self) -> np.ndarray:
        """A place in all columns, to stand in for what is missing."""
        return self.scale.middle[None]

    def cells(self, x: Any) -> SieveRows:
        """The cells of the bent rows, their densities per unit of the columns as they were."""
        rows, log_slopes = self.scale.bent(x)
        found = self.inside.cells(rows)
        return replace(found, log_units=found.log_units + log_slopes)


@dataclass(frozen=True, eq=False)
class SubspaceBasis:
    """The basis of a view in a few directions."""

    directions: np.ndarray  # (d, q)
    inside: Basis

    @property
    def points(self) -> np.ndarray:
        """A place in all columns, to stand in for what is missing."""
        return np.zeros((1, len(self.directions)))

    def cells(self, x: Any) -> SieveRows:
        """The cells of the rows in the subspace."""
        return self.inside.cells(x @ in_library_of(self.directions, x))


@dataclass(frozen=True, eq=False)
class PointMassBasis:
    """The basis of a column off its point masses, and a cell for each of these."""

    values: tuple[float, ...]
    inside: Basis

    @property
    def points(self) -> np.ndarray:
        """Those of the other values."""
        return self.inside.points

    def cells(self, x: Any) -> SieveRows:
        """The other values in their cells, and point masses in theirs."""
        found, at = self.inside.cells(x), which_mass(x[:, 0], self.values)
        parts = {part: self._beside[part] for part in ("atoms", "smoother") if getattr(found, part) is not None}
        xp = namespace(x)
        log_units = xp.where(at < 0, xp.zeros_like(x[:, 0]) + found.log_units, -float(np.log(self._height)))
        return replace(found, rows=beside_indicators(found.rows, at, len(self.values)), log_units=log_units, **parts)

    @cached_property
    def _height(self) -> float:
        """Of the indicators: all kernels at a grid point, so that a first guess does not favour either."""
        return float(self.inside.atoms.sum(axis=1).mean()) if isinstance(self.inside, GridBasis) else 1.0

    @cached_property
    def _beside(self) -> dict[str, sparse.csr_array]:
        """What is on a grid, with the indicators beside it."""
        parts = {"atoms": self._height, "smoother": 1.0}
        each = {part: (getattr(self.inside, part, None), height) for part, height in parts.items()}
        indicators = sparse.eye_array(len(self.values))
        return {
            part: sparse.csr_array(sparse.block_diag([inside, height * indicators]))
            for part, (inside, height) in each.items()
            if inside is not None
        }


@dataclass(frozen=True, eq=False)
class SieveView:
    """A view of the table, and what its densities are mixtures of."""

    columns: list[int]
    block: int
    basis: Basis

    def cells(self, table: Any) -> SieveRows:
        """The cells of the rows of a table of any library, NaN where a view is missing."""
        x = in_doubles(take_columns(table, self.columns))
        xp = namespace(x)
        if not np.isnan(float(xp.sum(x))):  # no table of flags for rows that are all there
            return replace(self.basis.cells(x), block=self.block)
        present = ~xp.any(xp.isnan(x), axis=1)
        here = None if bool(xp.all(present)) else present
        if here is not None:
            x = xp.where(present[:, None], x, in_library_of(self.basis.points[:1], x))
        found = self.basis.cells(x)
        units = xp.where(present, xp.zeros_like(x[:, 0]) + found.log_units, 0.0)
        return replace(found, present=here, block=self.block, log_units=units)


def view_of_kernel(
    columns: list[int], block: int, points: np.ndarray, kernel: Any, atoms: Any, smoother: Any = None
) -> SieveView:
    """A view from the parts that files of format 1 hold: a codebook, kernels on points, or kernels on a grid."""
    if isinstance(kernel, Codebook):
        return SieveView(columns, block, CodebookBasis(kernel))
    basis: Basis = PointBasis(points, kernel) if atoms is None else GridBasis(points, kernel, atoms, smoother)
    return SieveView(columns, block, basis)


class BasisRule(Protocol):
    """The basis that a view gets, as wide as is asked for."""

    @property
    def has_width(self) -> bool:
        """Whether a width makes a difference."""

    def basis(self, factor: float) -> Basis:
        """The basis, its kernels ``factor`` times as wide as a rule of thumb says."""


@dataclass(frozen=True, eq=False)
class FixedBasis:
    """A basis that has no width to choose."""

    given: Basis
    has_width = False

    def basis(self, factor: float) -> Basis:
        """The same, whatever the factor."""
        return self.given


@dataclass(frozen=True, eq=False)
class ScaledKernel:
    """Kernels of any width on a grid for one real column, on landmarks for anything else."""

    x: np.ndarray  # rows of the view, none missing
    kernel: Kernel  # as wide as a rule says
    seed: int
    has_width = True

    def basis(self, factor: float) -> Basis:
        """Kernels ``factor`` times as wide."""
        narrow = widened(self.kernel, factor)
        space = self.kernel.space
        if space is None or not space.ordered or self.x.shape[1] > 1:
            return PointBasis(few_landmarks(narrow, self.x, self.seed).landmarks_, narrow)
        grid, narrow = grid_and_kernel(self.x[:, 0], narrow, 1024)
        width = float(narrow.get_params()["bandwidth"])
        size = int(np.clip((grid[-1] - grid[0]) / (0.75 * width), 8, MAX_ATOMS))
        centres = np.linspace(grid[0], grid[-1], size)
        atoms = narrow.gram(grid[:, None], centres[:, None])
        unit = far_unit(float(atoms.max()))
        return GridBasis(grid[:, None], narrow, without_negligible(atoms / unit), log_unit=math.log(unit))


def basis_rule(x: np.ndarray, kernel: Kernel, rank: int, seed: int) -> BasisRule:
    """What a sieve of ``rank`` classes makes of the rows ``x`` of a view, none missing.

    Several real columns, or one that has many scales, have a codebook: classes may differ in spread by orders of
    magnitude, such as those of a sensor at rest and in motion, which no single width fits. Where rows are too few for
    as many Gaussians as follow any shape, the longer tail of each of several columns is drawn in first.
    """
    space = kernel.space or Real()
    if space.finite:
        return FixedBasis(values_basis(x))
    if space.affine and (x.shape[1] > 1 or many_scales(x[:, 0])):
        size = min(CODES, len(x) // (ROWS_PER_CODE * x.shape[1]))
        least = max(min(CODES_PER_CLASS * rank, len(x) // 2), 1)  # fewer could not tell the classes apart
        rng = np.random.default_rng(seed)
        x = dithered(x, rng)
        if size == CODES or x.shape[1] == 1:
            return FixedBasis(CodebookBasis(fit_codebook(x, max(size, least), rng)))
        scale = power_scale(x)
        return FixedBasis(BentBasis(scale, CodebookBasis(fit_codebook(scale.bent(x)[0], max(size, least), rng))))
    return ScaledKernel(x, thumb_kernel(space, x), seed)


def values_basis(x: np.ndarray) -> PointBasis:
    """The different values of the rows."""
    return PointBasis(np.unique(x, axis=0), Delta())


def without_negligible(atoms: np.ndarray) -> sparse.csr_array:
    """Values of narrow kernels, sparse."""
    return sparse.csr_array(atoms * (atoms > NEGLIGIBLE * atoms.max()))


def view_cells(views: Sequence[SieveView], table: Any) -> list[SieveRows]:
    """The cells of every view of some rows, where these are if their library can count."""
    table = table if counts_there(table) else on_host(table)
    return [view.cells(table) for view in views]
