"""Columns that say most about a target, whatever the form of the dependence."""

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.linear_model import lars_path_gram
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from latentviews._arrays import is_foreign, on_host, take_columns, to_numpy
from latentviews._numbers import TINY, size_of
from latentviews._parameters import Ability, Constraint, Count, NoneOr, Seed, check_parameters
from latentviews._sentences import warn_user
from latentviews._validation import all_or_nothing, check_rows
from latentviews.comparison.features import fitted_map, some_rows
from latentviews.core.kernels.base import Kernel
from latentviews.core.kernels.discrete import Delta
from latentviews.core.kernels.real import Gaussian
from latentviews.core.kernels.spaces import is_discrete

FEATURES = 20  # of a column: enough for a Gaussian of the median distance to be exact to a thousandth


class HSICSelector(SelectorMixin, BaseEstimator):
    r"""The columns that tell most of ``y`` and least of each other (HSIC Lasso: Yamada et al. 2014).

    With centred kernel matrices K_a of the columns and L of the target, scaled to norm one, columns enter the path of

    .. math:: \min_{\beta \ge 0} \tfrac12 \Big\| L - \sum_a \beta_a K_a \Big\|_F^2 + \lambda \sum_a \beta_a

    one after another as λ falls; the first ``n_features_to_select`` are taken. A column enters late if it tells what
    another has told. All that is needed are HSIC(a, b) = ⟨K_a, K_b⟩ and HSIC(a, y), so time is linear in the rows.

    Parameters
    ----------
    n_features_to_select : int or None, default=None
        None takes half of the columns.
    kernel : Kernel, default=Gaussian("median")
        Of every column.
    target_kernel : Kernel or None
        None is `Delta` for classes and Gaussian("median") for numbers.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        HSIC with the target, from 0 to 1: correlations of kernel matrices.
    ranking_ : array of int of shape (n_features,)
        1 for the column that entered first; those that never enter follow by their scores.
    coefficients_ : array of shape (n_features,)
        β at the end of the path.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(300, 5))
    >>> y = X[:, 1] ** 2 + np.sin(3 * X[:, 3])
    >>> HSICSelector(2, random_state=0).fit(X, y).get_support(indices=True)
    array([1, 3])
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "n_features_to_select": NoneOr(Count()),
        "kernel": NoneOr(Ability("gram")),
        "target_kernel": NoneOr(Ability("gram")),
        "random_state": Seed(),
    }

    def __init__(
        self,
        n_features_to_select: int | None = None,
        *,
        kernel: Kernel | None = None,
        target_kernel: Kernel | None = None,
        random_state: Any = None,
    ):
        self.n_features_to_select = n_features_to_select
        self.kernel = kernel
        self.target_kernel = target_kernel
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any) -> Self:
        """Rank the columns of ``X`` by what they tell of ``y``.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
        y : array of shape (n_rows,)
            Classes of any type, or numbers.

        Returns
        -------
        HSICSelector
        """
        check_parameters(self)
        if y is None:
            raise ValueError("HSICSelector requires y to be passed, but the target y is None.")
        x, y = to_numpy(check_rows(self, X, reset=True)), column_or_1d(on_host(y), warn=True)
        check_consistent_length(x, y)
        if self.n_features_to_select is not None and self.n_features_to_select > x.shape[1]:
            raise ValueError(f"n_features_to_select={self.n_features_to_select}, but X has {x.shape[1]} columns.")
        rng = np.random.default_rng(self.random_state)
        kernel = Gaussian("median") if self.kernel is None else self.kernel
        columns = [_unit_features(x[:, [j]], kernel, rng) for j in range(x.shape[1])]
        psi = _unit_features(*self._target(y), rng)
        if not psi.any():
            warn_user(
                "y is the same in all rows, so no column tells anything of it, and the ranking is that of columns."
            )
        self.scores_ = np.array([_inner(phi, psi) for phi in columns])
        gram = np.eye(len(columns))
        for a, phi in enumerate(columns):
            for b in range(a):
                gram[a, b] = gram[b, a] = _inner(phi, columns[b])
        _, _active, path = lars_path_gram(
            self.scores_, gram, n_samples=1, positive=True, method="lasso", alpha_min=1e-9, max_iter=8 * len(columns)
        )
        self.coefficients_ = path[:, -1]
        entered = np.where((path > 0).any(axis=1), np.argmax(path > 0, axis=1), path.shape[1])
        order = np.lexsort((-self.scores_, entered))
        self.ranking_ = np.empty(len(columns), dtype=int)
        self.ranking_[order] = 1 + np.arange(len(columns))
        return self

    def transform(self, X: Any) -> Any:
        """The columns that were selected, in the array library of ``X``.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows, n_features_to_select)
        """
        if not is_foreign(X):
            return super().transform(X)
        return take_columns(check_rows(self, X, reset=False), self.get_support(indices=True).tolist())

    def _target(self, y: np.ndarray) -> tuple[np.ndarray, Kernel]:
        """The target in one column, and its kernel."""
        with np.errstate(invalid="ignore"):  # numbers are turned into integers to see whether they are some
            classes = y.dtype.kind not in "f" or type_of_target(y) in ("binary", "multiclass")
        values = np.unique(y, return_inverse=True)[1].astype(float) if classes else y.astype(float)
        kernel = (Delta() if classes else Gaussian("median")) if self.target_kernel is None else self.target_kernel
        return values[:, None], kernel

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self, "ranking_")
        size = self.n_features_to_select
        return self.ranking_ <= (max(1, len(self.ranking_) // 2) if size is None else size)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _unit_features(column: np.ndarray, kernel: Kernel, rng: np.random.Generator) -> np.ndarray:
    """Centred features whose kernel matrix has norm one; a zero where the column does not vary."""
    if not np.ptp(column):
        return np.zeros((len(column), 1))
    some = some_rows(column, rng)
    phi = fitted_map(kernel.adapt(some), some, len(column) if is_discrete(kernel) else FEATURES, rng)
    values = phi.transform(column)
    values = values - values.mean(axis=0)
    values = values / max(float(np.abs(values).max()), TINY)  # whose fourth powers are numbers
    return values / np.sqrt(max(size_of(values.T @ values), TINY))


def _inner(phi: np.ndarray, psi: np.ndarray) -> float:
    """⟨K, L⟩ for K = φ φᵀ and L = ψ ψᵀ."""
    return float(np.sum((phi.T @ psi) ** 2))
