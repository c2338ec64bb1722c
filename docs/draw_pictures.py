"""Draw the pictures of the pages: ``python docs/draw_pictures.py``, or some of them by name.

Each picture shows what the examples of its page have computed: the page is run, and its variables are drawn. The
screenshot of a report needs Chromium.
"""

import json
import os
import re
import runpy
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import numpy as np
from matplotlib import pyplot as plt

from latentviews import cli
from latentviews.plot import (
    ComponentDisplay,
    DensityDisplay,
    DependenceDisplay,
    ForecastDisplay,
    SpectrumDisplay,
    StateDisplay,
    WitnessDisplay,
)

DOCS = Path(__file__).resolve().parent
PICTURES = DOCS / "pictures"
COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7")


def run_page(name: str) -> dict[str, Any]:
    """The variables of a page of the guide after all its Python has run."""
    names: dict[str, Any] = {}
    for code in re.findall(r"^```python\n(.*?)^```", (DOCS / "guide" / name).read_text(), re.DOTALL | re.MULTILINE):
        exec(code, names)
    return names


def write(figure: Any, name: str) -> None:
    """Save as a small file with a white ground."""
    figure.savefig(PICTURES / name, dpi=100, facecolor="white", pil_kwargs={"optimize": True})
    plt.close("all")


def components() -> None:
    """The classes of ``latentviews demo`` with the truth beneath."""
    folder = Path(tempfile.mkdtemp())
    cli.main(["demo", "--out", str(folder)])
    shutil.copy(folder / "components.png", PICTURES / "components.png")


def how_many() -> None:
    """Singular values and the band of chance."""
    page = run_page("how_many.md")
    figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
    SpectrumDisplay.from_estimator(page["model"], ax=ax)
    write(figure, "how_many.png")


def trust() -> None:
    """Dependence inside classes."""
    page = run_page("trust.md")
    write(DependenceDisplay.from_diagnosis(page["found"]).figure_, "trust.png")


def dependence() -> None:
    """Long classes with and without copulas."""
    page = run_page("dependence.md")
    figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained", sharey=True)
    models = {"views taken to be independent": page["assumed"], 'dependence="copula"': page["robust"]}
    for ax, (title, model) in zip(axes, models.items(), strict=True):
        labels = model.predict(page["X"])
        for h, marker in enumerate("ox"):
            rows = page["X"][labels == h][:400]
            ax.scatter(rows[:, 0], rows[:, 1], s=9, marker=marker, color=COLORS[h], linewidths=0.8, label=f"class {h}")
        ax.set(title=title, xlabel="view 0", xlim=(-0.5, 8), ylim=(-0.5, 7))
    axes[0].set_ylabel("view 1")
    axes[0].legend(frameon=False)
    write(figure, "dependence.png")


def kinds() -> None:
    """Densities over a circle, categories, a half-line and an interval."""
    page = run_page("kinds_of_columns.md")
    figure, axes = plt.subplots(1, 4, figsize=(11, 2.8), layout="constrained")
    ComponentDisplay.from_estimator(page["model"], page["X"], ax=axes)
    for ax, name in zip(axes, ("direction", "habitat", "hours", "success"), strict=True):
        ax.set_xlabel(name)
    axes[2].set_xlim(0, 12)
    write(figure, "kinds.png")


def series() -> None:
    """States of a series, and a fan."""
    page = run_page("series.md")
    figure, axes = plt.subplots(2, 1, figsize=(8, 5), layout="constrained")
    StateDisplay.from_estimator(page["model"], page["sensors"], column=1, ax=axes[0])
    ForecastDisplay.from_estimator(page["predictive"], page["history"], 5, ax=axes[1])
    write(figure, "series.png")


def joint() -> None:
    """The density of two of three columns."""
    page = run_page("joint.md")
    figure, ax = plt.subplots(figsize=(4.6, 3.6), layout="constrained")
    DensityDisplay.from_estimator(page["density"], page["X"][:300], ax=ax)
    write(figure, "joint.png")


def comparing() -> None:
    """Where two samples differ."""
    page = run_page("comparing.md")
    figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
    WitnessDisplay(page["found"], page["before"], page["after"]).plot(ax)
    write(figure, "comparing.png")


def depth() -> None:
    """The example of belief propagation on a pair of images, which ``LATENTVIEWS_STEREO`` names."""
    names = runpy.run_path(str(DOCS.parent / "examples" / "plot_depth.py"))
    write(names["figure"], "depth.png")


def cytometry() -> None:
    """Mean F-measures from the saved results."""
    record = json.loads((DOCS.parent / "benchmarks/accuracy/results/cytometry.json").read_text())["results"]
    methods = {
        "MultiViewMixture, dependence": 'MultiViewMixture(k, dependence="copula")',
        "HDBSCAN + nearest neighbours, number not given": "HDBSCAN + nearest neighbours",
        "GaussianMixture, full": "GaussianMixture, full",
        "GaussianMixture, diagonal": "GaussianMixture, diagonal",
        "FlowSOM": "FlowSOM",
        "NonparametricEM": "NonparametricEM",
        "MultiViewMixture": "MultiViewMixture(k)",
        "the paper's estimate": "spectral estimate alone",
    }
    figure, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
    for c, collection in enumerate(("dlbcl", "gvhd", "hsct")):
        heights = [mean_f(record, method, collection) for method in methods]
        ax.barh(np.arange(len(methods)) + 0.27 * (c - 1), heights, 0.25, color=COLORS[c], label=collection.upper())
    ax.set(yticks=range(len(methods)), yticklabels=methods.values(), xlim=(0.5, 1), xlabel="mean F-measure")
    ax.invert_yaxis()
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    write(figure, "cytometry.png")


def torus() -> None:
    """The states of protein backbones, as ``benchmarks/accuracy/torus.py --part figure`` draws them."""
    shutil.copy(DOCS.parent / "benchmarks" / "accuracy" / "results" / "torus.png", PICTURES / "torus.png")


def mean_f(record: list[dict[str, Any]], method: str, collection: str) -> float:
    """The mean over samples of the mean over seeds; the sample with five columns is another table."""
    runs: dict[str, list[float]] = {}
    for run in record:
        mine = run["method"] == method and run["sample"].startswith(collection)
        if mine and not run["split"] and not run["sample"].endswith("5d"):
            runs.setdefault(run["sample"], []).append(run["F"])
    return float(np.mean([np.mean(values) for values in runs.values()]))


def report() -> None:
    """The top of the report that the page on the command line writes."""
    from selenium import webdriver

    os.chdir(tempfile.mkdtemp())
    text = (DOCS / "guide" / "command_line.md").read_text()
    exec(re.search(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE).group(1), {})  # type: ignore[union-attr]
    cli.main(["fit", "cells.fcs", "-k", "3", "--views", "FSC-A,SSC-A", "CD3,CD5", "CD19", "CD14",
              "--dependence", "none"])  # fmt: skip
    options = webdriver.ChromeOptions()
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1240,1000"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver") or "chromedriver"))
    driver.get(Path("cells/report.html").absolute().as_uri())
    driver.implicitly_wait(5)
    driver.save_screenshot(str(PICTURES / "report.png"))
    driver.quit()
    shrink(PICTURES / "report.png")


def shrink(path: Path) -> None:
    """Fewer colours, which a screenshot of text does not miss."""
    from PIL import Image

    Image.open(path).convert("RGB").quantize(64).save(path, optimize=True)


DRAWINGS: dict[str, Callable[[], None]] = {
    draw.__name__: draw
    for draw in (
        components,
        how_many,
        trust,
        dependence,
        kinds,
        series,
        joint,
        comparing,
        depth,
        cytometry,
        torus,
        report,
    )
}

if __name__ == "__main__":
    here = Path.cwd()
    for name in sys.argv[1:] or DRAWINGS:
        DRAWINGS[name]()
        os.chdir(here)
