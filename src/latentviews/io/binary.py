"""Parquet, NPY and Zarr."""

import contextlib
import mmap
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from latentviews._sentences import warn_user
from latentviews.io.source import InputError, MixedPiece, Piece, Source, at_once, numbered, require

ROWS = 65_536  # read at a time where a format gives rows rather than columns


def _parquet_file(path: Path) -> tuple[Callable[[], Any], Any, Any]:
    """How to open a Parquet file whose row groups hold as many rows as it says, its metadata, and its schema.

    A file that is open keeps what was read of it: of many, each is opened where it is read.
    """
    parquet = require("pyarrow.parquet", "Reading Parquet files")
    pyarrow = require("pyarrow", "Reading Parquet files")
    try:
        file = parquet.ParquetFile(path)
        schema = file.schema_arrow
    except (pyarrow.ArrowInvalid, UnicodeDecodeError, OSError) as error:  # a name may be no text
        raise InputError(f"{path} is not a whole Parquet file; it may be cut short ({_first_line(error)}).") from error
    n_rows = file.metadata.num_rows
    held = sum(file.metadata.row_group(group).num_rows for group in range(file.num_row_groups))
    if held != n_rows:
        raise InputError(
            f"{path} is damaged: it says that it holds {n_rows:,} rows, its row groups {held:,}. Write it again."
        )
    return partial(parquet.ParquetFile, path, metadata=file.metadata), file.metadata, schema


def open_parquet(path: Path) -> Source:
    """The columns of a Parquet file; only those wanted are read."""
    pyarrow, (opened, metadata, schema) = require("pyarrow", "Reading Parquet files"), _parquet_file(path)
    hidden = {"__index_level_0__"}  # what pandas writes an unnamed index as
    usual = [j for j, name in enumerate(schema.names) if name not in hidden]

    def wanted(columns: list[int]) -> list[str]:
        for j in columns:
            if not _is_number(schema.field(j).type):
                raise InputError(f"{path}, column {schema.names[j]!r}: it holds {schema.field(j).type}, not numbers.")
        return [schema.names[j] for j in columns]

    def read(columns: list[int]) -> np.ndarray:
        names = wanted(columns)
        try:
            return matrix(opened().read(names))
        except (pyarrow.ArrowInvalid, OSError) as error:
            raise InputError(f"{path} cannot be read to its end ({_first_line(error)}).") from error

    in_groups = partial(_row_groups, path, opened, metadata.num_row_groups)
    texts = [j for j, one in enumerate(schema) if not _is_number(one.type)]

    def pieces(columns: list[int]) -> Iterator[Piece]:
        return in_groups(wanted(columns), lambda batch: matrix(pyarrow.Table.from_batches([batch])))

    def mixed(columns: list[int]) -> Iterator[MixedPiece]:
        names, flags = [schema.names[j] for j in columns], [j in texts for j in columns]
        return in_groups(names, lambda batch: split_columns(batch, flags, names))

    def count() -> int:
        return int(metadata.num_rows)

    names = list(schema.names)
    return Source("parquet", names, read, usual=usual, texts=texts, pieces=pieces, mixed=mixed, count=count)


def _row_groups(
    path: Path, opened: Callable[[], Any], n_groups: int, names: list[str], made_of: Callable[[Any], Any]
) -> Iterator[tuple[str, Any]]:
    """What is made of a Parquet file's columns of these names, a part of a row group at a time, and where it is."""
    pyarrow = require("pyarrow", "Reading Parquet files")
    for group in range(n_groups):
        place = f"row group {group + 1:,} of {n_groups:,}"
        try:
            for batch in opened().iter_batches(
                at_once(len(names)), row_groups=[group], columns=names, use_threads=False
            ):
                yield place, made_of(batch)
        except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError, OSError) as error:
            raise InputError(f"{path}, {place}: it cannot be read to its end ({_first_line(error)}).") from error


def split_columns(batch: Any, texts: list[bool], names: list[str]) -> list[np.ndarray]:
    """The columns of Arrow's batch with these names: texts as strings and None, others as numbers, NaN for missing."""
    found = []
    for name, text in zip(names, texts, strict=True):
        column = batch.column(name)
        if text:
            found.append(np.array(column.cast("string").to_pylist(), dtype=object))
        else:
            found.append(column.cast("double", safe=False).to_numpy(zero_copy_only=False))
    return found


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
    return mapped_source(path, array)


def mapped_source(path: Any, array: np.ndarray) -> Source:
    """A 2-D array in memory or mapped there; of a map, no more pages stay in memory than a piece has."""
    _check_shape(path, array)

    def pieces(columns: list[int]) -> Iterator[Piece]:
        step = at_once(array.shape[1])
        for start in range(0, len(array), step):
            part = np.asarray(array[start : start + step])
            values = _floats(part[:, columns])
            yield _rows(start, len(part)), values
            del part
            _forget(array)

    def read(columns: list[int]) -> np.ndarray:
        return array[:, columns].astype(float)

    return Source("npy", numbered(array.shape[1]), read, pieces=pieces, count=lambda: len(array))


def _rows(start: int, count: int) -> str:
    """Rows as a place in a file, counted from one."""
    return f"rows {start + 1:,} to {start + count:,}"


def _floats(values: np.ndarray) -> np.ndarray:
    """The values in floats of 32 or 64 bits."""
    return np.asarray(values, dtype=values.dtype if values.dtype in (np.float32, np.float64) else np.float64)


def _forget(array: Any) -> None:
    """Give the pages of a memory map back; they are read again when they are asked for."""
    mapped = getattr(array, "_mmap", None)
    if mapped is not None and getattr(array, "mode", "c") != "c":  # a copy on write would lose what was written
        with contextlib.suppress(AttributeError, OSError, ValueError):  # where the system cannot
            mapped.madvise(mmap.MADV_DONTNEED)


def open_zarr(path: Path) -> Source:
    """A 2-D Zarr array, or the only one of a group; its attribute ``columns`` may name the columns."""
    zarr = require("zarr", "Reading Zarr arrays")
    try:
        found = zarr.open(path, mode="r")
    except Exception as error:  # many kinds, none of them documented
        raise InputError(f"{path} cannot be read as Zarr ({_first_line(error)}).") from error
    return zarr_source(path, found if isinstance(found, zarr.Array) else _only_table(path, found))


def zarr_source(path: Any, array: Any) -> Source:
    """The columns of a 2-D Zarr array."""
    _check_shape(path, array)
    names = array.attrs.get("columns")
    names = list(map(str, names)) if isinstance(names, list) else numbered(array.shape[1])
    if len(names) != array.shape[1]:
        raise InputError(f"{path} names {len(names)} columns, but its array has {array.shape[1]}.")

    def pieces(columns: list[int]) -> Iterator[Piece]:
        _tell_of_absent_chunks(path, array)
        chunk = array.chunks[0]
        step = max(at_once(array.shape[1]) // chunk, 1) * chunk  # no chunk is unpacked twice
        for start in range(0, array.shape[0], step):
            place = _rows(start, min(step, array.shape[0] - start))
            try:
                part = np.asarray(array[start : start + step])
            except Exception as error:  # many kinds, none of them documented
                raise InputError(
                    f"{path}, {place}: a chunk cannot be read; it may be damaged ({_first_line(error)})."
                ) from error
            yield place, _floats(part[:, columns])

    def read(columns: list[int]) -> np.ndarray:
        values, start = np.empty((array.shape[0], len(columns))), 0
        for _, part in pieces(columns):
            values[start : start + len(part)] = part
            start += len(part)
        return values

    return Source("zarr", names, read, pieces=pieces, count=lambda: int(array.shape[0]))


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
