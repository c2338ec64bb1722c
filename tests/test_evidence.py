"""What is told beside a saved result."""

import json
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.cheap
ROOT = Path(__file__).parent.parent
_seeds = runpy.run_path(str(ROOT / "benchmarks" / "_seeds.py"))
SEEDS, seeds = _seeds["SEEDS"], _seeds["seeds"]


def test_every_benchmark_states_its_seeds():
    scripts = {path.relative_to(ROOT / "benchmarks").as_posix() for path in ROOT.glob("benchmarks/*/*.py")}
    runnable = {name for name in scripts if "__main__" in (ROOT / "benchmarks" / name).read_text()}

    assert runnable <= set(SEEDS), "say in benchmarks/_seeds.py which seeds they have"
    assert all((ROOT / "benchmarks" / name).exists() for name in SEEDS)


def test_every_saved_result_has_seeds():
    made_by = [json.loads(path.read_text())["command"] for path in ROOT.glob("benchmarks/*/results/*.json")]

    assert all(seeds(command) != "not known" for command in made_by)


def test_a_saved_command_names_no_place_outside_the_repository(tmp_path):
    script = tmp_path / "measure.py"
    script.write_text(
        f"import sys; sys.path.insert(0, {str(ROOT / 'benchmarks')!r}); import _record; print(_record.command())"
    )
    data = ROOT.parent / "shared" / "data"

    done = subprocess.run([sys.executable, script, str(data)], capture_output=True, text=True, check=True)

    assert shlex.split(done.stdout)[-1] == "../shared/data"


def test_the_table_of_benchmarks_has_every_script():
    table = (ROOT / "benchmarks/README.md").read_text()

    steps = runpy.run_path(str(ROOT / "benchmarks" / "evidence.py"))["STEPS"]
    absent = {step.command.split()[0] for step in steps} - set(re.findall(r"benchmarks/(\S+\.py)", table))
    assert absent == set()
