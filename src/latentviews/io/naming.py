"""Classes by the names that model files call them, and back: look-ups in the tables of `register`."""

import importlib
import re
from typing import Any

from latentviews.io.register import CLASSES, FOREIGN, FORMER, MAKERS


def present_name(written: Any) -> str | None:
    """What the class that a file names is called now; None where it is not registered.

    ``written`` is a name, or in format 1 the pair of a module and a name.
    """
    name = _name_in_format_1(*written) if isinstance(written, list) else written
    while name in FORMER:
        name = FORMER[name]
    return name if name in CLASSES or name in MAKERS or name in FOREIGN else None


def _name_in_format_1(module: str, name: str) -> str | None:
    """The name of a pair whose module is one of this package, wherever it has gone, or that of a foreign class."""
    if re.fullmatch(rf"{FOREIGN.get(name, 'latentviews')}(\.\w+)*", module):
        return FORMER.get(f"{module}.{name}", name)
    return None


def class_of(name: str) -> Any:
    """The class of a registered name, or the function that makes what it was."""
    module, called = _place(name)
    return getattr(importlib.import_module(module), called)


def name_of(kind: type) -> str | None:
    """The registered name of a class; None where it has none."""
    if kind.__name__ in FOREIGN and class_of(kind.__name__) is kind:
        return kind.__name__
    return _NAMES.get((kind.__module__, kind.__qualname__))


def _place(name: str) -> tuple[str, str]:
    """The module of a registered class, and its name there."""
    if name in FOREIGN:
        return FOREIGN[name], name
    module, _, called = (CLASSES | MAKERS)[name].partition(":")
    return f"latentviews.{module}", called or name


_NAMES = {_place(name): name for name in CLASSES}
