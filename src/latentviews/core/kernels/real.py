"""Kernels on real columns that know only differences: the Gaussian, Laplace and Matérn densities."""

import math
from typing import Any, Self

import numpy as np
from scipy import special
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if

from latentviews._arrays import in_library_of, namespace, normal_quantile, to_numpy
from latentviews._parameters import is_number
from latentviews.core.kernels.base import Kernel
from latentviews.core.kernels.distances import in_units, squared_distances
from latentviews.core.kernels.space import Space
from latentviews.core.kernels.spaces import Real

Bandwidth = float | str | np.ndarray
LINE = Real()
WIDE = 0.5  # bandwidths over the length of an interval from which few cosines say a Gaussian mirrored there …
FLAT = 100.0  # bandwidths over the length of an interval from which the mirrored Gaussian is uniform
WAVES = 7  # … namely so many: the next is exp(-60) as large


def _has_no_border(kernel: Kernel) -> bool:
    """Whether differences are all that a kernel knows."""
    return kernel.space is None or not kernel.space.bordered


class _ShiftInvariant(Kernel):
    """Kernels known by their spectral measure: ``frequencies`` from ``spectral``."""

    def spectral_size(self, dim: int) -> int:
        """How many uniform numbers make a frequency in ``dim`` dimensions.

        Parameters
        ----------
        dim : int
            The number of columns.

        Returns
        -------
        int
        """
        return dim

    def spectral(self, points: Any, dim: int) -> Any:
        """The frequencies at ``points`` of the unit cube, (size, spectral_size), one frequency per column.

        Parameters
        ----------
        points : array
        dim : int
            The number of columns.

        Returns
        -------
        the result
        """
        raise TypeError(f"{type(self).__name__} does not say what its spectral measure is.")

    @available_if(_has_no_border)
    def frequencies(self, size: int, dim: int, rng: np.random.Generator) -> np.ndarray:
        """Draws from the spectral measure, one frequency per column.

        Parameters
        ----------
        size : int
            How many.
        dim : int
            The number of columns.
        rng : numpy Generator

        Returns
        -------
        array of shape (d, size)
        """
        return self.spectral(rng.random((size, self.spectral_size(dim))), dim)


class _Scaled(_ShiftInvariant):
    """Shift-invariant kernels k(x, y) = s^(-d) q(x/s - y/s) with one bandwidth s or one per column.

    In a space with borders they are mirrored there: Π_j Σ_m k(x_j, m(y_j)) over the images m of a column's points.
    """

    reach = 40.0  # bandwidths beyond which nothing is left of the kernel
    stretches = True  # from any bandwidth to any other, on the line
    space: Space

    def __init__(self, bandwidth: Bandwidth = "isj", *, space: Space = LINE):
        self.bandwidth = bandwidth
        self.space = space

    def adapt(self, x: Any) -> Self:
        """A copy whose bandwidth is a number, or one per column."""
        self._check_space()
        if not isinstance(self.bandwidth, str):
            self._scale(np.shape(x)[1])
            return clone(self)
        return clone(self).set_params(bandwidth=self.space.bandwidth(self.bandwidth, to_numpy(x)))

    def gram(self, x: Any, y: Any) -> Any:
        """The matrix k(x_i, y_j)."""
        xp, height = namespace(x), self.log_height(x.shape[1])
        with np.errstate(over="ignore"):  # in very many columns, or very narrow, the height of a density is no number
            values = self.correlation(x, y)
            if height > np.log(float(xp.finfo(values.dtype).max)):
                return xp.where(values > 0, xp.inf, xp.zeros_like(values))
            values *= float(np.exp(height))
            return values

    def correlation(self, x: Any, y: Any) -> Any:
        """The matrix k(x_i, y_j) / k(0), one where x and y are the same and far from any border."""
        scale = self._scale(x.shape[1])
        if not self.space.bordered:
            return self._profile(in_units(x, scale), in_units(y, scale))
        return math.prod(self._mirrored(x[:, j : j + 1], y[:, j : j + 1], float(s)) for j, s in enumerate(scale))

    def _mirrored(self, x: Any, y: Any, scale: float) -> Any:
        """The matrix Σ_m q(x_i / s, m(y_j) / s) of one column, zero where either is outside the space."""
        inside = namespace(x).astype(self.space.contains(x) & self.space.contains(y).T, x.dtype)
        images = self.space.images(y, self.reach * scale)
        return sum(self._profile(x / scale, image / scale) for image in images) * inside

    def diagonal(self, x: Any) -> Any:
        """The values k(x_i, x_i), all equal where there is no border."""
        if not self.space.bordered:
            return self.gram(x[:1, :], x[:1, :])[0, 0] * namespace(x).ones_like(x[:, 0])
        with np.errstate(over="ignore"):
            return self.unit_diagonal(x) * float(np.exp(self.log_height(x.shape[1])))

    def unit_diagonal(self, x: Any) -> Any:
        """The values k(x_i, x_i) / k(0)."""
        if not self.space.bordered:
            return namespace(x).ones_like(x[:, 0])
        return math.prod(self._own(x[:, j : j + 1], float(s)) for j, s in enumerate(self._scale(x.shape[1])))

    def _own(self, x: Any, scale: float) -> Any:
        """The values Σ_m q(x_i / s, m(x_i) / s) of one column, (n,)."""
        gaps = [(x - image) / scale for image in self.space.images(x, self.reach * scale)]
        inside = namespace(x).astype(self.space.contains(x)[:, 0], x.dtype)
        return sum(self._profile(gap, 0 * gap[:1, :])[:, 0] for gap in gaps) * inside

    def _profile(self, x: Any, y: Any) -> Any:
        """The correlation at bandwidth one; the rows are its own, to be changed."""
        raise TypeError(f"{type(self).__name__} does not say what it is at bandwidth one.")

    def log_height(self, dim: int) -> float:
        """The log of k(0), such that the kernel is a density.

        Parameters
        ----------
        dim : int
            The number of columns.

        Returns
        -------
        float
        """
        unit = dim * self._log_unit_height(1) if self.space.bordered else self._log_unit_height(dim)
        return unit - float(np.log(self._scale(dim)).sum())

    def _log_unit_height(self, dim: int) -> float:
        """The log of k(0) at bandwidth one."""
        raise TypeError(f"{type(self).__name__} does not say how high it is at bandwidth one.")

    @available_if(_has_no_border)
    def spectral(self, points: Any, dim: int) -> Any:
        """The frequencies at ``points`` of the unit cube, (size, spectral_size), one frequency per column."""
        return self._unit_spectral(points).T / in_library_of(self._scale(dim), points)[:, None]

    def _unit_spectral(self, points: Any) -> Any:
        """The frequencies at bandwidth one, one frequency per row."""
        raise TypeError(f"{type(self).__name__} does not say what its spectral measure is.")

    def _check_space(self) -> None:
        if not isinstance(self.space, Space) or not self.space.ordered:
            raise ValueError(
                f"{type(self).__name__} is a kernel on real numbers: its space is Real(), HalfLine() or Interval(low, "
                f"high); got {self.space!r}."
            )

    def _scale(self, dim: int) -> np.ndarray:
        """The bandwidth of every column, checked."""
        name = type(self).__name__
        if isinstance(self.bandwidth, str):
            raise ValueError(
                f"{name}(bandwidth={self.bandwidth!r}) is a rule, not yet a number; call `adapt(x)` on data first."
            )
        scale = np.asarray(self.bandwidth, dtype=float)
        if scale.ndim > 1 or (scale.ndim == 1 and len(scale) != dim):
            raise ValueError(
                f"{name} takes one bandwidth or one per column; got shape {scale.shape} for {dim} column(s)."
            )
        if not np.all(np.isfinite(scale) & (scale > 0)):
            raise ValueError(f"{name} needs a positive, finite bandwidth; got {self.bandwidth!r}.")
        return np.full(dim, scale)


class Gaussian(_Scaled):
    r"""The Gaussian density as a kernel (equation 2 of Song et al. 2014, right for any dimension).

    .. math:: k(x, y) = (2\pi)^{-d/2} s^{-d} \exp(-\|x - y\|^2 / (2 s^2))

    Parameters
    ----------
    bandwidth : float, array of one per column, or rule
        The scale s. A rule ("isj", "silverman", "scott", "median") is resolved on data by ``adapt``.
    space : Space, default=Real()
        Where the values lie: `HalfLine()` and `Interval(low, high)` have no mass beyond their borders, where the kernel
        is mirrored.

    Examples
    --------
    >>> import numpy as np
    >>> Gaussian(2.0).gram(np.zeros((1, 1)), np.array([[0.0], [2.0]])).round(3)
    array([[0.199, 0.121]])
    """

    reach = 9.0

    def _profile(self, x: Any, y: Any) -> Any:
        squares = squared_distances(x, y)
        squares *= -0.5
        return np.exp(squares, out=squares) if isinstance(squares, np.ndarray) else namespace(x).exp(squares)

    def _log_unit_height(self, dim: int) -> float:
        return -dim / 2 * math.log(2 * math.pi)

    def _unit_spectral(self, points: Any) -> Any:
        return normal_quantile(points)

    def _mirrored(self, x: Any, y: Any, scale: float) -> Any:
        if scale < WIDE * (self.space.high - self.space.low):
            return super()._mirrored(x, y, scale)
        return self._waves(x, scale) @ self._waves(y, scale).T

    def _scale(self, dim: int) -> np.ndarray:
        """Bandwidths one per column; on an interval none wider than what is uniform there to the last digit."""
        length = self.space.high - self.space.low if self.space.bordered else math.inf
        return np.minimum(super()._scale(dim), FLAT * length)

    def _own(self, x: Any, scale: float) -> Any:
        if scale < WIDE * (self.space.high - self.space.low):
            return super()._own(x, scale)
        waves = self._waves(x, scale)
        return namespace(x).vecdot(waves, waves)

    def _waves(self, x: Any, scale: float) -> Any:
        """Cosines of one column of an interval whose inner products are the mirrored kernel, (n, WAVES).

        Poisson's sum over the images: √(2π) s / L (1 + 2 Σ_m exp(-(mπs/L)² / 2) cos(mπx/L) cos(mπy/L)).
        """
        low, high = self.space.low, self.space.high
        rates = math.pi / (high - low) * np.arange(WAVES)
        sizes = np.sqrt(math.sqrt(2 * math.pi) * scale / (high - low) * np.where(rates > 0, 2, 1))
        sizes *= np.exp(-0.25 * (scale * rates) ** 2)
        xp = namespace(x)
        inside = xp.astype(self.space.contains(x), x.dtype)
        return (
            xp.cos((xp.clip(x, min=float(low), max=float(high)) - low) * in_library_of(rates, x))
            * in_library_of(sizes, x)
            * inside
        )

    def radii(self, size: int, dim: int, rng: np.random.Generator) -> np.ndarray:
        """Lengths of frequencies at bandwidth one, whose directions are uniform.

        Parameters
        ----------
        size : int
            How many.
        dim : int
            The number of columns.
        rng : numpy Generator

        Returns
        -------
        array of shape (size,)
        """
        return np.sqrt(rng.chisquare(dim, size=size))

    def draw(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A draw from k(x_i, ·) for every row, (n, d).

        Parameters
        ----------
        x : array of shape (n,) or (n, d)
        rng : numpy Generator

        Returns
        -------
        array of shape (n, d)
        """
        return self.space.reflected(x + self._scale(x.shape[1]) * rng.normal(size=x.shape))


class Laplace(_Scaled):
    r"""The Laplace density as a kernel.

    .. math:: k(x, y) = (2s)^{-d} \exp(-\|x - y\|_1 / s)

    Parameters
    ----------
    bandwidth : float, array of one per column, or rule
        The scale s.
    space : Space, default=Real()
        Where the values lie.

    Examples
    --------
    >>> import numpy as np
    >>> Laplace(2.0).gram(np.zeros((1, 1)), np.array([[0.0], [2.0]])).round(3)
    array([[0.25 , 0.092]])
    """

    def _profile(self, x: Any, y: Any) -> Any:
        xp = namespace(x)
        return xp.exp(-sum(xp.abs(x[:, j, None] - y[None, :, j]) for j in range(x.shape[1])))

    def _log_unit_height(self, dim: int) -> float:
        return -dim * math.log(2)

    def _unit_spectral(self, points: Any) -> Any:
        return namespace(points).tan(math.pi * (points - 0.5))  # Cauchy


class Matern(_Scaled):
    r"""The Matérn family as densities, for half-integer smoothness ν = p + 1/2 (Rasmussen & Williams 2006, 4.16).

    .. math:: k(x, y) = c\, e^{-a} \frac{p!}{(2p)!} \sum_{i=0}^p \frac{(p+i)!}{i!(p-i)!} (2a)^{p-i},
              \qquad a = \sqrt{2\nu}\,\|x - y\| / s, \qquad \int k(x, y)\, dx = 1

    Parameters
    ----------
    bandwidth : float, array of one per column, or rule
        The scale s.
    smoothness : float
        ν, one of 0.5, 1.5, 2.5, …
    space : Space, default=Real()
        Where the values lie; with borders, the kernel of several columns is the product of theirs.

    Examples
    --------
    >>> import numpy as np
    >>> Matern(2.0, smoothness=1.5).correlation(np.zeros((1, 1)), np.array([[0.0], [2.0]])).round(3)
    array([[1.   , 0.483]])
    """

    def __init__(self, bandwidth: Bandwidth = "isj", smoothness: float = 1.5, *, space: Space = LINE):
        super().__init__(bandwidth, space=space)
        self.smoothness = smoothness

    def _profile(self, x: Any, y: Any) -> Any:
        xp, p = namespace(x), self._degree()
        a = math.sqrt(2 * self.smoothness) * xp.sqrt(squared_distances(x, y))
        a = xp.clip(a, max=-1.25 * math.log(float(xp.finfo(a.dtype).smallest_normal)))  # exp(-a) is zero from here on
        factorial = math.factorial
        terms = (factorial(p + i) / (factorial(i) * factorial(p - i)) * (2 * a) ** (p - i) for i in range(p + 1))
        return xp.exp(-a) * sum(terms) * (factorial(p) / factorial(2 * p))

    def spectral_size(self, dim: int) -> int:
        """How many uniform numbers make a frequency: a direction, and how far the tails reach."""
        return dim + 1

    def _unit_spectral(self, points: Any) -> Any:
        self._degree()
        half_chi_square = special.gammaincinv(self.smoothness, to_numpy(points[:, -1]))  # 2ν degrees of freedom
        return (
            normal_quantile(points[:, :-1]) * in_library_of(np.sqrt(self.smoothness / half_chi_square), points)[:, None]
        )

    def radii(self, size: int, dim: int, rng: np.random.Generator) -> np.ndarray:
        """Lengths of frequencies at bandwidth one, whose directions are uniform.

        Parameters
        ----------
        size : int
            How many.
        dim : int
            The number of columns.
        rng : numpy Generator

        Returns
        -------
        array of shape (size,)
        """
        self._degree()
        return np.sqrt(rng.chisquare(dim, size=size) * 2 * self.smoothness / rng.chisquare(2 * self.smoothness, size))

    def _degree(self) -> int:
        if not is_number(self.smoothness) or self.smoothness < 0 or self.smoothness % 1 != 0.5:
            raise ValueError(f"Matern needs a smoothness of 0.5, 1.5, 2.5, …; got {self.smoothness!r}.")
        return int(self.smoothness)

    def _log_unit_height(self, dim: int) -> float:
        """One over the integral of the correlation, which is its spectral density at zero."""
        v = self._degree() + 0.5
        return math.lgamma(v) - math.lgamma(v + dim / 2) - dim / 2 * math.log(2 * math.pi / v)
