"""How many classes, by the rank of the views' dependence."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from latentviews._arrays import to_numpy
from latentviews._numbers import LARGEST, TINY, brief, far_unit, generator_of
from latentviews._parameters import AutoOr, NoneOr, Numbers
from latentviews._validation import UnsupportedError, check_count
from latentviews.core import streams
from latentviews.core.categories import chosen_codes
from latentviews.core.features.base import raw_vectors, tail_of
from latentviews.core.shuffles import PairedDirections, permuted_norms
from latentviews.core.tables import check_spaces, check_varying, read_table
from latentviews.core.views import Views, feature_prototypes, fit_views, fitting_maps, with_bandwidth

DIRECTIONS = 30  # leading feature directions of a view; dependence beyond them is below any noise
MANY_PAIRS, FEW_DIRECTIONS = 100, 10  # pairs from which on so few directions of either view are looked at
MANY = 1000  # features from which on products of fewer rows are taken instead
ROWS = 10_000  # rows that permutations are made of
WIDE = 2.0  # kernels so many times as wide are tried beside: a rare class shows better in them
HALVES = 4  # random halves of more than three views


Compared = tuple[Any, ...]  # two views, or groups of views as tuples; a third entry is the width of their kernels


@dataclass(frozen=True, eq=False, repr=False)
class RankTest:
    """The number of classes, and what it rests on: a spectrum and its null for every two views or groups of views.

    Keys are the numbers of two views, (0, 1); groups of views are tuples, (0, (1, 2)), and (0, 1, 2.0) are two views
    with kernels twice as wide.

    Attributes
    ----------
    n_components : int
    spectra : dict of arrays
        Singular values of the centred cross-covariance.
    nulls : dict of arrays
        The largest singular value under permutation, sorted.
    thresholds : dict of floats
        What a singular value must exceed to count.

    Examples
    --------
    >>> from latentviews import rank_test
    >>> from latentviews.datasets import make_multiview
    >>> test = rank_test(make_multiview(300, 2, random_state=0).X, random_state=0)
    >>> test.n_components, test.count((0, 1))  # k classes show in k - 1 singular values
    (2, 1)
    """

    n_components: int
    spectra: dict[Compared, np.ndarray]
    nulls: dict[Compared, np.ndarray]
    thresholds: dict[Compared, float]

    def __repr__(self) -> str:
        return brief(self)

    def __getstate__(self) -> dict[str, Any]:
        """What pickle and skops keep: pairs in place of dicts whose keys are no text."""
        return {name: list(part.items()) if isinstance(part, dict) else part for name, part in self.__dict__.items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({name: dict(part) if isinstance(part, list) else part for name, part in state.items()})

    @property
    def strongest(self) -> Compared:
        """The views, or groups of them, that show most classes, with most to spare."""
        limits = {pair: max(limit, TINY) for pair, limit in self.thresholds.items()}
        return max(self.spectra, key=lambda pair: (self.count(pair), self.spectra[pair][0] / limits[pair]))

    def count(self, pair: Compared) -> int:
        """Singular values of a pair above its threshold.

        Parameters
        ----------
        pair : a key of ``spectra``

        Returns
        -------
        int
        """
        return int(np.sum(self.spectra[pair] > self.thresholds[pair]))


def compared_name(pair: Compared, names: Sequence[str]) -> str:
    """A key of a `RankTest` in words."""
    sides = [[side] if isinstance(side, int) else side for side in pair[:2]]
    first, second = (" + ".join(names[t] for t in side) for side in sides)
    return f"{first} and {second}" + (f", kernels × {pair[2]:g}" if len(pair) > 2 else "")


class _TableReader(BaseEstimator):
    """Holds what `read_table` asks of an estimator."""

    _fewest_views = 2  # that have a dependence
    _kernels_by_dtype = True

    def __init__(self, views: Any = None, kernel: Any = None, features: Any = None):
        self.views = views
        self.kernel = kernel
        self.features = features


def rank_test(
    X: Any,
    *,
    views: Sequence[Any] | None = None,
    kernel: Any = None,
    features: Any = None,
    point_masses: Any = "auto",
    level: float = 0.05,
    n_permutations: int = 99,
    random_state: Any = None,
) -> RankTest:
    r"""Count the directions in which views depend on each other: k classes give k - 1, the rank of centred C_st.

    .. math:: \hat k = 1 + \max_{st} \#\{j : \sigma_j(\hat C_{st}) > c_{st}\}

    That is the rank which Kasahara & Shimotsu (2014) test on views cut into bins. A singular value of a pair's centred
    cross-covariance counts if it exceeds the largest one of pairs whose rows are permuted, at a ``level`` that holds
    for all pairs together. Pairs are two views, or groups of views side by side (one against two, random halves of
    more), which show many classes; kernels twice as wide show rare ones. The answer is one more than the highest count.
    Views that depend on each other *inside* classes add to it, so it is an upper guess where that is in doubt.

    Parameters
    ----------
    X : array or DataFrame of shape (n_samples, n_features), or list of 2-D arrays, one per view
    views, kernel, features, point_masses, random_state
        As in `MultiViewMixture`.
    level : float, default=0.05
    n_permutations : int, default=99

    Returns
    -------
    RankTest
        The number of classes, and the spectra and nulls that it rests on.

    Examples
    --------
    >>> from latentviews.datasets import make_multiview
    >>> X, _, _ = make_multiview(2000, 3, random_state=0)
    >>> rank_test(X, random_state=0).n_components
    3
    """
    if not isinstance(level, float) or not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1; got {level!r}.")
    return table_rank(X, views, kernel, features, point_masses, level, n_permutations, random_state)


def table_rank(
    X: Any,
    views: Sequence[Any] | None,
    kernel: Any,
    features: Any,
    point_masses: Any,
    level: float,
    n_permutations: int,
    random_state: Any,
    n_directions: int = DIRECTIONS,
) -> RankTest:
    """`rank_test` in so many directions of a view; fewer are enough where classes are few."""
    rng = generator_of(random_state)
    reader = _TableReader(views, kernel, features)
    data, columns = read_table(reader, X, reset=True)
    rows = to_numpy(streams.sample(data, ROWS, rng)[0])
    check_varying(rows, columns)
    names = getattr(reader, "feature_names_in_", None)
    NoneOr(AutoOr(Numbers())).check("point_masses", point_masses)
    codes, blocks = chosen_codes(reader), list(range(len(columns)))
    maps = feature_prototypes(kernel, features, None, columns, names, codes)
    check_spaces(data if streams.is_array(data) else rows, columns, maps, getattr(reader, "feature_names_in_", None))
    maps = fitting_maps(maps, rows, columns, blocks, point_masses, scales=False)
    fitted = fit_views(rows, columns, maps, rng, blocks)
    return dependence_rank(rows, fitted, rng, level, n_permutations, n_directions=n_directions)


def dependence_rank(
    rows: np.ndarray,
    views: Views,
    rng: np.random.Generator,
    level: float = 0.05,
    n_permutations: int = 99,
    units: Sequence[tuple[int, ...]] | None = None,
    among: Iterable[tuple[int, int]] | None = None,
    n_directions: int = DIRECTIONS,
) -> RankTest:
    """`rank_test` for fitted feature maps; ``units`` are views that stay together in groups, by default each its own.

    ``among`` names the pairs of views that there is a question of; then no groups are compared. Fewer ``n_directions``
    of a view are enough to ask whether there is one class or more.

    Every draw permutes all views at once, and the largest singular value of any pair, each in units of its own null,
    is what one value must exceed (Westfall & Young 1993): the level holds for all pairs together.
    """
    size = max(check_count("n_permutations", n_permutations), int(np.ceil(1 / level)) - 1)
    table = to_numpy(streams.sample(rows, ROWS, rng)[0])
    units = [(t,) for t in range(len(views.columns))] if units is None else units
    pairs = combinations(range(len(views.columns)), 2) if among is None else among
    sides = _sides(table, views, list(pairs), _groups(units, rng) if among is None else [], n_directions)
    return _tested(sides, len(table), rng, level, size)


def directions_rank(
    directions: Sequence[np.ndarray], rng: np.random.Generator, level: float, n_permutations: int
) -> RankTest:
    """The same for views that are seen in their leading directions already, (n, d) each; NaN where one is missing."""
    numbers, widest = range(len(directions)), max(x.shape[1] for x in directions)
    pairs = [((s,), (t,)) for s, t in combinations(numbers, 2)]
    sides = _compared(directions, directions, [*pairs, *_groups([(t,) for t in numbers], rng)], widest)
    return _tested(sides, len(directions[0]), rng, level, n_permutations)


def _tested(
    sides: dict[Compared, PairedDirections], n_rows: int, rng: np.random.Generator, level: float, n_permutations: int
) -> RankTest:
    """The singular values of all that is compared, and what they must exceed."""
    if not sides:
        raise UnsupportedError("No two views occur in the same rows, so nothing is known of how they go together.")
    null = permuted_norms(list(sides.values()), [rng.permutation(n_rows) for _ in range(n_permutations)])
    limits = _limits(null, level)
    test = RankTest(
        1,
        {pair: _singular_values(side.first, side.second) for pair, side in sides.items()},
        dict(zip(sides, np.sort(null, axis=0).T, strict=True)),
        dict(zip(sides, limits.tolist(), strict=True)),
    )
    return replace(test, n_components=1 + max(test.count(pair) for pair in sides))


def _limits(null: np.ndarray, level: float) -> np.ndarray:
    """What a value must exceed for every column of null draws, at a level that holds for all columns together.

    Draws are put in units of the others', as a value is that was not drawn; else few draws of many columns seem less
    extreme than they are.
    """
    size = len(null)
    center, spread = null.mean(axis=0), null.std(axis=0) + TINY
    standard = (null - center) / spread
    shrink = np.sqrt(np.maximum(1 - standard**2 / (size - 1), TINY) * (size - 1) / size)  # without the draw itself
    highest = np.sort((standard / shrink).max(axis=1))
    return center + spread * highest[-max(int(level * (size + 1)), 1)]


def _groups(units: Sequence[tuple[int, ...]], rng: np.random.Generator) -> list[tuple[tuple[int, ...], ...]]:
    """Units in two groups: one against the two others, or some random halves of more."""
    if len(units) < 3:
        return []
    numbers = range(len(units))
    firsts = [[i] for i in numbers] if len(units) == 3 else [_half(len(units), rng) for _ in range(HALVES)]
    parts = [(first, [i for i in numbers if i not in first]) for first in firsts]
    return [tuple(tuple(sorted(t for i in part for t in units[i])) for part in both) for both in parts]


def _half(size: int, rng: np.random.Generator) -> list[int]:
    return rng.permutation(size)[: size // 2].tolist()


def _sides(
    table: np.ndarray,
    views: Views,
    pairs: Sequence[tuple[int, int]],
    groups: Sequence[tuple[tuple[int, ...], ...]],
    n_directions: int,
) -> dict[Compared, PairedDirections]:
    """What is compared: pairs of views and groups, at the kernels' own widths and at wider ones.

    Pairs of many views show nothing in wider kernels that groups do not, and are left out there; so are all but their
    leading directions where pairs are very many.
    """
    found: dict[Compared, PairedDirections] = {}
    singles = [((s,), (t,)) for s, t in pairs]
    for width in (1.0, WIDE):
        maps = views.features if width == 1 else _widened(table, views)
        if width != 1 and maps == views.features:
            break
        directions = [
            _directions(phi, table[:, cols], n_directions) for phi, cols in zip(maps, views.columns, strict=True)
        ]
        few = min(FEW_DIRECTIONS, n_directions) if len(singles) > MANY_PAIRS else n_directions
        leading = [x[:, :few] for x in directions]
        compared = [*singles, *groups] if width == 1 or len(singles) <= 3 else groups
        for pair, sides in _compared(leading, directions, compared, n_directions).items():
            found[pair if width == 1 else (*pair, width)] = sides
    return found


def _compared(
    leading: Sequence[np.ndarray],
    directions: Sequence[np.ndarray],
    compared: Iterable[tuple[tuple[int, ...], ...]],
    n_directions: int,
) -> dict[Compared, PairedDirections]:
    """Two views in their ``leading`` directions, or two groups of views in all of theirs, where they share rows."""
    found: dict[Compared, PairedDirections] = {}
    whole = [None if np.isnan(x[:, 0]).any() else x - x.mean(axis=0) for x in leading]
    for first, second in compared:
        every = leading if len(first) + len(second) == 2 else directions
        sides = _two_whole(whole, first, second) or _in_common(
            [every[t] for t in first], [every[t] for t in second], n_directions
        )
        if sides is not None:
            found[tuple(part[0] if len(part) == 1 else part for part in (first, second))] = sides
    return found


def _widened(table: np.ndarray, views: Views) -> tuple[Any, ...]:
    """The feature maps with wider kernels, where these have a width."""
    return tuple(_wide(phi, table[:, columns]) for phi, columns in zip(views.features, views.columns, strict=True))


def _wide(phi: Any, x: np.ndarray) -> Any:
    kernel = getattr(phi, "kernel_", None)
    if kernel is None or "bandwidth" not in kernel.get_params():
        return phi
    return with_bandwidth(phi, WIDE * kernel.bandwidth).fit(x[~np.isnan(x).any(axis=1)])


def _directions(phi: Any, x: np.ndarray, size: int) -> np.ndarray:
    """A view's features in their leading principal directions, (n, at most size); NaN where the view is missing."""
    here = ~np.isnan(x).any(axis=1)
    if not here.any():
        raise UnsupportedError(
            f"A view has no value in any of the {len(x)} rows in which classes are counted; leave it out, or add rows."
        )
    found = _leading_features(phi, x[here], size)
    found = found / far_unit(float(np.abs(found).max(initial=0.0)), LARGEST**0.5)  # whose fourth powers are taken
    directions = np.full((len(x), found.shape[1]), np.nan)
    directions[here] = found
    return directions


def _leading_features(phi: Any, x: np.ndarray, size: int) -> np.ndarray:
    """Centred features of rows in their leading principal directions; of bins, from the covariance of their cells."""
    raw, tail = raw_vectors(phi, x), tail_of(phi)
    if tail is None or not sparse.issparse(raw):
        return _leading(to_numpy(raw if tail is None else raw @ tail), size)
    mean = raw.sum(axis=0) @ tail / len(x)
    _, vectors = np.linalg.eigh(tail.T @ (raw.T @ raw @ tail) - len(x) * np.outer(mean, mean))
    leading = vectors[:, ::-1][:, :size]
    return raw @ (tail @ leading) - mean @ leading


def _two_whole(
    whole: Sequence[np.ndarray | None], first: Sequence[int], second: Sequence[int]
) -> PairedDirections | None:
    """The sides of two views that all rows have, centred once for all pairs; None for others."""
    here, there = whole[first[0]], whole[second[0]]
    return (
        None if len(first) + len(second) > 2 or here is None or there is None else PairedDirections(here, there, None)
    )


def _in_common(first: Sequence[np.ndarray], second: Sequence[np.ndarray], size: int) -> PairedDirections | None:
    """The directions of two groups of views in the rows that have all of them; None where there are no such rows."""
    kept = ~np.any([np.isnan(x[:, 0]) for x in (*first, *second)], axis=0)
    if kept.sum() < 2:
        return None
    every = bool(kept.all())
    a, b = (_side([x if every else x[kept] for x in side], size) for side in (first, second))
    return PairedDirections(a, b, None if every else kept)


def _side(views: Sequence[np.ndarray], size: int) -> np.ndarray:
    """The directions of a view, or those of a group of views side by side, none of which drowns the others."""
    if len(views) == 1:
        return views[0] - views[0].mean(axis=0)
    return _leading(np.hstack([x / np.sqrt((x.var(axis=0)).sum() + TINY) for x in views]), size)


def _leading(phi: np.ndarray, size: int) -> np.ndarray:
    """Centred features in their leading principal directions, (n, at most size)."""
    phi = phi - phi.mean(axis=0)
    if phi.shape[1] > max(len(phi), MANY):
        values, vectors = np.linalg.eigh(phi @ phi.T)
        return (vectors * np.sqrt(np.maximum(values, 0.0)))[:, ::-1][:, :size]
    _, vectors = np.linalg.eigh(phi.T @ phi)
    return phi @ vectors[:, ::-1][:, :size]


def _singular_values(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.linalg.svd(first.T @ second / len(first), compute_uv=False)
