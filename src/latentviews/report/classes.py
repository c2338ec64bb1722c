"""A report on latent classes: how common they are, what each answers, and whether they fit."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from latentviews._sentences import counted
from latentviews.discrete.fit_quality import GoodnessOfFit
from latentviews.discrete.latent_class import LatentClass
from latentviews.discrete.logits import ClassRegression
from latentviews.report.figures import percent
from latentviews.report.markup import Html, name, table, tag
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
from latentviews.report.svg import number

ITEMS, ANSWERS = 40, 12  # items in the report, and the commonest answers of each
PAIRS, HIGH = 10, 4.0  # pairs of items in a table, and a residual that classes do not explain
THIN = 5  # rows most probably in a class, below which it is hardly more than those rows
UNLIKELY = 0.01  # a p-value of G² below which classes do not fit
WIDE = "grid-template-columns:repeat(auto-fill,minmax(min(100%,24rem),1fr))"


def classes_page(
    model: LatentClass, X: Any, columns: Sequence[str] | None, source: str | None, title: str | None, saved: str | None
) -> str:
    """The whole file."""
    items = column_names(model, columns)
    posteriors, k = model.predict_proba(X), model.n_components_
    fit = model.goodness_of_fit(X)
    parts = {
        "answer": ("The answer", answer_part(model, X, posteriors, fit)),
        "items": ("Their answers", items_part(model, items)),
        "fit": ("The fit", fit_part(model, X, fit, items)),
    }
    if model.regression_ is not None:
        parts["covariates"] = ("Covariates", covariates_part(model.regression_))
    use = (
        loading(saved) + "model.predict_proba(X)  # of other rows\nmodel.weights_, model.components_, model.categories_"
    )
    cite = "Goodman (1974), Biometrika 61:215–231; Song, Anandkumar, Dai and Xie (2014), ICML."
    parts["python"] = ("Use it", use_part(use, cite))
    title = title or f"Latent classes{f': {source}' if source else ''}"
    facts = [f"{counted(k, 'class', 'classes')} in {counted(len(posteriors), 'row')}"]
    return plain_page(title, [*facts, counted(len(items), "item")], parts, k)


def answer_part(model: LatentClass, X: Any, posteriors: np.ndarray, fit: GoodnessOfFit) -> Html:
    """How common the classes are, how sure rows are, and what to be careful with."""
    errors = model.standard_errors(X).weights if model.regression_ is None else np.full(model.n_components_, np.nan)
    counts = np.bincount(posteriors.argmax(axis=1), minlength=model.n_components_)
    names = [f"class {h}" for h in range(model.n_components_)]
    rows = [
        (one, percent(weight), percent(error) if np.isfinite(error) else "–", f"{count:,}")
        for one, weight, error, count in zip(names, model.weights_, errors, counts, strict=True)
    ]
    behind = table(["class", "share", "standard error", "rows most probably in it"], rows, "The classes")
    bars = figure(share_bars(names, model.weights_, "Shares of the classes"), "How common every class is.", behind)
    head = ["probability of the class", "rows", "share"]
    sure = certainty_table(posteriors.max(axis=1), head, "How probable the class of a row is, by its answers.")
    said = verdict(
        [*_cautions(model, X, fit), *_thin(counts)], "EM has converged, and the classes explain the answers."
    )
    return section("answer", "The answer", tag("div", tag("div", bars, sure, class_="panel"), said, class_="two"))


def _thin(counts: np.ndarray) -> list[str]:
    """Classes of hardly any row."""
    return [
        f"Class {h} has {counted(int(count), 'row')} that {'is' if count == 1 else 'are'} most probably in it: so "
        "few hardly say what such a class answers. Fit fewer classes."
        for h, count in enumerate(counts)
        if 0 < count < THIN
    ]


def _cautions(model: LatentClass, X: Any, fit: GoodnessOfFit) -> list[str]:
    """What to be careful with."""
    lines = [] if model.converged_ else ["EM stopped before it had converged: raise `max_iter`."]
    if model.regression_ is None:
        errors = model.standard_errors(X)
        border = sum(int(one.any(axis=1).sum()) for one in errors.boundary)
        if errors.n_unidentified:
            lines.append("The data do not determine all parameters: other classes fit as well. Fit fewer.")
        if border:
            lines.append(
                f"To {counted(border, 'answer')} some class gives a share of 0 or 100 %, at the edge of what a share "
                "can be: no standard error can be given there, which does not mean that the share is exact."
            )
    if fit.degrees_of_freedom > 0 and fit.g_pvalue < UNLIKELY:
        lines.append(f"The classes do not explain the answers (G² has a p-value of {fit.g_pvalue:.2g}): fit more.")
    residuals = fit.bivariate_residuals
    high = int(np.sum(np.triu(np.nan_to_num(residuals), 1) > HIGH))
    if high:
        lines.append(
            f"Dependent inside classes, by residuals above {HIGH:g}: {counted(high, 'pair')} of items. Fit more "
            "classes, join items that ask the same into one, or leave one of them out; `goodness_of_fit` has the "
            "residuals of all pairs, to look at again after each."
        )
    return lines


def items_part(model: LatentClass, items: list[str]) -> Html:
    """What every class answers to every item."""
    heads = ["answer", *(f"class {h}" for h in range(model.n_components_))]
    shown = []
    for item, values, chances in list(zip(items, model.categories_, model.components_, strict=True))[:ITEMS]:
        order = np.sort(np.argsort(-(chances @ model.weights_), kind="stable")[:ANSWERS])
        left = len(values) - len(order)
        caption = "How probable every answer is, by class" + (f"; {left:,} rarer ones are left out" if left else "")
        answers = [name(values[i]) for i in order]
        shown.append(tag("div", tag("h3", name(item)), heat_table(heads, answers, chances[order], caption)))
    more = len(items) - len(shown)
    note = tag("p", f"The first {len(shown)} items; {more:,} more are in the model.") if more else None
    return section("items", "What the classes answer", note, tag("div", *shown, class_="grid", style=WIDE))


def fit_part(model: LatentClass, X: Any, fit: GoodnessOfFit, items: list[str]) -> Html:
    """Criteria, but for a model with covariates, goodness of fit, and the pairs of items that classes explain least."""
    rows = [
        ("log-likelihood", number(model.log_likelihood_)),
        ("parameters", f"{model.n_parameters_:,}"),
        *(() if model.regression_ is not None else (("BIC", number(model.bic(X))), ("AIC", number(model.aic(X))))),
        ("G² (p-value)", f"{number(fit.g_squared)} ({_pvalue(fit.g_pvalue)})"),
        ("X² (p-value)", f"{number(fit.chi_squared)} ({_pvalue(fit.chi_pvalue)})"),
        ("degrees of freedom", number(fit.degrees_of_freedom)),
    ]
    residuals = np.triu(np.nan_to_num(fit.bivariate_residuals), 1)
    order = np.argsort(-residuals, axis=None, kind="stable")[:PAIRS]
    pairs = [np.unravel_index(place, residuals.shape) for place in order if residuals.flat[place] > 0]
    worst = [(name(items[i]), name(items[j]), number(residuals[i, j])) for i, j in pairs]
    about = "Pairs of items that the classes explain least: a residual far above one says that they go together."
    return section(
        "fit",
        "The fit",
        table(
            ["", ""], rows, "G² and X² are over rows without a missing answer, and mean little where cells are rare."
        ),
        table(["item", "and", "residual"], worst, about) if worst else None,
    )


def _pvalue(value: float) -> str:
    """A p-value, or a dash where no degrees of freedom are left for one."""
    return f"{value:.2g}" if np.isfinite(value) else "–"


def covariates_part(found: ClassRegression) -> Html:
    """The logit of the classes on covariates."""
    k = found.coefficients.shape[1]
    heads = ["", *(f"class {h}" for h in range(1, k))]
    rows = [
        (
            name(one),
            *(f"{number(found.coefficients[q, h])} ± {number(found.standard_errors[q, h])}" for h in range(1, k)),
        )
        for q, one in enumerate(found.names)
    ]
    about = "Log-odds of every class against class 0, and their standard errors."
    return section("covariates", "Who is in which class", table(heads, rows, about))
