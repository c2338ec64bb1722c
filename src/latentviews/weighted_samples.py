"""Densities of several real columns as weighted samples, every component with a kernel shaped like itself."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from latentviews._arrays import to_numpy
from latentviews.domains import Domain
from latentviews.embeddings import Components, as_rows
from latentviews.kernels import Gaussian
from latentviews.streams import batches

TINY = np.finfo(float).tiny
POINTS = 1000  # rows that stand for all
WIDTHS = (0.1, 0.14, 0.2, 0.28, 0.4, 0.56, 0.8)  # kernels to choose from, over the component's own spread
SHRINKAGE = 1e-3  # of a component's covariance towards that of all rows
SHARE_STEPS = 20  # EM steps for the share of the broad part


@dataclass(frozen=True, eq=False)
class WeightedSample(Components):
    """Components as weighted points, each smoothed by a Gaussian shaped like its component.

    p(x | h) = Σ_i weights_ih N(x; points_i, (bandwidths_h local_ih)² Σ_h), with Σ_h the component's covariance. A point
    with a local factor of one over the bandwidth carries the component's own Gaussian.

    Parameters
    ----------
    domain : Domain
    points : array of shape (m, d)
    weights : array of shape (m, k), columns summing to one
    maps : array of shape (k, d, d), Σ_h⁻¹ = maps_h maps_hᵀ
    bandwidths : array of shape (k,)
    local : array of shape (m, k)
    """

    points: np.ndarray = field(repr=False)
    weights: np.ndarray = field(repr=False)
    maps: np.ndarray = field(repr=False)
    bandwidths: np.ndarray
    local: np.ndarray = field(repr=False)

    @property
    def n_components(self) -> int:
        """The number of components k."""
        return self.weights.shape[1]

    def at(self, x: Any) -> np.ndarray:
        """The densities, (n, k)."""
        x = to_numpy(as_rows(x))
        if x.shape[1] != self.points.shape[1]:
            raise ValueError(f"This view has {self.points.shape[1]} columns; got {x.shape[1]}.")
        parts = [self._at(rows) for rows, _ in batches(x)]
        return np.concatenate(parts) if parts else np.empty((0, self.n_components))

    def _at(self, x: np.ndarray) -> np.ndarray:
        values = np.empty((len(x), self.n_components))
        for h, (turn, bandwidth) in enumerate(zip(self.maps, self.bandwidths, strict=True)):
            used = self.weights[:, h] > 0
            widths = bandwidth * self.local[used, h]
            kernel = kernel_values(x @ turn, self.points[used] @ turn, widths)
            values[:, h] = abs(np.linalg.det(turn)) * (kernel @ self.weights[used, h])
        return values

    def sample(self, component: int, size: int, rng: np.random.Generator) -> np.ndarray:
        """Rows drawn from the density of one component."""
        weights = self.weights[:, component]
        picked = rng.choice(len(weights), size=size, p=weights / weights.sum())
        widths = self.bandwidths[component] * self.local[picked, component]
        noise = widths[:, None] * rng.normal(size=(size, self.points.shape[1]))
        return self.points[picked] + noise @ np.linalg.inv(self.maps[component])

    def _integrate(self, f: Any) -> np.ndarray:
        """A callable against the weights themselves, with no smoothing but that of the broad part."""
        values = np.asarray(f(self.points), dtype=float).reshape(len(self.points))
        return values @ self.weights / self.weights.sum(axis=0)

    def take(self, order: np.ndarray) -> "WeightedSample":
        """The components in another order, or some of them."""
        return replace(
            self,
            weights=self.weights[:, order],
            maps=self.maps[order],
            bandwidths=self.bandwidths[order],
            local=self.local[:, order],
        )

    @property
    def n_parameters(self) -> np.ndarray:
        """The trace of every smoother: how many kernels fit side by side."""
        heights = np.stack([abs(np.linalg.det(turn)) for turn in self.maps])
        dim = self.points.shape[1]
        own = self.weights * heights * (2 * np.pi) ** (-dim / 2) * (self.bandwidths * self.local) ** -dim
        return (own / np.maximum(self.at(self.points), own + TINY)).sum(axis=0)

    @cached_property
    def _positive_mass(self) -> np.ndarray:
        return self.weights.sum(axis=0)  # the kernels are densities: nothing to integrate

    def _as_sample(self) -> tuple[np.ndarray, np.ndarray]:
        return self.points, self.weights

    def _coordinates(self, other: Components) -> np.ndarray:
        points, weights = other._as_sample()
        spread = np.median(self.bandwidths) * self.points.std(axis=0)
        kernel = Gaussian(np.where(spread > 0, spread, 1.0))
        values, vectors = np.linalg.eigh(kernel.gram(self.points, self.points))
        root = vectors / np.sqrt(np.maximum(values, 1e-10 * values[-1]))
        return root.T @ kernel.gram(self.points, points) @ weights


def kernel_values(x: np.ndarray, points: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """N(x_i; points_j, widths_j² I), (n, m)."""
    dim = x.shape[1]
    center = points.mean(axis=0)
    x, points = x - center, points - center
    values = x @ (-2 * points.T)
    values += (x**2).sum(axis=1)[:, None]
    values += (points**2).sum(axis=1)
    np.maximum(values, 0.0, out=values)
    values *= -0.5 / widths**2
    np.exp(values, out=values)
    values /= (2 * np.pi) ** (dim / 2) * widths**dim
    return values


def weighted_samples(
    x: np.ndarray,
    posteriors: np.ndarray,
    halves: tuple[np.ndarray, np.ndarray],
    domain: Domain,
    rng: np.random.Generator,
    n_judged: int = POINTS,
) -> WeightedSample:
    """Components from rows (n, d) and their posteriors, with bandwidths that held-out rows prefer, a component each.

    Tried are kernels of several widths, the same everywhere or narrower where rows are many (Abramson 1982), each with
    as much of the component's own Gaussian beside it as makes held-out rows likeliest; ``n_judged`` rows of each half
    are asked. Rows with a missing value are left out.
    """
    present = ~np.isnan(x).any(axis=1)
    number = np.cumsum(present) - 1
    halves = tuple(number[half[present[half]]] for half in halves)
    x, posteriors = x[present], posteriors[present]
    few = [half[rng.permutation(len(half))[:n_judged]] for half in halves]
    rows = np.sort(rng.permutation(len(x))[:POINTS])
    k, dim = posteriors.shape[1], x.shape[1]
    points = np.concatenate([x[rows], np.zeros((k, dim))])
    weights, local = np.zeros((len(points), k)), np.ones((len(points), k))
    maps, bandwidths = np.empty((k, dim, dim)), np.empty(k)
    for h in range(k):
        shares = np.maximum(posteriors[:, h], TINY)
        maps[h], mean = _shape(x, shares)
        turned = x @ maps[h]
        width, adaptive, broad = _best_width([(turned[half], shares[half]) for half in few], mean @ maps[h])
        kept = shares[rows] / shares[rows].sum()
        factors = _local_factors(turned[rows], kept, width) if adaptive else np.ones(len(rows))
        points[len(rows) + h], bandwidths[h] = mean, width
        weights[: len(rows), h], local[: len(rows), h] = (1 - broad) * kept, factors
        weights[len(rows) + h, h], local[len(rows) + h, h] = broad, 1 / width
    return WeightedSample(domain, points, weights, maps, bandwidths, local)


def _shape(x: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A map that makes the weighted covariance the identity, and the weighted mean."""
    weights = shares / shares.sum()
    mean = weights @ x
    covariance = (x - mean).T @ ((x - mean) * weights[:, None])
    values, vectors = np.linalg.eigh(covariance + SHRINKAGE * np.diag(x.var(axis=0)))
    return vectors / np.sqrt(values), mean


def _best_width(halves: list[tuple[np.ndarray, np.ndarray]], mean: np.ndarray) -> tuple[float, bool, float]:
    """The width, whether it is local, and the share of the broad part, by the likelihood of either half.

    A half's rows are fewer, so its best width is wider than that of all by 2^(1/(d + 4)).
    """
    dim = halves[0][0].shape[1]
    wider = 2 ** (1 / (dim + 4))
    best = (-np.inf, WIDTHS[-1], False, 1.0)
    broad = [kernel_values(x, mean[None], np.ones(1))[:, 0] for x, _ in halves]
    for width in WIDTHS:
        for adaptive in (False, True):
            narrow = [_held_out(halves[1 - i], halves[i][0], min(wider * width, 1.0), adaptive) for i in range(2)]
            score, share = _mixed(np.concatenate(narrow), np.concatenate(broad), np.concatenate([s for _, s in halves]))
            if score > best[0]:
                best = (score, width, adaptive, share)
    return best[1:]


def _held_out(fitted: tuple[np.ndarray, np.ndarray], x: np.ndarray, width: float, adaptive: bool) -> np.ndarray:
    points, shares = fitted
    kept = shares / shares.sum()
    factors = _local_factors(points, kept, width) if adaptive else np.ones(len(points))
    return kernel_values(x, points, width * factors) @ kept


def _local_factors(points: np.ndarray, kept: np.ndarray, width: float) -> np.ndarray:
    """Abramson's (p(x) / mean)^(-1/2), with the geometric mean over the rows, within two octaves."""
    log_density = np.log(np.maximum(kernel_values(points, points, np.full(len(points), width)) @ kept, TINY))
    return np.exp(np.clip((kept @ log_density - log_density) / 2, -2 * np.log(2), 2 * np.log(2)))


def _mixed(narrow: np.ndarray, broad: np.ndarray, shares: np.ndarray) -> tuple[float, float]:
    """The weighted log-likelihood of the best mixture of two densities, and the share of the second."""
    weights, share = shares / shares.sum(), 0.3
    for _ in range(SHARE_STEPS):
        both = (1 - share) * narrow + share * broad + TINY
        share = float(np.clip(weights @ (share * broad / both), 0.01, 0.99))
    return float(weights @ np.log((1 - share) * narrow + share * broad + TINY)), share
