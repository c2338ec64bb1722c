"""
What follows for one sensor from the others: belief propagation
===============================================================

Four sensors in a row; each follows its neighbour in a curved way. Knowing the ends, what is to be expected in the
middle? `KernelBeliefPropagation` learns messages along the edges of a graph from rows, with no formula for how
neighbours are related, and adds up what they say.
"""

import numpy as np
from matplotlib import pyplot as plt

from latentviews import KernelBeliefPropagation

# %%
# The second sensor is a square of the first: from 4 it cannot be told whether the first was 2 or −2.

rng = np.random.default_rng(0)


def rows(n):
    first = rng.uniform(-2.5, 2.5, size=n)
    second = first**2 + 0.3 * rng.normal(size=n)
    third = np.sqrt(np.abs(second)) + 0.1 * rng.normal(size=n)
    return np.column_stack([first, second, third, third + 0.2 * rng.normal(size=n)])


model = KernelBeliefPropagation([(0, 1), (1, 2), (2, 3)], random_state=0).fit(rows(1500))

# %%
# Only the last sensor is known; the belief of the first has two humps.

known = np.full((3, 4), np.nan)
known[:, 3] = [0.5, 1.2, 2.0]
beliefs = model.beliefs(known)
print("converged:", beliefs.converged)
print("expected of the second sensor:", beliefs.views[1].mean().ravel().round(1), "the truth: about .2, 1.4, 4")

grid = np.linspace(-3.2, 3.2, 200)
figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
densities = beliefs.views[0].density(grid)  # one column per row that was asked about
for value, density, color in zip(known[:, 3], densities.T, ("#0072B2", "#E69F00", "#009E73"), strict=True):
    ax.plot(grid, density, color=color, label=f"fourth sensor at {value}")
ax.set(xlabel="first sensor", ylabel="belief")
ax.legend(frameon=False)
plt.show()
