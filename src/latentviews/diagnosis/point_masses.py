"""Values that many rows have exactly, and what a fit makes of them."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from latentviews.core.features.point_masses import find_point_masses
from latentviews.core.point_masses import masses_of
from latentviews.mixtures.problem import classes_of

REPEATED = 3  # rows at one value are no chance where all others are far away
FAR_OFF = 1.0  # standard deviations of the others are far
VARIED = 10  # other values make a column of measurements


class ExactValues(NamedTuple):
    """Values of one column that many rows have exactly."""

    values: np.ndarray  # (A,)
    shares: np.ndarray  # (A,), of the rows that have the column
    separate: bool  # whether the fit has them as point masses; if not, it smooths them as all others
    allowed: bool = False  # whether it would have, had they stood out among its own rows


def exact_values(model: Any, rows: np.ndarray, names: Any) -> dict[str, ExactValues]:
    """The point masses of a fitted model, and those that it might have had, by the names of their columns."""
    known, found, noise = masses_of(model), {}, classes_of(model).noise_class
    for columns, view in zip(model.views_, model.components_, strict=True):
        if model.point_masses is None or view.domain is None or not view.space.ordered:
            continue
        for j in columns:
            x = rows[~np.isnan(rows[:, j]), j]
            values = known.get(j, find_point_masses(x))
            shares = np.array([np.mean(x == value) for value in values])
            if len(values):
                found[str(names[j])] = ExactValues(values, shares, j in known, len(columns) == 1 and not noise)
    return found


def apart_values(model: Any, rows: np.ndarray, names: Any) -> dict[str, tuple[float, int, float]]:
    """Values at an end of a column that some rows have exactly, how many, and the value next to them.

    They are a standard deviation of all others or more away from these, as zeros or 999s for "not measured" are.
    """
    found = {}
    for columns, view in zip(model.views_, model.components_, strict=True):
        for c, j in enumerate(columns):
            if view.domain is None or not view.space.column(c).ordered:
                continue
            values, counts = np.unique(rows[~np.isnan(rows[:, j]), j], return_counts=True)
            for end, others in ((0, slice(1, None)), (-1, slice(None, -1))):
                if counts[others].size < VARIED or counts[end] < REPEATED:
                    continue
                center = np.average(values[others], weights=counts[others])
                spread = np.sqrt(np.average((values[others] - center) ** 2, weights=counts[others]))
                beside = values[others][end]
                if abs(beside - values[end]) > FAR_OFF * spread:
                    found[str(names[j])] = (float(values[end]), int(counts[end]), float(beside))
    return found


def apart_sentence(found: Mapping[str, tuple[float, int, float]]) -> str:
    """What is said of them."""
    told = [
        f"{n} rows of {_column(name)} are exactly {v:g}, next to {beside:g}" for name, (v, n, beside) in found.items()
    ]
    return (
        f'Values apart from all others: {_some(told)}. If they stand for "not measured", leave these cells empty (NaN) '
        "and fit again."
    )


def exact_sentences(found: Mapping[str, ExactValues]) -> Iterator[str]:
    """What is said of them: those that are point masses of the fit, then those that are not, and why."""
    listed: dict[str, list[str]] = {"separate": [], "smoothed": [], "unseen": []}
    for name, (values, shares, separate, allowed) in found.items():
        told = [f"{m:.0%} of {_column(name)} are exactly {v:g}" for v, m in zip(values, shares, strict=True)]
        listed["separate" if separate else "unseen" if allowed else "smoothed"] += told
    if listed["separate"]:
        zero = any(separate and 0 in values for values, _, separate, _ in found.values())
        yield f"Point masses: {_some(listed['separate'])}. They are treated as point masses of the densities." + (
            ' If 0 stands for "not measured" there, leave the cell empty (NaN) and fit again.' if zero else ""
        )
    smooth = "They are smoothed as all others, so that densities are too wide there."
    if listed["smoothed"]:
        yield (
            f"Values that many rows have: {_some(listed['smoothed'])}. {smooth} Views of one column have them as point "
            "masses, unless noise is a class."
        )
    if listed["unseen"]:
        yield (
            f"Values that many of these rows have: {_some(listed['unseen'])}. {smooth} They did not stand out among "
            "the rows that the fit looked for them in; where it had the same ones, name them in `point_masses`."
        )


def _some(sentences: list[str]) -> str:
    return "; ".join(sentences[:5]) + (f"; and {len(sentences) - 5} more" if len(sentences) > 5 else "")


def _column(name: str) -> str:
    return f"column {name}" if name.isdigit() else name
