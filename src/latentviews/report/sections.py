"""The parts of a report: first the answer, then what it rests on."""

import platform
from typing import Any

import numpy as np
import scipy
import sklearn

from latentviews import __version__
from latentviews._sentences import counted
from latentviews.core.selection import compared_name
from latentviews.report import figures
from latentviews.report.contents import AXES, PANELS, Column, Contents
from latentviews.report.figures import percent
from latentviews.report.markup import Html, code_spans, join, name, table, tag
from latentviews.report.svg import number, rounded


def section(key: str, title: str, *children: Any) -> Html:
    """A part of the page, with its heading."""
    return tag("section", tag("h2", title, id=f"{key}-title"), *children, id=key, aria_labelledby=f"{key}-title")


def figure(content: Html, caption: Any, behind: Html | None = None, class_: str | None = None) -> Html:
    """A picture, what it shows, and the numbers behind it."""
    details = None if behind is None else tag("details", tag("summary", "The numbers as a table"), behind)
    return tag("figure", content, tag("figcaption", caption), details, class_=class_)


def answer_section(contents: Contents) -> Html:
    """The sizes of the classes, whether to trust them, and what is typical of each."""
    sizes, counts = contents.sizes, contents.counts
    whole, alone = contents.n_classified == contents.n_rows, len(counts) == 1
    rows = [
        (
            figures.class_title(h),
            percent(sizes.weights[h]),
            "–" if alone else f"{percent(sizes.lower[h])} to {percent(sizes.upper[h])}",
            f"{counts[h]:,}",
            percent(counts[h] / contents.n_classified),
            f"{contents.diagnosis.effective_rows[h]:,.0f}",
        )
        for h in range(len(counts))
    ]
    if contents.n_noise:
        noise = contents.n_noise
        rows.append((Html("noise"), "–", "–", f"{noise:,}", percent(noise / contents.n_classified), "–"))
    head = ["class", "size", "95 % interval", "rows most probably in it", "share of rows", "rows it rests on"]
    behind = table(head, rows, "Sizes of the classes")
    caption = ("" if alone else "The size of every class with its 95 % interval. ") + sizes.method
    if contents.n_noise:
        caption += " Sizes are shares of what is not noise."
    if not whole:
        caption += f" Rows were counted in a sample of {contents.n_classified:,}."
    sizes_shown = figure(figures.sizes_figure(contents), caption, behind)
    beside = len(counts) <= 4  # a wider table takes the whole width
    left = tag("div", sizes_shown, _profile(contents) if beside else None, class_="panel")
    answer = tag("div", left, _verdict(contents), class_="two")
    return section("answer", "The answer", answer, None if beside else _profile(contents))


def _verdict(contents: Contents) -> Html:
    """Whether to trust the answer, and every reason not to."""
    findings = [finding for finding in contents.findings if finding.trusted is not None]
    against = [finding.text for finding in findings if not finding.trusted]
    if not against:
        title, class_ = "Nothing speaks against it", "good"
        said = [tag("p", f"All {len(findings)} checks of the model's assumptions on these rows passed.")]
    else:
        title, class_ = "Read it with care", "care"
        passed = len(findings) - len(against)
        said = [
            tag(
                "p",
                f"{passed} of {len(findings)} checks of the model's assumptions on these rows passed; these did not:",
            ),
            tag("ul", *(tag("li", code_spans(text)) for text in against)),
        ]
    said.append(tag("p", tag("a", "All checks, and the numbers behind them", href="#trust")))
    mark = tag("span", "✓" if not against else "!", class_="mark", aria_hidden="true")
    return tag("div", tag("h3", mark, title), *said, class_=f"panel verdict {class_}")


def _profile(contents: Contents) -> Html:
    """What is typical of every class, one row per column."""
    k = len(contents.counts)
    told = [column for column in contents.columns if not column.objects]
    shown = told[:AXES]
    if not shown:
        return join([])
    rows = [(name(column.name), *(_typical(column, h) for h in range(k))) for column in shown]
    heads = [figures.class_title(h) for h in range(k)]
    said = {
        "number": "the median and the middle half of a number (the stronger the colour, the higher)",
        "angle": "the mean direction of an angle",
        "code": "the commonest code",
    }
    kinds = [text for kind, text in said.items() if any(column.kind == kind for column in shown)]
    caption = f"What is typical of each class: {', '.join(kinds)}."
    if len(shown) < len(told):
        caption += f" The first {len(shown)} of {len(told)} columns."
    return table(["column", *heads], rows, caption, "profile")


def _typical(column: Column, h: int) -> Html:
    first, second, third = column.typical[h]
    if np.isnan(first):
        return tag("td", "–")
    if column.kind == "angle":
        return tag("td", rounded(first, 0.5), tag("small", f" of length {second:.2f}"))
    if column.kind == "number":
        low, high = np.nanmin(column.typical[:, 1]), np.nanmax(column.typical[:, 1])
        shade = round(100 * float((second - low) / (high - low))) if high > low else 0
        spread = float(np.nanmedian(column.typical[:, 2] - column.typical[:, 0]))
        low, middle, high = (rounded(value, spread) for value in (first, second, third))
        return tag("td", middle, tag("small", f" {low} to {high}"), style=f"--shade:{shade}%")
    return tag("td", number(first), tag("small", f" in {percent(second)}"))


# ---------------------------------------------------------------------------------------------------------- figures


def densities_section(contents: Contents) -> Html:
    """One picture per view."""
    parts = []
    for t, view in zip(contents.panel_views, contents.panels, strict=True):
        title = join([_view_title(contents, t), ": ", name(" + ".join(view.names))])
        parts.append(tag("figure", tag("h3", title), figures.view_figure(view, contents.sizes.weights)))
    said = (
        "The distribution of every view inside each class, times the size of the class, over all rows in grey. "
        "Numbers mark where a class is highest within the range of the rows."
    )
    if any(len(view.values) for view in contents.panels):
        said += " Stems stand at values that many rows have exactly: as high as the share of the class that has them, "
        said += "times the size of the class, on a scale of their own."
    if any(len(view.ticks) == 2 for view in contents.panels):
        said += " Contours enclose 90, 50 and 10 % of each class."
    if len(set(contents.panel_views)) < len(contents.panels):
        said += " A wider view is drawn column by column, every row counted for a class by its posterior."
    if any(column.objects for column in contents.columns):
        said += " Views of objects that are known by a kernel have no densities."
    if len(contents.view_names) > PANELS:
        said += f" These are the first {PANELS} of {len(contents.view_names)} views."
    return section(
        "densities", "Each view, class by class", tag("p", said, class_="lead"), tag("div", *parts, class_="grid")
    )


def _view_title(contents: Contents, t: int) -> Html:
    """The number of a view, and its name where it is not that of its columns."""
    named = contents.named_views
    return join([f"View {t}", *([", ", name(contents.view_names[t])] if named else [])])


def rows_section(contents: Contents) -> Html:
    """The scatter plot and its controls."""
    names = [contents.columns[c].name for c in contents.points.columns]
    across, up = _telling_axes(contents)
    controls = tag(
        "div",
        _select("x", "Across", names, across),
        _select("y", "Up", names, up),
        _select("how", "Draw", ["rows, coloured by class", "density, coloured by class", "rows, by certainty"], 0),
        class_="controls",
    )
    canvas = tag(
        "canvas", "A scatter plot of the rows.", id="scatter", role="img", aria_label="Scatter plot", tabindex="0"
    )
    n_points = len(contents.points.labels)
    note = "All rows." if n_points == contents.n_rows else f"A sample of {n_points:,} of {contents.n_rows:,} rows."
    if any(column.kind == "code" for column in contents.columns):
        note += " Codes are drawn a little apart, so that rows do not hide each other."
    missing = tag("noscript", tag("p", "This plot needs JavaScript; everything else is readable without."))
    caption = tag("figcaption", tag("span", id="scatter-text", aria_live="polite"), " ", note)
    keys = [
        tag("span", tag("i", class_="key", style=f"background:var(--{key})"), text)
        for key, text in figures.ROW_CERTAINTIES.items()
    ]
    legend = tag("p", "The class of a row is certain to", *keys, class_="keys", id="certainties", hidden="")
    plot = tag("figure", legend, canvas, missing, caption)
    return section("rows", "The rows, two columns at a time", controls, plot)


def _telling_axes(contents: Contents) -> tuple[int, int]:
    """The two columns, of different views, whose class medians lie furthest apart in quartile ranges."""
    scores = []
    for c in contents.points.columns:
        column = contents.columns[c]
        widths = (column.typical[:, 2] - column.typical[:, 0]) if column.kind == "number" else np.empty(0)
        spread = np.nanmean(widths) if np.isfinite(widths).any() else np.nan
        apart = np.nanstd(column.typical[:, 1]) if spread > 0 else 0.0
        scores.append(np.log(apart) - np.log(spread) if apart > 0 else -np.inf)
    order = np.argsort(-np.array(scores), kind="stable").tolist()
    views = [contents.columns[c].view for c in contents.points.columns]
    return order[0], next((c for c in order if views[c] != views[order[0]]), order[-1])


def _select(key: str, text: str, options: list[str], chosen: int) -> Html:
    values = [tag("option", option, value=i, selected="" if i == chosen else None) for i, option in enumerate(options)]
    return tag("label", text, tag("select", *values, id=key, autocomplete="off"), class_="field")


def certainty_section(contents: Contents) -> Html:
    """How certain the rows' classes are."""
    rows = [(figures.class_title(h), *(percent(float(v)) for v in row)) for h, row in enumerate(contents.certainty)]
    behind = table(["class", *figures.CERTAINTIES], rows, "Rows of each class by their largest posterior")
    caption = "Rows of each class, parted by the posterior probability of the class they were given."
    if contents.confused is not None:
        g, h, share = contents.confused
        caption += f" Of all doubt between two classes, {percent(share)} is between {g} and {h}."
    return section(
        "certainty",
        "How certain are the classes of rows?",
        figure(figures.certainty_figure(contents), caption, behind),
    )


def number_section(contents: Contents) -> Html:
    """The count of classes, and what it rests on."""
    test, k = contents.rank, len(contents.counts)
    title = "How many classes do the views show?"
    if test is None:
        return section(
            "number",
            title,
            tag("p", "Rows are too few, or no two views occur in the same ones, so this could not be tested."),
        )
    names = contents.view_names
    agrees = "as many as were fitted" if test.n_components == k else f"while {k} {'was' if k == 1 else 'were'} fitted"
    found = counted(test.n_components, "class", "classes")
    rows_of = "in the rows of the fit " if contents.counted else ""
    said = (
        "Classes make views depend on each other, in at most one direction fewer than there are classes. Singular "
        f"values {rows_of}above what chance alone makes (the band, 95 % of permutations of the rows) speak for "
        f"{found}, {agrees}. Views that depend on each other inside classes add to the count, and small classes may "
        "not show."
    )
    rows = [
        (
            Html(compared_name(pair, [name(one) for one in names])),
            test.count(pair),
            *(number(v) for v in values[:4]),
            number(test.thresholds[pair]),
        )
        for pair, values in test.spectra.items()
    ]
    head = ["views", "above chance", "first", "second", "third", "fourth", "chance"]
    rows = [row[:2] + row[2:-1] + ("–",) * (4 - len(row[2:-1])) + row[-1:] for row in rows]
    behind = table(head, rows, f"Leading singular values {rows_of}of every pair of views, and of groups of views")
    caption = (
        f"Singular values {rows_of}of the views that show most classes; filled ones count. The axis is logarithmic"
    )
    caption += ", and what is too small for it is drawn at its foot." if figures.is_below(test) else "."
    return section(
        "number", title, tag("p", said, class_="lead"), figure(figures.spectrum_figure(test, names), caption, behind)
    )


# ----------------------------------------------------------------------------------------------- what it rests on


def fit_section(contents: Contents) -> Html:
    """The data, the views and the settings."""
    missing = [(name(column.name), f"{column.missing:,}") for column in contents.columns if column.missing]
    facts = [
        ("Source", name(contents.source) if contents.source else "not named"),
        ("Rows", f"{contents.n_rows:,}"),
        (
            "Rows with a missing value",
            f"{contents.n_incomplete:,} ({percent(contents.n_incomplete / contents.n_rows)})",
        ),
        ("Columns in views", f"{len(contents.columns):,}"),
        ("Classes", f"{len(contents.counts)}"),
        ("Made", contents.made.strftime("%Y-%m-%d %H:%M:%S %z")),
        (
            "Versions",
            f"latentviews {__version__}, Python {platform.python_version()}, NumPy {np.__version__}, "
            f"SciPy {scipy.__version__}, scikit-learn {sklearn.__version__}",
        ),
    ]
    views = [
        (
            _view_title(contents, t),
            join(_spaced([name(c.name) for c in contents.columns if c.view == t])),
            _kind(contents, t),
        )
        for t in range(len(contents.view_names))
    ]
    settings = [
        (contents.wording.options.get(key, key), tag("td", tag("code", value)), "" if changed else "default")
        for key, (value, changed) in contents.settings.items()
    ]
    return section(
        "fit",
        "What was fitted, and on what",
        tag("dl", *(join([tag("dt", key), tag("dd", value)]) for key, value in facts)),
        table(["view", "columns", "kind"], views, "The views"),
        table(["column", "missing cells"], missing, "Missing values") if missing else None,
        tag(
            "details",
            tag("summary", f"Settings of {contents.model_name}"),
            table(["setting", "value", ""], settings, "Settings"),
            class_="print",
        ),
    )


def _spaced(names: list[Html]) -> list[Any]:
    return [part for one in names for part in (", ", one)][1:]


def _kind(contents: Contents, t: int) -> str:
    return " and ".join(dict.fromkeys(f"{column.kind}s" for column in contents.columns if column.view == t))


def python_section(contents: Contents) -> Html:
    """How to load the model, fit it again and cite it."""
    file = contents.saved or "model.latentviews"
    read = ""
    if contents.reading:
        read = 'X = latentviews.io.read_table("other file", reading=model.reading_).frame()\n'
    use = (
        f"import latentviews{'.io' if read else ''}\n\n"
        f"model = latentviews.load({file!r})\n{read}"
        "model.predict(X)        # the most probable class of every row\n"
        "model.predict_proba(X)  # the posterior probability of every class\n"
        "model.weights_          # the sizes of the classes in the fit\n"
        "model.components_[0].density(x)  # the densities of view 0 in every class, one column per class"
    )
    changed = ", ".join(f"{key}={value}" for key, (value, other) in contents.settings.items() if other)
    again = (
        f"from latentviews import {contents.model_name}\n"
        "from latentviews.report import write_report\n\n"
        f"model = {contents.model_name}({changed}).fit(X)\n"
        'write_report(model, X, "report.html")'
    )
    cite = (
        "Song, Anandkumar, Dai and Xie (2014). Nonparametric Estimation of Multi-View Latent Variable Models. "
        "Proceedings of the 31st International Conference on Machine Learning, PMLR 32."
    )
    return section(
        "python",
        "Use it, make it again, cite it",
        tag("h3", "Load the model in Python"),
        tag("pre", tag("code", use), tabindex="0"),
        tag("h3", "Fit it again"),
        tag("pre", tag("code", contents.wording.command or again), tabindex="0"),
        tag("h3", "Cite"),
        tag("p", f"latentviews {__version__}, and the paper whose method it implements: {cite}"),
    )
