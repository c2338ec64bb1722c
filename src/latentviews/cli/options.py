"""The commands and their options. Nothing of the library is imported here, so that help comes at once."""

import argparse
import math
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from latentviews import __version__
from latentviews._constants import COFACTOR, TRANSFORMS

MODEL, SUMMARY, REPORT, FIGURE = "model.latentviews", "summary.json", "report.html", "components.png"
LABELS = {"csv": "labels.csv", "parquet": "labels.parquet"}
LABELLED = {"fcs": "labelled.fcs", "h5ad": "labelled.h5ad"}  # copies of files with the classes in them

EPILOG = """\
examples:
  latentviews demo                                       the main job on made-up data; results in ./demo
  latentviews info cells.fcs                             what is in a file
  latentviews fit cells.fcs --views "FSC-A,SSC-A" CD3 CD19 -k 3 --out cells
  latentviews fit cells.csv --views auto -k auto         find the views and the number of classes
  latentviews predict cells other.fcs --out other.csv    the classes of other rows, by the model in ./cells
  latentviews crowd labels.csv                           labels of tasks from the answers of many workers
  latentviews fit --help                                 all about a command

exit status:
  0  the work is done      1    an unexpected error, which is a bug
  2  a wrong option or input, told in one sentence; nothing was written
  130, 143  interrupted (SIGINT, SIGTERM); no file was left half-written
  141  whoever read the output stopped doing so
"""
FIT_EXAMPLES = """\
  latentviews fit cells.fcs --views "FS,SS" "CD3,CD5" CD19 -k 3 --out cells
  latentviews fit cells.csv.gz --views auto -k auto --exclude label,batch --out cells
  latentviews fit people.csv --views size=height,weight blood=rr,pulse sex --codes sex -k 2
  latentviews fit raw.csv --columns CD3,CD5,CD19,CD4 --transform arcsinh --cofactor 150 -k 4
  latentviews fit cells.h5ad -k 5 --labels-format parquet --json
"""


class CommandError(Exception):
    """Something the person at the keyboard can put right; the message says what."""


def build_parser() -> argparse.ArgumentParser:
    """The commands and their options; a command sets ``load``, which imports and gives what runs it."""
    parser = argparse.ArgumentParser(
        prog="latentviews",
        description="Hidden classes from several views of each object, with no assumed shape.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"latentviews {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for add in (add_demo, add_fit, add_predict, add_report, add_info, add_crowd):
        add(commands)
    return parser


def _later(module: str, function: str) -> Callable[[argparse.Namespace], None]:
    """A function of a module that is imported now."""
    return getattr(import_module(f"latentviews.cli.{module}"), function)


def _new_command(
    commands: Any, name: str, help: str, description: str, examples: str, run: tuple[str, str]
) -> argparse.ArgumentParser:
    """A parser for one command, and the module and function that run it."""
    parser = commands.add_parser(
        name,
        help=help,
        description=description,
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(load=partial(_later, *run))
    return parser


# --------------------------------------------------------------------------------------------------------- commands


def add_demo(commands: Any) -> None:
    """Options of ``demo``."""
    parser = _new_command(
        commands,
        "demo",
        "find hidden classes in made-up data whose truth is known",
        "Draw 5,000 rows of three views from three classes, two Gaussian and one exponential; find the classes; print\n"
        f"how close they come to the truth; write the figure {FIGURE} and {REPORT}.",
        "  latentviews demo --out figures",
        ("demo", "run"),
    )
    _add_out(
        parser,
        default=Path("demo"),
        metavar="DIR",
        help="where the files go, made if it is not there (default: demo); those of an older demo are replaced",
    )


def add_fit(commands: Any) -> None:
    """Options of ``fit``."""
    parser = _new_command(
        commands,
        "fit",
        "find the classes in a file",
        f"Find hidden classes in a table; write {MODEL}, the class and posterior probabilities of every row,\n"
        f"{SUMMARY} and {REPORT} into a directory. FCS and AnnData files also come back as\n"
        f"{' and '.join(LABELLED.values())}, copies with the classes in one more channel or in obs.",
        FIT_EXAMPLES,
        ("read_and_fit", "run"),
    )
    _add_file(parser)
    _add_columns(parser)
    model = parser.add_argument_group("the model")
    model.add_argument("-k", "--classes", default="auto", metavar="K", help="the number of classes (default: auto)")
    model.add_argument(
        "--dependence",
        choices=["none", "copula", "auto"],
        help="`copula` for classes inside which views may depend on each other, `auto` to fit both ways and take what "
        "held-out rows and the stability of the classes speak for (default: auto for FCS and AnnData files, copula for "
        "two views, none for others)",
    )
    model.add_argument(
        "--noise",
        action="store_true",
        help="leave stray rows to a class of noise, called -1, rather than to the likeliest class; brings --dependence "
        "copula with it",
    )
    _add_seed(model)
    results = parser.add_argument_group("results")
    _add_out(results, metavar="DIR", help="where results go (default: the name of FILE)")
    results.add_argument(
        "--labels-format", choices=list(LABELS), default="csv", help="how classes are written (default: csv)"
    )
    results.add_argument("--no-report", action="store_true", help="write no report; the checks are still made and told")
    _add_manners(results)
    _add_scales(parser)


def _add_columns(parser: argparse.ArgumentParser) -> None:
    """Which columns ``fit`` uses, and how."""
    columns = parser.add_argument_group("columns")
    columns.add_argument(
        "--views",
        nargs="+",
        metavar="VIEW",
        help="the columns of every view, with commas between, perhaps with a name before them (size=height,weight); "
        "quotes go around a column that has a comma or = inside; `auto` puts columns together that depend on each "
        "other inside classes (default: every column is a view)",
    )
    columns.add_argument(
        "--columns",
        metavar="NAMES",
        help="the columns to use, with commas between (default: all that hold numbers, but for row numbers and labels)",
    )
    columns.add_argument("--exclude", metavar="NAMES", help="the columns to leave out, with commas between")
    columns.add_argument(
        "--codes",
        metavar="NAMES",
        help="columns whose words or whole numbers stand for categories, with commas between; they are compared, not "
        "ordered. `text` takes all columns that hold text, `whole` all of few different whole numbers",
    )


def add_predict(commands: Any) -> None:
    """Options of ``predict``."""
    parser = _new_command(
        commands,
        "predict",
        "find the classes of other rows with a saved model",
        "Write the class and posterior probabilities of every row of a file, by a model that was fitted before. The\n"
        "file is read as the first one was: the same columns by name, the same scales.",
        "  latentviews predict cells other.fcs --out other.csv\n"
        "  latentviews predict cells other.fcs --out labelled.fcs    # a copy with the classes in one more channel\n"
        "  latentviews predict cells/model.latentviews other.h5ad --out labelled.h5ad    # or in obs\n",
        ("apply", "run_predict"),
    )
    _add_model(parser)
    _add_file(parser)
    _add_out(
        parser,
        metavar="FILE",
        help="a .csv or .parquet file, or .fcs or .h5ad for data that are (default: FILE-labels.csv)",
    )
    parser.add_argument("--labels-format", choices=list(LABELS), help="(default: as --out is called, else csv)")
    _add_manners(parser)


def add_report(commands: Any) -> None:
    """Options of ``report``."""
    parser = _new_command(
        commands,
        "report",
        "write a report on a saved model and data",
        "Write one self-contained HTML file on a saved model and the rows of a file.",
        "  latentviews report cells cells.fcs --out cells.html\n"
        '  latentviews report cells other.fcs --title "Patient 7"\n',
        ("apply", "run_report"),
    )
    _add_model(parser)
    _add_file(parser)
    _add_out(parser, metavar="FILE", help="an .html file (default: FILE-report.html)")
    parser.add_argument("--title", help="of the report")
    _add_seed(parser)
    _add_manners(parser)


def add_info(commands: Any) -> None:
    """Options of ``info``."""
    parser = _new_command(
        commands,
        "info",
        "say what is in a file or a saved model",
        "Say what is in a data file (rows, columns, ranges, scales that `fit` would use) or in a saved model.",
        "  latentviews info cells.fcs\n  latentviews info cells --json\n",
        ("info", "run_info"),
    )
    _add_file(parser)
    parser.add_argument("--columns", metavar="NAMES", help="the columns to look at, with commas between (default: all)")
    _add_scales(parser)
    _add_manners(parser, writes=False)


def add_crowd(commands: Any) -> None:
    """Options of ``crowd``."""
    parser = _new_command(
        commands,
        "crowd",
        "find the labels of tasks from the answers of many workers",
        "Find the most probable label of every task, the confusion matrix of every worker and who answers without "
        "looking, from a file with one answer per row: task, worker, label. An empty label is no answer.",
        "  latentviews crowd labels.csv\n"
        "  latentviews crowd ratings.csv.gz --task item --worker rater --label rating --out ratings\n",
        ("crowd", "run"),
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="a CSV or TSV (gzipped or not) or Parquet file")
    for name in ("task", "worker", "label"):
        parser.add_argument(f"--{name}", metavar="NAME", help=f"the column of {name}s (default: {name})")
    _add_text(parser)
    _add_out(parser, metavar="DIR", help="where results go (default: the name of FILE)")
    _add_seed(parser)
    parser.add_argument("--no-report", action="store_true", help="write no report")
    _add_manners(parser)


# ------------------------------------------------------------------------------------------------ options they share


def _add_model(parser: argparse.ArgumentParser) -> None:
    """Where the model is."""
    parser.add_argument("model", type=Path, metavar="MODEL", help="a directory that `fit` wrote, or the model file")


def _add_file(parser: argparse.ArgumentParser) -> None:
    """The data, and how text in it is written."""
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="a CSV, TSV (gzipped or not), Parquet, NPY, Zarr, FCS or h5ad file"
    )
    _add_text(parser)


def _add_text(parser: argparse.ArgumentParser) -> None:
    """How a text file is written."""
    text = parser.add_argument_group("how text files are written, where that is not found out")
    text.add_argument("--delimiter", type=one_character, metavar="C", help=r"the character between cells; \t for a tab")
    text.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="whether the first line names the columns; without names they are called 1, 2 and so on",
    )
    text.add_argument(
        "--missing",
        action="append",
        default=[],
        metavar="MARK",
        help="what stands for a missing value beside empty cells, NA and the like, such as ? or -999; a number does so "
        "in files of any kind. May be given more than once",
    )


def _add_scales(parser: argparse.ArgumentParser) -> None:
    """How columns are transformed before anything else."""
    scales = parser.add_argument_group("scales (cytometry)")
    scales.add_argument(
        "--transform",
        choices=TRANSFORMS,
        default="auto",
        help="the scale of fluorescence in FCS files, or of all columns in others (default: auto, which is logicle for "
        "FCS and none for others)",
    )
    scales.add_argument(
        "--cofactor",
        type=positive,
        default=COFACTOR,
        metavar="X",
        help=f"of arcsinh (default: {COFACTOR:g}, usual for fluorescence; 5 for mass cytometry)",
    )
    scales.add_argument("--no-compensation", action="store_true", help="do not use the spillover matrix of an FCS file")


def _add_seed(parser: Any) -> None:
    """Where random choices start."""
    parser.add_argument("--seed", type=whole, default=0, metavar="N", help="of all random choices (default: 0)")


def _add_out(parser: Any, **options: Any) -> None:
    """Where results go."""
    parser.add_argument("--out", type=named, **options)


def _add_manners(parser: Any, *, writes: bool = True) -> None:
    """What is printed and overwritten."""
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    if writes:
        parser.add_argument("--quiet", action="store_true", help="print nothing but errors, and show no progress")
        parser.add_argument("--force", action="store_true", help="replace files that are already there")


def one_character(text: str) -> str:
    """A delimiter."""
    text = text.replace("\\t", "\t")
    if len(text) != 1 or not text.isascii() or text in '"\n\r\0':
        raise argparse.ArgumentTypeError(f"it is one character, such as , or ; or \\t; got {text!r}")
    return text


def positive(text: str) -> float:
    """A positive, finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"it is a positive, finite number; got {text!r}")
    return value


def whole(text: str) -> int:
    """A whole number, zero or more."""
    if not text.isascii() or not text.isdecimal():
        raise argparse.ArgumentTypeError(f"it is a whole number, zero or more; got {text!r}")
    return int(text)


def named(text: str) -> Path:
    """A place that has a name."""
    if not text.strip():
        raise argparse.ArgumentTypeError("it names a place, and the name is empty")
    return Path(text)
