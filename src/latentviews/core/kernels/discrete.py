"""Kernels on codes."""

from typing import Any

import numpy as np

from latentviews._arrays import namespace
from latentviews.core.kernels.base import Kernel
from latentviews.core.kernels.spaces import Discrete


class Delta(Kernel):
    r"""Equality, for discrete data: k(x, y) = 1 where all columns agree, else 0.

    .. math:: k(x, y) = \prod_j 1[x_j = y_j]

    Columns of a view with this kernel hold categories: numbers or flags as they are, strings, other objects and pandas'
    categoricals by codes 0, 1, … in the order of the model's ``categories_``. NaN and None are missing. A category that
    was not seen in fitting has the same tiny probability in every class: it lowers the score of its row, whose
    posterior is that of its other views.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import Delta, MultiViewMixture
    >>> rng = np.random.default_rng(0)
    >>> chance = np.where(rng.random(500) < 0.3, 0.9, 0.2)[:, None]
    >>> X = np.where(rng.random((500, 4)) < chance, "yes", "no")
    >>> model = MultiViewMixture(2, kernel=Delta(), random_state=0).fit(X)
    >>> model.categories_[0].tolist(), model.sample(1)[0].tolist()
    (['no', 'yes'], [['no', 'no', 'yes', 'no']])
    """

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
