"""The passes of a chain as solutions of banded systems, by a compiled routine that SciPy has.

With b_t the emissions of row t, the messages α_t = b_t ∘ (α_{t-1} A) of some rows solve a triangular system, with one
over b_t on the diagonal and A below it; those backwards in time, γ_t = b_t ∘ (A γ_{t+1}), solve its transpose. Of few
states α_t / b_t are solved for, with ones on the diagonal and b_t A below it: that takes longer to write down, and less
to solve. Nothing is subtracted in them, so they are as exact as the recursions. Emissions are first divided by a guess
of how likely their row is after the row before: messages then neither grow nor shrink by much, and hundreds of rows are
solved for at once. Where they do, fewer are.

Along short rows NumPy's loops are slow: all but the systems, and what is given and found, has a row per state, (k, n).
"""

import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.blas import dtbsv

SIZES = 2**17, 64, 4096  # numbers of a system, and the fewest and most rows in it
SHORT = 512  # rows of systems that take little longer than long ones
RANGE = 1e-100, 1e100  # totals of messages between which nothing that matters has underflowed
LEAST = 1e-300  # of an emission that is divided by; one below it counts as none
ROOM = threading.local()
FEW_STATES = 7  # up to which a system with ones on its diagonal takes less time


class Messages(NamedTuple):
    """Messages of a pass, each scaled to total one, before and after a row is seen."""

    before: Any  # (n, k)
    after: Any  # (n, k)
    log_scale: Any  # (n,), the log of the total of before × emissions


class Smoothing(NamedTuple):
    """What a whole sequence says of every state and move in it."""

    posteriors: Any  # (n, k), P(h_t | x_1, …, x_n)
    moves: np.ndarray  # (k, k), the expected number of moves from g to h
    log_likelihood: Any  # (n,), log p(x_t | x_1, …, x_{t-1})


class Emissions(NamedTuple):
    """What rows say of their states: p(x_t | h), or the logs of it."""

    values: np.ndarray  # (n, k)
    in_logs: bool

    def some(self, rows: slice) -> tuple[np.ndarray, np.ndarray | float]:
        """Those of some rows, (k, n), and logs of what they are held over: of logs, the likeliest state counts one."""
        values = np.array(self.values[rows].T, order="C")
        if not self.in_logs:
            return values, 0.0
        highest = values.max(axis=0, initial=-np.finfo(float).max)
        values -= highest
        return np.exp(values, out=values), highest


class Chain(NamedTuple):
    """A chain whose moves are all possible, which begins again from ``entry`` at ``first`` rows."""

    entry: np.ndarray  # (k,)
    transition: np.ndarray  # (k, k)
    first: np.ndarray  # (n,)

    def band(self) -> "_Band | _BandOfFew":
        """The system of as many rows as are solved for at once."""
        numbers, fewest, most = SIZES
        n_rows = min(max(numbers // (2 * self.transition.size), fewest), most, len(self.first))
        return (_BandOfFew if len(self.transition) <= FEW_STATES else _Band)(n_rows, self.transition)


class _Solution(NamedTuple):
    """Forward messages of some rows, on a scale of their own."""

    rows: slice
    begins: np.ndarray  # where sequences begin among the rows
    emissions: np.ndarray  # (k, n), over the guess of their row's likelihood
    messages: np.ndarray  # (k, n)
    totals: np.ndarray  # (n,), the sums of each
    log_likelihood: np.ndarray  # (n,), of every row after the rows before it


def forward_pass(emissions: Emissions, chain: Chain) -> Messages:
    """All messages of a chain forwards in time."""
    shape, entering = emissions.values.shape, chain.entry
    found = Messages(np.empty(shape), np.empty(shape), np.empty(shape[0]))
    for part in _solutions(emissions, chain, chain.band()):
        scaled = part.messages / part.totals
        found.after[part.rows] = scaled.T
        found.before[part.rows] = _move(scaled, chain, entering, part.begins).T
        found.log_scale[part.rows] = part.log_likelihood
        entering = scaled[:, -1] @ chain.transition
    return found


def smoothing_pass(emissions: Emissions, chain: Chain) -> Smoothing:
    """Messages of both directions, multiplied: it does not matter on what scale they are.

    Where those of some rows are in range forwards, they are backwards: the two have one product at all of the rows.
    """
    band, ahead = chain.band(), None
    parts = list(_solutions(emissions, chain, band))
    posteriors, moves = np.empty(emissions.values.shape), np.zeros(chain.transition.shape)
    log_likelihood = np.empty(len(posteriors))
    for part in reversed(parts):
        ends = part.begins[part.begins > 0] - 1
        source = np.zeros(part.messages.shape[::-1])
        source[ends] = 1.0
        source[-1] = 1.0 if ahead is None else chain.transition @ ahead
        later = band.backwards(part.emissions, source, ends)
        joint = later / part.emissions
        joint *= part.messages
        totals = joint.sum(axis=0)
        np.divide(joint, totals, out=posteriors[part.rows].T)
        earlier = np.divide(part.messages, totals, out=joint)
        earlier[:, ends] = 0.0
        moves += earlier[:, :-1] @ later[:, 1:].T
        if ahead is not None:
            moves += np.outer(earlier[:, -1], ahead)
        log_likelihood[part.rows] = part.log_likelihood
        ahead = None if chain.first[part.rows.start] else later[:, 0] / later[:, 0].sum()
    return Smoothing(posteriors, chain.transition * moves, log_likelihood)


def _solutions(emissions: Emissions, chain: Chain, band: "_Band | _BandOfFew") -> Iterator[_Solution]:
    """Forward messages of as many rows at once as the range of numbers allows."""
    entering, low = chain.entry, 0
    size = most = len(band.columns)
    while low < len(chain.first):
        rows = slice(low, min(low + size, len(chain.first)))
        part = _solution(rows, emissions, band, chain, entering)
        if part is None:
            size //= 2
            most = max(size, min(most, SHORT))  # so many rows would leave it again
            continue
        yield part
        entering = part.messages[:, -1] / part.totals[-1] @ chain.transition
        low, size = rows.stop, min(2 * size, most)


def _solution(
    rows: slice, emissions: Emissions, band: "_Band | _BandOfFew", chain: Chain, entering: np.ndarray
) -> _Solution | None:
    """Forward messages of some rows after one ``entering``; none if they leave the range of numbers."""
    (values, units), begins = emissions.some(rows), np.flatnonzero(chain.first[rows])
    expected = _move(values, chain, entering, begins)
    expected *= values
    guess = expected.sum(axis=0)
    guess /= _one_row_before(values.sum(axis=0), begins)
    source = np.zeros(values.shape[::-1])
    source[0], source[begins] = entering, chain.entry
    unseen = values <= LEAST if values.min() <= LEAST else None
    scaled = (values if unseen is None else np.maximum(values, LEAST)) / guess
    with np.errstate(invalid="ignore", over="ignore"):
        messages = band.forwards(scaled, source, begins[begins > 0] - 1)
        if unseen is not None:
            messages[unseen] = 0.0
        totals = messages.sum(axis=0)
    if len(totals) > 1 and not (RANGE[0] < totals.min() and totals.max() < RANGE[1]):
        return None
    likelihood = totals / _one_row_before(totals, begins) * guess
    return _Solution(rows, begins, scaled, messages, totals, np.log(likelihood) + units)


def _move(values: np.ndarray, chain: Chain, entering: np.ndarray, begins: np.ndarray) -> np.ndarray:
    """What every row says of the next one's states (k, n), and what is said of the first."""
    found = np.empty(values.shape)
    np.matmul(chain.transition.T, values[:, :-1], out=found[:, 1:])
    found[:, 0], found[:, begins] = entering, chain.entry[:, None]
    return found


def _one_row_before(totals: np.ndarray, begins: np.ndarray) -> np.ndarray:
    """The totals of the row before; one where there is none, as laws have."""
    found = np.empty(totals.shape)
    found[1:] = totals[:-1]
    found[0], found[begins] = 1.0, 1.0
    return found


class _Band:
    """The system of some rows, with all but its diagonal filled in.

    A column of the band is a state i at time t: its diagonal, then what is below it, -A_ij for state j at t + 1 in the
    place k + j - i. Nothing goes from the rows at the ``ends`` to the next.
    """

    def __init__(self, n_rows: int, transition: np.ndarray):
        self.column = _column(transition)
        self.columns = _room(n_rows, len(transition))
        self.columns[:] = self.column

    def forwards(self, emissions: np.ndarray, source: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """The messages α (k, n) from what enters, (n, k)."""
        return self._solve(emissions, source, ends, backwards=False)

    def backwards(self, emissions: np.ndarray, source: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """The messages γ (k, n) from what is said of the states at the ends, (n, k)."""
        return self._solve(emissions, source, ends, backwards=True)

    def _solve(self, emissions: np.ndarray, source: np.ndarray, ends: np.ndarray, *, backwards: bool) -> np.ndarray:
        columns = self.columns[: len(source)]
        columns[ends] = 0.0
        np.divide(1.0, emissions.T, out=columns[:, :, 0])
        solved = _solved(columns, source, backwards, ones=False)
        columns[ends] = self.column
        return np.ascontiguousarray(solved.T)


class _BandOfFew:
    """The same of few states, with ones on the diagonal and -b_t(i) A_ij below it, for both directions in turn."""

    def __init__(self, n_rows: int, transition: np.ndarray):
        k = len(transition)
        self.of_states = (np.eye(k)[:, :, None] * _column(transition)).reshape(k, -1)
        self.columns = _room(n_rows, k)
        self.made_of: np.ndarray | None = None

    def forwards(self, emissions: np.ndarray, source: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """The messages α (k, n) from what enters, (n, k)."""
        solved = _solved(self._made(emissions, ends), source, False, ones=True)
        return np.multiply(solved.T, emissions, out=np.empty(emissions.shape))

    def backwards(self, emissions: np.ndarray, source: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """The messages γ (k, n) from what is said of the states at the ends, (n, k)."""
        np.multiply(source, emissions.T, out=source)
        return np.ascontiguousarray(_solved(self._made(emissions, ends), source, True, ones=True).T)

    def _made(self, emissions: np.ndarray, ends: np.ndarray) -> np.ndarray:
        n_rows = emissions.shape[1]
        columns = self.columns[:n_rows]
        if self.made_of is not emissions:
            np.matmul(emissions.T, self.of_states, out=columns.reshape(n_rows, -1))
            columns[ends] = 0.0
            self.made_of = emissions
        return columns


def _room(n_rows: int, k: int) -> np.ndarray:
    """A thread's own room for a band, (n, k, 2k), used again: to be given so much anew may take as long as a pass."""
    size = n_rows * 2 * k * k
    if getattr(ROOM, "numbers", np.empty(0)).size < size:
        ROOM.numbers = np.empty(size)
    return ROOM.numbers[:size].reshape(n_rows, k, 2 * k)


def _column(transition: np.ndarray) -> np.ndarray:
    """The band of a row's states (k, 2k) where emissions are ones, without its diagonal."""
    k = len(transition)
    column = np.zeros((k, 2 * k))
    for i in range(k):
        column[i, k - i : 2 * k - i] = -transition[i]
    return column


def _solved(columns: np.ndarray, source: np.ndarray, backwards: bool, *, ones: bool) -> np.ndarray:
    """The solution (n, k) of the system with this band, or of its transpose; the source is used up."""
    size = columns.shape[2]
    band, x = columns.reshape(-1, size).T, source.ravel()
    return dtbsv(size - 1, band, x, lower=1, trans=int(backwards), diag=int(ones), overwrite_x=1).reshape(source.shape)
