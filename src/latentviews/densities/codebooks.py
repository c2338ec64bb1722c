"""Codebooks: Gaussians side by side, each shaped like the rows around it, as building blocks; and plain clusters."""

from typing import NamedTuple

import numpy as np
from sklearn.mixture import GaussianMixture

from latentviews._clusters import _in_one_thread
from latentviews._numbers import TINY, quartile_spread

ROWS = 10_000  # rows that a codebook is fitted to
STEPS = 20  # EM steps; more make no better building blocks
RIDGE = 1e-3  # of the rows' spread, squared, that every Gaussian has at least while it is fitted
LEAST = 1e-6  # the same of what few rows are shrunk to, beside their own variances
FAR = 1e4  # spreads: stray rows, farther out than this, must not rule the others
SHARE_STEPS = 5  # EM steps for the shares of classes


class Codebook(NamedTuple):
    """Gaussians N(means_b, Σ_b), Σ_b⁻¹ = maps_b maps_bᵀ, with their shares of all rows."""

    means: np.ndarray  # (M, d)
    maps: np.ndarray  # (M, d, d)
    weights: np.ndarray  # (M,)

    def log_densities(self, x: np.ndarray) -> np.ndarray:
        """The logs of N(x_i; means_b, Σ_b), (n, M)."""
        values = np.empty((len(x), len(self.means)))
        for b, (mean, whitener) in enumerate(zip(self.means, self.maps, strict=True)):
            whitened = np.clip((x - mean) @ whitener, -FAR, FAR)
            values[:, b] = np.einsum("ij,ij->i", whitened, whitened)
        return np.linalg.slogdet(self.maps)[1] - x.shape[1] / 2 * np.log(2 * np.pi) - values / 2

    def scaled_densities(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """N(x_i; means_b, Σ_b) over the largest for the row, (n, M), and the logs of those, (n,).

        Of many columns, densities themselves may be beyond the range of numbers.
        """
        logs = self.log_densities(x)
        largest = logs.max(axis=1)
        return np.exp(logs - largest[:, None]), largest

    def shares(self, x: np.ndarray, posteriors: np.ndarray) -> np.ndarray:
        """The mixture of these Gaussians that every class is, (M, k), after a few steps of EM from all rows' own."""
        densities, _ = self.scaled_densities(x)
        shares = np.repeat(self.weights[:, None], posteriors.shape[1], axis=1)
        for _ in range(SHARE_STEPS):
            gathered = shares * (densities.T @ (posteriors / np.maximum(densities @ shares, TINY))) + TINY
            shares = gathered / gathered.sum(axis=0)
        return shares


def fit_codebook(x: np.ndarray, size: int, rng: np.random.Generator) -> Codebook:
    """A codebook of the rows ``x``, none missing, by EM from k-means, in columns of one spread."""
    some = x[rng.permutation(len(x))[:ROWS]]
    mean, spread = np.median(some, axis=0), spreads(some)
    seed = int(rng.integers(2**31))
    mixture = GaussianMixture(size, reg_covar=RIDGE, max_iter=STEPS, random_state=seed)
    with _in_one_thread():
        mixture.fit(np.clip((some - mean) / spread, -FAR, FAR))
    maps = _maps(mixture.covariances_ - RIDGE * np.eye(x.shape[1]), mixture.weights_ * len(some)) / spread[:, None]
    return Codebook(mean + mixture.means_ * spread, maps, mixture.weights_)


def _maps(covariances: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Maps that make covariances of so many rows the identity: as narrow as the rows are, where there are many."""
    dim = covariances.shape[1]
    share = ((dim + 2) / (counts + dim + 2))[:, None, None]
    own = np.einsum("bii->bi", covariances)[:, :, None] * np.eye(dim)
    shrunk = (1 - share) * covariances + share * (np.maximum(own, 0.0) + LEAST * np.eye(dim))
    values, vectors = np.linalg.eigh(shrunk)
    return vectors / np.sqrt(np.maximum(values, LEAST * share[:, :, 0]))[:, None, :]


def spreads(x: np.ndarray) -> np.ndarray:
    """The spread of every column, of which stray rows are no part: what the quartiles say, where they differ."""
    quartiles = quartile_spread(x)
    deviations = x.std(axis=0)
    return np.where(quartiles > 0, quartiles, np.where(deviations > 0, deviations, 1.0))
