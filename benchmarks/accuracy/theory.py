"""What the papers' theorems say of the spectral estimate, measured where the truth is known exactly.

    python benchmarks/accuracy/theory.py [--quick]

Slopes: the error of class embeddings in the kernel's space against the number of rows, for views of one, two and three
columns; a fixed kernel should give −½ whatever the columns. Classes: the error against their number where σ_k and the
smallest weight stay the same. Categories: the delta kernel with 10 to 1,000 of them. Coverage: how often the bounds of
pair and triple moments and of the whitened tensor hold at 95 %, and by how much they are too wide.
"""

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import brentq, linear_sum_assignment

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews import FourierFeatures, Gaussian, JointDiagonalization, OneHotFeatures
from latentviews.core.spectral import SpectralFit, spectral_fit
from latentviews.core.views import Views
from latentviews.diagnosis.moments import tensor_error_bound

RESULTS = Path(__file__).with_name("results") / "theory.json"
WEIGHTS = np.array([0.5, 0.3, 0.2])
DELTA = 0.05


def slope(sizes: Any, errors: Any) -> float:
    """The slope of log errors against log sizes."""
    return float(np.polyfit(np.log(sizes), np.log(errors), 1)[0])


def errors_of(found: SpectralFit, weights: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Errors after the best matching of classes: of embeddings over their norms, worst and mean, and of weights."""
    views = [np.asarray(vectors) for vectors in found.vectors]
    costs = sum(((view[:, :, None] - truth[:, None, :]) ** 2).sum(axis=0) for view in views)
    rows, columns = linear_sum_assignment(costs)
    order = rows[np.argsort(columns)]
    norms = np.linalg.norm(truth, axis=0)
    off = np.array([np.linalg.norm(view[:, order] - truth, axis=0) / norms for view in views])
    halves = [np.abs(view[:, order] - truth).sum(axis=0) / 2 for view in views]
    return {
        "embeddings": float(off.mean()),
        "worst embedding": float(off.max()),
        "weights": float(np.max(np.abs(found.weights[order] - weights))),
        "total variation": float(np.mean(halves)),
    }


def mean_errors(runs: list[dict[str, float]]) -> dict[str, float]:
    """The root mean squares of errors over draws."""
    return {name: round(float(np.sqrt(np.mean([run[name] ** 2 for run in runs]))), 5) for name in runs[0]}


def slopes(draws: int, sizes: list[int]) -> list[dict[str, Any]]:
    """Normal classes in views of d columns; their means of random Fourier features are known exactly."""
    found = []
    for d in (1, 2, 3):
        centres = np.array([-2.5, 0.0, 2.5])[:, None] * np.ones(d) / np.sqrt(d)
        phi = FourierFeatures(Gaussian(1.0), 64, unit_height=True, random_state=0).fit(np.zeros((1, d)))
        views = Views(tuple(list(range(d * t, d * (t + 1))) for t in range(3)), (phi,) * 3)
        frequencies = phi.frequencies_
        fall, phases = np.exp(-0.5 * np.sum(frequencies**2, axis=0)), centres @ frequencies
        truth = np.concatenate([fall * np.cos(phases), fall * np.sin(phases)], axis=1).T / np.sqrt(64)
        errors = []
        for n in sizes:
            runs = []
            for draw in range(draws):
                rng = np.random.default_rng(_record.FIRST_DRAW + draw)
                labels = rng.choice(3, size=n, p=WEIGHTS)
                rows = np.hstack([centres[labels] + rng.normal(size=(n, d)) for _ in range(3)])

                fit = spectral_fit(rows, views, 3, JointDiagonalization(), rng)
                runs.append(errors_of(fit, WEIGHTS, truth))
            errors.append(mean_errors(runs) | {"rows": n})
        fitted = slope(sizes, [error["embeddings"] for error in errors])
        found.append({"columns": d, "slope": round(fitted, 3), "errors": errors})
        print(f"slope  {d} column(s): {fitted:.3f}", [error["embeddings"] for error in errors], flush=True)
    return found


def table_fit(n: int, weights: np.ndarray, table: np.ndarray, rng: np.random.Generator) -> SpectralFit:
    """Rows of three views of categories, table[c, h] = P(c | h), and their spectral fit with the delta kernel."""
    size = len(table)
    labels = rng.choice(len(weights), size=n, p=weights)
    rows = np.empty((n, 3))
    for h in range(len(weights)):
        members = np.flatnonzero(labels == h)
        rows[members] = rng.choice(size, size=(len(members), 3), p=table[:, h])
    phi = OneHotFeatures(size).fit(np.zeros((1, 1)))
    views = Views(([0], [1], [2]), (phi,) * 3)
    return spectral_fit(rows, views, len(weights), JointDiagonalization(), rng)


def classes(draws: int, n: int = 20_000, sigma: float = 0.04, least: float = 0.08) -> dict[str, Any]:
    """More and more classes with one σ_k of the pair moment and one smallest weight."""
    found, size = [], 24
    for k in (2, 3, 4, 6, 8, 10):
        weights = np.r_[np.full(k - 1, (1 - least) / (k - 1)), least]

        def table(own: float, k: int = k) -> np.ndarray:
            rest = np.full((size, k), (1 - own) / size)
            return rest + own * np.eye(size, k)

        def sigma_k(own: float, weights: np.ndarray = weights, table: Any = table) -> float:
            return float(np.linalg.eigvalsh(table(own) * weights @ table(own).T)[-len(weights)])

        own = brentq(lambda value, sigma_k=sigma_k: sigma_k(value) - sigma, 0.01, 1.0)
        runs = [
            errors_of(table_fit(n, weights, table(own), np.random.default_rng(300 + draw)), weights, table(own))
            for draw in range(draws)
        ]
        found.append({"classes": k, "sigma_k": round(sigma_k(own), 5), "pi_min": least} | mean_errors(runs))
        print("classes", found[-1], flush=True)
    fitted = slope([one["classes"] for one in found], [one["worst embedding"] for one in found])
    return {"rows": n, "slope of the worst embedding": round(fitted, 3), "classes": found}


def categories(draws: int, n: int = 10_000, most: int = 1000) -> list[dict[str, Any]]:
    """Three classes, each with four times the probability on a third of the categories."""
    found = []
    for size in [size for size in (10, 30, 100, 300, 1000) if size <= most]:
        table = np.where(np.arange(size)[:, None] % 3 == np.arange(3), 4.0, 1.0)
        table /= table.sum(axis=0)
        roots = table * np.sqrt(WEIGHTS)
        sigma = float(np.linalg.eigvalsh(roots.T @ roots)[0])  # the least of M diag(π) Mᵀ that is not zero
        start = time.perf_counter()
        fits = [table_fit(n, WEIGHTS, table, np.random.default_rng(400 + draw)) for draw in range(draws)]
        seconds = (time.perf_counter() - start) / draws
        found.append({"categories": size, "rows": n, "sigma_k": round(sigma, 6), "seconds": round(seconds, 2)})
        found[-1] |= mean_errors([errors_of(fit, WEIGHTS, table) for fit in fits])
        print("categories", found[-1], flush=True)
    return found


def whitening(pair: np.ndarray, k: int) -> np.ndarray:
    """W with Wᵀ C W = I, from the k leading eigenvectors."""
    values, vectors = np.linalg.eigh((pair + pair.T) / 2)
    return vectors[:, -k:] / np.sqrt(np.maximum(values[-k:], 1e-12))


def coverage(draws: int) -> list[dict[str, Any]]:
    """Joint tables of three alike views of six categories, drawn at once; the truth's moments are exact."""
    table = np.array(
        [
            [0.7, 0.05, 0.05],
            [0.1, 0.05, 0.05],
            [0.05, 0.7, 0.1],
            [0.05, 0.1, 0.05],
            [0.05, 0.05, 0.65],
            [0.05, 0.05, 0.1],
        ]
    )
    triple = np.einsum("h,ah,bh,ch->abc", WEIGHTS, table, table, table)
    pair, k, found = triple.sum(axis=2), 3, []
    sigma = float(np.linalg.eigvalsh(pair)[-k])
    for m in (1_000, 10_000, 100_000, 1_000_000):
        rng, off = np.random.default_rng(500), []
        for _ in range(draws):
            counts = rng.multinomial(m, triple.ravel()).reshape(triple.shape) / m
            w = whitening(counts.sum(axis=2), k)
            values, vectors = np.linalg.eigh(w.T @ pair @ w)
            exact = w @ (vectors / np.sqrt(values)) @ vectors.T  # whitens the truth, and is as near to W as may be
            seen, true = (np.einsum("abc,ai,bj,cl->ijl", t, u, u, u) for t, u in ((counts, w), (triple, exact)))
            off.append(
                [
                    np.linalg.norm(counts.sum(axis=2) - pair),
                    np.linalg.norm(counts - triple),
                    np.linalg.norm(seen - true),
                ]
            )
        moment = 2 * np.sqrt(2) * np.sqrt(np.log(2 / DELTA) / m)
        bounds = {"pairs": moment, "triples": moment, "tensor": tensor_error_bound(m, 1.0, sigma, WEIGHTS.min(), DELTA)}
        for (name, bound), values in zip(bounds.items(), np.array(off).T, strict=True):
            quantile = float(np.quantile(values, 1 - DELTA))
            entry = {"of": name, "rows": m, "covered": float(np.mean(values <= bound))}
            entry["bound over the 95 % quantile"] = round(float(bound) / quantile, 2) if np.isfinite(bound) else None
            found.append(entry)
            print("coverage", entry, flush=True)
    return found


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few draws and small sizes, nothing saved")
    quick = parser.parse_args().quick
    sizes = [1000, 2000, 4000] if quick else [1000, 2000, 4000, 8000, 16_000, 32_000]
    results = {
        "slopes": slopes(3 if quick else 20, sizes),
        "classes": classes(3 if quick else 30),
        "categories": categories(2, most=100) if quick else categories(8) + categories(3, n=100_000),
        "coverage": coverage(50 if quick else 1000),
    }
    if not quick:
        _record.save(RESULTS, results)


if __name__ == "__main__":
    main()
