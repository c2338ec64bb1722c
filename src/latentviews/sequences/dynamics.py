"""How a predictive state moves: what all dynamics offer, and what they are learnt from.

A predictive state is what the past says of the future, as a vector, with no latent states behind it. Every kind of
dynamics learns from feature vectors of rows and gives a record that starts a state, moves it by a row, and reads
forecasts off it.
"""

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any, NamedTuple, Protocol

import numpy as np

from latentviews._numbers import TINY, ridge_solve, thin_svd
from latentviews.comparison.conditional_operators import ConditionalOperator

BATCH = 4096
WIDE = 400  # columns from which on few rows are worked with instead


class Series(NamedTuple):
    """Rows of sequences, one under the other, as numbers and as feature vectors."""

    x: np.ndarray  # (n, d), standardised
    phi: np.ndarray  # (n, D)
    lengths: np.ndarray

    def take(self, rows: np.ndarray, lengths: np.ndarray) -> "Series":
        """Some rows, by their numbers, in sequences of these lengths."""
        return Series(self.x[rows], self.phi[rows], lengths)

    def ahead(self, horizon: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows x_t, …, x_{t+horizon-1}, (n, horizon, d), and whether all lie in the sequence of row t, (n,)."""
        n = len(self.x)
        place = np.minimum(np.arange(n)[:, None] + np.arange(horizon), n - 1)
        ends = np.repeat(np.cumsum(self.lengths), self.lengths)
        return self.x[place], np.arange(n) + horizon <= ends

    def recent(self, rows: np.ndarray, size: int, *, upto: bool = False) -> np.ndarray:
        """The last rows before these (up to these), newest first, (m, size * d); zeros where their sequence began."""
        begins = (np.repeat(np.cumsum(self.lengths) - self.lengths, self.lengths))[rows]
        there = (rows + upto)[:, None] - np.arange(1, size + 1)
        seen = self.x[np.maximum(there, 0)] * (there >= begins[:, None])[:, :, None]
        return seen.reshape(len(rows), -1)


class Dynamics(Protocol):
    """What was learned of how a predictive state moves."""

    @property
    def start(self) -> np.ndarray:
        """The state before any row, (p,)."""

    @property
    def memory(self) -> int:
        """How many last rows a forecast is made from, beside the state."""

    def step(self, states: np.ndarray, phi: np.ndarray) -> np.ndarray:
        """The states (m, p) after a row with features (m, D) each."""

    def forecast(self, states: np.ndarray, recent: np.ndarray, horizon: int) -> np.ndarray:
        """The next rows (m, horizon, d) expected from states (m, p) and the last rows (m, memory * d)."""


def run(dynamics: Dynamics, phi: np.ndarray, lengths: np.ndarray, starts: np.ndarray | None = None) -> np.ndarray:
    """The state before every row, (n, p), and after the last of each sequence, (n_sequences, p), stacked.

    ``starts`` are the states before the first rows, by default those before any row. Sequences run side by side.
    """
    begins = np.cumsum(lengths) - lengths
    order = np.argsort(-lengths, kind="stable")  # those that end first stand last
    states = np.tile(dynamics.start, (len(lengths), 1)) if starts is None else starts
    states = states[order]
    before, after = np.empty((len(phi), len(dynamics.start))), np.empty((len(lengths), len(dynamics.start)))
    for t in range(int(lengths.max(initial=0))):
        active = int(np.searchsorted(-lengths[order], -t, side="left"))
        rows = begins[order[:active]] + t
        before[rows] = states[:active]
        states[:active] = dynamics.step(states[:active], phi[rows])
    after[order] = states
    return np.concatenate([before, after])


def with_one(values: np.ndarray) -> np.ndarray:
    """A column of ones beside the values, for intercepts."""
    return np.concatenate([values, np.ones((len(values), 1))], axis=1)


def ridge(parts: Iterable[tuple[np.ndarray, np.ndarray]], penalty: float, free: int = 1) -> np.ndarray:
    """(AᵀA / n + penalty · mean diagonal)⁻¹ Aᵀ B / n for inputs A and targets B, some rows at a time.

    The last ``free`` inputs, one among them, are not penalised.
    """
    parts = iter(parts)
    first = list(islice(parts, 2))
    if len(first) == 1 and _is_wide(first[0][0]):
        return _wide_ridge(*first[0], penalty, free)
    gram: Any = 0.0
    cross: Any = 0.0
    for inputs, targets in chain(first, parts):
        gram, cross = gram + inputs.T @ inputs, cross + inputs.T @ targets
    level = np.trace(gram) / len(gram)
    strength = np.full(len(gram), (penalty + 1e-12) * level)
    strength[-free:] = 1e-12 * level
    return ConditionalOperator.of_moments(cross.T, gram, strength).matrix.T


def _wide_ridge(inputs: np.ndarray, targets: np.ndarray, penalty: float, free: int) -> np.ndarray:
    """`ridge` of fewer rows than inputs, w = Rᵀ (R Rᵀ + penalty)⁻¹ B with the free ones regressed out of R and B."""
    level = float(np.sum(inputs**2)) / inputs.shape[1]
    held, unheld = inputs[:, :-free], inputs[:, -free:]
    basis = thin_svd(unheld)[0]
    rest, left = (part - basis @ (basis.T @ part) for part in (held, targets))
    weights = rest.T @ ridge_solve(rest @ rest.T, left, (penalty + 1e-12) * level)
    return np.concatenate([weights, np.linalg.lstsq(unheld, targets - held @ weights, rcond=None)[0]])


def principal_directions(parts: Iterable[np.ndarray], size: int) -> np.ndarray:
    """The leading principal directions, scaled so that the first has variance one if values vary at all, (D, size)."""
    parts = iter(parts)
    first = list(islice(parts, 2))
    if len(first) == 1 and _is_wide(first[0]):
        return _wide_directions(first[0], size)
    gram: Any = 0.0
    total: Any = 0.0
    count = 0
    for values in chain(first, parts):
        gram, total, count = gram + values.T @ values, total + values.sum(axis=0), count + len(values)
    mean = total / count
    spread, vectors = np.linalg.eigh(gram / count - np.outer(mean, mean))
    return vectors[:, ::-1][:, :size] / unit_of(spread[-1], np.trace(gram) / count)


def unit_of(variance: float, square: float) -> float:
    """The standard deviation of a variance, or one where it is but rounding beside the mean square of the values."""
    return float(np.sqrt(variance)) if variance > 1e-12 * square else 1.0


def _wide_directions(values: np.ndarray, size: int) -> np.ndarray:
    """`principal_directions` of few rows, from their products with each other; zeros where there are no more."""
    centred = values - values.mean(axis=0)
    spread, vectors = np.linalg.eigh(centred @ centred.T / len(centred))
    spread, found = spread[::-1], centred.T @ vectors[:, ::-1]
    lengths = np.sqrt(np.maximum((found**2).sum(axis=0), TINY))
    found = np.where(spread > 1e-12 * spread[0], found / lengths, 0.0)[:, :size]
    return np.pad(found, ((0, 0), (0, max(size - found.shape[1], 0)))) / unit_of(
        spread[0], np.sum(values**2) / len(values)
    )


def _is_wide(values: np.ndarray) -> bool:
    """Whether products of rows are the smaller problem, and products of columns a large one."""
    return values.shape[1] > max(len(values), WIDE)


def batches(rows: np.ndarray) -> Iterator[np.ndarray]:
    """Row numbers, some at a time."""
    return (rows[i : i + BATCH] for i in range(0, len(rows), BATCH))
