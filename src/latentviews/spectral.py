"""The papers' four steps as one function, shared by the models."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from latentviews.moments import WhitenedMoments, pair_moments, whitened_moments
from latentviews.tensors import Decomposition, Solver
from latentviews.views import Views
from latentviews.whitening import Whitening, refine, whiten, whiten_exchangeable


@dataclass(frozen=True, eq=False)
class SpectralFit:
    """What the four steps find."""

    weights: np.ndarray  # (k,), the raw λ_h⁻², decreasing
    vectors: tuple[np.ndarray, ...]  # (D_t, k) a view: μ_h in columns
    whitening: Whitening
    decomposition: Decomposition


def spectral_fit(
    data: Any,
    views: Views,
    rank: int,
    solver: Solver,
    rng: np.random.Generator,
    *,
    weights: Any = None,
    pilot: tuple[Any, Any] | None = None,
    exchangeable: bool = False,
    reference: int | None = None,
    lift: Views | None = None,
) -> SpectralFit:
    """Song et al. (2014), section 5: pair moments, whitening, triple moment, decomposition, components.

    ``pilot`` is some rows and their weights; the projection is found on them, or on all rows (a pass more) if None.
    Either way the moments that enter the answer are sums over all rows. ``lift`` gives the features in which
    components are wanted, those of ``views`` by default.
    """
    rows, row_weights = pilot or (data, weights)
    raw_pairs = pair_moments(rows, views, row_weights)
    pairs = {(s, t): views.from_raw(t, views.from_raw(s, c).T).T for (s, t), c in raw_pairs.items()}
    whitening = whiten_exchangeable(pairs, rank) if exchangeable else whiten(pairs, rank, reference)
    down = tuple(views.to_raw(t, down) for t, down in enumerate(whitening.down))
    moments = whitened_moments(data, views, replace(whitening, down=down), weights, lift)
    lifts = tuple((lift or views).from_raw(t, moment) for t, moment in enumerate(moments.lifts))
    return solve(whitening, moments._replace(lifts=lifts), solver, rng)


def solve(whitening: Whitening, moments: WhitenedMoments, solver: Solver, rng: np.random.Generator) -> SpectralFit:
    """The last steps: whiten with the moments of all rows, decompose the tensor, and go back up."""
    whitening, tensor = refine(whitening, moments)
    found = solver.decompose(tensor, rng)
    order = np.argsort(found.values, kind="stable")  # π_h = λ_h⁻²: the commonest class first
    found = Decomposition(found.values[order], found.vectors[:, order], found.residual)
    vectors = tuple(up @ (found.vectors * found.values) for up in whitening.up)
    return SpectralFit(found.values**-2, vectors, whitening, found)
