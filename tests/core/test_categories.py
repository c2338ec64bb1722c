"""Categories are codes where a view is discrete: the same models, whatever their values are called."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from catalogue import QUICK_POLISH, Batches, split
from latentviews import Delta, Gaussian, KernelHMM, LowRankDensity, MultiViewMixture, OneHotFeatures, Stack, load, save
from latentviews.core.categories import Categories, learn_categories, text_columns

WORDS = np.array(["blue", "green", "red"], dtype=object)
NAMES = ["a", "b", "c", "d"]

MODELS = {
    "mixture": MultiViewMixture(2, kernel=Delta(), polish=QUICK_POLISH, random_state=0),
    "spectral mixture": MultiViewMixture(2, features=OneHotFeatures(), polish=None, random_state=0),
    "chain": KernelHMM(2, kernel=Delta(), views=[[0], [1], [2, 3]], polish=QUICK_POLISH, random_state=0),
    "density": LowRankDensity(2, kernel=Delta(), method=Stack((2,), n_folds=2, max_iter=20), random_state=0),
}
FORMS = {
    "strings": lambda codes: WORDS[codes].astype(str),
    "objects": lambda codes: WORDS[codes],
    "frame": lambda codes: pd.DataFrame(WORDS[codes], columns=NAMES),
    "categoricals": lambda codes: pd.DataFrame(WORDS[codes], columns=NAMES).astype("category"),
    "polars": lambda codes: pl.DataFrame(WORDS[codes].tolist(), schema=NAMES, orient="row"),
    "lists": lambda codes: WORDS[codes].tolist(),
}

every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())


@pytest.fixture(scope="module")
def codes():
    rng = np.random.default_rng(0)
    stays = np.repeat(rng.random(60) < 0.4, 8)  # so that a chain has states too
    return np.where(rng.random((480, 4)) < np.where(stays, 0.85, 0.15)[:, None], rng.integers(2, size=(480, 4)), 2)


@every_model
def test_words_are_codes(model, codes):
    frame = pd.DataFrame(WORDS[codes], columns=NAMES)
    scores = model.fit(frame).score_samples(frame)
    assert model.categories_[2].tolist() == WORDS.tolist()

    np.testing.assert_allclose(scores, model.fit(codes).score_samples(codes), rtol=1e-9)
    assert not hasattr(model, "categories_")  # an earlier fit's


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_words_of_every_kind_are_codes(form, codes):
    model = MODELS["spectral mixture"]

    scores = model.fit(form(codes)).score_samples(form(codes))

    np.testing.assert_allclose(scores, model.fit(codes).score_samples(codes), rtol=1e-9)


@every_model
def test_draws_are_words(model, codes):
    rows = model.fit(WORDS[codes]).sample(50)
    rows = rows[0] if isinstance(rows, tuple) else rows

    assert set(rows.ravel()) == set(WORDS)


@every_model
def test_a_category_not_seen_tells_nothing_of_the_class_and_is_improbable(model, codes):
    model.fit(WORDS[codes])
    rows = WORDS[codes[:40]]
    unseen, missing = rows.copy(), rows.copy()
    unseen[:, 0], missing[:, 0] = "violet", None

    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(model.predict_proba(unseen), model.predict_proba(missing), atol=1e-9)
    assert np.all(model.score_samples(unseen) < model.score_samples(missing) - 3)
    assert np.isfinite(model.score_samples(unseen)).all()


def test_words_beside_numbers(codes):
    rng = np.random.default_rng(1)
    numbers = (codes[:, :2] == 2) * 4 + rng.normal(size=(480, 2))
    frame = pd.DataFrame({"word": WORDS[codes[:, 2]], "x": numbers[:, 0], "y": numbers[:, 1], "flag": codes[:, 3] == 2})
    model = MultiViewMixture(2, kernel=[Delta(), Gaussian(), Gaussian(), Delta()], polish=QUICK_POLISH, random_state=0)
    kernels = {"views": [["x"], ["word"], ["y"]], "kernel": [Gaussian(), Delta(), Gaussian()]}
    some = MultiViewMixture(2, **kernels, polish=QUICK_POLISH, random_state=0).fit(frame)

    labels = model.fit(frame).predict(frame)
    as_views = [frame[["word"]].to_numpy(), *(frame[[name]].to_numpy() for name in ("x", "y", "flag"))]

    np.testing.assert_array_equal(model.fit(as_views).predict(as_views), labels)
    assert list(some.categories_) == [1]  # the second of the columns that are used
    assert np.mean(some.predict(frame) == labels) > 0.8
    assert list(model.categories_) == [0]


def test_a_density_given_a_word(codes):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"word": WORDS[codes[:, 0]], "x": (codes[:, 0] == 2) * 4 + rng.normal(size=480)})
    model = LowRankDensity(
        2, kernel=[Delta(), Gaussian()], method=Stack((2,), n_folds=2, max_iter=30), random_state=0
    ).fit(frame)

    given = model.conditional(["x"], {"word": "red"}).sample(400, random_state=0).mean()

    assert given == pytest.approx(4, abs=0.6)
    with pytest.raises(ValueError, match="Values to condition on must be finite numbers"):
        model.conditional(["x"], {"word": None})


@every_model
def test_text_elsewhere_gets_a_sentence(model, codes):
    frame = pd.DataFrame(WORDS[codes], columns=NAMES)
    with pytest.raises(ValueError, match=r"Columns \['a', 'b', 'c', 'd'\] are not numbers; give their view the kernel"):
        type(model)(2, kernel=Gaussian()).fit(frame)


def test_exchangeable_words_in_a_stream_share_their_codes(rng):
    """A word that only one column has, in a late batch, and that comes first in order."""
    words = np.array(["b", "c", "d"])[rng.integers(3, size=(300, 3))]
    words[250:, 1] = "a"
    settings = {"kernel": Delta(), "exchangeable": True, "polish": None, "random_state": 0}

    model = MultiViewMixture(1, **settings).fit(Batches(split(words, 100)))

    for values in model.categories_.values():
        assert values.tolist() == ["a", "b", "c", "d"]
    np.testing.assert_allclose(
        model.score_samples(words), MultiViewMixture(1, **settings).fit(words).score_samples(words)
    )


def test_a_batch_without_an_answer_in_a_column_is_read(rng):
    words = np.array(["b", "c", "d"])[rng.integers(3, size=(300, 3))].astype(object)
    words[100:200, 1] = None

    model = MultiViewMixture(1, kernel=Delta(), random_state=0).fit(Batches(split(words, 100)))

    assert model.categories_[1].tolist() == ["b", "c", "d"]


def test_words_in_a_stream_are_those_of_all_batches(codes):
    order = np.argsort(codes[:, 0], kind="stable")  # the first batch has one category of the first column
    model = MODELS["mixture"]
    batches = Batches(split(WORDS[codes[order]], 100))

    scores = model.fit(batches).score_samples(batches)

    assert model.categories_[0].tolist() == WORDS.tolist()
    np.testing.assert_allclose(
        scores, model.fit(Batches(split(codes[order], 100))).score_samples(codes[order]), rtol=1e-9
    )


def test_a_saved_model_knows_its_words(codes, tmp_path):
    model = MultiViewMixture(2, kernel=Delta(), polish=None, random_state=0).fit(WORDS[codes])
    save(model, tmp_path / "model")

    np.testing.assert_array_equal(load(tmp_path / "model").predict(WORDS[codes]), model.predict(WORDS[codes]))


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (["b", None, "a"], ["a", "b"]),
        ([2.0, np.nan, 1.0], [1.0, 2.0]),
        ([True, False, True], [False, True]),
        ([1, "one", None], [1, "one"]),
        (pd.Series(["x", "y"], dtype=pd.CategoricalDtype(["y", "z", "x"])), ["y", "x"]),
        (pd.Series([3, None, 1], dtype="Int64"), [1, 3]),
        (pl.Series(["q", None, "p"]), ["p", "q"]),
    ],
    ids=str,
)
def test_values_have_an_order_and_come_back(column, values):
    found = learn_categories(column, "x")

    codes = found.codes(column)

    assert found.values.tolist() == values
    back = found.decoded(codes)
    for value, again in zip(list(column), back, strict=True):
        assert (pd.isna(value) and pd.isna(again)) or again == value


def test_codes_of_missing_and_unseen_values():
    found = Categories(np.array(["a", "b"], dtype=object))

    assert found.codes(["b", None, "c", float("nan")]).tolist() == [1, -1, 2, -1]


@pytest.mark.parametrize(
    ("table", "texts"),
    [
        (np.ones((3, 2)), []),
        ([[1, "a"], [2, "b"]], [1]),
        (np.array([[1.0, None], [2, 3]], dtype=object), []),
        (pd.DataFrame({"a": [1], "b": ["x"], "c": [True]}), [1]),
        (np.array(["a", "b"]), []),
    ],
    ids=str,
)
def test_text_is_found_where_it_is(table, texts):
    assert text_columns(table) == texts


@pytest.mark.parametrize("column", [["u", "v"] * 60, [True, False] * 60])
def test_columns_may_have_numbers_for_names(column, rng):
    numbers = rng.normal(size=(120, 2)) + 3 * np.arange(120)[:, None] % 2
    frame = pd.DataFrame({0: column, 1: numbers[:, 0], 2: numbers[:, 1]})
    before = frame.copy()
    named = frame.set_axis(["a", "b", "c"], axis=1)
    models = [MultiViewMixture(2, polish=None, random_state=0).fit(rows) for rows in (frame, named)]

    np.testing.assert_array_equal(models[0].predict_proba(frame), models[1].predict_proba(named))
    pd.testing.assert_frame_equal(frame, before)
    with pytest.raises(ValueError, match="'a' occurs more than once"):
        MultiViewMixture(2).fit(frame.set_axis(["a", "a", "c"], axis=1))


def test_text_that_looks_like_numbers_is_told_so(rng):
    frame = pd.DataFrame(rng.normal(size=(60, 3)).round(3)).astype(str)

    with pytest.raises(
        ValueError, match=r"\[0, 1, 2\] are not numbers but text that looks like some, .*X\.apply\(pd.to_numeric\)"
    ):
        MultiViewMixture(2).fit(frame)
    with pytest.raises(ValueError, match=r"\[0, 1, 2\] are not numbers; give their view"):
        MultiViewMixture(2).fit(frame.replace({column: {frame[column][3]: "odd"} for column in frame}))


def test_a_frame_of_objects_blames_the_column_with_text_alone(rng):
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))
    objects = frame.astype(object)
    objects.loc[3, "a"] = pd.NA
    frame.loc[3, "a"] = np.nan
    model = MultiViewMixture(2, polish=None, random_state=0)
    model.fit(objects.set_axis([0, 1, 2], axis=1))
    np.testing.assert_array_equal(model.fit(objects).weights_, model.fit(frame).weights_)
    objects.loc[7, "b"] = "n.d."

    with pytest.raises(
        ValueError, match=r"Columns \['b'\] are not numbers; .*: column 'b' holds text, such as 'n.d.' in row 8,"
    ):
        model.fit(objects)
