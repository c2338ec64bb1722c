"""The little of SVG that the figures need: scales, axes, lines and contours."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from latentviews.report.markup import Html, join, tag


class Scale(NamedTuple):
    """A straight map from values to places in a picture."""

    low: float
    high: float
    start: float  # where low is drawn
    end: float  # and where high is

    def __call__(self, values: Any) -> Any:
        """Places of values."""
        width = (self.high - self.low) or 1.0
        return self.start + (np.asarray(values, dtype=float) - self.low) * ((self.end - self.start) / width)

    def ticks(self, count: int = 5) -> list[float]:
        """Some round numbers between the ends."""
        return round_numbers(self.low, self.high, count)


def round_numbers(low: float, high: float, count: int = 5) -> list[float]:
    """About ``count`` multiples of 1, 2 or 5 times a power of ten from ``low`` to ``high``."""
    if not high > low:
        return [low]
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]


def number(value: float) -> str:
    """A number for people: four digits at most, thousands as k."""
    if not math.isfinite(value):
        return "–"
    if 1e4 <= abs(value) < 1e7:
        return f"{value / 1e3:.4g}k" if abs(value) < 1e6 else f"{value / 1e6:.4g}M"
    return f"{0.0 if abs(value) < 1e-12 else value:.4g}".replace("-", "−")


def rounded(value: float, spread: float) -> str:
    """A number to a tenth of ``spread`` or finer, so that no digit is noise."""
    digits = 3 if not spread > 0 else max(1 - math.floor(math.log10(spread)), 0)
    if abs(value) >= 1e7 or digits > 6:
        return number(value)
    return f"{round(value, digits) + 0.0:,.{digits}f}".replace("-", "−")  # adding zero takes the sign off −0


def shortened(text: str, length: int = 26) -> str:
    """A name that fits an axis."""
    return text if len(text) <= length else text[: length - 1] + "…"


def coordinates(values: Iterable[float]) -> str:
    """Numbers with one digit after the point and no more characters than that needs."""
    return " ".join(f"{value:.1f}".removesuffix(".0") for value in values)


def line(x: np.ndarray, y: np.ndarray, close: bool = False, **attributes: Any) -> Html:
    """A path through points."""
    flat = np.stack([x, y], axis=1).ravel()
    return tag("path", d="M" + coordinates(flat) + ("Z" if close else ""), **attributes)


def dots(x: np.ndarray, y: np.ndarray, **attributes: Any) -> Html:
    """Many points as one path of lines without length, which round ends make visible."""
    places = (f"M{coordinates(place)}h0" for place in np.stack([x, y], axis=1))
    return tag("path", d="".join(places), **attributes)


def crosses(x: np.ndarray, y: np.ndarray, **attributes: Any) -> Html:
    """Many points as one path of crosses, which are told from dots in any colours."""
    places = (f"M{coordinates(place)}m-4,-4l8,8m0,-8l-8,8" for place in np.stack([x, y], axis=1))
    return tag("path", d="".join(places), **attributes)


def label(x: float, y: float, text: Any, **attributes: Any) -> Html:
    """Text at a place."""
    return tag("text", text, x=f"{x:.1f}", y=f"{y:.1f}", **attributes)


def x_axis(scale: Scale, y: float, name: str, places: Sequence[tuple[float, str]] | None = None) -> Html:
    """A line with ticks, their numbers and a name below."""
    places = [(value, number(value)) for value in scale.ticks()] if places is None else places
    parts = [tag("path", d=f"M{scale.start} {y}H{scale.end}", class_="axis")]
    for value, text in places:
        x = float(scale(value))
        parts.append(tag("path", d=f"M{x:.1f} {y}v4", class_="axis"))
        parts.append(label(x, y + 16, text, text_anchor="middle", class_="tick"))
    middle = (scale.start + scale.end) / 2
    parts.append(label(middle, y + 33, shortened(name, 40), text_anchor="middle", class_="name"))
    return join(parts)


def y_axis(scale: Scale, x: float, name: str, places: Sequence[tuple[float, str]] | None = None) -> Html:
    """A line with ticks on the left, and a name beside it that reads upwards."""
    places = [(value, number(value)) for value in scale.ticks(4)] if places is None else places
    parts = [tag("path", d=f"M{x} {scale.start}V{scale.end}", class_="axis")]
    for value, text in places:
        y = float(scale(value))
        parts.append(tag("path", d=f"M{x} {y:.1f}h-4", class_="axis"))
        parts.append(label(x - 7, y + 3.5, text, text_anchor="end", class_="tick"))
    middle = (scale.start + scale.end) / 2
    turn = f"rotate(-90 12 {middle:.1f})"
    parts.append(label(12, middle, shortened(name, 30), text_anchor="middle", class_="name", transform=turn))
    return join(parts)


def picture(width: float, height: float, title: str, *children: Any, class_: str = "") -> Html:
    """A picture with its text alternative."""
    return tag(
        "svg",
        tag("title", title),
        *children,
        viewBox=f"0 0 {width:g} {height:g}",
        role="img",
        aria_label=title,
        class_=class_ or None,
    )


def contours(z: np.ndarray, level: float) -> list[np.ndarray]:
    """Closed lines along which the table ``z`` crosses ``level``, each (n, 2) in units of its indices."""
    z = np.pad(z, 1, constant_values=min(float(z.min()), level) - abs(level) - 1e-300)  # so that every line closes
    above = z > level
    corners = above[:-1, :-1].astype(int) + above[1:, :-1] + above[1:, 1:] + above[:-1, 1:]
    links: dict[Any, list[Any]] = {}
    for i, j in np.argwhere((corners > 0) & (corners < 4)).tolist():
        for first, second in _cell_lines(z, above, level, i, j):
            links.setdefault(first, []).append(second)
            links.setdefault(second, []).append(first)
    return [np.array([_crossing(z, edge, level) for edge in loop]) - 1 for loop in _loops(links)]


def _cell_lines(z: np.ndarray, above: np.ndarray, level: float, i: int, j: int) -> list[tuple[Any, Any]]:
    """Which crossed edges of a cell a line joins; at a saddle, as the mean of the corners says."""
    ring = [(i, j), (i + 1, j), (i + 1, j + 1), (i, j + 1)]
    edges = [tuple(sorted((ring[m], ring[(m + 1) % 4]))) for m in range(4)]
    crossed = [edge for edge in edges if above[edge[0]] != above[edge[1]]]
    if len(crossed) == 2:
        return [(crossed[0], crossed[1])]
    joined = (sum(z[corner] for corner in ring) / 4 > level) == above[ring[0]]  # the first corner and the third
    return [(edges[0], edges[1]), (edges[2], edges[3])] if joined else [(edges[3], edges[0]), (edges[1], edges[2])]


def _crossing(z: np.ndarray, edge: Any, level: float) -> tuple[float, float]:
    """Where along an edge the level is reached; in the margin, at the table's own end."""
    (i, j), (a, b) = edge
    inside = [1 <= p < z.shape[0] - 1 and 1 <= q < z.shape[1] - 1 for p, q in edge]
    if not all(inside):
        return tuple(map(float, edge[inside.index(True)]))  # type: ignore[return-value]
    share = float((level - z[i, j]) / (z[a, b] - z[i, j]))
    return i + share * (a - i), j + share * (b - j)


def _loops(links: dict[Any, list[Any]]) -> list[list[Any]]:
    """Edges in the order in which a line runs through them; every edge has two neighbours."""
    loops, seen = [], set()
    for start in links:
        loop, here = [], start
        while here is not None and here not in seen:
            seen.add(here)
            loop.append(here)
            here = next((other for other in links[here] if other not in seen), None)
        if loop:
            loops.append(loop)
    return loops
