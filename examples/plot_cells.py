"""
Cell populations in a flow-cytometry sample
===========================================

Three markers on some thousand cells of a lymphoma biopsy (sample 001 of FlowCAP-I, gated by an expert). Inside a
population the markers rise and fall together, so the views are not independent there: ``dependence="copula"`` lets
them. The expert's gates are used to score, not to fit.

The sample is read from the folder that ``LATENTVIEWS_DATA`` names; without it, cells of the same kind are made up.
"""

import os

import numpy as np
from matplotlib import pyplot as plt

from latentviews import MultiViewMixture
from latentviews.datasets import load_flowcap
from latentviews.metrics import f_measure


def made_up(n=2000):
    """Two populations, each with a size of the cell that all markers share."""
    rng = np.random.default_rng(0)
    gate = 1 + (rng.random(n) < 0.6)
    means = np.array([[650, 600, 250], [250, 350, 650]])[gate - 1]
    return means + 60 * rng.gamma(2, size=(n, 1)) + 50 * rng.normal(size=(n, 3)), gate


if "LATENTVIEWS_DATA" in os.environ:
    sample = load_flowcap("dlbcl_001")
    cells, gates = sample.X[sample.y > 0][::2], sample.y[sample.y > 0][::2]  # every second gated cell
else:
    cells, gates = made_up()

# %%
# Two populations, as the expert has.

model = MultiViewMixture(2, dependence="copula", random_state=0).fit(cells)
found = model.predict(cells)
print(f"shares {model.weights_.round(2)}, F-measure beside the gates {f_measure(gates, found):.3f}")

# %%
# Left the expert's gates, right what was found.

figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), sharey=True, layout="constrained")
for ax, labels, title in zip(axes, (gates, found), ("gated by the expert", "found"), strict=True):
    for label, color in zip(np.unique(labels), ("#0072B2", "#E69F00"), strict=True):
        ax.plot(*cells[labels == label][:, [0, 2]].T, ".", ms=2, color=color, label=str(label))
    ax.set(title=title, xlabel="CD3")
axes[0].set_ylabel("CD19")
plt.show()
