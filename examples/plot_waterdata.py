"""
Repeated measures: children and water levels
============================================

405 children were shown eight tilted vessels and drew the water level; what is recorded is how many degrees each
answer was off (Thomas, Lohaus & Brainerd 1993; Waterdata of R's mixtools). Vessels tilted to opposite hours of the
clock (1 and 7, 2 and 8, …) are taken for repeats of one question, so there are four blocks of two views that share
their distributions. ``exchangeable`` says which views do.

The table is read from the folder that ``LATENTVIEWS_DATA`` names; without it, children of the same kinds are made up.
"""

import os
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from latentviews import MultiViewMixture
from latentviews.plot import ComponentDisplay


def made_up(n=405):
    """Children who know, children who roughly do, and children who tilt the water with the vessel."""
    rng = np.random.default_rng(0)
    kind = rng.choice(3, p=[0.5, 0.37, 0.13], size=n)
    tilt = np.array([-40, 40, -40, 40, 40, -40, 40, -40]) * (kind == 2)[:, None]
    return np.round(tilt + np.array([4, 18, 15])[kind, None] * rng.normal(size=(n, 8)))


if "LATENTVIEWS_DATA" in os.environ:
    answers = pd.read_csv(Path(os.environ["LATENTVIEWS_DATA"]) / "mixtools/Waterdata.csv.gz").to_numpy()[:, 2:]
else:
    answers = made_up()

# %%
# Three kinds of children. A block has the same number where two views are repeats.

blocks = [4, 3, 2, 1, 3, 4, 1, 2]
model = MultiViewMixture(3, exchangeable=blocks, random_state=0).fit(answers)
print("shares:", model.weights_.round(2))
for view, hours in enumerate(("11 and 5", "4 and 10", "2 and 8", "7 and 1")):
    means = model.components_[view].expectation(lambda x: x[:, 0])
    squares = model.components_[view].expectation(lambda x: x[:, 0] ** 2)
    print(f"{hours} o'clock: mean error {means.round()}, spread {np.sqrt(squares - means**2).round()}")

# %%
# One curve per class: a sharp class that knows, a wide one that roughly does, and a small one that is far off.

_, axes = plt.subplots(2, 4, figsize=(11, 4.6), layout="constrained")
ComponentDisplay.from_estimator(model, answers, ax=axes.ravel())
plt.show()
