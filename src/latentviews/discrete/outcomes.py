"""Outcomes of classes: the means of numbers, or the shares of categories, corrected for wrong assignments."""

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy import stats

from latentviews._numbers import TINY, as_shares
from latentviews._validation import IdentifiabilityWarning, check_squares, warn_user
from latentviews.core.categories import learn_categories
from latentviews.discrete.three_step import ClassAssignment, assign, check_length, corrected_covariance

STEPS, GAIN = 2000, 1e-11  # of EM for an outcome, and the gain per row at which it ends
STEP = 1e-4  # of differences of the score
LEAST = 1e-10  # the probability of a category that no row of a class has


@dataclass(frozen=True, eq=False)
class DistalOutcome:
    """The mean of an outcome in every class, or the share of each of its categories, with standard errors.

    The statistic is Wald's for the classes having the same means.
    """

    means: np.ndarray  # (n_means, k): one row for numbers, one per category for categories
    standard_errors: np.ndarray  # (n_means, k)
    covariance: np.ndarray  # (n_means k, n_means k), of the means row by row
    categories: np.ndarray | None  # of the rows of ``means``; None for numbers
    statistic: float
    degrees_of_freedom: int
    pvalue: float


def distal_outcome(
    posteriors: Any,
    outcome: Any,
    *,
    correction: str | None = "BCH",
    assignment: str = "modal",
    sample_weight: Any = None,
) -> DistalOutcome:
    """What becomes of the classes: the mean of an outcome in each, or the shares of its categories, in three steps.

    Parameters
    ----------
    posteriors : array of shape (n, k), or FirstStep
        P(class | row), as ``predict_proba`` of `LatentClass` or `MultiViewMixture` gives them; or what
        ``LatentClass.first_step`` gives, whose own errors are then among the standard errors.
    outcome : array of shape (n,)
        Numbers, NaN where missing; or strings, flags or a pandas categorical, None where missing.
    correction : "BCH", "ML" or None, default="BCH"
        "BCH" needs no distribution of the outcome; "ML" takes numbers for normal with a variance per class.
    assignment : "modal" or "proportional", default="modal"
    sample_weight : array of shape (n,) or None

    Returns
    -------
    DistalOutcome

    References
    ----------
    Bakk, Tekle & Vermunt (2013), *Sociological Methodology* 43; Bakk & Vermunt (2016), *Structural Equation Modeling*
    23.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import distal_outcome
    >>> posteriors = np.tile([[0.9, 0.1], [0.1, 0.9]], (50, 1))
    >>> income = np.tile([1.0, 3.0], 50)
    >>> distal_outcome(posteriors, income).means.round(2)
    array([[0.75, 3.25]])
    """
    rows = assign(posteriors, correction, assignment, sample_weight)
    table, categories = _outcome_table(outcome)
    check_length("outcome", len(table), len(rows.assigned))
    here = ~np.isnan(table).any(axis=1)
    some, table = replace(rows, weights=rows.weights * here), np.where(here[:, None], table, 0.0)
    if correction == "ML":
        family: Outcome = NormalOutcome(table) if categories is None else CategoricalOutcome(table)
        means, covariance = _ml_means(rows, some, family)
    else:
        means, covariance = _weighted_means(rows, some, table, correction)
    return _outcome_record(means, covariance, categories)


def _outcome_table(outcome: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Numbers as a column; categories as indicators of all of them, with the categories."""
    kind = getattr(np.asarray(outcome), "dtype", np.dtype(object)).kind
    if kind in "iuf" and not hasattr(getattr(outcome, "dtype", None), "categories"):
        column = np.asarray(outcome, dtype=float).reshape(len(outcome), -1)[:, :1]
        check_squares(column, ["outcome"])
        return column, None
    found = learn_categories(outcome, "outcome")
    codes = found.codes(outcome)
    return np.where(codes[:, None] >= 0, np.eye(len(found.values))[codes], np.nan), found.values


def _weighted_means(
    rows: ClassAssignment, some: ClassAssignment, table: np.ndarray, correction: str | None
) -> tuple[np.ndarray, np.ndarray]:
    """Means of the columns in every class, (n_means, k), and the sandwich covariance of them all.

    ``some`` are the rows with zero weights where the outcome is missing: those that the last step counts.
    """
    shares = some.shares(correction, rows.errors)
    totals = shares.sum(axis=0)
    if np.any(totals <= 0):
        raise ValueError("Some class counts for no row of the outcome; use fewer classes.")
    means = table.T @ shares / totals

    def equations(errors: np.ndarray) -> np.ndarray:
        parts = some.shares(correction, errors)[:, None, :] * (table[:, :, None] - means[None])
        return parts.reshape(len(table), -1)

    return means, corrected_covariance(rows, equations, np.diag(np.tile(totals, len(means))))


class Outcome(Protocol):
    """The distribution of an outcome in every class, with parameters in an array that ends in classes."""

    def estimate(self, counts: np.ndarray) -> np.ndarray:
        """The parameters (m, k) that are likeliest for rows that count so much in the classes."""

    def log_density(self, parameters: np.ndarray) -> np.ndarray:
        """Of every row in every class, (n, k)."""

    def score(self, parameters: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """The slope of every row's counts · log_density in the parameters, (n, m, k)."""

    def means(self, parameters: np.ndarray) -> np.ndarray:
        """What is reported, (n_means, k)."""

    def slope(self, parameters: np.ndarray) -> np.ndarray:
        """How the means depend on the parameters in every class, (k, n_means, m)."""


@dataclass(frozen=True, eq=False)
class NormalOutcome:
    """Numbers that are normal in every class; the parameters are means and log variances."""

    values: np.ndarray  # (n, 1)

    def estimate(self, counts: np.ndarray) -> np.ndarray:
        """Weighted means and variances."""
        totals = np.maximum(counts.sum(axis=0), TINY)
        means = self.values[:, 0] @ counts / totals
        variances = ((self.values - means) ** 2 * counts).sum(axis=0) / totals
        return np.stack([means, np.log(np.maximum(variances, 1e-9 * max(float(self.values.var()), TINY)))])

    def log_density(self, parameters: np.ndarray) -> np.ndarray:
        """Of N(mean, variance)."""
        return stats.norm.logpdf(self.values, parameters[0], np.exp(parameters[1] / 2))

    def score(self, parameters: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Standardised deviations, and their squares less one."""
        means, variances = parameters[0], np.exp(parameters[1])
        away = (self.values - means) / variances
        return np.stack([counts * away, counts * (away**2 * variances - 1) / 2], axis=1)

    def means(self, parameters: np.ndarray) -> np.ndarray:
        """The means."""
        return parameters[:1]

    def slope(self, parameters: np.ndarray) -> np.ndarray:
        """One in the mean."""
        return np.tile([[1.0, 0.0]], (parameters.shape[1], 1, 1))


@dataclass(frozen=True, eq=False)
class CategoricalOutcome:
    """Categories; the parameters are the logs of their shares."""

    indicators: np.ndarray  # (n, C)

    def estimate(self, counts: np.ndarray) -> np.ndarray:
        """Weighted shares."""
        return np.log(np.maximum(as_shares(self.indicators.T @ counts, axis=0), LEAST))

    def log_density(self, parameters: np.ndarray) -> np.ndarray:
        """The log of the category's share."""
        return self.indicators @ np.log(self.means(parameters))

    def score(self, parameters: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Counts less expected counts."""
        return (self.indicators[:, :, None] - self.means(parameters)[None]) * counts[:, None, :]

    def means(self, parameters: np.ndarray) -> np.ndarray:
        """The shares."""
        return as_shares(np.exp(parameters - parameters.max(axis=0)), axis=0)

    def slope(self, parameters: np.ndarray) -> np.ndarray:
        """Of softmax, diag p − ppᵀ."""
        return np.stack([np.diag(p) - np.outer(p, p) for p in self.means(parameters).T])


def _ml_means(rows: ClassAssignment, some: ClassAssignment, outcome: Outcome) -> tuple[np.ndarray, np.ndarray]:
    """Means by EM for the joint likelihood of assignment and outcome, Σ_c π_c D_cs f(y | c), and their covariance."""
    log_chances = np.log(np.maximum(rows.assigned @ rows.errors.T, TINY))
    posteriors, before = as_shares(np.exp(log_chances), axis=1), -np.inf
    for _ in range(STEPS):
        counts = some.weights[:, None] * posteriors
        logits, parameters = np.log(np.maximum(as_shares(counts.sum(axis=0)), TINY)), outcome.estimate(counts)
        posteriors, log_density = _judged(logits + log_chances + outcome.log_density(parameters))
        value = float(some.weights @ log_density)
        if value - before < GAIN * len(log_chances):
            break
        before = value
    else:
        warn_user("EM for the outcome has not converged; its classes may be too alike.", IdentifiabilityWarning)
    return outcome.means(parameters), _ml_covariance(rows, some, outcome, np.vstack([logits, parameters]))


def _judged(joint: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Posteriors and log-densities from log p(row, class)."""
    top = joint.max(axis=1, keepdims=True)
    posteriors = np.exp(joint - top)
    total = posteriors.sum(axis=1, keepdims=True)
    return posteriors / total, (np.log(total) + top)[:, 0]


def _ml_covariance(rows: ClassAssignment, some: ClassAssignment, outcome: Outcome, at: np.ndarray) -> np.ndarray:
    """The covariance of all means; the curvature of the likelihood is that of differences of its slope."""

    def slopes(parameters: np.ndarray, errors: np.ndarray) -> np.ndarray:
        shares = as_shares(np.exp(parameters[0] - parameters[0].max()))
        log_chances = np.log(np.maximum(rows.assigned @ errors.T, TINY))
        joint = np.log(np.maximum(shares, TINY)) + log_chances + outcome.log_density(parameters[1:])
        counts = some.weights[:, None] * _judged(joint)[0]
        classes = counts - shares * some.weights[:, None]
        own = np.concatenate([classes[:, None, :], outcome.score(parameters[1:], counts)], axis=1)
        return own.reshape(len(own), -1)

    def total(parameters: np.ndarray) -> np.ndarray:
        return slopes(parameters, rows.errors).sum(axis=0)

    steps = STEP * np.eye(at.size).reshape(-1, *at.shape)
    bread = -np.stack([(total(at + step) - total(at - step)) / (2 * STEP) for step in steps])
    covariance = corrected_covariance(rows, lambda errors: slopes(at, errors), (bread + bread.T) / 2)
    m, k = at.shape
    slope = np.zeros((len(outcome.means(at[1:])), k, m, k))
    for h, one in enumerate(outcome.slope(at[1:])):
        slope[:, h, 1:, h] = one
    flat = slope.reshape(-1, m * k)
    return flat @ covariance @ flat.T


def _outcome_record(means: np.ndarray, covariance: np.ndarray, categories: np.ndarray | None) -> DistalOutcome:
    """The record with Wald's test of equal means; the last category's shares follow from the others."""
    m, k = means.shape
    rows = m if categories is None else m - 1
    contrast = np.kron(np.eye(m)[:rows], np.eye(k)[1:] - np.eye(k)[0])
    effect, spread = contrast @ means.ravel(), contrast @ covariance @ contrast.T
    statistic = float(effect @ np.linalg.pinv(spread, hermitian=True) @ effect)
    freedom = rows * (k - 1)
    errors = np.sqrt(np.maximum(np.diag(covariance), 0.0)).reshape(m, k)
    pvalue = float(stats.chi2.sf(statistic, freedom))
    return DistalOutcome(means, errors, covariance, categories, statistic, freedom, pvalue)
