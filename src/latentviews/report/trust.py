"""The checks of a report, and the numbers behind those of dependence and starts."""

import numpy as np

from latentviews.diagnosis.dependence import LEVEL, WEAK
from latentviews.diagnosis.findings import NAMES
from latentviews.report import figures
from latentviews.report.contents import Contents
from latentviews.report.markup import Html, code_spans, join, name, table, tag
from latentviews.report.sections import section


def trust_section(contents: Contents) -> Html:
    """Every check, and the numbers behind those of dependence and starts."""
    findings = contents.findings
    items = [
        tag(
            "li",
            tag(
                "span",
                {True: "passed", False: "care", None: "not tested"}[finding.trusted],
                class_="badge " + ("care" if finding.trusted is False else "good"),
            ),
            tag("span", code_spans(finding.text)),
        )
        for finding in findings
    ]
    n_rows = contents.diagnosis.n_rows
    lead = tag("p", f"What the assumptions behind the fit are worth, from {n_rows:,} of these rows.", class_="lead")
    return section(
        "trust", "The checks", lead, tag("ul", *items, class_="checks"), _dependence(contents), _starts(contents)
    )


def _dependence(contents: Contents) -> Html:
    """How strongly every pair of views is tied inside every class, the strongest first."""
    found, names = contents.diagnosis.dependence, contents.view_names
    order = np.argsort(-np.nan_to_num(found.effect).max(axis=0), kind="stable")[:30]
    rows = []
    for p in order.tolist():
        s, t = found.pairs[p]
        cells = [_effect(found.effect[h, p], found.pvalue[h, p]) for h in range(len(found.effect))]
        rows.append((join([name(names[s]), " and ", name(names[t])]), *cells))
    caption = (
        "How strongly two views depend on each other inside a class, from 0 to 1. Bold with a star: not by chance "
        f"(corrected p-value at most {LEVEL:g}) and strong enough to matter (at least {WEAK:g})."
    )
    if len(order) < len(found.pairs):
        caption += f" The {len(order)} strongest of {len(found.pairs)} pairs."
    return table(["views", *(figures.class_title(h) for h in range(len(found.effect)))], rows, caption, "heat")


def _effect(effect: float, pvalue: float) -> Html:
    if np.isnan(effect):
        return tag("td", "not tested")
    text = f"{effect:.2f}"
    flagged = pvalue <= LEVEL and effect >= WEAK
    return tag(
        "td", tag("b", text + " *") if flagged else text, style=f"--shade:{round(100 * min(max(effect, 0), 1))}%"
    )


def _starts(contents: Contents) -> Html | None:
    reached = contents.diagnosis.start_objectives
    if not reached:
        return None
    best, alike = max(reached.values()), contents.diagnosis.start_agreements
    rows = [
        (NAMES.get(start, start), f"{value:.5f}", f"{best - value:.5f}", *([f"{alike[start]:.2f}"] if alike else []))
        for start, value in reached.items()
    ]
    what = "polish" if contents.diagnosis.agreement is None else "fit"
    caption = (
        f"What every start of the fit reached: the objective of the {what}, a log-likelihood of rows in bins, or of "
        "some of the rows. It compares starts, and is not what `score` gives."
    )
    shown = ["start", f"objective of the {what}, per row", "below the best"]
    agreement = ["classes as in the best (adjusted Rand index)"] if alike else []
    return table([*shown, *agreement], rows, code_spans(caption))
