"""
Is the stream still what it was?
================================

A sensor is watched against a reference. After a while it drifts, first in its spread alone. `DriftMonitor` looks at
one window after the other, and keeps a fixed amount of memory however long the stream is.
"""

import numpy as np
from matplotlib import pyplot as plt

from latentviews import DriftMonitor
from latentviews.plot import DriftDisplay

rng = np.random.default_rng(0)
monitor = DriftMonitor(window=50, random_state=0).fit(rng.normal(size=(1000, 2)))

# %%
# Thirty windows like the reference, then fifteen whose spread is half as large again.

for window in range(45):
    monitor.partial_fit(rng.normal(scale=1.0 if window < 30 else 1.5, size=(50, 2)))
print("first window above the threshold:", np.argmax(monitor.statistics_ > monitor.threshold_))

# %%
# An unchanged stream gives one false alarm in ``window / false_alarm`` rows on average.

figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
DriftDisplay.from_estimator(monitor, ax=ax)
plt.show()
