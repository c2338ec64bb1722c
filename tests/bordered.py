"""Classes whose densities end at a border, with their truth: durations from zero on, and shares."""

import numpy as np
from scipy import integrate, stats

DURATIONS = (stats.expon(), stats.gamma(4))
SHARES = (stats.beta(0.8, 2), stats.uniform())


def draw(laws, n_samples, n_columns, rng):
    """Rows with independent columns of the law of their class, one of two, and the classes."""
    labels = rng.integers(2, size=n_samples)
    parts = [law.rvs(size=(n_samples, n_columns), random_state=rng) for law in laws]
    return np.where(labels[:, None] == 0, *parts), labels


def in_order(component, laws):
    """The classes of a component in the order of the laws, by their means."""
    means = component.expectation(lambda x: x[:, 0])
    return np.argsort(means)[np.argsort(np.argsort([law.mean() for law in laws]))]


def density_errors(component, laws, low, high):
    """∫ |p̂ - p| over the space for every law."""
    ticks = np.linspace(low, high, 4001)[1:]  # a density may be infinite at its border
    found = component.density(ticks)[:, in_order(component, laws)]
    truth = np.stack([law.pdf(ticks) for law in laws], axis=1)
    return integrate.trapezoid(np.abs(found - truth), ticks, axis=0)
