"""A report on communities: how large they are, who links to whom, and which nodes are of several."""

import numpy as np

from latentviews._sentences import counted
from latentviews.discrete.communities import CommunityModel
from latentviews.report.markup import Html, name, tag
from latentviews.report.plain import certainty_table, heat_table, loading, plain_page, share_bars, use_part, verdict
from latentviews.report.sections import figure, section
from latentviews.report.svg import number

TYPICAL, MIXED = 10, 25  # nodes of every community, and of several, in tables


def communities_page(model: CommunityModel, source: str | None, title: str | None, saved: str | None) -> str:
    """The whole file."""
    k = len(model.weights_)
    use = loading(saved) + "model.nodes_, model.memberships_, model.labels_\nmodel.transform(links)  # of new nodes"
    cite = "Anandkumar, Ge, Hsu and Kakade (2013), A tensor approach to learning mixed membership community models."
    parts = {
        "answer": ("The answer", answer_part(model)),
        "links": ("Links", links_part(model)),
        "nodes": ("The nodes", nodes_part(model)),
        "python": ("Use it", use_part(use, cite)),
    }
    title = title or f"Communities{f': {source}' if source else ''}"
    found = counted(k, "community", "communities")
    return plain_page(title, [f"{found} of {counted(len(model.nodes_), 'node')}"], parts, k)


def _names(model: CommunityModel) -> list[str]:
    return [f"community {h}" for h in range(len(model.weights_))]


def answer_part(model: CommunityModel) -> Html:
    """How large the communities are, how mixed nodes are, and what to be careful with."""
    bars = share_bars(_names(model), model.weights_, "Shares of the communities")
    alike = f"The concentration α₀ is {number(model.concentration_)}: at 0 every node is of one community."
    about = "How large the largest share of a node is."
    mixed = certainty_table(model.memberships_.max(axis=1), ["largest share", "nodes", "of all"], about)
    lines = [] if model.converged_ else ["The steps stopped before they had converged: raise `max_iter`."]
    if model.start_ == "clusters":
        lines.append("Stars show fewer communities, so that these may be one of many local optima: ask for fewer.")
    left = tag("div", figure(bars, "The mean share of every community."), tag("p", alike), mixed, class_="panel")
    said = verdict(lines, "The steps have converged from communities that counts of stars gave.")
    return section("answer", "The answer", tag("div", left, said, class_="two"))


def links_part(model: CommunityModel) -> Html:
    """How probable links are within communities and between them."""
    heads = ["", *_names(model)]
    about = "How probable a link is between two nodes, each of one community alone."
    return section(
        "links", "Who links to whom", heat_table(heads, _names(model), model.connectivity_, about, tops=True)
    )


def nodes_part(model: CommunityModel) -> Html:
    """The nodes most of one community, and those of several."""
    heads, tables = ["node", *_names(model)], []
    for h, community in enumerate(_names(model)):
        order = np.argsort(-model.memberships_[:, h], kind="stable")[:TYPICAL]
        tables.append(_table(model, order[model.labels_[order] == h], heads, f"Nodes that are most of {community}"))
    order = np.argsort(model.memberships_.max(axis=1), kind="stable")[:MIXED]
    tables.append(_table(model, order, heads, "Nodes whose largest share is least: they are of several"))
    return section("nodes", "The nodes", *tables)


def _table(model: CommunityModel, order: np.ndarray, heads: list[str], caption: str) -> Html:
    return heat_table(heads, [name(one) for one in model.nodes_[order]], model.memberships_[order], caption)
