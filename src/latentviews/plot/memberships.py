"""A picture of communities: the shares of every node. matplotlib is imported where it is used."""

from typing import Any, Self

import numpy as np

from latentviews.plot._axes import as_written, check_model, class_label, class_style, panels_on

WRITTEN = 60  # nodes up to which their names are written


class MembershipDisplay:
    """The shares of every node as a stacked bar, nodes sorted by community and by their share of it.

    Parameters
    ----------
    memberships : array of shape (n, k)
    nodes : array of shape (n,)
        Their names.
    weights : array of shape (k,)
        The mean shares.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import CommunityModel
    >>> from latentviews.plot import MembershipDisplay
    >>> G = np.kron(np.eye(2), np.ones((8, 8)) - np.eye(8))
    >>> display = MembershipDisplay.from_estimator(CommunityModel(2, concentration=0.1, random_state=0).fit(G))
    >>> len(display.ax_.get_xticks())
    16
    """

    def __init__(self, memberships: np.ndarray, nodes: np.ndarray, weights: np.ndarray):
        self.memberships = memberships
        self.nodes = nodes
        self.weights = weights

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the nodes of a fitted `CommunityModel`, on ``ax`` if given.

        Parameters
        ----------
        estimator : fitted CommunityModel
        ax : matplotlib Axes or None

        Returns
        -------
        MembershipDisplay
        """
        check_model(cls, estimator, "the memberships of a CommunityModel", "memberships_", "nodes_")
        return cls(estimator.memberships_, estimator.nodes_, estimator.weights_).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes or None
            None makes a figure.

        Returns
        -------
        self
        """
        (self.ax_,) = panels_on(ax, 1, "graph")
        self.figure_ = self.ax_.figure
        memberships, nodes = np.asarray(self.memberships), np.asarray(self.nodes)
        order = np.lexsort((-memberships.max(axis=1), memberships.argmax(axis=1)))
        below = np.zeros(len(order))
        for h, weight in enumerate(self.weights):
            share = memberships[order, h]
            color, label = class_style(h)["color"], class_label(h, float(weight))
            self.ax_.bar(range(len(order)), share, bottom=below, width=1.0, color=color, label=label)
            below = below + share
        if len(order) <= WRITTEN:
            names = [as_written(nodes[i]) for i in order]
            self.ax_.set_xticks(range(len(order)), names, rotation=90, fontsize="x-small")
        self.ax_.set(xlabel="node", ylabel="share", ylim=(0, 1))
        self.ax_.legend()
        return self
