"""Display objects, in scikit-learn's convention: ``from_estimator`` computes, ``plot`` draws.

matplotlib is imported where it is used.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from latentviews import streams
from latentviews._arrays import take_columns, to_numpy
from latentviews._plotting import DATA, PALETTE, check_matplotlib, class_label, class_style, new_panels, panels_on
from latentviews.diagnostics import CERTAIN, LEVEL, Diagnosis, WithinClassDependence, diagnose
from latentviews.domains import Discrete
from latentviews.embeddings import Components
from latentviews.sequence_plots import ForecastDisplay, StateDisplay, TransitionDisplay
from latentviews.view_densities import TAIL, ViewDensities, histogram, levels, shares, view_densities
from latentviews.views import read_table

__all__ = [
    "ComponentDisplay",
    "DensityDisplay",
    "DependenceDisplay",
    "ForecastDisplay",
    "ResponsibilityDisplay",
    "SpectrumDisplay",
    "StateDisplay",
    "TransitionDisplay",
    "ViewDensities",
    "offscreen_axes",
]

ROWS = 50_000  # at most this many rows in a histogram


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
        panels = panels_on(ax, len(self.views), "view")
        for panel, view in zip(panels, self.views, strict=True):
            if len(view.names) == 1:
                _draw_curves(panel, view, self.weights, dict(curve_kwargs or {}))
            else:
                _draw_contours(panel, view, self.weights, n_points, dict(contour_kwargs or {}))
        if not panels[0].get_legend():
            panels[0].legend(frameon=False, fontsize="small")
        self.axes_, self.figure_ = panels, panels[0].figure
        return self


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
        """
        check_is_fitted(estimator)
        if not hasattr(estimator, "marginal"):
            raise TypeError(
                f"DensityDisplay draws two columns of a fitted LowRankDensity; got a {type(estimator).__name__}, whose "
                "views ComponentDisplay draws."
            )
        if len(columns) != 2:
            raise ValueError(f"DensityDisplay draws two columns; got {list(columns)}.")
        density = estimator.conditional(columns, given or {})
        low, high = np.quantile(density.sample(4000, random_state=0), [TAIL, 1 - TAIL], axis=0)
        margin = 0.08 * (high - low)
        ticks = [np.linspace(a, b, resolution) for a, b in zip(low - margin, high + margin, strict=True)]
        points = np.stack(np.meshgrid(*ticks, indexing="ij"), axis=-1).reshape(-1, 2)
        values = np.exp(density.score_samples(points)).reshape(resolution, resolution)
        known = getattr(estimator, "feature_names_in_", None)
        names = [f"column {j}" if known is None else str(known[j]) for j in density.columns]
        rows = None if X is None else np.asarray(X, dtype=float)[:, density.columns]
        return cls(names, ticks, values, rows).plot(ax, n_points=n_points, contour_kwargs=contour_kwargs)

    def plot(self, ax: Any = None, *, n_points: int = 1000, contour_kwargs: Mapping[str, Any] | None = None) -> Self:
        """Draw, on ``ax`` if given."""
        (panel,) = panels_on(ax, 1, "density")
        if self.rows is not None:
            some = self.rows[np.linspace(0, len(self.rows) - 1, min(len(self.rows), n_points)).astype(int)]
            panel.scatter(*some.T, s=4, color=DATA, linewidths=0, zorder=0)
        kwargs = {"colors": PALETTE[0], **dict(contour_kwargs or {})}
        panel.contour(*self.ticks, self.density.T, levels=levels(self.density), **kwargs)
        panel.set(xlabel=self.names[0], ylabel=self.names[1])
        self.ax_, self.figure_ = panel, panel.figure
        return self


class SpectrumDisplay:
    """The singular values of the pair moment, on a logarithmic axis: a drop after the k-th speaks for k classes.

    Parameters
    ----------
    spectrum : array, decreasing
    n_components : int or None
        The number of classes, whose singular values are drawn filled.
    null : float or array of shape (n_draws,) or (n_draws, n_values), or None
        Singular values where nothing is shared between the views, from permutations: a level, draws of the largest
        singular value, or draws of all of them. Their 95 % quantile and what lies below are shaded.
    centred : bool, default=False
        Whether the spectrum is that of centred moments, where k classes show in k - 1 singular values.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    def __init__(
        self, spectrum: np.ndarray, n_components: int | None = None, null: Any = None, *, centred: bool = False
    ):
        self.spectrum = spectrum
        self.n_components = n_components
        self.null = null
        self.centred = centred

    @classmethod
    def from_estimator(cls, estimator: Any, *, null: Any = None, ax: Any = None, n_values: int = 12) -> Self:
        """Draw the test of a fit with ``n_components="auto"``, band and all; else its ``spectrum_``.

        A band ``null`` on the scale of ``spectrum_`` is drawn if given.
        """
        check_is_fitted(estimator)
        if null is None and hasattr(estimator, "rank_test_"):
            test = estimator.rank_test_
            spectrum, null = test.spectra[test.strongest], test.nulls[test.strongest]
            return cls(spectrum, test.n_components, null, centred=True).plot(ax, n_values=n_values)
        if not hasattr(estimator, "spectrum_"):
            raise ValueError("This model has no `spectrum_`: its answer did not come from moments.")
        return cls(estimator.spectrum_, estimator.n_components_, null).plot(ax, n_values=n_values)

    def plot(self, ax: Any = None, *, n_values: int = 12) -> Self:
        """Draw the leading ``n_values`` singular values, on ``ax`` if given."""
        (panel,) = panels_on(ax, 1, "spectrum")
        label = f"{self.n_components} classes" if self.n_components else None
        k = max((self.n_components or 0) - self.centred, 0)
        size = min(max(n_values, k + 1), len(self.spectrum))
        values, places = np.asarray(self.spectrum, dtype=float)[:size], np.arange(1, size + 1)
        floor = values[0] * 1e-6  # what is smaller is rounding, and would squeeze the rest
        shown = np.maximum(values, floor)
        panel.plot(places, shown, color=DATA, zorder=1)
        panel.plot(places[:k], shown[:k], "o", color=PALETTE[0], label=label, zorder=2)
        panel.plot(places[k:], shown[k:], "o", color=PALETTE[0], markerfacecolor="white", label="rest", zorder=2)
        panel.set(yscale="log", xlabel="index", ylabel="singular value", xlim=(0.5, size + 0.5))
        panel.xaxis.get_major_locator().set_params(integer=True)
        if self.null is not None:
            limits = panel.get_ylim()
            self._draw_null(panel, places)
            panel.set_ylim(limits)
        panel.legend(frameon=False, fontsize="small")
        self.ax_, self.figure_ = panel, panel.figure
        return self

    def _draw_null(self, panel: Any, places: np.ndarray) -> None:
        draws = np.atleast_1d(np.asarray(self.null, dtype=float))
        top = np.quantile(draws, 0.95, axis=0)
        if top.ndim == 0:  # a level for all
            top, places = np.full(2, top), np.array([0.5, places[-1] + 0.5])
        size = min(len(top), len(places))
        panel.fill_between(places[:size], np.finfo(float).tiny, top[:size], color=PALETTE[1], alpha=0.25, lw=0)
        panel.plot(places[:size], top[:size], "--", color=PALETTE[1], label="95 % of no dependence")


class ResponsibilityDisplay:
    """How certain the classes of rows are: the largest posterior of every row, sorted, a curve a class.

    Rows are taken by the class that is most probable. Where classes are told apart a curve is at one nearly from the
    start; the share of a class to the left of where it crosses the grey line has no class of posterior above 0.8.

    Parameters
    ----------
    posteriors : array of shape (n, k)
        As ``predict_proba`` gives them.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    def __init__(self, posteriors: np.ndarray):
        self.posteriors = posteriors

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, ax: Any = None) -> Self:
        """Draw the posteriors of the rows of ``X``."""
        check_is_fitted(estimator)
        return cls(estimator.predict_proba(X)).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw, on ``ax`` if given."""
        (panel,) = panels_on(ax, 1, "model")
        certainty, labels = self.posteriors.max(axis=1), self.posteriors.argmax(axis=1)
        k = self.posteriors.shape[1]
        panel.axhline(CERTAIN, color=DATA, zorder=0)
        for h in range(k):
            heights = np.sort(certainty[labels == h])
            share = (np.arange(len(heights)) + 0.5) / max(len(heights), 1)
            panel.plot(share, heights, label=class_label(h, len(heights) / len(labels)), **class_style(h))
        panel.set(xlabel="share of its rows, least certain first", ylabel="largest posterior", xlim=(0, 1))
        panel.set_ylim(min(1 / k, 0.95), 1.01)
        panel.legend(frameon=False, fontsize="small", loc="lower right")
        self.ax_, self.figure_ = panel, panel.figure
        return self


class DependenceDisplay:
    """How strongly views depend on each other inside every class, a heat map a class, from a `Diagnosis`.

    Effects run from 0, none, to 1; a star marks those whose corrected p-value is at most 5 %, a cross what could not
    be tested.

    Parameters
    ----------
    dependence : WithinClassDependence
    view_names : sequence of str

    Attributes
    ----------
    axes_ : array of matplotlib Axes, one a class
    figure_ : matplotlib Figure
    """

    def __init__(self, dependence: WithinClassDependence, view_names: Sequence[str]):
        self.dependence = dependence
        self.view_names = view_names

    @classmethod
    def from_diagnosis(cls, diagnosis: Diagnosis, *, ax: Any = None) -> Self:
        """Draw what `diagnose` found."""
        return cls(diagnosis.dependence, diagnosis.view_names).plot(ax)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, ax: Any = None, random_state: Any = None) -> Self:
        """Diagnose a fitted model on ``X``, and draw."""
        return cls.from_diagnosis(diagnose(estimator, X, random_state=random_state), ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw, on ``ax`` if given: Axes, or a sequence of them, one a class."""
        panels = panels_on(ax, len(self.dependence.effect), "class")
        for h, panel in enumerate(panels):
            image = self._draw_class(panel, h)
        panels[0].figure.colorbar(image, ax=list(panels), label="dependence", shrink=0.8)
        self.axes_, self.figure_ = panels, panels[0].figure
        return self

    def _draw_class(self, panel: Any, h: int) -> Any:
        effect, pvalue = self.dependence.matrix(h), self.dependence.matrix(h, "pvalue")
        image = panel.imshow(effect, cmap="Blues", vmin=0, vmax=1)
        panel.set_facecolor(DATA)  # a view with itself
        for s, t in zip(*np.nonzero(~np.eye(len(effect), dtype=bool)), strict=True):
            text = "×" if np.isnan(effect[s, t]) else f"{effect[s, t]:.2f}" + "*" * int(pvalue[s, t] <= LEVEL)
            panel.text(t, s, text, ha="center", va="center", color="white" if effect[s, t] > 0.6 else "black")
        places = range(len(self.view_names))
        panel.set(title=f"class {h}", xticks=places, yticks=places)
        panel.set_xticklabels(self.view_names, rotation=30 if max(map(len, self.view_names)) > 4 else 0)
        panel.set_yticklabels(self.view_names)
        return image


def offscreen_axes(count: int) -> np.ndarray:
    """Axes in a row, in a figure that belongs to no window: for files."""
    check_matplotlib()
    from matplotlib.figure import Figure

    return new_panels(count, Figure)


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
    panel.set(xlabel=view.names[0], ylabel="weight × probability" if view.discrete else "weight × density")
    panel.set_ylim(bottom=0, auto=None)  # what is drawn later may still lift the top


def _draw_contours(
    panel: Any, view: ViewDensities, weights: np.ndarray, n_points: int, options: dict[str, Any]
) -> None:
    """Highest-density regions of every class, over some of the rows."""
    if view.rows is not None:
        some = view.rows[np.linspace(0, len(view.rows) - 1, min(len(view.rows), n_points)).astype(int)]
        panel.scatter(*some.T, s=4, color=DATA, linewidths=0, zorder=0)
    for h, weight in enumerate(weights):
        density = view.densities[:, :, h]
        style = class_style(h)
        kwargs = {"colors": style["color"], "linestyles": style["linestyle"], **options}
        panel.contour(*view.ticks, density.T, levels=levels(density), **kwargs)
        panel.plot([], [], label=class_label(h, weight), **style)  # contours have no line for the legend
    panel.set(xlabel=view.names[0], ylabel=view.names[1])
    panel.set_xlim(view.ticks[0][[0, -1]])
    panel.set_ylim(view.ticks[1][[0, -1]])
