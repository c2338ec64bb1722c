"""Columns of a text or Parquet file as they are written, not as numbers."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from latentviews._sentences import warn_user
from latentviews.io.source import InputError, Source, require
from latentviews.io.text import sniff
from latentviews.io.transforms import Words

MOST = 200  # different words of a column of categories


def open_words(
    path: Path, *, delimiter: str | None = None, header: bool | None = None, missing: Sequence[str] = ()
) -> Source:
    """A file whose columns are read as words: None where a cell is empty or stands for a missing value."""
    with open(path, "rb") as file:
        parquet = file.read(4) == b"PAR1"
    return _open_parquet(path, missing) if parquet else _open_text(path, delimiter, header, missing)


def coded_columns(
    path: Path, names: Sequence[str], known: Mapping[str, Any], **written: Any
) -> dict[str, tuple[Words, np.ndarray]]:
    """Columns of words as places in their lists: those ``known``, else all words of the column in their order.

    ``written`` says how the file is, as `open_words` takes it.
    """
    source = open_words(path, **written)
    found = {}
    for name, column in zip(names, source.read(source.find(list(names), path)).T, strict=True):
        scale = known.get(name) or Words(tuple(sorted({word for word in column if word is not None})))
        if len(scale.values) > MOST:
            raise InputError(
                f"{path}, column {name!r}: it holds {len(scale.values):,} different words, more than the {MOST} that "
                "categories may have; leave it out."
            )
        codes = scale(column)
        new = sorted({word for word, code in zip(column, codes, strict=True) if word is not None and np.isnan(code)})
        if new:
            warn_user(
                f"{path}, column {name!r}: {new[0]!r:.60} was not there in the fit; such cells are taken as missing."
            )
        found[name] = scale, codes
    return found


def _open_parquet(path: Path, missing: Sequence[str]) -> Source:
    parquet, pyarrow = (require(name, "Reading Parquet files") for name in ("pyarrow.parquet", "pyarrow"))
    try:
        table = parquet.read_table(path)
    except (pyarrow.ArrowInvalid, UnicodeDecodeError, OSError) as error:
        raise InputError(f"{path} is not a whole Parquet file ({str(error).splitlines()[0]}).") from error
    return Source("parquet", list(table.column_names), lambda columns: _words(table, columns, missing))


def _open_text(path: Path, delimiter: str | None, header: bool | None, missing: Sequence[str]) -> Source:
    dialect, first, _ = sniff(path, delimiter, header, missing)
    names = [name.strip() for name in first] if dialect.header else [str(j + 1) for j in range(len(first))]

    def read(columns: list[int]) -> np.ndarray:
        pyarrow, arrow_csv = (require(name, "Reading CSV files") for name in ("pyarrow", "pyarrow.csv"))
        ids = [str(j) for j in range(len(names))]
        encoding = "utf8" if dialect.encoding.startswith("utf-8") else dialect.encoding
        skipped = dialect.skipped + dialect.header
        try:
            with pyarrow.input_stream(str(path), compression="gzip" if dialect.zipped else None) as stream:
                table = arrow_csv.read_csv(
                    stream,
                    read_options=arrow_csv.ReadOptions(column_names=ids, skip_rows=skipped, encoding=encoding),
                    parse_options=arrow_csv.ParseOptions(delimiter=dialect.delimiter),
                    convert_options=arrow_csv.ConvertOptions(
                        column_types=dict.fromkeys(ids, pyarrow.string()),
                        null_values=list(dialect.missing),
                        strings_can_be_null=True,
                    ),
                )
        except (pyarrow.ArrowInvalid, OSError) as error:
            raise InputError(f"{path} cannot be read ({str(error).splitlines()[0]}).") from error
        return _words(table, columns)

    return Source("csv", names, read)


def _words(table: Any, columns: Sequence[int], missing: Sequence[str] = ()) -> np.ndarray:
    """Columns of an Arrow table, (n, len(columns)), as strings and None."""
    values = np.empty((table.num_rows, len(columns)), dtype=object)
    for place, j in enumerate(columns):
        words = table.column(j).cast("string").to_pylist()
        values[:, place] = [None if word in missing else word for word in words] if missing else words
    return values
