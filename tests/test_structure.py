"""What a reader of the package may count on: one class per name, files and functions that fit in a glance."""

import ast
import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

import latentviews

pytestmark = pytest.mark.cheap

ROOT = Path(latentviews.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
PAGES = {"cli", "report"}  # whose functions list what is shown


def nodes(path, kinds):
    return [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, kinds)]


def code_lines(function):
    """The lines of a function without its docstring."""
    documented = function.body[0] if ast.get_docstring(function) else None
    length = function.end_lineno - function.lineno + 1
    return length - (documented.end_lineno - documented.lineno + 1 if documented else 0)


def test_no_two_classes_have_one_name():
    names = Counter(node.name for path in FILES for node in nodes(path, ast.ClassDef))

    assert [name for name, count in names.items() if count > 1] == []


def test_no_file_has_more_than_400_lines():
    assert [path.name for path in FILES if path.read_text(encoding="utf-8").count("\n") > 400] == []


def test_no_function_has_more_than_40_lines():
    long = [
        f"{path.relative_to(ROOT)}: {function.name}"
        for path in FILES
        if path.relative_to(ROOT).parts[0] not in PAGES
        for function in nodes(path, ast.FunctionDef)
        if code_lines(function) > 40
    ]
    assert long == []


def test_every_room_and_module_says_what_it_is():
    assert [path.name for path in FILES if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))] == []


def test_every_news_fragment_is_of_a_kind_that_a_release_gathers():
    repository = Path(__file__).parent.parent
    told = tomllib.loads((repository / "pyproject.toml").read_text())["tool"]["towncrier"]
    kinds = "|".join(kind["directory"] for kind in told["type"])
    names = [path.name for path in (repository / told["directory"]).iterdir() if path.name != "README.md"]

    assert [name for name in names if not re.fullmatch(rf"\d+\.({kinds})\.md", name)] == []


def test_the_citation_is_of_this_version():
    text = (Path(__file__).parent.parent / "CITATION.cff").read_text()

    assert f"version: {latentviews.__version__}\n" in text


def test_the_lowest_versions_that_are_tested_are_those_that_are_allowed():
    repository = Path(__file__).parent.parent
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    asked = [*project["dependencies"], *(line for name in ("plot", "io", "cli", "dask") for line in extras[name])]
    allowed = dict(re.match(r"([\w-]+)(?:\[.*\])?>=([\d.]+)$", line).groups() for line in asked if ">=" in line)

    tested = dict(re.findall(r"^([\w-]+)==([\d.]+)\.\*", (repository / "lowest.txt").read_text(), flags=re.MULTILINE))

    assert tested.keys() == allowed.keys()
    for name, version in allowed.items():
        assert tested[name].startswith(version), f"{name}: pyproject.toml allows {version}, lowest.txt {tested[name]}"
