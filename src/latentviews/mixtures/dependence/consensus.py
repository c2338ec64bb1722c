"""Classes of dependent views by consensus: several starts, more components than classes, merging, a medoid."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import gammaln
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.parallel import Parallel, delayed

from latentviews._numbers import TINY
from latentviews._parameters import check_parameters
from latentviews._progress import Part, Report
from latentviews._sentences import warn_user
from latentviews._validation import IdentifiabilityWarning, is_auto
from latentviews.core.components import Components
from latentviews.core.kernels.bandwidths import resolution
from latentviews.core.kernels.spaces import Real
from latentviews.metrics import adjusted_rand
from latentviews.mixtures.dependence.classes import DependentClasses, view_of
from latentviews.mixtures.dependence.copulas import (
    CopulaFit,
    CopulaMixture,
    Expected,
    fit_copulas,
    refit,
    reweigh,
)
from latentviews.mixtures.dependence.donors import with_donors
from latentviews.mixtures.dependence.few_rows import FewRows, component_fit, counted_fit, lacks_rows
from latentviews.mixtures.dependence.grids import ColumnGrids
from latentviews.mixtures.dependence.masses import ColumnMasses
from latentviews.mixtures.dependence.partitions import AGREED, Choice, ClassSearch, classes_of_number, counted_classes
from latentviews.mixtures.dependence.settings import Copulas
from latentviews.mixtures.dependence.starts import START_ROWS, Start, dependence_starts, spectral_parts
from latentviews.mixtures.estimation import FULL_STEPS, FitPath, FoundClasses, Spectral, SpectralSettings, no_spectral
from latentviews.mixtures.problem import Estimate, Problem

DOUBTFUL = 0.5  # agreement of starts below which their answer is one of several
FULL = 0.75  # of the parts are classes where there may be more classes than parts
MORE = 2  # times as many starts again where the first disagree
FEWEST = 20  # rows per component should have
WIDEST = 0.2  # standard deviations of a column, which no margin of "auto" width exceeds
POINT = 0.01  # of the rows at one value may be a point mass
NEIGHBORS = 10  # of a row tell how sparse its place is


def dependent_classes(
    problem: Problem,
    settings: Copulas,
    spectral: SpectralSettings,
    automatic: bool,
    n_jobs: int | None,
    report: Report,
) -> FoundClasses:
    """Fit, merge and choose; where the number of classes is ``automatic``, the valleys of the density tell it."""
    check_parameters(settings)
    n_classes = None if automatic else problem.rank
    seen = PilotMasses.of(problem, settings)
    rows, grids, volume, weights = _ground(seen.problem, settings, problem.pilot)
    if not settings.noise and lacks_rows(len(rows), rows.shape[1], n_classes):
        few = FewRows(seen.problem.pilot, rows, problem.pilot_weights, grids)
        return _of_few_rows(seen, few, settings, n_classes, report)
    n_parts = max(settings.n_parts, 2 * (n_classes or 0))
    search = ClassSearch(seen.problem, settings, rows, grids, volume, weights)
    more = partial(_tried, search, n_classes, spectral, n_jobs, report)
    tried = more(n_parts)
    while n_classes is None and tried.is_full and (larger := more(2 * tried.n_parts)).n_classes > tried.n_classes:
        tried = larger
    chosen, fit = tried.chosen, tried.fitted[tried.chosen.start].fit
    _warn(chosen.agreement, chosen.n_partitions)
    least = settings.least if n_classes is None else None
    classes = _classes(seen, fit.mixture, chosen, settings.noise, least)
    reached = [float(np.average(one.expected.log_density, weights=problem.pilot_weights)) for one in tried.fitted]
    objectives = dict(zip((one.name for one in tried.fitted), reached, strict=True))
    summary = no_spectral(tried.spectrum, classes.n_classes)
    path = FitPath(summary, reached[chosen.start], fit.n_iter, fit.converged, objectives)
    return _found(problem, classes, path, chosen.agreement)


class PilotMasses(NamedTuple):
    """The point masses of a pilot, which classes are found without and densities have."""

    original: Problem
    problem: Problem  # whose pilot has donors' values at point masses
    masses: ColumnMasses | None

    @classmethod
    def of(cls, problem: Problem, settings: Copulas) -> "PilotMasses":
        """Those of the columns in views; none where noise is a class."""
        used = [j for columns in problem.columns for j in columns]
        masses = None if settings.noise else ColumnMasses.of(problem.pilot, used, problem.point_masses)
        if masses is None:
            return cls(problem, problem, None)
        pilot = problem.pilot.copy()
        pilot[:, used] = with_donors(pilot[:, used], masses, problem.rng)
        return cls(problem, replace(problem, pilot=pilot), masses)

    def with_masses(self, mixture: CopulaMixture) -> CopulaMixture:
        """The same components with margins for densities: apart from point masses, beside which kernels are narrow."""
        grids, table = mixture.margins.grids, self.original.pilot
        if self.masses is None:
            return mixture.with_grids(grids.for_densities(None, grids.least))
        shares = mixture.expected(grids.cells(self.problem.pilot)).shares
        x, least = table[:, grids.columns].T, grids.least
        if least is not None:
            others = [row[here] for row, here in zip(x, self.masses.states(x) == self.masses.most, strict=True)]
            least = np.where(self.masses.has, [resolution(one) for one in others], least)
        counts = 1.0 if self.original.pilot_weights is None else self.original.pilot_weights[:, None]
        return mixture.estimated_on(grids.for_densities(self.masses, least), table, shares * counts)


class FittedStart(NamedTuple):
    """Where EM ended from one start."""

    name: str
    fit: CopulaFit
    expected: Expected  # of all rows of the pilot


class PartFits(NamedTuple):
    """Fits of so many parts from several starts, and what was chosen of them."""

    n_parts: int
    fitted: list[FittedStart]
    chosen: Choice
    spectrum: np.ndarray | None

    @property
    def n_classes(self) -> int:
        """The number of classes, not counting noise."""
        return int(self.chosen.groups.max()) + 1

    @property
    def is_full(self) -> bool:
        """Whether so many parts are classes that more parts may show more."""
        return self.n_classes > FULL * self.n_parts


def _tried(
    search: ClassSearch,
    n_classes: int | None,
    spectral: SpectralSettings,
    n_jobs: int | None,
    report: Report,
    n_parts: int,
) -> PartFits:
    """EM from several starts, and classes of the parts."""
    problem, settings = search.problem, search.settings
    n_parts = max(min(n_parts, len(search.rows) // FEWEST), n_classes or 1)
    moments, spectrum = spectral_parts(problem, n_parts, spectral)
    batch = StartBatch(search, n_parts, n_jobs, report)
    fitted = batch.fits(settings.n_starts, moments)
    chosen = _chosen(search, fitted, n_classes)
    if n_parts > 1 and chosen.agreement < AGREED:  # more starts where they disagree
        fitted += batch.fits(MORE * settings.n_starts, None, settings.n_starts)
        chosen = _chosen(search, fitted, n_classes)
    return PartFits(n_parts, fitted, chosen, spectrum)


def _chosen(search: ClassSearch, fitted: list[FittedStart], n_classes: int | None) -> Choice:
    expected = [one.expected for one in fitted]
    return counted_classes(search, expected) if n_classes is None else classes_of_number(search, expected, n_classes)


class StartBatch(NamedTuple):
    """EM of so many parts, from starts that are asked for."""

    search: ClassSearch
    n_parts: int
    n_jobs: int | None
    report: Report

    def fits(self, n_starts: int, moments: Spectral | None, before: int = 0) -> list[FittedStart]:
        """The fits from so many starts of each kind, after those there were, and from the moments."""
        search, settings = self.search, self.search.settings
        problem, starts = search.problem, []
        count = 1 if self.n_parts == 1 else 2 * n_starts + (moments is not None)
        guesses = dependence_starts(problem, search.rows, self.n_parts, n_starts, moments, search.weights, before)

        def tasks() -> Iterator[Any]:
            # a start is made when its turn comes, so that the steps told of are spread evenly
            for i, start in enumerate(guesses):
                starts.append(start.name)
                part = Part(i, count, settings.tol)
                yield delayed(_fit)(start, search.grids, problem.pilot, settings, self.report, part)

        fits = Parallel(self.n_jobs, prefer="threads")(tasks())
        if settings.noise:
            fits = [fit._replace(mixture=reweigh(fit.mixture, problem.pilot, problem.pilot_weights)) for fit in fits]
        cells = search.grids.cells(problem.pilot)
        return [FittedStart(name, fit, fit.mixture.expected(cells)) for name, fit in zip(starts, fits, strict=True)]


def _found(problem: Problem, classes: DependentClasses, path: FitPath, agreement: float) -> FoundClasses:
    own = Estimate(classes.weights, list(_components(problem, classes)), problem.columns)
    return FoundClasses(own, path, classes, agreement)


def _of_few_rows(
    seen: PilotMasses, few: FewRows, settings: Copulas, n_classes: int | None, report: Report
) -> FoundClasses:
    """A component for every class, chosen by held-out rows; known classes name them."""
    problem = seen.problem
    if n_classes is None:
        found = counted_fit(few, settings, problem.rng, report)
    else:
        found = component_fit(few, n_classes, settings, problem.rng, report)
    fit, labels = found.fit, found.fit.expected.posteriors.argmax(axis=1)
    others = [adjusted_rand(labels, other) for other in found.partitions[1:]]
    agreement = float(np.mean(others)) if others else 1.0
    _warn(agreement, len(found.partitions))
    groups = np.arange(len(fit.mixture.weights))
    classes = _classes(seen, fit.mixture, Choice(0, groups, labels, agreement), noise=False)
    path = FitPath(no_spectral(None, len(groups)), fit.objective, fit.n_iter, fit.converged, found.objectives)
    return _found(problem, classes, path, agreement)


def _ground(
    problem: Problem, settings: Copulas, table: np.ndarray
) -> tuple[np.ndarray, ColumnGrids, float, np.ndarray | None]:
    """The pilot in columns of one scale, the grids of its margins, the log-volume of its box, and the rows' weights.

    ``table`` is the pilot with point masses as they are, which the grids reach, too.
    """
    used = [j for columns in problem.columns for j in columns]
    same = [j for j in used if np.nanmin(problem.pilot[:, j]) == np.nanmax(problem.pilot[:, j])]
    if same:
        raise ValueError(
            f"The {len(problem.pilot)} rows of the pilot have one value in column {same[0]}, where others differ; take "
            "a larger pilot_size."
        )
    rows, scales = _standardised(problem.pilot[:, used])
    columns = [x[~np.isnan(x)] for x in problem.pilot[:, used].T]
    units = np.array([resolution(x) for x in columns])  # of rounded or counted values
    own = is_auto(settings.bandwidth)
    widest = np.maximum((WIDEST if own else settings.bandwidth) * scales, units)
    points = [len(point_masses(x, width)) for x, width in zip(columns, widest, strict=True)]
    least = np.where(points, widest, units) if own else None  # narrow kernels would make a class of a point
    grids = ColumnGrids.around(table, used, widest, boxed=settings.noise, least=least)
    if grids.box is None:
        return rows, grids, 0.0, problem.pilot_weights
    volume = float(np.log(np.ptp(grids.box, axis=0)).sum())
    inside = volume - float(np.log(scales).sum())
    return rows, grids, volume, _without_strays(rows, problem.pilot_weights, inside, problem.rng)


def point_masses(x: np.ndarray, width: float) -> np.ndarray:
    """The values of a column that have most of the rows within so much of them, where values are rounded finer."""
    if width <= resolution(x):
        return np.empty(0)
    values, counts = np.unique(x, return_counts=True)
    common = np.flatnonzero(counts > POINT * len(x))
    return np.array([values[i] for i in common if counts[i] > counts[np.abs(values - values[i]) <= width].sum() / 2])


def _fit(
    start: Start, grids: ColumnGrids, table: np.ndarray, settings: Copulas, report: Report, part: Part
) -> CopulaFit:
    return fit_copulas(
        grids,
        table[start.rows],
        start.posteriors,
        max_iter=settings.max_iter,
        tol=settings.tol,
        report=lambda n_iter, objective: report(start.name, n_iter, objective, part),
    )


def _warn(agreement: float, n_partitions: int) -> None:
    if agreement < DOUBTFUL:
        warn_user(
            f"The {n_partitions} ways to these classes agree little (adjusted Rand index {agreement:.2f}): the answer "
            "is one of several. Ask for another number of classes, or see `agreement_` and `start_objectives_`.",
            IdentifiabilityWarning,
        )


def _standardised(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Columns of mean zero and standard deviation one, far values drawn in, missing ones zero; and the deviations."""
    inner = np.nanquantile(table, [0.005, 0.995], axis=0)
    reach = np.ptp(inner, axis=0)
    near = np.clip(table, inner[0] - reach, inner[1] + reach)
    center, scales = np.nanmean(near, axis=0), np.nanstd(near, axis=0)
    scales = np.where(scales > 0, scales, np.nanstd(table, axis=0))
    return np.nan_to_num((near - center) / scales), scales


def _without_strays(
    rows: np.ndarray, weights: np.ndarray | None, volume: float, rng: np.random.Generator
) -> np.ndarray:
    """The weights of the rows, zero where neighbours are farther than if all were spread evenly over their box.

    Those rows may be noise, and are not to shape the components. The ball up to the k-th neighbour of a row among m
    others holds about k / m of the rows.
    """
    d = rows.shape[1]
    some = rng.permutation(len(rows))[:START_ROWS]
    count = min(NEIGHBORS, len(some) - 1)
    far = NearestNeighbors(n_neighbors=count + 1).fit(rows[some]).kneighbors(rows)[0][:, -1]
    log_ball = d / 2 * np.log(np.pi) - gammaln(d / 2 + 1) + d * np.log(np.maximum(far, TINY))
    dense = np.log(count / len(some)) - log_ball + volume >= 0
    kept = dense * (np.ones(len(rows)) if weights is None else weights)
    return kept if np.count_nonzero(kept) >= len(rows) / 2 else np.ones(len(rows)) if weights is None else weights


def _classes(
    seen: PilotMasses, mixture: CopulaMixture, chosen: Choice, noise: bool, least: float | None = None
) -> DependentClasses:
    """The classes, with steps over all rows, named as known rows name them.

    Where they are counted, those that win less than ``least`` of the rows once point masses are known are none.
    """
    problem, steps = seen.original, FULL_STEPS if seen.original.partial else 1
    if noise:
        mixture = reweigh(mixture, problem.data, problem.weights, steps)
    else:
        mixture = seen.with_masses(mixture)
        for _ in range(steps if seen.masses is None or problem.partial else 0):  # the pilot's step was that of all rows
            mixture = refit(mixture, problem.data, problem.weights)
    classes = DependentClasses(mixture, chosen.groups, problem.columns, noise)
    if seen.masses is not None and least is not None:
        classes = classes.without_those_below(least, problem.pilot)
    return classes if problem.allowed is None else classes.take(_naming(problem.allowed, chosen.labels))


def _naming(allowed: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The order in which classes bear the names that known rows give them."""
    known, k = allowed.sum(axis=1) == 1, allowed.shape[1]
    return linear_sum_assignment(-allowed[known].T @ np.eye(k + 1)[labels[known]][:, :k])[1]


def _components(problem: Problem, classes: DependentClasses) -> list[Components]:
    """The distributions of the views; those of several columns smooth point masses."""
    views: list[Components] = []
    inside, margins = np.flatnonzero(classes.groups >= 0), classes.mixture.margins
    for view, columns in enumerate(problem.columns):
        places = classes.places(view)
        x = problem.pilot[:, columns]
        x = x[~np.isnan(x).any(axis=1)]
        widths = margins.bandwidths.min(axis=1) if len(places) == 1 else margins.grids.bandwidths
        domain = Real().quadrature(x, widths[places], problem.rng)
        view_parts = classes.mixture.some_columns(places).take(inside)
        views.append(view_of(domain, view_parts, classes.groups[inside]))
    return views
