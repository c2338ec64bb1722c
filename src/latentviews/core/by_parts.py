"""Answers about every row, also of rows that are not in memory."""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from latentviews.core.checked import brought, unmapped
from latentviews.core.streams.dask import Chunks
from latentviews.io import StoredTable


def by_parts(width: str | None = None, dtype: type = float) -> Callable[[Any], Any]:
    """A method with an answer for every row, which then also takes files and Dask collections.

    Of files it is an array, found a piece at a time; of a Dask collection a Dask array, found when it is computed.
    ``width`` names the attribute that says how many columns the answer has; None where it is one number per row.
    """

    def decorated(method: Any) -> Any:
        @wraps(method)
        def answer(self: Any, X: Any, *args: Any, **options: Any) -> Any:
            given, X = X, brought(unmapped(X))
            if not isinstance(X, StoredTable | Chunks):
                return method(self, given, *args, **options)
            check_is_fitted(self)
            of_rows = partial(_answers, partial(method, self), args, options)
            if isinstance(X, StoredTable):
                return np.concatenate([of_rows((), piece) for piece in X])
            shape = () if width is None else (int(getattr(self, width)),)
            return X.lazily(partial(of_rows, shape), shape, dtype)

        return answer

    return decorated


def _answers(method: Callable[..., Any], args: Any, options: Any, shape: tuple[int, ...], part: Any) -> Any:
    """What a method says of the rows of one part, which may have none."""
    rows = part[0] if isinstance(part, tuple) else part
    return method(rows, *args, **options) if len(rows) else np.empty((0, *shape))
