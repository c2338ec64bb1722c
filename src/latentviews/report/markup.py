"""HTML that is safe by construction: what is not `Html` is escaped."""

import html
import json
from collections.abc import Iterable
from typing import Any


class Html(str):
    """Text that is HTML already, and goes into a page as it is."""


VOID = {"br", "col", "input", "meta"}  # elements without an end


def tag(element: str, /, *children: Any, **attributes: Any) -> Html:
    """An element; ``class_`` is the attribute class, ``aria_label`` is aria-label, None leaves an attribute out."""
    pairs = ((key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items() if value is not None)
    opened = "".join(f' {key}="{html.escape(str(value))}"' for key, value in pairs)
    if element in VOID:
        return Html(f"<{element}{opened}>")
    return Html(f"<{element}{opened}>{join(children)}</{element}>")


def join(children: Iterable[Any]) -> Html:
    """Children one after the other; what is not `Html` is escaped, None is left out."""
    return Html("".join(escape(child) for child in children if child is not None))


def escape(value: Any) -> Html:
    """``value`` as text of a page."""
    return value if isinstance(value, Html) else Html(html.escape(str(value)))


def name(value: Any) -> Html:
    """A name from the data, kept from turning the text around it right to left."""
    return tag("bdi", value)


def code_spans(text: str) -> Html:
    """Plain sentences in which `backticks` enclose code."""
    parts = str(text).split("`")
    if len(parts) % 2 == 0:  # one has no partner
        return escape(text)
    return join(tag("code", part) if i % 2 else part for i, part in enumerate(parts))


def script_json(value: Any) -> Html:
    """``value`` as JSON that may stand inside a script element: no tag, comment or line separator can be read in it."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Html(text)


def table(head: Iterable[Any], rows: Iterable[Iterable[Any]], caption: str, class_: str | None = None) -> Html:
    """A table whose first column names its rows; a cell may be a td with attributes of its own."""
    top = tag("tr", *(tag("th", cell, scope="col") for cell in head))
    body = [
        tag("tr", *(tag("th", cell, scope="row") if j == 0 else _cell(cell) for j, cell in enumerate(row)))
        for row in rows
    ]
    whole = tag("table", tag("thead", top), tag("tbody", *body), class_=class_, aria_label=caption)
    scrolled = tag("div", whole, class_="scroll", tabindex="0", role="region", aria_label=caption)
    return tag("div", tag("p", caption, class_="caption"), scrolled, class_="table")


def _cell(cell: Any) -> Html:
    return cell if isinstance(cell, Html) and cell.startswith("<td") else tag("td", cell)
