"""Which columns of a file are used, in which views and as what: from options, names and what the columns hold."""

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from latentviews.cli.common import read, sample, written
from latentviews.cli.options import CommandError
from latentviews.cli.texts import LABEL, text_alone_told, text_notes, with_texts
from latentviews.cli.wanted import ALL_WHOLE, Wanted, refuse_mixed, shortened_names
from latentviews.io import Table, Words
from latentviews.io.words import open_words

FEW = 20  # a column of no more different whole numbers may hold categories
FAR = 1e5  # times the width of nine in ten values, from which on others are far
ROWS_PER_VALUE = 5  # fewer rows do not show that values come again and again
ASKED = ("csv", "parquet", "npy", "zarr", "fcs")  # where labels may stand among the columns; AnnData keeps them in obs
TAKEN_IN = "--columns takes it in, with a list of all columns that are wanted"
UNUSUAL = {  # what readers leave out, and why
    "fcs": "the time or number of events, which measures no cell",
    "csv": "without a name, as an index has it",
    "parquet": "an index that pandas wrote",
}
WRITTEN = ("csv", "parquet")  # formats whose columns can be read as words
OUT, CODES, NUMBER = "l", "c", "n"  # what may become of a column, by the letter that says so


@dataclass(frozen=True, eq=False)
class Chosen:
    """The table that is fitted, and what was decided about columns."""

    table: Table
    codes: tuple[str, ...]
    notes: tuple[str, ...] = ()  # sentences on what was left out, and why


# ---------------------------------------------------------------------------------------------------------- reading


def read_columns(arguments: argparse.Namespace, wanted: Wanted) -> Chosen:
    """The table of the columns that are wanted; where none are named, of all that hold numbers.

    Where the file is large and the options leave it to that, some rows are read, and the others stay where they are.
    """
    wanted = with_texts(arguments, wanted)
    with text_alone_told(arguments, wanted):
        table = sample(arguments, wanted.columns, wanted.excluded) if _some_do(arguments, wanted) else None
        if table is None or len(table.columns) < 3:  # two views are left to copulas
            table = read(arguments, wanted.columns, exclude=wanted.excluded, words=wanted.codes)
    notes = [*usual_notes(table, wanted), *text_notes(arguments, table, wanted)]
    same = constant(table, wanted.codes) if wanted.columns is None else []
    if same:
        rows = "all rows" if table.stored is None else f"all of {len(table.values):,} rows"
        notes.append(f"left out: {shortened_names(same)}, with one value in {rows}, which tells no classes apart.")
    codes = with_whole(table, wanted)
    table = with_values(arguments, table, codes)
    notes += _codes_told(table)
    if table.stored is not None:
        notes.append(
            f"{table.source} has {table.n_rows:,} rows, which stay in it: classes are those of all of them; columns "
            f"are looked at, and checks and the report made, by {len(table.values):,}, spread over the file."
        )
    chosen = _coded(Chosen(without(table, same), tuple(codes), tuple(notes)))
    return replace(chosen, notes=(*chosen.notes, *_far_values(chosen)))


def usual_notes(table: Table, wanted: Wanted) -> list[str]:
    """A sentence on columns that readers leave out: times of events, and indices without a name."""
    if wanted.columns is not None or table.format not in UNUSUAL:
        return []
    out = [name for name in table.left_out if name not in (*wanted.excluded, *table.texts)]
    what = UNUSUAL[table.format]
    return [f"left out: {shortened_names(out)}, {what}; {TAKEN_IN}."] if out else []


def _codes_told(table: Table) -> Iterator[str]:
    """A sentence on every column whose words or values are codes."""
    for name, scale in zip(table.columns, table.reading.transforms, strict=True):
        if isinstance(scale, Words):
            codes = [f"{place} is {word}" for place, word in enumerate(scale.values)]
            more = f" and {len(codes) - 10} more" if len(codes) > 10 else ""
            yield f"{name} is taken as codes: {', '.join(codes[:10])}{more}."


def _some_do(arguments: argparse.Namespace, wanted: Wanted) -> bool:
    """Whether options ask for nothing that all rows must be in memory for: codes, scales, or copulas."""
    two = 2 in (len(wanted.views) if isinstance(wanted.views, list) else 0, len(wanted.columns or ()))
    copulas = arguments.noise or arguments.dependence not in (None, "none") or two
    return not (copulas or wanted.codes or arguments.transform not in ("auto", "none"))


def _far_values(chosen: Chosen) -> Iterator[str]:
    """A sentence on every column with values so far from all others that they would rule the classes."""
    for name, column in zip(chosen.table.columns, chosen.table.values.T, strict=True):
        known = np.flatnonzero(~np.isnan(column))
        if name in chosen.codes or not len(known):
            continue
        low, middle, high = np.quantile(column[known], [0.05, 0.5, 0.95])
        far = known[np.abs(column[known] - middle) > FAR * max(high - low, np.finfo(float).tiny)]
        if len(far) and high > low:
            yield (
                f"{name} holds {column[far[0]]:.3g} in row {chosen.table.places[far[0]] + 1:,}"
                + (f" and {len(far) - 1:,} more such values" if len(far) > 1 else "")
                + f", while nine in ten lie between {low:.3g} and {high:.3g}; the classes will be about that. Take "
                "such rows out, or leave the cells empty."
            )


def constant(table: Table, codes: list[str]) -> list[str]:
    """Columns with one value and nothing else, unless all are so."""
    same = [name for name, column in zip(table.columns, table.values.T, strict=True) if np.all(column == column[0])]
    return [name for name in same if name not in codes] if len(same) < len(table.columns) else []


def with_whole(table: Table, wanted: Wanted) -> list[str]:
    """The codes that are asked for, with all columns of few different whole numbers where `--codes whole` says so."""
    if ALL_WHOLE not in wanted.codes or ALL_WHOLE in (*table.columns, *table.left_out):  # a column of that name
        return wanted.codes
    named = [name for name in wanted.codes if name != ALL_WHOLE]
    found = []
    for j, name in enumerate(table.columns):
        column = _raw(table, j)
        if name not in named and not LABEL.fullmatch(name) and _suspicion(name, column) is not None:
            found.append(name)
    if not found:
        raise CommandError(
            f"--codes whole takes all columns of at most {FEW} different whole numbers, and there is none; leave it "
            "out."
        )
    codes = [*named, *found]
    if isinstance(wanted.views, list):
        refuse_mixed(wanted.views, codes)
    return codes


def with_values(arguments: argparse.Namespace, table: Table, codes: list[str]) -> Table:
    """The same with codes of few different numbers that are not whole read as words, as the file writes them."""
    scales, values = list(table.reading.transforms), table.values
    for name in codes:
        j = table.columns.index(name) if name in table.columns else -1
        if j < 0 or scales[j] is not None or table.format not in WRITTEN:
            continue
        known = values[:, j][~np.isnan(values[:, j])]
        if np.array_equal(known, np.round(known)) or len(np.unique(known)) > FEW:
            continue
        source = open_words(arguments.file, **written(arguments))
        words = source.read(source.find([name], arguments.file))[:, 0]
        pairs = sorted({(value, word) for value, word in zip(values[:, j], words, strict=True) if word is not None})
        if len(pairs) > len(np.unique(known)):
            raise CommandError(f"--codes names {name}, which writes one number in two ways; write it in one.")
        scales[j] = scale = Words(tuple(word for _, word in pairs))
        values[:, j] = scale(words)
    return replace(table, values=values, reading=replace(table.reading, transforms=tuple(scales)))


def _coded(chosen: Chosen) -> Chosen:
    """The same with codes as the whole numbers that they are in the file, on no scale."""
    table = chosen.table
    absent = [name for name in chosen.codes if name not in table.columns]
    if absent:
        raise CommandError(f"--codes names {', '.join(absent)}, which is no column that is used.")
    scales, values = list(table.reading.transforms), table.values
    for name in chosen.codes:
        j = table.columns.index(name)
        if isinstance(scales[j], Words):
            continue
        raw = _raw(table, j)
        known = raw[~np.isnan(raw)]
        if not np.array_equal(known, np.round(known)):
            value = known[known != np.round(known)][0]
            raise CommandError(
                f"--codes names {name}, which holds {value:g} and {len(np.unique(known)):,} different numbers in all; "
                f"codes are whole numbers or words, and in CSV and Parquet files any {FEW} different numbers or fewer."
            )
        values[:, j], scales[j] = raw, None
    reading = replace(table.reading, transforms=tuple(scales))
    return replace(chosen, table=replace(table, reading=reading))


def _raw(table: Table, j: int) -> np.ndarray:
    """A column before its scale, whole where it is so but for rounding."""
    column, scale = table.values[:, j], table.reading.transforms[j]
    if scale is None or isinstance(scale, Words):
        return column
    raw = scale.inverse(column)
    near = np.round(raw)
    return np.where(np.abs(raw - near) < 1e-6 * np.maximum(np.abs(raw), 1.0), near, raw)


# ------------------------------------------------------------------------------------- columns that may be no numbers


def settle(chosen: Chosen, ask: Callable[[str], str] | None) -> Chosen:
    """Leave out row numbers and labels, and tell codes from numbers, by ``ask`` or, where nobody is there, a rule.

    A column of whole numbers that is named like a label is left out. Another with few different values is taken as
    numbers, and a sentence says what else it could be.
    """
    out, codes, notes = [], list(chosen.codes), list(chosen.notes)
    doubtful: dict[str, int] = {}
    for j, name in enumerate(chosen.table.columns):
        if name in chosen.codes:
            continue
        column, places = _raw(chosen.table, j), chosen.table.places
        step = _even_step(column, places)
        if step:
            out.append(name)
            counted = step == 1 and column[0] - places[0] in (0, 1)
            how = "numbers the rows" if counted else f"rises by {step:g} from row to row"
            notes.append(f"left out: {name}, which {how}; {TAKEN_IN}.")
            continue
        what = _suspicion(name, column)
        if what is None:
            if _never_falls(column):
                notes.append(
                    f"{name} never falls from row to row, as the time of a measurement does, and is taken as a "
                    f"measurement; --exclude {name} leaves it out."
                )
            continue
        usual = OUT if LABEL.fullmatch(name) else NUMBER
        answer = usual if ask is None else ask(f"Column {name} holds {what}. " + _question(usual))
        answer = answer.strip().casefold()[:1] or usual
        if answer == OUT:
            out.append(name)
            notes.append(f"left out: {name}, which holds {what} and is taken for a label; {TAKEN_IN}.")
        elif answer == CODES:
            codes.append(name)
        elif ask is None:
            doubtful[name] = len(np.unique(column[~np.isnan(column)]))
    if doubtful:
        notes.append(_doubt(doubtful))
    kept = without(chosen.table, out)
    return _coded(replace(chosen, table=kept, codes=tuple(codes), notes=tuple(notes)))


def _doubt(doubtful: dict[str, int]) -> str:
    """What is taken as numbers and could be categories, by how many different ones columns hold."""
    least, most = min(doubtful.values()), max(doubtful.values())
    count = f"{least}" if least == most else f"{least} to {most}"
    hold = f"{'holds' if len(doubtful) == 1 else 'hold'} {count} different whole numbers"
    return (
        f"{shortened_names(list(doubtful))} {hold}{' each' if len(doubtful) > 1 else ''}, taken as numbers; --codes "
        f"takes them as categories, {'`--codes whole` all, ' if len(doubtful) > 1 else ''}--exclude leaves them out."
    )


def _question(usual: str) -> str:
    letters = "/".join(letter.upper() if letter == usual else letter for letter in (OUT, CODES, NUMBER))
    return f"Leave it out (l), take it as codes (c) or as numbers (n)? [{letters}] "


def _even_step(column: np.ndarray, places: np.ndarray) -> float:
    """By how much a column that numbers the rows, or is their time, rises from each to the next; zero for others."""
    steps = np.diff(column) / np.diff(places)
    even = len(column) > FEW and steps[0] > 0 and np.allclose(steps, steps[0], rtol=1e-6, atol=0.0)
    return float(steps[0]) if even else 0.0


def _never_falls(column: np.ndarray) -> bool:
    """Whether a column of many values is in order, as time is."""
    return len(column) > FEW and len(np.unique(column)) > FEW and bool(np.all(np.diff(column) >= 0))


def _suspicion(name: str, column: np.ndarray) -> str | None:
    """What a column of whole numbers holds, where it may be a label; None for others."""
    known = column[~np.isnan(column)]
    if not len(known) or np.any(known != np.round(known)):
        return None
    values = np.unique(known)
    if not 2 <= len(values) <= len(known) / ROWS_PER_VALUE or (len(values) > FEW and not LABEL.fullmatch(name)):
        return None
    shown = ", ".join(f"{value:g}" for value in values[:5]) + (", …" if len(values) > 5 else "")
    return f"whole numbers, {len(values)} different ones ({shown})"


def ask_at_terminal(arguments: argparse.Namespace) -> Callable[[str], str] | None:
    """A way to ask whoever is at the terminal; None where nobody is, or where nothing is to be printed."""
    silent = arguments.quiet or arguments.json
    if silent or any(stream is None or not stream.isatty() for stream in (sys.stdin, sys.stderr)):
        return None

    def ask(question: str) -> str:
        sys.stderr.write(question)
        sys.stderr.flush()
        return sys.stdin.readline()

    return ask


def without(table: Table, names: list[str]) -> Table:
    """The table without some columns."""
    if not names:
        return table
    kept = [j for j, name in enumerate(table.columns) if name not in names]
    if not kept:
        raise CommandError(
            f"{table.source} holds nothing but row numbers and labels, {', '.join(names)}; --columns takes them in."
        )
    reading = table.reading
    columns, transforms = tuple(reading.columns[j] for j in kept), tuple(reading.transforms[j] for j in kept)
    smaller = replace(reading, columns=columns, transforms=transforms)
    stored = table.stored and table.stored.only(smaller.columns)
    return replace(
        table, values=table.values[:, kept], reading=smaller, left_out=(*table.left_out, *names), stored=stored
    )
