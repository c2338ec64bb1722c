"""What a fitted mixture says of functionals, missing views and other fits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from latentviews._numbers import TINY, drawn_labels
from latentviews.core.embeddings import Components, evaluate
from latentviews.core.kernels.spaces import Circle
from latentviews.mixtures.dependence.classes import DependentClasses
from latentviews.mixtures.polish import Polished
from latentviews.mixtures.sieve import accelerated_em, posterior


class Expectation(NamedTuple):
    """E[f(x_t) | h] for every class, with standard errors."""

    values: np.ndarray  # (k,)
    standard_errors: np.ndarray  # (k,)


def signed_weights(posteriors: np.ndarray, others: np.ndarray, row_weights: np.ndarray) -> np.ndarray:
    """ω_h(row) with E[ω_h f(X_t)] = π_h E[f(X_t) | h] for every f (Bonhomme, Jochmans & Robin 2016), (n, k).

    ``others`` are the posteriors given all views but t, q. Given the class they do not depend on x_t, and their means
    A_gh = E[q_g | h] are known from the full ``posteriors``, so ω = A⁻¹ q has mean one in class h and zero in others.
    ``row_weights`` (n,) say how much each row counts.
    """
    shares = posteriors * row_weights[:, None]
    confusion = others.T @ shares / np.maximum(shares.sum(axis=0), TINY)
    return others @ np.linalg.pinv(confusion).T * row_weights[:, None]


def expectation(values: np.ndarray, weights: np.ndarray) -> Expectation:
    """The ratio of means E[ω f] / E[ω], and its standard error by the delta method."""
    mass = weights.mean(axis=0)
    estimate = values @ weights / len(values) / mass
    influence = weights * (values[:, None] - estimate) / mass
    return Expectation(estimate, influence.std(axis=0) / np.sqrt(len(values)))


@dataclass(frozen=True, eq=False)
class Conditional:
    """The distribution of one view given the others, for every row: a mixture of the components."""

    posteriors: np.ndarray  # (n, k), given the other views
    components: Components

    def mean(self) -> np.ndarray:
        """The conditional mean of every row, (n, d)."""
        columns = [itemgetter((slice(None), j)) for j in range(self.components.dim)]
        if isinstance(self.components.domain, Circle):  # the direction of the mean point on the circle
            return np.arctan2(*(self._average([_then(f, column) for column in columns]) for f in (np.sin, np.cos)))
        return self._average(columns)

    def _average(self, functions: Sequence[Callable[[np.ndarray], Any]]) -> np.ndarray:
        return self.posteriors @ np.stack([self.components.expectation(f) for f in functions], axis=1)

    def density(self, x: Any) -> np.ndarray:
        """The conditional density of every row at the points ``x``, (n, len(x))."""
        return self.posteriors @ self.components.density(x).T

    def sample(self, random_state: Any = None) -> np.ndarray:
        """One draw for every row, (n, d)."""
        rng = np.random.default_rng(random_state)
        labels = drawn_labels(self.posteriors, rng)
        rows = np.empty((len(labels), self.components.dim))
        for component in np.unique(labels):
            members = labels == component
            rows[members] = self.components.sample(component, int(members.sum()), rng)
        return rows


def _then(f: Callable[[np.ndarray], Any], column: Callable[[np.ndarray], Any]) -> Callable[[np.ndarray], Any]:
    return lambda x: f(column(x))


class Bootstrap(NamedTuple):
    """Resampled values of weights and functionals, classes aligned, with percentile intervals."""

    weights: np.ndarray  # (n_resamples, k)
    values: np.ndarray  # (n_resamples, k), of the functional; empty without one

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends for the class weights."""
        return _interval(self.weights, level)

    def value_interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends for the functional in every class."""
        if not self.values.size:
            raise ValueError("No functional was resampled; give `f` to bootstrap.")
        return _interval(self.values, level)


def _interval(draws: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    if not isinstance(level, int | float | np.number) or not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1; got {level!r}.")
    # "weibull" leaves the stated share outside on average; the default quantiles are too close for few draws
    lower, upper = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0, method="weibull")
    return lower, upper


def resample(
    polished: Polished,
    table: np.ndarray,
    f: Callable[[np.ndarray], Any] | None,
    view: int,
    n_resamples: int,
    rng: np.random.Generator,
    row_weights: np.ndarray | None = None,
) -> Bootstrap:
    """Refits of the sieve to resampled rows, each started at the fit, so that classes keep their names."""
    cells = polished.cells(table)
    values, has_view = _values(f, table[:, polished.views[view].columns])
    weights, functionals = [], []
    for _ in range(n_resamples):
        counts = rng.multinomial(len(table), np.full(len(table), 1 / len(table))).astype(float)
        counts = counts if row_weights is None else counts * row_weights
        fit = accelerated_em(partial(polished.step, cells, weights=counts), polished.fit.mixing, 120, 3e-3)
        shares = posterior(cells, fit.mixing)[0] * counts[:, None]
        weights.append(shares.sum(axis=0) / shares.sum())
        functionals.append(values @ shares / np.maximum(has_view @ shares, TINY))
    return Bootstrap(np.array(weights), np.array(functionals) if f is not None else np.empty((n_resamples, 0)))


def _values(f: Callable[[np.ndarray], Any] | None, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``f`` on the rows that have a view and zero on others, and which have it, as numbers."""
    values, present = np.zeros(len(x)), ~np.isnan(x).any(axis=1)
    if f is not None:
        values[present] = evaluate(f, x[present])
    return values, present.astype(float)


def resample_dependent(
    classes: DependentClasses,
    table: np.ndarray,
    f: Callable[[np.ndarray], Any] | None,
    view: int,
    n_resamples: int,
    rng: np.random.Generator,
    row_weights: np.ndarray | None = None,
) -> Bootstrap:
    """A few steps of EM on resampled rows from the fit, whose components stay in their classes."""
    values, has_view = _values(f, table[:, classes.columns[view]])
    draws = []
    for _ in range(n_resamples):
        counts = rng.multinomial(len(table), np.full(len(table), 1 / len(table))).astype(float)
        counts = counts if row_weights is None else counts * row_weights
        draws.append(classes.reweighted(table, counts, values, has_view))
    weights, means = (np.array(part) for part in zip(*draws, strict=True))
    return Bootstrap(weights, means if f is not None else np.empty((n_resamples, 0)))


def matching_order(components: list[Components], reference: list[Components]) -> np.ndarray:
    """The order in which the classes of ``components`` follow those of ``reference``, by distance over all views."""
    cost = sum(there.mmd(here) / (there.mmd().max() + TINY) for here, there in zip(components, reference, strict=True))
    return linear_sum_assignment(np.asarray(cost))[1]
