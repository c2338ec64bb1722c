"""Independent views or copulas: the choice by held-out likelihood and by the stability of the partition."""

import warnings
from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from latentviews._sentences import counted
from latentviews.core.tables import Columns, FewViewsError
from latentviews.metrics import adjusted_rand, label_accuracy
from latentviews.mixtures.dependence.consensus import WIDEST, point_masses
from latentviews.mixtures.dependence.refuting import p_value_of_independence
from latentviews.mixtures.problem import Problem, classes_of

STABLE = 0.5  # adjusted Rand index between partitions of one way below which it is unstable, …
KEPT = 0.95  # … unless so large a share of the rows stays in its class: the index of one class and a few rows is low
SAME = 0.95  # adjusted Rand index from which both ways lead to the same classes
ALIKE = 0.05  # log-likelihoods per row that differ by less do not decide
NARROWER = 0.1  # the same where independent views are ahead, whose narrower kernels alone gain some of it, but …
STABLER = 0.1  # … copulas' partitions agree by so much more, or …
REFUTED = 1e-3  # … a p-value below this says that views are not independent inside the classes
FORCED = (
    "Views may depend on each other inside classes (copulas): two views would not determine classes inside which they "
    "are independent."
)
SPREAD = " For these likelihoods rows at values that many rows have exactly were spread out."


class DependenceChoice(NamedTuple):
    """Which of two fits was taken, and what that rests on.

    Attributes
    ----------
    taken : {"independence", "copula"}
    independence : float
        Log-likelihood of held-out rows per row, of independent views fitted to the other half.
    copula : float
        The same of copulas.
    agreement : float
        Of the partitions of copulas' starts.
    stability : pair of floats
        Of both: adjusted Rand index with the partition of the fit to half of the rows.
    between : float
        Adjusted Rand index of the two partitions.
    sentence : str
        What was taken, and why.
    p_value : float
        Of independence inside the classes of independent views, on held-out rows.

    Examples
    --------
    >>> from latentviews import MultiViewMixture
    >>> from latentviews.datasets import make_multiview
    >>> X = make_multiview(100, 2, random_state=0).X
    >>> choice = MultiViewMixture(2, dependence="auto", random_state=0).fit(X).dependence_choice_
    >>> choice.taken, choice.sentence.partition(",")[0]
    ('independence', 'Views are taken as independent inside classes')
    """

    taken: str
    independence: float
    copula: float
    agreement: float
    stability: tuple[float, float]
    between: float
    sentence: str
    p_value: float = np.nan


class HeldOut(NamedTuple):
    """What a fit to half of the rows says."""

    likelihood: float  # the mean log-likelihood of the other half
    stability: float  # how well the partition agrees with that of all rows
    kept: float = 0.0  # the share of rows in the same class
    p_value: float = 1.0  # of independence inside its classes, where it assumes that


class TriedFit(NamedTuple):
    """One of two fits to the same rows."""

    model: Any
    problem: Problem
    told: list[warnings.WarningMessage]


Fit = Callable[..., Problem]  # of a model, rows, labels and weights


def choose_way(model: Any, fit: Fit, rows: Any, labels: Any, weights: Any) -> tuple[TriedFit, DependenceChoice]:
    """Fit with independent views and with copulas, and take the one under which held-out rows are likelier.

    Independence assumes more, so it is to be the likelier by a margin: where it is hardly so, it is not taken if
    held-out rows refute it, and else that way is taken whose partition changes less with half of the rows. Where both
    are about as likely and lead to the same classes, independence is taken. Independent views whose partition is
    unstable are not taken where that of copulas is stable; the converse holds only where both are about as likely,
    since classes of views that are not independent may be found again and again, and be wrong. Where copulas cannot be
    had, independence is taken. Two views, which would not determine classes inside which they are independent, are left
    to copulas.
    """
    try:
        plain = _way(model, None, fit, rows, labels, weights)
    except FewViewsError:
        copulas = _way(model, "copula", fit, rows, labels, weights)
        agreement = float(copulas.model.agreement_)
        return copulas, DependenceChoice("copula", np.nan, np.nan, agreement, (np.nan, np.nan), np.nan, FORCED)
    try:
        copulas = _way(model, "copula", fit, rows, labels, weights)
    except ValueError as error:
        nothing = (np.nan, np.nan, np.nan, (np.nan, np.nan), np.nan)
        return plain, DependenceChoice("independence", *nothing, f"Views are taken as independent: {error}")
    of_plain, of_copulas = (_held_out(way, fit) for way in (plain, copulas))
    between = adjusted_rand(*(_partition(way.model, plain.problem.pilot) for way in (plain, copulas)))
    stability = of_plain.stability, of_copulas.stability
    numbers = (of_plain.likelihood, of_copulas.likelihood, float(copulas.model.agreement_), stability, between)
    counts = plain.model.n_components_, copulas.model.n_components_
    taken, sentence = _judged(*numbers, of_plain.p_value, counts, of_copulas.kept)
    pilot = plain.problem.pilot
    if not np.array_equal(without_points(pilot, plain.problem.columns), pilot, equal_nan=True):
        sentence += SPREAD
    choice = DependenceChoice(taken, *numbers, sentence, of_plain.p_value)
    return (copulas if taken == "copula" else plain), choice


def _judged(
    independence: float,
    copula: float,
    agreement: float,
    stability: tuple[float, float],
    between: float,
    p_value: float = 1.0,
    counts: tuple[int, int] = (2, 2),
    kept: float = 0.0,
) -> tuple[str, str]:
    """What is taken, and why."""
    plural = [counted(n, "class", "classes") for n in counts]
    found = f" Copulas lead to {plural[1]}, independent views to {plural[0]}." if counts[0] != counts[1] else ""
    numbers = (
        f"log-likelihood of held-out rows {copula:.2f} per row with copulas and {independence:.2f} without; half of "
        f"the rows lead to the same classes to {stability[1]:.2f} with copulas and {stability[0]:.2f} without, other "
        f"starts of copulas to {agreement:.2f}, and the two ways to {between:.2f} (adjusted Rand index).{found}"
    )
    unstable = stability[0] < STABLE <= min(agreement, stability[1])
    shaky = 0 <= copula - independence < ALIKE and stability[1] < STABLE <= stability[0] and kept < KEPT
    if abs(copula - independence) < ALIKE and between >= SAME and not unstable:
        taken, why = False, "about as likely as the other, which leads to the same classes"
    elif 0 <= independence - copula < NARROWER and p_value < REFUTED:
        refuted = f"p = {p_value:.1g}" if p_value > 1e-12 else "p < 1e-12"
        taken, why = True, f"hardly less likely than independence, which held-out rows refute ({refuted})"
    elif 0 <= independence - copula < ALIKE:
        taken, why = stability[1] > stability[0], "about as likely as the other, and more stable"
    elif 0 <= independence - copula < NARROWER and stability[1] > stability[0] + STABLER:
        taken, why = True, "hardly less likely than the other, and far more stable"
    elif shaky:
        taken, why = False, "about as likely as copulas, whose classes are unstable"
    else:
        taken, why = copula > independence, "the likelier model"
    if unstable and not taken:
        taken, why = True, "since classes of independent views are unstable"
    if taken:
        return "copula", f"Views may depend on each other inside classes (copulas), {why}: {numbers}"
    return "independence", f"Views are taken as independent inside classes, {why}: {numbers}"


def _way(model: Any, dependence: Any, fit: Fit, rows: Any, labels: Any, weights: Any) -> TriedFit:
    own = copy(model)
    own.dependence = dependence
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        problem = fit(own, rows, labels, weights)
    return TriedFit(own, problem, told)


def _held_out(way: TriedFit, fit: Fit) -> HeldOut:
    """How a fit to half of the pilot does on the other half."""
    problem, pilot = way.problem, without_points(way.problem.pilot, way.problem.columns)
    order = np.random.default_rng(0).permutation(len(pilot))
    fitted, held = order[::2], order[1::2]
    half = _fit_to(way, fit, pilot, fitted, None)
    if half is None:
        return HeldOut(-np.inf, 0.0)
    judging = None if problem.pilot_weights is None else problem.pilot_weights[held]
    likelihood = float(np.average(half.score_samples(pilot[held]), weights=judging))
    p_value = 1.0
    if half.dependent_ is None:
        shares = classes_of(half).posteriors(pilot[held]) * (1.0 if judging is None else judging[:, None])
        p_value = p_value_of_independence(pilot[held], shares, problem.columns)
    if not np.array_equal(pilot, problem.pilot, equal_nan=True):
        half = _fit_to(way, fit, problem.pilot, fitted, way.model.point_masses) or half  # classes of rows as they are
    both = [_partition(one, problem.pilot) for one in (way.model, half)]
    return HeldOut(likelihood, adjusted_rand(*both), label_accuracy(*both), p_value)


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


def without_points(table: np.ndarray, columns: Columns) -> np.ndarray:
    """Rows with those at point masses spread as wide as copulas' kernels.

    Density at a point has no bound, and the way with the narrower kernels there would be the likelier one, whatever
    the rest of the rows said.
    """
    rng, rows = np.random.default_rng(0), table.copy()
    for column in {column for view in columns for column in view}:
        x = rows[:, column]
        width = WIDEST * float(np.nanstd(x))
        for value in point_masses(x[~np.isnan(x)], width):
            tied = np.flatnonzero(x == value)
            x[tied] += width * rng.normal(size=len(tied))
    return rows


def _partition(model: Any, rows: np.ndarray) -> np.ndarray:
    return classes_of(model).log_joint(rows).argmax(axis=1)
