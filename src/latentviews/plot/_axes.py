"""What every picture shares: colours, axes, and the sentence where matplotlib is missing."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from latentviews._arrays import to_numpy
from latentviews._validation import check_rows
from latentviews.core.categories import coded


def offscreen_axes(count: int) -> np.ndarray:
    """Axes in a row, in a figure that belongs to no window: for files.

    Parameters
    ----------
    count : int
        How many Axes.

    Returns
    -------
    array

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews.plot import TransitionDisplay, offscreen_axes
    >>> (panel,) = offscreen_axes(1)
    >>> display = TransitionDisplay(np.array([[0.9, 0.1], [0.2, 0.8]])).plot(panel)
    >>> display.figure_.savefig("transition.png")  # doctest: +SKIP
    >>> len(display.figure_.axes)
    2
    """
    check_matplotlib()
    from matplotlib.figure import Figure

    return new_panels(count, Figure)


# Okabe & Ito's colours, told apart with any colour vision, without their yellow, which a white page swallows
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000")
STYLES = ("-", "-.", ":")  # classes beyond the palette take its colours again in the next style
DATA = "0.82"  # the grey of the data beneath


def check_model(display: type, estimator: Any, kinds: str, *parts: str) -> None:
    """Refuse what is not fitted, and a model without the parts that a display draws."""
    check_is_fitted(estimator)
    if not all(hasattr(estimator, part) for part in parts):
        raise TypeError(f"{display.__name__} draws {kinds}; got a {type(estimator).__name__}.")


def column_place(column: Any, width: int, names: Any = None) -> int:
    """The place of a column that is given by its number, from the end where negative, or by its name."""
    known = None if names is None else [str(name) for name in names]
    if known is not None and isinstance(column, str) and column in known:
        return known.index(column)
    if isinstance(column, bool) or not isinstance(column, (int, np.integer)) or not -width <= column < width:
        named = "" if known is None else f" or a name, {listed(known)}"
        nameless = ", and columns have no names" if known is None and isinstance(column, str) else ""
        raise ValueError(f"column must be a number from 0 to {width - 1}{named}; got {column!r}{nameless}.")
    return int(column) % width


def drawn_rows(estimator: Any, X: Any) -> np.ndarray:
    """Rows as numbers, missing ones and codes of categories among them, as a fitted model reads them."""
    return to_numpy(check_rows(estimator, coded(estimator, X, reset=False), reset=False, missing=True))


def as_written(name: Any) -> str:
    """A name of the user's, whose dollars are no formula."""
    return str(name).replace("$", r"\$")


def passed_on(name: str, settings: Any) -> dict[str, Any]:
    """What a display hands to matplotlib, a dict or None."""
    if settings is not None and not isinstance(settings, Mapping):
        raise TypeError(f"{name} must be a dict of settings of matplotlib, or None; got {settings!r:.60}.")
    return dict(settings or {})


def contour_settings(options: dict[str, Any], colour: str, **own: Any) -> dict[str, Any]:
    """Settings of contours, the user's in place of ours; their colours are ours unless those say otherwise."""
    return own | ({} if "cmap" in options else {"colors": colour}) | options


def listed(names: list[str], most: int = 10) -> str:
    """Names with commas between, the first of many."""
    return ", ".join(map(repr, names[:most])) + (", …" if len(names) > most else "")


def panels_on(ax: Any, count: int, what: str, new_figure: Any = None) -> np.ndarray:
    """The Axes to draw on: those given, one for each of ``what``, or new ones in a row."""
    given = new_panels(count, new_figure) if ax is None else np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
    if len(given) != count:
        raise ValueError(f"ax needs one Axes per {what}, {count} in all; got {len(given)}.")
    if not all(hasattr(one, "plot") for one in given):
        raise TypeError(f"ax must be Axes of matplotlib; got {ax!r}.")
    return given


def new_panels(count: int, new_figure: Any = None) -> np.ndarray:
    """Axes in a row, in a figure of pyplot's unless ``new_figure`` makes another."""
    check_matplotlib()
    if new_figure is None:
        from matplotlib import pyplot

        new_figure = pyplot.figure
    figure = new_figure(figsize=(3.6 * count, 3.2), layout="constrained")
    return figure.subplots(1, count, squeeze=False)[0]


def check_matplotlib() -> None:
    """Refuse in one sentence where matplotlib is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError("Plots need matplotlib, which is not installed: pip install latentviews[plot]") from error


def class_style(component: int) -> dict[str, Any]:
    """The colour and line of a class."""
    return {
        "color": PALETTE[component % len(PALETTE)],
        "linestyle": STYLES[component // len(PALETTE) % len(STYLES)],
    }


def class_label(component: int, weight: float) -> str:
    """A class and its weight, for a legend."""
    return f"class {component} ({weight:.2f})"
