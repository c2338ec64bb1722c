"""The joint density of two columns."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from latentviews._numbers import thinned
from latentviews._validation import check_count
from latentviews.core.kernels.spaces import Real
from latentviews.plot._axes import DATA, PALETTE, as_written, contour_settings, drawn_rows, panels_on, passed_on
from latentviews.plot.view_densities import TAIL, levels


class DensityDisplay:
    """The joint density of two columns as contours that enclose 90, 50 and 10 % of it, over some of the rows.

    Parameters
    ----------
    names : tuple of two str
    ticks : tuple of two arrays
        Points along every column.
    density : array of shape (len(ticks[0]), len(ticks[1]))
    rows : array of shape (n_rows, 2) or None
        Drawn beneath.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews.plot import DensityDisplay, offscreen_axes
    >>> ticks = np.linspace(-3, 3, 31)
    >>> density = np.exp(-(ticks[:, None] ** 2 + ticks**2) / 2) / (2 * np.pi)
    >>> display = DensityDisplay(("height", "weight"), (ticks, ticks), density).plot(offscreen_axes(1)[0])
    >>> display.ax_.get_xlabel(), display.ax_.get_ylabel()
    ('height', 'weight')
    """

    def __init__(
        self, names: Sequence[str], ticks: Sequence[np.ndarray], density: np.ndarray, rows: np.ndarray | None = None
    ):
        self.names = names
        self.ticks = ticks
        self.density = density
        self.rows = rows

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        columns: Sequence[Any] = (0, 1),
        given: Mapping[Any, float] | None = None,
        ax: Any = None,
        n_points: int = 1000,
        resolution: int = 96,
        contour_kwargs: Mapping[str, Any] | None = None,
    ) -> Self:
        """Draw the density of two columns of a fitted `LowRankDensity`, given the values of others if any.

        Parameters
        ----------
        estimator : fitted model with ``marginal`` and ``conditional``
        X : array of shape (n_samples, n_features) or None
            Rows to draw beneath.
        columns : two column numbers or names
        given : dict or None
            Values of other columns.
        ax : matplotlib Axes or None
        n_points : int, default=1000
            The most rows to draw.
        resolution : int, default=96
            Points along an axis.
        contour_kwargs : dict or None
            Passed to matplotlib's ``contour``.

        Returns
        -------
        the display
        """
        check_is_fitted(estimator)
        if not hasattr(estimator, "marginal"):
            raise TypeError(
                f"DensityDisplay draws two columns of a fitted LowRankDensity; got a {type(estimator).__name__}, whose "
                "views ComponentDisplay draws."
            )
        columns = columns if isinstance(columns, str) or not isinstance(columns, Iterable) else list(columns)
        if not isinstance(columns, list) or len(columns) != 2:
            raise ValueError(f"DensityDisplay draws two columns, by their numbers or names; got {columns!r}.")
        check_count("resolution", resolution, 2)
        density = estimator.conditional(columns, {} if given is None else given)
        low, high = np.quantile(density.sample(4000, random_state=0), [TAIL, 1 - TAIL], axis=0)
        margin = 0.08 * (high - low)
        spaces = [density.spaces.get(j, Real()) for j in density.columns]
        ends = [space.clipped(*pair) for space, *pair in zip(spaces, low - margin, high + margin, strict=True)]
        ticks = [np.linspace(a, b, resolution) for a, b in ends]
        points = np.stack(np.meshgrid(*ticks, indexing="ij"), axis=-1).reshape(-1, 2)
        values = np.exp(density.score_samples(points)).reshape(resolution, resolution)
        known = getattr(estimator, "feature_names_in_", None)
        names = [f"column {j}" if known is None else str(known[j]) for j in density.columns]
        rows = None if X is None else drawn_rows(estimator, X)[:, density.columns]
        return cls(names, ticks, values, rows).plot(ax, n_points=n_points, contour_kwargs=contour_kwargs)

    def plot(self, ax: Any = None, *, n_points: int = 1000, contour_kwargs: Mapping[str, Any] | None = None) -> Self:
        """Draw, on ``ax`` if given.

        Parameters
        ----------
        ax : matplotlib Axes, an array of them, or None
            Where to draw; by default a new figure.
        n_points : int
            Points of a grid.
        contour_kwargs : dict or None
            For matplotlib's contours.

        Returns
        -------
        the display itself
        """
        options = passed_on("contour_kwargs", contour_kwargs)
        ticks, density = [np.asarray(part) for part in self.ticks], np.asarray(self.density)
        check_count("n_points", n_points, 0)
        (panel,) = panels_on(ax, 1, "density")
        if self.rows is not None:
            some = thinned(np.asarray(self.rows), n_points)
            panel.scatter(*some.T, s=4, color=DATA, linewidths=0, zorder=0)
        panel.contour(*ticks, density.T, **contour_settings(options, PALETTE[0], levels=levels(density)))
        panel.set(xlabel=as_written(self.names[0]), ylabel=as_written(self.names[1]))
        self.ax_, self.figure_ = panel, panel.figure
        return self
