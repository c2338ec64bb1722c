"""What counts as a fault: wrong numbers, errors that are no sentences, warnings, hangs, noise on the terminal."""

import ast
import linecache
import signal
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import sklearn

import latentviews

SECONDS = 10  # of processor time that one call may take on less than 300 rows
PACKAGE = str(Path(latentviews.__file__).parent)
CHECKS = str(Path(sklearn.__file__).parent / "utils")  # scikit-learn's, whose sentences a user may be told too
OUR_KINDS = (ValueError, TypeError, ArithmeticError, AttributeError, NotImplementedError, OSError)


class TimeoutFault(BaseException):
    """A call took too long; no ``except Exception`` on the way swallows it."""


class Faults(list[str]):
    """The faults of one case, each once."""

    def append(self, fault: str) -> None:
        """Add a fault unless the same is known of another call."""
        if fault.partition(" at ")[2] not in {one.partition(" at ")[2] for one in self if " at " in one}:
            super().append(fault)

    def numbers(self, name: str, values: Any, *, low: bool = False, high: bool = False) -> None:
        """No NaN and no infinity; minus infinity where ``low`` allows it, infinity where ``high`` does."""
        if isinstance(values, list | tuple):
            for value in values:
                self.numbers(name, value, low=low, high=high)
            return
        values = np.asarray(values)
        if values.dtype.kind != "f":
            return
        if np.isnan(values).any():
            self.append(f"NaN in {name}")
        if not high and (values == np.inf).any():
            self.append(f"inf in {name}")
        if not low and (values == -np.inf).any():
            self.append(f"-inf in {name}")

    def shares(self, name: str, values: Any, *, at_most: bool = False) -> None:
        """Probabilities that sum to one along the last axis, or to less where some are not told."""
        values = np.asarray(values, dtype=float)
        self.numbers(name, values)
        total = values.sum(axis=-1)
        tolerance = 1e-6 if values.dtype == np.float64 else 1e-3
        if np.isnan(total).any():
            return
        if (
            (values < -tolerance).any()
            or (total > 1 + tolerance).any()
            or (not at_most and (total < 1 - tolerance).any())
        ):
            self.append(f"{name} sums to {total.min():.3g} to {total.max():.3g}")


@cache
def _raises(path: str) -> list[tuple[int, int]]:
    """The lines of a file's ``raise`` statements."""
    tree = ast.parse(Path(path).read_text())
    return [(node.lineno, node.end_lineno or node.lineno) for node in ast.walk(tree) if isinstance(node, ast.Raise)]


def is_sentence(error: BaseException) -> bool:
    """Whether an error was meant: its innermost frame is at a ``raise`` of ours or of scikit-learn's checks."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    own = frame.filename.startswith((PACKAGE, CHECKS)) and frame.lineno is not None
    return (
        own
        and isinstance(error, OUR_KINDS)
        and any(first <= frame.lineno <= last for first, last in _raises(frame.filename))
    )


def place(tb: TracebackType | None) -> str:
    """The innermost line of the package on the way to an error, and the innermost of all."""
    frames = [frame for frame in traceback.extract_tb(tb) if "/tests/fuzz/" not in frame.filename]
    ours = [frame for frame in frames if frame.filename.startswith(PACKAGE)]
    spots = [
        f"{frame.filename.rpartition('/src/')[2]}:{frame.lineno} {frame.name}" for frame in ours[-1:] + frames[-1:]
    ]
    return " < ".join(dict.fromkeys(reversed(spots)))


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """A `TimeoutFault` after so much processor time."""

    def stop(*_: Any) -> None:
        raise TimeoutFault

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


class Judge:
    """Calls that are judged: `call` gives what a function returns, or None where it failed or refused."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self.faults = Faults()
        self.refusals: list[str] = []
        self.seconds = seconds

    def call(self, name: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """The result; errors, warnings and lost time become faults, sentences of ours refusals."""
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                with limited(self.seconds):
                    return function(*args, **kwargs)
            except TimeoutFault as error:
                self.faults.append(f"{name} takes more than {self.seconds} s, at {place(error.__traceback__)}")
            except Exception as error:
                if is_sentence(error):
                    self.refusals.append(f"{name}: {error}")
                else:
                    self.faults.append(f"{name}: {type(error).__name__}: {error} at {place(error.__traceback__)}")
            finally:
                self._warned(name, told)
        return None

    def _warned(self, name: str, told: list[warnings.WarningMessage]) -> None:
        """Warnings about arithmetic are faults: nobody can tell what they mean for the answer."""
        for one in told:
            if issubclass(one.category, RuntimeWarning | np.exceptions.ComplexWarning):
                spot = f"{one.filename.rpartition('/src/')[2]}:{one.lineno}"
                line = linecache.getline(one.filename, one.lineno).strip()
                self.faults.append(f"{name} warns: {one.message} at {spot} ({line})")
