r"""What classes go with: covariates that tell who is in which, and outcomes that differ between them.

Three steps (Vermunt 2010): fit the classes, assign rows to them, relate the assignment w to something else. Assigned
classes are wrong at a known rate D_cs = P(w = s | class c), which the posteriors of the rows tell, and two corrections
use it. BCH (Bolck, Croon & Hagenaars 2004) gives a row the weights v_i = w_i D⁻¹ in the classes, whose means are those
of the classes though some are negative; ML takes w for an answer of the classes with the distribution D.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from latentviews._numbers import TINY, as_shares
from latentviews._parameters import Constraint, OneOf, Such
from latentviews._validation import check_weights
from latentviews.discrete.logits import (
    ClassRegression,
    LogitObjective,
    class_probabilities,
    design_matrix,
    fit_logits,
    logit_information,
    newton,
    regression_record,
)

SINGULAR = 1e-8  # a classification matrix with a smaller singular value is not inverted


@dataclass(frozen=True, eq=False)
class ClassAssignment:
    """Rows assigned to classes by their posteriors, and how often that is wrong."""

    assigned: np.ndarray  # (n, k), one in the most probable class, or the posteriors themselves
    errors: np.ndarray  # (k, k), P(assigned to s | class c)
    weights: np.ndarray  # (n,) of the rows

    _parameters: ClassVar[dict[str, Constraint]] = {
        "correction": Such(lambda value: value in (None, "ML", "BCH"), '"ML", "BCH" or None'),
        "assignment": OneOf(lambda: ("modal", "proportional")),
    }

    @property
    def bch_weights(self) -> np.ndarray:
        """What every row counts for in every class, (n, k): w_i D⁻¹."""
        if np.linalg.svd(self.errors, compute_uv=False)[-1] < SINGULAR:
            raise ValueError(
                "BCH divides by the matrix of classification errors, and it is singular: some class is never assigned. "
                'Use fewer classes, assignment="proportional", or correction="ML".'
            )
        return self.assigned @ np.linalg.inv(self.errors)

    def shares(self, correction: str | None) -> np.ndarray:
        """What rows count for in the classes without a likelihood of the assignment."""
        return self.assigned if correction is None else self.bch_weights


def assign(posteriors: Any, correction: Any, assignment: Any, sample_weight: Any) -> ClassAssignment:
    """Rows in classes, and the matrix of classification errors D = diag(Σ r)⁻¹ Rᵀ W."""
    for name, value in (("correction", correction), ("assignment", assignment)):
        ClassAssignment._parameters[name].check(name, value)
    r = _checked_posteriors(posteriors)
    weights = check_weights(sample_weight, r)
    weights = np.ones(len(r)) if weights is None else weights
    assigned = np.eye(r.shape[1])[r.argmax(axis=1)] if assignment == "modal" else r
    return ClassAssignment(assigned, as_shares((weights[:, None] * r).T @ assigned, axis=1), weights)


def _checked_posteriors(posteriors: Any) -> np.ndarray:
    """Posteriors as an array (n, k) whose rows sum to one."""
    r = np.asarray(posteriors, dtype=float)
    if r.ndim != 2 or r.shape[1] < 2 or not np.allclose(r.sum(axis=1), 1.0, atol=1e-6) or np.any(r < -1e-9):
        raise ValueError(
            "posteriors must be the probabilities of two or more classes, one row per row of the data and summing to "
            f"one, as predict_proba gives them; got shape {r.shape}."
        )
    return r


def class_regression(
    posteriors: Any,
    covariates: Any,
    *,
    correction: str | None = "ML",
    assignment: str = "modal",
    sample_weight: Any = None,
) -> ClassRegression:
    """Who is in which class: a multinomial logit on covariates, in three steps.

    Parameters
    ----------
    posteriors : array of shape (n, k)
        P(class | row), as ``predict_proba`` of `LatentClass` or `MultiViewMixture` gives them.
    covariates : array or DataFrame of shape (n, q)
        Numbers; an intercept is put before them.
    correction : "ML", "BCH" or None, default="ML"
        For rows that are assigned to a wrong class. None takes the assignment for the truth, which draws coefficients
        towards zero.
    assignment : "modal" or "proportional", default="modal"
        To the most probable class, or to all by their probabilities.
    sample_weight : array of shape (n,) or None

    Returns
    -------
    ClassRegression
        Coefficients with standard errors: from the information for "ML", from the sandwich for "BCH" and None.

    References
    ----------
    Vermunt (2010), *Political Analysis* 18, 450-469; Bakk, Tekle & Vermunt (2013), *Sociological Methodology* 43.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import class_regression
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=2000)
    >>> sure = np.where(rng.random(2000) < 1 / (1 + np.exp(-z)), 0.9, 0.1)
    >>> regression = class_regression(np.column_stack([1 - sure, sure]), z)
    >>> regression.names
    ['intercept', 'z0']
    """
    rows = assign(posteriors, correction, assignment, sample_weight)
    design, names = design_matrix(covariates)
    check_length("covariates", len(design), len(rows.assigned))
    if correction == "ML":
        return _ml_regression(rows, design, names)
    shares = rows.weights[:, None] * rows.shares(correction)
    coefficients = fit_logits(design, shares)
    probabilities = class_probabilities(design, coefficients)
    totals = shares.sum(axis=1)
    scores = _row_scores(design, shares - totals[:, None] * probabilities)
    covariance = _sandwich(logit_information(design, probabilities, totals), scores)
    value = float((shares * np.log(np.maximum(probabilities, TINY))).sum())
    return regression_record(coefficients, covariance, names, value)


def check_length(name: str, got: int, expected: int) -> None:
    """Refuse a table that is not as long as the posteriors."""
    if got != expected:
        raise ValueError(f"{name} needs one row per row of posteriors, {expected}; got {got}.")


def _row_scores(design: np.ndarray, residuals: np.ndarray) -> np.ndarray:
    """The score of every row, z ⊗ (v − π), without class 0, (n, q (k - 1))."""
    return (design[:, :, None] * residuals[:, None, 1:]).reshape(len(design), -1)


def _sandwich(bread: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """A⁻¹ (Σ s sᵀ) A⁻¹: the covariance of an estimate whose rows are no likelihood."""
    inverse = np.linalg.pinv(bread)
    return inverse @ (scores.T @ scores) @ inverse


def _ml_regression(rows: ClassAssignment, design: np.ndarray, names: list[str]) -> ClassRegression:
    """The maximum of Σ_i w_i Σ_s a_is log Σ_c π_c(z_i) D_cs by Newton's method, from BCH's estimate or none."""
    objective = _assigned_likelihood(rows, design)
    start = fit_logits(design, rows.weights[:, None] * rows.assigned)
    coefficients = newton(objective, start)
    end = objective(coefficients)
    return regression_record(coefficients, np.linalg.pinv(-end.hessian), names, end.value)


def _assigned_likelihood(rows: ClassAssignment, design: np.ndarray) -> Callable[[np.ndarray], LogitObjective]:
    """The log-likelihood of assigned classes as a function of the logits' coefficients."""

    def objective(coefficients: np.ndarray) -> LogitObjective:
        probabilities = class_probabilities(design, coefficients)
        value, gradient = 0.0, 0.0
        hessian = -logit_information(design, probabilities, rows.weights)
        for s, errors in enumerate(rows.errors.T):
            counts = rows.weights * rows.assigned[:, s]
            joint = probabilities * errors
            density = np.maximum(joint.sum(axis=1), TINY)
            after = joint / density[:, None]
            value += float(counts @ np.log(density))
            gradient = gradient + (design.T @ (counts[:, None] * (after - probabilities)))[:, 1:].ravel()
            hessian += logit_information(design, after, counts)  # Louis: less the variance given the assignment
        return LogitObjective(value, np.asarray(gradient), hessian)

    return objective
