"""Columns of different views that are the same measurement twice."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from latentviews._numbers import TINY

SAME = 0.9999  # the absolute correlation of copies, up to scale and rounding
NEAR = 0.5  # the same with missing values in the place of means, which rows that have both are asked about
FEWEST = 20  # of which there are to be some
MOST_COLUMNS = 300  # more are not compared
TOLD = 5  # pairs are told


def copied_columns(rows: np.ndarray, columns: Sequence[Sequence[int]], ordered: Sequence[int]) -> list[tuple[int, int]]:
    """Pairs of columns of numbers in different views that are linear functions of each other."""
    numbers = set(ordered)
    view = {j: t for t, own in enumerate(columns) for j in own if j in numbers}
    kept = list(view) if len(view) <= MOST_COLUMNS else []
    units = np.column_stack([_unit(rows[:, j]) for j in kept]) if kept else np.empty((0, 0))
    near = np.abs(units.T @ units) > NEAR
    pairs = [(kept[s], kept[t]) for s, t in combinations(range(len(kept)), 2) if near[s, t]]
    return [(i, j) for i, j in pairs if view[i] != view[j] and _same(rows[:, [i, j]])]


def _same(two: np.ndarray) -> bool:
    """Whether two columns are linear functions of each other in the rows that have both."""
    both = two[~np.isnan(two).any(axis=1)]
    return len(both) >= FEWEST and abs(float(_unit(both[:, 0]) @ _unit(both[:, 1]))) > SAME


def _unit(x: np.ndarray) -> np.ndarray:
    """A column less its mean, as a vector of length one; zero where a value is missing, or where none differs."""
    here, unit = ~np.isnan(x), np.zeros(len(x))
    if here.any() and np.ptp(x[here]) > 0:
        own = (x[here] - x[here].min()) / np.ptp(x[here])  # so that squares are numbers
        unit[here] = (own - own.mean()) / max(float(np.linalg.norm(own - own.mean())), TINY)
    return unit


def copies_sentence(copies: Sequence[tuple[Any, Any]]) -> str:
    """What is said of them."""
    told = "; ".join(f"{first} and {second}" for first, second in copies[:TOLD])
    more = f"; and {len(copies) - TOLD} more" if len(copies) > TOLD else ""
    return (
        f"Copies: {told}{more} say the same thing twice, up to scale, which looks like classes. Leave one of each out, "
        "or put both into one view, and fit again."
    )
