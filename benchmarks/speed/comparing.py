"""How fast the tests and the search for changes are beside hyppo and ruptures.

    pip install hyppo ruptures
    python benchmarks/speed/comparing.py

hyppo's cost grows with the square of the rows for each of its permutations, and that of ruptures with the square of the
rows, so both are timed on less and the time for all is computed from that: the printed ratio says how. Both are run on
all of it too, and stopped when they have taken eleven times as long as ours.
"""

import multiprocessing
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews import ChangePoints, two_sample_test

RESULTS = Path(__file__).with_name("results") / "comparing.json"


def seconds(call: Any) -> float:
    """The wall time of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def beside(ours: float, call: Any) -> dict[str, Any]:
    """What is measured of a peer at full size, in a process that is stopped after eleven times our seconds."""
    context = multiprocessing.get_context("fork")
    said = context.SimpleQueue()

    def told() -> None:
        try:
            said.put(seconds(call))
        except MemoryError as error:
            said.put(str(error))

    process = context.Process(target=told)
    process.start()
    process.join(11 * ours)
    if process.is_alive():
        process.terminate()
        process.join()
        return {"stopped after": round(11 * ours, 1), "times ours, at least": 11.0}
    found = said.get()
    return (
        {"failed": found} if isinstance(found, str) else {"peer": round(found, 2), "times ours": round(found / ours, 1)}
    )


def two_samples() -> dict[str, Any]:
    """10⁴ rows of ten columns, 200 permutations."""
    from hyppo.ksample import MMD

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(5000, 10)), rng.normal(0.05, size=(5000, 10))
    ours = seconds(lambda: two_sample_test(x, y, n_permutations=200, random_state=0))
    few = slice(1000)
    MMD().test(x[:50], y[:50], reps=2, workers=1, auto=False, random_state=0)  # which compiles it
    peer = seconds(lambda: MMD().test(x[few], y[few], reps=20, workers=1, auto=False, random_state=0))
    full = beside(ours, lambda: MMD().test(x, y, reps=200, workers=1, auto=False, random_state=0))
    scaled = peer * 10 * 25  # ten times the permutations, 25 times the pairs of rows
    return {
        "rows": 10_000,
        "ours": round(ours, 2),
        "hyppo (2,000 rows, 20 permutations)": round(peer, 2),
        "hyppo, computed": round(scaled, 1),
        "ratio": round(scaled / ours, 1),
        "hyppo, 10,000 rows and 200 permutations": full,
    }


def million() -> dict[str, Any]:
    """10⁶ rows of ten columns, from features."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(500_000, 10)), rng.normal(0.01, size=(500_000, 10))
    return {"rows": 1_000_000, "seconds": round(seconds(lambda: two_sample_test(x, y, random_state=0)), 1)}


def changes() -> dict[str, Any]:
    """Changes of spread in 10⁴ rows by both, and in 10⁵ by ours; ruptures' cost grows with the square."""
    import ruptures

    rng = np.random.default_rng(0)
    found: dict[str, Any] = {}
    for n in (10_000, 100_000):
        spread = np.repeat(rng.uniform(0.5, 3.0, size=10), n // 10)
        x = rng.normal(size=(n, 3)) * spread[:, None]
        ours = seconds(lambda x=x: ChangePoints(9, random_state=0).fit(x))
        found[f"ours, {n} rows"] = round(ours, 2)

        def ruptures_on(x: np.ndarray = x) -> Any:
            return ruptures.KernelCPD("rbf").fit(x).predict(n_bkps=9)

        if n == 10_000:
            peer = seconds(ruptures_on)
            found["ruptures, 10000 rows"] = round(peer, 2)
        else:
            found[f"ruptures, {n} rows"] = beside(ours, ruptures_on)
    found["ratio at 10⁵, ruptures computed as 100 times its time at 10⁴"] = round(
        100 * peer / found["ours, 100000 rows"], 1
    )
    return found


def main() -> None:
    """Measure, print and save."""
    results = {"two samples": two_samples(), "a million": million(), "changes": changes()}
    for name, values in results.items():
        print(name, values)
    _record.save(RESULTS, results)


if __name__ == "__main__":
    main()
