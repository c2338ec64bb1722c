"""The papers' signed low-rank estimate as a way to a joint density."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone

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
from latentviews._validation import is_auto
from latentviews.core.kernels.bandwidths import median
from latentviews.core.kernels.base import Kernel
from latentviews.joint.problem import JointEstimate, JointProblem
from latentviews.joint.signed import SignedDensity, column_features, in_range, signed_density
from latentviews.joint.stacks import number_columns
from latentviews.joint.trees import Tree, embedding_distances, read_tree, tree_from_distances


class SignedTrain(BaseEstimator):
    r"""The estimate of Song & Dai (2013), corrected: the kernel embedding cut to low rank along the edges of a tree.

    .. math:: \hat p(x) = \Bigl\langle \hat C, \bigotimes_j \varphi_j(x_j) \Bigr\rangle, \qquad
              \hat C \approx \frac1n \sum_i \bigotimes_j \varphi_j(x_{ij})

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

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import LowRankDensity, SignedTrain
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3)) + 4.0 * rng.integers(2, size=(200, 1))
    >>> model = LowRankDensity(2, method=SignedTrain(bandwidth=1.0), random_state=0).fit(X)
    >>> round(model.mass_, 1), model.negative_share_ < 0.1
    (1.0, True)
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
        """Bandwidth and rank by held-out likelihood, then the decomposition of all rows.

        Parameters
        ----------
        problem : JointProblem
            Rows and what is asked of them.

        Returns
        -------
        JointEstimate
        """
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
            if not hasattr(kernel, "draw") or hasattr(kernel, "columns"):
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
        numbers = [width for width in widths if in_range(width)]
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
