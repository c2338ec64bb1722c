"""The pictures of a report, each with a sentence that says what it shows."""

from typing import Any

import numpy as np

from latentviews._numbers import TINY, thinned
from latentviews.core.selection import RankTest, compared_name
from latentviews.plot._axes import PALETTE, STYLES
from latentviews.plot.view_densities import ViewDensities, histogram, levels, shares
from latentviews.report.contents import Contents
from latentviews.report.markup import Html, join, tag
from latentviews.report.svg import (
    Scale,
    contours,
    coordinates,
    dots,
    label,
    line,
    number,
    picture,
    shortened,
    x_axis,
    y_axis,
)

LEFT = 60  # where a panel begins, with room for the numbers of its axis
NAMES = 64  # where bars begin, with room for the names of classes
WIDTH = 440  # of a figure that is not one of many
POINTS = 800  # rows beneath the contours of a view
SHOWN, LEAST = 10, 1e-5  # singular values, and how far below the first
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
ROW_CERTAINTIES = {"sure": "over 95 %", "some": "80 to 95 %", "doubt": "under 80 %"}  # as report.js draws them
CERTAINTIES = ("over 99 %", "95 to 99 %", "80 to 95 %", "under 80 %")


def class_names(h: int, *more: str) -> str:
    """The classes that give an element the colour and the dashes of class h, and let it be hidden."""
    return " ".join([f"h{h}", f"dash{h // len(PALETTE) % len(STYLES)}", "part", *more])


def class_swatch(h: int) -> Html:
    """A mark in the colour and the shape of class h, which no other of the first twenty has."""
    return tag("i", class_=f"swatch h{h} shape{h // len(PALETTE) % len(STYLES)}")


def class_title(h: int) -> Html:
    """The name of class h with its mark."""
    return join([class_swatch(h), f"class {h}"])


def percent(share: float) -> str:
    """A share for people, never broken over two lines."""
    return f"{100 * share:.1f}\xa0%" if share < 0.9995 else "100\xa0%"


def sizes_figure(contents: Contents) -> Html:
    """One bar per class, with its interval."""
    sizes, step, width = contents.sizes, 30, WIDTH
    k = len(sizes.weights)
    scale = Scale(0, float(min(1.0, sizes.upper.max() * 1.05)), NAMES, width - 132)
    parts: list[Any] = []
    for h in range(k):
        y = 8 + step * h
        low, place, high = (float(scale(ends[h])) for ends in (sizes.lower, sizes.weights, sizes.upper))
        interval = f" ({100 * sizes.lower[h]:.1f} – {100 * sizes.upper[h]:.1f})" if k > 1 else ""
        text = percent(sizes.weights[h]) + interval
        parts += [
            label(0, y + 15, f"class {h}", class_="name"),
            tag(
                "rect",
                x=NAMES,
                y=y,
                width=f"{max(place - NAMES, 0.5):.1f}",
                height=20,
                rx=3,
                class_=f"h{h} dash{h // len(PALETTE) % len(STYLES)} bar",
            ),
            tag("path", d=f"M{low:.1f} {y + 10}H{high:.1f}m0 -5v10M{low:.1f} {y + 5}v10", class_="whisker"),
            label(high + 8, y + 15, text, class_="value"),
        ]
    said = "; ".join(f"class {h} {percent(w)}" for h, w in enumerate(sizes.weights))
    return picture(width, 8 + step * k, f"Sizes of the classes: {said}.", *parts, class_="wide")


def view_figure(view: ViewDensities, weights: np.ndarray) -> Html:
    """The densities of a view: curves over a histogram, or contours over rows."""
    return _curves(view, weights) if len(view.ticks) == 1 else _planes(view, weights)


def _curves(view: ViewDensities, weights: np.ndarray) -> Html:
    """π_h p(x | h) for every class over a histogram on the same scale; one stem per value for codes."""
    (ticks,), heights = view.ticks, view.densities * weights
    places, bars, width = shares(view) if view.discrete else histogram(view)
    margin = max(width, 1e-12) if view.discrete else 0.0
    x = Scale(float(ticks[0]) - margin, float(ticks[-1]) + margin, LEFT, 352)
    y = Scale(0.0, float(max(heights.max(), np.max(bars, initial=0.0))) * 1.08 or 1.0, 176, 8)
    ground = float(y(0))
    parts, tops = [_bars(places, bars, width, x, y)], []
    for h in range(len(weights)):
        if view.discrete:
            shift = 0.8 * width * ((h + 0.5) / len(weights) - 0.5)
            at, top = x(ticks + shift), y(heights[:, h])
            stems = "".join(f"M{coordinates((a, ground))}V{b:.1f}" for a, b in zip(at, top, strict=True))
            parts += [tag("path", d=stems, class_=class_names(h, "stem")), dots(at, top, class_=class_names(h, "dot"))]
        else:
            at, top = x(ticks), y(heights[:, h])
            parts.append(line(at, top, class_=class_names(h, "curve")))
        tops.append((at, top))
    within = _within(view, 0)
    parts += [_peak_label(h, at[within], top[within]) for h, (at, top) in enumerate(tops)]
    parts += _mass_stems(view, weights, x, y)
    peaks = ticks[within][heights[within].argmax(axis=0)]
    modes = ", ".join(f"class {h} at {number(peak)}" for h, peak in enumerate(peaks))
    kind = "Shares of the values" if view.discrete else "Densities"
    title = f"{kind} of {view.names[0]} in every class, over a histogram of the rows. Highest: {modes}."
    for value, masses in zip(view.values, view.masses, strict=True):
        exactly = ", ".join(f"{percent(float(mass))} of class {h}" for h, mass in enumerate(masses))
        title += f" Exactly {number(value)}: {exactly}."
    codes = [(v, number(v)) for v in ticks] if view.discrete and len(ticks) <= 12 else None
    axes = (
        x_axis(x, 176, view.names[0], codes),
        y_axis(y, LEFT, "weight × share" if view.discrete else "weight × density"),
    )
    return picture(360, 214, title, *parts, *axes)


def _within(view: ViewDensities, column: int) -> np.ndarray:
    """Which points of an axis lie within the range of the rows; all where none does, or values are codes."""
    ticks = view.ticks[column]
    if view.discrete or view.rows is None or not len(view.rows):
        return np.ones(len(ticks), dtype=bool)
    inside = (ticks >= view.rows[:, column].min()) & (ticks <= view.rows[:, column].max())
    return inside if inside.any() else ~inside


def _mass_stems(view: ViewDensities, weights: np.ndarray, x: Scale, y: Scale) -> list[Html]:
    """A stem for every point mass and class, side by side, the tallest as high as the panel, with its share."""
    if not len(view.values):
        return []
    heights = view.masses * weights
    parts = []
    for h in range(len(weights)):
        at = x(view.values) + 3.0 * (h - (len(weights) - 1) / 2)
        top = y(0.95 * y.high * heights[:, h] / max(heights.max(), 1e-12))
        stems = "".join(f"M{coordinates((a, y(0)))}V{b:.1f}" for a, b in zip(at, top, strict=True))
        parts += [tag("path", d=stems, class_=class_names(h, "stem")), dots(at, top, class_=class_names(h, "dot"))]
    tallest = [
        label(float(x(v)) + 6, 14, f"{percent(float(m.sum()))} at {number(v)}", class_="tick")
        for v, m in zip(view.values, heights, strict=True)
    ]
    return parts + tallest


def _bars(places: np.ndarray, heights: np.ndarray, width: float, x: Scale, y: Scale) -> Html:
    """The histogram as one shape."""
    steps = []
    for place, height in zip(places, heights, strict=True):
        if height > 0:
            left, right, top = float(x(place - width / 2)), float(x(place + width / 2)), float(y(height))
            steps.append(f"M{coordinates((left, y(0)))}V{top:.1f}H{right:.1f}V{float(y(0)):.1f}Z")
    return tag("path", d="".join(steps), class_="rows")


def _peak_label(h: int, x: np.ndarray, y: np.ndarray) -> Html:
    """The number of a class at its highest point."""
    top = int(np.argmin(y))
    return label(float(x[top]), max(float(y[top]) - 4, 10.0), h, text_anchor="middle", class_=class_names(h, "peak"))


def _planes(view: ViewDensities, weights: np.ndarray) -> Html:
    """Regions that hold 90, 50 and 10 % of every class, over some of the rows."""
    x = Scale(float(view.ticks[0][0]), float(view.ticks[0][-1]), LEFT, 352)
    y = Scale(float(view.ticks[1][0]), float(view.ticks[1][-1]), 226, 8)
    parts: list[Html] = []
    if view.rows is not None:
        some = thinned(view.rows, POINTS)
        inside = (some >= [x.low, y.low]) & (some <= [x.high, y.high])
        some = some[inside.all(axis=1)]
        parts.append(dots(x(some[:, 0]), y(some[:, 1]), class_="rows dot"))
    steps = [(ticks[-1] - ticks[0]) / (len(ticks) - 1) for ticks in view.ticks]
    centers, within = [], [_within(view, column) for column in range(2)]
    for h in range(len(weights)):
        density = view.densities[:, :, h]
        for level in levels(density):
            for loop in contours(density, level):
                at = x(x.low + steps[0] * loop[:, 0]), y(y.low + steps[1] * loop[:, 1])
                parts.append(line(*at, close=True, class_=class_names(h, "curve")))
        peak = np.unravel_index(np.where(np.outer(*within), density, -1.0).argmax(), density.shape)
        centers.append(tuple(float(ticks[p]) for ticks, p in zip(view.ticks, peak, strict=True)))
    for h, (a, b) in enumerate(centers):
        parts.append(label(float(x(a)), float(y(b)) + 4, h, text_anchor="middle", class_=class_names(h, "peak")))
    said = ", ".join(f"class {h} at ({number(a)}, {number(b)})" for h, (a, b) in enumerate(centers))
    title = f"Contours around 90, 50 and 10 % of every class in {view.names[0]} and {view.names[1]}. Highest: {said}."
    return picture(360, 264, title, *parts, x_axis(x, 226, view.names[0]), y_axis(y, LEFT, view.names[1]))


def certainty_figure(contents: Contents) -> Html:
    """One bar per class, parted by how certain its rows are."""
    step, k = 30, len(contents.counts)
    parts: list[Any] = []
    for h, shares_of in enumerate(contents.certainty):
        y, start = 4 + step * h, float(NAMES)
        parts.append(label(0, y + 15, f"class {h}", class_="name"))
        for level, share in enumerate(shares_of):
            size = float(share) * (WIDTH - NAMES)
            if share > 0:
                parts.append(tag("rect", x=f"{start:.1f}", y=y, width=f"{size:.1f}", height=20, class_=f"sure{level}"))
            if size > 44:
                at = {"text_anchor": "middle", "class_": f"on{level}"}
                parts.append(label(start + size / 2, y + 14.5, percent(float(share)), **at))
            start += size
    certain = "; ".join(f"class {h} {percent(float(row[0]))}" for h, row in enumerate(contents.certainty))
    title = f"How certain the classes of rows are. Rows whose largest posterior is over 99 %: {certain}."
    key = join(tag("span", tag("i", class_=f"key sure{i}"), text) for i, text in enumerate(CERTAINTIES))
    return join([picture(WIDTH, 4 + step * k, title, *parts, class_="wide"), tag("p", key, class_="keys")])


def is_below(test: RankTest) -> bool:
    """Whether singular values that are drawn are too small for a logarithmic axis."""
    values = test.spectra[test.strongest][:SHOWN]
    return bool(values.min() < max(float(values[0]) * LEAST, TINY))


def spectrum_figure(test: RankTest, names: list[str]) -> Html:
    """The singular values of the views that show most classes, over what chance alone makes."""
    pair = test.strongest
    values, null, limit = test.spectra[pair][:SHOWN], test.nulls[pair], max(test.thresholds[pair], TINY)
    floor = max(min(float(values.min()), float(null.min())), float(values[0]) * LEAST, TINY)
    logs = np.log10(np.maximum(values, floor))
    top = max(float(logs[0]), np.log10(limit)) + 0.15
    x, y = Scale(0.5, len(values) + 0.5, 54, WIDTH - 6), Scale(np.log10(floor) - 0.15, top, 196, 10)
    places = np.arange(1, len(values) + 1)
    count = test.count(pair)
    low, high = (float(y(np.log10(max(q, floor)))) for q in np.quantile(null, [0.025, 0.975]))
    bound = float(y(np.log10(limit)))
    parts: list[Any] = [
        tag("rect", x=54, y=f"{high:.1f}", width=WIDTH - 60, height=f"{max(low - high, 1.5):.1f}", class_="band"),
        tag("path", d=f"M54 {bound:.1f}H{WIDTH - 6}", class_="limit"),
        label(58, bound - 5, "counts above this line", class_="tick"),
        line(x(places), y(logs), class_="thread"),
        dots(x(places[:count]), y(logs[:count]), class_="counted"),
        *(
            tag("circle", cx=f"{x(p):.1f}", cy=f"{y(v):.1f}", r=4, class_="uncounted")
            for p, v in zip(places[count:], logs[count:], strict=True)
        ),
    ]
    powers = [
        (float(p), "10" + str(p).translate(RAISED)) for p in range(int(np.ceil(y.low)), int(np.floor(y.high)) + 1)
    ]
    ticks = powers if len(powers) > 1 else [(v, number(10**v)) for v in y.ticks(3)]
    pair_name = compared_name(pair, names)
    title = (
        f"Singular values between views {pair_name}: {count} of {len(test.spectra[pair])} lie above {number(limit)}, "
        f"what chance alone exceeds once in twenty such tests. Values: {', '.join(number(v) for v in values)}."
    )
    axes = x_axis(x, 196, f"index, views {shortened(pair_name, 28)}", [(float(p), str(p)) for p in places])
    return picture(WIDTH, 234, title, *parts, axes, y_axis(y, 54, "singular value", ticks), class_="wide")
