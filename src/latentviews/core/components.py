"""The distribution of a view in every class: what can be asked of it, whatever made it."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from latentviews._arrays import to_numpy
from latentviews._numbers import TINY
from latentviews.core.kernels.quadrature import Quadrature
from latentviews.core.kernels.spaces import Space

BACKGROUND = 1e-6
HIGHEST = 1e300  # densities above are no numbers once they are multiplied
LEAST_SHARE = 1e-6  # of a class at a point, for the point to count among its own
Query = Callable[[np.ndarray], Any] | tuple[Any, Any]


@dataclass(frozen=True, eq=False)
class Components(ABC):
    """The distributions of one view in k components, whatever represents them.

    ``domain`` says where densities live and how to integrate there; None where they have no density.
    """

    domain: Quadrature | None = field(repr=False)

    @property
    def space(self) -> Space:
        """The space that the view lives in."""
        return self._domain().space

    @property
    def smooths(self) -> bool:
        """Whether a known kernel makes densities of the values; somebody's own transformer may make anything."""
        return True

    def at(self, x: Any) -> np.ndarray:
        """The raw values ⟨φ(x), μ_h⟩, (n, k): a density estimate that may be negative. A vector x is one column.

        Parameters
        ----------
        x : array of shape (n,) or (n, d)

        Returns
        -------
        array of shape (n, k)
        """
        return self._in_units_of_the_data(self._values(x))

    @abstractmethod
    def _values(self, x: Any) -> np.ndarray:
        """The raw values over the domain's unit, which is one but where densities are beyond the range of numbers."""

    def density(self, x: Any) -> np.ndarray:
        """The proper densities, (n, k): raw values clipped at zero and scaled to mass one.

        Parameters
        ----------
        x : array of shape (n,) or (n, d)

        Returns
        -------
        array of shape (n, k)
        """
        return self._in_units_of_the_data(self._proper(x))

    def log_density(self, x: Any) -> np.ndarray:
        """The log of ``density`` mixed with a millionth of a broad density, so that it is finite everywhere.

        Parameters
        ----------
        x : array of shape (n,) or (n, d)

        Returns
        -------
        array of shape (n, k)
        """
        domain, x = self._domain(), to_numpy(as_rows(x))
        logs = np.log(np.maximum(self._proper(x), TINY)) + domain.log_unit
        return np.logaddexp(logs, np.log(BACKGROUND) + domain.log_background(x)[:, None])

    def _proper(self, x: Any) -> np.ndarray:
        """Raw values clipped at zero and scaled to mass one, over the unit of the domain."""
        with np.errstate(over="ignore"):  # where a component is narrower than the grid that its mass is taken on
            return np.minimum(np.maximum(self._values(x), 0.0) / self._positive_mass, HIGHEST)

    def _in_units_of_the_data(self, values: np.ndarray) -> np.ndarray:
        if self.domain is None or not self.domain.log_unit:
            return values
        with np.errstate(over="ignore", divide="ignore"):  # infinite, or zero, where no number is so large or small
            return np.sign(values) * np.exp(np.log(np.abs(values)) + self.domain.log_unit)

    @cached_property
    def mass(self) -> np.ndarray:
        """The integrals of the raw values, (k,); one if the estimate is a density."""
        return self._domain().weights @ self._at_nodes

    @cached_property
    def clipped(self) -> np.ndarray:
        """The share of each component's absolute mass that was negative and is clipped in ``density``, (k,)."""
        negative = self._domain().weights @ np.maximum(-self._at_nodes, 0.0)
        return negative / (negative + self._positive_mass)

    def expectation(self, f: Query) -> np.ndarray:
        """⟨f, μ_h⟩ = E[f(x) | h], (k,).

        ``f`` is a pair (points, coefficients) for f = Σ_i coefficients_i k(points_i, ·), an exact query, or a callable
        from rows (n, d) to n numbers.

        Parameters
        ----------
        f : callable
            A function of rows (n, d), one value per row.

        Returns
        -------
        array of shape (k,)
        """
        if isinstance(f, tuple):
            points, coefficients = f
            return np.asarray(coefficients, dtype=float) @ self.at(points)
        return self._integrate(f)

    def _integrate(self, f: Callable[[np.ndarray], Any]) -> np.ndarray:
        """A callable against ``density``, and so smoothed by the kernel."""
        domain = self._domain()
        return (domain.weights * evaluate(f, domain.nodes)) @ self._node_density

    def mmd(self, other: "Components | None" = None) -> np.ndarray:
        """Distances ‖μ_g − μ'_h‖ between the components here and in ``other`` (itself by default), (k, k').

        Parameters
        ----------
        other : the same kind, or None
            None compares the classes with each other.

        Returns
        -------
        array of shape (k, k)
        """
        here, there = self._coordinates(self), self._coordinates(self if other is None else other)
        squares = np.sum(here**2, axis=0)[:, None] + np.sum(there**2, axis=0)[None, :] - 2 * here.T @ there
        return np.sqrt(np.maximum(squares, 0.0))  # rounding can take a zero distance below zero

    @abstractmethod
    def _coordinates(self, other: "Components") -> np.ndarray:
        """The components of ``other`` as vectors whose inner products are the kernel used here."""

    def _as_sample(self) -> tuple[np.ndarray, np.ndarray]:
        """Points (n, d) and weights (n, k) that stand for the components."""
        return self._domain().nodes, self._domain().weights[:, None] * self._node_density

    @abstractmethod
    def take(self, order: np.ndarray) -> "Components":
        """The components in another order, or some of them.

        Parameters
        ----------
        order : array of ints
            The classes in their new order.

        Returns
        -------
        the same in that order
        """

    @property
    def dim(self) -> int:
        """The number of columns of the view."""
        return self._domain().nodes.shape[1]

    @property
    @abstractmethod
    def n_components(self) -> int:
        """The number of components k."""

    @property
    @abstractmethod
    def n_parameters(self) -> np.ndarray:
        """The effective number of parameters of every component, (k,)."""

    def sample(self, component: int, size: int, rng: np.random.Generator) -> np.ndarray:
        """Rows drawn from the density of one component.

        Parameters
        ----------
        component : int
            The class.
        size : int
            How many.
        rng : numpy Generator

        Returns
        -------
        array of shape (size, d)
        """
        return self._domain().draw(self._node_density[:, component], size, rng)

    def marginal(self, column: int) -> tuple[np.ndarray, np.ndarray]:
        """Increasing values of a column, (m,), and the share of every component up to them, (m, k).

        Parameters
        ----------
        column : int

        Returns
        -------
        Components
            Of one column.
        """
        domain = self._domain()
        order = np.argsort(domain.nodes[:, column], kind="stable")
        mass = domain.weights[order, None] * self._node_density[order]
        # a node stands in the middle of its mass, but codes are what they are
        shares = np.cumsum(mass, axis=0) - (0.0 if domain.space.column(column).finite else mass / 2)
        return domain.nodes[order, column], shares / np.maximum(mass.sum(axis=0), TINY)

    def _domain(self) -> Quadrature:
        if self.domain is None:
            raise TypeError(
                "This kernel does not smooth, so its embeddings have no density; `at` and `expectation((points, "
                "coefficients))` work, and Gaussian, Laplace, Matern, VonMises or Delta kernels give densities."
            )
        return self.domain

    @cached_property
    def _at_nodes(self) -> np.ndarray:
        return self._values(self._domain().nodes)

    @cached_property
    def _positive_mass(self) -> np.ndarray:
        return np.maximum(self._domain().weights @ np.maximum(self._at_nodes, 0.0), TINY)

    @cached_property
    def _node_density(self) -> np.ndarray:
        return np.maximum(self._at_nodes, 0.0) / self._positive_mass


def evaluate(f: Callable[[np.ndarray], Any], rows: np.ndarray) -> np.ndarray:
    """``f`` on rows (n, d), checked to give n numbers."""
    if not callable(f):
        raise TypeError(f"expectation takes a function of rows, or a pair (points, coefficients); got {f!r}.")
    values = np.asarray(f(rows), dtype=float)
    if values.shape not in {(len(rows),), (len(rows), 1)}:
        raise ValueError(
            f"expectation needs a function from rows (n, d) to n numbers; for {len(rows)} rows it gave shape "
            f"{values.shape}."
        )
    strange = np.flatnonzero(~np.isfinite(values.ravel()))
    if strange.size:
        raise ValueError(
            f"expectation needs a function that is finite wherever it is asked; at {rows[strange[0]]} it gave "
            f"{values.ravel()[strange[0]]}, and in {strange.size} of {len(rows)} places no finite number."
        )
    return values.ravel()


def as_rows(x: Any) -> Any:
    """``x`` with shape (n, d): a vector is one column."""
    try:
        x = x if getattr(x, "ndim", 0) else np.atleast_1d(np.asarray(x, dtype=float))
    except ValueError:
        raise ValueError(
            f"Points of a view are numbers, and categories their codes, in the order of `categories_`; got {x!r:.80}."
        ) from None
    return x[:, None] if x.ndim == 1 else x
