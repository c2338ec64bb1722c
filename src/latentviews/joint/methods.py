"""Ways to a joint density: stacked mixtures that are densities by construction."""

import contextlib
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from latentviews._clusters import CLUSTER_ROWS, kmeans_posteriors
from latentviews._parameters import (
    Constraint,
    Count,
    Nonnegative,
    Several,
    check_parameters,
)
from latentviews._validation import UnsupportedError
from latentviews.core.features.landmarks import LandmarkFeatures
from latentviews.core.kernels.real import Gaussian
from latentviews.core.moments import Projection
from latentviews.core.spectral import spectral_fit
from latentviews.core.tensors import JointDiagonalization
from latentviews.core.views import Views, fit_views
from latentviews.densities.stacking import stacking_shares
from latentviews.joint.problem import JointEstimate, JointProblem
from latentviews.joint.stacks import MixtureKind, Rows, best_start, fit_stack, held_out, pruned

START_LANDMARKS = 64
NARROW = 1e-3  # standard deviations of a table that components may be narrow to, for values that many rows share


class Stack(BaseEstimator):
    r"""A convex combination of mixtures, weighted by the likelihood of rows that they were not fitted to; the default.

    For every rank there are mixtures of products of tables or of normal laws, of tables joined by Gaussian copulas, and
    Gaussian mixtures: with covariances as they are, with correlations drawn towards zero, or with covariances drawn
    towards the shape of the whole table, as if it had been whitened first. They start from a guess of the classes, the
    best of a spectral one (Song, Anandkumar, Dai & Xie 2014, on three groups of columns) and k-means, or from k-means
    of the whitened rows.

    .. math:: p(x) = \sum_m \alpha_m\, p_m(x), \qquad
              \alpha = \arg\max_{\alpha \ge 0,\; \sum_m \alpha_m = 1} \sum_i \log \sum_m \alpha_m\, p_m^{-i}(x_i)

    where p_m^{-i} is the mixture m without the fold of row i (stacking, Smyth & Wolpert 1999).

    Parameters
    ----------
    ranks : tuple of int, default=(1, 2, 4, 8, 16)
        Where the rank is "auto".
    n_folds : int, default=5
    trial_rows : int, default=2000
        Rows on which the combination is chosen.
    max_iter : int, default=60
    tol : float, default=1e-2
        EM stops when a step gains less log-likelihood per row.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import LowRankDensity, Stack
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3)) + 4.0 * rng.integers(2, size=(200, 1))
    >>> model = LowRankDensity(method=Stack(ranks=(1, 2), n_folds=2), random_state=0).fit(X)
    >>> model.rank_
    2
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "ranks": Several(Count(), "a sequence of integers"),
        "n_folds": Count(2),
        "trial_rows": Count(2),
        "max_iter": Count(),
        "tol": Nonnegative(),
    }

    def __init__(
        self,
        ranks: Sequence[int] = (1, 2, 4, 8, 16),
        *,
        n_folds: int = 5,
        trial_rows: int = 2000,
        max_iter: int = 60,
        tol: float = 1e-2,
    ):
        self.ranks = ranks
        self.n_folds = n_folds
        self.trial_rows = trial_rows
        self.max_iter = max_iter
        self.tol = tol

    def estimate(self, problem: JointProblem) -> JointEstimate:
        """The stack of all kinds of mixtures.

        Parameters
        ----------
        problem : JointProblem
            Rows and what is asked of them.

        Returns
        -------
        JointEstimate
        """
        return _stacked(self, problem, _mixture_kinds)

    def shares(self, log_densities: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """The combination with the highest held-out likelihood.

        Parameters
        ----------
        log_densities : array of shape (n, m)
            Held-out log-densities of the parts.
        weights : array or None
            Of the rows.

        Returns
        -------
        array
        """
        return stacking_shares(log_densities, weights)


class ProductMixture(Stack):
    r"""A mixture of products of tables, its rank by held-out likelihood: a nonnegative low-rank tensor, by EM.

    .. math:: p(x) = \sum_{h=1}^r \pi_h \prod_j p_j(x_j \mid h)

    Of tables it is a nonnegative tensor factorisation (Shashua & Hazan 2005).

    Parameters
    ----------
    ranks : tuple of int, default=(1, 2, 3, 4, 6, 8, 12, 16)
        Those that are tried, where the rank is "auto".
    n_folds : int, default=5
    trial_rows : int, default=2000
        Rows on which the rank is chosen.
    max_iter : int, default=200
    tol : float, default=1e-3
        EM stops when a step gains less log-likelihood per row.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import LowRankDensity, ProductMixture
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3)) + 4.0 * rng.integers(2, size=(200, 1))
    >>> model = LowRankDensity(method=ProductMixture(ranks=(1, 2, 3), n_folds=2), random_state=0).fit(X)
    >>> model.rank_
    2
    """

    def __init__(
        self,
        ranks: Sequence[int] = (1, 2, 3, 4, 6, 8, 12, 16),
        *,
        n_folds: int = 5,
        trial_rows: int = 2000,
        max_iter: int = 200,
        tol: float = 1e-3,
    ):
        super().__init__(ranks, n_folds=n_folds, trial_rows=trial_rows, max_iter=max_iter, tol=tol)

    def estimate(self, problem: JointProblem) -> JointEstimate:
        """The best mixture of products."""
        return _stacked(self, problem, lambda rank, rows: [MixtureKind(rank, False, None)])

    def shares(self, log_densities: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """All to the rank with the highest held-out likelihood."""
        best = int(np.argmax(np.average(log_densities, axis=0, weights=weights)))
        return np.eye(log_densities.shape[1])[best]


def _mixture_kinds(rank: int, rows: Rows) -> list[MixtureKind]:
    """The mixtures of a rank; correlations only where there are two columns to correlate."""
    products = [MixtureKind(rank, False, None), MixtureKind(rank, True, None)]
    joined_tables = [MixtureKind(rank, False, 0.1)] if len(rows.numbers) > 1 else []
    gaussians = [
        MixtureKind(rank, True, 0.1, whitened=True),
        MixtureKind(rank, True, 1.0, whitened=True),
        MixtureKind(rank, True, 0.1, NARROW),
        MixtureKind(rank, True, 0.0, NARROW),
    ]
    return products + joined_tables + (gaussians if len(rows.affine) > 1 else [])


def _stacked(method: Stack, problem: JointProblem, kinds_of: Any) -> JointEstimate:
    """Starts, held-out densities of every kind, shares, and a last fit to all rows."""
    check_parameters(method)
    n_folds, max_iter, tol = method.n_folds, method.max_iter, method.tol
    if isinstance(problem.rank, Sequence | np.ndarray) and not isinstance(problem.rank, str):
        name = type(method).__name__
        raise ValueError(f"{name} has one rank for all columns; SignedTrain takes one per edge; got {problem.rank!r}.")
    rows = Rows(problem.pilot, problem.kernels, problem.pilot_weights)
    kinds = [kind for rank in problem.ranks(method.ranks) for kind in kinds_of(rank, rows)]
    starts = _starts(problem, rows, kinds)
    trial = problem.rng.permutation(len(problem.pilot))[: method.trial_rows]
    shares = np.ones(1)
    if len(kinds) > 1:
        fold = np.arange(len(trial)) % min(n_folds, len(trial))
        log_densities = held_out(
            rows.some(trial),
            kinds,
            {kind: start[trial] for kind, start in starts.items()},
            fold,
            max_iter,
            tol,
            lambda step, objective: problem.report("held out", step, objective),
        )
        weights = None if rows.weights is None else rows.weights[trial]
        shares = method.shares(log_densities, weights)
        if problem.partial:
            shares = pruned(log_densities, shares, weights)
    density = fit_stack(rows, kinds, starts, shares, max_iter, tol, problem.everything, problem.weights)
    return JointEstimate(density, kinds[int(shares.argmax())].rank, None)


def _starts(problem: JointProblem, rows: Rows, kinds: Sequence[MixtureKind]) -> dict[MixtureKind, np.ndarray]:
    """Posteriors of the pilot that every kind of mixture starts from."""
    ranks = dict.fromkeys(kind.rank for kind in kinds)
    views = _three_groups(problem, rows.numbers) if max(ranks) > 1 else None
    found = {(False, rank): best_start(rows, _guesses(problem, views, rank)) for rank in ranks}
    if any(kind.from_whitened for kind in kinds):
        found |= {(True, rank): _clusters(problem, rows.whitened, rank) for rank in ranks}
    return {kind: found[kind.from_whitened, kind.rank] for kind in kinds}


def _clusters(problem: JointProblem, table: np.ndarray, rank: int) -> np.ndarray:
    if rank == 1:
        return np.ones((len(table), 1))
    return kmeans_posteriors(table, list(problem.kernels), rank, problem.rng, problem.pilot_weights)


def _three_groups(problem: JointProblem, numbers: list[int]) -> Views | None:
    """Three groups of columns as views, with a few landmarks each; None where there are too few numbers for it."""
    groups = tuple(numbers[i::3] for i in range(3))
    rows = problem.pilot[:CLUSTER_ROWS]
    if not groups[2] or any(np.isnan(rows[:, group]).all() for group in groups):
        return None
    prototypes = [LandmarkFeatures(Gaussian("median"), START_LANDMARKS) for _ in groups]
    return fit_views(rows, groups, prototypes, problem.rng, range(3))


def _guesses(problem: JointProblem, views: Views | None, rank: int) -> list[np.ndarray]:
    """Posteriors of the pilot to start from: k-means, and the spectral decomposition of three groups of columns."""
    guesses = [_clusters(problem, problem.pilot, rank)]
    if views is not None and rank > 1:
        with contextlib.suppress(UnsupportedError):  # k-means stands alone where the moments do not carry the rank
            guesses.append(_spectral_posteriors(problem, views, rank))
    return guesses


def _spectral_posteriors(problem: JointProblem, views: Views, rank: int) -> np.ndarray:
    """Every row's feature vectors in the basis of the classes' embeddings: on average one for its own, else zero."""
    weights = problem.pilot_weights
    found = spectral_fit(problem.pilot, views, rank, JointDiagonalization(), problem.rng, weights=weights)
    bases = [np.linalg.pinv(vectors).T for vectors in found.vectors]
    coordinates = np.sum(Projection(views, [[t] for t in range(len(bases))], bases)(problem.pilot), axis=0)
    shares = np.maximum(coordinates / len(found.vectors), 0.0) + 0.1 / rank
    return shares / shares.sum(axis=1, keepdims=True)
