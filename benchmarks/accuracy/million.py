"""`LowRankDensity()` on a million rows of twelve columns from four spherical Gaussians: likelihood, time and memory.

    python benchmarks/accuracy/million.py

The truth is known, so the loss is that of the estimate alone: held-out negative log-likelihood less that of the truth,
on 100,000 fresh rows.
"""

import resource
import sys
import time
from pathlib import Path

import numpy as np
from scipy import stats
from scipy.special import logsumexp

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews import LowRankDensity

RESULTS = Path(__file__).with_name("results") / "million.json"
N_SAMPLES, N_COLUMNS, N_CLASSES = 1_000_000, 12, 4


def megabytes() -> float:
    """The most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Fit, score, save."""
    rng = np.random.default_rng(0)
    means = 2.0 * rng.normal(size=(N_CLASSES, N_COLUMNS))

    def draw(n: int) -> np.ndarray:
        return means[rng.integers(N_CLASSES, size=n)] + rng.normal(size=(n, N_COLUMNS))

    def nll(x: np.ndarray) -> float:
        parts = [stats.norm.logpdf(x, mean).sum(axis=1) for mean in means]
        return -float(logsumexp(np.stack(parts, axis=1), axis=1, b=1 / N_CLASSES).mean())

    rows, fresh = draw(N_SAMPLES), draw(100_000)
    truth, before = nll(fresh), megabytes()
    start, cpu = time.perf_counter(), time.process_time()
    model = LowRankDensity(random_state=0).fit(rows)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    peak = megabytes() - before
    stack = zip(model.density_.parts, model.density_.shares, strict=True)
    found = {
        "nll": -model.score(fresh),
        "nll of the truth": truth,
        "seconds": seconds,
        "seconds of processor": cpu,
        "megabytes above the data": peak,
        "ranks and shares of the stack": [[part.rank, float(share)] for part, share in stack],
    }
    found["excess"] = found["nll"] - truth
    print(found)
    _record.save(RESULTS, found)


if __name__ == "__main__":
    main()
