"""Display objects, in scikit-learn's convention: ``from_estimator`` computes, ``plot`` draws.

matplotlib is imported where it is used.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from latentviews import streams
from latentviews._arrays import take_columns, to_numpy
from latentviews.domains import Circle, Discrete, Domain
from latentviews.embeddings import Components
from latentviews.views import read_table

# Okabe & Ito's colours, told apart with any colour vision, without their yellow, which a white page swallows
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000")
STYLES = ("-", "-.", ":")  # classes beyond the palette take its colours again in the next style
DATA = "0.82"  # the grey of the data beneath
ROWS = 50_000  # at most this many rows in a histogram
TAIL = 1e-3  # the share of the mass that may lie beyond either end of an axis
REGIONS = (0.9, 0.5, 0.1)  # a contour encloses this share of its class


@dataclass(frozen=True, eq=False)
class ViewDensities:
    """What is drawn of one view: the densities of every class on a line or on a square of points."""

    names: tuple[str, ...]  # one a column
    ticks: tuple[np.ndarray, ...]  # the points along every column
    densities: np.ndarray  # (n, k) for one column, (n, n, k) for two
    rows: np.ndarray | None = None  # (n_rows, n_columns), the data beneath
    discrete: bool = False  # finitely many values: a share a value instead of a density

    @property
    def points(self) -> np.ndarray:
        """The points at which the densities are taken, one a row."""
        return np.stack(np.meshgrid(*self.ticks, indexing="ij"), axis=-1).reshape(-1, len(self.ticks))

    def of(self, components: Any) -> Self:
        """The same picture of other ``components``: anything with ``density(x)``, (n, k)."""
        shape = [len(ticks) for ticks in self.ticks]
        return replace(self, densities=components.density(self.points).reshape(*shape, -1), rows=None)


class ComponentDisplay:
    """The distribution of every view in every class, over the data.

    A view of one column is drawn as curves, the density of each class times its weight, over a histogram; a view of
    two columns as contours that enclose 90, 50 and 10 % of each class, over some of the rows.

    Parameters
    ----------
    views : sequence of ViewDensities
        What to draw, a panel a view; `from_estimator` makes them.
    weights : array of shape (k,)
        How common the classes are.

    Attributes
    ----------
    axes_ : array of matplotlib Axes, one a view
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
        ax : matplotlib Axes or sequence of them, one a view, or None
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
        check_is_fitted(estimator)
        for t, columns in enumerate(estimator.views_):
            _check_drawable(t, len(columns), estimator.components_[t])
        tables = _tables(estimator, X)
        views = [
            _view_densities(component, estimator.weights_, names, resolution, table)
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
        """Draw, on ``ax`` if given: Axes, or a sequence of them, one a view.

        Parameters
        ----------
        ax : matplotlib Axes or sequence of them, one a view, or None
        n_points : int, default=1000
            The most rows to draw as points in a view of two columns.
        curve_kwargs, contour_kwargs : dict or None
            Passed to matplotlib's ``plot`` in views of one column, and to ``contour`` in views of two.

        Returns
        -------
        ComponentDisplay
            The display itself.
        """
        panels = _panels(len(self.views)) if ax is None else np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
        if len(panels) != len(self.views):
            raise ValueError(f"ax needs one Axes a view, {len(self.views)} in all; got {len(panels)}.")
        for panel, view in zip(panels, self.views, strict=True):
            if len(view.names) == 1:
                _draw_curves(panel, view, self.weights, dict(curve_kwargs or {}))
            else:
                _draw_contours(panel, view, self.weights, n_points, dict(contour_kwargs or {}))
        if not panels[0].get_legend():
            panels[0].legend(frameon=False, fontsize="small")
        self.axes_, self.figure_ = panels, panels[0].figure
        return self


def offscreen_axes(count: int) -> np.ndarray:
    """Axes in a row, in a figure that belongs to no window: for files."""
    _matplotlib()
    from matplotlib.figure import Figure

    return _panels(count, Figure)


def _panels(count: int, new_figure: Any = None) -> np.ndarray:
    """Axes in a row, in a figure of pyplot's unless ``new_figure`` makes another."""
    _matplotlib()
    if new_figure is None:
        from matplotlib import pyplot

        new_figure = pyplot.figure
    figure = new_figure(figsize=(3.6 * count, 3.2), layout="constrained")
    return figure.subplots(1, count, squeeze=False)[0]


def _matplotlib() -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError("Plots need matplotlib, which is not installed: pip install latentviews[plot]") from error


def _check_drawable(t: int, n_columns: int, components: Components) -> None:
    """Refuse a view that is neither a line nor a plane."""
    if n_columns > 2 or (n_columns == 2 and isinstance(components.domain, Discrete)):
        kind = "codes in two columns" if n_columns == 2 else f"{n_columns} columns"
        raise ValueError(
            f"ComponentDisplay draws views of one column, and of two that are not codes; view {t} has {kind}. Ask "
            f"`components_[{t}].density(x)` for its densities."
        )


def _tables(estimator: Any, X: Any) -> list[np.ndarray | None]:
    """The rows of every view, not more than a histogram needs; None a view if there are no data."""
    if X is None:
        return [None] * len(estimator.views_)
    data, columns = read_table(estimator, X, reset=False)
    rows, *_ = streams.sample(data, ROWS, np.random.default_rng(0))
    return [to_numpy(take_columns(rows, view)) for view in columns]


def _names(estimator: Any) -> list[tuple[str, ...]]:
    """What to write on the axes of every view."""
    known = getattr(estimator, "feature_names_in_", None)
    return [tuple(f"column {j}" if known is None else str(known[j]) for j in columns) for columns in estimator.views_]


def _view_densities(
    components: Components,
    weights: np.ndarray,
    names: tuple[str, ...],
    resolution: int | None,
    rows: np.ndarray | None,
) -> ViewDensities:
    """The densities of one view on points that cover its mass."""
    domain = components._domain()
    if isinstance(domain, Discrete):
        view = ViewDensities(names, (domain.nodes[:, 0],), np.empty(0), discrete=True)
    else:
        size = resolution or (512 if len(names) == 1 else 96)
        limits = _limits(domain, domain.weights * (components.density(domain.nodes) @ weights))
        view = ViewDensities(names, tuple(np.linspace(low, high, size) for low, high in limits), np.empty(0))
    if rows is not None and isinstance(domain, Circle):
        rows = (rows + np.pi) % (2 * np.pi) - np.pi
    return replace(view.of(components), rows=rows)


def _limits(domain: Domain, mass: np.ndarray) -> list[tuple[float, float]]:
    """The ends of every axis: all of a circle, all but the far tails on the line."""
    if isinstance(domain, Circle):
        return [(-np.pi, np.pi)] * domain.nodes.shape[1]
    limits = []
    for column in domain.nodes.T:
        order = np.argsort(column, kind="stable")
        share = np.cumsum(mass[order]) / mass.sum()
        low, high = column[order][np.searchsorted(share, [TAIL, 1 - TAIL]).clip(max=len(column) - 1)]
        margin = 0.04 * (high - low)
        limits.append((low - margin, high + margin))
    return limits


def _style(component: int) -> dict[str, Any]:
    return {
        "color": PALETTE[component % len(PALETTE)],
        "linestyle": STYLES[component // len(PALETTE) % len(STYLES)],
    }


def _label(component: int, weight: float) -> str:
    return f"class {component} ({weight:.2f})"


def _draw_curves(panel: Any, view: ViewDensities, weights: np.ndarray, options: dict[str, Any]) -> None:
    """π_h p(x | h) for every class, over a histogram on the same scale."""
    (ticks,) = view.ticks
    if view.rows is not None:
        places, heights, width = _shares(view) if view.discrete else _histogram(view)
        panel.bar(places, heights, width=width, color=DATA, zorder=0)
    for h, weight in enumerate(weights):
        style = {**_style(h), "label": _label(h, weight), **({"marker": "o"} if view.discrete else {}), **options}
        panel.plot(ticks, weight * view.densities[:, h], **style)
    panel.set(xlabel=view.names[0], ylabel="weight × probability" if view.discrete else "weight × density")
    panel.set_ylim(bottom=0, auto=None)  # what is drawn later may still lift the top


def _shares(view: ViewDensities) -> tuple[np.ndarray, np.ndarray, float]:
    """Every value, the share of the rows that have it, and the width of a bar."""
    assert view.rows is not None
    values, counts = np.unique(view.rows, return_counts=True)
    gaps = np.diff(np.union1d(values, view.ticks[0]))
    return values, counts / len(view.rows), 0.8 * float(gaps.min(initial=1.0))


def _histogram(view: ViewDensities) -> tuple[np.ndarray, np.ndarray, float]:
    """Middles of equal bins, the density of the rows there, and the bins' width; rows beyond the axis still count."""
    assert view.rows is not None
    low, high = view.ticks[0][[0, -1]]
    n_bins = int(np.clip(2 * len(view.rows) ** (1 / 3), 10, 80))
    counts, edges = np.histogram(view.rows[:, 0], bins=n_bins, range=(low, high))
    width = float(edges[1] - edges[0])
    return edges[:-1] + width / 2, counts / (len(view.rows) * width), width


def _draw_contours(
    panel: Any, view: ViewDensities, weights: np.ndarray, n_points: int, options: dict[str, Any]
) -> None:
    """Highest-density regions of every class, over some of the rows."""
    if view.rows is not None:
        some = view.rows[np.linspace(0, len(view.rows) - 1, min(len(view.rows), n_points)).astype(int)]
        panel.scatter(*some.T, s=4, color=DATA, linewidths=0, zorder=0)
    for h, weight in enumerate(weights):
        density = view.densities[:, :, h]
        style = _style(h)
        kwargs = {"colors": style["color"], "linestyles": style["linestyle"], **options}
        panel.contour(*view.ticks, density.T, levels=_levels(density), **kwargs)
        panel.plot([], [], label=_label(h, weight), **style)  # contours have no line for the legend
    panel.set(xlabel=view.names[0], ylabel=view.names[1])
    panel.set_xlim(view.ticks[0][[0, -1]])
    panel.set_ylim(view.ticks[1][[0, -1]])


def _levels(density: np.ndarray) -> np.ndarray:
    """The heights above which lie the shares `REGIONS` of the mass, increasing."""
    heights = np.sort(density, axis=None)[::-1]
    share = np.cumsum(heights) / heights.sum()
    return np.unique(heights[np.searchsorted(share, REGIONS)])
