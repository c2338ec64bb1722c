"""Columns of several spaces side by side: continuous × discrete × angle in one view."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import logsumexp

from latentviews._numbers import TINY, thinned
from latentviews.core.kernels.quadrature import GRID, NEAR, Quadrature
from latentviews.core.kernels.space import Space
from latentviews.core.kernels.spaces import Real, silverman_rate

CENTRES = 512  # rows that nodes are drawn around
WIDER = 1.5  # than densities, so that nodes reach their tails


@dataclass(frozen=True)
class ProductSpace(Space):
    """Columns of several spaces, with the product of their measures.

    Parameters
    ----------
    parts : tuple of Space
    columns : tuple of tuples of int
        The places in the view of the columns of every part.
    """

    noun = "value"
    name = "mixed"
    mixed = True
    parts: tuple[Space, ...] = ()
    columns: tuple[tuple[Any, ...], ...] = ()

    @property
    def finite(self) -> bool:  # type: ignore[override]
        """Whether all columns are codes."""
        return all(part.finite for part in self.parts)

    @property
    def affine(self) -> bool:  # type: ignore[override]
        """Whether all columns are real."""
        return all(part.affine for part in self.parts)

    @property
    def ordered(self) -> bool:  # type: ignore[override]
        """Whether all columns are numbers."""
        return all(part.ordered for part in self.parts)

    @property
    def bordered(self) -> bool:  # type: ignore[override]
        """Whether some column has a border."""
        return any(part.bordered for part in self.parts)

    @property
    def dim(self) -> int:
        """The number of columns."""
        return sum(map(len, self.columns))

    def column(self, place: int) -> Space:
        """The space of one column of a view: the line where no part takes it."""
        return next((part for part, columns in self._each() if place in columns), Real())

    def _each(self) -> Iterator[tuple[Space, list[int]]]:
        return ((part, list(columns)) for part, columns in zip(self.parts, self.columns, strict=True))

    def quadrature(
        self, x: np.ndarray, scale: np.ndarray, rng: np.random.Generator, log_unit: float = 0.0
    ) -> Quadrature:
        """The product of the parts' nodes where they are not too many, else nodes around the rows."""
        if sorted(place for columns in self.columns for place in columns) != list(range(x.shape[1])):
            raise ValueError(f"{self!r} has {self.dim} column(s), which do not cover the {x.shape[1]} of the view.")
        found = [part.quadrature(x[:, columns], scale[columns], rng) for part, columns in self._each()]
        center, spread, cell = np.zeros(x.shape[1]), np.ones(x.shape[1]), np.zeros(x.shape[1])
        for (_, columns), rule in zip(self._each(), found, strict=True):
            cell[columns] = rule.cell
            if len(rule.center):
                center[columns], spread[columns] = rule.center, rule.spread
        whole = math.prod(len(rule.nodes) for rule in found) <= GRID
        nodes, weights = self._product(found) if whole else self._around(x, scale, rng)
        return Quadrature(nodes, weights * np.exp(log_unit), cell, center, spread, space=self, log_unit=log_unit)

    def _product(self, found: Sequence[Quadrature]) -> tuple[np.ndarray, np.ndarray]:
        """Every node of a part with every node of the others."""
        places = np.meshgrid(*(np.arange(len(rule.nodes)) for rule in found), indexing="ij")
        nodes, weights = np.empty((places[0].size, self.dim)), np.ones(places[0].size)
        for (_, columns), rule, place in zip(self._each(), found, places, strict=True):
            nodes[:, columns] = rule.nodes[place.ravel()]
            weights *= rule.weights[place.ravel()]
        return nodes, weights

    def _around(self, x: np.ndarray, scale: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Nodes drawn from kernels on rows of ``x``, a kernel per column, weighted by one over their density."""
        from latentviews.core.kernels.defaults import kernel_on  # kernels know spaces, and this space some kernels

        centres = thinned(x, CENTRES)
        nodes = centres[rng.integers(len(centres), size=NEAR)].copy()
        logs = np.zeros((NEAR, len(centres)))
        for j in range(x.shape[1]):
            part = self.column(j)
            kernel: Any = kernel_on(part, WIDER * float(scale[j]))
            nodes[:, [j]] = kernel.draw(nodes[:, [j]], rng)
            logs += np.log(np.maximum(kernel.gram(nodes[:, [j]], centres[:, [j]]), TINY))
        return nodes, np.exp(math.log(len(centres)) - logsumexp(logs, axis=1)) / NEAR

    def log_background(self, x: np.ndarray, quadrature: Quadrature) -> np.ndarray:
        """The product of the parts' broad densities."""
        total = np.zeros(len(x))
        for part, columns in self._each():
            nodes = quadrature.nodes[:, columns]
            own = replace(
                quadrature,
                nodes=np.unique(nodes, axis=0) if part.finite else nodes,
                center=quadrature.center[columns],
                spread=quadrature.spread[columns],
                space=part,
            )
            total += part.log_background(x[:, columns], own)
        return total

    def mean(self, average: Callable[[Callable[[np.ndarray], np.ndarray]], np.ndarray]) -> np.ndarray:
        """The mean of every column, as its space has it."""
        found = np.empty_like(average(np.positive))
        for part, columns in self._each():
            found[..., columns] = part.mean(lambda f, columns=columns: average(f)[..., columns])  # type: ignore[misc]
        return found

    def wrapped(self, x: np.ndarray) -> np.ndarray:
        """The same points, each by the value that stands for it."""
        return self._by_part(x, lambda part, values: part.wrapped(values))

    def reflected(self, x: np.ndarray) -> np.ndarray:
        """Values beyond a border, mirrored there until they are inside."""
        return self._by_part(x, lambda part, values: part.reflected(values))

    def contains(self, x: Any) -> Any:
        """Whether values are in the space of their column; of the shape of ``x``."""
        return self._by_part(x, lambda part, values: part.contains(values)).astype(bool)

    def _by_part(self, x: np.ndarray, f: Callable[[Space, np.ndarray], np.ndarray]) -> np.ndarray:
        found = np.empty(x.shape)
        for part, columns in self._each():
            found[:, columns] = f(part, x[:, columns])
        return found

    def typical(self, values: np.ndarray) -> Sequence[float]:
        """What the first column's space says; `column` is there to ask others."""
        return self.column(0).typical(values)

    def axis(self, low: float, high: float) -> tuple[float, float]:
        """What the first column's space says; `column` is there to ask others."""
        return self.column(0).axis(low, high)

    def widening(self, x: np.ndarray, n_rows: float) -> list[float]:
        """How much wider than its own rule says each part's kernel should be, being one of several.

        Silverman's rate with all columns that are not codes, and with the rows that share their codes.
        """
        codes = [j for j in range(x.shape[1]) if self.column(j).finite]
        counts = np.unique(x[:, codes], axis=0, return_counts=True)[1] if codes else np.array([len(x)])
        alike = max(n_rows * float(((counts / counts.sum()) ** 2).sum()), 2.0)
        rate = silverman_rate(alike, max(self.dim - len(codes), 1))
        return [
            1.0 if part.finite else rate / silverman_rate(max(n_rows, 2.0), len(columns))
            for part, columns in self._each()
        ]
