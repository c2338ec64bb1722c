"""Categories as codes: strings, flags, numbers and pandas' categoricals become 0, 1, …, and come back."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from latentviews._arrays import on_host, unmasked
from latentviews._validation import check_names
from latentviews.core.kernels.product_space import ProductSpace
from latentviews.core.kernels.spaces import space_of

MISSING = -1  # the code of a missing value
CHOSEN = "_chosen_codes"  # where columns that are categories by dtype wait until kernels are chosen


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


def learn_categories(column: Any, label: Any, *, unused: bool = False) -> Categories:
    """The values that a column holds: numbers and text sorted, a categorical's in its own order.

    With ``unused``, those of a categorical that no row has are among them.
    """
    declared = getattr(getattr(column, "dtype", None), "categories", None)
    declared = declared if hasattr(declared, "__len__") else None  # polars' Categorical does not list its own
    if unused and declared is not None:
        return Categories(_as_array(np.asarray(declared).tolist()))
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
        raise TypeError(f"A category given as an argument must be a string, a number or a flag; got {odd!r}.") from None
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
    empty = isinstance(value, float | np.floating) and value != value
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(empty)


# ------------------------------------------------------------------------------------------------------------ tables


def text_columns(X: Any) -> list[int]:
    """The columns of a table, by number, whose values are no numbers."""
    if hasattr(X, "columns"):
        return [j for j, kind in enumerate(X.dtypes) if not is_numeric(kind)]
    x = _object_table(X)
    return [] if x is None else [j for j in range(x.shape[1]) if not _are_numbers(x[:, j])]


def is_numeric(dtype: Any) -> bool:
    """Whether a column of a pandas or polars frame holds numbers."""
    return dtype.is_numeric() if hasattr(dtype, "is_numeric") else getattr(dtype, "kind", "O") in "biuf"


def category_columns(X: Any) -> set[int]:
    """The columns of a table, by number, whose dtype says categories: categoricals, flags, and text that repeats."""
    if hasattr(X, "columns"):
        kinds = list(X.dtypes)
        return {j for j, kind in enumerate(kinds) if _says_categories(kind) or _has_words(kind, _column(X, j))}
    if getattr(getattr(X, "dtype", None), "kind", "f") == "b":
        return set(range(X.shape[1])) if len(X.shape) == 2 else set()
    x = _object_table(X)
    return set() if x is None else {j for j in text_columns(X) if _are_words(x[:, j])}


def _says_categories(dtype: Any) -> bool:
    """Whether a dtype of pandas or polars is that of categories or flags."""
    return getattr(dtype, "kind", "O") == "b" or str(dtype).split("(")[0] in (
        "category",
        "Categorical",
        "Enum",
        "Boolean",
    )


def _has_words(dtype: Any, column: Any) -> bool:
    return not is_numeric(dtype) and _are_words(_plain(column).ravel())


def _are_words(column: np.ndarray) -> bool:
    """Whether a column holds text that stands for categories: none of it a number, and half of it said before."""
    seen = [value for value in _factorized(column)[0] if not _is_missing(value)]
    words = all(isinstance(value, str | bool | np.bool_) and not _is_number(value) for value in seen)
    return words and bool(seen) and 2 * len(seen) <= max(len(column), 4)


def _is_number(value: Any) -> bool:
    """Whether text can be read as a number."""
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return isinstance(value, str)


def _object_table(X: Any) -> np.ndarray | None:
    """A table of Python objects or text as an array of two dimensions; None where it is something else."""
    if not isinstance(X, list | tuple) and getattr(getattr(X, "dtype", None), "kind", "f") not in "OUS":
        return None
    x = np.asarray(X, dtype=object)
    return x if x.ndim == 2 and x.shape[1] and len(x) else None


def _are_numbers(column: np.ndarray) -> bool:
    try:
        column.astype(float)
    except (TypeError, ValueError):
        return any(_is_missing(value) for value in column) and _are_numbers(column[~_missing(column)])
    return not any(isinstance(value, str) for value in column)


def _missing(column: np.ndarray) -> np.ndarray:
    return np.fromiter((_is_missing(value) for value in column), dtype=bool, count=len(column))


def encoded(X: Any, categories: Mapping[int, np.ndarray]) -> Any:
    """The table with some columns as codes, NaN where a value is missing; a frame stays a frame."""
    if hasattr(X, "columns"):
        names = list(X.columns)
        columns = {names[j]: _as_floats(values, X[names[j]]) for j, values in categories.items() if j < len(names)}
        if hasattr(X, "assign"):  # pandas, whose names may be numbers
            X = X.copy(deep=False)
            for name, codes in columns.items():
                X[name] = codes
            return X
        return X.with_columns(*(type(X[name])(name, codes) for name, codes in columns.items()))
    x = np.array(X, dtype=object)
    for j, values in categories.items():
        if x.ndim == 2 and j < x.shape[1]:
            x[:, j] = _as_floats(values, x[:, j])
    return x


def _as_floats(values: np.ndarray, column: Any) -> np.ndarray:
    codes = Categories(values).codes(column)
    return np.where(codes == MISSING, np.nan, codes)


def decoded(rows: np.ndarray, categories: Mapping[int, np.ndarray]) -> np.ndarray:
    """Rows of numbers with the values of some columns in the place of their codes."""
    if not categories:
        return rows
    table = rows.astype(object)
    for j, values in categories.items():
        table[:, j] = Categories(values).decoded(np.where(np.isnan(rows[:, j]), MISSING, rows[:, j]).astype(int))
    return table


def code_of(value: Any, values: np.ndarray | None) -> Any:
    """The code of a category, NaN where it is missing; a number as it is, where a column has no categories."""
    return value if values is None else float(_as_floats(values, [value])[0])


# ---------------------------------------------------------------------------------------------- tables of estimators


def coded(estimator: Any, X: Any, *, reset: bool, views: Any = None) -> Any:
    """A table in which categories that are no numbers have codes, in the columns of discrete views.

    The first call on data (``reset``) learns them, as ``estimator.categories_``. Text in other columns is refused.
    Where no kernel is given, views are discrete in the columns whose dtype says so; `chosen_codes` tells which. The
    columns of every ``views`` are those of the estimator by default.
    """
    X = unmasked(X)
    check_names(estimator, X)
    if reset:
        estimator.__dict__.pop("categories_", None)
        given, chosen, alike = _discrete_columns(estimator, X, views)
        estimator.__dict__[CHOSEN] = chosen
        texts = sorted(set(text_columns(X)) & given | chosen)
        if texts:
            learnt = {j: learn_categories(_column(X, j), j, unused=True).values for j in texts}
            estimator.categories_ = _shared(learnt, alike)
    categories = getattr(estimator, "categories_", {})
    X = _numbers_unpacked(encoded(X, categories) if categories else X)
    left = [X.columns[j] for j in text_columns(X)] if hasattr(X, "columns") else []
    if left and all(map(_is_number, seen := [value for name in left for value in _seen(X[name])])):
        raise ValueError(
            f"Columns {left} are not numbers but text that looks like some, such as {seen[0]!r:.60}; convert them, "
            "X.apply(pd.to_numeric), or give their view the kernel Delta(), which takes categories."
        )
    if left:
        raise ValueError(
            f"Columns {left} are not numbers; give their view the kernel Delta(), which takes categories, encode them "
            f"as numbers, or name the columns to use in `views`{_first_odd(X, left[0])}."
        )
    return X


def _numbers_unpacked(X: Any) -> Any:
    """A pandas frame whose columns of Python objects are floats where all of them are numbers or missing."""
    if not hasattr(X, "assign") or not X.columns.is_unique:
        return X
    packed = {X.columns[j]: _plain(X[X.columns[j]]) for j in text_columns(X) if str(X.dtypes.iloc[j]) == "object"}
    plain = {name: column for name, column in packed.items() if _are_numbers(column)}
    X = X.copy() if plain else X
    for name, column in plain.items():
        X[name] = np.where(_missing(column), np.nan, column).astype(float)
    return X


def _first_odd(X: Any, name: Any) -> str:
    """Words on the first value of a column that is no number."""
    column = _plain(X[name]).ravel()
    odd = [i for i, value in enumerate(column) if not _is_missing(value) and not _are_numbers(column[i : i + 1])]
    if not odd:
        return ""
    what = "text, such as " if isinstance(column[odd[0]], str) else ""
    return f": column {name!r} holds {what}{column[odd[0]]!r:.60} in row {odd[0] + 1:,}, counted from 1"


def coded_first(estimator: Any, batches: Iterable[Any], first: Any) -> Any:
    """The first batch of a stream with categories as codes, those of all batches learnt."""
    coded(estimator, first, reset=True)
    found = {j: values.tolist() for j, values in getattr(estimator, "categories_", {}).items()}
    if found:
        for batch in batches:
            rows = batch[0] if isinstance(batch, tuple) else batch
            for j, values in found.items():
                values += _seen(_column(rows, j)) if len(rows) else []
        learnt = {j: learn_categories(_as_array(values), j).values for j, values in found.items()}
        estimator.categories_ = _shared(learnt, _discrete_columns(estimator, first, None).alike)
    return coded(estimator, first, reset=False)


def _seen(column: Any) -> list[Any]:
    """The values of a column, those that a categorical declares among them."""
    declared = getattr(getattr(column, "dtype", None), "categories", None)
    own = np.asarray(declared).tolist() if hasattr(declared, "__len__") else []
    return own + [value for value in _factorized(column)[0] if not _is_missing(value)]


def _column(X: Any, j: int) -> Any:
    return X[X.columns[j]] if hasattr(X, "columns") else [row[j] for row in X]


def chosen_codes(estimator: Any) -> set[int]:
    """The columns that were taken for categories by their dtype when rows were last read, asked once."""
    return estimator.__dict__.pop(CHOSEN, set())


class _Discrete(NamedTuple):
    """Columns of categories, by number."""

    given: set[int]  # by a kernel or a feature map
    chosen: set[int]  # by their dtype
    alike: dict[int, Any]  # the same for columns that have one distribution, as exchangeable views do


def _discrete_columns(estimator: Any, X: Any, views: Any) -> _Discrete:
    """The columns of views whose kernel or features are those of a discrete space, and those that are so by dtype."""
    names, size = [str(name) for name in X.columns] if hasattr(X, "columns") else [], _width(X)
    features = getattr(estimator, "features", None)
    given = getattr(estimator, "kernel", None) if features is None else features
    views = views or getattr(estimator, "views", None) or _default_views(estimator, given, size)
    views = list(views.values()) if isinstance(views, Mapping) else views
    views = list(views) if isinstance(views, Iterable) else []  # which is refused elsewhere
    kernels = list(given) if isinstance(given, list | tuple) else [given] * len(views)
    by_dtype = category_columns(X) if getattr(estimator, "_kernels_by_dtype", False) else set()
    found = _Discrete(set(), set(), {})
    for t, (view, one) in enumerate(zip(views, kernels, strict=False)):
        for place, j in enumerate(_numbered(view, names, size)):
            found.alike[j] = _block(estimator, t), place
            if _is_discrete(one, place, names[j] if names else None):
                found.given.add(j)
            elif one is None and j in by_dtype:
                found.chosen.add(j)
    return found


def _numbered(view: Any, names: list[str], size: int) -> list[int]:
    """The columns of a view by number; those that are none are refused elsewhere."""
    listed: list[Any] = [view] if isinstance(view, str | int | np.integer) else list(view)
    numbers = [names.index(name) if name in names else name for name in listed]
    return [int(j) % size for j in numbers if isinstance(j, int | np.integer) and -size <= j < size]


def _block(estimator: Any, view: int) -> Any:
    """What views that share their distributions have in common."""
    blocks = getattr(estimator, "exchangeable", False)
    blocks = blocks.tolist() if isinstance(blocks, np.ndarray) else blocks
    if isinstance(blocks, list | tuple):
        return blocks[view] if view < len(blocks) and isinstance(blocks[view], Hashable) else view
    return "all" if blocks else view


def _shared(learnt: dict[int, np.ndarray], alike: Mapping[int, Any]) -> dict[int, np.ndarray]:
    """Categories of columns, those of one distribution with the values of all of them."""
    found = {}
    for j, values in learnt.items():
        others = [own.tolist() for i, own in learnt.items() if alike[i] == alike[j]]
        every = list(dict.fromkeys(value for own in others for value in own))
        same = all(own == values.tolist() for own in others)
        found[j] = values if same else learn_categories(_as_array(every), j).values
    return found


def _width(X: Any) -> int:
    """The number of columns of a table, zero for what is none."""
    shape = np.shape(X) if hasattr(X, "shape") else np.shape(np.asarray(X, dtype=object))
    return shape[1] if len(shape) == 2 else 0


def _default_views(estimator: Any, given: Any, size: int) -> Any:
    """Every column is a view; all are one where a model takes them so, or its kernel says columns."""
    together = getattr(estimator, "_columns_are_one_view", False) or isinstance(_space(given), ProductSpace)
    return [range(size)] if together else range(size)


def _space(thing: Any) -> Any:
    return None if thing is None or isinstance(thing, list | tuple) else space_of(thing)


def _is_discrete(thing: Any, place: int, name: Any) -> bool:
    """Whether a kernel or feature map takes a column of its view, at a place and of a name perhaps, for codes."""
    space = _space(thing)
    if not isinstance(space, ProductSpace):
        return space is not None and space.finite
    parts = zip(space.parts, space.columns, strict=True)
    return any(part.finite and (place in columns or name in columns) for part, columns in parts)
