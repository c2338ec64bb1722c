"""A report on a crowd: the labels of tasks, how sure they are, and what every worker is worth."""

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from latentviews._files import path_to_write
from latentviews._sentences import counted
from latentviews.discrete.crowds import CrowdLabels
from latentviews.report.figures import percent
from latentviews.report.markup import Html, join, name, table, tag
from latentviews.report.page import write_page
from latentviews.report.plain import (
    CUTS,
    certainty_table,
    heat_table,
    loading,
    plain_page,
    share_bars,
    use_part,
    verdict,
)
from latentviews.report.sections import figure, section
from latentviews.report.svg import Scale, crosses, dots, number, picture, x_axis, y_axis

SPAMMER = 0.8  # who is more probably than this a spammer is called one
LISTED = 50  # workers and tasks in a table
MATRICES = 6  # workers whose matrix is shown
WIDE = "grid-template-columns:repeat(auto-fill,minmax(min(100%,26rem),1fr))"  # room for matrices
PARTS = {"answer": "The answer", "workers": "The workers", "tasks": "Tasks in doubt", "python": "Use it"}


def write_crowd_report(
    model: CrowdLabels, path: Any, *, source: str | None = None, title: str | None = None, saved: str | None = None
) -> Path:
    """Write a report on a fitted `CrowdLabels` as one HTML file, which needs nothing else to be read.

    Parameters
    ----------
    model : fitted CrowdLabels
    path : str or path
        The file; an older one is replaced once the new one is whole.
    source : str or None
        What the answers come from, such as the name of a file.
    title : str or None
    saved : str or None
        The file in which the model is saved, for the example of how to load it.

    Returns
    -------
    Path
        The file that was written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from latentviews import CrowdLabels
    >>> from latentviews.report import write_crowd_report
    >>> model = CrowdLabels().fit((["a", "a", "b", "b"], [1, 2, 1, 2], ["yes", "yes", "no", "no"]))
    >>> write_crowd_report(model, pathlib.Path(tempfile.mkdtemp()) / "crowd.html").name
    'crowd.html'
    """
    check_is_fitted(model)
    if not isinstance(model, CrowdLabels):
        raise TypeError(f"write_crowd_report takes a fitted CrowdLabels; got a {type(model).__name__}.")
    path = path_to_write(path, "A report")
    write_page(crowd_page(model, source, title, saved), path)
    return path


def crowd_page(model: CrowdLabels, source: str | None, title: str | None, saved: str | None) -> str:
    """The whole file."""
    title = title or f"Labels from a crowd{f': {source}' if source else ''}"
    facts = [
        f"{model.n_answers_.sum():,.0f} answers",
        counted(len(model.workers_), "worker"),
        counted(len(model.tasks_), "task"),
    ]
    found = answer_part(model), workers_part(model), tasks_part(model), python_part(saved)
    parts = {key: (text, part) for (key, text), part in zip(PARTS.items(), found, strict=True)}
    return plain_page(title, facts, parts, len(model.classes_))


# ------------------------------------------------------------------------------------------------------------ answer


def answer_part(model: CrowdLabels) -> Html:
    """How common the labels are, how sure tasks are, and what to be careful with."""
    counts = [int(np.sum(model.labels_ == one)) for one in model.classes_]
    rows = [
        (name(one), percent(weight), f"{count:,}")
        for one, weight, count in zip(model.classes_, model.weights_, counts, strict=True)
    ]
    behind = table(["label", "share of tasks", "tasks most probably so"], rows, "The labels")
    caption = "How common every label is among the tasks, by the probabilities of all of them."
    bars = share_bars([str(one) for one in model.classes_], model.weights_, "Shares of the labels")
    left = tag("div", figure(bars, caption, behind), _certainty(model), class_="panel")
    return section("answer", "The answer", tag("div", left, _verdict(model), class_="two"))


def _certainty(model: CrowdLabels) -> Html:
    """How many tasks are how sure."""
    caption = (
        "How probable the label of a task is. Workers are taken to err independently of each other; where they share "
        "errors, as on hard tasks, these probabilities are too near to one."
    )
    return certainty_table(model.posteriors_.max(axis=1), ["probability of the label", "tasks", "share"], caption)


def _verdict(model: CrowdLabels) -> Html:
    """What to be careful with."""
    spam = model.spammer_probability_ > SPAMMER
    lines = []
    if not model.converged_:
        lines.append("EM stopped before it had converged: raise `max_iter`.")
    if spam.any():
        share = model.n_answers_[spam].sum() / model.n_answers_.sum()
        lines.append(
            f"Most probably answering without looking: {counted(int(spam.sum()), 'worker')}, with {percent(share)} of "
            "all answers. Those answers count for little here; more of them would tell little, too."
        )
    turned = _turned(model)
    if turned.any():
        lines.append(
            f"Calling some class by a wrong label more often than by its own: {counted(int(turned.sum()), 'worker')} "
            "with at least ten answers. They may have misread the question; their answers are read by their matrices."
        )
    weak = np.diag(model.crowd_confusion_) < model.crowd_confusion_.max(axis=1)
    lines += [
        f"The crowd as a whole calls {one} by another label more often than by its own: check what the labels mean."
        for one in model.classes_[weak]
    ]
    return verdict(lines, "No worker stands out as a spammer.")


def _turned(model: CrowdLabels) -> np.ndarray:
    """Workers with ten answers or more who name some class more often wrongly than rightly, spammers aside."""
    right = np.einsum("whh->wh", model.confusion_)
    wrong = np.any(right < model.confusion_.max(axis=2) - 0.2, axis=1)
    return wrong & (model.n_answers_ >= 10) & (model.spammer_probability_ <= SPAMMER)


# ----------------------------------------------------------------------------------------------------------- workers


def workers_part(model: CrowdLabels) -> Html:
    """Who told how much, who is a spammer, and what workers take for what."""
    caption = (
        "One dot per worker: the number of answers, and the share of the uncertainty about a task's label that one of "
        "them takes away (0: nothing, as if by a coin; 100 %: all of it). Crosses are workers who most "
        "probably answer without looking."
    )
    order = np.lexsort([-model.n_answers_, -(model.spammer_probability_ > SPAMMER).astype(int)])[:LISTED]
    rows = [_worker_row(model, w) for w in order.tolist()]
    listed = "All workers" if len(order) == len(model.workers_) else f"{len(order)} of {len(model.workers_):,} workers"
    head = ["worker", "answers", "right", "information", "spammer, probability"]
    about = (
        f"{listed}: spammers first, then those with most answers. Workers with few answers are taken for average ones."
    )
    shown = [tag("div", _matrix(model.crowd_confusion_, model.classes_, "The crowd: what to expect of a new worker"))]
    for w in order[:MATRICES].tolist():
        said = join([name(model.workers_[w]), f", {model.n_answers_[w]:,.0f} answers"])
        shown.append(tag("div", _matrix(model.confusion_[w], model.classes_, said)))
    return section(
        "workers",
        "The workers",
        figure(_told(model), caption),
        table(head, rows, about),
        tag("h3", "What they take for what"),
        tag("div", *shown, class_="grid", style=WIDE),
    )


def _worker_row(model: CrowdLabels, w: int) -> tuple[Any, ...]:
    right = float(model.weights_ @ np.diag(model.confusion_[w]))
    spam = float(model.spammer_probability_[w])
    return (
        name(model.workers_[w]),
        f"{model.n_answers_[w]:,.0f}",
        percent(right),
        percent(float(model.information_[w])),
        tag("td", tag("b", f"{spam:.3f} *") if spam > SPAMMER else f"{spam:.3f}"),
    )


def _told(model: CrowdLabels) -> Html:
    """Answers against information, on a logarithmic axis of answers."""
    there = model.n_answers_ > 0
    counts, told = np.log10(np.maximum(model.n_answers_[there], 1)), model.information_[there]
    spam = model.spammer_probability_[there] > SPAMMER
    high = float(np.ceil(max(counts.max(), 1)))
    x, y = Scale(0, high, 60, 420), Scale(0, float(max(told.max() * 1.08, 0.1)), 206, 8)
    places = [(float(p), number(10.0**p)) for p in range(int(high) + 1)]
    shares = [(value, f"{100 * value:.0f} %") for value in y.ticks(4)]
    parts = [
        dots(x(counts[~spam]), y(told[~spam]), class_="h0 part dot") if np.any(~spam) else None,
        crosses(x(counts[spam]), y(told[spam]), class_="whisker") if np.any(spam) else None,
        x_axis(x, 206, "answers", places),
        y_axis(y, 60, "information", shares),
    ]
    said = (
        f"{int(there.sum())} workers by the number of their answers and what one answer tells; {spam.sum()} spammers."
    )
    return picture(440, 244, said, *parts, class_="wide")


def _matrix(matrix: np.ndarray, classes: np.ndarray, caption: Any) -> Html:
    """A confusion matrix as a table, one row per true label."""
    heads, rows = ["true label", *(name(one) for one in classes)], [name(one) for one in classes]
    return tag("div", tag("h3", caption), heat_table(heads, rows, matrix, "What is answered, by true label"))


# ------------------------------------------------------------------------------------------------- tasks, and the rest


def tasks_part(model: CrowdLabels) -> Html:
    """The tasks whose label is least sure: the first to ask more workers about."""
    certainty = model.posteriors_.max(axis=1)
    order = np.argsort(certainty, kind="stable")[:LISTED]
    order = order[certainty[order] < CUTS[0]]
    if not len(order):
        return section("tasks", "Tasks in doubt", tag("p", "None: every label has a probability of over 99 %."))
    rows = [_task_row(model, i) for i in order.tolist()]
    caption = f"The {len(rows)} tasks whose labels are least sure: the first to ask more workers about."
    return section("tasks", "Tasks in doubt", table(["task", "label", "", "next", ""], rows, caption))


def _task_row(model: CrowdLabels, i: int) -> tuple[Any, ...]:
    first, second = np.argsort(-model.posteriors_[i], kind="stable")[:2]
    chances = model.posteriors_[i]
    return (
        name(model.tasks_[i]),
        name(model.classes_[first]),
        percent(chances[first]),
        name(model.classes_[second]),
        percent(chances[second]),
    )


def python_part(saved: str | None) -> Html:
    """How to load the model."""
    use = (
        loading(saved) + "model.tasks_, model.labels_, model.posteriors_     # one per task\n"
        "model.workers_, model.confusion_, model.spammer_probability_  # one per worker\n"
        "model.predict((task, worker, label))               # the labels of other tasks"
    )
    cite = (
        "Dawid and Skene (1979), Applied Statistics 28:20–28; Zhang, Chen, Zhou and Jordan (2016), Spectral Methods "
        "Meet EM, Journal of Machine Learning Research 17."
    )
    return use_part(use, cite)
