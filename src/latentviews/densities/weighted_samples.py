"""Densities of several real columns: weighted rows, smoothed by Gaussians of many shapes that held-out rows choose."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from latentviews._arrays import to_numpy
from latentviews._numbers import LARGEST as FARTHEST
from latentviews._numbers import TINY
from latentviews.core.components import BACKGROUND, Components, as_rows, evaluate
from latentviews.core.kernels.real import Gaussian
from latentviews.densities.codebooks import whitened_squares
from latentviews.densities.weighted_kernels import WeightedKernels

POINTS = 1000  # rows that stand for all
WIDTHS = (0.14, 0.28, 0.56)  # of kernels, over the spread of their surroundings
LEVELS = 256  # points at which the distribution of a column in a component is known
LARGEST = 700.0  # logs of numbers
AT_ONCE = 2**22  # kernel values in memory
FAR = 1e140  # widths beyond which rows count as equally far: squares of so many are still numbers
NEGLIGIBLE = 1e-4  # of a component: what weighs less is left out


@dataclass(frozen=True, eq=False)
class WeightedSample(WeightedKernels):
    r"""Components as weighted rows, and their densities as mixtures of Gaussians on and among the rows.

    .. math:: p(x \mid h) = \sum_i w_{ih}\, N(x;\; c_i,\, s_i^2\, \Sigma_g), \qquad \Sigma_g^{-1} = A_g A_g^\top

    with w of ``weights``, c of ``centres``, s of ``widths``, g of ``shapes`` and A of ``maps``.

    Parameters
    ----------
    domain : Quadrature
    rows : array of shape (m, d)
    shares : array of shape (m, k), columns summing to one
    centres : array of shape (p, d)
    weights : array of shape (p, k), columns summing to one
    widths : array of shape (p,)
    shapes : array of shape (p,), increasing
    maps : array of shape (g, d, d)
    optimism : array of shape (k,)
        By how much a half of the rows is likelier under its own density than under the other half's.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import MultiViewMixture, Sieve
    >>> from latentviews.datasets import make_multiview
    >>> X = make_multiview(100, 2, n_views=4, random_state=0).X
    >>> model = MultiViewMixture(2, views=[[0, 1], [2], [3]], polish=Sieve(max_iter=0), random_state=0).fit(X)
    >>> pair = model.components_[0]  # the view of two columns
    >>> type(pair).__name__, pair.shares.sum(axis=0).round(6), pair.density(np.zeros((5, 2))).shape
    ('WeightedSample', array([1., 1.]), (5, 2))
    """

    rows: np.ndarray = field(repr=False)
    shares: np.ndarray = field(repr=False)
    centres: np.ndarray = field(repr=False)
    weights: np.ndarray = field(repr=False)
    widths: np.ndarray = field(repr=False)
    shapes: np.ndarray = field(repr=False)
    maps: np.ndarray = field(repr=False)
    optimism: np.ndarray = field(repr=False)

    def _values(self, x: Any) -> np.ndarray:
        """The densities over the domain's unit, (n, k)."""
        return np.exp(np.minimum(self._logs(x) - self._domain().log_unit, LARGEST))

    def log_density(self, x: Any) -> np.ndarray:
        """The log of ``density`` mixed with a millionth of a broad density, so that it is finite everywhere."""
        background = np.log(BACKGROUND) + self._domain().log_background(to_numpy(as_rows(x)))
        return np.logaddexp(self._logs(x), background[:, None])

    def _logs(self, x: Any) -> np.ndarray:
        """The logs of the densities, (n, k)."""
        x = to_numpy(as_rows(x))
        if x.shape[1] != self.rows.shape[1]:
            raise ValueError(f"This view has {self.rows.shape[1]} columns; got {x.shape[1]}.")
        return self._log_densities(x)

    def _log_densities(self, x: np.ndarray) -> np.ndarray:
        return log_densities(self._groups, x)

    @cached_property
    def _groups(self) -> list["GaussianGroup"]:
        """The kernels of every shape."""
        edges = np.searchsorted(self.shapes, np.arange(len(self.maps) + 1))
        places = [slice(*ends) for ends in pairwise(edges)]
        return [
            GaussianGroup(whitener, self.centres[i], self.widths[i], self.weights[i])
            for whitener, i in zip(self.maps, places, strict=True)
        ]

    def sample(self, component: int, size: int, rng: np.random.Generator) -> np.ndarray:
        """Rows drawn from the density of one component."""
        weights = self.weights[:, component]
        picked = rng.choice(len(weights), size=size, p=weights / weights.sum())
        noise = self.widths[picked, None] * rng.normal(size=(size, self.centres.shape[1]))
        back = np.linalg.inv(self.maps)[self.shapes[picked]]
        return self.centres[picked] + np.einsum("ij,ijk->ik", noise, back)

    def marginal(self, column: int) -> tuple[np.ndarray, np.ndarray]:
        """Increasing values of a column, and the share of every component up to them: sums of normal distributions."""
        centres, deviations = self._column(column)
        places = np.linspace(-5, 5, 41)[:, None]
        around, mass = (centres + places * deviations).ravel(), np.exp(-(places**2) / 2)[:, :, None] * self.weights
        order = np.argsort(around)
        cumulative = np.cumsum(mass.reshape(len(around), -1)[order], axis=0)
        levels = ndtr(np.linspace(-5, 5, LEVELS))  # as fine in the tails of every component as in its middle
        picked = [np.searchsorted(shares, levels * shares[-1]) for shares in cumulative.T]
        values = np.unique(around[order[np.minimum(np.concatenate(picked), len(order) - 1)]])
        return values, ndtr((values[:, None] - centres) / deviations) @ self.weights

    def _column(self, column: int) -> tuple[np.ndarray, np.ndarray]:
        """The centres and standard deviations of the kernels along a column, (p,)."""
        variances = (np.linalg.inv(self.maps)[:, :, column] ** 2).sum(axis=1)
        return self.centres[:, column], self.widths * np.sqrt(variances)[self.shapes]

    def _integrate(self, f: Any) -> np.ndarray:
        """A callable against the weighted rows themselves, with no smoothing."""
        return evaluate(f, self.rows) @ self.shares

    def take(self, order: np.ndarray) -> "WeightedSample":
        """The components in another order, or some of them."""
        chosen = {name: getattr(self, name)[..., order] for name in ("shares", "weights", "optimism")}
        return replace(self, **chosen)

    @property
    def n_parameters(self) -> np.ndarray:
        """How many parameters would overfit as much (Akaike 1974)."""
        return self.optimism

    def _as_sample(self) -> tuple[np.ndarray, np.ndarray]:
        return self.rows, self.shares

    def _coordinates(self, other: Components) -> np.ndarray:
        points, weights = other._as_sample()
        spread = WIDTHS[1] * self.rows.std(axis=0)
        kernel = Gaussian(np.where(spread > 0, spread, 1.0))
        values, vectors = np.linalg.eigh(kernel.gram(self.rows, self.rows))
        root = vectors / np.sqrt(np.maximum(values, 1e-10 * values[-1]))
        return root.T @ kernel.gram(self.rows, points) @ weights


class GaussianGroup(NamedTuple):
    """Gaussians of one shape: N(x; centres_i, widths_i² Σ), Σ⁻¹ = map mapᵀ, with their weights in every component."""

    map: np.ndarray  # (d, d)
    centres: np.ndarray  # (m, d)
    widths: np.ndarray  # (m,)
    weights: np.ndarray  # (m, k)

    def logs(self, x: np.ndarray) -> np.ndarray:
        """The logs of the Gaussians, (n, m)."""
        x = np.clip(x, -FARTHEST, FARTHEST)
        return np.linalg.slogdet(self.map)[1] + log_kernels(x @ self.map, self.centres @ self.map, self.widths)

    def scaled(self, shares: np.ndarray) -> "GaussianGroup":
        """The same with weights times ``shares`` (k,), and nothing of what is negligible then."""
        weights = self.weights * shares
        weights = np.where(weights > NEGLIGIBLE / POINTS, weights, 0.0)
        kept = weights.any(axis=1)
        return GaussianGroup(self.map, self.centres[kept], self.widths[kept], weights[kept])


Smoother = list[GaussianGroup]  # a way to smooth: groups whose weights add up to one in every component


def log_densities(smoother: Smoother, x: np.ndarray) -> np.ndarray:
    """The logs of the components' densities, (n, k)."""
    alone, others = ([group for group in smoother if (len(group.centres) == 1) is single] for single in (True, False))
    weights = np.concatenate([group.weights for group in alone + others])
    result = np.empty((len(x), weights.shape[1]))
    size = 1 + AT_ONCE // len(weights)
    for start in range(0, len(x), size):
        part = slice(start, start + size)
        logs = [_logs_of_each(alone, x[part])] if alone else []
        logs += [group.logs(x[part]) for group in others]
        result[part] = log_mixtures(np.concatenate(logs, axis=1), weights)
    return result


def _logs_of_each(groups: Smoother, x: np.ndarray) -> np.ndarray:
    """The logs of Gaussians with a shape each, (n, g)."""
    maps, widths = np.stack([group.map for group in groups]), np.concatenate([group.widths for group in groups])
    centres = np.concatenate([group.centres for group in groups])
    squares = whitened_squares(np.clip(x, -FARTHEST, FARTHEST), centres, maps, FAR * widths)
    dim = x.shape[1]
    return np.linalg.slogdet(maps)[1] - dim * (np.log(2 * np.pi) / 2 + np.log(widths)) - squares / (2 * widths**2)


def log_mixtures(logs: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The logs of mixtures, (n, k), of densities with these logs, (n, m), in shares (m, k)."""
    largest = logs.max(axis=1, keepdims=True)
    relative = logs - largest
    return np.log(np.maximum(np.exp(relative, out=relative) @ weights, TINY)) + largest


def log_kernels(x: np.ndarray, points: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """The logs of N(x_i; points_j, widths_j² I), (n, m)."""
    dim = x.shape[1]
    center = points.mean(axis=0) if len(points) else 0.0
    reach = FAR * (widths.min() if len(widths) else 1.0)
    x, points = np.clip(x - center, -reach, reach), points - center
    values = x @ (-2 * points.T)
    values += (x**2).sum(axis=1)[:, None]
    values += (points**2).sum(axis=1)
    np.maximum(values, 0.0, out=values)
    values *= -0.5 / widths**2
    values -= dim / 2 * np.log(2 * np.pi) + dim * np.log(widths)
    return values
