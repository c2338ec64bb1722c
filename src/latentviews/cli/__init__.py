"""The command line: ``latentviews demo``, ``fit``, ``predict``, ``report`` and ``info``."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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
        arguments.started = started
        with _told_to_wait(not getattr(arguments, "quiet", False)):
            run = arguments.load()

    def say(text: str) -> None:
        print(f"latentviews {arguments.command}: {text}", file=sys.stderr)

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
    from latentviews.cli.output import FULL
    from latentviews.io import InputError
    from latentviews.io.saving import SavingError

    if isinstance(error, CommandError | InputError | SavingError):
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


@contextmanager
def _handling(handlers: dict[Any, Callable[[int, Any], None]]) -> Iterator[None]:
    """Signals to handlers; as they were in other threads, where Python lets nobody set them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _leaving_at_once() -> Any:
    """End at the first signal: libraries that are being imported turn exceptions into their own, and print them."""

    def leave(number: int, frame: Any) -> None:
        interrupted = number == signal.SIGINT
        word = "interrupted" if interrupted else "terminated"
        os.write(2, f"{_CLEAR if sys.stderr.isatty() else ''}latentviews: {word}; nothing was written.\n".encode())
        os._exit(INTERRUPTED if interrupted else TERMINATED)

    return _handling({signal.SIGINT: leave, signal.SIGTERM: leave})


def _terminations() -> Any:
    """Turn SIGTERM into an exception."""

    def terminate(number: int, frame: Any) -> None:
        raise _TerminatedError

    return _handling({signal.SIGTERM: terminate})


_CLEAR = "\r\x1b[K"  # to the start of the line, and nothing on it


@contextmanager
def _told_to_wait(shown: bool) -> Iterator[None]:
    """A word on a terminal while the libraries are imported, gone when they are."""
    shown = shown and sys.stderr is not None and sys.stderr.isatty()
    if shown:
        sys.stderr.write(LOADING)
        sys.stderr.flush()
    yield
    if shown:
        sys.stderr.write(_CLEAR)
        sys.stderr.flush()
