"""More classes than the rank of the views' dependence shows: splits of classes that held-out rows speak for."""

from typing import NamedTuple

import numpy as np

from latentviews._clusters import cluster_posteriors, kmeans
from latentviews.mixtures.fit_rows import MixtureRows
from latentviews.mixtures.polish import Polished
from latentviews.mixtures.sieve import SieveParameters, SieveRows, accelerated_em, posterior

ROWS = 4000  # rows that numbers of classes are judged by
FIRST_STEPS, STEPS = 6, 40  # of EM after a split: to choose the class to split, and to judge the choice
TOLERANCE = 3e-3  # as in short fits of a polish
FEWEST = 25  # rows of either half that a class to split must have
ERRORS = 2.0  # standard errors that a split must gain
MOST = 20  # classes; views that depend inside classes would ask for ever more


class Half(NamedTuple):
    """Rows that classes are fitted to, others that judge them, and the classes."""

    rows: MixtureRows
    cells: list[SieveRows]
    held_cells: list[SieveRows]
    parameters: SieveParameters

    def climbed(self, start: SieveParameters, steps: int) -> tuple["Half", float]:
        """The half after some steps of EM, and the log-likelihood of its rows."""
        fit = accelerated_em(lambda parameters: self.rows.step(self.cells, parameters), start, steps, TOLERANCE)
        return self._replace(parameters=fit.parameters), fit.objective

    def held_out(self) -> np.ndarray:
        """The log-likelihood of every row that judges."""
        return posterior(self.held_cells, self.parameters)[2]


def classes_upward(rows: MixtureRows, polished: Polished, rng: np.random.Generator) -> np.ndarray | None:
    """Posteriors of more classes than a polish has, one column for each; None where held-out rows ask for no more.

    A step splits a class in either half of the rows. It is taken where the rows of the other halves are likelier, by
    more than two standard errors of the mean of their gains.
    """
    trial = rows.some(rows.draw(ROWS, rng))
    first, second = trial.halves()
    halves = [_half(trial, polished, *both) for both in ((first, second), (second, first))]
    found = None
    while len(halves[0].parameters.weights) < MOST and (grown := _grown(halves, rng)) is not None:
        found = halves = grown
    return None if found is None else posterior(rows.cells(polished.views), found[0].parameters)[0]


def _half(trial: MixtureRows, polished: Polished, fitted: np.ndarray, held: np.ndarray) -> Half:
    """The classes of a polish on half of the rows."""
    mine, rest = trial.some(fitted), trial.some(held)
    start = polished.fit.parameters
    return Half(mine, mine.cells(polished.views), rest.cells(polished.views), start).climbed(start, STEPS)[0]


def _grown(halves: list[Half], rng: np.random.Generator) -> list[Half] | None:
    """The halves with one class more each; None where held-out rows do not speak for it."""
    grown, gains = [], []
    for half in halves:
        more = _split(half, rng)
        if more is None:
            return None
        gain = more.held_out() - half.held_out()
        if gain.mean() <= 0:
            return None
        grown.append(more)
        gains.append(gain)
    every = np.concatenate(gains)
    return grown if every.mean() > ERRORS * every.std() / np.sqrt(len(every)) else None


def _split(half: Half, rng: np.random.Generator) -> Half | None:
    """The half with that class made two whose split its own rows gain most by; None where no class has rows enough."""
    posteriors = posterior(half.cells, half.parameters)[0]
    table = half.rows.table[:, [j for view in half.rows.columns for j in view]]
    tried = []
    for h in np.flatnonzero(np.bincount(posteriors.argmax(axis=1), minlength=posteriors.shape[1]) >= FEWEST):
        parts = posteriors[:, [h]] * _two_parts(table, posteriors.argmax(axis=1) == h, rng)
        guess = np.column_stack([np.delete(posteriors, h, axis=1), parts])
        tried.append(half.climbed(half.rows.initial(half.cells, guess), FIRST_STEPS))
    if not tried:
        return None
    best, _ = max(tried, key=lambda one: one[1])
    return best.climbed(best.parameters, STEPS)[0]


def _two_parts(table: np.ndarray, members: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A guess of how rows share themselves out between two clusters of the members of a class, (n, 2)."""
    known = ~np.isnan(table[members])
    count = np.maximum(known.sum(axis=0), 1)  # a column may be missing in all of them
    center = np.where(known, table[members], 0.0).sum(axis=0) / count
    spread = np.sqrt(np.where(known, (table[members] - center) ** 2, 0.0).sum(axis=0) / count)
    scaled = np.nan_to_num((table - center) / np.where(spread > 0, spread, 1.0))
    return cluster_posteriors(kmeans(scaled[members], 2, int(rng.integers(2**31))), scaled)
