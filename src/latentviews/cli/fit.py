"""What ``latentviews fit`` does with a table: classes, a saved model and a report."""

import argparse
import json
import shlex
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from latentviews._constants import REPORTED_CLASSES
from latentviews._sentences import counted
from latentviews.cli.columns import Chosen
from latentviews.cli.common import OPTIONS, blamed_on, gathered_warnings, in_options, n_in_file, source_of
from latentviews.cli.early import fit_files, fit_place
from latentviews.cli.models import noise_of, rows_of
from latentviews.cli.options import LABELLED, LABELS, MODEL, REPORT, SUMMARY, CommandError
from latentviews.cli.output import output_directory
from latentviews.cli.progress import Progress
from latentviews.cli.summary import FitSummary, Tally, describe, summarize
from latentviews.cli.wanted import Wanted, parse_classes
from latentviews.core.kernels.discrete import Delta
from latentviews.core.view_names import short_name
from latentviews.diagnosis.checked_rows import checked_rows
from latentviews.diagnosis.diagnose import Diagnosis, most_probable
from latentviews.diagnosis.grouping import suggest_views
from latentviews.io import InputError, Table, write_labels
from latentviews.io.labels import labels_file, write_labelled
from latentviews.io.saving import save
from latentviews.mixtures.dependence.settings import Copulas
from latentviews.mixtures.mixture import MultiViewMixture

BATCH = 50_000  # rows whose classes are found between two looks at the progress bar
CELLS = ("fcs", "h5ad")  # formats of single cells, whose markers often depend on each other inside populations
OURS = (MODEL, SUMMARY, REPORT, *LABELLED.values(), *LABELS.values())


def fit_and_write(
    chosen: Chosen, wanted: Wanted, told: list[str], arguments: argparse.Namespace, progress: Progress
) -> tuple[str, dict[str, Any]]:
    """All that comes after reading, whose warnings were ``told``; the summary for people and for machines."""
    out, names = fit_place(arguments), fit_files(arguments)
    with output_directory(out, names, force=arguments.force, ours=OURS) as aside:
        fitted = fit_table(chosen, parse_classes(arguments.classes), wanted, arguments, progress)
        fitted.warnings[:0] = told
        files = write_results(aside, fitted, arguments, progress)
        if fitted.posteriors is None:
            with blamed_on(arguments.file), gathered_warnings(fitted.warnings):
                place = aside / LABELS[arguments.labels_format]
                label_pieces(place, None, fitted.model, chosen.table, fitted.tally, progress, scored=True)
        diagnosis = judge(aside, fitted, arguments, progress)
        summary = summarize(fitted, diagnosis, arguments, names + files, progress.seconds())
        (aside / SUMMARY).write_text(json.dumps(summary, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return describe(fitted, summary, out), summary


def parse_dependence(arguments: argparse.Namespace, chosen: Chosen, n_views: int) -> Copulas | str | None:
    """--dependence and --noise as the model takes them.

    Unless one is asked for, cells are judged both ways, and two views are left to copulas; codes have none.
    """
    if arguments.noise:
        return Copulas(noise=True)
    usual = "auto" if chosen.table.format in CELLS else "copula" if n_views == 2 else "none"
    asked = arguments.dependence or ("none" if chosen.codes else usual)
    return None if asked == "none" else asked


def fit_table(
    chosen: Chosen, k: int | str, wanted: Wanted, arguments: argparse.Namespace, progress: Progress
) -> FitSummary:
    """Views, the model, and the posteriors of all rows that are in memory."""
    table = chosen.table
    if isinstance(k, int) and k > len(table.values):
        rows = counted(len(table.values), "row")
        raise CommandError(f"{arguments.file} has {rows}, too few for the {k} classes of -k.")
    if isinstance(k, int) and k > REPORTED_CLASSES and not arguments.no_report:
        raise CommandError(f"A report shows at most {REPORTED_CLASSES} classes; -k {k} needs --no-report.")
    frame, suggestion = table.frame(), None
    told: list[str] = []
    with blamed_on(arguments.file), gathered_warnings(told):
        if wanted.views == "auto":
            with progress.stage("looking for views", follow=True):
                groups, suggestion = suggested_views(frame, k, chosen.codes, arguments.seed)
        else:
            groups = in_table_order(wanted.views, table)
        dependence = parse_dependence(arguments, chosen, len(groups))
        views: Any = with_names(groups, wanted.view_names, table.columns)
        kernel = kernels_of(groups, table.columns, chosen.codes)
        model: Any = MultiViewMixture(k, views=views, kernel=kernel, dependence=dependence, random_state=arguments.seed)
        with progress.stage("fitting", follow=True):
            model.fit(frame if table.stored is None else table.stored)
        model.reading_ = table.reading
        tally, posteriors = Tally(model.n_components_), None
        if table.stored is None:
            posteriors = find_posteriors(model, frame, progress)
            tally.add(posteriors, find_scores(model, frame, progress))
    return FitSummary(table, model, posteriors, tally, suggestion, told, chosen.codes, chosen.notes)


def suggested_views(frame: Any, k: int | str, codes: tuple[str, ...], seed: int) -> tuple[list[list[int]], str]:
    """Columns of numbers put together by their dependence; every column of codes is a view."""
    columns = list(frame.columns)
    numbers = [name for name in columns if name not in codes]
    if len(numbers) < 3:
        return [[j] for j in range(len(columns))], "Every column is a view: fewer than three hold numbers."
    found = suggest_views(frame[numbers], k, random_state=seed)
    groups = [[columns.index(numbers[j]) for j in view] for view in found.views]
    return groups + [[columns.index(name)] for name in codes], in_options(found.summary())


def in_table_order(views: Any, table: Table) -> list[list[int]]:
    """Views as places in the table, whose columns are those of the views, in order."""
    sizes = [1] * len(table.columns) if views is None else [len(view) for view in views]
    ends = np.cumsum(sizes)
    return [list(range(end - size, end)) for size, end in zip(sizes, ends.tolist(), strict=True)]


def with_names(groups: list[list[int]], names: list[str | None], columns: tuple[str, ...]) -> Any:
    """The views, under their names where some were given."""
    if not any(names):
        return groups
    own = [name or short_name([columns[j] for j in view]) for name, view in zip(names, groups, strict=True)]
    twice = sorted({name for name in own if own.count(name) > 1})
    if twice:
        raise CommandError(f"--views calls two views {', '.join(twice)}; give each a name of its own.")
    return dict(zip(own, groups, strict=True))


def kernels_of(views: list[list[int]], columns: tuple[str, ...], codes: tuple[str, ...]) -> Any:
    """One kernel per view, `Delta` for codes and the model's own for numbers; None where all are numbers."""
    if not codes:
        return None
    return [Delta() if columns[view[0]] in codes else None for view in views]


def find_scores(model: Any, rows: Any, progress: Progress) -> np.ndarray:
    """The logs of the densities of all rows, some at a time."""
    parts = []
    with progress.stage("likelihood of rows", len(rows)) as stage:
        for start in range(0, len(rows), BATCH):
            parts.append(model.score_samples(rows[start : start + BATCH]))
            stage.update(min(start + BATCH, len(rows)), len(rows), "")
    return np.concatenate(parts)


def find_posteriors(model: Any, rows: Any, progress: Progress) -> np.ndarray:
    """The posteriors of all rows, some at a time."""
    parts, started = [], time.monotonic()
    with progress.stage("classes of rows", len(rows)) as stage:
        for start in range(0, len(rows), BATCH):
            parts.append(model.predict_proba(rows[start : start + BATCH]))
            done = min(start + BATCH, len(rows))
            stage.update(done, len(rows), f"{done / max(time.monotonic() - started, 1e-9):,.0f} rows/s")
    return checked(np.concatenate(parts))


def checked(posteriors: np.ndarray, before: int = 0) -> np.ndarray:
    """Posteriors of rows that come after so many others, if all are numbers."""
    if not np.isfinite(posteriors).all():
        row = before + int(np.flatnonzero(~np.isfinite(posteriors).all(axis=1))[0])
        raise CommandError(f"the model gives no probabilities for row {row + 1:,}; it may be damaged: fit it again.")
    return posteriors


def label_pieces(
    path: Path, kind: str | None, model: Any, table: Table, tally: Tally, progress: Progress, *, scored: bool = False
) -> None:
    """The labels of rows that stay in their file, written and counted a piece at a time, and their likelihood."""
    stored, started = table.stored, time.monotonic()
    assert stored is not None
    with labels_file(path, kind) as file, progress.stage("classes of rows", stored.n_rows) as stage:
        for _, values in stored.raw_pieces():
            rows = rows_like(values, model, table)
            posteriors = checked(model.predict_proba(rows), tally.n_rows)
            labels = tally.add(posteriors, model.score_samples(rows) if scored else None)
            file.add(labels, posteriors, noise_of(model, posteriors))
            rate = tally.n_rows / max(time.monotonic() - started, 1e-9)
            stage.update(tally.n_rows, stored.n_rows, f"{rate:,.0f} rows/s")


def rows_like(values: np.ndarray, model: Any, table: Table) -> Any:
    """Some rows of a table as the model was fitted to them."""
    return rows_of(replace(table, values=values), model)


def write_results(aside: Path, fitted: FitSummary, arguments: argparse.Namespace, progress: Progress) -> list[str]:
    """The model and the labels; the names of files beyond those that every fit writes."""
    table, model, posteriors = fitted[:3]
    with progress.stage("writing"):
        save(model, aside / MODEL)
        if posteriors is None:
            return []
        labels, noise = most_probable(posteriors)[0], noise_of(model, posteriors)
        write_labels(aside / LABELS[arguments.labels_format], labels, posteriors, noise=noise)
        if table.format not in LABELLED:
            return []
        copy = LABELLED[table.format]
        try:
            write_labelled(table.format, arguments.file, aside / copy, labels, posteriors, noise)
        except InputError as error:
            fitted.warnings.append(str(error))
            return []
    return [copy]


def judge(aside: Path, fitted: FitSummary, arguments: argparse.Namespace, progress: Progress) -> Diagnosis:
    """What the fit is worth, as the report says it; the report is written where it is wanted."""
    frame, columns, rng = fitted.table.frame(), list(fitted.table.columns), np.random.default_rng(arguments.seed)
    with progress.stage("checks"):
        checked = checked_rows(fitted.model, frame, columns, rng)
    if arguments.no_report:
        return checked.diagnosis
    with progress.stage("report"):
        from latentviews.report import write_contents  # with all that it draws, where it is wanted
        from latentviews.report.contents import Wording, report_contents

        contents = report_contents(
            fitted.model,
            frame,
            columns=columns,
            source=source_of(fitted.table),
            title=None,
            saved=MODEL,
            random_state=rng,
            wording=Wording(in_options, OPTIONS, shlex.join(["latentviews", *arguments.words])),
            n_in_file=n_in_file(fitted.table),
            checked=checked,
        )
        write_contents(contents, aside / REPORT)
    return checked.diagnosis
