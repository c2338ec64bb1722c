"""Whether the rows of a class look like several classes."""

from collections.abc import Sequence

import numpy as np

from latentviews._validation import UnsupportedError
from latentviews.core.kernels.base import Kernel
from latentviews.core.kernels.defaults import kernel_on
from latentviews.core.kernels.space import Space
from latentviews.core.selection import dependence_rank
from latentviews.core.tables import Columns
from latentviews.core.views import features_for, fit_views

CLASS_ROWS = 1000  # members of a class in a test: more would find what is too weak to matter
FEWEST_MEMBERS = 50  # and fewer would find nothing
LEVEL = 0.01  # the chance, for every class, of finding more than one where there is one
PERMUTATIONS = 99
DIRECTIONS = 6  # of a view, in which more than one class would show


def classes_within(
    rows: np.ndarray,
    columns: Columns,
    spaces: Sequence[Space | Kernel],
    posteriors: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """How many classes the rows of every class look like, (k,): `rank_test` on rows drawn by their posteriors.

    Zero where too few rows, or views that vary, are there to tell.
    """
    chances = posteriors * np.minimum(1.0, CLASS_ROWS / np.maximum(posteriors.sum(axis=0), 1.0))
    drawn = rng.random(posteriors.shape) < chances
    return np.array([_classes(rows[members], columns, spaces, rng) for members in drawn.T])


def _classes(members: np.ndarray, columns: Columns, spaces: Sequence[Space | Kernel], rng: np.random.Generator) -> int:
    varying = [t for t, view in enumerate(columns) if _varies(members[:, view])]
    if len(varying) < 2:
        return 0
    views = tuple(columns[t] for t in varying)
    kernels = [_kernel(spaces[t], len(columns[t])) for t in varying]
    maps = [features_for(kernel, len(view)) for kernel, view in zip(kernels, views, strict=True)]
    try:
        fitted = fit_views(members, views, maps, rng, varying)
        return dependence_rank(members, fitted, rng, LEVEL, PERMUTATIONS, n_directions=DIRECTIONS).n_components
    except UnsupportedError:
        return 0


def _kernel(space: Space | Kernel, n_columns: int) -> Kernel:
    """The kernel of a view: of objects their own."""
    return space if isinstance(space, Kernel) else kernel_on(space, "silverman" if n_columns == 1 else "median")


def _varies(x: np.ndarray) -> bool:
    """Whether a view has enough rows, and all of its columns several values."""
    x = x[~np.isnan(x).any(axis=1)]
    return len(x) >= FEWEST_MEMBERS and bool(np.ptp(x, axis=0).all())
