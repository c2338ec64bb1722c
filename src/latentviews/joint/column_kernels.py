"""The kernel of every column of a joint density."""

from collections.abc import Collection, Sequence
from typing import Any

from latentviews._validation import check_ability
from latentviews.core.kernels.base import Kernel, column_factors
from latentviews.core.kernels.discrete import Delta
from latentviews.core.kernels.mixed import in_view
from latentviews.core.kernels.real import Gaussian
from latentviews.core.kernels.spaces import space_of


def column_kernels(
    given: Any, n_columns: int, names: Sequence[str] | None = None, codes: Collection[int] = ()
) -> list[Kernel]:
    """One kernel per column, from what the user gave; ``codes`` are columns of categories where nothing was given."""
    if isinstance(given, list | tuple):
        if len(given) != n_columns:
            raise ValueError(f"kernel must be one object or one per column; got {len(given)} for {n_columns} columns.")
        each = list(given)
    else:
        each = _of_factors(given, n_columns, names) or [given] * n_columns
    defaults = [Delta() if j in codes else Gaussian() for j in range(n_columns)]
    kernels = [default if one is None else one for one, default in zip(each, defaults, strict=True)]
    for kernel in kernels:
        _check_density(kernel)
    return kernels


def _of_factors(given: Any, n_columns: int, names: Sequence[str] | None) -> list[Any]:
    """The kernel of every column, where a product says its columns; none otherwise."""
    if not column_factors(given):
        return []
    placed = in_view(given, names, n_columns)
    factors = column_factors(placed)
    if not factors:  # one kernel for all columns
        return [placed] * n_columns
    return [next(part.kernel for part in factors if j in part.columns) for j in range(n_columns)]


def _check_density(kernel: Any) -> None:
    """Refuse a kernel that no density of a column comes from."""
    check_ability("kernel", kernel, "gram")
    name = type(kernel).__name__
    if space_of(kernel) is None and "space" in kernel.get_params(deep=False):
        raise ValueError(f"{name} needs a space: Real(), HalfLine() or Interval(low, high); got None.")
    if kernel.space is None:
        raise TypeError(f"{name} does not smooth, so it has no density; use Gaussian or Delta.")
