"""Distributions of a column that have point masses: the values themselves, and a density of the others."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from latentviews._arrays import to_numpy
from latentviews._numbers import TINY
from latentviews.core.components import BACKGROUND, Components, as_rows, evaluate
from latentviews.core.embeddings import components_in
from latentviews.core.features.point_masses import PointMassFeatures, which_mass
from latentviews.core.kernels.quadrature import Quadrature


@dataclass(frozen=True, eq=False)
class WithPointMasses(Components):
    r"""Components of one column, each with some of its mass at single values and a density elsewhere.

    .. math:: p(x \mid h) = \sum_a m_{ah} 1\{x = a\} + \bigl(1 - \textstyle\sum_a m_{ah}\bigr) f_h(x) 1\{x \ne a\}

    is a density with respect to Lebesgue measure plus counting measure at the point masses a: ``density`` is m_ah
    there, a probability, and elsewhere a density as usual.

    Parameters
    ----------
    domain : Quadrature, of the other values
    inside : Components, the densities f_h of the other values
    values : array of shape (A,), increasing
    masses : array of shape (A, k), from 0 to 1 in every column
    """

    inside: Components
    values: np.ndarray
    masses: np.ndarray

    @property
    def shares(self) -> np.ndarray:
        """The share of every component that is elsewhere, (k,)."""
        return np.maximum(1.0 - self.masses.sum(axis=0), 0.0)

    @property
    def smooths(self) -> bool:
        """Whether a known kernel makes densities of the other values."""
        return self.inside.smooths

    def _values(self, x: Any) -> np.ndarray:
        return self._split(x, self.inside._values)

    def _proper(self, x: Any) -> np.ndarray:
        return self._split(x, self.inside._proper)

    def _split(self, x: Any, inside: Callable[[Any], np.ndarray]) -> np.ndarray:
        """The masses at point masses, the share of ``inside`` elsewhere, (n, k), over the unit of the domain."""
        x, at = self._places(x)
        return np.where(at[:, None] < 0, self.shares * inside(x), self.masses[at] * np.exp(-self._domain().log_unit))

    def log_density(self, x: Any) -> np.ndarray:
        """The log of ``density`` mixed with a millionth of a broad one, and of every point mass: finite everywhere."""
        x, at = self._places(x)
        off = np.log(np.maximum(self.shares, BACKGROUND)) + self.inside.log_density(x)
        return np.where(at[:, None] < 0, off, np.log(self.masses[at] + BACKGROUND))

    def elsewhere(self, x: Any) -> np.ndarray:
        """The densities off the point masses, (n, k), whose integral is what these leave to one."""
        return self.shares * self.inside.density(x)

    def _places(self, x: Any) -> tuple[np.ndarray, np.ndarray]:
        """Rows, and the point masses they are at."""
        x = to_numpy(as_rows(x))
        return x, which_mass(x[:, 0], self.values)

    @cached_property
    def mass(self) -> np.ndarray:
        """Integrals of the raw values and the point masses, (k,)."""
        return self.masses.sum(axis=0) + self.shares * self.inside.mass

    @cached_property
    def clipped(self) -> np.ndarray:
        """The share of each component's absolute mass that was negative, (k,)."""
        return self.shares * self.inside.clipped

    @cached_property
    def _node_density(self) -> np.ndarray:
        return self.shares * self.inside._node_density

    def _integrate(self, f: Callable[[np.ndarray], Any]) -> np.ndarray:
        """A callable against the other values, and at the point masses."""
        with np.errstate(invalid="ignore", divide="ignore"):  # all rows of a class may be at point masses
            off = np.where(self.shares > 0, self.shares * self.inside._integrate(f), 0.0)
        return off + evaluate(f, self.values[:, None]) @ self.masses

    def sample(self, component: int, size: int, rng: np.random.Generator) -> np.ndarray:
        """Rows drawn from one component: point masses as they are."""
        chances = np.append(self.masses[:, component], self.shares[component])
        drawn = rng.choice(len(chances), size=size, p=chances / chances.sum())
        rows = np.append(self.values, np.nan)[drawn][:, None]
        off = np.flatnonzero(drawn == len(self.values))
        if len(off):
            rows[off] = self.inside.sample(component, len(off), rng)
        return rows

    def marginal(self, column: int) -> tuple[np.ndarray, np.ndarray]:
        """Increasing values, and the share of every component up to them: point masses twice, before and with them."""
        values, below = self.inside.marginal(column)
        before = np.stack([np.interp(self.values, values, share) for share in below.T], axis=1)
        every = np.concatenate([values, self.values, self.values])
        order = np.argsort(every, kind="stable")
        size = len(self.values)
        off = np.concatenate([below, before, before])[order] * self.shares
        jumps = np.concatenate([np.zeros((len(values) + size, self.n_components)), self.masses])[order]
        return every[order], off + np.cumsum(jumps, axis=0)

    def take(self, order: np.ndarray) -> "WithPointMasses":
        """The components in another order, or some of them."""
        return replace(self, inside=self.inside.take(order), masses=self.masses[:, order])

    @property
    def n_components(self) -> int:
        """The number of components k."""
        return self.masses.shape[1]

    @property
    def n_parameters(self) -> np.ndarray:
        """Those of the densities, and one for every point mass."""
        return self.inside.n_parameters + len(self.values)

    def _as_sample(self) -> tuple[np.ndarray, np.ndarray]:
        points, weights = self.inside._as_sample()
        return np.concatenate([points, self.values[:, None]]), np.concatenate([self.shares * weights, self.masses])

    def _coordinates(self, other: Components) -> np.ndarray:
        """Point masses are orthogonal to all else, and to each other, and about as long as a component."""
        unit = np.sqrt(np.mean(np.sum(self.inside._coordinates(self.inside) ** 2, axis=0)))
        if not isinstance(other, WithPointMasses):
            off = self.inside._coordinates(other)
            return np.concatenate([off, np.zeros((len(self.values), off.shape[1]))])
        known = which_mass(self.values, other.values)
        apart = np.where(known[:, None] < 0, 0.0, other.masses[known])
        return np.concatenate([self.inside._coordinates(other.inside) * other.shares, unit * apart])


def laws_in(
    features: Any, vectors: np.ndarray, domain: Quadrature | None, counts: np.ndarray | None = None
) -> Components:
    """The record for components given as vectors in a fitted map, with point masses where the map has some.

    ``counts`` are the rows behind every component, for bandwidths of their own.
    """
    if not isinstance(features, PointMassFeatures):
        return components_in(features, vectors, domain, counts)
    values = np.asarray(features.values, dtype=float)
    masses = np.clip(vectors[-len(values) :] / features.height_, 0.0, 1.0)
    masses = masses / np.maximum(masses.sum(axis=0), 1.0)
    shares = 1.0 - masses.sum(axis=0)
    rest = vectors[: -len(values)] / np.maximum(shares, BACKGROUND)
    inside = components_in(features.features_, rest, domain, None if counts is None else counts * shares)
    return WithPointMasses(domain, inside, values, masses)


def masses_of(model: Any) -> dict[int, np.ndarray]:
    """The point masses that the views of a fitted model have, by their columns."""
    views = zip(model.views_, model.components_, strict=True)
    return {columns[0]: view.values for columns, view in views if isinstance(view, WithPointMasses)}


def around_masses(features: Any, inside: Components, x: np.ndarray, shares: np.ndarray) -> Components:
    """Densities of the values off the point masses of a map, with these as rows (n, 1) that count (n, k) say."""
    if not isinstance(features, PointMassFeatures):
        return inside
    at = which_mass(x[:, 0], features.values)
    present = ~np.isnan(x[:, 0])
    total = np.maximum(shares[present].sum(axis=0), TINY)
    masses = np.stack([shares[at == number].sum(axis=0) / total for number in range(len(features.values))])
    return WithPointMasses(inside.domain, inside, np.asarray(features.values, dtype=float), masses)


def with_inside(
    view: Components, change: Callable[[Any, np.ndarray], Components], x: np.ndarray, kind: type[Components]
) -> Components:
    """A view whose densities are of a ``kind``, changed by the rows ``x`` (n,): of one with point masses, the others.

    Views of another kind stay as they are.
    """
    if isinstance(view, WithPointMasses):
        off = np.where(which_mass(x, view.values) < 0, x, np.nan)
        return replace(view, inside=with_inside(view.inside, change, off, kind))
    return change(view, x) if isinstance(view, kind) else view
