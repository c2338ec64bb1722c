"""Checks that turn bad input into one clear sentence."""

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from latentviews._arrays import is_foreign, namespace


class IdentifiabilityWarning(UserWarning):
    """The data hardly tell the components apart, or not at all."""


def check_rows(estimator: Any, X: Any, *, reset: bool) -> Any:
    """``X`` as a finite 2-D array of floats, in its own array library; remembers or checks its columns."""
    if not is_foreign(X):
        return validate_data(estimator, X, reset=reset, dtype=[np.float64, np.float32])
    name = type(estimator).__name__
    if X.ndim != 2 or X.shape[0] == 0:
        raise ValueError(f"{name} expects a 2-D array with at least one row; got shape {tuple(X.shape)}.")
    xp = namespace(X)
    if not bool(xp.all(xp.isfinite(X))):
        raise ValueError(f"{name} expects finite numbers; the input contains NaN or infinity.")
    if reset:
        estimator.n_features_in_ = X.shape[1]
    elif X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1]} features, but {name} is expecting {estimator.n_features_in_} features as input."
        )
    return X


def check_count(name: str, value: Any, low: int = 1) -> int:
    """``value`` as an int of at least ``low``."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer) or value < low:
        raise ValueError(f"{name} must be an integer of at least {low}; got {value!r}.")
    return int(value)


def check_weights(weights: Any, data: Any) -> np.ndarray | None:
    """``sample_weight`` as nonnegative numbers, one a row, not all zero; None stays None."""
    if weights is None:
        return None
    if not hasattr(data, "shape"):
        raise ValueError("sample_weight goes with an array; in a stream, yield pairs (rows, weights) instead.")
    weights = np.asarray(weights, dtype=float)
    if weights.ndim == 0:
        weights = np.full(data.shape[0], float(weights))
    if weights.shape != (data.shape[0],):
        raise ValueError(f"sample_weight needs one number a row, shape ({data.shape[0]},); got {weights.shape}.")
    if not np.all(np.isfinite(weights)) or np.any(weights < 0) or not weights.sum() > 0:
        raise ValueError("sample_weight must be finite and nonnegative, and not all zero.")
    return weights
