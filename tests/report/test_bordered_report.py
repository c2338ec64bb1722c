import numpy as np
import pytest

from bordered import DURATIONS, SHARES, draw
from latentviews import Gaussian, HalfLine, Interval, MultiViewMixture, diagnose
from latentviews.plot import ComponentDisplay
from latentviews.plot.view_densities import row_densities
from latentviews.report import write_report


@pytest.fixture(scope="module")
def fit():
    rng = np.random.default_rng(0)
    durations, labels = draw(DURATIONS, 900, 4, rng)
    shares = np.where(labels == 0, *(law.rvs(size=900, random_state=rng) for law in SHARES))
    X = np.column_stack([durations, shares])
    kernels = [Gaussian(space=HalfLine())] * 3 + [Gaussian(space=Interval(0, 1))]
    return MultiViewMixture(2, views=[[0, 1], [2], [3], [4]], kernel=kernels, random_state=0).fit(X), X


def test_a_diagnosis_tests_views_inside_their_spaces(fit):
    model, X = fit

    found = diagnose(model, X, n_permutations=19, random_state=0)

    np.testing.assert_allclose(found.mass[1:], 1, atol=1e-3)
    assert not found.outside
    assert diagnose(model, X + 30 * (np.arange(5) == 2), n_permutations=1, random_state=0).outside == {"2": 1.0}


def test_displays_stop_at_borders(fit):
    model, X = fit

    views = ComponentDisplay.from_estimator(model, X).plot().views

    assert views[1].ticks[0][0] == 0
    assert 0 <= views[3].ticks[0][0] < views[3].ticks[0][-1] <= 1
    assert all(ticks[0] == 0 for ticks in views[0].ticks)


def test_a_density_of_rows_does_not_fall_off_at_the_border(rng):
    rows = rng.exponential(size=(20_000, 1))

    view = row_densities(rows, np.ones((20_000, 1)), "x", HalfLine())

    assert view.densities[0, 0] == pytest.approx(1, abs=0.1)


def test_the_report_is_written(fit, tmp_path):
    model, X = fit

    write_report(model, X, tmp_path / "report.html")

    assert "the median and the middle half of a number" in (tmp_path / "report.html").read_text()
