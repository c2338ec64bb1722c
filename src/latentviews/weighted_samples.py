"""Densities of several real columns: weighted rows, smoothed by Gaussians of many shapes that held-out rows choose."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from latentviews._arrays import to_numpy
from latentviews.bandwidths import dithered
from latentviews.codebooks import Codebook, fit_codebook, spreads
from latentviews.domains import Domain
from latentviews.embeddings import BACKGROUND, Components, as_rows, evaluate
from latentviews.experts import stacking_shares
from latentviews.kernels import Gaussian

TINY = np.finfo(float).tiny
POINTS = 1000  # rows that stand for all
WIDTHS = (0.14, 0.28, 0.56)  # of kernels, over the spread of their surroundings
SIZES = (6, 12, 25, 50, 100)  # Gaussians in a codebook
SURROUNDINGS = 50  # Gaussians whose shapes kernels take
PER_GAUSSIAN = 2  # rows of a half that there must be for each, times two and the number of columns
BROAD = 3.0  # how much wider than a component its broadest Gaussian is, for stray rows
SHRINKAGE = 1e-3  # of the covariance of a component with few rows towards that of all
FLAT = 1e-12  # the least variance of a direction, columns having one
MANY = 25  # columns beyond which variances would be more to match than rows can bear
TILT = 5.0  # how much more or less than drawn a row may count
LEVELS = 256  # points at which the distribution of a column in a component is known
PIECES = 8  # stretches that rows are halved by where the halves given leave one of them out
LARGEST = 700.0  # logs of numbers
AT_ONCE = 2**22  # kernel values in memory
NEGLIGIBLE = 1e-4  # of a component: what weighs less is left out
SMALL = 0.01  # share of a way to smooth with many kernels, below which it is left out


@dataclass(frozen=True, eq=False)
class WeightedSample(Components):
    """Components as weighted rows, and their densities as mixtures of Gaussians on and among the rows.

    p(x | h) = Σ_i weights_ih N(x; centres_i, widths_i² Σ_g), with g = shapes_i and Σ_g⁻¹ = maps_g maps_gᵀ.

    Parameters
    ----------
    domain : Domain
    rows : array of shape (m, d)
    shares : array of shape (m, k), columns summing to one
    centres : array of shape (p, d)
    weights : array of shape (p, k), columns summing to one
    widths : array of shape (p,)
    shapes : array of shape (p,), increasing
    maps : array of shape (g, d, d)
    optimism : array of shape (k,)
        By how much a half of the rows is likelier under its own density than under the other half's.
    """

    rows: np.ndarray = field(repr=False)
    shares: np.ndarray = field(repr=False)
    centres: np.ndarray = field(repr=False)
    weights: np.ndarray = field(repr=False)
    widths: np.ndarray = field(repr=False)
    shapes: np.ndarray = field(repr=False)
    maps: np.ndarray = field(repr=False)
    optimism: np.ndarray = field(repr=False)

    @property
    def n_components(self) -> int:
        """The number of components k."""
        return self.weights.shape[1]

    def _values(self, x: Any) -> np.ndarray:
        """The densities over the domain's unit, (n, k)."""
        return np.exp(np.minimum(self._logs(x) - self._domain().log_unit, LARGEST))

    def log_density(self, x: Any) -> np.ndarray:
        """The log of ``density`` mixed with a millionth of a broad density, so that it is finite everywhere."""
        background = np.log(BACKGROUND) + self._domain().log_background(to_numpy(as_rows(x)))
        return np.logaddexp(self._logs(x), background[:, None])

    def _logs(self, x: Any) -> np.ndarray:
        """The logs of the densities, (n, k)."""
        x = to_numpy(as_rows(x))
        if x.shape[1] != self.rows.shape[1]:
            raise ValueError(f"This view has {self.rows.shape[1]} columns; got {x.shape[1]}.")
        return log_densities(self._bundles, x)

    @cached_property
    def _bundles(self) -> list["Bundle"]:
        """The kernels of every shape."""
        edges = np.searchsorted(self.shapes, np.arange(len(self.maps) + 1))
        places = [slice(*ends) for ends in pairwise(edges)]
        return [
            Bundle(turn, self.centres[i], self.widths[i], self.weights[i])
            for turn, i in zip(self.maps, places, strict=True)
        ]

    def sample(self, component: int, size: int, rng: np.random.Generator) -> np.ndarray:
        """Rows drawn from the density of one component."""
        weights = self.weights[:, component]
        picked = rng.choice(len(weights), size=size, p=weights / weights.sum())
        noise = self.widths[picked, None] * rng.normal(size=(size, self.rows.shape[1]))
        back = np.linalg.inv(self.maps)[self.shapes[picked]]
        return self.centres[picked] + np.einsum("ij,ijk->ik", noise, back)

    def marginal(self, column: int) -> tuple[np.ndarray, np.ndarray]:
        """Increasing values of a column, and the share of every component up to them: sums of normal distributions."""
        variances = (np.linalg.inv(self.maps)[:, :, column] ** 2).sum(axis=1)
        centres, deviations = self.centres[:, column], self.widths * np.sqrt(variances)[self.shapes]
        places = np.linspace(-5, 5, 41)[:, None]
        around, mass = (centres + places * deviations).ravel(), np.exp(-(places**2) / 2)[:, :, None] * self.weights
        order = np.argsort(around)
        cumulative = np.cumsum(mass.reshape(len(around), -1)[order], axis=0)
        levels = ndtr(np.linspace(-5, 5, LEVELS))  # as fine in the tails of every component as in its middle
        picked = [np.searchsorted(shares, levels * shares[-1]) for shares in cumulative.T]
        values = np.unique(around[order[np.minimum(np.concatenate(picked), len(order) - 1)]])
        return values, ndtr((values[:, None] - centres) / deviations) @ self.weights

    def _integrate(self, f: Any) -> np.ndarray:
        """A callable against the weighted rows themselves, with no smoothing."""
        return evaluate(f, self.rows) @ self.shares

    def take(self, order: np.ndarray) -> "WeightedSample":
        """The components in another order, or some of them."""
        chosen = {name: getattr(self, name)[..., order] for name in ("shares", "weights", "optimism")}
        return replace(self, **chosen)

    @property
    def n_parameters(self) -> np.ndarray:
        """How many parameters would overfit as much (Akaike 1974)."""
        return self.optimism

    @cached_property
    def _positive_mass(self) -> np.ndarray:
        return self.weights.sum(axis=0)  # the kernels are densities: nothing to integrate

    def _as_sample(self) -> tuple[np.ndarray, np.ndarray]:
        return self.rows, self.shares

    def _coordinates(self, other: Components) -> np.ndarray:
        points, weights = other._as_sample()
        spread = WIDTHS[1] * self.rows.std(axis=0)
        kernel = Gaussian(np.where(spread > 0, spread, 1.0))
        values, vectors = np.linalg.eigh(kernel.gram(self.rows, self.rows))
        root = vectors / np.sqrt(np.maximum(values, 1e-10 * values[-1]))
        return root.T @ kernel.gram(self.rows, points) @ weights


class Bundle(NamedTuple):
    """Gaussians of one shape: N(x; centres_i, widths_i² Σ), Σ⁻¹ = map mapᵀ, with their weights in every component."""

    map: np.ndarray  # (d, d)
    centres: np.ndarray  # (m, d)
    widths: np.ndarray  # (m,)
    weights: np.ndarray  # (m, k)

    def logs(self, x: np.ndarray) -> np.ndarray:
        """The logs of the Gaussians, (n, m)."""
        return np.linalg.slogdet(self.map)[1] + log_kernels(x @ self.map, self.centres @ self.map, self.widths)

    def scaled(self, shares: np.ndarray) -> "Bundle":
        """The same with weights times ``shares`` (k,), and nothing of what is negligible then."""
        weights = self.weights * shares
        weights = np.where(weights > NEGLIGIBLE / POINTS, weights, 0.0)
        kept = weights.any(axis=1)
        return Bundle(self.map, self.centres[kept], self.widths[kept], weights[kept])


Way = list[Bundle]  # a way to smooth: bundles whose weights add up to one in every component


def log_densities(way: Way, x: np.ndarray) -> np.ndarray:
    """The logs of the components' densities, (n, k)."""
    weights = np.concatenate([bundle.weights for bundle in way])
    result = np.empty((len(x), weights.shape[1]))
    size = 1 + AT_ONCE // len(weights)
    for start in range(0, len(x), size):
        part = slice(start, start + size)
        logs = np.concatenate([bundle.logs(x[part]) for bundle in way], axis=1)
        result[part] = log_mixtures(logs, weights)
    return result


def log_mixtures(logs: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The logs of mixtures, (n, k), of densities with these logs, (n, m), in shares (m, k)."""
    largest = logs.max(axis=1, keepdims=True)
    return np.log(np.maximum(np.exp(logs - largest) @ weights, TINY)) + largest


def log_kernels(x: np.ndarray, points: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """The logs of N(x_i; points_j, widths_j² I), (n, m)."""
    dim = x.shape[1]
    center = points.mean(axis=0) if len(points) else 0.0
    x, points = x - center, points - center
    values = x @ (-2 * points.T)
    values += (x**2).sum(axis=1)[:, None]
    values += (points**2).sum(axis=1)
    np.maximum(values, 0.0, out=values)
    values *= -0.5 / widths**2
    values -= dim / 2 * np.log(2 * np.pi) + dim * np.log(widths)
    return values


def weighted_samples(
    x: np.ndarray,
    posteriors: np.ndarray,
    halves: tuple[np.ndarray, np.ndarray],
    domain: Domain,
    rng: np.random.Generator,
    n_judged: int = POINTS,
) -> WeightedSample:
    """Components from rows (n, d) and their posteriors, smoothed as held-out rows prefer, a component each.

    A density is a mixture of what several `ways` to smooth make of the rows, in shares that make either half of the
    rows likeliest given the other; ``n_judged`` rows of each half are asked. Rows with a missing value are left out.
    """
    present = ~np.isnan(x).any(axis=1)
    values, posteriors = x[present], np.maximum(posteriors[present], TINY)
    x = dithered(values, rng)
    halves = _without_copies(x, *_among(present, halves))
    recipes = recipes_for(min(map(len, halves)), x.shape[1])
    stack = _held_out_stack(x, posteriors, halves, recipes, rng, n_judged)
    kept = [w for w, recipe in enumerate(recipes) if stack.shares[w].any()]
    made, some, shares = ways(x, posteriors, [recipes[w] for w in kept], rng)
    bundles = [bundle.scaled(stack.shares[w]) for w, way in zip(kept, made, strict=True) for bundle in way]
    shares = calibrated(shares, some, values, posteriors)
    return _joined([bundle for bundle in bundles if len(bundle.centres)], domain, values[some], shares, stack.optimism)


def _among(present: np.ndarray, halves: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Halves of all rows as numbers of those that are present, or other halves of these if that leaves one bare."""
    number, count = np.cumsum(present) - 1, int(present.sum())
    first, second = (number[half[present[half]]] for half in halves)
    if min(len(first), len(second)) >= count // 4:
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
    if min(other.sum(), (~other).sum()) < len(used) // 4:  # most rows are copies of one
        return first, second
    return used[~other], used[other]


def calibrated(shares: np.ndarray, some: np.ndarray, x: np.ndarray, posteriors: np.ndarray) -> np.ndarray:
    """Shares (m, k) of some rows, tilted so that means and variances are those of all (Deville & Särndal 1992)."""
    moments = (x - np.median(x, axis=0)) / spreads(x)
    if moments.shape[1] <= MANY:
        moments = np.hstack([moments, moments**2])
    rows, means = moments[some], (posteriors / posteriors.sum(axis=0)).T @ moments
    result = np.empty_like(shares)
    for h, (weights, mean) in enumerate(zip(shares.T, means, strict=True)):
        here, turn = weights @ rows, uncorrelating(rows, weights, np.zeros(rows.shape[1]))
        tilt = 1 + (rows - here) @ turn @ ((mean - here) @ turn)
        result[:, h] = weights * np.clip(tilt, 1 / TILT, TILT)  # a stray row that is not among them must not rule
    return result / result.sum(axis=0)


class Stack(NamedTuple):
    """What held-out halves say of ways to smooth."""

    shares: np.ndarray  # (w, k), of every way in every component
    optimism: np.ndarray  # (k,), how much likelier a half is under its own densities than under the other's


def _held_out_stack(
    x: np.ndarray,
    posteriors: np.ndarray,
    halves: tuple[np.ndarray, np.ndarray],
    recipes: list["Recipe"],
    rng: np.random.Generator,
    n_judged: int,
) -> Stack:
    """Shares that make some rows of either half likeliest given the other."""
    asked = [half[rng.permutation(len(half))[:n_judged]] for half in halves]
    rows, sides = np.concatenate(asked), np.repeat([0, 1], list(map(len, asked)))
    found = []  # logs of densities (n, k, w) that each half makes
    for half in halves:
        made, _, _ = ways(x[half], posteriors[half], recipes, rng)
        found.append(np.stack([log_densities(way, x[rows]) for way in made], axis=-1))
    at_home, abroad = np.where((sides == 0)[:, None, None], found, found[::-1])
    judges, sizes = posteriors[rows], posteriors.sum(axis=0) / 2
    costly = np.array([recipe.kind != "broad" for recipe in recipes])
    shares = np.empty((len(recipes), judges.shape[1]))
    optimism = np.empty(judges.shape[1])
    for h, judge in enumerate(judges.T):
        some = stacking_shares(abroad[:, h], judge)
        some = np.where(costly & (some < SMALL), 0.0, some)
        shares[:, h] = some / some.sum()
        gain = np.subtract(*(log_mixtures(logs[:, h], shares[:, [h]])[:, 0] for logs in (at_home, abroad)))
        optimism[h] = sizes[h] * np.average(gain, weights=judge)
    return Stack(shares, np.maximum(optimism, 1.0))


def _joined(
    bundles: list[Bundle], domain: Domain, rows: np.ndarray, shares: np.ndarray, optimism: np.ndarray
) -> WeightedSample:
    weights = np.concatenate([bundle.weights for bundle in bundles])
    return WeightedSample(
        domain,
        rows,
        shares,
        np.concatenate([bundle.centres for bundle in bundles]),
        weights / weights.sum(axis=0),
        np.concatenate([bundle.widths for bundle in bundles]),
        np.repeat(np.arange(len(bundles)), [len(bundle.centres) for bundle in bundles]),
        np.stack([bundle.map for bundle in bundles]),
        optimism,
    )


class Recipe(NamedTuple):
    """A way to smooth, unfitted: the kernels' width, and the size of the codebook that they are taken from."""

    kind: str  # "broad", "rows", "codebook" or "surroundings"
    width: float = 1.0
    size: int = 0


def recipes_for(n_rows: int, n_columns: int) -> list[Recipe]:
    """What can be fitted to so many rows.

    The component's own Gaussian and a broader one; kernels on the rows shaped like the component, narrower where rows
    are many (Abramson 1982); mixtures of the Gaussians in codebooks of several sizes; and kernels on the rows shaped
    like the Gaussian of a codebook that they are in.
    """
    sizes = [size for size in SIZES if PER_GAUSSIAN * (n_columns + 2) * size <= n_rows]
    surroundings = [size for size in sizes if size <= SURROUNDINGS][-1:]
    return [
        *(Recipe("broad", width) for width in (1.0, BROAD)),
        *(Recipe("rows", width) for width in WIDTHS),
        *(Recipe("codebook", size=size) for size in sizes),
        *(Recipe("surroundings", width, size) for size in surroundings for width in WIDTHS),
    ]


def ways(
    x: np.ndarray, posteriors: np.ndarray, recipes: list[Recipe], rng: np.random.Generator
) -> tuple[list[Way], np.ndarray, np.ndarray]:
    """The components smoothed in every way asked for, and the numbers and shares of the rows that stand for them."""
    some, shares = representatives(posteriors, rng)
    rows = x[some]
    maps, means = _shapes(x, posteriors)
    codebooks = {size: fit_codebook(x, size, rng) for size in sorted({recipe.size for recipe in recipes} - {0})}
    make: dict[str, Callable[[Recipe], Way]] = {
        "broad": lambda recipe: _gaussians(maps, means, np.eye(len(maps)), recipe.width),
        "rows": lambda recipe: [_on_rows(turn, rows, shares, h, recipe.width) for h, turn in enumerate(maps)],
        "codebook": lambda recipe: _mixed(codebooks[recipe.size], x, posteriors),
        "surroundings": lambda recipe: _in_surroundings(codebooks[recipe.size], rows, shares, recipe.width),
    }
    return [make[recipe.kind](recipe) for recipe in recipes], some, shares


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


def _gaussians(maps: np.ndarray, means: np.ndarray, weights: np.ndarray, width: float = 1.0) -> Way:
    return [Bundle(turn, means[[g]], np.array([width]), weights[[g]]) for g, turn in enumerate(maps)]


def _mixed(codes: Codebook, x: np.ndarray, posteriors: np.ndarray) -> Way:
    """Every component as a mixture of the codebook's Gaussians."""
    return _gaussians(codes.maps, codes.means, codes.shares(x, posteriors))


def _in_surroundings(codes: Codebook, rows: np.ndarray, shares: np.ndarray, width: float) -> Way:
    """Kernels on the rows, each shaped like the Gaussian that it is likeliest from."""
    place = np.argmax(codes.log_densities(rows) + np.log(np.maximum(codes.weights, TINY)), axis=1)
    members = [(codes.maps[b], np.flatnonzero(place == b)) for b in np.unique(place)]
    return [Bundle(turn, rows[i], np.full(len(i), width), shares[i]) for turn, i in members]


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
    covariance = centred.T @ (centred * weights[:, None]) / weights.sum() + np.diag(ridge)
    units = np.sqrt(np.diag(covariance))
    units = np.where(units > 0, units, 1.0)
    values, vectors = np.linalg.eigh(covariance / np.outer(units, units))
    return vectors / np.sqrt(np.maximum(values, FLAT)) / units[:, None]


def _on_rows(turn: np.ndarray, rows: np.ndarray, shares: np.ndarray, component: int, width: float) -> Bundle:
    """Kernels on the rows of one component, with Abramson's local widths."""
    here = shares[:, component]
    kept = np.flatnonzero(here > NEGLIGIBLE / POINTS)
    factors = _local_factors(rows[kept] @ turn, here[kept] / here[kept].sum(), width)
    weights = np.zeros((len(kept), shares.shape[1]))
    weights[:, component] = here[kept] / here[kept].sum()
    return Bundle(turn, rows[kept], width * factors, weights)


def _local_factors(points: np.ndarray, kept: np.ndarray, width: float) -> np.ndarray:
    """Abramson's (p(x) / mean)^(-1/2), with the geometric mean over the rows, within two octaves."""
    logs = log_kernels(points, points, np.full(len(points), width))
    log_density = log_mixtures(logs, kept[:, None])[:, 0]
    return np.exp(np.clip((kept @ log_density - log_density) / 2, -2 * np.log(2), 2 * np.log(2)))
