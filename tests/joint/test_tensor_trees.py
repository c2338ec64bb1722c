from functools import reduce

import networkx as nx
import numpy as np
import pytest

from latentviews.core.features.indicators import OneHotFeatures
from latentviews.core.features.landmarks import LandmarkFeatures
from latentviews.core.kernels.discrete import Delta
from latentviews.core.kernels.real import Gaussian, Laplace
from latentviews.joint.sketching import sketched_embedding
from latentviews.joint.tensor_trees import exact_embedding, frobenius, leaf_features
from latentviews.joint.trees import caterpillar, embedding_distances, read_tree, tree_from_distances
from reference import hierarchical_svd, latent_tree_table, song_dai_train

pytestmark = pytest.mark.cheap

BALANCED = ((0, 1), (2, 3))
TREES = ["caterpillar", BALANCED, (((0, 2), 1), 3), (0, 1, 2, 3)]


def population(table):
    """All values of discrete variables as rows, their probabilities, and one-hot maps."""
    rows = np.argwhere(np.ones(table.shape)).astype(float)
    return rows, table.ravel(), [OneHotFeatures(size).fit(np.zeros((1, 1))) for size in table.shape]


def sample_features(rows, kernel):
    return [LandmarkFeatures(kernel, len(rows), selection="cholesky", tol=1e-14).fit(x[:, None]) for x in rows.T]


def random_table(rng, shape=(3, 4, 2, 5)):
    return rng.dirichlet(np.ones(np.prod(shape))).reshape(shape)


def theorem_2_bound(rows, features, tree, rank):
    """√(edges) · ε, with ε the largest error of a best rank-r approximation of C cut along one edge of the tree.

    ``rank`` is one for all edges, or one per edge.
    """
    phi = leaf_features(features, range(len(features)), rows)
    worst, ranks = 0.0, tree.ranks(rank)
    for v, edge in zip(tree.edge_vertices, tree.edges, strict=True):
        beyond = [j for j in range(len(phi)) if j not in edge]
        inside, outside = (reduce(np.multiply, [phi[j] @ phi[j].T for j in part]) for part in (edge, beyond))
        values, vectors = np.linalg.eigh(inside)
        root = vectors * np.sqrt(np.maximum(values, 0.0)) / len(rows)
        spectrum = np.linalg.eigvalsh(root.T @ outside @ root)[::-1]
        worst = max(worst, float(np.maximum(spectrum[ranks[v] :], 0.0).sum()))
    return float(np.sqrt(len(tree.edges) * worst))


@pytest.mark.parametrize("tree", TREES, ids=repr)
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_with_the_delta_kernel_it_is_the_hierarchical_svd_of_the_table(tree, rank, rng):
    table = random_table(rng)
    rows, weights, features = population(table)
    embedding = exact_embedding(rows, features, read_tree(tree, 4), rank, weights=weights)
    expected = hierarchical_svd(table, tree, rank)
    np.testing.assert_allclose(embedding.at(rows), expected.ravel(), atol=1e-12)


@pytest.mark.parametrize("tree", TREES, ids=repr)
@pytest.mark.parametrize("rank", [1, 2])
def test_the_squared_error_is_the_sum_of_the_discarded_eigenvalues(tree, rank, rng):
    table = random_table(rng)
    rows, weights, features = population(table)
    embedding = exact_embedding(rows, features, read_tree(tree, 4), rank, weights=weights)
    error = np.sum((table.ravel() - embedding.at(rows)) ** 2)
    assert embedding.discarded == pytest.approx(error, rel=1e-10)
    assert frobenius(embedding, rows, weights)[0] ** 2 == pytest.approx(error, rel=1e-8)
    assert frobenius(embedding, rows, weights)[1] ** 2 == pytest.approx(np.sum(table**2), rel=1e-10)
    left_out = sum(spectrum[rank:].sum() for spectrum in embedding.spectra.values())
    assert left_out == pytest.approx(error, rel=1e-10)


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_theorem_2_bounds_the_error(tree, rng):
    rows = rng.normal(size=(60, 4)) @ rng.normal(size=(4, 4))
    shape = read_tree(tree, 4)
    for rank in (1, 2, 4):
        features = sample_features(rows, Gaussian(1.0))
        error, norm = frobenius(exact_embedding(rows, features, shape, rank), rows)
        bound = theorem_2_bound(rows, features, shape, rank)
        assert error <= bound * (1 + 1e-9)
        assert bound / np.sqrt(len(shape.edges)) <= error * (1 + 1e-9)  # no cut does better than its own best
        assert 0 < error < norm
    ranks = [1 + e % 3 for e in range(len(shape.edges))]
    error, _ = frobenius(exact_embedding(rows, features, shape, ranks), rows)
    bound = theorem_2_bound(rows, features, shape, ranks)
    assert error <= bound * (1 + 1e-9)
    assert theorem_2_bound(rows, features, shape, 3) < bound <= theorem_2_bound(rows, features, shape, 1)


def test_the_caterpillar_cuts_one_edge_less_than_it_has_columns_and_a_tree_at_most_2d_less_3():
    for d in (2, 3, 6):
        assert len(caterpillar(d).edges) == d - 1
    assert len(read_tree(BALANCED, 4).edges) == 5
    assert len(read_tree((0, 1, 2, 3, 4, 5), 6).edges) == 9


@pytest.mark.parametrize("rank", [2, 3])
def test_theorem_1_every_edge_of_a_latent_tree_has_at_most_the_rank_of_its_hidden_variables(rank, rng):
    tree, other = random_nested(5, rng), random_nested(5, rng)
    while quartets(read_tree(tree, 5), 5) == quartets(read_tree(other, 5), 5):
        other = random_nested(5, rng)
    table = latent_tree_table(tree, rank, (3, 4, 3, 4, 3), rng)
    rows, weights, features = population(table)
    embedding = exact_embedding(rows, features, read_tree(tree, 5), None, weights=weights)
    for spectrum in embedding.spectra.values():
        assert np.all(spectrum[rank:] < 1e-12 * spectrum[0])
    cut = exact_embedding(rows, features, read_tree(tree, 5), rank, weights=weights)
    np.testing.assert_allclose(cut.at(rows), table.ravel(), atol=1e-10)
    wrong = exact_embedding(rows, features, read_tree(other, 5), rank, weights=weights)
    assert np.abs(wrong.at(rows) - table.ravel()).max() > 1e-6


@pytest.mark.parametrize("tree", TREES, ids=repr)
@pytest.mark.parametrize("kernel", [Gaussian(0.7), Laplace(0.8)], ids=repr)
def test_full_rank_is_the_product_kernel_density_estimate(tree, kernel, rng):
    rows, points = rng.normal(size=(40, 4)), rng.normal(size=(25, 4))
    embedding = exact_embedding(rows, sample_features(rows, kernel), read_tree(tree, 4))
    kde = np.prod([kernel.gram(points[:, [j]], rows[:, [j]]) for j in range(4)], axis=0).mean(axis=1)
    np.testing.assert_allclose(embedding.at(points), kde, atol=1e-7 * kde.max())
    assert embedding.mass == pytest.approx(1.0, abs=1e-6)


def test_the_papers_algorithm_on_gram_matrices_gives_the_same(rng):
    rows, points = rng.normal(size=(50, 4)), rng.normal(size=(20, 4))
    embedding = exact_embedding(rows, sample_features(rows, Gaussian(0.8)), caterpillar(4), 3)
    values, mass = song_dai_train([Gaussian(0.8)] * 4, rows, points, 3)
    np.testing.assert_allclose(
        embedding.at(points), values, atol=1e-6 * np.abs(values).max()
    )  # theirs inverts the kernel
    assert embedding.mass == pytest.approx(mass, rel=1e-6)


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_mass_and_marginals_are_sums_of_the_table(tree, rng):
    table = random_table(rng)
    rows, weights, features = population(table)
    embedding = exact_embedding(rows, features, read_tree(tree, 4), 2, weights=weights)
    fitted = embedding.at(rows).reshape(table.shape)
    assert embedding.mass == pytest.approx(fitted.sum(), abs=1e-14)
    pair = embedding.marginal([0, 3])
    assert pair.columns == [0, 3]
    np.testing.assert_allclose(
        pair.at(rows[:, [0, 3]]), fitted.sum(axis=(1, 2))[rows[:, 0].astype(int), rows[:, 3].astype(int)], atol=1e-14
    )
    some = rows.copy()
    some[:, [1, 2]] = np.nan  # a missing value is integrated out
    np.testing.assert_allclose(embedding.at(some), pair.at(rows[:, [0, 3]]), atol=1e-14)
    given = embedding.conditional({1: 2.0, 2: 1.0})
    slab = fitted[:, 2, 1, :]
    np.testing.assert_allclose(
        given.at(rows[:, [0, 3]]), (slab / slab.sum())[rows[:, 0].astype(int), rows[:, 3].astype(int)], atol=1e-12
    )
    assert given.mass == pytest.approx(1.0)


def test_queries_are_expectations_of_products(rng):
    rows = rng.normal(size=(80, 3))
    embedding = exact_embedding(rows, sample_features(rows, Gaussian(0.9)), caterpillar(3))
    points, coefficients = np.array([-1.0, 0.5]), np.array([2.0, -1.0])
    f = Gaussian(0.9).gram(rows[:, [0]], points[:, None]) @ coefficients
    g = Gaussian(0.9).gram(rows[:, [2]], np.array([[0.3]]))[:, 0]
    found = embedding.expectation({0: (points, coefficients), 2: ([0.3], [1.0])})
    assert found == pytest.approx(np.mean(f * g), abs=1e-8)
    with pytest.raises(ValueError, match="functions of the columns"):
        embedding.expectation({5: ([0.0], [1.0])})


def test_where_the_estimate_is_not_positive_it_has_no_conditional():
    ring = np.eye(8) + np.roll(np.eye(8), 1, axis=1) + np.roll(np.eye(8), -1, axis=1)
    rows, weights, features = population((ring / 48)[:, :, None] * np.ones(2))
    embedding = exact_embedding(rows, features, caterpillar(3), 3, weights=weights)
    assert embedding.marginal([0, 1]).at([[0.0, 3.0]])[0] < -1e-3
    with pytest.raises(ValueError, match=r"estimate is -0.0.* at \{0: 0.0, 1: 3.0\}, so it has no conditional there"):
        embedding.conditional({0: 0.0, 1: 3.0})
    assert embedding.conditional({0: 0.0, 1: 1.0}).mass == pytest.approx(1.0)


def test_ranks_may_differ_between_edges_or_follow_from_a_tolerance(rng):
    table = random_table(rng)
    rows, weights, features = population(table)
    tree = read_tree(BALANCED, 4)
    embedding = exact_embedding(rows, features, tree, [1, 2, 2, 2, 3], weights=weights)
    assert [embedding.ranks[edge] for edge in tree.edges] == [1, 2, 2, 2, 3]
    for tol in (0.3, 0.05):
        embedding = exact_embedding(rows, features, tree, tol=tol, weights=weights)
        norm = np.sum(table**2)
        for edge, spectrum in embedding.spectra.items():
            assert spectrum[embedding.ranks[edge] :].sum() <= tol * norm
            assert embedding.ranks[edge] == 1 or spectrum[embedding.ranks[edge] - 1 :].sum() > tol * norm
    with pytest.raises(ValueError, match="one for each of the 5 edges; got 2"):
        exact_embedding(rows, features, tree, [1, 2], weights=weights)
    with pytest.raises(ValueError, match="rank must be an integer of at least 1"):
        exact_embedding(rows, features, tree, 0, weights=weights)


def test_mixed_kernels_stand_side_by_side(rng):
    rows = np.column_stack([rng.normal(size=100), rng.integers(3, size=100)])
    features = [*sample_features(rows[:, :1], Gaussian(0.5)), OneHotFeatures().fit(rows[:, 1:])]
    embedding = exact_embedding(rows, features, caterpillar(2))
    expected = (Gaussian(0.5).gram(rows[:, :1], rows[:, :1]) * Delta().gram(rows[:, 1:], rows[:, 1:])).mean(axis=1)
    np.testing.assert_allclose(embedding.at(rows), expected, atol=1e-8)
    assert embedding.mass == pytest.approx(1.0, abs=1e-7)


def test_one_column_is_its_kernel_density_estimate(rng):
    rows = rng.normal(size=(30, 1))
    embedding = exact_embedding(rows, sample_features(rows, Gaussian(0.5)), caterpillar(1), 2)
    np.testing.assert_allclose(embedding.at(rows), Gaussian(0.5).gram(rows, rows).mean(axis=1), atol=1e-8)


def quartets(tree, d):
    """The splits of the tree into at least two columns on either side."""
    everything = frozenset(range(d))
    return {frozenset([edge, everything - edge]) for edge in tree.edges if 1 < len(edge) < d - 1}


def random_nested(d, rng):
    parts = list(range(d))
    while len(parts) > 3:
        i, j = sorted(rng.choice(len(parts), size=2, replace=False))
        parts = [part for k, part in enumerate(parts) if k not in (i, j)] + [(parts[i], parts[j])]
    return tuple(parts)


def test_the_tree_is_learned_from_the_distances_of_population_embeddings(rng):
    for _ in range(3):
        nested = random_nested(6, rng)
        table = latent_tree_table(nested, 2, (3,) * 6, rng)
        rows, weights, features = population(table)
        phi = [one.transform(rows[:, [j]]) for j, one in enumerate(features)]
        distances = embedding_distances(phi, 2, weights)
        assert quartets(read_tree(tree_from_distances(distances), 6), 6) >= quartets(read_tree(nested, 6), 6)


def test_a_networkx_tree_is_read_as_its_nested_tuples():
    graph = nx.Graph([("a", 0), ("a", 1), ("a", "b"), ("b", 2), ("b", 3)])
    assert quartets(read_tree(graph, 4), 4) == quartets(read_tree(BALANCED, 4), 4)
    named = nx.Graph([("h", "x"), ("h", "y"), ("h", "z")])
    assert read_tree(named, 3, ["x", "y", "z"]).n_columns == 3
    assert read_tree(nx.Graph([(0, 1)]), 2).n_columns == 2
    rooted = nx.DiGraph([("a", 0), ("a", 1), ("a", "b"), ("b", 2), ("b", 3)])
    assert read_tree(rooted, 4).edges == read_tree(graph, 4).edges


def test_columns_that_are_not_used_are_cut_off_the_tree():
    assert read_tree(((0, 1), (2, (3, 4))), 5, columns=[0, 3, 4]).edges == read_tree((0, (1, 2)), 3).edges
    assert read_tree("caterpillar", 5, columns=[0, 3, 4]).edges == caterpillar(3).edges
    with pytest.raises(ValueError, match="the columns 0 to 4, each once"):
        read_tree((0, (1, 2)), 5, columns=[0, 3, 4])


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ((0, 1), r"leaves of the tree must be the columns 0 to 2, each once; got \[0, 1\]"),
        ((0, 1, 2, 2), "each once"),
        ((0, 1, "x"), "column numbers, or names of columns; got 'x'"),
        ((0, 1, ()), "no columns below it"),
        ("star", 'tree must be "caterpillar", "auto", nested tuples'),
        (5, 'tree must be "caterpillar", "auto", nested tuples'),
        (nx.Graph, 'tree must be "caterpillar", "auto", nested tuples'),
        (reduce(lambda part, _: (part,), range(5000), 0), "nested more deeply than can be read"),
        (nx.cycle_graph(4), "must be a tree: connected, without cycles"),
        (nx.path_graph(3), "Every column must be a leaf"),
        (nx.Graph([("h", 0), ("h", 1), ("h", "u")]), "column numbers, or names of columns; got 'u'"),
        (nx.Graph([("h", 0), ("h", 1), ("k", 2), ("k", "l"), ("k", "m"), ("l", "m")]), "must be a tree"),
    ],
    ids=range(12),
)
def test_a_tree_that_does_not_fit_the_columns_is_refused(tree, message):
    with pytest.raises(ValueError, match=message):
        read_tree(tree, 3)


def related(design, n, d, rng):
    """Standardised rows of d related columns."""
    if design == "mixture":
        rows = 2 * rng.normal(size=(3, d))[rng.integers(3, size=n)] + rng.normal(size=(n, d))
    else:
        rows = rng.normal(size=(n, d))
        for j in range(1, d):
            rows[:, j] = 0.8 * rows[:, j - 1] + 0.6 * rows[:, j]
    return (rows - rows.mean(axis=0)) / rows.std(axis=0)


@pytest.mark.parametrize("design", ["mixture", "chain"])
@pytest.mark.parametrize("tree", ["caterpillar", ((0, 1), (2, 3), ((4, 5), (6, 7)))], ids=["caterpillar", "balanced"])
@pytest.mark.parametrize("rank", [2, 5])
def test_the_sketched_train_is_within_two_per_cent_of_the_exact_error(design, tree, rank, rng):
    rows = related(design, 400, 8, rng)
    features = [LandmarkFeatures(Gaussian(1.0), 30, selection="cholesky").fit(x[:, None]) for x in rows.T]
    exact, norm = frobenius(exact_embedding(rows, features, read_tree(tree, 8), rank), rows)
    found, _ = frobenius(sketched_embedding(rows, features, read_tree(tree, 8), rank, rng), rows)
    assert exact / norm < 0.7
    assert found < 1.02 * exact


def test_a_stream_of_weighted_batches_gives_the_same_sketch_as_all_rows(rng):
    rows, weights = related("mixture", 700, 5, rng), rng.uniform(size=700)
    features = [LandmarkFeatures(Gaussian(1.0), 20, selection="cholesky").fit(x[:, None]) for x in rows.T]
    batches = [(rows[i : i + 150], weights[i : i + 150]) for i in range(0, 700, 150)]
    whole = sketched_embedding(rows, features, caterpillar(5), 3, np.random.default_rng(1), weights=weights)
    parts = sketched_embedding(batches, features, caterpillar(5), 3, np.random.default_rng(1))
    np.testing.assert_allclose(parts.at(rows), whole.at(rows), atol=1e-10)
    exact = exact_embedding(rows, features, caterpillar(5), 3, weights=weights)
    np.testing.assert_allclose(whole.at(rows), exact.at(rows), atol=0.02 * exact.at(rows).max())
    assert whole.mass == pytest.approx(exact.mass, abs=0.01)


def test_a_sketch_of_a_low_rank_population_is_exact(rng):
    table = latent_tree_table(((0, 1), (2, 3), 4), 2, (3, 4, 3, 4, 3), rng)
    rows, weights, features = population(table)
    embedding = sketched_embedding(rows, features, read_tree(((0, 1), (2, 3), 4), 5), 2, rng, weights=weights)
    np.testing.assert_allclose(embedding.at(rows), table.ravel(), atol=1e-10)
    assert list(embedding.ranks.values()) == [2] * 7
    by_tolerance = sketched_embedding(rows, features, caterpillar(5), 8, rng, tol=1e-10, weights=weights)
    assert max(by_tolerance.ranks.values()) < 8
    with pytest.raises(ValueError, match="needs a rank for every edge"):
        sketched_embedding(rows, features, caterpillar(5), None, rng, weights=weights)


def test_a_sketch_of_one_column_is_its_mean(rng):
    rows = rng.normal(size=(30, 1))
    features = sample_features(rows, Gaussian(0.5))
    found = sketched_embedding(rows, features, caterpillar(1), 2, rng).at(rows)
    np.testing.assert_allclose(found, exact_embedding(rows, features, caterpillar(1), 2).at(rows), atol=1e-12)


@pytest.mark.parametrize("tree", TREES, ids=repr)
@pytest.mark.parametrize("rank", [None, 2], ids=["full", "rank 2"])
def test_inner_products_of_embeddings_are_those_of_their_tables(tree, rank, rng):
    tables = [random_table(rng) for _ in range(2)]
    rows, _, features = population(tables[0])
    first, second = (
        exact_embedding(rows, features, read_tree(tree, 4), rank, weights=table.ravel()) for table in tables
    )

    values = [embedding.at(rows) for embedding in (first, second)]

    np.testing.assert_allclose(first.inner(second), values[0] @ values[1], rtol=1e-10)
    np.testing.assert_allclose(first.inner(first), first.squared_norm(), rtol=1e-10)
    np.testing.assert_allclose(first.mmd(second), np.linalg.norm(values[0] - values[1]), rtol=1e-8)


def test_inner_products_of_marginals_and_conditionals_are_those_of_their_tables(rng):
    tables = [random_table(rng) for _ in range(2)]
    rows, _, features = population(tables[0])
    whole = [exact_embedding(rows, features, read_tree(BALANCED, 4), weights=table.ravel()) for table in tables]

    marginal = [embedding.marginal([0, 2]) for embedding in whole]
    given = [embedding.conditional({1: 2.0}) for embedding in whole]

    expected = np.sum(tables[0].sum(axis=(1, 3)) * tables[1].sum(axis=(1, 3)))
    np.testing.assert_allclose(marginal[0].inner(marginal[1]), expected, rtol=1e-10)
    parts = [table[:, 2] / table[:, 2].sum() for table in tables]
    np.testing.assert_allclose(given[0].inner(given[1]), np.sum(parts[0] * parts[1]), rtol=1e-10)
    with pytest.raises(ValueError, match="same columns"):
        marginal[0].inner(given[1])
    with pytest.raises(ValueError, match="along one tree"):
        whole[0].inner(exact_embedding(rows, features, read_tree("caterpillar", 4), weights=tables[0].ravel()))
