"""How well `KernelICA` unmixes beside FastICA and Picard.

    pip install python-picard
    python benchmarks/accuracy/ica.py

Sources of five shapes in five mixes, mixed by random matrices; Amari errors, medians over draws, and seconds. FastICA
has its default contrast and the cubic one, Picard its default and its extended form: each mix is judged against
the best of all four. The draws were not looked at while the method was made.
"""

import statistics
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import FastICA

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews import KernelICA
from latentviews.metrics import amari_error

RESULTS = Path(__file__).with_name("results") / "ica.json"
MIXES = {
    "uniform, Laplace, bimodal": "ulb",
    "three Laplace": "lll",
    "three uniform": "uuu",
    "uniform, Laplace, exponential": "ule",
    "t5, Laplace, bimodal": "tlb",
}
SIZES, DRAWS, FIRST = (1_000, 10_000, 100_000), 10, 5000


def source(kind: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """One source of variance one."""
    draws = {
        "u": lambda: rng.uniform(-np.sqrt(3), np.sqrt(3), n),
        "l": lambda: rng.laplace(size=n) / np.sqrt(2),
        "b": lambda: (rng.choice([-1, 1], n) + 0.4 * rng.normal(size=n)) / np.sqrt(1.16),
        "e": lambda: rng.exponential(size=n) - 1,
        "t": lambda: rng.standard_t(5, size=n) / np.sqrt(5 / 3),
    }
    return draws[kind]()


def picard_components(X: np.ndarray, **options: Any) -> np.ndarray:
    """The unmixing matrix that Picard finds."""
    from picard import picard

    K, W, _ = picard(X.T, random_state=0, max_iter=1000, **options)
    return W @ K


def fast(fun: str) -> Any:
    """FastICA with a contrast."""
    return lambda X: FastICA(fun=fun, whiten="unit-variance", random_state=0, max_iter=1000).fit(X).components_


METHODS = {
    "KernelICA": lambda X: KernelICA(random_state=0).fit(X).components_,
    "KernelICA(polish=False)": lambda X: KernelICA(polish=False, random_state=0).fit(X).components_,
    "FastICA": fast("logcosh"),
    "FastICA(cube)": fast("cube"),
    "Picard": lambda X: picard_components(X, ortho=True, extended=False),
    "Picard(extended)": lambda X: picard_components(X, ortho=True, extended=True),
}


def measured(kinds: str, n: int) -> dict[str, Any]:
    """Median Amari errors and seconds of all methods."""
    errors: dict[str, list[float]] = {name: [] for name in METHODS}
    seconds: dict[str, list[float]] = {name: [] for name in METHODS}
    for draw in range(FIRST, FIRST + DRAWS):
        rng = np.random.default_rng(draw)
        sources, mixing = np.column_stack([source(kind, n, rng) for kind in kinds]), rng.normal(size=(3, 3))
        for name, method in METHODS.items():
            start = time.perf_counter()
            components = method(sources @ mixing.T)
            seconds[name].append(time.perf_counter() - start)
            errors[name].append(amari_error(components @ mixing))
    found = {name: round(statistics.median(values), 5) for name, values in errors.items()}
    peers = min(value for name, value in found.items() if not name.startswith("KernelICA"))
    return {
        "error": found,
        "seconds": {name: round(statistics.median(values), 4) for name, values in seconds.items()},
        "ratio to the best peer": round(found["KernelICA"] / peers, 3),
    }


def main() -> None:
    """Measure, print and save."""
    warnings.simplefilter("ignore")
    rows = []
    for n in SIZES:
        for mix, kinds in MIXES.items():
            found = {"n": n, "mix": mix, **measured(kinds, n)}
            rows.append(found)
            print(f"{n:>7} {mix:<32} {found['ratio to the best peer']:.2f}  {found['error']}", flush=True)
    _record.save(RESULTS, {"draws": DRAWS, "first draw": FIRST, "rows": rows})


if __name__ == "__main__":
    main()
