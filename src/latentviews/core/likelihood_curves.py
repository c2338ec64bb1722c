"""A second opinion on how many classes there are: held-out likelihood."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed

from latentviews._numbers import brief
from latentviews._validation import check_count


class LikelihoodCurve(NamedTuple):
    """Held-out log-likelihood for every number of classes tried."""

    def __repr__(self) -> str:
        return brief(self)

    n_components: int  # the smallest number that is not worse than the best by more than one standard error
    candidates: np.ndarray
    scores: np.ndarray  # (n_candidates, n_samples), the held-out log-likelihood of every row


def likelihood_curve(
    estimator: Any, X: Any, candidates: Sequence[int] = range(1, 9), *, cv: int = 5, n_jobs: int | None = None
) -> LikelihoodCurve:
    r"""A second opinion on the number of classes: cross-validated log-likelihood, and the one-standard-error rule.

    .. math:: \ell(k) = \frac1n \sum_i \log \hat p_k^{-i}(x_i)

    where the fold of row i is left out of the fit (Smyth 2000). The standard error is that of the difference to the
    best number, row by row.

    Parameters
    ----------
    estimator : fitted estimator
    X : array or DataFrame of shape (n_samples, n_features)
    candidates : sequence of ints
        Numbers of classes.
    cv : int or splitter
        Folds.
    n_jobs : int or None
        Threads.

    Returns
    -------
    LikelihoodCurve

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
    table, n_rows = X, X.shape[0]
    if n_rows < check_count("cv", cv, 2):
        raise ValueError(f"cv={cv} folds need at least as many rows; got n_samples = {n_rows}.")
    folds = list(KFold(cv, shuffle=True, random_state=0).split(np.empty(n_rows)))
    jobs = [
        delayed(_held_out)(clone(estimator).set_params(n_components=k), table, *fold) for k in sizes for fold in folds
    ]
    found = iter(Parallel(n_jobs)(jobs))
    scores = np.empty((len(sizes), n_rows))
    for row in scores:
        for _, held in folds:
            row[held] = next(found)
    losses = scores[scores.mean(axis=1).argmax()] - scores
    close = losses.mean(axis=1) <= losses.std(axis=1) / np.sqrt(len(table))
    return LikelihoodCurve(sizes[int(close.argmax())], np.array(sizes), scores)


def _held_out(estimator: Any, X: Any, fitted: np.ndarray, held: np.ndarray) -> np.ndarray:
    """The log-likelihood of the held-out rows."""
    return estimator.fit(_safe_indexing(X, fitted)).score_samples(_safe_indexing(X, held))
