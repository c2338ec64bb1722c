"""Whether `dependence="auto"` takes the better of independent views and copulas on FlowCAP-I's samples.

    LATENTVIEWS_DATA=../shared/data python benchmarks/accuracy/dependence_choice.py [--rows 4000] [--seed 2]

Every sample is thinned to ``--rows`` cells, drawn by ``--seed``, and fitted with the number of gated populations, both
ways and by choice. The score is the adjusted Rand index on gated cells; what the choice loses is the better score less
its own. The rule was made on draws of seeds 1 to 4.
"""

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews import MultiViewMixture
from latentviews.datasets import flowcap_samples, load_flowcap
from latentviews.datasets.collections import FLOWCAP
from latentviews.metrics import adjusted_rand

RESULTS = Path(__file__).with_name("results") / "dependence_choice.json"
WAYS = {"independence": None, "copula": "copula", "auto": "auto"}


def measure(sample: str, rows: int, seed: int) -> dict[str, Any]:
    """The scores of both ways and of the choice."""
    X, y, _ = load_flowcap(sample)
    kept = np.random.default_rng(seed).permutation(len(X))[:rows]
    X, y = (X[kept] - X.mean(axis=0)) / X.std(axis=0), y[kept]
    gated, start = y != 0, time.process_time()
    k, record = len(np.unique(y[gated])), {"sample": sample}
    for name, dependence in WAYS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = MultiViewMixture(k, dependence=dependence, random_state=0).fit(X)
        record[name] = round(adjusted_rand(y[gated], model.predict(X)[gated]), 4)
    choice = model.dependence_choice_
    record |= {name: np.round(getattr(choice, name), 4).tolist() for name in ("stability", "between", "agreement")}
    held_out = [round(choice.independence, 4), round(choice.copula, 4)]
    lost = round(max(record["independence"], record["copula"]) - record["auto"], 4)
    seconds = round(time.process_time() - start, 1)
    p_value = float(f"{choice.p_value:.2g}")
    return {**record, "taken": choice.taken, "held_out": held_out, "p": p_value, "lost": lost, "seconds": seconds}


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--samples", nargs="*", default=[name for one in FLOWCAP for name in flowcap_samples(one)])
    arguments, records = parser.parse_args(), []
    for sample in arguments.samples:
        records.append(measure(sample, arguments.rows, arguments.seed))
        mine = records[-1]
        print(
            f"{sample:14} {mine['independence']:.3f} {mine['copula']:.3f} {mine['taken']:13} {mine['lost']:.3f}",
            flush=True,
        )
    _record.save(RESULTS, {"rows": arguments.rows, "seed": arguments.seed, "samples": records})


if __name__ == "__main__":
    main()
