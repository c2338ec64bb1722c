"""Kernels on angles: the circle and the torus."""

import math
from typing import Any, Self

import numpy as np
from scipy import special
from sklearn.base import clone

from latentviews._arrays import in_library_of, namespace, to_numpy
from latentviews.core.kernels.real import _ShiftInvariant
from latentviews.core.kernels.spaces import TURN, Circle

WAVES = 8  # cosines that say a wrapped Gaussian of a standard deviation from WIDE on: the next is exp(-50) as large
WIDE = math.pi / 2  # radians
NARROW = 1e8  # concentrations from which on cosines of differences have lost the digits that count
FINEST = 1e-15  # radians, the narrowest bandwidth: angles have no digits beyond
SERIES = 1e-5  # radians, the narrowest bandwidth with a Fourier series of few enough terms
REACH = 9.0  # standard deviations beyond which nothing is left of a Gaussian


class _Angular(_ShiftInvariant):
    """Densities on the circle, and their products on the torus, as kernels of one bandwidth.

    They are written in radians; with another period, angles and bandwidths are counted in other units.
    """

    def __init__(self, bandwidth: float | str = "silverman", *, period: float = TURN):
        self.bandwidth = bandwidth
        self.period = period

    @property
    def space(self) -> Circle:  # type: ignore[override]
        """The circle of this period."""
        return Circle(self.period)

    def adapt(self, x: Any) -> Self:
        """A copy whose bandwidth is a number."""
        if not isinstance(self.bandwidth, str):
            self._radians()
            return clone(self)
        return clone(self).set_params(bandwidth=self.space.bandwidth(self.bandwidth, to_numpy(x)))

    def gram(self, x: Any, y: Any) -> Any:
        """The matrix k(x_i, y_j)."""
        return self.correlation(x, y) * (self._height() / self.space.unit) ** x.shape[1]

    def correlation(self, x: Any, y: Any) -> Any:
        """The matrix k(x_i, y_j) / k(0), one where x and y are the same."""
        return self._unit_correlation(x / self.space.unit, y / self.space.unit)

    def _unit_correlation(self, x: Any, y: Any) -> Any:
        """The correlation of angles in radians."""
        raise TypeError(f"{type(self).__name__} does not say what it is in radians.")

    def _height(self) -> float:
        """The density of one angle at zero, in radians."""
        raise TypeError(f"{type(self).__name__} does not say how high it is.")

    def diagonal(self, x: Any) -> Any:
        """The values k(x_i, x_i), all equal."""
        return self.gram(x[:1, :], x[:1, :])[0, 0] * namespace(x).ones_like(x[:, 0])

    def spectral(self, points: Any, dim: int) -> Any:
        """Whole numbers of turns with the chances of the kernel's Fourier series, one frequency per column."""
        chances = self._chances()
        reach = len(chances) // 2
        places = np.searchsorted(np.cumsum(chances) / chances.sum(), to_numpy(points).T, side="right")
        return in_library_of((np.minimum(places, 2 * reach) - float(reach)) / self.space.unit, points)

    def _chances(self) -> np.ndarray:
        """The Fourier series of the kernel in radians, from -m to m, up to a factor."""
        raise TypeError(f"{type(self).__name__} does not say what its spectral measure is.")

    def _radians(self) -> float:
        """The bandwidth in radians, checked."""
        name = type(self).__name__
        if isinstance(self.bandwidth, str):
            raise ValueError(
                f"{name}(bandwidth={self.bandwidth!r}) is a rule, not yet a number; call `adapt(x)` on data first."
            )
        if not (np.ndim(self.bandwidth) == 0 and np.isfinite(self.bandwidth) and self.bandwidth > 0):
            raise ValueError(f"{name} needs one positive, finite bandwidth; got {self.bandwidth!r}.")
        return max(float(self.bandwidth) / self.space.unit, FINEST)

    def _radians_of_series(self) -> float:
        """The bandwidth in radians, refused where the Fourier series has too many terms to be drawn from."""
        if self._radians() < SERIES:
            raise ValueError(
                f"Frequencies of {type(self).__name__} need a bandwidth of at least {SERIES * self.space.unit:.3g}; "
                f"got {self.bandwidth:.3g}. Widen it, or use LandmarkFeatures, which takes any kernel."
            )
        return self._radians()


class VonMises(_Angular):
    r"""The von Mises density on the circle, and its product on the torus, as a kernel (Mardia & Jupp 2000, 3.5.4).

    .. math:: k(x, y) = \prod_j \frac{\exp(\kappa \cos(x_j - y_j))}{2\pi I_0(\kappa)}, \qquad \kappa = s^{-2}

    Parameters
    ----------
    bandwidth : float or rule
        The scale s, in the unit of the angles; narrow kernels are Gaussians of that standard deviation. The rules are
        "median" (of the angular distances), "silverman" (on the circular standard deviation) and "cv" (the multiple of
        it under which held-out rows are likeliest).
    period : float, default=2π
        What a full turn is: 2π for radians, 360 for degrees, 24 for hours of the day. Densities are per unit.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import VonMises
    >>> angles = np.array([[10.0], [350.0], [180.0]])
    >>> VonMises(30.0, period=360).correlation(angles, angles).round(2)[0]
    array([1. , 0.8, 0. ])
    """

    def _unit_correlation(self, x: Any, y: Any) -> Any:
        """The correlation of angles in radians."""
        xp, kappa = namespace(x), self._concentration()
        if kappa > NARROW:  # 1 - cos(a) = 2 sin(a / 2)², which does not cancel
            halves = [(x[:, j : j + 1] - y[:, j : j + 1].T) / 2 for j in range(x.shape[1])]
            return xp.exp(-2 * kappa * sum(xp.sin(half) ** 2 for half in halves))
        cosines = xp.cos(x) @ xp.cos(y).T + xp.sin(x) @ xp.sin(y).T
        return xp.exp(kappa * (cosines - x.shape[1]))

    def _height(self) -> float:
        """The density of one angle at zero, in radians."""
        return 1 / (2 * math.pi * float(special.i0e(self._concentration())))

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
        return self.space.unit * rng.vonmises(0.0, self._concentration(), size=x.shape) + x

    def _chances(self) -> np.ndarray:
        """The numbers e^(-κ) I_|n|(κ)."""
        kappa = self._radians_of_series() ** -2
        if kappa > NARROW:
            return _gaussian_chances(kappa**-0.5)
        reach = int(10 + 10 * math.sqrt(kappa))  # I_n(κ) falls as exp(-n²/(2κ))
        return special.ive(np.abs(np.arange(-reach, reach + 1)), kappa)

    def _concentration(self) -> float:
        return self._radians() ** -2


class WrappedGaussian(_Angular):
    r"""The Gaussian density wrapped around the circle, and its product on the torus, as a kernel.

    .. math:: k(x, y) = \prod_j \sum_m \frac{1}{\sqrt{2\pi}\, s} \exp\Bigl(-\frac{(x_j - y_j + m P)^2}{2 s^2}\Bigr)

    What heat, or a random walk, makes of a point on a circle of circumference P (Mardia & Jupp 2000, 3.5.7).

    Parameters
    ----------
    bandwidth : float or rule
        The standard deviation s, in the unit of the angles. The rules are those of `VonMises`.
    period : float, default=2π
        P, what a full turn is: 2π for radians, 360 for degrees, 24 for hours of the day. Densities are per unit.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import WrappedGaussian
    >>> hours = np.array([[23.0], [1.0], [12.0]])
    >>> WrappedGaussian(2.0, period=24).correlation(hours, hours).round(2)[0]
    array([1.  , 0.61, 0.  ])
    """

    def _unit_correlation(self, x: Any, y: Any) -> Any:
        """The correlation of angles in radians."""
        parts = [self._wrapped(x[:, j : j + 1] - y[:, j : j + 1].T) for j in range(x.shape[1])]
        return math.prod(part / self._wrapped_at_zero() for part in parts)

    def _wrapped(self, gaps: Any) -> Any:
        """The wrapped density of differences in radians, over the height of a Gaussian on the line."""
        xp, width = namespace(gaps), self._radians()
        if width >= WIDE:
            waves = sum(2 * math.exp(-0.5 * (n * width) ** 2) * xp.cos(n * gaps) for n in range(1, WAVES))
            return (1 + waves) * width / math.sqrt(TURN)
        near = xp.remainder(gaps + TURN / 2, TURN) - TURN / 2  # within half a turn, however large the angles
        images = math.ceil(REACH * width / TURN + 0.5)
        return sum(xp.exp(-0.5 * ((near + m * TURN) / width) ** 2) for m in range(-images, images + 1))

    def _wrapped_at_zero(self) -> float:
        return float(self._wrapped(np.zeros((1, 1)))[0, 0])

    def _height(self) -> float:
        """The density of one angle at zero, in radians."""
        return self._wrapped_at_zero() / (math.sqrt(TURN) * self._radians())

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
        return self.space.wrapped(x + self.space.unit * self._radians() * rng.normal(size=x.shape))

    def _chances(self) -> np.ndarray:
        """The numbers exp(-n²s²/2)."""
        return _gaussian_chances(self._radians_of_series())


def _gaussian_chances(width: float) -> np.ndarray:
    """The numbers exp(-n²s²/2), of the Fourier series of a Gaussian of standard deviation s."""
    reach = int(REACH / width) + 1
    return np.exp(-0.5 * (width * np.arange(-reach, reach + 1)) ** 2)
