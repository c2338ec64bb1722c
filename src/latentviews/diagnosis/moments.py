"""What the moments of a data set can carry: the ingredients of Theorem 2 of Song et al. (2014)."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import polar

from latentviews._arrays import to_numpy
from latentviews._numbers import TINY, largest_singular_value, thin_svd
from latentviews._validation import IdentifiabilityWarning, UnsupportedError
from latentviews.core.moments import Pairs, WhitenedMoments, feature_vectors, pair_moments, resampled_moments
from latentviews.core.spectral import SpectralFit, spectral_fit
from latentviews.core.tables import Columns
from latentviews.core.tensors import JointDiagonalization
from latentviews.core.views import Views, feature_prototypes, fit_views, fitting_maps, read_blocks
from latentviews.core.whitening import symmetric, symmetric_tensor, symmetric_whitening, triple_whitening

RESAMPLES = 10  # of the rows, for the error of the moments
RESAMPLED_ROWS = 1000  # of them; the errors of more follow from theirs


@dataclass(frozen=True, eq=False)
class MomentQuality:
    """How firmly the spectral estimate stands: the ingredients of Theorem 2 of Song et al. (2014).

    The spectrum is that of the pair moment it rests on, with every kernel scaled to sup k(x, x) = 1, so that numbers do
    not depend on units. Errors are those of the rows resampled (Rubin's bootstrap), whitening and all.
    """

    spectrum: np.ndarray = field(repr=False)  # singular values, decreasing
    noise: float  # what sampling alone would make of the k-th, were there k - 1 classes
    rho: np.ndarray  # (n_views,), sup k(x, x) of the kernel that was used
    eps_t: float  # ε_T, the sampling error of the whitened tensor; infinite where resamples do not support k classes
    least_value: float  # the tensor's least eigenvalue, π_max^(-1/2); ε_T must be well below it
    residual: float  # the share of the tensor that k classes leave unexplained
    bound: float  # the theorem's bound of ε_T, with probability 95 %; nearly always far too large, or infinite
    rank: int
    views: Views | None = field(default=None, repr=False, metadata={"saved": False})  # with the maps that this is in

    @property
    def sigma_k(self) -> float:
        """The k-th singular value."""
        return float(self.spectrum[self.rank - 1])

    @property
    def gap(self) -> float:
        """σ_k / σ_{k+1}; infinite where there is no further value."""
        following = self.spectrum[self.rank : self.rank + 1].sum()
        return float(self.sigma_k / following) if following > 0 else float("inf")


def moment_quality(model: Any, rows: np.ndarray, columns: Columns, rng: np.random.Generator) -> MomentQuality | None:
    """The spectral step on ``rows``, and again on resamples; None where it fails, or views are two or have no rows."""
    if len(columns) < 3 or any(np.isnan(rows[:, list(view)]).any(axis=1).all() for view in columns):
        return None
    rank = len(model.weights_)
    blocks = read_blocks(model.exchangeable, len(columns))
    names = getattr(model, "feature_names_in_", None)
    kernels = getattr(model, "kernels_", model.kernel) if model.features is None else None
    maps = feature_prototypes(kernels, model.features, model.bandwidth, columns, names)
    masses = None if model.dependent_ is not None else model.point_masses
    default = model.kernel is None and model.features is None and model.bandwidth is None  # as in the fit
    views = fit_views(rows, columns, fitting_maps(maps, rows, columns, blocks, masses, scales=default), rng, blocks)
    solver = JointDiagonalization() if model.solver is None else model.solver
    shared = len(set(blocks)) == 1
    try:
        with warnings.catch_warnings():  # the fit has said so, and the diagnosis says it again
            warnings.simplefilter("ignore", IdentifiabilityWarning)
            found = spectral_fit(rows, views, rank, solver, rng, exchangeable=shared, reference=model.reference)
    except UnsupportedError:
        return None
    rho = np.array([_supremum(rows[:, view], phi) for view, phi in zip(columns, views.features, strict=True)])
    some = rows[rng.permutation(len(rows))[:RESAMPLED_ROWS]]
    shrink = float(np.sqrt(len(some) / len(rows)))  # errors of moments fall with the root of the number of rows
    resamples = [rng.exponential(size=len(some)) for _ in range(RESAMPLES)]
    left, spectrum, right = thin_svd(_pair_moment(rows, views, found, rho))
    pair, *resampled = _pair_moments(some, views, found, rho, [np.ones(len(some)), *resamples])
    noise = np.mean([_norm_beyond(left[:, : rank - 1], one - pair, right[: rank - 1].T) for one in resampled])
    # stacked views of a group have the sum of their kernels, each at most one
    ratio = 1.0 if shared else max(len(group) for group in found.whitening.groups)
    return MomentQuality(
        spectrum=spectrum,
        noise=shrink * float(noise),
        rho=rho,
        eps_t=shrink * _tensor_error(some, views, found, resamples),
        least_value=float(found.decomposition.values.min()),
        residual=found.decomposition.residual,
        bound=tensor_error_bound(len(rows), ratio, float(spectrum[rank - 1]), float(model.weights_.min())),
        rank=rank,
        views=views,
    )


def tensor_error_bound(n_rows: int, rho: float, sigma_k: float, pi_min: float, delta: float = 0.05) -> float:
    r"""What ε_T exceeds with probability at most ``delta``: Theorem 2 of Song et al. (2014), corrected.

    .. math:: ε_T ≤ 2\sqrt 2\, ε_3 σ_k^{-3/2} + ((1 + ε_W)^3 - 1) π_{\min}^{-1/2}, \qquad ε_W = 4 ε_2 / σ_k

    where :math:`ε_2 = 2\sqrt 2\, ρ \sqrt{\log(4/δ) / m}` and :math:`ε_3 = ρ^{1/2} ε_2` bound the errors of the pair and
    triple moments, each with probability 1 - δ/2. Infinite where ε_2 exceeds σ_k / 2, and whitening with it. Proved for
    views with the same distributions; where views differ it is an order of magnitude.
    """
    second = 2 * np.sqrt(2) * rho * np.sqrt(np.log(4 / delta) / n_rows)
    if not sigma_k > 2 * second:
        return float("inf")
    whitening = 4 * second / sigma_k
    third = np.sqrt(rho) * second
    return float(2 * np.sqrt(2) * third / sigma_k**1.5 + ((1 + whitening) ** 3 - 1) / np.sqrt(pi_min))


def _supremum(table: np.ndarray, phi: Any) -> float:
    """The largest k(x, x) = ‖φ(x)‖² among the rows that are whole."""
    table = table[~np.isnan(table).any(axis=1)]
    kernel = getattr(phi, "kernel_", None)
    squares = np.sum(to_numpy(phi.transform(table)) ** 2, axis=1) if kernel is None else kernel.diagonal(table)
    return float(np.max(squares))


def _pair_moment(
    rows: np.ndarray, views: Views, found: SpectralFit, rho: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    """The pair moment that the whitening inverts, of features scaled to ρ = 1."""
    first, second, *_ = found.whitening.groups
    used = list(range(len(rho))) if found.whitening.shared else sorted([*first, *second])
    pairs: Pairs = {
        (used[s], used[t]): moment / np.sqrt(rho[used[s]] * rho[used[t]])
        for (s, t), moment in pair_moments(rows, views.some(used), weights).items()
    }
    if found.whitening.shared:
        return np.mean([symmetric(pair) for pair in pairs.values()], axis=0)
    return np.block([[pairs[s, t] if s < t else pairs[t, s].T for t in second] for s in first])


def _pair_moments(
    rows: np.ndarray, views: Views, found: SpectralFit, rho: np.ndarray, resamples: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """`_pair_moment` of rows that are weighted in several ways: features are made once."""
    if found.whitening.shared:
        return [_pair_moment(rows, views, found, rho, weights) for weights in resamples]
    sides = []
    for group in found.whitening.groups[:2]:
        some = views.some(group)
        vectors, here = feature_vectors(rows, some), some.present(rows)
        here = np.ones((len(rows), len(group))) if here is None else here
        stacked = np.hstack([v / np.sqrt(rho[t]) for v, t in zip(vectors, group, strict=True)])
        sides.append((stacked, here, [v.shape[1] for v in vectors]))
    (first, has_first, wide), (second, has_second, high) = sides

    def moment(weights: np.ndarray) -> np.ndarray:
        counts = has_first.T @ (has_second * weights[:, None])
        every = np.maximum(np.repeat(np.repeat(counts, wide, axis=0), high, axis=1), TINY)
        return (first * weights[:, None]).T @ second / every

    return [moment(weights) for weights in resamples]


def _norm_beyond(left: np.ndarray, error: np.ndarray, right: np.ndarray) -> float:
    """‖(I - UUᵀ) E (I - VVᵀ)‖: to first order, the next singular value of a matrix with these alone, seen with E."""
    error = error - left @ (left.T @ error)
    return largest_singular_value(error - (error @ right) @ right.T)


def _tensor_error(rows: np.ndarray, views: Views, found: SpectralFit, resamples: Sequence[np.ndarray]) -> float:
    """ε_T = ‖T̂ - T‖, as the root mean square distance of resampled tensors from that of the rows."""
    whitening = found.whitening
    try:
        every = resampled_moments(rows, views, whitening, [None, *resamples])
        here, *others = (_aligned_tensor(moments, whitening.shared) for moments in every)
        return float(np.sqrt(np.mean([np.sum((tensor - here) ** 2) for tensor in others])))
    except UnsupportedError:
        return float("inf")


def _aligned_tensor(moments: WhitenedMoments, shared: bool) -> np.ndarray:
    """The tensor in coordinates whitened once more, not rotated: resamples differ by their errors only."""
    rank, n = moments.triple.shape[0], len(moments.pairs)
    maps: Sequence[np.ndarray]
    if shared:
        pairs = [moments.pairs[i, j] for i in range(n) for j in range(i)]
        maps = [symmetric_whitening(np.mean([symmetric(pair) for pair in pairs], axis=0), rank)] * 3
    else:
        c_ab = thin_svd(moments.pairs[0, 1])
        maps = triple_whitening(c_ab, moments.pairs[2, 0], moments.pairs[2, 1], rank)
    rotation, _ = polar(maps[2], side="left")
    a, b, c = (each @ rotation.T for each in maps)
    return symmetric_tensor(np.einsum("abc,ai,bj,cl->ijl", moments.triple, a, b, c))
