"""From sequences to a chain and its emissions: the spectral estimate of triples, and Baum–Welch from there."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from latentviews._arrays import take_rows
from latentviews._clusters import cluster_posteriors, kmeans
from latentviews._numbers import column_sums
from latentviews._progress import Report
from latentviews._validation import UnsupportedError, is_auto
from latentviews.core.components import Components
from latentviews.core.embeddings import BinnedEmbedding
from latentviews.core.moments import feature_vectors
from latentviews.core.point_masses import laws_in, with_inside
from latentviews.core.streams import is_array
from latentviews.core.tables import Columns
from latentviews.core.views import ViewFits, Views
from latentviews.densities.reestimation import held_out_bandwidths
from latentviews.densities.smoothers import POINTS
from latentviews.mixtures.cells import SieveView
from latentviews.mixtures.estimation import (
    FULL_STEPS,
    SPECTRAL_FACTORS,
    FitPath,
    JudgedRows,
    Spectral,
    SpectralSettings,
    Starts,
    densities,
    domains_of,
    polish_path,
    polish_rows,
    spectral_steps,
    spectral_summary,
    starts,
)
from latentviews.mixtures.polish import Polished
from latentviews.mixtures.problem import Estimate, Problem
from latentviews.mixtures.sieve import SieveParameters
from latentviews.sequences.baum_welch import (
    CellBatches,
    ChainRows,
    alternating_stretches,
    chain_laws,
    chain_smoothing,
    chain_step,
    chain_sums,
    chain_update,
)
from latentviews.sequences.chains import Smoothing, first_rows, smooth_states, stationary
from latentviews.sequences.chunks import DerivedRows, SummedSequences
from latentviews.sequences.stretches import triple_columns, triples, window_means
from latentviews.sequences.transitions import transition_matrix

REACHES = (5, 20)  # rows on either side of a window's middle
WINDOW_ROWS = 3000  # windows that are clustered
MIDDLE = 1  # the first sensor at time t, in a row of a triple


class SequenceProblem(NamedTuple):
    """What a fit to sequences is given: all rows and the pilot's, read and checked."""

    rows: Problem
    lengths: np.ndarray
    pilot_lengths: np.ndarray
    triple_fits: ViewFits | None = None  # feature maps of triples, where some were made before

    def triples(self) -> Problem:
        """The same of triples of consecutive rows, whose views are every sensor at three times."""
        rows = self.rows
        width, chunked = rows.pilot.shape[1], isinstance(rows.data, SummedSequences)
        data = rows.data.triples() if chunked else triples(rows.data, self.lengths)
        pilot = triples(rows.pilot, self.pilot_lengths) if rows.partial or chunked else data
        seen = pilot if chunked else data
        if not len(seen) or np.isnan(seen).all(axis=0).any():
            raise UnsupportedError("No three rows in a row are seen, so nothing is known of how states follow.")
        return replace(
            rows,
            data=data,
            columns=triple_columns(rows.columns, width),
            blocks=[s for s in range(len(rows.columns)) for _ in range(3)],
            prototypes=[phi for phi in rows.prototypes for _ in range(3)],
            pilot=pilot,
            fits=self.triple_fits,
        )


def check_seen(three: Problem) -> None:
    """Refuse triples in which two views never come together, or three of one sensor; view 3s + τ is sensor s at τ."""
    table = three.data if is_array(three.data) else three.pilot
    here = np.stack([~np.isnan(table[:, view]).any(axis=1) for view in three.columns], axis=1)
    never = np.argwhere(here.T.astype(float) @ here == 0)
    if len(never):
        (s, early), (t, late) = sorted((divmod(int(view), 3) for view in never[0]), key=lambda place: place[1])
        raise UnsupportedError(_never(s, t, late - early, one=len(three.columns) == 3))
    if len(three.columns) == 3 and not here.all(axis=1).any():
        raise UnsupportedError("No three rows in a row are seen, and the third moment needs such rows.")


def _never(s: int, t: int, gap: int, *, one: bool) -> str:
    """A sentence in words of time: a row with sensor s never has sensor t ``gap`` steps later."""
    if gap == 0:
        return f"No row has both view {s} and view {t}, so nothing is known of how they go together."
    steps = "one step" if gap == 1 else "two steps"
    if one or s == t:
        what = "are both seen" if one else f"both have view {s}"
        return f"No two rows {steps} apart {what}, so nothing is known of how states follow."
    return f"No row with view {s} has one with view {t} {steps} after it, so nothing is known of how states follow."


class ChainEstimate(NamedTuple):
    """A chain and the emissions of its states: all that is needed to judge a sequence."""

    start: np.ndarray  # (k,)
    transition: np.ndarray  # (k, k), rows summing to one
    components: list[Components]  # one per view
    columns: Columns

    def log_emissions(self, table: np.ndarray) -> np.ndarray:
        """Σ_s log p_s(x_s | h) over the views a row has, (n, k): zero for a row with none."""
        return Estimate(np.ones(len(self.start)), self.components, self.columns).log_joint(table)

    def smoothing(self, table: np.ndarray, lengths: np.ndarray) -> Smoothing:
        """What whole sequences say of their states."""
        return smooth_states(self.log_emissions(table), self.start, self.transition, lengths)

    def take(self, order: np.ndarray) -> "ChainEstimate":
        """The states in another order."""
        components = [view.take(order) for view in self.components]
        return ChainEstimate(self.start[order], self.transition[np.ix_(order, order)], components, self.columns)


def found_by_moments(problem: SequenceProblem, settings: SpectralSettings, bandwidth: Any) -> "FoundChain":
    """The spectral estimate over all rows."""
    chain, spectral = spectral_chain(problem, settings, problem.rows.prototypes, bandwidth, all_rows=True)
    return FoundChain(chain, FitPath(spectral_summary(spectral.fit)))


def spectral_chain(
    problem: SequenceProblem,
    settings: SpectralSettings,
    maps: Sequence[Any],
    bandwidth: Any,
    *,
    all_rows: bool,
    component_maps: Views | None = None,
) -> tuple[ChainEstimate, Spectral]:
    """Emissions from the middle view of triples, transitions from the step after it; projected to a proper chain."""
    three = problem.triples()
    check_seen(three)
    repeated = [phi for phi in maps for _ in range(3)]
    # three times of a sensor share their features, but given the middle state not their distribution
    settings = settings._replace(reference=MIDDLE, shared_map=False)
    spectral = spectral_steps(three, settings, repeated, bandwidth, all_rows=all_rows, component_maps=component_maps)
    triple_rows = three.data if all_rows else three.pilot
    transition = transition_matrix(triple_rows, spectral.fit)
    rare = 1 / len(triple_rows)  # a move that was not found may still happen: no state is left for good
    transition = (transition + rare) / (1 + len(transition) * rare)
    places = domains_of(three, spectral.maps)
    components = [
        laws_in(spectral.maps.features[t], spectral.fit.vectors[t], places[t])
        for t in range(MIDDLE, len(three.columns), 3)
    ]
    return ChainEstimate(stationary(transition), transition, components, problem.rows.columns), spectral


def _window_posteriors(problem: SequenceProblem) -> dict[str, np.ndarray]:
    """Clusters of the mean embeddings of windows: states that stay are told by the shape of what they emit."""
    rows, found = problem.rows, {}
    phi = feature_vectors(rows.pilot, rows.views())
    scaled_phi = np.concatenate([x / np.sqrt((x**2).sum(axis=1).mean()) for x in phi], axis=1)  # no view drowns others
    for reach in REACHES:
        means = window_means(scaled_phi, problem.pilot_lengths, reach)
        seed = int(rows.rng.integers(2**31))
        clusters = kmeans(means[rows.rng.permutation(len(means))[:WINDOW_ROWS]], rows.rank, seed, 3)
        found[f"windows of {2 * reach + 1}"] = cluster_posteriors(clusters, means)
    return found


def chain_starts(problem: SequenceProblem, settings: SpectralSettings) -> Starts:
    """Starts of a chain: those of its rows, and k-means of windows."""
    rows = problem.rows

    def spectral_start(maps: Sequence[Any], component_maps: Views | None) -> tuple[np.ndarray, Spectral]:
        chain, spectral = spectral_chain(problem, settings, maps, "isj", all_rows=False, component_maps=component_maps)
        return chain.smoothing(rows.pilot, problem.pilot_lengths).posteriors, spectral

    found = starts(rows, spectral_start, SPECTRAL_FACTORS if rows.rank > 1 else (), "Baum–Welch")
    if rows.rank == 1:
        return found
    return found._replace(posteriors=found.posteriors | _window_posteriors(problem))


class FoundChain(NamedTuple):
    """The chain that a fit found, and the way to it."""

    chain: ChainEstimate
    path: FitPath


def polished_chain(
    problem: SequenceProblem, guesses: Starts, polish: Any, density_bandwidth: Any, n_jobs: int | None, report: Report
) -> FoundChain:
    """Baum–Welch on a sieve from the best guess, and densities weighted by its posteriors over all rows."""
    rows = problem.rows
    views = rows.views()
    pilot = ChainRows(polish_rows(rows, views), problem.pilot_lengths)
    polished: Polished = polish.polish(pilot, guesses.each(), rows.rng, n_jobs, report)
    parameters = polished.fit.parameters
    for _ in range(FULL_STEPS if rows.partial else 0):
        parameters = _step_over(problem, polished.views, parameters)
    components = _emissions(problem, polished.views, parameters, views, density_bandwidth)
    _, transition = chain_laws(parameters)
    chain = ChainEstimate(stationary(transition), transition, components, rows.columns)
    _, first, moves = state_counts(problem, chain)
    return FoundChain(_with_laws(chain, first, moves), polish_path(guesses, polished))


def _step_over(problem: SequenceProblem, views: Sequence[SieveView], parameters: SieveParameters) -> SieveParameters:
    """One more step of Baum–Welch, over all rows."""
    data = problem.rows.data
    if isinstance(data, SummedSequences):
        return chain_update(parameters, data.total(partial(_step_sums, views, parameters)))[0]
    return chain_step(CellBatches(data, views), parameters, problem.lengths)[0]


def _step_sums(
    views: Sequence[SieveView], parameters: SieveParameters, table: np.ndarray, lengths: np.ndarray
) -> tuple[Any, ...]:
    return chain_sums(CellBatches(table, views), parameters, lengths)


def state_counts(problem: SequenceProblem, chain: ChainEstimate) -> tuple[np.ndarray, ...]:
    """Expected numbers of rows in every state (k,), of first rows (k,), and of moves (k, k), over all sequences."""
    data, counted = problem.rows.data, partial(_counts, chain)
    return data.total(counted) if isinstance(data, SummedSequences) else counted(data, problem.lengths)


def _counts(chain: ChainEstimate, table: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    smoothed = chain.smoothing(table, lengths)
    firsts = take_rows(smoothed.posteriors, np.flatnonzero(first_rows(lengths)))
    return column_sums(smoothed.posteriors), column_sums(firsts), smoothed.moves


def _with_laws(chain: ChainEstimate, first: np.ndarray, moves: np.ndarray) -> ChainEstimate:
    """The chain with its laws re-estimated; one sequence more is taken to start as the chain goes on for ever."""
    visits = moves.sum(axis=1, keepdims=True)
    transition = np.where(visits > 0, moves / np.where(visits > 0, visits, 1.0), chain.transition)
    first = first + stationary(transition)
    return chain._replace(start=first / first.sum(), transition=transition)


def _emissions(
    problem: SequenceProblem,
    sieve: Sequence[SieveView],
    parameters: SieveParameters,
    views: Views,
    bandwidth: Any,
) -> list[Components]:
    """The emissions of every view, from the posteriors of all rows.

    With "auto", columns are smoothed in every state as held-out stretches prefer. Where rows are in chunks, the pilot
    says how to smooth.
    """
    rows, chunked = problem.rows, isinstance(problem.rows.data, SummedSequences)
    table, lengths = (rows.pilot, problem.pilot_lengths) if chunked else (rows.data, problem.lengths)
    in_states = partial(_in_states, sieve, parameters)
    halves, posteriors = alternating_stretches(lengths), in_states(table, lengths)[1]
    if chunked:
        rows = replace(rows, data=DerivedRows(rows.data, in_states, len(rows.data)))
    of_all = None if chunked else posteriors
    judged = JudgedRows(table, posteriors, None, lambda n_rows: halves, POINTS, of_all)
    _, found = densities(rows, judged, views, bandwidth)
    if not is_auto(bandwidth):
        return found
    smoothed = partial(held_out_bandwidths, posteriors=posteriors, halves=halves)
    return [
        with_inside(view, smoothed, table[:, columns[0]], BinnedEmbedding)
        for view, columns in zip(found, rows.columns, strict=True)
    ]


def _in_states(
    views: Sequence[SieveView], parameters: SieveParameters, table: np.ndarray, lengths: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of sequences and the posteriors of their states."""
    return table, chain_smoothing(CellBatches(table, views), parameters, lengths).posteriors
