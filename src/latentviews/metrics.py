"""How far an estimate is from the truth."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment


def match_labels(true: Any, found: Any) -> np.ndarray:
    r"""For every true class, the found class that shares most rows with it, one to one.

    ``true`` and ``found`` are labels 0, …, k-1. ``match[h]`` is the found name of true class h.

    .. math:: \text{match} = \arg\max_\sigma \sum_h n_{h \sigma(h)}

    over permutations σ, where n_hj rows are in true class h and found class j (the assignment problem, Kuhn 1955).

    Parameters
    ----------
    true : array of shape (n,)
        Labels.
    found : array of shape (n,)
        Labels of any names.

    Returns
    -------
    array

    Examples
    --------
    >>> from latentviews.metrics import match_labels
    >>> match_labels([0, 0, 1, 1, 2], [2, 2, 0, 0, 1]).tolist()
    [2, 0, 1]
    """
    true, found = _whole("true", true), _whole("found", found)
    if true.shape != found.shape:
        raise ValueError(f"Labels must have the same shape; got {true.shape} and {found.shape}.")
    if not true.size or min(true.min(), found.min()) < 0:
        raise ValueError("Labels must be 0, …, k-1, at least one of them; leave out rows whose class is unknown.")
    size = int(max(true.max(), found.max())) + 1
    table = np.zeros((size, size), dtype=int)
    np.add.at(table, (true, found), 1)
    return linear_sum_assignment(-table)[1]


def _whole(name: str, labels: Any) -> np.ndarray:
    """Labels as whole numbers, or a sentence on what they are."""
    values = np.asarray(labels)
    if values.ndim != 1 or values.dtype.kind not in "biuf" or not np.array_equal(values, np.round(values)):
        raise ValueError(
            f"{name} must be a list of labels 0, …, k-1, one per row; got {labels!r:.60}. Names become such labels by "
            "np.unique(names, return_inverse=True)[1]."
        )
    return values.astype(int)


def label_accuracy(true: Any, found: Any) -> float:
    r"""The share of rows whose class is right once classes are matched.

    .. math:: \frac1n \max_\sigma \sum_h n_{h \sigma(h)}

    with σ and n_hj as in `match_labels`.

    Parameters
    ----------
    true : array of shape (n,)
        Labels.
    found : array of shape (n,)
        Labels of any names.

    Returns
    -------
    float

    Examples
    --------
    >>> from latentviews.metrics import label_accuracy
    >>> label_accuracy([0, 0, 0, 1, 1], [1, 1, 0, 0, 0])  # one row is wrong; the names of classes do not count
    0.8
    """
    return float(np.mean(match_labels(true, found)[np.asarray(true, dtype=int)] == np.asarray(found)))


def adjusted_rand(a: np.ndarray, b: np.ndarray) -> float:
    """How well two partitions of the same rows agree (Hubert & Arabie 1985): one where they are the same, 0 by chance.

    ``a`` and ``b`` are labels 0, 1, …; many rows take little time.

    Parameters
    ----------
    a : array of shape (n,)
        Labels.
    b : array of shape (n,)
        Labels of any names.

    Returns
    -------
    float
    """
    size = int(b.max()) + 1
    counts = np.bincount(a * size + b, minlength=(int(a.max()) + 1) * size).reshape(-1, size).astype(float)
    both, one, other = (np.sum(n * (n - 1)) for n in (counts, counts.sum(axis=1), counts.sum(axis=0)))
    chance = one * other / max(len(a) * (len(a) - 1.0), 1.0)
    most = (one + other) / 2
    return float((both - chance) / (most - chance)) if most > chance else 1.0


def f_measure(true: Any, found: Any, *, unknown: int | None = 0) -> float:
    r"""The F-measure of the FlowCAP challenge (Aghaeepour et al. 2013), from 0 to 1.

    .. math:: F = \sum_i \frac{n_i}{n} \max_j \frac{2 n_{ij}}{n_i + m_j}

    n_ij rows are in true class i and found class j, n_i and m_j are the sums. Every true class is matched with the
    found class that suits it best. Rows whose true label is ``unknown`` are left out; None leaves out no row.

    Parameters
    ----------
    true : array of shape (n,)
        Labels.
    found : array of shape (n,)
        Labels of any names.
    unknown : label or None
        The label of rows that belong to no class.

    Returns
    -------
    float

    Examples
    --------
    >>> from latentviews.metrics import f_measure
    >>> f_measure([1, 1, 2, 2, 0], [5, 5, 6, 6, 5])  # the last row was not gated
    1.0
    >>> round(f_measure([1, 1, 2, 2, 0], [5, 5, 6, 5, 5]), 3)
    0.733
    """
    true, found = np.asarray(true), np.asarray(found)
    if true.shape != found.shape:
        raise ValueError(f"Labels must have the same shape; got {true.shape} and {found.shape}.")
    known = np.ones(len(true), dtype=bool) if unknown is None else true != unknown
    if not known.any():
        raise ValueError("No row has a known label.")
    rows, columns = (np.unique(labels[known], return_inverse=True)[1] for labels in (true, found))
    table = np.zeros((rows.max() + 1, columns.max() + 1))
    np.add.at(table, (rows, columns), 1)
    scores = 2 * table / (table.sum(axis=1, keepdims=True) + table.sum(axis=0))
    return float(table.sum(axis=1) @ scores.max(axis=1) / table.sum())


def density_error(true: Any, found: Any, grids: Sequence[np.ndarray], weights: np.ndarray) -> float:
    r"""The weighted L2 error of Song et al. (2014), section 8.1, averaged over views.

    .. math:: \sum_h \pi_h \Bigl(\sum_j (p(x_j \mid h) - \hat p(x_j \mid h))^2\Bigr)^{1/2}

    ``true`` and ``found`` are sequences of objects with ``density(x)``, one per view, classes in the same order
    (see `match_components`); ``grids`` are the test points x_j of every view.

    Parameters
    ----------
    true : sequence of components
        One per view.
    found : sequence of components
        One per view.
    grids : list of arrays
        One per view.
    weights : array of shape (k,)
        Of the true classes.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import stats
    >>> from latentviews.datasets import TrueView
    >>> from latentviews.metrics import density_error
    >>> true, found = ([TrueView([[(1.0, stats.norm(m))], [(1.0, stats.norm(4))]])] for m in (0.0, 0.1))
    >>> grids, weights = [np.linspace(-5, 9, 141)], np.array([0.5, 0.5])
    >>> round(density_error(true, found, grids, weights), 3)
    0.059
    >>> density_error(true, true, grids, weights)
    0.0
    """
    errors = [
        np.sqrt(((p.density(x) - q.density(x)) ** 2).sum(axis=0)) @ weights
        for p, q, x in zip(true, found, grids, strict=True)
    ]
    return float(np.mean(errors))


def match_components(true: Any, found: Any, grids: Sequence[np.ndarray], weights: np.ndarray) -> np.ndarray:
    r"""For every true class, the found class with the closest densities over all views, one to one.

    .. math:: \arg\min_\sigma \sum_h \pi_h \sum_t
              \Bigl(\sum_j (p_t(x_j \mid h) - \hat p_t(x_j \mid \sigma(h)))^2\Bigr)^{1/2}

    Parameters
    ----------
    true : sequence of components
        One per view.
    found : sequence of components
        One per view.
    grids : list of arrays
        One per view.
    weights : array of shape (k,)
        Of the true classes.

    Returns
    -------
    array

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews.datasets import make_multiview
    >>> from latentviews.metrics import Reordered, match_components
    >>> weights, true = make_multiview(10, 3, random_state=0).truth
    >>> found = [Reordered(view, [2, 0, 1]) for view in true]
    >>> match_components(true, found, [np.linspace(-8, 8, 100)] * 3, weights).tolist()
    [1, 2, 0]
    """
    k = len(weights)
    cost = np.zeros((k, k))
    for p, q, x in zip(true, found, grids, strict=True):
        here, there = p.density(x), q.density(x)
        cost += np.sqrt(((here[:, :, None] - there[:, None, :]) ** 2).sum(axis=0))
    return linear_sum_assignment(cost * weights[:, None])[1]


def weight_error(true: Any, found: Any) -> float:
    r"""The largest error of a class weight, classes in the same order.

    .. math:: \max_h |\pi_h - \hat\pi_h|

    Parameters
    ----------
    true : array of shape (k,)
    found : array of shape (k,)

    Returns
    -------
    float

    Examples
    --------
    >>> from latentviews.metrics import weight_error
    >>> round(weight_error([0.5, 0.3, 0.2], [0.55, 0.3, 0.15]), 3)
    0.05
    """
    return float(np.abs(np.asarray(true) - np.asarray(found)).max())


class Reordered:
    """A view's components with the classes in another order."""

    def __init__(self, components: Any, order: np.ndarray):
        self.components = components
        self.order = order

    def density(self, x: Any) -> np.ndarray:
        """The densities of the reordered classes, (n, k).

        Parameters
        ----------
        x : array of shape (n,) or (n, d)

        Returns
        -------
        array of shape (n, k)
        """
        return self.components.density(x)[:, self.order]


def amari_error(product: Any) -> float:
    r"""How far components times mixing matrix, a square matrix, is from a scaled permutation (Amari et al. 1996).

    .. math:: \frac{1}{2k(k-1)} \Big[\sum_i \Big(\frac{\sum_j |p_{ij}|}{\max_j |p_{ij}|} - 1\Big)
              + \sum_j \Big(\frac{\sum_i |p_{ij}|}{\max_i |p_{ij}|} - 1\Big)\Big]

    From 0, every source alone in one component, to 1.

    Parameters
    ----------
    product : array of shape (k, k)
        The unmixing found times the true mixing.

    Returns
    -------
    float

    Examples
    --------
    >>> from latentviews.metrics import amari_error
    >>> amari_error([[0.0, 2.0], [-3.0, 0.0]])  # sources apart, in another order and scale
    0.0
    >>> amari_error([[1.0, 1.0], [1.0, -1.0]])  # both sources in both components
    1.0
    """
    p = np.abs(np.asarray(product, dtype=float))
    if p.ndim != 2 or p.shape[0] != p.shape[1]:
        raise ValueError(f"The product of components and mixing must be square; got shape {p.shape}.")
    if len(p) == 1:
        return 0.0
    rows, columns = (np.sum(p.sum(axis=axis) / p.max(axis=axis) - 1) for axis in (1, 0))
    return float((rows + columns) / (2 * len(p) * (len(p) - 1)))
