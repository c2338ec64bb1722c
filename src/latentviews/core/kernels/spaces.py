"""The spaces that densities live on: where to integrate, what to expect far from the data, how to draw."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy import stats
from scipy.stats import qmc
from sklearn.metrics.pairwise import euclidean_distances

GRID = 2**15  # at most this many nodes in a product grid; beyond it, importance sampling
DRAWS = 2**14
FAR = 1e6  # scales: rows farther out are taken to be there


@dataclass(frozen=True, eq=False)
class Domain:
    """A quadrature rule: ∫ f ≈ Σ_i weights_i f(nodes_i).

    ``cell`` is the width of the box around a node, along every column; zero for discrete data.
    """

    nodes: np.ndarray  # (n, d)
    weights: np.ndarray  # (n,)
    cell: np.ndarray  # (d,)
    log_unit: float = field(default=0.0, kw_only=True)  # that densities, and so one over the weights, are counted in

    def log_background(self, x: np.ndarray) -> np.ndarray:
        """The log of a broad density that is positive everywhere."""
        raise TypeError(f"{type(self).__name__} has no background density.")

    def draw(self, density: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
        """Rows drawn from the density with these values at the nodes: a node, then a place in its cell."""
        mass = self.weights * density
        rows = rng.choice(len(self.nodes), size=size, p=mass / mass.sum())
        return self.nodes[rows] + self.cell * rng.uniform(-0.5, 0.5, size=(size, self.nodes.shape[1]))


@dataclass(frozen=True, eq=False)
class Real(Domain):
    """Real columns with Lebesgue measure."""

    center: np.ndarray
    spread: np.ndarray

    def log_background(self, x: np.ndarray) -> np.ndarray:
        """A Cauchy density a column, as wide as the data."""
        return stats.cauchy.logpdf(x, self.center, self.spread).sum(axis=1)


class Circle(Domain):
    """Angles in radians."""

    def log_background(self, x: np.ndarray) -> np.ndarray:
        """The uniform density on the torus."""
        return np.full(len(x), -x.shape[1] * math.log(2 * math.pi))


class Discrete(Domain):
    """Finitely many values with counting measure."""

    def log_background(self, x: np.ndarray) -> np.ndarray:
        """The uniform law on the values seen and one more."""
        return np.full(len(x), -math.log(len(self.nodes) + 1))


def real(x: np.ndarray, scale: np.ndarray, rng: np.random.Generator, log_unit: float = 0.0) -> Real:
    """Nodes for functions as smooth as ``scale``, near the rows ``x``; densities are counted in a unit."""
    low, high = x.min(axis=0) - 6 * scale, x.max(axis=0) + 6 * scale
    per_bandwidth = 4 if x.shape[1] == 1 else 2
    counts = np.ceil(per_bandwidth * (high - low) / scale) + 1
    counts = np.maximum(counts, 1024 if x.shape[1] == 1 else 64)
    quartiles = np.percentile(x, [25, 75], axis=0)
    spread = np.maximum(x.std(axis=0), np.ptp(quartiles, axis=0)) + scale
    place = {"center": np.median(x, axis=0), "spread": spread, "log_unit": log_unit}
    if np.log(counts).sum() <= np.log(GRID):
        return Real(*_grid(low, high, counts.astype(int), log_unit), **place)
    nodes, weights = _around(x, scale) if x.shape[1] == 1 else _importance(x, 1.5 * scale, rng, log_unit)
    return Real(nodes, weights, scale / 2, **place)


def circle(x: np.ndarray, scale: np.ndarray, rng: np.random.Generator, log_unit: float = 0.0) -> Circle:
    """Nodes for functions as smooth as ``scale`` on the circle or torus."""
    dim = x.shape[1]
    counts = np.maximum(np.ceil(4 * 2 * math.pi / scale), 64)
    low, high = np.full(dim, -math.pi), np.full(dim, math.pi)
    if np.prod(counts) <= GRID:
        return Circle(*_grid(low, high, counts.astype(int)))
    nodes = qmc.scale(qmc.Sobol(dim, rng=rng).random(DRAWS), low, high)
    return Circle(nodes, np.full(DRAWS, (2 * math.pi) ** dim / DRAWS), np.minimum(scale / 2, 1.0))


def discrete(x: np.ndarray, scale: np.ndarray, rng: np.random.Generator, log_unit: float = 0.0) -> Discrete:
    """The different rows of ``x``."""
    nodes = np.unique(x, axis=0)
    return Discrete(nodes, np.ones(len(nodes)), np.zeros(x.shape[1]))


DOMAINS: dict[str, Callable[..., Domain]] = {
    "real": real,
    "circle": circle,
    "discrete": discrete,
}


def _grid(
    low: np.ndarray, high: np.ndarray, counts: np.ndarray, log_unit: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Midpoints of a product of equal cells, their volumes, and the cell's sides."""
    cell = (high - low) / counts
    axes = [a + c * (np.arange(n) + 0.5) for a, c, n in zip(low, cell, counts, strict=True)]
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(counts))
    return nodes, np.full(len(nodes), np.exp(np.log(cell).sum() + log_unit)), cell


def _around(x: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nodes near the values of one column that spreads too far for a grid, with trapezoidal weights."""
    centers = np.quantile(x[:, 0], np.linspace(0, 1, 512))
    nodes = np.unique(centers[:, None] + scale[0] * np.linspace(-6, 6, 49))
    gaps = np.diff(nodes)
    weights = np.concatenate([gaps, [0.0]]) / 2 + np.concatenate([[0.0], gaps]) / 2
    return nodes[:, None], np.minimum(weights, scale[0])  # between far clusters nothing is to be added


def _importance(
    x: np.ndarray, scale: np.ndarray, rng: np.random.Generator, log_unit: float
) -> tuple[np.ndarray, np.ndarray]:
    """Quasi-random nodes from a Gaussian mixture on rows of ``x``, weighted by one over its density."""
    dim = x.shape[1]
    centers = x[np.linspace(0, len(x) - 1, min(len(x), 512)).astype(int)]
    uniform = qmc.Sobol(dim + 1, rng=rng).random(DRAWS)
    picked = centers[(uniform[:, 0] * len(centers)).astype(int)]
    nodes = picked + scale * stats.norm.ppf(uniform[:, 1:].clip(1e-12, 1 - 1e-12))
    origin = np.median(centers, axis=0)  # far from it, distances would lose their digits
    near = [np.clip((points - origin) / scale, -FAR, FAR) for points in (nodes, centers)]
    squares = euclidean_distances(*near, squared=True)
    nearest = squares.min(axis=1, keepdims=True)
    log_density = -0.5 * nearest[:, 0] + np.log(np.exp(-0.5 * (squares - nearest)).mean(axis=1))
    log_density -= np.log(scale).sum() + dim / 2 * math.log(2 * math.pi)
    return nodes, np.exp(log_unit - log_density) / DRAWS
