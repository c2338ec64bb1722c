"""`KernelBeliefPropagation` beside Gaussian belief propagation: on a grid with loops, and on angles of proteins.

    python benchmarks/accuracy/propagation.py [--tuning]

The grid: 10 × 10 normal columns, a fifth of them known. Loopy Gaussian belief propagation on the covariances of the same
rows is what beliefs are judged by: how far means are from its means, in its standard deviations, and variances from its
variances. The angles: windows of five residues, φ and ψ of the first, third and fifth known; the mean log-likelihood of the
other angles in nats, beside that of the windows whose known angles are nearest and of a Gaussian on sines and cosines
with the same graph. Chains of proteins are learnt from, chosen on, or reported; ``--tuning`` prints what was chosen on.
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

sys.path[0] = str(Path(__file__).resolve().parents[1])  # in place of this folder, whose coverage.py hides a package

import _record
from latentviews import KernelBeliefPropagation, VonMises

RESULTS = Path(__file__).with_name("results") / "propagation.json"
DATA = Path(os.environ.get("LATENTVIEWS_DATA", "data")) / "torus" / "backbone_dihedrals_dssp.csv.gz"
SIDE, ROWS, ASKED, COUPLING = 10, 4000, 5, 0.24
SIZE = 5  # residues of a window
TREE = [(2 * i, 2 * i + 1) for i in range(SIZE)] + [(2 * i + 1, 2 * i + 3) for i in range(SIZE - 1)]  # φ–ψ, ψ–ψ
KNOWN = [0, 1, 4, 5, 8, 9]  # φ and ψ of every second residue
HIDDEN = [2, 3, 6, 7]
BANDWIDTHS, PENALTIES = (0.1, 0.2, 0.3, 0.5, 0.8), (1e-4, 1e-3, 1e-2)
NEAREST, WIDTHS = (10, 30, 100, 300), (0.1, 0.2, 0.3, 0.5)
ANGLES = np.linspace(-np.pi, np.pi, 360, endpoint=False)


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


def on_the_grid(seed: int) -> dict[str, float]:
    """How far the beliefs of one draw of rows are from Gaussian ones."""
    rng, edges, count = np.random.default_rng(seed), grid_edges(SIDE), SIDE**2
    coupled = np.eye(count)
    for s, t in edges:
        coupled[s, t] = coupled[t, s] = -COUPLING
    rows = rng.multivariate_normal(np.zeros(count), np.linalg.inv(coupled), size=ROWS + ASKED)
    x, asked = rows[:ROWS], rows[ROWS:].copy()
    hidden = np.sort(rng.permutation(count)[: count * 4 // 5])
    known = np.setdiff1d(np.arange(count), hidden)
    asked[:, hidden] = np.nan
    found = KernelBeliefPropagation(edges, n_landmarks=60, random_state=0).fit(x).beliefs(asked)
    precision, center = precision_of_pairs(np.cov(x.T), edges), x.mean(axis=0)
    inner, outer = precision[np.ix_(hidden, hidden)], precision[np.ix_(hidden, known)]
    exact = [loopy_gaussian(inner, -outer @ (row[known] - center[known])) for row in asked]
    means = np.array([mean + center[hidden] for mean, _ in exact])
    spread = np.array([variance for _, variance in exact])
    first = np.array([found.columns[c].mean()[:, 0] for c in hidden]).T
    second = np.array([found.columns[c].expectation(lambda values: values[:, 0] ** 2) for c in hidden]).T
    return {
        "means off, root mean square": float(np.sqrt(np.mean((first - means) ** 2 / spread))),
        "variances over Gaussian ones, mean": float(np.mean((second - first**2) / spread)),
        "variances off, root mean square": float(np.sqrt(np.mean(((second - first**2) / spread - 1) ** 2))),
        "rounds": found.n_iter,
    }


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


def propagated(train: np.ndarray, ahead: np.ndarray, bandwidth: float, penalty: float) -> np.ndarray:
    """Log densities of the hidden angles by kernel belief propagation, (m, 4)."""
    asked = ahead.copy()
    asked[:, HIDDEN] = np.nan
    model = KernelBeliefPropagation(
        TREE, kernel=VonMises(bandwidth), penalty=penalty, n_landmarks=100, random_state=0
    ).fit(train)
    beliefs = model.beliefs(asked)
    return np.column_stack([beliefs.columns[c].log_density(ahead[:, c]) for c in HIDDEN])


def on_circles(angles: np.ndarray) -> np.ndarray:
    """Cosines and sines of every column, side by side."""
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1).reshape(*angles.shape[:-1], -1)


def neighbours(train: np.ndarray, ahead: np.ndarray, count: int, width: float) -> np.ndarray:
    """Log densities by the windows whose known angles are nearest."""
    far = ((on_circles(ahead[:, KNOWN])[:, None] - on_circles(train[:, KNOWN])[None]) ** 2).sum(axis=-1)
    near = np.argsort(far, axis=1)[:, :count]
    found = np.empty((len(ahead), len(HIDDEN)))
    for place, column in enumerate(HIDDEN):
        for row, rows in enumerate(near):
            kernel = VonMises(width).gram(ahead[[row]][:, [column]], train[rows][:, [column]])
            found[row, place] = (kernel.mean() * count + 1 / (2 * np.pi)) / (count + 1)
    return np.log(found)


def gaussian(train: np.ndarray, ahead: np.ndarray) -> np.ndarray:
    """Log densities by Gaussian belief propagation on cosines and sines: exact on the tree, cut to the circle."""
    circles = on_circles(train)
    center = circles.mean(axis=0)
    precision = precision_of_pairs(np.cov(circles.T), TREE, width=2)
    hidden, known = (np.concatenate([[2 * c, 2 * c + 1] for c in cols]) for cols in (HIDDEN, KNOWN))
    covariance = np.linalg.inv(precision[np.ix_(hidden, hidden)])
    pull = (on_circles(ahead[:, KNOWN]) - center[known]) @ precision[np.ix_(hidden, known)].T
    means = center[hidden] - pull @ covariance
    found = np.empty((len(ahead), len(HIDDEN)))
    for place, column in enumerate(HIDDEN):
        block = slice(2 * place, 2 * place + 2)
        inverse = np.linalg.inv(covariance[block, block])

        def log_weight(points: np.ndarray, block: Any = block, inverse: Any = inverse) -> np.ndarray:
            away = points - means[:, block]
            return -0.5 * np.einsum("...i,ij,...j->...", away, inverse, away)

        every = np.array([log_weight(on_circles(np.full((1, 1), angle))) for angle in ANGLES])
        total = np.log(np.exp(every - every.max(axis=0)).mean(axis=0) * 2 * np.pi) + every.max(axis=0)
        found[:, place] = log_weight(on_circles(ahead[:, [column]])) - total
    return found


def on_angles(tuning: bool) -> dict[str, Any]:
    """Mean log-likelihoods of hidden angles, of proteins that nothing was chosen on."""
    dense, sparse = windows(1), windows(SIZE)
    train = np.concatenate([rows for number, rows in dense.items() if number % 5 < 3])
    chosen_on = np.concatenate([rows for number, rows in sparse.items() if number % 5 == 3])
    ahead = np.concatenate([rows for number, rows in sparse.items() if number % 5 == 4])
    ours = {(b, p): propagated(train, chosen_on, b, p).mean() for b in BANDWIDTHS for p in PENALTIES}
    near = {(k, w): neighbours(train, chosen_on, k, w).mean() for k in NEAREST for w in WIDTHS}
    best, nearest = (max(scores, key=lambda pair: scores[pair]) for scores in (ours, near))
    if tuning:
        print({pair: round(value, 3) for pair, value in (ours | near).items()}, gaussian(train, chosen_on).mean())
    found = {
        "KernelBeliefPropagation": propagated(train, ahead, *best),
        "nearest windows": neighbours(train, ahead, *nearest),
        "Gaussian on sines and cosines": gaussian(train, ahead),
    }
    uniform = -float(np.log(2 * np.pi))
    return {
        "windows to learn from": len(train),
        "windows reported": len(ahead),
        "bandwidth and penalty": best,
        "neighbours and bandwidth": nearest,
        "log-likelihood": {name: round(float(v.mean()), 3) for name, v in found.items()} | {"uniform": uniform},
    }


def main() -> None:
    """Measure, print and save."""
    warnings.simplefilter("ignore")
    if "--tuning" in sys.argv:
        print(on_the_grid(0), on_angles(tuning=True))
        return
    draws = [on_the_grid(_record.FIRST_DRAW + draw) for draw in range(3)]
    grid = {name: round(float(np.mean([draw[name] for draw in draws])), 4) for name in draws[0]}
    print(grid, flush=True)
    angles = on_angles(tuning=False)
    print(angles)
    _record.save(RESULTS, {"grid": grid, "angles": angles})


if __name__ == "__main__":
    main()
