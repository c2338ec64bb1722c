"""Outcomes of classes: the means of numbers, or the shares of categories, corrected for wrong assignments."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from scipy import stats

from latentviews._numbers import TINY, as_shares
from latentviews._sentences import warn_user
from latentviews._validation import IdentifiabilityWarning, check_squares
from latentviews.core.categories import learn_categories
from latentviews.discrete.three_step import (
    ClassAssignment,
    EmptyClassError,
    assign,
    bootstrap_covariance,
    check_length,
    corrected_covariance,
    drawn_counts,
)

STEPS, GAIN = 2000, 1e-11  # of EM for an outcome, and the gain per row at which it ends
STEP = 1e-4  # of differences of the score
ROUNDING, SURE = 1e-12, 1e-6  # of the size of means: spreads below the first are none, effects above the second some
LEAST_VARIANCE = 1e-9  # of a class, as a share of that of all
LEAST = 1e-10  # the probability of a category that no row of a class has


@dataclass(frozen=True, eq=False)
class DistalOutcome:
    r"""The mean of an outcome in every class, or the share of each of its categories, with standard errors.

    .. math:: W = d^\top \operatorname{Cov}(d)^{-1} d

    The statistic is Wald's for the classes having the same means: d are the differences of means between classes.

    Attributes
    ----------
    means : array of shape (n_means, k)
        One row for numbers, one per category for categories.
    standard_errors : array of shape (n_means, k)
    covariance : array of shape (n_means k, n_means k)
        Of the means row by row.
    categories : array of shape (n_means,) or None
        Of the rows of ``means``; None for numbers.
    statistic : float
    degrees_of_freedom : int
    pvalue : float

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import distal_outcome
    >>> rng = np.random.default_rng(0)
    >>> members = np.tile([0, 1], 100)
    >>> outcome = distal_outcome(np.eye(2)[members], rng.normal(size=200) + 2.0 * members)
    >>> outcome.degrees_of_freedom, outcome.pvalue < 0.001, (outcome.means[0, 1] - outcome.means[0, 0]).round()
    (1, True, np.float64(2.0))
    """

    means: np.ndarray
    standard_errors: np.ndarray
    covariance: np.ndarray
    categories: np.ndarray | None
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
    n_resamples: int = 0,
    random_state: Any = None,
) -> DistalOutcome:
    r"""What becomes of the classes: the mean of an outcome in each, or the shares of its categories, in three steps.

    .. math:: \hat\mu_h = \frac{\sum_i v_{ih} y_i}{\sum_i v_{ih}}, \qquad v_i = w_i D^{-1} \quad \text{by BCH}

    where row i is assigned to the classes by w_i, and to class s though it is of class c at a rate D_cs (Bolck, Croon &
    Hagenaars 2004; Bakk, Oberski & Vermunt 2014).

    Parameters
    ----------
    posteriors : array of shape (n, k), or FirstStep
        P(class | row), as ``predict_proba`` of `LatentClass` or `MultiViewMixture` gives them; or what
        ``LatentClass.first_step`` gives, whose own errors are then among the standard errors.
    outcome : array of shape (n,)
        Numbers, or strings, flags or a pandas categorical; NaN or None where missing.
    correction : "BCH", "ML" or None, default="BCH"
        "BCH" needs no distribution of the outcome; "ML" takes numbers for normal with a variance per class.
    assignment : "modal" or "proportional", default="modal"
    sample_weight : array of shape (n,) or None
    n_resamples : int, default=0
        Where above zero, standard errors are those of a bootstrap of all steps with so many resamples of the rows; of
        the last two where posteriors are given. Tests need far more resamples than they compare estimates.
    random_state : int, RandomState or None
        For the resamples.

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
    table = np.where(here[:, None], table, 0.0)
    if correction == "ML":
        family: Outcome = normal_outcome(table, here) if categories is None else CategoricalOutcome(table)
        last: LastStep = LikeliestMeans(family, here)
    else:
        last = WeightedMeans(table, here, correction)
    found = last.estimate(rows)
    if n_resamples:
        resamples = drawn_counts(len(table), n_resamples, random_state)
        covariance = bootstrap_covariance(rows, lambda some: last.means(last.estimate(some)), resamples)
    else:
        covariance = last.covariance(rows, found)
    return _outcome_record(last.means(found), covariance, categories)


def _outcome_table(outcome: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Numbers as a column; categories as indicators of all of them, with the categories."""
    kind = getattr(np.asarray(outcome), "dtype", np.dtype(object)).kind
    categorical = hasattr(getattr(outcome, "dtype", None), "categories")
    if kind in "iuf" and not categorical:
        column = np.asarray(outcome, dtype=float).reshape(len(outcome), -1)
        if column.shape[1] != 1:
            raise ValueError(f"outcome must be one column; got {column.shape[1]}. Ask for one after the other.")
        if np.isnan(column).all():
            raise ValueError("outcome has no number in any row.")
        check_squares(column, ["outcome"])
        return column, None
    found = learn_categories(outcome, "outcome")
    codes = found.codes(outcome)
    if not categorical and {type(value) for value in found.values.tolist()} <= {int, float}:  # beside None
        return _outcome_table(found.decoded(codes).astype(float))
    return np.where(codes[:, None] >= 0, np.eye(len(found.values))[codes], np.nan), found.values


class LastStep(Protocol):
    """Means of an outcome in the classes that rows are assigned to."""

    def estimate(self, rows: ClassAssignment) -> np.ndarray:
        """All parameters, (m, k)."""

    def means(self, found: np.ndarray) -> np.ndarray:
        """What is reported of them, (n_means, k)."""

    def covariance(self, rows: ClassAssignment, found: np.ndarray) -> np.ndarray:
        """Of all means, row by row, by formula."""


@dataclass(frozen=True, eq=False)
class WeightedMeans:
    """Means of the columns of a table over rows that count for shares in the classes."""

    table: np.ndarray  # (n, n_means)
    here: np.ndarray  # (n,), rows whose outcome is known
    correction: str | None

    def shares(self, rows: ClassAssignment) -> np.ndarray:
        """Of rows whose outcome is known."""
        return self.here[:, None] * rows.shares(self.correction)

    def estimate(self, rows: ClassAssignment) -> np.ndarray:
        """The means."""
        shares = self.shares(rows)
        totals = shares.sum(axis=0)
        if np.any(totals <= 0):
            raise EmptyClassError("Some class counts for no row of the outcome; use fewer classes.")
        return self.table.T @ shares / totals

    def means(self, found: np.ndarray) -> np.ndarray:
        """The means themselves."""
        return found

    def covariance(self, rows: ClassAssignment, found: np.ndarray) -> np.ndarray:
        """The sandwich of the equations Σ v (y − mean) = 0."""

        def equations(some: ClassAssignment) -> np.ndarray:
            parts = self.shares(some)[:, None, :] * (self.table[:, :, None] - found[None])
            return parts.reshape(len(self.table), -1)

        return corrected_covariance(rows, equations, np.diag(np.tile(self.shares(rows).sum(axis=0), len(found))))


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
    """Numbers that are normal in every class; the parameters are means and log variances of standardised values."""

    values: np.ndarray  # (n, 1), of mean zero and variance one, or all zero
    center: float
    scale: float

    def estimate(self, counts: np.ndarray) -> np.ndarray:
        """Weighted means and variances."""
        totals = np.maximum(counts.sum(axis=0), TINY)
        means = self.values[:, 0] @ counts / totals
        variances = ((self.values - means) ** 2 * counts).sum(axis=0) / totals
        return np.stack([means, np.log(np.maximum(variances, LEAST_VARIANCE))])

    def log_density(self, parameters: np.ndarray) -> np.ndarray:
        """Of N(mean, variance)."""
        return stats.norm.logpdf(self.values, parameters[0], np.exp(parameters[1] / 2))

    def score(self, parameters: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Standardised deviations, and their squares less one."""
        means, variances = parameters[0], np.exp(parameters[1])
        away = (self.values - means) / variances
        return np.stack([counts * away, counts * (away**2 * variances - 1) / 2], axis=1)

    def means(self, parameters: np.ndarray) -> np.ndarray:
        """The means of the values as they were."""
        return self.center + self.scale * parameters[:1]

    def slope(self, parameters: np.ndarray) -> np.ndarray:
        """The scale in the mean."""
        return np.tile([[self.scale, 0.0]], (parameters.shape[1], 1, 1))


def normal_outcome(table: np.ndarray, here: np.ndarray) -> NormalOutcome:
    """Numbers standardised by those that are known; what is only rounding is no spread."""
    center, spread = float(table[here].mean()), float(table[here].std())
    scale = spread if spread > ROUNDING * abs(center) + TINY else 0.0
    values = (table - center) / scale if scale else np.zeros_like(table)
    return NormalOutcome(np.where(here[:, None], values, 0.0), center, scale)


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


@dataclass(frozen=True, eq=False)
class LikeliestMeans:
    """The maximum of Σ_i w_i Σ_s a_is log Σ_c π_c D_cs f(y_i | c), the likelihood of assignment and outcome.

    Parameters are log π in the first row, and those of the outcome.
    """

    outcome: Outcome
    here: np.ndarray  # (n,), rows whose outcome is known

    def estimate(self, rows: ClassAssignment) -> np.ndarray:
        """EM, from the classes given the assignment alone."""
        counts, before = self.counts(rows, np.zeros(len(rows.errors)), 0.0)[0], -np.inf
        for _ in range(STEPS):
            logits, parameters = np.log(np.maximum(as_shares(counts.sum(axis=0)), TINY)), self.outcome.estimate(counts)
            counts, value = self.counts(rows, logits, self.outcome.log_density(parameters))
            if value - before < GAIN * len(counts):
                break
            before = value
        else:
            warn_user("EM for the outcome has not converged; its classes may be too alike.", IdentifiabilityWarning)
        return np.vstack([logits, parameters])

    def counts(self, rows: ClassAssignment, logits: np.ndarray, log_density: Any) -> tuple[np.ndarray, float]:
        """What rows count for in the classes given assignment and outcome, (n, k), and the log-likelihood."""
        counts, value = np.zeros(rows.assigned.shape), 0.0
        for assigned, errors in zip(rows.assigned.T, rows.errors.T, strict=True):
            weights = rows.weights * self.here * assigned
            chances = logits + np.log(np.maximum(errors, TINY))
            posteriors, log_p = _judged(np.broadcast_to(chances + log_density, counts.shape))
            counts += weights[:, None] * posteriors
            value += float(weights @ log_p)
        return counts, value

    def means(self, found: np.ndarray) -> np.ndarray:
        """Of the outcome."""
        return self.outcome.means(found[1:])

    def slopes(self, found: np.ndarray, rows: ClassAssignment) -> np.ndarray:
        """The slope of every row's log-likelihood in all parameters, (n, m k)."""
        shares = as_shares(np.exp(found[0] - found[0].max()))
        logits = np.log(np.maximum(shares, TINY))
        counts, _ = self.counts(rows, logits, self.outcome.log_density(found[1:]))
        classes = counts - shares * counts.sum(axis=1, keepdims=True)
        own = np.concatenate([classes[:, None, :], self.outcome.score(found[1:], counts)], axis=1)
        return own.reshape(len(own), -1)

    def covariance(self, rows: ClassAssignment, found: np.ndarray) -> np.ndarray:
        """The sandwich; the curvature of the likelihood is that of differences of its slope."""
        steps = STEP * np.eye(found.size).reshape(-1, *found.shape)
        ends = [[self.slopes(found + sign * step, rows).sum(axis=0) for sign in (1, -1)] for step in steps]
        bread = -np.stack([(up - down) / (2 * STEP) for up, down in ends])
        covariance = corrected_covariance(rows, partial(self.slopes, found), (bread + bread.T) / 2)
        m, k = found.shape
        slope = np.zeros((len(self.means(found)), k, m, k))
        for h, one in enumerate(self.outcome.slope(found[1:])):
            slope[:, h, 1:, h] = one
        flat = slope.reshape(-1, m * k)
        return flat @ covariance @ flat.T


def _judged(joint: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Posteriors and log-densities from log p(row, class)."""
    top = joint.max(axis=1, keepdims=True)
    posteriors = np.exp(joint - top)
    total = posteriors.sum(axis=1, keepdims=True)
    return posteriors / total, (np.log(total) + top)[:, 0]


def _outcome_record(means: np.ndarray, covariance: np.ndarray, categories: np.ndarray | None) -> DistalOutcome:
    """The record with Wald's test of equal means; the last category's shares follow from the others."""
    m, k = means.shape
    rows = m if categories is None else m - 1
    contrast = np.kron(np.eye(m)[:rows], np.eye(k)[1:] - np.eye(k)[0])
    statistic = _wald(contrast @ means.ravel(), contrast @ covariance @ contrast.T, float(np.abs(means).max()))
    freedom = rows * (k - 1)
    errors = np.sqrt(np.maximum(np.diag(covariance), 0.0)).reshape(m, k)
    pvalue = float(stats.chi2.sf(statistic, freedom)) if freedom else 1.0  # of one category
    return DistalOutcome(means, errors, covariance, categories, statistic, freedom, pvalue)


def _wald(effect: np.ndarray, spread: np.ndarray, scale: float) -> float:
    """Effects over their covariance; infinite where one has no spread, and none where it is rounding itself."""
    values, vectors = np.linalg.eigh(spread)
    along, rounding = vectors.T @ effect, ROUNDING * scale
    sure = values <= max(rounding**2, ROUNDING * values.max(initial=0.0))
    if np.any(np.abs(along[sure]) > SURE * scale):
        return np.inf
    return float((along[~sure] ** 2 / values[~sure]).sum())
