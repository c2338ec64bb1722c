"""From data to class weights and components: the spectral estimate, and the polish that starts from it."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import logsumexp
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted

from latentviews import streams
from latentviews._arrays import take_rows, to_numpy
from latentviews._progress import Report
from latentviews._validation import IdentifiabilityWarning, UnsupportedError, allowed_classes, check_count, is_auto
from latentviews.codebooks import cluster_posteriors, kmeans
from latentviews.densities import density_maps, reestimate
from latentviews.domains import Domain, Real
from latentviews.embeddings import Components, components_in, domain_for
from latentviews.features import LandmarkFeatures
from latentviews.kernels import Gaussian, Kernel
from latentviews.polish import Pilot, Polished
from latentviews.spectral import SpectralFit, spectral_fit
from latentviews.tensors import Solver
from latentviews.views import Columns, Views, fit_views, stack_block, with_bandwidth
from latentviews.weighted_samples import WeightedSample, weighted_samples

TINY = np.finfo(float).tiny
SPECTRAL_FACTORS = (1.0, 0.5)  # starts from moments at these widths of the kernel's rule
CLUSTER_ROWS = 4000  # rows that k-means sees
KNOWN_ROWS = 20_000  # rows with known labels that name the classes
JUDGED = 400  # rows of either half that choose how views of several columns are smoothed
FULL_STEPS = 2  # EM steps over all rows after the pilot's have converged


class Problem(NamedTuple):
    """What a fit is given, read and checked."""

    data: Any  # an array, or an iterable of batches
    weights: np.ndarray | None
    columns: Columns
    blocks: list[int]
    prototypes: list[Any]  # an unfitted feature map a view
    pilot: np.ndarray  # some rows of the data, and their weights
    pilot_weights: np.ndarray | None
    partial: bool  # whether there are more rows than the pilot's
    labels: np.ndarray | None  # known classes of all rows, -1 where unknown
    allowed: np.ndarray | None  # (n_pilot, k), zero for classes that a row is known not to be in
    rank: int
    rng: np.random.Generator

    @property
    def codes(self) -> np.ndarray | None:
        """All rows, where they are in memory: discrete views are read off them."""
        return to_numpy(self.data) if streams.is_array(self.data) else None

    @property
    def class_weights(self) -> np.ndarray | None:
        """The weights of all rows; of rows in classes, (n, k), where some classes are known."""
        if self.labels is None:
            return self.weights
        allowed = allowed_classes(self.labels, self.rank)
        return allowed if self.weights is None else allowed * self.weights[:, None]

    def name_classes(self, posteriors: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """The classes in the order in which known labels name them; as they are without labels."""
        if self.labels is None:
            return np.arange(self.rank)
        known = np.flatnonzero(self.labels >= 0)[:KNOWN_ROWS]
        rows = to_numpy(take_rows(self.data, known))
        return _label_order(posteriors(rows), allowed_classes(self.labels[known], self.rank))


class Estimate(NamedTuple):
    """Class weights and components: all that is needed to judge a row."""

    weights: np.ndarray
    components: list[Components]
    columns: Columns

    def take(self, order: np.ndarray) -> "Estimate":
        """The same with the classes in another order; views of a block keep one record."""
        reordered = {id(view): view.take(order) for view in self.components}
        return Estimate(self.weights[order], [reordered[id(view)] for view in self.components], self.columns)

    def log_joint(self, table: Any) -> np.ndarray:
        """Log π_h + Σ_t log p_t(x_t | h) over the views a row has, (n, k)."""
        table = to_numpy(table)
        joint = np.tile(np.log(np.maximum(self.weights, TINY)), (len(table), 1))
        for columns, view in zip(self.columns, self.components, strict=True):
            x = table[:, columns]
            present = ~np.isnan(x).any(axis=1)
            if present.all():
                joint += view.log_density(x)
            elif present.any():
                joint[present] += view.log_density(x[present])
        return joint

    def posteriors(self, table: Any) -> np.ndarray:
        """P(h | row), (n, k)."""
        joint = self.log_joint(table)
        return np.exp(joint - logsumexp(joint, axis=1, keepdims=True))


def hidden_sentence(counts: np.ndarray, weights: np.ndarray) -> str | None:
    """On classes that win no row, given how many rows each wins; None where there are none."""
    hidden = [f"class {h}, of size {weights[h]:.1%}" for h in np.flatnonzero(counts == 0)]
    if not hidden:
        return None
    rest = "it hides beneath others, and may be none of its own" if len(hidden) == 1 else "they hide beneath others"
    return f"No row is most probably in {', or in '.join(hidden)}: {rest}. Try fewer classes."


def warn_of_hidden(weights: np.ndarray, joint: np.ndarray) -> None:
    """Warn of classes that no row is most probably in, given the joint density of rows and classes."""
    counts = np.bincount(joint.argmax(axis=1), minlength=len(weights))[: len(weights)]
    sentence = hidden_sentence(counts, weights)
    if sentence:
        warnings.warn(sentence, IdentifiabilityWarning, stacklevel=5)


class PosteriorMixin(DensityMixin):
    """What follows from ``_log_joint(X)``, the log of the joint density of rows and classes, and the components."""

    _log_joint: Callable[[Any], np.ndarray]
    random_state: Any
    n_components_: int
    n_features_in_: int
    weights_: np.ndarray
    components_: list[Any]
    views_: Columns

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of every row."""
        return self._log_joint(X).argmax(axis=1)

    def predict_proba(self, X: Any) -> np.ndarray:
        """The posterior probability of every class, (n_samples, k)."""
        joint = self._log_joint(X)
        return np.exp(joint - logsumexp(joint, axis=1, keepdims=True))

    def score_samples(self, X: Any) -> np.ndarray:
        """The log-density of every row, over the views it has."""
        return logsumexp(self._log_joint(X), axis=1)

    def score(self, X: Any, y: Any = None) -> float:
        """The mean log-density of the rows."""
        return float(self.score_samples(X).mean())

    def sample(self, n_samples: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Rows drawn from the fitted mixture, and their classes; columns in no view are NaN."""
        check_is_fitted(self)
        n_samples, rng = check_count("n_samples", n_samples), np.random.default_rng(self.random_state)
        labels = rng.choice(self.n_components_, size=n_samples, p=self.weights_)
        rows = np.full((n_samples, self.n_features_in_), np.nan)
        for component in range(self.n_components_):
            members = np.flatnonzero(labels == component)
            for columns, view in zip(self.views_, self.components_, strict=True):
                rows[members[:, None], columns] = view.sample(component, len(members), rng)
        return rows, labels

    def aic(self, X: Any) -> float:
        """Akaike's criterion with the effective number of parameters of the densities; lower is better."""
        return -2 * float(self.score_samples(X).sum()) + 2 * self._n_parameters()

    def bic(self, X: Any) -> float:
        """The Bayesian criterion with the effective number of parameters of the densities; lower is better."""
        log_likelihood = self.score_samples(X)
        return -2 * float(log_likelihood.sum()) + np.log(len(log_likelihood)) * self._n_parameters()

    def _n_parameters(self) -> float:
        """Weights, and the trace of every density's smoother; views of a block count once."""
        views = {id(view): view for view in self.components_}.values()
        return self.n_components_ - 1 + float(sum(view.n_parameters.sum() for view in views))


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
        warnings.warn(
            f"{failure} The polish started from k-means alone, so its answer may be a local optimum.",
            IdentifiabilityWarning,
            stacklevel=5,
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


def _label_order(posteriors: np.ndarray, allowed: np.ndarray | None) -> np.ndarray:
    """The classes in the order in which known labels name them."""
    if allowed is None:
        return np.arange(posteriors.shape[1])
    known = allowed.sum(axis=1) == 1
    return linear_sum_assignment(-allowed[known].T @ posteriors[known])[1]


def kmeans_posteriors(
    table: np.ndarray, used: list[int], rank: int, rng: np.random.Generator, weights: np.ndarray | None = None
) -> np.ndarray:
    """Clusters of the standardised columns, softened a little."""
    table = table[:, used]
    center, spread = np.nanmean(table, axis=0), np.nanstd(table, axis=0)
    table = np.where(np.isnan(table), 0.0, (table - center) / spread)
    few = rng.permutation(len(table))[:CLUSTER_ROWS]
    seed = int(rng.integers(2**31))
    clusters = kmeans(table[few], rank, seed, 3, None if weights is None else weights[few])
    return cluster_posteriors(clusters, table)
