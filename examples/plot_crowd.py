"""
Labels from a crowd
===================

39 people looked at 108 photographs and said whether they show an Indigo Bunting or a Blue Grosbeak (Welinder et al.
2010). Some are careful, some guess, some mix the two up. `CrowdLabels` finds the label of every photograph and what
every worker takes for what, from the answers alone.

The answers are read from the folder that ``LATENTVIEWS_DATA`` names; without it, a crowd of the same kind is made up.
"""

import os
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from latentviews import CrowdLabels


def made_up(n_tasks=108, n_workers=39):
    """Workers who each see one kind of bird with a skill of their own, and the other with another."""
    rng = np.random.default_rng(0)
    truth, skill = rng.integers(2, size=n_tasks), rng.beta(3, 2, size=(n_workers, 2))
    right = rng.random((n_tasks, n_workers)) < skill[:, truth].T
    task, worker = np.divmod(np.arange(n_tasks * n_workers), n_workers)
    said = np.where(right, truth[:, None], 1 - truth[:, None]).ravel()
    return pd.DataFrame({"task": task, "worker": worker, "label": said, "truth": truth[task]})


if "LATENTVIEWS_DATA" in os.environ:
    answers = pd.read_csv(Path(os.environ["LATENTVIEWS_DATA"]) / "raters/bluebird.csv.gz")
    answers.columns = ["task", "worker", "label", "truth"]
else:
    answers = made_up()

# %%
# The labels, beside the majority vote.

model = CrowdLabels().fit(answers[["task", "worker", "label"]])
truth = answers.drop_duplicates("task").set_index("task")["truth"].loc[model.tasks_].to_numpy()
votes = answers.groupby("task")["label"].agg(lambda column: column.mode()[0]).loc[model.tasks_].to_numpy()
print(f"wrong: {np.mean(model.labels_ != truth):.3f}; by majority vote: {np.mean(votes != truth):.3f}")

# %%
# Every dot is a worker: how often each takes one bird for what it is, and the other. On the dashed line a worker's
# answer says nothing; in the lower left corner birds are told apart, but under each other's names.

first, second = model.confusion_[:, 0, 0], model.confusion_[:, 1, 1]
figure, ax = plt.subplots(figsize=(5, 4), layout="constrained")
dots = ax.scatter(first, second, c=model.information_, vmin=0, cmap="viridis")
ax.plot([0, 1], [1, 0], "--", color="0.6")
ax.set(xlabel=f"right about label {model.classes_[0]}", ylabel=f"right about label {model.classes_[1]}")
figure.colorbar(dots, label="uncertainty that an answer removes, share")
plt.show()
