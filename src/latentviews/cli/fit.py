"""``latentviews fit``: from a file to classes, a saved model and a report."""

import argparse
import csv
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from latentviews import Copulas, MultiViewMixture, __version__
from latentviews.cli.common import (
    MODEL,
    REPORT,
    SUMMARY,
    CommandError,
    add_file,
    add_manners,
    add_out,
    add_scales,
    add_seed,
    blamed_on,
    chosen_dependence,
    dependence_of,
    gathered_warnings,
    new_command,
    noise_of,
    noise_weight,
    read,
    tell,
    view_names,
)
from latentviews.cli.output import output_directory
from latentviews.cli.progress import Progress
from latentviews.diagnosis.diagnose import CERTAIN, Diagnosis, diagnose, most_probable
from latentviews.diagnosis.grouping import suggest_views
from latentviews.io import Table, write_labels
from latentviews.io.h5ad import write_labels as write_h5ad_labels
from latentviews.io.saving import save
from latentviews.report import write_contents
from latentviews.report.contents import report_contents
from latentviews.report.markup import counted

BATCH = 50_000  # rows whose classes are found between two looks at the progress bar
LABELLED = "labelled.h5ad"
CELLS = ("fcs", "h5ad")  # formats of single cells, whose markers often depend on each other inside populations
LABELS = {"csv": "labels.csv", "parquet": "labels.parquet"}
OURS = (MODEL, SUMMARY, REPORT, LABELLED, *LABELS.values())

EXAMPLES = """\
  latentviews fit cells.fcs --views "FS,SS" "CD3,CD5" CD19 -k 3 --out cells
  latentviews fit cells.csv.gz --views auto -k auto --out cells
  latentviews fit raw.csv --columns CD3,CD5,CD19,CD4 --transform arcsinh --cofactor 150 -k 4
  latentviews fit cells.h5ad -k 5 --labels-format parquet --json
"""


def add_fit(commands: Any) -> None:
    """Options of the command."""
    parser = new_command(
        commands,
        "fit",
        "find the classes in a file",
        f"Find hidden classes in a table; write {MODEL}, the class and posterior probabilities of every row, "
        f"{SUMMARY} and {REPORT} into a directory. AnnData files also come back as {LABELLED}, with classes in obs.",
        EXAMPLES,
    )
    add_file(parser)
    parser.add_argument(
        "--views",
        nargs="+",
        metavar="VIEW",
        help="the columns of every view, with commas between; `auto` puts columns together that depend on each other "
        "inside classes (default: every column is a view)",
    )
    parser.add_argument("-k", "--classes", default="auto", metavar="K", help="the number of classes (default: auto)")
    parser.add_argument(
        "--dependence",
        choices=["none", "copula", "auto"],
        help="`copula` for classes inside which views may depend on each other, `auto` to fit both ways and take what "
        "held-out rows and the stability of the classes speak for (default: auto for FCS and AnnData files, none for "
        "others)",
    )
    parser.add_argument(
        "--noise",
        action="store_true",
        help="leave stray rows to a class of noise, called -1, rather than to the likeliest class; brings --dependence "
        "copula with it",
    )
    parser.add_argument("--columns", metavar="NAMES", help="the columns to use, with commas between (default: all)")
    add_out(parser, metavar="DIR", help="where results go (default: the name of FILE)")
    add_seed(parser)
    parser.add_argument("--labels-format", choices=list(LABELS), default="csv", help="(default: csv)")
    parser.add_argument("--no-report", action="store_true", help="write no report; the checks are still made and told")
    add_scales(parser)
    add_manners(parser)
    parser.set_defaults(run=run)


class Fitted(NamedTuple):
    """A fit and what is told of it."""

    table: Table
    model: MultiViewMixture
    posteriors: np.ndarray
    seconds: float
    suggestion: str | None  # why the views are what they are
    warnings: list[str]
    log_likelihood: float  # the mean over all rows


def run(arguments: argparse.Namespace) -> None:
    """Read, fit, write."""
    k = parse_classes(arguments.classes)
    views, columns = parse_views(arguments.views, arguments.columns)
    check_noise(arguments.dependence, arguments.noise)
    out = arguments.out or Path(stem(arguments.file))
    names = [MODEL, LABELS[arguments.labels_format], SUMMARY, *([] if arguments.no_report else [REPORT])]
    started = time.perf_counter()
    with output_directory(out, names, force=arguments.force, ours=OURS) as aside:
        with Progress(not arguments.quiet) as progress:
            with progress.stage("reading"):
                table = read(arguments, columns)
            fitted = fit_table(table, k, views, arguments, progress)
            files = write_results(aside, fitted, arguments, progress)
            with progress.stage("report"):
                diagnosis = judge(aside, fitted, arguments)
        summary = summarize(fitted, diagnosis, arguments, names + files, time.perf_counter() - started)
        (aside / SUMMARY).write_text(json.dumps(summary, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    tell(arguments, describe(fitted, summary, out), summary)


def parse_classes(text: str) -> int | str:
    """-k as a number or "auto"."""
    if text == "auto":
        return text
    if not text.isdecimal() or int(text) < 1:
        raise CommandError(f"-k is a number of at least 1, or auto; got {text!r}.")
    return int(text)


def check_noise(asked: str | None, noise: bool) -> None:
    """Refuse noise without the copulas that it needs."""
    if noise and asked in ("none", "auto"):
        raise CommandError(f"--noise goes with --dependence copula, not with {asked}; leave one out.")


def parse_dependence(asked: str | None, noise: bool, file_format: str) -> Copulas | str | None:
    """--dependence and --noise as the model takes them; cells are judged both ways unless one is asked for."""
    if noise:
        return Copulas(noise=True)
    asked = asked or ("auto" if file_format in CELLS else "none")
    return None if asked == "none" else asked


def parse_views(views: list[str] | None, columns: str | None) -> tuple[list[list[str]] | str | None, list[str] | None]:
    """--views as "auto", None or lists of names, and the columns that are needed."""
    chosen = None if columns is None else split_names(columns)
    if views is None or views == ["auto"]:
        return (None if views is None else "auto"), chosen
    if chosen is not None:
        raise CommandError("--views names the columns already; --columns goes with `--views auto` or none.")
    groups = [split_names(view) for view in views]
    flat = [name for group in groups for name in group]
    twice = sorted({name for name in flat if flat.count(name) > 1})
    if twice:
        raise CommandError(f"--views names {', '.join(twice)} more than once; a column belongs to one view.")
    if len(groups) < 3:
        raise CommandError(
            f"--views needs at least three views, since two do not determine the classes; got {len(groups)}."
        )
    return groups, flat


def split_names(text: str) -> list[str]:
    """Names with commas between; quotes around a name that has one inside."""
    names = [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
    if not names or not all(names):
        raise CommandError(f"{text!r} does not name columns; write them with commas between.")
    return names


def stem(path: Path) -> str:
    """The name of a file without what tells its format."""
    return path.name.partition(".")[0] or path.name


def fit_table(
    table: Table,
    k: int | str,
    views: list[list[str]] | str | None,
    arguments: argparse.Namespace,
    progress: Progress,
) -> Fitted:
    """Views, the model, and the posteriors of all rows."""
    if isinstance(k, int) and k > len(table.values):
        rows = counted(len(table.values), "row")
        raise CommandError(f"{arguments.file} has {rows}, too few for the {k} classes of -k.")
    started, frame, suggestion = time.perf_counter(), table.frame(), None
    told: list[str] = []
    with blamed_on(arguments.file), gathered_warnings(told):
        if views == "auto":
            with progress.fitting("looking for views"):
                found = suggest_views(frame, k, random_state=arguments.seed)
            groups, suggestion = [list(view) for view in found.views], found.summary()
        else:
            groups = in_table_order(views, table)
        dependence = parse_dependence(arguments.dependence, arguments.noise, table.format)
        model: Any = MultiViewMixture(k, views=groups, dependence=dependence, random_state=arguments.seed)
        with progress.fitting("fitting"):
            model.fit(frame)
        model.reading_ = table.reading
        posteriors = find_posteriors(model, frame, progress)
        log_likelihood = mean_score(model, frame)
    return Fitted(table, model, posteriors, time.perf_counter() - started, suggestion, told, log_likelihood)


def in_table_order(views: Any, table: Table) -> list[list[int]]:
    """Views as places in the table, whose columns are those of the views, in order."""
    sizes = [1] * len(table.columns) if views is None else [len(view) for view in views]
    ends = np.cumsum(sizes)
    return [list(range(end - size, end)) for size, end in zip(sizes, ends.tolist(), strict=True)]


def mean_score(model: Any, rows: Any) -> float:
    """``model.score(rows)``, some rows at a time."""
    starts = range(0, len(rows), BATCH)
    return float(np.concatenate([model.score_samples(rows[start : start + BATCH]) for start in starts]).mean())


def find_posteriors(model: Any, rows: Any, progress: Progress) -> np.ndarray:
    """The posteriors of all rows, some at a time."""
    parts, started = [], time.monotonic()
    with progress.stage("classes of rows", len(rows)) as stage:
        for start in range(0, len(rows), BATCH):
            parts.append(model.predict_proba(rows[start : start + BATCH]))
            done = min(start + BATCH, len(rows))
            stage.update(done, len(rows), f"{done / max(time.monotonic() - started, 1e-9):,.0f} rows/s")
    posteriors = np.concatenate(parts)
    if not np.isfinite(posteriors).all():
        row = int(np.flatnonzero(~np.isfinite(posteriors).all(axis=1))[0])
        raise CommandError(f"the model gives no probabilities for row {row + 1:,}; it may be damaged: fit it again.")
    return posteriors


def write_results(aside: Path, fitted: Fitted, arguments: argparse.Namespace, progress: Progress) -> list[str]:
    """The model and the labels; the names of files beyond those that every fit writes."""
    table, model, posteriors = fitted[:3]
    name, labels = LABELS[arguments.labels_format], most_probable(posteriors)[0]
    noise = noise_of(model, posteriors)
    with progress.stage("writing"):
        save(model, aside / MODEL)
        write_labels(aside / name, labels, posteriors, noise=noise)
        if table.format == "h5ad":
            write_h5ad_labels(arguments.file, aside / LABELLED, labels, posteriors, noise)
    return [LABELLED] if table.format == "h5ad" else []


def judge(aside: Path, fitted: Fitted, arguments: argparse.Namespace) -> Diagnosis:
    """What the fit is worth, as the report says it; the report is written where it is wanted."""
    frame = fitted.table.frame()
    if arguments.no_report:
        return diagnose(fitted.model, frame, random_state=arguments.seed)
    contents = report_contents(
        fitted.model,
        frame,
        columns=list(fitted.table.columns),
        source=arguments.file.name,
        title=None,
        saved=MODEL,
        random_state=arguments.seed,
    )
    write_contents(contents, aside / REPORT)
    return contents.diagnosis


def summarize(
    fitted: Fitted, diagnosis: Diagnosis, arguments: argparse.Namespace, files: list[str], seconds: float
) -> dict[str, Any]:
    """What was done and found, for machines."""
    table, model, posteriors = fitted[:3]
    labels, certainty = most_probable(posteriors)
    names = view_names(model)
    return {
        "latentviews": __version__,
        "command": "fit",
        "file": str(arguments.file),
        "format": table.format,
        "n_rows": len(table.values),
        "columns": list(table.columns),
        "left_out": list(table.left_out),
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
                "n_rows": int(np.sum(labels == h)),
                "mean_certainty": float(certainty[labels == h].mean()) if np.any(labels == h) else None,
            }
            for h, weight in enumerate(model.weights_)
        ],
        "noise_weight": noise_weight(model),
        "noise_rows": int(np.sum(labels == -1)),
        "uncertain_rows": float(np.mean(certainty < CERTAIN)),
        "log_likelihood": _number(fitted.log_likelihood),
        "converged": bool(model.converged_),
        "n_iter": int(model.n_iter_),
        "seed": arguments.seed,
        "seconds": round(seconds, 3),
        "seconds_fitting": round(fitted.seconds, 3),
        "checks": [finding._asdict() for finding in diagnosis.findings],
        "worst_check": diagnosis.worst,
        "warnings": fitted.warnings,
        "files": files,
    }


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def verdict(summary: dict[str, Any]) -> str:
    """How many checks failed, and the worst of them."""
    checks = summary["checks"]
    failed = sum(not check["trusted"] for check in checks)
    if not failed:
        return f"checks   all {len(checks)} passed: nothing was found that speaks against these classes"
    return f"checks   {failed} of {len(checks)} FAILED, the worst: {summary['worst_check']}"


def dependence_lines(summary: dict[str, Any]) -> list[str]:
    """What the fit does about views that depend on each other, and why where that was chosen."""
    if summary["dependence_chosen"]:
        return [summary["dependence_chosen"]]
    return ["views may depend on each other inside classes (copula)"] if summary["dependence"] else []


def describe(fitted: Fitted, summary: dict[str, Any], out: Path) -> str:
    """The same for people."""
    noise = f"noise   {summary['noise_weight'] or 0:6.3f}   {summary['noise_rows']:9,d}   (beside the classes)"
    how = "counted" if summary["n_classes_chosen"] == "auto" else "as asked for"
    lines = [
        f"{summary['file']}: {counted(summary['n_rows'], 'row')}, {counted(len(summary['columns']), 'column')}",
        f"views: {' | '.join(summary['view_names'])}",
        *([f"  {fitted.suggestion}"] if fitted.suggestion else []),
        *([f"left out: {', '.join(summary['left_out'])}"] if summary["left_out"] else []),
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
        *(f"no row is most probably in class {one['class']}" for one in summary["classes"] if not one["n_rows"]),
        "",
        f"rows of no class above {CERTAIN}   {summary['uncertain_rows']:.1%}",
        f"converged   {'yes' if summary['converged'] else 'no'}, after {summary['n_iter']} steps",
        verdict(summary),
        f"time   {summary['seconds']:.1f} s, of which fitting {summary['seconds_fitting']:.1f} s",
        f"wrote   {out}: {', '.join(summary['files'])}",
    ]
    return "\n".join(lines)
