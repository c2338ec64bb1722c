"""Densities of views whose columns are of several spaces: weighted rows, smoothed by a product of kernels."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from sklearn.base import clone

from latentviews._arrays import to_numpy
from latentviews._numbers import TINY, as_shares
from latentviews.core.components import Components, as_rows, evaluate
from latentviews.core.embeddings import domain_of
from latentviews.core.kernels.base import Kernel, column_factors
from latentviews.core.kernels.mixed import smoothness, widened
from latentviews.core.kernels.quadrature import Quadrature
from latentviews.core.streams import batches
from latentviews.densities.reestimation import within_classes
from latentviews.densities.smoothers import representatives
from latentviews.densities.weighted_kernels import WeightedKernels

WIDTHS = (0.12, 0.18, 0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0)  # of kernels, over what Silverman's rule says
FAINT = 1e-9  # shares of a row that no density would miss
HALF = 2**0.2  # how much wider than for all rows the best kernels for half of them are, about


@dataclass(frozen=True, eq=False)
class KernelSample(WeightedKernels):
    """Components as weighted rows, and their densities as mixtures of one kernel per component on the rows.

    p(x | h) = Σ_i weights_ih k_h(x, rows_i), where k_h is a product of kernels on columns of their own: a density for
    the product of their measures.

    Parameters
    ----------
    domain : Quadrature
    rows : array of shape (m, d)
    weights : array of shape (m, k), columns summing to one
    kernels : tuple of Kernel, one per component
    """

    rows: np.ndarray = field(repr=False)
    weights: np.ndarray = field(repr=False)
    kernels: tuple[Kernel, ...]

    def _values(self, x: Any) -> np.ndarray:
        """The densities, (n, k)."""
        x = to_numpy(as_rows(x))
        if x.shape[1] != self.rows.shape[1]:
            raise ValueError(f"This view has {self.rows.shape[1]} columns; got {x.shape[1]}.")
        if not len(x):
            return np.empty((0, self.n_components))
        return np.concatenate([np.stack(list(self._each(batch)), axis=1) for batch, _ in batches(x)])

    def _each(self, x: np.ndarray) -> Iterator[np.ndarray]:
        for kernel, weights in zip(self.kernels, self.weights.T, strict=True):
            kept = weights > 0
            yield kernel.gram(x, self.rows[kept]) @ weights[kept]

    def sample(self, component: int, size: int, rng: np.random.Generator) -> np.ndarray:
        """Rows drawn from the density of one component: a row, and a draw from its kernel."""
        kernel = cast(Any, self.kernels[component])
        if not hasattr(kernel, "draw"):
            return super().sample(component, size, rng)
        picked = rng.choice(len(self.rows), size=size, p=self.weights[:, component] / self.mass[component])
        return self.space.wrapped(kernel.draw(self.rows[picked], rng))

    def marginal(self, column: int) -> tuple[np.ndarray, np.ndarray]:
        """Increasing values of a column, (m,), and the share of every component up to them, (m, k)."""
        own, space, x = [_of_column(kernel, column) for kernel in self.kernels], self.space.column(column), self.rows
        scale = np.min([smoothness(kernel, x[:, [column]]) for kernel in own], axis=0)
        rule = space.quadrature(x[:, [column]], scale, np.random.default_rng(0))
        order = np.argsort(rule.nodes[:, 0], kind="stable")
        nodes = rule.nodes[order]
        values = [k.gram(nodes, x[:, [column]]) @ w for k, w in zip(own, self.weights.T, strict=True)]
        mass = rule.weights[order, None] * np.stack(values, axis=1)
        for h in np.flatnonzero(~(mass.sum(axis=0) > self.mass / 2)):  # narrower than nodes are apart: its rows tell it
            nearest = np.searchsorted(nodes[:-1, 0], space.wrapped(x[:, [column]])[:, 0])
            mass[:, h] = np.bincount(nearest, self.weights[:, h], len(nodes))
        shares = np.cumsum(mass, axis=0) - (0.0 if space.finite else mass / 2)
        return nodes[:, 0], shares / mass.sum(axis=0)

    def _integrate(self, f: Any) -> np.ndarray:
        """A callable against the weighted rows themselves, with no smoothing."""
        return evaluate(f, self.rows) @ self.weights

    @property
    def n_parameters(self) -> np.ndarray:
        """The trace of the smoother: how many kernels fit side by side."""
        own = self.weights * np.stack([kernel.diagonal(self.rows) for kernel in self.kernels], axis=1)
        return (own / np.maximum(self._values(self.rows), own + TINY)).sum(axis=0)

    def take(self, order: np.ndarray) -> "KernelSample":
        """The components in another order, or some of them."""
        return replace(self, weights=self.weights[:, order], kernels=tuple(self.kernels[h] for h in order))

    def _as_sample(self) -> tuple[np.ndarray, np.ndarray]:
        return self.rows, self.weights

    def _coordinates(self, other: Components) -> np.ndarray:
        points, weights = other._as_sample()
        kernel = self.kernels[0]
        values, vectors = np.linalg.eigh(kernel.gram(self.rows, self.rows))
        root = vectors / np.sqrt(np.maximum(values, 1e-10 * values[-1]))
        return root.T @ kernel.gram(self.rows, points) @ weights


def _of_column(kernel: Kernel, column: int) -> Kernel:
    """What a product of kernels is along one column."""
    part = next(part for part in column_factors(kernel) if column in part.columns)
    params = part.kernel.get_params()
    if "bandwidth" not in params:
        return part.kernel
    widths = np.broadcast_to(params["bandwidth"], len(part.columns))
    return clone(part.kernel).set_params(bandwidth=float(widths[list(part.columns).index(column)]))


def kernel_samples(
    x: np.ndarray,
    posteriors: np.ndarray,
    kernel: Kernel,
    halves: tuple[np.ndarray, np.ndarray],
    rng: np.random.Generator,
    n_judged: int,
) -> KernelSample:
    """Components from rows (n, d) and their posteriors, each as wide as makes halves of the rows likeliest.

    Rows with a missing value are left out.
    """
    present = ~np.isnan(x).any(axis=1)
    number = np.cumsum(present) - 1
    parts = [number[half[present[half]]] for half in halves]
    x, posteriors = x[present], np.maximum(posteriors[present], TINY)
    own = [within_classes(kernel, x, column[:, None]) for column in posteriors.T]
    factors = _held_out_factors(x, posteriors, own, parts, rng, n_judged)
    kernels = tuple(widened(one, factor) for one, factor in zip(own, factors, strict=True))
    some, shares = _representatives(posteriors, rng)
    narrow = min(kernels, key=lambda one: float(smoothness(one, x).min()))
    return KernelSample(cast(Quadrature, domain_of(narrow, x, rng, 0.0)), x[some], shares, kernels)


def _held_out_factors(
    x: np.ndarray,
    posteriors: np.ndarray,
    kernels: list[Kernel],
    halves: list[np.ndarray],
    rng: np.random.Generator,
    n_judged: int,
) -> np.ndarray:
    """The width of every component, over the rule's, under which some rows of either half are likeliest."""
    scores = np.zeros((len(WIDTHS), len(kernels)))
    for fitted, held in (halves, halves[::-1]):
        if not len(fitted):
            continue
        some, shares = _representatives(posteriors[fitted], rng)
        rows, asked = x[fitted][some], held[rng.permutation(len(held))[:n_judged]]
        for h, kernel in enumerate(kernels):
            near, own = rows[shares[:, h] > 0], shares[shares[:, h] > 0, h]
            for row, width in zip(scores, WIDTHS, strict=True):
                values = widened(kernel, HALF * width).gram(x[asked], near) @ own
                row[h] += posteriors[asked, h] @ np.log(np.maximum(values, TINY))
    return np.array(WIDTHS)[scores.argmax(axis=0)]


def _representatives(posteriors: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of some rows, and their shares of each component, none of which is next to nothing."""
    some, shares = representatives(posteriors, rng)
    return some, as_shares(np.where(shares > FAINT, shares, 0.0), axis=0)
