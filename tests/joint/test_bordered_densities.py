import numpy as np
import pytest
from scipy import integrate, stats

from bordered import DURATIONS, SHARES, draw
from latentviews import Delta, Gaussian, HalfLine, Interval, LowRankDensity, ProductMixture, SignedTrain, load, save
from latentviews.joint.copulas import start_at
from latentviews.joint.margins import Tables
from latentviews.plot import DensityDisplay
from latentviews.plot._axes import offscreen_axes

KERNELS = [Gaussian(space=HalfLine()), Gaussian(space=Interval(0, 1)), Gaussian(), Delta()]
CASES = {"durations": (HalfLine(), DURATIONS[0]), "shares": (Interval(0, 1), stats.beta(1, 3))}


def mixed(n_samples, rng):
    """A duration, a share, a number and a code, of two classes."""
    durations, labels = draw(DURATIONS, n_samples, 1, rng)
    shares = np.where(labels == 0, *(law.rvs(size=n_samples, random_state=rng) for law in SHARES))
    return np.column_stack([durations, shares, rng.normal(size=n_samples) + 2 * labels, labels])


@pytest.mark.parametrize(("space", "law"), CASES.values(), ids=CASES.keys())
def test_a_table_of_a_population_is_right_at_the_border(space, law, rng):
    x = law.ppf((np.arange(20_000) + 0.5) / 20_000)[:, None]

    tables = [
        start_at([Tables.around(x, [0], 1.0, spaces)], x, np.ones((len(x), 1)), None).margins[0]
        for spaces in ([space], None)
    ]

    known, line = (np.exp(table.log_density(np.array([[0.0]]))[0, 0, 0]) for table in tables)
    assert known == pytest.approx(law.pdf(0), rel=0.15)
    assert line < 0.65 * law.pdf(0)
    ticks = np.linspace(space.low, min(space.high, 40.0), 40_001)[:, None]
    density = np.exp(tables[0].log_density(ticks)[:, 0, 0])
    assert integrate.trapezoid(density, ticks[:, 0]) == pytest.approx(1, abs=1e-3)
    # scores are those of the distribution function
    below = integrate.cumulative_trapezoid(density, ticks[:, 0], initial=0)[1000::4000]
    np.testing.assert_allclose(stats.norm.cdf(tables[0].scores(ticks[1000::4000])[:, 0, 0]), below, atol=1e-3)
    assert np.exp(tables[0].log_density(np.array([[space.low - 0.01]])).item()) < 1e-300


def test_stacks_know_where_columns_end(rng, tmp_path):
    X, fresh = mixed(800, rng), mixed(800, rng)

    line = LowRankDensity(kernel=[Gaussian(), Gaussian(), Gaussian(), Delta()], random_state=0).fit(X)
    known = LowRankDensity(kernel=KERNELS, random_state=0).fit(X)

    assert known.score(fresh) > line.score(fresh) + 0.1
    rows = known.sample(1000)
    assert rows[:, :2].min() >= 0
    assert rows[:, 1].max() <= 1
    for column, high in ((0, 60.0), (1, 1.0)):
        ticks = np.linspace(0, high, 20_001)[:, None]
        density = np.exp(known.marginal([column]).score_samples(ticks))
        assert integrate.trapezoid(density, ticks[:, 0]) == pytest.approx(1, abs=5e-3)
    assert known.density_.log_density(np.array([[-0.5, 0.5, 0.0, 0.0]]))[0] < -600
    assert known.conditional([0], {3: 1.0}).sample(50).min() >= 0
    save(known, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").score_samples(fresh), known.score_samples(fresh))


def test_columns_with_borders_are_joined_by_copulas(rng):
    scores = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], size=800)
    X = stats.expon.ppf(stats.norm.cdf(scores))

    model = LowRankDensity(1, kernel=Gaussian(space=HalfLine()), random_state=0).fit(X)

    assert stats.spearmanr(model.sample(2000)).statistic == pytest.approx(0.79, abs=0.08)


def test_the_signed_estimate_knows_where_columns_end(rng):
    X, _ = draw(DURATIONS, 300, 2, rng)

    model = LowRankDensity(2, kernel=Gaussian(space=HalfLine()), method=SignedTrain(0.3), random_state=0).fit(X)

    ticks = np.linspace(0, 25, 501)
    points = np.stack(np.meshgrid(ticks, ticks, indexing="ij"), axis=-1).reshape(-1, 2)
    values = model.density_.embedding.at(points).reshape(501, 501)
    mass = integrate.trapezoid(integrate.trapezoid(values, ticks, axis=0), ticks)
    assert model.mass_ == pytest.approx(mass, abs=1e-3)  # the closed form, every kernel having mass one
    assert model.sample(300).min() >= 0
    assert model.density_.log_density(np.array([[-1.0, 1.0]]))[0] < -100


def test_values_outside_are_refused(rng):
    X = mixed(100, rng)
    X[4, 1] = 1.5

    with pytest.raises(ValueError, match=r"Column 1 holds 1.5, which is outside Interval\(low=0, high=1\)"):
        LowRankDensity(kernel=KERNELS).fit(X)


def test_a_kernel_without_a_space_is_asked_for_one(rng):
    with pytest.raises(ValueError, match=r"Gaussian needs a space: Real\(\), HalfLine\(\) or Interval\(low, high\)"):
        LowRankDensity(kernel=Gaussian(space=None)).fit(mixed(100, rng))


@pytest.mark.parametrize("given", [None, {2: 1.0}], ids=["marginal", "conditional"])
def test_contours_of_columns_stop_at_their_borders(given, rng):
    X = mixed(300, rng)
    model = LowRankDensity(2, kernel=KERNELS, method=ProductMixture(), random_state=0).fit(X)

    display = DensityDisplay.from_estimator(model, X, columns=(0, 1), given=given, resolution=30, ax=offscreen_axes(1))

    assert display.ticks[0][0] == 0.0
    assert display.ticks[1][[0, -1]].tolist() == [0.0, 1.0]
    assert np.isfinite(display.density).all()
