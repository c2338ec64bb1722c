"""The concentration of a Dirichlet prior: exact from exact moments, and steadier off topics where it is small."""

from itertools import permutations

import numpy as np
import pytest
from scipy import sparse

from latentviews import TopicModel
from latentviews._validation import UnsupportedError
from latentviews.discrete.bags import bag_moments
from latentviews.discrete.concentration import (
    concentration_of_shares,
    functionals,
    moment_error,
    read_concentration,
    share_squares,
    steadier,
)
from latentviews.discrete.dirichlet import DirichletParts
from latentviews.discrete.topic_em import EMSettings, TopicFit
from truths import corpus, share_moments

WEIGHTS = np.array([0.4, 0.3, 0.2, 0.1])


@pytest.mark.cheap
@pytest.mark.parametrize("concentration", [0.1, 1.0, 10.0])
def test_functionals_of_exact_topics_read_the_concentration_off_exact_pairs(concentration, rng):
    topics, instruments = (rng.dirichlet(np.full(30, 0.3), size=4).T for _ in range(2))
    first, second, _ = share_moments(concentration * WEIGHTS)
    duals = functionals(instruments, topics, rng.random(30) + 0.1)

    np.testing.assert_allclose(duals.T @ topics, np.eye(4), atol=1e-8)
    squares = np.trace(duals.T @ topics @ second @ topics.T @ duals)

    assert concentration_of_shares(squares, first @ first) == pytest.approx(concentration, rel=1e-7)


@pytest.mark.cheap
def test_squares_of_shares_are_over_pairs_of_different_words(rng):
    bags = rng.poisson(1.5, size=(7, 5)).astype(float)
    bags = bags[bags.sum(axis=1) >= 2]
    first, second = rng.normal(size=(2, 5, 3))
    documents = [np.repeat(np.arange(5), row.astype(int)) for row in bags]
    literal = np.mean([np.mean([first[v] @ second[w] for v, w in permutations(one, 2)]) for one in documents])

    squares, of_means = share_squares(sparse.csr_array(bags), first, second)

    assert squares == pytest.approx(literal)
    sees = [np.mean([duals[one].mean(axis=0) for one in documents], axis=0) for duals in (first, second)]
    assert of_means == pytest.approx(sees[0] @ sees[1])


@pytest.mark.parametrize("squares", [1.0, 1.2, 0.3, 0.2, 0.3 + 1e-5, 1 - 1e-5, np.nan])
def test_moments_of_no_dirichlet_law_tell_no_concentration(squares):
    assert concentration_of_shares(squares, 0.3) is None


@pytest.mark.parametrize("concentration", [0.1, 1.0, 10.0])
def test_the_concentration_of_ten_thousand_documents_is_within_a_tenth(concentration, rng):
    bags, _, _ = corpus(rng, 10_000, 5, 200, concentration, 100)

    model = TopicModel(5, random_state=0).fit(bags)

    assert model.concentration_ == pytest.approx(concentration, rel=0.1)


@pytest.mark.parametrize(("concentration", "error"), [(0.1, 0.12), (1.0, 0.03), (10.0, 0.04)])
def test_that_of_moments_is_within_three_standard_errors(concentration, error, rng):
    """Relative standard errors are those of fifteen other draws."""
    bags, _, _ = corpus(rng, 10_000, 5, 200, concentration, 100)

    found = TopicModel(5, max_iter=0, random_state=0).fit(bags).concentration_

    assert found == pytest.approx(concentration, rel=3 * error)


def test_two_topics_tell_their_concentration_by_em(rng):
    bags, _, _ = corpus(rng, 3000, 2, 60, 0.3, 80)

    with pytest.warns(UserWarning, match="it is taken to be 1, or of words what EM's topics say"):
        model = TopicModel(2, random_state=0).fit(bags)

    assert model.concentration_ == pytest.approx(0.3, rel=0.2)


def lots_of(rng, n):
    """Lots of documents whose mean first moments are means of n standard normal draws plus two."""
    vectors = np.ones((3, 1))
    made = [bag_moments(sparse.csr_array(np.ones((n, 3))), vectors) for _ in range(8)]
    return [
        type(one)(one.n_bags, 2 * n + rng.normal(size=(1,)) * np.sqrt(n), *list(vars(one).values())[2:]) for one in made
    ]


def test_the_error_of_moments_is_that_of_the_central_limit_theorem():
    """A sum of weights of 1 + m − log α₀ has its root at log α₀ = m, of which the standard error is 1/√(8 n)."""
    errors = []
    for seed in range(60):
        lots = lots_of(np.random.default_rng(seed), 50)

        def parts_at(moments, concentration):
            return DirichletParts(1 + moments.first - np.log(concentration), np.ones((1, 1)), concentration, 0.0)

        errors.append(moment_error(lots, np.exp(2.0), parts_at))

    # sixty jackknives of eight lots err by 1/√(2·7·60) = 3.5 %, three times that
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(1 / np.sqrt(400), rel=0.11)


def test_moments_that_have_fewer_parts_without_some_documents_have_no_error(rng):
    def parts_at(moments, concentration):
        raise UnsupportedError("fewer parts")

    assert moment_error(lots_of(rng, 5), 1.0, parts_at) == np.inf


def test_topics_are_believed_as_far_as_moments_allow():
    assert steadier(1.0, 0.1, 1.2) == 1.2
    assert steadier(1.0, 0.05, 1.2) == 1.0
    assert steadier(1.0, 0.05, 0.8) == 1.0
    assert steadier(1.0, np.inf, None) == 1.0


def test_too_few_documents_or_equal_topics_tell_none(rng):
    settings = EMSettings(0.05, 5, 1e-4, False)
    same = TopicFit(np.full((4, 2), 0.25), np.full((6, 2), 0.5), np.ones(2), 0.0, 0, True)
    bags = sparse.csr_array(np.full((6, 4), 2.0))

    assert read_concentration(bags[:2], same, settings) is None
    assert read_concentration(bags, same, settings) is None
