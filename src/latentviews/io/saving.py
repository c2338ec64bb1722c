"""Models on disk without pickle: a zip of one JSON tree and the arrays it names. Reading one runs no code from it.

The tree is made of plain values, arrays, and the two kinds of things that this library consists of: estimators
(`BaseEstimator`: what is in ``vars``) and records (frozen dataclasses and named tuples: their fields). Each is written
with the name of its class, and only classes in the `register` are made again. A thing that occurs twice is written
once and is one thing again when read.

Format 1 wrote the module of a class beside its name; from format 2 on it is the name alone.
"""

import errno
import glob
import importlib
import io
import json
import os
import shutil
import socket
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from latentviews._files import as_path, path_to_write
from latentviews.io.model_reader import DamagedError, Reader, array_name
from latentviews.io.model_writer import SavingError, Writer

FORMAT = "latentviews model"
VERSION = 2  # raised when older releases could not read what is written
TREE = "model.json"
NO_MODELS = (str, bytes, int, float, np.ndarray)  # what parts of models may be


def save(model: Any, path: Any) -> None:
    """Write a model to one file, without pickle.

    The file is written aside and renamed, so that ``path`` holds a whole model or what it held before. Everything of
    an estimator is kept, its parameters and what it was fitted to; a loaded model predicts the same to the last bit.

    Parameters
    ----------
    model : an estimator of this library, fitted or not, or a record such as `Embedding`
    path : str or Path

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from latentviews import MultiViewMixture, load, save
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "mixture.latentviews"
    >>> save(MultiViewMixture(3), path)
    >>> load(path)
    MultiViewMixture(n_components=3)
    """
    path = path_to_write(path, "A model")
    if model is None or isinstance(model, NO_MODELS):
        raise SavingError(f"save takes an estimator or a record of latentviews; got {model!r:.60}.")
    writer = Writer()
    root = writer.encode(model, type(model).__name__)
    tree = {
        "format": FORMAT,
        "version": VERSION,
        "latentviews": _release(),
        "class": type(model).__name__,
        "objects": writer.objects,
        "root": root,
    }
    with written_aside(path) as aside, zipfile.ZipFile(aside, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_entry(TREE), json.dumps(tree, allow_nan=False))
        for number, array in enumerate(writer.arrays):
            archive.writestr(_entry(array_name(number)), _npy(array))


def load(path: Any) -> Any:
    """Read what `save` wrote.

    No code of the file can run: it holds numbers and the names of classes, of which only this library's, and a few
    feature maps of scikit-learn, are accepted.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    The estimator or record that was saved.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from latentviews import Gaussian, load, save
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "kernel.latentviews"
    >>> save(Gaussian(2.0), path)
    >>> load(path)
    Gaussian(bandwidth=2.0)
    """
    path = as_path(path)
    if path.is_dir():
        raise SavingError(f"{path} is a directory; name the model file in it.")
    if not path.exists():
        raise FileNotFoundError(errno.ENOENT, "There is no such model file", str(path))
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                tree = _read_tree(archive, path)
                return Reader(archive).decode_all(tree)
        except SavingError:
            raise
        except DamagedError as error:
            raise SavingError(f"{path} is a damaged model file: {error}.") from error
        except Exception as error:  # a damaged zip can fail anywhere on the way to its entries
            raise SavingError(f"{path} is not a model that latentviews saved, or it is cut short ({error}).") from error


@contextmanager
def written_aside(path: Path) -> Iterator[Path]:
    """A name beside ``path`` to write to; it takes the place of ``path`` at the end, or is removed where that fails.

    Where ``path`` is a link, what it leads to is replaced.
    """
    path = path.resolve() if path.is_symlink() else path
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "No such directory", str(path.parent))
    remove_leftovers(path.parent)
    aside = path.parent / name_aside(path.name)
    try:
        yield aside
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def name_aside(name: str) -> str:
    """What a file or directory is called while this process writes it."""
    return f".{name}.{socket.gethostname()}-{os.getpid()}.partial"


def remove_leftovers(directory: Path) -> None:
    """Remove what processes of this machine were writing here when they were killed."""
    here = f".{socket.gethostname()}-"
    for leftover in directory.glob(f".*{glob.escape(here)}*.partial"):
        process = leftover.name.removesuffix(".partial").rpartition(here)[2]
        if not process.isdigit() or _is_running(int(process)):
            continue
        if leftover.is_dir() and not leftover.is_symlink():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            with suppress(OSError):
                leftover.unlink()


def _is_running(process: int) -> bool:
    """Whether a process may still be at work; where that cannot be asked without harm, it may."""
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _read_tree(archive: zipfile.ZipFile, path: Path) -> dict[str, Any]:
    """The JSON tree, of a format and version that can be read."""
    if TREE not in archive.namelist():
        raise SavingError(f"{path} is a zip file, but not a model that latentviews saved: it has no {TREE}.")
    try:
        tree = json.loads(archive.read(TREE))
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"its {TREE} cannot be read ({error})") from error
    if not isinstance(tree, dict) or tree.get("format") != FORMAT:
        raise SavingError(f"{path} is a zip file, but not a model that latentviews saved: its {TREE} says otherwise.")
    version = tree.get("version")
    if type(version) is not int or version < 1:
        raise SavingError(f"{path} is no model that latentviews saved: its format must be 1, 2, …; got {version!r}.")
    if version > VERSION:
        raise SavingError(
            f"{path} was saved by latentviews {tree.get('latentviews')} in format {version}; latentviews {_release()} "
            f"reads formats up to {VERSION}. Install a newer latentviews to read it."
        )
    return tree


def _release() -> str:
    return importlib.import_module("latentviews").__version__


def _entry(name: str) -> zipfile.ZipInfo:
    """An entry without the time, so that the same model makes the same file."""
    entry = zipfile.ZipInfo(name)
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


def _npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()
