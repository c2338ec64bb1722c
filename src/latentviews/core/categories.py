"""Categories as codes: strings, flags, numbers and pandas' categoricals become 0, 1, …, and come back."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from latentviews._arrays import on_host

MISSING, SHOWN = -1, 5  # the code of a missing value, and how many values a sentence names


@dataclass(frozen=True, eq=False)
class Categories:
    """The values of a column, in the order of their codes."""

    values: np.ndarray  # numbers, or Python objects

    def codes(self, column: Any) -> np.ndarray:
        """The code of every value: -1 where it is missing, ``len(values)`` where it was not seen in fitting."""
        distinct, places = _factorized(column)
        known = {value: code for code, value in enumerate(self.values.tolist())}
        numbers = [MISSING if _is_missing(value) else known.get(value, len(self.values)) for value in distinct]
        return np.asarray(numbers, dtype=int)[places] if len(places) else np.zeros(0, dtype=int)

    def decoded(self, codes: np.ndarray) -> np.ndarray:
        """The values of codes, None (NaN among numbers) where they are missing or of no category."""
        known = (codes >= 0) & (codes < len(self.values))
        if known.all():
            return self.values[codes]
        values = self.values.astype(float if self.values.dtype.kind in "iuf" else object)
        found = values[np.where(known, codes, 0)]
        found[~known] = np.nan if values.dtype.kind == "f" else None
        return found


def learn_categories(column: Any, label: Any) -> Categories:
    """The values that a column holds: numbers and text sorted, a categorical's in its own order."""
    declared = getattr(getattr(column, "dtype", None), "categories", None)
    distinct, _ = _factorized(column)
    seen = [value for value in distinct if not _is_missing(value)]
    if not seen:
        raise ValueError(f"Column {label} has no answer in any of {len(column)} rows; leave it out.")
    if declared is not None:
        order = {value: place for place, value in enumerate(np.asarray(declared).tolist())}
        seen.sort(key=lambda value: order[value])
    else:
        seen = _sorted(seen)
    return Categories(_as_array(seen))


def _sorted(values: list[Any]) -> list[Any]:
    """In order, where the values have one; numbers and words together by what is written."""
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=lambda value: (type(value).__name__, str(value)))


def _as_array(values: list[Any]) -> np.ndarray:
    """Numbers of one kind as such, anything else as objects."""
    kinds = {type(value) for value in values}
    if len(kinds) == 1 and kinds <= {int, float, bool}:
        return np.asarray(values)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _factorized(column: Any) -> tuple[list[Any], np.ndarray]:
    """The distinct values of a column, as Python objects, and which of them every row has."""
    x = _plain(column)
    if x.dtype.kind in "biufUS":
        distinct, places = np.unique(x, return_inverse=True)
        return distinct.tolist(), places.ravel()
    table: dict[Any, int] = {}
    try:
        places = np.fromiter((table.setdefault(value, len(table)) for value in x), dtype=int, count=len(x))
    except TypeError:
        odd = next(value for value in x if not _is_hashable(value))
        raise TypeError(f"A category must be a string, a number or a flag; got {odd!r}.") from None
    return list(table), places


def _plain(column: Any) -> np.ndarray:
    """A column of any library as a NumPy array of numbers, flags, text or objects."""
    x = on_host(column)
    if hasattr(x, "to_numpy"):  # pandas and polars
        x = x.to_numpy()
    x = np.asarray(x)
    return x if x.dtype.kind in "biufUSO" else x.astype(object)


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, or what pandas marks missing values with."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def names_of(values: Sequence[Any]) -> str:
    """Some values for a sentence."""
    shown = ", ".join(repr(value) for value in list(values)[:SHOWN])
    return shown + (", …" if len(values) > SHOWN else "")
