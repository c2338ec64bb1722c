"""
Angles, words, durations and shares in one table
================================================

Trips of animals: the direction, the habitat, how long it took, and the share of the time spent feeding. Each column
has the kernel of its kind, and the classes are found from all of them together. Missing values are left as they are.
"""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from latentviews import Delta, Gaussian, HalfLine, Interval, MultiViewMixture, VonMises
from latentviews.metrics import label_accuracy
from latentviews.plot import ComponentDisplay

rng = np.random.default_rng(0)
kind = rng.choice(3, p=[0.5, 0.3, 0.2], size=1200)
places = np.array(["forest", "meadow", "river"])
table = pd.DataFrame(
    {
        "direction": np.degrees(rng.vonmises(np.array([0.0, 2.2, -2.2])[kind], 4.0)),
        "habitat": places[[rng.choice(3, p=p) for p in (0.1 + 0.7 * np.eye(3))[kind]]],
        "hours": rng.gamma(np.array([1.0, 3.0, 1.0])[kind], np.array([0.5, 1.0, 4.0])[kind]),
        "feeding": rng.beta(np.array([0.8, 5.0, 2.0])[kind], np.array([4.0, 2.0, 2.0])[kind]),
    }
)
table = table.mask(rng.random(table.shape) < 0.05)  # one value in twenty is missing

# %%
# One kernel per column.

kernel = [VonMises(period=360), Delta(), Gaussian(space=HalfLine()), Gaussian(space=Interval(0, 1))]
model = MultiViewMixture(3, kernel=kernel, random_state=0).fit(table)
print(f"kinds right: {label_accuracy(kind, model.predict(table)):.2f}; shares {model.weights_.round(2)}")

# %%
# Every column on an axis of its kind.

_, axes = plt.subplots(1, 4, figsize=(12, 3), layout="constrained")
ComponentDisplay.from_estimator(model, table, ax=axes)
axes[2].set_xlim(0, 12)
plt.show()
