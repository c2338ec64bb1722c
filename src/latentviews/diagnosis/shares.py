"""How common the classes are among some rows, and whether a fit had other ones."""

from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from latentviews._numbers import TINY
from latentviews.mixtures.problem import classes_of

LEVEL = 1e-3  # the chance of calling rows others where they are drawn as those of the fit
SAMPLED = 0.01  # shares of the same rows differ by less, of which some were taken each time
APART = 0.03  # a polish of independent views leaves weights nearer than this to the shares of its rows,
APART_OTHERWISE = 0.1  # copulas and moments alone nearer than this: at most .023, .061 and .076 in eleven tables
TOLD = 3  # classes whose shares are told


class RowShares(NamedTuple):
    """How common the classes are among some rows."""

    shares: np.ndarray  # (k,), the means of posteriors; of what is not noise
    errors: np.ndarray  # (k,), their standard errors
    shifted: bool  # whether they differ from the weights of the fit by more than chance


def row_shares(model: Any, posteriors: np.ndarray) -> RowShares:
    """The mean posteriors of rows, which are those of the fit where the rows are those it had.

    Others have as many of a class only by chance, whose size is that of the mean of so many rows. A fit that does not
    know its own has its weights instead, which are equal at an optimum of the likelihood, and nearly so after it.
    """
    total = max(float(posteriors.sum()), TINY)
    shares = posteriors.sum(axis=0) / total
    spread = posteriors - shares * posteriors.sum(axis=1, keepdims=True)  # of a ratio of two sums
    errors = np.sqrt((spread**2).sum(axis=0)) / total
    classes, had = classes_of(model), getattr(model, "shares_", None)
    near = APART if classes.can_refit and classes.dependence is None else APART_OTHERWISE
    near = near if had is None else SAMPLED
    limit = np.maximum(np.sqrt(2) * stats.norm.isf(LEVEL / (2 * len(shares))) * errors, near)  # both are of some rows
    return RowShares(shares, errors, bool(np.any(np.abs(shares - (model.weights_ if had is None else had)) > limit)))


def shift_sentence(shares: np.ndarray, weights: np.ndarray) -> str:
    """The classes whose shares differ most, and what that means."""
    order = np.argsort(-np.abs(shares - weights), kind="stable")[:TOLD]
    told = [f"class {h} in {shares[h]:.1%}, the fit had {weights[h]:.1%}" for h in order if shares[h] != weights[h]]
    return (
        f"The shares of classes: these rows have {'; '.join(told)}. They are not the rows of the fit, or count "
        "otherwise: what is said of them holds only where the classes themselves are as they were."
    )
