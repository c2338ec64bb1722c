"""Powers of the inner product, whose embeddings are moments."""

from typing import Any

import numpy as np

from latentviews._arrays import namespace
from latentviews._validation import check_count
from latentviews.core.kernels.base import Kernel


def _products(x: Any, y: Any) -> Any:
    """The inner products of rows, infinite or NaN where they are out of the range of their dtype."""
    with np.errstate(over="ignore", invalid="ignore"):
        return x @ y.T


def _squares(x: Any) -> Any:
    """The inner products of rows with themselves, likewise."""
    with np.errstate(over="ignore"):
        return namespace(x).sum(x**2, axis=1)


class Linear(Kernel):
    r"""The inner product. Its embeddings are means; they have no density.

    .. math:: k(x, y) = \langle x, y \rangle

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import Linear
    >>> Linear().gram(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0], [2.0, -1.0]]))
    array([[11.,  0.]])
    """

    space = None

    def gram(self, x: Any, y: Any) -> Any:
        """The matrix k(x_i, y_j)."""
        return self._in_range(_products(x, y))

    def diagonal(self, x: Any) -> Any:
        """The values k(x_i, x_i)."""
        return self._in_range(_squares(x))

    def _in_range(self, values: Any) -> Any:
        """The values, or a sentence where they are beyond the range of numbers."""
        xp = namespace(values)
        if not bool(xp.all(xp.isfinite(values))):
            raise ValueError(f"The values of the kernel are out of the range of {values.dtype}; scale the rows.")
        return values


class Polynomial(Kernel):
    r"""A power of the inner product. Its embeddings hold moments up to the degree; they have no density.

    .. math:: k(x, y) = (s \langle x, y \rangle + c)^p

    Parameters
    ----------
    degree : int, default=2
        The power p.
    scale : float, default=1
        The factor s, positive.
    offset : float, default=1
        The constant c, at least zero; zero leaves out the lower powers.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import Polynomial
    >>> Polynomial(2).gram(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0], [2.0, -1.0]]))
    array([[144.,   1.]])
    """

    space = None

    def __init__(self, degree: int = 2, scale: float = 1.0, offset: float = 1.0):
        self.degree = degree
        self.scale = scale
        self.offset = offset

    def gram(self, x: Any, y: Any) -> Any:
        """The matrix k(x_i, y_j)."""
        return self._power(_products(x, y))

    def diagonal(self, x: Any) -> Any:
        """The values k(x_i, x_i)."""
        return self._power(_squares(x))

    def _power(self, products: Any) -> Any:
        """The kernel of inner products, or a sentence where it is beyond the range of numbers."""
        degree, scale, offset = self.checked()
        with np.errstate(over="ignore"):
            values = (scale * products + offset) ** degree
        xp = namespace(values)
        if not bool(xp.all(xp.isfinite(values))):
            raise ValueError(
                f"The values of the kernel are out of range; scale the rows: {self!r} raises inner products of up to "
                f"{float(xp.max(xp.abs(products))):.3g} to the power {degree}."
            )
        return values

    def checked(self) -> tuple[int, float, float]:
        """Degree, scale and offset, or a sentence where they make no kernel.

        Returns
        -------
        tuple[int, float, float]
        """
        degree = check_count("degree", self.degree)
        numbers = all(isinstance(value, int | float | np.number) for value in (self.scale, self.offset))
        if not (numbers and 0 < self.scale < np.inf and 0 <= self.offset < np.inf):
            raise ValueError(
                f"Polynomial needs a positive scale and an offset of at least zero; got {self.scale!r} and "
                f"{self.offset!r}."
            )
        return degree, float(self.scale), float(self.offset)
