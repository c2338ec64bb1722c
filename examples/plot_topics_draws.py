"""
Topics without words: groups of draws that mix the same parts
=============================================================

A blood sample mixes cell types by shares of its own, a household habits. What is seen is draws, each from one of the
parts, nobody knows which. The parts have no assumed shape: here one is skewed, and one has two humps.
"""

import numpy as np
from matplotlib import pyplot as plt

from latentviews import TopicModel

# %%
# 1,500 groups of 15 draws, each with shares of its own.

rng = np.random.default_rng(0)
shares = rng.dirichlet([0.5, 0.3, 0.2], size=1500)
group = np.repeat(np.arange(1500), 15)
part = (shares.cumsum(axis=1)[group] < rng.random((len(group), 1))).sum(axis=1).clip(0, 2)
humps = rng.choice([-4.0, -1.0], size=len(group)) + 0.4 * rng.normal(size=len(group))
draws = np.choose(part, [humps, rng.exponential(1.5, len(group)), rng.normal(6, 0.7, len(group))])

# %%
# Which draw is of which part is not known to the model, only which group it is in.

model = TopicModel(3, random_state=0).fit(draws[:, None], groups=group)
found = model.transform(draws[:, None], groups=group)
print("shares of the parts:", model.weights_.round(2), "the truth:", np.round([0.5, 0.3, 0.2], 2))

# %%
# Left the densities of the parts over their own draws, right the share that every group has of one of them.

grid = np.linspace(-7, 10, 400)
order = [np.argmax(np.corrcoef(found[:, h], shares.T)[0, 1:]) for h in range(3)]
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for h, color in enumerate(("#0072B2", "#E69F00", "#009E73")):
    left.hist(draws[part == order[h]], bins=80, density=True, color=color, alpha=0.2)
    left.plot(grid, model.components_[0].density(grid)[:, h], color=color)
left.set(xlabel="draw", ylabel="density", title="parts: found, over their true draws")
right.plot(shares[:, order[0]], found[:, 0], ".", ms=3, color="#0072B2")
right.set(xlabel="true share", ylabel="found share", title="groups")
plt.show()
