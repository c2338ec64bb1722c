import numpy as np
import pandas as pd
import pytest

from latentviews import (
    Delta,
    Gaussian,
    HalfLine,
    KernelHMM,
    KernelICA,
    LatentClass,
    MultiViewMixture,
    likelihood_curve,
    rank_test,
)
from latentviews.core.features.bins import BinnedFeatures
from latentviews.core.selection import _leading, _leading_features, _limits, compared_name, directions_rank
from latentviews.datasets import make_multiview


@pytest.mark.parametrize("design", ["gaussian", "gamma"])
@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("separation", [4.0, 2.0])
def test_the_rank_of_the_dependence_counts_the_classes(design, k, separation):
    X, _, _ = make_multiview(2000, k, design=design, separation=separation, random_state=7)
    test = rank_test(X, random_state=0)
    assert test.n_components == k
    assert set(test.spectra) >= {(0, 1), (0, 2), (1, 2), (0, (1, 2)), (0, 1, 2.0)}
    assert set(test.spectra) == set(test.nulls) == set(test.thresholds)
    assert all(np.all(np.diff(null) >= 0) for null in test.nulls.values())


@pytest.mark.parametrize("seed", range(4))
def test_a_rare_class_is_counted(seed):
    """Three in a hundred of 2,000 rows show in kernels twice as wide."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, 2000, p=[0.57, 0.4, 0.03])
    X = rng.normal(size=(2000, 3)) + np.array([[0, 4, 8], [4, 0, 4], [8, 8, 0]])[y]

    assert rank_test(X, random_state=0).n_components == 3


def test_many_classes_that_differ_little_are_counted_by_groups_of_views():
    rng = np.random.default_rng(0)
    X = rng.normal(scale=1.5, size=(10, 12))[rng.integers(10, size=2000)] + rng.normal(size=(2000, 12))
    test = rank_test(X, random_state=0)
    pairs = [pair for pair in test.spectra if all(isinstance(side, int) for side in pair)]

    assert max(test.count(pair) for pair in pairs) < 5
    assert 7 <= test.n_components <= 10


def test_groups_do_not_depend_on_the_units_of_their_views():
    X, _, _ = make_multiview(1000, 3, random_state=0)
    test, scaled = (rank_test(table, random_state=0) for table in (X, X * [1, 1e-3, 1e3]))
    values, same = (found.spectra[1, (0, 2)] / found.thresholds[1, (0, 2)] for found in (test, scaled))

    np.testing.assert_allclose(same[:5], values[:5], rtol=1e-6)


def test_views_that_are_compared_have_names():
    names = ["a", "b", "c"]
    assert compared_name((0, 2), names) == "a and c"
    assert compared_name((0, (1, 2), 2.0), names) == "a and b + c, kernels × 2"


def test_independent_views_rarely_show_a_second_class():
    """The level is .05; twelve rejections in sixty have a chance below 1e-4."""
    rejected = sum(
        rank_test(np.random.default_rng(seed).normal(size=(200, 3)), random_state=seed).n_components > 1
        for seed in range(60)
    )
    assert rejected <= 11


def test_the_level_holds_for_few_draws_of_many_pairs(rng):
    """Of 500 tests at 5 %, 45 or more rejections are rarer than 1e-3; draws in units of their own make 56 to 69."""
    draws = rng.normal(size=(500, 40, 40))
    rejected = sum(np.any(values[0] > _limits(values[1:], 0.05)) for values in draws)
    assert rejected < 45


def test_discrete_views_and_missing_values_are_counted(rng):
    y = rng.integers(3, size=3000)
    tables = rng.dirichlet(np.full(5, 0.4), size=(3, 3))
    X = np.stack([[rng.choice(5, p=tables[t, h]) for h in y] for t in range(3)], axis=1).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    assert rank_test(X, kernel=Delta(), random_state=0).n_components <= 3
    assert rank_test(X, kernel=Delta(), random_state=0).n_components >= 2


def test_auto_fits_the_number_it_counts():
    X, _, truth = make_multiview(2000, 3, separation=2, random_state=0)
    model = MultiViewMixture("auto", random_state=0).fit(X)
    assert model.n_components_ == model.rank_test_.n_components == 3
    np.testing.assert_allclose(model.weights_, np.sort(truth.weights)[::-1], atol=0.05)


def test_held_out_likelihood_gives_the_same_answer():
    X, _, _ = make_multiview(400, 3, random_state=0)
    curve = likelihood_curve(MultiViewMixture(random_state=0), X, [2, 3, 4], cv=2)
    assert curve.n_components == 3
    assert curve.scores.shape == (3, 400)
    assert np.isfinite(curve.scores).all()


@pytest.mark.filterwarnings("error")
def test_rows_that_held_out_likelihood_cannot_judge_are_told(rng):
    answers = rng.integers(0, 4, (60, 5))
    answers[0, 0] = 9
    flags = make_multiview(120, 2, random_state=0).X > 0

    with pytest.raises(
        ValueError, match=r"Row 0 has likelihood zero for every number .* never given in the other folds"
    ):
        likelihood_curve(LatentClass(random_state=0, n_starts=2), answers, [1, 2], cv=3)
    with pytest.raises(ValueError, match=r"Row 26 has likelihood zero under 2 classes: .*Pass `smoothing`"):
        likelihood_curve(LatentClass(random_state=0, n_starts=2), flags, [1, 2], cv=2)
    smooth = LatentClass(random_state=0, n_starts=2, smoothing=0.05)
    assert likelihood_curve(smooth, flags, [1, 2], cv=2).n_components == 2


def test_bad_settings_are_sentences(rng):
    X = rng.normal(size=(50, 3))
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        rank_test(X, level=2.0)
    with pytest.raises(ValueError, match="at least one number of classes"):
        likelihood_curve(MultiViewMixture(), X, [])
    with pytest.raises(TypeError, match="candidates must be numbers of classes"):
        likelihood_curve(MultiViewMixture(), X, 3)
    with pytest.raises(TypeError, match="takes one table"):
        likelihood_curve(MultiViewMixture(), iter([X]), [2])
    for model, lacking in ((KernelHMM(), "n_components"), (KernelICA(), "score_samples")):
        with pytest.raises(TypeError, match=f"{type(model).__name__} has no `{lacking}`"):
            likelihood_curve(model, X, [2])
    for nothing in (MultiViewMixture, 5):
        with pytest.raises(TypeError, match="estimator must be a model, such as"):
            likelihood_curve(nothing, X, [2])
    with pytest.raises(ValueError, match="at least 2 views; got 1 from n_features = 1") as told:
        rank_test(X[:, :1])
    assert "do not determine" not in str(told.value)


def test_values_outside_the_space_of_their_kernel_are_refused(rng):
    X = pd.DataFrame(rng.exponential(size=(100, 3)), columns=["a", "b", "c"])
    X.loc[3, "b"] = -1.0

    with pytest.raises(ValueError, match=r"Column 'b' holds -1, which is outside HalfLine\(\)"):
        rank_test(X, kernel=Gaussian(space=HalfLine()))


def test_the_rank_of_given_directions_counts_what_the_views_share(rng):
    """Two directions that three views share, on rows of which some lack a view; none in views that share nothing."""
    shared = rng.normal(size=(600, 2))
    apart = [rng.normal(size=(600, 4)) for _ in range(3)]
    views = [np.column_stack([shared + 0.5 * noise[:, :2], noise[:, 2:]]) for noise in apart]
    views[1][:100] = np.nan

    assert directions_rank(views, rng, 0.05, 19).n_components == 3
    assert directions_rank(apart, rng, 0.01, 99).n_components == 1


@pytest.mark.cheap
def test_leading_directions_of_bins_are_those_of_their_features(rng):
    x = rng.gamma(2.0, size=(300, 1))
    phi = BinnedFeatures(Gaussian(0.3)).fit(x)

    found, expected = _leading_features(phi, x, 5), _leading(phi.transform(x), 5)

    assert found.shape == expected.shape
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-8 * np.abs(expected).max())
