"""Latent classes with known parameters, and a published table, for the tests of this room."""

from itertools import product

import numpy as np

# Agresti (2002), table 13.1: seven pathologists on 118 slides, 1 no and 2 yes, with the number of slides
CARCINOMA = {
    "1111111": 34, "1111211": 2, "1211111": 6, "1211112": 1, "1211211": 4, "1211212": 5, "2111111": 2,
    "2121212": 1, "2211111": 2, "2211112": 1, "2211211": 2, "2211212": 7, "2211222": 1, "2212112": 1,
    "2212212": 2, "2212222": 3, "2221212": 13, "2221222": 5, "2222212": 10, "2222222": 16,
}  # fmt: skip
SLIDES = np.array([[int(answer) for answer in pattern] for pattern in CARCINOMA])
COUNTS = np.array(list(CARCINOMA.values()), dtype=float)


def cells_of(sizes):
    """All answers to items with so many categories."""
    return np.array(list(product(*(range(size) for size in sizes))))


def random_classes(sizes, k, rng):
    """Weights, decreasing, and item probabilities (n_categories, k)."""
    weights = np.sort(rng.dirichlet(np.full(k, 8.0)))[::-1]
    return weights, [rng.dirichlet(np.full(size, 0.7), size=k).T * 0.9 + 0.1 / size for size in sizes]


def cell_probabilities(cells, weights, items):
    """P(answers) of every row of codes, literally; -1 is missing."""
    joint = np.tile(weights, (len(cells), 1))
    for i, row in enumerate(cells):
        for j, answer in enumerate(row):
            if answer >= 0:
                joint[i] *= items[j][answer]
    return joint


def draw(n, weights, items, rng):
    """Rows of codes, and their classes."""
    labels = rng.choice(len(weights), size=n, p=weights)
    columns = [(rng.random((n, 1)) > np.cumsum(item.T[labels], axis=1)).sum(axis=1) for item in items]
    return np.stack(columns, axis=1), labels
