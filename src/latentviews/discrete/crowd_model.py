"""Dawid & Skene's model with workers that come from one crowd: what they answer, given the class of the task."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.special import digamma, gammaln, xlogy

from latentviews._numbers import as_shares, column_sums
from latentviews.discrete.crowd_answers import CrowdAnswers

STRENGTH = 4.0  # answers that the crowd counts for beside a worker's own, at first
IMAGINED, ANSWERED, RIGHT = 5, 8.0, 0.75  # workers beside those there are, answers of each to a class, share right
TASKS = 1.0  # imagined, of every class
BOUNDS = (1e-3, 1e4)  # of the Dirichlet's parameters


@dataclass(frozen=True, eq=False)
class Crowd:
    """Classes of tasks and what workers make of them; arrays of workers are [worker, class, answer]."""

    weights: np.ndarray  # (k,), how common every class is
    prior: np.ndarray  # (k, k), parameters of the Dirichlet law that a worker's answers to a class come from
    counts: np.ndarray  # (n_workers, k, k), expected answers of every worker on tasks of every class

    @property
    def confusion(self) -> np.ndarray:
        """The mean of every worker's confusion matrix, given all answers: the crowd's where there are few."""
        return as_shares(self.counts + self.prior, axis=2)

    def log_joint(self, table: sparse.csr_array) -> np.ndarray:
        """The logarithm of P(class, answers) of every task, (n_tasks, k), for a table of answers of these workers."""
        log_chances = np.log(self.confusion).transpose(0, 2, 1)  # [worker, answer, class], as the table's columns
        return table @ np.ascontiguousarray(log_chances).reshape(table.shape[1], -1) + np.log(self.weights)


@dataclass(frozen=True, eq=False)
class CrowdFit:
    """A crowd, what it says of the tasks it was fitted to, and how the steps went."""

    crowd: Crowd
    posteriors: np.ndarray  # (n_tasks, k)
    evidence: float  # lower bound on the log-likelihood of all answers, matrices of workers integrated out
    n_iter: int
    converged: bool


def fit_crowd(
    answers: CrowdAnswers, posteriors: np.ndarray, max_iter: int, tol: float, prior: np.ndarray | None = None
) -> CrowdFit:
    """EM from posteriors of tasks: expected counts, the crowd that they come from, posteriors again.

    It stops when the posteriors move by less than ``tol``, in total variation, on the mean task.
    """
    change, steps = np.inf, 0
    while change >= tol and steps < max_iter:
        before, crowd = posteriors, _maximised(answers, posteriors, prior)
        prior = crowd.prior
        posteriors = softmax_rows(crowd.log_joint(answers.table))
        change, steps = float(np.abs(posteriors - before).sum() / (2 * len(before))), steps + 1
    return CrowdFit(crowd, posteriors, evidence_of(crowd, before), steps, change < tol)


def softmax_rows(log_joint: np.ndarray) -> np.ndarray:
    """P(class | task), class by class: a table of millions of tasks is far longer than wide."""
    columns = np.ascontiguousarray(log_joint.T)
    columns -= columns.max(axis=0)
    np.exp(columns, out=columns)
    columns /= columns.sum(axis=0)
    return np.ascontiguousarray(columns.T)


def _maximised(answers: CrowdAnswers, posteriors: np.ndarray, prior: np.ndarray | None) -> Crowd:
    """The M step: expected counts of every worker, and one step of the crowd's law towards them."""
    counts, k = expected_counts(answers, posteriors), posteriors.shape[1]
    if prior is None:
        prior = STRENGTH * as_shares(counts.sum(axis=0) + 1 / k, axis=1)
    weights = as_shares(column_sums(posteriors) + TASKS)
    return Crowd(weights, dirichlet_step(np.concatenate([counts, imagined_workers(k)]), prior), counts)


def expected_counts(answers: CrowdAnswers, posteriors: np.ndarray) -> np.ndarray:
    """Expected answers of every worker to tasks of every class, (n_workers, k, k)."""
    _, n_workers, k = answers.shape
    return (answers.table.T @ posteriors).reshape(n_workers, k, k).transpose(0, 2, 1)


def imagined_workers(k: int) -> np.ndarray:
    """Counts of some workers who are right more often than not, (n, k, k).

    Where answers are few they speak for the crowd: else one worker is taken to know everything, or nobody anything.
    """
    wrong = (1 - RIGHT) / max(k - 1, 1)
    return np.tile(ANSWERED * np.where(np.eye(k, dtype=bool), RIGHT, wrong), (IMAGINED, 1, 1))


def dirichlet_step(counts: np.ndarray, prior: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Minka's fixed point for Dirichlet–multinomial counts (n, k, L): parameters (k, L) that make them likelier.

    a_l ← a_l Σ_w v_w [ψ(n_wl + a_l) − ψ(a_l)] / Σ_w v_w [ψ(n_w + a) − ψ(a)], a = Σ_l a_l, for weights v of workers.
    """
    strength, weights = prior.sum(axis=1), np.ones(len(counts)) if weights is None else weights
    above = (weights[:, None, None] * (digamma(counts + prior) - digamma(prior))).sum(axis=0)
    below = (weights[:, None] * (digamma(counts.sum(axis=2) + strength) - digamma(strength))).sum(axis=0)
    moved = prior * above / np.where(below > 0, below, 1.0)[:, None]
    return np.clip(np.where(below[:, None] > 0, moved, prior), *BOUNDS)


def log_evidence(counts: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """The logarithm of ∫ Π p^counts Dir(p; prior) over the last axis, without the multinomial coefficients."""
    strength, total = prior.sum(axis=-1), counts.sum(axis=-1)
    return gammaln(strength) - gammaln(total + strength) + (gammaln(counts + prior) - gammaln(prior)).sum(axis=-1)


def evidence_of(crowd: Crowd, posteriors: np.ndarray) -> float:
    """The evidence of expected counts and the entropy of the posteriors: a bound on the log-likelihood of answers."""
    k = len(crowd.weights)
    classes = log_evidence(posteriors.sum(axis=0), np.full(k, TASKS))
    return float(log_evidence(crowd.counts, crowd.prior).sum() + classes - xlogy(posteriors, posteriors).sum())


def information(crowd: Crowd) -> np.ndarray:
    """The share of the uncertainty about a task's class that one answer of a worker takes away, I(H; answer) / H(H)."""
    entropy = -xlogy(crowd.weights, crowd.weights).sum()
    if not entropy > 0:
        return np.zeros(len(crowd.counts))
    joint = crowd.weights[:, None] * crowd.confusion
    alone = joint.sum(axis=1)
    mutual = xlogy(joint, crowd.confusion).sum(axis=(1, 2)) - xlogy(alone, alone).sum(axis=1)
    return np.clip(mutual / entropy, 0.0, 1.0)
