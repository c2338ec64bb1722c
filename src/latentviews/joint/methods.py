"""Ways to a joint density: mixtures that are densities by construction, and the signed low-rank estimate."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, clone

from latentviews._clusters import CLUSTER_ROWS, kmeans_posteriors
from latentviews._parameters import (
    Constraint,
    Count,
    Nonnegative,
    Positive,
    Several,
    Share,
    Such,
    are_numbers,
    check_parameters,
)
from latentviews._progress import Report
from latentviews._validation import UnsupportedError, is_auto
from latentviews.core.features.landmarks import LandmarkFeatures
from latentviews.core.kernels.bandwidths import median
from latentviews.core.kernels.base import Kernel
from latentviews.core.kernels.real import Gaussian
from latentviews.core.moments import Projection
from latentviews.core.spectral import spectral_fit
from latentviews.core.tables import TrainingRows
from latentviews.core.tensors import JointDiagonalization
from latentviews.core.views import Views, fit_views
from latentviews.densities.stacking import stacking_shares
from latentviews.joint.signed import SignedDensity, column_features, signed_density
from latentviews.joint.stacks import MixtureKind, Rows, best_start, fit_stack, held_out, number_columns, pruned
from latentviews.joint.trees import Tree, embedding_distances, read_tree, tree_from_distances

START_LANDMARKS = 64
LOG_RANGE = 600.0  # products of kernels beyond exp(± 700) are no numbers
NARROW = 1e-3  # standard deviations of a table that components may be narrow to, for values that many rows share
FEW_PER_COMPONENT = 20  # rows: ranks that leave fewer to a component are not tried


@dataclass(frozen=True, eq=False)
class JointProblem(TrainingRows):
    """What a fit is given, read and checked."""

    kernels: Mapping[int, Kernel]  # of every column that varies
    rank: Any  # a number, "auto", or one an edge
    tree: Any
    names: list[str] | None  # of all columns
    rng: np.random.Generator
    report: Report

    @property
    def everything(self) -> Any:
        """All rows, where there are more than the pilot's; else None."""
        return self.data if self.partial else None

    def ranks(self, choices: Sequence[int]) -> list[Any]:
        """The ranks to try."""
        if not isinstance(self.rank, str):
            return [self.rank]
        return [r for r in choices if r == 1 or r * FEW_PER_COMPONENT <= len(self.pilot)] or [1]


class JointEstimate(NamedTuple):
    """A density, its rank, and the tree behind it if any."""

    density: Any
    rank: Any
    tree: Tree | None


class Stack(BaseEstimator):
    """A convex combination of mixtures, weighted by the likelihood of rows that they were not fitted to; the default.

    For every rank there are mixtures of products of tables or of normal laws, of tables joined by Gaussian copulas, and
    Gaussian mixtures: with covariances as they are, with correlations drawn towards zero, or with covariances drawn
    towards the shape of the whole table, as if it had been whitened first. They start from a guess of the classes, the
    best of a spectral one (Song, Anandkumar, Dai & Xie 2014, on three groups of columns) and k-means, or from k-means
    of the whitened rows.

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
        """The stack of all kinds of mixtures."""
        return _stacked(self, problem, _mixture_kinds)

    def shares(self, log_densities: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """The combination with the highest held-out likelihood."""
        return stacking_shares(log_densities, weights)


class ProductMixture(Stack):
    """A mixture of products of tables, its rank by held-out likelihood: a nonnegative low-rank tensor, by EM.

    Parameters are those of `Stack`.
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
        raise ValueError(f"{name} has one rank for all columns; SignedTrain takes one an edge; got {problem.rank!r}.")
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


class SignedTrain(BaseEstimator):
    """The estimate of Song & Dai (2013), corrected: the kernel embedding cut to low rank along the edges of a tree.

    It is no density: it can be negative, and its mass is not one. Rows are scored by max(p̂, floor·KDE) / Z, with the
    product kernel density estimate of the same kernels and an estimated normaliser; ``mass_`` and ``negative_share_``
    of the model say how much that changed. Rows with a missing value are left out of the fit.

    Parameters
    ----------
    bandwidth : float, array of one per column, or "cv", default="cv"
        Of the Gaussian kernels. "cv" takes the multiple of the median distance between rows with the highest held-out
        likelihood, as the paper does.
    factors : tuple of float
        Those multiples; the paper's.
    ranks : tuple of int
        Where the rank is "auto": chosen with the bandwidth.
    tol : float, default=0
        The share of the squared norm that an edge may leave out, at most at the given rank.
    floor : float, default=0.1
    n_folds : int, default=3
    trial_rows : int, default=1000
        Rows on which bandwidth and rank are chosen.
    exact_rows : int, default=1500
        With more rows the decomposition is sketched in passes over them.
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "bandwidth": Such(
            lambda value: are_numbers(value) or (isinstance(value, str) and value == "cv"),
            '"cv", a positive number, or one for each real column',
        ),
        "factors": Several(Positive(), "positive numbers, at least one"),
        "ranks": Several(Count(), "a sequence of integers"),
        "tol": Nonnegative(),
        "floor": Share(),
        "n_folds": Count(2),
        "trial_rows": Count(2),
        "exact_rows": Count(0),
    }

    def __init__(
        self,
        bandwidth: Any = "cv",
        *,
        factors: Sequence[float] = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0),
        ranks: Sequence[int] = (2, 4, 6, 10),
        tol: float = 0.0,
        floor: float = 0.1,
        n_folds: int = 3,
        trial_rows: int = 1000,
        exact_rows: int = 1500,
    ):
        self.bandwidth = bandwidth
        self.factors = factors
        self.ranks = ranks
        self.tol = tol
        self.floor = floor
        self.n_folds = n_folds
        self.trial_rows = trial_rows
        self.exact_rows = exact_rows

    def estimate(self, problem: JointProblem) -> JointEstimate:
        """Bandwidth and rank by held-out likelihood, then the decomposition of all rows."""
        self._check(problem)
        whole = ~np.isnan(problem.pilot[:, list(problem.kernels)]).any(axis=1)
        rows, weights = problem.pilot[whole], None if problem.pilot_weights is None else problem.pilot_weights[whole]
        ranks = problem.ranks(self.ranks)
        least = max(2, int(np.max(ranks)) if len(ranks) == 1 else 2)
        if len(rows) < least:
            raise ValueError(
                f"SignedTrain needs at least {least} rows without missing values; got {len(rows)}. Stack takes them."
            )
        choices = self._bandwidths(rows, problem.kernels)
        tree = self._tree(rows, problem, choices[len(choices) // 2], int(np.max(ranks)))
        pairs = [(widths, rank) for widths in choices for rank in ranks]
        widths, rank = pairs[0] if len(pairs) == 1 else self._choose(rows, problem, tree, pairs)
        density = self._fit(rows, problem, tree, widths, rank, weights, problem.everything)
        return JointEstimate(density, list(density.embedding.ranks.values()) if self.tol else rank, tree)

    def _check(self, problem: JointProblem) -> None:
        check_parameters(self)
        for kernel in problem.kernels.values():
            if not hasattr(kernel, "draw"):
                raise TypeError(f"SignedTrain takes Gaussian, VonMises and Delta kernels; got {kernel!r}.")

    def _bandwidths(self, rows: np.ndarray, kernels: Mapping[int, Kernel]) -> list[dict[int, Kernel]]:
        """Kernels with numbers for bandwidths, one set a choice."""
        real = number_columns(kernels)
        others = {j: kernel.adapt(rows[:, [j]]) for j, kernel in kernels.items() if j not in real}
        found = []
        for choice in self._widths(rows[:, real]):
            chosen: dict[int, Kernel] = {
                j: clone(kernels[j]).set_params(bandwidth=float(s)) for j, s in zip(real, choice, strict=True)
            }
            found.append({j: {**others, **chosen}[j] for j in kernels})
        return found

    def _widths(self, x: np.ndarray) -> list[np.ndarray]:
        """The bandwidths of real columns, one array a choice, checked."""
        size = x.shape[1]
        if isinstance(self.bandwidth, str) and self.bandwidth == "cv":
            factors = np.asarray(self.factors, dtype=float)
            base = median(x) if size else 1.0
            widths = [np.full(size, factor * base) for factor in (factors if size else factors[:1])]
        else:
            given = np.nan if isinstance(self.bandwidth, str) else np.asarray(self.bandwidth, dtype=float)
            if np.shape(given) not in ((), (size,)) or not np.all(given > 0):
                raise ValueError(
                    f'bandwidth must be "cv", a positive number, or one for each of {size} real columns; '
                    f"got {self.bandwidth!r}."
                )
            widths = [np.broadcast_to(given, (size,))]
        numbers = [width for width in widths if abs(np.log(np.sqrt(2 * np.pi) * width).sum()) < LOG_RANGE]
        if not numbers:
            raise ValueError(
                f"The product of {size} kernels with bandwidths near {np.median(widths):.2g} leaves the range of "
                "floating point; scale the columns first, for one by TransformedDensity(..., StandardScaler())."
            )
        return numbers

    def _tree(self, rows: np.ndarray, problem: JointProblem, kernels: Mapping[int, Kernel], rank: int) -> Tree:
        places = list(problem.kernels)
        if not is_auto(problem.tree):
            return read_tree(problem.tree, problem.pilot.shape[1], problem.names, places)
        few = rows[: self.exact_rows]
        phi = [column_features(kernels[j], few[:, [j]], 24).transform(few[:, [j]]) for j in places]
        return read_tree(tree_from_distances(embedding_distances(phi, rank)), len(places))

    def _fit(
        self,
        rows: np.ndarray,
        problem: JointProblem,
        tree: Tree,
        kernels: Mapping[int, Kernel],
        rank: Any,
        weights: np.ndarray | None = None,
        everything: Any = None,
    ) -> SignedDensity:
        return signed_density(
            rows,
            kernels,
            tree,
            rank,
            problem.rng,
            tol=self.tol,
            floor=self.floor,
            exact_rows=self.exact_rows,
            everything=everything,
            weights=problem.weights if everything is not None else weights,
        )

    def _choose(
        self, rows: np.ndarray, problem: JointProblem, tree: Tree, pairs: Sequence[tuple[dict[int, Kernel], Any]]
    ) -> tuple[dict[int, Kernel], Any]:
        """The bandwidth and rank with the highest held-out likelihood."""
        trial = rows[problem.rng.permutation(len(rows))[: self.trial_rows]]
        fold = np.arange(len(trial)) % min(self.n_folds, len(trial))
        scores = np.zeros(len(pairs))
        for i, (kernels, rank) in enumerate(pairs):
            for f in range(fold.max() + 1):
                density = self._fit(trial[fold != f], problem, tree, kernels, rank)
                scores[i] += float(density.log_density(trial[fold == f]).sum())
            problem.report("held out", i + 1, float(scores[i]) / len(trial))
        return pairs[int(scores.argmax())]
