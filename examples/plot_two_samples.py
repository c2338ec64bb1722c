"""
Do two samples differ, and where?
=================================

Two samples with the same mean and the same spread. A t-test sees nothing; a test of whole distributions does, and its
*witness* shows where one sample has more rows than the other.
"""

import numpy as np
from matplotlib import pyplot as plt
from scipy import stats

from latentviews import two_sample_test
from latentviews.plot import WitnessDisplay

rng = np.random.default_rng(0)
before = rng.normal(size=300)
after = rng.choice([-0.9, 0.9], size=300) + 0.436 * rng.normal(size=300)  # variance .9² + .436² = 1

found = two_sample_test(before, after, random_state=0)
print(f"equal means? p = {stats.ttest_ind(before, after).pvalue:.2f}")
print(f"equal distributions? p = {found.pvalue:.3f}, effect {found.effect:.2f} on a scale from 0 to 1")

# %%
# In one column, a curve over two histograms: above zero ``before`` has more rows.

figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
WitnessDisplay(found, before, after).plot(ax)

# %%
# In two columns, a map. Here the margins are alike and only the relation of the columns differs.

flat = rng.normal(size=(300, 2))
slanted = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], size=300)
related = two_sample_test(flat, slanted, random_state=0)
print(f"related columns: p = {related.pvalue:.3f}")
figure, ax = plt.subplots(figsize=(4.6, 3.8), layout="constrained")
WitnessDisplay(related, flat, slanted).plot(ax)
plt.show()
