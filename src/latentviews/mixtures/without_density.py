"""Classes from views without density: the spectral estimate, and steps on the embeddings from it."""

from typing import Any

import numpy as np

from latentviews._numbers import TINY, as_shares
from latentviews._progress import Report
from latentviews.densities.reestimation import reestimate
from latentviews.mixtures.estimation import (
    FitPath,
    FoundClasses,
    SpectralSettings,
    domains_of,
    spectral_estimate,
    spectral_steps,
    spectral_summary,
)
from latentviews.mixtures.problem import Estimate, Problem

STEPS = 100  # re-estimations of embeddings at most
STILL = 1e-3  # posteriors that move less a row have settled


def functional_classes(problem: Problem, settings: SpectralSettings, bandwidth: Any, report: Report) -> FoundClasses:
    """The spectral estimate, then embeddings and the functionals of their classes in turn, until posteriors stay.

    For views without density, which no likelihood can judge.
    """
    spectral = spectral_steps(problem, settings, problem.prototypes, bandwidth, all_rows=True)
    estimate, domains = spectral_estimate(problem, spectral), domains_of(problem, spectral.maps)

    def judged(table: np.ndarray, allowed: np.ndarray | None = None) -> np.ndarray:
        shares = estimate.posteriors(table)
        return shares if allowed is None else as_shares(shares * allowed + TINY * allowed, axis=1)

    estimate = estimate.take(problem.name_classes(estimate.posteriors))
    before, n_iter, converged = judged(problem.pilot, problem.allowed), 0, problem.rank == 1
    while n_iter < STEPS and not converged:
        rows = problem.pilot, before, spectral.maps, problem.blocks, domains, problem.pilot_weights
        estimate = Estimate(*reestimate(*rows), problem.columns)
        after, n_iter = judged(problem.pilot, problem.allowed), n_iter + 1
        moved, before = float(np.abs(after - before).sum(axis=1).mean()), after
        converged = moved < STILL or report("polish", n_iter, -moved)
    if problem.partial:
        found = reestimate(problem.data, judged, spectral.maps, problem.blocks, domains, problem.class_weights)
        estimate = Estimate(*found, problem.columns)
    return FoundClasses(estimate, FitPath(spectral_summary(spectral.fit), np.nan, n_iter, converged))
