"""
Shapes of a protein's backbone, from its angles
===============================================

Every residue of a protein turns the chain by two angles, φ and ψ. They live on a circle each: 179° and −179° are
neighbours. Neighbouring residues have hidden shapes, helix, strand or loop, that last for a while, so this is a
hidden Markov model whose readings are two angles.

The chain is read from the folder that ``LATENTVIEWS_DATA`` names (backbones with the DSSP program's labels); without
it, one is made up.
"""

import os
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from latentviews import KernelHMM, VonMises


def made_up(n=1500):
    """A chain through helix, strand and loop, with angles around what is usual for each."""
    rng = np.random.default_rng(0)
    kinds, lengths = rng.choice(3, size=300), rng.integers(3, 12, size=300)
    shape = np.repeat(kinds, lengths)[:n]
    angles = rng.vonmises(np.radians([[-63, -42], [-115, 135], [-80, 60]])[shape], np.array([[30], [8], [1.5]])[shape])
    return np.degrees(angles), np.array(["H", "E", "C"])[shape], [n]


if "LATENTVIEWS_DATA" in os.environ:
    table = pd.read_csv(Path(os.environ["LATENTVIEWS_DATA"]) / "torus/backbone_dihedrals_dssp.csv.gz")[:1500]
    table = table.dropna(subset=["phi_deg", "psi_deg"])
    angles, shape = table[["phi_deg", "psi_deg"]].to_numpy(), table["label"].to_numpy()
    lengths = table.groupby(["pdb", "chain", "segment"], sort=False).size().to_numpy()
else:
    angles, shape, lengths = made_up()

# %%
# Angles in degrees are said in the kernel.

model = KernelHMM(3, kernel=VonMises(period=360), random_state=0).fit(angles, lengths=lengths)
states = model.predict(angles, lengths=lengths)
print(pd.crosstab(states, shape, rownames=["state"], colnames=["known shape"]))

# %%
# The Ramachandran plot of biochemists, in the colours of the states.

figure, ax = plt.subplots(figsize=(4.6, 4.2), layout="constrained")
for state, color in enumerate(("#0072B2", "#E69F00", "#009E73")):
    ax.plot(*angles[states == state].T, ".", ms=3, color=color, label=f"state {state}")
ax.set(xlabel="φ, degrees", ylabel="ψ, degrees", xlim=(-180, 180), ylim=(-180, 180), aspect="equal")
ax.legend(frameon=False)
plt.show()
