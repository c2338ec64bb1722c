"""A Dirichlet prior on the weights of a mixture: moments corrected for it, and how concentrated it is.

Song et al. (2014), section 7; Anandkumar et al. (2012). With α₀ = Σ α_h and π_h = α_h / α₀,

    Pair(α₀)   = E[y₁⊗y₂] − α₀/(α₀+1) m⊗m                                       = Σ π_h/(α₀+1) o_h⊗o_h
    Triple(α₀) = E[y₁⊗y₂⊗y₃] − α₀/(α₀+2) (E[y₁⊗y₂]⊗m in its three placements)
                 + 2α₀²/((α₀+1)(α₀+2)) m⊗m⊗m                                     = Σ 2π_h/((α₀+1)(α₀+2)) o_h⊗o_h⊗o_h
"""

import warnings
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from latentviews._numbers import row_shares
from latentviews._sentences import warn_user
from latentviews._validation import IdentifiabilityWarning, UnsupportedError
from latentviews.core.tensors import Solver
from latentviews.core.whitening import Whitening, symmetric, symmetric_tensor, symmetric_whitening, whiten
from latentviews.discrete.bags import BagMoments

RANGE = (1e-3, 1e3)  # of the concentrations that are looked for
UNTOLD = 1.0  # the concentration of fewer than three parts, which moments do not tell
STEP, NEAR = float(np.log(10)), 1e-3  # of their logarithms: while a root is looked for, and when it is near enough


class DirichletParts(NamedTuple):
    """Parts of a mixture with a Dirichlet prior, the commonest first."""

    weights: np.ndarray  # (k,), π_h as the eigenvalues say, which need not sum to one
    vectors: np.ndarray  # (D, k), o_h in columns
    concentration: float
    residual: float  # of the tensor's decomposition


def corrected_pair(moments: BagMoments, concentration: float) -> np.ndarray:
    """Pair(α₀) of mean moments."""
    share = concentration / (concentration + 1)
    return symmetric(moments.second) - share * np.outer(moments.first, moments.first)


def corrected_triple(moments: BagMoments, concentration: float) -> np.ndarray:
    """Triple(α₀) of mean moments."""
    a, m = concentration, moments.first
    crossed = np.einsum("ij,l->ijl", symmetric(moments.second), m)
    placements = crossed + crossed.transpose(0, 2, 1) + crossed.transpose(2, 1, 0)
    return moments.third - a / (a + 2) * placements + 2 * a**2 / ((a + 1) * (a + 2)) * np.einsum("i,j,l->ijl", m, m, m)


def dirichlet_parts(
    moments: BagMoments, rank: int, concentration: float, solver: Solver, rng: np.random.Generator
) -> DirichletParts:
    """Whitening by Pair(α₀), decomposition of Triple(α₀), and back: π_h = 4(α₀+1)/((α₀+2)² λ_h²).

    o_h = (α₀+2)/2 λ_h (Wᵀ)† v_h, with (Wᵀ)† = (E[x⊗y] − α₀/(α₀+1) E[x]⊗m) W for the atoms x themselves.
    """
    down = symmetric_whitening(corrected_pair(moments, concentration), rank)
    triple = symmetric_tensor(corrected_triple(moments, concentration))
    found = solver.decompose(np.einsum("abc,ai,bj,cl->ijl", triple, down, down, down, optimize=True), rng)
    if not found.values.min() > 0:
        raise UnsupportedError(f"The third moment supports fewer than the {rank} parts asked for.")
    weights = 4 * (concentration + 1) / ((concentration + 2) ** 2 * found.values**2)
    up = moments.carried - concentration / (concentration + 1) * np.outer(moments.mean, moments.first)
    vectors = (concentration + 2) / 2 * (up @ down) @ (found.vectors * found.values)
    order = np.argsort(-weights, kind="stable")
    return DirichletParts(weights[order], vectors[:, order], concentration, found.residual)


def find_concentration(parts_at: Callable[[float], DirichletParts]) -> float:
    """The α₀ at which the weights sum to one: Σ_h π_h(α₀) falls in α₀ for three parts or more, so there is one root.

    With two parts the sum is one at every α₀: their moments are those of two parts further apart, mixed more.

    Where the weights fall short of one throughout, a mixture without mixed membership comes nearest, the least α₀ of
    the range; where they exceed it throughout, the largest whose moments have as many parts.
    """

    def excess(log_concentration: float) -> float:
        return float(parts_at(float(np.exp(log_concentration))).weights.sum() - 1)

    places = np.log(RANGE[0]) + STEP * np.arange(round(np.log(RANGE[1] / RANGE[0]) / STEP) + 1)
    here, value = len(places) // 2, _excess(excess, places[len(places) // 2])
    while value is None or value <= 0:  # down, to where weights exceed one
        if here == 0:
            if value is None:
                excess(places[0])  # its sentence says what these moments do support
            return RANGE[0]
        here, above = here - 1, value
        value = _excess(excess, places[here])
        if value is not None and value > 0 and above is not None:
            return _root(excess, places[here], places[here + 1])
    while here + 1 < len(places):  # up, to where they fall short of it
        value = _excess(excess, places[here + 1])
        if value is None:
            break
        here += 1
        if value <= 0:
            return _root(excess, places[here - 1], places[here])
    return float(np.exp(places[here]))


def chosen_concentration(rank: int, given: float | None, find: Callable[[], float], instead: str = "") -> float:
    """The concentration given, or else found, which moments tell from three parts on; ``instead`` is what else may."""
    if given is not None:
        return given
    if rank == 2:
        warn_user(
            f"Moments of three draws do not tell the concentration of two parts: it is taken to be {UNTOLD:g}{instead}"
            ". Pass `concentration` where more is known.",
            IdentifiabilityWarning,
        )
    if rank < 3:
        return UNTOLD
    with warnings.catch_warnings():  # of concentrations that are only tried
        warnings.simplefilter("ignore", IdentifiabilityWarning)
        return find()


def _excess(excess: Callable[[float], float], place: float) -> float | None:
    """The excess at a place; None where the moments there do not have as many parts."""
    try:
        return excess(place)
    except UnsupportedError:
        return None


def _root(excess: Callable[[float], float], low: float, high: float) -> float:
    return float(np.exp(brentq(excess, low, high, xtol=NEAR)))


def view_parts(
    phis: Sequence[np.ndarray],
    rank: int,
    concentration: float,
    solver: Solver,
    rng: np.random.Generator,
    shares: np.ndarray | None = None,
) -> tuple[DirichletParts, Whitening]:
    """The parts in views that differ, features (n, D_t) of each: appendix 9 of Song et al. with corrected moments.

    ``vectors`` of the parts are those of all views, one view under the other. ``shares`` are those of rows in moments,
    equal ones by default.
    """
    a, share = concentration, row_shares(len(phis[0]), None)[:, None] if shares is None else shares[:, None]
    means = [(phi * share).sum(axis=0) for phi in phis]
    pairs = {
        (s, t): phis[s].T @ (phis[t] * share) - a / (a + 1) * np.outer(means[s], means[t])
        for s, t in combinations(range(len(phis)), 2)
    }
    whitening = whiten(pairs, rank)
    z = [sum(phis[t] @ whitening.down[t] for t in group) for group in whitening.groups]
    m = [(one * share).sum(axis=0) for one in z]
    triple = np.einsum("ni,nj,nl->ijl", z[0] * share, z[1], z[2], optimize=True)
    for (s, t), spec in {(0, 1): "ij,l->ijl", (0, 2): "il,j->ijl", (1, 2): "jl,i->ijl"}.items():
        triple -= a / (a + 2) * np.einsum(spec, z[s].T @ (z[t] * share), m[3 - s - t])
    triple += 2 * a**2 / ((a + 1) * (a + 2)) * np.einsum("i,j,l->ijl", *m)
    found = solver.decompose(symmetric_tensor(triple), rng)
    if not found.values.min() > 0:
        raise UnsupportedError(f"The third moment supports fewer than the {rank} parts asked for.")
    weights = 4 * (a + 1) / ((a + 2) ** 2 * found.values**2)
    vectors = (a + 2) / 2 * np.concatenate(whitening.up) @ (found.vectors * found.values)
    order = np.argsort(-weights, kind="stable")
    return DirichletParts(weights[order], vectors[:, order], a, found.residual), whitening
