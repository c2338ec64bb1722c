"""How states follow each other, from the spectral fit of triples of consecutive rows."""

from typing import Any

import numpy as np
from scipy.optimize import nnls

from latentviews.core.moments import Projection, pair_moments
from latentviews.core.spectral import SpectralFit

SURE = 1e3  # how much more than any moment it counts that probabilities sum to one


def transition_matrix(data: Any, found: SpectralFit, weights: Any = None) -> np.ndarray:
    """P(h_{t+1} | h_t) of a hidden Markov model whose triples were fitted, (k, k).

    The rows are triples of consecutive observations; view 3s + τ is sensor s at time t - 1 + τ, and the whitening's
    reference group is the middle. With y(x) = downᵀ φ(x) of the middle views and O = E[y | h] = V diag(π)^(-1/2),

        E[y(x_{t+1}) y(x_t)ᵀ] = O Aᵀ diag(π) Oᵀ,

    so the rows of A solve O A_hᵀ = E[y(x_{t+1}) | h_t = h]; they are the nearest such that are probabilities.
    """
    middle, down = found.whitening.groups[-1], found.whitening.down
    of_sensor = [down[t // 3 * 3 + 1] for t in range(len(down))]  # the three times of a sensor share their features
    now_and_ahead = Projection(found.embed, (middle, [t + 1 for t in middle]), of_sensor)
    moment = pair_moments(data, now_and_ahead, weights)[0, 1].T  # E[y(x_{t+1}) y(x_t)ᵀ]
    values, vectors = found.decomposition.values, found.decomposition.vectors
    ahead = moment @ vectors * values  # E[y(x_{t+1}) y(x_t)ᵀ] O⁻ᵀ diag(π)⁻¹
    return as_transitions(found, ahead)


def as_transitions(found: SpectralFit, ahead: np.ndarray) -> np.ndarray:
    """The rows of A, which solve O A_hᵀ = E[y(x_{t+1}) | h_t = h], the columns of ``ahead``."""
    emissions = found.decomposition.vectors * found.decomposition.values  # O: π_h^(-1/2) = λ_h
    return np.stack([nearest_law(emissions, column) for column in ahead.T])


def nearest_law(vectors: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The probabilities p with Σ_h p_h vectors_h nearest to ``target``."""
    size = SURE * max(np.abs(vectors).max(), np.abs(target).max())
    law, _ = nnls(np.vstack([vectors, np.full(vectors.shape[1], size)]), np.append(target, size))
    return law / law.sum()
