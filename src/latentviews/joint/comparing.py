"""Two samples of many columns, compared in the low-rank basis that both share."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from latentviews._arrays import to_numpy
from latentviews._numbers import TINY, thin_svd, thinned
from latentviews.comparison.features import FeatureKernel, middle_gaussian, some_rows
from latentviews.comparison.results import Draws
from latentviews.comparison.statistics import TwoSamples, permuted_draws
from latentviews.core.features.landmarks import LandmarkFeatures
from latentviews.core.kernels.base import Kernel, UnitHeight
from latentviews.core.kernels.real import Gaussian
from latentviews.core.streams import batches
from latentviews.joint.tensor_trees import exact_embedding, khatri_rao, leaf_features, projected
from latentviews.joint.trees import read_tree

PILOT = 500  # rows that the basis is found on: n² memory
LANDMARKS = 12  # of every column
LEAST = 1e-5  # directions of a smaller share of the largest spread are rounding


@dataclass(frozen=True)
class TreeMMD:
    r"""The distance of two samples' embeddings in the low-rank basis of the pooled sample (Song & Dai 2013, section 6).

    .. math:: \bigl\|S^{-1/2} (\bar\varphi_x - \bar\varphi_y)\bigr\|^2 \quad \text{without its bias}

    The joint embedding of all columns is decomposed along a tree on the pooled rows; the tensors below the root are
    then a feature map of r² coordinates, and the statistic is the unbiased squared distance of its means, in standard
    deviations of every direction (Hotelling's). In many columns the product kernel sees every pair of rows as far
    apart, while what the columns have in common lies in few directions; several bandwidths together, the default of
    `two_sample_test`, are a remedy too, and the stronger one where both were tried. The basis does not know which
    sample a row is from, so permutations are exact without finding it again for each of them.

    Parameters
    ----------
    rank : int, default=5
    tree : "caterpillar", nested tuples or a networkx graph, default="caterpillar"

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import TreeMMD, two_sample_test
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(100, 3)), rng.normal(size=(100, 3))
    >>> y[:, 1] = 0.8 * y[:, 0] + 0.6 * y[:, 1]  # the same margins
    >>> two_sample_test(x, y, statistic=TreeMMD(), n_permutations=99, random_state=0).pvalue
    0.01
    """

    rank: int = 5
    tree: Any = "caterpillar"

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
        rows = to_numpy(samples.rows)
        if rows.shape[1] < 2:
            raise ValueError("TreeMMD compares two columns or more; use LandmarkMMD() for one.")
        some = thinned(some_rows(rows, rng), PILOT)
        features = [
            LandmarkFeatures(UnitHeight(_of_column(kernel, some, j)), LANDMARKS, random_state=0).fit(some[:, [j]])
            for j in range(rows.shape[1])
        ]
        basis = exact_embedding(some, features, read_tree(self.tree, rows.shape[1]), self.rank)
        phi = np.concatenate(
            [
                khatri_rao(*projected(basis, leaf_features(features, range(len(features)), part)))
                for part, _ in batches(rows)
            ]
        )
        return permuted_draws(samples, _whitened(phi), n_permutations, rng)


def _whitened(phi: np.ndarray) -> np.ndarray:
    """Coordinates of pooled rows with mean zero and variance one in every direction that varies."""
    centred = phi - phi.mean(axis=0)
    left, spread, _ = thin_svd(centred)
    return left[:, spread > LEAST * max(spread[0], TINY)] * np.sqrt(len(phi))


def _of_column(kernel: Any, rows: np.ndarray, column: int) -> Kernel:
    """A Gaussian as wide in one column as the kernel is in all of them, in median distances; others as they are."""
    while isinstance(kernel, FeatureKernel | UnitHeight):
        kernel = kernel.kernel  # the tree whitens by itself
    if not isinstance(kernel, Gaussian) or not np.ptp(rows[:, column]):
        return kernel
    scale = np.mean(np.asarray(kernel.bandwidth) / np.asarray(middle_gaussian(rows).bandwidth))
    return Gaussian(np.asarray(middle_gaussian(rows[:, [column]]).bandwidth) * scale)
