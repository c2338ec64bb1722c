"""Models on disk without pickle: a zip of one JSON tree and the arrays it names. Reading one runs no code from it.

The tree is made of plain values, arrays, and the two kinds of things that this library consists of: estimators
(`BaseEstimator`: what is in ``vars``) and records (frozen dataclasses and named tuples: their fields). Each is written
with the name of its class, and only classes of this package and those in ``FOREIGN`` are made again. A thing that
occurs twice is written once and is one thing again when read.
"""

import errno
import importlib
import inspect
import io
import json
import math
import os
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from latentviews._arrays import on_host

FORMAT = "latentviews model"
VERSION = 1  # raised when older releases could not read what is written
TREE = "model.json"
SPARSE = ("csr_array", "csc_array", "csr_matrix", "csc_matrix")
BIT_GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
SPREAD = 8  # an array is laid out as it was if that takes at most so many times its size
PASSING = ("_skl_callbacks", "_parent_callback_ctx")  # who watches a fit is no part of it
# Classes of other packages that may stand in a model, where feature maps of scikit-learn take the place of ours. Their
# state is numbers and names; none keeps a function or evaluates a string.
FOREIGN = {
    "sklearn.kernel_approximation": ("AdditiveChi2Sampler", "Nystroem", "PolynomialCountSketch", "RBFSampler"),
    "sklearn.preprocessing._data": ("MinMaxScaler", "PowerTransformer", "RobustScaler", "StandardScaler"),
    "sklearn.preprocessing._polynomial": ("PolynomialFeatures",),
    "sklearn.decomposition._pca": ("PCA",),
    "sklearn.pipeline": ("Pipeline",),
}


class SavingError(ValueError):
    """A model that cannot be written, or a file that is no model; the message says why."""


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
    writer = _Writer()
    root = writer.encode(model, type(model).__name__)
    tree = {
        "format": FORMAT,
        "version": VERSION,
        "latentviews": _release(),
        "class": type(model).__name__,
        "objects": writer.objects,
        "root": root,
    }
    with written_aside(Path(path)) as aside, zipfile.ZipFile(aside, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_entry(TREE), json.dumps(tree, allow_nan=False))
        for number, array in enumerate(writer.arrays):
            archive.writestr(_entry(_array_name(number)), _npy(array))


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
    """
    path = Path(path)
    if path.is_dir():
        raise SavingError(f"{path} is a directory; name the model file in it.")
    try:
        with zipfile.ZipFile(path) as archive:
            tree = _read_tree(archive, path)
            return _Reader(archive, path).decode_all(tree)
    except (zipfile.BadZipFile, EOFError) as error:
        raise SavingError(f"{path} is not a model that latentviews saved, or it is cut short ({error}).") from error
    except _DamagedError as error:
        raise SavingError(f"{path} is a damaged model file: {error}.") from error


@contextmanager
def written_aside(path: Path) -> Iterator[Path]:
    """A name beside ``path`` to write to; it takes the place of ``path`` at the end, or is removed where that fails."""
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "No such directory", str(path.parent))
    aside = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        yield aside
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


class _DamagedError(Exception):
    """A tree that `save` cannot have written."""


def _read_tree(archive: zipfile.ZipFile, path: Path) -> dict[str, Any]:
    """The JSON tree, of a format and version that can be read."""
    if TREE not in archive.namelist():
        raise SavingError(f"{path} is a zip file, but not a model that latentviews saved: it has no {TREE}.")
    try:
        tree = json.loads(archive.read(TREE))
    except (ValueError, RecursionError) as error:
        raise _DamagedError(f"its {TREE} cannot be read ({error})") from error
    if not isinstance(tree, dict) or tree.get("format") != FORMAT:
        raise SavingError(f"{path} is a zip file, but not a model that latentviews saved: its {TREE} says otherwise.")
    version = tree.get("version")
    if not isinstance(version, int) or version > VERSION:
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


def _array_name(number: int) -> str:
    return f"arrays/{number}.npy"


def _npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


# ---------------------------------------------------------------------------------------------------- to the tree


class _Writer:
    """Values into a tree of lists, plain values and one-entry dictionaries {kind: content}."""

    def __init__(self) -> None:
        self.objects: list[Any] = []  # estimators, records and arrays, each after those it consists of
        self.arrays: list[np.ndarray] = []
        self._numbers: dict[int, int | None] = {}  # by id; None while an object is being written
        self._alive: list[Any] = []  # ids are those of different things only while all of them are there

    def encode(self, value: Any, where: str) -> Any:
        """A value as a node of the tree; ``where`` names it in errors."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if type(value) is list:
            return [self.encode(item, f"{where}[{i}]") for i, item in enumerate(value)]
        for kind in (tuple, set, frozenset):
            if type(value) is kind:
                return {kind.__name__: [self.encode(item, f"{where}[{i}]") for i, item in enumerate(value)]}
        if type(value) is dict:
            return {"dict": [[self.encode(k, where), self.encode(v, f"{where}[{k!r}]")] for k, v in value.items()]}
        if type(value) is range:
            return {"range": [value.start, value.stop, value.step]}
        if isinstance(value, np.generic):
            return {"scalar": self._array(np.asarray(value), where)}
        return {"object": self._once(value, where)}

    def _once(self, value: Any, where: str) -> int:
        """The number of an object, written where it is met for the first time."""
        if id(value) not in self._numbers:
            self._alive.append(value)
            self._numbers[id(value)] = None
            node = self._object(value, where)
            self.objects.append(node)
            self._numbers[id(value)] = len(self.objects) - 1
        number = self._numbers[id(value)]
        if number is None:
            raise SavingError(f"{where} contains itself, and cannot be saved.")
        return number

    def _object(self, value: Any, where: str) -> Any:
        value = on_host(value)  # what was learnt on a device is read back as NumPy's, and goes where rows are
        if type(value) is np.ndarray:
            return {"array": self._array(value, where)}
        if sparse.issparse(value) and type(value).__name__ in SPARSE:
            parts = [self._array(part, where) for part in (value.data, value.indices, value.indptr)]
            return {"sparse": [type(value).__name__, list(value.shape), parts]}
        if isinstance(value, np.random.Generator | np.random.RandomState):
            state = value.bit_generator.state if isinstance(value, np.random.Generator) else value.get_state(False)
            return {"random": [type(value).__name__, self.encode(state, where)]}
        if is_known(type(value)):
            state = {name: self.encode(part, f"{where}.{name}") for name, part in _state(value).items()}
            return {"class": [type(value).__module__, type(value).__qualname__], "state": state}
        raise SavingError(f"{where} is {_in_words(value)}, which cannot be saved without pickle. {_remedy(value)}")

    def _array(self, array: np.ndarray, where: str) -> Any:
        """The number of an array's entry and its layout, or its items where they are Python objects."""
        if array.dtype.hasobject:
            return {"shape": list(array.shape), "items": [self.encode(item, where) for item in array.ravel().tolist()]}
        self.arrays.append(array)
        return {"entry": len(self.arrays) - 1, "strides": _strides(array)}


def _state(value: Any) -> Mapping[str, Any]:
    """What an estimator or record consists of; values that a record computes from its fields are left out."""
    if isinstance(value, BaseEstimator):
        return {name: part for name, part in vars(value).items() if name not in PASSING}
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return value._asdict()


def _strides(array: np.ndarray) -> list[int] | None:
    """The strides of an array that is neither in C nor in Fortran order: products round differently in another."""
    if array.flags.forc or _extent(array.shape, array.strides, array.itemsize)[1] > SPREAD * array.nbytes:
        return None
    return list(array.strides)


def _extent(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> tuple[int, int]:
    """Where the first item lies in the bytes that a strided array spans, and how many they are."""
    reach = [(n - 1) * step for n, step in zip(shape, strides, strict=True)]
    before = -sum(min(step, 0) for step in reach)
    return before, before + sum(max(step, 0) for step in reach) + itemsize


def _in_words(value: Any) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if callable(value) and hasattr(value, "__name__"):
        return f"the function {value.__name__}"
    return f"a {type(value).__module__}.{type(value).__qualname__}"


def _remedy(value: Any) -> str:
    if isinstance(value, BaseEstimator):
        names = [name for group in FOREIGN.values() for name in group]
        return f"Of other packages, only {', '.join(names)} can."
    if callable(value):
        return "Use a class of latentviews in its place."
    return "Turn it into numbers, NumPy arrays or strings first."


# -------------------------------------------------------------------------------------------------- from the tree


def is_known(kind: type) -> bool:
    """Whether things of a class are written and made again: the estimators and records here, and those in FOREIGN."""
    if kind.__module__ in FOREIGN:
        return kind.__qualname__ in FOREIGN[kind.__module__]
    here = re.fullmatch(r"latentviews(\.\w+)*", kind.__module__) is not None
    record = is_dataclass(kind) or (issubclass(kind, tuple) and hasattr(kind, "_fields"))
    return here and (record or issubclass(kind, BaseEstimator))


def _find_class(module: Any, name: Any) -> type:
    """The class of a name, if things of it may be made."""
    wanted = isinstance(module, str) and isinstance(name, str) and str.isidentifier(name)
    if wanted and (module in FOREIGN or re.fullmatch(r"latentviews(\.\w+)*", module)):
        try:
            found = vars(importlib.import_module(module)).get(name)
        except ImportError:
            found = None
        if isinstance(found, type) and found.__module__ == module and is_known(found):
            return found
    raise _DamagedError(
        f"it names the class {module!s:.200}.{name!s:.200}, which is no estimator or record of latentviews"
    )


def _defaults(kind: type) -> dict[str, Any]:
    """The parameters of an estimator that have a default: a file may be older than some of them."""
    parameters = inspect.signature(kind).parameters.values()
    return {each.name: each.default for each in parameters if each.default is not each.empty}


def _laid_out(array: np.ndarray, strides: Sequence[int]) -> np.ndarray:
    """A copy of an array with these strides."""
    before, size = _extent(array.shape, strides, array.itemsize)
    if size > SPREAD * array.nbytes:
        raise _DamagedError(f"it spreads an array of {array.nbytes} bytes over {size}")
    copy: np.ndarray = np.ndarray(array.shape, array.dtype, np.zeros(size, np.uint8), before, strides)
    copy[...] = array
    return copy


class _Reader:
    """The values of a tree."""

    def __init__(self, archive: zipfile.ZipFile, path: Path):
        self.archive = archive
        self.path = path
        self.objects: list[Any] = []
        self._kinds: dict[str, Callable[[Any], Any]] = {
            "float": self._float,
            "tuple": lambda items: tuple(map(self.decode, items)),
            "set": lambda items: set(map(self.decode, items)),
            "frozenset": lambda items: frozenset(map(self.decode, items)),
            "dict": lambda items: {self.decode(key): self.decode(value) for key, value in items},
            "range": lambda ends: range(*ends),
            "scalar": lambda node: self._array(node)[()],
            "array": self._array,
            "sparse": self._sparse,
            "random": self._random,
            "object": self._object,
        }

    def decode_all(self, tree: dict[str, Any]) -> Any:
        """The root, after everything it consists of."""
        try:
            for node in tree["objects"]:
                self.objects.append(self._instance(node) if "class" in node else self.decode(node))
            return self.decode(tree["root"])
        except (zipfile.BadZipFile, _DamagedError):
            raise
        except Exception as error:  # whatever a tree that `save` did not write leads to
            raise _DamagedError(f"{type(error).__name__}: {error}") from error

    def decode(self, node: Any) -> Any:
        """The value of a node."""
        if isinstance(node, list):
            return [self.decode(item) for item in node]
        if not isinstance(node, dict):
            return node
        ((kind, content),) = node.items()
        if kind not in self._kinds:
            raise _DamagedError(f"it holds something of the unknown kind {kind!r:.200}")
        return self._kinds[kind](content)

    def _instance(self, node: dict[str, Any]) -> Any:
        kind = _find_class(*node["class"])
        state = {name: self.decode(part) for name, part in node["state"].items()}
        if not issubclass(kind, BaseEstimator):
            return kind(**state)
        made: Any = object.__new__(kind)
        vars(made).update(_defaults(kind) | state)
        return made

    def _object(self, number: int) -> Any:
        if not 0 <= number < len(self.objects):
            raise _DamagedError(f"it refers to a part {number} that does not come before")
        return self.objects[number]

    def _array(self, node: dict[str, Any]) -> np.ndarray:
        if "items" in node:
            objects = np.empty(len(node["items"]), dtype=object)
            objects[:] = [self.decode(item) for item in node["items"]]
            return objects.reshape(node["shape"])
        with self.archive.open(_array_name(int(node["entry"]))) as file:
            array = np.lib.format.read_array(file, allow_pickle=False)
        return array if node["strides"] is None else _laid_out(array, node["strides"])

    def _sparse(self, content: Any) -> Any:
        name, shape, parts = content
        if name not in SPARSE:
            raise _DamagedError(f"it holds a sparse array of the unknown kind {name!r:.200}")
        return getattr(sparse, name)(tuple(self._array(part) for part in parts), shape=tuple(shape))

    def _random(self, content: Any) -> Any:
        kind, state = content[0], self.decode(content[1])
        if state["bit_generator"] not in BIT_GENERATORS:
            raise _DamagedError(f"it holds an unknown random generator {state['bit_generator']!r:.200}")
        bits = getattr(np.random, state["bit_generator"])()
        if kind == "RandomState":
            made = np.random.RandomState(bits)
            made.set_state(state)
            return made
        bits.state = state
        return np.random.Generator(bits)

    @staticmethod
    def _float(text: str) -> float:
        if text not in ("nan", "inf", "-inf"):
            raise _DamagedError(f"it holds {text!r:.200} for a number")
        return float(text)
