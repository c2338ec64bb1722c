"""Kernel classifiers and regressors: at once on rows in memory, else by doubly stochastic steps (Dai et al. 2014)."""

from typing import Any, Self

import numpy as np
from array_api_compat import device
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if

from latentviews._arrays import in_library_of, namespace, to_numpy
from latentviews._parameters import check_parameters
from latentviews._progress import with_callbacks
from latentviews._validation import all_or_nothing, check_one_batch, check_rows, holds_batches
from latentviews.core import streams
from latentviews.losses import Logistic, Squared
from latentviews.stochastic.learning import PILOT, KernelMachine
from latentviews.stochastic.targets import check_classes, class_labels, different_labels, number_targets


class DoublyStochasticClassifier(ClassifierMixin, KernelMachine):
    r"""A kernel classifier for rows in memory, and for streams of which neither rows nor random features are kept.

    .. math:: f(x) = \sum_j \varphi_j(x)^\top \alpha_j + c, \qquad
              f \leftarrow (1 - \gamma\nu) f - \frac{\gamma}{B} \sum_i k(x_i, \cdot)\, \partial\ell(f(x_i), y_i)

    Those are the steps of Dai et al. (2014), for ``partial_fit``, streams and more rows than the kernel matrix fits in
    memory for, some 23,000; predictions are those of the average over the steps, later ones counting for more. An array
    of fewer rows is learnt from at once: ``fit`` finds the function of least loss in the exact kernel by conjugate
    gradients, with the bandwidth and the penalty that rows left out in turn prefer. It keeps the rows, as `SVC` keeps
    its support vectors. Where rows may not be kept, give ``n_epochs``, or a stream.

    Parameters
    ----------
    loss : Loss, default=Logistic()
        An object with ``value``, ``gradient`` and ``curvature``; see `latentviews.losses`.
    kernel : Kernel with ``frequencies``, default=None
        At height one, k(x, x) = 1. Rules in it are resolved on the first batch. None is a Gaussian, whose bandwidth is
        chosen on rows left out where the fit is at once, and the median distance where it is by steps.
    penalty : float or "auto", default="auto"
        ν, the weight of half the squared length of f in the RKHS. "auto" is chosen on rows left out where the fit is at
        once, and 1e-6 where it is by steps.
    batch_size : int, default=256
        Rows per step; larger batches are cut.
    n_frequencies : int, default=128
        Frequencies in a block, half as many as its features.
    selection : {"auto", "fastfood"}, default="auto"
        "fastfood" makes them by Hadamard matrices, faster for many columns; the kernel is then `Gaussian` or `Matern`.
    n_blocks : int or None, default=16
        The number of blocks. None is the doubly stochastic gradient proper: a fresh block with every step, so that
        features are without bound, and t steps cost O(t²).
    n_directions : int, default=128
        The most eigenfunctions along which steps are shortened, so that others can be longer; for fixed blocks.
    n_epochs : int or "auto", default="auto"
        How often ``fit`` goes through the rows by steps. "auto" is at once where it can be, with a smooth loss, a fixed
        number of blocks and no early stopping, else 20.
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
    fit_ : DirectFit or GradientFit
        The function; called on rows (n, d) it gives scores, (n, n_classes).
    kernel_ : Kernel
    penalty_ : float
        ν, where the fit was at once.
    n_iter_ : int
        Epochs of ``fit``, or steps of conjugate gradients.
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

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Labels.
        classes : array or None
            All that may come; by default those in ``y``.

        Returns
        -------
        self
        """
        check_parameters(self)
        self._forget()
        if holds_batches(X):
            return self._fit_stream(X, y, lambda rows, labels: self.partial_fit(rows, labels, classes=classes))
        x, labels = self._read(X, y, classes)
        if self._at_once(x.shape[0], self._loss()):
            self._solve(x, np.eye(len(self.classes_))[labels], self._loss())
            return self
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

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Labels.
        classes : array or None
            All that may come, needed with the first batch: a class that comes later has no place.

        Returns
        -------
        self
        """
        check_parameters(self)
        check_one_batch(X)
        if not hasattr(self, "classes_") and classes is None:
            raise ValueError(
                "The first batch of a stream may lack a class, so partial_fit needs all of them: pass classes=[...] "
                "with the first call."
            )
        x, labels = self._read(X, y, classes)
        if not self._stepping():
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
            check_classes(y)
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
        """The scores of all classes, (n_samples, n_classes); for two classes the difference, (n_samples,).

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
        """
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """The class with the highest score, for every row.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
        """
        scores = self._scores(X)
        return self.classes_[np.asarray(to_numpy(namespace(scores).argmax(scores, axis=1)), dtype=int)]

    def _has_probability(self) -> bool:
        if not hasattr(self._loss(), "probability"):
            raise AttributeError(f"{type(self._loss()).__name__} gives no probabilities; Logistic does.")
        return True

    @available_if(_has_probability)
    def predict_proba(self, X: Any) -> Any:
        """The probabilities of all classes, (n_samples, n_classes).

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, k)
        """
        return self._loss().probability(self._scores(X))

    @available_if(_has_probability)
    def predict_log_proba(self, X: Any) -> Any:
        """The logarithms of the probabilities.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, k)
        """
        with np.errstate(divide="ignore"):  # the log of none is minus infinity
            return namespace(chances := self.predict_proba(X)).log(chances)


class DoublyStochasticRegressor(RegressorMixin, KernelMachine):
    r"""Kernel regression of rows in memory, and of streams of which neither rows nor random features are kept.

    .. math:: \min_{f, c}\; \frac1n \sum_i \ell(f(x_i) + c,\, y_i) + \frac{\nu}{2} \|f\|^2

    Both ways to it, at once and by the steps of Dai et al. (2014), are those of `DoublyStochasticClassifier`. With the
    squared loss it is kernel ridge regression.

    Parameters
    ----------
    loss : Loss, default=Squared()
        `Huber`, `Quantile`, `DensityRatio` and `Novelty` are others; see `latentviews.losses`.
    kernel, penalty, batch_size, n_frequencies, selection, n_blocks, n_directions, n_epochs, step_size
        As for `DoublyStochasticClassifier`.
    decay, early_stopping, validation_fraction, n_iter_no_change, verbose, random_state
        As for `DoublyStochasticClassifier`.

    Attributes
    ----------
    fit_ : DirectFit or GradientFit
        The function; called on rows (n, d) it gives predictions, (n, n_targets).
    kernel_, penalty_, n_iter_, validation_loss_
        As for `DoublyStochasticClassifier`.
    single_ : bool, whether targets had one axis

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

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        y : array of shape (n_samples,)

        Returns
        -------
        self
        """
        check_parameters(self)
        self._forget()
        if holds_batches(X):
            return self._fit_stream(X, y, self.partial_fit)
        x, targets = self._read(X, y)
        if self._at_once(x.shape[0], self._loss()):
            self._solve(x, targets, self._loss())
            return self
        self._epochs(
            x,
            targets,
            self._begin,
            self._learn,
            lambda rows, y: self._loss().value(self.fit_(rows), in_library_of(y, rows)),
        )
        return self

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any) -> Self:
        """One more batch of the stream; a step for every ``batch_size`` rows.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            What to predict.

        Returns
        -------
        self
        """
        check_parameters(self)
        check_one_batch(X)
        x, targets = self._read(X, y)
        if not self._stepping():
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
        loss = Squared() if self.loss is None else self.loss
        if getattr(loss, "of_classes", False):
            raise TypeError(
                f"{type(loss).__name__} is a loss of classes; DoublyStochasticRegressor takes those of numbers: "
                "Squared, Huber, Quantile, DensityRatio, Novelty."
            )
        return loss

    def _begin(self, x: Any, targets: np.ndarray) -> None:
        self._start(x, targets, self._loss())

    def _learn(self, x: Any, targets: np.ndarray) -> None:
        self._step(x, in_library_of(targets, x), self._loss())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def predict(self, X: Any) -> Any:
        """The values of the function at the rows of ``X``.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
        """
        scores = self._scores(X)
        return scores[:, 0] if self.single_ else scores
