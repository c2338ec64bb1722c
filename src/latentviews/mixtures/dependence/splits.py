"""Whether two groups of components with no valley between them are two classes: what held-out rows say.

Components that share few rows may be the parts that one class was cut into, or classes that overlap. One Gaussian
copula with margins of any shape in the place of both tells: if rows are hardly less likely, they are one.
"""

from typing import NamedTuple

import numpy as np

from latentviews._numbers import as_shares
from latentviews.mixtures.dependence.copulas import fit_copulas
from latentviews.mixtures.dependence.grids import ColumnGrids

SHARED = 0.12  # of the smaller component's rows that two share where they are of one class
GAIN = 0.2  # of log-likelihood per held-out row, by which two classes are likelier than one
ERRORS = 2.0  # standard errors that they must gain besides
ROWS = 1500  # of two classes are looked at
FEWEST = 10  # rows of either class
STEPS = 15  # of EM


class JudgingRows(NamedTuple):
    """Rows, the posteriors of components and the grids of margins, to tell one class from two."""

    table: np.ndarray
    weights: np.ndarray | None
    grids: ColumnGrids
    posteriors: np.ndarray  # (n, J)

    def as_one(self, groups: np.ndarray, a: int, b: int) -> bool:
        """Whether rows of two groups of components, -1 for none, are about as likely under one component as under two.

        Either half of them is judged by fits to the other.
        """
        shares = self.posteriors @ np.eye(groups.max() + 2)[groups]
        labels = shares.argmax(axis=1)
        counts = np.ones(len(labels)) if self.weights is None else self.weights
        inside = np.flatnonzero(((labels == a) | (labels == b)) & (counts > 0))
        inside = np.random.default_rng(0).permutation(inside)[:ROWS]
        if min(np.sum(labels[inside] == h) for h in (a, b)) < FEWEST:
            return True
        parts, halves = as_shares(shares[inside][:, [a, b]], axis=1), (inside[::2], inside[1::2])
        gains = np.concatenate([
            self._log_density(fitted, parts[i::2], held) - self._log_density(fitted, np.ones((len(fitted), 1)), held)
            for i, (fitted, held) in enumerate((halves, halves[::-1]))
        ])  # fmt: skip
        gain = np.average(gains, weights=counts[np.concatenate(halves[::-1])])
        return bool(gain < max(GAIN, ERRORS * gains.std() / np.sqrt(len(gains))))

    def _log_density(self, fitted: np.ndarray, parts: np.ndarray, held: np.ndarray) -> np.ndarray:
        """Of rows under components fitted to others."""
        weights = None if self.weights is None else self.weights[fitted]
        fit = fit_copulas(self.grids, self.table[fitted], parts, weights, max_iter=STEPS)
        return fit.mixture.expected(self.grids.cells(self.table[held])).log_density
