"""Are views independent: the distance of their joint embedding from the product of their own.

A permutation test is valid for every kernel that does not depend on which rows belong together. Landmarks and
bandwidths are found on each view by itself, so the p-values are exact however few the landmarks are; only power can
suffer.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from latentviews._arrays import in_library_of, namespace, take_rows, to_numpy
from latentviews._validation import check_count, check_weights
from latentviews.comparison.features import (
    FEWEST_ROWS,
    LANDMARKS,
    N_KERNELS,
    as_rows,
    check_kernel,
    fitted_map,
    is_stream,
    mapped,
    several_kernels,
    shared_landmarks,
    some_rows,
)
from latentviews.comparison.results import Draws, TestResult, clearest
from latentviews.core.kernels.base import Kernel
from latentviews.core.streams import batches

MANY_ROWS = 50_000  # rows from which permutations are slower than their limit and no better
CELLS = 2_000_000  # numbers that are held for permutations multiplied together
GATHERED = 10  # multiplications that cost as much as fetching a number
RATES = 500  # eigenvalues of the limit that are drawn; the many small ones beyond are as good as their mean
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
    dependence which no pair shows is seen too. Several kernels make one test, as in `two_sample_test`. With `Delta`
    kernels HSIC is Σ_ab (p_ab - p_a p_b)², Pearson's chi-square without its denominators.

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
        Of streams, which are two and have the same batches, and from 50,000 rows, the null is the statistic's limit,
        Σ_ij λ_i γ_j χ²_1 / n with the eigenvalues of both covariances, in place of permutations.
    kernel : Kernel, sequence of kernels (one per view), or None
        None, for all or for one of them, tries four kernels, as in `two_sample_test`. Rules are resolved on the rows
        compared.
    sample_weight : array of shape (n,) or None
        Probabilities of belonging to the class in question.
    n_permutations : int, default=999
    n_landmarks : int, default=300
        The most features of either view, of all kernels that are tried together. Time is
        O(n · n_landmarks² · n_permutations) at most, and smooth kernels need some twenty features; no n² matrix is
        formed.
    random_state : int, RandomState or None

    Returns
    -------
    TestResult
        With ``statistic``, ``pvalue``, the draws ``null``, and ``effect``, somewhat below the absolute correlation for
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
    n_permutations, rng = check_count("n_permutations", n_permutations), np.random.default_rng(random_state)
    views = [x, y, *more]
    if any(is_stream(view) for view in views):
        return _limit_test(views, _one_kernel_per_view(kernel, views), n_permutations, n_landmarks, rng)
    views = [as_rows(name, view) for name, view in zip(_names(views), views, strict=True)]
    if len({int(view.shape[0]) for view in views}) > 1:
        sizes = " and ".join(str(view.shape[0]) for view in views)
        raise ValueError(f"{_listed(_names(views))} belong together and need the same number of rows; got {sizes}.")
    kernels = _one_kernel_per_view(kernel, views)
    if sample_weight is not None:
        members = _draw_members(sample_weight, views[0], rng)
        views = [take_rows(view, members) for view in views]
    if len(views) == 2 and views[0].shape[0] > MANY_ROWS:
        return _limit_test(views, kernels, n_permutations, n_landmarks, rng)
    n_features = shared_landmarks(n_landmarks, N_KERNELS if None in kernels else 1)
    tried = _combinations(kernels, [some_rows(view, rng) for view in views], n_features)
    orders = _orders(int(views[0].shape[0]), len(views), n_permutations, rng)
    draws = [_draws(views, some, n_features, orders, rng) for some in tried]
    best, pvalue = clearest(draws, rng)
    found = draws[best]
    return TestResult(found.statistic, pvalue, found.null, found.ceiling, int(views[0].shape[0]), tuple(tried[best]))


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


def _combinations(kernels: Sequence[Kernel | None], some: Sequence[np.ndarray], n_landmarks: int) -> list[list[Any]]:
    """The kernels that are tried together: the views' kernels of one scale each time, where none is named."""
    families = [
        several_kernels(rows, n_landmarks) if one is None else [one.adapt(rows)]
        for one, rows in zip(kernels, some, strict=True)
    ]
    n_scales = max(len(family) for family in families)
    return [[family[min(i, len(family) - 1)] for family in families] for i in range(n_scales)]


def _orders(n_rows: int, n_views: int, n_permutations: int, rng: np.random.Generator) -> list[list[np.ndarray]]:
    """Orders of the rows of every view but the first: as they are, then at random."""
    as_they_are = [[np.arange(n_rows)] * (n_views - 1)]
    return as_they_are + [[rng.permutation(n_rows) for _ in range(n_views - 1)] for _ in range(n_permutations)]


def _draws(
    views: Sequence[Any], kernels: Sequence[Kernel], n_landmarks: int, orders: Any, rng: np.random.Generator
) -> Draws:
    """The statistic for the rows as they are and for rows paired anew."""
    maps = [fitted_map(one, some_rows(view, rng), n_landmarks, rng) for one, view in zip(kernels, views, strict=True)]
    features = [mapped(phi, view) for phi, view in zip(maps, views, strict=True)]
    if len(views) == 2:
        return _pair_draws(features[0], features[1], orders)
    return _joint_draws(features, orders, rng)


def _pair_draws(phi: Any, psi: Any, orders: Any) -> Draws:
    """HSIC."""
    xp, n = namespace(phi), phi.shape[0]
    phi, psi = phi - xp.mean(phi, axis=0), psi - xp.mean(psi, axis=0)
    in_features = phi.shape[1] * psi.shape[1] < GATHERED * n
    values = (_feature_products if in_features else _gram_products)(phi, psi, [order for (order,) in orders])
    ceiling = np.sqrt(_square_norm(phi.T @ phi / n) * _square_norm(psi.T @ psi / n))  # Cauchy-Schwarz
    return Draws(float(values[0]), values[1:], float(ceiling))


def _feature_products(phi: Any, psi: Any, orders: Sequence[np.ndarray]) -> np.ndarray:
    """‖Φᵀ Ψ_o / n‖² for every order o of the rows: products of features, many orders at once."""
    xp, n = namespace(phi), phi.shape[0]
    at_once = max(1, CELLS // (n * psi.shape[1]))
    parts = []
    for start in range(0, len(orders), at_once):
        paired = xp.reshape(take_rows(psi, np.concatenate(orders[start : start + at_once])), (-1, n, psi.shape[1]))
        parts.append(to_numpy(xp.sum((phi.T @ paired / n) ** 2, axis=(1, 2))))
    return np.concatenate(parts)


def _gram_products(phi: Any, psi: Any, orders: Sequence[np.ndarray]) -> np.ndarray:
    """The same as Σ_ij K_ij L_o(i)o(j) / n²: n² steps for every order, however many features there are."""
    n = phi.shape[0]
    first, second = to_numpy(phi @ phi.T), to_numpy(psi @ psi.T)
    return np.array([np.vdot(first, second[order[:, None], order]) for order in orders]) / n**2


def _joint_draws(features: Sequence[Any], orders: Any, rng: np.random.Generator) -> Draws:
    """The draws of dHSIC from random directions: E_g ⟨g_1 ⊗ … ⊗ g_d, C⟩² = ‖C‖² for vectors g_j of random signs."""
    seen = []
    for phi in features:
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


def _limit_test(
    views: Sequence[Any], kernels: Sequence[Kernel | None], n_permutations: int, n_landmarks: int, rng: Any
) -> TestResult:
    """HSIC from one pass over the rows, and draws of its limit."""
    if len(views) != 2:
        raise ValueError(f"A stream is compared with one other; got {len(views)} views.")
    pilots = [some_rows(view, rng) for view in views]
    n_features = shared_landmarks(n_landmarks, N_KERNELS if None in kernels else 1)
    tried = _combinations(kernels, pilots, n_features)
    maps = [[fitted_map(one, rows, n_features, rng) for one, rows in zip(pair, pilots, strict=True)] for pair in tried]
    sums, n_rows = _joint_sums(views, maps)
    draws = [_limit_draws(one, n_rows, n_permutations, rng) for one in sums]
    best, pvalue = clearest(draws, rng)
    found = draws[best]
    return TestResult(found.statistic, pvalue, found.null, found.ceiling, n_rows, tuple(tried[best]))


def _joint_sums(views: Sequence[Any], maps: Any) -> tuple[list[list[Any]], int]:
    """For every pair of feature maps Σφ, Σψ, Σφφᵀ, Σψψᵀ and Σφψᵀ, and the number of rows."""
    sums: list[list[Any]] = [[0.0] * 5 for _ in maps]
    n_rows = 0
    for (x, _), (y, _) in zip(batches(views[0]), batches(views[1]), strict=True):
        if x.shape[0] != y.shape[0]:
            raise ValueError(
                f"Streams need the same batches; one has {x.shape[0]} rows where the other has {y.shape[0]}."
            )
        n_rows += int(x.shape[0])
        for place, (first, second) in enumerate(maps):
            phi, psi = to_numpy(first.transform(x)), to_numpy(second.transform(y))
            parts = (phi.sum(axis=0), psi.sum(axis=0), phi.T @ phi, psi.T @ psi, phi.T @ psi)
            sums[place] = [total + part for total, part in zip(sums[place], parts, strict=True)]
    return sums, n_rows


def _limit_draws(sums: Sequence[np.ndarray], n: int, n_draws: int, rng: np.random.Generator) -> Draws:
    """HSIC and its limit Σ_ij λ_i γ_j χ²_1 / n."""
    first, second = sums[0] / n, sums[1] / n
    covariances = sums[2] / n - np.outer(first, first), sums[3] / n - np.outer(second, second)
    joint = sums[4] / n - np.outer(first, second)
    spectra = [np.clip(np.linalg.eigvalsh(part), 0.0, None) for part in covariances]
    rates = np.sort(np.outer(*spectra).ravel())[::-1]
    null = (rng.chisquare(1, size=(n_draws, len(rates[:RATES]))) @ rates[:RATES] + rates[RATES:].sum()) / n
    ceiling = np.sqrt(_square_norm(covariances[0]) * _square_norm(covariances[1]))
    return Draws(_square_norm(joint), null, float(ceiling))


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
