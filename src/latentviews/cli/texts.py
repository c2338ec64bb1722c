"""Columns that hold text: which may be categories, and what is said of the others."""

import argparse
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

from latentviews._sentences import counted
from latentviews.cli.common import written
from latentviews.cli.options import CommandError
from latentviews.cli.wanted import ALL_TEXTS, Wanted, refuse_mixed, shortened_names
from latentviews.io import InputError, Table, open_source
from latentviews.io.source import Source
from latentviews.io.words import MOST

LABELS = "label|class|cluster|population|gate|group|target|batch|id|index|series|subject|patient"
LABEL = re.compile(rf"(?:.*[\W_])?({LABELS})s?(?:[\W_].*)?", re.I)  # names that labels have


def with_texts(arguments: argparse.Namespace, wanted: Wanted) -> Wanted:
    """The same with the columns that hold text among the codes, where `--codes text` asks for all.

    Columns with too many words for categories, such as names, and labels are not among them unless they are named.
    """
    if ALL_TEXTS not in wanted.codes:
        return wanted
    source = _opened(arguments)
    if ALL_TEXTS in source.names:  # a column of that name
        return wanted
    named = [name for name in wanted.codes if name != ALL_TEXTS]
    texts = [source.names[j] for j in source.texts if source.usual is None or j in source.usual]
    texts = [name for name in texts if name not in (*wanted.excluded, *named)]
    if wanted.columns is None:
        found, used = _Counted(source, texts).categories(), ""
    else:
        texts = found = [name for name in texts if name in wanted.columns]
        used = " among those that are used"
    if not texts:
        raise CommandError(f"--codes text takes all columns that hold text, and there is none{used}; leave it out.")
    codes = [*named, *found]
    if isinstance(wanted.views, list):
        refuse_mixed(wanted.views, codes)
    return wanted._replace(codes=codes)


@contextmanager
def text_alone_told(arguments: argparse.Namespace, wanted: Wanted) -> Iterator[None]:
    """Say what takes categories in where a file has no column of numbers, rather than that words are no numbers."""
    try:
        yield
    except InputError as error:
        source = _opened(arguments) if wanted.columns is None and not wanted.codes else None
        if source is None or not set(source.usual or range(len(source.names))) <= set(source.texts):
            raise
        found = _Counted(source, [source.names[j] for j in source.texts]).categories()
        if not found:
            raise
        raise CommandError(
            f"{arguments.file} holds nothing but text; `--codes text` takes {shortened_names(found)} as categories."
        ) from error


def text_notes(arguments: argparse.Namespace, table: Table, wanted: Wanted) -> list[str]:
    """Sentences on the columns of text that are left out although nobody said so."""
    texts = [name for name in table.texts if name not in wanted.excluded] if wanted.columns is None else []
    if not texts:
        return []
    seen = _Counted(_opened(arguments), texts, whole=table.stored is None)
    many, found = seen.many(), seen.categories()
    labels = [name for name in texts if name not in (*many, *found)]
    notes = [f"left out: {_which_hold([name])} {words}, too many for categories." for name, words in many.items()]
    if labels:
        them, are = ("it", "is taken for a label") if len(labels) == 1 else ("them", "are taken for labels")
        notes.append(f"left out: {_which_hold(labels)} text and {are}; --codes takes {them} in by name.")
    if found:
        notes.append(f"left out: {_which_hold(found)} text; --codes takes categories in, `--codes text` all.")
    return notes


def no_categories(arguments: argparse.Namespace, texts: Sequence[str]) -> dict[str, str]:
    """Those of some columns of text that `fit` does not take, even by name, and why."""
    words = _Counted(_opened(arguments), texts).words if texts else {}
    return {name: f"{len(own):,} words, too many for categories" for name, own in words.items() if len(own) > MOST}


def _which_hold(names: list[str]) -> str:
    return f"{shortened_names(names)}, which {'holds' if len(names) == 1 else 'hold'}"


def _opened(arguments: argparse.Namespace) -> Source:
    return open_source(arguments.file, compensate=False, **written(arguments))


class _Counted:
    """The different words of columns of text, in all rows or in the first piece of a file that is not read whole."""

    def __init__(self, source: Source, names: Sequence[str], *, whole: bool = True):
        self.words: dict[str, set[str]] = {name: set() for name in names}
        self.n_rows = 0
        if names and source.mixed is not None:
            pieces = source.mixed([source.names.index(name) for name in names])
            for _, columns in pieces if whole else islice(pieces, 1):
                self.n_rows += len(columns[0])
                for name, column in zip(names, columns, strict=True):
                    self.words[name] |= {word for word in column if word is not None}

    def many(self) -> dict[str, str]:
        """Columns with more words than categories may have, or hardly two rows to each, and how many words."""
        most = min(MOST, self.n_rows / 2)
        rows = counted(self.n_rows, "row")
        return {
            name: f"{counted(len(words), 'word')} in {rows}" for name, words in self.words.items() if len(words) > most
        }

    def categories(self) -> list[str]:
        """Those that have few words and no name of labels."""
        return [name for name in self.words if name not in self.many() and not LABEL.fullmatch(name)]
