r"""Exact EM for latent classes, p(x) = Σ_h π_h Π_j p_j(x_j | h), on distinct answers and from many starts at once.

Item probabilities are p_j(·|h) = K_j a_jh with a kernel K_j on the categories (the identity without smoothing) and
coefficients a_jh ≥ 0 that sum to one, so that EM is exact and monotone with smoothing too. A missing answer is left
out of its row's product.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from latentviews._numbers import TINY
from latentviews.discrete.answers import Answers, per_item

LEAST = 1e-300  # a probability of zero in logarithms
FLOOR = 1e-2  # a leap leaves at least this share of a coefficient


class ClassParameters(NamedTuple):
    """Weights and item coefficients of several starts side by side."""

    weights: np.ndarray  # (n_starts, k)
    coefficients: np.ndarray  # (Σ sizes, n_starts, k), a_jh

    def take(self, starts: np.ndarray) -> "ClassParameters":
        """Some of the starts."""
        return ClassParameters(self.weights[starts], self.coefficients[:, starts])

    def where(self, chosen: np.ndarray, others: "ClassParameters") -> "ClassParameters":
        """These where a start is chosen, and the others elsewhere."""
        return ClassParameters(
            np.where(chosen[:, None], self.weights, others.weights),
            np.where(chosen[:, None], self.coefficients, others.coefficients),
        )


def joined(starts: Sequence[ClassParameters]) -> ClassParameters:
    """Starts side by side."""
    return ClassParameters(
        np.concatenate([one.weights for one in starts]), np.concatenate([one.coefficients for one in starts], axis=1)
    )


class EMRun(NamedTuple):
    """Where EM has come from every start."""

    parameters: ClassParameters
    log_likelihood: np.ndarray  # (n_starts,)
    n_iter: int
    converged: np.ndarray  # (n_starts,)


Kernels = Sequence[np.ndarray] | None  # (C_j, C_j) per item, or None without smoothing


def smoothed(values: np.ndarray, kernels: Kernels, answers: Answers, *, adjoint: bool = False) -> np.ndarray:
    """K_j v for the categories of every item, or K_jᵀ v."""
    if kernels is None:
        return values
    parts = np.split(values, answers.starts[1:])
    return np.concatenate([np.tensordot(k.T if adjoint else k, v, axes=1) for k, v in zip(kernels, parts, strict=True)])


def log_joint(answers: Answers, probabilities: np.ndarray, log_weights: np.ndarray) -> np.ndarray:
    """Log π_h + Σ_j log p_j(x_j | h), (n_patterns, n_starts, k); ``log_weights`` may differ between patterns."""
    n_starts, k = probabilities.shape[1:]
    logs = np.log(np.maximum(probabilities, LEAST)).reshape(-1, n_starts * k)
    return np.asarray(answers.indicators @ logs).reshape(-1, n_starts, k) + log_weights


def expectation(answers: Answers, probabilities: np.ndarray, log_weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """P(h | x), (n_patterns, n_starts, k), and log p(x), (n_patterns, n_starts)."""
    joint = log_joint(answers, probabilities, log_weights)
    top = joint.max(axis=2, keepdims=True)
    posteriors = np.exp(joint - top)
    total = posteriors.sum(axis=2, keepdims=True)
    posteriors /= total
    return posteriors, (np.log(total) + top)[:, :, 0]


def em_step(
    answers: Answers, parameters: ClassParameters, kernels: Kernels = None
) -> tuple[ClassParameters, np.ndarray]:
    """One step of EM from every start, and the log-likelihoods before it."""
    probabilities = smoothed(parameters.coefficients, kernels, answers)
    posteriors, log_p = expectation(answers, probabilities, np.log(np.maximum(parameters.weights, LEAST)))
    posteriors *= answers.counts[:, None, None]
    coefficients = updated_coefficients(answers, parameters.coefficients, probabilities, posteriors, kernels)
    return ClassParameters(posteriors.sum(axis=0) / answers.n_rows, coefficients), answers.counts @ log_p


def updated_coefficients(
    answers: Answers, coefficients: np.ndarray, probabilities: np.ndarray, shares: np.ndarray, kernels: Kernels
) -> np.ndarray:
    """The item coefficients after a step, from the rows' shares in the classes (n_patterns, n_starts, k).

    a_b ← a_b Σ_x n_x K(x, b) / p(x), over its sum; without smoothing the shares of the categories.
    """
    counts = np.asarray(answers.indicators.T @ shares.reshape(len(shares), -1)).reshape(coefficients.shape)
    if kernels is not None:
        counts = coefficients * smoothed(counts / np.maximum(probabilities, TINY), kernels, answers, adjoint=True)
    totals = per_item(counts, answers)
    return np.where(totals > TINY, counts / np.maximum(totals, TINY), coefficients)


def plain_em(answers: Answers, start: ClassParameters, n_steps: int, kernels: Kernels = None) -> EMRun:
    """So many steps of EM from every start."""
    parameters = start
    for _ in range(n_steps):
        parameters, log_likelihood = em_step(answers, parameters, kernels)
    return EMRun(parameters, log_likelihood, n_steps, np.zeros(len(start.weights), dtype=bool))


def accelerated_em(
    answers: Answers, start: ClassParameters, max_iter: int, tol: float, kernels: Kernels = None
) -> EMRun:
    """EM sped up by squared extrapolation (Varadhan & Roland 2008) from every start; no likelihood falls.

    A start is done when what plain EM would still gain is estimated below ``tol``.
    """
    n_starts = len(start.weights)
    found, reached = start, np.full(n_starts, -np.inf)
    converged, active = np.zeros(n_starts, dtype=bool), np.arange(n_starts)
    longest, n_iter = np.full(n_starts, 4.0), 0
    while len(active) and n_iter < max_iter:
        leap = _squared_step(answers, found.take(active), longest[active], kernels)
        found, reached[active] = _put(found, active, leap.parameters), leap.log_likelihood
        longest[active] = leap.longest
        n_iter += 3
        converged[active] = leap.remaining < tol
        active = active[leap.remaining >= tol]
    return EMRun(found, reached, n_iter, converged)


class _Leap(NamedTuple):
    """Where a squared step has led from every start."""

    parameters: ClassParameters
    log_likelihood: np.ndarray  # of parameters a step of EM before, so a bound from below
    longest: np.ndarray  # how far the next leap may go
    remaining: np.ndarray  # an estimate of what EM has still to gain


def _squared_step(answers: Answers, current: ClassParameters, longest: np.ndarray, kernels: Kernels) -> _Leap:
    """Two steps of EM, the leap along them, θ + 2Lr + L²v with L = |r| / |v|, and a step after it where it gained."""
    first, before = em_step(answers, current, kernels)
    second, after = em_step(answers, first, kernels)
    change, next_change = _minus(first, current), _minus(second, first)
    size, next_size = _norm(change), _norm(next_change)
    bend = _minus(next_change, change)
    length = np.clip(size / np.maximum(_norm(bend), TINY), 1.0, longest)
    landed, at_leap = em_step(answers, _extrapolated(answers, current, change, bend, second, length), kernels)
    gained = at_leap >= after
    further = np.where(length >= longest, 4 * longest, longest)
    rate = np.minimum(next_size / np.maximum(size, TINY), 1 - 1e-6) ** 2  # gains are as squares of steps
    return _Leap(
        landed.where(gained, second),
        np.where(gained, at_leap, after),
        np.where(gained, further, np.maximum(longest / 2, 1.0)),
        np.maximum(after - before, 0.0) / (1 - rate),
    )


def _extrapolated(
    answers: Answers,
    current: ClassParameters,
    change: ClassParameters,
    bend: ClassParameters,
    second: ClassParameters,
    length: np.ndarray,
) -> ClassParameters:
    """The leap, kept among probabilities and off their border, which EM would not leave."""
    by = length[:, None]
    weights, coefficients = (
        np.maximum(at + 2 * by * r + by**2 * v, FLOOR * least)
        for at, r, v, least in zip(current, change, bend, second, strict=True)
    )
    totals = np.maximum(per_item(coefficients, answers), TINY)
    return ClassParameters(weights / weights.sum(axis=1, keepdims=True), coefficients / totals)


def _minus(one: ClassParameters, other: ClassParameters) -> ClassParameters:
    return ClassParameters(one.weights - other.weights, one.coefficients - other.coefficients)


def _norm(parameters: ClassParameters) -> np.ndarray:
    """The length of every start's parameters, (n_starts,)."""
    weights, coefficients = parameters
    return np.sqrt((weights**2).sum(axis=1) + (coefficients**2).sum(axis=(0, 2)))


def _put(parameters: ClassParameters, starts: np.ndarray, values: ClassParameters) -> ClassParameters:
    """The same with the values of some starts replaced."""
    weights, coefficients = parameters.weights.copy(), parameters.coefficients.copy()
    weights[starts], coefficients[:, starts] = values
    return ClassParameters(weights, coefficients)
