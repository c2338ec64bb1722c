import warnings

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer, StandardScaler

from catalogue import METHODS
from latentviews import (
    Delta,
    Gaussian,
    Laplace,
    Linear,
    LowRankDensity,
    ProductMixture,
    SignedTrain,
    Stack,
    TransformedDensity,
    VonMises,
    WhitenScale,
    load,
    save,
    two_sample_test,
)
from latentviews.baselines import LatentTreeSpectral
from latentviews.baselines.latent_tree import chain_operators
from latentviews.densities.stacking import stacking_shares
from latentviews.joint.stacks import pruned
from latentviews.joint.tensor_trees import contract
from latentviews.joint.trees import caterpillar
from latentviews.plot import DensityDisplay
from reference import latent_tree_table

mpl.use("Agg")
FAST, PRODUCTS, SIGNED = METHODS[:3]


def two_clusters(n, d, rng):
    return rng.normal(size=(n, d)) + 3.0 * rng.integers(2, size=(n, 1))


class Batches:
    """A stream that can be read again."""

    def __init__(self, *parts):
        self.parts = parts

    def __iter__(self):
        return iter(self.parts)


def fit(method, X, rank=2, **options):
    return LowRankDensity(rank, method=method, random_state=0, **options).fit(X)


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_the_density_integrates_to_one_by_quadrature_in_two_dimensions(method, rng):
    X = two_clusters(300, 2, rng) @ np.array([[1.0, 0.5], [0.0, 1.0]])
    model = fit(method, X)
    points = np.linspace(-15, 19, 125)
    square = np.stack(np.meshgrid(points, points), axis=-1).reshape(-1, 2)
    total = np.exp(model.score_samples(square)).sum() * (points[1] - points[0]) ** 2
    assert total == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_the_density_integrates_to_one_by_importance_sampling_in_six_dimensions(method, rng):
    X = two_clusters(500, 6, rng)
    model = fit(method, X)
    proposal = GaussianMixture(2, random_state=0).fit(X)
    proposal.covariances_ = 2 * proposal.covariances_
    proposal.precisions_cholesky_ = proposal.precisions_cholesky_ / np.sqrt(2)
    draws = proposal.sample(12_000)[0]
    ratio = np.exp(model.score_samples(draws) - proposal.score_samples(draws))
    limit = stats.norm.isf(1e-4) * ratio.std() / np.sqrt(len(ratio)) + 0.02  # 1 % lies far out in a broad law
    assert ratio.mean() == pytest.approx(1.0, abs=limit)


@pytest.mark.parametrize("method", [FAST, PRODUCTS], ids=repr)
def test_marginals_are_integrals_and_conditionals_ratios(method, rng):
    model = fit(method, two_clusters(300, 3, rng))
    points = np.linspace(-20, 24, 3001)
    rows = np.column_stack([np.full(3001, 0.3), points, np.full(3001, 2.0)])
    pair = np.array([[0.3, 2.0]])
    total = np.exp(model.score_samples(rows)).sum() * (points[1] - points[0])
    marginal = model.marginal([0, 2]).score_samples(pair)[0]
    assert np.exp(marginal) == pytest.approx(total, rel=1e-3)
    given = model.conditional([1], {0: 0.3, 2: 2.0})
    np.testing.assert_allclose(given.score_samples(points), model.score_samples(rows) - marginal, atol=1e-8)
    swapped = model.marginal([2, 0]).score_samples(pair[:, ::-1])
    assert swapped[0] == pytest.approx(marginal)
    rows[:, 1] = np.nan
    np.testing.assert_allclose(model.score_samples(rows[:1]), marginal)


def test_marginals_of_the_signed_estimate_are_contractions_of_its_tree(rng):
    X = two_clusters(200, 3, rng)
    density = fit(SIGNED, X).density_
    points = np.linspace(-8, 12, 801)
    rows = np.column_stack([np.full(801, 0.3), points, np.full(801, 2.0)])
    total = density._raw(rows).sum() * (points[1] - points[0])
    pair = density.marginal([0, 2])
    assert pair._raw(rows[:1])[0] == pytest.approx(total, rel=1e-6)
    given = density.conditional({0: 0.3, 2: 2.0})
    np.testing.assert_allclose(given._raw(rows), density._raw(rows) / total, rtol=1e-6, atol=1e-12)
    assert given.mass == pytest.approx(1.0)


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_samples_follow_the_density(method, rng):
    X = two_clusters(200, 3, rng) @ np.array([[1.0, 0.6, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    model = fit(method, X)
    proposal = 6 * rng.standard_t(5, size=(20_000, 3)) + X.mean(axis=0)
    log_proposal = stats.t.logpdf((proposal - X.mean(axis=0)) / 6, 5).sum(axis=1) - 3 * np.log(6)
    ratio = np.exp(model.score_samples(proposal) - log_proposal)
    fair = proposal[rng.choice(len(proposal), size=200, replace=False, p=ratio / ratio.sum())]
    assert two_sample_test(model.sample(200), fair, random_state=0).pvalue > 1e-3
    conditional = model.conditional([1], {0: 0.0, 2: 0.0})
    points = np.linspace(-15, 18, 1001)
    cumulative = np.cumsum(np.exp(conditional.score_samples(points))) * (points[1] - points[0])
    drawn = conditional.sample(500, random_state=1)[:, 0]
    assert stats.kstest(drawn, lambda x: np.interp(x, points, cumulative)).pvalue > 1e-4


def test_the_default_is_near_the_truth_where_it_is_gaussian_and_beats_kernel_density_estimates(rng):
    X, Y = two_clusters(600, 5, rng), two_clusters(2000, 5, rng)
    truth = np.logaddexp(*(stats.norm.logpdf(Y, m).sum(axis=1) for m in (0, 3))) - np.log(2)
    model = LowRankDensity(method=Stack((1, 2), n_folds=3), random_state=0).fit(X)
    assert model.score(Y) > truth.mean() - 0.1
    kde = KernelDensity(bandwidth=0.6).fit(X)
    assert model.score(Y) > kde.score(Y) / len(Y) + 0.1
    assert model.mass_ == 1.0
    assert model.negative_share_ == 0.0


def test_the_rank_of_products_is_chosen_by_held_out_likelihood(rng):
    centers = np.array([[0, 0, 0, 0], [6, 0, 6, 0], [0, 6, 6, 6]])
    X = centers[rng.integers(3, size=450)] + rng.normal(size=(450, 4))
    model = fit(ProductMixture((1, 2, 3, 4), n_folds=2, max_iter=40), X, "auto")
    assert model.rank_ in (3, 4)
    assert len(model.density_.parts) == 1


def test_the_signed_estimate_reports_its_mass_and_negatives(rng):
    X = two_clusters(100, 4, rng)
    full = fit(SignedTrain(0.6), X, 100)
    kde = np.prod([Gaussian(0.6).gram(X[:, [j]], X[:, [j]]) for j in range(4)], axis=0).mean(axis=1)
    np.testing.assert_allclose(full.score_samples(X), np.log(kde), atol=1e-5)
    assert full.mass_ == pytest.approx(1.0, abs=1e-6)
    assert full.negative_share_ < 0.01
    low = fit(SignedTrain(0.6), X, 1)
    assert low.mass_ < 0.9
    assert np.all(np.isfinite(low.score_samples(X + 5)))
    chosen = fit(SignedTrain(factors=(0.25, 4.0), ranks=(1, 2)), X, "auto")
    assert chosen.rank_ == 2
    assert chosen.density_.kde.kernels[0].bandwidth < np.median(stats.iqr(X, axis=0))


def test_a_tree_may_be_given_or_learned(rng):
    hidden = rng.integers(2, size=(800, 1)), rng.integers(2, size=(800, 1))
    pairs = [2.5 * h + rng.normal(size=(800, 2)) for h in hidden]
    X = np.column_stack([pairs[0][:, 0], pairs[1][:, 0], pairs[0][:, 1], pairs[1][:, 1]])
    learned = fit(SIGNED, X, tree="auto")
    assert frozenset([0, 2]) in learned.tree_.edges or frozenset([1, 3]) in learned.tree_.edges
    given = fit(SIGNED, X, tree=((0, 2), (1, 3)))
    assert given.score(X) == pytest.approx(learned.score(X), abs=0.01)
    assert given.score(X) > fit(SIGNED, X, tree=((0, 1), (2, 3))).score(X)


def test_every_edge_may_have_its_own_rank(rng):
    X = two_clusters(100, 4, rng)
    model = fit(SIGNED, X, rank=[1, 2, 3])
    assert list(model.density_.embedding.ranks.values()) == [1, 2, 3]
    with pytest.raises(ValueError, match="one for each of the 3 edges; got 2"):
        fit(SIGNED, X, rank=[1, 2])
    by_tolerance = fit(SignedTrain(0.5, tol=0.1), X, rank=20)
    assert by_tolerance.rank_ == list(by_tolerance.density_.embedding.ranks.values())
    assert 1 < max(by_tolerance.rank_) < 20


def test_few_rows_are_decomposed_exactly_and_many_by_sketches(rng):
    X = two_clusters(700, 4, rng)
    exact, sketched = fit(SignedTrain(0.7), X), fit(SignedTrain(0.7, exact_rows=100), X)
    np.testing.assert_allclose(sketched.score_samples(X), exact.score_samples(X), atol=0.1)
    streamed = fit(SignedTrain(0.7, exact_rows=100), Batches(X[:300], X[300:]), pilot_size=400)
    np.testing.assert_allclose(streamed.score(X), exact.score(X), atol=0.02)


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_numbers_codes_and_angles_stand_side_by_side(method, rng):
    y = rng.integers(2, size=300)
    X = np.column_stack([rng.normal(size=300) + 3 * y, (y + (rng.random(300) < 0.2)) % 2, rng.vonmises(2 * y, 5.0)])
    model = fit(method, X, kernel=[Gaussian(), Delta(), VonMises()])
    codes = model.conditional([1], {0: 3.0, 2: 2.0})
    share = np.exp(codes.score_samples([[0.0], [1.0]]))
    assert share.sum() == pytest.approx(1.0, abs=0.02)
    assert share[1] > 0.6
    points = np.linspace(-np.pi, np.pi, 257)[:-1]
    angle = np.exp(model.marginal([2]).score_samples(points))
    assert angle.sum() * 2 * np.pi / 256 == pytest.approx(1.0, abs=0.02)
    rows = model.sample(200)
    assert set(np.unique(rows[:, 1])) <= {0.0, 1.0}
    assert abs(rows[:, 0].mean() - X[:, 0].mean()) < 0.8


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_missing_values_are_integrated_out(method, rng):
    X = two_clusters(200, 4, rng)
    whole = fit(method, X)
    holes = X.copy()
    holes[rng.random(X.shape) < 0.1] = np.nan
    model = fit(method, holes)
    assert model.score(X) == pytest.approx(whole.score(X), abs=0.15)
    assert model.score_samples(np.full((1, 4), np.nan))[0] == pytest.approx(
        0.0, abs=0.05 if method is SIGNED else 1e-9
    )  # floored before it is integrated


def test_rows_beyond_the_pilot_are_used(rng):
    X = two_clusters(8000, 3, rng)
    pilot = fit(FAST, X[:150])
    model = fit(FAST, X, pilot_size=150)
    fresh = two_clusters(4000, 3, rng)
    assert model.score(fresh) > pilot.score(fresh)
    streamed = fit(FAST, Batches(X[:3000], X[3000:]), pilot_size=150)
    assert streamed.score(fresh) == pytest.approx(model.score(fresh), abs=0.05)


def test_weights_count_rows(rng):
    X = np.concatenate([rng.normal(size=(200, 2)), rng.normal(size=(200, 2)) + 5])
    model = LowRankDensity(2, method=FAST, random_state=0).fit(X, sample_weight=np.repeat([3.0, 1.0], 200))
    assert np.mean(model.sample(4000)[:, 0] < 2.5) == pytest.approx(0.75, abs=0.05)


def test_rows_beyond_the_pilot_are_used_where_some_count_for_nothing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 2)) + 8.0 * (np.arange(4000) % 4 == 0)[:, None]
    weights = np.where(np.arange(4000) % 4 == 1, 0.0, np.where(np.arange(4000) % 4 == 0, 6.0, 1.0))
    for rows, weight in ((X, weights), (Batches((X, weights)), None)):
        model = LowRankDensity(2, method=PRODUCTS, pilot_size=60, random_state=0).fit(rows, sample_weight=weight)
        assert model.density_.parts[0].weights.max() == pytest.approx(0.75, abs=1e-3)


def test_constant_columns_are_left_out_with_a_warning_and_accounted_for():
    rng = np.random.default_rng(0)
    X = two_clusters(200, 3, rng)
    X[:, 1] = 7.0
    with pytest.warns(UserWarning, match=r"Columns \[1\] are constant and were left out"):
        model = fit(FAST, X)
    np.testing.assert_allclose(model.score_samples(X), fit(FAST, X[:, [0, 2]]).score_samples(X[:, [0, 2]]))
    assert np.all(model.sample(10)[:, 1] == 7.0)
    assert model.score_samples(np.array([[0.0, 6.0, 0.0]]))[0] == -np.inf
    with pytest.raises(ValueError, match=r"Columns \[1\] are constant .* the others are \[0, 2\]"):
        model.marginal([1])
    given = model.conditional([0], {1: 7.0, 2: 1.0})
    np.testing.assert_array_equal(given.score_samples(X[:, 0]), model.conditional([0], {2: 1.0}).score_samples(X[:, 0]))
    with pytest.raises(ValueError, match=r"Column 1 is always 7\.0; there is no density given 6\.0"):
        model.conditional([0], {1: 6.0})


def test_constant_columns_are_left_out_of_a_given_tree():
    X = two_clusters(60, 5, np.random.default_rng(0))
    X[:, 1] = 7.0
    with pytest.warns(UserWarning, match=r"Columns \[1\] are constant"):
        model = fit(SIGNED, X, tree=((0, 1), (2, 4), 3))
    rest = fit(SIGNED, X[:, [0, 2, 3, 4]], tree=(0, (1, 3), 2))
    assert model.tree_.edges == rest.tree_.edges
    np.testing.assert_allclose(model.score_samples(X), rest.score_samples(X[:, [0, 2, 3, 4]]))


def test_a_column_that_varies_outside_the_pilot_alone_is_named():
    X = two_clusters(2000, 3, np.random.default_rng(0))
    X[:, 1] = np.arange(2000) == 1500
    for rows in (X, Batches(X[:1000], X[1000:])):
        with pytest.raises(ValueError, match=r"Columns \[1\] are constant in the 20 rows of the pilot alone"):
            fit(FAST, rows, pilot_size=20)


@pytest.mark.parametrize(
    ("options", "change", "message"),
    [
        ({"rank": 0}, None, 'rank must be an integer of at least 1, a list of one per edge, or "auto"; got 0'),
        ({"rank": "two"}, None, "rank must be an integer .* got 'two'"),
        ({"rank": {0: 1}}, None, "rank must be an integer .* got {0: 1}"),
        ({"rank": np.array([[1, 2]])}, None, "rank must be an integer .* got array"),
        ({"rank": [1, 2]}, None, r"Stack has one rank for all columns; SignedTrain takes one per edge; got \[1, 2\]"),
        ({"rank": 50}, None, "rank 50 needs at least 50 rows; got n_samples = 40"),
        ({"method": SIGNED, "tree": (0, 1)}, None, "leaves of the tree must be the columns 0 to 2"),
        ({"tree": [(0, 9)]}, None, r"leaves of the tree must be the columns 0 to 2, each once; got \[0, 9\]"),
        ({"method": SIGNED, "tree": "star"}, None, "tree must be"),
        ({"method": SignedTrain(0.5, floor=0)}, None, "floor must be between 0 and 1"),
        ({"method": SignedTrain("isj")}, None, 'bandwidth must be "cv"'),
        ({"method": SignedTrain([1.0, 2.0])}, None, 'bandwidth must be "cv", a positive number, or one for each of 3'),
        ({"method": SignedTrain(0.0)}, None, 'bandwidth must be "cv", a positive number'),
        ({"method": SignedTrain(factors=())}, None, "factors must be positive numbers, at least one"),
        ({"method": SignedTrain(factors=(1, -1))}, None, "factors must be positive numbers, at least one"),
        ({"method": SignedTrain(0.5, tol=-1.0)}, None, "tol must be a finite number of at least zero; got -1.0"),
        ({"method": SignedTrain(0.5, exact_rows="many")}, None, "exact_rows must be an integer of at least"),
        ({"method": SignedTrain(ranks=3)}, None, "ranks must be a sequence of integers; got 3"),
        ({"method": Stack(3)}, None, "ranks must be a sequence of integers; got 3"),
        ({"method": Stack(max_iter=0)}, None, "max_iter must be an integer of at least 1"),
        ({"method": Stack(tol="small")}, None, "tol must be a finite number of at least zero; got 'small'"),
        ({"kernel": [Gaussian()]}, None, "one object or one per column; got 1 for 3"),
        ({"method": Stack(n_folds=1)}, None, "n_folds must be an integer of at least 2"),
        ({}, (slice(None), 1), r"Columns \[1\] have no value in any row"),
        ({}, (3, slice(None)), r"Rows \[3\] have no value at all"),
    ],
    ids=str,
)
def test_bad_input_gets_one_clear_sentence(options, change, message):
    X = np.random.default_rng(0).normal(size=(40, 3))
    if change is not None:
        X[change] = np.nan
    with pytest.raises(ValueError, match=message):
        LowRankDensity(**options).fit(X)


@pytest.mark.parametrize(
    ("scale", "message"),
    [(1e-150, r"Columns \[1\] span .*; scale them first"), (1e150, r"Column 1 holds .*, whose square is no number")],
)
def test_columns_too_wide_or_narrow_for_floating_point_are_named(scale, message):
    X = two_clusters(40, 3, np.random.default_rng(0))
    X[:, 1] *= scale
    with pytest.raises(ValueError, match=message):
        LowRankDensity().fit(X)
    with pytest.raises(ValueError, match=r"product of 40 kernels .* scale the columns first"):
        fit(SignedTrain(factors=(0.5,)), scale ** (1 / 15) * two_clusters(50, 40, np.random.default_rng(0)))


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_rows_of_which_folds_see_one_value_have_a_density(method):
    X = two_clusters(60, 3, np.random.default_rng(0))
    rare = np.column_stack([X, np.eye(60)[7]])  # constant in every fold but one
    seldom = np.column_stack([X, np.where(np.arange(60) < 2, X[:, 0], np.nan)])
    for rows, rank in ((rare, "auto"), (seldom, 2), (X[:3], "auto"), (X[:2], 2)):
        model = fit(method, rows, rank)
        assert np.all(model.score_samples(rows) > model.score_samples(rows + 1e3))
        assert np.nanmax(np.abs(model.sample(50) - np.nanmean(rows, axis=0))) < 100


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_where_the_origin_lies_does_not_matter(method):
    X = np.round(two_clusters(100, 3, np.random.default_rng(0)), 3)
    np.testing.assert_allclose(fit(method, X + 1e8).score_samples(X + 1e8), fit(method, X).score_samples(X), atol=1e-4)


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_values_far_from_all_rows_have_next_to_no_density(method):
    model = fit(method, two_clusters(100, 3, np.random.default_rng(0)))
    for far in (1e3, 1e150, -1e300):
        assert -np.inf < model.score_samples([[far, 0.0, far]])[0] < -500


def test_what_is_no_method_or_has_no_density_is_refused():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    with pytest.raises(TypeError, match="method must be an object with a method `estimate`"):
        LowRankDensity(method="stack").fit(X)
    with pytest.raises(TypeError, match="Linear does not smooth"):
        LowRankDensity(kernel=Linear()).fit(X)
    with pytest.raises(TypeError, match="SignedTrain takes Gaussian, VonMises and Delta kernels"):
        LowRankDensity(kernel=Laplace(), method=SIGNED).fit(X)
    with pytest.raises(ValueError, match="All 2 columns are constant"):
        LowRankDensity().fit(np.ones((10, 2)))
    with pytest.raises(ValueError, match="holds no batch"):
        LowRankDensity().fit(Batches())
    holes = X.copy()
    holes[:20, 0] = holes[20:, 1] = np.nan
    with pytest.raises(ValueError, match="at least 2 rows without missing values; got 0"):
        fit(SIGNED, holes)
    holes[0] = 0.0
    with pytest.raises(ValueError, match="at least 5 rows without missing values; got 1"):
        fit(SIGNED, holes, rank=5)
    late = two_clusters(300, 2, rng)
    late[290] = np.nan
    with pytest.raises(ValueError, match=r"Rows \[290\] have no value at all"):
        fit(FAST, late, pilot_size=50)
    with pytest.raises(ValueError, match="1 of 300 rows of the pilot have no value at all"):
        fit(FAST, Batches(late))
    model = fit(FAST, X)
    with pytest.raises(ValueError, match=r"Columns \[1\] are both asked for and given"):
        model.conditional([0, 1], {1: 0.0})
    for wrong in (np.nan, "high", None, [1.0, 2.0]):
        with pytest.raises(ValueError, match="must be finite numbers"):
            model.conditional([0], {1: wrong})
    for wrong in ([1], None):
        with pytest.raises(ValueError, match="given must be a dict"):
            model.conditional([0], wrong)
    for wrong in ([5], [-1], [True], ["a"], [0, 0], [], None, [[0]]):
        with pytest.raises(ValueError, match=r"Columns must be different ones of 0 to 2, or their names; got"):
            model.marginal(wrong)
    np.testing.assert_array_equal(model.marginal(1).score_samples(X[:, 1]), model.marginal([1]).score_samples(X[:, 1]))
    with pytest.raises(ValueError, match=r"a value for each of the columns \[0, 1\]"):
        model.marginal([0, 1]).score_samples(X)
    with pytest.raises(ValueError, match="infinity"):
        model.marginal([0]).score_samples([np.inf])


def test_columns_have_names_and_models_clone_and_search():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(two_clusters(200, 3, rng), columns=["a", "b", "c"])
    model = fit(FAST, X)
    np.testing.assert_allclose(
        model.marginal(["c", "a"]).score_samples(X[["c", "a"]]), model.marginal([2, 0]).score_samples(X[["c", "a"]])
    )
    pair = model.marginal(["c", "a"])
    np.testing.assert_array_equal(pair.score_samples(X), pair.score_samples(X[["c", "a"]]))  # found by their names
    np.testing.assert_array_equal(pair.score_samples(pl.from_pandas(X)), pair.score_samples(X))
    with pytest.raises(ValueError, match=r"Rows need the columns \['c', 'a'\]; got \['a', 'b'\]"):
        pair.score_samples(X[["a", "b"]])
    assert model.conditional(["a"], {"b": 1.0}).columns == [0]
    named = fit(SIGNED, X, tree=(("a", "c"), "b"))
    assert frozenset([0, 2]) in named.tree_.edges
    assert clone(model).method is not model.method
    search = GridSearchCV(LowRankDensity(method=FAST, random_state=0), {"rank": [1, 2]}, cv=2).fit(X)
    assert search.best_params_ == {"rank": 2}


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_a_saved_density_scores_the_same(method, tmp_path):
    X = two_clusters(100, 3, np.random.default_rng(0))
    model = fit(method, X)
    save(model, tmp_path / "density")
    np.testing.assert_array_equal(load(tmp_path / "density").score_samples(X), model.score_samples(X))


def test_stacking_finds_the_best_convex_combination(rng):
    x = np.where(rng.random(4000) < 0.3, rng.normal(size=4000), rng.normal(size=4000) + 5)
    logs = np.stack([stats.norm.logpdf(x, m) for m in (0, 5, 20)], axis=1)
    np.testing.assert_allclose(stacking_shares(logs), [0.3, 0.7, 0.0], atol=0.03)
    weights = np.where(x < 2.5, 2.0, 1.0)
    np.testing.assert_allclose(stacking_shares(logs, weights), [0.6 / 1.3, 0.7 / 1.3, 0.0], atol=0.03)


def test_experts_that_add_nothing_are_pruned(rng):
    x = rng.normal(size=2000)
    logs = np.stack([stats.norm.logpdf(x, m) for m in (0.0, 0.01, 3.0)], axis=1)
    np.testing.assert_array_equal(np.count_nonzero(pruned(logs, np.array([0.5, 0.45, 0.05]))), 1)
    both = np.concatenate([x, x + 6])
    logs = np.stack([stats.norm.logpdf(both, m) for m in (0.0, 6.0)], axis=1)
    np.testing.assert_allclose(pruned(logs, np.array([0.5, 0.5])), [0.5, 0.5])


def test_whitened_rows_are_white_and_come_back(rng):
    X = rng.normal(size=(300, 4)) @ rng.normal(size=(4, 4)) + 5
    scale = WhitenScale(shrinkage=0.0).fit(X)
    Y = scale.transform(X)
    np.testing.assert_allclose(np.cov(Y.T, bias=True), np.eye(4), atol=1e-8)
    np.testing.assert_allclose(scale.inverse_transform(Y), X, atol=1e-8)
    assert scale.log_jacobian_ == pytest.approx(np.linalg.slogdet(scale.matrix_)[1])
    only_scaled = WhitenScale(shrinkage=1.0).fit(X)
    np.testing.assert_allclose(only_scaled.transform(X), StandardScaler().fit_transform(X), atol=1e-8)
    assert 0 < WhitenScale().fit(X[:20]).shrinkage_ < 1
    with pytest.raises(ValueError, match="linearly dependent"):
        WhitenScale(shrinkage=0.0).fit(X[:3])
    with pytest.raises(ValueError, match=r"columns that are constant; leave out \[0\]"):
        WhitenScale().fit(np.column_stack([np.ones(300), X]))
    for wrong in (2.0, "none", None):
        with pytest.raises(ValueError, match="a number from 0 to 1"):
            WhitenScale(shrinkage=wrong).fit(X)
    with pytest.raises(ValueError, match=r"expects rows of 4 columns; got shape \(300, 2\)"):
        scale.inverse_transform(Y[:, :2])


@pytest.mark.parametrize(
    "transformer",
    [None, StandardScaler(), make_pipeline(StandardScaler(), WhitenScale())],
    ids=["own", "scale", "both"],
)
def test_likelihoods_are_in_the_units_of_the_data(transformer, rng):
    X = rng.normal(size=(400, 3)) * np.array([10.0, 0.1, 1.0]) + np.array([5.0, 0.0, -2.0])
    model = TransformedDensity(GaussianMixture(1, random_state=0), transformer).fit(X)
    direct = stats.multivariate_normal(X.mean(axis=0), np.cov(X.T, bias=True)).logpdf(X)
    np.testing.assert_allclose(model.score_samples(X), direct, atol=1e-3)
    assert model.score(X) == pytest.approx(direct.mean(), abs=1e-3)
    np.testing.assert_allclose(model.sample(2000).std(axis=0), X.std(axis=0), rtol=0.2)


def test_the_jacobian_is_right_whatever_the_units_and_names():
    X = two_clusters(100, 2, np.random.default_rng(0))
    frame, units, origin = pd.DataFrame(X, columns=["a", "b"]), np.array([1e13, 1e-13]), np.array([1e15, 0.0])
    model = TransformedDensity(KernelDensity(), StandardScaler())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        direct = model.fit(frame).score(frame)
    moved = units * X + origin
    assert model.fit(moved).score(moved) == pytest.approx(direct - np.log(units).sum(), abs=1e-8)


def test_a_transformer_that_is_not_linear_is_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(TypeError, match="linear, invertible transformer"):
        TransformedDensity(KernelDensity(), QuantileTransformer(n_quantiles=10)).fit(rng.normal(size=(50, 2)))


def test_the_spectral_algorithm_is_exact_on_the_population_of_a_caterpillar(rng):
    tree = (0, 1, (2, (3, 4)))
    table = latent_tree_table(tree, 2, (3, 3, 3, 3, 3), rng)
    rows = np.argwhere(np.ones(table.shape))
    phi = [np.eye(3)[column] for column in rows.T]
    cores = chain_operators(phi, 2, table.ravel())
    np.testing.assert_allclose(contract(caterpillar(5), cores, dict(enumerate(phi))), table.ravel(), atol=1e-8)
    shuffled = [phi[j] for j in (0, 3, 1, 4, 2)]
    wrong = contract(caterpillar(5), chain_operators(shuffled, 2, table.ravel()), dict(enumerate(shuffled)))
    assert np.abs(wrong - table.ravel()).max() > 1e-4


def test_the_spectral_baseline_scores_rows_and_says_what_it_is_worth(rng):
    X = two_clusters(500, 4, rng)
    model = LatentTreeSpectral(2, bandwidth=0.8, random_state=0).fit(X)
    assert model.mass_ == pytest.approx(1.0, abs=0.1)
    assert 0 <= model.negative_share_ < 0.2
    assert model.score(X) == pytest.approx(fit(SignedTrain(0.8), X).score(X), abs=0.1)
    with pytest.raises(ValueError, match="at least 5 rows and two columns"):
        LatentTreeSpectral(5).fit(X[:3])
    for wrong in ("isj", [1.0, 2.0], -1.0):
        with pytest.raises(ValueError, match='bandwidth must be a positive number or "median"'):
            LatentTreeSpectral(bandwidth=wrong).fit(X)
    for wrong in (0, "low"):
        with pytest.raises(ValueError, match="floor must be between 0 and 1"):
            LatentTreeSpectral(floor=wrong).fit(X)
    with pytest.raises(ValueError, match="All 4 columns are constant over 500 rows"):
        LatentTreeSpectral().fit(np.ones_like(X))


def test_contours_of_two_columns_are_drawn():
    rng = np.random.default_rng(0)
    from matplotlib import pyplot

    X = two_clusters(200, 3, rng)
    model = fit(FAST, X)
    display = DensityDisplay.from_estimator(model, X, columns=(0, 2), given={1: 3.0}, resolution=40)
    assert display.ax_.get_xlabel() == "column 0"
    assert display.ax_.get_ylabel() == "column 2"
    peak = np.unravel_index(display.density.argmax(), display.density.shape)
    np.testing.assert_allclose([display.ticks[0][peak[0]], display.ticks[1][peak[1]]], [3.0, 3.0], atol=1.0)
    cell = np.diff(display.ticks[0])[0] * np.diff(display.ticks[1])[0]
    assert display.density.sum() * cell == pytest.approx(1.0, abs=0.03)
    with pytest.raises(ValueError, match="draws two columns"):
        DensityDisplay.from_estimator(model, columns=[0])
    pyplot.close("all")


def nearly_the_same_columns(n, rng):
    """Six columns that two numbers and a little noise make, as lengths, areas and volumes of one thing are."""
    hidden = np.exp(0.3 * rng.normal(size=(n, 2)))
    return hidden @ np.array([[1, 1, 2, 2, 0, 1], [0, 1, 1, 2, 1, 0]]) + 0.01 * rng.normal(size=(n, 6))


def test_the_default_is_no_worse_than_itself_on_whitened_rows(rng):
    train, test = nearly_the_same_columns(400, rng), nearly_the_same_columns(400, rng)
    plain, whitened = LowRankDensity(random_state=0), TransformedDensity(LowRankDensity(random_state=0))
    assert plain.fit(train).score(test) > whitened.fit(train).score(test) - 0.05


def test_the_default_follows_columns_with_a_value_that_many_rows_nearly_have(rng):
    rows = rng.normal(size=(1000, 3)) @ (np.eye(3) + 0.5)
    rows[:, 1] = np.where(rng.random(1000) < 0.4, rng.uniform(-0.005, 0.005, size=1000), rows[:, 1])
    peer = max(GaussianMixture(k, n_init=3, random_state=0).fit(rows[:500]).score(rows[500:]) for k in (2, 3, 4))
    assert LowRankDensity(random_state=0).fit(rows[:500]).score(rows[500:]) > peer - 0.05


def test_rounded_values_are_no_spikes(rng):
    rows = np.round(rng.normal(size=(800, 2)) * 20) / 20
    model = LowRankDensity(random_state=0).fit(rows)
    offsets = model.marginal([0]).score_samples(np.array([0.0, 0.0125, 0.025]))
    assert np.ptp(offsets) < 0.05


def test_columns_may_tell_more_of_each_other_than_they_are_rounded_to(rng):
    rounded, sign = np.round(rng.normal(size=1000) * 20) / 20, rng.choice([-1.0, 1.0], size=1000)
    rows = np.column_stack([rounded, sign * rounded + 0.005 * rng.normal(size=1000)])
    peer = max(GaussianMixture(k, n_init=3, random_state=0).fit(rows[:500]).score(rows[500:]) for k in (2, 4))
    assert LowRankDensity(random_state=0).fit(rows[:500]).score(rows[500:]) > peer - 0.05


def test_a_density_of_numbers_with_a_code_and_missing_values_has_closed_conditionals(rng):
    code = rng.integers(2, size=600)
    rows = np.column_stack([nearly_the_same_columns(600, rng)[:, :3] + code[:, None], code])
    whole = rows.copy()
    rows[rng.random(rows.shape) < 0.1] = np.nan
    rows[np.isnan(rows).all(axis=1), 0] = 1.0
    model = LowRankDensity(random_state=0, kernel=[Gaussian()] * 3 + [Delta()]).fit(rows)
    given = {0: float(whole[0, 0]), 3: float(code[0])}
    both = np.column_stack([np.full(50, given[0]), whole[:50, 1:3], np.full(50, given[3])])
    known = model.marginal([0, 3]).score_samples([list(given.values())])
    found = model.conditional([1, 2], given).score_samples(both[:, 1:3])
    np.testing.assert_allclose(found, model.score_samples(both) - known, atol=1e-8)
