"""Checks that turn bad input into one clear sentence."""

from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from functools import wraps
from typing import Any

import numpy as np
from sklearn.utils import get_tags
from sklearn.utils.validation import validate_data

from latentviews._arrays import is_foreign, namespace, on_host, to_numpy, unmasked
from latentviews._no_tables import refuse_infinite, refuse_missing, refuse_no_table
from latentviews._numbers import LARGEST, generator_of
from latentviews._sentences import warn_user


class IdentifiabilityWarning(UserWarning):
    """The data hardly tell the components apart, or not at all.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from latentviews import IdentifiabilityWarning, KernelICA
    >>> X = np.random.default_rng(0).normal(size=(500, 2))  # any rotation of Gaussian sources looks the same
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     model = KernelICA(random_state=0).fit(X)
    >>> told[0].category is IdentifiabilityWarning
    True
    """


class UnsupportedError(ValueError):
    """The moments of the data do not carry the number of components asked for; ``spectrum`` shows how many they do."""

    spectrum: np.ndarray | None = None


class DivergenceError(ArithmeticError):
    """The steps of a stochastic method grow without bound."""


def all_or_nothing(fit: Any) -> Any:
    """A ``fit`` that leaves its estimator as it was where it fails."""

    @wraps(fit)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            return fit(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return guarded


def check_rows(estimator: Any, X: Any, *, reset: bool, missing: bool = False) -> Any:
    """``X`` as a 2-D array of floats, in its own array library; remembers or checks its columns.

    Infinity is refused, and NaN unless values may be ``missing``.
    """
    name = type(estimator).__name__
    if not is_foreign(X):
        x = _validated(estimator, X, reset)
        with np.errstate(all="ignore"):  # of the sums by which they look
            if _is_plain(x):
                return x
            refuse_infinite(name, x, getattr(X, "columns", range(x.shape[1])))
        if reset:
            check_squares(x, getattr(X, "columns", range(x.shape[1])))
        if not missing:
            refuse_missing(name, x)
        return x
    if X.ndim != 2 or X.shape[0] == 0:
        raise ValueError(f"{name} expects a 2-D array with at least one row; got shape {tuple(X.shape)}.")
    xp, X = namespace(X), _as_floats(name, X)
    if not bool(xp.all(xp.isfinite(X))):
        gaps = " Rows with missing values are taken as NumPy's only; bring them to main memory." if missing else ""
        raise ValueError(f"{name} expects finite numbers; the input contains NaN or infinity.{gaps}")
    if reset:
        estimator.n_features_in_ = X.shape[1]
    elif X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1]} features, but {name} is expecting {estimator.n_features_in_} features as input."
        )
    return X


def _is_plain(x: np.ndarray) -> bool:
    """Whether one pass shows that a table has neither NaN nor infinity nor a value whose square is no number."""
    return x.flags.forc and float(np.dot(flat := x.ravel(order="K"), flat)) < LARGEST**2


def check_names(estimator: Any, X: Any) -> None:
    """Refuse what is no table, and a table with two columns of one name."""
    refuse_no_table(type(estimator).__name__, X)
    columns = list(getattr(X, "columns", []))
    if len(set(columns)) < len(columns):
        twice = next(column for column in columns if columns.count(column) > 1)
        name = type(estimator).__name__
        raise ValueError(f"{name} expects columns of different names; {twice!r} occurs more than once. Rename one.")


def _validated(estimator: Any, X: Any, reset: bool) -> np.ndarray:
    """scikit-learn's checks but of infinity; where they fail over names, text or a stream, a sentence that says so."""
    name = type(estimator).__name__
    check_names(estimator, X)
    if is_batches(X):
        raise TypeError(f"{name} expects one table here; got {type(X).__name__}. Put its batches together.")
    return table_of(estimator, X, reset=reset, dtype=[np.float64, np.float32], ensure_all_finite=False)


def table_of(estimator: Any, X: Any, **options: Any) -> Any:
    """What scikit-learn's ``validate_data`` gives; where it asks for numbers, a sentence on text and dates."""
    name, X = type(estimator).__name__, unmasked(X)
    refuse_no_table(name, X)
    numbers = options.get("dtype") is not None
    if numbers and _holds_dates(X):  # which NumPy takes as numbers in some units
        _refuse_others(name, X)
    try:
        with np.errstate(all="ignore"):  # of the sum by which it looks for infinity
            return validate_data(estimator, X, **options)
    except (TypeError, ValueError) as error:
        if numbers:
            _refuse_others(name, X)
        if np.iscomplexobj(X):
            raise ValueError("Complex data not supported: pass real and imaginary parts as columns.") from error
        raise


def _holds_dates(X: Any) -> bool:
    """Whether a table has a column of dates or durations."""
    dtypes = X.dtypes if hasattr(X, "columns") else [getattr(X, "dtype", "")]
    return any(str(dtype).lower().startswith(("date", "timedelta", "duration")) for dtype in dtypes)


def _refuse_others(name: str, X: Any) -> None:
    """A sentence where a column holds text or dates."""
    table = np.asarray(X, dtype=object) if isinstance(X, list | tuple) else np.asarray(X)
    names = list(getattr(X, "columns", []))
    for j, column in enumerate(table.T if table.ndim == 2 and table.dtype.kind not in "biufc" else ()):
        odd = next((value for value in column if _what_else(value)), None)
        if odd is not None:
            what, label = _what_else(odd), names[j] if names else j
            since = ", such as days since the first" if what == "dates" else ""
            raise ValueError(
                f"{name} expects numbers; column {label!r} holds {what}, such as {str(odd)!r:.60}. Leave the column "
                f"out, or turn its values into numbers{since}."
            )


def _what_else(value: Any) -> str | None:
    """What a value is that is no number: text, or a date; None for numbers."""
    if isinstance(value, str):
        return None if _is_numeral(value) else "text"
    return "dates" if isinstance(value, date | timedelta | np.datetime64 | np.timedelta64) else None


def check_squares(x: np.ndarray, names: Sequence[Any], table: str = "") -> None:
    """Refuse values whose squares are beyond the range of numbers; a ``table`` that has a name is named."""
    if max(float(np.fmax.reduce(x, axis=None, initial=0)), -float(np.fmin.reduce(x, axis=None, initial=0))) > LARGEST:
        row, column = np.argwhere(np.abs(x) > LARGEST)[0]
        raise ValueError(
            f"Column {names[column]!r}{table and f' of {table}'} holds {x[row, column]:.3g}, whose square is no "
            "number; scale the column, or take that row out."
        )


def as_numbers(name: str, values: Any, *, missing: bool = True) -> np.ndarray:
    """An argument that is no table of an estimator as floats, NaN where a value is ``missing``, if one may be."""
    expected = f"{name} must hold real numbers" + (", NaN where one is missing" if missing else "")
    try:
        if not np.iscomplexobj(np.asarray(on_host(values))):
            if hasattr(values, "convert_dtypes"):  # pandas, whose NA no other library knows
                return np.asarray(values.to_numpy(dtype=float, na_value=np.nan))
            return to_numpy(values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{expected}; got a {type(values).__name__} that holds something else ({error}).") from error
    raise ValueError(f"{expected}; got complex ones. Pass real and imaginary parts as columns.")


def _is_numeral(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _as_floats(name: str, x: Any) -> Any:
    """An array of another library in floats of at least 32 bits."""
    xp = namespace(x)
    if xp.isdtype(x.dtype, "complex floating"):
        raise ValueError(f"{name} expects real numbers; got {x.dtype}. Pass the real and imaginary parts as columns.")
    if not xp.isdtype(x.dtype, "real floating"):
        return xp.astype(x, xp.asarray(0.0).dtype)
    return x if xp.finfo(x.dtype).bits >= 32 else xp.astype(x, xp.float32)


def check_range(values: Any) -> Any:
    """``values`` computed from rows, or a sentence where some are beyond what their dtype can hold."""
    xp = namespace(values)
    if not bool(xp.all(xp.isfinite(values))):
        dtype = str(values.dtype).rpartition(".")[2]
        raise ValueError(f"Row values are too large for these features in {dtype}; scale the columns.")
    return values


def is_batches(X: Any) -> bool:
    """Whether ``X`` is an iterable of batches, and not one table in whatever form."""
    table = isinstance(X, list | tuple | str) or hasattr(X, "shape") or hasattr(X, "__array__") or hasattr(X, "columns")
    return isinstance(X, Iterable) and not table


def holds_batches(X: Any) -> bool:
    """Whether ``X`` is an iterable of batches, or a list of them: arrays, or pairs that begin with one."""
    if not isinstance(X, list):
        return is_batches(X)
    parts = [batch[0] if isinstance(batch, tuple) and batch else batch for batch in X]
    return bool(parts) and all(getattr(part, "ndim", None) == 2 for part in parts)


def check_one_batch(X: Any) -> None:
    """Refuse a stream where one batch of it is meant."""
    if holds_batches(X):
        raise TypeError("partial_fit takes one batch, an array; call it for every batch of a stream.")


def is_auto(setting: Any) -> bool:
    """Whether a setting is left to the model; it may be an array, which no string is compared with."""
    return isinstance(setting, str) and setting == "auto"


def check_count(name: str, value: Any, low: int = 1) -> int:
    """``value`` as an int of at least ``low``."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer) or value < low:
        raise ValueError(f"{name} must be an integer of at least {low}; got {value!r}.")
    return int(value)


def draws_of(estimator: Any, random_state: Any) -> np.random.Generator:
    """A generator of its own for draws from a fitted model; by default the one of its ``random_state``."""
    return generator_of(estimator.random_state if random_state is None else random_state)


def check_positive(name: str, value: Any) -> float:
    """``value`` as a positive, finite float."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 < value < np.inf:
        raise ValueError(f"{name} must be a positive, finite number; got {value!r}.")
    return float(value)


def check_nonnegative(name: str, value: Any) -> float:
    """``value`` as a finite float of at least zero."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 <= value < np.inf:
        raise ValueError(f"{name} must be a finite number of at least zero; got {value!r}.")
    return float(value)


def check_ability(name: str, value: Any, ability: str) -> Any:
    """``value`` if it offers a method, or a sentence on what was expected."""
    if isinstance(value, type) or not callable(getattr(value, ability, None)):
        space = ability == "gram" and hasattr(value, "quadrature")
        hint = " A space goes into a kernel: Gaussian(space=HalfLine())." if space else ""
        if isinstance(value, type) and hasattr(value, ability):
            hint = f" That is a class; write {value.__name__}() for one of its objects."
        raise TypeError(f"{name} must be an object with a method `{ability}`; got {value!r}.{hint}")
    if ability == "gram" and not hasattr(value, "adapt"):  # which every `Kernel` has
        raise TypeError(
            f"{name} must be a kernel of latentviews, or an object of a class that inherits from `Kernel`, which has "
            f"what else is asked of one beside `gram`; got {value!r}."
        )
    if hasattr(value, "__sklearn_tags__") and get_tags(value).target_tags.required:
        raise TypeError(f"{name} must learn from rows alone; {type(value).__name__} needs a target as well.")
    return value


def check_bandwidth(name: str, value: Any) -> Any:
    """A positive number that has a square, one per column, or the name of a rule."""
    if isinstance(value, str):
        return value
    try:
        numbers = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        numbers = np.array(np.nan)
    if numbers.ndim > 1 or not np.all(np.isfinite(numbers) & (numbers > 0)):
        raise ValueError(
            f"{name} must be a positive, finite number, one per column, or the name of a rule; got {value!r}."
        )
    if numbers.size and not 1 / LARGEST <= numbers.min() <= numbers.max() <= LARGEST:
        raise ValueError(
            f"{name} must be a number from {1 / LARGEST:.0e} to {LARGEST:.0e}; got {value!r}. Scale the columns."
        )
    return value


def check_weights(weights: Any, data: Any) -> np.ndarray | None:
    """``sample_weight`` as nonnegative numbers, one per row, not all zero; None stays None."""
    if weights is None:
        return None
    if not hasattr(data, "shape"):
        raise ValueError("sample_weight goes with an array; in a stream, yield pairs (rows, weights) instead.")
    weights = as_numbers("sample_weight", weights, missing=False)
    if weights.ndim == 0:
        weights = np.full(data.shape[0], float(weights))
    if weights.shape != (data.shape[0],):
        raise ValueError(f"sample_weight needs one number per row, shape ({data.shape[0]},); got {weights.shape}.")
    if not np.all(np.isfinite(weights)) or np.any(weights < 0) or not weights.sum() > 0:
        raise ValueError("sample_weight must be finite and nonnegative, and not all zero.")
    return weights


def as_labels(y: Any, data: Any) -> np.ndarray | None:
    """Known classes 0, 1, … and -1 where unknown; None unless some are unknown, with a warning for names."""
    if y is None:
        return None
    rows = data.shape[0] if hasattr(data, "shape") else None
    if rows is not None and np.shape(y)[:1] != (rows,):
        raise ValueError(f"y needs one label per row, {rows}; got {len(y) if np.ndim(y) else repr(y)}.")
    names = label_names(y)
    labels = _numbers(y) if names is None else _codes(y, names)
    why = _why_unused(labels, y)
    if why is not None or labels is None:
        if np.asarray(y).dtype.kind in "UOT":  # numbers may be a pipeline's target, which mixtures ignore by convention
            warn_user(f"y is not used: {why}.")
        return None
    if rows is None:
        raise ValueError("Known classes in y go with an array; a stream has no place for them.")
    return labels.astype(int)


def _why_unused(labels: np.ndarray | None, y: Any) -> str | None:
    """Why a target says nothing that a fit can use; None where it does."""
    unknown = "mark rows of unknown class with -1, None or NaN, or leave y out"
    if labels is None or not np.all(labels == np.round(labels)):
        text = np.asarray(y).dtype.kind in "UOT" and np.ndim(y) == 1
        return f"no row is marked as unknown; {unknown}" if text else "it does not hold classes 0, 1, … or names"
    if not np.any(labels >= 0):
        return "it holds no known class"
    return None if np.any(labels == -1) else f"no row is marked as unknown; {unknown}"


def label_names(y: Any) -> list[str] | None:
    """The names of known classes in their order, where ``y`` holds text and marks some rows as unknown; else None.

    Unknown are None, NaN, -1 and empty text.
    """
    if y is None or np.asarray(y).dtype.kind not in "UOT" or np.ndim(y) != 1:
        return None
    values = np.asarray(y, dtype=object).tolist()
    if not any(isinstance(value, str) for value in values) or not any(map(_is_unknown, values)):
        return None
    return sorted({str(value) for value in values if not _is_unknown(value)}) or None


def _is_unknown(value: Any) -> bool:
    """Whether a label stands for none."""
    if value is None or str(value).strip() in ("", "-1", "-1.0", "<NA>"):  # pandas's NA cannot be compared
        return True
    return bool(value != value)  # NaN is not itself


def _codes(y: Any, names: list[str]) -> np.ndarray:
    """The places of labels among their names, -1 where unknown."""
    place = {name: float(h) for h, name in enumerate(names)}
    return np.array([-1.0 if _is_unknown(value) else place[str(value)] for value in np.asarray(y, dtype=object)])


def _numbers(y: Any) -> np.ndarray | None:
    """``y`` as a vector of floats, -1 for NaN; None where it is something else, such as names."""
    labels = np.asarray(y)
    labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if labels.dtype.kind not in "iufO" or labels.ndim != 1:
        return None
    if labels.dtype.kind == "O":
        labels = np.array([-1.0 if _is_unknown(value) else value for value in labels.tolist()], dtype=object)
    try:
        labels = labels.astype(float)
    except (TypeError, ValueError):
        return None
    return np.where(np.isnan(labels), -1.0, labels)


def allowed_classes(labels: np.ndarray, n_classes: int) -> np.ndarray:
    """One for the classes a row may be in, (n, k): its own where known, all where it is -1."""
    if labels.min() < -1 or labels.max() >= n_classes:
        raise ValueError(
            f"Known classes in y are 0 to {n_classes - 1}, unknown ones -1; got {labels.min()} to {labels.max()}."
        )
    return np.where(labels[:, None] < 0, 1.0, np.eye(n_classes)[labels])
