"""
Sources behind mixed channels
=============================

Three channels each record a blend of three signals that know nothing of each other. `KernelICA` finds the signals
from the blends, up to their order, sign and size.
"""

import numpy as np
from matplotlib import pyplot as plt

from latentviews import KernelICA
from latentviews.metrics import amari_error

# %%
# A wave, a saw and rare bursts.

rng = np.random.default_rng(0)
time = np.arange(3000) / 100
wave, saw = np.sin(2 * np.pi * 0.7 * time), 2 * (0.43 * time % 1) - 1
bursts = rng.laplace(size=3000) * (rng.random(3000) < 0.2)
sources = np.column_stack([wave, saw, bursts])
mixing = np.array([[1.0, 0.6, 0.4], [0.5, 1.0, 0.7], [0.3, 0.8, 1.0]])
channels = sources @ mixing.T

model = KernelICA(random_state=0).fit(channels)
found = model.transform(channels)
agreement = np.abs(np.corrcoef(found.T, sources.T)[:3, 3:])
print("agreement with the true sources:", agreement.max(axis=0).round(3))
print(f"Amari error of the mixing matrix (0 is perfect): {amari_error(np.linalg.solve(model.mixing_, mixing)):.3f}")

# %%
# What was recorded, what was found, and the truth, in the truth's order.

figure, axes = plt.subplots(3, 3, figsize=(9, 4.5), sharex=True, layout="constrained")
columns = (("recorded", channels), ("found", found[:, agreement.argmax(axis=0)]), ("truth", sources))
for panels, (title, signals) in zip(axes.T, columns, strict=True):
    panels[0].set_title(title)
    for ax, signal in zip(panels, signals.T, strict=True):
        ax.plot(time[:600], signal[:600], lw=0.8, color="#0072B2")
        ax.set_yticks([])
for ax in axes[-1]:
    ax.set_xlabel("seconds")
plt.show()
