"""Ways to the statistic of two samples and its draws under the hypothesis: all pairs of rows, landmarks, blocks."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from latentviews._arrays import in_library_of, namespace, to_numpy
from latentviews._validation import check_count
from latentviews.comparison.features import fitted_map, mapped, some_rows
from latentviews.comparison.results import Draws
from latentviews.core.kernels.base import Kernel

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
    r"""The whole Gram matrix of the pooled rows: O(n²) memory, and O(n²) time for every permutation.

    .. math:: \frac{1}{m(m-1)} \sum_{i \ne j} k(x_i, x_j) + \frac{1}{n(n-1)} \sum_{i \ne j} k(y_i, y_j)
              - \frac{2}{mn} \sum_{ij} k(x_i, y_j)

    is unbiased for the squared distance of the two embeddings (Gretton et al. 2012, lemma 6).

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import QuadraticMMD, two_sample_test
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=100), rng.normal(scale=3.0, size=100)
    >>> two_sample_test(x, y, statistic=QuadraticMMD(), n_permutations=99, random_state=0).pvalue
    0.01
    """

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
    r"""The kernel seen from landmarks: O(n · landmarks) time for every permutation, and no n × n matrix.

    .. math:: k(x, y) \approx k_Z(x)^\top K_{ZZ}^{-1} k_Z(y), \qquad k_Z(x) = (k(z_1, x), \ldots, k(z_p, x))^\top

    in the statistic of `QuadraticMMD`, with landmarks z_1, …, z_p among the rows (Williams & Seeger 2001).

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import LandmarkMMD, two_sample_test
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=100), rng.normal(scale=3.0, size=100)
    >>> two_sample_test(x, y, statistic=LandmarkMMD(), n_permutations=99, random_state=0).pvalue
    0.01
    """

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

    .. math:: \frac1B \sum_{b=1}^B \frac{1}{s(s-1)} \sum_{i \ne j \in b} h_{ij}, \qquad
              h_{ij} = k(x_i, x_j) + k(y_i, y_j) - k(x_i, y_j) - k(y_i, x_j)

    with B blocks of size s. Rows are paired; under the hypothesis x_i and y_i may change places, which multiplies h_ij
    by a sign of i and one of j. So the draws are exact, for blocks of any size. The larger sample's rows beyond the
    smaller's number are not used.

    Parameters
    ----------
    size : int or None, default=None
        Rows of each sample in a block; None takes the square root of their number.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import BlockMMD, two_sample_test
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=100), rng.normal(scale=3.0, size=100)
    >>> two_sample_test(x, y, statistic=BlockMMD(size=20), n_permutations=99, random_state=0).pvalue
    0.01
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
