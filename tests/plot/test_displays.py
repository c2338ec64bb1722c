"""Displays draw what the model says, on the axes they are given."""

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

from catalogue import DISPLAYS, MODELS, OF_OTHER_ROWS
from latentviews import Delta, KernelHMM, Linear, MultiViewMixture, VonMises, diagnose
from latentviews.datasets import make_multiview
from latentviews.diagnosis.dependence import WithinClassDependence
from latentviews.plot import (
    ComponentDisplay,
    DependenceDisplay,
    ItemProfileDisplay,
    ResponsibilityDisplay,
    SpectrumDisplay,
    StateDisplay,
    TopicDisplay,
    offscreen_axes,
)
from latentviews.plot._axes import PALETTE


@pytest.fixture(scope="module")
def data():
    return make_multiview(2000, 3, design="gamma", random_state=0)


@pytest.fixture(scope="module")
def model(data):
    return MultiViewMixture(3, random_state=0).fit(data.X)


@pytest.fixture(scope="module")
def planar():
    """A model with one view of two columns and two of one, and its data."""
    X = make_multiview(2000, 2, n_views=4, random_state=1).X
    return MultiViewMixture(2, views=[[0, 1], [2], [3]], random_state=0).fit(X), X


def curves(panel):
    return [line for line in panel.get_lines() if len(line.get_xdata())]


def area(x, y):
    return float(np.sum((y[1:] + y[:-1]) / 2 * np.diff(x)))


def test_curves_are_densities_times_weights(model):
    display = ComponentDisplay.from_estimator(model)

    for component, panel in zip(model.components_, display.axes_, strict=True):
        for h, line in enumerate(curves(panel)):
            x, y = line.get_data()
            np.testing.assert_allclose(y, model.weights_[h] * component.density(x)[:, h], rtol=1e-12)
            assert line.get_color() == PALETTE[h]


def test_curves_show_all_but_the_far_tails_of_every_class(model):
    display = ComponentDisplay.from_estimator(model)

    for panel in display.axes_:
        masses = [area(*line.get_data()) for line in curves(panel)]
        np.testing.assert_allclose(masses, model.weights_, atol=0.005)


def test_histogram_has_the_mass_of_the_rows_inside_the_axis(model, data):
    display = ComponentDisplay.from_estimator(model, data.X)

    for column, view, panel in zip(data.X.T, display.views, display.axes_, strict=True):
        low, high = view.ticks[0][[0, -1]]
        mass = sum(bar.get_width() * bar.get_height() for bar in panel.patches)
        assert mass == pytest.approx(np.mean((column >= low) & (column <= high)))


def test_without_data_there_is_no_histogram(model):
    assert not any(panel.patches for panel in ComponentDisplay.from_estimator(model).axes_)


def test_a_far_value_does_not_stretch_the_axis(data):
    X = data.X.copy()
    X[0, 0] = 1e3
    model = MultiViewMixture(3, random_state=0).fit(X)

    display = ComponentDisplay.from_estimator(model, X)

    assert display.views[0].ticks[0][-1] < 100


def test_axes_are_labelled_with_feature_names(data):
    X = pd.DataFrame(data.X, columns=["height", "mass", "age"])
    model = MultiViewMixture(3, random_state=0).fit(X)

    display = ComponentDisplay.from_estimator(model, X)

    assert [panel.get_xlabel() for panel in display.axes_] == ["height", "mass", "age"]
    assert [text.get_text()[:7] for text in display.axes_[0].get_legend().get_texts()] == [
        "class 0",
        "class 1",
        "class 2",
    ]


@pytest.fixture(scope="module")
def estimators():
    """A fitted model of every kind that some display draws, by its class."""
    drawn = {kind for kind, _ in DISPLAYS.values()}
    return {type(model.estimator): model.fit() for model in (*MODELS, *OF_OTHER_ROWS) if type(model.estimator) in drawn}


@pytest.mark.parametrize("display", DISPLAYS)
def test_every_display_draws_on_axes_given_and_opens_no_figure(display, estimators):
    from matplotlib import pyplot

    kind, told = DISPLAYS[display]
    panels = {ComponentDisplay: 4, DependenceDisplay: 2, ItemProfileDisplay: 2, TopicDisplay: 2}
    count = panels.get(display, 1)  # one per view, one per class
    axes = offscreen_axes(count)

    found = display.from_estimator(estimators[kind], *told, ax=axes if count > 1 else axes[0])

    assert isinstance(found, display)
    assert all(panel.has_data() for panel in axes)
    assert pyplot.get_fignums() == []


@pytest.mark.parametrize("display", DISPLAYS)
def test_every_display_refuses_an_unfitted_model(display):
    kind, told = DISPLAYS[display]

    with pytest.raises(NotFittedError):
        display.from_estimator(kind(), *told)


@pytest.mark.parametrize("display", DISPLAYS)
def test_every_display_refuses_another_model_in_a_sentence(display, rng):
    _, told = DISPLAYS[display]
    other = StandardScaler().fit(rng.normal(size=(9, 3)))

    with pytest.raises((TypeError, ValueError), match=r"got a StandardScaler|This model has no `spectrum_`"):
        display.from_estimator(other, *told)


def test_displays_of_states_refuse_a_model_without_states(model, data):
    with pytest.raises(TypeError, match=r"^StateDisplay draws a KernelHMM; got a MultiViewMixture\.$"):
        StateDisplay.from_estimator(model, data.X)
    with pytest.raises(TypeError, match=r"^ItemProfileDisplay draws a LatentClass; got a MultiViewMixture\.$"):
        ItemProfileDisplay.from_estimator(model)


def test_the_spectrum_of_states_is_drawn(estimators):
    model = estimators[KernelHMM]

    assert SpectrumDisplay.from_estimator(model, ax=offscreen_axes(1)).n_components == model.n_states_


def test_display_draws_on_the_axes_given(model):
    axes = offscreen_axes(3)

    display = ComponentDisplay.from_estimator(model, ax=axes)

    assert all(panel is given for panel, given in zip(display.axes_, axes, strict=True))
    assert display.figure_ is axes[0].figure


def test_too_few_axes_are_refused(model):
    with pytest.raises(TypeError, match="ax must be Axes of matplotlib; got 'here'"):
        SpectrumDisplay.from_estimator(model, ax="here")
    with pytest.raises(ValueError, match=r"one Axes per view, 3 in all; got 2"):
        ComponentDisplay.from_estimator(model, ax=offscreen_axes(2))


def test_options_reach_the_curves(model):
    display = ComponentDisplay.from_estimator(model, curve_kwargs={"linestyle": "--", "color": "black"})

    assert {line.get_linestyle() for panel in display.axes_ for line in curves(panel)} == {"--"}


def test_a_batch_stream_is_drawn_as_the_array_is(model, data):
    class Batches:
        def __iter__(self):
            return iter(np.array_split(data.X, 3))

    whole, stream = (ComponentDisplay.from_estimator(model, X) for X in (data.X, Batches()))

    for a, b in zip(whole.axes_, stream.axes_, strict=True):
        np.testing.assert_allclose(
            [bar.get_height() for bar in a.patches], [bar.get_height() for bar in b.patches], rtol=1e-12
        )


def test_more_classes_than_colours_differ_in_style(model):
    view = ComponentDisplay.from_estimator(model).views[0]
    k = len(PALETTE) + 1
    many = ComponentDisplay([type(view)(view.names, view.ticks, np.ones((512, k)))], np.full(k, 1 / k)).plot()

    looks = {(line.get_color(), line.get_linestyle()) for line in curves(many.axes_[0])}

    assert len(looks) == k


def test_contours_enclose_the_stated_shares_of_a_class(planar):
    model, X = planar

    display = ComponentDisplay.from_estimator(model, X, n_points=300)

    panel, view = display.axes_[0], display.views[0]
    points, *contours = panel.collections
    assert len(points.get_offsets()) == 300
    for h, contour in enumerate(contours):
        density = view.densities[:, :, h]
        shares = [density[density >= level].sum() / density.sum() for level in contour.levels]
        np.testing.assert_allclose(shares, [0.9, 0.5, 0.1], atol=0.01)
    assert (panel.get_xlabel(), panel.get_ylabel()) == ("column 0", "column 1")


def test_contours_stand_where_the_density_is(planar):
    model, _ = planar

    view = ComponentDisplay.from_estimator(model).views[0]

    first, second = np.meshgrid(*view.ticks, indexing="ij")
    found = model.components_[0].density(np.column_stack([first.ravel(), second.ravel()]))
    np.testing.assert_allclose(view.densities.reshape(-1, 2), found, rtol=1e-12)


def test_codes_are_drawn_as_probabilities_and_angles_round_the_circle(rng):
    z = rng.integers(2, size=2000)
    counts = [rng.binomial(3, np.where(z == 1, 0.9, 0.2)) for _ in range(2)]
    angles = rng.vonmises(np.where(z == 1, 3.0, 0.0), 8.0) % (2 * np.pi)
    X = np.column_stack([*counts, angles]).astype(float)
    model = MultiViewMixture(2, kernel=[Delta(), Delta(), VonMises()], random_state=0).fit(X)

    display = ComponentDisplay.from_estimator(model, X)

    totals = sum(line.get_ydata() for line in curves(display.axes_[0]))
    bars = [bar.get_height() for bar in display.axes_[0].patches]
    np.testing.assert_allclose(bars, np.bincount(counts[0]) / 2000)
    np.testing.assert_allclose(totals, bars, atol=0.05)
    assert sum(bar.get_height() * bar.get_width() for bar in display.axes_[2].patches) == pytest.approx(1.0)


def test_views_of_three_columns_are_refused(rng):
    X = make_multiview(500, 2, n_views=5, random_state=1).X
    model = MultiViewMixture(2, views=[[0, 1, 2], [3], [4]], random_state=0).fit(X)

    with pytest.raises(ValueError, match=r"view 0 has 3 columns. Ask `components_\[0\].density"):
        ComponentDisplay.from_estimator(model)


def test_codes_in_two_columns_are_refused(rng):
    z = rng.integers(2, size=(500, 1))
    X = rng.binomial(3, np.where(z == 1, 0.9, 0.2), size=(500, 4)).astype(float)
    model = MultiViewMixture(2, views=[[0, 1], [2], [3]], kernel=Delta(), random_state=0).fit(X)

    with pytest.raises(ValueError, match="view 0 has codes in two columns"):
        ComponentDisplay.from_estimator(model)


def test_components_without_a_density_are_refused(rng):
    means = np.array([[4.0, 0.0], [0.0, 4.0]])
    X = rng.normal(np.tile(means, 3)[rng.integers(2, size=500)])
    model = MultiViewMixture(2, views=[[0, 1], [2, 3], [4, 5]], kernel=Linear(), random_state=0).fit(X)

    with pytest.raises(TypeError, match="have no density"):
        ComponentDisplay.from_estimator(model)


def test_missing_matplotlib_is_one_sentence(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    with pytest.raises(ImportError, match=r"pip install latentviews\[plot\]"):
        ComponentDisplay.from_estimator(model)


def test_a_spectrum_shows_its_values_and_fills_those_of_the_classes(model):
    display = SpectrumDisplay.from_estimator(model, n_values=8)

    _, classes, rest = display.ax_.get_lines()
    np.testing.assert_allclose(classes.get_ydata(), model.spectrum_[:3])
    np.testing.assert_allclose(rest.get_ydata(), model.spectrum_[3:8])
    assert rest.get_markerfacecolor() == "white"
    assert display.ax_.get_yscale() == "log"


@pytest.mark.parametrize("shape", [(), (200,), (200, 5)])
def test_a_null_band_reaches_the_quantile_of_its_draws(model, shape, rng):
    null = rng.uniform(0.01, 0.05, size=shape)

    display = SpectrumDisplay.from_estimator(model, null=null)

    line = display.ax_.get_lines()[-1]
    expected = np.quantile(np.atleast_1d(null), 0.95, axis=0)
    np.testing.assert_allclose(line.get_ydata(), np.broadcast_to(expected, line.get_ydata().shape))
    assert len(display.ax_.collections) == 1
    assert "95 % of no dependence" in [text.get_text() for text in display.ax_.get_legend().get_texts()]


def test_the_spectrum_of_an_automatic_fit_comes_with_its_null_band(data):
    model = MultiViewMixture("auto", random_state=0).fit(data.X)
    test = model.rank_test_

    display = SpectrumDisplay.from_estimator(model)

    _, classes, rest, band = display.ax_.get_lines()
    np.testing.assert_allclose(classes.get_ydata(), test.spectra[test.strongest][:2])  # the mean is no direction
    assert classes.get_label() == "3 classes"
    assert rest.get_ydata()[0] < band.get_ydata()[0] < classes.get_ydata()[-1]
    assert not hasattr(model.set_params(n_components=3).fit(data.X), "rank_test_")


def test_a_band_does_not_change_the_axis(model):
    bare, banded = (SpectrumDisplay.from_estimator(model, null=null).ax_ for null in (None, 0.02))

    assert bare.get_ylim() == banded.get_ylim()


def test_rounding_does_not_stretch_the_axis_of_a_spectrum():
    display = SpectrumDisplay(np.array([1.0, 0.5, 1e-18, 0.0]), 2).plot()

    assert display.ax_.get_ylim()[0] > 1e-7


def test_a_model_without_a_spectrum_is_refused(rng):
    model = MultiViewMixture(1, random_state=0).fit(rng.normal(size=(200, 3)))
    del model.spectrum_

    with pytest.raises(ValueError, match="no `spectrum_`"):
        SpectrumDisplay.from_estimator(model)


def test_responsibilities_are_sorted_within_classes(model, data):
    display = ResponsibilityDisplay.from_estimator(model, data.X)

    posteriors = model.predict_proba(data.X)
    labels = posteriors.argmax(axis=1)
    for h, line in enumerate(display.ax_.get_lines()[1:]):
        np.testing.assert_allclose(line.get_ydata(), np.sort(posteriors[labels == h, h]))
        assert line.get_color() == PALETTE[h]
    assert len(display.ax_.get_lines()) == 4


def test_a_class_that_no_row_is_in_is_still_named():
    display = ResponsibilityDisplay(np.array([[0.9, 0.1], [0.6, 0.4]])).plot()

    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["class 0 (1.00)", "class 1 (0.00)"]


def test_dependence_is_a_heat_map_a_class_with_stars_where_it_is_significant():
    effect, pvalue = np.array([[0.7, 0.05, np.nan]] * 2), np.array([[0.01, 0.5, np.nan]] * 2)
    dependence = WithinClassDependence(((0, 1), (0, 2), (1, 2)), effect, pvalue, np.full((2, 3), 100))

    display = DependenceDisplay(dependence, ["height", "mass", "age"]).plot()

    assert len(display.axes_) == 2
    (image,) = display.axes_[0].get_images()
    np.testing.assert_array_equal(np.ma.filled(image.get_array(), np.nan), dependence.matrix(0))
    texts = {text.get_position(): text.get_text() for text in display.axes_[0].texts}
    assert (texts[1, 0], texts[2, 0], texts[2, 1]) == ("0.70*", "0.05", "×")
    assert [label.get_text() for label in display.axes_[1].get_xticklabels()] == ["height", "mass", "age"]


def test_dependence_of_a_model_is_that_of_its_diagnosis(model, data):
    display = DependenceDisplay.from_estimator(model, data.X, random_state=0)

    diagnosis = diagnose(model, data.X, random_state=0)
    np.testing.assert_array_equal(display.dependence.effect, diagnosis.dependence.effect)
    with pytest.raises(ValueError, match="one Axes per class, 3 in all; got 1"):
        DependenceDisplay.from_diagnosis(diagnosis, ax=offscreen_axes(1))


def test_a_display_of_a_diagnosis_says_what_it_draws():
    with pytest.raises(
        TypeError, match=r"DependenceDisplay draws a Diagnosis, which `diagnose\(model, X\)` gives; got 5"
    ):
        DependenceDisplay.from_diagnosis(5)
