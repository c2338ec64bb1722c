"""The bandwidth under which held-out rows are likeliest: the papers' own choice."""

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import logsumexp

from latentviews._validation import UnsupportedError
from latentviews.mixtures.estimation import SpectralSettings, scaled, spectral_estimate, spectral_steps
from latentviews.mixtures.problem import Problem

FOLDS = 5
LEAST, MOST = 2.0**-6, 2.0**4  # multiples of the width that the kernel's own rule says
FINE = 2.0 ** np.array([-0.5, 0.5])  # of the best power of two


def likeliest_maps(problem: Problem, settings: SpectralSettings, density_bandwidth: Any) -> list[Any]:
    """The feature maps, as wide as five-fold cross-validation of the model's log-likelihood prefers.

    The width of every view is the same multiple of what its kernel's rule says (Song et al. 2014, section 6). Rows are
    those of the pilot.
    """
    order = np.random.default_rng(0).permutation(len(problem.pilot))
    folds = [order[i::FOLDS] for i in range(min(FOLDS, len(order)))]

    def maps(factor: float) -> list[Any]:
        return [scaled(phi, problem, t, factor) for t, phi in enumerate(problem.prototypes)]

    def likelihood(factor: float) -> float:
        tried = replace(problem, prototypes=maps(factor))
        return sum(_held_out(tried, settings, density_bandwidth, fold) for fold in folds)

    scores = {1.0: likelihood(1.0)}
    for step in (0.5, 2.0):  # away from the rule's width as long as rows become likelier
        factor = step
        while LEAST <= factor <= MOST:
            scores[factor] = likelihood(factor)
            if scores[factor] < scores[factor / step]:
                break
            factor *= step
    best = max(scores, key=lambda factor: scores[factor])
    if np.isinf(scores[best]):
        raise UnsupportedError(
            f'bandwidth="likelihood" found no width at which the moments support {problem.rank} classes in every fold; '
            "ask for fewer classes, or give the bandwidth."
        )
    scores |= {best * factor: likelihood(best * factor) for factor in FINE}
    return maps(max(scores, key=lambda factor: scores[factor]))


def _held_out(problem: Problem, settings: SpectralSettings, density_bandwidth: Any, fold: np.ndarray) -> float:
    """The log-likelihood of some rows under the spectral estimate of the others; -inf where there is none."""
    kept = np.setdiff1d(np.arange(len(problem.pilot)), fold)
    rows, weights = problem.pilot, problem.pilot_weights
    some = None if weights is None else weights[kept]
    others = replace(problem, data=rows[kept], weights=some, labels=None, pilot=rows[kept], pilot_weights=some)
    others = replace(others, pilot_labels=None, allowed=None, partial=False)
    try:
        spectral = spectral_steps(others, settings, others.prototypes, density_bandwidth, all_rows=False)
        estimate = spectral_estimate(others, spectral)
    except UnsupportedError:
        return -np.inf
    counts = 1.0 if weights is None else weights[fold]
    return float(np.sum(counts * logsumexp(estimate.log_joint(rows[fold]), axis=1)))
