"""Topics of made-up and recorded corpora: `TopicModel` beside the LDA of scikit-learn and of tomotopy.

    python benchmarks/accuracy/topics.py DATA                # AP and poliblog, in DATA/topics
    python benchmarks/accuracy/topics.py DATA --synthetic    # 10^3 to 10^5 made-up documents
    python benchmarks/accuracy/topics.py DATA --draws        # parts with no shape: the rate of the error
    python benchmarks/accuracy/topics.py DATA --concentration    # α₀ of ten draws of 10^4 documents each
    python benchmarks/accuracy/topics.py DATA --large    # 10^5 documents of 10^4 words: time and memory

Needs pandas and tomotopy. Recorded corpora: a fifth of the documents is held out, half of the words of each gives its
shares, and perplexity is that of the other half (document completion). Made-up ones: the total variation of topics,
matched, and the concentration. Times are of the processor, one thread each.
"""

import argparse
import resource
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import LatentDirichletAllocation

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews import TopicModel

RESULTS = Path(__file__).with_name("results")
SIZES = {1_000: 5, 10_000: 3, 100_000: 1}  # made-up documents, and draws of them
N_DRAWS = 40  # of every size, where a rate is looked for
PACKAGES = (*_record.PACKAGES, "tomotopy", "pandas")


def shares_of(rows: np.ndarray) -> np.ndarray:
    """Rows over their sums."""
    return rows / rows.sum(axis=1, keepdims=True)


class Tomotopy:
    """Collapsed Gibbs sampling with its defaults, 300 sweeps, one thread."""

    def __init__(self, k: int):
        import tomotopy

        self.model = tomotopy.LDAModel(k=k, seed=0)

    def fit(self, counts: sparse.csr_array) -> "Tomotopy":
        """Words are their columns' numbers."""
        for row in _words(counts):
            self.model.add_doc(row)
        self.model.train(300, workers=1)
        places = [int(word) for word in self.model.used_vocabs]
        self.components_ = np.full((self.model.k, counts.shape[1]), 1e-12)
        for topic in range(self.model.k):
            self.components_[topic, places] = self.model.get_topic_word_dist(topic)
        return self

    def transform(self, counts: sparse.csr_array) -> np.ndarray:
        """Shares of documents by its own inference."""
        known, words = set(self.model.used_vocabs), _words(counts)
        documents = [self.model.make_doc(row) if known & set(row) else None for row in words]
        prior = np.array(self.model.alpha)
        return np.array([prior if one is None else self.model.infer(one)[0] for one in documents])


def _words(counts: sparse.csr_array) -> list[list[str]]:
    return [
        [str(w) for w, n in zip(counts.indices[a:b], counts.data[a:b], strict=True) for _ in range(int(n))]
        for a, b in zip(counts.indptr[:-1], counts.indptr[1:], strict=True)
    ]


METHODS: dict[str, Any] = {
    "latentviews": lambda k: TopicModel(k, random_state=0),
    "latentviews, moments alone": lambda k: TopicModel(k, max_iter=0, random_state=0),
    "scikit-learn, batch": lambda k: LatentDirichletAllocation(k, random_state=0),
    "scikit-learn, online": lambda k: LatentDirichletAllocation(k, learning_method="online", random_state=0),
    "tomotopy": Tomotopy,
}


def perplexity(counts: sparse.csr_array, shares: np.ndarray, topics: np.ndarray) -> float:
    """exp(−log-likelihood per word) by shares of documents and chances of words."""
    entries = counts.tocoo()
    chances = np.einsum("nk,nk->n", shares[entries.row], topics.T[entries.col])
    return float(np.exp(-(entries.data @ np.log(np.maximum(chances, 1e-12))) / entries.data.sum()))


def corpus(path: Path) -> sparse.csr_array:
    """Documents by words, without empty documents."""
    table = pd.read_csv(path)
    counts = sparse.csr_array((table["count"].astype(float), (table["doc"] - 1, table["term"] - 1)))
    return counts[np.asarray(counts.sum(axis=1)).ravel() > 0]


def recorded(data: Path) -> dict[str, Any]:
    """Held-out perplexity and time on two corpora."""
    records: dict[str, Any] = {}
    for name in ("poliblog", "ap"):
        counts, rng = corpus(data / "topics" / f"{name}_counts.csv.gz"), np.random.default_rng(0)
        held = rng.permutation(counts.shape[0]) < counts.shape[0] // 5
        train, test = counts[~held], counts[held]
        half = test.copy()
        half.data = rng.binomial(test.data.astype(int), 0.5).astype(float)
        rest = (test - half).tocsr()
        for k in (10, 20):
            row: dict[str, Any] = {}
            for method, make in METHODS.items():
                start = time.process_time()
                model = make(k).fit(train)
                seconds = time.process_time() - start
                value = perplexity(rest, shares_of(model.transform(half)), shares_of(model.components_))
                row[method] = {"perplexity": round(value, 1), "seconds": round(seconds, 2)}
                print(name, k, method, row[method], flush=True)
            records[f"{name}, {k} topics"] = row
    return records


def made_up(
    n: int, k: int, n_words: int, concentration: float, seed: int, length: int = 100
) -> tuple[sparse.csr_array, np.ndarray]:
    """Documents of about so many words, topics from Dirichlet(0.1), weights falling evenly."""
    rng = np.random.default_rng(seed)
    topics, weights = rng.dirichlet(np.full(n_words, 0.1), size=k), np.arange(k, 0, -1) / (k * (k + 1) / 2)
    parts = []
    for begin in range(0, n, 1000):
        shares = rng.dirichlet(concentration * weights, size=min(1000, n - begin))
        lengths = rng.poisson(length, len(shares))
        chances = shares_of(shares @ topics)
        parts.append(sparse.csr_array(rng.multinomial(lengths, chances).astype(float)))
    return sparse.csr_array(sparse.vstack(parts)), topics


def topic_error(found: np.ndarray, true: np.ndarray) -> float:
    """The mean total variation between topics, matched."""
    distances = np.abs(found[:, None, :] - true[None, :, :]).sum(axis=2) / 2
    return float(distances[linear_sum_assignment(distances)].mean())


def synthetic() -> list[dict[str, Any]]:
    """Errors of topics and concentrations, on the mean of some draws."""
    records = []
    for n, n_draws in SIZES.items():
        for concentration in (0.1, 1.0, 10.0):
            row: dict[str, Any] = {"documents": n, "concentration": concentration, "draws": n_draws}
            for draw in range(n_draws):
                counts, true = made_up(n, 10, 1000, concentration, _record.FIRST_DRAW + draw)
                for method in list(METHODS)[: 2 if n > 10_000 else 3]:
                    start = time.process_time()
                    model = METHODS[method](10).fit(counts)
                    of_method = row.setdefault(method, {"seconds": [], "topic error": [], "concentration": []})
                    of_method["seconds"].append(time.process_time() - start)
                    of_method["topic error"].append(topic_error(shares_of(model.components_), true))
                    of_method["concentration"].append(getattr(model, "concentration_", np.nan))
            records.append({key: summed_up(value) if isinstance(value, dict) else value for key, value in row.items()})
            print(records[-1], flush=True)
    return records


def summed_up(found: dict[str, list[float]]) -> dict[str, Any]:
    """Means of what was found on some draws, and the errors of each."""
    means = {key: round(float(np.mean(values)), 4) for key, values in found.items() if not np.isnan(values).any()}
    return means | {"topic error of every draw": [round(value, 4) for value in found["topic error"]]}


def large() -> dict[str, Any]:
    """Seconds and errors on 10^5 documents of 60 out of 10^4 words, and the most memory that was taken."""
    counts, true = made_up(100_000, 10, 10_000, 1.0, _record.FIRST_DRAW, length=60)
    found: dict[str, Any] = {"GB before": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6}
    for method in ("latentviews, moments alone", "latentviews"):
        start = time.process_time()
        model = METHODS[method](10).fit(counts)
        error = topic_error(shares_of(model.components_), true)
        found[method] = {"seconds": round(time.process_time() - start, 2), "topic error": round(error, 4)}
        found[method]["GB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(found)
    return found


def concentrations() -> list[dict[str, Any]]:
    """The concentration found over the truth, by the default call and by moments alone, on ten draws of each."""
    records = []
    for k, n_words in ((10, 1000), (5, 200)):
        for concentration in (0.1, 1.0, 10.0):
            found: dict[str, list[float]] = {"latentviews": [], "latentviews, moments alone": []}
            for draw in range(10):
                counts, _ = made_up(10_000, k, n_words, concentration, _record.FIRST_DRAW + draw)
                for method, ratios in found.items():
                    ratios.append(round(METHODS[method](k).fit(counts).concentration_ / concentration, 4))
            row: dict[str, Any] = {"topics": k, "words": n_words, "concentration": concentration}
            for method, ratios in found.items():
                within = int(np.sum(np.abs(np.array(ratios) - 1) < 0.1))
                row[method] = {"found over the truth": ratios, "within a tenth": within}
            records.append(row)
            print(row, flush=True)
    return records


def rate_of_draws() -> list[dict[str, Any]]:
    """Three parts of different shape in groups of 20 draws: how the error of the parts' embeddings falls."""
    sizes, records, squares = (500, 1000, 2000, 4000, 8000, 16000), [], []
    for n in sizes:
        squares.append([squared_error(n, _record.FIRST_DRAW + draw) for draw in range(N_DRAWS)])
        records.append({"groups": n, "error": round(float(np.sqrt(np.mean(squares[-1]))), 5)})
        print(records[-1], flush=True)

    def slope(some: np.ndarray) -> float:
        return float(np.polyfit(np.log(sizes), np.log(np.array(squares)[:, some].mean(axis=1)) / 2, 1)[0])

    rng = np.random.default_rng(0)
    again = [slope(rng.integers(N_DRAWS, size=N_DRAWS)) for _ in range(500)]
    records.append({"slope": round(slope(np.arange(N_DRAWS)), 3), "standard error": round(float(np.std(again)), 3)})
    print(records[-1])
    return records


def squared_error(n: int, seed: int) -> float:
    """The mean squared distance in L2 between parts of n groups, matched, and the truth smoothed by the kernel.

    The width of the kernel is fixed, so that what is estimated stays the same.
    """
    from latentviews import Gaussian

    grid, (means, sds), width = np.linspace(-7, 7, 400), np.array([[-3.0, 0.0, 4.0], [1.0, 0.7, 0.5]]), 0.4
    true = np.stack([_normal(grid, mean, np.hypot(sd, width)) for mean, sd in zip(means, sds, strict=True)], axis=1)
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet([1.0, 0.6, 0.4], size=n)
    part = (shares.cumsum(axis=1)[:, None, :] < rng.random((n, 20, 1))).sum(axis=2).clip(0, 2)
    x = rng.normal(means[part], sds[part]).reshape(-1, 1)
    model = TopicModel(3, concentration=2.0, kernel=Gaussian(width), random_state=0)
    found = model.fit(x, groups=np.repeat(np.arange(n), 20)).components_[0].at(grid)
    distances = ((found[:, :, None] - true[:, None, :]) ** 2).sum(axis=0) * (grid[1] - grid[0])
    return float(distances[linear_sum_assignment(distances)].mean())


def _normal(x: np.ndarray, mean: float, sd: float) -> np.ndarray:
    return np.exp(-0.5 * ((x - mean) / sd) ** 2) / (sd * np.sqrt(2 * np.pi))


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--synthetic", action="store_true")
    parser.add_argument("--draws", action="store_true")
    parser.add_argument("--concentration", action="store_true")
    parser.add_argument("--large", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.synthetic:
        _record.save(RESULTS / "topics_synthetic.json", synthetic(), PACKAGES)
    elif arguments.concentration:
        _record.save(RESULTS / "topics_concentration.json", concentrations(), _record.PACKAGES)
    elif arguments.large:
        _record.save(RESULTS / "topics_large.json", large(), _record.PACKAGES)
    elif arguments.draws:
        _record.save(RESULTS / "topics_draws.json", rate_of_draws(), PACKAGES)
    else:
        _record.save(RESULTS / "topics.json", recorded(arguments.data), PACKAGES)


if __name__ == "__main__":
    main()
