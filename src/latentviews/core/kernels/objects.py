"""Gram matrices of strings and graphs, for `Precomputed`."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np
from scipy import sparse

from latentviews._validation import check_count


def spectrum_gram(strings: Sequence[str], length: int = 3, mismatches: int = 0) -> np.ndarray:
    r"""The spectrum kernel between strings: how many substrings they share (Leslie, Eskin & Noble 2002).

    .. math:: k(s, t) = \frac{\sum_u c_u(s)\, c_u(t)}{\sqrt{\sum_u c_u(s)^2 \sum_u c_u(t)^2}}

    c_u counts the substrings of a string that are u, or differ from u in at most so many ``mismatches`` (Leslie, Eskin,
    Cohen, Weston & Noble 2004).

    Parameters
    ----------
    strings : list, array or column of str
        None shorter than ``length``.
    length : int, default=3
        Of the substrings.
    mismatches : int, default=0
        Below ``length``. The alphabet is all letters that occur.

    Returns
    -------
    array of shape (n, n)
        With ones on the diagonal.

    Examples
    --------
    Three reads each of 200 organisms of two kinds, one of which likes CG beside each other and the other AT:

    >>> import numpy as np
    >>> from latentviews import MultiViewMixture, Precomputed, spectrum_gram
    >>> rng = np.random.default_rng(0)
    >>> kinds = np.repeat([0, 1], [120, 80])
    >>> pairs = [["CG", "GC", "AC", "GT"], ["AT", "TA", "AC", "GT"]]
    >>> reads = [["".join(rng.choice(pairs[kind], size=15)) for kind in kinds] for _ in range(3)]
    >>> kernels = [Precomputed(spectrum_gram(some, 3)) for some in reads]
    >>> organisms = np.tile(np.arange(200.0)[:, None], (1, 3))
    >>> model = MultiViewMixture(2, kernel=kernels, random_state=0).fit(organisms)
    >>> int((model.predict(organisms) == kinds).sum())
    200
    """
    length, mismatches = check_count("length", length), check_count("mismatches", mismatches, 0)
    if mismatches >= length:
        raise ValueError(f"mismatches must be fewer than length; got {mismatches} of {length}.")
    strings = _listed(strings, "spectrum_gram takes a list of strings, at least one")
    short = [i for i, text in enumerate(strings) if not isinstance(text, str) or len(text) < length]
    if short:
        raise ValueError(f"Strings need at least {length} letters; number {short[0]} is {strings[short[0]]!r}.")
    letters = sorted(set().union(*strings))
    counts = [Counter(text[i : i + length] for i in range(len(text) - length + 1)) for text in strings]
    around = {word: list(_neighbours(word, mismatches, letters)) for word in set().union(*counts)}
    return unit_gram([_spread(count, around) for count in counts])


def _listed(objects: Any, wanted: str) -> list[Any]:
    """Objects of a list, an array or a column of a table, in order."""
    single = isinstance(objects, str | bytes | Mapping) or hasattr(objects, "adj")
    if single or not isinstance(objects, Iterable) or not len(found := list(objects)):
        raise ValueError(f"{wanted}; got {objects!r:.80}.")
    return found


def _neighbours(word: str, mismatches: int, letters: Sequence[str]) -> Iterable[str]:
    """All words that differ from one in at most so many letters."""
    yield word
    for many in range(1, mismatches + 1):
        for places in combinations(range(len(word)), many):
            others = [[letter for letter in letters if letter != word[place]] for place in places]
            for chosen in product(*others):
                changed = list(word)
                for place, letter in zip(places, chosen, strict=True):
                    changed[place] = letter
                yield "".join(changed)


def _spread(count: Mapping[str, int], around: Mapping[str, list[str]]) -> Counter[Hashable]:
    """Counts of words, each for all words around it."""
    found: Counter[Hashable] = Counter()
    for word, many in count.items():
        for other in around[word]:
            found[other] += many
    return found


def weisfeiler_lehman_gram(graphs: Sequence[Any], n_iter: int = 3, label: str | None = None) -> np.ndarray:
    r"""The Weisfeiler–Lehman subtree kernel between graphs (Shervashidze et al. 2011): which neighbourhoods they share.

    .. math:: k(G, H) = \frac{\sum_u c_u(G)\, c_u(H)}{\sqrt{\sum_u c_u(G)^2 \sum_u c_u(H)^2}}

    Every node has a label; ``n_iter`` times, a node's label becomes its own with those of its neighbours. The kernel is
    the inner product of the counts c_u of all labels u on the way, over its values at each graph alone.

    Parameters
    ----------
    graphs : list of networkx graphs
        Links of directed graphs count from where they begin, several between two nodes once.
    n_iter : int, default=3
    label : str or None, default=None
        The node attribute to start from; None starts from equal labels, so that the first step tells degrees.

    Returns
    -------
    array of shape (n, n)
        With ones on the diagonal.

    Examples
    --------
    Three networks each of 200 groups: in some everybody has as many friends, in others a few have most of them.

    >>> import networkx as nx
    >>> import numpy as np
    >>> from latentviews import MultiViewMixture, Precomputed, weisfeiler_lehman_gram
    >>> kinds = np.repeat([0, 1], [120, 80])
    >>> even = lambda seed: nx.watts_strogatz_graph(12, 4, 0.3, seed)
    >>> uneven = lambda seed: nx.barabasi_albert_graph(12, 2, seed)
    >>> graphs = [[(even, uneven)[kind](1000 * t + i) for i, kind in enumerate(kinds)] for t in range(3)]
    >>> kernels = [Precomputed(weisfeiler_lehman_gram(some, 1)) for some in graphs]
    >>> groups = np.tile(np.arange(200.0)[:, None], (1, 3))
    >>> model = MultiViewMixture(2, kernel=kernels, random_state=0).fit(groups)
    >>> bool((model.predict(groups) == kinds).mean() > 0.98)
    True
    """
    n_iter = check_count("n_iter", n_iter, 0)
    graphs = _listed(graphs, "weisfeiler_lehman_gram takes a list of networkx graphs, at least one")
    strange = [graph for graph in graphs if not hasattr(graph, "adj") or not len(graph)]
    if strange:
        raise ValueError(f"weisfeiler_lehman_gram takes networkx graphs with at least one node; got {strange[0]!r}.")
    labels: list[dict[Any, Hashable]] = [{node: _given(graph, node, label) for node in graph} for graph in graphs]
    counts = [Counter((0, one) for one in own.values()) for own in labels]
    for step in range(1, n_iter + 1):
        names: dict[Hashable, int] = {}
        labels = [_refined(graph, own, names) for graph, own in zip(graphs, labels, strict=True)]
        for count, own in zip(counts, labels, strict=True):
            count.update((step, one) for one in own.values())
    return unit_gram(counts)


def _given(graph: Any, node: Any, label: str | None) -> Hashable:
    if label is None:
        return 0
    if label not in graph.nodes[node]:
        raise ValueError(f"Node {node!r} of a graph has no attribute {label!r}; it has {sorted(graph.nodes[node])}.")
    return graph.nodes[node][label]


def _refined(graph: Any, labels: Mapping[Any, Hashable], names: dict[Hashable, int]) -> dict[Any, Hashable]:
    """Every node's label with those of its neighbours, by a number that all graphs share."""
    found: dict[Any, Hashable] = {}
    for node in graph:
        around = tuple(sorted((labels[other] for other in graph.adj[node]), key=repr))
        found[node] = names.setdefault((labels[node], around), len(names))
    return found


def unit_gram(counts: Sequence[Mapping[Any, int]]) -> np.ndarray:
    """Inner products of counts, each over its length."""
    names = {name: place for place, name in enumerate(dict.fromkeys(name for count in counts for name in count))}
    rows = np.repeat(np.arange(len(counts)), [len(count) for count in counts])
    columns = [names[name] for count in counts for name in count]
    values = np.array([many for count in counts for many in count.values()], dtype=float)
    table = sparse.csr_array((values, (rows, columns)), shape=(len(counts), len(names)))
    gram = (table @ table.T).toarray()
    lengths = np.sqrt(np.diagonal(gram))
    return gram / np.outer(lengths, lengths)
