"""One column on a uniform grid: linear bins, and feature maps by them."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from latentviews._arrays import counts_there, on_host, to_numpy
from latentviews._parameters import Ability, Constraint, Count, NoneOr, Nonnegative, check_parameters
from latentviews._validation import all_or_nothing, check_rows
from latentviews.core.features.base import check_inside
from latentviews.core.features.cholesky import largest, pivoted_cholesky
from latentviews.core.features.device_bins import device_bins
from latentviews.core.kernels.base import Kernel
from latentviews.core.kernels.real import Gaussian
from latentviews.core.kernels.space import Space
from latentviews.core.streams import weigh


class BinnedFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""A kernel on one column, seen through linear binning onto a uniform grid g.

    .. math:: \varphi(x) = F^\top b(x), \qquad k(g, g) \approx F F^\top

    b(x) shares a row between the two grid points beside it, so ``raw`` is sparse and sums over rows cost a few
    nanoseconds per row whatever the kernel. F is an incomplete Cholesky factor.

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

    _parameters: ClassVar[dict[str, Constraint]] = {
        "kernel": NoneOr(Ability("gram")),
        "n_bins": Count(2),
        "max_features": Count(),
        "tol": Nonnegative(),
    }

    def __init__(self, kernel: Kernel | None = None, n_bins: int = 2048, *, max_features: int = 512, tol: float = 1e-8):
        self.kernel = kernel
        self.n_bins = n_bins
        self.max_features = max_features
        self.tol = tol

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Self:
        """Lay the grid over the column and factor the kernel on it."""
        check_parameters(self)
        x = to_numpy(check_rows(self, X, reset=True))
        if x.shape[1] != 1:
            raise ValueError(f"BinnedFeatures bins one column; got {x.shape[1]}. LandmarkFeatures takes any number.")
        self.kernel_ = (Gaussian() if self.kernel is None else self.kernel).adapt(x)
        check_inside(self.kernel_, x)
        self.grid_, self.kernel_ = grid_and_kernel(x[:, 0], self.kernel_, self.n_bins)
        size = min(self.max_features, len(self.grid_))
        _, self.tail_ = pivoted_cholesky(self.kernel_, self.grid_[:, None], size, self.tol, largest)
        self._n_features_out = self.tail_.shape[1]
        return self

    def raw(self, X: Any) -> Any:
        """The shares b(x) of every row in the grid points, (n, n_bins), sparse."""
        check_is_fitted(self)
        return self._raw(check_rows(self, X, reset=False))

    def _raw(self, x: Any) -> Any:
        """What ``raw`` gives of rows that were checked."""
        column, space = x[:, 0], self.kernel_.space
        shares = linear_bins(column, self.grid_)
        return weigh(shares, space.contains(column)) if space is not None and space.bordered else shares

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

    def transform(self, X: Any) -> Any:
        """The shares of every row in the grid points."""
        return linear_bins(X[:, 0], self.grid_)


def uniform_grid(x: np.ndarray, width: float, most: int = 4096, space: Space | None = None) -> np.ndarray:
    """Points over the range of ``x`` inside a space, four per bandwidth if there may be as many.

    Where one per bandwidth is too many, the grid ends before a few values that lie far out: it then covers the middle
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
    low, high = (low, high) if space is None else space.clipped(low, high)
    finest = max(width, (high - low) / most)  # a width may be so small that their ratio is no number
    size = int(np.clip(4 * (high - low) / finest, min(256, most), most))
    short = max(size * float(np.spacing(max(abs(low), abs(high)))) - (high - low) / 2, 0.0)
    return np.linspace(low - short, high + short, size)  # points are two floats apart at least


def grid_and_kernel(x: np.ndarray, kernel: Kernel, most: int) -> tuple[np.ndarray, Kernel]:
    """A uniform grid for a kernel on one column, and the kernel, no narrower than a step of it."""
    if "bandwidth" not in kernel.get_params():
        return uniform_grid(x, float(np.ptp(x)) / 64, most, kernel.space), kernel
    width = float(np.ravel(kernel.get_params()["bandwidth"])[0])
    grid = uniform_grid(x, width, most, kernel.space)
    step = float(grid[1] - grid[0])
    return grid, kernel if width >= step else clone(kernel).set_params(bandwidth=step)


def linear_bins(x: Any, grid: np.ndarray) -> Any:
    """The matrix that shares every x (n,) between the two points of a uniform grid beside it.

    It is SciPy's sparse matrix, or `DeviceBins` of an array library that can count.
    """
    if counts_there(x):
        return device_bins(x, grid)
    x = on_host(x)
    with np.errstate(all="ignore"):  # however far, it is at an end
        place = (x - grid[0]) / (grid[1] - grid[0])
    np.clip(place, 0.0, len(grid) - 1.0, out=place)
    if np.isnan(place.sum()):  # what is no number is at an end, too
        place[np.isnan(place)] = 0.0
    left = np.floor(place)
    place -= np.minimum(left, len(grid) - 2, out=left)
    indices, shares = np.empty((len(x), 2), dtype=np.int32), np.empty((len(x), 2))
    np.copyto(indices[:, 0], left, casting="unsafe")
    np.add(indices[:, 0], 1, out=indices[:, 1])
    shares[:, 1] = place
    np.subtract(1, place, out=shares[:, 0])
    starts = np.arange(0, 2 * len(x) + 1, 2, dtype=np.int32)
    return sparse.csr_array((shares.ravel(), indices.ravel(), starts), shape=(len(x), len(grid)))
