"""The register holds every class that a model may consist of, and files of every format load and answer as they did."""

import importlib
import inspect
import pkgutil
import subprocess
import sys
from collections import namedtuple
from dataclasses import dataclass, is_dataclass
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import latentviews
from catalogue import MODELS as LISTED
from catalogue import OF_OTHER_ROWS
from latentviews import load, save
from latentviews.io import register
from latentviews.io.naming import class_of, name_of, present_name
from latentviews.io.register import CLASSES, FOREIGN, FORMER, FORMER_FIELDS, MAKERS
from saved_models import MODELS, NEWER

HERE = Path(__file__).parent
CATALOGUE = LISTED + OF_OTHER_ROWS
FORMATS = ["format1", "format2"]
UNSAVED = {"cli", "report", "plot", "_parameters"}  # what is shown of a moment, and what classes declare


def every_class():
    """The estimators and records of the package that something can be made of: (module, class)."""
    for module in pkgutil.walk_packages(latentviews.__path__, "latentviews."):
        if module.name.split(".")[1] not in UNSAVED:
            for kind in vars(importlib.import_module(module.name)).values():
                if inspect.isclass(kind) and kind.__module__ == module.name and is_saved(kind):
                    yield kind


def is_saved(kind):
    record = is_dataclass(kind) or (issubclass(kind, tuple) and hasattr(kind, "_fields"))
    concrete = not kind.__name__.startswith("_") and not inspect.isabstract(kind)
    return concrete and (record or issubclass(kind, BaseEstimator))


def test_every_estimator_and_record_is_registered():
    missing = [
        f'    "{kind.__name__}": "{kind.__module__.removeprefix("latentviews.")}",'
        for kind in every_class()
        if name_of(kind) is None
    ]

    assert not missing, "add to CLASSES in latentviews/io/register.py:\n" + "\n".join(missing)


@pytest.mark.parametrize("name", [*CLASSES, *FOREIGN])
def test_a_registered_name_is_that_of_one_class(name):
    kind = class_of(name)

    assert name_of(kind) == name
    assert name in FOREIGN or is_saved(kind)


def test_the_register_is_in_order_and_names_nothing_twice():
    assert list(CLASSES) == sorted(CLASSES)
    assert not CLASSES.keys() & FOREIGN.keys()


def test_former_names_lead_to_present_ones():
    assert not FORMER.keys() & CLASSES.keys()
    assert all(present_name(old) in CLASSES for old in FORMER if "." not in old)
    assert all(present_name(list(old.rsplit(".", 1))) in CLASSES | MAKERS for old in FORMER if "." in old)
    assert FORMER_FIELDS.keys() <= CLASSES.keys()


def test_a_name_of_two_classes_is_told_by_its_module():
    assert present_name(["latentviews.copulas", "CopulaMixture"]) == name_of(
        importlib.import_module("latentviews.mixtures.dependence.copulas").CopulaMixture
    )
    assert present_name(["latentviews.joint_mixtures", "CopulaMixture"]) == name_of(
        importlib.import_module("latentviews.joint.copulas").JointMixture
    )


def test_a_renamed_class_with_a_renamed_field_still_loads(tmp_path, monkeypatch):
    saved = latentviews.Gaussian(0.25)
    save(saved, tmp_path / "model")
    monkeypatch.setitem(register.CLASSES, "Normal", "core.kernels.real:Laplace")
    monkeypatch.delitem(register.CLASSES, "Gaussian")
    monkeypatch.setitem(register.FORMER, "Gaussian", "Bell")
    monkeypatch.setitem(register.FORMER, "Bell", "Normal")
    monkeypatch.setitem(register.FORMER_FIELDS, "Normal", {"bandwidth": "width"})

    loaded = load(tmp_path / "model")

    assert type(loaded) is latentviews.Laplace
    assert loaded.width == 0.25


def test_a_class_that_only_bears_a_registered_name_is_not_saved():
    @dataclass
    class Gaussian:
        bandwidth: float

    pca = type("PCA", (BaseEstimator,), {})
    assert name_of(Gaussian) is None
    assert name_of(pca) is None
    assert name_of(namedtuple("Decomposition", "values vectors residual")) is None


def test_the_tables_load_nothing():
    code = (
        "import importlib.util, sys; spec = importlib.util.spec_from_file_location('register', sys.argv[1]); "
        "spec.loader.exec_module(importlib.util.module_from_spec(spec)); "
        "assert not {name for name in sys.modules if name.split('.')[0] in ('latentviews', 'sklearn', 'numpy')}"
    )
    subprocess.run([sys.executable, "-c", code, register.__file__], check=True)


# ------------------------------------------------------------------------------------- files of every format so far


def fixtures():
    return [(kind, path.stem) for kind in FORMATS for path in sorted((HERE / kind).glob("*.latentviews"))]


@pytest.mark.parametrize(("kind", "name"), fixtures())
def test_a_model_saved_before_answers_as_it_did(kind, name):
    answers = np.load(HERE / kind / "answers.npz")

    model = load(HERE / kind / f"{name}.latentviews")

    answer = getattr(model, str(answers[f"{name}_method"]))(answers[f"{name}_rows"])
    np.testing.assert_allclose(answer, answers[f"{name}_answer"], rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("kind", FORMATS)
def test_there_is_a_file_of_every_estimator(kind):
    names = {name for each, name in fixtures() if each == kind}

    assert names == set(MODELS) - (NEWER if kind == "format1" else set())


@pytest.mark.parametrize(
    "room", ["mixtures", "discrete", "sequences", "joint", "decomposition", "stochastic", "baselines", "comparison"]
)
def test_the_newest_format_has_a_file_of_every_estimator_of_a_room(room):
    saved = {type(model) for model, *_ in MODELS.values()}
    listed = {type(model.estimator) for model in CATALOGUE if f".{room}." in type(model.estimator).__module__}

    assert listed <= saved


@pytest.mark.parametrize("kind", FORMATS)
def test_the_files_are_small(kind):
    sizes = [path.stat().st_size for path in (HERE / kind).iterdir()]

    assert sum(sizes) < 33_000 * len(sizes)
