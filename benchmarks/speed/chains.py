"""How long passes over a chain of 10⁶ steps and five states take, beside hmmlearn's compiled ones.

    python benchmarks/speed/chains.py

Both judge the same rows by the same Gaussian emissions and transitions: filtering, forward–backward and the best path,
log-emissions included. Times are medians of three, of the processor (set OPENBLAS_NUM_THREADS=1); what both find is
compared too.
"""

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from hmmlearn.hmm import GaussianHMM
from scipy import stats

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews.sequences.chains import best_path, draw_states, filter_states, smooth_states

RESULTS = Path(__file__).with_name("results") / "chains.json"
STEPS, STATES, REPETITIONS = 1_000_000, 5, 3


def timed(passes: Callable[[], Any]) -> tuple[Any, float]:
    """What a pass finds, and the median of its times."""
    times = []
    for _ in range(REPETITIONS):
        begin = time.process_time()
        found = passes()
        times.append(time.process_time() - begin)
    return found, round(statistics.median(times), 3)


def main() -> None:
    """Measure all passes, print, save."""
    rng = np.random.default_rng(0)
    transition = 0.9 * np.eye(STATES) + 0.1 / STATES
    start, lengths, means = np.full(STATES, 1 / STATES), np.array([STEPS]), 1.5 * np.arange(STATES)
    X = means[draw_states(start, transition, lengths, rng)][:, None] + rng.normal(size=(STEPS, 1))
    peer = GaussianHMM(STATES, "diag")
    peer.startprob_, peer.transmat_ = start, transition
    peer.means_, peer.covars_ = means[:, None], np.ones((STATES, 1))

    def judged() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return stats.norm.logpdf(X, means), start, transition, lengths

    filtered, filter_seconds = timed(lambda: filter_states(*judged()))
    smoothed, smooth_seconds = timed(lambda: smooth_states(*judged()))
    path, path_seconds = timed(lambda: best_path(*judged()))
    likelihood, peer_filter = timed(lambda: peer.score(X))
    (_, posteriors), peer_smooth = timed(lambda: peer.score_samples(X))
    (_, peer_path), peer_best = timed(lambda: peer.decode(X))
    found = {
        "seconds": {"filtering": filter_seconds, "forward-backward": smooth_seconds, "best path": path_seconds},
        "hmmlearn's": {"filtering": peer_filter, "forward-backward": peer_smooth, "best path": peer_best},
        "log-likelihood per step apart": abs(float(filtered.log_likelihood.sum()) - likelihood) / STEPS,
        "posteriors apart": float(np.abs(smoothed.posteriors - posteriors).max()),
        "paths apart": float(np.mean(path.states != peer_path)),
    }
    print(found)
    _record.save(RESULTS, {"steps": STEPS, "states": STATES, **found})


if __name__ == "__main__":
    main()
