"""
Durations: densities that stop at zero
======================================

Nothing lasts for less than zero seconds, and often most of it is short. An ordinary density estimate spills below
zero and dips where there is most. ``Gaussian(space=HalfLine())`` says where values can lie.
"""

import numpy as np
from matplotlib import pyplot as plt

from latentviews import Gaussian, HalfLine, MultiViewMixture

# %%
# Calls to a hotline: how long callers waited, talked, and were silent; two kinds of calls.

rng = np.random.default_rng(0)
kind = rng.choice(2, p=[0.65, 0.35], size=1500)
wait = rng.exponential(np.array([1.0, 4.0])[kind])
talk = rng.gamma(np.array([1.0, 4.0])[kind], 2.0)
silence = rng.exponential(np.array([0.3, 1.5])[kind])
X = np.column_stack([wait, talk, silence])

bordered = MultiViewMixture(2, kernel=Gaussian(space=HalfLine()), random_state=0).fit(X)
unbordered = MultiViewMixture(2, random_state=0).fit(X)
grid = np.linspace(-1, 6, 400)
for name, model in (("with the border", bordered), ("without", unbordered)):
    spilt = model.components_[0].density(grid)[grid < 0].sum(axis=0) * (grid[1] - grid[0])
    print(f"{name}: mass below zero, by class: {spilt.round(3)}")

# %%
# Waiting times of the first class, and the truth.

figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ax.plot(grid, bordered.components_[0].density(grid)[:, 0], color="#0072B2", label="with the border")
ax.plot(grid, unbordered.components_[0].density(grid)[:, 0], color="#E69F00", label="without")
ax.plot(grid, np.where(grid >= 0, np.exp(-grid), 0), "k--", lw=0.8, label="truth")
ax.set(xlabel="minutes of waiting", ylabel="density")
ax.legend(frameon=False)
plt.show()
