"""Displays of sequences draw what the model says."""

import numpy as np
import pandas as pd
import pytest

from latentviews import ChangePoints, KernelHMM, PredictiveStateModel, Sieve, TwoStageRegression
from latentviews.datasets import make_hmm
from latentviews.plot import (
    ChangePointDisplay,
    ComponentDisplay,
    ForecastDisplay,
    StateDisplay,
    TransitionDisplay,
    offscreen_axes,
)


@pytest.fixture(scope="module")
def fitted():
    X = make_hmm(800, random_state=0).X
    return KernelHMM(3, polish=Sieve((2.0,)), random_state=0).fit(X), X


def test_bands_lie_where_the_states_are(fitted):
    model, X = fitted
    display = StateDisplay.from_estimator(model, X, ax=offscreen_axes(1))
    states = model.predict(X)
    assert len(display.ax_.patches) == 1 + np.count_nonzero(np.diff(states))
    drawn = [patch.get_extents() for patch in display.ax_.patches]  # polygons before matplotlib 3.9, then rectangles
    edges = display.ax_.transData.inverted().transform([extent.min for extent in drawn])[:, 0]
    np.testing.assert_allclose(edges, np.flatnonzero(np.append(True, np.diff(states))) - 0.5)
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert sorted(labels) == [f"state {h}" for h in np.unique(states)]


def test_the_heat_map_holds_the_transition_matrix(fitted):
    model, _ = fitted
    display = TransitionDisplay.from_estimator(model, ax=offscreen_axes(1))
    np.testing.assert_array_equal(display.ax_.images[0].get_array(), model.transition_)
    assert [text.get_text() for text in display.ax_.texts] == [f"{p:.2f}" for p in model.transition_.ravel()]


def test_emission_densities_are_drawn_as_components(fitted):
    model, X = fitted
    display = ComponentDisplay.from_estimator(model, X, ax=offscreen_axes(1))
    assert len(display.axes_[0].get_lines()) == 3


def test_a_column_may_be_given_by_its_name(fitted):
    model, X = fitted
    frame = pd.DataFrame({"sensor": X[:, 0]})
    named = KernelHMM(3, polish=Sieve((2.0,)), random_state=0).fit(frame)

    for display in (
        StateDisplay.from_estimator(named, frame, column="sensor", ax=offscreen_axes(1)),
        ForecastDisplay.from_estimator(named, frame, 3, column="sensor", ax=offscreen_axes(1)),
        ChangePointDisplay.from_estimator(ChangePoints(random_state=0).fit(frame[:100]), frame[:100], column="sensor"),
    ):
        assert display.name == "sensor"
    with pytest.raises(ValueError, match="column must be a number from 0 to 0 or a name, 'sensor'; got 'duration'"):
        StateDisplay.from_estimator(named, frame, column="duration")
    with pytest.raises(ValueError, match="column must be a number from 0 to 0; got 'duration', and columns have no"):
        StateDisplay.from_estimator(model, X, column="duration")


@pytest.mark.parametrize("kind", ["states", "predictive states"])
def test_the_fan_shows_quantiles(kind, fitted):
    model, X = fitted
    if kind == "predictive states":
        X = pd.DataFrame({"sensor": X[:, 0]})
        dynamics = TwoStageRegression((5,), (1e-2,), (5,))
        model = PredictiveStateModel(dynamics, horizon=6, random_state=0).fit(X)
    display = ForecastDisplay.from_estimator(model, X, 6, shares=(0.8,), ax=offscreen_axes(1))
    expected = model.forecast(X, 6).quantile([0.1, 0.5, 0.9])[:, 0]
    np.testing.assert_allclose(display.quantiles, expected)
    past, median = display.ax_.get_lines()[:2]
    np.testing.assert_allclose(median.get_ydata(), expected[:, 1])
    np.testing.assert_allclose(past.get_ydata(), np.asarray(X)[-24:, 0])
    assert display.ax_.get_ylabel() == ("sensor" if kind == "predictive states" else "column 0")


@pytest.mark.parametrize(("column", "message"), [(1, "Column 1 is in no view"), (2, "from 0 to 1; got 2")])
def test_a_column_without_a_forecast_gets_a_sentence(column, message, fitted):
    X = np.repeat(fitted[1], 2, axis=1)
    model = KernelHMM(2, views=[[0]], polish=Sieve((2.0,)), random_state=0).fit(X)
    with pytest.raises(ValueError, match=message):
        ForecastDisplay.from_estimator(model, X, 3, column=column, ax=offscreen_axes(1))
    assert ForecastDisplay.from_estimator(model, X, 3, column=-2, ax=offscreen_axes(1)).ax_.get_ylabel()
