"""Who is in which class: covariates of class membership in three steps."""

from collections.abc import Callable
from typing import Any

import numpy as np

from latentviews._numbers import TINY
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
from latentviews.discrete.three_step import ClassAssignment, assign, check_length, corrected_covariance


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
    posteriors : array of shape (n, k), or FirstStep
        P(class | row), as ``predict_proba`` of `LatentClass` or `MultiViewMixture` gives them; or what
        ``LatentClass.first_step`` gives, whose own errors are then among the standard errors.
    covariates : array or DataFrame of shape (n, q)
        Numbers; an intercept is put before them.
    correction : "ML", "BCH" or None, default="ML"
        For rows that are assigned to a wrong class. None takes the assignment for the truth, which draws coefficients
        towards zero, and standard errors too: they leave out that other answers would have drawn the line between
        classes elsewhere.
    assignment : "modal" or "proportional", default="modal"
        To the most probable class, or to all by their probabilities.
    sample_weight : array of shape (n,) or None

    Returns
    -------
    ClassRegression
        Coefficients with standard errors by the sandwich of all estimating equations.

    References
    ----------
    Vermunt (2010), *Political Analysis* 18, 450-469; Bakk, Oberski & Vermunt (2014), *Political Analysis* 22, 520-540.

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
    shares = rows.shares(correction, rows.errors)
    coefficients = fit_logits(design, shares)
    probabilities = class_probabilities(design, coefficients)

    def equations(errors: np.ndarray) -> np.ndarray:
        counts = rows.shares(correction, errors)
        return _row_scores(design, counts - counts.sum(axis=1, keepdims=True) * probabilities)

    covariance = corrected_covariance(rows, equations, logit_information(design, probabilities, shares.sum(axis=1)))
    value = float((shares * np.log(np.maximum(probabilities, TINY))).sum())
    return regression_record(coefficients, covariance, names, value)


def _row_scores(design: np.ndarray, residuals: np.ndarray) -> np.ndarray:
    """The score of every row, z ⊗ (v − π), without class 0, (n, q (k - 1))."""
    return (design[:, :, None] * residuals[:, None, 1:]).reshape(len(design), -1)


def _ml_regression(rows: ClassAssignment, design: np.ndarray, names: list[str]) -> ClassRegression:
    """The maximum of Σ_i w_i Σ_s a_is log Σ_c π_c(z_i) D_cs by Newton's method."""
    objective = _assigned_likelihood(rows, design)
    coefficients = newton(objective, fit_logits(design, rows.weights[:, None] * rows.assigned))
    end, probabilities = objective(coefficients), class_probabilities(design, coefficients)

    def equations(errors: np.ndarray) -> np.ndarray:
        after = sum(rows.assigned[:, [s]] * _given(probabilities, column)[0] for s, column in enumerate(errors.T))
        return _row_scores(design, rows.weights[:, None] * (after - probabilities))

    covariance = corrected_covariance(rows, equations, -end.hessian)
    return regression_record(coefficients, covariance, names, end.value)


def _given(probabilities: np.ndarray, errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """P(class | assigned to one) and the probability of that, from P(assigned | class), a column of D."""
    joint = probabilities * errors
    total = np.maximum(joint.sum(axis=1), TINY)
    return joint / total[:, None], total


def _assigned_likelihood(rows: ClassAssignment, design: np.ndarray) -> Callable[[np.ndarray], LogitObjective]:
    """The log-likelihood of assigned classes as a function of the logits' coefficients."""

    def objective(coefficients: np.ndarray) -> LogitObjective:
        probabilities = class_probabilities(design, coefficients)
        value, gradient = 0.0, 0.0
        hessian = -logit_information(design, probabilities, rows.weights)
        for s, errors in enumerate(rows.errors.T):
            counts = rows.weights * rows.assigned[:, s]
            after, density = _given(probabilities, errors)
            value += float(counts @ np.log(density))
            gradient = gradient + (design.T @ (counts[:, None] * (after - probabilities)))[:, 1:].ravel()
            hessian += logit_information(design, after, counts)  # Louis: less the variance given the assignment
        return LogitObjective(value, np.asarray(gradient), hessian)

    return objective
