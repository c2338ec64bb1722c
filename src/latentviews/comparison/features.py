"""Rows as feature vectors for a test, and the kernels that are tried where nobody names one."""

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj

from latentviews._arrays import is_foreign, namespace, to_numpy
from latentviews._numbers import LARGEST, TINY
from latentviews._validation import as_numbers, check_ability, check_count, check_squares
from latentviews.core.checked import refuse_outside
from latentviews.core.features.landmarks import LandmarkFeatures
from latentviews.core.kernels.base import Kernel, UnitHeight
from latentviews.core.kernels.real import Gaussian
from latentviews.core.kernels.spaces import space_of
from latentviews.core.streams import batches, is_array, is_empty, sample

LANDMARKS = 300  # the most features per row: samples of no more different rows see the kernel exactly, whatever it is
LANDMARK_ROWS = 10_000  # landmarks and bandwidths are sought among at most this many rows
WEAKEST = 1e-6  # of a whitened kernel: directions with so small a share of its trace are lost in the penalty
FEWEST_ROWS = 4  # fewer have fewer than twenty permutations, and no test at 5 % can reject
PENALTY = 0.01  # of the covariance of whitened kernels
# bandwidths that two samples are compared with, in median distances, and their weights
PLAIN = {2.0: 0.41}  # sees means, of heavy tails too
SCALES = {8.0: 0.41, 0.12: 0.03, 0.06: 0.03}  # whitened: the widest sees means alone, the others small shapes
CURVES = {1.0: 0.12}  # whitened, less what is linear: spreads and correlations
TWO_SAMPLE_WEIGHTS = (*PLAIN.values(), *SCALES.values(), *CURVES.values())
WIDE, CURVED = 4.0, 2.0  # of independence: bandwidths that see lines, and curves less what is linear,
MIDDLE, FINE = 1.0, 0.4  # and whitened ones for what is finer
N_DEPENDENCE = 3
NO_CURVE = 1e-9  # directions with a smaller share of a kernel's variance are rounding, as all are of two values


def as_rows(name: str, values: Any) -> Any:
    """``values`` as finite rows (n, d) in their own library, enough of them for a test."""
    rows = finite_table(name, values)
    _refuse_few(name, rows.shape[0])
    return rows


def finite_table(name: str, values: Any) -> Any:
    """``values`` as finite rows (n, d) in their own library, whose squares are numbers."""
    rows = values if is_array_api_obj(values) and is_foreign(values) else as_numbers(name, values, missing=False)
    rows = rows[:, None] if rows.ndim == 1 else rows
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise ValueError(f"{name} needs shape (n,) or (n, d); got {tuple(rows.shape)}.")
    xp = namespace(rows)
    if not bool(xp.all(xp.isfinite(rows))):
        raise ValueError(f"{name} contains NaN or infinity; pass the rows that are complete.")
    if rows.shape[0] and float(xp.max(xp.abs(rows))) > LARGEST:
        check_squares(to_numpy(rows), range(rows.shape[1]), name)
    return rows


def _refuse_few(name: str, n_rows: int) -> None:
    if n_rows < FEWEST_ROWS:
        raise ValueError(f"A comparison needs at least {FEWEST_ROWS} rows; {name} has {n_rows}.")


class RowsInBatches:
    """A stream of a test, whose batches are checked as they pass: finite numbers, and as many columns as the first."""

    def __init__(self, name: str, data: Any):
        self.name = name
        self.data = data

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        n_columns = None
        for batch, weights in batches(self.data):
            if is_empty(batch):
                continue
            rows = finite_table(self.name, batch)
            n_columns = rows.shape[1] if n_columns is None else n_columns
            if rows.shape[1] != n_columns:
                raise ValueError(
                    f"The batches of {self.name} need the same columns; got {n_columns} and {rows.shape[1]}."
                )
            yield rows, weights


def rows_or_batches(name: str, values: Any) -> Any:
    """Rows that are checked, now or, of a stream, as they pass."""
    if is_stream(values) and not isinstance(values, Iterable):
        raise TypeError(f"{name} must be an array or an iterable of batches; got {values!r}.")
    return RowsInBatches(name, values) if is_stream(values) else as_rows(name, values)


def check_same_names(first: Any, second: Any) -> None:
    """Refuse two data frames whose columns have other names, or another order."""
    names = [list(getattr(table, "columns", ())) for table in (first, second)]
    if all(names) and names[0] != names[1]:
        raise ValueError(f"Both samples need the same columns in the same order; got {names[0]} and {names[1]}.")


def is_stream(values: Any) -> bool:
    """Whether ``values`` is an iterable of batches rather than an array, a table or a list of numbers."""
    if is_array(values) or isinstance(values, str | bytes):
        return False
    if not isinstance(values, list | tuple):
        return True
    return len(values) > 0 and is_array(values[0]) and len(getattr(values[0], "shape", ())) == 2


def shared_landmarks(n_landmarks: int, n_kernels: int) -> int:
    """The features of every kernel, where several kernels share those that there may be."""
    check_count("n_landmarks", n_landmarks)
    return n_landmarks if n_kernels == 1 else min(n_landmarks, max(n_landmarks // n_kernels, 20))


def check_kernel(kernel: Any) -> Kernel:
    """A sentence where a kernel is none."""
    if isinstance(kernel, type) or not hasattr(kernel, "gram"):
        raise TypeError(f"kernel must be a Kernel, such as Gaussian(); got {kernel!r}.")
    return check_ability("kernel", kernel, "gram")


def middle_gaussian(rows: np.ndarray) -> Gaussian:
    """The Gaussian of the median distance of rows in standard deviations of their columns."""
    spread = rows.std(axis=0)
    varies = spread > 0
    lost = np.flatnonzero(~varies & (np.ptp(rows, axis=0) > 0))
    if len(lost):
        raise ValueError(
            f"Column {lost[0]} varies by {np.ptp(rows[:, lost[0]]):.3g}, whose square is no number; scale the column."
        )
    if not varies.any():
        raise ValueError(f"All {len(rows)} rows are the same, so there is nothing to compare; take columns that vary.")
    units = np.where(varies, spread, 1.0)
    middle = Gaussian("median").adapt(rows[:, varies] / units[varies]).bandwidth
    return Gaussian(units * float(np.ravel(middle)[0]))


@dataclass(frozen=True, eq=False)
class FeatureKernel:
    """A kernel by its features on some rows, turned or divided there: φ(x)ᵀ φ(y)."""

    kernel: Kernel
    features: LandmarkFeatures = field(repr=False)

    def gram(self, x: Any, y: Any) -> Any:
        """The matrix of values."""
        return self.features.transform(x) @ self.features.transform(y).T


class WhitenedKernel(FeatureKernel):
    r"""A kernel whose features φ are divided by their spread on some rows: φ(x)ᵀ (Σ + λI)⁻¹ φ(y).

    A wide kernel sees means first, then spreads and correlations, each a hundred times less clearly; whitened it sees
    them all. Distances of embeddings become Fisher's discriminant (Harchaoui, Bach & Moulines 2008), and HSIC the
    normalised one (Fukumizu, Gretton, Sun & Schölkopf 2008).
    """


class CurvedKernel(FeatureKernel):
    """A kernel less what is linear: functions φ(x)ᵀ a that are not correlated with any column.

    Of a wide kernel those are squares and products of columns first. A ring or a common spread is a relation of squares
    alone, a parabola one of squares with a line; in the kernel itself the line is a hundred times as large.
    """


def curved(kernel: Kernel, rows: np.ndarray, n_landmarks: int) -> CurvedKernel:
    """A kernel without the directions of its features that go with columns of the rows."""
    features = _features_on(kernel, rows, n_landmarks)
    phi = features.transform(rows)
    phi = phi - phi.mean(axis=0)
    columns = (rows - rows.mean(axis=0)) / np.maximum(rows.std(axis=0), TINY)
    products = phi.T @ columns
    along, sizes, _ = np.linalg.svd(products, full_matrices=products.shape[1] < len(products))  # all directions of φ
    bent = along[:, int(np.sum(sizes > NO_CURVE * max(sizes.max(), TINY))) :]
    _, spreads, directions = np.linalg.svd(phi @ bent, full_matrices=False)
    bent = bent @ directions[spreads**2 > NO_CURVE * np.sum(phi**2)].T
    features.tail_ = features.tail_ @ (bent if bent.size else np.zeros((len(along), 1)))
    return CurvedKernel(kernel, features)


def _features_on(kernel: Any, rows: np.ndarray, n_landmarks: int) -> LandmarkFeatures:
    """Features of a kernel on the rows, to be turned or divided."""
    if isinstance(kernel, FeatureKernel):
        return copy(kernel.features)
    return LandmarkFeatures(UnitHeight(kernel), n_landmarks, tol=WEAKEST, random_state=0).fit(rows)


def whitened(kernel: Any, rows: np.ndarray, n_landmarks: int) -> WhitenedKernel:
    """A kernel whitened on the rows."""
    features = _features_on(kernel, rows, n_landmarks)
    phi = features.transform(rows)
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(phi, rowvar=False, bias=True)))
    features.tail_ = features.tail_ @ (vectors / np.sqrt(np.maximum(values, 0.0) + PENALTY))
    return WhitenedKernel(kernel, features)


def several_kernels(rows: np.ndarray, n_landmarks: int) -> list[Any]:
    """The kernels that are tried where none is named: a Gaussian, others whitened, and one for curves."""
    middle = np.asarray(middle_gaussian(rows).bandwidth)
    plain = [UnitHeight(Gaussian(middle * scale)) for scale in PLAIN]
    wide_to_narrow = [Gaussian(middle * scale) for scale in SCALES]
    bent = [curved(Gaussian(middle * scale), rows, n_landmarks) for scale in CURVES]
    return plain + [whitened(kernel, rows, n_landmarks) for kernel in (*wide_to_narrow, *bent)]


def dependence_kernels(rows: np.ndarray, n_landmarks: int, *, of_pair: bool) -> list[Any]:
    """The kernels of a view that are tried where none is named: a wide Gaussian, and others for curves and waves.

    Of a pair of views one less what is linear sees curves; of more, where not all combinations are tried, one
    that sees lines and curves alike.
    """
    middle = np.asarray(middle_gaussian(rows).bandwidth)
    wide, fine = Gaussian(middle * WIDE), whitened(Gaussian(middle * FINE), rows, n_landmarks)
    if of_pair:
        return [UnitHeight(wide), curved(Gaussian(middle * CURVED), rows, n_landmarks), fine]
    return [UnitHeight(wide), whitened(Gaussian(middle * MIDDLE), rows, n_landmarks), fine]


def kernels_to_try(kernel: Any, some: np.ndarray, n_landmarks: int) -> list[Any]:
    """One kernel or several, their rules resolved on ``some`` rows; Gaussians of several scales where none is named."""
    if kernel is None:
        return several_kernels(some, n_landmarks)
    several = list(kernel) if isinstance(kernel, Sequence) and not isinstance(kernel, str) else [kernel]
    if not several:
        raise ValueError("kernel is one kernel or a list of those to try; got an empty list.")
    return [adapted(check_kernel(one), some) for one in several]


def adapted(kernel: Kernel, some: np.ndarray) -> Kernel:
    """The kernel, its rules resolved on ``some`` rows; refused where its fourth power, as tests take it, is none."""
    kernel = kernel.adapt(some)
    with np.errstate(over="ignore", invalid="ignore"):
        height = float(np.max(to_numpy(kernel.diagonal(some))))
    if not height < LARGEST**0.5:
        raise ValueError(
            f"{kernel!r} is {height:.3g} on these rows, too high for its powers to be numbers; widen it, or scale the "
            "columns."
        )
    return kernel


def some_rows(rows: Any, rng: np.random.Generator) -> np.ndarray:
    """Rows to seek landmarks among, in an order that forgets which sample a row is from."""
    if not is_array(rows):
        found = to_numpy(sample(rows, LANDMARK_ROWS, rng)[0])
        _refuse_few(getattr(rows, "name", "a stream"), len(found))
        return found[rng.permutation(len(found))]
    return to_numpy(rows)[rng.permutation(rows.shape[0])[:LANDMARK_ROWS]]


def fitted_map(kernel: Any, some: np.ndarray, n_landmarks: int, rng: np.random.Generator) -> LandmarkFeatures:
    """A feature map of the kernel, from landmarks among some rows; of a kernel by features those."""
    check_count("n_landmarks", n_landmarks)
    if isinstance(kernel, FeatureKernel):
        return kernel.features
    return LandmarkFeatures(kernel, n_landmarks, random_state=int(rng.integers(2**31))).fit(some)


def mapped(phi: LandmarkFeatures, rows: Any) -> Any:
    """The feature vectors of the rows, where they are."""
    _check_inside(phi, rows)
    return namespace(rows).concat([phi.transform(batch) for batch, _ in batches(rows)])


def _check_inside(kernel: Any, rows: Any) -> None:
    """Refuse values outside the space of a kernel or its map."""
    space = space_of(kernel)
    refuse_outside(rows, {} if space is None else {j: space.column(j) for j in range(rows.shape[1])})


def block_sums(squares: Any, first: Sequence[Any], second: Sequence[Any]) -> np.ndarray:
    """Sums of every matrix (…, D, E) over the blocks of two lists of features."""
    starts = [np.cumsum([0, *(phi.shape[-1] for phi in own[:-1])]) for own in (first, second)]
    return np.add.reduceat(np.add.reduceat(to_numpy(squares), starts[0], axis=-2), starts[1], axis=-1)
