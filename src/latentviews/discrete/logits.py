"""Multinomial logits of class membership: π_h(z) = exp(z β_h) / Σ_g exp(z β_g), with β_0 = 0."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, stats
from scipy.special import logsumexp

from latentviews._numbers import LARGEST, TINY
from latentviews._sentences import warn_user
from latentviews._validation import IdentifiabilityWarning, check_squares

STEPS, SMALL = 100, 1e-10  # of Newton's method, and the gain over the rows at which it ends
HALVINGS = 30
DEPENDENT = 1e-9  # a covariate with less of its own, as a share of its size, follows from those before it
FLAT = 1e-6  # curvature, as a share of that at equal probabilities, below which a maximum is at infinity
LOADING = 1e-3  # a coefficient with so much of such a direction has no standard error


@dataclass(frozen=True, eq=False)
class ClassRegression:
    r"""A multinomial logit of the classes on covariates, class 0 the one that others are compared with.

    .. math:: \log \frac{P(h \mid z)}{P(0 \mid z)} = \beta_{0h} + \sum_j \beta_{jh} z_j

    ``coefficients[:, h]`` are the log-odds of class h against class 0: the intercept, then one per covariate.

    Attributes
    ----------
    coefficients : array of shape (q, k)
        Zeros in column 0.
    standard_errors : array of shape (q, k)
        NaN in column 0.
    covariance : array of shape (q (k - 1), q (k - 1))
        Of ``coefficients[:, 1:]``, flattened.
    names : list of str
        Of the rows.
    log_likelihood : float
        Of the regression's own step.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import class_regression
    >>> z = np.repeat([0.0, 1.0], 100)
    >>> second = np.tile([0, 0, 0, 1], 50)
    >>> second[100:] = 1 - second[100:]  # odds of 1 to 3, then of 3 to 1
    >>> regression = class_regression(np.eye(2)[second], z)
    >>> regression.coefficients[:, 1].round(2), bool(regression.pvalues[1, 1] < 0.001)
    (array([-1.1,  2.2]), True)
    """

    coefficients: np.ndarray
    standard_errors: np.ndarray
    covariance: np.ndarray
    names: list[str]
    log_likelihood: float

    @property
    def z(self) -> np.ndarray:
        """Coefficients over their standard errors, (q, k)."""
        return self.coefficients / self.standard_errors

    @property
    def pvalues(self) -> np.ndarray:
        """Two-sided, for every coefficient being zero, (q, k)."""
        return 2 * stats.norm.sf(np.abs(self.z))

    def wald_test(self, name: str) -> tuple[float, float]:
        """The statistic and p-value for a covariate having no effect on any class.

        Parameters
        ----------
        name : str
            One of ``names``.

        Returns
        -------
        statistic, pvalue : float
            No numbers where the covariate's spread is not known.
        """
        if name not in self.names:
            raise ValueError(f"name must be one of {self.names}; got {name!r}.")
        k = self.coefficients.shape[1]
        row = self.names.index(name)
        places = row * (k - 1) + np.arange(k - 1)
        effect, spread = self.coefficients[row, 1:], self.covariance[np.ix_(places, places)]
        if np.isnan(spread).any():
            return np.nan, np.nan
        statistic = float(effect @ np.linalg.pinv(spread) @ effect)
        return statistic, float(stats.chi2.sf(statistic, k - 1))

    def probabilities(self, covariates: Any) -> np.ndarray:
        """P(class | covariates), (n, k).

        Parameters
        ----------
        covariates : array of shape (n, m) or DataFrame
            Those that the regression was fitted to, in their order.

        Returns
        -------
        array of shape (n, k)
        """
        return class_probabilities(design_matrix(covariates)[0], self.coefficients)


def design_matrix(covariates: Any) -> tuple[np.ndarray, list[str]]:
    """An intercept beside the covariates, and the names of all; a sentence where they are no complete numbers."""
    names = [str(name) for name in covariates.columns] if hasattr(covariates, "columns") else None
    try:
        if np.iscomplexobj(covariates):  # which NumPy would cut down, with a warning
            raise TypeError
        table = np.asarray(covariates, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "covariates must be numbers; code a category by indicators of all its values but one (pandas.get_dummies)."
        ) from error
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or not np.isfinite(table).all():
        raise ValueError(
            f"covariates must be a table of finite numbers, one row per row of the data; got shape {table.shape}"
            + (" with missing or infinite values: fill them in, or leave those rows out." if table.ndim == 2 else ".")
        )
    names = [f"z{j}" for j in range(table.shape[1])] if names is None else names
    check_squares(table, names)
    return np.column_stack([np.ones(len(table)), table]), ["intercept", *names]


def check_determined(design: np.ndarray, names: list[str], weights: np.ndarray) -> None:
    """Refuse covariates of which one is a constant or a sum of others in the rows that count."""
    own = np.abs(np.diag(_triangular(design, weights)[1]))
    loose = [name for name, size in zip(names, own, strict=False) if size < DEPENDENT] + names[len(own) :]
    if loose:
        raise ValueError(
            f"The coefficient of {loose[0]!r} is not determined by {int((weights > 0).sum())} rows: the covariate is "
            "constant, or a sum of others. Leave it out."
        )
    ranges = np.ptp(design[weights > 0], axis=0)
    small = np.flatnonzero((ranges > 0) & (ranges < 1 / LARGEST))
    if len(small):
        raise ValueError(
            f"Values of the covariate {names[small[0]]!r} differ by {ranges[small[0]]:.3g} at most, so that its "
            "coefficient has a variance beyond the range of numbers; scale it."
        )


def _triangular(design: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """QR of the design with rows by the roots of their weights, and columns of one size."""
    rows = np.sqrt(weights)[:, None] * design
    return np.linalg.qr(rows / np.maximum(np.linalg.norm(rows, axis=0), TINY))


def standardized(design: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The design with covariates of mean zero and variance one, and the matrix that takes its coefficients back.

    Steps and standard errors are found there: beside an intercept, the curvature of a covariate such as a year of birth
    or an income is lost in rounding.
    """
    means = weights @ design / weights.sum()
    means[0] = 0.0  # of the intercept
    away = design - means
    sizes = np.abs(away).max(axis=0)
    sizes = np.where(sizes > 0, sizes, 1.0)
    spreads = sizes * np.sqrt(weights @ (away / sizes) ** 2 / weights.sum())
    spreads = np.where(spreads > 0, spreads, 1.0)
    back = np.diag(1 / spreads)
    back[0, 1:] = -means[1:] / spreads[1:]
    return away / spreads, back


def taken_back(covariance: np.ndarray, back: np.ndarray) -> np.ndarray:
    """The covariance of coefficients as the design has them, NaN where one depends on some that have none."""
    ways = np.kron(back, np.eye(len(covariance) // len(back)))
    without = (ways[:, np.isnan(np.diag(covariance))] != 0).any(axis=1)
    with np.errstate(over="ignore", invalid="ignore"):  # of coefficients without a finite maximum
        found = ways @ np.where(np.isnan(covariance), 0.0, covariance) @ ways.T
    return np.where(without[:, None] | without, np.nan, found)


def without_separated(
    covariance: np.ndarray, design: np.ndarray, coefficients: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """The covariance, NaN for coefficients that have no finite maximum, of which a warning speaks."""
    q, r = _triangular(design, weights)
    shares, ones, k = class_probabilities(design, coefficients), np.ones(len(q)), coefficients.shape[1]
    even = logit_information(q, np.full_like(shares, 1 / k), ones)
    curvatures, directions = linalg.eigh(logit_information(q, shares, ones), even)
    flat = np.linalg.solve(r, directions[:, curvatures < FLAT].reshape(len(r), -1)).reshape(len(even), -1)
    if not flat.shape[1]:
        return covariance
    warn_user(
        "The covariates tell some class from others for sure, so that coefficients have no finite maximum: where they "
        "ended means nothing, and they have no standard errors. Leave out the covariate that does, or fit fewer "
        "classes.",
        IdentifiabilityWarning,
    )
    without = (np.abs(flat) > LOADING * np.abs(flat).max(axis=0)).any(axis=1)
    return np.where(without[:, None] | without, np.nan, covariance)


def class_probabilities(design: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """π_h(z), (n, k)."""
    logits = design @ coefficients
    return np.exp(logits - logsumexp(logits, axis=1, keepdims=True))


class LogitObjective(NamedTuple):
    """A concave function near its maximum: its value, slope and curvature."""

    value: float
    gradient: np.ndarray
    hessian: np.ndarray


def logit_objective(design: np.ndarray, shares: np.ndarray, coefficients: np.ndarray) -> LogitObjective:
    """Σ_i Σ_h v_ih log π_h(z_i) for shares v of rows in the classes, which may be negative as BCH's are."""
    probabilities, totals = class_probabilities(design, coefficients), shares.sum(axis=1)
    value = float((shares * np.log(np.maximum(probabilities, TINY))).sum())
    gradient = (design.T @ (shares - totals[:, None] * probabilities))[:, 1:]
    return LogitObjective(value, gradient.ravel(), -logit_information(design, probabilities, totals))


def logit_information(design: np.ndarray, probabilities: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """Σ_i v_i zzᵀ ⊗ (diag π − ππᵀ) over classes 1, …, k - 1."""
    some = probabilities[:, 1:]
    q, m = design.shape[1], some.shape[1]
    blocks = np.empty((q, m, q, m))
    for g in range(m):
        for h in range(m):
            by = totals * some[:, g] * ((g == h) - some[:, h])
            blocks[:, g, :, h] = design.T @ (by[:, None] * design)
    return blocks.reshape(q * m, q * m)


def newton(objective: Callable[[np.ndarray], LogitObjective], start: np.ndarray, steps: int = STEPS) -> np.ndarray:
    """The coefficients (q, k) at a maximum, by Newton's method with halved steps where one would lose."""
    coefficients, now = start, objective(start)
    for _ in range(steps):
        direction = np.linalg.lstsq(-_curved(now.hessian), now.gradient, rcond=None)[0]
        for halving in range(HALVINGS):
            moved = coefficients.copy()
            moved[:, 1:] += (0.5**halving * direction).reshape(moved[:, 1:].shape)
            with np.errstate(all="ignore"):  # far out, where what BCH maximises may have no maximum
                after = objective(moved)
            if after.value >= now.value - SMALL and np.isfinite(after.hessian).all():
                break
        else:
            return coefficients
        gain, coefficients, now = after.value - now.value, moved, after
        if abs(gain) < SMALL:
            return coefficients
    return coefficients


def _curved(hessian: np.ndarray) -> np.ndarray:
    """The matrix with its curvature downwards in every direction, as Newton's steps need it away from a maximum."""
    values, vectors = np.linalg.eigh(hessian)
    return (vectors * -np.maximum(np.abs(values), SMALL * np.abs(values).max(initial=TINY))) @ vectors.T


def fit_logits(design: np.ndarray, shares: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
    """The multinomial logit of shares of rows in the classes on covariates, (q, k)."""
    start = np.zeros((design.shape[1], shares.shape[1])) if start is None else start
    return newton(lambda beta: logit_objective(design, shares, beta), start)


def regression_record(
    coefficients: np.ndarray, covariance: np.ndarray, names: list[str], log_likelihood: float
) -> ClassRegression:
    """The record, with standard errors off the covariance's diagonal."""
    errors = np.full(coefficients.shape, np.nan)
    errors[:, 1:] = np.sqrt(np.maximum(np.diag(covariance), 0.0)).reshape(coefficients[:, 1:].shape)
    return ClassRegression(coefficients, errors, covariance, names, log_likelihood)
