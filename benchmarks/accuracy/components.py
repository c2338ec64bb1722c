"""How often `rank_test` counts the classes right.

    python benchmarks/accuracy/components.py [--draws 100]

k = 1 … 5 at m = 2000 with separation 4, 2 and 1.2, and k = 8 at m = 10,000, both designs of `make_multiview`.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from _record import FIRST_DRAW, save
from latentviews import rank_test
from latentviews.datasets import make_multiview

CELLS = [(k, 2000, separation) for separation in (4.0, 2.0, 1.2) for k in range(1, 6)] + [
    (8, 10_000, 4.0),
    (8, 10_000, 2.0),
]


def counted(design: str, k: int, m: int, separation: float, draws: int) -> Counter:
    """The numbers of classes found, over draws."""
    found = Counter()
    for seed in range(FIRST_DRAW, FIRST_DRAW + draws):
        X, _, _ = make_multiview(m, k, design=design, separation=separation, random_state=seed)
        found[rank_test(X, random_state=seed).n_components] += 1
    return found


def main() -> None:
    """Count, print, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=100)
    draws = parser.parse_args().draws
    rows = []
    for design in ("gaussian", "gamma"):
        for k, m, separation in CELLS:
            found = counted(design, k, m, separation, draws)
            right, bar = found[k] / draws, {1.2: None}.get(separation, 0.8 if k == 8 else 0.9)
            met = "" if bar is None else "met" if right >= bar else "NOT MET"
            print(
                f"{design:9} k={k} m={m} sep={separation:g}: right {right:.2f} {met:8} {dict(sorted(found.items()))}",
                flush=True,
            )
            rows.append(
                {
                    "design": design,
                    "k": k,
                    "m": m,
                    "separation": separation,
                    "right": right,
                    "bar": bar,
                    "found": dict(found),
                }
            )
    measured = [row["right"] for row in rows if row["bar"] is not None]
    print(f"least share right where a bar is set: {np.min(measured):.2f}")
    save(Path(__file__).parent / "results" / "components.json", {"draws": draws, "cells": rows})


if __name__ == "__main__":
    main()
