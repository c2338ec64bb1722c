"""One view given the others: a mixture of its components."""

from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from latentviews._numbers import brief, drawn_labels, generator_of
from latentviews.core.components import Components
from latentviews.mixtures.quantiles import check_levels, mixture_quantiles


@dataclass(frozen=True, eq=False)
class Conditional:
    r"""The distribution of one view given the others, for every row: a mixture of the components.

    .. math:: p(x_t \mid x_{-t}) = \sum_h P(h \mid x_{-t})\, p_t(x_t \mid h)

    Categories are codes 0, 1, … here, in the order of the model's ``categories_``.

    Attributes
    ----------
    posteriors : array of shape (n, k)
        Given the other views.
    components : Components
        The distribution of the view in every class.

    Examples
    --------
    >>> from latentviews import MultiViewMixture
    >>> from latentviews.datasets import make_multiview
    >>> X = make_multiview(300, 2, random_state=0).X
    >>> model = MultiViewMixture(2, polish=None, random_state=0).fit(X)
    >>> first = model.conditional([[float("nan"), *X[0, 1:]]], 0)  # what the first column may be, given the others
    >>> first.mean().shape, first.quantile([0.05, 0.95]).shape
    ((1, 1), (1, 1, 2))
    """

    def __repr__(self) -> str:
        return brief(self)

    posteriors: np.ndarray
    components: Components

    def mean(self) -> np.ndarray:
        """The conditional mean of every row, (n, d).

        Returns
        -------
        array of shape (n, d)
        """
        return self.components.space.mean(self._average)

    def _average(self, f: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """The conditional mean of f of every column, (n, d)."""
        columns = [itemgetter((slice(None), j)) for j in range(self.components.dim)]
        return self.posteriors @ np.stack([self.components.expectation(_then(f, column)) for column in columns], axis=1)

    def density(self, x: Any) -> np.ndarray:
        """The conditional density of every row at the points ``x``, (n, len(x)).

        Parameters
        ----------
        x : array of shape (m,) or (m, d)

        Returns
        -------
        array of shape (n, m)
        """
        return self.posteriors @ self.components.density(x).T

    def quantile(self, q: Any) -> np.ndarray:
        """The quantile of every column by itself, (n, d), and a last axis if ``q`` is a list.

        Angles are counted from half a turn before the mean direction to half a turn behind it, so that lower and upper
        ends are the right way round; an end may lie beyond half a turn.

        Parameters
        ----------
        q : float or list of floats
            Levels, from zero to one.

        Returns
        -------
        array of shape (n, d) or (n, d, len(q))
        """
        parts = [mixture_quantiles(self.components, self.posteriors, level) for level in check_levels(q)]
        return parts[0] if np.ndim(q) == 0 else np.stack(parts, axis=-1)

    def sample(self, random_state: Any = None) -> np.ndarray:
        """One draw for every row, (n, d).

        Parameters
        ----------
        random_state : int, RandomState, Generator or None, default=None

        Returns
        -------
        array of shape (n, d)
        """
        rng = generator_of(random_state)
        labels = drawn_labels(self.posteriors, rng)
        rows = np.empty((len(labels), self.components.dim))
        for component in np.unique(labels):
            members = labels == component
            rows[members] = self.components.sample(component, int(members.sum()), rng)
        return rows


def _then(f: Callable[[np.ndarray], Any], column: Callable[[np.ndarray], Any]) -> Callable[[np.ndarray], Any]:
    return lambda x: f(column(x))
