"""Workers whose answers say nothing of the task: kinds of workers, and the probability of one of them.

A *spammer* answers by one law whatever the class. One of the *crowd* has a matrix from the crowd's Dirichlet law, or is
right with a chance of his own from its Beta law and says anything else otherwise. One who is *neither* has any matrix,
all as likely as each other: without this kind, who is merely unlike the rest would be a spammer. Without the crowd's
laws two laws of any shape explain chance answers nearly as well as one, and hardly any number of answers is enough.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, softmax

from latentviews._numbers import TINY, as_shares, evenly
from latentviews.discrete.crowd_answers import CrowdAnswers
from latentviews.discrete.crowd_model import (
    BOUNDS,
    Crowd,
    dirichlet_step,
    expected_counts,
    imagined_workers,
    log_evidence,
)

KINDS = 1.0  # workers imagined, of every kind
BATCH = 200_000  # tasks
SOME, NUMBERS = 1000, 50_000  # of more workers, or of more expected counts, so many say where to start
WORK, FEWEST = 8_000_000, 3  # expected counts times leaps after that, and the fewest of these
ALIKE = 100.0  # parameters of a law of workers who are much alike, summed
LEAPS, LONGER = 100, 5.0  # of EM on kinds, at most; times that a step may be as long after one
REST = 1e-4  # the change of a probability that ends it


def spammer_probability(crowd: Crowd, answers: CrowdAnswers, posteriors: np.ndarray) -> np.ndarray:
    """The probability that a worker's answers do not depend on the task's class, one per worker.

    By EM on the kinds of workers: how common they are, and the laws of the crowd, without those of other kinds.
    It starts from the law of all workers and from one of workers who are much alike; the likelier end is kept.
    """
    n_workers, k = crowd.counts.shape[:2]
    if k == 1:
        return np.zeros(n_workers)
    counts = expected_counts(answers, posteriors)
    workers = _Kinds.of(counts, own_word(crowd, counts, answers, posteriors))
    n_some = max(min(SOME, NUMBERS // k**2), 1)
    some = workers.some(evenly(n_workers, n_some))
    ends = [settled(some, some.start(law)) for law in (crowd.prior, some.alike())]
    best = max(ends, key=lambda end: end.likelihood)
    if n_workers <= n_some:
        return best.kinds[0]
    return settled(workers, best.after, int(np.clip(WORK // counts.size, FEWEST, LEAPS))).kinds[0]


class _Step(NamedTuple):
    """Kinds of workers by some parameters, and the parameters after a step of EM."""

    kinds: np.ndarray  # (4, n_workers), the probability of each
    likelihood: float
    after: np.ndarray


@dataclass(frozen=True, eq=False)
class _Kinds:
    """Expected answers of workers, and the steps of EM that say of which kind each is.

    What a step changes are logarithms in one vector: of the shares of the four kinds, of the crowd's law (k, k), and of
    the law of its chances to be right.
    """

    counts: np.ndarray  # (n_workers, k, k)
    gained: np.ndarray  # (n_workers,), by `own_word`
    known: np.ndarray  # (2, n_workers), log P(answers | kind) of spammers and of those who are neither

    @classmethod
    def of(cls, counts: np.ndarray, gained: np.ndarray) -> "_Kinds":
        """Workers by their counts; what no step changes is worked out once."""
        k = counts.shape[1]
        spammer, neither = log_evidence(counts.sum(axis=1), np.ones(k)), log_evidence(counts, np.ones((k, k)))
        return cls(counts, gained, np.stack([spammer, neither.sum(axis=1) - gained]))

    def some(self, chosen: np.ndarray) -> "_Kinds":
        """Those at some places."""
        return _Kinds(self.counts[chosen], self.gained[chosen], self.known[:, chosen])

    def start(self, law: np.ndarray) -> np.ndarray:
        """Kinds as common as each other, and a law of the crowd."""
        right = np.diag(as_shares(law, axis=1)).mean()
        chances = law.sum(axis=1).mean() * np.array([right, 1 - right])
        return np.log(np.concatenate([np.full(4, 0.25), law.ravel(), chances]))

    def alike(self) -> np.ndarray:
        """The law of a crowd of workers who are much alike: of those likelier to have any matrix than one law."""
        no_spammers = np.einsum("w,whl->hl", softmax(self.known, axis=0)[1], self.counts)
        return ALIKE * as_shares(no_spammers + imagined_workers(len(no_spammers)).sum(axis=0), axis=1)

    def laws(self, parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The shares of kinds, the law of the crowd (k, k), and that of its chances to be right (1, 2)."""
        k = self.counts.shape[1]
        shares, law, chances = np.split(np.exp(parameters), [4, 4 + k * k])
        return as_shares(shares), np.clip(law.reshape(k, k), *BOUNDS), np.clip(chances[None], *BOUNDS)

    def step(self, parameters: np.ndarray) -> _Step:
        """The E step and the M step."""
        shares, law, chances = self.laws(parameters)
        logs = self.log_evidences(law, chances) + np.log(shares)[:, None]
        imagined = imagined_workers(len(law))
        of_imagined = log_evidence(imagined, law).sum() + log_evidence(rights(imagined), chances).sum()
        likelihood = logsumexp(logs, axis=0).sum() + of_imagined + KINDS * np.log(shares).sum()
        kinds = softmax(logs, axis=0)
        return _Step(kinds, float(likelihood), self.maximised(parameters, kinds))

    def maximised(self, parameters: np.ndarray, kinds: np.ndarray) -> np.ndarray:
        """The M step. Both laws are of all who are of the crowd: else one of them would be the law of some few."""
        _, law, chances = self.laws(parameters)
        imagined = imagined_workers(len(law))
        everybody = np.concatenate([self.counts, imagined])
        usual = np.append(kinds[2] + kinds[3], np.ones(len(imagined)))
        law, chances = dirichlet_step(everybody, law, usual), dirichlet_step(rights(everybody), chances, usual)
        return np.log(np.concatenate([as_shares(kinds.sum(axis=1) + KINDS), law.ravel(), chances[0]]))

    def log_evidences(self, law: np.ndarray, chances: np.ndarray) -> np.ndarray:
        """The logarithm of P(answers | kind): spammers, neither, of the crowd's law, right by its chances."""
        right, k = rights(self.counts), self.counts.shape[1]
        by_law = log_evidence(self.counts, law).sum(axis=1)
        by_chances = log_evidence(right, chances)[:, 0] - right[:, 0, 1] * np.log(k - 1)
        return np.concatenate([self.known, [by_law - self.gained, by_chances - self.gained]])


def rights(counts: np.ndarray) -> np.ndarray:
    """How many answers are right and how many are wrong, (n, 1, 2)."""
    right = np.einsum("whh->w", counts)
    return np.stack([right, np.maximum(counts.sum(axis=(1, 2)) - right, 0.0)], axis=1)[:, None]


def settled(workers: _Kinds, start: np.ndarray, leaps: int = LEAPS) -> _Step:
    """The last step of EM, sped up by squared extrapolation (Varadhan & Roland 2008).

    A leap is taken back where the step after it is far longer than the one before.
    """
    current, before = start, np.zeros((4, len(workers.counts)))
    for _ in range(leaps):
        first = workers.step(current)
        if np.abs(first.kinds - before).max() < REST:
            break
        second, before = workers.step(first.after).after, first.kinds
        change, bend = first.after - current, second - 2 * first.after + current
        length = max(float(np.linalg.norm(change)) / max(float(np.linalg.norm(bend)), TINY), 1.0)
        leap = current + 2 * length * change + length**2 * bend
        landed = workers.step(leap).after
        current = landed if np.linalg.norm(landed - leap) <= LONGER * np.linalg.norm(change) else second
    return first


def own_word(crowd: Crowd, counts: np.ndarray, answers: CrowdAnswers, posteriors: np.ndarray) -> np.ndarray:
    """What every worker's own answers add to what others say of his tasks, Σ KL(r ‖ q), one per worker.

    The evidence of expected counts is a bound on that of answers only after this is taken off: nobody vouches for
    himself. r are the posteriors of a task and q ∝ r / C_w(·, l) those without the answer l, so that
    Σ KL = Σ counts log C_w + Σ log Σ_h r_h / C_w(h, l).
    """
    table, k, chances = answers.table, len(crowd.weights), crowd.confusion
    by_class = np.ascontiguousarray(chances.transpose(1, 0, 2).reshape(k, -1))  # then as the table's columns
    left = np.zeros(table.shape[1])
    for start in range(0, len(posteriors), BATCH):
        part = table[start : start + BATCH]
        whole = [np.repeat(column, np.diff(part.indptr)) for column in posteriors[start : start + BATCH].T]
        said = [np.take(row, part.indices) for row in by_class]
        left += np.bincount(part.indices, _log_left(whole, said, part.data), table.shape[1])
    return (counts * np.log(chances)).sum(axis=(1, 2)) + left.reshape(-1, k).sum(axis=1)


def _log_left(whole: list[np.ndarray], said: list[np.ndarray], weight: np.ndarray) -> np.ndarray:
    """The logarithm of Σ_h r_h / C(h, l)^v of every answer l of weight v, from the r and the C of every class."""
    pairs = zip(whole, said, strict=True)
    if np.all(weight == 1):  # logs take longer than all the rest
        return np.log(np.sum([share / chance for share, chance in pairs], axis=0))
    return logsumexp([np.log(np.maximum(share, TINY)) - weight * np.log(chance) for share, chance in pairs], axis=0)
