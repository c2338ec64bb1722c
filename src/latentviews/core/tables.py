"""From what the user passes to rows and the columns of every view, checked."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from latentviews._arrays import counts_there, is_foreign, namespace, to_numpy, unmasked
from latentviews._numbers import LARGEST
from latentviews._sentences import warn_user
from latentviews._validation import as_labels, check_rows, check_weights
from latentviews.core.categories import coded
from latentviews.core.checked import (
    CheckedPieces,
    Spaces,
    brought,
    checked_batches,
    is_stream,
    label_of,
    refuse_outside,
)
from latentviews.core.kernels.spaces import Real, Space, space_of
from latentviews.core.streams import is_array, sample
from latentviews.core.streams.dask import Chunks, is_delayed
from latentviews.io import StoredTable

HEAD = 1000  # rows that mostly show that a column varies
ROUNDING = 1000 * np.finfo(float).eps  # of the largest value: so much comes of arithmetic alone
Columns = tuple[list[int], ...]


class FewViewsError(ValueError):
    """Fewer views than determine the classes."""


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """The rows of a fit, and its pilot: rows in memory to which all is fitted before passes over all rows."""

    data: Any  # an array, or an iterable of batches
    weights: np.ndarray | None  # with mean one: sums then count rows, whatever the unit
    labels: np.ndarray | None  # known classes, -1 where unknown
    pilot: np.ndarray
    pilot_weights: np.ndarray | None
    pilot_labels: np.ndarray | None
    partial: bool  # whether there are more rows than the pilot's

    @property
    def codes(self) -> Any:
        """All rows, where they are in memory: discrete columns are read off them."""
        return self.data if is_array(self.data) else None

    def counted(self) -> "TrainingRows":
        """The same with no row in the pilot that counts for nothing, which would still widen grids."""
        if self.pilot_weights is None:
            return self
        kept = self.pilot_weights > 0
        labels = None if self.pilot_labels is None else self.pilot_labels[kept]
        return replace(self, pilot=self.pilot[kept], pilot_weights=self.pilot_weights[kept], pilot_labels=labels)

    @property
    def n_counted(self) -> int:
        """The rows of the pilot that count for something."""
        return len(self.pilot) if self.pilot_weights is None else int(np.count_nonzero(self.pilot_weights))


Rows = TypeVar("Rows", bound=TrainingRows)


def training_rows(
    data: Any,
    pilot_size: int,
    rng: np.random.Generator,
    sample_weight: Any = None,
    y: Any = None,
    draw: Callable[..., tuple[Any, ...]] = sample,
) -> TrainingRows:
    """Rows with their weights and known classes, checked, and a pilot that ``draw`` takes from them.

    ``draw(data, size, rng, weights, labels)`` gives some rows, their weights and labels; by default any rows.
    """
    if isinstance(data, CheckedPieces) and sample_weight is not None:  # they go along with the pieces
        data, sample_weight = data.weighed(sample_weight), None
    weights, labels = check_weights(sample_weight, data), as_labels(y, data)
    weights = None if weights is None else weights / weights.mean()
    drawn, pilot_weights, pilot_labels = draw(data, pilot_size, rng, weights, labels)
    pilot = to_numpy(drawn)
    unseen = np.flatnonzero(np.isnan(pilot).all(axis=0))
    if len(unseen) and is_array(data) and not np.isnan(to_numpy(data)[:, unseen]).all():
        raise ValueError(
            f"None of the {len(pilot)} rows of the pilot has a value in column {unseen[0]}, though other rows do; take "
            "a larger pilot_size."
        )
    count = data.shape[0] if is_array(data) else getattr(data, "n_rows", None)
    # a pilot that is not full holds the whole stream
    partial = len(pilot) >= pilot_size if count is None else len(pilot) < count
    if partial and pilot_weights is not None and not pilot_weights.sum() > 0:
        raise ValueError(f"All {len(pilot)} rows of the pilot have the weight zero; take a larger pilot_size.")
    return TrainingRows(data, weights, labels, pilot, pilot_weights, pilot_labels, partial)


def read_sequences(estimator: Any, X: Any, *, reset: bool) -> tuple[Any, Columns]:
    """The rows of sequences, one under the other, and the columns of every view: all of them if ``views`` is None.

    Rows are an array, where it is if its library can count; the first time they may be Dask's chunks. The first call on
    data (``reset``) settles the views; later ones find them in ``estimator.views_``, and refuse values outside the
    spaces of ``estimator.components_``.
    """
    X = _in_memory(_with_named_views(X, _listed(estimator.views)))
    if isinstance(X, Chunks) and reset:
        return checked_batches(estimator, X, reset=True), _sensors(estimator, reset=True)
    if _is_list_of_views(X) or is_stream(X):
        raise TypeError(
            f"{type(estimator).__name__} takes one table with the sequences one under the other, and `lengths` to say "
            f"how long each is; got a {type(X).__name__} of parts. Stack them: X = np.concatenate(parts), "
            "lengths = [len(part) for part in parts]."
        )
    table = check_rows(estimator, coded(estimator, X, reset=reset), reset=reset, missing=True)
    table = table if counts_there(table) else to_numpy(table)
    columns = _sensors(estimator, reset)
    refuse_outside(table, {} if reset else _fitted_spaces(estimator), _names(estimator))
    return table, columns


def _sensors(estimator: Any, reset: bool) -> Columns:
    """The columns of every view of sequences: one view of all columns if ``views`` is None."""
    if reset and estimator.views is None:
        return (list(range(estimator.n_features_in_)),)
    return _columns(estimator, reset, least=1)


def read_table(estimator: Any, X: Any, *, reset: bool) -> tuple[Any, Columns]:
    """Rows (an array, or an iterable of batches) and the columns of every view, as ``estimator.views`` says.

    The first call on data (``reset``) settles the views; later ones find them in ``estimator.views_``, and refuse
    values outside the spaces of ``estimator.components_``.
    """
    columns, spaces = None, {} if reset else _fitted_spaces(estimator)
    X = _with_named_views(X, _listed(estimator.views))
    if is_stream(X) and not _is_list_of_views(X):
        return checked_batches(estimator, X, reset=reset, spaces=spaces), _columns(estimator, reset)
    if _is_list_of_views(X):
        if estimator.views is not None:
            raise ValueError("X is a list of arrays, one per view, so `views` must be None; pass one or the other.")
        X, columns = _stack([np.asarray(unmasked(view)) for view in X])
    elif hasattr(X, "columns"):
        X = _named_columns(X, _listed(estimator.views))
    table = check_rows(estimator, coded(estimator, X, reset=reset, views=columns), reset=reset, missing=True)
    refuse_outside(table, spaces, _names(estimator))
    return table, columns or _columns(estimator, reset)


def _is_list_of_views(X: Any) -> bool:
    if not isinstance(X, list | tuple) or not X:
        return False
    dimensions = [getattr(view, "ndim", None) for view in X]
    if all(d == 2 for d in dimensions):
        return True
    if any(d is not None and d > 0 for d in dimensions):
        raise ValueError(
            f"A list of arrays is one 2-D array per view; got arrays of {dimensions} dimensions. Turn a vector x into "
            "a view of one column with x[:, None], or pass one table (np.column_stack) with one view per column."
        )
    return False


def _stack(views: list[np.ndarray]) -> tuple[np.ndarray, Columns]:
    """Arrays side by side, and where each of them went."""
    if len({len(view) for view in views}) > 1:
        raise ValueError(f"All views must have the same rows; got {[len(view) for view in views]} rows.")
    ends = np.cumsum([view.shape[1] for view in views])
    columns = [list(range(end - view.shape[1], end)) for view, end in zip(views, ends, strict=True)]
    kinds = {view.dtype.kind in "OUS" for view in views}
    views = [view.astype(object) for view in views] if len(kinds) > 1 else views  # numbers beside text stay numbers
    return np.concatenate(views, axis=1), _checked(columns, int(ends[-1]))


def _with_named_views(X: Any, views: Any) -> Any:
    """``X`` as models take it, a frame or a file with the columns that named views use alone."""
    X = brought(_named_columns(X, views) if hasattr(X, "columns") and not is_delayed(X) else X)
    names = _names_in(views)
    return X.only(list(dict.fromkeys(names))) if names and isinstance(X, StoredTable) else X


def _names_in(views: Any) -> list[Any]:
    """What is in views, if any of it is a name."""
    parts = [name for view in views or [] for name in _as_list(view)]
    return parts if any(isinstance(name, str) for name in parts) else []


def _named_columns(frame: Any, views: Any) -> Any:
    """The columns of a data frame that named views use; all columns if they are numbered."""
    names = _names_in(views)
    if names:
        absent = [name for name in names if name not in frame.columns]
        if absent:
            raise ValueError(f"views name columns {absent} that the table lacks; it has {list(frame.columns)}.")
        frame = frame[list(dict.fromkeys(names))]
    return frame


def _columns(estimator: Any, reset: bool, least: int = 3) -> Columns:
    if not reset:
        return estimator.views_
    names = list(getattr(estimator, "feature_names_in_", []))
    size, views = estimator.n_features_in_, _listed(estimator.views)
    least = min(least, getattr(estimator, "_fewest_views", least))
    if views is None:
        return _checked([[j] for j in range(size)], size, least)
    return _checked([[_index(name, names) for name in _as_list(view)] for view in views], size, least)


def _listed(views: Any) -> Any:
    """The columns of every view, without the names that a dict gives the views."""
    if views is not None and (isinstance(views, str) or not isinstance(views, Iterable)):
        raise ValueError(f"views must be a list with the columns of every view, or a dict; got {views!r}.")
    return list(views.values()) if isinstance(views, Mapping) else views


def _as_list(view: Any) -> list[Any]:
    return [view] if isinstance(view, str | int | np.integer) else list(view)


def _index(name: Any, names: list[str]) -> int:
    if isinstance(name, str):
        if name not in names:
            raise ValueError(
                f"views name a column {name!r}, but the table has no such name; pass a DataFrame, or views by index."
            )
        return names.index(name)
    if isinstance(name, bool) or not isinstance(name, int | np.integer):
        raise ValueError(f"views must hold column indices or names; got {name!r}.")
    return int(name)


def _checked(columns: list[list[int]], size: int, least: int = 3) -> Columns:
    """Three or more views (or ``least``), inside the table, none empty, none sharing a column."""
    if not columns:
        raise ValueError("views is empty; name the columns of at least one view.")
    if len(columns) < least:
        why = (
            'Two views do not determine the classes, unless `MultiViewMixture` is given dependence="copula".'
            if least == 3
            else "Classes show in how views go together; pass more columns, or put fewer into one view."
        )
        raise FewViewsError(
            f"A multi-view model needs at least {'three' if least == 3 else least} views; got {len(columns)} from "
            f"n_features = {size} column(s). {why}"
        )
    flat = [j for view in columns for j in view]
    outside = [j for j in flat if not -size <= j < size]
    if outside:
        raise ValueError(f"views name columns {outside}, but the table has columns 0 to {size - 1}.")
    if not all(columns):
        raise ValueError(f"Every view needs a column; view {columns.index([])} has none.")
    flat = [j % size for j in flat]
    shared = sorted({j for j in flat if flat.count(j) > 1})
    if shared:
        raise ValueError(f"views overlap: columns {shared} stand in more than one; give each column to one view.")
    return tuple([j % size for j in view] for view in columns)


def check_varying(x: np.ndarray, columns: Columns, names: Any = None) -> None:
    """Refuse columns that are empty or constant, which say nothing of the classes."""
    for view, group in enumerate(columns):
        for j in group:
            check_column(x[:, j], f"{label_of(j, names)} (in view {view})", "the classes")
        if len(group) > 1 and not is_foreign(x) and _lacks_some(x[:HEAD], group) and _lacks_some(x, group):
            raise ValueError(
                f"No row has all of columns {group} of view {view}, so nothing is known of how they go together; put "
                "them into views of their own."
            )


def _lacks_some(x: np.ndarray, group: list[int]) -> bool:
    """Whether every row lacks a value in some of these columns."""
    return bool(np.isnan(x[:, group]).any(axis=1).all())


def check_column(x: np.ndarray, label: Any, asked: str) -> None:
    """Refuse a column that is empty or constant, which says nothing of what is asked, or varies by next to nothing."""
    if not is_foreign(x) and varies(x[:HEAD]):
        return
    xp = namespace(x)  # of other libraries none has missing values
    low, high = (xp.min, xp.max) if is_foreign(x) else (np.fmin.reduce, np.fmax.reduce)
    low, high = float(low(x)), float(high(x))
    width, largest = high - low, max(-low, high)
    if np.isnan(low):
        raise ValueError(f"Column {label} is missing in all {x.shape[0]} rows; leave it out.")
    if low == high:
        raise ValueError(
            f"Column {label} is constant over {x.shape[0]} rows and says nothing of {asked}; leave it out."
        )
    if width < 1 / LARGEST:
        raise ValueError(f"Column {label} varies by {width:.3g}, whose square is no number; scale the column.")
    if width < ROUNDING * largest:
        raise ValueError(
            f"Column {label} varies by {width:.3g} beside values of {largest:.3g}, which is no "
            f"more than rounding and says nothing of {asked}; leave it out, or keep more digits by measuring from a "
            "number nearer to the values."
        )


def varies(head: np.ndarray) -> bool:
    """Whether some rows show that all of the column vary by more than rounding.

    A value so large that it makes little of their width lies itself as far from them.
    """
    if not len(head):
        return False
    low, high = float(np.fmin.reduce(head)), float(np.fmax.reduce(head))
    return high - low >= max(4 * ROUNDING * max(-low, high), 1 / LARGEST)


def check_spaces(x: np.ndarray, columns: Columns, prototypes: Sequence[Any], names: Any) -> Spaces:
    """Refuse values outside the space of their kernel, warn of strange ones, and give the space of every column."""
    spaces: dict[int, Space] = {}
    for group, phi in zip(columns, prototypes, strict=True):
        space = space_of(phi) or Real()
        spaces |= {j: space.column(place) for place, j in enumerate(group)}
    for j, space in spaces.items():
        doubt = None if space.affine else space.check(to_numpy(x[:, j]), label_of(j, names))
        if doubt:
            warn_user(doubt)
    return spaces


def rows_inside(rows: Rows, columns: Columns, prototypes: Sequence[Any], names: Any) -> Rows:
    """The same rows, none outside the space of its kernel: a sentence now, or from a stream as it passes."""
    known = is_array(rows.data)
    spaces = check_spaces(rows.data if known else rows.pilot, columns, prototypes, names)
    return rows if known else replace(rows, data=rows.data.inside(spaces))


def _fitted_spaces(estimator: Any) -> Spaces:
    """The spaces of the columns of a fitted model whose views have densities."""
    pairs = zip(estimator.views_, getattr(estimator, "components_", ()), strict=False)
    known = [(group, view.domain.space) for group, view in pairs if getattr(view, "domain", None) is not None]
    return {j: space.column(place) for group, space in known for place, j in enumerate(group)}


def _in_memory(X: Any) -> Any:
    """A table in files as a whole; anything else as it is."""
    if not isinstance(X, StoredTable):
        return X
    values = np.concatenate([np.asarray(piece) for piece in X])
    return X.frame_of(values)


def _names(estimator: Any) -> Any:
    return getattr(estimator, "feature_names_in_", None)
