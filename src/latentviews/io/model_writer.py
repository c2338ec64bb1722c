"""A model into a tree of plain values and a list of arrays."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from hashlib import sha256
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from latentviews._arrays import on_host
from latentviews.io.naming import name_of
from latentviews.io.register import FOREIGN

SPARSE = ("csr_array", "csc_array", "csr_matrix", "csc_matrix")
SPREAD = 8  # an array is laid out as it was if that takes at most so many times its size
LARGE = 10_000  # bytes, from which on equal arrays are written once
PASSING = ("_skl_callbacks", "_parent_callback_ctx")  # who watches a fit is no part of it


class SavingError(ValueError):
    """A model that cannot be written, or a file that is no model; the message says why."""


class Writer:
    """Values into a tree of lists, plain values and one-entry dictionaries {kind: content}."""

    def __init__(self) -> None:
        self.objects: list[Any] = []  # estimators, records and arrays, each after those it consists of
        self.arrays: list[np.ndarray] = []
        self._numbers: dict[int, int | None] = {}  # by id; None while an object is being written
        self._entries: dict[Any, int] = {}  # of large arrays, by what they hold
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
        kind = name_of(type(value))
        if kind is not None:
            state = {name: self.encode(part, f"{where}.{name}") for name, part in _state(value).items()}
            return {"class": kind, "state": state}
        raise SavingError(f"{where} is {_in_words(value)}, which cannot be saved without pickle. {_remedy(value)}")

    def _array(self, array: np.ndarray, where: str) -> Any:
        """The number of an array's entry and its layout, or its items where they are Python objects."""
        if array.dtype.hasobject:
            return {"shape": list(array.shape), "items": [self.encode(item, where) for item in array.ravel().tolist()]}
        return {"entry": self._entry(array), "strides": _strides(array)}

    def _entry(self, array: np.ndarray) -> int:
        """The number of an array's entry: that of an equal one, as clones of a kernel hold them, if it is large."""
        if array.nbytes >= LARGE:
            content = array.dtype.str, array.shape, array.strides, sha256(array.tobytes(order="K")).digest()
            if content in self._entries:
                return self._entries[content]
            self._entries[content] = len(self.arrays)
        self.arrays.append(array)
        return len(self.arrays) - 1


def _state(value: Any) -> Mapping[str, Any]:
    """What an estimator or record consists of; values that a record computes from its fields are left out."""
    if isinstance(value, BaseEstimator):
        return {name: part for name, part in vars(value).items() if name not in PASSING}
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value) if field.metadata.get("saved", True)}
    return value._asdict()


def _strides(array: np.ndarray) -> list[int] | None:
    """The strides of an array that is neither in C nor in Fortran order: products round differently in another."""
    if array.flags.forc or extent(array.shape, array.strides, array.itemsize)[1] > SPREAD * array.nbytes:
        return None
    return list(array.strides)


def extent(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> tuple[int, int]:
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
        return f"Of other packages, only {', '.join(FOREIGN)} can."
    if callable(value):
        return "Use a class of latentviews in its place."
    return "Turn it into numbers, NumPy arrays or strings first."
