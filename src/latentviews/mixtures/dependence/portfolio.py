"""The fit for views that depend inside classes: several starts, more components than classes, merging, a medoid."""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import gammaln
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.parallel import Parallel, delayed

from latentviews._clusters import cluster_posteriors, kmeans
from latentviews._numbers import TINY
from latentviews._progress import Part, Report
from latentviews._validation import IdentifiabilityWarning, UnsupportedError, check_count
from latentviews.core.features.indicators import OneHotFeatures
from latentviews.core.kernels.bandwidths import resolution
from latentviews.core.kernels.spaces import DOMAINS
from latentviews.mixtures.dependence.classes import DependentClasses, DependentView
from latentviews.mixtures.dependence.copulas import (
    CopulaFit,
    CopulaMixture,
    Expected,
    fit_copulas,
    refit,
    reweigh,
)
from latentviews.mixtures.dependence.grids import ColumnGrids
from latentviews.mixtures.dependence.merging import (
    Landscape,
    Parts,
    confusion_cost,
    medoid,
    merge,
    merge_until,
    valley_cost,
)
from latentviews.mixtures.estimation import FULL_STEPS, Spectral, SpectralSettings, spectral_estimate, spectral_steps
from latentviews.mixtures.problem import Problem

DOUBTFUL = 0.5  # agreement of starts below which their answer is one of several
START_ROWS = 5000  # rows that a start, and EM from it, are fitted to
GAUSSIAN_ROWS = 2500  # rows that a Gaussian mixture is fitted to
FEWEST = 20  # rows a component should have
NEIGHBORS = 10  # of a row tell how sparse its place is


class Copulas(BaseEstimator):
    """Classes whose views may depend on each other, for `MultiViewMixture`'s ``dependence``.

    More components than classes, each a Gaussian copula over margins without a shape, are fitted by EM from several
    starts and merged into classes by two costs. Of all the partitions the one that agrees best with the others is
    kept. Nothing is asked of the views but that they are real columns.

    Parameters
    ----------
    n_starts : int, default=4
        Gaussian mixtures and runs of k-means to start from, so many of each; the spectral estimate is one more.
    n_parts : int, default=10
        Components before merging; at least twice as many as classes are used, and fewer where rows are few.
    bandwidth : float, default=0.2
        Of the margins, in standard deviations of their columns; at least the step of rounded or counted values.
    noise : bool, default=False
        Whether noise is a class of its own, -1: rows that a uniform background explains best, rows of components that
        are sparser than if all rows were spread evenly over the range of the columns, and rows of components lighter
        than ``least`` that a valley parts from all others. Rows far outside the range are noise then, too. If not, all
        rows go to the class that is most probable without the background.
    ratio : float, default=0.75
        Where the number of classes is not given: valleys of the density above this share of the lower peak beside
        them do not part classes.
    least : float, default=0.005
        Where the number of classes is not given, or noise is a class: the weight below which a component is no class.
    max_iter : int, default=60
    tol : float, default=1e-4
        EM stops when a step gains less log-likelihood a row.
    """

    def __init__(
        self,
        n_starts: int = 4,
        n_parts: int = 10,
        bandwidth: float = 0.2,
        noise: bool = False,
        ratio: float = 0.75,
        least: float = 0.005,
        max_iter: int = 60,
        tol: float = 1e-4,
    ):
        self.n_starts = n_starts
        self.n_parts = n_parts
        self.bandwidth = bandwidth
        self.noise = noise
        self.ratio = ratio
        self.least = least
        self.max_iter = max_iter
        self.tol = tol

    def check(self) -> None:
        """Sentences on settings that no fit can use."""
        check_count("n_starts", self.n_starts)
        check_count("n_parts", self.n_parts)
        check_count("max_iter", self.max_iter)
        if not isinstance(self.noise, bool | np.bool_):
            raise ValueError(
                f"Copulas needs noise=True, a class of its own for stray rows, or False; got {self.noise!r}."
            )
        if not _is_number(self.bandwidth) or not 0 < self.bandwidth < np.inf:
            raise ValueError(
                "Copulas needs a positive, finite bandwidth, in standard deviations of the columns; got "
                f"{self.bandwidth!r}."
            )
        if not _is_number(self.tol) or not self.tol > 0:
            raise ValueError(f"Copulas needs a positive tol, a gain of log-likelihood a row; got {self.tol!r}.")
        numbers = _is_number(self.ratio) and _is_number(self.least)
        if not numbers or not 0 < self.ratio <= 1 or not 0 <= self.least < 1:
            raise ValueError(
                f"Copulas needs a ratio in (0, 1] and a least weight in [0, 1); got {self.ratio!r} and {self.least!r}."
            )


def _is_number(value: Any) -> bool:
    return isinstance(value, float | int | np.number) and not isinstance(value, bool)


def read_copulas(dependence: Any) -> Copulas:
    """What the parameter ``dependence`` stands for."""
    given = Copulas() if isinstance(dependence, str) and dependence == "copula" else dependence
    if not isinstance(given, Copulas):
        raise ValueError(f'dependence must be None, "copula" or Copulas(...); got {dependence!r}.')
    return given


def check_dependence(model: Any, blocks: Sequence[int], prototypes: Sequence[Any]) -> None:
    """Sentences on what does not go with dependent views."""
    read_copulas(model.dependence)
    for name in ("polish", "density_bandwidth"):
        if not isinstance(getattr(model, name), str) or getattr(model, name) != "auto":
            raise ValueError(
                f"With dependence, {name} has no part in the fit, so it must stay 'auto'; got "
                f"{getattr(model, name)!r}. Copulas(bandwidth=...) sets the width of the densities."
            )
    if len(set(blocks)) < len(blocks):
        raise ValueError("With dependence, every view has distributions of its own; exchangeable must be False.")
    kinds = [_kind(phi) for phi in prototypes]
    if set(kinds) != {"real"}:
        view = next(t for t, kind in enumerate(kinds) if kind != "real")
        raise ValueError(
            f"With dependence, views are real columns; view {view} has a kernel for {kinds[view]} data. Leave the view "
            "out, or dependence at None."
        )
    if model.warm_start:
        raise ValueError("With dependence there is no warm start; every fit tries its starts anew.")


def _kind(phi: Any) -> str:
    """What a feature map is for: real, circle or discrete data."""
    return "discrete" if isinstance(phi, OneHotFeatures) else getattr(getattr(phi, "kernel", None), "domain", "real")


class Portfolio(NamedTuple):
    """What a fit for dependent views found."""

    classes: DependentClasses
    components: list[DependentView]
    agreement: float  # mean adjusted Rand index of the partition with the others
    objectives: dict[str, float]  # the log-likelihood a row that every start reached
    start: str  # where the partition came from
    n_iter: int
    converged: bool
    spectrum: np.ndarray | None  # singular values of the pair moment


def portfolio(
    problem: Problem,
    settings: Copulas,
    spectral: SpectralSettings,
    n_classes: int | None,
    n_jobs: int | None,
    report: Report,
) -> Portfolio:
    """Fit, merge and choose; ``n_classes`` is None where the valleys of the density are to tell."""
    settings.check()
    used = [j for columns in problem.columns for j in columns]
    rows, scales = _standardised(problem.pilot[:, used])
    units = [resolution(x[~np.isnan(x)]) for x in problem.pilot[:, used].T]  # what rounded or counted values resolve
    grids = ColumnGrids.around(
        problem.pilot, used, np.maximum(settings.bandwidth * scales, units), boxed=settings.noise
    )
    weights, volume = problem.pilot_weights, 0.0
    if grids.box is not None:
        volume = float(np.log(np.ptp(grids.box, axis=0)).sum())
        weights = _without_strays(rows, weights, volume - float(np.log(scales).sum()), problem.rng)
    n_parts = max(settings.n_parts, 2 * (n_classes or 0))
    n_parts = max(min(n_parts, len(rows) // FEWEST), n_classes or 1)
    moments, spectrum = _spectral(problem, n_parts, spectral)
    count = 1 if n_parts == 1 else 2 * settings.n_starts + (moments is not None)
    starts: list[Start] = []

    def tasks() -> Iterator[Any]:  # a start is made when its turn comes, so that the steps told of are spread evenly
        for i, start in enumerate(_starts(problem, rows, n_parts, settings.n_starts, moments, weights)):
            starts.append(start)
            yield delayed(_fit)(start, grids, problem.pilot, settings, report, Part(i, count, settings.tol))

    fits = Parallel(n_jobs, prefer="threads")(tasks())
    if settings.noise:
        fits = [fit._replace(mixture=reweigh(fit.mixture, problem.pilot, problem.pilot_weights)) for fit in fits]
    cells = grids.cells(problem.pilot)
    expected = [fit.mixture.expected(cells) for fit in fits]
    landscape = Landscape(rows, problem.rng, weights)
    chosen = _choose(problem, landscape, expected, volume, settings, n_classes)
    fit = fits[chosen.start]
    classes = _classes(problem, fit.mixture, chosen, settings.noise)
    objectives = [float(np.average(step.log_density, weights=problem.pilot_weights)) for step in expected]
    return Portfolio(
        classes,
        _components(problem, classes),
        chosen.agreement,
        dict(zip([start.name for start in starts], objectives, strict=True)),
        starts[chosen.start].name,
        fit.n_iter,
        fit.converged,
        spectrum,
    )


def _fit(
    start: "Start", grids: ColumnGrids, table: np.ndarray, settings: Copulas, report: Report, part: Part
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
        warnings.warn(
            f"The {n_partitions} ways to these classes agree little (adjusted Rand index {agreement:.2f}): the answer "
            "is one of several. Ask for another number of classes, or see `agreement_` and `start_objectives_`.",
            IdentifiabilityWarning,
            stacklevel=6,
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


# -------------------------------------------------------------------------------------------------- the starts


class Start(NamedTuple):
    """A guess of the posteriors of some rows."""

    name: str
    rows: np.ndarray  # (m,), their numbers in the pilot
    posteriors: np.ndarray  # (m, J)


def _starts(
    problem: Problem,
    rows: np.ndarray,
    n_parts: int,
    n_starts: int,
    moments: Spectral | None,
    weights: np.ndarray | None,
) -> Iterator[Start]:
    """Gaussian mixtures and k-means, each on rows of its own, and the spectral estimate.

    Rows are drawn with their weights as chances, so that those drawn need no weights.
    """
    chances = None if weights is None else weights / weights.sum()
    again = problem.pilot_weights is not None  # a row may be drawn twice
    size = min(len(rows) if again or weights is None else int(np.count_nonzero(weights)), START_ROWS)

    def draw() -> np.ndarray:
        return problem.rng.choice(len(rows), size, replace=again, p=chances)

    if n_parts == 1:
        yield Start("one part", draw(), np.ones((size, 1)))
        return
    for trial in range(1, n_starts + 1):
        for name, guess in (("Gaussian mixture", _gaussian), ("k-means", _kmeans)):
            some = draw()
            yield Start(f"{name} {trial}", some, guess(rows[some], n_parts, int(problem.rng.integers(2**31))))
    if moments is not None:
        some = draw()
        yield Start("spectral", some, spectral_estimate(problem, moments).posteriors(problem.pilot[some]))


def _gaussian(rows: np.ndarray, n_parts: int, seed: int) -> np.ndarray:
    model = GaussianMixture(n_parts, reg_covar=1e-3, max_iter=60, random_state=seed)
    with warnings.catch_warnings(), config_context(array_api_dispatch=False):  # rows are NumPy's
        warnings.simplefilter("ignore", ConvergenceWarning)  # a start need not converge
        return model.fit(rows[:GAUSSIAN_ROWS]).predict_proba(rows)


def _kmeans(rows: np.ndarray, n_parts: int, seed: int) -> np.ndarray:
    return cluster_posteriors(kmeans(rows, n_parts, seed), rows)


def _spectral(problem: Problem, n_parts: int, settings: SpectralSettings) -> tuple[Spectral | None, np.ndarray | None]:
    """The papers' estimate with as many classes as parts, None where the moments do not carry so many; a spectrum."""
    some = problem.rng.permutation(len(problem.pilot))[:START_ROWS]
    weights = None if problem.pilot_weights is None else problem.pilot_weights[some]
    smaller = problem._replace(
        data=problem.pilot[some], weights=weights, pilot=problem.pilot[some], pilot_weights=weights, rank=n_parts
    )
    try:
        found = spectral_steps(smaller, settings, problem.prototypes, "isj", all_rows=False)
    except UnsupportedError as error:
        return None, error.spectrum
    return found, found.fit.whitening.spectrum


# ------------------------------------------------------------------------------------------ from parts to classes


class Choice(NamedTuple):
    """A partition of the pilot among others."""

    start: int  # the start whose parts were merged
    groups: np.ndarray  # (J,), the class of every part
    labels: np.ndarray  # (n,), the class of every row
    agreement: float


def _choose(
    problem: Problem,
    landscape: Landscape,
    expected: Sequence[Expected],
    volume: float,
    settings: Copulas,
    n_classes: int | None,
) -> Choice:
    """Of all starts and ways to merge their parts, the medoid, or what agrees best with known classes."""
    found = [
        (i, groups, _labels(step, groups, settings.noise))
        for i, step in enumerate(expected)
        for groups in _mergers(
            landscape.parts(step.posteriors, step.log_density), _heights(step, volume), settings, n_classes
        )
    ]
    partitions = [labels for *_, labels in found]
    center = medoid(partitions)
    _warn(center.agreement, len(partitions))
    best = center.chosen if problem.allowed is None else _closest_to(problem.allowed, partitions)
    return Choice(*found[best], center.agreement)


def _classes(problem: Problem, mixture: CopulaMixture, chosen: Choice, noise: bool) -> DependentClasses:
    """The classes, with steps over all rows, named as known rows name them."""
    steps = FULL_STEPS if problem.partial else 1
    if noise:
        mixture = reweigh(mixture, problem.data, problem.weights, steps)
    for _ in range(0 if noise else steps):
        mixture = refit(mixture, problem.data, problem.weights)
    classes = DependentClasses(mixture, chosen.groups, problem.columns, noise)
    return classes if problem.allowed is None else classes.take(_naming(problem.allowed, chosen.labels))


def _heights(expected: Expected, volume: float) -> np.ndarray:
    """The mean log-density where the rows of every part are, beside that of rows spread evenly over their box, (J,)."""
    return expected.shares @ expected.log_density / np.maximum(expected.shares.sum(axis=1), TINY) + volume


def _mergers(parts: Parts, heights: np.ndarray, settings: Copulas, n_classes: int | None) -> list[np.ndarray]:
    """The classes of the parts of a fit, in every way that is tried; -1 is noise."""
    kept = np.arange(len(parts.mass))
    if settings.noise:
        apart = (parts.ratio - np.eye(len(kept))).max(axis=1) < settings.ratio
        noisy = (heights < 0) | ((parts.mass < settings.least) & apart)
        fewest = min(n_classes or 1, len(kept))
        kept = np.flatnonzero(~noisy) if np.sum(~noisy) >= fewest else np.sort(np.argsort(-heights)[:fewest])
    if n_classes is None:
        merged = [merge_until(parts.take(kept), settings.ratio, settings.least, hidden=settings.noise)]
    else:
        merged = [merge(parts.take(kept), n_classes, cost) for cost in (valley_cost, confusion_cost)]
    every = np.full((len(merged), len(parts.mass)), -1)
    every[:, kept] = merged
    return list(every)


def _labels(expected: Expected, groups: np.ndarray, noise: bool) -> np.ndarray:
    """The class of every row of the pilot; noise is the last."""
    chances = np.eye(groups.max() + 2)[groups].T @ (expected.shares if noise else expected.posteriors)
    if noise:
        chances[-1] += 1 - expected.shares.sum(axis=0)
    return chances.argmax(axis=0)


def _closest_to(allowed: np.ndarray, partitions: list[np.ndarray]) -> int:
    """The partition that agrees best with the known classes."""
    known = allowed.sum(axis=1) == 1
    truth = allowed[known].argmax(axis=1)
    return int(np.argmax([adjusted_rand_score(truth, labels[known]) for labels in partitions]))


def _naming(allowed: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The order in which classes bear the names that known rows give them."""
    known, k = allowed.sum(axis=1) == 1, allowed.shape[1]
    return linear_sum_assignment(-allowed[known].T @ np.eye(k + 1)[labels[known]][:, :k])[1]


def _components(problem: Problem, classes: DependentClasses) -> list[DependentView]:
    views, inside = [], np.flatnonzero(classes.groups >= 0)
    for view, columns in enumerate(problem.columns):
        places = classes.places(view)
        x = problem.pilot[:, columns]
        x = x[~np.isnan(x).any(axis=1)]
        domain: Any = DOMAINS["real"](x, classes.mixture.margins.grids.bandwidths[places], problem.rng)
        view_parts = classes.mixture.some_columns(places).take(inside)
        views.append(DependentView(domain, view_parts, classes.groups[inside]))
    return views
