"""Kernels on rows: what two points have in common.

A kernel needs one method, ``gram``; ``+`` and ``*`` come free. Those that are densities in their first argument
(all but `Delta`, `Linear` and `Polynomial`) make embeddings whose values are densities.
"""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.metaestimators import available_if

from latentviews._arrays import namespace
from latentviews.core.kernels.space import Space
from latentviews.core.kernels.spaces import Real


class Kernel(BaseEstimator):
    """What every kernel offers: ``gram(x, y)``, and what follows from it.

    ``space`` is where the kernel's densities live: `Real` (Lebesgue measure), `Circle` (angles), `Discrete` (counting
    measure) or another `Space`, or None where it has none. A kernel that is a density may offer ``draw(x, rng)``, a
    draw from k(x_i, ·) for every row. A shift-invariant kernel also offers ``frequencies(size, dim, rng)``, draws from
    its spectral measure in columns, and may offer ``spectral(points, dim)``, the frequencies at points of the unit
    cube of ``spectral_size(dim)`` coordinates: uniform points, however they depend on each other, give draws from the
    spectral measure.
    """

    space: Space | None = Real()

    def gram(self, x: Any, y: Any) -> Any:
        """The matrix k(x_i, y_j).

        Parameters
        ----------
        x : array of shape (n,) or (n, d)
        y : array of shape (m, d)

        Returns
        -------
        array of shape (n, m)
        """
        raise TypeError(f"{type(self).__name__} is a kernel without `gram`: write gram(x, y) for it.")

    def diagonal(self, x: Any) -> Any:
        """The values k(x_i, x_i).

        Parameters
        ----------
        x : array of shape (n,) or (n, d)

        Returns
        -------
        array of shape (n,)
        """
        xp = namespace(x)
        return xp.concat([xp.reshape(self.gram(x[i : i + 1, :], x[i : i + 1, :]), (1,)) for i in range(x.shape[0])])

    def correlation(self, x: Any, y: Any) -> Any:
        """The matrix k(x_i, y_j) / √(k(x_i, x_i) k(y_j, y_j)).

        Parameters
        ----------
        x : array of shape (n,) or (n, d)
        y : array of shape (m, d)

        Returns
        -------
        array of shape (n, m)
            The kernel over its height.
        """
        xp = namespace(x)
        heights = xp.sqrt(self.diagonal(x))[:, None] * xp.sqrt(self.diagonal(y))[None, :]
        return self.gram(x, y) / xp.clip(heights, min=float(np.finfo(np.float32).tiny))  # zero has no direction

    def unit_diagonal(self, x: Any) -> Any:
        """The values ``correlation(x_i, x_i)``.

        Parameters
        ----------
        x : array of shape (n,) or (n, d)

        Returns
        -------
        bool or array
        """
        return namespace(x).ones_like(x[:, 0])

    def adapt(self, x: Any) -> Self:
        """A copy in which every rule (such as ``bandwidth="median"``) is a number read off the rows ``x``.

        Parameters
        ----------
        x : array of shape (n,) or (n, d)

        Returns
        -------
        Kernel
            With numbers in place of rules.
        """
        return clone(self)

    def __add__(self, other: "Kernel") -> "Sum":
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: "Kernel") -> "Product":
        return Product(self, other) if isinstance(other, Kernel) else NotImplemented


def _both_shift_invariant(pair: "_Pair") -> bool:
    return hasattr(pair.first, "frequencies") and hasattr(pair.second, "frequencies")


def _both_spectral(pair: "_Pair") -> bool:
    return hasattr(pair.first, "spectral") and hasattr(pair.second, "spectral")


class _Pair(Kernel):
    """Two kernels combined."""

    def __init__(self, first: Kernel, second: Kernel):
        self.first = first
        self.second = second

    @property
    def space(self) -> Space | None:  # type: ignore[override]
        """The space of the parts, where they share one."""
        return self.first.space if self.first.space == self.second.space else None

    def adapt(self, x: Any) -> Self:
        """A copy with both parts adapted."""
        return type(self)(self.first.adapt(x), self.second.adapt(x))


class Sum(_Pair):
    """k(x, y) = first(x, y) + second(x, y)."""

    def gram(self, x: Any, y: Any) -> Any:
        """The matrix k(x_i, y_j)."""
        return self.first.gram(x, y) + self.second.gram(x, y)

    def diagonal(self, x: Any) -> Any:
        """The values k(x_i, x_i)."""
        return self.first.diagonal(x) + self.second.diagonal(x)

    @available_if(_both_shift_invariant)
    def frequencies(self, size: int, dim: int, rng: np.random.Generator) -> np.ndarray:
        """Draws from the mixture of the parts' spectral measures, in proportion to their values at zero."""
        at_zero = [float(part.diagonal(np.zeros((1, dim)))[0]) for part in (self.first, self.second)]
        choice = rng.random(size) < at_zero[0] / sum(at_zero)
        draws = [part.frequencies(size, dim, rng) for part in (self.first, self.second)]
        return np.where(choice, *draws)

    @available_if(_both_spectral)
    def spectral_size(self, dim: int) -> int:
        """How many uniform numbers make a frequency: one for the choice of a part, and those of the part."""
        return 1 + max(self.first.spectral_size(dim), self.second.spectral_size(dim))

    @available_if(_both_spectral)
    def spectral(self, points: Any, dim: int) -> Any:
        """The frequencies at ``points`` of the unit cube: the first coordinate chooses the part."""
        at_zero = [float(part.diagonal(np.zeros((1, dim)))[0]) for part in (self.first, self.second)]
        sizes = [part.spectral_size(dim) for part in (self.first, self.second)]
        draws = [
            part.spectral(points[:, 1 : 1 + n], dim) for part, n in zip((self.first, self.second), sizes, strict=True)
        ]
        return namespace(points).where(points[:, 0] < at_zero[0] / sum(at_zero), *draws)


class Product(_Pair):
    """k(x, y) = first(x, y) · second(x, y)."""

    def gram(self, x: Any, y: Any) -> Any:
        """The matrix k(x_i, y_j)."""
        return self.first.gram(x, y) * self.second.gram(x, y)

    def diagonal(self, x: Any) -> Any:
        """The values k(x_i, x_i)."""
        return self.first.diagonal(x) * self.second.diagonal(x)

    def correlation(self, x: Any, y: Any) -> Any:
        """The matrix k(x_i, y_j) / √(k(x_i, x_i) k(y_j, y_j))."""
        return self.first.correlation(x, y) * self.second.correlation(x, y)

    def unit_diagonal(self, x: Any) -> Any:
        """The values ``correlation(x_i, x_i)``."""
        return self.first.unit_diagonal(x) * self.second.unit_diagonal(x)

    @available_if(_both_shift_invariant)
    def frequencies(self, size: int, dim: int, rng: np.random.Generator) -> np.ndarray:
        """Sums of draws from the parts' spectral measures: their convolution."""
        return self.first.frequencies(size, dim, rng) + self.second.frequencies(size, dim, rng)

    @available_if(_both_spectral)
    def spectral_size(self, dim: int) -> int:
        """How many uniform numbers make a frequency: those of both parts."""
        return self.first.spectral_size(dim) + self.second.spectral_size(dim)

    @available_if(_both_spectral)
    def spectral(self, points: Any, dim: int) -> Any:
        """The frequencies at ``points`` of the unit cube: sums of the parts'."""
        n = self.first.spectral_size(dim)
        return self.first.spectral(points[:, :n], dim) + self.second.spectral(points[:, n:], dim)


class UnitHeight(Kernel):
    """A kernel over its height, so that k(x, x) = 1 far from any border. Its embeddings have no density."""

    space = None

    def __init__(self, kernel: Kernel):
        self.kernel = kernel

    def gram(self, x: Any, y: Any) -> Any:
        """The matrix of correlations."""
        return self.kernel.correlation(x, y)

    def diagonal(self, x: Any) -> Any:
        """The values k(x_i, x_i)."""
        return self.kernel.unit_diagonal(x)

    def adapt(self, x: Any) -> Self:
        """A copy whose kernel is adapted."""
        return type(self)(self.kernel.adapt(x))
