"""Kernels on codes."""

from typing import Any

import numpy as np

from latentviews._arrays import namespace
from latentviews.core.kernels.base import Kernel
from latentviews.core.kernels.spaces import Discrete


class Delta(Kernel):
    r"""Equality, for discrete data: k(x, y) = 1 where all columns agree, else 0."""

    space = Discrete()

    def gram(self, x: Any, y: Any) -> Any:
        """The matrix k(x_i, y_j)."""
        xp = namespace(x)
        equal = x[:, 0, None] == y[None, :, 0]
        for j in range(1, x.shape[1]):
            equal = equal & (x[:, j, None] == y[None, :, j])
        return xp.astype(equal, x.dtype if xp.isdtype(x.dtype, "real floating") else xp.float64)

    def diagonal(self, x: Any) -> Any:
        """The values k(x_i, x_i), all one."""
        return namespace(x).ones_like(x[:, 0])

    def draw(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The rows themselves: all mass of k(x_i, ·) is there.

        Parameters
        ----------
        x : array of shape (n,) or (n, d)
        rng : numpy Generator

        Returns
        -------
        array of shape (n, d)
        """
        return x
