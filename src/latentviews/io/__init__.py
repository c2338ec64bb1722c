"""Tables from files: CSV and TSV (gzipped or not), Parquet, NPY, Zarr, FCS and AnnData's h5ad."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from latentviews._constants import COFACTOR, TRANSFORMS
from latentviews._files import as_path
from latentviews.io.labels import write_labels
from latentviews.io.opening import open_source
from latentviews.io.source import InputError, Source, as_columns, as_names, require
from latentviews.io.stored import StoredTable, open_table, stored_columns
from latentviews.io.transforms import Arcsinh, Logicle, Transform, Words
from latentviews.io.words import coded_columns

__all__ = [
    "Arcsinh",
    "InputError",
    "Logicle",
    "Reading",
    "StoredTable",
    "Table",
    "Words",
    "open_table",
    "read_table",
    "write_labels",
]

LARGE = 2**24  # numbers of a table that is not taken into memory where some of its rows are enough
BYTES = 8  # of a number in a text file, about


@dataclass(frozen=True, eq=False)
class Reading:
    r"""What was read of a file and how, so that another is read the same way.

    Attributes
    ----------
    columns : tuple of str
    transforms : tuple of Logicle, Arcsinh, Words or None
        One per column; None leaves it as it is.
    compensated : bool
        Whether files with a spillover matrix are compensated by it.
    missing : tuple of str
        Marks of missing values, beside empty cells and the like.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from latentviews.io import read_table
    >>> first, second = (pathlib.Path(tempfile.mkdtemp()) / name for name in ("first.csv", "second.csv"))
    >>> _ = first.write_text("a,b\n1,2\n"), second.write_text("b,c,a\n4,5,3\n")
    >>> reading = read_table(first).reading
    >>> reading.columns, read_table(second, reading=reading).values.tolist()
    (('a', 'b'), [[3.0, 4.0]])
    """

    columns: tuple[str, ...]
    transforms: tuple[Transform | None, ...]
    compensated: bool = True
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Table:
    r"""Numbers from a file.

    Attributes
    ----------
    values : array of shape (n_rows, n_columns)
        NaN where a value is missing.
    source : str
        The file's name.
    format : {"csv", "parquet", "npy", "zarr", "fcs", "h5ad"}
    reading : Reading
        How it was read.
    left_out : tuple of str
        Columns of the file that were not asked for, or hold no numbers.
    texts : tuple of str
        Those of them that hold text.
    stored : StoredTable or None
        All rows, where those in memory are some of them.
    rows : array of int or None
        The places in the file of those in memory, then.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from latentviews.io import read_table
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "cells.csv"
    >>> _ = path.write_text("CD3,CD5,donor\n1.5,2,ann\n,4,bob\n")
    >>> table = read_table(path)
    >>> table.columns, table.n_rows, table.texts
    (('CD3', 'CD5'), 2, ('donor',))
    >>> table.frame().shape
    (2, 2)
    """

    values: np.ndarray = field(repr=False)
    source: str
    format: str
    reading: Reading
    left_out: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    stored: StoredTable | None = field(default=None, repr=False)
    rows: np.ndarray | None = field(default=None, repr=False)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.reading.columns

    @property
    def n_rows(self) -> int:
        """The number of rows in the file."""
        return len(self.values) if self.stored is None else self.stored.n_rows

    @property
    def places(self) -> np.ndarray:
        """The places in the file, from zero, of the rows in memory."""
        return np.arange(len(self.values)) if self.rows is None else self.rows

    def frame(self) -> Any:
        """The table as a pandas DataFrame, which models take with its names.

        Returns
        -------
        DataFrame
        """
        return require("pandas", "A data frame").DataFrame(self.values, columns=list(self.columns), copy=False)


def read_table(
    path: Any,
    columns: Sequence[str] | None = None,
    *,
    exclude: Sequence[str] = (),
    words: Sequence[str] = (),
    reading: Reading | None = None,
    transform: str = "auto",
    cofactor: float = COFACTOR,
    compensate: bool = True,
    delimiter: str | None = None,
    header: bool | None = None,
    missing: Sequence[str] = (),
) -> Table:
    r"""Read numbers from a CSV, TSV, Parquet, NPY, Zarr, FCS or h5ad file.

    The kind is told by the content. In text, the delimiter, the header and the decimal point are found out, and gzip
    is unpacked. In FCS, channels go by their marker ($PnS, else $PnN; either may be asked for), are compensated by the
    file's spillover matrix, and fluorescence is brought to a logicle scale; time is left out unless asked for.

    Parameters
    ----------
    path : str or Path
    columns : list of names or None
        By default all that hold numbers. Columns without names are called "1", "2", …
    exclude : list of names
        Columns to leave out, where ``columns`` is None.
    words : list of names
        Columns of text that hold categories: they are read as whole numbers, places in the list of their words.
    reading : Reading or None
        ``Table.reading`` of another file, to be read the same way: its columns and scales. ``columns``, ``transform``
        and ``cofactor`` are then not looked at. A model that ``latentviews fit`` saved has it as ``reading_``.
    transform : {"auto", "logicle", "arcsinh", "none"}
        "auto" is logicle for the fluorescence of FCS files, and none for other files. Named, it goes for all columns of
        other files.
    cofactor : float
        Of arcsinh: 150 is usual for fluorescence, 5 for mass cytometry.
    compensate : bool
        Whether the spillover matrix of an FCS file is used.
    delimiter : str or None
        Of a text file; found out by default.
    header : bool or None
        Whether the first line of a text file names the columns; found out by default.
    missing : list of str
        Marks of missing values beside empty cells, NA and the like: words of text files such as "?", numbers of any.

    Returns
    -------
    Table
        With ``values``, ``columns``, and ``frame()``, which a model's ``fit`` takes.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from latentviews.io import read_table
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "cells.tsv"
    >>> _ = path.write_text("CD3\tCD5\n1.5\t2\n\t4\n")
    >>> read_table(path, ["CD5", "CD3"]).values
    array([[2. , 1.5],
           [4. , nan]])
    """
    path = as_path(path)
    if transform not in TRANSFORMS:
        raise InputError(f"transform must be one of {TRANSFORMS}; got {transform!r}.")
    missing = as_names("missing", missing)
    if reading is not None:
        columns, compensate, missing = _as_read(reading, missing)
    written: dict[str, Any] = {"delimiter": delimiter, "header": header, "missing": tuple(missing)}
    source, words = open_source(path, compensate=compensate, **written), as_names("words", words)
    chosen = _chosen(source, path, columns, exclude, words)
    names = tuple(source.names[j] for j in chosen)
    source.find(list(names), path)
    known = {} if reading is None else dict(zip(names, reading.transforms, strict=True))
    texts = [source.names[j] for j in chosen if source.names[j] in words and j in source.texts]
    texts = texts if reading is None else [name for name in names if isinstance(known[name], Words)]
    places = coded_columns(path, texts, known, **written) if texts else {}
    plain = [j for j in chosen if source.names[j] not in places]
    values = _joined(source.read(plain) if plain else np.empty((0, 0)), names, places)
    _check_finite(path, values, names)
    scales = _scales(source, names, values, transform, cofactor) if reading is None else list(reading.transforms)
    _to_scales(values, names, scales, places)
    left_out = tuple(name for name in source.names if name not in names)
    unread = tuple(source.names[j] for j in source.texts if source.names[j] in left_out)
    reading = Reading(names, tuple(scales), compensate, written["missing"])
    return Table(values, path.name, source.format, reading, left_out, unread)


def _as_read(reading: Any, missing: list[str]) -> tuple[tuple[str, ...], bool, list[str]]:
    """The columns of a reading, whether they were compensated, and its marks of missing values after others."""
    if not isinstance(reading, Reading):
        raise InputError(f"reading is the `reading` of a table that was read; got a {type(reading).__name__}.")
    return reading.columns, reading.compensated, [*missing, *(mark for mark in reading.missing if mark not in missing)]


def sample_table(
    path: Any,
    columns: Sequence[str] | None = None,
    *,
    exclude: Sequence[str] = (),
    most: int = 100_000,
    delimiter: str | None = None,
    header: bool | None = None,
    missing: Sequence[str] = (),
) -> Table | None:
    """Some rows of a table that is too large for memory, which stays in its file: one by chance of every so many.

    Parameters
    ----------
    path : str or Path
    columns : list of names or None
        By default all that hold numbers.
    exclude : list of names
        Columns to leave out, where ``columns`` is None.
    most : int, default=100_000
        Rows to take into memory.
    delimiter : str or None
        Of a text file; found out by default.
    header : bool or None
        Whether the first line of a text file names the columns; found out by default.
    missing : list of str
        Marks of missing values beside empty cells, NA and the like: words of text files such as "?", numbers of any.

    Returns
    -------
    Table or None
        With all rows as ``stored``; None where the table is small, or a file that can only be read whole.
    """
    path = as_path(path)
    source = open_source(path, delimiter=delimiter, header=header, missing=missing)
    if source.pieces is None or source.count is None:
        return None
    names = tuple(source.names[j] for j in _chosen(source, path, columns, exclude, ()))
    text = source.format == "csv"
    size = path.stat().st_size // BYTES if text else source.count() * len(names)
    if size < LARGE:
        return None
    stored = stored_columns(path, source, names)
    if stored.n_rows <= most:
        return None
    rows, found, start = _spread(stored.n_rows, most), [], 0
    for _, values in stored.raw_pieces():
        here = rows[slice(*np.searchsorted(rows, [start, start + len(values)]))]
        found.append(values[here - start])
        start += len(values)
    left_out = tuple(name for name in source.names if name not in names)
    unread = tuple(source.names[j] for j in source.texts if source.names[j] in left_out)
    reading = Reading(names, (None,) * len(names), missing=tuple(missing))
    return Table(np.concatenate(found), path.name, source.format, reading, left_out, unread, stored, rows)


def _spread(n_rows: int, most: int) -> np.ndarray:
    """Places of ``most`` rows or fewer, one in every stretch; by chance, so that no rhythm of the rows is theirs."""
    every = -(-n_rows // most)
    starts = np.arange(0, n_rows, every)
    within = np.random.default_rng(0).integers(np.minimum(every, n_rows - starts))
    return starts + within


def _chosen(
    source: Source, path: Path, columns: Sequence[str] | None, exclude: Sequence[str], words: Sequence[str]
) -> list[int]:
    """The places of the columns that are read: those named, or all that can be but for some."""
    if columns is not None:
        return source.find(as_columns(columns), path)
    usual = range(len(source.names)) if source.usual is None else source.usual
    unwanted = source.find(as_names("exclude", exclude), path)
    left = [j for j in usual if j not in unwanted]
    if not left:
        raise InputError(f"The option `exclude` leaves no column of {path}.")
    return [j for j in left if j not in source.texts or source.names[j] in words] or left


def unusable_columns(path: Any, **written: Any) -> dict[str, str]:
    """The columns of a file that cannot be read as numbers, and why; those of the same name are one.

    ``written`` says how the file is, as `open_source` takes it.
    """
    source = open_source(as_path(path), compensate=False, **written)
    found = {}
    for j, name in enumerate(source.names):
        if source.names.count(name) > 1:
            found[name] = "a name that occurs twice"
            continue
        try:
            infinite = np.flatnonzero(np.isinf(source.read([j])))
        except InputError:
            found[name] = "not numbers"
            continue
        if len(infinite):
            found[name] = f"infinite in row {infinite[0] + 1:,}"
    return found


def _joined(values: np.ndarray, names: Sequence[str], places: dict[str, tuple[Words, np.ndarray]]) -> np.ndarray:
    """Columns of numbers, and between them those of words, in the order of their names."""
    if not places:
        return values
    rest = iter(values.T)
    return np.stack([places[name][1] if name in places else next(rest) for name in names], axis=1)


def _to_scales(
    values: np.ndarray,
    names: Sequence[str],
    scales: list[Transform | None],
    places: dict[str, tuple[Words, np.ndarray]],
) -> None:
    """Bring columns to their scales in place; those of words are on theirs, which the list is told of."""
    for j, scale in enumerate(scales):
        if names[j] in places:
            scales[j] = places[names[j]][0]
        elif scale is not None:
            values[:, j] = scale(values[:, j])


def _check_finite(path: Path, values: np.ndarray, names: Sequence[str]) -> None:
    infinite = np.isinf(values)
    if infinite.any():
        row, column = np.argwhere(infinite)[0]
        raise InputError(f"{path}, row {row + 1:,}, column {names[column]!r}: the value is infinite; leave it empty.")


def _scales(
    source: Source, names: Sequence[str], values: np.ndarray, transform: str, cofactor: float
) -> list[Transform | None]:
    """A scale for every column, None where it stays as it is."""
    fcs = source.format == "fcs"
    kind = ("logicle" if fcs else "none") if transform == "auto" else transform
    if not isinstance(cofactor, int | float | np.number) or not 0 < cofactor < np.inf:
        raise InputError(f"The option `cofactor` must be positive and finite; got {cofactor!r}.")
    scales: list[Transform | None] = []
    for name, column in zip(names, values.T, strict=True):
        if kind == "none" or (fcs and name not in source.tops):
            scales.append(None)
        elif kind == "arcsinh":
            scales.append(Arcsinh(cofactor))
        else:
            top = source.tops[name] if fcs else max(float(np.nanmax(column, initial=0.0)), 1.0)
            scales.append(Logicle.for_data(column, top))
    return scales
