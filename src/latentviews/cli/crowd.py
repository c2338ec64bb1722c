"""``latentviews crowd``: from answers of workers to the labels of tasks, and what every worker is worth."""

import argparse
import csv
import json
import shlex
import time
from pathlib import Path
from typing import Any

import numpy as np

from latentviews import __version__
from latentviews._sentences import counted
from latentviews.cli.common import blamed_on, gathered_warnings, tell, written
from latentviews.cli.options import MODEL, REPORT, SUMMARY, CommandError
from latentviews.cli.output import output_directory
from latentviews.cli.progress import Progress
from latentviews.cli.wanted import stem
from latentviews.diagnosis.diagnose import CERTAIN
from latentviews.discrete.crowd_answers import NAMES
from latentviews.discrete.crowds import CrowdLabels
from latentviews.io.saving import save
from latentviews.io.words import open_words
from latentviews.report.crowd import SPAMMER, write_crowd_report

TASKS, WORKERS = "tasks.csv", "workers.csv"
FILES = (MODEL, TASKS, WORKERS, SUMMARY)


def run(arguments: argparse.Namespace) -> None:
    """Read, fit, write."""
    out = arguments.out or Path(stem(arguments.file))
    names = [*FILES, *([] if arguments.no_report else [REPORT])]
    told: list[str] = []
    with output_directory(out, names, force=arguments.force, ours=(*FILES, REPORT)) as aside:
        with Progress(not arguments.quiet, arguments.started) as progress:
            with progress.stage("reading"), gathered_warnings(told):
                (task, worker, label), notes = read_answers_file(arguments)
            progress.say(notes)
            with progress.stage("fitting"), gathered_warnings(told), blamed_on(arguments.file):
                model = CrowdLabels(random_state=arguments.seed).fit((task, worker, label))
            with progress.stage("writing"):
                save(model, aside / MODEL)
                write_tasks(aside / TASKS, model)
                write_workers(aside / WORKERS, model)
                if not arguments.no_report:
                    write_crowd_report(model, aside / REPORT, source=arguments.file.name, saved=MODEL)
        summary = summarize(model, arguments, told, names, time.perf_counter() - arguments.started) | {"notes": notes}
        (aside / SUMMARY).write_text(json.dumps(summary, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    tell(arguments, describe(summary, out), summary)


def read_answers_file(arguments: argparse.Namespace) -> tuple[list[np.ndarray], list[str]]:
    """The three columns of answers: as named, else by their usual names, else the only three, with a note."""
    path = arguments.file
    source = open_words(path, **written(arguments))
    notes: list[str] = []
    asked = {name: getattr(arguments, name) for name in NAMES}
    if not any(asked.values()) and not set(NAMES) <= set(source.names):
        twice = sorted({name for name in source.names if source.names.count(name) > 1})
        if twice:
            raise CommandError(f"{path} has more than one column {', '.join(map(repr, twice))}; rename one of them.")
        if len(source.names) != 3:
            raise CommandError(_no_answers(path, source.names))
        places, taken = [0, 1, 2], [f"{column!r} for {name}s" for column, name in zip(source.names, NAMES, strict=True)]
        notes = [f"columns are taken by their order, {', '.join(taken)}; --task, --worker and --label name others."]
    else:
        wanted = [asked[name] or name for name in NAMES]
        places = source.find(wanted, path)
        if len(set(places)) < len(NAMES):
            one, other = next((i, j) for i in range(3) for j in range(i + 1, 3) if places[i] == places[j])
            raise CommandError(
                f"{wanted[one]!r} is named for {NAMES[one]}s and for {NAMES[other]}s; tasks, workers and labels are "
                f"three columns. --{NAMES[one]} and --{NAMES[other]} name them."
            )
    return list(source.read(places).T), notes


def _no_answers(path: Path, names: list[str]) -> str:
    """What can be done with a table whose columns are not tasks, workers and labels."""
    listed = ", ".join(map(repr, names[:20])) + (", …" if len(names) > 20 else "")
    wide = f"`latentviews fit {shlex.quote(str(path))} --codes` and the names of those columns"
    return (
        f"{path} has the columns {listed}, and crowd takes one answer per row: --task, --worker and --label name the "
        "columns of tasks, workers and labels. Where there is one column per rater instead, and one row per task, "
        f"{wide} finds the classes of rows; or write every answer on a row of its own."
    )


def write_tasks(path: Path, model: CrowdLabels) -> None:
    """A row per task: its most probable label, how probable, and the probability of every label."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["task", "label", "probability", *(f"p_{label}" for label in model.classes_)])
        for task, label, chances in zip(model.tasks_, model.labels_, model.posteriors_.round(6), strict=True):
            rows.writerow([task, label, chances.max(), *chances.tolist()])


def write_workers(path: Path, model: CrowdLabels) -> None:
    """A row per worker: how many answers, how often right, what they tell, whether a spammer; then the matrix."""
    pairs = [f"p_{answer}_if_{truth}" for truth in model.classes_ for answer in model.classes_]
    right = expected_accuracy(model)
    with open(path, "w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["worker", "answers", "accuracy", "information", "spammer_probability", *pairs])
        for w, worker in enumerate(model.workers_):
            figures = [right[w], model.information_[w], model.spammer_probability_[w], *model.confusion_[w].ravel()]
            rows.writerow([worker, f"{model.n_answers_[w]:g}", *np.round(figures, 6).tolist()])


def expected_accuracy(model: CrowdLabels) -> np.ndarray:
    """How often a worker is right on tasks as they come, Σ_h π_h C_w(h, h)."""
    return np.einsum("h,whh->w", model.weights_, model.confusion_)


def summarize(
    model: CrowdLabels, arguments: argparse.Namespace, told: list[str], files: list[str], seconds: float
) -> dict[str, Any]:
    """What was found, for machines."""
    certainty, spam = model.posteriors_.max(axis=1), model.spammer_probability_ > SPAMMER
    return {
        "latentviews": __version__,
        "command": "crowd",
        "file": str(arguments.file),
        "n_answers": round(float(model.n_answers_.sum())),
        "n_tasks": len(model.tasks_),
        "n_workers": len(model.workers_),
        "classes": [
            {"label": str(label), "weight": float(weight), "n_tasks": int(np.sum(model.labels_ == label))}
            for label, weight in zip(model.classes_, model.weights_, strict=True)
        ],
        "uncertain_tasks": float(np.mean(certainty < CERTAIN)),
        "spammers": [str(worker) for worker in model.workers_[spam]],
        "mean_accuracy": float(model.n_answers_ @ expected_accuracy(model) / model.n_answers_.sum()),
        "start": model.start_,
        "n_iter": model.n_iter_,
        "converged": model.converged_,
        "seconds": round(seconds, 3),
        "warnings": told,
        "files": files,
    }


def describe(summary: dict[str, Any], out: Path) -> str:
    """The same for people."""
    width = max(len("label"), *(len(one["label"]) for one in summary["classes"]))
    spammers = summary["spammers"]
    named = f": {', '.join(spammers[:10])}{', …' if len(spammers) > 10 else ''}" if spammers else ""
    return "\n".join(
        [
            f"{summary['file']}: {counted(summary['n_answers'], 'answer')} of "
            f"{counted(summary['n_workers'], 'worker')} on {counted(summary['n_tasks'], 'task')}",
            "",
            f"{'label':<{width}}   weight       tasks",
            *(f"{one['label']:<{width}}   {one['weight']:6.3f}   {one['n_tasks']:9,d}" for one in summary["classes"]),
            "",
            f"tasks of no label above {CERTAIN}   {summary['uncertain_tasks']:.1%}",
            f"an answer is right with a chance of about {summary['mean_accuracy']:.0%}",
            f"answer without looking, most probably   {len(spammers)} of {summary['n_workers']:,}{named}",
            f"time   {summary['seconds']:.1f} s",
            f"wrote   {out}: {', '.join(summary['files'])}",
        ]
    )


# ----------------------------------------------------------------------------------------------------- a saved model


def summarize_model(model: CrowdLabels) -> dict[str, Any]:
    """What a model is, for machines."""
    return {
        "class": type(model).__name__,
        "n_answers": round(float(model.n_answers_.sum())),
        "n_tasks": len(model.tasks_),
        "n_workers": len(model.workers_),
        "labels": [str(label) for label in model.classes_],
        "weights": model.weights_.tolist(),
        "n_spammers": int(np.sum(model.spammer_probability_ > SPAMMER)),
    }


def describe_model(summary: dict[str, Any]) -> str:
    """The same for people."""
    weights = zip(summary["labels"], summary["weights"], strict=True)
    return "\n".join(
        [
            f"a fitted {summary['class']}, from `latentviews crowd`: {counted(summary['n_answers'], 'answer')} of "
            f"{counted(summary['n_workers'], 'worker')} on {counted(summary['n_tasks'], 'task')}",
            f"labels    {'  '.join(f'{label} {weight:.3f}' for label, weight in weights)}",
            f"spammers  {summary['n_spammers']} of {counted(summary['n_workers'], 'worker')}",
        ]
    )
