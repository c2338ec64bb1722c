"""Whether the rows of a class look like several classes."""

import warnings
from collections.abc import Sequence

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from latentviews._clusters import in_one_thread, kmeans
from latentviews._numbers import quartile_spread
from latentviews._validation import UnsupportedError
from latentviews.core.selection import directions_rank
from latentviews.diagnosis.dependence import ClassViews, drawn_members

FEWEST_MEMBERS = 50  # of a class: fewer would find nothing
LOOKS = ((0.05, 19), (0.01, 99))  # level and permutations; a class that looks like one at first is not looked at again
DIRECTIONS = 6  # of a view, in which more than one class would show
VALLEY = 0.5  # of the lower of two peaks: a density this low between them parts two clumps, chance does not make it
SIDE = 0.05  # of the rows are a clump, and no fewer than …
SIDE_ROWS = 10
GRID = 256  # points that a density is looked at


def classes_within(classes: Sequence[ClassViews], rng: np.random.Generator) -> np.ndarray:
    """How many classes the rows of every class look like, (k,): the rank of the dependence between its views.

    It is more than one by chance in a hundredth of the classes at most: all looks must find it. Zero where too few
    rows, or views that vary, are there to tell.
    """
    return np.array([_classes(_directions(views), rng) for views in classes])


def _directions(views: ClassViews) -> list[np.ndarray]:
    """The leading directions of views that enough rows have, (n, at most 6); NaN where one is missing."""
    found = []
    for t, phi in views.features.items():
        if len(phi) >= FEWEST_MEMBERS:
            found.append(np.full((views.n_rows, min(DIRECTIONS, phi.shape[1])), np.nan))
            found[-1][views.here[t]] = phi[:, :DIRECTIONS]
    return found


def _classes(directions: Sequence[np.ndarray], rng: np.random.Generator) -> int:
    if len(directions) < 2:
        return 0
    count = 0
    for level, n_permutations in LOOKS:
        try:
            count = directions_rank(directions, rng, level, n_permutations).n_components
        except UnsupportedError:
            return 0
        if count == 1:
            break
    return count


def clumps_within(rows: np.ndarray, posteriors: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Two for every class whose rows are two clumps with a valley of the density between them, else one, (k,).

    Looked at is the density along the line that tells two clusters of its rows apart best. Zero where too few rows
    are there to tell.
    """
    found = []
    for chances in posteriors.T:
        members = drawn_members(rows, chances, rng)
        members = members[~np.isnan(members).any(axis=1)]
        varying = np.ptp(members, axis=0) > 0 if len(members) else np.zeros(rows.shape[1], dtype=bool)
        if len(members) < FEWEST_MEMBERS or not varying.any():
            found.append(0)
            continue
        lines = _lines(members[:, varying], int(rng.integers(2**31)))
        found.append(2 if min(map(lowest_valley, lines), default=1.0) < VALLEY else 1)
    return np.array(found)


def _lines(x: np.ndarray, seed: int) -> list[np.ndarray]:
    """Where rows lie on the lines between two clusters, of k-means and of a Gaussian mixture, (n,) each."""
    x = (x - x.min(axis=0)) / np.ptp(x, axis=0)  # so that squares are numbers
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    ridge = x.shape[1] / len(x)  # few rows for their columns would be told apart by chance
    with in_one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        gaussians = GaussianMixture(2, reg_covar=1e-3, random_state=seed).fit_predict(x)
    found = []
    for labels in (kmeans(x, 2, seed).labels_, gaussians):
        first, second = x[labels == 0], x[labels == 1]
        if min(len(first), len(second)) >= SIDE_ROWS:
            parts = (first - first.mean(axis=0), second - second.mean(axis=0))
            within = sum(part.T @ part for part in parts) / len(x) + ridge * np.eye(x.shape[1])
            found.append(x @ np.linalg.solve(within, first.mean(axis=0) - second.mean(axis=0)))
    return found


def lowest_valley(z: np.ndarray) -> float:
    """The lowest density of z (n,) over the lower of the peaks to its left and right, with clumps on both sides."""
    side = max(SIDE * len(z), SIDE_ROWS)
    width = 1.06 * min(z.std(), quartile_spread(z[:, None])[0] or z.std()) * len(z) ** -0.2
    grid = np.linspace(z.min(), z.max(), GRID)
    density = np.exp(-0.5 * ((grid[:, None] - z) / width) ** 2).sum(axis=1)
    peaks = np.minimum(np.maximum.accumulate(density), np.maximum.accumulate(density[::-1])[::-1])
    left = np.searchsorted(np.sort(z), grid)
    inside = (left >= side) & (len(z) - left >= side)
    return float(np.min(density[inside] / peaks[inside], initial=1.0))
