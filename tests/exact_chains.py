"""Chains of codes whose triples are known exactly."""

from itertools import product

import numpy as np


def random_chain(rng, k, n_values, n_sensors=1):
    """A start, a transition matrix and emission tables (n_values, k), far enough from degenerate."""
    transition = 0.5 * np.eye(k) + 0.5 * rng.dirichlet(np.ones(k), size=k)
    tables = [0.6 * np.eye(n_values)[:, :k] + 0.4 * rng.dirichlet(np.ones(n_values), k).T for _ in range(n_sensors)]
    return rng.dirichlet(np.ones(k)), transition, tables


def exact_triples(law, transition, tables):
    """All triples of (rows of sensors) and their probabilities, where the first state has this law."""
    values = [range(len(table)) for _ in range(3) for table in tables]
    rows = np.array(list(product(*values)))
    n_sensors, k = len(tables), len(law)
    emitted = [
        np.prod([table[rows[:, lag * n_sensors + s]] for s, table in enumerate(tables)], axis=0) for lag in range(3)
    ]
    weights = np.zeros(len(rows))
    for f, g, h in product(range(k), repeat=3):
        chance = law[f] * transition[f, g] * transition[g, h]
        weights += chance * emitted[0][:, f] * emitted[1][:, g] * emitted[2][:, h]
    return rows.astype(float), weights
