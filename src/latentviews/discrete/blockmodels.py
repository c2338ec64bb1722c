r"""Memberships of nodes and connectivity of communities by variational steps, on the links alone.

Links are taken to be Poisson with means π_xᵀ P π_y, which have the same first moments and cost nothing where there are
none. With expected counts n_h of a node's links by its own community, and d_h = Σ_y (P π_y)_h, its shares maximise
Σ_h (n_h + α_h) log π_h − π_h d_h on the simplex: π_h = (n_h + α_h)/(λ + d_h). As in `discrete.topic_em`, a node's own
side of a link is taken at exp ψ(n_h + α_h)/(λ + d_h), which keeps communities from being drawn apart.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import digamma

from latentviews._numbers import TINY, as_shares
from latentviews.discrete.topic_em import counts_over_chances

FLOOR = 0.01  # what every community has of a node where steps begin
NEWTON, NEAR = 50, 1e-10  # steps that find λ, and the share of d within which it is near enough


class BlockModel(NamedTuple):
    """A mixed-membership stochastic blockmodel, and how the steps went."""

    memberships: np.ndarray  # (n, k)
    connectivity: np.ndarray  # (k, k)
    n_iter: int
    converged: bool


def on_simplex(rows: np.ndarray) -> np.ndarray:
    """The nearest shares to every row (n, k), by Euclid's distance: some are zero where a row is outside."""
    rows = rows - rows.max(axis=1, keepdims=True)  # which moves the nearest shares nowhere
    ordered = -np.sort(-rows, axis=1)
    excess = (np.cumsum(ordered, axis=1) - 1) / np.arange(1, rows.shape[1] + 1)
    last = np.sum(ordered > excess, axis=1, keepdims=True) - 1
    return np.maximum(rows - np.take_along_axis(excess, last, axis=1), 0.0)


def connectivity_of(links: sparse.csr_array, memberships: np.ndarray) -> np.ndarray:
    """P of memberships that are known, by least squares: (ΠᵀΠ)⁻¹ Πᵀ G Π (ΠᵀΠ)⁻¹, between zero and one."""
    inverse = np.linalg.pinv(memberships.T @ memberships)
    return np.clip(inverse @ (memberships.T @ (links @ memberships)) @ inverse, 0.0, 1.0)


def polished(
    links: sparse.csr_array, memberships: np.ndarray, prior: np.ndarray, max_iter: int, tol: float
) -> BlockModel:
    """Steps from memberships until one moves them by less than ``tol`` on average."""
    mean = used = as_shares(memberships + FLOOR, axis=1)
    connectivity = np.maximum(connectivity_of(links, mean), 1 / links.shape[0] ** 2)
    change, steps = np.inf, 0
    while change >= tol and steps < max_iter:
        chances = mean @ connectivity
        ratios, _ = counts_over_chances(links, used, chances)
        pairs = connectivity * (used.T @ (ratios @ mean))
        before, (mean, used) = mean, _shares_of(used * (ratios @ chances) + prior, chances.sum(axis=0))
        total = mean.sum(axis=0)
        expected = np.outer(total, total) - mean.T @ mean
        connectivity = np.minimum((pairs + pairs.T) / 2 / np.maximum(expected, TINY), 1.0)
        change, steps = float(np.abs(mean - before).mean()), steps + 1
    return BlockModel(mean, connectivity, steps, change < tol)


def memberships_of(links: sparse.csr_array, chances: np.ndarray, prior: np.ndarray, max_iter: int) -> np.ndarray:
    """Shares of nodes by their links to others, (m, n), whose chances Π P are known."""
    mean = used = np.tile(as_shares(prior), (links.shape[0], 1))
    for _ in range(max_iter):
        ratios, _ = counts_over_chances(links, used, chances)
        mean, used = _shares_of(used * (ratios @ chances) + prior, chances.sum(axis=0))
    return mean


def _shares_of(counts: np.ndarray, totals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shares counts/(λ + totals) of every row, and those at exp ψ(counts).

    Σ_h counts_h/(λ + totals_h) falls and is convex in λ, and is at least one where λ begins: Newton's steps only rise.
    """
    shift = (counts - totals).max(axis=1, keepdims=True)
    for _ in range(NEWTON):
        shares = counts / (shift + totals)
        step = (shares.sum(axis=1, keepdims=True) - 1) / (shares / (shift + totals)).sum(axis=1, keepdims=True)
        shift = shift + np.maximum(step, 0.0)
        if step.max() <= NEAR * totals.max():
            break
    logs = digamma(counts) - np.log(shift + totals)
    used = as_shares(np.exp(logs - logs.max(axis=1, keepdims=True)), axis=1)
    return as_shares(counts / (shift + totals), axis=1), used
