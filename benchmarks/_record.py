"""Saved results of benchmarks: the figures, and what is needed to get them again."""

import json
import os
import platform
import shlex
import subprocess
import sys
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import latentviews
from _seeds import seeds

ROOT = Path(__file__).resolve().parent.parent
FIRST_DRAW = 200  # seeds of made-up data: no draw from here on was looked at while a choice was made
PACKAGES = ("latentviews", "numpy", "scipy", "scikit-learn")


def save(path: Path, results: Any, packages: tuple[str, ...] = PACKAGES) -> None:
    """Write ``results`` as JSON with the command, machine, versions, commit and date, and say where."""
    record = {
        "command": command(),
        "date": datetime.now(UTC).date().isoformat(),
        "commit": COMMIT,
        "seeds": seeds(command()),
        "seconds": round(time.monotonic() - BEGAN),
        "machine": machine(),
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in packages}},
        "results": results,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(".part")
    aside.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n")
    aside.replace(path)
    print(f"saved: {_from_root(path)}")


def _version(package: str) -> str:
    """The version of a package; ours need not be installed to be measured."""
    return latentviews.__version__ if package == "latentviews" else version(package)


def command() -> str:
    """The command that is running, from the root of the repository."""
    words = [os.path.relpath(word, ROOT) if os.path.isabs(word) else word for word in sys.argv[1:]]
    return shlex.join(["python", str(_from_root(Path(sys.argv[0]))), *words])


def machine() -> dict[str, Any]:
    """The processor and how many of its cores may be used."""
    return {"cpu": _cpu_model(), "cores": len(os.sched_getaffinity(0))}


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or "unknown"


def commit() -> str:
    """The commit checked out, marked where the source of the package has changed since; unknown outside a clone."""
    try:
        head = _git("rev-parse", "HEAD")
        changed = _git("status", "--porcelain", "--", "src")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{head} and changes" if changed else head


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _from_root(path: Path) -> Path:
    path = path.resolve()
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else Path(path.name)


COMMIT = commit()  # when the run began: others may follow before it ends
BEGAN = time.monotonic()
