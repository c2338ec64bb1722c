"""Kernel principal components of streams, by doubly stochastic steps."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from latentviews._arrays import namespace, to_numpy
from latentviews._parameters import (
    Constraint,
    Count,
    NoneOr,
    OneOf,
    Positive,
    Seed,
    WithData,
    check_parameters,
)
from latentviews._validation import (
    all_or_nothing,
    check_one_batch,
    check_range,
    check_rows,
    holds_batches,
)
from latentviews.core import streams
from latentviews.core.features.fourier import check_shift_invariant
from latentviews.core.kernels.base import Kernel
from latentviews.core.kernels.real import Gaussian
from latentviews.stochastic.convergence import landmark_start, warn_of_blocks, warn_of_steps
from latentviews.stochastic.expansions import (
    BLOCK_SELECTIONS,
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
JUDGES = 2048  # rows of the last batch that steps are judged by


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
    again from its seed when it is needed (the doubly stochastic gradients of Dai et al. 2014; for components, Xie,
    Liang & Song 2015). The steps start from kernel PCA of the first eight batches in the first block, which needs sums
    alone. The model is the t blocks of coefficients α_j, and a step costs as much as an evaluation, so t steps cost
    O(t²). The kernel is taken at height one, k(x, x) = 1, and not centred.

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
        Rows per step; larger batches are cut. Smaller ones count for less.
    n_frequencies : int, default=64
        Frequencies in a block, half as many as its features. Up to eight columns they stand on a lattice.
    selection : {"auto", "fastfood"}, default="auto"
        "fastfood" makes them by Hadamard matrices, faster for many columns, as in `FourierFeatures`; the kernel is then
        a `Gaussian` or a `Matern`.
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
    blocks_ : RandomBlocks
        The features φ_j, made from a seed whenever they are needed.
    covariance_ : array of shape (n_components, n_components)
        That of the values of the functions before they were turned to be uncorrelated.
    products_ : array of shape (2 n_frequencies, 2 n_frequencies) or None
        The mean products of features of the first block, while steps have not begun.
    step_sizes_ : StepSizes
        γ, as a function of the rows seen and the rows of a batch.

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

    _parameters: ClassVar[dict[str, Constraint]] = {
        "n_components": Count(),
        "kernel": WithData(),
        "batch_size": Count(),
        "n_frequencies": Count(),
        "selection": OneOf(lambda: BLOCK_SELECTIONS),
        "max_blocks": NoneOr(Count()),
        "step_size": Positive(),
        "random_state": Seed(),
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        kernel: Kernel | None = None,
        batch_size: int = 1024,
        n_frequencies: int = 64,
        selection: str = "auto",
        max_blocks: int | None = None,
        step_size: float = 2.0,
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.kernel = kernel
        self.batch_size = batch_size
        self.n_frequencies = n_frequencies
        self.selection = selection
        self.max_blocks = max_blocks
        self.step_size = step_size
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Self:
        """Start afresh: from an array at once through landmarks, from an iterable of arrays by a step for every batch.

        A `ConvergenceWarning` says how far the eigenfunctions are from exact ones where that is more than a sine of .1.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        check_parameters(self)
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
        """One more batch of the stream; a step for every ``batch_size`` rows of it.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        check_one_batch(X)
        self._learn(X)
        return self

    def _learn(self, X: Any) -> None:
        check_parameters(self)
        rows = check_rows(self, X, reset=not hasattr(self, "eigenfunctions_"))
        for (part,) in streams.single_pass(rows, self.batch_size):
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
        kernel = Gaussian("median") if self.kernel is None else self.kernel
        self.kernel_ = check_shift_invariant("DoublyStochasticPCA", kernel, "LandmarkPCA").adapt(to_numpy(x))
        seed = int(np.random.default_rng(self.random_state).integers(2**31))
        size = self.n_frequencies
        self.blocks_ = RandomBlocks(self.kernel_, x.shape[1], size, seed, selection=self.selection)
        self.products_ = np.zeros((2 * size, 2 * size))
        self.n_samples_seen_, self.n_steps_ = 0, 0
        self._n_features_out = self.n_components

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
        """The values of the eigenfunctions at the rows of ``X``, (n_samples, n_components).

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_features_out)
        """
        check_is_fitted(self)
        x = check_rows(self, X, reset=False)
        values = [self.eigenfunctions_(rows) for rows, _ in streams.batches(x)]
        return check_range(namespace(x).concat(values, axis=0))
