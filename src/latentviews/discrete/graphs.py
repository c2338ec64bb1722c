"""Graphs as they come: networkx graphs and adjacency tables, read into one sparse table and the names of the nodes."""

from typing import Any

import numpy as np
from scipy import sparse


def read_graph(G: Any) -> tuple[sparse.csr_array, np.ndarray]:
    """The adjacency of an undirected graph, zeros and ones, and the names of its nodes."""
    if hasattr(G, "is_directed"):
        return _of_networkx(G)
    links, names = read_links(G, "G"), getattr(G, "index", None)
    if links.shape[0] != links.shape[1]:
        raise ValueError(f"An adjacency has one row and one column per node; got shape {links.shape}.")
    if links.diagonal().any():
        raise ValueError("G links some nodes to themselves; set its diagonal to zero.")
    if (links != links.T).nnz:
        raise ValueError(
            "G is not symmetric, as of a directed graph; communities are of undirected ones. "
            "Pass G.maximum(G.T) to forget directions."
        )
    return links, np.arange(links.shape[0]) if names is None else np.asarray(names)


def read_links(links: Any, name: str) -> sparse.csr_array:
    """A table of zeros and ones, sparse or not, as a sparse one of floats."""
    try:
        table = sparse.csr_array(links if sparse.issparse(links) else np.asarray(links, dtype=float))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must be a networkx graph or a table of zeros and ones, sparse or not; got {type(links).__name__}."
        ) from error
    if table.ndim != 2:
        raise ValueError(f"{name} must have two dimensions, nodes by nodes; got {table.ndim}.")
    table = table.astype(float)
    table.sum_duplicates()
    table.eliminate_zeros()
    if table.nnz and not np.all(table.data == 1.0):
        odd = table.data[table.data != 1.0][0]
        raise ValueError(
            f"{name} holds {odd:g}; links have no weights here: one where two nodes are linked, zero elsewhere. "
            f"Pass {name} > 0 for links of any positive weight."
        )
    return table


def _of_networkx(graph: Any) -> tuple[sparse.csr_array, np.ndarray]:
    """The links of a networkx graph, whatever their weights; parallel ones count once."""
    if graph.is_directed():
        raise ValueError("Communities are of undirected graphs; got a directed one. Pass G.to_undirected().")
    nodes = list(graph.nodes)
    place = {node: i for i, node in enumerate(nodes)}
    ends = {(place[a], place[b]) for a, b in graph.edges()}
    loops = [nodes[a] for a, b in ends if a == b]
    if loops:
        raise ValueError(f"G links {loops[0]!r} to itself; remove such links.")
    names = np.empty(len(nodes), dtype=object)
    names[:] = nodes
    whole = all(isinstance(node, int) for node in nodes) or all(isinstance(node, str) for node in nodes)
    rows, columns = np.array(sorted(ends | {(b, a) for a, b in ends})).reshape(-1, 2).T
    table = sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(nodes), len(nodes)))
    return table, np.array(nodes) if whole and nodes else names
