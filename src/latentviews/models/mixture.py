"""Mixtures of products of distributions without a shape."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted

from latentviews import streams
from latentviews._arrays import take_columns, to_numpy
from latentviews._validation import check_count, check_weights
from latentviews.embeddings import Components, components_in, domain_for
from latentviews.kernels import Kernel
from latentviews.spectral import spectral_fit
from latentviews.tensors import JointDiagonalization, Solver
from latentviews.views import (
    Columns,
    Views,
    check_varying,
    density_views,
    feature_prototypes,
    fit_views,
    read_table,
)

PILOT = 20_000


class MultiViewMixture(DensityMixin, BaseEstimator):
    r"""Hidden classes from three or more views that are independent given the class.

    .. math:: p(x_1, \ldots, x_\ell) = \sum_h \pi_h \prod_t p_t(x_t \mid h)

    The distributions p_t(·|h) have no assumed shape. They are found as kernel embeddings by the spectral algorithm
    of Song, Anandkumar, Dai & Xie (2014): second moments whiten, the third moment is an orthogonal tensor, and its
    eigenvectors are the classes.

    Parameters
    ----------
    n_components : int, default=2
        The number of classes k.
    views : list of lists of column indices or names, or None
        The columns of every view; by default every column is a view.
    exchangeable : bool, default=False
        Whether all views have the same distribution in every class (repeated measurements).
    kernel : Kernel or list of one a view, default=Gaussian("silverman")
        Shorthand for features: one-hot for `Delta`, bins for a real column, landmarks for anything else.
    features : transformer or list of one a view, or None
        The feature map, cloned for every view. Any scikit-learn transformer will do.
    solver : solver, default=JointDiagonalization()
    bandwidth : float, rule or None
        The bandwidth of the kernel in the moments; None leaves the kernel's own.
    density_bandwidth : float, rule, None or "auto", default="auto"
        The bandwidth of the densities. None takes that of the moments, which is the paper's own estimate; "auto" is
        None if ``kernel`` or ``features`` are given and "isj" otherwise: moments want a wider kernel than densities.
    reference : int or None
        The view whose coordinates the whitening uses; by default the best conditioned.
    pilot_size : int or None, default=20_000
        Rows on which features and projections are fitted, before one pass over all rows; None fits
        projections on all rows, one more pass.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    weights_ : array of shape (k,)
        How common the classes are, decreasing, summing to one; ``raw_weights_`` are the λ⁻² before that.
    components_ : list of Embedding or BinnedEmbedding, one a view
        The distribution of the view in every class.
    spectrum_ : array
        Singular values of the pair moment: a gap after the k-th speaks for k classes.
    residual_ : float
        The share of the whitened tensor that k classes do not explain.
    views_ : tuple of lists of column indices
    n_components_ : int

    Examples
    --------
    >>> from latentviews import MultiViewMixture
    >>> from latentviews.datasets import make_multiview
    >>> X, y, truth = make_multiview(5000, 3, design="gamma", random_state=0)
    >>> model = MultiViewMixture(3, random_state=0).fit(X)
    >>> model.weights_.round(2)
    array([0.51, 0.33, 0.16])
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        views: Sequence[Any] | None = None,
        exchangeable: bool = False,
        kernel: Kernel | Sequence[Kernel] | None = None,
        features: Any = None,
        solver: Solver | None = None,
        bandwidth: Any = None,
        density_bandwidth: Any = "auto",
        reference: int | None = None,
        pilot_size: int | None = 20_000,
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
        self.reference = reference
        self.pilot_size = pilot_size
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the classes behind the rows of ``X``.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features), list of 2-D arrays, one a view, or re-readable \
iterable of batches
        y : ignored
        sample_weight : array of shape (n_samples,) or None
        """
        rank = check_count("n_components", self.n_components)
        solver = JointDiagonalization() if self.solver is None else self.solver
        rng = np.random.default_rng(self.random_state)
        data, columns = read_table(self, X, reset=True)
        weights = check_weights(sample_weight, data)
        pilot = streams.sample(data, self.pilot_size or PILOT, rng, weights)
        self._check(pilot[0], columns, rank)
        views, lift = self._fit_views(pilot[0], columns, rng)
        found = spectral_fit(
            data,
            views,
            rank,
            solver,
            rng,
            weights=weights,
            pilot=None if self.pilot_size is None else pilot,
            exchangeable=self.exchangeable,
            reference=self.reference,
            lift=lift,
        )
        self.views_ = columns
        self.n_components_ = rank
        self.raw_weights_ = found.weights
        self.weights_ = found.weights / found.weights.sum()
        self.components_ = self._embeddings(pilot[0], lift or views, found.vectors, rng)
        self.spectrum_ = found.whitening.spectrum
        self.residual_ = found.decomposition.residual
        return self

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

    def _check(self, rows: Any, columns: Columns, rank: int) -> None:
        """Refuse what no fit can answer."""
        table = to_numpy(rows)
        if len(table) < max(rank, 2):
            raise ValueError(f"{rank} component(s) need at least {max(rank, 2)} rows; got n_samples = {len(table)}.")
        check_varying(table, columns, getattr(self, "feature_names_in_", None))
        if self.reference is not None and self.reference not in range(len(columns)):
            raise ValueError(f"reference must be a view from 0 to {len(columns) - 1}; got {self.reference!r}.")

    def _fit_views(self, rows: Any, columns: Columns, rng: np.random.Generator) -> tuple[Views, Views | None]:
        """The feature maps of the moments, and those of the densities if they differ."""
        maps = feature_prototypes(self.kernel, self.features, self.bandwidth, columns)
        views = fit_views(rows, columns, maps, rng, shared=self.exchangeable)
        automatic = self.kernel is None and self.features is None
        bandwidth = {"auto": "isj" if automatic else None}.get(self.density_bandwidth, self.density_bandwidth)
        return views, None if bandwidth is None else density_views(rows, views, bandwidth)

    def _embeddings(
        self, rows: Any, views: Views, vectors: Sequence[np.ndarray], rng: np.random.Generator
    ) -> list[Components]:
        """One record a view, with its domain laid around the rows."""
        tables = [to_numpy(take_columns(rows, columns)) for columns in views.columns]
        return [
            components_in(phi, vector, domain_for(phi, table, rng))
            for phi, vector, table in zip(views.features, vectors, tables, strict=True)
        ]

    def _log_joint(self, X: Any) -> np.ndarray:
        """Log π_h + Σ_t log p_t(x_t | h), (n_samples, k)."""
        check_is_fitted(self)
        data, columns = read_table(self, X, reset=False)
        return np.concatenate([self._log_joint_batch(batch, columns) for batch, _ in streams.batches(data)])

    def _log_joint_batch(self, batch: Any, columns: Columns) -> np.ndarray:
        joint = np.log(self.weights_)[None, :]
        for view, component in zip(columns, self.components_, strict=True):
            joint = joint + component.log_density(take_columns(batch, view))
        return joint
