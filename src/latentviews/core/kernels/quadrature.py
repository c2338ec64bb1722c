"""Where to integrate: nodes near the rows, with weights."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import stats
from scipy.stats import qmc
from sklearn.metrics.pairwise import euclidean_distances

from latentviews._numbers import standardised

GRID = 2**15  # at most this many nodes in a product grid; beyond it, importance sampling
DRAWS = 2**14  # nodes all over a torus
NEAR = 2**12  # nodes around the rows: masses are good to a hundredth
FAR = 1e6  # scales: rows farther out are taken to be there


def _nothing() -> np.ndarray:
    return np.empty(0)


@dataclass(frozen=True, eq=False)
class Quadrature:
    """A quadrature rule on a space: ∫ f ≈ Σ_i weights_i f(nodes_i).

    ``cell`` is the width of the box around a node, along every column; zero for discrete data. Where the values have
    an order, ``center`` and ``spread`` say where the rows lie.
    """

    nodes: np.ndarray  # (n, d)
    weights: np.ndarray  # (n,)
    cell: np.ndarray  # (d,)
    center: np.ndarray = field(default_factory=_nothing)  # (d,)
    spread: np.ndarray = field(default_factory=_nothing)  # (d,)
    space: Any = field(kw_only=True)
    log_unit: float = field(default=0.0, kw_only=True)  # that densities, and so one over the weights, are counted in

    def log_background(self, x: np.ndarray) -> np.ndarray:
        """The log of a broad density that is positive everywhere in the space."""
        return self.space.log_background(x, self)

    def draw(self, density: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
        """Rows drawn from the density with these values at the nodes: a node, then a place in its cell.

        A density that is zero at all nodes says nothing, and the nodes are then drawn by their weights alone.
        """
        mass = self.weights * density if np.any(self.weights * density > 0) else self.weights
        rows = rng.choice(len(self.nodes), size=size, p=mass / mass.sum())
        places = self.nodes[rows] + self.cell * rng.uniform(-0.5, 0.5, size=(size, self.nodes.shape[1]))
        return self.space.reflected(places)


def product_grid(
    low: np.ndarray, high: np.ndarray, counts: np.ndarray, log_unit: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Midpoints of a product of equal cells, their volumes, and the cell's sides."""
    cell = (high - low) / counts
    axes = [a + c * (np.arange(n) + 0.5) for a, c, n in zip(low, cell, counts, strict=True)]
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(counts))
    return nodes, np.full(len(nodes), np.exp(np.log(cell).sum() + log_unit)), cell


def around_values(
    x: np.ndarray, scale: np.ndarray, low: float = -np.inf, high: float = np.inf
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes near the values of one column that spreads too far for a grid, with trapezoidal weights."""
    centers = np.quantile(x[:, 0], np.linspace(0, 1, 512))
    nodes = np.unique(np.clip(centers[:, None] + scale[0] * np.linspace(-6, 6, 49), low, high))
    gaps = np.diff(nodes)
    weights = np.concatenate([gaps, [0.0]]) / 2 + np.concatenate([[0.0], gaps]) / 2
    return nodes[:, None], np.minimum(weights, scale[0])  # between far clusters nothing is to be added


def importance_nodes(
    x: np.ndarray, scale: np.ndarray, rng: np.random.Generator, log_unit: float
) -> tuple[np.ndarray, np.ndarray]:
    """Quasi-random nodes from a Gaussian mixture on rows of ``x``, weighted by one over its density."""
    dim = x.shape[1]
    centers = x[np.linspace(0, len(x) - 1, min(len(x), 512)).astype(int)]
    uniform = qmc.Sobol(dim + 1, rng=rng).random(NEAR)
    picked = centers[(uniform[:, 0] * len(centers)).astype(int)]
    nodes = picked + scale * stats.norm.ppf(uniform[:, 1:].clip(1e-12, 1 - 1e-12))
    origin = np.median(centers, axis=0)  # far from it, distances would lose their digits
    near = [np.clip(standardised(points, origin, scale), -FAR, FAR) for points in (nodes, centers)]
    squares = euclidean_distances(*near, squared=True)
    nearest = squares.min(axis=1, keepdims=True)
    squares -= nearest  # in place: it is large
    squares *= -0.5
    log_density = -0.5 * nearest[:, 0] + np.log(np.exp(squares, out=squares).mean(axis=1))
    log_density -= np.log(scale).sum() + dim / 2 * math.log(2 * math.pi)
    return nodes, np.exp(log_unit - log_density) / NEAR
