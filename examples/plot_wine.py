"""
How likely is this row? The joint density of many columns
=========================================================

Thirteen measurements of 178 wines. `LowRankDensity` learns how often every combination of values occurs. Held-out
wines tell how well, beside a Gaussian mixture; wines of other cultivars, which the model has not seen, should be
unlikely.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_wine
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

from latentviews import LowRankDensity
from latentviews.plot import DensityDisplay

X, cultivar = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
rng = np.random.default_rng(0)
order = rng.permutation(np.flatnonzero(cultivar < 2))
known, held_out, foreign = X[order[:90]], X[order[90:]], X[cultivar == 2]

# %%
# Two cultivars are learnt from, the third is foreign.

density = LowRankDensity(random_state=0).fit(known)
peer = GaussianMixture(2, covariance_type="diag", n_init=5, random_state=0).fit(known)
print(f"log-density of held-out wines: {density.score(held_out):.2f}; Gaussian mixture: {peer.score(held_out):.2f}")

# %%
# Left: two columns of the joint density. Right: how likely each wine is.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
DensityDisplay.from_estimator(density, known, columns=[6, 9], ax=left)
left.set(xlabel="flavanoids, scaled", ylabel="colour, scaled")
for rows, name, color in ((held_out, "held-out wines", "#0072B2"), (foreign, "a third cultivar", "#E69F00")):
    right.hist(density.score_samples(rows), bins=20, alpha=0.6, color=color, label=name)
right.set(xlabel="log-density", ylabel="wines")
right.legend(frameon=False)
plt.show()
