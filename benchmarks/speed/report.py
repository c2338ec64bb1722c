"""What `latentviews` takes on the command line: to start, and for large tables the time, the memory and what it writes.

    python benchmarks/speed/report.py [--rows 1000000]

A CSV of ten columns and, with twice the rows, a Parquet file of three; three classes, whose number is left to the fit.
Beside them stands the time that pyarrow takes to read the same file alone. Memory is the peak of the whole command.
To start is also the time until a terminal shows a first word. Of small tables, what the report takes over the fit, as
the command itself tells its times. Linux only.
"""

import argparse
import json
import os
import pty
import subprocess
import sys
import tempfile
import time
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews.datasets import make_multiview

RESULTS = Path(__file__).with_name("results") / "report.json"
CLASSES = 3
CPU = itemgetter("processor seconds")
COMMAND = "from latentviews.cli import main; raise SystemExit(main())"
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}  # as installed packages have it
TICK = os.sysconf("SC_CLK_TCK")
STAGES = ("report", "checks")  # the report is what --no-report saves, and checks are made without one, too
SMALL = {"2000 rows": (2000, "3"), "20000 rows": (20_000, "3"), "2000 rows, classes counted": (2000, "auto")}
READING = {
    "csv": "import pyarrow.csv; pyarrow.csv.read_csv({!r})",
    "parquet": "import pyarrow.parquet; pyarrow.parquet.read_table({!r})",
}


def write_table(path: Path, rows: int, columns: int) -> None:
    """A table with names, as CSV or as Parquet."""
    X = make_multiview(rows, CLASSES, n_views=columns, separation=1.5, random_state=_record.FIRST_DRAW).X
    names = [f"x{j}" for j in range(columns)]
    if path.suffix == ".parquet":
        pq.write_table(pa.table(dict(zip(names, X.T, strict=True))), path)
        return
    with path.open("w") as file:
        file.write(",".join(names) + "\n")
        np.savetxt(file, X, fmt="%.5g", delimiter=",")


def run(*arguments: str) -> dict[str, float]:
    """Seconds of the clock and of the processor, and the peak memory, of a Python command."""
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL, env=ENVIRONMENT)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"{arguments} failed")
    return {
        "seconds": time.perf_counter() - began,
        "processor seconds": usage.ru_utime + usage.ru_stime,
        "peak megabytes": usage.ru_maxrss / 1024,
    }


def first_word(*arguments: str) -> dict[str, float]:
    """Seconds of the clock and of the processor until a Python command shows something on a terminal."""
    ours, theirs = pty.openpty()
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.DEVNULL, stderr=theirs, env={**ENVIRONMENT, "TERM": "xterm"}
    )
    os.close(theirs)
    os.read(ours, 1)
    seconds = time.perf_counter() - began
    ticks = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]  # user, system
    try:
        while os.read(ours, 4096):
            pass
    except OSError:  # nobody has the other end any more
        os.close(ours)
    if process.wait():
        raise RuntimeError(f"{arguments} failed")
    return {"seconds": seconds, "processor seconds": sum(map(int, ticks)) / TICK}


def shares_of_fit(rows: int, classes: str, repeats: int = 5) -> dict[str, float]:
    """What report and checks take over what the fit takes, as ``summary.json`` tells; medians of some runs."""
    shares = []
    with tempfile.TemporaryDirectory() as folder:
        table, out = Path(folder) / "table.csv", Path(folder) / "out"
        write_table(table, rows, 5)
        for _ in range(repeats):
            run("-c", COMMAND, "fit", str(table), "-k", classes, "--out", str(out), "--quiet", "--force")
            seconds = json.loads((out / "summary.json").read_text())["seconds_of"]
            shares.append([seconds[stage] / seconds["fitting"] for stage in STAGES])
    return dict(zip(STAGES, np.median(shares, axis=0).tolist(), strict=True))


def measure(kind: str, rows: int, columns: int) -> dict[str, Any]:
    """One table from file to report."""
    with tempfile.TemporaryDirectory() as folder:
        table, out = Path(folder) / f"table.{kind}", Path(folder) / "out"
        write_table(table, rows, columns)
        reading = run("-c", READING[kind].format(str(table)))
        fit = run("-c", COMMAND, "fit", str(table), "--out", str(out), "--quiet")
        sizes = {file.name: file.stat().st_size / 1e6 for file in sorted(out.iterdir())}
        return {
            "rows": rows,
            "columns": columns,
            "table megabytes": table.stat().st_size / 1e6,
            "reading alone": reading,
            "fit": fit,
            "megabytes written": sizes,
        }


def starting() -> dict[str, dict[str, float]]:
    """The shortest commands: help, info, a fit of 200 rows without a report; beside scikit-learn's import.

    Of that fit also the time until it shows a first word.
    """
    with tempfile.TemporaryDirectory() as folder:
        table, out = Path(folder) / "table.csv", Path(folder) / "out"
        write_table(table, 200, 3)
        fit = ("-c", COMMAND, "fit", str(table), "-k", "2", "--out", str(out), "--no-report", "--force")
        works = {
            "help": ("-c", COMMAND, "--help"),
            "info": ("-c", COMMAND, "info", str(table)),
            "fit": (*fit, "--quiet"),
            "scikit-learn": ("-c", "import sklearn.mixture"),
        }
        found = {name: min((run(*words) for _ in range(5)), key=CPU) for name, words in works.items()}
        return {**found, "first word": min((first_word(*fit) for _ in range(5)), key=CPU)}


def main() -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    shares = {name: shares_of_fit(*small) for name, small in SMALL.items()}
    small = {"starting": starting(), "over fit": shares}
    found = {**small, **measure("csv", rows, 10), "parquet": measure("parquet", 2 * rows, 3)}
    print(found)
    _record.save(RESULTS, found)


if __name__ == "__main__":
    main()
