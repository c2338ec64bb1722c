"""Forecasts as a mean and weighted residuals around it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from latentviews._numbers import TINY, brief, drawn_labels, generator_of
from latentviews._validation import check_count
from latentviews.core.kernels.bandwidths import silverman
from latentviews.core.kernels.real import Gaussian
from latentviews.mixtures.quantiles import check_levels
from latentviews.sequences.stretches import check_place

MOST_STRETCH = 2.0  # by which residuals are made wider where their mean is most of them


@dataclass(frozen=True, eq=False)
class SampleForecast:
    """The distribution of the next rows: a mean and weighted residuals around it.

    The residuals are centred, and as much wider as their weighted mean took from their mean square.

    Arrays have the shape of ``center`` without its last axis, (horizon,) for one series and (n, horizon) for
    several, and what is asked for behind it.

    Parameters
    ----------
    center : array of shape (..., horizon, d)
    residuals : array of shape (m, horizon, d)
        What held-out forecasts missed by.
    weights : array of shape (..., m)
        How much each of them counts, summing to one.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import ObservableOperators, PredictiveStateModel
    >>> X = np.sin(np.arange(120) / 5)[:, None]
    >>> model = PredictiveStateModel(dynamics=ObservableOperators((5,), (1e-3,)), random_state=0).fit(X)
    >>> forecast = model.forecast(X, 3)
    >>> forecast.horizon, forecast.quantile([0.1, 0.9]).shape, forecast.weights.sum().round(6)
    (3, (3, 1, 2), np.float64(1.0))
    """

    def __repr__(self) -> str:
        return brief(self)

    center: np.ndarray
    residuals: np.ndarray
    weights: np.ndarray

    @property
    def horizon(self) -> int:
        """The number of steps ahead."""
        return self.center.shape[-2]

    def mean(self) -> np.ndarray:
        """The mean of every column, (..., horizon, d).

        Returns
        -------
        array of shape (..., horizon, d)
        """
        return self.center

    def _frame(self) -> tuple[np.ndarray, np.ndarray]:
        """What residuals are added to, and first multiplied by: both (..., horizon, d)."""
        mean = np.tensordot(self.weights, self.residuals, axes=1)
        square = np.tensordot(self.weights, self.residuals**2, axes=1)
        # held-out errors of neighbours are alike, so that their mean is of their own size: no bias to be forgotten
        stretch = np.sqrt(square / np.maximum(square - mean**2, np.maximum(square / MOST_STRETCH**2, TINY)))
        return self.center - stretch * mean, stretch

    def quantile(self, q: Any) -> np.ndarray:
        """The quantile of every column by itself, (..., horizon, d), and a last axis if ``q`` is a list.

        Parameters
        ----------
        q : float or list of floats
            Levels, from zero to one.

        Returns
        -------
        array of shape (..., horizon, d) or (..., horizon, d, len(q))
        """
        levels, (offset, stretch) = check_levels(q), self._frame()
        result = np.empty((*self.center.shape, len(levels)))
        for step in range(self.horizon):
            for j in range(self.center.shape[-1]):
                order = np.argsort(self.residuals[:, step, j], kind="stable")
                sorted_residuals = self.residuals[order, step, j]
                shares = np.cumsum(self.weights[..., order], axis=-1)
                place = (shares[..., None] < levels).sum(axis=-2).clip(max=len(order) - 1)
                result[..., step, j, :] = (
                    offset[..., step, j, None] + stretch[..., step, j, None] * sorted_residuals[place]
                )
        return result[..., 0] if np.ndim(q) == 0 else result

    def density(self, x: Any, column: int = 0) -> np.ndarray:
        """The density of one column at the points ``x``, (..., horizon, len(x)); residuals are smoothed for it.

        Parameters
        ----------
        x : array of shape (m,)
        column : int, default=0

        Returns
        -------
        array of shape (..., horizon, m)
        """
        points, column = np.ravel(np.asarray(x, dtype=float)), check_place("column", column, self.center.shape[-1])
        result, (offset, stretch) = np.empty((*self.center.shape[:-1], len(points))), self._frame()
        for step in range(self.horizon):
            spread = self.residuals[:, step, [column]]
            kernel = Gaussian(max(float(silverman(spread)[0]), TINY))
            wide = stretch[..., step, column, None]
            gaps = (points - offset[..., step, column, None]) / wide
            values = kernel.gram(gaps.reshape(-1, 1), spread).reshape(*gaps.shape, -1)
            result[..., step, :] = np.einsum("...xm,...m->...x", values, self.weights) / wide
        return result

    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Whole futures, (n_samples, ..., horizon, d): the mean and one held-out residual path each.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState, Generator or None, default=None

        Returns
        -------
        array of shape (n_samples, ..., horizon, d)
        """
        n_samples, rng = check_count("n_samples", n_samples), generator_of(random_state)
        offset, stretch = self._frame()
        return offset + stretch * self.residuals[drawn_labels(self.weights, rng, (n_samples,))]
