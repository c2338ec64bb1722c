"""Views of many columns: the few directions that other views say something of, and densities that live there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.covariance import ledoit_wolf, ledoit_wolf_shrinkage

from latentviews._numbers import thin_svd
from latentviews.core.kernels.quadrature import Quadrature
from latentviews.core.tables import Columns
from latentviews.densities.smoothers import weighted_samples
from latentviews.densities.weighted_samples import WeightedSample, log_densities

WIDE = 12  # columns beyond which a view has a subspace, if it has more of them than there are classes
PER_CLASS = 2  # directions of a subspace, where there are so many
LEAST = 100  # rows without missing values that directions are found from
FLAT = 1e-9  # the least variance of a direction, columns having one


def shared_directions(table: np.ndarray, columns: Columns, rank: int) -> dict[int, np.ndarray]:
    """The canonical directions (d, q) of every view with many columns, that predict the other views best.

    Given independence in classes, what other views tell of a view is Σ_h μ_h P(h | others): the cross-covariance has
    rank k - 1 at most, and its directions hold all that is linear in the classes (Hotelling 1936). Covariances are
    shrunk (Ledoit & Wolf 2004), rows with a missing value left out.
    """
    wide = [t for t, group in enumerate(columns) if len(group) > max(WIDE, rank)]
    if not wide or rank == 1:
        return {}
    rows = table[~np.isnan(table[:, [j for group in columns for j in group]]).any(axis=1)]
    if len(rows) < LEAST:
        return {}
    standard = [_standard(rows[:, group]) for group in columns]
    return {t: _canonical(standard, t, PER_CLASS * rank) / _spread(rows[:, columns[t]])[:, None] for t in wide}


def discriminant_directions(x: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """The directions (d, k - 1) in which classes differ most for the spread inside them (Fisher 1936).

    ``shares`` (n, k) says how much every row counts in every class. The covariance inside classes, which is shrunk, is
    the identity in these directions. Rows with a missing value are left out.
    """
    present = ~np.isnan(x).any(axis=1)
    rows, shares = x[present], shares[present]
    scale, counts = _spread(rows), shares.sum(axis=0)
    standard = _standard(rows)
    means = shares.T @ standard / np.maximum(counts, FLAT)[:, None]
    inside = standard - shares @ means / np.maximum(shares.sum(axis=1), FLAT)[:, None]
    here = _whitener(_standard(inside)) / (scale * _spread(inside))[:, None]
    left, _, _ = thin_svd(here.T @ (np.sqrt(counts)[:, None] * (means - counts @ means / counts.sum()) * scale).T)
    return here @ left[:, : len(counts) - 1]


def beside(directions: np.ndarray, others: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Directions (d, q), and so many of the rest of others (d, r) that there are r: uncorrelated with them in rows."""
    rows = x[~np.isnan(x).any(axis=1)]
    rows = rows - rows.mean(axis=0)
    rest = others - directions @ np.linalg.lstsq(rows @ directions, rows @ others, rcond=None)[0]
    _, spreads, axes = thin_svd(rows @ rest / np.sqrt(len(rows)))
    some = np.flatnonzero(spreads > FLAT)[: others.shape[1] - directions.shape[1]]
    return np.hstack([directions, rest @ axes[some].T / spreads[some]])


def in_subspaces(table: np.ndarray, columns: Columns, directions: Mapping[int, np.ndarray]) -> np.ndarray:
    """The views side by side, those that have directions in their subspace."""
    parts = [(table[:, group], directions.get(t)) for t, group in enumerate(columns)]
    return np.hstack([x if some is None else x @ some for x, some in parts])


def _standard(x: np.ndarray) -> np.ndarray:
    return (x - x.mean(axis=0)) / _spread(x)


def _spread(x: np.ndarray) -> np.ndarray:
    spread = x.std(axis=0)
    return np.where(spread > 0, spread, 1.0)


def _canonical(views: Sequence[np.ndarray], t: int, size: int) -> np.ndarray:
    """The first canonical directions of view t beside all others, each as long as its correlation."""
    others = np.hstack([x for s, x in enumerate(views) if s != t])
    here, there = _whitener(views[t]), _whitener(others)
    left, correlations, _ = thin_svd(here @ (views[t].T @ others / len(others)) @ there)
    return here @ left[:, :size] * correlations[:size]


def _whitener(x: np.ndarray) -> np.ndarray:
    """The inverse root of the shrunk covariance of standardised columns."""
    share = ledoit_wolf_shrinkage(x, assume_centered=True)
    values, vectors = np.linalg.eigh((1 - share) * x.T @ x / len(x) + share * np.eye(x.shape[1]))
    return vectors / np.sqrt(np.maximum(values, FLAT)) @ vectors.T


@dataclass(frozen=True, eq=False)
class SubspaceSample(WeightedSample):
    """Components that differ in a few directions A only, and have the rest in common.

    p(x | h) = p(Aᵀx | h) N(x; m, S) / N(Aᵀx; Aᵀm, AᵀSA): in the subspace a weighted sample, and given what is there the
    Gaussian of all rows.

    Parameters
    ----------
    directions : array of shape (d, q)
    mean : array of shape (d,)
    covariance : array of shape (d, d)
    """

    directions: np.ndarray = field(repr=False)
    mean: np.ndarray = field(repr=False)
    covariance: np.ndarray = field(repr=False)

    def _log_densities(self, x: np.ndarray) -> np.ndarray:
        centred, a = x - self.mean, self.directions
        rest = _log_normal(centred, self.covariance) - _log_normal(centred @ a, a.T @ self.covariance @ a)
        return log_densities(self._groups, x @ a) + rest[:, None]

    @cached_property
    def _back(self) -> np.ndarray:
        """What takes places in the subspace to the mean of all columns given them, (q, d)."""
        a = self.directions
        return np.linalg.solve(a.T @ self.covariance @ a, a.T @ self.covariance)

    def sample(self, component: int, size: int, rng: np.random.Generator) -> np.ndarray:
        """Rows drawn from the density of one component: of all, moved to places drawn in the subspace."""
        inside = super().sample(component, size, rng)
        rows = self.mean + rng.normal(size=(size, len(self.mean))) @ np.linalg.cholesky(self.covariance).T
        return rows + (inside - rows @ self.directions) @ self._back

    def _column(self, column: int) -> tuple[np.ndarray, np.ndarray]:
        """The centres and standard deviations of the kernels along a column, (p,)."""
        back = self._back[:, column]
        variances = ((np.linalg.inv(self.maps) @ back) ** 2).sum(axis=1)
        rest = self.covariance[column, column] - back @ self.directions.T @ self.covariance[:, column]
        centres = self.mean[column] + (self.centres - self.mean @ self.directions) @ back
        return centres, np.sqrt(self.widths**2 * variances[self.shapes] + max(rest, 0.0))


def _log_normal(x: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """The log of N(x_i; 0, covariance), (n,)."""
    root = np.linalg.cholesky(covariance)
    whitened = solve_triangular(root, x.T, lower=True)
    return -0.5 * (whitened**2).sum(axis=0) - np.log(np.diag(root)).sum() - len(root) / 2 * np.log(2 * np.pi)


def subspace_samples(
    x: np.ndarray,
    posteriors: np.ndarray,
    halves: tuple[np.ndarray, np.ndarray],
    domain: Quadrature,
    rng: np.random.Generator,
    n_judged: int,
    directions: np.ndarray,
) -> SubspaceSample:
    """Components from rows (n, d) and their posteriors, smoothed in a subspace."""
    inside = weighted_samples(x @ directions, posteriors, halves, domain, rng, n_judged, x)
    present = x[~np.isnan(x).any(axis=1)]
    spread = _spread(present)
    covariance = ledoit_wolf(_standard(present), assume_centered=True)[0] + FLAT * np.eye(len(spread))
    parts = {part.name: getattr(inside, part.name) for part in fields(inside)}
    scaled = covariance * np.outer(spread, spread)
    return SubspaceSample(**parts, directions=directions, mean=present.mean(axis=0), covariance=scaled)
