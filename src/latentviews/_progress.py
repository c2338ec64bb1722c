"""Progress of long fits: scikit-learn's callbacks where they exist (1.9 on), lines of text otherwise."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

    def with_callbacks(method: Any) -> Any:
        """The method as it is."""
        return method


class Part(NamedTuple):
    """Which of several equal parts of a fit a step belongs to, and the gain at which the part ends."""

    number: int = 0
    of: int = 1
    last_gain: float = 1e-5


Report = Callable[..., bool]  # of a task, a step, an objective, and a Part where a fit has several
Observer = Callable[[str, int, float, Part], None]
WHOLE = Part()
_observer: ContextVar[Observer | None] = ContextVar("observer", default=None)


@contextmanager
def observed(observer: Observer) -> Iterator[None]:
    """Tell ``observer(task, step, objective, part)`` of every step of the fits inside, of whatever estimators."""
    token = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(token)


def reporter(estimator: Any, verbose: int, *, of_loss: bool = False) -> tuple[Report, Callable[[], None]]:
    """What to call at every step of a fit, and at its end.

    ``report(task, step, objective)`` tells the callbacks of ``estimator``, and writes to standard error if ``verbose``;
    it is True where a callback asks the fit to stop. The objective is a log-likelihood per row, or minus a loss
    (``of_loss``).
    """
    observer, context = _observer.get(), None
    if getattr(estimator, "_skl_callbacks", None) or hasattr(estimator, "_parent_callback_ctx"):
        context = estimator._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=estimator)

    def report(task: str, step: int, objective: float, part: Part = WHOLE) -> bool:
        if verbose:
            value = f"loss per row {-objective:.6f}" if of_loss else f"log-likelihood per row {objective:.6f}"
            sys.stderr.write(f"{type(estimator).__name__}: {task}, step {step}, {value}\n")
        if observer is not None:
            observer(task, step, objective, part)
        if context is None:
            return False
        inner = context.subcontext(task_name=task, max_subtasks=0)
        inner.call_on_fit_task_begin(estimator=estimator)
        return bool(inner.call_on_fit_task_end(estimator=estimator))

    def finish() -> None:
        if context is not None:
            context.call_on_fit_task_end(estimator=estimator)

    return report, finish


EVERY = 2.0  # seconds between lines on a pass over the rows


def passing(estimator: Any, pieces: Iterable[Any], label: str, n_rows: int) -> Iterator[Any]:
    """Pairs of a place and rows, and now and then a line on how many have passed, where ``estimator`` is verbose."""
    seen, began = 0, time.monotonic()
    said = began
    for place, rows in pieces:
        yield place, rows
        seen, now = seen + len(rows), time.monotonic()
        if now - said > EVERY or seen >= n_rows:
            said = now
            _say(estimator, f"{label}, {seen:,} of {n_rows:,} rows, {now - began:.1f} s")


@contextmanager
def timed_pass(estimator: Any, label: str) -> Iterator[None]:
    """A line at the end of a pass over rows, where ``estimator`` is verbose."""
    began = time.monotonic()
    yield
    _say(estimator, f"{label}, {time.monotonic() - began:.1f} s")


def _say(estimator: Any, line: str) -> None:
    if getattr(estimator, "verbose", 0):
        sys.stderr.write(f"{type(estimator).__name__}: {line}\n")
