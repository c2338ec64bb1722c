"""Do two samples come from one distribution: the distance of their embeddings, and where they differ.

A permutation test is valid for every kernel that does not depend on which sample a row is from. Landmarks and
bandwidths are found on the pooled rows, so the p-values are exact however few the landmarks are; only power can suffer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from latentviews._arrays import in_library_of, namespace, to_numpy
from latentviews._validation import check_count, check_weights
from latentviews.comparison.features import (
    LANDMARKS,
    SCALES,
    RowsInBatches,
    WhitenedKernel,
    fitted_map,
    kernels_to_try,
    mapped,
    rows_or_batches,
    shared_landmarks,
    some_rows,
)
from latentviews.comparison.results import Draws, TestResult, Witness, aggregated
from latentviews.core.kernels.base import Kernel
from latentviews.core.streams import mean

FEW_ROWS = 1000  # pooled rows whose whole Gram matrix is cheap
MANY_ROWS = 50_000  # pooled rows from which permutations are slower than their limit and no better
AT_ONCE = 200  # permutations that are multiplied together


@dataclass(frozen=True, eq=False)
class TwoSamples:
    """Two samples, pooled, the first ``n_first`` rows being the first sample's."""

    rows: Any
    n_first: int
    weights: np.ndarray  # (n,)

    @property
    def n_rows(self) -> int:
        """How many rows both have."""
        return int(self.rows.shape[0])

    def memberships(self, n_permutations: int, rng: np.random.Generator) -> np.ndarray:
        """Which rows are in the first sample, (1 + n_permutations, n): as they are, then at random."""
        found = np.zeros((1 + n_permutations, self.n_rows), dtype=bool)
        found[0, : self.n_first] = True
        for row in found[1:]:
            row[rng.permutation(self.n_rows)[: self.n_first]] = True
        return found


class TwoSampleStatistic(Protocol):
    """A way to the statistic and its draws under the hypothesis."""

    def draws(
        self, samples: TwoSamples, kernel: Kernel, n_permutations: int, n_landmarks: int, rng: np.random.Generator
    ) -> Draws:
        """The statistic of the two samples and of so many that are alike."""


@dataclass(frozen=True)
class QuadraticMMD:
    """The whole Gram matrix of the pooled rows: O(n²) memory, and O(n²) time for every permutation."""

    def draws(
        self, samples: TwoSamples, kernel: Kernel, n_permutations: int, n_landmarks: int, rng: np.random.Generator
    ) -> Draws:
        """The statistic of the two samples and of rows given to them at random.

        Parameters
        ----------
        rng : numpy Generator
        samples : pair of arrays
            The rows of both samples.
        kernel : Kernel
            With numbers in place of rules.
        n_permutations : int
        n_landmarks : int
            The most features per row.

        Returns
        -------
        Draws
        """
        gram = kernel.gram(samples.rows, samples.rows)
        weights = in_library_of(samples.weights, gram)

        def products(members: Any) -> tuple[Any, Any, Any]:
            xp = namespace(members)
            first, second = members * weights, (1 - members) * weights
            from_first, from_second = first @ gram, second @ gram
            return (
                xp.sum(from_first * first, axis=1),
                xp.sum(from_second * second, axis=1),
                xp.sum(from_first * second, axis=1),
            )

        return _permuted(samples, namespace(gram).linalg.diagonal(gram), products, n_permutations, rng)


@dataclass(frozen=True)
class LandmarkMMD:
    """The kernel seen from landmarks: O(n · landmarks) time for every permutation, and no n × n matrix."""

    def draws(
        self, samples: TwoSamples, kernel: Kernel, n_permutations: int, n_landmarks: int, rng: np.random.Generator
    ) -> Draws:
        """The statistic of the two samples and of rows given to them at random.

        Parameters
        ----------
        rng : numpy Generator
        samples : pair of arrays
            The rows of both samples.
        kernel : Kernel
            With numbers in place of rules.
        n_permutations : int
        n_landmarks : int
            The most features per row.

        Returns
        -------
        Draws
        """
        phi = mapped(fitted_map(kernel, some_rows(samples.rows, rng), n_landmarks, rng), samples.rows)
        return permuted_draws(samples, phi, n_permutations, rng)


@dataclass(frozen=True)
class BlockMMD:
    r"""The mean over blocks of rows of their quadratic statistics (Zaremba, Gretton & Blaschko 2013): O(n · size) time.

    Rows are paired; under the hypothesis x_i and y_i may change places, which multiplies
    h_ij = k(x_i, x_j) + k(y_i, y_j) − k(x_i, y_j) − k(y_i, x_j) by signs s_i s_j. So the draws are exact, for blocks
    of any size. The larger sample's rows beyond the smaller's number are not used.

    Parameters
    ----------
    size : int or None, default=None
        Rows of each sample in a block; None takes the square root of their number.
    """

    size: int | None = None

    def draws(
        self, samples: TwoSamples, kernel: Kernel, n_permutations: int, n_landmarks: int, rng: np.random.Generator
    ) -> Draws:
        """The statistic of the two samples and of pairs that changed places at random.

        Parameters
        ----------
        rng : numpy Generator
        samples : pair of arrays
            The rows of both samples.
        kernel : Kernel
            With numbers in place of rules.
        n_permutations : int
        n_landmarks : int
            The most features per row.

        Returns
        -------
        Draws
        """
        if np.ptp(samples.weights) > 0:
            raise ValueError("BlockMMD takes no sample_weight; use LandmarkMMD() or QuadraticMMD().")
        n_pairs = min(samples.n_first, samples.n_rows - samples.n_first)
        size = min(n_pairs, int(np.sqrt(n_pairs)) if self.size is None else check_count("size", self.size, 2))
        total, ceiling, bias = np.zeros(1 + n_permutations), 0.0, 0.0
        n_blocks = n_pairs // size
        for start in range(0, n_blocks * size, size):
            x = samples.rows[start : start + size, :]
            y = samples.rows[samples.n_first + start : samples.n_first + start + size, :]
            within, across = to_numpy(kernel.gram(x, x) + kernel.gram(y, y)), to_numpy(kernel.gram(x, y))
            differences = within - across - across.T
            bias += np.trace(differences) / (size * (size - 1))
            np.fill_diagonal(differences, 0.0)
            signs = np.where(rng.random((1 + n_permutations, size)) < 0.5, -1.0, 1.0)
            signs[0] = 1.0
            total += np.einsum("bi,bi->b", signs @ differences, signs) / (size * (size - 1))
            ceiling += within.mean()
        return Draws(float(total[0] / n_blocks), total[1:] / n_blocks, ceiling / n_blocks, bias / n_blocks)


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
        None tries three Gaussians whitened by the covariance of their features: of 4 median distances (in standard
        deviations of the columns), which sees means, of 1, which sees spreads and correlations too, and of .08, which
        sees small shapes. Rules are resolved on the pooled rows.
    statistic : QuadraticMMD(), LandmarkMMD(), BlockMMD() or None
        None takes the Gram matrix of up to 1,000 rows and landmarks of more. From 50,000 rows, and for streams, the
        null is the statistic's limit, Σ_i λ_i χ²_1 with the eigenvalues of the pooled covariance, in place of
        permutations.
    sample_weight : pair of arrays of shapes (m,) and (n,), or None
        They stay with their rows when those are permuted.
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
    n_permutations, rng = check_count("n_permutations", n_permutations), np.random.default_rng(random_state)
    check_count("n_landmarks", n_landmarks)
    x, y = rows_or_batches("x", x), rows_or_batches("y", y)
    if isinstance(x, RowsInBatches) or isinstance(y, RowsInBatches):
        return _limit_test(x, y, kernel, n_permutations, n_landmarks, rng)
    if x.shape[1] != y.shape[1]:
        raise ValueError(f"x and y need the same columns; got {x.shape[1]} and {y.shape[1]}.")
    if statistic is None and sample_weight is None and x.shape[0] + y.shape[0] > MANY_ROWS:
        return _limit_test(x, y, kernel, n_permutations, n_landmarks, rng)
    samples = TwoSamples(namespace(x).concat([x, y]), int(x.shape[0]), _both_weights(sample_weight, x, y))
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
    return np.array(list(SCALES.values())) if kernel is None else np.ones(len(draws))


def _bounded(draws: Draws, kernel: Any, samples: TwoSamples) -> Draws:
    """The draws with the most that they could be: for shares a and b of the rows 1/ab where a kernel is whitened."""
    if not isinstance(kernel, WhitenedKernel):
        return draws
    share = samples.weights[: samples.n_first].sum() / samples.weights.sum()
    return replace(draws, ceiling=1 / (share * (1 - share)))


def _both_weights(sample_weight: Any, x: Any, y: Any) -> np.ndarray:
    """The weights of the pooled rows."""
    if sample_weight is None:
        return np.ones(x.shape[0] + y.shape[0])
    if not isinstance(sample_weight, list | tuple) or len(sample_weight) != 2:
        raise ValueError("sample_weight is a pair, the weights of x and those of y; got something else.")
    parts = [check_weights(weights, rows) for weights, rows in zip(sample_weight, (x, y), strict=True)]
    return np.concatenate([np.ones(rows.shape[0]) if w is None else w for w, rows in zip(parts, (x, y), strict=True)])


def permuted_draws(samples: TwoSamples, phi: Any, n_permutations: int, rng: np.random.Generator) -> Draws:
    """The statistic of feature vectors, and of such that are given to the samples at random."""
    xp = namespace(phi)
    weighted = phi * in_library_of(samples.weights, phi)[:, None]
    total = xp.sum(weighted, axis=0)

    def products(members: Any) -> tuple[Any, Any, Any]:
        first = members @ weighted
        second = total - first
        return xp.sum(first**2, axis=1), xp.sum(second**2, axis=1), xp.sum(first * second, axis=1)

    return _permuted(samples, xp.sum(phi**2, axis=1), products, n_permutations, rng)


def _permuted(samples: TwoSamples, diagonal: Any, products: Any, n_permutations: int, rng: Any) -> Draws:
    """The unbiased statistic for the samples as they are and for permuted rows; ``products`` gives sums of kernels."""
    members, weights = samples.memberships(n_permutations, rng), samples.weights
    totals = np.stack([weights, weights**2, weights**2 * to_numpy(diagonal)], axis=1)
    values, biases, ceiling = [], [], 0.0
    for start in range(0, len(members), AT_ONCE):
        chosen = members[start : start + AT_ONCE].astype(float)
        mass, squares, own = (chosen @ totals).T
        rest, rest_squares, rest_own = totals.sum(axis=0)[:, None] - np.stack([mass, squares, own])
        first, second, cross = (to_numpy(part) for part in products(in_library_of(chosen, diagonal)))
        ceiling = ceiling or float(first[0] / mass[0] ** 2 + second[0] / rest[0] ** 2)
        within = (first - own) / (mass**2 - squares) + (second - rest_own) / (rest**2 - rest_squares)
        values.append(within - 2 * cross / (mass * rest))
        biases.append(first / mass**2 + second / rest**2 - within)
    found = np.concatenate(values)
    return Draws(float(found[0]), found[1:], ceiling, float(np.concatenate(biases).mean()))


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
    n_features = shared_landmarks(n_landmarks, len(SCALES) if kernel is None else len(kernels_to_try(kernel, some, 1)))
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
