"""Draws in groups and rows of views, as `TopicModel` takes them: categories become codes."""

from typing import Any

import numpy as np
from scipy import sparse

from latentviews._arrays import to_numpy
from latentviews._no_tables import refuse_missing
from latentviews._validation import check_rows
from latentviews.core.categories import chosen_codes, coded
from latentviews.core.tables import Columns, read_table
from latentviews.core.views import feature_prototypes
from latentviews.discrete.crowd_answers import distinct


def read_draws(model: Any, X: Any, *, reset: bool) -> np.ndarray:
    """One row per draw; all columns are one view."""
    return to_numpy(check_rows(model, coded(model, X, reset=reset), reset=reset))


def read_views(model: Any, X: Any, *, reset: bool) -> tuple[np.ndarray, Columns]:
    """Rows without a missing value, and the columns of every view."""
    table, columns = read_table(model, X, reset=reset)
    if not hasattr(table, "shape"):
        raise TypeError(f"{type(model).__name__} takes one table in memory; got a stream. Put its batches together.")
    rows = to_numpy(table)
    refuse_missing(type(model).__name__, rows)
    return rows, columns


def prototypes_of(model: Any, columns: Columns) -> list[Any]:
    """An unfitted feature map for every view of the rows last read."""
    names = getattr(model, "feature_names_in_", None)
    return feature_prototypes(model.kernel, None, None, columns, names, chosen_codes(model))


def grouped(groups: Any, n_rows: int) -> tuple[sparse.csr_array, np.ndarray]:
    """Groups as bags whose atoms are the rows, and the names of the groups as they are met."""
    groups = np.asarray(groups)
    if groups.shape != (n_rows,):
        raise ValueError(f"groups needs one name per row, shape ({n_rows},); got {groups.shape}.")
    names, place = distinct(groups if groups.dtype.kind in "biuf" else groups.astype(object))
    bags = sparse.csr_array((np.ones(n_rows), (place, np.arange(n_rows))), shape=(len(names), n_rows))
    return bags, names
