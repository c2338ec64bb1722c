"""AnnData's .h5ad files: variables in, labels back into the observations.

The layout is AnnData's on-disk format; files are read and written with h5py, and only the parts that are needed.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from latentviews.io.binary import ROWS
from latentviews.io.h5ad_probe import DAMAGED
from latentviews.io.source import InputError, Source, require

PREFIX = "latentviews_"
PROBE = Path(__file__).with_name("h5ad_probe.py")
NO_END = "is damaged: the HDF5 library finds no end in it, or fails on it. Write it again."
PATIENCE = 120  # seconds for the structure of a file, without its numbers, however slow the disk


def open_h5ad(path: Path) -> Source:
    """The variables of ``X``, dense or sparse, by their names."""
    h5py = require("h5py", "Reading AnnData files")
    _check_ends(path)
    try:
        with h5py.File(path) as file:
            missing = [part for part in ("X", "obs", "var") if part not in file]
            if missing or not isinstance(file["var"], h5py.Group):
                raise InputError(
                    f"{path} is an HDF5 file, but not of AnnData's layout; write it with AnnData 0.7 or newer."
                )
            names = [str(name) for name in _strings(file["var"][file["var"].attrs["_index"]])]
            n_rows, n_columns = _shape(file["X"])
            n_names = _observations(file["obs"])
    except InputError:
        raise
    except Exception as error:  # damage can fail anywhere in HDF5
        raise InputError(f"{path} is not a whole AnnData file; it may be cut short ({error}).") from error
    if n_columns != len(names):
        raise InputError(
            f"{path} is damaged: X has {n_columns:,} columns for {len(names):,} variables. Write it again."
        )
    if n_names not in (None, n_rows):
        raise InputError(f"{path} is damaged: X has {n_rows:,} rows for {n_names:,} observations. Write it again.")
    if not n_rows:
        raise InputError(f"{path} holds no observations.")

    def read(columns: list[int]) -> np.ndarray:
        try:
            with h5py.File(path) as file:
                return _columns(file["X"], columns)
        except InputError as error:
            raise InputError(f"{path} is damaged: {error} Write it again.") from error
        except Exception as error:  # damage can fail anywhere in HDF5
            raise InputError(f"{path} cannot be read to its end; it may be damaged ({error}).") from error

    return Source("h5ad", names, read)


def _check_ends(path: Path) -> None:
    """A sentence where the HDF5 library would not come back from a damaged file: another process tries first."""
    try:
        look = subprocess.run([sys.executable, PROBE, path], capture_output=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired as error:
        raise InputError(f"{path} {NO_END}") from error
    except OSError:  # no process can be started here
        return
    if look.returncode < 0:
        raise InputError(f"{path} {NO_END}")
    if look.returncode == DAMAGED:
        why = look.stderr.decode(errors="replace").strip()
        raise InputError(f"{path} is not a whole AnnData file; it may be cut short ({why}).")


def write_labels(
    source: Path, path: Path, labels: np.ndarray, posteriors: np.ndarray, noise: np.ndarray | None = None
) -> None:
    """A copy of ``source`` with the class and posteriors of every observation in ``obs``; noise has no category."""
    h5py = require("h5py", "Writing AnnData files")
    shutil.copyfile(source, path)
    with h5py.File(path, "r+") as file:
        obs = file["obs"]
        added = {PREFIX + "class": None} | {f"{PREFIX}p{h}": column for h, column in enumerate(posteriors.T)}
        added |= {} if noise is None else {PREFIX + "p_noise": noise}
        for name in [name for name in obs if name.startswith(PREFIX)]:
            del obs[name]
        for name, column in added.items():
            if column is None:
                _write_categorical(obs.create_group(name), labels, posteriors.shape[1], h5py.string_dtype())
            else:
                _mark(obs.create_dataset(name, data=column), "array")
        kept = [name for name in _strings(obs.attrs["column-order"]) if not name.startswith(PREFIX)]
        obs.attrs["column-order"] = np.array([*kept, *added], dtype=h5py.string_dtype())


def _write_categorical(group: Any, labels: np.ndarray, k: int, text: Any) -> None:
    _mark(group, "categorical")
    group.attrs["ordered"] = False
    _mark(group.create_dataset("codes", data=labels.astype(np.int16)), "array")
    _mark(group.create_dataset("categories", data=[str(h) for h in range(k)], dtype=text), "string-array")


def _mark(node: Any, encoding: str) -> None:
    node.attrs["encoding-type"], node.attrs["encoding-version"] = encoding, "0.2.0"


def _strings(values: Any) -> list[str]:
    return [value.decode() if isinstance(value, bytes) else str(value) for value in values[:]]


def _shape(node: Any) -> tuple[int, int]:
    return tuple(node.shape if hasattr(node, "shape") else node.attrs["shape"])


def _observations(obs: Any) -> int | None:
    """How many observations have a name; None where the layout is older than these."""
    name = getattr(obs, "attrs", {}).get("_index")
    index = obs.get(name) if isinstance(name, str) and hasattr(obs, "get") else None
    return int(index.shape[0]) if index is not None and hasattr(index, "shape") else None


def _columns(node: Any, columns: list[int]) -> np.ndarray:
    """Some columns of a dense, CSR or CSC matrix, a block of rows or a column at a time."""
    n_rows, n_columns = _shape(node)
    values = np.empty((n_rows, len(columns)))
    if hasattr(node, "dtype"):
        for start in range(0, n_rows, ROWS):
            values[start : start + ROWS] = node[start : start + ROWS][:, columns]
        return values
    by_column = node.attrs["encoding-type"] == "csc_matrix"
    starts = _starts(node, n_columns if by_column else n_rows)
    if by_column:
        values[:] = 0.0
        for place, j in enumerate(columns):
            part = slice(starts[j], starts[j + 1])
            values[_places(node, part, n_rows), place] = node["data"][part]
        return values
    from scipy import sparse  # for these files alone

    for start in range(0, n_rows, ROWS):
        ends = starts[start : start + ROWS + 1]
        part = slice(ends[0], ends[-1])
        block = (node["data"][part], _places(node, part, n_columns), ends - ends[0])
        values[start : start + ROWS] = sparse.csr_array(block, shape=(len(ends) - 1, n_columns))[:, columns].toarray()
    return values


def _starts(node: Any, n: int) -> np.ndarray:
    """Where the rows of a sparse matrix begin (the columns of CSC), checked: scipy relies on it and would crash."""
    starts, size = node["indptr"][:], len(node["data"])
    whole = starts.shape == (n + 1,) and starts.dtype.kind in "iu" and len(node["indices"]) == size
    if not whole or starts[0] != 0 or starts[-1] != size or np.any(starts[1:] < starts[:-1]):
        raise InputError(f"the pointers of its sparse matrix do not rise from 0 to its {size} values.")
    return np.asarray(starts)


def _places(node: Any, part: slice, n: int) -> np.ndarray:
    """The columns of a sparse matrix's values (the rows of CSC), checked."""
    places = node["indices"][part]
    wrong = (places < 0) | (places >= n)
    if wrong.any():
        raise InputError(f"its sparse matrix puts a value at place {places[wrong][0]}, of {n}.")
    return np.asarray(places)
