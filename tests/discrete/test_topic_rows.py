"""Draws and views of categories in topics, and questions that only words answer."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from latentviews import Delta, Gaussian, TopicModel, load, save

VIEWS = [["colour"], ["size"], ["kind"], ["age"]]


@pytest.fixture(scope="module")
def table():
    """Rows whose four views, two of them categories, draw parts by shares of the row; and the parts."""
    rng = np.random.default_rng(0)
    shares = rng.dirichlet([0.4, 0.3, 0.2], size=2000)
    part = (shares.cumsum(axis=1)[:, None] < rng.random((2000, 4, 1))).sum(axis=2).clip(0, 2)
    kinds = pd.Categorical.from_codes(part[:, 2], ["u", "v", "w"])
    return pd.DataFrame(
        {
            "colour": np.array(["red", "green", "blue"])[part[:, 0]],
            "size": rng.normal(4.0 * part[:, 1], 0.7),
            "kind": kinds,
            "age": rng.normal(-4.0 * part[:, 3], 0.7),
        }
    ), shares


@pytest.mark.parametrize("kernel", [None, [Delta(), Gaussian(), Delta(), Gaussian()]], ids=["by dtype", "given"])
def test_views_of_words_and_numbers_mix_alike(kernel, table, tmp_path, recwarn):
    frame, shares = table
    model = TopicModel(3, 0.9, views=VIEWS, kernel=kernel, random_state=0).fit(frame)

    found = model.transform(frame)

    assert not recwarn.list
    assert model.categories_[0].tolist() == ["blue", "green", "red"]
    chances = model.components_[0].at(np.arange(3.0)[:, None])
    assert sorted(np.abs(chances).argmax(axis=0).tolist()) == [0, 1, 2]
    by_view = np.array([np.corrcoef(found.T, shares.T)[:3, 3:].max(axis=1)])
    assert by_view.min() > 0.7
    save(model, tmp_path / "mixed")
    np.testing.assert_array_equal(load(tmp_path / "mixed").transform(frame), found)


def test_a_category_not_seen_in_fitting_leaves_the_other_views(table):
    frame, _ = table
    model = TopicModel(3, 0.9, views=VIEWS, random_state=0).fit(frame)
    new, other = frame[:50].assign(colour="never seen"), frame[:50].assign(colour="nor this")

    np.testing.assert_array_equal(model.transform(new), model.transform(other))
    np.testing.assert_allclose(model.transform(new).sum(axis=1), 1)
    with pytest.raises(ValueError, match="X contains NaN, first in row 0 of column 0, and TopicModel takes complete"):
        model.transform(frame[:2].assign(colour=[None, "red"]))


class Batches:
    """A table that is read batch by batch."""

    def __init__(self, table):
        self.table = table

    def __iter__(self):
        return iter([self.table[:10], self.table[10:]])


def test_views_in_batches_get_a_sentence(rng):
    with pytest.raises(TypeError, match="TopicModel takes one table in memory; got a stream"):
        TopicModel(2, 1.0, views=[[0], [1], [2]]).fit(Batches(rng.normal(size=(20, 3))))


def test_draws_may_be_words(rng):
    topics = 0.6 * np.eye(3) + 0.4 / 3
    counts = rng.multinomial(30, rng.dirichlet([0.9, 0.6, 0.5], size=300) @ topics)
    codes = np.concatenate([np.repeat(np.arange(3), row) for row in counts])
    groups, words = np.repeat(np.arange(300), 30), np.array(["ant", "bee", "cow"])[codes]

    of_words = TopicModel(3, 2.0, random_state=0).fit(pd.DataFrame({"said": words}), groups=groups)
    of_codes = TopicModel(3, 2.0, kernel=Delta(), random_state=0).fit(codes[:, None].astype(float), groups=groups)

    np.testing.assert_allclose(of_words.raw_weights_, of_codes.raw_weights_, rtol=1e-9)
    assert of_words.categories_[0].tolist() == ["ant", "bee", "cow"]


def test_sums_begin_anew_after_a_fit(rng):
    bags = sparse.csr_array(rng.multinomial(40, rng.dirichlet(np.ones(12), size=200)).astype(float))
    model = TopicModel(2, 1.0, random_state=0).partial_fit(bags[:80]).fit(bags).partial_fit(bags[150:])

    assert model.moments_.n_bags == 50
    np.testing.assert_array_equal(
        model.components_, TopicModel(2, 1.0, random_state=0).partial_fit(bags[150:]).components_
    )


def test_questions_of_words_get_a_sentence_elsewhere(rng):
    bags = sparse.csr_array(rng.multinomial(40, rng.dirichlet(np.ones(12), size=60)).astype(float))
    x, groups = rng.normal(size=(300, 1)), np.repeat(np.arange(30), 10)
    words, parts = TopicModel(2, 1.0, random_state=0).fit(bags), TopicModel(1, 1.0).fit(x, groups=groups)

    with pytest.raises(ValueError, match="Perplexity is of words; parts of draws and views have densities"):
        parts.perplexity(np.abs(x))
    with pytest.raises(ValueError, match="partial_fit takes counts of words; of views and draws, fit takes all rows"):
        parts.partial_fit(bags)
    with pytest.raises(ValueError, match=r"one column per topic, \(60, 2\); got \(60, 3\)"):
        words.perplexity(bags, np.full((60, 3), 1 / 3))
    with pytest.raises(ValueError, match="n_words must be an integer of at least 1; got -1"):
        words.top_words(-1)
    with pytest.raises(ValueError, match="names needs one word per column of X, 12; got 1"):
        words.top_words(3, ["ant"])
