"""Communities: exact memberships from exact blocks, errors that fall with the graph, and graphs of every kind."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.optimize import linear_sum_assignment, nnls

from latentviews import CommunityModel, IdentifiabilityWarning, JointDiagonalization, PowerMethod, load, save
from latentviews.discrete.blockmodels import on_simplex
from latentviews.discrete.stars import leading_eigenvectors, star_memberships, stars_of
from latentviews.metrics import label_accuracy
from truths import share_moments

CONNECTIVITY = np.array([[0.5, 0.1, 0.05], [0.1, 0.4, 0.1], [0.05, 0.1, 0.6]])


def matched(found, truth):
    """Columns of memberships in the order of the truth."""
    return found[:, linear_sum_assignment(truth.T @ found, maximize=True)[1]]


def error(found, truth):
    """The mean total variation of shares."""
    return np.abs(matched(found, truth) - truth).sum() / (2 * len(truth))


def planted(n, rng, concentration=1.0, inside=0.3, between=0.05):
    """A graph of three communities, and the shares of its nodes."""
    shares = rng.dirichlet(np.full(3, concentration / 3), size=n)
    chances = shares @ (between + (inside - between) * np.eye(3)) @ shares.T
    above = np.triu(rng.random((n, n)) < chances, 1)
    return sparse.csr_array((above | above.T).astype(float)), shares


def dirichlet_design(alpha, n, rng):
    """Shares of n nodes and what each counts for, with the first three moments of a Dirichlet law exactly."""
    shares = np.vstack([np.eye(3), rng.dirichlet(np.ones(3) / 2, size=n - 3)])
    moments = share_moments(alpha)
    powers = [np.einsum(spec, *[shares] * t).reshape(n, -1) for t, spec in ((1, "ni->ni"), (2, "ni,nj->nij"))]
    powers.append(np.einsum("ni,nj,nl->nijl", shares, shares, shares).reshape(n, -1))
    weights, rest = nnls(np.hstack(powers).T, np.concatenate([m.ravel() for m in moments]), maxiter=10_000)
    assert rest < 1e-12
    return shares, weights


@pytest.mark.cheap
@pytest.mark.parametrize("concentration", [0.1, 1.0, 3.0, 10.0])
def test_memberships_are_exact_on_exact_blocks(concentration, rng):
    alpha = concentration * np.array([0.5, 0.3, 0.2])
    shares, counts = dirichlet_design(alpha, 300, rng)
    expected = sparse.csr_array(shares @ CONNECTIVITY @ shares.T)

    found = star_memberships(
        expected, leading_eigenvectors(expected, 3, rng), concentration, JointDiagonalization(), rng, counts
    )

    np.testing.assert_allclose(matched(found.memberships, shares), shares, atol=1e-8)
    np.testing.assert_allclose(np.sort(found.weights), [0.2, 0.3, 0.5], atol=1e-8)


@pytest.mark.cheap
def test_the_concentration_is_found_on_exact_blocks(rng):
    shares, counts = dirichlet_design(1.5 * np.array([0.5, 0.3, 0.2]), 300, rng)
    expected = sparse.csr_array(shares @ CONNECTIVITY @ shares.T)

    found = star_memberships(
        expected, leading_eigenvectors(expected, 3, rng), None, JointDiagonalization(), rng, counts
    )

    assert found.concentration == pytest.approx(1.5, rel=2e-3)


@pytest.mark.cheap
@pytest.mark.parametrize("concentration", [0.0, 1e-10])
def test_a_vanishing_concentration_is_the_stochastic_blockmodel(concentration, rng):
    shares = np.eye(3)[rng.choice(3, p=[0.5, 0.3, 0.2], size=120)]
    expected = sparse.csr_array(shares @ CONNECTIVITY @ shares.T)
    stars = stars_of(expected, leading_eigenvectors(expected, 3, rng)[1], rng)

    parts = stars.parts(concentration, JointDiagonalization(), 0)

    np.testing.assert_allclose(matched(stars.memberships(parts), shares), shares, atol=1e-8)
    means = np.array([[view[shares[:, h] == 1].mean(axis=0) for h in range(3)] for view in stars.views])
    blocks = np.concatenate(means.transpose(0, 2, 1))  # of every block, one community per column
    order = np.argsort(-shares.mean(axis=0))
    np.testing.assert_allclose(parts.vectors, blocks[:, order], atol=1e-8)


def test_a_graph_of_pure_nodes_is_parted_without_error(rng):
    labels = np.repeat([0, 1, 2], [60, 50, 40])
    above = np.triu(rng.random((150, 150)) < np.where(labels[:, None] == labels, 0.5, 0.05), 1)

    model = CommunityModel(3, concentration=0.0, random_state=0).fit(above | above.T)

    np.testing.assert_array_equal(model.labels_, labels)
    np.testing.assert_allclose(np.diag(model.connectivity_), 0.5, atol=0.08)


def test_errors_fall_as_the_root_of_the_number_of_nodes():
    errors = []
    for n in (300, 1200):
        draws = [planted(n, np.random.default_rng(seed)) for seed in range(2)]
        fits = [CommunityModel(3, 1.0, max_iter=20, random_state=0).fit(links) for links, _ in draws]
        errors.append(np.mean([error(fit.memberships_, shares) for fit, (_, shares) in zip(fits, draws, strict=True)]))

    assert 0.35 < errors[1] / errors[0] < 0.65  # one half at the rate n^(-1/2)


def test_mixed_memberships_are_nearer_than_those_of_disjoint_communities(rng):
    links, shares = planted(500, rng)
    graph = nx.from_scipy_sparse_array(links)
    model = CommunityModel(3, random_state=0).fit(links)

    sets = nx.community.louvain_communities(graph, weight=None, seed=0)
    disjoint = np.zeros((500, max(len(sets), 3)))
    for h, nodes in enumerate(sets):
        disjoint[list(nodes), h] = 1.0
    truth = np.pad(shares, ((0, 0), (0, disjoint.shape[1] - 3)))
    assert error(model.memberships_, shares) < 0.8 * error(disjoint, truth)


def test_steps_come_nearer_than_the_moments_alone(rng):
    links, shares = planted(500, rng, concentration=0.3)
    moments, steps = (CommunityModel(3, 0.3, max_iter=n, random_state=0).fit(links) for n in (0, 50))

    assert error(steps.memberships_, shares) < 0.9 * error(moments.memberships_, shares)


@pytest.mark.cheap
def test_the_nearest_shares_are_those_of_the_simplex(rng):
    rows = rng.normal(size=(50, 4))
    shares = on_simplex(rows)

    assert np.all(shares >= 0)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    for other in rng.dirichlet(np.ones(4), size=20):
        assert np.all(np.sum((rows - shares) * (other - shares), axis=1) < 1e-12)  # what makes it the nearest


def test_every_form_of_a_graph_gives_the_same(rng):
    links, _ = planted(90, rng, concentration=0.1, inside=0.6)
    names = [f"n{i}" for i in range(90)]
    graph = nx.relabel_nodes(nx.from_scipy_sparse_array(links), dict(enumerate(names)))
    forms = [links, links.toarray(), links.toarray() > 0, sparse.coo_matrix(links), graph]
    forms.append(pd.DataFrame(links.toarray(), index=names, columns=names))

    fits = [CommunityModel(3, 0.1, random_state=0).fit(form) for form in forms]

    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.memberships_, fits[0].memberships_)
    assert fits[-1].nodes_.tolist() == fits[-2].nodes_.tolist() == names
    assert fits[0].nodes_.tolist() == list(range(90))
    np.testing.assert_array_equal(CommunityModel(3, 0.1, random_state=0).fit_predict(links), fits[0].labels_)


def test_nodes_without_links_have_the_mean_shares(rng):
    links, _ = planted(120, rng, inside=0.5)
    wider = sparse.csr_array(sparse.block_diag([links, sparse.csr_array((2, 2))]))

    model, without = (CommunityModel(3, 1.0, random_state=0).fit(one) for one in (wider, links))

    np.testing.assert_array_equal(model.memberships_[:120], without.memberships_)
    np.testing.assert_allclose(model.memberships_[120:], np.tile(model.weights_, (2, 1)))


def test_disconnected_parts_are_communities():
    graph = nx.disjoint_union_all([nx.complete_graph(n) for n in (12, 10, 8)])

    model = CommunityModel(3, 0.0, random_state=0).fit(graph)

    assert model.labels_.tolist() == [0] * 12 + [1] * 10 + [2] * 8
    np.testing.assert_allclose(model.connectivity_, np.eye(3), atol=0.01)


def test_new_nodes_have_shares_by_their_links(rng):
    links, shares = planted(800, rng)
    model = CommunityModel(3, 1.0, random_state=0).fit(links[:700, :700])
    found = model.transform(links[700:, :700])

    assert error(found, matched_truth(model, shares)) < 0.15
    np.testing.assert_allclose(model.transform(np.zeros((1, 700)))[0], model.weights_)
    with pytest.raises(ValueError, match="links needs one column per node of the fit, 700; got 3"):
        model.transform(np.zeros((1, 3)))


def matched_truth(model, shares):
    """The shares of the last hundred nodes, in the model's order of communities."""
    return shares[700:, linear_sum_assignment(model.memberships_.T @ shares[:700], maximize=True)[1]]


@pytest.mark.parametrize("graph", [nx.karate_club_graph(), nx.davis_southern_women_graph()], ids=["karate", "davis"])
def test_recorded_graphs_have_communities_that_fit_better_than_none(graph):
    model = CommunityModel(2, 1.0, random_state=0).fit(graph)
    links = nx.to_numpy_array(graph, weight=None)
    chances = model.memberships_ @ model.connectivity_ @ model.memberships_.T
    share = links.sum() / (len(links) * (len(links) - 1))
    off = ~np.eye(len(links), dtype=bool)

    assert model.nodes_.tolist() == list(graph)
    assert np.mean((links - chances)[off] ** 2) < 0.9 * np.mean((links - share)[off] ** 2)


def test_the_karate_club_parts_where_it_did():
    graph = nx.karate_club_graph()
    found = CommunityModel(2, 1.0, random_state=0).fit(graph).labels_

    assert label_accuracy([graph.nodes[node]["club"] == "Officer" for node in graph], found) > 0.95


def test_women_and_events_are_told_apart_by_links_between_them_alone():
    graph = nx.davis_southern_women_graph()
    model = CommunityModel(2, 0.1, random_state=0).fit(graph)
    sides = np.array([graph.nodes[node]["bipartite"] for node in graph])

    assert np.all(model.labels_ == sides) or np.all(model.labels_ == 1 - sides)
    assert model.connectivity_[0, 1] > 10 * np.diag(model.connectivity_).max()


def test_two_communities_do_not_tell_their_concentration(rng):
    with pytest.warns(
        IdentifiabilityWarning, match="do not tell the concentration of two parts: it is taken to be 1. Pass"
    ):
        model = CommunityModel(2, random_state=0).fit(planted(90, rng)[0])
    assert model.concentration_ == 1.0


def test_links_that_show_fewer_communities_are_spoken_of_once():
    with pytest.warns(IdentifiabilityWarning) as caught:
        CommunityModel(2, 1.0, random_state=0).fit(nx.complete_graph(40))

    assert [str(one.message) for one in caught] == [
        "The links show fewer than 2 communities: the rest is rounding. Ask for fewer."
    ]


def test_a_concentration_that_noise_covers_is_spoken_of(rng, recwarn):
    few, clear = planted(150, rng)[0], planted(600, rng, 0.5, inside=0.6)[0]
    CommunityModel(3, random_state=0).fit(clear)
    CommunityModel(3, 1.0, random_state=0).fit(few)
    assert not recwarn.list

    with pytest.warns(
        IdentifiabilityWarning, match=r"found, [\d.]+, is rough.* is [\d.]+ times the noise of the links"
    ):
        CommunityModel(3, random_state=0).fit(few)


def test_one_community_has_no_concentration_to_tell(recwarn):
    assert CommunityModel(1, random_state=0).fit(nx.path_graph(9)).weights_ == [1.0]
    assert not recwarn.list


@pytest.mark.filterwarnings("ignore:The links show fewer:latentviews.IdentifiabilityWarning")
def test_a_graph_of_fewer_communities_starts_from_clusters():
    with pytest.warns(IdentifiabilityWarning, match="The steps start from clusters of eigenvectors"):
        model = CommunityModel(4, 1.0, random_state=0).fit(nx.complete_graph(30))

    assert model.start_ == "clusters"
    np.testing.assert_allclose(model.memberships_.sum(axis=1), 1)
    chances = model.memberships_ @ model.connectivity_ @ model.memberships_.T
    assert chances[~np.eye(30, dtype=bool)].min() > 0.9  # all are linked, whatever the communities


def test_other_solvers_find_the_same(rng):
    links, _ = planted(300, rng)
    fits = [CommunityModel(3, 1.0, solver=s, random_state=0).fit(links) for s in (None, PowerMethod())]

    assert error(fits[1].memberships_, fits[0].memberships_) < 0.02


RING = nx.to_numpy_array(nx.cycle_graph(9))


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (nx.empty_graph(9), "G has 9 nodes and no links"),
        (nx.Graph(), "G has 0 nodes and no links"),
        (nx.DiGraph([(0, 1)]), "undirected graphs; got a directed one. Pass G.to_undirected"),
        (np.triu(RING), "not symmetric, as of a directed graph"),
        (2.5 * RING, "G holds 2.5; links have no weights here"),
        (np.where(RING, np.nan, 0.0), "G holds nan; links have no weights here"),
        (RING + np.eye(9), "G links some nodes to themselves"),
        (nx.Graph([("a", "a"), ("a", "b")]), "G links 'a' to itself"),
        (RING[:5], r"one row and one column per node; got shape \(5, 9\)"),
        ("karate", "must be a networkx graph or a table of zeros and ones"),
        (nx.cycle_graph(5), "2 communities need 6 nodes with links.*got 5. Ask for fewer"),
    ],
    ids=range(11),
)
def test_what_is_no_such_graph_gets_a_sentence(graph, message):
    with pytest.raises(ValueError, match=message):
        CommunityModel(2, 1.0, random_state=0).fit(graph)


def test_a_saved_model_keeps_names_and_memberships(tmp_path):
    model = CommunityModel(2, 1.0, random_state=0).fit(nx.davis_southern_women_graph())

    save(model, tmp_path / "davis.latentviews")
    again = load(tmp_path / "davis.latentviews")

    assert again.nodes_.tolist() == model.nodes_.tolist()
    np.testing.assert_array_equal(again.memberships_, model.memberships_)
