"""Functions of least loss on rows in memory: the exact kernel between all rows, and conjugate gradients for steps."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import device
from scipy import linalg

from latentviews._arrays import moved_to, namespace, to_numpy
from latentviews.core import streams
from latentviews.core.kernels.base import UnitHeight
from latentviews.stochastic.expansions import Expansion

MOST = 2**28  # kernel values that are kept, half of all between the rows: a gigabyte
TILE = 512  # rows and columns of a tile, which the processor's cache holds
EXACT = 2048  # rows up to which kernel values have double precision
NEAR = 384  # rows that the near inverse is made from
BATCH = 2**22  # kernel values that are made at a time
TOL = 1e-5  # the share of the first squared gradient at which steps end
STEPS = 50  # and how many there are at most
TRIES = 6  # of a length on a line


@dataclass(frozen=True, eq=False)
class Sections:
    """One block of features for an `Expansion`: the kernel at height one between rows and those that are kept."""

    kernel: Any
    rows: Any  # (m, d)

    def __call__(self, x: Any, block: int) -> Any:
        """The features of rows, (n, m)."""
        if not namespace(x).isdtype(x.dtype, "real floating"):
            x = namespace(x).asarray(x, dtype=self.rows.dtype, device=device(x))
        return UnitHeight(self.kernel).gram(x, moved_to(self.rows, x))


@dataclass(frozen=True, eq=False)
class DirectFit:
    """A function of least loss and its constant."""

    functions: Expansion
    intercept: Any  # (outputs,)

    def __call__(self, x: Any) -> Any:
        """The scores of rows, (n, outputs)."""
        size = max(1, BATCH // self.functions.coefficients[0].shape[0])
        parts = [self.functions(rows) for rows, _ in streams.batches(x, size=size)]
        return namespace(x).concat(parts, axis=0) + moved_to(self.intercept, parts[0])


def fits_in_memory(n_rows: int) -> bool:
    """Whether the kernel between so many rows may be kept."""
    return n_rows * (n_rows + 1) // 2 <= MOST


def least_ridge(n_rows: int) -> float:
    """The least λ that is not lost in rounding."""
    return 10 * n_rows * float(np.finfo(precision(n_rows)).eps)


def precision(n_rows: int) -> Any:
    """What kernel values are kept in."""
    return np.float64 if n_rows <= EXACT else np.float32


def _middle(x: np.ndarray) -> np.ndarray:
    """Where differences between most rows keep most digits: an outlier does not move it, as it does the mean."""
    return np.median(x, axis=0)


class KernelMatrix:
    """The kernel at height one between all rows, of which the lower half is kept in tiles."""

    def __init__(self, kernel: Any, x: np.ndarray):
        unit, dtype = UnitHeight(kernel), precision(len(x))
        rows = (x - _middle(x)).astype(dtype)
        parts = [slice(start, start + TILE) for start in range(0, len(x), TILE)]
        self.tiles = [(i, j, unit.gram(rows[i], rows[j])) for i in parts for j in parts if j.start <= i.start]
        self.dtype, self.means = dtype, np.zeros((1, len(x)), dtype)
        self.means = self.times(np.full((1, len(x)), 1 / len(x), dtype))

    def times(self, vectors: np.ndarray) -> np.ndarray:
        """K v for every row v of ``vectors``, (r, n)."""
        total = np.zeros_like(vectors)
        for i, j, tile in self.tiles:
            for one, product in zip(vectors, total, strict=True):
                product[i] += tile @ one[j]
                if i is not j:
                    product[j] += one[i] @ tile
        return total

    def centred_times(self, vectors: np.ndarray) -> np.ndarray:
        """H K v with H = I − 11ᵀ/n, for vectors that sum to zero."""
        return _centred(self.times(vectors))


class NearInverse:
    """(H K H + λ)⁻¹, nearly: exact along eigenfunctions that some of the rows show, and one number elsewhere."""

    def __init__(self, kernel: Any, x: np.ndarray, ridge: float, dtype: Any, rng: np.random.Generator):
        some = rng.permutation(len(x))[:NEAR]
        rows, unit = x - _middle(x), UnitHeight(kernel)
        own, jitter = unit.gram(rows[some], rows[some]), 10 * np.finfo(dtype).eps * len(some)
        root = _root(own, jitter)
        way = linalg.solve_triangular(root, np.eye(len(some)), lower=True).T
        features = unit.gram(rows.astype(dtype), rows[some].astype(dtype)) @ way.astype(dtype)
        features -= features.mean(axis=0)
        values, vectors = np.linalg.eigh((features.T @ features).astype(float))
        seen = values > 10 * np.finfo(dtype).eps * values[-1]
        values, vectors = values[seen], vectors[:, seen]
        self.rest = float(ridge + (values[0] if len(some) < len(x) and len(values) else 0.0))
        self.vectors = (features @ (vectors / np.sqrt(values)).astype(dtype)).T
        self.damping = (1 / (values + ridge) - 1 / self.rest).astype(dtype)

    def times(self, vectors: np.ndarray) -> np.ndarray:
        """The product with every row of ``vectors``, (r, n)."""
        return np.stack([one / self.rest + (self.damping * (self.vectors @ one)) @ self.vectors for one in vectors])


def _root(gram: np.ndarray, jitter: float) -> np.ndarray:
    """The Cholesky root of a kernel matrix with a little on its diagonal: more where rounding makes it indefinite."""
    while True:
        try:
            return linalg.cholesky(gram + jitter * np.eye(len(gram)), lower=True)
        except linalg.LinAlgError:
            jitter *= 100
            if jitter > len(gram):  # of height one, its eigenvalues are less
                raise


class Point(NamedTuple):
    """A function Σ_i a_i (k(x_i, ·) − its mean) + c at the rows."""

    coefficients: np.ndarray  # a, (r, n), each row with sum zero
    values: np.ndarray  # of the sum at the rows, (r, n)
    constant: np.ndarray  # c, (r, 1)

    def plus(self, other: "Point", share: float) -> "Point":
        """The function and a share of another."""
        return Point(*(a + a.dtype.type(share) * b for a, b in zip(self, other, strict=True)))


@dataclass(frozen=True, eq=False)
class Objective:
    """Σ_i ℓ(f(x_i)) + wλ/2 ‖f − c‖², where w is the curvature of the loss.

    The scores of classes matter up to a number that is added to all, so that f has one output less than there are.
    """

    loss: Any
    targets: np.ndarray  # (n, outputs)
    contrasts: np.ndarray  # (r, outputs), orthonormal rows
    start: np.ndarray  # (outputs,)
    weight: float  # wλ

    def scores(self, at: Point) -> np.ndarray:
        """The scores of the rows, (n, outputs)."""
        return (self.contrasts.T @ (at.values + at.constant)).T + self.start

    def slope(self, at: Point) -> np.ndarray:
        """The derivative of every row's loss by f there, (r, n)."""
        return self.contrasts @ self.loss.gradient(self.scores(at), self.targets).T

    def along(self, at: Point, slope: np.ndarray, way: Point) -> float:
        """The derivative along another function."""
        loss = np.sum(slope * way.values) + np.sum(slope.sum(axis=1, keepdims=True) * way.constant)
        return float(loss + self.weight * np.sum(at.coefficients * way.values))


def least_loss(
    kernel: Any, x: np.ndarray, targets: np.ndarray, loss: Any, ridge: float, rng: np.random.Generator, report: Any
) -> tuple[DirectFit, int]:
    """The function of least Σ_i ℓ(f(x_i)) + wλ/2 ‖f‖² with a free constant, and the number of steps to it."""
    rows = to_numpy(x)
    matrix = KernelMatrix(kernel, rows)
    inverse = NearInverse(kernel, rows, ridge, matrix.dtype, rng)
    start, outputs = loss.constant(targets), targets.shape[1]
    contrasts = linalg.helmert(outputs) if loss.of_classes else np.eye(outputs)
    wanted, basis, origin = (a.astype(matrix.dtype) for a in (targets, contrasts, start))
    problem = Objective(loss, wanted, basis, origin, loss.curvature * ridge)
    found, steps = _conjugate_gradients(problem, matrix, inverse, report)
    coefficients = (contrasts.T @ found.coefficients).T
    shift = matrix.means @ coefficients  # the mean over the rows of Σ_i a_i k(x_i, ·)
    intercept = (contrasts.T @ found.constant)[:, 0] + start - shift[0]
    return DirectFit(Expansion(Sections(kernel, x), (coefficients.astype(float),)), intercept), steps


def _conjugate_gradients(
    problem: Objective, matrix: KernelMatrix, inverse: NearInverse, report: Callable[..., bool]
) -> tuple[Point, int]:
    """Preconditioned nonlinear conjugate gradients (Polak & Ribière), one product with the kernel matrix per step."""
    shape, curvature = (len(problem.contrasts), len(problem.targets)), problem.loss.curvature
    at = Point(np.zeros(shape, matrix.dtype), np.zeros(shape, matrix.dtype), np.zeros((shape[0], 1), matrix.dtype))
    slope = problem.slope(at)
    way, (before, old_slope), sizes = at, (at, slope), [np.inf]
    for step in range(STEPS):
        mean = slope.mean(axis=1, keepdims=True)
        downhill = _centred(inverse.times(mean - slope - problem.weight * at.coefficients)) / curvature
        fresh = Point(downhill, matrix.centred_times(downhill), -mean / curvature)
        sizes.append(-problem.along(at, slope, fresh))
        value = problem.loss.value(problem.scores(at), problem.targets)
        if sizes[-1] <= TOL * sizes[1] or report("step", step, -value):
            break
        way = fresh.plus(way, max(0.0, (sizes[-1] + problem.along(before, old_slope, fresh)) / sizes[-2]))
        before, old_slope = at, slope
        at, slope = _least_on_line(problem, at, slope, way)
    return at, step


def _least_on_line(problem: Objective, at: Point, slope: np.ndarray, way: Point) -> tuple[Point, np.ndarray]:
    """The best point from ``at`` along ``way`` and the slope there, by the secant method."""
    lengths, steepness = [0.0, 1.0], [problem.along(at, slope, way)]
    for _ in range(TRIES):
        new = at.plus(way, lengths[-1])
        slope = problem.slope(new)
        steepness.append(problem.along(new, slope, way))
        change = steepness[-1] - steepness[-2]
        if abs(steepness[-1]) <= 0.01 * abs(steepness[0]) or not change:
            break
        length = lengths[-1] - steepness[-1] * (lengths[-1] - lengths[-2]) / change
        lengths.append(float(np.clip(length, lengths[-1] / 10, 10 * lengths[-1])))
    return new, slope


def _centred(vectors: np.ndarray) -> np.ndarray:
    return vectors - vectors.mean(axis=1, keepdims=True)
