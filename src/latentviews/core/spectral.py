"""The papers' four steps as one function, shared by the models."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import nnls

from latentviews.core import streams
from latentviews.core.moments import WhitenedMoments, pair_moments, whitened_moments
from latentviews.core.tensors import Decomposition, Solver
from latentviews.core.views import Views
from latentviews.core.whitening import Whitening, refine, whiten, whiten_exchangeable


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


SURE = 1e3  # how much more than any moment it counts that probabilities sum to one


def transition_matrix(data: Any, views: Views, found: SpectralFit, weights: Any = None) -> np.ndarray:
    """P(h_{t+1} | h_t) of a hidden Markov model whose triples were fitted, (k, k).

    The rows are triples of consecutive observations; view 3s + τ is sensor s at time t - 1 + τ, and the whitening's
    reference group is the middle. With y(x) = downᵀ φ(x) of the middle views and O = E[y | h] = V diag(π)^(-1/2),

        E[y(x_{t+1}) y(x_t)ᵀ] = O Aᵀ diag(π) Oᵀ,

    so the rows of A solve O A_hᵀ = E[y(x_{t+1}) | h_t = h]; they are the nearest such that are probabilities.
    """
    middle = found.whitening.groups[-1]
    down = {t: views.to_raw(t, found.whitening.down[t]) for t in middle}

    def row_sum(batch: Any, weight: Any) -> tuple[np.ndarray, np.ndarray]:
        phi, here = views(batch), views.present(batch)
        count = np.ones(len(batch)) if weight is None else np.asarray(weight)
        if here is not None:
            count = count * here[:, [s for t in middle for s in (t, t + 1)]].prod(axis=1)
        now, ahead = (np.sum([phi[t + lag] @ down[t] for t in middle], axis=0) for lag in (0, 1))
        return ahead.T @ (now * count[:, None]), count.sum()

    moment, count = streams.total(data, row_sum, weights).sums
    values, vectors = found.decomposition.values, found.decomposition.vectors
    emissions = vectors * values  # O: π_h^(-1/2) = λ_h
    ahead = (moment / count) @ vectors * values  # E[y(x_{t+1}) y(x_t)ᵀ] O⁻ᵀ diag(π)⁻¹
    return np.stack([nearest_law(emissions, column) for column in ahead.T])


def nearest_law(vectors: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The probabilities p with Σ_h p_h vectors_h nearest to ``target``."""
    size = SURE * max(np.abs(vectors).max(), np.abs(target).max())
    law, _ = nnls(np.vstack([vectors, np.full(vectors.shape[1], size)]), np.append(target, size))
    return law / law.sum()
