"""What ``fit`` tells: a summary for machines, and the same for people."""

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from latentviews import __version__
from latentviews._sentences import counted
from latentviews.cli.common import in_options
from latentviews.cli.models import chosen_dependence, dependence_of, noise_weight
from latentviews.cli.wanted import listed_names, shortened_names
from latentviews.core.view_names import view_names
from latentviews.diagnosis.diagnose import CERTAIN, Diagnosis, most_probable
from latentviews.io import Table
from latentviews.mixtures.mixture import MultiViewMixture


class Tally:
    """Rows counted by their classes, some at a time."""

    def __init__(self, k: int):
        self.n_rows, self.n_noise, self.n_uncertain, self.logs = 0, 0, 0, 0.0
        self.counts, self.certainties = np.zeros(k, dtype=int), np.zeros(k)

    def add(self, posteriors: np.ndarray, scores: np.ndarray | None = None) -> np.ndarray:
        """The classes of some rows, which are counted; -1 is noise. ``scores`` are the logs of their densities."""
        labels, certainty = most_probable(posteriors)
        here = labels >= 0
        self.counts += np.bincount(labels[here], minlength=len(self.counts))
        self.certainties += np.bincount(labels[here], certainty[here], minlength=len(self.counts))
        self.n_rows += len(labels)
        self.n_noise += int(np.sum(~here))
        self.n_uncertain += int(np.sum(certainty < CERTAIN))
        self.logs += 0.0 if scores is None else float(scores.sum())
        return labels


class FitSummary(NamedTuple):
    """A fit and what is told of it."""

    table: Table
    model: MultiViewMixture
    posteriors: np.ndarray | None  # None where the rows stay in their file
    tally: Tally
    suggestion: str | None  # why the views are what they are
    warnings: list[str]
    codes: tuple[str, ...]  # columns that hold categories
    notes: tuple[str, ...]  # what was decided about columns


def summarize(
    fitted: FitSummary, diagnosis: Diagnosis, arguments: argparse.Namespace, files: list[str], seconds: dict[str, float]
) -> dict[str, Any]:
    """What was done and found, for machines."""
    table, model, tally = fitted.table, fitted.model, fitted.tally
    names = list(view_names(model))
    return {
        "latentviews": __version__,
        "command": "fit",
        "file": str(arguments.file),
        "format": table.format,
        "n_rows": table.n_rows,
        "rows_in_memory": len(table.values),
        "columns": list(table.columns),
        "left_out": list(table.left_out),
        "codes": list(fitted.codes),
        "notes": list(fitted.notes),
        "transforms": {
            name: None if scale is None else repr(scale)
            for name, scale in zip(table.columns, table.reading.transforms, strict=True)
        },
        "views": [[table.columns[j] for j in view] for view in model.views_],
        "view_names": names,
        "views_chosen": fitted.suggestion,
        "dependence": dependence_of(model),
        "dependence_chosen": chosen_dependence(model),
        "n_classes": model.n_components_,
        "n_classes_chosen": "auto" if model.n_components == "auto" else "given",
        "classes": [
            {
                "class": h,
                "weight": float(weight),
                "n_rows": int(tally.counts[h]),
                "mean_certainty": float(tally.certainties[h] / tally.counts[h]) if tally.counts[h] else None,
            }
            for h, weight in enumerate(model.weights_)
        ],
        "noise_weight": noise_weight(model),
        "noise_rows": tally.n_noise,
        "uncertain_rows": tally.n_uncertain / tally.n_rows,
        "log_likelihood": _number(tally.logs / tally.n_rows),
        "converged": bool(model.converged_),
        "n_iter": int(model.n_iter_),
        "seed": arguments.seed,
        "seconds": round(sum(seconds.values()), 3),
        "seconds_of": {stage: round(one, 3) for stage, one in seconds.items()},
        "checks": [_in_options(finding._asdict()) for finding in diagnosis.findings],
        "worst_check": None if diagnosis.worst is None else in_options(diagnosis.worst),
        "warnings": fitted.warnings,
        "files": files,
    }


def _in_options(finding: dict[str, Any]) -> dict[str, Any]:
    """A check whose sentences name options as the command line does."""
    return {key: in_options(value) if isinstance(value, str) else value for key, value in finding.items()}


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def verdict(summary: dict[str, Any]) -> str:
    """How many checks failed, and the worst of them."""
    checks = [check for check in summary["checks"] if check["trusted"] is not None]
    failed = sum(not check["trusted"] for check in checks)
    if not failed:
        return f"checks   all {len(checks)} passed: nothing was found that speaks against these classes"
    return f"checks   {failed} of {len(checks)} FAILED, the worst: {summary['worst_check']}"


def dependence_lines(summary: dict[str, Any]) -> list[str]:
    """What the fit does about views that depend on each other, and why where that was chosen."""
    if summary["dependence_chosen"]:
        return [summary["dependence_chosen"]]
    return ["views may depend on each other inside classes (copula)"] if summary["dependence"] else []


def _hidden_line(classes: list[dict[str, Any]]) -> list[str]:
    """The classes that win no row."""
    hidden = [str(one["class"]) for one in classes if not one["n_rows"]]
    if not hidden:
        return []
    return [f"no row is most probably in class{'es' if len(hidden) > 1 else ''} {shortened_names(hidden)}"]


def describe(fitted: FitSummary, summary: dict[str, Any], out: Path) -> str:
    """The same for people."""
    noise = f"noise   {summary['noise_weight'] or 0:6.3f}   {summary['noise_rows']:9,d}   (beside the classes)"
    how = "counted" if summary["n_classes_chosen"] == "auto" else "as asked for"
    lines = [
        f"{summary['file']}: {counted(summary['n_rows'], 'row')}, {counted(len(summary['columns']), 'column')}",
        f"views: {' | '.join(summary['view_names'])}",
        *([f"  {fitted.suggestion}"] if fitted.suggestion else []),
        *([f"left out: {listed_names(summary['left_out'])}"] if summary["left_out"] else []),
        f"{summary['n_classes']} class{'' if summary['n_classes'] == 1 else 'es'}, {how}",
        *dependence_lines(summary),
        "",
        "class   weight        rows   mean certainty",
        *(
            f"{one['class']:5d}   {one['weight']:6.3f}   {one['n_rows']:9,d}   "
            + (f"{one['mean_certainty']:14.3f}" if one["n_rows"] else f"{'-':>14}")
            for one in summary["classes"]
        ),
        *([noise] if summary["noise_weight"] is not None else []),
        *_hidden_line(summary["classes"]),
        "",
        f"rows of no class above {CERTAIN}   {summary['uncertain_rows']:.1%}",
        f"converged   {'yes' if summary['converged'] else 'no'}, after {counted(summary['n_iter'], 'step')}",
        verdict(summary),
        f"time   {summary['seconds']:.1f} s: " + ", ".join(f"{k} {v:.1f}" for k, v in summary["seconds_of"].items()),
        f"wrote   {out}: {', '.join(summary['files'])}",
    ]
    return "\n".join(lines)
