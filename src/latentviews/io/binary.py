"""Parquet, NPY and Zarr."""

from pathlib import Path
from typing import Any

import numpy as np

from latentviews._validation import warn_user
from latentviews.io.source import InputError, Source, numbered, require

ROWS = 65_536  # read at a time where a format gives rows rather than columns


def open_parquet(path: Path) -> Source:
    """The columns of a Parquet file; only those wanted are read."""
    parquet = require("pyarrow.parquet", "Reading Parquet files")
    pyarrow = require("pyarrow", "Reading Parquet files")
    try:
        file = parquet.ParquetFile(path)
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise InputError(f"{path} is not a whole Parquet file; it may be cut short ({_first_line(error)}).") from error
    schema = file.schema_arrow
    hidden = {"__index_level_0__"}  # what pandas writes an unnamed index as
    usual = [j for j, name in enumerate(schema.names) if name not in hidden]

    def read(columns: list[int]) -> np.ndarray:
        for j in columns:
            if not _is_number(schema.field(j).type):
                raise InputError(f"{path}, column {schema.names[j]!r}: it holds {schema.field(j).type}, not numbers.")
        try:
            return matrix(file.read([schema.names[j] for j in columns]))
        except (pyarrow.ArrowInvalid, OSError) as error:
            raise InputError(f"{path} cannot be read to its end ({_first_line(error)}).") from error

    texts = [j for j, one in enumerate(schema) if not _is_number(one.type)]
    return Source("parquet", list(schema.names), read, usual=usual, texts=texts)


def matrix(table: Any) -> np.ndarray:
    """An Arrow table of numbers as rows, NaN where a value is missing."""
    values = np.empty((table.num_rows, table.num_columns))
    for j, column in enumerate(table.itercolumns()):
        values[:, j] = column.cast("double", safe=False).to_numpy()
    return values


def _is_number(kind: Any) -> bool:
    types = require("pyarrow.types", "Reading Parquet files")
    tests = types.is_integer, types.is_floating, types.is_decimal, types.is_boolean
    return any(test(kind) for test in tests)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")


def open_npy(path: Path) -> Source:
    """A 2-D array that `numpy.save` wrote; its columns are called 1, 2 and so on."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # its header is a Python literal, so that damage can fail anywhere in a parser
        reason = _first_line(error)
        raise InputError(f"{path} is not a whole NPY file of numbers; it may be cut short ({reason}).") from error
    _check_shape(path, array)
    return Source("npy", numbered(array.shape[1]), lambda columns: array[:, columns].astype(float))


def open_zarr(path: Path) -> Source:
    """A 2-D Zarr array, or the only one of a group; its attribute ``columns`` may name the columns."""
    zarr = require("zarr", "Reading Zarr arrays")
    try:
        found = zarr.open(path, mode="r")
    except Exception as error:  # many kinds, none of them documented
        raise InputError(f"{path} cannot be read as Zarr ({_first_line(error)}).") from error
    array = found if isinstance(found, zarr.Array) else _only_table(path, found)
    _check_shape(path, array)
    names = array.attrs.get("columns")
    names = list(map(str, names)) if isinstance(names, list) else numbered(array.shape[1])
    if len(names) != array.shape[1]:
        raise InputError(f"{path} names {len(names)} columns, but its array has {array.shape[1]}.")

    def read(columns: list[int]) -> np.ndarray:
        _tell_of_absent_chunks(path, array)
        values = np.empty((array.shape[0], len(columns)))
        for start in range(0, len(values), ROWS):
            try:
                values[start : start + ROWS] = np.asarray(array[start : start + ROWS])[:, columns]
            except Exception as error:  # many kinds, none of them documented
                rows = f"rows {start + 1:,} to {min(start + ROWS, len(values)):,}"
                raise InputError(
                    f"{path}, {rows}: a chunk cannot be read; it may be damaged ({_first_line(error)})."
                ) from error
        return values

    return Source("zarr", names, read)


def _tell_of_absent_chunks(path: Path, array: Any) -> None:
    """A warning where chunks are not in the store: Zarr leaves out those of one value, and so does a broken copy."""
    absent = array.nchunks - array.nchunks_initialized
    if absent > 0:
        warn_user(
            f"{path} lacks {absent:,} of its {array.nchunks:,} chunks, whose values are read as {array.fill_value}: "
            "right if they hold nothing else, since Zarr leaves such chunks out; else files of the store are lost."
        )


def _only_table(path: Path, group: Any) -> Any:
    tables = {name: array for name, array in group.arrays() if array.ndim == 2}
    if len(tables) != 1:
        raise InputError(f"{path} is a Zarr group with {len(tables)} 2-D arrays; name one of them: {sorted(tables)}.")
    return next(iter(tables.values()))


def _check_shape(path: Path, array: Any) -> None:
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise InputError(
            f"{path} needs a 2-D array of numbers, a row an object; it holds shape {array.shape} of {array.dtype}."
        )
    if not array.shape[0]:
        raise InputError(f"{path} has no rows.")
