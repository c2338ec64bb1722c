"""Beliefs are those of enumeration on trees of categories, and near the exact ones of Gaussian chains and grids."""

from itertools import product

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from latentviews import Delta, Gaussian, KernelBeliefPropagation, VonMises
from latentviews.joint import messages, propagation

TREE = [(0, 1), (1, 2), (1, 3), (3, 4)]


def categories(rng, n_rows=400):
    """Rows whose columns depend on their neighbours in the tree."""
    x = np.zeros((n_rows, 5))
    x[:, 1] = rng.integers(3, size=n_rows)
    for parent, child in [(1, 0), (1, 2), (1, 3), (3, 4)]:
        x[:, child] = np.where(rng.random(n_rows) < 0.6, x[:, parent], rng.integers(3, size=n_rows))
    return x


def enumerated(x, edges, evidence, column):
    """p(column | evidence) of the tree whose tables are those of the rows, by summing over everything."""
    values = [np.unique(col) for col in x.T]
    margin = [np.array([np.mean(col == v) for v in vals]) for col, vals in zip(x.T, values, strict=True)]
    pair = {
        (s, t): np.array([[np.mean((x[:, s] == a) & (x[:, t] == b)) for b in values[t]] for a in values[s]])
        for s, t in edges
    }
    found = np.zeros(len(values[column]))
    for place in product(*(range(len(v)) for v in values)):
        if any(values[c][place[c]] != v for c, v in evidence.items()):
            continue
        p = np.prod([margin[c][i] for c, i in enumerate(place)])
        for s, t in edges:
            p *= pair[s, t][place[s], place[t]] / (margin[s][place[s]] * margin[t][place[t]])
        found[place[column]] += p
    return found / found.sum()


@pytest.mark.parametrize("evidence", [{}, {0: 2.0}, {2: 1.0, 4: 0.0}], ids=repr)
def test_beliefs_on_a_tree_of_categories_are_enumeration(evidence, rng):
    x = categories(rng)
    asked = np.full((1, 5), np.nan)
    for column, value in evidence.items():
        asked[0, column] = value

    found = KernelBeliefPropagation(TREE, kernel=Delta(), penalty=0.0).fit(x).beliefs(asked)

    assert found.converged
    for column in set(range(5)) - set(evidence):
        belief = found.views[column].density([0.0, 1.0, 2.0])[:, 0]
        np.testing.assert_allclose(belief, enumerated(x, TREE, evidence, column), atol=1e-10)


def test_a_gaussian_chain_is_filled_in_by_its_conditional_mean(rng):
    noise = rng.normal(size=(1500, 4))
    x = np.zeros((1500, 4))
    x[:, 0] = noise[:, 0]
    for j in range(1, 4):
        x[:, j] = 0.8 * x[:, j - 1] + 0.6 * noise[:, j]
    asked = x[:100].copy()
    asked[:, 1:3] = np.nan

    found = KernelBeliefPropagation(random_state=0).fit(x).predict(asked)  # a chain by default

    covariance = 0.8 ** np.abs(np.subtract.outer(np.arange(4), np.arange(4)))
    exact = asked[:, [0, 3]] @ np.linalg.solve(covariance[np.ix_([0, 3], [0, 3])], covariance[np.ix_([0, 3], [1, 2])])
    inside = np.abs(asked[:, [0, 3]]).max(axis=1) < 2
    assert np.sqrt(np.mean((found[:, 1:3] - exact)[inside] ** 2)) < 0.15  # of a spread of .45
    np.testing.assert_array_equal(found[:, [0, 3]], asked[:, [0, 3]])


def test_loops_settle_with_damping_and_say_so_where_they_do_not(rng):
    x = categories(rng)
    loop = [*TREE, (2, 4)]
    asked = np.array([[1.0, np.nan, np.nan, np.nan, np.nan]])

    settled = KernelBeliefPropagation(loop, kernel=Delta(), damping=0.3).fit(x).beliefs(asked)
    with pytest.warns(ConvergenceWarning, match="after 2 rounds; raise max_iter"):
        stopped = KernelBeliefPropagation(loop, kernel=Delta(), max_iter=2).fit(x).beliefs(asked)

    assert settled.converged
    assert not stopped.converged


def literal_message(features, rows, weights, penalty):
    """1 + φ(x_s)ᵀ (C_ss + λI)⁻¹ (1/n) Σ_i (w_i / w̄ − 1) φ(x_s^i) at the rows."""
    phi = features.transform(rows)
    surplus = weights / weights.mean() - 1
    moment = phi.T @ phi / len(phi) + penalty * np.eye(phi.shape[1])
    return 1 + phi @ np.linalg.solve(moment, phi.T @ surplus / len(phi))


@pytest.mark.parametrize("points", [1000, 200])
def test_messages_along_a_chain_are_the_formula_over_the_rows(points, rng, monkeypatch):
    """Held at all values of a view, or at a few of them: a function that smooth is known from those."""
    monkeypatch.setattr(messages, "POINTS", points)
    x = rng.normal(size=(500, 3))
    x[:, 1] += 0.4 * x[:, 0]  # so little that no message falls to zero anywhere
    x[:, 2] += 0.4 * x[:, 1]
    model = KernelBeliefPropagation(kernel=Gaussian(2.0), penalty=1e-3, random_state=0).fit(x)

    found = model.beliefs([[0.4, np.nan, np.nan]]).views[2].weights[:, 0]

    maps, rows = model.features_, model.rows_
    phi = maps[0].transform(rows[0])
    given = np.linalg.solve(phi.T @ phi / 500 + 1e-3 * np.eye(phi.shape[1]), maps[0].transform([[0.4]])[0])
    first = literal_message(maps[1], rows[1], phi @ given, 1e-3)
    second = literal_message(maps[2], rows[2], first, 1e-3)
    np.testing.assert_allclose(found, second / second.sum(), atol=1e-4 / 500 if points == 1000 else 1e-3 / 500)


def test_what_lies_far_from_every_row_tells_nothing(rng):
    x = rng.normal(size=(300, 2)).cumsum(axis=1)

    found = KernelBeliefPropagation(kernel=Gaussian(0.5), random_state=0).fit(x).beliefs([[1e3, np.nan]])

    np.testing.assert_allclose(found.views[1].weights, 1 / 300, rtol=1e-6)


def test_held_out_rows_choose_wide_messages_for_lines_and_narrow_ones_for_waves(rng):
    first = rng.uniform(-3, 3, size=1500)
    lines = np.column_stack([first, first + rng.normal(size=1500)])
    waves = np.column_stack([first, np.sin(5 * first) + 0.2 * rng.normal(size=1500)])

    wide, narrow = (
        KernelBeliefPropagation(random_state=0).fit(rows).kernels_[0].bandwidth[0] for rows in (lines, waves)
    )

    assert narrow <= wide / 4


def test_angles_are_filled_in_across_the_cut(rng):
    first = rng.vonmises(np.pi, 4.0, size=800)
    x = np.column_stack([first, (first + 0.2 * rng.normal(size=800) + np.pi) % (2 * np.pi) - np.pi])

    found = KernelBeliefPropagation([(0, 1)], kernel=VonMises(0.3), random_state=0).fit(x).predict([[np.pi, np.nan]])

    assert np.abs(np.angle(np.exp(1j * (found[0, 1] - np.pi)))) < 0.15


def test_columns_that_nothing_reaches_keep_their_margin(rng):
    x = rng.normal(size=(300, 3))

    found = KernelBeliefPropagation([(0, 1)], random_state=0).fit(x).beliefs([[0.5, np.nan, np.nan]])

    np.testing.assert_allclose(found.views[2].mean(), [[x[:, 2].mean()]])


@pytest.mark.parametrize(
    ("edges", "options", "message"),
    [
        ([(0, 3)], {}, r"views from 0 to 2; got \(0, 3\)"),
        ([(1, 1)], {}, "pairs of different views"),
        ([(0, 1), (1, 0)], {}, "twice"),
        (["ab"], {}, "pairs of different views from 0 to 2; got 'ab'"),
        ([(0, 1)], {"kernel": [Gaussian()] * 2}, "one per view, 3; got 2"),
        ([(0, 1)], {"damping": 1.0}, "damping must be from 0 to below 1"),
    ],
)
def test_bad_graphs_are_refused_in_a_sentence(edges, options, message, rng):
    with pytest.raises(ValueError, match=message):
        KernelBeliefPropagation(edges, **options).fit(rng.normal(size=(20, 3)))


def test_rows_with_missing_values_are_left_out(rng):
    x = rng.normal(size=(60, 3))
    holes = np.vstack([x, [[np.nan, 0.0, 0.0]]])
    asked = [[0.3, np.nan, 0.1]]

    with_holes, complete = (KernelBeliefPropagation(random_state=0).fit(rows).predict(asked) for rows in (holes, x))

    np.testing.assert_array_equal(with_holes, complete)
    with pytest.raises(ValueError, match="every row of X has a missing value"):
        KernelBeliefPropagation().fit(np.full((5, 2), np.nan))


def grid_of_normals(rng, n_rows):
    """Rows of a 3 × 3 grid of normal columns, and its edges."""
    edges = [(3 * i + j, 3 * i + j + 1) for i in range(3) for j in range(2)]
    edges += [(3 * i + j, 3 * i + j + 3) for i in range(2) for j in range(3)]
    precision = np.eye(9)
    for s, t in edges:
        precision[s, t] = precision[t, s] = -0.24
    return rng.multivariate_normal(np.zeros(9), np.linalg.inv(precision), size=n_rows), edges


def loopy_gaussian(covariance, edges, asked):
    """Means and variances of Gaussian messages on the pairs of a covariance, for the columns that are missing."""
    precision = np.diag((1 - np.bincount(np.ravel(edges))) / np.diag(covariance))
    for pair in edges:
        precision[np.ix_(pair, pair)] += np.linalg.inv(covariance[np.ix_(pair, pair)])
    hidden = np.isnan(asked)
    pull, inner = -precision[np.ix_(hidden, ~hidden)] @ asked[~hidden], precision[np.ix_(hidden, hidden)]
    own, off = np.diag(inner), inner - np.diag(np.diag(inner))
    widths, heights = np.zeros_like(off), np.zeros_like(off)
    for _ in range(200):
        left = own[:, None] + widths.sum(axis=0)[:, None] - widths.T
        widths, heights = -(off**2) / left, -off * (pull[:, None] + heights.sum(axis=0)[:, None] - heights.T) / left
    return (pull + heights.sum(axis=0)) / (own + widths.sum(axis=0)), 1 / (own + widths.sum(axis=0))


def test_beliefs_on_a_grid_are_those_of_loopy_gaussian_messages(rng):
    x, edges = grid_of_normals(rng, 4000)
    x = x - x.mean(axis=0)
    asked = np.full((1, 9), np.nan)
    asked[0, [0, 5]] = 1.0, -0.7

    found = KernelBeliefPropagation(edges, n_landmarks=40, random_state=0).fit(x).beliefs(asked)

    means, variances = loopy_gaussian(np.cov(x.T), edges, asked[0])
    hidden = np.flatnonzero(np.isnan(asked[0]))
    first = np.array([found.views[c].mean()[0, 0] for c in hidden])
    second = np.array([found.views[c].expectation(lambda rows: rows[:, 0] ** 2)[0] for c in hidden])
    assert found.converged
    assert np.sqrt(np.mean((first - means) ** 2 / variances)) < 0.05
    assert np.abs(np.mean((second - first**2) / variances) - 1) < 0.05


def test_rows_asked_about_some_at_a_time_have_the_same_beliefs(rng, monkeypatch):
    x = rng.normal(size=(80, 3)).cumsum(axis=1)
    asked = x[:7].copy()
    asked[:, 1] = np.nan
    model = KernelBeliefPropagation(random_state=0).fit(x)
    whole, filled = model.beliefs(asked), model.predict(asked)

    monkeypatch.setattr(propagation, "MESSAGES", 3 * 80 * 4)  # three rows of two edges
    parts = model.beliefs(asked)

    np.testing.assert_allclose(parts.views[1].weights, whole.views[1].weights, atol=1e-5)
    np.testing.assert_allclose(model.predict(asked), filled, atol=1e-5)
    assert parts.converged == whole.converged


def test_views_of_several_columns_are_hidden_together(rng):
    """The first column of a view tells nothing alone: the sign of both is what the other view repeats."""
    pair = rng.choice([-1.0, 1.0], size=(600, 2))
    x = np.column_stack([pair + 0.1 * rng.normal(size=(600, 2)), pair.prod(axis=1)])
    asked = np.array([[1.0, -1.0, np.nan], [np.nan, -1.0, 1.0]])

    together = KernelBeliefPropagation([(0, 1)], views=[[0, 1], [2]], random_state=0).fit(x)
    apart = KernelBeliefPropagation([(0, 2), (1, 2)], random_state=0).fit(x)

    assert together.predict(asked)[0, 2] < -0.8
    assert abs(apart.predict(asked)[0, 2]) < 0.4
    filled = together.predict(asked)[1]
    assert filled[1] == -1.0  # what is known stays
    assert together.beliefs(asked).views[0].weights.shape == (600, 2)


@pytest.mark.parametrize("views", [[[0, 1]], [[0, 1], [1, 2]], [[0, 1], [2, 3]]])
def test_views_need_every_column_once(views, rng):
    with pytest.raises(ValueError, match="every column from 0 to 2 in one view"):
        KernelBeliefPropagation(views=views).fit(rng.normal(size=(20, 3)))
