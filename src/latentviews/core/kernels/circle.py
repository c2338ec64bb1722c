"""Kernels on angles: the circle and the torus."""

import math
from typing import Any, Self

import numpy as np
from scipy import special
from sklearn.base import clone

from latentviews._arrays import in_library_of, namespace, to_numpy
from latentviews.core.kernels.real import _ShiftInvariant
from latentviews.core.kernels.spaces import Circle


class VonMises(_ShiftInvariant):
    r"""The von Mises density on the circle, and its product on the torus, as a kernel. Angles are in radians.

    .. math:: k(x, y) = \prod_j \frac{\exp(\kappa \cos(x_j - y_j))}{2\pi I_0(\kappa)}, \qquad \kappa = s^{-2}

    Parameters
    ----------
    bandwidth : float or rule
        The scale s in radians; narrow kernels are Gaussians of that standard deviation. The rules are
        "median" (of the angular distances) and "silverman" (on the circular standard deviation).
    """

    space = Circle()

    def __init__(self, bandwidth: float | str = "silverman"):
        self.bandwidth = bandwidth

    def adapt(self, x: Any) -> Self:
        """A copy whose bandwidth is a number."""
        if not isinstance(self.bandwidth, str):
            self._concentration()
            return clone(self)
        return clone(self).set_params(bandwidth=self.space.bandwidth(self.bandwidth, to_numpy(x)))

    def gram(self, x: Any, y: Any) -> Any:
        """The matrix k(x_i, y_j)."""
        return self.correlation(x, y) * (2 * math.pi * float(special.ive(0, self._concentration()))) ** -x.shape[1]

    def correlation(self, x: Any, y: Any) -> Any:
        """The matrix k(x_i, y_j) / k(0), one where x and y are the same."""
        xp = namespace(x)
        cosines = xp.cos(x) @ xp.cos(y).T + xp.sin(x) @ xp.sin(y).T
        return xp.exp(self._concentration() * (cosines - x.shape[1]))

    def diagonal(self, x: Any) -> Any:
        """The values k(x_i, x_i), all equal."""
        return self.gram(x[:1, :], x[:1, :])[0, 0] * namespace(x).ones_like(x[:, 0])

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
        return rng.vonmises(0.0, self._concentration(), size=x.shape) + x

    def spectral(self, points: Any, dim: int) -> Any:
        """Integers n with probability e^(-κ) I_|n|(κ), one frequency per column."""
        kappa = self._concentration()
        reach = int(10 + 10 * math.sqrt(kappa))  # I_n(κ) falls as exp(-n²/(2κ))
        cumulative = np.cumsum(special.ive(np.abs(np.arange(-reach, reach + 1)), kappa))
        places = np.searchsorted(cumulative / cumulative[-1], to_numpy(points).T, side="right")
        return in_library_of(np.minimum(places, 2 * reach) - float(reach), points)

    def _concentration(self) -> float:
        if isinstance(self.bandwidth, str):
            raise ValueError(
                f"VonMises(bandwidth={self.bandwidth!r}) is a rule, not yet a number; call `adapt(x)` on data first."
            )
        if not (np.ndim(self.bandwidth) == 0 and np.isfinite(self.bandwidth) and self.bandwidth > 0):
            raise ValueError(f"VonMises needs one positive, finite bandwidth; got {self.bandwidth!r}.")
        return float(self.bandwidth) ** -2
