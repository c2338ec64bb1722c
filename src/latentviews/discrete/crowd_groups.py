"""A start for crowds from moments: workers in three groups, whose mean answers are three views of a task's class.

Zhang, Chen, Zhou & Jordan (2016), "Spectral methods meet EM", section 3.
"""

import warnings
from itertools import combinations

import numpy as np
from scipy.optimize import linear_sum_assignment

from latentviews._numbers import as_shares, evenly
from latentviews._validation import IdentifiabilityWarning, UnsupportedError
from latentviews.core.moments import Pairs
from latentviews.core.tensors import JointDiagonalization
from latentviews.core.whitening import Whitening, symmetric_tensor, whiten
from latentviews.discrete.crowd_answers import CrowdAnswers
from latentviews.discrete.crowd_model import softmax_rows

MOST = 100_000  # tasks whose answers go into the moments
LEAST = 1e-3  # the least chance of an answer in a group's matrix, which moments leave below zero at times


def spectral_posteriors(answers: CrowdAnswers, rng: np.random.Generator) -> np.ndarray | None:
    """Posteriors of tasks by the confusion matrices of three groups of workers; None where moments do not give them."""
    n_tasks, n_workers, k = answers.shape
    if n_workers < 3 or k < 2:
        return None
    groups = balanced_groups(answers, rng)
    try:
        weights, matrices = group_confusions(_group_votes(answers, groups, evenly(n_tasks, MOST)), rng)
    except (UnsupportedError, np.linalg.LinAlgError):
        return None
    log_chances = np.log(matrices).transpose(0, 2, 1)[groups]  # [worker, answer, class], as the table's columns
    return softmax_rows(answers.table @ log_chances.reshape(-1, k) + np.log(weights))


def balanced_groups(answers: CrowdAnswers, rng: np.random.Generator) -> np.ndarray:
    """The group of every worker: each goes, the busiest first, where the fewest answers are so far."""
    n_workers, k = answers.shape[1:]
    load = np.asarray(answers.table.sum(axis=0)).reshape(n_workers, k).sum(axis=1)
    order = np.argsort(-load + rng.uniform(0, 1e-6, n_workers))
    groups, loads = np.empty(n_workers, dtype=int), [0.0, 0.0, 0.0]
    for worker in order.tolist():
        groups[worker] = least = loads.index(min(loads))
        loads[least] += load[worker]
    return groups


def _group_votes(answers: CrowdAnswers, groups: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """The weight of every label on some tasks in every group, (3, n_tasks, k)."""
    k = answers.shape[2]
    votes = answers.table[chosen] @ np.kron(np.eye(3)[groups], np.eye(k))
    return votes.reshape(len(chosen), 3, k).transpose(1, 0, 2)


def group_confusions(
    votes: np.ndarray, rng: np.random.Generator, shares: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """How common classes are, and P(answer | class) in three groups, (3, k, k), by moments of the groups' mean answers.

    A class is named after the label that its answers speak for, the groups taken together. ``shares`` are what tasks
    count for in the moments; a moment is taken over the tasks that all its groups answered.
    """
    k, means = votes.shape[2], as_shares(votes, axis=2)
    there = (votes.sum(axis=2) > 0) * (1.0 if shares is None else shares)
    pairs = {}
    for s, t in combinations(range(3), 2):
        both = np.minimum(there[s], there[t])
        pairs[s, t] = means[s].T @ (means[t] * as_shares(both)[:, None])
    whitening = _whitened(pairs, k)
    z = [means[t] @ whitening.down[t] for t in range(3)]
    tensor = np.einsum("ni,nj,nl,n->ijl", *z, as_shares(there.min(axis=0)), optimize=True)
    found = JointDiagonalization().decompose(symmetric_tensor(tensor), rng)
    if not found.values.min() > 0:
        raise UnsupportedError("The third moment of the groups has a direction without an eigenvalue.")
    matrices = np.stack([(up @ (found.vectors * found.values)).T for up in whitening.up])
    matrices = as_shares(np.maximum(matrices, LEAST), axis=2)
    _, order = linear_sum_assignment(-np.log(matrices).sum(axis=0).T)  # the class of every label
    return as_shares(found.values**-2.0)[order], matrices[:, order]


def _whitened(pairs: Pairs, k: int) -> Whitening:
    """The whitening of the groups, without its warning: EM from votes is there where moments fail."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentifiabilityWarning)
        return whiten(pairs, k)
