"""From data to class weights and components: the spectral estimate, and the polish that starts from it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from latentviews._clusters import kmeans_posteriors
from latentviews._progress import Report
from latentviews._validation import IdentifiabilityWarning, UnsupportedError, is_auto, warn_user
from latentviews.core.embeddings import Components, components_in, domain_for
from latentviews.core.features.landmarks import LandmarkFeatures
from latentviews.core.kernels.base import Kernel
from latentviews.core.kernels.real import Gaussian
from latentviews.core.kernels.spaces import Domain, Real
from latentviews.core.spectral import SpectralFit, spectral_fit
from latentviews.core.tensors import Solver
from latentviews.core.views import Views, fit_views, stack_block, with_bandwidth
from latentviews.densities.reestimation import density_maps, reestimate
from latentviews.densities.smoothers import weighted_samples
from latentviews.densities.weighted_samples import WeightedSample
from latentviews.mixtures.polish import Pilot, Polished
from latentviews.mixtures.problem import Estimate, Problem, _label_order

SPECTRAL_FACTORS = (1.0, 0.5)  # starts from moments at these widths of the kernel's rule
JUDGED = 400  # rows of either half that choose how views of several columns are smoothed
FULL_STEPS = 2  # EM steps over all rows after the pilot's have converged


class Spectral(NamedTuple):
    """The spectral steps on some rows, and the maps in which its components are vectors, and its moments were."""

    fit: SpectralFit
    maps: Views
    moments: Views


class SpectralSettings(NamedTuple):
    """How the spectral steps are taken."""

    solver: Solver
    reference: int | None
    two_passes: bool
    shared_map: bool = True  # views that are all of one block are whitened by one map


class Starts(NamedTuple):
    """Guesses of the pilot's posteriors by name, and the spectral fit that the first came from."""

    posteriors: dict[str, np.ndarray]
    spectral: Spectral | None
    spectrum: np.ndarray | None


def spectral_steps(
    problem: Problem, settings: SpectralSettings, maps: Sequence[Any], bandwidth: Any, *, all_rows: bool
) -> Spectral:
    """The papers' four steps, over all rows or the pilot, with densities at ``bandwidth``."""
    views = fit_views(problem.pilot, problem.columns, maps, problem.rng, problem.blocks, problem.codes)
    lift = density_maps(problem.pilot, views, problem.blocks, np.ones((len(problem.pilot), 1)), bandwidth)
    found = spectral_fit(
        problem.data if all_rows else problem.pilot,
        views,
        problem.rank,
        settings.solver,
        problem.rng,
        weights=problem.weights if all_rows else problem.pilot_weights,
        pilot=None if settings.two_passes else (problem.pilot, problem.pilot_weights),
        exchangeable=settings.shared_map and len(set(problem.blocks)) == 1,
        reference=settings.reference,
        lift=lift,
    )
    return Spectral(found, lift, views)


def spectral_estimate(problem: Problem, spectral: Spectral) -> Estimate:
    """Components as records, the spectral vectors averaged over a block."""
    return as_estimate(spectral, problem.blocks, domains_of(problem, spectral.maps))


def as_estimate(spectral: Spectral, blocks: Sequence[int], domains: Sequence[Domain | None]) -> Estimate:
    """Weights that sum to one and components that say where their densities live."""
    found, maps, _ = spectral
    shared = {
        block: np.mean([found.vectors[t] for t, b in enumerate(blocks) if b == block], axis=0) for block in set(blocks)
    }
    parts = zip(maps.features, [shared[block] for block in blocks], domains, strict=True)
    return Estimate(found.weights / found.weights.sum(), [components_in(*part) for part in parts], maps.columns)


def starts(problem: Problem, settings: SpectralSettings) -> Starts:
    """Spectral at two bandwidths, and k-means; a warning where the moments support no spectral start."""
    found: dict[str, np.ndarray] = {}
    first, failure = None, None
    for factor in SPECTRAL_FACTORS if problem.rank > 1 else SPECTRAL_FACTORS[:1]:
        maps = [scaled(phi, problem, t, factor) for t, phi in enumerate(problem.prototypes)]
        if found and maps == problem.prototypes:  # no kernel to scale: the same start again
            continue
        try:
            spectral = spectral_steps(problem, settings, maps, "isj", all_rows=False)
        except UnsupportedError as error:
            failure = failure or error
            continue
        first = first or spectral
        found[f"spectral × {factor:g}"] = spectral_estimate(problem, spectral).posteriors(problem.pilot)
    if first is None:
        warn_user(
            f"{failure} The polish started from k-means alone, so its answer may be a local optimum.",
            IdentifiabilityWarning,
        )
    if problem.rank > 1:
        used = [j for columns in problem.columns for j in columns]
        found["k-means"] = kmeans_posteriors(problem.pilot, used, problem.rank, problem.rng, problem.pilot_weights)
    found = {name: start[:, _label_order(start, problem.allowed)] for name, start in found.items()}
    return Starts(
        found, first, failure.spectrum if first is None and failure else first and first.fit.whitening.spectrum
    )


def polished_estimate(
    problem: Problem,
    guesses: Sequence[np.ndarray],
    polish: Any,
    density_bandwidth: Any,
    n_jobs: int | None,
    report: Report,
) -> tuple[Estimate, Polished]:
    """A polish from the best guess, and densities weighted by its posteriors over all rows."""
    views = fit_views(problem.pilot, problem.columns, problem.prototypes, problem.rng, problem.blocks, problem.codes)
    kernels = [phi.kernel_ if hasattr(phi, "kernel_") else Gaussian() for phi in views.features]
    pilot = Pilot(problem.pilot, problem.columns, problem.blocks, kernels, problem.pilot_weights, problem.allowed)
    polished: Polished = polish.polish(pilot, guesses, problem.rng, n_jobs, report)
    if problem.partial:
        polished = polished.take(problem.name_classes(polished.posteriors))
        for _ in range(FULL_STEPS):
            polished = polished.step_over(problem.data, problem.class_weights)
    return _densities(problem, polished, views, density_bandwidth), polished


def _densities(problem: Problem, polished: Polished, views: Views, bandwidth: Any) -> Estimate:
    """The classes from their posteriors over all rows; those of views of several real columns from the pilot's.

    With "auto" the latter are weighted samples, smoothed as held-out rows prefer.
    """
    posteriors = polished.posteriors(problem.pilot, problem.allowed)
    maps = density_maps(problem.pilot, views, problem.blocks, posteriors, bandwidth)
    domains, blocks = domains_of(problem, maps), problem.blocks
    sampled = [is_auto(bandwidth) and isinstance(phi, LandmarkFeatures) for phi in maps.features]
    sampled = [chosen and isinstance(domain, Real) for chosen, domain in zip(sampled, domains, strict=True)]
    rest = [t for t, chosen in enumerate(sampled) if not chosen]
    shares, found = reestimate(
        problem.data,
        polished.posteriors,
        maps.some(rest),
        [blocks[t] for t in rest],
        [domains[t] for t in rest],
        problem.class_weights,
    )
    components: dict[int, Components] = {blocks[t]: component for t, component in zip(rest, found, strict=True)}
    for t, block in enumerate(blocks):
        if block not in components:
            components[block] = _sample(problem, block, posteriors, domains[t])
    return Estimate(shares, [components[block] for block in blocks], problem.columns)


def _sample(problem: Problem, block: int, posteriors: np.ndarray, domain: Any) -> WeightedSample:
    """The density that the views of a block share, as rows of the pilot."""
    if problem.pilot_weights is not None:
        posteriors = posteriors * problem.pilot_weights[:, None]
    x = stack_block(problem.pilot, problem.columns, problem.blocks, block)
    shares, rows = np.tile(posteriors, (len(x) // len(posteriors), 1)), np.arange(len(x))
    return weighted_samples(x, shares, (rows[::2], rows[1::2]), domain, problem.rng, JUDGED)


def domains_of(problem: Problem, maps: Views) -> list[Domain | None]:
    """Where the densities of every view live; views of a block share one."""
    shared: dict[int, Domain | None] = {}
    for phi, block in zip(maps.features, problem.blocks, strict=True):
        if block not in shared:
            table = stack_block(problem.pilot, problem.columns, problem.blocks, block)
            shared[block] = domain_for(phi, table[~np.isnan(table).any(axis=1)], problem.rng)
    return [shared[block] for block in problem.blocks]


def scaled(phi: Any, problem: Problem, t: int, factor: float) -> Any:
    """A feature map whose kernel is ``factor`` times as wide as its rule says."""
    kernel = getattr(phi, "kernel", None)
    if factor == 1 or not isinstance(kernel, Kernel) or "bandwidth" not in kernel.get_params():
        return phi
    x = problem.pilot[:, problem.columns[t]]
    return with_bandwidth(phi, factor * kernel.adapt(x[~np.isnan(x).any(axis=1)]).bandwidth)
