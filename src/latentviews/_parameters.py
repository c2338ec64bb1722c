"""What the parameters of an estimator may be, declared in a table and checked by one call.

A class says ``_parameters = {"n_components": AutoOr(Count()), "solver": NoneOr(Ability("decompose")), ...}``, and its
``fit`` begins with ``check_parameters(self)``. What depends on the data is checked where the data are read, and
declared as `WithData`, so that every parameter has its line.

Kernels have no table. They have no ``fit`` that could begin with a check, and may be used as they are made: a kernel
checks its parameters at use, in ``adapt`` and ``gram``, where the columns say how many bandwidths it needs.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from latentviews._numbers import generator_of
from latentviews._validation import (
    check_ability,
    check_bandwidth,
    check_count,
    check_nonnegative,
    check_positive,
    is_auto,
)


class Constraint(Protocol):
    """What a parameter may be."""

    def check(self, name: str, value: Any) -> None:
        """A sentence on what was expected, where ``value`` is something else."""


def check_parameters(estimator: Any) -> None:
    """A sentence on the first parameter of an estimator that is not what its class declares."""
    constraints: Mapping[str, Constraint] = estimator._parameters
    for name, constraint in constraints.items():
        constraint.check(name, getattr(estimator, name))


@dataclass(frozen=True)
class Count:
    """An integer."""

    least: int = 1

    def check(self, name: str, value: Any) -> None:
        """A sentence on what is none."""
        check_count(name, value, self.least)


class Positive:
    """A positive, finite number."""

    def check(self, name: str, value: Any) -> None:
        """A sentence on what is none."""
        check_positive(name, value)


class Nonnegative:
    """A finite number of at least zero."""

    def check(self, name: str, value: Any) -> None:
        """A sentence on what is none."""
        check_nonnegative(name, value)


@dataclass(frozen=True)
class Bandwidth:
    """A positive number, one per column, or the name of one of some rules."""

    rules: tuple[str, ...]

    def check(self, name: str, value: Any) -> None:
        """A sentence on what is none, with all rules."""
        if isinstance(check_bandwidth(name, value), str) and value not in self.rules:
            raise ValueError(f"{name} must be a positive number or one of {sorted(self.rules)}; got {value!r}.")


@dataclass(frozen=True)
class Ability:
    """An object with a method."""

    method: str

    def check(self, name: str, value: Any) -> None:
        """A sentence on what lacks it."""
        check_ability(name, value, self.method)


@dataclass(frozen=True)
class OneOf:
    """One of some names; a function gives them, so that their table may stand below the class."""

    options: Callable[[], Collection[str]]

    def check(self, name: str, value: Any) -> None:
        """A sentence with all of them."""
        if not isinstance(value, str) or value not in self.options():
            raise ValueError(f"{name} must be one of {sorted(self.options())}; got {value!r}.")


@dataclass(frozen=True)
class Such:
    """A value for which something holds, and what to call it."""

    holds: Callable[[Any], bool]
    expected: str

    def check(self, name: str, value: Any) -> None:
        """A sentence on what was expected."""
        if not self.holds(value):
            raise ValueError(f"{name} must be {self.expected}; got {value!r}.")


@dataclass(frozen=True)
class Share(Such):
    """A number from zero to one; with which ends is said in words."""

    def __init__(self, expected: str = "between 0 and 1", *, zero: bool = False, one: bool = False):
        def holds(value: Any) -> bool:
            return is_number(value) and (0 < value < 1 or (zero and value == 0) or (one and value == 1))

        super().__init__(holds, expected)


@dataclass(frozen=True)
class Several:
    """A list of at least one value, each within a constraint."""

    each: Constraint
    expected: str

    def check(self, name: str, value: Any) -> None:
        """A sentence on what is no list, or on an item."""
        sentence = f"{name} must be {self.expected}; got {value!r}."
        if not isinstance(value, Sequence | np.ndarray) or isinstance(value, str) or not len(value):
            raise ValueError(sentence)
        for item in value:
            try:
                self.each.check(name, item)
            except ValueError as error:
                raise error if isinstance(self.each, Count) else ValueError(sentence) from error


@dataclass(frozen=True)
class NoneOr:
    """None, or what another constraint takes."""

    other: Constraint

    def check(self, name: str, value: Any) -> None:
        """The other's sentence."""
        if value is not None:
            self.other.check(name, value)


@dataclass(frozen=True)
class AutoOr:
    """The string "auto", or what another constraint takes."""

    other: Constraint

    def check(self, name: str, value: Any) -> None:
        """The other's sentence."""
        if isinstance(value, str) and not is_auto(value) and isinstance(self.other, Count):
            raise ValueError(f'{name} must be an integer or "auto"; got {value!r}.')
        if not is_auto(value):
            self.other.check(name, value)


class Numbers:
    """A list of different finite numbers."""

    def check(self, name: str, value: Any) -> None:
        """A sentence on what is none."""
        several = isinstance(value, Sequence | np.ndarray) and not isinstance(value, str) and len(value) > 0
        if not several or not all(is_number(one) and np.isfinite(one) for one in value):
            raise ValueError(f'{name} must be "auto", None or a list of numbers such as [0.0]; got {value!r}.')


class Flag:
    """True or False."""

    def check(self, name: str, value: Any) -> None:
        """A sentence on what is neither."""
        if not isinstance(value, bool | np.bool_) and not (isinstance(value, int) and value in (0, 1)):
            raise ValueError(f"{name} must be True or False; got {value!r}.")


class Verbosity:
    """True, False, or how much to say."""

    def check(self, name: str, value: Any) -> None:
        """A sentence on what is none."""
        if not isinstance(value, bool | np.bool_):
            check_count(name, value, 0)


class Jobs:
    """None, or the number of processes, -1 for all processors."""

    def check(self, name: str, value: Any) -> None:
        """A sentence on what is none."""
        number = isinstance(value, int | np.integer) and not isinstance(value, bool) and value != 0
        if value is not None and not number:
            raise ValueError(f"{name} must be None or an integer other than zero; got {value!r}.")


class Seed:
    """What random numbers start from."""

    def check(self, name: str, value: Any) -> None:
        """A sentence on what nothing can start from."""
        generator_of(value, name)


class WithData:
    """Anything: what it may be depends on the data, and is checked with them."""

    def check(self, name: str, value: Any) -> None:
        """Nothing yet."""


def are_numbers(value: Any) -> bool:
    """Whether a value is a number, or an array or nested list of them."""
    try:
        np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        return False
    return value is not None


def is_number(value: Any) -> bool:
    """Whether a value is a number, and no flag."""
    return isinstance(value, float | int | np.number) and not isinstance(value, bool)
