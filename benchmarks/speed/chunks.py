"""What a chunk costs Dask, whatever is in it: the spectral fit of chunks of twenty rows, on one worker process.

    python benchmarks/speed/chunks.py

Seconds of the processor of the client, in whose process the scheduler is, and of the worker, per further chunk: between
fits of 100 and 400 chunks. A spectral fit has two passes. Set OPENBLAS_NUM_THREADS=1.
"""

import sys
import time
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews import MultiViewMixture

RESULTS = Path(__file__).with_name("results") / "chunks.json"
ROWS, FEW, MANY = 20, 100, 400


def drawn(number: np.ndarray) -> np.ndarray:
    """The rows of a chunk."""
    return np.random.default_rng(int(number[0])).normal(size=(ROWS, 3))


def seconds(client: Any, n_chunks: int) -> np.ndarray:
    """Of the client and of the worker, for a fit of so many chunks."""
    numbers = da.arange(n_chunks, chunks=1)
    chunks = da.map_blocks(drawn, numbers, dtype=float, chunks=((ROWS,) * n_chunks, (3,)), new_axis=1)

    def spent() -> np.ndarray:
        return np.array([time.process_time(), sum(client.run(time.process_time).values())])

    before = spent()
    MultiViewMixture(1, polish=None, pilot_size=1000, random_state=0).fit(chunks)
    return spent() - before


def main() -> None:
    """Measure, print, save."""
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        seconds(client, FEW)  # imports what it needs
        few, many = seconds(client, FEW), seconds(client, MANY)
    milliseconds = (1000 * (many - few) / (MANY - FEW)).round(1).tolist()
    found = dict(zip(("client and scheduler", "worker"), milliseconds, strict=True))
    print(found)
    _record.save(RESULTS, {"milliseconds per chunk": found}, (*_record.PACKAGES, "dask", "distributed"))


if __name__ == "__main__":
    main()
