"""Messages between views as small matrices: sums over rows, and the kernel and penalty that held-out rows choose."""

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from latentviews._numbers import ridge_solve
from latentviews.comparison.features import fitted_map
from latentviews.core.kernels.base import Kernel, UnitHeight

SCALES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # bandwidths of messages to try, in median distances
PENALTIES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
USUAL = 2, 3  # their places where rows are too few to choose by
FOLDS, PILOT, EDGES, FEATURES = 3, 8000, 6, 100  # the choice is made on at most so many rows, edges and features
BATCH = 4096  # rows whose features are held at a time
POINTS = 1000  # the most values of a view at which a message is held
FIT = 1e-8  # the penalty of functions that are known at those points: they have no noise to shrink


class EdgeSums(NamedTuple):
    """Means over rows of features, and of their products inside views and along edges."""

    means: list[np.ndarray]  # per view, (D,)
    squares: list[np.ndarray]  # per view, (D, D)
    crosses: list[np.ndarray]  # per edge (s, t), (D_s, D_t)


def edge_sums(maps: Sequence[Any], rows: Sequence[np.ndarray], edges: Sequence[tuple[int, int]]) -> EdgeSums:
    """The means of some rows of every view, batch by batch."""
    n_rows, found = len(rows[0]), None
    for start in range(0, n_rows, BATCH):
        phi = [features.transform(view[start : start + BATCH]) for features, view in zip(maps, rows, strict=True)]
        parts = [one.sum(axis=0) for one in phi], [one.T @ one for one in phi], [phi[s].T @ phi[t] for s, t in edges]
        found = [*parts] if found is None else [*map(_added, found, parts)]
    assert found is not None
    return EdgeSums(*([total / n_rows for total in totals] for totals in found))


def _added(totals: list[np.ndarray], parts: list[np.ndarray]) -> list[np.ndarray]:
    return [total + part for total, part in zip(totals, parts, strict=True)]


def message_operators(sums: EdgeSums, edges: Sequence[tuple[int, int]], penalty: float) -> list[np.ndarray]:
    """(C_ss + λI)⁻¹ (C_st − μ_s μ_tᵀ) for every edge (t, s), then for every edge turned round."""
    forth, back = [], []
    for (t, s), cross in zip(edges, sums.crosses, strict=True):
        together = cross - np.outer(sums.means[t], sums.means[s])
        forth.append(ridge_solve(sums.squares[s], together.T, penalty))
        back.append(ridge_solve(sums.squares[t], together, penalty))
    return forth + back


def message_points(rows: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Values of a view and their shares: all that differ, or as many rows as there may be points."""
    points, counts = np.unique(rows, axis=0, return_counts=True)
    if len(points) <= POINTS:
        return points, counts / len(rows)
    return rows[rng.permutation(len(rows))[:POINTS]], np.full(POINTS, 1 / POINTS)


def chosen_messages(
    candidates: Sequence[Sequence[Kernel]],
    penalties: Sequence[float],
    rows: Sequence[np.ndarray],
    edges: Sequence[tuple[int, int]],
    n_landmarks: int,
    rng: np.random.Generator,
) -> tuple[int, float]:
    """Which candidates, lists with a kernel per view, and which penalty tell most of held-out rows along edges.

    The ratio r(x_s, x_t) = p(x_s, x_t) / (p(x_s) p(x_t)) is the message from x_t. The smallest ½ E_s E_t r² − E_st r
    over held-out rows is the least squared error of messages (Kanamori, Hido & Sugiyama 2009).
    """
    if len(candidates) * len(penalties) == 1:
        return 0, penalties[0]
    if not edges or len(rows[0]) < 10 * FOLDS:
        return min(USUAL[0], len(candidates) - 1), penalties[min(USUAL[1], len(penalties) - 1)]
    tried = [edges[place] for place in np.sort(rng.permutation(len(edges))[:EDGES])]
    some, seed = rng.permutation(len(rows[0]))[:PILOT], int(rng.integers(2**31))
    scores = np.zeros((len(candidates), len(penalties)))
    for (place, kernels), (s, t) in product(enumerate(candidates), tried):
        pair, fresh = (rows[s][some], rows[t][some]), np.random.default_rng(seed)
        maps = [
            fitted_map(UnitHeight(kernels[v]), x, min(n_landmarks, FEATURES), fresh)
            for v, x in zip((s, t), pair, strict=True)
        ]
        parts = [edge_sums(maps, [x[fold::FOLDS] for x in pair], [(0, 1)]) for fold in range(FOLDS)]
        for fold, held in enumerate(parts):
            scores[place] += _held_out_errors(_mean_of([*parts[:fold], *parts[fold + 1 :]]), held, penalties)
    best = np.unravel_index(np.argmin(scores), scores.shape)
    return int(best[0]), penalties[int(best[1])]


def _mean_of(parts: Sequence[EdgeSums]) -> EdgeSums:
    """The means of folds of one size together."""
    return EdgeSums(
        *([np.mean(same, axis=0) for same in zip(*several, strict=True)] for several in zip(*parts, strict=True))
    )


def _held_out_errors(fitted: EdgeSums, held: EdgeSums, penalties: Sequence[float]) -> np.ndarray:
    """½ E_s E_t r² − E_st r of one edge on held-out means, for every penalty.

    r = 1 + φ_sᵀ M φ_t with M = (C_ss + λI)⁻¹ (C_st − μ_s μ_tᵀ) (C_tt + λI)⁻¹, in eigenvectors of both C.
    """
    (first, left), (second, right) = (np.linalg.eigh(square) for square in fitted.squares)
    together = left.T @ (fitted.crosses[0] - np.outer(*fitted.means)) @ right
    squares = left.T @ held.squares[0] @ left, right.T @ held.squares[1] @ right
    apart, joint = np.outer(left.T @ held.means[0], right.T @ held.means[1]), left.T @ held.crosses[0] @ right
    errors = []
    for penalty in penalties:
        scales = (np.maximum(values, 0.0) + max(penalty, 1e-12) for values in (first, second))
        matrix = together / np.outer(*scales)
        square = 1 + 2 * np.sum(matrix * apart) + np.sum((matrix.T @ squares[0] @ matrix) * squares[1])
        errors.append(square / 2 - 1 - np.sum(matrix * joint))
    return np.array(errors)
