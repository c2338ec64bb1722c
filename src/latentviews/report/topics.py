"""A report on topics: what every one says, how common it is, and how documents mix them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from latentviews._sentences import counted
from latentviews.core.kernels.spaces import is_discrete
from latentviews.discrete.topics import TopicModel
from latentviews.report.figures import class_names, percent
from latentviews.report.markup import Html, code_spans, join, name, table, tag
from latentviews.report.plain import (
    certainty_table,
    column_names,
    heat_table,
    loading,
    plain_page,
    share_bars,
    use_part,
    verdict,
)
from latentviews.report.sections import figure, section
from latentviews.report.svg import Scale, line, number, picture, x_axis, y_axis

WORDS = 15  # of every topic
DRAWS, LEAST = 2000, 1e-3  # of shares by a concentration, and the least parameter of their law
APART = 0.15  # of the largest share of a document, on average, between what the concentration and documents say
POINTS = 200  # at which a density is drawn
WIDE = "grid-template-columns:repeat(auto-fill,minmax(min(100%,26rem),1fr))"


def topics_page(
    model: TopicModel, X: Any, columns: Sequence[str] | None, source: str | None, title: str | None, saved: str | None
) -> str:
    """The whole file; documents of words are looked at, draws and rows of views are not."""
    names = column_names(model, columns)
    is_words, k = not isinstance(model.components_, tuple), len(model.weights_)
    shares = model.transform(X) if is_words else None
    what = "document" if is_words else "row"
    parts = {
        "answer": ("The answer", answer_part(model, shares)),
        "topics": ("Each part", words_part(model, names) if is_words else densities_part(model, names)),
        "python": ("Use it", _use(saved, is_words)),
    }
    title = title or f"Topics{f': {source}' if source else ''}"
    return plain_page(title, [f"{counted(k, 'part')} in {counted(np.shape(X)[0], what)}"], parts, k)


def answer_part(model: TopicModel, shares: np.ndarray | None) -> Html:
    """How common the parts are, how documents mix them, and what to be careful with."""
    names = [f"part {h}" for h in range(len(model.weights_))]
    bars = figure(share_bars(names, model.weights_, "Shares of the parts"), "The mean share of every part.")
    alike = (
        f"The concentration α₀ is {number(model.concentration_)}: towards 0 each is of one part, when large all mix."
    )
    mixed = None
    if shares is not None:
        about = "How large the largest share of a document is."
        mixed = certainty_table(shares.max(axis=1), ["largest share", "documents", "of all"], about)
    good = "The moments have as many parts" + (", and EM from them has converged." if shares is not None else ".")
    said = verdict([*_cautions(model), *_disagreement(model, shares)], good)
    left = tag("div", bars, tag("p", alike), mixed, class_="panel")
    return section("answer", "The answer", tag("div", left, said, class_="two"))


def _cautions(model: TopicModel) -> list[str]:
    """What to be careful with."""
    lines = [] if model.converged_ else ["EM stopped before it had converged: raise `max_iter`."]
    if model.raw_weights_ is None:
        lines.append("Moments gave no start, so that topics may be one of many local optima: ask for fewer.")
    if len(model.weights_) == 2 and model.concentration == "auto":
        lines.append("Two parts hardly tell their concentration: pass one if you know it.")
    return lines


def _disagreement(model: TopicModel, shares: np.ndarray | None) -> list[str]:
    """A sentence where documents mix more, or less, than the concentration says."""
    if shares is None:
        return []
    law = np.maximum(model.concentration_ * model.weights_, LEAST)
    expected = float(np.random.default_rng(0).dirichlet(law, DRAWS).max(axis=1).mean())
    found = float(shares.max(axis=1).mean())
    if abs(expected - found) < APART:
        return []
    return [
        f"The concentration α₀ and the documents disagree: by {number(model.concentration_)} the largest share of a "
        f"document would be {percent(expected)} on average, and it is {percent(found)}. On recorded text, where the "
        "model holds only roughly, α₀ may be far off; shares rest on `prior_`, which EM learns, and not on it."
    ]


def words_part(model: TopicModel, names: list[str]) -> Html:
    """The likeliest words of every topic."""
    order = np.argsort(-model.components_, axis=1, kind="stable")[:, :WORDS]
    rows = [
        (f"part {h}", percent(model.weights_[h]), tag("td", join(_listed(names, model.components_[h], order[h]))))
        for h in range(len(order))
    ]
    about = "The likeliest words of every topic, and how likely each is there."
    return section("topics", "What the topics say", table(["topic", "share", "words"], rows, about))


def _listed(names: list[str], chances: np.ndarray, order: np.ndarray) -> list[Any]:
    return [
        part for i, w in enumerate(order) for part in (", " if i else "", name(names[w]), f" {percent(chances[w])}")
    ]


def densities_part(model: TopicModel, names: list[str]) -> Html:
    """The distribution of every view in every part: a line of a number, a table of categories or codes."""
    views = getattr(model, "views_", [list(range(model.n_features_in_))])
    categories, shown = getattr(model, "categories_", {}), []
    for view, part in zip(views, model.components_, strict=True):
        title = ", ".join(names[j] for j in view)
        if len(view) == 1 and is_discrete(part.domain):
            codes, values = part.domain.nodes, categories.get(view[0])
            rows = [name(number(code) if values is None else values[int(code)]) for code in codes[:, 0]]
            chances = part.density(codes)
            heads = [title, *(f"part {h}" for h in range(chances.shape[1]))]
            shown.append(heat_table(heads, rows, chances, f"How probable each {title} is"))
        elif len(view) == 1 and part.domain is not None:
            shown.append(figure(_curves(part, title), f"The density of {title} in every part."))
        else:
            has = (
                "has no densities: its kernel does not smooth" if part.domain is None else "has densities in the model"
            )
            shown.append(tag("p", code_spans(f"The view of {title} {has}, `components_`.")))
    return section("topics", "What the parts look like", tag("div", *shown, class_="grid", style=WIDE))


def _curves(part: Any, title: str) -> Html:
    """One line per part, over the middle of all of them."""
    low, high = float(part.domain.nodes.min()), float(part.domain.nodes.max())
    grid = np.linspace(low, high, POINTS)
    heights = part.density(grid)
    x, y = Scale(low, high, 60, 420), Scale(0, float(heights.max()) * 1.05, 206, 8)
    lines = [line(x(grid), y(one), class_=class_names(h, "curve")) for h, one in enumerate(heights.T)]
    return picture(
        440, 244, f"Densities of {title}", *lines, x_axis(x, 206, title), y_axis(y, 60, "density"), class_="wide"
    )


def _use(saved: str | None, is_words: bool) -> Html:
    of = "model.transform(X)  # the shares of other documents\nmodel.top_words(10, words)"
    use = loading(saved) + (of if is_words else "model.components_[0].density(x)  # one column per part")
    return use_part(
        use,
        "Anandkumar, Foster, Hsu, Kakade and Liu (2012), A spectral algorithm for latent Dirichlet allocation; Song, "
        "Anandkumar, Dai and Xie (2014), ICML, section 7.",
    )
