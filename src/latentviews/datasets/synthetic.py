"""Data with known truth, and loaders of public collections."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from latentviews._numbers import brief, generator_of
from latentviews._validation import check_count, check_nonnegative
from latentviews.sequences.chains import draw_states
from latentviews.sequences.stretches import check_lengths

DESIGNS = ("gaussian", "gamma", "shapes")


@dataclass(frozen=True, eq=False)
class TrueView:
    """The true distributions of one view: ``laws[h]`` is a list of (weight, frozen scipy distribution).

    Attributes
    ----------
    laws : tuple with a tuple of parts per class
        The share of every part, and its frozen distribution of SciPy.

    Examples
    --------
    >>> from latentviews.datasets import make_multiview
    >>> view = make_multiview(10, 3, design="shapes", random_state=0).truth.components[0]
    >>> view.density([0.0, 2.5]).round(2)  # one peak, two peaks, Laplace
    array([[0.4 , 0.  , 0.17],
           [0.02, 0.33, 0.07]])
    """

    laws: tuple[tuple[tuple[float, Any], ...], ...]

    def density(self, x: Any) -> np.ndarray:
        """The densities of all classes, (n, k).

        Parameters
        ----------
        x : array of shape (n,) or (n, d)

        Returns
        -------
        array of shape (n, k)
        """
        x = np.ravel(x)
        return np.stack([sum(w * law.pdf(x) for w, law in parts) for parts in self.laws], axis=1)

    def sample(self, component: int, size: int, rng: np.random.Generator) -> np.ndarray:
        """Rows from one class, (size, 1).

        Parameters
        ----------
        component : int
            The class.
        size : int
            How many.
        rng : numpy Generator

        Returns
        -------
        array of shape (size, d)
        """
        parts = self.laws[component]
        which = rng.choice(len(parts), size=size, p=[w for w, _ in parts])
        draws = np.stack([law.rvs(size=size, random_state=rng) for _, law in parts])
        return draws[which, np.arange(size)][:, None]


class Truth(NamedTuple):
    """What generated the data.

    Attributes
    ----------
    weights : array of shape (k,)
        How common the classes are.
    components : tuple of TrueView
        One per view.

    Examples
    --------
    >>> from latentviews.datasets import make_multiview
    >>> weights, views = make_multiview(10, 4, random_state=0).truth
    >>> weights, len(views)
    (array([0.1, 0.2, 0.3, 0.4]), 3)
    """

    weights: np.ndarray
    components: tuple[TrueView, ...]


class MultiViewData(NamedTuple):
    """Data, labels and the truth behind them.

    Attributes
    ----------
    X : array of shape (n_samples, n_views)
    y : array of shape (n_samples,)
        The class of every row.
    truth : Truth

    Examples
    --------
    >>> from latentviews.datasets import make_multiview
    >>> data = make_multiview(100, 2, random_state=0)
    >>> data.X.shape, data.y.shape, len(data.truth.components)
    ((100, 3), (100,), 3)
    """

    def __repr__(self) -> str:
        return brief(self)

    X: np.ndarray
    y: np.ndarray
    truth: Truth


def make_multiview(
    n_samples: int = 1000,
    n_components: int = 3,
    *,
    design: str = "gaussian",
    n_views: int = 3,
    separation: float = 4.0,
    identical: bool = False,
    random_state: Any = None,
) -> MultiViewData:
    r"""One-dimensional views that are independent given a class, as in section 8.1 of Song et al. (2014).

    .. math:: p(x_1, \ldots, x_m) = \sum_{h=1}^k \pi_h \prod_t p_t(x_t \mid h), \qquad \pi_h = \frac{2h}{k(k+1)}

    Parameters
    ----------
    n_samples, n_components : int
    design : {"gaussian", "gamma", "shapes"}
        "gaussian": means ``separation`` apart, permuted in every view, standard deviations from U(.6, 1.2);
        "gamma": every second class is a shifted exponential of scale U(.8, 1.4) with that mean instead;
        "shapes": three classes with equal means, N(0, 1), half N(-2.5, .6) and half N(2.5, .6), Laplace(0, 3).
    n_views : int, default=3
    separation : float, default=4
        4 is separated, 2 overlapping, 1.2 heavily overlapping.
    identical : bool, default=False
        Whether all views share their conditional distributions.
    random_state : int, RandomState or None

    Returns
    -------
    MultiViewData
        ``X``, ``y``, and ``truth`` with ``weights`` and ``components[t].density(x)``.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews.datasets import make_multiview
    >>> X, y, truth = make_multiview(2000, 2, random_state=0)
    >>> X.shape, truth.weights.round(2).tolist(), (np.bincount(y) / 2000).round(1).tolist()
    ((2000, 3), [0.33, 0.67], [0.3, 0.7])
    >>> [round(float(np.corrcoef(X[rows, :2].T)[0, 1]), 1) + 0.0 for rows in (y >= 0, y == 0)]  # all rows, one class
    [0.8, 0.0]
    """
    n_samples, k = check_count("n_samples", n_samples), check_count("n_components", n_components)
    n_views, rng = check_count("n_views", n_views), generator_of(random_state)
    separation = check_nonnegative("separation", separation)
    if design not in DESIGNS:
        raise ValueError(f"design must be one of {DESIGNS}; got {design!r}.")
    if design == "shapes" and k != 3:
        raise ValueError(f'design="shapes" has three classes; got n_components={k}.')
    weights = 2 * np.arange(1, k + 1) / (k * (k + 1))
    first = _view(design, k, separation, rng)
    views = [first] + [first if identical else _view(design, k, separation, rng) for _ in range(n_views - 1)]
    y = rng.choice(k, size=n_samples, p=weights)
    X = np.empty((n_samples, n_views))
    for t, view in enumerate(views):
        for h in range(k):
            X[y == h, t : t + 1] = view.sample(h, int(np.sum(y == h)), rng)
    return MultiViewData(X, y, Truth(weights, tuple(views)))


class HMMTruth(NamedTuple):
    """The chain and the emissions that generated a sequence.

    Attributes
    ----------
    start : array of shape (k,)
        The probability of every state at the first row.
    transition : array of shape (k, k)
        P(next state | state), one row per state.
    components : tuple of TrueView
        One per view.

    Examples
    --------
    >>> from latentviews.datasets import make_hmm
    >>> make_hmm(10, stay=0.8, random_state=0).truth.transition.round(2)
    array([[0.8, 0.1, 0.1],
           [0.1, 0.8, 0.1],
           [0.1, 0.1, 0.8]])
    """

    start: np.ndarray
    transition: np.ndarray
    components: tuple[TrueView, ...]


class HMMData(NamedTuple):
    """Sequences one under the other, their states and the truth behind them.

    Attributes
    ----------
    X : array of shape (n_samples, 1)
    states : array of shape (n_samples,)
        The state at every row.
    truth : HMMTruth

    Examples
    --------
    >>> from latentviews.datasets import make_hmm
    >>> data = make_hmm(100, random_state=0)
    >>> data.X.shape, data.states.shape
    ((100, 1), (100,))
    """

    def __repr__(self) -> str:
        return brief(self)

    X: np.ndarray
    states: np.ndarray
    truth: HMMTruth


def make_hmm(n_samples: int = 1000, *, stay: float = 0.9, lengths: Any = None, random_state: Any = None) -> HMMData:
    """Three states that stay with probability ``stay``, and emissions on the same stretch of the line.

    State 0 emits half N(-1.5, .35) and half N(1.5, .35), state 1 a shifted exponential, -1 + Exp(1), state 2
    N(0, .6). Their means are the same, so shapes alone tell them apart. The other states are equally probable
    after each, and at the start.

    Parameters
    ----------
    n_samples : int
    stay : float, default=0.9
    lengths : list of ints or None
        How long every sequence is; by default all rows are one.
    random_state : int, RandomState or None

    Returns
    -------
    HMMData
        ``X``, ``states``, and ``truth`` with ``start``, ``transition`` and ``components[0].density(x)``.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews.datasets import make_hmm
    >>> X, states, truth = make_hmm(5000, random_state=0)
    >>> round(float(np.mean(states[1:] == states[:-1])), 1)
    0.9
    >>> [abs(round(float(X[states == h].mean()), 1)) for h in range(3)]  # means do not tell the states apart
    [0.0, 0.0, 0.0]
    """
    n_samples, rng = check_count("n_samples", n_samples), generator_of(random_state)
    if check_nonnegative("stay", stay) > 1:
        raise ValueError(f"stay must be a probability; got {stay!r}.")
    two_modes = ((0.5, stats.norm(-1.5, 0.35)), (0.5, stats.norm(1.5, 0.35)))
    view = TrueView((two_modes, ((1.0, stats.expon(-1, 1)),), ((1.0, stats.norm(0, 0.6)),)))
    start, transition = np.full(3, 1 / 3), stay * np.eye(3) + (1 - stay) / 2 * (1 - np.eye(3))
    states = draw_states(start, transition, check_lengths(lengths, n_samples), rng)
    X = np.empty((n_samples, 1))
    for h in range(3):
        X[states == h] = view.sample(h, int(np.sum(states == h)), rng)
    return HMMData(X, states, HMMTruth(start, transition, (view,)))


def _view(design: str, k: int, separation: float, rng: np.random.Generator) -> TrueView:
    if design == "shapes":
        two_modes = ((0.5, stats.norm(-2.5, 0.6)), (0.5, stats.norm(2.5, 0.6)))
        return TrueView((((1.0, stats.norm(0, 1)),), two_modes, ((1.0, stats.laplace(0, 3)),)))
    means = rng.permutation(separation * (np.arange(k) - (k - 1) / 2))
    deviations, scales = rng.uniform(0.6, 1.2, size=k), rng.uniform(0.8, 1.4, size=k)
    laws = [stats.norm(m, s) for m, s in zip(means, deviations, strict=True)]
    if design == "gamma":
        laws[1::2] = [stats.expon(means[h] - scales[h], scales[h]) for h in range(1, k, 2)]
    return TrueView(tuple(((1.0, law),) for law in laws))
