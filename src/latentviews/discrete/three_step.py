r"""Three steps: classes, rows assigned to them, and what the assignment goes with, corrected for wrong assignments.

Vermunt (2010). Assigned classes w are wrong at a known rate D_cs = P(w = s | class c), which the posteriors of the rows
tell, and two corrections use it. BCH (Bolck, Croon & Hagenaars 2004) gives a row the weights v_i = w_i D⁻¹ in the
classes, whose means are those of the classes though some are negative; ML takes w for an answer of the classes with the
distribution D. Standard errors are those of all estimating equations together (Bakk, Oberski & Vermunt 2014): of the
last step, of D, and of the first step where its model is known. They are right to first order. `bootstrap_covariance`
takes all steps again on resampled rows, and so also sees that other rows would have drawn the line between classes
elsewhere.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from latentviews._numbers import TINY, as_shares, generator_of
from latentviews._parameters import Constraint, OneOf, Such
from latentviews._sentences import warn_user
from latentviews._validation import IdentifiabilityWarning, check_count, check_weights
from latentviews.discrete.expectation import ClassParameters, accelerated_em
from latentviews.discrete.inference import (
    Curvature,
    Fitted,
    class_scores,
    curvature,
    expected_scores,
    posteriors_of_patterns,
)

STEP = 1e-5  # of differences in the matrix of errors
SINGULAR = 1e-8  # a classification matrix with a smaller singular value is not inverted
REFIT_STEPS, REFIT_TOL = 5000, 1e-7  # of EM for the first step on a resample
MARGINS = 0.01  # of the start of that: off the border, which EM would not leave


class EmptyClassError(ValueError):
    """No row is assigned to a class, so that nothing can be said of it."""


@dataclass(frozen=True, eq=False)
class ClassAssignment:
    """Rows assigned to classes by their posteriors, and how often that is wrong."""

    assigned: np.ndarray  # (n, k), one in the most probable class, or the posteriors themselves
    errors: np.ndarray  # (k, k), P(assigned to s | class c)
    weights: np.ndarray  # (n,) of the rows
    posteriors: np.ndarray  # (n, k)
    assignment: str = "modal"  # or "proportional"
    first_step: "FirstStep | None" = None  # the model behind the posteriors, where it is known

    _parameters: ClassVar[dict[str, Constraint]] = {
        "correction": Such(lambda value: value in (None, "ML", "BCH"), '"ML", "BCH" or None'),
        "assignment": OneOf(lambda: ("modal", "proportional")),
    }

    def bch_weights(self) -> np.ndarray:
        """What every row counts for in every class, (n, k): w_i D⁻¹."""
        if np.linalg.svd(self.errors, compute_uv=False)[-1] < SINGULAR:
            raise EmptyClassError(
                "BCH divides by the matrix of classification errors, and it is singular: some class is never assigned. "
                'Use fewer classes, assignment="proportional", or correction="ML".'
            )
        return self.assigned @ np.linalg.inv(self.errors)

    def shares(self, correction: str | None) -> np.ndarray:
        """What rows count for in the classes without a likelihood of the assignment, times their weights."""
        return self.weights[:, None] * (self.assigned if correction is None else self.bch_weights())

    def resampled(self, counts: np.ndarray) -> "ClassAssignment":
        """The same with every row so many times: the first step is taken again where it is known."""
        weights, first = self.weights * counts, self.first_step
        if first is None:
            return assigned_rows(self.posteriors, weights, self.assignment)
        first = first.refitted(weights)
        return assigned_rows(first.posteriors, weights, self.assignment, first)


def assign(posteriors: Any, correction: Any, assignment: Any, sample_weight: Any) -> ClassAssignment:
    """Rows in classes, with what was asked for checked."""
    for name, value in (("correction", correction), ("assignment", assignment)):
        ClassAssignment._parameters[name].check(name, value)
    first_step = posteriors if isinstance(posteriors, FirstStep) else None
    r = _checked_posteriors(posteriors if first_step is None else first_step.posteriors)
    weights = check_weights(sample_weight, r)
    return assigned_rows(r, np.ones(len(r)) if weights is None else weights, assignment, first_step)


def assigned_rows(
    r: np.ndarray, weights: np.ndarray, assignment: str, first_step: "FirstStep | None" = None
) -> ClassAssignment:
    """Rows in classes, and the matrix of classification errors D = diag(Σ r)⁻¹ Rᵀ W."""
    assigned = np.eye(r.shape[1])[r.argmax(axis=1)] if assignment == "modal" else r
    errors = as_shares((weights[:, None] * r).T @ assigned, axis=1)
    return ClassAssignment(assigned, errors, weights, r, assignment, first_step)


def _checked_posteriors(posteriors: Any) -> np.ndarray:
    """Posteriors as an array (n, k) whose rows sum to one."""
    if hasattr(posteriors, "fit"):
        raise TypeError(
            f"posteriors are numbers, one row per row of the data; got {type(posteriors).__name__}. Pass what its "
            "predict_proba, or first_step where it has one, gives of the rows."
        )
    r = np.asarray(posteriors, dtype=float)
    if r.ndim != 2 or r.shape[1] < 2 or not np.allclose(r.sum(axis=1), 1.0, atol=1e-6) or np.any(r < -1e-9):
        raise ValueError(
            "posteriors must be the probabilities of two or more classes, one row per row of the data and summing to "
            f"one, as predict_proba gives them; got shape {r.shape}."
        )
    return r


def check_length(name: str, got: int, expected: int) -> None:
    """Refuse a table that is not as long as the posteriors."""
    if got != expected:
        raise ValueError(f"{name} needs one row per row of posteriors, {expected}; got {got}.")


@dataclass(frozen=True, eq=False)
class FirstStep:
    """Posteriors of rows, and how they depend on the estimates of a `LatentClass`, for what is built on them.

    Attributes
    ----------
    fit : Fitted
        The parameters of the fit, and the distinct answers.
    patterns : array of shape (n,)
        The place among these of the answers of every row.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import LatentClass, distal_outcome
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((300, 4)) < np.where(rng.random((300, 1)) < 0.3, 0.9, 0.1)
    >>> model = LatentClass(2, random_state=0).fit(X)
    >>> first = model.first_step(X)
    >>> bool(np.allclose(first.posteriors, model.predict_proba(X)))
    True
    >>> distal_outcome(first, X.sum(axis=1)).means.shape
    (1, 2)
    """

    fit: Fitted
    patterns: np.ndarray

    @property
    def posteriors(self) -> np.ndarray:
        """P(class | row), (n, k)."""
        return posteriors_of_patterns(self.fit)[self.patterns]

    @cached_property
    def curvature(self) -> Curvature:
        """How well the estimates are known."""
        return curvature(self.fit)

    def refitted(self, weights: np.ndarray) -> "FirstStep":
        """The maximum near this one of rows that count so much, so that classes keep their numbers.

        Parameters
        ----------
        weights : array of shape (n,)
            How much every row counts.

        Returns
        -------
        FirstStep
        """
        old = self.fit
        answers = replace(old.answers, counts=np.bincount(self.patterns, weights, minlength=len(old.priors)))
        counted = answers.take(np.flatnonzero((answers.counts > 0) & (answers.codes >= 0).any(axis=1)))
        near = (1 - MARGINS) * old.coefficients + MARGINS * old.answers.margins[:, None]
        start = ClassParameters(old.priors[:1], near[:, None])
        found = accelerated_em(counted, start, REFIT_STEPS, REFIT_TOL, old.kernels).parameters
        priors = np.tile(found.weights, (len(old.priors), 1))
        return FirstStep(
            old._replace(answers=answers, priors=priors, coefficients=found.coefficients[:, 0]), self.patterns
        )


Equations = Callable[[ClassAssignment], np.ndarray]  # rows' parts of estimating equations, (n, m), linear in `assigned`


def corrected_covariance(rows: ClassAssignment, equations: Equations, bread: np.ndarray) -> np.ndarray:
    """A⁻¹ (Σ e eᵀ) A⁻¹ for rows' parts of the estimating equations, which depend on the matrix of errors D.

    The noise of D, and of the first step behind it and behind assigned shares, is added to the parts through the slope
    of their sum.
    """
    steps = STEP * np.eye(rows.errors.size).reshape(-1, *rows.errors.shape)
    ends = [[equations(replace(rows, errors=rows.errors + sign * s)).sum(axis=0) for sign in (1, -1)] for s in steps]
    slope = np.stack([(up - down) / (2 * STEP) for up, down in ends])
    parts = equations(rows) + error_influence(rows) @ slope
    if rows.first_step is not None and rows.assignment == "proportional":
        parts = parts + _assigned_influence(rows, rows.first_step, equations)
    with np.errstate(over="ignore", invalid="ignore"):  # of coefficients without a finite maximum
        inverse = np.linalg.pinv(bread, rcond=1e-9, hermitian=True)
        return inverse @ (parts.T @ parts) @ inverse


def error_influence(rows: ClassAssignment) -> np.ndarray:
    """What every row adds to the error of D, (n, k²): its own part, and that through the first step."""
    counted = rows.weights[:, None] * rows.posteriors
    totals = np.maximum(counted.sum(axis=0), TINY)
    away = rows.assigned[:, None, :] - rows.errors[None]  # (n, c, s)
    own = (counted / totals)[:, :, None] * away
    influence = own.reshape(len(own), -1)
    if rows.first_step is None:
        return influence
    return influence + _first_step_influence(rows, rows.first_step, totals)


def _first_step_influence(rows: ClassAssignment, first: FirstStep, totals: np.ndarray) -> np.ndarray:
    """What rows add to the error of D through the estimates of the first step, (n, k²).

    ∂r_c = r_c (u_c − s), so ∂D_cs = Σ_i w_i r_ic (u_ic − s_i) (w_is − D_cs) / Σ_i w_i r_ic, and where w_is is r_is
    itself Σ_i w_i r_ic r_is (u_is − s_i) / Σ_i w_i r_ic more.
    """
    r, k = first.curvature.scores.posteriors, len(totals)
    gathered = _by_pattern(first, rows.weights[:, None] * rows.assigned)
    counts = gathered.sum(axis=1, keepdims=True)
    slopes = []
    for c in range(k):
        slopes.append(_share_slope(first, c, (gathered - counts * rows.errors[c]) / totals[c]))
        if rows.assignment == "proportional":
            slopes[c] += np.concatenate([_share_slope(first, s, counts * r[:, [c]] / totals[c]) for s in range(k)])
    return _moved(rows, first, np.concatenate(slopes))


def _assigned_influence(rows: ClassAssignment, first: FirstStep, equations: Equations) -> np.ndarray:
    """What rows add to the equations through the first step, which assigned shares that are posteriors move with."""
    slope: Any = 0.0
    for s, alone in enumerate(np.eye(len(rows.errors))):
        parts = equations(replace(rows, assigned=np.tile(alone, (len(rows.assigned), 1))))
        slope = slope + _share_slope(first, s, _by_pattern(first, parts))
    return _moved(rows, first, slope)


def _by_pattern(first: FirstStep, values: np.ndarray) -> np.ndarray:
    """Sums of rows' values over the rows with the same answers, (n_patterns, m)."""
    sums = np.zeros((len(first.fit.priors), values.shape[1]))
    np.add.at(sums, first.patterns, values)
    return sums


def _share_slope(first: FirstStep, c: int, by: np.ndarray) -> np.ndarray:
    """How Σ by_p r_pc depends on the estimates of the first step: Σ by_p r_pc (u_pc − s_p), (m, n_parameters)."""
    scores = first.curvature.scores
    return (scores.posteriors[:, [c]] * by).T @ (class_scores(scores, c) - expected_scores(scores))


def _moved(rows: ClassAssignment, first: FirstStep, slope: np.ndarray) -> np.ndarray:
    """What rows add to what has this slope in the estimates of the first step, whose error is the sum of I⁻¹ s_i."""
    found = first.curvature
    of_patterns = expected_scores(found.scores) @ found.covariance @ slope.T
    return rows.weights[:, None] * of_patterns[first.patterns]


def drawn_counts(n_rows: int, n_resamples: Any, random_state: Any) -> Iterator[np.ndarray]:
    """How often every row is in each of so many resamples of as many rows."""
    rng = generator_of(random_state)
    for _ in range(check_count("n_resamples", n_resamples, 2)):
        yield np.bincount(rng.integers(n_rows, size=n_rows), minlength=n_rows)


def bootstrap_covariance(
    rows: ClassAssignment, estimate: Callable[[ClassAssignment], np.ndarray], resamples: Iterable[np.ndarray]
) -> np.ndarray:
    """The covariance of what all steps estimate over resamples, each given by how often it has every row.

    Resamples in which a class has no row are left out, with a warning.
    """
    found, n_lost = [], 0
    for counts in resamples:
        try:
            found.append(estimate(rows.resampled(counts)).ravel())
        except EmptyClassError:
            n_lost += 1
    if len(found) < 2:
        raise EmptyClassError("Nearly every resample has a class without rows; use fewer classes, or n_resamples=0.")
    if n_lost:
        warn_user(
            f"{n_lost} of {n_lost + len(found)} resamples have a class that no row is assigned to, and are left out.",
            IdentifiabilityWarning,
        )
    if len(found) <= found[0].size:  # or the covariance is singular, and tests by it mean nothing
        raise ValueError(f"{len(found)} resamples are too few for {found[0].size} estimates; raise n_resamples.")
    return np.atleast_2d(np.cov(np.array(found), rowvar=False))
