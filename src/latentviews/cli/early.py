"""What can be told before the library is imported: wrong options, files that are not there or in the way."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from latentviews._files import why_unreadable
from latentviews.cli.options import LABELS, MODEL, REPORT, SUMMARY, CommandError
from latentviews.cli.wanted import check_noise, parse_classes, parse_columns, stem


def check(arguments: argparse.Namespace) -> None:
    """Refuse what cannot be done."""
    if arguments.command == "fit":
        parse_classes(arguments.classes)
        parse_columns(arguments)
        check_noise(arguments.dependence, arguments.noise)
        out = fit_place(arguments)
        check_free([out / name for name in fit_files(arguments)], out, arguments.force)
    if hasattr(arguments, "model"):
        model_file(arguments.model)
    path = getattr(arguments, "file", None)
    if path is not None and not (arguments.command == "info" and path.is_dir()):  # of a model
        fault = why_unreadable(path)
        if fault:
            raise CommandError(fault)


def fit_place(arguments: argparse.Namespace) -> Path:
    """Where ``fit`` writes."""
    return arguments.out or Path(stem(arguments.file))


def fit_files(arguments: argparse.Namespace) -> list[str]:
    """What ``fit`` writes, whatever it reads."""
    return [MODEL, LABELS[arguments.labels_format], SUMMARY, *([] if arguments.no_report else [REPORT])]


def model_file(path: Path) -> Path:
    """The file of a model, which may be named by the directory of a fit."""
    inside = path / MODEL
    if path.is_dir():
        if not inside.exists():
            raise CommandError(f"{path} is a directory without {MODEL}; name one that `latentviews fit` wrote.")
        return inside
    try:
        with open(path, "rb"):
            return path
    except OSError as error:
        raise CommandError(f"{path} cannot be read ({(error.strerror or str(error)).lower()}).") from error


def check_free(files: Sequence[Path], directory: Path, force: bool) -> None:
    """Refuse to write where something else is."""
    if directory.exists() and not directory.is_dir():
        raise CommandError(f"cannot write to {directory} (it is a file); name another place with --out.")
    taken = next((file for file in files if file.is_dir()), None)
    if taken is not None:
        raise CommandError(f"cannot write to {taken} (it is a directory); name another place with --out.")
    there = [str(file) for file in files if file.exists()]
    if there and not force:
        raise CommandError(f"{', '.join(there)} would be overwritten; pass --force, or name another place with --out.")
