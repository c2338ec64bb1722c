"""The command line: ``latentviews demo``, ``fit``, ``predict``, ``report`` and ``info``."""

from __future__ import annotations

import os
import signal
import sys
import time

TYPE_CHECKING = False  # as type checkers know it: until signals are seen to, as little as can be is imported
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

OK, UNEXPECTED, INPUT, INTERRUPTED, BROKEN_PIPE, TERMINATED = 0, 1, 2, 130, 141, 143
LOADING = "starting …"


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return the exit status: see ``latentviews --help``.

    Parameters
    ----------
    argv : sequence of str or None
        The words after ``latentviews``; by default those of this process.

    Returns
    -------
    int
        The exit status, zero where the work is done.
    """
    started = time.perf_counter()
    with _leaving_at_once():
        from latentviews.cli.options import build_parser

        parser = build_parser()
        words = sys.argv[1:] if argv is None else list(argv)
        if not words:
            parser.print_help()
            return OK
        arguments = parser.parse_args(words)
        arguments.started, arguments.words = started, words
        arguments.importing = lambda: _Importing(not getattr(arguments, "quiet", False), own_process=argv is None)
        arguments.leaving_at_once = _leaving_at_once

        def say(text: str) -> None:
            print(f"latentviews {arguments.command}: {text}", file=sys.stderr)

        from latentviews.cli import early, options

        try:
            early.check(arguments)
        except options.CommandError as error:
            say(str(error))
            return INPUT
        with arguments.importing():
            run = arguments.load()

    try:
        with _terminations():
            run(arguments)
            if sys.stdout is not None:  # it is where standard output is closed
                sys.stdout.flush()
    except KeyboardInterrupt:
        say("interrupted; no file was left half-written.")
        return INTERRUPTED
    except _TerminatedError:
        say("terminated; no file was left half-written.")
        return TERMINATED
    except BrokenPipeError:
        _forget_output()
        return BROKEN_PIPE
    except Exception as error:
        return _failed(error, say)
    return OK


def _failed(error: Exception, say: Callable[[str], None]) -> int:
    """One sentence where the person at the keyboard can put it right; else a traceback, since it is a bug."""
    import errno

    from latentviews.cli.common import in_options
    from latentviews.cli.options import CommandError
    from latentviews.io import InputError

    if isinstance(error, CommandError | InputError):
        say(in_options(str(error)))
        return INPUT
    from latentviews.cli.output import FULL  # with what saving needs, for which others need not wait
    from latentviews.io.saving import SavingError

    if isinstance(error, SavingError):
        say(in_options(str(error)))
        return INPUT
    if isinstance(error, OSError) and error.errno in (*FULL, errno.EBADF):  # the latter where it is open for reading
        _forget_output()
        say(f"cannot write to standard output ({(error.strerror or str(error)).lower()}).")
        return INPUT
    import traceback

    traceback.print_exc()
    say(f"unexpected {type(error).__name__}: {error}. This is a bug; please report it with the lines above.")
    return UNEXPECTED


def _forget_output() -> None:
    """Send what is left of the output nowhere, or Python complains when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _TerminatedError(BaseException):
    """SIGTERM, raised where the program was, so that it cleans up."""


class _Handling:
    """Signals to handlers for a while; as they were in other threads, where Python lets nobody set them."""

    def __init__(self, handlers: dict[Any, Callable[[int, Any], None]]):
        self.handlers = handlers
        self.before: dict[Any, Any] = {}

    def __enter__(self) -> None:
        for number, handler in self.handlers.items():
            try:
                self.before[number] = signal.signal(number, handler)
            except ValueError:  # not in the main thread
                return

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)


def _leaving_at_once() -> _Handling:
    """End at the first signal, while nothing is written yet.

    Libraries that are being imported turn exceptions into their own, and print or swallow them; readers import more.
    """

    def leave(number: int, frame: Any) -> None:
        interrupted = number == signal.SIGINT
        word = "interrupted" if interrupted else "terminated"
        os.write(
            2, f"{_CLEAR + _CURSOR if sys.stderr.isatty() else ''}latentviews: {word}; nothing was written.\n".encode()
        )
        os._exit(INTERRUPTED if interrupted else TERMINATED)

    return _Handling({signal.SIGINT: leave, signal.SIGTERM: leave})


def _terminations() -> _Handling:
    """Turn SIGTERM into an exception."""

    def terminate(number: int, frame: Any) -> None:
        raise _TerminatedError

    return _Handling({signal.SIGTERM: terminate})


_CLEAR = "\r\x1b[K"  # to the start of the line, and nothing on it
_CURSOR = "\x1b[?25h"  # which progress bars hide


class _Importing:
    """While libraries are imported, a terminal shows the time that is gone, and signals end all at once."""

    def __init__(self, shown: bool, *, own_process: bool):
        self.parts = (_leaving_at_once(), _WithoutGarbageSearch(own_process), _Waiting(shown))

    def __enter__(self) -> None:
        for part in self.parts:
            part.__enter__()

    def __exit__(self, *error: object) -> None:
        for part in reversed(self.parts):
            part.__exit__(*error)


class _WithoutGarbageSearch:
    """No search for garbage while libraries are imported, nor, in a process of our own, among what they brought.

    Those searches take a quarter of the processor's time in a start.
    """

    def __init__(self, own_process: bool):
        self.own_process = own_process

    def __enter__(self) -> None:
        import gc

        self.searching = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        import gc

        if self.own_process:
            gc.freeze()
        if self.searching:
            gc.enable()


class _Waiting:
    """A word and the time that is gone on a terminal while the libraries are imported; nothing when they are."""

    TICK = 1.0  # seconds

    def __init__(self, shown: bool):
        self.shown = shown and sys.stderr is not None and sys.stderr.isatty()

    def __enter__(self) -> None:
        if self.shown:
            from threading import Event, Thread

            self.over, self.begun = Event(), time.perf_counter()
            self._write(LOADING)
            self.clock = Thread(target=self._count, daemon=True)
            self.clock.start()

    def __exit__(self, *_: object) -> None:
        if self.shown:
            self.over.set()
            self.clock.join()
            self._write(_CLEAR)

    def _count(self) -> None:
        while not self.over.wait(self.TICK):
            self._write(f"\r{LOADING} {time.perf_counter() - self.begun:.0f} s")

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()
