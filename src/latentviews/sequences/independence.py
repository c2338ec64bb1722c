"""Whether rows that follow each other are independent: every sensor by itself, and how sensors go together."""

from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from latentviews._arrays import to_numpy
from latentviews._numbers import far_unit
from latentviews.core.features.base import FeatureMap
from latentviews.core.selection import dependence_rank
from latentviews.core.views import Views
from latentviews.sequences.chains import first_rows
from latentviews.sequences.estimation import SequenceProblem

ROWS = 4000  # pairs of rows on which dependence in time is looked for
FEW = 1000  # of these, which are enough to show most dependence
LEVEL = 0.05
PERMUTATIONS = 39
PRODUCTS = 300  # of directions of two sensors, over all pairs of them


@dataclass(frozen=True, eq=False)
class PairProducts:
    """Products of the leading directions of every two sensors: how they go together, which none tells by itself."""

    features: tuple[FeatureMap, ...]  # of every sensor
    widths: tuple[int, ...]  # columns of every sensor, which stand side by side
    centers: tuple[np.ndarray, ...]
    directions: tuple[np.ndarray, ...]  # (D, r), of every sensor's features

    @classmethod
    def learn(cls, sensors: Views, table: np.ndarray) -> "PairProducts":
        """Directions of the sensors' features in the rows of a table, as many as keep the products few."""
        size = max(int(np.sqrt(PRODUCTS / comb(len(sensors.columns), 2))), 1)
        centers, directions = [], []
        for phi, columns in zip(sensors.features, sensors.columns, strict=True):
            vectors = to_numpy(phi.transform(table[:, columns]))
            centers.append(vectors.mean(axis=0))
            spreads, axes = np.linalg.eigh(np.atleast_2d(np.cov(vectors.T)))
            directions.append(axes[:, ::-1][:, :size] / far_unit(float(np.sqrt(np.maximum(spreads[-1], 0.0)))))
        return cls(sensors.features, tuple(map(len, sensors.columns)), tuple(centers), tuple(directions))

    def transform(self, x: np.ndarray) -> np.ndarray:
        """The products in every row, those of a pair of sensors side by side."""
        tables = np.split(x, np.cumsum(self.widths)[:-1], axis=1)
        parts = zip(self.features, tables, self.centers, self.directions, strict=True)
        along = [(to_numpy(phi.transform(table)) - center) @ axes for phi, table, center, axes in parts]
        products = [(a[:, :, None] * b[:, None, :]).reshape(len(x), -1) for a, b in combinations(along, 2)]
        return np.concatenate(products, axis=1)


def looks_independent(problem: SequenceProblem) -> bool:
    """Whether no sensor's next row depends on the one before, nor how two sensors go together, by permutations.

    One level holds for all tests together. Where no rows that follow each other are seen, nothing is said.
    """
    rows, inner = problem.rows, ~first_rows(problem.pilot_lengths)[1:]
    table = np.concatenate([rows.pilot[:-1][inner], rows.pilot[1:][inner]], axis=1)[:ROWS]
    views = _now_and_next(rows.views(), rows.pilot)
    if not _followed(table, views):
        return False
    few = table[:: max(len(table) // FEW, 1)]
    looks = [few, table] if len(few) < len(table) and len(_followed(few, views)) == len(views.columns) // 2 else [table]
    return all(_independent(look, views, LEVEL / len(looks), rows.rng) for look in looks)


def _independent(table: np.ndarray, views: Views, level: float, rng: np.random.Generator) -> bool:
    """The same of the rows of one look."""
    pairs = _followed(table, views)
    return dependence_rank(table, views, rng, level, PERMUTATIONS, among=pairs).n_components == 1


def _followed(table: np.ndarray, views: Views) -> list[tuple[int, int]]:
    """The sensors, now and next, of which more than two rows in a row are seen."""
    here = ~np.isnan(table)
    both = [(t, t + 1) for t in range(0, len(views.columns), 2)]
    return [(s, t) for s, t in both if here[:, views.columns[s] + views.columns[t]].all(axis=1).sum() > 2]


def _now_and_next(sensors: Views, pilot: np.ndarray) -> Views:
    """Every sensor, and the products of all, at a row and at the next: view 2s is followed by view 2s + 1."""
    features, columns = list(sensors.features), list(sensors.columns)
    used = [j for group in columns for j in group]
    whole = pilot[~np.isnan(pilot[:, used]).any(axis=1)]
    if len(columns) > 1 and len(whole) > 1:
        features.append(PairProducts.learn(sensors, whole))
        columns.append(used)
    late = [[pilot.shape[1] + j for j in group] for group in columns]
    both = tuple(group for pair in zip(columns, late, strict=True) for group in pair)
    return Views(both, tuple(phi for phi in features for _ in range(2)))
