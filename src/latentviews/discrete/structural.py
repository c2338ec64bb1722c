"""Who is in which class: covariates of class membership in three steps."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from latentviews._numbers import TINY
from latentviews.discrete.logits import (
    ClassRegression,
    LogitObjective,
    check_determined,
    class_probabilities,
    design_matrix,
    fit_logits,
    logit_information,
    logit_objective,
    newton,
    regression_record,
    standardized,
    taken_back,
    without_separated,
)
from latentviews.discrete.three_step import (
    ClassAssignment,
    assign,
    bootstrap_covariance,
    check_length,
    corrected_covariance,
    drawn_counts,
)


def class_regression(
    posteriors: Any,
    covariates: Any,
    *,
    correction: str | None = "ML",
    assignment: str = "modal",
    sample_weight: Any = None,
    n_resamples: int = 0,
    random_state: Any = None,
) -> ClassRegression:
    r"""Who is in which class: a multinomial logit on covariates, in three steps.

    .. math:: \log \frac{P(h \mid z)}{P(0 \mid z)} = \beta_{0h} + \sum_j \beta_{jh} z_j

    corrected for rows that are assigned to a wrong class (Vermunt 2010; Bakk, Oberski & Vermunt 2014).

    Parameters
    ----------
    posteriors : array of shape (n, k), or FirstStep
        P(class | row), as ``predict_proba`` of `LatentClass` or `MultiViewMixture` gives them; or what
        ``LatentClass.first_step`` gives, whose own errors are then among the standard errors.
    covariates : array or DataFrame of shape (n, q)
        Numbers; an intercept is put before them.
    correction : "ML", "BCH" or None, default="ML"
        For rows that are assigned to a wrong class. None takes the assignment for the truth, which draws coefficients
        towards zero, and standard errors by formula too: they leave out that other answers would have drawn the line
        between classes elsewhere.
    assignment : "modal" or "proportional", default="modal"
        To the most probable class, or to all by their probabilities.
    sample_weight : array of shape (n,) or None
    n_resamples : int, default=0
        Where above zero, standard errors are those of a bootstrap of all steps with so many resamples of the rows; of
        the last two where posteriors are given. Tests need far more resamples than they compare estimates.
    random_state : int, RandomState or None
        For the resamples.

    Returns
    -------
    ClassRegression
        Coefficients with standard errors by the sandwich of all estimating equations, or by a bootstrap.

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
    check_determined(design, names, rows.weights)
    scaled, back = standardized(design, rows.weights)
    found = _coefficients(rows, scaled, correction)
    value, information = _end(rows, scaled, correction, found)
    if n_resamples:
        resamples = drawn_counts(len(design), n_resamples, random_state)
        covariance = bootstrap_covariance(rows, lambda some: _coefficients(some, scaled, correction)[:, 1:], resamples)
    else:
        equations = partial(_equations, scaled, class_probabilities(scaled, found), correction)
        covariance = corrected_covariance(rows, equations, information)
    coefficients = back @ found
    covariance = without_separated(taken_back(covariance, back), design, coefficients, rows.weights)
    return regression_record(coefficients, covariance, names, value)


def _coefficients(rows: ClassAssignment, design: np.ndarray, correction: str | None) -> np.ndarray:
    """The logits' coefficients (q, k); with ML the maximum of Σ_i w_i Σ_s a_is log Σ_c π_c(z_i) D_cs."""
    if correction == "ML":
        return newton(_assigned_likelihood(rows, design), fit_logits(design, rows.weights[:, None] * rows.assigned))
    return fit_logits(design, rows.shares(correction))


def _end(
    rows: ClassAssignment, design: np.ndarray, correction: str | None, coefficients: np.ndarray
) -> tuple[float, np.ndarray]:
    """The value of what the last step maximises, and its curvature downwards."""
    if correction == "ML":
        end = _assigned_likelihood(rows, design)(coefficients)
    else:
        end = logit_objective(design, rows.shares(correction), coefficients)
    return end.value, -end.hessian


def _equations(
    design: np.ndarray, probabilities: np.ndarray, correction: str | None, rows: ClassAssignment
) -> np.ndarray:
    """The score of every row, z ⊗ (v − π), without class 0, (n, q (k - 1))."""
    if correction == "ML":
        given = sum(rows.assigned[:, [s]] * _given(probabilities, column)[0] for s, column in enumerate(rows.errors.T))
        counts = rows.weights[:, None] * given
    else:
        counts = rows.shares(correction)
    residuals = counts - counts.sum(axis=1, keepdims=True) * probabilities
    return (design[:, :, None] * residuals[:, None, 1:]).reshape(len(design), -1)


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
