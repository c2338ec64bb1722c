"""What a test finds, and several kernels judged as one test."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import gammaincc, logsumexp

from latentviews.core.features.landmarks import LandmarkFeatures
from latentviews.core.kernels.base import Kernel

SMALLEST = 1e-300  # p-values by a law below are this
SHARPNESS = 0.75  # of the sum in which kernels speak together: the larger, the more the clearest is heard alone
EQUAL = 1e-10  # null draws that differ from the statistic by less, relatively, are the statistic but for rounding


@dataclass(frozen=True, eq=False)
class Witness:
    """Where two samples differ: f(t) = E k(x, t) − E k(y, t), whose means differ most (Gretton et al. 2012, 2.3).

    It is positive where ``x`` has more of its rows and negative where ``y`` has; of a whitened kernel, less its mean
    over the rows of both. ``WitnessDisplay`` draws it.

    Attributes
    ----------
    features : LandmarkFeatures
        The map φ to features of the kernel.
    coefficients : array of shape (n_features,)
        The mean of φ over ``x`` less that over ``y``.
    offset : float
        What is taken off: the mean over the rows of both, of a whitened kernel, and 0 of others.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import two_sample_test
    >>> rng = np.random.default_rng(0)
    >>> test = two_sample_test(rng.normal(size=100), rng.normal(2.0, size=100), n_permutations=99, random_state=0)
    >>> np.sign(test.witness.at([0.0, 2.0]))  # more rows of the first sample, more of the second
    array([ 1., -1.])
    """

    features: LandmarkFeatures = field(repr=False)
    coefficients: np.ndarray = field(repr=False)
    offset: float = field(default=0.0, repr=False)

    def at(self, points: Any) -> np.ndarray:
        """The values at ``points``, of shape (n,) or (n, d).

        Parameters
        ----------
        points : array of shape (n,) or (n, d)

        Returns
        -------
        array of shape (n,)
        """
        rows = np.asarray(points, dtype=float)
        return self.features.transform(rows[:, None] if rows.ndim == 1 else rows) @ self.coefficients - self.offset


@dataclass(frozen=True, eq=False)
class TestResult:
    r"""What a test finds.

    ``pvalue`` is the place of the statistic among itself and the null draws, from the largest down, over
    1 + n_permutations: never 0, and under the hypothesis at most α with probability α. Draws that equal the statistic,
    as those of categories often do, are placed before or after it at random, by ``random_state``; where all are equal
    the rows tell nothing, and it is 1. Where several kernels were tried, ``statistic`` and ``null`` are those of
    ``kernel``, which of two samples spoke most clearly, and of views that may depend saw the largest effect; ``pvalue``
    accounts for the choice.

    .. math:: p = \frac{1 + \#\{b : T_b \ge T\}}{1 + B} \quad \text{for one kernel, without ties.}

    Attributes
    ----------
    statistic : float
    pvalue : float
    null : array of shape (n_permutations,)
        The statistic of every permutation.
    ceiling : float
        The most that the statistic could be with these margins.
    n_rows : int
        The rows that were compared.
    kernel : Kernel, or tuple of them with one per view
        That of the statistic.
    witness : Witness or None
        Where two samples differ; None of views.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import two_sample_test
    >>> rng = np.random.default_rng(0)
    >>> test = two_sample_test(rng.normal(size=100), rng.normal(2.0, size=100), n_permutations=99, random_state=0)
    >>> test.pvalue, 0.0 < test.effect < 1.0, test.null.shape
    (0.01, True, (99,))
    """

    __test__ = False  # not a test of pytest's

    statistic: float
    pvalue: float
    null: np.ndarray = field(repr=False)
    ceiling: float = field(repr=False)
    n_rows: int
    kernel: Kernel | tuple[Kernel, ...] | None = field(default=None, repr=False)
    witness: Witness | None = field(default=None, repr=False)

    @property
    def effect(self) -> float:
        """How far from the hypothesis, from 0 to 1 whatever the sample size: ((statistic - mean null) / ceiling)^½."""
        excess = max(self.statistic - float(self.null.mean()), 0.0)
        return float(np.sqrt(min(excess / self.ceiling, 1.0))) if self.ceiling > 0 else 0.0


@dataclass(frozen=True, eq=False)
class Draws:
    """A statistic and its draws under the hypothesis."""

    statistic: float
    null: np.ndarray
    ceiling: float
    bias: float = 0.0  # what was taken off a sum of squares

    def log_pvalues(self) -> np.ndarray:
        """Logs of how rare the statistic and the null draws are by the gamma law of most of them.

        The law of a sum of squares (Gretton et al. 2008); it only weighs statistics against each other.
        """
        values = np.maximum(np.concatenate([[self.statistic], self.null]) + self.bias, 0.0)
        rest = np.sort(values)[: -max(len(values) // 100, 1)]  # or one that stands out would hide itself
        mean, variance = rest.mean(), rest.var()
        if not variance > (EQUAL * mean) ** 2:
            return np.zeros_like(values)
        return np.log(np.maximum(gammaincc(mean**2 / variance, values * mean / variance), SMALLEST))

    def pvalue(self, rng: np.random.Generator) -> float:
        """The place of the statistic among all draws, from the largest down, over their number."""
        slack = EQUAL * max(abs(self.statistic), self.ceiling)
        return _place(np.concatenate([[self.statistic], self.null]), slack, rng)


def _place(values: np.ndarray, slack: float, rng: np.random.Generator) -> float:
    """The place of the first of several values, from the largest down, over their number; ties at random."""
    larger, equal = np.sum(values > values[0] + slack), np.sum(np.abs(values - values[0]) <= slack)
    if equal == len(values):
        return 1.0
    return float(larger + (1 if equal == 1 else rng.integers(1, equal + 1))) / len(values)


def aggregated(draws: list[Draws], weights: np.ndarray, rng: np.random.Generator) -> tuple[int, float]:
    """Which of several statistics of one hypothesis speaks most clearly, and the p-value of all of them together.

    The statistic is Σ_k w_k p_k^-s with p-values by a law, and its null draws are those of the null draws, which all
    kernels share, so the level is exact (Westfall & Young 1993; Schrab et al. 2023 for kernels). With a large
    sharpness s the clearest is heard alone, at some 1 with a share w_k of the level; with less all that agree are.
    """
    clear = np.log(weights / weights.sum())[:, None] - SHARPNESS * np.array([one.log_pvalues() for one in draws])
    best = int(np.argmax(clear[:, 0]))
    return best, draws[0].pvalue(rng) if len(draws) == 1 else _place(logsumexp(clear, axis=0), EQUAL, rng)
