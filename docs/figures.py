"""Figures of README and the pages, kept as the saved results have them: ``python docs/figures.py``.

Behind a figure stands, unseen by readers, where it comes from:

    1.04<!-- accuracy/results/parametric.json > normal, 10000 rows, separation 4 > summary > ratio > .2f -->

The file is below benchmarks/, steps lead into its ``results``, and the last part says how the number is written. A
step is a key, a place in a list, ``*`` for all entries, or ``field=value`` for the records that have this value
(``*`` and ``?`` stand for any letters). Of several numbers ``mean``, ``median``, ``min``, ``max`` or ``count``,
before the format, makes one; ``x100`` gives per cent. A test fails where a page differs from what this script would
write.
"""

import json
import re
import sys
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from statistics import fmean, median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FIGURE = re.compile(r"([-−]?[\d.,]*\d)?(<!-- (\w+/results/\S+\.json) > ([^<]*) > ([^<>]*) -->)")
SUMMARIES: dict[str, Callable[[list[float]], float]] = {
    "mean": fmean,
    "median": median,
    "min": min,
    "max": max,
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
    if name.isdigit() and isinstance(values[0], list):
        return [value[int(name)] for value in values]
    records = [record for value in values for record in (value if isinstance(value, list) else [value])]
    chosen = re.fullmatch(r"(\w+)=(.*)", name)
    if chosen:
        return [record for record in records if fnmatchcase(str(record[chosen[1]]), chosen[2])]
    return [record[name] for record in records]


def written(name: str, steps: str, how: str) -> str:
    """A figure as the results have it, in the way that is asked for."""
    numbers = [results(name)]
    for part in steps.split(" > "):
        numbers = step(numbers, part)
    *words, style = how.split()
    summary = next((SUMMARIES[word] for word in words if word in SUMMARIES), None)
    if summary is None and len(numbers) != 1:
        raise ValueError(f"{name} > {steps} has {len(numbers)} numbers; say mean, median, min, max or count.")
    number = summary(numbers) if summary else numbers[0]
    with localcontext(rounding=ROUND_HALF_UP):  # as people round
        return format(Decimal(repr(number)) * (100 if "x100" in words else 1), style).replace("-", "−")


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
