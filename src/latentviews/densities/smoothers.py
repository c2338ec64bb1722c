"""Ways to smooth the rows of several real columns, stacked as held-out rows prefer."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from latentviews._numbers import TINY
from latentviews.core.kernels.bandwidths import dithered
from latentviews.core.kernels.quadrature import Quadrature
from latentviews.densities.codebooks import Codebook, fit_codebook, spreads
from latentviews.densities.stacking import stacking_shares
from latentviews.densities.weighted_samples import (
    NEGLIGIBLE,
    POINTS,
    WIDTHS,
    GaussianGroup,
    Smoother,
    WeightedSample,
    log_densities,
    log_kernels,
    log_mixtures,
)

SIZES = (6, 12, 25, 50, 100)  # Gaussians in a codebook
SURROUNDINGS = 50  # Gaussians whose shapes kernels take
PER_GAUSSIAN = 2  # rows of a half that there must be for each, times two and the number of columns
BROAD = 3.0  # how much wider than a component its broadest Gaussian is, for stray rows
SHRINKAGE = 1e-3  # of the covariance of a component with few rows towards that of all
FLAT = 1e-12  # the least variance of a direction, columns having one
MANY = 25  # columns beyond which variances would be more to match than rows can bear
TILT = 5.0  # how much more or less than drawn a row may count
FURTHEST = 1e70  # spreads from the middle beyond which moments of moments are no numbers
PIECES = 8  # stretches that rows are halved by where the halves given leave one of them out
SMALL = 0.01  # share of a way to smooth with many kernels, below which it is left out


def weighted_samples(
    x: np.ndarray,
    posteriors: np.ndarray,
    halves: tuple[np.ndarray, np.ndarray],
    domain: Quadrature,
    rng: np.random.Generator,
    n_judged: int = POINTS,
    whole: np.ndarray | None = None,
) -> WeightedSample:
    """Components from rows (n, d) and their posteriors, smoothed as held-out rows prefer, a component each.

    A density is a mixture of what several `smoothers` make of the rows, in shares that make either half of the
    rows likeliest given the other; ``n_judged`` rows of each half are asked. Rows with a missing value are left out.
    Where ``x`` is a projection, the rows to keep are those of ``whole``.
    """
    present = ~np.isnan(x).any(axis=1)
    values, posteriors = (x if whole is None else whole)[present], np.maximum(posteriors[present], TINY)
    x = dithered(x[present], rng)
    halves = _without_copies(x, *_among(present, halves))
    specs = smoother_specs(min(map(len, halves)), x.shape[1])
    stack = _held_out_stack(x, posteriors, halves, specs, rng, n_judged)
    kept = [w for w, spec in enumerate(specs) if stack.shares[w].any()]
    made, some, shares = smoothers(x, posteriors, [specs[w] for w in kept], rng)
    groups = [group.scaled(stack.shares[w]) for w, smoother in zip(kept, made, strict=True) for group in smoother]
    shares = calibrated(shares, some, values, posteriors)
    return _joined([group for group in groups if len(group.centres)], domain, values[some], shares, stack.optimism)


def _among(present: np.ndarray, halves: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Halves of all rows as numbers of those that are present, or other halves of these if that leaves one bare."""
    number, count = np.cumsum(present) - 1, int(present.sum())
    first, second = (number[half[present[half]]] for half in halves)
    if count == 1:
        return (np.zeros(1, dtype=int),) * 2
    if min(len(first), len(second)) >= max(count // 4, 1):
        return first, second
    parts = np.array_split(np.arange(count), PIECES)
    return np.concatenate(parts[::2]), np.concatenate(parts[1::2])


def _without_copies(x: np.ndarray, first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The halves with copies of a row in one of them, so that neither is judged by what it was fitted to."""
    _, place, group, counts = np.unique(x, axis=0, return_index=True, return_inverse=True, return_counts=True)
    copied = np.flatnonzero(counts > 1)
    in_second = np.isin(place, second)
    in_second[copied[np.argsort(-counts[copied])]] = np.arange(len(copied)) % 2 == 1
    used = np.concatenate([first, second])
    other = in_second[group[used]]
    if min(other.sum(), (~other).sum()) < max(len(used) // 4, 1):  # most rows are copies of one
        return first, second
    return used[~other], used[other]


def calibrated(shares: np.ndarray, some: np.ndarray, x: np.ndarray, posteriors: np.ndarray) -> np.ndarray:
    """Shares (m, k) of some rows, tilted so that means and variances are those of all (Deville & Särndal 1992)."""
    with np.errstate(over="ignore"):
        moments = np.clip((x - np.median(x, axis=0)) / spreads(x), -FURTHEST, FURTHEST)
    if moments.shape[1] <= MANY:
        moments = np.hstack([moments, moments**2])
    rows, means = moments[some], (posteriors / posteriors.sum(axis=0)).T @ moments
    result = np.empty_like(shares)
    for h, (weights, mean) in enumerate(zip(shares.T, means, strict=True)):
        here, whitener = weights @ rows, uncorrelating(rows, weights, np.zeros(rows.shape[1]))
        tilt = 1 + (rows - here) @ whitener @ ((mean - here) @ whitener)
        result[:, h] = weights * np.clip(tilt, 1 / TILT, TILT)  # a stray row that is not among them must not rule
    return result / result.sum(axis=0)


class StackedSmoothers(NamedTuple):
    """What held-out halves say of smoothers."""

    shares: np.ndarray  # (w, k), of every way in every component
    optimism: np.ndarray  # (k,), how much likelier a half is under its own densities than under the other's


def _held_out_stack(
    x: np.ndarray,
    posteriors: np.ndarray,
    halves: tuple[np.ndarray, np.ndarray],
    specs: list["SmootherSpec"],
    rng: np.random.Generator,
    n_judged: int,
) -> StackedSmoothers:
    """Shares that make some rows of either half likeliest given the other."""
    asked = [half[rng.permutation(len(half))[:n_judged]] for half in halves]
    made = [smoothers(x[half], posteriors[half], specs, rng)[0] for half in halves]
    by_other = _logs_of_ways(made[::-1], [x[rows] for rows in asked])
    judges, sizes = posteriors[np.concatenate(asked)], posteriors.sum(axis=0) / 2
    costly = np.array([spec.kind != "broad" for spec in specs])
    shares = np.empty((len(specs), judges.shape[1]))
    for h, judge in enumerate(judges.T):
        some = stacking_shares(by_other[:, h], judge)
        some = np.where(costly & (some < SMALL), 0.0, some)
        shares[:, h] = some / some.sum()
    kept = np.flatnonzero(shares.any(axis=1))
    by_own = _logs_of_ways([[ways[w] for w in kept] for ways in made], [x[rows] for rows in asked])
    optimism = np.empty(judges.shape[1])
    for h, judge in enumerate(judges.T):
        both = (log_mixtures(logs[:, h], shares[kept][:, [h]])[:, 0] for logs in (by_own, by_other[:, :, kept]))
        optimism[h] = sizes[h] * np.average(np.subtract(*both), weights=judge)
    return StackedSmoothers(shares, np.maximum(optimism, 1.0))


def _logs_of_ways(ways: list[list[Smoother]], rows: list[np.ndarray]) -> np.ndarray:
    """Logs of the densities of every way, (n, k, w), at some rows under some ways and at others under others."""
    return np.concatenate(
        [np.stack([log_densities(way, x) for way in own], axis=-1) for own, x in zip(ways, rows, strict=True)]
    )


def _joined(
    groups: list[GaussianGroup], domain: Quadrature, rows: np.ndarray, shares: np.ndarray, optimism: np.ndarray
) -> WeightedSample:
    weights = np.concatenate([group.weights for group in groups])
    return WeightedSample(
        domain,
        rows,
        shares,
        np.concatenate([group.centres for group in groups]),
        weights / weights.sum(axis=0),
        np.concatenate([group.widths for group in groups]),
        np.repeat(np.arange(len(groups)), [len(group.centres) for group in groups]),
        np.stack([group.map for group in groups]),
        optimism,
    )


class SmootherSpec(NamedTuple):
    """A way to smooth, unfitted: the kernels' width, and the size of the codebook that they are taken from."""

    kind: str  # "broad", "rows", "codebook" or "surroundings"
    width: float = 1.0
    size: int = 0


def smoother_specs(n_rows: int, n_columns: int) -> list[SmootherSpec]:
    """What can be fitted to so many rows.

    The component's own Gaussian and a broader one; kernels on the rows shaped like the component, narrower where rows
    are many (Abramson 1982); mixtures of the Gaussians in codebooks of several sizes; and kernels on the rows shaped
    like the Gaussian of a codebook that they are in.
    """
    sizes = [size for size in SIZES if PER_GAUSSIAN * (n_columns + 2) * size <= n_rows]
    surroundings = [size for size in sizes if size <= SURROUNDINGS][-1:]
    return [
        *(SmootherSpec("broad", width) for width in (1.0, BROAD)),
        *(SmootherSpec("rows", width) for width in WIDTHS),
        *(SmootherSpec("codebook", size=size) for size in sizes),
        *(SmootherSpec("surroundings", width, size) for size in surroundings for width in WIDTHS),
    ]


def smoothers(
    x: np.ndarray, posteriors: np.ndarray, specs: list[SmootherSpec], rng: np.random.Generator
) -> tuple[list[Smoother], np.ndarray, np.ndarray]:
    """The components smoothed in every way asked for, and the numbers and shares of the rows that stand for them."""
    some, shares = representatives(posteriors, rng)
    rows = x[some]
    maps, means = _shapes(x, posteriors)
    codebooks = {size: fit_codebook(x, size, rng) for size in sorted({spec.size for spec in specs} - {0})}
    make: dict[str, Callable[[SmootherSpec], Smoother]] = {
        "broad": lambda spec: _gaussians(maps, means, np.eye(len(maps)), spec.width),
        "rows": lambda spec: [_on_rows(whitener, rows, shares, h, spec.width) for h, whitener in enumerate(maps)],
        "codebook": lambda spec: _mixed(codebooks[spec.size], x, posteriors),
        "surroundings": lambda spec: _in_surroundings(codebooks[spec.size], rows, shares, spec.width),
    }
    return [make[spec.kind](spec) for spec in specs], some, shares


def representatives(posteriors: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of at most 1,000 rows, about as many of every component, and their shares of each.

    Rows are drawn systematically with chances that add up the components', and count by one over their chance.
    """
    shares = posteriors / posteriors.sum(axis=0)
    chances = np.ones(len(shares)) if len(shares) <= POINTS else np.minimum(POINTS * shares.mean(axis=1), 1.0)
    order = rng.permutation(len(shares))
    steps = np.floor(np.append(0.0, np.cumsum(chances[order])) + rng.random())
    some = np.sort(order[np.diff(steps) > 0])
    drawn = posteriors[some] / chances[some, None]
    return some, drawn / drawn.sum(axis=0)


def _gaussians(maps: np.ndarray, means: np.ndarray, weights: np.ndarray, width: float = 1.0) -> Smoother:
    return [GaussianGroup(whitener, means[[g]], np.array([width]), weights[[g]]) for g, whitener in enumerate(maps)]


def _mixed(codes: Codebook, x: np.ndarray, posteriors: np.ndarray) -> Smoother:
    """Every component as a mixture of the codebook's Gaussians."""
    return _gaussians(codes.maps, codes.means, codes.shares(x, posteriors))


def _in_surroundings(codes: Codebook, rows: np.ndarray, shares: np.ndarray, width: float) -> Smoother:
    """Kernels on the rows, each shaped like the Gaussian that it is likeliest from."""
    place = np.argmax(codes.log_densities(rows) + np.log(np.maximum(codes.weights, TINY)), axis=1)
    members = [(codes.maps[b], np.flatnonzero(place == b)) for b in np.unique(place)]
    return [GaussianGroup(whitener, rows[i], np.full(len(i), width), shares[i]) for whitener, i in members]


def _shapes(x: np.ndarray, posteriors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Maps that make the components' covariances the identity, (k, d, d), and their means, (k, d)."""
    few = x.shape[1] / (posteriors.sum(axis=0) + x.shape[1])
    ridges = SHRINKAGE * few[:, None] * spreads(x) ** 2
    maps = [uncorrelating(x, weights, ridge) for weights, ridge in zip(posteriors.T, ridges, strict=True)]
    return np.stack(maps), (posteriors / posteriors.sum(axis=0)).T @ x


def uncorrelating(x: np.ndarray, weights: np.ndarray, ridge: np.ndarray) -> np.ndarray:
    """A map (d, d) that makes the weighted covariance, plus a diagonal, the identity."""
    weights = weights / weights.max()
    centred = x - np.average(x, axis=0, weights=weights)
    reach = np.maximum(np.abs(centred).max(axis=0), np.sqrt(ridge))
    reach = np.where(reach > 0, reach, 1.0)  # products of columns in these units are at most 1
    centred = centred / reach
    covariance = centred.T @ (centred * weights[:, None]) / weights.sum() + np.diag(ridge / reach / reach)
    units = np.sqrt(np.diag(covariance))
    units = np.where(units > 0, units, 1.0)
    values, vectors = np.linalg.eigh(covariance / np.outer(units, units))
    return vectors / np.sqrt(np.maximum(values, FLAT)) / (units * reach)[:, None]


def _on_rows(whitener: np.ndarray, rows: np.ndarray, shares: np.ndarray, component: int, width: float) -> GaussianGroup:
    """Kernels on the rows of one component, with Abramson's local widths."""
    here = shares[:, component]
    kept = np.flatnonzero(here > NEGLIGIBLE / POINTS)
    factors = _local_factors(rows[kept] @ whitener, here[kept] / here[kept].sum(), width)
    weights = np.zeros((len(kept), shares.shape[1]))
    weights[:, component] = here[kept] / here[kept].sum()
    return GaussianGroup(whitener, rows[kept], width * factors, weights)


def _local_factors(points: np.ndarray, kept: np.ndarray, width: float) -> np.ndarray:
    """Abramson's (p(x) / mean)^(-1/2), with the geometric mean over the rows, within two octaves."""
    logs = log_kernels(points, points, np.full(len(points), width))
    log_density = log_mixtures(logs, kept[:, None])[:, 0]
    return np.exp(np.clip((kept @ log_density - log_density) / 2, -2 * np.log(2), 2 * np.log(2)))
