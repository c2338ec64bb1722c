from itertools import product

import numpy as np
import pytest

from latentviews.sequences import banded, chains
from latentviews.sequences.chains import (
    best_path,
    draw_states,
    filter_states,
    first_rows,
    smooth_densities,
    smooth_states,
    stationary,
)

pytestmark = pytest.mark.cheap


def chain(rng, k, sparse=False):
    transition = rng.dirichlet(np.ones(k), size=k)
    if sparse:  # a state is left only for the next
        transition = np.triu(transition) * (np.arange(k)[None] <= np.arange(k)[:, None] + 1)
        transition /= transition.sum(axis=1, keepdims=True)
    return (np.eye(k)[0] if sparse else rng.dirichlet(np.ones(k))), transition


def enumerated(log_emissions, start, transition):
    """Every path of one sequence and the log of its joint probability with the rows."""
    n, k = log_emissions.shape
    paths = np.array(list(product(range(k), repeat=n)))
    with np.errstate(divide="ignore"):
        logs = np.log(start)[paths[:, 0]] + log_emissions[np.arange(n), paths].sum(axis=1)
        logs = logs + np.log(transition)[paths[:, :-1], paths[:, 1:]].sum(axis=1)
    return paths, logs


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("k", "n"), [(1, 3), (2, 1), (2, 8), (3, 7), (4, 5)])
def test_passes_equal_enumeration_of_all_paths(sparse, k, n, rng):
    start, transition = chain(rng, k, sparse)
    log_emissions = rng.normal(scale=3, size=(n, k))
    paths, logs = enumerated(log_emissions, start, transition)
    chances = np.exp(logs - logs.max())
    likelihood, chances = logs.max() + np.log(chances.sum()), chances / chances.sum()
    lengths = np.array([n])

    smoothed = smooth_states(log_emissions, start, transition, lengths)
    filtered = filter_states(log_emissions, start, transition, lengths)
    path = best_path(log_emissions, start, transition, lengths)

    states = np.stack([(paths == h).T @ chances for h in range(k)], axis=1)
    moves = [[chances @ ((paths[:, :-1] == g) & (paths[:, 1:] == h)).sum(axis=1) for h in range(k)] for g in range(k)]
    np.testing.assert_allclose(smoothed.posteriors, states, atol=1e-10)
    np.testing.assert_allclose(smoothed.moves, moves, atol=1e-10)
    assert smoothed.log_likelihood.sum() == pytest.approx(likelihood, abs=1e-10)
    assert filtered.log_likelihood.sum() == pytest.approx(likelihood, abs=1e-10)
    np.testing.assert_allclose(filtered.filtered[-1], states[-1], atol=1e-10)
    assert path.log_probability == pytest.approx(logs.max(), abs=1e-10)
    np.testing.assert_array_equal(path.states, paths[logs.argmax()])


def literal(log_emissions, start, transition):
    """The textbook recursions in logarithms, a step at a time."""
    with np.errstate(divide="ignore"):
        log_start, log_transition = np.log(start), np.log(transition)
    n = len(log_emissions)
    forward, backward = np.empty_like(log_emissions), np.zeros_like(log_emissions)
    forward[0] = log_start + log_emissions[0]
    for t in range(1, n):
        forward[t] = np.logaddexp.reduce(forward[t - 1][:, None] + log_transition, axis=0) + log_emissions[t]
    for t in range(n - 2, -1, -1):
        backward[t] = np.logaddexp.reduce(log_transition + log_emissions[t + 1] + backward[t + 1], axis=1)
    total = np.logaddexp.reduce(forward[-1])
    return np.exp(forward + backward - total), total


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("n", [2, 4, 5, 31, 257, 3001])
def test_blocks_of_steps_equal_a_step_at_a_time(sparse, n, rng):
    start, transition = chain(rng, 3, sparse)
    log_emissions = rng.normal(scale=20, size=(n, 3))
    posteriors, total = literal(log_emissions, start, transition)
    smoothed = smooth_states(log_emissions, start, transition, np.array([n]))
    np.testing.assert_allclose(smoothed.posteriors, posteriors, atol=1e-8)  # logs of size n lose their last digits
    assert smoothed.log_likelihood.sum() == pytest.approx(total, abs=1e-12 * np.abs(log_emissions).sum())
    assert smoothed.moves.sum() == pytest.approx(n - 1, rel=1e-10)


@pytest.mark.parametrize("sparse", [False, True])
def test_sequences_do_not_know_of_each_other(sparse, rng):
    start, transition = chain(rng, 3, sparse)
    lengths = rng.integers(1, 100, size=40)
    log_emissions = rng.normal(scale=3, size=(lengths.sum(), 3))
    together = smooth_states(log_emissions, start, transition, lengths)
    filtered, path = (f(log_emissions, start, transition, lengths) for f in (filter_states, best_path))
    ends = np.cumsum(lengths)
    moves, log_probability = np.zeros((3, 3)), 0.0
    for begin, end in zip(ends - lengths, ends, strict=True):
        alone = np.array([end - begin])
        one = smooth_states(log_emissions[begin:end], start, transition, alone)
        np.testing.assert_allclose(together.posteriors[begin:end], one.posteriors, atol=1e-10)
        np.testing.assert_allclose(together.log_likelihood[begin:end], one.log_likelihood, atol=1e-10)
        only = filter_states(log_emissions[begin:end], start, transition, alone)
        np.testing.assert_allclose(filtered.filtered[begin:end], only.filtered, atol=1e-10)
        np.testing.assert_allclose(filtered.predicted[begin:end], only.predicted, atol=1e-10)
        best = best_path(log_emissions[begin:end], start, transition, alone)
        np.testing.assert_array_equal(path.states[begin:end], best.states)
        moves, log_probability = moves + one.moves, log_probability + best.log_probability
    np.testing.assert_allclose(together.moves, moves, atol=1e-9)
    assert path.log_probability == pytest.approx(log_probability)


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_that_no_state_explains_do_not_underflow(sparse, rng):
    """Differences of thousands in the log-density, in a chain with and without forbidden moves."""
    start, transition = chain(rng, 3, sparse)
    log_emissions = 3000 * rng.normal(size=(200, 3))
    posteriors, total = literal(log_emissions, start, transition)
    smoothed = smooth_states(log_emissions, start, transition, np.array([200]))
    assert smoothed.log_likelihood.sum() == pytest.approx(total, rel=1e-12)
    np.testing.assert_allclose(smoothed.posteriors, posteriors, atol=1e-8)


@pytest.mark.parametrize("leave", [1e-3, 1e-40])
def test_rows_that_the_row_before_says_nothing_of_are_solved_for_in_fewer_at_once(leave, rng):
    """Every row speaks for the other state, so a guess from the row before is far off, and messages grow too fast."""
    transition = np.array([[1 - leave, leave], [leave, 1 - leave]])
    log_emissions = np.where(np.arange(1500)[:, None] % 2 == [0, 1], 0.0, -rng.uniform(5, 9, size=(1500, 1)))
    posteriors, total = literal(log_emissions, np.array([0.5, 0.5]), transition)
    smoothed = smooth_states(log_emissions, np.array([0.5, 0.5]), transition, np.array([1500]))
    assert smoothed.log_likelihood.sum() == pytest.approx(total, rel=1e-12)
    np.testing.assert_allclose(smoothed.posteriors, posteriors, atol=1e-8)


@pytest.mark.parametrize("lengths", [[40], [8, 7, 1, 9, 15], [1] * 40])
def test_rows_may_be_solved_for_in_any_parts(lengths, rng, monkeypatch):
    """Sequences end with a system of eight rows, inside one, and go on in the next."""
    start, transition = chain(rng, 3)
    given = 2 * rng.normal(size=(40, 3)), start, transition, np.array(lengths)
    whole = *filter_states(*given), *smooth_states(*given)
    monkeypatch.setattr(banded, "SIZES", (1, 8, 8))
    parts = *filter_states(*given), *smooth_states(*given)
    for part, same in zip(parts, whole, strict=True):
        np.testing.assert_allclose(part, same, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("lengths", [[40], [8, 7, 1, 9, 15]])
def test_few_states_and_many_are_solved_for_in_two_ways(lengths, rng, monkeypatch):
    """Systems with ones on the diagonal, and with one over the emissions there; some of which are none."""
    start, transition = chain(rng, 3)
    given = np.where(rng.random((40, 3)) < 0.2, -800.0, 2 * rng.normal(size=(40, 3))), start, transition, lengths
    found = []
    for few in (0, 3):
        monkeypatch.setattr(banded, "FEW_STATES", few)
        found.append((*filter_states(*given), *smooth_states(*given)))
    posteriors, total = literal(*given[:3]) if lengths == [40] else (found[0][3], found[0][5].sum())
    for part, same in zip(*found, strict=True):
        np.testing.assert_allclose(part, same, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found[1][3], posteriors, atol=1e-8)
    assert found[1][5].sum() == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("sparse", [False, True])
def test_densities_say_what_their_logs_say(sparse, rng):
    start, transition = chain(rng, 3, sparse)
    density, lengths = np.exp(20 * rng.normal(size=(60, 3))), np.array([25, 35])
    of_logs = smooth_states(np.log(density), start, transition, lengths)
    for part, same in zip(smooth_densities(density, start, transition, lengths), of_logs, strict=True):
        np.testing.assert_allclose(part, same, rtol=1e-10, atol=1e-12)


def test_a_chain_that_never_moves_keeps_the_state_that_late_rows_speak_for():
    """The first rows leave state 1 a share of e^-2000, below any float, and the last ones bring it back."""
    log_emissions = np.array([[0.0, -1000.0], [0.0, -1000.0], [-3000.0, 0.0]])
    smoothed = smooth_states(log_emissions, np.array([0.5, 0.5]), np.eye(2), np.array([3]))
    np.testing.assert_allclose(smoothed.posteriors, [[0, 1]] * 3, atol=1e-300)
    assert best_path(log_emissions, np.array([0.5, 0.5]), np.eye(2), np.array([3])).states.tolist() == [1, 1, 1]


def test_the_stationary_law_is_kept(rng):
    _, transition = chain(rng, 4)
    law = stationary(transition)
    np.testing.assert_allclose(law @ transition, law, atol=1e-12)
    np.testing.assert_allclose(stationary(np.eye(3)), 1 / 3)


def test_of_several_stationary_laws_the_one_nearest_to_uniform_is_given():
    """States 0 and 1 are never left together, nor is state 2, so laws are (2p/3, p/3, 1 - p)."""
    transition = np.array([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [0.0, 0.0, 1.0]])
    laws = np.linspace(0, 1, 100_001)[:, None] * [2 / 3, 1 / 3, -1] + [0, 0, 1]

    nearest = laws[np.sum((laws - 1 / 3) ** 2, axis=1).argmin()]

    np.testing.assert_allclose(stationary(transition), nearest, atol=1e-5)


def test_moves_that_are_no_more_than_rounding_make_no_law():
    leave = 1e-14
    np.testing.assert_allclose(stationary(np.array([[1 - leave, leave], [3 * leave, 1 - 3 * leave]])), 0.5, atol=1e-10)


def test_a_chain_whose_every_move_has_a_chance_is_rescaled_and_others_are_kept_in_logarithms():
    even, least = np.array([0.5, 0.5]), np.array([chains.REACHED, 1.0])
    below = np.array([np.nextafter(chains.REACHED, 0), 1.0])
    assert chains.REACHED < 1e-20

    assert chains._all_reached(even, np.array([even, even]))
    assert chains._all_reached(least, np.array([even, even]))
    assert chains._all_reached(even, np.array([even, least]))
    assert not chains._all_reached(below, np.array([even, even]))
    assert not chains._all_reached(even, np.array([even, below]))


@pytest.mark.parametrize("sparse", [False, True])
def test_chunks_of_rows_are_those_of_all_at_once(sparse, rng, monkeypatch):
    start, transition = chain(rng, 3, sparse)
    lengths = np.array([40, 1, 7, 60])
    log_emissions = rng.normal(scale=3, size=(lengths.sum(), 3))

    whole = [f(log_emissions, start, transition, lengths) for f in (smooth_states, best_path)]
    monkeypatch.setattr(chains, "CHUNK", 10)
    parts = [f(log_emissions, start, transition, lengths) for f in (smooth_states, best_path)]

    np.testing.assert_allclose(parts[0].moves, whole[0].moves, atol=1e-12)
    np.testing.assert_array_equal(parts[1].states, whole[1].states)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("blocks", [(1, 1), (2, 2), (7, 7), (64, 64)])
def test_blocks_of_any_length_give_the_same_messages(sparse, blocks, rng, monkeypatch):
    start, transition = chain(rng, 3, sparse)
    lengths = np.array([3, 1, 30, 66])
    log_emissions = rng.normal(scale=3, size=(100, 3))
    passes = [(log, start, transition, first_rows(lengths)) for log in (log_emissions, 1e4 + log_emissions)]

    expected = [algebra.forward(*one) for algebra in (chains.LOGS, chains.MAX) for one in passes]
    monkeypatch.setattr(chains, "BLOCKS", blocks)
    found = [algebra.forward(*one) for algebra in (chains.LOGS, chains.MAX) for one in passes]

    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.log_scale, other.log_scale, atol=1e-9)
        np.testing.assert_allclose(np.exp(one.before), np.exp(other.before), atol=1e-9)
        np.testing.assert_allclose(np.exp(one.after), np.exp(other.after), atol=1e-9)


def test_logarithms_are_added_as_probabilities_or_the_largest_counts(rng):
    matrix, values = rng.normal(size=(3, 3)), rng.normal(size=(3, 5, 2))
    values[:, 0, 0], matrix[0, 1] = -np.inf, -np.inf
    terms = matrix[:, :, None, None] + values[:, None]

    np.testing.assert_allclose(chains.LOGS.move(matrix, values), np.logaddexp.reduce(terms, axis=0))
    np.testing.assert_allclose(chains.LOGS.total(1e4 * values), np.logaddexp.reduce(1e4 * values, axis=0))
    np.testing.assert_array_equal(chains.MAX.move(matrix, values), terms.max(axis=0))
    np.testing.assert_array_equal(chains.MAX.total(values), values.max(axis=0))


def test_drawn_states_are_where_the_chances_fall(rng):
    """A state is the number of sums of chances that a uniform number has reached."""
    start, transition = chain(rng, 4)
    lengths = np.array([5, 1, 30])
    chances = np.random.default_rng(5).random(36)

    states = draw_states(start, transition, lengths, np.random.default_rng(5))

    first = first_rows(lengths)
    laws = [start if first[t] else transition[states[t - 1]] for t in range(36)]
    expected = [np.searchsorted(np.cumsum(law), chance) for law, chance in zip(laws, chances, strict=True)]
    np.testing.assert_array_equal(states, expected)


def test_first_rows_are_where_sequences_begin():
    np.testing.assert_array_equal(first_rows(np.array([2, 1, 3])), [True, False, True, True, False, False])


def test_drawn_states_follow_the_chain(rng):
    start, transition = np.array([0.2, 0.8]), np.array([[0.9, 0.1], [0.3, 0.7]])
    lengths = np.full(4000, 10)
    states = draw_states(start, transition, lengths, rng)
    first = first_rows(lengths)
    assert abs(states[first].mean() - 0.8) < 5 * np.sqrt(0.16 / 4000)  # five standard errors
    came, went = states[:-1][~first[1:]], states[1:][~first[1:]]
    for g in range(2):
        n = (came == g).sum()
        assert abs(went[came == g].mean() - transition[g, 1]) < 5 * np.sqrt(0.25 / n)


def test_a_state_that_is_never_entered_makes_no_trouble_in_long_sequences():
    """Blocks of many steps are scaled on the way, also where no path leads on."""
    rng = np.random.default_rng(0)
    transition = np.array([[0.0, 0.5, 0.5], [0.0, 0.9, 0.1], [0.0, 0.1, 0.9]])
    log_emissions, start = rng.normal(size=(1000, 3)), np.array([0.0, 0.5, 0.5])
    whole = smooth_states(log_emissions, start, transition, np.array([1000]))
    part = smooth_states(log_emissions[:, 1:], start[1:], transition[1:, 1:], np.array([1000]))
    np.testing.assert_allclose(whole.posteriors, np.column_stack([np.zeros(1000), part.posteriors]), atol=1e-12)
    np.testing.assert_allclose(whole.moves[1:, 1:], part.moves, atol=1e-9)
