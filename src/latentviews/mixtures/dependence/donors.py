"""Rows at point masses seen as rows like them that are at none, so that zeros of a class are no class of their own.

A point mass with other values beside it is the end of a scale, such as values below zero set to zero: it is a low value
among others, and stays where it is while classes are found. One apart from all others, such as no dose, has a place
that says nothing. There a row takes the value of a donor: one of the rows off the point mass that are nearest in the
other columns, if these are about as near as the nearest rows that are at it, too. Where donors are farther, no class
has both kinds of rows, and the row stays, too.
"""

import numpy as np
from sklearn.neighbors import NearestNeighbors

from latentviews._clusters import in_one_thread
from latentviews.mixtures.dependence.masses import ColumnMasses

BESIDE = 0.2  # standard deviations of the other values within which they are beside a point mass
COMMON = 0.01  # of the other values beside it where it is the end of a scale
NEAREST = 5  # rows on either side whose distances are compared, and that are donors
NEAR = 2.0  # times as far as rows of the same kind, at most, are donors
LOOKED_AT = 2000  # rows of either kind
TREE_COLUMNS = 6  # up to which trees find neighbours quicker than all distances do
FEWEST = 20  # rows of either kind from which on they are compared


def with_donors(table: np.ndarray, masses: ColumnMasses, rng: np.random.Generator) -> np.ndarray:
    """Columns (n, d) whose values at point masses are those of donors where there are some; rarer masses first."""
    found = table.copy()
    for t in np.argsort(masses.shares.sum(axis=1), kind="stable"):
        if masses.has[t]:
            found[:, t] = _with_donors(found, int(t), masses.values[t], rng)
    return found


def _with_donors(table: np.ndarray, column: int, values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One column whose rows at point masses take values of rows near in the others."""
    x = table[:, column].copy()
    others = _scaled(np.delete(table, column, axis=1))
    donors = np.flatnonzero(~np.isin(x, values) & ~np.isnan(x))
    for value in values[~np.isnan(values)]:
        here = np.flatnonzero(x == value)
        if min(len(here), len(donors)) < FEWEST or _ends_a_scale(value, x[donors]):
            continue
        no_more = min(len(donors), LOOKED_AT)  # than donors are: of more rows the nearest are nearer
        alike = _nearest(others, rng.permutation(here)[:no_more], here)[0]
        far, near = _nearest(others, rng.permutation(donors)[:LOOKED_AT], here)
        taken = far <= NEAR * alike
        chosen = near[np.arange(len(here)), rng.integers(NEAREST, size=len(here))]
        x[here[taken]] = x[chosen[taken]]
    return x


def _ends_a_scale(value: float, others: np.ndarray) -> bool:
    """Whether other values are beside a point mass."""
    return bool(np.mean(np.abs(others - value) <= BESIDE * others.std()) > COMMON)


def _nearest(rows: np.ndarray, among: np.ndarray, of: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How far the fifth nearest of some rows is from others, and which the nearest are; a row is none of its own."""
    with in_one_thread():
        way = "brute" if rows.shape[1] > TREE_COLUMNS else "auto"
        far, which = NearestNeighbors(n_neighbors=NEAREST + 1, algorithm=way).fit(rows[among]).kneighbors(rows[of])
    own = among[which[:, 0]] == of
    places = np.arange(NEAREST) + own[:, None]
    return far[np.arange(len(of)), NEAREST - 1 + own], among[np.take_along_axis(which, places, axis=1)]


def _scaled(table: np.ndarray) -> np.ndarray:
    """Columns over their standard deviations, missing values in the middle."""
    spread = np.nanstd(table, axis=0)
    return np.nan_to_num((table - np.nanmean(table, axis=0)) / np.where(spread > 0, spread, 1.0))
