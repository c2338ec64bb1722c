"""The array library of an argument, and the way from it to NumPy and back."""

import math
from importlib import import_module
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, is_array_api_obj, is_numpy_array, to_device
from scipy import sparse, special


def namespace(x: Any) -> Any:
    """The array-API namespace that ``x`` belongs to."""
    return array_namespace(x)


def is_foreign(x: Any) -> bool:
    """Whether ``x`` is an array of a library other than NumPy, or sparse rows whose ``device_entries`` are."""
    if type(x) is np.ndarray:  # nothing is asked so often
        return False
    x = getattr(x, "device_entries", x)
    return is_array_api_obj(x) and not is_numpy_array(x)


def counts_there(x: Any) -> bool:
    """Whether ``x`` is of another library that can count: `bincount` is no part of the array-API standard."""
    return is_foreign(x) and hasattr(namespace(x), "bincount")


def in_doubles(x: Any) -> Any:
    """``x`` in float64 where it lives, or in its own floats on a device that has no others; dense if it was sparse."""
    if not is_foreign(x):
        return to_numpy(x)
    without = getattr(device(x), "type", None) == "mps"  # Apple's
    return x if without else namespace(x).astype(x, namespace(x).float64, copy=False)


def by_columns(x: Any) -> Any:
    """The transpose, laid out in memory column after column where the library has a say in that."""
    xp = namespace(x)
    if hasattr(xp, "ascontiguousarray"):
        return xp.ascontiguousarray(x.T)
    return x.T.contiguous() if hasattr(x, "contiguous") else x.T


def device_memory(x: Any) -> int | None:
    """The free bytes of the device that ``x`` is on; None in main memory, and where nobody says."""
    library = import_module(type(x).__module__.partition(".")[0]) if is_foreign(x) else None
    if library is None or not hasattr(library, "cuda") or x.__dlpack_device__()[0] == 1:
        return None
    if hasattr(library.cuda, "mem_get_info"):  # PyTorch, which keeps what it has freed
        kept = library.cuda.memory_reserved(x.device) - library.cuda.memory_allocated(x.device)
        return int(library.cuda.mem_get_info(x.device)[0] + kept)
    return int(library.cuda.runtime.memGetInfo()[0])


def in_library_of(values: Any, x: Any) -> Any:
    """``values`` in the library, on the device and of the dtype of ``x``, or of their own if that has no fractions."""
    x = getattr(x, "device_entries", x)
    if is_numpy_array(x) or sparse.issparse(x):
        return np.asarray(values, dtype=x.dtype if x.dtype.kind in "fc" else None)
    if not is_foreign(values):
        values = np.asarray(values, order="C")  # PyTorch takes no negative strides
    return namespace(x).asarray(values, dtype=x.dtype if _has_fractions(x) else None, device=device(x))


def _has_fractions(x: Any) -> bool:
    return namespace(x).isdtype(x.dtype, ("real floating", "complex floating"))


def in_place_of(rows: np.ndarray, x: Any) -> Any:
    """Some rows on the device that ``x`` is on, in their own dtype; as they are where that is main memory."""
    return rows if device_memory(x) is None else namespace(x).asarray(rows, device=device(x))


def answered(values: Any, x: Any) -> Any:
    """What a model says of the rows ``x``, in their library and on their device; NumPy's for other tables."""
    if not is_foreign(x) or is_foreign(values):
        return values
    return namespace(x).asarray(np.asarray(values), device=device(x))


def moved_to(values: Any, x: Any) -> Any:
    """What ``in_library_of`` gives of an array of any library; the array itself if it is so already."""
    if type(values) is not type(x) or device(values) != device(x):
        return in_library_of(to_numpy(values), x)
    if values.dtype == x.dtype or not _has_fractions(x):
        return values
    with np.errstate(over="ignore"):  # infinite in a smaller dtype, which `check_range` tells of
        return namespace(x).astype(values, x.dtype)


def to_numpy(x: Any) -> np.ndarray:
    """``x`` as a dense float64 NumPy array on the host."""
    if type(x) is np.ndarray:  # nothing is asked so often
        return np.asarray(x, dtype=np.float64)
    return np.asarray(x.toarray() if sparse.issparse(x) else on_host(x), dtype=np.float64)


def on_host(x: Any) -> Any:
    """An array of another library as a NumPy array of its own dtype; anything else as it is, but for masks."""
    if not is_foreign(x):
        return unmasked(x)
    if hasattr(x, "device_entries"):
        return x.on_host()
    if hasattr(x, "__dask_graph__"):
        raise TypeError(
            "Rows of Dask are read chunk by chunk by MultiViewMixture, KernelHMM, LowRankDensity and LandmarkPCA; here "
            "rows in one place are expected: call compute() on them."
        )
    there = x.__dlpack_device__()[0] == 1  # DLPack's number for main memory
    return np.from_dlpack(x if there else to_device(x, "cpu"))


def unmasked(x: Any) -> Any:
    """A masked NumPy array with NaN where it is masked, None among what is no number; anything else as it is."""
    if not isinstance(x, np.ma.MaskedArray):
        return x
    if not np.ma.is_masked(x) or x.dtype.kind in "mM":  # dates, which are refused
        return x.data
    numbers = x.dtype.kind in "iuf"
    values = x.data.astype(np.promote_types(x.dtype, np.float32) if numbers else object)
    values[np.ma.getmaskarray(x)] = np.nan if numbers else None
    return values


def in_one_library(arrays: list[Any]) -> list[Any]:
    """The arrays, in main memory where they are of several libraries: some maps answer in NumPy whatever they get."""
    return arrays if len({is_foreign(x) for x in arrays}) == 1 else [on_host(x) for x in arrays]


def take_rows(x: Any, numbers: np.ndarray) -> Any:
    """The rows of ``x`` with these numbers, where ``x`` is."""
    if not is_foreign(x):
        return x[numbers, :]
    xp = namespace(x)
    return xp.take(x, xp.asarray(numbers, device=device(x)), axis=0)


def normal_quantile(points: Any) -> Any:
    """The standard normal quantiles of numbers in (0, 1)."""
    if hasattr(points, "erfinv"):  # PyTorch, on whatever device
        return math.sqrt(2) * (2 * points - 1).erfinv()
    return in_library_of(special.ndtri(to_numpy(points)), points)


def take_columns(x: Any, columns: list[int]) -> Any:
    """Some columns of ``x``, as a view where they are neighbours."""
    first, last = columns[0], columns[-1]
    if columns == list(range(first, last + 1)):
        return x[:, first : last + 1]
    xp = namespace(x)
    return xp.take(x, xp.asarray(columns, device=device(x)), axis=1)
