"""What the commands share: reading files, and what is said of them; it imports no model."""

import argparse
import json
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from latentviews._constants import COFACTOR
from latentviews._sentences import counted
from latentviews.cli.options import CommandError
from latentviews.io import Reading, Table, read_table, sample_table

SAMPLED = 100_000  # rows of a large file that columns are looked at by, and the report is made of


def read(
    arguments: argparse.Namespace,
    columns: list[str] | None = None,
    reading: Reading | None = None,
    exclude: Sequence[str] = (),
    words: Sequence[str] = (),
) -> Table:
    """The table in FILE, as the options say."""
    return read_table(
        arguments.file,
        columns,
        exclude=exclude,
        words=words,
        reading=reading,
        transform=getattr(arguments, "transform", "auto"),
        cofactor=getattr(arguments, "cofactor", COFACTOR),
        compensate=not getattr(arguments, "no_compensation", False),
        **written(arguments),
    )


def sample(
    arguments: argparse.Namespace,
    columns: list[str] | None,
    exclude: Sequence[str] = (),
    reading: Reading | None = None,
) -> Table | None:
    """Some rows of the table in FILE where it is large; None where it is not."""
    options = written(arguments)
    options["missing"] += [] if reading is None else list(reading.missing)
    return sample_table(arguments.file, columns, exclude=exclude, most=SAMPLED, **options)


def written(arguments: argparse.Namespace) -> dict[str, Any]:
    """How FILE is written, as the options say."""
    return {"delimiter": arguments.delimiter, "header": arguments.header, "missing": list(arguments.missing)}


def source_of(table: Table) -> str:
    """What a report calls the rows that it is on."""
    if table.stored is None:
        return table.source
    return f"{len(table.values):,} of the {table.n_rows:,} rows of {table.source}"


def n_in_file(table: Table) -> int | None:
    """How many rows a file has of which some were read; None where all were."""
    return None if table.stored is None else table.n_rows


def _counted_classes(found: re.Match[str]) -> str:
    """A count of components, columns and so on, with the noun as the number asks for; components are classes here."""
    number, noun = int(found[1].replace(",", "")), found[2].replace("component", "class")
    return counted(number, noun, "classes" if noun == "class" else "")


def _ordinal(found: re.Match[str]) -> str:
    """1st, 2nd, 3rd, 4th, 11th."""
    number = int(found[1])
    ends = {1: "st", 2: "nd", 3: "rd"} if number % 100 not in (11, 12, 13) else {}
    return f"{number}{ends.get(number % 10, 'th')}"


SPOKEN: tuple[
    tuple[str, str | Callable[[re.Match[str]], str]], ...
] = (  # what sentences of the library call things, and what they are called here
    (r"[Tt]he option `compensate`", "--no-compensation"),
    (r"[Tt]he option `(\w+)`", r"--\1"),
    (
        r"A multi-view model needs at least \w+ views; got (\d+) from n_features.* Two views do not determine the "
        r"classes, unless `MultiViewMixture` is given dependence=\"copula\"",
        r"a fit needs at least three views, or two with --dependence copula; got \1",
    ),
    (r'dependence="(copula|auto)"', r"--dependence \1"),
    (r"dependence=None", "--dependence none"),
    (r", or see `agreement_` and `start_objectives_`", ", and see the report"),
    (r"; see `dependence.flagged\(\)`", "; see the report"),
    (r"Use `predict_proba`, not `predict`:", "Use the probabilities beside the labels, not the labels alone:"),
    (r"add rows or views, or widen `bandwidth`", "or add rows or views"),
    (
        r" A polish, a wider `bandwidth` or more rows would help; fewer classes might.",
        " More rows or fewer classes help.",
    ),
    (r"; raise its `max_iter`", "; in Python, raise its `max_iter`"),
    (r"; raise `max_iter` of `Copulas`", "; in Python, raise `max_iter` of `Copulas`"),
    (
        r"leave (these cells|the cell) empty \(NaN\)",
        r"leave \1 empty (--missing names a value that means so in every column)",
    ),
    (r"\(`likelihood_curve`(?! in Python)", "(`likelihood_curve` in Python"),
    (r"without `dependence`", "with --dependence none"),
    (r"\bn_components\b", "-k"),
    (
        r"With dependence, views are real columns; view \d+ has a kernel for discrete data\. Leave the view out, or "
        r"dependence at None\.",
        "copulas are for columns of numbers, and some are codes.",
    ),
    (r"dependence at None", "take --dependence none"),
    (r"; exchangeable must be False", ""),
    (r"Copulas\(noise=True\) smooth it", "--noise smooths it"),
    (r"With noise=False they have it", "Without --noise they have it"),
    (r"n_features = (?=\d)", ""),
    (r"got n_samples = (?=\d)", "got "),
    (r"(?<![\d.,])(\d[\d,]*) (component|column|class|row|sample)\((?:s|es)\)", _counted_classes),
    (r"(?<![\d.,])(\d[\d,]*) (component)s?\b", _counted_classes),
    (r"(?<![\d.,])1 classes\b", "1 class"),
    (r"\bcolumn\(s\)", "columns"),
    (r"\bfewer components\b", "fewer classes"),
    (r"\bof a component was\b", "of a class was"),
    (r"(\d+)-th\b", _ordinal),
    (r", add rows, or widen the bandwidth", ", or add rows"),
    (r", or give that view more columns or landmarks", ", or give that view more columns"),
    (r"; raise `pilot_size`, or leave the column out", "; leave the column out"),
    (r" \(in view \d+\)", ""),
)


OPTIONS = {"n_components": "-k", "random_state": "--seed"}  # those whose values are written alike in Python and here


def in_options(sentence: str) -> str:
    """A sentence of the library in the words of the command line."""
    for pattern, words in SPOKEN:
        sentence = re.sub(pattern, words, sentence)
    return sentence


@contextmanager
def gathered_warnings(found: list[str]) -> Iterator[None]:
    """Put warnings on a list, each once, rather than on the terminal."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    found.extend(dict.fromkeys(in_options(str(one.message)) for one in caught if issubclass(one.category, UserWarning)))


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
