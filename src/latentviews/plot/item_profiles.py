"""A picture of latent classes: how every item is answered in each.

`latentviews.plot` has it beside the others; matplotlib is imported where it is used.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from latentviews.plot._axes import PALETTE, as_written, check_model, class_label, panels_on

MOST = 8  # categories of an item that are drawn apart; the rarest of more are drawn together
WRITTEN = 0.12  # the least probability whose category is written into its bar
FAINTEST = 0.15  # how much of a class's colour its first category has


class ItemProfileDisplay:
    """The probability of every answer in every class: a panel per class, a bar per item, a part of it per category.

    Parameters
    ----------
    probabilities : list of arrays of shape (n_categories, k), one per item
    categories : list of lists of str, one per item
    weights : array of shape (k,)
        How common the classes are.
    items : list of str
        What to write beside the bars.

    Attributes
    ----------
    axes_ : array of matplotlib Axes, one per class
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import LatentClass
    >>> from latentviews.plot import ItemProfileDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = np.where(rng.random((200, 4)) < np.where(rng.random(200) < 0.3, 0.9, 0.1)[:, None], "yes", "no")
    >>> display = ItemProfileDisplay.from_estimator(LatentClass(2, random_state=0).fit(X))
    >>> [panel.get_title()[:7] for panel in display.axes_]
    ['class 0', 'class 1']
    """

    def __init__(
        self,
        probabilities: Sequence[np.ndarray],
        categories: Sequence[Sequence[str]],
        weights: np.ndarray,
        items: Sequence[str],
    ):
        self.probabilities = probabilities
        self.categories = categories
        self.weights = weights
        self.items = items

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the item profiles of a fitted `LatentClass`, on ``ax`` if given: one Axes per class.

        Parameters
        ----------
        estimator : LatentClass
        ax : matplotlib Axes or None

        Returns
        -------
        ItemProfileDisplay
        """
        check_model(cls, estimator, "a LatentClass", "ordered_")
        parts = [
            _fewer(probabilities, [str(value) for value in values], estimator.weights_)
            for probabilities, values in zip(estimator.components_, estimator.categories_, strict=True)
        ]
        names = getattr(estimator, "feature_names_in_", [f"column {j}" for j in range(len(parts))])
        return cls([p for p, _ in parts], [c for _, c in parts], estimator.weights_, [str(n) for n in names]).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw, on ``ax`` if given: one Axes per class.

        Parameters
        ----------
        ax : matplotlib Axes or None

        Returns
        -------
        ItemProfileDisplay
        """
        self.axes_ = panels_on(ax, len(self.weights), "class")
        self.figure_ = self.axes_[0].figure
        items = [as_written(item) for item in self.items]
        for h, panel in enumerate(self.axes_):
            for place, (probabilities, categories) in enumerate(zip(self.probabilities, self.categories, strict=True)):
                _draw_bar(panel, place, probabilities[:, h], categories, PALETTE[h % len(PALETTE)])
            panel.set_title(class_label(h, float(self.weights[h])))
            panel.set_xlim(0, 1)
            panel.set_xlabel("probability")
            panel.set_yticks(range(len(items)), items if h == 0 else [""] * len(items))
            panel.invert_yaxis()
        return self


def _fewer(probabilities: np.ndarray, names: list[str], weights: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """The commonest categories in their order, and all others together, where there are many."""
    if len(names) <= MOST:
        return probabilities, names
    kept = np.sort(np.argsort(-(probabilities @ weights), kind="stable")[: MOST - 1])
    rest = 1 - probabilities[kept].sum(axis=0)
    return np.vstack([probabilities[kept], rest]), [*(names[c] for c in kept), "others"]


def _draw_bar(panel: Any, place: int, shares: np.ndarray, names: Sequence[str], color: str) -> None:
    """The categories of an item side by side, each in a stronger shade than the one before."""
    starts = np.cumsum(shares) - shares
    shades = np.linspace(FAINTEST, 1.0, len(shares))
    for start, share, shade, name in zip(starts, shares, shades, names, strict=True):
        panel.barh(place, share, left=start, color=color, alpha=shade, edgecolor="white", linewidth=0.5)
        if share >= WRITTEN:
            ink = "white" if shade > 0.6 else "black"
            middle, text = start + share / 2, as_written(name)
            panel.text(middle, place, text, ha="center", va="center", fontsize="x-small", color=ink)
