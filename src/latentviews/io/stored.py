"""Tables that stay in their files: read a piece at a time, as often as they are asked for."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from latentviews._files import as_path
from latentviews.io.binary import mapped_source, zarr_source
from latentviews.io.opening import open_source
from latentviews.io.source import InputError, Source, as_columns, as_names, numbered, require

BIG = 2**26  # bytes of a memory map that is not taken for an array in memory
KINDS = {".parquet", ".pq", ".npy", ".csv", ".tsv", ".gz", ".txt"}  # files of a folder that are parts of one table


class _StoredFile(NamedTuple):
    """A file of a table, and the places of the columns that are wanted."""

    path: Any
    source: Source
    columns: list[int]


class StoredTable:
    r"""Rows in files, of which a piece at a time is in memory; models take it in place of an array.

    It is an iterable of batches that can be read more than once, and knows how many rows there are. `open_table` makes
    one.

    Attributes
    ----------
    files : tuple
        Every file, and where the columns are in it.
    names : tuple of str
        The columns.
    named : bool
        Whether pieces are data frames, with these names.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from latentviews.io import open_table
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.csv"
    >>> _ = path.write_text("a,b\n1,2\n3,4\n")
    >>> rows = open_table(path)
    >>> rows.n_rows, rows.names, [len(piece) for piece in rows.only(["b"])]
    (2, ('a', 'b'), [2])
    """

    def __init__(self, files: Sequence[_StoredFile], names: Sequence[str], *, named: bool = False):
        self.files = tuple(files)
        self.names = tuple(names)
        first = self.files[0].source
        self.named = named or first.names != numbered(len(first.names))

    @cached_property
    def n_rows(self) -> int:
        """The number of rows; a text file is read through for it, once."""
        return sum(file.source.count() for file in self.files if file.source.count is not None)

    @property
    def label(self) -> str:
        """What sentences call it."""
        first = Path(str(self.files[0].path)).name
        return first if len(self.files) == 1 else f"{first} and {len(self.files) - 1} more files"

    def only(self, names: Sequence[str]) -> "StoredTable":
        """The same with some of the columns, by name.

        Parameters
        ----------
        names : list of str

        Returns
        -------
        StoredTable
        """
        files = [file._replace(columns=file.source.find(list(names), file.path)) for file in self.files]
        return StoredTable(files, names, named=self.named)

    def placed(self) -> Iterator[tuple[str, Any]]:
        """Every piece of the rows, and the place where they stand: the file, and rows or a row group of it.

        Returns
        -------
        iterator of tuples of str and array, or DataFrame where columns have names
        """
        if not self.has_texts:
            return ((where, self.frame_of(values)) for where, values in self.raw_pieces())
        return self._mixed_pieces()

    @property
    def has_texts(self) -> bool:
        """Whether some of the columns hold text, which models take for categories."""
        return any(j in file.source.texts for file in self.files for j in file.columns)

    def _mixed_pieces(self) -> Iterator[tuple[str, Any]]:
        pandas = require("pandas", "A file with text")
        for path, source, columns in self.files:
            if source.mixed is None:
                raise InputError(f"{path} is a file of kind {source.format}, of which columns of text cannot be read.")
            numbers = [place for place, j in enumerate(columns) if j not in source.texts]
            for place, values in source.mixed(columns):
                where = f"{path}, {place}"
                for j in numbers:
                    self._check_finite(where, values[j][:, None], [self.names[j]])
                yield where, pandas.DataFrame(dict(zip(self.names, values, strict=True)), copy=False)

    def raw_pieces(self) -> Iterator[tuple[str, np.ndarray]]:
        """Every piece of the rows as an array, and the place where they stand.

        Yields
        ------
        tuple of str and array
        """
        for path, source, columns in self.files:
            assert source.pieces is not None
            for place, values in source.pieces(columns):
                where = f"{path}, {place}"
                self._check_finite(where, values, self.names)
                yield where, values

    def __iter__(self) -> Iterator[Any]:
        return (rows for _, rows in self.placed())

    def frame_of(self, values: np.ndarray) -> Any:
        """Rows of these columns as a DataFrame, where columns have names.

        Parameters
        ----------
        values : array

        Returns
        -------
        array or DataFrame
        """
        if not self.named:
            return values
        return require("pandas", "A file with names of columns").DataFrame(values, columns=list(self.names), copy=False)

    def _check_finite(self, where: str, values: np.ndarray, names: Sequence[str]) -> None:
        with np.errstate(all="ignore"):
            suspect = not np.isfinite(values.sum())  # no table of flags where all is well
        if suspect and np.isinf(values).any():
            row, column = np.argwhere(np.isinf(values))[0]
            raise InputError(
                f"{where}, column {names[column]!r}: the value in row {row + 1:,} of these is infinite; leave it empty."
            )


def open_table(
    path: Any,
    columns: Sequence[str] | None = None,
    *,
    exclude: Sequence[str] = (),
    delimiter: str | None = None,
    header: bool | None = None,
) -> StoredTable:
    """Open a table that may be larger than memory: CSV, TSV, Parquet, NPY or Zarr, in one file or several.

    ``fit`` opens a path by itself; this is for those who want some of the columns.

    Parameters
    ----------
    path : str, Path, list of them, or what another library has opened
        A file, a folder whose files are parts of one table, or a list of files in their order; a memory map, a
        `zarr.Array`, or a `pyarrow.dataset.Dataset` of Parquet files.
    columns : list of names or None
        By default all, which must then hold numbers; of CSV and Parquet files columns of text may be named, which
        models take for categories. Columns without names are called "1", "2", …
    exclude : list of names
        Columns to leave out, where ``columns`` is None.
    delimiter : str or None
        Of text files; found out by default.
    header : bool or None
        Whether the first line of a text file names the columns; found out by default.

    Returns
    -------
    StoredTable

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from latentviews import MultiViewMixture
    >>> from latentviews.datasets import make_multiview
    >>> from latentviews.io import open_table
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.npy"
    >>> np.save(path, make_multiview(5000, 3, random_state=0).X)
    >>> open_table(path).n_rows
    5000
    >>> MultiViewMixture(3, random_state=0).fit(path).weights_.round(2)
    array([0.5 , 0.33, 0.17])
    """
    opened = [(where, source) for where, source in _sources(path, delimiter, header)]
    first, source = opened[0]
    names = _all_names(first, source, exclude) if columns is None else as_columns(columns)
    files = [_StoredFile(where, one, _places(where, one, names, columns, opened[0])) for where, one in opened]
    table = StoredTable(files, names)
    if not table.n_rows:
        raise InputError(f"{table.label} has no rows.")
    return table


def stored_columns(path: Path, source: Source, names: Sequence[str]) -> StoredTable:
    """Some columns of a file that was opened; those without names are called by their numbers."""
    table = StoredTable([_StoredFile(path, source, source.find(list(names), path))], names, named=True)
    if not table.n_rows:
        raise InputError(f"{table.label} has no rows.")
    return table


def is_stored(X: Any) -> bool:
    """Whether ``X`` names or is something in files: a path, a table that was opened, a Zarr array, an Arrow dataset."""
    if isinstance(X, list | tuple):
        return bool(X) and all(isinstance(file, str | Path) for file in X)
    return isinstance(X, str | Path | StoredTable) or _library(X) == "zarr" or _is_dataset(X)


def is_big_map(X: Any) -> bool:
    """Whether ``X`` is a memory map of a table of numbers that is not to be taken into memory."""
    mapped = isinstance(X, np.memmap) and X.ndim == 2 and X.dtype.kind in "biuf"
    return mapped and X.nbytes >= BIG


def as_stored(X: Any) -> StoredTable:
    """What `is_stored` says yes to, opened."""
    return X if isinstance(X, StoredTable) else open_table(X)


def _library(X: Any) -> str:
    return type(X).__module__.partition(".")[0]


def _is_dataset(X: Any) -> bool:
    return _library(X) == "pyarrow" and hasattr(X, "files")


def _sources(path: Any, delimiter: str | None, header: bool | None) -> Iterator[tuple[Any, Source]]:
    """Every file of a table, opened."""
    if isinstance(path, np.ndarray):
        yield getattr(path, "filename", None) or "the array", mapped_source("the array", path)
    elif _library(path) == "zarr":
        yield "the Zarr array", zarr_source("the Zarr array", path)
    else:
        for file in _paths(path):
            source = open_source(file, delimiter=delimiter, header=header)
            if source.pieces is None:
                raise InputError(
                    f"{file} is a file of kind {source.format}, whose scales are read off all of it: "
                    "fit(read_table(path).frame())."
                )
            yield file, source


def _paths(path: Any) -> list[Path]:
    """The files of a table in their order."""
    if _is_dataset(path):
        return [Path(file) for file in path.files]
    if isinstance(path, list | tuple):
        if not path:
            raise InputError("The list of files is empty; at least one is needed.")
        return [file for one in path for file in _paths(one)]
    if not isinstance(path, str | Path):
        raise InputError(f"A table is opened by its path, or a list of paths; got {type(path).__name__}.")
    path = as_path(path)
    parts = sorted(file for file in path.rglob("*") if _is_part(file, path)) if _is_plain_folder(path) else [path]
    if not parts:
        raise InputError(f"{path} is a directory without a Parquet, NPY or text file.")
    return parts


def _is_plain_folder(path: Path) -> bool:
    stores = (path / name for name in ("zarr.json", ".zarray", ".zgroup"))
    return path.is_dir() and path.suffix != ".zarr" and not any(store.exists() for store in stores)


def _is_part(file: Path, folder: Path) -> bool:
    """Whether a file of a folder is a part of its table: such as start with _ or . are notes of who wrote it."""
    inside = file.relative_to(folder).parts
    return file.is_file() and file.suffix.lower() in KINDS and not any(name[0] in "_." for name in inside)


def _all_names(path: Any, source: Source, exclude: Sequence[str]) -> list[str]:
    """The columns that are read if none are named, or a sentence on those that hold text."""
    unwanted = source.find(as_names("exclude", exclude), path)
    usual = range(len(source.names)) if source.usual is None else source.usual
    left = [j for j in usual if j not in unwanted]
    texts = [source.names[j] for j in left if j in source.texts]
    if texts:
        raise InputError(
            f"{path} has text in {', '.join(map(repr, texts))}; name the columns to use, "
            "open_table(path, columns=[...]), or those to leave out, exclude=[...]."
        )
    if not left:
        raise InputError(f"The option `exclude` leaves no column of {path}.")
    return [source.names[j] for j in left]


def _places(
    path: Any, source: Source, names: list[str], columns: Sequence[str] | None, first: tuple[Any, Source]
) -> list[int]:
    """The places of the columns in a file; where files differ in them, a sentence."""
    if columns is None and set(source.names) != set(first[1].names):
        differ = sorted(set(source.names) ^ set(first[1].names))
        raise InputError(
            f"{path} has not the columns of {first[0]}: {', '.join(map(repr, differ))} "
            f"{'is' if len(differ) == 1 else 'are'} in one of them alone. The files of a table need the same columns; "
            "name those to use, open_table(path, columns=[...])."
        )
    return source.find(names, path)
