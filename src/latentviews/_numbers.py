"""Small mathematics that many modules need."""

import math
from functools import reduce
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from scipy import fft, linalg

TINY = float(np.finfo(float).tiny)
LINE = 90  # characters of a value that a record shows in full
LARGEST = 1e150  # values beyond have squares that overflow
FAR = 1e30  # sizes beyond, and below one over it, have a unit of their own
FEW_COLUMNS = 4  # of long tables, along which loops cost more than sums
SKETCH = 256  # random vectors, whose products span a matrix of lower rank
MORE = 10  # random vectors than singular ones that are wanted
FEW_OF_MANY = 10  # times as many rows and columns, and it pays to ask for some singular vectors only
SETTLED = 1e-13  # of the first singular value: rounding
NORMAL_QUARTILES = 1.349  # from the first quartile to the third of a normal law, in standard deviations


def as_shares(values: np.ndarray, axis: int | None = None) -> np.ndarray:
    """Nonnegative values over their sum, all together or along an axis; zeros stay zeros where there is nothing."""
    return values / np.maximum(values.sum(axis=axis, keepdims=True), TINY)


def column_sums(values: Any) -> Any:
    """The sums of few long columns (n, k): of NumPy's, a product is ten times as fast as a sum along the first axis."""
    if isinstance(values, np.ndarray):
        return np.ones(len(values)) @ values
    return array_namespace(values).sum(values, axis=0)


def row_sums(values: Any) -> Any:
    """The sums of the short rows of a long table (n, k), by a product for the same reason."""
    if isinstance(values, np.ndarray):
        return values @ np.ones(values.shape[1], dtype=values.dtype)
    return values @ array_namespace(values).ones_like(values[0, :])


def scaled_columns(values: Any, factors: Any) -> Any:
    """The columns of a long table (n, k) times a factor each: where they are few, a product is quicker, too."""
    if isinstance(values, np.ndarray) and values.shape[1] <= FEW_COLUMNS:
        return values @ np.diag(factors)
    return values * factors


def at_least(values: Any, low: float) -> Any:
    """The values, none below ``low``; NumPy's are changed in place."""
    if isinstance(values, np.ndarray):
        return np.maximum(values, low, out=values)
    return array_namespace(values).clip(values, low, None)


def where_present(values: Any, present: Any) -> Any:
    """The rows (n, m) that are present, and zeros in the place of others."""
    return array_namespace(values).where(present[:, None], values, 0.0)


def row_shares(n_rows: int, weights: np.ndarray | None) -> np.ndarray:
    """The shares of rows in a mean: equal ones, or in proportion to their weights."""
    return np.full(n_rows, 1 / n_rows) if weights is None else weights / weights.sum()


def posteriors_of(log_joint: Any) -> Any:
    """P(h | row) from log p(row, h), over the last axis; equal where a row can be of no class at all.

    The largest is taken away before anything is added: of rows far away, logs are so large that log k is lost in them.
    """
    xp = array_namespace(log_joint)
    largest = _largest(log_joint)[..., None]
    shares = xp.exp(xp.where(largest == -np.inf, 0.0, log_joint) - xp.where(largest == -np.inf, 0.0, largest))
    return shares / (shares @ xp.ones_like(shares[0, ...]))[..., None] if shares.ndim == 2 else as_shares(shares, -1)


def _largest(values: Any) -> Any:
    """The largest along the last axis: column after column, which is faster where these are few."""
    columns = [values[..., h] for h in range(values.shape[-1])]
    return reduce(array_namespace(values).maximum, columns)


def log_of_sums(log_joint: Any) -> Any:
    """Log Σ_h p(row, h) from log p(row, h), over the last axis, in the library of the logs."""
    xp = array_namespace(log_joint)
    largest = _largest(log_joint)
    finite = xp.where(largest == -np.inf, 0.0, largest)
    with np.errstate(divide="ignore"):
        return finite + xp.log(xp.sum(xp.exp(log_joint - finite[..., None]), axis=-1))


def standardised(x: np.ndarray, center: np.ndarray | float, scale: np.ndarray | float) -> np.ndarray:
    """(x − center) / scale, cut where squares would no longer be numbers: so far away, all is equally far."""
    with np.errstate(over="ignore"):
        return np.clip((x - center) / scale, -LARGEST, LARGEST)


def log_cauchy(x: np.ndarray, center: np.ndarray | float, scale: np.ndarray | float) -> np.ndarray:
    """The log of the Cauchy density, at any distance."""
    return -np.log(np.pi * np.asarray(scale)) - np.log1p(standardised(x, center, scale) ** 2)


def generator_of(random_state: Any, name: str = "random_state") -> np.random.Generator:
    """A generator from a seed, or one that is given."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"{name} must be None, a nonnegative integer or a random generator of NumPy; got {random_state!r:.60}."
        ) from error


def drawn_labels(chances: np.ndarray, rng: np.random.Generator, shape: tuple[int, ...] = ()) -> np.ndarray:
    """Labels drawn by probabilities in the last axis; ``shape`` (before the others) asks for several."""
    below = np.cumsum(chances, axis=-1) < rng.random((*shape, *chances.shape[:-1], 1))
    return np.minimum(below.sum(axis=-1), chances.shape[-1] - 1)


def size_of(values: np.ndarray) -> float:
    """The root of the sum of all squares, which may be beyond the range of numbers themselves."""
    return float(linalg.norm(values.ravel(), check_finite=False))  # BLAS scales vectors


def thin_svd(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The singular value decomposition without zeros; by the slower algorithm where the quick one does not converge."""
    try:
        return np.linalg.svd(matrix, full_matrices=False)
    except np.linalg.LinAlgError:
        return linalg.svd(matrix, full_matrices=False, lapack_driver="gesvd")


def sketched_svd(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`thin_svd`, of a large matrix by its products with random vectors where these span all of it but rounding.

    A product of few rows has no more singular values than rows (Halko, Martinsson & Tropp 2011, algorithm 4.1).
    """
    sketch = _sketched(matrix) if min(matrix.shape) > 2 * SKETCH else None
    if sketch is None:
        return thin_svd(matrix)
    u, values, vt = thin_svd(sketch[1])
    return sketch[0] @ u, values, vt


def _sketched(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """An orthonormal basis of few vectors and the matrix inside it; None where these leave more than rounding out."""
    basis, _ = np.linalg.qr(matrix @ np.random.default_rng(0).normal(size=(matrix.shape[1], SKETCH)))
    inside = basis.T @ matrix
    return None if size_of(matrix - basis @ inside) > 1e-13 * size_of(inside) else (basis, inside)


def leading_svd(matrix: np.ndarray, rank: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`thin_svd` cut to the first ``rank``; uncut where the matrix is small, or where they do not settle soon.

    In the span of random vectors and of their products with the matrix and back, which grows until nothing but rounding
    is left (Musco & Musco 2015, algorithm 2).
    """
    size = rank + MORE
    if min(matrix.shape) < FEW_OF_MANY * size:
        return thin_svd(matrix)
    basis, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(matrix.shape[1], size)))
    images = matrix @ basis
    while True:
        left, values, right = thin_svd(images)
        u, leading, vt = left[:, :rank], values[:rank], right[:rank] @ basis.T
        if size_of(matrix.T @ u - leading * vt.T) <= SETTLED * values[0]:
            return u, leading, vt
        if 2 * (basis.shape[1] + size) > min(matrix.shape):
            return sketched_svd(matrix)  # a few rows have a long flat spectrum, with an end
        more = _orthonormal_beside(basis, matrix.T @ images[:, -size:])
        basis, images = np.hstack([basis, more]), np.hstack([images, matrix @ more])


def _orthonormal_beside(basis: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Orthonormal vectors for what others add to a basis, twice over, since rounding leaves some of it."""
    for _ in range(2):
        vectors, _ = np.linalg.qr(vectors - basis @ (basis.T @ vectors))
    return vectors


def singular_values(matrix: np.ndarray) -> np.ndarray:
    """All singular values; those of a large matrix that products with random vectors span end in zeros."""
    sketch = _sketched(matrix) if min(matrix.shape) > 2 * SKETCH else None
    if sketch is None:
        return np.linalg.svd(matrix, compute_uv=False)
    return np.pad(thin_svd(sketch[1])[1], (0, min(matrix.shape) - SKETCH))


def largest_singular_value(matrix: np.ndarray) -> float:
    """The norm of a matrix, by eigenvalues of the smaller of its products with itself: those of a norm are exact."""
    small = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    size = len(small)
    scale = float(np.abs(small).max()) if small.size else 0.0
    if not 0 < scale < np.inf:
        return scale
    small = small / scale
    return scale * float(np.sqrt(max(linalg.eigvalsh(small @ small.T, subset_by_index=[size - 1, size - 1])[0], 0.0)))


def effective_rows(total: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Kish's number of equal rows that say as much as weighted ones, (Σ w)² / Σ w², from the two sums."""
    return total**2 / np.maximum(squares, TINY)


def quartile_spread(x: np.ndarray) -> np.ndarray:
    """The spread of every column (n, d) that its quartiles tell, in standard deviations of a normal law."""
    return np.ptp(np.percentile(x, [25, 75], axis=0), axis=0) / NORMAL_QUARTILES


def thinned(rows: np.ndarray, most: int) -> np.ndarray:
    """At most so many rows, evenly spaced."""
    return rows[evenly(len(rows), most)]


def evenly(n_rows: int, most: int) -> np.ndarray:
    """The numbers of at most so many rows, evenly spaced from the first to the last."""
    return np.linspace(0, n_rows - 1, min(n_rows, most)).astype(int)


def ridge_solve(moment: np.ndarray, cross: np.ndarray, penalty: np.ndarray | float) -> np.ndarray:
    """(C + λ I)⁻¹ B, with one penalty λ or one per coordinate; the pseudo-inverse where λ is lost in rounding."""
    strength = np.broadcast_to(np.asarray(penalty, dtype=float), len(moment))
    held = moment + np.diag(strength)
    if strength.min() > 10 * np.finfo(float).eps * np.trace(moment) / len(moment):
        return np.linalg.solve(held, cross)
    return np.linalg.pinv(held, hermitian=True) @ cross


def smoothed_bins(mass: np.ndarray, width: np.ndarray | float, axis: int = 0, *, around: bool = False) -> np.ndarray:
    """Values on an even grid convolved with a Gaussian ``width`` grid points wide, never below zero.

    Nothing lies beyond the ends, unless the grid goes ``around`` a circle. Several widths are those of what remains
    without the axis.
    """
    size = mass.shape[axis]
    padded = size if around else 2 * size
    width = np.expand_dims(width, axis) if np.ndim(width) else width
    frequencies = np.moveaxis(np.expand_dims(2 * np.pi * fft.rfftfreq(padded), tuple(range(1, mass.ndim))), 0, axis)
    smooth = fft.irfft(fft.rfft(mass, padded, axis=axis) * np.exp(-0.5 * (frequencies * width) ** 2), padded, axis=axis)
    return np.maximum(np.take(smooth, range(size), axis=axis), 0.0)


def brief(record: Any) -> str:
    """A record in a line: what is large by its kind and size. Classes take it as their ``__repr__``."""
    shown = getattr(record, "__dataclass_fields__", {})
    names = getattr(record, "_fields", None) or [name for name, field in shown.items() if field.repr]
    return f"{type(record).__name__}({', '.join(f'{name}={_brief(getattr(record, name))}' for name in names)})"


def _brief(value: Any) -> str:
    text = " ".join(repr(value).split())
    if len(text) <= LINE:
        return text
    if isinstance(value, np.ndarray):
        return f"<array of {' × '.join(map(str, value.shape))}>"
    return f"<{type(value).__name__}{f' of {len(value)}' if isinstance(value, dict | list) else ''}>"


def far_unit(size: float, far: float = FAR) -> float:
    """A power of two to hold numbers over that are so large, or so small, that products of a few cannot be held."""
    near = 1 / far < size < far
    return 1.0 if near or size == 0 or not math.isfinite(size) else 2.0 ** round(math.log2(size))
