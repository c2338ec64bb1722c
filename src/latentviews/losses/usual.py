"""Losses of classes and of numbers."""

from typing import Any

import numpy as np

from latentviews._arrays import namespace
from latentviews._numbers import quartile_spread
from latentviews._validation import check_positive
from latentviews.losses.base import Loss, between


class Logistic(Loss):
    r"""Minus the log of the probability that the softmax of the scores gives to a row's class.

    .. math:: \ell(s, t) = \log \sum_c e^{s_c} - \sum_c t_c s_c

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews.losses import Logistic
    >>> loss, targets = Logistic(), np.array([[1.0, 0.0]])  # a row of the first of two classes
    >>> scores = np.array([[np.log(3.0), 0.0]])
    >>> loss.probability(scores), round(loss.value(scores, targets), 3)
    (array([[0.75, 0.25]]), 0.288)
    >>> loss.gradient(scores, targets)
    array([[-0.25,  0.25]])
    """

    of_classes = True
    smooth = True
    limit = 1e4
    curvature = 0.25  # up to twice as much at even odds between two classes, which few rows have

    def constant(self, targets: np.ndarray) -> np.ndarray:
        """The constant scores to start from: no class before another."""
        return np.zeros(targets.shape[1])

    def value(self, scores: Any, targets: Any) -> float:
        """The mean loss of rows."""
        xp = namespace(scores)
        top = xp.max(scores, axis=1, keepdims=True)
        log_sum = xp.log(xp.sum(xp.exp(scores - top), axis=1)) + top[:, 0]
        return float(xp.mean(log_sum - xp.sum(scores * targets, axis=1)))

    def gradient(self, scores: Any, targets: Any) -> Any:
        """The derivative of every row's loss by its scores."""
        return self.probability(scores) - targets

    def probability(self, scores: Any) -> Any:
        """The softmax of the scores.

        Parameters
        ----------
        scores : array of shape (n, outputs)

        Returns
        -------
        array of shape (n, outputs)
        """
        xp = namespace(scores)
        weights = xp.exp(scores - xp.max(scores, axis=1, keepdims=True))
        return weights / xp.sum(weights, axis=1, keepdims=True)


class Hinge(Loss):
    r"""What scores lack to a margin of one, of every class against the rest (Cortes & Vapnik 1995).

    .. math:: \ell(s, t) = \sum_c \max(0,\; 1 - (2 t_c - 1)\, s_c)

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews.losses import Hinge
    >>> loss, targets = Hinge(), np.array([[1.0, 0.0]])  # a row of the first of two classes
    >>> loss.value(np.array([[2.0, -1.5]]), targets), loss.value(np.array([[0.5, -1.5]]), targets)
    (0.0, 0.5)
    """

    of_classes = True
    limit = 1e4

    def constant(self, targets: np.ndarray) -> np.ndarray:
        """The constant scores to start from: no class before another."""
        return np.zeros(targets.shape[1])

    def value(self, scores: Any, targets: Any) -> float:
        """The mean loss of rows."""
        xp = namespace(scores)
        return float(xp.mean(xp.sum(xp.clip(1 - (2 * targets - 1) * scores, min=0.0), axis=1)))

    def gradient(self, scores: Any, targets: Any) -> Any:
        """The derivative of every row's loss by its scores."""
        sides = 2 * targets - 1
        return -sides * namespace(scores).astype(sides * scores < 1, scores.dtype)


class Squared(Loss):
    r"""Half of the squared error.

    .. math:: \ell(s, t) = \tfrac12 \|s - t\|^2

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews.losses import Squared
    >>> Squared().value(np.array([[1.0]]), np.array([[4.0]]))
    4.5
    """

    smooth = True

    def value(self, scores: Any, targets: Any) -> float:
        """The mean loss of rows."""
        xp = namespace(scores)
        return 0.5 * float(xp.mean(xp.sum((scores - targets) ** 2, axis=1)))

    def gradient(self, scores: Any, targets: Any) -> Any:
        """The derivative of every row's loss by its scores."""
        return scores - targets


class Huber(Loss):
    r"""The squared loss for errors up to a threshold, and linear beyond it (Huber 1964).

    .. math:: \ell(s, t) = \begin{cases} e^2 / 2 & e \le \delta \\ \delta\, (e - \delta / 2) & e > \delta \end{cases},
              \qquad e = |s - t|

    Parameters
    ----------
    threshold : float, default=1
        In the unit of the targets.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews.losses import Huber
    >>> scores, targets = np.array([[0.5], [100.0]]), np.zeros((2, 1))
    >>> Huber(1.0).gradient(scores, targets).ravel()  # an error, and one that may be wild
    array([0.5, 1. ])
    """

    def __init__(self, threshold: float = 1.0):
        self.threshold = threshold

    def constant(self, targets: np.ndarray) -> np.ndarray:
        """The constant scores to start from: medians, which a few wild targets do not move."""
        return np.median(targets, axis=0)

    def steepness(self, targets: np.ndarray) -> float:
        """The curvature, or less where most errors are beyond the threshold."""
        return min(self.curvature, check_positive("threshold", self.threshold) / _spread(targets))

    def value(self, scores: Any, targets: Any) -> float:
        """The mean loss of rows."""
        xp, threshold = namespace(scores), check_positive("threshold", self.threshold)
        errors = xp.abs(scores - targets)
        inner = xp.clip(errors, max=threshold)
        return float(xp.mean(xp.sum(inner * (errors - inner / 2), axis=1)))

    def gradient(self, scores: Any, targets: Any) -> Any:
        """The derivative of every row's loss by its scores."""
        threshold = check_positive("threshold", self.threshold)
        return namespace(scores).clip(scores - targets, min=-threshold, max=threshold)


class Quantile(Loss):
    r"""The loss that a quantile of the targets minimises (Koenker & Bassett 1978).

    .. math:: \ell(s, t) = (t - s)\,(q - 1[t < s])

    Parameters
    ----------
    level : float, default=0.5
        Which quantile, between zero and one.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews.losses import Quantile
    >>> loss, targets = Quantile(0.9), np.arange(11.0)[:, None]
    >>> losses = [loss.value(np.full((11, 1), float(score)), targets) for score in range(11)]
    >>> int(np.argmin(losses)), loss.constant(targets).round(6).tolist()
    (9, [9.0])
    """

    def __init__(self, level: float = 0.5):
        self.level = level

    def constant(self, targets: np.ndarray) -> np.ndarray:
        """The constant scores to start from: the quantiles."""
        return np.quantile(targets, self._level(), axis=0)

    def steepness(self, targets: np.ndarray) -> float:
        """One over the spread of the targets: the gradient, plus or minus one, does not know their unit."""
        return 1 / _spread(targets)

    def value(self, scores: Any, targets: Any) -> float:
        """The mean loss of rows."""
        xp, errors = namespace(scores), targets - scores
        return float(xp.mean(xp.sum(errors * (self._level() - xp.astype(errors < 0, errors.dtype)), axis=1)))

    def gradient(self, scores: Any, targets: Any) -> Any:
        """The derivative of every row's loss by its scores, zero where a score is the target."""
        xp, level = namespace(scores), self._level()
        above, below = (xp.astype(side, scores.dtype) for side in (targets < scores, targets > scores))
        return (1 - level) * above - level * below

    def _level(self) -> float:
        return between("level", self.level)


def _spread(targets: np.ndarray) -> float:
    """The spread of the first targets between their quartiles, or their standard deviation; one if all are the same."""
    quartiles = float(quartile_spread(targets).mean())
    return quartiles or float(targets.std(axis=0).mean()) or 1.0
