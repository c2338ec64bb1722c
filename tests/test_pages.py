"""README and the pages in docs/ show what their examples really print, and link to what is there."""

import contextlib
import doctest
import io
import re
import shlex
import warnings
from pathlib import Path

import matplotlib as mpl
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


def test_the_readme_is_short():
    text = README.read_text()
    assert len(text.splitlines()) <= 150
    code = re.search(r"```python\n(.*?)```", text, flags=re.DOTALL).group(1)
    assert len(code.splitlines()) <= 20
