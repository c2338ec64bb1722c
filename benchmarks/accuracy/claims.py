"""The papers' claims in numbers, and where ours does worst, from saved results of other scripts: nothing is measured.

    python benchmarks/accuracy/claims.py

*Theirs* is the papers' own estimate as the other scripts ran it, *ours* the default. Ratios of errors are formed draw
by draw, and their medians are taken.
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record

RESULTS = Path(__file__).with_name("results")
OURS, THEIRS, NPEM, GAUSSIAN = "latentviews", "paper's estimate", "npEM from k-means", "EM-GMM"
PUBLISHED = "paper's estimate as published"


def saved(name: str) -> Any:
    """The results of another script."""
    return json.loads((RESULTS / f"{name}.json").read_text())["results"]


def cells(records: Iterable[dict[str, Any]]) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """Draws by design, separation, classes and rows."""
    found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for record in records:
        place = tuple(record[name] for name in ("design", "separation", "k", "m"))
        found.setdefault(place, []).append(record["errors"])
    return found


def ratio(draws: list[dict[str, Any]], above: str, below: str) -> float:
    """The median over draws of the error of one method over that of another, where both have one."""
    pairs = [(draw.get(above), draw.get(below)) for draw in draws]
    return round(float(np.median([a / b for a, b in pairs if a is not None and b is not None])), 6)


def mixtures() -> dict[str, Any]:
    """Gaussian EM and nonparametric EM beside the spectral estimate on made-up classes."""
    separated = cells(saved("mixtures_separated"))
    large = {(design, k): draws for (design, _, k, m), draws in separated.items() if m == 10_000}
    of_k = sorted({k for _, k in large})
    everything = [*separated.items(), *cells(saved("mixtures_overlapping")).items()]
    everything += cells(saved("mixtures_identical")).items()

    def over(design: str, above: str, below: str) -> dict[int, float]:
        return {k: ratio(large[design, k], above, below) for k in of_k}

    def fewer(design: str) -> dict[str, int]:
        ratios = [ratio(draws, NPEM, THEIRS) for place, draws in everything if place[0] == design]
        return {"cells": len(ratios), "npEM errs less": sum(one < 1 for one in ratios)}

    return {
        "Gaussian EM over theirs, Gaussian and exponential": over("gamma", GAUSSIAN, THEIRS),
        "Gaussian EM over ours, Gaussian and exponential": over("gamma", GAUSSIAN, OURS),
        "theirs over Gaussian EM, Gaussian": over("gaussian", THEIRS, GAUSSIAN),
        "nonparametric EM beside theirs": {design: fewer(design) for design in ("gaussian", "gamma")},
    }


def published() -> dict[str, Any]:
    """The spectral estimate with the paper's own bandwidth beside others: 2,000 rows of separated classes."""
    found: dict[str, Any] = {}
    for (design, _, k, m), draws in cells(saved("mixtures_published")).items():
        if m == 2000:
            of_design = found.setdefault(design, {})
            for other in (OURS, THEIRS, GAUSSIAN, NPEM):
                of_design.setdefault(f"over {other}", {})[k] = ratio(draws, PUBLISHED, other)
    return found


def worst() -> dict[str, float]:
    """The cell in which ours does worst beside another method, of those with some hundred rows or more."""

    def largest(part: str, other: str, rows: int, **only: Any) -> float:
        names = ("design", "separation", "k", "m")
        mine = [
            ratio(draws, OURS, other)
            for place, draws in cells(saved(f"mixtures_{part}")).items()
            if place[-1] >= rows and all(dict(zip(names, place, strict=True))[name] == only[name] for name in only)
        ]
        return max(mine)

    return {
        "separated, over a kernel estimate that is told the labels": largest("separated", "oracle KDE", 500),
        "overlapping, over npEM from the truth": largest("overlapping", "npEM from the truth", 2000, separation=2.0),
        "shapes alone, over npEM from the truth": largest("shapes", "npEM from the truth", 4000),
        "Gaussian and exponential, over Gaussian EM": largest("separated", GAUSSIAN, 500, design="gamma"),
    }


def slopes() -> dict[str, float]:
    """Slopes of log error in log rows, averaged over the numbers of classes."""
    groups, found = cells(saved("mixtures_slopes")), {}
    for name in ("density", "mean"):
        lines = []
        for k in sorted({place[2] for place in groups}):
            mine = [(place[3], draws) for place, draws in groups.items() if place[2] == k]
            points = sorted((m, np.median([draw[name] for draw in draws])) for m, draws in mine)
            lines.append(np.polyfit(*np.log(np.array(points)).T, 1)[0])
        found[name] = round(float(np.mean(lines)), 3)
    return found


def cytometry() -> dict[str, Any]:
    """F-measures on the lymphoma samples, and on the one that has the paper's five columns."""
    runs: dict[tuple[str, str, bool], list[float]] = {}
    for run in saved("cytometry"):
        runs.setdefault((run["sample"], run["method"], run["split"]), []).append(run["F"])
    scores = {place: float(np.mean(values)) for place, values in runs.items()}
    samples = sorted({s for s, _, _ in runs if s.startswith("dlbcl") and not s.endswith("5d")})
    theirs, ours = "the paper's estimate", "MultiViewMixture, dependence"

    def wins(method: str, other: str) -> int:
        return sum(scores[s, method, False] > scores[s, other, False] for s in samples)

    peers = ("GaussianMixture, diagonal", "GaussianMixture, full")
    return {
        "samples": len(samples),
        "theirs above": {peer: wins(theirs, peer) for peer in peers},
        "ours above": {peer: wins(ours, peer) for peer in peers},
        "mean F": {m: round(float(np.mean([scores[s, m, False] for s in samples])), 4) for m in (theirs, ours, *peers)},
        "sample 001, the paper's views": {
            m: round(scores["dlbcl_001_5d", m, True], 4) for m in (theirs, ours, "MultiViewMixture", *peers)
        },
    }


def table_1() -> dict[str, Any]:
    """Negative log-likelihoods of the eleven sets, in the paper's protocol and in ours."""
    tables, found = saved("uci_table1"), {}
    for protocol in ("paper", "honest"):
        losses = [
            {method: np.mean([fold["nll"] for fold in folds]) for method, folds in table[protocol].items()}
            for table in tables.values()
        ]
        others = [[loss for method, loss in table.items() if method != "signed"] for table in losses]
        found[protocol] = {
            "sets": len(losses),
            "theirs best": sum(bool(table["signed"] < min(rest)) for table, rest in zip(losses, others, strict=True)),
            "theirs below KDE": sum(bool(table["signed"] < table["KDE"]) for table in losses),
            "latent tree below theirs": sum(bool(table["LatentTreeSpectral"] < table["signed"]) for table in losses),
        }
    means = [
        np.mean([[fold["mass"], fold["negative"]] for fold in protocol["signed"]], axis=0)
        for table in tables.values()
        for protocol in table.values()
    ]
    mass, negative = np.array(means).T
    return found | {
        "mass": [round(float(mass.min()), 3), round(float(mass.max()), 3)],
        "negative share": round(float(negative.max()), 4),
    }


def claims() -> dict[str, Any]:
    """All of them."""
    return {
        "mixtures": mixtures(),
        "published": published(),
        "worst": worst(),
        "slopes": slopes(),
        "cytometry": cytometry(),
        "table 1": table_1(),
    }


if __name__ == "__main__":
    _record.save(RESULTS / "claims.json", claims())
