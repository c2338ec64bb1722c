"""The page of a report: head, controls, parts, data and script."""

import base64
import hashlib
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from latentviews import __version__
from latentviews._sentences import counted
from latentviews.io.saving import written_aside
from latentviews.plot._axes import PALETTE
from latentviews.report import sections
from latentviews.report.contents import Contents
from latentviews.report.figures import class_title
from latentviews.report.markup import Html, name, script_json, tag
from latentviews.report.trust import trust_section

SECTIONS = {
    "answer": "The answer",
    "densities": "Each view",
    "rows": "The rows",
    "certainty": "Certainty",
    "number": "Number of classes",
    "trust": "Checks",
    "fit": "What was fitted",
    "python": "Use it",
}


def page(contents: Contents) -> str:
    """The whole file."""
    style, script = resource("report.css") + class_colours(len(contents.counts)), resource("report.js")
    # no address can be reached from the page, and no script but this one can run in it
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src '{_digest(script)}'"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="generator", content=f"latentviews {__version__}"),
        tag("title", contents.title),
        tag("style", Html(style)),
    )
    body = tag(
        "body",
        tag("a", "Skip to the answer", href="#answer", class_="skip"),
        _header(contents),
        _toggles(contents),
        tag(
            "main",
            sections.answer_section(contents),
            sections.densities_section(contents),
            sections.rows_section(contents),
            tag("div", sections.certainty_section(contents), sections.number_section(contents), class_="pair"),
            trust_section(contents),
            sections.fit_section(contents),
            sections.python_section(contents),
        ),
        tag(
            "footer",
            tag("p", f"Made by latentviews {__version__}. This file is whole: it asks nothing of any network."),
        ),
        tag("script", script_json(_data(contents)), type="application/json", id="data"),
        tag("script", Html(script)),
    )
    return "<!DOCTYPE html>\n" + tag("html", head, body, lang="en") + "\n"


def write_page(text: str, path: Path) -> None:
    """A page at ``path``, whole or not at all: written aside, then renamed."""
    with written_aside(path) as aside:
        aside.write_text(text, encoding="utf-8", errors="replace", newline="\n")


def resource(file: str) -> str:
    """A file of this room."""
    return resources.files("latentviews.report").joinpath(file).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def class_colours(k: int) -> str:
    """The style that gives every class its colour."""
    return "".join(f".h{h}{{--c:var(--p{h % len(PALETTE)})}}" for h in range(k))


def _data(contents: Contents) -> dict[str, Any]:
    """What the script draws the scatter plot from."""
    points = contents.points
    return {
        "classes": len(contents.counts),
        "colours": len(PALETTE),
        "columns": [
            {"name": contents.columns[c].name, "kind": contents.columns[c].kind, "scale": scale, "limits": limits}
            for c, scale, limits in zip(points.columns, points.scales, points.limits, strict=True)
        ],
        "rows": len(points.labels),
        "values": _base64(points.values.T.astype("<u2")),
        "labels": _base64(points.labels),
        "certainty": _base64(points.certainty),
    }


def _base64(values: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode()


def _header(contents: Contents) -> Html:
    k, n_views = len(contents.counts), len(contents.view_names)
    facts = [
        f"{k} {'class' if k == 1 else 'classes'}{' and noise' if contents.n_noise else ''} in "
        + counted(contents.n_rows, "row"),
        f"{counted(n_views, 'view')} of {counted(len(contents.columns), 'column')}",
        f"{contents.made.day} {contents.made:%B %Y, %H:%M}",
    ]
    links = [tag("a", text, href=f"#{key}") for key, text in SECTIONS.items()]
    return tag(
        "header",
        tag("h1", name(contents.title)),
        tag("p", " · ".join(facts), class_="facts"),
        tag("nav", *links, aria_label="Sections"),
    )


def _only(h: int, contents: Contents) -> Html | None:
    """A button that leaves one class alone, and at a second click brings all back."""
    what = f"class {h}" if h < len(contents.counts) else "noise"
    return tag("button", "only", type="button", class_="only", data_only=h, aria_label=f"Show only {what}")


def _toggles(contents: Contents) -> Html:
    chips = [
        tag(
            "label",
            tag("input", type="checkbox", checked="", data_class=h),
            class_title(h),
        )
        for h in range(len(contents.counts))
    ]
    if contents.n_noise:
        box = tag("input", type="checkbox", checked="", data_class=len(chips))
        chips.append(tag("label", box, tag("i", class_="swatch shape2 noise"), "noise"))
    chips = [tag("span", chip, _only(h, contents), class_="chip") for h, chip in enumerate(chips)]
    legend = tag("legend", "Classes shown")
    return tag("fieldset", legend, *chips, tag("button", "Show all", type="button", id="all"), class_="toggles")
