import numpy as np
import pytest

from latentviews import KernelHMM
from latentviews.sequences.chains import draw_states
from latentviews.sequences.independence import looks_independent
from latentviews.sequences.reading import read_sequence_problem


def judged(X, views, seed=0):
    """Whether rows look independent to a model with these sensors."""
    return looks_independent(read_sequence_problem(KernelHMM(2, views=views, random_state=seed), X, None, None))


def two_correlations(n, rng):
    """Columns with the same margins in two states that stay: correlated by 0.8 in one, by -0.8 in the other."""
    states = draw_states(np.full(2, 0.5), np.array([[0.95, 0.05], [0.05, 0.95]]), np.array([n]), rng)
    first, second, other = rng.normal(size=(3, n))
    return np.column_stack([first, np.where(states, 0.8, -0.8) * first + 0.6 * second, other])


@pytest.mark.parametrize("views", [[[0], [1]], [[0], [2], [1]], [[0, 1]], [[0, 2], [1]]], ids=str)
@pytest.mark.parametrize("n_rows", [600, 3000])
def test_rows_whose_states_differ_in_dependence_alone_are_not_called_independent(views, n_rows, rng):
    assert not judged(two_correlations(n_rows, rng), views)


def test_dependence_is_seen_in_the_rows_that_have_both_sensors(rng):
    X = two_correlations(3000, rng)[:, :2]
    X[:1000, 0] = np.nan
    assert not judged(X, [[0], [1]])


@pytest.mark.parametrize("views", [[[0], [1], [2]], [[0, 1, 2]], [[0], [1, 2]]], ids=str)
def test_independent_rows_are_said_to_be_so_whatever_the_sensors(views):
    """At a level of one in twenty for all tests together, seven misses of forty come once in 300 times."""
    mixed = np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.5], [0.0, 0.0, 1.0]])
    draws = [np.random.default_rng(seed).normal(size=(300, 3)) @ mixed for seed in range(40)]
    assert sum(judged(X, views, seed) for seed, X in enumerate(draws)) >= 34
