"""``latentviews predict``, ``report`` and ``info``: what can be done with a model or a file."""

import argparse
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from latentviews.cli.common import (
    OPTIONS,
    blamed_on,
    check_not_input,
    checked_mixture,
    dependence_of,
    gathered_warnings,
    has_noise,
    in_options,
    load_any,
    load_model,
    noise_of,
    noise_weight,
    read,
    read_for,
    rows_of,
    sample_for,
    tell,
)
from latentviews.cli.crowd import describe_model as describe_crowd
from latentviews.cli.crowd import summarize_model as summarize_crowd
from latentviews.cli.fit import find_posteriors, label_pieces
from latentviews.cli.options import LABELLED, MODEL, CommandError
from latentviews.cli.output import output_file
from latentviews.cli.progress import Progress
from latentviews.cli.summary import Tally
from latentviews.cli.wanted import split_names, stem
from latentviews.core.view_names import view_names
from latentviews.diagnosis.diagnose import CERTAIN, outside_range, outside_sentence
from latentviews.discrete.crowds import CrowdLabels
from latentviews.io import InputError, Table, open_source, unusable_columns, write_labels
from latentviews.io.labels import write_labelled
from latentviews.report import write_contents
from latentviews.report.contents import Wording, report_contents
from latentviews.report.markup import counted

NUMBERS = ("least", "median", "most")


def run_predict(arguments: argparse.Namespace) -> None:
    """Read, predict, write."""
    out = arguments.out or Path(f"{stem(arguments.file)}-labels.{arguments.labels_format or 'csv'}")
    kind = _labels_kind(out, arguments.labels_format)
    check_not_input(out, arguments.file)
    model = load_model(arguments.model)
    told: list[str] = []
    with output_file(out, force=arguments.force) as aside, Progress(not arguments.quiet) as progress:
        with progress.stage("reading"), gathered_warnings(told):
            table = sample_for(model, arguments) or read_for(model, arguments)
        if kind in LABELLED and table.format != kind:
            what = {"fcs": "FCS", "h5ad": "AnnData"}[kind]
            raise CommandError(f"{arguments.file} is no {what} file, so {out} cannot be one; name a .csv or .parquet.")
        tally = Tally(model.n_components_)
        with gathered_warnings(told), blamed_on(arguments.file):
            if table.stored is not None:
                label_pieces(aside, kind, model, table, tally, progress)
            else:
                posteriors = find_posteriors(model, rows_of(table, model), progress)
                labels, noise = tally.add(posteriors), noise_of(model, posteriors)
                if kind in LABELLED:
                    write_labelled(kind, arguments.file, aside, labels, posteriors, noise)
                else:
                    write_labels(aside, labels, posteriors, kind, noise)
        told += outside(model, table)
    counts, uncertain = tally.counts.tolist(), tally.n_uncertain / tally.n_rows
    summary = {
        "command": "predict",
        "file": str(arguments.file),
        "model": str(arguments.model),
        "n_rows": tally.n_rows,
        "rows_of_classes": counts,
        "noise_rows": tally.n_noise,
        "uncertain_rows": uncertain,
        "warnings": told,
        "files": [str(out)],
    }
    text = [f"{arguments.file}: {counted(tally.n_rows, 'row')}", "", "class        rows    share"]
    text += [f"{h:5d}   {count:9,d}   {count / tally.n_rows:6.1%}" for h, count in enumerate(counts)]
    if tally.n_noise or has_noise(model):
        text.append(f"noise   {tally.n_noise:9,d}   {tally.n_noise / tally.n_rows:6.1%}")
    text += ["", f"rows of no class above {CERTAIN}   {uncertain:.1%}", f"wrote   {out}"]
    tell(arguments, "\n".join(text), summary)


def outside(model: Any, table: Table) -> list[str]:
    """A sentence on columns that are not on the scale of the fit, if any."""
    found = outside_range(model, table.values)
    return [outside_sentence(found, table.columns)] if found else []


def _labels_kind(out: Path, asked: str | None) -> str:
    """What is written: as asked, or as the name says."""
    suffix = out.suffix.lower().lstrip(".")
    named = {"csv": "csv", "parquet": "parquet", "pq": "parquet", "h5ad": "h5ad", "fcs": "fcs"}.get(suffix)
    if asked and named and asked != named:
        raise CommandError(f"--out {out} and --labels-format {asked} do not agree; leave one out.")
    if asked is None and named is None:
        raise CommandError(f"--out needs a name that ends in .csv, .parquet, .fcs or .h5ad; got {out}.")
    return asked or named or "csv"


def run_report(arguments: argparse.Namespace) -> None:
    """Read, report."""
    out, model = arguments.out or Path(f"{stem(arguments.file)}-report.html"), load_model(arguments.model)
    told: list[str] = []
    check_not_input(out, arguments.file)
    with output_file(out, force=arguments.force) as aside, Progress(not arguments.quiet) as progress:
        with progress.stage("reading"), gathered_warnings(told):
            table = read_for(model, arguments)
        told += outside(model, table)
        with progress.stage("report"), gathered_warnings(told), blamed_on(arguments.file):
            contents = report_contents(
                model,
                rows_of(table, model),
                columns=list(table.columns),
                source=arguments.file.name,
                title=arguments.title,
                saved=str(arguments.model / MODEL if arguments.model.is_dir() else arguments.model),
                random_state=arguments.seed,
                wording=Wording(in_options, OPTIONS),
            )
            write_contents(contents, aside)
    summary = {"command": "report", "file": str(arguments.file), "warnings": told, "files": [str(out)]}
    tell(arguments, f"wrote   {out}", summary)


def run_info(arguments: argparse.Namespace) -> None:
    """Print."""
    path = arguments.file
    if is_model(path):
        model = load_any(path)[1]
        if isinstance(model, CrowdLabels):
            crowd = crowd_summary(path, model)
            tell(arguments, describe_crowd(crowd), crowd)
            return
        checked_mixture(path, model)
        tell(arguments, describe_model(model), summarize_model(model))
    else:
        told: list[str] = []
        with gathered_warnings(told):
            table, unusable = read_usable(arguments)
        summary = summarize_table(table) | {"unusable": unusable, "warnings": told}
        tell(arguments, describe_table(table, summary), summary)


def crowd_summary(path: Path, model: CrowdLabels) -> dict[str, Any]:
    """What a model of answers is, or a sentence where its parts do not fit together."""
    try:
        return summarize_crowd(model)
    except Exception as error:  # whatever such parts lead to
        raise CommandError(f"{path} is a damaged or unfitted CrowdLabels ({error}); fit it again.") from error


def read_usable(arguments: argparse.Namespace) -> tuple[Table, dict[str, str]]:
    """The columns asked for, or all that hold numbers; and why the others do not."""
    if arguments.columns is not None:
        return read(arguments, split_names(arguments.columns)), {}
    try:
        table = read(arguments)
        return table, dict.fromkeys(table.texts, "not numbers")
    except InputError:
        source = open_source(arguments.file, compensate=False, delimiter=arguments.delimiter, header=arguments.header)
        unusable = unusable_columns(arguments.file, delimiter=arguments.delimiter, header=arguments.header)
        usable = [name for name in source.names if name not in unusable]
        if not unusable or not usable:
            raise
        return read(arguments, usable), unusable


def is_model(path: Path) -> bool:
    """Whether a path is to be read as a model, whole or damaged, rather than as a table."""
    if (path / MODEL).exists() or path.suffix == Path(MODEL).suffix:
        return True
    return zipfile.is_zipfile(path) and not path.name.endswith(".zarr.zip")


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


def summarize_table(table: Table) -> dict[str, Any]:
    """What is in a table, for machines."""
    scales = zip(table.columns, table.reading.transforms, table.values.T, strict=True)
    columns = []
    for name, scale, column in scales:
        known = column[~np.isnan(column)]
        low, middle, high = np.quantile(known, [0, 0.5, 1]).tolist() if len(known) else (None, None, None)
        columns.append(
            {
                "name": name,
                "least": low,
                "median": middle,
                "most": high,
                "missing": int(np.isnan(column).sum()),
                "scale": None if scale is None else repr(scale),
            }
        )
    return {
        "file": table.source,
        "format": table.format,
        "n_rows": len(table.values),
        "columns": columns,
        "left_out": list(table.left_out),
    }


def describe_table(table: Table, summary: dict[str, Any]) -> str:
    """The same for people."""
    width = max(len("column"), *(len(name) for name in table.columns))
    lines = [
        f"{summary['file']}: {summary['format']}, {counted(summary['n_rows'], 'row')}, "
        f"{counted(len(table.columns), 'column')}",
        "",
        f"{'column':<{width}}  {'least':>11}  {'median':>11}  {'most':>11}  {'missing':>9}  scale",
    ]
    for one in summary["columns"]:
        numbers = "  ".join(f"{'-' if one[key] is None else format(one[key], '.5g'):>11}" for key in NUMBERS)
        lines.append(f"{one['name']:<{width}}  {numbers}  {one['missing']:>9,}  {one['scale'] or 'as it is'}")
    unusable = summary["unusable"]
    left_out = [name for name in summary["left_out"] if name not in unusable]
    if left_out:
        lines += ["", f"left out unless named: {', '.join(left_out)}"]
    if unusable:
        listed = ", ".join(f"{name} ({why})" for name, why in unusable.items())
        lines += ["", f"of no use to `fit`: {listed}"]
    return "\n".join(lines)
