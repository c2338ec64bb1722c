"""A file opened by the reader for its kind, which is told by its content."""

from collections.abc import Sequence
from pathlib import Path

from latentviews._files import why_unreadable
from latentviews.io.binary import open_npy, open_parquet, open_zarr
from latentviews.io.fcs import open_fcs
from latentviews.io.h5ad import open_h5ad
from latentviews.io.source import InputError, Source, without_marks
from latentviews.io.text import NUMBER, open_text

MAGIC = {b"FCS": "fcs", b"PAR1": "parquet", b"\x93NUMPY": "npy", b"\x89HDF": "h5ad", b"PK\x03\x04": "zip"}
SUFFIXES = {".fcs": "fcs", ".parquet": "parquet", ".pq": "parquet", ".npy": "npy", ".h5ad": "h5ad"}


def open_source(
    path: Path,
    *,
    compensate: bool = True,
    delimiter: str | None = None,
    header: bool | None = None,
    missing: Sequence[str] = (),
) -> Source:
    """A file opened by the reader for its kind, or a sentence on why it is none that can be read.

    ``missing`` are marks of missing values: words of text files, and numbers of any.
    """
    source = _opened(path, _kind(path), compensate, delimiter, header, missing)
    numbers = [float(mark) for mark in missing if NUMBER.fullmatch(mark)]
    return without_marks(source, numbers) if numbers else source


def _opened(
    path: Path, kind: str, compensate: bool, delimiter: str | None, header: bool | None, missing: Sequence[str]
) -> Source:
    """By the reader for its kind, with the options that it knows."""
    if kind == "text":
        return open_text(path, delimiter=delimiter, header=header, missing=missing)
    if kind == "fcs":
        return open_fcs(path, compensate=compensate)
    return {"parquet": open_parquet, "npy": open_npy, "zarr": open_zarr, "h5ad": open_h5ad}[kind](path)


def _kind(path: Path) -> str:
    """What a file is by its content; a name that promises something else is an error."""
    fault = why_unreadable(path)
    if fault:
        raise InputError(fault)
    if path.is_dir():
        return "zarr"
    with open(path, "rb") as file:
        head = file.read(8)
    kind = next((kind for magic, kind in MAGIC.items() if head.startswith(magic)), "text")
    promised = SUFFIXES.get(path.suffix.lower(), kind)
    if kind != promised:
        raise InputError(f"{path} is named like a {promised} file, but its content is not that; it may be damaged.")
    if kind == "zip":
        if path.name.lower().endswith(".zarr.zip"):
            return "zarr"
        raise InputError(
            f"{path} is a zip archive, perhaps a workbook or a saved model, and no table; export the table as CSV."
        )
    return kind
