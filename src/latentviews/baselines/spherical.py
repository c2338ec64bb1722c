"""The method of moments for spherical Gaussians."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy import stats

from latentviews._numbers import standardised
from latentviews._parameters import Ability, Constraint, Count, NoneOr, Seed, WithData
from latentviews._validation import UnsupportedError, all_or_nothing
from latentviews.baselines._shared import OneColumnViews
from latentviews.core.components import as_rows
from latentviews.core.tensors import JointDiagonalization, Solver
from latentviews.core.whitening import symmetric_tensor, symmetric_whitening


@dataclass(frozen=True, eq=False)
class GaussianView:
    """The distributions of one view in k components, as Gaussians."""

    means: np.ndarray  # (k,)
    deviations: np.ndarray  # (k,)

    def density(self, x: Any) -> np.ndarray:
        """The densities, (n, k)."""
        return np.exp(self.log_density(x))

    def log_density(self, x: Any) -> np.ndarray:
        """The log-densities, (n, k)."""
        z = standardised(np.asarray(as_rows(x))[:, :1], self.means, self.deviations)
        return stats.norm.logpdf(z) - np.log(self.deviations)

    @property
    def n_parameters(self) -> np.ndarray:
        """One mean per component, (k,); its one variance is counted by the model."""
        return np.ones(len(self.means))

    def sample(self, component: int, size: int, rng: np.random.Generator) -> np.ndarray:
        """Rows drawn from one component, (size, 1)."""
        return rng.normal(self.means[component], self.deviations[component], (size, 1))

    def take(self, order: np.ndarray) -> "GaussianView":
        """The components in another order, or some of them."""
        return GaussianView(self.means[order], self.deviations[order])


class SphericalSpectral(OneColumnViews):
    r"""The method of moments for mixtures of spherical Gaussians (Hsu & Kakade 2013, theorem 2).

    With σ̄² the smallest eigenvalue of the covariance, v its eigenvector and M₁ = E[x (vᵀ(x − E x))²],

    .. math:: E[x x^\top] - \bar\sigma^2 I = \sum_h \pi_h \mu_h \mu_h^\top, \qquad
              E[x^{\otimes 3}] - \sum_i (M_1 \otimes e_i \otimes e_i + \cdots) = \sum_h \pi_h \mu_h^{\otimes 3}.

    The means must be linearly independent, so there can be no more components than columns. The origin is moved along v
    first, for means that are independent about some origin only.

    Parameters
    ----------
    n_components : int, default=2
    views : list of column indices or names, or None
        Which columns are views; by default all.
    solver : solver, default=JointDiagonalization()
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    weights_ : array of shape (k,), decreasing
    components_ : list of GaussianView, one per view
    means_ : array of shape (k, n_views)
    variances_ : array of shape (k,)
        Kept above a hundredth of the smallest eigenvalue of the covariance.
    views_ : tuple of lists of column indices
    n_components_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews.baselines import SphericalSpectral
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3)) + 6.0 * (rng.random((2000, 1)) < 0.3)
    >>> SphericalSpectral(2, random_state=0).fit(X).weights_.round(1)
    array([0.7, 0.3])
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "n_components": Count(),
        "views": WithData(),
        "solver": NoneOr(Ability("decompose")),
        "random_state": Seed(),
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        views: Sequence[Any] | None = None,
        solver: Solver | None = None,
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.views = views
        self.solver = solver
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Self:
        """Match the first three moments.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        table, columns, rank = self._read(X)
        if rank > table.shape[1]:
            raise UnsupportedError(
                f"SphericalSpectral finds at most as many components as there are columns, since their means must be "
                f"linearly independent; got {rank} components and {table.shape[1]} columns. MultiViewMixture has no "
                "such limit."
            )
        rng = np.random.default_rng(self.random_state)
        solver = JointDiagonalization() if self.solver is None else self.solver
        unit = _unit(table)
        origin = _origin(table / unit, rank)
        moments = raw_moments(table / unit - origin)
        found = spherical_components(*moments, rank, solver, rng)
        order = np.argsort(-found.weights, kind="stable")
        means, variances = unit * (found.means + origin), unit**2 * found.variances
        self.means_, self.variances_ = means[order], variances[order]
        views = [GaussianView(column, np.sqrt(variances)) for column in means.T]
        self._keep(found.weights / found.weights.sum(), views, columns, order)
        return self

    def _n_parameters(self) -> float:
        return super()._n_parameters() + self.n_components_  # one variance per class, shared by its views


class SphericalComponents(NamedTuple):
    """Spherical Gaussians."""

    weights: np.ndarray  # (k,), the raw λ⁻²
    means: np.ndarray  # (k, d)
    variances: np.ndarray  # (k,)


def _unit(table: np.ndarray) -> float:
    """A power of two near the range of the data: third powers in it are numbers, and no digit is lost by it."""
    return float(2.0 ** np.floor(np.log2(np.ptp(table, axis=0).max())))


def _origin(table: np.ndarray, rank: int) -> np.ndarray:
    """A point off the plane of the means, as far as they are from one another."""
    center = table.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(table.T))
    signal = np.mean(values[::-1][: max(rank - 1, 1)] - values[0])
    return center - np.sqrt(max(signal, values[0])) * vectors[:, 0]


def raw_moments(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """E[x], E[x xᵀ] and E[x ⊗ x ⊗ x]."""
    n = len(x)
    return x.mean(axis=0), x.T @ x / n, np.einsum("ni,nj,nl->ijl", x, x, x, optimize=True) / n


def spherical_components(
    first: np.ndarray, second: np.ndarray, third: np.ndarray, rank: int, solver: Solver, rng: np.random.Generator
) -> SphericalComponents:
    """Hsu & Kakade (2013), theorem 2: the mixture of spherical Gaussians with these raw moments."""
    values, vectors = np.linalg.eigh(second - np.outer(first, first))
    noise, v = values[0], vectors[:, 0]
    along = v @ first
    weighted = third @ v @ v - 2 * along * second @ v + along**2 * first  # M₁ = Σ π_h σ_h² μ_h
    gaussian = np.einsum("a,bc->abc", weighted, np.eye(len(first)))
    signal = second - noise * np.eye(len(first))
    try:
        down = symmetric_whitening(signal, rank)
    except UnsupportedError as error:
        raise UnsupportedError(
            f"The means of {rank} spherical Gaussians in {len(first)} columns are too near a plane of fewer "
            "dimensions; ask for fewer components, or use MultiViewMixture, which does not need independent means."
        ) from error
    tensor = third - sum(gaussian.transpose(order) for order in ((0, 1, 2), (1, 0, 2), (1, 2, 0)))
    found = solver.decompose(symmetric_tensor(np.einsum("abc,ai,bj,cl->ijl", tensor, down, down, down)), rng)
    weights, means = found.values**-2, (signal @ down @ (found.vectors * found.values)).T
    products = np.linalg.lstsq(means.T, weighted, rcond=None)[0]  # π_h σ_h²
    floor = max(noise / 100, 1e-6 * np.trace(second) / len(first))  # few rows may leave no noise at all
    return SphericalComponents(weights, means, np.maximum(products / weights, floor))
