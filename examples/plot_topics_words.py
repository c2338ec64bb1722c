"""
Topics of texts
===============

773 political blog posts of 2008, counts of 1,290 words (poliblog of R's lda). `TopicModel` finds topics from how
often words occur together, without a start at random, and says by which shares every post mixes them.

The counts are read from the folder that ``LATENTVIEWS_DATA`` names; without it, texts of four topics are made up.
"""

import os
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from scipy import sparse

from latentviews import TopicModel
from latentviews.plot import TopicDisplay


def made_up(n=1000):
    """Texts of 80 words, in four topics of five words each that share three words."""
    rng = np.random.default_rng(0)
    names = "vote party senate poll race goal match team coach cup rain sun wind snow frost bank loan tax price debt"
    words = [*names.split(), "day", "week", "year"]
    topics = np.repeat(np.eye(4), 5, axis=1)
    topics = np.hstack([topics, np.full((4, 3), 0.7)])
    topics /= topics.sum(axis=1, keepdims=True)
    shares = rng.dirichlet([0.4, 0.3, 0.2, 0.2], size=n)
    return sparse.csr_array(rng.multinomial(80, shares @ topics).astype(float)), words


if "LATENTVIEWS_DATA" in os.environ:
    folder = Path(os.environ["LATENTVIEWS_DATA"]) / "topics"
    table = pd.read_csv(folder / "poliblog_counts.csv.gz")
    words = pd.read_csv(folder / "poliblog_vocab.csv.gz")["word"].tolist()
    counts = sparse.csr_array((table["count"].astype(float), (table["doc"] - 1, table["term"] - 1)))
else:
    counts, words = made_up()

# %%
# Four topics, and the words that tell each.

model = TopicModel(4, random_state=0).fit(counts)
for weight, top in zip(model.weights_, model.top_words(6, words), strict=True):
    print(f"{weight:.2f}", *top)

# %%
# The likeliest words of every topic.

TopicDisplay.from_estimator(model, n_words=6, names=words)
plt.show()
