"""Losses of functions with one output per class or target, for gradient methods on rows in any array library.

A loss offers ``value(scores, targets)``, its mean over rows, ``gradient(scores, targets)``, its derivative by the
scores of every row, and ``curvature``, how much the gradient changes at most for a unit change of a score; where that
says nothing of the way to the least loss, ``steepness(targets)`` stands in for it. Targets of
classes are one where a row is in the class and zero elsewhere; a loss ``of_classes`` is for such targets alone.
"""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from latentviews._arrays import namespace
from latentviews._numbers import quartile_spread
from latentviews._validation import check_positive


class Loss(BaseEstimator):
    """What every loss offers."""

    curvature = 1.0
    of_classes = False
    smooth = False  # whether the gradient has a derivative everywhere, of about ``curvature`` near the start
    limit = 1e3  # scores beyond so many times the targets, both as deviations from the start, have diverged

    def steepness(self, targets: np.ndarray) -> float:
        """What steps are divided by, given the first targets."""
        return self.curvature

    def constant(self, targets: np.ndarray) -> np.ndarray:
        """The constant scores to start from, (outputs,)."""
        return targets.mean(axis=0)

    def value(self, scores: Any, targets: Any) -> float:
        """The mean loss of rows."""
        raise TypeError(f"{type(self).__name__} is a loss without `value`: write value(scores, targets) for it.")

    def gradient(self, scores: Any, targets: Any) -> Any:
        """The derivative of every row's loss by its scores, (n, outputs)."""
        raise TypeError(f"{type(self).__name__} is a loss without `gradient`: write gradient(scores, targets) for it.")


class Logistic(Loss):
    """Minus the log of the probability that the softmax of the scores gives to a row's class."""

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
        """The softmax of the scores."""
        xp = namespace(scores)
        weights = xp.exp(scores - xp.max(scores, axis=1, keepdims=True))
        return weights / xp.sum(weights, axis=1, keepdims=True)


class Hinge(Loss):
    """max(0, 1 - ts) of every class against the rest, with t = 1 in the class and -1 outside."""

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
    """Half of the squared error."""

    smooth = True

    def value(self, scores: Any, targets: Any) -> float:
        """The mean loss of rows."""
        xp = namespace(scores)
        return 0.5 * float(xp.mean(xp.sum((scores - targets) ** 2, axis=1)))

    def gradient(self, scores: Any, targets: Any) -> Any:
        """The derivative of every row's loss by its scores."""
        return scores - targets


class Huber(Loss):
    """The squared loss for errors up to a threshold, and linear beyond it.

    Parameters
    ----------
    threshold : float, default=1
        In the unit of the targets.
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


def _spread(targets: np.ndarray) -> float:
    """The spread of the first targets between their quartiles, or their standard deviation; one if all are the same."""
    quartiles = float(quartile_spread(targets).mean())
    return quartiles or float(targets.std(axis=0).mean()) or 1.0


class Quantile(Loss):
    """The loss that a quantile of the targets minimises.

    Parameters
    ----------
    level : float, default=0.5
        Which quantile, between zero and one.
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
        level = check_positive("level", self.level)
        if not level < 1:
            raise ValueError(f"level must be between 0 and 1; got {self.level!r}.")
        return level
