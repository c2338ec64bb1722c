"""A model from the tree and the arrays that `model_writer` made of it."""

import inspect
import zipfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from latentviews.io.model_writer import SPARSE, SPREAD, extent
from latentviews.io.naming import class_of, present_name
from latentviews.io.register import FORMER_FIELDS

BIT_GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")


class DamagedError(Exception):
    """A tree that `save` cannot have written."""


def array_name(number: int) -> str:
    """The entry of an array in the zip."""
    return f"arrays/{number}.npy"


def _dotted(node: dict[str, Any]) -> str:
    """The class of a node in a sentence."""
    written = node["class"]
    return f"{'.'.join(map(str, written)) if isinstance(written, list) else written!s:.400}"


def _defaults(kind: type) -> dict[str, Any]:
    """The parameters of an estimator that have a default: a file may be older than some of them."""
    parameters = inspect.signature(kind).parameters.values()
    return {each.name: each.default for each in parameters if each.default is not each.empty}


def _laid_out(array: np.ndarray, strides: Sequence[int]) -> np.ndarray:
    """A copy of an array with these strides."""
    before, size = extent(array.shape, strides, array.itemsize)
    if size > SPREAD * array.nbytes:
        raise DamagedError(f"it spreads an array of {array.nbytes} bytes over {size}")
    copy: np.ndarray = np.ndarray(array.shape, array.dtype, np.zeros(size, np.uint8), before, strides)
    copy[...] = array
    return copy


class Reader:
    """The values of a tree."""

    def __init__(self, archive: zipfile.ZipFile):
        self.archive = archive
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
        except (zipfile.BadZipFile, DamagedError):
            raise
        except Exception as error:  # whatever a tree that `save` did not write leads to
            raise DamagedError(f"{type(error).__name__}: {error}") from error

    def decode(self, node: Any) -> Any:
        """The value of a node."""
        if isinstance(node, list):
            return [self.decode(item) for item in node]
        if not isinstance(node, dict):
            return node
        ((kind, content),) = node.items()
        if kind not in self._kinds:
            raise DamagedError(f"it holds something of the unknown kind {kind!r:.200}")
        return self._kinds[kind](content)

    def _instance(self, node: dict[str, Any]) -> Any:
        name = present_name(node["class"])
        if name is None:
            raise DamagedError(f"it names the class {_dotted(node)}, which is no estimator or record of latentviews")
        kind, renamed = class_of(name), FORMER_FIELDS.get(name, {})
        state = {renamed.get(field, field): self.decode(part) for field, part in node["state"].items()}
        if not isinstance(kind, type) or not issubclass(kind, BaseEstimator):
            return kind(**state)
        made: Any = object.__new__(kind)
        vars(made).update(_defaults(kind) | state)
        return made

    def _object(self, number: int) -> Any:
        if not 0 <= number < len(self.objects):
            raise DamagedError(f"it refers to a part {number} that does not come before")
        return self.objects[number]

    def _array(self, node: dict[str, Any]) -> np.ndarray:
        if "items" in node:
            objects = np.empty(len(node["items"]), dtype=object)
            objects[:] = [self.decode(item) for item in node["items"]]
            return objects.reshape(node["shape"])
        with self.archive.open(array_name(int(node["entry"]))) as file:
            array = np.lib.format.read_array(file, allow_pickle=False)
        return array if node["strides"] is None else _laid_out(array, node["strides"])

    def _sparse(self, content: Any) -> Any:
        name, shape, parts = content
        if name not in SPARSE:
            raise DamagedError(f"it holds a sparse array of the unknown kind {name!r:.200}")
        return getattr(sparse, name)(tuple(self._array(part) for part in parts), shape=tuple(shape))

    def _random(self, content: Any) -> Any:
        kind, state = content[0], self.decode(content[1])
        if state["bit_generator"] not in BIT_GENERATORS:
            raise DamagedError(f"it holds an unknown random generator {state['bit_generator']!r:.200}")
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
            raise DamagedError(f"it holds {text!r:.200} for a number")
        return float(text)
