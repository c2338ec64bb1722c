"""What a fitted mixture says of functionals and other fits, and what classes must be able to."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import ndtri

from latentviews._numbers import TINY, brief, effective_rows
from latentviews.core.components import Components, evaluate
from latentviews.core.tables import Columns

PSEUDO_ROWS = 4.0  # that the variance of a proportion is estimated with, beside those there are


class ViewGivenOthers(Protocol):
    """The distribution of one view given the others, for every row."""

    @property
    def posteriors(self) -> np.ndarray:
        """Of the classes, or the components they are made of, given the other views, (n, k)."""

    def mean(self) -> np.ndarray:
        """The conditional mean of every row, (n, d)."""

    def density(self, x: Any) -> np.ndarray:
        """The conditional density of every row at the points ``x``, (n, len(x))."""

    def sample(self, random_state: Any = None) -> np.ndarray:
        """One draw for every row, (n, d)."""


class Classes(Protocol):
    """Hidden classes that rows can be judged by, whether or not their views are independent inside them."""

    @property
    def weights(self) -> np.ndarray:
        """How common the classes are, summing to one, (k,)."""

    @property
    def columns(self) -> Columns:
        """The columns of every view."""

    @property
    def n_parameters(self) -> float:
        """The effective number of parameters."""

    @property
    def dependence(self) -> str | None:
        """How views depend on each other inside classes; None where they are independent."""

    @property
    def noise_class(self) -> bool:
        """Whether noise is a class of its own."""

    @property
    def noise_weight(self) -> float:
        """How common noise is, beside all classes together; zero where it is none."""

    @property
    def can_refit(self) -> bool:
        """Whether ``resampled`` has something to refit."""

    def take(self, order: np.ndarray) -> Self:
        """The classes in another order."""

    def log_joint(self, table: Any) -> np.ndarray:
        """The log of the joint density of rows and classes, over the views a row has, (n, k); noise may come last."""

    def posteriors(self, table: Any) -> np.ndarray:
        """P(h | row), (n, k)."""

    def sample(self, n_samples: int, n_columns: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Rows and their classes; columns in no view are NaN."""

    def conditional(self, table: np.ndarray, view: int) -> ViewGivenOthers:
        """The distribution of one view given the others, for every row."""

    def functional_weights(self, table: np.ndarray, view: int, counts: np.ndarray) -> np.ndarray:
        """ω (n, k) with E[ω_h f(X_t)] = π_h E[f(X_t) | h] for functions of a view, for rows that count so much."""

    def resampled(self, table: np.ndarray, counts: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
        """The shares (n, k) of the rows in the classes after refits, from this fit, to rows that count so often."""


@dataclass(frozen=True, eq=False)
class Expectation:
    """E[f(x_t) | h] for every class, with standard errors and intervals.

    ``MultiViewMixture.expectation`` gives it, by the signed weights of Bonhomme, Jochmans & Robin (2016). It unpacks to
    values and standard errors.

    Attributes
    ----------
    values : array of shape (k,)
    standard_errors : array of shape (k,)
    rows : array of shape (k,) or None
        How many of equal weight say as much as those of each class.
    variances : array of shape (k,) or None
        Of the values by the rows alone, without any that are added.
    two_values : pair of floats or None
        Of the function, the lower first; None where it has others.

    Examples
    --------
    >>> from latentviews import MultiViewMixture
    >>> from latentviews.datasets import make_multiview
    >>> X = make_multiview(300, 2, random_state=0).X
    >>> model = MultiViewMixture(2, polish=None, random_state=0).fit(X)
    >>> squares = model.expectation(lambda x: x[:, 0] ** 2, X, view=1)
    >>> squares.values.shape, bool((squares.standard_errors > 0).all())
    ((2,), True)
    >>> lower, upper = model.expectation(lambda x: x[:, 0] > 0, X, view=1).interval()  # of a share
    >>> bool((lower >= 0).all() and (upper <= 1).all())
    True
    """

    def __repr__(self) -> str:
        return brief(self)

    values: np.ndarray
    standard_errors: np.ndarray
    rows: np.ndarray | None = None
    variances: np.ndarray | None = None
    two_values: tuple[float, float] | None = None

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter((self.values, self.standard_errors))

    def __len__(self) -> int:
        return 2

    def __getitem__(self, place: int) -> np.ndarray:
        return (self.values, self.standard_errors)[place]

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends for every class.

        For a function of two values these are Wilson's ends of a share, which stay between the two values; for
        others, the value give or take the normal quantile times the standard error.

        Parameters
        ----------
        level : float, default=0.95
            How often the interval is to contain the truth.

        Returns
        -------
        lower, upper : arrays of shape (k,)
        """
        quantile = float(ndtri((1 + check_level(level)) / 2))
        if self.two_values is None or self.rows is None or self.variances is None:
            return self.values - quantile * self.standard_errors, self.values + quantile * self.standard_errors
        low, high = self.two_values
        unit = high - low
        lower, upper = share_interval((self.values - low) / unit, self.variances / unit / unit, self.rows, quantile)
        return low + unit * lower, low + unit * upper


def share_interval(
    shares: np.ndarray, variances: np.ndarray, rows: np.ndarray, quantile: float
) -> tuple[np.ndarray, np.ndarray]:
    """All p with (p̂ - p)² ≤ z² (p (1 - p) / rows + c): Wilson's (1927), with what rows of other classes add, c.

    The variance of an estimated share p̂ is that of a share of as many rows, which goes with the true share p, and c,
    which does not: signed weights cancel other classes on average only.
    """
    estimate = np.clip(shares, 0.0, 1.0)
    others = np.maximum(variances - estimate * (1 - estimate) / rows, 0.0)
    curve = quantile**2 / rows
    middle = (estimate + curve / 2) / (1 + curve)
    half = np.sqrt(np.maximum(middle**2 - (estimate**2 - quantile**2 * others) / (1 + curve), 0.0))
    return np.clip(middle - half, 0.0, 1.0), np.clip(middle + half, 0.0, 1.0)


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
    """The ratio of means E[ω f] / E[ω], and its standard error by the delta method.

    Where a function of few values has one of them only in all rows of a class, others are not ruled out. So errors
    are estimated with some more rows, of no class in particular: four where the function has two values, as Agresti &
    Coull (1998) add four rows to those of a proportion, and none where no two rows have the same value.
    """
    mass = weights.mean(axis=0)
    estimate = values @ weights / len(values) / mass
    influence = weights * (values[:, None] - estimate) / mass
    counts = weights.sum(axis=1)
    rows = effective_rows(counts.sum(), np.sum(counts**2)) * np.clip(mass / mass.sum(), TINY, 1.0)
    more, spread = _tied_rows(values, counts)
    variances = influence.var(axis=0) / len(values)
    errors = np.sqrt((rows * variances + more * spread / rows) / (rows + more))
    return Expectation(estimate, errors, rows, variances, _two_values(values[counts != 0]))


def _two_values(values: np.ndarray) -> tuple[float, float] | None:
    """The only two values that a function has; zero and one also where all rows have one of them."""
    low, high = float(values.min()), float(values.max())
    if low in (0.0, 1.0) and high in (0.0, 1.0):
        low, high = 0.0, 1.0
    return (low, high) if low < high and np.all((values == low) | (values == high)) else None


def _tied_rows(values: np.ndarray, counts: np.ndarray) -> tuple[float, float]:
    """How many rows to add, in proportion to the chance that two have one value, and the variance of the values."""
    shares = counts / counts.sum()
    _, where = np.unique(values, return_inverse=True)
    ties = np.sum(np.bincount(where.ravel(), shares) ** 2) - np.sum(shares**2)  # a row and itself are no two
    return PSEUDO_ROWS * float(np.clip(2 * ties, 0.0, 1.0)), float(np.sum(shares * (values - shares @ values) ** 2))


class Bootstrap(NamedTuple):
    """Resampled values of weights and functionals, classes aligned, with percentile intervals.

    Attributes
    ----------
    weights : array of shape (n_resamples, k)
    values : array of shape (n_resamples, k)
        Of the functional; empty without one.

    Examples
    --------
    >>> from latentviews import MultiViewMixture, Sieve
    >>> from latentviews.datasets import make_multiview
    >>> X = make_multiview(300, 2, random_state=0).X
    >>> model = MultiViewMixture(2, polish=Sieve(factors=(2.0,), n_init=0), random_state=0).fit(X)
    >>> lower, upper = model.bootstrap(X, n_resamples=10, random_state=0).interval(0.9)
    >>> bool((lower < model.weights_).all() and (model.weights_ < upper).all())
    True
    """

    def __repr__(self) -> str:
        return brief(self)

    weights: np.ndarray
    values: np.ndarray

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends for the class weights.

        Parameters
        ----------
        level : float, default=0.95
            The share of the resamples between the ends.

        Returns
        -------
        lower, upper : arrays of shape (k,)
        """
        return _interval(self.weights, level)

    def value_interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends for the functional in every class.

        Parameters
        ----------
        level : float, default=0.95
            The share of the resamples between the ends.

        Returns
        -------
        lower, upper : arrays of shape (k,)
        """
        if not self.values.size:
            raise ValueError("No functional was resampled; give `f` to bootstrap.")
        return _interval(self.values, level)


def check_level(level: Any) -> float:
    """A level of intervals, strictly between zero and one."""
    if not isinstance(level, int | float | np.number) or not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1; got {level!r}.")
    return float(level)


def _interval(draws: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    level = check_level(level)
    # "weibull" leaves the stated share outside on average; the default quantiles are too close for few draws
    lower, upper = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0, method="weibull")
    return lower, upper


def resample(
    classes: Classes,
    table: np.ndarray,
    f: Callable[[np.ndarray], Any] | None,
    view: int,
    n_resamples: int,
    rng: np.random.Generator,
    row_weights: np.ndarray | None = None,
) -> Bootstrap:
    """Refits to resampled rows, each started at the fit, so that classes keep their names."""
    values, has_view = _values(f, table[:, classes.columns[view]])
    weights, functionals = [], []
    for shares in classes.resampled(table, _draws(len(table), n_resamples, rng, row_weights)):
        weights.append(shares.sum(axis=0) / shares.sum())
        functionals.append(values @ shares / np.maximum(has_view @ shares, TINY))
    return Bootstrap(np.array(weights), np.array(functionals) if f is not None else np.empty((n_resamples, 0)))


def _draws(
    n_rows: int, n_resamples: int, rng: np.random.Generator, row_weights: np.ndarray | None
) -> Iterator[np.ndarray]:
    """How often every row counts in a resample, (n,)."""
    for _ in range(n_resamples):
        counts = rng.multinomial(n_rows, np.full(n_rows, 1 / n_rows)).astype(float)
        yield counts if row_weights is None else counts * row_weights


def _values(f: Callable[[np.ndarray], Any] | None, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``f`` on the rows that have a view and zero on others, and which have it, as numbers."""
    values, present = np.zeros(len(x)), ~np.isnan(x).any(axis=1)
    if f is not None:
        values[present] = evaluate(f, x[present])
    return values, present.astype(float)


def matching_order(components: list[Components], reference: list[Components]) -> np.ndarray:
    """The order in which the classes of ``components`` follow those of ``reference``, by distance over all views."""
    cost = sum(there.mmd(here) / (there.mmd().max() + TINY) for here, there in zip(components, reference, strict=True))
    return linear_sum_assignment(np.asarray(cost))[1]
