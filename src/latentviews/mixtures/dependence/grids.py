"""Margins without a shape on grids of single columns.

A margin is a weighted kernel density estimate on a grid, with a hundredth of a wide Gaussian so that far rows have a
density too. Beside the margins of components lies a background for stray rows. Values that many rows have exactly may
be apart from both (`masses`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import ndtr, ndtri

from latentviews._numbers import TINY, smoothed_bins, standardised
from latentviews.core import streams
from latentviews.core.features.bins import linear_bins
from latentviews.densities.gaussian_copulas import Pattern, patterns
from latentviews.mixtures.dependence.masses import ColumnMasses, ComponentMasses

N_BINS = 256
TAIL = 0.01  # of a margin is a Gaussian three times as wide, which reaches beyond its grid
BOXED_TAIL = 1e-4  # the same where a background explains far rows
CLIP = 1e-5  # distribution functions are kept this far from zero and one
MARGIN = 5.0  # bandwidths by which a grid exceeds the data
NOISE = (1e-4, 0.1)  # least and largest weight of the background
CLASS_NOISE = (1e-4, 0.5)  # where it is to explain rows
FAR = 0.1  # of its box is where such a background has fallen to an eighth outside it, as distance⁻³ farther out


@dataclass(frozen=True, eq=False)
class ColumnGrids:
    """The columns of a table that a copula joins, the range of each, and the bandwidths that margins may have."""

    columns: list[int]
    low: np.ndarray  # (d,)
    high: np.ndarray  # (d,)
    bandwidths: np.ndarray  # (d,), the widest
    box: np.ndarray | None = None  # (2, d), where the background lies if it is to explain rows; else it fills the range
    least: np.ndarray | None = None  # (d,), the narrowest; None where all components have the widest
    sharp: bool = False  # whether margins are as narrow as densities ask for, or as wide as finding classes does
    masses: ColumnMasses | None = None  # None where point masses are smoothed as all other values

    @classmethod
    def around(
        cls,
        table: np.ndarray,
        columns: Sequence[int],
        bandwidths: np.ndarray,
        *,
        boxed: bool = False,
        least: np.ndarray | None = None,
    ) -> "ColumnGrids":
        """The range of the rows of a table, less a few that are so far out that the grids would be coarse."""
        x, reach = table[:, columns], N_BINS / 8 * bandwidths
        inner = np.nanquantile(x, [0.005, 0.995], axis=0)
        low = np.maximum(np.nanmin(x, axis=0), inner[0] - reach) - bandwidths / 2
        high = np.minimum(np.nanmax(x, axis=0), inner[1] + reach) + bandwidths / 2
        floats = np.spacing(np.maximum(np.abs(low), np.abs(high)))
        bandwidths = np.maximum(bandwidths, N_BINS / MARGIN * floats)  # grid points are two floats apart at least
        return cls(list(columns), low, high, bandwidths, inner if boxed else None, least)

    @cached_property
    def points(self) -> np.ndarray:
        """Uniform grids that exceed the range by what a kernel carries out, (d, B)."""
        margin = MARGIN * self.bandwidths
        return np.linspace(self.low - margin, self.high + margin, N_BINS, axis=1)

    def some(self, where: Sequence[int]) -> "ColumnGrids":
        """The grids of some of the columns, given by their places in ``columns``."""
        where = list(where)
        columns, box = [self.columns[t] for t in where], None if self.box is None else self.box[:, where]
        least = None if self.least is None else self.least[where]
        masses = None if self.masses is None else self.masses.some(where)
        ends = self.low[where], self.high[where]
        return ColumnGrids(columns, *ends, self.bandwidths[where], box, least, self.sharp, masses)

    def for_densities(self, masses: ColumnMasses | None, least: np.ndarray | None) -> "ColumnGrids":
        """The same, on which margins are as narrow as densities ask for, and apart from point masses."""
        return replace(self, sharp=True, masses=masses, least=least)

    @property
    def n_masses(self) -> int:
        """The most point masses that a column has."""
        return 0 if self.masses is None else self.masses.most

    @property
    def steps(self) -> np.ndarray:
        """The distance of grid points, (d,)."""
        return self.points[:, 1] - self.points[:, 0]

    def margins(self, sums: np.ndarray, sizes: np.ndarray, at_masses: np.ndarray | None = None) -> "GridMargins":
        """The margins of J components from the shares of their rows in cells, (d, B, J), each of so many rows, (J,).

        A margin is smoothed by at most its own standard deviation while classes are found, and by Silverman's rule
        where it is to be sharp. ``at_masses`` are the shares of rows at point masses, (d, A, J).
        """
        inside = np.maximum(sums.sum(axis=1, keepdims=True), TINY)
        shares, masses = sums / inside, None
        if self.masses is not None and at_masses is not None:
            total = inside + at_masses.sum(axis=1, keepdims=True)
            masses = ComponentMasses(self.masses, at_masses / total)
        if self.least is None:
            return GridMargins(self, shares, masses=masses)
        centers = np.einsum("tb,tbj->tj", self.points, shares)
        squares = np.einsum("tb,tbj->tj", self.points**2, shares) - centers**2
        factor = (4 / (3 * np.maximum(sizes, 1.0))) ** 0.2 if self.sharp else 1.0
        narrowest = np.minimum(np.maximum(self.least, self.steps), self.bandwidths)[:, None]
        own = np.clip(factor * np.sqrt(np.maximum(squares, 0.0)), narrowest, self.bandwidths[:, None])
        return GridMargins(self, shares, own, masses)

    @property
    def tail(self) -> float:
        """The share of a margin that is a wide Gaussian."""
        return TAIL if self.box is None else BOXED_TAIL

    def bounded(self, noise: float) -> float:
        """A weight that the background may have."""
        return float(np.clip(noise, *(NOISE if self.box is None else CLASS_NOISE)))

    def cells(self, table: np.ndarray) -> "GridRows":
        """The rows of a table on the grids; NaN is missing."""
        x = table[:, self.columns].T
        states = None if self.masses is None else self.masses.states(x)
        smooth = ~np.isnan(x) if states is None else states == self.n_masses
        x = np.where(smooth, x, self.low[:, None])
        bins = [linear_bins(row, grid) for row, grid in zip(x, self.points, strict=True)]
        if not smooth.all():
            bins = [streams.weigh(part, here.astype(float)) for part, here in zip(bins, smooth, strict=True)]
        outside = np.flatnonzero(np.any((x < self.points[:, :1]) | (x > self.points[:, -1:]), axis=0))
        beyond = x[:, outside] - np.clip(x[:, outside], self.points[:, :1], self.points[:, -1:])
        background = self._log_background(x, smooth)
        if self.masses is None or states is None:
            return GridRows(bins, None if smooth.all() else smooth, outside, beyond, background)
        joined = smooth & self.masses.joined[:, None]
        return GridRows(bins, joined, outside, beyond, background + self.masses.log_shares(states), states)

    def _log_background(self, x: np.ndarray, present: np.ndarray) -> np.ndarray:
        """The log-density of the background at rows (d, n), over the columns that are present.

        Uniform in the range and zero outside; or uniform in the box, and (1 + u / FAR)⁻³ of that u boxes away from it,
        so that far rows are nearer to it than to any component, whose tails are Gaussian.
        """
        if self.box is None:
            inside = np.all((x >= self.low[:, None]) & (x <= self.high[:, None]), axis=0)
            return np.where(inside, -np.log(self.high - self.low) @ present, -np.inf)
        low, high = self.box[:, :, None]
        away = np.abs(x - np.clip(x, low, high)) / (high - low)
        return -np.sum((np.log((high - low) * (1 + FAR)) + 3 * np.log1p(away / FAR)) * present, axis=0)

    def sample_background(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """Rows of the background, (size, d)."""
        if self.box is None:
            rows = rng.uniform(self.low, self.high, size=(size, len(self.low)))
            masses = self.masses
            return rows if masses is None else masses.of_all.put_into(0, rows, rng)
        low, high = self.box
        rows = rng.uniform(low, high, size=(size, len(low)))
        away = FAR * ((1 - rng.random(rows.shape)) ** -0.5 - 1) * (high - low)
        below, out = rng.random(rows.shape) < 0.5, rng.random(rows.shape) < FAR / (1 + FAR)
        return np.where(out, np.where(below, low - away, high + away), rows)


@dataclass(frozen=True, eq=False)
class GridRows:
    """Some rows of a table on the grids of its columns."""

    bins: list[Any]  # one sparse (n, B) per column, with the shares of the grid points beside a value
    present: np.ndarray | None  # (d, n), which values a copula joins; None where it joins all
    outside: np.ndarray  # (m,), the rows with a value outside its grid
    beyond: np.ndarray  # (d, m), how far outside it is
    log_uniform: np.ndarray  # (n,), the log-density of the background over the columns a row has
    states: np.ndarray | None = None  # (d, n), which point masses values are at; None where all are smoothed

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.bins[0].shape[0]

    def shares(self, posteriors: np.ndarray) -> np.ndarray:
        """Σ_i posteriors_ij over the rows in a cell, (d, B, J)."""
        return (self._beside.T @ posteriors).reshape(len(self.bins), -1, posteriors.shape[1])

    @cached_property
    def _beside(self) -> Any:
        """The bins of all columns beside each other, (n, d B)."""
        return sparse.hstack(self.bins, format="csr")

    @cached_property
    def _apart(self) -> Any:
        """The bins of every column in rows and columns of their own, (d n, d B)."""
        return sparse.block_diag(self.bins, format="csr")

    def read(self, tables: np.ndarray) -> np.ndarray:
        """What tables on the grids (d, B, m) say at the rows, (d, n, m)."""
        flat = tables.reshape(-1, tables.shape[2])
        return (self._apart @ flat).reshape(len(self.bins), self.n_rows, -1)

    def at_masses(self, posteriors: np.ndarray, n_masses: int) -> np.ndarray:
        """Σ_i posteriors_ij over the rows at a point mass, (d, A, J)."""
        if self.states is None:
            return np.zeros((len(self.bins), 0, posteriors.shape[1]))
        return np.stack([[posteriors[state == a].sum(axis=0) for a in range(n_masses)] for state in self.states])

    @cached_property
    def patterns(self) -> list[Pattern]:
        """The rows by the columns they have."""
        present = np.ones((self.n_rows, len(self.bins)), dtype=bool) if self.present is None else self.present.T
        return patterns(present)


@dataclass(frozen=True, eq=False)
class GridMargins:
    """The margins of J components, as the shares of their rows on the grids of the columns."""

    grids: ColumnGrids
    shares: np.ndarray  # (d, B, J), summing to one over a grid
    own: np.ndarray | None = None  # (d, J), the bandwidths; None where they are the grids'
    masses: ComponentMasses | None = None  # None where point masses are smoothed as all other values

    def smoothed(self) -> "GridMargins":
        """The same, with point masses as values among all others."""
        if self.masses is None:
            return self
        shares = self.masses.elsewhere[:, None] * self.shares
        for t in np.flatnonzero(self.masses.columns.has):
            values = np.nan_to_num(self.masses.columns.values[t])
            shares[t] += linear_bins(values, self.grids.points[t]).T @ self.masses.chances[t]
        return replace(self.without_masses(), shares=shares)

    def without_masses(self) -> "GridMargins":
        """The densities of the values that are at no point mass."""
        return GridMargins(replace(self.grids, masses=None), self.shares, self.own)

    @property
    def bandwidths(self) -> np.ndarray:
        """Of every margin, (d, J)."""
        alike = np.broadcast_to(self.grids.bandwidths[:, None], self.shares.shape[::2])
        return alike if self.own is None else self.own

    def some(self, where: Sequence[int]) -> "GridMargins":
        """The margins of some of the columns, given by their places."""
        where = list(where)
        own = None if self.own is None else self.own[where]
        masses = None if self.masses is None else self.masses.some(where)
        return GridMargins(self.grids.some(where), self.shares[where], own, masses)

    def take(self, order: np.ndarray) -> "GridMargins":
        """The components in another order, or some of them."""
        own = None if self.own is None else self.own[:, order]
        masses = None if self.masses is None else self.masses.take(order)
        return GridMargins(self.grids, self.shares[:, :, order], own, masses)

    @cached_property
    def centers(self) -> np.ndarray:
        """Means, (d, J)."""
        return np.einsum("tb,tbj->tj", self.grids.points, self.shares)

    @cached_property
    def reaches(self) -> np.ndarray:
        """Standard deviations of the wide Gaussians, (d, J)."""
        squares = np.einsum("tb,tbj->tj", self.grids.points**2, self.shares) - self.centers**2
        return np.sqrt(9 * np.maximum(squares, 0.0) + self.bandwidths**2)

    @cached_property
    def tables(self) -> tuple[np.ndarray, np.ndarray]:
        """Log-densities and normal scores on the grids, each (d, B, J)."""
        step = self.grids.steps[:, None]
        smooth = smoothed_bins(self.shares, self.bandwidths / step, axis=1) / step[:, None]
        apart = (self.grids.points[:, :, None] - self.centers[:, None, :]) / self.reaches[:, None, :]
        wide = np.exp(-0.5 * apart**2) / (np.sqrt(2 * np.pi) * self.reaches[:, None, :])
        tail = self.grids.tail
        density = np.maximum((1 - tail) * smooth + tail * wide, TINY)
        below = (np.cumsum(smooth, axis=1) - smooth / 2) * step[:, None]
        distribution = (1 - tail) * below + tail * ndtr(apart)
        return np.log(density), ndtri(np.clip(distribution, CLIP, 1 - CLIP))

    def at(self, cells: GridRows) -> tuple[np.ndarray, np.ndarray]:
        """Log Π_t f_jt(x_t), (J, n), and the normal scores z, (J, d, n); zero where a value is missing."""
        n_components = self.shares.shape[2]
        values = cells.read(np.concatenate(self.tables, axis=2))
        log_product = np.ascontiguousarray(values[:, :, :n_components].sum(axis=0).T)
        scores = np.ascontiguousarray(values[:, :, n_components:].transpose(2, 0, 1))
        log_product[:, cells.outside] += self._beyond(cells.beyond)
        if self.masses is not None and cells.states is not None:
            log_product += self.masses.log_chances(cells.states)
            scores[:, ~self.masses.columns.joined] = 0.0
        return log_product, scores

    def _beyond(self, beyond: np.ndarray) -> np.ndarray:
        """What a wide Gaussian loses between the end of a grid and values so far outside it, (J, m)."""
        ends = np.where(beyond > 0, self.grids.points[:, -1:], self.grids.points[:, :1])
        start = (ends[:, None] - self.centers[:, :, None]) / self.reaches[:, :, None]
        way = standardised(beyond[:, None], 0.0, self.reaches[:, :, None])
        return -np.sum(way * (start + way / 2), axis=0)

    @cached_property
    def n_parameters(self) -> np.ndarray:
        """The trace of every smoother, Σ_i k(0) / (n f(x_i)), and one for every point mass, (d, J)."""
        own = self.shares / (np.sqrt(2 * np.pi) * self.bandwidths)[:, None]
        traces = (own / np.maximum(np.exp(self.tables[0]), own + TINY)).sum(axis=1)
        masses = 0 if self.masses is None else np.sum(~np.isnan(self.masses.columns.values), axis=1)[:, None]
        return traces + masses
