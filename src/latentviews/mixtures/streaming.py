"""Mixtures and chains from a stream that is seen once: subspaces by doubly stochastic steps, then sums.

Any projection will do whose span holds the classes. Batches at the beginning improve the projections; the sums that
the answer is made of begin after the first batch, and begin again once with the projections of the whole pilot. The
rows of a chain's stream are triples of consecutive ones, whose class is the state in the middle.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from latentviews._validation import UnsupportedError
from latentviews.core import streams
from latentviews.core.features.fourier import check_shift_invariant
from latentviews.core.kernels.quadrature import Quadrature
from latentviews.core.moments import as_moments, as_pairs, pair_total, whitened_total
from latentviews.core.spectral import SpectralFit, components_of
from latentviews.core.tables import Columns
from latentviews.core.tensors import Solver
from latentviews.core.views import Views, fit_views
from latentviews.core.whitening import Whitening, refine, whiten
from latentviews.densities.reestimation import density_maps
from latentviews.mixtures.estimation import Spectral, as_estimate, domains_of
from latentviews.mixtures.problem import Estimate, Problem
from latentviews.stochastic.expansions import Expansion, RandomBlocks, StepSizes, cross_step, cross_warm_start

BATCH = 1024  # rows per step
START = 4 * BATCH  # rows of the first batch that the steps start from
FREQUENCIES = 32  # a block
BLOCKS = 8  # the most; only the span of a projection matters, and it need not be exact
FACTOR = 2.0  # of the step sizes
ENOUGH = 1000  # rows whose pair moments tell how to whiten the projections


@dataclass(frozen=True, eq=False)
class Projected:
    """Projections that no longer change, and the sums of moments in their coordinates."""

    views: Views
    whitening: Whitening
    component_maps: Views  # the maps in which components are wanted
    total: streams.Total | None = None

    def add(self, rows: Any, weights: Any) -> "Projected":
        """The same with the sums of more rows."""
        more = whitened_total(rows, self.views, self.whitening, weights, self.component_maps)
        return replace(self, total=more if self.total is None else self.total.merge(more))

    @property
    def weight(self) -> float:
        """The rows summed."""
        return 0.0 if self.total is None else self.total.weight


@dataclass(frozen=True, eq=False)
class StreamFit:
    """All that is kept of a stream: functions, sums, and how far the projections have been learnt."""

    columns: Columns
    blocks: list[int]
    rank: int
    component_maps: Views  # the maps in which components are wanted
    domains: list[Quadrature | None]
    subspaces: tuple[Expansion, ...]  # one per view
    steps: StepSizes
    pilot_size: int  # rows that the subspaces are learnt from
    middles: tuple[int, ...] = ()  # of triples: views of the middle row, each between those before and after it
    n_seen: int = 0  # rows of the pilot
    pairs: streams.Total | None = None  # of the projections learnt, while too few rows tell how to whiten them
    n_paired: int = 0  # rows in those sums
    current: Projected | None = None
    upcoming: Projected | None = None  # better projections, whose sums have fewer rows so far

    def add(self, rows: np.ndarray, weights: Any, reference: int | None) -> "StreamFit":
        """The state after one more batch."""
        fit = self._learn(rows)._project(rows, weights, reference)
        assert fit.current is not None
        current, upcoming = fit.current.add(rows, weights), fit.upcoming
        if upcoming is not None:
            upcoming = upcoming.add(rows, weights)
            if 2 * upcoming.weight >= current.weight:  # as many rows since the pilot as in it
                current, upcoming = upcoming, None
        return replace(fit, current=current, upcoming=upcoming)

    def _learn(self, rows: np.ndarray) -> "StreamFit":
        """Steps of the subspaces through the rows that have all views, until the pilot is full."""
        subspaces, seen = self.subspaces, self.n_seen
        if seen >= self.pilot_size:
            return self
        for (part,) in streams.single_pass(_whole(rows, self.columns), BATCH):
            views = [part[:, columns] for columns in self.columns]
            subspaces = cross_step(subspaces, views, self.steps(seen, len(part)), BLOCKS)
            seen += len(part)
        return replace(self, subspaces=subspaces, n_seen=seen)

    def _project(self, rows: np.ndarray, weights: Any, reference: int | None) -> "StreamFit":
        """Projections from the first batch, and better ones once the pilot is full and enough rows have followed."""
        first, full = self.current is None, self.n_seen >= self.pilot_size
        if not first and (not full or self.n_paired >= ENOUGH):
            return self
        views = Views(self.columns, self.subspaces)
        pairs, count = pair_total(rows, views, weights), self.n_paired + len(rows)
        pairs = pairs if self.pairs is None else self.pairs.merge(pairs)
        if not first and count < ENOUGH:
            return replace(self, pairs=pairs, n_paired=count)
        found = Projected(views, whiten(as_pairs(pairs, views), self.rank, reference), self._lift())
        if first:
            return replace(self, current=found, n_paired=ENOUGH if full else 0)
        return replace(self, upcoming=found, pairs=None, n_paired=count)

    def _lift(self) -> Views:
        """The maps of the components; what comes before and after a middle row is wanted in its coordinates alone."""
        features = list(self.component_maps.features)
        for t in self.middles:
            features[t - 1] = features[t + 1] = self.subspaces[t]
        return replace(self.component_maps, features=tuple(features))

    def solve(self, solver: Solver, rng: np.random.Generator) -> SpectralFit:
        """The classes of all rows summed so far."""
        assert self.current is not None
        assert self.current.total is not None
        moments = as_moments(self.current.total, self.current.component_maps)
        whitening, tensor = refine(self.current.whitening, moments)
        return components_of(whitening, solver.decompose(tensor, rng), self.current.views)

    def estimate(self, found: SpectralFit) -> Estimate:
        """Classes as weights and components."""
        return as_estimate(Spectral(found, self.component_maps), self.blocks, self.domains)


def start_stream(problem: Problem, density_bandwidth: Any, pilot_size: int) -> StreamFit:
    """The state before the first batch is added: maps, domains and subspaces that are read off it."""
    maps = fit_views(problem.pilot, problem.columns, problem.prototypes, problem.rng, problem.blocks)
    kernels: list[Any] = [getattr(phi, "kernel_", phi) for phi in maps.features]
    for kernel in kernels:
        check_shift_invariant("partial_fit", kernel, "`fit`")
    component_maps = density_maps(
        problem.pilot, maps, problem.blocks, np.ones((len(problem.pilot), 1)), density_bandwidth
    )
    whole = _whole(problem.pilot, problem.columns)[:START]
    if len(whole) < 2 * problem.rank:
        raise UnsupportedError(
            f"The first batch has {len(whole)} row(s) with all views, and {problem.rank} classes need at least "
            f"{2 * problem.rank} to start from; some thousand are better. Give a larger first batch."
        )
    seeds = problem.rng.integers(2**31, size=len(kernels)).tolist()
    blocks = [
        RandomBlocks(kernel, len(columns), FREQUENCIES, seed)
        for kernel, columns, seed in zip(kernels, problem.columns, seeds, strict=True)
    ]
    subspaces, steps = cross_warm_start(
        blocks, [whole[:, columns] for columns in problem.columns], problem.rank, FACTOR, BATCH
    )
    domains = domains_of(problem, component_maps)
    return StreamFit(
        problem.columns, problem.blocks, problem.rank, component_maps, domains, subspaces, steps, pilot_size
    )


def _whole(rows: np.ndarray, columns: Columns) -> np.ndarray:
    """The rows that lack nothing."""
    used = [j for view in columns for j in view]
    return rows[~np.isnan(rows[:, used]).any(axis=1)]
