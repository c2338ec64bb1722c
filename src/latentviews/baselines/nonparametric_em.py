"""Nonparametric EM and its smoothed likelihood."""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from scipy.ndimage import convolve1d
from scipy.special import logsumexp

from latentviews._clusters import kmeans
from latentviews._numbers import TINY
from latentviews._parameters import Constraint, Count, Flag, NoneOr, Nonnegative, Seed, Such, WithData, are_numbers
from latentviews._validation import all_or_nothing
from latentviews.baselines._shared import OneColumnViews
from latentviews.core.embeddings import BinnedEmbedding, domain_for
from latentviews.core.features.bins import GridFeatures, linear_bins
from latentviews.core.kernels.bandwidths import resolve
from latentviews.core.kernels.real import Gaussian
from latentviews.core.views import read_blocks

POINTS = 6  # of a grid for a bandwidth
REACH = 12  # bandwidths; beyond, the kernel is below 1e-31 of its height
MARGIN = 5  # bandwidths beyond the data
MOST = 4096  # grid points


class NonparametricEM(OneColumnViews):
    r"""EM-like estimation of a mixture of products of kernel density estimates (Benaglia, Chauveau & Hunter 2009).

    .. math:: \hat p_t(x \mid h) = \frac{\sum_i r_{ih} K_s(x - x_{it})}{\sum_i r_{ih}}, \qquad
              r_{ih} \propto \hat\pi_h \prod_t \hat p_t(x_{it} \mid h)

    Densities are computed on a fine grid, so a step costs O(n) and not O(n²).

    Parameters
    ----------
    n_components : int, default=2
    views : list of column indices or names, or None
        Which columns are views; by default all.
    exchangeable : bool or list of one block id per view, default=False
        Whether all views, or those of a block, have the same distribution in every class.
    bandwidth : float, array of shape (n_views,) or (n_views, k), or rule, default="cv"
        The standard deviation s of the Gaussian kernel, the same in every step. "cv" takes the one with the highest
        held-out likelihood of a view's margin, in five folds, as Song et al. (2014) do.
    smoothed : bool, default=False
        Whether the E-step uses exp(K_s ∗ log p) in place of p, so that every step raises the smoothed log-likelihood
        (npMSL: Levine, Hunter & Chauveau 2011). ``components_`` are the p themselves.
    init : array of shape (n_samples, k) or None
        Responsibilities to start from; by default those of k-means.
    max_iter : int, default=500
    tol : float, default=1e-6
        Stop when no class weight changes by more in a step.
    random_state : int, RandomState or None, default=None
        The seed of k-means.

    Attributes
    ----------
    weights_ : array of shape (k,)
        Decreasing, or in the order of ``init``.
    components_ : list of BinnedEmbedding, one per view
    responsibilities_ : array of shape (n_samples, k)
        Of the rows fitted, after the last step.
    bandwidths_ : array of shape (n_views, k)
    objective_path_ : array, one value per iteration
        The mean log-likelihood before every step, smoothed if ``smoothed``; only then is it monotone.
    n_iter_ : int
    converged_ : bool
    views_ : tuple of lists of column indices
    n_components_ : int

    Examples
    --------
    >>> from latentviews.baselines import NonparametricEM
    >>> from latentviews.datasets import make_multiview
    >>> X, y, truth = make_multiview(2000, 3, random_state=0)
    >>> NonparametricEM(3, random_state=0).fit(X).weights_.round(1)
    array([0.5, 0.3, 0.2])
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "n_components": Count(),
        "views": WithData(),
        "exchangeable": WithData(),
        "bandwidth": Such(
            lambda value: isinstance(value, str) or are_numbers(value), "a positive number, an array or a rule"
        ),
        "smoothed": Flag(),
        "init": NoneOr(Such(are_numbers, "an array with a responsibility per row and class")),
        "max_iter": Count(),
        "tol": Nonnegative(),
        "random_state": Seed(),
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        views: Sequence[Any] | None = None,
        exchangeable: bool | Sequence[Any] = False,
        bandwidth: Any = "cv",
        smoothed: bool = False,
        init: Any = None,
        max_iter: int = 500,
        tol: float = 1e-6,
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.views = views
        self.exchangeable = exchangeable
        self.bandwidth = bandwidth
        self.smoothed = smoothed
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Self:
        """Alternate between posteriors and weighted densities.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        table, columns, rank = self._read(X)
        rng = np.random.default_rng(self.random_state)
        blocks = read_blocks(self.exchangeable, table.shape[1])
        widths = self._widths(table, blocks, rank)
        grids = _block_grids(table, blocks, widths)
        rows = [linear_bins(x, grid) for x, grid in zip(table.T, grids, strict=True)]
        profiles = [_profile(grid, width) for grid, width in zip(grids, widths, strict=True)]
        path: list[float] = []
        posteriors, converged = self._start(table, rank, rng), False
        while len(path) < self.max_iter and not converged:
            before = posteriors
            posteriors, objective, _ = smooth_em_step(rows, profiles, before, self.smoothed, blocks)
            path.append(objective)
            converged = bool(np.abs(posteriors.mean(axis=0) - before.mean(axis=0)).max() < self.tol)
        weights, components = _weighted_densities(table, blocks, grids, widths, posteriors, rng)
        order = np.arange(rank) if self.init is not None else np.argsort(-weights, kind="stable")
        self.responsibilities_, self.bandwidths_ = posteriors[:, order], widths[:, order]
        self.objective_path_, self.n_iter_, self.converged_ = np.array(path), len(path), converged
        self._keep(weights, components, columns, order)
        return self

    def _widths(self, table: np.ndarray, blocks: Sequence[int], rank: int) -> np.ndarray:
        """A bandwidth for every view and class."""
        shape = (table.shape[1], rank)
        if isinstance(self.bandwidth, str):
            found = [[float(resolve(self.bandwidth, _stacked(table, blocks, block)))] for block in blocks]
            return np.repeat(found, rank, axis=1)
        widths = np.asarray(self.bandwidth, dtype=float)
        if widths.ndim == 1:
            widths = widths[:, None]
        if not (np.all(np.isfinite(widths)) and np.all(widths > 0)):
            raise ValueError(f"bandwidth must be positive and finite; got {self.bandwidth!r}.")
        if widths.ndim > 2 or (widths.ndim and widths.shape not in {shape, (shape[0], 1)}):
            raise ValueError(
                f"bandwidth is a number, one per view ({shape[0]}), or one per view and class {shape}; got shape "
                f"{np.shape(self.bandwidth)}."
            )
        return np.broadcast_to(widths, shape).copy()

    def _start(self, table: np.ndarray, rank: int, rng: np.random.Generator) -> np.ndarray:
        """Responsibilities of the rows: what the user gave, or k-means."""
        if self.init is None:
            return np.eye(rank)[kmeans(table, rank, int(rng.integers(2**31)), 10).labels_]
        start = np.asarray(self.init, dtype=float)
        if start.shape != (len(table), rank):
            raise ValueError(
                f"init needs one responsibility per row and class, {(len(table), rank)}; got {start.shape}."
            )
        if not (np.all(np.isfinite(start)) and np.all(start >= 0) and np.allclose(start.sum(axis=1), 1)):
            raise ValueError("init must be nonnegative, every row summing to one.")
        return start


def _stacked(table: np.ndarray, blocks: Sequence[int], block: int) -> np.ndarray:
    """All values of the views of a block, in one column."""
    return table[:, [t for t, b in enumerate(blocks) if b == block]].reshape(-1, 1)


def _grid(x: np.ndarray, narrow: float, wide: float) -> np.ndarray:
    """A uniform grid over the data and the kernel's reach, as fine as the narrowest kernel needs."""
    low, high = x.min() - MARGIN * wide, x.max() + MARGIN * wide
    return np.linspace(low, high, int(np.clip(POINTS * (high - low) / narrow, 256, MOST)))


def _block_grids(table: np.ndarray, blocks: Sequence[int], widths: np.ndarray) -> list[np.ndarray]:
    """One grid per view, the same for the views of a block."""
    members = [[t for t, b in enumerate(blocks) if b == block] for block in blocks]
    return [_grid(table[:, ts].ravel(), widths[ts].min(), widths[ts].max()) for ts in members]


def _profile(grid: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """Gaussian kernels at the offsets of a grid, (2C - 1, k), each of mass one on it.

    Sharing a row between two points, and reading a density between two, spread each by a variance of step² / 6.
    """
    step, size = grid[1] - grid[0], len(grid)
    offsets = step * np.arange(-(size - 1), size)
    deviations = widths * np.sqrt(np.maximum(1 - np.minimum(step / widths, 2) ** 2 / 3, 0.25))
    far = np.minimum(np.abs(offsets)[:, None] / deviations, REACH)
    values = np.where(far < REACH, np.exp(-0.5 * far**2), 0.0)
    return values / (step * values.sum(axis=0))


def _weighted_densities(
    table: np.ndarray,
    blocks: Sequence[int],
    grids: Sequence[np.ndarray],
    widths: np.ndarray,
    posteriors: np.ndarray,
    rng: np.random.Generator,
) -> tuple[np.ndarray, list[BinnedEmbedding]]:
    """Class weights, and weighted kernel density estimates as records; a class without rows has the margin."""
    mass, views = posteriors.sum(axis=0), []
    shares = np.where(mass > 0, posteriors / np.maximum(mass, TINY), 1 / len(posteriors))
    for t, (grid, width) in enumerate(zip(grids, widths, strict=True)):
        members = [s for s, b in enumerate(blocks) if b == blocks[t]]
        weights = sum(linear_bins(table[:, s], grid).T @ shares for s in members) / len(members)
        kernel = Gaussian(float(width.min()))
        domain = domain_for(GridFeatures(grid, kernel), table[:, members].reshape(-1, 1), rng)
        views.append(BinnedEmbedding(domain, grid, np.asarray(weights), kernel, width))
    return mass / mass.sum(), views


def smooth_em_step(
    rows: Sequence[Any],
    profiles: Sequence[np.ndarray],
    posteriors: np.ndarray,
    nonlinear: bool,
    blocks: Sequence[int] | None = None,
) -> tuple[np.ndarray, float, list[np.ndarray]]:
    """One step of nonparametric EM on binned columns: new posteriors, the objective, and the densities on the grids.

    ``rows[t]`` (n, C) are shares in grid points and ``profiles[t]`` (2C - 1, k) every class's kernel at the grid's
    offsets, of mass one on the grid; views with the same number in ``blocks`` share grid, kernels and density.
    Densities are weighted KDEs (Benaglia, Chauveau & Hunter 2009), the margin's for a class without rows; with
    ``nonlinear`` their logarithms are smoothed once more in the E-step, which makes the objective monotone (npMSL:
    Levine, Hunter & Chauveau 2011).
    """
    blocks = range(len(rows)) if blocks is None else blocks
    mass = posteriors.sum(axis=0)
    tables: dict[int, np.ndarray] = {}
    joint = np.tile(np.log(np.maximum(mass / len(posteriors), TINY)), (len(posteriors), 1))
    for shares, profile, block in zip(rows, profiles, blocks, strict=True):
        if block not in tables:
            counts = sum(part.T @ posteriors for part, b in zip(rows, blocks, strict=True) if b == block)
            counts = np.where(mass > 0, counts, counts.sum(axis=1, keepdims=True))
            table = np.maximum(convolve(counts / counts.sum(axis=0), profile), TINY)
            tables[block] = table * (profile.sum(axis=0) / table.sum(axis=0)) if nonlinear else table
        if nonlinear:
            joint += shares @ convolve(np.log(tables[block]), profile / profile.sum(axis=0))
        else:
            joint += np.log(np.maximum(shares @ tables[block], TINY))
    total = logsumexp(joint, axis=1)
    return np.exp(joint - total[:, None]), float(total.mean()), [tables[block] for block in blocks]


def convolve(columns: np.ndarray, profile: np.ndarray) -> np.ndarray:
    """Columns (C, k) convolved with their profiles (2C - 1, k), on the same grid.

    Directly, not by FFT: its rounding, 1e-17 of the peak, is more than a tail, and tails decide where views disagree.
    """
    size, result = len(columns), np.empty(columns.shape)
    for h, (column, values) in enumerate(zip(columns.T, profile.T, strict=True)):
        reach = int(np.count_nonzero(values[size:] > 0))
        result[:, h] = convolve1d(column, values[size - 1 - reach : size + reach], mode="constant")
    return result
