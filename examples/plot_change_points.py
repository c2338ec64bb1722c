"""
When did a series change?
=========================

The mean of a series may stay where it is while its spread, its tails or its shape change. `ChangePoints` compares
whole distributions of stretches of the series, and finds how many changes there are and where.
"""

import numpy as np
from matplotlib import pyplot as plt

from latentviews import ChangePoints
from latentviews.plot import ChangePointDisplay

# %%
# Four stretches: bell-shaped, wider, skewed with the same mean, and shifted.

rng = np.random.default_rng(0)
stretches = [
    rng.normal(0, 1, 120),
    rng.normal(0, 3, 100),
    rng.exponential(1.5, 120) - 1.5,
    rng.normal(2, 1, 80),
]
series = np.concatenate(stretches)[:, None]
truth = np.cumsum([len(part) for part in stretches])[:-1]

model = ChangePoints(random_state=0).fit(series)
print("found:", model.changes_, "the truth:", truth)

# %%
# Stretches in turn shaded as found; dotted lines are the true changes. A series without any change is given one with
# probability ``false_alarm``, 5 % by default.

figure, ax = plt.subplots(figsize=(8, 3), layout="constrained")
ChangePointDisplay.from_estimator(model, series, ax=ax)
for change in truth:
    ax.axvline(change, color="black", ls=":")
plt.show()
