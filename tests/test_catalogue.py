"""Whatever the package offers is in the catalogue, so that the tests of its kind run over it."""

import importlib
import inspect
import pkgutil

import pytest
from sklearn.base import BaseEstimator

import catalogue
import latentviews
from latentviews.core.kernels.base import Kernel
from latentviews.core.kernels.space import Space
from latentviews.io.opening import MAGIC, _kind
from latentviews.losses import Loss
from latentviews.mixtures.dependence import merging

KINDS = {  # what makes a class one of a kind, and the list it belongs on
    "kernels": (
        lambda kind: issubclass(kind, Kernel) and kind is not Kernel,
        [*catalogue.KERNELS, *catalogue.OBJECT_KERNELS],
    ),
    "solvers": (lambda kind: hasattr(kind, "decompose"), catalogue.SOLVERS),
    "polishes": (lambda kind: hasattr(kind, "polish"), catalogue.POLISHES),
    "methods": (lambda kind: hasattr(kind, "estimate"), catalogue.METHODS),
    "dynamics": (lambda kind: hasattr(kind, "learn"), catalogue.DYNAMICS),
    "losses": (lambda kind: issubclass(kind, Loss) and kind is not Loss, catalogue.LOSSES),
    "models and feature maps": (
        lambda kind: hasattr(kind, "fit"),
        [*(model.estimator for model in (*catalogue.MODELS, *catalogue.OF_OTHER_ROWS)), *catalogue.FEATURES],
    ),
}


def public_classes():
    """Every class that some module of the package defines under a public name."""
    for module in pkgutil.walk_packages(latentviews.__path__, "latentviews."):
        for name, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if kind.__module__ == module.name and not name.startswith("_"):
                yield kind


ESTIMATORS = [kind for kind in public_classes() if issubclass(kind, BaseEstimator)]


@pytest.mark.parametrize(("belongs", "listed"), KINDS.values(), ids=KINDS.keys())
def test_every_class_of_a_kind_is_on_its_list(belongs, listed):
    assert {kind for kind in ESTIMATORS if belongs(kind)} <= {type(one) for one in listed}


def test_every_space_is_listed():
    spaces = {kind for kind in public_classes() if issubclass(kind, Space) and not kind.__subclasses__()}

    assert spaces <= {type(space) for space in catalogue.SPACES}


def test_every_class_with_parameters_is_on_some_list():
    lists = [listed for _, listed in KINDS.values()]
    known = {type(one) for listed in (*lists, catalogue.DEPENDENCES) for one in listed}
    bases = {base for kind in known for base in kind.__mro__[1:]}

    assert set(ESTIMATORS) <= known | bases


def test_every_display_is_listed():
    displays = {kind for kind in public_classes() if hasattr(kind, "from_estimator")}

    assert displays == set(catalogue.DISPLAYS)


def test_every_cost_of_merging_is_listed():
    costs = [function for name, function in vars(merging).items() if name.endswith("_cost") and name[0] != "_"]

    assert set(costs) == set(catalogue.COSTS)


def test_every_format_with_names_and_plain_numbers_has_a_writer(tmp_path):
    formats = {"text", "zarr", *MAGIC.values()} - {"zip", "fcs", "npy"}  # archives; transformed; without names

    for name, write in catalogue.WRITERS.items():
        write(tmp_path / name)

    assert {_kind(tmp_path / name) for name in catalogue.WRITERS} == formats
