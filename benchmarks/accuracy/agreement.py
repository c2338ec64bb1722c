"""The same rows from other places: how far fits are from that of an array in NumPy, in double and single precision.

    python benchmarks/accuracy/agreement.py [--rows 50000] [--large 6000000]

Three columns of the Gamma design, k = 3, the spectral fit (`polish=None`) and the default: the largest difference in a
class weight, and in a class's density of a column at the first 1,000 rows, over the largest value of that density. Rows
are a PyTorch tensor on the CPU, an NPY file by its path, a Parquet file, a Dask array and an iterable of ten batches;
the memory map has more rows, since a smaller one is read as an array is, and the spectral fit alone. *Other pilot* is
the iterable with the default pilot of 20,000 rows, which is drawn otherwise there; *batches* has all rows in the pilot,
and so has the array beside it. The others have the default pilot. Rows in either precision are compared with an array
in the same, and the array in single precision with that in double. Needs PyTorch and Dask.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pandas as pd
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews import MultiViewMixture
from latentviews.datasets import make_multiview

RESULTS = Path(__file__).with_name("results") / "agreement.json"
FITS: dict[str, dict[str, Any]] = {"spectral": {"polish": None}, "default": {}}
PACKAGES = (*_record.PACKAGES, "torch", "dask", "pyarrow", "pandas")


class Batches:
    """Rows in ten parts, again whenever they are asked for."""

    def __init__(self, X: np.ndarray):
        self.X = X

    def __iter__(self) -> Iterable[np.ndarray]:
        return iter(np.array_split(self.X, 10))


def saved(folder: Path, X: np.ndarray, kind: str) -> Path:
    """The path of a file with these rows."""
    path = folder / f"{len(X)}-{X.dtype}.{kind}"
    if kind == "npy":
        np.save(path, X)
    else:
        pd.DataFrame(X, columns=list("abc")).to_parquet(path, row_group_size=2**14)
    return path


SOURCES: dict[str, Callable[[Path, np.ndarray], Any]] = {
    "PyTorch, CPU": lambda _, X: torch.from_numpy(X),
    "NPY file": lambda folder, X: saved(folder, X, "npy"),
    "Parquet": lambda folder, X: saved(folder, X, "parquet"),
    "Dask": lambda _, X: da.from_array(X, chunks=(len(X) // 7, 3)),
    "batches": lambda _, X: Batches(X),
}


def fit(X: Any, **settings: Any) -> MultiViewMixture:
    """A fit with the seed that all have."""
    return MultiViewMixture(3, random_state=0, **settings).fit(X)


def apart(there: MultiViewMixture, here: MultiViewMixture, X: np.ndarray) -> dict[str, float]:
    """The largest differences of weights, and of densities over their peak."""
    densities = []
    for j, (ours, theirs) in enumerate(zip(there.components_, here.components_, strict=True)):
        known = theirs.density(X[:1000, [j]])
        densities.append(float(np.abs(ours.density(X[:1000, [j]]) - known).max() / known.max()))
    return {"weights": float(np.abs(there.weights_ - here.weights_).max()), "densities": max(densities)}


def of_precision(X: np.ndarray, large: np.ndarray, folder: Path) -> dict[str, dict[str, dict[str, float]]]:
    """By fit and source."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name, settings in FITS.items():
        here, whole = fit(X, **settings), fit(X, pilot_size=len(X) + 1, **settings)
        found[name] = {}
        for source, rows in SOURCES.items():
            known, pilot = (whole, {"pilot_size": len(X) + 1}) if source == "batches" else (here, {})
            found[name][source] = apart(fit(rows(folder, X), **pilot, **settings), known, X)
        found[name]["batches, other pilot"] = apart(fit(Batches(X), **settings), here, X)
    mapped = np.load(saved(folder, large, "npy"), mmap_mode="r")
    found["spectral"]["memory map"] = apart(fit(mapped, polish=None), fit(large, polish=None), large)
    return found


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--large", type=int, default=6_000_000)
    arguments = parser.parse_args()
    large = make_multiview(arguments.large, 3, design="gamma", random_state=_record.FIRST_DRAW).X
    X, found = large[: arguments.rows].copy(), {}
    with tempfile.TemporaryDirectory() as folder, dask.config.set(scheduler="synchronous"):
        for dtype in (np.float64, np.float32):
            found[np.dtype(dtype).name] = of_precision(X.astype(dtype), large.astype(dtype), Path(folder))
    single = {name: apart(fit(X.astype(np.float32), **how), fit(X, **how), X) for name, how in FITS.items()}
    found["array in single precision beside double"] = single
    for precision, fits in found.items():
        for name, sources in fits.items():
            print(precision, name, sources, sep=" | ", flush=True)
    _record.save(RESULTS, {**vars(arguments), "apart": found}, PACKAGES)


if __name__ == "__main__":
    main()
