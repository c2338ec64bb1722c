"""Shares of bags and topics of atoms by EM, for bags in a sparse table.

A bag's shares are θ_h ∝ n_h + α_h and a topic's chances β_w ∝ n_w + η with expected counts n: the collapsed
variational step of order zero with nothing left out (Asuncion, Welling, Smyth & Teh 2009), which is EM.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from latentviews._numbers import TINY, as_shares

CELLS = 1 << 21  # numbers held at a time while entries of the table are gone through


class TopicFit(NamedTuple):
    """Topics and shares, and how the steps went."""

    topics: np.ndarray  # (n_atoms, k), chances of atoms in columns
    shares: np.ndarray  # (n_bags, k)
    log_likelihood: float  # of all draws given shares and topics
    n_iter: int
    converged: bool


def counts_over_chances(
    bags: sparse.csr_array, shares: np.ndarray, topics: np.ndarray
) -> tuple[sparse.csr_array, float]:
    """The table of counts over their chances Σ_h θ_h β_wh, entry by entry, and the log-likelihood Σ n log chance."""
    ratios, total = np.empty_like(bags.data), 0.0
    lengths = np.diff(bags.indptr)
    step = max(int(CELLS / (topics.shape[1] * max(lengths.mean(), 1.0))), 1)
    for start in range(0, bags.shape[0], step):
        stop = min(start + step, bags.shape[0])
        part = slice(bags.indptr[start], bags.indptr[stop])
        rows = np.repeat(np.arange(start, stop), lengths[start:stop])
        chances = np.einsum("nk,nk->n", shares[rows], topics[bags.indices[part]])
        chances = np.maximum(chances, TINY)
        ratios[part] = bags.data[part] / chances
        total += float(bags.data[part] @ np.log(chances))
    return sparse.csr_array((ratios, bags.indices, bags.indptr), shape=bags.shape), total


def fold_in(bags: sparse.csr_array, topics: np.ndarray, prior: np.ndarray, max_iter: int, tol: float) -> np.ndarray:
    """Shares of bags by topics that stay as they are, (n_bags, k); those of the prior for an empty bag."""
    shares = np.tile(as_shares(prior), (bags.shape[0], 1))
    for _ in range(max_iter):
        ratios, _ = counts_over_chances(bags, shares, topics)
        before, shares = shares, as_shares(shares * (ratios @ topics) + prior, axis=1)
        if np.abs(shares - before).max(initial=0.0) < tol:
            break
    return shares


def fit_topics(
    bags: sparse.csr_array,
    topics: np.ndarray,
    prior: np.ndarray,
    smoothing: float,
    max_iter: int,
    tol: float,
) -> TopicFit:
    """EM from topics; it stops when a step adds less than ``tol`` to the log-likelihood per draw."""
    shares = fold_in(bags, topics, prior, 5, 0.0)
    draws, last, change, steps = max(float(bags.sum()), TINY), -np.inf, np.inf, 0
    while change >= tol and steps < max_iter:
        ratios, value = counts_over_chances(bags, shares, topics)
        of_bags, of_atoms = shares * (ratios @ topics), topics * (ratios.T @ shares)
        shares, topics = as_shares(of_bags + prior, axis=1), as_shares(of_atoms + smoothing, axis=0)
        change, last, steps = (value - last) / draws, value, steps + 1
    return TopicFit(topics, shares, last, steps, change < tol)
