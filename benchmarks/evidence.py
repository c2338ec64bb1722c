"""Every saved result again: ``make evidence`` in minutes with small sizes, ``make evidence FULL=1`` in hours.

    python benchmarks/evidence.py           # quick: in a copy of this folder, nothing that is saved is touched
    python benchmarks/evidence.py --only hmm series  # quick too, the commands with one of these words
    python benchmarks/evidence.py --full    # all of it, in place, from one commit; then figures and pictures
    python benchmarks/evidence.py --full --lanes 2   # two scripts at a time; those of speed/ stay alone
    python benchmarks/evidence.py --full --since --minutes 60   # what is not of today's code, as far as an hour goes
    python benchmarks/evidence.py --full --only topics crowds   # the commands with one of these words
    python benchmarks/evidence.py --list    # which command makes which file, if it is of today's code, and the pages

A result is of today's code where neither its script has changed since nor any file of the package that the script
imports, in whatever depth, but for docstrings and comments; and for readers of files (io/) where it reads none by them.
It is *unmoved* where files did change since, but none of the answers that `answers.py history` compares did, commit by
commit from the result's own to today's; such results of accuracy/ are not measured again by ``--since``.

A quick run takes small sizes where a script has them, and the first twenty seconds of it where not: enough to see that
it still runs. Scripts whose peers are not installed are named, and left to the full run.

The full run wants a checkout without changes, the recorded data (LATENTVIEWS_DATA), and the peers that
benchmarks/README.md names; a script that fails is named at the end, and the others go on.
"""

import argparse
import ast
import contextlib
import functools
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import grimp

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
SCRATCH = ROOT / "build" / "evidence"
DATA = os.environ.get("LATENTVIEWS_DATA", str(ROOT.parent / "shared" / "data"))


class Step(NamedTuple):
    """A command, the files it saves, and the options that make it quick; where there are none, it is begun."""

    command: str
    saves: str
    quick: str | None = None


STEPS = (
    Step("accuracy/mixtures.py --fresh", "accuracy/mixtures_separated accuracy/mixtures_overlapping "
         "accuracy/mixtures_shapes accuracy/mixtures_slopes accuracy/mixtures_large accuracy/mixtures_identical "
         "accuracy/mixtures_published",
         "--part separated --draws 1 --m 500 --k 2 3"),
    Step("accuracy/parametric.py", "accuracy/parametric", "--part tails --draws 1"),
    Step("accuracy/atoms.py", "accuracy/atoms_zeros accuracy/atoms_cytof accuracy/atoms_flowcap",
         "--part zeros --draws 1"),
    Step("accuracy/agreement.py", "accuracy/agreement"),
    Step("accuracy/components.py", "accuracy/components", "--draws 1"),
    Step("accuracy/intervals.py --resamples 60", "accuracy/intervals", "--draws 2 --resamples 5"),
    Step("accuracy/intervals.py --resamples 60 --rows 500", "accuracy/intervals_500"),
    Step("accuracy/intervals.py --resamples 60 --rows 100", "accuracy/intervals_100"),
    Step("accuracy/diagnoses.py", "accuracy/diagnoses", "--draws 1"),
    Step("accuracy/dependence.py --draws 3", "accuracy/dependence", "--draws 1"),
    Step("accuracy/several_columns.py", "accuracy/several_columns_designs"),
    Step("accuracy/several_columns.py --part wide", "accuracy/several_columns_wide"),
    Step("accuracy/solvers.py", "accuracy/solvers"),
    Step("accuracy/latent_classes.py", "accuracy/latent_classes_maxima accuracy/latent_classes_three_steps"),
    Step("accuracy/hmm.py --again", "accuracy/hmm", "--n 1000 --seeds 1 --methods KernelHMM GaussianHMM"),
    Step("accuracy/activities.py", "accuracy/activities"),
    Step("accuracy/series.py --fresh", "accuracy/series"),
    Step("accuracy/forecast_bands.py --draws 1 --sizes 300 --series ar 'ar of two' 'ar, heavy tails' 'slow ar' wave "
         "regimes volatile seasons 'logistic map' geyser wall_robot", "accuracy/coverage", "--series ar"),
    Step("accuracy/uci_table1.py --fresh", "accuracy/uci_table1",
         "--sets wine --folds 2 --protocols honest --methods KDE GMM"),
    Step("accuracy/lowrank.py", "accuracy/lowrank", "--part 'figure 1' --draws 2"),
    Step("accuracy/million.py", "accuracy/million"),
    Step("accuracy/near_gaussian.py", "accuracy/near_gaussian", "--splits 1"),
    Step("accuracy/mixed.py", "accuracy/mixed"),
    Step("accuracy/mixtools.py", "accuracy/mixtools"),
    Step("accuracy/cytometry.py --again", "accuracy/cytometry"),
    Step(f"accuracy/crowds.py {DATA}", "accuracy/crowds"),
    Step(f"accuracy/crowds.py {DATA} --scale", "accuracy/crowds_scale"),
    Step(f"accuracy/topics.py {DATA}", "accuracy/topics"),
    Step(f"accuracy/topics.py {DATA} --synthetic", "accuracy/topics_synthetic"),
    Step(f"accuracy/topics.py {DATA} --draws", "accuracy/topics_draws"),
    Step(f"accuracy/topics.py {DATA} --concentration", "accuracy/topics_concentration"),
    Step(f"accuracy/topics.py {DATA} --large", "accuracy/topics_large"),
    Step("accuracy/communities.py", "accuracy/communities"),
    Step("accuracy/communities.py --recorded", "accuracy/communities_recorded", ""),
    Step("accuracy/change_points.py", "accuracy/change_points"),
    Step("accuracy/conditional.py", "accuracy/conditional"),
    Step("accuracy/shift.py", "accuracy/shift"),
    Step("accuracy/propagation.py", "accuracy/propagation"),
    Step("accuracy/comparing.py levels", "accuracy/comparing_levels"),
    Step("accuracy/comparing.py power", "accuracy/comparing_power"),
    Step("accuracy/comparing.py pairs", "accuracy/comparing_pairs"),
    Step("accuracy/comparing.py trees", "accuracy/comparing_trees"),
    Step("accuracy/comparing.py alarms", "accuracy/comparing_alarms"),
    Step("accuracy/theory.py", "accuracy/theory"),
    Step("accuracy/change_points_widths.py", "accuracy/change_points_widths"),
    Step("accuracy/few_rows.py", "accuracy/few_rows"),
    Step("accuracy/populations.py", "accuracy/populations"),
    Step("accuracy/dependence_choice.py --seed 6", "accuracy/dependence_choice"),
    Step("accuracy/torus.py", "accuracy/torus"),
    Step("accuracy/digits.py", "accuracy/digits"),
    Step("accuracy/ica.py", "accuracy/ica"),
    Step("accuracy/features.py", "accuracy/features"),
    Step("accuracy/kernel_pca.py", "accuracy/kernel_pca_eigenfunctions accuracy/kernel_pca_memory"),
    Step("accuracy/kernel_machines.py", "accuracy/kernel_machines_classes accuracy/kernel_machines_diabetes "
         "accuracy/kernel_machines_tables"),
    Step("accuracy/streams_classify.py", "accuracy/streams_classify"),
    Step("speed/mixture.py", "speed/mixture"),
    Step("speed/chains.py", "speed/chains"),
    Step("speed/comparing.py", "speed/comparing"),
    Step("speed/kernel_pca.py", "speed/kernel_pca", "--rows 20000"),
    Step("speed/report.py", "speed/report", "--rows 20000"),
    Step("speed/scale.py", "speed/scale_small speed/scale_columns speed/scale_starts speed/scale_views"),
    Step("speed/files.py", "speed/files"),
    Step("speed/chunks.py", "speed/chunks"),
    Step("hostile.py fits --seed 3900 --count 10000 --minutes 60", "accuracy/hostile_fits", "--count 200 --minutes 2"),
    Step("hostile.py files --seed 6000 --count 1000000 --minutes 150", "accuracy/hostile_files",
         "--count 2000 --minutes 1"),
    Step("accuracy/claims.py", "accuracy/claims", ""),
)  # fmt: skip
BEGUN = 20.0  # seconds of a script that has no small sizes, in a quick run
READING = ("latentviews.io", "load_flowcap", "read_table", ".parquet", ".npy", ".zarr", ".fcs")  # files are read by it
APART = {  # of several commits of the package, of a GPU, or of the tests: by hand
    "accuracy/answers": "python benchmarks/answers.py history …",
    "speed/trees": "python benchmarks/speed/trees.py ../before/src src",
    "speed/imagenet_shape": "python benchmarks/speed/imagenet_shape.py",
    "accuracy/mutants": "make mutants",
    "accuracy/properties": "make properties",
    "speed/gpu": "python benchmarks/speed/gpu.py",
}


def saved(name: str) -> Path:
    """The file of a result."""
    room, _, stem = name.partition("/")
    return HERE / room / "results" / f"{stem}.json"


def recorded_seconds(step: Step) -> float:
    """How long a step took when its results were saved; zero where nothing says so."""
    records = [json.loads(saved(name).read_text()) for name in step.saves.split() if saved(name).exists()]
    return sum(record.get("seconds") or 0.0 for record in records)


def pages(name: str) -> list[str]:
    """The pages that show a result."""
    found = saved(name).relative_to(HERE)
    texts = [ROOT / "README.md", *(page for page in (ROOT / "docs").rglob("*.md") if "_build" not in page.parts)]
    return sorted(page.relative_to(ROOT).as_posix() for page in texts if str(found.with_suffix("")) in page.read_text())


def run(folder: Path, command: str) -> bool:
    """Whether a command succeeds."""
    print(f"$ python {command}", flush=True)
    start = time.monotonic()
    environment = os.environ | {"LATENTVIEWS_DATA": DATA}
    done = subprocess.run([sys.executable, *shlex.split(command)], cwd=folder, env=environment, check=False)
    print(f"  {'done' if done.returncode == 0 else 'FAILED'} in {time.monotonic() - start:.0f} s", flush=True)
    return done.returncode == 0


def afresh(step: Step) -> bool:
    """Whether a step succeeds with nothing of its own on record, which scripts would not measure again.

    Where it does not, what was on record is again, and what it saved stands beside.
    """
    kept = {saved(name): saved(name).read_bytes() for name in step.saves.split() if saved(name).exists()}
    for path in kept:
        path.unlink()
    done = False
    try:
        done = run(HERE, step.command)
    finally:
        for path, earlier in kept.items():
            if not done and path.exists():
                path.replace(path.with_suffix(".unfinished"))
            if not path.exists():
                path.write_bytes(earlier)
    return done


def git(*arguments: str) -> str:
    """What git says."""
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def begun(folder: Path, command: str) -> str | None:
    """What went wrong in the first seconds of a command; None where nothing did."""
    print(f"$ python {command}  # its first {BEGUN:.0f} s", flush=True)
    environment = os.environ | {"LATENTVIEWS_DATA": DATA}
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            [sys.executable, *shlex.split(command)], cwd=folder, env=environment, stderr=errors, start_new_session=True
        ) as process,
    ):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(BEGUN)
        stopped = process.poll() is None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # workers and R too
        errors.seek(0)
        said = errors.read().strip().rpartition("\n")[2]
    return None if stopped or process.returncode == 0 else said or f"exit status {process.returncode}"


def quick(only: list[str]) -> list[str]:
    """The commands that failed, with small sizes or in their first seconds, in a copy."""
    shutil.rmtree(SCRATCH, ignore_errors=True)
    shutil.copytree(HERE, SCRATCH / "benchmarks", ignore=shutil.ignore_patterns("__pycache__", ".data"))
    (SCRATCH / "tests").symlink_to(ROOT / "tests")  # whose fuzzer is one of the commands
    failed, left = [], []
    for step in STEPS:
        if only and not any(word in step.command for word in only):
            continue
        if step.quick is not None:
            failed += [] if run(SCRATCH / "benchmarks", f"{step.command} {step.quick}") else [step.command]
            continue
        wrong = begun(SCRATCH / "benchmarks", step.command)
        (left if "No module named" in (wrong or "") else failed).extend([f"{step.command}: {wrong}"] if wrong else [])
    print(*(f"not begun, its peer is not installed (make peers): {one}" for one in left), sep="\n")
    print(f"small, in {SCRATCH.relative_to(ROOT)}; saved results are as they were")
    return failed


def is_current(step: Step, code: str | None = None) -> bool:
    """Whether all that a step saves was made by its script of today, its very command, and the package as it is now.

    Or by the package of another commit, ``code``.
    """
    script = step.command.split()[0]
    helpers = tuple(str(path.relative_to(ROOT)) for path in sorted(_with_helpers(HERE / script)))
    for name in step.saves.split():
        record = json.loads(saved(name).read_text()) if saved(name).exists() else {"commit": "none"}
        if differs(record["commit"], package_files(script), code) or differs(record["commit"], helpers):
            return False
        if len(step.saves.split()) == 1 and not _same_command(record["command"], step.command):
            return False
    return True


def is_unmoved(step: Step) -> bool:
    """Whether no answer on record has moved since the package that a step of accuracy/ was measured with."""
    history = json.loads(saved("accuracy/answers").read_text())["results"]
    commits = [history["from"], *(one["commit"] for one in history["steps"])]
    last_move = max((i for i, one in enumerate(history["steps"], 1) if one["moved"]), default=0)
    if not step.command.startswith("accuracy/") or differs(commits[-1], ("src",)):
        return False
    return any(is_current(step, commit) for commit in commits[last_move:])


def standing(step: Step) -> str:
    """Of which code a step's results are: "current", "unmoved" or "earlier"."""
    return "current" if is_current(step) else "unmoved" if is_unmoved(step) else "earlier"


def differs(commit: str, files: tuple[str, ...], other: str | None = None) -> bool:
    """Whether code differs between a commit and another, or what is checked out; it does where git does not know it."""
    try:
        changed = git("diff", "--name-only", *filter(None, (commit, other)), "--", *files).split()
    except subprocess.CalledProcessError:
        return True
    return any(_code_differs(commit, path, other) for path in changed)


def _code_differs(commit: str, path: str, other: str | None) -> bool:
    """Whether a file differs in more than docstrings and comments."""
    try:
        before = git("show", f"{commit}:{path}")
        after = git("show", f"{other}:{path}") if other else (ROOT / path).read_text()
    except (subprocess.CalledProcessError, OSError):  # it is new, or gone
        return True
    return not path.endswith(".py") or _code(before) != _code(after)


def _code(text: str) -> str:
    """Code without what is only said."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if (
            isinstance(body, list)
            and body
            and isinstance(body[0], ast.Expr)
            and isinstance(body[0].value, ast.Constant)
        ):
            del body[0]
    return ast.dump(tree)


@functools.cache
def package_files(script: str) -> tuple[str, ...]:
    """The files of the package that a script imports, and those that they import; all where it runs commands."""
    if "latentviews.cli" in (HERE / script).read_text():
        return ("src",)
    graph = _imports(
        reading=any(one.read_text().find(word) >= 0 for one in _with_helpers(HERE / script) for word in READING)
    )
    front = {"latentviews", "latentviews._public"}  # hand on whatever is asked for
    asked = (set().union(*map(_imported, _with_helpers(HERE / script))) - front) & graph.modules
    needed = asked.union(*(graph.find_upstream_modules(module) for module in asked)) - front
    stems = [f"src/{module.replace('.', '/')}" for module in sorted(needed)]
    return tuple(path for stem in stems for path in (f"{stem}.py", f"{stem}/__init__.py")) or ("src",)


@functools.cache
def _imports(reading: bool) -> grimp.ImportGraph:
    """Which module of the package imports which; without the readers of files unless they are asked for."""
    graph = grimp.build_graph("latentviews", cache_dir=None)
    for module in set() if reading else {one for one in graph.modules if one.startswith("latentviews.io")}:
        graph.remove_module(module)
    return graph


def _with_helpers(path: Path) -> set[Path]:
    """A script, and those beside it that it imports, in any depth."""
    found, left = set(), {path}
    while left:
        path = left.pop()
        found.add(path)
        names = {name for node in ast.walk(ast.parse(path.read_text())) for name in _names(node)}
        left |= {one for name in names if (one := path.with_name(f"{name}.py")).exists()} - found
    return found


def _names(node: ast.AST) -> list[str]:
    """The modules that a statement imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [str(node.module)] if isinstance(node, ast.ImportFrom) else []


def _imported(path: Path) -> set[str]:
    """The modules of the package that a file imports from, public names by where they are from."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("latentviews"):
            names = {alias.name for alias in node.names}
            found |= {_public().get(name, "") for name in names} if node.module == "latentviews" else {str(node.module)}
            found |= {f"{node.module}.{name}" for name in names}  # where a name is a module
    return found


@functools.cache
def _public() -> dict[str, str]:
    """The module of every public name."""
    tree = ast.parse((ROOT / "src" / "latentviews" / "_public.py").read_text())
    pairs = [
        (alias.name, str(node.module)) for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
    ]
    return dict(pairs)


def _same_command(made_by: str, command: str) -> bool:
    """Whether a result was made by a command, wherever the data are."""
    own = [word for word in shlex.split(command) if word != DATA]
    return [word for word in shlex.split(made_by)[2:] if not word.endswith("shared/data")] == own[1:]


def full(since: bool, minutes: float, lanes: int, only: list[str]) -> list[str]:
    """The commands that failed, and the results that are not of the code that was checked out at the start."""
    if git("status", "--porcelain", "--", "src", "benchmarks"):
        sys.exit("The full run is of one commit: commit or set aside the changes in src/ and benchmarks/ first.")
    end = time.monotonic() + 60 * minutes

    def failure(step: Step) -> list[str]:
        asked = not only or any(word in step.command for word in only)
        due = asked and time.monotonic() < end and not (since and standing(step) != "earlier")
        return [step.command] if due and not afresh(step) else []

    *measuring, summing_up = STEPS
    accuracy = [step for step in measuring if step.command.startswith("accuracy/")]
    with ThreadPoolExecutor(lanes) as pool:  # the longest first, so that no lane waits for the other at the end
        failed = list(pool.map(failure, sorted(accuracy, key=recorded_seconds, reverse=True)))
    failed += [failure(step) for step in measuring if step not in accuracy]  # alone, for their times
    failed.append(failure(summing_up))
    for page_maker in ("docs/figures.py", "docs/draw_pictures.py"):
        run(ROOT, page_maker)
    return [command for commands in failed for command in commands] + [
        f"{step.saves} is not of today's code" for step in STEPS if standing(step) == "earlier"
    ]


def main() -> int:
    """Run, or list."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--since", action="store_true", help="only what is not of today's code")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="after which no script is started")
    parser.add_argument("--lanes", type=int, default=1, help="how many scripts of accuracy/ run at a time")
    parser.add_argument("--only", nargs="+", default=[], help="words, one of which a command has")
    chosen = parser.parse_args()
    if chosen.list:
        for step in STEPS:
            for name in step.saves.split():
                print(f"{standing(step)} {step.command.replace(DATA, 'DATA'):45s} {name:40s} {' '.join(pages(name))}")
        for name, command in APART.items():
            print(f"by hand {command:45s} {name:40s} {' '.join(pages(name))}")
        return 0
    failed = full(chosen.since, chosen.minutes, chosen.lanes, chosen.only) if chosen.full else quick(chosen.only)
    for command in failed:
        print(f"FAILED: {command}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
