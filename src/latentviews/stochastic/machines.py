"""Kernel classifiers and regressors learnt by doubly stochastic gradients (Dai et al. 2014)."""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Self

import numpy as np
from array_api_compat import device
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from latentviews._arrays import like, namespace, on_host, take_rows, to_numpy
from latentviews._parameters import (
    Ability,
    Constraint,
    Count,
    Flag,
    NoneOr,
    Nonnegative,
    Positive,
    Seed,
    Share,
    Verbosity,
    WithData,
    check_parameters,
)
from latentviews._progress import CallbackSupportMixin, reporter, with_callbacks
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
from latentviews.losses import Logistic, Loss, Squared
from latentviews.stochastic.expansions import RandomBlocks
from latentviews.stochastic.gradients import GradientFit, start_gradient

KEEP = 2**24  # numbers of frequencies that stay in memory where their number is fixed
PILOT = 2048  # rows that bandwidths, steps and eigenfunctions are read off
Step = Callable[[Any, Any], None]


class _Settings(CallbackSupportMixin, BaseEstimator):
    """The parameters that both models share, and the steps that follow from them."""

    fit_: GradientFit

    _parameters: ClassVar[dict[str, Constraint]] = {
        "loss": NoneOr(Ability("gradient")),
        "kernel": WithData(),
        "penalty": Nonnegative(),
        "batch_size": Count(),
        "n_frequencies": Count(),
        "n_blocks": NoneOr(Count()),
        "n_directions": Count(0),
        "n_epochs": Count(),
        "step_size": Positive(),
        "decay": NoneOr(Positive()),
        "early_stopping": Flag(),
        "validation_fraction": Share(),
        "n_iter_no_change": Count(),
        "verbose": Verbosity(),
        "random_state": Seed(),
    }

    def __init__(
        self,
        *,
        loss: Loss | None = None,
        kernel: Kernel | None = None,
        penalty: float = 1e-6,
        batch_size: int = 256,
        n_frequencies: int = 128,
        n_blocks: int | None = 16,
        n_directions: int = 128,
        n_epochs: int = 20,
        step_size: float = 1.0,
        decay: float | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 3,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.loss = loss
        self.kernel = kernel
        self.penalty = penalty
        self.batch_size = batch_size
        self.n_frequencies = n_frequencies
        self.n_blocks = n_blocks
        self.n_directions = n_directions
        self.n_epochs = n_epochs
        self.step_size = step_size
        self.decay = decay
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.verbose = verbose
        self.random_state = random_state

    def _start(self, x: Any, targets: np.ndarray, loss: Any) -> None:
        """A constant function with blocks and step sizes that the first rows suggest."""
        kernel = Gaussian("median") if self.kernel is None else self.kernel
        self.kernel_ = check_shift_invariant(type(self).__name__, kernel).adapt(to_numpy(x))
        seed = int(np.random.default_rng(self.random_state).integers(2**31))
        blocks = RandomBlocks(self.kernel_, x.shape[1], self.n_frequencies, seed, 0 if self.n_blocks is None else KEEP)
        constant = like(loss.constant(targets), x)
        steepness = loss.steepness(targets) if hasattr(loss, "steepness") else loss.curvature
        scale = float(np.abs(targets - to_numpy(constant)).max()) or 1.0
        counts = self.n_blocks, self.n_directions, self.batch_size
        self.fit_ = start_gradient(blocks, x, constant, *counts, float(self.penalty), steepness, scale)

    def _step(self, x: Any, targets: Any, loss: Any) -> None:
        size = float(self.step_size)
        if self.decay is not None:
            size /= 1 + self.fit_.n_steps / self.decay
        self.fit_ = self.fit_.step(x, targets, loss, size, float(self.penalty))

    def _scores(self, X: Any) -> Any:
        check_is_fitted(self)
        x = check_rows(self, X, reset=False)
        return check_range(namespace(x).concat([self.fit_(rows) for rows, _ in streams.batches(x)], axis=0))

    def _forget(self) -> None:
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)

    def _fit_stream(self, batches: Any, y: Any, learn: Step) -> Self:
        """``learn`` from every batch of an iterable, epoch after epoch."""
        if y is not None:
            raise TypeError("A stream yields pairs (rows, targets); y goes with an array.")
        if self.early_stopping:
            raise ValueError(
                "early_stopping sets rows apart, and of a stream none are kept; pass an array, or do without."
            )
        for epoch, rows, targets in stream_epochs(batches, self.n_epochs):
            learn(rows, targets)
            self.n_iter_ = epoch
        if not hasattr(self, "fit_"):
            raise ValueError("The stream holds no batch; at least one is needed.")
        return self

    def _epochs(self, x: Any, y: Any, begin: Step, step: Step, loss_of: Callable[[Any, Any], float]) -> None:
        """Steps through all rows in random order, epoch after epoch, until enough or no longer better."""
        rng, size = np.random.default_rng(self.random_state), self.batch_size
        report, finish = reporter(self, self.verbose, of_loss=True)
        kept, held = self._split(x.shape[0], rng)
        best, waited = (np.inf, getattr(self, "fit_", None)), 0
        for epoch in range(1, self.n_epochs + 1):
            order = rng.permutation(kept)
            for start in range(0, len(order), size):
                rows = order[start : start + size]
                if not hasattr(self, "fit_"):
                    begin(take_rows(x, order[:PILOT]), y[order[:PILOT]])
                step(take_rows(x, rows), y[rows])
            self.n_iter_ = epoch
            judged = held if len(held) else rows
            value = loss_of(take_rows(x, judged), y[judged])
            waited = 0 if value < best[0] else waited + 1
            if value < best[0]:
                best = value, self.fit_
            if report("epoch", epoch, -value) or (len(held) and waited >= self.n_iter_no_change):
                break
        if len(held) and best[1] is not None:
            self.fit_, self.validation_loss_ = best[1], float(best[0])
        finish()

    def _split(self, n_rows: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Rows to learn from, and rows to tell when to stop."""
        if not self.early_stopping:
            return np.arange(n_rows), np.arange(0)
        share = self.validation_fraction
        order, size = rng.permutation(n_rows), int(np.ceil(share * n_rows))
        if size >= n_rows:
            raise ValueError(f"validation_fraction={share} leaves none of {n_rows} rows to learn from.")
        return order[size:], order[:size]


class DoublyStochasticClassifier(ClassifierMixin, _Settings):
    r"""A kernel classifier from mini-batches and blocks of random features, neither of which is kept.

    .. math:: f(x) = \sum_j \varphi_j(x)^\top \alpha_j + c, \qquad
              f \leftarrow (1 - \gamma\nu) f - \frac{\gamma}{B} \sum_i k(x_i, \cdot)\, \partial\ell(f(x_i), y_i)

    Predictions are those of the average over the steps, later ones counting for more.

    It is the right choice for streams, for rows that do not fit in memory, and on a GPU. On some thousand rows an
    exact kernel machine such as scikit-learn's `SVC` is better.

    Parameters
    ----------
    loss : Loss, default=Logistic()
        An object with ``value``, ``gradient`` and ``curvature``; see `latentviews.losses`.
    kernel : Kernel with ``frequencies``, default=Gaussian("median")
        At height one, k(x, x) = 1. Rules in it are resolved on the first batch.
    penalty : float, default=1e-6
        ν, the weight of half the squared length of f in the RKHS.
    batch_size : int, default=256
        Rows a step; larger batches are cut.
    n_frequencies : int, default=128
        Frequencies in a block, half as many as its features.
    n_blocks : int or None, default=16
        The number of blocks. None is the doubly stochastic gradient proper: a fresh block with every step, so that
        features are without bound, and t steps cost O(t²).
    n_directions : int, default=128
        The most eigenfunctions of the kernel along which steps are shortened, so that others can be longer. They need
        a fixed number of blocks.
    n_epochs : int, default=20
        How often ``fit`` goes through the rows.
    step_size : float, default=1.0
        The first step, in units of the largest that is safe for the loss and the kernel on the first batch.
    decay : float or None, default=None
        τ of the step sizes γ_i = γ_0 / (1 + i/τ), in steps; None keeps them constant, and leaves it to averaging.
    early_stopping : bool, default=False
        Whether ``fit`` sets a part of the rows apart, stops when its loss no longer falls, and returns to the best.
    validation_fraction : float, default=0.1
        The share of that part.
    n_iter_no_change : int, default=3
        After how many epochs without improvement to stop.
    verbose : int, default=0
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    fit_ : GradientFit
        The function; called on rows (n, d) it gives scores, (n, n_classes).
    kernel_ : Kernel
    n_iter_ : int
        Epochs of ``fit``.
    validation_loss_ : float
        With early stopping, the loss of the part set apart.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 2))
    >>> y = np.where(np.linalg.norm(X, axis=1) < 1.2, "inside", "outside")
    >>> model = DoublyStochasticClassifier(n_blocks=4, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    @with_callbacks
    @all_or_nothing
    def fit(self, X: Any, y: Any = None, *, classes: Any = None) -> Self:
        """Learn from rows and their classes, or from an iterable of pairs (rows, classes).

        An iterable needs ``classes``, all that may come; it is read ``n_epochs`` times in its own order, so one that
        can be read once needs ``n_epochs=1``.
        """
        check_parameters(self)
        self._forget()
        if holds_batches(X):
            return self._fit_stream(X, y, lambda rows, labels: self.partial_fit(rows, labels, classes=classes))
        x, labels = self._read(X, y, classes)
        self._epochs(
            x,
            labels,
            self._begin,
            self._learn,
            lambda rows, y: self._loss().value(self.fit_(rows), self._targets(rows, y)),
        )
        return self

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """One more batch of the stream; a step for every ``batch_size`` rows.

        ``classes`` are all that may come, needed with the first batch: a class that comes later has no place.
        """
        check_parameters(self)
        check_one_batch(X)
        if not hasattr(self, "classes_") and classes is None:
            raise ValueError(
                "The first batch of a stream may lack a class, so partial_fit needs all of them: pass classes=[...] "
                "with the first call."
            )
        x, labels = self._read(X, y, classes)
        if not hasattr(self, "fit_"):
            self._begin(streams.head(x, PILOT), labels[:PILOT])
        for rows, part in streams.single_pass(x, self.batch_size, labels):
            self._learn(rows, part)
        return self

    def _read(self, X: Any, y: Any, classes: Any) -> tuple[Any, np.ndarray]:
        """Rows and the numbers of their classes."""
        first = not hasattr(self, "classes_")
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None.")
        x = check_rows(self, X, reset=first)
        y = class_labels(y, x.shape[0])
        if first:
            check_classification_targets(y)
            self.classes_ = different_labels("y", y) if classes is None else different_labels("classes", classes)
            if len(self.classes_) < 2:
                raise ValueError(f"A classifier needs at least two classes; got one class, {self.classes_.tolist()}.")
        elif classes is not None and not np.array_equal(different_labels("classes", classes), self.classes_):
            raise ValueError(f"classes are {self.classes_.tolist()} since the first batch; got {list(classes)}.")
        numbers = np.searchsorted(self.classes_, y).clip(max=len(self.classes_) - 1)
        unknown = np.unique(y[self.classes_[numbers] != y])
        if len(unknown):
            raise ValueError(
                f"Classes {unknown.tolist()} come late: the model was told of {self.classes_.tolist()} at its start. "
                "Start again with all of them in `classes`."
            )
        return x, numbers

    def _loss(self) -> Any:
        return Logistic() if self.loss is None else self.loss

    def _targets(self, x: Any, labels: np.ndarray) -> Any:
        """One where a row is in a class, zero elsewhere, made where the rows live."""
        xp = namespace(x)
        numbers = xp.asarray(labels, device=device(x))
        every = xp.arange(len(self.classes_), dtype=numbers.dtype, device=device(x))
        return xp.astype(numbers[:, None] == every[None, :], x.dtype)

    def _begin(self, x: Any, labels: np.ndarray) -> None:
        self._start(x, np.eye(len(self.classes_))[labels], self._loss())

    def _learn(self, x: Any, labels: np.ndarray) -> None:
        self._step(x, self._targets(x, labels), self._loss())

    def decision_function(self, X: Any) -> Any:
        """The scores of all classes, (n_samples, n_classes); for two classes the difference, (n_samples,)."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """The class with the highest score, for every row."""
        scores = self._scores(X)
        return self.classes_[np.asarray(to_numpy(namespace(scores).argmax(scores, axis=1)), dtype=int)]

    def _has_probability(self) -> bool:
        if not hasattr(self._loss(), "probability"):
            raise AttributeError(f"{type(self._loss()).__name__} gives no probabilities; Logistic does.")
        return True

    @available_if(_has_probability)
    def predict_proba(self, X: Any) -> Any:
        """The probabilities of all classes, (n_samples, n_classes)."""
        return self._loss().probability(self._scores(X))

    @available_if(_has_probability)
    def predict_log_proba(self, X: Any) -> Any:
        """The logarithms of the probabilities."""
        probabilities = self.predict_proba(X)
        return namespace(probabilities).log(probabilities)


class DoublyStochasticRegressor(RegressorMixin, _Settings):
    r"""Kernel regression from mini-batches and blocks of random features, neither of which is kept.

    The steps are those of `DoublyStochasticClassifier`; with the squared loss it is kernel ridge regression.

    Parameters
    ----------
    loss : Loss, default=Squared()
        `Huber` and `Quantile` are others; see `latentviews.losses`.
    kernel, penalty, batch_size, n_frequencies, n_blocks, n_directions, n_epochs, step_size, decay
        As for `DoublyStochasticClassifier`.
    early_stopping, validation_fraction, n_iter_no_change, verbose, random_state
        As for `DoublyStochasticClassifier`.

    Attributes
    ----------
    fit_ : GradientFit
        The function; called on rows (n, d) it gives predictions, (n, n_targets).
    kernel_ : Kernel
    n_iter_ : int
        Epochs of ``fit``.
    validation_loss_ : float
        With early stopping, the loss of the part set apart.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(500, 1))
    >>> model = DoublyStochasticRegressor(n_blocks=4, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> bool(model.score(X, np.sin(X[:, 0])) > 0.98)
    True
    """

    @with_callbacks
    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from rows and targets, (n,) or (n, n_targets), or from an iterable of such pairs.

        An iterable is read ``n_epochs`` times in its own order, so one that can be read once needs ``n_epochs=1``.
        """
        check_parameters(self)
        self._forget()
        if holds_batches(X):
            return self._fit_stream(X, y, self.partial_fit)
        x, targets = self._read(X, y)
        self._epochs(
            x, targets, self._begin, self._learn, lambda rows, y: self._loss().value(self.fit_(rows), like(y, rows))
        )
        return self

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any) -> Self:
        """One more batch of the stream; a step for every ``batch_size`` rows."""
        check_parameters(self)
        check_one_batch(X)
        x, targets = self._read(X, y)
        if not hasattr(self, "fit_"):
            self._begin(streams.head(x, PILOT), targets[:PILOT])
        for rows, part in streams.single_pass(x, self.batch_size, targets):
            self._learn(rows, part)
        return self

    def _read(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        """Rows and their targets, (n, n_targets)."""
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None.")
        first = not hasattr(self, "single_")
        x = check_rows(self, X, reset=first)
        y = number_targets(y, x.shape[0])
        if first:
            self.single_ = y.ndim == 1
        targets = y[:, None] if y.ndim == 1 else y
        known = to_numpy(self.fit_.intercept).size if hasattr(self, "fit_") else targets.shape[1]
        if targets.shape[1] != known:
            raise ValueError(f"y has {targets.shape[1]} target(s), and {known} since the first batch.")
        return x, targets

    def _loss(self) -> Any:
        return Squared() if self.loss is None else self.loss

    def _begin(self, x: Any, targets: np.ndarray) -> None:
        loss = self._loss()
        if getattr(loss, "of_classes", False):
            raise TypeError(
                f"{type(loss).__name__} is a loss of classes; DoublyStochasticRegressor takes those of numbers: "
                "Squared, Huber, Quantile."
            )
        self._start(x, targets, loss)

    def _learn(self, x: Any, targets: np.ndarray) -> None:
        self._step(x, like(targets, x), self._loss())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def predict(self, X: Any) -> Any:
        """The values of the function at the rows of ``X``."""
        scores = self._scores(X)
        return scores[:, 0] if self.single_ else scores


def class_labels(y: Any, n_rows: int) -> np.ndarray:
    """Labels on the host, one a row."""
    y = column_or_1d(on_host(y), warn=True)
    if len(y) != n_rows:
        raise ValueError(f"y needs one label for each of {n_rows} rows; got {len(y)}.")
    different_labels("y", y)
    return y


def different_labels(name: str, labels: Any) -> np.ndarray:
    """The different ones of some labels in order, or a sentence where they have none."""
    labels = np.asarray(labels)
    if labels.ndim != 1:
        raise ValueError(f"{name} must be a list or an array of labels; got {labels.tolist()!r}. Pass [...] instead.")
    if labels.dtype.kind == "O" and any(label is None for label in labels):
        raise ValueError(f"{name} holds None; every label must be known: leave rows of unknown class out.")
    try:
        return np.unique(labels)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in labels})
        raise ValueError(f"{name} must hold labels of one type; got {', '.join(kinds)}. Turn them into one.") from None


def number_targets(y: Any, n_rows: int) -> np.ndarray:
    """Finite numbers on the host, one a row, or several."""
    if np.iscomplexobj(np.asarray(on_host(y))):
        raise ValueError("y holds complex numbers; targets must be real: pass real and imaginary parts as two targets.")
    y = to_numpy(y)
    if y.ndim not in (1, 2) or len(y) != n_rows or y.size == 0:
        raise ValueError(f"y needs one target, or several, for each of {n_rows} rows; got shape {y.shape}.")
    if not np.all(np.isfinite(y)):
        raise ValueError("y contains NaN or infinity; targets must be finite numbers.")
    return y


def stream_epochs(batches: Any, n_epochs: int) -> Iterator[tuple[int, Any, Any]]:
    """The number of the epoch, rows and targets of every batch of an iterable read ``n_epochs`` times."""
    if isinstance(batches, Iterator) and n_epochs > 1:
        raise TypeError(
            f"{n_epochs} epochs read the stream as often, and a {type(batches).__name__} can be read once: set "
            "n_epochs=1, or pass an object whose __iter__ starts again from the first batch."
        )
    for epoch in range(1, n_epochs + 1):
        for batch in batches:
            if not isinstance(batch, tuple) or len(batch) != 2:
                raise TypeError(f"A stream must yield pairs (rows, targets); got a {type(batch).__name__}.")
            if not streams.is_empty(batch[0]):
                yield epoch, *batch
