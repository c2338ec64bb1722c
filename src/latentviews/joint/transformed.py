"""Linear changes of units whose Jacobian is kept, and densities in the units of the data."""

import warnings
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, DensityMixin, TransformerMixin, clone
from sklearn.covariance import ledoit_wolf
from sklearn.utils.validation import check_is_fitted

from latentviews._arrays import to_numpy
from latentviews._numbers import TINY
from latentviews._parameters import Ability, AutoOr, Constraint, NoneOr, Share, check_parameters
from latentviews._validation import all_or_nothing, as_numbers, check_ability, check_rows, is_auto


class WhitenScale(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Rows made to have mean zero and uncorrelated columns of variance one, with the log-Jacobian kept.

    .. math:: y = W (x - \bar x), \qquad W = \Sigma^{-1/2}, \qquad \log p_X(x) = \log p_Y(y) + \log|\det W|

    Parameters
    ----------
    shrinkage : float or "auto", default="auto"
        How far the correlation matrix is drawn towards the identity before it is inverted, from 0 (the sample's own) to
        1 (columns are only scaled). "auto" is the rule of Ledoit & Wolf (2004), which keeps few rows of many columns
        from blowing up directions that happen to vary little.

    Attributes
    ----------
    mean_ : array of shape (n_features,)
    matrix_ : array of shape (n_features, n_features), Wᵀ
    log_jacobian_ : float
        The log of the absolute determinant of W: add it to a log-density of transformed rows to have that of the rows
        as they were.
    shrinkage_ : float

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(500, 2)) @ np.array([[2.0, 1.0], [0.0, 3.0]])
    >>> scale = WhitenScale(shrinkage=0.0).fit(X)
    >>> np.cov(scale.transform(X).T, bias=True).round(6) + 0.0
    array([[1., 0.],
           [0., 1.]])
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "shrinkage": AutoOr(Share('"auto" or a number from 0 to 1', zero=True, one=True)),
    }

    def __init__(self, shrinkage: float | str = "auto"):
        self.shrinkage = shrinkage

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn mean, scales and correlations.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        check_parameters(self)
        x = to_numpy(check_rows(self, X, reset=True))
        if len(x) < 2:
            raise ValueError(f"WhitenScale needs at least two rows; got n_samples = {len(x)}.")
        spread = x.std(axis=0)
        flat = np.flatnonzero(~(spread > 1e-12 * np.maximum(np.abs(x).max(axis=0), TINY)))
        if len(flat):
            raise ValueError(f"WhitenScale cannot scale columns that are constant; leave out {flat.tolist()}.")
        self.mean_ = x.mean(axis=0)
        correlation = self._correlation((x - self.mean_) / spread)
        values, vectors = np.linalg.eigh(correlation)
        if not values[0] > 1e-12 * values[-1]:
            raise ValueError(
                f"The {x.shape[1]} columns of {len(x)} rows are linearly dependent, so they cannot be whitened without "
                'shrinkage; use shrinkage="auto" or a positive number.'
            )
        self.matrix_ = (vectors / np.sqrt(values)) @ vectors.T / spread[:, None]
        self.log_jacobian_ = float(-0.5 * np.log(values).sum() - np.log(spread).sum())
        self._n_features_out = x.shape[1]
        return self

    def _correlation(self, scaled: np.ndarray) -> np.ndarray:
        """The shrunk correlation matrix of standardised rows."""
        sample = scaled.T @ scaled / len(scaled)
        automatic = is_auto(self.shrinkage)
        self.shrinkage_ = float(ledoit_wolf(scaled, assume_centered=True)[1] if automatic else self.shrinkage)
        return (1 - self.shrinkage_) * sample + self.shrinkage_ * np.eye(len(sample))

    def transform(self, X: Any) -> np.ndarray:
        """Rows in whitened units.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_features_out)
        """
        check_is_fitted(self)
        return (to_numpy(check_rows(self, X, reset=False)) - self.mean_) @ self.matrix_

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Rows in the units of the data.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        rows = as_numbers("X", X)
        if rows.ndim != 2 or rows.shape[1] != len(self.mean_):
            raise ValueError(f"WhitenScale expects rows of {len(self.mean_)} columns; got shape {rows.shape}.")
        return np.linalg.solve(self.matrix_.T, rows.T).T + self.mean_


def log_jacobian(transformer: Any, rows: Any) -> float:
    """Log |det| of the linear map of a fitted transformer: what its log-densities lack to be in the original units.

    `WhitenScale` has it; of others (`StandardScaler`, `PCA(whiten=True)` with all components, pipelines of them) it is
    measured by steps of a standard deviation from the mean of some ``rows``.
    """
    if hasattr(transformer, "log_jacobian_"):
        return float(transformer.log_jacobian_)
    x = as_numbers("X, whose density is asked for in its own units,", rows)
    unit = np.maximum(np.nanmax(np.abs(x), axis=0), TINY)  # in which squares are numbers
    size, center, spread = x.shape[1], np.nanmean(x, axis=0), unit * np.nanstd(x / unit, axis=0)
    steps = np.diag(np.where(spread > 0, spread, 1.0))
    points = center + np.concatenate([np.zeros((1, size)), steps, 2 * steps])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        moved = to_numpy(transformer.transform(points))
    columns = moved[1 : size + 1] - moved[0]
    square = columns.shape == (size, size) and np.allclose(moved[size + 1 :] - moved[0], 2 * columns)
    found = float(np.linalg.slogdet(columns)[1] - np.log(np.diag(steps)).sum()) if square else -np.inf
    if not np.isfinite(found):
        raise TypeError(
            f"Densities in original units need a linear, invertible transformer, or one with `log_jacobian_`; "
            f"{type(transformer).__name__} is not."
        )
    return found


class TransformedDensity(DensityMixin, BaseEstimator):
    r"""A density fitted to transformed rows, with its log-likelihood in the units of the data.

    .. math:: \log p(x) = \log q(T(x)) + \log |\det \partial T / \partial x|

    A pipeline of the two would score rows in the transformer's units: right for comparing densities behind the same
    transformer, wrong by its log-Jacobian for anything else.

    Parameters
    ----------
    density : estimator with ``score_samples`` and ``sample``, such as `LowRankDensity`
    transformer : transformer, default=WhitenScale()
        Linear and invertible, such as `WhitenScale` or scikit-learn's `StandardScaler`; fitted on the rows of ``fit``.

    Attributes
    ----------
    density_, transformer_ : fitted clones
    log_jacobian_ : float
        The last term, which is the same everywhere: T is linear.

    Examples
    --------
    >>> from sklearn.neighbors import KernelDensity
    >>> X = np.random.default_rng(0).normal(scale=10.0, size=(200, 2))
    >>> model = TransformedDensity(KernelDensity(bandwidth=0.5)).fit(X)
    >>> bool(abs(model.score(X) + 2 * np.log(10) + 2.8) < 0.2)
    True
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "density": Ability("score_samples"),
        "transformer": NoneOr(Ability("transform")),
    }

    def __init__(self, density: Any, transformer: Any = None):
        self.density = density
        self.transformer = transformer

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the transformer, then the density to what it gives.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        check_parameters(self)
        self.transformer_ = WhitenScale() if self.transformer is None else clone(self.transformer)
        rows = self.transformer_.fit_transform(X)
        self.log_jacobian_ = log_jacobian(self.transformer_, X)
        self.density_ = clone(self.density).fit(rows)
        self.n_features_in_ = self.transformer_.n_features_in_
        return self

    def score_samples(self, X: Any) -> np.ndarray:
        """The log-density of every row, in the units of ``X``.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
        """
        check_is_fitted(self)
        return self.density_.score_samples(self.transformer_.transform(X)) + self.log_jacobian_

    def score(self, X: Any, y: Any = None) -> float:
        """The mean log-density of the rows.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        float
            Higher is better.
        """
        return float(self.score_samples(X).mean())

    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Rows drawn from the density, in the units of the data.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState or None
            By default that of the model, so that a call repeats itself.

        Returns
        -------
        array of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        seed = {} if random_state is None else {"random_state": random_state}
        drawn = check_ability("density", self.density_, "sample").sample(n_samples, **seed)
        back = check_ability("transformer", self.transformer_, "inverse_transform").inverse_transform
        return back(drawn[0] if isinstance(drawn, tuple) else drawn)
