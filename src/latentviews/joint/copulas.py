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
from scipy.special import logsumexp

from latentviews._arrays import to_numpy
from latentviews._numbers import TINY, posteriors_of
from latentviews.core import streams
from latentviews.densities.gaussian_copulas import (
    Pattern,
    block,
    draw_scores,
    drawn_to_identity,
    log_copula,
    patterns,
    regression,
    to_correlations,
)
from latentviews.joint.margins import Margins, Normals

ROUNDING = 4096 * float(np.finfo(float).eps)  # of sums over many rows, in units of the largest thing added


@dataclass(frozen=True, eq=False)
class JointMixture:
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
        scores, found = None, []
        for group in self.margins:
            x = table[:, group.columns]
            here, joined = ~np.isnan(x), group.coupled and self.covariances is not None
            logs, z = group.log_density_and_scores(x) if joined else (group.log_density(x), None)
            joint += logs.sum(axis=1) if here.all() else np.where(here[:, :, None], logs, 0.0).sum(axis=1)
            if z is not None:
                scores, found = z, patterns(here)
                joint += self._log_copulas(z, found)
        return joint, scores, found

    def _log_copulas(self, scores: np.ndarray, found: Sequence[Pattern]) -> np.ndarray:
        """The log-densities of the copulas at normal scores (n, c, k), (n, k)."""
        means, covariances = np.asarray(self.means), np.asarray(self.covariances)
        values = np.empty((len(scores), self.rank))
        for rows, present in found:
            z = scores[rows][:, present].transpose(2, 1, 0)
            values[rows] = log_copula(z, block(covariances, present, present), means[:, present]).T
        return values

    def marginal(self, columns: Sequence[int]) -> "JointMixture":
        """The mixture of some columns."""
        keep, margins = set(columns), []
        found = self
        for group in self.margins:
            places = [p for p, j in enumerate(group.columns) if j in keep]
            if places:
                margins.append(group.take(places))
            if group.coupled and self.covariances is not None:
                means, covariances = np.asarray(self.means)[:, places], block(self.covariances, places, places)
                found = replace(found, means=means if places else None, covariances=covariances if places else None)
        return replace(found, margins=tuple(margins))

    def conditional(self, given: Mapping[int, float]) -> "JointMixture":
        """The mixture of the other columns given values of some: weights by their density, scores by regression."""
        row = np.full((1, 1 + max(*self.columns, *given)), np.nan)
        row[0, list(given)] = list(given.values())
        known = self.marginal(list(given))
        joint = known.log_joint(row)[0]
        weights = posteriors_of(joint)
        rest = self.marginal([j for j in self.columns if j not in given])
        coupled = next((group for group in self.margins if group.coupled), None)
        if self.covariances is None or coupled is None:
            return replace(rest, weights=weights)
        inside = [p for p, j in enumerate(coupled.columns) if j in given]
        outside = [p for p, j in enumerate(coupled.columns) if j not in given]
        if not inside or not outside:
            return replace(rest, weights=weights)
        scores = coupled.scores(row[:, coupled.columns])[0]
        means = np.asarray(self.means)
        slopes, covariances = regression(self.covariances, inside, outside)
        shifts = slopes @ (scores[inside].T - means[:, inside])[:, :, None]
        return replace(rest, weights=weights, means=means[:, outside] + shifts[:, :, 0], covariances=covariances)

    def sample(self, size: int, rng: np.random.Generator, n_columns: int) -> np.ndarray:
        """Rows drawn from the mixture, NaN in the columns it is not of, (size, n_columns)."""
        rows = np.full((size, n_columns), np.nan)
        labels = rng.choice(self.rank, size=size, p=self.weights / self.weights.sum())
        for h in range(self.rank):
            members = np.flatnonzero(labels == h)
            for group in self.margins:
                if group.coupled and self.covariances is not None:
                    scores = draw_scores(len(members), self.covariances[h], rng, np.asarray(self.means)[h])
                else:
                    scores = rng.normal(size=(len(members), len(group.columns)))
                rows[members[:, None], group.columns] = group.draw(scores, h)
        return rows


def em_sums(mixture: JointMixture, table: np.ndarray, weights: np.ndarray | None = None) -> tuple[np.ndarray, ...]:
    """What rows add to a step of EM: log-likelihood, shares and their squares, margins, moments of the scores."""
    joint, scores, found = mixture._evaluate(table)
    largest = joint.max(axis=1, keepdims=True)
    posteriors = np.exp(joint - largest)
    total = posteriors.sum(axis=1, keepdims=True)
    log_likelihood, posteriors = (largest + np.log(total))[:, 0], posteriors / total
    if weights is not None:
        posteriors *= weights[:, None]
        log_likelihood = log_likelihood * weights
    sums = [np.asarray(log_likelihood.sum()), *_share_sums(mixture.margins, table, posteriors)]
    if scores is not None:
        sums += _score_sums(mixture, scores, found, posteriors)
    return tuple(sums)


def _share_sums(margins: Sequence[Margins], table: np.ndarray, posteriors: np.ndarray) -> list[np.ndarray]:
    parts = [group.sums(table[:, group.columns], posteriors) for group in margins]
    return [posteriors.sum(axis=0), (posteriors**2).sum(axis=0), *parts]


def _score_sums(
    mixture: JointMixture, scores: np.ndarray, found: Sequence[Pattern], posteriors: np.ndarray
) -> list[np.ndarray]:
    """Σ τ z and Σ τ zzᵀ for every component, what is missing replaced by its expectation."""
    size, covariances = scores.shape[1], np.asarray(mixture.covariances)
    first, second = np.zeros((mixture.rank, size)), np.zeros((mixture.rank, size, size))
    for rows, present in found:
        tau, z = posteriors[rows].T, np.ascontiguousarray(scores[rows].transpose(2, 1, 0))
        if len(present) < size:
            absent = np.setdiff1d(np.arange(size), present)
            slopes, rest = regression(covariances, present, absent)
            z[:, absent] = slopes @ z[:, present]
            second[:, absent[:, None], absent] += tau.sum(axis=1)[:, None, None] * rest
        weighed = tau[:, None] * z
        first += weighed.sum(axis=2)
        second += weighed @ z.transpose(0, 2, 1)
    return [first, second]


@dataclass(frozen=True, eq=False)
class Shrinkage:
    """How the covariances of normal scores become correlations that few rows can bear.

    ``ridge`` is added to variances, then correlations are drawn towards zero by ``strength`` (c + 1) / n_h, with n_h
    the effective number of rows of a component (Kish). With ``axes`` margins are normal, and it is the covariances of
    y = axes x that are treated so. Where the axes whiten a table, components with few rows take its shape, and columns
    that hardly differ there stay as close in each of them.
    """

    strength: float
    ridge: float
    axes: np.ndarray | None = None  # (c, c)

    def shrunk(self, covariances: np.ndarray, counts: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Standard deviations (k, c) and correlations (k, c, c) of components with so many effective rows.

        Covariances are known up to the rounding of values of these ``sizes`` (k, c).
        """
        size = covariances.shape[1]
        covariances = definite(covariances + self.ridge * np.eye(size), sizes)
        drawn = np.minimum(self.strength * (size + 1) / np.maximum(counts, 1.0), 1.0)
        spread = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
        return spread, drawn_to_identity(to_correlations(covariances), drawn)

    def gaussian(
        self, before: Normals, center: np.ndarray, covariances: np.ndarray, counts: np.ndarray, sizes: np.ndarray
    ) -> tuple[Normals, np.ndarray]:
        """Normal margins and correlations, from moments of the scores that margins ``before`` gave.

        No column is narrower than its margins may be; combinations of columns are, where rounded values tell more of
        each other than they were rounded to.
        """
        axes = np.asarray(self.axes)
        turned = axes @ scaled(covariances, before.spread.T) @ axes.T
        back = np.linalg.inv(axes)
        units, correlations = self.shrunk(turned, counts, (sizes * before.spread.T) @ np.abs(axes).T)
        found = definite(back @ scaled(correlations, units) @ back.T, units @ np.abs(back).T)
        lacking = np.maximum(before.least**2 - np.diagonal(found, axis1=1, axis2=2), 0.0)
        found = found + lacking[:, :, None] * np.eye(len(axes))
        spread = np.sqrt(np.diagonal(found, axis1=1, axis2=2))
        margins = replace(before, center=before.center + before.spread * center.T, spread=spread.T)
        return margins, scaled(found, 1 / spread)


def definite(covariances: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Covariances (k, c, c) that are positive definite again after sums of products of values of these sizes (k, c).

    Rounding moves entry (a, b) by some multiple of ε s_a s_b, in units of s by a matrix whose norm is c times that: so
    much on the diagonal makes up for it.
    """
    size = covariances.shape[1]
    return covariances + ROUNDING * size * sizes[:, :, None] ** 2 * np.eye(size)


def scaled(matrices: np.ndarray, units: np.ndarray) -> np.ndarray:
    """Every entry (a, b) of matrices (k, c, c) times two of the units (k, c)."""
    return units[:, :, None] * matrices * units[:, None, :]


def em_update(mixture: JointMixture, sums: Sequence[np.ndarray], shrinkage: Shrinkage | None) -> JointMixture:
    """The mixture after a step of EM with these sums; without ``shrinkage`` it is of products."""
    share, squares = sums[1], sums[2]
    counts = share**2 / np.maximum(squares, TINY)
    n_groups = len(mixture.margins)
    margins = tuple(
        group.updated(part, counts) for group, part in zip(mixture.margins, sums[3 : 3 + n_groups], strict=True)
    )
    found = JointMixture(np.maximum(share / share.sum(), TINY), margins)
    coupled = sum(len(group.columns) for group in margins if group.coupled)
    if shrinkage is None or coupled < 2:
        return found
    means = np.zeros((mixture.rank, coupled))
    if len(sums) == 3 + n_groups:  # a first step: no scores yet
        return replace(found, means=means, covariances=np.tile(np.eye(coupled), (mixture.rank, 1, 1)))
    mass = np.maximum(share, TINY)[:, None]
    center, seconds = sums[-2] / mass, sums[-1] / mass[:, None]
    covariances = seconds - center[:, :, None] * center[:, None, :]
    sizes = np.sqrt(np.diagonal(seconds, axis1=1, axis2=2))
    if shrinkage.axes is None:
        return replace(found, means=means, covariances=shrinkage.shrunk(covariances, counts, sizes)[1])
    pairs = [
        shrinkage.gaussian(group, center, covariances, counts, sizes) if isinstance(group, Normals) else (new, None)
        for group, new in zip(mixture.margins, margins, strict=True)
    ]
    correlations = next(matrices for _, matrices in pairs if matrices is not None)
    return replace(found, margins=tuple(group for group, _ in pairs), means=means, covariances=correlations)


def start_at(
    margins: Sequence[Margins],
    table: np.ndarray,
    posteriors: np.ndarray,
    shrinkage: Shrinkage | None,
    weights: np.ndarray | None = None,
) -> JointMixture:
    """A mixture from a guess of the rows' posteriors."""
    posteriors = posteriors if weights is None else posteriors * weights[:, None]
    empty = JointMixture(np.ones(posteriors.shape[1]), tuple(margins))
    return em_update(empty, [np.zeros(()), *_share_sums(margins, table, posteriors)], shrinkage)


@dataclass(frozen=True, eq=False)
class JointFit:
    """Where EM ended."""

    mixture: JointMixture
    objective: float  # mean log-likelihood
    n_iter: int
    converged: bool


def fit_em(
    start: JointMixture,
    table: np.ndarray,
    shrinkage: Shrinkage | None,
    weights: np.ndarray | None = None,
    max_iter: int = 100,
    tol: float = 1e-3,
    report: Callable[[int, float], bool] = lambda n_iter, objective: False,
) -> JointFit:
    """EM until a step gains under ``tol`` per row; smoothing makes it an ascent only nearly, so the best is kept."""
    total = len(table) if weights is None else float(weights.sum())
    current, best, before = start, JointFit(start, -np.inf, 0, False), -np.inf
    for n_iter in range(1, max_iter + 1):
        sums = em_sums(current, table, weights)
        objective = float(sums[0]) / total
        if objective > best.objective:
            best = JointFit(current, objective, n_iter, False)
        stop = report(n_iter, objective)
        if stop or abs(objective - before) < tol:
            return replace(best, n_iter=n_iter, converged=not stop)
        before, current = objective, em_update(current, sums, shrinkage)
    return replace(best, n_iter=max_iter)


def step_over(mixture: JointMixture, data: Any, shrinkage: Shrinkage | None, weights: Any = None) -> JointMixture:
    """One more step of EM, over all rows of an array or a stream."""

    def row_sum(batch: Any, weight: Any) -> tuple[np.ndarray, ...]:
        return em_sums(mixture, to_numpy(batch), None if weight is None else to_numpy(weight))

    return em_update(mixture, streams.total(data, row_sum, weights).sums, shrinkage)
