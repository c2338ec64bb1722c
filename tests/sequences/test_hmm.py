import pickle
import re
import warnings
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hmmlearn.hmm import GaussianHMM
from scipy import stats
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from exact_chains import exact_triples, random_chain
from latentviews import (
    Delta,
    Gaussian,
    IdentifiabilityWarning,
    JointDiagonalization,
    KernelHMM,
    Linear,
    Sieve,
    SmoothedEM,
    VonMises,
)
from latentviews._validation import UnsupportedError
from latentviews.core.features.indicators import OneHotFeatures
from latentviews.core.spectral import spectral_fit
from latentviews.core.views import Views
from latentviews.datasets import make_hmm
from latentviews.mixtures.cells import ScaledKernel, SieveView, basis_rule
from latentviews.mixtures.fit_rows import MixtureRows
from latentviews.sequences.baum_welch import ChainRows
from latentviews.sequences.chains import best_path, draw_states, filter_states, smooth_states, stationary
from latentviews.sequences.hmm import FORGETFUL
from latentviews.sequences.stretches import triple_columns, triples
from latentviews.sequences.transitions import transition_matrix
from reference import hsu_kakade_zhang

ONE_WIDTH = Sieve((2.0,))  # quick: no width to choose


@pytest.mark.parametrize(("k", "n_sensors"), [(2, 1), (3, 1), (2, 2)])
@pytest.mark.parametrize("law", ["stationary", "any"])
def test_exact_moments_give_the_exact_chain(k, n_sensors, law, rng):
    start, transition, tables = random_chain(rng, k, 4 if n_sensors == 1 else 3, n_sensors)
    start = stationary(transition) if law == "stationary" else start
    rows, weights = exact_triples(start, transition, tables)
    columns = triple_columns(tuple([s] for s in range(n_sensors)), n_sensors)
    views = Views(columns, tuple(OneHotFeatures(len(tables[0])).fit(rows[:, :1]) for _ in columns))

    found = spectral_fit(rows, views, k, JointDiagonalization(), rng, weights=weights, reference=1)
    moved = transition_matrix(rows, found, weights)

    emissions = found.vectors[1]
    order = [int(np.abs(emissions - tables[0][:, [h]]).sum(axis=0).argmin()) for h in range(k)]
    for s, table in enumerate(tables):
        np.testing.assert_allclose(found.vectors[3 * s + 1][:, order], table, atol=1e-8)
    np.testing.assert_allclose(moved[np.ix_(order, order)], transition, atol=1e-8)
    np.testing.assert_allclose(found.weights[order], start @ transition, atol=1e-8)


def test_the_chain_gives_sequences_the_probability_of_hsu_kakade_and_zhangs_operators(rng):
    k, n_values = 3, 5
    _, transition, (table,) = random_chain(rng, k, n_values)
    law = stationary(transition)
    rows, weights = exact_triples(law, transition, [table])
    views = Views(([0], [1], [2]), (OneHotFeatures(n_values).fit(rows[:, :1]),) * 3)
    found = spectral_fit(rows, views, k, JointDiagonalization(), rng, weights=weights, reference=1)
    moved = transition_matrix(rows, found, weights)
    joint = np.zeros((n_values,) * 3)
    np.add.at(joint, tuple(rows.astype(int).T), weights)

    for length in (1, 2, 4, 7):
        sequence = rng.integers(n_values, size=length)
        log_emissions = np.log(found.vectors[1][sequence])
        ours = filter_states(log_emissions, found.weights, moved, np.array([length])).log_likelihood.sum()
        assert np.exp(ours) == pytest.approx(hsu_kakade_zhang(joint, k, sequence), rel=1e-8)


def test_passes_equal_hmmlearns_with_gaussian_emissions(rng):
    k, lengths = 3, [400, 1, 99]
    theirs = GaussianHMM(k, covariance_type="full")
    theirs.startprob_, theirs.transmat_ = rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k), size=k)
    covariances = np.stack([np.diag(rng.uniform(0.5, 2, size=2)) for _ in range(k)])
    theirs.n_features, theirs.means_, theirs.covars_ = 2, rng.normal(size=(k, 2)), covariances
    X = rng.normal(size=(500, 2))
    log_emissions = np.stack(
        [stats.multivariate_normal(m, c).logpdf(X) for m, c in zip(theirs.means_, covariances, strict=True)], axis=1
    )
    arguments = log_emissions, theirs.startprob_, theirs.transmat_, np.array(lengths)
    assert filter_states(*arguments).log_likelihood.sum() == pytest.approx(theirs.score(X, lengths), abs=1e-8)
    np.testing.assert_allclose(smooth_states(*arguments).posteriors, theirs.predict_proba(X, lengths), atol=1e-8)
    np.testing.assert_array_equal(best_path(*arguments).states, theirs.predict(X, lengths))


def discrete_series(n, rng):
    transition = np.array([[0.8, 0.2], [0.3, 0.7]])
    states = draw_states(np.array([0.6, 0.4]), transition, np.array([n]), rng)
    table = np.array([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]])
    return (rng.random(n)[:, None] > np.cumsum(table, axis=1)[states]).sum(axis=1, keepdims=True), transition


def test_the_error_of_transitions_falls_as_the_root_of_the_rows():
    def error(n, seed):
        X, transition = discrete_series(n, np.random.default_rng(seed))
        found = KernelHMM(2, kernel=Delta(), polish=None, random_state=0).fit(X)
        flip = found.components_[0].at([[0.0]])[0].argsort()[::-1]
        return np.abs(found.transition_[np.ix_(flip, flip)] - transition).max()

    few, many = (np.median([error(n, seed) for seed in range(16)]) for n in (1000, 16_000))
    assert 2.2 < few / many < 7  # four, give or take the noise of two medians of 16


def oracle(truth, X):
    with np.errstate(divide="ignore"):
        log_emissions = np.log(truth.components[0].density(X))
    return log_emissions, truth.start, truth.transition, np.array([len(X)])


@pytest.fixture(scope="module")
def shapes():
    """A fit to states that differ in shape alone."""
    X, _, truth = make_hmm(4000, random_state=0)
    return KernelHMM(3, random_state=0).fit(X), X, truth


def test_states_that_differ_in_shape_alone_are_found(shapes):
    model, _, truth = shapes
    X, states, _ = make_hmm(10_000, random_state=1)
    reachable = adjusted_rand_score(states, best_path(*oracle(truth, X)).states)
    assert adjusted_rand_score(states, model.predict(X)) > 0.9 * reachable
    assert model.score(X) > filter_states(*oracle(truth, X)).log_likelihood.mean() - 0.025
    assert np.abs(np.sort(model.transition_.diagonal()) - 0.9).max() < 0.05
    np.testing.assert_allclose(model.transition_.sum(axis=1), 1.0)


def test_the_spectral_estimate_is_a_proper_chain():
    X, _, _ = make_hmm(16_000, random_state=1)
    model = KernelHMM(3, polish=None, random_state=0).fit(X)
    assert np.all(model.transition_ >= 0)
    np.testing.assert_allclose(model.transition_.sum(axis=1), 1.0)
    assert np.abs(np.sort(model.transition_.diagonal()) - 0.9).max() < 0.1


def test_baum_welch_on_a_sieve_never_loses_likelihood(rng):
    X, _, _ = make_hmm(600, random_state=rng)
    rows = ChainRows(MixtureRows(X, ([0],), [0], [Gaussian()]), np.array([250, 350]))
    cells = rows.cells([SieveView([0], 0, basis_rule(X, Gaussian(), 2, 0).basis(2.0))])
    parameters = rows.initial(cells, rng.dirichlet(np.ones(3), size=len(X)))
    scores = []
    for _ in range(30):
        parameters, score = rows.step(cells, parameters)
        scores.append(score)
    assert np.all(np.diff(scores) > -1e-9)
    assert scores[-1] > scores[0]
    assert rows.score(cells, parameters) >= scores[-1] - 1e-9


def test_sequences_are_never_joined():
    table = np.arange(7.0)[:, None]
    rows = triples(table, np.array([4, 2, 1]))
    np.testing.assert_array_equal(rows, [[0, 1, 2], [1, 2, 3]])
    X, _, _ = make_hmm(1000, lengths=np.full(20, 50), random_state=0)
    model = KernelHMM(2, polish=ONE_WIDTH, random_state=0).fit(X, lengths=np.full(20, 50))
    alone = [np.concatenate([f(part) for part in X.reshape(20, 50, 1)]) for f in (model.predict, model.predict_proba)]
    np.testing.assert_array_equal(model.predict(X, lengths=np.full(20, 50)), alone[0])
    np.testing.assert_allclose(model.predict_proba(X, lengths=np.full(20, 50)), alone[1], atol=1e-10)


def sensors(n, rng):
    """Two states seen by a plane, an angle and a code."""
    states = draw_states(np.array([0.5, 0.5]), np.array([[0.95, 0.05], [0.1, 0.9]]), np.array([n]), rng)
    plane = rng.normal(size=(n, 2)) @ np.array([[1.0, 0.8], [0.0, 0.6]]) + 3.0 * states[:, None]
    angle = rng.vonmises(np.where(states == 1, 3.0, 0.5), 2.0)
    code = (rng.random(n) < np.where(states == 1, 0.8, 0.2)).astype(float)
    return np.column_stack([plane, angle, code]), states


KINDS = {
    "plane": ([[0, 1]], [Gaussian("median")]),
    "angle": ([[2]], [VonMises()]),
    "code": ([[3]], [Delta()]),
    "all sensors": ([[0, 1], [2], [3]], [Gaussian("median"), VonMises(), Delta()]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_emissions_of_every_kind(kind):
    X, states = sensors(1500, np.random.default_rng(3))
    views, kernel = KINDS[kind]
    model = KernelHMM(2, views=views, kernel=kernel, polish=ONE_WIDTH, random_state=0).fit(X)
    reached = adjusted_rand_score(states, model.predict(X))
    assert reached > {"plane": 0.85, "angle": 0.8, "code": 0.5, "all sensors": 0.95}[kind]
    drawn, _ = model.sample(500)
    assert np.isnan(drawn).all(axis=0).sum() == X.shape[1] - sum(map(len, views))
    forecast = model.forecast(X, 3)
    used = [j for view in views for j in view]
    assert np.isfinite(forecast.mean()[:, used]).all()
    assert np.all(forecast.quantile(0.1)[:, used] <= forecast.quantile(0.9)[:, used])


def test_sieves_of_several_columns_fit_rest_and_motion(rng):
    """Sensors that are mostly at rest: kernels of one width are too wide for rest or too few for motion."""
    moving = rng.random(1500) < 0.5
    X = rng.normal(size=(1500, 6)) * np.where(moving, 1.0, 0.01)[:, None]
    columns = [0, 1, 2, 3, 4, 5]
    chain = ChainRows(MixtureRows(X, (columns,), [0], [Gaussian()]), np.array([1500]))

    def score(rule):
        cells = chain.cells([SieveView(columns, 0, rule.basis(1.5))])
        parameters = chain.initial(cells, np.eye(2)[moving.astype(int)])
        return chain.score(cells, chain.step(cells, parameters)[0])

    assert score(basis_rule(X, Gaussian(), 2, 0)) > score(ScaledKernel(X, Gaussian("isj").adapt(X), 0)) + 2


def test_states_of_rest_and_motion_are_as_likely_as_under_the_truth():
    rng = np.random.default_rng(0)
    moving = draw_states(np.full(2, 0.5), np.array([[0.95, 0.05], [0.05, 0.95]]), np.array([4000]), rng)
    spread = np.where(moving, 1.0, 0.05)[:, None]
    X = rng.normal(size=(4000, 4)) * spread
    model = KernelHMM(2, random_state=0).fit(X[:2000])
    assert np.mean(model.predict(X[2000:]) == moving[2000:]) in (pytest.approx(0, abs=0.02), pytest.approx(1, abs=0.02))
    truth = np.where(moving, 0.0, -4 * np.log(0.05)) - 0.5 * ((X / spread) ** 2).sum(axis=1) - 2 * np.log(2 * np.pi)
    moves = np.log(0.95) * 0.95 + np.log(0.05) * 0.05
    assert model.score(X[2000:]) > truth[2000:].mean() + moves - 0.1


def test_missing_rows_are_passed_over_in_time(shapes, rng):
    model, X, _ = shapes
    holes = X[:300].copy()
    holes[rng.random(300) < 0.3] = np.nan
    log_emissions = model.components_[0].log_density(np.nan_to_num(holes))
    log_emissions[np.isnan(holes[:, 0])] = 0.0
    expected = smooth_states(log_emissions, model.start_, model.transition_, np.array([300])).posteriors
    np.testing.assert_allclose(model.predict_proba(holes), expected, atol=1e-12)
    assert np.all(model.score_samples(holes)[np.isnan(holes[:, 0])] == pytest.approx(0.0, abs=1e-12))


def test_a_fit_bears_missing_rows_and_missing_sensors():
    rng = np.random.default_rng(0)
    X, states = sensors(1500, rng)
    X[rng.random(1500) < 0.1] = np.nan
    X[rng.random(1500) < 0.1, 2] = np.nan
    views, kernel = KINDS["all sensors"]
    model = KernelHMM(2, views=views, kernel=kernel, polish=ONE_WIDTH, random_state=0).fit(X)
    assert adjusted_rand_score(states, model.predict(X)) > 0.85


def test_states_are_counted():
    few = Sieve(max_iter=4, factors=(2.0,))  # the count comes before the polish
    counts = [
        KernelHMM("auto", polish=few, random_state=0).fit(make_hmm(6000, random_state=i).X).n_states_ for i in range(3)
    ]
    assert sorted(counts)[1] == 3
    assert (
        KernelHMM("auto", polish=few, random_state=0).fit(np.random.default_rng(0).normal(size=(500, 1))).n_states_ == 1
    )


def test_a_forecast_is_the_mixture_that_the_chain_says(shapes):
    model, X, _ = shapes
    forecast = model.forecast(X, 4)
    states = model.filter(X)[-1]
    view = model.components_[0]
    for step in range(4):
        states = states @ model.transition_
        np.testing.assert_allclose(forecast.states[step], states, atol=1e-12)
        x = np.linspace(-3, 4, 9)
        np.testing.assert_allclose(forecast.density(x)[step], view.density(x) @ states, atol=1e-6)
        np.testing.assert_allclose(np.exp(forecast.log_density(x)[step]), np.exp(view.log_density(x)) @ states)
    means = view.expectation(lambda x: x[:, 0])
    np.testing.assert_allclose(forecast.mean()[:, 0], forecast.states @ means)
    draws = forecast.sample(4000, random_state=0)
    assert draws.shape == (4000, 4, 1)
    quantiles = forecast.quantile([0.1, 0.5, 0.9])
    for step, level in product(range(4), range(3)):
        below = (draws[:, step, 0] <= quantiles[step, 0, level]).mean()
        assert abs(below - (0.1, 0.5, 0.9)[level]) < 0.04  # five standard errors


def test_forecasts_of_several_sequences_and_their_paths(shapes):
    model, X, _ = shapes
    several = model.forecast(X[:90], 5, lengths=[40, 50])
    assert several.mean().shape == (2, 5, 1)
    np.testing.assert_allclose(several.states[1], model.forecast(X[40:90], 5).states, atol=1e-12)
    assert several.sample(7, random_state=0).shape == (7, 2, 5, 1)
    assert several.quantile([0.2, 0.8]).shape == (2, 5, 1, 2)
    np.testing.assert_allclose(model.forecast(X, 500).states[-1], stationary(model.transition_), atol=1e-6)


def test_a_long_series_is_fitted_from_a_pilot_and_steps_over_all_rows():
    X, states, truth = make_hmm(20_000, random_state=5)
    models = [KernelHMM(3, polish=ONE_WIDTH, pilot_size=5000, random_state=seed).fit(X) for seed in range(2)]
    reachable = adjusted_rand_score(states, best_path(*oracle(truth, X)).states)
    reached = [adjusted_rand_score(states, model.predict(X)) for model in models]  # they differ by some .03
    assert np.mean(reached) > 0.9 * reachable


def test_a_run_is_a_function_of_its_data_and_seed_and_models_travel():
    X, _, _ = make_hmm(500, random_state=0)
    one, two = (KernelHMM(2, polish=ONE_WIDTH, random_state=7).fit(X) for _ in range(2))
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    copy = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(copy.predict_proba(X), one.predict_proba(X))
    np.testing.assert_array_equal(clone(one).fit(X).transition_, one.transition_)
    frame = pd.DataFrame({"sensor": X[:, 0], "text": "a"})
    named = KernelHMM(2, views=["sensor"], polish=ONE_WIDTH, random_state=7).fit(frame)
    np.testing.assert_array_equal(named.predict(frame), one.predict(X))


def test_independent_rows_are_said_to_be_so():
    """A transition matrix whose rows are the same: the spectrum has no second direction."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 1)) + 5 * rng.integers(2, size=(600, 1))
    with pytest.warns(IdentifiabilityWarning, match="look independent"):
        KernelHMM(2, polish=ONE_WIDTH, random_state=0).fit(X)


def test_a_state_that_is_never_visited_is_said_to_be_so():
    X = np.tile([0.0, 1.0], 200)[:, None]
    with pytest.warns(IdentifiabilityWarning, match="expected in less than one of 400 rows, so never visited"):
        KernelHMM(4, polish=ONE_WIDTH, random_state=0).fit(X)


BAD_INPUT = {
    "two rows": (lambda X: KernelHMM(2).fit(X[:2]), "three consecutive rows.*n_samples = 2 in 1 sequence"),
    "short sequences": (lambda X: KernelHMM(2).fit(X, lengths=[2] * 25), "no sequence has so many.*longest of 2 row"),
    "lengths that do not add up": (lambda X: KernelHMM(2).fit(X, lengths=[20, 20]), "add up to 40, and X has 50"),
    "a length of zero": (lambda X: KernelHMM(2).fit(X, lengths=[50, 0]), "positive integers"),
    "half a length": (lambda X: KernelHMM(2).fit(X, lengths=[24.5, 25.5]), "positive integers"),
    "no states": (lambda X: KernelHMM(0).fit(X), "n_states must be an integer of at least 1; got 0"),
    "more states than rows": (lambda X: KernelHMM(99).fit(X), "99 states need at least 99 rows"),
    "a constant series": (lambda X: KernelHMM(2).fit(X * 0), "is constant"),
    "all missing": (lambda X: KernelHMM(2).fit(X * np.nan), "is missing in all"),
    "values too small": (lambda X: KernelHMM(2).fit(X * 1e-200), "varies by .*e-200, whose square is no number"),
    "no row with both columns": (
        lambda X: KernelHMM(2).fit(np.where([[i % 2, 1 - i % 2] for i in range(50)], np.nan, X)),
        r"No row has all of columns \[0, 1\] of view 0",
    ),
    "infinity": (lambda X: KernelHMM(2).fit(np.where(X > 1, np.inf, X)), "infinity"),
    "no horizon": (lambda X: KernelHMM(1).fit(X).forecast(X, 0), "horizon must be an integer of at least 1"),
    "lengths at prediction": (lambda X: KernelHMM(1).fit(X).predict(X, lengths=[3]), "add up to 3, and X has 50"),
    "lengths in the place of y": (lambda X: KernelHMM(2).fit(X, [20, 30]), "got 2 for 50 rows.*lengths=..."),
    "no level": (lambda X: KernelHMM(1).fit(X).forecast(X).quantile([]), "between 0 and 1, or a list"),
    "a level in words": (lambda X: KernelHMM(1).fit(X).forecast(X).quantile("median"), "between 0 and 1.*'median'"),
    "a view that is not there": (
        lambda X: KernelHMM(1).fit(X).forecast(X).density([0.0], view=3),
        "view must be a number from 0 to 0; got 3",
    ),
    "a level of one": (lambda X: KernelHMM(1).fit(X).forecast(X).quantile(1.0), "between 0 and 1"),
    "no view": (lambda X: KernelHMM(1, views=[]).fit(X), "views is empty"),
    "no whole triple": (
        lambda X: KernelHMM(2, polish=None).fit(np.where(np.arange(50)[:, None] % 2, np.nan, X)),
        "rows? in a row are seen|third moment|nothing is known",
    ),
}


@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input_gets_one_clear_sentence(case):
    call, message = BAD_INPUT[case]
    with pytest.raises(ValueError, match=message):
        call(np.random.default_rng(0).normal(size=(50, 1)))


def test_a_list_of_sequences_is_refused_with_what_to_do(rng):
    with pytest.raises(TypeError, match="Stack them"):
        KernelHMM(2).fit([rng.normal(size=(20, 1)), rng.normal(size=(30, 1))])


def test_a_kernel_without_densities_says_so(rng):
    X = rng.normal(size=(200, 2))
    with pytest.raises(TypeError, match="emission densities"):
        KernelHMM(2, kernel=Linear(), random_state=0).fit(X)


def test_a_polish_that_is_not_exact_em_is_refused(rng):
    with pytest.raises(TypeError, match="must be a Sieve"):
        KernelHMM(2, polish=SmoothedEM()).fit(rng.normal(size=(50, 1)))


def test_a_failed_fit_changes_nothing(shapes):
    model, X, _ = shapes
    before = model.predict(X[:50])
    with pytest.raises(ValueError, match="add up"):
        model.fit(X, lengths=[3])
    np.testing.assert_array_equal(model.predict(X[:50]), before)


def test_columns_far_from_zero_are_no_hindrance():
    rng = np.random.default_rng(0)
    moving = draw_states(np.full(2, 0.5), np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([600]), rng)
    X = rng.normal(size=(600, 2)) * np.where(moving, 1.0, 0.1)[:, None]
    here, there = (KernelHMM(2, polish=ONE_WIDTH, random_state=0).fit(rows) for rows in (X, X + 1e8))
    np.testing.assert_allclose(here.score(X), there.score(X + 1e8), atol=0.1)
    assert np.mean(here.predict(X) == there.predict(X + 1e8)) > 0.98


def test_a_codebook_has_gaussians_for_every_state(rng):
    """Few rows of many columns: fewer Gaussians than states could not tell them apart."""
    states = draw_states(np.full(2, 0.5), np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([200]), rng)
    X = rng.normal(size=(200, 20)) + 3 * states[:, None]
    found = KernelHMM(2, polish=ONE_WIDTH, random_state=0).fit(X).predict(X)
    assert np.mean(found == states) in (pytest.approx(0, abs=0.02), pytest.approx(1, abs=0.02))


def test_quantiles_of_many_columns_are_those_of_draws():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 25)) * np.where(rng.random(1200) < 0.5, 1.0, 0.3)[:, None]
    forecast = KernelHMM(2, polish=ONE_WIDTH, random_state=0).fit(X).forecast(X, 1)
    draws = forecast.sample(4000, random_state=0)[:, 0]
    found = forecast.quantile([0.05, 0.5, 0.95])[0].T
    np.testing.assert_allclose(found, np.quantile(draws, [0.05, 0.5, 0.95], axis=0), atol=0.15)


def test_lengths_that_are_lists_of_different_lengths_get_a_sentence(rng):
    with pytest.raises(ValueError, match="lengths must be a list of positive integers"):
        KernelHMM(2).fit(rng.normal(size=(6, 1)), lengths=[[1], [2, 3]])


def test_states_of_the_spectral_estimate_can_be_left():
    """Moves that were not found are rare, not impossible."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        law = np.full((3, 3), 0.025) + 0.925 * np.eye(3)
        states = draw_states(np.full(3, 1 / 3), law, np.array([2000]), rng)
        X = 3 * rng.normal(size=(3, 2))[states] + rng.normal(size=(2000, 2))
        assert KernelHMM(3, polish=None, random_state=0).fit(X).transition_.min() > 1e-4


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_units_of_many_columns_make_no_difference(unit):
    """Densities of 64 columns in millionths are beyond the range of numbers."""
    rng = np.random.default_rng(0)
    states = draw_states(np.full(2, 0.5), np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([600]), rng)
    X = rng.normal(size=(600, 64)) + 0.8 * rng.normal(size=(2, 64))[states]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = KernelHMM(2, polish=ONE_WIDTH, random_state=0).fit(X * unit)
    assert adjusted_rand_score(states, model.predict(X * unit)) > 0.95
    assert -110 < model.score(X * unit) + 64 * np.log(unit) < -80
    assert model.forecast(X * unit).quantile(0.5) == pytest.approx(0, abs=3 * unit)


def quiet_and_wide(n, rng, dim=1, sd=0.01):
    """A sensor that rests and moves."""
    states = draw_states(np.full(2, 0.5), np.array([[0.95, 0.05], [0.05, 0.95]]), np.array([n]), rng)
    noise = rng.normal(size=(n, dim))
    return np.where(states[:, None] == 0, sd * noise, 10 + 3 * noise), states


@pytest.mark.parametrize("dim", [1, 2])
def test_states_of_very_different_spread_keep_their_own(dim):
    rng = np.random.default_rng(0)
    X, states = quiet_and_wide(2000, rng, dim)
    model = KernelHMM(2, polish=ONE_WIDTH, random_state=0).fit(X)
    assert adjusted_rand_score(states, model.predict(X)) > 0.98
    quiet = int(np.argmin(np.abs(model.components_[0].expectation(lambda x: x[:, 0]))))
    draws = model.components_[0].sample(quiet, 2000, rng)
    assert np.ptp(np.quantile(draws[:, 0], [0.25, 0.75])) == pytest.approx(1.349 * 0.01, rel=0.3)
    new, _ = quiet_and_wide(2000, rng, dim)
    truth = GaussianHMM(2, "full", min_covar=1e-9, random_state=0).fit(X).score(new) / len(new)
    assert model.score(new) > truth - 0.05


@pytest.mark.parametrize("stray", [1e12, 9.97e36])
def test_a_stray_value_among_several_columns_is_borne(stray):
    rng = np.random.default_rng(0)
    X, states = quiet_and_wide(1000, rng, 2, 1.0)
    X[77, 0] = stray
    model = KernelHMM(2, polish=ONE_WIDTH, random_state=0).fit(X)
    assert adjusted_rand_score(states, model.predict(X)) > 0.9


def test_columns_that_lie_in_few_dimensions_are_borne():
    rng = np.random.default_rng(0)
    states = draw_states(np.full(2, 0.5), np.array([[0.95, 0.05], [0.05, 0.95]]), np.array([1000]), rng)
    X = (rng.normal(size=(1000, 4)) + 2 * states[:, None]) @ rng.normal(size=(4, 200))
    model = KernelHMM(2, polish=ONE_WIDTH, random_state=0).fit(X)
    assert adjusted_rand_score(states, model.predict(X)) > 0.8


def test_rounded_values_tell_states_nearly_as_well_as_the_values_themselves():
    rng = np.random.default_rng(0)
    states = draw_states(np.full(3, 1 / 3), np.full((3, 3), 0.02) + 0.94 * np.eye(3), np.array([3000]), rng)
    X = states[:, None] + 0.7 * rng.normal(size=(3000, 1))
    found = [adjusted_rand_score(states, KernelHMM(3, random_state=0).fit(Z).predict(Z)) for Z in (X, np.round(X))]
    assert found[1] > found[0] - 0.15


def test_densities_of_a_forecast_bear_any_unit():
    """In 64 columns of millionths a density is beyond the range of numbers, and its log is not."""
    rng = np.random.default_rng(0)
    states = draw_states(np.full(2, 0.5), np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([600]), rng)
    X = rng.normal(size=(600, 64)) + 0.8 * rng.normal(size=(2, 64))[states]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one, small = (KernelHMM(2, polish=ONE_WIDTH, random_state=0).fit(X * u).forecast(X * u, 3) for u in (1.0, 1e-6))
        expected = one.log_density(X[:20]) + 64 * np.log(1e6)
        np.testing.assert_allclose(small.log_density(1e-6 * X[:20]), expected, rtol=1e-6)
        assert np.all(small.density(1e-6 * X[:20]) == np.inf)


def test_a_state_that_cannot_be_counts_for_nothing(shapes):
    model, X, _ = shapes
    sure = replace(model.forecast(X), states=np.eye(3)[[1]])
    x = np.linspace(-50, 50, 11)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(sure.log_density(x)[0], model.components_[0].log_density(x)[:, 1])


def test_columns_in_no_view_are_nan_in_forecasts():
    X, states, _ = make_hmm(600, random_state=0)
    model = KernelHMM(2, views=[[0]], polish=ONE_WIDTH, random_state=0).fit(np.column_stack([X, states]))
    forecast = model.forecast(np.column_stack([X, states]), 3)
    for table in (forecast.mean(), forecast.quantile(0.5), forecast.sample(5)[0], model.sample(3)[0]):
        assert table.shape == (3, 2)
        np.testing.assert_array_equal(np.isnan(table), np.tile([False, True], (3, 1)))


def warned(fit):
    """What a fit warns of, each once, and the file it points at."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    return [str(one.message) for one in caught], {one.filename for one in caught}


def test_rows_that_never_follow_each_other_are_not_called_independent():
    X = make_hmm(600, random_state=0).X
    every_other = np.where(np.arange(600)[:, None] % 2, np.nan, X)
    (message,), _ = warned(lambda: KernelHMM(2, polish=ONE_WIDTH, random_state=0).fit(every_other))
    assert message.startswith("No two rows one step apart are both seen, so nothing is known of how states follow.")


GAPS = {  # which rows each of two sensors has, and what is said
    "both at half the rate": ((2, 0), (2, 0), "No two rows one step apart both have view 0,"),
    "one at half the rate": ((1, 0), (2, 0), "No two rows one step apart both have view 1,"),
    "in turns": ((3, 0), (3, 1), "No two rows one step apart both have view 0,"),
}


@pytest.mark.parametrize("case", GAPS)
def test_what_is_never_seen_is_said_in_words_of_time(case):
    *rates, message = GAPS[case]
    X = np.repeat(make_hmm(600, random_state=0).X, 2, axis=1)
    for j, (rate, first) in enumerate(rates):
        X[np.arange(600) % rate != first, j] = np.nan
    with pytest.raises(UnsupportedError, match=message):
        KernelHMM(2, views=[[0], [1]], polish=None, random_state=0).fit(X)


def test_no_three_rows_in_a_row_are_said_to_be_so():
    X = np.where(np.arange(600)[:, None] % 3 == 2, np.nan, make_hmm(600, random_state=0).X)
    with pytest.raises(UnsupportedError, match="No three rows in a row are seen"):
        KernelHMM(2, polish=None, random_state=0).fit(X)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_warnings_point_at_the_call(method, rng):
    X = rng.normal(size=(1500, 1))
    model = KernelHMM(2, kernel=VonMises(), polish=ONE_WIDTH, random_state=0)
    messages, files = warned(lambda: getattr(model, method)(X * 30))
    assert any("look independent" in message for message in messages)
    assert any("radians" in message for message in messages)
    assert files == {__file__}


def test_states_that_are_never_visited_are_named_at_once():
    rng = np.random.default_rng(0)
    messages, _ = warned(
        lambda: KernelHMM(50, polish=Sieve((2.0,), max_iter=5), random_state=0).fit(rng.normal(size=(60, 1)))
    )
    (unvisited,) = (message for message in messages if "never visited" in message)
    assert re.match(r"States \d+, (\d+, )*49 are each expected in less than one of 60 rows", unvisited)


def test_a_transition_matrix_without_independent_rows_is_said_to_be_one():
    """Fifty states in sixty rows: some are seen too seldom to lead anywhere of their own."""
    X = np.random.default_rng(0).normal(size=(60, 1))
    model = KernelHMM(50, polish=Sieve((2.0,), max_iter=5), random_state=0)
    messages, _ = warned(lambda: model.fit(X))
    assert np.linalg.svd(model.transition_, compute_uv=False)[-1] < FORGETFUL
    assert any("near one without independent rows" in message for message in messages)


@pytest.mark.parametrize("unit", [1.0, 180 / np.pi], ids=["radians", "degrees"])
def test_degrees_are_suspected(unit, rng):
    states = draw_states(np.full(2, 0.5), np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([400]), rng)
    angles = unit * rng.vonmises(2.0 * states, 5.0)[:, None]
    messages, _ = warned(lambda: KernelHMM(2, kernel=VonMises(), polish=ONE_WIDTH, random_state=0).fit(angles))
    said = [message for message in messages if "radians" in message]
    assert len(said) == (unit > 1)
    assert all(message.endswith("turn degrees into radians with np.deg2rad.") for message in said)


@pytest.mark.parametrize("polish", [None, ONE_WIDTH], ids=["spectral", "polished"])
def test_the_units_of_a_sensors_columns_do_not_matter(polish):
    """A column of noise in small units, thus of large numbers, would drown the one that tells the states."""
    X = np.column_stack([make_hmm(800, random_state=0).X, np.random.default_rng(0).normal(size=(800, 2))])
    units = np.array([1.0, 128.0, 1 / 128])
    one, other = (KernelHMM(2, polish=polish, random_state=0).fit(table) for table in (X, X * units))
    np.testing.assert_allclose(other.transition_, one.transition_, atol=1e-6)
    np.testing.assert_array_equal(other.predict(X * units), one.predict(X))
