"""The signed low-rank estimate as a density: floored, normalised, and honest about both.

The estimate p̂ of Song & Dai (2013) is no density: it may be negative, and its mass is not one. What is scored here is
max(p̂, ε·KDE) / Z, with the product kernel density estimate of the same kernels beneath it and Z estimated by
importance sampling; the mass and the share of negatives are kept beside it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from latentviews._arrays import to_numpy
from latentviews._numbers import TINY
from latentviews.core import streams
from latentviews.core.features.indicators import OneHotFeatures
from latentviews.core.features.landmarks import LandmarkFeatures
from latentviews.core.kernels.base import Kernel
from latentviews.core.kernels.real import Gaussian
from latentviews.core.kernels.spaces import is_discrete
from latentviews.joint.sketching import sketched_embedding
from latentviews.joint.tensor_trees import TreeEmbedding, exact_embedding
from latentviews.joint.trees import Tree

FLOOR_ROWS = 2000  # rows of the kernel density estimate beneath
DRAWS = 2000  # for the normaliser
FAR = 1e100  # bandwidths beyond which values count as equally far: their squares are finite
LOG_RANGE = 600.0  # products of kernels beyond exp(± 700) are no numbers
LARGEST = 300.0  # the log of a ratio of densities: sums and means of larger ones are no numbers
SPREAD_ROWS = 256  # rows behind the broad half of its proposal


@dataclass(frozen=True, eq=False)
class ProductKDE:
    """The kernel density estimate with a product of kernels, one per column; missing values are integrated out."""

    rows: np.ndarray  # (n, d), complete
    kernels: Mapping[int, Kernel]  # by place in the rows
    fixed: Mapping[int, float]  # columns with a known value: rows count by its kernel

    @property
    def free(self) -> list[int]:
        """The columns that are variables."""
        return [j for j in self.kernels if j not in self.fixed]

    @cached_property
    def weights(self) -> np.ndarray:
        """How much every row counts, summing to one."""
        logs = np.zeros(len(self.rows))
        for j, value in self.fixed.items():
            logs += np.log(np.maximum(self.kernels[j].gram(np.array([[value]]), self.rows[:, [j]])[0], TINY))
        weights = np.exp(logs - logs.max())
        return weights / weights.sum()

    def log_density(self, table: np.ndarray) -> np.ndarray:
        """The log-density of every row, over the values it has among the free columns."""
        logs = np.zeros((len(table), len(self.rows)))
        complete = [j for j in self.free if not np.isnan(table[:, j]).any()]
        plain = [j for j in complete if _on_the_line(self.kernels[j])]
        if plain:
            widths = np.array([float(self.kernels[j].get_params()["bandwidth"]) for j in plain])
            middle = self.rows[:, plain].mean(axis=0)  # squares are subtracted from each other
            x = np.clip((table[:, plain] - middle) / widths, -FAR, FAR)
            y = (self.rows[:, plain] - middle) / widths
            logs += x @ y.T - 0.5 * np.sum(x**2, axis=1)[:, None] - 0.5 * np.sum(y**2, axis=1)[None, :]
            logs -= np.log(widths).sum() + len(plain) / 2 * np.log(2 * np.pi)
        for j in self.free:
            if j not in plain:
                here = ~np.isnan(table[:, j])
                gram = self.kernels[j].gram(np.where(here, table[:, j], 0.0)[:, None], self.rows[:, [j]])
                logs += np.where(here[:, None], np.log(np.maximum(gram, TINY)), 0.0)
        largest = logs.max(axis=1)
        return largest + np.log(np.maximum(np.exp(logs - largest[:, None]) @ self.weights, TINY))

    def independent(self, rng: np.random.Generator) -> "IndependentKDE":
        """The product of the columns' own estimates, from some of the rows."""
        rows = self.rows[rng.choice(len(self.rows), size=min(SPREAD_ROWS, len(self.rows)), p=self.weights)]
        return IndependentKDE([ProductKDE(rows, {j: self.kernels[j]}, {}) for j in self.free], self)

    def sample(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """Rows drawn from the estimate; fixed columns have their values."""
        rows = self.rows[rng.choice(len(self.rows), size=size, p=self.weights)].copy()
        for j, kernel in self.kernels.items():
            if j in self.fixed:
                rows[:, j] = self.fixed[j]
            else:
                rows[:, [j]] = kernel.draw(rows[:, [j]], rng)
        return rows


def _on_the_line(kernel: Kernel) -> bool:
    """Whether a kernel is a plain Gaussian, whose products are one Gaussian."""
    return type(kernel) is Gaussian and not kernel.space.bordered


@dataclass(frozen=True, eq=False)
class IndependentKDE:
    """Columns that are independent of each other."""

    columns: list[ProductKDE]
    joint: ProductKDE  # whose other columns are kept

    def log_density(self, table: np.ndarray) -> np.ndarray:
        """The log-density of every row."""
        return np.sum([column.log_density(table) for column in self.columns], axis=0)

    def sample(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """Rows with every column drawn on its own."""
        rows = self.joint.sample(size, rng)
        for column in self.columns:
            rows[:, column.free] = column.sample(size, rng)[:, column.free]
        return rows


@dataclass(frozen=True, eq=False)
class SignedDensity:
    """The signed estimate, floored and normalised."""

    embedding: TreeEmbedding
    kde: ProductKDE
    places: tuple[int, ...]  # the column of the table that every variable of the embedding is
    floor: float
    seed: int

    @property
    def columns(self) -> list[int]:
        """The columns that the density is of."""
        return sorted(self.kde.free)

    @property
    def mass(self) -> float:
        """The integral of the signed estimate, in closed form."""
        return self.embedding.mass

    def _raw(self, table: np.ndarray) -> np.ndarray:
        return self.embedding.at(table[:, [self.places[j] for j in self.embedding.columns]])

    @cached_property
    def _draws(self) -> tuple[float, float]:
        """The share of negatives among rows from the kernel density estimate, and ∫ (ε·KDE - p̂)⁺.

        Half of the rows come from independent columns, since p̂ may be negative where no row is near.
        """
        rng = np.random.default_rng(self.seed)
        apart = self.kde.independent(rng)
        rows = np.concatenate([self.kde.sample(DRAWS // 2, rng), apart.sample(DRAWS // 2, rng)])
        beneath, raw = self.kde.log_density(rows), self._raw(rows)
        proposal = np.logaddexp(beneath, apart.log_density(rows)) - np.log(2)
        lacking = np.maximum(self.floor * np.exp(beneath - proposal) - _relative(raw, proposal), 0.0)
        return float(np.mean(raw[: DRAWS // 2] < 0)), float(lacking.mean())

    @property
    def log_normaliser(self) -> float:
        """The log of ∫ max(p̂, ε·KDE) = ∫ p̂ + ∫ (ε·KDE - p̂)⁺, the first known exactly, the second over draws."""
        return float(np.log(max(self.mass + self._draws[1], TINY)))

    @property
    def negative_share(self) -> float:
        """The share of fresh rows, drawn from the kernel density estimate, at which the estimate is negative."""
        return self._draws[0]

    def log_density(self, table: np.ndarray) -> np.ndarray:
        """Log max(p̂, ε·KDE) - log Z for every row, over the values it has."""
        logs = []
        for start in range(0, len(table), 2048):
            part = table[start : start + 2048]
            beneath = self.kde.log_density(part)
            ratio = _relative(self._raw(part), np.maximum(beneath, np.log(TINY)))
            logs.append(beneath + np.log(np.maximum(ratio, self.floor)))
        return np.concatenate(logs) - self.log_normaliser if logs else np.empty(0)

    def marginal(self, columns: Sequence[int]) -> "SignedDensity":
        """The marginal of the signed estimate, floored and normalised on its own."""
        keep = [j for j, place in enumerate(self.places) if place in set(columns)]
        rest = {place: kernel for place, kernel in self.kde.kernels.items() if place in {*columns, *self.kde.fixed}}
        return replace(self, embedding=self.embedding.marginal(keep), kde=replace(self.kde, kernels=rest))

    def conditional(self, given: Mapping[int, float]) -> "SignedDensity":
        """The signed estimate given some values, scaled to mass one, floored and normalised."""
        inside = {self.places.index(place): value for place, value in given.items()}
        kde = replace(self.kde, fixed={**self.kde.fixed, **given})
        return replace(self, embedding=self.embedding.conditional(inside), kde=kde)

    def sample(self, size: int, rng: np.random.Generator, n_columns: int) -> np.ndarray:
        """Rows drawn from the floored density by importance resampling, NaN in other columns."""
        apart = self.kde.independent(rng)
        pool = np.concatenate([self.kde.sample(6 * size + 500, rng), apart.sample(6 * size + 500, rng)])
        beneath = self.kde.log_density(pool)
        proposal = np.logaddexp(beneath, apart.log_density(pool))
        ratio = np.maximum(_relative(self._raw(pool), proposal), self.floor * np.exp(beneath - proposal))
        chosen = rng.choice(len(pool), size=size, p=ratio / ratio.sum())
        rows = np.full((size, n_columns), np.nan)
        rows[:, self.columns] = pool[chosen][:, self.columns]
        return rows


def _relative(values: np.ndarray, logs: np.ndarray) -> np.ndarray:
    """Values of a density over another with these logs: either may be too large or small for a number, not so both."""
    sizes = np.minimum(np.log(np.maximum(np.abs(values), TINY)) - logs, LARGEST)
    return np.where(values == 0, 0.0, np.sign(values) * np.exp(sizes))


def in_range(widths: np.ndarray) -> bool:
    """Whether products of kernels with these bandwidths, one per column, are within the range of numbers."""
    return bool(abs(np.log(np.maximum(np.sqrt(2 * np.pi) * widths, TINY)).sum()) < LOG_RANGE)


def column_features(kernel: Kernel, x: np.ndarray, n_landmarks: int) -> Any:
    """The map in which a column enters the embedding: a few landmarks, or indicators of codes."""
    if is_discrete(kernel):
        return OneHotFeatures().fit(x)
    return LandmarkFeatures(kernel, min(n_landmarks, len(x)), selection="cholesky").fit(x)


def signed_density(
    rows: np.ndarray,
    kernels: Mapping[int, Kernel],
    tree: Tree,
    rank: Any,
    rng: np.random.Generator,
    *,
    tol: float = 0.0,
    floor: float = 0.1,
    n_landmarks: int = 100,
    exact_rows: int = 1500,
    everything: Any = None,
    weights: np.ndarray | None = None,
) -> SignedDensity:
    """The estimate from complete rows, exactly where they are few, from passes over ``everything`` where not.

    ``kernels`` have numbers for bandwidths and are keyed by the columns of the table that are used.
    """
    places = list(kernels)
    features = [column_features(kernels[j], rows[:4000, [j]], n_landmarks) for j in places]
    if everything is None and len(rows) <= exact_rows:
        embedding = exact_embedding(rows[:, places], features, tree, rank, tol=tol, weights=weights)
    else:
        few = [column_features(kernels[j], rows[:4000, [j]], min(n_landmarks, 24)) for j in places]
        data = _Chosen(rows if everything is None else everything, weights, places)
        embedding = sketched_embedding(data, few, tree, rank, rng, tol=tol)
    beneath = rows[rng.permutation(len(rows))[:FLOOR_ROWS]] if len(rows) > FLOOR_ROWS else rows
    return SignedDensity(embedding, ProductKDE(beneath, kernels, {}), tuple(places), floor, int(rng.integers(2**31)))


class _Chosen:
    """Data with some of their columns, and of their rows those that have them all."""

    def __init__(self, data: Any, weights: np.ndarray | None, columns: list[int]):
        self.data = data
        self.weights = weights
        self.columns = columns

    def total(self, row_sum: streams.RowSum, size: int) -> streams.Total:
        """The sums of ``row_sum(batch, weights)`` over those rows, wherever they are."""

        def chosen_sum(batch: Any, weights: Any) -> tuple[Any, ...]:
            table = to_numpy(batch)[:, self.columns]
            whole = ~np.isnan(table).any(axis=1)
            counts = np.ones(int(whole.sum())) if weights is None else to_numpy(weights)[whole]
            return counts.sum(), *row_sum(table[whole], counts)

        weight, *sums = streams.total(self.data, chosen_sum, self.weights, size).sums
        return streams.Total(tuple(sums), float(weight))
