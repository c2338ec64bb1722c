"""Mixtures of products of distributions without a shape."""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.cluster import KMeans
from sklearn.utils.validation import check_is_fitted

from latentviews import streams
from latentviews._arrays import to_numpy
from latentviews._validation import (
    IdentifiabilityWarning,
    UnsupportedError,
    check_count,
    check_labels,
    check_weights,
)
from latentviews.embeddings import Components, components_in, domain_for
from latentviews.kernels import Gaussian, Kernel
from latentviews.polish import Polished, Sieve, density_maps, reestimate
from latentviews.spectral import SpectralFit, spectral_fit
from latentviews.tensors import JointDiagonalization, Solver
from latentviews.views import (
    Columns,
    Views,
    check_varying,
    feature_prototypes,
    fit_views,
    has_density,
    read_blocks,
    read_table,
    with_bandwidth,
)

PILOT = 20_000
SPECTRAL_FACTORS = (1.0, 0.5)  # starts from moments at these widths of the kernel's rule
FULL_STEPS = 2  # EM steps over all rows after the pilot's have converged


class Estimate(NamedTuple):
    """Class weights and components: all that is needed to judge a row."""

    weights: np.ndarray
    components: list[Components]
    columns: Columns

    def log_joint(self, table: Any) -> np.ndarray:
        """Log π_h + Σ_t log p_t(x_t | h) over the views a row has, (n, k)."""
        table = to_numpy(table)
        joint = np.tile(np.log(np.maximum(self.weights, np.finfo(float).tiny)), (len(table), 1))
        for columns, view in zip(self.columns, self.components, strict=True):
            x = table[:, columns]
            present = ~np.isnan(x).any(axis=1)
            if present.all():
                joint += view.log_density(x)
            elif present.any():
                joint[present] += view.log_density(x[present])
        return joint

    def posteriors(self, table: Any) -> np.ndarray:
        """P(h | row), (n, k)."""
        joint = self.log_joint(table)
        return np.exp(joint - logsumexp(joint, axis=1, keepdims=True))


class Problem(NamedTuple):
    """What a fit is given, read and checked."""

    data: Any
    columns: Columns
    weights: np.ndarray | None
    pilot: np.ndarray
    pilot_weights: np.ndarray | None
    allowed: np.ndarray | None  # (n_pilot, k), zero for classes that a row is known not to be in
    blocks: list[int]
    rank: int
    rng: np.random.Generator


class MultiViewMixture(DensityMixin, BaseEstimator):
    r"""Hidden classes from three or more views that are independent given the class.

    .. math:: p(x_1, \ldots, x_\ell) = \sum_h \pi_h \prod_t p_t(x_t \mid h)

    The distributions p_t(·|h) have no assumed shape. They are found as kernel embeddings by the spectral algorithm
    of Song, Anandkumar, Dai & Xie (2014): second moments whiten, the third moment is an orthogonal tensor, and its
    eigenvectors are the classes. By default that is the start of a likelihood step (``polish``).

    Parameters
    ----------
    n_components : int, default=2
        The number of classes k.
    views : list of lists of column indices or names, or None
        The columns of every view; by default every column is a view.
    exchangeable : bool or list of one block id a view, default=False
        Whether all views, or those of a block, have the same distribution in every class (repeated measurements).
    kernel : Kernel or list of one a view, default=Gaussian("silverman")
        Shorthand for features: one-hot for `Delta`, bins for a real column, landmarks for anything else.
    features : transformer or list of one a view, or None
        The feature map, cloned for every view. Any scikit-learn transformer will do.
    solver : solver, default=JointDiagonalization()
    bandwidth : float, rule or None
        The bandwidth of the kernel in the moments; None leaves the kernel's own.
    density_bandwidth : float, rule, None or "auto", default="auto"
        The bandwidth of the densities; None takes that of the moments. With a polish, "auto" gives every class and view
        its own. Without, it is "isj", or None where ``kernel`` or ``features`` are given.
    polish : polish, None or "auto", default="auto"
        The likelihood step after the spectral start; "auto" is `Sieve()`. None stops at the spectral estimate: the
        paper's own, where ``density_bandwidth`` is None.
    reference : int or None
        The view whose coordinates the whitening uses; by default the best conditioned.
    pilot_size : int or None, default=20_000
        Rows on which features, projections and the polish are fitted before passes over all rows; None fits
        projections on all rows, one more pass.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    weights_ : array of shape (k,)
        How common the classes are, decreasing, summing to one.
    components_ : list of Embedding or BinnedEmbedding, one a view
        The distribution of the view in every class.
    spectrum_ : array
        Singular values of the pair moment: a gap after the k-th speaks for k classes.
    raw_weights_ : array of shape (k,)
        The spectral estimate's λ⁻², which need not sum to one.
    residual_ : float
        The share of the whitened tensor that k classes do not explain.
    lower_bound_ : float
        The mean log-likelihood that the polish reached.
    converged_ : bool
    n_iter_ : int
    start_objectives_ : dict
        What every start of the polish reached; agreement is a good sign.
    views_ : tuple of lists of column indices
    n_components_ : int

    Examples
    --------
    >>> from latentviews import MultiViewMixture
    >>> from latentviews.datasets import make_multiview
    >>> X, y, truth = make_multiview(5000, 3, design="gamma", random_state=0)
    >>> model = MultiViewMixture(3, random_state=0).fit(X)
    >>> model.weights_.round(2)
    array([0.5 , 0.33, 0.17])
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        views: Sequence[Any] | None = None,
        exchangeable: bool | Sequence[Any] = False,
        kernel: Kernel | Sequence[Kernel] | None = None,
        features: Any = None,
        solver: Solver | None = None,
        bandwidth: Any = None,
        density_bandwidth: Any = "auto",
        polish: Any = "auto",
        reference: int | None = None,
        pilot_size: int | None = PILOT,
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.views = views
        self.exchangeable = exchangeable
        self.kernel = kernel
        self.features = features
        self.solver = solver
        self.bandwidth = bandwidth
        self.density_bandwidth = density_bandwidth
        self.polish = polish
        self.reference = reference
        self.pilot_size = pilot_size
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the classes behind the rows of ``X``.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features), list of 2-D arrays, one a view, or iterable
            Numbers, NaN where a value is missing. An iterable yields batches and can be read more than once.
        y : array of shape (n_samples,) or None
            Known classes, -1 where unknown; ignored if no value is -1.
        sample_weight : array of shape (n_samples,) or None
        """
        problem = self._read(X, y, sample_weight)
        prototypes = feature_prototypes(self.kernel, self.features, self.bandwidth, problem.columns)
        polish = self.polish
        if isinstance(polish, str) and polish == "auto":
            polish = Sieve() if all(has_density(phi) for phi in prototypes) else None
        if polish is None:
            fitted = self._spectral_estimate(problem, prototypes)
        else:
            fitted = self._polished_estimate(problem, prototypes, polish)
        self.views_ = problem.columns
        self.n_components_ = problem.rank
        self.weights_, self.components_ = _by_weight(fitted, keep=problem.allowed is not None)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of every row."""
        return self._log_joint(X).argmax(axis=1)

    def predict_proba(self, X: Any) -> np.ndarray:
        """The posterior probability of every class, (n_samples, k)."""
        joint = self._log_joint(X)
        return np.exp(joint - logsumexp(joint, axis=1, keepdims=True))

    def score_samples(self, X: Any) -> np.ndarray:
        """The log-density of every row, over the views it has."""
        return logsumexp(self._log_joint(X), axis=1)

    def score(self, X: Any, y: Any = None) -> float:
        """The mean log-density of the rows."""
        return float(self.score_samples(X).mean())

    def sample(self, n_samples: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Rows drawn from the fitted mixture, and their classes; columns in no view are NaN."""
        check_is_fitted(self)
        n_samples, rng = check_count("n_samples", n_samples), np.random.default_rng(self.random_state)
        labels = rng.choice(self.n_components_, size=n_samples, p=self.weights_)
        rows = np.full((n_samples, self.n_features_in_), np.nan)
        for component in range(self.n_components_):
            members = np.flatnonzero(labels == component)
            for columns, view in zip(self.views_, self.components_, strict=True):
                rows[members[:, None], columns] = view.sample(component, len(members), rng)
        return rows, labels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _log_joint(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        data, columns = read_table(self, X, reset=False)
        estimate = Estimate(self.weights_, self.components_, columns)
        return np.concatenate([estimate.log_joint(batch) for batch, _ in streams.batches(data)])

    def _read(self, X: Any, y: Any, sample_weight: Any) -> Problem:
        """Data, views and a pilot, or a sentence on what no fit can answer."""
        rank = check_count("n_components", self.n_components)
        rng = np.random.default_rng(self.random_state)
        data, columns = read_table(self, X, reset=True)
        weights = check_weights(sample_weight, data)
        labels = check_labels(y, data, rank)
        pilot, pilot_weights, pilot_labels = streams.sample(data, self.pilot_size or PILOT, rng, weights, labels)
        pilot = to_numpy(pilot)
        if len(pilot) < max(rank, 2):
            raise ValueError(f"{rank} component(s) need at least {max(rank, 2)} rows; got n_samples = {len(pilot)}.")
        check_varying(pilot, columns, getattr(self, "feature_names_in_", None))
        if self.reference is not None and self.reference not in range(len(columns)):
            raise ValueError(f"reference must be a view from 0 to {len(columns) - 1}; got {self.reference!r}.")
        blocks = read_blocks(self.exchangeable, len(columns))
        allowed = None
        if pilot_labels is not None:
            allowed = np.where(pilot_labels[:, None] < 0, 1.0, np.eye(rank)[pilot_labels])
        return Problem(data, columns, weights, pilot, pilot_weights, allowed, blocks, rank, rng)

    def _spectral(
        self, problem: Problem, maps: Sequence[Any], data: Any, weights: Any, bandwidth: Any
    ) -> tuple[SpectralFit, Views]:
        """The four steps on ``data``, and the maps its components are vectors in."""
        views = fit_views(problem.pilot, problem.columns, maps, problem.rng, problem.blocks)
        lift = density_maps(problem.pilot, views, problem.blocks, np.ones((len(problem.pilot), 1)), bandwidth)
        pilot = None if self.pilot_size is None else (problem.pilot, problem.pilot_weights)
        found = spectral_fit(
            data,
            views,
            problem.rank,
            JointDiagonalization() if self.solver is None else self.solver,
            problem.rng,
            weights=weights,
            pilot=pilot,
            exchangeable=len(set(problem.blocks)) == 1,
            reference=self.reference,
            lift=lift,
        )
        return found, lift

    def _estimate(self, problem: Problem, found: SpectralFit, maps: Views) -> Estimate:
        """Components as records, the spectral vectors averaged over a block."""
        domains = self._domains(problem, maps)
        vectors = [
            np.mean([found.vectors[s] for s, b in enumerate(problem.blocks) if b == block], axis=0)
            for block in problem.blocks
        ]
        components = [components_in(*parts) for parts in zip(maps.features, vectors, domains, strict=True)]
        return Estimate(found.weights / found.weights.sum(), components, problem.columns)

    def _spectral_estimate(self, problem: Problem, prototypes: Sequence[Any]) -> Estimate:
        """The paper's estimate, over all rows."""
        automatic = self.kernel is None and self.features is None
        bandwidth = {"auto": "isj" if automatic else None}.get(self.density_bandwidth, self.density_bandwidth)
        found, maps = self._spectral(problem, prototypes, problem.data, problem.weights, bandwidth)
        self._record_spectral(found)
        self.converged_, self.n_iter_ = True, 0
        return self._estimate(problem, found, maps)

    def _record_spectral(self, found: SpectralFit) -> None:
        self.raw_weights_ = found.weights
        self.spectrum_ = found.whitening.spectrum
        self.residual_ = found.decomposition.residual

    def _polished_estimate(self, problem: Problem, prototypes: Sequence[Any], polish: Any) -> Estimate:
        """Starts on the pilot, a polish from the best of them, and densities weighted by its posteriors."""
        starts = self._starts(problem, prototypes)
        views = fit_views(problem.pilot, problem.columns, prototypes, problem.rng, problem.blocks)
        kernels = [getattr(phi, "kernel_", Gaussian()) for phi in views.features]
        polished: Polished = polish.polish(
            problem.pilot,
            problem.columns,
            problem.blocks,
            kernels,
            list(starts.values()),
            problem.rng,
            weights=problem.pilot_weights,
            allowed=problem.allowed,
        )
        rows = problem.data.shape[0] if streams.is_array(problem.data) else np.inf
        if min(self.pilot_size or PILOT, len(problem.pilot) + 1) <= len(problem.pilot) < rows:
            for _ in range(FULL_STEPS):
                polished = polished.step_over(problem.data, problem.weights)
        self.lower_bound_, self.n_iter_, self.converged_ = polished.fit[1:]
        self.start_objectives_ = dict(zip(starts, polished.objectives.tolist(), strict=True))
        posteriors = polished.posteriors(problem.pilot, problem.allowed)
        maps = density_maps(problem.pilot, views, problem.blocks, posteriors, self.density_bandwidth)
        domains = self._domains(problem, maps)
        weights, components = reestimate(
            problem.data, polished.posteriors, maps, problem.blocks, domains, problem.weights
        )
        return Estimate(weights, components, problem.columns)

    def _starts(self, problem: Problem, prototypes: Sequence[Any]) -> dict[str, np.ndarray]:
        """Guesses of the pilot's posteriors: spectral at two bandwidths, and k-means."""
        if problem.rank == 1:
            return {"one class": np.ones((len(problem.pilot), 1))}
        starts: dict[str, np.ndarray] = {}
        failure: UnsupportedError | None = None
        for factor in SPECTRAL_FACTORS:
            maps = [_scaled(phi, problem, t, factor) for t, phi in enumerate(prototypes)]
            try:
                found, lift = self._spectral(problem, maps, problem.pilot, problem.pilot_weights, "isj")
            except UnsupportedError as error:
                failure = failure or error
                continue
            if not starts:
                self._record_spectral(found)
            starts[f"spectral × {factor:g}"] = self._estimate(problem, found, lift).posteriors(problem.pilot)
        if not starts:
            warnings.warn(
                f"{failure} The polish started from k-means alone, so its answer may be a local optimum.",
                IdentifiabilityWarning,
                stacklevel=5,
            )
        starts["k-means"] = _kmeans_posteriors(problem)
        return starts

    def _domains(self, problem: Problem, maps: Views) -> list[Any]:
        """Where the densities of every view live."""
        tables = [problem.pilot[:, columns] for columns in problem.columns]
        tables = [table[~np.isnan(table).any(axis=1)] for table in tables]
        return [domain_for(phi, table, problem.rng) for phi, table in zip(maps.features, tables, strict=True)]


def _by_weight(estimate: Estimate, keep: bool) -> tuple[np.ndarray, list[Components]]:
    """The commonest class first; as they are where labels name the classes."""
    if keep:
        return estimate.weights, estimate.components
    order = np.argsort(-estimate.weights, kind="stable")
    reordered: dict[int, Components] = {}
    for view in estimate.components:
        reordered.setdefault(id(view), view.take(order))
    return estimate.weights[order], [reordered[id(view)] for view in estimate.components]


def _scaled(phi: Any, problem: Problem, t: int, factor: float) -> Any:
    """A feature map whose kernel is ``factor`` times as wide as its rule says."""
    kernel = getattr(phi, "kernel", None)
    if factor == 1 or not isinstance(kernel, Kernel) or "bandwidth" not in kernel.get_params():
        return phi
    x = problem.pilot[:, problem.columns[t]]
    return with_bandwidth(phi, factor * kernel.adapt(x[~np.isnan(x).any(axis=1)]).bandwidth)


def _kmeans_posteriors(problem: Problem) -> np.ndarray:
    """Clusters of the standardised columns, softened a little."""
    used = [j for columns in problem.columns for j in columns]
    table = problem.pilot[:, used]
    center, spread = np.nanmean(table, axis=0), np.nanstd(table, axis=0)
    table = np.where(np.isnan(table), 0.0, (table - center) / spread)
    clusters = KMeans(problem.rank, n_init=3, random_state=int(problem.rng.integers(2**31)))
    labels = clusters.fit_predict(table, sample_weight=problem.pilot_weights)
    return 0.98 * np.eye(problem.rank)[labels] + 0.02 / problem.rank
