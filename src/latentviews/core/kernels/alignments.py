"""Gram matrices of time series and of images, for `Precomputed`."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

from latentviews._numbers import standardised, thinned
from latentviews._validation import check_count

STEPS = 1000  # of all series, or patches of all images, whose distances the median is of
BLOCK = 4_000_000  # entries of a matrix of distances between patches at a time


def global_alignment_gram(series: Sequence[Any], bandwidth: float | str = "median") -> np.ndarray:
    r"""The global alignment kernel between time series, which may differ in length (Cuturi 2011).

    .. math:: k(x, y) = \sum_{\text{alignments } a} \prod_{(i, j) \in a} \frac{e_{ij}}{2 - e_{ij}}, \qquad
              e_{ij} = \exp\Bigl(-\frac{\|x_i - y_j\|^2}{2 s^2}\Bigr)

    over its values at x and y alone. An alignment goes from the first steps to the last, and moves on in one series or
    in both; with these factors the sum over all of them is positive semidefinite. Series of very different lengths have
    little in common, whatever is in them.

    Parameters
    ----------
    series : sequence of arrays of shape (n_steps,) or (n_steps, d)
    bandwidth : float or "median", default="median"
        The scale s; "median" is half of the median distance between steps, times the root of the median length.

    Returns
    -------
    array of shape (n, n)
        With ones on the diagonal.

    Examples
    --------
    Three recordings each of 90 gestures of two kinds, which rise once or twice, at any pace:

    >>> import numpy as np
    >>> from latentviews import MultiViewMixture, Precomputed, global_alignment_gram
    >>> rng = np.random.default_rng(0)
    >>> kinds = np.repeat([0, 1], [54, 36])
    >>> def gesture(kind):
    ...     time = np.linspace(0, 1, rng.integers(15, 25)) ** rng.uniform(0.7, 1.4)
    ...     return np.sin((1 + kind) * np.pi * time) ** 2 + 0.2 * rng.normal(size=len(time))
    >>> kernels = [Precomputed(global_alignment_gram([gesture(kind) for kind in kinds])) for _ in range(3)]
    >>> gestures = np.tile(np.arange(90.0)[:, None], (1, 3))
    >>> model = MultiViewMixture(2, kernel=kernels, random_state=0).fit(gestures)
    >>> int((model.predict(gestures) == kinds).sum())
    90
    """
    if not isinstance(series, Iterable):
        raise TypeError(f"series is a list of series, one array of steps each; got {type(series).__name__}.")
    tables = [_as_steps(one, number) for number, one in enumerate(series)]
    if not tables:
        raise ValueError("global_alignment_gram takes a list of series, at least one; got none.")
    if len({table.shape[1] for table in tables}) != 1:
        raise ValueError(f"All series need as many columns; got {sorted({t.shape[1] for t in tables})}.")
    lengths = np.array([len(table) for table in tables])
    width = _width(bandwidth, np.concatenate(tables), float(np.sqrt(np.median(lengths))) / 2)
    padded = np.zeros((len(tables), lengths.max(), tables[0].shape[1]))
    for place, table in zip(padded, tables, strict=True):
        place[: len(table)] = table
    logs = _log_alignments(padded, lengths, width)
    return np.exp(logs - 0.5 * (np.diagonal(logs)[:, None] + np.diagonal(logs)))


def _log_alignments(padded: np.ndarray, lengths: np.ndarray, width: float) -> np.ndarray:
    """Log sums over all alignments of every pair of series (n, T, d), by steps (i, j) of all pairs at once."""
    n, longest = padded.shape[:2]
    nothing = np.full((n, n), -np.inf)
    above: list[np.ndarray] = [nothing] * longest
    found = np.empty((n, n))
    for i in range(longest):
        row: list[np.ndarray] = []
        for j in range(longest):
            halves = 0.5 * (standardised(padded[:, None, i], padded[None, :, j], width) ** 2).sum(axis=2)
            before = _before(row, above, i, j, nothing)
            row.append(before - halves - np.log(2 - np.exp(-halves)))
            ends = np.ix_(lengths == i + 1, lengths == j + 1)
            found[ends] = row[j][ends]
        above = row
    return found


def _before(row: list[np.ndarray], above: list[np.ndarray], i: int, j: int, nothing: np.ndarray) -> Any:
    """Log sums of the alignments that lead to step (i, j)."""
    if i == j == 0:
        return 0.0
    left, corner = (row[j - 1], above[j - 1]) if j else (nothing, nothing)
    return np.logaddexp(np.logaddexp(left, above[j]), corner)


def _as_steps(series: Any, number: int) -> np.ndarray:
    """A series as a table of steps."""
    numbers = _numbers(series)
    steps = numbers[:, None] if numbers.ndim == 1 else numbers
    if steps.ndim != 2 or not len(steps) or not np.isfinite(steps).all():
        raise ValueError(
            "A time series is an array of finite numbers of shape (n_steps,) or (n_steps, d), with at least one step; "
            f"number {number} is not: it has shape {numbers.shape}."
        )
    return steps


def _numbers(values: Any) -> np.ndarray:
    """Numbers as an array; NaN, which is refused, where they are none or make no array."""
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        pass
    try:
        return np.full(np.shape(np.asarray(values, dtype=object)), np.nan)
    except ValueError:  # arrays of several shapes
        return np.full(len(values), np.nan)


def _width(bandwidth: float | str, points: np.ndarray, times: float, name: str = "bandwidth") -> float:
    """A scale: a positive number, or so many times the median distance between points."""
    if isinstance(bandwidth, str) and bandwidth == "median":
        distances = pdist(thinned(points, STEPS))
        distances = distances[distances > 0]
        return times * float(np.median(distances)) if len(distances) else 1.0
    if isinstance(bandwidth, int | float | np.number) and np.isfinite(bandwidth) and bandwidth > 0:
        return float(bandwidth)
    raise ValueError(f'{name} must be a positive number or "median"; got {bandwidth!r}.')


def patch_gram(
    images: Any, size: int = 4, stride: int = 1, bandwidth: float | str = "median", reach: float = 2.0
) -> np.ndarray:
    r"""The match kernel between images: which patches they share, and where (Bo & Sminchisescu 2009).

    .. math:: k(I, J) = \sum_{p \in I} \sum_{q \in J} \exp\Bigl(-\frac{\|p - q\|^2}{2 s^2}\Bigr)
              \exp\Bigl(-\frac{\|z_p - z_q\|^2}{2 r^2}\Bigr)

    over its values at I and J alone, where p are the pixels of a patch and z_p is its corner. An image that is shifted
    by less than r pixels is still much like itself.

    Parameters
    ----------
    images : array of shape (n, height, width)
    size : int, default=4
        Pixels of a patch along each side.
    stride : int, default=1
        Pixels from a patch to the next. Larger ones are quicker, and notice shifts by less.
    bandwidth : float or "median", default="median"
        The scale s; "median" is half of the median distance between patches.
    reach : float, default=2.0
        The scale r, in pixels.

    Returns
    -------
    array of shape (n, n)
        With ones on the diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import patch_gram
    >>> cross, ring = np.zeros((2, 10, 10))
    >>> cross[4:6, 2:8] = cross[2:8, 4:6] = 1
    >>> ring[2:8, 2:8], ring[4:6, 4:6] = 1, 0
    >>> patch_gram([cross, np.roll(cross, 1, axis=1), ring]).round(2)[0]
    array([1.  , 0.92, 0.78])
    """
    pictures = _numbers(images)
    size, stride = check_count("size", size), check_count("stride", stride)
    if pictures.ndim != 3 or not len(pictures) or min(pictures.shape[1:]) < size or not np.isfinite(pictures).all():
        raise ValueError(
            "images is an array of finite numbers of shape (n, height, width), no side shorter than a patch of "
            f"{size}; got shape {pictures.shape}."
        )
    windows = np.lib.stride_tricks.sliding_window_view(pictures, (size, size), axis=(1, 2))[:, ::stride, ::stride]
    n, rows, columns = windows.shape[:3]
    corners = stride * np.stack(np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij"), axis=-1).reshape(-1, 2)
    patches = windows.reshape(n, rows * columns, size**2)
    scaled = patches / _width(bandwidth, patches.reshape(-1, size**2), 0.5)
    gram = _matches(scaled, corners / _width(reach, corners, 1.0, "reach"))
    heights = np.sqrt(np.diagonal(gram))
    return gram / np.outer(heights, heights)


def _matches(patches: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Sums of exp(-½ squared distances) over the patches (n, P, d) of every pair of images, nearby ones counting."""
    n, count, dim = patches.shape
    near = np.exp(-0.5 * ((corners[:, None] - corners[None, :]) ** 2).sum(axis=2))
    squares, flat = (patches**2).sum(axis=2), patches.reshape(-1, dim)
    gram, step = np.empty((n, n)), max(BLOCK // (count * len(flat)), 1)
    for start in range(0, n, step):
        some = slice(start, start + step)
        products = (patches[some].reshape(-1, dim) @ flat.T).reshape(-1, count, n, count)
        distances = squares[some][:, :, None, None] + squares[None, None] - 2 * products
        gram[some] = np.einsum("apbq,pq->ab", np.exp(-0.5 * np.maximum(distances, 0.0)), near)
    return (gram + gram.T) / 2
