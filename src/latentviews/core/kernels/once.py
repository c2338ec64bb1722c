"""What a fit reads off a column again and again, such as its order or a bandwidth, read once."""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")
SOME = 16  # values by which columns are told apart at first
_known: ContextVar[dict[Any, Any] | None] = ContextVar("known", default=None)


def reading_once(fit: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
    """A function during which answers of functions that are read `once` are kept; they are forgotten at its end."""

    @wraps(fit)
    def reading(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        token = _known.set({} if (outer := _known.get()) is None else outer)
        try:
            return fit(*args, **kwargs)
        finally:
            _known.reset(token)

    return reading


def once(function: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
    """A function of columns and numbers, asked once for every content of its arguments inside `reading_once`."""

    @wraps(function)
    def read(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        known = _known.get()
        if known is None:
            return function(*args, **kwargs)
        asked = (*args, *sorted(kwargs.items()))
        key = (function, *(_Content(part) if isinstance(part, np.ndarray) else part for part in asked))
        if key in known:
            return known[key]
        kept = tuple(_Content(part.values.copy()) if isinstance(part, _Content) else part for part in key)
        known[kept] = function(*args, **kwargs)
        return known[kept]

    return read


class _Content:
    """What an array holds, as a key: told apart by some of the values, and by all where these are the same."""

    def __init__(self, values: np.ndarray):
        self.values = values

    def __hash__(self) -> int:
        flat = self.values.reshape(-1)
        return hash((self.values.dtype.str, self.values.shape, flat[:: max(flat.size // SOME, 1)].tobytes()))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Content) or self.values.dtype != other.values.dtype:
            return False
        return (
            self.values.shape == other.values.shape and self.values.tobytes() == other.values.tobytes()
        )  # also of NaN


@once
def distinct(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different values of a column, none missing, in increasing order, and how often each occurs."""
    ordered = np.sort(x)
    first = np.append(True, ordered[1:] != ordered[:-1])[: len(x)]
    values, counts = ordered[first], np.diff(np.append(np.flatnonzero(first), len(x)))
    for part in (values, counts):
        part.flags.writeable = False
    return values, counts


def quantiles(x: np.ndarray, shares: Sequence[float]) -> np.ndarray:
    """What `np.quantile` gives of a column, none missing, read off its order."""
    values, counts = distinct(x)
    place, upto = np.multiply(shares, len(x) - 1), np.cumsum(counts)
    below = np.floor(place)
    low, high = (values[upto.searchsorted(i, "right")] for i in (below, np.minimum(below + 1, len(x) - 1)))
    share, step = place - below, high - low
    return np.where(share < 0.5, low + step * share, high - step * (1 - share))
