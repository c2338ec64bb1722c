"""Settings of displays that cannot be: a sentence each, and pictures of what is hardly apart."""

import matplotlib as mpl
import numpy as np
import pytest

from catalogue import DISPLAYS, MODELS, OF_OTHER_ROWS, ROWS
from latentviews import ChangePoints, two_sample_test
from latentviews.plot import (
    ChangePointDisplay,
    ComponentDisplay,
    DensityDisplay,
    ForecastDisplay,
    SpectrumDisplay,
    TopicDisplay,
    WitnessDisplay,
)

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    from matplotlib import pyplot

    pyplot.close("all")


@pytest.mark.parametrize(
    ("display", "settings", "sentence"),
    [
        (ComponentDisplay, {"n_points": 0}, "n_points must be an integer of at least 1; got 0"),
        (ComponentDisplay, {"resolution": 1}, "resolution must be an integer of at least 2; got 1"),
        (
            ComponentDisplay,
            {"curve_kwargs": 3},
            "curve_kwargs must be a dict of settings of matplotlib, or None; got 3",
        ),
        (DensityDisplay, {"columns": 5}, "draws two columns, by their numbers or names; got 5"),
        (DensityDisplay, {"columns": "ab"}, "draws two columns, by their numbers or names; got 'ab'"),
        (DensityDisplay, {"resolution": -1}, "resolution must be an integer of at least 2; got -1"),
        (DensityDisplay, {"n_points": "x"}, "n_points must be an integer of at least 1; got 'x'"),
        (DensityDisplay, {"contour_kwargs": 3}, "contour_kwargs must be a dict"),
        (DensityDisplay, {"X": np.zeros(3)}, "expects a table.*got 3 values in one dimension"),
        (SpectrumDisplay, {"n_values": None}, "n_values must be an integer of at least 1; got None"),
        (SpectrumDisplay, {"null": "x"}, "null must hold real numbers"),
        (SpectrumDisplay, {"null": []}, r"null must be a finite number, or such numbers of shape .* got shape \(0,\)"),
        (SpectrumDisplay, {"null": np.nan}, r"null must be a finite number.* got shape \(1,\), with NaN or infinity"),
        (SpectrumDisplay, {"null": np.zeros((2, 2, 2))}, r"null must be a finite number.* got shape \(2, 2, 2\)"),
        (ForecastDisplay, {"shares": (2,)}, r"shares must be numbers between 0 and 1, such as .* got \(2,\)"),
        (ForecastDisplay, {"shares": 0.5}, "shares must be numbers between 0 and 1"),
        (TopicDisplay, {"names": 5}, "names needs one word per column of X, .*; got 5"),
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
