"""What a chain says of the steps to come."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from latentviews._numbers import brief, generator_of
from latentviews._validation import check_count
from latentviews.core.components import Components
from latentviews.core.tables import Columns
from latentviews.mixtures.conditional import Conditional
from latentviews.mixtures.quantiles import check_levels, mixture_quantiles
from latentviews.sequences.chains import draw_states
from latentviews.sequences.stretches import check_place


@dataclass(frozen=True, eq=False)
class Forecast:
    r"""The distribution of the next rows: at every step a mixture of the states' emissions.

    .. math:: p(x_{T+s} \mid x_1, \ldots, x_T) = \sum_h P(h_{T+s} = h \mid x_1, \ldots, x_T)\, p(x_{T+s} \mid h)

    Arrays have the shape of ``states`` without its last axis, (horizon,) for one series and (n_sequences, horizon) for
    several, and what is asked for behind it.

    Parameters
    ----------
    states : array of shape (..., horizon, k)
        The probability of every state at every step ahead.
    transition : array of shape (k, k)
    components : list of Components, one per view
    views : tuple of lists of column indices
    n_columns : int
        The number of columns of the table; those in no view are NaN.

    Examples
    --------
    >>> from latentviews import KernelHMM
    >>> from latentviews.datasets import make_hmm
    >>> X = make_hmm(300, random_state=0).X
    >>> forecast = KernelHMM(3, polish=None, random_state=0).fit(X).forecast(X, horizon=5)
    >>> forecast.states.sum(axis=1).round(6), forecast.mean().shape, forecast.quantile([0.1, 0.9]).shape
    (array([1., 1., 1., 1., 1.]), (5, 1), (5, 1, 2))
    """

    def __repr__(self) -> str:
        return brief(self)

    states: np.ndarray
    transition: np.ndarray
    components: Sequence[Components]
    views: Columns
    n_columns: int

    @property
    def horizon(self) -> int:
        """The number of steps ahead."""
        return self.states.shape[-2]

    def mean(self) -> np.ndarray:
        """The mean of every column, (..., horizon, n_columns); directions for angles.

        Returns
        -------
        array of shape (..., horizon, n_columns)
        """
        flat = self.states.reshape(-1, self.states.shape[-1])
        return self._in_columns([Conditional(flat, view).mean() for view in self.components])

    def quantile(self, q: Any) -> np.ndarray:
        """The quantile of every column by itself, (..., horizon, n_columns), and a last axis if ``q`` is a list.

        Angles are counted from half a turn before the mean direction to half a turn behind it, so that lower and upper
        ends are the right way round; an end may lie beyond half a turn.

        Parameters
        ----------
        q : float or list of floats
            Levels, from zero to one.

        Returns
        -------
        array of shape (..., horizon, n_columns) or (..., horizon, n_columns, len(q))
        """
        levels = check_levels(q)
        flat = self.states.reshape(-1, self.states.shape[-1])
        parts = [
            self._in_columns([mixture_quantiles(view, flat, level) for view in self.components]) for level in levels
        ]
        return parts[0] if np.ndim(q) == 0 else np.stack(parts, axis=-1)

    def density(self, x: Any, view: int = 0) -> np.ndarray:
        """The density of one view at the points ``x``, (..., horizon, len(x)); infinite where beyond all numbers.

        Parameters
        ----------
        x : array of shape (m,) or (m, d)
        view : int, default=0
            The place of the view among the model's.

        Returns
        -------
        array of shape (..., horizon, m)
        """
        with np.errstate(over="ignore"):
            return np.exp(self.log_density(x, view))

    def log_density(self, x: Any, view: int = 0) -> np.ndarray:
        """The log-density of one view at the points ``x``, finite everywhere, (..., horizon, len(x)).

        Parameters
        ----------
        x : array of shape (m,) or (m, d)
        view : int, default=0
            The place of the view among the model's.

        Returns
        -------
        array of shape (..., horizon, m)
        """
        with np.errstate(divide="ignore"):  # states that cannot be
            shares = np.log(self.states)
        logs = self._view(view).log_density(x)
        return reduce(np.logaddexp, (shares[..., [h]] + logs[:, h] for h in range(logs.shape[1])))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Whole futures, (n_samples, ..., horizon, n_columns): the states of each follow the chain.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState, Generator or None, default=None

        Returns
        -------
        array of shape (n_samples, ..., horizon, n_columns)
        """
        n_samples, rng = check_count("n_samples", n_samples), generator_of(random_state)
        *outer, horizon, k = self.states.shape
        shape = (n_samples, *outer)
        entries = np.broadcast_to(self.states[..., 0, :], (*shape, k)).reshape(-1, k)
        paths = np.concatenate([draw_states(entry, self.transition, np.array([horizon]), rng) for entry in entries])
        parts = []
        for view in self.components:
            rows = np.empty((len(paths), view.dim))
            for state in np.unique(paths):
                members = paths == state
                rows[members] = view.sample(int(state), int(members.sum()), rng)
            parts.append(rows)
        return self._in_columns(parts, shape)

    def _view(self, view: int) -> Components:
        return self.components[check_place("view", view, len(self.components))]

    def _in_columns(self, parts: Sequence[np.ndarray], shape: Any = None) -> np.ndarray:
        """The values of every view, (n, d_t), in the columns of the table; NaN in columns of no view."""
        outer = self.states.shape[:-2] if shape is None else shape
        table = np.full((len(parts[0]), self.n_columns), np.nan)
        for columns, values in zip(self.views, parts, strict=True):
            table[:, columns] = values
        return table.reshape(*outer, self.horizon, -1)
