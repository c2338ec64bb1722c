"""How many classes: by the rank of the views' dependence, and by held-out likelihood as a second opinion."""

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import KFold
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed

from latentviews._arrays import to_numpy
from latentviews._numbers import TINY
from latentviews._validation import UnsupportedError, check_count
from latentviews.core import streams
from latentviews.core.tables import check_varying, read_table
from latentviews.core.views import Views, feature_prototypes, fit_views

DIRECTIONS = 30  # leading feature directions of a view; dependence beyond them is below any noise
ROWS = 10_000  # rows that permutations are made of


class RankTest(NamedTuple):
    """The number of classes, and what it rests on: a spectrum and its null for every pair of views."""

    n_components: int
    spectra: dict[tuple[int, int], np.ndarray]  # singular values of the centred cross-covariance
    nulls: dict[tuple[int, int], np.ndarray]  # the largest singular value under permutation, sorted
    thresholds: dict[tuple[int, int], float]  # what a singular value must exceed to count

    @property
    def strongest(self) -> tuple[int, int]:
        """The pair of views that shows most classes, with most to spare."""
        return max(self.spectra, key=lambda pair: (self.count(pair), self.spectra[pair][0] / self.thresholds[pair]))

    def count(self, pair: tuple[int, int]) -> int:
        """Singular values of a pair above its threshold."""
        return int(np.sum(self.spectra[pair] > self.thresholds[pair]))


class _Reader(BaseEstimator):
    """Holds what `read_table` asks of an estimator."""

    def __init__(self, views: Any = None):
        self.views = views


def rank_test(
    X: Any,
    *,
    views: Sequence[Any] | None = None,
    kernel: Any = None,
    features: Any = None,
    level: float = 0.05,
    n_permutations: int = 99,
    random_state: Any = None,
) -> RankTest:
    """Count the directions in which views depend on each other: k classes give k - 1 of them, the rank of centred C_st.

    A singular value of a pair's centred cross-covariance counts if it exceeds the largest one of pairs whose rows are
    permuted, at a ``level`` that holds for all pairs together. The answer is one more than the highest count. Views
    that depend on each other *inside* classes add to it, so it is an upper guess where that is in doubt.

    Parameters
    ----------
    X : array or DataFrame of shape (n_samples, n_features), or list of 2-D arrays, one per view
    views, kernel, features, random_state
        As in `MultiViewMixture`.
    level : float, default=0.05
    n_permutations : int, default=99

    Examples
    --------
    >>> from latentviews.datasets import make_multiview
    >>> X, _, _ = make_multiview(2000, 3, random_state=0)
    >>> rank_test(X, random_state=0).n_components
    3
    """
    if not isinstance(level, float) or not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1; got {level!r}.")
    rng = np.random.default_rng(random_state)
    data, columns = read_table(_Reader(views), X, reset=True)
    rows = to_numpy(streams.sample(data, ROWS, rng)[0])
    check_varying(rows, columns)
    maps = feature_prototypes(kernel, features, None, columns)
    fitted = fit_views(rows, columns, maps, rng, list(range(len(columns))))
    return dependence_rank(rows, fitted, rng, level, n_permutations)


def dependence_rank(
    rows: np.ndarray,
    views: Views,
    rng: np.random.Generator,
    level: float = 0.05,
    n_permutations: int = 99,
    among: Iterable[tuple[int, int]] | None = None,
) -> RankTest:
    """`rank_test` for fitted feature maps, of all pairs of views or those ``among`` which there is a question.

    Every draw permutes all views at once, and the largest singular value of any pair, each in units of its own null,
    is what one value must exceed (Westfall & Young 1993): the level holds for all pairs together.
    """
    size = max(check_count("n_permutations", n_permutations), int(np.ceil(1 / level)) - 1)
    table = to_numpy(streams.sample(rows, ROWS, rng)[0])
    whole = views.present(table)
    pairs = {}
    for s, t in combinations(range(len(views.columns)), 2) if among is None else among:
        both = np.ones(len(table), dtype=bool) if whole is None else (whole[:, s] * whole[:, t]).astype(bool)
        if both.sum() > 1:
            pairs[s, t] = [_directions(views, u, table[both]) for u in (s, t)]
    if not pairs:
        raise UnsupportedError("No two views occur in the same rows, so nothing is known of how they go together.")
    null = np.empty((size, len(pairs)))
    for draw in null:
        draw[:] = [_singular_values(a[rng.permutation(len(a))], b)[0] for a, b in pairs.values()]
    center, spread = null.mean(axis=0), null.std(axis=0) + TINY
    highest = np.sort(((null - center) / spread).max(axis=1))
    limits = center + spread * highest[-max(int(level * (size + 1)), 1)]
    test = RankTest(
        1,
        {pair: _singular_values(a, b) for pair, (a, b) in pairs.items()},
        dict(zip(pairs, np.sort(null, axis=0).T, strict=True)),
        dict(zip(pairs, limits.tolist(), strict=True)),
    )
    return test._replace(n_components=1 + max(test.count(pair) for pair in pairs))


def _directions(views: Views, t: int, table: np.ndarray) -> np.ndarray:
    """The leading principal directions of a view's centred features, (n, at most 30)."""
    phi = to_numpy(views.features[t].transform(table[:, views.columns[t]]))
    phi = phi - phi.mean(axis=0)
    _, vectors = np.linalg.eigh(phi.T @ phi)
    return phi @ vectors[:, ::-1][:, :DIRECTIONS]


def _singular_values(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.linalg.svd(first.T @ second / len(first), compute_uv=False)


class LikelihoodCurve(NamedTuple):
    """Held-out log-likelihood for every number of classes tried."""

    n_components: int  # the smallest number that is not worse than the best by more than one standard error
    candidates: np.ndarray
    scores: np.ndarray  # (n_candidates, n_samples), the held-out log-likelihood of every row


def likelihood_curve(
    estimator: Any, X: Any, candidates: Sequence[int] = range(1, 9), *, cv: int = 5, n_jobs: int | None = None
) -> LikelihoodCurve:
    """A second opinion on the number of classes: cross-validated log-likelihood, and the one-standard-error rule.

    The standard error is that of the difference to the best number, row by row.

    Examples
    --------
    >>> from latentviews import MultiViewMixture
    >>> from latentviews.datasets import make_multiview
    >>> X, _, _ = make_multiview(600, 2, random_state=0)
    >>> likelihood_curve(MultiViewMixture(random_state=0), X, [1, 2, 3], cv=3).n_components
    2
    """
    if not isinstance(candidates, Iterable) or isinstance(candidates, str):
        raise TypeError(f"candidates must be numbers of classes, such as [2, 3, 4]; got {candidates!r}.")
    sizes = sorted(check_count("a number of classes in candidates", k) for k in candidates)
    if not sizes:
        raise ValueError("candidates must hold at least one number of classes; got none.")
    if isinstance(X, list | tuple) or not hasattr(X, "shape"):
        raise TypeError("likelihood_curve takes one table; stack the views and name their columns in `views`.")
    table = X
    folds = list(KFold(cv, shuffle=True, random_state=0).split(np.empty(len(table))))
    jobs = [
        delayed(_held_out)(clone(estimator).set_params(n_components=k), table, *fold) for k in sizes for fold in folds
    ]
    found = iter(Parallel(n_jobs)(jobs))
    scores = np.empty((len(sizes), len(table)))
    for row in scores:
        for _, held in folds:
            row[held] = next(found)
    losses = scores[scores.mean(axis=1).argmax()] - scores
    close = losses.mean(axis=1) <= losses.std(axis=1) / np.sqrt(len(table))
    return LikelihoodCurve(sizes[int(close.argmax())], np.array(sizes), scores)


def _held_out(estimator: Any, X: Any, fitted: np.ndarray, held: np.ndarray) -> np.ndarray:
    """The log-likelihood of the held-out rows."""
    return estimator.fit(_safe_indexing(X, fitted)).score_samples(_safe_indexing(X, held))
