"""README and the pages in docs/ show what their examples really print, and link to what is there."""

import contextlib
import doctest
import importlib
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


def saved(name):
    return json.loads((ROOT / "benchmarks/accuracy/results" / f"{name}.json").read_text())["results"]


def cells_found(method, collection):
    """The mean over samples of the mean F-measure over seeds; the sample with five columns is another table."""
    runs = {}
    for run in saved("cytometry"):
        if run["method"] == method and re.fullmatch(rf"{collection}_\d+", run["sample"]):
            runs.setdefault(run["sample"], []).append(run["F"])
    return len(runs), np.mean([np.mean(values) for values in runs.values()])


def test_the_readme_states_what_was_measured_of_cell_populations():
    text, collections = " ".join(README.read_text().split()), ("dlbcl", "gvhd", "hsct")
    ours = [cells_found("MultiViewMixture, dependence", name) for name in collections]
    peer = [cells_found("HDBSCAN + nearest neighbours, number not given", name)[1] for name in collections]
    flowsom = [cells_found("FlowSOM", name)[1] for name in collections]
    assert f"{sum(size for size, _ in ours)} samples" in text
    for means in ([mean for _, mean in ours], peer, flowsom):
        first, second, third = (f"{mean:.3f}".lstrip("0") for mean in means)
        assert f"{first}, {second} and {third}" in text


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

    bands, text = saved("coverage"), README.read_text()
    shares = [100 * one["coverage"] for one in bands["measured"].values()]
    assert f"held {100 * bands['mean coverage']:.1f} %" in text
    assert f"{min(shares):.0f} % to {max(shares):.1f} %" in text
    assert len(shares) == 11


def test_the_readme_states_what_was_measured_of_normal_classes():
    ratios = [saved("parametric")[f"normal, 10000 rows, separation {apart}"]["summary"]["ratio"] for apart in (4, 2)]
    assert [f"{ratio:.2f}" for ratio in ratios] == re.findall(r"(\d\.\d\d) times", README.read_text())


PUBLIC = ("latentviews", *(f"latentviews.{name}" for name in ("baselines", "datasets", "io", "plot")))


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
