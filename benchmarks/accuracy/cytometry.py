"""Cell populations in FlowCAP-I's samples: the real data of Song et al. (2014), section 8.2, and two more collections.

    pip install flowsom phenograph
    LATENTVIEWS_DATA=../shared/data python benchmarks/accuracy/cytometry.py

Every method sees the columns of a sample, standardised where it does not do that itself, and the number of populations
or nothing; one setting serves all samples. The score is FlowCAP's F-measure, and the adjusted Rand index, on the cells
that an expert gated. Times are seconds of processor time on one core, the fit and the labels of all cells. Where a
method has no answer (moments that do not carry so many classes), all cells are one class.

What is done is kept in ``results/cytometry.json`` and not done again; ``--again`` forgets the methods named.
``--methods``, ``--collections`` and ``--seeds`` do a part; ``--summary`` only writes the table and the figure.
"""

import argparse
import contextlib
import io
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import HDBSCAN
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import NearestNeighbors

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews import MultiViewMixture
from latentviews.baselines import HistogramSpectral, NonparametricEM, SphericalSpectral
from latentviews.datasets import flowcap_samples, load_flowcap
from latentviews.datasets.collections import FLOWCAP
from latentviews.metrics import f_measure

RESULTS = Path(__file__).with_name("results")
SPLIT = [[0, 1], [2, 3], [4]]  # the paper's views of five columns
OURS, AUTO = "MultiViewMixture, dependence", "MultiViewMixture, dependence, number not given"
PEER = "HDBSCAN + nearest neighbours, number not given"
SEEDED = (OURS, AUTO)  # these are run with three seeds
BARS = {  # F, adjusted Rand index, F where the number is not given
    "dlbcl": (0.965, 0.93, 0.945),
    "gvhd": (0.915, 0.77, 0.92),
    "hsct": (0.965, 0.91, 0.965),
}

Method = Callable[[np.ndarray, int, int, Any], np.ndarray]


def mixture(**settings: Any) -> Method:
    """`MultiViewMixture` or a baseline with its surface."""
    model = settings.pop("model", MultiViewMixture)
    given = settings.pop("given", True)

    def labels(X: np.ndarray, k: int, seed: int, views: Any) -> np.ndarray:
        split = {} if views is None else {"views": views}
        return model(k if given else "auto", **split, **settings, random_state=seed).fit(X).predict(X)

    return labels


def gaussian_mixture(kind: str) -> Method:
    """EM for Gaussian mixtures, the best of 20 starts."""
    return lambda X, k, seed, views: GaussianMixture(k, covariance_type=kind, n_init=20, random_state=seed).fit_predict(
        X
    )


def hdbscan(X: np.ndarray, k: int, seed: int, views: Any) -> np.ndarray:
    """Clusters of at least .5 % of the cells; the rest go to the cluster of their nearest neighbour."""
    labels = HDBSCAN(min_cluster_size=max(5, int(0.005 * len(X))), copy=True).fit_predict(X)
    inside = labels >= 0
    if not inside.any():
        return np.zeros(len(X), dtype=int)
    near = NearestNeighbors(n_neighbors=1).fit(X[inside]).kneighbors(X, return_distance=False)[:, 0]
    return labels[inside][near]


def flowsom(X: np.ndarray, k: int, seed: int, views: Any) -> np.ndarray:
    """FlowSOM with its own settings and k metaclusters."""
    import anndata
    import flowsom as package
    from loguru import logger

    logger.remove()
    cells = anndata.AnnData(X.astype(np.float32))
    names = [f"marker {j}" for j in range(X.shape[1])]
    cells.var_names = names
    for column in ("channel", "marker", "pretty_colnames"):
        cells.var[column] = names
    return np.asarray(package.FlowSOM(cells, n_clusters=k, xdim=10, ydim=10, seed=seed).metacluster_labels)


def phenograph(X: np.ndarray, k: int, seed: int, views: Any) -> np.ndarray:
    """PhenoGraph with its own settings."""
    import phenograph as package

    with contextlib.redirect_stdout(io.StringIO()):
        return package.cluster(X, n_jobs=1, seed=seed)[0]


METHODS: dict[str, Method] = {  # the quick ones first
    OURS: mixture(dependence="copula"),
    AUTO: mixture(dependence="copula", given=False),
    PEER: hdbscan,
    "MultiViewMixture": mixture(),
    "the paper's estimate": mixture(polish=None, bandwidth="likelihood"),
    "HistogramSpectral": mixture(model=HistogramSpectral),
    "SphericalSpectral": mixture(model=SphericalSpectral),
    "NonparametricEM": mixture(model=NonparametricEM),
    "FlowSOM": flowsom,
    "GaussianMixture, diagonal": gaussian_mixture("diag"),
    "GaussianMixture, full": gaussian_mixture("full"),
    "PhenoGraph, number not given": phenograph,
}
ONE_COLUMN = ("HistogramSpectral", "SphericalSpectral")  # they know no views of several columns


def samples(collections: list[str]) -> Iterator[tuple[str, str, Any]]:
    """Collection, sample and views; the sample with five columns also with the paper's split."""
    for collection in collections:
        for name in flowcap_samples(collection):
            yield collection, name, None
            if name.endswith("_5d"):
                yield collection, name, SPLIT


def measure(method: str, sample: str, views: Any, seed: int) -> dict[str, Any]:
    """One fit and its scores."""
    X, y, _ = load_flowcap(sample)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    gated, failure = y != 0, None
    k = len(np.unique(y[gated]))
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            labels = METHODS[method](X, k, seed, views)
        except ValueError as error:
            labels, failure = np.zeros(len(X), dtype=int), str(error).split(".")[0]
    seconds = time.process_time() - start
    return {
        "method": method,
        "sample": sample,
        "split": views is not None,
        "seed": seed,
        "n_cells": len(X),
        "n_columns": X.shape[1],
        "n_true": k,
        "n_found": len(np.unique(labels)),
        "F": round(f_measure(y, labels), 4),
        "rand": round(adjusted_rand_score(y[gated], labels[gated]), 4),
        "seconds": round(seconds, 2),
        **({"failure": failure} if failure else {}),
    }


def key(record: dict[str, Any]) -> tuple[Any, ...]:
    """What a record is of."""
    return record["method"], record["sample"], record["split"], record["seed"]


def known() -> list[dict[str, Any]]:
    """What was done before."""
    path = RESULTS / "cytometry.json"
    return json.loads(path.read_text())["results"] if path.is_file() else []


def run(methods: list[str], collections: list[str], seeds: list[int], again: bool) -> list[dict[str, Any]]:
    """Do what is not done, and keep it sample by sample."""
    found = [record for record in known() if not (again and record["method"] in methods)]
    done = {key(record) for record in found}
    MultiViewMixture(2, random_state=0).fit(np.random.default_rng(0).normal(size=(200, 3)))  # load what is loaded once
    for method in methods:
        for collection, sample, views in samples(collections):
            wanted = [(method, sample, views is not None, seed) for seed in (seeds if method in SEEDED else [0])]
            wanted = [] if views is not None and method in ONE_COLUMN else [what for what in wanted if what not in done]
            found += [measure(method, sample, views, seed) for *_, seed in wanted]
            if wanted:
                print(
                    f"{collection} {sample} {method}: F {found[-1]['F']:.3f}, {found[-1]['seconds']:.1f} s", flush=True
                )
                _record.save(RESULTS / "cytometry.json", found)
    return found


# ---------------------------------------------------------------------------------------------- table and figure


def of(records: list[dict[str, Any]], method: str, collection: str) -> list[dict[str, Any]]:
    """The records of a method on a collection, three columns of the sample with five."""
    mine = [r for r in records if r["method"] == method and r["sample"].startswith(collection)]
    return [r for r in mine if not r["sample"].endswith("_5d")]


def mean(records: list[dict[str, Any]], what: str) -> float:
    """The mean over samples and seeds."""
    return float(np.mean([record[what] for record in records])) if records else np.nan


def summary(records: list[dict[str, Any]]) -> str:
    """Tables in Markdown."""
    lines = ["# Cell populations in FlowCAP-I's samples", "", f"`{_record.command()}`", ""]
    lines += ["Mean F-measure (adjusted Rand index) over samples, and seconds per sample on one core.", ""]
    lines += [
        "| method | "
        + " | ".join(f"{c.upper()} ({len(flowcap_samples(c)) - (c == 'dlbcl')})" for c in FLOWCAP)
        + " | seconds |"
    ]
    lines += ["|---|" + "---|" * (len(FLOWCAP) + 1)]
    for method in METHODS:
        cells = [of(records, method, collection) for collection in FLOWCAP]
        shown = [f"{mean(c, 'F'):.3f} ({mean(c, 'rand'):.3f})" for c in cells]
        lines.append(
            f"| {method} | " + " | ".join(shown) + f" | {mean([r for c in cells for r in c], 'seconds'):.1f} |"
        )
    return "\n".join([*lines, "", *bars(records), "", *five_columns(records)]) + "\n"


def bars(records: list[dict[str, Any]]) -> list[str]:
    """What was asked for, and what was reached."""
    lines = ["## What was aimed at", "", "| | aim | reached |", "|---|---|---|"]
    for collection, (f, rand, free) in BARS.items():
        given, auto = of(records, OURS, collection), of(records, AUTO, collection)
        lines.append(f"| {collection.upper()}: F | {f} | {mean(given, 'F'):.4f} |")
        lines.append(f"| {collection.upper()}: adjusted Rand index | {rand} | {mean(given, 'rand'):.4f} |")
        lines.append(f"| {collection.upper()}: F, number not given | {free} | {mean(auto, 'F'):.4f} |")
        near = [abs(r["n_found"] - r["n_true"]) <= 1 for r in auto]
        lines.append(f"| {collection.upper()}: number right within one | 80 % | {np.mean(near or [np.nan]):.0%} |")
    small = [r for r in of(records, OURS, "dlbcl") if r["n_true"] <= 3]
    lines.append(f"| DLBCL: F, two or three classes | 0.978 | {mean(small, 'F'):.4f} |")
    lines.append(
        f"| DLBCL: lowest F | 0.82 | {min((r['F'] for r in of(records, OURS, 'dlbcl')), default=np.nan):.3f} |"
    )
    near = [r for r in of(records, OURS, "hsct") if 9000 <= r["n_cells"] <= 11000]
    lines.append(f"| 10,000 cells of four columns: seconds | 3 | {mean(near, 'seconds'):.1f} |")
    return lines


def five_columns(records: list[dict[str, Any]]) -> list[str]:
    """The sample with all five columns."""
    lines = [
        "## Sample 001 with five columns",
        "",
        "F, one view per column, and the views of the paper, (1, 2) (3, 4) (5).",
        "",
    ]
    lines += ["| method | five views | three views |", "|---|---|---|"]
    for method in METHODS:
        mine = [r for r in records if r["method"] == method and r["sample"].endswith("_5d")]
        shown = [mean([r for r in mine if r["split"] is split], "F") for split in (False, True)]
        lines.append(f"| {method} | {shown[0]:.3f} | {'' if np.isnan(shown[1]) else f'{shown[1]:.3f}'} |")
    return lines


def figure(records: list[dict[str, Any]]) -> None:
    """F of every DLBCL sample, in the manner of the paper's Figure 4: by number of classes, then by size."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    shown = [
        OURS,
        "MultiViewMixture",
        "the paper's estimate",
        "GaussianMixture, diagonal",
        "GaussianMixture, full",
        PEER,
    ]
    colors = ["#0072B2", "#56B4E9", "#CC79A7", "#999999", "#555555", "#E69F00"]
    fig, axes = plt.subplots(3, 1, figsize=(11, 9), layout="constrained")
    for ax, collection in zip(axes, FLOWCAP, strict=True):
        order = sorted(
            {(r["n_true"], r["n_cells"], r["sample"]) for r in records if r["sample"].startswith(collection)}
            - {(r["n_true"], r["n_cells"], r["sample"]) for r in records if r["sample"].endswith("_5d")}
        )
        for i, (method, color) in enumerate(zip(shown, colors, strict=True)):
            heights = [mean([r for r in of(records, method, collection) if r["sample"] == s], "F") for *_, s in order]
            ax.bar(np.arange(len(order)) + (i - 2.5) * 0.14, heights, 0.14, label=method, color=color)
        ax.set_xticks(range(len(order)), [f"{s.split('_')[1]}\n{k}" for k, _, s in order], fontsize=8)
        ax.set(ylim=(0.2, 1.02), ylabel="F-measure", title=f"{collection.upper()}: sample, number of classes")
        for edge in np.flatnonzero(np.diff([k for k, *_ in order])) + 0.5:
            ax.axvline(edge, color="black", linewidth=0.5, linestyle=":")
    axes[0].legend(ncols=3, fontsize=8, loc="lower left")
    fig.savefig(RESULTS / "cytometry.png", dpi=110)
    plt.close(fig)


def main() -> None:
    """Run, then write the table and the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS), metavar="METHOD")
    parser.add_argument("--collections", nargs="+", default=list(FLOWCAP), choices=FLOWCAP)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--summary", action="store_true")
    options = parser.parse_args()
    if not os.environ.get("LATENTVIEWS_DATA"):
        sys.exit("Set LATENTVIEWS_DATA to the folder that has flowcap_dlbcl, flowcap_gvhd and flowcap_hsct.")
    records = known()
    if not options.summary:
        records = run(options.methods, options.collections, options.seeds, options.again)
    text = summary(records)
    (RESULTS / "cytometry.md").write_text(text)
    figure(records)
    print(text)


if __name__ == "__main__":
    main()
