"""The forward pass of a chain as solutions of banded systems, by a compiled routine that SciPy has.

With b_t the emissions of row t, the messages α_t = b_t ∘ (α_{t-1} A) of some rows solve a triangular system, with one
over b_t on the diagonal and A beside it. Nothing is subtracted in it, so it is as exact as the recursion. Emissions are
first divided by a guess of how likely their row is after the row before: messages then neither grow nor shrink by much,
and hundreds of rows are solved for at once. Where they do, fewer are.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.blas import dtbsv

from latentviews._numbers import row_sums

SIZES = 2**17, 64, 2048  # numbers of a system, and the fewest and most rows in it
RANGE = 1e-100, 1e100  # totals of messages between which nothing that matters has underflowed
LEAST = 1e-300  # of an emission that is divided by; one below it counts as none


class Messages(NamedTuple):
    """Messages of a pass, each scaled to total one, before and after a row is seen."""

    before: Any  # (n, k)
    after: Any  # (n, k)
    log_scale: Any  # (n,), the log of the total of before × emissions


class Emissions(NamedTuple):
    """What rows say of their states, the likeliest of which counts one; states first, which is quicker."""

    values: np.ndarray  # (k, n)
    alone: np.ndarray  # (k, n), the same scaled to total one: messages if every row told its state alone
    highest: np.ndarray  # (n,), the logs of what was divided by

    @classmethod
    def of(cls, log_emissions: np.ndarray) -> "Emissions":
        """Those with these logs, (n, k)."""
        logs = np.array(log_emissions.T, order="C")
        highest = logs.max(axis=0, initial=-np.finfo(float).max)
        values = np.exp(np.subtract(logs, highest, out=logs), out=logs)
        return cls(values, values / values.sum(axis=0), highest)

    def rows(self, which: slice) -> "Emissions":
        """Those of some rows."""
        return Emissions(*(part[..., which] for part in self))


def forward_pass(emissions: Emissions, entry: np.ndarray, transition: np.ndarray, first: np.ndarray) -> Messages:
    """All messages of a chain whose moves are all possible and which begins again from ``entry`` at ``first`` rows."""
    k, n = emissions.values.shape
    numbers, fewest, most = SIZES
    most = min(int(np.clip(numbers // (2 * k * k), fewest, most)), n)
    found = Messages(np.empty((k, n)), np.empty((k, n)), np.empty(n))
    system = _BandedSystem(most, entry, transition)
    low, size, entering = 0, most, entry
    while low < n:
        rows = slice(low, min(low + size, n))
        part = system.solve(emissions.rows(rows), entering, np.flatnonzero(first[rows]))
        if part is None:
            size //= 2
            continue
        for whole, piece in zip(found, part, strict=True):
            whole[..., rows] = piece
        low, size, entering = rows.stop, min(2 * size, most), part.after[:, -1] @ transition
    return Messages(found.before.T, found.after.T, found.log_scale)


class _BandedSystem:
    """The system of some rows, with all but its diagonal filled in.

    A column of the band is a state i at time t: its diagonal, then what is below it, -A_ij for state j at t + 1 in the
    place k + j - i.
    """

    def __init__(self, n_rows: int, entry: np.ndarray, transition: np.ndarray):
        k = len(transition)
        self.entry, self.transition, self.columns = entry, transition, np.zeros((k, 2 * k))
        for i in range(k):
            self.columns[i, k - i : 2 * k - i] = -transition[i]
        self.band = np.repeat(self.columns[None], n_rows, axis=0)

    def solve(self, emissions: Emissions, entering: np.ndarray, begins: np.ndarray) -> Messages | None:
        """The messages (k, n) of some rows after one ``entering``; none if they leave the range of numbers."""
        values, alone, highest = emissions
        guess = (self._moved(alone, entering, begins) * values).sum(axis=0)
        messages = self._solution(values, guess, entering, begins)
        total = row_sums(messages)
        if len(total) > 1 and not (RANGE[0] < total.min() and total.max() < RANGE[1]):
            return None
        scaled = np.divide(messages.T, total, order="C")
        earlier = np.append(1.0, total[:-1])
        earlier[begins] = 1.0
        return Messages(self._moved(scaled, entering, begins), scaled, np.log(total / earlier * guess) + highest)

    def _moved(self, messages: np.ndarray, entering: np.ndarray, begins: np.ndarray) -> np.ndarray:
        """What the messages (k, n) of every row say of the next, and what is said of the first."""
        moved = np.empty(messages.shape)
        moved[:, 0] = entering
        np.matmul(self.transition.T, messages[:, :-1], out=moved[:, 1:])
        moved[:, begins] = self.entry[:, None]
        return moved

    def _solution(self, values: np.ndarray, guess: np.ndarray, entering: np.ndarray, begins: np.ndarray) -> np.ndarray:
        """The α with α_t = b_t ∘ (α_{t-1} A) / guess_t, (n, k), from what enters and beginnings of sequences."""
        k, n = values.shape
        cut = begins[begins > 0] - 1
        self.band[cut] = 0.0
        np.divide(guess, np.maximum(values, LEAST), out=self.band[:n, :, 0].T)
        source = np.zeros((n, k))
        source[0] = entering
        source[begins] = self.entry
        solved = dtbsv(2 * k - 1, self.band[:n].reshape(-1, 2 * k).T, source.ravel(), lower=1, overwrite_x=1)
        self.band[cut] = self.columns
        found = solved.reshape(n, k)
        return found if values.min() > LEAST else found * (values > LEAST).T
