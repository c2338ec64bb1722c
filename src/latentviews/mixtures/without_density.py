"""Classes where some view has no density: the polish on coordinates of the feature vectors."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from latentviews._progress import Report
from latentviews.core.tables import Columns
from latentviews.core.views import Views, default_features, has_density, stack_block
from latentviews.densities.coordinates import CoordinateEmbedding, coordinates, principal_axes
from latentviews.densities.reestimation import reestimate
from latentviews.mixtures.estimation import FoundClasses, SpectralSettings, class_starts, polished_classes
from latentviews.mixtures.polish import Sieve
from latentviews.mixtures.problem import Estimate, Problem

PER_CLASS, LEAST = 2, 10  # coordinates of a view: so many per class, and in all
ROWS = 40  # that a coordinate needs, or fewer are taken: densities of many coordinates lose the classes of few rows

Axes = dict[int, tuple[np.ndarray, np.ndarray]]  # of views without density: the mean of their features, and axes


def coordinate_classes(
    problem: Problem, settings: SpectralSettings, n_jobs: int | None, report: Report
) -> FoundClasses:
    """The polish with the principal coordinates of φ(x) for views without density, fitted to the pilot.

    Their embeddings are those of all rows' features, weighted by the posteriors that it finds.
    """
    views = problem.views()
    axes = _axes(problem, views)
    inner = _in_coordinates(problem, views, axes)
    found = polished_classes(inner, class_starts(inner, settings), Sieve(), "auto", n_jobs, report)
    posteriors = found.estimate.posteriors(inner.pilot)
    if problem.allowed is not None:
        posteriors = posteriors * problem.allowed / (posteriors * problem.allowed).sum(axis=1, keepdims=True)
    components = list(found.estimate.components)
    blind = sorted(axes)
    blocks = [problem.blocks[t] for t in blind]
    _, embedded = reestimate(
        problem.pilot, posteriors, views.some(blind), blocks, [None] * len(blind), problem.pilot_weights
    )
    for t, view in zip(blind, embedded, strict=True):
        parts: Any = view
        components[t] = CoordinateEmbedding(None, parts.features, parts.vectors, *axes[t], components[t])
    return found._replace(estimate=Estimate(found.estimate.weights, components, problem.columns))


def _axes(problem: Problem, views: Views) -> Axes:
    """The axes of every view without density, one set per block."""
    most, found = max(PER_CLASS * problem.rank, LEAST), {}
    most = max(min(most, len(problem.pilot) // ROWS), problem.rank)
    shared: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    for t, (phi, block) in enumerate(zip(views.features, problem.blocks, strict=True)):
        if has_density(problem.prototypes[t]):
            continue
        if block not in shared:
            x = stack_block(problem.pilot, problem.columns, problem.blocks, block)
            shared[block] = principal_axes(phi, x[~np.isnan(x).any(axis=1)], most)
            if not shared[block][1].size:
                raise ValueError(
                    f"The kernel of view {t} finds all objects alike, so it tells no classes; leave it out."
                )
        found[t] = shared[block]
    return found


def _in_coordinates(problem: Problem, views: Views, axes: Axes) -> Problem:
    """The pilot as a problem of its own, with coordinates in place of the columns of views without density."""
    tables = [
        coordinates(views.features[t], problem.pilot[:, columns], *axes[t]) if t in axes else problem.pilot[:, columns]
        for t, columns in enumerate(problem.columns)
    ]
    widths = [table.shape[1] for table in tables]
    prototypes = [
        default_features(widths[t]) if t in axes else prototype for t, prototype in enumerate(problem.prototypes)
    ]
    table = np.hstack(tables)
    return replace(
        problem,
        data=table,
        weights=problem.pilot_weights,
        labels=problem.pilot_labels,
        pilot=table,
        partial=False,
        columns=_side_by_side(widths),
        prototypes=prototypes,
        fits=None,
        directions={},
    )


def _side_by_side(widths: Sequence[int]) -> Columns:
    ends = np.cumsum(widths)
    return tuple(list(range(end - width, end)) for width, end in zip(widths, ends.tolist(), strict=True))
