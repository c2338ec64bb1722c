"""Latent classes whose shares depend on covariates, fitted in one step: EM with a logit in its M-step."""

from functools import partial
from typing import NamedTuple

import numpy as np

from latentviews._numbers import TINY
from latentviews.discrete.answers import Answers
from latentviews.discrete.expectation import Kernels, expectation, smoothed, updated_coefficients
from latentviews.discrete.logits import class_probabilities, logit_objective, newton

PATIENCE = 3  # quiet steps before EM is taken to have ended


class RegressedClasses(NamedTuple):
    """Classes with logits of their shares."""

    logits: np.ndarray  # (q, k)
    coefficients: np.ndarray  # (Σ sizes, k)
    log_likelihood: float
    n_iter: int
    converged: bool


def regressed_em(
    answers: Answers,
    design: np.ndarray,
    posteriors: np.ndarray,
    coefficients: np.ndarray,
    max_iter: int,
    tol: float,
    kernels: Kernels = None,
) -> RegressedClasses:
    """EM from posteriors and item coefficients of classes without covariates; ``answers`` has one pattern per row.

    Bandeen-Roche et al. (1997). The M-step of the logits is a step of Newton's method, halved where it would lose.
    """
    logits = np.zeros((design.shape[1], posteriors.shape[1]))
    before, quiet = -np.inf, 0
    for n_iter in range(1, max_iter + 1):
        shares = answers.counts[:, None] * posteriors
        logits = newton(partial(logit_objective, design, shares), logits, steps=2)
        priors = np.log(np.maximum(class_probabilities(design, logits), TINY))
        probabilities = smoothed(coefficients, kernels, answers)[:, None]
        coefficients = updated_coefficients(answers, coefficients[:, None], probabilities, shares[:, None], kernels)[
            :, 0
        ]
        judged, log_p = expectation(answers, smoothed(coefficients, kernels, answers)[:, None], priors[:, None])
        posteriors, value = judged[:, 0], float(answers.counts @ log_p[:, 0])
        quiet = quiet + 1 if value - before < tol / 100 else 0  # as `accelerated_em`: a hundred steps gain no more
        if quiet == PATIENCE:
            return RegressedClasses(logits, coefficients, value, n_iter, True)
        before = value
    return RegressedClasses(logits, coefficients, before, max_iter, False)
