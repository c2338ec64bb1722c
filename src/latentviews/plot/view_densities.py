"""What is drawn of a view: densities on points that cover their mass, and the data on the same scale."""

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from scipy.ndimage import gaussian_filter1d

from latentviews._numbers import TINY, as_shares
from latentviews.core.components import Components
from latentviews.core.features.point_masses import which_mass
from latentviews.core.kernels.bandwidths import resolution, weighted_isj
from latentviews.core.kernels.quadrature import Quadrature
from latentviews.core.kernels.space import Space
from latentviews.core.point_masses import WithPointMasses

TAIL = 1e-3  # the share of the mass that may lie beyond either end of an axis
REGIONS = (0.9, 0.5, 0.1)  # a contour encloses this share of its class


@dataclass(frozen=True, eq=False)
class ViewDensities:
    """What is drawn of one view: the densities of every class on a line or on a square of points.

    Attributes
    ----------
    names : tuple of str
        One per column.
    ticks : tuple of arrays
        The points along every column.
    densities : array of shape (n, k) for one column, (n, n, k) for two
    rows : array of shape (n_rows, n_columns) or None
        The data beneath.
    discrete : bool
        Whether values are finitely many: one share per value instead of a density.
    values : array of shape (A,)
        Point masses.
    masses : array of shape (A, k)
        Their shares of every class.

    Examples
    --------
    >>> from latentviews import MultiViewMixture
    >>> from latentviews.datasets import make_multiview
    >>> from latentviews.plot import ComponentDisplay, offscreen_axes
    >>> X = make_multiview(200, 2, random_state=0).X
    >>> model = MultiViewMixture(2, polish=None, random_state=0).fit(X)
    >>> view = ComponentDisplay.from_estimator(model, X, ax=offscreen_axes(3)).views[0]
    >>> view.names, view.densities.shape
    (('column 0',), (512, 2))
    """

    names: tuple[str, ...]
    ticks: tuple[np.ndarray, ...]
    densities: np.ndarray
    rows: np.ndarray | None = None
    discrete: bool = False
    values: np.ndarray = field(default_factory=lambda: np.empty(0))
    masses: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))

    @property
    def points(self) -> np.ndarray:
        """The points at which the densities are taken, one per row."""
        return np.stack(np.meshgrid(*self.ticks, indexing="ij"), axis=-1).reshape(-1, len(self.ticks))

    def of(self, components: Any) -> Self:
        """The same picture of other ``components``: anything with ``density(x)``, (n, k).

        Parameters
        ----------
        components : one distribution per class

        Returns
        -------
        Self
        """
        shape = [len(ticks) for ticks in self.ticks]
        densities = _smooth(components, self.points).reshape(*shape, -1)
        if not isinstance(components, WithPointMasses):
            return replace(self, densities=densities, rows=None)
        return replace(self, densities=densities, rows=None, values=components.values, masses=components.masses)


def view_densities(
    components: Components,
    weights: np.ndarray,
    names: tuple[str, ...],
    resolution: int | None,
    rows: np.ndarray | None,
) -> ViewDensities:
    """The densities of one view on points that cover its mass."""
    domain = components._domain()
    if domain.space.finite:
        view = ViewDensities(names, (domain.nodes[:, 0],), np.empty(0), discrete=True)
    else:
        size = resolution or (512 if len(names) == 1 else 96)
        limits = _limits(domain, domain.weights * (_smooth(components, domain.nodes) @ weights))
        if isinstance(components, WithPointMasses):
            ends = domain.space.axis(components.values[0], components.values[-1])
            limits = [(min(limits[0][0], ends[0]), max(limits[0][1], ends[1]))]
        view = ViewDensities(names, tuple(np.linspace(low, high, size) for low, high in limits), np.empty(0))
    return replace(view.of(components), rows=None if rows is None else domain.space.wrapped(rows))


def _smooth(components: Any, x: np.ndarray) -> np.ndarray:
    """The densities of every class, (n, k), off its point masses."""
    return components.elsewhere(x) if isinstance(components, WithPointMasses) else components.density(x)


def _limits(domain: Quadrature, mass: np.ndarray) -> list[tuple[float, float]]:
    """The ends of every axis: all of a circle, all but the far tails on the line; all where nothing is told apart."""
    mass = mass if mass.sum() > 0 else np.ones(len(mass))
    limits = []
    for place, column in enumerate(domain.nodes.T):
        order = np.argsort(column, kind="stable")
        share = np.cumsum(mass[order]) / mass.sum()
        low, high = column[order][np.searchsorted(share, [TAIL, 1 - TAIL]).clip(max=len(column) - 1)]
        limits.append(domain.space.column(place).axis(low, high))
    return limits


def shares(view: ViewDensities) -> tuple[np.ndarray, np.ndarray, float]:
    """Every value, the share of the rows that have it, and the width of a bar."""
    assert view.rows is not None
    values, counts = np.unique(view.rows, return_counts=True)
    gaps = np.diff(np.union1d(values, view.ticks[0]))
    return values, counts / len(view.rows), 0.8 * float(gaps.min(initial=1.0))


def histogram(view: ViewDensities) -> tuple[np.ndarray, np.ndarray, float]:
    """Middles of equal bins, the density of the rows there, and the bins' width; rows beyond the axis still count.

    So do rows at point masses, which are in no bin.
    """
    assert view.rows is not None
    low, high = view.ticks[0][[0, -1]]
    n_bins = int(np.clip(2 * len(view.rows) ** (1 / 3), 10, 80))
    off = view.rows[which_mass(view.rows[:, 0], view.values) < 0, 0]
    counts, edges = np.histogram(off, bins=n_bins, range=(low, high))
    width = float(edges[1] - edges[0])
    return edges[:-1] + width / 2, counts / (len(view.rows) * width), width


def levels(density: np.ndarray) -> np.ndarray:
    """The heights above which lie the shares `REGIONS` of the mass, increasing."""
    heights = np.sort(density, axis=None)[::-1]
    share = np.cumsum(as_shares(heights))
    return np.unique(heights[np.minimum(np.searchsorted(share, REGIONS), len(heights) - 1)])


def row_densities(rows: np.ndarray, posteriors: np.ndarray, name: str, space: Space) -> ViewDensities:
    """The densities of one column from the rows themselves, each counted for a class by its posterior.

    For views whose own densities cannot be drawn: of three or more columns, or of codes in two.
    """
    if space.finite:
        ticks, places = np.unique(rows[:, 0], return_inverse=True)
        masses = np.stack([np.bincount(places, chances, len(ticks)) for chances in posteriors.T], axis=1)
        return ViewDensities((name,), (ticks,), as_shares(masses, axis=0), rows, discrete=True)
    rows = space.wrapped(rows)
    edges = np.linspace(*space.axis(*np.quantile(rows, [TAIL, 1 - TAIL])), 257)
    step = edges[1] - edges[0]
    columns, unit = [], resolution(rows[:, 0])  # values on a lattice are not to be resolved
    for chances in posteriors.T:
        counts = np.histogram(rows[:, 0], edges, weights=chances)[0]
        width = max(weighted_isj(np.maximum(counts, TINY), step, chances.sum()), unit) / step
        smooth = gaussian_filter1d(counts, width, mode=space.padding)
        columns.append(smooth / (step * max(chances.sum(), TINY)))
    return ViewDensities((name,), (edges[:-1] + step / 2,), np.stack(columns, axis=1), rows)
