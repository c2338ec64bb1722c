"""Whether a file can be read at all, which the command line asks before anything else is imported."""

import os
from pathlib import Path
from typing import Any

LONGEST = 255  # bytes of a file's name, as file systems have it
ZARR_FILES = ("zarr.json", ".zarray", ".zgroup")


def as_path(path: Any, name: str = "path", what: str = "a file") -> Path:
    """A path, or a sentence on what is none."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"{name} must be the name of {what}, a string or a Path; got {path!r:.60}.")
    if "\0" in str(path):
        raise ValueError(f"{name} must be the name of {what}, which holds no null character; got {path!r:.60}.")
    if any(len(os.fsencode(part)) > LONGEST for part in Path(path).parts):
        raise ValueError(
            f"{name} must be the name of {what}, whose parts have at most {LONGEST} bytes; got {path!r:.60}."
        )
    return Path(path)


def path_to_write(path: Any, what: str) -> Path:
    """A path that a file, of labels for example, can be written to."""
    path = as_path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{what} cannot be written: {path} is a directory; name a file in it.")
    if path.exists() and not path.is_file():
        raise FileExistsError(f"{what} cannot be written: {path} is there, and no plain file; name another.")
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(f"{what} cannot be written: there is no directory {path.parent}; make it first.")
    return path


def is_zarr(path: Path) -> bool:
    """Whether a directory is a Zarr store."""
    return path.suffix == ".zarr" or any((path / name).exists() for name in ZARR_FILES)


def why_unreadable(path: Path) -> str | None:
    """A sentence on a file that is not there, or empty, or not to be read; None where it may be."""
    if path.is_dir():
        return None if is_zarr(path) else f"{path} is a directory; name a file in it."
    try:
        with open(path, "rb") as file:
            return None if file.read(1) else f"{path} is empty."
    except FileNotFoundError:
        return f"{path} does not exist."
    except OSError as error:
        return f"{path} cannot be read ({(error.strerror or str(error)).lower()})."
