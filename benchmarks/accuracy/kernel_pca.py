"""How well kernel PCA finds eigenfunctions that are known in closed form: Gaussian rows, Gaussian kernel.

    python benchmarks/accuracy/kernel_pca.py [--part eigenfunctions|memory]

Part ``eigenfunctions``: the first three eigenfunctions of N(0, 1) from streams of 5,000 to 160,000 rows, thirty seeds
(ten leave the slope uncertain by .08); the error is the sine of the largest angle between the subspaces found and true
in L²(p). Landmarks on the same streams, all but exact in one dimension, show what any method could reach on these rows.
It draws the talk's picture.

Part ``memory``: methods sized to hold about as many numbers while they fit, on 50,000 rows of 1, 8, 64 and 512 columns
whose standard deviations fall as 1/j; what each allocates at its peak is measured. Each method is compared with the
operator that it estimates, centred or not. Methods that look at some hundred rows take the first ones; their errors
vary by a third from draw to draw, so they are repeated on fifty draws, others on the first three of these. Times are
of the processor (set OPENBLAS_NUM_THREADS=1), medians where a fit is short, and taken in turn, in an order that is
shuffled in every round. Runs that are on record are not repeated.
"""

import argparse
import heapq
import itertools
import json
import random
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import eval_hermite, gammaln
from sklearn.decomposition import IncrementalPCA, KernelPCA
from sklearn.kernel_approximation import RBFSampler

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews import DoublyStochasticPCA, Gaussian, LandmarkPCA

RESULTS = Path(__file__).with_name("results")
SIZES = (5000, 10_000, 20_000, 40_000, 80_000, 160_000)
SEEDS = 30
BATCH = 1024
DIMENSIONS = (1, 8, 64, 512)
ROWS, TEST_ROWS = 50_000, 10_000
FIRST_DRAW = _record.FIRST_DRAW + 53  # those before were looked at
REPETITIONS, QUICK_REPETITIONS = 3, 50
ROUNDS, ENOUGH = 11, 0.3  # how often a fit is timed, and the seconds after which it is timed no more
FEW = {
    1: (80, 1000),
    8: (80, 1000),
    64: (80, 1000),
    512: (60, 350),
}  # landmarks and rows, for 512 columns by draws 0 to 2
BUDGET = 2**18  # numbers that a method may hold while it fits
SMALL_BATCH = 128
BANDWIDTH = 1.5
TERMS = 600  # products of Hermite functions that the centred operator is computed in


class Column:
    """Eigenpairs of the kernel exp(-(x-y)²/(2s²)) under N(0, σ²) (Zhu, Williams, Rohwer & Morciniec 1998)."""

    def __init__(self, deviation: float, bandwidth: float):
        self.a, b = 1 / (4 * deviation**2), 1 / (2 * bandwidth**2)
        self.c = np.sqrt(self.a**2 + 2 * self.a * b)
        whole = self.a + b + self.c
        self.first, self.ratio = float(np.sqrt(2 * self.a / whole)), float(b / whole)

    def function(self, order: int, x: np.ndarray) -> np.ndarray:
        """The eigenfunction of this order, of unit length in L²."""
        log_norm = 0.25 * np.log(self.c / self.a) - 0.5 * (order * np.log(2.0) + gammaln(order + 1))
        return np.exp(log_norm - (self.c - self.a) * x**2) * eval_hermite(order, np.sqrt(2 * self.c) * x)


class Truth:
    """The leading eigenfunctions of a product of columns, plain and centred."""

    def __init__(self, deviations: np.ndarray, bandwidth: float):
        self.columns = [Column(float(deviation), bandwidth) for deviation in deviations]
        self.orders, self.values = self._largest(TERMS)
        self.rank = _rank(self.values)
        joint = np.sqrt(self.values) * self._means()
        values, vectors = np.linalg.eigh(np.diag(self.values) - np.outer(joint, joint))
        self.centred, self.centred_rank = vectors[:, ::-1], _rank(values[::-1])

    def _largest(self, count: int) -> tuple[list[dict[int, int]], np.ndarray]:
        """Orders (those that are not zero, by column) with the largest products of eigenvalues."""
        start = float(np.sum([np.log(column.first) for column in self.columns]))
        logs = [float(np.log(column.ratio)) for column in self.columns]
        by_size = sorted(range(len(logs)), key=lambda j: -logs[j])
        heap: list[tuple[float, int, tuple[int, ...]]] = [(-start, 0, ())]
        ticket, found, values = itertools.count(1), [], []
        while heap and len(found) < count:
            negative, _, path = heapq.heappop(heap)  # a path is a rising sequence of places in by_size
            if -negative < start - 25:  # no longer seen in double precision
                break
            found.append({by_size[j]: path.count(j) for j in set(path)})
            values.append(np.exp(-negative))
            last = path[-1] if path else 0
            for j in range(last, len(logs)):
                heapq.heappush(heap, (negative - logs[by_size[j]], next(ticket), (*path, j)))
                if path == () and j > count:
                    break
        return found, np.array(values)

    def _means(self) -> np.ndarray:
        """The means of the products of eigenfunctions, by Gauss–Hermite quadrature in every column."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(80)

        def one(j: int, order: int) -> float:
            column = self.columns[j]
            return float(weights @ column.function(order, nodes / (2 * np.sqrt(column.a))) / weights.sum())

        zero = [one(j, 0) for j in range(len(self.columns))]
        return np.array(
            [np.prod(zero) * np.prod([one(j, n) / zero[j] for j, n in order.items()]) for order in self.orders]
        )

    def _products(self, x: np.ndarray, orders: list[dict[int, int]]) -> np.ndarray:
        zero = np.prod([column.function(0, x[:, j]) for j, column in enumerate(self.columns)], axis=0)
        parts = []
        for order in orders:
            part = zero.copy()
            for j, n in order.items():
                part *= self.columns[j].function(n, x[:, j]) / self.columns[j].function(0, x[:, j])
            parts.append(part)
        return np.stack(parts, axis=1)

    def functions(self, x: np.ndarray, centred: bool) -> np.ndarray:
        """The leading eigenfunctions at rows."""
        if not centred:
            return self._products(x, self.orders[: self.rank])
        coefficients = self.centred[:, : self.centred_rank]
        keep = np.flatnonzero(np.abs(coefficients).max(axis=1) > 1e-7)
        basis = self._products(x, [self.orders[i] for i in keep]) * np.sqrt(self.values[keep])
        return basis @ coefficients[keep]


def _rank(values: np.ndarray) -> int:
    """Three to six components, as many as stand before the largest fall of the spectrum."""
    return 3 + int(np.argmax(values[2:6] / values[3:7]))


def sine(found: np.ndarray, true: np.ndarray, weights: np.ndarray | None = None, centred: bool = False) -> float:
    """The sine of the largest angle between two spans of functions, given by their values at the same points."""
    parts = [part - part.mean(axis=0) if centred else part for part in (found, true)]
    if weights is not None:
        parts = [np.sqrt(weights)[:, None] * part for part in parts]
    bases = [np.linalg.qr(part)[0] for part in parts]
    return float(np.sqrt(max(0.0, 1 - np.linalg.svd(bases[0].T @ bases[1])[1].min() ** 2)))


def load(path: Path) -> dict[str, Any]:
    """What is on record."""
    return json.loads(path.read_text())["results"] if path.exists() else {}


def eigenfunctions() -> None:
    """Errors along streams of N(0, 1) rows, their slope, and the picture."""
    path = RESULTS / "kernel_pca_eigenfunctions.json"
    runs = load(path).get("runs", {})
    column, grid = Column(1.0, 1.0), np.linspace(-5, 5, 2001)
    true = np.stack([column.function(k, grid) for k in range(3)], axis=1)
    for seed in range(SEEDS):
        models = {
            "doubly stochastic": DoublyStochasticPCA(3, kernel=Gaussian(1.0), random_state=seed),
            "landmarks": LandmarkPCA(3, kernel=Gaussian(1.0), center=False, random_state=seed),
        }
        for name, model in models.items():
            if str(seed) in runs.setdefault(name, {}):
                continue
            start = time.process_time()
            errors = errors_along(model, seed, grid, true)
            runs[name][str(seed)] = {"errors": errors, "seconds": round(time.process_time() - start, 1)}
            print(f"seed {seed}, {name}: " + "  ".join(f"{error:.4f}" for error in errors), flush=True)
            if seed == 0 and name == "doubly stochastic":
                draw(grid, true, model)
            _record.save(path, {"sizes": SIZES, "summary": summary(runs), "runs": runs})
    for name, found in summary(runs).items():
        means = "  ".join(f"{error:.4f}" for error in found["mean_errors"])
        print(f"{name}, {found['seeds']} seeds: {means}; slope {found['slope']:.3f} ± {found['slope_error']:.3f}")


def errors_along(model: Any, seed: int, grid: np.ndarray, true: np.ndarray) -> list[float]:
    """The error after each of the sizes of one stream."""
    rng, seen, errors = np.random.default_rng(1000 + seed), 0, []
    for size in SIZES:
        while seen < size:
            rows = rng.normal(size=(min(BATCH, size - seen), 1))
            model.partial_fit(rows)
            seen += len(rows)
        errors.append(sine(model.transform(grid[:, None]), true, np.exp(-(grid**2) / 2)))
    return errors


def summary(runs: dict[str, Any]) -> dict[str, Any]:
    """Mean errors and the slope of their logarithms, with its standard error by leaving out a seed at a time."""
    found = {}
    for name, by_seed in runs.items():
        errors = np.array([run["errors"] for run in by_seed.values()])
        some = [np.delete(errors, i, axis=0).mean(axis=0) for i in range(len(errors))] if len(errors) > 1 else []
        slopes = np.array([slope(means) for means in some])
        found[name] = {
            "seeds": len(errors),
            "mean_errors": errors.mean(axis=0).round(5).tolist(),
            "slope": round(slope(errors.mean(axis=0)), 3),
            "slope_error": round(float(np.sqrt(max(len(errors) - 1, 0) * slopes.var())), 3) if some else None,
            "mean_error_of_ten": round(float(errors[:10, -1].mean()), 5),
        }
    return found


def slope(errors: np.ndarray) -> float:
    """How the logarithm of the error changes with that of the number of rows."""
    return float(np.polyfit(np.log(SIZES), np.log(errors), 1)[0])


def draw(grid: np.ndarray, true: np.ndarray, model: DoublyStochasticPCA) -> None:
    """The leading three eigenfunctions, found and in closed form."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    found = model.transform(grid[:, None]) / np.sqrt(model.explained_variance_)
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), sharey=True, layout="constrained")
    for k in range(3):
        sign = np.sign(found[:, k] @ (true[:, k] * np.exp(-(grid**2) / 2)))
        axes[0].plot(grid, true[:, k], color=f"C{k}", label=f"$u_{k + 1}$")
        axes[1].plot(grid, sign * found[:, k], color=f"C{k}")
    axes[0].set(title="closed form", xlabel="x", xlim=(-3, 3), ylim=(-2.2, 2.2))
    axes[1].set(title=f"doubly stochastic, {model.n_samples_seen_:,} rows", xlabel="x", xlim=(-3, 3))
    axes[0].legend(frameon=False)
    figure.savefig(RESULTS / "kernel_pca_eigenfunctions.png", dpi=110)


def methods(
    dim: int, rank: Callable[[bool], int], seed: int
) -> dict[str, tuple[bool, dict[str, int], Callable[..., Any]]]:
    """For every method: whether it centres, its sizes, and a function from rows to a fitted transform."""
    r, rc = rank(False), rank(True)
    gamma, kernel = 0.5 / BANDWIDTH**2, Gaussian(BANDWIDTH)
    subsample = int((-(dim + r) + np.sqrt((dim + r) ** 2 + 4 * 2 * BUDGET)) / 4)  # 2n² + n(d + r)
    linear = 3 * dim + 2 * SMALL_BATCH
    landmarks = int((-linear + np.sqrt(linear**2 + 4 * 5 * BUDGET)) / 10)  # 5m² + m(3d + 2 · 128)
    few_landmarks, few = FEW[dim]
    waves = int(min(BUDGET / (dim + 2 * rc + 2 * SMALL_BATCH), 4096))  # frequencies, components and a batch twice
    blocks = max(1, min(int(BUDGET / (3 * r * 128)), 30))

    def stream(model: Any) -> Callable[..., Any]:
        return lambda X: model.fit(X[start : start + BATCH] for start in range(0, len(X), BATCH)).transform

    def theirs(X: np.ndarray) -> Any:
        return KernelPCA(rc, kernel="rbf", gamma=gamma, random_state=seed).fit(X[:subsample]).transform

    def incremental(X: np.ndarray) -> Any:
        phi = RBFSampler(gamma=gamma, n_components=waves, random_state=seed).fit(X[:1])
        pca = IncrementalPCA(rc)
        for rows in SmallBatches(X[: len(X) - len(X) % SMALL_BATCH]):
            pca.partial_fit(phi.transform(rows))
        return lambda x: pca.transform(phi.transform(x))

    def ours(X: np.ndarray) -> Any:
        model = LandmarkPCA(
            rc, kernel=kernel, n_landmarks=landmarks, selection="uniform", pilot_size=landmarks, random_state=seed
        )
        return model.fit(SmallBatches(X)).transform

    def quick(X: np.ndarray) -> Any:
        model = LandmarkPCA(rc, kernel=kernel, n_landmarks=few_landmarks, selection="uniform", random_state=seed)
        return model.fit(X[:few]).transform

    def exact(X: np.ndarray) -> Any:
        model = LandmarkPCA(rc, kernel=kernel, n_landmarks=subsample, selection="uniform", random_state=seed)
        return model.fit(X[:subsample]).transform

    doubly = DoublyStochasticPCA(r, kernel=kernel, random_state=seed)
    oja = DoublyStochasticPCA(r, kernel=kernel, max_blocks=blocks, random_state=seed)
    return {
        "doubly stochastic": (False, {"blocks": ROWS // BATCH + 1}, stream(doubly)),
        "random features + Oja": (False, {"blocks": blocks}, stream(oja)),
        "landmarks, centred": (True, {"landmarks": landmarks}, ours),
        "landmarks, few rows, centred": (True, {"landmarks": few_landmarks, "rows": few}, quick),
        "exact on few rows, centred": (True, {"rows": subsample}, exact),
        "scikit-learn KernelPCA on a subsample, centred": (True, {"rows": subsample}, theirs),
        "scikit-learn IncrementalPCA over RBFSampler, centred": (True, {"features": waves}, incremental),
    }


class SmallBatches:
    """Rows in batches that can be read more than once."""

    def __init__(self, X: np.ndarray):
        self.X = X

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self.X[start : start + SMALL_BATCH] for start in range(0, len(self.X), SMALL_BATCH))


def memory() -> None:
    """Errors, times and peaks of memory of all methods."""
    path = RESULTS / "kernel_pca_memory.json"
    record = load(path)
    runs, peaks = record.get("runs", {}), record.get("peaks", {})

    def save() -> None:
        rows = table(runs, peaks)
        _record.save(path, {"table": rows, "answers": answers(rows), "peaks": peaks, "runs": runs})

    for dim in DIMENSIONS:
        deviations = 2.0 / np.arange(1, dim + 1)
        truth = Truth(deviations, BANDWIDTH)
        ranks = {False: truth.rank, True: truth.centred_rank}
        for seed in range(FIRST_DRAW, FIRST_DRAW + QUICK_REPETITIONS):
            wanted = {
                name: method
                for name, method in methods(dim, ranks.__getitem__, seed).items()
                if f"{dim}/{name}/{seed}" not in runs and seed in draws_of(name)
            }
            if not wanted:
                continue
            count = max(sizes.get("rows", ROWS) for _, sizes, _ in wanted.values())
            X = np.random.default_rng(seed).normal(size=(count, dim)) * deviations
            test = np.random.default_rng([seed, 1]).normal(size=(TEST_ROWS, dim)) * deviations
            true = {centred: truth.functions(test, centred) for centred in {method[0] for method in wanted.values()}}
            found = timed({name: fit for name, (_, _, fit) in wanted.items()}, X, seed)
            for name, (centred, sizes, _) in wanted.items():
                transform, seconds = found[name]
                error = sine(np.asarray(transform(test)), true[centred], centred=centred)
                runs[f"{dim}/{name}/{seed}"] = {
                    "error": error,
                    "seconds": round(seconds, 5),
                    "rank": ranks[centred],
                    **sizes,
                }
                print(f"d = {dim:3d}  {name:52s}  {error:.4f}  {seconds:7.4f} s  {sizes}", flush=True)
            if seed % 10 == 2:
                save()
        save()
    for dim in DIMENSIONS:
        for name in measure_peaks(dim, peaks):
            print(f"d = {dim:3d}  {name:52s}  {peaks[f'{dim}/{name}']:.2f} MB", flush=True)
            save()
    for answer in answers(table(runs, peaks)):
        print(answer)


def draws_of(name: str) -> range:
    """The draws that a method is measured on."""
    count = QUICK_REPETITIONS if "rows" in name or "KernelPCA" in name else REPETITIONS
    return range(FIRST_DRAW, FIRST_DRAW + count)


def measure_peaks(dim: int, peaks: dict[str, float]) -> Iterator[str]:
    """The most that a fit allocates above its rows, in MB, on a draw that nothing else is read from."""
    deviations = 2.0 / np.arange(1, dim + 1)
    truth = Truth(deviations, BANDWIDTH)
    ranks = {False: truth.rank, True: truth.centred_rank}
    X = np.random.default_rng(0).normal(size=(ROWS, dim)) * deviations
    for name, (_, _, fit) in methods(dim, ranks.__getitem__, 0).items():
        if f"{dim}/{name}" in peaks:
            continue
        fit(X[:1000])  # what is imported or built at the first use is no part of it
        tracemalloc.start()
        fit(X)
        peaks[f"{dim}/{name}"] = round(tracemalloc.get_traced_memory()[1] / 1e6, 2)
        tracemalloc.stop()
        yield name


def timed(fits: dict[str, Callable[..., Any]], X: np.ndarray, seed: int) -> dict[str, tuple[Any, float]]:
    """What every fit gives, and the median of its times; short ones take turns, in another order in every round."""
    found, times, shuffler = {}, {name: [] for name in fits}, random.Random(seed)
    for _ in range(ROUNDS):
        names = [name for name in fits if sum(times[name]) < ENOUGH]
        shuffler.shuffle(names)
        for name in names:
            start = time.process_time()
            found[name] = fits[name](X)
            times[name].append(time.process_time() - start)
    return {name: (found[name], statistics.median(times[name])) for name in fits}


def table(runs: dict[str, Any], peaks: dict[str, float]) -> list[dict[str, Any]]:
    """Means over the repetitions, and peaks of memory."""
    cells = sorted({tuple(key.split("/")[:2]) for key in runs}, key=lambda cell: int(cell[0]))
    rows = []
    for dim, name in cells:
        found = [run for key, run in runs.items() if key.startswith(f"{dim}/{name}/")]
        rows.append(
            {
                "columns": int(dim),
                "method": name,
                "error": round(statistics.mean(run["error"] for run in found), 5),
                "seconds": round(statistics.mean(run["seconds"] for run in found), 5),
                "peak_mb": peaks.get(f"{dim}/{name}"),
                "repetitions": len(found),
            }
        )
    return rows


def answers(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For every peer, which of our routes errs no more in no more time."""
    found = []
    for peer in (row for row in rows if row["method"].startswith("scikit-learn")):
        better = [
            row["method"]
            for row in rows
            if row["columns"] == peer["columns"]
            and not row["method"].startswith("scikit-learn")
            and row["error"] <= peer["error"]
            and row["seconds"] <= peer["seconds"]
        ]
        found.append({"columns": peer["columns"], "peer": peer["method"], "no worse and no slower": better})
    return found


def main() -> None:
    """Run one part, or both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("eigenfunctions", "memory"))
    part = parser.parse_args().part
    RESULTS.mkdir(exist_ok=True)
    if part != "memory":
        eigenfunctions()
    if part != "eigenfunctions":
        memory()


if __name__ == "__main__":
    main()
