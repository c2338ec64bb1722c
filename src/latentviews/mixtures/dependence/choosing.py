"""Independent views or copulas: the choice by held-out likelihood and by the stability of the partition."""

import warnings
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from latentviews.core.features.point_masses import which_mass
from latentviews.core.kernels.bandwidths import resolution
from latentviews.core.point_masses import masses_of
from latentviews.metrics import adjusted_rand
from latentviews.mixtures.dependence.copulas import fit_copulas
from latentviews.mixtures.problem import Problem, classes_of

STABLE = 0.5  # adjusted Rand index between partitions by copulas below which they are not taken
ALIKE = 0.05  # log-likelihoods per row, and stabilities, that differ by less do not decide
WIDTHS = (1.0, 0.5, 0.25)  # of copulas' margins, at which held-out rows are judged
SPREAD = 0.2  # of point masses then, in standard deviations of their column: wide beside the narrowest of these widths


class DependenceChoice(NamedTuple):
    """Which of two fits was taken, and what that rests on."""

    taken: str  # "independence" or "copula"
    independence: float  # log-likelihood of held-out rows per row, fitted to the other half
    copula: float
    agreement: float  # of the partitions of copulas' starts
    stability: tuple[float, float]  # of both: adjusted Rand index with the partition of the fit to half of the rows
    between: float  # adjusted Rand index of the two partitions
    sentence: str


class TriedFit(NamedTuple):
    """One of two fits to the same rows."""

    model: Any
    problem: Problem
    told: list[warnings.WarningMessage]


Fit = Callable[..., Problem]  # of a model, rows, labels and weights


def choose_way(model: Any, fit: Fit, rows: Any, labels: Any, weights: Any) -> tuple[TriedFit, DependenceChoice]:
    """Fit with independent views and with copulas, and take the one under which held-out rows are likelier.

    Where both are about as likely, the one whose partition changes less with half of the rows is taken. Copulas whose
    partition is unstable are not taken; where copulas cannot be had, independence is.
    """
    plain = _way(model, None, fit, rows, labels, weights)
    try:
        copulas = _way(model, "copula", fit, rows, labels, weights)
    except ValueError as error:
        nothing = (np.nan, np.nan, np.nan, (np.nan, np.nan), np.nan)
        return plain, DependenceChoice("independence", *nothing, f"Views are taken as independent: {error}")
    spread = without_ties(plain.problem.pilot, masses_of(plain.model))
    (independence, copula), stability = zip(*(_held_out(way, fit, spread) for way in (plain, copulas)), strict=True)
    between = adjusted_rand(*(_partition(way.model, plain.problem.pilot) for way in (plain, copulas)))
    numbers = (independence, copula, float(copulas.model.agreement_), stability, between)
    taken, sentence = _judged(*numbers)
    return (copulas if taken == "copula" else plain), DependenceChoice(taken, *numbers, sentence)


def _judged(
    independence: float, copula: float, agreement: float, stability: tuple[float, float], between: float
) -> tuple[str, str]:
    """What is taken, and why."""
    numbers = (
        f"log-likelihood of held-out rows {copula:.2f} per row with copulas and {independence:.2f} without; half of "
        f"the rows lead to the same classes to {stability[1]:.2f} with copulas and {stability[0]:.2f} without, other "
        f"starts of copulas to {agreement:.2f}, and the two ways to {between:.2f} (adjusted Rand index)."
    )
    alike = abs(copula - independence) < ALIKE
    why = "about as likely as the other, and no less stable" if alike else "the likelier model"
    if not (stability[1] > stability[0] + ALIKE if alike else copula > independence):
        return "independence", f"Views are taken as independent inside classes, {why}: {numbers}"
    if min(agreement, stability[1]) < STABLE:
        return "independence", f"Views are taken as independent inside classes, since copulas are unstable: {numbers}"
    return "copula", f"Views may depend on each other inside classes (copulas), {why}: {numbers}"


def _way(model: Any, dependence: Any, fit: Fit, rows: Any, labels: Any, weights: Any) -> TriedFit:
    own = copy(model)
    own.dependence = dependence
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        problem = fit(own, rows, labels, weights)
    return TriedFit(own, problem, told)


def without_ties(table: np.ndarray, masses: Mapping[int, np.ndarray]) -> np.ndarray:
    """The rows with point masses spread out a little, as if they were none.

    Copulas smooth them, so that only of such rows both ways have a density with respect to the same measure.
    """
    if not masses:
        return table
    table, rng = table.copy(), np.random.default_rng(0)
    for column, values in masses.items():
        x = table[:, column]
        noise = SPREAD * np.nanstd(x) * rng.normal(size=len(x))
        table[:, column] = np.where(which_mass(x, values) < 0, x, x + noise)
    return table


def _held_out(way: TriedFit, fit: Fit, pilot: np.ndarray) -> tuple[float, float]:
    """The mean log-likelihood of half of the pilot under a fit to the other, and how well their partitions agree."""
    problem, order = way.problem, np.random.default_rng(0).permutation(len(pilot))
    fitted, held = order[::2], order[1::2]
    weights, judging = (None if problem.pilot_weights is None else problem.pilot_weights[i] for i in (fitted, held))
    half = _fit_to(way, fit, pilot, fitted, None)
    if half is None:
        return -np.inf, 0.0
    scores = _scores(half, pilot[fitted], pilot[held], weights)
    likelihood = max(float(np.average(each, weights=judging)) for each in scores)
    if pilot is not problem.pilot and half.dependent_ is None:  # partitions are those of rows as they are
        half = _fit_to(way, fit, problem.pilot, fitted, way.model.point_masses) or half
    return likelihood, adjusted_rand(*(_partition(one, problem.pilot) for one in (way.model, half)))


def _fit_to(way: TriedFit, fit: Fit, pilot: np.ndarray, some: np.ndarray, point_masses: Any) -> Any:
    """The same model fitted to some rows; None where they are too few."""
    problem, half = way.problem, copy(way.model)
    half.views, half.n_components, half.point_masses = problem.columns, way.model.n_components_, point_masses
    labels, weights = (None if a is None else a[some] for a in (problem.pilot_labels, problem.pilot_weights))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit(half, pilot[some], labels, weights)
    except ValueError:
        return None
    return half


def _scores(half: Any, fitted: np.ndarray, held: np.ndarray, weights: np.ndarray | None) -> list[np.ndarray]:
    """The log-densities of held-out rows; of copulas with margins of several widths.

    The width at which copulas find classes is one for all components and wide for a density: beside independent views,
    each with a width of its own, that alone would decide.
    """
    if half.dependent_ is None:
        return [half.score_samples(held)]
    mixture = half.dependent_.mixture
    grids = mixture.margins.grids
    posteriors = mixture.expected(grids.cells(fitted)).posteriors
    units = np.array([resolution(x[~np.isnan(x)]) for x in fitted[:, grids.columns].T])
    steps = np.diff(grids.points[:, :2], axis=1)[:, 0]  # a kernel narrower than that has another mass on the grid
    least = np.minimum(np.maximum(units, steps), grids.bandwidths)
    found = []
    for factor in WIDTHS:
        own = replace(grids, bandwidths=np.maximum(factor * grids.bandwidths, least))
        refined = fit_copulas(own, fitted, posteriors, weights, max_iter=1).mixture
        found.append(refined.expected(own.cells(held)).log_density)
    return found


def _partition(model: Any, rows: np.ndarray) -> np.ndarray:
    return classes_of(model).log_joint(rows).argmax(axis=1)
