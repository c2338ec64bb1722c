"""CrowdAnswers of workers on tasks, from long form to one sparse table."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from latentviews._arrays import on_host
from latentviews._validation import check_weights

NAMES = ("task", "worker", "label")
MOST = 10**8  # numbers in all workers' matrices of labels by classes
FEW = 20  # labels, beyond which answers are to share them
EXPECTED = "a frame with columns task, worker and label, a table of three columns, or a tuple of three arrays"


@dataclass(frozen=True, eq=False)
class CrowdAnswers:
    """Who answered what where: one row per task, one column per worker and label, weights of answers in the cells."""

    table: sparse.csr_array  # (n_tasks, n_workers · n_labels)
    tasks: np.ndarray  # distinct ones, in the order in which they are met
    workers: np.ndarray
    labels: np.ndarray  # sorted, where they can be

    @property
    def shape(self) -> tuple[int, int, int]:
        """Tasks, workers and labels."""
        return len(self.tasks), len(self.workers), len(self.labels)

    def some(self, size: int, rng: np.random.Generator) -> "CrowdAnswers":
        """The answers to at most ``size`` tasks, drawn at random."""
        if len(self.tasks) <= size:
            return self
        rows = np.sort(rng.choice(len(self.tasks), size, replace=False))
        return replace(self, table=self.table[rows], tasks=self.tasks[rows])

    def votes(self) -> np.ndarray:
        """The weight of every label on every task, (n_tasks, n_labels)."""
        n_tasks, n_workers, n_labels = self.shape
        return self.table @ np.tile(np.eye(n_labels), (n_workers, 1)) if n_workers else np.zeros((n_tasks, n_labels))


def read_answers(
    X: Any, sample_weight: Any = None, workers: np.ndarray | None = None, labels: np.ndarray | None = None
) -> CrowdAnswers:
    """CrowdAnswers from long form; those of missing label count for nothing, but their tasks are kept.

    Where ``workers`` and ``labels`` are given, they are those of a model: others among the answers are all one more
    worker, the last, and a label that is not known is refused.
    """
    task, worker, label = _columns(X)
    weight = check_weights(sample_weight, task)
    weight = np.ones(len(task)) if weight is None else weight
    for name, column in zip(NAMES[:2], (task, worker), strict=True):
        if _missing(column).any():
            row = int(_missing(column).argmax()) + 1
            raise ValueError(f"Every answer needs a {name}; row {row:,}, counted from 1, has none.")
    given: Any = ~_missing(label)
    if not given.any():
        raise ValueError(f"Expected at least one answer with a label; all {len(label)} labels are missing.")
    given = slice(None) if given.all() else given  # nothing is copied where nothing is missing
    tasks, of_task = distinct(task)
    if workers is None or labels is None:
        workers, of_worker = distinct(worker)
        labels, of_label = distinct(label[given], in_order=True)
        _check_few(len(labels), len(workers), len(of_label))
    else:
        of_worker, of_label = _places(worker, workers), _places(label[given], labels)
        if np.any(of_label == len(labels)):
            unknown = label[given][of_label == len(labels)][0]
            raise ValueError(f"The label {unknown!r} was not among those of the fit, {labels.tolist()}.")
        workers = _objects([*workers.tolist(), None])
    shape = (len(tasks), len(workers) * len(labels))
    place = of_worker[given] * len(labels) + of_label
    return CrowdAnswers(_table(weight[given], of_task[given], place, shape), tasks, workers, labels)


def _check_few(n_labels: int, n_workers: int, n_answers: int) -> None:
    """Refuse labels that answers do not share, or too many for matrices of them: measurements, or names of tasks."""
    if 2 * n_labels > max(n_answers, 2 * FEW) or n_workers * n_labels**2 > MOST:
        raise ValueError(
            f"Labels are to be classes that answers share; {n_answers:,} answers of {n_workers:,} workers hold "
            f"{n_labels:,} different ones. Are they measurements, or tasks or workers in the place of labels?"
        )


def _table(weight: np.ndarray, row: np.ndarray, column: np.ndarray, shape: tuple[int, int]) -> sparse.csr_array:
    """A sparse table of answers; where they come task by task, as they mostly do, nothing has to be sorted."""
    if np.any(row[1:] < row[:-1]):
        return sparse.csr_array((weight, (row, column)), shape=shape)
    ends = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=shape[0]))])
    small = np.int32 if max(len(row), shape[1]) < 2**31 else np.int64
    return sparse.csr_array((weight, column.astype(small), ends.astype(small)), shape=shape)


def distinct(values: np.ndarray, *, in_order: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Distinct values, as they are met or ``in_order`` of size, and the place of every value among them."""
    if values.dtype == object:
        places: dict[Hashable, int] = {}
        try:
            codes = np.fromiter((places.setdefault(value, len(places)) for value in values), dtype=np.intp)
        except TypeError as error:
            raise ValueError(
                f"Tasks, workers and labels are names or numbers ({error}); pass tuples for lists."
            ) from error
        found = _objects(list(places))
        order = _sorted(found) if in_order else np.arange(len(found))
    else:
        found, first, codes = _unique(values)
        order = np.arange(len(found)) if in_order else np.argsort(first)
    return found[order], np.argsort(order)[codes]


def _unique(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distinct numbers in order, where each is first, and places among them; by counting where integers are close."""
    low, high = values.min(), values.max()
    if values.dtype.kind not in "iu" or int(high) - int(low) > 4 * len(values):
        return np.unique(values, return_index=True, return_inverse=True)
    shifted = (values - low).astype(np.intp, copy=False)
    first = np.full(int(high) - int(low) + 1, -1, dtype=np.intp)
    first[shifted[::-1]] = np.arange(len(values))[::-1]  # what is written last stays
    there = first >= 0
    return np.flatnonzero(there) + low, first[there], (np.cumsum(there) - 1)[shifted]


def _sorted(found: np.ndarray) -> np.ndarray:
    """The order of values by size; as they are where they cannot be compared."""
    try:
        return np.array(sorted(range(len(found)), key=found.__getitem__), dtype=np.intp)
    except TypeError:
        return np.arange(len(found))


def _places(values: np.ndarray, known: np.ndarray) -> np.ndarray:
    """The place of every value among known ones; one beyond the last where it is none of them."""
    table = {value: place for place, value in enumerate(known.tolist())}
    found, codes = distinct(values)
    return np.array([table.get(value, len(known)) for value in found.tolist()], dtype=np.intp)[codes]


def _columns(X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The tasks, workers and labels of answers in any of the forms that are taken."""
    if hasattr(X, "columns"):
        names = list(X.columns)
        twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        if twice:
            raise ValueError(f"Expected {EXPECTED}; got a frame that names {twice[0]!r} more than once. Rename one.")
        if not set(NAMES) <= set(names) and len(names) != 3:
            raise ValueError(f"Expected {EXPECTED}; got a frame with columns {names}.")
        chosen = NAMES if set(NAMES) <= set(names) else names
        parts: Sequence[Any] = [X[name] for name in chosen]
    elif isinstance(X, tuple) and len(X) == 3:
        parts = X
    else:
        table = np.asarray(X, dtype=object) if isinstance(X, list | tuple) else np.asarray(on_host(X))
        if table.ndim != 2 or table.shape[1] != 3:
            raise ValueError(f"Expected {EXPECTED}; got shape {table.shape}.")
        parts = list(table.T)
    columns = [_vector(part) for part in parts]
    lengths = [len(column) for column in columns]
    if len(set(lengths)) > 1:
        raise ValueError(f"Tasks, workers and labels need one length; got {lengths[0]}, {lengths[1]} and {lengths[2]}.")
    if not lengths[0]:
        raise ValueError("Expected at least one answer; got none.")
    return columns[0], columns[1], columns[2]


def _vector(part: Any) -> np.ndarray:
    """A column as numbers, or as Python objects."""
    if isinstance(part, list | tuple):
        return _objects(part)
    values = np.asarray(on_host(part))
    return values if values.dtype.kind in "biuf" else values.astype(object)


def _objects(values: Sequence[Any]) -> np.ndarray:
    """Values as an array of objects, tuples among them unopened."""
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _missing(values: np.ndarray) -> np.ndarray:
    """Where a value is None, NaN or what pandas calls missing."""
    if values.dtype.kind in "biu":
        return np.zeros(len(values), dtype=bool)
    if values.dtype.kind == "f":
        return np.isnan(values)
    return np.fromiter((value is None or _is_nan(value) for value in values), dtype=bool, count=len(values))


def _is_nan(value: Any) -> bool:
    """Whether a value differs from itself, or cannot say."""
    return type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float | np.floating) and value != value)
