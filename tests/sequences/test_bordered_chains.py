import warnings

import numpy as np
import pytest

from bordered import DURATIONS, draw, in_order
from latentviews import Gaussian, HalfLine, KernelHMM, load, save
from latentviews.sequences.chains import draw_states

TRANSITION = np.array([[0.95, 0.05], [0.1, 0.9]])


def durations(n_samples, rng):
    """A chain of two states, the first with exponential emissions."""
    states = draw_states(np.array([0.5, 0.5]), TRANSITION, np.array([n_samples]), rng)
    parts = [law.rvs(size=n_samples, random_state=rng) for law in DURATIONS]
    return np.where(states == 0, *parts)[:, None]


def test_exponential_emissions_are_better_on_the_half_line(rng):
    X, fresh = durations(3000, rng), durations(3000, rng)

    line, known = (KernelHMM(2, kernel=kernel, random_state=0).fit(X) for kernel in (None, Gaussian(space=HalfLine())))

    assert known.score(fresh) > line.score(fresh)
    views = [model.components_[0] for model in (line, known)]
    at_zero = [view.density([0.0])[0, in_order(view, DURATIONS)[0]] for view in views]
    assert abs(at_zero[1] - 1) < 0.3 < abs(at_zero[0] - 1)


@pytest.mark.parametrize("polish", ["auto", None])
def test_forecasts_stay_on_the_half_line(polish, rng, tmp_path):
    X = durations(3000, rng)
    model = KernelHMM(2, kernel=Gaussian("silverman", space=HalfLine()), polish=polish, random_state=0).fit(X)

    forecast = model.forecast(X, 5)

    assert forecast.sample(200, random_state=0).min() >= 0
    quantiles = forecast.quantile([0.001, 0.5, 0.9])
    assert quantiles.min() >= 0
    # far ahead the states are as in the long run, and so is the mean: 2/3 of the time 1, 1/3 of it 4
    assert model.forecast(X, 80).mean()[-1, 0] == pytest.approx(2, abs=0.6)
    np.testing.assert_array_equal(forecast.density([-0.1]).ravel() < 1e-300, True)
    save(model, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").forecast(X, 5).quantile([0.001, 0.5, 0.9]), quantiles)


def test_emissions_of_several_columns_end_at_their_borders(rng):
    X, _ = draw(DURATIONS, 600, 2, rng)
    X = X[np.argsort(np.arange(600) // 20 % 2, kind="stable")]

    model = KernelHMM(1, kernel=Gaussian(space=HalfLine()), views=[[0, 1]], random_state=0).fit(X)

    assert model.forecast(X, 2).sample(200, random_state=0).min() >= 0
    np.testing.assert_array_equal(model.components_[0].density(np.array([[-0.1, 1.0]])), 0)


def test_negative_durations_are_refused(rng):
    X = durations(200, rng)
    X[3] = -1.0

    with pytest.raises(ValueError, match=r"holds -1, which is outside HalfLine\(\)"):
        KernelHMM(2, kernel=Gaussian(space=HalfLine())).fit(X)


def test_values_outside_the_space_are_refused_before_anything_is_fitted():
    X = -np.random.default_rng(0).exponential(size=(60, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=r"outside HalfLine\(\), the space of its kernel"):
            KernelHMM(2, kernel=Gaussian(space=HalfLine()), random_state=0).fit(X)
