"""Rules that read a bandwidth off the data."""

import math
from collections.abc import Callable
from itertools import accumulate

import numpy as np
from scipy import fft, optimize, special
from scipy.spatial.distance import pdist

from latentviews._numbers import NORMAL_QUARTILES, TINY, as_shares, quartile_spread, smoothed_bins, thinned
from latentviews._parameters import Bandwidth, NoneOr
from latentviews.core.kernels.once import distinct, once, quantiles

SCALES = 2500  # bandwidths that a grid can hold
STAGES = 7  # of improved Sheather–Jones
TIMES = 0.1 * 0.5 ** np.arange(37)  # squared bandwidths over the range of the data, tried from above
IRREGULAR = 2.4  # the median ratio of neighbouring gaps above which values were not rounded
UNDERFLOW = 300.0  # exp(-300) times any term, 1e60 at most, is nothing beside their sum
FLAT = 1e-250  # no derivative is smaller
FACTORS = np.geomspace(0.05, 2.5, 24)  # of Silverman's rule, among which held-out rows choose
FEW = 200  # values whose differences are formed rather than counted
NEAR = 8  # differences per value, near their median, that are formed
ROWS = 2000  # the median of two million distances is as good as the median of all
SOME = 2**15  # of many numbers, to say about where their median is
ANGLES = 1000  # rows of angles among which held-out ones choose


def median(x: np.ndarray) -> float:
    """The median distance between different rows, over at most 2,000 evenly spaced ones."""
    rows = thinned(x, ROWS)
    if rows.shape[1] == 1 and len(rows) > FEW:
        return _median_gap(np.sort(rows[:, 0]))
    distances = pdist(rows)
    if distances.size and not distances.min() > 0:
        distances = distances[distances > 0]
    return middle_value(distances) if distances.size else 0.0


def middle_value(values: np.ndarray) -> float:
    """The median of numbers in no order; of many only those near some numbers' median are sorted."""
    if len(values) <= SOME:
        return float(np.median(values))
    near = np.sort(values[:: max(len(values) // SOME, 1)])
    low, high = near[[int(0.48 * len(near)), min(int(0.52 * len(near)) + 1, len(near) - 1)]]
    above = values >= low
    ranks = np.array([(len(values) - 1) // 2, len(values) // 2]) - (len(values) - int(np.count_nonzero(above)))
    above &= values <= high
    between = values[above]
    if ranks[0] < 0 or ranks[1] >= len(between):  # those some were of another kind than all
        return float(np.median(values))
    return float(np.partition(between, ranks)[ranks].mean())


def _median_gap(x: np.ndarray) -> float:
    """The median of the positive differences of sorted numbers: most are counted, those near the middle formed."""
    n, places = len(x), np.arange(len(x))
    low, high, upto = 0.0, float(x[-1] - x[0]), np.full(len(x), len(x))
    below = np.searchsorted(x, x, "right")
    tied = int((below - 1 - places).sum())
    total = n * (n - 1) // 2 - tied
    if not total:
        return 0.0
    ranks = np.array([(total - 1) // 2, total // 2])
    while low < (middle := (low + high) / 2) < high:  # however far out the farthest is
        reach = np.searchsorted(x, x + middle, "right")
        within = int((reach - 1 - places).sum()) - tied
        if within > ranks[1]:
            high, upto = middle, reach
        elif within <= ranks[0]:
            low, below = middle, reach
        counts = upto - below
        if counts.sum() <= NEAR * n or ranks[0] < within <= ranks[1]:
            break
    else:  # differences that are all the same
        i = int(np.argmax(counts))
        return float(x[upto[i] - 1] - x[i])
    others = np.arange(counts.sum()) + np.repeat(below - np.cumsum(counts) + counts, counts)
    ranks -= int((below - 1 - places).sum()) - tied
    return float(np.partition(x[others] - np.repeat(x, counts), ranks)[ranks].mean())


def scott(x: np.ndarray) -> np.ndarray:
    """Scott's rule, n^(-1/(d+4)) standard deviations, one bandwidth per column."""
    n, d = x.shape
    return x.std(axis=0) * n ** (-1 / (d + 4))


def silverman(x: np.ndarray) -> np.ndarray:
    """Silverman's rule of thumb with his robust spread, one bandwidth per column."""
    n, d = x.shape
    deviation, quartiles = x.std(axis=0), _column_quartiles(x) if d == 1 else quartile_spread(x)
    spread = np.where(quartiles > 0, np.minimum(deviation, quartiles), deviation)
    return spread * (4 / (n * (d + 2))) ** (1 / (d + 4))


def _column_quartiles(x: np.ndarray) -> np.ndarray:
    """`quartile_spread` of one column (n, 1), off its order, which other rules ask for, too."""
    return np.array([np.ptp(quantiles(x[:, 0], [0.25, 0.75])) / NORMAL_QUARTILES])


def isj(x: np.ndarray, low: float = -np.inf, high: float = np.inf) -> np.ndarray:
    """Improved Sheather–Jones (Botev, Grotowski & Kroese 2010), a bandwidth per column.

    It assumes no shape, so columns with several modes are not smoothed over. For d > 1 columns the rate
    n^(-1/5) of the one-dimensional rule is replaced by n^(-1/(d+4)). Values end at ``low`` and ``high``: its cosine
    transform takes the density as mirrored at the ends of the bins, which lie there if values come near.
    """
    n, d = x.shape
    return n ** (1 / 5 - 1 / (d + 4)) * np.array([_isj_column(column, low, high) for column in x.T])


@once
def _isj_column(x: np.ndarray, low: float, high: float, n_bins: int = 2**12) -> float:
    """The rule on one column, never finer than the resolution of the data."""
    values, counts = distinct(x)
    margin = (values[-1] - values[0]) / 4
    edges = np.linspace(max(values[0] - margin, low), min(values[-1] + margin, high), n_bins + 1)
    bandwidth = isj_binned(_counts(values, counts, edges), edges[1] - edges[0], len(x))
    return max(bandwidth, finest(x)) if np.isfinite(bandwidth) else float(silverman(x[:, None])[0])


def _counts(values: np.ndarray, counts: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Rows between the edges; where values are tied, each is spread evenly from half-way to its neighbours.

    A rounded value stands for all that were rounded to it. As spikes, such values have a fine structure that the rule
    would resolve. Values are increasing, and ``counts`` says how often each occurs.
    """
    if counts.max() == 1 or len(values) < 3:
        below = np.append(values.searchsorted(edges[:-1], "left"), values.searchsorted(edges[-1], "right"))
        return np.diff(np.append(0, np.cumsum(counts))[below])
    middles = (values[1:] + values[:-1]) / 2
    borders = np.concatenate([[2 * values[0] - middles[0]], middles, [2 * values[-1] - middles[-1]]])
    return np.diff(np.interp(edges, borders, np.concatenate([[0.0], np.cumsum(counts)])))


def isj_binned(counts: np.ndarray, step: float, n_samples: float) -> float:
    """The rule on nonnegative counts of ``n_samples`` rows in equal bins; NaN where its equation has no root.

    Of several roots the largest is taken: rounded values have spurious ones, which resolve the rounding.
    """
    total = float(counts.sum())
    if np.count_nonzero(counts) < 3 or not n_samples > 0 or not 0 < total < np.inf:
        return np.nan
    squares = (fft.dct(counts / total)[1:] / 2) ** 2
    rates = np.pi**2 * np.arange(1, len(counts), dtype=float) ** 2
    terms = list(accumulate([2 * squares, *[rates] * STAGES], np.multiply))  # 2 rates^s squares

    def excess(t: float) -> float:
        return t - _fixed_point(t, n_samples, rates, terms)

    below = next((t for t in TIMES if excess(t) < 0), None)
    if below is None or below == TIMES[0]:  # too few rows for the rule
        return np.nan
    return float(np.sqrt(optimize.brentq(excess, below, 2 * below, rtol=1e-6))) * step * len(counts)


def weighted_isj(counts: np.ndarray, step: float, n_samples: float) -> float:
    """`isj_binned` kept between half a bin and twice Silverman's rule, which also stands in where it fails."""
    share, place = counts / counts.sum(), step * np.arange(len(counts))
    deviation = np.sqrt(max(share @ place**2 - (share @ place) ** 2, step**2))
    silvermans = float(deviation * (4 / (3 * max(n_samples, 2.0))) ** 0.2)
    bandwidth = isj_binned(counts, step, n_samples)
    return max(min(bandwidth, 2 * silvermans) if np.isfinite(bandwidth) else silvermans, step / 2)


def cv(x: np.ndarray, n_folds: int = 5) -> np.ndarray:
    """The multiple of Silverman's rule with the highest held-out likelihood of a Gaussian KDE, in five folds.

    The papers choose bandwidths so. One column is binned, so all rows count; of several, at most 2,000 evenly spaced
    rows are used, and the bandwidth is scaled to all rows by the rate n^(-1/(d+4)).
    """
    unit = np.where(np.ptp(x, axis=0) > 0, np.ptp(x, axis=0), 1.0)  # squares of tiny values would be zero
    rows = (x if x.shape[1] == 1 else thinned(x, ROWS)) / unit
    n, d = rows.shape
    start, deviation = silverman(rows), rows.std(axis=0)
    start = np.where(start > np.finfo(float).eps * deviation, start, deviation)  # quartiles may be as good as equal
    likelihoods = (_binned_likelihoods if d == 1 else _pairwise_likelihoods)(rows / start, np.arange(n) % n_folds)
    floor = np.array([finest(column) for column in x.T])
    return np.maximum(float(FACTORS[np.argmax(likelihoods)]) * start * unit * (n / len(x)) ** (1 / (d + 4)), floor)


def angular_cv(x: np.ndarray, start: float, n_folds: int = 5) -> float:
    """The rule `cv` for angles in radians, (n, d): a von Mises KDE, and a multiple of ``start`` for all columns.

    At most 1,000 evenly spaced rows are used.
    """
    rows = thinned(x, ANGLES)
    n, d = rows.shape
    cosines = np.cos(rows) @ np.cos(rows).T + np.sin(rows) @ np.sin(rows).T - d
    fold = np.arange(n) % n_folds
    held_out = fold[:, None] != fold[None, :]

    def likelihood(width: float) -> float:
        sums = np.where(held_out, np.exp(cosines / width**2), 0.0).sum(axis=1)
        return float(np.log(np.maximum(sums, TINY)).mean() - d * np.log(special.ive(0, width**-2)))

    width = max(FACTORS * start * (len(x) / n) ** (1 / (d + 4)), key=likelihood)
    return max(float(width) * (n / len(x)) ** (1 / (d + 4)), *(finest(column) for column in x.T))


def _pairwise_likelihoods(z: np.ndarray, fold: np.ndarray) -> list[float]:
    """The mean held-out log-likelihood of rows (n, d) at every factor, up to a constant."""
    squares = sum((z[:, j, None] - z[None, :, j]) ** 2 for j in range(z.shape[1]))
    held_out = fold[:, None] != fold[None, :]

    def likelihood(factor: float) -> float:
        density = np.where(held_out, np.exp(-0.5 * squares / factor**2), 0.0).sum(axis=1) / held_out.sum(axis=1)
        return float(np.log(np.maximum(density, TINY)).mean() - z.shape[1] * np.log(factor))

    return [likelihood(factor) for factor in FACTORS]


def _binned_likelihoods(z: np.ndarray, fold: np.ndarray) -> list[float]:
    """The mean held-out log-likelihood of rows (n, 1) at every factor, from their shares of the points of a grid.

    Sharing a row between two points, and reading a density between two, spread each by a variance of step² / 6.
    """
    low, high = z.min() - 5 * FACTORS[-1], z.max() + 5 * FACTORS[-1]
    size = int(np.clip(6 * (high - low) / FACTORS[0], 256, 4096))
    step = (high - low) / (size - 1)
    left, n_folds = np.minimum(((z[:, 0] - low) / step).astype(int), size - 2), int(fold.max()) + 1
    right_share = (z[:, 0] - low) / step - left
    places = np.concatenate([left, left + 1]) * n_folds + np.tile(fold, 2)
    counts = np.bincount(places, np.concatenate([1 - right_share, right_share]), size * n_folds).reshape(size, n_folds)
    others = as_shares(counts.sum(axis=1, keepdims=True) - counts, axis=0)

    def likelihood(factor: float) -> float:
        table = smoothed_bins(others, np.sqrt(max(factor**2 - step**2 / 3, factor**2 / 4)) / step) / step
        density = (1 - right_share) * table[left, fold] + right_share * table[left + 1, fold]
        return float(np.log(np.maximum(density, TINY)).mean())

    return [likelihood(factor) for factor in FACTORS]


@once
def resolution(x: np.ndarray) -> float:
    """The median gap between different values: what rounded or counted data can resolve."""
    return _median_step(distinct(x)[0])


def _median_step(values: np.ndarray) -> float:
    """The median gap between increasing values."""
    return float(np.median(np.diff(values))) if len(values) > 1 else 0.0


def finest(x: np.ndarray) -> float:
    """The least bandwidth at which a density of rounded values is smooth: at half a unit it ripples by 1.4 %."""
    return resolution(x) / 2


def rounding(x: np.ndarray) -> float:
    """The unit of rounded values, most of which occur again; zero where they do not."""
    values, _ = distinct(x)
    return _median_step(values) if len(values) < len(x) / 2 else 0.0


@once
def without_copies(x: np.ndarray) -> np.ndarray:
    """The distinct rows where some occur again as whole, as in a bootstrap; all rows where values are only rounded.

    Rounded values lie at regular distances, whatever was done to them since; gaps between numbers drawn at random
    differ from their neighbours by a factor of three, in the median.
    """
    if len(distinct(x[:, 0])[0]) == len(x):  # no value twice, so no row: sorting a column is quick
        return x
    _, first = np.unique(x, axis=0, return_index=True)
    if len(first) == len(x):
        return x
    gaps = np.diff(distinct(x[:, 0])[0])
    random = len(gaps) > 2 and np.median(np.abs(np.diff(np.log(gaps)))) > np.log(IRREGULAR)
    return x[np.sort(first)] if random else x


def many_scales(x: np.ndarray) -> bool:
    """Whether a column has parts so narrow beside its middle 99 % that no grid resolves both."""
    x = without_copies(x[:, None])
    return len(x) > 0 and float(np.ptp(quantiles(x[:, 0], [0.005, 0.995]))) > SCALES * float(isj(x)[0])


def dithered(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rows (n, d) whose rounded columns, where most values occur again, are spread evenly over their unit."""
    units = np.array([rounding(column) for column in x.T])
    return x + units * rng.uniform(-0.5, 0.5, size=x.shape) if units.any() else x


def _fixed_point(t: float, n: float, rates: np.ndarray, terms: list[np.ndarray]) -> float:
    """Equation 29 of Botev et al.: the map whose fixed point is the squared bandwidth.

    ``terms[s] @ exp(-rates t)`` estimates the squared norm of the s-th derivative of the density.
    """

    def norm(s: int, t: float) -> float:
        size = int(math.sqrt(UNDERFLOW / max(TINY, t)) / math.pi) + 1  # rates are π² j²
        return max(float(terms[s][:size] @ np.exp(-t * rates[:size])), FLAT)

    derivative = norm(STAGES, t)
    for s in range(STAGES - 1, 1, -1):
        odd = math.prod(range(1, 2 * s, 2)) / math.sqrt(2 * math.pi)
        time = (2 * (1 + 0.5 ** (s + 0.5)) / 3 * odd / (n * derivative)) ** (2 / (3 + 2 * s))
        derivative = norm(s, time)
    return float((2 * n * math.sqrt(math.pi) * derivative) ** (-2 / 5))


RULES: dict[str, Callable[[np.ndarray], float | np.ndarray]] = {
    "median": median,
    "scott": scott,
    "silverman": silverman,
    "isj": isj,
    "cv": cv,
}
OF_DENSITIES = NoneOr(Bandwidth(("auto", *RULES)))  # what the parameter ``density_bandwidth`` of a model may be


def resolve(rule: str, x: np.ndarray) -> float | np.ndarray:
    """The bandwidth that ``rule`` gives for the rows ``x``; never zero."""
    if rule not in RULES:
        raise ValueError(f"bandwidth must be a positive number or one of {sorted(RULES)}; got {rule!r}.")
    if not len(x):
        raise ValueError(
            f"bandwidth={rule!r} needs rows without missing values in the view, and there are none among those that it "
            "is read off; give it as a number, or raise pilot_size where that is small."
        )
    varying = np.ptp(x, axis=0) > 0
    if not (varying.any() if rule == "median" else varying.all()):  # the median is of distances, one for all columns
        column = int(np.flatnonzero(np.ptp(x, axis=0) == 0)[0])
        raise ValueError(
            f"bandwidth={rule!r} needs columns that vary, but column {column} of the view is constant "
            f"over {len(x)} sample(s); drop it or give the bandwidth as a number."
        )
    bandwidth = RULES[rule](without_copies(x))
    if not np.all(np.asarray(bandwidth) > 0):  # squares of its distances are below all numbers
        raise ValueError(
            f"bandwidth={rule!r} is of columns that vary by {np.ptp(x, axis=0).min():.3g}, whose square is no number; "
            "scale them."
        )
    return float(np.ravel(bandwidth)[0]) if np.size(bandwidth) == 1 else bandwidth
