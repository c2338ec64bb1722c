"""
Classes behind yes–no answers
=============================

Patients report five symptoms. `LatentClass` finds kinds of patients from the answers, says how many there are, and
how the chance to be of a kind goes with age.
"""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from latentviews import LatentClass, class_regression
from latentviews.plot import ItemProfileDisplay

rng = np.random.default_rng(0)
age = rng.normal(50, 10, size=800)
ill = rng.random(800) < 1 / (1 + np.exp(-(age - 55) / 8))
chances = np.array([[0.1, 0.2, 0.1, 0.3, 0.2], [0.8, 0.9, 0.6, 0.7, 0.9]])[ill.astype(int)]
symptoms = ["cough", "fever", "rash", "pain", "fatigue"]
answers = pd.DataFrame(np.where(rng.random((800, 5)) < chances, "yes", "no"), columns=symptoms)

# %%
# The lowest BIC says how many kinds there are.

model = LatentClass("auto", random_state=0).fit(answers)
print(f"{model.n_components_} classes of {model.weights_.round(2)}")

# %%
# Every class's profile.

ItemProfileDisplay.from_estimator(model)

# %%
# Who is in which class? The errors of the classes are corrected for.

found = class_regression(model.first_step(answers), pd.DataFrame({"age": age}), correction="ML")
slope, error = found.coefficients[1, 1], found.standard_errors[1, 1]
print(f"a year of age changes the log-odds by {slope:.3f} ± {error:.3f}")
plt.show()
