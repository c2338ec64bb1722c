"""
Kernel principal components of a stream
=======================================

Rows come in batches and are not kept. `DoublyStochasticPCA` learns the principal components that a kernel sees from
random rows and random features, both made when they are needed. For Gaussian rows and a Gaussian kernel the answer is
known in closed form, so that its error can be seen.
"""

import numpy as np
from matplotlib import pyplot as plt

from latentviews import DoublyStochasticPCA, Gaussian

# %%
# Forty batches of 1,024 rows.

rng = np.random.default_rng(0)
model = DoublyStochasticPCA(3, kernel=Gaussian(1.0), random_state=0)
for _ in range(40):
    model.partial_fit(rng.normal(size=(1024, 1)))

golden = (3 - np.sqrt(5)) / 2
exact = (1 - golden) * golden ** np.arange(3)
print("variance along the components:", model.explained_variance_.round(3), "in closed form:", exact.round(3))

# %%
# The eigenfunctions of the kernel are Hermite functions. Their sign is free.

grid = np.linspace(-3, 3, 200)
root = np.sqrt(5) / 2
hermite = np.stack([np.polynomial.hermite.hermval(np.sqrt(root) * grid, np.eye(3)[j]) for j in range(3)], axis=1)
truth = np.exp(-(root - 0.5) * grid[:, None] ** 2 / 2) * hermite
found = model.eigenfunctions_(grid[:, None])
scale = (found * truth).sum(axis=0) / (truth**2).sum(axis=0)  # size and sign that fit best

figure, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
for j, color in enumerate(("#0072B2", "#E69F00", "#009E73")):
    ax.plot(grid, found[:, j], color=color, label=f"component {j}")
    ax.plot(grid, scale[j] * truth[:, j], "--", color="black", lw=0.8)
ax.set(xlabel="x", ylabel="eigenfunction", title="found; dashed: in closed form")
ax.legend(frameon=False)
plt.show()
