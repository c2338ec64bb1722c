"""The spaces that columns live in, and all that follows from it.

A kernel has a space, and the space decides: where to integrate, what to expect far from the data, which rule reads a
bandwidth off rows, what a mean is, what an axis shows. Whoever needs another choice keeps one table keyed by space and
asks `entry_for`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
from scipy.stats import qmc

from latentviews._numbers import TINY, log_cauchy, standardised
from latentviews.core.kernels import bandwidths
from latentviews.core.kernels.once import quantiles
from latentviews.core.kernels.quadrature import (
    DRAWS,
    GRID,
    Quadrature,
    around_values,
    importance_nodes,
    product_grid,
)
from latentviews.core.kernels.space import Space

TURN = 2 * math.pi  # radians
TURNS = 4  # round the circle: angles hardly go further
DEGREES = 180.0  # periods from which on angles in radians would fill a small part of the circle only
Entry = TypeVar("Entry")


@dataclass(frozen=True)
class Real(Space):
    """Real numbers with Lebesgue measure.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import Gaussian, Real
    >>> Gaussian(1.0).space == Real()
    True
    >>> round(float(Real().bandwidth("silverman", np.arange(10.0)[:, None])), 2)
    1.92
    """

    noun = "number"
    name = "real"
    ordered = True
    affine = True
    rules = tuple(bandwidths.RULES)

    def quadrature(
        self, x: np.ndarray, scale: np.ndarray, rng: np.random.Generator, log_unit: float = 0.0
    ) -> Quadrature:
        """A grid where it is not too large, else nodes around the rows."""
        low, high = self.clipped(x.min(axis=0) - 6 * scale, x.max(axis=0) + 6 * scale)
        per_bandwidth = 4 if x.shape[1] == 1 else 2
        counts = np.ceil(per_bandwidth * standardised(high, low, scale)) + 1
        counts = np.maximum(counts, 1024 if x.shape[1] == 1 else 64)
        lower, center, upper = np.array([quantiles(column, [0.25, 0.5, 0.75]) for column in x.T]).T
        spread = np.maximum(x.std(axis=0), upper - lower) + scale
        place: dict[str, Any] = {"center": center, "spread": spread, "log_unit": log_unit, "space": self}
        if np.log(counts).sum() <= np.log(GRID):
            return Quadrature(*product_grid(low, high, counts.astype(int), log_unit), **place)
        return Quadrature(*self._scattered_nodes(x, scale, rng, log_unit), scale / 2, **place)

    def _scattered_nodes(
        self, x: np.ndarray, scale: np.ndarray, rng: np.random.Generator, log_unit: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Nodes around the rows and their weights, where a grid would be too large."""
        if x.shape[1] == 1:
            return around_values(x, scale)
        return importance_nodes(x, 1.5 * scale, rng, log_unit)

    def log_background(self, x: np.ndarray, quadrature: Quadrature) -> np.ndarray:
        """A Cauchy density per column, as wide as the data."""
        return log_cauchy(x, quadrature.center, quadrature.spread).sum(axis=1)

    def bandwidth(self, rule: str, x: np.ndarray) -> float | np.ndarray:
        """One of the rules in `bandwidths`."""
        return bandwidths.resolve(rule, x)

    def within_class_bandwidth(self, x: np.ndarray, posteriors: np.ndarray) -> Any:
        """Silverman's rule with the spread inside classes, never finer than rounding; one per column."""
        masses = np.maximum(posteriors.sum(axis=0), TINY)
        means = posteriors.T @ x / masses[:, None]
        squares = sum(r @ (x - m) ** 2 for r, m in zip(posteriors.T, means, strict=True))
        finest = [bandwidths.finest(column) for column in x.T]
        return np.maximum(class_rate(masses, x.shape[1]) * np.sqrt(np.asarray(squares) / masses.sum()), finest)

    def typical(self, values: np.ndarray) -> Sequence[float]:
        """The quartiles."""
        return np.quantile(values, [0.25, 0.5, 0.75]).tolist()


@dataclass(frozen=True)
class Circle(Space):
    r"""Angles: in radians, or in other units by what a full turn is.

    .. math:: x \equiv x + p, \qquad \bar x = \frac{p}{2\pi} \arg E\bigl[e^{2\pi i x / p}\bigr]

    with the period p.

    Parameters
    ----------
    period : float, default=2π
        360 for degrees, 24 for hours of the day.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import Circle
    >>> hours = np.array([[22.0], [4.0]])
    >>> Circle(24).mean(lambda f: f(hours).mean(axis=0)).round(6)  # in the night, not at 13
    array([1.])
    """

    noun = "angle"
    own_widths = True
    name = "circle"
    rule = "cv"
    rules = ("median", "silverman", "cv")
    padding = "wrap"
    period: float = TURN

    def __post_init__(self) -> None:
        number = isinstance(self.period, int | float | np.number) and not isinstance(self.period, bool)
        if not number or not 0 < self.period < math.inf:
            raise ValueError(f"The period of angles is a positive number, 2π or 360, say; got {self.period!r}.")
        object.__setattr__(self, "period", float(self.period))

    def __repr__(self) -> str:
        return "Circle()" if self.period == TURN else f"Circle(period={self.period:g})"

    @property
    def unit(self) -> float:
        """How many of the angles' units a radian is."""
        return self.period / TURN

    def quadrature(
        self, x: np.ndarray, scale: np.ndarray, rng: np.random.Generator, log_unit: float = 0.0
    ) -> Quadrature:
        """A grid over all of the circle or torus, or quasi-random nodes."""
        dim = x.shape[1]
        counts = np.maximum(np.ceil(4 * self.period / scale), 64)
        low, high = np.full(dim, -self.period / 2), np.full(dim, self.period / 2)
        if np.prod(counts) <= GRID:
            return Quadrature(*product_grid(low, high, counts.astype(int)), space=self)
        nodes = qmc.scale(qmc.Sobol(dim, rng=rng).random(DRAWS), low, high)
        weights = np.full(DRAWS, self.period**dim / DRAWS)
        return Quadrature(nodes, weights, np.minimum(scale / 2, self.unit), space=self)

    def log_background(self, x: np.ndarray, quadrature: Quadrature) -> np.ndarray:
        """The uniform density on the torus."""
        return np.full(len(x), -x.shape[1] * math.log(self.period))

    def bandwidth(self, rule: str, x: np.ndarray) -> float:
        """A bandwidth in the angles' unit: of angular distances, or by the circular standard deviation."""
        x = x / self.unit
        points = np.concatenate([np.cos(x), np.sin(x)], axis=1)
        if rule == "median":
            chord = bandwidths.resolve("median", points) / math.sqrt(x.shape[1])
            return self.unit * 2 * math.asin(min(float(chord) / 2, 1.0))
        if rule in ("silverman", "cv"):
            resultant = np.abs(np.exp(1j * x).mean(axis=0)).clip(0.05, 1 - 1e-12)
            spread = float(np.sqrt(-2 * np.log(resultant)).mean())
            thumb = spread * silverman_rate(len(x), x.shape[1])
            return self.unit * (thumb if rule == "silverman" else bandwidths.angular_cv(x, thumb))
        raise ValueError(f"Kernels on angles take a positive bandwidth or one of {list(self.rules)}; got {rule!r}.")

    def within_class_bandwidth(self, x: np.ndarray, posteriors: np.ndarray) -> float:
        """Silverman's rule with the circular spread inside classes, one for all columns."""
        masses = np.maximum(posteriors.sum(axis=0), TINY)
        resultants = np.abs(posteriors.T @ np.exp(1j * x / self.unit)) / masses[:, None]
        spread = float(np.sqrt(-2 * np.log(resultants.clip(0.05, 1 - 1e-9))).mean())
        return self.unit * class_rate(masses, x.shape[1]) * spread

    def mean(self, average: Callable[[Callable[[np.ndarray], np.ndarray]], np.ndarray]) -> np.ndarray:
        """The direction of the mean point on the circle."""
        up, along = (average(lambda x, f=f: f(x / self.unit)) for f in (np.sin, np.cos))  # type: ignore[misc]
        return self.unit * np.arctan2(up, along)

    def quantiles(self, values: np.ndarray, up_to: np.ndarray, level: float) -> np.ndarray:
        """Angles from half a turn before the mean direction of every distribution on, increasing with the level."""
        around = np.concatenate([values + turn * self.period for turn in (-1, 0, 1)])
        middles = np.append(values[1:] + values[:-1], values[0] + values[-1] + self.period) / 2
        found = np.empty(len(up_to))
        for i, shares in enumerate(up_to):
            masses = np.append(np.diff(shares), 1 + shares[0] - shares[-1])
            cut = self.unit * np.angle(masses @ np.exp(1j * middles / self.unit)) - self.period / 2
            below = np.concatenate([shares - 1, shares, shares + 1])
            found[i] = np.interp(np.interp(cut, around, below) + level, below, around)
        return found

    def wrapped(self, x: np.ndarray) -> np.ndarray:
        """Angles from minus half a turn to below half a turn."""
        return (x + self.period / 2) % self.period - self.period / 2

    def axis(self, low: float, high: float) -> tuple[float, float]:
        """The whole circle."""
        return -self.period / 2, self.period / 2

    def typical(self, values: np.ndarray) -> Sequence[float]:
        """The direction of the mean point and its length."""
        mean = np.exp(1j * values / self.unit).mean()
        return float(self.unit * np.angle(mean)), float(abs(mean)), np.nan

    def beyond(self, values: np.ndarray, label: Any) -> str | None:
        """A sentence where angles go round the circle more often than angles in this unit would."""
        known = values[~np.isnan(values)]
        if not len(known) or np.ptp(known) <= TURNS * self.period:
            return None
        remedy = (
            "say period=360 in the kernel, or turn degrees into radians with np.deg2rad"
            if self.period == TURN
            else "say in the kernel what a full turn is"
        )
        return f"{self._taken(label)}, and goes from {known.min():.3g} to {known.max():.3g}; {remedy}."

    def check(self, values: np.ndarray, label: Any) -> str | None:
        """A sentence where angles go round the circle more often, or less far, than angles in this unit would."""
        low, high = np.nanmin(values), np.nanmax(values)
        if self.beyond(values, label):
            return self.beyond(values, label)
        if self.period >= DEGREES and max(abs(low), abs(high)) <= TURN:
            return (
                f"{self._taken(label)}, and goes from {low:.3g} to {high:.3g} only, as radians would; leave out period "
                "in the kernel if they are."
            )
        return None

    def _taken(self, label: Any) -> str:
        kind = "in radians" if self.period == TURN else f"of which a full turn is {self.period:g}"
        return f"Column {label} is taken for angles {kind}"


@dataclass(frozen=True)
class Discrete(Space):
    """Finitely many values with counting measure.

    Examples
    --------
    >>> from latentviews import Delta, Discrete
    >>> Delta().space == Discrete(), Discrete().finite
    (True, True)
    """

    noun = "code"
    name = "discrete"
    finite = True

    def quadrature(
        self, x: np.ndarray, scale: np.ndarray, rng: np.random.Generator, log_unit: float = 0.0
    ) -> Quadrature:
        """The different rows of ``x``."""
        nodes = np.unique(x, axis=0)
        return Quadrature(nodes, np.ones(len(nodes)), np.zeros(x.shape[1]), space=self)

    def log_background(self, x: np.ndarray, quadrature: Quadrature) -> np.ndarray:
        """The uniform law on the values seen and one more."""
        return np.full(len(x), -math.log(len(quadrature.nodes) + 1))

    def quantiles(self, values: np.ndarray, up_to: np.ndarray, level: float) -> np.ndarray:
        """The least code that reaches the level."""
        places = np.array([np.searchsorted(shares, level - 1e-12) for shares in up_to], dtype=int)
        return values[np.minimum(places, len(values) - 1)]

    def scattered(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Codes a little apart, so that rows do not hide each other."""
        codes = np.unique(x[~np.isnan(x)])
        return x + 0.3 * np.diff(codes).min(initial=1.0) * rng.uniform(-1, 1, size=len(x))

    def typical(self, values: np.ndarray) -> Sequence[float]:
        """The commonest value and its share."""
        codes, counts = np.unique(values, return_counts=True)
        return float(codes[counts.argmax()]), counts.max() / len(values), np.nan


def class_rate(masses: np.ndarray, dim: int) -> float:
    """Silverman's bandwidth over the standard deviation, for classes of an average size."""
    return silverman_rate(masses.sum() / len(masses), dim)


def silverman_rate(n_rows: float, dim: int) -> float:
    """Silverman's bandwidth over the standard deviation."""
    return (4 / (n_rows * (dim + 2))) ** (1 / (dim + 4))


def entry_for(space: Space, table: Mapping[type[Space], Entry]) -> Entry:
    """What a table keyed by space has for one: its own entry, or that of the space it is a part of."""
    found = next((table[kind] for kind in type(space).__mro__ if kind in table), None)
    if found is None:
        raise TypeError(f"There is nothing for {space!r} here; what there is, is for {[k.__name__ for k in table]}.")
    return found


def space_of(thing: Any) -> Space | None:
    """The space of a kernel or feature map, fitted or not: the line where it does not say; None if it has none."""
    kernel = getattr(thing, "kernel_", None) or getattr(thing, "kernel", None) or thing
    if isinstance(kernel, type):
        raise TypeError(f"{kernel.__name__} is a class, and a kernel one of its objects; write {kernel.__name__}().")
    space = getattr(kernel, "space", Real())
    if space is not None and not isinstance(space, Space):
        raise ValueError(f"The space of a kernel is an object such as Real() or HalfLine(); got {space!r}.")
    return space


def is_discrete(thing: Any) -> bool:
    """Whether a kernel or feature map, if any, is on finitely many values, so that indicators are features enough."""
    space = None if thing is None else space_of(thing)
    return space is not None and space.finite


# Quadratures as files of format 1 hold them: a class per space.
real_domain = partial(Quadrature, space=Real())
circle_domain = partial(Quadrature, space=Circle())
discrete_domain = partial(Quadrature, space=Discrete())
