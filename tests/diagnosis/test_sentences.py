"""What a diagnosis says is true of the fit and of the rows at hand."""

from dataclasses import replace

import numpy as np
import pytest

from latentviews import Delta, LowRankDensity, MultiViewMixture, diagnose
from latentviews.datasets import make_multiview
from latentviews.diagnosis.point_masses import ExactValues
from latentviews.diagnosis.shares import row_shares
from latentviews.diagnosis.splits import clumps_within


@pytest.fixture(scope="module")
def fitted():
    X, y, _ = make_multiview(1500, 3, random_state=0)
    model = MultiViewMixture(3, random_state=0).fit(X)
    return model, X, y, diagnose(model, X, n_permutations=19, random_state=0)


def tied(diagnosis, pvalue=0.01, effect=0.5, **changes):
    """A diagnosis whose views depend on each other in every class."""
    k, size = diagnosis.dependence.pvalue.shape
    own = {"pvalue": np.full((k, size), pvalue), "effect": np.full((k, size), effect)}
    return replace(diagnosis, dependence=replace(diagnosis.dependence, **own), **changes)


def doubts(diagnosis):
    return [finding.text for finding in diagnosis.findings if finding.trusted is False]


# ------------------------------------------------------------------------------------------- other rows than the fit's


def test_rows_with_other_shares_of_classes_are_noticed(fitted):
    model, X, _, own = fitted
    labels = model.predict(X)
    others = np.vstack([X[labels == 0][:50], X[labels == 1], X[labels == 2]])

    found = diagnose(model, others, n_permutations=19, random_state=0)

    assert not own.shifted
    assert found.shifted
    np.testing.assert_allclose(found.shares, model.predict_proba(others).mean(axis=0))
    said = next(text for text in doubts(found) if "The shares of classes" in text)
    assert f"class 0 in {found.shares[0]:.1%}, the fit had {model.weights_[0]:.1%}" in said
    assert found.worst == said


@pytest.mark.parametrize("settings", [{}, {"polish": None}, {"dependence": "copula"}])
def test_rows_of_the_fit_and_some_of_them_are_not_called_others(settings, fitted):
    _, X, *_ = fitted
    model = MultiViewMixture(3, random_state=0, **settings).fit(X)

    for rows in (X, X[::3], X[:100]):
        assert not row_shares(model, model.predict_proba(rows)).shifted


def test_errors_of_shares_are_binomial_where_classes_are_certain(fitted):
    model, *_ = fitted
    posteriors = np.repeat(np.eye(3), [500, 300, 200], axis=0)

    found = row_shares(model, posteriors)

    np.testing.assert_allclose(found.shares, [0.5, 0.3, 0.2])
    np.testing.assert_allclose(found.errors, np.sqrt(found.shares * (1 - found.shares) / 1000))


def test_a_class_that_other_rows_lack_is_no_fault_of_the_fit(fitted):
    model, X, *_ = fitted
    others = X[model.predict_proba(X)[:, 2] < 0.01]

    said = " ".join(doubts(diagnose(model, others, n_permutations=19, random_state=0)))

    assert "The shares of classes" in said
    assert "Try fewer classes" not in said
    assert "merge it" not in said


# ----------------------------------------------------------------------------------------------- the number of classes


def test_one_class_more_is_advised_and_held_out_rows_decide(fitted):
    *_, diagnosis = fitted

    within = np.array([3, 1, 4])
    said, counted = (
        next(text for text in doubts(replace(diagnosis, within=within, counted=counted)) if "within" in text)
        for counted in (False, True)
    )

    assert "class 0 looks like 3, class 2 looks like 4" in said
    assert "the test cannot tell" in said
    assert "Fit 4 classes, and keep them only if held-out rows are likelier" in said
    assert "command line" not in said
    assert "dependence=" not in said
    assert "disagree" not in said
    assert "(`likelihood_curve`; the fit itself counted 3)" in counted


def test_dependence_comes_before_more_classes_where_it_is_flagged(fitted):
    *_, diagnosis = fitted
    within = np.array([2, 1, 1])

    first, tried, refused = (
        next(text for text in doubts(tied(diagnosis, within=within, **changes)) if "within" in text)
        for changes in ({}, {"tried": True}, {"refused": True})
    )

    assert 'Fit with dependence="auto" first, and then 4 classes' in first
    assert "dependence=" not in tried
    assert "dependence=" not in refused


def test_checks_for_fewer_and_for_more_classes_say_that_they_disagree(fitted):
    *_, diagnosis = fitted
    within = np.array([2, 1, 1])
    noisy = replace(diagnosis.moments, noise=diagnosis.moments.sigma_k)
    few = {"moments": None}, {"moments": noisy}, {"effective_rows": np.array([900.0, 600.0, 9.0])}
    for changes in (*few, {"counts": np.array([900, 600, 0])}):
        said = next(text for text in doubts(replace(diagnosis, within=within, **changes)) if "within" in text)
        assert "Other checks speak for fewer classes: they disagree" in said, changes


def test_a_singular_value_near_the_noise_is_told_with_the_rule(fitted):
    *_, diagnosis = fitted
    near = replace(diagnosis.moments, noise=diagnosis.moments.sigma_k / 1.3)

    said = " ".join(doubts(replace(diagnosis, moments=near)))

    assert "less than one and a half times that noise: fewer than 3 classes may explain the data" in said


def test_singular_values_do_not_judge_a_fit_whose_views_may_depend(rng):
    hidden = rng.gamma(2.0, size=(600, 1))
    X = hidden + 0.25 * rng.normal(size=(600, 3))
    model = MultiViewMixture(3, dependence="copula", random_state=0).fit(X)

    found = diagnose(model, X, n_permutations=19, random_state=0)
    lacking = replace(found, moments=None, within=np.array([2, 1, 1]))

    assert found.moments is not None
    for diagnosis in (found, lacking):
        assert "singular value" not in diagnosis.summary()
        assert "moments of the views" not in diagnosis.summary()
    assert "Starts: partitions from several agree" in found.summary()


@pytest.mark.parametrize("supported", [False, True])
def test_classes_that_were_split_for_held_out_rows_are_told_so(supported, fitted):
    *_, diagnosis = fitted
    near = replace(diagnosis.moments, noise=diagnosis.moments.sigma_k / 1.3) if supported else None

    said = " ".join(doubts(replace(diagnosis, moments=near, counted=True, counted_by_rank=2)))

    assert "The fit counted 2 classes by singular values, as `rank_test` does, and split them into 3" in said
    assert "may explain the data" not in said
    assert "ask for fewer" not in said


def test_a_count_by_rank_is_in_the_diagnosis_of_the_fit():
    X = make_multiview(600, 3, random_state=0).X
    counted, given = (MultiViewMixture(k, random_state=0).fit(X) for k in ("auto", 3))

    found = diagnose(counted, X, n_permutations=19, random_state=0)

    assert found.counted_by_rank == counted.rank_test_.n_components
    assert diagnose(given, X, n_permutations=19, random_state=0).counted_by_rank is None


def test_two_views_are_said_not_to_determine_classes(fitted):
    _, X, *_ = fitted
    model = MultiViewMixture(2, views=[[0], [1]], dependence="copula", random_state=0).fit(X[:400])

    found = diagnose(model, X[:400], n_permutations=19, random_state=0)

    assert sum("Two views do not determine classes by themselves" in text for text in doubts(found)) == 1
    assert "in 2 views" in found.summary()


def test_one_class_is_not_to_be_merged(rng):
    X = rng.normal(size=(40, 3))
    found = diagnose(MultiViewMixture(1, random_state=0).fit(X), X, n_permutations=19, random_state=0)

    assert "the only one, rests on about 40 rows. That is few for a density; add rows." in found.summary()
    assert found.summary().startswith("Diagnosis of 1 class in 3 views, from 40 rows.")


# ----------------------------------------------------------------------------------------------------------- dependence


def test_copulas_that_were_refused_are_neither_tried_nor_advised(rng):
    codes = rng.integers(2, size=(400, 1))
    X = np.where(rng.random((400, 4)) < 0.9, codes, 1 - codes).astype(float)
    model = MultiViewMixture(2, kernel=Delta(), dependence="auto", random_state=0).fit(X)
    found = diagnose(model, X, n_permutations=19, random_state=0)
    assert (found.tried, found.refused, found.exchangeable) == (False, True, False)

    said = tied(found).summary()

    assert "tried and not taken" not in said
    assert 'dependence="auto"' not in said
    assert "their columns into one view" in said


def test_exchangeable_views_are_not_to_be_put_together():
    X = make_multiview(400, 2, identical=True, n_views=4, random_state=0).X
    model = MultiViewMixture(2, exchangeable=True, polish=None, random_state=0).fit(X)
    found = diagnose(model, X, n_permutations=19, random_state=0)

    said = tied(found).summary()

    assert "depend on each other" in said
    assert "into one view" not in said
    assert 'dependence="auto"' not in said


def test_a_p_value_that_permutations_cannot_beat_is_a_bound(fitted):
    *_, diagnosis = fitted
    assert diagnosis.dependence.floor == 1 / 20

    at, above = tied(diagnosis, pvalue=0.05).summary(), tied(diagnosis, pvalue=0.05)
    above = replace(above, dependence=replace(above.dependence, floor=0.01)).summary()

    assert "corrected p-value at most 0.05)" in at
    assert "corrected p-value 0.05)" in above


def test_what_is_most_evident_comes_before_what_is_strongest(fitted):
    *_, diagnosis = fitted
    pvalue, effect = np.full((3, 3), 0.5), np.full((3, 3), 0.2)
    pvalue[0, 0], effect[0, 0], pvalue[1, 1], effect[1, 1], pvalue[2, 2] = 0.04, 0.9, 0.005, 0.3, 0.005

    found = replace(diagnosis.dependence, pvalue=pvalue, effect=effect).flagged()

    assert [h for h, *_ in found] == [1, 2, 0]


def test_what_was_not_tested_at_all_is_no_failure(fitted):
    *_, diagnosis = fitted

    untested = tied(diagnosis, np.nan, np.nan)

    assert not any("to be tested" in text for text in doubts(untested))
    trusted, rest = untested.summary().split("What could not be looked at:")
    assert "9 pairs and classes have too few rows" in rest
    assert "to be tested" not in trusted


def test_counts_of_one_are_singular(fitted):
    *_, diagnosis = fitted
    four = np.full((3, 3), 0.5)
    four.flat[:4] = 0.01
    one = np.full((3, 3), np.nan)
    one[0, 0] = 0.5
    several, single = (
        replace(diagnosis, dependence=replace(diagnosis.dependence, pvalue=p, effect=np.full((3, 3), 0.5))).summary()
        for p in (four, one)
    )

    assert "So does 1 more of 9 pairs and classes" in several
    assert "the one test of a class and a pair of views does not find dependence that matters" in single


def test_few_rows_judge_nothing(fitted):
    model, X, *_ = fitted

    for n in (2, 10):
        (finding,) = diagnose(model, X[:n], random_state=0).findings
        assert not finding.trusted
        assert finding.text.startswith(f"{n} rows are too few to judge a fit by")
    assert diagnose(model, X[[0, 0]], random_state=0).worst is not None
    with pytest.raises(
        ValueError, match="A diagnosis or report needs at least 2 rows, and 20 to judge a fit by; got 1"
    ):
        diagnose(model, X[:1])


# --------------------------------------------------------------------------------------------------- starts and values


def test_a_single_start_is_not_a_failed_check(fitted):
    *_, diagnosis = fitted

    for name, said in {"k-means": "(k-means)", "splits": "(from splits of the classes counted first)"}.items():
        found = replace(diagnosis, start_objectives={name: -3.0})
        assert not any("Starts" in text for text in doubts(found))
        assert f"Starts: one was made {said}" in found.summary()


def test_values_that_a_fit_did_not_see_as_point_masses_are_told_so(fitted):
    *_, diagnosis = fitted
    values = np.array([0.0]), np.array([0.06])

    wide, narrow = (replace(diagnosis, exact={"FL4": ExactValues(*values, False, alone)}) for alone in (False, True))

    assert "Views of one column have them as point masses" in wide.summary()
    assert "Views of one column" not in narrow.summary()
    assert "did not stand out among the rows that the fit looked for them in" in narrow.summary()


def test_a_view_of_one_column_whose_masses_come_with_other_rows_is_told_so(rng):
    X = rng.normal(size=(400, 3)) + 3 * rng.integers(2, size=(400, 1))
    model = MultiViewMixture(2, random_state=0).fit(X)
    X[:100, 1] = 0.0

    assert diagnose(model, X, n_permutations=19, random_state=0).exact["1"].allowed


def test_values_far_from_all_others_may_stand_for_missing_ones(rng):
    X = rng.normal(size=(400, 4)) + 3 * rng.integers(2, size=(400, 1)) + 20
    X[:3, 1], X[5:11, 2] = 0.0, 99.0
    X[:2, 3] = 0.0  # two rows may be chance
    model = MultiViewMixture(2, random_state=0).fit(X)

    found = diagnose(model, X, n_permutations=19, random_state=0)

    assert {name: value[:2] for name, value in found.apart.items()} == {"1": (0.0, 3), "2": (99.0, 6)}
    assert "3 rows of column 1 are exactly 0, next to 1" in found.summary()
    assert 'If they stand for "not measured", leave these cells empty' in found.summary()
    assert any("Values apart" in text for text in doubts(found))


def test_ends_of_scales_and_ratings_are_not_apart(rng):
    X = np.clip(rng.normal(size=(400, 3)) + 3 * rng.integers(2, size=(400, 1)), -2, 4)
    X[:, 2] = np.round(X[:, 2])
    model = MultiViewMixture(2, random_state=0).fit(X)

    assert not diagnose(model, X, n_permutations=19, random_state=0).apart


def test_rows_of_a_fit_are_known_however_far_its_weights_are_from_their_posteriors(rng):
    """Densities smoothed after the polish have other posteriors than the polish had."""
    together = rng.normal(size=(600, 1))
    X = np.hstack([together + 0.3 * rng.normal(size=(600, 8)), -together + 0.3 * rng.normal(size=(600, 8))])
    model = MultiViewMixture(4, random_state=0).fit(X)

    np.testing.assert_allclose(model.shares_, model.predict_proba(X).mean(axis=0), atol=1e-12)
    assert not diagnose(model, X, n_permutations=19, random_state=0).shifted
    assert diagnose(model, X[model.predict(X) != 0], n_permutations=19, random_state=0).shifted


def test_a_column_that_is_another_one_in_other_units_is_told(rng):
    X = rng.normal(size=(400, 4)) + 3 * rng.integers(2, size=(400, 1))
    X[:, 3] = np.round(2.54 * X[:, 1] + 7, 3)
    X[:5, 1] = np.nan
    model = MultiViewMixture(2, random_state=0).fit(X)

    found = diagnose(model, X, n_permutations=19, random_state=0)

    assert found.copies == (("1", "3"),)
    assert "Copies: 1 and 3 say the same thing twice" in found.worst
    together = MultiViewMixture(2, views=[[0], [1, 3], [2]], random_state=0).fit(X)
    assert not diagnose(together, X, n_permutations=19, random_state=0).copies


def test_two_clumps_in_one_class_of_copulas_are_told(rng):
    X = rng.normal(size=(300, 3)) + 6 * (np.arange(300) < 100)[:, None]

    one, two = (
        diagnose(MultiViewMixture(k, dependence="copula", random_state=0).fit(X), X, n_permutations=19, random_state=0)
        for k in (1, 2)
    )

    assert one.within.tolist() == [2]
    assert "class 0 looks like 2, since the density dips between two clumps" in one.worst
    assert two.within.tolist() == [1, 1]


def test_classes_of_copulas_that_overlap_are_not_said_to_be_one(rng):
    X = rng.normal(size=(400, 3)) + 1.5 * (np.arange(400) < 200)[:, None]

    one = diagnose(MultiViewMixture(1, dependence="copula", random_state=0).fit(X), X, n_permutations=19)

    assert one.within.tolist() == [1]
    assert "no class looks like two" not in one.summary()
    assert "classes that overlap so much that it does not are not told apart" in one.summary()


@pytest.mark.parametrize("law", ["normal", "standard_exponential", "uniform", "lognormal"])
def test_a_clump_of_any_shape_is_one(law, rng):
    for n, d in ((60, 2), (300, 8)):
        X = getattr(rng, law)(size=(n, d)) @ rng.normal(size=(d, d))
        assert clumps_within(X, np.ones((n, 1)), rng).tolist() == [1]


def test_a_fit_that_had_not_converged_is_held_against_it(fitted):
    *_, diagnosis = fitted
    dependent = replace(diagnosis, converged=False, agreement=0.9)

    assert any("raise `max_iter` of `Copulas`" in text for text in doubts(dependent))


def test_the_spectral_estimate_is_not_held_against_a_polish_whose_starts_agree(fitted):
    *_, diagnosis = fitted
    loose = replace(diagnosis, moments=replace(diagnosis.moments, eps_t=np.inf))
    near, apart = ({"spectral × 1": -3.0, "k-means": last} for last in (-3.0, -4.0))

    assert not any("spectral estimate" in text for text in doubts(replace(loose, start_objectives=near)))
    assert any("spectral estimate" in text for text in doubts(replace(loose, start_objectives=apart)))
    assert "spectral estimate" not in replace(loose, agreement=0.9).summary()


def test_other_models_are_told_where_their_checks_are(rng):
    model = LowRankDensity(2, random_state=0).fit(rng.normal(size=(50, 3)))

    with pytest.raises(TypeError, match=r"got a LowRankDensity\. For it see `score` of held-out rows"):
        diagnose(model, rng.normal(size=(5, 3)))
