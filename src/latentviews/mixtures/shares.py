"""How common classes are among the rows of a fit."""

from typing import Any

import numpy as np

from latentviews._numbers import TINY, evenly
from latentviews.mixtures.problem import Problem

MANY = 10_000  # rows tell it


def class_shares(classes: Any, problem: Problem) -> np.ndarray:
    """The mean posteriors of rows of the pilot, (k,), of what is not noise."""
    some = evenly(len(problem.pilot), MANY)
    posteriors, weights = classes.posteriors(problem.pilot[some]), problem.pilot_weights
    sums = posteriors.sum(axis=0) if weights is None else weights[some] @ posteriors
    return sums / max(float(sums.sum()), TINY)
