"""What ``latentviews info`` tells of a saved model."""

import argparse
from pathlib import Path
from typing import Any

from latentviews._sentences import counted
from latentviews.cli.common import tell
from latentviews.cli.crowd import describe_model as describe_crowd
from latentviews.cli.crowd import summarize_model as summarize_crowd
from latentviews.cli.models import checked_mixture, dependence_of, load_any, noise_weight
from latentviews.cli.options import CommandError
from latentviews.core.view_names import view_names
from latentviews.discrete.crowds import CrowdLabels


def tell_model(arguments: argparse.Namespace) -> None:
    """Print what is in the model in FILE."""
    path = arguments.file
    model = load_any(path)[1]
    if isinstance(model, CrowdLabels):
        crowd = crowd_summary(path, model)
        tell(arguments, describe_crowd(crowd), crowd)
        return
    checked_mixture(path, model)
    tell(arguments, describe_model(model), summarize_model(model))


def crowd_summary(path: Path, model: CrowdLabels) -> dict[str, Any]:
    """What a model of answers is, or a sentence where its parts do not fit together."""
    try:
        return summarize_crowd(model)
    except Exception as error:  # whatever such parts lead to
        raise CommandError(f"{path} is a damaged or unfitted CrowdLabels ({error}); fit it again.") from error


def summarize_model(model: Any) -> dict[str, Any]:
    """What a model is, for machines."""
    reading = getattr(model, "reading_", None)
    return {
        "class": type(model).__name__,
        "n_classes": int(model.n_components_),
        "weights": model.weights_.tolist(),
        "dependence": dependence_of(model),
        "noise_weight": noise_weight(model),
        "agreement": float(model.agreement_) if dependence_of(model) else None,
        "views": list(view_names(model)),
        "transforms": None if reading is None else [None if one is None else repr(one) for one in reading.transforms],
        "columns": list(map(str, getattr(model, "feature_names_in_", range(model.n_features_in_)))),
    }


def describe_model(model: Any) -> str:
    """The same for people."""
    summary = summarize_model(model)
    scales = zip(summary["columns"], summary["transforms"] or [], strict=False)
    k, dependence = summary["n_classes"], "assumed to be independent inside classes"
    if summary["dependence"]:
        dependence = f"may depend on each other inside classes (copula; agreement of starts {summary['agreement']:.2f})"
    noise = "no class; stray rows go to the likeliest one"
    if summary["noise_weight"] is not None:
        noise = f"a class, called -1, of weight {summary['noise_weight']:.3f} beside the others"
    lines = [
        f"a fitted {summary['class']}: {k} class{'' if k == 1 else 'es'} in {counted(len(summary['views']), 'view')}",
        f"views     {' | '.join(summary['views'])}, {dependence}",
        f"weights   {'  '.join(f'{weight:.3f}' for weight in summary['weights'])}",
        f"noise     {noise}",
        *(f"scale     {name}: {scale}" for name, scale in scales if scale),
    ]
    return "\n".join(lines)
