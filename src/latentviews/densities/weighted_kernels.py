"""Components that are sums of densities with weights, so that nothing has to be integrated to know their mass."""

from functools import cached_property

import numpy as np

from latentviews.core.components import Components


class WeightedKernels(Components):
    """Densities Σ_i weights_ih k_i(x) of kernels that are densities themselves."""

    weights: np.ndarray  # (m, k)

    @property
    def n_components(self) -> int:
        """The number of components k."""
        return self.weights.shape[1]

    @cached_property
    def mass(self) -> np.ndarray:
        """The sum of the weights: the kernels are densities, and there is nothing to integrate."""
        return self.weights.sum(axis=0)

    @cached_property
    def clipped(self) -> np.ndarray:
        """Nothing: no kernel is negative."""
        return np.zeros(self.n_components)

    @property
    def _positive_mass(self) -> np.ndarray:
        return self.mass
