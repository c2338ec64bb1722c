"""``latentviews info``: what is in a file or a model; of a file, without importing any model."""

import argparse
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from latentviews._sentences import counted
from latentviews.cli.columns import ASKED, Chosen, constant, settle
from latentviews.cli.common import gathered_warnings, read, tell, written
from latentviews.cli.options import MODEL, CommandError
from latentviews.cli.texts import no_categories
from latentviews.cli.wanted import listed_names, split_names
from latentviews.io import InputError, Reading, Table, open_source, read_table, unusable_columns
from latentviews.io.source import Source

NUMBERS = ("least", "median", "most")
TEXT = "text"  # why a column is left out that --codes takes in


def run_info(arguments: argparse.Namespace) -> None:
    """Print."""
    path = arguments.file
    if is_model(path):
        from latentviews.cli.model_info import tell_model  # a table is told of without what models need

        tell_model(arguments)
    else:
        told: list[str] = []
        with gathered_warnings(told), arguments.leaving_at_once():
            table, unusable = read_usable(arguments)
        out = left_out_by_fit(table) if arguments.columns is None else []
        same = constant(table, []) if arguments.columns is None and len(table.values) else []
        summary = summarize_table(table) | {"unusable": unusable, "left_out_by_fit": out, "constant": same}
        summary["warnings"] = told
        tell(arguments, describe_table(table, summary), summary)


def read_usable(arguments: argparse.Namespace) -> tuple[Table, dict[str, str]]:
    """The columns asked for, or all that hold numbers; and why the others do not."""
    if arguments.columns is not None:
        return read(arguments, split_names(arguments.columns)), {}
    try:
        table = read(arguments)
        return table, dict.fromkeys(table.texts, TEXT) | no_categories(arguments, table.texts)
    except InputError:
        source = open_source(arguments.file, compensate=False, **written(arguments))
        unusable = unusable_columns(arguments.file, **written(arguments))
        usable = [name for name in source.names if name not in unusable]
        if set(unusable) == {source.names[j] for j in source.texts} and not usable:
            return text_alone(arguments, source)
        if not unusable or not usable:
            raise
        return read(arguments, usable), unusable


def text_alone(arguments: argparse.Namespace, source: Source) -> tuple[Table, dict[str, str]]:
    """A table of nothing but text, with no column that was read, and which text is of no use."""
    names = tuple(source.names)
    table = read_table(arguments.file, words=names[:1], **written(arguments))
    bare = Table(table.values[:, :0], table.source, table.format, Reading((), ()), names, names)
    return bare, dict.fromkeys(names, TEXT) | no_categories(arguments, names)


def left_out_by_fit(table: Table) -> list[str]:
    """Row numbers and labels among the columns, which `fit` leaves out where nobody is asked."""
    if table.format not in ASKED:
        return []
    try:
        kept = settle(Chosen(table, ()), None).table.columns
    except CommandError:  # there is nothing else
        return []
    return [name for name in table.columns if name not in kept]


def is_model(path: Path) -> bool:
    """Whether a path is to be read as a model, whole or damaged, rather than as a table."""
    if (path / MODEL).exists() or path.suffix == Path(MODEL).suffix:
        return True
    return zipfile.is_zipfile(path) and not path.name.endswith(".zarr.zip")


def summarize_table(table: Table) -> dict[str, Any]:
    """What is in a table, for machines."""
    scales = zip(table.columns, table.reading.transforms, table.values.T, strict=True)
    columns = []
    for name, scale, column in scales:
        known = column[~np.isnan(column)]
        low, middle, high = np.quantile(known, [0, 0.5, 1]).tolist() if len(known) else (None, None, None)
        columns.append(
            {
                "name": name,
                "least": low,
                "median": middle,
                "most": high,
                "missing": int(np.isnan(column).sum()),
                "scale": None if scale is None else repr(scale),
            }
        )
    return {
        "file": table.source,
        "format": table.format,
        "n_rows": len(table.values),
        "columns": columns,
        "left_out": list(table.left_out),
    }


def describe_table(table: Table, summary: dict[str, Any]) -> str:
    """The same for people."""
    unusable, by_fit = summary["unusable"], summary["left_out_by_fit"]
    width = max(map(len, ("column", *table.columns)))
    lines = [
        f"{summary['file']}: {summary['format']}, {counted(summary['n_rows'], 'row')}, "
        f"{counted(len(table.columns), 'column')}",
    ]
    if table.columns:
        lines += ["", f"{'column':<{width}}  {'least':>11}  {'median':>11}  {'most':>11}  {'missing':>9}  scale"]
    for one in summary["columns"]:
        numbers = "  ".join(f"{'-' if one[key] is None else format(one[key], '.5g'):>11}" for key in NUMBERS)
        scale = "left out by `fit`" if one["name"] in (*by_fit, *summary["constant"]) else one["scale"] or "as it is"
        lines.append(f"{one['name']:<{width}}  {numbers}  {one['missing']:>9,}  {scale}")
    if by_fit:
        them = "row numbers, times or labels, which `fit` leaves out unless --columns names"
        lines += ["", f"{them} {'it' if len(by_fit) == 1 else 'them'}: {listed_names(by_fit)}"]
    if summary["constant"]:
        lines += ["", f"one value in all rows, which `fit` leaves out: {listed_names(summary['constant'])}"]
    left_out = [name for name in summary["left_out"] if name not in unusable]
    if left_out:
        lines += ["", f"left out unless named: {listed_names(left_out)}"]
    if unusable:
        texts = [name for name, why in unusable.items() if why == TEXT]
        others = ", ".join(f"{name} ({why})" for name, why in unusable.items() if why != TEXT)
        lines += ["", f"text, which `fit` takes where --codes names it: {listed_names(texts)}"] if texts else []
        lines += ["", f"of no use to `fit`: {others}"] if others else []
    return "\n".join(lines)
