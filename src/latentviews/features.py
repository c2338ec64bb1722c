"""Feature maps: finite vectors φ(x) whose inner products are a kernel, exactly or nearly.

They are scikit-learn transformers, and any other transformer may stand in their place. A map may be linear
in something cheaper, φ(x) = raw(x) @ tail_: sums over rows are then taken of ``raw`` and multiplied by ``tail_`` once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from latentviews._arrays import like, to_numpy
from latentviews._validation import all_or_nothing, check_ability, check_count, check_rows
from latentviews.codebooks import kmeans
from latentviews.kernels import Delta, Gaussian, Kernel, Laplace, Matern, UnitHeight

IN_RANGE = 100.0  # logs of heights of kernels whose products are no trouble


class LandmarkFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""The kernel seen from a few landmarks Z (Nyström; incomplete Cholesky is one way to choose them).

    .. math:: \varphi(x) = \Lambda^{-1/2} U^\top k(Z, x), \qquad k(Z, Z) = U \Lambda U^\top

    With every row a landmark the map is exact on those rows.

    Parameters
    ----------
    kernel : Kernel, default=Gaussian()
        Rules in it are resolved on the rows given to ``fit``.
    n_landmarks : int or None, default=64
        The number of landmarks; None takes every different row.
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
        """Pick landmarks among the rows of ``X``."""
        x = to_numpy(check_rows(self, X, reset=True))
        if self.selection not in SELECTIONS:
            raise ValueError(f"selection must be one of {sorted(SELECTIONS)}; got {self.selection!r}.")
        self.kernel_ = check_ability("kernel", Gaussian() if self.kernel is None else self.kernel, "gram").adapt(x)
        self.log_unit_ = _log_unit(self.kernel_, x.shape[1])
        if self.n_landmarks is None:
            self.landmarks_ = np.unique(x, axis=0)
        else:
            size = min(check_count("n_landmarks", self.n_landmarks), len(x))
            rng = np.random.default_rng(self.random_state)
            self.landmarks_ = SELECTIONS[self.selection](self._kernel_in_units, x, size, self.tol, rng)
        if not 0 <= self.tol < 1:
            raise ValueError(f"tol must be a share from 0 to below 1; got {self.tol!r}.")
        values, vectors = np.linalg.eigh(_check_values(self._kernel_in_units.gram(self.landmarks_, self.landmarks_)))
        keep = values > max(self.tol * values[-1], 0.0)
        self.tail_ = (vectors[:, keep] / np.sqrt(values[keep]))[:, ::-1]
        self._n_features_out = self.tail_.shape[1]
        return self

    def raw(self, X: Any) -> Any:
        """The kernel between the rows of ``X`` and the landmarks."""
        check_is_fitted(self)
        x = check_rows(self, X, reset=False)
        return self._kernel_in_units.gram(x, like(self.landmarks_, x))

    @property
    def _kernel_in_units(self) -> Kernel:
        return UnitHeight(self.kernel_) if self.log_unit_ else self.kernel_

    def transform(self, X: Any) -> Any:
        """The feature vectors of the rows of ``X``."""
        raw = self.raw(X)
        return raw @ like(self.tail_, raw)


def _log_unit(kernel: Kernel, dim: int) -> float:
    """The log of the unit that values of the kernel are counted in: its height where that is far from one, or one."""
    height = kernel.log_height(dim) if hasattr(kernel, "log_height") else 0.0
    return height if abs(height) > IN_RANGE else 0.0


def _check_values(values: np.ndarray) -> np.ndarray:
    """Values of the kernel, if they are in range and tell anything."""
    if not np.all(np.isfinite(values)):
        raise ValueError("The values of the kernel are out of range; scale the rows.")
    if not np.any(values):
        raise ValueError("The kernel is zero between all rows that landmarks are picked from.")
    return values


def _pivoted(
    kernel: Kernel, x: np.ndarray, size: int, tol: float, pick: Callable[[np.ndarray], int]
) -> tuple[list[int], np.ndarray]:
    """Incomplete Cholesky k(x, x) ≈ F Fᵀ: the pivots, picked by what is not yet explained, and F."""
    residual = np.array(_check_values(kernel.diagonal(x)), dtype=float)
    stop = tol * residual.sum()
    factor = np.empty((len(x), size))
    chosen: list[int] = []
    while len(chosen) < size and residual.sum() > stop:
        pivot, i = pick(residual), len(chosen)
        column = kernel.gram(x, x[[pivot]])[:, 0] - factor[:, :i] @ factor[pivot, :i]
        if column[pivot] <= 0:  # the residual there was rounding
            residual[pivot] = 0.0
            continue
        factor[:, i] = column / np.sqrt(column[pivot])
        residual = np.maximum(residual - factor[:, i] ** 2, 0.0)
        residual[pivot] = 0.0
        chosen.append(pivot)
    return chosen, factor[:, : len(chosen)]


def _random_cholesky(kernel: Kernel, x: np.ndarray, size: int, tol: float, rng: np.random.Generator) -> np.ndarray:
    return x[_pivoted(kernel, x, size, tol, lambda residual: _draw(residual, rng))[0]]


def _draw(residual: np.ndarray, rng: np.random.Generator) -> int:
    """An index drawn in proportion to the residual."""
    cumulative = np.cumsum(residual)
    return int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right").clip(max=len(residual) - 1))


def _cholesky(kernel: Kernel, x: np.ndarray, size: int, tol: float, rng: np.random.Generator) -> np.ndarray:
    return x[_pivoted(kernel, x, size, tol, _largest)[0]]


def _largest(residual: np.ndarray) -> int:
    return int(residual.argmax())


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


class BinnedFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""A kernel on one column, seen through linear binning onto a uniform grid g.

    .. math:: \varphi(x) = F^\top b(x), \qquad k(g, g) \approx F F^\top

    b(x) shares a row between the two grid points beside it, so ``raw`` is sparse and sums over rows cost a few
    nanoseconds a row whatever the kernel. F is an incomplete Cholesky factor.

    Parameters
    ----------
    kernel : Kernel, default=Gaussian()
    n_bins : int, default=2048
        The most grid points; fewer are used where four a bandwidth are fewer.
    max_features : int, default=512
        The most columns of F.
    tol : float, default=1e-8
        The share of the trace of k(g, g) that F may leave out.

    Attributes
    ----------
    kernel_ : Kernel
    grid_ : array of shape (n_bins,)
    tail_ : array of shape (n_bins, n_features_out), F
    """

    def __init__(self, kernel: Kernel | None = None, n_bins: int = 2048, *, max_features: int = 512, tol: float = 1e-8):
        self.kernel = kernel
        self.n_bins = n_bins
        self.max_features = max_features
        self.tol = tol

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Self:
        """Lay the grid over the column and factor the kernel on it."""
        x = to_numpy(check_rows(self, X, reset=True))
        if x.shape[1] != 1:
            raise ValueError(f"BinnedFeatures bins one column; got {x.shape[1]}. LandmarkFeatures takes any number.")
        self.kernel_ = (Gaussian() if self.kernel is None else self.kernel).adapt(x)
        self.grid_, self.kernel_ = grid_and_kernel(x[:, 0], self.kernel_, check_count("n_bins", self.n_bins, 2))
        size = min(check_count("max_features", self.max_features), len(self.grid_))
        _, self.tail_ = _pivoted(self.kernel_, self.grid_[:, None], size, self.tol, _largest)
        self._n_features_out = self.tail_.shape[1]
        return self

    def raw(self, X: Any) -> sparse.csr_array:
        """The shares b(x) of every row in the grid points, (n, n_bins), sparse."""
        check_is_fitted(self)
        x = to_numpy(check_rows(self, X, reset=False))[:, 0]
        return linear_bins(x, self.grid_)

    def transform(self, X: Any) -> np.ndarray:
        """The feature vectors of the rows of ``X``."""
        return self.raw(X) @ self.tail_


@dataclass(frozen=True, eq=False)
class GridFeatures:
    """Linear bins of one column, for sums that keep the whole distribution; the kernel comes later.

    A bare stand-in for a fitted map: its vectors are weights on ``grid_``, not kernel features.
    """

    grid_: np.ndarray
    kernel_: Kernel
    adaptive: bool = False  # whether every component finds its own bandwidth, no finer than ``resolution``
    resolution: float = 0.0

    def transform(self, X: Any) -> sparse.csr_array:
        """The shares of every row in the grid points."""
        return linear_bins(to_numpy(X)[:, 0], self.grid_)


def uniform_grid(x: np.ndarray, width: float, most: int = 4096) -> np.ndarray:
    """Points over the range of ``x``, four a bandwidth if there may be as many.

    Where one a bandwidth is too many, the grid ends before a few values that lie far out: it then covers the middle
    99 %, and as much beyond, up to twice their span, as a point a bandwidth can.
    """
    width = width or 1.0  # a constant column has no width of its own
    low, high = x.min() - 2 * width, x.max() + 2 * width
    if high - low > most * width:
        inner = np.quantile(x, [0.005, 0.995])
        margin = np.ptp(inner) / 2 + 2 * width
        middle, reach = float(np.median(x)), most * width / 2
        low = max(inner[0] - margin, min(middle - reach, inner[0] - 2 * width))
        high = min(inner[1] + margin, max(middle + reach, inner[1] + 2 * width))
    return np.linspace(low, high, int(np.clip(4 * (high - low) / width, min(256, most), most)))


def grid_and_kernel(x: np.ndarray, kernel: Kernel, most: int) -> tuple[np.ndarray, Kernel]:
    """A uniform grid for a kernel on one column, and the kernel, no narrower than a step of it."""
    if "bandwidth" not in kernel.get_params():
        return uniform_grid(x, float(np.ptp(x)) / 64, most), kernel
    width = float(np.ravel(kernel.get_params()["bandwidth"])[0])
    grid = uniform_grid(x, width, most)
    step = float(grid[1] - grid[0])
    return grid, kernel if width >= step else clone(kernel).set_params(bandwidth=step)


def linear_bins(x: np.ndarray, grid: np.ndarray) -> sparse.csr_array:
    """The matrix that shares every x between the two points of a uniform grid beside it."""
    place = np.clip((x - grid[0]) / (grid[1] - grid[0]), 0, len(grid) - 1)
    left = np.minimum(place.astype(np.int32), len(grid) - 2)
    right = place - left
    indices = np.stack([left, left + 1], axis=1).ravel()
    shares = np.stack([1 - right, right], axis=1).ravel()
    starts = np.arange(0, 2 * len(x) + 1, 2, dtype=np.int32)
    return sparse.csr_array((shares, indices, starts), shape=(len(x), len(grid)))


class OneHotFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """The delta kernel's feature map: one indicator a value; a value not seen in ``fit`` maps to zero.

    Parameters
    ----------
    n_categories : int or "auto", default="auto"
        The values are 0, …, n_categories - 1, or all different rows seen in ``fit``.

    Attributes
    ----------
    kernel_ : Delta
    categories_ : array of shape (n_categories, n_features)

    Examples
    --------
    >>> import numpy as np
    >>> OneHotFeatures().fit_transform(np.array([[2.0], [5.0], [2.0]]))
    array([[1., 0.],
           [0., 1.],
           [1., 0.]])
    """

    def __init__(self, n_categories: int | str = "auto"):
        self.n_categories = n_categories

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the values."""
        x = to_numpy(check_rows(self, X, reset=True))
        self.kernel_ = Delta()
        if self.n_categories == "auto":
            self.categories_ = np.unique(x, axis=0)
        else:
            self.categories_ = np.arange(float(check_count("n_categories", self.n_categories)))[:, None]
            self._check_codes(x)
        self._n_features_out = len(self.categories_)
        return self

    def _check_codes(self, x: np.ndarray) -> None:
        if x.shape[1] != 1 or not np.isin(x, self.categories_).all():
            raise ValueError(
                f"OneHotFeatures({self.n_categories}) expects one column of the codes 0 to "
                f"{self.n_categories}-1; got {x.shape[1]} column(s) with values from {x.min():g} to {x.max():g}. "
                'Use n_categories="auto" to learn the values.'
            )

    def transform(self, X: Any) -> Any:
        """The indicators of the rows of ``X``."""
        check_is_fitted(self)
        x = check_rows(self, X, reset=False)
        return self.kernel_.gram(x, like(self.categories_, x))


def features_for(kernel: Kernel, n_columns: int) -> Any:
    """The map that serves a kernel when the user names none."""
    if isinstance(kernel, Delta):
        return OneHotFeatures()
    if n_columns == 1 and isinstance(kernel, Gaussian | Laplace | Matern):
        return BinnedFeatures(kernel)
    return LandmarkFeatures(kernel)


def few_landmarks(kernel: Kernel, x: np.ndarray, seed: int) -> LandmarkFeatures:
    """At most 200 landmarks from the first 4,000 rows: enough for the densities of a view of several columns."""
    return LandmarkFeatures(kernel, 200, random_state=seed).fit(x[:4000])
