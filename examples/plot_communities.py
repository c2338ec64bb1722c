"""
People who belong to several communities
========================================

In a graph of who knows whom, a person may be of a family, a workplace and a club. `CommunityModel` finds the
communities, and the share that every person has of each.
"""

import numpy as np
from matplotlib import pyplot as plt
from scipy import sparse

from latentviews import CommunityModel
from latentviews.plot import MembershipDisplay

# %%
# 1,500 people with shares of three communities; within a community 30 % of pairs are linked, across 3 %.

rng = np.random.default_rng(0)
shares = rng.dirichlet([0.2, 0.2, 0.2], size=1500)
chances = shares @ (0.03 + 0.27 * np.eye(3)) @ shares.T
above = np.triu(rng.random(chances.shape) < chances, 1)
links = sparse.csr_array((above | above.T).astype(float))

model = CommunityModel(3, random_state=0).fit(links)
print("chances of a link within and between communities:")
print(model.connectivity_.round(2))
agreement = np.corrcoef(model.memberships_.T, shares.T)[:3, 3:].max(axis=1)
print("correlation of found and true shares:", agreement.round(2))

# %%
# One bar per person: its shares of the communities.

MembershipDisplay.from_estimator(model)
plt.show()
