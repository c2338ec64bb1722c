"""Algorithms on Markov chains that are seen through emissions: filtering, smoothing, the best path.

Sequences stand one under the other, and ``lengths`` says how long each is. A pass over n steps is a product of n
matrices, and products may be bracketed at will: blocks of a few steps are multiplied side by side, then pairs of
blocks, and so on. So a pass is some log n operations on whole arrays and not n on small ones, and needs no compiler.

Numbers that underflow are avoided in one of two ways. Where a step reaches every state, probabilities are rescaled as
they go, and what underflows beside them cannot matter; where moves are forbidden it could, and logarithms are kept.
"""

from functools import reduce
from typing import NamedTuple, Protocol

import numpy as np

BLOCKS = (4, 64)  # the fewest and most steps that are taken one after the other, in all blocks at once
RESCALE = 4  # steps between rescalings of a block's product
REACHED = 1e-50  # the least chance of a move or start that is rescaled; a few of them multiplied are still numbers
CHUNK = 2**14  # rows for which k × k numbers per row are held at once


class Filtering(NamedTuple):
    """What the past says of every state."""

    predicted: np.ndarray  # (n, k), P(h_t | x_1, …, x_{t-1})
    filtered: np.ndarray  # (n, k), P(h_t | x_1, …, x_t)
    log_likelihood: np.ndarray  # (n,), log p(x_t | x_1, …, x_{t-1})


class Smoothing(NamedTuple):
    """What a whole sequence says of every state and move in it."""

    posteriors: np.ndarray  # (n, k), P(h_t | x_1, …, x_n)
    moves: np.ndarray  # (k, k), the expected number of moves from g to h
    log_likelihood: np.ndarray  # (n,), log p(x_t | x_1, …, x_{t-1})


class Path(NamedTuple):
    """The most probable states of every sequence."""

    states: np.ndarray  # (n,)
    log_probability: float  # of these states and the rows together


def filter_states(
    log_emissions: np.ndarray, start: np.ndarray, transition: np.ndarray, lengths: np.ndarray
) -> Filtering:
    """The forward pass. ``log_emissions`` (n, k) are log p(x_t | h), zero where a row is missing."""
    algebra = _algebra(start, transition)
    passed = _scan(algebra, log_emissions, start, transition, first_rows(lengths))
    return Filtering(algebra.linear(passed.before), algebra.linear(passed.after), passed.log_scale)


def smooth_states(
    log_emissions: np.ndarray, start: np.ndarray, transition: np.ndarray, lengths: np.ndarray
) -> Smoothing:
    """The forward–backward algorithm."""
    algebra, first = _algebra(start, transition), first_rows(lengths)
    forward = _scan(algebra, log_emissions, start, transition, first)
    last = np.append(first[1:], True)
    # backwards in time the messages b_t β_t move by the transposed matrix, and begin again from ones
    backward = _scan(algebra, log_emissions[::-1], np.ones(len(start)), transition.T, last[::-1])
    beta, ahead = backward.before[::-1], backward.after[::-1]
    joint = algebra.times(forward.after, beta)
    total = algebra.total(joint.T)[:, None]
    inner = ~last
    moves = algebra.moves(forward.after[inner], ahead[1:][inner[:-1]], total[inner], transition)
    return Smoothing(algebra.linear(algebra.over(joint, total)), moves, forward.log_scale)


def best_path(log_emissions: np.ndarray, start: np.ndarray, transition: np.ndarray, lengths: np.ndarray) -> Path:
    """The Viterbi algorithm."""
    first = first_rows(lengths)
    passed = _scan(MAX, log_emissions, start, transition, first)
    log_transition, n = _log(transition), len(log_emissions)
    best = passed.after.argmax(axis=1)
    came = np.empty((n, len(start)), dtype=np.int32)  # the state that the best path to state h at t+1 is in at t
    for i in range(0, n, CHUNK):
        came[i : i + CHUNK] = (passed.after[i : i + CHUNK, :, None] + log_transition).argmax(axis=1)
    ends = np.append(first[1:], True).tolist()
    states, state = [0] * n, 0
    steps, finals = came.tolist(), best.tolist()
    for t in range(n - 1, -1, -1):
        state = finals[t] if ends[t] else steps[t][state]
        states[t] = state
    return Path(np.array(states), float(passed.log_scale.sum()))


def first_rows(lengths: np.ndarray) -> np.ndarray:
    """Whether a row is the first of its sequence, (n,)."""
    first = np.zeros(int(np.sum(lengths)), dtype=bool)
    first[np.cumsum(lengths) - lengths] = True
    return first


def stationary(transition: np.ndarray) -> np.ndarray:
    """The law that the chain keeps: πᵀ A = πᵀ; of several, the one nearest to uniform."""
    size = len(transition)
    system = np.concatenate([transition.T - np.eye(size), np.ones((1, size))])
    law = np.full(size, 1 / size)
    law = law + np.linalg.lstsq(system, np.append(np.zeros(size), 1.0) - system @ law, rcond=1e-12)[0]
    law = np.maximum(law, 0.0)
    return law / law.sum()


def draw_states(start: np.ndarray, transition: np.ndarray, lengths: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """States of sequences drawn from the chain, (n,)."""
    levels = [row[:-1].tolist() for row in np.cumsum(transition, axis=1)]
    entry = np.cumsum(start)[:-1].tolist()
    states, state = [], 0
    for chance, new in zip(rng.random(int(np.sum(lengths))).tolist(), first_rows(lengths).tolist(), strict=True):
        state = sum(chance >= level for level in (entry if new else levels[state]))
        states.append(state)
    return np.array(states, dtype=int)


class _Algebra(Protocol):
    """How numbers are held, and what it means to add and to multiply them. States stand on the first axis."""

    def number(self, log_values: np.ndarray) -> np.ndarray:
        """From logarithms."""

    def log(self, values: np.ndarray) -> np.ndarray:
        """To logarithms."""

    def linear(self, values: np.ndarray) -> np.ndarray:
        """To probabilities."""

    def times(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """The product of numbers."""

    def over(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """The ratio of numbers."""

    def total(self, values: np.ndarray) -> np.ndarray:
        """The sum along the first axis."""

    def move(self, matrix: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Σ_i matrix_ij values_i, for values of any shape after the first axis."""

    def moves(self, now: np.ndarray, ahead: np.ndarray, total: np.ndarray, transition: np.ndarray) -> np.ndarray:
        """Σ_t now_ti A_ij ahead_tj / total_t, a number of moves."""


class _ScaledSteps:
    """Probabilities, which the scan rescales."""

    def number(self, log_values: np.ndarray) -> np.ndarray:
        return np.exp(log_values)

    def log(self, values: np.ndarray) -> np.ndarray:
        return _log(values)

    def linear(self, values: np.ndarray) -> np.ndarray:
        return values

    def times(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a * b

    def over(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a / b

    def total(self, values: np.ndarray) -> np.ndarray:
        return values.sum(axis=0)

    def move(self, matrix: np.ndarray, values: np.ndarray) -> np.ndarray:
        return (matrix.T @ values.reshape(len(values), -1)).reshape(values.shape)

    def moves(self, now: np.ndarray, ahead: np.ndarray, total: np.ndarray, transition: np.ndarray) -> np.ndarray:
        return transition * ((now / total).T @ ahead)


class _Logs:
    """Logarithms, added as probabilities."""

    def number(self, log_values: np.ndarray) -> np.ndarray:
        return log_values

    log = number

    def linear(self, values: np.ndarray) -> np.ndarray:
        return np.exp(values)

    def times(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a + b

    def over(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a - b

    def total(self, values: np.ndarray) -> np.ndarray:
        highest = np.maximum(values.max(axis=0), -np.finfo(float).max)  # all may be impossible
        return _log(np.exp(values - highest).sum(axis=0)) + highest

    def move(self, matrix: np.ndarray, values: np.ndarray) -> np.ndarray:
        spread = matrix.reshape(matrix.shape + (1,) * (values.ndim - 1))
        return self.total(spread + values[:, None])

    def moves(self, now: np.ndarray, ahead: np.ndarray, total: np.ndarray, transition: np.ndarray) -> np.ndarray:
        counts, log_transition = np.zeros_like(transition), _log(transition)
        for i in range(0, len(now), CHUNK):
            part = slice(i, i + CHUNK)
            terms = (now[part] - total[part])[:, :, None] + log_transition + ahead[part, None, :]
            counts += np.exp(terms - self._shift(terms)).sum(axis=0)
        return counts

    def _shift(self, terms: np.ndarray) -> np.ndarray:
        """What brings the terms of every step to sum one: the messages ahead are known up to a factor."""
        return self.total(terms.reshape(len(terms), -1).T)[:, None, None]


class _Highest(_Logs):
    """Logarithms, of which the largest counts."""

    def total(self, values: np.ndarray) -> np.ndarray:
        return values.max(axis=0)

    def move(self, matrix: np.ndarray, values: np.ndarray) -> np.ndarray:
        rows = matrix.reshape(matrix.shape + (1,) * (values.ndim - 1))
        best = rows[0] + values[0]
        for row, value in zip(rows[1:], values[1:], strict=True):  # no k × k × k numbers per block at once
            np.maximum(best, row + value, out=best)
        return best


SCALED, LOGS, MAX = _ScaledSteps(), _Logs(), _Highest()


def _algebra(start: np.ndarray, transition: np.ndarray) -> _Algebra:
    return SCALED if min(start.min(), transition.min()) >= REACHED else LOGS


def _log(values: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(values)


class _Passed(NamedTuple):
    """Messages of a pass, each scaled to total one, before and after a row is seen."""

    before: np.ndarray  # (n, k)
    after: np.ndarray  # (n, k)
    log_scale: np.ndarray  # (n,), the log of the total of before × emissions


def _scan(
    algebra: _Algebra, log_emissions: np.ndarray, entry: np.ndarray, transition: np.ndarray, first: np.ndarray
) -> _Passed:
    """All messages of a chain that begins again from ``entry`` at every ``first`` row."""
    n, k = log_emissions.shape
    block = int(np.clip(np.sqrt(n) / 4, *BLOCKS))  # as many operations in a block as between blocks, about
    size = -(-n // block)
    # a column at a time: NumPy reduces along short rows slowly
    highest = reduce(np.maximum, log_emissions.T, np.full(n, -np.finfo(float).max))
    padded, again = np.zeros((size * block, k)), np.ones(size * block, dtype=bool)
    padded[:n], again[:n] = log_emissions - highest[:, None], first
    emissions = np.ascontiguousarray(padded.reshape(size, block, k).transpose(1, 2, 0))  # (step, state, block)
    emissions, again = algebra.number(emissions), again.reshape(size, block).T
    matrix, begin = algebra.number(_log(transition)), algebra.number(_log(entry))
    message = _entering(algebra, _block_products(algebra, emissions, begin, matrix, again))
    before, after, scale = np.empty_like(emissions), np.empty_like(emissions), np.empty((block, size))
    for step in range(block):
        moved = algebra.move(matrix, message)
        moved[:, again[step]] = begin[:, None]
        joint = algebra.times(moved, emissions[step])
        scale[step] = algebra.total(joint)
        message = algebra.over(joint, scale[step])
        before[step], after[step] = moved, message

    def in_order(values: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(values.transpose(2, 0, 1).reshape(-1, k)[:n])

    return _Passed(in_order(before), in_order(after), algebra.log(scale).T.ravel()[:n] + highest)


def _block_products(
    algebra: _Algebra, emissions: np.ndarray, begin: np.ndarray, matrix: np.ndarray, again: np.ndarray
) -> np.ndarray:
    """The product of every block's matrices, up to one factor per block, (to, from, block)."""
    product = np.repeat(matrix.T[:, :, None], emissions.shape[2], axis=2)
    product[:, :, again[0]] = begin[:, None, None]
    product = algebra.times(product, emissions[0][:, None])
    log_scale = np.zeros(product.shape[1:])
    for step in range(1, len(emissions)):
        new = np.flatnonzero(again[step])
        totals = algebra.total(product[:, :, new])
        product = algebra.move(matrix, product)
        product[:, :, new] = algebra.times(begin[:, None, None], totals)
        product = algebra.times(product, emissions[step][:, None])
        if step % RESCALE == 0:
            total = algebra.total(product)
            possible = np.isfinite(algebra.log(total))  # no path leads on from a state that cannot be entered
            total = np.where(possible, total, algebra.number(np.zeros(1)))
            product = algebra.over(product, total)
            log_scale = np.where(possible, log_scale + algebra.log(total), -np.inf)
    return algebra.times(product, algebra.number(log_scale - log_scale.max(axis=0)))


def _entering(algebra: _Algebra, products: np.ndarray) -> np.ndarray:
    """The message that enters every block, (state, block), by products of 1, 2, 4, … blocks before it."""
    reach = 1
    while reach < products.shape[2]:
        later, earlier = products[:, :, reach:], products[:, :, :-reach]
        terms = algebra.times(later.transpose(1, 0, 2)[:, :, None], earlier[:, None])  # (through, to, from, block)
        joined = algebra.total(terms)
        joined = algebra.over(joined, algebra.total(algebra.total(joined)))
        products = np.concatenate([products[:, :, :reach], joined], axis=2)
        reach *= 2
    # the first row begins a sequence, so whatever state a product is entered from, it says the same
    messages = np.concatenate([np.zeros_like(products[:, 0, :1]), products[:, 0, :-1]], axis=1)
    messages[:, 0] = algebra.number(np.zeros(len(messages)))
    return algebra.over(messages, algebra.total(messages))
