"""Angles: the wrapped Gaussian kernel, and degrees as good as radians."""

import numpy as np
import pytest
from scipy import stats

from latentviews import Delta, Gaussian, LowRankDensity, MultiViewMixture, Sieve, VonMises, WrappedGaussian
from latentviews.core.kernels.spaces import Circle

KERNELS = [VonMises, WrappedGaussian]
QUICK = Sieve(factors=(2.0,), max_iter=20)
WIDTHS = [0.05, 0.6, 1.5, 1.6, 4.0, 30.0]  # either side of where the Fourier series takes over


@pytest.mark.cheap
@pytest.mark.parametrize("width", WIDTHS)
def test_the_wrapped_gaussian_is_the_sum_of_gaussians_on_all_turns(width, rng):
    x, y = rng.uniform(-7, 7, size=(20, 1)), rng.uniform(-7, 7, size=(5, 1))

    turns = 2 * np.pi * np.arange(-300, 301)
    expected = stats.norm.pdf(x[:, :, None] - y.T[:, :, None] + turns, scale=width).sum(axis=2)

    np.testing.assert_allclose(WrappedGaussian(width).gram(x, y), expected, rtol=1e-10, atol=1e-14)


@pytest.mark.cheap
@pytest.mark.parametrize("width", WIDTHS[1:])
@pytest.mark.parametrize("kind", KERNELS)
def test_kernels_on_angles_have_mass_one_over_a_turn_whatever_its_length(kind, width):
    degrees = np.linspace(0, 360, 720, endpoint=False)[:, None]

    values = kind(np.rad2deg(width), period=360).gram(degrees, np.array([[17.0]]))

    assert values.sum() / 2 == pytest.approx(1, abs=1e-10)


@pytest.mark.cheap
@pytest.mark.parametrize("kind", KERNELS)
@pytest.mark.parametrize("rule", ["median", "silverman", 0.4])
def test_in_degrees_a_kernel_is_the_same_per_degree(kind, rule, rng):
    x = rng.vonmises(3, 2, size=(200, 2))
    degrees = np.rad2deg(x) + 360 * rng.integers(-1, 2, size=x.shape)

    here = kind(rule).adapt(x)
    there = kind(rule if isinstance(rule, str) else np.rad2deg(rule), period=360).adapt(degrees)

    assert there.bandwidth == pytest.approx(np.rad2deg(here.bandwidth))
    np.testing.assert_allclose(there.gram(degrees[:9], degrees) * np.rad2deg(1) ** 2, here.gram(x[:9], x), rtol=1e-8)


@pytest.mark.cheap
@pytest.mark.parametrize("d", [1, 2])
def test_cv_takes_the_width_under_which_held_out_angles_are_likeliest(d, rng):
    x = rng.vonmises(2.5 * rng.integers(2, size=(90, 1)), 80.0, size=(90, d))  # two narrow modes
    fold = np.arange(90) % 5

    def likelihood(width):
        values = [VonMises(width).gram(x[fold == f], x[fold != f]).mean(axis=1) for f in range(5)]
        return np.log(np.concatenate(values)).mean()

    thumb = VonMises("silverman").adapt(x).bandwidth
    widths = thumb * np.geomspace(0.05, 2.5, 24)
    best = max(widths, key=likelihood)

    assert VonMises("cv").adapt(x).bandwidth == pytest.approx(best)
    degrees = VonMises("cv", period=360).adapt(np.rad2deg(x)).bandwidth
    assert degrees == pytest.approx(np.rad2deg(best))
    assert best < thumb / 3


@pytest.mark.cheap
def test_draws_of_the_wrapped_gaussian_have_its_resultant(rng):
    drawn = WrappedGaussian(40.0, period=360).draw(np.full((20_000, 1), 170.0), rng)

    resultant = np.exp(1j * np.deg2rad(drawn - 170.0)).mean()
    # E cos = exp(-s²/2); five standard errors
    assert abs(resultant - np.exp(-(np.deg2rad(40.0) ** 2) / 2)) < 5 / np.sqrt(20_000)
    assert drawn.min() >= -180
    assert drawn.max() < 180


@pytest.mark.cheap
def test_a_circle_of_degrees_has_means_and_axes_in_degrees():
    circle, x = Circle(360), np.array([[170.0], [-170.0]])

    np.testing.assert_allclose(np.abs(circle.mean(lambda f: f(x).mean(axis=0))), 180.0)
    assert circle.axis(0.0, 1.0) == (-180.0, 180.0)
    assert circle.typical(x[:, 0])[1] == pytest.approx(np.cos(np.deg2rad(10)))
    np.testing.assert_allclose(circle.wrapped(np.array([190.0, -540.0])), [-170.0, -180.0])


@pytest.mark.cheap
@pytest.mark.parametrize("period", [0, -360, np.inf, "degrees", True])
def test_a_period_that_is_none_is_a_sentence(period):
    with pytest.raises(ValueError, match="The period of angles is a positive number"):
        VonMises(1.0, period=period).adapt(np.zeros((3, 1)))


@pytest.mark.cheap
@pytest.mark.parametrize(
    ("circle", "high", "sentence"),
    [
        (
            Circle(),
            350.0,
            "from 0 to 350; say period=360 in the kernel, or turn degrees into radians with np.deg2rad",
        ),
        (Circle(360), 6.2, "a full turn is 360, and goes from 0 to 6.2 only, as radians would"),
        (Circle(24), 200.0, "a full turn is 24, and goes from 0 to 200; say in the kernel what a full turn is"),
    ],
)
def test_angles_in_another_unit_than_the_kernels_are_a_sentence(circle, high, sentence):
    assert sentence in circle.check(np.array([0.0, high]), 3)
    assert circle.check(np.array([0.0, 0.9 * circle.period]), 3) is None


@pytest.fixture(scope="module")
def angles():
    """Three views of an angle and a code, in two classes of which one lies across the cut."""
    rng = np.random.default_rng(0)
    y = rng.choice(2, size=500, p=[0.6, 0.4])
    views = []
    for _ in range(3):
        turn = np.where(y == 0, rng.vonmises(3, 3, size=500), rng.vonmises(0.3, 3, size=500))
        code = rng.random(500) < np.where(y == 0, 0.3, 0.7)
        views += [turn, code.astype(float)]
    return np.column_stack(views), y


def test_degrees_radians_and_angles_shifted_across_the_cut_give_the_same_classes(angles):
    X, y = angles
    turned, shifted = X.copy(), X.copy()
    turned[:, ::2] = np.rad2deg(X[:, ::2]) % 360
    shifted[:, ::2] = (X[:, ::2] + 2.0 + np.pi) % (2 * np.pi) - np.pi

    models = {}
    for name, table, period in (("radians", X, 2 * np.pi), ("degrees", turned, 360), ("shifted", shifted, 2 * np.pi)):
        kernel = VonMises(period=period).on([0]) * Delta().on([1])
        model = MultiViewMixture(2, views=[[0, 1], [2, 3], [4, 5]], kernel=kernel, polish=QUICK, random_state=0)
        models[name] = model.fit(table).predict(table), model.score(table)

    assert np.mean(models["radians"][0] == y) > 0.95
    np.testing.assert_array_equal(models["degrees"][0], models["radians"][0])
    assert np.mean(models["shifted"][0] == models["radians"][0]) > 0.99
    assert models["degrees"][1] == pytest.approx(models["radians"][1] - 3 * np.log(np.rad2deg(1)), abs=1e-3)


@pytest.mark.parametrize("mean", [0.0, 170.0, -175.0])
def test_quantiles_of_angles_go_round_with_the_mean_direction(mean):
    nodes = np.arange(-180, 180, 0.5)
    masses = stats.vonmises.pdf(np.deg2rad(nodes), 3, loc=np.deg2rad(mean))
    up_to = (np.cumsum(masses) - masses / 2) / masses.sum()

    found = [Circle(360).quantiles(nodes, up_to[None, :], level)[0] for level in (0.05, 0.5, 0.95)]

    expected = mean + np.rad2deg(stats.vonmises.ppf([0.05, 0.5, 0.95], 3))
    np.testing.assert_allclose(found, expected, atol=0.05)


def test_bands_of_an_angle_hold_its_mean_wherever_the_circle_is_cut(angles):
    X, _ = angles
    kernel = VonMises().on([0]) * Delta().on([1])
    model = MultiViewMixture(2, views=[[0, 1], [2, 3], [4, 5]], kernel=kernel, polish=QUICK, random_state=0).fit(X)

    given = model.conditional(X[:20], 0)
    low, middle, high = np.moveaxis(given.quantile([0.1, 0.5, 0.9])[:, 0], -1, 0)

    assert np.all((low < middle) & (middle < high) & (high - low < 3.0))
    assert np.all(np.cos(middle - given.mean()[:, 0]) > 0.98)


def test_degrees_asked_of_a_model_in_radians_are_told(angles):
    X, _ = angles
    kernel = [VonMises(), None, VonMises(), None, VonMises(), None]
    model = MultiViewMixture(2, kernel=kernel, polish=QUICK, random_state=0).fit(X)

    with pytest.warns(UserWarning, match="Column 0 is taken for angles in radians, and goes from .* say period=360"):
        model.predict(X * np.tile([180 / np.pi, 1], 3))


def test_a_joint_density_takes_degrees(angles):
    X, _ = angles
    turned = X[:, :2] * [180 / np.pi, 1]

    scores = [
        LowRankDensity(2, kernel=[VonMises(period=period), Delta()], random_state=0).fit(table).score(table)
        for table, period in ((X[:, :2], 2 * np.pi), (turned, 360))
    ]

    assert scores[1] == pytest.approx(scores[0] - np.log(np.rad2deg(1)), abs=1e-6)


def test_a_number_beside_wrapped_angles_is_one_view(angles, rng):
    X, y = angles
    table = np.hstack([X[:, :2], X[:, 2:4], X[:, 4:6]])
    table[:, 1::2] = y[:, None] + rng.normal(size=(500, 3))
    kernel = WrappedGaussian().on([0]) * Gaussian().on([1])

    model = MultiViewMixture(2, views=[[0, 1], [2, 3], [4, 5]], kernel=kernel, polish=QUICK, random_state=0).fit(table)

    assert np.mean(model.predict(table) == y) > 0.95


def two_modes(y, rng):
    """An angle of either class with two narrow modes, and its log-density in every class."""
    modes = np.array([[0.0, 2.0], [1.0, 3.0]])
    x = rng.vonmises(modes[y, rng.integers(2, size=len(y))], 60.0)
    law = stats.vonmises(60.0)
    return x, np.log(np.stack([law.pdf(x - a) / 2 + law.pdf(x - b) / 2 for a, b in modes], axis=1))


@pytest.mark.parametrize(("n_columns", "most"), [(1, 0.15), (2, 0.4)])  # a single width for all modes loses 2 and 5
def test_densities_of_angles_are_as_narrow_as_their_modes(n_columns, most):
    rng = np.random.default_rng(0)
    y = rng.choice(2, size=1200)
    drawn = [two_modes(y, rng) for _ in range(3 * n_columns)]
    X, logs = np.column_stack([x for x, _ in drawn]), sum(log for _, log in drawn)
    truth = np.logaddexp(logs[:, 0], logs[:, 1]) - np.log(2)
    views = [list(range(t, t + n_columns)) for t in range(0, 3 * n_columns, n_columns)]

    model = MultiViewMixture(2, views=views, kernel=VonMises(), polish=QUICK, random_state=0).fit(X[:600])

    assert truth[600:].mean() - model.score(X[600:]) < most


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_differences_of_any_size_are_wrapped_into_a_turn(dtype):
    x = np.array([[0.3], [1e30]], dtype=dtype)
    with np.errstate(all="raise", under="ignore"):
        values = WrappedGaussian(0.6).correlation(x, x)

    assert np.all((values >= 0) & (values <= 1))
    np.testing.assert_allclose(np.diag(values), 1)
