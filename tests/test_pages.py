"""README and the pages in docs/ show what their examples really print, and link to what is there."""

import contextlib
import doctest
import importlib
import importlib.util
import io
import json
import re
import shlex
import warnings
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt

from latentviews import cli

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = [README, *(page for page in sorted((ROOT / "docs").rglob("*.md")) if "_build" not in page.parts)]
BLOCK = re.compile(r"^```(\S*)[ \t]*\n(.*?)^```[ \t]*$", flags=re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?![a-z]+:|#)([^)\s#]+)")
SAME = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def steps(text):
    """What a page does, in order: (kind, code, what it shows or None); a plain block after Python is what it prints."""
    found = []
    for block in BLOCK.finditer(text):
        kind, code = block.groups()
        if kind == "python":
            found.append(["python", code, None, block.end()])
        elif kind == "" and found and found[-1][0] == "python" and not text[found[-1][3] : block.start()].strip():
            found[-1][2] = code
        elif kind == "console":
            for part in re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]:
                command, _, shown = part.partition("\n")
                found.append(["console", command, shown or None, block.end()])
    return [tuple(step[:3]) for step in found]


def printed(kind, code, names):
    """What a step prints; a command of ours is run in place, others are left to the reader."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        if kind == "python":
            exec(code, names)
        else:
            program, *options = shlex.split(code, comments=True)
            assert program != "latentviews" or cli.main(options) == cli.OK, code
    return out.getvalue()


RUNNING = [page for page in PAGES if steps(page.read_text())]


@pytest.mark.parametrize("page", RUNNING, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_examples_print_what_the_page_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mpl.use("Agg")
    names = {}
    for kind, code, shown in steps(page.read_text()):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "FigureCanvasAgg is non-interactive")
            got = printed(kind, code, names)
        if shown is not None:
            assert doctest.OutputChecker().check_output(shown, got, SAME), f"{code}\nshows\n{shown}\nprints\n{got}"
    plt.close("all")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_files(page):
    text = BLOCK.sub("", page.read_text())
    missing = [link for link in LINK.findall(text) if not (page.parent / link).exists()]
    assert not missing, f"{page.name} links to {missing}"


@pytest.mark.parametrize("page", RUNNING[1:], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_code_fits_the_width_of_a_page(page):
    wide = [line for _, code, _ in steps(page.read_text()) for line in code.splitlines() if len(line) > 95]
    assert not wide


def test_the_readme_is_short():
    text = README.read_text()
    assert len(text.splitlines()) <= 150
    code = re.search(r"```python\n(.*?)```", text, flags=re.DOTALL).group(1)
    assert len(code.splitlines()) <= 20


def from_root(path):
    """A script of the repository as a module."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FIGURES = from_root("docs/figures.py")


@pytest.mark.parametrize("page", FIGURES.pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_states_the_figures_of_the_saved_results(page):
    text = page.read_text()

    assert FIGURES.refreshed(text) == text, "`python docs/figures.py` writes the figures that the results have"
    assert text.count(".json > ") == len(FIGURES.FIGURE.findall(text)), "a reference that cannot be read"


def test_a_figure_that_the_results_do_not_have_is_seen():
    text = README.read_text()
    stale = text.replace("1.04<!--", "1.05<!--")

    assert stale != text
    assert FIGURES.refreshed(stale) == text


@pytest.mark.parametrize(
    ("page", "heading"), [("README.md", "## How good it is"), ("docs/evidence/claims.md", "# The papers")]
)
def test_no_figure_of_the_headlines_is_without_its_source(page, heading):
    _, _, section = (ROOT / page).read_text().partition(heading)
    section = section.partition("\n## More")[0].partition("```{measured}")[0]

    assert len(FIGURES.FIGURE.findall(section)) > 10
    assert not re.findall(r"\d*\.\d+", re.sub(r"\(.*?\)", "", FIGURES.FIGURE.sub("", section)))


def test_the_claims_are_those_of_the_other_results():
    assert json.loads(json.dumps(from_root("benchmarks/accuracy/claims.py").claims())) == saved("claims")


def test_every_saved_result_has_a_command_that_makes_it():
    evidence = from_root("benchmarks/evidence.py")
    there = {f"{path.parts[-3]}/{path.stem}" for path in ROOT.glob("benchmarks/*/results/*.json")}
    made = {name for step in evidence.STEPS for name in step.saves.split()} | set(evidence.APART)

    assert there == made, "give every result its line in STEPS of benchmarks/evidence.py"
    assert all((ROOT / "benchmarks" / step.command.split()[0]).exists() for step in evidence.STEPS)


def test_a_result_is_of_the_files_that_its_script_imports_in_any_depth():
    files = from_root("benchmarks/evidence.py").package_files

    crowds = files("accuracy/crowds.py")
    assert {"src/latentviews/discrete/crowds.py", "src/latentviews/core/tensors.py"} <= set(crowds)
    assert not any(path.startswith("src/latentviews/sequences/") for path in crowds)
    assert files("speed/report.py") == ("src",)
    assert "src/latentviews/baselines/spherical.py" in files("accuracy/populations.py")  # by a script that it imports


def test_words_about_code_do_not_outdate_a_result():
    code = from_root("benchmarks/evidence.py")._code

    assert code('def f(x):\n    """Twice."""\n    return 2 * x  # exact\n') == code("def f(x):\n    return 2 * x\n")
    assert code("def f(x):\n    return 2 * x\n") != code("def f(x):\n    return 3 * x\n")


def saved(name):
    return json.loads((ROOT / "benchmarks/accuracy/results" / f"{name}.json").read_text())["results"]


def test_the_readme_states_what_was_measured_of_joint_densities():
    def loss(folds):
        return np.mean([fold["nll"] for fold in folds])

    tables = [table["honest"] for table in saved("uci_table1").values()]
    assert len(tables) == 11
    for table in tables:
        assert loss(table["ours"]) < min(loss(table[peer]) for peer in ("KDE", "KDE per column", "GMM"))


def test_the_readme_states_what_was_measured_of_forecasts():
    series = saved("series")["measured"].values()
    errors = np.array([[one[m]["mae"] for m in ("PredictiveStateModel", "ridge", "persistence")] for one in series])
    assert ((errors[:, :1] < errors[:, 1:]).sum(axis=0)).tolist() == [6, 5]
    assert len(saved("coverage")["measured"]) == 11


PUBLIC = ("latentviews", *(f"latentviews.{name}" for name in ("baselines", "datasets", "io", "plot", "report")))


@pytest.mark.parametrize("module", PUBLIC)
def test_the_reference_lists_every_public_name(module):
    lists = "\n".join(page.read_text() for page in (ROOT / "docs/reference").glob("*.md"))
    listed = {
        name
        for block in re.findall(rf"currentmodule:: {re.escape(module)}\n(.*?)```", lists, flags=re.DOTALL)
        for name in re.findall(r"^   (\w+)$", block, flags=re.MULTILINE)
    }
    missing = set(importlib.import_module(module).__all__) - listed
    assert not missing, f"add {sorted(missing)} to a list under `currentmodule:: {module}` in docs/reference/"
