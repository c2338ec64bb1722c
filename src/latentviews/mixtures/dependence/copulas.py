r"""Mixtures whose components may have dependent columns: a Gaussian copula over margins without a shape.

.. math:: f_j(x) = \prod_t f_{jt}(x_t) \; |R_j|^{-1/2} \exp\bigl(-\tfrac12 z^\top (R_j^{-1} - I) z\bigr),
          \qquad z_t = \Phi^{-1}(F_{jt}(x_t))

A margin f_jt is a weighted kernel density estimate on a grid, with a hundredth of a wide Gaussian so that far rows have
a density too. A uniform background takes up stray rows (Banfield & Raftery 1993). Margins over several columns are the
same with a sub-matrix of R, so a missing value costs nothing but its column.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from latentviews._arrays import to_numpy
from latentviews._numbers import TINY
from latentviews.core import streams
from latentviews.core.features.bins import linear_bins

N_BINS = 256
TAIL = 0.01  # of a margin is a Gaussian three times as wide, which reaches beyond its grid
BOXED_TAIL = 1e-4  # the same where a background explains far rows
CLIP = 1e-5  # distribution functions are kept this far from zero and one
MARGIN = 5.0  # bandwidths by which a grid exceeds the data
NOISE = (1e-4, 0.1)  # least and largest weight of the background
CLASS_NOISE = (1e-4, 0.5)  # where it is to explain rows
FAR = 0.1  # of its box is where such a background has fallen to an eighth outside it, as distance⁻³ farther out
RIDGE = 1e-3  # correlations are shrunk at least so much


@dataclass(frozen=True, eq=False)
class Frame:
    """The columns of a table that a copula joins, the range of each, and the bandwidth of its margins."""

    columns: list[int]
    low: np.ndarray  # (d,)
    high: np.ndarray  # (d,)
    bandwidths: np.ndarray  # (d,)
    box: np.ndarray | None = None  # (2, d), where the background lies if it is to explain rows; else it fills the range

    @classmethod
    def around(
        cls, table: np.ndarray, columns: Sequence[int], bandwidths: np.ndarray, *, boxed: bool = False
    ) -> "Frame":
        """The range of the rows of a table, less a few that are so far out that the grids would be coarse."""
        x, reach = table[:, columns], N_BINS / 8 * bandwidths
        inner = np.nanquantile(x, [0.005, 0.995], axis=0)
        low = np.maximum(np.nanmin(x, axis=0), inner[0] - reach) - bandwidths / 2
        high = np.minimum(np.nanmax(x, axis=0), inner[1] + reach) + bandwidths / 2
        return cls(list(columns), low, high, bandwidths, inner if boxed else None)

    @cached_property
    def grids(self) -> np.ndarray:
        """Uniform grids that exceed the range by what a kernel carries out, (d, B)."""
        margin = MARGIN * self.bandwidths
        return np.linspace(self.low - margin, self.high + margin, N_BINS, axis=1)

    def some(self, where: Sequence[int]) -> "Frame":
        """The frame of some of the columns, given by their places in ``columns``."""
        where = list(where)
        columns, box = [self.columns[t] for t in where], None if self.box is None else self.box[:, where]
        return Frame(columns, self.low[where], self.high[where], self.bandwidths[where], box)

    @property
    def tail(self) -> float:
        """The share of a margin that is a wide Gaussian."""
        return TAIL if self.box is None else BOXED_TAIL

    def bounded(self, noise: float) -> float:
        """A weight that the background may have."""
        return float(np.clip(noise, *(NOISE if self.box is None else CLASS_NOISE)))

    def cells(self, table: np.ndarray) -> "Cells":
        """The rows of a table on the grids; NaN is missing."""
        x = table[:, self.columns].T
        present = ~np.isnan(x)
        x = np.where(present, x, self.low[:, None])
        bins = [linear_bins(row, grid) for row, grid in zip(x, self.grids, strict=True)]
        if not present.all():
            bins = [streams.weigh(part, here.astype(float)) for part, here in zip(bins, present, strict=True)]
        outside = np.flatnonzero(np.any((x < self.grids[:, :1]) | (x > self.grids[:, -1:]), axis=0))
        beyond = x[:, outside] - np.clip(x[:, outside], self.grids[:, :1], self.grids[:, -1:])
        return Cells(bins, None if present.all() else present, outside, beyond, self._log_background(x, present))

    def _log_background(self, x: np.ndarray, present: np.ndarray) -> np.ndarray:
        """The log-density of the background at rows (d, n), over the columns that are present.

        Uniform in the range and zero outside; or uniform in the box, and (1 + u / FAR)⁻³ of that u boxes away from it,
        so that far rows are nearer to it than to any component, whose tails are Gaussian.
        """
        if self.box is None:
            inside = np.all((x >= self.low[:, None]) & (x <= self.high[:, None]), axis=0)
            return np.where(inside, -np.log(self.high - self.low) @ present, -np.inf)
        low, high = self.box[:, :, None]
        away = np.abs(x - np.clip(x, low, high)) / (high - low)
        return -np.sum((np.log((high - low) * (1 + FAR)) + 3 * np.log1p(away / FAR)) * present, axis=0)

    def sample_background(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """Rows of the background, (size, d)."""
        if self.box is None:
            return rng.uniform(self.low, self.high, size=(size, len(self.low)))
        low, high = self.box
        rows = rng.uniform(low, high, size=(size, len(low)))
        away = FAR * ((1 - rng.random(rows.shape)) ** -0.5 - 1) * (high - low)
        below, out = rng.random(rows.shape) < 0.5, rng.random(rows.shape) < FAR / (1 + FAR)
        return np.where(out, np.where(below, low - away, high + away), rows)

    @cached_property
    def smoothers(self) -> np.ndarray:
        """Gaussian kernels from grid to grid, (d, B, B)."""
        offsets = (self.grids[:, :, None] - self.grids[:, None, :]) / self.bandwidths[:, None, None]
        return np.exp(-0.5 * offsets**2) / (np.sqrt(2 * np.pi) * self.bandwidths[:, None, None])


class Cells(NamedTuple):
    """Some rows on the grids of a frame."""

    bins: list[Any]  # a sparse (n, B) a column, with the shares of the grid points beside a value
    present: np.ndarray | None  # (d, n), None where nothing is missing
    outside: np.ndarray  # (m,), the rows with a value outside its grid
    beyond: np.ndarray  # (d, m), how far outside it is
    log_uniform: np.ndarray  # (n,), the log-density of the background over the columns a row has

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.bins[0].shape[0]

    def shares(self, posteriors: np.ndarray) -> np.ndarray:
        """Σ_i posteriors_ij over the rows in a cell, (d, B, J)."""
        return np.stack([part.T @ posteriors for part in self.bins])

    def patterns(self) -> Iterator[tuple[np.ndarray, Any]]:
        """Which columns are present, and the rows of which that is so."""
        if self.present is None:
            yield np.arange(len(self.bins)), slice(None)
            return
        kinds, which = np.unique(self.present, axis=1, return_inverse=True)
        for i, kind in enumerate(kinds.T):
            yield np.flatnonzero(kind), np.flatnonzero(which == i)


@dataclass(frozen=True, eq=False)
class Margins:
    """The margins of J components, as the shares of their rows on the grids of a frame."""

    frame: Frame
    shares: np.ndarray  # (d, B, J), summing to one over a grid

    @cached_property
    def centers(self) -> np.ndarray:
        """Means, (d, J)."""
        return np.einsum("tb,tbj->tj", self.frame.grids, self.shares)

    @cached_property
    def reaches(self) -> np.ndarray:
        """Standard deviations of the wide Gaussians, (d, J)."""
        squares = np.einsum("tb,tbj->tj", self.frame.grids**2, self.shares) - self.centers**2
        return np.sqrt(9 * np.maximum(squares, 0.0) + self.frame.bandwidths[:, None] ** 2)

    @cached_property
    def tables(self) -> tuple[np.ndarray, np.ndarray]:
        """Log-densities and normal scores on the grids, each (d, B, J)."""
        smooth = self.frame.smoothers @ self.shares
        apart = (self.frame.grids[:, :, None] - self.centers[:, None, :]) / self.reaches[:, None, :]
        wide = np.exp(-0.5 * apart**2) / (np.sqrt(2 * np.pi) * self.reaches[:, None, :])
        tail = self.frame.tail
        density = np.maximum((1 - tail) * smooth + tail * wide, TINY)
        step = self.frame.grids[:, 1] - self.frame.grids[:, 0]
        below = (np.cumsum(smooth, axis=1) - smooth / 2) * step[:, None, None]
        distribution = (1 - tail) * below + tail * ndtr(apart)
        return np.log(density), ndtri(np.clip(distribution, CLIP, 1 - CLIP))

    def at(self, cells: Cells) -> tuple[np.ndarray, np.ndarray]:
        """Log Π_t f_jt(x_t), (J, n), and the normal scores z, (J, d, n); zero where a value is missing."""
        n_components = self.shares.shape[2]
        log_product = np.zeros((n_components, cells.n_rows))
        scores = np.empty((n_components, len(cells.bins), cells.n_rows))
        for t, (bins, *tables) in enumerate(zip(cells.bins, *self.tables, strict=True)):
            values = (bins @ np.hstack(tables)).T
            log_product += values[:n_components]
            scores[:, t] = values[n_components:]
        log_product[:, cells.outside] += self._beyond(cells.beyond)
        return log_product, scores

    def _beyond(self, beyond: np.ndarray) -> np.ndarray:
        """What a wide Gaussian loses between the end of a grid and values so far outside it, (J, m)."""
        ends = np.where(beyond > 0, self.frame.grids[:, -1:], self.frame.grids[:, :1])
        start = (ends[:, None] - self.centers[:, :, None]) / self.reaches[:, :, None]
        way = beyond[:, None] / self.reaches[:, :, None]
        return -np.sum(way * (start + way / 2), axis=0)

    @cached_property
    def n_parameters(self) -> np.ndarray:
        """The trace of every smoother, Σ_i k(0) / (n f(x_i)), (d, J)."""
        heights = 1 / (np.sqrt(2 * np.pi) * self.frame.bandwidths)
        own = self.shares * heights[:, None, None]
        return (own / np.maximum(np.exp(self.tables[0]), own + TINY)).sum(axis=1)


@dataclass(frozen=True, eq=False)
class CopulaMixture:
    """J components of dependent columns, and a uniform background.

    Parameters
    ----------
    weights : array of shape (J,), summing to one
    noise : float, the weight of the background beside them
    margins : Margins
    correlations : array of shape (J, d, d), the matrices R_j
    """

    weights: np.ndarray
    noise: float
    margins: Margins
    correlations: np.ndarray

    def log_joint(self, cells: Cells) -> np.ndarray:
        """Log (1 - noise) π_j f_j(x) over the columns a row has, (n, J)."""
        return _log_joint(cells, *self.margins.at(cells), self.correlations, self.weights, self.noise)

    def expected(self, cells: Cells) -> "Expected":
        """The E-step."""
        return _expected(self.log_joint(cells), np.log(self.noise) + cells.log_uniform)

    def some_columns(self, where: Sequence[int]) -> "CopulaMixture":
        """The marginal distribution of some columns, given by their places in the frame."""
        where = list(where)
        margins = Margins(self.margins.frame.some(where), self.margins.shares[where])
        return replace(self, margins=margins, correlations=self.correlations[:, where][:, :, where])

    def take(self, order: np.ndarray) -> "CopulaMixture":
        """The components in another order."""
        margins = replace(self.margins, shares=self.margins.shares[:, :, order])
        return replace(self, weights=self.weights[order], margins=margins, correlations=self.correlations[order])

    def quantiles(self, component: int, scores: np.ndarray) -> np.ndarray:
        """Rows (n, d) whose normal scores in a component are these."""
        _, tables = self.margins.tables
        columns = zip(scores.T, tables[:, :, component], self.margins.frame.grids, strict=True)
        return np.stack([np.interp(z, table, grid) for z, table, grid in columns], axis=1)

    def sample(self, component: int, size: int, rng: np.random.Generator) -> np.ndarray:
        """Rows of one component, (size, d)."""
        scores = rng.multivariate_normal(
            np.zeros(len(self.correlations[component])), self.correlations[component], size=size, method="cholesky"
        )
        return self.quantiles(component, scores)

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
    frame: Frame,
    table: np.ndarray,
    posteriors: np.ndarray,
    weights: np.ndarray | None = None,
    *,
    max_iter: int = 60,
    tol: float = 1e-4,
    report: Callable[[int, float], bool] = lambda n_iter, objective: False,
) -> CopulaFit:
    """EM from a guess of the posteriors (n, J), until a step gains less than ``tol`` log-likelihood a row.

    Margins are weighted kernel density estimates, as in nonparametric EM, and R_j is the weighted correlation of the
    normal scores, shrunk; no step is a maximum of anything, but all ascend until they hardly move.
    """
    cells = frame.cells(table)
    counts = np.ones(len(table)) if weights is None else weights
    shares, noise, before = posteriors * counts[:, None], 0.01, -np.inf
    for n_iter in range(1, max_iter + 1):
        mixture, joint = _maximised(frame, cells, shares, noise)
        expected = _expected(joint, np.log(noise) + cells.log_uniform)
        objective = float(np.average(expected.log_density, weights=weights))
        converged = abs(objective - before) < tol
        if report(n_iter, objective) or converged:
            break
        before, shares = objective, expected.shares * counts[:, None]
        noise = frame.bounded(1 - shares.sum() / counts.sum())
    return CopulaFit(mixture, expected, objective, n_iter, converged)


def refit(mixture: CopulaMixture, data: Any, weights: np.ndarray | None) -> CopulaMixture:
    """One more step over all rows of ``data``, in two passes: margins and weights, then correlations."""
    frame = mixture.margins.frame

    def share(batch: Any, weight: Any) -> tuple[Cells, np.ndarray]:
        cells = frame.cells(to_numpy(batch))
        shares = mixture.expected(cells).shares
        return cells, shares if weight is None else shares * weight[:, None]

    def margin_sums(batch: Any, weight: Any) -> tuple[np.ndarray, ...]:
        cells, shares = share(batch, weight)
        return shares.sum(axis=0), cells.shares(shares)

    def score_sums(batch: Any, weight: Any) -> tuple[np.ndarray, ...]:
        cells, shares = share(batch, weight)
        return _score_sums(cells, margins.at(cells)[1], shares)

    total = streams.total(data, margin_sums, weights)
    mass, margins = total.sums[0], Margins(frame, _normalised(total.sums[1]))
    correlations = _correlations(*streams.total(data, score_sums, weights).sums)
    noise = frame.bounded(1 - mass.sum() / total.weight)
    return CopulaMixture(mass / mass.sum(), noise, margins, correlations)


def reweigh(mixture: CopulaMixture, data: Any, weights: np.ndarray | None, steps: int = 10) -> CopulaMixture:
    """The weights of the components and of the background after some steps over all rows of ``data``.

    The components stay as they are: margins without a shape would grow along stray rows, one bandwidth a step.
    """
    frame = mixture.margins.frame

    def mass_sums(batch: Any, weight: Any) -> tuple[np.ndarray, ...]:
        shares = mixture.expected(frame.cells(to_numpy(batch))).shares
        return (shares.sum(axis=0) if weight is None else weight @ shares,)

    for _ in range(steps):
        total = streams.total(data, mass_sums, weights)
        mass = total.sums[0]
        noise = frame.bounded(1 - mass.sum() / total.weight)
        mixture = replace(mixture, weights=mass / mass.sum(), noise=noise)
    return mixture


def _maximised(frame: Frame, cells: Cells, shares: np.ndarray, noise: float) -> tuple[CopulaMixture, np.ndarray]:
    """The M-step from shares (n, J) of the rows, and the joint density of its answer, (n, J)."""
    mass = np.maximum(shares.sum(axis=0), TINY)
    margins = Margins(frame, _normalised(cells.shares(shares)))
    log_product, scores = margins.at(cells)
    correlations = _correlations(*_score_sums(cells, scores, shares))
    mixture = CopulaMixture(mass / mass.sum(), noise, margins, correlations)
    return mixture, _log_joint(cells, log_product, scores, correlations, mixture.weights, noise)


def _expected(joint: np.ndarray, log_noise: np.ndarray) -> Expected:
    """The E-step from the joint density of rows and components, (n, J), and the background's part of it."""
    largest = np.maximum(joint.max(axis=1), log_noise)
    own = np.exp(joint - largest[:, None])
    total = own.sum(axis=1) + np.exp(log_noise - largest)
    alone = np.exp(joint - joint.max(axis=1, keepdims=True))  # of rows that the background explains, too
    return Expected(alone / alone.sum(axis=1, keepdims=True), own / total[:, None], largest + np.log(total))


def _normalised(shares: np.ndarray) -> np.ndarray:
    return shares / np.maximum(shares.sum(axis=1, keepdims=True), TINY)


def _score_sums(cells: Cells, scores: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray, ...]:
    """Σ_i r_ij over the rows that have two columns, and of their scores and products of scores: (J, d, d) each."""
    each = shares.T[:, None]  # (J, 1, n)
    weighed = each * scores
    second = weighed @ scores.transpose(0, 2, 1)
    if cells.present is None:
        mass = np.broadcast_to(shares.sum(axis=0)[:, None, None], second.shape)
        return np.array(mass), np.broadcast_to(weighed.sum(axis=2)[:, :, None], second.shape).copy(), second
    present = cells.present.astype(float)
    return (each * present) @ present.T, weighed @ present.T, second


def _correlations(mass: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Correlation matrices (J, d, d) from the sums of scores, shrunk to the identity by 2(d + 1) rows."""
    d = second.shape[1]
    mass = np.maximum(mass, TINY)
    covariance = second / mass - (first / mass) * (first / mass).transpose(0, 2, 1)
    spread = np.sqrt(np.maximum(np.einsum("jtt->jt", covariance), 1e-12))
    correlation = covariance / (spread[:, :, None] * spread[:, None, :])
    rows = np.einsum("jtt->jt", mass).min(axis=1)
    kept = np.maximum(1 - 2 * (d + 1) / np.maximum(rows, 1.0), 0.0) * (1 - RIDGE)
    correlation *= kept[:, None, None]
    correlation[:, range(d), range(d)] = 1.0
    least = np.linalg.eigvalsh(correlation)[:, 0]  # pairs with different rows missing need not fit together
    shrink = np.where(least < RIDGE, (1 - RIDGE) / (1 - np.minimum(least, RIDGE)), 1.0)[:, None, None]
    return shrink * correlation + (1 - shrink) * np.eye(d)


def _log_joint(
    cells: Cells,
    log_product: np.ndarray,
    scores: np.ndarray,
    correlations: np.ndarray,
    weights: np.ndarray,
    noise: float,
) -> np.ndarray:
    """Log (1 - noise) π_j f_j of the rows, (n, J), from their margins; rows with the same columns together."""
    joint = log_product + (np.log(np.maximum(weights, TINY)) + np.log1p(-noise))[:, None]
    for columns, rows in cells.patterns():
        matrix = correlations[:, columns][:, :, columns]
        z = scores if len(columns) == scores.shape[1] and isinstance(rows, slice) else scores[:, columns][:, :, rows]
        quadratic = ((np.linalg.inv(matrix) - np.eye(len(columns))) @ z * z).sum(axis=1)
        joint[:, rows] -= 0.5 * (quadratic + np.linalg.slogdet(matrix)[1][:, None])
    return joint.T
