"""From what a user gives a mixture to the problem that is solved, or a sentence on what no fit can answer."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from latentviews._arrays import to_numpy
from latentviews._sentences import warn_user
from latentviews._validation import allowed_classes, is_auto, label_names
from latentviews.core import streams
from latentviews.core.categories import chosen_codes
from latentviews.core.checked import label_of, unmapped
from latentviews.core.features.point_masses import find_point_masses
from latentviews.core.kernels.spaces import space_of
from latentviews.core.selection import RankTest, dependence_rank
from latentviews.core.tables import Columns, TrainingRows, check_varying, read_table, rows_inside, training_rows
from latentviews.core.views import ViewFits, Views, feature_prototypes, fitting_maps, read_blocks
from latentviews.densities.subspaces import shared_directions
from latentviews.mixtures.dependence.settings import check_dependence, read_copulas
from latentviews.mixtures.problem import Problem

PILOT = 20_000


def read_problem(model: Any, X: Any, y: Any, sample_weight: Any) -> Problem:
    """Rows, views and their feature maps as the parameters of a `MultiViewMixture` have them."""
    rank = 1 if is_auto(model.n_components) else int(model.n_components)
    size = PILOT if model.pilot_size is None else model.pilot_size
    rng = np.random.default_rng(model.random_state)
    data, columns = read_table(model, unmapped(X, y, sample_weight), reset=True)
    bits: Any = rng.bit_generator
    apart = np.random.Generator(bits.jumped())  # so that rng goes on the same for arrays and streams
    rows = training_rows(data, size, apart, sample_weight, y)
    _check_rows(model, rows, columns, rank)
    blocks = read_blocks(model.exchangeable, len(columns))
    prototypes = _prototypes(model, rows.counted().pilot, columns, blocks)
    names = getattr(model, "feature_names_in_", None)
    _check_pilot(rows, columns, prototypes, names)
    _warn_of_codes(model, X, rows.pilot, columns, names)
    rows = rows_inside(rows, columns, prototypes, names)
    fits, rank_test = ViewFits(rows.pilot, columns, blocks, rows.codes), None
    if model.dependence is not None:
        check_dependence(model, blocks, prototypes, rows.labels)
        if model.point_masses is not None and read_copulas(model.dependence).noise:
            _warn_of_masses(rows.counted().pilot, columns, names)
    elif is_auto(model.n_components):
        rank_test = _rank_test(rows, fits.views(prototypes, rng), rng)
        rank = rank_test.n_components
    labels = label_names(y)
    if labels is not None and len(labels) > rank:
        raise ValueError(f"y names {len(labels)} classes ({', '.join(labels)}), and there are {rank}; ask for as many.")
    allowed = None if rows.pilot_labels is None else allowed_classes(rows.pilot_labels, rank)
    return Problem(
        **vars(rows),
        columns=columns,
        blocks=blocks,
        prototypes=prototypes,
        rank=rank,
        rng=rng,
        allowed=allowed,
        rank_test=rank_test,
        fits=fits,
        point_masses=model.point_masses,
        directions={} if model.dependence is not None else _directions(rows, columns, blocks, prototypes, rank),
    )


def _directions(
    rows: TrainingRows, columns: Columns, blocks: Sequence[int], prototypes: Sequence[Any], rank: int
) -> dict[int, np.ndarray]:
    """The subspaces of views with many columns, where all views are real and each has distributions of its own."""
    spaces = [space_of(phi) for phi in prototypes]
    real = all(space is not None and space.affine for space in spaces)
    return shared_directions(rows.pilot, columns, rank) if real and len(set(blocks)) == len(blocks) else {}


def _check_rows(model: Any, rows: TrainingRows, columns: Columns, rank: int) -> None:
    """Refuse too few rows, columns that say nothing, and a reference that is no view."""
    if rows.n_counted < max(rank, 2):
        needs = "1 component needs" if rank == 1 else f"{rank} components need"
        raise ValueError(f"{needs} at least {max(rank, 2)} rows; got n_samples = {rows.n_counted}.")
    table = rows.data if streams.is_array(rows.data) else rows.pilot
    check_varying(table, columns, getattr(model, "feature_names_in_", None))
    if model.reference is not None and not is_view(model.reference, len(columns)):
        raise ValueError(f"reference must be a view from 0 to {len(columns) - 1}; got {model.reference!r}.")


def _check_pilot(rows: TrainingRows, columns: Columns, prototypes: Sequence[Any], names: Any) -> None:
    """Refuse a pilot in which a column of numbers has one value, though it varies in the table: it has no scale."""
    if not (rows.partial and streams.is_array(rows.data)):
        return
    for group, phi in zip(columns, prototypes, strict=True):
        space = space_of(phi)
        for j in group if space is not None and space.ordered else ():
            column = to_numpy(rows.pilot[:, j])
            seen = column[~np.isnan(column)]
            if not len(seen) or seen.min() == seen.max():
                raise ValueError(
                    f"Column {label_of(j, names)} has one value in the {len(rows.pilot):,} rows of the pilot, so "
                    "nothing is known of its scale; raise `pilot_size`, or leave the column out."
                )


def _warn_of_codes(model: Any, X: Any, pilot: np.ndarray, columns: Columns, names: Any) -> None:
    """Say which columns of integers have two values only, and are taken as numbers all the same."""
    if hasattr(X, "dask") or model.kernel is not None or model.features is not None:  # Dask's kinds are not known yet
        return
    kinds, dependent = _kinds(X, pilot.shape[1], names), model.dependence is not None
    used = [j for view in columns for j in view if j not in chosen_codes(model)]
    two = [j for j in used if kinds[j] in "iu" and len(np.unique(to_numpy(pilot[:, j]))) == 2]
    if two:
        shown = ", ".join(str(label_of(j, names)) for j in two[:5]) + (f" and {len(two) - 5} more" if two[5:] else "")
        instead = "leave them out, which copulas have no place for, or fit with dependence=None and"
        warn_user(
            f"Column(s) {shown} hold two integers, and are taken as numbers. If they stand for categories, "
            + (f"{instead} " if dependent else "")
            + "give their views kernel=Delta(), or make the columns flags (bool) or categories."
        )


def _kinds(X: Any, n_columns: int, names: Any) -> list[str]:
    """The kinds of the columns that are read, in their order: "f" where nobody knows."""
    own = getattr(X, "dtypes", None)
    if own is None:
        return [getattr(getattr(X, "dtype", None), "kind", "f")] * n_columns
    known = dict(zip(map(str, X.columns), own, strict=True))
    named = [] if names is None else [known.get(name) for name in names]
    read = named if named or len(own) != n_columns else list(own)
    return [getattr(kind, "kind", "f") for kind in read] if len(read) == n_columns else ["f"] * n_columns


def _warn_of_masses(pilot: np.ndarray, columns: Columns, names: Any) -> None:
    """Say which columns have point masses, of which copulas know nothing where noise is a class."""
    said = []
    for j in (j for view in columns for j in view):
        x = to_numpy(pilot[:, j])
        x = x[~np.isnan(x)]
        said += [
            f"{value:g} in {np.mean(x == value):.0%} of column {label_of(j, names)}" for value in find_point_masses(x)
        ]
    if said:
        shown = "; ".join(said[:3]) + (f"; and {len(said) - 3} more" if said[3:] else "")
        warn_user(
            f"Many rows have one value exactly ({shown}), and Copulas(noise=True) smooth it as any other: classes may "
            "be right, but densities and draws have no such mass. With noise=False they have it."
        )


def is_view(value: Any, n_views: int) -> bool:
    """Whether a value is the number of a view."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and value in range(n_views)


def _prototypes(model: Any, pilot: np.ndarray, columns: Columns, blocks: Sequence[int]) -> list[Any]:
    """An unfitted feature map for every view; by default one that fits the scales of the columns."""
    bandwidth = None if by_likelihood(model) else model.bandwidth
    names = getattr(model, "feature_names_in_", None)
    prototypes = feature_prototypes(model.kernel, model.features, bandwidth, columns, names, chosen_codes(model))
    given = (model.kernel, model.features, model.bandwidth, model.dependence)
    masses = model.point_masses if model.dependence is None else None  # copulas have their own
    default = all(one is None for one in given)
    return fitting_maps(prototypes, pilot, columns, blocks, masses, scales=default)


def by_likelihood(model: Any) -> bool:
    """Whether the bandwidth is to be the one under which held-out rows are likeliest."""
    return isinstance(model.bandwidth, str) and model.bandwidth == "likelihood"


def _rank_test(rows: TrainingRows, views: Views, rng: np.random.Generator) -> RankTest:
    """How many classes the rows of the pilot tell apart."""
    pilot = rows.pilot
    if rows.pilot_weights is not None:  # rows kept with their weights as chances sample the weighted population
        pilot = pilot[rng.random(len(pilot)) * rows.pilot_weights.max() < rows.pilot_weights]
    return dependence_rank(pilot, views, rng)
