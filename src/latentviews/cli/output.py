"""Files that appear whole or not at all, and never in place of others unless that is wanted."""

import errno
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from latentviews.cli.early import check_free
from latentviews.cli.options import CommandError
from latentviews.io.saving import name_aside, remove_leftovers, written_aside

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def output_directory(path: Path, names: Sequence[str], *, force: bool, ours: Sequence[str] = ()) -> Iterator[Path]:
    """A directory to write files into; at the end they appear in ``path``, all at once.

    ``names`` are those that will be written, and ``ours`` all that other runs may have written: the latter are removed
    where the former replace them, so that a directory never holds results of two runs.
    """
    check_free([path / name for name in names], path, force)
    base = path if path.is_dir() else next(parent for parent in path.absolute().parents if parent.exists())
    for place in {base, path.absolute().parent}:  # a run that was killed may have found no directory yet
        remove_leftovers(place)
    aside = base / name_aside(path.name)
    try:
        with _failures_told(path):
            _make(aside)
        with _failures_told(path, FULL):
            yield aside
        check_free([path / name for name in names], path, force)
        with _failures_told(path), _uninterrupted():
            _publish(aside, path, ours)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


@contextmanager
def output_file(path: Path, *, force: bool) -> Iterator[Path]:
    """A name to write a file to; at the end it appears as ``path``."""
    check_free([path], path.parent, force)
    with _failures_told(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):  # found out before any work is done
            pass
    with _failures_told(path, FULL), written_aside(path) as aside:
        yield aside


@contextmanager
def _failures_told(path: Path, numbers: Container[int] | None = None) -> Iterator[None]:
    """Errors of the system in a sentence; where others may come from reading, only those with some ``numbers``."""
    try:
        yield
    except OSError as error:
        if numbers is None or error.errno in numbers:
            raise cannot_write(path, error) from error
        raise


def cannot_write(path: Path, error: OSError) -> CommandError:
    """A sentence on why nothing can be written there."""
    reason = (error.strerror or str(error)).lower()
    return CommandError(f"cannot write to {error.filename2 or path} ({reason}); name another place with --out.")


def _make(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()


def _publish(aside: Path, path: Path, ours: Sequence[str]) -> None:
    """One rename where ``path`` is new; else one rename per file, and no file of an older run stays."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        aside.rename(path)
        return
    new = sorted(file.name for file in aside.iterdir())
    for name in new:
        os.replace(aside / name, path / name)
    for name in set(ours) - set(new):
        (path / name).unlink(missing_ok=True)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let signals pass by for the moment that the renames take: the work is done."""
    if threading.current_thread() is not threading.main_thread():  # where Python lets nobody set them
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
