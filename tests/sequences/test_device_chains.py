"""Passes over a chain in another array library are those in NumPy."""

import array_api_strict
import dask.array as da
import numpy as np
import pytest

from latentviews import KernelHMM
from latentviews._arrays import to_numpy
from latentviews.datasets import make_hmm
from latentviews.sequences import reading
from latentviews.sequences.chains import filter_states, smooth_states


def chain(rng, k, least=0.0):
    transition = rng.dirichlet(np.ones(k), size=k) + least
    return rng.dirichlet(np.ones(k)), transition / transition.sum(axis=1, keepdims=True)


@pytest.mark.cheap
@pytest.mark.parametrize(("k", "lengths"), [(2, [1]), (3, [5, 1, 40, 2]), (4, [700]), (2, [3] * 200)], ids=str)
@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_passes_there_are_those_here(k, lengths, scale, rng):
    log_emissions = scale * rng.normal(size=(sum(lengths), k))
    laws = *chain(rng, k, 1e-3), np.array(lengths)

    here, there = filter_states(log_emissions, *laws), filter_states(array_api_strict.asarray(log_emissions), *laws)

    for ours, theirs in zip(there, here, strict=True):
        np.testing.assert_allclose(to_numpy(ours), theirs, rtol=1e-9, atol=1e-12)
    here, there = smooth_states(log_emissions, *laws), smooth_states(array_api_strict.asarray(log_emissions), *laws)
    for ours, theirs in zip(there, here, strict=True):
        np.testing.assert_allclose(to_numpy(ours), theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.cheap
def test_forbidden_moves_there_are_kept_in_logarithms(rng):
    start, transition = np.array([1.0, 0.0, 0.0]), np.array([[0.9, 0.1, 0], [0, 0.9, 0.1], [0, 0, 1.0]])
    log_emissions = 400 * rng.normal(size=(60, 3))
    laws = start, transition, np.array([60])

    here, there = smooth_states(log_emissions, *laws), smooth_states(array_api_strict.asarray(log_emissions), *laws)

    for ours, theirs in zip(there, here, strict=True):
        np.testing.assert_allclose(to_numpy(ours), theirs, atol=1e-12)
    assert not isinstance(there.posteriors, np.ndarray)
    here, there = filter_states(log_emissions, *laws), filter_states(array_api_strict.asarray(log_emissions), *laws)
    for ours, theirs in zip(there, here, strict=True):
        np.testing.assert_allclose(to_numpy(ours), theirs, atol=1e-12)
        assert not isinstance(ours, np.ndarray)


@pytest.mark.parametrize("polish", [True, False])
def test_a_fit_to_rows_that_stay_where_they_are_is_that_to_a_chunk(polish, monkeypatch):
    X = make_hmm(1500, random_state=0)[0]
    options = {"pilot_size": 600, "random_state": 0} | ({} if polish else {"polish": None})
    in_a_chunk = KernelHMM(3, **options).fit(da.from_array(X, chunks=(1500, 1)))

    monkeypatch.setattr(reading, "is_foreign", lambda table: True)  # with NumPy in the place of a device's library
    there = KernelHMM(3, **options).fit(X)

    np.testing.assert_allclose(there.transition_, in_a_chunk.transition_, rtol=1e-10)
    np.testing.assert_allclose(there.start_, in_a_chunk.start_, rtol=1e-8)
    np.testing.assert_allclose(there.predict_proba(X), in_a_chunk.predict_proba(X), atol=1e-9)
