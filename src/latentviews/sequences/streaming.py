"""Chains from a stream that is seen once."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from latentviews.core.point_masses import laws_in
from latentviews.core.spectral import SpectralFit
from latentviews.core.tables import Columns
from latentviews.mixtures.streaming import StreamFit, start_stream
from latentviews.sequences.chains import stationary
from latentviews.sequences.estimation import MIDDLE, ChainEstimate, SequenceProblem, check_seen
from latentviews.sequences.stretches import triples
from latentviews.sequences.transitions import as_transitions


@dataclass(frozen=True, eq=False)
class ChainStream:
    """All that is kept of a stream of sequences: what is kept of its triples, and the last two rows."""

    fit: StreamFit
    columns: Columns  # of every sensor, in a row
    end: np.ndarray  # (at most 2, n_features), the end of the last sequence

    def add(self, rows: np.ndarray, lengths: np.ndarray | None) -> "ChainStream":
        """The state after more rows: whole sequences of these lengths, or more of the last one (None)."""
        if lengths is None:
            rows = np.concatenate([self.end, rows])
            lengths = np.array([len(rows)])
        three = triples(rows, lengths)
        fit = self.fit.add(three, None, MIDDLE) if len(three) else self.fit
        return replace(self, fit=fit, end=rows[-min(2, lengths[-1]) :].copy())

    def estimate(self, found: SpectralFit) -> ChainEstimate:
        """The chain of all rows summed so far.

        With y(x) = downᵀ U(x) of the middle views, O = E[y(x_t) | h_t] = V diag(π)^(-1/2), and the rows of A solve
        O A_hᵀ = E[y(x_{t+1}) | h_t = h], which the views after the middle have as components: see `transition_matrix`.
        """
        fit, whitening = self.fit, found.whitening
        ahead = np.sum([whitening.down[t].T @ found.vectors[t + 1] for t in fit.middles], axis=0)
        transition = as_transitions(found, ahead)
        components = [laws_in(fit.component_maps.features[t], found.vectors[t], fit.domains[t]) for t in fit.middles]
        return ChainEstimate(stationary(transition), transition, components, self.columns)


def start_chain_stream(problem: SequenceProblem, density_bandwidth: Any, pilot_size: int) -> ChainStream:
    """The state before the first sequences are added."""
    three = problem.triples()
    check_seen(three)
    fit = start_stream(three, density_bandwidth, pilot_size)
    fit = replace(fit, middles=tuple(range(MIDDLE, len(three.columns), 3)))
    return ChainStream(fit, problem.rows.columns, problem.rows.data[:0])
