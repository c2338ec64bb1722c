import contextlib
import pickle

import numpy as np
import pandas as pd
import polars
import pytest
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import OneHotEncoder, SplineTransformer

from latentviews import (
    Delta,
    FourierFeatures,
    Gaussian,
    IdentifiabilityWarning,
    JointDiagonalization,
    LandmarkFeatures,
    Laplace,
    Linear,
    MultiViewMixture,
    OneHotFeatures,
    PowerMethod,
    Sieve,
    SmoothedEM,
    VonMises,
)
from latentviews.core.kernels.bandwidths import silverman
from latentviews.core.kernels.spaces import Real
from latentviews.datasets import make_multiview
from latentviews.metrics import density_error, label_accuracy
from truths import OracleKDE, errors, grids


@pytest.mark.parametrize("design", ["gaussian", "gamma"])
@pytest.mark.parametrize("k", [2, 3, 4, 8])
def test_separated_classes_are_found_as_well_as_if_labels_were_known(design, k, rng):
    X, y, truth = make_multiview(10_000, k, design=design, random_state=rng)
    model = MultiViewMixture(k, polish=None, random_state=0).fit(X)
    error, weight, match = errors(model, X, truth)
    oracle = [OracleKDE(X[:, t], y, view.bandwidths[match]) for t, view in enumerate(model.components_)]
    assert label_accuracy(y, model.predict(X)) >= 0.99
    assert error <= 1.15 * density_error(truth.components, oracle, grids(X), truth.weights)
    assert weight < 0.03


def test_the_papers_own_estimate_finds_identical_conditionals(rng):
    X, y, truth = make_multiview(5000, 3, identical=True, random_state=rng)
    model = MultiViewMixture(3, exchangeable=True, kernel=Gaussian("isj"), polish=None, random_state=0).fit(X)
    assert label_accuracy(y, model.predict(X)) >= 0.99
    np.testing.assert_array_equal(model.components_[0].vectors, model.components_[2].vectors)
    assert errors(model, X, truth)[1] < 0.03


def test_more_classes_than_dimensions_example_2_of_the_paper(rng):
    """One-dimensional Gaussians with equal variance and k > 1: beyond means alone, within reach of embeddings."""
    y = rng.integers(4, size=8000)
    X = rng.normal(loc=4.0 * y[:, None], size=(8000, 3))
    model = MultiViewMixture(4, exchangeable=True, random_state=0).fit(X)
    assert label_accuracy(y, model.predict(X)) >= 0.95
    means = np.sort(model.components_[0].expectation(lambda x: x[:, 0]))
    np.testing.assert_allclose(means, [0, 4, 8, 12], atol=0.5)


def test_views_of_several_columns_and_several_kinds_work_together(rng):
    y = rng.integers(2, size=4000)
    plane = rng.normal(size=(4000, 2)) + 3.0 * y[:, None]
    angle = rng.vonmises(np.where(y == 1, 2.0, -1.0), 4.0)
    code = (rng.random(4000) < np.where(y == 1, 0.9, 0.2)).astype(float)
    line = rng.laplace(size=4000) + 3 * y
    X = np.column_stack([plane, angle, code, line])
    model = MultiViewMixture(
        2,
        views=[[0, 1], [2], [3], [4]],
        kernel=[Gaussian(), VonMises(), Delta(), Laplace("silverman")],
        random_state=0,
    ).fit(X)
    assert label_accuracy(y, model.predict(X)) >= 0.98
    np.testing.assert_allclose(np.sort(model.components_[2].density([[1.0]])[0]), [0.2, 0.9], atol=0.05)
    sampled, labels = model.sample(3000)
    assert label_accuracy(labels, model.predict(sampled)) >= 0.97


@pytest.mark.parametrize(
    "features",
    [
        LandmarkFeatures(Gaussian("isj"), 100),
        FourierFeatures(Gaussian("silverman"), 300),
        Nystroem(gamma=0.5, n_components=40),
        SplineTransformer(n_knots=12),
        SplineTransformer(n_knots=12, sparse_output=True),
    ],
    ids=repr,
)
def test_any_transformer_serves_as_feature_map(features):
    X, y, _ = make_multiview(1000, 3, random_state=0)
    model = MultiViewMixture(3, features=features, random_state=0).fit(X)
    assert label_accuracy(y, model.predict(X)) >= 0.98


def test_discrete_views_by_scikit_learns_encoder_equal_ours(rng):
    y = rng.integers(2, size=1000)
    X = (rng.random((1000, 3)) < np.where(y == 1, 0.8, 0.3)[:, None]).astype(float)
    ours = MultiViewMixture(2, kernel=Delta(), polish=None, random_state=0).fit(X)
    theirs = MultiViewMixture(2, features=OneHotEncoder(), polish=None, random_state=0).fit(X)
    np.testing.assert_allclose(ours.weights_, theirs.weights_, atol=1e-10)


@pytest.mark.parametrize("solver", [PowerMethod(), JointDiagonalization()], ids=repr)
@pytest.mark.parametrize("pilot_size", [None, 2000, 20_000])
def test_every_solver_and_pilot_finds_the_weights(solver, pilot_size):
    X, _, truth = make_multiview(10_000, 3, random_state=1)
    model = MultiViewMixture(3, solver=solver, pilot_size=pilot_size, polish=None, random_state=0).fit(X)
    assert errors(model, X, truth)[1] < 0.02


def test_a_pilot_and_two_passes_agree_on_densities():
    X, _, _ = make_multiview(60_000, 3, random_state=1)
    one = MultiViewMixture(3, polish=None, random_state=0).fit(X)
    two = MultiViewMixture(3, pilot_size=None, polish=None, random_state=0).fit(X)
    for a, b, x in zip(one.components_, two.components_, grids(X), strict=True):
        assert np.abs(a.density(x) - b.density(x)).max() < 2e-3


@pytest.mark.parametrize("polish", [None, "auto"])
def test_a_stream_of_batches_gives_the_same_fit_as_its_rows(polish):
    X, _, _ = make_multiview(6000, 2, random_state=3)
    whole = MultiViewMixture(2, pilot_size=7000, polish=polish, random_state=0).fit(X)
    parts = MultiViewMixture(2, pilot_size=7000, polish=polish, random_state=0).fit(Batches(X, 700))
    np.testing.assert_allclose(whole.weights_, parts.weights_, atol=1e-10)
    np.testing.assert_allclose(whole.predict_proba(X), parts.predict_proba(Batches(X, 999)), atol=1e-8)


class Batches:
    """An iterable of batches that can be read again."""

    def __init__(self, X, size):
        self.X, self.size = X, size

    def __iter__(self):
        return (self.X[i : i + self.size] for i in range(0, len(self.X), self.size))


def test_a_list_of_arrays_equals_one_table_with_views(rng):
    X, _, _ = make_multiview(1000, 2, n_views=4, random_state=rng)
    table = MultiViewMixture(2, views=[[0, 1], [2], [3]], random_state=0).fit(X)
    listed = MultiViewMixture(2, random_state=0).fit([X[:, :2], X[:, 2:3], X[:, 3:]])
    np.testing.assert_array_equal(table.predict_proba(X), listed.predict_proba([X[:, :2], X[:, 2:3], X[:, 3:]]))


def test_named_views_of_a_data_frame_ignore_other_columns(rng):
    X, _, _ = make_multiview(1000, 2, random_state=rng)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["name"] = "text"
    model = MultiViewMixture(2, views=["c", ["a"], "b"], random_state=0).fit(frame)
    same = MultiViewMixture(2, views=[[0], [1], [2]], random_state=0).fit(X[:, [2, 0, 1]])
    np.testing.assert_array_equal(model.predict_proba(frame), same.predict_proba(X[:, [2, 0, 1]]))
    assert list(model.feature_names_in_) == ["c", "a", "b"]


@pytest.mark.parametrize("features", [OneHotFeatures(4), FourierFeatures(Gaussian(1.0), 20, random_state=0)], ids=repr)
def test_weights_equal_repeated_rows_when_features_are_fixed(features, rng):
    X = rng.integers(4, size=(300, 3)).astype(float)
    X[:150] = X[:150, :1] % 2 + rng.integers(2, size=(150, 3))
    weights = rng.integers(0, 3, size=300)
    weighted = MultiViewMixture(2, features=features, polish=None, random_state=0).fit(X, sample_weight=weights)
    repeated = MultiViewMixture(2, features=features, polish=None, random_state=0).fit(np.repeat(X, weights, axis=0))
    np.testing.assert_allclose(weighted.weights_, repeated.weights_, atol=1e-9)


def test_one_class_is_the_marginal_distribution(rng):
    X = rng.normal(size=(2000, 3))
    model = MultiViewMixture(1, kernel=Gaussian(0.5), polish=None, random_state=0).fit(X)
    x = np.linspace(-3, 3, 30)
    kde = Gaussian(0.5).gram(x[:, None], X[:, :1]).mean(axis=1)
    assert model.weights_ == pytest.approx([1.0])
    np.testing.assert_allclose(model.components_[0].at(x)[:, 0], kde, atol=0.03)


def test_densities_are_proper_and_what_was_clipped_is_on_record(rng):
    X, _, _ = make_multiview(500, 3, separation=2, random_state=rng)
    model = MultiViewMixture(3, random_state=0).fit(X)
    for view in model.components_:
        x = np.linspace(-60, 60, 40_001)
        density = view.density(x)
        assert np.all(density >= 0)
        np.testing.assert_allclose(density.sum(axis=0) * (x[1] - x[0]), 1.0, atol=1e-3)
        assert np.all((view.clipped >= 0) & (view.clipped < 0.5))


def test_a_run_is_a_function_of_its_data_and_seed():
    X, _, _ = make_multiview(30_000, 3, random_state=0)
    one, two = (MultiViewMixture(3, pilot_size=5000, random_state=7).fit(X) for _ in range(2))
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    np.testing.assert_array_equal(one.sample(50)[0], two.sample(50)[0])


def test_models_clone_and_pickle(rng):
    X, _, _ = make_multiview(500, 2, random_state=rng)
    model = MultiViewMixture(2, random_state=0).fit(X)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(clone(model).fit(X).weights_, model.weights_)


@pytest.mark.parametrize(
    ("model", "key"),
    [
        (MultiViewMixture(2, kernel=Gaussian(1.0), polish=None), "kernel__bandwidth"),
        (MultiViewMixture(2, features=LandmarkFeatures(Gaussian(1.0)), polish=None), "features__kernel__bandwidth"),
    ],
)
def test_grid_search_prefers_a_sensible_bandwidth(model, key):
    X, _, _ = make_multiview(1000, 2, random_state=0)
    search = GridSearchCV(model, {key: [0.05, 0.3, 20.0]}, cv=3).fit(X)
    assert search.best_params_[key] == 0.3


def test_scores_fall_far_from_the_data_and_stay_numbers(rng):
    X, _, _ = make_multiview(300, 2, random_state=rng)
    model = MultiViewMixture(2, random_state=0).fit(X)
    far = np.full((1, 3), 1e4)
    assert -np.inf < model.score_samples(far)[0] < model.score_samples(X).min()
    np.testing.assert_allclose(model.predict_proba(far).sum(), 1.0)


def test_a_linear_kernel_gives_means_and_says_that_it_has_no_density(rng):
    y = rng.integers(2, size=5000)
    tables = [rng.normal(size=(5000, 2)) + np.eye(2)[y] * 5 for _ in range(3)]
    model = MultiViewMixture(2, kernel=Linear(), polish=None, random_state=0).fit(tables)
    means = model.components_[0].at(np.eye(2))
    np.testing.assert_allclose(np.sort(means.ravel()), [0, 0, 5, 5], atol=0.3)
    assert label_accuracy(y, model.predict(tables)) > 0.99  # by functionals of the embeddings
    with pytest.raises(TypeError, match="have no density"):
        model.score_samples(tables)


def table(rng, shape=(50, 3)):
    return rng.normal(size=shape)


BAD_INPUT = {
    "two views": (lambda X: MultiViewMixture(2, views=[[0, 1], [2]]).fit(X), "at least three views; got 2"),
    "two columns": (lambda X: MultiViewMixture(2).fit(X[:, :2]), "at least three views; got 2"),
    "overlap": (lambda X: MultiViewMixture(2, views=[[0], [1], [1, 2]]).fit(X), r"views overlap: columns \[1\]"),
    "outside": (lambda X: MultiViewMixture(2, views=[[0], [1], [5]]).fit(X), r"columns \[5\], but the table has"),
    "empty view": (lambda X: MultiViewMixture(2, views=[[0], [1], []]).fit(X), "view 2 has none"),
    "names without a table": (lambda X: MultiViewMixture(2, views=["a", "b", "c"]).fit(X), "no such name"),
    "a fraction as column": (lambda X: MultiViewMixture(2, views=[[0.5], [1], [2]]).fit(X), "indices or names"),
    "unknown names": (
        lambda X: MultiViewMixture(2, views=["a", "b", "d"]).fit(pd.DataFrame(X, columns=["a", "b", "c"])),
        r"columns \['d'\] that the table lacks",
    ),
    "more classes than rows": (lambda X: MultiViewMixture(99).fit(X), "99 component.* at least 99 rows"),
    "more classes than features": (
        lambda X: MultiViewMixture(4, kernel=Delta(), polish=None).fit((X > 0) * 1.0),
        "4 components need 4 features",
    ),
    "no classes": (lambda X: MultiViewMixture(0).fit(X), "n_components must be an integer of at least 1; got 0"),
    "another word": (lambda X: MultiViewMixture("Auto").fit(X), 'must be an integer or "auto"; got .Auto.'),
    "half a class": (lambda X: MultiViewMixture(1.5).fit(X), "n_components must be an integer"),
    "constant column": (lambda X: MultiViewMixture(2).fit(X * [1, 0, 1]), "Column 1 .* is constant"),
    "a view all missing": (lambda X: MultiViewMixture(2).fit(X * [1, np.nan, 1]), "Column 1 .* is missing in all"),
    "infinity": (lambda X: MultiViewMixture(2).fit(np.where(X > 1, np.inf, X)), "infinity"),
    "strings": (lambda X: MultiViewMixture(2).fit(X.astype(str).astype(object) + "x"), "column 0 holds text, such as"),
    "text column": (
        lambda X: MultiViewMixture(2).fit(
            pd.DataFrame(X, columns=list("abc")).assign(d=[f"row {i}" for i in range(50)])
        ),
        r"Columns \['d'\] are not numbers",
    ),
    "one row": (lambda X: MultiViewMixture(2).fit(X[:1]), "n_samples = 1"),
    "no rows": (lambda X: MultiViewMixture(2).fit(X[:0]), "0 sample"),
    "views of different length": (lambda X: MultiViewMixture(2).fit([X, X[:9], X]), "same rows"),
    "vectors as views": (lambda X: MultiViewMixture(2).fit(list(X.T)), r"x\[:, None\]"),
    "list and views": (lambda X: MultiViewMixture(2, views=[[0], [1], [2]]).fit([X, X, X]), "`views` must be None"),
    "kernel and features": (
        lambda X: MultiViewMixture(2, kernel=Delta(), features=OneHotFeatures()).fit(X),
        "one of them, not both",
    ),
    "kernels for other views": (lambda X: MultiViewMixture(2, kernel=[Delta()] * 2).fit(X), "got 2 for 3 views"),
    "reference": (lambda X: MultiViewMixture(2, reference=3).fit(X), "reference must be a view from 0 to 2"),
    "unequal exchangeable views": (
        lambda X: MultiViewMixture(2, exchangeable=True).fit([X, X, X[:, :1]]),
        "same number of columns",
    ),
    "too large": (lambda X: MultiViewMixture(2).fit(1e200 * X), "whose square is no number; scale the column"),
    "negative weights": (lambda X: MultiViewMixture(2).fit(X, sample_weight=-np.ones(50)), "nonnegative"),
    "too few weights": (lambda X: MultiViewMixture(2).fit(X, sample_weight=np.ones(3)), "one number per row"),
    "unknown rule": (lambda X: MultiViewMixture(2, bandwidth="best").fit(X), "bandwidth must be a positive number"),
    "negative bandwidth": (lambda X: MultiViewMixture(2, bandwidth=-1.0).fit(X), "positive, finite number"),
    "no draws": (lambda X: MultiViewMixture(1).fit(X).sample(0), "n_samples must be an integer of at least 1"),
}


@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input_gets_one_clear_sentence(case):
    call, message = BAD_INPUT[case]
    with pytest.raises(ValueError, match=message):
        call(np.random.default_rng(0).normal(size=(50, 3)))


def test_a_generator_is_refused_since_it_cannot_be_read_twice(rng):
    with pytest.raises(TypeError, match="starts again from the first batch"):
        MultiViewMixture(2).fit(table(rng) for _ in range(3))


def test_a_failed_fit_leaves_an_earlier_one_as_it_was(rng):
    X, _, _ = make_multiview(300, 2, random_state=rng)
    model = MultiViewMixture(2, random_state=0).fit(X)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="infinity"):
        model.fit(np.where(np.arange(len(X))[:, None] == 3, np.inf, X))
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_a_spectrum_at_rounding_level_is_said_to_be_so():
    """The third class is the mean of the others in every view, so nothing tells it apart."""
    p = np.array([0.9, 0.05, 0.05]), np.array([0.05, 0.05, 0.9])
    rows = np.array(np.meshgrid(*[range(3)] * 3)).reshape(3, -1).T.astype(float)
    classes = [p[0], p[1], (p[0] + p[1]) / 2]
    weights = sum(np.prod([q[rows[:, t].astype(int)] for t in range(3)], axis=0) for q in classes) / 3
    model = MultiViewMixture(3, kernel=Delta(), polish=None, random_state=0)
    with pytest.warns(IdentifiabilityWarning, match="fewer than 3 classes"), contextlib.suppress(ValueError):
        model.fit(rows, sample_weight=weights)


def test_duplicate_rows_are_data(rng):
    X, _, _ = make_multiview(400, 2, random_state=rng)
    thrice, once = (MultiViewMixture(2, random_state=0).fit(rows) for rows in (np.repeat(X, 3, axis=0), X))
    assert label_accuracy(once.predict(X), thrice.predict(X)) > 0.99
    np.testing.assert_allclose(thrice.weights_, once.weights_, atol=0.01)
    assert thrice.score(X) > once.score(X) - 0.05  # narrower kernels; the rows are those of the fit


def test_a_failed_fit_changes_nothing():
    X, _, _ = make_multiview(300, 2, random_state=0)
    model = MultiViewMixture(2, random_state=0).fit(X)
    wider = np.column_stack([X, np.ones(300)])
    for settings, data in [
        ({}, wider),
        ({"density_bandwidth": -1.0}, X[:200]),
        ({"reference": 7}, X[:200]),
        ({"polish": Sieve(factors=())}, X[:200]),
    ]:
        before = {name: value for name, value in vars(model).items() if name not in settings}
        with pytest.raises(ValueError, match=r"constant|positive|reference"):
            model.set_params(**settings).fit(data)
        assert {name: id(vars(model)[name]) for name in before} == {name: id(value) for name, value in before.items()}
        model.set_params(density_bandwidth="auto", reference=None, polish="auto")


WRONG_OBJECTS = {
    "kernel": ({"kernel": "gaussian"}, TypeError, "method `gram`"),
    "features": ({"features": "landmarks"}, TypeError, "method `transform`"),
    "solver": ({"solver": "power"}, TypeError, "method `decompose`"),
    "polish": ({"polish": False}, TypeError, "method `polish`"),
    "views": ({"views": 3}, ValueError, "views must be a list"),
    "exchangeable": ({"exchangeable": 1}, ValueError, "one block id per view"),
    "exchangeable table": ({"exchangeable": np.zeros((3, 2))}, ValueError, "one block id per view"),
    "exchangeable number": ({"exchangeable": np.array(1)}, ValueError, "one block id per view"),
    "exchangeable lists": ({"exchangeable": [[0], [0], [1, 2]]}, ValueError, "one block id per view"),
    "exchangeable word": ({"exchangeable": "yes"}, ValueError, "one block id per view"),
    "pilot": ({"pilot_size": 0}, ValueError, "pilot_size must be an integer of at least 1"),
    "reference": ({"reference": 1.0}, ValueError, "reference must be a view"),
    "bandwidth": ({"bandwidth": np.inf}, ValueError, "positive, finite"),
    "kernel bandwidth": ({"kernel": Gaussian(np.nan)}, ValueError, "positive, finite"),
    "list of bandwidths": ({"density_bandwidth": [[1.0]]}, ValueError, "positive, finite"),
    "a word for factors": ({"polish": Sieve(factors="wide")}, ValueError, "factors must be at least one positive"),
    "a word as a factor": ({"polish": Sieve(factors=["wide"])}, ValueError, "factors must be at least one positive"),
    "a word for a tolerance": ({"polish": Sieve(tol="fine")}, ValueError, "tol must be a finite number"),
    "a negative tolerance": ({"polish": SmoothedEM(tol=-1.0)}, ValueError, "tol must be a finite number"),
    "class for an object": ({"polish": Sieve}, TypeError, "method `polish`"),
}


@pytest.mark.parametrize("case", WRONG_OBJECTS)
def test_wrong_settings_get_one_clear_sentence(case):
    settings, kind, message = WRONG_OBJECTS[case]
    with pytest.raises(kind, match=message):
        MultiViewMixture(2, **settings).fit(np.random.default_rng(0).normal(size=(50, 3)))


BAD_STREAMS = {
    "other width": ([np.ones((5, 3)), np.ones((5, 4))], "4 features"),
    "text": ([np.array([[f"row {i}"] * 3 for i in range(4)])], "column 0 holds text, such as"),
    "too few weights": ([(np.random.default_rng(0).normal(size=(20, 3)), np.ones(3))], "as many nonnegative weights"),
    "empty": ([], "holds no batch"),
}


@pytest.mark.parametrize("case", BAD_STREAMS)
def test_bad_batches_get_one_clear_sentence(case):
    batches, message = BAD_STREAMS[case]
    with pytest.raises(ValueError, match=message):
        MultiViewMixture(2).fit(Stream(batches))


class Stream:
    """Batches as given, again and again."""

    def __init__(self, batches):
        self.batches = batches

    def __iter__(self):
        return iter(self.batches)


def test_polars_frames_are_tables(rng):
    X, _, _ = make_multiview(300, 2, random_state=rng)
    frame = polars.DataFrame(X, schema=["a", "b", "c"])
    model = MultiViewMixture(2, views=["a", "b", "c"], random_state=0).fit(frame)
    np.testing.assert_array_equal(model.predict(frame), MultiViewMixture(2, random_state=0).fit(X).predict(X))


def test_rows_without_any_common_view_are_refused_or_warned_of(rng):
    X, y, _ = make_multiview(600, 2, random_state=rng)
    for t in range(3):
        X[200 * t : 200 * (t + 1), t] = np.nan
    with pytest.raises(ValueError, match="third moment needs such rows"):
        MultiViewMixture(2, polish=None).fit(X)
    with pytest.warns(IdentifiabilityWarning, match="k-means alone"):
        model = MultiViewMixture(2, random_state=0).fit(X)
    assert label_accuracy(y, model.predict(X)) > 0.95  # two views per row, four standard deviations apart


def test_a_view_missing_over_many_batches_is_no_trouble(rng):
    X, y, _ = make_multiview(9000, 2, random_state=rng)
    gaps = X.copy()
    gaps[:4500, 0] = np.nan
    model = MultiViewMixture(2, random_state=0).fit(gaps)
    assert label_accuracy(y, model.predict(X)) > 0.99


def test_codes_outside_the_pilot_have_a_probability(rng):
    y = rng.integers(2, size=30_000)
    X = (rng.random((30_000, 3)) < np.where(y == 1, 0.8, 0.2)[:, None]).astype(float)
    X[7, 0] = 9.0
    model = MultiViewMixture(2, kernel=Delta(), pilot_size=400, random_state=0).fit(X)
    assert model.components_[0].density([[9.0]]).sum() > 0


@pytest.mark.parametrize("far", [1e3, 1e9])
def test_a_far_row_neither_stops_nor_spoils_a_fit(far):
    X, y, _ = make_multiview(600, 2, random_state=0)
    X[0] = far
    model = MultiViewMixture(2, random_state=0).fit(X)
    assert label_accuracy(y[1:], model.predict(X[1:])) > 0.98
    for view in model.components_:
        x = np.linspace(-20, 20, 4001)
        np.testing.assert_allclose(view.density(x).sum(axis=0) * 0.01, 1.0, atol=0.1)


def test_views_of_many_columns_are_found():
    rng = np.random.default_rng(0)
    y = (rng.random(800) < 0.3).astype(int)
    tables = [rng.normal(size=(800, 20)) + 1.0 * y[:, None] for _ in range(3)]
    model = MultiViewMixture(2, random_state=0).fit(tables)
    np.testing.assert_allclose(model.weights_, [1 - y.mean(), y.mean()], atol=0.05)


def test_the_unit_of_weights_does_not_matter(rng):
    X, _, _ = make_multiview(500, 2, random_state=rng)
    weights = rng.random(500)
    one, two = (MultiViewMixture(2, random_state=0).fit(X, sample_weight=c * weights) for c in (1.0, 1e-20))
    np.testing.assert_allclose(one.weights_, two.weights_, atol=1e-6)
    with pytest.raises(ValueError, match="n_samples = 1"):
        MultiViewMixture(2).fit(X, sample_weight=np.eye(500)[3])


def test_classes_of_a_view_with_several_columns_have_bandwidths_of_their_own(rng):
    y = rng.integers(2, size=1200)
    spread = np.where(y == 1, 0.1, 2.0)[:, None]
    X = np.hstack([3.0 * y[:, None] + spread * rng.normal(size=(1200, 2)) for _ in range(3)])
    model = MultiViewMixture(2, views=[[0, 1], [2, 3], [4, 5]], random_state=0).fit(X)
    narrow = int(model.predict(X[y == 1]).mean().round())
    peak = model.components_[0].density(np.array([[3.0, 3.0], [0.0, 0.0]]))
    truth = 1 / (2 * np.pi * np.array([0.1, 2.0]) ** 2)
    np.testing.assert_allclose([peak[0, narrow], peak[1, 1 - narrow]], truth, rtol=0.35)


def test_classes_of_very_different_spread_are_told_apart():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=2000)
    X = np.where(y[:, None] == 0, 0.01 * rng.normal(size=(2000, 3)), 10 + 3 * rng.normal(size=(2000, 3)))
    X[y == 0, 0] = 0.0  # at rest exactly
    assert label_accuracy(y, MultiViewMixture(2, random_state=0).fit(X).predict(X)) > 0.99


def test_the_papers_estimator_is_had_in_one_word():
    X, _, truth = make_multiview(1500, 3, separation=2.0, random_state=0)
    chosen = MultiViewMixture(3, bandwidth="likelihood", polish=None, random_state=0).fit(X)
    plain = MultiViewMixture(3, bandwidth="silverman", density_bandwidth=None, polish=None, random_state=0).fit(X)

    new = make_multiview(5000, 3, separation=2.0, random_state=0).X[1500:]  # the same classes
    assert chosen.score(new) > plain.score(new) + 0.01
    assert errors(chosen, X, truth)[0] < errors(plain, X, truth)[0]
    widths = [view.features.kernel_.bandwidth for view in chosen.components_]
    ratios = np.array(widths) / [silverman(x[:, None])[0] for x in X.T]
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-6)  # one multiple for all views


def test_a_stream_has_no_rows_to_hold_out():
    with pytest.raises(ValueError, match="partial_fit keeps no rows to hold out"):
        MultiViewMixture(2, bandwidth="likelihood").partial_fit(make_multiview(300, 2, random_state=0).X)


def test_landmarks_and_places_to_integrate_are_found_no_more_often_than_they_are_used(monkeypatch, rng):
    labels = rng.integers(2, size=300)
    X = np.hstack([rng.normal(size=(300, 2)) + 3 * labels[:, None] for _ in range(3)])
    calls = {"fit": 0, "quadrature": 0}

    def counted(owner, name):
        method = getattr(owner, name)

        def wrapper(*args, **kwargs):
            calls[name] += 1
            return method(*args, **kwargs)

        monkeypatch.setattr(owner, name, wrapper)

    counted(LandmarkFeatures, "fit")
    counted(Real, "quadrature")
    MultiViewMixture(2, views=[[0, 1], [2, 3], [4, 5]], random_state=0).fit(X)
    assert calls == {"fit": 3 * (2 + 1), "quadrature": 3 * 2}  # two widths of moments, densities of starts; and the end


def test_classes_of_ratings_win_as_many_rows_as_they_weigh(rng):
    chances = np.array([[0.1, 0.6, 0.2, 0.1], [0.5, 0.4, 0.08, 0.02], [0.1, 0.2, 0.3, 0.4]])
    y = rng.choice(3, p=[0.5, 0.3, 0.2], size=1000)
    X = 1.0 + (rng.random((1000, 8, 1)) > np.cumsum(chances, axis=1)[y][:, None, :3]).sum(axis=2)
    model = MultiViewMixture(3, random_state=0).fit(X)
    np.testing.assert_allclose(model.predict_proba(X).mean(axis=0), model.weights_, atol=0.05)
    np.testing.assert_allclose(np.bincount(model.predict(X)) / 1000, model.weights_, atol=0.07)
