"""The way down to k coordinates in which the components are orthogonal, and back up.

Whitened vectors z = downᵀ φ satisfy E[z_t | h] = v_h π_h^(-1/2) for *every* view t, with orthonormal v_h, so any
three of them have the same orthogonal third moment. Views are whitened in three groups: {a}, {b}, {c} for
three views, several views stacked in a group for more. Exchangeable views share one map.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np

from latentviews._numbers import leading_svd, singular_values, size_of, thin_svd
from latentviews._sentences import warn_user
from latentviews._validation import IdentifiabilityWarning, UnsupportedError
from latentviews.core.moments import Pairs, WhitenedMoments

ROUNDING = 1e-11  # singular values below this share of the first are rounding, not signal


@dataclass(frozen=True, eq=False)
class Whitening:
    """A projection of every view's feature vectors, W of Song et al. (2014), and the way back up, (Wᵀ)†.

    ``down[t].T @ up[t]`` is the identity, up to sampling noise in views other than the reference.
    """

    groups: tuple[tuple[int, ...], ...]  # views that are whitened together; the reference group is the last
    down: tuple[np.ndarray, ...]  # (D_t, k), one per view
    up: tuple[np.ndarray, ...]  # (D_t, k), one per view
    spectrum: np.ndarray  # singular values of the pair moment it rests on, decreasing
    shared: bool = False  # exchangeable views: one map for all


def whiten(pairs: Pairs, rank: int, reference: int | None = None) -> Whitening:
    """Step 1 for views that differ: Song et al. (2014), appendix 9, with the pair's singular vectors as A and B.

    ``reference`` is the view whose group all others are mapped to; by default the one that leaves the
    best-conditioned pair to be inverted.
    """
    n_views = 1 + max(t for _, t in pairs)
    scale = _scales(pairs, n_views)
    groups = _group_views(n_views, 0 if reference is None else reference)
    orders = [order for order in permutations(groups) if order[0] < order[1]]
    if reference is not None:
        orders = [order for order in orders if reference in order[2]]
    c_abs = [_cross_moment(pairs, scale, a, b) for a, b, _ in orders]
    found = [leading_svd(c_ab, rank) for c_ab in c_abs]
    best_first = sorted(range(len(orders)), key=lambda i: -_conditioning(found[i][1], rank))
    _check_spectrum(found[best_first[0]][1], rank)
    failure: UnsupportedError | None = None
    for i in best_first:
        order = orders[i]
        c_ca, c_cb = (_cross_moment(pairs, scale, order[2], group) for group in order[:2])
        try:
            maps = triple_whitening(found[i], c_ca, c_cb, rank)
        except UnsupportedError as error:
            if failure is None:
                failure, error.spectrum = error, singular_values(c_abs[i])
            continue
        down = _unstack(order, maps, pairs, scale)
        return Whitening(order, down, _up(pairs, order, down), singular_values(c_abs[i]))
    raise failure or UnsupportedError("No reference view to whiten with.")


def whiten_exchangeable(pairs: Pairs, rank: int) -> Whitening:
    """Step 1 for views with the same conditionals: Algorithm 1 of Song et al. (2014), over all the pairs given."""
    n_views = 1 + max(t for _, t in pairs)
    pooled = np.mean([symmetric(pair) for pair in pairs.values()], axis=0)
    spectrum = np.sort(np.abs(np.linalg.eigvalsh(pooled)))[::-1]
    _check_spectrum(spectrum, rank)
    down = symmetric_whitening(pooled, rank)
    groups = tuple((t,) for t in range(n_views))
    return Whitening(groups, (down,) * n_views, (pooled @ down,) * n_views, spectrum, shared=True)


def refine(whitening: Whitening, moments: WhitenedMoments) -> tuple[Whitening, np.ndarray]:
    """Step 2: the whitening and the tensor T of Song et al. (2014), 5.1, once moments over all rows are known.

    Only the span of a projection matters: a whitening from a pilot is whitened again by k × k moments over
    all rows, which leaves one made from all rows as it is.
    """
    rank, n = len(moments.triple), len(whitening.groups)
    maps: Sequence[np.ndarray]
    if whitening.shared:
        pairs = [moments.pairs[i, j] for i in range(n) for j in range(i)]
        maps = [symmetric_whitening(np.mean([symmetric(pair) for pair in pairs], axis=0), rank)] * n
    else:
        c_ab = thin_svd(moments.pairs[0, 1])
        maps = triple_whitening(c_ab, moments.pairs[2, 0], moments.pairs[2, 1], rank)
    place = {t: i for i, group in enumerate(whitening.groups) for t in group}
    down = tuple(whitening.down[t] @ maps[place[t]] for t in range(len(place)))
    up = [
        sum(moment[:, i] @ maps[i] for i in range(n)) / (n - 1)  # moments with the view's own group are zero
        for moment in moments.components
    ]
    if whitening.shared:
        up = [sum(up) / n] * n
    tensor = np.einsum("abc,ai,bj,cl->ijl", moments.triple, maps[0], maps[1], maps[2])
    return replace(whitening, down=down, up=tuple(up)), symmetric_tensor(tensor)


def triple_whitening(
    c_ab: tuple[np.ndarray, np.ndarray, np.ndarray], c_ca: np.ndarray, c_cb: np.ndarray, rank: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The maps of views a, b and c that bring all three to the coordinates of view c: appendix 9.

    C_ab comes as U, S, Vᵀ.  Pair_c = C_ca U S⁻¹ Vᵀ C_bc = Q Σ Qᵀ;  down_c = Q Σ^(-1/2),
    down_aᵀ = down_cᵀ C_cb V S⁻¹ Uᵀ  and  down_bᵀ = down_cᵀ C_ca U S⁻¹ Vᵀ.
    """
    u, s, vt = c_ab
    if min(len(s), len(c_ca)) < rank:
        raise UnsupportedError(
            f"{rank} components need {rank} features in every view, or group of views; the smallest has "
            f"{min(len(s), len(c_ca))}. Ask for fewer components, or give that view more columns or landmarks."
        )
    if not s[rank - 1] > 0:
        raise UnsupportedError(_unsupported(int(np.sum(s > 0)), rank))
    u, s, v = u[:, :rank], s[:rank], vt[:rank].T
    left, right = c_ca @ (u / s), c_cb @ v
    basis, _ = np.linalg.qr(np.concatenate([left, right], axis=1))  # Pair_c has rank 2k: no D × D matrix
    small = symmetric((basis.T @ left) @ (basis.T @ right).T)
    down_c = basis @ symmetric_whitening(small, rank)
    return (u / s) @ (right.T @ down_c), v @ (left.T @ down_c), down_c


def symmetric_whitening(moment: np.ndarray, rank: int) -> np.ndarray:
    """W = Q Σ^(-1/2) of the ``rank`` leading (algebraically largest) eigenpairs, so that Wᵀ C W = I."""
    values, vectors = np.linalg.eigh(moment)
    values, vectors = values[::-1][:rank], vectors[:, ::-1][:, :rank]
    if len(values) < rank or not values[-1] > 0:
        raise UnsupportedError(_unsupported(int(np.sum(values > 0)), rank))
    return vectors / np.sqrt(values)


def symmetric(matrix: np.ndarray) -> np.ndarray:
    """The symmetric part of a matrix, (C + Cᵀ) / 2: a pair of views in both orders."""
    return (matrix + matrix.T) / 2


def symmetric_tensor(tensor: np.ndarray) -> np.ndarray:
    """The mean of a tensor over all six orders of its modes: the views of T in every order."""
    return np.mean([tensor.transpose(order) for order in permutations(range(3))], axis=0)


def _check_spectrum(spectrum: np.ndarray, rank: int) -> None:
    """Warn where the pair moment has no k-th direction but rounding."""
    if len(spectrum) >= rank and spectrum[rank - 1] <= ROUNDING * spectrum[0]:
        warn_user(
            f"Singular value {rank} of the views' pair moment is {spectrum[rank - 1]:.1e}, rounding beside the first, "
            f"{spectrum[0]:.1e}: the data show fewer than {rank} classes, or some classes are mixtures of the others "
            "in one of the views. Ask for fewer components, or put more columns into that view.",
            IdentifiabilityWarning,
        )


def _unsupported(found: int, rank: int) -> str:
    return (
        f"The moments of these views support {found} component(s), not the {rank} asked for: the symmetrised pair "
        f"moment has no positive {rank}-th eigenvalue. Ask for fewer components, add rows, or widen the bandwidth."
    )


def _group_views(n_views: int, reference: int) -> tuple[tuple[int, ...], ...]:
    """Three groups of nearly equal size, filled in turn from the reference view on."""
    cycle = [(reference + i) % n_views for i in range(n_views)]
    return tuple(tuple(sorted(cycle[i::3])) for i in range(3))


def _scales(pairs: Pairs, n_views: int) -> list[float]:
    """The size of every view's features, so that none drowns the others of its group."""
    norms = {pair: size_of(c) for pair, c in pairs.items()}
    return [np.sqrt(np.mean([norm for pair, norm in norms.items() if t in pair])) or 1.0 for t in range(n_views)]


def _conditioning(spectrum: np.ndarray, rank: int) -> float:
    return float(spectrum[rank - 1] / spectrum[0]) if len(spectrum) >= rank and spectrum[0] > 0 else 0.0


def _pair(pairs: Pairs, s: int, t: int) -> np.ndarray:
    return pairs[s, t] if s < t else pairs[t, s].T


def _cross_moment(pairs: Pairs, scale: Sequence[float], first: Sequence[int], second: Sequence[int]) -> np.ndarray:
    """C_ab of two groups of scaled views."""
    parts = [[_pair(pairs, s, t) / (scale[s] * scale[t]) for t in second] for s in first]
    return parts[0][0] if len(first) == len(second) == 1 else np.block(parts)


def _unstack(
    order: Sequence[Sequence[int]], maps: Sequence[np.ndarray], pairs: Pairs, scale: Sequence[float]
) -> tuple[np.ndarray, ...]:
    """The part of its group's map that belongs to every view, for features that are not scaled."""
    down: dict[int, np.ndarray] = {}
    for group, stacked in zip(order, maps, strict=True):
        sizes = [_pair(pairs, t, (t + 1) % len(scale)).shape[0] for t in group]
        for t, part in zip(group, np.split(stacked, np.cumsum(sizes)[:-1]), strict=True):
            down[t] = part / scale[t]
    return tuple(down[t] for t in range(len(scale)))


def _up(pairs: Pairs, order: Sequence[Sequence[int]], down: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """up_t = E[φ_t z_gᵀ], averaged over the groups g that t is not in."""

    def one(t: int) -> np.ndarray:
        others = [group for group in order if t not in group]
        return sum(_pair(pairs, t, s) @ down[s] for group in others for s in group) / len(others)

    return tuple(one(t) for t in range(len(down)))
