"""
From a raw accelerometer file to labelled states and a forecast
===============================================================

A chest-worn accelerometer (participant 13 of Casale et al. 2011; 52 readings a second, raw counts) recorded a person
who works at a computer, walks, climbs stairs and stands. Nothing is assumed of what readings look like in
each activity: `KernelHMM` finds states whose emissions have no assumed shape, and the known activities name them.
`PredictiveStateModel` forecasts the readings with no states at all.

The file is ``series/chest_accel_p13.csv.gz`` in the folder that the environment variable ``LATENTVIEWS_DATA`` names.
Without that folder the example makes up a recording of the same kind, and runs anywhere.
"""

# %%
# The raw file
# ------------
# Readings are counts. One unit of jitter keeps rounding from looking like structure. A second of readings has its
# level and its vigour: how much the chest moves, on a log scale. Both are taken twice a second.

import os

import numpy as np
from matplotlib import pyplot as plt

from latentviews import KernelHMM, PredictiveStateModel
from latentviews.datasets import SeriesData, load_series
from latentviews.plot import ComponentDisplay, ForecastDisplay, StateDisplay, TransitionDisplay

HZ = 52
LEVELS = {"1": (1950, 2380, 2000), "3": (1900, 2300, 1990), "4": (1920, 2350, 1960), "5": (1930, 2400, 1930)}
STEPS = {"1": (0.1, 4), "3": (0.2, 9), "4": (2.0, 160), "5": (1.6, 90)}  # a second, and how far they shake the chest


def made_up(order="14351451", seconds=40):
    """Readings of a chest through activities, some seconds each: a level, steps that are not quite regular, noise."""
    rng, parts = np.random.default_rng(1), []
    for name in order:
        rate, vigour = STEPS[name]
        phase = 2 * np.pi * np.cumsum(rate / HZ * rng.normal(1, 0.3, size=seconds * HZ))
        waves = np.stack([np.sin(phase + shift) for shift in (0, 1, 2)], axis=1)
        parts.append(LEVELS[name] + vigour * (waves + 0.3 * rng.normal(size=waves.shape)))
    X = np.round(np.concatenate(parts))
    return SeriesData(X, np.array([len(X)]), np.repeat(list(order), seconds * HZ), ("x", "y", "z"))


data = load_series("chest_accel") if "LATENTVIEWS_DATA" in os.environ else made_up()
rng = np.random.default_rng(0)
raw = data.X + rng.uniform(-0.5, 0.5, size=data.X.shape)

begins = np.arange(0, len(raw) - HZ, HZ // 2)
seconds = np.stack([raw[begin : begin + HZ] for begin in begins])
level, vigour = seconds.mean(axis=1), np.log(seconds.std(axis=1).mean(axis=1))
X = np.column_stack([level[:, 1], level[:, 2], vigour])
activity = data.labels[begins + HZ // 2]

# %%
# States
# ------
# Four states: enough for sitting, standing, walking and climbing. The level and the vigour are two sensors, independent
# given the state.

model = KernelHMM(4, views=[[0, 1], [2]], random_state=0).fit(X)
states = model.predict(X)
NAMES = {
    "1": "working at computer",
    "2": "standing up, walking, stairs",
    "3": "standing",
    "4": "walking",
    "5": "stairs",
    "6": "walking and talking",
    "7": "talking while standing",
}
for state in range(model.n_states_):
    found, counts = np.unique(activity[states == state], return_counts=True)
    shares = {NAMES.get(name, "none"): round(float(count / counts.sum()), 2) for name, count in zip(found, counts)}
    print(f"state {state}:", {name: share for name, share in shares.items() if share >= 0.05})

# %%
# The picture: the vigour of the movement over bands of states, the states' densities, and how they follow each other.

_, top = plt.subplots(figsize=(9, 3), layout="constrained")
StateDisplay.from_estimator(model, X, column=2, ax=top)
top.set_ylabel("vigour (log counts)")
for change in np.flatnonzero(activity[1:] != activity[:-1]):
    top.axvline(change + 1, color="black", lw=0.8, ls="--")  # where the activity changes
middles = [np.flatnonzero(activity == name) for name in NAMES]
for name, rows in zip(NAMES.values(), middles):
    if len(rows):
        top.text(np.median(rows), top.get_ylim()[1], name, rotation=20, fontsize="x-small")
TransitionDisplay.from_estimator(model)
ComponentDisplay.from_estimator(model, X)

# %%
# A forecast
# ----------
# Half a second ahead, from forty seconds of walking at the full rate. The fan holds 50 and 90 % of what held-out
# forecasts came to.

walking = raw[data.labels == "4"][: 40 * HZ]
known, future = walking[: -HZ // 2], walking[-HZ // 2 :]
predictive = PredictiveStateModel(horizon=HZ // 2, random_state=0).fit(known)
display = ForecastDisplay.from_estimator(predictive, known, HZ // 2, column=1)
display.ax_.plot(np.arange(1, len(future) + 1), future[:, 1], "k.", label="what came")
display.ax_.legend(frameon=False, fontsize="small", loc="upper left")

error = np.abs(predictive.forecast(known, HZ // 2).mean() - future).mean()
still = np.abs(known[-1] - future).mean()
print(f"mean absolute error: {error:.1f} counts; if nothing moved: {still:.1f}")
plt.show()
