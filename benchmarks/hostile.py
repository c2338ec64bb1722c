"""Hostile tables and damaged files, made by chance: how many end in an answer, in a sentence, in a fault.

    python benchmarks/hostile.py fits --seed 600 --count 10000 --minutes 60
    python benchmarks/hostile.py files --seed 600 --count 100000 --minutes 10

It runs ``python -m tests.fuzz``, whose cases and faults CONTRIBUTING.md explains, prints what that prints, and saves
the counts; an answer is a fit, or a file that was read, and a sentence an error of ours that stands in its place.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import _record

RESULTS = Path(__file__).parent / "accuracy" / "results"
OUTCOMES = ("answers", "sentences", "faults")
INSTEAD = ("fit:", "partial_fit:", "read_table:", "load:")  # refusals in place of all else that a case asks


def main() -> None:
    """Run the cases and save what came of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["fits", "files"])
    parser.add_argument("--seed", type=int, default=600)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--minutes", type=float, default=60.0)
    options = parser.parse_args()
    numbers = [part for name in ("seed", "count", "minutes") for part in (f"--{name}", str(getattr(options, name)))]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "cases.jsonl"
        command = [sys.executable, "-m", "tests.fuzz", options.kind, *numbers, "--log", str(log)]
        subprocess.run(command, cwd=_record.ROOT, check=False)  # its status says whether there were faults
        cases = [json.loads(line) for line in log.read_text().splitlines()]
    _record.save(RESULTS / f"hostile_{options.kind}.json", {"seed": options.seed, **summed_up(cases)})


def summed_up(cases: list[dict[str, Any]]) -> dict[str, Any]:
    """Counts of all cases and by family, and the cases with faults."""
    families: dict[str, Counter[str]] = {}
    for case in cases:
        families.setdefault(case["family"], Counter(dict.fromkeys(OUTCOMES, 0)))[outcome(case)] += 1
    return {
        "cases": len(cases),
        **{name: sum(counts[name] for counts in families.values()) for name in OUTCOMES},
        "slowest seconds": max(case["seconds"] for case in cases),
        "processor minutes": round(sum(case["seconds"] for case in cases) / 60, 1),
        "families": {family: dict(counts) for family, counts in sorted(families.items())},
        "found": [f"{case['family']}, case {case['case']}: {case['words']}" for case in cases if case["faults"]],
    }


def outcome(case: dict[str, Any]) -> str:
    """What came of a case."""
    if case["faults"]:
        return "faults"
    refused = [one for one in case["refusals"] if one.startswith(INSTEAD) or case["family"] == "functions"]
    return "sentences" if refused else "answers"


if __name__ == "__main__":
    main()
