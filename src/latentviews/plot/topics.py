"""A display of topics: their likeliest words. matplotlib is imported where it is used."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from latentviews.plot._axes import as_written, check_model, class_style, panels_on


class TopicDisplay:
    """The likeliest words of every topic as bars, one panel per topic.

    Parameters
    ----------
    words : list of lists
        The likeliest words of every topic, in order.
    chances : list of arrays
        Their chances.
    weights : array of shape (k,)
        How common the topics are.

    Attributes
    ----------
    axes_ : array of matplotlib Axes, one per topic
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import TopicModel
    >>> from latentviews.plot import TopicDisplay
    >>> X = np.random.default_rng(0).poisson([[3, 3, 0.1, 0.1], [0.1, 0.1, 3, 3]] * 50)
    >>> model = TopicModel(2, concentration=0.1, random_state=0).fit(X)
    >>> display = TopicDisplay.from_estimator(model, n_words=2, names=["sun", "rain", "vote", "party"])
    >>> len(display.axes_)
    2
    """

    def __init__(self, words: Sequence[Sequence[Any]], chances: Sequence[np.ndarray], weights: np.ndarray):
        self.words = words
        self.chances = chances
        self.weights = weights

    @classmethod
    def from_estimator(cls, estimator: Any, *, n_words: int = 10, names: Any = None, ax: Any = None) -> Self:
        """Draw the topics of a fitted `TopicModel` of words.

        Parameters
        ----------
        estimator : fitted TopicModel
        n_words : int, default=10
            Words of every topic.
        names : sequence of str or None
            The words of its columns.
        ax : one matplotlib Axes per topic, or None

        Returns
        -------
        TopicDisplay
        """
        check_model(cls, estimator, "a TopicModel", "top_words")
        words = estimator.top_words(n_words, names)
        chances = [np.sort(topic)[::-1][: len(row)] for topic, row in zip(estimator.components_, words, strict=True)]
        return cls(words, chances, estimator.weights_).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : one matplotlib Axes per topic, or None
            None makes a figure.

        Returns
        -------
        self
        """
        panels = panels_on(ax, len(self.words), "topic")
        for h, panel in enumerate(panels):
            places = np.arange(len(self.words[h]))[::-1]
            panel.barh(places, self.chances[h], color=class_style(h)["color"], alpha=0.75)
            panel.set_yticks(places, [as_written(word) for word in self.words[h]])
            panel.set(xlabel="chance of the word", title=f"topic {h} ({self.weights[h]:.2f})")
        self.axes_, self.figure_ = panels, panels[0].figure
        return self
