"""Memberships of nodes in planted graphs and in two recorded ones: `CommunityModel` beside networkx's communities.

    python benchmarks/accuracy/communities.py            # three communities, n = 500 to 8,000
    python benchmarks/accuracy/communities.py --recorded  # karate club and davis women

Needs networkx. Errors of memberships are total variations of a node's shares, matched, on the mean node. networkx's
communities are sets of nodes: a node has all of its share in one. Times are of the processor, one thread.
"""

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews import CommunityModel
from latentviews.metrics import label_accuracy

RESULTS = Path(__file__).with_name("results")
PACKAGES = (*_record.PACKAGES, "networkx")
SIZES = {500: 5, 1000: 3, 2000: 2, 4000: 1, 8000: 1}  # nodes, and draws
PEERS = (500, 2000)  # nodes of the graphs that Louvain is run on
GREEDY = (500,)  # and greedy modularity, which takes minutes on 2,000 nodes
INSIDE, BETWEEN, CONCENTRATION = 0.3, 0.05, 1.0


def planted(n: int, seed: int) -> tuple[sparse.csr_array, np.ndarray]:
    """A graph of three communities whose nodes mix, and their shares."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(3, CONCENTRATION / 3), size=n)
    connectivity = BETWEEN + (INSIDE - BETWEEN) * np.eye(3)
    rows = [rng.random(n) < shares[i] @ connectivity @ shares.T for i in range(n)]
    above = sparse.triu(sparse.vstack([sparse.csr_array(row[None].astype(float)) for row in rows]), 1)
    return sparse.csr_array(above + above.T), shares


def error(found: np.ndarray, shares: np.ndarray) -> float:
    """The mean total variation of shares; communities of neither that have no match count as they are."""
    wide = max(found.shape[1], shares.shape[1])
    found, shares = (np.pad(one, ((0, 0), (0, wide - one.shape[1]))) for one in (found, shares))
    cost = np.abs(found[:, :, None] - shares[:, None, :]).sum(axis=0)
    return float(cost[linear_sum_assignment(cost)].sum() / (2 * len(shares)))


def of_sets(sets: Any, n: int) -> np.ndarray:
    """Memberships of nodes in disjoint sets."""
    shares = np.zeros((n, len(sets)))
    for h, nodes in enumerate(sets):
        shares[list(nodes), h] = 1.0
    return shares


def peers(links: sparse.csr_array, greedy: bool) -> dict[str, np.ndarray]:
    """Communities of networkx: Louvain's, as many as it finds, and three by greedy modularity."""
    graph = nx.from_scipy_sparse_array(links)
    found = {"louvain": nx.community.louvain_communities(graph, weight=None, seed=0)}
    if greedy:
        found["greedy"] = nx.community.greedy_modularity_communities(graph, cutoff=3, best_n=3)
    return {name: of_sets(sets, len(graph)) for name, sets in found.items()}


def one_draw(n: int, seed: int) -> dict[str, float]:
    """Errors on one planted graph, and seconds."""
    links, shares = planted(n, seed)
    start = time.process_time()
    model = CommunityModel(3, random_state=0).fit(links)
    record = {"seconds": time.process_time() - start, "concentration": model.concentration_}
    record["auto"] = error(model.memberships_, shares)
    record["given"] = error(CommunityModel(3, CONCENTRATION, random_state=0).fit(links).memberships_, shares)
    record["moments"] = error(
        CommunityModel(3, CONCENTRATION, max_iter=0, random_state=0).fit(links).memberships_, shares
    )
    if n in PEERS:
        record |= {name: error(found, shares) for name, found in peers(links, n in GREEDY).items()}
    return record


def planted_graphs() -> dict[str, Any]:
    """Mean errors by the number of nodes, and the rates at which they fall."""
    records: dict[str, Any] = {}
    for n, draws in SIZES.items():
        rows = [one_draw(n, _record.FIRST_DRAW + i) for i in range(draws)]
        means = {name: np.mean([row[name] for row in rows if name in row]) for name in rows[0]}
        records[str(n)] = {"draws": draws} | {name: round(float(mean), 4) for name, mean in means.items()}
        print(n, records[str(n)], flush=True)
        _record.save(RESULTS / "communities.json", records | rates(records), PACKAGES)  # the largest take minutes
    return records | rates(records)


def rates(records: dict[str, Any]) -> dict[str, float]:
    """Slopes of the logarithms of errors in those of the number of nodes."""
    if len(records) < 2:
        return {}
    logs = np.log([int(n) for n in records])
    errors = {name: np.log([record[name] for record in records.values()]) for name in ("auto", "given", "moments")}
    return {f"rate of {name}": round(float(np.polyfit(logs, values, 1)[0]), 3) for name, values in errors.items()}


def recorded_graphs() -> dict[str, Any]:
    """Shares of nodes that are put where the records put them."""
    karate, davis = nx.karate_club_graph(), nx.davis_southern_women_graph()
    clubs = [karate.nodes[node]["club"] for node in karate]
    sides = [davis.nodes[node]["bipartite"] for node in davis]
    records = {}
    for name, graph, truth in (("karate", karate, clubs), ("davis, women or events", davis, sides)):
        codes = np.unique(truth, return_inverse=True)[1]
        plain = nx.convert_node_labels_to_integers(graph)
        greedy = of_sets(nx.community.greedy_modularity_communities(plain, cutoff=2, best_n=2), len(plain))
        found = CommunityModel(2, 1.0, random_state=0).fit(graph)
        records[name] = {
            "latentviews": round(label_accuracy(codes, found.labels_), 4),
            "greedy": round(label_accuracy(codes, greedy.argmax(axis=1)), 4),
        }
        print(name, records[name], flush=True)
    return records


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recorded", action="store_true")
    recorded = parser.parse_args().recorded
    warnings.simplefilter("ignore")
    records = recorded_graphs() if recorded else planted_graphs()
    print(records)
    _record.save(RESULTS / ("communities_recorded.json" if recorded else "communities.json"), records, PACKAGES)


if __name__ == "__main__":
    main()
