"""Sequences one under the other: their lengths, their stretches, and the triples of consecutive rows."""

from typing import Any

import numpy as np

from latentviews._arrays import namespace, take_rows
from latentviews.core.tables import Columns
from latentviews.sequences.chains import first_rows

WINDOW = 500  # rows of a stretch that a pilot is made of


def check_lengths(lengths: Any, n_rows: int, y: Any = None) -> np.ndarray:
    """How long every sequence is: whole positive numbers that add up to the rows; one sequence by default.

    ``y`` is what ``fit`` was given in the place where other libraries have the lengths: it is one per row, or an error.
    """
    if y is not None and np.size(y) != n_rows:
        raise ValueError(
            f"y is ignored and stands for one value per row; got {np.size(y)} for {n_rows} rows. Pass the lengths of "
            "sequences by name: fit(X, lengths=...)."
        )
    if lengths is None:
        return np.array([n_rows])
    try:
        given = np.atleast_1d(np.asarray(lengths))
    except ValueError:  # lists of different lengths
        given = np.empty(0)
    if given.ndim != 1 or not given.size or given.dtype.kind not in "iu" or given.min() < 1:
        raise ValueError(f"lengths must be a list of positive integers, one per sequence; got {lengths!r}.")
    if given.sum() != n_rows:
        raise ValueError(
            f"lengths must add up to the rows of X: they add up to {given.sum()}, and X has {n_rows} rows."
        )
    return given.astype(int)


def check_origins(origins: Any, n_rows: int) -> np.ndarray:
    """Numbers of rows to forecast from."""
    given = np.atleast_1d(np.asarray(origins))
    if given.ndim != 1 or not given.size or given.dtype.kind not in "iu" or not np.all((given >= 0) & (given < n_rows)):
        raise ValueError(f"origins must be numbers of rows from 0 to {n_rows - 1}; got {origins!r}.")
    return given


def check_place(name: str, place: Any, size: int) -> int:
    """The number of a view or column of a forecast, from the end where negative."""
    if isinstance(place, bool) or not isinstance(place, (int, np.integer)) or not -size <= place < size:
        raise ValueError(f"{name} must be a number from 0 to {size - 1}; got {place!r}.")
    return int(place)


def stretches(rows: np.ndarray, first: np.ndarray) -> np.ndarray:
    """The lengths of the runs that increasing row numbers make: each ends at a gap or where a sequence ends."""
    begins = np.append(True, (np.diff(rows) != 1) | first[rows[1:]])
    return np.diff(np.append(np.flatnonzero(begins), len(rows)))


def windows(lengths: np.ndarray, size: int) -> list[np.ndarray]:
    """Row numbers of consecutive stretches of at most ``size`` rows, none over the end of a sequence."""
    ends = np.cumsum(lengths)
    return [
        np.arange(low, min(low + size, end))
        for begin, end in zip(ends - lengths, ends, strict=True)
        for low in range(begin, end, size)
    ]


def draw_windows(lengths: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Increasing numbers of about ``size`` rows in stretches drawn at random; all rows if there are no more."""
    if lengths.sum() <= size:
        return np.arange(lengths.sum())
    pieces = windows(lengths, min(WINDOW, max(size // 8, 3)))
    order = rng.permutation(len(pieces))
    enough = int(np.searchsorted(np.cumsum([len(pieces[i]) for i in order]), size)) + 1
    return np.concatenate([pieces[i] for i in np.sort(order[:enough])])


def triples(table: Any, lengths: np.ndarray) -> Any:
    """Rows (x_{t-1}, x_t, x_{t+1}) inside sequences, (n, 3d), where the table is."""
    first = first_rows(lengths)
    inside = np.flatnonzero(~(first[1:-1] | first[2:]))
    return namespace(table).concat([take_rows(table, inside + lag) for lag in range(3)], axis=1)


def triple_columns(columns: Columns, width: int) -> Columns:
    """The columns of view 3s + τ, sensor s at time t - 1 + τ, in a table of triples."""
    return tuple([lag * width + j for j in view] for view in columns for lag in range(3))


def window_means(values: np.ndarray, lengths: np.ndarray, reach: int) -> np.ndarray:
    """The mean of every row and ``reach`` rows on either side of it, as far as its sequence goes, (n, d)."""
    ends = np.repeat(np.cumsum(lengths), lengths)
    begins = ends - np.repeat(lengths, lengths)
    place = np.arange(len(values))
    low, high = np.maximum(place - reach, begins), np.minimum(place + reach + 1, ends)
    sums = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])
    means = sums.take(high, axis=0)
    means -= sums.take(low, axis=0)
    means /= (high - low)[:, None]
    return means
