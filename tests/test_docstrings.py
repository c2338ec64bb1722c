"""Every public function and method says what it takes and what it gives."""

import inspect
import re

import pytest

import latentviews
from latentviews import baselines, datasets, io, metrics, plot, report

PLACES = [latentviews, baselines, datasets, io, metrics, plot, report]


def public_functions():
    """Functions, and the methods that classes of the package define, by where they are found."""
    found = {}
    for place in PLACES:
        names = getattr(place, "__all__", None) or [
            name for name, one in vars(place).items() if getattr(one, "__module__", "") == place.__name__
        ]
        for name in names:
            one = getattr(place, name)
            if inspect.isclass(one):
                for method, function in inspect.getmembers(one, inspect.isroutine):
                    function = inspect.unwrap(function)
                    own = getattr(function, "__module__", "") or ""
                    if not method.startswith("_") and own.startswith("latentviews"):
                        found[function.__qualname__] = function
            elif inspect.isfunction(one) and not name.startswith("_"):
                found[name] = inspect.unwrap(one)
    return found


FUNCTIONS = public_functions()


def parameters_of(function):
    return [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]


def described(function):
    """The names in the section of parameters."""
    section = re.search(r"\n *Parameters\n *-+\n(.*?)(?=\n *\n *[A-Z][a-z]+\n *-+\n|\Z)", function.__doc__, re.DOTALL)
    names = re.findall(r"^ *(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: *:|$)", section[1] if section else "", re.MULTILINE)
    return {one.strip("* ") for line in names for one in line.split(",")}


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_parameters_and_returns_are_said(name):
    function = FUNCTIONS[name]

    assert function.__doc__, name
    missing = [one for one in parameters_of(function) if one not in described(function)]
    assert not missing, f"{name} does not describe {missing}"
    gives = inspect.signature(function).return_annotation
    if gives not in (None, "None"):
        assert re.search(r"\n *(Returns|Yields)\n *-+\n", function.__doc__), f"{name} does not say what it returns"
