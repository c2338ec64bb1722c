"""The low-rank estimate against the kernel density estimate: Figure 1 of Song & Dai (2013), and its error in n and d.

    python benchmarks/accuracy/lowrank.py

Figure 1: draws of 100 rows from two spherical Gaussians, means ±(1.1, 1.1), standard deviation .55; bandwidths of both
estimates by leave-one-out or held-out likelihood, the integrated squared error on a grid. Then, for mixtures of two in
d columns, the distance of the rank-2 embedding from the population's, beside that of the empirical embedding: Theorem 3
bounds the ratio by ((1 + λ)/λ)^(d-2), which is printed beside what is seen. Then the sketched embedding beside the
exact one. ``--part`` runs one; what is done is saved part by part.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import logsumexp

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews.core.features.landmarks import LandmarkFeatures
from latentviews.core.kernels.real import Gaussian
from latentviews.joint.sketching import sketched_embedding
from latentviews.joint.tensor_trees import TreeEmbedding, exact_embedding, frobenius, leaf_features
from latentviews.joint.trees import caterpillar, read_tree

RESULTS = Path(__file__).with_name("results")
DRAWS, N_SAMPLES, MEAN, DEVIATION = 200, 100, 1.1, 0.55
WIDTHS = np.geomspace(0.1, 1.2, 16)


def draw(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Rows from two spherical Gaussians."""
    return rng.choice([-MEAN, MEAN], size=(n, 1)) + DEVIATION * rng.normal(size=(n, d))


def truth(x: np.ndarray) -> np.ndarray:
    """Their density."""
    return np.mean([stats.norm.pdf(x, m, DEVIATION).prod(axis=-1) for m in (-MEAN, MEAN)], axis=0)


def rank_two(rows: np.ndarray, width: float) -> TreeEmbedding:
    """The rank-2 embedding with one bandwidth."""
    features = [LandmarkFeatures(Gaussian(width), 60, selection="cholesky", tol=1e-12).fit(x[:, None]) for x in rows.T]
    return exact_embedding(rows, features, caterpillar(rows.shape[1]), 2)


def loo_width(rows: np.ndarray) -> float:
    """The bandwidth of the kernel density estimate with the highest leave-one-out likelihood."""
    squares = np.sum((rows[:, None] - rows[None]) ** 2, axis=2)
    np.fill_diagonal(squares, np.inf)
    d = rows.shape[1]
    return float(max(WIDTHS, key=lambda s: logsumexp(-0.5 * squares / s**2, axis=1).mean() - d * np.log(s)))


def held_out_width(rows: np.ndarray, n_folds: int = 10) -> float:
    """The bandwidth of the rank-2 estimate with the highest held-out likelihood, values below a floor raised to it."""
    fold = np.arange(len(rows)) % n_folds

    def score(width: float) -> float:
        total = 0.0
        for f in range(n_folds):
            values = rank_two(rows[fold != f], width).at(rows[fold == f])
            total += float(np.log(np.maximum(values, 1e-4)).sum())
        return total

    return float(max(WIDTHS, key=score))


def figure_1(n_draws: int) -> dict[str, Any]:
    """Integrated squared errors of both, draw by draw, and the picture of the first."""
    ticks = np.linspace(-4, 4, 81)
    grid = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    cell, exact = (ticks[1] - ticks[0]) ** 2, truth(grid)
    errors = []
    for seed in range(n_draws):
        rows = draw(N_SAMPLES, 2, np.random.default_rng(seed))
        width, low_width = loo_width(rows), held_out_width(rows)
        kde = np.prod([stats.norm.pdf(grid[:, [j]], rows[:, j], width) for j in range(2)], axis=0).mean(axis=1)
        low = rank_two(rows, low_width).at(grid)
        errors.append([cell * np.sum((kde - exact) ** 2), cell * np.sum((low - exact) ** 2)])
        if seed == 0:
            picture(ticks, {"truth": exact, "KDE": kde, "rank 2": low}, rows)
    kde_error, low_error = np.array(errors).T
    found = {
        "draws": n_draws,
        "share of draws with a smaller error": float(np.mean(low_error < kde_error)),
        "median ratio": float(np.median(low_error / kde_error)),
        "median error of KDE": float(np.median(kde_error)),
        "median error of rank 2": float(np.median(low_error)),
    }
    print(found)
    return found


def picture(ticks: np.ndarray, densities: dict[str, np.ndarray], rows: np.ndarray) -> None:
    """Contours of the truth and both estimates, as in the paper."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), sharex=True, sharey=True, layout="constrained")
    levels = np.linspace(0.01, densities["truth"].max(), 9)
    for ax, (name, values) in zip(axes, densities.items(), strict=True):
        ax.plot(*rows.T, ".", color="0.75", markersize=3)
        ax.contour(ticks, ticks, values.reshape(len(ticks), -1), levels=levels)
        ax.set(title=name, aspect="equal", xlim=(-3, 3), ylim=(-3, 3))
    RESULTS.mkdir(exist_ok=True)
    figure.savefig(RESULTS / "lowrank_figure1.png", dpi=110)
    plt.close(figure)


def population_terms(embedding: TreeEmbedding, rows: np.ndarray, width: float) -> tuple[float, float, float]:
    """‖C‖², ⟨C, C̃⟩ and ⟨C, C̄⟩ for the population's C: kernels against Gaussians are Gaussians."""
    wide = np.sqrt(width**2 + DEVIATION**2)
    centers = [np.array([[-MEAN]]), np.array([[MEAN]])]
    d = rows.shape[1]
    total = np.sqrt(width**2 + 2 * DEVIATION**2)
    squared = np.mean([stats.norm.pdf(a[0, 0] - b[0, 0], 0, total) ** d for a in centers for b in centers])
    cross, empirical = 0.0, 0.0
    for center in centers:
        vectors = {}
        for j, phi in enumerate(embedding.features):
            mean_kernel = stats.norm.pdf(phi.landmarks_[:, 0], center[0, 0], wide)  # E[k(z, x)]
            vectors[j] = (mean_kernel @ phi.tail_)[None, :]
        cross += 0.5 * float(embedding.apply(vectors)[0])
        empirical += 0.5 * float(stats.norm.pdf(rows, center[0, 0], wide).prod(axis=1).mean())
    return float(squared), cross, empirical


def embedding_errors(n: int, d: int, seed: int, width: float = 0.6) -> tuple[float, float, float]:
    """Distances of the rank-2 and of the empirical embedding from the population's, over its norm; and λ."""
    rows = draw(n, d, np.random.default_rng(seed))
    embedding = rank_two(rows, width)
    squared, cross, empirical = population_terms(embedding, rows, width)
    phi = leaf_features(embedding.features, range(d), rows)
    gram = phi[0] @ phi[0].T
    for one in phi[1:]:
        gram *= one @ one.T
    low = squared - 2 * cross + embedding.squared_norm()
    own = squared - 2 * empirical + float(gram.mean())
    smallest = min(np.sqrt(spectrum[1]) for spectrum in embedding.spectra.values())
    return float(np.sqrt(max(low, 0) / squared)), float(np.sqrt(max(own, 0) / squared)), float(smallest)


def errors_in_n_and_d(n_draws: int) -> list[dict[str, float]]:
    """A row a cell: medians over draws."""
    cells = [(n, 4) for n in (100, 200, 400, 800, 1600)] + [(400, d) for d in (2, 3, 6, 8, 12, 16)]
    table = []
    for n, d in cells:
        found = np.array([embedding_errors(n, d, seed) for seed in range(n_draws)])
        low, own, smallest = np.median(found, axis=0)
        factor = ((1 + smallest) / smallest) ** (d - 2)
        cell = {"n": n, "d": d, "rank 2": low, "empirical": own, "ratio": low / own, "theorem 3 factor": factor}
        table.append({key: float(value) for key, value in cell.items()})
        print({key: f"{value:.3g}" for key, value in table[-1].items()})
    return table


def sketch(n_draws: int) -> list[dict[str, float]]:
    """The error of the sketched embedding over that of the exact one, and the time of both."""
    table = []
    for name, tree in (("caterpillar", "caterpillar"), ("balanced", ((0, 1), (2, 3), ((4, 5), (6, 7))))):
        for rank in (2, 5, 8):
            ratios, seconds = [], []
            for seed in range(n_draws):
                rng = np.random.default_rng(seed)
                rows = 2 * rng.normal(size=(3, 8))[rng.integers(3, size=1500)] + rng.normal(size=(1500, 8))
                rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
                maps = [LandmarkFeatures(Gaussian(0.8), 30, selection="cholesky").fit(x[:, None]) for x in rows.T]
                start = time.perf_counter()
                exact = exact_embedding(rows, maps, read_tree(tree, 8), rank)
                middle = time.perf_counter()
                found = sketched_embedding(rows, maps, read_tree(tree, 8), rank, rng)
                seconds.append([middle - start, time.perf_counter() - middle])
                error, norm = frobenius(exact, rows)
                ratios.append([frobenius(found, rows)[0] / error, error / norm])
            (ratio, relative), (slow, fast) = np.max(ratios, axis=0), np.median(seconds, axis=0)
            table.append({"tree": name, "rank": rank, "largest ratio": ratio, "relative error": relative})
            table[-1] |= {"exact s": slow, "sketched s": fast}
            print(table[-1])
    return table


PARTS = {"figure 1": figure_1, "errors": errors_in_n_and_d, "sketch": sketch}


def table(done: dict[str, Any]) -> str:
    """What is saved, as Markdown."""
    lines = ["# The low-rank embedding", ""]
    if "figure 1" in done:
        lines += ["## Figure 1: rank 2 against a kernel density estimate", ""]
        lines += [f"- {key}: {value:.3g}" for key, value in done["figure 1"].items()] + [""]
    headings = {
        "errors": "Error of the embedding over the true one's norm, medians; Theorem 3's factor ((1 + ε)/ε)^(d - 2)",
        "sketch": "The sketched decomposition beside the exact one: error over error, and seconds",
    }
    for part, heading in headings.items():
        if part in done:
            columns = list(done[part][0])
            lines += [f"## {heading}", "", "| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
            lines += ["| " + " | ".join(_cell(row[key]) for key in columns) + " |" for row in done[part]] + [""]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:.3g}" if value < 100 or value >= 1e5 else f"{value:.0f}"


def main() -> None:
    """Run the parts asked for and save them beside those done before."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--part", nargs="+", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--draws", type=int, default=None)
    parser.add_argument("--report", action="store_true", help="nothing but the table, from what is saved")
    options = parser.parse_args()
    path = RESULTS / "lowrank.json"
    for part in () if options.report else options.part:
        done = json.loads(path.read_text())["results"] if path.exists() else {}
        done[part] = PARTS[part](options.draws or {"figure 1": DRAWS, "errors": 10, "sketch": 3}[part])
        _record.save(path, done)
    path.with_suffix(".md").write_text(table(json.loads(path.read_text())["results"]))


if __name__ == "__main__":
    main()
