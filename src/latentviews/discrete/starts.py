"""The search for the highest likelihood of latent classes: many starts, screened until the best is left."""

from collections.abc import Sequence

import numpy as np

from latentviews.discrete.answers import Answers
from latentviews.discrete.expectation import ClassParameters, EMRun, Kernels, accelerated_em, joined, plain_em

SCREENED_ROWS, SECOND_ROWS = 1000, 10_000  # starts are screened on about so many rows, twice
SCREENING_STEPS, SECOND_STEPS, LAST_STEPS = 20, 60, 12
KEPT, FINALISTS, LAST = 40, 10, 3  # the last screening is on all rows, where those are more
MARGINS = 0.01  # the share of the margins in what some of the rows say, which may lack a category
SAME = 1e-3  # log-likelihoods so close are taken for those of one maximum
TABLE = 4_000_000  # cells of posteriors held at once


def search(
    answers: Answers,
    k: int,
    given: Sequence[ClassParameters],
    n_starts: int,
    rng: np.random.Generator,
    tol: float,
    max_iter: int,
    kernels: Kernels,
) -> EMRun:
    """The best maximum of the likelihood that EM reaches from given and random starts, as a run of one start."""
    sample = _thinned(answers, SCREENED_ROWS, rng)
    screened = [
        plain_em(sample, random_start(answers, k, size, rng), SCREENING_STEPS, kernels)
        for size in _chunks(sample, k, n_starts if given else max(n_starts, 1))
    ]
    kept = [_off_the_border(answers, _best(_joined(screened), KEPT).parameters)] if screened else []
    starts, part = joined([*given, *kept]), _thinned(answers, SECOND_ROWS, rng)
    if len(starts.weights) > 1:
        starts = _best(accelerated_em(part, starts, SECOND_STEPS, tol, kernels), FINALISTS).parameters
    if part is not answers:
        starts = _off_the_border(answers, starts)
        starts = _best(accelerated_em(answers, starts, LAST_STEPS, tol, kernels), LAST).parameters
    run = accelerated_em(answers, starts, max_iter, tol, kernels)
    best = np.array([run.log_likelihood.argmax()])
    return EMRun(run.parameters.take(best), run.log_likelihood[best], run.n_iter, run.converged[best])


def _thinned(answers: Answers, n_rows: int, rng: np.random.Generator) -> Answers:
    """About so many rows, drawn by their counts, where there are more patterns."""
    if len(answers.counts) <= n_rows:
        return answers
    drawn = rng.multinomial(n_rows, answers.counts / answers.counts.sum())
    kept = np.flatnonzero(drawn)
    return Answers(answers.codes[kept], drawn[kept].astype(float), answers.sizes)


def _off_the_border(answers: Answers, starts: ClassParameters) -> ClassParameters:
    """The same with a little of the margins: EM never leaves a zero."""
    coefficients = (1 - MARGINS) * starts.coefficients + MARGINS * answers.margins[:, None, None]
    return ClassParameters(starts.weights, coefficients)


def _chunks(answers: Answers, k: int, n_starts: int) -> list[int]:
    """Numbers of starts that are tried at once, so that their posteriors fit in memory."""
    largest = max(1, TABLE // (k * max(len(answers.counts), sum(answers.sizes))))
    return [min(largest, n_starts - done) for done in range(0, n_starts, largest)]


def _best(run: EMRun, most: int) -> EMRun:
    """The starts with the highest likelihoods, one for each likelihood."""
    order = np.argsort(-run.log_likelihood, kind="stable")
    apart = np.append(True, -np.diff(run.log_likelihood[order]) > SAME)
    kept = order[apart][:most]
    return EMRun(run.parameters.take(kept), run.log_likelihood[kept], run.n_iter, run.converged[kept])


def _joined(runs: list[EMRun]) -> EMRun:
    return EMRun(
        joined([run.parameters for run in runs]),
        np.concatenate([run.log_likelihood for run in runs]),
        max(run.n_iter for run in runs),
        np.concatenate([run.converged for run in runs]),
    )


def random_start(answers: Answers, k: int, n_starts: int, rng: np.random.Generator) -> ClassParameters:
    """Equal weights, and item probabilities that are uniform on their simplex."""
    draws = [rng.dirichlet(np.ones(size), size=(n_starts, k)).transpose(2, 0, 1) for size in answers.sizes]
    return ClassParameters(np.full((n_starts, k), 1 / k), np.concatenate(draws))
