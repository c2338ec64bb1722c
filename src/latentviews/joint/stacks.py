"""Honest joint densities: mixtures of several kinds, fitted from common starts and stacked by held-out likelihood."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp
from sklearn.covariance import ledoit_wolf_shrinkage

from latentviews._numbers import TINY, posteriors_of
from latentviews.core.kernels.base import Kernel
from latentviews.core.kernels.borders import Bordered
from latentviews.core.kernels.defaults import kernel_on
from latentviews.core.kernels.space import Space
from latentviews.core.kernels.spaces import Circle, Discrete, Real, entry_for
from latentviews.densities.stacking import stacking_shares
from latentviews.joint.copulas import JointMixture, Shrinkage, fit_em, start_at, step_over
from latentviews.joint.margins import NARROWEST, Margins, Normals, SeparateTables, Tables, spanning
from latentviews.joint.shares import Shares

RIDGE = 1e-6  # on the variances of normal scores, and on those of a table before it is whitened
SHORT = 8  # EM steps to compare starts by
NEGLIGIBLE = 0.01  # kinds with a smaller share of the stack are left out
PARSIMONY = 0.003  # log-likelihood per row that fewer kinds may cost where each costs passes over all rows
FULL_STEPS = 2  # EM steps over all rows after the pilot's have converged


class MixtureKind(NamedTuple):
    """A kind of mixture: its number of components, its margins and how its columns are joined."""

    rank: int
    normal: bool  # normal margins in place of tables
    shrinkage: float | None  # of correlations, in units of (columns + 1) / rows; None for products
    narrowest: float = NARROWEST  # a normal component's standard deviation in those of the table, at least
    whitened: bool = False  # whether normal components are shrunk towards the shape of the table, not its axes

    @property
    def from_whitened(self) -> bool:
        """Whether it starts from clusters of the whitened rows: Gaussian mixtures that are shrunk at all."""
        return self.normal and bool(self.shrinkage)

    def margins(self, data: "Rows") -> list[Margins]:
        """Margins for the columns of a table, by the spaces of their kernels."""
        spaces = {j: kernel.space for j, kernel in data.kernels.items() if kernel.space is not None}
        groups: dict[Callable[..., list[Margins]], list[int]] = {}
        for j, space in spaces.items():
            groups.setdefault(entry_for(space, MARGINS)[self.normal], []).append(j)
        found = [
            group for make, columns in groups.items() for group in make(self, data, {j: spaces[j] for j in columns})
        ]
        return sorted(found, key=lambda group: (not group.coupled, group.columns[0]))

    def joined(self, data: "Rows") -> Shrinkage | None:
        """How the columns of a table whose scores can be correlated are joined; None where it has not two."""
        columns = data.affine if self.normal else data.numbers
        if self.shrinkage is None or len(columns) < 2:
            return None
        if not self.normal:
            return Shrinkage(self.shrinkage, RIDGE)
        x = data.seen(columns)[:, columns]
        axes = whitening_axes(x) if self.whitened else np.diag(1 / np.nanstd(x, axis=0))
        return Shrinkage(self.shrinkage, self.narrowest**2, axes)

    def fit(self, data: "Rows", start: np.ndarray, max_iter: int, tol: float) -> JointMixture:
        """EM from a guess of the posteriors."""
        shrinkage = self.joined(data)
        guess = start_at(self.margins(data), data.table, start, shrinkage, data.weights)
        return fit_em(guess, data.table, shrinkage, data.weights, max_iter, tol).mixture


def _tables(kind: MixtureKind, data: "Rows", spaces: Mapping[int, Space]) -> list[Margins]:
    """Tables of numbers, together: their normal scores may be correlated."""
    return [Tables.around(data.seen(list(spaces)), list(spaces), 1.0, list(spaces.values()))]


def _separate_tables(kind: MixtureKind, data: "Rows", spaces: Mapping[int, Space]) -> list[Margins]:
    """Tables of numbers beside normal laws of others."""
    return [SeparateTables.around(data.seen(list(spaces)), list(spaces), 1.0, list(spaces.values()))]


def _normals(kind: MixtureKind, data: "Rows", spaces: Mapping[int, Space]) -> list[Margins]:
    """Normal laws of numbers, together."""
    return [Normals.around(data.seen(list(spaces)), list(spaces), kind.narrowest)]


def _codes(kind: MixtureKind, data: "Rows", spaces: Mapping[int, Space]) -> list[Margins]:
    """Shares of codes, one column at a time."""
    return [Shares.of_codes(data.table, j) for j in spaces]


def _angles(kind: MixtureKind, data: "Rows", spaces: Mapping[int, Space]) -> list[Margins]:
    """Bins of the circle, one column at a time."""
    return [Shares.of_angles(data.table, j, smoother) for j, smoother in _smoothers(data, spaces)]


def _smoothers(data: "Rows", spaces: Mapping[int, Space]) -> Iterator[tuple[int, Kernel]]:
    """Every column, and a kernel as narrow as its values allow."""
    for j, space in spaces.items():
        x = data.table[~np.isnan(data.table[:, j])][:, [j]]
        yield j, kernel_on(space, space.rule).adapt(x)


# how the columns of a space enter a mixture: of tables, and of normal laws
MARGINS: Mapping[type[Space], tuple[Callable[..., list[Margins]], Callable[..., list[Margins]]]] = {
    Real: (_tables, _normals),
    Bordered: (_tables, _separate_tables),
    Circle: (_angles, _angles),
    Discrete: (_codes, _codes),
}


class Rows(NamedTuple):
    """Rows in memory to fit to."""

    table: np.ndarray  # NaN where a value is missing
    kernels: Mapping[int, Kernel]  # of every column that is used
    weights: np.ndarray | None = None
    whole: np.ndarray | None = None  # the table that these are some rows of

    @property
    def numbers(self) -> list[int]:
        """The columns of numbers."""
        return number_columns(self.kernels)

    @property
    def affine(self) -> list[int]:
        """The columns of numbers without a border: those that a Gaussian of any shape may join."""
        return [j for j, kernel in self.kernels.items() if kernel.space is not None and kernel.space.affine]

    def seen(self, columns: list[int]) -> np.ndarray:
        """The table, and where these columns have one value in it the ends of what the whole spans."""
        return self.table if self.whole is None else spanning(self.table, self.whole, columns)

    @property
    def whitened(self) -> np.ndarray:
        """The table with its columns of numbers without a border whitened, means in place of missing ones."""
        table, x = self.table.copy(), self.table[:, self.affine]
        table[:, self.affine] = np.where(np.isnan(x), np.nanmean(x, axis=0), x) @ whitening_axes(x).T
        return table

    def some(self, rows: np.ndarray) -> "Rows":
        """Some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        return Rows(self.table[rows], self.kernels, weights, self.table if self.whole is None else self.whole)


def number_columns(kernels: Mapping[int, Kernel]) -> list[int]:
    """The columns of numbers, as against codes and angles."""
    return [j for j, kernel in kernels.items() if kernel.space is not None and kernel.space.ordered]


def whitening_axes(x: np.ndarray) -> np.ndarray:
    """A map (c, c) after which columns have variance one and are uncorrelated, missing values counted as means.

    Correlations are shrunk first, by Ledoit and Wolf's rule.
    """
    spread = np.nanstd(x, axis=0)
    z = np.nan_to_num((x - np.nanmean(x, axis=0)) / spread)
    share = ledoit_wolf_shrinkage(z, assume_centered=True)
    values, vectors = np.linalg.eigh((1 - share) * z.T @ z / len(z) + share * np.eye(len(spread)))
    return (vectors / np.sqrt(np.maximum(values, RIDGE))) @ vectors.T / spread


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
        return StackedMixture(posteriors_of(logs), tuple(part.conditional(given) for part in self.parts))

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
    starts: Mapping[MixtureKind, np.ndarray],
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
            part = kind.fit(rows.some(inside), starts[kind][inside], max_iter, tol)
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
    starts: Mapping[MixtureKind, np.ndarray],
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
        part = kind.fit(rows, starts[kind], max_iter, tol)
        for _ in range(0 if everything is None else FULL_STEPS):
            part = step_over(part, everything, kind.joined(rows), weights)
        parts.append(part)
    return StackedMixture(shares[kept] / shares[kept].sum(), tuple(parts))
