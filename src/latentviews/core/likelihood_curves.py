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
    estimator : estimator with ``n_components`` and ``score_samples``, such as MultiViewMixture or LatentClass
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
    _check_estimator(estimator)
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
    _refuse_impossible(sizes, scores)
    losses = scores[scores.mean(axis=1).argmax()] - scores
    close = losses.mean(axis=1) <= losses.std(axis=1) / np.sqrt(len(table))
    return LikelihoodCurve(sizes[int(close.argmax())], np.array(sizes), scores)


def _check_estimator(estimator: Any) -> None:
    """Refuse what has no number of classes, or no likelihood of rows."""
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        raise TypeError(f"estimator must be a model, such as MultiViewMixture(); got {estimator!r}.")
    counts = "n_components" in estimator.get_params(deep=False)
    if not counts or not hasattr(estimator, "score_samples"):
        lacking = "score_samples" if counts else "n_components"
        raise TypeError(
            "likelihood_curve takes models with a parameter `n_components` and a method `score_samples`, such as "
            f"MultiViewMixture or LatentClass; {type(estimator).__name__} has no `{lacking}`."
        )


def _refuse_impossible(sizes: Sequence[int], scores: np.ndarray) -> None:
    """Refuse rows that fits to the others give no chance at all, since nothing compares minus infinity."""
    impossible = np.isneginf(scores)
    if not impossible.any():
        return
    always = impossible.all(axis=0)
    row = int(np.flatnonzero(always if always.any() else impossible.any(axis=0))[0])
    if always.any():
        raise ValueError(
            f"Row {row} has likelihood zero for every number of classes: it holds an answer that is never given in the "
            "other folds. Put such rare answers together with others, or leave their rows out."
        )
    k = sizes[int(impossible[:, row].argmax())]
    raise ValueError(
        f"Row {row} has likelihood zero under {k} classes: in the other folds none of them gives all of its answers. "
        "Pass `smoothing` to LatentClass, such as .01, or fewer candidates."
    )


def _held_out(estimator: Any, X: Any, fitted: np.ndarray, held: np.ndarray) -> np.ndarray:
    """The log-likelihood of the held-out rows."""
    return estimator.fit(_safe_indexing(X, fitted)).score_samples(_safe_indexing(X, held))
