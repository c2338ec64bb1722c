"""Predictive states moved by observable operators: the Hilbert-space HMM."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from latentviews._numbers import TINY
from latentviews._parameters import Constraint, Count, Nonnegative, Several, check_parameters
from latentviews.comparison.conditional_operators import ConditionalOperator
from latentviews.sequences.chains import first_rows
from latentviews.sequences.dynamics import Series

FAINT = 1e-30  # moments of consecutive rows below this share of squared features say nothing of what comes next
ROUNDING = 1e-9  # a mass below this share of the numbers that it is made of tells nothing


@dataclass(frozen=True, eq=False)
class OperatorDynamics:
    """Observable operators: a state is moved by a row's operator and scaled back to mass one."""

    start: np.ndarray  # (p,), Uᵀ E[φ]
    operators: np.ndarray  # (p, p, D): B_x = operators @ φ(x)
    drift: np.ndarray  # (p, p), the mean operator: a step whose row is not seen
    mass: np.ndarray  # (p,), what a state of mass one gives one with
    embedding: np.ndarray  # (D, p): E[φ(next row) | past] from a state
    limit: float  # the length of the longest feature vector
    readout: np.ndarray  # (horizon, p, d)
    memory: int = 0

    def forecast(self, states: np.ndarray, recent: np.ndarray, horizon: int) -> np.ndarray:
        """The next rows, by steps that are not seen."""
        return np.einsum("mp,hpd->mhd", states, self.readout[:horizon])

    def step(self, states: np.ndarray, phi: np.ndarray) -> np.ndarray:
        """B_x β over its mass.

        The embedding of a distribution is no longer than the longest feature vector. Where sampling error leads
        beyond that, or a row is so unlikely that its mass is rounding, it moves the state as if it were not seen;
        where that is no better, the state starts again. A factor of φ(x) is one of the mass too: features are
        made small first, since operators of those far beyond the fit have squares that no float holds.
        """
        size = len(self.start)
        phi = phi / np.maximum(np.abs(phi).max(axis=1, keepdims=True), 1.0)
        operators = (phi @ self.operators.reshape(size * size, -1).T).reshape(-1, size, size)
        found = self.start
        for moves in (self.drift[None], operators):
            moved, sizes = (moves @ states[:, :, None])[:, :, 0], np.linalg.norm(moves, axis=(1, 2))
            found = np.where(self._proper(moved, sizes * np.linalg.norm(states, axis=1)), self._scaled(moved), found)
        return found

    def _scaled(self, states: np.ndarray) -> np.ndarray:
        """States of mass one."""
        masses = states @ self.mass
        return states / np.where(np.abs(masses) > TINY, masses, TINY)[:, None]

    def _proper(self, moved: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Where states, of numbers of such sizes, have a mass that is no rounding, and are no longer than features."""
        masses = np.abs(moved @ self.mass)
        known = masses > ROUNDING * sizes * np.linalg.norm(self.mass)
        return (known & (np.linalg.norm(moved, axis=1) <= self.limit * masses))[:, None]


class ObservableOperators(BaseEstimator):
    r"""The Hilbert-space HMM of Song, Boots, Siddiqi, Gordon & Smola (2010), on finite features.

    With U the leading left singular vectors of C₂₁ = E[φ(x_{t+1}) φ(x_t)ᵀ],

    .. math:: B_x = U^\top \mathcal C_{3,x,1} (U^\top C_{21})^\dagger, \qquad
              \mathcal C_{3,x,1} \propto C_{3,1|2}\, (C_{22} + \lambda I)^{-1} \varphi(x)

    The rows around x are regressed on it as by `ConditionalEmbedding`. For one-hot features and λ = 0 it is the
    algorithm of Hsu, Kakade & Zhang (2009).

    Parameters
    ----------
    sizes : tuple of int, default=(5, 10, 20)
        Numbers of singular vectors to choose from by validation.
    penalties : tuple of float, default=(1e-4, 1e-3, 1e-2)
        λ to choose from by validation, over the mean eigenvalue of C₂₂.

    Examples
    --------
    >>> import numpy as np
    >>> from latentviews import ObservableOperators, PredictiveStateModel
    >>> X = np.sin(np.arange(120) / 5)[:, None]
    >>> dynamics = ObservableOperators(sizes=(5,), penalties=(1e-3,))
    >>> PredictiveStateModel(dynamics=dynamics, random_state=0).fit(X).forecast(X, 3).mean().shape
    (3, 1)
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        "sizes": Several(Count(), "a list of integers to choose from"),
        "penalties": Several(Nonnegative(), "a list of numbers to choose from, none negative"),
    }

    def __init__(self, sizes: Sequence[int] = (5, 10, 20), penalties: Sequence[float] = (1e-4, 1e-3, 1e-2)):
        self.sizes = sizes
        self.penalties = penalties

    def candidates(self) -> list[tuple[int, float]]:
        """What there is to choose from.

        Returns
        -------
        list[tuple[int, float]]
        """
        check_parameters(self)
        return list(product(self.sizes, self.penalties))

    def learn(self, series: Series, choice: tuple[int, float], horizon: int) -> OperatorDynamics:
        """Operators from all triples of consecutive rows.

        Parameters
        ----------
        series : Series
            Rows in standard units and their features.
        choice : tuple
            One of `candidates`.
        horizon : int, default=1
            How many steps ahead.

        Returns
        -------
        OperatorDynamics
        """
        first = first_rows(series.lengths)
        inside = np.flatnonzero(~(first[1:-1] | first[2:]))
        past, now, ahead = (series.phi[inside + lag] for lag in range(3))
        weights = np.full(len(inside), 1 / len(inside))
        return self.from_triples(past, now, ahead, series.x[inside + 1], weights, choice, horizon)

    def from_triples(
        self,
        past: np.ndarray,
        now: np.ndarray,
        ahead: np.ndarray,
        x: np.ndarray,
        weights: np.ndarray,
        choice: tuple[int, float],
        horizon: int,
    ) -> OperatorDynamics:
        """Operators from feature vectors of triples with these weights; ``x`` are the middle rows themselves.

        Parameters
        ----------
        past : array
            Features of what came before.
        now : array
            Features of the rows.
        ahead : array
            Features of what comes next.
        x : array
            The rows themselves.
        weights : array or None
            Of the triples.
        choice : tuple
            One of `candidates`.
        horizon : int
            The most steps ahead.

        Returns
        -------
        OperatorDynamics
        """
        size, penalty = choice
        weighed = past * weights[:, None]
        limit = float(np.sqrt((now**2).sum(axis=1).max()))
        c21, mean = now.T @ weighed, weights @ past
        c21 = c21 if np.abs(c21).max() > FAINT * limit**2 else np.zeros_like(c21)
        basis = np.linalg.svd(c21)[0][:, :size]
        inverse = np.linalg.pinv(basis.T @ c21, rcond=1e-10)  # G = (Uᵀ C₂₁)†, (D, p)
        size = basis.shape[1]
        behind, beyond = weighed @ inverse, ahead @ basis
        joint = (beyond[:, :, None] * behind[:, None, :]).reshape(-1, size * size).T @ now  # (p², D)
        c22 = now.T @ (now * weights[:, None])
        floor = (penalty + 1e-13) * np.trace(c22) / len(c22)
        regressed = ConditionalOperator.of_moments(joint, c22, floor).matrix
        operators = np.ascontiguousarray(regressed).reshape(size, size, -1)  # as in a pickled copy
        drift = beyond.T @ behind
        values, power = x.T @ behind, np.eye(size)
        readout = np.empty((horizon, size, x.shape[1]))
        for step in readout:
            step[:] = (values @ power).T
            power = drift @ power
        return OperatorDynamics(basis.T @ mean, operators, drift, mean @ inverse, c21 @ inverse, limit, readout)
