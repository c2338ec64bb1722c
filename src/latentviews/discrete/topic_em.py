"""Shares of bags and topics of atoms by EM, for bags in a sparse table.

A bag's shares are θ_h ∝ n_h + α_h and a topic's chances β_w ∝ n_w + η with expected counts n: the collapsed
variational step of order zero with nothing left out (Asuncion, Welling, Smyth & Teh 2009), which is EM.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from latentviews._numbers import TINY, as_shares
from latentviews.discrete.crowd_model import dirichlet_step

CELLS = 1 << 21  # numbers held at a time while entries of the table are gone through


class TopicFit(NamedTuple):
    """Topics and shares, and how the steps went."""

    topics: np.ndarray  # (n_atoms, k), chances of atoms in columns
    shares: np.ndarray  # (n_bags, k)
    prior: np.ndarray  # (k,), α
    log_likelihood: float  # of all draws given shares and topics
    n_iter: int
    converged: bool


def counts_over_chances(
    bags: sparse.csr_array, shares: np.ndarray, topics: np.ndarray
) -> tuple[sparse.csr_array, float]:
    """The table of counts over their chances Σ_h θ_h β_wh, entry by entry, and the log-likelihood Σ n log chance.

    An atom that no topic has tells nothing of shares.
    """
    ratios, total = np.empty_like(bags.data), 0.0
    lengths = np.diff(bags.indptr)
    step = max(int(CELLS / (topics.shape[1] * max(lengths.mean(), 1.0))), 1)
    for start in range(0, bags.shape[0], step):
        stop = min(start + step, bags.shape[0])
        part = slice(bags.indptr[start], bags.indptr[stop])
        rows = np.repeat(np.arange(start, stop), lengths[start:stop])
        chances = np.einsum("nk,nk->n", shares[rows], topics[bags.indices[part]])
        ratios[part] = np.where(chances > TINY, bags.data[part] / np.maximum(chances, TINY), 0.0)
        total += float(bags.data[part] @ np.log(np.maximum(chances, TINY)))
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
    learn_prior: bool = False,
) -> TopicFit:
    """EM from topics; it stops when a step adds less than ``tol`` to the log-likelihood per draw.

    The prior may be learnt on the way, from the expected counts of bags.
    """
    shares = fold_in(bags, topics, prior, 5, 0.0)
    draws, last, change, steps = max(float(bags.sum()), TINY), -np.inf, np.inf, 0
    while change >= tol and steps < max_iter:
        ratios, value = counts_over_chances(bags, shares, topics)
        of_bags, of_atoms = shares * (ratios @ topics), topics * (ratios.T @ shares)
        if learn_prior:
            prior = dirichlet_step(of_bags[:, None, :], prior[None])[0]
        shares, topics = as_shares(of_bags + prior, axis=1), as_shares(of_atoms + smoothing, axis=0)
        change, last, steps = (value - last) / draws, value, steps + 1
    return TopicFit(topics, shares, prior, last, steps, change < tol)
