"""Algorithms on Markov chains that are seen through emissions: filtering, smoothing, the best path.

Sequences stand one under the other, and ``lengths`` says how long each is. Numbers that underflow are avoided in one of
two ways. Where a step reaches every state, probabilities are rescaled as they go (`banded`), and what underflows beside
them cannot matter; where moves are forbidden it could, and logarithms are kept.

A pass over n steps in logarithms is a product of n matrices, and products may be bracketed at will: blocks of a few
steps are multiplied side by side, then pairs of blocks, and so on. So a pass is some log n operations on whole arrays
and not n on small ones, and needs no compiler. Rows in another array library stay there (`device_chains`).
"""

from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from latentviews._arrays import answered, is_foreign, namespace, to_numpy
from latentviews.sequences.banded import Chain, Emissions, Messages, Smoothing, forward_pass, smoothing_pass
from latentviews.sequences.device_chains import forward_there, smooth_there

BLOCKS = (4, 64)  # the fewest and most steps that are taken one after the other, in all blocks at once
REACHED = 1e-50  # the least chance of a move or start that is rescaled
CHUNK = 2**14  # rows for which k × k numbers per row are held at once


class Filtering(NamedTuple):
    """What the past says of every state."""

    predicted: Any  # (n, k), P(h_t | x_1, …, x_{t-1})
    filtered: Any  # (n, k), P(h_t | x_1, …, x_t)
    log_likelihood: Any  # (n,), log p(x_t | x_1, …, x_{t-1})


class Path(NamedTuple):
    """The most probable states of every sequence."""

    states: np.ndarray  # (n,)
    log_probability: float  # of these states and the rows together


def filter_states(log_emissions: Any, start: np.ndarray, transition: np.ndarray, lengths: np.ndarray) -> Filtering:
    """The forward pass. ``log_emissions`` (n, k) are log p(x_t | h), zero where a row is missing."""
    reached, first = _all_reached(start, transition), first_rows(lengths)
    if is_foreign(log_emissions):
        if reached:
            return Filtering(*forward_there(log_emissions, start, transition, first))
        found = filter_states(to_numpy(log_emissions), start, transition, lengths)
        return Filtering(*(answered(part, log_emissions) for part in found))
    if reached:
        return Filtering(*forward_pass(Emissions(log_emissions, in_logs=True), Chain(start, transition, first)))
    before, after, log_scale = LOGS.forward(log_emissions, start, transition, first)
    return Filtering(np.exp(before), np.exp(after), log_scale)


def smooth_states(log_emissions: Any, start: np.ndarray, transition: np.ndarray, lengths: np.ndarray) -> Smoothing:
    """The forward–backward algorithm."""
    reached, first = _all_reached(start, transition), first_rows(lengths)
    if is_foreign(log_emissions):
        if reached:
            return Smoothing(*smooth_there(log_emissions, start, transition, first))
        posteriors, moves, likelihood = smooth_states(to_numpy(log_emissions), start, transition, lengths)
        return Smoothing(answered(posteriors, log_emissions), moves, answered(likelihood, log_emissions))
    if reached:
        return smoothing_pass(Emissions(log_emissions, in_logs=True), Chain(start, transition, first))
    return _smoothed_logs(log_emissions, start, transition, first)


def smooth_densities(density: Any, start: np.ndarray, transition: np.ndarray, lengths: np.ndarray) -> Smoothing:
    """The same from p(x_t | h) itself, (n, k), none of which is zero and all of which are numbers."""
    if is_foreign(density) or not _all_reached(start, transition):
        return smooth_states(namespace(density).log(density), start, transition, lengths)
    return smoothing_pass(Emissions(density, in_logs=False), Chain(start, transition, first_rows(lengths)))


def _smoothed_logs(
    log_emissions: np.ndarray, start: np.ndarray, transition: np.ndarray, first: np.ndarray
) -> Smoothing:
    """The forward–backward algorithm in logarithms."""
    forward = LOGS.forward(log_emissions, start, transition, first)
    last = np.append(first[1:], True)
    # backwards in time the messages b_t β_t move by the transposed matrix, and begin again from ones
    backward = LOGS.forward(log_emissions[::-1], np.ones(len(start)), transition.T, last[::-1])
    joint = forward.after + backward.before[::-1]
    total = LOGS.total(joint.T)[:, None]
    moves = LOGS.moves(forward.after - total, backward.after[::-1], transition, last)
    return Smoothing(np.exp(joint - total), moves, forward.log_scale)


def best_path(log_emissions: np.ndarray, start: np.ndarray, transition: np.ndarray, lengths: np.ndarray) -> Path:
    """The Viterbi algorithm."""
    first = first_rows(lengths)
    passed = MAX.forward(log_emissions, start, transition, first)
    log_transition, n = _log(transition), len(log_emissions)
    came = np.empty((n, len(start)), dtype=np.int32)  # the state that the best path to state h at t+1 is in at t
    for i in range(0, n, CHUNK):
        came[i : i + CHUNK] = (passed.after[i : i + CHUNK, :, None] + log_transition).argmax(axis=1)
    states, steps, last = passed.after.argmax(axis=1).tolist(), came.tolist(), np.append(first[1:], True)
    for t in np.flatnonzero(~last)[::-1].tolist():
        states[t] = steps[t][states[t + 1]]
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
    # of laws, which sum to one, the shortest is the one nearest to uniform
    law = np.maximum(np.linalg.lstsq(system, np.append(np.zeros(size), 1.0), rcond=1e-12)[0], 0.0)
    return law / law.sum()


def draw_states(start: np.ndarray, transition: np.ndarray, lengths: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """States of sequences drawn from the chain, (n,)."""
    levels = [row[:-1].tolist() for row in np.cumsum(transition, axis=1)]
    entry = np.cumsum(start)[:-1].tolist()
    states: list[int] = []
    for chance, new in zip(rng.random(int(np.sum(lengths))).tolist(), first_rows(lengths).tolist(), strict=True):
        states.append(sum(chance >= level for level in (entry if new else levels[states[-1]])))
    return np.array(states, dtype=int)


class _Logs:
    """Logarithms, added as probabilities. Where numbers are added, states stand on the first axis."""

    def forward(
        self, log_emissions: np.ndarray, entry: np.ndarray, transition: np.ndarray, first: np.ndarray
    ) -> Messages:
        """All messages of a chain that begins again from ``entry`` at every ``first`` row."""
        return _scan(self, log_emissions, entry, transition, first)

    def total(self, values: np.ndarray) -> np.ndarray:
        """The sum along the first axis."""
        highest = np.maximum(values.max(axis=0), -np.finfo(float).max)  # all may be impossible
        return _log(np.exp(values - highest).sum(axis=0)) + highest

    def move(self, matrix: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Σ_i matrix_ij values_i, for values of any shape after the first axis."""
        spread = matrix.reshape(matrix.shape + (1,) * (values.ndim - 1))
        return self.total(spread + values[:, None])

    def moves(self, after: np.ndarray, ahead: np.ndarray, transition: np.ndarray, last: np.ndarray) -> np.ndarray:
        """Σ_t after_ti A_ij ahead_(t+1)j over the rows that are not last, scaled: a number of moves."""
        counts, log_transition, rows = np.zeros_like(transition), _log(transition), np.flatnonzero(~last)
        for i in range(0, len(rows), CHUNK):
            part = rows[i : i + CHUNK]
            terms = after[part][:, :, None] + log_transition + ahead[part + 1, None, :]
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


LOGS, MAX = _Logs(), _Highest()


def _all_reached(start: np.ndarray, transition: np.ndarray) -> bool:
    """Whether every start and move is so likely that probabilities may be rescaled."""
    return min(start.min(), transition.min()) >= REACHED


def _log(values: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(values)


def _scan(
    algebra: _Logs, log_emissions: np.ndarray, entry: np.ndarray, transition: np.ndarray, first: np.ndarray
) -> Messages:
    """All messages, in logarithms, of a chain that begins again from ``entry`` at every ``first`` row."""
    n, k = log_emissions.shape
    # a column at a time: NumPy reduces along short rows slowly
    highest = reduce(np.maximum, log_emissions.T, np.full(n, -np.finfo(float).max))
    block = int(np.clip(np.sqrt(n) / 4, *BLOCKS))  # as many operations in a block as between blocks, about
    size = -(-n // block)
    padded, again = np.zeros((size * block, k)), np.ones(size * block, dtype=bool)
    padded[:n], again[:n] = log_emissions - highest[:, None], first
    emissions = np.ascontiguousarray(padded.reshape(size, block, k).transpose(1, 2, 0))  # (step, state, block)
    again, matrix, begin = again.reshape(size, block).T, _log(transition), _log(entry)
    message = _entering(algebra, _block_products(algebra, emissions, begin, matrix, again))
    before, after, scale = np.empty_like(emissions), np.empty_like(emissions), np.empty((block, size))
    for step in range(block):
        moved = algebra.move(matrix, message)
        moved[:, again[step]] = begin[:, None]
        joint = moved + emissions[step]
        scale[step] = algebra.total(joint)
        message = joint - scale[step]
        before[step], after[step] = moved, message

    def in_order(values: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(values.transpose(2, 0, 1).reshape(-1, k)[:n])

    return Messages(in_order(before), in_order(after), scale.T.ravel()[:n] + highest)


def _block_products(
    algebra: _Logs, emissions: np.ndarray, begin: np.ndarray, matrix: np.ndarray, again: np.ndarray
) -> np.ndarray:
    """The product of every block's matrices, up to one factor per block, (to, from, block)."""
    product = np.repeat(matrix.T[:, :, None], emissions.shape[2], axis=2)
    product[:, :, again[0]] = begin[:, None, None]
    product = product + emissions[0][:, None]
    for step in range(1, len(emissions)):
        new = np.flatnonzero(again[step])
        totals = algebra.total(product[:, :, new])
        product = algebra.move(matrix, product)
        product[:, :, new] = begin[:, None, None] + totals
        product = product + emissions[step][:, None]
    return product


def _entering(algebra: _Logs, products: np.ndarray) -> np.ndarray:
    """The message that enters every block, (state, block), by products of 1, 2, 4, … blocks before it."""
    reach = 1
    while reach < products.shape[2]:
        later, earlier = products[:, :, reach:], products[:, :, :-reach]
        joined = algebra.total(later.transpose(1, 0, 2)[:, :, None] + earlier[:, None])  # (through, to, from, block)
        joined = joined - algebra.total(algebra.total(joined))
        products = np.concatenate([products[:, :, :reach], joined], axis=2)
        reach *= 2
    # the first row begins a sequence, so whatever state a product is entered from, it says the same
    messages = np.concatenate([np.zeros_like(products[:, 0, :1]), products[:, 0, :-1]], axis=1)
    return messages - algebra.total(messages)
