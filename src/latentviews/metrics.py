"""How far an estimate is from the truth."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from latentviews._validation import as_numbers

__all__ = [
    "Reordered",
    "adjusted_rand",
    "amari_error",
    "density_error",
    "f_measure",
    "label_accuracy",
    "match_components",
    "match_labels",
    "weight_error",
]
MOST_LABELS = 10_000  # classes whose table of counts is made


def match_labels(true: Any, found: Any) -> np.ndarray:
    r"""For every true class, the found class that shares most rows with it, one to one.

    ``match[h]`` is the found label of true class h.

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
    true, found = _same_length(_whole("true", true), _whole("found", found))
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
    if not values.size or not 0 <= values.min() <= values.max() < MOST_LABELS:
        raise ValueError(
            f"Labels must be 0, …, k-1, at least one of them and k at most {MOST_LABELS:,}; leave out rows whose class "
            "is unknown, and number others by np.unique(labels, return_inverse=True)[1]."
        )
    return values.astype(int)


def _named(name: str, labels: Any) -> tuple[np.ndarray, np.ndarray]:
    """The different labels of any names, sorted, and the place of every row's among them."""
    values = np.asarray(labels)
    try:
        names, places = np.unique(values, return_inverse=True)
        unordered = values.ndim != 1 or not values.size or bool(np.any(values != values))
    except TypeError:  # numbers and text
        unordered = True
    if unordered:
        raise ValueError(f"{name} must be a list of labels of one kind, one per row, none missing; got {labels!r:.60}.")
    return names, places


def _same_length(true: np.ndarray, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both, if they are of the same rows."""
    if true.shape != found.shape:
        raise ValueError(f"Labels must have the same shape; got {true.shape} and {found.shape}.")
    return true, found


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


def adjusted_rand(a: Any, b: Any) -> float:
    r"""How well two partitions of the same rows agree (Hubert & Arabie 1985): one where they are the same, 0 by chance.

    .. math:: \frac{\sum_{hj} \binom{n_{hj}}{2} - e}{\frac12 (A + B) - e}, \qquad
              A = \sum_h \binom{n_h}{2}, \quad B = \sum_j \binom{m_j}{2}, \quad e = AB / \binom n2

    n_hj rows are in class h of the first and class j of the second, n_h and m_j are the sums.

    Parameters
    ----------
    a : array of shape (n,)
        Labels of any names.
    b : array of shape (n,)
        Labels of any names.

    Returns
    -------
    float

    Examples
    --------
    >>> from latentviews.metrics import adjusted_rand
    >>> adjusted_rand(["x", "x", "y", "y"], [7, 7, 3, 3])  # the names do not count
    1.0
    >>> round(adjusted_rand([0, 0, 1, 1], [0, 0, 1, 2]), 2)
    0.57
    """
    first, second = _same_length(_named("a", a)[1], _named("b", b)[1])
    joint = np.unique(first * (second.max() + 1) + second, return_counts=True)[1]
    both, one, other = (np.sum(n * (n - 1.0)) for n in (joint, np.bincount(first), np.bincount(second)))
    chance = one * other / max(len(first) * (len(first) - 1.0), 1.0)
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
    (names, rows), (_, columns) = _named("true", true), _named("found", found)
    rows, columns = _same_length(rows, columns)
    known = np.ones(len(rows), dtype=bool) if unknown is None else (names != unknown)[rows]
    if not known.any():
        raise ValueError("No row has a known label.")
    rows, columns = (np.unique(labels[known], return_inverse=True)[1] for labels in (rows, columns))
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
    _check_views(true, found, grids)
    errors = [
        np.sqrt(((p.density(x) - q.density(x)) ** 2).sum(axis=0)) @ weights
        for p, q, x in zip(true, found, grids, strict=True)
    ]
    return float(np.mean(errors))


def _check_views(*by_view: Any) -> None:
    """Refuse lists that are not of the same views."""
    lengths = [len(one) for one in by_view]
    if not lengths[0] or len(set(lengths)) > 1:
        raise ValueError(f"true, found and grids must have one entry per view; they have {lengths}.")


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
    _check_views(true, found, grids)
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
    first, second = (as_numbers(name, value, missing=False) for name, value in (("true", true), ("found", found)))
    if first.shape != second.shape or first.ndim != 1 or not np.isfinite([first, second]).all() or not first.size:
        raise ValueError(f"true and found must be finite, one weight per class; got {true!r:.60} and {found!r:.60}.")
    return float(np.abs(first - second).max())


class Reordered:
    r"""A view's components with the classes in another order.

    .. math:: p(x \mid h) \leftarrow p(x \mid \text{order}_h)

    Parameters
    ----------
    components : components
        With ``density(x)``.
    order : array of shape (k,)
        The class that comes first, second, …

    Examples
    --------
    >>> from latentviews.datasets import make_multiview
    >>> from latentviews.metrics import Reordered
    >>> view = make_multiview(10, 3, design="shapes", random_state=0).truth.components[0]
    >>> view.density([0.0]).round(2), Reordered(view, [2, 0, 1]).density([0.0]).round(2)
    (array([[0.4 , 0.  , 0.17]]), array([[0.17, 0.4 , 0.  ]]))
    """

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
    p = np.abs(as_numbers("The product of components and mixing", product, missing=False))
    if p.ndim != 2 or p.shape[0] != p.shape[1] or not p.size:
        raise ValueError(f"The product of components and mixing must be square; got shape {p.shape}.")
    if not (np.isfinite(p).all() and p.any(axis=0).all() and p.any(axis=1).all()):
        raise ValueError("The product of components and mixing must be finite, no row and no column of it all zeros.")
    if len(p) == 1:
        return 0.0
    rows, columns = (np.sum(p.sum(axis=axis) / p.max(axis=axis) - 1) for axis in (1, 0))
    return float((rows + columns) / (2 * len(p) * (len(p) - 1)))
