"""Settings of displays that cannot be: a sentence each, and pictures of what is hardly apart."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from catalogue import DISPLAYS, MODELS, OF_OTHER_ROWS, ROWS
from latentviews import ChangePoints, KernelHMM, LowRankDensity, MultiViewMixture, two_sample_test
from latentviews.baselines import HistogramSpectral
from latentviews.datasets import make_hmm, make_multiview
from latentviews.plot import (
    ChangePointDisplay,
    ComponentDisplay,
    DensityDisplay,
    DependenceDisplay,
    DriftDisplay,
    ForecastDisplay,
    MembershipDisplay,
    ResponsibilityDisplay,
    SpectrumDisplay,
    StateDisplay,
    TopicDisplay,
    WitnessDisplay,
)


@pytest.mark.parametrize(
    ("display", "settings", "sentence"),
    [
        (ComponentDisplay, {"n_points": -1}, "n_points must be an integer of at least 0; got -1"),
        (ComponentDisplay, {"resolution": 1}, "resolution must be an integer of at least 2; got 1"),
        (
            ComponentDisplay,
            {"curve_kwargs": 3},
            "curve_kwargs must be a dict of settings of matplotlib, or None; got 3",
        ),
        (DensityDisplay, {"columns": 5}, "draws two columns, by their numbers or names; got 5"),
        (DensityDisplay, {"columns": "ab"}, "draws two columns, by their numbers or names; got 'ab'"),
        (DensityDisplay, {"resolution": -1}, "resolution must be an integer of at least 2; got -1"),
        (DensityDisplay, {"n_points": "x"}, "n_points must be an integer of at least 0; got 'x'"),
        (DensityDisplay, {"contour_kwargs": 3}, "contour_kwargs must be a dict"),
        (DensityDisplay, {"X": np.zeros(3)}, "expects a table.*got 3 values in one dimension"),
        (SpectrumDisplay, {"n_values": None}, "n_values must be an integer of at least 1; got None"),
        (SpectrumDisplay, {"null": "x"}, "null must hold real numbers"),
        (SpectrumDisplay, {"null": []}, r"null must be a finite number, or such numbers of shape .* got shape \(0,\)"),
        (SpectrumDisplay, {"null": np.nan}, r"null must be a finite number.* got shape \(1,\), with NaN or infinity"),
        (SpectrumDisplay, {"null": np.zeros((2, 2, 2))}, r"null must be a finite number.* got shape \(2, 2, 2\)"),
        (ForecastDisplay, {"shares": (2,)}, r"shares must be numbers between 0 and 1, such as .* got \(2,\)"),
        (ForecastDisplay, {"shares": 0.5}, "shares must be numbers between 0 and 1"),
        (ForecastDisplay, {"shares": ("0.5",)}, "shares must be numbers between 0 and 1"),
        (SpectrumDisplay, {"ax": Figure()}, "ax must be Axes of matplotlib"),
        (TopicDisplay, {"names": 5}, "names must be a list of words, one per column of X; got 5"),
    ],
)
def test_a_setting_that_cannot_be_is_told(display, settings, sentence):
    kind, told = DISPLAYS[display]
    model = next(one for one in MODELS + OF_OTHER_ROWS if type(one.estimator) is kind).fit()
    rows = told[:1] if "X" not in settings else (settings.pop("X"),)

    with pytest.raises((TypeError, ValueError), match=sentence):
        display.from_estimator(model, *rows, *told[1:], **settings)


@pytest.mark.parametrize("rows", [None, "series", ROWS[:, 0], ROWS[:, :1]])
def test_what_is_no_series_of_the_fit_is_told(rows):
    model = ChangePoints(random_state=0).fit(ROWS)

    with pytest.raises((TypeError, ValueError), match=r"ChangePoints (expects|is expecting)|columns|features"):
        ChangePointDisplay.from_estimator(model, rows)


@pytest.mark.parametrize(
    ("x", "sentence"),
    [
        ("sample", "x must hold real numbers"),
        (np.array([1.0, np.nan, 2.0]), "x contains NaN or infinity"),
        (np.zeros((5, 2)), "x and y need the same columns; got 2 and 1"),
    ],
)
def test_what_is_no_sample_is_told(x, sentence):
    y = np.random.default_rng(0).normal(size=50)
    test = two_sample_test(y, y + 1, n_permutations=19, random_state=0)

    with pytest.raises(ValueError, match=sentence):
        WitnessDisplay(test, x, y).plot()


@pytest.mark.parametrize("width", [1, 2])
def test_samples_that_hardly_vary_are_drawn(width):
    x = 1e9 + 1e-6 * np.arange(20.0)[:, None] * np.ones(width)
    test = two_sample_test(x, x[:10], n_permutations=19, random_state=0)

    panel = WitnessDisplay(test, x, x[:10]).plot().ax_

    low, high = panel.get_xlim()
    assert low < 1e9 < high
    assert high - low > 100


@pytest.mark.parametrize("columns", [(0, 1), [0, 1], np.array([0, 1]), pd.Index([0, 1]), pd.Series([0, 1])])
def test_two_columns_are_any_list_of_two(columns):
    model = next(one for one in MODELS if type(one.estimator) is LowRankDensity).fit()

    assert DensityDisplay.from_estimator(model, columns=columns, resolution=9).names == ["column 0", "column 1"]


@pytest.mark.parametrize("settings", [{"levels": 5}, {"cmap": "Blues"}, {"colors": "red"}])
def test_settings_of_contours_take_the_place_of_ours(settings):
    model = next(one for one in MODELS if type(one.estimator) is LowRankDensity).fit()

    assert DensityDisplay.from_estimator(model, resolution=9, contour_kwargs=settings).ax_.collections


def test_short_names_of_settings_of_curves_take_the_place_of_ours():
    X = make_multiview(100, 2, random_state=0).X
    model = MultiViewMixture(2, polish=None, random_state=0).fit(X)

    display = ComponentDisplay.from_estimator(model, curve_kwargs={"c": "red", "ls": ":"})

    assert {(line.get_color(), line.get_linestyle()) for line in display.axes_[0].lines} == {("red", ":")}


def test_dollars_of_names_are_no_formula():
    X = pd.DataFrame(make_multiview(100, 2, random_state=0).X, columns=["$x_$", "$20-$40", "c"])
    model = MultiViewMixture(2, polish=None, random_state=0).fit(X)

    for display in (ComponentDisplay.from_estimator(model, X), DependenceDisplay.from_estimator(model, X)):
        display.figure_.canvas.draw()

    assert ComponentDisplay.from_estimator(model).axes_[0].get_xlabel() == r"\$x_\$"


def test_a_series_with_masked_values_is_drawn_without_them():
    X = np.ma.array(make_hmm(120, random_state=0).X[:, :1])
    model = KernelHMM(2, random_state=0).fit(X)
    X[50:60] = -9999
    X[50:60] = np.ma.masked

    assert np.isnan(StateDisplay.from_estimator(model, X).values[50:60]).all()


def test_what_displays_are_made_of_may_be_lists_and_frames():
    shares = [[0.9, 0.1], [0.2, 0.8]]

    assert ResponsibilityDisplay(shares).plot().ax_.lines
    assert ResponsibilityDisplay(pd.DataFrame(shares)).plot().ax_.lines
    assert DriftDisplay([0.1, 0.9], 0.5, 50).plot().ax_.lines
    assert MembershipDisplay(shares, ["a", "b"], [0.5, 0.5]).plot().ax_.patches
    assert ForecastDisplay([1.0, 2.0], [[1.0, 2.0, 3.0]], [0.1, 0.5, 0.9]).plot().ax_.lines
    states = pd.Series([0, 0, 0, 1, 1], index=[4, 3, 2, 1, 0])
    named = StateDisplay(np.arange(5.0), states).plot().ax_.patches
    assert [(band.get_x(), band.get_label()) for band in named] == [(-0.5, "state 0"), (2.5, "state 1")]
    with pytest.raises(ValueError, match="posteriors needs a row per object and a column per class"):
        ResponsibilityDisplay(np.empty((0, 2))).plot()
    with pytest.raises(ValueError, match="The spectrum has no singular value"):
        SpectrumDisplay([]).plot()


def test_views_of_baselines_are_not_drawn():
    model = HistogramSpectral(2, random_state=0).fit(make_multiview(200, 2, random_state=0).X)

    with pytest.raises(TypeError, match="those of HistogramSpectral have no space to be drawn over"):
        ComponentDisplay.from_estimator(model)


@pytest.mark.parametrize("shares", [(0.5,), (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)])
def test_a_forecast_has_any_number_of_bands(shares):
    model = next(one for one in MODELS if type(one.estimator) is KernelHMM).fit()

    assert len(ForecastDisplay.from_estimator(model, ROWS, 2, shares=shares).ax_.collections) == len(shares)
