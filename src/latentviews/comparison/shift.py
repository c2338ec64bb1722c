"""What to do where a model is used on rows of another distribution than it was fitted on."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import minimize, nnls

from latentviews._arrays import to_numpy
from latentviews._numbers import generator_of
from latentviews._sentences import warn_user
from latentviews._validation import check_count, check_positive
from latentviews.comparison.features import (
    LANDMARKS,
    as_rows,
    check_same_names,
    fitted_map,
    kernels_to_try,
    middle_gaussian,
    some_rows,
)
from latentviews.core.kernels.base import Kernel, UnitHeight

AT_BOUND = 1e-6  # of the bound: weights so near to it are at it
APART = 0.5  # of the squared distance of two samples: with more left by the weights they hardly overlap,
NOISY = 4.0  # unless it is less than so many times what two samples of one distribution show


def covariate_shift_weights(
    source: Any,
    target: Any,
    *,
    kernel: Kernel | None = None,
    bound: float = 20.0,
    n_landmarks: int = LANDMARKS,
    random_state: Any = None,
) -> np.ndarray:
    r"""Weights that make the rows of ``source`` stand for those of ``target`` (Huang et al. 2007).

    Kernel mean matching:

    .. math:: \min_w \Big\| \frac1n \sum_i w_i \varphi(x_i) - \bar\varphi_{\text{target}} \Big\|^2
              + \frac{\lambda}{n} \sum_i (w_i - 1)^2, \qquad 0 \le w_i \le b,

    with λ the noise of the two means, (1/n + 1/m) (1 − the squared norm of the mean), over the number of rows, so that
    nothing is fitted that a sample of the same distribution would show. Pass them as ``sample_weight`` to a regression
    that is used on the target. Where they leave more than half of the squared distance of the samples, and more than
    noise, a warning says that these hardly overlap.

    Parameters
    ----------
    source, target : arrays of shape (n, d) and (m, d), or vectors
    kernel : Kernel or None
        None is the Gaussian of the median distance in standard deviations of the columns.
    bound : float, default=20
        The largest weight, b.
    n_landmarks : int, default=300
    random_state : int, RandomState or None

    Returns
    -------
    array of shape (n,)
        Nonnegative, with mean one.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> source, target = rng.normal(size=500), rng.normal(1.0, size=500)
    >>> weights = covariate_shift_weights(source, target, random_state=0)
    >>> bool(abs(np.average(source, weights=weights) - 1.0) < 0.15)
    True
    """
    source, target = _both_tables(source, target)
    bound = check_positive("bound", bound)
    if bound < 1:
        raise ValueError(f"bound must be at least 1, the mean of the weights; got {bound:g}.")
    rng = generator_of(random_state)
    phi, goal, noise = _features_of_both(source, target, kernel, check_count("n_landmarks", n_landmarks), rng)
    n = len(source)
    phi = np.column_stack([phi, np.ones(n)])  # the mean of the weights is matched to one with the rest
    goal = np.append(goal, 1.0)

    def objective(w: np.ndarray) -> tuple[float, np.ndarray]:
        miss = phi.T @ w / n - goal
        return float(miss @ miss + noise * np.mean((w - 1) ** 2)), 2 * (phi @ miss + noise * (w - 1)) / n

    found = minimize(objective, np.ones(n), jac=True, method="L-BFGS-B", bounds=[(0.0, bound)] * n)
    weights = found.x / found.x.mean()
    bounded = bool(np.any(found.x > (1 - AT_BOUND) * bound))
    _tell_apart(phi.T @ np.column_stack([np.ones(n), weights]) / n - goal[:, None], noise, bounded)
    return weights


def _tell_apart(misses: np.ndarray, noise: float, bounded: bool) -> None:
    """Warn where the weights leave much of the difference of the embeddings (D, 2), without them and with them."""
    before, after = np.sum(misses**2, axis=0)
    if after > max(NOISY * noise, APART * before):
        warn_user(
            f"target and source hardly overlap: the weights leave {100 * after / before:.0f} % of their squared "
            "distance, so what is fitted with them is a guess; ask for rows of source that are like the target"
            f"{', or raise bound, which some weights are at' if bounded else ''}."
        )


def _features_of_both(source: np.ndarray, target: np.ndarray, kernel: Any, n_landmarks: int, rng: Any) -> Any:
    """Features of the source, their mean over the target, and the noise of the distance of two such means."""
    some = some_rows(np.concatenate([source, target]), rng)
    kernel = middle_gaussian(some) if kernel is None else kernels_to_try(kernel, some, LANDMARKS)[0]
    features = fitted_map(UnitHeight(kernel), some, n_landmarks, rng)
    phi, goal = features.transform(source), features.transform(target).mean(axis=0)
    spread = max(1.0 - float(goal @ goal), 0.0)
    return phi, goal, spread * (1 / len(source) + 1 / len(target))


def _both_tables(source: Any, target: Any) -> tuple[np.ndarray, np.ndarray]:
    """The rows of both samples, which have the same columns."""
    check_same_names(source, target)
    source, target = to_numpy(as_rows("source", source)), to_numpy(as_rows("target", target))
    if source.shape[1] != target.shape[1]:
        raise ValueError(f"source and target need the same columns; got {source.shape[1]} and {target.shape[1]}.")
    return source, target


@dataclass(frozen=True, eq=False)
class LabelShift:
    """How common every class is in a sample without labels, and what that makes of the labelled rows.

    .. math:: w_i = q_{y_i} / p_{y_i}

    ``weights`` has one weight per labelled row, target share q over source share p of its class.

    Attributes
    ----------
    classes : array of shape (k,)
    source : array of shape (k,)
        Shares of the classes among the labelled rows.
    target : array of shape (k,)
        And among the others.
    weights : array of shape (n,)
        Of the labelled rows.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import label_shift
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat(["ill", "well"], 100)
    >>> source = rng.normal(size=200) + 6.0 * (labels == "well")
    >>> shift = label_shift(source, labels, source[60:], random_state=0)  # with fewer that are ill
    >>> shift.classes.tolist(), shift.source, shift.target.round(1)
    (['ill', 'well'], array([0.5, 0.5]), array([0.3, 0.7]))
    """

    classes: np.ndarray
    source: np.ndarray
    target: np.ndarray
    weights: np.ndarray = field(repr=False)


def label_shift(
    source: Any,
    labels: Any,
    target: Any,
    *,
    kernel: Kernel | None = None,
    n_landmarks: int = LANDMARKS,
    random_state: Any = None,
) -> LabelShift:
    r"""How common the classes are in ``target``, where each class looks as it does in ``source`` (Zhang et al. 2013).

    .. math:: \min_{q \ge 0,\; \sum_h q_h = 1} \Big\| \sum_h q_h \mu_h - \bar\varphi_{\text{target}} \Big\|^2

    with the embeddings μ_h of the classes.

    Parameters
    ----------
    source : array of shape (n, d)
    labels : array of shape (n,)
        The classes of the rows of ``source``, of any type.
    target : array of shape (m, d)
    kernel : Kernel or None
        None is the Gaussian of the median distance in standard deviations of the columns.
    n_landmarks : int, default=300
    random_state : int, RandomState or None

    Returns
    -------
    LabelShift

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(2, size=500)
    >>> source = rng.normal(size=500) + 3 * labels
    >>> target = rng.normal(size=500) + 3 * (rng.random(500) < 0.9)
    >>> label_shift(source, labels, target, random_state=0).target.round(1)
    array([0.1, 0.9])
    """
    source, target = _both_tables(source, target)
    labels = np.asarray(labels)
    if labels.shape != (len(source),):
        raise ValueError(f"labels needs one class per row of source, shape ({len(source)},); got {labels.shape}.")
    if any(label is None or label != label for label in labels.tolist()):
        raise ValueError("labels contains None or NaN, which is no class; leave those rows out of source.")
    classes, codes = np.unique(labels, return_inverse=True)
    rng = generator_of(random_state)
    phi, goal, _ = _features_of_both(source, target, kernel, check_count("n_landmarks", n_landmarks), rng)
    members = np.eye(len(classes))[codes]
    counts = members.sum(axis=0)
    means = phi.T @ members / counts
    firm = 1e3 * np.linalg.norm(means)  # shares that sum to one matter more than any distance
    shares, _ = nnls(np.vstack([means, np.full(len(classes), firm)]), np.append(goal, firm))
    shares = shares / shares.sum()
    before = counts / len(source)
    return LabelShift(classes, before, shares, (shares / before)[codes])
