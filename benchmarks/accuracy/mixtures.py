"""The synthetic experiments of Song et al. (2014), Figures 2, 3 and 5, with more methods, lines and designs.

    python benchmarks/accuracy/mixtures.py                     # everything: hours on two cores
    python benchmarks/accuracy/mixtures.py --part overlapping --m 2000 --draws 3
    python benchmarks/accuracy/mixtures.py --report            # tables and figures from what is saved

Draws that are saved are not run again (``--fresh`` does), so the parts can run in pieces. The error is the paper's
weighted L2 on 200 points over the data's range ± 2, classes matched; ratios are formed draw by draw, then the median
is taken. The paper's estimate is the spectral one alone, by the improved Sheather–Jones bandwidth; in the part
``published`` it is there as published, too, by the bandwidth of the best cross-validated likelihood of the model. A
draw on which a method raises is recorded as missing, with its message. Draw i of a cell is ``make_multiview(m, k,
design=..., separation=..., identical=..., random_state=i)``, i from 200 on: smaller numbers were looked at while the
method was made, these were not.
"""

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.mixture import GaussianMixture

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews import Gaussian, MultiViewMixture
from latentviews.baselines import HistogramSpectral, NonparametricEM, SphericalSpectral
from latentviews.baselines.spherical import GaussianView
from latentviews.core.embeddings import domain_for
from latentviews.core.features.bins import BinnedFeatures
from latentviews.core.views import fit_views
from latentviews.datasets import MultiViewData, make_multiview
from latentviews.densities.reestimation import density_maps, reestimate
from latentviews.metrics import Reordered, density_error, match_components

RESULTS = Path(__file__).with_name("results")
SIZES = (50, 100, 200, 500, 1000, 2000, 5000, 10_000)
RANKS = (2, 3, 4, 8)
DESIGNS = ("gaussian", "gamma")
OURS, PAPER, NPEM = "latentviews", "paper's estimate", "npEM from k-means"
HISTOGRAM, SPHERICAL, GMM = "histogram spectral", "spherical spectral", "EM-GMM"
ORACLE, TRUTH = "oracle KDE", "npEM from the truth"
PUBLISHED = "paper's estimate as published"
METHODS = (OURS, PAPER, PUBLISHED, NPEM, HISTOGRAM, SPHERICAL, GMM, ORACLE, TRUTH)
SLOPE_SIZES = (500, 1000, 2000, 4000, 8000, 16_000, 32_000)

Cell = dict[str, Any]


def cells(part: str) -> list[Cell]:
    """The settings of a part."""
    if part == "shapes":
        return [{"design": "shapes", "k": 3, "m": 4000, "separation": 0.0}]
    if part == "large":
        return [{"design": "gaussian", "k": 10, "m": 100_000, "separation": 2.0}]
    if part == "slopes":
        return [{"design": "gaussian", "k": k, "m": m, "separation": 4.0} for m in SLOPE_SIZES for k in (2, 3)]
    if part == "overlapping":
        sizes = [(m, sep) for sep in (2.0, 1.2) for m in (500, 2000, 10_000)]
        return [{"design": d, "k": k, "m": m, "separation": sep} for m, sep in sizes for d in DESIGNS for k in RANKS]
    sizes_there = (500, 2000) if part == "published" else SIZES
    return [{"design": d, "k": k, "m": m, "separation": 4.0} for m in sizes_there for d in DESIGNS for k in RANKS]


PARTS = ("separated", "overlapping", "shapes", "slopes", "large", "identical", "published")
DRAWS = {"large": 3}  # ten elsewhere


def draw(cell: Cell, part: str, seed: int, n_samples: int | None = None) -> MultiViewData:
    """The data of a cell."""
    return make_multiview(
        n_samples or cell["m"],
        cell["k"],
        design=cell["design"],
        separation=cell["separation"],
        identical=part == "identical",
        random_state=seed,
    )


class Adapter:
    """Scikit-learn's Gaussian mixture, with the components of the others."""

    def __init__(self, model: GaussianMixture):
        self.model = model

    def fit(self, X: np.ndarray) -> "Adapter":
        """Fit, and read means and deviations off."""
        self.model.fit(X)
        self.weights_ = self.model.weights_
        self.components_ = [
            GaussianView(m, np.sqrt(v)) for m, v in zip(self.model.means_.T, self.model.covariances_.T, strict=True)
        ]
        return self


class Known:
    """An estimate that is there already."""

    def __init__(self, weights: np.ndarray, components: list[Any]):
        self.weights_, self.components_ = weights, components


def oracle(data: MultiViewData, blocks: list[int]) -> Known:
    """Kernel density estimates that are told the labels, every step after the posteriors that of `MultiViewMixture`."""
    X, y, truth = data
    k, rng = len(truth.weights), np.random.default_rng(0)
    columns = tuple([t] for t in range(X.shape[1]))
    views = fit_views(X, columns, [BinnedFeatures(Gaussian("silverman"))] * len(columns), rng, blocks)
    maps = density_maps(X, views, blocks, np.eye(k)[y], "auto")
    domains = [domain_for(phi, X[:, [t]], rng) for t, phi in enumerate(maps.features)]
    labelled = np.column_stack([X, y])
    return Known(*reestimate(labelled, lambda table: np.eye(k)[table[:, -1].astype(int)], maps, blocks, domains))


def true_posteriors(data: MultiViewData) -> np.ndarray:
    """P(h | row) under the truth."""
    X, _, truth = data
    tiny = np.finfo(float).tiny
    joint = np.log(truth.weights) + sum(
        np.log(np.maximum(view.density(x), tiny)) for view, x in zip(truth.components, X.T, strict=True)
    )
    return np.exp(joint - logsumexp(joint, axis=1, keepdims=True))


def methods(data: MultiViewData, identical: bool) -> dict[str, Callable[[], Any]]:
    """Every way to an estimate, not yet gone."""
    X, k = data.X, len(data.truth.weights)
    blocks = [0] * X.shape[1] if identical else list(range(X.shape[1]))
    same: dict[str, Any] = {"exchangeable": identical, "random_state": 0}

    def from_truth() -> Any:
        widths = np.stack([view.bandwidths for view in oracle(data, blocks).components_])
        start = true_posteriors(data)
        return NonparametricEM(k, exchangeable=identical, bandwidth=widths, init=start).fit(X)

    return {
        OURS: lambda: MultiViewMixture(k, **same).fit(X),
        PAPER: lambda: MultiViewMixture(k, polish=None, kernel=Gaussian("isj"), **same).fit(X),
        PUBLISHED: lambda: MultiViewMixture(k, polish=None, bandwidth="likelihood", **same).fit(X),
        NPEM: lambda: NonparametricEM(k, **same).fit(X),
        HISTOGRAM: lambda: HistogramSpectral(k, random_state=0).fit(X),
        SPHERICAL: lambda: SphericalSpectral(k, random_state=0).fit(X),
        GMM: lambda: Adapter(GaussianMixture(k, covariance_type="diag", n_init=10, random_state=0)).fit(X),
        ORACLE: lambda: oracle(data, blocks),
        TRUTH: from_truth,
    }


def matched(model: Any, data: MultiViewData, grids: list[np.ndarray]) -> tuple[list[Reordered], np.ndarray]:
    """Components in the order of the true classes, and that order."""
    truth = data.truth
    order = match_components(truth.components, model.components_, grids, truth.weights)
    return [Reordered(view, order) for view in model.components_], order


def measure(cell: Cell, part: str, seed: int) -> dict[str, Any]:
    """The errors of all methods on one draw, their seconds, and what failed."""
    data = draw(cell, part, seed)
    truth = data.truth
    grids = [np.linspace(x.min() - 2, x.max() + 2, 200) for x in data.X.T]
    record: dict[str, Any] = {**cell, "draw": seed, "errors": {}, "seconds": {}, "failures": {}}
    for name, fit in methods(data, part == "identical").items():
        if name == PUBLISHED and part != "published":  # which takes half a second to ten
            continue
        start = time.perf_counter()
        try:
            found, _ = matched(fit(), data, grids)
            error = density_error(truth.components, found, grids, truth.weights)
            if not np.isfinite(error):
                raise FloatingPointError(f"the error is {error}")
            record["errors"][name] = round(error, 6)
        except Exception as failure:
            record["failures"][name] = f"{type(failure).__name__}: {failure}"
        record["seconds"][name] = round(time.perf_counter() - start, 3)
    return record


def measure_slopes(cell: Cell, part: str, seed: int) -> dict[str, Any]:
    """The default's error of densities and of two integral queries, on a grid that is the same for every m."""
    data, reference = draw(cell, part, seed), draw(cell, part, seed, 200)
    truth, grids = data.truth, [np.linspace(x.min() - 3, x.max() + 3, 400) for x in reference.X.T]
    start = time.perf_counter()
    model = MultiViewMixture(cell["k"], random_state=0).fit(data.X)
    seconds = time.perf_counter() - start
    found, order = matched(model, data, grids)
    errors = {"density": density_error(truth.components, found, grids, truth.weights)}
    for name, f in {"mean": lambda x: x, "sine": np.sin}.items():
        apart = []
        for true, view in zip(truth.components, model.components_, strict=True):
            nodes = np.linspace(-60, 60, 60_001)
            exact = f(nodes) @ true.density(nodes) * (nodes[1] - nodes[0])
            apart.append(np.abs(view.expectation(lambda x, f=f: f(x[:, 0]))[order] - exact) @ truth.weights)
        errors[name] = float(np.mean(apart))
    return {**cell, "draw": seed, "errors": errors, "seconds": {OURS: round(seconds, 3)}, "failures": {}}


def run(part: str, draws: int, sizes: list[int] | None, ranks: list[int] | None, deadline: float, fresh: bool) -> None:
    """Measure what is not saved yet, saving every minute."""
    path = RESULTS / f"mixtures_{part}.json"
    records = [] if fresh or not path.exists() else json.loads(path.read_text())["results"]
    done = {key(record) for record in records}
    wanted = [
        ({**cell}, seed)
        for cell in cells(part)
        for seed in range(_record.FIRST_DRAW, _record.FIRST_DRAW + draws)
        if (sizes is None or cell["m"] in sizes) and (ranks is None or cell["k"] in ranks)
    ]
    wanted = [(cell, seed) for cell, seed in wanted if key({**cell, "draw": seed}) not in done]
    saved = time.time()
    for i, (cell, seed) in enumerate(wanted):
        if time.time() > deadline:
            print(f"{part}: out of time with {len(wanted) - i} draws to go")
            break
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            record = (measure_slopes if part == "slopes" else measure)(cell, part, seed)
        records.append(record)
        warn_of(part, record)
        if time.time() - saved > 60:
            _record.save(path, sorted(records, key=key))
            saved = time.time()
    if wanted:
        _record.save(path, sorted(records, key=key))


def key(record: dict[str, Any]) -> tuple[Any, ...]:
    """What tells one draw from another."""
    return tuple(record[name] for name in ("design", "separation", "k", "m", "draw"))


def warn_of(part: str, record: dict[str, Any]) -> None:
    """Say where the default is far from what it is measured by."""
    reference = ORACLE if part in {"separated", "identical"} else TRUTH
    errors = record["errors"]
    setting = " ".join(f"{name}={record[name]}" for name in ("design", "k", "m", "separation", "draw"))
    if part != "slopes" and OURS in record["failures"]:
        print(f"FAILED {part} {setting}: {record['failures'][OURS]}", flush=True)
    elif OURS in errors and reference in errors and record["m"] >= 500 and errors[OURS] > 1.3 * errors[reference]:
        print(f"FAR {part} {setting} ratio={errors[OURS] / errors[reference]:.2f} {errors}", flush=True)


def load(part: str) -> list[dict[str, Any]]:
    """What is saved of a part."""
    path = RESULTS / f"mixtures_{part}.json"
    return json.loads(path.read_text())["results"] if path.exists() else []


def grouped(records: Iterable[dict[str, Any]]) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """Draws by cell."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for record in records:
        groups.setdefault(key(record)[:-1], []).append(record)
    return groups


def ratios(draws: list[dict[str, Any]], other: str, method: str = OURS) -> np.ndarray:
    """Error over that of another method, draw by draw, where both have one."""
    pairs = [(d["errors"].get(method), d["errors"].get(other)) for d in draws]
    return np.array([a / b for a, b in pairs if a is not None and b is not None])


def bars() -> list[tuple[str, str, str, str]]:
    """Every bar of the plan: what, the bar, what was reached, and whether that meets it."""
    separated = {c: d for c, d in grouped(load("separated")).items() if c[3] >= 500}
    overlapping = {c: d for c, d in grouped(load("overlapping")).items() if c[1] == 2.0 and c[3] >= 2000}
    shapes, slopes = grouped(load("shapes")), slope_table()
    rows = [_worst("separated, m ≥ 500: over the oracle KDE", separated, ORACLE, 1.05)]
    rows.append(_worst("overlapping (sep 2), m ≥ 2000: over npEM from the truth", overlapping, TRUTH, 1.10))
    rows.append(_largest("overlapping (sep 2), m ≥ 2000: the worst draw", overlapping, TRUTH, 1.3))
    rows.append(_worst("shapes only, k = 3, m = 4000: over npEM from the truth", shapes, TRUTH, 0.7))
    rows.append(_worst("shapes only: over the oracle KDE (reported)", shapes, ORACLE, None))
    gamma = {c: d for c, d in separated.items() if c[0] == "gamma"}
    for other, limit in ((GMM, 1.0), (NPEM, 1.02), (HISTOGRAM, 1.0), (SPHERICAL, 1.0)):
        rows.append(_worst(f"Gaussian/Gamma, m ≥ 500: over {other}", gamma, other, limit))
    rows.append(_largest(f"Gaussian/Gamma, m ≥ 500: the worst draw over {NPEM}", gamma, NPEM, 1.02))
    mixed = {c: d for c, d in overlapping.items() if c[0] == "gamma"}
    rows += [
        _worst(f"overlapping Gaussian/Gamma, m ≥ 2000: over {other} (reported)", mixed, other, None)
        for other in (GMM, NPEM, HISTOGRAM, SPHERICAL)
    ]
    gaussian = {c: d for c, d in separated.items() if c[0] == "gaussian" and c[3] == 10_000}
    rows.append(_worst("Gaussian, m = 10,000: over EM-GMM (1.5 would be remarkable)", gaussian, GMM, 1.5))
    for name, (slope, target) in slopes.items():
        met = "yes" if abs(slope - target) <= 0.1 else "NO"
        rows.append((f"slope of the {name} error", f"{target:g} ± .1", f"{slope:.3f}", met))
    heavy = {c: d for c, d in grouped(load("overlapping")).items() if c[1] == 1.2 and c[3] >= 2000}
    rows.append(
        _worst("heavily overlapping (sep 1.2), m ≥ 2000: over npEM from the truth (reported)", heavy, TRUTH, None)
    )
    large = grouped(load("large"))
    rows.append(_worst("k = 10, m = 100,000, sep 2: over npEM from the truth (reported)", large, TRUTH, None))
    return rows


def _cell_name(cell: tuple[Any, ...], draws: list[dict[str, Any]]) -> str:
    return f"{cell[0]} k={cell[2]} m={cell[3]}, {len(draws)} draws"


def _worst(what: str, groups: dict[Any, Any], other: str, limit: float | None) -> tuple[str, str, str, str]:
    """The cell with the largest median ratio."""
    medians = {cell: float(np.median(r)) for cell, d in groups.items() if len(r := ratios(d, other))}
    bar = "" if limit is None else f"≤ {limit:g}"
    if not medians:
        return what, bar, "not measured", ""
    worst = max(medians, key=lambda cell: medians[cell])
    good = sum(value <= (limit or np.inf) for value in medians.values())
    reached = f"{medians[worst]:.3f} ({_cell_name(worst, groups[worst])}); {good} of {len(medians)} cells meet it"
    if limit is None:
        reached = reached.split(";")[0]
    return what, bar, reached, "" if limit is None else ("yes" if good == len(medians) else "NO")


def _largest(what: str, groups: dict[Any, Any], other: str, limit: float) -> tuple[str, str, str, str]:
    """The draw with the largest ratio."""
    tops = {cell: (float(r.max()), int(r.argmax())) for cell, d in groups.items() if len(r := ratios(d, other))}
    if not tops:
        return what, f"≤ {limit:g}", "not measured", ""
    worst = max(tops, key=lambda cell: tops[cell])
    above = sum(int((ratios(d, other) > limit).sum()) for d in groups.values())
    reached = f"{tops[worst][0]:.3f} ({_cell_name(worst, groups[worst])}); {above} draws above"
    return what, f"≤ {limit:g}", reached, "yes" if above == 0 else "NO"


def slope_table() -> dict[str, tuple[float, float]]:
    """Slopes of log error in log m, medians over draws, averaged over k; and what theory says."""
    groups, found = grouped(load("slopes")), {}
    for name, target in (("density", -0.4), ("mean", -0.5), ("sine", -0.5)):
        lines = []
        for k in sorted({cell[2] for cell in groups}):
            points = [(c[3], np.median([r["errors"][name] for r in d])) for c, d in groups.items() if c[2] == k]
            if len(points) > 2:
                lines.append(np.polyfit(*np.log(np.array(sorted(points))).T, 1)[0])
        if lines:
            found[name] = (float(np.mean(lines)), target)
    return found


def markdown() -> str:
    """All tables."""
    lines = ["# Synthetic mixtures", "", f"Made by `{_record.command()}` from the saved draws.", "", "## Bars", ""]
    lines += ["| what | bar | worst cell (median over draws) | met |", "|---|---|---|---|"]
    lines += ["| " + " | ".join(row) + " |" for row in bars()]
    for part in PARTS:
        groups = grouped(load(part))
        if not groups or part == "slopes":
            continue
        lines += ["", f"## {part}: median error over draws (ratio to {ORACLE}, and to {TRUTH}, for {OURS})", ""]
        lines += ["| design | sep | k | m | draws | " + " | ".join(METHODS) + " | ÷ oracle | ÷ truth | worst ÷ truth |"]
        lines += ["|" + "---|" * (8 + len(METHODS))]
        for cell, draws in sorted(groups.items()):
            values = [[d["errors"][m] for d in draws if m in d["errors"]] for m in METHODS]
            texts = [_median_text(v, len(draws)) for v in values]
            to_oracle, to_truth = ratios(draws, ORACLE), ratios(draws, TRUTH)
            extra = [_median_text(to_oracle, 0), _median_text(to_truth, 0), f"{max(to_truth, default=np.nan):.3f}"]
            head = [cell[0], f"{cell[1]:g}", str(cell[2]), str(cell[3]), str(len(draws))]
            lines.append("| " + " | ".join(head + texts + extra) + " |")
    failures = failure_lines()
    return "\n".join([*lines, "", "## Draws without an estimate", "", *(failures or ["None."]), ""])


def _median_text(values: Any, expected: int) -> str:
    """A median, with the number of draws behind it where some are missing."""
    if not len(values):
        return "–"
    note = f" ({len(values)})" if expected and len(values) < expected else ""
    return f"{np.median(values):.3f}{note}"


def failure_lines() -> list[str]:
    """Every method that failed somewhere, where, and the first message."""
    found: dict[tuple[str, str], list[str]] = {}
    for part in PARTS:
        for record in load(part):
            for method, message in record["failures"].items():
                design, separation, k, m, seed = key(record)
                setting = f"{design} k={k} m={m} sep={separation:g} draw {seed}"
                found.setdefault((f"{part}, {method}", message.split(";")[0][:160]), []).append(setting)
    return [
        f"- {where}: {len(settings)} draws ({'; '.join(settings[:3])}{' …' if len(settings) > 3 else ''}): {message}"
        for (where, message), settings in found.items()
    ]


def figures() -> None:
    """MSE against sample size, one panel for a k, as Figures 3 and 5 of the paper; and densities, as Figure 2."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    for part, separation in (("separated", 4.0), ("identical", 4.0), ("overlapping", 2.0), ("overlapping", 1.2)):
        groups = {c: d for c, d in grouped(load(part)).items() if c[1] == separation}
        if not groups:
            continue
        fig, axes = plt.subplots(len(DESIGNS), len(RANKS), figsize=(16, 7), sharex=True, layout="constrained")
        for (row, design), (column, k) in ((r, c) for r in enumerate(DESIGNS) for c in enumerate(RANKS)):
            ax = axes[row, column]
            for method in METHODS:
                points = sorted(
                    (c[3], np.mean(e))
                    for c, d in groups.items()
                    if c[0] == design and c[2] == k and (e := [r["errors"][method] for r in d if method in r["errors"]])
                )
                if points:
                    style = {ORACLE: "k:", TRUTH: "k--"}.get(method, f"C{METHODS.index(method)}o-")
                    wide = 2.5 if method == OURS else 1.2
                    ax.plot(*zip(*points, strict=True), style, label=method, linewidth=wide, markersize=3)
            ax.set(xscale="log", yscale="log", title=f"{design}, k = {k}")
        fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=len(METHODS), fontsize=8)
        fig.supxlabel("number of samples m")
        fig.supylabel("MSE (mean over draws)")
        name = part if part != "overlapping" else f"{part}_{separation:g}"
        fig.savefig(RESULTS / f"mixtures_{name}.png", dpi=110)
        plt.close(fig)
    fig, axes = plt.subplots(1, 2, figsize=(11, 4))
    for ax, design in zip(axes, DESIGNS, strict=True):
        data = make_multiview(2000, 2, design=design, random_state=0)
        x = np.linspace(data.X[:, 0].min() - 2, data.X[:, 0].max() + 2, 400)
        fits = methods(data, identical=False)
        ax.plot(x, data.truth.components[0].density(x), "k", linewidth=2, label="truth")
        for method, style in ((OURS, "C0--"), (PUBLISHED, "C1-."), (GMM, "C3:")):
            found, _ = matched(fits[method](), data, [x] * 3)
            ax.plot(x, found[0].density(x), style, label=method)
        ax.set(title=f"{design}, k = 2, m = 2000", xlabel="x")
        handles = dict(zip(*ax.get_legend_handles_labels()[::-1], strict=True))
        ax.legend(handles.values(), handles.keys())
    fig.tight_layout()
    fig.savefig(RESULTS / "mixtures_densities.png", dpi=110)
    plt.close(fig)


def report() -> None:
    """Bars on the screen; tables and figures in the results folder."""
    for what, bar, reached, met in bars():
        print(f"{what:85s} {bar:10s} {reached}  {met}")
    (RESULTS / "mixtures.md").write_text(markdown())
    figures()


def main() -> None:
    """Run parts, then report on all that is saved."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=PARTS, action="append")
    parser.add_argument("--draws", type=int)
    parser.add_argument("--m", type=int, nargs="+", help="only these sample sizes")
    parser.add_argument("--k", type=int, nargs="+", help="only these numbers of classes")
    parser.add_argument("--minutes", type=float, default=np.inf, help="stop after so many")
    parser.add_argument("--fresh", action="store_true", help="forget what is saved of these parts")
    parser.add_argument("--report", action="store_true", help="measure nothing")
    given = parser.parse_args()
    deadline = time.time() + 60 * given.minutes
    if not given.report:
        for part in given.part or PARTS:
            run(part, given.draws or DRAWS.get(part, 10), given.m, given.k, deadline, given.fresh)
    report()


if __name__ == "__main__":
    main()
