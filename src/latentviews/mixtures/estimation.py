"""From data to class weights and components: the spectral estimate, and the polish that starts from it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
from sklearn.base import clone

from latentviews._arrays import in_place_of
from latentviews._clusters import kmeans_posteriors
from latentviews._progress import Report
from latentviews._sentences import warn_user
from latentviews._validation import IdentifiabilityWarning, UnsupportedError, is_auto
from latentviews.core.components import Components
from latentviews.core.embeddings import BinnedEmbedding, domain_for, domain_of
from latentviews.core.features.landmarks import FEW, log_unit
from latentviews.core.features.point_masses import PointMassFeatures, without_masses
from latentviews.core.kernels.base import Kernel, column_factors
from latentviews.core.kernels.mixed import has_width, product_on, widened
from latentviews.core.kernels.quadrature import Quadrature
from latentviews.core.kernels.real import Gaussian
from latentviews.core.kernels.spaces import space_of
from latentviews.core.point_masses import around_masses, laws_in, with_inside
from latentviews.core.spectral import SpectralFit, spectral_fit
from latentviews.core.tensors import Solver
from latentviews.core.views import Views, stack_block
from latentviews.densities.kernel_samples import KernelSample, kernel_samples
from latentviews.densities.reestimation import density_maps, in_landmarks, reestimate, within_classes
from latentviews.densities.shapes import with_shapes
from latentviews.densities.smoothers import weighted_samples
from latentviews.densities.subspaces import subspace_samples
from latentviews.mixtures.counting import classes_upward
from latentviews.mixtures.dependence.classes import DependentClasses
from latentviews.mixtures.fit_rows import Halves, MixtureRows, alternating
from latentviews.mixtures.polish import Polished
from latentviews.mixtures.problem import Estimate, Problem, label_order
from latentviews.mixtures.wide_views import IN_SUBSPACES, found_again, refine, subspace_clusters

START_LANDMARKS = 100  # that densities of several columns are seen from where a polish follows
SPECTRAL_FACTORS = (1.0, 0.5)  # starts from moments at these widths of the kernel's rule
JUDGED = 400  # rows of either half that choose how views of several columns are smoothed
FULL_STEPS = 2  # EM steps over all rows after the pilot's have converged


class Spectral(NamedTuple):
    """The spectral steps on some rows, and the maps in which its components are vectors."""

    fit: SpectralFit
    maps: Views


class SpectralSettings(NamedTuple):
    """How the spectral steps are taken."""

    solver: Solver
    reference: int | None
    two_passes: bool
    shared_map: bool = True  # views that are all of one block are whitened by one map


class SpectralSummary(NamedTuple):
    """What is kept of the spectral steps."""

    spectrum: Any  # singular values of the pair moment; None where there are none
    raw_weights: np.ndarray  # (k,), which need not sum to one
    residual: float  # the share of the whitened tensor that k classes do not explain


class Starts(NamedTuple):
    """Guesses of the pilot's posteriors by name, and the spectral steps that the first came from, if any were taken."""

    posteriors: dict[str, np.ndarray]
    spectral: SpectralSummary | None = None

    def each(self) -> list[np.ndarray]:
        """The guesses."""
        return list(self.posteriors.values())


class FitPath(NamedTuple):
    """What is worth keeping of the way to an estimate."""

    spectral: SpectralSummary | None  # None where no moments were taken
    lower_bound: float = np.nan  # the mean log-likelihood that EM reached
    n_iter: int = 0
    converged: bool = True
    objectives: dict[str, float] | None = None  # what every start reached
    agreements: dict[str, float] | None = None  # of every start's partition with that of the best


class FoundClasses(NamedTuple):
    """The classes that a fit found, and the way to them."""

    estimate: Estimate  # the margins of the classes, where their views depend on each other
    path: FitPath
    dependent: DependentClasses | None = None
    agreement: float = np.nan  # of the partition with those of other starts


def spectral_summary(found: SpectralFit) -> SpectralSummary:
    """What is kept of a spectral fit."""
    return SpectralSummary(found.whitening.spectrum, found.weights, found.decomposition.residual)


def no_spectral(spectrum: np.ndarray | None, rank: int) -> SpectralSummary:
    """What is kept where the moments supported no spectral fit, or one of other classes."""
    return SpectralSummary(spectrum, np.full(rank, np.nan), np.nan)


def spectral_steps(
    problem: Problem,
    settings: SpectralSettings,
    maps: Sequence[Any],
    bandwidth: Any,
    *,
    all_rows: bool,
    component_maps: Views | None = None,
) -> Spectral:
    """The papers' four steps, over all rows or the pilot, with densities in ``component_maps``.

    By default these are made for ``bandwidth``.
    """
    views = problem.views(maps)
    if component_maps is None:
        alike = np.ones((len(problem.pilot), 1))
        n_landmarks = FEW if all_rows else START_LANDMARKS
        component_maps = density_maps(problem.pilot, views, problem.blocks, alike, bandwidth, n_landmarks)
    found = spectral_fit(
        problem.data if all_rows else problem.pilot,
        views,
        problem.rank,
        settings.solver,
        problem.rng,
        weights=problem.weights if all_rows else problem.pilot_weights,
        pilot=None if settings.two_passes else (in_place_of(problem.pilot, problem.data), problem.pilot_weights),
        exchangeable=settings.shared_map and len(set(problem.blocks)) == 1,
        reference=settings.reference,
        component_maps=component_maps,
        lean=all_rows and not settings.two_passes,
    )
    return Spectral(found, component_maps)


def spectral_estimate(problem: Problem, spectral: Spectral) -> Estimate:
    """Components as records, the spectral vectors averaged over a block."""
    return as_estimate(spectral, problem.blocks, domains_of(problem, spectral.maps))


def as_estimate(spectral: Spectral, blocks: Sequence[int], domains: Sequence[Quadrature | None]) -> Estimate:
    """Weights that sum to one and components that say where their densities live."""
    found, maps = spectral
    shared = {
        block: np.mean([found.vectors[t] for t, b in enumerate(blocks) if b == block], axis=0) for block in set(blocks)
    }
    parts = zip(maps.features, [shared[block] for block in blocks], domains, strict=True)
    return Estimate(found.weights / found.weights.sum(), [laws_in(*part) for part in parts], maps.columns)


# from the maps of moments, and of densities where they are known, to the pilot's posteriors
SpectralStart = Callable[[Sequence[Any], Views | None], tuple[np.ndarray, Spectral]]


def starts(problem: Problem, spectral_start: SpectralStart, factors: Sequence[float], step: str) -> Starts:
    """Spectral at some bandwidths, and k-means; a warning where the moments support no spectral start of a ``step``."""
    found, summary, failure = _spectral_starts(problem, spectral_start, factors)
    if failure is not None and not found and problem.rank > 1:
        counted = f"The moments of the views do not support the {problem.rank} classes that were counted."
        warn_user(
            f"{failure if problem.rank_test is None else counted} {step} started from k-means alone, so its answer may "
            "be a local optimum.",
            IdentifiabilityWarning,
        )
    if problem.rank > 1 or not found:
        used = [j for columns in problem.columns for j in columns]
        found["k-means"] = kmeans_posteriors(problem.pilot, used, problem.rank, problem.rng, problem.pilot_weights)
    if problem.directions:
        table = problem.pilot, problem.pilot_weights
        found[IN_SUBSPACES] = subspace_clusters(table, problem.columns, problem.directions, problem.rank, problem.rng)
    named = {name: start[:, label_order(start, problem.allowed)] for name, start in found.items()}
    return Starts(named, summary or no_spectral(failure.spectrum if failure else None, problem.rank))


def _spectral_starts(
    problem: Problem, spectral_start: SpectralStart, factors: Sequence[float]
) -> tuple[dict[str, np.ndarray], SpectralSummary | None, UnsupportedError | None]:
    """A start at every width that the moments support, a summary of the first, and what is said of the others."""
    found: dict[str, np.ndarray] = {}
    summary, failure = None, None
    component_maps: Views | None = None  # whose bandwidth does not depend on that of moments
    for factor in factors:
        maps = [scaled(phi, problem, t, factor) for t, phi in enumerate(problem.prototypes)]
        if found and maps == problem.prototypes:  # no kernel to scale: the same start again
            continue
        try:
            found[f"spectral × {factor:g}"], spectral = spectral_start(maps, component_maps)
        except UnsupportedError as error:
            failure = failure or error
        else:
            summary, component_maps = summary or spectral_summary(spectral.fit), spectral.maps
    return found, summary, failure


def class_starts(problem: Problem, settings: SpectralSettings) -> Starts:
    """Starts of a mixture."""
    domains: list[Quadrature | None] = []  # of the maps of densities, which all starts share

    def spectral_start(maps: Sequence[Any], component_maps: Views | None) -> tuple[np.ndarray, Spectral]:
        spectral = spectral_steps(problem, settings, maps, "isj", all_rows=False, component_maps=component_maps)
        domains[:] = domains or domains_of(problem, spectral.maps)
        return as_estimate(spectral, problem.blocks, domains).posteriors(problem.pilot), spectral

    factors = SPECTRAL_FACTORS if problem.rank > 1 else SPECTRAL_FACTORS[:1]
    return starts(problem, spectral_start, factors, "The polish")


def spectral_classes(problem: Problem, settings: SpectralSettings, bandwidth: Any) -> FoundClasses:
    """The spectral estimate over all rows."""
    spectral = spectral_steps(problem, settings, problem.prototypes, bandwidth, all_rows=True)
    estimate = spectral_estimate(problem, spectral)
    named = estimate.take(problem.name_classes(estimate.posteriors))
    return FoundClasses(named, FitPath(spectral_summary(spectral.fit)))


def polished_classes(
    problem: Problem, guesses: Starts, polish: Any, density_bandwidth: Any, n_jobs: int | None, report: Report
) -> FoundClasses:
    """A polish from the best guess, and densities weighted by its posteriors over all rows."""
    views = problem.views()
    rows = polish_rows(problem, views)
    polished: Polished = polish.polish(rows, guesses.each(), problem.rng, n_jobs, report)
    if problem.directions:
        polished = found_again(rows, polished, guesses.posteriors, polish, problem.rng, n_jobs, report)
        directions, polished, again = refine(rows, polished, polish, problem.rng, n_jobs, report)
        problem, guesses = replace(problem, directions=directions), guesses._replace(posteriors=again)
    more = classes_upward(rows, polished, problem.rng) if _may_grow(problem, polished) else None
    if more is not None:
        problem, guesses = replace(problem, rank=more.shape[1]), guesses._replace(posteriors={"splits": more})
        polished = polish.polish(rows, guesses.each(), problem.rng, n_jobs, report)
    if problem.partial:
        polished = polished.take(problem.name_classes(polished.posteriors))
        for _ in range(FULL_STEPS):
            polished = polished.step_over(problem.data, problem.class_weights)
    posteriors = polished.posteriors(problem.pilot, problem.allowed)
    judged = JudgedRows(problem.pilot, posteriors, problem.pilot_weights, alternating, JUDGED, polished.posteriors)
    weights, components = densities(problem, judged, views, density_bandwidth)
    if is_auto(density_bandwidth):
        components = _stacked(problem, judged, components)
    return FoundClasses(Estimate(weights, components, problem.columns, polished), polish_path(guesses, polished))


def _may_grow(problem: Problem, polished: Polished) -> bool:
    """Whether there may be more classes than the polish was asked for: none are known, and no subspaces depend on k."""
    counted = problem.rank_test is not None and problem.allowed is None
    return counted and polished.exact and not problem.directions


def polish_rows(problem: Problem, views: Views) -> MixtureRows:
    """The pilot as a polish takes it."""
    kernels = [phi.kernel_ if hasattr(phi, "kernel_") else Gaussian() for phi in views.features]
    return MixtureRows(
        problem.pilot,
        problem.columns,
        problem.blocks,
        kernels,
        problem.pilot_weights,
        problem.allowed,
        problem.directions,
        {
            block: tuple(phi.values)
            for block, phi in zip(problem.blocks, views.features, strict=True)
            if isinstance(phi, PointMassFeatures)
        },
    )


def polish_path(guesses: Starts, polished: Polished) -> FitPath:
    """What is kept of a polish and its starts."""
    n_further = len(polished.objectives) - len(guesses.posteriors)
    names = [*guesses.posteriors, *(f"k-means ({i})" for i in range(2, n_further + 2))]
    objectives = dict(zip(names, polished.objectives.tolist(), strict=True))
    agreements = dict(zip(names, polished.agreements.tolist(), strict=True)) if len(polished.agreements) else None
    fit = polished.fit
    return FitPath(guesses.spectral, fit.objective, fit.n_iter, fit.converged, objectives, agreements)


class JudgedRows(NamedTuple):
    """Rows and their posteriors at the end of a polish, from which densities are made."""

    table: np.ndarray  # the rows that say how densities are smoothed
    posteriors: np.ndarray  # (n, k), theirs
    weights: np.ndarray | None
    halves: Callable[[int], Halves]  # of so many rows, each to be judged by a fit to the other
    n_judged: int  # rows of either half that are asked
    of_all: np.ndarray | Callable[..., np.ndarray] | None  # the posteriors of all rows, or of a batch


def densities(
    problem: Problem,
    judged: JudgedRows,
    views: Views,
    bandwidth: Any,
) -> tuple[np.ndarray, list[Components]]:
    """Class weights and components from posteriors: averages over all rows, one component per block.

    With "auto", views of several real columns, of angles and of mixed columns are weighted samples, smoothed as
    held-out rows prefer.
    """
    components = _smoothed(problem, judged, views) if is_auto(bandwidth) else {}
    rest = [t for t, block in enumerate(problem.blocks) if block not in components]
    blocks = [problem.blocks[t] for t in rest]
    maps = density_maps(judged.table, views.some(rest), blocks, judged.posteriors, bandwidth)
    domains = domains_of(problem, maps, blocks)
    weights, found = reestimate(problem.data, judged.of_all, maps, blocks, domains, problem.class_weights)
    components |= dict(zip(blocks, found, strict=True))
    return weights, [components[block] for block in problem.blocks]


def _smoothed(problem: Problem, judged: JudgedRows, views: Views) -> dict[int, Components]:
    """The components of blocks whose smoothing is chosen here: several real columns, angles, and mixed columns."""
    found: dict[int, Components] = {}
    for phi, block in zip(views.features, problem.blocks, strict=True):
        space = space_of(phi)
        if block in found or space is None or not in_landmarks(phi):
            continue
        if space.affine:
            found[block] = _sample(problem, block, judged, phi)
        elif space.mixed or (space.own_widths and "bandwidth" in _kernel_params(phi)):
            found[block] = _kernel_sample(problem, block, judged, phi)
    return found


def _kernel_params(phi: Any) -> dict[str, Any]:
    """The parameters of a feature map's own kernel, those of kernels inside it left out."""
    return phi.kernel_.get_params(deep=False)


def _block_rows(problem: Problem, block: int, judged: JudgedRows) -> tuple[np.ndarray, np.ndarray]:
    """The rows of a block's views, one under the other, and how much they count in every class."""
    posteriors = judged.posteriors if judged.weights is None else judged.posteriors * judged.weights[:, None]
    x = stack_block(judged.table, problem.columns, problem.blocks, block)
    return x, np.tile(posteriors, (len(x) // len(posteriors), 1))


def _sample(problem: Problem, block: int, judged: JudgedRows, phi: Any) -> Components:
    """The density that the views of a block share, as rows."""
    every, shares = _block_rows(problem, block, judged)
    x = without_masses(phi, every)
    present = ~np.isnan(x).any(axis=1)
    kernel = within_classes(phi.kernel_, x[present], shares[present])
    domain = cast(Quadrature, domain_of(kernel, x[present], problem.rng, log_unit(kernel, x.shape[1])))
    arguments = x, shares, judged.halves(len(x)), domain, problem.rng, judged.n_judged
    if block in problem.directions:
        return subspace_samples(*arguments, problem.directions[block])
    return around_masses(phi, weighted_samples(*arguments), every, shares)


def _kernel_sample(problem: Problem, block: int, judged: JudgedRows, phi: Any) -> KernelSample:
    """The density that the views of a block share, where their columns are angles, or of several spaces."""
    x, shares = _block_rows(problem, block, judged)
    kernel = phi.kernel_
    if not column_factors(kernel):
        kernel = product_on([kernel] * x.shape[1], [[j] for j in range(x.shape[1])])
    return kernel_samples(x, shares, kernel, judged.halves(len(x)), problem.rng, judged.n_judged)


def _stacked(problem: Problem, judged: JudgedRows, components: Sequence[Components]) -> list[Components]:
    """The densities of one real column stacked with shapes, one per block, and the others as they are."""
    found = dict(zip(problem.blocks, components, strict=True))
    for block, component in found.items():
        x, shares = _block_rows(problem, block, judged)
        stacked = partial(with_shapes, posteriors=shares, halves=judged.halves(len(x)))
        found[block] = with_inside(component, stacked, x[:, 0], BinnedEmbedding)
    return [found[block] for block in problem.blocks]


def domains_of(problem: Problem, maps: Views, blocks: Sequence[int] | None = None) -> list[Quadrature | None]:
    """Where the densities of every view live; views of a block share one. By default, the blocks are the problem's."""
    blocks = problem.blocks if blocks is None else blocks
    shared: dict[int, Quadrature | None] = {}
    for phi, block in zip(maps.features, blocks, strict=True):
        if block not in shared:
            table = without_masses(phi, stack_block(problem.pilot, problem.columns, problem.blocks, block))
            shared[block] = domain_for(phi, table[~np.isnan(table).any(axis=1)], problem.rng)
    return [shared[block] for block in blocks]


def scaled(phi: Any, problem: Problem, t: int, factor: float) -> Any:
    """A feature map whose kernel is ``factor`` times as wide as its rule says."""
    kernel = getattr(phi, "kernel", None)
    if factor == 1 or not isinstance(kernel, Kernel) or not has_width(kernel):
        return phi
    x = without_masses(phi, problem.pilot[:, problem.columns[t]])
    key = "kernel" if "kernel" in phi.get_params(deep=False) else "features__kernel"
    return clone(phi).set_params(**{key: widened(kernel.adapt(x[~np.isnan(x).any(axis=1)]), factor)})
