"""Do two samples come from one distribution: the distance of their embeddings, and where they differ.

A permutation test is valid for every kernel that does not depend on which sample a row is from. Landmarks and
bandwidths are found on the pooled rows, so the p-values are exact however few the landmarks are; only power can suffer.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from latentviews._arrays import namespace, take_rows, to_numpy
from latentviews._numbers import generator_of
from latentviews._validation import check_count, check_weights
from latentviews.comparison.features import (
    FEWEST_ROWS,
    LANDMARKS,
    TWO_SAMPLE_WEIGHTS,
    RowsInBatches,
    WhitenedKernel,
    check_same_names,
    fitted_map,
    kernels_to_try,
    mapped,
    rows_or_batches,
    shared_landmarks,
    some_rows,
)
from latentviews.comparison.results import Draws, TestResult, Witness, aggregated
from latentviews.comparison.statistics import LandmarkMMD, QuadraticMMD, TwoSamples, TwoSampleStatistic
from latentviews.core.kernels.base import Kernel
from latentviews.core.streams import mean

FEW_ROWS = 1000  # pooled rows whose whole Gram matrix is cheap
MANY_ROWS = 50_000  # pooled rows from which permutations are slower than their limit and no better
LIGHTEST = 1e-9  # of the largest weight: rows with less are left out, or a permutation may have no other


def two_sample_test(
    x: Any,
    y: Any,
    *,
    kernel: Kernel | Sequence[Kernel] | None = None,
    statistic: TwoSampleStatistic | None = None,
    sample_weight: tuple[Any, Any] | None = None,
    n_permutations: int = 999,
    n_landmarks: int = LANDMARKS,
    random_state: Any = None,
) -> TestResult:
    r"""Whether the rows of ``x`` and ``y`` come from one distribution (Gretton et al. 2012, Lemma 6).

    .. math:: \mathrm{MMD}^2_u = \frac{1}{m(m-1)} \sum_{i \ne j} k(x_i, x_j)
              + \frac{1}{n(n-1)} \sum_{i \ne j} k(y_i, y_j) - \frac{2}{mn} \sum_{i, j} k(x_i, y_j)

    is unbiased for the squared distance of the two embeddings; the null draws give the pooled rows to the two samples
    at random. Several kernels make one test: a weighted sum of powers of their p-values, by a law, is judged against
    the same sums of the null draws (Schrab et al. 2023), so nobody need choose a bandwidth and the level stays exact.

    Parameters
    ----------
    x, y : arrays of shape (m, d) and (n, d), vectors, or iterables of batches that can be read more than once
        Arrays of PyTorch or CuPy are compared where they are.
    kernel : Kernel, list of kernels, or None
        None tries five Gaussians, their bandwidths in median distances and these in standard deviations of the columns:
        of 2, and of 8 whitened by the covariance of its features, which see means; and whitened too, of 1 less what
        is linear, which sees spreads and correlations, and of .12 and .06, which see small shapes. Rules are resolved
        on the pooled rows.
    statistic : QuadraticMMD(), LandmarkMMD(), BlockMMD() or None
        None takes the Gram matrix of up to 1,000 rows and landmarks of more. From 50,000 rows, and for streams, the
        null is the statistic's limit, Σ_i λ_i χ²_1 with the eigenvalues of the pooled covariance, in place of
        permutations.
    sample_weight : pair of arrays of shapes (m,) and (n,), or None
        They stay with their rows when those are permuted; rows without weight are left out.
    n_permutations : int, default=999
    n_landmarks : int, default=300
        The most features per row.
    random_state : int, RandomState or None

    Returns
    -------
    TestResult
        With ``statistic``, ``pvalue``, the draws ``null``, ``effect``, the ``kernel`` that spoke most clearly, and the
        ``witness``: ``witness.at(points)`` is positive where ``x`` has more rows and negative where ``y`` has.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import two_sample_test
    >>> rng = np.random.default_rng(0)
    >>> bool(two_sample_test(rng.normal(size=500), rng.uniform(-2, 2, size=500), random_state=0).pvalue < 0.05)
    True
    """
    n_permutations, rng = check_count("n_permutations", n_permutations), generator_of(random_state)
    check_count("n_landmarks", n_landmarks)
    check_same_names(x, y)
    x, y = rows_or_batches("x", x), rows_or_batches("y", y)
    if isinstance(x, RowsInBatches) or isinstance(y, RowsInBatches):
        if sample_weight is not None or statistic is not None:
            raise ValueError("A stream is compared without sample_weight and by no other statistic; pass arrays.")
        return _limit_test(x, y, kernel, n_permutations, n_landmarks, rng)
    if x.shape[1] != y.shape[1]:
        raise ValueError(f"x and y need the same columns; got {x.shape[1]} and {y.shape[1]}.")
    if statistic is None and sample_weight is None and x.shape[0] + y.shape[0] > MANY_ROWS:
        return _limit_test(x, y, kernel, n_permutations, n_landmarks, rng)
    if isinstance(statistic, type) or (statistic is not None and not hasattr(statistic, "draws")):
        raise TypeError(f"statistic must be QuadraticMMD(), LandmarkMMD(), BlockMMD() or alike; got {statistic!r}.")
    samples = _pooled(x, y, sample_weight)
    statistic = (QuadraticMMD() if samples.n_rows <= FEW_ROWS else LandmarkMMD()) if statistic is None else statistic
    some = some_rows(samples.rows, rng)
    kernels, seed = kernels_to_try(kernel, some, n_landmarks), int(rng.integers(2**31))
    draws = [
        _bounded(statistic.draws(samples, one, n_permutations, n_landmarks, np.random.default_rng(seed)), one, samples)
        for one in kernels
    ]
    best, pvalue = aggregated(draws, _weights(kernel, draws), rng)
    witness = _witness(samples, kernels[best], some, n_landmarks, rng)
    found = draws[best]
    return TestResult(found.statistic, pvalue, found.null, found.ceiling, samples.n_rows, kernels[best], witness)


def _weights(kernel: Any, draws: Sequence[Draws]) -> np.ndarray:
    """The weights of the kernels that are tried: those of the default, and equal ones of a list."""
    return np.array(TWO_SAMPLE_WEIGHTS) if kernel is None else np.ones(len(draws))


def _bounded(draws: Draws, kernel: Any, samples: TwoSamples) -> Draws:
    """The draws with the most that they could be: for shares a and b of the rows 1/ab where a kernel is whitened."""
    if not isinstance(kernel, WhitenedKernel):
        return draws
    share = samples.weights[: samples.n_first].sum() / samples.weights.sum()
    return replace(draws, ceiling=1 / (share * (1 - share)))


def _pooled(x: Any, y: Any, sample_weight: Any) -> TwoSamples:
    """The rows of both samples, without those of no weight."""
    rows, n_first = namespace(x).concat([x, y]), int(x.shape[0])
    if sample_weight is None:
        return TwoSamples(rows, n_first, np.ones(rows.shape[0]))
    weights = _both_weights(sample_weight, x, y)
    heard = np.flatnonzero(weights > LIGHTEST)
    n_heard = int(np.sum(heard < n_first)), int(np.sum(heard >= n_first))
    if min(n_heard) < FEWEST_ROWS:
        raise ValueError(
            f"A comparison needs at least {FEWEST_ROWS} rows of either sample that sample_weight does not leave out; "
            f"got {n_heard[0]} and {n_heard[1]}."
        )
    return TwoSamples(take_rows(rows, heard), n_heard[0], weights[heard])


def _both_weights(sample_weight: Any, x: Any, y: Any) -> np.ndarray:
    """The weights of the pooled rows, the largest being 1."""
    if not isinstance(sample_weight, list | tuple) or len(sample_weight) != 2:
        raise ValueError("sample_weight is a pair, the weights of x and those of y; got something else.")
    parts = [check_weights(weights, rows) for weights, rows in zip(sample_weight, (x, y), strict=True)]
    both = [np.ones(rows.shape[0]) if w is None else w for w, rows in zip(parts, (x, y), strict=True)]
    return np.concatenate(both) / max(weights.max() for weights in both)


def _witness(
    samples: TwoSamples, kernel: Kernel, some: np.ndarray, n_landmarks: int, rng: np.random.Generator
) -> Witness:
    """The difference of the two embeddings as a function."""
    features = fitted_map(kernel, some, n_landmarks, rng)
    phi, first = to_numpy(mapped(features, samples.rows)), samples.n_first
    means = [
        np.average(phi[part], axis=0, weights=samples.weights[part]) for part in (slice(first), slice(first, None))
    ]
    offset = _offset(kernel, phi, means[0] - means[1])
    return Witness(features, means[0] - means[1], offset)


def _offset(kernel: Any, phi: np.ndarray, difference: np.ndarray) -> float:
    """The mean of a whitened witness over the rows; other kernels vanish far from them, and need none."""
    return float(phi.mean(axis=0) @ difference) if isinstance(kernel, WhitenedKernel) else 0.0


def _limit_test(
    x: Any, y: Any, kernel: Any, n_permutations: int, n_landmarks: int, rng: np.random.Generator
) -> TestResult:
    """The test from one pass over each sample: means and covariances of features, and draws of the limit.

    Under the hypothesis the difference of the means of φ is N(0, (1/m + 1/n) Σ) in the limit.
    """
    halves = [some_rows(rows, rng) for rows in (x, y)]
    if halves[0].shape[1] != halves[1].shape[1]:
        raise ValueError(f"x and y need the same columns; got {halves[0].shape[1]} and {halves[1].shape[1]}.")
    some = np.concatenate(halves)
    some = some[rng.permutation(len(some))]
    n_features = shared_landmarks(
        n_landmarks, len(TWO_SAMPLE_WEIGHTS) if kernel is None else len(kernels_to_try(kernel, some, 1))
    )
    kernels = kernels_to_try(kernel, some, n_features)
    maps = [fitted_map(one, some, n_features, rng) for one in kernels]
    counts, sums = zip(*(_feature_means(rows, maps) for rows in (x, y)), strict=True)
    shares = np.array(counts) / sum(counts)
    centre = shares[0] * sums[0][0] + shares[1] * sums[1][0]
    covariance = shares[0] * sums[0][1] + shares[1] * sums[1][1] - np.outer(centre, centre)
    spread = 1 / counts[0] + 1 / counts[1]
    values, vectors = np.linalg.eigh(covariance * spread)
    noise = rng.normal(size=(n_permutations, len(values))) @ (vectors * np.sqrt(np.clip(values, 0.0, None))).T
    difference = sums[0][0] - sums[1][0]
    ends = np.cumsum([phi.tail_.shape[1] for phi in maps])
    draws: list[Draws] = []
    for part in (slice(start, end) for start, end in zip([0, *ends[:-1]], ends, strict=True)):
        bias = float(np.trace(covariance[part, part])) * spread
        ceiling = float(sum(np.sum(found[0][part] ** 2) for found in sums))
        ceiling = 1 / (shares[0] * shares[1]) if isinstance(kernels[len(draws)], WhitenedKernel) else ceiling
        draws.append(
            Draws(
                float(np.sum(difference[part] ** 2)) - bias, np.sum(noise[:, part] ** 2, axis=1) - bias, ceiling, bias
            )
        )
    best, pvalue = aggregated(draws, _weights(kernel, draws), rng)
    part = slice(int(ends[best]) - maps[best].tail_.shape[1], int(ends[best]))
    found, n_rows = draws[best], sum(counts)
    witness = Witness(maps[best], difference[part], _offset(kernels[best], centre[None, part], difference[part]))
    return TestResult(found.statistic, pvalue, found.null, found.ceiling, n_rows, kernels[best], witness)


def _feature_means(rows: Any, maps: Sequence[Any]) -> tuple[int, tuple[np.ndarray, np.ndarray]]:
    """How many rows there are, and the means of their features and of the products of those."""

    def row_sum(batch: Any, weights: Any) -> tuple[Any, ...]:
        if weights is not None:
            raise ValueError("A stream compared with another takes no weights; pass arrays with sample_weight.")
        phi = namespace(batch).concat([one.transform(batch) for one in maps], axis=1)
        n_rows[0] += batch.shape[0]
        return namespace(phi).sum(phi, axis=0), phi.T @ phi

    n_rows = [0]
    first, second = mean(rows, row_sum)
    return n_rows[0], (first, second)
