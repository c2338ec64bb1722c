"""The alternatives that Song et al. (2014) compare with, behind the estimator surface of `MultiViewMixture`.

Views are single columns. EM for Gaussian mixtures, the fourth, is scikit-learn's `GaussianMixture`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import stats
from scipy.signal import fftconvolve
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.cluster import KMeans
from sklearn.utils.validation import check_is_fitted

from latentviews._validation import UnsupportedError, check_count
from latentviews.bandwidths import RULES, resolution, resolve, silverman
from latentviews.embeddings import BinnedEmbedding, as_rows, domain_for
from latentviews.features import GridFeatures, OneHotFeatures, linear_bins
from latentviews.kernels import Gaussian
from latentviews.models.estimation import Estimate
from latentviews.polish import smooth_em_step
from latentviews.spectral import spectral_fit
from latentviews.tensors import JointDiagonalization, Solver
from latentviews.views import Columns, Views, check_varying, read_blocks, read_table
from latentviews.whitening import symmetric_tensor, symmetric_whitening

TINY = np.finfo(float).tiny
BACKGROUND = 1e-6
POINTS = 6  # of a grid for a bandwidth
REACH = 12  # bandwidths; beyond, the kernel is below 1e-31 of its height
MARGIN = 5  # bandwidths beyond the data
MOST = 4096  # grid points
FOLDS = 5


class _OneColumnViews(DensityMixin, BaseEstimator):
    """What the baselines share once they have ``weights_`` and ``components_``."""

    views: Any
    n_components: int
    views_: Columns
    weights_: np.ndarray
    components_: list[Any]

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of every row."""
        return self._log_joint(X).argmax(axis=1)

    def predict_proba(self, X: Any) -> np.ndarray:
        """The posterior probability of every class, (n_samples, k)."""
        joint = self._log_joint(X)
        return np.exp(joint - logsumexp(joint, axis=1, keepdims=True))

    def score_samples(self, X: Any) -> np.ndarray:
        """The log-density of every row."""
        return logsumexp(self._log_joint(X), axis=1)

    def score(self, X: Any, y: Any = None) -> float:
        """The mean log-density of the rows."""
        return float(self.score_samples(X).mean())

    def _log_joint(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        table, columns = self._rows(X, reset=False)
        return _log_joint(self.weights_, self.components_, columns, table)

    def _rows(self, X: Any, *, reset: bool) -> tuple[np.ndarray, Columns]:
        """A complete table and its views, each of one column, or a sentence on what is wrong."""
        name = type(self).__name__
        data, columns = read_table(self, X, reset=reset)
        if not isinstance(data, np.ndarray):
            raise TypeError(f"{name} takes one NumPy array; got a {type(X).__name__}. MultiViewMixture reads batches.")
        wide = [t for t, view in enumerate(columns) if len(view) != 1]
        if wide:
            raise ValueError(
                f"{name} takes views of one column each; view {wide[0]} has {len(columns[wide[0]])}. "
                "MultiViewMixture takes views of several columns."
            )
        if np.isnan(data).any():
            raise ValueError(
                f"Input X contains NaN. {name} takes complete rows; MultiViewMixture takes missing values."
            )
        return data.astype(float), columns

    def _read(self, X: Any) -> tuple[np.ndarray, Columns, int]:
        """The table of the views' columns, in order, for a fit."""
        rank = check_count("n_components", self.n_components)
        data, columns = self._rows(X, reset=True)
        if len(data) < max(rank, 2):
            raise ValueError(f"{rank} component(s) need at least {max(rank, 2)} rows; got n_samples = {len(data)}.")
        check_varying(data, columns, getattr(self, "feature_names_in_", None))
        return data[:, [view[0] for view in columns]], columns, rank

    def _keep(self, weights: np.ndarray, components: Sequence[Any], columns: Columns, order: np.ndarray) -> None:
        self.weights_ = weights[order]
        self.components_ = [view.take(order) for view in components]
        self.views_ = columns
        self.n_components_ = len(weights)


def _log_joint(weights: np.ndarray, components: list[Any], columns: Columns, table: np.ndarray) -> np.ndarray:
    """Log π_h + Σ_t log p_t(x_t | h), (n, k)."""
    return Estimate(weights, components, columns).log_joint(table)


class NonparametricEM(_OneColumnViews):
    r"""EM-like estimation of a mixture of products of kernel density estimates (Benaglia, Chauveau & Hunter 2009).

    .. math:: \hat p_t(x \mid h) = \frac{\sum_i r_{ih} K_s(x - x_{it})}{\sum_i r_{ih}}, \qquad
              r_{ih} \propto \hat\pi_h \prod_t \hat p_t(x_{it} \mid h)

    Densities are computed on a fine grid, so a step costs O(n) and not O(n²).

    Parameters
    ----------
    n_components : int, default=2
    views : list of column indices or names, or None
        Which columns are views; by default all.
    exchangeable : bool or list of one block id a view, default=False
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
    components_ : list of BinnedEmbedding, one a view
    responsibilities_ : array of shape (n_samples, k)
        Of the rows fitted, after the last step.
    bandwidths_ : array of shape (n_views, k)
    objective_path_ : array of shape (n_iter_,)
        The mean log-likelihood before every step, smoothed if ``smoothed``; only then is it monotone.
    n_iter_ : int
    converged_ : bool

    Examples
    --------
    >>> from latentviews.baselines import NonparametricEM
    >>> from latentviews.datasets import make_multiview
    >>> X, y, truth = make_multiview(2000, 3, random_state=0)
    >>> NonparametricEM(3, random_state=0).fit(X).weights_.round(1)
    array([0.5, 0.3, 0.2])
    """

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

    def fit(self, X: Any, y: Any = None) -> Self:
        """Alternate between posteriors and weighted densities."""
        table, columns, rank = self._read(X)
        max_iter, rng = check_count("max_iter", self.max_iter), np.random.default_rng(self.random_state)
        blocks = read_blocks(self.exchangeable, table.shape[1])
        widths = self._widths(table, blocks, rank)
        grids = _block_grids(table, blocks, widths)
        rows = [linear_bins(x, grid) for x, grid in zip(table.T, grids, strict=True)]
        profiles = [_profile(grid, width) for grid, width in zip(grids, widths, strict=True)]
        path: list[float] = []
        posteriors, converged = self._start(table, rank, rng), False
        while len(path) < max_iter and not converged:
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
            return np.repeat(
                [[_rule(self.bandwidth, _stacked(table, blocks, block))] for block in blocks], rank, axis=1
            )
        widths = np.asarray(self.bandwidth, dtype=float)
        if widths.ndim == 1:
            widths = widths[:, None]
        if not (np.all(np.isfinite(widths)) and np.all(widths > 0)):
            raise ValueError(f"bandwidth must be positive and finite; got {self.bandwidth!r}.")
        if widths.ndim > 2 or (widths.ndim and widths.shape not in {shape, (shape[0], 1)}):
            raise ValueError(
                f"bandwidth is a number, one a view ({shape[0]}), or one a view and class {shape}; got shape "
                f"{np.shape(self.bandwidth)}."
            )
        return np.broadcast_to(widths, shape).copy()

    def _start(self, table: np.ndarray, rank: int, rng: np.random.Generator) -> np.ndarray:
        """Responsibilities of the rows: what the user gave, or k-means."""
        if self.init is None:
            clusters = KMeans(rank, n_init=10, random_state=int(rng.integers(2**31)))
            return np.eye(rank)[clusters.fit_predict(table)]
        start = np.asarray(self.init, dtype=float)
        if start.shape != (len(table), rank):
            raise ValueError(f"init has a responsibility a row and class, {(len(table), rank)}; got {start.shape}.")
        if not (np.all(np.isfinite(start)) and np.all(start >= 0) and np.allclose(start.sum(axis=1), 1)):
            raise ValueError("init must be nonnegative, every row summing to one.")
        return start


def _stacked(table: np.ndarray, blocks: Sequence[int], block: int) -> np.ndarray:
    """All values of the views of a block."""
    return table[:, [t for t, b in enumerate(blocks) if b == block]].ravel()


def _rule(rule: str, x: np.ndarray) -> float:
    """The bandwidth of a rule for one column."""
    if rule == "cv":
        return held_out_bandwidth(x)
    if rule not in RULES:
        raise ValueError(
            f"bandwidth must be a positive number, an array or one of {sorted({*RULES, 'cv'})}; got {rule!r}."
        )
    return float(resolve(rule, x[:, None]))


def held_out_bandwidth(x: np.ndarray) -> float:
    """The multiple of Silverman's rule with the highest held-out likelihood of a Gaussian KDE, in five folds.

    On binned rows, so all of them count and none costs O(n).
    """
    widths = float(silverman(x[:, None])[0] or x.std()) * np.geomspace(0.05, 2.5, 24)
    grid = _grid(x, widths[0], widths[-1])
    fold, shares = np.arange(len(x)) % min(FOLDS, len(x)), linear_bins(x, grid)
    inside = np.eye(fold.max() + 1)[fold]
    counts = shares.T @ (1 - inside)

    def likelihood(width: float) -> float:
        profile = _profile(grid, np.array([width]))
        tables = fftconvolve(counts / counts.sum(axis=0), profile, axes=0)[len(grid) - 1 : 2 * len(grid) - 1]
        return float(np.log(np.maximum(np.sum((shares @ tables) * inside, axis=1), TINY)).mean())

    return max(float(max(widths, key=likelihood)), resolution(x))


def _grid(x: np.ndarray, narrow: float, wide: float) -> np.ndarray:
    """A uniform grid over the data and the kernel's reach, as fine as the narrowest kernel needs."""
    low, high = x.min() - MARGIN * wide, x.max() + MARGIN * wide
    return np.linspace(low, high, int(np.clip(POINTS * (high - low) / narrow, 256, MOST)))


def _block_grids(table: np.ndarray, blocks: Sequence[int], widths: np.ndarray) -> list[np.ndarray]:
    """A grid a view, the same for the views of a block."""
    members = [[t for t, b in enumerate(blocks) if b == block] for block in blocks]
    return [_grid(table[:, ts].ravel(), widths[ts].min(), widths[ts].max()) for ts in members]


def _profile(grid: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """Gaussian kernels at the offsets of a grid, (2C - 1, k), each of mass one on it.

    Sharing a row between two points, and reading a density between two, spread each by a variance of step² / 6.
    """
    step, size = grid[1] - grid[0], len(grid)
    offsets = step * np.arange(-(size - 1), size)
    squares = offsets[:, None] ** 2 / np.maximum(widths**2 - step**2 / 3, widths**2 / 4)
    values = np.where(squares < REACH**2, np.exp(-0.5 * squares), 0.0)
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


@dataclass(frozen=True, eq=False)
class HistogramView:
    """The distributions of one view in k components, as histograms."""

    edges: np.ndarray  # (n_bins + 1,)
    probabilities: np.ndarray  # (n_bins, k), columns sum to one
    center: float
    spread: float

    def density(self, x: Any) -> np.ndarray:
        """The densities, (n, k): constant in a bin, zero outside."""
        x = np.asarray(as_rows(x))[:, 0]
        heights = self.probabilities / np.diff(self.edges)[:, None]
        inside = (x >= self.edges[0]) & (x <= self.edges[-1])
        return np.where(inside[:, None], heights[_codes(x, self.edges)], 0.0)

    def log_density(self, x: Any) -> np.ndarray:
        """The log of ``density`` mixed with a millionth of a Cauchy density, so that it is finite everywhere."""
        x = np.asarray(as_rows(x))[:, 0]
        background = np.log(BACKGROUND) + stats.cauchy.logpdf(x, self.center, self.spread)
        return np.logaddexp(np.log(np.maximum(self.density(x), TINY)), background[:, None])

    def take(self, order: np.ndarray) -> "HistogramView":
        """The components in another order, or some of them."""
        return replace(self, probabilities=self.probabilities[:, order])


class HistogramSpectral(_OneColumnViews):
    """The spectral algorithm on histograms: views cut into bins, then treated as discrete (Kasahara & Shimotsu 2010).

    Parameters
    ----------
    n_components : int, default=2
    views : list of column indices or names, or None
        Which columns are views; by default all.
    n_bins : int, "auto" or "cv", default="auto"
        Bins a view: a number of at least k, twice the cube root of the number of rows ("auto"), or the number with the
        highest held-out likelihood of the model, in five folds.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width, or of equal numbers of rows.
    solver : solver, default=JointDiagonalization()
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    weights_ : array of shape (k,), decreasing
    components_ : list of HistogramView, one a view
        Negative probabilities that the moments gave are clipped.
    n_bins_ : int
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        views: Sequence[Any] | None = None,
        n_bins: int | str = "auto",
        strategy: str = "uniform",
        solver: Solver | None = None,
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.views = views
        self.n_bins = n_bins
        self.strategy = strategy
        self.solver = solver
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Cut the views into bins and decompose the moments of their indicators."""
        table, columns, rank = self._read(X)
        if self.strategy not in STRATEGIES:
            raise ValueError(f"strategy must be one of {sorted(STRATEGIES)}; got {self.strategy!r}.")
        rng = np.random.default_rng(self.random_state)
        self.n_bins_ = self._count(table, rank, rng)
        weights, components = self._estimate(table, self.n_bins_, rank, rng)
        self._keep(weights, components, columns, np.argsort(-weights, kind="stable"))
        return self

    def _count(self, table: np.ndarray, rank: int, rng: np.random.Generator) -> int:
        """The number of bins."""
        automatic = max(rank, int(np.ceil(2 * len(table) ** (1 / 3))))
        if isinstance(self.n_bins, str) and self.n_bins == "auto":
            return automatic
        if isinstance(self.n_bins, str) and self.n_bins == "cv":
            candidates = sorted({max(rank, round(automatic * factor)) for factor in (0.4, 0.6, 1.0, 1.6)})
            return max(candidates, key=lambda n_bins: self._held_out(table, n_bins, rank, rng))
        return check_count("n_bins", self.n_bins, rank)

    def _held_out(self, table: np.ndarray, n_bins: int, rank: int, rng: np.random.Generator) -> float:
        fold, total = np.arange(len(table)) % FOLDS, 0.0
        columns = tuple([t] for t in range(table.shape[1]))
        for held in range(FOLDS):
            try:
                weights, components = self._estimate(table[fold != held], n_bins, rank, rng)
            except UnsupportedError:
                return -np.inf
            total += float(logsumexp(_log_joint(weights, components, columns, table[fold == held]), axis=1).sum())
        return total

    def _estimate(
        self, table: np.ndarray, n_bins: int, rank: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, list[HistogramView]]:
        """Weights and histograms from the moments of bins."""
        edges = [STRATEGIES[self.strategy](x, n_bins) for x in table.T]
        codes = np.stack([_codes(x, cuts) for x, cuts in zip(table.T, edges, strict=True)], axis=1).astype(float)
        features = tuple(OneHotFeatures(len(cuts) - 1).fit(codes[:, [t]]) for t, cuts in enumerate(edges))
        views = Views(tuple([t] for t in range(table.shape[1])), features)
        solver = JointDiagonalization() if self.solver is None else self.solver
        found = spectral_fit(codes, views, rank, solver, rng)
        components = [
            HistogramView(cuts, _as_probabilities(vectors), float(np.median(x)), float(x.std()))
            for cuts, vectors, x in zip(edges, found.vectors, table.T, strict=True)
        ]
        return found.weights / found.weights.sum(), components


def _codes(x: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The bin of every value; values outside go to the nearest bin."""
    return np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(edges) - 2)


def _uniform_edges(x: np.ndarray, n_bins: int) -> np.ndarray:
    return np.linspace(x.min(), x.max(), n_bins + 1)


def _quantile_edges(x: np.ndarray, n_bins: int) -> np.ndarray:
    return np.unique(np.quantile(x, np.linspace(0, 1, n_bins + 1)))


STRATEGIES = {"uniform": _uniform_edges, "quantile": _quantile_edges}


def _as_probabilities(vectors: np.ndarray) -> np.ndarray:
    """Columns clipped at zero and scaled to sum one."""
    positive = np.maximum(vectors, 0.0)
    return positive / np.maximum(positive.sum(axis=0), TINY)


@dataclass(frozen=True, eq=False)
class GaussianView:
    """The distributions of one view in k components, as Gaussians."""

    means: np.ndarray  # (k,)
    deviations: np.ndarray  # (k,)

    def density(self, x: Any) -> np.ndarray:
        """The densities, (n, k)."""
        return np.exp(self.log_density(x))

    def log_density(self, x: Any) -> np.ndarray:
        """The log-densities, (n, k)."""
        return stats.norm.logpdf(np.asarray(as_rows(x))[:, :1], self.means, self.deviations)

    def take(self, order: np.ndarray) -> "GaussianView":
        """The components in another order, or some of them."""
        return GaussianView(self.means[order], self.deviations[order])


class SphericalSpectral(_OneColumnViews):
    r"""The method of moments for mixtures of spherical Gaussians (Hsu & Kakade 2013, theorem 2).

    With σ̄² the smallest eigenvalue of the covariance, v its eigenvector and M₁ = E[x (vᵀ(x − E x))²],

    .. math:: E[x x^\top] - \bar\sigma^2 I = \sum_h \pi_h \mu_h \mu_h^\top, \qquad
              E[x^{\otimes 3}] - \sum_i (M_1 \otimes e_i \otimes e_i + \cdots) = \sum_h \pi_h \mu_h^{\otimes 3}.

    The means must be linearly independent, so there can be no more components than columns. The origin is moved along v
    first, for means that are independent about some origin only.

    Parameters
    ----------
    n_components : int, default=2
    views : list of column indices or names, or None
        Which columns are views; by default all.
    solver : solver, default=JointDiagonalization()
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    weights_ : array of shape (k,), decreasing
    components_ : list of GaussianView, one a view
    means_ : array of shape (k, n_views)
    variances_ : array of shape (k,)
        Kept above a hundredth of the smallest eigenvalue of the covariance.
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        views: Sequence[Any] | None = None,
        solver: Solver | None = None,
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.views = views
        self.solver = solver
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Match the first three moments."""
        table, columns, rank = self._read(X)
        if rank > table.shape[1]:
            raise UnsupportedError(
                f"SphericalSpectral finds at most as many components as there are columns, since their means must be "
                f"linearly independent; got {rank} components and {table.shape[1]} columns. MultiViewMixture has no "
                "such limit."
            )
        rng = np.random.default_rng(self.random_state)
        origin = _origin(table, rank)
        moments = raw_moments(table - origin)
        found = spherical_components(
            *moments, rank, JointDiagonalization() if self.solver is None else self.solver, rng
        )
        order = np.argsort(-found.weights, kind="stable")
        self.means_, self.variances_ = (found.means + origin)[order], found.variances[order]
        views = [GaussianView(means, np.sqrt(found.variances)) for means in (found.means + origin).T]
        self._keep(found.weights / found.weights.sum(), views, columns, order)
        return self


class SphericalComponents(NamedTuple):
    """Spherical Gaussians."""

    weights: np.ndarray  # (k,), the raw λ⁻²
    means: np.ndarray  # (k, d)
    variances: np.ndarray  # (k,)


def _origin(table: np.ndarray, rank: int) -> np.ndarray:
    """A point off the plane of the means, as far as they are from one another."""
    center = table.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(table.T))
    signal = np.mean(values[::-1][: max(rank - 1, 1)] - values[0])
    return center - np.sqrt(max(signal, values[0])) * vectors[:, 0]


def raw_moments(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """E[x], E[x xᵀ] and E[x ⊗ x ⊗ x]."""
    n = len(x)
    return x.mean(axis=0), x.T @ x / n, np.einsum("ni,nj,nl->ijl", x, x, x, optimize=True) / n


def spherical_components(
    first: np.ndarray, second: np.ndarray, third: np.ndarray, rank: int, solver: Solver, rng: np.random.Generator
) -> SphericalComponents:
    """Hsu & Kakade (2013), theorem 2: the mixture of spherical Gaussians with these raw moments."""
    values, vectors = np.linalg.eigh(second - np.outer(first, first))
    noise, v = values[0], vectors[:, 0]
    along = v @ first
    weighted = third @ v @ v - 2 * along * second @ v + along**2 * first  # M₁ = Σ π_h σ_h² μ_h
    gaussian = np.einsum("a,bc->abc", weighted, np.eye(len(first)))
    signal = second - noise * np.eye(len(first))
    try:
        down = symmetric_whitening(signal, rank)
    except UnsupportedError as error:
        raise UnsupportedError(
            f"The means of {rank} spherical Gaussians in {len(first)} columns are too near a plane of fewer "
            "dimensions; ask for fewer components, or use MultiViewMixture, which does not need independent means."
        ) from error
    tensor = third - sum(gaussian.transpose(order) for order in ((0, 1, 2), (1, 0, 2), (1, 2, 0)))
    found = solver.decompose(symmetric_tensor(np.einsum("abc,ai,bj,cl->ijl", tensor, down, down, down)), rng)
    weights, means = found.values**-2, (signal @ down @ (found.vectors * found.values)).T
    products = np.linalg.lstsq(means.T, weighted, rcond=None)[0]  # π_h σ_h²
    floor = max(noise / 100, 1e-6 * np.trace(second) / len(first))  # few rows may leave no noise at all
    return SphericalComponents(weights, means, np.maximum(products / weights, floor))
