"""Mixtures from a stream that is seen once: subspaces by doubly stochastic steps, then sums.

Any projection will do whose span holds the classes. Batches at the beginning improve the projections; the sums that
the answer is made of begin after the first batch, and begin again once with the projections of the whole pilot.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from latentviews import streams
from latentviews._validation import UnsupportedError
from latentviews.densities import density_maps
from latentviews.domains import Domain
from latentviews.models.estimation import Estimate, Problem, Spectral, SpectralSettings, as_estimate, domains_of
from latentviews.moments import as_moments, pair_moments, whitened_total
from latentviews.random_features import check_shift_invariant
from latentviews.spectral import SpectralFit, solve
from latentviews.stochastic import Expansion, RandomBlocks, StepSizes, cross_step, cross_warm_start
from latentviews.views import Columns, Views, fit_views
from latentviews.whitening import Whitening, whiten

BATCH = 1024  # rows a step
START = 4 * BATCH  # rows of the first batch that the steps start from
FREQUENCIES = 32  # a block
BLOCKS = 8  # the most; only the span of a projection matters, and it need not be exact
FACTOR = 2.0  # of the step sizes


@dataclass(frozen=True, eq=False)
class Projected:
    """Projections that no longer change, and the sums of moments in their coordinates."""

    views: Views
    whitening: Whitening
    total: streams.Total | None = None

    def add(self, rows: Any, weights: Any, lift: Views) -> "Projected":
        """The same with the sums of more rows."""
        more = whitened_total(rows, self.views, self.whitening, weights, lift)
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
    lift: Views  # the maps in which components are wanted
    domains: list[Domain | None]
    subspaces: tuple[Expansion, ...]  # one a view
    steps: StepSizes
    pilot_size: int  # rows that the subspaces are learnt from
    n_seen: int = 0  # of those
    current: Projected | None = None
    upcoming: Projected | None = None  # better projections, whose sums have fewer rows so far

    def add(self, rows: np.ndarray, weights: Any, reference: int | None) -> "StreamFit":
        """The state after one more batch."""
        fit = self._learn(rows)
        first, learning = self.current is None, fit is not self
        if first or (learning and fit.n_seen >= fit.pilot_size):
            frozen = fit._freeze(rows, weights, reference)
            fit = replace(fit, current=frozen) if first else replace(fit, upcoming=frozen)
        assert fit.current is not None
        current, upcoming = fit.current.add(rows, weights, fit.lift), fit.upcoming
        if upcoming is not None:
            upcoming = upcoming.add(rows, weights, fit.lift)
            if 2 * upcoming.weight >= current.weight:  # as many rows since the pilot as in it
                current, upcoming = upcoming, None
        return replace(fit, current=current, upcoming=upcoming)

    def _learn(self, rows: np.ndarray) -> "StreamFit":
        """Steps of the subspaces through the rows that have all views, until the pilot is full."""
        subspaces, seen = self.subspaces, self.n_seen
        if seen >= self.pilot_size:
            return self
        for (part,) in streams.once(_whole(rows, self.columns), BATCH):
            views = [part[:, columns] for columns in self.columns]
            subspaces = cross_step(subspaces, views, self.steps(seen, len(part)), BLOCKS)
            seen += len(part)
        return replace(self, subspaces=subspaces, n_seen=seen)

    def _freeze(self, rows: np.ndarray, weights: Any, reference: int | None) -> Projected:
        views = Views(self.columns, self.subspaces)
        return Projected(views, whiten(pair_moments(rows, views, weights), self.rank, reference))

    def solve(self, settings: SpectralSettings, rng: np.random.Generator) -> tuple[SpectralFit, Estimate]:
        """The classes of all rows summed so far."""
        assert self.current is not None
        assert self.current.total is not None
        moments = as_moments(self.current.total)
        lifts = tuple(self.lift.from_raw(t, moment) for t, moment in enumerate(moments.lifts))
        found = solve(self.current.whitening, moments._replace(lifts=lifts), settings.solver, rng)
        return found, as_estimate(Spectral(found, self.lift, self.lift), self.blocks, self.domains)


def start_stream(problem: Problem, density_bandwidth: Any, pilot_size: int) -> StreamFit:
    """The state before the first batch is added: maps, domains and subspaces that are read off it."""
    maps = fit_views(problem.pilot, problem.columns, problem.prototypes, problem.rng, problem.blocks)
    kernels = [getattr(phi, "kernel_", phi) for phi in maps.features]
    for kernel in kernels:
        check_shift_invariant("partial_fit", kernel)
    lift = density_maps(problem.pilot, maps, problem.blocks, np.ones((len(problem.pilot), 1)), density_bandwidth)
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
    domains = domains_of(problem, lift)
    return StreamFit(problem.columns, problem.blocks, problem.rank, lift, domains, subspaces, steps, pilot_size)


def _whole(rows: np.ndarray, columns: Columns) -> np.ndarray:
    """The rows that lack nothing."""
    used = [j for view in columns for j in view]
    return rows[~np.isnan(rows[:, used]).any(axis=1)]
