"""Views of many columns: a polish in the directions that tell its own classes apart, a few times over."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from latentviews._clusters import kmeans_posteriors
from latentviews._progress import Report
from latentviews.core.tables import Columns
from latentviews.densities.subspaces import beside, discriminant_directions, in_subspaces
from latentviews.mixtures.dependence.merging import medoid
from latentviews.mixtures.fit_rows import MixtureRows
from latentviews.mixtures.polish import Polished

IN_SUBSPACES = "k-means in subspaces"  # the start that views of many columns have besides
ALIKE = 0.9  # adjusted Rand index from which two polishes have found the same classes
TRIES = 5  # polishes at most until two of them are alike
ROUNDS = 2  # a third gains less than starts differ by


class Refined(NamedTuple):
    """A polish in directions of its own classes, and the starts that it had."""

    directions: dict[int, np.ndarray]  # those of the classes, and what they leave of the first ones, for densities
    polished: Polished
    starts: dict[str, np.ndarray]


def subspace_clusters(
    rows: tuple[np.ndarray, np.ndarray | None],
    columns: Columns,
    directions: Mapping[int, np.ndarray],
    rank: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """A guess of the posteriors of a table with weights by k-means, views of many columns in their subspaces."""
    table, weights = rows
    inside = in_subspaces(table, columns, directions)
    return kmeans_posteriors(inside, list(range(inside.shape[1])), rank, rng, weights)


def found_again(
    rows: MixtureRows,
    first: Polished,
    starts: Mapping[str, np.ndarray],
    polish: Any,
    rng: np.random.Generator,
    n_jobs: int | None,
    report: Report,
) -> Polished:
    """Of a polish and others from other seeds, the one that agrees best with the others; enough where two are alike.

    In subspaces of many directions every seed may end elsewhere, and likelihoods, of different sieves, do not say which
    classes are good: good ones are found again.
    """
    if rows.allowed is not None:
        return first
    fits, table = [first], (rows.table, rows.weights)
    partitions = [_labels(first, rows)]
    center = medoid(partitions)
    while len(fits) < TRIES and np.max(center.table - np.eye(len(fits))) < ALIKE:
        others = subspace_clusters(table, rows.columns, rows.directions, len(first.fit.parameters.weights), rng)
        fits.append(polish.polish(rows, list({**starts, IN_SUBSPACES: others}.values()), rng, n_jobs, report))
        partitions.append(_labels(fits[-1], rows))
        center = medoid(partitions)
    return fits[center.chosen]


def _labels(polished: Polished, rows: MixtureRows) -> np.ndarray:
    return polished.posteriors(rows.table).argmax(axis=1)


def refine(
    rows: MixtureRows, first: Polished, polish: Any, rng: np.random.Generator, n_jobs: int | None, report: Report
) -> Refined:
    """Rounds of directions from classes, and classes from directions.

    What views have in common is more than the classes where these leave them dependent, such as the slant of a hand:
    canonical directions show it, and those that tell classes apart (Ding & Li 2007) do not.
    """
    canonical = rows.directions
    polished, starts = first, dict[str, np.ndarray]()
    for _ in range(ROUNDS):
        found = polished.posteriors(rows.table, rows.allowed)
        counted = found if rows.weights is None else found * rows.weights[:, None]
        sharper = {t: discriminant_directions(rows.table[:, rows.columns[t]], counted) for t in rows.directions}
        rows = rows._replace(directions=sharper)
        starts = {"classes in wider subspaces": found}
        if rows.allowed is None:  # clusters do not know the names of classes
            starts[IN_SUBSPACES] = subspace_clusters(
                (rows.table, rows.weights), rows.columns, sharper, found.shape[1], rng
            )
        polished = polish.polish(rows, list(starts.values()), rng, n_jobs, report)
    own = rows.directions
    every = {t: beside(own[t], canonical[t], rows.table[:, rows.columns[t]]) for t in own}
    return Refined(every, polished, starts)
