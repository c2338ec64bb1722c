"""From what a user gives a latent class model to answers in codes, or a sentence."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from latentviews._arrays import on_host
from latentviews._sentences import warn_user
from latentviews._validation import IdentifiabilityWarning, check_names, check_weights, holds_batches, table_of
from latentviews.core.categories import Categories, learn_categories
from latentviews.discrete.expectation import Kernels

ONCE, MANY = 0.5, 20  # an item with more categories than this share of its answers, and than so many, is spoken of


@dataclass(frozen=True, eq=False)
class CodedRows:
    """Rows as codes, and what the codes stand for."""

    codes: np.ndarray  # (n, n_items): -1 where missing, the number of categories where not seen in fitting
    weights: np.ndarray | None
    categories: list[np.ndarray]
    ordered: list[bool]  # whether an item's categories have an order

    @property
    def sizes(self) -> list[int]:
        """The categories of every item."""
        return [len(values) for values in self.categories]

    @property
    def known(self) -> np.ndarray:
        """The codes with answers that were not seen in fitting taken for missing."""
        return np.where(self.codes < np.asarray(self.sizes), self.codes, -1)

    @property
    def unseen(self) -> Any:
        """The rows with an answer that was not seen in fitting."""
        return (self.codes >= np.asarray(self.sizes)).any(axis=1)


def read_answers(model: Any, X: Any, sample_weight: Any = None, *, reset: bool) -> CodedRows:
    """Every column as an item: its categories learnt (``reset``), or those of ``model.categories_``.

    They are learnt from the rows that count for something, as if others were not there.
    """
    if holds_batches(X) and not isinstance(X, list):
        raise TypeError(f"{type(model).__name__} takes one table in memory; got a stream of batches.")
    columns = _columns(model, X, reset)
    weights = check_weights(sample_weight, np.empty((len(columns[0]), 0)))
    names = getattr(model, "feature_names_in_", range(len(columns)))
    if reset:
        some = columns if weights is None else [column[weights > 0] for column in columns]
        found = [learn_categories(column, repr(name)) for name, column in zip(names, some, strict=True)]
        ordered = _ordered(model.ordered, list(names), columns)
    else:
        found, ordered = [Categories(values) for values in model.categories_], model.ordered_
    codes = np.stack([one.codes(column) for one, column in zip(found, columns, strict=True)], axis=1)
    return CodedRows(codes, weights, [one.values for one in found], ordered)


def warn_of_singles(model: Any, rows: CodedRows) -> None:
    """Say which items have hardly an answer twice, as columns of measurements do."""
    answered = (rows.codes >= 0).sum(axis=0)
    names = getattr(model, "feature_names_in_", range(len(answered)))
    single = [name for name, n, size in zip(names, answered, rows.sizes, strict=True) if MANY <= size > ONCE * n]
    if single:
        shown = ", ".join(str(name) for name in single[:5]) + (f" and {len(single) - 5} more" if single[5:] else "")
        warn_user(
            f"Column(s) {shown} have hardly an answer twice, and each is a category of its own, which says nothing of "
            "classes. For measurements take MultiViewMixture, or cut them into ranges (pandas.cut).",
            IdentifiabilityWarning,
        )


def _columns(model: Any, X: Any, reset: bool) -> list[Any]:
    """The columns of a table of any library, which keep their kinds."""
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        check_names(model, X)
        table_of(model, X, reset=reset, skip_check_array=True)
        if not len(X):
            raise ValueError(f"Found array with 0 sample(s) (shape={tuple(X.shape)}) while a minimum of 1 is required.")
        columns = [_column(X[name]) for name in X.columns]
    else:
        table = table_of(model, on_host(X), reset=reset, dtype=None, ensure_all_finite="allow-nan")
        columns = list(table.T)
    for place, column in enumerate(columns):
        _check_finite(column, place)
    return columns


def _column(series: Any) -> Any:
    """A column of pandas as it is, of another library as an array."""
    return series if hasattr(series, "iloc") else np.array([*series.to_list(), None], dtype=object)[:-1]


def _check_finite(column: Any, place: int) -> None:
    kind = getattr(getattr(column, "dtype", None), "kind", "O")
    if kind == "f" and np.isinf(np.asarray(column)).any():
        raise ValueError(f"Column {place} contains infinity, which is no category.")


def _ordered(given: Any, names: list[Any], columns: Sequence[Any]) -> list[bool]:
    """Which items have ordered categories: those the user names, and pandas' ordered categoricals."""
    declared = [bool(getattr(getattr(column, "dtype", None), "ordered", False)) for column in columns]
    if isinstance(given, bool | np.bool_):
        return [bool(given) or own for own in declared]
    if isinstance(given, str) or not isinstance(given, Iterable) or any(np.ndim(one) for one in given):
        raise ValueError(f"ordered must be True, False or a list of columns, by name or number; got {given!r}.")
    chosen = list(given)
    places = [names.index(one) if one in names else one for one in chosen]
    outside = [one for one in places if isinstance(one, bool | str) or one not in range(len(names))]
    if outside:
        raise ValueError(f"ordered names columns {outside} that the table lacks; it has {names}.")
    return [place in places or own for place, own in enumerate(declared)]


def smoothing_kernels(smoothing: float, sizes: Sequence[int], ordered: Sequence[bool]) -> Kernels:
    """The kernels K_j(x, b) on the categories of the items, columns summing to one; None without smoothing.

    Aitchison & Aitken (1976) for categories without an order: 1 − λ at b, λ / (C − 1) elsewhere, and no more than
    uniform. Wang & van Ryzin (1981) for ordered ones: in proportion to λ^|x − b|.
    """
    if not smoothing > 0:
        return None
    return [
        _ordered_kernel(smoothing, c) if o else _plain_kernel(smoothing, c) for c, o in zip(sizes, ordered, strict=True)
    ]


def _plain_kernel(smoothing: float, size: int) -> np.ndarray:
    share = min(smoothing, (size - 1) / size)
    off = share / max(size - 1, 1)
    return np.full((size, size), off) + (1 - share - off) * np.eye(size)


def _ordered_kernel(smoothing: float, size: int) -> np.ndarray:
    powers = smoothing ** np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    return powers / powers.sum(axis=0)
