"""Whole sequences in Dask's chunks or on a device: what a fit asks of all rows is added up where they are."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from latentviews._arrays import take_rows, to_numpy
from latentviews._progress import timed_pass
from latentviews.core import streams
from latentviews.core.checked import CheckedBatches, CheckedChunks, Spaces, brought, refuse_outside
from latentviews.core.streams.dask import Chunks
from latentviews.sequences.stretches import check_lengths, triples

Derive = Callable[[Any, np.ndarray], tuple[Any, Any]]  # from rows and lengths to rows and weights


class SummedSequences(ABC):
    """Rows of sequences that stay where they are, and of which a fit asks for sums."""

    lengths: list[np.ndarray]  # of the sequences of every chunk

    def __len__(self) -> int:
        return int(sum(length.sum() for length in self.lengths))

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self)

    def triples(self) -> "DerivedRows":
        """Rows (x_{t-1}, x_t, x_{t+1}) inside sequences."""
        size = sum(int(np.maximum(length - 2, 0).sum()) for length in self.lengths)
        return DerivedRows(self, _triples, size)

    @abstractmethod
    def inside(self, spaces: Spaces) -> "SummedSequences":
        """The same with its columns in these spaces."""

    @abstractmethod
    def take(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """The rows with these increasing numbers, in NumPy, and their weights."""

    @abstractmethod
    def total(self, sums: Callable[[Any, np.ndarray], tuple[Any, ...]]) -> tuple[np.ndarray, ...]:
        """What ``sums(rows, lengths)`` gives of all rows, added up."""

    @abstractmethod
    def derived_total(self, derive: Derive, row_sum: streams.RowSum, size: int) -> streams.Total:
        """The sums of ``row_sum`` over the rows and weights that ``derive`` makes of them."""


class ChunkedSequences(SummedSequences):
    """The rows of sequences, none of which goes over the end of a chunk."""

    def __init__(self, rows: CheckedChunks, lengths: list[np.ndarray]):
        self.rows = rows
        self.lengths = lengths

    def inside(self, spaces: Spaces) -> "ChunkedSequences":
        """The same with its columns in these spaces."""
        rows = self.rows.inside(spaces)
        assert isinstance(rows, CheckedChunks)
        return ChunkedSequences(rows, self.lengths)

    def take(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """The rows with these increasing numbers."""
        return self.rows.take(numbers)

    def total(self, sums: Callable[[np.ndarray, np.ndarray], tuple[Any, ...]]) -> tuple[np.ndarray, ...]:
        """What ``sums(rows, lengths)`` gives of every chunk, added up."""
        return self._total(partial(_sums_of, self.rows.bare(), sums)).sums

    def derived_total(self, derive: Derive, row_sum: streams.RowSum, size: int) -> streams.Total:
        """The sums of ``row_sum`` over the rows and weights that ``derive`` makes of every chunk."""
        return self._total(partial(_derived_total, self.rows.bare(), derive, row_sum, size))

    def _total(self, function: Callable[..., streams.Total | None]) -> streams.Total:
        with timed_pass(self.rows.estimator, f"{len(self.lengths):,} chunks"):
            return self.rows.batches.total(function, self.lengths)


class DeviceSequences(SummedSequences):
    """The rows of sequences in another array library, which stay where they are: one chunk."""

    def __init__(self, table: Any, lengths: np.ndarray):
        self.table = table
        self.lengths = [lengths]

    def inside(self, spaces: Spaces) -> "DeviceSequences":
        """The same, its values found to be in these spaces."""
        refuse_outside(self.table, spaces)
        return self

    def take(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """The rows with these numbers, in NumPy."""
        return to_numpy(take_rows(self.table, numbers)), None

    def total(self, sums: Callable[[Any, np.ndarray], tuple[Any, ...]]) -> tuple[np.ndarray, ...]:
        """What ``sums(rows, lengths)`` gives, in NumPy."""
        return tuple(to_numpy(part) for part in sums(self.table, self.lengths[0]))

    def derived_total(self, derive: Derive, row_sum: streams.RowSum, size: int) -> streams.Total:
        """The sums of ``row_sum`` over the rows and weights that ``derive`` makes of them."""
        rows, weights = derive(self.table, self.lengths[0])
        return streams.total(rows, row_sum, weights, streams.rows_at_once(rows.shape[1], rows))


class DerivedRows:
    """Rows, perhaps with weights, that are made of every chunk's sequences where they are."""

    def __init__(self, sequences: SummedSequences, derive: Derive, size: int):
        self.sequences = sequences
        self.derive = derive
        self.size = size

    def __len__(self) -> int:
        return self.size

    def total(self, row_sum: streams.RowSum, size: int) -> streams.Total:
        """The sums of ``row_sum(batch, weights)`` over all of them; batches are of at most so many rows."""
        return self.sequences.derived_total(self.derive, row_sum, size)


def _triples(rows: Any, lengths: np.ndarray) -> tuple[Any, None]:
    return triples(rows, lengths), None


def _sums_of(checks: CheckedBatches, sums: Callable[..., Any], part: Any, lengths: np.ndarray) -> streams.Total | None:
    """Sums over the sequences of one chunk."""
    rows, _ = checks.one(part) or (None, None)
    return None if rows is None else streams.Total(tuple(sums(to_numpy(rows), lengths)), float(rows.shape[0]))


def _derived_total(
    checks: CheckedBatches, derive: Derive, row_sum: streams.RowSum, size: int, part: Any, lengths: np.ndarray
) -> streams.Total | None:
    """Sums over what is made of the sequences of one chunk."""
    rows, _ = checks.one(part) or (None, None)
    made, weights = (None, None) if rows is None else derive(to_numpy(rows), lengths)
    return None if made is None or not len(made) else streams.total(made, row_sum, weights, size)


def chunked_sequences(rows: CheckedChunks, lengths: Any) -> ChunkedSequences:
    """Sequences as ``lengths`` say, each inside one chunk; by default every chunk is one."""
    return ChunkedSequences(rows, lengths_by_chunk(lengths, rows.batches.sizes))


def lengths_by_chunk(lengths: Any, sizes: np.ndarray) -> list[np.ndarray]:
    """The lengths of the sequences of every chunk, or a sentence where one goes over the end of a chunk."""
    if lengths is None:
        return [np.array([size] if size else [], dtype=int) for size in sizes]
    given = check_lengths(lengths, int(sizes.sum()))
    ends, bounds = np.cumsum(given), np.cumsum(sizes)
    cut = np.flatnonzero(~np.isin(bounds, ends) & (bounds > 0))
    if len(cut):
        raise ValueError(
            f"A sequence goes over the end of chunk {cut[0] + 1:,}, after row {bounds[cut[0]]:,}; chunks hold whole "
            "sequences; rechunk the rows so that they do."
        )
    starts = np.searchsorted(ends, bounds - sizes, side="right")
    return [given[low:high] for low, high in zip(starts, np.searchsorted(ends, bounds, side="right"), strict=True)]


def by_sequences(width: str | None = None, dtype: type = float) -> Callable[[Any], Any]:
    """A method with an answer for every row of sequences, which then also takes Dask collections, and is lazy there.

    ``width`` names the attribute that says how many columns the answer has; None where it is one number per row.
    """

    def decorated(method: Any) -> Any:
        @wraps(method)
        def answer(self: Any, X: Any, *, lengths: Any = None) -> Any:
            chunks = brought(X)
            if not isinstance(chunks, Chunks):
                return method(self, X, lengths=lengths)
            check_is_fitted(self)
            shape = () if width is None else (int(getattr(self, width)),)
            parts = [None] * len(chunks.parts) if lengths is None else lengths_by_chunk(lengths, chunks.sizes)
            return chunks.lazily(partial(_answers, partial(method, self), shape), shape, dtype, parts)

        return answer

    return decorated


def _answers(method: Callable[..., Any], shape: tuple[int, ...], part: Any, lengths: Any) -> Any:
    """What a method says of the rows of one chunk, which may have none."""
    rows = part[0] if isinstance(part, tuple) else part
    return method(rows, lengths=lengths) if len(rows) else np.empty((0, *shape))
