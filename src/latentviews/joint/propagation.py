"""Belief propagation on a graph of columns, with messages learnt from rows (Song et al. 2011)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from latentviews._arrays import to_numpy
from latentviews._numbers import TINY, as_shares, ridge_solve
from latentviews._parameters import (
    AutoOr,
    Constraint,
    Count,
    Nonnegative,
    Positive,
    Seed,
    Share,
    WithData,
    check_parameters,
    is_auto,
)
from latentviews._sentences import warn_user
from latentviews._validation import all_or_nothing, check_ability, check_rows
from latentviews.comparison.conditional import UNKNOWN, ConditionalDistributions
from latentviews.comparison.conditional_operators import ConditionalOperator
from latentviews.comparison.features import fitted_map, middle_gaussian
from latentviews.core.kernels.base import Kernel, UnitHeight
from latentviews.core.kernels.real import Gaussian
from latentviews.joint.messages import (
    FIT,
    PENALTIES,
    SCALES,
    chosen_messages,
    edge_sums,
    message_operators,
    message_points,
)

DENSITY = 0.2  # the bandwidth of densities where no kernel is named, in median distances
MESSAGES = 2**25  # numbers in the messages of rows that are asked about together
LEAST = 1e-9  # a message is nowhere below this share of its largest value: least squares may go below zero


@dataclass(frozen=True, eq=False)
class Beliefs:
    """What is believed of every hidden view of some rows.

    Attributes
    ----------
    views : tuple of ConditionalDistributions, one per view
        The distributions of every row; where it is known, that of the rows like it.
    converged : bool
    n_iter : int

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import KernelBeliefPropagation
    >>> x = np.random.default_rng(0).normal(size=(200, 1))
    >>> model = KernelBeliefPropagation([(0, 1)], random_state=0).fit(np.hstack([x, -x]))
    >>> beliefs = model.beliefs([[1.0, np.nan]])
    >>> beliefs.converged, bool(beliefs.views[1].mean()[0, 0] < -0.5)
    (True, True)
    """

    views: tuple[ConditionalDistributions, ...] = field(repr=False)
    converged: bool
    n_iter: int


class KernelBeliefPropagation(BaseEstimator):
    r"""The distribution of hidden views given the others, on a graph of which views touch (loops allowed).

    Messages along the edges are functions in the kernel's space, learnt from rows by least squares:

    .. math:: m_{ts}(x_s) = 1 + \varphi_s(x_s)^\top (C_{ss} + \lambda I)^{-1} \frac1n
              \sum_i (w_i / \bar w - 1)\, \varphi_s(x_s^i), \qquad w_i = \prod_{u \ne s} m_{ut}(x_t^i),

    with w_i = φ_t(x_t^i)ᵀ (C_tt + λI)⁻¹ φ_t(e) where view t is known to be e. A view's belief is its margin times the
    messages that reach it (Song, Gretton, Bickson, Low & Guestrin 2011; theirs are shrunk towards zero, not one, and
    w_i is k_t(e, x_t^i)). With the delta kernel and no penalty it is sum-product on tables of rows: exact on trees.

    Parameters
    ----------
    edges : sequence of pairs of views, or None
        None is a chain. Where no path of edges leads to a view from one that is known, its belief is its margin.
    views : sequence of sequences of columns, or None
        The columns of every view; None is one column each. Where a column of a view is missing, all of it is hidden.
    kernel : Kernel, list with one per view, or None
        Of the messages. None is a Gaussian whose bandwidth, in median distances, is chosen with the penalty.
    density_kernel : Kernel, list with one per view, or None
        Of the densities of beliefs, narrower as a rule. None is ``kernel``, or a Gaussian of .2 median distances.
    penalty : float or "auto", default="auto"
        λ, for features of height one. "auto" is the one whose messages have the least squared error on held-out rows.
    n_landmarks : int, default=200
    damping : float, default=0.0
        The share of the last message in the next: on graphs with loops it helps messages to settle.
    max_iter : int, default=100
    tol : float, default=1e-6
        Messages, scaled to mean one, that change by less have settled.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    views_, edges_, directed_ : lists
        The columns of every view, the pairs of views that touch, and these in both directions.
    rows_, features_, kernels_, density_kernels_ : lists, one per view
        The rows that were fitted, the map to features φ, and the kernels of messages and of densities.
    penalty_ : float
    means_, inverses_, operators_ : lists of arrays
        μ_t = E φ_t and (C_tt + λI)⁻¹ of every view; (C_ss + λI)⁻¹ (C_st − μ_s μ_tᵀ) of every message from t to s.
    phi_, shares_, projections_ : lists of arrays, one per view
        Of the points at which messages are held: φ, the shares of the rows, and the map from values to coefficients.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> first = rng.normal(size=500)
    >>> X = np.column_stack([first, first + 0.3 * rng.normal(size=500), rng.normal(size=500)])
    >>> model = KernelBeliefPropagation([(0, 1), (1, 2)], random_state=0).fit(X)
    >>> bool(model.predict([[np.nan, 1.0, np.nan]])[0, 0] > 0.6)
    True
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "edges": WithData(),
        "views": WithData(),
        "kernel": WithData(),
        "density_kernel": WithData(),
        "penalty": AutoOr(Nonnegative()),
        "n_landmarks": Count(),
        "damping": Share("from 0 to below 1", zero=True),
        "max_iter": Count(),
        "tol": Positive(),
        "random_state": Seed(),
    }

    def __init__(
        self,
        edges: Sequence[tuple[int, int]] | None = None,
        *,
        views: Sequence[Sequence[int]] | None = None,
        kernel: Kernel | Sequence[Kernel] | None = None,
        density_kernel: Kernel | Sequence[Kernel] | None = None,
        penalty: float | str = "auto",
        n_landmarks: int = 200,
        damping: float = 0.0,
        max_iter: int = 100,
        tol: float = 1e-6,
        random_state: Any = None,
    ):
        self.edges = edges
        self.views = views
        self.kernel = kernel
        self.density_kernel = density_kernel
        self.penalty = penalty
        self.n_landmarks = n_landmarks
        self.damping = damping
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn how views that touch go together.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns)
            Rows with a missing value are left out.
        y : ignored

        Returns
        -------
        KernelBeliefPropagation
        """
        check_parameters(self)
        x = to_numpy(check_rows(self, X, reset=True, missing=True))
        x = x[~np.isnan(x).any(axis=1)]
        if not len(x):
            raise ValueError(
                "KernelBeliefPropagation learns from complete rows, and every row of X has a missing value."
            )
        self.views_ = _checked_views(self.views, x.shape[1])
        self.edges_ = _checked_edges(self.edges, len(self.views_))
        rng = np.random.default_rng(self.random_state)
        self.rows_ = [x[:, columns] for columns in self.views_]
        self.kernels_, self.penalty_ = self._chosen(rng)
        smoothed = self.kernel if self.density_kernel is None else self.density_kernel
        self.density_kernels_ = _kernels("density_kernel", smoothed, self.rows_, DENSITY)
        self.features_ = [
            fitted_map(UnitHeight(kernel), rows, self.n_landmarks, rng)
            for kernel, rows in zip(self.kernels_, self.rows_, strict=True)
        ]
        self._learn(rng)
        return self

    def _chosen(self, rng: np.random.Generator) -> tuple[list[Kernel], float]:
        """The kernels of messages and the penalty, by held-out rows where they are left open."""
        scales = SCALES if self.kernel is None else SCALES[:1]
        candidates = [_kernels("kernel", self.kernel, self.rows_, scale) for scale in scales]
        penalties = PENALTIES if is_auto(self.penalty) else (float(self.penalty),)
        place, penalty = chosen_messages(candidates, penalties, self.rows_, self.edges_, self.n_landmarks, rng)
        return candidates[place], penalty

    def _learn(self, rng: np.random.Generator) -> None:
        """What messages need of the rows: means of products of features, and the values that they are held at."""
        sums = edge_sums(self.features_, self.rows_, self.edges_)
        self.directed_ = [*self.edges_, *((s, t) for t, s in self.edges_)]
        self.operators_ = message_operators(sums, self.edges_, self.penalty_)
        self.means_ = sums.means
        self.inverses_ = [ridge_solve(square, np.eye(len(square)), self.penalty_) for square in sums.squares]
        self.phi_, self.shares_, self.projections_ = [], [], []
        for features, rows in zip(self.features_, self.rows_, strict=True):
            points, shares = message_points(rows, rng)
            phi = features.transform(points)
            self.phi_.append(phi)
            self.shares_.append(shares)
            self.projections_.append(ConditionalOperator.of_rows(phi, shares, min(self.penalty_, FIT)).matrix.T)

    def beliefs(self, X: Any) -> Beliefs:
        """What the known columns of rows tell of those that are missing.

        Parameters
        ----------
        X : array of shape (m, n_columns)
            NaN where a column is hidden.

        Returns
        -------
        Beliefs
        """
        check_is_fitted(self)
        asked = to_numpy(check_rows(self, X, reset=False, missing=True))
        parts = [self._beliefs(rows) for rows in self._chunks(asked)]
        views = tuple(
            replace(several[0], weights=np.concatenate([one.weights for one in several], axis=1))
            for several in zip(*(part.views for part in parts), strict=True)
        )
        return Beliefs(views, all(part.converged for part in parts), max(part.n_iter for part in parts))

    def _chunks(self, asked: np.ndarray) -> Iterator[np.ndarray]:
        """Some of the rows that are asked about at a time, so that their messages fit in memory."""
        ends = sum(len(self.shares_[s]) for _, s in self.directed_)
        size = max(1, MESSAGES // max(ends, len(self.rows_[0]) * len(self.views_)))
        return (asked[start : start + size] for start in range(0, len(asked), size))

    def _beliefs(self, asked: np.ndarray) -> Beliefs:
        """Rounds of messages until they have settled, for a few rows."""
        hidden = [np.isnan(asked[:, columns]).any(axis=1) for columns in self.views_]
        known = self._evidence(asked, hidden)
        messages = {(t, s): np.ones((len(self.shares_[s]), len(asked))) for t, s in self.directed_}
        converged, n_iter = False, 0
        while not converged and n_iter < self.max_iter:
            n_iter += 1
            sent = self._sent(messages, known, hidden)
            new = {(t, s): _scaled(1 + self.phi_[s] @ sent[t, s], self.shares_[s]) for t, s in self.directed_}
            moved = max((float(np.max(np.abs(new[e] - messages[e]))) for e in self.directed_), default=0.0)
            messages = {e: (1 - self.damping) * new[e] + self.damping * messages[e] for e in self.directed_}
            converged = moved < self.tol
        if not converged:
            warn_user(
                f"Messages still change by {moved:.2g} after {n_iter} rounds; raise max_iter, or damping on a graph "
                "with loops.",
                ConvergenceWarning,
            )
        sent = self._sent(messages, known, hidden)
        views = tuple(self._belief(s, sent, known, hidden) for s in range(len(self.views_)))
        return Beliefs(views, converged, n_iter)

    def _evidence(self, asked: np.ndarray, hidden: list[np.ndarray]) -> list[np.ndarray]:
        """(C_tt + λI)⁻¹ φ_t(e) per view, for weights of mean one, (D, m); zero where hidden or far from all rows."""
        found = []
        for view, columns in enumerate(self.views_):
            values = np.where(hidden[view][:, None], self.rows_[view][:1], asked[:, columns])
            given = self.inverses_[view] @ self.features_[view].transform(values).T
            mass = self.means_[view] @ given
            found.append(np.where(~hidden[view] & (mass > UNKNOWN), given / np.where(mass > UNKNOWN, mass, 1.0), 0.0))
        return found

    def _sent(self, messages: Any, known: list[np.ndarray], hidden: list[np.ndarray]) -> dict[tuple[int, int], Any]:
        """The coefficients (D_s, m) of every message less one, from the messages (points, m) before."""
        found = {}
        for (t, s), operator in zip(self.directed_, self.operators_, strict=True):
            if hidden[t].any():
                reaching = [message for (u, end), message in messages.items() if end == t and u != s]
                weights = prod(reaching, start=np.ones((len(self.shares_[t]), len(hidden[t]))))
                weights = weights / np.maximum(self.shares_[t] @ weights, TINY)
                surplus = self.projections_[t] @ (weights - 1)
                mass = np.maximum(1 + self.means_[t] @ surplus, LEAST)  # of all rows, which are more than the points
                found[t, s] = operator @ np.where(hidden[t], surplus / mass, known[t])
            else:
                found[t, s] = operator @ known[t]
        return found

    def _belief(self, s: int, sent: Any, known: list[np.ndarray], hidden: list[np.ndarray]) -> ConditionalDistributions:
        """The margin of s times the messages that reach it, as weights of the rows."""
        phi = self.features_[s].transform(self.rows_[s])
        shares = np.full(len(phi), 1 / len(phi))
        reaching = [_scaled(1 + phi @ message, shares) for (_, end), message in sent.items() if end == s]
        product = prod(reaching, start=np.ones((len(phi), known[s].shape[1])))
        weights = as_shares(np.maximum(np.where(hidden[s], product, phi @ known[s]), 0.0), axis=0)
        return ConditionalDistributions(self.rows_[s], weights, self.density_kernels_[s])

    def predict(self, X: Any) -> np.ndarray:
        """Rows with what is missing filled in by its mean, or by its most probable category.

        Parameters
        ----------
        X : array of shape (m, n_columns)
            NaN where a column is hidden.

        Returns
        -------
        array of shape (m, n_columns)
        """
        check_is_fitted(self)
        asked = to_numpy(check_rows(self, X, reset=False, missing=True)).copy()
        if not np.isnan(asked).any():
            return asked
        for part in self._chunks(asked):  # views of the rows
            hidden = np.isnan(part)
            filled = np.empty_like(part)
            for columns, belief in zip(self.views_, self._beliefs(part).views, strict=True):
                filled[:, columns] = _centre(belief)
            part[hidden] = filled[hidden]
        return asked


def _scaled(values: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """A message (points, m) above zero, and of mean one."""
    values = np.maximum(values, LEAST * np.maximum(values.max(axis=0), TINY))
    return values / (shares @ values)


def _centre(belief: ConditionalDistributions) -> np.ndarray:
    """The mean of every distribution, or the most probable of categories, (m, d)."""
    if belief.kernel.space is not None and belief.kernel.space.finite:
        values = np.unique(belief.points, axis=0)
        return values[np.argmax(belief.density(values), axis=0)]
    return belief.mean()


def _kernels(name: str, given: Any, rows: list[np.ndarray], width: float) -> list[Kernel]:
    """A kernel per view, its rules resolved; Gaussians of so many median distances where none is named."""
    named: list[Any] = list(given) if isinstance(given, list | tuple) else [given] * len(rows)
    if len(named) != len(rows):
        raise ValueError(f"{name} needs one per view, {len(rows)}; got {len(named)}.")
    found: list[Kernel] = []
    for kernel, values in zip(named, rows, strict=True):
        if kernel is not None:
            check_ability(name, kernel, "gram")
            found.append(kernel.adapt(values))
        else:
            varies = bool(np.ptp(values, axis=0).any())
            found.append(Gaussian(width * np.asarray(middle_gaussian(values).bandwidth) if varies else 1.0))
    return found


def _checked_views(views: Any, n_columns: int) -> list[list[int]]:
    """The columns of every view, each column in one of them."""
    if views is None:
        return [[column] for column in range(n_columns)]
    if not isinstance(views, Sequence | np.ndarray) or isinstance(views, str):
        raise ValueError(f"views must be None or a list with the columns of every view; got {views!r}.")
    found = [list(view) if isinstance(view, Sequence | np.ndarray) else [view] for view in views]
    named = [column for view in found for column in view]
    if len(named) != n_columns or any(column not in named for column in range(n_columns)):
        raise ValueError(f"views needs every column from 0 to {n_columns - 1} in one view; got {views!r}.")
    return [[int(column) for column in view] for view in found]


def _checked_edges(edges: Any, n_views: int) -> list[tuple[int, int]]:
    """Pairs of different views, each once."""
    if edges is None:
        return [(view, view + 1) for view in range(n_views - 1)]
    if not isinstance(edges, Sequence | np.ndarray) or isinstance(edges, str):
        raise ValueError(f"edges must be None or a list of pairs of views; got {edges!r}.")
    found: list[tuple[int, int]] = []
    for edge in edges:
        pair = tuple(edge) if isinstance(edge, Sequence | np.ndarray) and not isinstance(edge, str) else ()
        valid = len(pair) == 2 and all(isinstance(end, int | np.integer) and 0 <= end < n_views for end in pair)
        if not valid or pair[0] == pair[1]:
            raise ValueError(f"edges needs pairs of different views from 0 to {n_views - 1}; got {edge!r}.")
        first, second = int(pair[0]), int(pair[1])
        if (first, second) in found or (second, first) in found:
            raise ValueError(f"edges has the pair {edge!r} twice; each edge belongs there once.")
        found.append((first, second))
    return found
