"""How well latent classes describe a table of answers: G², X², residuals of pairs of items, the bootstrap test."""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from latentviews._numbers import TINY
from latentviews.discrete.answers import Answers
from latentviews.discrete.expectation import expectation
from latentviews.discrete.inference import degrees_of_freedom

LEAST = 1e-100  # a chance of nought, to be divided by
LARGEST = 1e7  # cells of a table of all items beyond which its statistics mean nothing


@dataclass(frozen=True, eq=False)
class GoodnessOfFit:
    r"""The fitted classes beside the table of all answers, over rows without a missing one.

    .. math:: G^2 = 2 \sum_c n_c \log \frac{n_c}{e_c}, \qquad X^2 = \sum_c \frac{(n_c - e_c)^2}{e_c}

    over the cells c of the table, with n_c rows in a cell and e_c expected there.
    ``bivariate_residuals[i, j]`` is Pearson's X² of the table of items i and j over its degrees of freedom, over all
    rows that have both: values far above one name pairs that the classes do not explain.

    Attributes
    ----------
    g_squared : float
        The likelihood ratio against the table itself.
    chi_squared : float
        Pearson's.
    degrees_of_freedom : float
    g_pvalue, chi_pvalue : float
        By the χ² law; NaN where there are no degrees of freedom.
    n_rows : float
        Without a missing answer.
    bivariate_residuals : array of shape (n_items, n_items)
        NaN on the diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import LatentClass
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((300, 4)) < np.where(rng.random((300, 1)) < 0.3, 0.9, 0.1)
    >>> model = LatentClass(2, random_state=0).fit(X)
    >>> fit = model.goodness_of_fit(X)
    >>> fit.degrees_of_freedom, fit.g_pvalue > 0.05, fit.bivariate_residuals.shape
    (6.0, True, (4, 4))
    """

    g_squared: float
    chi_squared: float
    degrees_of_freedom: float
    g_pvalue: float
    chi_pvalue: float
    n_rows: float
    bivariate_residuals: np.ndarray


@dataclass(frozen=True, eq=False)
class LikelihoodRatioTest:
    r"""The bootstrap test of k - 1 classes against k (McLachlan 1987).

    .. math:: T = 2\,(\ell_k - \ell_{k-1})

    Attributes
    ----------
    statistic : float
        Twice the gain in log-likelihood.
    pvalue : float
        (1 + resamples at or above the statistic) / (1 + resamples).
    null : array of shape (n_resamples,)
        The statistic on rows drawn from k - 1 classes.
    n_components : int
        k.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import LatentClass
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((300, 4)) < np.where(rng.random((300, 1)) < 0.3, 0.9, 0.1)
    >>> model = LatentClass(2, random_state=0).fit(X)
    >>> test = model.bootstrap_test(X, n_resamples=9, random_state=0)
    >>> test.n_components, test.pvalue
    (2, 0.1)
    """

    statistic: float
    pvalue: float
    null: np.ndarray
    n_components: int


def goodness_of_fit(answers: Answers, weights: np.ndarray, probabilities: np.ndarray) -> GoodnessOfFit:
    """Of classes with these weights (k,) and item probabilities (Σ sizes, k)."""
    complete = answers.complete
    kept = complete.take(np.flatnonzero(complete.counts > 0))
    total, freedom = kept.n_rows, degrees_of_freedom(answers.sizes, len(weights))
    if not total > 0:
        raise ValueError("Goodness of fit needs rows without a missing answer, and there is none.")
    log_p = expectation(kept, probabilities[:, None], np.log(np.maximum(weights, TINY)))[1][:, 0]
    expected = total * np.maximum(np.exp(log_p), LEAST)
    g = 2 * float(kept.counts @ np.log(kept.counts / expected))
    empty = max(total - float(expected.sum()), 0.0)  # cells that no row is in add what is expected of them
    chi = float(((kept.counts - expected) ** 2 / expected).sum()) + empty
    usable = 0 < freedom < LARGEST
    g_pvalue, chi_pvalue = (float(stats.chi2.sf(value, freedom)) if usable else np.nan for value in (g, chi))
    residuals = _bivariate_residuals(answers, weights, probabilities)
    return GoodnessOfFit(g, chi, freedom, g_pvalue, chi_pvalue, total, residuals)


def _bivariate_residuals(answers: Answers, weights: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """X² over its degrees of freedom for every pair of items."""
    n_items = len(answers.sizes)
    parts = np.split(probabilities, answers.starts[1:])
    residuals = np.full((n_items, n_items), np.nan)
    for i in range(n_items):
        for j in range(i):
            both = (answers.codes[:, i] >= 0) & (answers.codes[:, j] >= 0)
            table = np.zeros((answers.sizes[i], answers.sizes[j]))
            np.add.at(table, (answers.codes[both, i], answers.codes[both, j]), answers.counts[both])
            expected = table.sum() * np.maximum((parts[i] * weights) @ parts[j].T, LEAST)
            freedom = max((table.shape[0] - 1) * (table.shape[1] - 1), 1)
            residuals[i, j] = residuals[j, i] = ((table - expected) ** 2 / expected).sum() / freedom
    return residuals
