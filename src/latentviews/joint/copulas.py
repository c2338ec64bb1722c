"""Mixtures whose components join distributions without a shape by a Gaussian copula, and EM for them.

A component is p(x|h) = Π_t f_ht(x_t) · N(z; m_h, S_h) / Π_t N(z_t; 0, 1), with z_t = Φ⁻¹(F_ht(x_t)) the normal scores
of its real columns. With S = I it is a product, and the mixture a nonnegative low-rank tensor; with normal margins it
is a Gaussian mixture. Marginals, conditionals and draws stay in the family.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import logsumexp

from latentviews._arrays import to_numpy
from latentviews._numbers import TINY
from latentviews.core import streams
from latentviews.joint.margins import Margins

RIDGE = 1e-3  # the least that correlations are drawn towards zero
Pattern = tuple[Any, np.ndarray]  # rows, and which of the coupled columns they have


@dataclass(frozen=True, eq=False)
class CopulaMixture:
    """A mixture of k components over some columns.

    ``means`` (k, c) and ``covariances`` (k, c, c) are those of the normal scores of the coupled columns: zero and a
    correlation matrix as fitted, others once conditioned; None for products.
    """

    weights: np.ndarray  # (k,)
    margins: tuple[Margins, ...]
    means: np.ndarray | None = None
    covariances: np.ndarray | None = None

    @cached_property
    def columns(self) -> list[int]:
        """The columns that the density is of."""
        return sorted(j for group in self.margins for j in group.columns)

    @property
    def rank(self) -> int:
        """The number of components."""
        return len(self.weights)

    def log_joint(self, table: np.ndarray) -> np.ndarray:
        """Log π_h + log p(x|h) over the values a row has, (n, k); columns are found by their numbers."""
        return self._evaluate(table)[0]

    def log_density(self, table: np.ndarray) -> np.ndarray:
        """The log-density of every row over the values it has, (n,)."""
        return logsumexp(self.log_joint(table), axis=1)

    def _evaluate(self, table: np.ndarray) -> tuple[np.ndarray, np.ndarray | None, list[Pattern]]:
        """The log-joint, the normal scores of the coupled columns, and the rows by what they lack."""
        joint = np.tile(np.log(np.maximum(self.weights, TINY)), (len(table), 1))
        scores, patterns = None, []
        for group in self.margins:
            x = table[:, group.columns]
            logs, here = group.log_density(x), ~np.isnan(x)
            joint += logs.sum(axis=1) if here.all() else np.where(here[:, :, None], logs, 0.0).sum(axis=1)
            if group.coupled and self.covariances is not None:
                scores, patterns = group.scores(x), _patterns(here)
                for rows, present in patterns:
                    joint[rows] += self._coupling(scores[rows][:, present], present)
        return joint, scores, patterns

    def _coupling(self, scores: np.ndarray, present: np.ndarray) -> np.ndarray:
        """Log N(z; m, S) - Σ log N(z_t; 0, 1), (n, k)."""
        values = np.empty((len(scores), self.rank))
        for h, (mean, factor) in enumerate(self._factors(present)):
            z = scores[:, :, h]
            rest = solve_triangular(factor, (z - mean).T, lower=True, check_finite=False)
            values[:, h] = 0.5 * (np.sum(z**2, axis=1) - np.sum(rest**2, axis=0)) - np.log(np.diag(factor)).sum()
        return values

    def _factors(self, present: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """The mean of every component's present scores, and the Cholesky factor of their covariance."""
        box = np.ix_(present, present)
        pairs = zip(np.asarray(self.means), np.asarray(self.covariances), strict=True)
        return [(mean[present], np.linalg.cholesky(covariance[box])) for mean, covariance in pairs]

    def marginal(self, columns: Sequence[int]) -> "CopulaMixture":
        """The mixture of some columns."""
        keep, margins = set(columns), []
        found = self
        for group in self.margins:
            places = [p for p, j in enumerate(group.columns) if j in keep]
            if places:
                margins.append(group.take(places))
            if group.coupled and self.covariances is not None:
                box = np.ix_(range(self.rank), places, places)
                means, covariances = np.asarray(self.means)[:, places], self.covariances[box]
                found = replace(found, means=means if places else None, covariances=covariances if places else None)
        return replace(found, margins=tuple(margins))

    def conditional(self, given: Mapping[int, float]) -> "CopulaMixture":
        """The mixture of the other columns given values of some: weights by their density, scores by regression."""
        row = np.full((1, 1 + max(*self.columns, *given)), np.nan)
        row[0, list(given)] = list(given.values())
        known = self.marginal(list(given))
        joint = known.log_joint(row)[0]
        weights = np.exp(joint - logsumexp(joint))
        rest = self.marginal([j for j in self.columns if j not in given])
        coupled = next((group for group in self.margins if group.coupled), None)
        if self.covariances is None or coupled is None:
            return replace(rest, weights=weights)
        inside = [p for p, j in enumerate(coupled.columns) if j in given]
        outside = [p for p, j in enumerate(coupled.columns) if j not in given]
        if not inside or not outside:
            return replace(rest, weights=weights)
        scores = coupled.scores(row[:, coupled.columns])[0]
        means, covariances = [], []
        for h, (mean, covariance) in enumerate(zip(np.asarray(self.means), self.covariances, strict=True)):
            gain = np.linalg.solve(covariance[np.ix_(inside, inside)], covariance[np.ix_(inside, outside)]).T
            means.append(mean[outside] + gain @ (scores[inside, h] - mean[inside]))
            covariances.append(covariance[np.ix_(outside, outside)] - gain @ covariance[np.ix_(inside, outside)])
        return replace(rest, weights=weights, means=np.array(means), covariances=np.array(covariances))

    def sample(self, size: int, rng: np.random.Generator, n_columns: int) -> np.ndarray:
        """Rows drawn from the mixture, NaN in the columns it is not of, (size, n_columns)."""
        rows = np.full((size, n_columns), np.nan)
        labels = rng.choice(self.rank, size=size, p=self.weights / self.weights.sum())
        for h in range(self.rank):
            members = np.flatnonzero(labels == h)
            for group in self.margins:
                scores = rng.normal(size=(len(members), len(group.columns)))
                if group.coupled and self.covariances is not None:
                    scores = np.asarray(self.means)[h] + scores @ np.linalg.cholesky(self.covariances[h]).T
                rows[members[:, None], group.columns] = group.draw(scores, h)
        return rows


def _patterns(here: np.ndarray) -> list[Pattern]:
    """Rows that have the same columns, together; rows that have none are left out."""
    if here.all():
        return [(slice(None), np.arange(here.shape[1]))]
    kinds, which = np.unique(here, axis=0, return_inverse=True)
    which = which.ravel()
    return [(np.flatnonzero(which == i), np.flatnonzero(kind)) for i, kind in enumerate(kinds) if kind.any()]


def em_sums(mixture: CopulaMixture, table: np.ndarray, weights: np.ndarray | None = None) -> tuple[np.ndarray, ...]:
    """What rows add to a step of EM: log-likelihood, shares and their squares, margins, moments of the scores."""
    joint, scores, patterns = mixture._evaluate(table)
    log_likelihood = logsumexp(joint, axis=1)
    posteriors = np.exp(joint - log_likelihood[:, None])
    if weights is not None:
        posteriors *= weights[:, None]
        log_likelihood = log_likelihood * weights
    sums = [np.asarray(log_likelihood.sum()), *_share_sums(mixture.margins, table, posteriors)]
    if scores is not None:
        sums += _score_sums(mixture, scores, patterns, posteriors)
    return tuple(sums)


def _share_sums(margins: Sequence[Margins], table: np.ndarray, posteriors: np.ndarray) -> list[np.ndarray]:
    parts = [group.sums(table[:, group.columns], posteriors) for group in margins]
    return [posteriors.sum(axis=0), (posteriors**2).sum(axis=0), *parts]


def _score_sums(
    mixture: CopulaMixture, scores: np.ndarray, patterns: Sequence[Pattern], posteriors: np.ndarray
) -> list[np.ndarray]:
    """Σ τ z and Σ τ zzᵀ for every component, what is missing replaced by its expectation."""
    size = scores.shape[1]
    first, second = np.zeros((mixture.rank, size)), np.zeros((mixture.rank, size, size))
    for rows, present in patterns:
        absent = np.setdiff1d(np.arange(size), present)
        for h in range(mixture.rank):
            tau, z = posteriors[rows, h], scores[rows, :, h]
            if len(absent):
                covariance = np.asarray(mixture.covariances)[h]
                gain = np.linalg.solve(covariance[np.ix_(present, present)], covariance[np.ix_(present, absent)])
                z = z.copy()
                z[:, absent] = z[:, present] @ gain
                rest = covariance[np.ix_(absent, absent)] - covariance[np.ix_(absent, present)] @ gain
                second[h][np.ix_(absent, absent)] += tau.sum() * rest
            first[h] += tau @ z
            second[h] += (tau[:, None] * z).T @ z
    return [first, second]


def em_update(mixture: CopulaMixture, sums: Sequence[np.ndarray], shrinkage: float | None) -> CopulaMixture:
    """The mixture after a step of EM with these sums.

    Correlations are drawn towards zero by ``shrinkage`` (c + 1) / n_h, with n_h the effective number of rows of a
    component (Kish); None fits products.
    """
    share, squares = sums[1], sums[2]
    counts = share**2 / np.maximum(squares, TINY)
    n_groups = len(mixture.margins)
    margins = tuple(
        group.updated(part, counts) for group, part in zip(mixture.margins, sums[3 : 3 + n_groups], strict=True)
    )
    found = CopulaMixture(np.maximum(share / share.sum(), TINY), margins)
    coupled = sum(len(group.columns) for group in margins if group.coupled)
    if shrinkage is None or coupled < 2:
        return found
    means = np.zeros((mixture.rank, coupled))
    if len(sums) == 3 + n_groups:  # a first step: no scores yet
        return replace(found, means=means, covariances=np.tile(np.eye(coupled), (mixture.rank, 1, 1)))
    mass = np.maximum(share, TINY)[:, None]
    center = sums[-2] / mass
    covariances = sums[-1] / mass[:, None] - center[:, :, None] * center[:, None, :]
    drawn = np.clip(shrinkage * (coupled + 1) / np.maximum(counts, 1.0), RIDGE, 1.0)
    return replace(found, means=means, covariances=_correlations(covariances, drawn))


def _correlations(covariances: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """Correlation matrices, each drawn towards the identity."""
    spread = np.sqrt(np.maximum(np.diagonal(covariances, axis1=1, axis2=2), 1e-12))
    correlations = covariances / (spread[:, :, None] * spread[:, None, :])
    return (1 - drawn[:, None, None]) * correlations + drawn[:, None, None] * np.eye(covariances.shape[1])


def start_at(
    margins: Sequence[Margins],
    table: np.ndarray,
    posteriors: np.ndarray,
    shrinkage: float | None,
    weights: np.ndarray | None = None,
) -> CopulaMixture:
    """A mixture from a guess of the rows' posteriors."""
    posteriors = posteriors if weights is None else posteriors * weights[:, None]
    empty = CopulaMixture(np.ones(posteriors.shape[1]), tuple(margins))
    return em_update(empty, [np.zeros(()), *_share_sums(margins, table, posteriors)], shrinkage)


@dataclass(frozen=True, eq=False)
class CopulaFit:
    """Where EM ended."""

    mixture: CopulaMixture
    objective: float  # mean log-likelihood
    n_iter: int
    converged: bool


def fit_em(
    start: CopulaMixture,
    table: np.ndarray,
    shrinkage: float | None,
    weights: np.ndarray | None = None,
    max_iter: int = 100,
    tol: float = 1e-3,
    report: Callable[[int, float], bool] = lambda n_iter, objective: False,
) -> CopulaFit:
    """EM until a step gains less than ``tol`` a row; smoothing makes it an ascent only nearly, so the best is kept."""
    total = len(table) if weights is None else float(weights.sum())
    current, best, before = start, CopulaFit(start, -np.inf, 0, False), -np.inf
    for n_iter in range(1, max_iter + 1):
        sums = em_sums(current, table, weights)
        objective = float(sums[0]) / total
        if objective > best.objective:
            best = CopulaFit(current, objective, n_iter, False)
        stop = report(n_iter, objective)
        if stop or abs(objective - before) < tol:
            return replace(best, n_iter=n_iter, converged=not stop)
        before, current = objective, em_update(current, sums, shrinkage)
    return replace(best, n_iter=max_iter)


def step_over(mixture: CopulaMixture, data: Any, shrinkage: float | None, weights: Any = None) -> CopulaMixture:
    """One more step of EM, over all rows of an array or a stream."""

    def row_sum(batch: Any, weight: Any) -> tuple[np.ndarray, ...]:
        return em_sums(mixture, to_numpy(batch), None if weight is None else to_numpy(weight))

    return em_update(mixture, streams.total(data, row_sum, weights).sums, shrinkage)
