"""Gram matrices of strings and graphs."""

from itertools import product

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from latentviews import spectrum_gram, weisfeiler_lehman_gram

pytestmark = pytest.mark.cheap


def literal_spectrum(strings, length, mismatches):
    """Counts over all words of the alphabet, one by one."""
    letters = sorted(set("".join(strings)))
    words = ["".join(word) for word in product(letters, repeat=length)]

    def near(one, other):
        return sum(a != b for a, b in zip(one, other, strict=True)) <= mismatches

    table = np.array(
        [
            [sum(near(text[i : i + length], w) for i in range(len(text) - length + 1)) for w in words]
            for text in strings
        ],
        dtype=float,
    )
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    return table @ table.T


@pytest.mark.parametrize("mismatches", [0, 1, 2])
def test_the_spectrum_kernel_is_the_product_of_counts_of_all_words(mismatches, rng):
    strings = ["".join(rng.choice(list("ACG"), size=9)) for _ in range(5)]

    np.testing.assert_allclose(spectrum_gram(strings, 3, mismatches), literal_spectrum(strings, 3, mismatches))


def test_weisfeiler_lehman_counts_by_hand():
    path, triangle = nx.path_graph(3), nx.complete_graph(3)

    # labels at step 0: one for all; at step 1: degrees, two ends and a middle against three of degree two
    gram = weisfeiler_lehman_gram([path, triangle], 1)

    expected = (3 * 3 + 1 * 3) / np.sqrt((9 + 4 + 1) * (9 + 9))
    np.testing.assert_allclose(gram, [[1, expected], [expected, 1]])


def test_nodes_may_be_named_in_any_order_and_given_labels_count(rng):
    graph = nx.gnp_random_graph(8, 0.4, seed=1)
    nx.set_node_attributes(graph, {node: "CNO"[node % 3] for node in graph}, "atom")
    renamed = nx.relabel_nodes(graph, dict(zip(graph, rng.permutation(8).tolist(), strict=True)))
    other = graph.copy()
    other.nodes[0]["atom"] = "S"

    same, changed = (weisfeiler_lehman_gram([graph, one], 3, "atom")[0, 1] for one in (renamed, other))

    assert same == pytest.approx(1)
    assert changed < 0.99


def test_strings_and_graphs_may_be_an_array_or_a_column_of_a_table():
    strings, graphs = ["ABAB", "BABA", "AABB"], [nx.path_graph(4), nx.cycle_graph(4)]

    for some in (np.array(strings), pd.Series(strings, index=[7, 8, 9]), iter(strings)):
        np.testing.assert_array_equal(spectrum_gram(some, 2), spectrum_gram(strings, 2))
    np.testing.assert_array_equal(weisfeiler_lehman_gram(pd.Series(graphs)), weisfeiler_lehman_gram(graphs))


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda: spectrum_gram(["ABC", "A"], 2), "at least 2 letters; number 1 is 'A'"),
        (lambda: spectrum_gram("ABC"), "takes a list of strings, at least one; got 'ABC'"),
        (lambda: spectrum_gram([]), "at least one; got .."),
        (lambda: weisfeiler_lehman_gram(nx.path_graph(2)), "takes a list of networkx graphs"),
        (lambda: spectrum_gram(["ABC"], 2, 2), "mismatches must be fewer than length; got 2 of 2"),
        (lambda: weisfeiler_lehman_gram(["no graph"]), "takes networkx graphs with at least one node; got 'no graph'"),
        (lambda: weisfeiler_lehman_gram([nx.path_graph(2)], 1, "atom"), "Node 0 of a graph has no attribute 'atom'"),
    ],
)
def test_what_is_no_string_or_graph_is_a_sentence(ask, sentence):
    with pytest.raises(ValueError, match=sentence):
        ask()
