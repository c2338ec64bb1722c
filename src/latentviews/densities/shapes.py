"""Curves that two numbers say, mixed into the densities of one column as held-out rows prefer."""

from dataclasses import replace

import numpy as np
from scipy.ndimage import uniform_filter1d

from latentviews._numbers import TINY, as_shares
from latentviews.core.components import BACKGROUND
from latentviews.core.embeddings import BinnedEmbedding
from latentviews.core.features.bins import linear_bins
from latentviews.core.kernels.bandwidths import rounding
from latentviews.core.kernels.quadrature import Quadrature

STEPS = 100  # of EM for shares
GAIN = 2.0  # nats by which held-out rows must prefer several curves to the best of them
BEYOND = 1.5  # mean gaps between rows that a box goes on for after the outermost
BINNING = 1 / 6  # of a squared step: the variance that sharing rows between two grid points adds
STUDENT_QUARTILE = np.sqrt(2 / 3)  # of the t law with two degrees of freedom
HALVING = 2**0.2  # how much wider the best bandwidth of half the rows is


def with_shapes(
    view: BinnedEmbedding, x: np.ndarray, posteriors: np.ndarray, halves: tuple[np.ndarray, np.ndarray]
) -> BinnedEmbedding:
    """The components with the density of their kernels stacked with those of shapes, by held-out likelihood.

    Shapes are a normal law, a t law with two degrees of freedom, a Laplace law and a box, fitted to every component.
    Each half of the rows ``x`` is judged by the other. One curve alone is taken where several are hardly likelier. A
    column that ends at a border keeps its kernels alone. Rounded values are spread evenly over their unit first: curves
    that rise at the values alone, or fall off at the outermost, would have more than one between them on the lattice.
    """
    domain = view.domain
    if domain is None or domain.space.bordered:
        return view
    here, counts = ~np.isnan(x), _in_rows(posteriors)
    unit = rounding(x[here])
    parts = [
        _spread(linear_bins(x[half], view.grid).T @ counts[half], view.grid, unit)
        for half in (h[here[h]] for h in halves)
    ]
    curves = [_curves(view, part, domain) for part in parts]
    shares = held_out_shares(np.concatenate(curves, axis=1), np.concatenate(parts[::-1]).T)
    if not shares[:, 1:].any():
        return view
    weights = as_shares(_spread(np.maximum(view.weights, 0.0), view.grid, unit), axis=0)
    fitted = shapes_of(view.grid, weights, sum(part.sum(axis=0) for part in parts), view.wide_grid)
    inside = (view.wide_grid >= domain.nodes.min()) & (view.wide_grid <= domain.nodes.max())  # where mass is counted
    return replace(view, shapes=np.einsum("kc,kwc->wk", shares[:, 1:], fitted) * inside[:, None])


def _spread(counts: np.ndarray, grid: np.ndarray, unit: float) -> np.ndarray:
    """What is counted on a grid, (n_bins, k), spread evenly over half a unit to either side."""
    reach = round(unit / 2 / (grid[1] - grid[0]))
    return uniform_filter1d(counts, 2 * reach + 1, axis=0, mode="nearest") if reach > 0 else counts


def _in_rows(posteriors: np.ndarray) -> np.ndarray:
    """Weighted posteriors (n, k) scaled to add up to the number of equal rows that say as much."""
    weights = posteriors.sum(axis=1)
    return posteriors * (weights.sum() / np.maximum((weights**2).sum(), TINY))


def _curves(view: BinnedEmbedding, counts: np.ndarray, domain: Quadrature) -> np.ndarray:
    """Densities on the grid that rows counted there (n_bins, k) make: of kernels, then shapes, (k, n_bins, 1 + c)."""
    weights = as_shares(counts, axis=0)
    kernels = replace(view, weights=weights, bandwidths=HALVING * view.bandwidths).density(view.grid)
    shapes = shapes_of(view.grid, weights, counts.sum(axis=0), view.grid)
    background = BACKGROUND * np.exp(domain.log_background(view.grid[:, None]))
    return np.concatenate([kernels.T[:, :, None], shapes], axis=2) + background[:, None]


def shapes_of(grid: np.ndarray, weights: np.ndarray, n_rows: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Densities at ``x`` of the shapes that fit weights (n_bins, k) on a grid, which so many rows made, (k, n, 4)."""
    step = grid[1] - grid[0]
    mean = grid @ weights
    variance = ((grid[:, None] - mean) ** 2 * weights).sum(axis=0) - BINNING * step**2
    below = np.cumsum(weights, axis=0) - weights / 2
    least = np.minimum(0.5 / np.maximum(n_rows, 1.0), 0.25)  # half a row: less is of other components
    levels = np.stack([least, 1 - least, *np.broadcast_to([[0.25], [0.5], [0.75]], (3, len(mean)))])
    low, high, first, median, third = np.stack(
        [np.interp(level, share, grid) for level, share in zip(levels.T, below.T, strict=True)], axis=1
    )
    margin = BEYOND * (high - low) / np.maximum(n_rows, 1.0)
    laws = [
        _normal(x[:, None], mean, np.sqrt(np.maximum(variance, step**2))),
        _student(x[:, None], median, np.maximum((third - first) / 2 / STUDENT_QUARTILE, step)),
        _laplace(x[:, None], median, np.maximum((np.abs(grid[:, None] - median) * weights).sum(axis=0), step)),
        _box(x[:, None], low - margin, np.maximum(high + margin, low - margin + step)),
    ]
    found = np.stack(laws, axis=-1).transpose(1, 0, 2)
    spacing = x[1] - x[0]
    return found / np.maximum(spacing * found.sum(axis=1, keepdims=True), 1.0)


def _normal(x: np.ndarray, mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    return np.exp(-0.5 * ((x - mean) / deviation) ** 2) / (np.sqrt(2 * np.pi) * deviation)


def _student(x: np.ndarray, median: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """The t law with two degrees of freedom, (2 + z²)^(-3/2)."""
    return (2 + ((x - median) / scale) ** 2) ** -1.5 / scale


def _laplace(x: np.ndarray, median: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return np.exp(-np.abs(x - median) / scale) / (2 * scale)


def _box(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    return ((x >= low) & (x <= high)) / (high - low)


def held_out_shares(densities: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Shares (k, c) of densities (k, n, c) under which rows that count (k, n) are likeliest, by EM.

    One density has all where no combination is likelier by `GAIN`.
    """
    used = counts.any(axis=0)
    densities, counts = np.maximum(densities[:, used], TINY), counts[:, used]
    rows = as_shares(counts, axis=1)
    shares = np.full((len(densities), densities.shape[2]), 1 / densities.shape[2])
    for _ in range(STEPS):
        mixed = np.maximum((densities @ shares[:, :, None])[:, :, 0], TINY)  # of classes without a row
        shares = shares * ((rows / mixed)[:, None, :] @ densities)[:, 0]
    shares = as_shares(shares, axis=1)
    together = (counts * np.log(np.maximum((densities @ shares[:, :, None])[:, :, 0], TINY))).sum(axis=1)
    alone = (counts[:, :, None] * np.log(densities)).sum(axis=1)
    enough = together - alone.max(axis=1) < GAIN
    return np.where(enough[:, None], np.eye(alone.shape[1])[alone.argmax(axis=1)], shares)
