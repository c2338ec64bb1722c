"""A progress bar on standard error, with rate and time left; nothing where nobody is looking."""

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from latentviews._progress import observed

LAST_GAIN = 1e-5  # log-likelihood a row and step below which a polish stops


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
    """Steps of a fit as a share of the way to convergence.

    EM gains less with every step, about in proportion to what is left, and stops at a known gain: the share is
    measured on the logarithm of the gain, from the first one to the last.
    """

    def __init__(self, stage: Stage):
        self.stage = stage
        self._step, self._objective, self._share = math.inf, 0.0, 0.0
        self._begun, self._first_step, self._first_gain = 0.0, 0, 0.0

    def __call__(self, task: str, step: int, objective: float) -> None:
        """Called at every step."""
        now = time.monotonic()
        if step <= self._step:  # the first step of a fit
            self._begun, self._first_step, self._first_gain, self._share = now, step, 0.0, 0.0
        else:
            gain = max((objective - self._objective) / (step - self._step), LAST_GAIN)
            self._first_gain = self._first_gain or max(gain, 2 * LAST_GAIN)
            self._share = max(self._share, min(_way(self._first_gain, gain), 0.99))
            rate = (step - self._first_step) / max(now - self._begun, 1e-9)
            self.stage.update(self._share, 1.0, f"{rate:,.0f} steps/s")
        self._step, self._objective = step, objective


def _way(first: float, gain: float) -> float:
    """How much of the way from the first gain to the last is behind."""
    return math.log(first / gain) / math.log(first / LAST_GAIN)


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
