"""Point masses of a column: values that many rows have exactly, and a feature map that keeps them apart."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from array_api_compat import device
from scipy import sparse
from scipy.linalg import block_diag
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from latentviews._arrays import counts_there, namespace, to_numpy
from latentviews._parameters import Ability, Constraint, NoneOr, Such, check_parameters, is_number
from latentviews._validation import all_or_nothing, check_rows
from latentviews.core.features.base import raw_vectors, tail_of
from latentviews.core.features.bins import BinnedFeatures
from latentviews.core.features.device_bins import DeviceBins
from latentviews.core.kernels.base import Kernel
from latentviews.core.kernels.once import distinct

SHARE = 0.05  # of the rows that a point mass has at least
RATIO = 10  # times the rows of any value beside it
BESIDE = 2  # values on either side that it is compared with
MOST = 3  # more values that stand out are those that people round to
OTHERS = 20  # different values that must be left, or the column holds codes


def find_point_masses(x: np.ndarray) -> np.ndarray:
    """The values of a column (n,), none missing, that are point masses of its distribution, increasing.

    Such a value is that of at least 5 % of the rows, and of ten times as many as any of the two values next to it on
    either side, so at least ten. Rounded values have as many ties beside them, and are none. A column with more than
    three such values is heaped, one with fewer than 20 others holds codes: they have none.
    """
    values, counts = distinct(x)
    outstanding = counts >= max(SHARE * len(x), RATIO)
    while outstanding.any():
        fails = [i for i in np.flatnonzero(outstanding) if counts[i] < RATIO * _beside(counts, outstanding, int(i))]
        if not fails:
            break
        outstanding[fails] = False  # ordinary values, that others have to be compared with
    found = values[outstanding]
    return found if 0 < len(found) <= MOST and len(values) - len(found) >= OTHERS else np.empty(0)


def _beside(counts: np.ndarray, outstanding: np.ndarray, place: int) -> int:
    """The most rows of a value next to that at a place, among those that do not stand out."""
    ordinary = np.flatnonzero(~outstanding)
    middle = int(np.searchsorted(ordinary, place))
    return int(counts[ordinary[max(middle - BESIDE, 0) : middle + BESIDE]].max(initial=1))


def _are_finite(values: Any) -> bool:
    several = isinstance(values, Sequence | np.ndarray) and not isinstance(values, str)
    return several and all(is_number(one) and np.isfinite(one) for one in values)


class PointMassFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""A feature map of one column in which some values are orthogonal to all others.

    .. math:: \tilde k(x, y) = k(x, y) \text{ where neither is a point mass}, \quad
              \tilde k(a, a) = k(0), \quad \tilde k(a, x) = 0

    as if point masses lay infinitely far from all other values, and from each other. The kernel's bandwidth is read off
    the other rows.

    Parameters
    ----------
    features : transformer, default=BinnedFeatures()
        The map of the other values.
    values : sequence of float, default=(0.0,)
        The point masses.

    Attributes
    ----------
    features_ : the map, fitted to the other rows
    height_ : float, √k(0)
    tail_ : array
        Where the map has one: that, with the height for every point mass.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import Gaussian
    >>> from latentviews.core.features.point_masses import PointMassFeatures
    >>> x = np.array([[0.0], [0.1], [3.0], [0.0]])
    >>> phi = PointMassFeatures(BinnedFeatures(Gaussian(1.0))).fit_transform(x)
    >>> (phi @ phi.T).round(2)[0]
    array([0.4, 0. , 0. , 0.4])
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "features": NoneOr(Ability("transform")),
        "values": Such(_are_finite, "a list of finite numbers, such as [0.0]"),
    }

    def __init__(self, features: Any = None, values: Sequence[float] = (0.0,)):
        self.features = features
        self.values = values

    @property
    def kernel(self) -> Kernel | None:
        """The kernel of the other values, unfitted."""
        return getattr(self.features, "kernel", None)

    @property
    def kernel_(self) -> Kernel:
        """The kernel of the other values."""
        return self.features_.kernel_

    @property
    def log_unit_(self) -> float:
        """The log of the unit that values of the kernel are counted in."""
        return getattr(self.features_, "log_unit_", 0.0)

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the map to the rows that are at no point mass."""
        check_parameters(self)
        x = to_numpy(check_rows(self, X, reset=True))
        if x.shape[1] != 1:
            raise ValueError(f"Point masses are those of one column; got {x.shape[1]}.")
        other = x[which_mass(x[:, 0], self.values) < 0]
        if not len(other):
            raise ValueError(f"All {len(x)} rows are at the point masses {list(self.values)}; name fewer of them.")
        inside = BinnedFeatures() if self.features is None else clone(self.features)
        return self.around(inside.fit(other), float(np.sqrt(np.sum(_vectors(inside, other[:1]) ** 2))))

    def around(self, features: Any, height: float) -> Self:
        """Fitted, with a map that is fitted already, and vectors of this length for point masses."""
        self.features_, self.height_ = features, height
        self._n_features_out = _vectors(features, np.zeros((1, 1))).shape[1] + len(self.values)
        tail = tail_of(features)
        if tail is not None:
            self.tail_ = block_diag(tail, height * np.eye(len(self.values)))
        return self

    def raw(self, X: Any) -> Any:
        """The raw vectors of the map, zero at point masses, and beside them indicators of these."""
        check_is_fitted(self)
        return self._raw(check_rows(self, X, reset=False) if hasattr(self, "n_features_in_") else X)

    def _raw(self, x: Any) -> Any:
        """What ``raw`` gives of rows that were checked."""
        x = x if counts_there(x) else to_numpy(x)
        return beside_indicators(raw_vectors(self.features_, x), which_mass(x[:, 0], self.values), len(self.values))

    def transform(self, X: Any) -> Any:
        """The feature vectors of the rows of ``X``."""
        raw = self.raw(X)
        if hasattr(self, "tail_"):
            return raw @ self.tail_
        width = self._n_features_out - len(self.values)
        return raw * np.where(np.arange(self._n_features_out) < width, 1.0, self.height_)


def _vectors(phi: Any, x: np.ndarray) -> np.ndarray:
    """Feature vectors, dense."""
    found = phi.transform(x)
    return found.toarray() if sparse.issparse(found) else to_numpy(found)


def which_mass(x: Any, values: Iterable[float]) -> Any:
    """The number of the point mass that every value is at, (n,); -1 where it is at none."""
    xp = namespace(x)
    found = xp.full(x.shape[0], -1, device=device(x))
    for number, value in enumerate(values):
        found = xp.where(x == value, number, found)
    return found


def beside_indicators(rows: Any, at: Any, n_masses: int) -> Any:
    """Vectors of rows (n, C), zero where a row is at a point mass, and beside them an indicator of each.

    Sparse rows have an entry each, as bins do.
    """
    if isinstance(rows, DeviceBins):
        return rows.beside(at, n_masses)
    here, shape = np.flatnonzero(at >= 0), (rows.shape[0], rows.shape[1] + n_masses)
    if not sparse.issparse(rows):
        dense = np.zeros(shape)
        dense[:, : rows.shape[1]] = np.where(at[:, None] < 0, to_numpy(rows), 0.0)
        dense[here, rows.shape[1] + at[here]] = 1.0
        return dense
    data = np.where(np.repeat(at < 0, np.diff(rows.indptr)), rows.data, 0.0)
    indices, first = rows.indices.copy(), rows.indptr[here]
    data[first], indices[first] = 1.0, rows.shape[1] + at[here]
    return sparse.csr_array((data, indices, rows.indptr), shape=shape)


def without_masses(phi: Any, x: np.ndarray) -> np.ndarray:
    """Rows of one view (n, d), NaN where they are at a point mass of its feature map, fitted or not."""
    if not isinstance(phi, PointMassFeatures):
        return x
    return np.where(which_mass(x[:, 0], phi.values)[:, None] < 0, x, np.nan)
