"""The distribution of one thing given another, without a model of either: conditional embeddings."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from latentviews._arrays import to_numpy
from latentviews._numbers import as_shares, drawn_labels, generator_of, row_shares
from latentviews._parameters import Ability, AutoOr, Constraint, Count, NoneOr, Nonnegative, Seed, check_parameters
from latentviews._validation import all_or_nothing, check_count, check_rows, check_weights
from latentviews.comparison.choosing import chosen, log_with_background
from latentviews.comparison.conditional_operators import ConditionalOperator
from latentviews.comparison.features import finite_table, fitted_map
from latentviews.core.kernels.base import Kernel, UnitHeight

UNKNOWN = 1e-6  # the mass of weights before they are scaled, below which they are rounding


@dataclass(frozen=True, eq=False)
class ConditionalDistributions:
    """Distributions of x, one for every z that was asked about: Σ_i w_i(z) k(x_i, ·).

    The weights may be negative, as least squares makes them. Expectations use them as they are; densities, quantiles
    and samples use their positive part, scaled to one.

    Attributes
    ----------
    points : array of shape (n, d)
        The rows of x that were fitted.
    weights : array of shape (n, m)
        A column per z.
    kernel : Kernel
        That of x.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import ConditionalEmbedding
    >>> z = np.linspace(-2, 2, 200)[:, None]
    >>> given = ConditionalEmbedding(random_state=0).fit(z, z**2).at([[0.0], [1.0]])
    >>> given.mean().round(1).ravel() + 0.0, given.quantile(0.5).shape
    (array([0., 1.]), (2,))
    """

    points: np.ndarray = field(repr=False)
    weights: np.ndarray = field(repr=False)
    kernel: Kernel

    def expectation(self, f: Callable[[np.ndarray], Any]) -> np.ndarray:
        """E[f(x) | z] for every z.

        Parameters
        ----------
        f : function of rows (n, d), with one value, or a row of values, for each

        Returns
        -------
        array of shape (m,) or (m, p)
        """
        values = np.asarray(f(self.points), dtype=float)
        if values.shape[:1] != (len(self.points),):
            raise ValueError(f"f needs one value per row, {len(self.points)}; got shape {values.shape}.")
        return self.weights.T @ values

    def mean(self) -> np.ndarray:
        """E[x | z], (m, d); of angles the direction of the mean.

        Returns
        -------
        array of shape (m, d)
        """
        space = self.kernel.space
        return self.weights.T @ self.points if space is None else space.mean(self.expectation)

    def density(self, x: Any) -> np.ndarray:
        """The density (or probability) of every row of ``x`` under every distribution, (len(x), m).

        Parameters
        ----------
        x : array of shape (n,) or (n, d)

        Returns
        -------
        array of shape (n, m)
        """
        rows = _as_table(x, self.points)
        heights = to_numpy(self.kernel.gram(rows, self.points))
        endless = np.isinf(heights)  # of kernels so narrow that no number holds their height
        if not endless.any():
            return heights @ self._shares
        return np.where(endless @ self._shares > 0, np.inf, np.where(endless, 0.0, heights) @ self._shares)

    def log_density(self, x: Any) -> np.ndarray:
        """The density of row i given z_i, in logarithms, (m,): as many rows as there are distributions.

        It is mixed with a broad density, as if one more row had been seen that may lie anywhere, so that it is finite
        everywhere.

        Parameters
        ----------
        x : array of shape (m,) or (m, d)

        Returns
        -------
        array of shape (m,)
        """
        rows = _as_table(x, self.points)
        if len(rows) != self.weights.shape[1]:
            raise ValueError(f"log_density takes one row per distribution, {self.weights.shape[1]}; got {len(rows)}.")
        values = np.einsum("ij,ji->i", to_numpy(self.kernel.gram(rows, self.points)), self._shares)
        return log_with_background(values, rows, self.points, self.kernel)

    def quantile(self, q: Any, column: int = 0) -> np.ndarray:
        """The quantiles of one column, (m,) for one level and (len(q), m) for several.

        Those of the weighted rows, between two of which values are in proportion; of categories, one of them.

        Parameters
        ----------
        q : float or list of floats
            Levels, from zero to one.
        column : int, default=0

        Returns
        -------
        array of shape (m,) or (len(q), m)
        """
        levels = np.atleast_1d(np.asarray(q, dtype=float))
        if not np.all((levels >= 0) & (levels <= 1)):
            raise ValueError(f"Quantiles need levels from 0 to 1; got {q!r}.")
        if column not in range(self.points.shape[1]):
            raise ValueError(f"column is one of the {self.points.shape[1]} from 0 on; got {column!r}.")
        order = np.argsort(self.points[:, column], kind="stable")
        values, below = self.points[order, column], np.cumsum(self._shares[order], axis=0)
        space = self.kernel.space
        if space is not None and space.finite:
            places = (below[None] < levels[:, None, None] * (1 - 1e-12)).sum(axis=1)
            found = values[np.minimum(places, len(values) - 1)]
        else:
            found = np.array([[np.interp(level, part, values) for part in below.T] for level in levels])
        return found if np.ndim(q) else found[0]

    def mmd(self, other: "ConditionalDistributions | None" = None) -> np.ndarray:
        """Distances between the embeddings of these and of ``other``, or of these, (m, m').

        Parameters
        ----------
        other : ConditionalDistributions of m' or None
            None compares these with each other.

        Returns
        -------
        array of shape (m, m')
        """
        other = self if other is None else other
        if not isinstance(other, ConditionalDistributions) or other.points.shape[1] != self.points.shape[1]:
            raise ValueError(f"mmd compares conditional distributions of the same columns; got {other!r}.")
        kernel = UnitHeight(self.kernel)

        def inner(a: "ConditionalDistributions", b: "ConditionalDistributions") -> np.ndarray:
            return a.weights.T @ to_numpy(kernel.gram(a.points, b.points)) @ b.weights

        norms = np.diag(inner(self, self))[:, None] + np.diag(inner(other, other))[None, :]
        return np.sqrt(np.maximum(norms - 2 * inner(self, other), 0.0))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Draws from every distribution, (n_samples, m, d); smoothed where the kernel can be drawn from.

        Parameters
        ----------
        n_samples : int, default=1
            From each.
        random_state : int, RandomState, Generator or None, default=None

        Returns
        -------
        array of shape (n_samples, m, d)
        """
        n_samples, rng = check_count("n_samples", n_samples), generator_of(random_state)
        picked = drawn_labels(self._shares.T, rng, (n_samples,))
        rows = self.points[picked.ravel()]
        rows = self.kernel.draw(rows, rng) if hasattr(self.kernel, "draw") else rows
        return rows.reshape(n_samples, -1, self.points.shape[1])

    @property
    def _shares(self) -> np.ndarray:
        return as_shares(np.maximum(self.weights, 0.0), axis=0)


class ConditionalEmbedding(BaseEstimator):
    r"""The whole distribution of ``x`` given ``z``, by ridge regression of the embedding of x on features of z.

    .. math:: \mu_{x|z} = C_{xz} (C_{zz} + \lambda I)^{-1} \psi(z) = \sum_i w_i(z)\, k(x_i, \cdot), \qquad
              w_i(z) \propto \psi(z_i)^\top (C_{zz} + \lambda I)^{-1} \psi(z), \qquad \sum_i w_i(z) = 1

    (Song, Huang, Smola & Fukumizu 2009). With the delta kernel and no penalty it is Bayes' table.

    Parameters
    ----------
    kernel_x, kernel_z : Kernel or None
        None is a Gaussian whose bandwidth is chosen by held-out likelihood; that of z has one per column, which grows
        wide along columns that tell nothing of x.
    penalty : float or "auto", default="auto"
        λ, for features of height one.
    n_landmarks : int, default=300
        The most features of z.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    kernel_x_, kernel_z_ : Kernel
    penalty_ : float
    features_ : the map from z to features ψ(z)
    points_ : array of shape (n, e)
        The rows of x.
    shares_ : array of shape (n,)
        What every row counts for, summing to one.
    dual_ : array of shape (n_features, n)
        From ψ(z) to the weights of the rows, before they are scaled to sum to one.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> z = rng.uniform(-2, 2, size=(600, 1))
    >>> x = np.sin(2 * z) + 0.2 * rng.normal(size=(600, 1))
    >>> model = ConditionalEmbedding(random_state=0).fit(z, x)
    >>> bool(abs(model.at([[0.5]]).mean()[0, 0] - np.sin(1.0)) < 0.1)
    True
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "kernel_x": NoneOr(Ability("gram")),
        "kernel_z": NoneOr(Ability("gram")),
        "penalty": AutoOr(Nonnegative()),
        "n_landmarks": Count(),
        "random_state": Seed(),
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def __init__(
        self,
        kernel_x: Kernel | None = None,
        kernel_z: Kernel | None = None,
        penalty: float | str = "auto",
        *,
        n_landmarks: int = 300,
        random_state: Any = None,
    ):
        self.kernel_x = kernel_x
        self.kernel_z = kernel_z
        self.penalty = penalty
        self.n_landmarks = n_landmarks
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the distribution of ``y`` (x above) given ``X`` (z above).

        Parameters
        ----------
        X : array of shape (n, d), the rows of z
        y : array of shape (n,) or (n, e), the rows of x
        sample_weight : array of shape (n,) or None

        Returns
        -------
        ConditionalEmbedding
        """
        check_parameters(self)
        if y is None:
            raise ValueError("ConditionalEmbedding requires y to be passed, but the target y is None.")
        z = to_numpy(check_rows(self, X, reset=True))
        x = to_numpy(finite_table("y", y))
        check_consistent_length(z, x)
        weights = row_shares(len(z), check_weights(sample_weight, z))
        rng = np.random.default_rng(self.random_state)
        named = self.kernel_x, self.kernel_z, self.penalty
        self.kernel_x_, self.kernel_z_, self.penalty_ = chosen(z, x, weights, *named, self.n_landmarks, rng)
        self.features_ = fitted_map(UnitHeight(self.kernel_z_), z, self.n_landmarks, rng)
        self.points_, self.shares_, self._rows_of_z = x, weights, z
        self._solve(self.features_.transform(z))
        return self

    def _solve(self, psi: np.ndarray) -> None:
        """What takes ψ(z) to the weights of the rows, before they are scaled to one."""
        self.dual_ = ConditionalOperator.of_rows(psi, self.shares_, self.penalty_).matrix.T

    def at(self, z: Any) -> ConditionalDistributions:
        """The distributions of x given every row of ``z``.

        Parameters
        ----------
        z : array of shape (m, d)

        Returns
        -------
        ConditionalDistributions
        """
        check_is_fitted(self)
        psi = to_numpy(self.features_.transform(check_rows(self, z, reset=False)))
        weights = ConditionalOperator(self.dual_.T).at(psi).T
        mass = weights.sum(axis=0)
        known = mass > UNKNOWN  # farther from every row that was fitted there is only the margin of x
        weights = np.where(known, weights / np.where(known, mass, 1.0), self.shares_[:, None])
        return ConditionalDistributions(self.points_, weights, self.kernel_x_)

    def predict(self, X: Any) -> np.ndarray:
        """E[x | z] for every row of z, (m,) or (m, e).

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
        """
        found = self.at(X).mean()
        return found[:, 0] if found.shape[1] == 1 else found

    def with_prior(self, x: Any, sample_weight: Any = None) -> Self:
        """Kernel Bayes' rule: the same likelihood p(z | x), with the distribution of these rows as the prior of x.

        The rows that were fitted are weighted until their x has that distribution, by
        w_i = φ(x_i)ᵀ (C_xx + λ I)⁻¹ μ_prior (Fukumizu, Song & Gretton 2013, whose squared inverse the positive part of
        the weights makes unnecessary).

        Parameters
        ----------
        x : array of shape (m,) or (m, e)
        sample_weight : array of shape (m,) or None

        Returns
        -------
        ConditionalEmbedding
            Another one, fitted.
        """
        check_is_fitted(self)
        prior = _as_table(x, self.points_)
        shares = row_shares(len(prior), check_weights(sample_weight, prior))
        rng = np.random.default_rng(self.random_state)
        features = fitted_map(UnitHeight(self.kernel_x_), self.points_, self.n_landmarks, rng)
        phi, goal = features.transform(self.points_), features.transform(prior).T @ shares
        weights = np.maximum(ConditionalOperator.of_rows(phi, self.shares_, self.penalty_).at(goal), 0.0)
        if not weights.sum() > 0:
            raise ValueError("The prior has no rows near those that were fitted, so nothing is known of it.")
        found = clone(self)
        vars(found).update(vars(self))
        found.shares_ = weights / weights.sum()
        found._solve(self.features_.transform(self._rows_of_z))
        return found


def _as_table(values: Any, points: np.ndarray) -> np.ndarray:
    """Rows (n, d) of a vector or a table, one at least, with as many columns as the points."""
    rows = to_numpy(finite_table("x", values))
    if not len(rows):
        raise ValueError("x has no rows.")
    if rows.shape[1] != points.shape[1]:
        raise ValueError(f"x needs rows of {points.shape[1]} columns; got {rows.shape[1]}.")
    return rows
