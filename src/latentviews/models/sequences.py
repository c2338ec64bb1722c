"""Sequences one under the other: their lengths, their stretches, and the triples of consecutive rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from latentviews.chains import first_rows
from latentviews.kernels import Kernel
from latentviews.polish import Pilot, SieveView
from latentviews.sieve import Cells, Mixing, chain_smoothing, chain_step, chain_weights, initial_mixing
from latentviews.views import Columns

WINDOW = 500  # rows of a stretch that a pilot is made of
BATCH = 2**14  # rows whose cells are held at once


def check_lengths(lengths: Any, n_rows: int, y: Any = None) -> np.ndarray:
    """How long every sequence is: whole positive numbers that add up to the rows; one sequence by default.

    ``y`` is what ``fit`` was given in the place where other libraries have the lengths: it is one a row, or a mistake.
    """
    if y is not None and np.size(y) != n_rows:
        raise ValueError(
            f"y is ignored and stands for one value a row; got {np.size(y)} for {n_rows} rows. Pass the lengths of "
            "sequences by name: fit(X, lengths=...)."
        )
    if lengths is None:
        return np.array([n_rows])
    try:
        given = np.atleast_1d(np.asarray(lengths))
    except ValueError:  # lists of different lengths
        given = np.empty(0)
    if given.ndim != 1 or not given.size or given.dtype.kind not in "iu" or given.min() < 1:
        raise ValueError(f"lengths must be a list of positive integers, one a sequence; got {lengths!r}.")
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


def check_levels(q: Any) -> np.ndarray:
    """Levels of quantiles, (n_levels,)."""
    levels = np.atleast_1d(np.asarray(q))
    if levels.ndim != 1 or not levels.size or levels.dtype.kind not in "iuf" or not np.all((levels > 0) & (levels < 1)):
        raise ValueError(f"q must be a level between 0 and 1, or a list of them; got {q!r}.")
    return levels


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


def triples(table: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Rows (x_{t-1}, x_t, x_{t+1}) inside sequences, (n, 3d)."""
    first = first_rows(lengths)
    inside = ~(first[1:-1] | first[2:])
    return np.concatenate([table[:-2][inside], table[1:-1][inside], table[2:][inside]], axis=1)


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
    return (sums[high] - sums[low]) / (high - low)[:, None]


@dataclass(frozen=True, eq=False)
class ChainPilot:
    """Rows of sequences that a polish is fitted to by Baum–Welch: a `Pilot` whose rows know of each other."""

    rows: Pilot
    lengths: np.ndarray

    @property
    def table(self) -> np.ndarray:
        """The rows of all sequences."""
        return self.rows.table

    def by_block(self) -> dict[int, tuple[np.ndarray, Kernel]]:
        """The rows of every view, none missing, and their kernel."""
        return self.rows.by_block()

    def views(self, shared: dict[int, SieveView]) -> tuple[SieveView, ...]:
        """A sieve for every view."""
        return self.rows.views(shared)

    def cells(self, views: Sequence[SieveView]) -> list[Cells]:
        """The rows in the cells of every view."""
        return self.rows.cells(views)

    def some(self, rows: np.ndarray) -> "ChainPilot":
        """The same with some of the rows, whose numbers increase: runs of them are sequences."""
        return ChainPilot(self.rows.some(rows), stretches(rows, first_rows(self.lengths)))

    def draw(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """Numbers of some rows to try things on, in stretches."""
        return draw_windows(self.lengths, size, rng)

    def halves(self) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the rows in two halves of alternating stretches: neighbours in time are nearly copies."""
        pieces = windows(self.lengths, min(WINDOW, max(len(self.table) // 8, 3)))
        if len(pieces) < 2:
            return self.rows.halves()
        return np.concatenate(pieces[::2]), np.concatenate(pieces[1::2])

    def initial(self, cells: Sequence[Cells], posteriors: np.ndarray) -> Mixing:
        """Parameters from a guess of the posteriors."""
        inner = ~first_rows(self.lengths)[1:]
        moves = posteriors[:-1][inner].T @ posteriors[1:][inner]
        coefficients = initial_mixing(cells, posteriors).coefficients
        return Mixing(chain_weights(posteriors, moves, self.lengths), coefficients)

    def step(self, cells: Sequence[Cells], mixing: Mixing) -> tuple[Mixing, float]:
        """One step of Baum–Welch, and the mean log-likelihood before it."""
        return chain_step([(slice(None), cells)], mixing, self.lengths)

    def score(self, cells: Sequence[Cells], mixing: Mixing) -> float:
        """The mean log-likelihood of a row."""
        return float(chain_smoothing([(slice(None), cells)], mixing, self.lengths).log_likelihood.mean())


@dataclass(frozen=True, eq=False)
class CellBatches:
    """The cells of a long table, some rows at a time."""

    table: np.ndarray
    views: Sequence[SieveView]

    def __iter__(self) -> Iterator[tuple[slice, list[Cells]]]:
        for low in range(0, len(self.table), BATCH):
            rows = slice(low, low + BATCH)
            yield rows, [view.cells(self.table[rows]) for view in self.views]
