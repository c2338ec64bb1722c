"""What a report says is true of the rows that it is on."""

import html
import re
from dataclasses import replace

import numpy as np
import pytest

from latentviews import MultiViewMixture
from latentviews.cli.common import in_options
from latentviews.datasets import make_multiview
from latentviews.plot.view_densities import ViewDensities
from latentviews.report.contents import Wording, report_contents
from latentviews.report.figures import view_figure
from latentviews.report.page import page


def gathered(model, X, **options):
    defaults = {"columns": None, "source": None, "title": None, "saved": None, "random_state": 0}
    return report_contents(model, X, **{**defaults, **options})


@pytest.fixture(scope="module")
def fitted():
    X = make_multiview(800, 3, random_state=0).X
    model = MultiViewMixture("auto", random_state=0).fit(X)
    return model, X, gathered(model, X)


def shown(contents):
    """The words of a page."""
    return html.unescape(re.sub(r"<[^>]*>", " ", page(contents)))


def test_sizes_on_other_rows_are_the_shares_of_those_rows(fitted):
    model, X, own = fitted
    labels = model.predict(X)
    others = np.vstack([X[labels == 0][:20], X[labels != 0]])

    found = gathered(model, others)

    np.testing.assert_array_equal(own.sizes.weights, model.weights_)
    np.testing.assert_allclose(found.sizes.weights, model.predict_proba(others).mean(axis=0))
    share = np.mean(model.predict(others) == 0)
    assert found.sizes.lower[0] <= share <= found.sizes.upper[0] < model.weights_[0] / 2
    said = shown(found)
    assert "Sizes are shares of these rows" in said
    assert f"class 0 in {found.sizes.weights[0]:.1%}, the fit had {model.weights_[0]:.1%}" in said
    assert "Read it with care" in said
    assert "Sizes are shares of these rows" not in shown(own)


def test_the_test_of_the_fit_is_said_to_be_of_its_rows(fitted):
    model, X, own = fitted
    given = gathered(MultiViewMixture(3, random_state=0).fit(X), X)

    assert own.rank is model.rank_test_
    assert "Singular values in the rows of the fit of the views that show most classes" in shown(own)
    assert "in the rows of the fit" not in shown(given)


def test_the_objective_of_a_start_is_not_called_its_score(fitted):
    *_, own = fitted

    said = shown(own)

    assert "log-likelihood per row" not in said
    assert "objective of the polish, per row" in said
    assert re.search(r"is not what\s+score\s+gives", said)


def test_peaks_lie_within_the_range_of_the_rows():
    ticks = np.linspace(-1.0, 2.0, 301)
    falling = np.stack([np.exp(-ticks), np.exp(ticks)], axis=1)
    rows = np.array([[0.0], [1.0]])
    line = view_figure(ViewDensities(("x",), (ticks,), falling, rows), np.array([0.5, 0.5]))
    plane = np.stack([np.add.outer(-ticks, ticks), np.add.outer(ticks, -ticks)], axis=2) + 4
    pair = ViewDensities(("x", "y"), (ticks, ticks), plane, np.array([[0.0, 0.0], [1.0, 1.0]]))

    peaks = [float(at) for at in re.findall(r"class \d at (-?\d+(?:\.\d+)?)", line.replace("−", "-"))]
    assert len(peaks) >= 2
    assert all(-1e-9 <= peak <= 1 + 1e-9 for peak in peaks)
    said = view_figure(pair, np.array([0.5, 0.5])).replace("−", "-")
    places = [float(at) for both in re.findall(r"class \d at \(([^)]*)\)", said) for at in both.split(",")]
    assert len(places) >= 4
    assert all(-1e-9 <= place <= 1 + 1e-9 for place in places)


def test_one_class_has_no_interval_and_two_have_one_pair(fitted):
    _, X, own = fitted
    one, two = (gathered(MultiViewMixture(k, random_state=0).fit(X), X) for k in (1, 2))

    assert "100\xa0% to 100\xa0%" not in shown(one)
    assert "95 % interval. " not in shown(one)
    assert "1 classes" not in shown(one)
    assert "while 1 was fitted" in shown(one)
    assert "Of all doubt between two classes" not in shown(two)
    assert "Of all doubt between two classes" in shown(own)


def test_a_report_does_not_send_its_reader_to_the_report(fitted):
    *_, own = fitted
    size = own.diagnosis.dependence.pvalue.shape
    tied = replace(own.diagnosis.dependence, pvalue=np.full(size, 0.01), effect=np.full(size, 0.5))

    said = shown(replace(own, diagnosis=replace(own.diagnosis, dependence=tied), wording=Wording(in_options)))

    assert "more of 9 pairs and classes; the table below the checks has all" in said
    assert "see the report" not in said


def test_singular_values_too_small_for_a_logarithm_are_said_to_be_drawn_at_its_foot(fitted):
    *_, own = fitted
    test = own.rank
    spectra = {pair: np.append(values[:3], 0.0) for pair, values in test.spectra.items()}

    said = shown(replace(own, rank=replace(test, spectra=spectra)))

    assert "The axis is logarithmic, and what is too small for it is drawn at its foot." in said
    assert "The axis is logarithmic." in shown(own)
