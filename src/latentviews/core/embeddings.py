"""Distributions as vectors: what can be asked of an embedding."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import fft
from sklearn.base import clone

from latentviews._arrays import counts_there, in_doubles, in_library_of, is_foreign, namespace, to_numpy
from latentviews._numbers import LARGEST, TINY
from latentviews.core.components import BACKGROUND, HIGHEST, LEAST_SHARE, Components, as_rows, evaluate
from latentviews.core.features.base import is_factored
from latentviews.core.features.bins import BinnedFeatures, GridFeatures, linear_bins
from latentviews.core.kernels.bandwidths import weighted_isj
from latentviews.core.kernels.base import Kernel
from latentviews.core.kernels.mixed import smoothness
from latentviews.core.kernels.quadrature import Quadrature
from latentviews.core.kernels.spaces import Real
from latentviews.core.streams import batches

TABLE_CELLS = 8192  # of a `LogTable`, if two grid points are not nearer already


class LogTable(NamedTuple):
    """Logs of the densities of one column, one per equal cell from ``low`` on, and bounds on their errors there."""

    low: float
    per_unit: float  # cells
    logs: np.ndarray  # (cells, k), in the middle of every cell, but for a term that is the same for all components
    errors: np.ndarray  # (cells,), beyond which no log in the cell is from that in the middle


@dataclass(frozen=True, eq=False)
class Embedding(Components):
    """Components as feature vectors μ_h = E[φ(x) | h].

    Parameters
    ----------
    domain : Quadrature or None
    features : a fitted transformer, φ
    vectors : array of shape (n_features, k), μ_h in columns

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import MultiViewMixture
    >>> from latentviews.datasets import make_multiview
    >>> X = make_multiview(300, 2, n_views=4, random_state=0).X
    >>> model = MultiViewMixture(2, views=[[0, 1], [2], [3]], polish=None, random_state=0).fit(X)
    >>> pair = model.components_[0]  # the view of two columns
    >>> type(pair).__name__, pair.density(np.zeros((5, 2))).shape
    ('Embedding', (5, 2))
    """

    features: Any
    vectors: np.ndarray = field(repr=False)

    @property
    def smooths(self) -> bool:
        """Whether the features are those of a known kernel."""
        return hasattr(self.features, "kernel_")

    @property
    def n_components(self) -> int:
        """The number of components k."""
        return self.vectors.shape[1]

    def _values(self, x: Any) -> np.ndarray:
        """The raw values ⟨φ(x), μ_h⟩, (n, k)."""
        x = as_rows(x)
        if not x.shape[0]:
            return np.empty((0, self.n_components))
        return np.concatenate([self._products(rows) for rows, _ in batches(x)])

    def _products(self, rows: Any) -> np.ndarray:
        """Of some rows; where φ(x) = raw(x) @ tail, the tail is multiplied by the few vectors and not by all rows."""
        if not is_factored(self.features):
            return to_numpy(self.features.transform(rows)) @ self.vectors
        raw = self.features.raw(rows)
        return to_numpy(raw @ in_library_of(self._tail_vectors, raw))

    @cached_property
    def _tail_vectors(self) -> np.ndarray:
        return self.features.tail_ @ self.vectors

    @property
    def n_parameters(self) -> np.ndarray:
        """One less than the number of features, which add up to one."""
        return np.full(self.n_components, max(self.vectors.shape[0] - 1.0, 0.0))

    def take(self, order: np.ndarray) -> "Embedding":
        """The components in another order, or some of them."""
        return replace(self, vectors=self.vectors[:, order])

    def _coordinates(self, other: Components) -> np.ndarray:
        if isinstance(other, Embedding) and other.features is self.features:
            return other.vectors
        points, weights = other._as_sample()
        return to_numpy(self.features.transform(points)).T @ weights


@dataclass(frozen=True, eq=False)
class BinnedEmbedding(Components):
    r"""Components of one real column as weights on a uniform grid, each smoothed with its own bandwidth.

    .. math:: \mu_h = \sum_b w_{bh}\, k_h(g_b, \cdot)

    The weights w may be negative: they are what the moments say of a row that falls on the grid point g_b (Bonhomme,
    Jochmans & Robin 2016), so any functional is a weighted sum.

    Parameters
    ----------
    domain : Quadrature
    grid : array of shape (n_bins,)
    weights : array of shape (n_bins, k)
    kernel : Kernel
    bandwidths : array of shape (k,)
    local : array of shape (n_bins, k) or None
        How much wider than its component's the kernel at a grid point is, few different numbers; None for no more.
    shapes : array of shape (3 * n_bins - 2, k) or None
        Densities that the kernels' are mixed with, times their shares, on the grid and as much again on either side:
        curves that some parameters say. Functionals are read off the weights alone.

    Examples
    --------
    >>> from latentviews import MultiViewMixture
    >>> from latentviews.datasets import make_multiview
    >>> X = make_multiview(300, 2, random_state=0).X
    >>> model = MultiViewMixture(2, polish=None, random_state=0).fit(X)
    >>> view = model.components_[0]
    >>> type(view).__name__, view.density([-2.0, 2.0]).shape, view.weights.sum(axis=0).round(1)
    ('BinnedEmbedding', (2, 2), array([1., 1.]))
    """

    grid: np.ndarray = field(repr=False)
    weights: np.ndarray = field(repr=False)
    kernel: Kernel
    bandwidths: np.ndarray
    local: np.ndarray | None = field(default=None, repr=False)
    shapes: np.ndarray | None = field(default=None, repr=False)

    @property
    def n_components(self) -> int:
        """The number of components k."""
        return self.weights.shape[1]

    def _values(self, x: Any) -> np.ndarray:
        """The raw values, (n, k), interpolated between grid points."""
        x = to_numpy(as_rows(x))
        if x.shape[1] != 1:
            raise ValueError(f"This view has one column; got {x.shape[1]}.")
        space, reach = self.kernel.space or Real(), float(np.ptp(self.wide_grid[[0, -1]]))
        if not self._bordered:
            return self._on_the_line(x[:, 0])
        inside = space.contains(x) | np.isnan(x)  # of which there is no saying
        images = space.images(np.where(inside, x, self.grid[0]), reach)
        return np.sum([self._on_the_line(image[:, 0]) for image in images], axis=0) * inside

    def _on_the_line(self, x: np.ndarray) -> np.ndarray:
        """The kernels without mirrors, (n, k)."""
        return self._inside(x, linear_bins(x, self.wide_grid) @ self._table)

    @property
    def looks_up(self) -> bool:
        """Whether logs of densities come from a table for rows of any array library that can count."""
        return self.domain is not None and self.domain.space.affine and not self._bordered

    def log_density(self, x: Any) -> Any:
        """The log of ``density`` mixed with a millionth of a broad density, in the library of ``x`` where it can count.

        Parameters
        ----------
        x : array of shape (n,) or (n, d)

        Returns
        -------
        array of shape (n, k)
        """
        x = as_rows(x)
        if not self.looks_up or x.shape[1] != 1:
            return super().log_density(x)
        domain, column = self._domain(), in_doubles(x[:, 0] if counts_there(x) else to_numpy(x)[:, 0])
        xp, spread = namespace(column), float(domain.spread[0])
        values = xp.clip(self._inside(column, linear_bins(column, self.wide_grid) @ self._proper_table), TINY, None)
        with np.errstate(over="ignore"):  # however far
            away = xp.clip((column - float(domain.center[0])) / spread, -LARGEST, LARGEST)
        background = BACKGROUND / (math.pi * spread) * math.exp(-domain.log_unit) / (1 + away * away)
        return xp.log(values + background[:, None]) + domain.log_unit

    def _inside(self, x: Any, values: Any) -> Any:
        """The values (n, k), and zero where x (n,) is beyond the wide grid; no number where x is none."""
        low, high = float(self.wide_grid[0]), float(self.wide_grid[-1])
        if not is_foreign(x) and (not len(x) or (x.min() >= low and x.max() <= high)):
            return values
        xp = namespace(x)
        beyond = xp.where(x == x, xp.zeros_like(x), x)
        return xp.where(((x >= low) & (x <= high))[:, None], values, beyond[:, None])

    def log_table(self) -> LogTable:
        """The logs of `log_density` over the grid, in cells that divide its steps.

        Densities are straight between grid points, and the background b has a slope of at most b / spread.

        Returns
        -------
        LogTable
        """
        size, domain = len(self.grid), self._domain()
        parts = -(-TABLE_CELLS // (size - 1))
        width, spread = float(self.grid[1] - self.grid[0]) / parts, float(domain.spread[0])
        places = np.arange((size - 1) * parts) + 0.5
        table = self._proper_table[size - 1 : 2 * size - 1]
        straight = linear_bins(places / parts, np.arange(size)) @ table
        rise = np.repeat(np.abs(np.diff(table, axis=0)) / (2 * parts), parts, axis=0)
        away = (float(self.grid[0]) + width * places - float(domain.center[0])) / spread
        broad = (BACKGROUND / (math.pi * spread) * math.exp(-domain.log_unit) / (1 + away * away))[:, None]
        bend = math.expm1(width / (2 * spread))
        middle = np.log(np.maximum(straight, TINY) + broad)
        above = np.log(np.maximum(straight + rise, TINY) + broad * (1 + bend)) - middle
        below = middle - np.log(np.maximum(straight - rise, TINY) + broad / (1 + bend))
        return LogTable(float(self.grid[0]), 1 / width, middle, np.maximum(above, below).max(axis=1))

    @cached_property
    def _proper_table(self) -> np.ndarray:
        with np.errstate(over="ignore"):  # of a class without mass
            return np.clip(self._table / self._positive_mass, -HIGHEST, HIGHEST)

    @cached_property
    def wide_grid(self) -> np.ndarray:
        """The grid and as many points again on either side, for what the kernel carries out, (3 * n_bins - 2,)."""
        size, step = len(self.grid), self.grid[1] - self.grid[0]
        return self.grid[0] + step * np.arange(-(size - 1), 2 * size - 1)

    @cached_property
    def _table(self) -> np.ndarray:
        """Raw values on the wide grid, as if on the line: weights convolved with every component's kernel."""
        size, wide = len(self.grid), len(self.wide_grid)
        length = fft.next_fast_len(4 * size - 3, real=True)  # what a circle of so many points mixes up is cut off
        factors, weights = np.ones(1), self.weights[:, None]
        if self.local is not None:
            factors = np.unique(self.local)
            weights = np.where(self.local[:, None] == factors[:, None], weights, 0.0)  # (n_bins, factors, k)
        widths, places = np.unique(factors[:, None] * self.bandwidths, return_inverse=True)
        kernels = fft.rfft(self._profiles(widths), length, axis=0)[:, places.reshape(-1, self.n_components)]
        table = (kernels * fft.rfft(weights, length, axis=0)).sum(axis=1)
        table = fft.irfft(table, length, axis=0)[size - 1 : size - 1 + wide]
        return table if self.shapes is None else self._kernel_share * table + self.shapes

    def _profiles(self, widths: np.ndarray) -> np.ndarray:
        """The kernels of these widths at all differences of two points of the wide grid and the grid, in columns."""
        offsets = (self.grid[1] - self.grid[0]) * np.arange(2 * len(self.grid) - 1)
        if getattr(self.kernel, "stretches", False):
            with np.errstate(over="ignore"):  # of bandwidths next to nothing
                stretched = offsets[:, None] / widths
                unit = self._of_width(1.0, on_the_line=True).gram(stretched.reshape(-1, 1), np.zeros((1, 1)))
                half = unit.reshape(stretched.shape) / widths
        else:
            kernels = [self._of_width(float(width), on_the_line=True) for width in widths]
            half = np.concatenate([kernel.gram(offsets[:, None], np.zeros((1, 1))) for kernel in kernels], axis=1)
        return np.concatenate([half[:0:-1], half])

    @property
    def _kernel_share(self) -> np.ndarray:
        """What the shapes leave to the kernels, (k,)."""
        if self.shapes is None:
            return np.ones(self.n_components)
        return np.maximum(1.0 - (self.grid[1] - self.grid[0]) * self.shapes.sum(axis=0), 0.0)

    def _of_width(self, bandwidth: float, *, on_the_line: bool = False) -> Kernel:
        """The kernel with another bandwidth, and without borders if wanted."""
        kernel = clone(self.kernel).set_params(bandwidth=bandwidth)
        return kernel.set_params(space=Real()) if on_the_line and self._bordered else kernel

    @property
    def _bordered(self) -> bool:
        return self.kernel.space is not None and self.kernel.space.bordered

    @property
    def _local(self) -> np.ndarray:
        return np.ones_like(self.weights) if self.local is None else self.local

    def _integrate(self, f: Callable[[np.ndarray], Any]) -> np.ndarray:
        """A callable against the weights themselves, with no smoothing."""
        some = self.weights.any(axis=1)  # f need not be defined where no row was
        return evaluate(f, self.grid[some, None]) @ self.weights[some] / self.weights.sum(axis=0)

    @cached_property
    def _features(self) -> BinnedFeatures:
        return BinnedFeatures(self._of_width(float(np.median(self.bandwidths)))).fit(self.grid[:, None])

    @property
    def n_parameters(self) -> np.ndarray:
        """The trace of the smoother, Σ_i k(0) / (n p(x_i)): how many kernels fit side by side; two for a shape.

        Points with next to none of the weight belong to rows of other classes, and do not count.
        """
        heights = [self._of_width(float(s)).diagonal(self.grid[:, None]) for s in self.bandwidths]
        total = np.maximum(self.weights.sum(axis=0), LEAST_SHARE * np.abs(self.weights).sum(axis=0) + TINY)
        shares = self.weights / total
        own = np.where(shares > LEAST_SHARE, shares, 0.0) * np.stack(heights, axis=1)
        own = self._kernel_share * own / self._local  # a point's own part of p
        kernels = (own / np.maximum(self.density(self.grid), own + TINY)).sum(axis=0)
        return kernels + 2 * (1 - self._kernel_share)

    def take(self, order: np.ndarray) -> "BinnedEmbedding":
        """The components in another order, or some of them."""
        local, shapes = (None if part is None else part[:, order] for part in (self.local, self.shapes))
        return replace(
            self, weights=self.weights[:, order], bandwidths=self.bandwidths[order], local=local, shapes=shapes
        )

    def _as_sample(self) -> tuple[np.ndarray, np.ndarray]:
        return self.grid[:, None], self.weights

    def _coordinates(self, other: Components) -> np.ndarray:
        points, weights = other._as_sample()
        return self._features.transform(points).T @ weights


def components_in(
    features: Any, vectors: np.ndarray, domain: Quadrature | None, counts: np.ndarray | None = None
) -> Components:
    """The record for components given as vectors in a fitted map: weights if its vectors are a grid's.

    ``counts`` are the rows behind every component, for bandwidths of their own.
    """
    if not isinstance(features, GridFeatures):
        return Embedding(domain, features, vectors)
    grid, kernel = features.grid_, features.kernel_
    if features.adaptive and counts is not None:
        step, columns = grid[1] - grid[0], np.maximum(vectors.T, TINY)
        own = [weighted_isj(column, step, n) for column, n in zip(columns, counts, strict=True)]
        bandwidths = np.maximum(own, features.resolution)
    else:
        bandwidths = np.full(vectors.shape[1], float(kernel.get_params()["bandwidth"]))
    return BinnedEmbedding(domain, grid, vectors, kernel, bandwidths)


def domain_for(features: Any, x: np.ndarray, rng: np.random.Generator) -> Quadrature | None:
    """Where a fitted feature map's densities are integrated, around the rows ``x``; None where it has none."""
    return domain_of(getattr(features, "kernel_", None), x, rng, getattr(features, "log_unit_", 0.0))


def domain_of(kernel: Kernel | None, x: np.ndarray, rng: np.random.Generator, log_unit: float) -> Quadrature | None:
    """Where densities as smooth as a kernel are integrated, around the rows ``x``; None where it has none."""
    space = Real() if kernel is None else kernel.space
    if space is None:
        return None
    x = np.asarray(x, dtype=float)  # squares of single precision end at 1e19
    return space.quadrature(x, smoothness(kernel, x), rng, log_unit)
