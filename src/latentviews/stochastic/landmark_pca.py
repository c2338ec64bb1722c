"""Kernel principal components of millions of rows, in one pass through landmarks."""

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from latentviews._arrays import in_library_of, namespace, to_numpy
from latentviews._numbers import TINY
from latentviews._parameters import (
    Ability,
    Constraint,
    Count,
    Flag,
    NoneOr,
    OneOf,
    Seed,
    check_parameters,
)
from latentviews._validation import (
    all_or_nothing,
    check_one_batch,
    check_rows,
    holds_batches,
)
from latentviews.core import streams
from latentviews.core.by_parts import by_parts
from latentviews.core.checked import Spaces, brought, checked_batches, is_stream, refuse_outside, unmapped
from latentviews.core.features.base import raw_vectors
from latentviews.core.features.landmarks import SELECTIONS, LandmarkFeatures
from latentviews.core.kernels.base import Kernel, UnitHeight
from latentviews.core.kernels.real import Gaussian
from latentviews.core.kernels.spaces import space_of
from latentviews.stochastic.expansions import (
    rotation_of,
)

TOL = 1e-7  # directions of smaller share are rounding once their products have been added up


class LandmarkPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Kernel PCA through landmarks, in one pass over any number of rows.

    .. math:: \frac1n \sum_i (\varphi(x_i) - \bar\varphi)(\varphi(x_i) - \bar\varphi)^\top v = \lambda v, \qquad
              \varphi(x)^\top \varphi(y) = k_Z(x)^\top K_{ZZ}^{-1} k_Z(y)

    with landmarks Z among the rows (Nyström's method, Williams & Seeger 2001). Sums of products of kernel values are
    all that is kept: a matrix of n_landmarks². With every row a landmark it is exact kernel PCA (Schölkopf, Smola &
    Müller 1998).

    Parameters
    ----------
    n_components : int, default=2
    kernel : Kernel, default=Gaussian("median")
        Rules in it are resolved on the rows that landmarks are picked from. Any kernel will do; those that are
        shift-invariant are taken at height one, k(x, x) = 1.
    n_landmarks : int or None, default=512
        None takes every different row.
    selection : {"random_cholesky", "cholesky", "uniform", "kmeans"}, default="random_cholesky"
        How landmarks are picked; see `LandmarkFeatures`.
    pilot_size : int, default=10_000
        The rows that landmarks are picked from: drawn from all rows by ``fit``, the first of the first batch by
        ``partial_fit``.
    center : bool, default=True
        Whether the mean is taken out of the features, as scikit-learn's `KernelPCA` does.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    explained_variance_ : array of shape (n_components,)
        The variances of the components, decreasing.
    explained_variance_ratio_ : array of shape (n_components,)
        Their shares of the variance in the RKHS, that which landmarks miss included.
    features_ : LandmarkFeatures
    components_ : array of shape (n_components, n_features)
        The components as vectors of features.
    mean_ : array of shape (n_features,)
    n_samples_seen_ : int
    total_ : Total
        Sums over the rows seen, which ``partial_fit`` adds to.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(2000, 2))
    >>> LandmarkPCA(3, n_landmarks=100, random_state=0).fit_transform(X).shape
    (2000, 3)
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "n_components": Count(),
        "kernel": NoneOr(Ability("gram")),
        "n_landmarks": NoneOr(Count()),
        "selection": OneOf(lambda: SELECTIONS),
        "pilot_size": Count(),
        "center": Flag(),
        "random_state": Seed(),
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        kernel: Kernel | None = None,
        n_landmarks: int | None = 512,
        selection: str = "random_cholesky",
        pilot_size: int = 10_000,
        center: bool = True,
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.kernel = kernel
        self.n_landmarks = n_landmarks
        self.selection = selection
        self.pilot_size = pilot_size
        self.center = center
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Self:
        """Pick landmarks among the rows of ``X`` and add up all rows.

        ``X`` is an array, an iterable of batches that can be read more than once (arrays, or pairs of rows and
        weights), the path of a file (or `io.open_table`), or a Dask collection, whose chunks stay where they are.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        check_parameters(self)
        X = brought(unmapped(X))
        rng, stream = np.random.default_rng(self.random_state), is_stream(X) or holds_batches(X)
        data = checked_batches(self, X, reset=True, missing=False) if stream else check_rows(self, X, reset=True)
        data = data.inside(self._spaces()) if stream else self._inside(data)
        self._pick(to_numpy(streams.sample(data, self.pilot_size, rng)[0]), rng)
        return self._add(data)

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Add the rows of ``X``; the first call picks landmarks among them.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        check_parameters(self)
        check_one_batch(X)
        first = not hasattr(self, "features_")
        rows = self._inside(check_rows(self, X, reset=first))
        if first:
            self._pick(to_numpy(streams.head(rows, self.pilot_size)), np.random.default_rng(self.random_state))
        return self._add(rows)

    def _spaces(self) -> Spaces:
        """The space of every column, which is that of the kernel."""
        space = None if self.kernel is None else space_of(self.kernel)
        return {} if space is None else dict.fromkeys(range(self.n_features_in_), space)

    def _inside(self, rows: Any) -> Any:
        """The rows, or a sentence on values outside the kernel's space."""
        refuse_outside(rows, self._spaces(), getattr(self, "feature_names_in_", None))
        return rows

    def _pick(self, pilot: np.ndarray, rng: np.random.Generator) -> None:
        kernel = Gaussian("median") if self.kernel is None else self.kernel
        kernel = UnitHeight(kernel) if hasattr(kernel, "frequencies") else kernel
        seed = int(rng.integers(2**31))
        maps = LandmarkFeatures(kernel, self.n_landmarks, selection=self.selection, tol=TOL, random_state=seed)
        self.features_ = maps.fit(pilot)
        self.total_: streams.Total | None = None

    def _add(self, data: Any) -> Self:
        """Sums of kernel values and their products over more rows, and the components of all so far."""

        def row_sum(batch: Any, weight: Any) -> tuple[Any, ...]:
            xp, raw = namespace(batch), self._at_landmarks(batch)
            raw = xp.astype(raw, xp.float64, copy=False)  # the tail divides small products by small numbers
            weighed = streams.weigh(raw, weight)
            heights = streams.weigh(self.features_.kernel_in_units.diagonal(batch)[:, None], weight)
            return xp.sum(weighed, axis=0), raw.T @ weighed, xp.sum(heights), np.array(batch.shape[0])

        more = streams.total(data, row_sum)
        self.total_ = more if self.total_ is None else self.total_.merge(more)
        self.n_samples_seen_ = int(self.total_.sums[-1])
        self._decompose()
        return self

    def _at_landmarks(self, x: Any) -> Any:
        """The kernel between rows, which have been checked, and the landmarks."""
        return raw_vectors(self.features_, x)

    def _decompose(self) -> None:
        rank, tail = self.n_components, self.features_.tail_
        assert self.total_ is not None
        total, products, height, _ = self.total_.mean()
        with np.errstate(over="ignore", invalid="ignore"):  # told in a sentence
            self.mean_ = tail.T @ total if self.center else np.zeros(tail.shape[1])
            covariance = tail.T @ products @ tail - np.outer(self.mean_, self.mean_)
        if rank > len(covariance):
            raise ValueError(
                f"{rank} components need as many features; the landmarks give {len(covariance)}. Ask for fewer "
                "components, or give more rows or landmarks."
            )
        if not np.all(np.isfinite(covariance)):
            raise ValueError("The sums of kernel values are out of range; scale the rows.")
        self.explained_variance_, vectors = rotation_of(covariance, rank)
        self.components_ = vectors.T.copy()
        whole = max(float(height) - self.mean_ @ self.mean_, float(self.explained_variance_.sum()), TINY)
        self.explained_variance_ratio_ = self.explained_variance_ / whole
        self._n_features_out = self.n_components

    @by_parts("n_components")
    def transform(self, X: Any) -> Any:
        """The coordinates of the rows of ``X`` along the components, (n_samples, n_components).

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_features_out)
        """
        check_is_fitted(self)
        x = self._inside(check_rows(self, X, reset=False))
        down, offset = self.features_.tail_ @ self.components_.T, self.components_ @ self.mean_
        down, offset = in_library_of(down, x), in_library_of(offset, x)
        return namespace(x).concat([self._at_landmarks(rows) @ down - offset for rows, _ in streams.batches(x)], axis=0)
