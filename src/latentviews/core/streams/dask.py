"""Rows in Dask's chunks: every chunk is added up where it is, and only small sums and some rows travel.

Dask is imported where one of its collections is at hand, and not before.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from latentviews.core.streams import Total

FAN = 8  # sums that are added in one task
HEAD = 1000  # rows that the columns are read off


class Chunks:
    """The chunks of a Dask array or DataFrame, or a list of delayed batches, none of which is fetched.

    A delayed batch may be a pair of rows and weights.
    """

    def __init__(
        self,
        parts: Sequence[Any],
        sizes: Sequence[float] | None = None,
        places: Sequence[str] | None = None,
        counted: Sequence[Any] | None = None,
    ):
        self.parts = list(parts)
        self.known_sizes = sizes
        self.counted = counted
        self.places = places or [f"Chunk {number + 1:,} of {len(self.parts):,}" for number in range(len(self.parts))]

    def some(self, numbers: Sequence[int]) -> "Chunks":
        """Some of the chunks."""
        sizes = None if self.known_sizes is None else [self.known_sizes[i] for i in numbers]
        return Chunks([self.parts[i] for i in numbers], sizes, [self.places[i] for i in numbers])

    def __iter__(self) -> Iterator[Any]:
        raise TypeError(
            "The chunks of a Dask collection are not fetched one by one, and what was asked for needs that; compute "
            "the rows, or some of them, first."
        )

    @cached_property
    def sizes(self) -> np.ndarray:
        """The number of rows of every chunk; where Dask does not know them, each is counted where it is."""
        known = self.known_sizes
        if known is None or np.isnan(known).any():
            known = Chunks(self.parts if self.counted is None else self.counted).each(_count)
        return np.asarray(known, dtype=int)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.sizes.sum())

    def head(self) -> Any:
        """The first rows of the first chunk that has any."""
        filled = np.flatnonzero(self.sizes)
        if not len(filled):
            raise ValueError("The Dask collection holds no row; at least one is needed.")
        return self.some(filled[:1].tolist()).each(_head)[0]

    def each(self, function: Callable[..., Any], *along: Sequence[Any]) -> list[Any]:
        """What a function gives of every chunk, and of what belongs to it in ``along``; it should be small."""
        return list(computed(self._tasks(function, along)))

    def total(self, function: Callable[..., Total | None], *along: Sequence[Any]) -> Total:
        """The sum of what a function gives of every chunk, None for nothing: a task per chunk, added as a tree."""
        from dask import delayed

        sums, added = self._tasks(function, along), delayed(_added, pure=False)
        while len(sums) > 1:
            sums = [added(sums[i : i + FAN]) for i in range(0, len(sums), FAN)]
        (found,) = computed(sums)
        if found is None:
            raise ValueError("The data hold no row of positive weight; at least one is needed.")
        return found

    def lazily(self, function: Callable[..., Any], shape: tuple[int, ...], dtype: type, *along: Sequence[Any]) -> Any:
        """A Dask array of what a function gives of every chunk: a number or an array of this shape for every row."""
        from dask import array

        sizes = [np.nan] * len(self.parts) if self.known_sizes is None else self.known_sizes
        parts = zip(self._tasks(function, along), sizes, strict=True)
        return array.concatenate([array.from_delayed(task, (size, *shape), dtype) for task, size in parts])

    def _tasks(self, function: Callable[..., Any], along: Sequence[Sequence[Any]]) -> list[Any]:
        """A task per chunk; what the function holds is sent to every worker once."""
        from dask import delayed

        sent, called = delayed(Sent(function), pure=False, traverse=False), delayed(_called, pure=False)
        return [called(sent, *one) for one in zip(self.places, self.parts, *along, strict=True)]


class Sent:
    """A function on its way to the workers, which Dask is not to look into."""

    def __init__(self, function: Callable[..., Any]):
        self.function = function


def is_dask(X: Any) -> bool:
    """Whether ``X`` is a Dask collection, or a list of delayed batches."""
    if isinstance(X, list | tuple):
        return bool(X) and all(_from_dask(batch) for batch in X)
    return _from_dask(X)


def _from_dask(X: Any) -> bool:
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr")


def as_chunks(X: Any) -> Chunks:
    """What `is_dask` says yes to as chunks of rows, or a sentence on why it is no table."""
    if isinstance(X, list | tuple):
        if not all(is_delayed(batch) for batch in X):
            raise TypeError(
                "A list of Dask collections is taken for neither views nor batches; put them together with "
                "dask.array.concatenate, side by side (axis=1) or one under the other."
            )
        return Chunks(X)
    if is_delayed(X):
        return Chunks([X])
    if getattr(X, "ndim", None) != 2:
        known = hasattr(X, "numblocks")
        got = f"shape {X.shape}. Make x of one column x[:, None]" if known else f"a {type(X).__name__}"
        raise ValueError(f"Rows in a Dask collection have two dimensions; got {got}.")
    if hasattr(X, "columns"):
        return Chunks(X.to_delayed(), counted=X[list(X.columns[:1])].to_delayed())  # rows are counted by one column
    if X.dtype.kind not in "biuf":
        raise ValueError(f"A Dask array of rows holds numbers; got {X.dtype}. Turn its values into numbers first.")
    X = X if X.numblocks[1] == 1 else X.rechunk({1: -1})  # a chunk of rows has all columns
    return Chunks(X.to_delayed().ravel(), X.chunks[0])


def is_delayed(X: Any) -> bool:
    """Whether ``X`` is a delayed batch, which seems to have any attribute."""
    return _from_dask(X) and hasattr(X, "key") and not hasattr(type(X), "shape")


def computed(tasks: Sequence[Any]) -> tuple[Any, ...]:
    """What tasks give, by the scheduler that Dask is set to, or a sentence where that is gone."""
    import dask

    try:
        found = dask.compute(*tasks)
    except Exception as error:
        if type(error).__name__ not in GONE and not str(error).startswith("Missing dependency"):
            raise
        raise RuntimeError(_gone(type(error).__name__)) from error
    if any(isinstance(one, str) for one in found):  # keys of rows in place of rows: what earlier versions of Dask gave
        raise RuntimeError(_gone("keys in place of rows"))
    return found


def _gone(why: str) -> str:
    return (
        f"Dask's scheduler is closed or cannot be reached ({why}), and so are rows that were persisted there; start a "
        "cluster and a client again, and fit once more."
    )


GONE = ("ClosedClientError", "CommClosedError", "CancelledError", "FutureCancelledError", "FuturesCancelledError")


def _called(sent: Sent, place: str, part: Any, *along: Any) -> Any:
    """A function of one chunk, on a worker; a fault says of which."""
    try:
        return sent.function(part, *along)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{place}: {error}") from error


def _added(sums: Sequence[Total | None]) -> Total | None:
    """The total of some totals."""
    found: Total | None = None
    for part in sums:
        found = part if found is None else found if part is None else found.merge(part)
    return found


def _rows_of(part: Any) -> Any:
    return part[0] if isinstance(part, tuple) else part


def _count(part: Any) -> int:
    return len(_rows_of(part))


def _head(part: Any) -> Any:
    return _rows_of(part)[:HEAD]
