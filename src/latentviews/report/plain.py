"""A page without a script, and pieces that reports on categories, topics and communities share."""

import platform
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np

from latentviews import __version__
from latentviews._no_tables import as_list_of_names
from latentviews.report.figures import CERTAINTIES, percent
from latentviews.report.markup import Html, code_spans, name, table, tag
from latentviews.report.page import class_colours, resource
from latentviews.report.sections import section
from latentviews.report.svg import Scale, label, picture

CUTS = (0.99, 0.95, 0.8)  # of certainty, as in reports on mixtures
LONGEST = 20  # characters of a name beside a bar


def plain_page(title: str, facts: Sequence[str], parts: Mapping[str, tuple[str, Html]], n_colours: int) -> str:
    """The whole file; parts have a name in the list of them, and their text."""
    made = datetime.now().astimezone()
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content="default-src 'none'; style-src 'unsafe-inline'"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="generator", content=f"latentviews {__version__}"),
        tag("title", title),
        tag("style", Html(resource("report.css") + class_colours(n_colours))),
    )
    links = [tag("a", text, href=f"#{key}") for key, (text, _) in parts.items()]
    body = tag(
        "body",
        tag("a", "Skip to the answer", href="#answer", class_="skip"),
        tag(
            "header",
            tag("h1", name(title)),
            tag("p", " · ".join([*facts, f"{made.day} {made:%B %Y, %H:%M}"]), class_="facts"),
            tag("nav", *links, aria_label="Sections"),
        ),
        tag("main", *(part for _, part in parts.values())),
        tag(
            "footer",
            tag("p", f"Made by latentviews {__version__}. This file is whole: it asks nothing of any network."),
        ),
    )
    return "<!DOCTYPE html>\n" + tag("html", head, body, lang="en") + "\n"


def column_names(model: Any, columns: Sequence[Any] | None) -> list[str]:
    """The names given, or else those of the fit, or places; a sentence where there are too many or too few."""
    n_columns = model.n_features_in_
    found = getattr(model, "feature_names_in_", range(n_columns)) if columns is None else as_list_of_names(columns)
    if len(found) != n_columns:
        raise ValueError(f"columns needs one name per column of X, {n_columns}; got {len(found)}.")
    return [str(one) for one in found]


def share_bars(names: Sequence[str], shares: np.ndarray, what: str) -> Html:
    """One bar per share."""
    begin = min(24 + 7 * max(map(len, names)), 160)
    scale, parts = Scale(0, float(shares.max()) * 1.02, begin, 380), []  # type: tuple[Scale, list[Any]]
    for h, (one, share) in enumerate(zip(names, shares, strict=True)):
        y, end = 8 + 30 * h, float(scale(share))
        width = f"{max(end - begin, 0.5):.1f}"
        parts += [
            label(0, y + 15, one if len(one) <= LONGEST else one[: LONGEST - 1] + "…", class_="name"),
            tag("rect", x=begin, y=y, width=width, height=20, rx=3, class_=f"h{h} bar"),
            label(end + 8, y + 15, percent(share), class_="value"),
        ]
    said = "; ".join(f"{one} {percent(share)}" for one, share in zip(names, shares, strict=True))
    return picture(440, 8 + 30 * len(names), f"{what}: {said}.", *parts, class_="wide")


def certainty_table(largest: np.ndarray, head: Sequence[str], caption: str) -> Html:
    """How many of the largest shares or probabilities are how near to one."""
    level = np.digitize(-largest, [-cut for cut in CUTS])
    rows = [
        (text, f"{int(np.sum(level == i)):,}", percent(float(np.mean(level == i))))
        for i, text in enumerate(CERTAINTIES)
    ]
    return table(head, rows, caption)


def heat_table(
    heads: Sequence[Any], names: Sequence[Any], shares: np.ndarray, caption: str, tops: bool = False
) -> Html:
    """Shares as a shaded table, one named row each; of ``tops`` the largest is the darkest."""
    most = max(float(shares.max(initial=0.0)), 1e-12) if tops else 1.0
    rows = [
        (one, *(tag("td", percent(p), style=f"--shade:{round(100 * p / most)}%") for p in row))
        for one, row in zip(names, shares, strict=True)
    ]
    return table(heads, rows, caption, "heat")


def verdict(lines: Sequence[str], otherwise: str) -> Html:
    """What to be careful with; ``otherwise`` where that is nothing."""
    kind, heading = ("care", "Read it with care") if lines else ("good", "Nothing speaks against it")
    mark = tag("span", "!" if lines else "✓", class_="mark", aria_hidden="true")
    said = tag("ul", *(tag("li", code_spans(line)) for line in lines)) if lines else tag("p", otherwise)
    return tag("div", tag("h3", mark, heading), said, class_=f"panel verdict {kind}")


def use_part(code: str, cite: str) -> Html:
    """How to use the model, and what to cite."""
    versions = f"latentviews {__version__} on Python {platform.python_version()}"
    return section(
        "python",
        "Use it, cite it",
        tag("pre", tag("code", code), tabindex="0"),
        tag("p", f"{versions}, and the methods it rests on: {cite}"),
    )


def loading(saved: str | None) -> str:
    """The first lines of how to use a saved model."""
    return f"import latentviews\n\nmodel = latentviews.load({saved or 'model.latentviews'!r})\n"
