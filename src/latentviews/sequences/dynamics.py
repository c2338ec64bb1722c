"""How a predictive state moves: observable operators, and a filter by two-stage regression.

A predictive state is what the past says of the future, as a vector, with no latent states behind it. Both kinds here
learn from feature vectors of rows and give a record that starts a state, moves it by a row, and reads forecasts off it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from sklearn.base import BaseEstimator

from latentviews._numbers import TINY, evenly
from latentviews._parameters import Constraint, Count, Nonnegative, Several, check_parameters
from latentviews.core.features.fourier import FourierFeatures
from latentviews.core.kernels.bandwidths import median
from latentviews.core.kernels.real import Gaussian
from latentviews.sequences.chains import first_rows

BATCH = 4096
CHUNK = 100  # rows over which training states are run side by side
MOVERS = 20  # directions of a row that move a state
ROUNDS = 2  # regressions on states that the filter itself has reached
DIRECTIONS = 20  # of a window of last rows, in which its random features are taken
FREQUENCIES = 300
WIDTH = 0.5  # of the kernel of windows, over their median distance
SHARES = (0.1, 3.0)  # how long last rows and their random features are, beside states whose first direction is one
STRENGTH = 100.0  # the penalty of forecasts over that of the filter: their inputs are many, and much alike


class Series(NamedTuple):
    """Rows of sequences, one under the other, as numbers and as feature vectors."""

    x: np.ndarray  # (n, d), standardised
    phi: np.ndarray  # (n, D)
    lengths: np.ndarray

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
    gram: Any = 0.0
    cross: Any = 0.0
    count = 0
    for inputs, targets in parts:
        gram, cross, count = gram + inputs.T @ inputs, cross + inputs.T @ targets, count + len(inputs)
    level = np.trace(gram) / len(gram)
    strength = np.full(len(gram), (penalty + 1e-12) * level)
    strength[-free:] = 1e-12 * level
    return np.linalg.solve(gram + np.diag(strength), cross)


def batches(rows: np.ndarray) -> Iterator[np.ndarray]:
    """Row numbers, some at a time."""
    return (rows[i : i + BATCH] for i in range(0, len(rows), BATCH))


@dataclass(frozen=True, eq=False)
class OperatorDynamics:
    """Observable operators: a state is moved by a row's operator and scaled back to mass one."""

    start: np.ndarray  # (p,), Uᵀ E[φ]
    operators: np.ndarray  # (p, p, D): B_x = operators @ φ(x)
    drift: np.ndarray  # (p, p), the mean operator: a step whose row is not seen
    mass: np.ndarray  # (p,), what a state of mass one gives one with
    embedding: np.ndarray  # (D, p): E[φ(next row) | past] from a state
    limit: float  # the length of the longest feature vector
    readout: np.ndarray  # (horizon, p, d)
    memory: int = 0

    def forecast(self, states: np.ndarray, recent: np.ndarray, horizon: int) -> np.ndarray:
        """The next rows, by steps that are not seen."""
        return np.einsum("mp,hpd->mhd", states, self.readout[:horizon])

    def step(self, states: np.ndarray, phi: np.ndarray) -> np.ndarray:
        """B_x β over its mass.

        The embedding of a distribution is no longer than the longest feature vector. Where sampling error leads
        beyond that, the row moves the state as if it were not seen; where that is no better, the state starts again.
        """
        size = len(self.start)
        moved = (phi @ self.operators.reshape(size * size, -1).T).reshape(-1, size, size) @ states[:, :, None]
        moved, blind = moved[:, :, 0], states @ self.drift.T
        moved, blind = (values / _away_from_zero(values @ self.mass)[:, None] for values in (moved, blind))
        moved = np.where(self._proper(moved), moved, blind)
        return np.where(self._proper(moved), moved, self.start)

    def _proper(self, states: np.ndarray) -> np.ndarray:
        return np.sum(states**2, axis=1, keepdims=True) <= self.limit**2


def _away_from_zero(values: np.ndarray) -> np.ndarray:
    return np.where(np.abs(values) > TINY, values, TINY)


class ObservableOperators(BaseEstimator):
    r"""The Hilbert-space HMM of Song, Boots, Siddiqi, Gordon & Smola (2010), on finite features.

    With U the leading left singular vectors of C₂₁ = E[φ(x_{t+1}) φ(x_t)ᵀ],

    .. math:: B_x = U^\top \mathcal C_{3,x,1} (U^\top C_{21})^\dagger, \qquad
              \mathcal C_{3,x,1} \propto C_{3,1|2}\, (C_{22} + \lambda I)^{-1} \varphi(x)

    For one-hot features and λ = 0 it is the algorithm of Hsu, Kakade & Zhang (2009).

    Parameters
    ----------
    sizes : tuple of int, default=(5, 10, 20)
        Numbers of singular vectors to choose from by validation.
    penalties : tuple of float, default=(1e-4, 1e-3, 1e-2)
        λ to choose from by validation, over the mean eigenvalue of C₂₂.
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "sizes": Several(Count(), "a list of integers to choose from"),
        "penalties": Several(Nonnegative(), "a list of numbers to choose from, none negative"),
    }

    def __init__(self, sizes: Sequence[int] = (5, 10, 20), penalties: Sequence[float] = (1e-4, 1e-3, 1e-2)):
        self.sizes = sizes
        self.penalties = penalties

    def candidates(self) -> list[tuple[int, float]]:
        """What there is to choose from."""
        check_parameters(self)
        return list(product(self.sizes, self.penalties))

    def learn(self, series: Series, choice: tuple[int, float], horizon: int) -> OperatorDynamics:
        """Operators from all triples of consecutive rows."""
        first = first_rows(series.lengths)
        inside = np.flatnonzero(~(first[1:-1] | first[2:]))
        past, now, ahead = (series.phi[inside + lag] for lag in range(3))
        weights = np.full(len(inside), 1 / len(inside))
        return self.from_triples(past, now, ahead, series.x[inside + 1], weights, choice, horizon)

    def from_triples(
        self,
        past: np.ndarray,
        now: np.ndarray,
        ahead: np.ndarray,
        x: np.ndarray,
        weights: np.ndarray,
        choice: tuple[int, float],
        horizon: int,
    ) -> OperatorDynamics:
        """Operators from feature vectors of triples with these weights; ``x`` are the middle rows themselves."""
        size, penalty = choice
        weighed = past * weights[:, None]
        c21, mean = now.T @ weighed, weights @ past
        basis = np.linalg.svd(c21)[0][:, :size]
        inverse = np.linalg.pinv(basis.T @ c21, rcond=1e-10)  # G = (Uᵀ C₂₁)†, (D, p)
        size = basis.shape[1]
        behind, beyond = weighed @ inverse, ahead @ basis
        joint = (beyond[:, :, None] * behind[:, None, :]).reshape(-1, size * size).T @ now  # (p², D)
        c22 = now.T @ (now * weights[:, None])
        floor = (penalty + 1e-13) * np.trace(c22) / len(c22)
        operators = np.linalg.solve(c22 + floor * np.eye(len(c22)), joint.T).T.reshape(size, size, -1)
        drift = beyond.T @ behind
        values, power = x.T @ behind, np.eye(size)
        readout = np.empty((horizon, size, x.shape[1]))
        for step in readout:
            step[:] = (values @ power).T
            power = drift @ power
        limit = float(np.sqrt((now**2).sum(axis=1).max()))
        return OperatorDynamics(basis.T @ mean, operators, drift, mean @ inverse, c21 @ inverse, limit, readout)


@dataclass(frozen=True, eq=False)
class Memory:
    """What the last rows say of the next: themselves, and random features of all of them as one point."""

    size: int  # rows
    directions: np.ndarray  # (size * d, q), of windows of so many rows
    features: FourierFeatures

    @classmethod
    def learn(cls, series: Series, size: int) -> "Memory":
        """Directions and a bandwidth from all windows of ``size`` rows, frequencies from one and the same seed."""
        rows = np.arange(len(series.x))
        directions = _directions((series.recent(part, size, upto=True) for part in batches(rows)), DIRECTIONS)
        some = evenly(len(rows), BATCH)
        windows = series.recent(some, size, upto=True) @ directions
        kernel = Gaussian(WIDTH * (median(windows) or 1.0))
        return cls(
            size, directions, FourierFeatures(kernel, FREQUENCIES, unit_height=True, random_state=0).fit(windows)
        )

    def __call__(self, recent: np.ndarray) -> np.ndarray:
        """Inputs of a regression, (m, size * d + 2 FREQUENCIES)."""
        alone, together = SHARES
        return np.concatenate([alone * recent, together * self.features.transform(recent @ self.directions)], axis=1)


@dataclass(frozen=True, eq=False)
class BilinearDynamics:
    """A filter that is linear in the state, in the row's features, and in their products."""

    start: np.ndarray
    project: np.ndarray  # (D, q), features of a row that move the state
    weights: np.ndarray  # (p q + p + q + 1, p)
    limit: float  # the largest norm that training states reached
    remember: Memory
    readout: np.ndarray  # (inputs and one, horizon * d)

    @property
    def memory(self) -> int:
        """How many last rows a forecast is made from, beside the state."""
        return self.remember.size

    def inputs(self, states: np.ndarray, recent: np.ndarray) -> np.ndarray:
        """What forecasts are linear in; the last row comes once more, for what is penalised is the way from it."""
        last = recent[:, : recent.shape[1] // self.memory]
        return with_one(np.concatenate([states, self.remember(recent), last], axis=1))

    def forecast(self, states: np.ndarray, recent: np.ndarray, horizon: int) -> np.ndarray:
        """The next rows, each by a regression of its own."""
        width = recent.shape[1] // self.memory
        return (self.inputs(states, recent) @ self.readout[:, : horizon * width]).reshape(-1, horizon, width)

    def step(self, states: np.ndarray, phi: np.ndarray) -> np.ndarray:
        """The next states, drawn in to where training states were."""
        moved = products(states, phi @ self.project) @ self.weights
        norm = np.sqrt((moved**2).sum(axis=1, keepdims=True))
        return moved * np.minimum(1.0, self.limit / np.maximum(norm, TINY))


def products(states: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Products of states and rows, both, and one, (n, p q + p + q + 1)."""
    both = (states[:, :, None] * rows[:, None, :]).reshape(len(states), states.shape[1] * rows.shape[1])
    return with_one(np.concatenate([both, states, rows], axis=1))


class TwoStageRegression(BaseEstimator):
    r"""Predictive states by regression, in two stages (Hefny, Downey & Gordon 2015; Downey et al. 2017).

    The state is the expected feature vector of a window of future rows. First it is regressed on a window of past
    rows, which takes the noise of the future out of it; then the next state is regressed on products of the
    state and the features of the row between them, which is the filter. The second regression is repeated on the states
    that the filter itself reaches. Forecasts are regressions, one a step ahead, on the state, the last rows, and random
    features of these rows as one point, so that they are never far behind an autoregression.

    Parameters
    ----------
    sizes : tuple of int, default=(20, 40)
        Dimensions of the state to choose from by validation.
    penalties : tuple of float, default=(1e-3, 1e-2, 1e-1)
        Ridge penalties to choose from by validation, over the mean eigenvalue.
    memories : tuple of int, default=(10, 40)
        Numbers of last rows that forecasts see beside the state, to choose from by validation.
    window : int, default=10
        Rows of past and of future that a state is learned from.
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "sizes": Several(Count(), "a list of integers to choose from"),
        "penalties": Several(Nonnegative(), "a list of numbers to choose from, none negative"),
        "memories": Several(Count(), "a list of integers to choose from"),
        "window": Count(),
    }

    def __init__(
        self,
        sizes: Sequence[int] = (20, 40),
        penalties: Sequence[float] = (1e-3, 1e-2, 1e-1),
        memories: Sequence[int] = (10, 40),
        window: int = 10,
    ):
        self.sizes = sizes
        self.penalties = penalties
        self.memories = memories
        self.window = window

    def candidates(self) -> list[tuple[int, float, int]]:
        """What there is to choose from."""
        check_parameters(self)
        return list(product(self.sizes, self.penalties, self.memories))

    def learn(self, series: Series, choice: tuple[int, float, int], horizon: int) -> BilinearDynamics:
        """A filter and its forecasts."""
        size, penalty, memory = choice
        longest = max(int(series.lengths.max()) // 3, 1)
        window = min(self.window, longest)
        first, whole = first_rows(series.lengths), np.flatnonzero(_whole(series.lengths, window))
        futures = _directions((_window(series, rows, range(window)) for rows in batches(whole)), size)

        def past(rows: np.ndarray) -> np.ndarray:
            return with_one(_window(series, rows, range(-window, 0)))

        def future(rows: np.ndarray) -> np.ndarray:
            return _window(series, rows, range(window)) @ futures

        denoise = ridge(((past(rows), future(rows)) for rows in batches(whole)), penalty)  # the first stage
        guess = np.concatenate([past(rows) @ denoise for rows in batches(np.arange(len(first)))])
        project = _directions((series.phi[rows] for rows in batches(np.arange(len(first)))), min(size, MOVERS))
        follow = np.intersect1d(np.flatnonzero(~first), whole) - 1  # rows whose next has a whole window
        limit = 1.5 * float(np.sqrt((guess**2).sum(axis=1)).max())
        remember = Memory.learn(series, min(memory, longest))
        states = guess
        for stage in range(1 + ROUNDS):  # the second stage, then again on states that the filter reached
            pairs = (
                (
                    products(states[rows], series.phi[rows] @ project),
                    guess[rows + 1] if stage == 0 else future(rows + 1),
                )
                for rows in batches(follow)
            )
            weights = ridge(pairs, penalty)
            dynamics = BilinearDynamics(guess[first].mean(axis=0), project, weights, limit, remember, np.empty(0))
            states = _run_chunks(dynamics, series, guess)
        return replace(dynamics, readout=_readout(dynamics, series, states, horizon, STRENGTH * penalty))


def _readout(
    dynamics: BilinearDynamics, series: Series, states: np.ndarray, horizon: int, penalty: float
) -> np.ndarray:
    """Ridge regressions of the rows ahead, wherever all of them are known."""
    ahead, inside = series.ahead(horizon)
    pairs = (
        (dynamics.inputs(states[rows], series.recent(rows, dynamics.memory)), ahead[rows].reshape(len(rows), -1))
        for rows in batches(np.flatnonzero(inside))
    )
    return ridge(pairs, penalty, free=1 + series.x.shape[1])


def _whole(lengths: np.ndarray, window: int) -> np.ndarray:
    """Whether so many rows from a row on, and before it, are in its sequence, (n,)."""
    ends = np.repeat(np.cumsum(lengths), lengths)
    place = np.arange(len(ends))
    return (place - window >= ends - np.repeat(lengths, lengths)) & (place + window <= ends)


def _window(series: Series, rows: np.ndarray, offsets: Sequence[int]) -> np.ndarray:
    """Numbers and features of the rows at these offsets, side by side; zeros beyond a sequence."""
    ends = np.repeat(np.cumsum(series.lengths), series.lengths)[rows]
    begins = ends - np.repeat(series.lengths, series.lengths)[rows]
    parts = []
    for offset in offsets:
        inside = ((rows + offset >= begins) & (rows + offset < ends))[:, None]
        there = np.clip(rows + offset, 0, len(series.x) - 1)
        parts += [np.where(inside, series.x[there], 0.0), np.where(inside, series.phi[there], 0.0)]
    return np.concatenate(parts, axis=1)


def _directions(parts: Iterable[np.ndarray], size: int) -> np.ndarray:
    """The leading principal directions, scaled so that the first has variance one, (D, size)."""
    gram: Any = 0.0
    total: Any = 0.0
    count = 0
    for values in parts:
        gram, total, count = gram + values.T @ values, total + values.sum(axis=0), count + len(values)
    mean = total / count
    spread, vectors = np.linalg.eigh(gram / count - np.outer(mean, mean))
    return vectors[:, ::-1][:, :size] / np.sqrt(max(spread[-1], TINY))


def _run_chunks(dynamics: Dynamics, series: Series, guess: np.ndarray) -> np.ndarray:
    """States before every row by the filter, in chunks that start from the first stage's."""
    lengths = np.concatenate([_cut(int(size)) for size in series.lengths])
    begins = np.cumsum(lengths) - lengths
    starts = np.where(first_rows(series.lengths)[begins][:, None], dynamics.start, guess[begins])
    return run(dynamics, series.phi, lengths, starts)[: len(series.x)]


def _cut(size: int) -> np.ndarray:
    full, rest = divmod(size, CHUNK)
    return np.array([CHUNK] * full + [rest] * (rest > 0))
