"""
Many zeros: columns with a value that rows share exactly
========================================================

Gene counts, rainfall, spending: many rows are exactly zero, the others vary. A value that many rows have exactly is
found by itself, and gets a probability of its own beside the density of the rest.
"""

import numpy as np
from matplotlib import pyplot as plt

from latentviews import MultiViewMixture
from latentviews.metrics import label_accuracy
from latentviews.plot import ComponentDisplay

# %%
# Two kinds of cells; four genes, silent with a probability that depends on the kind, else of a skewed size.

rng = np.random.default_rng(0)
kind = rng.choice(2, p=[0.6, 0.4], size=2000)
silent = np.array([[0.8, 0.2, 0.5, 0.7], [0.2, 0.7, 0.5, 0.3]])[kind]
size = np.array([[1.0, 2.0, 1.0, 1.5], [2.0, 1.0, 3.0, 1.5]])[kind]
X = np.where(rng.random((2000, 4)) < silent, 0.0, rng.gamma(3.0, size))

model = MultiViewMixture(2, random_state=0).fit(X)
print(f"kinds right: {label_accuracy(kind, model.predict(X)):.2f}")
zeros = model.expectation(lambda x: x[:, 0] == 0, X, view=0)
print("share of zeros in the first gene, by class:", zeros.values.round(2), "the truth: 0.8, 0.2")

# %%
# Stems are probabilities of exactly zero, curves the densities of the rest.

_, axes = plt.subplots(1, 4, figsize=(11, 3), layout="constrained")
ComponentDisplay.from_estimator(model, X, ax=axes)
for ax, gene in zip(axes, "ABCD", strict=True):
    ax.set(xlabel=f"gene {gene}", xlim=(-0.5, 15))
plt.show()
