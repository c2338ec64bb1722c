import pickle

import numpy as np
import pytest
from scipy import stats
from scipy.signal import lfilter
from sklearn.base import clone

from catalogue import DYNAMICS
from exact_chains import exact_triples, random_chain
from latentviews import (
    ConditionalEmbedding,
    Gaussian,
    ObservableOperators,
    OneHotFeatures,
    PredictiveStateModel,
    TwoStageRegression,
    load,
    save,
)
from latentviews.sequences.chains import draw_states, filter_states, stationary
from latentviews.sequences.dynamics import Series, principal_directions
from latentviews.sequences.operators import OperatorDynamics
from latentviews.sequences.predictive import WARM_UP, _folds, _held_out
from latentviews.sequences.sample_forecast import MOST_STRETCH, SampleForecast
from reference import hsu_kakade_zhang

QUICK = DYNAMICS[0]


def test_exact_moments_give_hsu_kakade_and_zhangs_predictions(rng):
    k, n_values = 3, 5
    _, transition, (table,) = random_chain(rng, k, n_values)
    rows, weights = exact_triples(stationary(transition), transition, [table])
    joint = np.zeros((n_values,) * 3)
    np.add.at(joint, tuple(rows.astype(int).T), weights)
    past, now, ahead = (np.eye(n_values)[rows[:, t].astype(int)] for t in range(3))

    found = ObservableOperators().from_triples(past, now, ahead, now, weights, (k, 0.0), 4)

    state = found.start[None]
    sequence = rng.integers(n_values, size=6)
    for t, value in enumerate(sequence):
        before = hsu_kakade_zhang(joint, k, sequence[:t])
        expected = [hsu_kakade_zhang(joint, k, [*sequence[:t], x]) / before for x in range(n_values)]
        np.testing.assert_allclose(found.embedding @ state[0], expected, atol=1e-7)
        state = found.step(state, np.eye(n_values)[[value]])
    # further ahead, what the true chain says of the fourth row from now
    log_emissions = np.log(table[sequence])
    filtered = filter_states(log_emissions, stationary(transition), transition, np.array([6])).filtered[-1]
    expected = table @ np.linalg.matrix_power(transition.T, 4) @ filtered
    np.testing.assert_allclose(found.forecast(state, np.empty((1, 0)), 4)[0, 3], expected, atol=1e-7)


def test_operators_are_conditional_embeddings_of_the_rows_around_one(rng):
    """B_x = Σ_i w_i(x) Uᵀφ(x_{i+1}) ⊗ φ(x_{i-1})(UᵀC₂₁)† with the weights w of an embedding, before they are scaled."""
    x, size = waves(80, rng), 4
    given = ConditionalEmbedding(Gaussian(0.7), Gaussian(0.7), 1e-3, n_landmarks=40, random_state=0)
    given.fit(x[1:-1], x[2:])
    past, now, ahead = (given.features_.transform(x[lag : lag + 78]) for lag in range(3))
    over_the_mean = 1e-3 * now.shape[1] / np.mean(np.sum(now**2, axis=1))

    choice = size, over_the_mean
    found = ObservableOperators().from_triples(past, now, ahead, x[1:-1], np.full(78, 1 / 78), choice, 1)

    c21 = now.T @ past / 78
    basis = np.linalg.svd(c21)[0][:, :size]
    pairs = np.einsum("ip,iq->ipq", ahead @ basis, past @ np.linalg.pinv(basis.T @ c21, rcond=1e-10))
    expected = np.einsum("mi,ipq->pqm", now @ given.dual_, pairs)
    np.testing.assert_allclose(found.operators @ now.T, expected, atol=1e-10 * np.abs(expected).max())


@pytest.mark.cheap
def test_a_factor_of_features_moves_no_state(rng):
    past, now, ahead = rng.normal(size=(3, 60, 4)) + 3  # whose masses are no rounding
    found = ObservableOperators().from_triples(past, now, ahead, now, np.full(60, 1 / 60), (3, 1e-3), 1)
    states = np.tile(found.start, (5, 1))

    moved = found.step(states, now[:5])

    assert np.abs(moved - found.start).max() > 1e-3
    np.testing.assert_allclose(found.step(states, 1e298 * now[:5]), moved, rtol=1e-9)


def waves(n, rng):
    """A wave whose next rows depend on more than the last one, with noise."""
    phase = np.cumsum(0.3 + 0.05 * rng.normal(size=n))
    return np.column_stack([np.sin(phase), np.cos(2 * phase)]) + 0.1 * rng.normal(size=(n, 2))


def test_last_rows_end_where_their_sequence_began():
    series = Series(np.arange(1.0, 8.0)[:, None], np.empty((7, 0)), np.array([4, 3]))
    np.testing.assert_array_equal(
        series.recent(np.array([0, 2, 4, 6]), 3), [[0, 0, 0], [2, 1, 0], [0, 0, 0], [6, 5, 0]]
    )
    np.testing.assert_array_equal(series.recent(np.array([3, 4]), 2, upto=True), [[4, 3], [5, 0]])


def autoregression(X, tests, origins, lag, horizon):
    """Forecasts by least squares on the last rows, a regression a step."""

    def inputs(table, rows):
        return np.concatenate([table[rows - k] for k in range(lag)] + [np.ones((len(rows), 1))], axis=1)

    rows = np.arange(lag, len(X) - horizon)
    steps = [np.linalg.lstsq(inputs(X, rows), X[rows + step], rcond=None)[0] for step in range(1, horizon + 1)]
    return np.stack([inputs(tests, origins) @ weights for weights in steps], axis=1)


def test_forecasts_of_a_wave_beat_persistence_a_straight_line_and_an_autoregression(rng):
    X = waves(2500, rng)
    dynamics = TwoStageRegression((20,), (1e-3, 1e-2), (10,))
    model = PredictiveStateModel(dynamics, horizon=8, random_state=0).fit(X[:2000])
    origins = np.arange(100, 490)
    forecast = model.forecast(X[2000:], 8, origins=origins)
    ahead = np.stack([X[2000 + origins + step] for step in range(1, 9)], axis=1)
    persistent = np.abs(X[2000 + origins][:, None] - ahead).mean()
    slope = X[2000 + origins] - X[2000 + origins - 1]
    straight = X[2000 + origins][:, None] + slope[:, None] * np.arange(1, 9)[:, None]
    linear = np.abs(autoregression(X[:2000], X[2000:], origins, 10, 8) - ahead).mean()
    missed = np.abs(forecast.mean() - ahead).mean()
    assert missed < 0.5 * min(persistent, np.abs(straight - ahead).mean())
    assert missed < linear
    inside = (forecast.quantile(0.1) < ahead) & (ahead < forecast.quantile(0.9))
    assert 0.7 < inside.mean() < 0.9


def test_observable_operators_follow_a_chain_of_codes(rng):
    transition = np.array([[0.9, 0.1], [0.1, 0.9]])
    table = np.array([[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]])
    states = draw_states(np.array([0.5, 0.5]), transition, np.array([20_000]), rng)
    codes = (rng.random(20_000)[:, None] > np.cumsum(table, axis=1)[states]).sum(axis=1, keepdims=True)
    model = PredictiveStateModel(ObservableOperators((2,), (1e-8,)), features=OneHotFeatures(3), horizon=3)
    model.fit(codes)
    chances = (
        np.concatenate([model.dynamics_.start[None], model.filter(codes[:500])[:-1]]) @ model.dynamics_.embedding.T
    )
    law = np.array([0.5, 0.5])
    true = filter_states(np.log(table.T[codes[:500, 0]]), law, transition, np.array([500])).predicted @ table
    assert np.abs(chances - true).max() < 0.1
    assert np.abs(chances - true).mean() < 0.02


@pytest.mark.parametrize(
    ("drift", "after"), [(np.array([[0.0, 0], [1, 1]]), [0.0, 1.0]), (np.array([[1.0, -1], [1, -1]]), [0.9, 0.1])]
)
def test_a_row_whose_mass_is_rounding_moves_the_state_as_if_it_were_not_seen(drift, after):
    cancelling = np.array([[1.0, -1], [1, -1]])[:, :, None]
    dynamics = OperatorDynamics(
        np.array([0.9, 0.1]), cancelling, drift, np.ones(2), np.eye(2), 10.0, np.zeros((1, 2, 1))
    )

    found = dynamics.step(np.array([[0.5, 0.5 - 1e-15]]), np.ones((1, 1)))

    np.testing.assert_allclose(found, [after], atol=1e-12)


@pytest.mark.parametrize("dynamics", DYNAMICS, ids=repr)
def test_sequences_are_filtered_apart_and_by_what_is_past(dynamics, rng):
    X = waves(900, rng)
    model = PredictiveStateModel(dynamics, horizon=3, random_state=0).fit(X, lengths=[300, 250, 350])
    states = model.filter(X, lengths=[300, 250, 350])
    np.testing.assert_allclose(states[300:550], model.filter(X[300:550]), atol=1e-9)
    np.testing.assert_allclose(states[:100], model.filter(X[:100]), atol=1e-9)
    ends = model.forecast(X, 3, lengths=[300, 250, 350])
    np.testing.assert_allclose(ends.mean()[1], model.forecast(X[300:550], 3).mean(), atol=1e-9)
    some = model.forecast(X, 3, lengths=[300, 250, 350], origins=[299, 320])
    np.testing.assert_allclose(some.mean()[0], ends.mean()[0], atol=1e-9)
    assert model.score(X, lengths=[300, 250, 350]) > -1.0  # better than the means of the columns


def test_a_forecast_is_a_distribution(rng):
    X = waves(800, rng)
    forecast = PredictiveStateModel(QUICK, horizon=4, random_state=0).fit(X).forecast(X, 4)
    x = np.linspace(-6, 6, 4001)
    density = forecast.density(x, column=1)
    np.testing.assert_allclose(density.sum(axis=1) * (x[1] - x[0]), 1.0, atol=1e-6)
    draws = forecast.sample(4000, random_state=0)
    assert draws.shape == (4000, 4, 2)
    low, high = np.moveaxis(forecast.quantile([0.2, 0.8]), -1, 0)
    np.testing.assert_allclose((draws < low).mean(axis=0), 0.2, atol=0.04)  # five standard errors
    np.testing.assert_allclose((draws > high).mean(axis=0), 0.2, atol=0.04)
    assert forecast.quantile(0.5).shape == forecast.mean().shape == (4, 2)


def autoregressive(n, rng):
    """x_t = 0.8 x_{t-1} + a standard normal number."""
    return lfilter([1.0], [1.0, -0.8], rng.normal(size=n + 100))[100:, None]


def test_the_mean_of_a_forecast_is_that_of_its_draws_and_of_its_density(rng):
    X = autoregressive(1000, rng)
    forecast = PredictiveStateModel(QUICK, horizon=5, random_state=0).fit(X).forecast(X, 5, origins=[400, 999])
    draws = forecast.sample(20_000, random_state=0)
    standard_error = draws.std(axis=0) / np.sqrt(20_000)
    assert np.all(np.abs(draws.mean(axis=0) - forecast.mean()) < 6 * standard_error)
    x = np.linspace(-30, 30, 6001)
    np.testing.assert_allclose(0.01 * forecast.density(x) @ x, forecast.mean()[..., 0], atol=1e-6)
    one = SampleForecast(np.zeros((1, 1)), np.full((1, 1, 1), 3.0), np.ones(1))
    assert one.quantile(0.5) == one.sample(random_state=0)[0] == one.mean() == 0


def test_held_out_residuals_are_those_of_a_filter_that_has_seen_what_came_before(rng):
    """Noise of 0.1, and no more, is what a wave is missed by, from the first held-out row on."""
    X = np.sin(np.arange(1000) / 5)[:, None] + 0.1 * rng.normal(size=(1000, 1))
    model = PredictiveStateModel(TwoStageRegression((20,), (1e-3,), (40,)), horizon=5, random_state=0).fit(X)
    assert np.abs(model.residuals_).max() < 0.6
    forecast = model.forecast(X, 5, origins=np.arange(100, 1000))
    width = (forecast.quantile(0.95) - forecast.quantile(0.05)).mean(axis=0)[:, 0]
    np.testing.assert_allclose(width / (2 * 0.1 * stats.norm.isf(0.05)), 1.0, atol=0.25)


def test_sequences_are_parted_with_rows_to_warm_up_on():
    parts = _held_out(np.array([10, 20]), 0.3, 2)
    np.testing.assert_array_equal(parts.fitted, [*range(7), *range(10, 24)])
    np.testing.assert_array_equal(parts.followed, np.arange(30))
    np.testing.assert_array_equal(parts.followed[parts.judged], [7, 8, *range(24, 29)])
    many = _held_out(np.full(5, 4), 0.2, 2)  # the last sequences, from their first row
    np.testing.assert_array_equal(many.followed, np.arange(16, 20))
    np.testing.assert_array_equal(many.followed[many.judged], [16, 17, 18])
    earlier = _held_out(np.array([10, 20]), 0.3, 2, back=1)  # fitted rows on both sides
    np.testing.assert_array_equal(earlier.fitted, [*range(4), *range(7, 10), *range(10, 18), *range(24, 30)])
    np.testing.assert_array_equal(earlier.fitted_lengths, [4, 3, 8, 6])
    np.testing.assert_array_equal(earlier.judged_rows, [4, 5, *range(18, 23)])
    long = _held_out(np.array([10_000]), 0.2, 1)
    assert (len(long.followed), long.judged.sum()) == (2000 + WARM_UP, 2000)


def test_intervals_hold_the_share_they_state():
    inside = []
    for seed in range(4):
        X = autoregressive(2000, np.random.default_rng(seed))
        model = PredictiveStateModel(QUICK, horizon=5, random_state=0).fit(X[:1000])
        origins = np.arange(100, 990)
        low, high = np.moveaxis(model.forecast(X[1000:], 5, origins=origins).quantile([0.05, 0.95]), -1, 0)
        ahead = np.stack([X[1000 + origins + step] for step in range(1, 6)], axis=1)
        inside.append(((low < ahead) & (ahead < high)).mean())
    assert 0.88 < np.mean(inside) < 0.93


def test_every_row_but_the_earliest_is_held_out_once():
    for lengths in (np.array([100]), np.array([60, 40]), np.full(10, 10)):
        folds = _folds(lengths, 0.2, 1)
        held = np.concatenate([fold.judged_rows for fold in folds])
        assert len(folds) == 4
        assert len(np.unique(held)) == len(held) == 80
        assert all(not np.intersect1d(fold.fitted, fold.judged_rows).size for fold in folds)


def test_intervals_of_short_series_hold_the_share_they_state_at_every_step():
    """Errors of ten steps ahead overlap: a last stretch of sixty rows holds no more than a few of them."""
    inside = []
    for seed in range(8):
        X = autoregressive(1300, np.random.default_rng(seed))
        model = PredictiveStateModel(TwoStageRegression((10,), (1e-2,), (5,)), horizon=10, random_state=0).fit(X[:300])
        origins = np.arange(300, 1290)
        low, high = np.moveaxis(model.forecast(X, 10, origins=origins).quantile([0.05, 0.95]), -1, 0)
        ahead = np.stack([X[origins + step] for step in range(1, 11)], axis=1)
        inside.append(((low < ahead) & (ahead < high)).mean(axis=(0, 2)))
    by_step = np.mean(inside, axis=0)
    assert 0.88 < by_step.mean() < 0.92
    assert by_step.min() > 0.87


def test_errors_that_are_alike_widen_a_forecast_by_their_mean():
    """Residuals of one sign are an error of a whole stretch, not a bias: their mean square is kept."""
    residuals = np.array([1.0, 2.0, 3.0])[:, None, None]
    forecast = SampleForecast(np.zeros((1, 1)), residuals, np.full(3, 1 / 3))
    draws = forecast.sample(100_000, random_state=0)
    assert abs(draws.mean()) < 0.03
    assert abs(draws.std() - np.sqrt(2 / 3) * MOST_STRETCH) < 0.01  # √(14/3) would be more than is allowed
    forecast = SampleForecast(np.zeros((1, 1)), residuals - 1, np.full(3, 1 / 3))
    assert abs((forecast.sample(100_000, random_state=0) ** 2).mean() - 5 / 3) < 0.03


@pytest.mark.parametrize("dynamics", DYNAMICS, ids=repr)
def test_states_stay_bounded_on_rows_unlike_any_seen(dynamics, rng):
    X = waves(600, rng)
    model = PredictiveStateModel(dynamics, horizon=2, random_state=0).fit(X)
    unlike = 100 * rng.normal(size=(300, 2))
    ahead = model.forecast(unlike, 2, origins=np.arange(300)).mean()
    assert np.abs(ahead).max() < np.abs(unlike).max()


def test_models_clone_and_travel(rng, tmp_path):
    X = waves(400, rng)
    model = PredictiveStateModel(QUICK, horizon=2, random_state=3).fit(X)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.filter(X), model.filter(X))
    save(model, tmp_path / "model.latentviews")
    loaded = load(tmp_path / "model.latentviews")
    np.testing.assert_array_equal(loaded.filter(X), model.filter(X))
    np.testing.assert_equal(loaded.validation_errors_, model.validation_errors_)
    np.testing.assert_array_equal(clone(model).fit(X).filter(X), model.filter(X))


BAD_INPUT = {
    "too few rows": (lambda X: PredictiveStateModel(QUICK).fit(X[:12]), "n_samples = 12"),
    "missing values": (
        lambda X: PredictiveStateModel(QUICK).fit(np.where(X > 1, np.nan, X)),
        "NaN, first in row .*; fill in",
    ),
    "lengths": (lambda X: PredictiveStateModel(QUICK).fit(X, lengths=[3]), "add up to 3, and X has 200"),
    "no horizon": (lambda X: PredictiveStateModel(QUICK, horizon=0).fit(X), "horizon must be an integer of at least 1"),
    "a long horizon": (lambda X: PredictiveStateModel(QUICK, horizon=2).fit(X).forecast(X, 3), "fitted for 2 step"),
    "no validation": (lambda X: PredictiveStateModel(QUICK, validation=0.0).fit(X), "validation must be a share"),
    "an origin outside": (
        lambda X: PredictiveStateModel(QUICK, horizon=2).fit(X).forecast(X, 1, origins=[200]),
        "numbers of rows from 0 to 199",
    ),
    "two feature maps": (
        lambda X: PredictiveStateModel(QUICK, kernel=Gaussian(), features=OneHotFeatures()).fit(X),
        "one of them, not both",
    ),
    "no size": (lambda X: PredictiveStateModel(TwoStageRegression(sizes=(0,))).fit(X), "sizes must be an integer"),
    "no sizes": (
        lambda X: PredictiveStateModel(TwoStageRegression(sizes=())).fit(X),
        "sizes must be a list of integers",
    ),
    "one size": (
        lambda X: PredictiveStateModel(TwoStageRegression(memories=5)).fit(X),
        "memories must be a list of int",
    ),
    "a negative penalty": (
        lambda X: PredictiveStateModel(ObservableOperators(penalties=(-1.0,))).fit(X),
        "none negative",
    ),
    "lengths in the place of y": (lambda X: PredictiveStateModel(QUICK).fit(X, [100, 100]), "lengths=..."),
    "a column that is not there": (
        lambda X: PredictiveStateModel(QUICK, horizon=1).fit(X).forecast(X).density([0.0], column=2),
        "column must be a number from 0 to 1; got 2",
    ),
    "no level": (lambda X: PredictiveStateModel(QUICK, horizon=1).fit(X).forecast(X).quantile([]), "between 0 and 1"),
    "a constant column": (
        lambda X: PredictiveStateModel(QUICK).fit(np.column_stack([X, np.full(200, 0.1)])),  # whose std is not zero
        "Column 2 is constant over 200 rows and says nothing of what comes next; leave it out",
    ),
    "values too large": (
        lambda X: PredictiveStateModel(QUICK).fit(X * 1e200),
        r"holds .*e\+\d+, whose square is no num",
    ),
    "values too small": (
        lambda X: PredictiveStateModel(QUICK).fit(X * 1e-200),
        "varies by .*e-200, whose square is no",
    ),
    "a level of one": (lambda X: PredictiveStateModel(QUICK, horizon=1).fit(X).forecast(X).quantile(1.0), "between 0"),
}


@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input_gets_one_clear_sentence(case):
    call, message = BAD_INPUT[case]
    with pytest.raises(ValueError, match=message):
        call(np.random.default_rng(0).normal(size=(200, 2)))


def test_a_share_that_is_no_number_gets_a_sentence(rng):
    with pytest.raises(ValueError, match=r"validation must be a share between 0 and 1; got '0\.2'"):
        PredictiveStateModel(validation="0.2").fit(rng.normal(size=(200, 1)))


@pytest.mark.parametrize("shape", [(1, 3), (4, 3), (4, 800)])
def test_directions_of_rows_that_are_all_equal_are_no_larger_than_others(shape):
    directions = principal_directions([np.full(shape, 0.3)], 2)

    assert np.abs(directions).max() <= 1
