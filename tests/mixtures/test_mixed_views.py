"""Views whose columns are of several spaces: numbers, codes and angles side by side."""

import numpy as np
import pandas as pd
import pytest

from latentviews import Delta, Gaussian, KernelHMM, LandmarkFeatures, MultiViewMixture, Sieve, VonMises, load, save
from latentviews.core.kernels.quadrature import Quadrature
from latentviews.densities.kernel_samples import KernelSample, kernel_samples
from latentviews.plot import ComponentDisplay

QUICK = Sieve(factors=(2.0,), max_iter=20)
VIEWS = [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
MIXED = Gaussian().on([0]) * Delta().on([1]) * VonMises().on([2])


def mixed_view(y, rng):
    """A number, a code and an angle that lies across the cut for class 0."""
    first = y == 0
    number = np.where(first, rng.normal(size=len(y)), 1 + rng.gamma(2, size=len(y)))
    code = np.where(first, *(rng.choice(3, size=len(y), p=p) for p in ([0.7, 0.2, 0.1], [0.1, 0.3, 0.6])))
    angle = np.where(first, rng.vonmises(3, 4, size=len(y)), rng.vonmises(-1, 3, size=len(y)))
    return np.column_stack([number, code, angle])


@pytest.fixture(scope="module")
def fitted():
    """Rows, their classes, and a fit."""
    rng = np.random.default_rng(0)
    y = rng.choice(2, size=500, p=[0.6, 0.4])
    X = np.hstack([mixed_view(y, rng) for _ in range(3)])
    return X, y, MultiViewMixture(2, views=VIEWS, kernel=MIXED, polish=QUICK, random_state=0).fit(X)


def test_classes_are_found_in_mixed_views(fitted):
    X, y, model = fitted

    assert np.mean(model.predict(X) == y) > 0.97
    assert np.isfinite(model.score_samples(X)).all()
    assert np.isfinite(model.bic(X))


def test_the_density_integrates_and_sums_to_one(fitted):
    _, _, model = fitted
    view = model.components_[0]
    numbers, angles = np.linspace(-6, 16, 160), np.linspace(-np.pi, np.pi, 60, endpoint=False)

    grid = np.stack(np.meshgrid(numbers, [0.0, 1.0, 2.0], angles, indexing="ij"), axis=-1).reshape(-1, 3)
    cell = (numbers[1] - numbers[0]) * (angles[1] - angles[0])

    np.testing.assert_allclose(view.density(grid).sum(axis=0) * cell, 1, atol=1e-5)
    np.testing.assert_allclose(view.mass, 1)
    assert not view.density([[0.0, 0.5, 0.0]]).any()  # no such code


def test_where_columns_are_independent_the_density_is_the_product_of_those_of_single_columns(rng):
    numbers, angles = rng.normal(size=8), rng.uniform(-3, 3, size=5)
    u, v = rng.dirichlet(np.ones(8)), rng.dirichlet(np.ones(5))
    rows = np.stack(np.meshgrid(numbers, angles, indexing="ij"), axis=-1).reshape(-1, 2)
    kernel = Gaussian(0.4).on([0]) * VonMises(0.3).on([1])
    domain = Quadrature(rows, np.ones(40), np.zeros(2), np.zeros(2), np.ones(2), space=kernel.space)
    x = np.column_stack([rng.normal(size=20), rng.uniform(-3, 3, size=20)])

    found = KernelSample(domain, rows, np.outer(u, v).reshape(-1, 1), (kernel,)).density(x)

    expected = (Gaussian(0.4).gram(x[:, [0]], numbers[:, None]) @ u) * (
        VonMises(0.3).gram(x[:, [1]], angles[:, None]) @ v
    )
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-12)


def test_marginals_are_those_of_single_columns(fitted):
    X, y, model = fitted
    view = model.components_[0]

    codes, shares = view.marginal(1)
    numbers, below = view.marginal(0)

    np.testing.assert_array_equal(codes, [0, 1, 2])
    expected = view.expectation(lambda x: x[:, 1] <= 1)
    np.testing.assert_allclose(shares[1], expected, atol=1e-12)
    median = [np.interp(0.5, below[:, h], numbers) for h in range(2)]
    truth = [np.median(X[y == h, 0]) for h in range(2)]
    np.testing.assert_allclose(median, truth, atol=0.35)


def test_draws_look_like_the_rows(fitted):
    X, _, model = fitted
    drawn, labels = model.set_params(random_state=1).sample(4000)

    assert set(np.unique(drawn[:, 1])) <= {0.0, 1.0, 2.0}
    np.testing.assert_allclose(np.bincount(labels) / 4000, model.weights_, atol=0.04)
    np.testing.assert_allclose(np.mean(drawn[:, 1]), np.mean(X[:, 1]), atol=0.15)
    assert np.abs(drawn[:, 2]).max() <= np.pi


def test_a_mixed_view_is_predicted_from_the_others(fitted):
    X, y, model = fitted

    found = model.conditional(X, 0)

    assert found.mean().shape == (500, 3)
    for h, direction in enumerate((3.0, -1.0)):
        turned = found.mean()[y == h, 2] - direction
        assert np.abs(np.angle(np.exp(1j * np.median(turned)))) < 0.25
    assert found.density(X[:4, :3]).shape == (500, 4)
    assert set(np.unique(found.sample(0)[:, 1])) <= {0.0, 1.0, 2.0}


def test_without_a_polish_the_spectral_estimate_has_a_density_too(fitted):
    X, y, _ = fitted
    model = MultiViewMixture(2, views=VIEWS, kernel=MIXED, polish=None, random_state=0).fit(X)

    assert np.mean(model.predict(X) == y) > 0.9
    assert model.sample(5)[0].shape == (5, 9)


def test_columns_may_be_named(fitted):
    X, _, model = fitted
    names = [f"{name}{t}" for t in range(3) for name in ("x", "code", "psi")]
    kernels = [Delta().on([f"code{t}"]) * Gaussian().on([f"x{t}"]) * VonMises().on([f"psi{t}"]) for t in range(3)]
    named = MultiViewMixture(2, views=VIEWS, kernel=kernels, polish=QUICK, random_state=0)

    named.fit(pd.DataFrame(X, columns=names))

    np.testing.assert_array_equal(named.predict(pd.DataFrame(X, columns=names)), model.predict(X))


def test_categories_beside_numbers_may_be_text(fitted):
    X, _, model = fitted
    names = [f"{name}{t}" for t in range(3) for name in ("x", "code", "psi")]
    frame = pd.DataFrame(X, columns=names)
    for t in range(3):
        frame[f"code{t}"] = np.array(["low", "middle", "top"])[X[:, 3 * t + 1].astype(int)]
    by_place = MultiViewMixture(2, views=VIEWS, kernel=MIXED, polish=QUICK, random_state=0).fit(frame)

    np.testing.assert_array_equal(by_place.predict(frame), model.predict(X))
    assert set(by_place.sample(20)[0][:, 1]) <= {"low", "middle", "top"}
    with pytest.raises(ValueError, match="are not numbers"):
        MultiViewMixture(2, views=VIEWS, kernel=Gaussian().on([0, 1]) * VonMises().on([2])).fit(frame)


def test_a_feature_map_takes_a_kernel_on_columns(fitted):
    X, y, _ = fitted
    model = MultiViewMixture(2, views=VIEWS, features=LandmarkFeatures(MIXED), polish=QUICK, random_state=0).fit(X)

    assert np.mean(model.predict(X) == y) > 0.97


def test_saved_and_loaded_it_says_the_same(fitted, tmp_path):
    X, _, model = fitted
    save(model, tmp_path / "mixed.lv")

    np.testing.assert_array_equal(load(tmp_path / "mixed.lv").score_samples(X), model.score_samples(X))


def test_a_product_that_does_not_say_its_columns_is_refused_by_fit(fitted):
    X, _, _ = fitted

    with pytest.raises(ValueError, match=r"real and discrete. on 2 columns must say which columns each takes"):
        MultiViewMixture(2, views=[[0, 1], [3, 4], [6, 7]], kernel=Gaussian() * Delta()).fit(X)


def test_angles_beside_numbers_are_drawn_and_codes_beside_them_a_sentence(fitted):
    X, _, model = fitted
    kernel = Gaussian().on([0]) * VonMises().on([1])
    plane = MultiViewMixture(2, views=[[0, 2], [3, 5], [6, 8]], kernel=kernel, polish=QUICK, random_state=0).fit(X)

    display = ComponentDisplay.from_estimator(plane, X)

    assert display.axes_[0].get_ylim() == pytest.approx((-np.pi, np.pi))
    with pytest.raises(ValueError, match="view 0 has 3 columns"):
        ComponentDisplay.from_estimator(model, X)


def test_held_out_halves_choose_the_width(rng):
    # a number that is almost a code needs kernels far narrower than Silverman's, a smooth one does not
    n = 400
    rough = np.column_stack([rng.integers(5, size=n) + 0.01 * rng.normal(size=n), rng.integers(2, size=n)])
    smooth = np.column_stack([rng.normal(size=n), rng.integers(2, size=n)])
    halves = np.arange(0, n, 2), np.arange(1, n, 2)
    kernel = (Gaussian().on([0]) * Delta().on([1])).adapt(smooth)

    widths = [
        kernel_samples(x, np.ones((n, 1)), kernel, halves, rng, 200).kernels[0].get_params()["first__kernel__bandwidth"]
        for x in (rough, smooth)
    ]

    assert widths[0] < widths[1] * 0.6 * rough[:, 0].std()


def test_states_emit_mixed_rows(fitted):
    rng = np.random.default_rng(0)
    states = np.cumsum(rng.random(600) < 0.05) % 2
    X = mixed_view(states, rng)
    model = KernelHMM(2, kernel=MIXED, polish=QUICK, random_state=0).fit(X)

    truth = states if np.mean(states == 0) > 0.5 else 1 - states

    assert np.mean(model.predict(X) == truth) > 0.97
    assert np.isfinite(model.forecast(X, 3).quantile(0.5)).all()
