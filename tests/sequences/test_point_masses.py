"""Chains whose emissions have point masses: dry days and rain."""

import numpy as np
import pytest

from latentviews import KernelHMM, load, save
from latentviews.core.point_masses import WithPointMasses

DRY = np.array([0.85, 0.15])  # P(exactly zero | state)


@pytest.fixture(scope="module")
def rain():
    """Days in two states, one dry and of light rain, one of heavy rain."""
    rng = np.random.default_rng(0)
    states = np.zeros(2000, dtype=int)
    for t in range(1, 2000):
        states[t] = states[t - 1] if rng.random() < 0.9 else 1 - states[t - 1]
    X = np.where(rng.random(2000) < DRY[states], 0.0, rng.gamma(np.array([2.0, 6.0])[states]))
    return X[:, None], states


@pytest.fixture(scope="module")
def model(rain):
    return KernelHMM(2, random_state=0).fit(rain[0])


def found_masses(model):
    return np.sort(model.components_[0].masses[0])[::-1]


def test_emissions_have_point_masses(model, rain):
    X, states = rain

    assert isinstance(model.components_[0], WithPointMasses)
    np.testing.assert_allclose(found_masses(model), DRY, atol=0.06)
    agreement = np.mean(model.predict(X) == states)
    assert max(agreement, 1 - agreement) > 0.9


@pytest.mark.parametrize("options", [{"polish": None}, {"point_masses": [0.0], "pilot_size": 800}], ids=repr)
def test_moments_and_pilots_have_them_too(options, rain):
    model = KernelHMM(2, random_state=0, **options).fit(rain[0])

    np.testing.assert_allclose(found_masses(model), DRY, atol=0.12)


def test_a_stream_that_is_seen_once_has_point_masses(rain):
    model = KernelHMM(2, random_state=0)
    for batch in np.split(rain[0], 2):
        model.partial_fit(batch)

    np.testing.assert_allclose(found_masses(model), DRY, atol=0.12)


def test_without_point_masses_there_are_none(rain):
    model = KernelHMM(2, point_masses=None, polish=None, random_state=0).fit(rain[0])

    assert not isinstance(model.components_[0], WithPointMasses)


def test_forecasts_are_exactly_zero_where_that_is_likely(model, rain):
    X, _ = rain
    ahead = model.forecast(X, 3)

    dry = ahead.states @ model.components_[0].masses[0]
    lower = ahead.quantile([0.05])
    assert (lower == 0.0).all() == bool((dry > 0.05).all())
    drawn, _ = model.sample(3000)
    assert np.mean(drawn == 0) == pytest.approx(np.mean(X == 0), abs=0.08)


def test_a_saved_chain_answers_the_same(model, rain, tmp_path):
    save(model, tmp_path / "chain")

    again = load(tmp_path / "chain")

    np.testing.assert_array_equal(again.score_samples(rain[0]), model.score_samples(rain[0]))
