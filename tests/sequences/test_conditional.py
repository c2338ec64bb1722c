"""One view given all others at all times."""

from itertools import pairwise, product

import numpy as np
import pytest

from exact_chains import random_chain
from latentviews import Delta, KernelHMM, MultiViewMixture, Sieve
from latentviews.datasets import make_multiview

QUICK = Sieve(factors=(2.0,), max_iter=10)


@pytest.fixture(scope="module")
def chain():
    """Codes of two sensors, and a fit to them."""
    rng = np.random.default_rng(0)
    start, transition, tables = random_chain(rng, 2, 3, 2)
    states = [rng.choice(2, p=start)]
    for _ in range(399):
        states.append(rng.choice(2, p=transition[states[-1]]))
    X = np.array([[rng.choice(3, p=table[:, h]) for table in tables] for h in states], dtype=float)
    return X, KernelHMM(2, views=[[0], [1]], kernel=Delta(), polish=QUICK, random_state=0).fit(X)


def enumerated(model, rows, view):
    """P(x_view = c | the other view at all times) by the sum over all paths, (n, 3)."""
    other = 1 - view
    known = ~np.isnan(rows[:, other])
    emitted = np.exp(model.components_[other].log_density(np.where(known, rows[:, other], 0.0)[:, None]))
    posteriors = np.zeros((len(rows), 2))
    for path in product(range(2), repeat=len(rows)):
        chance = model.start_[path[0]]
        for before, after in pairwise(path):
            chance *= model.transition_[before, after]
        chance *= np.prod([emitted[i, h] for i, h in enumerate(path) if known[i]])
        posteriors[np.arange(len(rows)), list(path)] += chance
    posteriors /= posteriors.sum(axis=1, keepdims=True)
    return posteriors @ model.components_[view].density(np.arange(3.0)[:, None]).T


@pytest.mark.parametrize("view", [0, 1])
def test_a_view_given_the_others_is_what_enumeration_says(chain, view):
    X, model = chain
    rows = X[:8].copy()
    rows[3, 1 - view] = np.nan  # a value of the others may be missing

    expected = enumerated(model, rows, view)
    found = model.conditional(rows, view)

    np.testing.assert_allclose(found.density(np.arange(3.0)), expected, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.mean()[:, 0], expected @ np.arange(3.0), rtol=0, atol=1e-10)
    median = (np.cumsum(expected, axis=1) < 0.5).sum(axis=1)
    np.testing.assert_array_equal(found.quantile(0.5)[:, 0], median)
    assert found.quantile([0.1, 0.9]).shape == (8, 1, 2)


def test_values_of_the_view_itself_say_nothing(chain):
    X, model = chain
    hidden = X.copy()
    hidden[:, 0] = np.nan

    np.testing.assert_array_equal(model.conditional(X, 0).posteriors, model.conditional(hidden, 0).posteriors)


def test_sequences_say_nothing_of_each_other(chain):
    X, model = chain

    apart = [model.conditional(part, 0).posteriors for part in (X[:50], X[50:120])]

    np.testing.assert_allclose(model.conditional(X[:120], 0, lengths=[50, 70]).posteriors, np.concatenate(apart))


def test_draws_follow_the_conditional(chain):
    X, model = chain
    found = model.conditional(X, 1)

    expected = found.density(np.arange(3.0))
    drawn = np.stack([found.sample(seed)[:, 0] for seed in range(50)])

    n, p = drawn.size, expected.mean(axis=0)
    shares = np.array([(drawn == c).mean() for c in range(3)])
    assert np.all(np.abs(shares - p) < 5.2 * np.sqrt(p * (1 - p) / n))  # one false alarm in a million


def test_one_view_has_no_others(chain):
    X, _ = chain
    model = KernelHMM(2, kernel=Delta(), polish=QUICK, random_state=0).fit(X[:, :1])

    with pytest.raises(ValueError, match="this model has one view; give `views`"):
        model.conditional(X[:, :1], 0)


def test_a_view_that_is_not_there_is_a_sentence(chain):
    X, model = chain

    with pytest.raises(ValueError, match="view must be"):
        model.conditional(X, 2)


def test_a_product_of_functions_is_averaged_by_enumeration_of_classes_and_codes(rng):
    X = rng.integers(3, size=(300, 4)).astype(float)
    model = MultiViewMixture(2, kernel=Delta(), polish=QUICK, random_state=0).fit(X)
    laws = [view.density(np.arange(3.0)) for view in model.components_]
    f = [lambda x: x[:, 0], lambda x: x[:, 0] ** 2, lambda x: np.exp(x[:, 0])]

    values = [f[i](np.arange(3.0)[:, None]) for i in range(3)]
    expected = sum(
        weight * np.prod([values[i] @ laws[t][:, h] for i, t in enumerate((0, 1, 3))])
        for h, weight in enumerate(model.weights_)
    )

    assert model.product_expectation({0: f[0], 1: f[1], 3: f[2]}) == pytest.approx(expected, rel=1e-12)


def test_products_of_views_are_refused_where_views_depend_on_each_other_and_where_nothing_is_asked():
    X, _, _ = make_multiview(200, 2, random_state=0)
    model = MultiViewMixture(2, dependence="copula", random_state=0).fit(X)

    with pytest.raises(ValueError, match="dependent inside the classes"):
        model.product_expectation({0: lambda x: x[:, 0]})
    with pytest.raises(ValueError, match=r"takes \{view: function\}"):
        model.product_expectation({})
