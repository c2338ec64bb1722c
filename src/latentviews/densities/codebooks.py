"""Codebooks: Gaussians side by side, each shaped like the rows around it, as building blocks; and plain clusters."""

from typing import Any, NamedTuple

import numpy as np

from latentviews._arrays import in_library_of, namespace
from latentviews._clusters import kmeans
from latentviews._numbers import TINY, quartile_spread, row_sums

ROWS = 10_000  # rows that a codebook is fitted to
STEPS = 20  # EM steps; ten leave held-out rows .02 less likely
ENOUGH = 1e-3  # a step that gains less log-likelihood per row is the last
AT_ONCE = 2**22  # products of columns in memory
RIDGE = 1e-3  # of the rows' spread, squared, that every Gaussian has at least while it is fitted
LEAST = 1e-6  # the same of what few rows are shrunk to, beside their own variances
FAR = 1e4  # spreads: stray rows, farther out than this, must not rule the others
SHARE_STEPS = 5  # EM steps for the shares of classes


class Codebook(NamedTuple):
    """Gaussians N(means_b, Σ_b), Σ_b⁻¹ = maps_b maps_bᵀ, with their shares of all rows."""

    means: np.ndarray  # (M, d)
    maps: np.ndarray  # (M, d, d)
    weights: np.ndarray  # (M,)

    def log_densities(self, x: Any) -> Any:
        """The logs of N(x_i; means_b, Σ_b), (n, M), where the rows are."""
        heights = np.linalg.slogdet(self.maps)[1] - x.shape[1] / 2 * np.log(2 * np.pi)
        far = np.full(len(self.means), FAR)
        return in_library_of(heights, x) - whitened_squares(x, self.means, self.maps, far) / 2

    def scaled_densities(self, x: Any) -> tuple[Any, Any]:
        """N(x_i; means_b, Σ_b) over the largest for the row, (n, M), and the logs of those, (n,).

        Of many columns, densities themselves may be beyond the range of numbers.
        """
        logs = self.log_densities(x)
        xp = namespace(logs)
        largest = xp.max(logs, axis=1)
        return xp.exp(logs - largest[:, None]), largest

    def shares(self, x: np.ndarray, posteriors: np.ndarray) -> np.ndarray:
        """The mixture of these Gaussians that every class is, (M, k), after a few steps of EM from all rows' own."""
        densities, _ = self.scaled_densities(x)
        shares = np.repeat(self.weights[:, None], posteriors.shape[1], axis=1)
        for _ in range(SHARE_STEPS):
            gathered = shares * (densities.T @ (posteriors / np.maximum(densities @ shares, TINY))) + TINY
            shares = gathered / gathered.sum(axis=0)
        return shares


def whitened_squares(x: Any, means: np.ndarray, maps: np.ndarray, far: np.ndarray) -> Any:
    """The squared lengths of (x_i - means_b) @ maps_b, (n, M), coordinates at most ``far_b``; where the rows are."""
    parts = zip(means, maps, far, strict=True)
    if not isinstance(x, np.ndarray):
        xp, squares = namespace(x), []
        for mean, whitener, reach in parts:
            rows = xp.clip((x - in_library_of(mean, x)) @ in_library_of(whitener, x), -float(reach), float(reach))
            squares.append(row_sums(rows * rows))
        return xp.stack(squares, axis=1)
    found = np.empty((len(means), len(x)))
    for place, (mean, whitener, reach) in zip(found, parts, strict=True):
        rows = (x - mean) @ whitener
        np.clip(rows, -reach, reach, out=rows)
        np.vecdot(rows, rows, out=place)
    return found.T


def fit_codebook(x: np.ndarray, size: int, rng: np.random.Generator) -> Codebook:
    """A codebook of the rows ``x``, none missing, by EM from k-means, in columns of one spread."""
    some = x[rng.permutation(len(x))[:ROWS]]
    mean, spread = np.median(some, axis=0), spreads(some)
    near = np.clip((some - mean) / spread, -FAR, FAR)
    found = fit_gaussians(near, kmeans(near, size, int(rng.integers(2**31))).labels_)
    maps = _maps(found.covariances - RIDGE * np.eye(x.shape[1]), found.weights * len(some)) / spread[:, None]
    return Codebook(mean + found.means * spread, maps, found.weights)


class Gaussians(NamedTuple):
    """A mixture of Gaussians."""

    weights: np.ndarray  # (M,)
    means: np.ndarray  # (M, d)
    covariances: np.ndarray  # (M, d, d), with the ridge

    @property
    def coefficients(self) -> np.ndarray:
        """What takes the products of a row's columns to log weights_b N(x; μ_b, Σ_b), (M, ·)."""
        precisions = np.linalg.inv(self.covariances)
        slopes = np.einsum("bij,bj->bi", precisions, self.means)
        twice = (slopes * self.means).sum(axis=1) + np.linalg.slogdet(self.covariances)[1]
        constant = np.log(self.weights) - (twice + self.means.shape[1] * np.log(2 * np.pi)) / 2
        i, j = np.triu_indices(self.means.shape[1])
        return np.hstack([precisions[:, i, j] * np.where(i == j, -0.5, -1.0), slopes, constant[:, None]])


def fit_gaussians(x: np.ndarray, labels: np.ndarray) -> Gaussians:
    """EM from clusters of the rows.

    The log of a Gaussian is linear in the products of a row's columns, and its maximum-likelihood estimate is their
    mean: either step is one product of matrices for all Gaussians.
    """
    pieces = np.array_split(x, 1 + x.size * (x.shape[1] + 3) // (2 * AT_ONCE))
    kept = [_products(x)] if len(pieces) == 1 else None  # where these are many, they are made again for every step
    guess = np.eye(labels.max() + 1)[labels]
    starts = zip(kept or map(_products, pieces), np.array_split(guess, len(pieces)), strict=True)
    found, reached = _gaussians_of(sum(part.T @ products for products, part in starts)), -np.inf
    for _ in range(STEPS):
        coefficients, before, reached = found.coefficients, reached, 0.0
        moments = np.zeros_like(coefficients)
        for products in kept or map(_products, pieces):
            shares = coefficients @ products.T  # their logs, and all that follows in place
            largest = shares.max(axis=0)  # over the first axis, which is many times as quick as over the last
            shares -= largest
            np.exp(shares, out=shares)
            sums = shares.sum(axis=0)
            shares /= sums
            moments += shares @ products
            reached += float((np.log(sums) + largest).sum()) / len(x)
        found = _gaussians_of(moments)
        if abs(reached - before) < ENOUGH:
            break
    return found


def _products(x: np.ndarray) -> np.ndarray:
    """The products of every two columns, the columns, and one."""
    i, j = np.triu_indices(x.shape[1])
    return np.hstack([x[:, i] * x[:, j], x, np.ones((len(x), 1))])


def _gaussians_of(sums: np.ndarray) -> Gaussians:
    """Gaussians from sums of products of columns (M, ·), weighted by the rows' posteriors."""
    counts = sums[:, -1] + TINY
    dim = int((np.sqrt(8 * sums.shape[1] + 1) - 3) / 2)
    means = sums[:, -dim - 1 : -1] / counts[:, None]
    i, j = np.triu_indices(dim)
    covariances = np.empty((len(counts), dim, dim))
    covariances[:, i, j] = covariances[:, j, i] = sums[:, : -dim - 1] / counts[:, None] - means[:, i] * means[:, j]
    covariances[:, range(dim), range(dim)] = np.maximum(np.einsum("bii->bi", covariances), 0.0) + RIDGE
    return Gaussians(counts / counts.sum(), means, covariances)


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
    return np.where(quartiles > TINY, quartiles, np.where(deviations > TINY, deviations, 1.0))
