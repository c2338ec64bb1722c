"""Do two samples come from one distribution, and are two views independent: permutation tests on embeddings.

Both take any kernel k̃(x, y) = ⟨φ(x), φ(y)⟩ through `LandmarkFeatures`. A permutation test is valid for every kernel
that does not depend on what is permuted. Landmarks and bandwidths are found on the pooled rows, or on each
view by itself, so the p-values are exact however few the landmarks are; only power can suffer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from latentviews._validation import as_numbers, check_count, check_weights
from latentviews.core.features.landmarks import LandmarkFeatures
from latentviews.core.kernels.base import Kernel
from latentviews.core.kernels.real import Gaussian
from latentviews.core.streams import batches

LANDMARKS = 300  # the most features per row: samples of no more different rows see the kernel exactly, whatever it is
LANDMARK_ROWS = 10_000  # landmarks are sought among at most this many rows
FEWEST_ROWS = 4  # fewer have fewer than twenty permutations, and no test at 5 % can reject


@dataclass(frozen=True, eq=False)
class TestResult:
    """What a permutation test finds.

    ``pvalue`` is (1 + #{null ≥ statistic}) / (1 + n_permutations): under the hypothesis it is at most α with
    probability at most α.
    """

    __test__ = False  # not a test of pytest's

    statistic: float
    pvalue: float
    null: np.ndarray = field(repr=False)  # (n_permutations,), the statistic of every permutation
    ceiling: float = field(repr=False)  # the most that the statistic could be with these margins
    n_rows: int  # the rows that were compared

    @property
    def effect(self) -> float:
        """How far from the hypothesis, from 0 to 1 whatever the sample size: ((statistic - mean null) / ceiling)^½."""
        excess = max(self.statistic - float(self.null.mean()), 0.0)
        return float(np.sqrt(min(excess / self.ceiling, 1.0))) if self.ceiling > 0 else 0.0


def two_sample_test(
    x: Any,
    y: Any,
    *,
    kernel: Kernel | None = None,
    n_permutations: int = 999,
    n_landmarks: int = LANDMARKS,
    random_state: Any = None,
) -> TestResult:
    r"""Whether the rows of ``x`` and ``y`` come from one distribution (Gretton et al. 2012, Lemma 6).

    .. math:: \mathrm{MMD}^2_u = \frac{1}{m(m-1)} \sum_{i \ne j} k(x_i, x_j)
              + \frac{1}{n(n-1)} \sum_{i \ne j} k(y_i, y_j) - \frac{2}{mn} \sum_{i, j} k(x_i, y_j)

    is unbiased for the squared distance of the two embeddings; the null draws give the pooled rows to the two samples
    at random.

    Parameters
    ----------
    x, y : arrays of shape (m, d) and (n, d), or vectors
    kernel : Kernel, default=Gaussian("median")
        Its rules are resolved on the pooled rows.
    n_permutations : int, default=999
    n_landmarks : int, default=300
        The most features per row. Time is O((m + n) · n_landmarks · n_permutations); no (m + n)² matrix is formed.
    random_state : int, RandomState or None

    Returns
    -------
    TestResult
        With ``statistic``, ``pvalue``, the draws ``null``, and ``effect``.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import two_sample_test
    >>> rng = np.random.default_rng(0)
    >>> bool(two_sample_test(rng.normal(size=500), rng.uniform(-2, 2, size=500), random_state=0).pvalue < 0.05)
    True
    """
    x, y = _as_rows("x", x), _as_rows("y", y)
    if x.shape[1] != y.shape[1]:
        raise ValueError(f"x and y need the same columns; got {x.shape[1]} and {y.shape[1]}.")
    n_permutations, rng = check_count("n_permutations", n_permutations), np.random.default_rng(random_state)
    phi = _features(np.concatenate([x, y]), kernel, n_landmarks, rng)
    squares, total = np.sum(phi**2, axis=1), phi.sum(axis=0)
    m, n = len(x), len(y)

    def statistic(members: np.ndarray) -> float:
        first, own = phi[members].sum(axis=0), float(squares[members].sum())
        second = total - first
        within = (first @ first - own) / (m * (m - 1)) + (second @ second - (squares.sum() - own)) / (n * (n - 1))
        return float(within - 2 * first @ second / (m * n))

    null = np.array([statistic(rng.permutation(m + n)[:m]) for _ in range(n_permutations)])
    means = phi[:m].mean(axis=0), phi[m:].mean(axis=0)
    return _result(statistic(np.arange(m)), null, sum(float(mean @ mean) for mean in means), m + n)


def independence_test(
    x: Any,
    y: Any,
    *,
    kernel: Kernel | Sequence[Kernel | None] | None = None,
    sample_weight: Any = None,
    n_permutations: int = 999,
    n_landmarks: int = LANDMARKS,
    random_state: Any = None,
) -> TestResult:
    r"""Whether the rows of ``x`` and ``y``, which belong together in pairs, are independent (Gretton et al. 2008).

    .. math:: \mathrm{HSIC} = \|C_{xy}\|^2 = \frac{1}{n^2} \operatorname{tr}(K H L H),
              \qquad C_{xy} = \frac1n \sum_i (\varphi(x_i) - \bar\varphi) \otimes (\psi(y_i) - \bar\psi)

    The null draws pair the rows anew at random. With `Delta` kernels HSIC is Σ_ab (p_ab - p_a p_b)², Pearson's
    chi-square without its denominators.

    With ``sample_weight`` the test is about one class of a mixture: row i belongs to it with probability
    ``sample_weight[i]``. **Each row is drawn into the class with that probability, once, and the plain test is made on
    those drawn.** If the weights are the posteriors P(h | x, y, …), the rows drawn are an independent sample of the
    class, since p(row) P(h | row) ∝ p(row | h); so the p-value is exact. Weighting HSIC instead has no valid
    permutation null: the weights are functions of x and y together, so under independence within the class weighted
    rows may not change partners, wherever classes overlap. The price is that the answer depends on the draw, so on
    ``random_state``; no rows are lost that a labelled sample would have had.

    Parameters
    ----------
    x, y : arrays of shape (n, d) and (n, e), or vectors
    kernel : Kernel or pair of kernels for x and y, default=Gaussian("median")
        Rules are resolved on the rows compared.
    sample_weight : array of shape (n,) or None
        Probabilities of belonging to the class in question.
    n_permutations : int, default=999
    n_landmarks : int, default=300
        The most features of either view. Time is O(n · n_landmarks² · n_permutations) at most, and smooth kernels need
        some twenty features; no n² matrix is formed.
    random_state : int, RandomState or None

    Returns
    -------
    TestResult
        With ``statistic``, ``pvalue``, the draws ``null``, and ``effect``, somewhat below |correlation| for
        dependence as in a Gaussian.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import independence_test
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=300)
    >>> bool(independence_test(x, x**2 + rng.normal(size=300), random_state=0).pvalue < 0.05)
    True
    """
    x, y = _as_rows("x", x), _as_rows("y", y)
    if len(x) != len(y):
        raise ValueError(f"x and y come in pairs and need the same number of rows; got {len(x)} and {len(y)}.")
    n_permutations, rng = check_count("n_permutations", n_permutations), np.random.default_rng(random_state)
    kernels = _pair_of_kernels(kernel)
    if sample_weight is not None:
        members = _draw_members(sample_weight, x, rng)
        x, y = x[members], y[members]
    phi, psi = (_features(rows, k, n_landmarks, rng) for rows, k in zip((x, y), kernels, strict=True))
    phi, psi = phi - phi.mean(axis=0), psi - psi.mean(axis=0)
    n = len(x)

    def statistic(partners: np.ndarray) -> float:
        return _square_norm(phi.T @ psi[partners] / n)

    null = np.array([statistic(rng.permutation(n)) for _ in range(n_permutations)])
    ceiling = np.sqrt(_square_norm(phi.T @ phi / n) * _square_norm(psi.T @ psi / n))  # Cauchy-Schwarz
    return _result(statistic(np.arange(n)), null, float(ceiling), n)


def _result(statistic: float, null: np.ndarray, ceiling: float, n_rows: int) -> TestResult:
    """The p-value, counting draws that equal the statistic but for rounding."""
    at_least = int(np.sum(null >= statistic - 1e-10 * max(abs(statistic), ceiling)))
    return TestResult(statistic, (1 + at_least) / (1 + len(null)), null, ceiling, n_rows)


def _square_norm(matrix: np.ndarray) -> float:
    return float(np.sum(matrix**2))


def _as_rows(name: str, values: Any) -> np.ndarray:
    """``values`` as finite rows (n, d), enough of them for a test."""
    rows = as_numbers(name, values)
    rows = rows[:, None] if rows.ndim == 1 else rows
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise ValueError(f"{name} needs shape (n,) or (n, d); got {rows.shape}.")
    if len(rows) < FEWEST_ROWS:
        raise ValueError(f"A permutation test needs at least {FEWEST_ROWS} rows; {name} has {len(rows)}.")
    if not np.all(np.isfinite(rows)):
        raise ValueError(f"{name} contains NaN or infinity; pass the rows that are complete.")
    return rows


def _pair_of_kernels(kernel: Any) -> tuple[Kernel | None, Kernel | None]:
    """One kernel for both arguments, or one each."""
    if not isinstance(kernel, list | tuple):
        return kernel, kernel
    if len(kernel) != 2:
        raise ValueError(f"kernel is one kernel or a pair, for x and for y; got {len(kernel)}.")
    return kernel[0], kernel[1]


def _draw_members(probabilities: Any, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rows drawn into the class, each with its probability."""
    chances = check_weights(probabilities, rows)
    assert chances is not None
    if chances.max() > 1 + 1e-9:
        raise ValueError(
            f"sample_weight is the probability that a row belongs to the class, at most 1; got {chances.max():g}. "
            "Divide by the largest to draw rows in proportion."
        )
    members = np.flatnonzero(rng.random(len(rows)) < chances)
    if len(members) < FEWEST_ROWS:
        raise ValueError(
            f"A permutation test needs at least {FEWEST_ROWS} rows; sample_weight, which sums to "
            f"{chances.sum():.3g}, drew {len(members)}."
        )
    return members


def _features(rows: np.ndarray, kernel: Any, n_landmarks: int, rng: np.random.Generator) -> np.ndarray:
    """Feature vectors of the rows, from landmarks among them."""
    kernel = Gaussian("median") if kernel is None else kernel
    if not hasattr(kernel, "gram"):
        raise TypeError(f"kernel must be a Kernel, such as Gaussian(); got {kernel!r}.")
    some = rows[rng.permutation(len(rows))[:LANDMARK_ROWS]]  # in an order that forgets which sample a row is from
    phi = LandmarkFeatures(kernel, n_landmarks, random_state=int(rng.integers(2**31))).fit(some)
    return np.concatenate([phi.transform(batch) for batch, _ in batches(rows)])
