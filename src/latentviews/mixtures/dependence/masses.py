r"""Point masses of the columns that a copula joins.

A component is at a point mass of a column with a probability of its own, whatever its other columns are; a Gaussian
copula joins those columns of a row that are at none:

.. math:: f_j(x) = \prod_{t: x_t = a} m_{jta} \prod_{t \in S} \bigl(1 - \textstyle\sum_a m_{jta}\bigr) f_{jt}(x_t) \;
          c_{R_j[S, S]}(z_S), \qquad S = \{t: x_t \text{ is no point mass}\}

is a density with respect to Lebesgue measure plus counting measure at the point masses. A point mass is to the copula
what a missing value is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from latentviews._validation import is_auto
from latentviews.core.components import BACKGROUND
from latentviews.core.features.point_masses import find_point_masses

JOINED = 8  # columns with point masses that copulas join at most, so that rows have at most 2⁸ sets of columns off them


@dataclass(frozen=True, eq=False)
class ColumnMasses:
    """The point masses of d columns, at most A in any, and how common each is."""

    values: np.ndarray  # (d, A), NaN where a column has fewer
    shares: np.ndarray  # (d, A), of all rows that have the column

    @classmethod
    def of(cls, table: np.ndarray, columns: Sequence[int], asked: Any) -> "ColumnMasses | None":
        """Those of some columns of a table: found where "auto" is asked, else the values asked for; None without."""
        seen = [x[~np.isnan(x)] for x in table[:, list(columns)].T]
        if asked is None:
            return None
        found = [find_point_masses(x) if is_auto(asked) else np.intersect1d(asked, x) for x in seen]
        found = [
            values if len(values) < len(np.unique(x)) else values[:0] for values, x in zip(found, seen, strict=True)
        ]
        most = max(map(len, found))
        values = np.array([np.append(one, np.full(most - len(one), np.nan)) for one in found])
        shares = np.array([[np.mean(x == value) for value in row] for x, row in zip(seen, values, strict=True)])
        return cls(values, shares) if most else None

    @property
    def most(self) -> int:
        """The most that a column has, A."""
        return self.values.shape[1]

    @property
    def has(self) -> np.ndarray:
        """Whether a column has any, (d,)."""
        return ~np.isnan(self.values).all(axis=1)

    @property
    def joined(self) -> np.ndarray:
        """Whether a copula joins a column to others, (d,): of those with point masses the eight least often there."""
        often = np.where(self.has, self.shares.sum(axis=1), -1.0)
        return ~self.has | (np.argsort(np.argsort(often, kind="stable")) < np.sum(~self.has) + JOINED)

    @property
    def of_all(self) -> "ComponentMasses":
        """One component, of all rows."""
        return ComponentMasses(self, self.shares[:, :, None])

    def some(self, where: Sequence[int]) -> "ColumnMasses":
        """Those of some columns, given by their places."""
        return ColumnMasses(self.values[where], self.shares[where])

    def states(self, x: np.ndarray) -> np.ndarray:
        """The point mass that values (d, n) are at, A where they are at none, and A + 1 where they are missing."""
        states = np.full(x.shape, self.most)
        for a, values in enumerate(self.values.T):
            states[x == values[:, None]] = a
        states[np.isnan(x)] = self.most + 1
        return states

    def log_shares(self, states: np.ndarray) -> np.ndarray:
        """The log-probability that rows of all are in their states (d, n), the columns apart, (n,)."""
        return self.of_all.log_chances(states)[0]


@dataclass(frozen=True, eq=False)
class ComponentMasses:
    """The chances that J components are at the point masses of their columns."""

    columns: ColumnMasses
    chances: np.ndarray  # (d, A, J)

    @property
    def elsewhere(self) -> np.ndarray:
        """The chances that they are at none, (d, J)."""
        return 1 - self.chances.sum(axis=1)

    @property
    def means(self) -> np.ndarray:
        """Σ_a a m_a, (d, J)."""
        return np.einsum("ta,taj->tj", np.nan_to_num(self.columns.values), self.chances)

    def some(self, where: Sequence[int]) -> "ComponentMasses":
        """Those of some columns, given by their places."""
        return ComponentMasses(self.columns.some(where), self.chances[where])

    def take(self, order: np.ndarray) -> "ComponentMasses":
        """The components in another order, or some of them."""
        return ComponentMasses(self.columns, self.chances[:, :, order])

    def log_chances(self, states: np.ndarray) -> np.ndarray:
        """Σ_t of the log-chances of the states (d, n) of rows, (J, n); nothing is said of a missing value."""
        chances = np.maximum(np.concatenate([self.chances, self.elsewhere[:, None]], axis=1), BACKGROUND)
        tables = np.concatenate([np.log(chances), np.zeros_like(chances[:, :1])], axis=1)
        places = np.flatnonzero(self.columns.has)
        found = np.zeros((states.shape[1], chances.shape[2]))
        return sum((tables[t][states[t]] for t in places), start=found).T

    def put_into(self, component: int, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Rows (n, d) of a component at no point mass, moved there as often as its rows are."""
        drawn = rng.random(rows.shape)[:, :, None] < np.cumsum(self.chances[:, :, component], axis=1)
        values = self.columns.values[np.arange(rows.shape[1]), drawn.argmax(axis=2)]
        return np.where(drawn.any(axis=2), values, rows)
