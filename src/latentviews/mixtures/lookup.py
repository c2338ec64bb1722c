"""The most probable classes of many rows by tables, and by the densities themselves where tables leave a doubt."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from latentviews._arrays import is_foreign, namespace, to_numpy
from latentviews._numbers import TINY
from latentviews.core.embeddings import BinnedEmbedding

WORTH = 2**13  # rows from which on tables pay
ROWS = 2**13  # looked up at once, so that their sums stay in the processor's cache
AGAIN = 2**14  # rows in doubt that are asked at once
ROUNDING = 2.0**-22  # of a log in single precision, and of adding it to others


class ColumnTable(NamedTuple):
    """The logs of the densities of a column in every class, with a cell of no knowledge at either end."""

    column: int
    low: float
    per_unit: float
    logs: np.ndarray  # (k + 1, cells), single precision; the last are bounds on the errors of the others


class LabelTables(NamedTuple):
    """Classes as tables of their columns."""

    weights: np.ndarray  # (k + 1, 1): log π_h, and zero
    columns: list[ColumnTable]

    def labels(self, table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The most probable classes of rows, (n,), and the numbers of those for which another may be."""
        labels, doubts = np.empty(len(table), dtype=np.intp), []
        for start in range(0, len(table), ROWS):
            part = slice(start, start + ROWS)
            labels[part], sure = _decided(self._sums(table[part]))
            doubts.append(start + np.flatnonzero(~sure))
        return labels, np.concatenate(doubts)

    def _sums(self, rows: np.ndarray) -> np.ndarray:
        """Log π_h + Σ_t log p_t(x_t | h), and the errors of these sums, (k + 1, n)."""
        sums = np.repeat(self.weights, len(rows), axis=1)
        for column, low, per_unit, logs in self.columns:
            with np.errstate(all="ignore"):  # what is no number, or too large for one, is in a cell at an end
                cells = ((rows[:, column] - np.float64(low)) * per_unit + 1).astype(np.intp)
            for total, values in zip(sums, logs, strict=True):
                total += values.take(cells, mode="clip")
        return sums


def _decided(sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The largest of sums (k, n), and whether it is by more than twice their errors, the last row."""
    *others, errors = sums
    best, second = others[0].copy(), np.full(len(errors), -np.inf, dtype=sums.dtype)
    labels = np.zeros(len(errors), dtype=np.min_scalar_type(len(others)))
    for h, one in enumerate(others[1:], start=1):
        np.maximum(labels, (one > best) * labels.dtype.type(h), out=labels)
        np.maximum(second, np.minimum(best, one), out=second)
        np.maximum(best, one, out=best)
    return labels, best - second > 2 * errors


def label_tables(classes: Any) -> LabelTables | None:
    """Tables for classes all of whose views are single columns on a grid; None for others."""
    views = classes.components if classes.dependence is None else []
    if not views or not all(isinstance(view, BinnedEmbedding) and view.looks_up for view in views):
        return None
    rounding = ROUNDING * (len(views) + 1)
    columns = [_padded(group[0], view, rounding) for group, view in zip(classes.columns, views, strict=True)]
    weights = np.append(np.log(np.maximum(classes.weights, TINY)), 0.0)
    return LabelTables(weights.astype(np.float32)[:, None], columns)


def _padded(column: int, view: BinnedEmbedding, rounding: float) -> ColumnTable:
    """The table of a view, its errors with those of rounding."""
    low, per_unit, logs, errors = view.log_table()
    errors = errors + rounding * (1 + np.abs(logs).max(axis=1))
    every = np.pad(np.column_stack([logs, errors]).T, ((0, 0), (1, 1)))
    every[-1, [0, -1]] = np.inf
    return ColumnTable(column, low, per_unit, every.astype(np.float32))


def most_probable(classes: Any, tables: LabelTables | None) -> Callable[[Any], Any]:
    """What gives the most probable classes of a batch of rows, in its array library, by tables where there are some."""

    def answer(batch: Any) -> Any:
        if tables is None or is_foreign(batch) or len(batch) < WORTH:
            joint = classes.log_joint(batch)
            return namespace(joint).argmax(joint, axis=1)
        labels, doubts = tables.labels(batch)
        for start in range(0, len(doubts), AGAIN):
            some = doubts[start : start + AGAIN]
            labels[some] = classes.log_joint(to_numpy(batch[some])).argmax(axis=1)
        return labels

    return answer
