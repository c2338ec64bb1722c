"""
A first fit: how many classes, what they look like, can I trust it?
===================================================================

Three measurements on 1,500 objects; nobody wrote down of which kind each is. The model counts the kinds, finds them,
and says in sentences what can be trusted.
"""

from matplotlib import pyplot as plt

from latentviews import MultiViewMixture, diagnose
from latentviews.datasets import make_multiview
from latentviews.metrics import label_accuracy
from latentviews.plot import ComponentDisplay, ResponsibilityDisplay, SpectrumDisplay

X, y, truth = make_multiview(1500, 3, design="gamma", separation=3.0, random_state=0)
model = MultiViewMixture("auto", random_state=0).fit(X)
print(f"{model.n_components_} classes of {model.weights_.round(2)}; right: {label_accuracy(y, model.predict(X)):.3f}")

# %%
# What each class looks like in every view. One of the three is no bell curve.

ComponentDisplay.from_estimator(model, X)

# %%
# Why three: singular values of how the views go together, over the band that shuffled rows reach.

SpectrumDisplay.from_estimator(model)

# %%
# How sure the classes of rows are.

ResponsibilityDisplay.from_estimator(model, X)

# %%
# And what speaks against the fit.

print(diagnose(model, X, random_state=0).summary())
plt.show()
