"""Baum–Welch on a sieve: rows of sequences that a polish asks for its steps.

The parameters of a chain are those of a sieve whose weights are (k, k + 1): a column for the law of the first state,
and one for the law of the next after each state.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from latentviews._arrays import is_foreign, namespace, take_rows
from latentviews._numbers import TINY, column_sums
from latentviews.core.kernels.base import Kernel
from latentviews.mixtures.cells import Basis, SieveView, view_cells
from latentviews.mixtures.fit_rows import Halves, MixtureRows, alternating
from latentviews.mixtures.sieve import (
    SieveParameters,
    SieveRows,
    as_probabilities,
    gathered_sums,
    initial_parameters,
    updated_coefficients,
)
from latentviews.sequences.chains import Smoothing, first_rows, smooth_densities, smooth_states
from latentviews.sequences.stretches import WINDOW, draw_windows, stretches, windows

CellStream = Iterable[tuple[slice, Sequence[SieveRows]]]  # the cells of some rows at a time, read more than once


def chain_smoothing(stream: CellStream, parameters: SieveParameters, lengths: np.ndarray) -> Smoothing:
    """The E-step of a chain: what all rows of every sequence say of its states and moves."""
    parts = [_log_emissions(cells, _densities(cells, parameters)) for _, cells in stream]
    log_emissions = parts[0] if len(parts) == 1 else namespace(parts[0]).concat(parts, axis=0)
    del parts
    return smooth_states(log_emissions, *chain_laws(parameters), lengths)


def _densities(cells: Sequence[SieveRows], parameters: SieveParameters) -> list[Any]:
    """p(x_t | h) of some rows in every view, (n, k) each."""
    return [view.density(parameters.coefficients[view.block]) for view in cells]


def _log_emissions(cells: Sequence[SieveRows], densities: Sequence[Any]) -> Any:
    """Log p(x_t | h) of some rows, (n, k), where they are."""
    xp = namespace(densities[0])
    found = sum(xp.log(density) for density in densities[1:]) + xp.log(densities[0])
    units = sum(view.log_units for view in cells)
    return found if isinstance(units, float) else found + units[:, None]


def chain_laws(parameters: SieveParameters) -> tuple[np.ndarray, np.ndarray]:
    """The law of the first state, (k,), and the transition matrix, (k, k), of a chain's parameters."""
    return parameters.weights[:, 0], parameters.weights[:, 1:].T


def chain_step(stream: CellStream, parameters: SieveParameters, lengths: np.ndarray) -> tuple[SieveParameters, float]:
    """One step of Baum–Welch on a sieve, and the mean log-likelihood per row before it."""
    return chain_update(parameters, chain_sums(stream, parameters, lengths))


def chain_sums(stream: CellStream, parameters: SieveParameters, lengths: np.ndarray) -> tuple[Any, ...]:
    """What a step needs of the rows: first states, moves, the log-likelihood, rows, and sums over the cells."""
    smoothed = chain_smoothing(stream, parameters, lengths)
    sums: list[Any] = []
    for rows, cells in stream:
        part = gathered_sums(cells, parameters, smoothed.posteriors[rows], _densities(cells, parameters))
        sums = [a + b for a, b in zip(sums, part, strict=True)] if sums else part
    return _with_moves(smoothed, lengths, sums)


def held_sums(cells: Sequence[SieveRows], parameters: SieveParameters, lengths: np.ndarray) -> tuple[Any, ...]:
    """What `chain_sums` gives, of rows whose cells are all held, and their densities with them."""
    densities = _densities(cells, parameters)
    if len(densities) == 1 and isinstance(cells[0].log_units, float):
        smoothed = smooth_densities(densities[0], *chain_laws(parameters), lengths)
    else:
        smoothed = smooth_states(_log_emissions(cells, densities), *chain_laws(parameters), lengths)
    return _with_moves(smoothed, lengths, gathered_sums(cells, parameters, smoothed.posteriors, densities))


def _with_moves(smoothed: Smoothing, lengths: np.ndarray, sums: Sequence[Any]) -> tuple[Any, ...]:
    """First states, moves, the log-likelihood and the number of rows before other sums."""
    first = column_sums(take_rows(smoothed.posteriors, np.cumsum(lengths) - lengths))
    return first, smoothed.moves, smoothed.log_likelihood.sum(), smoothed.posteriors.shape[0], *sums


def chain_update(parameters: SieveParameters, sums: Sequence[Any]) -> tuple[SieveParameters, float]:
    """The parameters after a step, and the mean log-likelihood per row before it, from the sums of `chain_sums`."""
    first, moves, log_likelihood, n_rows, *cells = sums
    coefficients = updated_coefficients(parameters, cells)
    return SieveParameters(chain_weights(first, moves), coefficients), float(log_likelihood / n_rows)


def chain_weights(first: np.ndarray, moves: np.ndarray) -> np.ndarray:
    """The laws of a chain, one column each, from counts of first states and of moves."""
    counts = np.concatenate([first[:, None], moves.T], axis=1)
    return as_probabilities(counts / (counts.sum(axis=0) + TINY))


BATCH, THERE = 2**14, 2**22  # rows whose cells are held at once, in main memory and on a device


def alternating_stretches(lengths: np.ndarray) -> Halves:
    """Row numbers in two halves whose stretches take turns: neighbours in time are nearly copies."""
    n_rows = int(np.sum(lengths))
    pieces = windows(lengths, min(WINDOW, max(n_rows // 8, 3)))
    return (np.concatenate(pieces[::2]), np.concatenate(pieces[1::2])) if len(pieces) > 1 else alternating(n_rows)


@dataclass(frozen=True, eq=False)
class ChainRows:
    """Rows of sequences that a polish is fitted to by Baum–Welch: rows that know of each other."""

    rows: MixtureRows
    lengths: np.ndarray

    @property
    def table(self) -> np.ndarray:
        """The rows of all sequences."""
        return self.rows.table

    def by_block(self) -> dict[int, tuple[np.ndarray, Kernel]]:
        """The rows of every view, none missing, and their kernel."""
        return self.rows.by_block()

    def views(self, shared: dict[int, Basis]) -> tuple[SieveView, ...]:
        """A sieve for every view."""
        return self.rows.views(shared)

    def cells(self, views: Sequence[SieveView]) -> list[SieveRows]:
        """The rows in the cells of every view."""
        return self.rows.cells(views)

    def some(self, rows: np.ndarray) -> "ChainRows":
        """The same with some of the rows, whose numbers increase: runs of them are sequences."""
        return ChainRows(self.rows.some(rows), stretches(rows, first_rows(self.lengths)))

    def draw(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """Numbers of some rows to try things on, in stretches."""
        return draw_windows(self.lengths, size, rng)

    def halves(self) -> Halves:
        """Numbers of the rows in two halves of alternating stretches."""
        return alternating_stretches(self.lengths)

    @property
    def allowed(self) -> np.ndarray | None:
        """What is known of the rows' states."""
        return self.rows.allowed

    def clusters(self, rank: int, seed: int) -> np.ndarray:
        """A guess of the posteriors by k-means of the rows."""
        return self.rows.clusters(rank, seed)

    def initial(self, cells: Sequence[SieveRows], posteriors: np.ndarray) -> SieveParameters:
        """Parameters from a guess of the posteriors."""
        inner = ~first_rows(self.lengths)[1:]
        moves = posteriors[:-1][inner].T @ posteriors[1:][inner]
        coefficients = initial_parameters(cells, posteriors).coefficients
        first = posteriors[first_rows(self.lengths)].sum(axis=0)
        return SieveParameters(chain_weights(first, moves), coefficients)

    def step(self, cells: Sequence[SieveRows], parameters: SieveParameters) -> tuple[SieveParameters, float]:
        """One step of Baum–Welch, and the mean log-likelihood before it."""
        return chain_update(parameters, held_sums(cells, parameters, self.lengths))

    def posteriors(self, cells: Sequence[SieveRows], parameters: SieveParameters) -> np.ndarray:
        """What a fit says of the rows' states, (n, k)."""
        return chain_smoothing([(slice(None), cells)], parameters, self.lengths).posteriors

    def score(self, cells: Sequence[SieveRows], parameters: SieveParameters) -> float:
        """The mean log-likelihood of a row."""
        return float(chain_smoothing([(slice(None), cells)], parameters, self.lengths).log_likelihood.mean())


@dataclass(frozen=True, eq=False)
class CellBatches:
    """The cells of a long table, some rows at a time."""

    table: Any
    views: Sequence[SieveView]

    def __iter__(self) -> Iterator[tuple[slice, list[SieveRows]]]:
        n_rows, size = self.table.shape[0], THERE if is_foreign(self.table) else BATCH
        for low in range(0, n_rows, size):
            rows = slice(low, min(low + size, n_rows))
            yield rows, view_cells(self.views, self.table[rows, :])
