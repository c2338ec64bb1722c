"""What must hold of every model and function, on tables that hypothesis makes: how many cases hold, and which do not.

    python benchmarks/properties.py --count 10000                      # as make properties does: hours
    python benchmarks/properties.py --count 200 --only LowRankDensity rank_test

It runs ``python -m tests.fuzz.properties``, a process for each property and two at once, and saves each as it ends with
its commit. What is saved with as many cases is not tried again without ``--again``. Cases are drawn from ``--seed``.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import _record
from fuzz.properties import PROPERTIES

RESULTS = Path(__file__).parent / "accuracy" / "results" / "properties.json"


def main() -> None:
    """Try the properties and save what came of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000, help="cases of each property")
    parser.add_argument("--seed", type=int, default=7000)
    parser.add_argument("--only", nargs="*", default=list(PROPERTIES), choices=list(PROPERTIES), metavar="NAME")
    parser.add_argument("--again", action="store_true", help="try what is saved, too")
    parser.add_argument("--minutes", type=float, default=1e6, help="after which no further property is begun")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    began, found = time.monotonic(), load()
    left = [name for name in options.only if options.again or found.get(name, {}).get("cases", 0) < options.count]

    def one(name: str) -> dict[str, Any]:
        late = time.monotonic() - began > 60 * options.minutes
        return {} if late else tried(name, options.count, options.seed)

    with ThreadPoolExecutor(options.jobs) as pool:
        waiting = {pool.submit(one, name): name for name in left}
        for done in as_completed(waiting):
            if done.result():
                found[waiting[done]] = done.result()
                print(waiting[done], json.dumps(done.result()), flush=True)
                _record.save(RESULTS, summed_up(found), (*_record.PACKAGES, "hypothesis"))
    sys.exit(any(one["fault"] for one in found.values()))


def tried(name: str, count: int, seed: int) -> dict[str, Any]:
    """What a process says of a property, or how it ended."""
    command = [sys.executable, "-m", "tests.fuzz.properties", name, "--count", str(count), "--seed", str(seed)]
    threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=_record.ROOT, capture_output=True, text=True, check=False, env=os.environ | threads
    )
    try:
        said = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        said = {"cases": 0, "fault": f"ended with {done.returncode}: {done.stderr[-2000:]}", "seconds": 0.0}
    return {**said, "seed": seed, "commit": _record.COMMIT}


def load() -> dict[str, Any]:
    """What is saved, by the name of the property."""
    return json.loads(RESULTS.read_text())["results"]["properties"] if RESULTS.exists() else {}


def summed_up(found: dict[str, Any]) -> dict[str, Any]:
    """How many were tried, and all of them."""
    ended = [found[name] for name in PROPERTIES if name in found]
    return {
        "of": len(PROPERTIES),
        "tried": len(ended),
        "cases": sum(one["cases"] for one in ended),
        "fewest cases": min(one["cases"] for one in ended),
        "faults": sum(one["fault"] is not None for one in ended),
        "processor hours": round(sum(one["seconds"] for one in ended) / 3600, 1),
        "properties": {name: found[name] for name in PROPERTIES if name in found},
    }


if __name__ == "__main__":
    main()
