r"""Three steps: classes, rows assigned to them, and what the assignment goes with, corrected for wrong assignments.

Vermunt (2010). Assigned classes w are wrong at a known rate D_cs = P(w = s | class c), which the posteriors of the rows
tell, and two corrections use it. BCH (Bolck, Croon & Hagenaars 2004) gives a row the weights v_i = w_i D⁻¹ in the
classes, whose means are those of the classes though some are negative; ML takes w for an answer of the classes with the
distribution D. Standard errors are those of all estimating equations together (Bakk, Oberski & Vermunt 2014): of the
last step, of D, and of the first step where its model is known.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from latentviews._numbers import TINY, as_shares
from latentviews._parameters import Constraint, OneOf, Such
from latentviews._validation import check_weights
from latentviews.discrete.inference import Curvature, Fitted, class_scores, curvature, expected_scores

STEP = 1e-5  # of differences in the matrix of errors
SINGULAR = 1e-8  # a classification matrix with a smaller singular value is not inverted


@dataclass(frozen=True, eq=False)
class ClassAssignment:
    """Rows assigned to classes by their posteriors, and how often that is wrong."""

    assigned: np.ndarray  # (n, k), one in the most probable class, or the posteriors themselves
    errors: np.ndarray  # (k, k), P(assigned to s | class c)
    weights: np.ndarray  # (n,) of the rows
    posteriors: np.ndarray  # (n, k)
    first_step: "FirstStep | None" = None  # the model behind the posteriors, where it is known

    _parameters: ClassVar[dict[str, Constraint]] = {
        "correction": Such(lambda value: value in (None, "ML", "BCH"), '"ML", "BCH" or None'),
        "assignment": OneOf(lambda: ("modal", "proportional")),
    }

    def bch_weights(self, errors: np.ndarray) -> np.ndarray:
        """What every row counts for in every class, (n, k): w_i D⁻¹."""
        if np.linalg.svd(errors, compute_uv=False)[-1] < SINGULAR:
            raise ValueError(
                "BCH divides by the matrix of classification errors, and it is singular: some class is never assigned. "
                'Use fewer classes, assignment="proportional", or correction="ML".'
            )
        return self.assigned @ np.linalg.inv(errors)

    def shares(self, correction: str | None, errors: np.ndarray) -> np.ndarray:
        """What rows count for in the classes without a likelihood of the assignment, times their weights."""
        return self.weights[:, None] * (self.assigned if correction is None else self.bch_weights(errors))


def assign(posteriors: Any, correction: Any, assignment: Any, sample_weight: Any) -> ClassAssignment:
    """Rows in classes, and the matrix of classification errors D = diag(Σ r)⁻¹ Rᵀ W."""
    for name, value in (("correction", correction), ("assignment", assignment)):
        ClassAssignment._parameters[name].check(name, value)
    first_step = posteriors if isinstance(posteriors, FirstStep) else None
    r = _checked_posteriors(posteriors if first_step is None else first_step.posteriors)
    weights = check_weights(sample_weight, r)
    weights = np.ones(len(r)) if weights is None else weights
    assigned = np.eye(r.shape[1])[r.argmax(axis=1)] if assignment == "modal" else r
    errors = as_shares((weights[:, None] * r).T @ assigned, axis=1)
    return ClassAssignment(assigned, errors, weights, r, first_step)


def _checked_posteriors(posteriors: Any) -> np.ndarray:
    """Posteriors as an array (n, k) whose rows sum to one."""
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
    """Posteriors of rows, and how they depend on the estimates of a `LatentClass`, for what is built on them."""

    fit: Fitted  # of distinct answers
    patterns: np.ndarray  # (n,), the answers of every row

    @property
    def posteriors(self) -> np.ndarray:
        """P(class | row), (n, k)."""
        return self.curvature.scores.posteriors[self.patterns]

    @cached_property
    def curvature(self) -> Curvature:
        """How well the estimates are known."""
        return curvature(self.fit)


def corrected_covariance(
    rows: ClassAssignment, equations: Callable[[np.ndarray], np.ndarray], bread: np.ndarray
) -> np.ndarray:
    """A⁻¹ (Σ e eᵀ) A⁻¹ for rows' parts of the estimating equations, which depend on the matrix of errors D.

    ``equations(D)`` are the parts (n, m) at the estimates. The noise of D, and of the first step behind it, is added to
    them through the slope of their sum in D.
    """
    at = rows.errors
    steps = STEP * np.eye(at.size).reshape(-1, *at.shape)
    slope = np.stack([(equations(at + s).sum(axis=0) - equations(at - s).sum(axis=0)) / (2 * STEP) for s in steps])
    parts = equations(at) + error_influence(rows) @ slope
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

    ∂r_c = r_c (u_c − s), so ∂D_cs = Σ_i w_i r_ic (u_ic − s_i) (w_is − D_cs) / Σ_i w_i r_ic; and the error of the
    estimates is the sum of I⁻¹ s_i.
    """
    found = first.curvature
    mean, k = expected_scores(found.scores), len(totals)
    gathered = np.zeros((len(mean), k))
    np.add.at(gathered, first.patterns, rows.weights[:, None] * rows.assigned)
    counts = gathered.sum(axis=1)
    slopes = []
    for c in range(k):
        by = found.scores.posteriors[:, [c]] * (gathered - counts[:, None] * rows.errors[c]) / totals[c]
        slopes.append(by.T @ (class_scores(found.scores, c) - mean))
    moved = mean @ found.covariance @ np.concatenate(slopes).T  # of a row with these answers, (n_patterns, k²)
    return rows.weights[:, None] * moved[first.patterns]
