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
BLOCK = re.compile(r"^```(\S*).*\n((?s:.*?))^```[ \t]*$", flags=re.MULTILINE)
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
    assert len(re.findall(r"<!-- \w+/results/", text)) == len(FIGURES.FIGURE.findall(text)), (
        "a place that cannot be read"
    )


def test_a_figure_that_the_results_do_not_have_is_seen():
    text = README.read_text()
    stale = text.replace("1.04<!--", "1.05<!--")

    assert stale != text
    assert FIGURES.refreshed(stale) == text


@pytest.mark.parametrize(
    ("place", "how", "figure"),
    [
        ("times > ours > seconds", ".1f", "2.5"),
        ("times > ours > seconds", "x0.01 .2f", "0.03"),
        ("times > ours > apart", ".1e", "1.2 · 10⁻¹⁴"),
        ("times > * > seconds", "max .0f", "10"),
        ("times > [op]* > seconds", "count .0f", "2"),
        ("cells > flagged", "sd .1f", "0.1"),
        ("cells > rows of it=2? > flagged", ".1f", "0.3"),
        ("cells > largest flagged > rows of it", ".0f", "20"),
        ("times > ours > seconds over a/results/b.json > times > peers > seconds", ".2f", "0.25"),
    ],
)
def test_a_figure_is_written_as_its_comment_asks(place, how, figure, monkeypatch):
    times = {"ours": {"seconds": 2.5, "apart": 1.17e-14}, "peers": {"seconds": 10}}
    cells = [{"rows of it": 10, "flagged": 0.1}, {"rows of it": 20, "flagged": 0.3}, {"flagged": 0.2}]
    kept = {"times": times, "cells": cells}
    monkeypatch.setattr(FIGURES, "results", lambda name: kept)

    assert FIGURES.written("a/results/b.json", place, how) == figure


UNIT = r"(?:%|(?:times|ns|µs|ms|s|seconds|minutes|hours|[kMGT]i?B|per cent|rows (?:a|per) second)\b)"
COUNT = r"(?:\d[\d,]*|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|fifty|hundred|thousand)"
CLAIM = re.compile(rf"\d*\.\d+|10⁻[⁰¹²³⁴-⁹]+|\de[-−]\d+|\b{COUNT}(?: (?:to|and|or|–) (?:#|[\d.,]+))* {UNIT}")
HIDDEN = (  # code and output, what is indented as such, code in a line, formulas
    BLOCK,
    re.compile(r"(?<=\n\n)(?: {4}.*\n)+"),
    re.compile(r"`+[^`]*`+"),
    re.compile(r"\$\$[^$]*\$\$|\$[^$]*\$"),
)
NOT_MEASURED = {  # words around numbers that stand in no result, by why they do not
    "a level that is asked for": (
        "test at 5 %", "one at 5 %", "level of 5 %", ", 5 % by default", "streams at 5 % and at 1 %", "95 % quantile",
        "90 % intervals", "95 % intervals", "instead of 95 %", "moments at 95 %", "triples at 95 %",
    ),
    "how data were made, or cut into groups": (
        "4, 2 or 1.2 standard", "| 2 | 1.2 |", "separation of 1.2", "within .02 of zero", "from .02 to .1 away",
        "2 apart | .15 |", "the same | .3 |", "the same | .6 |", "correlation 0 | .5 | .9 |", "correlation of .15",
        "one of .3 in", "coupling of .2. At .24,", "0 | 0.1 | #", "|---:| | 0.1 | #", "for 0.1, 1 and 10", "α₀ = 0.1",
        "chance of about .85", "linked by .3 inside and .05 between",
    ),
    "what theory says": (
        "theory has −0.5", "200 resamples errs by 5 % itself, over 1,500 by 2 %", "which err by 2 % themselves",
        "about 0.8 bandwidths times the slope", "at zero hours is 2.0",
    ),
    "printed by the page itself, or by another package on its data": (
        "the model says 1.6", "as 4.1 is", "gives 0.77 and 0.23", "matter: 0.68 − (−0.67) = 1.35",
    ),
    "a setting of the code": (
        "more than 10 s on fewer than 300 rows", "below 2.5 times the noise", "agree to less than .7",
        "probability above 0.8", "from 64 MB on", "every two seconds", "right three times in four",
    ),
    "a number of bytes, or of chunks, that follows from that of rows": (
        "about 2.1 MB (2¹⁸ numbers)", "asks for 37 GiB", "800 MB of them at 10,000", "| 10⁹ | 24 GB |",
        "| 10¹¹ | 2.4 TB |", "10⁹ rows are 12 GB", "10¹¹ rows 1.2 TB", "10⁷ rows with ten times as many",
    ),
    "no claim": (
        "mixtools 2.0.0 in R 4.2.2, hmmlearn 0.3.3, StepMix 3.0.0 and FlowSOM 0.2.2", "Python 3.11",
        "The first ten minutes", "three times of the location",
    ),
}  # fmt: skip


def prose(text):
    """A page in one line, without code, output, formulas and links; # for every figure that names its place."""
    text = FIGURES.FIGURE.sub("#", text)
    for hidden in HIDDEN:
        text = hidden.sub(" § ", text)
    return " ".join(re.sub(r"\]\([^)]*\)", "]", text).split())


def without_source(text):
    """Figures of a page that name no place in a result and are not excepted, each with some words around it."""
    text = prose(text)
    for phrase in (phrase for phrases in NOT_MEASURED.values() for phrase in phrases):
        text = text.replace(phrase, " ")
    return [text[max(found.start() - 40, 0) : found.end() + 20] for found in CLAIM.finditer(text)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_figure_is_without_its_source(page):
    assert without_source(page.read_text()) == [], "name its place in a result, or say in NOT_MEASURED why it has none"


SOURCE = "<!-- speed/results/gpu.json > device > .1f -->"


@pytest.mark.parametrize(
    "claim",
    [
        "It errs by .04 less.", "| ours | 1.5 |", "0.3 s", "24 to 36 times smaller", f"24 to 36{SOURCE} times smaller",
        "four times as long", "in 95 % of draws", "12 MB", "less than 10⁻¹⁴", "the same to 4e-10", "50 rows a second",
    ],
)  # fmt: skip
def test_a_figure_without_its_source_is_seen(claim):
    assert without_source(f"A page.\n\n{claim}\n")


@pytest.mark.parametrize(
    "text",
    [
        "```python\nx = 1.5\n```", "```{measured} speed/1.5.json\n```", "`x=1.5`", "$x = 1.5$", "[page](v1.5.md)",
        f"2.5{SOURCE} s", f"1.2 · 10⁻³{SOURCE}", "a test at 5 %", "300 rows",
    ],
)  # fmt: skip
def test_what_is_no_figure_or_names_its_source_is_left_alone(text):
    assert without_source(f"A page.\n\n{text}\n") == []


def test_every_exception_is_on_a_page():
    pages = "\n".join(prose(page.read_text()) for page in PAGES)

    assert [phrase for phrases in NOT_MEASURED.values() for phrase in phrases if phrase not in pages] == []


def test_the_claims_are_those_of_the_other_results():
    assert json.loads(json.dumps(from_root("benchmarks/accuracy/claims.py").claims())) == saved("claims")


TABLES = {  # Markdown beside the results, and what its script writes of them
    "cytometry": lambda script: script.summary(saved("cytometry")),
    "lowrank": lambda script: script.table(saved("lowrank")),
    "mixtures": lambda script: script.markdown(),
    "series": lambda script: script.table(saved("series")["measured"]),
    "uci_table1": lambda script: script.report(saved("uci_table1")),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_saved_table_states_what_the_saved_results_have(name):
    table = (ROOT / f"benchmarks/accuracy/results/{name}.md").read_text()
    again = TABLES[name](from_root(f"benchmarks/accuracy/{name}.py"))

    command = re.compile(r"`python [^`]*`")  # the last that was run, which may have been of a part
    assert command.sub("", again).splitlines() == command.sub("", table).splitlines()


def test_every_saved_table_is_compared_with_its_results():
    assert {path.stem for path in ROOT.glob("benchmarks/*/results/*.md")} == set(TABLES)


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


@pytest.mark.parametrize(
    ("moved", "since", "script", "unmoved"),
    [
        ({}, False, "accuracy/ica.py", True),
        ({"ica/mixing": 0.1}, False, "accuracy/ica.py", False),
        ({}, True, "accuracy/ica.py", False),  # the history ends before today's code
        ({}, False, "speed/chains.py", False),  # times are no answers
    ],
)
def test_results_are_unmoved_where_no_answer_on_record_has_moved(moved, since, script, unmoved, tmp_path, monkeypatch):
    evidence, history = from_root("benchmarks/evidence.py"), tmp_path / "answers.json"
    history.write_text(json.dumps({"results": {"from": "abc", "steps": [{"commit": "def", "moved": moved}]}}))
    monkeypatch.setattr(evidence, "saved", lambda name: history)
    monkeypatch.setattr(evidence, "differs", lambda commit, files: since)
    monkeypatch.setattr(evidence, "is_current", lambda step, code: code == "abc")
    assert evidence.is_unmoved(evidence.Step(script, "")) is unmoved


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


def test_some_page_says_how_a_figure_was_measured():
    text = "\n".join(page.read_text() for page in FIGURES.pages())

    cited = set(re.findall(r"<!-- (\w+/results/\S+\.json) ", text))
    told = set(" ".join(re.findall(r"^```\{measured\} (.*)$", text, flags=re.MULTILINE)).split())

    assert cited - told == set()


ROOMS = ("baselines", "datasets", "io", "losses", "metrics", "plot", "report")
PUBLIC = ("latentviews", *(f"latentviews.{name}" for name in ROOMS))


def public_names(module):
    """Those that a module offers, or without a list of them those that it defines."""
    defined = {name for name, one in vars(module).items() if getattr(one, "__module__", "") == module.__name__}
    return set(getattr(module, "__all__", [name for name in defined if not name.startswith("_")]))


@pytest.mark.parametrize("module", PUBLIC)
def test_the_reference_lists_every_public_name(module):
    lists = "\n".join(page.read_text() for page in (ROOT / "docs/reference").glob("*.md"))
    listed = {
        name
        for block in re.findall(rf"currentmodule:: {re.escape(module)}\n(.*?)```", lists, flags=re.DOTALL)
        for name in re.findall(r"^   (\w+)$", block, flags=re.MULTILINE)
    }
    missing = public_names(importlib.import_module(module)) - listed
    assert not missing, f"add {sorted(missing)} to a list under `currentmodule:: {module}` in docs/reference/"
