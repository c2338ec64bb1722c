"""Shares of bags and topics of atoms by EM, for bags in a sparse table.

The shares of a bag are integrated out as variational Bayes does (Blei, Ng & Jordan 2003): with expected counts n_h
their law is Dirichlet(n_h + α_h), and a step takes them at exp E[log θ_h] ∝ exp ψ(n_h + α_h), which keeps topics from
being drawn apart. Steps that take them at their means come before: they find their way from a poor start. A topic's
chances are β_w ∝ n_w + η.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import digamma

from latentviews._numbers import TINY, as_shares
from latentviews.discrete.crowd_model import dirichlet_step

FINER = 10  # times nearer than the first steps come, the second do
FIRST = 5  # steps of shares alone before topics move
CELLS = 1 << 21  # numbers held at a time while entries of the table are gone through


class EMSettings(NamedTuple):
    """How EM goes on."""

    smoothing: float
    max_iter: int
    tol: float
    learn_prior: bool  # from the expected counts of bags


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
        counts = bags.data[part]
        known = chances > TINY * np.maximum(counts, 1.0)  # so that their ratio is a number
        ratios[part] = np.divide(counts, chances, out=np.zeros_like(counts), where=known)
        total += float(counts @ np.log(np.maximum(chances, TINY)))
    return sparse.csr_array((ratios, bags.indices, bags.indptr), shape=bags.shape), total


def fold_in(bags: sparse.csr_array, topics: np.ndarray, prior: np.ndarray, max_iter: int, tol: float) -> np.ndarray:
    """Mean shares of bags by topics that stay as they are, (n_bags, k); those of the prior for an empty bag."""
    shares = used = np.tile(as_shares(prior), (bags.shape[0], 1))
    for _ in range(max_iter):
        ratios, _ = counts_over_chances(bags, used, topics)
        counts = used * (ratios @ topics) + prior
        before, shares, used = shares, as_shares(counts, axis=1), _at_mean_logs(counts)
        if np.abs(shares - before).max(initial=0.0) < tol:
            break
    return shares


def _at_means(counts: np.ndarray) -> np.ndarray:
    """Mean shares under Dirichlet(counts), row by row."""
    return as_shares(counts, axis=1)


def _at_mean_logs(counts: np.ndarray) -> np.ndarray:
    """Shares in proportion to exp E[log θ] under Dirichlet(counts), row by row."""
    logs = digamma(counts)
    return as_shares(np.exp(logs - logs.max(axis=1, keepdims=True)), axis=1)


def fit_topics(bags: sparse.csr_array, start: TopicFit, settings: EMSettings) -> TopicFit:
    """EM with shares at their means, which finds its way from afar, then with shares integrated out."""
    rough = _steps(bags, start, settings, _at_means)
    left = settings.max_iter - rough.n_iter
    fine = _steps(bags, rough, settings._replace(max_iter=left, tol=settings.tol / FINER), _at_mean_logs)
    return fine._replace(n_iter=rough.n_iter + fine.n_iter)


def first_fit(bags: sparse.csr_array, topics: np.ndarray, prior: np.ndarray) -> TopicFit:
    """Topics to start from, and shares by them."""
    return TopicFit(topics, fold_in(bags, topics, prior, FIRST, 0.0), prior, -np.inf, 0, False)


def lot_topics(bags: sparse.csr_array, fit: TopicFit, settings: EMSettings) -> np.ndarray:
    """Topics of some of the bags that a fit is of, by steps from it that leave its prior, (n_atoms, k)."""
    settings = settings._replace(tol=0.0, learn_prior=False)
    return _steps(bags, first_fit(bags, fit.topics, fit.prior), settings, _at_mean_logs).topics


def _steps(
    bags: sparse.csr_array,
    start: TopicFit,
    settings: EMSettings,
    taken: Callable[[np.ndarray], np.ndarray],
) -> TopicFit:
    """Steps from a fit until one changes the log-likelihood per draw by less than ``tol``; ``taken`` gives shares."""
    topics, prior = start.topics, start.prior
    counts = start.shares * bags.sum(axis=1)[:, None] + prior
    draws, last, change, steps = max(float(bags.sum()), TINY), -np.inf, np.inf, 0
    while abs(change) >= settings.tol and steps < settings.max_iter:
        used = taken(counts)
        ratios, value = counts_over_chances(bags, used, topics)
        of_bags, of_atoms = used * (ratios @ topics), topics * (ratios.T @ used)
        if settings.learn_prior:
            prior = dirichlet_step(of_bags[:, None, :], prior[None])[0]
        counts, topics = of_bags + prior, as_shares(of_atoms + settings.smoothing, axis=0)
        change, last, steps = (value - last) / draws, value, steps + 1
    return TopicFit(topics, as_shares(counts, axis=1), prior, last, steps, abs(change) < settings.tol)
