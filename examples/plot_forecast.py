"""
A forecast with bands
=====================

Two waves that do not fit into each other, and noise. `PredictiveStateModel` writes what the past says about the
future as a vector and learns how it moves; it assumes no states and no formula. The bands come from errors on rows
that were kept out of the fit.
"""

import numpy as np
from matplotlib import pyplot as plt

from latentviews import PredictiveStateModel
from latentviews.plot import ForecastDisplay

rng = np.random.default_rng(0)
step = np.arange(900)
series = np.sin(step / 4) + 0.6 * np.sin(step / 1.7) + 0.2 * rng.normal(size=900)
history, future = series[:880, None], series[880:]

# %%
# Twenty steps ahead, beside the last value repeated: always compare with that.

model = PredictiveStateModel(horizon=20, random_state=0).fit(history)
ahead = model.forecast(history, 20)
error = np.abs(ahead.mean()[:, 0] - future).mean()
print(f"mean absolute error {error:.2f}; last value repeated: {np.abs(history[-1] - future).mean():.2f}")
low, high = ahead.quantile([0.05, 0.95])[:, 0].T
print(f"of {len(future)} values, {np.sum((low <= future) & (future <= high))} are in the 90 % band")

# %%
# The median, the bands that hold 50 and 90 %, and what came.

figure, ax = plt.subplots(figsize=(8, 3.2), layout="constrained")
ForecastDisplay.from_estimator(model, history, 20, ax=ax)
ax.plot(np.arange(1, 21), future, "k.", label="what came")
ax.legend(frameon=False, fontsize="small")
plt.show()
