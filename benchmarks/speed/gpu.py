"""How fast fits and `predict` run on a CUDA device, and whether they say what NumPy says.

    python benchmarks/speed/gpu.py

Rows are made on the device and stay there. A fit of the same kind warms up; the device is waited for before and after
what is timed; times are medians of five. Needs PyTorch; ``--quick`` takes a hundredth of the rows, on a CPU too.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews import DoublyStochasticRegressor, KernelHMM, LandmarkFeatures, LandmarkPCA, MultiViewMixture

RESULTS = Path(__file__).with_name("results") / "gpu.json"
REPETITIONS = 5
AGREE_ROWS = 200_000
BARS = {"three columns": 1.5e8, "predict": 1e8, "three views of 4 columns": 1e7}  # rows per second


def rows(n: int, n_columns: int, k: int, device: str, dtype: Any, lasting: float = 1.0) -> Any:
    """Rows of k Gaussian classes two deviations apart in three views of so many columns; a class lasts so many rows."""
    generator = torch.Generator(device=device).manual_seed(0)
    labels = torch.randint(k, (n,), generator=generator, device=device)
    if lasting > 1.0:
        begins = torch.rand(n, generator=generator, device=device) < 1.0 / lasting
        labels = labels[torch.cumsum(begins, dim=0)]
    noise = torch.randn((n, 3 * n_columns), generator=generator, device=device, dtype=dtype)
    places = torch.stack([torch.randperm(k, generator=torch.Generator().manual_seed(t)) for t in range(3)], dim=1)
    places = places.to(device=device, dtype=dtype).repeat_interleave(n_columns, dim=1)
    for start in range(0, n, 2**24):
        noise[start : start + 2**24] += 2 * places[labels[start : start + 2**24]]
    return noise


def waited(device: str) -> float:
    """The time once the device has done all it was told."""
    if device != "cpu":
        torch.cuda.synchronize()
    return time.perf_counter()


def seconds(work: Callable[[], Any], device: str) -> float:
    """The median time of five, after one that warms up."""
    work()
    times = []
    for _ in range(REPETITIONS):
        start = waited(device)
        work()
        times.append(waited(device) - start)
    return statistics.median(times)


def columns_model(k: int = 5) -> MultiViewMixture:
    """The spectral estimate of one-column views."""
    return MultiViewMixture(k, polish=None, random_state=0)


def polished_model(k: int = 5) -> MultiViewMixture:
    """The default fit of one-column views."""
    return MultiViewMixture(k, random_state=0)


def wide_model(k: int = 3) -> MultiViewMixture:
    """The spectral estimate of three views of four columns with 512 features each."""
    views = [[4 * t + j for j in range(4)] for t in range(3)]
    features = LandmarkFeatures(n_landmarks=512, selection="uniform", random_state=0)
    return MultiViewMixture(k, views=views, features=features, polish=None, random_state=0)


def speed(n: int, n_wide: int, device: str) -> dict[str, Any]:
    """Rows per second of the three."""
    found = {**of_columns(n, device)}
    wide = rows(n_wide, 4, 3, device, torch.float32)
    found["three views of 4 columns"] = n_wide / seconds(lambda: wide_model().fit(wide), device)
    for name, rate in found.items():
        bar = f"; the bar is {BARS[name]:.3g}" if name in BARS else ""
        print(f"{name:26s} {rate:10.3g} rows/s{bar}", flush=True)
    return found


def beside_host(n: int, device: str) -> dict[str, dict[str, float]]:
    """Seconds of other fits on the device, and of the same on one core with NumPy, on a tenth of the rows there."""
    works: dict[str, tuple[Callable[[Any], Any], int, float]] = {
        "default fit, three columns": (lambda X: polished_model().fit(X), 1, 1.0),
        "hidden Markov model, three columns": (chains, 1, 20.0),
        "kernel PCA, 12 columns": (lambda X: LandmarkPCA(10, n_landmarks=512, random_state=0).fit(X), 4, 1.0),
        "Fastfood regression, 768 columns": (fastfood, 256, 1.0),
    }
    found = {}
    for name, (work, n_columns, lasting) in works.items():
        count = n // max(n_columns // 8, 1)
        X = rows(count, n_columns, 5, device, torch.float32, lasting)
        host = X[: count // 10].cpu().numpy()
        there = seconds(lambda: work(X), device)  # noqa: B023
        with threadpool_limits(1):
            here = seconds(lambda: work(host), "cpu")  # noqa: B023
        found[name] = {"rows": count, "device": there, "one core, for as many rows": 10 * here}
        print(f"{name:34s} {count:.0e} rows: {there:.2f} s there, {10 * here:.1f} s on one core", flush=True)
    return found


def chains(X: Any) -> Any:
    """A hidden Markov model of five states, three sensors, in sequences of 10,000 rows, states lasting some 25."""
    size = min(10_000, len(X))
    views = [[0], [1], [2]]
    return KernelHMM(5, views=views, random_state=0).fit(X, lengths=[size] * (len(X) // size))


def fastfood(X: Any) -> Any:
    """One pass of a regression of the first column on the others, with Hadamard blocks."""
    steps = {"batch_size": 4096, "n_blocks": 8, "n_epochs": 1}
    model = DoublyStochasticRegressor(selection="fastfood", n_frequencies=1024, random_state=0, **steps)
    return model.fit(X[:, 1:], X[:, 0])


def of_columns(n: int, device: str) -> dict[str, float]:
    """Rows per second of the fit and of `predict`, with three columns."""
    X = rows(n, 1, 5, device, torch.float32)
    fitted = columns_model().fit(X)
    return {
        "three columns": n / seconds(lambda: columns_model().fit(X), device),
        "predict": n / seconds(lambda: fitted.predict(X), device),
    }


def agreement(device: str) -> dict[str, float]:
    """The largest difference from NumPy on the same rows: weights, and densities over their peak."""
    found = {}
    for dtype in (torch.float64, torch.float32):
        models = (("columns", columns_model, 1, 5), ("polished", polished_model, 1, 5), ("views", wide_model, 4, 3))
        for name, model, n_columns, k in models:
            X = rows(AGREE_ROWS, n_columns, k, device, dtype)
            host = X.cpu().numpy()
            there, here = model().fit(X), model().fit(host)
            gaps = [np.abs(there.weights_ - here.weights_).max()]
            for ours, theirs in zip(there.components_, here.components_, strict=True):
                known = theirs.density(host[:1000, :n_columns])
                gaps.append(np.abs(ours.density(host[:1000, :n_columns]) - known).max() / known.max())
            labels = float((there.predict(X[:20000]).cpu().numpy() != here.predict(host[:20000])).mean())
            key = f"{name}, {str(dtype).rpartition('.')[2]}"
            found[key] = float(max(gaps))
            print(f"{key:20s} differs from NumPy by {found[key]:.1e}; {labels:.1e} of the labels differ", flush=True)
    return found


def other_library() -> dict[str, float]:
    """The largest difference in class weights and log-densities between CuPy's arrays and NumPy's, where CuPy is."""
    try:
        import cupy
    except ImportError:
        return {}
    found = {}
    for dtype in (torch.float64, torch.float32):
        X = cupy.from_dlpack(rows(AGREE_ROWS, 1, 5, "cuda", dtype))
        there, here = polished_model().fit(X), polished_model().fit(cupy.asnumpy(X))
        scores = there.score_samples(X)
        if not isinstance(scores, cupy.ndarray):
            raise TypeError(f"score_samples of a CuPy array answered with {type(scores)}")
        apart = np.abs(cupy.asnumpy(scores) - here.score_samples(cupy.asnumpy(X))).max()
        key = f"polished, {str(dtype).rpartition('.')[2]}"
        found[key] = float(max(apart, np.abs(there.weights_ - here.weights_).max()))
        print(f"{key:20s} of CuPy differs from NumPy by {found[key]:.1e}", flush=True)
    return found


def scatter(n: int, device: str) -> dict[str, float]:
    """Rows per second of two ways to add (n, 10) numbers up by cell, of which `device_bins` takes the first."""
    cells = torch.randint(700, (n,), device=device, dtype=torch.int32)
    values = torch.randn((n, 10), device=device, dtype=torch.float64)

    def rows_of() -> Any:
        return torch.zeros((701, 10), device=device, dtype=torch.float64).index_add_(0, cells, values)

    def counts_of() -> Any:
        return torch.stack([torch.bincount(cells, values[:, j], 701) for j in range(10)], dim=1)

    found = {"index_add": n / seconds(rows_of, device), "bincount": n / seconds(counts_of, device)}
    print("sums by cell: " + ", ".join(f"{name} {rate:.3g} rows/s" for name, rate in found.items()), flush=True)
    return found


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a hundredth of the rows, nothing saved")
    quick = parser.parse_args().quick
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu" and not quick:
        raise SystemExit("No CUDA device; --quick runs on a CPU.")
    part = 100 if quick else 1
    name = torch.cuda.get_device_name() if device == "cuda" else "CPU"
    print(f"{name}, PyTorch {torch.__version__}", flush=True)
    found = {"device": name, "agreement": agreement(device), "sums_by_cell": scatter(10**7 // part, device)}
    found["agreement_of_cupy"] = other_library() if device == "cuda" else {}
    found["rows_per_second"] = speed(10**8 // part, 10**7 // part, device)
    found["beside one core"] = beside_host(10**7 // part, device)
    if not quick:
        _record.save(RESULTS, found, (*_record.PACKAGES, "torch"))


if __name__ == "__main__":
    main()
