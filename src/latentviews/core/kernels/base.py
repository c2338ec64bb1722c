"""Kernels on rows: what two points have in common.

A kernel needs one method, ``gram``; ``+`` and ``*`` come free, and ``on`` says which columns of a view it sees. Those
that are densities in their first argument (all but `Delta`, `Linear` and `Polynomial`) make embeddings with densities.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Self, cast

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.metaestimators import available_if

from latentviews._arrays import namespace, take_columns
from latentviews.core.kernels.product_space import ProductSpace
from latentviews.core.kernels.space import Space
from latentviews.core.kernels.spaces import Real


class Kernel(BaseEstimator):
    r"""What every kernel :math:`k(x, y) = \langle \varphi(x), \varphi(y) \rangle` offers: ``gram``, and what follows.

    ``space`` is where its densities live: `Real` (Lebesgue measure), `Circle` (angles), `Discrete` (counting measure),
    another `Space`, or None. A kernel that is a density may offer ``draw(x, rng)``, a draw from k(x_i, ·) per row. A
    shift-invariant one also offers ``frequencies(size, dim, rng)``, draws from its spectral measure in columns, and may
    offer ``spectral(points, dim)``: those of uniform points, dependent or not, in ``spectral_size(dim)`` coordinates.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import Kernel
    >>> class Overlap(Kernel):
    ...     gram = lambda self, x, y: np.minimum(x, y.T)
    >>> (Overlap() * Overlap()).gram(np.array([[1.0], [3.0]]), np.array([[2.0]])).tolist()
    [[1.0], [4.0]]
    """

    space: Space | None = Real()

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:  # kernels are cloned so often that reading signatures shows
        return super()._get_param_names()

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
        array of shape (n, m), the kernel over its height
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
        Kernel, with numbers in place of rules
        """
        return clone(self)

    def on(self, columns: int | str | Sequence[int | str]) -> "OnColumns":
        """The kernel on some columns of a view, by their places in the view or by their names.

        A product of kernels that take disjoint columns has a density on their product space.

        Parameters
        ----------
        columns : int, str or a list of them

        Returns
        -------
        OnColumns

        Examples
        --------
        >>> from latentviews import Delta, Gaussian, VonMises
        >>> kernel = Gaussian().on([0]) * Delta().on([1]) * VonMises().on(["psi"])
        >>> [part.name for part in kernel.space.parts]
        ['real', 'discrete', 'circle']
        """
        places = [columns] if isinstance(columns, str | int | np.integer) else list(columns)
        if not places:
            raise ValueError("A kernel is on one column at least; on([]) says none.")
        return OnColumns(self, places)

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


def _on_columns_of_their_own(product: "Product") -> bool:
    return all(hasattr(part, "draw") for part in column_factors(product) or [Kernel()])


class Product(_Pair):
    """k(x, y) = first(x, y) · second(x, y)."""

    @property
    def space(self) -> Space | None:  # type: ignore[override]
        """The product of the parts' spaces where both say which columns they take, else the space that they share."""
        factors = column_factors(self)
        if not factors:
            return super().space
        parts, taken = [part.kernel.space for part in factors], [place for part in factors for place in part.columns]
        if None in parts or len(set(taken)) < len(taken):
            return None
        return ProductSpace(tuple(parts), tuple(tuple(part.columns) for part in factors))  # type: ignore[arg-type]

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        parts = [f"({part!r})" if isinstance(part, Sum) else repr(part) for part in (self.first, self.second)]
        return " * ".join(parts)

    def adapt(self, x: Any) -> Self:
        """A copy with both parts adapted; refused where parts of different spaces would see the same columns."""
        spaces = self.first.space, self.second.space
        if self.space is None and None not in spaces and x.shape[1] > 1:
            raise ValueError(
                f"A product of kernels of different spaces ({spaces[0].name} and {spaces[1].name}) on "  # type: ignore[union-attr]
                f"{x.shape[1]} columns must say which columns each takes, none twice, such as "
                "Gaussian().on([0]) * Delta().on([1])."
            )
        return super().adapt(x)

    @available_if(_on_columns_of_their_own)
    def draw(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A draw from k(x_i, ·) for every row, (n, d): of every part in its own columns."""
        first, second = cast(Any, self.first), cast(Any, self.second)
        return second.draw(first.draw(x, rng), rng)

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


def _if_kernel_has(ability: str) -> Callable[["OnColumns"], bool]:
    return lambda outer: hasattr(outer.kernel, ability)


class OnColumns(Kernel):
    """A kernel that sees some columns of a view; `Kernel.on` makes it.

    Parameters
    ----------
    kernel : Kernel
    columns : list of int or str, places in the view or names
    """

    def __init__(self, kernel: Kernel, columns: Sequence[int | str]):
        self.kernel = kernel
        self.columns = columns

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        inner = f"({self.kernel!r})" if isinstance(self.kernel, _Pair) else repr(self.kernel)
        return f"{inner}.on({list(self.columns)!r})"

    @property
    def space(self) -> Space | None:  # type: ignore[override]
        """The space of the kernel, on its columns."""
        return self.kernel.space and ProductSpace((self.kernel.space,), (tuple(self.columns),))

    def some(self, x: Any) -> Any:
        """The columns of ``x`` that the kernel sees."""
        return take_columns(x, self.places)

    @property
    def places(self) -> list[int]:
        """The places in the view of the columns that the kernel sees."""
        named = [name for name in self.columns if isinstance(name, str)]
        if named:
            raise ValueError(
                f"The kernel is on columns by name, {named}; without a table that has names, say their places in the "
                "view instead."
            )
        return [int(place) for place in self.columns]

    def gram(self, x: Any, y: Any) -> Any:
        """The matrix k(x_i, y_j)."""
        return self.kernel.gram(self.some(x), self.some(y))

    def diagonal(self, x: Any) -> Any:
        """The values k(x_i, x_i)."""
        return self.kernel.diagonal(self.some(x))

    def correlation(self, x: Any, y: Any) -> Any:
        """The matrix k(x_i, y_j) / √(k(x_i, x_i) k(y_j, y_j))."""
        return self.kernel.correlation(self.some(x), self.some(y))

    def unit_diagonal(self, x: Any) -> Any:
        """The values ``correlation(x_i, x_i)``."""
        return self.kernel.unit_diagonal(self.some(x))

    def adapt(self, x: Any) -> Self:
        """A copy whose kernel is adapted to its columns."""
        return type(self)(self.kernel.adapt(self.some(x)), self.columns)

    @available_if(_if_kernel_has("draw"))
    def draw(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The rows with a draw from k(x_i, ·) in the kernel's columns, (n, d)."""
        drawn = np.array(x, dtype=float)
        drawn[:, self.places] = cast(Any, self.kernel).draw(drawn[:, self.places], rng)
        return drawn

    @available_if(_if_kernel_has("frequencies"))
    def frequencies(self, size: int, dim: int, rng: np.random.Generator) -> np.ndarray:
        """Draws from the spectral measure, one frequency per column of the result, zero along other columns."""
        found = np.zeros((dim, size))
        found[self.places] = cast(Any, self.kernel).frequencies(size, len(self.columns), rng)
        return found

    @available_if(_if_kernel_has("spectral"))
    def spectral_size(self, dim: int) -> int:
        """How many uniform numbers make a frequency: those of the kernel."""
        return cast(Any, self.kernel).spectral_size(len(self.columns))

    @available_if(_if_kernel_has("spectral"))
    def spectral(self, points: Any, dim: int) -> Any:
        """The frequencies at ``points`` of the unit cube, zero along other columns."""
        xp, own = namespace(points), cast(Any, self.kernel).spectral(points, len(self.columns))
        zero, places = xp.zeros_like(own[0, :]), self.places
        return xp.stack([own[places.index(j), :] if j in places else zero for j in range(dim)], axis=0)

    def on(self, columns: int | str | Sequence[int | str]) -> "OnColumns":
        """Refused: a kernel is on columns once."""
        raise ValueError(f"{self!r} says its columns already; write on({columns!r}) for the kernel in it.")


def column_factors(kernel: Any) -> list[OnColumns]:
    """The factors of a kernel if every one says which columns it takes; none otherwise."""
    if isinstance(kernel, OnColumns):
        return [kernel]
    if not isinstance(kernel, Product):
        return []
    first, second = column_factors(kernel.first), column_factors(kernel.second)
    return first + second if first and second else []
