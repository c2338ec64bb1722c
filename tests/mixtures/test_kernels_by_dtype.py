"""Kernels that nobody names are chosen by the dtypes of the columns."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from latentviews import (
    Delta,
    Gaussian,
    KernelHMM,
    LowRankDensity,
    MultiViewMixture,
    ProductMixture,
    Sieve,
    load,
    rank_test,
    save,
    suggest_views,
)
from latentviews._validation import IdentifiabilityWarning
from latentviews.core.categories import category_columns

QUICK = Sieve(factors=(2.0,), max_iter=20)


@pytest.fixture(scope="module")
def table():
    """Numbers, flags, text and categoricals of two classes."""
    rng = np.random.default_rng(0)
    y = rng.choice(2, size=400, p=[0.6, 0.4])
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=400) + 3 * y,
            "alive": rng.random(400) < np.where(y == 1, 0.9, 0.1),
            "kind": np.where(rng.random(400) < 0.8, np.where(y == 1, "oak", "elm"), "fir"),
            "grade": pd.Categorical(
                np.where(rng.random(400) < 0.8, np.where(y == 1, "low", "top"), "middle"), ["low", "middle", "top"]
            ),
            "weight": rng.normal(size=400) - 3 * y,
        }
    )
    return frame, y


@pytest.fixture(scope="module")
def fitted(table):
    """A fit of which nobody named the kernels."""
    return MultiViewMixture(2, polish=QUICK, random_state=0).fit(table[0])


def test_the_choice_is_that_of_a_user_who_names_the_kernels(table, fitted):
    frame, y = table
    named = MultiViewMixture(2, kernel=[None, Delta(), Delta(), Delta(), None], polish=QUICK, random_state=0)

    named.fit(frame)

    assert [type(kernel) for kernel in fitted.kernels_] == [Gaussian, Delta, Delta, Delta, Gaussian]
    np.testing.assert_array_equal(fitted.predict_proba(frame), named.predict_proba(frame))
    assert np.mean(fitted.predict(frame) == y) > 0.97


def test_categories_come_back_as_they_were(fitted):
    drawn, _ = fitted.sample(50)

    assert set(drawn[:, 1]) == {False, True}
    assert set(drawn[:, 2]) == {"oak", "elm", "fir"}
    assert fitted.categories_[3].tolist() == ["low", "middle", "top"]


def test_a_view_of_numbers_and_categories_has_the_product(table):
    frame, y = table
    views = [["size", "alive"], ["kind", "grade"], ["weight"]]

    model = MultiViewMixture(2, views=views, polish=QUICK, random_state=0).fit(frame)

    assert repr(model.kernels_[0]) == "Gaussian(bandwidth='silverman').on([0]) * Delta().on([1])"
    assert repr(model.kernels_[1:]) == "[Delta(), Gaussian(bandwidth='silverman')]"
    assert np.mean(model.predict(frame) == y) > 0.97


def test_polars_says_the_same(table, fitted):
    frame, _ = table
    other = pl.from_pandas(frame)

    model = MultiViewMixture(2, polish=QUICK, random_state=0).fit(other)

    np.testing.assert_array_equal(model.predict(other), fitted.predict(frame))


def test_saved_and_loaded_it_says_the_same(table, fitted, tmp_path):
    frame, _ = table
    save(fitted, tmp_path / "dtypes.lv")
    again = load(tmp_path / "dtypes.lv")

    assert repr(again.kernels_) == repr(fitted.kernels_)
    np.testing.assert_array_equal(again.score_samples(frame), fitted.score_samples(frame))


def test_states_emit_numbers_and_categories_without_a_word(table):
    frame, y = table
    order = np.argsort(y, kind="stable")
    model = KernelHMM(2, polish=QUICK, random_state=0).fit(frame[["size", "kind"]].iloc[order])

    assert repr(model.kernels_) == "[Gaussian(bandwidth='silverman').on([0]) * Delta().on([1])]"
    assert np.mean(model.predict(frame[["size", "kind"]].iloc[order]) == y[order]) > 0.97


def test_a_joint_density_takes_categories_for_what_they_are(table):
    frame, _ = table
    by_dtype, by_list, by_product = (
        LowRankDensity(2, method=ProductMixture(), kernel=kernel, random_state=0).fit(frame)
        for kernel in (
            None,
            [None, Delta(), Delta(), Delta(), None],
            Gaussian().on(["size", "weight"]) * Delta().on(["alive", "kind", "grade"]),
        )
    )

    assert repr(by_dtype.kernels_) == "[Gaussian(), Delta(), Delta(), Delta(), Gaussian()]"
    np.testing.assert_array_equal(by_list.score_samples(frame), by_dtype.score_samples(frame))
    np.testing.assert_array_equal(by_product.score_samples(frame), by_dtype.score_samples(frame))
    shares = np.exp(by_dtype.marginal(["kind"]).score_samples(np.array([[0.0], [1.0], [2.0]])))
    np.testing.assert_allclose(shares.sum(), 1, atol=2e-6)  # codes that were not seen have the rest


def test_a_product_of_a_joint_density_takes_every_column_once(table):
    with pytest.raises(ValueError, match=r"take each of its 2 column.s. once; those given take places \[0\]"):
        LowRankDensity(kernel=Gaussian().on([0])).fit(table[0][["size", "weight"]])


def test_classes_are_counted_and_views_suggested_in_such_tables(table):
    frame, _ = table

    assert rank_test(frame, n_permutations=19, random_state=0).n_components == 2
    assert sorted(j for view in suggest_views(frame, 2, random_state=0).views for j in view) == [0, 1, 2, 3, 4]


def test_exchangeable_columns_of_text_share_their_codes(rng):
    y = rng.choice(2, size=300)
    words = [np.where(rng.random(300) < 0.9, np.where(y == 1, "b", first), "c") for first in ("b", "a", "a")]
    frame = pd.DataFrame(dict(zip("pqr", words, strict=True)))  # "a" is not in the first column

    model = MultiViewMixture(2, exchangeable=True, polish=QUICK, random_state=0).fit(frame)

    assert [values.tolist() for values in model.categories_.values()] == [["a", "b", "c"]] * 3


@pytest.mark.cheap
def test_dtypes_that_say_categories():
    n, words = 8, ["a", "b"] * 4
    frame = pd.DataFrame(
        {
            "number": np.arange(n),
            "float": np.ones(n),
            "flag": [True, False] * 4,
            "nullable": pd.array([True, None] * 4, dtype="boolean"),
            "codes": pd.Categorical([3, 4] * 4),
            "words": words,
            "string": pd.array(words, dtype="string"),
            "with none": [None, "a"] * 4,
            "names": [f"row {i}" for i in range(n)],  # none is said twice
            "digits": ["1", "2"] * 4,  # numbers that were read as text
            "stray": ["1", "?"] * 4,
            "objects": np.array([1.0, 2] * 4, dtype=object),
        }
    )

    found = [frame.columns[j] for j in sorted(category_columns(frame))]

    assert found == ["flag", "nullable", "codes", "words", "string", "with none"]
    assert category_columns(np.zeros((3, 2), dtype=bool)) == {0, 1}
    assert category_columns(np.zeros((3, 2), dtype=int)) == set()
    assert category_columns(np.array([[1.0, "a"], [2.0, "b"]] * 3, dtype=object)) == {1}
    kinds = pl.DataFrame({"x": [1.0, 2.0], "flag": [True, False]}).with_columns(
        pl.Series("cat", ["a", "b"], dtype=pl.Categorical), pl.Series("enum", ["a", "b"], dtype=pl.Enum(["b", "a"]))
    )
    assert category_columns(kinds) == {1, 2, 3}


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        ([f"row {i}" for i in range(400)], r"Columns \['extra'\] are not numbers.* such as 'row 0'"),
        (["3", "4"] * 200, r"Columns \['extra'\] are not numbers"),
    ],
)
def test_text_that_stands_for_no_category_is_a_sentence(table, column, sentence):
    with pytest.raises(ValueError, match=sentence):
        MultiViewMixture(2).fit(table[0].assign(extra=column))


def test_integers_of_two_values_are_said_to_be_taken_as_numbers(rng):
    y = rng.integers(2, size=200)
    answers = (rng.random((200, 7)) < 0.2 + 0.6 * y[:, None]) + 1
    frame = pd.DataFrame(answers, columns=list("ABCDEFG"))
    with pytest.warns(UserWarning, match=r"Column\(s\) 'A', 'B', 'C', 'D', 'E' and 2 more hold"):
        MultiViewMixture(2, random_state=0).fit(frame)
    with pytest.warns(UserWarning, match=r"Column\(s\) 0, 1, 2, 3, 4 and 2 more hold two"):
        MultiViewMixture(2, random_state=0).fit(answers)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for X, kernel in ((frame, Delta()), (frame == 2, None), (frame * 1.0, None), (frame.astype("category"), None)):
            MultiViewMixture(2, kernel=kernel, random_state=0).fit(X)


def test_columns_of_two_integers_are_found_whatever_the_order_of_views(rng):
    frame = pd.DataFrame(rng.normal(size=(80, 4)), columns=["count", "b", "c", "dose"])
    frame["count"] = rng.poisson(9, size=80)
    frame["dose"] = rng.choice([0.5, 1.5], size=80)
    model = MultiViewMixture(2, views=[["dose"], ["b"], ["c"], ["count"]], random_state=0)

    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", IdentifiabilityWarning)
        model.fit(frame)
    with pytest.warns(UserWarning, match=r"Column\(s\) 'dose' hold two integers"):
        model.fit(frame.assign(dose=(frame["dose"] > 1).astype(int)))
