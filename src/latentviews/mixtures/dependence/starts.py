"""Guesses of the components that classes of dependent views are made of."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from sklearn.mixture import GaussianMixture

from latentviews._clusters import cluster_posteriors, in_one_thread, kmeans
from latentviews._validation import UnsupportedError
from latentviews.mixtures.estimation import Spectral, SpectralSettings, spectral_estimate, spectral_steps
from latentviews.mixtures.problem import Problem

START_ROWS = 5000  # rows that a start, and EM from it, are fitted to
GAUSSIAN_ROWS = 2500  # rows that a Gaussian mixture is fitted to


class Start(NamedTuple):
    """A guess of the posteriors of some rows."""

    name: str
    rows: np.ndarray  # (m,), their numbers in the pilot
    posteriors: np.ndarray  # (m, J)


def dependence_starts(
    problem: Problem,
    rows: np.ndarray,
    n_parts: int,
    n_starts: int,
    moments: Spectral | None,
    weights: np.ndarray | None,
    before: int = 0,
) -> Iterator[Start]:
    """Gaussian mixtures and k-means, each on rows of its own, and the spectral estimate; ``before`` were others.

    Rows are drawn with their weights as chances, so that those drawn need no weights.
    """
    chances = None if weights is None else weights / weights.sum()
    again = problem.pilot_weights is not None  # a row may be drawn twice
    size = min(len(rows) if again or weights is None else int(np.count_nonzero(weights)), START_ROWS)

    def draw() -> np.ndarray:
        return problem.rng.choice(len(rows), size, replace=again, p=chances)

    if n_parts == 1:
        yield Start("one part", draw(), np.ones((size, 1)))
        return
    for trial in range(before + 1, before + n_starts + 1):
        for name, guess in (("Gaussian mixture", gaussian_posteriors), ("k-means", kmeans_parts)):
            some = draw()
            yield Start(f"{name} {trial}", some, guess(rows[some], n_parts, int(problem.rng.integers(2**31))))
    if moments is not None:
        some = draw()
        yield Start("spectral", some, spectral_estimate(problem, moments).posteriors(problem.pilot[some]))


def gaussian_posteriors(
    rows: np.ndarray, n_parts: int, seed: int, kind: str = "full", regular: float = 1e-3
) -> np.ndarray:
    """Posteriors of the parts of a Gaussian mixture, in columns of variance about one."""
    model = GaussianMixture(n_parts, covariance_type=kind, reg_covar=regular, max_iter=60, random_state=seed)
    with in_one_thread():  # its own start is k-means; a start need not converge
        return model.fit(rows[:GAUSSIAN_ROWS]).predict_proba(rows)


def kmeans_parts(rows: np.ndarray, n_parts: int, seed: int) -> np.ndarray:
    """Posteriors of clusters."""
    return cluster_posteriors(kmeans(rows, n_parts, seed), rows)


def spectral_parts(
    problem: Problem, n_parts: int, settings: SpectralSettings
) -> tuple[Spectral | None, np.ndarray | None]:
    """The papers' estimate with as many classes as parts, None where the moments do not carry so many; a spectrum."""
    if len(problem.columns) < 3:  # the third moment takes three views
        return None, None
    some = problem.rng.permutation(len(problem.pilot))[:START_ROWS]
    weights = None if problem.pilot_weights is None else problem.pilot_weights[some]
    few = problem.pilot[some]
    smaller = replace(problem, data=few, weights=weights, pilot=few, pilot_weights=weights, rank=n_parts)
    try:
        found = spectral_steps(smaller, settings, problem.prototypes, "isj", all_rows=False)
    except UnsupportedError as error:
        return None, error.spectrum
    return found, found.fit.whitening.spectrum
