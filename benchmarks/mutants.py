"""How many small faults in the core the tests notice: mutation testing with cosmic-ray's operators.

    pip install cosmic-ray
    python benchmarks/mutants.py [--sample 60] [--module core.tensors] [--seed 0]

A mutant is a module with one thing changed: another operator, a number off by one, a condition turned round, a loop
that does not run. Of every module some places are drawn, and at each one of the ways to change it; then the tests of
that module run in a process forked from one that has the libraries already, until one fails. Bit operators are left
out, which only crash, and flags of `zip`, `dataclass` and `einsum`, which change no answer; so are the statements of
`SPEED`, which say how many rows or steps are taken at once, or from when on a quicker way to the same answer is worth
its while. Survivors are listed to be looked at: some of them are the same program, written otherwise.
"""

import argparse
import ast
import importlib.machinery
import io
import os
import signal
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

sys.path.insert(0, str(Path(__file__).resolve().parent))

import _record

RESULTS = Path(__file__).with_name("accuracy") / "results" / "mutants.json"
LEFT_OUT = ("Shift", "Bit", "Invert", "_Is", "RemoveDecorator", "Variable", "UAdd", "_Mod", "Exception")
FLAGS = ("strict=", "frozen=", "eq=", "optimize=")
SPEED = {  # how statements begin whose numbers no answer depends on
    "core.whitening": ("LARGE =",),
    "core.moments": ("IN_CACHE =", "PIECE =", "NUMBERS =", "held =", "held +=", "size =", "at_once ="),
    "sequences.chains": ("BLOCKS =", "CHUNK =", "block ="),
}
SECONDS = 60  # a mutant that takes longer never ends
SLOW = "not number_of_classes and not falls_as and not 5-4-PowerMethod"
TESTS = {
    "core.tensors": ["tests/core/test_tensors.py"],
    "core.whitening": [*(f"tests/core/test_{name}.py" for name in ("whitening", "moments", "spectral")), "-k", SLOW],
    "core.moments": [
        *(f"tests/core/test_{name}.py" for name in ("moments", "moment_sums", "landmark_sums", "spectral")),
        "-k",
        SLOW,
    ],
    "sequences.chains": ["tests/sequences/test_chains.py", "tests/sequences/test_device_chains.py", "-k", "not a_fit"],
}


def places(code: str, speed: tuple[str, ...]) -> dict[tuple[Any, Any], list[tuple[str, int]]]:
    """Where code can be changed, and the operators and occurrences that do; not in statements that begin so."""
    found: dict[tuple[Any, Any], list[tuple[str, int]]] = {}
    lines = code.splitlines()
    for name in sorted(name for name in operator_names() if not any(part in name for part in LEFT_OUT)):
        operator, occurrence = get_operator(name)(), 0
        for node in ast_nodes(get_ast(code)):
            for start, end in operator.mutation_positions(node):
                line = lines[start[0] - 1]
                if not line[: start[1]].endswith(FLAGS) and not line.lstrip().startswith(speed):
                    found.setdefault((start, end), []).append((name, occurrence))
                occurrence += 1
    return found


def drawn(code: str, speed: tuple[str, ...], size: int, rng: np.random.Generator) -> list[tuple[int, str, str]]:
    """Mutants: the line, the operator and the code, one at each of some places."""
    ways = places(code, speed)
    order = [sorted(ways)[i] for i in rng.permutation(len(ways))]
    found: list[tuple[int, str, str]] = []
    for place in order:
        name, occurrence = ways[place][rng.integers(len(ways[place]))]
        mutant = mutate_code(code, get_operator(name)(), occurrence)
        if mutant is not None and ast.dump(ast.parse(mutant)) != ast.dump(ast.parse(code)):
            found.append((place[0][0], name, mutant))
        if len(found) == size:
            break
    return found


def outcome(module: str, code: str, arguments: list[str]) -> str:
    """What the tests say of a changed module, in a process of its own: "killed", "survived" or "endless"."""
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        original = importlib.machinery.SourceFileLoader.get_code

        def get_code(self: Any, fullname: str) -> Any:
            return compile(code, self.path, "exec") if fullname == module else original(self, fullname)

        importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[method-assign]
        options = ["-x", "-q", "-p", "no:cacheprovider", "--seeds", "1", *arguments]
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            code_of_exit = pytest.main(options)
        os._exit(int(code_of_exit))
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return "survived" if status == 0 else "endless" if status == -signal.SIGALRM else "killed"


def import_libraries(arguments: list[str]) -> None:
    """All that the tests import from elsewhere, once for all mutants; what is of this repository is forgotten."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", *arguments])
    own = tuple(str(_record.ROOT / folder) for folder in ("src", "tests"))  # not .venv
    for name, module in list(sys.modules.items()):
        if name != "__main__" and str(getattr(module, "__file__", None) or "").startswith(own):
            del sys.modules[name]


def measured(name: str, size: int, seed: int) -> dict[str, Any]:
    """The mutants of one module."""
    path = _record.ROOT / "src" / "latentviews" / f"{name.replace('.', '/')}.py"
    code, module = path.read_text(), f"latentviews.{name}"
    import_libraries(TESTS[name])
    if outcome(module, code, TESTS[name]) != "survived":
        raise SystemExit(f"The tests of {name} fail on the code as it is.")
    outcomes: list[str] = []
    survivors = []
    start = time.perf_counter()
    for line, operator, mutant in drawn(code, SPEED.get(name, ()), size, np.random.default_rng(seed)):
        outcomes.append(outcome(module, mutant, TESTS[name]))
        if outcomes[-1] == "survived":
            changed = next(new for old, new in zip(code.splitlines(), mutant.splitlines(), strict=False) if old != new)
            survivors.append({"line": line, "operator": operator, "code": changed.strip()})
            print(f"  survived: {name}:{line} {operator}: {changed.strip()}", flush=True)
    share = 1 - outcomes.count("survived") / len(outcomes)
    print(f"{name:<18} {len(outcomes)} mutants, {share:.1%} killed, {time.perf_counter() - start:.0f} s", flush=True)
    return {"mutants": len(outcomes), "killed": round(share, 4), "survivors": survivors}


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=60, help="mutants of every module")
    parser.add_argument("--module", choices=sorted(TESTS), help="one module alone, nothing saved")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    modules = [options.module] if options.module else list(TESTS)
    results = {name: measured(name, options.sample, options.seed) for name in modules}
    if not options.module:
        _record.save(RESULTS, results, (*_record.PACKAGES, "cosmic-ray"))


if __name__ == "__main__":
    main()
