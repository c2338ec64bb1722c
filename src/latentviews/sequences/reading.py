"""From what a user gives a chain to the problem that is solved, or a sentence on what no fit can answer."""

from dataclasses import replace
from typing import Any

import numpy as np

from latentviews._arrays import is_foreign, to_numpy
from latentviews._validation import is_auto
from latentviews.core.categories import chosen_codes
from latentviews.core.checked import CheckedChunks
from latentviews.core.kernels.bandwidths import median
from latentviews.core.kernels.spaces import space_of
from latentviews.core.selection import RankTest, dependence_rank
from latentviews.core.streams import is_array
from latentviews.core.tables import check_varying, read_sequences, rows_inside, training_rows
from latentviews.core.views import (
    ViewFits,
    feature_prototypes,
    fitting_maps,
    has_density,
    with_bandwidth,
)
from latentviews.mixtures.problem import Problem
from latentviews.sequences.chains import first_rows
from latentviews.sequences.chunks import DeviceSequences, chunked_sequences
from latentviews.sequences.estimation import SequenceProblem
from latentviews.sequences.stretches import check_lengths, draw_windows, stretches

PILOT = 20_000


def read_sequence_problem(model: Any, X: Any, y: Any, lengths: Any) -> SequenceProblem:
    """Sequences, views and their feature maps as the parameters of a `KernelHMM` have them."""
    rank, size = 1 if is_auto(model.n_states) else int(model.n_states), model.pilot_size
    rng = np.random.default_rng(model.random_state)
    table, columns = read_sequences(model, X, reset=True)
    if isinstance(table, CheckedChunks):
        table = chunked_sequences(table, lengths)
        lengths = np.concatenate(table.lengths)
    lengths = check_lengths(lengths, len(table), y)
    if is_foreign(table):  # few rows are all looked at in main memory
        table = DeviceSequences(table, lengths) if len(table) > size else to_numpy(table)
    _check_lengths(model, lengths, rank)
    names = getattr(model, "feature_names_in_", None)
    codes = chosen_codes(model)
    prototypes = feature_prototypes(model.kernel, model.features, model.bandwidth, columns, names, codes)
    blind = [phi for phi in prototypes if not has_density(phi)]
    if blind:
        kernel = type(getattr(blind[0], "kernel", blind[0])).__name__
        raise TypeError(
            f"States are told by their emission densities, and {kernel} has none; use Gaussian, Laplace, Matern, "
            "VonMises or Delta."
        )
    chosen, blocks = draw_windows(lengths, size, rng), list(range(len(columns)))
    rows = training_rows(table, size, rng, draw=lambda table, *_: _chosen(table, chosen))
    if len(rows.pilot) < rank:
        raise ValueError(f"{rank} states need as many rows in the pilot; got {len(rows.pilot)}. Raise `pilot_size`.")
    check_varying(table if is_array(table) else rows.pilot, columns, names)
    rows = rows_inside(rows, columns, prototypes, names)
    default = model.kernel is None and model.features is None and model.bandwidth is None
    prototypes = fitting_maps(prototypes, rows.pilot, columns, blocks, model.point_masses, scales=default)
    if default:
        prototypes = [
            _in_standard_units(phi, rows.pilot[:, group]) for phi, group in zip(prototypes, columns, strict=True)
        ]
    views = Problem(**vars(rows), columns=columns, blocks=blocks, prototypes=prototypes, rank=rank, rng=rng)
    problem = SequenceProblem(views, lengths, stretches(chosen, first_rows(lengths)))
    if not is_auto(model.n_states):
        return problem
    test, fits = _rank_test(problem)
    return problem._replace(rows=replace(views, rank=test.n_components, rank_test=test), triple_fits=fits)


def _in_standard_units(phi: Any, x: np.ndarray) -> Any:
    """The map of several columns with a bandwidth for each, so that the largest does not drown the others."""
    whole, space = x[~np.isnan(x).any(axis=1)], space_of(phi)
    if x.shape[1] == 1 or not len(whole) or space is None or not space.affine:
        return phi
    spread = whole.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)  # a column that varies may not do so in the rows of the pilot
    return with_bandwidth(phi, spread * (median(whole / spread) or 1.0))


def _chosen(table: Any, numbers: np.ndarray) -> tuple[Any, None, None]:
    """Some rows of an array or of chunks."""
    return (table[numbers] if is_array(table) else table.take(numbers)[0]), None, None


def _check_lengths(model: Any, lengths: np.ndarray, rank: int) -> None:
    """Refuse too few rows."""
    n_rows = int(lengths.sum())
    if lengths.max() < 3:
        raise ValueError(
            f"{type(model).__name__} learns from three consecutive rows, and no sequence has so many; got "
            f"n_samples = {n_rows} in {len(lengths)} sequence(s), the longest of {lengths.max()} row(s)."
        )
    if n_rows < rank:
        raise ValueError(f"{rank} states need at least {rank} rows; got n_samples = {n_rows}.")


def _rank_test(problem: SequenceProblem) -> tuple[RankTest, ViewFits]:
    """The rank of the dependence between rows that follow each other, and the feature maps that were made for it."""
    three = problem.triples()
    times = [tuple(range(time, len(three.columns), 3)) for time in range(3)]  # groups of sensors at one time each
    return dependence_rank(three.pilot, three.views(), three.rng, units=times), three.view_fits
