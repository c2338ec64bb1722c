"""Sentences on rows that say nothing."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from latentviews._arrays import to_numpy
from latentviews.core import streams


def check_empty_rows(data: Any, weights: np.ndarray | None, pilot: np.ndarray) -> None:
    """A sentence on rows that have no value."""
    known = streams.is_array(data)
    empty = np.isnan(data if known else pilot).all(axis=1)
    if known and weights is not None:
        empty &= weights > 0
    if empty.any():
        which = (
            f"Rows {np.flatnonzero(empty)[:5].tolist()}"
            if known
            else f"{empty.sum()} of {len(pilot)} rows of the pilot"
        )
        raise ValueError(f"{which} have no value at all and say nothing; leave them out.")


def check_constants(constants: Mapping[int, float], data: Any, weights: np.ndarray | None, size: int) -> None:
    """A sentence on columns that are constant in the pilot, but not in all rows that count."""
    columns, values = list(constants), np.array(list(constants.values()))

    def row_sum(batch: Any, weight: Any) -> tuple[np.ndarray]:
        x = to_numpy(batch)[:, columns]
        x = x if weight is None else x[np.asarray(weight) > 0]
        return ((~np.isnan(x) & (x != values)).sum(axis=0),)

    varies = streams.total(data, row_sum, weights).sums[0] > 0
    if varies.any():
        found = [columns[c] for c in np.flatnonzero(varies)]
        raise ValueError(
            f"Columns {found} are constant in the {size} rows of the pilot alone; leave them out, or raise pilot_size."
        )
