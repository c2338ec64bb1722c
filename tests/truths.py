"""Fits against the truth they were drawn from."""

import numpy as np
from scipy import sparse

from latentviews import (
    Gaussian,
)
from latentviews.metrics import Reordered, density_error, match_components, weight_error


class OracleKDE:
    """A kernel density estimate that is told the labels, with the bandwidths it is given."""

    def __init__(self, x, y, bandwidths):
        self.samples = [x[y == h] for h in range(len(bandwidths))]
        self.bandwidths = bandwidths

    def density(self, x):
        x = np.ravel(x)[:, None]
        columns = [
            Gaussian(float(s)).gram(x, sample[:, None]).mean(axis=1)
            for sample, s in zip(self.samples, self.bandwidths, strict=True)
        ]
        return np.stack(columns, axis=1)


def grids(X):
    return [np.linspace(x.min() - 2, x.max() + 2, 200) for x in X.T]


def errors(model, X, truth):
    """Density error and weight error with classes matched, and the match."""
    match = match_components(truth.components, model.components_, grids(X), truth.weights)
    matched = [Reordered(view, match) for view in model.components_]
    return (
        density_error(truth.components, matched, grids(X), truth.weights),
        weight_error(truth.weights, model.weights_[match]),
        match,
    )


def share_moments(alpha):
    """E[h], E[h⊗h] and E[h⊗h⊗h] of a Dirichlet law, from rising factorials."""
    k, total = len(alpha), alpha.sum()
    counts = np.eye(k)
    second = np.array([[_rising(alpha, counts[i] + counts[j]) for j in range(k)] for i in range(k)])
    third = np.array(
        [[[_rising(alpha, counts[i] + counts[j] + counts[m]) for m in range(k)] for j in range(k)] for i in range(k)]
    )
    return alpha / total, second / (total * (total + 1)), third / (total * (total + 1) * (total + 2))


def _rising(alpha, counts):
    return np.prod([np.prod(a + np.arange(int(n))) for a, n in zip(alpha, counts, strict=True)])


def corpus(rng, n=2000, k=3, n_words=40, concentration=1.0, length=60):
    """Documents by words from a Dirichlet prior, topics, and shares."""
    topics = rng.dirichlet(np.full(n_words, 0.1), size=k)
    weights = np.arange(k, 0, -1) / (k * (k + 1) / 2)
    shares = rng.dirichlet(concentration * weights, size=n)
    chances = shares @ topics
    counts = rng.multinomial(rng.poisson(length, n), chances / chances.sum(axis=1, keepdims=True))
    return sparse.csr_array(counts.astype(float)), topics, shares
