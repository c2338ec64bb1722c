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
from scipy.optimize import linear_sum_assignment

from latentviews import MultiViewMixture, cli, spectrum_gram, weisfeiler_lehman_gram
from latentviews.plot import (
    ComponentDisplay,
    DensityDisplay,
    DependenceDisplay,
    ForecastDisplay,
    ItemProfileDisplay,
    MembershipDisplay,
    SpectrumDisplay,
    StateDisplay,
    TopicDisplay,
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
    """The example of belief propagation on a pair of images, which ``LATENTVIEWS_STEREO`` names; else it is kept."""
    if "LATENTVIEWS_STEREO" not in os.environ:
        return
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


def which_model() -> None:
    """Two kinds in three measurements: their densities over the rows."""
    page = run_page("which_model.md")
    figure, axes = plt.subplots(1, 3, figsize=(9, 2.8), layout="constrained")
    ComponentDisplay.from_estimator(page["model"], page["X"], ax=axes)
    for ax, name in zip(axes, ("marker", "duration", "same centre, other spread"), strict=True):
        ax.set_xlabel(name)
    axes[0].set_ylim(0, 0.26)
    axes[1].set_xlim(-0.5, 15)
    write(figure, "which_model.png")


def scale() -> None:
    """What streams lead to: class weights by rows seen, and kernel principal components."""
    os.chdir(tempfile.mkdtemp())
    page = run_page("scale.md")
    model = MultiViewMixture(3, random_state=0)
    weights = [model.partial_fit(batch).weights_ for batch in np.array_split(page["table"].to_numpy(), 30)]
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
    grid = np.linspace(-3, 3, 200)
    functions = page["pca"].eigenfunctions_(grid[:, None])
    for h, (color, true) in enumerate(zip(COLORS, (1 / 2, 1 / 3, 1 / 6), strict=False)):
        left.plot(np.arange(1, 31), np.array(weights)[:, h], color=color)
        left.axhline(true, color="0.5", ls="--", lw=0.8)
        right.plot(grid, functions[:, h], color=color, label=f"{h}")
    left.set(title="classes", xlabel="thousand rows seen", ylabel="weight", ylim=(0, 0.6))
    right.set(title="kernel principal components", xlabel="x", ylabel="eigenfunction")
    figure.legend(loc="outside right center", frameon=False)
    write(figure, "scale.png")


def topics() -> None:
    """Words of three topics, and the parts of groups of draws."""
    page = run_page("topics.md")
    figure, axes = plt.subplots(1, 4, figsize=(11, 2.8), layout="constrained", width_ratios=(1, 1, 1, 1.6))
    TopicDisplay.from_estimator(page["model"], n_words=4, names=page["words"], ax=axes[:3])
    grid = np.linspace(-6, 8, 400)
    for h, curve in enumerate(page["mixed"].components_[0].density(grid).T):
        axes[3].plot(grid, curve, color=COLORS[h], label=f"part {h}")
    axes[3].set(xlabel="value of a draw", ylabel="density", ylim=(0, None))
    axes[3].legend(frameon=False)
    write(figure, "topics.png")


def communities() -> None:
    """The shares of a thousand nodes."""
    page = run_page("communities.md")
    figure, ax = plt.subplots(figsize=(8, 2.8), layout="constrained")
    MembershipDisplay.from_estimator(page["model"], ax=ax)
    ax.get_legend().remove()
    ax.set_xlim(0, len(page["model"].nodes_))
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    write(figure, "communities.png")


def crowds() -> None:
    """What every worker takes for what, the most informative first."""
    model = run_page("crowds.md")["model"]
    order = np.argsort(-model.information_)
    figure, axes = plt.subplots(1, len(order), figsize=(10, 2.3), layout="constrained", sharey=True)
    for ax, w in zip(axes, order, strict=True):
        image = ax.imshow(model.confusion_[w], vmin=0, vmax=1, cmap="Blues")
        ax.set(title=f"{model.workers_[w]}, {model.information_[w]:.2f}", xlabel="answer")
        ax.set_xticks(range(len(model.classes_)), model.classes_)
        ax.set_yticks(range(len(model.classes_)), model.classes_)
    axes[0].set_ylabel("true label")
    figure.colorbar(image, ax=axes, label="probability", shrink=0.75)
    write(figure, "crowds.png")


def latent_classes() -> None:
    """How two classes answer five questions."""
    page = run_page("latent_classes.md")
    figure, axes = plt.subplots(1, 2, figsize=(8, 2.8), layout="constrained")
    ItemProfileDisplay.from_estimator(page["model"], ax=axes)
    write(figure, "latent_classes.png")


def objects() -> None:
    """Gram matrices of strings and of graphs, their rows in the order of the classes that were found."""
    page = run_page("objects.md")
    grams = {
        "strings": (spectrum_gram(page["reads"][0], length=3), page["model"]),
        "graphs": (weisfeiler_lehman_gram(page["networks"][0], n_iter=1), page["clubs"]),
    }
    figure, axes = plt.subplots(1, 2, figsize=(6, 2.6), layout="constrained")
    for ax, (name, (gram, model)) in zip(axes, grams.items(), strict=True):
        found = model.predict(page["organisms"])
        order = np.argsort(found, kind="stable")
        image = ax.imshow(gram[np.ix_(order, order)], cmap=plt.get_cmap("viridis", 8), interpolation="nearest")
        ax.axhline((found == 0).sum() - 0.5, color="white", lw=0.8)
        ax.axvline((found == 0).sum() - 0.5, color="white", lw=0.8)
        ax.set(title=f"{name}, first view", xlabel="objects, by class", xticks=[], yticks=[])
        figure.colorbar(image, ax=ax, label="likeness")
    write(figure, "objects.png")
    shrink(PICTURES / "objects.png")


def sources() -> None:
    """Two channels, and the two sources behind them."""
    page = run_page("sources.md")
    figure, axes = plt.subplots(1, 2, figsize=(7, 3.2), layout="constrained")
    for ax, name, title in zip(axes, ("channels", "found"), ("recorded", "found"), strict=True):
        rows = page[name][:1200]
        ax.scatter(rows[:, 0], rows[:, 1], s=4, color=COLORS[0], linewidths=0)
        ax.set_title(title)
    axes[0].set(xlabel="channel 0", ylabel="channel 1")
    axes[1].set(xlabel="source 0", ylabel="source 1")
    write(figure, "sources.png")


def coming_from() -> None:
    """What hmmlearn and `KernelHMM` take for the emissions of three states that have the same mean."""
    os.chdir(tempfile.mkdtemp())
    page = run_page("coming_from.md")
    grid = np.linspace(-4, 4, 400)
    truth = page["chain"].components[0].density(grid)
    spreads = np.sqrt(page["theirs"].covars_.ravel())
    bells = np.exp(-(((grid[:, None] - page["theirs"].means_.ravel()) / spreads) ** 2) / 2) / spreads
    found = {
        "hmmlearn's GaussianHMM": bells / np.sqrt(2 * np.pi),
        "KernelHMM": page["ours"].components_[0].density(grid),
    }
    figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained", sharey=True)
    for ax, (title, curves) in zip(axes, found.items(), strict=True):
        _, order = linear_sum_assignment(((truth[:, :, None] - curves[:, None]) ** 2).sum(axis=0))
        for h, color in enumerate(COLORS[:3]):
            ax.plot(grid, curves[:, order[h]], color=color, label=f"state {h}")
            ax.plot(grid, truth[:, h], "--", color=color, lw=0.9)
        ax.set(title=title, xlabel="reading")
    axes[0].set_ylabel("density")
    axes[1].legend(frameon=False)
    write(figure, "coming_from.png")
    shrink(PICTURES / "coming_from.png")


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
        which_model,
        scale,
        topics,
        communities,
        crowds,
        latent_classes,
        objects,
        sources,
        coming_from,
        report,
    )
}

if __name__ == "__main__":
    here = Path.cwd()
    for name in sys.argv[1:] or DRAWINGS:
        DRAWINGS[name]()
        os.chdir(here)
