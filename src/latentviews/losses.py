"""Losses of functions with one output per class or target, for gradient methods on rows in any array library."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from latentviews._arrays import namespace
from latentviews._numbers import quartile_spread
from latentviews._validation import check_positive


class Loss(BaseEstimator):
    r"""What every loss offers; one of your own needs ``value`` and ``gradient``.

    .. math:: \frac1n \sum_i \ell(s_i, t_i)

    Scores s and targets t are arrays of shape (n, outputs), of one library: targets of classes are one where a row is
    in the class and zero elsewhere. ``value(scores, targets)`` is the mean over rows, ``gradient(scores, targets)`` the
    derivative of every row's loss by its scores. ``constant(targets)`` are the scores to start from, by default the
    mean of the targets, and ``steepness(targets)`` is what steps are divided by: ``curvature``, unless that says
    nothing of the way to the least loss.

    Attributes
    ----------
    curvature : float, default=1
        How much the gradient changes at most for a unit change of a score.
    of_classes : bool, default=False
        Whether it is for targets of classes alone.
    smooth : bool, default=False
        Whether the gradient has a derivative everywhere, of about ``curvature`` near the start.
    limit : float, default=1e3
        Scores beyond so many times the targets, both as deviations from the start, have diverged.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews.losses import Loss
    >>> class LogCosh(Loss):  # squared for small errors, and the absolute value of large ones
    ...     smooth = True
    ...     def value(self, scores, targets):
    ...         return float(np.log(np.cosh(scores - targets)).sum(axis=1).mean())
    ...     def gradient(self, scores, targets):
    ...         return np.tanh(scores - targets)
    >>> LogCosh().gradient(np.array([[0.1], [9.0]]), np.zeros((2, 1))).round(1).ravel()
    array([0.1, 1. ])
    """

    curvature = 1.0
    of_classes = False
    smooth = False
    limit = 1e3

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
        """The softmax of the scores."""
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


def _spread(targets: np.ndarray) -> float:
    """The spread of the first targets between their quartiles, or their standard deviation; one if all are the same."""
    quartiles = float(quartile_spread(targets).mean())
    return quartiles or float(targets.std(axis=0).mean()) or 1.0


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
        return _between("level", self.level)


class DensityRatio(Loss):
    r"""Least-squares importance fitting: the function of least loss is the ratio p/q of two densities.

    Rows drawn from p have target 1, rows drawn from q have target 0. With π the share of the former,

    .. math:: \frac{(1 - t)\, s^2}{2 (1 - \pi)} - \frac{t\, s}{\pi}, \qquad
              \text{on average}\quad \tfrac12 \mathbb E_q[s^2] - \mathbb E_p[s],

    which s = p/q minimises (Kanamori, Hido & Sugiyama 2009). Scores are not kept from falling below zero.

    Parameters
    ----------
    share : float, default=0.5
        π, between zero and one.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import DoublyStochasticRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0.5, size=(500, 1)), rng.normal(size=(500, 1))])
    >>> y = np.repeat([1.0, 0.0], 500)
    >>> ratio = DoublyStochasticRegressor(loss=DensityRatio(), random_state=0).fit(X, y)
    >>> bool(ratio.predict([[1.0]])[0] > 1 > ratio.predict([[-1.0]])[0])
    True
    """

    smooth = True
    limit = 1e4

    def __init__(self, share: float = 0.5):
        self.share = share

    @property
    def curvature(self) -> float:  # type: ignore[override]
        """That of rows from q; those from p have none."""
        return 1 / (1 - _between("share", self.share))

    def constant(self, targets: np.ndarray) -> np.ndarray:
        """The constant scores to start from: one, where ``share`` is that of the targets."""
        _check_two_samples(self, targets)
        share, found = _between("share", self.share), targets.mean(axis=0)
        return (found / share) / np.maximum((1 - found) / (1 - share), 1 / len(targets))

    def value(self, scores: Any, targets: Any) -> float:
        """The mean loss of rows."""
        xp, share = namespace(scores), _between("share", self.share)
        losses = (1 - targets) * scores**2 / (2 * (1 - share)) - targets * scores / share
        return float(xp.mean(xp.sum(losses, axis=1)))

    def gradient(self, scores: Any, targets: Any) -> Any:
        """The derivative of every row's loss by its scores."""
        share = _between("share", self.share)
        return (1 - targets) * scores / (1 - share) - targets / share


class Novelty(Loss):
    r"""A hinge loss whose function of least loss is 1 where a density is above a level, and -1 where below: novel.

    Rows of the sample, of density p, have target 1. Rows drawn from a reference of density q, such as evenly from the
    box around the sample, have target 0. With π the share of the former and ρ the level,

    .. math:: \frac{t}{\pi} \max(0, 1 - s) + \frac{\rho\,(1 - t)}{1 - \pi} \max(0, 1 + s),

    which is least for s = sign(p - ρ q) (Steinwart, Hush & Scovel 2005). A sample alone would not do: the constant of a
    machine is free, and a constant would tell no row from another.

    Parameters
    ----------
    level : float, default=0.1
        ρ: rows are novel where the sample has less than this share of the density of the reference.
    share : float, default=0.5
        π, between zero and one.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import DoublyStochasticRegressor, Gaussian
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(size=(500, 1)), rng.uniform(-6, 6, size=(500, 1))])
    >>> y = np.repeat([1.0, 0.0], 500)
    >>> known = DoublyStochasticRegressor(loss=Novelty(), kernel=Gaussian(1.0), random_state=0).fit(X, y)
    >>> np.sign(known.predict([[0.0], [5.0]]))
    array([ 1., -1.])
    """

    limit = 1e4

    def __init__(self, level: float = 0.1, share: float = 0.5):
        self.level = level
        self.share = share

    @property
    def curvature(self) -> float:  # type: ignore[override]
        """How large the gradient can be."""
        return max(self._factors())

    def constant(self, targets: np.ndarray) -> np.ndarray:
        """The constant scores to start from: neither known nor novel."""
        _check_two_samples(self, targets)
        return np.zeros(targets.shape[1])

    def value(self, scores: Any, targets: Any) -> float:
        """The mean loss of rows."""
        xp, (inside, outside) = namespace(scores), self._factors()
        known = inside * targets * xp.clip(1 - scores, min=0.0)
        return float(xp.mean(xp.sum(known + outside * (1 - targets) * xp.clip(1 + scores, min=0.0), axis=1)))

    def gradient(self, scores: Any, targets: Any) -> Any:
        """The derivative of every row's loss by its scores."""
        xp, (inside, outside) = namespace(scores), self._factors()
        low, high = xp.astype(scores < 1, scores.dtype), xp.astype(scores > -1, scores.dtype)
        return outside * (1 - targets) * high - inside * targets * low

    def _factors(self) -> tuple[float, float]:
        """What rows of the sample and of the reference are multiplied by."""
        share = _between("share", self.share)
        return 1 / share, check_positive("level", self.level) / (1 - share)


def _check_two_samples(loss: Loss, targets: np.ndarray) -> None:
    """Refuse targets that do not say which of two samples a row is from."""
    if not np.all((targets == 0) | (targets == 1)):
        raise ValueError(f"{type(loss).__name__} takes targets 1 and 0, for the rows of two samples; got others.")


def _between(name: str, value: Any) -> float:
    """A number between zero and one, neither of them."""
    number = check_positive(name, value)
    if not number < 1:
        raise ValueError(f"{name} must be between 0 and 1; got {value!r}.")
    return number
