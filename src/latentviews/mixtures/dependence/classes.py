"""Classes whose views may depend on each other: every class a few components of a `CopulaMixture`.

What a mixture of independent views says through products of densities is said here through the joint density of all
columns; the margins of a class are mixtures of the margins of its components.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy.special import logsumexp

from latentviews._arrays import to_numpy
from latentviews._numbers import as_shares, brief, drawn_labels, generator_of, posteriors_of
from latentviews.core.components import BACKGROUND, HIGHEST, Components, as_rows
from latentviews.core.features.bins import BinnedFeatures
from latentviews.core.features.landmarks import LandmarkFeatures
from latentviews.core.kernels.quadrature import Quadrature
from latentviews.core.kernels.real import Gaussian
from latentviews.core.point_masses import WithPointMasses
from latentviews.core.tables import Columns
from latentviews.densities.gaussian_copulas import block, log_copula, regression
from latentviews.mixtures.dependence.copulas import CopulaMixture, Expected, fit_copulas, reweigh
from latentviews.mixtures.dependence.grids import GridRows

REFIT_STEPS = 10  # of EM on resampled rows
NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(32)  # for means of functions of a normal score


@dataclass(frozen=True, eq=False)
class DependentClasses:
    """Components of a mixture in classes.

    Parameters
    ----------
    mixture : CopulaMixture
    groups : array of shape (J,), the class of every component, -1 for noise
    columns : the columns of every view
    noise_class : bool
        Whether noise is a class of its own, the last: the background, and components that belong to no class. If not,
        the rows that the background explains are shared out among the classes as their posteriors say.
    """

    def __repr__(self) -> str:
        return brief(self)

    mixture: CopulaMixture
    groups: np.ndarray
    columns: Columns
    noise_class: bool = False

    @property
    def n_classes(self) -> int:
        """The number of classes, not counting noise."""
        return int(self.groups.max()) + 1

    @property
    def weights(self) -> np.ndarray:
        """How common the classes are, summing to one."""
        inside = self.groups >= 0
        shares = np.bincount(self.groups[inside], self.mixture.weights[inside], self.n_classes)
        return shares / shares.sum()

    @property
    def noise_weight(self) -> float:
        """How common noise is where it is a class, beside all classes together; zero where it is none."""
        parts = float(self.mixture.weights[self.groups < 0].sum())
        return self.mixture.noise + (1 - self.mixture.noise) * parts if self.noise_class else 0.0

    @property
    def dependence(self) -> str:
        """By Gaussian copulas."""
        return "copula"

    @property
    def can_refit(self) -> bool:
        """The mixture is refitted."""
        return True

    @property
    def n_parameters(self) -> float:
        """Those of the mixture, whose weights have a sum, and the weight of the background."""
        return self.mixture.n_parameters

    def log_joint(self, table: Any) -> np.ndarray:
        """The log of the joint density of rows and classes, over the columns a row has, (n, k) or (n, k + 1)."""
        cells = self._cells(table)
        parts = self.mixture.log_joint(cells)
        joint = np.stack([logsumexp(parts[:, self.groups == h], axis=1) for h in range(self.n_classes)], axis=1)
        noise = np.log(self.mixture.noise) + cells.log_uniform
        if self.noise_class:
            noise = logsumexp(np.column_stack([noise, parts[:, self.groups < 0]]), axis=1)
            return np.concatenate([joint, noise[:, None]], axis=1)
        total = logsumexp(joint, axis=1)
        return joint + (np.logaddexp(total, noise) - total)[:, None]

    def posteriors(self, table: Any) -> np.ndarray:
        """P(h | row), (n, k); less than one in sum where noise is a class."""
        joint = self.log_joint(table)
        return posteriors_of(joint)[:, : self.n_classes]

    def _cells(self, table: Any) -> GridRows:
        return self.mixture.margins.grids.cells(to_numpy(table))

    def take(self, order: np.ndarray) -> "DependentClasses":
        """The classes in another order."""
        return replace(self, groups=np.append(np.argsort(order), -1)[self.groups])

    def without_those_below(self, least: float, table: np.ndarray) -> "DependentClasses":
        """The classes that win so many of some rows; components of others go where they share most rows."""
        posteriors = self.posteriors(table)
        won = np.bincount(posteriors.argmax(axis=1), minlength=self.n_classes) / len(table)
        kept = np.flatnonzero((won >= least) | (won == won.max()))
        names = np.argmax(posteriors.T @ posteriors[:, kept], axis=1)
        names[kept] = np.arange(len(kept))
        return replace(self, groups=np.append(names, -1)[self.groups])

    def places(self, view: int) -> list[int]:
        """Where the columns of a view stand in the mixture's grids."""
        return [self.mixture.margins.grids.columns.index(column) for column in self.columns[view]]

    def sample(self, n_samples: int, n_columns: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Rows and their classes; -1 is noise, where it is a class, and columns in no view are NaN."""
        grids = self.mixture.margins.grids
        shares = np.append((1 - self.mixture.noise) * self.mixture.weights, self.mixture.noise)
        drawn = rng.choice(len(shares), size=n_samples, p=shares / shares.sum())
        rows = np.full((n_samples, n_columns), np.nan)
        for j in np.unique(drawn):
            members = np.flatnonzero(drawn == j)
            rows[members[:, None], grids.columns] = (
                self.mixture.sample(j, len(members), rng)
                if j < len(self.groups)
                else grids.sample_background(len(members), rng)
            )
        labels = np.append(self.groups, -1)[drawn]
        stray = np.flatnonzero(labels < 0)
        if not self.noise_class and len(stray):
            labels[stray] = drawn_labels(self.posteriors(rows[stray]), rng)
        return rows, labels

    def conditional(self, table: np.ndarray, view: int) -> "DependentConditional":
        """The distribution of one view given the others, for every row."""
        table, target = table.copy(), self.places(view)
        table[:, self.columns[view]] = np.nan
        cells = self._cells(table)
        given = self.mixture.expected(cells).posteriors
        scores = self.mixture.margins.at(cells)[1]
        n_components, width = len(self.groups), len(target)
        means = np.zeros((len(table), n_components, width))
        covariances = np.empty((len(table), n_components, width, width))
        for rows, known in cells.patterns:
            slopes, rest = regression(self.mixture.correlations, known, target)
            means[rows] = (slopes @ scores[:, known][:, :, rows]).transpose(2, 0, 1)
            covariances[rows] = rest
        return DependentConditional(given, means, covariances, self.mixture.some_columns(target))

    def functional_weights(self, table: np.ndarray, view: int, counts: np.ndarray) -> np.ndarray:
        """How much every row counts for means in every class, (n, k): other views alone would be misled, so all say."""
        return self.posteriors(table) * counts[:, None]

    def resampled(self, table: np.ndarray, counts: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
        """The shares (n, k) of the rows in the classes after a few steps of EM on rows that count so often."""
        start = self.mixture.expected(self._cells(table))
        for weights in counts:
            shares = self._refitted(table, start, weights) @ np.eye(self.n_classes + 1)[self.groups]
            yield shares[:, :-1] * weights[:, None]  # -1 is the last column

    def _refitted(self, table: np.ndarray, start: Expected, counts: np.ndarray) -> np.ndarray:
        """The shares of the rows in the components, (n, J), after some steps; rows of noise shape no component."""
        grids, refitted = (
            self.mixture.margins.grids,
            partial(fit_copulas, common=self.mixture.common, max_iter=REFIT_STEPS),
        )
        if not self.noise_class:
            return refitted(grids, table, start.posteriors, counts).expected.posteriors
        inside = start.shares.sum(axis=1) > 0.5
        if not counts[inside].any():  # nothing but noise was drawn, and the components stay as they are
            return start.shares
        fit = refitted(grids, table[inside], start.posteriors[inside], counts[inside])
        return reweigh(fit.mixture, table, counts).expected(self._cells(table)).shares


@dataclass(frozen=True, eq=False)
class DependentView(Components):
    """The distribution of one view in every class: mixtures of copula components.

    Parameters
    ----------
    domain : Quadrature
    mixture : CopulaMixture, of the columns of the view alone
    groups : array of shape (J,), the class of every component
    """

    mixture: CopulaMixture = field(repr=False)
    groups: np.ndarray = field(repr=False)

    @property
    def n_components(self) -> int:
        """The number of classes k."""
        return int(self.groups.max()) + 1

    @cached_property
    def _inside(self) -> np.ndarray:
        """The share of every component in every class, (J, k)."""
        shares = np.eye(self.n_components)[self.groups] * self.mixture.weights[:, None]
        return as_shares(shares, axis=0)

    @cached_property
    def _alone(self) -> CopulaMixture:
        """The mixture of a table that has the columns of the view only."""
        margins = self.mixture.margins
        grids = replace(margins.grids, columns=list(range(len(margins.grids.columns))))
        even = np.full(len(self.groups), 1.0)
        return replace(self.mixture, weights=even, noise=0.0, margins=replace(margins, grids=grids))

    def _values(self, x: Any) -> np.ndarray:
        """The densities, (n, k)."""
        x = to_numpy(as_rows(x))
        if x.shape[1] != len(self._alone.margins.grids.columns):
            raise ValueError(f"This view has {len(self._alone.margins.grids.columns)} column(s); got {x.shape[1]}.")
        logs = self._alone.log_joint(self._alone.margins.grids.cells(x))
        return np.exp(np.minimum(logs, np.log(HIGHEST))) @ self._inside

    def sample(self, component: int, size: int, rng: np.random.Generator) -> np.ndarray:
        """Rows drawn from one class."""
        parts = rng.choice(len(self.groups), size=size, p=self._inside[:, component])
        rows = np.empty((size, self.dim))
        for j in np.unique(parts):
            rows[parts == j] = self.mixture.sample(j, int(np.sum(parts == j)), rng)
        return rows

    @property
    def n_parameters(self) -> np.ndarray:
        """The traces of the smoothers and the correlations of its components, (k,)."""
        d = self.dim
        own = self.mixture.margins.n_parameters.sum(axis=0) + d * (d - 1) / 2
        return np.bincount(self.groups, own, self.n_components)

    def take(self, order: np.ndarray) -> "DependentView":
        """The classes in another order, or some of them."""
        where = np.full(self.n_components, -1)
        where[order] = np.arange(len(order))
        kept = np.flatnonzero(where[self.groups] >= 0)
        return DependentView(self.domain, self.mixture.take(kept), where[self.groups[kept]])

    @cached_property
    def _features(self) -> Any:
        nodes, widths = self._domain().nodes, self.mixture.margins.grids.bandwidths
        if self.dim == 1:
            return BinnedFeatures(Gaussian(float(widths[0]))).fit(nodes)
        few = nodes[:: max(1, len(nodes) // 4000)]
        return LandmarkFeatures(Gaussian(widths), 200, random_state=0).fit(few)

    def _coordinates(self, other: Components) -> np.ndarray:
        points, weights = other._as_sample()
        return np.asarray(self._features.transform(points).T @ weights)


def view_of(domain: Quadrature, mixture: CopulaMixture, groups: np.ndarray) -> Components:
    """The distribution of a view whose columns have this mixture: one column apart from point masses, several not."""
    margins = mixture.margins
    if margins.masses is None or not margins.masses.columns.has.any():
        return DependentView(domain, replace(mixture, margins=margins.without_masses()), groups)
    if len(margins.grids.columns) > 1:
        return DependentView(domain, replace(mixture, margins=margins.smoothed()), groups)
    elsewhere = np.maximum(margins.masses.elsewhere[0], BACKGROUND)
    others = replace(mixture, weights=mixture.weights * elsewhere, margins=margins.without_masses())
    shares = as_shares(np.eye(int(groups.max()) + 1)[groups] * mixture.weights[:, None], axis=0)
    values = margins.masses.columns.values[0]
    named = ~np.isnan(values)
    masses = margins.masses.chances[0][named] @ shares
    return WithPointMasses(domain, DependentView(domain, others, groups), values[named], masses)


@dataclass(frozen=True, eq=False)
class DependentConditional:
    """The distribution of one view given the others, for every row: its normal scores are Gaussian in a component."""

    def __repr__(self) -> str:
        return brief(self)

    posteriors: np.ndarray  # (n, J), of components given the other views
    means: np.ndarray  # (n, J, d), of the normal scores
    covariances: np.ndarray  # (n, J, d, d)
    mixture: CopulaMixture  # of the view

    def mean(self) -> np.ndarray:
        """The conditional mean of every row, (n, d)."""
        spreads = np.sqrt(np.einsum("njtt->njt", self.covariances))
        masses, shape = self.mixture.margins.masses, (self.means.shape[2], self.posteriors.shape[1])
        elsewhere = np.ones(shape) if masses is None else masses.elsewhere
        total = self.posteriors @ (np.zeros(shape) if masses is None else masses.means).T
        for node, weight in zip(NODES, NODE_WEIGHTS / NODE_WEIGHTS.sum(), strict=True):
            scores = self.means + node * spreads
            for j in range(self.posteriors.shape[1]):
                quantiles = elsewhere[:, j] * self.mixture.quantiles(j, scores[:, j])
                total += weight * self.posteriors[:, j, None] * quantiles
        return total

    def density(self, x: Any) -> np.ndarray:
        """The conditional density of every row at the points ``x``, (n, len(x)); a chance at point masses."""
        x, margins = to_numpy(as_rows(x)), self.mixture.margins
        cells = replace(margins.grids, columns=list(range(x.shape[1]))).cells(x)
        log_product, scores = margins.at(cells)
        total = np.zeros((len(self.means), len(x)))
        for points, columns in cells.patterns:
            for j, z in enumerate(scores):
                own = block(self.covariances[:, j], columns, columns)
                log_ratio = log_copula(z[None, columns][:, :, points], own, self.means[:, j][:, columns])
                total[:, points] += self.posteriors[:, j, None] * np.exp(log_product[j, points] + log_ratio)
        return total

    def sample(self, random_state: Any = None) -> np.ndarray:
        """One draw for every row, (n, d)."""
        rng = generator_of(random_state)
        parts = drawn_labels(self.posteriors, rng)
        rows = np.arange(len(parts))
        factors = np.linalg.cholesky(self.covariances[rows, parts])
        scores = self.means[rows, parts] + np.einsum("ntu,nu->nt", factors, rng.normal(size=self.means.shape[::2]))
        drawn = np.empty_like(scores)
        for j in np.unique(parts):
            rows = self.mixture.quantiles(j, scores[parts == j])
            drawn[parts == j] = self.mixture.put_at_masses(j, rows, rng)
        return drawn
