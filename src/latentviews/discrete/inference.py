r"""Standard errors of latent classes from the observed information, and whether the items identify the classes.

Parameters are logits: π_h(z) = softmax(z β)_h and a_jh = softmax(η_jh). By Louis (1982) the observed information is
the complete data's less the conditional variance of their score u given the answers,

.. math:: I = \sum_i n_i \{ E[-\dot u \mid x_i] - E[u u^\top \mid x_i] + s_i s_i^\top \}, \quad s_i = E[u \mid x_i].
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from latentviews._numbers import TINY
from latentviews._sentences import warn_user
from latentviews._validation import IdentifiabilityWarning
from latentviews.discrete.answers import Answers, per_item
from latentviews.discrete.expectation import Kernels, expectation, smoothed

BORDER_ROWS = 1e-3  # a category with fewer expected rows in a class is taken to have none
SINGULAR = 1e-10  # eigenvalues of the information below this share of the largest are zero
LOADING = 1e-4  # a parameter with so much of a direction that the data do not fix has no standard error
ALL_CELLS = 1024  # tables with at most so many cells are looked at cell by cell
RANKED = 500  # parameters of models whose identifiability is looked at
EXTRA = 3  # else as many patterns for every parameter


class StandardErrors(NamedTuple):
    """Standard errors; NaN for estimates on the border of what is possible, which have no normal law.

    They are square roots of the diagonal of the inverse of the observed information, minus the second derivative of the
    log-likelihood, brought from logits to probabilities by the delta method.

    Attributes
    ----------
    weights : array of shape (k,)
    components : list of arrays of shape (n_categories, k), one per item
    boundary : list of arrays of shape (n_categories, k), one per item
        Where a probability is zero or one.
    n_unidentified : int
        Directions of the parameters that the data do not fix.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import LatentClass
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((300, 4)) < np.where(rng.random((300, 1)) < 0.3, 0.9, 0.1)
    >>> model = LatentClass(2, random_state=0).fit(X)
    >>> errors = model.standard_errors(X)
    >>> errors.weights.round(2), errors.n_unidentified
    (array([0.03, 0.03]), 0)
    """

    weights: np.ndarray
    components: list[np.ndarray]
    boundary: list[np.ndarray]
    n_unidentified: int


class Fitted(NamedTuple):
    """One fit, as inference needs it: class logits z β and item coefficients."""

    answers: Answers
    design: np.ndarray  # (n_patterns, q), ones without covariates
    priors: np.ndarray  # (n_patterns, k), π_h(z)
    coefficients: np.ndarray  # (Σ sizes, k)
    kernels: Kernels


class Scores(NamedTuple):
    """The score u of the complete data, and the posteriors that average it."""

    posteriors: np.ndarray  # (n_patterns, k)
    items: list[np.ndarray]  # (n_patterns, Σ sizes) per class: E[u | x, h] of the item logits
    classes: np.ndarray  # (n_patterns, k, q (k - 1)): u of β given h


class Curvature(NamedTuple):
    """The covariance of all logits, and what it was made of."""

    scores: Scores
    free: np.ndarray  # (k, Σ sizes), categories that are not on the border
    covariance: np.ndarray  # of β and all item logits, class by class; zero for those on the border
    loose: np.ndarray  # of the same: directions that the data do not fix, in columns


def curvature(fit: Fitted) -> Curvature:
    """The inverse of the observed information on free logits."""
    n_beta = _n_beta(fit)
    scores = _scores(fit)
    rows = _expected_rows(fit, scores.posteriors)
    free = (fit.coefficients * rows > BORDER_ROWS).T
    basis = _tangent_basis(free, fit.answers, n_beta)
    covariance, loose = _inverse(basis.T @ _information(fit, scores, rows) @ basis)
    return Curvature(scores, free, basis @ covariance @ basis.T, basis @ loose)


def _n_beta(fit: Fitted) -> int:
    return fit.design.shape[1] * (fit.coefficients.shape[1] - 1)


def standard_errors(fit: Fitted) -> tuple[StandardErrors, np.ndarray]:
    """Standard errors of weights and item probabilities, and the covariance of β, (q (k-1), q (k-1))."""
    found, n_beta = curvature(fit), _n_beta(fit)
    covariance = found.covariance.copy()
    covariance[(found.loose**2).sum(axis=1) > LOADING**2] = np.nan
    components = np.sqrt(_item_variances(fit, covariance[n_beta:, n_beta:]))
    boundary = (~found.free | _alone(found.free, fit.answers)).T
    components[boundary] = np.nan
    beta, cuts = covariance[:n_beta, :n_beta], fit.answers.starts[1:]
    weights = np.sqrt(_weight_variances(fit, beta))
    parts = np.split(components, cuts), np.split(boundary, cuts)
    return StandardErrors(weights, *parts, found.loose.shape[1]), beta


def posteriors_of_patterns(fit: Fitted) -> np.ndarray:
    """P(class | answers), (n_patterns, k)."""
    probabilities = smoothed(fit.coefficients, fit.kernels, fit.answers)
    return expectation(fit.answers, probabilities[:, None], np.log(np.maximum(fit.priors, TINY))[:, None])[0][:, 0]


def _scores(fit: Fitted) -> Scores:
    """The score of the complete data given answers and class."""
    probabilities = smoothed(fit.coefficients, fit.kernels, fit.answers)
    k = fit.coefficients.shape[1]
    present = _present(fit.answers)
    items = [
        np.asarray(fit.answers.indicators @ _atoms(fit, probabilities, h)) - present * fit.coefficients[:, h]
        for h in range(k)
    ]
    contrast = np.eye(k)[None, :, 1:] - fit.priors[:, None, 1:]  # (n, h, k - 1)
    classes = fit.design[:, None, :, None] * contrast[:, :, None, :]
    return Scores(posteriors_of_patterns(fit), items, classes.reshape(len(fit.priors), k, -1))


def class_scores(scores: Scores, h: int) -> np.ndarray:
    """E[u | x, h] of β and all item logits, (n_patterns, q (k-1) + k Σ sizes)."""
    parts = [items if g == h else np.zeros_like(items) for g, items in enumerate(scores.items)]
    return np.concatenate([scores.classes[:, h], *parts], axis=1)


def expected_scores(scores: Scores) -> np.ndarray:
    """E[u | x] of β and all item logits, (n_patterns, q (k-1) + k Σ sizes)."""
    classes = np.einsum("nh,nhb->nb", scores.posteriors, scores.classes)
    parts = [scores.posteriors[:, [h]] * items for h, items in enumerate(scores.items)]
    return np.concatenate([classes, *parts], axis=1)


def _present(answers: Answers) -> np.ndarray:
    """One where a pattern has an answer to the item of a category, (n_patterns, Σ sizes)."""
    return np.repeat(answers.codes >= 0, answers.sizes, axis=1).astype(float)


def _atoms(fit: Fitted, probabilities: np.ndarray, h: int) -> np.ndarray:
    """P(atom b | answer x, class h) = a_b K(x, b) / p(x), (Σ sizes, Σ sizes); the identity without smoothing."""
    total = len(probabilities)
    if fit.kernels is None:
        return np.eye(total)
    table = np.zeros((total, total))
    for start, kernel in zip(fit.answers.starts, fit.kernels, strict=True):
        part = slice(start, start + len(kernel))
        table[part, part] = kernel * fit.coefficients[part, h] / np.maximum(probabilities[part, [h]], TINY)
    return table


def _expected_rows(fit: Fitted, posteriors: np.ndarray) -> np.ndarray:
    """The rows expected to be in a class with an answer to the item of a category, (Σ sizes, k)."""
    return _present(fit.answers).T @ (posteriors * fit.answers.counts[:, None])


def _information(fit: Fitted, scores: Scores, rows: np.ndarray) -> np.ndarray:
    """The observed information of β and all item logits, class by class."""
    counts, posteriors = fit.answers.counts, scores.posteriors
    total, n_beta = len(fit.coefficients), scores.classes.shape[2]
    expected = expected_scores(scores)
    matrix = expected.T @ (counts[:, None] * expected)
    prior = np.einsum("n,nh,nha,nhb->ab", counts, fit.priors, scores.classes, scores.classes, optimize=True)
    after = np.einsum("n,nh,nha,nhb->ab", counts, posteriors, scores.classes, scores.classes, optimize=True)
    matrix[:n_beta, :n_beta] += prior - after
    for h, items in enumerate(scores.items):
        weighed = (counts * posteriors[:, h])[:, None] * items
        part = slice(n_beta + h * total, n_beta + (h + 1) * total)
        cross = scores.classes[:, h].T @ weighed
        matrix[:n_beta, part] -= cross
        matrix[part, :n_beta] -= cross.T
        matrix[part, part] += _item_blocks(fit, rows[:, h], posteriors[:, h], h) - weighed.T @ items
    return matrix


def _item_blocks(fit: Fitted, rows: np.ndarray, posteriors: np.ndarray, h: int) -> np.ndarray:
    """The complete data's information of a class's item logits, less the variance of unseen atoms of a kernel."""
    a, answers = fit.coefficients[:, h], fit.answers
    blocks = np.zeros((len(a), len(a)))
    for start, size in zip(answers.starts, answers.sizes, strict=True):
        part = slice(start, start + size)
        blocks[part, part] = rows[start] * (np.diag(a[part]) - np.outer(a[part], a[part]))
    if fit.kernels is None:
        return blocks
    chances = _atoms(fit, smoothed(fit.coefficients, fit.kernels, answers), h)
    seen = np.asarray(answers.indicators.T @ (answers.counts * posteriors))
    return blocks - np.diag(seen @ chances) + chances.T @ (seen[:, None] * chances)


def _tangent_basis(free: np.ndarray, answers: Answers, n_beta: int) -> np.ndarray:
    """Directions in which logits of free categories sum to zero; β before them, as it is."""
    k, total = free.shape
    columns = [np.eye(n_beta + k * total, n_beta)]
    for h in range(k):
        for start, size in zip(answers.starts, answers.sizes, strict=True):
            places = start + np.flatnonzero(free[h, start : start + size])
            if len(places) > 1:
                part = np.zeros((n_beta + k * total, len(places) - 1))
                centred = np.eye(len(places)) - 1 / len(places)
                part[n_beta + h * total + places] = np.linalg.svd(centred)[0][:, :-1]
                columns.append(part)
    return np.concatenate(columns, axis=1)


def _alone(free: np.ndarray, answers: Answers) -> np.ndarray:
    """Where a category is the only free one of its item in a class, of probability one."""
    return free & (per_item(free.T.astype(int), answers).T == 1)


def _inverse(information: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The inverse on the directions that the data fix, and those that they do not, in columns."""
    values, vectors = np.linalg.eigh((information + information.T) / 2)
    fixed = values > SINGULAR * max(values[-1], TINY) if len(values) else np.zeros(0, dtype=bool)
    return (vectors[:, fixed] / values[fixed]) @ vectors[:, fixed].T, vectors[:, ~fixed]


def _item_variances(fit: Fitted, covariance: np.ndarray) -> np.ndarray:
    """The variances of item probabilities K softmax(η) by the delta method, (Σ sizes, k)."""
    total, k = fit.coefficients.shape
    variances = np.zeros((total, k))
    for h in range(k):
        for j, (start, size) in enumerate(zip(fit.answers.starts, fit.answers.sizes, strict=True)):
            part = slice(start, start + size)
            a = fit.coefficients[part, h]
            slope = np.diag(a) - np.outer(a, a)
            slope = slope if fit.kernels is None else fit.kernels[j] @ slope
            block = covariance[h * total + start : h * total + start + size, :][
                :, h * total + start : h * total + start + size
            ]
            variances[part, h] = np.einsum("ij,jl,il->i", slope, block, slope)
    return np.maximum(variances, 0.0)


def _weight_variances(fit: Fitted, beta: np.ndarray) -> np.ndarray:
    """The variances of the mean class shares, (k,), by the delta method."""
    shares = fit.answers.counts / fit.answers.n_rows
    k = fit.priors.shape[1]
    slope = np.einsum("n,nh,nhg,nq->hqg", shares, fit.priors, np.eye(k)[None] - fit.priors[:, None, :], fit.design)
    slope = slope[:, :, 1:].reshape(k, -1)
    return np.maximum(np.einsum("ij,jl,il->i", slope, beta, slope), 0.0)


# --------------------------------------------------------------------------------------------------- identifiability


def n_parameters(sizes: Sequence[int], k: int) -> int:
    """Weights and item probabilities that are free."""
    return k - 1 + k * sum(size - 1 for size in sizes)


def degrees_of_freedom(sizes: Sequence[int], k: int) -> float:
    """The free cells of the table of all items, less the parameters; infinite where that is beyond counting."""
    log_cells = float(np.log(np.asarray(sizes, dtype=float)).sum())
    cells = float(np.prod([float(size) for size in sizes])) if log_cells < 36 else np.inf
    return cells - 1 - n_parameters(sizes, k)


def warn_of_unidentified(sizes: Sequence[int], k: int, rng: np.random.Generator) -> None:
    """Warn where the items cannot determine the parameters of so many classes."""
    count = n_parameters(sizes, k)
    if k == 1 or count > RANKED:
        return
    freedom = degrees_of_freedom(sizes, k)
    if freedom < 0:
        warn_user(
            f"{k} classes have {count} parameters, and the table of these items only {int(freedom) + count} free "
            "cells, so that many classes fit equally well. Ask for fewer classes, or give more items.",
            IdentifiabilityWarning,
        )
        return
    rank = jacobian_rank(sizes, k, rng)
    if rank < count:
        warn_user(
            f"The items determine only {rank} of the {count} parameters of {k} classes, whatever the data: different "
            "classes have the same likelihood. Ask for fewer classes, or give more items.",
            IdentifiabilityWarning,
        )


def jacobian_rank(sizes: Sequence[int], k: int, rng: np.random.Generator) -> int:
    """The rank of the map from parameters to the probabilities of all answers, at random parameters.

    Below the number of parameters, some of them are in no way determined by the items (Goodman 1974). Where the table
    of all items is large, random cells of it are looked at.
    """
    codes = _some_cells(sizes, EXTRA * n_parameters(sizes, k), rng)
    answers = Answers(codes, np.ones(len(codes)), tuple(sizes))
    weights = rng.dirichlet(np.full(k, 5.0))
    draws = [rng.dirichlet(np.full(size, 2.0), size=k).T for size in sizes]
    fit = Fitted(answers, np.ones((len(codes), 1)), np.tile(weights, (len(codes), 1)), np.concatenate(draws), None)
    return int(np.linalg.matrix_rank(expected_scores(_scores(fit))))


def _some_cells(sizes: Sequence[int], least: int, rng: np.random.Generator) -> np.ndarray:
    """All answers to all items, or as many random ones as can tell."""
    cells = float(np.prod([float(size) for size in sizes]))
    if cells <= max(ALL_CELLS, least):
        return np.stack(np.unravel_index(np.arange(int(cells)), tuple(sizes)), axis=1)
    return np.stack([rng.integers(size, size=least) for size in sizes], axis=1)
