"""Sentences on what is no table of finite numbers."""

import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np


def refuse_no_table(name: str, X: Any) -> None:
    """A sentence where rows are not there: of a path, of what is read from a file, of a single value or column."""
    expected = f"{name} expects a table, a row per object and a column per measurement"
    if isinstance(X, str | os.PathLike):
        raise TypeError(
            f"{expected}; got the path {os.fspath(X)!r}. Read it first: latentviews.io.read_table(path).frame()."
        )
    if hasattr(X, "reading") and hasattr(X, "frame"):
        raise TypeError(f"{expected}; got what was read from {X.source}. Pass its data frame, frame().")
    if type(X) is dict:
        raise TypeError(f"{expected}; got a dict. If it holds columns, pass pandas.DataFrame(X).")
    bare = X is None or isinstance(X, list | tuple | int | float)
    try:
        shape = np.shape(X) if bare else getattr(X, "shape", (None, None))
    except ValueError as error:
        raise ValueError(f"{expected}; got rows of different lengths.") from error
    if len(shape) == 0:
        raise ValueError(f"{expected}; got {X!r:.60}.")
    if len(shape) == 1:
        raise ValueError(
            f"{expected}; got {shape[0]:,} values in one dimension. Reshape your data: with reshape(-1, 1) they are "
            "one column, with reshape(1, -1) one row."
        )


def as_list_of_names(columns: Any) -> list[Any]:
    """The names of columns, or a sentence where they are no list."""
    if isinstance(columns, str | bytes) or not isinstance(columns, Iterable):
        raise TypeError(f"columns must be a list of names, one per column of X; got {columns!r:.60}.")
    return list(columns)


def refuse_infinite(name: str, x: np.ndarray, names: Sequence[Any]) -> None:
    """A sentence where a table of floats holds infinity."""
    if np.isinf(x).any():
        row, column = np.argwhere(np.isinf(x))[0]
        raise ValueError(
            f"X contains infinity, first in row {row} of column {names[column]!r}, and {name} takes finite numbers; "
            "replace such values, or leave those rows out."
        )


def refuse_missing(name: str, x: np.ndarray) -> None:
    """A sentence where a table of floats has NaN."""
    with np.errstate(all="ignore"):
        suspect = np.isnan(x.sum())  # no table of flags for rows that are all there
    if suspect and np.isnan(x).any():
        row, column = np.argwhere(np.isnan(x))[0]
        raise ValueError(
            f"X contains NaN, first in row {row} of column {column}, and {name} takes complete rows; "
            "fill in such values, or leave those rows out."
        )
