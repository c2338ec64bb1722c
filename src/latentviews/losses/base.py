"""What a loss is, and what losses are made of."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

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
        """What steps are divided by, given the first targets.

        Parameters
        ----------
        targets : array of shape (n, outputs)

        Returns
        -------
        float
        """
        return self.curvature

    def constant(self, targets: np.ndarray) -> np.ndarray:
        """The constant scores to start from, (outputs,).

        Parameters
        ----------
        targets : array of shape (n, outputs)

        Returns
        -------
        array of shape (outputs,)
        """
        return targets.mean(axis=0)

    def value(self, scores: Any, targets: Any) -> float:
        """The mean loss of rows.

        Parameters
        ----------
        scores : array of shape (n, outputs)
        targets : array of shape (n, outputs)

        Returns
        -------
        float
        """
        raise TypeError(f"{type(self).__name__} is a loss without `value`: write value(scores, targets) for it.")

    def gradient(self, scores: Any, targets: Any) -> Any:
        """The derivative of every row's loss by its scores, (n, outputs).

        Parameters
        ----------
        scores : array of shape (n, outputs)
        targets : array of shape (n, outputs)

        Returns
        -------
        array of shape (n, outputs)
        """
        raise TypeError(f"{type(self).__name__} is a loss without `gradient`: write gradient(scores, targets) for it.")


def between(name: str, value: Any) -> float:
    """A number between zero and one, neither of them."""
    number = check_positive(name, value)
    if not number < 1:
        raise ValueError(f"{name} must be between 0 and 1; got {value!r}.")
    return number
