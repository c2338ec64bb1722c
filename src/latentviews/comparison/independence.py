"""Are views independent: the distance of their joint embedding from the product of their own.

A permutation test is valid for every kernel that does not depend on which rows belong together. Landmarks and
bandwidths are found on each view by itself, so the p-values are exact however few the landmarks are; only power can
suffer.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from latentviews._arrays import in_library_of, namespace, take_rows, to_numpy
from latentviews._numbers import TINY, generator_of
from latentviews._validation import check_count, check_weights
from latentviews.comparison.features import (
    FEWEST_ROWS,
    LANDMARKS,
    N_DEPENDENCE,
    RowsInBatches,
    adapted,
    block_sums,
    check_kernel,
    dependence_kernels,
    fitted_map,
    mapped,
    rows_or_batches,
    shared_landmarks,
    some_rows,
)
from latentviews.comparison.results import Draws, TestResult, aggregated
from latentviews.core.kernels.base import Kernel
from latentviews.core.streams import batches

MANY_ROWS = 50_000  # rows from which permutations are slower than their limit and no better
CELLS = 2_000_000  # numbers that are held for permutations multiplied together
GRAM_ROWS = 2000  # between which matrices of kernels are held, nine at a time
GATHERED = 30  # multiplications that cost as much as fetching a number
# Of two views the wide, curved and fine kernels (0, 1, 2) that are tried together, and their weights. Relations are
# more often simple than not: with less for lines their power is more than .05 below that of the wide kernel alone.
PAIRS = {
    (0, 0): 0.82,  # lines
    (1, 1): 0.09,  # rings, common spreads
    (0, 1): 0.028,  # spreads that change
    (1, 0): 0.028,  # curves
    (0, 2): 0.011,  # waves
    (2, 0): 0.011,
    (2, 2): 0.012,  # spirals, patterns
}
STEPS = (0.65, 0.25, 0.1)  # the weights of kernels of more views, as fine as each other
REST = 1e-9  # directions with a smaller share of the largest variance are rounding
TOGETHER = 0.5  # the variance of features beside a one: the larger, the more three views count beside pairs of them
SKETCH = 500  # random directions that stand for the joint embedding of three views or more


def independence_test(
    x: Any,
    y: Any,
    *more: Any,
    kernel: Kernel | Sequence[Kernel | None] | None = None,
    sample_weight: Any = None,
    n_permutations: int = 999,
    n_landmarks: int = LANDMARKS,
    random_state: Any = None,
) -> TestResult:
    r"""Whether the rows of ``x``, ``y`` and ``more``, which belong together, are independent (Gretton et al. 2008).

    .. math:: \mathrm{HSIC} = \|C_{xy}\|^2 = \frac{1}{n^2} \operatorname{tr}(K H L H),
              \qquad C_{xy} = \frac1n \sum_i (\varphi(x_i) - \bar\varphi) \otimes (\psi(y_i) - \bar\psi)

    The null draws pair the rows anew at random. Of three views or more the statistic is the distance of the joint
    embedding from the product of all of them (dHSIC, Pfister et al. 2018), seen from 500 random directions, so that
    dependence which no pair shows is seen too. Several kernels make one test: for two views wide Gaussians, which see
    lines; others less what is linear, which see curves, rings and spreads; and a fine one of either view, which sees
    waves with the wide one of the other and patterns with its fine one. Each pair has a weight, and the statistic is
    Σ_k w_k p_k^-¾ with p-values by a law; the null draws are treated alike, so nobody need choose and the level stays
    exact (Schrab et al. 2023).
    With `Delta` kernels HSIC is Σ_ab (p_ab - p_a p_b)², Pearson's chi-square without its denominators.

    With ``sample_weight`` the test is about one class of a mixture: row i belongs to it with probability
    ``sample_weight[i]``. **Each row is drawn into the class with that probability, once, and the plain test is made on
    those drawn.** If the weights are the posteriors P(h | x, y, …), the rows drawn are an independent sample of the
    class, since p(row) P(h | row) ∝ p(row | h); so the p-value is exact. Weighting HSIC instead has no valid
    permutation null: the weights are functions of x and y together, so under independence within the class weighted
    rows may not change partners, wherever classes overlap. The price is that the answer depends on the draw, so on
    ``random_state``; no rows are lost that a labelled sample would have had.

    Parameters
    ----------
    x, y, *more : arrays of shape (n, d) and (n, e), vectors, or iterables of batches
        Of streams, which are two and have the same batches, and from 50,000 rows, the null is the statistic's limit in
        place of permutations: Σ_ij λ_i γ_j χ²_1 / n for one pair of kernels, with the eigenvalues of both covariances.
    kernel : Kernel, sequence of kernels (one per view), or None
        None, for all or for one of them, tries three: a Gaussian of 4 median distances (in standard deviations of the
        columns), one of 2 without what is correlated with a column (of three views or more, of 1 median distance,
        whitened by the covariance of its features), and one of .4 whitened. Rules are resolved on the rows compared.
    sample_weight : array of shape (n,) or None
        Probabilities of belonging to the class in question.
    n_permutations : int, default=999
    n_landmarks : int, default=300
        The most features of either view, of all kernels that are tried together. Time is
        O(n · n_landmarks² · n_permutations) at most, and smooth kernels need some twenty features; n² matrices
        are formed for at most 2,000 rows, where features would cost more.
    random_state : int, RandomState or None

    Returns
    -------
    TestResult
        With ``pvalue``, of all kernels together, and of the kernels that see the largest ``effect`` the ``statistic``
        and the draws ``null``. The effect is about the absolute correlation for dependence as in a Gaussian.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import independence_test
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=300)
    >>> bool(independence_test(x, x**2 + rng.normal(size=300), random_state=0).pvalue < 0.05)
    True
    """
    n_permutations, rng = check_count("n_permutations", n_permutations), generator_of(random_state)
    given = [x, y, *more]
    views = [rows_or_batches(name, view) for name, view in zip(_names(given), given, strict=True)]
    if any(isinstance(view, RowsInBatches) for view in views):
        if sample_weight is not None:
            raise ValueError("Streams are tested without sample_weight; pass arrays.")
        return _limit_test(views, _one_kernel_per_view(kernel, views), n_permutations, n_landmarks, rng)
    if len({int(view.shape[0]) for view in views}) > 1:
        sizes = " and ".join(str(view.shape[0]) for view in views)
        raise ValueError(f"{_listed(_names(views))} belong together and need the same number of rows; got {sizes}.")
    kernels = _one_kernel_per_view(kernel, views)
    if sample_weight is not None:
        members = _draw_members(sample_weight, views[0], rng)
        views = [take_rows(view, members) for view in views]
    if len(views) == 2 and views[0].shape[0] > MANY_ROWS:
        return _limit_test(views, kernels, n_permutations, n_landmarks, rng)
    return _permutation_test(views, kernels, n_permutations, n_landmarks, rng)


def _permutation_test(
    views: Sequence[Any], kernels: Sequence[Kernel | None], n_permutations: int, n_landmarks: int, rng: Any
) -> TestResult:
    """The statistics of rows as they are and paired anew, by all kernels that are tried."""
    n_rows, some = int(views[0].shape[0]), [some_rows(view, rng) for view in views]
    families, maps = _families(kernels, some, n_landmarks, rng)
    orders = _orders(n_rows, len(views), n_permutations, rng)
    features = [[mapped(phi, view) for phi in own] for own, view in zip(maps, views, strict=True)]
    tried = _combinations([len(own) for own in families])
    if len(views) == 2:
        return _result(families, tried, _pair_draws(features, tried, [order for (order,) in orders]), n_rows, rng)
    seen = [[own[step] for own, step in zip(features, steps, strict=True)] for steps in tried]
    return _result(families, tried, [_joint_draws(some, orders, rng) for some in seen], n_rows, rng)


def _result(
    families: Sequence[Sequence[Any]], tried: Mapping[tuple[int, ...], float], draws: list[Draws], n_rows: int, rng: Any
) -> TestResult:
    """All that were tried as one test: kernels by their steps from the widest, and their weights."""
    _, pvalue = aggregated(draws, np.array(list(tried.values())), rng)
    kernels = [tuple(own[step] for own, step in zip(families, steps, strict=True)) for steps in tried]
    results = [
        TestResult(one.statistic, pvalue, one.null, one.ceiling, n_rows, pair)
        for one, pair in zip(draws, kernels, strict=True)
    ]
    return max(results, key=lambda result: result.effect)


def _combinations(sizes: Sequence[int]) -> dict[tuple[int, ...], float]:
    """The kernels of all views that are tried together, by number, and their weights; a view with one has that."""
    every = PAIRS if len(sizes) == 2 else {(step,) * len(sizes): weight for step, weight in enumerate(STEPS)}
    found: dict[tuple[int, ...], float] = {}
    for steps, weight in every.items():
        there = tuple(min(step, size - 1) for step, size in zip(steps, sizes, strict=True))
        found[there] = found.get(there, 0.0) + weight
    return found


def _names(views: Sequence[Any]) -> list[str]:
    """What the views are called in sentences."""
    return ["x", "y", *(f"view {number}" for number in range(3, len(views) + 1))]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:-1]) + " and " + names[-1]


def _one_kernel_per_view(kernel: Any, views: Sequence[Any]) -> list[Kernel | None]:
    """One kernel for all views, or one each."""
    each = list(kernel) if isinstance(kernel, list | tuple) else [kernel] * len(views)
    if len(each) != len(views):
        raise ValueError(f"kernel is one kernel or one per view, for {_listed(_names(views))}; got {len(each)}.")
    return [None if one is None else check_kernel(one) for one in each]


def _families(
    kernels: Sequence[Kernel | None], some: Sequence[np.ndarray], n_landmarks: int, rng: np.random.Generator
) -> tuple[list[list[Any]], list[list[Any]]]:
    """The kernels of every view that are tried, widest first, the one that is named or several, and their features."""
    n_features = shared_landmarks(n_landmarks, N_DEPENDENCE if None in kernels else 1)
    families = [
        dependence_kernels(rows, n_features, of_pair=len(some) == 2) if one is None else [adapted(one, rows)]
        for one, rows in zip(kernels, some, strict=True)
    ]
    return families, [
        [fitted_map(one, rows, n_features, rng) for one in own] for own, rows in zip(families, some, strict=True)
    ]


def _orders(n_rows: int, n_views: int, n_permutations: int, rng: np.random.Generator) -> list[list[np.ndarray]]:
    """Orders of the rows of every view but the first: as they are, then at random."""
    as_they_are = [[np.arange(n_rows)] * (n_views - 1)]
    return as_they_are + [[rng.permutation(n_rows) for _ in range(n_views - 1)] for _ in range(n_permutations)]


def _pair_draws(features: Any, tried: Iterable[tuple[int, ...]], orders: Sequence[np.ndarray]) -> list[Draws]:
    """HSIC for some pairs of the two views' kernels, from features by all of them."""
    xp = namespace(features[0][0])
    first, second = ([phi - xp.mean(phi, axis=0) for phi in own] for own in features)
    widths = [sum(phi.shape[1] for phi in own) for own in (first, second)]
    n_rows = first[0].shape[0]
    in_features = n_rows > GRAM_ROWS or widths[0] * widths[1] < GATHERED * len(second) * n_rows
    values = (_feature_products if in_features else _gram_products)(first, second, orders)
    sizes = [[_square_norm(phi.T @ phi / phi.shape[0]) for phi in own] for own in (first, second)]
    return [
        Draws(float(values[0, i, j]), values[1:, i, j], float(np.sqrt(sizes[0][i] * sizes[1][j])))  # Cauchy-Schwarz
        for i, j in tried
    ]


def _feature_products(first: Sequence[Any], second: Sequence[Any], orders: Sequence[np.ndarray]) -> np.ndarray:
    """‖Φᵀ Ψ_o / n‖² for every order o of the rows and kernels of both views: products of features, many at once."""
    xp, n = namespace(first[0]), first[0].shape[0]
    phi, psi = xp.concat(first, axis=1), xp.concat(second, axis=1)
    at_once = max(1, CELLS // (max(n, phi.shape[1]) * psi.shape[1]))
    parts = []
    for start in range(0, len(orders), at_once):
        paired = xp.reshape(take_rows(psi, np.concatenate(orders[start : start + at_once])), (-1, n, psi.shape[1]))
        parts.append(block_sums((phi.T @ paired / n) ** 2, first, second))
    return np.concatenate(parts)


def _gram_products(first: Sequence[Any], second: Sequence[Any], orders: Sequence[np.ndarray]) -> np.ndarray:
    """The same as Σ_ij K_ij L_o(i)o(j) / n²: n² steps for every order, however many features there are."""
    n = first[0].shape[0]
    one = [to_numpy(phi @ phi.T).ravel() for phi in first]
    other = [to_numpy(psi @ psi.T) for psi in second]
    values = np.empty((len(orders), len(one), len(other)))
    for found, order in zip(values, orders, strict=True):
        paired = [gram.take(order, axis=0).take(order, axis=1).ravel() for gram in other]
        found[:] = [[own @ gram for gram in paired] for own in one]  # faster than one product of thin matrices
    return values / n**2


def _joint_draws(features: Sequence[Any], orders: Any, rng: np.random.Generator) -> Draws:
    """The draws of dHSIC from random directions: E_g ⟨g_1 ⊗ … ⊗ g_d, C⟩² = ‖C‖² for vectors g_j of random signs."""
    seen = []
    for phi in map(_beside_one, features):
        signs = rng.choice([-1.0, 1.0], size=(phi.shape[1], SKETCH))
        seen.append(phi @ in_library_of(signs, phi))
    xp = namespace(seen[0])
    product = xp.ones_like(seen[0][0, :])
    for values in seen:
        product = product * xp.mean(values, axis=0)

    def statistic(order: Sequence[np.ndarray]) -> float:
        joint = seen[0]
        for values, rows in zip(seen[1:], order, strict=True):
            joint = joint * take_rows(values, rows)
        return _square_norm(xp.mean(joint, axis=0) - product) / SKETCH

    draws = np.array([statistic(order) for order in orders])
    squares = [to_numpy(xp.mean(values**2, axis=0)) for values in seen]
    return Draws(float(draws[0]), draws[1:], float(np.mean(np.prod(squares, axis=0))))


def _beside_one(phi: Any) -> Any:
    """Centred features of a size, and a one: what ‖C‖² sums over is then every set of two views and more."""
    xp = namespace(phi)
    centred = phi - xp.mean(phi, axis=0)
    size = float(xp.sum(centred**2)) / centred.shape[0]
    return xp.concat([centred * (TOGETHER / max(size, TINY)) ** 0.5, xp.ones_like(phi[:, :1])], axis=1)


def _limit_test(
    views: Sequence[Any], kernels: Sequence[Kernel | None], n_permutations: int, n_landmarks: int, rng: Any
) -> TestResult:
    """HSIC from one pass over the rows, and draws of its limit."""
    if len(views) != 2:
        raise ValueError(f"A stream is compared with one other; got {len(views)} views.")
    families, maps = _families(kernels, [some_rows(view, rng) for view in views], n_landmarks, rng)
    sums, n_rows = _joint_sums(views, maps)
    tried = _combinations([len(own) for own in families])
    draws = _limit_draws(sums, maps, tried, n_rows, n_permutations, rng)
    return _result(families, tried, draws, n_rows, rng)


def _joint_sums(views: Sequence[Any], maps: Any) -> tuple[list[Any], int]:
    """Σφ, Σψ, Σφφᵀ, Σψψᵀ and Σφψᵀ of the features by all kernels of both views, and the number of rows."""
    sums: list[Any] = [0.0] * 5
    n_rows = 0
    for (x, _), (y, _) in zip_longest(*map(batches, views), fillvalue=(np.empty((0, 0)), None)):
        if x.shape[0] != y.shape[0]:
            raise ValueError(
                f"Streams need the same batches; one has {x.shape[0]} rows where the other has {y.shape[0]}."
            )
        n_rows += int(x.shape[0])
        phi, psi = (
            np.hstack([to_numpy(one.transform(rows)) for one in own]) for own, rows in zip(maps, (x, y), strict=True)
        )
        parts = (phi.sum(axis=0), psi.sum(axis=0), phi.T @ phi, psi.T @ psi, phi.T @ psi)
        sums = [total + part for total, part in zip(sums, parts, strict=True)]
    return sums, n_rows


def _limit_draws(
    sums: Sequence[np.ndarray],
    maps: Any,
    tried: Iterable[tuple[int, ...]],
    n: int,
    n_draws: int,
    rng: np.random.Generator,
) -> list[Draws]:
    """HSIC for some pairs of kernels and draws of its limit: √n C_xy is A G Bᵀ, G of normal entries, AAᵀ = C_xx."""
    first, second = sums[0] / n, sums[1] / n
    covariances = sums[2] / n - np.outer(first, first), sums[3] / n - np.outer(second, second)
    tails = [[phi.tail_ for phi in own] for own in maps]
    found = block_sums((sums[4] / n - np.outer(first, second))[None] ** 2, *tails)[0]
    roots = [_root(part) for part in covariances]
    null = np.concatenate(
        [
            block_sums(
                (roots[0] @ rng.normal(size=(1, roots[0].shape[1], roots[1].shape[1])) @ roots[1].T) ** 2, *tails
            )
            for _ in range(n_draws)
        ]
    )
    squares = [np.diag(block_sums(part[None] ** 2, own, own)[0]) for part, own in zip(covariances, tails, strict=True)]
    return [
        Draws(float(found[i, j]), null[:, i, j] / n, float(np.sqrt(squares[0][i] * squares[1][j]))) for i, j in tried
    ]


def _root(covariance: np.ndarray) -> np.ndarray:
    """A matrix A with AAᵀ the covariance, without the directions that are rounding."""
    values, vectors = np.linalg.eigh(covariance)
    kept = values > REST * values[-1]
    return vectors[:, kept] * np.sqrt(values[kept])


def _square_norm(matrix: Any) -> float:
    return float(namespace(matrix).sum(matrix**2))


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
