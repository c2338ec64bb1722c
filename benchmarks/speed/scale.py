"""How long `MultiViewMixture` takes on a core, over what merely binning the columns, or scikit-learn's peer, takes.

    OPENBLAS_NUM_THREADS=1 python benchmarks/speed/scale.py
    OPENBLAS_NUM_THREADS=1 python benchmarks/speed/scale.py --parts columns --classes 3

All are run in turn in one process, on the same rows; seconds are medians of five, of the processor's time and of
the clock's. Designs are Gaussian and Gaussian/Gamma, two deviations apart.
Density errors are those of section 8.1 of Song et al. (2014).
"""

import argparse
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from scipy import stats
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews import MultiViewMixture
from latentviews.datasets import make_multiview
from latentviews.metrics import density_error, match_components

PARTS = ("small", "columns", "starts", "views")
RESULTS = Path(__file__).with_name("results") / "scale.json"
REPETITIONS = 5
CELLS = 512
SCORED = 100_000  # rows


class Clock:
    """Median seconds of named work, done in turn."""

    def __init__(self) -> None:
        self.seconds: dict[str, dict[str, float]] = {}

    def time(self, work: dict[str, Callable[[], Any]], repetitions: int = REPETITIONS) -> dict[str, Any]:
        """What each gives; its medians are kept."""
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in work}
        results = {}
        for _ in range(repetitions):
            for name, one in work.items():
                cpu, wall = time.process_time(), time.perf_counter()
                results[name] = one()
                times[name].append((time.process_time() - cpu, time.perf_counter() - wall))
        for name, taken in times.items():
            cpu, wall = (statistics.median(each) for each in zip(*taken, strict=True))
            self.seconds[name] = {"cpu": round(cpu, 4), "wall": round(wall, 4)}
        return results

    def ratio(self, ours: str, theirs: str) -> dict[str, float]:
        """One over the other."""
        return {kind: round(self.seconds[ours][kind] / self.seconds[theirs][kind], 4) for kind in ("cpu", "wall")}


def bin_columns(X: np.ndarray) -> list[np.ndarray]:
    """The histogram of every column."""
    found = []
    for column in X.T:
        low, high = column.min(), column.max()
        cells = ((column - low) * (CELLS / (high - low))).astype(np.intp)
        found.append(np.bincount(cells, minlength=CELLS + 1))
    return found


def gmm(k: int, n_init: int = 1) -> GaussianMixture:
    """The peer."""
    return GaussianMixture(k, covariance_type="diag", n_init=n_init, random_state=0)


def ours(k: int, **options: Any) -> MultiViewMixture:
    """The model."""
    return MultiViewMixture(k, random_state=0, **options)


class PeerView(NamedTuple):
    """A view of the peer's classes."""

    means: np.ndarray  # (k,)
    deviations: np.ndarray  # (k,)

    def density(self, x: np.ndarray) -> np.ndarray:
        """The normal densities, (n, k)."""
        return stats.norm.pdf(np.reshape(x, (-1, 1)), self.means, self.deviations)


def peer_views(model: GaussianMixture) -> list[PeerView]:
    """All of them."""
    columns = zip(model.means_.T, np.sqrt(model.covariances_).T, strict=True)
    return [PeerView(*column) for column in columns]


def error(truth: Any, found: Any, X: np.ndarray) -> float:
    """The error of section 8.1 of Song et al. (2014), classes matched."""
    grids = [np.linspace(*np.quantile(column, [0, 1]), 500) for column in X[:100_000].T]
    order = match_components(truth.components, found, grids, truth.weights)
    matched = [SimpleNamespace(density=lambda x, view=view: view.density(x)[:, order]) for view in found]
    return density_error(truth.components, matched, grids, truth.weights)


def million(n: int, k: int, design: str) -> dict[str, Any]:
    """Fits, spectral and polished, and predictions of three columns."""
    data = make_multiview(n, k, design=design, separation=2.0, random_state=0)
    X, clock = data.X, Clock()
    made = clock.time(
        {
            "bincount": lambda: bin_columns(X),
            "spectral": lambda: ours(k, polish=None).fit(X),
            "polished": lambda: ours(k).fit(X),
            "peer": lambda: gmm(k).fit(X),
        }
    )
    clock.time(
        {
            "predict": lambda: made["spectral"].predict(X),
            "score_samples": lambda: made["spectral"].score_samples(X),
            "peer's predict": lambda: made["peer"].predict(X),
            "peer's score_samples": lambda: made["peer"].score_samples(X),
        }
    )
    errors = {"polished": error(data.truth, made["polished"].components_, X)}
    errors["peer"] = error(data.truth, peer_views(made["peer"]), X)
    pairs = {
        "spectral over bincount": ("spectral", "bincount"),
        "spectral over peer": ("spectral", "peer"),
        "polished over peer": ("polished", "peer"),
        "predict over peer": ("predict", "peer's predict"),
        "score_samples over peer": ("score_samples", "peer's score_samples"),
    }
    return {
        "n_samples": n,
        "k": k,
        "design": design,
        "seconds": clock.seconds,
        "ratios": {name: clock.ratio(*pair) for name, pair in pairs.items()},
        "iterations": {"polished": int(made["polished"].n_iter_), "peer": int(made["peer"].n_iter_)},
        "density_error": {name: round(value, 4) for name, value in errors.items()},
    }


def default_fit(n: int, k: int, design: str) -> dict[str, Any]:
    """The default fit over the peer with ten starts."""
    X, clock = make_multiview(n, k, design=design, separation=2.0, random_state=0).X, Clock()
    made = clock.time({"default": lambda: ours(k).fit(X), "peer": lambda: gmm(k, 10).fit(X)})
    ratios = {"default over peer": clock.ratio("default", "peer")}
    found = {"n_samples": n, "k": k, "design": design, "seconds": clock.seconds, "ratios": ratios}
    return {**found, "iterations": {"peer": int(made["peer"].n_iter_)}}


def several_columns(n: int, k: int) -> dict[str, Any]:
    """The spectral fit of three views of four columns, whose means are drawn from N(0, 2² I)."""
    rng, clock = np.random.default_rng(0), Clock()
    y = rng.integers(k, size=n)
    X = np.hstack([rng.normal(size=(n, 4)) + (2 * rng.normal(size=(k, 4)))[y] for _ in range(3)])
    views = [[4 * t + j for j in range(4)] for t in range(3)]
    made = clock.time({"spectral": lambda: ours(k, views=views, polish=None).fit(X), "peer": lambda: gmm(k).fit(X)})
    ratios = {"spectral over peer": clock.ratio("spectral", "peer")}
    found = {"n_samples": n, "k": k, "design": "three views of 4 columns", "seconds": clock.seconds, "ratios": ratios}
    scores = {name: round(adjusted_rand_score(y[:SCORED], one.predict(X[:SCORED])), 4) for name, one in made.items()}
    return {**found, "iterations": {"peer": int(made["peer"].n_iter_)}, "adjusted_rand": scores}


def small() -> dict[str, Any]:
    """The default fit of 1,500 rows."""
    X, clock = make_multiview(1500, 3, design="gamma", separation=2.0, random_state=0).X, Clock()
    clock.time({"default": lambda: ours(3).fit(X)})
    return {"n_samples": 1500, "k": 3, "design": "gamma", "seconds": clock.seconds, "ratios": {}, "iterations": {}}


def show(found: dict[str, Any]) -> dict[str, Any]:
    """Printed, and given back."""
    print(f"{found['n_samples']:,} rows, k = {found['k']}, {found['design']}")
    for name, taken in found["seconds"].items():
        print(f"  {name:22s} {taken['cpu']:8.3f} s of the processor, {taken['wall']:8.3f} s of the clock")
    for name, ratio in found["ratios"].items():
        print(f"  {name:26s} {ratio['cpu']:8.3f}  ({ratio['wall']:.3f} by the clock)")
    print(f"  iterations {found['iterations']}; density error {found.get('density_error')}", end="; ")
    print(f"adjusted Rand index {found.get('adjusted_rand')}", flush=True)
    return found


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a twentieth of the rows, nothing saved")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="all by default")
    parser.add_argument("--classes", nargs="+", type=int, choices=(3, 10), default=(3, 10), help="of a million rows")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    many, some = (50_000, 20_000) if arguments.quick else (1_000_000, 100_000)
    designs = ("gaussian", "gamma")
    ours(3).fit(make_multiview(1000, 3, random_state=0).X)  # load what is loaded once
    work: dict[str, Callable[[], list[dict[str, Any]]]] = {
        "small": lambda: [show(small())],
        "columns": lambda: [show(million(many, k, design)) for k in arguments.classes for design in designs],
        "starts": lambda: [show(default_fit(some, k, design)) for k in (3, 4) for design in designs],
        "views": lambda: [show(several_columns(many, k)) for k in arguments.classes],
    }
    for part in arguments.parts:
        found = work[part]()
        if not arguments.quick:
            _record.save(RESULTS.with_name(f"scale_{part}.json"), found)


if __name__ == "__main__":
    main()
