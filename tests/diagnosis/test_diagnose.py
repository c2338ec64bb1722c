"""A diagnosis finds what was broken on purpose, and leaves sound data alone."""

from copy import copy
from dataclasses import replace
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import PolynomialFeatures

from latentviews import (
    Delta,
    Gaussian,
    KernelHMM,
    Linear,
    MultiViewMixture,
    PowerMethod,
    Precomputed,
    VonMises,
    diagnose,
    load,
    save,
    spectrum_gram,
)
from latentviews.baselines import HistogramSpectral
from latentviews.comparison.independence import independence_test
from latentviews.comparison.results import TestResult
from latentviews.core.kernels.spaces import Real
from latentviews.datasets import make_multiview
from latentviews.diagnosis.dependence import (
    FEWEST_MEMBERS,
    LEVEL,
    _traces,
    corrected_pvalues,
    drawn_classes,
    null_moments,
    within_class_dependence,
)
from latentviews.diagnosis.diagnose import ROWS
from latentviews.diagnosis.moments import tensor_error_bound

FALSE_ALARM = 1e-6
COLUMNS = ([0], [1], [2])


def correlated_classes(rng, n=1500, correlation=0.7):
    """Two classes in three views; the first two views are correlated inside class 1, the rarer."""
    labels = (rng.random(n) < 0.4).astype(int)
    noise, shared = rng.normal(size=(n, 3)), rng.normal(size=(n, 1))
    share = correlation * (labels == 1)[:, None] * np.array([1, 1, 0])
    return np.sqrt(1 - share) * noise + np.sqrt(share) * shared + 5.0 * labels[:, None] * np.array([1, -1, 1])


@pytest.fixture(scope="module")
def sound():
    X = make_multiview(2000, 3, design="gamma", random_state=0).X
    model = MultiViewMixture(3, random_state=0).fit(X)
    return model, X, diagnose(model, X, random_state=0)


@pytest.mark.parametrize("polish", ["auto", None])
def test_dependence_inside_a_class_is_found_where_it_is(polish, rng):
    X = correlated_classes(rng)
    model = MultiViewMixture(2, polish=polish, random_state=0).fit(X)

    diagnosis = diagnose(model, X, random_state=0)

    assert diagnosis.dependence.flagged()[0] == (1, 0, 1)
    assert "Views 0 and 1 depend on each other inside class 1" in diagnosis.summary()


def test_sound_data_are_not_flagged(sound):
    *_, diagnosis = sound

    assert diagnosis.dependence.flagged() == []
    assert all(finding.trusted for finding in diagnosis.findings), diagnosis.summary()
    assert diagnosis.summary().endswith("- nothing was found.")


def test_a_class_that_is_two_is_found(sound):
    _, X, diagnosis = sound
    merged = diagnose(MultiViewMixture(2, random_state=0).fit(X), X, n_permutations=19, random_state=0)

    assert diagnosis.within.tolist() == [1, 1, 1]
    assert "no class looks like two" in diagnosis.summary()
    assert sorted(merged.within.tolist()) == [1, 2]
    doubts = [finding.text for finding in merged.findings if not finding.trusted]
    assert any(
        f"class {merged.within.argmax()} looks like 2" in text and "3 classes, and keep" in text for text in doubts
    )


def test_independent_classes_are_flagged_no_more_often_than_stated(rng):
    """The level of all tests together, at the true posteriors of separated classes."""
    flagged, n_runs = 0, 40
    for _ in range(n_runs):
        labels = rng.integers(2, size=100)
        X = rng.normal(size=(100, 3)) + 20.0 * labels[:, None]
        spaces = [Real()] * 3
        found = within_class_dependence(drawn_classes(X, COLUMNS, spaces, np.eye(2)[labels], rng), 3, 59, rng)
        flagged += bool(found.flagged(least=0.0))

    assert flagged <= stats.binom.isf(FALSE_ALARM, n_runs, LEVEL)


def test_corrected_pvalues_of_many_tests_keep_the_level(rng):
    """The smallest of twenty corrected p-values is uniform: one test of the largest statistic."""
    smallest = []
    for _ in range(300):
        draws = rng.chisquare(3, size=(20, 100))
        tests = [TestResult(row[0], 0.0, row[1:], 1.0, 10) for row in draws]
        smallest.append(corrected_pvalues(tests, [(3.0, 6**0.5)] * 20).min())

    low, high = stats.binom.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], 300, 0.1)
    assert low <= np.sum(np.array(smallest) <= 0.1 + 1e-12) <= high


def test_moments_of_permutations_are_those_of_all_of_them(rng):
    a, b = (rng.exponential(size=(6, width)) for width in (2, 3))
    a, b = a - a.mean(axis=0), b - b.mean(axis=0)
    every = [np.sum((a.T @ b[list(order)] / 6) ** 2) for order in permutations(range(6))]

    found = null_moments(_traces(a), _traces(b))

    np.testing.assert_allclose(found, [np.mean(every), np.std(every)], rtol=1e-12)


def test_dependence_is_seen_beside_many_columns_that_hardly_vary(rng):
    """A rare value makes null draws far larger than others, which are not to hide what is evident."""
    together = rng.normal(size=(150, 1))
    rare = (rng.random((150, 40)) < 0.02).astype(float)
    X = np.hstack([together + 0.3 * rng.normal(size=(150, 3)), rare])
    columns, spaces = [[j] for j in range(X.shape[1])], [Real()] * X.shape[1]

    found = within_class_dependence(drawn_classes(X, columns, spaces, np.ones((150, 1)), rng), X.shape[1], 99, rng)

    assert {(0, 0, 1), (0, 0, 2), (0, 1, 2)} <= set(found.flagged())


def test_a_column_in_which_few_rows_differ_is_not_tested(rng):
    X = np.hstack([rng.normal(size=(150, 2)), (np.arange(150) < 5)[:, None]])

    (views,) = drawn_classes(X, COLUMNS, [Real()] * 3, np.ones((150, 1)), rng)

    assert list(views.features) == [0, 1]


def test_one_test_needs_no_correction(rng):
    test = independence_test(
        rng.normal(size=50), rng.normal(size=50), kernel=Gaussian("median"), n_permutations=99, random_state=0
    )

    assert corrected_pvalues([test], [(0.0, 1.0)]) == pytest.approx([test.pvalue])


def test_no_tests_have_no_pvalues():
    assert corrected_pvalues([], []).shape == (0,)


def test_effective_rows_are_the_rows_of_separated_classes():
    X, y, _ = make_multiview(1000, 2, separation=12, random_state=0)
    model = MultiViewMixture(2, random_state=0).fit(X)

    diagnosis = diagnose(model, X, random_state=0)

    np.testing.assert_allclose(diagnosis.effective_rows, np.sort(np.bincount(y))[::-1], rtol=0.01)
    assert diagnosis.uncertain == 0
    np.testing.assert_allclose(diagnosis.certainty, model.predict_proba(X).max(axis=1))


def test_the_error_of_the_tensor_falls_as_the_root_of_the_rows():
    X = make_multiview(16_000, 2, random_state=0).X
    model = MultiViewMixture(2, bandwidth=0.5, random_state=0).fit(X)

    few, many = (diagnose(model, X[:n], n_permutations=1, random_state=0).moments for n in (1000, 16_000))

    # ten resamples of a sum over some four independent directions: a third either way is one in a million
    assert few.eps_t / many.eps_t == pytest.approx(4, rel=1 / 2)
    assert few.noise / many.noise == pytest.approx(4, rel=1 / 2)
    np.testing.assert_allclose(few.spectrum[:2], many.spectrum[:2], rtol=0.1)


def test_the_error_of_the_tensor_is_the_distance_between_fits():
    """ε_T on a sample is what weights from independent samples scatter by: λ_h = π_h^(-1/2) errs by about ε_T."""
    weights, errors = [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        labels = (rng.random(1000) < 1 / 3).astype(int)
        X = rng.normal(3.0 * labels[:, None], size=(1000, 3))
        model = MultiViewMixture(2, polish=None, bandwidth=0.7, random_state=0).fit(X)
        weights.append(model.raw_weights_)
        errors.append(diagnose(model, X, n_permutations=1, random_state=0).moments.eps_t)

    scatter = np.sqrt(np.var(np.array(weights) ** -0.5, axis=0, ddof=1).sum())

    assert 0.4 < scatter / np.mean(errors) < 1.5


def test_singular_values_do_not_depend_on_units(sound):
    _, X, diagnosis = sound
    scaled = MultiViewMixture(3, random_state=0).fit(100 * X)

    found = diagnose(scaled, 100 * X, random_state=0).moments

    np.testing.assert_allclose(found.spectrum[:3], diagnosis.moments.spectrum[:3], rtol=1e-3)
    np.testing.assert_allclose(found.rho, diagnosis.moments.rho / 100, rtol=1e-3)


def test_rho_is_the_largest_value_of_the_kernel():
    X = make_multiview(500, 2, random_state=0).X
    model = MultiViewMixture(2, bandwidth=0.5, random_state=0).fit(X)

    found = diagnose(model, X, n_permutations=1, random_state=0).moments

    np.testing.assert_allclose(found.rho, 1 / (np.sqrt(2 * np.pi) * 0.5))


def test_a_class_too_many_does_not_stand_out_of_the_noise():
    X = make_multiview(2000, 2, random_state=0).X

    right, wrong = (
        diagnose(MultiViewMixture(k, random_state=0).fit(X), X, n_permutations=19, random_state=0) for k in (2, 3)
    )

    assert right.moments.sigma_k > 5 * right.moments.noise
    assert right.moments.gap > 5
    if wrong.moments is not None:
        assert wrong.moments.sigma_k < 1.5 * wrong.moments.noise
    assert any("number of classes" in text or "do not support" in text for ok, text in wrong.findings if not ok)


def test_the_bound_of_theorem_2_is_its_formula():
    second = 2 * np.sqrt(2) * 2.0 * np.sqrt(np.log(4 / 0.05) / 1e6)
    whitening = 4 * second / 0.1
    expected = 2 * np.sqrt(2) * np.sqrt(2.0) * second / 0.1**1.5 + ((1 + whitening) ** 3 - 1) / 0.5

    assert tensor_error_bound(1_000_000, 2.0, 0.1, 0.25) == pytest.approx(expected)
    assert tensor_error_bound(10_000, 2.0, 0.1, 0.25) == np.inf  # too few rows to whiten
    assert tensor_error_bound(10_000, 2.0, 0.0, 0.25) == np.inf


def test_the_bound_of_theorem_2_is_above_the_error(rng):
    codes = rng.integers(2, size=(60_000, 1))
    X = np.where(rng.random((60_000, 3)) < 0.95, codes, 1 - codes).astype(float)
    model = MultiViewMixture(2, kernel=Delta(), random_state=0).fit(X)

    moments = diagnose(model, X, n_permutations=5, random_state=0).moments

    assert moments.eps_t < moments.bound < np.inf


def test_what_no_number_can_say_is_said_in_words(sound):
    *_, diagnosis = sound
    moments = replace(diagnosis.moments, eps_t=np.inf, spectrum=np.array([0.7, 0.5, 0.3, 0.0]))

    told = replace(diagnosis, moments=moments).summary()

    assert "inf" not in told
    assert "times the next" not in told
    assert "some resamples of the rows do not support 3 classes" in told


def test_a_class_rests_on_no_more_rows_than_it_has(rng):
    X = make_multiview(3000, 2, separation=1.2, random_state=rng).X
    model = MultiViewMixture(2, random_state=0).fit(X)

    diagnosis = diagnose(model, X, n_permutations=5, random_state=0)

    assert (diagnosis.effective_rows <= model.predict_proba(X).sum(axis=0) + 1e-6).all()


def test_densities_that_are_sums_of_kernels_have_mass_one(rng):
    y = rng.integers(2, size=300)
    X = rng.normal(size=(300, 12)) + 4 * y[:, None]
    model = MultiViewMixture(2, views=[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]], random_state=0).fit(X)

    diagnosis = diagnose(model, X, n_permutations=5, random_state=0)

    np.testing.assert_allclose(diagnosis.mass, 1.0, rtol=1e-10)
    assert (diagnosis.clipped == 0).all()


def test_starts_are_compared_by_their_total_likelihood(sound):
    *_, diagnosis = sound
    apart = {"spectral × 1": -3.0, "k-means": -3.0 - 10 / diagnosis.n_rows}

    told = replace(diagnosis, start_objectives=apart).summary()

    assert "1 of 2 (spectral × 1) reached the best likelihood" in told


def test_how_many_rows_are_diagnosed_does_not_change_which_starts_are_near(sound):
    model, X, _ = sound
    some = diagnose(model, X[:50], n_permutations=5, random_state=0)
    assert some.n_fitted == len(X)
    apart = {"spectral × 1": -3.0, "k-means": -3.0 - 10 / len(X)}
    assert "1 of 2 (spectral × 1) reached" in replace(some, start_objectives=apart).summary()


def test_starts_are_compared_by_their_partitions_too(sound):
    *_, diagnosis = sound
    near = {"spectral × 1": -3.0, "k-means": -3.0}
    far = near | {"k-means": -3.0 - 10 / diagnosis.n_fitted}

    def told(objectives, agreement):
        agreements = {"spectral × 1": 1.0, "k-means": agreement}
        found = replace(diagnosis, start_objectives=objectives, start_agreements=agreements).findings
        return next((trusted, text) for trusted, text in found if text.startswith("Starts"))

    sound_, alike = told(near, 0.97)
    assert sound_
    assert "2 of 2 (spectral × 1, k-means) reached the best likelihood; their partitions agree with the best" in alike
    trusted, other = told(near, 0.4)
    assert not trusted
    assert "Other classes explain the rows as well" in other
    trusted, same = told(far, 0.99)
    assert trusted
    assert "1 of 2 (spectral × 1) reached the best likelihood, and 1 more (k-means) found the same classes" in same
    assert not told(far, 0.6)[0]


def test_a_model_saved_without_agreements_is_diagnosed(sound):
    model, X, _ = sound
    before = copy(model)
    del before.start_agreements_
    assert "reached the best likelihood" in diagnose(before, X, n_permutations=5, random_state=0).summary()


def test_shares_are_not_praised_where_views_depend_on_each_other(sound):
    *_, diagnosis = sound
    unsure = replace(diagnosis, certainty=np.full(diagnosis.n_rows, 0.5))
    dependence = replace(diagnosis.dependence, effect=np.ones((3, 3)), pvalue=np.zeros((3, 3)))

    assert "their shares are still good" in unsure.summary()
    assert "shares are still good" not in replace(unsure, dependence=dependence).summary()


def test_missing_values_leave_the_rows_that_have_both_views(rng):
    X = correlated_classes(rng, n=1500)
    X[rng.random(1500) < 0.3, 0] = np.nan
    X[rng.random(1500) < 0.3, 2] = np.nan
    model = MultiViewMixture(2, random_state=0).fit(X)

    diagnosis = diagnose(model, X, random_state=0)

    assert diagnosis.dependence.flagged()[0] == (1, 0, 1)
    whole = ~np.isnan(X)
    share = np.array([np.mean(whole[:, s] & whole[:, t]) for s, t in diagnosis.dependence.pairs])
    np.testing.assert_allclose(diagnosis.dependence.n_rows.sum(axis=0), 1500 * share, rtol=0.05)


def test_codes_angles_and_views_of_two_columns_are_tested_by_their_kind(rng):
    z = rng.integers(2, size=1000)
    codes = rng.binomial(3, np.where(z == 1, 0.9, 0.1)).astype(float)
    angles = rng.vonmises(np.where(z == 1, 3.0, 0.0), 8.0) % (2 * np.pi)
    plane = rng.normal(4.0 * z[:, None], size=(1000, 2))
    plane[z == 1, 1] += codes[z == 1]  # dependence inside class 1 only
    X = np.column_stack([codes, angles, plane])
    kernels = [Delta(), VonMises(), Gaussian("silverman")]
    model = MultiViewMixture(2, views=[[0], [1], [2, 3]], kernel=kernels, random_state=0).fit(X)

    diagnosis = diagnose(model, X, random_state=0)

    ((h, s, t),) = diagnosis.dependence.flagged()
    assert (s, t) == (0, 2)
    assert model.components_[0].density(np.array([3.0]))[0, h] > 0.5
    assert diagnosis.view_names == ("0", "1", "2+3")


def test_exchangeable_views_and_other_solvers_are_diagnosed():
    X = make_multiview(2000, 2, identical=True, n_views=4, random_state=0).X
    model = MultiViewMixture(2, exchangeable=True, solver=PowerMethod(), polish=None, random_state=0).fit(X)

    diagnosis = diagnose(model, X, random_state=0)

    assert diagnosis.moments.eps_t < 0.5
    assert diagnosis.start_objectives == {}
    assert len(diagnosis.dependence.pairs) == 6


def test_transformers_without_a_kernel_are_diagnosed(rng):
    X = make_multiview(1000, 2, random_state=0).X
    model = MultiViewMixture(2, features=PolynomialFeatures(2), polish=None, random_state=0).fit(X)

    found = diagnose(model, X, n_permutations=1, random_state=0).moments

    np.testing.assert_allclose(found.rho, (1 + X**2 + X**4).max(axis=0))


def test_one_class_says_nothing_of_moments_and_starts(rng):
    X = rng.normal(size=(500, 3))
    model = MultiViewMixture(1, random_state=0).fit(X)

    diagnosis = diagnose(model, X, random_state=0)

    assert not any(word in diagnosis.summary() for word in ("singular value", "Starts"))
    assert "rests on about 500 rows" in diagnosis.summary()


def test_a_class_of_few_rows_is_not_tested(rng):
    X = rng.normal(size=(100, 3))
    posteriors = np.zeros((100, 2))
    posteriors[: FEWEST_MEMBERS - 1, 0], posteriors[FEWEST_MEMBERS - 1 :, 1] = 1, 1
    spaces = [Real()] * 3

    found = within_class_dependence(drawn_classes(X, COLUMNS, spaces, posteriors, rng), 3, 19, rng)

    assert np.isnan(found.pvalue[0]).all()
    assert np.isfinite(found.pvalue[1]).all()
    assert found.n_rows[1].tolist() == [81, 81, 81]


def test_few_permutations_are_made_where_nothing_is_there(rng):
    X = np.indices((6, 6, 6)).reshape(3, -1).T.astype(float)  # no more dependent than any permutation
    tied = np.column_stack([X[:, 0], X[:, 0] + X[:, 1] / 6, X[:, 2]])
    drawn = [drawn_classes(x, COLUMNS, [Real()] * 3, np.ones((216, 1)), rng) for x in (X, tied)]

    without, between = (within_class_dependence(classes, 3, 999, rng).pvalue for classes in drawn)

    np.testing.assert_allclose(without, 1.0)
    assert between[0] == pytest.approx([1 / 1000, 1.0, 1.0], abs=0.01)


def test_a_view_that_is_constant_in_a_class_is_not_tested(rng):
    X = np.column_stack([np.repeat([0.0, 1.0], 50), rng.normal(size=(100, 2))])
    spaces = [Real()] * 3

    drawn = drawn_classes(X, COLUMNS, spaces, np.repeat(np.eye(2), 50, axis=0), rng)
    found = within_class_dependence(drawn, 3, 19, rng)

    assert np.isfinite(found.pvalue).tolist() == [[False, False, True]] * 2


def test_what_was_not_tested_is_said(sound):
    *_, diagnosis = sound
    dependence = replace(diagnosis.dependence, pvalue=np.full((3, 3), np.nan), effect=np.full((3, 3), np.nan))

    summary = replace(diagnosis, dependence=dependence).summary()

    assert "9 pairs and classes have too few rows, or too little variation, to be tested" in summary
    assert "Independence inside classes" not in summary


def test_what_was_not_tested_beside_others_is_no_failure(sound):
    *_, diagnosis = sound
    pvalue = np.array([[0.5, 0.6, np.nan]] * 3)
    some = replace(diagnosis, dependence=replace(diagnosis.dependence, pvalue=pvalue))

    about = next(finding for finding in some.findings if "to be tested" in finding.text)

    assert about.trusted
    assert "none of 6 tests" in about.text
    assert "3 more have too few rows" in about.text


def test_only_the_strongest_dependences_are_told_at_length(sound):
    *_, diagnosis = sound
    effect = np.arange(1, 10).reshape(3, 3) / 10
    dependence = replace(diagnosis.dependence, pvalue=np.full((3, 3), 0.01), effect=effect)

    summary = replace(diagnosis, dependence=dependence).summary()

    assert dependence.flagged()[0] == (2, 1, 2)
    assert summary.count("depend on each other") == 3
    assert "So do 6 more of 9" in summary
    flagged = [finding for finding in replace(diagnosis, dependence=dependence).findings if not finding.trusted]
    assert len([one for one in flagged if "depend" in one.text]) == 3  # a count of what is left is no check


def test_named_columns_are_named_in_the_summary(rng):
    X = pd.DataFrame(correlated_classes(rng), columns=["height", "mass", "age"])
    model = MultiViewMixture(2, random_state=0).fit(X)

    assert "Views height and mass depend" in diagnose(model, X, random_state=0).summary()


def test_a_stream_is_diagnosed_as_the_array_is(sound):
    model, X, diagnosis = sound

    class Batches:
        def __iter__(self):
            return iter(np.array_split(X, 3))

    found = diagnose(model, Batches(), n_permutations=5, random_state=0)

    assert found.n_rows == len(X) < ROWS
    np.testing.assert_allclose(found.certainty, diagnosis.certainty)


def test_negative_components_and_lone_starts_are_not_trusted(sound):
    *_, diagnosis = sound

    spoilt = replace(
        diagnosis,
        clipped=np.full((3, 3), 0.2),
        start_objectives={"spectral × 1": -3.0, "k-means": -3.2},
        start_agreements={"spectral × 1": 1.0, "k-means": 0.6},
        converged=False,
        moments=None,
        effective_rows=np.array([900.0, 600.0, 12.0]),
        certainty=np.full(2000, 0.5),
    )

    doubted = " ".join(text for trusted, text in spoilt.findings if not trusted)
    for words in (
        "20.0% of a component was negative",
        "A single one did",
        "not converged",
        "do not support 3 classes",
        "class 2, rests on about 12 rows",
        "100.0% have no class",
    ):
        assert words in doubted


def test_a_matrix_holds_each_pair_twice(sound):
    *_, diagnosis = sound

    table = diagnosis.dependence.matrix(1, "pvalue")

    assert np.isnan(np.diag(table)).all()
    np.testing.assert_array_equal(table[np.triu_indices(3, 1)], diagnosis.dependence.pvalue[1])
    np.testing.assert_array_equal(table, table.T)


def test_an_unfitted_model_is_refused():
    with pytest.raises(NotFittedError):
        diagnose(MultiViewMixture(2), np.zeros((10, 3)))


def test_classes_without_a_density_are_judged_by_what_they_have(rng):
    means = np.array([[4.0, 0.0], [0.0, 4.0]])
    X = rng.normal(np.tile(means, 3)[rng.integers(2, size=500)])
    model = MultiViewMixture(2, views=[[0, 1], [2, 3], [4, 5]], kernel=Linear(), random_state=0).fit(X)

    found = diagnose(model, X)

    np.testing.assert_array_equal(found.counts, np.bincount(model.predict(X)))
    assert found.agreement is None  # which compares densities


def test_a_count_of_permutations_is_needed(sound):
    model, X, _ = sound

    with pytest.raises(ValueError, match="n_permutations must be an integer of at least 1; got 0"):
        diagnose(model, X, n_permutations=0)


def test_a_model_of_sequences_is_refused_in_one_sentence(rng):
    model = KernelHMM(1, random_state=0).fit(rng.normal(size=(100, 1)))
    with pytest.raises(TypeError, match="looks at a fitted MultiViewMixture; got a KernelHMM"):
        diagnose(model, rng.normal(size=(100, 1)))


def test_a_baseline_is_refused_in_one_sentence(rng):
    X = make_multiview(200, 2, random_state=rng).X
    with pytest.raises(TypeError, match="looks at a fitted MultiViewMixture; got a HistogramSpectral"):
        diagnose(HistogramSpectral(2).fit(X), X)


@pytest.mark.parametrize("seed", [0, 1, 4])
def test_a_column_that_few_rows_of_a_class_differ_in_is_looked_at(seed):
    rng = np.random.default_rng(seed)
    kinds = (rng.random(1500) < 0.5).astype(int)
    X = rng.normal(size=(1500, 4)) + 3 * kinds[:, None]
    nothing = (kinds == 0) & (rng.random(1500) < 0.998)
    X[:, 0] = np.where(nothing, 0.0, rng.exponential(size=1500) + kinds)

    found = diagnose(MultiViewMixture(2, random_state=0).fit(X), X, n_permutations=19, random_state=0)

    assert found.dependence.flagged() == []


def test_objects_that_are_alike_in_a_class_are_left_out_there():
    rng = np.random.default_rng(0)
    kinds = (rng.random(400) < 0.5).astype(int)
    words = ["".join(rng.choice(list("ab"), 6)) if kind else "cccccc" for kind in kinds]
    X = np.column_stack([np.arange(400), rng.normal(size=(400, 3)) + 3 * kinds[:, None]])
    model = MultiViewMixture(2, kernel=[Precomputed(spectrum_gram(words, 2)), None, None, None], random_state=0).fit(X)

    found = diagnose(model, X, n_permutations=19, random_state=0)

    alike = int(np.argmax([np.mean(kinds[model.predict(X) == h] == 0) for h in range(2)]))
    pairs = [i for i, pair in enumerate(found.dependence.pairs) if 0 in pair]
    assert np.isnan(found.dependence.effect[alike, pairs]).all()
    assert np.isfinite(found.dependence.effect[1 - alike, pairs]).all()


def test_rows_without_any_value_of_a_view_are_diagnosed_without_moments():
    X = make_multiview(300, 2, random_state=0).X
    model = MultiViewMixture(2, random_state=0).fit(X)
    lacking = X.copy()
    lacking[:, 2] = np.nan

    assert diagnose(model, lacking, n_permutations=19, random_state=0).moments is None


def test_a_saved_diagnosis_has_no_feature_maps(tmp_path):
    X = make_multiview(300, 2, random_state=0).X
    found = diagnose(MultiViewMixture(2, random_state=0).fit(X), X, n_permutations=19, random_state=0)
    save(found, tmp_path / "found")

    assert found.moments.views is not None
    assert load(tmp_path / "found").moments.views is None
