"""Independent components by fourth cumulants, in the columns themselves or in the features of a kernel."""

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from latentviews._arrays import to_numpy
from latentviews._numbers import TINY, thin_svd
from latentviews._parameters import Ability, Constraint, Count, Flag, NoneOr, Positive, Seed, check_parameters
from latentviews._sentences import warn_user
from latentviews._validation import IdentifiabilityWarning, all_or_nothing, as_numbers, check_rows
from latentviews.core.features.landmarks import LandmarkFeatures
from latentviews.core.kernels.base import Kernel
from latentviews.decomposition.cumulants import fourth_cumulants, rotation_of
from latentviews.decomposition.scores import most_likely_rotation

MOST = 40  # sources: cumulants are k⁴ numbers
NOISE = 3.0  # standard errors within which a kurtosis is no more than a Gaussian's


class KernelICA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Independent sources behind mixed columns, x = A s + mean, with sources of no assumed shape.

    Whitened by the covariance, the fourth cumulants are those of a rotation of the sources,

    .. math:: E[z^{\otimes 4}] - \text{(those of a Gaussian)} = \sum_h \kappa_h\, u_h^{\otimes 4},

    and all their contractions become diagonal together (Song et al. 2014, section 7, with the correction that kurtoses
    of both signs leave no positive matrix to whiten with). ``polish`` then turns the sources to the rotation of largest
    likelihood, each source having its own smoothed histogram as its density. With a ``kernel`` the columns are its
    features, and the sources are independent directions of the feature space.

    Not the kernel ICA of Bach & Jordan (2002), which minimises a kernel measure of dependence.

    Parameters
    ----------
    n_components : int or None, default=None
        None takes as many as there are directions that vary, 40 at most.
    kernel : Kernel or None, default=None
        None is the linear kernel: ordinary ICA of the columns.
    features : a transformer or None
        In place of landmarks of ``kernel``.
    polish : bool, default=True
        Whether the likelihood has the last word; without it the answer is that of the cumulants.
    max_iter : int, default=100
    tol : float, default=1e-5
        The polish ends after a step that turns no pair of sources by more.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The rows that take centred columns (or features) to sources of variance one.
    mixing_ : array of shape (n_features, n_components)
        A, the pseudo-inverse of ``components_``.
    mean_ : array of shape (n_features,)
    kurtosis_ : array of shape (n_components,)
        The fourth cumulants of the sources, the largest first.
    n_iter_ : int
        Steps of the polish.
    features_ : transformer or None
        The map from rows to features; None for the columns themselves.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> sources = np.column_stack([rng.uniform(-1, 1, 5000), rng.laplace(size=5000)])
    >>> model = KernelICA(random_state=0).fit(sources @ [[2.0, 1.0], [1.0, -1.0]])
    >>> found = model.transform(sources @ [[2.0, 1.0], [1.0, -1.0]])
    >>> bool(np.abs(np.corrcoef(found.T, sources.T)[:2, 2:]).max(axis=1).min() > 0.999)
    True
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "n_components": NoneOr(Count()),
        "kernel": NoneOr(Ability("gram")),
        "features": NoneOr(Ability("transform")),
        "polish": Flag(),
        "max_iter": Count(),
        "tol": Positive(),
        "random_state": Seed(),
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: Kernel | None = None,
        features: Any = None,
        polish: bool = True,
        max_iter: int = 100,
        tol: float = 1e-5,
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.kernel = kernel
        self.features = features
        self.polish = polish
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the sources.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns)
        y : ignored

        Returns
        -------
        KernelICA
        """
        check_parameters(self)
        if self.kernel is not None and self.features is not None:
            raise ValueError("Pass kernel or features, not both: features have a kernel of their own.")
        x, rng = to_numpy(check_rows(self, X, reset=True)), np.random.default_rng(self.random_state)
        if len(x) < 2:
            raise ValueError(f"Sources are found by their cumulants over rows; got n_samples={len(x)}.")
        self.features_ = self._feature_map(rng)
        phi = x if self.features_ is None else to_numpy(self.features_.fit(x).transform(x))
        self.mean_ = phi.mean(axis=0)
        down, up = self._whitening(phi)
        z = (phi - self.mean_) @ down
        vectors, _ = rotation_of(fourth_cumulants(z), rng)
        self.n_iter_ = 0
        if self.polish:
            turn, self.n_iter_, ended = most_likely_rotation(z @ vectors, self.max_iter, self.tol)
            vectors = vectors @ turn.T
            if not ended:
                warn_user(
                    f"The sources still turn after max_iter = {self.max_iter} steps; raise max_iter, or look at "
                    "polish=False, the answer of the cumulants.",
                    ConvergenceWarning,
                )
        self._keep(z, vectors, down, up)
        return self

    def _feature_map(self, rng: np.random.Generator) -> Any:
        """The features that sources are sought in; None for the columns themselves."""
        if self.features is not None:
            return clone(self.features)
        seed = int(rng.integers(2**31))
        return None if self.kernel is None else LandmarkFeatures(self.kernel, random_state=seed)

    def _whitening(self, phi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The way from centred features to uncorrelated coordinates, (D, k), and back, (k, D)."""
        _, spread, directions = thin_svd((phi - self.mean_) / np.sqrt(len(phi)))
        limit = max(phi.shape) * np.finfo(float).eps * max(spread[0], TINY)
        varying = int(np.sum(spread > max(limit, TINY)))  # of less, one over it is no number
        wanted = min(varying, MOST) if self.n_components is None else self.n_components
        if self.n_components is None and varying > MOST:
            warn_user(
                f"The rows vary in {varying} directions; the sources are sought in the {MOST} of them that vary most, "
                "and blend there where the others hold sources too. Say n_components, or leave columns out.",
                IdentifiabilityWarning,
            )
        if wanted > varying or wanted == 0:
            raise ValueError(
                f"The rows vary in {varying} directions, so no more sources can be told apart; "
                f"n_components asks for {max(wanted, 1)}."
            )
        if wanted > MOST:
            raise ValueError(
                f"Cumulants of {wanted} sources are {wanted}⁴ numbers; n_components may be {MOST} at most."
            )
        return directions[:wanted].T / spread[:wanted], directions[:wanted] * spread[:wanted, None]

    def _keep(self, z: np.ndarray, vectors: np.ndarray, down: np.ndarray, up: np.ndarray) -> None:
        """The sources in order of their kurtosis, of positive largest loading, and a warning where two are Gaussian."""
        kurtosis = np.mean((z @ vectors) ** 4, axis=0) - 3
        order = np.argsort(-np.abs(kurtosis), kind="stable")
        vectors, self.kurtosis_ = vectors[:, order], kurtosis[order]
        mixing = (vectors.T @ up).T
        largest = mixing[np.argmax(np.abs(mixing), axis=0), np.arange(mixing.shape[1])]
        signs = np.where(largest < 0, -1.0, 1.0)
        self.mixing_, self.components_ = mixing * signs, (down @ vectors * signs).T
        self._n_features_out = len(order)
        flat = int(np.sum(np.abs(self.kurtosis_) < NOISE * np.sqrt(24 / len(z))))
        if flat > 1:
            warn_user(
                f"{flat} sources have the kurtosis of a Gaussian, within what {len(z)} rows can tell; rotations among "
                "Gaussian sources cannot be told apart.",
                IdentifiabilityWarning,
            )

    def transform(self, X: Any) -> np.ndarray:
        """The sources of rows.

        Parameters
        ----------
        X : array of shape (n_rows, n_columns)

        Returns
        -------
        array of shape (n_rows, n_components)
        """
        check_is_fitted(self)
        x = to_numpy(check_rows(self, X, reset=False))
        phi = x if self.features_ is None else to_numpy(self.features_.transform(x))
        with np.errstate(over="ignore", invalid="ignore"):
            sources = (phi - self.mean_) @ self.components_.T
        far = np.flatnonzero(~np.isfinite(sources).all(axis=1))
        if len(far):
            raise ValueError(
                f"Row {far[0]} is so far from the rows of the fit that its sources are beyond the range of numbers; "
                "bring it to their unit, or leave it out."
            )
        return sources

    def inverse_transform(self, X: Any) -> np.ndarray:
        """The rows that sources make, A s + mean; of features there is no way back to rows.

        Parameters
        ----------
        X : array of shape (n_rows, n_components)

        Returns
        -------
        array of shape (n_rows, n_columns)
        """
        check_is_fitted(self)
        if self.features_ is not None:
            raise ValueError("Sources in the features of a kernel have no rows; inverse_transform needs kernel=None.")
        sources = as_numbers("Sources", X)
        if sources.ndim != 2 or sources.shape[1] != len(self.components_):
            raise ValueError(f"Sources need shape (n, {len(self.components_)}); got {sources.shape}.")
        return sources @ self.mixing_.T + self.mean_
