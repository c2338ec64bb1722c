"""CSV and its relatives: the delimiter, the header and the decimal point are found out."""

import csv
import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from latentviews.io.binary import matrix, split_columns
from latentviews.io.source import InputError, MixedPiece, Piece, Source, numbered, require

DELIMITERS = (",", "\t", ";", "|", " ")
HEAD = 1 << 18  # characters looked at to find out how a file is written
LINES = 100
MISSING = ("", "NA", "N/A", "NaN", "nan", "NAN", "null", "NULL", "None", "-nan", "#N/A")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|infinity)", re.IGNORECASE)


@dataclass(frozen=True)
class Dialect:
    """How a text file is written."""

    encoding: str
    zipped: bool
    delimiter: str
    decimal: str
    header: bool
    skipped: int  # blank lines at the top
    missing: tuple[str, ...] = MISSING  # cells that stand for a missing value


def open_text(
    path: Path, *, delimiter: str | None = None, header: bool | None = None, missing: Sequence[str] = ()
) -> Source:
    """The columns of a delimited text file, plain or gzipped."""
    if delimiter is not None and not _is_delimiter(delimiter):
        raise InputError(f"The option `delimiter` is one character, such as ',' or a tab; got {delimiter!r}.")
    if header is not None and not (np.isscalar(header) and header in (True, False)):
        raise InputError(f"The option `header` is True, False or None; got {header!r}.")
    dialect, first, rest = sniff(path, delimiter, header, missing)
    names = [name.strip() for name in first] if dialect.header else numbered(len(first))
    usual = [j for j, name in enumerate(names) if name]  # an index that pandas or R wrote has no name
    names = [name or f"unnamed {j + 1}" for j, name in enumerate(names)]
    marks = "." if dialect.delimiter == "," else ".,"
    cells = ([row[j] for row in rest if j < len(row)] for j in range(len(first)))
    texts = [j for j, column in enumerate(cells) if _holds_text(column, marks, dialect.missing)]
    return Source(
        "csv",
        names,
        partial(_read, path, dialect, names),
        usual=usual,
        texts=texts,
        pieces=partial(_pieces, path, dialect, names),
        mixed=partial(_mixed, path, dialect, names, texts),
        count=lambda: sum(len(values) for _, values in _pieces(path, dialect, names, [0], as_text=True)),
    )


def is_number(cell: str, decimal: str = ".", missing: Sequence[str] = MISSING) -> bool:
    """Whether a cell holds a number or stands for a missing one."""
    cell = cell.strip()
    if decimal != "." and "." in cell:
        return False
    return cell in missing or NUMBER.fullmatch(cell.replace(decimal, ".")) is not None


def _holds_text(cells: list[str], marks: str, missing: Sequence[str]) -> bool:
    """Whether some cells hold something, and none of them a number with one of the decimal marks."""
    told = [cell for cell in cells if cell.strip() not in missing]
    return bool(told) and not any(is_number(cell, mark) for cell in told for mark in marks)


def sniff(
    path: Path, delimiter: str | None, header: bool | None, missing: Sequence[str] = ()
) -> tuple[Dialect, list[str], list[list[str]]]:
    """How a file is written, its first row, and some rows of data; ``missing`` are more marks of missing values."""
    encoding, zipped = _encoding(path)
    lines, whole = _first_lines(path, encoding, zipped)
    skipped = next((i for i, line in enumerate(lines) if line.strip()), None)
    if skipped is None:
        raise InputError(f"{path} is empty.")
    if any("\0" in line for line in lines):
        raise InputError(f"{path} is not text; CSV, TSV, Parquet, NPY, Zarr, FCS and h5ad files can be read.")
    lines = [line for line in lines[skipped:] if line.strip()]
    delimiter, decimal = max(_candidates(lines, delimiter), key=lambda choice: _fit(lines, *choice))
    first, *rest = csv.reader(lines, delimiter=delimiter)
    if header is None:
        header = not any(NUMBER.fullmatch(cell.strip().replace(decimal, ".")) for cell in first)
    if header and not rest and whole:
        raise InputError(f"{path} has a header and no rows.")
    dialect = Dialect(encoding, zipped, delimiter, decimal, header, skipped, (*MISSING, *missing))
    return dialect, first, rest if header else [first, *rest]


def _encoding(path: Path) -> tuple[str, bool]:
    """The encoding, and whether the file is gzipped."""
    with open(path, "rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    with _bytes(path, zipped) as file:
        head = _guarded(path, lambda: file.read(HEAD))
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16", zipped
    try:
        head.rsplit(b"\n", 1)[0].decode("utf-8")
    except UnicodeDecodeError:
        return "latin-1", zipped
    return "utf-8-sig" if head.startswith(b"\xef\xbb\xbf") else "utf-8", zipped


def _bytes(path: Path, zipped: bool) -> Any:
    return gzip.open(path) if zipped else open(path, "rb")


def _text(path: Path, encoding: str, zipped: bool) -> Any:
    opener = gzip.open if zipped else open
    return opener(path, "rt", encoding=encoding, errors="replace", newline="")


def _guarded(path: Path, read: Any) -> Any:
    try:
        return read()
    except (EOFError, OSError, zlib.error) as error:
        raise InputError(f"{path} cannot be read to its end; it may be cut short ({error}).") from error


def _first_lines(path: Path, encoding: str, zipped: bool) -> tuple[list[str], bool]:
    """The first lines that are whole, and whether they are all of the file."""
    with _text(path, encoding, zipped) as file:
        head = _guarded(path, lambda: file.read(HEAD))
    lines = head.splitlines()
    if len(head) < HEAD:
        return lines[:LINES], len(lines) <= LINES
    return lines[:-1][:LINES] or lines, False


def _candidates(lines: list[str], delimiter: str | None) -> Iterator[tuple[str, str]]:
    """Delimiters with decimal points that go with them."""
    for one in DELIMITERS if delimiter is None else (delimiter,):
        yield one, "."
        if one != "," and any("," in line for line in lines):
            yield one, ","


def _fit(lines: list[str], delimiter: str, decimal: str) -> tuple[bool, float, float, bool, int]:
    """How well a delimiter explains the lines: as many cells in each, more than one, and numbers in them."""
    rows = list(csv.reader(lines, delimiter=delimiter))
    sizes = [len(row) for row in rows]
    usual = max(set(sizes), key=sizes.count)
    cells = [cell for row in rows[1:] or rows for cell in row]
    numbers = sum(is_number(cell, decimal) and bool(cell.strip()) for cell in cells) / max(len(cells), 1)
    return usual > 1, sizes.count(usual) / len(sizes), numbers, decimal == ".", usual


def _is_delimiter(mark: Any) -> bool:
    return isinstance(mark, str) and len(mark) == 1 and mark.isascii() and mark not in '"\n\r\0'


def _options(dialect: Dialect, names: list[str], columns: list[int], kind: Any) -> dict[str, Any]:
    """How Arrow is to read some columns."""
    arrow_csv = require("pyarrow.csv", "Reading CSV files")
    ids = [str(j) for j in range(len(names))]  # names may occur twice
    wanted = [ids[j] for j in columns]
    return {
        "read_options": arrow_csv.ReadOptions(
            column_names=ids,
            skip_rows=dialect.skipped + dialect.header,
            encoding="utf8" if dialect.encoding.startswith("utf-8") else dialect.encoding,
        ),
        "parse_options": arrow_csv.ParseOptions(delimiter=dialect.delimiter),
        "convert_options": arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(wanted, kind),
            include_columns=wanted,
            null_values=list(dialect.missing),
            decimal_point=dialect.decimal,
        ),
    }


def _read(path: Path, dialect: Dialect, names: list[str], columns: list[int]) -> np.ndarray:
    """Some columns as numbers; where that fails, a second look finds the row and column."""
    pyarrow = require("pyarrow", "Reading CSV files")
    arrow_csv = require("pyarrow.csv", "Reading CSV files")
    try:
        with pyarrow.input_stream(str(path), compression="gzip" if dialect.zipped else None) as stream:
            values = matrix(arrow_csv.read_csv(stream, **_options(dialect, names, columns, pyarrow.float64())))
    except (pyarrow.ArrowInvalid, OSError) as error:
        _blame(path, dialect, names, columns)
        raise InputError(f"{path} cannot be read ({str(error).splitlines()[0]}).") from error
    if not len(values):
        raise InputError(f"{path} has a header and no rows.")
    return values


def _pieces(
    path: Path, dialect: Dialect, names: list[str], columns: list[int], *, as_text: bool = False
) -> Iterator[Piece]:
    """Some columns as numbers, some lines at a time; ``as_text`` leaves the values unread, to count rows."""
    pyarrow = require("pyarrow", "Reading CSV files")
    arrow_csv = require("pyarrow.csv", "Reading CSV files")
    options = _options(dialect, names, columns, pyarrow.string() if as_text else pyarrow.float64())
    seen = 0
    try:
        with pyarrow.input_stream(str(path), compression="gzip" if dialect.zipped else None) as stream:
            for batch in arrow_csv.open_csv(stream, **options):
                table = pyarrow.Table.from_batches([batch])
                values = np.empty((table.num_rows, 0)) if as_text else matrix(table)
                yield f"rows {seen + 1:,} to {seen + len(values):,}", values
                seen += len(values)
    except (pyarrow.ArrowInvalid, OSError) as error:
        _blame(path, dialect, names, columns)
        raise InputError(f"{path} cannot be read ({str(error).splitlines()[0]}).") from error


def _mixed(
    path: Path, dialect: Dialect, names: list[str], texts: list[int], columns: list[int]
) -> Iterator[MixedPiece]:
    """Some columns, texts among them, some lines at a time."""
    pyarrow = require("pyarrow", "Reading CSV files")
    arrow_csv = require("pyarrow.csv", "Reading CSV files")
    options = _options(dialect, names, columns, pyarrow.float64())
    options["convert_options"].column_types = {
        str(j): pyarrow.string() if j in texts else pyarrow.float64() for j in columns
    }
    options["convert_options"].strings_can_be_null = True
    seen = 0
    try:
        with pyarrow.input_stream(str(path), compression="gzip" if dialect.zipped else None) as stream:
            for batch in arrow_csv.open_csv(stream, **options):
                found = split_columns(batch, [j in texts for j in columns], [str(j) for j in columns])
                yield f"rows {seen + 1:,} to {seen + batch.num_rows:,}", found
                seen += batch.num_rows
    except (pyarrow.ArrowInvalid, OSError) as error:
        _blame(path, dialect, names, [j for j in columns if j not in texts])
        raise InputError(f"{path} cannot be read ({str(error).splitlines()[0]}).") from error


def _blame(path: Path, dialect: Dialect, names: list[str], columns: list[int]) -> None:
    """Raise for the first row that has too many or too few cells, or a cell that is no number."""
    with _text(path, dialect.encoding, dialect.zipped) as file:
        reader = csv.reader(file, delimiter=dialect.delimiter)
        rows = (row for row in reader if row)
        if dialect.header:
            next(rows)
        for number in _counting(path, rows):
            row, place = number[1], f"{path}, row {number[0]:,} (line {reader.line_num:,})"
            if len(row) != len(names):
                raise InputError(
                    f"{place}: it has {len(row)} cells where {len(names)} were expected. Is the delimiter "
                    f"{dialect.delimiter!r}? The option `delimiter` sets another."
                )
            for j in columns:
                if not is_number(row[j], dialect.decimal, dialect.missing):
                    raise InputError(_not_a_number(place, names, j, row[j], number[0], dialect))


def _counting(path: Path, rows: Iterator[list[str]]) -> Iterator[tuple[int, list[str]]]:
    """Rows and their numbers, from 1."""
    number = 0
    while (row := _guarded(path, lambda: next(rows, None))) is not None:
        number += 1
        yield number, row


def _not_a_number(place: str, names: list[str], j: int, cell: str, number: int, dialect: Dialect) -> str:
    other = "." if dialect.decimal == "," else ","
    if dialect.delimiter != other and is_number(cell, other):
        return (
            f"{place}, column {names[j]!r:.80}: {cell.strip()!r:.60} has the decimal mark {other!r}, and other numbers "
            f"of the file {dialect.decimal!r}; write all with one mark."
        )
    hint = " If the first line is a header, set the option `header`." if number == 1 and not dialect.header else ""
    if len(names) == 1:
        hint = " It is the only column: if the delimiter is another one, set the option `delimiter`."
    return (
        f"{place}, column {names[j]!r:.80}: {cell.strip()!r:.60} is not a number; a missing value is an empty cell, "
        f"NA, or what the option `missing` says, and the option `columns` names the columns to use.{hint}"
    )
