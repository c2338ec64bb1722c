"""Tables that are laid out for something else than a fit of one row per object, told by names and values."""

import re
import shlex
from pathlib import Path

import numpy as np

from latentviews.io import Table

TASK = re.compile(r"(task|item|question)s?([\W_]?id)?", re.I)
WORKER = re.compile(r"(worker|rater|annotator|coder|judge)s?([\W_]?id)?", re.I)
ANSWER = re.compile(r"(rating|answer|response|annotation|vote|score)s?", re.I)
COUNT = re.compile(r"freq|frequency|frequencies|counts?", re.I)


def layout_notes(table: Table, path: Path) -> list[str]:
    """Sentences on answers of a crowd, one per row, and on rows that stand for many."""
    return [note for note in (_on_answers(table, path), _on_counts(table)) if note]


def _on_answers(table: Table, path: Path) -> str | None:
    """Where to go with a column of tasks, one of workers and one of answers."""
    names = [*table.columns, *table.left_out]
    tasks, workers = ([name for name in names if kind.fullmatch(name)] for kind in (TASK, WORKER))
    others = [name for name in names if name not in (*tasks, *workers)]
    answers = [name for name in others if ANSWER.fullmatch(name)] or others
    if not len(tasks) == len(workers) == len(answers) == 1:
        return None
    task, worker, answer = tasks[0], workers[0], answers[0]
    command = ["latentviews", "crowd", str(path), "--task", task, "--worker", worker, "--label", answer]
    return (
        f"{task}, {worker} and {answer} look like answers, one per row; `{shlex.join(command)}` finds the labels of "
        "tasks from them, while fit takes every row as an object."
    )


def _on_counts(table: Table) -> str | None:
    """What to do with a column that counts the rows like each, where no two rows are alike in the others."""
    for j, name in enumerate(table.columns):
        column = table.values[:, j]
        if not COUNT.fullmatch(name) or not np.array_equal(column, np.round(column)) or column.min() < 0:
            continue
        others = np.delete(table.values, j, axis=1)
        if others.shape[1] and len(np.unique(others, axis=0)) == len(others):
            return (
                f"{name} looks like counts, of objects that each row stands for, and is taken as a measurement; fit "
                f"takes one row per object: write each row as often as {name} says, and give --exclude {name}."
            )
    return None
