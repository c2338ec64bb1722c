r"""Mixtures whose components may have dependent columns: a Gaussian copula over margins without a shape.

.. math:: f_j(x) = \prod_t f_{jt}(x_t) \; |R_j|^{-1/2} \exp\bigl(-\tfrac12 z^\top (R_j^{-1} - I) z\bigr),
          \qquad z_t = \Phi^{-1}(F_{jt}(x_t))

Margins are those of `grids`, with point masses as in `masses`. A uniform background takes up stray rows (Banfield &
Raftery 1993). Margins over several columns are the same with a sub-matrix of R, so a missing value costs nothing but
its column.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from latentviews._arrays import to_numpy
from latentviews._numbers import TINY
from latentviews.core import streams
from latentviews.densities.gaussian_copulas import (
    block,
    draw_scores,
    drawn_to_identity,
    log_copula,
    to_correlations,
)
from latentviews.mixtures.dependence.grids import ColumnGrids, GridMargins, GridRows

RIDGE = 1e-3  # correlations are shrunk at least so much


@dataclass(frozen=True, eq=False)
class CopulaMixture:
    """J components of dependent columns, and a uniform background.

    Parameters
    ----------
    weights : array of shape (J,), summing to one
    noise : float, the weight of the background beside them
    margins : GridMargins
    correlations : array of shape (J, d, d), the matrices R_j
    common : float or None
        The weight of the mean of all R_j in each of them, in multiples of d + 1 rows; None draws them to the identity.
    """

    weights: np.ndarray
    noise: float
    margins: GridMargins
    correlations: np.ndarray
    common: float | None = None

    def log_joint(self, cells: GridRows) -> np.ndarray:
        """Log (1 - noise) π_j f_j(x) over the columns a row has, (n, J)."""
        return _log_joint(cells, *self.margins.at(cells), self.correlations, self.weights, self.noise)

    def expected(self, cells: GridRows) -> "Expected":
        """The E-step."""
        return _expected(self.log_joint(cells), np.log(self.noise) + cells.log_uniform)

    def some_columns(self, where: Sequence[int]) -> "CopulaMixture":
        """The marginal distribution of some columns, given by their places among them."""
        where = list(where)
        return replace(self, margins=self.margins.some(where), correlations=self.correlations[:, where][:, :, where])

    def take(self, order: np.ndarray) -> "CopulaMixture":
        """The components in another order."""
        margins, correlations = self.margins.take(order), self.correlations[order]
        return replace(self, weights=self.weights[order], margins=margins, correlations=correlations)

    def with_grids(self, grids: ColumnGrids) -> "CopulaMixture":
        """The same, whose margins will be on other grids of the same points when they are estimated again."""
        return replace(self, margins=replace(self.margins, grids=grids))

    def estimated_on(self, grids: ColumnGrids, table: np.ndarray, shares: np.ndarray) -> "CopulaMixture":
        """Components of rows with these shares (n, J), on other grids."""
        return _maximised(grids, grids.cells(table), shares, self.noise, self.common)[0]

    def quantiles(self, component: int, scores: np.ndarray) -> np.ndarray:
        """Rows (n, d), at no point mass, whose normal scores in a component are these."""
        _, tables = self.margins.tables
        columns = zip(scores.T, tables[:, :, component], self.margins.grids.points, strict=True)
        return np.stack([np.interp(z, table, grid) for z, table, grid in columns], axis=1)

    def sample(self, component: int, size: int, rng: np.random.Generator) -> np.ndarray:
        """Rows of one component, (size, d)."""
        rows = self.quantiles(component, draw_scores(size, self.correlations[component], rng))
        return self.put_at_masses(component, rows, rng)

    def put_at_masses(self, component: int, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Rows (n, d) of one component, moved to point masses as often as its rows are there."""
        masses = self.margins.masses
        return rows if masses is None else masses.put_into(component, rows, rng)

    @property
    def n_parameters(self) -> float:
        """Weights, correlations and the traces of the smoothers."""
        d = self.correlations.shape[1]
        return len(self.weights) * (1 + d * (d - 1) / 2) + float(self.margins.n_parameters.sum())


class Expected(NamedTuple):
    """The E-step."""

    posteriors: np.ndarray  # (n, J), of the components alone
    shares: np.ndarray  # (n, J), less what the background takes
    log_density: np.ndarray  # (n,), background included


class CopulaFit(NamedTuple):
    """Where EM ended."""

    mixture: CopulaMixture
    expected: Expected
    objective: float  # mean log-likelihood
    n_iter: int
    converged: bool


def fit_copulas(
    grids: ColumnGrids,
    table: np.ndarray,
    posteriors: np.ndarray,
    weights: np.ndarray | None = None,
    *,
    common: float | None = None,
    max_iter: int = 60,
    tol: float = 1e-4,
    report: Callable[[int, float], bool] = lambda n_iter, objective: False,
) -> CopulaFit:
    """EM from a guess of the posteriors (n, J), until a step gains less than ``tol`` log-likelihood per row.

    Margins are weighted kernel density estimates, as in nonparametric EM, and R_j is the weighted correlation of the
    normal scores, shrunk; no step is a maximum of anything, but all ascend until they hardly move.
    """
    cells = grids.cells(table)
    counts = np.ones(len(table)) if weights is None else weights
    shares, noise, before = posteriors * counts[:, None], 0.01, -np.inf
    for n_iter in range(1, max_iter + 1):
        mixture, joint = _maximised(grids, cells, shares, noise, common)
        expected = _expected(joint, np.log(noise) + cells.log_uniform)
        objective = float(np.average(expected.log_density, weights=weights))
        converged = abs(objective - before) < tol
        if report(n_iter, objective) or converged:
            break
        before, shares = objective, expected.shares * counts[:, None]
        noise = grids.bounded(1 - shares.sum() / counts.sum())
    return CopulaFit(mixture, expected, objective, n_iter, converged)


def refit(mixture: CopulaMixture, data: Any, weights: np.ndarray | None) -> CopulaMixture:
    """One more step over all rows of ``data``, in two passes: margins and weights, then correlations."""
    grids = mixture.margins.grids

    def share(batch: Any, weight: Any) -> tuple[GridRows, np.ndarray]:
        cells = grids.cells(to_numpy(batch))
        shares = mixture.expected(cells).shares
        return cells, shares if weight is None else shares * weight[:, None]

    def margin_sums(batch: Any, weight: Any) -> tuple[np.ndarray, ...]:
        cells, shares = share(batch, weight)
        sizes = shares.sum(axis=0), (shares**2).sum(axis=0)
        return *sizes, cells.shares(shares), cells.at_masses(shares, grids.n_masses)

    def score_sums(batch: Any, weight: Any) -> tuple[np.ndarray, ...]:
        cells, shares = share(batch, weight)
        return _score_sums(cells, margins.at(cells)[1], shares)

    total = streams.total(data, margin_sums, weights)
    mass, squares, sums, at_masses = total.sums
    margins = grids.margins(sums, mass**2 / np.maximum(squares, TINY), at_masses)
    correlations = _correlations(streams.total(data, score_sums, weights).sums, mixture.common)
    noise = grids.bounded(1 - mass.sum() / total.weight)
    return CopulaMixture(mass / mass.sum(), noise, margins, correlations, mixture.common)


def reweigh(mixture: CopulaMixture, data: Any, weights: np.ndarray | None, steps: int = 10) -> CopulaMixture:
    """The weights of the components and of the background after some steps over all rows of ``data``.

    The components stay as they are: margins without a shape would grow along stray rows, one bandwidth per step.
    """
    grids = mixture.margins.grids

    def mass_sums(batch: Any, weight: Any) -> tuple[np.ndarray, ...]:
        shares = mixture.expected(grids.cells(to_numpy(batch))).shares
        return (shares.sum(axis=0) if weight is None else weight @ shares,)

    for _ in range(steps):
        total = streams.total(data, mass_sums, weights)
        mass = total.sums[0]
        noise = grids.bounded(1 - mass.sum() / total.weight)
        mixture = replace(mixture, weights=mass / mass.sum(), noise=noise)
    return mixture


def _maximised(
    grids: ColumnGrids, cells: GridRows, shares: np.ndarray, noise: float, common: float | None
) -> tuple[CopulaMixture, np.ndarray]:
    """The M-step from shares (n, J) of the rows, and the joint density of its answer, (n, J)."""
    mass = np.maximum(shares.sum(axis=0), TINY)
    sizes = mass**2 / np.maximum((shares**2).sum(axis=0), TINY)
    margins = grids.margins(cells.shares(shares), sizes, cells.at_masses(shares, grids.n_masses))
    log_product, scores = margins.at(cells)
    correlations = _correlations(_score_sums(cells, scores, shares), common)
    mixture = CopulaMixture(mass / mass.sum(), noise, margins, correlations, common)
    return mixture, _log_joint(cells, log_product, scores, correlations, mixture.weights, noise)


def _expected(joint: np.ndarray, log_noise: np.ndarray) -> Expected:
    """The E-step from the joint density of rows and components, (n, J), and the background's part of it."""
    largest = np.maximum(joint.max(axis=1), log_noise)
    own = np.exp(joint - largest[:, None])
    total = own.sum(axis=1) + np.exp(log_noise - largest)
    alone = np.exp(joint - joint.max(axis=1, keepdims=True))  # of rows that the background explains, too
    return Expected(alone / alone.sum(axis=1, keepdims=True), own / total[:, None], largest + np.log(total))


def _score_sums(cells: GridRows, scores: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray, ...]:
    """Σ_i r_ij over the rows that have two columns, and of their scores and products of scores: (J, d, d) each."""
    each = shares.T[:, None]  # (J, 1, n)
    weighed = each * scores
    second = weighed @ scores.transpose(0, 2, 1)
    if cells.present is None:
        mass = np.broadcast_to(shares.sum(axis=0)[:, None, None], second.shape)
        return np.array(mass), np.broadcast_to(weighed.sum(axis=2)[:, :, None], second.shape).copy(), second
    present = cells.present.astype(float)
    return (each * present) @ present.T, weighed @ present.T, second


def _correlations(sums: tuple[np.ndarray, ...], common: float | None) -> np.ndarray:
    """Correlation matrices (J, d, d) from sums of scores, shrunk to the identity by 2(d + 1) rows, or to their mean.

    Every two columns have the rows that have both. Where rows are few for so many columns, what components have in
    common is determined better than what each has of its own, and better than that there is nothing.
    """
    mass, first, second = sums
    mass, d = np.maximum(mass, TINY), second.shape[1]
    covariance = second / mass - (first / mass) * (first / mass).transpose(0, 2, 1)
    correlations = to_correlations(covariance)
    if common is None:
        correlations *= np.maximum(1 - 2 * (d + 1) / np.maximum(mass, 1.0), 0.0)
    else:
        own = mass / (mass + common * (d + 1))
        correlations = own * correlations + (1 - own) * np.sum(mass / mass.sum(axis=0) * correlations, axis=0)
    correlations[:, range(d), range(d)] = 1.0
    correlations = drawn_to_identity(correlations, np.full(len(correlations), RIDGE))
    least = np.linalg.eigvalsh(correlations)[:, 0]  # pairs with different rows missing need not fit together
    return drawn_to_identity(correlations, np.maximum(RIDGE - least, 0.0) / (1 - np.minimum(least, RIDGE)))


def _log_joint(
    cells: GridRows,
    log_product: np.ndarray,
    scores: np.ndarray,
    correlations: np.ndarray,
    weights: np.ndarray,
    noise: float,
) -> np.ndarray:
    """Log (1 - noise) π_j f_j of the rows, (n, J), from their margins; rows with the same columns together."""
    joint = log_product + (np.log(np.maximum(weights, TINY)) + np.log1p(-noise))[:, None]
    for rows, columns in cells.patterns:
        z = scores if len(columns) == scores.shape[1] and isinstance(rows, slice) else scores[:, columns][:, :, rows]
        joint[:, rows] += log_copula(z, block(correlations, columns, columns))
    return joint.T
