"""Predictive states moved by a filter that two-stage regression learns."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from latentviews._numbers import LARGEST, TINY, evenly
from latentviews._parameters import Constraint, Count, Nonnegative, Several, check_parameters
from latentviews.core.features.fourier import FourierFeatures
from latentviews.core.kernels.bandwidths import median
from latentviews.core.kernels.real import Gaussian
from latentviews.sequences.chains import first_rows
from latentviews.sequences.dynamics import BATCH, Dynamics, Series, batches, principal_directions, ridge, run, with_one

CHUNK = 100  # rows over which training states are run side by side
MOVERS = 20  # directions of a row that move a state
ROUNDS = 2  # regressions on states that the filter itself has reached
DIRECTIONS = 20  # of a window of last rows, in which its random features are taken
FREQUENCIES = 300
WIDTH = 0.5  # of the kernel of windows, over their median distance
SHARES = (0.1, 3.0)  # how long last rows and their random features are, beside states whose first direction is one
STRENGTH = 100.0  # the penalty of forecasts over that of the filter: their inputs are many, and much alike


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
        directions = principal_directions((series.recent(part, size, upto=True) for part in batches(rows)), DIRECTIONS)
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
        rows = np.clip(phi @ self.project, -LARGEST, LARGEST)  # so far out, all is equally far
        moved = products(states, rows) @ self.weights
        largest = np.maximum(np.abs(moved).max(axis=1, keepdims=True), TINY)
        norm = largest * np.sqrt(((moved / largest) ** 2).sum(axis=1, keepdims=True))  # squares may be beyond numbers
        return moved * np.minimum(1.0, self.limit / norm)


def products(states: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Products of states and rows, both, and one, (n, p q + p + q + 1)."""
    both = (states[:, :, None] * rows[:, None, :]).reshape(len(states), states.shape[1] * rows.shape[1])
    return with_one(np.concatenate([both, states, rows], axis=1))


class TwoStageRegression(BaseEstimator):
    r"""Predictive states by regression, in two stages (Hefny, Downey & Gordon 2015; Downey et al. 2017).

    The state is the expected feature vector of a window of future rows. First it is regressed on a window of past
    rows, which takes the noise of the future out of it; then the next state is regressed on products of the
    state and the features of the row between them, which is the filter. The second regression is repeated on the states
    that the filter itself reaches. Forecasts are regressions, one per step ahead, on the state, the last rows, and
    random features of these rows as one point, so that they are never far behind an autoregression.

    .. math:: \bar q_t = A\, h_t, \qquad \hat q_{t+1} = W\, (\hat q_t \otimes \varphi(x_t))

    A is the ridge regression of the features of rows from t on, on those of rows before t, h_t; W that of q̄_{t+1} on
    the products.

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

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import PredictiveStateModel, TwoStageRegression
    >>> X = np.sin(np.arange(120) / 5)[:, None]
    >>> dynamics = TwoStageRegression(sizes=(5,), penalties=(1e-3,), memories=(5,), window=5)
    >>> model = PredictiveStateModel(dynamics=dynamics, random_state=0).fit(X)
    >>> bool(abs(model.forecast(X, 1).mean()[0, 0] - np.sin(24)) < 0.1)
    True
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
        """What there is to choose from.

        Returns
        -------
        list[tuple[int, float, int]]
        """
        check_parameters(self)
        return list(product(self.sizes, self.penalties, self.memories))

    def learn(self, series: Series, choice: tuple[int, float, int], horizon: int) -> BilinearDynamics:
        """A filter and its forecasts.

        Parameters
        ----------
        series : Series
            Rows in standard units and their features.
        choice : tuple
            One of `candidates`.
        horizon : int, default=1
            How many steps ahead.

        Returns
        -------
        BilinearDynamics
        """
        size, penalty, memory = choice
        longest = max(int(series.lengths.max()) // 3, 1)
        window = min(self.window, longest)
        first, whole = first_rows(series.lengths), np.flatnonzero(_whole(series.lengths, window))
        futures = principal_directions((_window(series, rows, range(window)) for rows in batches(whole)), size)

        def past(rows: np.ndarray) -> np.ndarray:
            return with_one(_window(series, rows, range(-window, 0)))

        def future(rows: np.ndarray) -> np.ndarray:
            return _window(series, rows, range(window)) @ futures

        denoise = ridge(((past(rows), future(rows)) for rows in batches(whole)), penalty)  # the first stage
        guess = np.concatenate([past(rows) @ denoise for rows in batches(np.arange(len(first)))])
        project = principal_directions((series.phi[rows] for rows in batches(np.arange(len(first)))), min(size, MOVERS))
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


def _run_chunks(dynamics: Dynamics, series: Series, guess: np.ndarray) -> np.ndarray:
    """States before every row by the filter, in chunks that start from the first stage's."""
    lengths = np.concatenate([_cut(int(size)) for size in series.lengths])
    begins = np.cumsum(lengths) - lengths
    starts = np.where(first_rows(series.lengths)[begins][:, None], dynamics.start, guess[begins])
    return run(dynamics, series.phi, lengths, starts)[: len(series.x)]


def _cut(size: int) -> np.ndarray:
    full, rest = divmod(size, CHUNK)
    return np.array([CHUNK] * full + [rest] * (rest > 0))
