"""Displays of what a fit is worth: spectra, certainty, dependence."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from latentviews._numbers import TINY
from latentviews._validation import as_numbers, check_count
from latentviews.diagnosis.dependence import LEVEL, WithinClassDependence
from latentviews.diagnosis.diagnose import CERTAIN, Diagnosis, diagnose
from latentviews.plot._axes import DATA, PALETTE, as_written, check_model, class_label, class_style, panels_on


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

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews.plot import SpectrumDisplay, offscreen_axes
    >>> display = SpectrumDisplay(np.array([0.5, 0.3, 0.01, 0.008]), 2, null=0.02).plot(offscreen_axes(1)[0])
    >>> display.ax_.get_yscale(), display.ax_.get_ylabel()
    ('log', 'singular value')
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

        Parameters
        ----------
        estimator : fitted estimator
        null : float, array or None
            What permutations leave of singular values, as the display takes it.
        ax : matplotlib Axes, an array of them, or None
            Where to draw; by default a new figure.
        n_values : int
            Values shown.

        Returns
        -------
        the display
        """
        check_is_fitted(estimator)
        if null is None and hasattr(estimator, "rank_test_"):
            test = estimator.rank_test_
            spectrum, null = test.spectra[test.strongest], test.nulls[test.strongest]
            return cls(spectrum, test.n_components, null, centred=True).plot(ax, n_values=n_values)
        if getattr(estimator, "spectrum_", None) is None:
            raise ValueError("This model has no `spectrum_`: its answer did not come from moments.")
        k = getattr(estimator, "n_components_", len(estimator.weights_))
        return cls(estimator.spectrum_, k, null).plot(ax, n_values=n_values)

    def plot(self, ax: Any = None, *, n_values: int = 12) -> Self:
        """Draw the leading ``n_values`` singular values, on ``ax`` if given.

        Parameters
        ----------
        ax : matplotlib Axes, an array of them, or None
            Where to draw; by default a new figure.
        n_values : int
            Values shown.

        Returns
        -------
        the display itself
        """
        check_count("n_values", n_values)
        null = None if self.null is None else _null_draws(self.null)
        (panel,) = panels_on(ax, 1, "spectrum")
        label = f"{self.n_components} classes" if self.n_components else None
        k = max((self.n_components or 0) - self.centred, 0)
        if not len(self.spectrum):
            raise ValueError("The spectrum has no singular value; there is nothing to draw.")
        size = min(max(n_values, k + 1), len(self.spectrum))
        values, places = np.asarray(self.spectrum, dtype=float)[:size], np.arange(1, size + 1)
        floor = values[0] * 1e-6  # what is smaller is rounding, and would squeeze the rest
        shown = np.maximum(values, floor)
        panel.plot(places, shown, color=DATA, zorder=1)
        panel.plot(places[:k], shown[:k], "o", color=PALETTE[0], label=label, zorder=2)
        panel.plot(places[k:], shown[k:], "o", color=PALETTE[0], markerfacecolor="white", label="rest", zorder=2)
        panel.set(yscale="log", xlabel="index", ylabel="singular value", xlim=(0.5, size + 0.5))
        panel.xaxis.get_major_locator().set_params(integer=True)
        if null is not None:
            limits = panel.get_ylim()
            _draw_null(panel, places, null)
            panel.set_ylim(limits)
        panel.legend(frameon=False, fontsize="small")
        self.ax_, self.figure_ = panel, panel.figure
        return self


def _null_draws(null: Any) -> np.ndarray:
    """Singular values of permutations: a level, (n_draws,), or (n_draws, n_values)."""
    draws = np.atleast_1d(as_numbers("null", null, missing=False))
    if draws.ndim > 2 or not draws.size or not np.all(np.isfinite(draws)):
        raise ValueError(
            "null must be a finite number, or such numbers of shape (n_draws,) or (n_draws, n_values); got shape "
            f"{draws.shape}{'' if np.all(np.isfinite(draws)) else ', with NaN or infinity'}."
        )
    return draws


def _draw_null(panel: Any, places: np.ndarray, draws: np.ndarray) -> None:
    """The 95 % quantile of the draws, and what lies below."""
    top = np.quantile(draws, 0.95, axis=0)
    if top.ndim == 0:  # a level for all
        top, places = np.full(2, top), np.array([0.5, places[-1] + 0.5])
    size = min(len(top), len(places))
    panel.fill_between(places[:size], TINY, top[:size], color=PALETTE[1], alpha=0.25, lw=0)
    panel.plot(places[:size], top[:size], "--", color=PALETTE[1], label="95 % of no dependence")


class ResponsibilityDisplay:
    """How certain the classes of rows are: the largest posterior of every row, sorted, one curve per class.

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

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews.plot import ResponsibilityDisplay, offscreen_axes
    >>> posteriors = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]])
    >>> display = ResponsibilityDisplay(posteriors).plot(offscreen_axes(1)[0])
    >>> [text.get_text() for text in display.ax_.get_legend().get_texts()]
    ['class 0 (0.67)', 'class 1 (0.33)']
    """

    def __init__(self, posteriors: np.ndarray):
        self.posteriors = posteriors

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, ax: Any = None) -> Self:
        """Draw the posteriors of the rows of ``X``.

        Parameters
        ----------
        estimator : fitted estimator
        X : array or DataFrame of shape (n_samples, n_features)
        ax : matplotlib Axes, an array of them, or None
            Where to draw; by default a new figure.

        Returns
        -------
        the display
        """
        check_model(cls, estimator, "the posteriors of a model with classes, such as MultiViewMixture", "predict_proba")
        return cls(estimator.predict_proba(X)).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw, on ``ax`` if given.

        Parameters
        ----------
        ax : matplotlib Axes, an array of them, or None
            Where to draw; by default a new figure.

        Returns
        -------
        the display itself
        """
        (panel,) = panels_on(ax, 1, "model")
        posteriors = as_numbers("posteriors", self.posteriors, missing=False)
        if posteriors.ndim != 2 or not len(posteriors):
            raise ValueError(f"posteriors needs a row per object and a column per class; got shape {posteriors.shape}.")
        certainty, labels, k = posteriors.max(axis=1), posteriors.argmax(axis=1), posteriors.shape[1]
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
    """How strongly views depend on each other inside every class, one heat map per class, from a `Diagnosis`.

    Effects run from 0, none, to 1; a star marks those whose corrected p-value is at most 5 %, a cross what could not
    be tested.

    Parameters
    ----------
    dependence : WithinClassDependence
    view_names : sequence of str

    Attributes
    ----------
    axes_ : array of matplotlib Axes, one per class
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from latentviews import MultiViewMixture
    >>> from latentviews.datasets import make_multiview
    >>> from latentviews.plot import DependenceDisplay, offscreen_axes
    >>> X = make_multiview(100, 2, random_state=0).X
    >>> model = MultiViewMixture(2, polish=None, random_state=0).fit(X)
    >>> len(DependenceDisplay.from_estimator(model, X, ax=offscreen_axes(2), random_state=0).axes_)
    2
    """

    def __init__(self, dependence: WithinClassDependence, view_names: Sequence[str]):
        self.dependence = dependence
        self.view_names = view_names

    @classmethod
    def from_diagnosis(cls, diagnosis: Diagnosis, *, ax: Any = None) -> Self:
        """Draw what `diagnose` found.

        Parameters
        ----------
        diagnosis : Diagnosis
            What `diagnose` found.
        ax : matplotlib Axes, an array of them, or None
            Where to draw; by default a new figure.

        Returns
        -------
        the display
        """
        if not isinstance(diagnosis, Diagnosis):
            raise TypeError(
                f"{cls.__name__} draws a Diagnosis, which `diagnose(model, X)` gives; got {diagnosis!r:.60}."
            )
        return cls(diagnosis.dependence, diagnosis.view_names).plot(ax)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, ax: Any = None, random_state: Any = None) -> Self:
        """Diagnose a fitted model on ``X``, and draw.

        Parameters
        ----------
        estimator : fitted estimator
        X : array or DataFrame of shape (n_samples, n_features)
        ax : matplotlib Axes, an array of them, or None
            Where to draw; by default a new figure.
        random_state : int, RandomState or None

        Returns
        -------
        the display
        """
        return cls.from_diagnosis(diagnose(estimator, X, random_state=random_state), ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw, on ``ax`` if given: Axes, or a sequence of them, one per class.

        Parameters
        ----------
        ax : matplotlib Axes, an array of them, or None
            Where to draw; by default a new figure.

        Returns
        -------
        the display itself
        """
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
        places, names = range(len(self.view_names)), [as_written(name) for name in self.view_names]
        panel.set(title=f"class {h}", xticks=places, yticks=places)
        panel.set_xticklabels(names, rotation=30 if max(map(len, self.view_names)) > 4 else 0)
        panel.set_yticklabels(names)
        return image
