"""Display objects, in scikit-learn's convention: ``from_estimator`` computes, ``plot`` draws.

matplotlib is imported where it is used.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from latentviews._arrays import take_columns, to_numpy
from latentviews._numbers import thinned
from latentviews._validation import check_count
from latentviews.core import streams
from latentviews.core.components import Components
from latentviews.core.tables import read_table
from latentviews.plot._axes import (
    DATA,
    as_written,
    check_matplotlib,
    check_model,
    class_label,
    class_style,
    contour_settings,
    panels_on,
    passed_on,
)
from latentviews.plot.view_densities import ViewDensities, histogram, levels, shares, view_densities

ROWS = 50_000  # at most this many rows in a histogram


class ComponentDisplay:
    """The distribution of every view in every class, over the data.

    A view of one column is drawn as curves, the density of each class times its weight, over a histogram; a view of
    two columns as contours that enclose 90, 50 and 10 % of each class, over some of the rows.

    Parameters
    ----------
    views : sequence of ViewDensities
        What to draw, one panel per view; `from_estimator` makes them.
    weights : array of shape (k,)
        How common the classes are.

    Attributes
    ----------
    axes_ : array of matplotlib Axes, one per view
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from latentviews import MultiViewMixture
    >>> from latentviews.datasets import make_multiview
    >>> from latentviews.plot import ComponentDisplay
    >>> X, y, truth = make_multiview(1000, 3, design="gamma", random_state=0)
    >>> model = MultiViewMixture(3, random_state=0).fit(X)
    >>> display = ComponentDisplay.from_estimator(model, X)
    >>> [axes.get_xlabel() for axes in display.axes_]
    ['column 0', 'column 1', 'column 2']
    """

    def __init__(self, views: Sequence[ViewDensities], weights: np.ndarray):
        self.views = views
        self.weights = weights

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        ax: Any = None,
        n_points: int = 1000,
        resolution: int | None = None,
        curve_kwargs: Mapping[str, Any] | None = None,
        contour_kwargs: Mapping[str, Any] | None = None,
    ) -> Self:
        """Draw the components of a fitted model.

        Parameters
        ----------
        estimator : fitted model
            With ``components_``, ``weights_`` and ``views_``, such as `MultiViewMixture`.
        X : data of the model's kind, or None
            Drawn beneath the densities.
        ax : matplotlib Axes or sequence of them, one per view, or None
            Where to draw; None makes a new figure.
        n_points : int, default=1000
            The most rows of ``X`` to draw as points in a view of two columns.
        resolution : int or None
            Points along an axis; by default 512 on a line and 96 on each side of a square.
        curve_kwargs, contour_kwargs : dict or None
            Passed to matplotlib's ``plot`` in views of one column, and to ``contour`` in views of two.

        Returns
        -------
        ComponentDisplay
        """
        check_model(cls, estimator, "the views of a MultiViewMixture or KernelHMM", "views_", "components_", "weights_")
        if not all(hasattr(view, "space") for view in estimator.components_):
            raise TypeError(
                "ComponentDisplay draws the views of a MultiViewMixture or KernelHMM; those of "
                f"{type(estimator).__name__} have no space to be drawn over."
            )
        for t, columns in enumerate(estimator.views_):
            _check_drawable(t, len(columns), estimator.components_[t])
        if resolution is not None:
            check_count("resolution", resolution, 2)
        tables = _tables(estimator, X)
        views = [
            view_densities(component, estimator.weights_, names, resolution, table)
            for component, names, table in zip(estimator.components_, _names(estimator), tables, strict=True)
        ]
        display = cls(views, estimator.weights_)
        return display.plot(ax, n_points=n_points, curve_kwargs=curve_kwargs, contour_kwargs=contour_kwargs)

    def plot(
        self,
        ax: Any = None,
        *,
        n_points: int = 1000,
        curve_kwargs: Mapping[str, Any] | None = None,
        contour_kwargs: Mapping[str, Any] | None = None,
    ) -> Self:
        """Draw, on ``ax`` if given: Axes, or a sequence of them, one per view.

        Parameters
        ----------
        ax : matplotlib Axes or sequence of them, one per view, or None
        n_points : int, default=1000
            The most rows to draw as points in a view of two columns.
        curve_kwargs, contour_kwargs : dict or None
            Passed to matplotlib's ``plot`` in views of one column, and to ``contour`` in views of two.

        Returns
        -------
        ComponentDisplay
            The display itself.
        """
        curves = _by_long_names(passed_on("curve_kwargs", curve_kwargs))
        contours = passed_on("contour_kwargs", contour_kwargs)
        check_count("n_points", n_points, 0)
        panels = panels_on(ax, len(self.views), "view")
        for panel, view in zip(panels, self.views, strict=True):
            if len(view.names) == 1:
                _draw_curves(panel, view, self.weights, curves)
            else:
                _draw_contours(panel, view, self.weights, n_points, contours)
        if not panels[0].get_legend():
            panels[0].legend(frameon=False, fontsize="small")
        self.axes_, self.figure_ = panels, panels[0].figure
        return self


def _by_long_names(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings of lines, "c" as "color" and so on, so that they take the place of ours."""
    check_matplotlib()
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.lines import Line2D

    return normalize_kwargs(settings, Line2D)


def _check_drawable(t: int, n_columns: int, components: Components) -> None:
    """Refuse a view that is neither a line nor a plane."""
    codes = [c for c in range(n_columns) if components.space.column(c).finite]
    if n_columns > 2 or (n_columns == 2 and codes):
        kind = (
            f"codes in {'one of ' if len(codes) == 1 else ''}two columns" if n_columns == 2 else f"{n_columns} columns"
        )
        raise ValueError(
            f"ComponentDisplay draws views of one column, and of two that are not codes; view {t} has {kind}. Ask "
            f"`components_[{t}].density(x)` for its densities."
        )


def _tables(estimator: Any, X: Any) -> list[np.ndarray | None]:
    """The rows of every view, not more than a histogram needs; all None if there are no data."""
    if X is None:
        return [None] * len(estimator.views_)
    data, columns = read_table(estimator, X, reset=False)
    rows, *_ = streams.sample(data, ROWS, np.random.default_rng(0))
    return [to_numpy(take_columns(rows, view)) for view in columns]


def _names(estimator: Any) -> list[tuple[str, ...]]:
    """What to write on the axes of every view."""
    known = getattr(estimator, "feature_names_in_", None)
    return [tuple(f"column {j}" if known is None else str(known[j]) for j in columns) for columns in estimator.views_]


def _draw_curves(panel: Any, view: ViewDensities, weights: np.ndarray, options: dict[str, Any]) -> None:
    """π_h p(x | h) for every class, over a histogram on the same scale."""
    (ticks,) = view.ticks
    if view.rows is not None:
        places, heights, width = shares(view) if view.discrete else histogram(view)
        panel.bar(places, heights, width=width, color=DATA, zorder=0)
    for h, weight in enumerate(weights):
        style = {
            **class_style(h),
            "label": class_label(h, weight),
            **({"marker": "o"} if view.discrete else {}),
            **options,
        }
        panel.plot(ticks, weight * view.densities[:, h], **style)
    panel.set(xlabel=as_written(view.names[0]), ylabel="weight × probability" if view.discrete else "weight × density")
    panel.set_ylim(bottom=0, auto=None)  # what is drawn later may still lift the top
    if len(view.values):
        _draw_masses(panel.twinx(), view, weights)


def _draw_masses(panel: Any, view: ViewDensities, weights: np.ndarray) -> None:
    """A stem for every point mass and class, π_h m_ah high, side by side, on an axis of their own."""
    step = 0.008 * np.ptp(view.ticks[0])
    for h, weight in enumerate(weights):
        places, style = view.values + step * (h - (len(weights) - 1) / 2), class_style(h)
        panel.vlines(places, 0, weight * view.masses[:, h], **style)
        panel.plot(places, weight * view.masses[:, h], "o", color=style["color"], markersize=4)
    panel.set_ylabel("weight × probability of exactly " + ", ".join(f"{value:g}" for value in view.values))
    panel.set_ylim(0, max(1.15 * float((weights * view.masses).max()), 1e-12))


def _draw_contours(
    panel: Any, view: ViewDensities, weights: np.ndarray, n_points: int, options: dict[str, Any]
) -> None:
    """Highest-density regions of every class, over some of the rows."""
    if view.rows is not None:
        some = thinned(view.rows, n_points)
        panel.scatter(*some.T, s=4, color=DATA, linewidths=0, zorder=0)
    for h, weight in enumerate(weights):
        density = view.densities[:, :, h]
        style = class_style(h)
        own = {"linestyles": style["linestyle"], "levels": levels(density)}
        panel.contour(*view.ticks, density.T, **contour_settings(options, style["color"], **own))
        panel.plot([], [], label=class_label(h, weight), **style)  # contours have no line for the legend
    panel.set(xlabel=as_written(view.names[0]), ylabel=as_written(view.names[1]))
    panel.set_xlim(view.ticks[0][[0, -1]])
    panel.set_ylim(view.ticks[1][[0, -1]])
