"""Kernels on columns of a view: placed there, put together, widened."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from latentviews.core.kernels.base import Kernel, OnColumns, column_factors


def in_view(kernel: Any, names: Sequence[str] | None, n_columns: int) -> Any:
    """A kernel as a view of so many columns takes it: by places, each column once where it says columns."""
    if not isinstance(kernel, Kernel):
        return kernel
    kernel = _placed(kernel, names, n_columns)
    factors = column_factors(kernel)
    taken = sorted(place for part in factors for place in part.columns)
    if factors and taken != list(range(n_columns)):
        raise ValueError(
            f"The kernels of a view must take each of its {n_columns} column(s) once; those given take places {taken}."
        )
    if len(factors) == 1 and list(factors[0].columns) == taken:
        return factors[0].kernel
    return kernel


def _placed(kernel: Kernel, names: Sequence[str] | None, n_columns: int) -> Kernel:
    """The kernel with places in a view of so many columns where it, or a kernel in it, names them."""
    if isinstance(kernel, OnColumns):
        return OnColumns(kernel.kernel, [_place(column, names, n_columns) for column in kernel.columns])
    parameters = kernel.get_params(deep=False)
    inner = {key: value for key, value in parameters.items() if isinstance(value, Kernel)}
    if not inner:
        return kernel
    return type(kernel)(**parameters | {key: _placed(part, names, n_columns) for key, part in inner.items()})


def _place(column: Any, names: Sequence[str] | None, n_columns: int) -> int:
    """The place in a view of a column given by place or name."""
    if isinstance(column, str):
        if names is None or column not in names:
            raise ValueError(
                f"A kernel is on column {column!r}, which its view does not have; the view has "
                f"{'no names' if names is None else list(names)}."
            )
        return list(names).index(column)
    if isinstance(column, bool) or not isinstance(column, int | np.integer) or not -n_columns <= column < n_columns:
        raise ValueError(
            f"A kernel is on column {column!r}; columns are names, or places in the view, 0 to {n_columns - 1}."
        )
    return int(column) % n_columns


def product_on(kernels: Sequence[Kernel], columns: Sequence[Sequence[int]]) -> Kernel:
    """The product of kernels, each on columns of its own."""
    parts = [kernel.on(list(places)) for kernel, places in zip(kernels, columns, strict=True)]
    result: Kernel = parts[0]
    for part in parts[1:]:
        result = result * part
    return result


def widened(kernel: Kernel, factor: float) -> Any:
    """A copy of an adapted kernel, every bandwidth in it times a factor."""
    found = {key: value for key, value in kernel.get_params().items() if key.endswith("bandwidth")}
    return clone(kernel).set_params(**{key: factor * value for key, value in found.items()})


def has_width(kernel: Kernel) -> bool:
    """Whether there is a bandwidth in a kernel."""
    return any(key.endswith("bandwidth") for key in kernel.get_params())


def smoothness(kernel: Kernel | None, x: np.ndarray) -> np.ndarray:
    """The scale at which densities by a kernel vary around the rows ``x``, one per column."""
    factors = column_factors(kernel)
    if factors:
        scale = np.empty(x.shape[1])
        for part in factors:
            scale[part.places] = smoothness(part.kernel, part.some(x))
        return scale
    params = {} if kernel is None else kernel.get_params()
    widths = [np.broadcast_to(v, x.shape[1]) for key, v in params.items() if key.endswith("bandwidth")]
    return np.min(widths, axis=0) if widths else x.std(axis=0) * len(x) ** (-1 / (x.shape[1] + 4))
