"""Cases in processes of their own, so that a crash or a hang costs one case, and what came of them."""

import faulthandler
import json
import os
import re
import selectors
import subprocess
import sys
import tempfile
import time
import traceback
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, TextIO

from .verdicts import Judge

ROOT = Path(__file__).parents[2]
HARD = 200  # seconds after which a case in compiled code, which no signal reaches, ends its process
CHUNKS = {"fits": 400, "files": 20_000}  # cases that a process runs before the next takes over
SILENCE = 240  # seconds without an answer after which a process is stopped, whatever else this machine does
Case = tuple[str, int]  # a family and a number
RunCase = Callable[[str, list[int]], tuple[str, Judge]]


# ---------------------------------------------------------------------------------------------------- in the process


def serve(kind: str, run_case: RunCase, seed: int, cases: list[Case]) -> None:
    """Run cases, a line of JSON before and after each; what else is written to the terminal is a fault."""
    answers, errors = os.fdopen(os.dup(1), "w"), os.dup(2)
    with tempfile.TemporaryFile() as noise:
        os.dup2(noise.fileno(), 1)
        os.dup2(noise.fileno(), 2)
        for family, number in cases:
            print(json.dumps({"family": family, "case": number}), file=answers, flush=True)
            faulthandler.dump_traceback_later(HARD, exit=True, file=errors)
            print(json.dumps(_one(run_case, family, seed, number, noise)), file=answers, flush=True)


def _one(run_case: RunCase, family: str, seed: int, number: int, noise: Any) -> dict[str, Any]:
    before, began = os.fstat(noise.fileno()).st_size, time.process_time()
    try:
        words, judge = run_case(family, [seed, number, zlib.crc32(family.encode())])
    except Exception:  # of the fuzzer itself, or where a model keeps an error for later
        words, judge = "the fuzzer failed", Judge()
        judge.faults.append(traceback.format_exc())
    sys.stdout.flush()
    sys.stderr.flush()
    noise.seek(before)
    said = noise.read().decode(errors="replace").strip()
    faults = [*judge.faults, *([f"on the terminal: {said[:300]}"] if said else [])]
    seconds = round(time.process_time() - began, 4)
    done = {"family": family, "case": number, "words": words, "faults": faults, "seconds": seconds}
    return {**done, "refusals": judge.refusals}


# -------------------------------------------------------------------------------------------------- outside of it


@dataclass
class Tally:
    """What came of the cases of each family."""

    clean: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)  # of the clean ones, those with a sentence in place of a fit
    faulty: Counter[str] = field(default_factory=Counter)
    findings: list[dict[str, Any]] = field(default_factory=list)
    slowest: float = 0.0

    def add(self, answer: dict[str, Any]) -> None:
        """Count one case."""
        family = answer["family"]
        self.slowest = max(self.slowest, answer["seconds"])
        if answer["faults"]:
            self.faulty[family] += 1
            self.findings.append(answer)
        else:
            self.clean[family] += 1
            self.refused[family] += any(re.match(r"(partial_)?fit:", one) for one in answer["refusals"])

    def table(self) -> str:
        """One line per family."""
        lines = [f"{'family':32} {'clean':>7} {'refused':>8} {'faulty':>7}"]
        for family in sorted({*self.clean, *self.faulty}):
            counts = f"{self.clean[family]:>7,} {self.refused[family]:>8,} {self.faulty[family]:>7,}"
            lines.append(f"{family:32} {counts}")
        total = f"{self.clean.total():>7,} {self.refused.total():>8,} {self.faulty.total():>7,}"
        return "\n".join([*lines, f"{'all':32} {total}", f"slowest case {self.slowest:.1f} s"])


def command_again(kind: str, seed: int, answer: dict[str, Any]) -> str:
    """The command that runs a case again."""
    return f"python -m tests.fuzz {kind} --seed {seed} --family {answer['family']} --case {answer['case']}"


def drive(kind: str, seed: int, cases: list[Case], minutes: float, log: TextIO | None = None) -> Tally:
    """All cases, or as many as the minutes allow, one process at a time."""
    tally, end, done, before = Tally(), time.monotonic() + 60 * minutes, 0, -1
    while before < done < len(cases) and time.monotonic() < end:
        before = done
        for answer in _answers(kind, seed, cases[done : done + CHUNKS[kind]], end):
            done += 1
            tally.add(answer)
            if log is not None:
                print(json.dumps({**answer, "seed": seed}), file=log, flush=True)
            if answer["faults"]:
                print(f"{command_again(kind, seed, answer)}\n  {answer['words']}")
                print("\n".join(f"  - {fault}" for fault in answer["faults"]), flush=True)
    return tally


def _answers(kind: str, seed: int, cases: list[Case], end: float) -> Iterator[dict[str, Any]]:
    """The answers of one process; where it dies or falls silent, the case at hand is a finding, and the last."""
    command = [sys.executable, "-m", "tests.fuzz", kind, "--seed", str(seed), "--serve"]
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    with (
        tempfile.TemporaryFile("w+") as asked,
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **threads}, stdin=_written(asked, cases),
            stdout=subprocess.PIPE, stderr=errors, text=True,
        ) as process,
    ):  # fmt: skip
        current: dict[str, Any] | None = None
        for line in _lines(process, end):
            answer = json.loads(line)
            if "faults" not in answer:
                current = answer
                continue
            current = None
            yield answer
        process.kill()
        if current is not None and time.monotonic() < end:
            errors.seek(0)
            fault = f"the process fell silent or died: {errors.read()[:600].decode(errors='replace')}"
            yield {**current, "words": "?", "faults": [fault], "seconds": float(SILENCE), "refusals": []}


def _written(file: IO[str], cases: list[Case]) -> IO[str]:
    """A file that holds cases, to be read from its beginning."""
    json.dump(cases, file)
    file.seek(0)
    return file


def _lines(process: subprocess.Popen[str], end: float) -> Iterator[str]:
    """What a process prints, until it ends, falls silent or time is up."""
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while selector.select(min(SILENCE, max(end - time.monotonic(), 0))):
            line = process.stdout.readline()
            if not line:
                return
            yield line
