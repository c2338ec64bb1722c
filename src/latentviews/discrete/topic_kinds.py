"""Topics of words, of draws in groups, and of views that differ: from data to parts."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from latentviews._numbers import as_shares
from latentviews._sentences import warn_user
from latentviews._validation import IdentifiabilityWarning, UnsupportedError
from latentviews.core.embeddings import Embedding, domain_for
from latentviews.core.tables import Columns
from latentviews.core.tensors import Solver
from latentviews.core.views import fit_views
from latentviews.discrete.bags import BagMoments, bag_moments, long_enough, word_projection
from latentviews.discrete.concentration import moment_error, read_concentration, steadier
from latentviews.discrete.dirichlet import (
    DirichletParts,
    chosen_concentration,
    dirichlet_parts,
    find_concentration,
    view_parts,
)
from latentviews.discrete.topic_em import EMSettings, TopicFit, first_fit, fit_topics

FLOOR = 0.01  # of a start's topics: the share of the corpus's own frequencies in each
MOST = 1.0  # of α_h where EM begins, if the prior is learnt
JACKKNIFE_LOTS = 8  # of documents, for the error of the moments' concentration
ALONE = 0.1  # the concentration per topic where moments say nothing of it


class TopicEstimate(NamedTuple):
    """What a fit finds, the commonest topic first."""

    weights: np.ndarray  # (k,), shares of the topics over all bags
    concentration: float
    components: Any  # (k, n_words), or a tuple of embeddings, one per view
    spectrum: np.ndarray | None
    raw_weights: np.ndarray | None = None  # as the eigenvalues say; None where moments gave no start
    n_iter: int = 0
    converged: bool = True
    prior: np.ndarray | None = None  # (k,), α where EM learnt it


class WordSettings(NamedTuple):
    """How topics of words are fitted."""

    rank: int
    concentration: float | None  # None where it is to be estimated
    smoothing: float
    max_iter: int
    tol: float
    solver: Solver

    def chosen(self, parts_at: Callable[[float], DirichletParts]) -> float:
        """The concentration given, or that at which weights sum to one, which tells it from three parts on."""
        instead = ", or of words what EM's topics say" if self.max_iter else ""
        return chosen_concentration(self.rank, self.concentration, lambda: find_concentration(parts_at), instead)

    @property
    def em(self) -> EMSettings:
        """How EM goes on."""
        return EMSettings(self.smoothing, self.max_iter, self.tol, self.concentration is None)

    def parts(self, moments: BagMoments, concentration: float, seed: int = 0) -> DirichletParts:
        """The parts that mean moments say at a concentration."""
        return dirichlet_parts(moments, self.rank, concentration, self.solver, np.random.default_rng(seed))


def word_parts(moments: BagMoments, settings: WordSettings, rng: np.random.Generator) -> DirichletParts:
    """The parts that mean moments say, at the concentration given or at the one where weights sum to one."""
    seed = int(rng.integers(2**31))

    def at(concentration: float) -> DirichletParts:
        return settings.parts(moments, concentration, seed)

    return at(settings.chosen(at))


def topics_of_words(bags: sparse.csr_array, settings: WordSettings, rng: np.random.Generator) -> TopicEstimate:
    """Moments, then EM from the topics that they say; EM from documents where they say none."""
    try:
        projection, spectrum = checked_projection(bags, settings.rank, rng)
        start = word_parts(bag_moments(bags, projection).means(), settings, rng)
    except UnsupportedError as error:
        if not settings.max_iter:
            raise
        warn_user(
            f"{error} EM starts from documents at random; the topics may be one of many local optima.",
            IdentifiabilityWarning,
        )
        start, spectrum, projection = random_parts(bags, settings, rng), None, None
    if not settings.max_iter:
        topics = as_shares(np.maximum(start.vectors, 0.0), axis=0)
        return TopicEstimate(as_shares(start.weights), start.concentration, topics.T, spectrum, start.weights)
    fit = _polished_words(bags, start, settings)
    order = np.argsort(-fit.shares.mean(axis=0), kind="stable")
    return TopicEstimate(
        fit.shares.mean(axis=0)[order],
        _told_concentration(bags, projection, start.concentration, fit, settings),
        np.ascontiguousarray(fit.topics[:, order].T),
        spectrum,
        None if spectrum is None else start.weights[order],
        fit.n_iter,
        fit.converged,
        fit.prior[order],
    )


def checked_projection(bags: sparse.csr_array, rank: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The projection of words and its spectrum, or a sentence where documents are too few or too short."""
    long = int(long_enough(bags).sum())
    if long < rank or bags.shape[1] < rank:
        raise UnsupportedError(
            f"{rank} topics need as many words, and as many documents of three words or more; got {bags.shape[1]} "
            f"words and {long} such documents."
        )
    return word_projection(bags, rank, rng)


def random_parts(bags: sparse.csr_array, settings: WordSettings, rng: np.random.Generator) -> DirichletParts:
    """Topics as mean documents of random lots of them."""
    lots = rng.dirichlet(np.full(settings.rank, 0.1), size=bags.shape[0])
    concentration = settings.concentration or ALONE * settings.rank
    return DirichletParts(np.full(settings.rank, 1 / settings.rank), bags.T @ lots, concentration, np.nan)


def _polished_words(bags: sparse.csr_array, start: DirichletParts, settings: WordSettings) -> TopicFit:
    """EM from topics; where the concentration is not given, the prior of shares is learnt on the way."""
    frequencies = as_shares(np.asarray(bags.sum(axis=0)).ravel() + 1e-9)
    topics = (1 - FLOOR) * as_shares(np.maximum(start.vectors, 0.0), axis=0) + FLOOR * frequencies[:, None]
    k, learn = len(start.weights), settings.concentration is None
    strength = min(start.concentration, MOST * k) if learn else start.concentration
    prior = strength * as_shares(np.maximum(start.weights, 1e-3 / k))
    return fit_topics(bags, first_fit(bags, topics, prior), settings.em)


def _told_concentration(
    bags: sparse.csr_array, projection: np.ndarray | None, by_moments: float, fit: TopicFit, settings: WordSettings
) -> float:
    """The concentration given, or else the steadier of what moments and EM's topics say."""
    if settings.concentration is not None:
        return settings.concentration
    by_topics = read_concentration(bags, fit, settings.em)
    if projection is None or settings.rank < 3:  # moments say nothing of it
        return by_moments if by_topics is None else by_topics
    lots = [bag_moments(bags[lot::JACKKNIFE_LOTS], projection) for lot in range(JACKKNIFE_LOTS)]
    return steadier(by_moments, moment_error(lots, by_moments, settings.parts), by_topics)


def topics_of_draws(
    rows: np.ndarray, bags: sparse.csr_array, prototype: Any, settings: WordSettings, rng: np.random.Generator
) -> TopicEstimate:
    """Groups of draws: features of a kernel in place of words, projected to the span of their pair moment."""
    columns = (list(range(rows.shape[1])),)
    (phi,) = fit_views(rows, columns, [prototype], rng, [0]).features
    features = np.asarray(phi.transform(rows))
    if int(long_enough(bags).sum()) < 1:
        raise UnsupportedError("Moments need groups of at least three draws; there is none.")
    whole = bag_moments_of_pairs(bags, features)
    values, basis = np.linalg.eigh(whole)
    moments = bag_moments(bags, features @ basis[:, ::-1][:, : settings.rank], features).means()
    parts = word_parts(moments, settings, rng)
    embedding = Embedding(domain_for(phi, rows, rng), phi, parts.vectors)
    return TopicEstimate(as_shares(parts.weights), parts.concentration, (embedding,), values[::-1], parts.weights)


def bag_moments_of_pairs(bags: sparse.csr_array, features: np.ndarray) -> np.ndarray:
    """The pair moment of features, (D, D), where D is small."""
    bags = bags[long_enough(bags)]
    n = np.asarray(bags.sum(axis=1)).ravel()
    pair = 1 / (n * (n - 1) * len(n))
    totals = bags @ features
    return totals.T @ (totals * pair[:, None]) - features.T @ (features * (bags.T @ pair)[:, None])


def topics_of_views(
    rows: np.ndarray, columns: Columns, prototypes: list[Any], settings: WordSettings, rng: np.random.Generator
) -> TopicEstimate:
    """Rows whose views each draw a part of their own by the shares of the row."""
    views = fit_views(rows, columns, prototypes, rng, list(range(len(columns))))
    phis = [np.asarray(phi.transform(rows[:, group])) for phi, group in zip(views.features, columns, strict=True)]
    seed = int(rng.integers(2**31))

    def at(concentration: float) -> DirichletParts:
        return view_parts(phis, settings.rank, concentration, settings.solver, np.random.default_rng(seed))[0]

    concentration = settings.chosen(at)
    parts, whitening = view_parts(phis, settings.rank, concentration, settings.solver, np.random.default_rng(seed))
    ends = np.cumsum([phi.shape[1] for phi in phis])[:-1]
    embeddings = tuple(
        Embedding(domain_for(phi, rows[:, group], rng), phi, vectors)
        for phi, group, vectors in zip(views.features, columns, np.split(parts.vectors, ends), strict=True)
    )
    return TopicEstimate(as_shares(parts.weights), parts.concentration, embeddings, whitening.spectrum, parts.weights)
