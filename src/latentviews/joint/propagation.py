"""Belief propagation on a graph of columns, with messages learnt from rows (Song et al. 2011)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from latentviews._arrays import to_numpy
from latentviews._numbers import TINY, ridge_solve
from latentviews._parameters import (
    Constraint,
    Count,
    Nonnegative,
    Positive,
    Seed,
    Share,
    WithData,
    check_parameters,
)
from latentviews._validation import all_or_nothing, check_ability, check_rows, warn_user
from latentviews.comparison.conditional import ConditionalDistributions
from latentviews.comparison.features import fitted_map, middle_gaussian
from latentviews.core.kernels.base import Kernel, UnitHeight
from latentviews.core.kernels.real import Gaussian

WIDTH = 0.5  # the bandwidth of a column where no kernel is named, in median distances
MESSAGES = 2**25  # numbers in the messages of rows that are asked about together
LEAST = 1e-9  # a message is nowhere below this share of its largest value: least squares may go below zero


@dataclass(frozen=True, eq=False)
class Beliefs:
    """What is believed of every hidden column of some rows.

    ``columns[s]`` are the distributions of column s, one per row; where it is known, the distribution is that of the
    rows like it.
    """

    columns: tuple[ConditionalDistributions, ...] = field(repr=False)
    converged: bool
    n_iter: int


class KernelBeliefPropagation(BaseEstimator):
    r"""The distribution of hidden columns given the others, on a graph of which columns touch (loops allowed).

    Messages along the edges are functions in the kernel's space, learnt from rows by least squares:

    .. math:: m_{ts}(x_s) = \varphi_s(x_s)^\top (C_{ss} + \lambda I)^{-1} \frac1n \sum_i w_i\, \varphi_s(x_s^i),
              \qquad w_i = \prod_{u \ne s} m_{ut}(x_t^i),

    with w_i = k_t(e, x_t^i) where column t is known to be e; the belief of a column is its margin times the messages
    that reach it (Song, Gretton, Bickson, Low & Guestrin 2011). With the delta kernel and no penalty it is the
    sum-product algorithm on the tables of the rows: exact on trees.

    Parameters
    ----------
    edges : sequence of pairs of columns, or None
        None is a chain: every column touches the next.
    kernel : Kernel, list with one per column, or None
        None is a Gaussian of half the median distance.
    penalty : float, default=1e-3
        λ, for features of height one.
    n_landmarks : int, default=200
    damping : float, default=0.0
        The share of the last message in the next: on graphs with loops it helps messages to settle.
    max_iter : int, default=100
    tol : float, default=1e-6
        Messages, scaled to mean one, that change by less have settled.
    random_state : int, RandomState or None, default=None

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
        "kernel": WithData(),
        "penalty": Nonnegative(),
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
        kernel: Kernel | Sequence[Kernel] | None = None,
        penalty: float = 1e-3,
        n_landmarks: int = 200,
        damping: float = 0.0,
        max_iter: int = 100,
        tol: float = 1e-6,
        random_state: Any = None,
    ):
        self.edges = edges
        self.kernel = kernel
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
        """Learn how columns that touch go together.

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
        self.edges_ = _checked_edges(self.edges, x.shape[1])
        rng = np.random.default_rng(self.random_state)
        self.kernels_ = self._kernels(x)
        self.rows_ = x
        self.features_, self.phi_, self.inverses_ = [], [], []
        for column, kernel in enumerate(self.kernels_):
            values = x[:, [column]]
            features = fitted_map(UnitHeight(kernel), values, self.n_landmarks, rng)
            phi = features.transform(values)
            self.features_.append(features)
            self.phi_.append(phi)
            self.inverses_.append(ridge_solve(phi.T @ phi / len(x), np.eye(phi.shape[1]) / len(x), self.penalty))
        return self

    def _kernels(self, x: np.ndarray) -> list[Kernel]:
        """A kernel per column, its rules resolved."""
        named: list[Any] = list(self.kernel) if isinstance(self.kernel, list | tuple) else [self.kernel] * x.shape[1]
        if len(named) != x.shape[1]:
            raise ValueError(f"kernel needs one per column, {x.shape[1]}; got {len(named)}.")
        for kernel in named:
            if kernel is not None:
                check_ability("kernel", kernel, "gram")
        found = []
        for column, kernel in enumerate(named):
            values = x[:, [column]]
            if kernel is not None:
                found.append(kernel.adapt(values))
            else:
                varies = bool(np.ptp(values))
                found.append(Gaussian(WIDTH * np.asarray(middle_gaussian(values).bandwidth) if varies else 1.0))
        return found

    def beliefs(self, X: Any) -> Beliefs:
        """What the known columns of rows tell of those that are missing.

        Parameters
        ----------
        X : array of shape (m, n_columns)
            NaN where a column is hidden.

        Returns
        -------
        Beliefs
            One distribution per column and row, and whether the messages have settled.
        """
        check_is_fitted(self)
        asked = to_numpy(check_rows(self, X, reset=False, missing=True))
        parts = [self._beliefs(rows) for rows in self._chunks(asked)]
        columns = tuple(
            replace(several[0], weights=np.concatenate([one.weights for one in several], axis=1))
            for several in zip(*(part.columns for part in parts), strict=True)
        )
        return Beliefs(columns, all(part.converged for part in parts), max(part.n_iter for part in parts))

    def _chunks(self, asked: np.ndarray) -> Iterator[np.ndarray]:
        """Some of the rows that are asked about at a time, so that their messages fit in memory."""
        size = max(1, MESSAGES // (len(self.rows_) * max(2 * len(self.edges_), 1)))
        return (asked[start : start + size] for start in range(0, len(asked), size))

    def _beliefs(self, asked: np.ndarray) -> Beliefs:
        """Rounds of messages until they have settled, for a few rows."""
        known = self._evidence(asked)
        directed = [*self.edges_, *((s, t) for t, s in self.edges_)]
        messages = {edge: np.ones((len(self.rows_), len(asked))) for edge in directed}
        converged, n_iter = False, 0
        while not converged and n_iter < self.max_iter:
            n_iter += 1
            new = {(t, s): self._message(t, s, messages, known, asked) for t, s in directed}
            moved = max((float(np.max(np.abs(new[edge] - messages[edge]))) for edge in directed), default=0.0)
            messages = {e: (1 - self.damping) * new[e] + self.damping * messages[e] for e in directed}
            converged = moved < self.tol
        if not converged:
            warn_user(
                f"Messages still change by {moved:.2g} after {n_iter} rounds; raise max_iter, or damping on a graph "
                "with loops.",
                ConvergenceWarning,
            )
        columns = tuple(self._belief(s, messages, known, asked) for s in range(len(self.kernels_)))
        return Beliefs(columns, converged, n_iter)

    def _evidence(self, asked: np.ndarray) -> list[np.ndarray]:
        """k_t(e, x_t^i) for every column, (n, m); anything where it is hidden."""
        found = []
        for column, kernel in enumerate(self.kernels_):
            values = np.nan_to_num(asked[:, [column]])
            ahead = self.features_[column].transform(values)
            found.append(self.phi_[column] @ (self.inverses_[column] @ ahead.T) * len(self.rows_))
        return found

    def _incoming(self, s: int, messages: dict[tuple[int, int], np.ndarray], but: int | None = None) -> np.ndarray:
        """The product of the messages that reach s, but for one, (n, m)."""
        product = np.ones_like(next(iter(messages.values()), np.ones((len(self.rows_), 1))))
        for (t, end), message in messages.items():
            if end == s and t != but:
                product = product * message
        return product

    def _message(self, t: int, s: int, messages: Any, known: list[np.ndarray], asked: np.ndarray) -> np.ndarray:
        """The message from t to s at the rows, scaled to mean one."""
        hidden = np.isnan(asked[:, t])
        weights = np.where(hidden, self._incoming(t, messages, but=s), known[t])
        surplus = weights / np.maximum(weights.mean(axis=0), TINY) - 1
        values = 1 + self.phi_[s] @ (self.inverses_[s] @ (self.phi_[s].T @ surplus))
        values = np.maximum(values, LEAST * np.maximum(values.max(axis=0), TINY))
        return values / values.mean(axis=0)

    def _belief(self, s: int, messages: Any, known: list[np.ndarray], asked: np.ndarray) -> ConditionalDistributions:
        """The margin of s times the messages that reach it, as weights of the rows."""
        hidden = np.isnan(asked[:, s])
        reaching = np.broadcast_to(self._incoming(s, messages), known[s].shape)
        weights = np.where(hidden, reaching, known[s])
        weights = weights / np.maximum(weights.sum(axis=0), TINY)
        return ConditionalDistributions(self.rows_[:, [s]], weights, self.kernels_[s])

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
            for column, belief in enumerate(self._beliefs(part).columns):
                part[hidden[:, column], column] = _centre(belief)[hidden[:, column]]
        return asked


def _centre(belief: ConditionalDistributions) -> np.ndarray:
    """The mean of every distribution, or the most probable of categories."""
    if belief.kernel.space is not None and belief.kernel.space.finite:
        values = np.unique(belief.points[:, 0])
        return values[np.argmax(belief.density(values), axis=0)]
    return belief.mean()[:, 0]


def _checked_edges(edges: Any, n_columns: int) -> list[tuple[int, int]]:
    """Pairs of different columns, each once."""
    if edges is None:
        return [(column, column + 1) for column in range(n_columns - 1)]
    if not isinstance(edges, Sequence | np.ndarray) or isinstance(edges, str):
        raise ValueError(f"edges must be None or a list of pairs of columns; got {edges!r}.")
    found: list[tuple[int, int]] = []
    for edge in edges:
        pair = tuple(edge) if isinstance(edge, Sequence | np.ndarray) and not isinstance(edge, str) else ()
        valid = len(pair) == 2 and all(isinstance(end, int | np.integer) and 0 <= end < n_columns for end in pair)
        if not valid or pair[0] == pair[1]:
            raise ValueError(f"edges needs pairs of different columns from 0 to {n_columns - 1}; got {edge!r}.")
        first, second = int(pair[0]), int(pair[1])
        if (first, second) in found or (second, first) in found:
            raise ValueError(f"edges has the pair {edge!r} twice; each edge belongs there once.")
        found.append((first, second))
    return found
