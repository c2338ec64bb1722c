"""Kernel principal components of more rows than fit in memory."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from latentviews._arrays import like, namespace, to_numpy
from latentviews._numbers import TINY
from latentviews._validation import (
    all_or_nothing,
    check_ability,
    check_count,
    check_one_batch,
    check_positive,
    check_range,
    check_rows,
    holds_batches,
)
from latentviews.core import streams
from latentviews.core.features.fourier import check_shift_invariant
from latentviews.core.features.landmarks import LandmarkFeatures
from latentviews.core.kernels.base import Kernel, UnitHeight
from latentviews.core.kernels.real import Gaussian
from latentviews.core.tables import checked_batches, is_stream
from latentviews.stochastic.convergence import landmark_start, warn_of_blocks, warn_of_steps
from latentviews.stochastic.expansions import (
    Expansion,
    RandomBlocks,
    StepSizes,
    oja_step,
    rotation_of,
    step_sizes,
    warm_start,
)

WARM = 8  # batches that kernel PCA starts from
BLOCKS = 8  # of features that eigenfunctions of rows in memory are written in
JUDGES = 1024  # rows of the last batch that steps are judged by
TOL = 1e-7  # directions of smaller share are rounding once their products have been added up


def _row_batches(name: str, stream: Iterable[Any]) -> Iterator[Any]:
    """The batches of a stream that have rows, and nothing beside them."""
    for batch in stream:
        if isinstance(batch, tuple):
            raise TypeError(f"{name} takes batches of rows; got a tuple of {len(batch)}: weights have no place here.")
        if not streams.is_empty(batch):
            yield batch


def _covariance(functions: Expansion, batch: Any, _: Any) -> tuple[Any, ...]:
    values = functions(batch)
    return (values.T @ values,)


class DoublyStochasticPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Kernel PCA of a stream, in which no row and no random feature is kept.

    .. math:: u_k(x) = \sum_j \varphi_j(x)^\top \alpha_{jk}, \qquad
              \mathbb{E}_x[k(\cdot, x)\, u_k(x)] = \lambda_k u_k

    Every batch is one step of Oja's rule with the kernel replaced by a fresh block of random features, which is made
    again from its seed when it is needed (the doubly stochastic gradients of Dai et al. 2014). The steps start from
    kernel PCA of the first eight batches in the first block, which needs sums alone. The model is the t blocks of
    coefficients α_j, and a step costs as much as an evaluation, so t steps cost O(t²). The kernel is taken at
    height one, k(x, x) = 1, and not centred.

    That is how a stream is learnt from, batch by batch. An array given to ``fit`` is in memory anyway: its
    eigenfunctions are found through landmarks among its rows, as in `LandmarkPCA`, and written in the first eight
    blocks, so that no row is kept and a stream may go on from there.

    It is the right choice where no row may be kept or the number of features has no bound. Where some thousand rows
    can be kept as landmarks, `LandmarkPCA` is more accurate at the same memory, and faster.

    Parameters
    ----------
    n_components : int, default=2
    kernel : Kernel with ``frequencies``, default=Gaussian("median")
        Rules in it are resolved on the first batch.
    batch_size : int, default=1024
        Rows a step; larger batches are cut. Smaller ones count for less.
    n_frequencies : int, default=64
        Frequencies in a block, half as many as its features. Up to eight columns they stand on a lattice.
    max_blocks : int or None, default=None
        The most blocks. Once there are as many, steps go on in all of them (stochastic kernel PCA by Oja's rule on
        fixed random features), and memory and the cost of a step no longer grow.
    step_size : float, default=2.0
        The factor c of the step sizes γ = min(1/λ₁, (c/g) / (i + cλ₁/g)), where λ₁ and the gap g = λ_r − λ_(r+1) are
        those of the first eight batches.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    eigenfunctions_ : Expansion
        The functions u_k, of unit length in the RKHS; called on rows (n, d) it gives their values, (n, n_components).
    explained_variance_ : array of shape (n_components,)
        The eigenvalues λ_k, decreasing.
    kernel_ : Kernel
    n_samples_seen_ : int
    n_steps_ : int

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> stream = (rng.normal(size=(1024, 1)) for _ in range(20))
    >>> pca = DoublyStochasticPCA(3, kernel=Gaussian(1.0), random_state=0).fit(stream)
    >>> pca.explained_variance_.round(2)  # in closed form: .618, .236, .090
    array([0.62, 0.24, 0.09])
    """

    n_samples_seen_: int
    n_steps_: int
    products_: np.ndarray | None
    covariance_: np.ndarray
    step_sizes_: StepSizes
    eigenfunctions_: Expansion

    def __init__(
        self,
        n_components: int = 2,
        *,
        kernel: Kernel | None = None,
        batch_size: int = 1024,
        n_frequencies: int = 64,
        max_blocks: int | None = None,
        step_size: float = 2.0,
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.kernel = kernel
        self.batch_size = batch_size
        self.n_frequencies = n_frequencies
        self.max_blocks = max_blocks
        self.step_size = step_size
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Self:
        """Start afresh: from an array at once through landmarks, from an iterable of arrays by a step for every batch.

        A `ConvergenceWarning` says how far the eigenfunctions are from exact ones where that is more than a sine of .1.
        """
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)
        if not holds_batches(X):
            return self._fit_rows(check_rows(self, X, reset=True))
        batch = None
        for batch in _row_batches(type(self).__name__, X):
            self._learn(batch)
        if batch is None:
            raise ValueError("The data hold no row; at least one batch is needed.")
        last = check_rows(self, batch, reset=False)
        warn_of_steps(self.eigenfunctions_, self.kernel_, streams.head(last, JUDGES), self.n_samples_seen_)
        return self

    def _fit_rows(self, x: Any) -> Self:
        """Kernel PCA of rows in memory through landmarks, written in the first blocks of features."""
        self._start(x)
        rng, count = np.random.default_rng(self.random_state), min(BLOCKS, self.max_blocks or BLOCKS)
        written = landmark_start(self.blocks_, count, x, self._n_features_out, rng)
        warn_of_blocks(written.sine, count, self.blocks_.size)
        self.products_, self.n_samples_seen_ = None, x.shape[0]
        self.step_sizes_ = step_sizes(written.values, self._n_features_out, self.step_size, self.batch_size)
        (self.covariance_,) = map(to_numpy, streams.mean(x, partial(_covariance, written.functions)))
        self._rotate(written.functions)
        return self

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """One more batch of the stream; a step for every ``batch_size`` rows of it."""
        check_one_batch(X)
        self._learn(X)
        return self

    def _learn(self, X: Any) -> None:
        rows = check_rows(self, X, reset=not hasattr(self, "eigenfunctions_"))
        for (part,) in streams.once(rows, check_count("batch_size", self.batch_size)):
            self._step(part)

    def _step(self, x: Any) -> None:
        if not hasattr(self, "eigenfunctions_"):
            self._start(x)
        if self.products_ is not None and self.n_samples_seen_ < WARM * self.batch_size:
            self._warm_up(x)
            return
        self.products_ = None
        rate = self.step_sizes_(self.n_samples_seen_, x.shape[0])
        functions, covariance = oja_step(self.eigenfunctions_, x, rate, self.max_blocks)
        self.n_samples_seen_ += x.shape[0]
        self.n_steps_ += 1
        fresh = min(1.0, 2 * x.shape[0] / self.n_samples_seen_)  # later batches, where U is better, count for more
        self.covariance_ = (1 - fresh) * self.covariance_ + fresh * covariance
        self._rotate(functions)

    def _start(self, x: Any) -> None:
        rank = check_count("n_components", self.n_components)
        check_count("batch_size", self.batch_size)
        if self.max_blocks is not None:
            check_count("max_blocks", self.max_blocks)
        check_positive("step_size", self.step_size)
        kernel = Gaussian("median") if self.kernel is None else self.kernel
        self.kernel_ = check_shift_invariant("DoublyStochasticPCA", kernel, "LandmarkPCA").adapt(to_numpy(x))
        seed = int(np.random.default_rng(self.random_state).integers(2**31))
        size = check_count("n_frequencies", self.n_frequencies)
        self.blocks_ = RandomBlocks(self.kernel_, x.shape[1], size, seed)
        self.products_ = np.zeros((2 * size, 2 * size))
        self.n_samples_seen_, self.n_steps_ = 0, 0
        self._n_features_out = rank

    def _warm_up(self, x: Any) -> None:
        """Kernel PCA of the first batches in the first block: sums of products, and no step yet."""
        phi = self.blocks_(x, 0)
        fresh = x.shape[0] / (self.n_samples_seen_ + x.shape[0])
        products = (1 - fresh) * self.products_ + fresh * to_numpy(phi.T @ phi) / x.shape[0]
        self.n_samples_seen_ += x.shape[0]
        functions, self.step_sizes_ = warm_start(
            self.blocks_, products, x, self._n_features_out, self.step_size, self.batch_size
        )
        start = to_numpy(functions.coefficients[0])
        self.products_, self.covariance_ = products, start.T @ products @ start
        self._rotate(functions)

    def _rotate(self, functions: Expansion) -> None:
        """The basis of the subspace in which the values are uncorrelated."""
        self.explained_variance_, rotation = rotation_of(self.covariance_)
        self.eigenfunctions_ = Expansion(functions.blocks, functions.coefficients, rotation)

    def transform(self, X: Any) -> Any:
        """The values of the eigenfunctions at the rows of ``X``, (n_samples, n_components)."""
        check_is_fitted(self)
        x = check_rows(self, X, reset=False)
        values = [self.eigenfunctions_(rows) for rows, _ in streams.batches(x)]
        return check_range(namespace(x).concat(values, axis=0))


class LandmarkPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Kernel PCA through landmarks (Nyström), in one pass over any number of rows.

    Sums of products of kernel values are all that is kept: a matrix of n_landmarks². With every row a landmark it
    is exact kernel PCA.

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

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(2000, 2))
    >>> LandmarkPCA(3, n_landmarks=100, random_state=0).fit_transform(X).shape
    (2000, 3)
    """

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

        ``X`` is an array, or an iterable of batches that can be read more than once: arrays, or pairs (rows, weights).
        """
        rng, stream = np.random.default_rng(self.random_state), is_stream(X) or holds_batches(X)
        data = checked_batches(self, X, reset=True, missing=False) if stream else check_rows(self, X, reset=True)
        self._pick(to_numpy(streams.sample(data, check_count("pilot_size", self.pilot_size), rng)[0]), rng)
        return self._add(data)

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Add the rows of ``X``; the first call picks landmarks among them."""
        check_one_batch(X)
        first = not hasattr(self, "features_")
        rows = check_rows(self, X, reset=first)
        if first:
            size = check_count("pilot_size", self.pilot_size)
            self._pick(to_numpy(streams.head(rows, size)), np.random.default_rng(self.random_state))
        return self._add(rows)

    def _pick(self, pilot: np.ndarray, rng: np.random.Generator) -> None:
        kernel = Gaussian("median") if self.kernel is None else check_ability("kernel", self.kernel, "gram")
        kernel = UnitHeight(kernel) if hasattr(kernel, "frequencies") else kernel
        seed = int(rng.integers(2**31))
        maps = LandmarkFeatures(kernel, self.n_landmarks, selection=self.selection, tol=TOL, random_state=seed)
        self.features_ = maps.fit(pilot)
        self.total_: streams.Total | None = None

    def _add(self, data: Any) -> Self:
        """Sums of kernel values and their products over more rows, and the components of all so far."""

        def row_sum(batch: Any, weight: Any) -> tuple[Any, ...]:
            xp, raw = namespace(batch), self._raw(batch)
            raw = xp.astype(raw, xp.float64, copy=False)  # the tail divides small products by small numbers
            weighed = streams.weigh(raw, weight)
            heights = streams.weigh(self.features_.kernel_.diagonal(batch)[:, None], weight)
            return xp.sum(weighed, axis=0), raw.T @ weighed, xp.sum(heights), np.array(batch.shape[0])

        more = streams.total(data, row_sum)
        self.total_ = more if self.total_ is None else self.total_.merge(more)
        self.n_samples_seen_ = int(self.total_.sums[-1])
        self._decompose()
        return self

    def _raw(self, x: Any) -> Any:
        """The kernel between rows, which have been checked, and the landmarks."""
        return self.features_.kernel_.gram(x, like(self.features_.landmarks_, x))

    def _decompose(self) -> None:
        rank, tail = check_count("n_components", self.n_components), self.features_.tail_
        assert self.total_ is not None
        total, products, height, _ = self.total_.mean()
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
        self.explained_variance_ratio_ = self.explained_variance_ / max(float(height) - self.mean_ @ self.mean_, TINY)
        self._n_features_out = rank

    def transform(self, X: Any) -> Any:
        """The coordinates of the rows of ``X`` along the components, (n_samples, n_components)."""
        check_is_fitted(self)
        x = check_rows(self, X, reset=False)
        down, offset = self.features_.tail_ @ self.components_.T, self.components_ @ self.mean_
        down, offset = like(down, x), like(offset, x)
        return namespace(x).concat([self._raw(rows) @ down - offset for rows, _ in streams.batches(x)], axis=0)
