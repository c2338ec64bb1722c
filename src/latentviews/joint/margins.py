"""The distributions of single columns in k components: tables, normal laws, shares of codes.

A group of columns of one kind gives log-densities and, for real columns, normal scores z = Φ⁻¹(F(x)): what is left of a
value once its own distribution is taken out. Sums over rows are all that a group is made from.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import fft, sparse
from scipy.special import ndtr, ndtri

from latentviews._numbers import TINY, as_shares
from latentviews.core.kernels.bandwidths import resolution
from latentviews.core.kernels.space import Space
from latentviews.core.kernels.spaces import Real
from latentviews.core.tables import varies

BROAD = 0.01  # the share of a broad normal law in every table, for what lies far from the data
BROADER = 3.0  # its standard deviation, in those of the component
EXTREME = 8.0  # normal scores stay within so many standard deviations
NARROWEST = 0.03  # a component's standard deviation in those of the column, at least where nothing else is said
MANY = 0.1  # the share of rows with one value from which on it is more than a rounded one
MOST_BINS = 1024
FAR = 1e100  # standard deviations beyond which values count as equally far: their squares are finite


def no_columns() -> np.ndarray:
    """What stands for an estimate before there is one."""
    return np.empty(0)


@dataclass(frozen=True, eq=False)
class Margins(ABC):
    """Some columns of one kind, in k components."""

    columns: list[int]

    coupled = False  # whether its normal scores can be correlated

    @abstractmethod
    def log_density(self, x: np.ndarray) -> np.ndarray:
        """Log-densities of rows of these columns, (n, c, k); NaN counts as any value."""

    def scores(self, x: np.ndarray) -> np.ndarray:
        """Normal scores of rows of these columns, (n, c, k)."""
        raise TypeError(f"{type(self).__name__} has no normal scores.")

    def log_density_and_scores(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Both, where they can be correlated."""
        return self.log_density(x), self.scores(x)

    @abstractmethod
    def sums(self, x: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """What the rows, with their shares of the components (n, k), add to a new estimate."""

    @abstractmethod
    def updated(self, sums: np.ndarray, counts: np.ndarray) -> "Margins":
        """The estimate from sums over all rows and the effective number of rows behind every component."""

    @abstractmethod
    def draw(self, scores: np.ndarray, component: int) -> np.ndarray:
        """Values with these normal scores (n, c)."""

    @abstractmethod
    def take(self, places: Sequence[int]) -> "Margins":
        """Some of the columns."""


def spanning(table: np.ndarray, whole: np.ndarray, columns: Sequence[int]) -> np.ndarray:
    """The rows, and beneath them the ends of what ``whole`` spans in columns that do not vary here, or are empty."""
    flat = [j for j in columns if not varies(table[:, j])]
    if not flat:
        return table
    ends = np.full((2, table.shape[1]), np.nan)
    ends[:, flat] = np.fmin.reduce(whole[:, flat]), np.fmax.reduce(whole[:, flat])
    return np.concatenate([table, ends])


def least_spreads(x: np.ndarray, narrowest: float) -> np.ndarray:
    """The smallest standard deviations that normal laws of rows (n, c) may have: a share of the columns' own.

    Where values are rounded it is half their unit, if that is more, but no share above `NARROWEST`: narrower laws would
    be spikes at the values. A value that many rows have is no matter of rounding.
    """
    units = np.array([_unit(column[~np.isnan(column)]) for column in x.T])
    spread = np.nanstd(x, axis=0)
    return np.clip(units / 2, narrowest * spread, NARROWEST * spread)


def _unit(x: np.ndarray) -> float:
    """What values are rounded to, if most occur again and none in many rows; else zero."""
    values, counts = np.unique(x, return_counts=True)
    rounded = 2 * len(values) < len(x) and counts.max() < MANY * len(x)
    return resolution(values) if rounded else 0.0


def _mirrored_normal(space: Space, x: Any, center: Any, spread: Any) -> tuple[Any, Any]:
    """The density and the distribution function of a normal law mirrored at the borders of a space."""
    reach = 9 * float(np.max(spread, initial=0.0))
    images = space.images(np.clip(x, space.low, space.high), reach)
    ends = space.images(np.asarray(space.low), reach)
    with np.errstate(over="ignore"):  # infinitely far
        heights = sum(np.exp(-0.5 * ((image - center) / spread) ** 2) for image in images)
    density = heights / (math.sqrt(2 * math.pi) * spread)
    pairs = zip(images, ends, strict=True)
    below = sum(np.abs(ndtr((image - center) / spread) - ndtr((end - center) / spread)) for image, end in pairs)
    return np.where(space.contains(x), density, 0.0), np.minimum(below, 1.0)


@dataclass(frozen=True, eq=False)
class Tables(Margins):
    """Real columns, each with smooth densities on a uniform grid.

    A component is .99 of a weighted kernel density estimate, binned, with Silverman's bandwidth for that component
    times ``factor``, and .01 of a broad normal law. Densities are linear between grid points, so their integrals are
    exact. Both parts are mirrored at the borders of a column's space.
    """

    low: np.ndarray  # (c,), where the grids begin
    step: np.ndarray  # (c,)
    floor: np.ndarray  # (c,), the finest that the data resolve
    factor: float
    n_bins: int
    density: np.ndarray = field(default_factory=no_columns, repr=False)  # (c, n_bins, k)
    cumulative: np.ndarray = field(default_factory=no_columns, repr=False)  # (c, n_bins, k)
    center: np.ndarray = field(default_factory=no_columns, repr=False)  # (c, k), of the broad law
    spread: np.ndarray = field(default_factory=no_columns, repr=False)  # (c, k)
    spaces: tuple[Space, ...] = ()  # one per column; none where no column has a border

    coupled = True

    @classmethod
    def around(
        cls, table: np.ndarray, columns: list[int], factor: float, spaces: Sequence[Space] | None = None
    ) -> "Tables":
        """Grids around the values of some columns, NaN left out, inside their spaces."""
        spaces = [Real()] * len(columns) if spaces is None else spaces
        x = table[:, columns]
        width = 1.06 * np.nanstd(x, axis=0) * len(x) ** -0.2
        low, high = np.nanmin(x, axis=0) - 4 * width, np.nanmax(x, axis=0) + 4 * width
        inside = [space.clipped(*ends) for space, *ends in zip(spaces, low, high, strict=True)]
        low, high = np.array(inside).T
        n_bins = int(np.clip(np.max(5 * (high - low) / width), 128, MOST_BINS))
        floor = np.array([resolution(column[~np.isnan(column)]) for column in x.T])
        return cls(columns, low, (high - low) / (n_bins - 1), floor, factor, n_bins, spaces=tuple(spaces))

    @property
    def _bordered(self) -> list[tuple[int, Space]]:
        """The places of columns with borders, and their spaces."""
        return [(c, space) for c, space in enumerate(self.spaces) if space.bordered]

    def _place(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The grid point to the left, counted through all columns, and the share of the way to the next, (n, c)."""
        place = np.clip((x - self.low) / self.step, 0.0, self.n_bins - 1.0)
        place = np.where(np.isnan(place), 0.0, place)
        left = np.minimum(place.astype(np.intp), self.n_bins - 2)
        return left + self.n_bins * np.arange(len(self.columns)), place - left

    def log_density(self, x: np.ndarray) -> np.ndarray:
        """Log-densities, (n, c, k)."""
        left, share = self._place(x)
        table = self.density.reshape(-1, self.density.shape[-1])
        value = (1 - share)[..., None] * table[left] + share[..., None] * table[left + 1]
        rows, places, density, _ = self._outside(x)
        value[rows, places] = density
        return np.log(np.maximum(value, TINY))

    def scores(self, x: np.ndarray) -> np.ndarray:
        """Φ⁻¹(F(x)), (n, c, k)."""
        left, share = self._place(x)
        share, step = share[..., None], self.step[:, None]
        density, cumulative = (part.reshape(-1, part.shape[-1]) for part in (self.density, self.cumulative))
        here, there = density[left], density[left + 1]
        below = cumulative[left] + step * share * (here + share * (there - here) / 2)
        rows, places, _, share = self._outside(x)
        below[rows, places] = share
        return np.clip(ndtri(np.clip(below, 0.0, 1.0)), -EXTREME, EXTREME)

    def _outside(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Where values lie off the grids, their densities there and the shares below them, those of the broad law."""
        rows, places = np.nonzero((x < self.low) | (x > self.low + self.step * (self.n_bins - 1)))
        values, center, spread = x[rows, places, None], self.center[places], self.spread[places]
        under = values < self.low[places, None]
        far = np.clip((values - center) / spread, -FAR, FAR)
        density = BROAD * np.exp(-0.5 * far**2) / (math.sqrt(2 * math.pi) * spread)
        tail = BROAD * ndtr(-np.abs(far))
        for c, space in self._bordered:
            here = places == c
            heights, below = _mirrored_normal(space, values[here], center[here], spread[here])
            density[here], tail[here] = BROAD * heights, BROAD * np.where(under[here], below, 1 - below)
        return rows, places, density, np.where(under, tail, 1 - tail)

    def sums(self, x: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """The components' shares of the grid points, (c · n_bins, k)."""
        return self.bins(x).T @ shares

    def bins(self, x: np.ndarray) -> sparse.csr_array:
        """The matrix that shares every value between the two grid points beside it, all columns side by side."""
        left, share = self._place(x)
        here = ~np.isnan(x)
        values = np.stack([(1 - share) * here, share * here], axis=2).ravel()
        indices = np.stack([left, left + 1], axis=2).ravel()
        starts = np.arange(len(x) + 1) * (2 * len(self.columns))
        return sparse.csr_array((values, indices, starts), shape=(len(x), self.n_bins * len(self.columns)))

    def updated(self, sums: np.ndarray, counts: np.ndarray) -> "Tables":
        """Weighted kernel density estimates from shares of grid points."""
        mass = sums.reshape(len(self.columns), self.n_bins, -1)
        mass = as_shares(mass, axis=1)
        grid = self.step[:, None] * np.arange(self.n_bins)  # from where it begins, since squares are subtracted
        center = np.einsum("cg,cgk->ck", grid, mass)
        variance = np.maximum(np.einsum("cg,cgk->ck", grid**2, mass) - center**2, self.step[:, None] ** 2 / 4)
        width = 1.06 * self.factor * np.sqrt(variance) * np.maximum(counts, 1.0) ** -0.2
        width = np.maximum(width, np.maximum(self.floor, self.step * 0.6)[:, None])
        blur = 1 / 3  # of binning and interpolation, a sixth of a step squared each
        smooth = self._smoothed(mass, np.sqrt(np.maximum((width / self.step[:, None]) ** 2 - blur, 1e-4)))
        spread = BROADER * np.sqrt(variance + width**2)
        offset = (grid[:, :, None] - center[:, None]) / spread[:, None]
        broad = np.exp(-0.5 * offset**2) / (math.sqrt(2 * math.pi) * spread[:, None])
        start = BROAD * ndtr(offset[:, :1])
        for c, space in self._bordered:
            place, middle = self.low[c] + grid[c, :, None], self.low[c] + center[c]
            broad[c], below = _mirrored_normal(space, place, middle, spread[c])
            start[c] = BROAD * below[:1]
        density = (1 - BROAD) * smooth / self.step[:, None, None] + BROAD * broad
        cells = (density[:, 1:] + density[:, :-1]) / 2 * self.step[:, None, None]
        cumulative = np.concatenate([start, start + np.cumsum(cells, axis=1)], axis=1)
        center = self.low[:, None] + center
        return replace(self, density=density, cumulative=cumulative, center=center, spread=spread)

    def _smoothed(self, mass: np.ndarray, width: np.ndarray) -> np.ndarray:
        """Every column of shares convolved with a Gaussian ``width`` grid points wide, and of mass one again."""
        frequencies = 2 * np.pi * fft.rfftfreq(2 * self.n_bins)
        damping = np.exp(-0.5 * (frequencies[None, :, None] * width[:, None]) ** 2)
        around = fft.irfft(fft.rfft(mass, 2 * self.n_bins, axis=1) * damping, axis=1)
        smooth = np.maximum(around[:, : self.n_bins], 0.0)
        self._mirror(smooth, np.maximum(around[:, self.n_bins :], 0.0))
        trapezoid = smooth.sum(axis=1) - (smooth[:, 0] + smooth[:, -1]) / 2
        return smooth / np.maximum(trapezoid, TINY)[:, None]

    def _mirror(self, smooth: np.ndarray, spilt: np.ndarray) -> None:
        """Add what was spilt beyond borders at the ends of the grid, to the right and then from the left."""
        half = self.n_bins // 2
        for c, space in self._bordered:
            if self.low[c] == space.low:
                smooth[c, 0] *= 2
                smooth[c, 1:half] += spilt[c, :-half:-1]
            if self.low[c] + self.step[c] * (self.n_bins - 0.5) > space.high:
                smooth[c, -1] *= 2
                smooth[c, -2 : -half - 1 : -1] += spilt[c, : half - 1]

    def draw(self, scores: np.ndarray, component: int) -> np.ndarray:
        """Values with these normal scores (n, c): F⁻¹(Φ(z))."""
        below = ndtr(np.clip(scores, -EXTREME, EXTREME))  # beyond, Φ is one, whose quantile is no number
        values = np.empty_like(below)
        for c in range(len(self.columns)):
            table = self.cumulative[c, :, component]
            grid = self.low[c] + self.step[c] * np.arange(self.n_bins)
            center, spread = self.center[c, component], self.spread[c, component]
            values[:, c] = np.interp(below[:, c], table, grid)
            under, over = below[:, c] < table[0], below[:, c] > table[-1]
            values[under, c] = center + spread * ndtri(below[under, c] / BROAD)
            values[over, c] = center - spread * ndtri((1 - below[over, c]) / BROAD)
        for c, space in self._bordered:
            values[:, c] = space.reflected(values[:, c])
        return values

    def take(self, places: Sequence[int]) -> "Tables":
        """Some of the columns."""
        parts = ("low", "step", "floor", "density", "cumulative", "center", "spread")
        chosen: dict[str, Any] = {name: getattr(self, name)[list(places)] for name in parts}
        spaces = tuple(self.spaces[p] for p in places) if self.spaces else ()
        return replace(self, columns=[self.columns[p] for p in places], spaces=spaces, **chosen)


class SeparateTables(Tables):
    """Tables whose columns are independent inside a component."""

    coupled = False


@dataclass(frozen=True, eq=False)
class Normals(Margins):
    """Real columns, each with a normal law per component: with correlations, Gaussian mixtures."""

    least: np.ndarray  # (c,), the smallest standard deviation
    origin: np.ndarray  # (c,), near the values: squares are of distances from it
    center: np.ndarray = field(default_factory=no_columns, repr=False)  # (c, k)
    spread: np.ndarray = field(default_factory=no_columns, repr=False)  # (c, k)

    coupled = True

    @classmethod
    def around(cls, table: np.ndarray, columns: list[int], narrowest: float = NARROWEST) -> "Normals":
        """Laws no narrower than `least_spreads`."""
        x = table[:, columns]
        return cls(columns, least_spreads(x, narrowest), np.nanmean(x, axis=0))

    def log_density(self, x: np.ndarray) -> np.ndarray:
        """Log-densities, (n, c, k)."""
        return self.log_density_and_scores(x)[0]

    def log_density_and_scores(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Both, from the same standardised values."""
        scores = self.scores(x)
        return -0.5 * scores**2 - (np.log(self.spread) + 0.5 * math.log(2 * math.pi)), scores

    def scores(self, x: np.ndarray) -> np.ndarray:
        """Standardised values, (n, c, k)."""
        scores = (np.where(np.isnan(x), 0.0, x)[:, :, None] - self.center) / self.spread
        return np.clip(scores, -FAR, FAR, out=scores)

    def sums(self, x: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """Mass, sums and sums of squares, (3, c, k)."""
        here = ~np.isnan(x)
        x = np.where(here, x - self.origin, 0.0)
        return np.stack([here.T.astype(float) @ shares, x.T @ shares, (x**2).T @ shares])

    def updated(self, sums: np.ndarray, counts: np.ndarray) -> "Normals":
        """Weighted means and standard deviations."""
        mass = np.maximum(sums[0], TINY)
        center = sums[1] / mass
        variance = np.maximum(sums[2] / mass - center**2, 0.0) + self.least[:, None] ** 2
        return replace(self, center=self.origin[:, None] + center, spread=np.sqrt(variance))

    def draw(self, scores: np.ndarray, component: int) -> np.ndarray:
        """Values with these normal scores, (n, c)."""
        return self.center[:, component] + self.spread[:, component] * scores

    def take(self, places: Sequence[int]) -> "Normals":
        """Some of the columns."""
        parts = ("least", "origin", "center", "spread")
        chosen: dict[str, Any] = {name: getattr(self, name)[list(places)] for name in parts}
        return replace(self, columns=[self.columns[p] for p in places], **chosen)
