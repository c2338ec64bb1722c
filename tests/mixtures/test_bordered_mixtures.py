import numpy as np
import pytest
from scipy import integrate

from bordered import DURATIONS, SHARES, density_errors, draw, in_order
from latentviews import Gaussian, HalfLine, Interval, LandmarkFeatures, MultiViewMixture, SmoothedEM, load, save
from latentviews.core.embeddings import domain_for
from latentviews.core.views import Views
from latentviews.densities.reestimation import density_maps, reestimate

CASES = {"durations": (HalfLine(), DURATIONS, 25.0), "shares": (Interval(0, 1), SHARES, 1.0)}
cases = pytest.mark.parametrize(("space", "laws", "high"), CASES.values(), ids=CASES.keys())
polishes = pytest.mark.parametrize("polish", ["auto", None, SmoothedEM()], ids=["sieve", "spectral", "npMSL"])


def fitted(X, space=None, **options):
    kernel = Gaussian() if space is None else Gaussian(space=space)
    return MultiViewMixture(2, kernel=kernel, exchangeable=True, random_state=0, **options).fit(X)


@cases
@polishes
def test_densities_that_end_at_a_border_are_better_with_it(space, laws, high, polish, rng):
    X, _ = draw(laws, 2000, 4, rng)
    fresh, _ = draw(laws, 2000, 4, rng)

    line, known = fitted(X, polish=polish), fitted(X, space, polish=polish)

    assert known.score(fresh) > line.score(fresh)
    errors = [density_errors(model.components_[0], laws, 0.0, high).sum() for model in (line, known)]
    assert errors[1] < errors[0]


@cases
@polishes
def test_densities_have_mass_one_in_their_space_and_none_outside(space, laws, high, polish, rng):
    X, _ = draw(laws, 1000, 3, rng)

    model = fitted(X, space, polish=polish)

    component = model.components_[0]
    ticks = np.linspace(0, min(component.domain.nodes.max() + component.domain.cell[0] / 2, space.high), 20_001)
    np.testing.assert_allclose(integrate.trapezoid(component.density(ticks), ticks, axis=0), 1, atol=2e-3)
    np.testing.assert_array_equal(component.density([-1e-9, -1.0, space.high + 1e-6 if space.high < 9 else -9.0]), 0)
    rows, _ = model.sample(500)
    assert space.contains(rows).all()
    with pytest.raises(ValueError, match=r"Column 0 holds -0\.5, which is outside"):
        model.score_samples(np.array([[-0.5, 0.5, 0.5]]))


def test_the_density_at_zero_is_twice_that_without_a_border(rng):
    X, _ = draw(DURATIONS, 3000, 3, rng)

    line, known = (fitted(X, space).components_[0] for space in (None, HalfLine()))

    # the first class is exponential, of density one there; mirrored kernels leave out what their width loses
    at_zero = [view.density([0.0])[0, in_order(view, DURATIONS)[0]] for view in (line, known)]
    assert at_zero[0] < 0.65
    assert 0.75 < at_zero[1] < 1.1


@pytest.mark.parametrize("polish", ["auto", None])
def test_views_of_several_columns_end_at_their_borders_too(polish, rng):
    X, labels = draw(DURATIONS, 1200, 6, rng)
    options = {"density_bandwidth": "auto" if polish == "auto" else 0.5, "polish": polish, "random_state": 0}
    kernel = Gaussian("median", space=HalfLine())

    model = MultiViewMixture(2, views=[[0, 1], [2, 3], [4, 5]], kernel=kernel, **options).fit(X)

    component = model.components_[0]
    ticks = np.linspace(0, 25, 301)
    points = np.stack(np.meshgrid(ticks, ticks, indexing="ij"), axis=-1).reshape(-1, 2)
    masses = integrate.trapezoid(
        integrate.trapezoid(component.density(points).reshape(301, 301, 2), ticks, axis=0), ticks, axis=0
    )
    np.testing.assert_allclose(masses, 1, atol=0.02)
    np.testing.assert_array_equal(component.density(np.array([[-0.1, 1.0], [1.0, -0.1]])), 0)
    assert model.sample(300)[0].min() >= 0
    agreement = np.mean(model.predict(X) == labels)
    assert max(agreement, 1 - agreement) > 0.9


def test_values_outside_the_space_are_refused(rng):
    X, _ = draw(DURATIONS, 200, 3, rng)
    X[7, 1] = -0.25

    with pytest.raises(ValueError, match=r"Column 1 holds -0.25, which is outside HalfLine\(\)"):
        fitted(X, HalfLine())


def test_a_class_in_place_of_a_space_is_refused(rng):
    X, _ = draw(DURATIONS, 200, 3, rng)

    with pytest.raises(ValueError, match="an object such as"):
        fitted(X, HalfLine)


@cases
def test_saved_mixtures_keep_their_space(space, laws, high, rng, tmp_path):
    X, _ = draw(laws, 400, 3, rng)
    model = fitted(X, space)

    save(model, tmp_path / "model")
    again = load(tmp_path / "model")

    np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))
    np.testing.assert_array_equal(again.sample(20)[0], model.sample(20)[0])
    assert again.kernel.space == space


def test_landmarks_of_three_bordered_columns_keep_the_mass_of_their_densities(rng):
    x, shares = DURATIONS[0].rvs(size=(1200, 3), random_state=rng), np.ones((1200, 1))
    phi = LandmarkFeatures(Gaussian("median", space=HalfLine()), 50, random_state=0).fit(x)

    maps = density_maps(x, Views(([0, 1, 2],), (phi,)), [0], shares, "auto")
    _, (component,) = reestimate(x, shares, maps, [0], [domain_for(maps.features[0], x, rng)])

    assert component.mass == pytest.approx(1, abs=0.05)
    fresh = DURATIONS[0].rvs(size=(1000, 3), random_state=rng)
    assert component.log_density(fresh).mean() > DURATIONS[0].logpdf(fresh).sum(axis=1).mean() - 0.3
