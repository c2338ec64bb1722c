"""Passes over a chain whose rows are in another array library: products of matrices, blocks of steps side by side.

A pass over n steps is a product of n matrices, bracketed at will: the steps of all blocks are multiplied at once, then
the products of neighbouring blocks in pairs, fours and so on. All matrices are rescaled as they go, which is safe where
every move is possible: rows of a product then differ by no more than moves do.
"""

from typing import Any

import numpy as np
from array_api_compat import device

from latentviews._arrays import in_library_of, namespace, to_numpy
from latentviews._numbers import row_sums
from latentviews.sequences.banded import Messages

STEPS = 16, 1024  # the fewest and most steps of a block, which are taken one after the other


def forward_there(log_emissions: Any, entry: np.ndarray, transition: np.ndarray, first: np.ndarray) -> Messages:
    """All messages of a chain whose moves are all possible and which begins again from ``entry`` at ``first`` rows."""
    xp, (n, k) = namespace(log_emissions), log_emissions.shape
    block = int(np.clip(np.sqrt(n) / 4, *STEPS))
    size = -(-n // block)
    highest = xp.max(log_emissions, axis=1)
    emissions = _in_blocks(xp.exp(log_emissions - highest[:, None]), size, block)
    again = xp.asarray(np.append(first, np.ones(size * block - n, dtype=bool)), device=device(log_emissions))
    again = xp.reshape(again, (size, block)).T
    entry, transition = in_library_of(entry, log_emissions), in_library_of(transition, log_emissions)
    message = _entering(_block_products(emissions, entry, transition, again))
    before, after, scales = [], [], []
    for step in range(block):
        moved = xp.where(again[step, :, None], entry[None, :], message @ transition)
        joint = moved * emissions[step, :, :]
        total = row_sums(joint)
        message = joint / total[:, None]
        before.append(moved)
        after.append(message)
        scales.append(total)
    in_order = [xp.reshape(xp.stack(part, axis=1), (size * block, k))[:n, :] for part in (before, after)]
    log_scale = xp.log(xp.reshape(xp.stack(scales, axis=1), (-1,))[:n]) + highest
    return Messages(in_order[0], in_order[1], log_scale)


def _in_blocks(emissions: Any, size: int, block: int) -> Any:
    """Emissions as (step, block, state), filled up with ones."""
    xp, (n, k) = namespace(emissions), emissions.shape
    rest = xp.ones((size * block - n, k), dtype=emissions.dtype, device=device(emissions))
    return xp.permute_dims(xp.reshape(xp.concat([emissions, rest], axis=0), (size, block, k)), (1, 0, 2))


def _block_products(emissions: Any, entry: Any, transition: Any, again: Any) -> Any:
    """The product of every block's matrices up to a factor, (block, from, to)."""
    xp = namespace(emissions)
    first = xp.where(again[0, :, None, None], entry[None, None, :], transition[None, :, :])
    product = first * emissions[0, :, None, :]
    for step in range(1, emissions.shape[0]):
        anew = xp.sum(product, axis=2)[:, :, None] * entry[None, None, :]
        moved = xp.where(again[step, :, None, None], anew, product @ transition)
        product = _scaled(moved * emissions[step, :, None, :])
    return product


def _entering(products: Any) -> Any:
    """The message that enters every block, (block, state), by products of 1, 2, 4, … blocks before it."""
    xp, reach = namespace(products), 1
    while reach < products.shape[0]:
        joined = _scaled(products[:-reach, :, :] @ products[reach:, :, :])
        products = xp.concat([products[:reach, :, :], joined], axis=0)
        reach *= 2
    # the first row begins a sequence, so whatever state a product is entered from, it says the same
    messages = xp.concat([xp.ones_like(products[:1, 0, :]), products[:-1, 0, :]], axis=0)
    return messages / row_sums(messages)[:, None]


def _scaled(products: Any) -> Any:
    """Matrices over their largest entries."""
    return products / namespace(products).max(products, axis=(1, 2), keepdims=True)


def smooth_there(
    log_emissions: Any, start: np.ndarray, transition: np.ndarray, first: np.ndarray
) -> tuple[Any, np.ndarray, Any]:
    """The forward–backward algorithm: posteriors (n, k), expected moves (k, k), and log-likelihoods (n,)."""
    xp, last = namespace(log_emissions), np.append(first[1:], True)
    forward = forward_there(log_emissions, start, transition, first)
    backward = forward_there(xp.flip(log_emissions, axis=0), np.ones(len(start)), transition.T, last[::-1].copy())
    joint = forward.after * xp.flip(backward.before, axis=0)
    total = row_sums(joint)[:, None]
    inner = xp.asarray(~last, device=device(log_emissions))[:, None]
    leaving = xp.where(inner, forward.after / total, 0.0)
    moves = transition * to_numpy(leaving[:-1, :].T @ xp.flip(backward.after, axis=0)[1:, :])
    return joint / total, moves, forward.log_scale
