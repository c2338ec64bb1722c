"""What a statistician tries first in Python: one call to fit and predict, names, seeds, categories, short results."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from catalogue import FEATURES
from latentviews import (
    Copulas,
    Delta,
    Gaussian,
    KernelHMM,
    LatentClass,
    LowRankDensity,
    MultiViewMixture,
    PredictiveStateModel,
    Sieve,
    Stack,
    TransformedDensity,
    TwoStageRegression,
    diagnose,
    independence_test,
    likelihood_curve,
    load,
    rank_test,
    save,
    suggest_views,
)
from latentviews.core.kernels import bandwidths
from latentviews.datasets import make_hmm, make_multiview

QUICK = Sieve(factors=(2.0,), max_iter=5)
NAMES = ["CD3", "CD4", "CD8", "CD19"]


@pytest.fixture(scope="module")
def data():
    return make_multiview(300, 2, n_views=4, random_state=0)


@pytest.fixture(scope="module")
def frame(data):
    return pd.DataFrame(data.X, columns=NAMES)


@pytest.fixture(scope="module")
def model(frame):
    return MultiViewMixture(2, polish=QUICK, random_state=0).fit(frame)


@pytest.fixture(scope="module")
def chain():
    data = make_hmm(300, random_state=0)
    return KernelHMM(3, polish=QUICK, random_state=0).fit(data.X), data.X


def test_fit_predict_is_fit_and_predict(model, frame, chain):
    np.testing.assert_array_equal(clone(model).fit_predict(frame), model.predict(frame))
    np.testing.assert_array_equal(clone(chain[0]).fit_predict(chain[1]), chain[0].predict(chain[1]))
    answers = np.random.default_rng(0).integers(0, 3, size=(80, 4))
    classes = LatentClass(2, n_starts=2, random_state=0)
    np.testing.assert_array_equal(clone(classes).fit_predict(answers), classes.fit(answers).predict(answers))


@pytest.mark.parametrize("transformer", FEATURES, ids=lambda one: type(one).__name__)
def test_transformers_give_frames_where_that_is_asked_for(transformer, rng):
    X = pd.DataFrame(rng.integers(0, 4, size=(40, 1)).astype(float), columns=["code"])
    found = clone(transformer).set_output(transform="pandas").fit(X).transform(X)

    assert isinstance(found, pd.DataFrame)
    assert found.columns[0].startswith(type(transformer).__name__.lower())


def test_draws_have_a_seed_of_their_own(model, chain, data):
    density = LowRankDensity(method=Stack((1, 2), n_folds=2, max_iter=5), random_state=0).fit(data.X)
    for one in (model, chain[0], density, TransformedDensity(density).fit(data.X)):
        drawn = [np.asarray(one.sample(5, random_state=seed)[0]) for seed in (1, 1, 2)]
        np.testing.assert_array_equal(drawn[0], drawn[1])
        assert not np.array_equal(drawn[0], drawn[2])
        np.testing.assert_array_equal(np.asarray(one.sample(5)[0]), np.asarray(one.sample(5)[0]))


def test_criteria_of_a_chain_count_its_parameters(chain):
    model, X = chain
    loss = -2 * model.score(X) * len(X)
    parameters = 2 + 6 + sum(view.n_parameters.sum() for view in model.components_)

    assert model.aic(X) == pytest.approx(loss + 2 * parameters)
    assert model.bic(X) == pytest.approx(loss + np.log(len(X)) * parameters)


# ------------------------------------------------------------------------------------------------------------ names


def test_views_are_asked_for_by_name(model, frame):
    np.testing.assert_array_equal(model.conditional(frame, view="CD8").mean(), model.conditional(frame, 2).mean())
    by_name, by_number = (model.expectation(lambda x: x[:, 0], frame, view) for view in ("CD19", 3))
    np.testing.assert_array_equal(by_name.values, by_number.values)
    with pytest.raises(ValueError, match="view 'CD9' is none of the views, 'CD3', 'CD4', 'CD8', 'CD19'"):
        model.conditional(frame, "CD9")


def test_views_have_names_of_their_own(frame, tmp_path):
    views = {"T": ["CD3", "CD4"], "killer": "CD8", "B": ["CD19"]}
    model = MultiViewMixture(2, views=views, polish=QUICK, random_state=0).fit(frame)

    assert model.views_ == ([0, 1], [2], [3])
    assert diagnose(model, frame, n_permutations=19, random_state=0).view_names == ("T", "killer", "B")
    assert model.conditional(frame, "killer").mean().shape == (300, 1)
    save(model, tmp_path / "m")
    assert load(tmp_path / "m").views == views
    with pytest.raises(ValueError, match="views must be a list with the columns of every view, or a dict; got 3"):
        MultiViewMixture(2, views=3).fit(frame)


@pytest.mark.parametrize("unknown", [None, np.nan, "", -1], ids=repr)
def test_known_classes_may_have_names(unknown, data, frame, tmp_path):
    names = np.where(data.y == 0, "T cell", "B cell").astype(object)
    some = np.where(np.arange(300) % 3 == 0, names, unknown)

    model = MultiViewMixture(3, polish=QUICK, random_state=0).fit(frame, some)

    assert model.class_names_.tolist() == ["B cell", "T cell", "class 2"]
    found = model.class_names_[model.predict(frame)]
    assert np.mean(found[::3] == names[::3]) > 0.99
    save(model, tmp_path / "m")
    assert load(tmp_path / "m").class_names_.tolist() == model.class_names_.tolist()
    assert not hasattr(model.fit(frame), "class_names_")


def test_more_names_than_classes_are_one_sentence(frame):
    y = ["a", "b", "c", None] * 75

    with pytest.raises(ValueError, match=r"y names 3 classes \(a, b, c\), and there are 2; ask for as many"):
        MultiViewMixture(2, polish=QUICK).fit(frame, y)


# ------------------------------------------------------------------------------------------------------- categories


@pytest.fixture(scope="module")
def coded(data, frame):
    return frame[["CD3", "CD4"]].assign(sex=pd.Categorical(np.where(data.y == 0, "m", "f")))


def test_categories_are_codes_for_the_delta_kernel(coded, tmp_path):
    model = MultiViewMixture(2, kernel=[None, None, Delta()], polish=QUICK, random_state=0).fit(coded)

    plain = coded.assign(sex=coded.sex.cat.codes.astype(float))
    np.testing.assert_array_equal(model.predict(coded), clone(model).fit(plain).predict(plain))
    other = coded.assign(sex=coded.sex.cat.reorder_categories(["m", "f"]))
    np.testing.assert_array_equal(model.predict(other), model.predict(coded))
    save(model, tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").predict(other), model.predict(coded))
    others = [model.predict_proba(coded.assign(sex=value)) for value in ("x", None)]
    np.testing.assert_allclose(*others, atol=1e-6)  # a category that was never seen tells as little as a missing one


def test_categories_with_a_kernel_for_numbers_are_one_sentence(coded):
    with pytest.raises(ValueError, match=r"Columns \['sex'\] are not numbers; give their view the kernel Delta"):
        MultiViewMixture(2, kernel=Gaussian()).fit(coded)


# ------------------------------------------------------------------------------------------------------ two columns


@pytest.mark.parametrize("dependence", [Copulas(n_starts=1), "auto"], ids=str)
def test_two_columns_are_enough_for_copulas(dependence, rng):
    label = rng.random(300) < 0.4
    X = rng.normal(size=(300, 2)) + 6 * label[:, None]

    found = MultiViewMixture(2, dependence=dependence, random_state=0).fit_predict(X)

    assert max(np.mean(found == label), np.mean(found != label)) > 0.98
    with pytest.raises(ValueError, match=r'at least three views; got 2.*unless .* dependence="copula"'):
        MultiViewMixture(2).fit(X)


# ---------------------------------------------------------------------------------------------------------- results


def test_results_are_shown_in_a_line(model, frame, data, chain):
    copulas = MultiViewMixture(2, dependence=Copulas(n_starts=1), random_state=0).fit(frame)
    results = [
        model.conditional(frame, 0),
        model.expectation(lambda x: x[:, 0], frame, 0),
        model.bootstrap(frame, 9, random_state=0),
        rank_test(data.X, n_permutations=19, random_state=0),
        suggest_views(data.X, 2, random_state=0),
        independence_test(data.X[:, 0], data.X[:, 1], n_permutations=19),
        likelihood_curve(model, data.X, [1, 2]),
        chain[0].forecast(chain[1], 20),
        copulas.dependent_,
        copulas.conditional(frame, 0),
        data,
    ]
    for result in results:
        assert len(repr(result)) < 400
        assert repr(result).startswith(type(result).__name__ + "(")
        assert "\n" not in repr(result)


def test_errors_of_choices_are_told_for_every_step_ahead(chain):
    dynamics = TwoStageRegression(sizes=(5,), penalties=(1e-2, 1.0), memories=(5,), window=5)

    model = PredictiveStateModel(dynamics, horizon=4, random_state=0).fit(chain[1])

    assert {errors.shape for errors in model.validation_errors_.values()} == {(4,)}
    assert model.choice_ == min(model.validation_errors_, key=lambda choice: model.validation_errors_[choice].mean())


@pytest.mark.cheap
@pytest.mark.parametrize("ties", [None, 0, 1], ids=str)
def test_the_median_distance_of_a_column_is_counted_as_it_is_formed(ties, rng):
    x = rng.gamma(2.0, size=(700, 1)) if ties is None else np.round(rng.gamma(2.0, size=(700, 1)), ties)

    gaps = np.abs(x - x.T)[np.triu_indices(700, 1)]

    assert bandwidths.median(x) == pytest.approx(np.median(gaps[gaps > 0]), rel=1e-12)


def test_rooms_are_at_hand_and_other_names_are_not():
    import latentviews

    assert latentviews.metrics.label_accuracy is not None
    assert set(latentviews.__all__) <= set(dir(latentviews))
    with pytest.raises(AttributeError, match="module 'latentviews' has no attribute 'nothing'"):
        latentviews.nothing  # noqa: B018
