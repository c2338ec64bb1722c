"""Views X_t: which columns belong together, and the feature map φ_t of each, chosen and fitted."""

import inspect
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from latentviews._arrays import in_one_library, is_foreign, take_columns, to_numpy
from latentviews._validation import check_ability, check_bandwidth, is_auto
from latentviews.core.features.base import FeatureMap, numbers_held, raw_vectors, tail_of
from latentviews.core.features.bins import BinnedFeatures
from latentviews.core.features.indicators import OneHotFeatures
from latentviews.core.features.landmarks import LandmarkFeatures
from latentviews.core.features.point_masses import PointMassFeatures, find_point_masses, without_masses
from latentviews.core.kernels.bandwidths import many_scales
from latentviews.core.kernels.base import Kernel, column_factors
from latentviews.core.kernels.discrete import Delta
from latentviews.core.kernels.mixed import in_view, product_on
from latentviews.core.kernels.real import Gaussian
from latentviews.core.kernels.spaces import is_discrete, space_of
from latentviews.core.kernels.structured import FunctionKernel
from latentviews.core.streams import weigh
from latentviews.core.tables import Columns


def features_for(kernel: Kernel, n_columns: int) -> Any:
    """The map that serves a kernel when the user names none."""
    codes = [is_discrete(part.kernel) for part in column_factors(kernel)]
    if is_discrete(kernel) or (codes and all(codes)):  # any kernel on finitely many values is linear in indicators
        return OneHotFeatures()
    if n_columns == 1 and hasattr(kernel, "log_height"):  # a density of one bandwidth, which a grid can hold
        return BinnedFeatures(kernel)
    return LandmarkFeatures(kernel)


@dataclass(frozen=True, eq=False)
class Views:
    """Which columns make a view, and its fitted feature map φ = raw @ tail; an `Embed`, called on a batch."""

    columns: Columns
    features: tuple[FeatureMap, ...]

    def __call__(self, batch: Any) -> list[Any]:
        """The raw vectors of every view, one row per row; zeros where the view is missing."""
        tables = [take_columns(batch, columns) for columns in self.columns]
        here = self.present(batch)
        if here is None:
            return in_one_library([raw_vectors(phi, table) for phi, table in zip(self.features, tables, strict=True)])
        whole = here.astype(bool)
        filled = [np.where(whole[:, [t]], x, _some_row(x, whole[:, t])) for t, x in enumerate(tables)]
        return [
            weigh(raw_vectors(phi, x), here[:, t]) for t, (phi, x) in enumerate(zip(self.features, filled, strict=True))
        ]

    def present(self, batch: Any) -> np.ndarray | None:
        """One where a row has a view and zero where it is missing, (n, n_views); None where nothing is missing."""
        if is_foreign(batch):
            return None
        with np.errstate(invalid="ignore"):
            suspect = np.isnan(batch.sum())  # no table of flags for rows that are all there
        if not suspect or not np.isnan(batch).any():
            return None
        return np.stack([~np.isnan(batch[:, columns]).any(axis=1) for columns in self.columns], axis=1).astype(float)

    def some(self, which: Sequence[int]) -> "Views":
        """Some of the views."""
        return Views(tuple(self.columns[t] for t in which), tuple(self.features[t] for t in which))

    @property
    def numbers(self) -> int:
        """How many numbers the raw vectors of a row hold."""
        return sum(numbers_held(phi) for phi in self.features)

    @property
    def tails(self) -> list[np.ndarray | None]:
        """What takes the raw vectors of every view to feature vectors; None where they are those already."""
        return [tail_of(phi) for phi in self.features]


def _some_row(x: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """A row of the table that is not missing, to stand in where one is."""
    return x[whole.argmax()] if whole.any() else np.zeros(x.shape[1])


@dataclass(frozen=True, eq=False)
class ViewFits:
    """Feature maps fitted to rows, every one once: one per block, on the stacked columns of its views, NaN left out.

    The values of discrete views are read off ``codes``, all rows, where given: rare ones may not be in a pilot.
    """

    rows: np.ndarray
    columns: Columns
    blocks: Sequence[int]
    codes: Any = None
    _fitted: dict[tuple[int, int], tuple[Any, FeatureMap]] = field(default_factory=dict, repr=False)

    def views(self, prototypes: Sequence[Any], rng: np.random.Generator) -> Views:
        """The views with these maps, of which those that were fitted before are taken as they are."""
        seed = int(rng.integers(2**31))
        maps: dict[int, FeatureMap] = {}
        for t, block in enumerate(self.blocks):
            if block not in maps:
                maps[block] = self._map(block, prototypes[t], seed + t)
        return Views(self.columns, tuple(maps[block] for block in self.blocks))

    def _map(self, block: int, prototype: Any, seed: int) -> FeatureMap:
        key = block, id(prototype)  # kept beside its map, so that no other gets its number
        if key not in self._fitted:
            discrete = self.codes is not None and isinstance(prototype, OneHotFeatures)
            rows = to_numpy(self.codes) if discrete else self.rows
            stacked = stack_block(rows, self.columns, self.blocks, block)
            self._fitted[key] = prototype, _fit(prototype, stacked[~np.isnan(stacked).any(axis=1)], seed)
        return self._fitted[key][1]


def fit_views(
    rows: np.ndarray, columns: Columns, prototypes: Sequence[Any], rng: np.random.Generator, blocks: Sequence[int]
) -> Views:
    """Feature maps fitted to ``rows``, for once."""
    return ViewFits(rows, columns, blocks).views(prototypes, rng)


def stack_block(rows: np.ndarray, columns: Columns, blocks: Sequence[int], block: int) -> np.ndarray:
    """The columns of all views of a block, one view under the other."""
    widths = {len(columns[t]) for t, b in enumerate(blocks) if b == block}
    if len(widths) > 1:
        raise ValueError(f"Exchangeable views need the same number of columns; got {sorted(widths)}.")
    return np.concatenate([rows[:, columns[t]] for t, b in enumerate(blocks) if b == block])


def read_blocks(exchangeable: Any, n_views: int) -> list[int]:
    """A number for every view, the same for views that share their distributions."""
    if isinstance(exchangeable, bool | np.bool_) or exchangeable is None:
        return [0] * n_views if exchangeable else list(range(n_views))
    names = exchangeable.tolist() if isinstance(exchangeable, np.ndarray) else exchangeable
    one_each = isinstance(names, Sequence) and not isinstance(names, str) and len(names) == n_views
    if not one_each or not all(isinstance(name, Hashable) for name in names):
        raise ValueError(f"exchangeable is True, False or one block id per view ({n_views}); got {exchangeable!r}.")
    return [list(dict.fromkeys(names)).index(name) for name in names]


def _fit(prototype: Any, table: np.ndarray, seed: int) -> Any:
    phi = clone(prototype)
    unset = {"random_state", "features__random_state"}  # its own, or that of a map inside
    phi.set_params(**{key: seed for key, value in phi.get_params().items() if key in unset and value is None})
    return phi.fit(table)


def feature_prototypes(
    kernel: Any, features: Any, bandwidth: Any, columns: Columns, names: Any = None, codes: Collection[int] = ()
) -> list[Any]:
    """An unfitted feature map for every view, from what the user gave.

    ``names`` are those of the table's columns, and ``codes`` are columns of categories where nothing was given.
    """
    if kernel is not None and features is not None:
        raise ValueError("kernel is shorthand for features: pass one of them, not both.")
    if features is None:
        given = _one_per_view("kernel", kernel, columns)
        pairs = zip(given, columns, strict=True)
        kernels = [_default_kernel(group, codes) if one is None else one for one, group in pairs]
        kernels = [FunctionKernel(one) if inspect.isroutine(one) else one for one in kernels]
        for one in kernels:
            check_ability("kernel", one, "gram")
        kernels = [in_view(one, _in(names, group), len(group)) for one, group in zip(kernels, columns, strict=True)]
        maps = [features_for(kernel, len(group)) for kernel, group in zip(kernels, columns, strict=True)]
    else:
        maps = [check_ability("features", phi, "transform") for phi in _one_per_view("features", features, columns)]
        maps = [_map_in_view(phi, _in(names, group), len(group)) for phi, group in zip(maps, columns, strict=True)]
    if bandwidth is None:
        return maps
    return [with_bandwidth(phi, check_bandwidth("bandwidth", bandwidth)) for phi in maps]


def _in(names: Any, columns: list[int]) -> list[str] | None:
    """The names of some columns; None where they have none."""
    return None if names is None else [str(names[j]) for j in columns]


def _map_in_view(phi: Any, names: list[str] | None, n_columns: int) -> Any:
    """A feature map whose kernel takes columns by their places in the view."""
    kernel = getattr(phi, "kernel", None)
    if not isinstance(kernel, Kernel):
        return phi
    found = in_view(kernel, names, n_columns)
    return phi if found is kernel else clone(phi).set_params(kernel=found)


def landmarks_where_scales_differ(
    prototypes: Sequence[Any], table: np.ndarray, columns: Columns, blocks: Sequence[int]
) -> list[Any]:
    """The same maps, but landmarks in place of bins for columns whose scales are too many for a grid."""
    binned = [isinstance(phi, BinnedFeatures) and _stretches(phi) for phi in prototypes]
    found = set()
    for group, block, bins in zip(columns, blocks, binned, strict=True):
        x = table[:, group[0]]
        if bins and many_scales(x[~np.isnan(x)]):
            found.add(block)
    wide = [bins and block in found for block, bins in zip(blocks, binned, strict=True)]
    return [LandmarkFeatures(Gaussian("median")) if many else phi for phi, many in zip(prototypes, wide, strict=True)]


def fitting_maps(
    prototypes: Sequence[Any],
    table: np.ndarray,
    columns: Columns,
    blocks: Sequence[int],
    point_masses: Any,
    *,
    scales: bool,
) -> list[Any]:
    """The same maps, but apart from point masses where binned columns have some.

    ``point_masses`` is "auto" for what `find_point_masses` finds, a list of values, or None. With ``scales``, landmarks
    take the place of bins for columns whose scales are too many for a grid.
    """
    masses = _point_masses(prototypes, table, columns, blocks, point_masses)
    if masses:
        apart = [PointMassFeatures(phi, masses.get(block, ())) for phi, block in zip(prototypes, blocks, strict=True)]
        table = table.copy()
        for phi, group in zip(apart, columns, strict=True):
            table[:, group] = without_masses(phi, table[:, group])
    maps = landmarks_where_scales_differ(prototypes, table, columns, blocks) if scales else list(prototypes)
    return [
        PointMassFeatures(phi, masses[block]) if block in masses else phi
        for phi, block in zip(maps, blocks, strict=True)
    ]


def _point_masses(
    prototypes: Sequence[Any], table: np.ndarray, columns: Columns, blocks: Sequence[int], asked: Any
) -> dict[int, tuple[float, ...]]:
    """The point masses of every block that has some."""
    found: dict[int, tuple[float, ...]] = {}
    for phi, block in zip(prototypes, blocks, strict=True):
        if asked is None or block in found or not isinstance(phi, BinnedFeatures):
            continue
        x = stack_block(table, columns, blocks, block)[:, 0]
        x = x[~np.isnan(x)]
        values = find_point_masses(x) if is_auto(asked) else np.intersect1d(asked, x)
        found[block] = tuple(values.tolist())
    return {block: values for block, values in found.items() if values}


def _stretches(phi: Any) -> bool:
    space = space_of(phi)
    return space is not None and space.affine


def _default_kernel(columns: list[int], codes: Collection[int] = ()) -> Kernel:
    """Categories are codes; a number has Silverman's rule, and more, where that is too narrow for moments, the median.

    A view with both has the product.
    """
    discrete = [place for place, j in enumerate(columns) if j in codes]
    numbers = [place for place, j in enumerate(columns) if j not in codes]
    real = Gaussian("silverman" if len(numbers) == 1 else "median")
    if not discrete:
        return real
    return product_on([real, Delta()], [numbers, discrete]) if numbers else Delta()


def kernel_of(phi: Any) -> Any:
    """The kernel of an unfitted feature map; None where it is a transformer without one."""
    inside = phi.features if isinstance(phi, PointMassFeatures) else phi
    return Delta() if isinstance(inside, OneHotFeatures) else getattr(inside, "kernel", None)


def default_features(n_columns: int) -> Any:
    """The map of real columns of which nobody says more."""
    return features_for(_default_kernel(list(range(n_columns))), n_columns)


def _one_per_view(name: str, given: Any, columns: Columns) -> list[Any]:
    if not isinstance(given, list | tuple):
        return [given] * len(columns)
    if len(given) != len(columns):
        flat = [[int(j)] for group in columns for j in group]
        views = f"{str(flat[:3])[:-1]}, …]" if len(flat) > 3 else str(flat)
        hint = f" For one per column, pass views={views}." if len(flat) == len(given) else ""
        raise ValueError(f"{name} must be one object or one per view; got {len(given)} for {len(columns)} views.{hint}")
    return list(given)


def has_density(phi: Any) -> bool:
    """Whether the embeddings of an unfitted map have densities: all but those of kernels like `Linear`."""
    return space_of(phi) is not None


def with_bandwidth(phi: Any, bandwidth: Any) -> Any:
    """A copy of a feature map whose kernel has this bandwidth; unchanged where its kernel has none."""
    phi = clone(phi)
    if "kernel" in phi.get_params(deep=False) and phi.kernel is None:
        phi.set_params(kernel=Gaussian())
    keys = [key for key in phi.get_params() if key.endswith("bandwidth")]
    return phi.set_params(**dict.fromkeys(keys, bandwidth))
