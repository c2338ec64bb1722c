"""Scales on which cytometry data are looked at: near zero they are straight, far away logarithmic."""

import math
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from latentviews._constants import COFACTOR

TOP = 262_144.0  # the upper end of the scale of most digital instruments, 2¹⁸
DECADES = 4.5
LINEAR_DECADES = 0.5  # where nothing is negative
GRID = 4096


@dataclass(frozen=True, eq=False)
class Arcsinh:
    r"""The inverse hyperbolic sine of x / cofactor: straight around zero, logarithmic far from it, on both sides.

    .. math:: y = \operatorname{arsinh}(x / c) = \log\bigl(x / c + \sqrt{x^2 / c^2 + 1}\bigr)

    Parameters
    ----------
    cofactor : float, c
        Up to about where the scale is straight.

    Examples
    --------
    >>> from latentviews.io import Arcsinh
    >>> scale = Arcsinh(150.0)
    >>> scale([-150.0, 0.0, 150.0, 15000.0]).round(2)
    array([-0.88,  0.  ,  0.88,  5.3 ])
    >>> scale.inverse(scale([40.0])).round(6)
    array([40.])
    """

    cofactor: float = COFACTOR

    def __post_init__(self) -> None:
        if not (isinstance(self.cofactor, Real) and 0 < self.cofactor < math.inf):
            raise ValueError(f"cofactor must be a positive, finite number; got {self.cofactor!r}.")

    def __call__(self, x: Any) -> np.ndarray:
        """Data to the scale."""
        return np.arcsinh(np.asarray(x, dtype=float) / self.cofactor)

    def inverse(self, y: Any) -> np.ndarray:
        """The scale to data.

        Parameters
        ----------
        y : array
            Values on the scale.

        Returns
        -------
        array
            Data.
        """
        return self.cofactor * np.sinh(np.asarray(y, dtype=float))


@dataclass(frozen=True, eq=False)
class Logicle:
    """The logicle scale, the inverse of a biexponential (Parks, Roederer & Moore 2006; Moore & Parks 2012).

    .. math:: B(y) = a e^{by} - c e^{-dy} - f

    with B(1) = T, and B(y₁) = 0 where its second derivative is zero, so that the scale is straight around zero. Below
    y₁ the scale is the mirror image, B(y₁ - u) = -B(y₁ + u). Data are brought to about [0, 1].

    Parameters
    ----------
    top : float, T
        The data value at 1.
    linear : float, W
        Decades of the part around zero that is nearly straight, at most half of ``decades``.
    decades : float, M
        Decades that the scale would have were it logarithmic.
    negative : float, A
        More decades of negative data.

    Examples
    --------
    >>> from latentviews.io import Logicle
    >>> scale = Logicle(top=262144.0, linear=0.5, decades=4.5)
    >>> scale([-100.0, 0.0, 100.0, 262144.0]).round(3)
    array([0.009, 0.111, 0.213, 1.   ])
    >>> scale.inverse(scale([-100.0, 5000.0])).round(6)
    array([-100., 5000.])
    """

    top: float = TOP
    linear: float = LINEAR_DECADES
    decades: float = DECADES
    negative: float = 0.0

    @classmethod
    def for_data(cls, x: np.ndarray, top: float = TOP) -> "Logicle":
        """Parks et al. (2006): W = (M - log₁₀(T / abs(r))) / 2, where r is the 5 % quantile of the negative values.

        Parameters
        ----------
        x : array of shape (n,)
            A channel.
        top : float
            The upper end of the instrument's scale.

        Returns
        -------
        Logicle
        """
        x = x[np.isfinite(x)]
        top = max(top, float(x.max(initial=0.0)))
        negative = x[x < 0]
        if not len(negative):
            return cls(top)
        extreme = abs(float(np.quantile(negative, 0.05)))
        return cls(top, float(np.clip((DECADES - math.log10(top / extreme)) / 2, 0.0, DECADES / 2)))

    def __call__(self, x: Any) -> np.ndarray:
        """Data to the scale: B(y) = |x| solved by interpolation and Newton's method, mirrored for negative x."""
        x = np.asarray(x, dtype=float)
        size, (a, b, c, d, f) = np.abs(x), self._constants
        high = max(1.0, math.log((float(np.nanmax(size, initial=0.0)) + abs(f) + c) / a) / b)
        grid = np.linspace(self.zero, high, GRID)
        y = np.interp(size, self._biexponential(grid), grid)
        for _ in range(3):  # the grid leaves an error of some 1e-6 at most, squared by every step
            y = y - (self._biexponential(y) - size) / (a * b * np.exp(b * y) + c * d * np.exp(-d * y))
        return np.where(x < 0, 2 * self.zero - y, y)

    def inverse(self, y: Any) -> np.ndarray:
        """The scale to data.

        Parameters
        ----------
        y : array
            Values on the scale.

        Returns
        -------
        array
            Data.
        """
        above = np.asarray(y, dtype=float) - self.zero
        return np.copysign(self._biexponential(self.zero + np.abs(above)), above)

    @property
    def zero(self) -> float:
        """Where the scale has zero, y₁ = (A + W) / (A + M)."""
        return (self.negative + self.linear) / (self.negative + self.decades)

    def _biexponential(self, y: np.ndarray) -> np.ndarray:
        a, b, c, d, f = self._constants
        return a * np.exp(b * y) - c * np.exp(-d * y) - f

    @cached_property
    def _constants(self) -> tuple[float, float, float, float, float]:
        """a, b, c, d and f of Moore & Parks (2012), appendix."""
        if not (self.top > 0 and 0 <= self.linear <= self.decades / 2 and -self.linear <= self.negative):
            raise ValueError(f"A logicle scale needs T > 0, 0 ≤ W ≤ M / 2 and A ≥ -W; got {self}.")
        total = self.decades + self.negative
        width, start = self.linear / total, self.negative / total
        end = start + 2 * width
        b = total * math.log(10)
        d = b
        if width > 0:
            from scipy.optimize import brentq  # for these scales alone

            d = brentq(lambda d: 2 * math.log(d / b) + width * (b + d), 1e-12 * b, b, xtol=1e-15 * b)
        c_over_a = math.exp(end * (b + d))
        f_over_a = math.exp(b * self.zero) - c_over_a * math.exp(-d * self.zero)
        a = self.top / (math.exp(b) - c_over_a * math.exp(-d) - f_over_a)
        return a, b, c_over_a * a, d, f_over_a * a


@dataclass(frozen=True, eq=False)
class Words:
    """Words as whole numbers, their places in a list: how a column of text is read that holds categories.

    Parameters
    ----------
    values : tuple of str

    Examples
    --------
    >>> from latentviews.io import Words
    >>> answers = Words(("no", "yes"))
    >>> answers(["yes", "no", "", "perhaps"])
    array([ 1.,  0., nan, nan])
    >>> answers.inverse([1, 0]).tolist()
    ['yes', 'no']
    """

    values: tuple[str, ...]

    def __call__(self, x: Any) -> np.ndarray:
        """The place of every word; NaN where a cell is empty or holds a word that is not in the list."""
        places = {word: float(place) for place, word in enumerate(self.values)}
        return np.array([places.get(word, math.nan) for word in x])

    def inverse(self, y: Any) -> np.ndarray:
        """The words in some places.

        Parameters
        ----------
        y : array of places

        Returns
        -------
        array of str, None where a place is NaN
        """
        return np.array([None if math.isnan(place) else self.values[int(place)] for place in y], dtype=object)


Transform = Arcsinh | Logicle | Words
