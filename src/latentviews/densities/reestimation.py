"""Densities from posteriors: every class a weighted sample, every density with a bandwidth of its own."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from array_api_compat import is_array_api_obj
from sklearn.base import clone

from latentviews._arrays import (
    counts_there,
    in_doubles,
    in_library_of,
    in_one_library,
    namespace,
    take_columns,
    to_numpy,
)
from latentviews._numbers import TINY, as_shares, column_sums, effective_rows, where_present
from latentviews._validation import is_auto
from latentviews.core import streams
from latentviews.core.components import Components
from latentviews.core.embeddings import BinnedEmbedding
from latentviews.core.features.base import FeatureMap, raw_vectors
from latentviews.core.features.bins import BinnedFeatures, GridFeatures, linear_bins, uniform_grid
from latentviews.core.features.landmarks import FEW, LandmarkFeatures, carrying_landmarks, few_landmarks, many_landmarks
from latentviews.core.features.point_masses import PointMassFeatures, which_mass
from latentviews.core.kernels.bandwidths import finest
from latentviews.core.kernels.base import Kernel, column_factors
from latentviews.core.kernels.mixed import product_on, widened
from latentviews.core.kernels.product_space import ProductSpace
from latentviews.core.kernels.quadrature import Quadrature
from latentviews.core.moments import from_raw
from latentviews.core.point_masses import laws_in
from latentviews.core.streams import row_weights
from latentviews.core.views import Views, stack_block

HELD = 12  # numbers of a row and a view that posteriors take
WIDTHS = tuple(2 ** (i / 3) for i in range(-4, 4))  # bandwidths to choose from, over what the rule says


def density_maps(
    table: np.ndarray,
    views: Views,
    blocks: Sequence[int],
    posteriors: np.ndarray,
    bandwidth: Any,
    n_landmarks: int = FEW,
) -> Views:
    """The maps in which densities are gathered: grids for real columns, kernels as narrow as the classes for others.

    ``bandwidth`` is a number, a rule, "auto" for what the classes suggest, or None for the maps as they are. Densities
    of several columns are seen from ``n_landmarks``.
    """
    if bandwidth is None:
        return views
    maps: dict[int, Any] = {}
    for block in sorted(set(blocks)):
        x = stack_block(table, views.columns, blocks, block)
        present = ~np.isnan(x).any(axis=1)
        stacked = np.tile(posteriors, (len(x) // len(table), 1))[present]
        phi = views.features[list(blocks).index(block)]
        maps[block] = _density_map(phi, x[present], stacked, bandwidth, n_landmarks)
    return Views(views.columns, tuple(maps[block] for block in blocks))


def _density_map(phi: Any, x: np.ndarray, posteriors: np.ndarray, bandwidth: Any, n_landmarks: int) -> Any:
    if isinstance(phi, PointMassFeatures):
        off = which_mass(x[:, 0], phi.values) < 0
        return clone(phi).around(_density_map(phi.features_, x[off], posteriors[off], bandwidth, n_landmarks), 1.0)
    kernel = getattr(phi, "kernel_", None)
    if kernel is None or "bandwidth" not in kernel.get_params():
        return phi
    if isinstance(phi, BinnedFeatures):
        adaptive = is_auto(bandwidth)
        kernel = clone(kernel).set_params(bandwidth="isj" if adaptive else bandwidth).adapt(x)
        width = float(kernel.get_params()["bandwidth"])
        return GridFeatures(uniform_grid(x[:, 0], width, space=kernel.space), kernel, adaptive, finest(x[:, 0]))
    no_rule = isinstance(bandwidth, str) and bandwidth == "isj" and "isj" not in kernel.space.rules
    if is_auto(bandwidth) and kernel.space.bordered:  # too few landmarks would lose mass, and no shape is fitted after
        return many_landmarks(within_classes(kernel, x, posteriors), x, 0)
    if is_auto(bandwidth) or no_rule:
        return few_landmarks(within_classes(kernel, x, posteriors), x, 0, n_landmarks)
    told = clone(kernel).set_params(bandwidth=bandwidth)
    return carrying_landmarks(told, x, 0) if isinstance(bandwidth, str) else few_landmarks(told, x, 0, n_landmarks)


def within_classes(kernel: Kernel, x: np.ndarray, posteriors: np.ndarray) -> Kernel:
    """A kernel as narrow as the classes suggest; as it is where it has no bandwidth."""
    factors = column_factors(kernel)
    if factors:
        wider = cast(ProductSpace, kernel.space).widening(x, posteriors.sum() / posteriors.shape[1])
        own = [widened(within_classes(p.kernel, p.some(x), posteriors), f) for p, f in zip(factors, wider, strict=True)]
        return product_on(own, [part.places for part in factors])
    if kernel.space is None or "bandwidth" not in kernel.get_params():
        return kernel
    return clone(kernel).set_params(bandwidth=kernel.space.within_class_bandwidth(x, posteriors))


def in_landmarks(phi: Any) -> bool:
    """Whether densities of a view with this map are seen from landmarks, and not on a grid or in the map itself."""
    phi = phi.features_ if isinstance(phi, PointMassFeatures) else phi
    kernel = getattr(phi, "kernel_", None)
    narrowed = kernel is not None and "bandwidth" in kernel.get_params() and not isinstance(phi, BinnedFeatures)
    return narrowed or isinstance(phi, LandmarkFeatures)


def reestimate(
    data: Any,
    posteriors: Callable[..., np.ndarray] | np.ndarray | None,
    views: Views,
    blocks: Sequence[int],
    domains: Sequence[Quadrature | None],
    weights: np.ndarray | None = None,
) -> tuple[np.ndarray, list[Components]]:
    """Class weights and components as averages over all rows, weighted by their posteriors.

    ``posteriors`` is a function of a batch, (n, k) for data in one array, or None where they are the weights of a
    stream. ``weights`` are those of rows, or of rows in classes, (n, k), zero for a class that a row is known not to be
    in; only then is ``posteriors`` told which classes are left.
    """
    if posteriors is not None and not callable(posteriors):  # they pass along the rows as weights do
        weights = posteriors if weights is None else posteriors * weights[:, None]

    def row_sum(batch: Any, weight: Any) -> tuple[Any, ...]:
        table = batch if counts_there(batch) else to_numpy(batch)
        shares = in_doubles(_shares(posteriors, table, weight))
        xp, parts = namespace(table), zip(views.columns, views.features, strict=True)
        mass, squares = column_sums(shares), column_sums(shares * shares)
        if np.isnan(float(xp.sum(table))):
            sums = [weighted_sums(take_columns(table, columns), phi, shares) for columns, phi in parts]
        else:
            each = [(take_columns(table, columns), phi) for columns, phi in parts]
            sums = [(mass, squares, _transposed_product(raw_vectors(phi, x), shares)) for x, phi in each]
        return (mass, *(part for triple in sums for part in triple))

    size = streams.rows_at_once(views.numbers + HELD * len(views.columns), data)
    share, *sums = streams.total(data, row_sum, weights, size).sums
    components: dict[int, Components] = {}
    for block in sorted(set(blocks)):
        members = [t for t, b in enumerate(blocks) if b == block]
        every = [np.sum([sums[3 * t + i] for t in members], axis=0) for i in range(3)]
        mass, squares, raw = (_of_all_where_none(part, every[0]) for part in every)
        counts = effective_rows(mass, squares)  # that have the view
        vectors = from_raw(views, members[0], raw) / np.maximum(mass, TINY)
        components[block] = laws_in(views.features[members[0]], vectors, domains[members[0]], counts)
    return share / share.sum(), [components[block] for block in blocks]


def _of_all_where_none(sums: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Sums (..., k) over classes' rows, and over all rows for a class of which no row has the view."""
    return np.where(mass > TINY, sums, sums.sum(axis=-1, keepdims=True))


def _shares(posteriors: Any, table: Any, weight: Any) -> Any:
    """How much the rows of a batch count in every class, (n, k), where they are."""
    if not callable(posteriors):
        return in_library_of(weight, table)
    weight, allowed = row_weights(weight)
    shares = posteriors(table) if allowed is None else posteriors(table, allowed)
    return shares if weight is None else shares * in_library_of(weight, shares)[:, None]


def weighted_sums(x: Any, phi: FeatureMap, shares: Any) -> tuple[Any, Any, Any]:
    """The classes' mass over the rows that have a view, their squared shares, and their sums of raw vectors."""
    xp = namespace(x)
    present = ~xp.any(xp.isnan(x), axis=1)
    if not bool(xp.all(present)):
        x, shares = where_present(x, present), where_present(shares, present)
    return column_sums(shares), column_sums(shares * shares), _transposed_product(raw_vectors(phi, x), shares)


def _transposed_product(raw: Any, shares: Any) -> Any:
    """Σ_i raw_i ⊗ shares_i, (C, k)."""
    raw, shares = in_one_library([raw, shares])
    return (in_doubles(raw) if is_array_api_obj(raw) else raw).T @ shares


def held_out_bandwidths(
    view: BinnedEmbedding, x: np.ndarray, posteriors: np.ndarray, halves: tuple[np.ndarray, np.ndarray]
) -> BinnedEmbedding:
    """The components with the bandwidths under which held-out rows are likeliest, a class each.

    Tried are multiples of the components' own, the same everywhere or narrower where rows are many (Abramson 1982),
    which keeps edges sharp. Each half of the rows is judged by the other, whose best bandwidth is 2^(1/5) times that
    of all rows.
    """
    here = ~np.isnan(x)
    seen = [half[here[half]] for half in halves]
    parts = [linear_bins(x[rows], view.grid).T @ posteriors[rows] for rows in seen]
    floor = max(finest(x[here]), (view.grid[1] - view.grid[0]) / 2)
    choices = [(width, local) for width in WIDTHS for local in (False, True)]
    side_by_side = view.take(np.tile(np.arange(view.n_components), 2))
    weights, held = (np.concatenate(order, axis=1) for order in (parts, parts[::-1]))
    candidates: list[BinnedEmbedding] = []
    for width in WIDTHS:
        bandwidths = np.maximum(2**0.2 * width * side_by_side.bandwidths, floor)
        even = replace(side_by_side, weights=as_shares(weights, axis=0), bandwidths=bandwidths)
        candidates += [even, replace(even, local=_local_widths(even, floor))]
    judged = np.stack([(held * candidate.log_density(view.grid)).sum(axis=0) for candidate in candidates])
    scores = judged.reshape(len(choices), 2, -1).sum(axis=1)
    widths, locals_ = np.array(choices)[scores.argmax(axis=0)].T
    chosen = replace(view, bandwidths=np.maximum(widths * view.bandwidths, floor))
    return replace(chosen, local=np.where(locals_ > 0, _local_widths(chosen, floor), 1.0)) if locals_.any() else chosen


def _local_widths(view: BinnedEmbedding, floor: float) -> np.ndarray:
    """Abramson's (p(x) / mean)^(-1/2) on the grid, with the geometric mean over the rows, in steps of a half octave."""
    density = np.maximum(view.density(view.grid), TINY)
    weights = np.maximum(view.weights, 0.0)
    mean = (weights * np.log(density)).sum(axis=0) / np.maximum(weights.sum(axis=0), TINY)
    octaves = np.round(np.clip((mean - np.log(density)) / (2 * np.log(2)), -2, 2) * 2) / 2
    lowest = np.ceil(2 * np.log2(np.maximum(floor / view.bandwidths, TINY))) / 2
    return 2.0 ** np.maximum(octaves, np.minimum(lowest, 0.0))
