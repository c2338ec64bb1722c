"""A progress bar on standard error, with rate, time gone and time left; nothing where nobody is looking."""

import math
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what it imports is for fits, and files are read before that is there
    from latentviews._progress import Part


class Progress:
    """Bars for the stages of a command, one after the other."""

    def __init__(self, shown: bool, started: float | None = None):
        self._shown = shown
        self._bars = _bars() if shown and sys.stderr.isatty() else None
        now = time.perf_counter()
        self._started = now if started is None else started
        self._seconds = {"starting": now - self._started}

    def seconds(self) -> dict[str, float]:
        """What the stages have taken so far, and what was between them; the sum is the time since the start."""
        rest = time.perf_counter() - self._started - sum(self._seconds.values())
        return {**self._seconds, "the rest": rest}

    def __enter__(self) -> "Progress":
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(self, *_: Any) -> None:
        if self._bars is not None:
            self._bars.stop()

    @contextmanager
    def stage(self, name: str, total: float | None = None, *, follow: bool = False) -> Iterator["Stage"]:
        """A stage of the work, which may follow the steps of the fits inside; its bar goes when it is over."""
        task = None if self._bars is None else self._bars.add_task(name, total=total, rate="")
        stage = Stage(self._bars, task)
        try:
            with self.timed(name), _followed(stage) if follow else nullcontext():
                yield stage
        finally:
            if self._bars is not None:
                self._bars.refresh()  # a stage is seen however short it is
                self._bars.remove_task(task)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """What is done inside counts for a stage, which has no bar."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self._seconds[name] = self._seconds.get(name, 0.0) + time.perf_counter() - begun

    @contextmanager
    def paused(self) -> Iterator[None]:
        """No bars for a while, so that somebody can be asked something."""
        if self._bars is None:
            yield
            return
        self._bars.stop()
        try:
            yield
        finally:
            self._bars.start()

    def say(self, notes: Iterable[str]) -> None:
        """Sentences on standard error, above the bars."""
        if self._shown:
            with self.paused():
                for note in notes:
                    print(f"note: {note}", file=sys.stderr)


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

    def __call__(self, task: str, step: int, objective: float, part: "Part") -> None:
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


@contextmanager
def _followed(stage: Stage) -> Iterator[None]:
    """Steps of the fits inside move a bar."""
    from latentviews._progress import observed

    with observed(FitObserver(stage)):
        yield


def _bars() -> Any:
    """Bars of rich, which a thread of their own keeps moving; None where it is not installed."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars
    except ImportError:
        return None

    class Left(TimeRemainingColumn):
        """The time that is left, and nothing where that is not known."""

        def render(self, task: Any) -> Any:
            return super().render(task).append(" left") if task.time_remaining is not None else ""

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TextColumn("gone"),
        Left(),
    )
    return Bars(*columns, console=Console(stderr=True), transient=True)
