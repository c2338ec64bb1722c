"""Independence of every pair of many views, tested at once."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from latentviews.comparison.features import LANDMARKS, block_sums, some_rows
from latentviews.comparison.results import Draws, TestResult
from latentviews.core.features.base import check_inside, raw_vectors
from latentviews.core.features.landmarks import LandmarkFeatures
from latentviews.core.kernels.base import Kernel

SOME = 200  # rows that landmarks come from: more would find the same directions
REST = 1e-3  # the share of the features' variance that is left out


def leading_features(rows: np.ndarray, kernel: Kernel, rng: np.random.Generator) -> np.ndarray:
    """Centred features of the rows in the directions that hold all but a thousandth of their variance.

    The direction of the largest variance comes first.
    """
    some = some_rows(rows, rng)
    maps = LandmarkFeatures(kernel.adapt(some), LANDMARKS, selection="cholesky", tol=REST / 100)
    maps.fit(some[:SOME])
    check_inside(maps.kernel_, rows)
    phi = raw_vectors(maps, rows) @ maps.tail_
    phi = phi - phi.mean(axis=0)
    variances, directions = np.linalg.eigh(phi.T @ phi)
    left = np.cumsum(variances)  # what is lost with a direction and all smaller ones
    return phi @ directions[:, left > REST * left[-1]][:, ::-1]


def pairwise_tests(
    features: Sequence[np.ndarray], n_permutations: int, rng: np.random.Generator
) -> dict[tuple[int, int], TestResult]:
    """HSIC's test, with one kernel per view, for every pair of views with the same rows, from their centred features.

    A draw permutes every view on its own and serves all pairs: one product of matrices instead of one per pair, and
    draws that are those of all pairs together where all views are independent.
    """
    n = len(features[0])

    def statistics(views: Sequence[np.ndarray]) -> np.ndarray:
        side_by_side = np.hstack(views)
        return block_sums((side_by_side.T @ side_by_side / n) ** 2, features, features)

    def shuffled(phi: np.ndarray) -> np.ndarray:
        return np.take(phi, rng.permutation(n), axis=0)

    found, null = statistics(features), np.empty((n_permutations, len(features), len(features)))
    for draw in null:
        draw[:] = statistics([features[0], *map(shuffled, features[1:])])
    results = {}
    for s, t in combinations(range(len(features)), 2):
        draws = Draws(float(found[s, t]), null[:, s, t], float(np.sqrt(found[s, s] * found[t, t])))
        results[s, t] = TestResult(draws.statistic, draws.pvalue(rng), draws.null, draws.ceiling, n)
    return results
