"""Spaces with borders: the half-line and the interval.

Kernels are mirrored at a border (Schuster 1985): what would fall beyond it comes back inside, so densities have all
their mass in the space and do not fall off towards its border.
"""

import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from scipy.stats import qmc

from latentviews._numbers import TINY, log_cauchy, thinned
from latentviews._parameters import is_number
from latentviews.core.kernels import bandwidths
from latentviews.core.kernels.quadrature import NEAR, Quadrature, around_values
from latentviews.core.kernels.spaces import Real


@dataclass(frozen=True)
class Bordered(Real):
    """Real numbers from ``low`` to ``high``, either of which may be infinite."""

    affine = False
    bordered = True
    padding = "reflect"

    def contains(self, x: Any) -> Any:
        """Whether values lie between the ends, or on one."""
        return (x >= self.low) & (x <= self.high)

    def clipped(self, low: Any, high: Any) -> tuple[Any, Any]:
        """The part between the ends."""
        return np.maximum(low, self.low), np.minimum(high, self.high)

    def axis(self, low: float, high: float) -> tuple[float, float]:
        """The ends of an axis that stops at the border."""
        low, high = super().axis(low, high)
        return max(low, self.low), min(high, self.high)

    def bandwidth(self, rule: str, x: np.ndarray) -> float | np.ndarray:
        """One of the rules in `bandwidths`; "isj" knows the borders."""
        found = super().bandwidth(rule, x)
        if rule != "isj":
            return found
        own = bandwidths.isj(bandwidths.without_copies(x), self.low, self.high)
        return float(own[0]) if len(own) == 1 else own

    def check(self, values: np.ndarray, label: Any) -> str | None:
        """Refuse values beyond the ends."""
        beyond = values[(values < self.low) | (values > self.high)]
        if len(beyond):
            raise ValueError(
                f"Column {label} holds {beyond[0]:.4g}, which is outside {self!r}, the space of its kernel: values go "
                f"from {self.low:g} to {self.high:g}. Take such rows out, choose the ends that the values have, or use "
                "a kernel without a border."
            )
        return None

    def _scattered_nodes(
        self, x: np.ndarray, scale: np.ndarray, rng: np.random.Generator, log_unit: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Nodes around the rows, inside the borders: quasi-random ones of several columns are mirrored there."""
        if x.shape[1] == 1:
            return around_values(x, scale, self.low, self.high)
        scale, dim = np.minimum(1.5 * scale, (self.high - self.low) / 2), x.shape[1]
        centers = thinned(x, 512)
        uniform = qmc.Sobol(dim + 1, rng=rng).random(NEAR)
        picked = centers[(uniform[:, 0] * len(centers)).astype(int)]
        nodes = self.reflected(picked + scale * stats.norm.ppf(uniform[:, 1:].clip(1e-12, 1 - 1e-12)))
        heights = np.prod([self._normals(nodes[:, j], centers[:, j], float(scale[j])) for j in range(dim)], axis=0)
        log_density = np.log(np.maximum(heights.mean(axis=1), TINY)) - np.log(math.sqrt(2 * math.pi) * scale).sum()
        return nodes, np.exp(log_unit - log_density) / NEAR

    def _normals(self, x: np.ndarray, centers: np.ndarray, scale: float) -> np.ndarray:
        """Mirrored normal densities over the height of a normal density, (n, m)."""
        images = self.images(centers, 9 * scale)
        with np.errstate(over="ignore"):  # infinitely far
            return sum((np.exp(-0.5 * ((x[:, None] - image) / scale) ** 2) for image in images), np.zeros(()))


@dataclass(frozen=True)
class HalfLine(Bordered):
    r"""The numbers from zero on: durations, concentrations, counts.

    .. math:: k_+(x, y) = k(x, y) + k(x, -y), \qquad x, y \ge 0

    No density has mass below zero, and none falls off towards it for want of rows beyond. A negative value is refused,
    in the rows of a fit and in those that a fitted model is asked about.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import Gaussian, HalfLine
    >>> Gaussian(1.0, space=HalfLine()).gram(np.array([[-0.5], [0.0], [3.0]]), np.zeros((1, 1))).round(3)
    array([[0.   ],
           [0.798],
           [0.009]])
    """

    name = "half-line"
    low = 0.0
    high = math.inf

    def images(self, x: Any, reach: float) -> list[Any]:
        """The points, and mirrored at zero."""
        return [x, -x]

    def reflected(self, x: np.ndarray) -> np.ndarray:
        """Absolute values."""
        return np.abs(x)

    def log_background(self, x: np.ndarray, quadrature: Quadrature) -> np.ndarray:
        """A mirrored Cauchy density per column, as wide as the data; none below zero."""
        logs = [log_cauchy(image, quadrature.center, quadrature.spread) for image in (x, -x)]
        return np.where(self.contains(x), np.logaddexp(*logs), -np.inf).sum(axis=1)


@dataclass(frozen=True)
class Interval(Bordered):
    r"""The numbers between two ends: shares, scores.

    .. math:: k_{[a, b]}(x, y) = \sum_{n = -\infty}^\infty k(x, y + 2n(b - a)) + k(x, 2a - y + 2n(b - a))

    No density has mass beyond the ends, and none falls off towards them for want of rows beyond. A value beyond is
    refused, in the rows of a fit and in those that a fitted model is asked about.

    Parameters
    ----------
    low, high : float, default=0 and 1

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import Gaussian, Interval
    >>> Gaussian(0.5, space=Interval(0, 1)).gram(np.array([[0.0], [1.0], [1.1]]), np.zeros((1, 1))).round(3)
    array([[1.597],
           [0.432],
           [0.   ]])
    """

    name = "interval"
    low: float = 0.0  # type: ignore[misc]
    high: float = 1.0  # type: ignore[misc]

    def __post_init__(self) -> None:
        for name in ("low", "high"):  # numbers of Python's, which any array library takes
            end = getattr(self, name)
            object.__setattr__(self, name, end.item() if isinstance(end, np.number) else end)
        finite = all(is_number(end) and abs(end) <= sys.float_info.max for end in (self.low, self.high))
        if not finite or not self.low < self.high:
            raise ValueError(f"Interval needs two finite ends, the first below the second; got {self!r}.")

    def images(self, x: Any, reach: float) -> list[Any]:
        """The points and mirrored at the lower end, each moved by multiples of twice the length, as far as they count.

        From a point of the interval it is n periods less a length at least to the points n periods away, and n periods
        to those mirrored at the lower end (n ≤ 0) or at the upper one (n + 1). They count up to a length beyond the
        reach: so far may the point itself be.
        """
        period = 2.0 * (self.high - self.low)
        moved, mirrored = math.floor(reach / period + 1), math.floor(reach / period + 0.5)
        there = [x + n * period for n in range(-moved, moved + 1)]
        return there + [2 * self.low - x + n * period for n in range(-mirrored, mirrored + 2)]

    def reflected(self, x: np.ndarray) -> np.ndarray:
        """Mirrored at either end until inside."""
        length = self.high - self.low
        place = np.mod(x - self.low, 2 * length)
        return np.clip(self.low + np.minimum(place, 2 * length - place), self.low, self.high)

    def log_background(self, x: np.ndarray, quadrature: Quadrature) -> np.ndarray:
        """The uniform density; none beyond the ends."""
        inside = self.contains(x).all(axis=1)
        return np.where(inside, -x.shape[1] * math.log(self.high - self.low), -np.inf)
