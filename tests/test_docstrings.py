"""Functions and methods say what they take and give, estimators their formula and its source; every name shows how."""

import importlib
import inspect
import re
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import latentviews
from latentviews import baselines, datasets, io, metrics, plot, report

PLACES = [latentviews, baselines, datasets, io, metrics, plot, report]


def public_functions():
    """Functions, and the methods that classes of the package define, with what they override first in line."""
    found = {}
    for place in PLACES:
        own = [name for name, one in vars(place).items() if getattr(one, "__module__", "") == place.__name__]
        for name in getattr(place, "__all__", None) or own:
            one = getattr(place, name)
            if inspect.isclass(one):
                found |= public_methods(one)
            elif inspect.isfunction(one) and not name.startswith("_"):
                found[name] = [inspect.unwrap(one)]
    return found


def public_methods(one):
    """The methods of a class that the package defines, each after those of its bases that it overrides."""
    found = {}
    for name, _ in inspect.getmembers(one, inspect.isroutine):
        defined = [getattr(base, name) for base in one.__mro__ if name in vars(base)]
        defined = [inspect.unwrap(each) for each in reversed(defined)]
        defined = [each for each in defined if (getattr(each, "__module__", "") or "").startswith("latentviews")]
        if defined and not name.startswith("_"):
            found[defined[-1].__qualname__] = defined
    return found


FUNCTIONS = public_functions()


def parameters_of(function):
    return [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]


def described(function):
    """The names in the section of parameters."""
    text = inspect.getdoc(function) or ""
    section = re.search(r"\nParameters\n-+\n(.*?)(?=\n\n[A-Z][a-z]+\n-+\n|\Z)", text, re.DOTALL)
    names = re.findall(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: *:|$)", section[1] if section else "", re.MULTILINE)
    return {one.strip("* ") for line in names for one in line.split(",")}


def lacks(functions):
    """What a function does not say, nor what it overrides."""
    last = functions[-1]
    said = set().union(*(described(one) for one in functions))
    missing = [one for one in parameters_of(last) if one not in said]
    told = any(re.search(r"\n(Returns|Yields)\n-+\n", inspect.getdoc(one) or "") for one in functions)
    gives = inspect.signature(last).return_annotation not in (None, "None")
    return missing + (["what it returns"] if gives and not told else [])


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_parameters_and_returns_are_said(name):
    assert lacks(FUNCTIONS[name]) == []


def test_a_function_that_does_not_say_is_found():
    def silent(x: int) -> int:
        """Nothing."""

    assert lacks([silent]) == ["x", "what it returns"]


def listed_names():
    """The names in the lists of docs/reference, with the modules that they are listed under."""
    found = []
    for page in sorted((Path(__file__).parent.parent / "docs/reference").glob("*.md")):
        module = None
        for line in page.read_text(encoding="utf-8").splitlines():
            if line.startswith(".. currentmodule:: "):
                module = line.split()[-1]
            elif re.fullmatch(r"   [A-Za-z_]\w*", line):
                found.append((module, line.strip()))
    return found


LISTED = listed_names()


def test_the_lists_of_the_reference_are_found():
    assert len(LISTED) > 150
    assert ("latentviews", "MultiViewMixture") in LISTED


@pytest.mark.parametrize(("module", "name"), LISTED, ids=[name for _, name in LISTED])
def test_every_name_of_the_reference_has_an_example_that_runs(module, name):
    own = getattr(importlib.import_module(module), name).__doc__ or ""
    lines = [line.strip() for line in own.splitlines() if line.strip().startswith(">>>")]

    assert "\nExamples\n" in inspect.cleandoc(own), f"{module}.{name} has no section of examples"
    assert [line for line in lines if "+SKIP" not in line], f"{module}.{name} has no example that runs"


FORMULA = re.compile(r"\.\. math::|:math:`")
REFERENCE = re.compile(
    r"\bReferences -+ |[A-Z][\w’'-]+(?: et al\.)?,? \(?(?:19|20)\d\d\b"
)  # Song & Dai (2013), Dai et al. 2014
NO_REFERENCE = {"Kernel", "Laplace", "Delta", "Linear", "Polynomial", "Precomputed", "OneHotFeatures"} | {
    *("Logistic", "Squared"),
    "TransformedDensity",  # the change of variables
}


def unsourced(doc):
    """What a docstring lacks of a formula and of where that comes from."""
    text = " ".join((doc or "").split())
    return [what for what, sign in (("a formula", FORMULA), ("a reference", REFERENCE)) if not sign.search(text)]


def with_formulas():
    """Estimators, and the functions beside them but those for files."""
    listed = {name: getattr(importlib.import_module(module), name) for module, name in LISTED}
    asked = {name: one for name, one in listed.items() if inspect.isfunction(one) and name in latentviews.__all__}
    fitted = {name: one for name, one in listed.items() if inspect.isclass(one) and issubclass(one, BaseEstimator)}
    return {name: one for name, one in (fitted | asked).items() if name not in ("save", "load")}


FORMULAS = with_formulas()


@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_every_estimator_has_its_formula_and_where_it_comes_from(name):
    assert unsourced(FORMULAS[name].__doc__) == (["a reference"] if name in NO_REFERENCE else [])


def test_a_docstring_without_formula_or_reference_is_found():
    assert {"MultiViewMixture", "two_sample_test"} < set(FORMULAS)
    assert unsourced("Forecasts of a series, for 2014 rows.") == ["a formula", "a reference"]
    assert unsourced("Of a series.\n\n.. math:: x = y\n\nSee Hefny, Downey &\nGordon 2015.") == []
