"""``latentviews demo``: the main job on data that the package makes, whose truth is known."""

import argparse
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from latentviews._sentences import counted
from latentviews.cli.options import FIGURE, REPORT, CommandError
from latentviews.cli.output import output_directory
from latentviews.datasets import MultiViewData, make_multiview
from latentviews.metrics import Reordered, density_error, label_accuracy, match_components
from latentviews.mixtures.mixture import MultiViewMixture
from latentviews.plot import ComponentDisplay, offscreen_axes
from latentviews.report import write_report


@dataclass(frozen=True, eq=False)
class DemoResult:
    """What a demo found beside what is true; everything in the order of the found classes."""

    model: MultiViewMixture
    data: MultiViewData
    true_weights: np.ndarray  # (k,)
    true_components: tuple[Reordered, ...]  # one per view
    accuracy: float  # share of labels right
    error: float  # weighted L2 distance of the densities, mean over views
    size: float  # the same distance from zero to the true densities
    seconds: float  # the fit alone


def run(arguments: argparse.Namespace) -> None:
    """Fit, print, draw, report."""
    with output_directory(arguments.out, [FIGURE, REPORT], force=True) as aside:
        axes = _new_axes(3)
        result = run_demo()
        draw_demo(result, axes)
        axes[0].figure.savefig(aside / FIGURE, format="png", dpi=110)
        names = [f"view {t}" for t in range(result.data.X.shape[1])]
        write_report(result.model, result.data.X, aside / REPORT, columns=names, source="latentviews demo")
    print(describe_demo(result))
    print(f"\nfigure: {arguments.out / FIGURE}\nreport: {arguments.out / REPORT}")


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
            f"{counted(n_rows, 'row')}, {counted(n_views, 'view')}, {counted(k, 'hidden class', 'hidden classes')}",
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
