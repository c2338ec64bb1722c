"""What `latentviews fit` takes for a large table on the command line: time, memory, and the size of what it writes.

    python benchmarks/speed/report.py [--rows 1000000]

A CSV of ten columns, three classes; the number of classes is left to the fit. Beside it stands the time that pyarrow
takes to read the same file alone. Memory is the peak of the whole command. Linux only.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews.datasets import make_multiview

RESULTS = Path(__file__).with_name("results") / "report.json"
COLUMNS, CLASSES = 10, 3
COMMAND = "from latentviews.cli import main; raise SystemExit(main())"


def write_table(path: Path, rows: int) -> None:
    """A CSV with a header."""
    X = make_multiview(rows, CLASSES, n_views=COLUMNS, separation=1.5, random_state=_record.FIRST_DRAW).X
    with path.open("w") as file:
        file.write(",".join(f"x{j}" for j in range(COLUMNS)) + "\n")
        np.savetxt(file, X, fmt="%.5g", delimiter=",")


def run(*arguments: str) -> dict[str, float]:
    """Seconds of the clock and of the processor, and the peak memory, of a Python command."""
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"{arguments} failed")
    return {
        "seconds": time.perf_counter() - began,
        "processor seconds": usage.ru_utime + usage.ru_stime,
        "peak megabytes": usage.ru_maxrss / 1024,
    }


def measure(rows: int) -> dict[str, Any]:
    """One table from file to report."""
    with tempfile.TemporaryDirectory() as folder:
        table, out = Path(folder) / "table.csv", Path(folder) / "out"
        write_table(table, rows)
        reading = run("-c", f"import pyarrow.csv; pyarrow.csv.read_csv({str(table)!r})")
        fit = run("-c", COMMAND, "fit", str(table), "--out", str(out), "--quiet")
        sizes = {file.name: file.stat().st_size / 1e6 for file in sorted(out.iterdir())}
        return {
            "rows": rows,
            "columns": COLUMNS,
            "table megabytes": table.stat().st_size / 1e6,
            "reading alone": reading,
            "fit": fit,
            "megabytes written": sizes,
        }


def main() -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    found = measure(parser.parse_args().rows)
    print(found)
    _record.save(RESULTS, found)


if __name__ == "__main__":
    main()
