"""Topics: exact parts from exact moments, moments that equal slow ones, and what bags of any length mean."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from latentviews import (
    Delta,
    Gaussian,
    IdentifiabilityWarning,
    JointDiagonalization,
    PowerMethod,
    TopicModel,
    load,
    save,
)
from latentviews._validation import UnsupportedError
from latentviews.core.spectral import components_of
from latentviews.core.views import Views
from latentviews.core.whitening import Whitening, symmetric_whitening
from latentviews.discrete.bags import BagMoments, bag_moments, word_projection
from latentviews.discrete.dirichlet import DirichletParts, dirichlet_parts, find_concentration, view_parts
from latentviews.discrete.topic_em import counts_over_chances, fold_in
from truths import corpus, share_moments

WEIGHTS = np.array([0.4, 0.3, 0.2, 0.1])


def exact_moments(topics, alpha):
    """The moments of words (V, k) under a Dirichlet law, projected to their span."""
    first, second, third = share_moments(alpha)
    pair, mean = topics @ second @ topics.T, topics @ first
    basis = np.linalg.eigh(pair)[1][:, -len(alpha) :]
    down = basis.T @ topics
    triple = np.einsum("abc,ia,jb,lc->ijl", third, down, down, down)
    return BagMoments(1.0, basis.T @ mean, basis.T @ pair @ basis, triple, pair @ basis, mean)


@pytest.mark.cheap
@pytest.mark.parametrize("concentration", [0.1, 0.5, 1.0, 3.0, 10.0])
def test_topics_and_weights_are_exact_on_exact_moments(concentration, rng):
    topics = rng.dirichlet(np.full(30, 0.3), size=4).T
    moments = exact_moments(topics, concentration * WEIGHTS)

    parts = dirichlet_parts(moments, 4, concentration, JointDiagonalization(), rng)

    np.testing.assert_allclose(parts.weights, WEIGHTS, atol=1e-8)
    np.testing.assert_allclose(parts.vectors, topics, atol=1e-8)


@pytest.mark.cheap
@pytest.mark.parametrize("concentration", [0.1, 1.0, 10.0])
def test_the_concentration_is_where_weights_sum_to_one(concentration, rng):
    moments = exact_moments(rng.dirichlet(np.full(30, 0.3), size=4).T, concentration * WEIGHTS)

    def at(value):
        return dirichlet_parts(moments, 4, value, JointDiagonalization(), np.random.default_rng(0))

    assert find_concentration(at) == pytest.approx(concentration, rel=1e-3)
    sums = [at(value).weights.sum() for value in (0.03, 0.1, 0.3, 1, 3, 10, 30)]
    assert np.all(np.diff(sums) < 0)


def test_two_parts_do_not_tell_their_concentration(rng):
    moments = exact_moments(rng.dirichlet(np.full(30, 0.3), size=2).T, np.array([1.2, 0.8]))
    sums = [dirichlet_parts(moments, 2, a, JointDiagonalization(), rng).weights.sum() for a in (0.1, 1.0, 10.0)]

    np.testing.assert_allclose(sums, 1, atol=1e-9)


def test_a_vanishing_concentration_is_the_mixture(rng):
    topics = rng.dirichlet(np.full(20, 0.3), size=4).T
    pair, mean = (topics * WEIGHTS) @ topics.T, topics @ WEIGHTS
    down = symmetric_whitening(pair, 4)
    tensor = np.einsum("h,ih,jh,lh->ijl", WEIGHTS, *([down.T @ topics] * 3))
    shared = Whitening(((0,), (1,), (2,)), (down,) * 3, (pair @ down,) * 3, np.ones(4), shared=True)
    mixture = components_of(shared, PowerMethod().decompose(tensor, rng), Views((), ()))

    triple = np.einsum("h,ih,jh,lh->ijl", WEIGHTS, topics, topics, topics)
    moments = BagMoments(1.0, mean, pair, triple, pair, mean)
    parts = dirichlet_parts(moments, 4, 1e-12, JointDiagonalization(), rng)

    np.testing.assert_allclose(parts.weights, mixture.weights, atol=1e-8)
    np.testing.assert_allclose(parts.vectors, mixture.vectors[0], atol=1e-8)


def literal_moments(bags, vectors):
    """Means over bags of means over ordered pairs and triples of different draws."""
    sums = [0.0, 0.0, 0.0]
    bags = [np.repeat(np.arange(len(row)), row.astype(int)) for row in bags.toarray() if row.sum() >= 3]
    for bag in bags:
        for size in (1, 2, 3):
            draws = [vectors[list(one)] for one in permutations(bag, size)]
            spec = {1: "i->i", 2: "i,j->ij", 3: "i,j,l->ijl"}[size]
            sums[size - 1] += np.mean([np.einsum(spec, *draw) for draw in draws], axis=0)
    return [total / len(bags) for total in sums]


@pytest.mark.cheap
def test_moments_of_bags_are_those_over_all_triples_of_different_draws(rng):
    bags = sparse.csr_array(rng.poisson(0.8, size=(9, 6)).astype(float))
    vectors = rng.normal(size=(6, 3))

    found = bag_moments(bags, vectors).means()

    for one, other in zip((found.first, found.second, found.third), literal_moments(bags, vectors), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_moments_of_batches_add_up(rng):
    bags, vectors = sparse.csr_array(rng.poisson(1.0, size=(20, 6)).astype(float)), rng.normal(size=(6, 2))

    whole, parts = bag_moments(bags, vectors), bag_moments(bags[:7], vectors) + bag_moments(bags[7:], vectors)

    for name in vars(whole):
        np.testing.assert_allclose(getattr(whole, name), getattr(parts, name))


def test_the_projection_spans_the_leading_eigenvectors_of_the_scaled_pair_moment(rng):
    bags, _, _ = corpus(rng, 300, 3, 25)
    projection, _ = word_projection(bags, 3, rng)
    whole = bag_moments(bags, np.eye(25)).means()
    scale = 1 / np.sqrt(whole.mean)
    vectors = np.linalg.eigh(whole.second * np.outer(scale, scale))[1][:, -3:] * scale[:, None]

    left, right = (np.linalg.qr(one)[0] for one in (projection, vectors))

    np.testing.assert_allclose(np.linalg.svd(left.T @ right)[1], 1, atol=1e-4)


def error(found, true):
    distances = np.abs(found[:, None] - true[None]).sum(axis=2) / 2
    return distances[linear_sum_assignment(distances)].mean()


def test_topics_and_shares_of_documents_are_found(rng):
    bags, topics, shares = corpus(rng)
    model = TopicModel(3, random_state=0).fit(bags)

    assert error(model.components_, topics) < 0.04
    np.testing.assert_allclose(model.components_.sum(axis=1), 1)
    assert error(model.transform(bags).T / len(shares), shares.T / len(shares)) < 0.06
    counts = bags.sum(axis=0)
    alone = np.exp(-(counts @ np.log(np.maximum(counts, 1) / counts.sum())) / counts.sum())
    assert model.perplexity(bags) < 0.9 * alone


def test_sparse_and_dense_counts_are_the_same_and_columns_have_names(rng):
    bags, _, _ = corpus(rng, 500)
    names = [f"word {w}" for w in range(40)]
    frame = pd.DataFrame(bags.toarray(), columns=names)

    one, other = TopicModel(3, random_state=0).fit(bags), TopicModel(3, random_state=0).fit(frame)

    np.testing.assert_allclose(one.components_, other.components_)
    assert other.top_words(2)[0] == [names[w] for w in one.top_words(2)[0]]


def test_batches_one_after_the_other_come_to_what_all_at_once_do(rng):
    bags, topics, _ = corpus(rng, 6000)
    parts = TopicModel(3, random_state=0)
    for start in range(0, 6000, 2000):
        parts.partial_fit(bags[start : start + 2000])

    assert parts.moments_.n_bags == 6000
    assert error(parts.components_, topics) < 0.04
    assert error(parts.components_, TopicModel(3, max_iter=0, random_state=0).fit(bags).components_) < 0.02


def test_short_and_empty_documents_are_defined(rng):
    bags, _, _ = corpus(rng)
    short = np.zeros((3, 40))
    short[1, 0], short[2, [1, 2]] = 1, 1
    model = TopicModel(3, max_iter=0, random_state=0).fit(bags)
    more = TopicModel(3, max_iter=0, random_state=0).fit(sparse.vstack([bags, sparse.csr_array(short)], format="csr"))

    np.testing.assert_allclose(more.components_, model.components_, atol=1e-6)
    shares = model.transform(short)
    np.testing.assert_allclose(shares[0], model.weights_, atol=1e-9)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    with pytest.raises(UnsupportedError, match=r"as many documents of three words or more; got 40 words and 0 such"):
        TopicModel(3, max_iter=0).fit(short)


def test_documents_that_moments_do_not_reach_are_left_to_em(rng):
    with pytest.warns(IdentifiabilityWarning, match="EM starts from documents at random"):
        model = TopicModel(3, random_state=0).fit(rng.poisson(1.0, size=(20, 2)))

    assert model.raw_weights_ is None
    np.testing.assert_allclose(model.components_.sum(axis=1), 1)


def test_a_step_of_shares_is_bayes_rule(rng):
    bags = sparse.csr_array(rng.poisson(1.0, size=(4, 5)).astype(float))
    topics, prior = rng.dirichlet(np.ones(5), size=2).T, np.array([0.7, 0.4])

    found = fold_in(bags, topics, prior, 1, 0.0)

    for row, shares in zip(bags.toarray(), found, strict=True):
        joint = topics * prior / prior.sum()
        counts = row @ (joint / joint.sum(axis=1, keepdims=True)) + prior
        np.testing.assert_allclose(shares, counts / counts.sum())
    _, value = counts_over_chances(bags, found, topics)
    assert value == pytest.approx(np.sum(bags.toarray() * np.log(found @ topics.T)))


def draws(rng, n, size=12):
    shares = rng.dirichlet([1.0, 0.6, 0.4], size=n)
    part = (shares.cumsum(axis=1)[:, None] < rng.random((n, size, 1))).sum(axis=2).clip(0, 2)
    x = rng.normal(np.array([-3.0, 0.0, 4.0])[part], np.array([1.0, 0.7, 0.5])[part])
    return x.reshape(-1, 1), np.repeat(np.arange(n), size), shares


def test_the_error_of_parts_without_shape_falls_as_the_root_of_the_groups(rng):
    grid, means, widths = np.linspace(-7, 7, 200)[:, None], np.array([-3, 0, 4]), np.array([1.0, 0.7, 0.5])
    smooth = np.hypot(widths, 0.5)
    true = np.exp(-0.5 * ((grid - means) / smooth) ** 2) / (smooth * np.sqrt(2 * np.pi))
    errors = []
    for n in (300, 4800):
        found = []
        for _ in range(3):
            x, groups, _ = draws(rng, n)
            model = TopicModel(3, 2.0, kernel=Gaussian(0.5), random_state=0).fit(x, groups=groups)
            found.append(error(model.components_[0].at(grid).T, true.T))
        errors.append(np.mean(found))

    assert errors[1] < errors[0] / 2.5  # four times less in theory
    assert errors[1] < 0.05 * len(grid) / 14


def test_groups_get_shares_in_the_order_in_which_they_are_met(rng):
    x, groups, shares = draws(rng, 400)
    names = np.array([f"group {g}" for g in groups])
    model = TopicModel(3, random_state=0).fit(x, groups=names)

    found = model.transform(x, groups=names)

    assert found.shape == (400, 3)
    assert error(found.T / 400, shares.T / 400) < 0.1
    with pytest.raises(ValueError, match="fitted to draws in groups: pass the groups"):
        model.transform(x)


@pytest.mark.cheap
def test_views_that_differ_are_exact_on_exact_moments(rng):
    """Every combination of parts and values of three discrete views, with its probability."""
    concentration, weights = 2.0, np.array([0.5, 0.3, 0.2])
    tables = [rng.dirichlet(np.ones(4), size=3).T for _ in range(3)]
    third = share_moments(concentration * weights)[2]
    joint = np.einsum("abc,ia,jb,lc->ijl", third, *tables).ravel()
    cells = np.indices((4, 4, 4)).reshape(3, -1)
    phis = [np.eye(4)[cell] for cell in cells]

    parts, _ = view_parts(phis, 3, concentration, JointDiagonalization(), rng, joint)

    np.testing.assert_allclose(parts.weights, weights, atol=1e-8)
    np.testing.assert_allclose(parts.vectors, np.concatenate(tables), atol=1e-7)


def test_mixed_membership_of_views_is_found(rng):
    n = 6000
    shares = rng.dirichlet([1.0, 0.6, 0.4], size=n)
    part = (shares.cumsum(axis=1)[:, None] < rng.random((n, 4, 1))).sum(axis=2).clip(0, 2)
    X = rng.normal(np.array([-4.0, 0.0, 4.0])[part], 0.7)

    model = TopicModel(3, 2.0, views=[[0], [1], [2], [3]], random_state=0).fit(X)

    means = np.array([component.expectation(lambda x: x[:, 0]) for component in model.components_])
    np.testing.assert_allclose(np.sort(means, axis=1), np.tile([-4, 0, 4], (4, 1)), atol=0.6)
    np.testing.assert_allclose(model.transform(X).sum(axis=1), 1)


BAD = {
    "negative": ({}, np.array([[1.0, -1.0]] * 5), {}, "Negative values in data passed to TopicModel"),
    "kernel": ({"kernel": Gaussian()}, np.ones((5, 3)), {}, "kernel is of draws and views; words take none"),
    "both": ({"views": [[0], [1], [2]]}, np.ones((5, 3)), {"groups": [0] * 5}, "pass one of them, not both"),
    "groups": ({}, np.ones((5, 1)), {"groups": [0, 1]}, r"groups needs one name per row, shape \(5,\); got \(2,\)"),
    "lonely": ({"n_components": 3}, np.arange(5.0)[:, None], {"groups": range(5)}, "groups of at least three draws"),
    "concentration": ({"concentration": -1}, np.ones((5, 3)), {}, "concentration must be a positive, finite number"),
}


@pytest.mark.parametrize(("settings", "X", "more", "sentence"), BAD.values(), ids=BAD.keys())
def test_what_cannot_be_fitted_gets_a_sentence(settings, X, more, sentence):
    with pytest.raises(ValueError, match=sentence):
        TopicModel(**settings).fit(X, **more)


def test_saved_topics_answer_the_same(rng, tmp_path):
    bags, _, _ = corpus(rng, 300)
    x, groups, _ = draws(rng, 200)
    for name, model, told in (
        ("words", TopicModel(3, random_state=0).fit(bags), {"X": bags}),
        ("draws", TopicModel(3, random_state=0).fit(x, groups=groups), {"X": x, "groups": groups}),
    ):
        save(model, tmp_path / name)

        np.testing.assert_array_equal(load(tmp_path / name).transform(**told), model.transform(**told))


def test_a_word_that_no_topic_has_tells_nothing(rng):
    bags, topics = sparse.csr_array(np.array([[2.0, 1.0, 3.0]])), np.array([[0.7, 0.3], [0.3, 0.7], [0.0, 0.0]])

    shares = fold_in(bags, topics, np.ones(2), 20, 0.0)

    np.testing.assert_allclose(shares, fold_in(bags[:, :2], topics[:2], np.ones(2), 20, 0.0))


def test_em_learns_the_prior_where_it_is_not_given(rng):
    bags, _, _ = corpus(rng, concentration=3.0)
    learnt, given = TopicModel(3, random_state=0).fit(bags), TopicModel(3, 2.0, random_state=0).fit(bags)

    assert 1.5 < learnt.prior_.sum() < 6
    assert given.prior_.sum() == pytest.approx(2)
    assert given.concentration_ == 2.0


def test_draws_with_the_delta_kernel_are_words(rng):
    """As many topics as words, so that every projection is the same space."""
    topics = 0.6 * np.eye(3) + 0.4 / 3
    counts = rng.multinomial(30, rng.dirichlet([0.9, 0.6, 0.5], size=800) @ topics)
    words = np.concatenate([np.repeat(np.arange(3), row) for row in counts]).astype(float)[:, None]

    of_words = TopicModel(3, 2.0, max_iter=0, random_state=0).fit(counts)
    of_draws = TopicModel(3, 2.0, kernel=Delta(), random_state=0).fit(words, groups=np.repeat(np.arange(800), 30))

    np.testing.assert_allclose(of_draws.raw_weights_, of_words.raw_weights_, rtol=1e-6)
    np.testing.assert_allclose(of_draws.components_[0].density(np.arange(3.0)).T, of_words.components_, atol=1e-6)


def told(total, largest=np.inf):
    """Parts whose weights sum to a function of the concentration, up to the largest that moments support."""

    def at(concentration):
        if concentration > largest:
            raise UnsupportedError("no more parts")
        return DirichletParts(np.array([total(concentration)]), np.ones((1, 1)), concentration, 0.0)

    return at


@pytest.mark.parametrize(
    ("parts_at", "expected"),
    [
        (told(lambda a: 0.9), 1e-3),
        (told(lambda a: 1.1), 1e3),
        (told(lambda a: 1.1, largest=5.0), 1.0),
        (told(lambda a: 1.1, largest=0.05), 0.01),
        (told(lambda a: 1.1 - 0.1 * a / 0.02), 0.02),
        (told(lambda a: 1.1 - 0.1 * a / 0.02, largest=0.5), 0.02),
        (told(lambda a: 1.1 - 0.1 * a / 70), 70.0),
    ],
    ids=["short of one", "beyond one", "up to five", "up to a twentieth", "small", "small and bounded", "large"],
)
def test_the_search_for_a_concentration_ends_in_its_range(parts_at, expected):
    assert find_concentration(parts_at) == pytest.approx(expected, rel=0.002)


def test_moments_of_too_few_parts_say_so_in_the_search():
    with pytest.raises(UnsupportedError, match="no more parts"):
        find_concentration(told(lambda a: 1.0, largest=0.0))


def test_many_words_of_next_to_no_chance_have_no_ratio_that_overflows():
    bags = sparse.csr_array(np.array([[1e12, 3.0]]))

    ratios, _ = counts_over_chances(bags, np.ones((1, 1)), np.array([[1e-299], [0.5]]))

    np.testing.assert_array_equal(ratios.toarray(), [[0.0, 6.0]])
