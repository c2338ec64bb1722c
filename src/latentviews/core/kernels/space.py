"""What every space that columns live in decides."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from latentviews.core.kernels.quadrature import (
    Quadrature,
)


@dataclass(frozen=True)
class Space(ABC):
    """Where the values of a column lie: what every space offers.

    Values may mirror at a border: a kernel's mass that would fall beyond it comes back inside, as if every point had
    ``images`` there. A space without a border has no images but the points themselves.
    """

    noun: ClassVar[str]  # of a value: "number", "angle" or "code"
    name: ClassVar[str]  # in sentences: a view is of real, circle or discrete data
    finite: ClassVar[bool] = False  # finitely many values, with counting measure
    ordered: ClassVar[bool] = False  # values on a line, so that a grid can hold a column of them
    affine: ClassVar[bool] = (
        False  # any stretch or turn of several columns stays inside, so Gaussians may have any shape
    )
    bordered: ClassVar[bool] = False  # whether there are images
    own_widths: ClassVar[bool] = False  # every class has a bandwidth of its own, which held-out rows choose
    mixed: ClassVar[bool] = False  # whether columns of a view have spaces of their own
    low: ClassVar[float] = -math.inf  # where the space ends
    high: ClassVar[float] = math.inf
    rule: ClassVar[str] = "isj"  # for bandwidths as narrow as one distribution allows
    rules: ClassVar[tuple[str, ...]] = ()  # all that are known
    padding: ClassVar[str] = "constant"  # what lies beyond the ends of an axis, in words of scipy.ndimage

    def column(self, place: int) -> "Space":
        """The space of one column of a view.

        Parameters
        ----------
        place : int

        Returns
        -------
        Space
        """
        return self

    @abstractmethod
    def quadrature(
        self, x: np.ndarray, scale: np.ndarray, rng: np.random.Generator, log_unit: float = 0.0
    ) -> Quadrature:
        """Nodes for functions as smooth as ``scale``, near the rows ``x``; densities are counted in a unit.

        Parameters
        ----------
        x : array of shape (n,) or (n, d)
        scale : float
        rng : numpy Generator
        log_unit : float

        Returns
        -------
        Quadrature
        """

    @abstractmethod
    def log_background(self, x: np.ndarray, quadrature: Quadrature) -> np.ndarray:
        """The log of a broad density that is positive everywhere in the space.

        Parameters
        ----------
        x : array of shape (n,) or (n, d)
        quadrature : points and weights to integrate by

        Returns
        -------
        array
        """

    def bandwidth(self, rule: str, x: np.ndarray) -> float | np.ndarray:
        """The bandwidth that a rule gives for the rows ``x``, one for all columns or one per column.

        Parameters
        ----------
        rule : float or str
        x : array of shape (n,) or (n, d)

        Returns
        -------
        float or array
        """
        raise TypeError(f"{type(self).__name__} has no bandwidths.")

    def within_class_bandwidth(self, x: np.ndarray, posteriors: np.ndarray) -> Any:
        """Silverman's rule with the spread inside classes.

        Parameters
        ----------
        x : array of shape (n,) or (n, d)
        posteriors : array of shape (n, k)

        Returns
        -------
        the result
        """
        raise TypeError(f"{type(self).__name__} has no bandwidths.")

    def mean(self, average: Callable[[Callable[[np.ndarray], np.ndarray]], np.ndarray]) -> np.ndarray:
        """The mean, where ``average(f)`` is that of f of the values.

        Parameters
        ----------
        average : array
            The mean of what `mean` is taken of.

        Returns
        -------
        array
        """
        return average(np.positive)

    def quantiles(self, values: np.ndarray, up_to: np.ndarray, level: float) -> np.ndarray:
        """The values of one column that a share ``level`` lies up to, one per distribution.

        Parameters
        ----------
        values : array of shape (m,), increasing
        up_to : array of shape (n, m)
            The shares of n distributions up to them.
        level : float

        Returns
        -------
        array of shape (n,)
        """
        return np.array([np.interp(level, shares, values) for shares in up_to])

    def wrapped(self, x: np.ndarray) -> np.ndarray:
        """The same points, each by the value that stands for it.

        Parameters
        ----------
        x : array of shape (n,) or (n, d)

        Returns
        -------
        array
        """
        return x

    def scattered(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Values of one column as points are drawn at.

        Parameters
        ----------
        x : array of shape (n,) or (n, d)
        rng : numpy Generator

        Returns
        -------
        array
        """
        return self.wrapped(x)

    def axis(self, low: float, high: float) -> tuple[float, float]:
        """The ends of an axis that shows the values from ``low`` to ``high``.

        Parameters
        ----------
        low : float
        high : float

        Returns
        -------
        tuple[float, float]
        """
        margin = 0.04 * (high - low) or 0.5
        return float(low - margin), float(high + margin)

    @abstractmethod
    def typical(self, values: np.ndarray) -> Sequence[float]:
        """Three numbers that say where values lie, NaN where fewer do.

        Parameters
        ----------
        values : array of shape (n,)

        Returns
        -------
        Sequence[float]
        """

    def check(self, values: np.ndarray, label: Any) -> str | None:
        """Refuse values that are not in the space, and say in a sentence what is strange about others.

        Parameters
        ----------
        values : array of shape (n,)
        label : str
            What a sentence calls the column.

        Returns
        -------
        str or None
        """
        return None

    def beyond(self, values: np.ndarray, label: Any) -> str | None:
        """A sentence where later values are hardly of the kind that a model was fitted to.

        Parameters
        ----------
        values : array of shape (n,)
        label : str
            What a sentence calls the column.

        Returns
        -------
        str or None
        """
        return None

    def contains(self, x: Any) -> Any:
        """Whether values are in the space; of the shape of ``x``.

        Parameters
        ----------
        x : array of shape (n,) or (n, d)

        Returns
        -------
        the result
        """
        return x == x

    def images(self, x: Any, reach: float) -> list[Any]:
        """Where a kernel that reaches so far sees the points ``x`` of one column: there, and in their mirror images.

        Parameters
        ----------
        x : array of shape (n,) or (n, d)
        reach : float
            How far beyond the border a kernel is felt.

        Returns
        -------
        list[Any]
        """
        return [x]

    def reflected(self, x: np.ndarray) -> np.ndarray:
        """Values beyond a border, mirrored there until they are inside.

        Parameters
        ----------
        x : array of shape (n,) or (n, d)

        Returns
        -------
        array
        """
        return x

    def clipped(self, low: Any, high: Any) -> tuple[Any, Any]:
        """The part inside the space of what lies between ``low`` and ``high``.

        Parameters
        ----------
        low : float
        high : float

        Returns
        -------
        tuple[Any, Any]
        """
        return low, high
