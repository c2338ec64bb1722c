"""Views of several columns: time and held-out likelihood of `MultiViewMixture`, and the classes it finds in wide ones.

    python benchmarks/accuracy/several_columns.py
    LATENTVIEWS_DATA=… python benchmarks/accuracy/several_columns.py --part tables   # recorded tables
    python benchmarks/accuracy/several_columns.py --part wide                        # digits and breast cancer in views

Times are processor seconds in one thread, medians of five fits; log-likelihoods are means over rows not fitted to.
"""

import argparse
import gzip
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import threadpoolctl
from scipy import ndimage
from scipy.interpolate import interp1d
from scipy.special import eval_jacobi
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _record
from latentviews import MultiViewMixture

RESULTS = Path(__file__).with_name("results")
ROWS, NEW, CLASSES, VIEWS, REPETITIONS, SEEDS = 1500, 5000, 3, 3, 5, 5
INK = 0.4  # of the darkest
Rows = tuple[np.ndarray, np.ndarray]


def blobs(noise: np.ndarray, label: int, rng: np.random.Generator) -> np.ndarray:
    """A Gaussian of any covariance."""
    dim = noise.shape[1]
    return 2 * rng.normal(size=dim) + noise @ rng.normal(size=(dim, dim)) / np.sqrt(dim)


def curved(noise: np.ndarray, label: int, rng: np.random.Generator) -> np.ndarray:
    """A parabola, turned."""
    bent = noise * 0.3
    bent[:, 0] = 1.5 * noise[:, 0]
    bent[:, 1] += bent[:, 0] ** 2 / 2
    return 2 * rng.normal(size=noise.shape[1]) + bent @ np.linalg.qr(rng.normal(size=2 * noise.shape[1:]))[0]


def heavy_tailed(noise: np.ndarray, label: int, rng: np.random.Generator) -> np.ndarray:
    """Student's t with three degrees of freedom, correlated."""
    return blobs(noise / np.sqrt(rng.chisquare(3, size=(len(noise), 1)) / 3), label, rng)


def sensors(noise: np.ndarray, label: int, rng: np.random.Generator) -> np.ndarray:
    """Sensors at rest, in slow and in fast motion."""
    place = rng.normal(size=noise.shape[1])
    if label == 0:
        return place + 0.01 * noise
    phase = rng.uniform(0, 2 * np.pi, size=(len(noise), 1)) + rng.uniform(0, 2 * np.pi, size=noise.shape[1])
    return place + label * np.sin(phase) + 0.1 * label * noise


DESIGNS = {design.__name__: design for design in (blobs, curved, heavy_tailed, sensors)}


def draw(design: Callable[..., np.ndarray], dim: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to fit to, and new ones, of three views."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(CLASSES, size=ROWS + NEW)
    table = np.empty((len(labels), VIEWS * dim))
    for view in range(VIEWS):
        for label in range(CLASSES):
            rows = np.flatnonzero(labels == label)
            table[rows, view * dim : (view + 1) * dim] = design(rng.normal(size=(len(rows), dim)), label, rng)
    return table[:ROWS], table[ROWS:]


def in_views(widths: list[int]) -> list[list[int]]:
    """Columns beside each other, so many a view."""
    ends = np.cumsum([0, *widths])
    return [list(range(a, b)) for a, b in pairwise(ends)]


def measure(name: str, rows: Rows, views: list[list[int]], k: int) -> dict[str, Any]:
    """Ours beside full Gaussians: seconds, and the log-likelihood of new rows."""
    found: dict[str, Any] = {"data": name, "views": [len(view) for view in views]}
    models: dict[str, Callable[[], Any]] = {
        "ours": lambda: MultiViewMixture(k, views=views, random_state=0),
        "GaussianMixture": lambda: GaussianMixture(k, random_state=0),
    }
    for method, make in models.items():
        times, model = [], make()
        for _ in range(REPETITIONS):
            start = time.process_time()
            model = make().fit(rows[0])
            times.append(time.process_time() - start)
        found[method] = [round(statistics.median(times), 3), round(float(model.score(rows[1])), 4)]
    print(f"{name:28s} ours {found['ours']}  GaussianMixture {found['GaussianMixture']}", flush=True)
    return found


def designs(seed: int) -> list[dict[str, Any]]:
    """Every design in views of one, two and five columns."""
    cases = [("blobs", 1), *((name, dim) for dim in (2, 5) for name in DESIGNS)]
    return [
        measure(f"{name}, {dim} columns", draw(DESIGNS[name], dim, seed), in_views([dim] * VIEWS), CLASSES)
        for name, dim in cases
    ]


TABLES = {  # file, columns, views, classes
    "basic motions": ("series/basic_motions.csv.gz", 6, [2, 2, 2], 4),
    "daphnet": ("series/daphnet_s06r02.csv.gz", 9, [3, 3, 3], 4),
    "wall robot": ("series/wall_robot_24.csv.gz", 24, [8, 8, 8], 4),
    "gvhd": ("flowcap_gvhd/gvhd_001.csv.gz", 6, [2, 2, 2], 4),
}


def tables(seed: int) -> list[dict[str, Any]]:
    """Recorded tables, some rows of each."""
    found = []
    for name, (file, n_columns, widths, k) in TABLES.items():
        x = columns_of(Path(os.environ["LATENTVIEWS_DATA"]) / file, n_columns)
        x = x[np.random.default_rng(seed).permutation(len(x))[: ROWS + NEW]]
        found.append(measure(name, (x[:ROWS], x[ROWS:]), in_views(widths), k))
    return found


def columns_of(file: Path, n_columns: int) -> np.ndarray:
    """The last columns that hold numbers before the label, complete rows only."""
    with gzip.open(file, "rt") as lines:
        names = lines.readline().strip().split(",")
        x = np.genfromtxt(lines, delimiter=",")
    here = [j for j, name in enumerate(names) if name not in ("label", "series", "time", "id", "t")][-n_columns:]
    return x[~np.isnan(x[:, here]).any(axis=1)][:, here]


def fourier(images: np.ndarray) -> np.ndarray:
    """Amplitudes of the lowest frequencies of images."""
    return np.abs(np.fft.rfft2(images))[:, :4, :3].reshape(len(images), -1)


def shape(images: np.ndarray) -> np.ndarray:
    """Six moments of the ink."""
    mass = images.sum(axis=(1, 2))
    y, x = np.mgrid[: images.shape[1], : images.shape[2]]
    means = [(images * grid).sum(axis=(1, 2)) / mass for grid in (x, y)]
    centred = [grid - mean[:, None, None] for grid, mean in zip((x, y), means, strict=True)]
    second = [
        (images * a * b).sum(axis=(1, 2)) / mass for a, b in ((centred[0],) * 2, (centred[1],) * 2, tuple(centred))
    ]
    return np.column_stack([mass, *means, *second])


def enlarged(images: np.ndarray, size: int = 32) -> np.ndarray:
    """Images with a margin, finer, their ink from zero to one."""
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    factor = size / padded.shape[1]
    return np.clip(ndimage.zoom(padded, (1, factor, factor), order=3) / images.max(), 0, 1)


def profile_correlations(images: np.ndarray, size: int = 18) -> np.ndarray:
    """Correlations at every lag of twelve pairs of profiles: the ink from four sides, and its sums along four ways."""
    ink, n = images > INK, images.shape[1]
    sides = [np.where(x.any(axis=2), x.argmax(axis=2), n) for x in (ink, ink[:, :, ::-1])]
    turned = ink.transpose(0, 2, 1)
    sides += [np.where(x.any(axis=2), x.argmax(axis=2), n) for x in (turned, turned[:, :, ::-1])]
    offsets = range(-n + 2, n - 1, 2)
    slanted = [
        np.stack([np.trace(x, offset, 1, 2) for offset in offsets], axis=1) for x in (images, images[:, :, ::-1])
    ]
    every = [*sides, images.sum(axis=2), images.sum(axis=1), *slanted]
    short = [interp1d(np.linspace(0, 1, p.shape[1]), p)(np.linspace(0, 1, size)) for p in every]
    pairs = [(0, 1), (2, 3), (4, 5), (6, 7), (0, 2), (0, 3), (1, 2), (1, 3), (0, 4), (1, 4), (2, 5), (3, 5)]
    lags = [(short[a] * np.roll(short[b], lag, axis=1)).sum(axis=1) for a, b in pairs for lag in range(size)]
    return np.round(np.stack(lags, axis=1))


def zernike_moments(images: np.ndarray, order: int = 12) -> np.ndarray:
    """Absolute Zernike moments of orders from two on, around the centre of the ink (Khotanzad & Hong 1990)."""
    n, mass = images.shape[1], images.sum(axis=(1, 2), keepdims=True)
    y, x = np.mgrid[:n, :n]
    across, down = (grid - (images * grid).sum(axis=(1, 2), keepdims=True) / mass for grid in (x, y))
    radius, angle = 2 * np.hypot(across, down) / n, np.arctan2(down, across)
    inside = images / mass * (radius <= 1)
    found = []
    for p in range(2, order + 1):
        for q in range(p % 2, p + 1, 2):  # the radial polynomial is r^q times Jacobi's of r²
            radial = radius**q * eval_jacobi((p - q) // 2, 0, q, 2 * radius**2 - 1)
            found.append(np.abs((inside * radial * np.exp(-1j * q * angle)).sum(axis=(1, 2))) * (p + 1) / np.pi)
    return np.stack(found, axis=1)


def morphology(images: np.ndarray) -> np.ndarray:
    """Holes, rows of two strokes and strokes down a column, as integers; slant, elongation and inertia of the ink."""
    ink = images > INK
    holes = [min(ndimage.label(np.pad(~x, 1))[1] - 1, 2) for x in ink]
    across, down = ((np.diff(ink.astype(int), axis=axis, prepend=0) > 0).sum(axis=axis) for axis in (2, 1))
    mass, _, _, xx, yy, xy = shape(images).T
    root = np.sqrt(((xx - yy) / 2) ** 2 + xy**2)
    ratio = np.sqrt(((xx + yy) / 2 + root) / np.maximum((xx + yy) / 2 - root, 1e-3))
    slant = np.degrees(np.arctan2(2 * xy, xx - yy)) / 2 + 90
    return np.column_stack([holes, (across >= 2).sum(axis=1) // 4, down.max(axis=1), slant, ratio, mass * (xx + yy)])


def digits_in_views(kind: str) -> tuple[list[np.ndarray], np.ndarray]:
    """Handwritten digits: thirds of the image, or features of very different numbers."""
    digits = load_digits()
    images = digits.images
    if kind == "thirds":
        parts = [images[:, :3], images[:, 3:5], images[:, 5:]]
        return [part.reshape(len(images), -1) for part in parts], digits.target
    if kind == "halves":
        profile = np.concatenate([images.sum(axis=1), images.sum(axis=2)], axis=1)
        return [
            images[:, :, :4].reshape(len(images), -1),
            images[:, :, 4:].reshape(len(images), -1),
            profile,
        ], digits.target
    if kind == "profiles":
        fine = enlarged(images)
        return [profile_correlations(fine), zernike_moments(fine), morphology(fine)], digits.target
    return [images.reshape(len(images), -1), fourier(images), shape(images)], digits.target


def wide_tables() -> dict[str, tuple[list[np.ndarray], np.ndarray]]:
    """Views of many columns with known classes."""
    cancer = load_breast_cancer()
    found = {f"digits, {kind}": digits_in_views(kind) for kind in ("profiles", "features", "thirds", "halves")}
    return {"breast cancer": (np.split(cancer.data, 3, axis=1), cancer.target), **found}


def wide(seed: int) -> list[dict[str, Any]]:
    """How near to the classes ours, k-means and Gaussians in eight principal components per view come."""
    found = []
    for name, (parts, labels) in wide_tables().items():
        used = [part[:, part.std(axis=0) > 0] for part in parts]
        x, k = np.hstack(used), len(np.unique(labels))
        views = in_views([part.shape[1] for part in used])
        found.append({"data": name, "views": [len(view) for view in views], **agreement(x, views, labels, k, seed)})
        print(found[-1], flush=True)
    return found


def agreement(x: np.ndarray, views: list[list[int]], labels: np.ndarray, k: int, seed: int) -> dict[str, Any]:
    """Adjusted Rand indices over seeds."""
    standard = (x - x.mean(axis=0)) / x.std(axis=0)
    reduced = np.hstack([_principal(standard[:, view]) for view in views])
    methods: dict[str, tuple[Callable[[int], Any], np.ndarray]] = {
        "ours": (lambda s: MultiViewMixture(k, views=views, random_state=s), x),
        "k-means": (lambda s: KMeans(k, n_init=10, random_state=s), standard),
        "Gaussians": (lambda s: GaussianMixture(k, n_init=3, reg_covar=1e-3, random_state=s), reduced),
    }
    found: dict[str, Any] = {}
    for method, (make, rows) in methods.items():
        start = time.process_time()
        scores = [adjusted_rand_score(labels, make(seed + s).fit(rows).predict(rows)) for s in range(SEEDS)]
        found[method] = [round(statistics.mean(scores), 3), round(min(scores), 3), round(max(scores), 3)]
        found[f"{method} seconds"] = round((time.process_time() - start) / SEEDS, 2)
    return found


def _principal(x: np.ndarray, size: int = 8) -> np.ndarray:
    left, values, _ = np.linalg.svd(x, full_matrices=False)
    return left[:, :size] * values[:size]


PARTS = {"designs": designs, "tables": tables, "wide": wide}


def main() -> None:
    """Measure a part, and save it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=PARTS, default="designs")
    parser.add_argument("--seed", type=int, default=_record.FIRST_DRAW)
    parser.add_argument("--dry", action="store_true", help="save nothing")
    given = parser.parse_args()
    with threadpoolctl.threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = PARTS[given.part](given.seed)
    if not given.dry:
        _record.save(RESULTS / f"several_columns_{given.part}.json", found)


if __name__ == "__main__":
    main()
