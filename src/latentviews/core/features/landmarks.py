"""Any kernel, seen from a few of the rows: φ(x) = Λ^(-1/2) Uᵀ k(Z, x)."""

from collections.abc import Callable
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from latentviews._arrays import in_library_of, to_numpy
from latentviews._clusters import kmeans
from latentviews._numbers import thinned
from latentviews._parameters import Ability, Constraint, Count, NoneOr, OneOf, Seed, Share, check_parameters
from latentviews._validation import all_or_nothing, check_rows
from latentviews.core.features.base import check_inside
from latentviews.core.features.cholesky import checked_values, drawn, largest, pivoted_cholesky
from latentviews.core.kernels.base import Kernel, UnitHeight
from latentviews.core.kernels.mixed import widened
from latentviews.core.kernels.real import Gaussian

IN_RANGE = 100.0  # logs of heights of kernels whose products are no trouble
FEWEST, PER_LANDMARK = 4096, 64  # rows that landmarks are picked from: so many, or as many for each
CARRIED = 0.25  # share of a kernel, over the rows, that landmarks must see for a density to stand on them
FEW, FEWER = 200, 64  # landmarks of densities, and where so many do not see as much of their kernel
OCTAVES = 16  # that a kernel is widened by at most, more than rules and rows differ by


class LandmarkFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""The kernel seen from a few landmarks Z (Nyström; incomplete Cholesky is one way to choose them).

    .. math:: \varphi(x) = \Lambda^{-1/2} U^\top k(Z, x), \qquad k(Z, Z) = U \Lambda U^\top

    With every row a landmark the map is exact on those rows.

    Parameters
    ----------
    kernel : Kernel, default=Gaussian()
        Rules in it are resolved on the rows given to ``fit``.
    n_landmarks : int or None, default=64
        The number of landmarks; None takes every different row. They are picked from 4,096 rows, or 64 for each, evenly
        spaced among all.
    selection : {"random_cholesky", "cholesky", "uniform", "kmeans"}, default="random_cholesky"
        How landmarks are picked: pivoted Cholesky whose next pivot is drawn in proportion to the residual
        (Chen, Epperly, Tropp & Webber 2024), the largest residual first, uniformly, or as k-means centres.
    tol : float, default=1e-12
        Cholesky stops when the residual trace falls below this share of the trace, and directions of
        k(Z, Z) with eigenvalues below this share of the largest are dropped.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    kernel_ : Kernel
        The kernel with its rules resolved.
    landmarks_ : array of shape (n_landmarks, n_features)
    log_unit_ : float
        The log of what inner products of features are the kernel over: its height where that is far from one, and one.
    tail_ : array of shape (n_landmarks, n_features_out), U Λ^(-1/2)

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(-3, 3, 50)[:, None]
    >>> phi = LandmarkFeatures(Gaussian(1.0), n_landmarks=None).fit(x)
    >>> gram = phi.transform(x) @ phi.transform(x).T
    >>> bool(np.allclose(gram, Gaussian(1.0).gram(x, x)))
    True
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "kernel": NoneOr(Ability("gram")),
        "n_landmarks": NoneOr(Count()),
        "selection": OneOf(lambda: SELECTIONS),
        "tol": Share("a share from 0 to below 1", zero=True),
        "random_state": Seed(),
    }

    def __init__(
        self,
        kernel: Kernel | None = None,
        n_landmarks: int | None = 64,
        *,
        selection: str = "random_cholesky",
        tol: float = 1e-12,
        random_state: Any = None,
    ):
        self.kernel = kernel
        self.n_landmarks = n_landmarks
        self.selection = selection
        self.tol = tol
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Self:
        """Pick landmarks among the rows of ``X``.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        check_parameters(self)
        x = to_numpy(check_rows(self, X, reset=True))
        self.kernel_ = (Gaussian() if self.kernel is None else self.kernel).adapt(x)
        check_inside(self.kernel_, x)
        self.log_unit_ = log_unit(self.kernel_, x.shape[1])
        if self.n_landmarks is None:
            self.landmarks_ = np.unique(x, axis=0)
        else:
            size = min(self.n_landmarks, len(x))
            rng, some = np.random.default_rng(self.random_state), thinned(x, max(FEWEST, PER_LANDMARK * size))
            self.landmarks_ = SELECTIONS[self.selection](self.kernel_in_units, some, size, self.tol, rng)
        return self._on_landmarks()

    def _on_landmarks(self) -> Self:
        """With the tail of its landmarks, U Λ^(-1/2)."""
        values, vectors = np.linalg.eigh(checked_values(self.kernel_in_units.gram(self.landmarks_, self.landmarks_)))
        keep = values > max(self.tol * values[-1], 0.0)
        tail = (vectors[:, keep] / np.sqrt(values[keep]))[:, ::-1]
        self.tail_ = np.ascontiguousarray(tail)  # as in a pickled copy, whose products are then rounded alike
        self._n_features_out = self.tail_.shape[1]
        return self

    def raw(self, X: Any) -> Any:
        """The kernel between the rows of ``X`` and the landmarks.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_raw)
        """
        check_is_fitted(self)
        return self._raw(check_rows(self, X, reset=False))

    def _raw(self, x: Any) -> Any:
        """What ``raw`` gives of rows that were checked."""
        return self.kernel_in_units.gram(x, in_library_of(self.landmarks_, x))

    @property
    def kernel_in_units(self) -> Kernel:
        """The kernel that ``raw`` has the values of: over its height where that is far from one."""
        return UnitHeight(self.kernel_) if self.log_unit_ else self.kernel_

    def transform(self, X: Any) -> Any:
        """The feature vectors of the rows of ``X``.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_features_out)
        """
        raw = self.raw(X)
        return raw @ in_library_of(self.tail_, raw)


def log_unit(kernel: Kernel, dim: int) -> float:
    """The log of the unit that values of the kernel are counted in: its height where that is far from one, or one."""
    height = kernel.log_height(dim) if hasattr(kernel, "log_height") else 0.0
    return height if abs(height) > IN_RANGE else 0.0


def _random_cholesky(kernel: Kernel, x: np.ndarray, size: int, tol: float, rng: np.random.Generator) -> np.ndarray:
    return x[pivoted_cholesky(kernel, x, size, tol, lambda residual: drawn(residual, rng))[0]]


def _cholesky(kernel: Kernel, x: np.ndarray, size: int, tol: float, rng: np.random.Generator) -> np.ndarray:
    return x[pivoted_cholesky(kernel, x, size, tol, largest)[0]]


def _uniform(kernel: Kernel, x: np.ndarray, size: int, tol: float, rng: np.random.Generator) -> np.ndarray:
    return x[np.sort(rng.choice(len(x), size=size, replace=False))]


def _kmeans(kernel: Kernel, x: np.ndarray, size: int, tol: float, rng: np.random.Generator) -> np.ndarray:
    size = min(size, len(np.unique(x, axis=0)))
    return kmeans(x, size, int(rng.integers(2**31))).cluster_centers_


SELECTIONS: dict[str, Callable[[Kernel, np.ndarray, int, float, np.random.Generator], np.ndarray]] = {
    "random_cholesky": _random_cholesky,
    "cholesky": _cholesky,
    "uniform": _uniform,
    "kmeans": _kmeans,
}


def first_landmarks(phi: LandmarkFeatures, size: int) -> LandmarkFeatures:
    """The kernel seen from the first landmarks alone; where Cholesky picked them, those that tell most."""
    fewer = copy(phi)
    fewer.landmarks_ = phi.landmarks_[:size]
    return fewer._on_landmarks()


def few_landmarks(kernel: Kernel, x: np.ndarray, seed: int, size: int = FEW) -> LandmarkFeatures:
    """At most 200 landmarks from 4,096 rows: enough for the densities of a view of several columns."""
    return LandmarkFeatures(kernel, size, random_state=seed).fit(thinned(x, FEWEST))


def carrying_landmarks(kernel: Kernel, x: np.ndarray, seed: int) -> LandmarkFeatures:
    """The few landmarks of a kernel where they see a quarter of it, else 64 and the kernel so wide that they do.

    Narrower kernels would have next to no mass between landmarks. What they see of the kernel is Σ_i |φ(x_i)|² over
    Σ_i k(x_i, x_i).
    """
    kernel, rows, some = kernel.adapt(x), thinned(x, FEWEST), thinned(x, FEWEST // 4)

    def carries(octaves: float) -> float:
        """The share of a wider kernel that landmarks see which are quickly picked."""
        wider = widened(kernel, 2.0**octaves)
        return _carried(LandmarkFeatures(wider, FEWER, selection="uniform", random_state=seed).fit(some), rows)

    if len(rows) == len(some) or carries(0) * FEW / FEWER >= CARRIED:  # more see more, in proportion at most
        phi = few_landmarks(kernel, rows, seed)
        if _carried(phi, rows) >= CARRIED:
            return phi
    octaves = float(next((i for i in range(1, OCTAVES) if carries(i) >= CARRIED), OCTAVES))
    for step in (0.5, 0.25):
        octaves = octaves - step if carries(octaves - step) >= CARRIED else octaves
    return LandmarkFeatures(widened(kernel, 2.0**octaves), FEWER, random_state=seed).fit(some)


def _carried(phi: LandmarkFeatures, x: np.ndarray) -> float:
    """The share of the kernel that the landmarks see, over some rows."""
    seen = phi.transform(x)
    return float(np.vdot(seen, seen) / phi.kernel_in_units.diagonal(x).sum())


def many_landmarks(kernel: Kernel, x: np.ndarray, seed: int) -> LandmarkFeatures:
    """All rows as landmarks, or a thousand of them at random: narrow densities of several columns need as many."""
    return LandmarkFeatures(kernel, 1000, selection="uniform", random_state=seed).fit(x)
