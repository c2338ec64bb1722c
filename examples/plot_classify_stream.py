"""
A kernel classifier that learns from a stream
=============================================

Images of handwritten digits arrive in batches of 128. The classifier sees each once, keeps none, and is asked about
images that it has not seen after every batch.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from latentviews import DoublyStochasticClassifier

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, random_state=0)

# %%
# All classes are told with the first batch.

model = DoublyStochasticClassifier(n_blocks=4, random_state=0)
seen, right = [], []
for rows in np.array_split(np.arange(len(X_train)), len(X_train) // 128):
    model.partial_fit(X_train[rows], y_train[rows], classes=range(10))
    seen.append(rows[-1] + 1)
    right.append(model.score(X_test, y_test))
print(f"right after one pass: {right[-1]:.3f}")

# %%
# The share of unseen images that are read right, by how many were learnt from, and some that are not.

figure, (left, *images) = plt.subplots(
    1, 5, figsize=(10, 3), layout="constrained", gridspec_kw={"width_ratios": [3, 1, 1, 1, 1]}
)
left.plot(seen, right, "o-", color="#0072B2")
left.set(xlabel="images seen", ylabel="share read right", ylim=(0, 1))
said = model.predict(X_test)
for ax, row in zip(images, np.flatnonzero(said != y_test), strict=False):
    ax.imshow(X_test[row].reshape(8, 8), cmap="gray_r")
    ax.set(title=f"{y_test[row]}, read as {said[row]}", xticks=[], yticks=[])
plt.show()
