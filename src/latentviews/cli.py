"""The command line: ``latentviews demo``."""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from latentviews import MultiViewMixture, __version__
from latentviews.datasets import MultiViewData, make_multiview
from latentviews.metrics import Reordered, density_error, label_accuracy, match_components
from latentviews.plot import ComponentDisplay, offscreen_axes

USAGE_ERROR = 2

EXAMPLES = """\
examples:
  latentviews demo                 find three hidden classes in made-up data; figure in ./demo
  latentviews demo --out figures   the same; figure in ./figures
  latentviews demo --help          all about a command
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; 0 if it did its work, 2 with one sentence on stderr if it could not."""
    arguments = build_parser().parse_args(argv)
    try:
        arguments.run(arguments)
    except CommandError as error:
        print(f"latentviews {arguments.command}: {error}", file=sys.stderr)
        return USAGE_ERROR
    return 0


class CommandError(Exception):
    """Something the person at the keyboard can put right; the message says what."""


def build_parser() -> argparse.ArgumentParser:
    """The commands and their options; a command sets ``run``, a function of the parsed arguments."""
    parser = argparse.ArgumentParser(
        prog="latentviews",
        description="Hidden classes from several views of each object, with no assumed shape.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"latentviews {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    _add_demo(commands)
    return parser


def _add_demo(commands: Any) -> None:
    demo = commands.add_parser(
        "demo",
        help="find hidden classes in made-up data whose truth is known",
        description="Draw 5,000 rows of three views from three classes, two Gaussian and one exponential; find the "
        "classes; print how close they come to the truth; write the figure components.png.",
        epilog="example:\n  latentviews demo --out figures",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    demo.add_argument(
        "--out",
        type=Path,
        default=Path("demo"),
        metavar="DIR",
        help="where components.png goes, made if it is not there (default: demo); an older one is replaced",
    )
    demo.set_defaults(run=_demo)


@dataclass(frozen=True, eq=False)
class DemoResult:
    """What a demo found beside what is true; everything in the order of the found classes."""

    model: MultiViewMixture
    data: MultiViewData
    true_weights: np.ndarray  # (k,)
    true_components: tuple[Reordered, ...]  # one a view
    accuracy: float  # share of labels right
    error: float  # weighted L2 distance of the densities, mean over views
    size: float  # the same distance from zero to the true densities
    seconds: float  # the fit alone


def _demo(arguments: argparse.Namespace) -> None:
    figure = _output_directory(arguments.out) / "components.png"
    axes = _new_axes(3)
    result = run_demo()
    print(describe_demo(result))
    draw_demo(result, axes)
    _write_figure(axes[0].figure, figure)
    print(f"\nfigure: {figure}")


def run_demo() -> DemoResult:
    """Generate, fit, and compare with the truth."""
    data = make_multiview(5000, 3, design="gamma", random_state=0)
    start = time.perf_counter()
    model = MultiViewMixture(3, random_state=0).fit(data.X)
    seconds = time.perf_counter() - start
    points = np.linspace(data.X.min() - 1, data.X.max() + 1, 1000)
    grids, root_step = [points] * data.X.shape[1], np.sqrt(points[1] - points[0])
    order = match_components(data.truth.components, model.components_, grids, data.truth.weights)
    names = np.argsort(order)  # the true name of every found class
    true_weights = data.truth.weights[names]
    true = tuple(Reordered(view, names) for view in data.truth.components)
    nothing = [_Zero(len(names))] * len(true)
    return DemoResult(
        model,
        data,
        true_weights,
        true,
        label_accuracy(data.y, model.predict(data.X)),
        density_error(true, model.components_, grids, true_weights) * root_step,
        density_error(true, nothing, grids, true_weights) * root_step,
        seconds,
    )


class _Zero:
    """Densities that are zero everywhere, to measure others from."""

    def __init__(self, k: int):
        self.k = k

    def density(self, x: np.ndarray) -> np.ndarray:
        """Zeros, (n, k)."""
        return np.zeros((len(x), self.k))


def describe_demo(result: DemoResult) -> str:
    """A short table for people."""
    model, (n_rows, n_views), k = result.model, result.data.X.shape, result.model.n_components_
    spectrum = model.spectrum_[: k + 2] / model.spectrum_[0]
    return "\n".join(
        [
            f"{n_rows:,} rows, {n_views} views, {k} hidden classes",
            "",
            "class   weight found   weight true",
            *(
                f"{h:5d}   {found:12.3f}   {true:11.3f}"
                for h, (found, true) in enumerate(zip(model.weights_, result.true_weights, strict=True))
            ),
            "",
            f"labels right    {result.accuracy:.2%}",
            f"density error   {result.error / result.size:.1%} of the true densities (weighted L2, mean over views)",
            f"spectrum        {'  '.join(f'{value:.3f}' for value in spectrum)}  (over the first)",
            f"time to fit     {result.seconds:.2f} s",
        ]
    )


def draw_demo(result: DemoResult, axes: Any) -> None:
    """The densities found over the data, and the true ones dashed beneath them."""
    found = ComponentDisplay.from_estimator(result.model, result.data.X, ax=axes)
    views = [view.of(true) for view, true in zip(found.views, result.true_components, strict=True)]
    dashes = {"linestyle": "--", "color": "0.35", "linewidth": 1.2, "zorder": 1.5, "label": "_"}
    ComponentDisplay(views, result.true_weights).plot(axes, curve_kwargs=dashes)
    handles = axes[-1].plot([], [], **dashes)
    axes[-1].legend(handles, ["true densities"], frameon=False, fontsize="small")


def _new_axes(count: int) -> Any:
    try:
        return offscreen_axes(count)
    except ImportError as error:
        raise CommandError(str(error)) from error


def _output_directory(path: Path) -> Path:
    """``path`` as a directory that takes files, found out before any work is done."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            return path
    except OSError as error:
        raise _cannot_write(path, error) from error


def _write_figure(figure: Any, path: Path) -> None:
    """The figure at ``path``, whole or not at all: written aside, then renamed."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        figure.savefig(aside, format="png", dpi=110)
        aside.replace(path)
    except OSError as error:
        raise _cannot_write(path, error) from error
    finally:
        aside.unlink(missing_ok=True)


def _cannot_write(path: Path, error: OSError) -> CommandError:
    reason = (error.strerror or str(error)).lower()
    return CommandError(f"cannot write to {path} ({reason}); name another directory with --out.")
