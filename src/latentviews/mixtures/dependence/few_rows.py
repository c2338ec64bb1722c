"""Copulas where rows are few for their columns: a component for every class, and correlations drawn to a common matrix.

More components than classes would have too few rows each to tell how columns go together, and valleys between them
could not be told from chance. So every class is one component, and held-out rows say which of several starts is taken,
how much the components have in common, and how many they are.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata
from sklearn.base import clone

from latentviews._progress import Part, Report
from latentviews.metrics import adjusted_rand
from latentviews.mixtures.dependence.copulas import CopulaFit, fit_copulas
from latentviews.mixtures.dependence.grids import ColumnGrids
from latentviews.mixtures.dependence.settings import Copulas
from latentviews.mixtures.dependence.starts import gaussian_posteriors, kmeans_parts

PER_COLUMN = 8  # rows per column that each of twice as many components as classes should have
COMMON = (0.5, 2.0, 8.0)  # weights of the common correlations that held-out rows judge
FIRST_STEPS = 15  # of EM from all starts
ALIKE = 0.98  # adjusted Rand index from which two starts have come to the same classes
FEWEST = 2  # rows that a component must win
MOST = 20  # classes
ERRORS = 2.0  # standard errors that one class more must gain

Guess = Callable[[np.ndarray, int, int], np.ndarray]  # of posteriors, from rows, a number of classes and a seed
KINDS: dict[str, tuple[bool, Guess]] = {  # whether columns are seen as normal scores
    "Gaussian mixture": (True, partial(gaussian_posteriors, regular=0.1)),
    "equal covariances": (False, partial(gaussian_posteriors, kind="tied", regular=1e-6)),
    "k-means": (False, kmeans_parts),
    "Gaussian mixture of ranks": (True, gaussian_posteriors),
    "equal covariances of ranks": (True, partial(gaussian_posteriors, kind="tied", regular=1e-6)),
}


class FewRows(NamedTuple):
    """A table with few rows, as components are fitted to it."""

    table: np.ndarray  # (n, ·), all columns
    rows: np.ndarray  # (n, d), those that are used, standardised and complete
    weights: np.ndarray | None
    grids: ColumnGrids

    def some(self, which: np.ndarray) -> "FewRows":
        """Some of the rows."""
        weights = None if self.weights is None else self.weights[which]
        return FewRows(self.table[which], self.rows[which], weights, self.grids)

    def halves(self) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of every second row in an order of chance, and of the others; those that weigh nothing last."""
        order = np.random.default_rng(0).permutation(len(self.table))
        if self.weights is not None:
            if np.count_nonzero(self.weights) < 2:
                raise ValueError("Copulas need two rows at least whose sample_weight is not zero; one has no spread.")
            order = order[np.argsort(self.weights[order] == 0, kind="stable")]
        return order[::2], order[1::2]

    def log_density(self, fit: CopulaFit) -> np.ndarray:
        """Of every row."""
        return fit.mixture.expected(self.grids.cells(self.table)).log_density


class NamedFit(NamedTuple):
    """Where EM ended from a start."""

    name: str
    fit: CopulaFit

    @property
    def objective(self) -> float:
        """The mean log-likelihood, less than any other where a component wins no rows."""
        won = np.bincount(self.labels, minlength=len(self.fit.mixture.weights))
        return self.fit.objective if won.min() >= FEWEST else -np.inf

    @property
    def posteriors(self) -> np.ndarray:
        """Of every row, (n, k)."""
        return self.fit.expected.posteriors

    @property
    def labels(self) -> np.ndarray:
        """The component that is most probable for every row."""
        return self.posteriors.argmax(axis=1)


def lacks_rows(n_rows: int, n_columns: int, n_classes: int | None) -> bool:
    """Whether rows are too few for twice as many components as classes, two classes where their number is not given."""
    return n_rows < 2 * (n_classes or 2) * PER_COLUMN * (n_columns + 1)


class JudgedFits(NamedTuple):
    """Starts that came to the same classes, and how likely held-out rows are under fits from there."""

    alike: list[NamedFit]  # the likeliest first
    held_out: np.ndarray  # (n,), log-densities, each under a fit to the half of the rows that it is not in

    def as_likely_as(self, best: "JudgedFits") -> bool:
        """Whether held-out rows cannot tell them from others."""
        lost = best.held_out - self.held_out
        return bool(lost.mean() <= ERRORS * lost.std() / np.sqrt(len(lost)))


class ComponentFit(NamedTuple):
    """A component for every class, and what it was chosen from."""

    fit: CopulaFit
    held_out: np.ndarray  # (n,), log-densities
    partitions: list[np.ndarray]  # (n,) each, of the start that was chosen and of others as likely
    objectives: dict[str, float]  # of all starts


def component_fit(
    few: FewRows, n_classes: int, settings: Copulas, rng: np.random.Generator, report: Report
) -> ComponentFit:
    """A component for every class, from that of several starts which held-out rows speak for."""
    starts = list(_starts(few, n_classes, settings.n_starts, rng))
    every = [Part(i, len(starts) + 1, settings.tol) for i in range(len(starts) + 1)]
    tried = [
        NamedFit(name, _climbed(few, posteriors, COMMON[1], FIRST_STEPS, settings.tol, _told(report, name, part)))
        for (name, posteriors), part in zip(starts, every[:-1], strict=True)
    ]

    def held_out(one: NamedFit, common: float) -> np.ndarray:
        return _held_out_from(few, one.posteriors, common, settings.tol)

    judged = [JudgedFits(alike, held_out(alike[0], COMMON[1])) for alike in _alike(tried)]
    judged.sort(key=lambda one: -np.average(one.held_out, weights=few.weights))
    best = judged[0].alike[0]
    common = max(COMMON, key=lambda common: float(np.average(held_out(best, common), weights=few.weights)))
    told = _told(report, best.name, every[-1])
    fit = _climbed(few, best.posteriors, common, settings.max_iter, settings.tol, told)
    partitions = [one.labels for fits in judged if fits.as_likely_as(judged[0]) for one in fits.alike]
    return ComponentFit(fit, judged[0].held_out, partitions, {one.name: one.fit.objective for one in tried})


def counted_fit(few: FewRows, settings: Copulas, rng: np.random.Generator, report: Report) -> ComponentFit:
    """As many components as held-out rows speak for: one more as long as both halves gain by it.

    Together they must gain more than two standard errors of the mean.
    """
    quick, halves = clone(settings).set_params(n_starts=1), few.halves()
    count, found = 1, component_fit(few, 1, quick, rng, report)
    while count < min(MOST, len(few.rows) // 2):  # halves cannot part more
        more = component_fit(few, count + 1, quick, rng, report)
        gains = more.held_out - found.held_out
        least = min(np.mean(gains[half]) for half in halves)
        if least <= 0 or gains.mean() <= ERRORS * gains.std() / np.sqrt(len(gains)):
            break
        count, found = count + 1, more
    return component_fit(few, count, settings, rng, report)


def _alike(tried: list[NamedFit]) -> list[list[NamedFit]]:
    """Starts by the classes that they came to; none where a class wins too few rows, unless that is all there is."""
    groups: list[list[NamedFit]] = []
    for one in sorted(tried, key=lambda one: -one.objective):
        mine = [group for group in groups if adjusted_rand(one.labels, group[0].labels) >= ALIKE]
        if mine:
            mine[0].append(one)
        else:
            groups.append([one])
    return [group for group in groups if group[0].objective > -np.inf] or groups[:1]


def _starts(few: FewRows, n_classes: int, n_starts: int, rng: np.random.Generator) -> Iterator[tuple[str, np.ndarray]]:
    """So many guesses of each kind, named, (n, k) each; weights have a say in EM only."""
    if n_classes == 1:
        yield "one component", np.ones((len(few.rows), 1))
        return
    scores = ndtri((rankdata(few.rows, axis=0) - 0.5) / len(few.rows))
    for trial in range(1, n_starts + 1):
        for name, (ranked, guess) in KINDS.items():
            posteriors = guess(scores if ranked else few.rows, n_classes, int(rng.integers(2**31)))
            yield f"{name} {trial}", posteriors


def _climbed(
    few: FewRows, posteriors: np.ndarray, common: float, steps: int, tol: float, told: Callable[[int, float], bool]
) -> CopulaFit:
    """EM from posteriors."""
    return fit_copulas(
        few.grids, few.table, posteriors, few.weights, common=common, max_iter=steps, tol=tol, report=told
    )


def _held_out_from(few: FewRows, posteriors: np.ndarray, common: float, tol: float) -> np.ndarray:
    """The log-density of every row under components fitted to the half that it is not in, from these posteriors."""
    log_density = np.empty(len(posteriors))
    for fitted, held in _both(*few.halves()):
        fit = _climbed(few.some(fitted), posteriors[fitted], common, FIRST_STEPS, tol, _silent)
        log_density[held] = few.some(held).log_density(fit)
    return log_density


def _both(first: np.ndarray, second: np.ndarray) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    return (first, second), (second, first)


def _silent(n_iter: int, objective: float) -> bool:
    """Tells nobody of a step."""
    return False


def _told(report: Report, name: str, part: Part) -> Callable[[int, float], bool]:
    """Tells of the steps from a start."""
    return lambda n_iter, objective: report(name, n_iter, objective, part)
