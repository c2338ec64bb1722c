"""What the baselines share: views of one column, and the surface of an estimator."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from latentviews._parameters import check_parameters
from latentviews.core.tables import Columns, check_varying, read_table
from latentviews.mixtures.problem import Estimate, PosteriorMixin


class OneColumnViews(PosteriorMixin, BaseEstimator):
    """What the baselines share once they have ``weights_`` and ``components_``."""

    views: Any
    n_components: int

    def _log_joint(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        table, columns = self._rows(X, reset=False)
        return log_joint(self.weights_, self.components_, columns, table)

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
        check_parameters(self)
        rank = int(self.n_components)
        data, columns = self._rows(X, reset=True)
        if len(data) < max(rank, 2):
            needs = "1 component needs" if rank == 1 else f"{rank} components need"
            raise ValueError(f"{needs} at least {max(rank, 2)} rows; got n_samples = {len(data)}.")
        check_varying(data, columns, getattr(self, "feature_names_in_", None))
        return data[:, [view[0] for view in columns]], columns, rank

    def _keep(self, weights: np.ndarray, components: Sequence[Any], columns: Columns, order: np.ndarray) -> None:
        self.weights_ = weights[order]
        self.components_ = [view.take(order) for view in components]
        self.views_ = columns
        self.n_components_ = len(weights)


def log_joint(weights: np.ndarray, components: list[Any], columns: Columns, table: np.ndarray) -> np.ndarray:
    """Log π_h + Σ_t log p_t(x_t | h), (n, k)."""
    return Estimate(weights, components, columns).log_joint(table)
