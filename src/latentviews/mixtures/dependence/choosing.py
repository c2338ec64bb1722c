"""Independent views or copulas: the choice by held-out likelihood and by the stability of the partition."""

import warnings
from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from latentviews.mixtures.dependence.merging import adjusted_rand
from latentviews.mixtures.problem import Problem, classes_of

STABLE = 0.5  # adjusted Rand index between partitions by copulas below which they are not taken


class DependenceChoice(NamedTuple):
    """Which of two fits was taken, and what that rests on."""

    taken: str  # "independence" or "copula"
    independence: float  # log-likelihood of held-out rows per row, fitted to the other half
    copula: float
    agreement: float  # of the partitions of copulas' starts
    stability: float  # of copulas' partition: adjusted Rand index with that of the fit to half of the rows
    between: float  # adjusted Rand index of the two partitions
    sentence: str


class Way(NamedTuple):
    """One of two fits to the same rows."""

    model: Any
    problem: Problem
    told: list[warnings.WarningMessage]


Fit = Callable[..., Problem]  # of a model, rows, labels and weights


def choose_way(model: Any, fit: Fit, rows: Any, labels: Any, weights: Any) -> tuple[Way, DependenceChoice]:
    """Fit with independent views and with copulas, and take the one under which held-out rows are likelier.

    Copulas whose starts disagree on the partition are not taken; where copulas cannot be had, independence is.
    """
    plain = _way(model, None, fit, rows, labels, weights)
    try:
        copulas = _way(model, "copula", fit, rows, labels, weights)
    except ValueError as error:
        nothing = (np.nan,) * 5
        return plain, DependenceChoice("independence", *nothing, f"Views are taken as independent: {error}")
    (independence, _), (copula, stability) = (_held_out(way, fit) for way in (plain, copulas))
    between = adjusted_rand(*(_partition(way.model, plain.problem.pilot) for way in (plain, copulas)))
    numbers = (independence, copula, float(copulas.model.agreement_), stability, between)
    taken, sentence = _judged(*numbers)
    return (copulas if taken == "copula" else plain), DependenceChoice(taken, *numbers, sentence)


def _judged(independence: float, copula: float, agreement: float, stability: float, between: float) -> tuple[str, str]:
    """What is taken, and why."""
    numbers = (
        f"log-likelihood of held-out rows {copula:.2f} per row with copulas and {independence:.2f} without; copulas' "
        f"partition agrees to {agreement:.2f} with those of other starts, to {stability:.2f} with that of half of the "
        f"rows, and to {between:.2f} with that of independent views (adjusted Rand index)."
    )
    if not copula > independence:
        return "independence", f"Views are taken as independent inside classes, the likelier model: {numbers}"
    if min(agreement, stability) < STABLE:
        return "independence", f"Views are taken as independent inside classes, since copulas are unstable: {numbers}"
    return "copula", f"Views may depend on each other inside classes (copulas), the likelier model: {numbers}"


def _way(model: Any, dependence: Any, fit: Fit, rows: Any, labels: Any, weights: Any) -> Way:
    own = copy(model)
    own.dependence = dependence
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        problem = fit(own, rows, labels, weights)
    return Way(own, problem, told)


def _held_out(way: Way, fit: Fit) -> tuple[float, float]:
    """The mean log-likelihood of half of the pilot under a fit to the other, and how well their partitions agree."""
    problem, half = way.problem, copy(way.model)
    half.views, half.n_components = problem.columns, way.model.n_components_
    order = np.random.default_rng(0).permutation(len(problem.pilot))
    fitted, held = order[::2], order[1::2]
    labels, weights = (None if a is None else a[fitted] for a in (problem.pilot_labels, problem.pilot_weights))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit(half, problem.pilot[fitted], labels, weights)
    except ValueError:  # too few rows for a half
        return -np.inf, 0.0
    judging = None if problem.pilot_weights is None else problem.pilot_weights[held]
    likelihood = float(np.average(half.score_samples(problem.pilot[held]), weights=judging))
    return likelihood, adjusted_rand(*(_partition(one, problem.pilot) for one in (way.model, half)))


def _partition(model: Any, rows: np.ndarray) -> np.ndarray:
    return classes_of(model).log_joint(rows).argmax(axis=1)
