"""What a fitted chain of states can be asked: paths, beliefs, likelihoods, forecasts and draws."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted

from latentviews._arrays import answered, to_numpy
from latentviews._validation import check_count, draws_of
from latentviews.core.categories import decoded
from latentviews.core.tables import Columns, read_sequences
from latentviews.sequences.chains import best_path, draw_states, filter_states, smooth_states
from latentviews.sequences.chunks import by_sequences
from latentviews.sequences.estimation import ChainEstimate
from latentviews.sequences.forecast import Forecast
from latentviews.sequences.stretches import check_lengths, check_origins


class ChainAnswersMixin(DensityMixin):
    """Answers of a fitted `KernelHMM`."""

    fit: Callable[..., Any]
    random_state: Any
    n_features_in_: int
    n_states_: int
    views_: Columns
    start_: np.ndarray
    transition_: np.ndarray
    components_: list[Any]

    def fit_predict(self, X: Any, y: Any = None, *, lengths: Any = None) -> np.ndarray:
        """Fit, and the most probable path of states: ``fit(X, lengths=lengths).predict(X, lengths=lengths)``.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        y : ignored
        lengths : list of ints or None
            How long every sequence is; by default all rows are one.

        Returns
        -------
        array of shape (n_samples,)
        """
        return self.fit(X, y, lengths=lengths).predict(X, lengths=lengths)

    @by_sequences(dtype=int)
    def predict(self, X: Any, *, lengths: Any = None) -> np.ndarray:
        """The most probable path of states through every sequence (Viterbi).

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        lengths : list of ints or None
            How long every sequence is; by default all rows are one.

        Returns
        -------
        array of shape (n_samples,)
        """
        log_emissions, *laws = self._judged(X, lengths)
        return answered(best_path(to_numpy(log_emissions), *laws).states, X)

    @by_sequences("n_states_")
    def predict_proba(self, X: Any, *, lengths: Any = None) -> np.ndarray:
        """The probability of every state at every row given the whole sequence (smoothing), (n_samples, k).

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        lengths : list of ints or None
            How long every sequence is; by default all rows are one.

        Returns
        -------
        array of shape (n_samples, k)
        """
        return answered(smooth_states(*self._judged(X, lengths)).posteriors, X)

    @by_sequences("n_states_")
    def filter(self, X: Any, *, lengths: Any = None) -> np.ndarray:
        """The probability of every state at every row given the rows up to it, (n_samples, k).

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        lengths : list of ints or None
            How long every sequence is; by default all rows are one.

        Returns
        -------
        array of shape (n_samples, k)
        """
        return answered(filter_states(*self._judged(X, lengths)).filtered, X)

    @by_sequences()
    def score_samples(self, X: Any, *, lengths: Any = None) -> np.ndarray:
        """The log-density of every row given those before it in its sequence, (n_samples,).

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        lengths : list of ints or None
            How long every sequence is; by default all rows are one.

        Returns
        -------
        array of shape (n_samples,)
        """
        return answered(filter_states(*self._judged(X, lengths)).log_likelihood, X)

    def score(self, X: Any, y: Any = None, *, lengths: Any = None) -> float:
        """The log-likelihood of the sequences per row.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        y : ignored
        lengths : list of ints or None
            How long every sequence is; by default all rows are one.

        Returns
        -------
        float
            Higher is better.
        """
        return float(self.score_samples(X, lengths=lengths).mean())

    def forecast(self, X: Any, horizon: int = 1, *, lengths: Any = None, origins: Any = None) -> Forecast:
        """The distribution of the ``horizon`` rows after ``X``; after each sequence, where ``lengths`` are given.

        ``origins`` are numbers of rows to forecast from instead, each from what comes up to it.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        horizon : int, default=1
            How many steps ahead.
        lengths : list of ints or None
            How long every sequence is; by default all rows are one.
        origins : array of ints or None
            Rows to forecast from, each from what comes up to it; by default the last of every sequence.

        Returns
        -------
        Forecast
        """
        horizon = check_count("horizon", horizon)
        filtered = self.filter(X, lengths=lengths)
        ends = np.cumsum(check_lengths(lengths, len(filtered))) - 1
        states, ahead = filtered[ends if origins is None else check_origins(origins, len(filtered))], []
        for _ in range(horizon):
            states = states @ self.transition_
            ahead.append(states)
        stacked = np.stack(ahead, axis=1)
        several = lengths is not None or origins is not None
        states = stacked if several else stacked[0]
        return Forecast(states, self.transition_, self.components_, self.views_, self.n_features_in_)

    def aic(self, X: Any, *, lengths: Any = None) -> float:
        """Akaike's criterion with the effective number of parameters of the emissions; lower is better.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        lengths : list of ints or None
            How long every sequence is; by default all rows are one.

        Returns
        -------
        float
        """
        return -2 * float(self.score_samples(X, lengths=lengths).sum()) + 2 * self._n_parameters()

    def bic(self, X: Any, *, lengths: Any = None) -> float:
        """The Bayesian criterion with the effective number of parameters of the emissions; lower is better.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features)
        lengths : list of ints or None
            How long every sequence is; by default all rows are one.

        Returns
        -------
        float
        """
        log_likelihood = self.score_samples(X, lengths=lengths)
        return -2 * float(log_likelihood.sum()) + np.log(len(log_likelihood)) * self._n_parameters()

    def _n_parameters(self) -> float:
        """Those of the start, of the transitions, and the traces of the emissions' smoothers."""
        k = self.n_states_
        return k - 1 + k * (k - 1) + float(sum(view.n_parameters.sum() for view in self.components_))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """One sequence drawn from the fitted model, and its states; columns in no view are NaN.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState or None
            By default that of the model, so that a call repeats itself.

        Returns
        -------
        tuple of arrays
            Rows (n_samples, n_features), and their states.
        """
        check_is_fitted(self)
        n_samples, rng = check_count("n_samples", n_samples), draws_of(self, random_state)
        states = draw_states(self.start_, self.transition_, np.array([n_samples]), rng)
        rows = np.full((n_samples, self.n_features_in_), np.nan)
        for state in range(self.n_states_):
            members = np.flatnonzero(states == state)
            for columns, view in zip(self.views_, self.components_, strict=True):
                rows[members[:, None], columns] = view.sample(state, len(members), rng)
        return decoded(rows, getattr(self, "categories_", {})), states

    @property
    def _chain(self) -> ChainEstimate:
        return ChainEstimate(self.start_, self.transition_, self.components_, self.views_)

    def _sequences(self, X: Any, lengths: Any) -> tuple[np.ndarray, np.ndarray]:
        """Rows, in NumPy, and the lengths of their sequences."""
        check_is_fitted(self)
        table = to_numpy(read_sequences(self, X, reset=False)[0])
        return table, check_lengths(lengths, len(table))

    def _judged(self, X: Any, lengths: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
        """The log-emissions of the rows, where these are, and what else the algorithms on chains ask for."""
        check_is_fitted(self)
        table, _ = read_sequences(self, X, reset=False)
        return self._chain.log_emissions(table), self.start_, self.transition_, check_lengths(lengths, len(table))
