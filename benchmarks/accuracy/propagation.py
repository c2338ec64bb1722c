"""`KernelBeliefPropagation` beside Gaussian belief propagation: on a grid with loops, and on angles of proteins.

    python benchmarks/accuracy/propagation.py [--tuning]

The grid: 10 × 10 normal columns, a fifth of them known. Loopy Gaussian belief propagation on the covariances of the
same rows is what beliefs are judged by: how far means are from its means, in its standard deviations, and variances
from its variances. Where neighbours are coupled by .24, the true pairs and margins make no distribution together (the
precision of Π p_s Π p_st / (p_s p_t) has an eigenvalue below zero): Gaussian messages settle thanks to what is known
alone, at means several standard deviations from every row, where rows cannot tell what a message is.

The angles: windows of five residues, φ and ψ of the first, third and fifth known; the mean log-likelihood of the other
pairs in nats per angle, beside that of the windows whose known angles are nearest and of Gaussian belief propagation on
sines and cosines along the same chain. Chains of proteins are learnt from, chosen on, or reported; ``--tuning`` prints
what was chosen on.
"""

import csv
import gzip
import itertools
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import logsumexp

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews import KernelBeliefPropagation, VonMises
from latentviews.comparison.conditional import ConditionalDistributions

RESULTS = Path(__file__).with_name("results") / "propagation.json"
DATA = Path(os.environ.get("LATENTVIEWS_DATA", "data")) / "torus" / "backbone_dihedrals_dssp.csv.gz"
SIDE, ASKED = 10, 5
GRIDS = ((0.2, 4000), (0.2, 20_000), (0.22, 4000), (0.22, 20_000), (0.24, 4000), (0.24, 20_000))  # coupling, rows
SIZE = 5  # residues of a window, each a view of two columns
VIEWS = [[2 * residue, 2 * residue + 1] for residue in range(SIZE)]
CHAIN = [(residue, residue + 1) for residue in range(SIZE - 1)]
HIDDEN = (1, 3)
KNOWN = [0, 1, 4, 5, 8, 9]  # φ and ψ of the other residues
BANDWIDTHS, PENALTIES = (0.3, 0.5, 0.8), (1e-3, 1e-2)
NEAREST, WIDTHS = (10, 30, 100, 300), (0.1, 0.15, 0.2, 0.3)
CELLS = 90  # of an angle, where a Gaussian is cut to the circles


def grid_edges(side: int) -> list[tuple[int, int]]:
    """Neighbours on a grid."""
    across = [(i * side + j, i * side + j + 1) for i in range(side) for j in range(side - 1)]
    return across + [(i * side + j, (i + 1) * side + j) for i in range(side - 1) for j in range(side)]


def precision_of_pairs(covariance: np.ndarray, edges: list[tuple[int, int]], width: int = 1) -> np.ndarray:
    """The precision of Π p_s Π p_st / (p_s p_t), with margins and pairs of a covariance, in blocks of ``width``."""
    blocks = [np.arange(start, start + width) for start in range(0, len(covariance), width)]
    found = np.zeros_like(covariance)
    for block in blocks:
        found[np.ix_(block, block)] += np.linalg.inv(covariance[np.ix_(block, block)])
    for s, t in edges:
        pair = np.concatenate([blocks[s], blocks[t]])
        found[np.ix_(pair, pair)] += np.linalg.inv(covariance[np.ix_(pair, pair)])
        for block in (blocks[s], blocks[t]):
            found[np.ix_(block, block)] -= np.linalg.inv(covariance[np.ix_(block, block)])
    return found


def loopy_gaussian(precision: np.ndarray, potential: np.ndarray, damping: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances that Gaussian messages between scalars settle at."""
    off = precision - np.diag(np.diag(precision))
    widths, heights = np.zeros_like(off), np.zeros_like(off)
    for _ in range(2000):
        left = np.diag(precision)[:, None] + widths.sum(axis=0)[:, None] - widths.T
        pull = potential[:, None] + heights.sum(axis=0)[:, None] - heights.T
        new = -(off**2) / left, -off * pull / left
        moved = max(np.abs(new[0] - widths).max(), np.abs(new[1] - heights).max())
        widths, heights = ((1 - damping) * a + damping * b for a, b in zip(new, (widths, heights), strict=True))
        if moved < 1e-10:
            total = np.diag(precision) + widths.sum(axis=0)
            return (potential + heights.sum(axis=0)) / total, 1 / total
    raise RuntimeError("Gaussian messages did not settle.")


def coupled_normals(coupling: float) -> np.ndarray:
    """The covariance of columns on a grid, with a precision of ones and of −coupling between neighbours."""
    precision = np.eye(SIDE**2)
    for s, t in grid_edges(SIDE):
        precision[s, t] = precision[t, s] = -coupling
    return np.linalg.inv(precision)


def on_the_grid(coupling: float, size: int, seed: int) -> dict[str, float]:
    """How far the beliefs of one draw of rows are from Gaussian ones."""
    rng, edges, count, covariance = np.random.default_rng(seed), grid_edges(SIDE), SIDE**2, coupled_normals(coupling)
    rows = rng.normal(size=(size + ASKED, count)) @ np.linalg.cholesky(covariance).T
    x, asked = rows[:size], rows[size:].copy()
    hidden = np.sort(rng.permutation(count)[: count * 4 // 5])
    known = np.setdiff1d(np.arange(count), hidden)
    asked[:, hidden] = np.nan
    found = KernelBeliefPropagation(edges, n_landmarks=40, tol=1e-4, random_state=0).fit(x).beliefs(asked)
    means, spread = gaussian_beliefs(x, asked, hidden, known)
    first = np.array([found.views[c].mean()[:, 0] for c in hidden]).T
    second = np.array([found.views[c].expectation(lambda values: values[:, 0] ** 2) for c in hidden]).T
    return {
        "coupling": coupling,
        "rows": size,
        "least eigenvalue of the pairs": float(np.linalg.eigvalsh(precision_of_pairs(covariance, edges))[0]),
        "means off, root mean square": float(np.sqrt(np.mean((first - means) ** 2 / spread))),
        "variances over Gaussian ones, mean": float(np.mean((second - first**2) / spread)),
        "variances off, root mean square": float(np.sqrt(np.mean(((second - first**2) / spread - 1) ** 2))),
        "rounds": found.n_iter,
    }


def gaussian_beliefs(x: np.ndarray, asked: np.ndarray, hidden: np.ndarray, known: np.ndarray) -> Any:
    """Means and variances of hidden columns by loopy Gaussian belief propagation on the covariances of the rows."""
    precision, center = precision_of_pairs(np.cov(x.T), grid_edges(SIDE)), x.mean(axis=0)
    inner, outer = precision[np.ix_(hidden, hidden)], precision[np.ix_(hidden, known)]
    found = [loopy_gaussian(inner, -outer @ (row[known] - center[known])) for row in asked]
    return np.array([mean + center[hidden] for mean, _ in found]), np.array([variance for _, variance in found])


def windows(step: int) -> dict[int, np.ndarray]:
    """Windows of angles (n, 2 SIZE) in radians, by the number of their protein."""
    with gzip.open(DATA, "rt") as lines:
        table = list(csv.DictReader(lines))
    names = sorted({row["pdb"] for row in table})
    found: dict[int, list[list[float]]] = {number: [] for number in range(len(names))}
    for _, rows in itertools.groupby(table, key=lambda row: (row["pdb"], row["chain"], row["segment"])):
        part = list(rows)
        angles = [[np.radians(float(row["phi_deg"])), np.radians(float(row["psi_deg"]))] for row in part]
        for start in range(0, len(part) - SIZE + 1, step):
            found[names.index(part[0]["pdb"])].append(list(itertools.chain(*angles[start : start + SIZE])))
    return {number: np.array(rows).reshape(-1, 2 * SIZE) for number, rows in found.items()}


def propagated(
    train: np.ndarray, ahead: np.ndarray, bandwidth: float, penalty: float, widths: Any
) -> dict[float, np.ndarray]:
    """Log densities of the hidden residues by kernel belief propagation, (m, 2) for every width of densities."""
    asked = ahead.copy()
    for residue in HIDDEN:
        asked[:, VIEWS[residue]] = np.nan
    model = KernelBeliefPropagation(
        CHAIN, views=VIEWS, kernel=VonMises(bandwidth), penalty=penalty, n_landmarks=200, random_state=0
    ).fit(train)
    beliefs = [model.beliefs(asked).views[residue] for residue in HIDDEN]
    return {width: density(train, ahead, [belief.weights for belief in beliefs], width) for width in widths}


def density(train: np.ndarray, ahead: np.ndarray, weights: list[np.ndarray], width: float) -> np.ndarray:
    """Log densities under weighted windows (n, m), smoothed, with one row in n + 1 of the uniform density."""
    found = []
    for residue, shares in zip(HIDDEN, weights, strict=True):
        rows = ConditionalDistributions(train[:, VIEWS[residue]], shares, VonMises(width))
        found.append(rows.log_density(ahead[:, VIEWS[residue]]))
    return np.column_stack(found)


def on_circles(angles: np.ndarray) -> np.ndarray:
    """Cosines and sines of every column, side by side."""
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1).reshape(*angles.shape[:-1], -1)


def neighbours(train: np.ndarray, ahead: np.ndarray, count: int, width: float) -> np.ndarray:
    """Log densities by the windows whose known angles are nearest."""
    there = on_circles(train[:, KNOWN])
    weights = np.zeros((len(train), len(ahead)))
    for row, point in enumerate(on_circles(ahead[:, KNOWN])):
        weights[np.argsort(((there - point) ** 2).sum(axis=1))[:count], row] = 1 / count
    return density(train, ahead, [weights] * len(HIDDEN), width)


def gaussian(train: np.ndarray, ahead: np.ndarray) -> np.ndarray:
    """Log densities by Gaussian belief propagation on cosines and sines: exact on the chain, cut to the circles."""
    circles = on_circles(train)
    center = circles.mean(axis=0)
    precision = precision_of_pairs(np.cov(circles.T), CHAIN, width=4)
    hidden = np.concatenate([np.arange(4 * residue, 4 * residue + 4) for residue in HIDDEN])
    known = np.setdiff1d(np.arange(4 * SIZE), hidden)
    covariance = np.linalg.inv(precision[np.ix_(hidden, hidden)])
    pull = (on_circles(ahead)[:, known] - center[known]) @ precision[np.ix_(hidden, known)].T
    means = center[hidden] - pull @ covariance
    axis = np.linspace(-np.pi, np.pi, CELLS, endpoint=False)
    cells = on_circles(np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2))
    found = []
    for place, residue in enumerate(HIDDEN):
        block = slice(4 * place, 4 * place + 4)
        law = stats.multivariate_normal(np.zeros(4), covariance[block, block])
        total = [logsumexp(law.logpdf(cells - mean)) + 2 * np.log(2 * np.pi / CELLS) for mean in means[:, block]]
        found.append(law.logpdf(on_circles(ahead[:, VIEWS[residue]]) - means[:, block]) - total)
    return np.column_stack(found)


def on_angles(tuning: bool) -> dict[str, Any]:
    """Mean log-likelihoods of hidden angles, of proteins that nothing was chosen on."""
    dense, sparse = windows(1), windows(SIZE)
    train = np.concatenate([rows for number, rows in dense.items() if number % 5 < 3])
    chosen_on = np.concatenate([rows for number, rows in sparse.items() if number % 5 == 3])
    ahead = np.concatenate([rows for number, rows in sparse.items() if number % 5 == 4])
    ours = {
        (bandwidth, penalty, width): float(values.mean()) / 2
        for bandwidth, penalty in itertools.product(BANDWIDTHS, PENALTIES)
        for width, values in propagated(train, chosen_on, bandwidth, penalty, WIDTHS).items()
    }
    near = {
        (count, width): float(neighbours(train, chosen_on, count, width).mean()) / 2
        for count, width in itertools.product(NEAREST, WIDTHS)
    }
    best, nearest = (max(scores, key=lambda one: scores[one]) for scores in (ours, near))
    if tuning:
        print(ours, near, float(gaussian(train, chosen_on).mean()) / 2)
    found = {
        "KernelBeliefPropagation": propagated(train, ahead, *best[:2], best[2:])[best[2]],
        "nearest windows": neighbours(train, ahead, *nearest),
        "Gaussian on sines and cosines": gaussian(train, ahead),
    }
    uniform = round(-float(np.log(2 * np.pi)), 3)
    return {
        "windows to learn from": len(train),
        "windows reported": len(ahead),
        "bandwidth, penalty and width of densities": best,
        "neighbours and width of densities": nearest,
        "nats per angle": {name: round(float(v.mean()) / 2, 3) for name, v in found.items()} | {"uniform": uniform},
    }


def main() -> None:
    """Measure, print and save."""
    warnings.simplefilter("ignore")
    if "--tuning" in sys.argv:
        print(on_the_grid(*GRIDS[0], seed=0), on_angles(tuning=True))
        return
    grids = []
    for coupling, size in GRIDS:
        grids.append({k: round(v, 4) for k, v in on_the_grid(coupling, size, _record.FIRST_DRAW).items()})
        print(grids[-1], flush=True)
    angles = on_angles(tuning=False)
    print(angles)
    _record.save(RESULTS, {"grids": grids, "angles": angles})


if __name__ == "__main__":
    main()
