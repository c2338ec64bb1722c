"""Hostile and unlucky input: a test for every fault that was found in fits."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import latentviews
from fuzz.verdicts import Judge
from latentviews import (
    Copulas,
    DoublyStochasticClassifier,
    DoublyStochasticRegressor,
    FourierFeatures,
    Gaussian,
    Interval,
    KernelHMM,
    LandmarkFeatures,
    LatentClass,
    LowRankDensity,
    MultiViewMixture,
    ObservableOperators,
    PredictiveStateModel,
    SignedTrain,
    SmoothedEM,
    Stack,
    TopicModel,
    VonMises,
    independence_test,
    likelihood_curve,
)
from latentviews._numbers import posteriors_of
from latentviews.baselines import LatentTreeSpectral, NonparametricEM, SphericalSpectral
from latentviews.core import selection
from latentviews.core.features.bins import BinnedFeatures
from latentviews.core.kernels.bandwidths import cv
from latentviews.core.moments import feature_vectors, pair_moments
from latentviews.core.views import fit_views
from latentviews.datasets import make_multiview
from latentviews.densities.weighted_samples import log_kernels, log_mixtures
from latentviews.diagnosis.moments import moment_quality
from latentviews.report import write_report
from latentviews.sequences import dynamics
from latentviews.sequences.reading import _in_standard_units
from latentviews.stochastic import learning
from latentviews.stochastic.choice import left_out_errors

FAR = 1e149


def judged(function, *args, **kwargs):
    """What a call gives; a fault of any kind fails the test."""
    judge = Judge()
    found = judge.call("call", function, *args, **kwargs)
    assert judge.faults == []
    assert judge.refusals == []
    return found


def two_classes(rng, n=120, d=4):
    return rng.normal(size=(n, d)) + 4 * rng.integers(0, 2, size=(n, 1))


# ------------------------------------------------------------------------------------------------------------ far rows


@pytest.mark.cheap
def test_posteriors_sum_to_one_however_large_their_logs():
    np.testing.assert_array_equal(posteriors_of(np.full((1, 4), -1e298)), np.full((1, 4), 0.25))
    np.testing.assert_array_equal(posteriors_of(np.full((1, 2), -np.inf)), np.full((1, 2), 0.5))
    np.testing.assert_allclose(posteriors_of(np.log([[0.2, 0.6]])), [[0.25, 0.75]], rtol=1e-15)


@pytest.mark.cheap
def test_logs_of_kernels_are_numbers_at_any_distance(rng):
    points, widths = rng.normal(size=(5, 3)), np.full(5, 1e-6)

    logs = judged(log_kernels, np.full((2, 3), FAR), points, widths)

    assert np.isfinite(logs).all()
    assert np.isfinite(log_mixtures(logs, np.full((5, 2), 0.2))).all()


@pytest.mark.parametrize(
    "model",
    [
        MultiViewMixture(2, views=[[0, 1], [2], [3]], random_state=0),
        MultiViewMixture(2, dependence=Copulas(n_starts=1), random_state=0),
        KernelHMM(2, random_state=0),
        SphericalSpectral(2, random_state=0),
    ],
    ids=["mixture", "copulas", "chain", "baseline"],
)
@pytest.mark.parametrize(("unit", "origin"), [(1e-9, 0.0), (1.0, 1e9)], ids=["small", "near 1e9"])
def test_rows_far_away_have_posteriors_and_densities(model, unit, origin, rng):
    rows = unit * two_classes(rng) + origin
    model.fit(rows)
    far = np.concatenate([np.full((2, 4), FAR), np.full((1, 4), -1e300), 1e6 * rows[:2], rows[:2] - 1e12])

    posteriors, scores = judged(model.predict_proba, far), judged(model.score_samples, far)

    np.testing.assert_allclose(posteriors.sum(axis=1), 1.0, rtol=1e-12)
    assert not np.isnan(scores).any()


def test_a_value_without_a_square_is_refused_by_name(rng):
    rows = two_classes(rng)
    rows[3, 2] = 1e200
    frame = pd.DataFrame(rows, columns=list("abcd"))

    with pytest.raises(ValueError, match=r"Column 'c' holds 1e.200, whose square is no number; scale the column"):
        LandmarkFeatures().fit(frame)
    with pytest.raises(ValueError, match=r"y holds 1e.200, whose square is no number; scale the targets"):
        DoublyStochasticRegressor().fit(two_classes(rng), rows[:, 2])


# ----------------------------------------------------------------------------------------------------- unlucky columns


@pytest.mark.parametrize("model", [MultiViewMixture(2), NonparametricEM(2), PredictiveStateModel()], ids=repr)
def test_a_column_of_rounding_errors_is_refused(model, rng):
    rows = two_classes(rng)
    rows[:, 1] = 0.1 * (1 + np.finfo(float).eps * rng.integers(-3, 4, size=len(rows)))

    with pytest.raises(ValueError, match=r"Column 1.* beside values of 0.1, which is no more than rounding"):
        model.fit(rows)


def test_held_out_likelihoods_of_columns_with_an_outlier_have_a_place_for_it(rng):
    x = rng.lognormal(0, 3, size=(200, 1))
    x[:2] = 1e30

    assert np.isfinite(judged(cv, x)).all()


@pytest.mark.parametrize("outlier", [1e12, 1e100, 1e149])
def test_third_moments_of_outliers_are_numbers(outlier, rng, capfd):
    rows = rng.uniform(size=(200, 3))
    rows[:2, 0] = outlier, -outlier

    model = judged(SphericalSpectral(2, random_state=0).fit, rows)

    np.testing.assert_allclose(model.weights_.sum(), 1.0)
    assert "DLASCL" not in "".join(capfd.readouterr())


@pytest.mark.parametrize("outlier", [1e80, 1e149])
def test_one_far_value_leaves_a_hidden_markov_model_with_numbers(outlier, rng):
    rows = two_classes(rng, d=3)
    rows[5, 0] = outlier

    model = judged(KernelHMM(2, random_state=0).fit, rows)

    assert np.isfinite(judged(model.filter, rows)).all()


def test_units_do_not_change_spherical_components(rng):
    rows = two_classes(rng, d=3)

    here, there = (
        SphericalSpectral(2, random_state=0).fit(rows),
        SphericalSpectral(2, random_state=0).fit(2.0**400 * rows),
    )

    np.testing.assert_allclose(there.means_, 2.0**400 * here.means_, rtol=1e-12)
    np.testing.assert_allclose(there.predict_proba(2.0**400 * rows), here.predict_proba(rows), atol=1e-12)


def test_a_signed_estimate_of_large_numbers_scores_and_draws(rng):
    rows = rng.integers(0, 2**52, size=(40, 3)).astype(float)
    holes = rows.copy()
    holes[:2, 0] = np.nan

    model = judged(LowRankDensity(2, method=SignedTrain(0.5), random_state=0).fit, rows)

    assert not np.isnan(judged(model.score_samples, holes)).any()
    assert not np.isnan(judged(model.sample, 5)).any()


def test_a_latent_tree_beyond_the_range_of_numbers_is_a_sentence(rng):
    with pytest.raises(ValueError, match="leaves the range of floating point; scale the columns first"):
        LatentTreeSpectral(2).fit(1e120 * rng.normal(size=(40, 6)))


def test_kernels_keep_their_digits_beside_an_outlier(rng):
    rows = rng.normal(size=(80, 3))
    rows[0, 0] = 1e12
    gram = latentviews.Gaussian(1.0).gram(rows[1:], rows[1:])

    np.testing.assert_allclose(latentviews.Gaussian(1.0).gram(rows, rows)[1:, 1:], gram, rtol=1e-9)
    judged(DoublyStochasticClassifier(random_state=0).fit, rows, np.arange(80) % 2)


def test_powers_beyond_the_range_of_numbers_are_a_sentence(rng):
    rows = rng.normal(size=(20, 3))
    features = LandmarkFeatures(latentviews.Polynomial(3), 5).fit(rows)

    with np.errstate(all="raise"), pytest.raises(ValueError, match=r"inner products of up to .* to the power 3"):
        features.transform(np.full((2, 3), FAR))
    with pytest.raises(ValueError, match="values of the kernel are out of range"):
        LandmarkFeatures(latentviews.Polynomial(), 5).fit(np.vstack([rows, np.full((1, 3), FAR)]))


def test_counts_whose_third_powers_are_no_numbers_are_refused(rng):
    bags = rng.poisson(3.0, size=(60, 8)).astype(float)
    bags[0, 0] = FAR

    with pytest.raises(ValueError, match=r"needs counts of words, of at most 1e\+15; got 1e\+149"):
        TopicModel(2).fit(bags)


def test_correlations_of_a_linear_kernel_are_numbers_far_away():
    rows = np.array([[1e149, 1e149], [1.0, 2.0]])

    assert np.isfinite(judged(latentviews.Linear().correlation, rows, rows)).all()


def test_no_ridge_at_all_can_be_judged_on_rows_left_out(rng):
    rows = rng.normal(size=(20, 3))

    errors = judged(left_out_errors, latentviews.Linear(), rows, rows[:, :1], np.array([0.0]))

    assert np.isfinite(errors).all()


def test_nothing_but_noise_in_a_resample_leaves_the_classes_as_they_are(rng, tmp_path):
    rows = rng.integers(0, 2, size=(150, 3)).astype(float)
    rows[4] = np.nan
    dependence = Copulas(n_starts=2, noise=True)
    model = MultiViewMixture(5, dependence=dependence, views=[0, 1, 2], random_state=0).fit(rows)

    written = judged(write_report, model, rows, tmp_path / "report.html")

    assert f"{len(model.weights_)} classes" in written.read_text() or "1 class" in written.read_text()


def test_a_pilot_without_a_value_of_a_column_is_a_sentence(rng):
    rows = two_classes(rng)
    rows[:-1, 1] = np.where(rng.random(119) < 0.9, np.nan, rows[:-1, 1])

    with pytest.raises(ValueError, match=r"None of the 2 rows of the pilot has a value in column 1.*larger pilot_size"):
        MultiViewMixture(2, pilot_size=2, random_state=0).fit(rows)


def test_states_of_a_pilot_in_which_a_column_does_not_vary(rng):
    rows = np.column_stack([rng.normal(size=20), np.zeros(20)])

    phi = judged(_in_standard_units, LandmarkFeatures(), rows)

    assert np.all(phi.kernel.bandwidth > 0)


# ------------------------------------------------------------------------------------------------------- bad arguments


@pytest.mark.parametrize("model", [LowRankDensity(), PredictiveStateModel(), LandmarkFeatures()], ids=repr)
def test_names_and_text_in_columns_are_told(model, rng):
    frame = pd.DataFrame(two_classes(rng), columns=list("abcd"))

    with pytest.raises(ValueError, match="'a' occurs more than once"):
        model.fit(frame.set_axis(["a", "a", "b", "c"], axis=1))
    frame = frame.assign(c=[f"x{i}" for i in range(len(frame))])  # which hardly stands for categories
    with pytest.raises(ValueError, match=r"column 'c' holds text, such as 'x0'|Columns \['c'\] are not numbers"):
        model.fit(frame)
    with pytest.raises(ValueError, match="column 2 holds text, such as 'x0'"):
        model.fit(frame.to_numpy())


@pytest.mark.parametrize("name", ["ChangePoints", "KernelICA", "OneHotFeatures", "TopicModel", "MultiViewMixture"])
@pytest.mark.parametrize("form", ["array", "frame", "mixed"])
def test_dates_are_no_numbers(name, form):
    days = np.arange(60).astype("datetime64[D]")
    frame = pd.DataFrame({"day": days, "a": np.arange(60.0), "b": np.arange(60.0)})
    table = {"array": np.column_stack([days] * 3), "frame": frame[["day"]], "mixed": frame}[form]

    with pytest.raises(ValueError, match=r"holds dates, such as '1970|Columns \['day'\] are not numbers"):
        getattr(latentviews, name)().fit(table)


def test_text_among_counts_is_told():
    with pytest.raises(ValueError, match="TopicModel expects numbers; column 'b' holds text, such as 'x'"):
        TopicModel(2).fit(pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}))


@pytest.mark.parametrize("kind", [float, int, bool])
def test_masked_values_are_missing(kind, rng):
    X = two_classes(rng)
    X = (X.mean(axis=0) < X) if kind is bool else (10 * X).astype(kind)
    mask = rng.random(X.shape) < 0.1
    table = np.ma.masked_array(np.where(mask, ~X if kind is bool else 10**6, X), mask=mask)
    lacking = X.astype(object) if kind is bool else X.astype(float)
    lacking[mask] = None if kind is bool else np.nan
    model, expected = (MultiViewMixture(2, polish=None, random_state=0).fit(rows) for rows in (table, lacking))

    np.testing.assert_array_equal(model.predict_proba(table), expected.predict_proba(lacking))
    np.testing.assert_array_equal(model.predict_proba(table), model.predict_proba(lacking))
    answers = [LatentClass(2, random_state=0, n_starts=2).fit(rows) for rows in (table, lacking)]
    np.testing.assert_array_equal(answers[0].weights_, answers[1].weights_)


def test_masked_values_are_not_taken_where_rows_must_be_complete(rng):
    X = np.ma.masked_array(two_classes(rng), mask=False)
    LandmarkFeatures().fit(X)
    X[3, 1] = np.ma.masked

    with pytest.raises(ValueError, match="X contains NaN, first in row 3 of column 1"):
        LandmarkFeatures().fit(X)


def test_a_pilot_in_which_a_column_has_one_value_is_told(rng):
    X = rng.integers(2, size=(250, 3)).astype(float)
    X[:, 1] = np.arange(250) == 100

    with pytest.raises(ValueError, match="Column 1 has one value in the 10 rows of the pilot"):
        MultiViewMixture(2, pilot_size=10, random_state=0).fit(X)


def test_one_table_is_meant_where_batches_come(rng):
    with pytest.raises(TypeError, match="LandmarkFeatures expects one table here; got map"):
        LandmarkFeatures().fit(map(np.asarray, [[[1.0, 2.0]]]))


def test_arguments_that_are_no_numbers_are_told(rng):
    rows, words = two_classes(rng), np.array(["a", "b"] * 60)
    nullable = pd.DataFrame(rows).convert_dtypes().mask(rows > 6)

    with pytest.raises(ValueError, match="y must hold real numbers"):
        DoublyStochasticRegressor().fit(rows, words)
    with pytest.raises(ValueError, match="sample_weight must hold real numbers"):
        MultiViewMixture(2).fit(rows, sample_weight="w")
    with pytest.raises(ValueError, match="x contains NaN"):
        independence_test(nullable, rows)
    with pytest.raises(ValueError, match="y holds NaN or infinity; every label must be known"):
        DoublyStochasticClassifier().fit(rows, np.full(120, np.nan))
    with pytest.raises(ValueError, match="cv=5 folds need at least as many rows; got n_samples = 3"):
        likelihood_curve(MultiViewMixture(), rows[:3], [1])


# --------------------------------------------------------------------------------------------------------------- hangs


def test_few_rows_of_many_features_are_solved_by_the_rows(rng, monkeypatch):
    inputs, targets = dynamics.with_one(rng.normal(size=(30, 80))), rng.normal(size=(30, 2))
    values = rng.normal(size=(20, 50))

    def answers():
        directions = dynamics.principal_directions([values], 5)
        return dynamics.ridge([(inputs, targets)], 1e-2, free=3), directions @ directions.T

    before = answers()
    monkeypatch.setattr(dynamics, "WIDE", 10)

    for wide, narrow in zip(answers(), before, strict=True):
        np.testing.assert_allclose(wide, narrow, atol=1e-8)


def test_forecasts_from_many_features_end(rng):
    rows = rng.uniform(size=(200, 4))

    model = PredictiveStateModel(features=FourierFeatures(random_state=0), horizon=2, random_state=0)
    forecast = judged(judged(model.fit, rows).forecast, rows, 1)

    assert np.abs(np.asarray(forecast.mean()) - 0.5).max() < 0.5  # rows are uniform


def test_small_batches_of_a_growing_function_end_in_a_sentence(rng, monkeypatch):
    monkeypatch.setattr(learning, "MOST_SMALL", 20)
    model = DoublyStochasticRegressor(batch_size=1, n_blocks=None, n_frequencies=8, random_state=0)

    with pytest.raises(ValueError, match=r"20 batches as small as 1 row.* are enough. Take 16 rows or more in a batch"):
        model.fit(rng.normal(size=(21, 2)), rng.normal(size=21))


def test_a_diagnosis_of_heavy_tails_ends(rng):
    rows = rng.pareto(0.5, size=(80, 6))
    model = MultiViewMixture(1, random_state=0).fit(rows)

    quality = judged(moment_quality, model, rows, model.views_, rng)

    assert quality.rank == 1
    assert 0 < quality.noise < quality.sigma_k  # one class is there, however heavy its tails


def test_a_diagnosis_of_smoothed_em_in_six_columns_ends(rng):
    rows = rng.lognormal(size=(120, 6))
    model = MultiViewMixture(3, polish=SmoothedEM(), random_state=0).fit(rows)

    quality = judged(moment_quality, model, rows, model.views_, rng)

    assert quality.rank == 3
    assert quality.noise > quality.sigma_k  # three classes of one are noise, and the diagnosis has to say so


def test_leading_directions_of_few_rows_are_those_of_their_features(rng, monkeypatch):
    phi = rng.normal(size=(40, 60))
    before = selection._leading(phi, 30)
    monkeypatch.setattr(selection, "MANY", 10)

    found = selection._leading(phi, 30)

    np.testing.assert_allclose(np.abs(found), np.abs(before), atol=1e-9)


def test_pair_moments_of_few_rows_are_those_of_their_features(rng):
    rows = two_classes(rng, n=40)
    views = fit_views(rows, [[0], [1], [2], [3]], [BinnedFeatures() for _ in range(4)], rng, range(4))
    phi = feature_vectors(rows, views)

    pairs = pair_moments(rows, views)

    assert all(len(tail) > len(rows) for tail in views.tails)
    for (s, t), pair in pairs.items():
        np.testing.assert_allclose(pair, phi[s].T @ phi[t] / len(rows), atol=1e-12)


OF_ANY_UNIT = {
    "sieve": MultiViewMixture(2, random_state=0),
    "npMSL": MultiViewMixture(2, polish=SmoothedEM(), random_state=0),
    "several columns": MultiViewMixture(2, dependence="copula", views=[[0, 1], [2]], random_state=0),
    "chain": KernelHMM(2, views=[[0], [1], [2]], random_state=0),
    "npEM": NonparametricEM(2, random_state=0),
}


@pytest.mark.parametrize("unit", [1e-145, 1e-115, 1e115, 1e145])
@pytest.mark.parametrize("model", OF_ANY_UNIT.values(), ids=OF_ANY_UNIT.keys())
@pytest.mark.filterwarnings("error", "ignore::latentviews.IdentifiabilityWarning")
def test_the_unit_of_the_columns_does_not_matter(model, unit):
    """Products of the densities of three views were beyond all numbers, or below the least that a row may have."""
    X = make_multiview(300, 2, random_state=0).X

    weights = [clone(model).fit(table).weights_ for table in (X, unit * X)]

    np.testing.assert_allclose(*weights, atol=1e-6)


def test_views_of_any_unit_are_suggested():
    X = 1e-130 * make_multiview(60, 2, random_state=0).X

    assert judged(latentviews.suggest_views, X, 2, random_state=0) is not None


@pytest.mark.parametrize("size", [1.0, 1e140])
def test_classes_are_counted_whatever_the_size_of_features(size, rng):
    X = rng.normal(size=(200, 3)) + 4 * rng.integers(2, size=(200, 1))

    assert judged(latentviews.rank_test, size * X, kernel=latentviews.Linear(), random_state=0).n_components == 2


@pytest.mark.parametrize("seed", [3, 8])
def test_rows_that_are_never_near_landmarks_one_after_the_other_foretell_nothing(seed):
    """Moments of consecutive rows were 1e-281 or 1e-315, and their inverse no number."""
    rng = np.random.default_rng(seed)
    X = rng.lognormal(0, 3, size=(int(rng.choice([20, 40, 80, 150])), 6))
    features = LandmarkFeatures(Gaussian(1.0), 10, selection="kmeans", random_state=0)
    model = PredictiveStateModel(
        dynamics=ObservableOperators((10,), (1e-3,)), horizon=2, features=features, random_state=0
    )

    found = judged(model.fit, X)

    assert np.isfinite(found.forecast(X, 2).mean()).all()


@pytest.mark.parametrize("n_rows", [3, 60])
def test_densities_of_many_columns_in_small_units_and_an_interval_are_held_by_their_logs(n_rows, rng):
    """The height of a kernel on five columns was infinite, and with it every sum over rows."""
    X = 1e-120 * rng.normal(size=(n_rows, 5))
    model = KernelHMM(2, kernel=Gaussian(space=Interval(-5.0, 5.0)), random_state=0)

    found = judged(model.fit, X)

    assert np.isfinite(found.score(X))


def test_draws_given_a_value_far_beyond_the_rows_are_numbers():
    """Normal scores given it were beyond 8.3, where the normal law's distribution function is one."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(80, 4)) * 10.0 ** rng.integers(-3, 4)
    X[:, 2] += X[:, 1]
    model = LowRankDensity(2, method=Stack(max_iter=3, n_folds=2), random_state=0).fit(X)

    drawn = model.conditional((0, 1), {2: 1e3}).sample(4000, random_state=0)

    assert np.isfinite(drawn).all()


def test_a_pickled_filter_that_magnifies_rounding_rounds_alike():
    """Arrays lay otherwise in the copy, whose states differed by a thousandth."""
    X = np.random.default_rng(13).standard_t(2, size=(20, 4))
    features = LandmarkFeatures(Gaussian(1.0), 10, random_state=0)
    dynamics = ObservableOperators((10,), (1e-3,))
    model = PredictiveStateModel(dynamics=dynamics, horizon=2, features=features, random_state=0).fit(X)

    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).filter(X), model.filter(X))


def test_a_forecast_of_kernels_narrower_than_the_nodes_of_a_circle_has_quantiles():
    """Between 16,384 nodes lay all of a state's mass, and its quantiles were no numbers."""
    X = np.round(np.random.default_rng(0).pareto(0.5, size=(20, 5)), 1)
    model = KernelHMM(2, kernel=VonMises(0.6), random_state=0).fit(X)

    found = judged(model.forecast(X, 2).quantile, 0.9)

    assert np.isfinite(found).all()
