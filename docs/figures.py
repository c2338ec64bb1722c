"""Figures of README and the pages, kept as the saved results have them: ``python docs/figures.py``.

Behind a figure stands, unseen by readers, where it comes from:

    1.04<!-- accuracy/results/parametric.json > normal, 10000 rows, separation 4 > summary > ratio > .2f -->

The file is below benchmarks/, steps lead into its ``results``, and the last part says how the number is written. A
step is a key, a place in a list, ``*`` for all entries, ``field=value`` for the records that have this value, or
``largest field`` for the first of those in which it is largest (``*`` and ``?`` in keys and values stand for any
letters, ``[ab]`` for one of these). Of several numbers ``mean``, ``median``, ``min``, ``max``, ``sd`` or ``count``,
before the format, makes one; ``x100`` gives per cent, and other factors other units; ``.1e`` is written 1.2 · 10⁻³. A
ratio has two places, of as many numbers each:

    2.4<!-- speed/results/a.json > seconds > ours over speed/results/a.json > seconds > theirs > .1f -->

A test fails where a page differs from what this script would write, and where a figure has no such comment.
"""

import json
import re
import sys
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FIGURE = re.compile(r"([-−]?[\d.,]*\d(?: · 10⁻?[⁰¹²³⁴-⁹]+)?)?(<!-- (\w+/results/\S+\.json) > ([^<]*) > ([^<>]*) -->)")
OVER = re.compile(r" over (\w+/results/\S+\.json) > ")
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
SUMMARIES: dict[str, Callable[[list[float]], float]] = {
    "mean": fmean,
    "median": median,
    "min": min,
    "max": max,
    "sd": stdev,
    "count": len,
}


def pages() -> list[Path]:
    """README and every page of the documentation."""
    written = (page for page in sorted((ROOT / "docs").rglob("*.md")) if "_build" not in page.parts)
    return [ROOT / "README.md", *written]


@cache
def results(name: str) -> Any:
    """What a saved file holds."""
    return json.loads((ROOT / "benchmarks" / name).read_text())["results"]


def step(values: list[Any], name: str) -> list[Any]:
    """Where a step leads from all of the values."""
    if name == "*":
        return [entry for value in values for entry in (value.values() if isinstance(value, dict) else value)]
    if name.isdigit() and all(isinstance(value, list) for value in values):
        return [value[int(name)] for value in values]
    records = [record for value in values for record in (value if isinstance(value, list) else [value])]
    if not records or name in records[0]:
        return [record[name] for record in records]
    keys = [key for key in records[0] if fnmatchcase(key, name)]
    if keys:
        return [record[key] for record in records for key in keys]
    if name.startswith("largest "):
        return [max(records, key=lambda record: record[name.removeprefix("largest ")])]
    field, _, value = name.partition("=")
    return [record for record in records if field in record and fnmatchcase(str(record[field]), value)]


def numbers(name: str, steps: str) -> list[float]:
    """What is at a place of a saved file, all of it, or what is there over what is at another."""
    place, *other = OVER.split(steps, maxsplit=1)
    found = [results(name)]
    for part in place.split(" > "):
        found = step(found, part)
    return [one / below for one, below in zip(found, numbers(*other), strict=True)] if other else found


def written(name: str, steps: str, how: str) -> str:
    """A figure as the results have it, in the way that is asked for."""
    found = numbers(name, steps)
    *words, style = how.split()
    summary = next((SUMMARIES[word] for word in words if word in SUMMARIES), None)
    if not found or (summary is None and len(found) != 1):
        raise ValueError(f"{name} > {steps} has {len(found)} numbers; say mean, median, min, max, sd or count.")
    number = Decimal(repr(summary(found) if summary else found[0]))
    for factor in (word[1:] for word in words if word[0] == "x"):
        number *= Decimal(factor)
    with localcontext(rounding=ROUND_HALF_UP):  # as people round
        text = format(number, style)
    digits, _, power = text.partition("e")
    return (f"{digits} · 10{str(int(power)).translate(RAISED)}" if power else text).replace("-", "−")


def refreshed(text: str) -> str:
    """A page with every figure as the results have it; where it begins with a point, so does the new one."""

    def figure(found: re.Match[str]) -> str:
        before, reference, *where = found.groups()
        number = written(*where)
        short = re.sub(r"^([-−]?)0\.", r"\1.", number)  # and not that of 10.5
        return (short if re.match(r"[-−]?\.", before or "") else number) + reference

    return FIGURE.sub(figure, text)


if __name__ == "__main__":
    for page in pages():
        before = page.read_text()
        after = refreshed(before)
        if after != before:
            page.write_text(after)
            sys.stdout.write(f"{page.relative_to(ROOT)}: refreshed\n")
