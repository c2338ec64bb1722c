"""Honest joint densities: mixtures of several kinds, fitted from common starts and stacked by held-out likelihood."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from latentviews._numbers import TINY
from latentviews.core.kernels.base import Kernel
from latentviews.core.kernels.circle import VonMises
from latentviews.densities.stacking import stacking_shares
from latentviews.joint.copulas import JointMixture, fit_em, start_at, step_over
from latentviews.joint.margins import Margins, Normals, Shares, Tables, spanning

SHORT = 8  # EM steps to compare starts by
NEGLIGIBLE = 0.01  # kinds with a smaller share of the stack are left out
PARSIMONY = 0.003  # log-likelihood a row that fewer kinds may cost where each costs passes over all rows
FULL_STEPS = 2  # EM steps over all rows after the pilot's have converged


class MixtureKind(NamedTuple):
    """A kind of mixture: its number of components, its margins and how its columns are joined."""

    rank: int
    normal: bool  # normal margins in place of tables
    shrinkage: float | None  # of correlations, in units of (columns + 1) / rows; None for products

    def margins(self, data: "Rows") -> list[Margins]:
        """Margins for the columns of a table, by the domains of their kernels."""
        table, kernels = data.table, data.kernels
        real = [j for j, kernel in kernels.items() if kernel.domain == "real"]
        groups: list[Margins] = []
        if real:
            seen = table if data.whole is None else spanning(table, data.whole, real)
            groups.append(Normals.around(seen, real) if self.normal else Tables.around(seen, real, 1.0))
        for j, kernel in kernels.items():
            if kernel.domain == "discrete":
                groups.append(Shares.of_codes(table, j))
            elif kernel.domain == "circle":
                x = table[~np.isnan(table[:, j]), j]
                groups.append(Shares.of_angles(table, j, VonMises("silverman").adapt(x[:, None])))
        return groups

    def fit(self, data: "Rows", start: np.ndarray, max_iter: int, tol: float) -> JointMixture:
        """EM from a guess of the posteriors."""
        guess = start_at(self.margins(data), data.table, start, self.shrinkage, data.weights)
        return fit_em(guess, data.table, self.shrinkage, data.weights, max_iter, tol).mixture


class Rows(NamedTuple):
    """Rows in memory to fit to."""

    table: np.ndarray  # NaN where a value is missing
    kernels: Mapping[int, Kernel]  # of every column that is used
    weights: np.ndarray | None = None
    whole: np.ndarray | None = None  # the table that these are some rows of

    def some(self, rows: np.ndarray) -> "Rows":
        """Some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        return Rows(self.table[rows], self.kernels, weights, self.table if self.whole is None else self.whole)


@dataclass(frozen=True, eq=False)
class StackedMixture:
    """A convex combination of mixtures: a density."""

    shares: np.ndarray  # (e,), summing to one
    parts: tuple[JointMixture, ...]

    mass = 1.0
    negative_share = 0.0

    @property
    def columns(self) -> list[int]:
        """The columns that the density is of."""
        return self.parts[0].columns

    def log_density(self, table: np.ndarray) -> np.ndarray:
        """The log-density of every row over the values it has."""
        return logsumexp(np.stack([part.log_density(table) for part in self.parts], axis=1), axis=1, b=self.shares)

    def marginal(self, columns: Sequence[int]) -> "StackedMixture":
        """The density of some columns."""
        return replace(self, parts=tuple(part.marginal(columns) for part in self.parts))

    def conditional(self, given: Mapping[int, float]) -> "StackedMixture":
        """The density of the other columns given values of some; parts count by how they predicted those values."""
        row = np.full((1, 1 + max(*self.columns, *given)), np.nan)
        row[0, list(given)] = list(given.values())
        logs = np.log(np.maximum(self.shares, TINY))
        logs = logs + np.array([part.marginal(list(given)).log_density(row)[0] for part in self.parts])
        return StackedMixture(np.exp(logs - logsumexp(logs)), tuple(part.conditional(given) for part in self.parts))

    def sample(self, size: int, rng: np.random.Generator, n_columns: int) -> np.ndarray:
        """Rows drawn from the density, NaN in other columns."""
        counts = rng.multinomial(size, self.shares / self.shares.sum())
        pairs = zip(self.parts, counts, strict=True)
        rows = np.concatenate([part.sample(int(count), rng, n_columns) for part, count in pairs])
        return rows[rng.permutation(size)]


def best_start(rows: Rows, guesses: Sequence[np.ndarray]) -> np.ndarray:
    """The guess of the posteriors from which a few steps of EM on products lead to the highest likelihood."""
    if len(guesses) == 1:
        return guesses[0]
    product = MixtureKind(guesses[0].shape[1], False, None)
    margins = product.margins(rows)
    fits = [
        fit_em(start_at(margins, rows.table, guess, None, rows.weights), rows.table, None, rows.weights, SHORT)
        for guess in guesses
    ]
    return guesses[int(np.argmax([fit.objective for fit in fits]))]


def held_out(
    rows: Rows,
    kinds: Sequence[MixtureKind],
    starts: Mapping[int, np.ndarray],
    fold: np.ndarray,
    max_iter: int,
    tol: float,
    report: Callable[[int, float], Any] = lambda step, objective: None,
) -> np.ndarray:
    """Log-densities of all rows under every kind fitted without their fold, (n, e)."""
    found = np.empty((len(rows.table), len(kinds)))
    for e, kind in enumerate(kinds):
        for f in range(fold.max() + 1):
            inside = np.flatnonzero(fold != f)
            part = kind.fit(rows.some(inside), starts[kind.rank][inside], max_iter, tol)
            found[fold == f, e] = part.log_density(rows.table[fold == f])
        report(e + 1, float(found[:, e].mean()))
    return found


def pruned(log_densities: np.ndarray, shares: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Shares of fewer kinds, the smallest left out one by one as long as all that costs next to no likelihood."""

    def score(candidate: np.ndarray) -> float:
        logs = logsumexp(log_densities, axis=1, b=np.maximum(candidate, TINY))
        return float(np.average(logs, weights=weights))

    whole = score(shares)
    while np.count_nonzero(shares) > 1:
        left = np.flatnonzero(shares)
        left = left[left != left[shares[left].argmin()]]
        fewer = np.zeros_like(shares)
        fewer[left] = stacking_shares(log_densities[:, left], weights)
        if score(fewer) < whole - PARSIMONY:
            break
        shares = fewer
    return shares


def fit_stack(
    rows: Rows,
    kinds: Sequence[MixtureKind],
    starts: Mapping[int, np.ndarray],
    shares: np.ndarray,
    max_iter: int,
    tol: float,
    everything: Any = None,
    weights: np.ndarray | None = None,
) -> StackedMixture:
    """The kinds with a share worth having, fitted to all rows; ``everything`` are rows beyond those in memory."""
    kept = np.flatnonzero(shares >= min(NEGLIGIBLE, shares.max()))
    parts = []
    for kind in (kinds[int(e)] for e in kept):
        part = kind.fit(rows, starts[kind.rank], max_iter, tol)
        for _ in range(0 if everything is None else FULL_STEPS):
            part = step_over(part, everything, kind.shrinkage, weights)
        parts.append(part)
    return StackedMixture(shares[kept] / shares[kept].sum(), tuple(parts))
