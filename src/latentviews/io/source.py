"""What every reader gives: the names of a file's columns, and a way to the numbers in some of them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import numpy as np

VALUES, ROWS = 2**18, 2**16  # of a piece of a file, at most
Piece = tuple[str, np.ndarray]  # where rows stand in a file, such as "row group 3 of 12", and the rows
MixedPiece = tuple[str, list[np.ndarray]]  # the same column by column: numbers, or strings and None


class InputError(ValueError):
    r"""A file that cannot be read as a table; the message says where it fails and what to do.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from latentviews.io import InputError, read_table
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "names.csv"
    >>> _ = path.write_text("name,born\nann,1970\nbob,soon\n")
    >>> try:
    ...     read_table(path, ["born"])
    ... except InputError as error:
    ...     print(str(error).partition(", ")[2].partition(";")[0])
    row 2 (line 3), column 'born': 'soon' is not a number
    """


def as_names(option: str, given: Any) -> list[str]:
    """What an option that is a list of names, of columns or of marks, holds."""
    found = None if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
    if found is None or not all(isinstance(name, str) for name in found):
        raise InputError(f"The option `{option}` is a list of strings; got {given!r:.60}.")
    return found


def as_columns(given: Any) -> list[str]:
    """The columns that are asked for, each once."""
    found = as_names("columns", given)
    if not found or len(set(found)) < len(found):
        raise InputError(f"The option `columns` names at least one column, and each once; got {found!r:.60}.")
    return found


@dataclass(frozen=True, eq=False)
class Source:
    """A file that was opened."""

    format: str
    names: list[str]
    read: Callable[[list[int]], np.ndarray]  # some columns, (n, len(columns)), NaN where a value is missing
    aliases: dict[str, str] = field(default_factory=dict)  # other names of columns
    usual: list[int] | None = None  # the columns that are read if none are named; None for all
    texts: list[int] = field(default_factory=list)  # columns of text, which are read where they are named alone
    tops: dict[str, float] = field(default_factory=dict)  # of columns on an instrument's scale, its upper end
    compensated: bool = False
    pieces: Callable[[list[int]], Iterator[Piece]] | None = None  # as `read`, a piece at a time; None where it cannot
    count: Callable[[], int] | None = None  # the number of rows, where pieces are read
    mixed: Callable[[list[int]], Iterator[MixedPiece]] | None = None  # as `pieces`, texts among the columns

    def find(self, wanted: list[str], path: Any) -> list[int]:
        """The places of columns, or a sentence that names those that are not there and their nearest matches."""
        absent = [name for name in wanted if name not in self.names and name not in self.aliases]
        if absent:
            raise InputError(f"{path} has no {_listed('column', absent)}{self._instead(absent, wanted)}")
        places = []
        for name in wanted:
            name = name if name in self.names else self.aliases[name]
            if self.names.count(name) > 1:
                both = [str(j + 1) for j, other in enumerate(self.names) if other == name]
                raise InputError(f"{path} has the column {name!r} in places {' and '.join(both)}; rename one of them.")
            places.append(self.names.index(name))
        return places

    def _instead(self, absent: list[str], wanted: list[str]) -> str:
        """What may have been meant; columns that are wanted by their own name are not."""
        known = {name.casefold(): name for name in [*self.aliases, *self.names] if name not in wanted}
        near = [known[m] for name in absent for m in get_close_matches(name.casefold(), known, 2)]
        if near and len(self.names) > 1:
            return f"; did you mean {' or '.join(map(repr, dict.fromkeys(near)))}?"
        if len(self.names) == 1:
            only = f"{self.names[0]!r:.80}"
            return f"; it has a single column, {only}. Is its delimiter another one? Set the option `delimiter`."
        shown = ", ".join(map(repr, self.names[:20]))
        return f"; it has {shown}{', …' if len(self.names) > 20 else ''}."


def without_marks(source: Source, marks: Sequence[float]) -> Source:
    """The same with NaN in the place of numbers that stand for missing values."""

    def cleared(values: np.ndarray) -> np.ndarray:
        return np.where(np.isin(values, marks), np.nan, values) if values.dtype.kind in "biuf" else values

    def read(columns: list[int]) -> np.ndarray:
        return cleared(source.read(columns))

    def pieces(columns: list[int]) -> Iterator[Piece]:
        return ((where, cleared(rows)) for where, rows in source.pieces(columns)) if source.pieces else iter(())

    def mixed(columns: list[int]) -> Iterator[MixedPiece]:
        return (
            ((where, list(map(cleared, parts))) for where, parts in source.mixed(columns)) if source.mixed else iter(())
        )

    return replace(source, read=read, pieces=source.pieces and pieces, mixed=source.mixed and mixed)


def _listed(noun: str, names: list[str]) -> str:
    return f"{noun}{'s' if len(names) > 1 else ''} {', '.join(map(repr, names))}"


def at_once(n_columns: int) -> int:
    """Rows of a piece: some megabytes, however many columns."""
    return max(min(VALUES // max(n_columns, 1), ROWS), 1)


def numbered(size: int) -> list[str]:
    """Names for columns that have none: 1, 2 and so on."""
    return [str(j + 1) for j in range(size)]


def require(module: str, reason: str) -> Any:
    """An optional module, or a sentence on how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise InputError(f"{reason} needs {package}; install it with `pip install latentviews[io]`.") from error
