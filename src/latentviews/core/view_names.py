"""What views are called."""

from collections.abc import Mapping, Sequence
from typing import Any

MOST, LONGEST = 4, 40  # columns and characters in the name of a view


def view_names(model: Any, columns: Sequence[str] | None = None) -> tuple[str, ...]:
    """What the views of a fitted model are called: by the keys of ``views`` where it is a dict, else by columns."""
    if isinstance(getattr(model, "views", None), Mapping):
        return tuple(map(str, model.views))
    names = getattr(model, "feature_names_in_", range(model.n_features_in_)) if columns is None else columns
    return tuple(short_name([str(names[j]) for j in view]) for view in model.views_)


def short_name(columns: Sequence[str]) -> str:
    """Columns joined by +, those beyond `LONGEST` counted: a column is in one view, so that the first tells which."""
    whole = "+".join(columns)
    if len(columns) == 1 or (len(columns) <= MOST and len(whole) <= LONGEST):
        return whole
    return f"{columns[0]}+{len(columns) - 1} more"
