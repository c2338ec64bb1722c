"""Functions, methods and records say what they take and give, models what they learn, with a formula and its source."""

import dataclasses
import importlib
import inspect
import re
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import pytest
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils import get_tags

import latentviews
from catalogue import FEATURES, LABELS, MODELS, OF_OTHER_ROWS, ROWS, VARIANTS
from latentviews import baselines, datasets, io, metrics, plot, report

PLACES = [latentviews, baselines, datasets, io, metrics, plot, report]


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
NAMED = {name: getattr(importlib.import_module(module), name) for module, name in LISTED}


def public_functions():
    """Functions, and the methods of public classes and of those of the reference, what they override first in line."""
    found = {}
    for one in filter(inspect.isclass, NAMED.values()):
        found |= public_methods(one)
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


def described(one, sections="Parameters"):
    """The names in the section of parameters, or in others."""
    text = inspect.getdoc(one) or ""
    parts = re.findall(rf"\n(?:{sections})\n-+\n(.*?)(?=\n\n[A-Z][a-z]+\n-+\n|\Z)", text, re.DOTALL)
    names = re.findall(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: *:|$)", "\n".join(parts), re.MULTILINE)
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
    assert {"two_sample_test", "MultiViewMixture.fit", "Forecast.quantile", "Loss.value"} < set(FUNCTIONS)


def test_the_lists_of_the_reference_are_found():
    assert len(NAMED) == len(LISTED) > 150
    assert ("latentviews", "MultiViewMixture") in LISTED


@pytest.mark.parametrize(("module", "name"), LISTED, ids=[name for _, name in LISTED])
def test_every_name_of_the_reference_has_an_example_that_runs(module, name):
    own = NAMED[name].__doc__ or ""
    lines = [line.strip() for line in own.splitlines() if line.strip().startswith(">>>")]

    assert "\nExamples\n" in inspect.cleandoc(own), f"{module}.{name} has no section of examples"
    assert [line for line in lines if "+SKIP" not in line], f"{module}.{name} has no example that runs"


CLASSES = {name: one for name, one in NAMED.items() if inspect.isclass(one)}


def fields_of(one):
    """The public fields of a record."""
    names = [field.name for field in dataclasses.fields(one)] if dataclasses.is_dataclass(one) else []
    return [name for name in names or getattr(one, "_fields", []) if not name.startswith("_")]


def arguments_of(one):
    """What a class of the package is made with: the fields of a record, the parameters of anything else."""
    ours = getattr(one.__init__, "__module__", "").startswith("latentviews")
    return fields_of(one) or (parameters_of(one.__init__) if ours else [])


def undescribed(one):
    """What a class is made with, and its docstring does not describe."""
    return sorted(set(arguments_of(one)) - described(one, "Parameters|Attributes"))


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_what_a_class_is_made_with_is_described(name):
    assert undescribed(CLASSES[name]) == []


def test_a_class_that_does_not_say_what_it_is_made_with_is_found():
    class Silent(NamedTuple):
        """Two fields.

        Attributes
        ----------
        said : int
        """

        said: int
        unsaid: int

    assert undescribed(Silent) == ["unsaid"]
    assert {"Table", "TestResult", "MultiViewData"} < {name for name, one in CLASSES.items() if fields_of(one)}


OF_SCIKIT_LEARN = {"n_features_in_", "feature_names_in_"}  # described for all models in docs/reference/models.md


def fitted_estimators():
    """Those of the catalogue, and those that learn from batches after one."""
    for model in (*MODELS, *OF_OTHER_ROWS, *VARIANTS):
        yield model.fit()
    for features in FEATURES:
        yield clone(features).fit(ROWS[:, :1])
    for model in (*MODELS, *OF_OTHER_ROWS):
        if hasattr(model.estimator, "partial_fit"):
            targets = [LABELS] if get_tags(model.estimator).target_tags.required else []
            classes = {"classes": [0, 1]} if is_classifier(model.estimator) else {}
            yield clone(model.estimator).partial_fit(model.rows, *targets, **classes)


@pytest.mark.filterwarnings("ignore")
def test_every_fitted_attribute_is_described():
    silent = defaultdict(set)
    for fitted in fitted_estimators():
        learnt = {name for name in vars(fitted) if name.endswith("_") and not name.startswith("_")}
        silent[type(fitted).__name__] |= learnt - OF_SCIKIT_LEARN - described(type(fitted), "Attributes")

    assert len(silent) > 20
    assert {name: sorted(left) for name, left in silent.items() if left} == {}


FORMULA = re.compile(r"\.\. math::|:math:`")
REFERENCE = re.compile(
    r"\bReferences -+ |[A-Z][\w’'-]+(?: et al\.)?,? \(?(?:19|20)\d\d\b"
)  # Song & Dai (2013), Dai et al. 2014
NO_REFERENCE = {"Kernel", "Laplace", "Delta", "Linear", "Polynomial", "Precomputed", "OneHotFeatures"} | {
    *("Loss", "Logistic", "Squared"),
    "TransformedDensity",  # the change of variables
}


def unsourced(doc):
    """What a docstring lacks of a formula and of where that comes from."""
    text = " ".join((doc or "").split())
    return [what for what, sign in (("a formula", FORMULA), ("a reference", REFERENCE)) if not sign.search(text)]


def with_formulas():
    """Estimators, and the functions beside them but those for files."""
    asked = {name: one for name, one in NAMED.items() if inspect.isfunction(one) and name in latentviews.__all__}
    fitted = {name: one for name, one in CLASSES.items() if issubclass(one, BaseEstimator)}
    return {name: one for name, one in (fitted | asked).items() if name not in ("save", "load")}


FORMULAS = with_formulas()


@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_every_estimator_has_its_formula_and_where_it_comes_from(name):
    assert unsourced(FORMULAS[name].__doc__) == (["a reference"] if name in NO_REFERENCE else [])


def test_a_docstring_without_formula_or_reference_is_found():
    assert {"MultiViewMixture", "two_sample_test"} < set(FORMULAS)
    assert unsourced("Forecasts of a series, for 2014 rows.") == ["a formula", "a reference"]
    assert unsourced("Of a series.\n\n.. math:: x = y\n\nSee Hefny, Downey &\nGordon 2015.") == []


ROOT = Path(__file__).parent.parent
LITERATURE = ROOT / "docs/reference/literature.md"
SURNAME = r"(?:van )?(?:Le\b|[A-ZÄÖÜ][’']?[A-ZÄÖÜ]?[a-zà-ž][\w’-]*)"
CITATION = re.compile(  # Hotelling 1936; Song & Dai (2013); Song, Anandkumar, Dai and Xie 2014; Song et al. (2014)
    rf"({SURNAME}(?:, {SURNAME})*)(?:,? (?:&|and) ({SURNAME}))?( et al\.)?(?:'s|’s)?,? \(?((?:18|19|20)\d\d)\b"
)


def citations(text):
    """What is cited by author and year: (surnames, whether there are more, year)."""
    text = re.sub(r'"\s*\n\s*[fr]*"|\n\s*# ', lambda joint: " " if "#" in joint[0] else "", text)
    for first, last, more, year in CITATION.findall(" ".join(text.split())):
        names = tuple(re.sub("['’]s$", "", name) for name in [*first.split(", "), *filter(None, [last])])
        if names != ("Statistics",):  # a journal
            yield names, bool(more), year


def works(text):
    """Surnames of the authors, and the year, of every entry of a list of works."""
    for authors, year in re.findall(r"^- (.+?) \((\d{4})\)\.", text.replace("\n  ", " "), re.MULTILINE):
        yield tuple(re.findall(r"([^\s,&][^,&]*), (?:\w\.[ -]?)+", authors)), year


WORKS = list(works(LITERATURE.read_text(encoding="utf-8")))
CITING = [
    *(path for folder in ("src", "examples") for path in sorted((ROOT / folder).rglob("*.py"))),
    *(path for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if "_build" not in path.parts),
]


def is_of(work, cited):
    """Whether a work is what is cited: all its authors by name, or the first and "et al."."""
    (authors, year), (names, more, then) = work, cited
    return year == then and (names == authors[:1] and len(authors) > 2 if more else names == authors)


def test_every_work_that_is_cited_is_on_the_page_of_literature():
    cited = {(one, path.name) for path in CITING if path != LITERATURE for one in citations(path.read_text("utf-8"))}

    assert len(cited) > 150
    assert sorted(one for one in cited if not any(is_of(work, one[0]) for work in WORKS)) == []
    assert [work for work in WORKS if not any(is_of(work, one) for one, _ in cited)] == [], "which nothing cites"


def test_the_literature_is_in_alphabetical_order():
    plain = str.maketrans("äöüéášćâ", "aoueasca", "’'-")
    keys = [([name.lower().translate(plain) for name in authors], year) for authors, year in WORKS]
    n_entries = LITERATURE.read_text(encoding="utf-8").count("\n- ")

    assert len(keys) == n_entries > 100
    assert keys == sorted(keys)


def test_citations_and_works_are_told_from_text():
    text = "As Kifer, Ben-David &\nGehrke (2004) and Wilson's (1927) ends; HSIC (Pfister et al. 2018), ICML 2014."
    entry = "- Le, Q., Sarlós, T. & Smola, A. J. (2013). Fastfood.\n- L’Ecuyer, P. (1999). Good parameters."

    assert list(citations(text)) == [
        (("Kifer", "Ben-David", "Gehrke"), False, "2004"),
        (("Wilson",), False, "1927"),
        (("Pfister",), True, "2018"),
    ]
    assert list(works(entry)) == [(("Le", "Sarlós", "Smola"), "2013"), (("L’Ecuyer",), "1999")]
