"""Functions learnt from a stream of which nothing is kept: neither rows nor random features.

Every step of a doubly stochastic method (Dai et al. 2014) sees a fresh batch of rows and a fresh block of random
features. The features of a block are made again from a seed whenever they are needed, so a function is no more than
its coefficients: t blocks of r columns.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from array_api_compat import device
from scipy import linalg

from latentviews._arrays import in_library_of, is_foreign, moved_to, namespace, to_numpy
from latentviews._numbers import TINY
from latentviews._validation import DivergenceError, UnsupportedError, check_range
from latentviews.core.features.fourier import Fastfood, fastfood, waves
from latentviews.core.features.points import hashed_points, lattice_points

FEW = 8  # columns up to which a lattice spreads frequencies better than chance by far
BLOCK_SELECTIONS = ("auto", "fastfood")
DIAGONALS = 4  # numbers that fastfood draws for a frequency
GAP = 0.1  # the least gap of the spectrum that step sizes reckon with, as a share of the last eigenvalue


@dataclass(frozen=True, eq=False)
class RandomBlocks:
    """Blocks of Fourier features of a kernel at height one: φ_j(x)ᵀφ_j(y) is k(x, y)/k(0) on average for every j.

    A block is a function of its number, the same in every array library and on every device.
    """

    kernel: Any  # its rules resolved, with `frequencies`, and `spectral` where it can
    dim: int
    size: int  # frequencies per block; there are twice as many features
    seed: int
    keep: int = 0  # numbers of frequencies that may stay in memory while they are in use; none by default
    selection: str = "auto"  # or "fastfood", whose frequencies are products of Hadamard and diagonal matrices

    def __call__(self, x: Any, block: int) -> Any:
        """The features of rows in one block, (n, 2 size)."""
        shape = tuple(getattr(x, "shape", ()))
        if len(shape) != 2 or shape[1] != self.dim:
            raise ValueError(f"An array of {self.dim} column(s) is expected; got {type(x).__name__} of shape {shape}.")
        with np.errstate(over="ignore", invalid="ignore"):  # told in a sentence
            phases = self._fastfood(block)(x) if self.selection == "fastfood" else x @ self._matrix(block, x)
        if not is_foreign(phases):  # elsewhere every look would wait for the device
            check_range(phases)
        return waves(phases) / math.sqrt(self.size)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_kept"}

    def _matrix(self, block: int, x: Any) -> Any:
        """The frequencies of a block as `frequencies` makes them, in the dtype of ``x``."""
        if (block + 1) * self.size * self.dim > self.keep:
            return moved_to(self.frequencies(block, x), x)
        kept, key = self.__dict__.setdefault("_kept", {}), (block, type(x), x.dtype)  # single precision is not for all
        if key not in kept or device(kept[key]) != device(x):
            kept[key] = moved_to(self.frequencies(block, x), x)
        return kept[key]

    def _fastfood(self, block: int) -> Fastfood:
        """A block in which frequencies are never written out; the signs and normals of it are drawn on the host."""
        kept = self.__dict__.setdefault("_kept", {})
        made = kept.get(block) or fastfood(self.kernel, self.size, self.dim, np.random.default_rng([self.seed, block]))
        if (block + 1) * DIAGONALS * made.signs.size <= self.keep:
            kept[block] = made
        return made

    def frequencies(self, block: int, x: Any) -> Any:
        """The frequencies of a block in columns, made where ``x`` lives."""
        if not hasattr(self.kernel, "spectral"):  # a kernel from elsewhere that draws on the host alone
            return self.kernel.frequencies(self.size, self.dim, np.random.default_rng([self.seed, block]))
        width, first = self.kernel.spectral_size(self.dim), block * self.size
        if self.dim > FEW:
            return self.kernel.spectral(hashed_points(self.seed, first, self.size, width, x), self.dim)
        shift = namespace(x).asarray(np.random.default_rng(self.seed).random(width), device=device(x))
        return self.kernel.spectral(lattice_points(first, self.size, shift), self.dim)


@dataclass(frozen=True, eq=False)
class Expansion:
    """The vector-valued function f(x) = (Σ_j φ_j(x) α_j) R."""

    blocks: Any  # RandomBlocks, or another function of rows and the number of a block
    coefficients: tuple[Any, ...]  # α_j, (2 size, r) a block
    rotation: np.ndarray | None = None  # R, (r, r)

    def __call__(self, x: Any) -> Any:
        """The values at rows, (n, r)."""
        values = self.unrotated(x)
        return values if self.rotation is None else values @ in_library_of(self.rotation, values)

    transform = __call__  # an expansion stands wherever a feature map does

    def unrotated(self, x: Any) -> Any:
        """Σ_j φ_j(x) α_j, a block at a time."""
        values = self.blocks(x, 0) @ moved_to(self.coefficients[0], x)
        for j, coefficients in enumerate(self.coefficients[1:], start=1):
            values = values + self.blocks(x, j) @ moved_to(coefficients, x)
        return values

    def updated(self, x: Any, shrink: Callable[[Any], Any], target: Any, cap: int | None) -> "Expansion":
        """Every α_j shrunk, and the functional gradient Σ_i k(x_i, ·) target_i added in random features.

        The gradient is taken in a fresh block; once there are ``cap`` blocks, in all of them.
        """
        count = len(self.coefficients)
        kept = tuple(shrink(moved_to(coefficients, x)) for coefficients in self.coefficients)
        if cap is None or count < cap:
            return replace(self, coefficients=(*kept, self.blocks(x, count).T @ target))
        target = target / count
        return replace(self, coefficients=tuple(a + self.blocks(x, j).T @ target for j, a in enumerate(kept)))

    def towards(self, other: "Expansion", share: float) -> "Expansion":
        """A part of the way to another function, of at least as many blocks."""
        zero = namespace(other.coefficients[0]).zeros_like(other.coefficients[0])
        mine = (
            *(moved_to(a, zero) for a in self.coefficients),
            *[zero] * (len(other.coefficients) - len(self.coefficients)),
        )
        return replace(
            self, coefficients=tuple(a + share * (b - a) for a, b in zip(mine, other.coefficients, strict=True))
        )


@dataclass(frozen=True)
class StepSizes:
    """γ = min(1/λ₁, (c/g) / (i + cλ₁/g)), where i counts batches and g is the gap λ_r − λ_(r+1)."""

    first: float  # λ₁
    gap: float  # g
    factor: float  # c
    batch_size: int

    def __call__(self, n_seen: int, n_rows: int) -> float:
        """The step for a batch of ``n_rows`` that follows ``n_seen`` others."""
        wait = self.factor * self.first / self.gap
        return min(1 / self.first, self.factor / self.gap * n_rows / (n_seen + self.batch_size * wait))


def warm_start(
    blocks: RandomBlocks, products: np.ndarray, x: Any, rank: int, factor: float, batch_size: int
) -> tuple[Expansion, StepSizes]:
    """Kernel PCA in the first block of features, and the step sizes that its spectrum suggests.

    ``products`` is the mean of φ_0 φ_0ᵀ over some rows; coefficients are made where ``x`` lives.
    """
    values, vectors = leading(products, rank)
    return Expansion(blocks, (in_library_of(vectors, x),)), step_sizes(values, rank, factor, batch_size)


def leading(products: np.ndarray, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """The eigenvalues of products, decreasing, and the leading ``rank`` eigenvectors, which all must have some."""
    values, vectors = np.linalg.eigh(products)
    _check_rank(values[::-1], rank)
    return values[::-1], vectors[:, ::-1][:, :rank]


def oja_step(f: Expansion, x: Any, rate: float, cap: int | None = None) -> tuple[Expansion, np.ndarray]:
    """One step of doubly stochastic kernel PCA, and the covariance of the values before it.

    U ← U (I − γ YᵀY/B) + γ/B Σ_i k(x_i, ·) y_iᵀ with y = U(x): Oja's rule on a batch of B rows.
    """
    values = f.unrotated(x)
    covariance = to_numpy(values.T @ values) / x.shape[0]
    check_step(float(np.trace(covariance)), len(covariance), "Take smaller steps (step_size) or larger batches")
    shrink = in_library_of(np.eye(len(covariance)) - rate * covariance, values)
    return f.updated(x, partial(_times, shrink), values * (rate / x.shape[0]), cap), covariance


def _times(matrix: Any, coefficients: Any) -> Any:
    return coefficients @ matrix


def cross_warm_start(
    blocks: Sequence[RandomBlocks], x: Sequence[Any], rank: int, factor: float, batch_size: int
) -> tuple[tuple[Expansion, ...], StepSizes]:
    """The leading directions of the views' joint cross-covariance, in the first block of every view's features.

    They solve Σ_{b≠a} C_ab u_b = λ u_a: eigenvectors of the matrix of all cross-covariances with a zero diagonal.
    """
    phi = [to_numpy(one(rows, 0)) for one, rows in zip(blocks, x, strict=True)]
    sizes = np.cumsum([0, *(part.shape[1] for part in phi)])
    stacked = np.concatenate(phi, axis=1)
    joint = stacked.T @ stacked / len(stacked)
    for start, end in pairwise(sizes):
        joint[start:end, start:end] = 0.0
    values, vectors = leading(joint, rank)
    parts = [_orthonormal(vectors[start:end]) for start, end in pairwise(sizes)]
    found = tuple(
        Expansion(one, (in_library_of(part, rows),)) for one, part, rows in zip(blocks, parts, x, strict=True)
    )
    return found, step_sizes(values, rank, factor, batch_size)


def cross_step(f: Sequence[Expansion], x: Sequence[Any], rate: float, cap: int | None = None) -> tuple[Expansion, ...]:
    """One step towards the subspaces that the views share, in place of one view's own: Y_a meets O_a = Σ_{b≠a} Y_b.

    U_a ← U_a (I − γ sym(Y_aᵀO_a)/B) + γ/B Σ_i k(x_i, ·) o_iᵀ.
    """
    n_rows, values = x[0].shape[0], [one.unrotated(rows) for one, rows in zip(f, x, strict=True)]
    everything, stepped = sum(values), []
    for one, rows, own in zip(f, x, values, strict=True):
        check_step(float(to_numpy(own**2).sum()) / n_rows, own.shape[1], "Give a first batch that is like the others")
        others = everything - own
        cross = to_numpy(own.T @ others) / n_rows
        shrink = in_library_of(np.eye(len(cross)) - rate * (cross + cross.T) / 2, own)
        stepped.append(one.updated(rows, partial(_times, shrink), others * (rate / n_rows), cap))
    return tuple(stepped)


def check_step(mean_square: float, rank: int, remedy: str) -> None:
    """Refuse values beyond what orthonormal functions can have where the kernel's height is one."""
    if not mean_square < 10 * rank:
        raise DivergenceError(
            f"The steps diverge: values have a mean square of {mean_square:.3g}, and eigenfunctions at most 1 each. "
            f"{remedy}; the model is as it was before this batch."
        )


def rotation_of(covariance: np.ndarray, rank: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The eigenvalues of a covariance, decreasing, and the rotation to its axes, signs settled; the leading if few."""
    size = len(covariance)
    leading = None if rank is None else (size - rank, size - 1)
    values, vectors = linalg.eigh(covariance, subset_by_index=leading, check_finite=False)
    values, vectors = values[::-1], vectors[:, ::-1]
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(len(values))])
    return np.maximum(values, 0.0), vectors * signs


def _orthonormal(vectors: np.ndarray) -> np.ndarray:
    """The orthonormal vectors closest to some, so that columns go on belonging together across views."""
    left, _, right = np.linalg.svd(vectors, full_matrices=False)
    return left @ right


def step_sizes(values: np.ndarray, rank: int, factor: float, batch_size: int) -> StepSizes:
    """The step sizes that a spectrum suggests."""
    after = values[rank] if rank < len(values) else 0.0
    gap = max(values[rank - 1] - after, GAP * values[rank - 1])
    return StepSizes(float(values[0]), float(gap), factor, batch_size)


def _check_rank(values: np.ndarray, rank: int) -> None:
    found = int(np.sum(values[:rank] > 1e-12 * max(values[0], TINY)))
    if found < rank:
        raise UnsupportedError(
            f"The first batch shows {found} direction(s) with any variance, and {rank} are asked for. Give a larger "
            "first batch, more n_frequencies, a narrower bandwidth, or ask for fewer components."
        )
