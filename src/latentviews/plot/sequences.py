"""Displays of sequences: bands of states over a series, a transition matrix, a forecast as a fan.

`latentviews.plot` has them beside the others; matplotlib is imported where it is used.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from latentviews._numbers import evenly
from latentviews._parameters import is_number
from latentviews.plot._axes import (
    DATA,
    PALETTE,
    as_written,
    check_model,
    class_style,
    column_place,
    drawn_rows,
    panels_on,
)

POINTS = 4000  # at most this many rows of a series are drawn
RECENT = 4  # rows before a forecast that are drawn, for every step of it


class StateDisplay:
    """A series over bands in the colours of its states.

    Parameters
    ----------
    values : array of shape (n,)
        One column of the series.
    states : array of shape (n,)
    name : str
        What to write on the axis of the column.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from latentviews import KernelHMM
    >>> from latentviews.datasets import make_hmm
    >>> from latentviews.plot import StateDisplay
    >>> X, states, truth = make_hmm(600, random_state=0)
    >>> model = KernelHMM(3, random_state=0).fit(X)
    >>> StateDisplay.from_estimator(model, X).ax_.get_ylabel()
    'column 0'
    """

    def __init__(self, values: np.ndarray, states: np.ndarray, name: str = "value"):
        self.values = values
        self.states = states
        self.name = name

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, lengths: Any = None, column: int | str = 0, ax: Any = None
    ) -> Self:
        """Draw one column of ``X`` over the most probable path of states.

        Parameters
        ----------
        estimator : fitted estimator
        X : array or DataFrame of shape (n_samples, n_features)
        lengths : list of ints or None
            How long every sequence is; by default all rows are one.
        column : int or str
            The column that is drawn.
        ax : matplotlib Axes, an array of them, or None
            Where to draw; by default a new figure.

        Returns
        -------
        the display
        """
        check_model(cls, estimator, "a KernelHMM", "transition_", "predict")
        place = _place(estimator, X, column)
        states = estimator.predict(X, lengths=lengths)
        return cls(drawn_rows(estimator, X)[:, place], states, _name(estimator, X, place)).plot(ax)

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
        (panel,) = panels_on(ax, 1, "series")
        states = np.asarray(self.states)
        begins = np.flatnonzero(np.append(True, np.diff(states) != 0))
        ends = np.append(begins[1:], len(states))
        named: set[int] = set()
        for begin, end in zip(begins, ends, strict=True):
            state = int(states[begin])
            label = None if state in named else f"state {state}"
            named.add(state)
            panel.axvspan(begin - 0.5, end - 0.5, color=class_style(state)["color"], alpha=0.3, lw=0, label=label)
        some = evenly(len(self.values), POINTS)
        panel.plot(some, np.asarray(self.values)[some], color="0.2", lw=0.8)
        panel.set(xlabel="row", ylabel=as_written(self.name), xlim=(-0.5, len(self.values) - 0.5))
        patches, labels = panel.get_legend_handles_labels()
        order = np.argsort([int(label.split()[-1]) for label in labels])
        panel.legend([patches[i] for i in order], [labels[i] for i in order], fontsize="small", loc="upper right")
        self.ax_, self.figure_ = panel, panel.figure
        return self


class TransitionDisplay:
    """A transition matrix as a heat map: one row per state, a column the next.

    Parameters
    ----------
    transition : array of shape (k, k)

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews.plot import TransitionDisplay, offscreen_axes
    >>> display = TransitionDisplay(np.array([[0.9, 0.1], [0.2, 0.8]])).plot(offscreen_axes(1)[0])
    >>> [text.get_text() for text in display.ax_.texts]
    ['0.90', '0.10', '0.20', '0.80']
    """

    def __init__(self, transition: np.ndarray):
        self.transition = transition

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the ``transition_`` of a fitted model.

        Parameters
        ----------
        estimator : fitted estimator
        ax : matplotlib Axes, an array of them, or None
            Where to draw; by default a new figure.

        Returns
        -------
        the display
        """
        check_model(cls, estimator, "a KernelHMM", "transition_")
        return cls(estimator.transition_).plot(ax)

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
        (panel,) = panels_on(ax, 1, "matrix")
        image = panel.imshow(self.transition, vmin=0, vmax=1, cmap="Blues")
        for (g, h), chance in np.ndenumerate(self.transition):
            panel.text(h, g, f"{chance:.2f}", ha="center", va="center", color="white" if chance > 0.6 else "black")
        places = range(len(self.transition))
        panel.set(xlabel="next state", ylabel="state", xticks=places, yticks=places)
        panel.figure.colorbar(image, ax=panel, label="probability")
        self.ax_, self.figure_ = panel, panel.figure
        return self


class ForecastDisplay:
    """The end of a series and its forecast: the median, and bands that hold stated shares.

    Parameters
    ----------
    recent : array of shape (n,)
        The last rows of one column.
    quantiles : array of shape (horizon, n_levels)
        The forecast's quantiles of that column, at increasing ``levels``, the middle one 0.5.
    levels : array of shape (n_levels,)
    name : str

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews.plot import ForecastDisplay, offscreen_axes
    >>> quantiles = np.array([[4.5, 5.0, 5.5], [5.0, 6.0, 7.0]])  # of two steps ahead
    >>> display = ForecastDisplay(np.arange(5.0), quantiles, np.array([0.05, 0.5, 0.95]), "level")
    >>> display.plot(offscreen_axes(1)[0]).ax_.get_ylabel()
    'level'
    """

    def __init__(self, recent: np.ndarray, quantiles: np.ndarray, levels: np.ndarray, name: str = "value"):
        self.recent = recent
        self.quantiles = quantiles
        self.levels = levels
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        horizon: int,
        *,
        column: int | str = 0,
        shares: Sequence[float] = (0.9, 0.5),
        ax: Any = None,
    ) -> Self:
        """Draw the forecast of one column after the rows ``X`` of one series, with bands that hold these shares.

        Parameters
        ----------
        estimator : fitted estimator
        X : array or DataFrame of shape (n_samples, n_features)
        horizon : int, default=1
            How many steps ahead.
        column : int or str
            The column that is drawn.
        shares : sequence of floats
            Shares of the distribution that the bands hold.
        ax : matplotlib Axes, an array of them, or None
            Where to draw; by default a new figure.

        Returns
        -------
        the display
        """
        check_model(cls, estimator, "a KernelHMM or PredictiveStateModel", "forecast")
        place = _place(estimator, X, column)
        if not any(place in view for view in getattr(estimator, "views_", [range(estimator.n_features_in_)])):
            raise ValueError(f"Column {column} is in no view of this model, so there is no forecast of it.")
        outer = np.sort((1 - _checked_shares(shares)) / 2)
        levels = np.concatenate([outer, [0.5], 1 - outer[::-1]])
        quantiles = estimator.forecast(X, horizon).quantile(levels)[:, place]
        recent = drawn_rows(estimator, X)[:, place][-RECENT * horizon :]
        return cls(recent, quantiles, levels, _name(estimator, X, place)).plot(ax)

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
        (panel,) = panels_on(ax, 1, "forecast")
        quantiles, levels = np.asarray(self.quantiles), np.asarray(self.levels)
        n_bands, horizon = len(levels) // 2, len(quantiles)
        past, ahead = np.arange(-len(self.recent) + 1, 1), np.arange(1, horizon + 1)
        for band in range(n_bands):
            low, high, share = quantiles[:, band], quantiles[:, -1 - band], levels[-1 - band] - levels[band]
            label = f"{100 * share:.0f} %"
            panel.fill_between(ahead, low, high, color=PALETTE[0], alpha=min(0.2 + 0.15 * band, 0.9), lw=0, label=label)
        panel.plot(past, self.recent, color="0.2", lw=0.8)
        panel.plot(ahead, quantiles[:, n_bands], color=PALETTE[0], label="median")
        panel.axvline(0.5, color=DATA, zorder=0)
        panel.set(xlabel="rows from now", ylabel=as_written(self.name))
        panel.legend(frameon=False, fontsize="small", loc="upper left")
        self.ax_, self.figure_ = panel, panel.figure
        return self


def _checked_shares(shares: Any) -> np.ndarray:
    """Shares of a distribution that bands hold."""
    flat = np.ndim(shares) == 1 and len(shares) > 0
    if not flat or not all(is_number(share) and 0 < share < 1 for share in shares):
        raise ValueError(f"shares must be numbers between 0 and 1, such as (0.9, 0.5); got {shares!r}.")
    return np.asarray(shares, dtype=float)


def _names(estimator: Any, X: Any) -> Any:
    """Those of the fit, else those of the rows, else None."""
    return getattr(estimator, "feature_names_in_", getattr(X, "columns", None))


def _place(estimator: Any, X: Any, column: int | str) -> int:
    return column_place(column, estimator.n_features_in_, _names(estimator, X))


def _name(estimator: Any, X: Any, place: int) -> str:
    names = _names(estimator, X)
    return f"column {place}" if names is None else str(names[place])
