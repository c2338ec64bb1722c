"""A progress bar on standard error, with rate and time left; nothing where nobody is looking."""

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from latentviews._progress import WHOLE, Part, observed


class Progress:
    """Bars for the stages of a command, one after the other."""

    def __init__(self, shown: bool):
        self._bars = _bars() if shown and sys.stderr.isatty() else None

    def __enter__(self) -> "Progress":
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(self, *_: Any) -> None:
        if self._bars is not None:
            self._bars.stop()

    @contextmanager
    def stage(self, name: str, total: float | None = None) -> Iterator["Stage"]:
        """A stage of the work; its bar goes when it is over."""
        if self._bars is None:
            yield Stage(None, None)
            return
        task = self._bars.add_task(name, total=total, rate="")
        try:
            yield Stage(self._bars, task)
        finally:
            self._bars.refresh()  # a stage is seen however short it is
            self._bars.remove_task(task)

    @contextmanager
    def fitting(self, name: str) -> Iterator[None]:
        """A stage that follows the steps of the fits inside."""
        with self.stage(name) as stage, observed(FitObserver(stage)):
            yield


class Stage:
    """One bar."""

    def __init__(self, bars: Any, task: Any):
        self._bars = bars
        self._task = task

    def update(self, completed: float, total: float, rate: str) -> None:
        """How far the stage is."""
        if self._bars is not None:
            self._bars.update(self._task, completed=completed, total=total, rate=rate)


class FitObserver:
    """Steps of a fit as a share of the way to its end, which never shrinks.

    EM gains less with every step, about in proportion to what is left, and stops at a known gain: the share is
    measured on the logarithm of the gain, from the first one to the last. A fit of several parts, such as starts, has
    so much of its way behind it as parts are done.
    """

    def __init__(self, stage: Stage):
        self.stage = stage
        self._part, self._step, self._objective, self._first_gain = -1, 0, 0.0, 0.0
        self._begun, self._steps, self._share = 0.0, 0, 0.0

    def __call__(self, task: str, step: int, objective: float, part: Part = WHOLE) -> None:
        """Called at every step."""
        self._begun = self._begun or time.monotonic()
        done, last = 0.0, part.last_gain
        if part.number == self._part and step > self._step:
            gain = max(abs(objective - self._objective) / (step - self._step), last)
            self._first_gain = self._first_gain or max(gain, 2 * last)
            done = min(math.log(self._first_gain / gain) / math.log(self._first_gain / last), 0.99)
        else:
            self._first_gain = 0.0
        self._part, self._step, self._objective = part.number, step, objective
        self._share = max(self._share, (part.number + max(done, 0.0)) / part.of)
        if self._steps:
            rate = self._steps / max(time.monotonic() - self._begun, 1e-9)
            self.stage.update(self._share, 1.0, f"{rate:,.0f} steps/s")
        self._steps += 1


def _bars() -> Any:
    """Bars of rich; None where it is not installed."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars
    except ImportError:
        return None
    columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[rate]}"), TimeRemainingColumn()
    return Bars(*columns, console=Console(stderr=True), transient=True)
