"""Rows that are not one table in memory: streams, files and Dask's chunks, checked as they pass."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from latentviews._arrays import take_rows, to_numpy
from latentviews._progress import passing, timed_pass
from latentviews._sentences import warn_user
from latentviews._validation import check_rows, check_weights, is_batches
from latentviews.core import streams
from latentviews.core.categories import coded, coded_first, text_columns
from latentviews.core.kernels.spaces import Space
from latentviews.core.streams.dask import Chunks, as_chunks, is_dask, is_delayed
from latentviews.io import StoredTable
from latentviews.io.stored import as_stored, is_big_map, is_stored

Spaces = Mapping[int, Space]  # of columns, by number
NOWHERE: Spaces = {}
OF_COLUMNS = ("n_features_in_", "feature_names_in_", "categories_")  # what rows are checked by


def unmapped(X: Any, *along: Any) -> Any:
    """A big memory map as a table in a file, unless something goes ``along`` its rows; anything else as it is."""
    return as_stored(X) if is_big_map(X) and all(values is None for values in along) else X


def brought(X: Any) -> Any:
    """``X`` as models take it: what is in files opened, Dask's collections as chunks, anything else as it is."""
    if is_stored(X):
        return as_stored(X)
    if not is_dask(X):
        return X
    frame = not is_delayed(X) and getattr(X, "ndim", None) == 2 and hasattr(X, "columns")
    texts = [X.columns[j] for j in text_columns(X)] if frame else []
    if texts:
        raise ValueError(
            f"Columns {texts} of the Dask DataFrame are not numbers; leave them out, X[[...]], or make numbers of them."
        )
    return as_chunks(X)


def is_stream(X: Any) -> bool:
    """Whether ``X`` is an iterable of batches; a sentence where it can be read only once."""
    if isinstance(X, Iterator):
        raise TypeError(
            f"Data are read more than once, and a {type(X).__name__} only once; pass an array, or an object "
            "whose __iter__ starts again from the first batch."
        )
    return is_batches(X)


class CheckedBatches:
    """A stream whose batches are checked as they pass.

    They hold numbers, as many columns as the first and none outside its space, and one weight per row.
    """

    def __init__(self, estimator: Any, batches: Any, missing: bool = True, spaces: Spaces = NOWHERE):
        self.estimator = estimator
        self.batches = batches
        self.missing = missing
        self.spaces = spaces

    def inside(self, spaces: Spaces) -> "CheckedBatches":
        """The same stream with its columns in these spaces."""
        return type(self)(self.estimator, self.batches, self.missing, spaces)

    @property
    def n_rows(self) -> int | None:
        """The number of rows, where it is known."""
        return getattr(self.batches, "n_rows", None)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        for batch in self.batches:
            found = self.one(batch)
            if found is not None:
                yield found

    def one(self, batch: Any) -> tuple[Any, Any] | None:
        """The rows and weights of a batch, checked; None where it has no row."""
        rows, weights = batch if isinstance(batch, tuple) else (batch, None)
        if streams.is_empty(rows):
            return None
        rows = coded(self.estimator, rows, reset=False)
        rows = check_rows(self.estimator, rows, reset=False, missing=self.missing)
        refuse_outside(rows, self.spaces, getattr(self.estimator, "feature_names_in_", None))
        if weights is not None:
            weights, count = np.asarray(weights, dtype=float), rows.shape[0]
            if weights.shape != (count,) or not np.all(weights >= 0):
                raise ValueError(
                    f"A batch of {count} rows needs as many nonnegative weights; got shape {weights.shape}."
                )
        return rows, weights


class CheckedPieces(CheckedBatches):
    """A table in files: a fault says in which and where, and a long pass tells how far it is."""

    batches: StoredTable
    weights: np.ndarray | None = None  # of all rows

    def weighed(self, weights: Any) -> "CheckedPieces":
        """The same rows with weights, which are in memory."""
        found = type(self)(self.estimator, self.batches, self.missing, self.spaces)
        checked = check_weights(weights, np.empty((self.batches.n_rows, 0)))
        found.weights = None if checked is None else checked / checked.mean()
        return found

    def inside(self, spaces: Spaces) -> "CheckedPieces":
        """The same rows and weights with columns in these spaces."""
        found = type(self)(self.estimator, self.batches, self.missing, spaces)
        found.weights = self.weights
        return found

    def in_batches(self, size: int) -> Iterator[tuple[Any, Any]]:
        """The rows in batches of at most so many."""
        for rows, weights in self:
            yield from streams.batches(rows, weights, size)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        pieces = passing(self.estimator, self.batches.placed(), self.batches.label, self.batches.n_rows)
        start = 0
        for place, piece in pieces:
            try:
                found = self.one(piece)
            except ValueError as error:
                raise type(error)(f"{place}: {error}") from error
            if found is not None:
                rows, end = found[0], start + found[0].shape[0]
                yield rows, None if self.weights is None else self.weights[start:end]
                start = end

    def take(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """The rows with these increasing numbers, and their weights."""
        found, start = [], 0
        for rows, _ in self:
            low, high = np.searchsorted(numbers, [start, start + rows.shape[0]])
            found.append(rows[numbers[low:high] - start])
            start += rows.shape[0]
        return np.concatenate(found), None if self.weights is None else self.weights[numbers]


class CheckedChunks(CheckedBatches):
    """A Dask collection: chunks are checked, and added up, where they are."""

    batches: Chunks

    def total(self, row_sum: streams.RowSum, size: int) -> streams.Total:
        """The sums of ``row_sum(batch, weights)`` over all chunks; batches are of at most so many rows."""
        with timed_pass(self.estimator, f"{len(self.batches.parts):,} chunks"):
            return self.batches.total(partial(_total_of, self.bare(), row_sum, size))

    def take(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """The rows with these increasing numbers, and their weights: no other row leaves its chunk."""
        ends = np.cumsum(self.batches.sizes)
        starts = ends - self.batches.sizes
        asked = [numbers[slice(*np.searchsorted(numbers, pair))] - pair[0] for pair in zip(starts, ends, strict=True)]
        holding = [i for i, inside in enumerate(asked) if len(inside)]
        found = self.batches.some(holding).each(partial(_rows_of, self.bare()), [asked[i] for i in holding])
        rows, weights = zip(*found, strict=True)
        if all(weight is None for weight in weights):
            return np.concatenate(rows), None
        each = [np.ones(len(some)) if weight is None else weight for some, weight in found]
        return np.concatenate(rows), np.concatenate(each)

    def bare(self) -> CheckedBatches:
        """The same checks without the rows, and with no more of the estimator than they ask for: it is sent around."""
        estimator = object.__new__(type(self.estimator))
        vars(estimator).update({name: value for name, value in vars(self.estimator).items() if name in OF_COLUMNS})
        return CheckedBatches(estimator, (), self.missing, self.spaces)


def _total_of(checks: CheckedBatches, row_sum: streams.RowSum, size: int, part: Any) -> streams.Total | None:
    """The sums over one chunk."""
    rows, weights = checks.one(part) or (None, None)
    if rows is None or (weights is not None and not weights.sum() > 0):
        return None
    return streams.total(rows, row_sum, weights, size)


def _rows_of(checks: CheckedBatches, part: Any, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Some rows of a chunk and their weights; the others are not looked at, but to say where the chunk is wrong."""
    if isinstance(part, tuple):
        rows, weights = checks.one(part) or (np.empty((0, 0)), np.empty(0))
        return to_numpy(rows)[numbers], None if weights is None else weights[numbers]
    some = part.iloc[numbers] if hasattr(part, "iloc") else take_rows(part, numbers)
    try:
        rows, _ = checks.one(some) or (np.empty((0, 0)), None)
    except ValueError:
        checks.one(part)
        raise
    return to_numpy(rows), None


def checked_batches(
    estimator: Any, X: Iterable[Any], *, reset: bool, missing: bool = True, spaces: Spaces = NOWHERE
) -> CheckedBatches:
    """A stream checked as it passes; the columns are those of its first batch (``reset``), or of earlier data."""
    if isinstance(X, Chunks):
        if reset:
            check_rows(estimator, _without_text(estimator, X.head()), reset=True, missing=missing)
        return CheckedChunks(estimator, X, missing, spaces)
    if reset:
        every = (batch[0] if isinstance(batch, tuple) else batch for batch in X)
        first = next((rows for rows in every if not streams.is_empty(rows)), None)
        if first is None:
            raise ValueError("The stream holds no batch; at least one row is needed.")
        try:
            check_rows(estimator, coded_first(estimator, X, first), reset=True, missing=missing)
        except ValueError as error:
            raise (type(error)(f"{X.label}: {error}") if isinstance(X, StoredTable) else error) from None
    return (CheckedPieces if isinstance(X, StoredTable) else CheckedBatches)(estimator, X, missing, spaces)


def _without_text(estimator: Any, first: Any) -> Any:
    """The first rows of a chunk, or a sentence on categories that are no numbers, whose codes no chunk knows alone."""
    first = coded(estimator, first, reset=True)
    if getattr(estimator, "categories_", None):
        raise ValueError("Categories in Dask's chunks are codes; turn text into numbers first, such as by .cat.codes.")
    return first


def refuse_outside(x: Any, spaces: Spaces, names: Any = None) -> None:
    """Refuse values outside the space of their column, and warn of those that are hardly in its unit."""
    for j, space in spaces.items():
        if space.affine:  # nothing is outside, so nothing leaves the device that the rows are on
            continue
        column = to_numpy(x[:, j])
        if space.bordered:
            space.check(column, label_of(j, names))
        doubt = space.beyond(column, label_of(j, names))
        if doubt:
            warn_user(doubt)


def label_of(column: int, names: Sequence[str] | None) -> Any:
    """A column as sentences name it."""
    return repr(names[column]) if names is not None else column
