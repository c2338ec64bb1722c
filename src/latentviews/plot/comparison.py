"""Displays of comparisons: where two samples differ, where a series changes, when a stream left its reference."""

from typing import Any, Self

import numpy as np

from latentviews._arrays import to_numpy
from latentviews._numbers import evenly
from latentviews.comparison.features import finite_table
from latentviews.plot._axes import DATA, PALETTE, as_written, check_model, column_place, drawn_rows, panels_on

POINTS = 4000  # at most this many rows of a series are drawn
GRID = 200  # points of a witness along a column, and a quarter of that along each of two


class WitnessDisplay:
    """Where two samples differ: the witness of a `two_sample_test`, over the rows of both.

    One column is drawn as a curve over two histograms, the first two of several as a map.

    Parameters
    ----------
    result : TestResult
        What `two_sample_test` gave.
    x, y : arrays
        The samples that were compared.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import two_sample_test
    >>> from latentviews.plot import WitnessDisplay
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=200), rng.normal(1.0, size=200)
    >>> WitnessDisplay(two_sample_test(x, y, random_state=0), x, y).plot().ax_.get_ylabel()
    'witness'
    """

    def __init__(self, result: Any, x: Any, y: Any):
        self.result = result
        self.x = x
        self.y = y

    def plot(self, ax: Any = None) -> Self:
        """Draw the witness.

        Parameters
        ----------
        ax : matplotlib Axes or None

        Returns
        -------
        WitnessDisplay
        """
        if getattr(self.result, "witness", None) is None:
            raise ValueError(f"WitnessDisplay draws what two_sample_test gave, with its witness; got {self.result!r}.")
        x, y = (to_numpy(finite_table(name, rows)) for name, rows in (("x", self.x), ("y", self.y)))
        if not len(x) or not len(y):
            raise ValueError(f"x and y need at least one row each; got {len(x)} and {len(y)}.")
        if x.shape[1] != y.shape[1]:
            raise ValueError(f"x and y need the same columns; got {x.shape[1]} and {y.shape[1]}.")
        (panel,) = panels_on(ax, 1, "comparison")
        (self._curve if x.shape[1] == 1 else self._map)(panel, x, y)
        panel.set_title(f"p = {self.result.pvalue:.3g}, effect {self.result.effect:.2f}", fontsize="medium")
        panel.legend(fontsize="small")
        self.ax_, self.figure_ = panel, panel.figure
        return self

    def _curve(self, panel: Any, x: np.ndarray, y: np.ndarray) -> None:
        points = np.linspace(*_ends(np.concatenate([x, y])[:, 0]), GRID)
        beneath = panel.twinx()
        for rows, colour, name in ((x, PALETTE[0], "x"), (y, PALETTE[1], "y")):
            beneath.hist(rows[:, 0], bins=40, range=(points[0], points[-1]), density=True, color=colour, alpha=0.3)
            panel.plot([], [], color=colour, alpha=0.5, lw=6, label=name)
        beneath.set_yticks([])
        panel.plot(points, self.result.witness.at(points), color="0.1", label="x − y")
        panel.axhline(0.0, color=DATA, lw=1)
        panel.set(xlabel="value", ylabel="witness")

    def _map(self, panel: Any, x: np.ndarray, y: np.ndarray) -> None:
        pooled = np.concatenate([x, y])
        ticks = [np.linspace(*_ends(pooled[:, j]), GRID // 4) for j in (0, 1)]
        points = np.tile(np.median(pooled, axis=0), (len(ticks[0]) * len(ticks[1]), 1))
        points[:, :2] = np.stack(np.meshgrid(*ticks), axis=-1).reshape(-1, 2)
        values = self.result.witness.at(points).reshape(len(ticks[1]), len(ticks[0]))
        most = float(np.abs(values).max()) or 1.0
        panel.pcolormesh(*ticks, values, cmap="RdBu", vmin=-most, vmax=most, shading="nearest", rasterized=True)
        for rows, colour, name in ((x, PALETTE[0], "x: more in blue"), (y, PALETTE[3], "y: more in red")):
            some = rows[evenly(len(rows), POINTS // 4)]
            panel.scatter(some[:, 0], some[:, 1], s=3, color=colour, label=name, alpha=0.5)
        panel.set(xlabel="column 0", ylabel="column 1")


def _ends(column: np.ndarray) -> tuple[float, float]:
    """The least and the greatest value, apart enough to be drawn."""
    low, high = float(column.min()), float(column.max())
    room = 1e-6 * max(abs(low), abs(high), 1e-300)
    return (low, high) if high - low > room else (low - room, high + room)


class ChangePointDisplay:
    """A series and the rows at which it changes.

    Parameters
    ----------
    values : array of shape (n,)
        One column of the series.
    changes : array of int
    name : str
        What to write on the axis of the column.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews.plot import ChangePointDisplay, offscreen_axes
    >>> series = np.repeat([0.0, 1.0, 3.0], 20)
    >>> ChangePointDisplay(series, np.array([20, 40]), "level").plot(offscreen_axes(1)[0]).ax_.get_ylabel()
    'level'
    """

    def __init__(self, values: np.ndarray, changes: np.ndarray, name: str = "value"):
        self.values = values
        self.changes = changes
        self.name = name

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, column: int | str = 0, ax: Any = None) -> Self:
        """Draw one column of the series that a `ChangePoints` was fitted on.

        Parameters
        ----------
        estimator : ChangePoints
        X : array or DataFrame of shape (n_rows, n_columns)
        column : int or str, default=0
            The column that is drawn, by its number or its name.
        ax : matplotlib Axes or None

        Returns
        -------
        ChangePointDisplay
        """
        check_model(cls, estimator, "a ChangePoints", "changes_")
        rows = drawn_rows(estimator, X)
        names = getattr(estimator, "feature_names_in_", getattr(X, "columns", None))
        place = column_place(column, rows.shape[1], names)
        name = f"column {place}" if names is None else str(names[place])
        return cls(rows[:, place], estimator.changes_, name).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the series, its segments shaded in turn.

        Parameters
        ----------
        ax : matplotlib Axes or None

        Returns
        -------
        ChangePointDisplay
        """
        (panel,) = panels_on(ax, 1, "series")
        ends = [0, *np.asarray(self.changes).tolist(), len(self.values)]
        for start, end in zip(ends[1::2], ends[2::2], strict=False):
            panel.axvspan(start - 0.5, end - 0.5, color=PALETTE[5], alpha=0.25, lw=0)
        some = evenly(len(self.values), POINTS)
        panel.plot(some, np.asarray(self.values)[some], color="0.2", lw=0.8)
        for change in self.changes:
            panel.axvline(change - 0.5, color=PALETTE[3], lw=1)
        panel.set(xlabel="row", ylabel=as_written(self.name), xlim=(-0.5, len(self.values) - 0.5))
        self.ax_, self.figure_ = panel, panel.figure
        return self


class DriftDisplay:
    """How far a stream was from its reference, window by window, and the alarms.

    Parameters
    ----------
    statistics : array of shape (n_windows,)
    threshold : float
    window : int

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews.plot import DriftDisplay, offscreen_axes
    >>> DriftDisplay(np.array([0.1, 0.2, 0.9]), 0.5, window=50).plot(offscreen_axes(1)[0]).ax_.get_ylabel()
    'distance from the reference'
    """

    def __init__(self, statistics: np.ndarray, threshold: float, window: int):
        self.statistics = statistics
        self.threshold = threshold
        self.window = window

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw what a `DriftMonitor` has seen.

        Parameters
        ----------
        estimator : DriftMonitor
        ax : matplotlib Axes or None

        Returns
        -------
        DriftDisplay
        """
        check_model(cls, estimator, "a DriftMonitor", "statistics_", "threshold_")
        return cls(estimator.statistics_, estimator.threshold_, estimator.window).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the statistics, the threshold, and the windows above it.

        Parameters
        ----------
        ax : matplotlib Axes or None

        Returns
        -------
        DriftDisplay
        """
        (panel,) = panels_on(ax, 1, "stream")
        statistics = np.asarray(self.statistics)
        rows, above = (1 + np.arange(len(statistics))) * self.window, statistics > self.threshold
        panel.plot(rows, statistics, color="0.3", lw=1, marker=".")
        panel.plot(rows[above], statistics[above], "o", color=PALETTE[3], label="alarm")
        panel.axhline(self.threshold, color=PALETTE[0], ls="--", label="threshold")
        panel.set(xlabel="rows seen", ylabel="distance from the reference", ylim=(0, None))
        panel.legend(fontsize="small")
        self.ax_, self.figure_ = panel, panel.figure
        return self
