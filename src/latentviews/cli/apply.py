"""``latentviews predict`` and ``report``: what can be done with a model."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from latentviews._sentences import counted
from latentviews.cli.common import (
    OPTIONS,
    blamed_on,
    check_not_input,
    gathered_warnings,
    in_options,
    n_in_file,
    source_of,
    tell,
)
from latentviews.cli.fit import find_posteriors, label_pieces
from latentviews.cli.models import has_noise, load_model, noise_of, read_for, rows_of, sample_for
from latentviews.cli.options import LABELLED, MODEL, CommandError
from latentviews.cli.output import output_file
from latentviews.cli.progress import Progress
from latentviews.cli.summary import Tally
from latentviews.cli.wanted import shortened_names, stem
from latentviews.core.features.point_masses import which_mass
from latentviews.core.point_masses import masses_of
from latentviews.diagnosis.diagnose import CERTAIN, fitted_ranges, outside_range, outside_sentence
from latentviews.io import Table, write_labels
from latentviews.io.labels import write_labelled

FAR_WIDTHS = 100  # of all values of a fit, from which on others are impossible beside them


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
        told += [*absent(table), *outside(model, table)]
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


def absent(table: Table) -> list[str]:
    """A sentence on columns without a value, if any."""
    empty = [name for name, column in zip(table.columns, table.values.T, strict=True) if np.isnan(column).all()]
    if not empty:
        return []
    has = "has" if len(empty) == 1 else "have"
    where = "any row" if table.stored is None else f"any of {len(table.values):,} rows that were looked at"
    return [f"{shortened_names(empty)} {has} no value in {where}: classes are told by the other columns alone."]


def outside(model: Any, table: Table) -> list[str]:
    """Sentences on columns that are not on the scale of the fit, and on single values far from it."""
    found = outside_range(model, table.values)
    told = [outside_sentence(found, table.columns)] if found else []
    return told + [sentence for j, sentence in far_values(model, table) if j not in found]


def far_values(model: Any, table: Table) -> Iterator[tuple[int, str]]:
    """Every column with single values that are impossible beside those of the fit, and a sentence on them."""
    masses = masses_of(model)
    for j, low, high, _ in fitted_ranges(model):
        column, width = table.values[:, j], FAR_WIDTHS * (high - low)
        beyond = (column < low - width) | (column > high + width)
        far = np.flatnonzero(beyond & (which_mass(column, masses.get(j, ())) < 0))
        if len(far):
            more = f" and {len(far) - 1:,} more such values" if len(far) > 1 else ""
            yield (
                j,
                f"{table.columns[j]} holds {column[far[0]]:.3g} in row {table.places[far[0]] + 1:,}{more}, while the "
                f"model was fitted to values between {low:.3g} and {high:.3g}: classes of such rows mean little. Take "
                "the rows out, or leave the cells empty.",
            )


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
    from latentviews.report import write_contents  # with all that it draws, for this command alone
    from latentviews.report.contents import Wording, report_contents

    out, model = arguments.out or Path(f"{stem(arguments.file)}-report.html"), load_model(arguments.model)
    told: list[str] = []
    check_not_input(out, arguments.file)
    with output_file(out, force=arguments.force) as aside, Progress(not arguments.quiet) as progress:
        with progress.stage("reading"), gathered_warnings(told):
            table = sample_for(model, arguments) or read_for(model, arguments)
        told += [*absent(table), *outside(model, table)]
        with progress.stage("report"), gathered_warnings(told), blamed_on(arguments.file):
            contents = report_contents(
                model,
                rows_of(table, model),
                columns=list(table.columns),
                source=source_of(table),
                title=arguments.title,
                saved=str(arguments.model / MODEL if arguments.model.is_dir() else arguments.model),
                random_state=arguments.seed,
                wording=Wording(in_options, OPTIONS),
                n_in_file=n_in_file(table),
            )
            write_contents(contents, aside)
    summary = {"command": "report", "file": str(arguments.file), "warnings": told, "files": [str(out)]}
    tell(arguments, f"wrote   {out}", summary)
