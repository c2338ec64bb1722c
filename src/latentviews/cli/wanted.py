"""What the options ask for, checked before anything heavy is imported."""

import argparse
import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from latentviews.cli.options import CommandError

ALL_TEXTS, ALL_WHOLE = "text", "whole"  # of --codes: all columns that hold text, or few different whole numbers


class Wanted(NamedTuple):
    """What the options say of columns."""

    views: list[list[str]] | str | None  # the columns of every view, "auto", or None for one view per column
    view_names: list[str | None]  # those that were given
    columns: list[str] | None  # None for all that can be used
    excluded: list[str]
    codes: list[str]


def parse_classes(text: str) -> int | str:
    """-k as a number or "auto"."""
    if text == "auto":
        return text
    if not text.isdecimal() or int(text) < 1:
        raise CommandError(f"-k is a number of at least 1, or auto; got {text!r}.")
    return int(text)


def check_noise(asked: str | None, noise: bool) -> None:
    """Refuse noise without the copulas that it needs."""
    if noise and asked in ("none", "auto"):
        raise CommandError(f"--noise goes with --dependence copula, not with {asked}; leave one out.")


def stem(path: Path) -> str:
    """The name of a file without what tells its format."""
    return path.name.partition(".")[0] or path.name


def parse_columns(arguments: argparse.Namespace) -> Wanted:
    """--views, --columns, --exclude and --codes, checked against each other."""
    columns, excluded, codes = (
        None if text is None else split_names(text) for text in (arguments.columns, arguments.exclude, arguments.codes)
    )
    excluded, codes = excluded or [], codes or []
    views, names = parse_views(arguments.views)
    if isinstance(views, list):
        if columns is not None:
            raise CommandError("--views names the columns already; --columns goes with `--views auto` or none.")
        columns = [name for view in views for name in view]
    for option, given in (("--exclude", excluded), ("--codes", codes)):
        _refuse_twice(option, given)
    for option, given in (("--views" if isinstance(views, list) else "--columns", columns or []), ("--codes", codes)):
        both = [name for name in given if name in excluded]
        if both:
            raise CommandError(f"{option} and --exclude both name {', '.join(both)}; leave it out of one of them.")
    stray = [name for name in codes if columns is not None and name not in (*columns, ALL_TEXTS, ALL_WHOLE)]
    if stray:
        raise CommandError(f"--codes names {', '.join(stray)}, which is not among the columns that are used.")
    if isinstance(views, list):
        refuse_few([",".join(view) for view in views], arguments, codes, "--views")
        refuse_mixed(views, codes)
    return Wanted(views, names, columns, excluded, codes)


def parse_views(views: list[str] | None) -> tuple[list[list[str]] | str | None, list[str | None]]:
    """--views as "auto", None or lists of columns, and the names before them."""
    if views is None or views == ["auto"]:
        return (None if views is None else "auto"), []
    parts = [_name_and_columns(view) for view in views]
    groups, names = [split_names(columns) for _, columns in parts], [name for name, _ in parts]
    flat = [name for group in groups for name in group]
    twice = sorted({name for name in flat if flat.count(name) > 1})
    if twice:
        raise CommandError(f"--views names {', '.join(twice)} more than once; a column belongs to one view.")
    _refuse_twice("--views", [name for name in names if name is not None])
    return groups, names


def _name_and_columns(view: str) -> tuple[str | None, str]:
    """The name before the first = that is not inside quotes, and the rest."""
    found = re.match(r'([^"=]*)=(.*)', view, re.DOTALL)
    if found is None:
        return None, view
    name = found[1].strip()
    if not name:
        raise CommandError(f"{view!r} has no name before its =; write NAME=COLUMNS, or put a column with = in quotes.")
    return name, found[2]


def _refuse_twice(option: str, names: list[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise CommandError(f"{option} names {', '.join(twice)} more than once.")


def refuse_few(came: Sequence[str], arguments: argparse.Namespace, codes: Sequence[str], what: str) -> None:
    """Three views determine the classes; with copulas, which are for numbers, two may."""
    given = "--noise" if arguments.noise else f"--dependence {arguments.dependence}"
    copulas = arguments.noise or arguments.dependence in ("copula", "auto")
    alone = not copulas and (arguments.dependence == "none" or len(codes) > 0)
    if len(came) >= (3 if alone else 2):
        return
    needed = f"two views with {given}" if copulas else "three views, or two with --dependence copula"
    needed = "three views where some are codes" if codes and not copulas else needed
    raise CommandError(
        f"{what} needs at least {needed}, since fewer do not determine the classes; got {len(came)}, "
        f"{' and '.join(came)}."
    )


def refuse_copulas(arguments: argparse.Namespace, codes: Sequence[str]) -> None:
    """Copulas are for numbers, whose order they follow."""
    if codes and (arguments.noise or arguments.dependence == "copula"):
        given = "--noise" if arguments.noise else "--dependence copula"
        which, they = shortened_names(codes), "is" if len(codes) == 1 else "are"
        raise CommandError(f"{given} is for columns of numbers, and {which} {they} taken as codes; leave one out.")


def refuse_mixed(views: list[list[str]], codes: list[str]) -> None:
    """Codes and numbers have no distance between them, so that one view cannot hold both."""
    mixed = next((view for view in views if 0 < sum(name in codes for name in view) < len(view)), None)
    if mixed is not None:
        raise CommandError(f"The view {','.join(mixed)} holds codes and numbers; give each a view of its own.")


def listed_names(names: Sequence[str]) -> str:
    """Names as `split_names` reads them."""
    return ", ".join(f'"{name}"' if "," in name else name for name in names)


def shortened_names(names: Sequence[str], most: int = 10) -> str:
    """The first of them, and how many more there are."""
    return listed_names(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def split_names(text: str) -> list[str]:
    """Names with commas between; quotes around a name that has one inside."""
    names = [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
    if not names or not all(names):
        raise CommandError(f"{text!r} does not name columns; write them with commas between.")
    return names
