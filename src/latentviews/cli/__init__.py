"""The command line: ``latentviews demo``, ``fit``, ``predict``, ``report``, ``info`` and ``crowd``."""

import argparse
import errno
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from latentviews import __version__
from latentviews.cli import apply, crowd, demo, fit
from latentviews.cli.common import CommandError, in_options
from latentviews.cli.output import FULL
from latentviews.io import InputError
from latentviews.io.saving import SavingError

OK, UNEXPECTED, INPUT, INTERRUPTED, BROKEN_PIPE, TERMINATED = 0, 1, 2, 130, 141, 143

EPILOG = """\
examples:
  latentviews demo                                       the main job on made-up data; results in ./demo
  latentviews info cells.fcs                             what is in a file
  latentviews fit cells.fcs --views "FSC-A,SSC-A" CD3 CD19 -k 3 --out cells
  latentviews fit cells.csv --views auto -k auto         find the views and the number of classes
  latentviews predict cells other.fcs --out other.csv    the classes of other rows, by the model in ./cells
  latentviews crowd labels.csv                           labels of tasks from the answers of many workers
  latentviews fit --help                                 all about a command

exit status:
  0  the work is done      1    an unexpected error, which is a bug
  2  a wrong option or input, told in one sentence; nothing was written
  130, 143  interrupted (SIGINT, SIGTERM); no file was left half-written
  141  whoever read the output stopped doing so
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return the exit status: see ``latentviews --help``."""
    arguments = build_parser().parse_args(argv)

    def say(text: str) -> None:
        print(f"latentviews {arguments.command}: {text}", file=sys.stderr)

    try:
        with _terminations():
            arguments.run(arguments)
            if sys.stdout is not None:  # it is where standard output is closed
                sys.stdout.flush()
    except (CommandError, InputError, SavingError) as error:
        say(in_options(str(error)))
        return INPUT
    except KeyboardInterrupt:
        say("interrupted; no file was left half-written.")
        return INTERRUPTED
    except _TerminatedError:
        say("terminated; no file was left half-written.")
        return TERMINATED
    except BrokenPipeError:
        _forget_output()
        return BROKEN_PIPE
    except OSError as error:
        if error.errno not in (*FULL, errno.EBADF):  # the latter where it is open for reading alone
            return _unexpected(error, say)
        _forget_output()
        say(f"cannot write to standard output ({(error.strerror or str(error)).lower()}).")
        return INPUT
    except Exception as error:
        return _unexpected(error, say)
    return OK


def _forget_output() -> None:
    """Send what is left of the output nowhere, or Python complains when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _unexpected(error: Exception, say: Callable[[str], None]) -> int:
    traceback.print_exc()
    say(f"unexpected {type(error).__name__}: {error}. This is a bug; please report it with the lines above.")
    return UNEXPECTED


class _TerminatedError(BaseException):
    """SIGTERM, raised where the program was, so that it cleans up."""


@contextmanager
def _terminations() -> Iterator[None]:
    """Turn SIGTERM into an exception."""

    def terminate(number: int, frame: Any) -> None:
        raise _TerminatedError

    if threading.current_thread() is not threading.main_thread():  # where Python lets nobody set it
        yield
        return
    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def build_parser() -> argparse.ArgumentParser:
    """The commands and their options; a command sets ``run``, a function of the parsed arguments."""
    parser = argparse.ArgumentParser(
        prog="latentviews",
        description="Hidden classes from several views of each object, with no assumed shape.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"latentviews {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for add in (demo.add_demo, fit.add_fit, apply.add_predict, apply.add_report, apply.add_info, crowd.add_crowd):
        add(commands)
    return parser
