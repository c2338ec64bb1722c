"""What the commands share: their options, what they say, and a report where the library can write one."""

import argparse
import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from latentviews.io import TRANSFORMS, InputError, Reading, Table, read_table
from latentviews.io.transforms import COFACTOR
from latentviews.saving import load

MODEL, SUMMARY, REPORT = "model.latentviews", "summary.json", "report.html"


class CommandError(Exception):
    """Something the person at the keyboard can put right; the message says what."""


def new_command(commands: Any, name: str, help: str, description: str, examples: str) -> argparse.ArgumentParser:
    """A parser for one command."""
    return commands.add_parser(
        name,
        help=help,
        description=description,
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def add_file(parser: argparse.ArgumentParser) -> None:
    """The data, and how text in it is written."""
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="a CSV, TSV (gzipped or not), Parquet, NPY, Zarr, FCS or h5ad file"
    )
    text = parser.add_argument_group("how text files are written, where that is not found out")
    text.add_argument("--delimiter", metavar="C", help=r"the character between cells; \t for a tab")
    text.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="whether the first line names the columns; without names they are called 1, 2 and so on",
    )


def add_scales(parser: argparse.ArgumentParser) -> None:
    """How columns are transformed before anything else."""
    scales = parser.add_argument_group("scales (cytometry)")
    scales.add_argument(
        "--transform",
        choices=TRANSFORMS,
        default="auto",
        help="the scale of fluorescence in FCS files, or of all columns in others (default: auto, which is logicle for "
        "FCS and none for others)",
    )
    scales.add_argument(
        "--cofactor",
        type=float,
        default=COFACTOR,
        metavar="X",
        help=f"of arcsinh (default: {COFACTOR:g}, usual for fluorescence; 5 for mass cytometry)",
    )
    scales.add_argument("--no-compensation", action="store_true", help="do not use the spillover matrix of an FCS file")


def add_manners(parser: argparse.ArgumentParser, *, writes: bool = True) -> None:
    """What is printed and overwritten."""
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    if writes:
        parser.add_argument("--quiet", action="store_true", help="print nothing but errors, and show no progress")
        parser.add_argument("--force", action="store_true", help="replace files that are already there")


def read(arguments: argparse.Namespace, columns: list[str] | None = None, reading: Reading | None = None) -> Table:
    """The table in FILE, as the options say."""
    delimiter = arguments.delimiter and arguments.delimiter.replace("\\t", "\t")
    if delimiter and len(delimiter) != 1:
        raise CommandError(f"--delimiter is one character; got {arguments.delimiter!r}.")
    return read_table(
        arguments.file,
        columns,
        reading=reading,
        transform=getattr(arguments, "transform", "auto"),
        cofactor=getattr(arguments, "cofactor", COFACTOR),
        compensate=not getattr(arguments, "no_compensation", False),
        delimiter=delimiter,
        header=arguments.header,
    )


def load_model(path: Path) -> Any:
    """A model from its file, or from the directory of a fit."""
    inside = path / MODEL
    if path.is_dir():
        if not inside.exists():
            raise CommandError(f"{path} is a directory without {MODEL}; name one that `latentviews fit` wrote.")
        path = inside
    try:
        model = load(path)
    except OSError as error:
        raise CommandError(f"{path} cannot be read ({(error.strerror or str(error)).lower()}).") from error
    if not hasattr(model, "predict_proba") or not hasattr(model, "weights_"):
        raise CommandError(f"{path} holds a {type(model).__name__}, which is no fitted mixture.")
    return model


def read_for(model: Any, arguments: argparse.Namespace) -> Table:
    """The table in FILE, read as the one that the model was fitted to."""
    reading = getattr(model, "reading_", None)
    if reading is not None:
        return read(arguments, reading=reading)
    names = getattr(model, "feature_names_in_", None)  # a model that was saved in Python
    table = read(arguments, None if names is None else list(map(str, names)))
    if len(table.columns) != model.n_features_in_:
        raise InputError(
            f"{arguments.file} has {len(table.columns)} columns, but the model was fitted to {model.n_features_in_}."
        )
    return table


def rows_of(table: Table, model: Any) -> Any:
    """The table as the model was fitted to it: with names, or without."""
    return table.frame() if hasattr(model, "feature_names_in_") else table.values


def view_names(model: Any) -> list[str]:
    """The columns of every view, joined by +."""
    names = getattr(model, "feature_names_in_", range(model.n_features_in_))
    return ["+".join(str(names[j]) for j in view) for view in model.views_]


def labels_of(posteriors: np.ndarray) -> np.ndarray:
    """The most probable class of every row; -1 for noise, which has what the classes leave to one."""
    noise = 1 - posteriors.sum(axis=1)
    return np.where(noise > posteriors.max(axis=1), -1, posteriors.argmax(axis=1))


@contextmanager
def gathered_warnings(found: list[str]) -> Iterator[None]:
    """Put warnings on a list, each once, rather than on the terminal."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    found.extend(dict.fromkeys(str(one.message) for one in caught if issubclass(one.category, UserWarning)))


@contextmanager
def blamed_on(path: Path) -> Iterator[None]:
    """What is wrong with the rows of a file, as a sentence that names it."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise CommandError(f"{path}: {error}") from error


def check_not_input(out: Path, path: Path) -> None:
    """Refuse to write over the file that is read."""
    if out.exists() and path.exists() and out.samefile(path):
        raise CommandError(f"--out {out} is the file that is read; name another.")


def tell(arguments: argparse.Namespace, text: str, summary: dict[str, Any]) -> None:
    """The summary on standard output, for people or machines, and warnings on standard error."""
    if getattr(arguments, "quiet", False):
        return
    for warning in summary.get("warnings", []):
        print(f"warning: {warning}", file=sys.stderr)
    print(json.dumps(summary, indent=2, ensure_ascii=False) if arguments.json else text)
