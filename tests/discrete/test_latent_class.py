"""LatentClass: published fits, categories of every kind, missing answers, weights, criteria, what it refuses."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from latent_classes import COUNTS, SLIDES, cell_probabilities, cells_of, draw, random_classes
from latentviews import IdentifiabilityWarning, LatentClass, load, save
from latentviews.plot import ItemProfileDisplay, offscreen_axes

SIZES = (3, 2, 3, 2, 3)


@pytest.fixture(scope="module")
def truth():
    items = {2: np.array([[0.8, 0.15], [0.2, 0.85]]), 3: np.array([[0.75, 0.1], [0.15, 0.2], [0.1, 0.7]])}
    return np.array([0.6, 0.4]), [items[size] for size in SIZES]


@pytest.fixture(scope="module")
def codes(truth):
    return draw(600, *truth, np.random.default_rng(4))[0]


def quick(k=2, **parameters):
    return LatentClass(k, **{"n_starts": 5, "random_state": 0, **parameters})


@pytest.mark.parametrize(
    ("k", "maximum", "bic", "g_squared", "chi_squared"),
    # poLCA's published output (Linzer & Lewis 2011, section 5.1)
    [
        (2, -317.2568, 706.0739, 62.36543, 92.64814),
        (3, -293.705, 697.1357, 15.26171, 20.50336),
    ],
)
def test_the_published_fits_come_from_the_default_call(k, maximum, bic, g_squared, chi_squared):
    model = LatentClass(k).fit(SLIDES, sample_weight=COUNTS)

    fit = model.goodness_of_fit(SLIDES, COUNTS)

    assert model.log_likelihood_ == pytest.approx(maximum, abs=6e-5)
    assert model.score(SLIDES, sample_weight=COUNTS) * 118 == pytest.approx(model.log_likelihood_, abs=1e-6)
    assert model.bic(SLIDES, sample_weight=COUNTS) == pytest.approx(bic, abs=1e-3)
    assert (fit.g_squared, fit.chi_squared) == pytest.approx((g_squared, chi_squared), abs=2e-3)
    assert fit.degrees_of_freedom == 127 - model.n_parameters_
    assert model.converged_


def test_exact_cells_give_the_classes(truth):
    cells = cells_of(SIZES)
    model = quick(tol=1e-13).fit(cells, sample_weight=cell_probabilities(cells, *truth).sum(axis=1))

    np.testing.assert_allclose(model.weights_, truth[0], atol=1e-6)
    for found, item in zip(model.components_, truth[1], strict=True):
        np.testing.assert_allclose(found, item, atol=1e-6)
    fit = model.goodness_of_fit(cells, 1000 * cell_probabilities(cells, *truth).sum(axis=1))
    assert fit.g_squared == pytest.approx(0, abs=1e-6)
    assert np.nanmax(fit.bivariate_residuals) < 1e-6


def test_posteriors_and_scores_are_those_of_the_formula(codes):
    model = quick().fit(codes)

    joint = cell_probabilities(codes, model.weights_, model.components_)

    np.testing.assert_allclose(model.score_samples(codes), np.log(joint.sum(axis=1)), atol=1e-10)
    np.testing.assert_allclose(model.predict_proba(codes), joint / joint.sum(axis=1, keepdims=True), atol=1e-10)
    np.testing.assert_array_equal(model.transform(codes), model.predict_proba(codes))
    assert model.log_likelihood_ == pytest.approx(np.log(joint.sum(axis=1)).sum(), abs=1e-6)
    assert model.aic(codes) == pytest.approx(-2 * model.log_likelihood_ + 2 * model.n_parameters_)


WORDS = np.array(["a", "b", "c"], dtype=object)
FORMS = {
    "strings": lambda codes: np.array(["a", "b", "c"])[codes],
    "objects": lambda codes: WORDS[codes],
    "floats": lambda codes: codes / 2,
    "frame of strings": lambda codes: pd.DataFrame(WORDS[codes], columns=list("vwxyz")),
    "categoricals": lambda codes: pd.DataFrame(WORDS[codes], columns=list("vwxyz")).astype("category"),
    "nullable integers": lambda codes: pd.DataFrame(codes, columns=list("vwxyz")).astype("Int64"),
    "polars": lambda codes: pl.DataFrame(
        {name: WORDS[column].tolist() for name, column in zip("vwxyz", codes.T, strict=True)}
    ),
    "lists": lambda codes: WORDS[codes].tolist(),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_categories_of_every_kind_are_the_same_classes(form, codes):
    weights = np.arange(len(codes)) % 3
    found = quick().fit(form(codes), sample_weight=weights)

    expected = quick().fit(codes, sample_weight=weights)

    np.testing.assert_allclose(found.weights_, expected.weights_, rtol=1e-12)
    np.testing.assert_allclose(found.predict_proba(form(codes)), expected.predict_proba(codes), rtol=1e-9)


def test_flags_and_mixed_columns_come_back_from_sample(codes):
    frame = pd.DataFrame({"flag": codes[:, 1] > 0, "word": WORDS[codes[:, 0]], "count": codes[:, 2]})
    model = quick().fit(frame)

    rows, labels = model.sample(200)

    assert {type(value) for value in rows[:, 0]} == {bool}
    assert set(rows[:, 1]) <= set("abc")
    assert set(labels) == {0, 1}
    assert np.isfinite(model.score_samples(pd.DataFrame(rows, columns=frame.columns))).all()


def test_a_categoricals_order_is_its_own(codes):
    kind = pd.CategoricalDtype(["c", "a", "unused", "b"], ordered=True)
    frame = pd.DataFrame(WORDS[codes], columns=list("vwxyz")).astype(kind)

    model = quick().fit(frame)

    assert model.categories_[0].tolist() == ["c", "a", "b"]
    assert model.ordered_ == [True] * 5


@pytest.mark.parametrize("mark", [None, np.nan, pd.NA], ids=repr)
def test_a_missing_answer_is_left_out_of_the_product(mark, codes):
    holes = np.random.default_rng(0).random(codes.shape) < 0.2
    X = np.where(holes, mark, WORDS[codes].astype(object))

    model = quick().fit(X)

    joint = cell_probabilities(np.where(holes, -1, codes), model.weights_, model.components_)
    np.testing.assert_allclose(model.score_samples(X), np.log(joint.sum(axis=1)), atol=1e-9)
    np.testing.assert_allclose(model.weights_, model.predict_proba(X[~holes.all(axis=1)]).mean(axis=0), atol=1e-4)


def test_rows_without_an_answer_change_nothing(codes):
    empty = np.full((50, 5), np.nan)
    model = quick().fit(np.vstack([codes, empty]))

    np.testing.assert_array_equal(model.weights_, quick().fit(codes.astype(float)).weights_)
    np.testing.assert_allclose(model.predict_proba(empty[:1]), model.weights_[None])
    assert model.score_samples(empty[:1]) == pytest.approx([0.0], abs=1e-12)
    assert model.bic(np.vstack([codes, empty])) == pytest.approx(model.bic(codes.astype(float)))


def test_an_answer_not_seen_in_fitting_has_probability_zero(codes):
    model = quick().fit(codes)
    rows = np.repeat(codes[:1], 2, axis=0)
    rows[1, 2] = 17

    assert model.score_samples(rows)[1] == -np.inf
    others = np.where(np.arange(5) == 2, np.nan, rows[1:].astype(float))
    np.testing.assert_allclose(model.predict_proba(rows)[1:], model.predict_proba(others))


def test_weights_are_repeated_rows(codes):
    counts = np.arange(len(codes)) % 3

    weighted = quick().fit(codes, sample_weight=counts)
    repeated = quick().fit(np.repeat(codes, counts, axis=0))

    np.testing.assert_allclose(weighted.weights_, repeated.weights_, atol=1e-10)
    assert weighted.log_likelihood_ == pytest.approx(repeated.log_likelihood_)


def test_auto_takes_the_lowest_bic(codes):
    model = LatentClass("auto", n_starts=20, random_state=0).fit(codes)

    assert model.n_components_ == 2
    assert model.bic_curve_[2] == min(model.bic_curve_.values()) == pytest.approx(model.bic(codes))
    assert list(model.bic_curve_) == [1, 2, 3, 4]


def test_one_class_is_the_margins(codes):
    model = LatentClass(1).fit(codes)

    np.testing.assert_allclose(model.components_[0][:, 0], np.bincount(codes[:, 0]) / len(codes))


def test_a_thousand_categories_in_a_column(rng):
    X = np.column_stack([rng.integers(1000, size=3000), draw(3000, *random_classes((2, 2, 2), 2, rng), rng)[0]])

    model = quick(n_starts=2, max_iter=30).fit(X)

    assert model.components_[0].shape == (len(np.unique(X[:, 0])), 2)
    np.testing.assert_allclose(model.components_[0].sum(axis=0), 1.0)


def test_measurements_taken_for_categories_are_warned_of(rng, recwarn):
    answers = rng.integers(0, 2, size=(60, 3)).astype(float)
    LatentClass(2, n_starts=0, random_state=0).fit(answers)
    assert not recwarn.list

    with pytest.warns(IdentifiabilityWarning, match=r"Column\(s\) 1, 3 have hardly an answer twice"):
        LatentClass(2, n_starts=0, random_state=0).fit(
            np.column_stack([answers[:, 0], rng.normal(size=60), answers[:, 1:2], rng.normal(size=60)])
        )


def test_an_item_that_all_answer_alike_is_sure(codes):
    model = quick().fit(np.column_stack([codes, np.ones(len(codes), dtype=int)]))

    np.testing.assert_array_equal(model.components_[-1], np.ones((1, 2)))
    np.testing.assert_allclose(model.weights_, quick().fit(codes).weights_, atol=1e-3)


@pytest.mark.parametrize("ordered", [False, True])
def test_smoothing_draws_rare_answers_from_zero(ordered, codes):
    few = codes[:40]

    smooth = quick(smoothing=0.2, ordered=ordered).fit(few)

    assert min(item.min() for item in smooth.components_) > 0.03
    assert smooth.log_likelihood_ <= quick().fit(few).log_likelihood_
    np.testing.assert_allclose([item.sum() for item in smooth.components_], 2.0)


def test_smoothing_to_the_end_is_uniform(codes):
    model = quick(smoothing=0.99).fit(codes[:, :3])

    np.testing.assert_allclose(model.components_[0], 1 / 3, atol=1e-12)


def test_too_many_classes_for_the_items_are_warned_of(codes):
    with pytest.warns(IdentifiabilityWarning, match=r"2 classes have 7 parameters, and the table .* only 5 free cells"):
        quick().fit(codes[:, :2])
    with pytest.warns(IdentifiabilityWarning, match="determine only 13 of the 14 parameters of 3 classes"):
        quick(3).fit(np.minimum(codes[:, :4], 1))  # Goodman (1974): one degree of freedom, and yet not identified


REFUSALS = {
    "smoothing": ({"smoothing": 1.0}, "smoothing must be a number from 0 to below 1; got 1.0"),
    "ordered": ({"ordered": "all"}, "ordered must be True, False or a list of columns"),
    "ordered table": ({"ordered": np.zeros((2, 2))}, "ordered must be True, False or a list of columns"),
    "ordered column": ({"ordered": [7]}, r"ordered names columns \[7\] that the table lacks"),
    "components": ({"n_components": "many"}, 'n_components must be an integer or "auto"'),
}


@pytest.mark.parametrize(("parameters", "message"), REFUSALS.values(), ids=REFUSALS.keys())
def test_wrong_parameters_get_a_sentence(parameters, message, codes):
    with pytest.raises(ValueError, match=message):
        LatentClass(**parameters).fit(codes)


def test_answers_that_are_none_get_a_sentence(codes):
    with pytest.raises(TypeError, match="must be a string, a number or a flag; got"):
        quick().fit(np.array([[{"a": 1}, 1, 2]] * 3, dtype=object))
    with pytest.raises(ValueError, match="Column 1 has no answer in any of 600 rows"):
        quick().fit(np.where(np.arange(5) == 1, np.nan, codes))
    with pytest.raises(ValueError, match="5 classes need at least 5 rows with an answer; got n_samples = 3"):
        quick(5).fit(codes[:3])
    with pytest.raises(TypeError, match="takes one table in memory; got a stream"):
        quick().fit(iter([codes, codes]))


def test_a_saved_model_keeps_its_words(codes, tmp_path):
    model = quick().fit(WORDS[codes])
    save(model, tmp_path / "model")

    again = load(tmp_path / "model")

    np.testing.assert_array_equal(again.predict_proba(WORDS[codes]), model.predict_proba(WORDS[codes]))
    assert again.categories_[0].tolist() == ["a", "b", "c"]


def test_bars_of_a_class_are_its_probabilities(codes):
    model = quick().fit(pd.DataFrame(WORDS[codes], columns=["one", "two", "three", "four", "five"]))

    display = ItemProfileDisplay.from_estimator(model, ax=offscreen_axes(2))

    for h, panel in enumerate(display.axes_):
        widths = [bar.get_width() for bar in panel.patches]
        np.testing.assert_allclose(widths, np.concatenate(model.components_)[:, h])
    assert [label.get_text() for label in display.axes_[0].get_yticklabels()][:2] == ["one", "two"]


def test_many_categories_are_drawn_together(rng):
    X = np.column_stack([rng.integers(20, size=500), rng.integers(2, size=(500, 3))])

    display = ItemProfileDisplay.from_estimator(quick().fit(X), ax=offscreen_axes(2))

    assert display.categories[0][-1] == "others"
    np.testing.assert_allclose(display.probabilities[0].sum(axis=0), 1.0)


@pytest.mark.parametrize("width", [2, 8])
def test_rows_of_another_width_are_told_by_it(width):
    answers = np.array(["yes", "no", "maybe"])[np.random.default_rng(0).integers(3, size=(60, 8))]
    model = LatentClass(2, random_state=0).fit(answers[:, :4])

    with pytest.raises(ValueError, match=f"X has {width} features, but LatentClass is expecting 4 features"):
        model.predict(answers[:, :width])
