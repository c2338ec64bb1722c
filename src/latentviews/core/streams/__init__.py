"""Batches of rows, and the mean over all rows: the only place where batches are added.

Data are an array of any library, or an iterable that can be read more than once and yields batches, each
a 2-D array or a pair ``(rows, weights)``. An iterable that has a method ``total`` adds its rows up by itself, and one
that knows how many there are (``n_rows``) gives those with some numbers (``take``).
"""

from collections.abc import Callable, Iterable, Iterator
from operator import iadd
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from latentviews._arrays import device_memory, in_doubles, in_library_of, take_rows, to_numpy

BATCH = 4096  # rows; a batch of features then stays in the processor's cache
HELD = 2**24  # bytes that a batch may hold in main memory
ON_HOST, ON_DEVICE = (2**10, 2**16), (2**16, 2**24)  # the fewest and the most rows of a batch
RowSum = Callable[[Any, Any], tuple[Any, ...]]


class Total(NamedTuple):
    """Sums over rows and the weight of those rows; totals of disjoint rows add."""

    sums: tuple[np.ndarray, ...]
    weight: float

    def merge(self, other: "Total") -> "Total":
        """The total over the rows of both."""
        return Total(tuple(a + b for a, b in zip(self.sums, other.sums, strict=True)), self.weight + other.weight)

    def grown(self, other: "Total") -> "Total":
        """The same, in place where arrays can be changed: of a total that nobody else has."""
        return Total(tuple(iadd(a, b) for a, b in zip(self.sums, other.sums, strict=True)), self.weight + other.weight)

    def mean(self) -> tuple[np.ndarray, ...]:
        """The sums over the weight."""
        return tuple(total / self.weight for total in self.sums)


def is_array(data: Any) -> bool:
    """Whether ``data`` is one array rather than an iterable of batches."""
    return hasattr(data, "shape")


def is_empty(batch: Any) -> bool:
    """Whether a batch is an array without rows."""
    return is_array(batch) and batch.shape[0] == 0


def rows_at_once(numbers: int, data: Any) -> int:
    """The rows of a batch that holds so many numbers per row: some megabytes, or a quarter of a device's memory."""
    free = device_memory(data) if is_array(data) else None
    fewest, most = ON_HOST if free is None else ON_DEVICE
    return int(np.clip((HELD if free is None else free // 4) // (8 * max(numbers, 1)), fewest, most))


def batches(data: Any, weights: Any = None, size: int = BATCH) -> Iterator[tuple[Any, Any]]:
    """Pairs of rows and their weights; the weights are None where every row counts once."""
    if is_array(data):
        for start in range(0, data.shape[0], size):
            part = slice(start, min(start + size, data.shape[0]))
            yield data[part, :], None if weights is None else weights[part]
        return
    if hasattr(data, "in_batches"):  # pieces of files are cut as arrays are
        yield from data.in_batches(size)
        return
    if isinstance(data, Iterator) or not isinstance(data, Iterable):
        raise TypeError(
            f"Data must be an array or an iterable that can be read more than once; got {type(data).__name__}, "
            "which cannot. Pass an object whose __iter__ starts again from the first batch."
        )
    for batch in data:
        yield batch if isinstance(batch, tuple) else (batch, None)


def head(x: Any, size: int) -> Any:
    """The first rows of an array of any library, at most ``size``."""
    return x[: min(size, x.shape[0]), ...]


def single_pass(data: Any, size: int, *along: Any) -> Iterator[tuple[Any, ...]]:
    """Batches of at most ``size`` rows, and what belongs to them in the arrays ``along``, from data read a single time.

    Data are an array, or any iterable of batches, a generator too; a batch may be a tuple, rows first. Larger batches
    are cut.
    """
    batches = [(data, *along)] if is_array(data) else data
    for batch in batches:
        parts = batch if isinstance(batch, tuple) else (batch,)
        for start in range(0, parts[0].shape[0], size):
            cut = slice(start, min(start + size, parts[0].shape[0]))
            yield tuple(part if part is None else part[cut, ...] for part in parts)


def total(data: Any, row_sum: RowSum, weights: Any = None, size: int = BATCH) -> Total:
    """The sums of ``row_sum(batch, weights)`` over all batches, in float64; on the rows' device until the last."""
    if hasattr(data, "total"):  # rows that are added up where they are
        return data.total(row_sum, size)
    result: Total | None = None
    for i, (batch, weight) in enumerate(batches(data, weights, size)):
        count = float(batch.shape[0]) if weight is None else float(in_doubles(weight).sum())
        part = Total(tuple(in_doubles(part) for part in row_sum(batch, weight)), count)
        result = part if result is None else result.merge(part) if i == 1 else result.grown(part)
    if result is None or not result.weight > 0:
        raise ValueError("The data hold no row of positive weight; at least one is needed.")
    return Total(tuple(to_numpy(part) for part in result.sums), result.weight)


def mean(data: Any, row_sum: RowSum, weights: Any = None) -> tuple[np.ndarray, ...]:
    """The means over all rows of what ``row_sum(batch, weights)`` adds up."""
    return total(data, row_sum, weights).mean()


def weigh(phi: Any, weights: Any) -> Any:
    """The rows of ``phi`` times their weights."""
    if weights is None:
        return phi
    if sparse.issparse(phi):
        each = np.repeat(to_numpy(weights), np.diff(phi.indptr))
        return sparse.csr_array((phi.data * each, phi.indices, phi.indptr), shape=phi.shape)
    return phi.weighed(weights) if hasattr(phi, "weighed") else phi * in_library_of(weights, phi)[:, None]


def sample(data: Any, size: int | None, rng: np.random.Generator, *along: Any) -> tuple[Any, ...]:
    """At most ``size`` rows, uniformly without replacement, and what belongs to them in the arrays ``along``.

    All rows if ``size`` is None. An iterable is read once, never more than ``size`` rows and a batch are held, and its
    own weights come in place of the first of ``along``. Where it knows how many rows it has, those drawn are the same
    as of an array.
    """
    if not is_array(data):
        if size is None:
            return (data, None, *along[1:])
        count = getattr(data, "n_rows", None)
        drawn = _reservoir(data, size, rng) if count is None else data.take(_draw(count, size, rng))
        return (*drawn, *along[1:])
    if size is None or data.shape[0] <= size:
        return (data, *along)
    rows = _draw(data.shape[0], size, rng)
    return (take_rows(data, rows), *(None if values is None else values[rows] for values in along))


def _draw(count: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """Increasing numbers of ``size`` rows out of ``count``; of all where they are no more."""
    return np.arange(count) if count <= size else np.sort(rng.choice(count, size=size, replace=False))


def _reservoir(data: Any, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray | None]:
    """Rows with the ``size`` smallest random keys, and their weights if the stream has any.

    Where there are no more rows, nothing is drawn, as of an array.
    """
    kept, kept_weights, keys, weighted = None, np.empty(0), np.empty(0), False
    before, count = rng.bit_generator.state, 0
    for batch, weight in batches(data):
        rows = to_numpy(batch)
        weighted = weighted or weight is not None
        kept = rows if kept is None else np.concatenate([kept, rows])
        kept_weights = np.append(kept_weights, np.ones(len(rows)) if weight is None else to_numpy(weight))
        keys, count = np.append(keys, rng.random(len(rows))), count + len(rows)
        lowest = np.sort(np.argsort(keys, kind="stable")[:size])
        kept, kept_weights, keys = kept[lowest], kept_weights[lowest], keys[lowest]
    if kept is None:
        raise ValueError("The data hold no batch; at least one row is needed.")
    if count == len(kept):
        rng.bit_generator.state = before
    return kept, kept_weights if weighted else None


def row_weights(weights: np.ndarray | None) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The weights of rows and the classes they may be in, from weights of rows, or of rows in classes (n, k)."""
    if weights is None or weights.ndim == 1:
        return weights, None
    return weights.max(axis=1), weights > 0
