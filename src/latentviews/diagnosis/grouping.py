"""Which columns belong into one view: those that depend on each other inside the classes."""

from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from latentviews._arrays import to_numpy
from latentviews._numbers import generator_of
from latentviews._sentences import counted
from latentviews.core import streams
from latentviews.core.categories import chosen_codes
from latentviews.core.kernels.discrete import Delta
from latentviews.core.tables import read_table
from latentviews.diagnosis.dependence import drawn_classes, within_class_dependence
from latentviews.mixtures.mixture import MultiViewMixture

ROWS = 5000  # of the model fit
N_PERMUTATIONS = 19  # enough for the mean of the null, which is all that the strength takes from it
TIED = 0.25  # columns this strongly dependent inside the typical class go together: a correlation of some .35
FEWEST_VIEWS = 3
WIDEST_VIEW = 3  # a density over more columns would need far more rows
MOST_COLUMNS = 60


@dataclass(frozen=True, eq=False)
class ViewSuggestion:
    """Columns put together by their dependence, and what that rests on.

    Attributes
    ----------
    views : tuple of tuples of int
        Columns, in the order of the table.
    names : tuple of str
        Of all columns.
    strength : array of shape (d, d)
        Dependence inside the classes, from 0 to 1; NaN on the diagonal.
    n_components : int
        Classes of the first fit.

    Examples
    --------
    >>> from latentviews import suggest_views
    >>> from latentviews.datasets import make_multiview
    >>> suggest_views(make_multiview(100, 2, random_state=0).X, 2, random_state=0).views
    ((0,), (1,), (2,))
    """

    views: tuple[tuple[int, ...], ...]
    names: tuple[str, ...]
    strength: np.ndarray = field(repr=False)
    n_components: int

    def summary(self) -> str:
        """What was chosen and why, in plain sentences.

        Returns
        -------
        str
        """
        joined = [view for view in self.views if len(view) > 1]
        told = f"in a first fit of {counted(self.n_components, 'class', 'classes')} with one view per column"
        if joined:
            parts = [f"{self._named(view)} (tied by {self._within(view):.2f} of 1)" for view in joined]
            return f"Put together: {'; '.join(parts)}, {told}; every other column is a view."
        if len(self.names) == FEWEST_VIEWS:
            return f"Every column is a view: a model needs at least {FEWEST_VIEWS}, and there are no more columns."
        pair, most = self._strongest()
        return (
            f"Every column is a view: {told}, the strongest tie inside the typical class, between {self._named(pair)}, "
            f"is {most:.2f} of 1, and columns are put together from {TIED} on."
        )

    def _named(self, view: tuple[int, ...]) -> str:
        return " and ".join(self.names[j] for j in view)

    def _within(self, view: tuple[int, ...]) -> float:
        return float(np.mean([self.strength[pair] for pair in combinations(view, 2)]))

    def _strongest(self) -> tuple[tuple[int, int], float]:
        values = np.nan_to_num(self.strength)
        s, t = np.unravel_index(values.argmax(), values.shape)
        return (int(s), int(t)), float(values[s, t])


def suggest_views(X: Any, n_components: int | str = "auto", *, random_state: Any = None) -> ViewSuggestion:
    r"""Group the columns of a table into views by their dependence inside the classes; no labels are used.

    A first fit has one view per column. In each of its classes every pair of columns is tested as in `diagnose`, by
    HSIC (Gretton et al. 2008); the strength of a pair is the median over classes, weighted by their size, so that a
    single class that is a mixture of others does not tie columns,

    .. math:: s_{jl} = \operatorname{median}_h\, e_{jlh}, \qquad e_{jlh}^2 =
              \frac{\mathrm{HSIC}_h(x_j, x_l) - \text{its mean under permutation}}
              {\sqrt{\mathrm{HSIC}_h(x_j, x_j)\, \mathrm{HSIC}_h(x_l, x_l)}} ,

    with zero for what is negative. Groups are then joined, the strongest average tie first, while it is at least 0.25,
    three views are left, and no view has more than three columns.

    Parameters
    ----------
    X : array or DataFrame of shape (n_samples, n_features)
        At most 5,000 rows are looked at.
    n_components : int or "auto", default="auto"
        Classes of the model fit.
    random_state : int, RandomState or None

    Returns
    -------
    ViewSuggestion
        With ``views``, to be passed to a model, and ``summary()``.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews.datasets import make_multiview
    >>> from latentviews.diagnosis.grouping import suggest_views
    >>> X = make_multiview(2000, 2, random_state=0).X
    >>> twin = X[:, 2] + np.random.default_rng(0).normal(scale=0.3, size=2000)
    >>> suggest_views(np.column_stack([X, twin]), 2, random_state=0).views
    ((0,), (1,), (2, 3))
    """
    rng = generator_of(random_state)
    model = MultiViewMixture(n_components, random_state=int(rng.integers(2**31)))
    data, columns = read_table(model, X, reset=True)
    names = tuple(map(str, getattr(model, "feature_names_in_", range(len(columns)))))
    if len(columns) > MOST_COLUMNS:
        raise ValueError(
            f"Views are suggested for at most {MOST_COLUMNS} columns; got {len(columns)}. Choose some, or name them."
        )
    rows = to_numpy(streams.sample(data, ROWS, rng)[0])
    codes = chosen_codes(model)
    model.set_params(kernel=[Delta() if j in codes else None for j in range(len(columns))] if codes else None)
    model.fit(rows)
    spaces = [view.space for view in model.components_]
    drawn = drawn_classes(rows, columns, spaces, model.predict_proba(rows), rng)
    found = within_class_dependence(drawn, len(columns), N_PERMUTATIONS, rng)
    strength = np.full((len(columns), len(columns)), np.nan)
    for (s, t), effect in zip(found.pairs, found.effect.T, strict=True):
        strength[s, t] = strength[t, s] = _weighted_median(effect, model.weights_)
    return ViewSuggestion(tuple(_joined(strength)), names, strength, model.n_components_)


def _weighted_median(values: np.ndarray, weights: np.ndarray) -> float:
    """The smallest value with half of the weight at or below it; zero where none is known."""
    known = np.isfinite(values)
    if not known.any():
        return 0.0
    order = np.argsort(values[known])
    share = weights[known][order].cumsum()
    return float(values[known][order][np.searchsorted(share, share[-1] / 2)])


def _joined(strength: np.ndarray) -> list[tuple[int, ...]]:
    """Groups of columns by average linkage."""
    groups: list[tuple[int, ...]] = [(j,) for j in range(len(strength))]
    while len(groups) > FEWEST_VIEWS:
        ties = {
            (a, b): float(np.mean(strength[np.ix_(a, b)]))
            for a, b in combinations(groups, 2)
            if len(a) + len(b) <= WIDEST_VIEW
        }
        best = max(ties, key=lambda pair: ties[pair], default=None)
        if best is None or ties[best] < TIED:
            break
        groups = sorted([group for group in groups if group not in best] + [tuple(sorted(best[0] + best[1]))])
    return groups
