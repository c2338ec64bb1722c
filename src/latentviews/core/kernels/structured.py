"""Kernels between objects that are no rows of numbers: Gram matrices made elsewhere, and functions."""

from collections.abc import Callable, Iterable
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from latentviews._arrays import in_library_of, to_numpy
from latentviews.core.kernels.base import Kernel

UNEVEN = 1e-8  # how far from symmetric, or below zero, rounding may take a Gram matrix, over its largest entry or value


class Precomputed(Kernel):
    """A kernel between objects that are known by their Gram matrix: strings, graphs, images, anything.

    .. math:: k(i, j) = G_{ij}

    The column of the view holds the numbers of the objects, from 0 on. The matrix is that of all objects that rows will
    ever name, those of later predictions included. Such a view has no density: classes are told by functionals of the
    embeddings (see `MultiViewMixture`).

    Parameters
    ----------
    matrix : array of shape (n_objects, n_objects)
        Symmetric and positive semidefinite.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import Precomputed
    >>> words = ["tree", "trees", "house"]
    >>> alike = Precomputed.of(words, lambda a, b: float(len(set(a) & set(b))))
    >>> alike.gram(np.array([[0.0]]), np.array([[1.0], [2.0]]))
    array([[3., 1.]])
    """

    space = None

    def __init__(self, matrix: np.ndarray):
        self.matrix = matrix

    @classmethod
    def of(cls, objects: Iterable[Any], function: Callable[[Any, Any], float]) -> Self:
        """The Gram matrix of a function of two objects.

        Parameters
        ----------
        objects : list of anything
        function : callable
            From two objects to a number, the same in either order.

        Returns
        -------
        Precomputed
        """
        if not callable(function):
            raise TypeError(f"Precomputed.of takes objects and a function of two of them; got {function!r:.80}.")
        things = list(objects)
        matrix = np.empty((len(things), len(things)))
        for i, first in enumerate(things):
            for j, second in enumerate(things[: i + 1]):
                matrix[i, j] = matrix[j, i] = _value(function(first, second), i, j)
            before = max(i - 1, 0)
            back = _value(function(things[before], first), before, i)  # one pair per object is asked both ways
            if abs(back - matrix[i, before]) > UNEVEN * max(abs(back), abs(matrix[i, before])):
                raise ValueError(
                    f"A kernel is the same in either order; here k({i}, {before}) = {matrix[i, before]:.6g} and "
                    f"k({before}, {i}) = {back:.6g}."
                )
        return cls(matrix)

    def adapt(self, x: Any) -> Self:
        """The kernel itself, its matrix and the numbers of the objects checked."""
        check_gram(self.matrix)
        self._numbers(x)
        return type(self)(self.matrix)  # not a clone, which would copy the matrix

    def gram(self, x: Any, y: Any) -> Any:
        """The matrix k(x_i, y_j)."""
        return in_library_of(np.asarray(self.matrix)[np.ix_(self._numbers(x), self._numbers(y))], x)

    def diagonal(self, x: Any) -> Any:
        """The values k(x_i, x_i)."""
        return in_library_of(np.diagonal(self.matrix)[self._numbers(x)], x)

    def _numbers(self, x: Any) -> np.ndarray:
        """The numbers of the objects that rows name."""
        if x.shape[1] != 1:
            raise ValueError(
                f"A view with a Precomputed kernel has one column, the numbers of the objects; got {x.shape[1]}."
            )
        values, size = to_numpy(x)[:, 0], len(self.matrix)
        strange = values[(values != np.floor(values)) | (values < 0) | (values >= size)]
        if len(strange):
            raise ValueError(
                f"The column of a Precomputed kernel holds numbers of objects, 0 to {size - 1} for this matrix; got "
                f"{strange[0]:g}. Give the Gram matrix of all objects, new ones included."
            )
        return values.astype(int)


def _value(value: Any, i: int, j: int) -> float:
    """A number that a function gave for two objects, or a sentence."""
    number = isinstance(value, int | float | np.number | np.bool_ | np.ndarray)
    if np.ndim(value) or not number or np.iscomplexobj(value):
        raise TypeError(f"A kernel of two objects is one number; for objects {i} and {j} it is {value!r:.80}.")
    return float(value)


def check_gram(matrix: Any) -> None:
    """Refuse a matrix that is not square, symmetric and positive semidefinite."""
    values = np.asarray(matrix)
    if values.dtype.kind not in "biuf":
        raise TypeError(f"A Gram matrix has real numbers as entries; this one has dtype {values.dtype}.")
    values = values.astype(float, copy=False)
    if values.ndim != 2 or values.shape[0] != values.shape[1] or not values.size:
        raise ValueError(f"A Gram matrix has as many rows as columns; got shape {values.shape}.")
    if not np.isfinite(values).all():
        raise ValueError("A Gram matrix has finite entries; there are others in this one.")
    largest, uneven = np.abs(values).max(), np.abs(values - values.T).max()
    if largest == 0:
        raise ValueError("All entries of a Gram matrix are zero; it says nothing of its objects.")
    if uneven > UNEVEN * largest:
        i, j = np.unravel_index(np.abs(values - values.T).argmax(), values.shape)
        raise ValueError(
            f"A Gram matrix is symmetric; here k({i}, {j}) = {values[i, j]:.6g} and k({j}, {i}) = {values[j, i]:.6g}. "
            "Take the mean of the matrix and its transpose if the difference is of no account."
        )
    try:  # a factor is found in a tenth of the time of eigenvalues
        np.linalg.cholesky(values + UNEVEN * len(values) * largest * np.eye(len(values)))
    except np.linalg.LinAlgError:
        low, high = np.linalg.eigvalsh(values)[[0, -1]]
        raise ValueError(
            f"A Gram matrix has no negative eigenvalue; the least of this one is {low:.3g}, the largest {high:.3g}. "
            "Use a positive semidefinite kernel, or drop the directions below zero."
        ) from None


class FunctionKernel(Kernel):
    """A kernel that is somebody's function of two tables of rows; what a model makes of ``kernel=function``.

    Parameters
    ----------
    function : callable
        From rows (n, d) and (m, d) to the matrix (n, m) of k(x_i, y_j), symmetric and positive semidefinite.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews.core.kernels.structured import FunctionKernel
    >>> FunctionKernel(lambda x, y: np.minimum(x, y.T)).gram(np.array([[1.0], [3.0]]), np.array([[2.0]]))
    array([[1.],
           [2.]])
    """

    space = None

    def __init__(self, function: Callable[[Any, Any], Any]):
        self.function = function

    def gram(self, x: Any, y: Any) -> Any:
        """The matrix k(x_i, y_j)."""
        values = self.function(x, y)
        if np.shape(values) != (x.shape[0], y.shape[0]):
            raise ValueError(
                f"A kernel function gives k(x_i, y_j) for all rows of two tables; for {x.shape[0]} and {y.shape[0]} "
                f"rows it gave shape {np.shape(values)}."
            )
        return in_library_of(values, x)

    def adapt(self, x: Any) -> Self:
        """A copy, after a look at whether the function is a kernel on some of the rows."""
        some = x[:50, :]
        check_gram(to_numpy(self.gram(some, some)))
        return clone(self)
