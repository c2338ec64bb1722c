"""Models that were saved: reading and checking them, and what they say of rows."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from latentviews._sentences import counted
from latentviews.cli.common import in_options, read, sample
from latentviews.cli.early import model_file
from latentviews.cli.options import CommandError
from latentviews.discrete.crowds import CrowdLabels
from latentviews.io import InputError, Reading, Table, Words
from latentviews.io.saving import load
from latentviews.mixtures.problem import classes_of


def load_any(path: Path) -> tuple[Path, Any]:
    """A model of whatever kind, and its file, which may be named by the directory of a fit."""
    path = model_file(path)
    try:
        return path, load(path)
    except OSError as error:
        raise CommandError(f"{path} cannot be read ({(error.strerror or str(error)).lower()}).") from error


def load_model(path: Path) -> Any:
    """A fitted mixture from its file, or from the directory of a fit."""
    return checked_mixture(*load_any(path))


def checked_mixture(path: Path, model: Any) -> Any:
    """A model that was read, if it is a fitted mixture whose parts fit together."""
    if isinstance(model, CrowdLabels):
        raise CommandError(
            f"{path} holds a CrowdLabels, the labels of a crowd's tasks, which are in tasks.csv beside it; predict and "
            "report take what `latentviews fit` wrote, and `latentviews info` tells more."
        )
    if not all(hasattr(model, part) for part in ("predict_proba", "weights_", "components_")):
        raise CommandError(f"{path} holds a {type(model).__name__}, which is no fitted mixture.")
    try:
        fault = _fault(model)
    except Exception as error:  # whatever parts that do not fit together lead to
        fault = f"{type(error).__name__}: {error}"
    if fault:
        raise CommandError(f"{path} is a damaged model: {fault}. Fit it again, or use a copy that is whole.")
    return model


def _fault(model: Any) -> str | None:
    """What does not fit together in a model that was read; None where it judges a row in the middle of its data."""
    k, weights, d = model.n_components_, np.asarray(model.weights_), model.n_features_in_
    if type(k) is not int or weights.shape != (k,):
        return f"it says that it has {k!r:.80} classes, and has weights of shape {weights.shape}"
    if not np.all(weights >= 0) or not np.isclose(weights.sum(), 1):
        return "the weights of its classes are no shares of one"
    if len(model.components_) != len(model.views_) or any(view.n_components != k for view in model.components_):
        return f"its views do not have distributions of {k} classes each"
    names = getattr(model, "feature_names_in_", None)
    if names is not None and (len(names) != d or not all(isinstance(name, str) for name in names)):
        return f"it does not name its {d} columns"
    reading = getattr(model, "reading_", None)
    if reading is not None:
        known = isinstance(reading, Reading) and all(isinstance(name, str) for name in reading.columns)
        if not known or not len(reading.columns) == len(reading.transforms) == d:
            return "it does not say how its file was read"
        for scale in reading.transforms:
            if (
                scale is not None
                and not isinstance(scale, Words)
                and not np.isfinite(scale(np.array([0.0, 1.0]))).all()
            ):
                return "one of its scales is none"
    row = np.full((1, d), np.nan)
    for view, component in zip(model.views_, model.components_, strict=True):
        nodes = component._domain().nodes
        row[0, view] = nodes[len(nodes) // 2]
    if not np.isfinite(classes_of(model).posteriors(row)).all():
        return "it gives no probabilities"
    return None


def read_for(model: Any, arguments: argparse.Namespace) -> Table:
    """The table in FILE, read as the one that the model was fitted to."""
    reading = getattr(model, "reading_", None)
    if reading is not None:
        try:
            return read(arguments, reading=reading)
        except InputError as error:
            other = "the model was fitted to compensated channels, so that it is needed"
            raise InputError(str(error).replace("the option `compensate` reads the file without", other)) from error
    names = getattr(model, "feature_names_in_", None)  # a model that was saved in Python
    table = read(arguments, None if names is None else list(map(str, names)))
    if len(table.columns) != model.n_features_in_:
        raise InputError(
            f"{arguments.file} has {counted(len(table.columns), 'column')}, but the model was fitted to "
            f"{model.n_features_in_}."
        )
    return table


def sample_for(model: Any, arguments: argparse.Namespace) -> Table | None:
    """Some rows of the table in FILE where it is large, and the model takes its numbers as they are."""
    reading = getattr(model, "reading_", None)
    if reading is None or any(scale is not None for scale in reading.transforms):
        return None
    return sample(arguments, list(reading.columns), reading=reading)


def rows_of(table: Table, model: Any) -> Any:
    """The table as the model was fitted to it: with names, or without."""
    return table.frame() if hasattr(model, "feature_names_in_") else table.values


def has_noise(model: Any) -> bool:
    """Whether noise is a class of a model."""
    return classes_of(model).noise_class


def noise_weight(model: Any) -> float | None:
    """How common noise is, where it is a class."""
    return float(classes_of(model).noise_weight) if has_noise(model) else None


def noise_of(model: Any, posteriors: np.ndarray) -> np.ndarray | None:
    """The probability of noise, where it is a class."""
    return np.clip(1 - posteriors.sum(axis=1), 0.0, 1.0) if has_noise(model) else None


def dependence_of(model: Any) -> str | None:
    """What a fit does about views that depend on each other inside classes."""
    return classes_of(model).dependence


def chosen_dependence(model: Any) -> str | None:
    """Why a fit takes views as it does, where that was left to it."""
    choice = getattr(model, "dependence_choice_", None)
    return None if choice is None else in_options(choice.sentence)
