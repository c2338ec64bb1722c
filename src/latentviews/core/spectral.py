"""The four steps of Song et al. (2014) as one function, shared by the models."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from latentviews._validation import UnsupportedError
from latentviews.core.leaner import leaner
from latentviews.core.moments import Embed, pair_moments, whitened_moments
from latentviews.core.tensors import Decomposition, Solver
from latentviews.core.whitening import Whitening, refine, whiten, whiten_exchangeable

NOTHING = 1e-9  # eigenvalues, which are one and more where moments are exact, so small are none


@dataclass(frozen=True, eq=False)
class SpectralFit:
    """What the four steps find."""

    weights: np.ndarray  # (k,), the raw λ_h⁻², decreasing
    vectors: tuple[np.ndarray, ...]  # (D_t, k) per view: μ_h in columns
    whitening: Whitening
    decomposition: Decomposition
    embed: Embed  # the views' features that the whitening takes down


def spectral_fit(
    data: Any,
    embed: Embed,
    rank: int,
    solver: Solver,
    rng: np.random.Generator,
    *,
    weights: Any = None,
    pilot: tuple[Any, Any] | None = None,
    exchangeable: bool = False,
    reference: int | None = None,
    component_maps: Embed | None = None,
    lean: bool = False,
) -> SpectralFit:
    """Song et al. (2014), section 5.1: pair moments, whitening, triple moment, decomposition, components.

    ``pilot`` is some rows and their weights; the projection is found on them, or on all rows (a pass more) if None.
    Either way the moments that enter the answer are sums over all rows. ``component_maps`` gives the features in which
    components are wanted, those of ``embed`` by default. A ``lean`` pass sees views from no more landmarks than the
    pilot's projections take.
    """
    rows, row_weights = pilot or (data, weights)
    pairs = pair_moments(rows, embed, row_weights)  # first pass
    whitening = whiten_exchangeable(pairs, rank) if exchangeable else whiten(pairs, rank, reference)  # step 1
    seen = embed
    if lean:
        seen, whitening = leaner(embed, whitening, rows, row_weights)
    moments = whitened_moments(data, seen, whitening, weights, component_maps or embed)  # second pass
    whitening, tensor = refine(whitening, moments)  # step 2
    found = solver.decompose(tensor, rng)  # step 3
    return components_of(whitening, found, seen)  # step 4


def components_of(whitening: Whitening, found: Decomposition, embed: Embed) -> SpectralFit:
    """Step 4, the whitening undone: μ_h = (Wᵀ)† v_h λ_h and π_h = λ_h⁻², the commonest class first."""
    if not np.all(found.values > NOTHING):
        raise UnsupportedError(
            "The third moment of the views gives a class no size: it shows fewer classes than were asked for. Ask for "
            "fewer, or give more rows."
        )
    order = np.argsort(found.values, kind="stable")
    found = Decomposition(found.values[order], found.vectors[:, order], found.residual)
    vectors = tuple(up @ (found.vectors * found.values) for up in whitening.up)
    return SpectralFit(found.values**-2, vectors, whitening, found, embed)
